"""Random calls of several processes that share sockets, and of threads that wait: processes.py, with program.py's arguments.
Processes fork, pass each other sockets (SCM_RIGHTS) and end. Threads wait in calls that block, without a time-out. One process, which has no
sockets, says whose turn it is (by the seed alone), gives each call its moment, and asks then which threads have come back.

Left out is, besides what program.py leaves out, what docs/differences.md lists: of two processes, an event set that both have (each begins with
one of its own) and a socket without a name (which is closed before a fork); of two threads, what one closes while the other waits for it. And
what may go one way or the other: two threads that wait for one socket, and one that is disconnected while a thread waits for it.
"""
import ctypes
import errno
import os
import random
import select
import signal
import socket
import struct
import sys
import threading
import time

from program import C, EPOLL_ADD, EPOLL_DEL, EPOLL_MOD, THEIRS, UDP, Program, Socket, brief, call, failed, words

MOST = 4
# What takes so long hangs, s.
LONG = 90
ET, ONESHOT = 1 << 31, 1 << 30


class Process(Program):
    def __init__(self, place, lines, mail, *rest):
        super().__init__(0, *rest)
        self.place, self.lines, self.mail = place, lines, mail
        self.waiting, self.back = {}, []
        self.first = [self.do_listener, self.do_client, self.do_datagrams, self.do_connections, self.do_accept_all]

    def made_of(self, family, kind, *calls):
        end = self.keep(C.socket(family, kind | os.O_NONBLOCK, 0), family, kind)
        end.shared["named"] = True
        return f"make {end}", " ".join(str(call(name, end.fd, *arguments)) for name, *arguments in calls)

    # What there is before anything is left to chance.

    def do_listener(self):
        raw = self.address(socket.AF_INET, "0.0.0.0", 1)
        return self.made_of(socket.AF_INET, socket.SOCK_STREAM, ("bind", raw, len(raw)), ("listen", 5))

    def do_client(self):
        raw = self.address(socket.AF_INET, self.there[4], THEIRS)
        return self.made_of(socket.AF_INET, socket.SOCK_STREAM, ("connect", raw, len(raw)))

    def do_datagrams(self):
        raw = self.address(socket.AF_INET6, self.own[6], 2)
        return self.made_of(socket.AF_INET6, socket.SOCK_DGRAM, ("bind", raw, len(raw)))

    def do_connections(self):
        said = [self.tell_peer("connect", self.own[4], self.real(1)) for _ in range(2)]
        return "the peer accepts and connects twice", " ".join([self.tell_peer("accept", 4), *said])

    def do_accept_all(self):
        listener = self.sockets[0]
        fds = [call("accept4", listener.fd, None, None, os.O_NONBLOCK) for _ in range(2)]
        for fd in fds:
            if not failed(fd):
                self.keep(fd, listener.family, listener.kind).shared["named"] = True
        return "accept both", " ".join("?" if failed(fd) else "ok" for fd in fds)

    def keep(self, fd, family, kind, of=None, label=None):
        self.made += 1
        label = label or f"{'tcp' if kind == socket.SOCK_STREAM else 'udp'}{'6' if family == socket.AF_INET6 else ''}-{self.place}{self.made:02}"
        self.sockets.append(new := Socket(fd, family, kind, label, of))
        return new

    def is_waited_for(self, end):
        return any(end is other for _, other in self.waiting.values())

    def do_close(self):
        idle = [end for end in self.sockets if not self.is_waited_for(end)]
        if not idle:
            return self.do_poll()
        end = self.one_of(*idle)
        self.sockets.remove(end)
        self.forget(end)
        return f"close {end}", call("close", end.fd)

    def do_fork(self):
        free, nameless = [place for place in range(MOST) if place not in self.alive], [end for end in self.sockets if not end.shared["named"]]
        if not free:
            return self.do_exit()
        if any(map(self.is_waited_for, nameless)):
            return self.do_poll()
        place = self.one_of(*free)
        for end in nameless:
            self.sockets.remove(end)
            self.forget(end)
            call("close", end.fd)
        if os.fork() == 0:
            self.place, self.made, self.waiting, self.back = place, 0, {}, []
            os.close(self.set)
            self.set = C.epoll_create1(0)
            self.serve()
        self.alive.add(place)
        return f"fork of {place}", "ok"

    def do_exit(self):
        if len(self.alive) == 1:
            return self.do_fork()
        if any(said.startswith("send") for said, _ in self.waiting.values()):
            # How much it has sent is each stack's own.
            return self.do_poll()
        return "exit", "ok"

    def do_connect(self):
        return self.do_poll() if self.busy else super().do_connect()

    def do_shutdown(self):
        # Others would not know that they are not to read of it.
        end, how = self.pick(), self.one_of(1, 1, 3, -1)
        return f"shutdown {end} {how}", call("shutdown", end.fd, how)

    def do_send(self):
        return self.by_idle(super().do_send)

    def do_write(self):
        return self.by_idle(super().do_write)

    def by_idle(self, call):
        """Of sockets for which no thread waits: whether a little more fits beside what a thread has to send is each stack's own."""
        every, idle = self.sockets, [end for end in self.sockets if end.shared["first"] not in self.busy]
        if not idle:
            return self.do_poll()
        self.sockets = idle
        try:
            return call()
        finally:
            self.sockets = every

    def do_dup(self):
        # What is put over another closes that.
        return self.do_close() if self.waiting else super().do_dup()

    def do_accept(self):
        count = len(self.sockets)
        said = super().do_accept()
        for end in self.sockets[count:]:
            end.shared["named"] = True
        return said

    def do_pass(self):
        others = sorted(self.alive - {self.place})
        if not others:
            return self.do_fork()
        end, to = self.pick(), self.one_of(*others)
        told = f"{end.label} {end.shared['first']} {int(end.family)} {int(end.kind)}".encode()
        try:
            socket.send_fds(self.mail[to][0], [told], [end.fd])
        except OSError as error:
            return f"pass {end} to {to}", errno.errorcode[error.errno]
        return f"pass {end} to {to}", "ok"

    def do_take(self):
        if not select.select([self.mail[self.place][1]], [], [], 0)[0]:
            return self.do_poll()
        told, fds, _, _ = socket.recv_fds(self.mail[self.place][1], 100, 1)
        label, first, family, kind = told.decode().split()
        new = self.keep(fds[0], socket.AddressFamily(int(family)), socket.SocketKind(int(kind)), None, label)
        new.shared.update(first=first, named=True)
        return "take", new

    def do_block(self):
        """A thread that waits until it is answered."""
        idle = [end for end in self.sockets if end.shared["first"] not in self.busy]
        if len(self.waiting) > 2 or not idle:
            return self.do_recv()
        end, name = self.one_of(*idle), f"{self.place}/{self.made}"
        self.made += 1
        data, size = ctypes.create_string_buffer(6000), self.one_of(1, 50, 6000)
        mask, poll = self.one_of(1, 4, 0x2001), select.poll()
        poll.register(end.fd, mask)

        def recv(flags):
            answer = call("recv", end.fd, data, size, flags)
            return answer if failed(answer) else brief(data.raw, answer)

        def accept():
            fd = call("accept4", end.fd, None, None, os.O_NONBLOCK)
            return fd if failed(fd) else (fd, end.family, end.kind)

        def send(text):
            answer = call("send", end.fd, text, len(text), socket.MSG_NOSIGNAL)
            # How much of it fits is each stack's own.
            return answer if failed(answer) else "all" if answer == len(text) else "some"

        # To the own machine there are two stacks' buffers, and how far each is filled is not Linux's affair alone.
        much = self.one_of(100, 3_000_000 if self.own != self.there else 100)
        said, wait = self.one_of(
            (f"recv {end} {size}", lambda: recv(0)), (f"recv {end} {size}", lambda: recv(0)), (f"send {end} {much}", lambda: send(bytes(much))),
            (f"peek {end} {size}", lambda: recv(socket.MSG_PEEK)), (f"accept {end}", accept), (f"accept {end}", accept),
            (f"poll {end} {mask}", lambda: ", ".join(words(told) for _, told in poll.poll())))
        self.waiting[name] = said, end

        def thread():
            answer = wait()
            self.back.append((name, answer))

        flags = call("fcntl", end.fd, 3)
        call("fcntl", end.fd, 4, flags & ~os.O_NONBLOCK)
        threading.Thread(target=thread, daemon=True).start()
        time.sleep(self.moment)
        call("fcntl", end.fd, 4, flags)
        return f"thread {name} {said}", f"of {end.shared['first']}"

    def come_back(self):
        """What threads have been answered since."""
        back, self.back = sorted(self.back, key=lambda one: one[0]), []
        answers = []
        for name, answer in back:
            if isinstance(answer, tuple):
                answer = self.keep(*answer)
                answer.shared["named"] = True
            answers.append(f"thread {name} {self.waiting.pop(name)[0]} came back = {answer}")
        return answers

    def do_watch(self):
        end, mask = self.pick(), self.one_of(1, 5, 0x2005, 1 | ET, 5 | ET, 0x2005 | ET, 1 | ONESHOT, 5 | ONESHOT)
        if mask & ET and end.kind == UDP:
            # Linux tells of room after each datagram that has left.
            mask &= ~4
        operation, said = self.one_of((EPOLL_ADD, "add"), (EPOLL_ADD, "add"), (EPOLL_MOD, "mod"), (EPOLL_DEL, "del"))
        event = struct.pack("=IQ", mask, int(end.label.split("-")[1]))
        return f"epoll_ctl {said} {end} {mask:#x}", call("epoll_ctl", self.set, operation, end.fd, event)

    def step(self):
        often = {
            self.do_socket: 3 if len(self.sockets) < 4 else 1, self.do_bind: 5, self.do_listen: 6, self.do_connect: 6, self.do_accept: 5,
            self.do_name: 2, self.do_send: 8, self.do_write: 2, self.do_recv: 8, self.do_shutdown: 2, self.do_close: 6, self.do_dup: 3,
            self.do_ioctl: 2, self.do_flags: 1, self.do_poll: 7, self.do_select: 1, self.do_watch: 7, self.do_wait: 8, self.do_peer: 20,
            self.do_fork: 3, self.do_exit: 2, self.do_pass: 4, self.do_take: 6, self.do_block: 10,
        }
        if self.first:
            return self.first.pop(0)()
        if not self.sockets:
            return self.one_of(self.do_socket, self.do_take)()
        said, answer = self.chance.choices(list(often), list(often.values()))[0]()
        word, label = said.split()[:2] if " " in said else (said, "")
        for end in self.sockets:
            if end.label == label:
                end.shared["named"] |= word in ("bind", "connect", "listen", "send") and answer in (0, "EINPROGRESS") or word == "send" and not failed(answer)
        return said, answer

    def serve(self):
        """Takes its turns, until it ends."""
        signal.alarm(LONG)
        line = self.lines[self.place][1]
        while order := line.recv(200).decode():
            word, *more = order.split()
            if word == "turn":
                seed, alive, *self.busy = more
                self.chance, self.alive = random.Random(seed), set(map(int, alive))
                try:
                    what, answer = self.step()
                except BaseException:
                    # Others hold this end of the line, too.
                    line.send(b"")
                    raise
                line.send(f"{what} = {answer}".encode())
                if what == "exit":
                    os._exit(0)
            elif word == "back":
                line.send("\n".join(self.come_back()).encode() or b"-")
            else:
                line.send("\n".join(f"thread {name} {said} waits = still" for name, (said, _) in sorted(self.waiting.items())).encode() or b"-")
        os._exit(0)


def conduct(seed, steps, moment, lines):
    signal.alarm(LONG)
    # Who there is, and for which sockets which thread waits.
    chance, alive, busy = random.Random(seed), {0}, {}

    def ask(place, *order):
        lines[place][0].send(" ".join(order).encode())
        return lines[place][0].recv(8000).decode()

    for step in range(steps):
        place = chance.choice(sorted(alive))
        said = ask(place, "turn", f"{seed}/{step}", "".join(map(str, sorted(alive))), *sorted(busy.values()))
        what, answer = said.split(" = ", 1)
        print(f"{step}. {what} by {place} = {answer}", flush=True)
        if what.startswith("fork of"):
            alive.add(int(what.split()[-1]))
        elif what == "exit":
            alive.discard(place)
            busy = {thread: first for thread, first in busy.items() if not thread.startswith(f"{place}/")}
        elif what.startswith("thread"):
            busy[what.split()[1]] = answer.split()[1]
        time.sleep(moment)
        for other in sorted(alive):
            back = ask(other, "back")
            for line in back.split("\n") if back != "-" else []:
                busy.pop(line.split()[1])
                print(f"{step}. {line}", flush=True)
    for place in sorted(alive):
        left = ask(place, "left")
        for line in left.split("\n") if left != "-" else []:
            print(f"{steps}. {line}", flush=True)


if __name__ == "__main__":
    control, seed, steps, ports, moment, own4, own6, there4, there6 = sys.argv[1:]
    talk = socket.socket(socket.AF_UNIX)
    talk.connect(control)
    pairs = [[socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(MOST)] for _ in range(2)]
    if os.fork() == 0:
        for ours, _ in pairs[0]:
            ours.close()
        first = Process(0, *pairs, talk.makefile("rw"), int(ports), {4: own4, 6: own6}, {4: there4, 6: there6})
        first.moment = float(moment)
        first.serve()
    # Of a process that has ended because of a mistake there is nothing to hear.
    for _, theirs in pairs[0]:
        theirs.close()
    conduct(int(seed), int(steps), float(moment), pairs[0])
    for ours, _ in pairs[0]:
        ours.close()
