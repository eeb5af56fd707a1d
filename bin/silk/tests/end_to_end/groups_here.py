"""What a machine's own programs hear of what they say to groups and to everyone, and by which interface it leaves.

groups_here.py hear FAMILY NAME INTERFACE [AT]    joins the group, and tells what it hears as NAME until it hears "end"
groups_here.py say FAMILY WORD [WISH=VALUE]…    says a word to the group from a socket that has the port too, and tells what it
hears itself. Wishes: at (its address), loop, link and from (by which interface), to (not to the group), connect.
"""
import socket
import struct
import sys

PORTS = {socket.AF_INET: 4400, socket.AF_INET6: 4401}
GROUP, GROUP6 = "239.1.2.44", "ff15::44"
INTERFACE = "eth0"


def opened(family, address=""):
    end = socket.socket(family, socket.SOCK_DGRAM)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    end.bind((address, PORTS[family]))
    return end


def join(end, family, interface):
    index = socket.if_nametoindex(interface)
    if family == socket.AF_INET:
        end.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, struct.pack("=4s4si", socket.inet_aton(GROUP), bytes(4), index))
    else:
        end.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, struct.pack("=16sI", socket.inet_pton(family, GROUP6), index))


def hear(family, name, interface, at=""):
    end = opened(family, at)
    join(end, family, interface)
    print("ready", flush=True)
    word = b""
    while word != b"end":
        word, peer = end.recvfrom(99)
        print(name, "hears", word.decode(), "from", peer[0].split("%")[0], flush=True)


def say(family, word, wishes):
    end = opened(family, wishes.pop("at", ""))
    join(end, family, INTERFACE)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    level = socket.IPPROTO_IP if family == socket.AF_INET else socket.IPPROTO_IPV6
    if "loop" in wishes:
        name = socket.IP_MULTICAST_LOOP if family == socket.AF_INET else socket.IPV6_MULTICAST_LOOP
        end.setsockopt(level, name, int(wishes["loop"]))
        print("loop", end.getsockopt(level, name))
    if "link" in wishes:
        index = socket.if_nametoindex(wishes["link"])
        if family == socket.AF_INET:
            end.setsockopt(level, socket.IP_MULTICAST_IF, struct.pack("=4s4si", bytes(4), bytes(4), index))
        else:
            end.setsockopt(level, socket.IPV6_MULTICAST_IF, index)
    if "from" in wishes:
        end.setsockopt(level, socket.IP_MULTICAST_IF, socket.inet_aton(wishes["from"]))
        print("leaves by", socket.inet_ntoa(end.getsockopt(level, socket.IP_MULTICAST_IF, 4)))
    to = wishes.get("to", GROUP if family == socket.AF_INET else GROUP6)
    if "connect" in wishes:
        end.connect((to, PORTS[family]))
        end.send(word.encode())
    else:
        end.sendto(word.encode(), (to, PORTS[family]))
    end.settimeout(1)
    try:
        got, peer = end.recvfrom(99)
        print("it hears", got.decode(), "from", peer[0].split("%")[0], "at", PORTS[family] == peer[1])
    except TimeoutError:
        print("it hears nothing")


what, which = sys.argv[1:3]
family = socket.AF_INET6 if which == "six" else socket.AF_INET
if what == "hear":
    hear(family, *sys.argv[3:])
else:
    say(family, sys.argv[3], dict(wish.split("=") for wish in sys.argv[4:]))
