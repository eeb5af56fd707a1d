"""What the cases of the behavioural suite have in common: how they are run, what they say, and the other
end. It imports nothing of silk's: the same file runs over Linux's own stack and over silk."""
import ctypes
import errno
import fcntl
import json
import os
import random
import select
import signal
import socket
import struct
import sys
import termios
import threading
import time

C = ctypes.CDLL(None, use_errno=True)
TCP, SOL = socket.IPPROTO_TCP, socket.SOL_SOCKET
ANY_EVENT = select.POLLIN | select.POLLOUT | select.POLLPRI | select.POLLRDHUP
EVENTS = {"IN": 1, "PRI": 2, "OUT": 4, "ERR": 8, "HUP": 16, "NVAL": 32, "RDHUP": 0x2000}
# Long enough for what must happen, on a busy machine too; what must not happen costs it whole.
PATIENCE = 3.0
# For what must happen and is waited for by a clock: a machine that stands still uses that up.
SURELY = 20.0
# What a case is interrupted with when patience is at its end.
HANGS = 0

CASES = []


class Peer:
    """The other end."""

    def __init__(self, path):
        self.end = socket.socket(socket.AF_UNIX)
        self.end.connect(path)
        self.words = self.end.makefile()
        # Threads of a case may speak with it while another does.
        self.turn = threading.Lock()

    def say(self, **words):
        with self.turn:
            self.end.sendall(json.dumps(words).encode() + b"\n")
            answer = self.words.readline()
        assert answer, "the peer has ended"
        return eval(json.loads(answer))

    def do(self, statements):
        self.say(do=statements)

    def tell(self, expression):
        return self.say(tell=expression)


class World:
    """Where the cases are run, and one case's results."""

    def __init__(self, family, own, peer, control):
        self.family, self.own, self.there = family, own, peer
        self.six = family == socket.AF_INET6
        self.peer = Peer(control)
        self.name = ""

    def result(self, step, value):
        print(f"{self.name}: {step} = {value}", flush=True)

    def port(self):
        """A port that no other case uses."""
        return next(PORTS)

    def tcp(self, port=None):
        """A TCP socket, bound if a port is given."""
        end = socket.socket(self.family)
        if port is not None:
            end.setsockopt(SOL, socket.SO_REUSEADDR, 1)
            end.bind((self.own, port))
        return end

    def udp(self, port=None):
        end = socket.socket(self.family, socket.SOCK_DGRAM)
        if port is not None:
            end.bind((self.own, port))
            settle()
        return end

    def listener(self, backlog=16):
        end = self.tcp(self.port())
        end.listen(backlog)
        settle()
        return end

    def peer_listens(self):
        """Where the peer listens from now on, as `l`."""
        port = self.port()
        self.peer.do(f"l = socket.create_server((address, {port}), family=family)")
        return self.there, port

    def connected(self):
        """A connection that was opened here; the peer's end is `e`. To the own machine the peer opens it, since one that
        is opened here is Linux's from end to end."""
        if self.own == self.there:
            return self.accepted()
        end = self.tcp()
        end.connect(self.peer_listens())
        self.peer.do("e = taken(l)")
        return end

    def accepted(self):
        """A connection that the peer has opened; its end is `e`."""
        listener = self.listener()
        self.peer_connects(listener)
        end, _ = listener.accept()
        listener.close()
        return end

    def peer_connects(self, listener, name="e"):
        self.peer.do(f"{name} = socket.create_connection({listener.getsockname()[:2]!r})")

    def peer_udp(self):
        """Where the peer has a datagram socket from now on, as `u`."""
        port = self.port()
        self.peer.do(f"u = socket.socket(family, socket.SOCK_DGRAM); u.bind((address, {port}))")
        return self.there, port


# The ports of a run.
PORTS = iter(())


def case(function):
    """A case of the suite."""
    CASES.append(function)
    return function


def name_of(number):
    return errno.errorcode.get(number, str(number))


def attempt(call, *arguments):
    """What a call answers, in words that are the same in every run."""
    try:
        return shown(call(*arguments))
    except OSError as error:
        if error.errno == HANGS:
            raise
        return name_of(error.errno)


def blocked(call, *arguments):
    """A thread that is in a call."""
    said = []
    thread = threading.Thread(target=lambda: said.append(attempt(call, *arguments)), daemon=True)
    thread.start()
    time.sleep(0.2)
    return thread, said


def outcome_of(thread, said, patience=PATIENCE):
    thread.join(patience)
    return said[0] if said else "still blocked"


def shown(value):
    if isinstance(value, socket.socket):
        return "socket"
    if isinstance(value, bytes):
        return repr(value) if len(value) < 40 else f"{len(value)} octets"
    if isinstance(value, tuple):
        return "(" + ", ".join(str(shown(part)) for part in value) + ")"
    return "ok" if value is None else value


def error_of(end):
    """SO_ERROR, which is taken by that."""
    return name_of(end.getsockopt(SOL, socket.SO_ERROR)) if end.fileno() >= 0 else "closed"


def words(events):
    """Events of poll or epoll by their names."""
    return "+".join(name for name, bit in EVENTS.items() if events & bit) or "none"


def polled(end, asked=ANY_EVENT):
    """What poll says at this moment."""
    p = select.poll()
    p.register(end, asked)
    return sum(event for _, event in p.poll(0))


def wait_for(holds):
    """Waits until something holds, for as long as patience lasts. It counts its looks: a machine that
    stands still for a while has used up one of them."""
    for _ in range(int(PATIENCE / 0.01)):
        if holds():
            return True
        time.sleep(0.01)
    return holds()


def settle():
    """Until every executor of silk's knows of a new listener, which is a moment later."""
    time.sleep(0.1)


def events(end, until, asked=ANY_EVENT):
    """What poll says when it has come to say `until`."""
    wait_for(lambda: polled(end, asked) & until == until)
    return words(polled(end, asked))


def readable(end):
    return events(end, select.POLLIN)


def answer(result):
    """What a call of C's answers, with its error."""
    return name_of(ctypes.get_errno()) if result < 0 else result


def hangs(*_):
    raise TimeoutError(HANGS, "hangs")


class Watch:
    """Interrupts a case that takes longer than eight seconds, counted as `wait_for` counts."""

    def __init__(self):
        self.over = threading.Event()
        self.main = threading.main_thread().ident
        self.thread = threading.Thread(target=self.count, daemon=True)
        self.thread.start()

    def count(self):
        if not any(self.over.wait(0.25) for _ in range(32)):
            signal.pthread_kill(self.main, signal.SIGALRM)

    def end(self):
        self.over.set()
        self.thread.join()


def run(own, there, control, first_port, only):
    global PORTS
    PORTS = iter(range(int(first_port), int(first_port) + 1000))
    family = socket.AF_INET6 if ":" in own else socket.AF_INET
    world = World(family, own, there, control)
    signal.signal(signal.SIGALRM, hangs)
    for function in CASES:
        world.name = function.__name__.replace("_", " ")
        if only and function.__module__ not in only and world.name not in only:
            continue
        world.peer.say(case=world.name, address=there, family=family.name)
        watch = Watch()
        try:
            function(world)
        except OSError as error:
            world.result("ends", "hangs" if error.errno == HANGS else name_of(error.errno))
        watch.end()


def fill(end):
    """Until a socket that does not block has no room, and what it holds stays. The peer's buffer, or Linux's on the way to it,
    may still take some a moment later."""
    def is_full():
        for _ in range(20):
            wait_for(lambda: attempt(end.send, bytes(1 << 20)) == "EAGAIN")
            time.sleep(0.005)
        # What little is left of a window is used after a while.
        time.sleep(0.5)
        return not polled(end) & select.POLLOUT

    wait_for(is_full)
