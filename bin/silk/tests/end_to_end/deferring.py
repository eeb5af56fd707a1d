"""Accepts two connections, the first of which says nothing until the second was served, and names them."""
import socket

listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("0.0.0.0", 7))
listener.listen()
# As Apache does it: the socket listens already.
listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 30)
for _ in range(2):
    connection, _ = listener.accept()
    print(connection.recv(16).decode(), flush=True)
    connection.sendall(b"served")
    connection.close()
