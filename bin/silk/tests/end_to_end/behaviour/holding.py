"""What two processes hold together: whatever one of them makes of a socket is so for the other."""
from suite import *


class Child:
    """A forked process, which does what it is told with what it has inherited."""

    def __init__(self, **known):
        commands, self.words = os.pipe()
        self.answers, results = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.words)
            for line in os.fdopen(commands):
                os.write(results, (str(attempt(lambda: eval(line, globals(), known))) + "\n").encode())
            os._exit(0)
        os.close(commands)
        os.close(results)
        self.answers = os.fdopen(self.answers)

    def begin(self, expression):
        os.write(self.words, expression.encode() + b"\n")

    def answer(self):
        return self.answers.readline().rstrip()

    def tell(self, expression):
        self.begin(expression)
        return self.answer()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # Blocked, perhaps.
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.words)
        self.answers.close()


SET = {
    "TCP_NODELAY": (TCP, socket.TCP_NODELAY, 1),
    "SO_KEEPALIVE": (SOL, socket.SO_KEEPALIVE, 1),
    "SO_RCVLOWAT": (SOL, socket.SO_RCVLOWAT, 7),
    "SO_OOBINLINE": (SOL, socket.SO_OOBINLINE, 1),
    "TCP_KEEPIDLE": (TCP, socket.TCP_KEEPIDLE, 77),
    "TCP_USER_TIMEOUT": (TCP, socket.TCP_USER_TIMEOUT, 5000),
}


@case
def held_by_two_and_changed_by_one(w):
    end = w.connected()
    with Child(end=end) as child:
        for name, (level, option, value) in SET.items():
            child.tell(f"end.setsockopt({level}, {option}, {value})")
            w.result(name, end.getsockopt(level, option) == value)
        child.tell("end.setsockopt(SOL, socket.SO_RCVTIMEO, struct.pack('ll', 0, 300000))")
        w.result("SO_RCVTIMEO", struct.unpack("ll", end.getsockopt(SOL, socket.SO_RCVTIMEO, 16)))
        w.result("recv", attempt(C.recv, end.fileno(), ctypes.create_string_buffer(1), 1, 0) == -1)
        child.tell("fcntl.fcntl(end, fcntl.F_SETFL, os.O_NONBLOCK)")
        w.result("O_NONBLOCK", bool(fcntl.fcntl(end, fcntl.F_GETFL) & os.O_NONBLOCK))
        end.setblocking(True)
        w.result("and back", child.tell("bool(fcntl.fcntl(end, fcntl.F_GETFL) & os.O_NONBLOCK)"))
        child.tell("end.setsockopt(SOL, socket.SO_LINGER, struct.pack('ii', 1, 0))")
    w.result("SO_LINGER of one that is gone", struct.unpack("ii", end.getsockopt(SOL, socket.SO_LINGER, 8)))
    end.close()
    w.result("the peer is reset", w.peer.tell("outcome(e.recv, 10)"))


@case
def held_by_two_who_read_and_write(w):
    end = w.connected()
    with Child(end=end) as child:
        w.peer.do("e.sendall(b'abcdef')")
        came = lambda: attempt(end.recv, 9, socket.MSG_PEEK | socket.MSG_DONTWAIT) == "b'abcdef'"
        wait_for(came)
        w.result("in turns", [child.tell("end.recv(2)"), attempt(end.recv, 2), child.tell("end.recv(9)")])
        child.begin("end.recv(9)")
        time.sleep(0.2)
        w.peer.do("e.sendall(b'ghi')")
        w.result("one that waited", child.answer())
        w.result("nothing is left", attempt(end.recv, 9, socket.MSG_DONTWAIT))
        w.result("sends", [child.tell("end.send(b'12')"), attempt(end.send, b"34")])
        w.result("the peer reads", w.peer.tell("all_of(e, 4)"))


@case
def held_twice_and_inherited(w):
    end = w.connected()
    ours, theirs = socket.socketpair()
    socket.send_fds(ours, [b"x"], [end.fileno()])
    _, (again,), _, _ = socket.recv_fds(theirs, 1, 1)
    again = socket.socket(fileno=again)
    with Child(end=end, again=again) as child:
        end.close()
        again.close()
        child.tell("end.close()")
        w.result("the child sends by what it has left", child.tell("again.send(b'hello')"))
        w.result("the peer", w.peer.tell("outcome(e.recv, 10)"))
    ours.close()
    theirs.close()


def waited(end):
    """What poll says within a second."""
    p = select.poll()
    p.register(end, select.POLLIN)
    return words(sum(event for _, event in p.poll(1000)))


@case
def held_by_two_and_shut_down_by_one(w):
    end = w.connected()
    with Child(end=end) as child:
        w.result("writing", child.tell("end.shutdown(socket.SHUT_WR)"))
        w.result("the peer reads", w.peer.tell("outcome(e.recv, 10)"))
        w.result("the other sends", attempt(end.send, b"x", socket.MSG_NOSIGNAL))
        w.result("reading", child.tell("end.shutdown(socket.SHUT_RD)"))
        w.result("the other reads", attempt(end.recv, 10))
        w.result("poll", words(polled(end)))
    end = w.connected()
    with Child(end=end) as child:
        child.begin("end.recv(10)")
        time.sleep(0.2)
        end.shutdown(socket.SHUT_RD)
        w.result("one that waits", child.answer())
    end = w.udp(w.port())
    with Child(end=end) as child:
        child.begin("waited(end)")
        time.sleep(0.2)
        attempt(end.shutdown, socket.SHUT_RD)
        w.result("one that polls a socket without a peer", child.answer())
    listener = w.listener()
    with Child(listener=listener) as child:
        child.begin("listener.accept()")
        time.sleep(0.2)
        listener.shutdown(socket.SHUT_RD)
        w.result("one that accepts", child.answer())


@case
def held_by_two_and_opened_by_one(w):
    end = w.tcp(w.port())
    with Child(end=end) as child:
        w.result("connect", child.tell(f"end.connect({w.peer_listens()!r})"))
        w.peer.do("e = taken(l)")
        w.result("the other connects", attempt(end.connect, (w.there, 9)))
        w.result("the other sends", attempt(end.send, b"hello"))
        w.result("the peer reads", w.peer.tell("all_of(e, 5)"))
    end = w.tcp()
    with Child(end=end) as child:
        w.result("without a name: connect", child.tell(f"end.connect({w.peer_listens()!r})"))
        w.peer.do("e = taken(l)")
        w.result("without a name: the other sends", attempt(end.send, b"hello", socket.MSG_NOSIGNAL))


@case
def held_by_two_and_listened_at_by_one(w):
    end = w.tcp(w.port())
    with Child(end=end) as child:
        w.result("listen", child.tell("end.listen()"))
        w.result("SO_ACCEPTCONN", end.getsockopt(SOL, socket.SO_ACCEPTCONN))
        w.peer_connects(end)
        w.result("the other accepts", attempt(lambda: end.accept()[0]))
        child.begin("end.accept()[0]")
        time.sleep(0.2)
        w.result("shutdown", attempt(end.shutdown, socket.SHUT_RDWR))
        w.result("one that waits", child.answer())


@case
def held_by_two_and_closed_by_one(w):
    listener = w.listener()
    name = listener.getsockname()[:2]
    with Child(listener=listener) as child:
        child.begin("listener.accept()[0].recv(3)")
        time.sleep(0.2)
        listener.close()
        w.peer.do(f"e = socket.create_connection({name!r}); e.sendall(b'abc')")
        w.result("one that waits", child.answer())


@case
def datagrams_of_two(w):
    end = w.udp(w.port())
    there = w.peer_udp()
    with Child(end=end) as child:
        w.result("sendto", child.tell(f"end.sendto(b'one', {there!r})"))
        w.result("the peer answers", w.peer.tell("u.sendto(b'two', u.recvfrom(10)[1])"))
        w.result("the other hears", attempt(end.recv, 10))
        w.result("connect", child.tell(f"end.connect({there!r})"))
        w.result("the other sends", attempt(end.send, b"three"))
        w.result("the peer hears", w.peer.tell("u.recv(10)"))


@case
def an_event_set_of_two(w):
    end = w.connected()
    watcher = select.epoll()
    watcher.register(end, select.EPOLLIN)
    told = lambda: [words(bits) for _, bits in watcher.poll(0)]
    with Child(end=end, watcher=watcher) as child:
        theirs = lambda: child.tell("[words(bits) for _, bits in watcher.poll(0)]")
        w.peer.do("e.sendall(b'abc')")
        wait_for(told)
        w.result("both hear", [told(), theirs()])
        w.result("one reads", child.tell("end.recv(9)"))
        w.result("none hears", [told(), theirs()])
        w.result("one asks for something else", child.tell("watcher.modify(end, select.EPOLLOUT)"))
        w.result("it hears", theirs())
        w.result("the other hears", told())


@case
def an_event_set_of_one_of_two(w):
    end = w.connected()
    watcher = select.epoll()
    watcher.register(end, select.EPOLLIN)
    with Child(end=end, watcher=watcher) as child:
        child.begin("[words(bits) for _, bits in watcher.poll(3)]")
        time.sleep(0.2)
        end.shutdown(socket.SHUT_RD)
        w.result("it hears that the other has shut down reading", child.answer())
    end = w.connected()
    with Child(end=end) as child:
        # A set of its own, which tells of each change once.
        watcher = select.epoll()
        watcher.register(end, select.EPOLLOUT | select.EPOLLET)
        w.result("by edge", [words(bits) for _, bits in watcher.poll(3)])
        child.tell("end.shutdown(socket.SHUT_WR)")
        w.result("that the other has shut down writing", [words(bits) for _, bits in watcher.poll(3)])
