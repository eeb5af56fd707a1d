"""Opens two connections to the address given and lets the second speak first."""
import socket
import sys

silent, speaking = (socket.create_connection((sys.argv[1], 7), timeout=20) for _ in range(2))
speaking.sendall(b"second")
assert speaking.recv(16) == b"served"
silent.sendall(b"first")
assert silent.recv(16) == b"served"
