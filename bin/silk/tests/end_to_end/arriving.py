"""Datagrams, and what a program is told of how they arrived.

arriving.py hear ADDRESS PORT NAME...     hears two datagrams, the second of its connected peer; says what
                                          those options tell of each
arriving.py send ADDRESS PORT             sends them, with nine hops and the service bits 0x48
arriving.py send-one ADDRESS PORT         says so with the first of them only
"""
import socket
import struct
import sys
import time

IP, IPV6 = socket.IPPROTO_IP, socket.IPPROTO_IPV6


def age(data):
    seconds, part = struct.unpack("ll", data)
    return "recent" if abs(time.time() - seconds) < 600 and part < 1_000_000_000 else f"{seconds}.{part}"


def target(data):
    family, port = struct.unpack("=H", data[:2]) + struct.unpack("!H", data[2:4])
    return socket.inet_ntop(family, data[4:8] if family == socket.AF_INET else data[8:24]) + f" {port}"


def info(data):
    if len(data) == 20:
        return socket.inet_ntop(socket.AF_INET6, data[:16])
    return socket.inet_ntoa(data[4:8]) + " " + socket.inet_ntoa(data[8:12])


def number(data):
    return int.from_bytes(data, sys.byteorder)


# Of each option: its level, its number, what is told under which number, and how it reads.
OPTIONS = {
    "time": (socket.SOL_SOCKET, 29, 29, age),
    "nanos": (socket.SOL_SOCKET, 35, 35, age),
    "target": (IP, 20, 20, target),
    "target6": (IPV6, 74, 74, target),
    "info": (IP, 8, 8, info),
    "info6": (IPV6, 49, 50, info),
    "ttl": (IP, 12, 2, number),
    "tos": (IP, 13, 1, number),
    "hops": (IPV6, 51, 52, number),
    "class": (IPV6, 66, 67, number),
}


def family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def hear(address, port, names):
    end = socket.socket(family(address), socket.SOCK_DGRAM)
    end.settimeout(20)
    for name in names:
        end.setsockopt(*OPTIONS[name][:2], 1)
    end.bind((address, port))
    print("listening", flush=True)
    for _ in range(2):
        data, told, _, peer = end.recvmsg(100, 500)
        told = {(level, kind): bytes for level, kind, bytes in told}
        rows = [OPTIONS[name] for name in names]
        print(*(reads(told.pop((level, kind))) for level, _, kind, reads in rows), len(told), flush=True)
        end.connect(peer)
        end.send(b"go on")


def send(address, port):
    end = socket.socket(family(address), socket.SOCK_DGRAM)
    end.settimeout(20)
    if ":" in address:
        end.setsockopt(IPV6, socket.IPV6_UNICAST_HOPS, 9)
        end.setsockopt(IPV6, socket.IPV6_TCLASS, 0x48)
        # Of the other IP.
        end.setsockopt(IP, socket.IP_TOS, 0x20)
    else:
        end.setsockopt(IP, socket.IP_TTL, 9)
        end.setsockopt(IP, socket.IP_TOS, 0x48)
    for _ in range(2):
        end.sendto(b"hello", (address, port))
        end.recv(100)


def send_one(address, port):
    end = socket.socket(family(address), socket.SOCK_DGRAM)
    end.settimeout(20)
    level, hops, service = (IPV6, 52, 67) if ":" in address else (IP, 2, 1)
    asked = [(level, hops, struct.pack("i", 9)), (level, service, struct.pack("i", 0x48))]
    for control in asked, []:
        end.sendmsg([b"hello"], control, 0, (address, port))
        end.recv(100)


match sys.argv[1:]:
    case ["hear", address, port, *names]:
        hear(address, int(port), names)
    case ["send", address, port]:
        send(address, int(port))
    case ["send-one", address, port]:
        send_one(address, int(port))
