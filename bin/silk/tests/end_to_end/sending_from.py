"""A server that answers from the address at which it was asked, as name servers do, and who asks it.

sending_from.py serve PORT
sending_from.py ask PORT ADDRESS…    says `whole` of each address that answers, or why not
"""
import socket
import struct
import sys

ASKED = b"question"
SEGMENT = 700
# Not named by the module.
SOL_UDP, UDP_SEGMENT, IP_PKTINFO = 17, 103, 8


def serve(port):
    end = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    end.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    end.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
    end.bind(("::", port))
    try:
        elsewhere = struct.pack("=16sI", socket.inet_pton(socket.AF_INET6, "fd98::1"), 0)
        asked = [(socket.IPPROTO_IPV6, socket.IPV6_PKTINFO, elsewhere)]
        end.sendmsg([b"x"], asked, 0, ("::ffff:127.0.0.1", port))
    except OSError as error:
        print("of another IP:", error.strerror)
    print("listening", flush=True)
    while True:
        text, told, _, peer = end.recvmsg(2000, 200)
        [own] = [data for level, kind, data in told if (level, kind) == (socket.IPPROTO_IPV6, socket.IPV6_PKTINFO)]
        # From there, over any interface.
        asked = [(socket.IPPROTO_IPV6, socket.IPV6_PKTINFO, own[:16] + bytes(4))]
        end.sendmsg([text], asked, 0, peer)
        asked.append((SOL_UDP, UDP_SEGMENT, struct.pack("=H", SEGMENT)))
        end.sendmsg([text.ljust(3 * SEGMENT, b".")], asked, 0, peer)


def ask(port, address):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    end = socket.socket(family, socket.SOCK_DGRAM)
    # It hears that address alone.
    end.connect((address, port))
    end.settimeout(5)
    end.send(ASKED)
    answers = [end.recv(2000) for _ in range(4)]
    whole = answers == [ASKED, ASKED.ljust(SEGMENT, b"."), b"." * SEGMENT, b"." * SEGMENT]
    return "whole" if whole else f"{answers}"


if sys.argv[1] == "serve":
    serve(int(sys.argv[2]))
for address in sys.argv[3:]:
    try:
        print(address, ask(int(sys.argv[2]), address), flush=True)
    except OSError as error:
        print(address, error, flush=True)
