"""What a host tells the link of its groups: reports.py watch ADDRESS, on the peer; reports.py join, on the
host. The watcher asks once for all groups as a router would, and says what it was told by ADDRESS (any
address of IPv6) of groups and of the sources that the host chose."""
import socket
import struct
import sys
import time

GROUP, GROUP6 = socket.inet_aton("239.7.7.7"), socket.inet_pton(socket.AF_INET6, "ff15::77")
SORTS = {1: "chose", 2: "hears", 3: "left", 4: "joined", 5: "allowed", 6: "blocked"}
# Groups of which the host chooses sources; it takes one back.
CHOSEN, CHOSEN6 = socket.inet_aton("232.7.7.8"), socket.inet_pton(socket.AF_INET6, "ff35::78")
SOURCES, SOURCE6 = ["10.0.0.1", "10.0.0.2"], "2001:db8::1"


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ask():
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_IGMP)
    raw.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, bytes([148, 4, 0, 0]))
    raw.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("10.99.0.2"))
    query = struct.pack("!BBH4sBBH", 0x11, 10, 0, bytes(4), 2, 125, 0)
    raw.sendto(query[:2] + struct.pack("!H", checksum(query)) + query[4:], ("224.0.0.1", 0))
    # Of IPv6 Linux's own interface is the router's.
    raw = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
    raw.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_HOPOPTS, bytes([0, 0, 5, 2, 0, 0, 1, 0]))
    raw.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 1)
    index = socket.if_nametoindex("eth0")
    query = struct.pack("!BBHHH16sBBH", 130, 0, 0, 1000, 0, bytes(16), 2, 125, 0)
    raw.sendto(query, ("ff02::1", 0, 0, index))


def told(frame, address):
    """The sorts, sources and families of the report on our groups in a frame."""
    if frame[12:14] == b"\x08\x00" and frame[23] == 2 and frame[26:30] == address:
        length = struct.unpack("!H", frame[16:18])[0]
        message, groups, name, family = frame[14 + (frame[14] & 15) * 4:14 + length], (GROUP, CHOSEN), "four", socket.AF_INET
        if message[0] != 0x22 or checksum(message) != 0 or frame[22] != 1:
            return
    elif frame[12:14] == b"\x86\xdd" and frame[20] == 0 and frame[54] == 58 and frame[62] == 143:
        message, groups, name, family = frame[62:], (GROUP6, CHOSEN6), "six", socket.AF_INET6
    else:
        return
    size, rest = len(groups[0]), message[8:]
    for _ in range(message[7]):
        count, group = struct.unpack("!H", rest[2:4])[0], rest[4:4 + size]
        sources = [rest[4 + size * n:4 + size * (n + 1)] for n in range(1, count + 1)]
        if group in groups:
            words = ",".join(sorted(socket.inet_ntop(family, source) for source in sources))
            yield f"{SORTS.get(rest[0])} {words}".strip(), name
        rest = rest[4 + size * (count + 1):]


def watch(address):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    s.bind(("eth0", 0))
    s.settimeout(0.2)
    print("watching", flush=True)
    seen, asked, end = set(), False, time.time() + 60
    while time.time() < end and len(seen) < 14:
        try:
            frame, whence = s.recvfrom(2000)
        except socket.timeout:
            frame, whence = b"", (0, 0, 4)
        for said in told(frame, address) if whence[2] != 4 else ():
            if said not in seen:
                seen.add(said)
                print(*said, flush=True)
        if not asked and {("blocked 10.0.0.1", "four"), ("allowed 2001:db8::1", "six")} <= seen:
            asked = True
            # Not to be taken for what is told again of joining.
            time.sleep(1.5)
            ask()


def join():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("", 4400))
    s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, GROUP + bytes(4))
    six = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    six.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    six.bind(("", 4401))
    six.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, GROUP6 + struct.pack("=I", socket.if_nametoindex("eth0")))
    index = struct.pack("=I4x", socket.if_nametoindex("eth0"))
    for source in SOURCES:
        s.setsockopt(socket.IPPROTO_IP, 39, CHOSEN + bytes(4) + socket.inet_aton(source))
        # Each change is told twice, before the next is told with it.
        time.sleep(2.5)
    storage = lambda address: struct.pack("=HHI16s104x", socket.AF_INET6, 0, 0, address)
    source = socket.inet_pton(socket.AF_INET6, SOURCE6)
    six.setsockopt(socket.IPPROTO_IPV6, 46, index + storage(CHOSEN6) + storage(source))
    s.setsockopt(socket.IPPROTO_IP, 40, CHOSEN + bytes(4) + socket.inet_aton(SOURCES[0]))
    # A program that is ended leaves its groups.
    time.sleep(120)


watch(socket.inet_aton(sys.argv[2])) if sys.argv[1] == "watch" else join()
