"""A server that listens and takes nothing, and a client that tells the service bits of what it hears.

code_points.py listen PORT FOUR SIX
code_points.py open ADDRESS PORT SERVICE INTERFACE
"""
import socket
import struct
import sys
import time

ETH_P_ALL = 3


def listen(port, four, six):
    """With these service bits over each IP, and probes of who says nothing for a second; another says all of it after it
    listens, at the next port."""
    keep(listening_at(port, four, six, False), listening_at(port + 1, four, six, True))


def keep(*listeners):
    print("ready", flush=True)
    time.sleep(100)


def listening_at(port, four, six, later):
    listener = socket.socket(socket.AF_INET6)
    listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    listener.bind(("::", port))
    if later:
        listener.listen()
    listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, six)
    listener.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, four)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1)
    if not later:
        listener.listen()
    return listener


def heard(wire, port):
    """The service bits of the next TCP packet from that port, and whether it opens a connection."""
    while True:
        frame, (_, _, kind, *_) = wire.recvfrom(2048)
        (ether,) = struct.unpack_from("!H", frame, 12)
        if kind == socket.PACKET_OUTGOING or ether not in (0x0800, 0x86DD):
            continue
        (first,) = struct.unpack_from("!H", frame, 14)
        service, at = (frame[15], 14 + 4 * (frame[14] & 15)) if ether == 0x0800 else (first >> 4 & 0xFF, 54)
        protocol = frame[23] if ether == 0x0800 else frame[20]
        if protocol == socket.IPPROTO_TCP and struct.unpack_from("!H", frame, at)[0] == port:
            return service, bool(frame[at + 13] & 2)


def connect(address, port, service, interface):
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    wire.bind((interface, 0))
    wire.settimeout(20)
    six = ":" in address
    end = socket.socket(socket.AF_INET6 if six else socket.AF_INET)
    if six:
        end.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, service)
    else:
        end.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, service)
    end.connect((address, port))
    for what in ("the answer", "a probe"):
        service, opens = heard(wire, port)
        assert opens == (what == "the answer")
        print(f"{what}: {service}", flush=True)
    print("open", flush=True)
    time.sleep(100)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["listen", port, four, six]:
            listen(int(port), int(four), int(six))
        case ["open", address, port, service, interface]:
            connect(address, int(port), int(service), interface)
