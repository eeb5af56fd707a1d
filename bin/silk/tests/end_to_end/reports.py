"""What a host tells the link of its groups: reports.py watch ADDRESS, on the peer; reports.py join, on the
host. The watcher asks once for all groups as a router would, and says what it was told by ADDRESS (any
address of IPv6)."""
import socket
import struct
import sys
import time

GROUP, GROUP6 = socket.inet_aton("239.7.7.7"), socket.inet_pton(socket.AF_INET6, "ff15::77")
SORTS = {2: "hears", 3: "left", 4: "joined"}


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
    """The sort and the family of the report on one of our groups in a frame."""
    if frame[12:14] == b"\x08\x00" and frame[23] == 2 and frame[26:30] == address:
        message, size, group, name = frame[14 + (frame[14] & 15) * 4:], 8, GROUP, "four"
        if message[0] != 0x22 or checksum(message[: 8 + 8 * message[7]]) != 0 or frame[22] != 1:
            return None
    elif frame[12:14] == b"\x86\xdd" and frame[20] == 0 and frame[54] == 58 and frame[62] == 143:
        message, size, group, name = frame[62:], 20, GROUP6, "six"
    else:
        return None
    for n in range(message[7]):
        record = message[8 + size * n:]
        if record[4:4 + len(group)] == group:
            return SORTS.get(record[0]), name
    return None


def watch(address):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    s.bind(("eth0", 0))
    s.settimeout(0.2)
    print("watching", flush=True)
    seen, asked, end = set(), False, time.time() + 60
    while time.time() < end and len(seen) < 6:
        try:
            frame, whence = s.recvfrom(2000)
        except socket.timeout:
            frame, whence = b"", (0, 0, 4)
        said = told(frame, address) if whence[2] != 4 else None
        if said and said not in seen:
            seen.add(said)
            print(*said, flush=True)
        if not asked and {("joined", "four"), ("joined", "six")} <= seen:
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
    # A program that is ended leaves its groups.
    time.sleep(120)


watch(socket.inet_aton(sys.argv[2])) if sys.argv[1] == "watch" else join()
