"""Has every port of those named, for streams and for datagrams."""
import socket
import sys

kept = []
for port in [int(port) for port in sys.argv[1:]] + [4200, 4203]:
    for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM:
        one = socket.socket(socket.AF_INET, kind)
        if kind == socket.SOCK_STREAM:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind(('0.0.0.0', port))
        if kind == socket.SOCK_STREAM:
            one.listen()
        kept.append(one)
print('all bound')
