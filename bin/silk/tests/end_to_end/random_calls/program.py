"""Random calls on a few sockets: program.py SOCKET SEED STEPS PORTS MOMENT OWN OWN THERE THERE, both hosts' addresses of both
IPs. Which calls, and what the peer does between them (peer.py, over the Unix socket), hangs on the seed alone. Each is
written down with what it answered, so that what two stacks answer can be compared line by line. After each there is a MOMENT,
seconds, in which what it causes can happen. Its own ports are three from PORTS on, and are written as 1 to 3.

Left out is what docs/limits.md or docs/differences.md says of: to read what comes after reading was shut down, a
descriptor that is closed while a copy of it is in an event set, what an event set tells but once, a connection to port 0, and options that
silk refuses.
"""
import ctypes
import errno
import fcntl
import os
import random
import select
import socket
import struct
import sys
import tempfile
import time
import zlib

C = ctypes.CDLL(None, use_errno=True)
OURS, THEIRS, NOBODYS = (1, 2, 3), 7201, 7299
# Of each IP three, of which the peer hears the first.
GROUPS = {4: ("239.1.2.3", "239.1.2.4", "224.0.0.77"), 6: ("ff15::3", "ff15::4", "ff02::77")}
TCP, UDP = socket.SOCK_STREAM, socket.SOCK_DGRAM

# Levels, and their options by number.
OPTIONS = {
    socket.SOL_SOCKET: "2 3 4 5 6 9 12 13 15 16 17 18 20 21 25 29 30 36 38 39 40 46",
    socket.IPPROTO_IP: "1 2 3 4 8 10 11 12 13 14 15 20 24 32 33 34 49 50",
    socket.IPPROTO_IPV6: "7 16 18 19 23 24 25 26 29 49 51 62 66 67 70 72 78",
    socket.IPPROTO_TCP: "1 3 4 5 6 7 9 12 16 18 25 27 36 37",
    socket.IPPROTO_UDP: "1 103 104",
}
OPTIONS = [(level, int(name)) for level, names in OPTIONS.items() for name in names.split()]
TIMES = (socket.SO_LINGER, socket.SO_RCVTIMEO, socket.SO_SNDTIMEO)
NUMBERS = (0, 1, 2, 5, -1, 255, 256, 1000, 70000)

EVENTS = {1: "IN", 2: "PRI", 4: "OUT", 8: "ERR", 16: "HUP", 32: "NVAL", 64: "RDNORM", 128: "RDBAND", 256: "WRNORM", 512: "WRBAND", 0x2000: "RDHUP"}
EPOLL_ADD, EPOLL_DEL, EPOLL_MOD = 1, 2, 3


def words(mask):
    return "|".join(word for bit, word in EVENTS.items() if mask & bit) or "nothing"


def brief(data, count, flags=0):
    # What is thrown away leaves the buffer as it was.
    return str(count) if flags & socket.MSG_TRUNC else f"{count} {zlib.crc32(data[:max(count, 0)]):08x}"


def call(function, *arguments):
    """What it answers, or the name of its error."""
    ctypes.set_errno(0)
    answer = getattr(C, function)(*arguments)
    return answer if answer >= 0 else errno.errorcode[ctypes.get_errno()]


def failed(answer):
    return isinstance(answer, str)


class Socket:
    def __init__(self, fd, family, kind, label, of):
        self.fd, self.family, self.kind, self.label = fd, family, kind, label
        self.version = 6 if family == socket.AF_INET6 else 4
        # What its copies have in common: which was the first, and whether that has had a name or a peer.
        self.shared = of.shared if of else {"first": label, "named": False, "listens": False, "shut": False}

    def __str__(self):
        return self.label


class Program:
    def __init__(self, seed, talk, ports, own, there):
        self.chance, self.talk, self.ports = random.Random(seed), talk, ports
        self.own, self.there = own, there
        self.sockets, self.made, self.named = [], 0, {}
        self.set = C.epoll_create1(0)
        self.link = socket.if_nametoindex("eth0")

    def one_of(self, *choices):
        return self.chance.choice(choices)

    def pick(self):
        return self.chance.choice(self.sockets)

    def tell_peer(self, *what):
        print(*what, file=self.talk, flush=True)
        return self.talk.readline().strip()

    def keep(self, fd, family, kind, of=None):
        self.made += 1
        label = f"{'tcp' if kind == TCP else 'udp'}{'6' if family == socket.AF_INET6 else ''}-{self.made}"
        self.sockets.append(new := Socket(fd, family, kind, label, of))
        return new

    def forget(self, end):
        C.epoll_ctl(self.set, EPOLL_DEL, end.fd, bytes(12))

    def real(self, port):
        return self.ports + port if port in OURS else port

    def address(self, family, host, port):
        port = self.real(port)
        if family == socket.AF_INET:
            return struct.pack("=H", family) + struct.pack("!H", port) + socket.inet_aton(host) + bytes(8)
        return struct.pack("=H", family) + struct.pack("!HI", port, 0) + socket.inet_pton(family, host) + bytes(4)

    def shown(self, raw, length):
        """An address, as far as it was told. Ports that the system has chosen are named in the order in which they are seen."""
        raw = raw.raw[:min(length, 28)]
        family = struct.unpack_from("=H", raw)[0] if len(raw) > 1 else 0
        if (family, len(raw)) not in ((socket.AF_INET, 16), (socket.AF_INET6, 28)):
            return f"{length} bytes"
        port, host = struct.unpack_from("!H", raw, 2)[0], raw[4:8] if family == socket.AF_INET else raw[8:24]
        if port - self.ports in OURS:
            port -= self.ports
        elif port > 10000:
            port = self.named.setdefault(port, f"port {len(self.named)}")
        return f"{socket.inet_ntop(family, host)} {port}"

    # Each of these makes one call, and says which and what came of it.

    def do_socket(self):
        if len(self.sockets) > 6:
            return self.do_close()
        family, kind = self.one_of(socket.AF_INET, socket.AF_INET, socket.AF_INET6), self.one_of(TCP, TCP, UDP)
        new = self.keep(C.socket(family, kind | os.O_NONBLOCK, 0), family, kind)
        return f"socket {new}", "ok"

    def do_close(self):
        end = self.pick()
        self.sockets.remove(end)
        self.forget(end)
        return f"close {end}", call("close", end.fd)

    def do_dup(self):
        if len(self.sockets) > 7:
            return self.do_close()
        end, over = self.pick(), self.pick()
        if self.chance.random() < 0.7:
            fd = C.dup(end.fd)
            return f"dup {end} as {self.keep(fd, end.family, end.kind, end)}", "ok"
        if over is end:
            return f"dup2 {end} over itself", call("dup2", end.fd, end.fd) == end.fd
        self.sockets.remove(over)
        self.forget(over)
        C.dup2(end.fd, over.fd)
        return f"dup2 {end} over {over} as {self.keep(over.fd, end.family, end.kind, end)}", "ok"

    def do_bind(self):
        end = self.pick()
        any_address, loop = ("0.0.0.0", "127.0.0.1") if end.version == 4 else ("::", "::1")
        several = [*GROUPS[end.version], *(["10.99.0.255", "255.255.255.255"] if end.version == 4 else [])]
        host = self.one_of(any_address, any_address, self.own[end.version], self.own[end.version], self.there[end.version], loop, self.one_of(*several))
        raw = self.address(end.family, host, port := self.one_of(0, *OURS))
        length = self.one_of(*[len(raw)] * 12, len(raw) - 1, 2, 0, 128)
        answer = call("bind", end.fd, raw + bytes(128), length)
        # Which of several reasons is told hangs on the order in which they are looked at.
        return f"bind {end} {host} {port} {length}", "refused" if failed(answer) else answer

    def do_listen(self):
        end, backlog = self.pick(), self.one_of(1, 5, 5, 0, -1)
        if end.shared["shut"]:
            # What it would accept is shut down, too, at another moment.
            return self.do_poll()
        answer = call("listen", end.fd, backlog)
        end.shared["listens"] |= answer == 0
        return f"listen {end} {backlog}", answer

    def do_connect(self):
        end, chance = self.pick(), self.chance.random()
        if chance < 0.06:
            raw, to = bytes(16), "nobody"
        elif chance < 0.09:
            raw, to = self.address(socket.AF_INET, self.there[4], THEIRS), "IPv4"
        elif chance < 0.11:
            raw, to = self.address(socket.AF_INET6, self.there[6], THEIRS), "IPv6"
        elif chance < 0.15 and end.version == 6:
            raw, to = self.address(socket.AF_INET6, "::ffff:" + self.there[4], THEIRS), "mapped"
        else:
            port = self.one_of(THEIRS, THEIRS, THEIRS, NOBODYS)
            raw, to = self.address(end.family, self.there[end.version], port), port
        length = self.one_of(*[len(raw)] * 15, 2, 15)
        return f"connect {end} {to} {length}", call("connect", end.fd, raw, length)

    def do_accept(self):
        end, raw = self.pick(), ctypes.create_string_buffer(128)
        length = ctypes.c_uint32(self.one_of(128, 128, 28, 4, 0))
        fd = call("accept4", end.fd, raw, ctypes.byref(length), os.O_NONBLOCK)
        if failed(fd):
            return f"accept {end}", fd
        return f"accept {end}", f"{self.keep(fd, end.family, end.kind)} of {self.shown(raw, length.value)}"

    def do_name(self):
        end, function = self.pick(), self.one_of("getsockname", "getpeername")
        raw, length = ctypes.create_string_buffer(128), ctypes.c_uint32(self.one_of(128, 128, 28, 16, 4, 0))
        answer = call(function, end.fd, raw, ctypes.byref(length))
        return f"{function} {end}", answer if failed(answer) else self.shown(raw, length.value)

    def do_send(self):
        end = self.pick()
        data = self.chance.randbytes(self.one_of(0, 1, 100, 100, 3000))
        flags = self.one_of(0, 0, socket.MSG_DONTWAIT, socket.MSG_MORE, socket.MSG_EOR, socket.MSG_DONTROUTE, 0x10000, socket.MSG_OOB)
        if end.kind == UDP:
            # A part may be kept, and no error told before the last.
            flags &= ~socket.MSG_MORE
        said = f"send {end} {len(data)} {flags:#x}"
        flags |= socket.MSG_NOSIGNAL
        if self.chance.random() < 0.6:
            return said, call("send", end.fd, data, len(data), flags)
        port, version = self.one_of(THEIRS, THEIRS, NOBODYS, 0), self.one_of(*[end.version] * 9, 4, 6)
        raw = self.address(socket.AF_INET6 if version == 6 else socket.AF_INET, self.there[version], port)
        if self.chance.random() < 0.05:
            raw = struct.pack("=H", socket.AF_UNSPEC) + raw[2:]
        length = self.one_of(*[len(raw)] * 8, 3)
        return f"{said} to {version}/{port} {length}", call("sendto", end.fd, data, len(data), flags, raw, length)

    def do_sendmsg(self):
        end, data = self.pick(), self.chance.randbytes(self.one_of(0, 1, 100, 2000))
        number = lambda value: struct.pack("=i", value)
        level, name, value = self.one_of(
            (0, 0, None), (0, 0, None), (socket.IPPROTO_IP, 2, number(9)), (socket.IPPROTO_IP, 1, number(8)), (socket.IPPROTO_IP, 1, b"\x08"),
            (socket.IPPROTO_IP, 2, number(300)), (socket.IPPROTO_IP, 2, b""), (socket.IPPROTO_IP, 8, number(0) + socket.inet_aton(self.own[4]) + bytes(4)),
            (socket.IPPROTO_IPV6, 50, socket.inet_pton(socket.AF_INET6, self.own[6]) + number(0)), (socket.IPPROTO_IPV6, 52, number(7)),
            (socket.IPPROTO_IPV6, 67, number(4)), (socket.IPPROTO_UDP, 103, struct.pack("=H", 60)), (socket.IPPROTO_UDP, 103, struct.pack("=H", 0)),
            (socket.SOL_SOCKET, 77, number(7)))
        to = self.one_of(None, None, THEIRS, THEIRS, NOBODYS)
        whom = () if to is None else ((self.there[end.version], to),)
        control = [] if value is None else [(level, name, value)]
        parts = [data[:len(data) // 2], data[len(data) // 2:]]
        said = f"sendmsg {end} {len(data)} with {level}/{name} to {to}"
        return said, self.by_copy(end, lambda copy: copy.sendmsg(parts, control, socket.MSG_NOSIGNAL, *whom))

    def by_copy(self, end, use):
        """What Python answers that has a copy of the descriptor."""
        with socket.socket(fileno=os.dup(end.fd)) as copy:
            copy.settimeout(0)
            try:
                return use(copy)
            except OSError as error:
                return errno.errorcode[error.errno]

    def do_write(self):
        end, size = self.pick(), self.one_of(0, 1, 500)
        return f"write {end} {size}", call("write", end.fd, self.chance.randbytes(size), size)

    def do_recv(self):
        end, size = self.pick(), self.one_of(0, 1, 50, 6000, 6000)
        flags = self.one_of(0, 0, 0, socket.MSG_PEEK, socket.MSG_TRUNC, socket.MSG_PEEK | socket.MSG_TRUNC, socket.MSG_WAITALL, socket.MSG_DONTWAIT, socket.MSG_ERRQUEUE, socket.MSG_OOB, socket.MSG_OOB | socket.MSG_PEEK)
        data, raw, length = ctypes.create_string_buffer(6000), ctypes.create_string_buffer(128), ctypes.c_uint32(self.one_of(128, 128, 4))
        if self.chance.random() < 0.5:
            answer = call("recv", end.fd, data, size, flags)
            return f"recv {end} {size} {flags:#x}", answer if failed(answer) else brief(data.raw, answer, flags)
        answer = call("recvfrom", end.fd, data, size, flags, raw, ctypes.byref(length))
        sender = "" if failed(answer) or flags & socket.MSG_TRUNC else " of " + self.shown(raw, length.value)
        return f"recvfrom {end} {size} {flags:#x}", answer if failed(answer) else brief(data.raw, answer, flags) + sender

    def do_recvmsg(self):
        end, size, room = self.pick(), self.one_of(5, 6000), self.one_of(0, 200)
        flags = self.one_of(0, 0, socket.MSG_PEEK, socket.MSG_ERRQUEUE, socket.MSG_ERRQUEUE | socket.MSG_PEEK)

        def use(copy):
            data, control, told, _ = copy.recvmsg(size, room, flags)
            return f"{brief(data, len(data))} {told:#x} {sorted((level, name, len(value)) for level, name, value in control)}"
        return f"recvmsg {end} {size} {flags:#x}", self.by_copy(end, use)

    def vectors(self, sizes, data=None):
        """An array of what a call fills, or takes these data from, and its parts. They must be held as long as it is."""
        parts, at = [], 0
        for size in sizes:
            parts.append(ctypes.create_string_buffer(data[at:at + size] if data else size or 1, size or 1))
            at += size
        packed = b"".join(struct.pack("=QQ", ctypes.addressof(part), size) for part, size in zip(parts, sizes))
        return ctypes.create_string_buffer(packed, len(packed) or 1), parts

    def do_vectors(self):
        end, function = self.pick(), self.one_of("readv", "readv", "writev")
        sizes = [self.one_of(0, 1, 50, 700) for _ in range(self.chance.randrange(5))]
        count = self.one_of(*[len(sizes)] * 15, -1, 1025)
        data = self.chance.randbytes(sum(sizes))
        array, parts = self.vectors(sizes, data if function == "writev" else None)
        answer = call(function, end.fd, array, count)
        got = b"".join(part.raw[:size] for part, size in zip(parts, sizes))
        return f"{function} {end} {sizes} {count}", answer if failed(answer) or function == "writev" else brief(got, answer)

    def do_send_many(self):
        end, whole, kept, said = self.pick(), b"", [], []
        # That nobody is there, or not any more, may be heard before the next is sent, or after.
        count = self.one_of(0, 1, 1, 1, 1) if end.kind == TCP else self.one_of(0, 1, 2, 3, 3)
        for n in range(count):
            size, to = self.one_of(0, 1, 100, 2000), self.one_of(None, NOBODYS, THEIRS) if n == count - 1 else self.one_of(THEIRS, THEIRS, THEIRS, 0)
            array, parts = self.vectors([size], self.chance.randbytes(size))
            raw = b"" if to is None else self.address(end.family, self.there[end.version], to)
            name = ctypes.create_string_buffer(raw, len(raw) or 1)
            kept.append((array, parts, name))
            whole += struct.pack("=QIxxxxQQQQixxxxIxxxx", ctypes.addressof(name) if raw else 0, len(raw), ctypes.addressof(array), 1, 0, 0, 0, 77)
            said.append(f"{size} to {to}")
        heads = ctypes.create_string_buffer(whole, len(whole) or 1)
        answer = call("sendmmsg", end.fd, heads, len(kept), socket.MSG_NOSIGNAL)
        return f"sendmmsg {end} {said}", f"{answer} {[struct.unpack_from('=I', heads.raw, 64 * n + 56)[0] for n in range(len(kept))]}"

    def do_recv_many(self):
        end, whole, kept, count = self.pick(), b"", [], self.one_of(0, 1, 2, 4)
        flags, limit = self.one_of(0, 0, 0, socket.MSG_PEEK, socket.MSG_TRUNC, 0x10000), self.one_of(None, struct.pack("=qq", 0, 0), struct.pack("=qq", 1, 0))
        for _ in range(count):
            array, parts = self.vectors([self.one_of(0, 1, 100, 6000)])
            name = ctypes.create_string_buffer(28)
            kept.append((array, parts, name))
            whole += struct.pack("=QIxxxxQQQQixxxxIxxxx", ctypes.addressof(name), 28, ctypes.addressof(array), 1, 0, 0, 0, 77)
        heads = ctypes.create_string_buffer(whole, len(whole) or 1)
        answer = call("recvmmsg", end.fd, heads, count, flags, limit)
        if failed(answer):
            return f"recvmmsg {end} {count} {flags:#x}", answer
        told = []
        for (_, parts, name), at in list(zip(kept, range(0, 64 * count, 64)))[:answer]:
            (length,), (said, got) = struct.unpack_from("=I", heads.raw, at + 8), struct.unpack_from("=ixxxxI", heads.raw, at + 48)
            told.append(f"{brief(parts[0].raw, min(got, len(parts[0].raw)), flags)} {said:#x} of {self.shown(name, length) if end.kind == UDP else length}")
        return f"recvmmsg {end} {count} {flags:#x}", ", ".join(told) or "none"

    def do_file(self):
        end, begin = self.pick(), self.one_of(None, 0, 10, 9000)
        # Of a socket of IPv6 that is connected over IPv4, Linux keeps back a datagram with which the file ends.
        size = self.one_of(0, 1, 100, 3000, 9000 if end.version == 4 or end.kind == TCP else 3000)
        with tempfile.TemporaryFile() as file:
            file.write(random.Random(size).randbytes(5000))
            file.seek(100)
            file.flush()
            at = None if begin is None else ctypes.c_int64(begin)
            answer = call("sendfile", end.fd, file.fileno(), None if at is None else ctypes.byref(at), ctypes.c_size_t(size))
            place = os.lseek(file.fileno(), 0, os.SEEK_CUR) if at is None else at.value
        return f"sendfile {end} {size} from {begin}", f"{answer} at {place}"

    def do_group(self):
        """Joins and leaves, by each call that there is for it, and chooses whom to hear."""
        end, host, place = self.pick(), self.one_of(*GROUPS[4], "10.0.0.9"), self.one_of(0, 0, 1, 99, self.link)
        here = socket.inet_aton(self.one_of("0.0.0.0", self.own[4], self.own[4], "127.0.0.1", "192.0.2.1"))
        four, source = socket.inet_aton(host), socket.inet_aton(self.one_of(self.there[4], "192.0.2.7"))
        six = socket.inet_pton(socket.AF_INET6, self.one_of(*GROUPS[6], "fd99::7"))
        plain = [four + here, four + here + struct.pack("=i", place)]
        family, raw = self.one_of((socket.AF_INET, self.address(socket.AF_INET, host, 0)), (socket.AF_INET6, self.address(socket.AF_INET6, socket.inet_ntop(socket.AF_INET6, six), 0)))
        request = struct.pack("=iI", place, 0) + raw + bytes(128 - len(raw))
        by = self.address(socket.AF_INET, self.there[4], 0) if family == socket.AF_INET else self.address(socket.AF_INET6, self.there[6], 0)
        level, name, value = self.one_of(
            *[(socket.IPPROTO_IP, name, one) for name in (35, 35, 36) for one in plain],
            *[(socket.IPPROTO_IP, name, four + here + source) for name in (39, 40, 38, 37)],
            *[(socket.IPPROTO_IPV6, name, six + struct.pack("=i", place)) for name in (20, 20, 21)],
            *[(level, name, request) for level in (0, 41) for name in (42, 42, 45)],
            *[(level, name, request + by + bytes(128 - len(by))) for level in (0, 41) for name in (46, 47, 43, 44)])
        length = self.one_of(*[len(value)] * 9, len(value) - 4, 4)
        return f"setsockopt {end} {level}/{name} {value[:16].hex()} {length}", call("setsockopt", end.fd, level, name, value, length)

    def do_shout(self):
        end, size = self.pick(), self.one_of(0, 1, 100)
        if end.kind != UDP:
            return self.do_group()
        raw = self.address(end.family, group := self.one_of(*GROUPS[end.version]), port := self.one_of(*OURS, THEIRS))
        return f"send {end} {size} to {group} {port}", call("sendto", end.fd, self.chance.randbytes(size), size, 0, raw, len(raw))

    def do_others(self):
        """What is not for sockets, and what asks for nothing but the descriptor."""
        end, room = self.pick(), ctypes.create_string_buffer(16)
        name, *arguments = self.one_of(
            ("lseek", 0, 0), ("pread", room, 4, 0), ("pwrite", room, 4, 0), ("fsync",), ("ftruncate", 0), ("fchmod", 0o600),
            ("isatty",), ("fcntl", fcntl.F_GETFD), ("fcntl", 1033, 4096), ("fcntl", fcntl.F_GETLK, bytes(32)), ("flock", 5), ("fchdir",),
            ("dup3", end.fd, 0), ("dup3", 9999999, 0), ("fcntl", fcntl.F_DUPFD, 9999999))
        return f"{name} {end} {arguments[0] if arguments and isinstance(arguments[0], int) and name == 'fcntl' else ''}", call(name, end.fd, *arguments)

    def do_copy(self):
        if len(self.sockets) > 7:
            return self.do_close()
        end, least = self.pick(), self.one_of(0, 50, 200)
        fd = call("fcntl", end.fd, self.one_of(fcntl.F_DUPFD, fcntl.F_DUPFD_CLOEXEC), least)
        return f"fcntl F_DUPFD {end} as {self.keep(fd, end.family, end.kind, end)}", fd >= least

    def do_shutdown(self):
        end = self.pick()
        # A listener that is shut down for reading is taken apart.
        ends = (1, 1, 3, -1) if end.shared["listens"] else (1, 1, 3, -1, 0, 2)
        how = self.one_of(*ends) if end.kind == TCP else self.one_of(0, 1, 2, 3)
        answer = call("shutdown", end.fd, how)
        end.shared["shut"] |= how in (0, 1, 2)
        return f"shutdown {end} {how}", answer

    def do_option(self):
        end, (level, name) = self.pick(), self.chance.choice(OPTIONS)
        if self.chance.random() < 0.5:
            value, length = ctypes.create_string_buffer(b"\xee" * 64), ctypes.c_uint32(self.one_of(4, 4, 4, 4, 1, 0, 8, 16))
            said = f"getsockopt {end} {level}/{name} {length.value}"
            answer = call("getsockopt", end.fd, level, name, value, ctypes.byref(length))
            if (level, name) == (socket.IPPROTO_IPV6, 24) and end.kind == UDP:
                # Linux knows the MTU as long as it remembers the route, which other calls make it forget.
                return said, "something"
            return said, answer if failed(answer) else f"{length.value} {value.raw[:length.value].hex()}"
        number, size = self.chance.choice(NUMBERS), self.one_of(4, 4, 4, 4, 4, 1, 0, 8, 16)
        value = struct.pack("=i", number) + bytes(12)
        if level == socket.SOL_SOCKET and name in TIMES:
            value, size = struct.pack("=ii", *self.one_of((0, 0), (1, 0), (1, 1))) + bytes(8), self.one_of(8, 16, 4)
        return f"setsockopt {end} {level}/{name} {value[:8].hex()} {size}", call("setsockopt", end.fd, level, name, value, size)

    def do_device(self):
        """To which interface it is bound."""
        end = self.pick()
        if self.chance.random() < 0.4:
            value, length = ctypes.create_string_buffer(b"\xee" * 20), ctypes.c_uint32(self.one_of(16, 16, 20, 4, 0))
            answer = call("getsockopt", end.fd, socket.SOL_SOCKET, socket.SO_BINDTODEVICE, value, ctypes.byref(length))
            return f"getsockopt {end} of its device", answer if failed(answer) else f"{length.value} {value.raw[:length.value]}"
        # What has an address already is silk's, also where it is bound to another interface then.
        name = self.one_of(b"eth0", b"eth0", b"eth0\0", b"", b"\0", b"nosuch", b"eth0" * 9)
        return f"setsockopt {end} device {name}", call("setsockopt", end.fd, socket.SOL_SOCKET, socket.SO_BINDTODEVICE, name, len(name))

    def do_ioctl(self):
        end, value = self.pick(), ctypes.c_int(-7)
        request, said = self.one_of((0x541B, "FIONREAD"), (0x8905, "SIOCATMARK"))
        answer = call("ioctl", end.fd, ctypes.c_ulong(request), ctypes.byref(value))
        return f"ioctl {end} {said}", answer if failed(answer) else value.value

    def do_flags(self):
        end = self.pick()
        return f"fcntl {end}", call("fcntl", end.fd, fcntl.F_GETFL)

    def do_poll(self):
        poll = select.poll()
        for end in self.sockets:
            poll.register(end.fd, 0x23FF)
        told = dict(poll.poll(0))
        return "poll", ", ".join(f"{end} {words(told.get(end.fd, 0))}" for end in self.sockets)

    def do_select(self):
        fds = [end.fd for end in self.sockets]
        told = select.select(fds, fds, fds, 0)
        return "select", ", ".join(f"{end} {''.join(letter for letter, ready in zip('rwx', told) if end.fd in ready)}" for end in self.sockets)

    def do_watch(self):
        end, mask = self.pick(), self.one_of(1, 5, 0x2005)
        operation, said = self.one_of((EPOLL_ADD, "add"), (EPOLL_ADD, "add"), (EPOLL_MOD, "mod"), (EPOLL_DEL, "del"))
        event = struct.pack("=IQ", mask, int(end.label.split("-")[1]))
        return f"epoll_ctl {said} {end} {mask:#x}", call("epoll_ctl", self.set, operation, end.fd, event)

    def do_wait(self):
        # Of an event set that has much to tell, not all need be told at once.
        told, raw = {}, ctypes.create_string_buffer(12 * 16)
        for _ in range(4):
            for at in range(C.epoll_wait(self.set, raw, 16, 0)):
                mask, which = struct.unpack_from("=IQ", raw.raw, 12 * at)
                told[which] = told.get(which, 0) | mask
        return "epoll_wait", ", ".join(f"{which} {words(mask)}" for which, mask in sorted(told.items()))

    def do_peer(self):
        which, size, version = self.chance.randrange(8), self.one_of(1, 100, 3000), self.one_of(4, 4, 6)
        port, own = self.one_of(*OURS), self.own[version]
        to = (own, self.real(port))
        said, *what = self.one_of(
            ("accepts", "accept", version), ("accepts", "accept", version), (f"connects to {version}/{port}", "connect", *to),
            (f"connects to {version}/{port}", "connect", *to), ("sends", "send", which, size), ("sends", "send", which, size),
            ("sends", "send", which, size), ("receives", "recv", which), ("receives", "recv", which), ("urges", "urge", which, size), ("is urged", "urged", which), ("shuts down", "shutdown", which),
            ("closes", "close", which), (f"tells {version}/{port}", "tell", *to, size), (f"tells {version}/{port}", "tell", *to, size),
            ("hears", "hear", version), (f"shouts {(group := self.one_of(*GROUPS[version]))} {port}", "shout", group, self.real(port), size))
        return f"the peer {said}", self.tell_peer(*what)

    def step(self):
        often = {
            self.do_socket: 8 if len(self.sockets) < 4 else 2, self.do_bind: 8, self.do_listen: 6, self.do_connect: 8, self.do_accept: 8,
            self.do_name: 4, self.do_send: 9, self.do_sendmsg: 5, self.do_write: 3, self.do_recv: 10, self.do_recvmsg: 3, self.do_shutdown: 2,
            self.do_close: 3, self.do_dup: 2, self.do_option: 14, self.do_ioctl: 3, self.do_flags: 1, self.do_poll: 7, self.do_select: 2,
            self.do_watch: 4, self.do_wait: 5, self.do_peer: 20, self.do_vectors: 5, self.do_send_many: 4, self.do_recv_many: 4, self.do_file: 3,
            self.do_others: 3, self.do_copy: 2, self.do_group: 6, self.do_shout: 3, self.do_device: 2,
        }
        if not self.sockets:
            return self.do_socket()
        return self.chance.choices(list(often), list(often.values()))[0]()


if __name__ == "__main__":
    control, seed, steps, ports, moment, own4, own6, there4, there6 = sys.argv[1:]
    line = socket.socket(socket.AF_UNIX)
    line.connect(control)
    program = Program(int(seed), line.makefile("rw"), int(ports), {4: own4, 6: own6}, {4: there4, 6: there6})
    for step in range(int(steps)):
        what, answer = program.step()
        print(f"{step}. {what} = {answer}", flush=True)
        time.sleep(float(moment))
