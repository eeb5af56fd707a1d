"""`serve NAME` listens on port 7 together with others and tells everybody its name; `ask ADDRESS` asks until nobody
new answers, and says who did."""
import socket
import sys

if sys.argv[1] == "serve":
    server = socket.create_server(("0.0.0.0", 7), reuse_port=True)
    print("listening", flush=True)
    while True:
        connection, _ = server.accept()
        connection.sendall(sys.argv[2].encode())
        connection.close()

names = set()
for _ in range(20):
    try:
        names.add(socket.create_connection((sys.argv[2], 7)).recv(20).decode())
    except OSError as error:
        names.add(type(error).__name__)
print(*sorted(names))
