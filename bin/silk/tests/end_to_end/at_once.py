"""Peers that come the moment a port is there: at_once.py serve KIND ROUNDS, at_once.py visit KIND SERVER SOURCE...
KIND is listen, bind or connect (the latter two of datagram sockets). The two speak by the pipe `ports`: the server
writes each new port there, and it goes on when a peer from each source was served."""
import socket
import sys

SOURCES = 2


def listening():
    s = socket.socket()
    s.bind(("0.0.0.0", 0))
    s.listen(8)
    return s


def bound():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("0.0.0.0", 0))
    return s


def connected(peer):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect(peer)
    return s


def serve(kind, rounds):
    with open("ports", "w", buffering=1) as ports, open("peers") as peers:
        known = [(address, int(port)) for address, port in (peers.readline().split() for _ in range(SOURCES))]
        for n in range(rounds):
            if kind == "connect":
                sockets = [connected(known[n % SOURCES])]
            else:
                sockets = [listening() if kind == "listen" else bound()]
            ports.write(f"{sockets[0].getsockname()[1]}\n")
            hear(kind, sockets[0])
        ports.write("0\n")
    print(f"{rounds} rounds", flush=True)


def hear(kind, s):
    s.settimeout(30)
    if kind == "listen":
        for _ in range(SOURCES):
            connection, _ = s.accept()
            connection.sendall(b"here")
            connection.close()
    else:
        heard = {s.recvfrom(16)[1][0] for _ in range(1 if kind == "connect" else SOURCES)}
        assert len(heard) == (1 if kind == "connect" else SOURCES), heard
    s.close()


def visit(kind, server, sources):
    own = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in sources]
    for s, source in zip(own, sources):
        s.bind((source, 0))
    with open("ports") as ports, open("peers", "w", buffering=1) as peers:
        for s in own:
            peers.write("%s %d\n" % s.getsockname())
        n = 0
        while port := int(ports.readline()):
            if kind == "listen":
                connections = [begun(source, (server, port)) for source in sources]
                for connection in connections:
                    assert served(connection) == b"here"
            elif kind == "bind":
                for s in own:
                    s.sendto(b"hello", (server, port))
            else:
                own[n % SOURCES].sendto(b"hello", (server, port))
            n += 1
    print(f"{n} visits", flush=True)


def begun(source, server):
    """A connection that does not wait for the one before it."""
    s = socket.socket()
    s.bind((source, 0))
    s.setblocking(False)
    s.connect_ex(server)
    return s


def served(connection):
    connection.settimeout(30)
    return connection.recv(16)


if sys.argv[1] == "serve":
    serve(sys.argv[2], int(sys.argv[3]))
else:
    visit(sys.argv[2], sys.argv[3], sys.argv[4:])
