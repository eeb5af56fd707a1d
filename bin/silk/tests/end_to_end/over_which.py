"""A server of datagrams on any address of either IP that answers with the name of the interface over which it was asked.

over_which.py serve PORT
over_which.py ask PORT ADDRESS
"""
import selectors
import socket
import struct
import sys

IP_PKTINFO = 8  # not named by the module


def serve(port):
    ends = selectors.DefaultSelector()
    for family in (socket.AF_INET, socket.AF_INET6):
        end = socket.socket(family, socket.SOCK_DGRAM)
        if family == socket.AF_INET6:
            end.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            end.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
        else:
            end.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
        end.bind(("", port))
        ends.register(end, selectors.EVENT_READ)
    print("ready", flush=True)
    while True:
        for key, _ in ends.select():
            _, told, _, peer = key.fileobj.recvmsg(99, 99)
            (level, _, data) = told[0]
            number = data[:4] if level == socket.IPPROTO_IP else data[16:20]
            key.fileobj.sendto(socket.if_indextoname(struct.unpack("=I", number)[0]).encode(), peer)


def ask(port, address):
    end = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
    end.settimeout(5)
    end.sendto(b"over which?", (address, port))
    print(end.recv(99).decode())


if sys.argv[1] == "serve":
    serve(int(sys.argv[2]))
ask(int(sys.argv[2]), sys.argv[3])
