"""Serves, and asks: refusing.py serve COUNT | hold ADDRESS COUNT | ask ADDRESS SOURCE"""
import socket
import sys


def family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def ends(held):
    """How connections end: each way once."""
    ways = set()
    for one in held:
        try:
            ways.add("text" if one.recv(1) else "closed")
        except ConnectionResetError:
            ways.add("reset")
    print("all", *sorted(ways), flush=True)


def serve(count):
    """Takes so many connections and says how they end; answers datagrams then."""
    datagrams = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    datagrams.bind(("::", 7000))
    listener = socket.create_server(("::", 7000), family=socket.AF_INET6, dualstack_ipv6=True)
    print("ready", flush=True)
    taken = [listener.accept()[0] for _ in range(int(count))]
    for one in taken:
        one.sendall(b"w")
    ends(taken)
    while True:
        text, peer = datagrams.recvfrom(100)
        datagrams.sendto(text, peer)


def hold(address, count):
    """Has so many connections until they end."""
    held = [socket.create_connection((address, 7000)) for _ in range(int(count))]
    for one in held:
        one.recv(1)
    print("welcome", flush=True)
    ends(held)


def ask(address, source):
    """Whether a datagram is answered."""
    asking = socket.socket(family(address), socket.SOCK_DGRAM)
    asking.bind((source, 0))
    asking.settimeout(1)
    asking.sendto(b"anybody?", (address, 7000))
    try:
        print(asking.recv(100) == b"anybody?")
    except TimeoutError:
        print(False)


globals()[sys.argv[1]](*sys.argv[2:])
