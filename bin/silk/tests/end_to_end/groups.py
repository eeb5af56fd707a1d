"""Groups and everyone: groups.py listen FOUR SIX | say WHERE PORT TEXT | hear. The listener tells what its calls
answer and hears what others send to groups; FOUR and SIX are an address of each IP to send from."""
import errno
import socket
import struct
import sys
import time

GROUP, OTHER, EARLY, GROUP6 = "239.1.2.3", "239.1.2.4", "239.1.2.5", "ff15::99"
# One for each socket: with silk a port is free a moment after its socket was closed.
PORT, PORT_EARLY, PORT6 = 4300, 4301, 4302


def attempt(call, *arguments):
    try:
        return call(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]


def hear(s, limit=2):
    s.settimeout(limit)
    try:
        data, sender = s.recvfrom(100)
        return f"{data.decode()} from {sender[0]}"
    except socket.timeout:
        return "nothing"


def ready(step):
    """Whoever runs this is to send something now."""
    print("ready for", step, flush=True)


def four(address):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("", PORT))
    ip = socket.IPPROTO_IP
    get = lambda option: s.getsockopt(ip, option)
    put = lambda option, value: attempt(s.setsockopt, ip, option, value)
    print("usual:", get(socket.IP_MULTICAST_TTL), get(socket.IP_MULTICAST_LOOP))
    print("set:", [put(socket.IP_MULTICAST_TTL, n) for n in (-2, 256, 5)], get(socket.IP_MULTICAST_TTL), end=" ")
    print(put(socket.IP_MULTICAST_LOOP, 0), get(socket.IP_MULTICAST_LOOP), put(socket.IP_MULTICAST_LOOP, 1))
    mreq = lambda group, at="0.0.0.0": socket.inet_aton(group) + socket.inet_aton(at)
    add, drop = socket.IP_ADD_MEMBERSHIP, socket.IP_DROP_MEMBERSHIP
    print("no group:", put(add, mreq(address)), put(drop, mreq(GROUP)), put(add, b"1234567"))
    print("joined:", put(add, mreq(GROUP, address)), put(add, mreq(GROUP, address)))
    ready("group")
    print(hear(s))
    ready("other")
    print(hear(s))
    ready("everyone")
    print(hear(s))
    ready("network")
    print(hear(s))
    print("left:", put(drop, mreq(GROUP, address)), put(drop, mreq(GROUP, address)))
    ready("group-again")
    print(hear(s))
    index = socket.if_nametoindex("eth0")
    sockaddr = struct.pack("=HH4s120x", socket.AF_INET, 0, socket.inet_aton(OTHER))
    print("by number:", put(42, struct.pack("=I4x", index) + sockaddr))
    ready("other-again")
    print(hear(s))
    s.close()


def early(address):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(EARLY) + socket.inet_aton(address))
    s.bind(("", PORT_EARLY))
    ready("early")
    print(hear(s))
    s.close()


def six(address):
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    s.bind(("", PORT6))
    index = socket.if_nametoindex("eth0")
    mreq = socket.inet_pton(socket.AF_INET6, GROUP6) + struct.pack("=I", index)
    put = lambda option, value: attempt(s.setsockopt, socket.IPPROTO_IPV6, option, value)
    print("six:", s.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS), put(20, mreq), put(20, mreq))
    ready("six")
    print(hear(s))
    print("six left:", put(21, mreq), put(21, mreq))
    s.close()


def permission(address):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((address, 0))
    for to in ("255.255.255.255", "10.99.0.255"):
        print("may not:", attempt(s.sendto, b"x", (to, 9)), attempt(s.connect, (to, 9)))
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    ready("word")
    time.sleep(1)
    print("may:", attempt(s.sendto, b"to everyone", ("10.99.0.255", PORT)))
    print("to a group:", attempt(s.sendto, b"to a group", (GROUP, PORT)))
    s.close()


if sys.argv[1] == "say":
    where, port, what = sys.argv[2:5]
    s = socket.socket(socket.AF_INET6 if ":" in where else socket.AF_INET, socket.SOCK_DGRAM)
    if ":" in where:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, socket.if_nametoindex("eth0"))
    else:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("10.99.0.2"))
        s.bind(("10.99.0.2", 0))
    s.sendto(what.encode(), (where, int(port)))
elif sys.argv[1] == "hear":
    # What comes for a group and for everyone, on the peer.
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("", PORT))
    s.setsockopt(socket.IPPROTO_IP, 12, 1)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(GROUP) + socket.inet_aton("10.99.0.2"))
    ready("word")
    s.settimeout(20)
    for _ in range(2):
        data, control, _, sender = s.recvmsg(100, 64)
        print(data.decode(), "from", sender[0], "over", struct.unpack("=i", control[0][2])[0], "hops", flush=True)
else:
    four(sys.argv[2])
    early(sys.argv[2])
    six(sys.argv[3])
    permission(sys.argv[2])
