"""poll, select and epoll: what they tell of sockets, and when."""
from suite import *


@case
def poll_of_each_state(w):
    w.result("new", words(polled(w.tcp())))
    w.result("bound", words(polled(w.tcp(w.port()))))
    listener = w.listener()
    w.result("listening", words(polled(listener)))
    w.peer_connects(listener)
    w.result("somebody waits", readable(listener))
    w.result("connected", words(polled(w.connected())))
    w.result("datagrams", words(polled(w.udp(w.port()))))
    w.result("new datagrams", words(polled(socket.socket(w.family, socket.SOCK_DGRAM))))
    p = select.poll()
    p.register(999, select.POLLIN)
    w.result("no descriptor", [words(event) for _, event in p.poll(0)])


@case
def poll_that_asks_for_nothing(w):
    end = w.connected()
    w.peer.do("e.close()")
    time.sleep(0.2)
    w.result("the peer has ended", words(polled(end, 0)))
    end = w.connected()
    w.peer.do("reset(e)")
    w.result("reset", events(end, select.POLLHUP, 0))


@case
def poll_of_what_is_switched_off(w):
    end = w.connected()
    w.peer.do("e.sendall(b'x')")
    readable(end)
    one, other = (struct.pack("ihh", fd, select.POLLOUT, select.POLLIN) for fd in (end.fileno(), -1))
    entries = ctypes.create_string_buffer(one + other)
    told = C.poll(entries, 2, 0)
    w.result("told of", (told, [words(revents) for _, _, revents in struct.iter_unpack("ihh", entries.raw[:16])]))


def selected(end):
    read, write, other = select.select([end], [end], [end], 0)
    return "".join(name for name, which in (("r", read), ("w", write), ("x", other)) if which)


@case
def select_of_each_state(w):
    w.result("new", selected(w.tcp()))
    w.result("listening", selected(w.listener()))
    end = w.connected()
    w.result("connected", selected(end))
    w.peer.do("e.sendall(b'x')")
    readable(end)
    w.result("with data", selected(end))
    end = w.connected()
    w.peer.do("e.close()")
    readable(end)
    w.result("the peer has closed", selected(end))
    end = w.connected()
    w.peer.do("reset(e)")
    events(end, select.POLLHUP)
    w.result("reset", selected(end))
    refused = w.tcp()
    refused.setblocking(False)
    refused.connect_ex((w.there, 1))
    events(refused, select.POLLHUP)
    w.result("refused", selected(refused))


@case
def select_of_what_only_poll_tells(w):
    """An end is not what the third set is for, and ends no wait."""
    end = w.connected()
    w.peer.do("kept = e")
    other = w.connected()
    w.peer.do("reset(e)")
    events(other, select.POLLHUP)
    for name, limit in (("waits", 0.3), ("does not wait", 0)):
        began = time.monotonic()
        w.result(name, [len(of) for of in select.select([end], [], [end, other], limit)])
        w.result(f"{name}: all the time", time.monotonic() - began >= limit)
    waiting = blocked(lambda: [len(of) for of in select.select([end], [], [other], SURELY)])
    end.shutdown(socket.SHUT_RD)
    w.result("and hears of another", outcome_of(*waiting))


@case
def select_of_more_than_there_can_be(w):
    """Its sets end before that."""
    end = w.connected()
    w.peer.do("e.sendall(b'x')")
    readable(end)
    page = 4096
    room = C.mmap
    room.restype = ctypes.c_void_p
    room.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    # The set lies at the end of what there is.
    at = room(None, 2 * page, 3, 0x22, -1, 0)
    C.mprotect(ctypes.c_void_p(at + page), page, 0)
    there = at + page - 128
    ctypes.memset(there, 0, 128)
    ctypes.memset(there + end.fileno() // 8, 1 << end.fileno() % 8, 1)
    limit = (ctypes.c_long * 2)(1, 0)
    w.result("told of", answer(C.select(1 << 20, ctypes.c_void_p(there), None, None, limit)))


@case
def select_of_what_lies_behind_the_count(w):
    """It is not looked at, and what of it is in the last word of the count is gone afterwards."""
    end = w.connected()
    w.peer.do("e.sendall(b'x')")
    readable(end)
    number = fcntl.fcntl(end, fcntl.F_DUPFD, 128)
    named = {"the socket": number, "in its word": number | 63, "in the next": number + 64}
    for what in ("something", "nothing"):
        asked = ctypes.create_string_buffer(sum(1 << bit for bit in named.values()).to_bytes(128, "little"), 128)
        told = answer(C.select(number + 1, asked, None, None, (ctypes.c_long * 2)(0, 0)))
        left = [name for name, bit in named.items() if asked.raw[bit // 8] >> bit % 8 & 1]
        w.result(f"{what} is there", (told, left))
        end.recv(1, socket.MSG_DONTWAIT) if what == "something" else None
    os.close(number)


def epoll_with(end, wanted):
    e = select.epoll()
    e.register(end, wanted)
    return e


def told(e, wait=0):
    return [words(event) for _, event in e.poll(wait)]


@case
def epoll_by_level(w):
    end = w.connected()
    e = epoll_with(end, select.EPOLLIN | select.EPOLLRDHUP)
    w.result("nothing", told(e))
    w.peer.do("e.sendall(b'hello')")
    w.result("data", told(e, SURELY))
    w.result("still", told(e))
    end.recv(2)
    w.result("some left", told(e))
    end.recv(10)
    w.result("none left", told(e))
    w.peer.do("e.close()")
    w.result("the peer has closed", told(e, SURELY))
    w.result("still so", told(e))


@case
def epoll_by_edge(w):
    end = w.connected()
    e = epoll_with(end, select.EPOLLIN | select.EPOLLOUT | select.EPOLLRDHUP | select.EPOLLET)
    w.result("at first", told(e))
    w.result("again", told(e))
    w.peer.do("e.sendall(b'hello')")
    w.result("data", told(e, SURELY))
    w.result("data again", told(e, 0.2))
    w.peer.do("e.sendall(b'more')")
    w.result("more data", told(e, SURELY))
    end.recv(100)
    w.result("nothing more", told(e, 0.2))
    w.peer.do("e.shutdown(socket.SHUT_WR)")
    w.result("the end", told(e, SURELY))
    w.result("the end again", told(e, 0.2))
    e.modify(end, select.EPOLLIN | select.EPOLLET)
    w.result("asked anew", told(e))
    w.peer.do("reset(e)")
    w.result("reset", told(e, SURELY))


@case
def epoll_by_edge_of_what_was_shut_down(w):
    """It is told of once, and not again after each silence."""
    for how, name in ((socket.SHUT_RD, "reading"), (socket.SHUT_WR, "writing"), (socket.SHUT_RDWR, "both")):
        end = w.connected()
        e = epoll_with(end, select.EPOLLIN | select.EPOLLOUT | select.EPOLLRDHUP | select.EPOLLET)
        told(e)
        end.shutdown(how)
        w.result(name, told(e, SURELY))
        for _ in range(5):
            if not told(e, 0.2):
                break
        w.result(f"{name}, once", told(e, 1.3))


@case
def epoll_once(w):
    end = w.connected()
    e = epoll_with(end, select.EPOLLIN | select.EPOLLONESHOT)
    w.peer.do("e.sendall(b'hello')")
    w.result("data", told(e, SURELY))
    w.result("again", told(e, 0.2))
    w.peer.do("e.close()")
    w.result("the peer has closed", told(e, 0.2))
    e.modify(end, select.EPOLLIN | select.EPOLLONESHOT)
    w.result("asked anew", told(e, SURELY))


@case
def epoll_once_before_it_is_anything(w):
    end = w.tcp()
    once = select.EPOLLOUT | select.EPOLLONESHOT
    e = epoll_with(end, once)
    w.result("at first", told(e, SURELY))
    end.connect(w.peer_listens())
    w.result("connected", told(e, 0.2))
    e.modify(end, once)
    w.result("asked anew", told(e, SURELY))
    other = w.tcp()
    e = epoll_with(other, once)
    other.connect(w.peer_listens())
    w.result("one that was not told of", told(e, SURELY))


@case
def epoll_without_being_asked(w):
    end = w.connected()
    e = epoll_with(end, 0)
    w.peer.do("e.close()")
    w.result("the peer has closed", told(e, 0.2))
    attempt(end.send, b"x")
    w.result("and has reset", told(e, SURELY))


@case
def epoll_of_room_by_edge(w):
    end = w.connected()
    end.setblocking(False)
    e = epoll_with(end, select.EPOLLOUT | select.EPOLLET)
    told(e)
    wait_for(lambda: attempt(end.send, bytes(1 << 20)) == "EAGAIN")
    time.sleep(0.2)
    wait_for(lambda: attempt(end.send, bytes(1 << 20)) == "EAGAIN")
    told(e)
    w.peer.do("e.settimeout(0.5)\ntry:\n while e.recv(1 << 20): pass\nexcept TimeoutError: pass")
    w.result("room", told(e, SURELY))


@case
def epoll_of_a_connect(w):
    end = w.tcp()
    end.setblocking(False)
    end.connect_ex(w.peer_listens())
    e = epoll_with(end, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)
    w.result("connected", told(e, SURELY))
    end = w.tcp()
    e = epoll_with(end, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)
    w.result("new", told(e))
    end.setblocking(False)
    end.connect_ex((w.there, 1))
    w.result("refused", told(e, SURELY))


@case
def epoll_of_datagrams_by_edge(w):
    end = w.udp(w.port())
    to = w.peer_udp()
    e = epoll_with(end, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)
    w.result("at first", told(e, SURELY))
    w.result("again", told(e, 0.2))
    end.sendto(b"x", to)
    w.result("one has left", told(e, 0.2))


@case
def epoll_of_a_listener(w):
    listener = w.listener()
    e = epoll_with(listener, select.EPOLLIN | select.EPOLLET)
    w.peer_connects(listener)
    w.result("one", told(e, SURELY))
    w.result("one again", told(e, 0.2))
    w.peer_connects(listener, "second")
    w.result("another", told(e, SURELY))
    listener.accept()
    # Longer than an event set of ours goes without looking at all its members.
    w.result("one taken", told(e, 1.5))
    later = epoll_with(listener, select.EPOLLIN | select.EPOLLET)
    w.result("a set that begins later", told(later, SURELY))
    w.peer_connects(listener, "third")
    w.result("a third, to both", (told(e, SURELY), told(later, SURELY)))
    listener.accept()
    listener.accept()
    w.result("all taken", told(e, 0.2))
    w.peer_connects(listener, "fourth")
    w.result("one after that", told(e, SURELY))


@case
def epoll_of_a_listener_that_begins_again(w):
    """The first that comes then is not the one that was told of before."""
    listener = w.listener()
    e = epoll_with(listener, select.EPOLLIN | select.EPOLLET)
    w.peer_connects(listener)
    w.result("one", told(e, SURELY))
    listener.shutdown(socket.SHUT_RD)
    listener.listen(16)
    settle()
    w.peer_connects(listener, "second")
    w.result("one that comes then", told(e, SURELY))
    w.result("again", told(e, 1.5))


@case
def epoll_that_is_exclusive(w):
    listener = w.listener()
    exclusive = 1 << 28
    e = select.epoll()
    w.result("add", attempt(e.register, listener, select.EPOLLIN | exclusive))
    w.result("with another wish", attempt(lambda: epoll_with(w.listener(), select.EPOLLONESHOT | exclusive) and "ok"))
    w.peer_connects(listener)
    w.result("told", told(e, SURELY))
    w.result("changed", attempt(e.modify, listener, select.EPOLLIN | exclusive))
    w.result("a stranger changed so", attempt(e.modify, w.connected(), select.EPOLLIN | exclusive))


@case
def epoll_and_its_members(w):
    end = w.connected()
    e = epoll_with(end, select.EPOLLIN)
    w.result("twice", attempt(e.register, end, select.EPOLLIN))
    w.result("a stranger changed", attempt(e.modify, w.tcp(), select.EPOLLIN))
    w.result("a stranger removed", attempt(e.unregister, w.listener()))
    twin = os.dup(end.fileno())
    w.result("its twin", attempt(e.register, twin, select.EPOLLOUT))
    w.result("told", told(e, SURELY))
    w.peer.do("e.sendall(b'x')")
    # There is room all the time, so that nobody waits here: the set may hear of the octet a moment later.
    wait_for(lambda: "IN" in told(e))
    w.result("both", sorted(told(e)))
    w.result("at most one", len(e.poll(0, 1)))
    end.close()
    w.result("one is closed", sorted(told(e)))
    os.close(twin)
    w.result("both are", told(e, 0.2))
    w.result("no descriptor", attempt(e.register, 999, select.EPOLLIN))
    w.result("itself", attempt(e.register, e.fileno(), select.EPOLLIN))
    w.result("more than can be told", answer(C.epoll_wait(e.fileno(), ctypes.create_string_buffer(64), 0x7fffffff, 0)))


@case
def epoll_in_an_epoll(w):
    end = w.connected()
    inner = epoll_with(end, select.EPOLLIN)
    outer = epoll_with(inner, select.EPOLLIN)
    w.result("nothing", told(outer))
    w.peer.do("e.sendall(b'x')")
    w.result("outer", told(outer, SURELY))
    w.result("inner", told(inner))
    w.result("poll of the inner", words(polled(inner, select.POLLIN)))
    end.recv(10)
    w.result("nothing again", told(outer, 0.2))


@case
def epoll_of_one_event_of_a_set_that_was_watched(w):
    end = w.connected()
    ours, theirs = os.pipe()
    e = epoll_with(end, select.EPOLLIN)
    e.register(ours, select.EPOLLIN)
    w.peer.do("e.sendall(b'x')")
    w.result("watched", readable(e))
    end.recv(1)
    os.write(theirs, b"x")
    w.result("one", len(e.poll(0, 1)))
    os.close(ours)
    os.close(theirs)


@case
def epoll_and_other_descriptors(w):
    end = w.connected()
    ours, theirs = os.pipe()
    e = epoll_with(end, select.EPOLLIN)
    e.register(ours, select.EPOLLIN)
    os.write(theirs, b"x")
    w.result("pipe", told(e, SURELY))
    w.peer.do("e.sendall(b'x')")
    readable(end)
    w.result("both", sorted(told(e, PATIENCE) + told(e, PATIENCE))[:2])
    os.read(ours, 1)
    w.result("socket", told(e, SURELY))


@case
def who_is_woken(w):
    """A wait that begins before there is anything to hear."""
    end = w.connected()
    threading.Timer(0.3, lambda: w.peer.do("e.sendall(b'x')")).start()
    p = select.poll()
    p.register(end, select.POLLIN)
    w.result("poll", [words(event) for _, event in p.poll(5000)])
    end.recv(1)
    time.sleep(0.1)
    threading.Timer(0.3, lambda: w.peer.do("e.sendall(b'x')")).start()
    w.result("select", [len(which) for which in select.select([end], [], [], 5)])
    end.recv(1)
    time.sleep(0.1)
    threading.Timer(0.3, lambda: w.peer.do("e.close()")).start()
    w.result("epoll", told(epoll_with(end, select.EPOLLRDHUP), 5))


@case
def an_edge_comes_for_what_arrives_during_a_look(w):
    wanted = select.EPOLLIN | select.EPOLLOUT | select.EPOLLET
    end, times = w.connected(), 4000
    e = epoll_with(end, wanted)
    answering = threading.Thread(target=w.peer.do, args=(f"answers_late(e, {times})",))
    answering.start()
    chance, heard = random.Random(1), 0
    while heard < times:
        end.send(b"?")
        until = time.perf_counter() + chance.uniform(0, 0.0002)
        while time.perf_counter() < until:
            pass
        # From here on everything is told once more.
        e.modify(end, wanted)
        found = e.poll(0)
        while not any(event & select.EPOLLIN for _, event in found):
            found = e.poll(PATIENCE)
            if not found:
                break
        if not found or end.recv(1) != b"!":
            break
        heard += 1
    w.result("heard of all", heard == times)
    end.close()
    answering.join()


@case
def epoll_of_connections_beside_others_descriptors(w):
    end = w.connected()
    out, into = os.pipe()
    e = epoll_with(end, select.EPOLLOUT)
    e.register(into, select.EPOLLOUT)
    # Both are ready whenever it looks.
    found = [len(e.poll(limit)) for limit in (0, 0, 0, 0, 1, 1, 1, 1)]
    w.result("told of at once", found)
    # Where there is room for one, each has its turn.
    turns = {fd for _ in range(16) for fd, _ in e.poll(0, 1)}
    w.result("told of one by one", len(turns))
    os.close(into)
    os.close(out)
