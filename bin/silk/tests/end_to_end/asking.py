"""A server whose clients ask it about its own sockets, and a client that does.

asking.py serve PORT
asking.py ask ADDRESS PORT SOURCE COMMAND...
"""
import errno
import fcntl
import os
import socket
import struct
import sys
import termios
import time

SOL_SILK, SILK_PRIORITY = 0x5117, 1


def answer(connection, words):
    """What the server says to one command."""
    match words:
        case ["get"]:
            return connection.getsockopt(SOL_SILK, SILK_PRIORITY)
        case ["set", priority]:
            connection.setsockopt(SOL_SILK, SILK_PRIORITY, int(priority))
            return "ok"
        case ["scheduling"]:
            return f"{os.sched_getscheduler(0)} {os.sched_getparam(0).sched_priority}"
        case ["work", seconds]:
            return work(float(seconds))
        case ["fill", size]:
            return "x" * int(size)
        case ["info"]:
            info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
            state, *_, options, _, _ = info[:8]
            words = struct.unpack("24I", info[8:])
            numbers = {"state": state, "options": options, "rto": words[0], "mss": words[2]}
            numbers |= {"unacked": words[4], "pmtu": words[13], "window": words[14]}
            numbers |= {"rtt": words[15], "rttvar": words[16], "cwnd": words[18]}
            return " ".join(f"{name}={number}" for name, number in numbers.items())
        case ["counts"]:
            info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 512)
            acked, received, out, into, unsent, least, data_in, data_out = struct.unpack("2Q6I", info[120:160])
            sent, again, *_, peers, ours = struct.unpack("2Q5I", info[200:236])
            numbers = {"length": len(info), "acked": acked, "received": received, "out": out, "in": into}
            numbers |= {"unsent": unsent, "least": least, "data_in": data_in, "data_out": data_out}
            numbers |= {"sent": sent, "again": again, "peers": peers, "ours": ours}
            numbers |= {"algorithm": len(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 64))}
            return " ".join(f"{name}={number}" for name, number in numbers.items())
        case ["segment"]:
            return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
        case ["congestion"]:
            return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()
        case ["congestion", name]:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
            return "ok"
        case ["service", tos]:
            connection.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, int(tos))
            return "ok"
        case ["receive", size]:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, int(size))
            return connection.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        case ["send", size]:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, int(size))
            return connection.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
        case ["flood"]:
            return flood(connection)
    return "what?"


def work(seconds):
    """Computes without sleeping until it has lost its real-time priority, at most so long. Who is not
    real-time works for a tenth of it."""
    began = time.monotonic()
    if os.sched_getscheduler(0) == os.SCHED_OTHER:
        seconds /= 10
    while time.monotonic() - began < seconds:
        if seconds > 5 and os.sched_getscheduler(0) == os.SCHED_OTHER:
            return "demoted"
    return "worked"


def flood(connection):
    """Sends until there is no room, and says how many bytes lie in the socket then."""
    most = 0
    for _ in range(20):
        connection.setblocking(False)
        try:
            while True:
                connection.send(b"x" * 100_000)
        except BlockingIOError:
            waiting = fcntl.ioctl(connection, termios.TIOCOUTQ, b"\0" * 4)
            most = max(most, *struct.unpack("i", waiting))
        connection.setblocking(True)
    return f" {most}"


def serve(port):
    listener = socket.create_server(("0.0.0.0", port))
    try:
        listener.setsockopt(SOL_SILK, SILK_PRIORITY, 0)
    except OSError as error:
        print("listener:", errno.errorcode[error.errno], flush=True)
    while True:
        connection, _ = listener.accept()
        with connection, connection.makefile("rw") as lines:
            for line in lines:
                try:
                    said = answer(connection, line.split())
                except OSError as error:
                    said = errno.errorcode[error.errno]
                print(said, file=lines, flush=True)


def services(sniffer, port):
    """The service bits of every packet seen from the port since the last look."""
    seen = []
    while True:
        try:
            packet = sniffer.recv(2048)
        except BlockingIOError:
            return seen
        head = (packet[0] & 15) * 4
        if packet[9] == socket.IPPROTO_TCP and packet[head : head + 2] == struct.pack("!H", port):
            seen.append(packet[1])


def ask(address, port, source, commands):
    sniffer = None
    if "services" in commands:
        sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
        sniffer.setblocking(False)
    with socket.create_connection((address, port), 10, (source, 0)) as connection:
        lines = connection.makefile("rw")
        for command in commands:
            match command.split():
                case ["wait"]:
                    print("waiting", flush=True)
                    time.sleep(60)
                case ["services"]:
                    print(*services(sniffer, port)[-1:], flush=True)
                    continue
                case ["long", size]:
                    command = "x" * int(size)
            print(command, file=lines, flush=True)
            said = lines.readline().strip()
            # Of what is long only the length, or the end, says anything.
            if command.startswith("fill"):
                said = len(said)
            elif command == "flood":
                said = said.split()[-1]
            print(said, flush=True)


match sys.argv[1:]:
    case ["serve", port]:
        serve(int(port))
    case ["ask", address, port, source, *commands]:
        ask(address, int(port), source, commands)
