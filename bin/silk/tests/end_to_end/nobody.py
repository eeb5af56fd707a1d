"""nobody.py ADDRESS …: what a host hears of ports and protocols of ADDRESS that nobody has there, a line for each."""
import errno
import socket
import sys


def outcome(do):
    try:
        do()
        return "ok"
    except OSError as error:
        return errno.errorcode.get(error.errno, repr(error))


def asked(address, kind, protocol, port):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, kind, protocol) as end:
        end.settimeout(5)
        end.connect((address, port))
        end.send(b"is anybody there?" * (300 if port == 4245 else 1))
        end.recv(100)


for address in sys.argv[1:]:
    for name, kind, protocol, port in (
        ("tcp", socket.SOCK_STREAM, 0, 4243),
        ("udp", socket.SOCK_DGRAM, 0, 4244),
        ("udp in fragments", socket.SOCK_DGRAM, 0, 4245),
        ("another protocol", socket.SOCK_RAW, 253, 0),
    ):
        print(address, name, outcome(lambda: asked(address, kind, protocol, port)))
