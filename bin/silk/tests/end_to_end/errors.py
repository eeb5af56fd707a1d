"""What a datagram socket hears of the network: errors.py PEER [BEYOND], addresses of either IP. PEER is on
the link and is the router to BEYOND, whose link is narrower. Without BEYOND it is this machine, to which sockets
that have a port of their own speak. It says the same over Linux's own stack and over silk."""
import errno
import select
import socket
import struct
import sys
import time

peer, beyond = sys.argv[1], (*sys.argv[2:], None)[0]
SIX = ":" in peer
FAMILY = socket.AF_INET6 if SIX else socket.AF_INET
LEVEL = socket.IPPROTO_IPV6 if SIX else socket.IPPROTO_IP
RECVERR, DISCOVER, MTU, HOPS = (25, 23, 24, 16) if SIX else (11, 10, 14, 2)
DONT, WANT, DO, PROBE = 0, 1, 2, 3


def name(number):
    return errno.errorcode.get(number, str(number))


def make(asks, connected=None):
    s = socket.socket(FAMILY, socket.SOCK_DGRAM)
    s.setblocking(False)
    s.setsockopt(LEVEL, RECVERR, asks)
    if not connected or not beyond:
        s.bind(("", 0))
    if connected:
        s.connect(connected)
    return s


def queued(s):
    """The next error of the queue."""
    try:
        data, told, flags, to = s.recvmsg(2000, 512, socket.MSG_ERRQUEUE)
    except BlockingIOError:
        return "nothing"
    words = [f"data {min(len(data), 100)} {data[:5]}", f"flags {flags & socket.MSG_ERRQUEUE != 0}", f"to {to[:2]}"]
    for level, kind, value in told:
        number, origin, sort, code, _, info, _ = struct.unpack("=IBBBBII", value[:16])
        family = struct.unpack("=H", value[16:18])[0]
        by = ""
        if family:
            by = socket.inet_ntop(family, value[24:40] if SIX else value[20:24])
        words.append(f"({level}, {kind}) {name(number)} {origin} {sort}/{code} {info} by {by}")
    return " ".join(words)


def polled(s):
    p = select.poll()
    p.register(s, 0)
    return [event for _, event in p.poll(3000)]


def pending(s):
    return name(s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)) if s else ""


def attempt(call, *arguments):
    try:
        return call(*arguments)
    except OSError as error:
        return name(error.errno)


# Nobody listens there: a connected socket hears of it at the next call, once.
s = make(0, (peer, 4001))
s.send(b"hello")
print("connected:", polled(s), attempt(s.recv, 10), attempt(s.recv, 10), queued(s))

# One that asks finds it in the queue.
s = make(1, (peer, 4001))
s.send(b"hello")
print("asking:", polled(s), queued(s), pending(s), queued(s))
s.send(b"again")
print("asking:", polled(s), pending(s), polled(s), queued(s))

# One that speaks with anybody hears only if it asks.
s = make(0)
s.sendto(b"hello", (peer, 4001))
time.sleep(0.3)
print("anybody:", attempt(s.recv, 10), queued(s))
s = make(1)
s.sendto(b"first", (peer, 4001))
print("anybody, asking:", polled(s), end=" ")
s.setsockopt(LEVEL, RECVERR, 1)
print(queued(s), pending(s))
s.sendto(b"one", (peer, 4002))
polled(s)
print("anybody, asking:", attempt(s.recv, 10), queued(s))

if not beyond:
    sys.exit()

# As far as a hop goes (traceroute).
s = make(1)
s.setsockopt(LEVEL, HOPS, 1)
s.sendto(b"probe", (beyond, 33434))
print("hops:", polled(s), queued(s), s.getsockopt(LEVEL, HOPS))

# Datagrams that are too large for the way (tracepath).
s = make(1, (beyond, 4003))
s.setsockopt(LEVEL, DISCOVER, DO)
print("narrow:", s.getsockopt(LEVEL, MTU), attempt(s.send, bytes(1600)), queued(s), queued(s))
attempt(s.send, bytes(1400))
print("narrow:", polled(s), queued(s), pending(s), s.getsockopt(LEVEL, MTU))
print("narrow:", attempt(s.send, bytes(1400)), queued(s))
s.setsockopt(LEVEL, DISCOVER, PROBE)
print("narrow:", attempt(s.send, bytes(1400)), polled(s), queued(s))
s = make(0, (beyond[:-1] + "6", 4004))
s.send(bytes(3000))
# Over IPv6 nobody but us cuts up what is cut up already.
for _ in range(30 if SIX else 3):
    if s.getsockopt(LEVEL, MTU) < 1500:
        break
    time.sleep(0.1)
print("pieces:", s.getsockopt(LEVEL, MTU))
if not SIX:
    # Narrower than packets are made: they are cut up on the way, and nobody says again that they were too large.
    s = make(1, ("10.96.0.5", 4005))
    s.send(bytes(400))
    print("strait:", polled(s), queued(s), s.getsockopt(LEVEL, MTU))
    attempt(s.recv, 10)
    s.send(bytes(400))
    time.sleep(0.5)
    print("strait:", queued(s))
s = make(1)
print("unknown:", attempt(s.getsockopt, LEVEL, MTU))
