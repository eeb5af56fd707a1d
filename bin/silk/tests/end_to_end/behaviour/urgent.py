"""Urgent data: what of it can be sent, read in its place and out of band, asked after and waited for."""
import array
import threading

from suite import *

OOB = socket.MSG_OOB
SIOCATMARK = 0x8905
FIONREAD = 0x541B


def asked(end, request):
    room = array.array("i", [-1])
    fcntl.ioctl(end.fileno(), request, room)
    return room[0]


def about(end):
    """What can be known of an end's urgent data without reading any."""
    at = C.sockatmark(end.fileno())
    return f"{words(polled(end))}, at the mark {asked(end, SIOCATMARK)} {at}, {asked(end, FIONREAD)} before it"


def urgent(end):
    wait_for(lambda: polled(end) & select.POLLPRI)


@case
def looking_as_far_as_the_mark(w):
    end = w.connected()
    w.peer.do("e.sendall(b'abc'); e.send(b'!', socket.MSG_OOB); e.sendall(b'def')")
    urgent(end)
    wait_for(lambda: asked(end, FIONREAD) == 3)
    w.result("who looks for more", attempt(end.recv, 6, socket.MSG_PEEK | socket.MSG_WAITALL))
    w.result("who takes it", attempt(end.recv, 6, socket.MSG_WAITALL))
    w.result("behind it", attempt(end.recv, 3, socket.MSG_PEEK | socket.MSG_WAITALL))


@case
def urgent_data(w):
    end = w.connected()
    w.result("recv of none", attempt(end.recv, 1, OOB))
    w.result("about none", about(end))
    w.peer.do("e.send(b'abc'); e.send(b'd', socket.MSG_OOB); e.send(b'efg')")
    urgent(end)
    wait_for(lambda: attempt(end.recv, 100, socket.MSG_PEEK) == "b'abc'")
    w.result("about it", about(end))
    w.result("peek of it", attempt(end.recv, 10, OOB | socket.MSG_PEEK))
    w.result("recv of nothing of it", attempt(end.recv, 0, OOB))
    w.result("recv of it", attempt(end.recv, 10, OOB))
    w.result("again", attempt(end.recv, 10, OOB))
    w.result("about it when it is read", about(end))
    w.result("recv of all", attempt(end.recv, 100, socket.MSG_WAITALL))
    readable(end)
    w.result("at the mark", about(end))
    w.result("peek beyond the mark", attempt(end.recv, 100, socket.MSG_PEEK))
    w.result("still", about(end))
    w.result("recv beyond the mark", attempt(end.recv, 2))
    w.result("beyond the mark", about(end))
    w.result("recv of none any more", attempt(end.recv, 10, OOB))
    w.result("recv of the rest", attempt(end.recv, 100))


@case
def urgent_data_that_nobody_reads(w):
    end = w.accepted()
    w.peer.do("e.send(b'ab'); e.send(b'cd', socket.MSG_OOB)")
    urgent(end)
    w.result("about it", about(end))
    w.result("recv up to it", attempt(end.recv, 100))
    w.result("recv of nothing, where it lies", attempt(end.recv, 0, socket.MSG_DONTWAIT))
    w.result("recv up to it again", attempt(end.recv, 100, socket.MSG_DONTWAIT))
    w.result("recv of nothing, behind it", attempt(end.recv, 0, socket.MSG_DONTWAIT))
    w.result("at the mark", about(end))
    w.result("recv of it, too late", attempt(end.recv, 1, OOB))
    w.peer.do("e.send(b'ef')")
    w.result("recv of what follows", attempt(end.recv, 100))
    w.peer.do("e.send(b'g', socket.MSG_OOB)")
    urgent(end)
    w.result("alone", about(end))
    w.result("recv of none before it", attempt(end.recv, 100, socket.MSG_DONTWAIT | socket.MSG_PEEK))
    w.result("recv of it", attempt(end.recv, 1, OOB))
    w.result("about it when it is read", about(end))
    w.peer.do("e.send(b'h')")
    w.result("recv of the next", attempt(end.recv, 1))
    w.peer.do("e.send(b'i', socket.MSG_OOB); e.shutdown(socket.SHUT_WR)")
    urgent(end)
    readable(end)
    w.result("before the end", about(end))
    w.result("recv of the end", attempt(end.recv, 1))
    w.result("recv of it at the end", attempt(end.recv, 1, OOB))


@case
def urgent_data_inline(w):
    end = w.connected()
    w.result("by default", end.getsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE))
    end.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
    w.result("set", end.getsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE))
    w.peer.do("e.send(b'abc'); e.send(b'd', socket.MSG_OOB); e.send(b'efg')")
    urgent(end)
    wait_for(lambda: asked(end, FIONREAD) == 7)
    w.result("about it", about(end))
    w.result("recv of it out of band", attempt(end.recv, 1, OOB))
    w.result("recv up to it", attempt(end.recv, 100))
    w.result("at the mark", about(end))
    w.result("recv of it and what follows", attempt(end.recv, 100))
    w.result("beyond the mark", about(end))
    w.peer.do("e.send(b'h', socket.MSG_OOB)")
    urgent(end)
    w.result("alone", about(end))
    end.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 0)
    w.result("no longer inline", about(end))
    w.result("recv of it", attempt(end.recv, 1, OOB))


@case
def urgent_data_inline_of_an_accepted_one(w):
    listener = w.listener()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
    w.peer_connects(listener)
    end, _ = listener.accept()
    w.result("inherited", end.getsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE))
    w.peer.do("e.send(b'a', socket.MSG_OOB)")
    urgent(end)
    w.result("recv", attempt(end.recv, 10))


@case
def more_urgent_data(w):
    end = w.connected()
    w.peer.do("e.send(b'ab', socket.MSG_OOB)")
    urgent(end)
    w.result("recv of the first", attempt(end.recv, 1, OOB))
    w.peer.do("e.send(b'cd', socket.MSG_OOB)")
    urgent(end)
    w.result("about the second", about(end))
    w.result("recv of the second", attempt(end.recv, 1, OOB))
    w.result("recv", attempt(end.recv, 10))
    w.result("about it", about(end))
    w.peer.do("e.send(b'e', socket.MSG_OOB)")
    urgent(end)
    w.peer.do("e.send(b'f', socket.MSG_OOB); e.send(b'g')")
    wait_for(lambda: asked(end, FIONREAD) == 1)
    w.result("only the last is out of band", attempt(end.recv, 10, OOB))
    w.result("recv beyond the last", attempt(end.recv, 10))
    w.peer.do("e.send(b'h', socket.MSG_OOB)")
    urgent(end)
    w.peer.do("e.send(b'i'); e.send(b'j', socket.MSG_OOB)")
    wait_for(lambda: attempt(end.recv, 1, OOB | socket.MSG_PEEK) == "b'j'")
    w.result("about one that was not reached", about(end))
    w.result("recv up to the last", attempt(end.recv, 10))
    w.result("nothing after it", attempt(end.recv, 10, socket.MSG_DONTWAIT))


@case
def sending_urgent_data(w):
    end = w.connected()
    tell = w.peer.tell
    w.result("send", attempt(end.send, b"abc", OOB))
    w.peer.do("s = select.poll(); s.register(e, select.POLLPRI); s.poll(5000)")
    w.result("peer reads it", tell("outcome(e.recv, 1, socket.MSG_OOB)"))
    w.result("peer reads the others", tell("outcome(e.recv, 10)"))
    w.result("sends", [attempt(end.send, b"d"), attempt(end.send, b"e", OOB), attempt(end.send, b"f")])
    w.peer.do("s.poll(5000)")
    w.result("peer reads up to it", tell("outcome(e.recv, 10)"))
    w.result("peer reads it", tell("outcome(e.recv, 1, socket.MSG_OOB)"))
    w.result("peer reads what follows", tell("outcome(e.recv, 10)"))
    w.result("sendmsg", attempt(end.sendmsg, [b"gh", b"i"], [], OOB))
    w.peer.do("s.poll(5000)")
    w.result("peer reads it", tell("outcome(e.recv, 1, socket.MSG_OOB)"))
    w.result("peer reads the others", tell("outcome(e.recv, 10)"))
    w.result("nothing", attempt(end.send, b"", OOB))
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    w.result("corked", [attempt(end.send, b"j"), attempt(end.send, b"k", OOB)])
    w.peer.do("s.poll(5000)")
    w.result("peer reads it", tell("outcome(e.recv, 1, socket.MSG_OOB)"))
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)
    w.peer.do("e.recv(10); t = b''")
    w.result("much", attempt(end.sendall, bytes(100_000), OOB))
    w.peer.do("e.settimeout(1)\nwhile len(t) < 99_999: t += e.recv(100_000)")
    w.result("peer reads all but it", tell("len(t)"))
    w.result("peer reads it", tell("outcome(e.recv, 1, socket.MSG_OOB)"))
    w.result("after shutdown", [attempt(end.shutdown, socket.SHUT_WR), attempt(end.send, b"l", OOB | socket.MSG_NOSIGNAL)])


@case
def urgent_data_of_messages(w):
    end = w.connected()
    w.peer.do("e.send(b'a', socket.MSG_OOB)")
    urgent(end)
    data, _, flags, _ = end.recvmsg(10, 0, OOB | socket.MSG_PEEK)
    w.result("recvmsg", (data, flags == OOB))
    data, _, flags, _ = end.recvmsg(0, 0, OOB | socket.MSG_PEEK)
    w.result("recvmsg of nothing", (data, flags == OOB | socket.MSG_TRUNC))
    w.result("recvfrom", attempt(end.recvfrom, 10, OOB)[:8])
    w.result("on a listener", attempt(w.listener().recv, 1, OOB))
    w.result("on a new one", attempt(w.tcp().recv, 1, OOB))
    w.result("send on a new one", attempt(w.tcp().send, b"a", OOB | socket.MSG_NOSIGNAL))


@case
def waiting_for_urgent_data(w):
    end = w.connected()
    said = []

    def waits(name, call):
        said.clear()
        thread = threading.Thread(target=lambda: said.append(call()))
        thread.start()
        time.sleep(0.1)
        before = list(said)
        w.peer.do("e.send(b'a', socket.MSG_OOB)")
        thread.join()
        w.result(name, (before, list(said)))
        w.result(name + ", recv", attempt(end.recv, 1, OOB))

    poll = select.poll()
    poll.register(end, select.POLLPRI)
    waits("poll", lambda: [words(bits) for _, bits in poll.poll(5000)])
    waits("select", lambda: [len(found) for found in select.select([end], [], [end], 5)])
    watcher = select.epoll()
    watcher.register(end, select.EPOLLPRI)
    waits("epoll", lambda: [words(bits) for _, bits in watcher.poll(5)])
    w.result("epoll of what is read", watcher.poll(0) == [])
    watcher.modify(end, select.EPOLLPRI | select.EPOLLIN | select.EPOLLET)
    watcher.poll(0)
    waits("an edge", lambda: [words(bits & ~select.EPOLLOUT) for _, bits in watcher.poll(5)])
    end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 100)
    waits("with a low-water mark", lambda: [words(bits) for _, bits in poll.poll(5000)])


@case
def urgent_data_that_is_still_to_come(w):
    listener = w.listener()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    w.peer_connects(listener)
    end, _ = listener.accept()
    # The pointer, which probes of the closed window carry, reaches 64 KiB: less than that has to be waiting before it.
    w.peer.do("e.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 14); fill(e)")
    w.peer.do("e.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20); e.send(b'!', socket.MSG_OOB)")
    wait_for(lambda: attempt(end.recv, 1, OOB) != "EINVAL" or len(end.recv(100)) < 0)
    w.result("recv of it", attempt(end.recv, 1, OOB))
    w.result("poll", words(polled(end)))
