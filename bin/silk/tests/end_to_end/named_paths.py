"""Paths of the daemon's graph by their names: named_paths.py serve NAME | call NAME | often NAME | ask NAME… | hear NAME | build NAME |
refusals."""
import ctypes
import errno
import os
import struct
import sys

PF_SCOUT, STREAM, DATAGRAM = 0x5C, 1, 2
SOL_SILK, PRIORITY = 0x5117, 1
DATA = bytes(n % 251 for n in range(1 << 20))
c = ctypes.CDLL(None, use_errno=True)


def build(kind, name, how=c.connect):
    """A socket on the path of this name; the second is 0 or the name of the error."""
    fd = c.socket(PF_SCOUT, kind, 0)
    address = struct.pack("=H", PF_SCOUT) + name.encode()
    failed = how(fd, address, len(address)) < 0
    return fd, errno.errorcode[ctypes.get_errno()] if failed else 0


def send(fd, data):
    while data:
        data = data[os.write(fd, data):]


def receive(fd):
    parts = []
    while part := os.read(fd, 1 << 16):
        parts.append(part)
    return b"".join(parts)


def priority(fd):
    value, length = ctypes.c_int(-1), ctypes.c_uint(4)
    c.getsockopt(fd, SOL_SILK, PRIORITY, ctypes.byref(value), ctypes.byref(length))
    return value.value


def serve(name):
    fd, said = build(STREAM, name, c.bind)
    print("built", said, c.listen(fd, 5), "ready", flush=True)
    while (one := c.accept(fd, None, None)) >= 0:
        send(one, receive(one))
        os.close(one)


def call(name):
    fd, said = build(STREAM, name)
    print("built", said, "priority", priority(fd))
    # Less than the rings hold on their way.
    send(fd, DATA[:60000])
    c.shutdown(fd, 1)
    print("came back" if receive(fd) == DATA[:60000] else "differs")


def often(name):
    """Builds some at once, as who connects often."""
    for _ in range(12):
        fd, said = build(STREAM, name)
        print(said, end=" ")
        os.close(fd)
    print()


def ask(*names):
    built = [build(DATAGRAM, name) for name in names]
    for fd, said in built:
        os.write(fd, b"question")
        print("built", said, os.read(fd, 100).decode())


def tried(name):
    print(build(DATAGRAM, name)[1])


def hear(name):
    fd, said = build(DATAGRAM, name)
    print("built", said, flush=True)
    while True:
        print(os.read(fd, 100).decode(), flush=True)


def refusals():
    for kind, name in [(DATAGRAM, "home"), (STREAM, "question"), (STREAM, "nowhere"), (STREAM, "nobody")]:
        fd, said = build(kind, name)
        print(name, said)
        os.close(fd)
    first, said = build(STREAM, "echo", c.bind)
    second, again = build(STREAM, "echo", c.bind)
    os.close(first)
    third, after = build(STREAM, "echo", c.bind)
    print("echo", said, again, after)


{"serve": serve, "call": call, "often": often, "ask": ask, "hear": hear, "build": tried}.get(sys.argv[1], lambda: refusals())(*sys.argv[2:])
