"""Groups and everyone: groups.py listen FOUR SIX | say WHERE PORT TEXT FROM | hear | executed DESCRIPTOR. The listener tells
what its calls answer and hears what others send to groups; FOUR and SIX are an address of each IP to send from."""
import errno
import socket
import struct
import subprocess
import sys
import time

GROUP, OTHER, EARLY, GROUP6 = "239.1.2.3", "239.1.2.4", "239.1.2.5", "ff15::99"
# One for each socket: with silk a port is free a moment after its socket was closed.
PORT, PORT_EARLY, PORT6, PORT_SOURCES, PORT_CHOSEN, PORT6_SOURCES, PORT_ALONE, PORT6_ALONE, PORT_BOUND, PORT_BLOCKED = range(4300, 4310)
PORT_EXECUTED = 4310
CHOSEN, CHOSEN_EARLY, CHOSEN6 = "232.1.2.6", "232.1.2.7", "ff35::98"
TWO, THREE, TWO6, THREE6 = "10.99.0.2", "10.99.0.3", "fd99::2", "fd99::3"
# Of <linux/in.h>.
UNBLOCK_SOURCE, BLOCK_SOURCE, ADD_SOURCE, DROP_SOURCE = range(37, 41)
JOIN, BLOCK, UNBLOCK, LEAVE, ADD, DROP_ONE = range(42, 48)


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
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(EARLY) + socket.inet_aton(address))
    sys.stdout.flush()
    subprocess.run([sys.executable, "groups.py", "executed", str(s.fileno())], pass_fds=[s.fileno()], check=True)
    s.close()


def executed(fd):
    """Another program binds the socket that this one has joined with."""
    s = socket.socket(fileno=fd)
    s.bind(("", PORT_EXECUTED))
    ready("executed")
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


def storage(address):
    if ":" in address:
        return struct.pack("=HHI16s104x", socket.AF_INET6, 0, 0, socket.inet_pton(socket.AF_INET6, address))
    return struct.pack("=HH4s120x", socket.AF_INET, 0, socket.inet_aton(address))


def request(group, source=None):
    """A struct group_req or group_source_req."""
    index = struct.pack("=I4x", socket.if_nametoindex("eth0"))
    return index + storage(group) + (storage(source) if source else b"")


def sources(address):
    """A socket that hears some sources of a group, or all but some."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("", PORT_SOURCES))
    put = lambda option, value: attempt(s.setsockopt, socket.IPPROTO_IP, option, value)
    old = lambda source, group=CHOSEN: b"".join(map(socket.inet_aton, (group, address, source)))
    print("not in it:", put(DROP_SOURCE, old(TWO)), put(BLOCK_SOURCE, old(TWO)), put(UNBLOCK_SOURCE, old(TWO)))
    print("faults:", put(ADD_SOURCE, old(TWO)[:11]), put(ADD_SOURCE, old(TWO, TWO)), put(ADD, request(CHOSEN, TWO)[:200]))
    print("chosen:", put(ADD_SOURCE, old(TWO)), put(ADD_SOURCE, old(TWO)), put(BLOCK_SOURCE, old(THREE)))
    ready("two-alone")
    print(hear(s))
    ready("three-not")
    print(hear(s))
    print("three:", put(ADD, request(CHOSEN, THREE)), put(ADD, request(CHOSEN, THREE)))
    ready("three-too")
    print(hear(s))
    print("two no more:", put(DROP_SOURCE, old(TWO)), put(DROP_ONE, request(CHOSEN, TWO)))
    ready("two-no-more")
    print(hear(s))
    ready("three-still")
    print(hear(s))
    print("left:", put(DROP_ONE, request(CHOSEN, THREE)), put(DROP_ONE, request(CHOSEN, THREE)))
    print("all but two:", put(JOIN, request(CHOSEN)), put(BLOCK, request(CHOSEN, TWO)), put(BLOCK, request(CHOSEN, TWO)))
    print("of the other sort:", put(ADD, request(CHOSEN, THREE)))
    ready("all-but-two")
    print(hear(s))
    ready("three-of-all")
    print(hear(s))
    print("two again:", put(UNBLOCK_SOURCE, old(TWO)), put(UNBLOCK, request(CHOSEN, TWO)))
    ready("two-again")
    print(hear(s))
    print("most:", [put(BLOCK, request(CHOSEN, f"192.0.2.{n}")) for n in range(1, 12)])
    print("left:", put(LEAVE, request(CHOSEN)), put(LEAVE, request(CHOSEN)))
    s.close()
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IP, ADD_SOURCE, old(TWO, CHOSEN_EARLY))
    s.bind(("", PORT_CHOSEN))
    ready("two-early")
    print(hear(s))
    ready("three-early")
    print(hear(s))
    s.close()
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    print("early:", [put(JOIN, request(f"239.1.3.{n}")) for n in range(6)], put(BLOCK, request("239.1.3.20", TWO)))
    print("of the last:", put(BLOCK, request("239.1.3.5", TWO)), put(BLOCK, request("239.1.3.5", "192.0.2.1")),
          put(UNBLOCK, request("239.1.3.5", "192.0.2.1")), put(LEAVE, request("239.1.3.1")))
    s.bind(("", PORT_BLOCKED))
    ready("two-blocked-early")
    print(hear(s))
    ready("three-of-the-last")
    print(hear(s))
    s.close()


def sources_six(address):
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    s.bind(("", PORT6_SOURCES))
    put = lambda option, *what: attempt(s.setsockopt, socket.IPPROTO_IPV6, option, request(CHOSEN6, *what))
    print("six chosen:", put(DROP_ONE, TWO6), put(ADD, TWO6), put(ADD, TWO6), put(BLOCK, THREE6))
    ready("six-two")
    print(hear(s))
    ready("six-three")
    print(hear(s))
    print("six left:", put(DROP_ONE, TWO6), put(DROP_ONE, TWO6))
    print("six all but two:", put(JOIN), put(BLOCK, TWO6), put(BLOCK, TWO6), put(ADD, THREE6))
    ready("six-all-but-two")
    print(hear(s))
    ready("six-three-of-all")
    print(hear(s))
    print("six two again:", put(UNBLOCK, TWO6), put(UNBLOCK, TWO6))
    ready("six-two-again")
    print(hear(s))
    print("six left:", put(LEAVE), put(LEAVE))
    s.close()


def alone(address):
    """A group that another socket has joined is heard, unless the socket hears its own alone."""
    other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    other.bind(("", 0))
    mreq = lambda group: socket.inet_aton(group) + socket.inet_aton(address)
    other.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, mreq("239.1.2.8"))
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("", PORT_ALONE))
    s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, mreq("239.1.2.9"))
    ready("others")
    print(hear(s))
    told = s.getsockopt(socket.IPPROTO_IP, 49)
    print("alone:", told, attempt(s.setsockopt, socket.IPPROTO_IP, 49, 0), s.getsockopt(socket.IPPROTO_IP, 49))
    ready("others-not")
    print(hear(s))
    ready("own")
    print(hear(s))
    index = struct.pack("=I", socket.if_nametoindex("eth0"))
    six = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    six.bind(("::", 0))
    six.setsockopt(socket.IPPROTO_IPV6, 20, socket.inet_pton(socket.AF_INET6, "ff15::97") + index)
    t = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    t.bind(("::", PORT6_ALONE))
    ready("six-others")
    print(hear(t))
    told = t.getsockopt(socket.IPPROTO_IPV6, 29)
    print("six alone:", told, attempt(t.setsockopt, socket.IPPROTO_IPV6, 29, 0), t.getsockopt(socket.IPPROTO_IPV6, 29))
    ready("six-others-not")
    print(hear(t))


def at(where, *options):
    """A socket that is bound to an address, a group's or everyone's, and what it says it is bound to."""
    s = socket.socket(socket.AF_INET6 if ":" in where else socket.AF_INET, socket.SOCK_DGRAM)
    for option in options:
        s.setsockopt(socket.SOL_SOCKET, option, 1)
    print("bound:", attempt(s.bind, (where, PORT_BOUND)), s.getsockname()[:2])
    return s


def bound(address):
    """Sockets that are bound to a group, or to everyone's address, hear what is sent there alone."""
    mreq = lambda group: socket.inet_aton(group) + socket.inet_aton(address)
    join = lambda s, group: attempt(s.setsockopt, socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, mreq(group))
    leave = lambda s, group: attempt(s.setsockopt, socket.IPPROTO_IP, socket.IP_DROP_MEMBERSHIP, mreq(group))
    group, any = at("239.1.2.10", socket.SO_REUSEADDR), at("0.0.0.0", socket.SO_REUSEADDR)
    print("alone:", attempt(socket.socket(socket.AF_INET, socket.SOCK_DGRAM).bind, ("239.1.2.10", PORT_BOUND)))
    ready("nobody-joined")
    print(hear(group), hear(any))
    print("joined:", join(any, "239.1.2.10"), join(group, "239.1.2.11"), join(any, "239.1.2.10"))
    for step in ("to-both", "to-another", "to-one"):
        ready(step)
        print(hear(group), hear(any))
    any.close()
    print("left:", leave(group, "239.1.2.11"), leave(group, "239.1.2.10"), join(group, "239.1.2.10"))
    for step in ("to-it-alone", "not-to-another", "not-to-one"):
        ready(step)
        print(hear(group))
    print("left:", leave(group, "239.1.2.10"))
    ready("nobody-any-more")
    print(hear(group))
    print("again:", join(group, "239.1.2.11"), join(group, "239.1.2.10"))
    ready("it-again")
    print(hear(group))
    print("connected:", attempt(group.connect, (TWO, 4999)), group.getsockname(), group.getpeername())
    for step in ("of-the-peer", "of-another-port"):
        ready(step)
        print(hear(group))
    group.close()
    for where, steps in (("10.99.0.255", ("its-network", "not-everyone")), ("255.255.255.255", ("all", "not-the-network"))):
        s = at(where)
        for step in steps:
            ready(step)
            print(hear(s))
        s.close()
    s = at("ff15::96")
    mreq = socket.inet_pton(socket.AF_INET6, "ff15::96") + struct.pack("=I", socket.if_nametoindex("eth0"))
    print("six:", attempt(s.setsockopt, socket.IPPROTO_IPV6, 20, mreq))
    for step in ("six-bound", "not-to-one-six"):
        ready(step)
        print(hear(s))
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
    s = at("239.1.2.10")
    print("from a group's:", attempt(s.sendto, b"to one", (TWO, PORT)))
    s.close()


if sys.argv[1] == "say":
    where, port, what, source = sys.argv[2:6]
    source, _, source_port = source.partition("/")
    s = socket.socket(socket.AF_INET6 if ":" in where else socket.AF_INET, socket.SOCK_DGRAM)
    if ":" in where:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, socket.if_nametoindex("eth0"))
    else:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("10.99.0.2"))
    s.bind((source, int(source_port or 0)))
    s.sendto(what.encode(), (where, int(port)))
elif sys.argv[1] == "hear":
    # What comes for a group and for everyone, on the peer.
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("", PORT))
    s.setsockopt(socket.IPPROTO_IP, 12, 1)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(GROUP) + socket.inet_aton("10.99.0.2"))
    ready("word")
    s.settimeout(20)
    for _ in range(3):
        data, control, _, sender = s.recvmsg(100, 64)
        print(data.decode(), "from", sender[0], "over", struct.unpack("=i", control[0][2])[0], "hops", flush=True)
elif sys.argv[1] == "executed":
    executed(int(sys.argv[2]))
else:
    four(sys.argv[2])
    early(sys.argv[2])
    six(sys.argv[3])
    sources(sys.argv[2])
    sources_six(sys.argv[3])
    alone(sys.argv[2])
    bound(sys.argv[2])
    permission(sys.argv[2])
