"""late_accepting.py BACKLOG COUNT: listens with so much room, and accepts so many connections once there is a file
called `go`."""
import os
import socket
import sys
import time

listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("0.0.0.0", 7))
listener.listen(int(sys.argv[1]))
print("listening", flush=True)
while not os.path.exists("go"):
    time.sleep(0.02)
for _ in range(int(sys.argv[2])):
    connection, _ = listener.accept()
    connection.sendall(connection.recv(16))
    connection.close()
