"""COUNT connections to an echo server one after the other, of which every other one is closed by the peer first, and as many datagram
sockets. What they had must be there for those that come later."""
import socket, sys

HOST, PORT, COUNT = sys.argv[1], *map(int, sys.argv[2:])
for number in range(COUNT):
    with socket.create_connection((HOST, PORT)) as connection:
        connection.sendall(b"%d" % number)
        answer = connection.recv(16)
        assert answer == b"%d" % number, answer
        if number % 2:
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(16) == b""
for number in range(COUNT):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.connect((HOST, PORT))
        datagrams.send(b"x")
print("all")
