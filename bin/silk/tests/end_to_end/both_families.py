"""Sockets of IPv4 and IPv6: servers that say who asked, clients, and what a program can see of a socket."""
import os, socket, sys, threading


def name(address):
    return address[0]


def family(at):
    return socket.AF_INET6 if ":" in at else socket.AF_INET


def listener(kind, at, port, only=None, shares=False):
    made = socket.socket(family(at), kind)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT if shares else socket.SO_REUSEADDR, 1)
    if only is not None:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only)
    made.bind((at, port))
    if kind == socket.SOCK_STREAM:
        made.listen()
    return made


def ready():
    print("ready", flush=True)


def datagrams(at, port):
    server = listener(socket.SOCK_DGRAM, at, int(port), 0 if ":" in at else None)
    ready()
    while True:
        data, peer = server.recvfrom(2000)
        server.sendto(name(peer).encode() + b" " + data, peer)


def send(at, port):
    client = socket.socket(family(at), socket.SOCK_DGRAM)
    client.settimeout(10)
    client.sendto(b"hello", (at, int(port)))
    data, peer = client.recvfrom(2000)
    assert name(peer) == at and peer[1] == int(port), peer
    print(data.decode())


def answer(server, word):
    while True:
        connection, _ = server.accept()
        connection.sendall(word)
        connection.close()


def apart(port):
    for at, only, word in [("::", 1, b"six"), ("0.0.0.0", None, b"four")]:
        server = listener(socket.SOCK_STREAM, at, int(port), only)
        threading.Thread(target=answer, args=(server, word), daemon=True).start()
    ready()
    threading.Event().wait()


def beside(name, port):
    """A server of streams and datagrams that shares its port: at both IPs, or at one of them alone."""
    at, only = {"both": ("::", 0), "four": ("0.0.0.0", None), "six": ("::", 1)}[name]
    streams, datagrams = [
        listener(kind, at, int(port), only, True) for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM)
    ]
    threading.Thread(target=answer, args=(streams, name.encode()), daemon=True).start()
    ready()
    while True:
        _, peer = datagrams.recvfrom(100)
        datagrams.sendto(name.encode(), peer)


def word(kind, at, port):
    """Who answers there."""
    with socket.socket(family(at), kind) as client:
        client.settimeout(5)
        try:
            client.connect((at, int(port)))
            if kind == socket.SOCK_DGRAM:
                client.send(b"who")
            return client.recv(100).decode() or "nobody"
        except (ConnectionError, TimeoutError):
            return "nobody"


def who(at, port):
    """Who answers forty streams, and who forty datagrams."""
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        print(*sorted({word(kind, at, port) for _ in range(40)}))


def ask(at, port):
    with socket.create_connection((at, int(port)), 10) as client:
        print(client.recv(100).decode())


def hold(port):
    server, held = listener(socket.SOCK_STREAM, "::", int(port), 0), []
    ready()
    while True:
        held.append(server.accept())


def wait(at, port, source):
    client = socket.create_connection((at, int(port)), 10, (source, 0))
    print("waiting", flush=True)
    threading.Event().wait()
    client.close()


def look(at):
    """What is seen of sockets bound in several ways; ports are left out."""
    def show(what, value):
        print(what, value)

    for bound, only in [("::", 0), ("::", 1), (at, 0), ("0.0.0.0", None)]:
        for kind in [socket.SOCK_STREAM, socket.SOCK_DGRAM]:
            made = listener(kind, bound, 0, only)
            there = made.getsockname()
            show("bound", (there[0], there[1] > 0, there[2:]))
            show("family", made.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN))
            if only is not None:
                show("only", made.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY))
                made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, 0xb8)
                made.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 0x20)
                show("class", made.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS))
                show("service", made.getsockopt(socket.IPPROTO_IP, socket.IP_TOS))
            again = socket.socket(family(bound), kind)
            try:
                again.bind(there[:2])
                show("again", "bound")
            except OSError as error:
                show("again", os.strerror(error.errno))
            again.close()
            made.close()


globals()[sys.argv[1]](*sys.argv[2:])
