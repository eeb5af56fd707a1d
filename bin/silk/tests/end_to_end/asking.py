"""A server whose clients ask it about its own sockets, and a client that does.

asking.py serve PORT
asking.py ask ADDRESS PORT SOURCE COMMAND...
"""
import errno
import fcntl
import os
import select
import socket
import struct
import subprocess
import sys
import termios
import threading
import time

SOL_SILK, SILK_PRIORITY = 0x5117, 1
SO_MAX_PACING_RATE, IP_RECVERR, TCP_CC_INFO = 47, 11, 26
SIOCOUTQNSD = 0x894B


def policy():
    return os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK


def scheduling():
    return f"{policy()} {os.sched_getparam(0).sched_priority}"


def answer(connection, words):
    """What the server says to one command."""
    match words:
        case ["get"]:
            return connection.getsockopt(SOL_SILK, SILK_PRIORITY)
        case ["set", priority]:
            connection.setsockopt(SOL_SILK, SILK_PRIORITY, int(priority))
            return "ok"
        case ["scheduling"]:
            return scheduling()
        case ["makes"]:
            said = []
            thread = threading.Thread(target=lambda: said.append(scheduling()))
            thread.start()
            thread.join()
            out, into = os.pipe()
            if os.fork() == 0:
                os.write(into, scheduling().encode())
                os._exit(0)
            said.append(os.read(out, 100).decode())
            return ", ".join(said)
        case ["executes"]:
            connection.set_inheritable(True)
            tell = f"os.write({connection.fileno()}, f'{{os.sched_getscheduler(0) & 255}}\\n'.encode())"
            os.execv(sys.executable, [sys.executable, "-c", f"import os; {tell}"])
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
        case ["pace", rate]:
            connection.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, struct.pack("Q", int(rate)))
            info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 120)
            return "{} {}".format(*struct.unpack("2Q", info[104:120]))
        case ["ttl", hops]:
            connection.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, int(hops))
            return connection.getsockopt(socket.IPPROTO_IP, socket.IP_TTL)
        case ["fastopen"]:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 5)
            return "ok"
        case ["stuff", limit]:
            return stuff(connection, int(limit))
        case ["unheard", limit]:
            return unheard(connection, int(limit))
        case ["segment"]:
            return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
        case ["model"]:
            told = connection.getsockopt(socket.IPPROTO_TCP, TCP_CC_INFO, 64)
            return " ".join(map(str, struct.unpack("=Q3I", told))) if told else ""
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
    real-time works for a tenth of it. By its own time on a CPU: a hypervisor's does not count."""
    began = time.thread_time()
    if policy() == os.SCHED_OTHER:
        seconds /= 10
    while time.thread_time() - began < seconds:
        if seconds > 5 and policy() == os.SCHED_OTHER:
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


def stuff(connection, limit):
    """Writes while the peer does not read, with at most so much not sent, until there is no room. Says
    how much is not sent then, and whether more can be written."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, limit)
    connection.setblocking(False)
    for _ in range(20):
        try:
            while True:
                connection.send(b"x" * 10_000)
        except BlockingIOError:
            time.sleep(0.01)
    poll = select.poll()
    poll.register(connection, select.POLLOUT)
    writable = bool(poll.poll(0))
    unsent = struct.unpack("I", connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 148)[144:])[0]
    connection.setblocking(True)
    return f" {unsent} {writable}"


def unheard(connection, limit):
    """Sends to a peer that does not answer, and tells what it hears of that until it gives up."""
    connection.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, limit)
    time.sleep(0.5)
    connection.send(b"hello?")
    poll = select.poll()
    poll.register(connection, 0)
    for what in ["first", "then"]:
        events = poll.poll(20_000)
        error = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        hung_up = bool(events and events[0][1] & select.POLLHUP)
        print(f"{what}: {errno.errorcode.get(error, error)} {hung_up}", flush=True)
        if not hung_up:
            counts = (fcntl.ioctl(connection, request, b"\0" * 4) for request in (termios.TIOCOUTQ, SIOCOUTQNSD))
            print("not acknowledged, not sent:", *(struct.unpack("i", count)[0] for count in counts), flush=True)


def forsake(sniffer, address, port):
    """Drops what the server sends from now on, and lets a router tell it so: quotes a packet of it in
    an ICMP message that says that the host cannot be reached."""
    subprocess.run(["ip", "route", "add", "blackhole", f"{address}/32"], check=True)
    try:
        while True:
            frame = sniffer.recv(2048)
            packet = frame[14:]
            if packet[9] == socket.IPPROTO_TCP and packet[20:22] == struct.pack("!H", port) and b"hello?" in packet:
                break
        told = bytes([3, 1, 0, 0, 0, 0, 0, 0]) + packet[:28]
        told = told[:2] + checksum(told) + told[4:]
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(told), 0, 0, 64, 1, 0) + packet[16:20] + packet[12:16]
        head = head[:10] + checksum(head) + head[12:]
        sniffer.send(frame[6:12] + frame[:6] + frame[12:14] + head + told)
        time.sleep(8)
    finally:
        subprocess.run(["ip", "route", "delete", "blackhole", f"{address}/32"], check=True)


def checksum(data):
    """The Internet checksum (RFC 1071)."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xffff) + (total >> 16)
    total = (total & 0xffff) + (total >> 16)
    return struct.pack("!H", ~total & 0xffff)


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


def services(sniffer, port, at=1):
    """The service bits, or what else stands in a byte of IP's header, of every packet seen from the
    port since the last look."""
    seen = []
    while True:
        try:
            packet = sniffer.recv(2048)
        except BlockingIOError:
            return seen
        head = (packet[0] & 15) * 4
        if packet[9] == socket.IPPROTO_TCP and packet[head : head + 2] == struct.pack("!H", port):
            seen.append(packet[at])


def ask(address, port, source, commands):
    sniffer = None
    if "services" in commands or "hops" in commands:
        sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
        sniffer.setblocking(False)
    with socket.create_connection((address, port), 10, (source, 0)) as connection:
        if any(command.startswith("stuff") for command in commands):
            # What the client does not read is then soon the server's to keep.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32_768)
        lines = connection.makefile("rw")
        for command in commands:
            match command.split():
                case ["wait"]:
                    print("waiting", flush=True)
                    time.sleep(60)
                case ["services"]:
                    print(*services(sniffer, port)[-1:], flush=True)
                    continue
                case ["hops"]:
                    print(*services(sniffer, port, 8)[-1:], flush=True)
                    continue
                case ["unheard", _]:
                    sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
                    sniffer.bind(("eth0", 0x0800))
                    print(command, file=lines, flush=True)
                    forsake(sniffer, address, port)
                    return
                case ["long", size]:
                    command = "x" * int(size)
            print(command, file=lines, flush=True)
            if command.startswith("stuff"):
                time.sleep(1)
            said = lines.readline().strip()
            # Of what is long only the length, or the end, says anything.
            if command.startswith("fill"):
                said = len(said)
            elif command == "flood":
                said = said.split()[-1]
            elif command.startswith("stuff"):
                said = " ".join(said.split()[-2:])
            print(said, flush=True)


match sys.argv[1:]:
    case ["serve", port]:
        serve(int(port))
    case ["ask", address, port, source, *commands]:
        ask(address, int(port), source, commands)
