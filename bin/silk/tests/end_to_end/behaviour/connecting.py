"""How connections are opened and taken, and how that fails."""
from suite import *


@case
def connect_to_a_port_where_nobody_listens(w):
    end = w.tcp()
    w.result("connect", attempt(end.connect, (w.there, 1)))
    w.result("poll", words(polled(end)))
    w.result("SO_ERROR", error_of(end))
    w.result("getpeername", attempt(end.getpeername))
    w.result("recv", attempt(end.recv, 1))
    w.result("connect again", attempt(end.connect, w.peer_listens()))
    w.result("send", attempt(end.send, b"hello"))


@case
def nonblocking_connect_that_is_refused(w):
    end = w.tcp()
    end.setblocking(False)
    w.result("connect", attempt(end.connect, (w.there, 1)))
    w.result("poll", events(end, select.POLLHUP))
    w.result("SO_ERROR", error_of(end))
    w.result("SO_ERROR again", error_of(end))
    w.result("recv", attempt(end.recv, 1))
    w.result("send", attempt(end.send, b"x"))


@case
def refusal_heard_from_the_next_connect(w):
    end = w.tcp()
    end.setblocking(False)
    end.connect_ex((w.there, 1))
    events(end, select.POLLHUP)
    w.result("connect", attempt(end.connect, (w.there, 1)))
    w.result("third connect", attempt(end.connect, (w.there, 1)))


@case
def refusal_heard_from_recv_and_send(w):
    for call in ("recv", "send"):
        end = w.tcp()
        end.setblocking(False)
        end.connect_ex((w.there, 1))
        events(end, select.POLLHUP)
        argument = 1 if call == "recv" else b"x"
        w.result(call, attempt(getattr(end, call), argument))
        w.result(f"{call} again", attempt(getattr(end, call), argument))


@case
def nonblocking_connect_that_succeeds(w):
    end = w.tcp()
    end.setblocking(False)
    to = w.peer_listens()
    w.result("connect", attempt(end.connect, to))
    w.result("poll", events(end, select.POLLOUT))
    w.result("SO_ERROR", error_of(end))
    w.result("connect again", attempt(end.connect, to))
    w.result("and again", attempt(end.connect, to))


def unanswered(w):
    """A connection that is being opened, for nobody answers."""
    os_route(w, "add")
    end = w.tcp()
    end.setblocking(False)
    end.connect_ex((w.there, 9))
    return end


def os_route(w, word):
    six = "-6 " if w.six else ""
    length = 128 if w.six else 32
    w.peer.do(f"os.system('ip {six}route {word} blackhole {w.own}/{length}')")


@case
def while_connecting(w):
    try:
        end = unanswered(w)
        w.result("connect again", attempt(end.connect, (w.there, 9)))
        w.result("poll", words(polled(end)))
        w.result("recv", attempt(end.recv, 1))
        w.result("send", attempt(end.send, b"x"))
        w.result("getpeername", attempt(end.getpeername))
        w.result("SO_ERROR", error_of(end))
        w.result("listen", attempt(end.listen))
        w.result("bind", attempt(end.bind, (w.own, w.port())))
        w.result("own port is known", end.getsockname()[1] > 0)
        w.result("shutdown", attempt(end.shutdown, socket.SHUT_WR))
        w.result("poll after", words(polled(end)))
        w.result("SO_ERROR after", error_of(end))
    finally:
        os_route(w, "del")


@case
def connect_with_a_send_time_out(w):
    try:
        os_route(w, "add")
        end = w.tcp()
        end.setsockopt(SOL, socket.SO_SNDTIMEO, struct.pack("ll", 0, 300_000))
        w.result("connect", attempt(end.connect, (w.there, 9)))
        w.result("connect again", attempt(end.connect, (w.there, 9)))
    finally:
        os_route(w, "del")


@case
def taken_apart_while_another_thread_connects(w):
    try:
        os_route(w, "add")
        end = w.tcp()
        connecting = blocked(end.connect, (w.there, 9))
        w.result("shutdown", attempt(end.shutdown, socket.SHUT_RDWR))
        w.result("connect", outcome_of(*connecting))
    finally:
        os_route(w, "del")


@case
def with_a_user_time_out(w):
    """It ends what Linux and silk alone would go on with for minutes; who waits here waits for 30 s."""
    limit = (TCP, socket.TCP_USER_TIMEOUT, 2500)
    ends = {"text": w.connected(), "keep-alive": w.connected()}
    keep = [(SOL, socket.SO_KEEPALIVE, 1), (TCP, socket.TCP_KEEPIDLE, 1), (TCP, socket.TCP_KEEPINTVL, 1)]
    for option in keep + [(TCP, socket.TCP_KEEPCNT, 100), limit]:
        ends["keep-alive"].setsockopt(*option)
    ends["text"].setsockopt(*limit)
    try:
        os_route(w, "add")
        ends["text"].send(b"hello?")
        end = w.tcp()
        end.setsockopt(*limit)
        end.settimeout(30)
        w.result("connect", attempt(end.connect, (w.there, 9)))
        for what, end in ends.items():
            w.result(f"poll, {what}", events(end, select.POLLHUP))
            w.result(f"SO_ERROR, {what}", error_of(end))
    finally:
        os_route(w, "del")
    listener = w.listener()
    listener.setsockopt(*limit)
    w.peer_connects(listener)
    w.result("inherited", listener.accept()[0].getsockopt(*limit[:2]))


@case
def connect_to_a_neighbour_that_is_not_there(w):
    end = w.tcp()
    nobody = "fd99::77" if w.six else "10.99.0.77"
    w.result("connect", attempt(end.connect, (nobody, 9)))


@case
def connect_to_odd_addresses(w):
    w.result("no route", attempt(w.tcp().connect, ("2001:db8::1" if w.six else "192.0.2.1", 9)))
    w.result("port 0", attempt(w.tcp().connect, (w.there, 0)))
    w.result("a group", attempt(w.tcp().connect, ("ff02::123" if w.six else "224.0.0.123", 9)))
    if not w.six:
        w.result("everyone", attempt(w.tcp(w.port()).connect, ("10.99.0.255", 9)))
    end = w.tcp()
    other = struct.pack("=H26x", socket.AF_INET if w.six else socket.AF_INET6)
    w.result("another family", answer(C.connect(end.fileno(), other, 28)))
    w.result("too short", answer(C.connect(end.fileno(), struct.pack("=H26x", w.family), 3)))


@case
def connect_twice(w):
    end = w.connected()
    w.result("again", attempt(end.connect, end.getpeername()))
    w.result("elsewhere", attempt(end.connect, (w.there, 1)))
    w.result("bind", attempt(end.bind, (w.own, w.port())))
    w.result("listen", attempt(end.listen))
    w.result("accept", attempt(end.accept))
    listener = w.listener()
    w.result("a listener", attempt(listener.connect, (w.there, 1)))


@case
def disconnect(w):
    end = w.connected()
    unspecified = struct.pack("=H26x", socket.AF_UNSPEC)
    w.result("connect to nobody", answer(C.connect(end.fileno(), unspecified, 16)))
    w.result("getpeername", attempt(lambda: end.getpeername() and "a name"))
    w.result("poll", words(polled(end)))
    w.result("peer reads", w.peer.tell("outcome(e.recv, 1)"))
    w.result("connect again", attempt(end.connect, w.peer_listens()))


@case
def accept_and_its_flags(w):
    listener = w.listener()
    listener.setblocking(False)
    w.result("nobody there", attempt(listener.accept))
    w.peer_connects(listener)
    readable(listener)
    fd, _ = listener._accept()
    w.result("flags", flags(fd))
    for name, wanted in (("none", 0), ("both", os.O_NONBLOCK | os.O_CLOEXEC), ("wrong", 1)):
        w.peer_connects(listener, "more")
        readable(listener)
        fd = C.accept4(listener.fileno(), None, None, wanted)
        w.result(f"accept4 with {name}", flags(fd) if fd >= 0 else answer(fd))


def flags(fd):
    told = "nonblocking" if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK else "blocking"
    return told + (" cloexec" if fcntl.fcntl(fd, fcntl.F_GETFD) & fcntl.FD_CLOEXEC else "")


@case
def accept_tells_who_came(w):
    listener = w.listener()
    w.peer_connects(listener)
    end, who = listener.accept()
    w.result("peer", who[:2] == w.peer.tell("e.getsockname()[:2]"))
    w.result("own", end.getsockname()[:2] == listener.getsockname()[:2])
    size = ctypes.c_int(4)
    room = ctypes.create_string_buffer(28)
    w.peer_connects(listener, "more")
    w.result("a small buffer", C.accept(listener.fileno(), room, ctypes.byref(size)) >= 0)
    w.result("its length", size.value)
    w.result("a buffer of no length", (C.getsockname(end.fileno(), room, ctypes.byref(ctypes.c_int(0)))))


@case
def lengths_of_names_that_are_none(w):
    """Where a peer cannot be told nobody gets the connection."""
    listener, name = w.listener(), ctypes.create_string_buffer(200)
    less = lambda: ctypes.byref(ctypes.c_int(-1))
    for what, length in (("-1", less), ("no length", lambda: None)):
        w.peer_connects(listener)
        readable(listener)
        w.result(f"accept, {what}", answer(C.accept(listener.fileno(), name, length())))
        w.result(f"the peer reads, {what}", w.peer.tell("outcome(e.recv, 10)"))
        w.result(f"getsockname, {what}", answer(C.getsockname(listener.fileno(), name, length())))
    w.result("getsockname without room", answer(C.getsockname(listener.fileno(), None, ctypes.byref(ctypes.c_int(28)))))
    w.result("and without a length", answer(C.getsockname(listener.fileno(), None, None)))
    w.peer_connects(listener)
    readable(listener)
    taken = C.accept(listener.fileno(), None, less())
    w.result("accept without a name", taken >= 0)
    os.close(taken)
    end = w.connected()
    for what, other in (("bound", w.tcp(w.port())), ("listening", listener), ("connected", end), ("datagrams", w.udp(w.port()))):
        for length in (-1, 0, 1, 16, 129):
            w.result(f"connect to nothing, {what}, {length}", answer(C.connect(other.fileno(), None, length)))
        for length in (-1, 0, 1, 129):
            w.result(f"connect, {what}, {length}", answer(C.connect(other.fileno(), bytes(200), length)))
    for length in (-1, 0, 129):
        w.result(f"sendto, {length}", answer(C.sendto(end.fileno(), b"x", 1, 0, name, length)))
    w.peer.do("e.sendall(b'hello')")
    readable(end)
    w.result("recvfrom, -1", answer(C.recvfrom(end.fileno(), name, 2, 0, name, less())))
    w.result("recvfrom without a length", answer(C.recvfrom(end.fileno(), name, 2, 0, name, None)))
    w.result("what is left", attempt(end.recv, 10))


@case
def accept_where_it_makes_no_sense(w):
    w.result("new", attempt(w.tcp().accept))
    w.result("bound", attempt(w.tcp(w.port()).accept))
    w.result("datagrams", attempt(w.udp(w.port()).accept))
    w.result("listen for datagrams", attempt(w.udp(w.port()).listen))


@case
def accept_with_a_receive_time_out(w):
    listener = w.listener()
    listener.setsockopt(SOL, socket.SO_RCVTIMEO, struct.pack("ll", 0, 200_000))
    w.result("accept", attempt(listener.accept))


@case
def what_a_connection_inherits(w):
    listener = w.listener()
    options = [(SOL, socket.SO_KEEPALIVE, 1), (TCP, socket.TCP_NODELAY, 1), (TCP, socket.TCP_KEEPIDLE, 77)]
    for option in options:
        listener.setsockopt(*option)
    listener.setsockopt(SOL, socket.SO_RCVTIMEO, struct.pack("ll", 3, 0))
    listener.setsockopt(SOL, socket.SO_LINGER, struct.pack("ii", 1, 7))
    w.peer_connects(listener)
    end, _ = listener.accept()
    w.result("options", [end.getsockopt(level, option) for level, option, _ in options])
    w.result("time-out", struct.unpack("ll", end.getsockopt(SOL, socket.SO_RCVTIMEO, 16)))
    w.result("linger", struct.unpack("ii", end.getsockopt(SOL, socket.SO_LINGER, 8)))
    early = w.tcp()
    early.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
    early.bind((w.own, w.port()))
    early.listen()
    early.setsockopt(SOL, socket.SO_MARK, 7)
    w.peer_connects(early)
    end, _ = early.accept()
    w.result("what Linux alone knows", [end.getsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS), end.getsockopt(SOL, socket.SO_MARK)])


@case
def a_backlog_of_none(w):
    listener = w.listener(0)
    where = listener.getsockname()[:2]
    w.peer.do("import threading; ends = [socket.socket(family) for _ in range(4)]")
    w.peer.do(f"[(end.settimeout(None), end.setblocking(False), end.connect_ex({where!r})) for end in ends]")
    time.sleep(0.5)
    w.result("accepted", [attempt(listener.accept)[:6] for _ in range(1)])


@case
def listen_twice(w):
    listener = w.listener(1)
    w.result("again", attempt(listener.listen, 8))
    w.peer_connects(listener)
    w.result("accept", attempt(listener.accept)[:7])


@case
def listen_without_an_address(w):
    listener = socket.socket(w.family)
    w.result("listen", attempt(listener.listen))
    w.result("has a port", listener.getsockname()[1] > 0)
    settle()
    w.peer.do(f"e = socket.create_connection((%r, {listener.getsockname()[1]}))" % w.own)
    w.result("accept", attempt(listener.accept)[:7])


@case
def shut_down_listener(w):
    listener = w.listener()
    where = listener.getsockname()[:2]
    w.result("writing", attempt(listener.shutdown, socket.SHUT_WR))
    w.result("still listens", w.peer.tell(f"outcome(socket.create_connection, {where!r})"))
    w.result("reading", attempt(listener.shutdown, socket.SHUT_RD))
    w.result("poll", words(polled(listener)))
    w.result("accept", attempt(listener.accept))
    w.result("client", w.peer.tell(f"outcome(socket.create_connection, {where!r})"))
    w.result("listen again", attempt(listener.listen))
    settle()
    w.peer_connects(listener)
    w.result("accept again", attempt(listener.accept)[:7])


@case
def close_with_a_connection_that_nobody_took(w):
    listener = w.listener()
    w.peer_connects(listener)
    readable(listener)
    listener.close()
    w.result("client reads", w.peer.tell("outcome(e.recv, 1)"))


@case
def a_client_that_has_gone_again(w):
    listener = w.listener()
    w.peer_connects(listener)
    w.peer.do("e.sendall(b'bye'); e.close()")
    readable(listener)
    end, _ = listener.accept()
    w.result("reads", attempt(end.recv, 10))
    w.result("then", attempt(end.recv, 10))
    w.peer_connects(listener)
    w.peer.do("reset(e)")
    time.sleep(0.2)
    w.result("poll", words(polled(listener)))
    end, _ = listener.accept()
    w.result("reads of one that was reset", attempt(end.recv, 10))


@case
def both_connect(w):
    """Each SYN is lost at first, so that neither meets a socket that is not connecting."""
    here, there = w.port(), w.port()
    interface = "eth0"
    six = "-6 " if w.six else ""
    own_mac = open(f"/sys/class/net/{interface}/address").read().strip()
    peer_mac = w.peer.tell(f"open('/sys/class/net/{interface}/address').read().strip()")
    nowhere = "02:00:00:00:00:99"
    set_here = f"ip {six}neigh replace {w.there} lladdr %s dev {interface}"
    set_there = f"ip {six}neigh replace {w.own} lladdr %s dev {interface}"
    os.system(set_here % nowhere)
    w.peer.do(f"os.system({set_there % nowhere!r})")
    end = w.tcp(here)
    end.setblocking(False)
    first = attempt(end.connect, (w.there, there))
    w.peer.do(f"e = socket.socket(family); e.bind((address, {there})); e.setblocking(False)")
    w.peer.do(f"e.connect_ex(({w.own!r}, {here})); e.setblocking(True); e.settimeout(8)")
    os.system(set_here % peer_mac)
    w.peer.do(f"os.system({set_there % own_mac!r})")
    w.result("connect", first)
    for _ in range(3):
        told = events(end, select.POLLOUT)
    w.result("poll", told)
    w.result("SO_ERROR", error_of(end))
    w.result("send", attempt(end.send, b"hello"))
    w.result("peer reads", w.peer.tell("outcome(e.recv, 10)"))
    w.peer.do("e.send(b'good day')")
    readable(end)
    w.result("recv", attempt(end.recv, 20))


@case
def options_that_are_linuxs_part(w):
    # IPV6_RECVTCLASS and IP_RECVTOS, which a stream socket takes and seldom needs.
    level, option = (socket.IPPROTO_IPV6, 66) if w.six else (socket.IPPROTO_IP, 13)
    for name, end in ("connected", w.connected()), ("accepted", w.accepted()):
        w.result(f"{name}: at first", attempt(end.getsockopt, level, option))
        w.result(f"{name}: set", attempt(end.setsockopt, level, option, 1))
        w.result(f"{name}: then", attempt(end.getsockopt, level, option))
        w.result(f"{name}: taken away", attempt(end.setsockopt, level, option, 0))


@case
def connect_to_itself(w):
    port = w.port()
    end = w.tcp(port)
    w.result("connect", attempt(end.connect, (w.own, port)))
    w.result("send", attempt(end.send, b"hello"))
    end.setblocking(False)
    w.result("recv", attempt(end.recv, 10))


@case
def states_as_tcp_info_tells_them(w):
    def state(end):
        return end.getsockopt(TCP, socket.TCP_INFO, 1)[0]
    w.result("new", state(w.tcp()))
    w.result("listening", state(w.listener()))
    listener = w.tcp(w.port())
    listener.listen(7)

    def waiting():
        return struct.unpack("2I", listener.getsockopt(TCP, socket.TCP_INFO, 32)[24:])
    w.result("who waits, and how many may", waiting())
    w.peer.do(f"ends = [socket.create_connection({listener.getsockname()[:2]!r}) for _ in range(2)]")
    wait_for(lambda: waiting()[0] == 2)
    w.result("when two wait", waiting())
    listener.accept()
    listener.listen(3)
    w.result("when one does", waiting())
    end = w.connected()
    w.result("connected", state(end))
    w.peer.do("e.shutdown(socket.SHUT_WR)")
    events(end, select.POLLRDHUP)
    w.result("the peer has ended", state(end))
    end = w.connected()
    end.shutdown(socket.SHUT_WR)
    wait_for(lambda: state(end) == 5)
    w.result("ended", state(end))
    w.peer.do("reset(e)")
    events(end, select.POLLHUP | select.POLLRDHUP)
    w.result("reset", state(end))
