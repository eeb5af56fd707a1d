"""The other end of the behavioural suite, over Linux's own stack: peer.py SOCKET. It runs what it is told,
one line of JSON after the other over a Unix socket: `{"do": statements}` or `{"tell": expression}`."""
import ctypes
import json
import os
import random
import select
import socket
import struct
import sys
import time


def reset(end):
    """Closes a connection by a reset."""
    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    end.close()


def deafen(end):
    """Whatever comes to a connection from now on is dropped, and not acknowledged (`SO_ATTACH_FILTER`: nothing passes)."""
    rule = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0))
    end.setsockopt(socket.SOL_SOCKET, 26, struct.pack("HP", 1, ctypes.addressof(rule)))


def taken(listener):
    """The next connection of a listener."""
    return listener.accept()[0]


def all_of(end, octets):
    """So many octets, or fewer before the end of the stream."""
    got = b""
    while len(got) < octets and (more := end.recv(octets - len(got))):
        got += more
    return got


def fill(end):
    """Writes until nobody has taken anything for a while: the other end has closed its window."""
    end.settimeout(0.3)
    try:
        while True:
            end.send(bytes(1 << 12))
    except TimeoutError:
        end.settimeout(None)


def answers_late(end, times):
    """Answers each octet with another, now sooner and now later."""
    chance = random.Random(2)
    for _ in range(times):
        if not end.recv(1):
            return
        until = time.perf_counter() + chance.uniform(0, 0.0001)
        while time.perf_counter() < until:
            pass
        end.send(b"!")


def wire():
    """All packets that this machine hears."""
    end = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
    end.settimeout(5)
    return end


def header_of(end, port):
    """The service bits, the hops and whether routers are not to cut it up, of the next datagram to that port."""
    while True:
        packet, (_, kind, *_) = end.recvfrom(2048)
        if kind == 0x0800:
            told, to = (packet[1], packet[8], bool(packet[6] & 0x40)), packet[22:24]
        else:
            told, to = (int.from_bytes(packet[:2]) >> 4 & 255, packet[7], None), packet[42:44]
        if kind in (0x0800, 0x86DD) and int.from_bytes(to) == port:
            return told


def outcome(call, *arguments):
    """What a call answers, or the name of its error."""
    try:
        answer = call(*arguments)
        return "socket" if isinstance(answer, socket.socket) else answer
    except OSError as error:
        return type(error).__name__ if error.errno is None else os.strerror(error.errno)


def serve(path):
    control = socket.socket(socket.AF_UNIX)
    control.bind(path)
    control.listen()
    print("listening", flush=True)
    end, _ = control.accept()
    end.settimeout(None)
    known = None
    for line in end.makefile():
        told = json.loads(line)
        if "case" in told:
            # Sockets of the case before are closed with its names.
            known = dict(globals())
            known["address"], known["family"] = told["address"], getattr(socket, told["family"])
            answer = None
        elif "do" in told:
            # What it cannot do shows in what the other end hears.
            answer = outcome(exec, told["do"], known)
        else:
            answer = outcome(eval, told["tell"], known)
        end.sendall(json.dumps(repr(answer)).encode() + b"\n")


socket.setdefaulttimeout(5)
serve(sys.argv[1])
