"""A router of IPv6 that advertises itself, how far and how wide, a prefix, and a network that it leads to, each half second:
advertise.py INTERFACE PREFIX LIFETIME NETWORK, of 48 bits."""
import socket
import struct
import sys
import time

INTERFACE, PREFIX, LIFETIME, NETWORK = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]

s = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, socket.if_nametoindex(INTERFACE))
HOPS, MTU = 33, 1400
head = struct.pack("!BBHBBHII", 134, 0, 0, HOPS, 0, LIFETIME, 0, 0) + struct.pack("!BBHI", 5, 1, 0, MTU)
prefix = struct.pack("!BBBBIII", 3, 4, 64, 0xC0, 3600, 1800, 0) + socket.inet_pton(socket.AF_INET6, PREFIX)
route = struct.pack("!BBBBI", 24, 2, 48, 0, 60) + socket.inet_pton(socket.AF_INET6, NETWORK)[:8]
for _ in range(240):
    s.sendto(head + prefix + route, ("ff02::1", 0))
    print("advertised", flush=True)
    time.sleep(0.5)
