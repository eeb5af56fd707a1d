"""Programs that set options before their sockets are connected, and peers that look what comes of it.

wishing.py connect ADDRESS PORT     with options set before
wishing.py listen PORT              with options set before, until one client has gone
wishing.py answer PORT              takes one connection, and tells of its SYN what it wished
wishing.py reach ADDRESS PORT       connects and tells what it was offered
wishing.py give-up ADDRESS PORT     connects to where nothing answers
wishing.py echo PORT                answers datagrams, and says what it knows of them
wishing.py ping ADDRESS PORT        asks such a server
"""
import errno
import select
import socket
import struct
import sys

TCP, IP = socket.IPPROTO_TCP, socket.IPPROTO_IP
IP_PKTINFO, IP_MTU_DISCOVER, IP_RECVTTL, IP_TTL, DO = 8, 10, 12, 2, 2


def wish(end, mss):
    end.setsockopt(TCP, socket.TCP_MAXSEG, mss)
    end.setsockopt(TCP, socket.TCP_CONGESTION, b"reno")
    end.setsockopt(TCP, socket.TCP_SYNCNT, 1)
    end.setsockopt(IP, socket.IP_TTL, 5)
    end.setsockopt(IP, socket.IP_TOS, 0x48)


def told(end):
    name = end.getsockopt(TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()
    return end.getsockopt(TCP, socket.TCP_MAXSEG), name, end.getsockopt(IP, socket.IP_TTL)


def connect(address, port):
    end = socket.socket()
    wish(end, 600)
    end.connect((address, port))
    print(*told(end), flush=True)
    end.sendall(b"x" * 5000)
    end.shutdown(socket.SHUT_WR)
    print(len(end.recv(10)), flush=True)


def answer(port):
    sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
    listener = socket.create_server(("0.0.0.0", port))
    print("listening", flush=True)
    end, _ = listener.accept()
    syn = None
    while data := end.recv(100_000):
        pass
    sniffer.setblocking(False)
    while select.select([sniffer], [], [], 0.2)[0]:
        packet, (_, _, kind, _, _) = sniffer.recvfrom(4096)
        tcp = packet[20:]
        if kind == socket.PACKET_OUTGOING or packet[9] != TCP or tcp[2:4] != struct.pack("!H", port):
            continue
        if tcp[13] & 2:
            syn = packet[8], packet[1], struct.unpack("!H", tcp[22:24])[0]
    print(*syn, flush=True)


def listen(port):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    wish(listener, 700)
    listener.bind(("0.0.0.0", port))
    listener.listen()
    print("listening", flush=True)
    end, _ = listener.accept()
    print(*told(end), flush=True)
    end.sendall(b"hello")
    end.recv(10)


def give_up(address, port):
    end = socket.socket()
    end.setsockopt(TCP, socket.TCP_SYNCNT, 1)
    try:
        end.connect((address, port))
    except OSError as error:
        print(errno.errorcode[error.errno], flush=True)


def echo(port):
    end = socket.socket(type=socket.SOCK_DGRAM)
    end.setsockopt(IP, IP_PKTINFO, 1)
    end.setsockopt(IP, IP_MTU_DISCOVER, DO)
    end.bind(("0.0.0.0", port))
    print("listening", flush=True)
    data, extra, _, peer = end.recvmsg(2000, 200)
    for level, kind, bytes in extra:
        if (level, kind) == (IP, IP_PKTINFO):
            interface, _, to = struct.unpack("i4s4s", bytes)
            print(socket.if_indextoname(interface), socket.inet_ntoa(to), flush=True)
    try:
        end.sendto(b"x" * 1473, peer)
    except OSError as error:
        print(errno.errorcode[error.errno], flush=True)
    end.setsockopt(IP, socket.IP_TTL, 3)
    end.setsockopt(IP, socket.IP_TOS, 0x48)
    # Its last word, which is to arrive all the same.
    end.sendto(b"x" * 1472, peer)


def ping(address, port):
    end = socket.socket(type=socket.SOCK_DGRAM)
    end.setsockopt(IP, IP_RECVTTL, 1)
    end.settimeout(10)
    end.sendto(b"hello", (address, port))
    data, extra, _, _ = end.recvmsg(2000, 200)
    print(len(data), *(struct.unpack("i", bytes)[0] for level, kind, bytes in extra if kind == IP_TTL), flush=True)


match sys.argv[1:]:
    case ["connect", address, port]:
        connect(address, int(port))
    case ["listen", port]:
        listen(int(port))
    case ["answer", port]:
        answer(int(port))
    case ["reach", address, port]:
        with socket.create_connection((address, int(port)), 10) as end:
            print(end.getsockopt(TCP, socket.TCP_MAXSEG), end.recv(10).decode(), flush=True)
    case ["give-up", address, port]:
        give_up(address, int(port))
    case ["echo", port]:
        echo(int(port))
    case ["ping", address, port]:
        ping(address, int(port))
