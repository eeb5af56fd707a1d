"""`serve ADDRESS NAME...` opens a socket of this name after the other at port 7000, which all share, and answers what
each hears with its name; "close NAME" and "connect NAME" it does first. `latest ADDRESS NAME...` does with SO_REUSEADDR what
`serve` does with SO_REUSEPORT; `meet ADDRESS NAME` connects a socket to each peer and binds the next. `ask FROM ADDRESS` asks from forty ports, thrice
from each, and says who answers each. `call FROM ADDRESS` asks a group or everyone, and says who answers. `tell ADDRESS
WHAT` sends that until it is answered."""
import json
import select
import socket
import struct
import sys

PORT = 7000
GROUP6 = "ff15::99"


def end(at):
    made = socket.socket(socket.AF_INET6 if ":" in at else socket.AF_INET, socket.SOCK_DGRAM)
    made.settimeout(1)
    return made


def bound(at, share):
    made = end(at)
    made.setsockopt(socket.SOL_SOCKET, share, 1)
    made.bind((at, PORT))
    return made


def latest(at, *names):
    serve(at, *names, share=socket.SO_REUSEADDR)


def meet(at, _):
    sockets = [bound(at, socket.SO_REUSEADDR)]
    print("ready [] []", flush=True)
    while True:
        for one in select.select(sockets, [], [])[0]:
            _, peer = one.recvfrom(100)
            number = sockets.index(one)
            if one is sockets[-1]:
                one.connect(peer)
                sockets.append(bound(at, socket.SO_REUSEADDR))
            one.send(str(number).encode())


def serve(at, *names, share=socket.SO_REUSEPORT):
    sockets = {name: bound(at, share) for name in names}
    if at == "::":
        joined = socket.inet_pton(socket.AF_INET6, GROUP6) + struct.pack("=I", socket.if_nametoindex("eth0"))
        next(iter(sockets.values())).setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, joined)
    watch = select.poll()
    for one in sockets.values():
        watch.register(one, select.POLLIN)
    wrong = [name for name, one in sockets.items() if one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)]
    print("ready", wrong, watch.poll(0), flush=True)
    while sockets:
        for heard, _ in watch.poll():
            name = next(name for name, one in sockets.items() if one.fileno() == heard)
            what, peer = sockets[name].recvfrom(100)
            verb, *whom = what.decode().split()
            sockets[name].sendto(name.encode(), peer)
            if verb == "connect":
                sockets[whom[0]].connect(peer)
            if verb == "close" and whom[0] in sockets:
                watch.unregister(sockets[whom[0]])
                sockets.pop(whom[0]).close()


def answer(one, to, what=b"who"):
    for _ in range(10):
        try:
            one.sendto(what, to)
            return one.recv(100).decode()
        except (TimeoutError, ConnectionRefusedError):
            pass
    return "nobody"


def ask(source, at):
    said = []
    for port in range(7100, 7140):
        one = end(at)
        one.bind((source, port))
        said.append(" ".join(sorted({answer(one, (at, PORT)) for _ in range(3)})))
        one.close()
    print(json.dumps(said))


def call(source, at):
    one = end(at)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    if ":" in at:
        index = struct.pack("=I", socket.if_nametoindex("eth0"))
        one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
    one.bind((source, 0))
    one.sendto(b"who", (at, PORT))
    said = []
    try:
        while True:
            said.append(one.recv(100).decode())
    except TimeoutError:
        print(*sorted(said))


def tell(at, *what):
    print(answer(end(at), (at, PORT), " ".join(what).encode()))


globals()[sys.argv[1]](*sys.argv[2:])
