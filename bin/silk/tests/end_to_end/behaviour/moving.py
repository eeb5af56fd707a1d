"""How octets are moved: flags, time-outs, counts, vectors, and the calls that are not for sockets."""
import array
import ctypes
import stat

from suite import *

SIOCOUTQNSD = 0x894B


def peer_reads_all(w):
    """It has once nothing comes for so long, also where the machine is busy."""
    w.peer.do("e.settimeout(3)\ntry:\n while e.recv(1 << 20): pass\nexcept TimeoutError: pass")


@case
def empty_and_full(w):
    end = w.connected()
    end.setblocking(False)
    w.result("recv", attempt(end.recv, 1))
    w.result("send", attempt(end.send, b"hello"))
    w.result("an empty send", attempt(end.send, b""))
    w.result("an empty recv", attempt(end.recv, 0))
    try:
        while True:
            end.send(bytes(1 << 20))
    except BlockingIOError as error:
        w.result("send to a full one", name_of(error.errno))
    fill(end)
    w.result("poll", words(polled(end)))
    peer_reads_all(w)
    w.result("poll when the peer has read", events(end, select.POLLOUT))


def waited(end):
    """Microseconds for which there was text to send, and for which the peer's window held it back (TCP_INFO)."""
    return struct.unpack("2Q", end.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 184)[168:])


@case
def looking_at_what_is_to_come(w):
    """Who looks waits for as much as who takes."""
    end = w.connected()
    everything = socket.MSG_PEEK | socket.MSG_WAITALL
    looking = blocked(end.recv, 18, everything)
    w.peer.do("e.sendall(b'hello')")
    time.sleep(0.1)
    w.peer.do("e.sendall(b', and good day')")
    w.result("all of it", outcome_of(*looking))
    w.result("what can be taken then", attempt(end.recv, 100))
    looking = blocked(end.recv, 18, everything)
    w.peer.do("e.sendall(b'the rest'); e.close()")
    w.result("less, and the end", outcome_of(*looking))
    end = w.connected()
    end.setsockopt(SOL, socket.SO_RCVLOWAT, 6)
    looking = blocked(end.recv, 18, socket.MSG_PEEK)
    w.peer.do("e.sendall(b'hello')")
    time.sleep(0.1)
    w.peer.do("e.sendall(b'!')")
    w.result("as much as makes it readable", outcome_of(*looking))


@case
def from_a_pipe_that_is_not_waited_for(w):
    """The socket is."""
    end = w.connected()
    end.setblocking(False)
    fill(end)
    end.setblocking(True)
    out, into = os.pipe()
    os.write(into, b"hello")
    # SPLICE_F_NONBLOCK
    splicing = blocked(lambda: os.splice(out, end.fileno(), 5, flags=2))
    w.result("while there is no room", outcome_of(*splicing, 0.3))
    peer_reads_all(w)
    w.result("when there is", outcome_of(*splicing, SURELY))
    w.result("an empty pipe", attempt(lambda: os.splice(out, end.fileno(), 5, flags=2)))


@case
def several_messages_of_which_one_is_sent_in_part(w):
    end = w.connected()
    end.setsockopt(SOL, socket.SO_SNDTIMEO, struct.pack("qq", 0, 200_000))
    large = ctypes.create_string_buffer(1 << 26)
    vectors = [struct.pack("QQ", ctypes.addressof(large), size) for size in (len(large), 1000)]
    kept = [ctypes.create_string_buffer(vector) for vector in vectors]
    messages = b"".join(struct.pack("QIIQQQQiiQ", 0, 0, 0, ctypes.addressof(one), 1, 0, 0, 0, 0, 0) for one in kept)
    messages = ctypes.create_string_buffer(messages)
    w.peer.do("import threading; threading.Timer(0.3, lambda: [e.recv(1 << 20) for _ in range(99)]).start()")
    w.result("sent", answer(C.sendmmsg(end.fileno(), messages, 2, 0)))
    sent = struct.unpack_from("I", messages, 56)[0]
    w.result("a part of the first", 0 < sent < len(large))


@case
def all_of_more_than_there_is_room_for(w):
    """It comes in parts, each as soon as there is room: a second without any would end the call."""
    end = w.tcp()
    end.setsockopt(SOL, socket.SO_RCVBUF, 16 << 10)
    end.connect(w.peer_listens())
    w.peer.do("e = taken(l)")
    end.setsockopt(SOL, socket.SO_RCVTIMEO, struct.pack("qq", 1, 0))
    w.peer.do("import threading; threading.Thread(target=e.sendall, args=(bytes(400_000),), daemon=True).start()")
    w.result("recv", attempt(end.recv, 400_000, socket.MSG_WAITALL))


@case
def more_of_a_file_than_there_is(w):
    """Nobody waits until there is room for what is behind its end."""
    end = w.connected()
    end.setsockopt(SOL, socket.SO_SNDBUF, 200_000)
    w.peer.do("e.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)")
    with open("a-long-file", "wb+") as file:
        file.write(bytes(200_000))
        file.flush()
        sending = blocked(os.sendfile, end.fileno(), file.fileno(), 0, 1 << 30)
        w.result("sendfile", outcome_of(*sending))
    os.unlink("a-long-file")


@case
def waiting_for_the_peer(w):
    end = w.connected()
    w.result("at first", waited(end))
    end.setblocking(False)
    wait_for(lambda: attempt(end.send, bytes(1 << 20)) == "EAGAIN" and waited(end)[1] > 100_000)
    busy, held = waited(end)
    w.result("the peer held it back, for a part of the time", 0 < held <= busy)
    peer_reads_all(w)
    busy, held = waited(end)
    time.sleep(0.1)
    w.result("no more when all is acknowledged", waited(end) == (busy, held))


@case
def what_follows(w):
    """MSG_MORE: what is written waits for more, and goes with it, or alone after a while."""
    for _ in range(9):
        end = w.connected()
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        begun = time.monotonic()
        first = attempt(end.send, b"head", socket.MSG_MORE)
        moment = w.peer.tell("bool(select.select([e], [], [], 0.05)[0])")
        cork = end.getsockopt(socket.IPPROTO_TCP, socket.TCP_CORK)
        second, last = attempt(end.send, b"er", socket.MSG_MORE), attempt(end.send, b" and body")
        # What takes 200 ms, on a machine that has other things to do, goes alone.
        if time.monotonic() - begun < 0.15:
            break
    w.result("the first part", first)
    w.result("the peer in a moment", moment)
    w.result("the cork of the program's own", cork)
    w.result("the second", second)
    w.result("the last", last)
    w.result("the peer reads at once", w.peer.tell("e.recv(100).decode()"))
    w.result("one that nothing follows", attempt(end.send, b"alone", socket.MSG_MORE))
    w.result("the peer reads later", w.peer.tell("e.recv(100).decode()"))
    w.result("one before the end", attempt(end.send, b"bye", socket.MSG_MORE))
    end.close()
    w.result("the peer reads the end", w.peer.tell("all_of(e, 100).decode()"))


@case
def no_room(w):
    """Who has room for nothing waits all the same, but in `read`."""
    end = w.connected()
    end.setblocking(False)
    libc = ctypes.CDLL(None, use_errno=True)
    say = lambda answer: answer if answer >= 0 else name_of(ctypes.get_errno())
    w.result("recv of nothing", say(libc.recv(end.fileno(), bytes(1), 0, 0)))
    w.result("read of nothing", say(libc.read(end.fileno(), bytes(1), 0)))
    w.peer.do("e.send(b'hello')")
    wait_for(lambda: polled(end) & select.POLLIN)
    w.result("recv of nothing when there is something", say(libc.recv(end.fileno(), bytes(1), 0, 0)))
    w.result("it is still there", attempt(end.recv, 10))


@case
def splicing(w):
    end = w.connected()
    source, sink = os.pipe()
    os.write(sink, b"hello")
    w.result("from a pipe", attempt(os.splice, source, end.fileno(), 100))
    w.result("what came", w.peer.tell("outcome(e.recv, 100)"))
    w.result("of an empty one", attempt(os.splice, source, end.fileno(), 100, None, None, os.SPLICE_F_NONBLOCK))
    w.result("nothing of it", attempt(os.splice, source, end.fileno(), 0))
    w.result("with a flag that is none", attempt(os.splice, source, end.fileno(), 100, None, None, 1 << 8))
    w.result("less than nothing of it", answer(C.splice(source, None, end.fileno(), None, ctypes.c_size_t(-1), 0)))
    w.result("at a place", attempt(os.splice, source, end.fileno(), 100, 0))
    w.result("at a place of the socket's", attempt(os.splice, source, end.fileno(), 100, None, 0))
    with open(__file__) as file:
        w.result("a file", attempt(os.splice, file.fileno(), end.fileno(), 100))
        w.result("a file at a place", attempt(os.splice, file.fileno(), end.fileno(), 100, 0))
        w.result("nothing of a file at a place", attempt(os.splice, file.fileno(), end.fileno(), 0, 0))
    w.result("to itself", attempt(os.splice, end.fileno(), end.fileno(), 100))
    os.write(sink, b"more")
    listener = w.listener()
    w.result("to a listener", attempt(os.splice, source, listener.fileno(), 100))
    w.result("sendfile from a pipe", attempt(os.sendfile, end.fileno(), source, None, 100))
    w.result("sendfile from a socket", attempt(os.sendfile, end.fileno(), w.connected().fileno(), None, 100))
    w.result("what is in the pipe", attempt(os.read, source, 100))
    os.close(sink)
    w.result("at the end", attempt(os.splice, source, end.fileno(), 100))
    w.peer.do("reset(e)")
    wait_for(lambda: polled(end, ANY_EVENT) & select.POLLERR)
    w.result("at the end, of a broken connection", attempt(os.splice, source, end.fileno(), 100))
    os.close(source)


@case
def splicing_to_datagrams(w):
    """All that a pipe holds is one, whatever was written to it at once, and stays there when it cannot be sent."""
    end = w.udp(w.port())
    source, sink = os.pipe()
    send = lambda count, flags=0: attempt(os.splice, source, end.fileno(), count, None, None, flags)
    # The end of a page, and another.
    os.write(sink, bytes(4000))
    os.read(source, 3500)
    os.write(sink, bytes(600))
    w.result("to nobody", send(10_000))
    end.connect(w.peer_udp())
    w.result("all that there is", send(10_000))
    w.result("of an empty pipe", send(100, os.SPLICE_F_NONBLOCK))
    os.write(sink, b"hello, and good day")
    w.result("some of it", send(5))
    w.result("as a part", send(5, os.SPLICE_F_MORE))
    w.result("with what is left", send(100))
    end.setsockopt(socket.IPPROTO_UDP, 1, 1)
    os.write(sink, b"corked")
    w.result("corked", send(100))
    end.setsockopt(socket.IPPROTO_UDP, 1, 0)
    w.result("peer reads", w.peer.tell("[len(u.recv(2000))] + [u.recv(100) for _ in range(3)]"))
    os.write(sink, bytes(65_536))
    w.result("more than any has", send(65_536))
    w.result("it is still there", len(os.read(source, 100_000)))
    end.shutdown(socket.SHUT_WR)
    os.write(sink, b"too late")
    w.result("when it is shut down", send(100))
    w.result("that is, too", os.read(source, 100))
    os.close(sink)
    w.result("at the pipe's end", send(100))
    os.close(source)


@case
def vectors_with_flags(w):
    """preadv2 and pwritev2: most of their flags mean nothing to a socket."""
    end = w.connected()
    w.peer.do("e.sendall(b'hello, world')")
    readable(end)
    kinds = {"high priority": 1, "data": 2, "all": 4, "at once": 8, "at the end": 16, "none of these": 1 << 20}
    for name, flag in kinds.items():
        w.result(f"written: {name}", attempt(os.pwritev, end.fileno(), [b"a", b"b"], -1, flag))
        room = bytearray(2)
        w.result(f"read: {name}", (attempt(os.preadv, end.fileno(), [room], -1, flag), bytes(room)))
        w.result(f"at a place: {name}", attempt(os.preadv, end.fileno(), [room], 3, flag))
    end.recv(100)
    w.result("nothing at once", attempt(os.preadv, end.fileno(), [room], -1, 8))
    w.result("the peer reads", w.peer.tell("outcome(e.recv, 100)"))


@case
def peeking(w):
    end = w.connected()
    w.peer.do("e.sendall(b'hello')")
    readable(end)
    w.result("peek", attempt(end.recv, 3, socket.MSG_PEEK))
    w.result("peek again", attempt(end.recv, 100, socket.MSG_PEEK))
    w.result("recv", attempt(end.recv, 100))
    w.result("peek at nothing", attempt(end.recv, 100, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    w.peer.do("e.close()")
    events(end, select.POLLRDHUP)
    w.result("peek at the end", attempt(end.recv, 100, socket.MSG_PEEK))


@case
def waiting_for_all(w):
    end = w.connected()
    w.peer.do("import threading; threading.Timer(0.2, lambda: e.sendall(b'world')).start(); e.sendall(b'hello ')")
    w.result("recv", attempt(end.recv, 11, socket.MSG_WAITALL))
    w.peer.do("e.sendall(b'short'); e.close()")
    w.result("recv at the end", attempt(end.recv, 100, socket.MSG_WAITALL))
    w.result("recv behind it", attempt(end.recv, 100, socket.MSG_WAITALL))


@case
def waiting_for_all_but_not_long(w):
    end = w.connected()
    end.setsockopt(SOL, socket.SO_RCVTIMEO, struct.pack("ll", 0, 300_000))
    w.peer.do("e.sendall(b'some')")
    w.result("recv", attempt(end.recv, 100, socket.MSG_WAITALL))
    w.result("recv again", attempt(end.recv, 100, socket.MSG_WAITALL))
    w.peer.do("e.sendall(b'more')")
    readable(end)
    flags = socket.MSG_WAITALL | socket.MSG_DONTWAIT
    w.result("without waiting", attempt(end.recv, 100, flags))


@case
def truncating_a_stream(w):
    end = w.connected()
    w.peer.do("e.sendall(b'discard keep')")
    readable(end)
    room = ctypes.create_string_buffer(b"untouched")
    w.result("recv", answer(C.recv(end.fileno(), room, 8, socket.MSG_TRUNC)))
    w.result("buffer", room.value)
    w.result("recv of the rest", attempt(end.recv, 100))


def ioctl(end, request):
    room = array.array("i", [-1])
    try:
        fcntl.ioctl(end.fileno(), request, room)
    except OSError as error:
        return name_of(error.errno)
    return room[0]


@case
def receive_time_out(w):
    end = w.connected()
    end.setsockopt(SOL, socket.SO_RCVTIMEO, struct.pack("ll", 0, 200_000))
    w.result("recv", attempt(end.recv, 1))
    w.result("read", attempt(os.read, end.fileno(), 1))
    w.result("told", struct.unpack("ll", end.getsockopt(SOL, socket.SO_RCVTIMEO, 16)))


@case
def send_time_out(w):
    end = w.connected()
    end.setsockopt(SOL, socket.SO_SNDTIMEO, struct.pack("ll", 0, 300_000))
    sent = end.send(bytes(64 << 20))
    w.result("some was sent", 0 < sent < 64 << 20)
    w.result("send again", wait_for(lambda: attempt(end.send, bytes(64 << 20)) == "EAGAIN"))


@case
def low_water_mark(w):
    end = w.connected()
    end.setsockopt(SOL, socket.SO_RCVLOWAT, 5)
    w.peer.do("e.sendall(b'abc')")
    wait_for(lambda: ioctl(end, termios.FIONREAD) == 3)
    w.result("poll below", words(polled(end)))
    w.result("recv that may not wait", attempt(end.recv, 2, socket.MSG_DONTWAIT))
    w.peer.do("e.sendall(b'defgh')")
    wait_for(lambda: ioctl(end, termios.FIONREAD) == 6)
    w.result("poll at it", readable(end))
    w.result("recv", attempt(end.recv, 100))
    w.result("told", end.getsockopt(SOL, socket.SO_RCVLOWAT))
    w.peer.do("import threading; threading.Timer(0.3, lambda: e.sendall(b'abcde')).start()")
    w.result("recv that waits", attempt(end.recv, 100))
    w.peer.do("e.sendall(b'ab')")
    wait_for(lambda: ioctl(end, termios.FIONREAD) == 2)
    w.result("recv of less", attempt(end.recv, 2))
    w.result("more than there can be", attempt(end.setsockopt, SOL, socket.SO_RCVLOWAT, 1 << 30))
    w.result("none", attempt(end.setsockopt, SOL, socket.SO_RCVLOWAT, 0))
    w.result("told of none", end.getsockopt(SOL, socket.SO_RCVLOWAT))
    end.setsockopt(SOL, socket.SO_RCVLOWAT, 5)
    w.peer.do("e.sendall(b'x'); e.close()")
    w.result("poll below at the end", events(end, select.POLLIN))


@case
def buffers_of_nothing_and_of_less(w):
    for name in ("SO_RCVBUF", "SO_SNDBUF"):
        for what, end in (("new", w.tcp()), ("connected", w.connected()), ("datagrams", w.udp(w.port()))):
            for size in (0, -1, -2147483648):
                said = attempt(end.setsockopt, SOL, getattr(socket, name), size)
                told = end.getsockopt(SOL, getattr(socket, name))
                w.result(f"{name} {size} of {what}", (said, "little" if told < 5000 else "much"))


@case
def marks_that_are_moved(w):
    """Who waits in an event set, or to send, is told."""
    end = w.connected()
    end.setblocking(False)
    events_of = select.epoll()
    events_of.register(end, select.EPOLLIN)
    end.setsockopt(SOL, socket.SO_RCVLOWAT, 10)
    w.peer.do("e.sendall(b'abcde')")
    wait_for(lambda: ioctl(end, termios.FIONREAD) == 5)
    w.result("below", events_of.poll(0.1))
    end.setsockopt(SOL, socket.SO_RCVLOWAT, 5)
    w.result("at it", [event for _, event in events_of.poll(0)])
    end = w.connected()
    end.setsockopt(SOL, socket.SO_SNDBUF, 16 << 10)
    end.setblocking(False)
    events_of = select.epoll()
    fill(end)
    events_of.register(end, select.EPOLLOUT)
    w.result("full", events_of.poll(0.1))
    end.setsockopt(SOL, socket.SO_SNDBUF, 200_000)
    w.result("with more room", [event for _, event in events_of.poll(0)])
    end.setsockopt(TCP, socket.TCP_NOTSENT_LOWAT, 1)
    w.result("with much that is not sent", events_of.poll(0.1))
    end.setsockopt(TCP, socket.TCP_NOTSENT_LOWAT, 0)
    w.result("without a limit", [event for _, event in events_of.poll(0)])


@case
def counts(w):
    end = w.connected()
    w.result("FIONREAD of none", ioctl(end, termios.FIONREAD))
    w.peer.do("e.sendall(b'hello')")
    wait_for(lambda: ioctl(end, termios.FIONREAD) == 5)
    w.result("FIONREAD", ioctl(end, termios.FIONREAD))
    end.sendall(b"hello")
    wait_for(lambda: ioctl(end, termios.TIOCOUTQ) == 0)
    w.result("TIOCOUTQ when all has arrived", (ioctl(end, termios.TIOCOUTQ), ioctl(end, SIOCOUTQNSD)))
    full = w.connected()
    full.setblocking(False)
    fill(full)
    w.result("not acknowledged and not sent", [ioctl(full, of) > 50_000 for of in (termios.TIOCOUTQ, SIOCOUTQNSD)])
    w.result("of a new one", (ioctl(w.tcp(), termios.FIONREAD), ioctl(w.tcp(), termios.TIOCOUTQ)))
    listener = w.listener()
    datagrams = w.udp(w.port())
    w.result("of datagrams", (ioctl(datagrams, termios.FIONREAD), ioctl(datagrams, SIOCOUTQNSD)))
    w.result("of a listener", (ioctl(listener, termios.FIONREAD), ioctl(listener, termios.TIOCOUTQ)))
    w.peer.do("e.recv(10); e.close()")
    events(end, select.POLLRDHUP)
    w.result("FIONREAD at the end", ioctl(end, termios.FIONREAD))
    end.shutdown(socket.SHUT_WR)
    wait_for(lambda: ioctl(end, termios.TIOCOUTQ) == 0)
    w.result("TIOCOUTQ at the end", ioctl(end, termios.TIOCOUTQ))


@case
def blocking_by_ioctl(w):
    end = w.connected()
    fcntl.ioctl(end.fileno(), termios.FIONBIO, array.array("i", [1]))
    w.result("recv", attempt(end.recv, 1))
    w.result("O_NONBLOCK", bool(fcntl.fcntl(end, fcntl.F_GETFL) & os.O_NONBLOCK))
    w.result("access mode", fcntl.fcntl(end, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDWR)


@case
def not_connected(w):
    end = w.tcp()
    w.result("recv", attempt(end.recv, 1))
    w.result("send", attempt(end.send, b"x"))
    w.result("read", attempt(os.read, end.fileno(), 1))
    w.result("write", attempt(os.write, end.fileno(), b"x"))
    listener = w.listener()
    w.result("recv of a listener", attempt(listener.recv, 1))
    w.result("send of a listener", attempt(listener.send, b"x"))


@case
def vectors(w):
    end = w.connected()
    w.result("sendmsg", attempt(end.sendmsg, [b"one ", b"", b"two ", b"three"]))
    w.result("writev", attempt(os.writev, end.fileno(), [b" four", b" five"]))
    w.result("peer reads", w.peer.tell("all_of(e, 23)"))
    w.result("too many", attempt(end.sendmsg, [b"x"] * 1025))
    w.result("none", attempt(end.sendmsg, []))
    w.peer.do("e.sendall(b'abcdefgh')")
    readable(end)
    parts = [bytearray(3), bytearray(0), bytearray(4)]
    octets, extra, flags, who = end.recvmsg_into(parts, 100)
    w.result("recvmsg", (octets, bytes(parts[0]), bytes(parts[2]), extra, flags))
    w.result("who", who)
    more = [bytearray(1), bytearray(9)]
    w.result("readv", (os.readv(end.fileno(), more), bytes(more[0])))


@case
def how_much_is_left(w):
    end = w.connected()
    w.result("TCP_INQ", (attempt(end.setsockopt, TCP, 36, 1), end.getsockopt(TCP, 36)))
    w.peer.do("e.sendall(b'abcdefgh')")
    wait_for(lambda: len(end.recv(9, socket.MSG_PEEK)) == 8)

    def told(size):
        read, control, flags, _ = end.recvmsg(size, 100)
        return read, [(level, kind, struct.unpack("i", left)[0]) for level, kind, left in control], flags
    w.result("a part", told(3))
    w.result("without room", end.recvmsg(2)[2])
    w.result("the rest", told(100))
    w.peer.do("e.sendall(b'ij'); e.shutdown(socket.SHUT_WR)")
    wait_for(lambda: polled(end) & select.POLLRDHUP)
    w.result("before the end", told(2))
    w.result("the end", told(2))


@case
def to_whom_and_from_whom(w):
    end = w.connected()
    w.result("sendto", attempt(end.sendto, b"hello", (w.there, 1)))
    w.result("peer reads", w.peer.tell("outcome(e.recv, 10)"))
    w.peer.do("e.sendall(b'abc')")
    readable(end)
    w.result("recvfrom", attempt(end.recvfrom, 10))
    w.result("error queue", attempt(end.recvmsg, 10, 100, socket.MSG_ERRQUEUE))


@case
def calls_for_files(w):
    end = w.connected()
    fd = end.fileno()
    w.result("lseek", attempt(os.lseek, fd, 0, os.SEEK_SET))
    w.result("pread", attempt(os.pread, fd, 1, 0))
    w.result("pwrite", attempt(os.pwrite, fd, b"x", 0))
    for place in (-1, -5):
        w.result(f"pread, {place}", attempt(os.pread, fd, 1, place))
        w.result(f"pwrite, {place}", attempt(os.pwrite, fd, b"x", place))
    w.result("preadv, -5", attempt(os.preadv, fd, [bytearray(1)], -5))
    w.result("pwritev, -5", attempt(os.pwritev, fd, [b"x"], -5))
    w.result("ftruncate", attempt(os.ftruncate, fd, 0))
    w.result("fsync", attempt(os.fsync, fd))
    w.result("isatty", os.isatty(fd))
    w.result("is a socket", stat.S_ISSOCK(os.fstat(fd).st_mode))
    w.result("sendfile", send_a_file(end))
    w.result("peer reads", w.peer.tell("all_of(e, 8)"))


def send_a_file(end):
    name = os.path.abspath("a-file")
    with open(name, "wb+") as file:
        file.write(b"contents!")
        file.flush()
        sent = attempt(os.sendfile, end.fileno(), file.fileno(), 1, 100)
    os.unlink(name)
    return sent


@case
def files_where_they_are_not_for_streams_that_go(w):
    """A datagram is a file's; what has nothing to say is not refused."""
    end = w.udp(w.port())
    with open("another-file", "wb+") as file:
        file.write(b"contents!")
        file.flush()
        fd = file.fileno()
        w.result("to nobody", attempt(os.sendfile, end.fileno(), fd, 0, 5))
        end.connect(w.peer_udp())
        w.result("from where it stands", attempt(os.sendfile, end.fileno(), fd, None, 100))
        os.lseek(fd, 3, os.SEEK_SET)
        w.result("from further on", attempt(os.sendfile, end.fileno(), fd, None, 4))
        w.result("it stands behind that", os.lseek(fd, 0, os.SEEK_CUR))
        w.result("from a place", attempt(os.sendfile, end.fileno(), fd, 2, 100))
        w.result("from its end", attempt(os.sendfile, end.fileno(), fd, 9, 100))
        w.result("peer reads", w.peer.tell("[u.recv(100) for _ in range(2)]"))
        end.setsockopt(socket.IPPROTO_UDP, 1, 1)
        end.send(b"to ")
        w.result("as a part", attempt(os.sendfile, end.fileno(), fd, 0, 4))
        end.setsockopt(socket.IPPROTO_UDP, 1, 0)
        w.result("peer reads the whole", w.peer.tell("u.recv(100)"))
        listener, shut = w.listener(), w.connected()
        shut.shutdown(socket.SHUT_WR)
        for what, other in (("a listener", listener), ("one that is shut down", shut)):
            w.result(f"to {what}", attempt(os.sendfile, other.fileno(), fd, 0, 5))
            w.result(f"nothing to {what}", attempt(os.sendfile, other.fileno(), fd, 9, 5))
    os.unlink("another-file")


@case
def files_that_tell_no_length(w):
    """They have something all the same, which is not at its end where there is no room for it."""
    end = w.connected()
    end.setblocking(False)
    with open("/proc/meminfo") as file:
        w.result("sendfile", attempt(os.sendfile, end.fileno(), file.fileno(), 0, 8))
        w.result("peer reads", w.peer.tell("all_of(e, 8)"))
        fill(end)
        w.result("sendfile without room", attempt(os.sendfile, end.fileno(), file.fileno(), 0, 8))
        end.shutdown(socket.SHUT_WR)
        w.result("sendfile when it is shut down", attempt(os.sendfile, end.fileno(), file.fileno(), 0, 8))
        w.result("less than nothing", answer(C.sendfile(end.fileno(), file.fileno(), None, ctypes.c_size_t(-1))))


@case
def bad_arguments(w):
    end = w.connected()
    fd = end.fileno()
    w.result("recv with an unknown flag", attempt(end.recv, 1, 0x8000000 | socket.MSG_DONTWAIT))
    w.result("option with too little", attempt(end.setsockopt, TCP, socket.TCP_NODELAY, b"\1"))
    w.result("unknown option", attempt(end.setsockopt, TCP, 999, 1))
    w.result("unknown option asked for", attempt(end.getsockopt, TCP, 999))
    w.result("unknown level", attempt(end.getsockopt, 999, 1))
    w.result("an option to be read only", attempt(end.setsockopt, SOL, socket.SO_TYPE, 1))
    os.close(os.dup(fd))
    w.result("a closed descriptor", attempt(os.read, 999, 1))


@case
def what_a_socket_is(w):
    names = ("SO_TYPE", "SO_DOMAIN", "SO_PROTOCOL", "SO_ACCEPTCONN", "SO_ERROR", "SO_KEEPALIVE", "SO_REUSEADDR",
             "SO_BROADCAST", "SO_OOBINLINE", "SO_RCVLOWAT")
    for kind, end in (("new", socket.socket(w.family)), ("listener", w.listener()), ("connection", w.connected())):
        w.result(kind, [end.getsockopt(SOL, getattr(socket, name)) for name in names])
    w.result("datagrams", [w.udp(w.port()).getsockopt(SOL, getattr(socket, name)) for name in names])


@case
def many_messages_at_once(w):
    """sendmmsg and recvmmsg, by hand: a vector of one buffer each."""
    end = w.udp()
    end.connect(w.peer_udp())
    texts = [ctypes.create_string_buffer(text) for text in (b"one", b"two", b"three")]
    w.result("sendmmsg", answer(C.sendmmsg(end.fileno(), messages(texts), 3, 0)))
    w.result("peer reads", w.peer.tell("[u.recv(100) for _ in range(3)]"))
    w.peer.do("me = %r; [u.sendto(text, me) for text in (b'uno', b'due')]" % (end.getsockname()[:2],))
    time.sleep(0.2)
    room = [ctypes.create_string_buffer(9) for _ in range(3)]
    w.result("recvmmsg", answer(C.recvmmsg(end.fileno(), messages(room), 3, socket.MSG_DONTWAIT, None)))
    w.result("texts", [text.value for text in room])


@case
def more_messages_at_once_than_can_be_sent_so(w):
    end = w.udp(w.port())
    end.connect(w.peer_udp())
    many = 1100
    room = [ctypes.create_string_buffer(3) for _ in range(many)]
    asked = messages(room)
    receiving = blocked(C.recvmmsg, end.fileno(), asked, many, 0, None)
    w.peer.do("me = %r\nfor n in range(1100):\n u.sendto(b'%%d' %% (n %% 10), me)\n if n %% 50 == 0: time.sleep(0.01)" % (end.getsockname()[:2],))
    w.result("recvmmsg", outcome_of(*receiving))
    w.result("texts", [text.value for text in (room[0], room[1023], room[1024], room[1099])])
    texts = [ctypes.create_string_buffer(b"x") for _ in range(many)]
    w.result("sendmmsg", answer(C.sendmmsg(end.fileno(), messages(texts), many, 0)))
    # What came when nobody is there any more would be answered, and few such answers are given in a second.
    w.peer.do("u.settimeout(0.3)\ntry:\n while u.recv(9): pass\nexcept TimeoutError: pass")


@case
def as_many_messages_as_there_is_time_for(w):
    """What is left of the limit is told; that nobody is there is told by the next call."""
    end = w.udp(w.port())
    end.connect(w.peer_udp())
    room = [ctypes.create_string_buffer(9) for _ in range(3)]

    def ask(count, *time):
        limit = ctypes.create_string_buffer(struct.pack("qq", *time), 16)
        said = answer(C.recvmmsg(end.fileno(), messages(room), count, socket.MSG_DONTWAIT, limit))
        return said, struct.unpack("qq", limit.raw)

    w.peer.do("me = %r; [u.sendto(text, me) for text in (b'uno', b'due', b'tre')]" % (end.getsockname()[:2],))
    wait_for(lambda: attempt(end.recv, 9, socket.MSG_PEEK | socket.MSG_DONTWAIT) != "EAGAIN")
    settle()
    w.result("no time", ask(3, 0, 0))
    w.result("no time at all", ask(3, -1, 0))
    w.result("a time that is none", ask(3, 0, 1_000_000_000))
    said, left = ask(3, 100, 0)
    w.result("time", (said, (98, 0) < left < (100, 0)))
    w.result("texts", [text.value for text in room])
    nobody = w.udp()
    nobody.connect((w.there, 9))
    nobody.send(b"hello")
    wait_for(lambda: select.select([nobody], [], [], 0)[0])
    w.result("an error", answer(C.recvmmsg(nobody.fileno(), messages(room), 3, socket.MSG_DONTWAIT, None)))


def messages(buffers):
    packed = b""
    keep = messages.keep = []
    for text in buffers:
        vector = ctypes.create_string_buffer(struct.pack("PN", ctypes.addressof(text), len(text) - 1))
        keep.append(vector)
        packed += struct.pack("PIxxxxPNPNixxxxIxxxx", 0, 0, ctypes.addressof(vector), 1, 0, 0, 0, 0)
    return ctypes.create_string_buffer(packed)
