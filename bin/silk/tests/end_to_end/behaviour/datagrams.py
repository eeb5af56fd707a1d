"""Datagrams: to whom, from whom, how long, and what is lost of them."""
from suite import *


def asked(w, end, text="b'hello'"):
    """The peer sends to a socket."""
    settle()
    w.peer.do(f"u.sendto({text}, ({w.own!r}, {end.getsockname()[1]}))")


@case
def to_nobody(w):
    end = w.udp()
    w.result("send", attempt(end.send, b"x"))
    w.result("recv", attempt(end.recv, 1, socket.MSG_DONTWAIT))
    w.result("port 0", attempt(end.sendto, b"x", (w.there, 0)))
    w.result("connect to port 0", attempt(end.connect, (w.there, 0)))
    away = ("2001:db8::1" if w.six else "192.0.2.1", 9)
    w.result("no route", attempt(w.udp().sendto, b"x", away))
    w.result("no route, connect", attempt(w.udp(w.port()).connect, away))
    w.result("getpeername", attempt(end.getpeername))
    w.result("shutdown", attempt(w.udp(w.port()).shutdown, socket.SHUT_RD))


@case
def to_an_address_of_ipv6(w):
    if w.six:
        return
    end, to = w.udp(), w.peer_udp()
    # The same socket, as if it were the other IP's.
    six = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM, fileno=os.dup(end.fileno()))
    w.result("sendto", attempt(six.sendto, b"x", ("fd99::2", to[1])))
    w.result("it has a name of IPv4 all the same", len(end.getsockname()) == 2)
    w.result("sendto the peer", attempt(end.sendto, b"hello", to))
    w.result("peer reads", w.peer.tell("u.recv(10)"))


@case
def connected_over_the_other_ip(w):
    """One of IPv6 that is connected over IPv4 has to do with that alone, till it is let go."""
    if not w.six:
        return
    end, to = w.udp(), w.peer_udp()
    other = ("::ffff:10.99.0.2", to[1])
    w.result("connect", attempt(end.connect, other))
    w.result("sendto", attempt(end.sendto, b"x", to))
    w.result("to nobody's port", attempt(end.sendto, b"x", (to[0], 0)))
    w.result("to a group", attempt(end.sendto, b"x", ("ff15::3", 9)))
    w.result("connect over IPv6", attempt(end.connect, to))
    w.result("who is there", end.getpeername()[0])
    w.result("sendto over IPv4", attempt(end.sendto, b"x", other))


@case
def where_they_came_in(w):
    """Each IP has an option of its own that asks for it, and a socket of both is told by both of what came over IPv4."""
    if w.six:
        return
    w.peer_udp()
    IP_PKTINFO, names = 8, {(socket.IPPROTO_IP, 8): "IPv4's", (socket.IPPROTO_IPV6, socket.IPV6_PKTINFO): "IPv6's"}
    for four, six in ((1, 0), (0, 1), (1, 1)):
        end = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        end.settimeout(5)
        end.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, four)
        end.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, six)
        end.bind(("::", 0))
        settle()
        w.peer.do(f"u.sendto(b'hello', ({w.own!r}, {end.getsockname()[1]}))")
        _, told, _, _ = end.recvmsg(10, 200)
        told = [(names[level, kind], data[4:].hex() if level == socket.IPPROTO_IP else data[:16].hex()) for level, kind, data in told]
        w.result(f"asked by {four} and {six}", told)
        w.result("what is asked", [end.getsockopt(socket.IPPROTO_IP, IP_PKTINFO), end.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO)])


@case
def several_at_once_that_came_to_several_addresses(w):
    """What is received at once has one destination that is told."""
    level, asked, told = (socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 0) if w.six else (socket.IPPROTO_IP, 8, 8)
    end, near, port = socket.socket(w.family, socket.SOCK_DGRAM), w.udp(w.port()), w.port()
    end.setsockopt(socket.IPPROTO_UDP, 104, 1)
    end.setsockopt(level, asked, 1)
    end.bind(("", port))
    settle()
    for text, to in (b"hello", w.own), (b"again", "::1" if w.six else "127.0.0.1"):
        near.sendto(text, (to, port))
    settle()
    for name in ("one", "another"):
        heard = readable(end)
        w.result(f"{name}: poll", heard)
        if "IN" in heard:
            data, control, _, _ = end.recvmsg(100, 100)
            w.result(name, (data, [text[told:told + 16].hex() for about, _, text in control if about == level]))


@case
def empty_ones(w):
    end = w.udp(w.port())
    to = w.peer_udp()
    w.result("sendto", attempt(end.sendto, b"", to))
    w.result("peer reads", w.peer.tell("u.recv(10)"))
    asked(w, end, "b''")
    w.result("poll", readable(end))
    w.result("recv", attempt(end.recv, 10))
    w.result("recv again", attempt(end.recv, 10, socket.MSG_DONTWAIT))


@case
def too_short_a_buffer(w):
    end = w.udp(w.port())
    w.peer_udp()
    for _ in range(6):
        asked(w, end)
    time.sleep(0.2)
    w.result("peek", attempt(end.recv, 2, socket.MSG_PEEK))
    w.result("recv", attempt(end.recv, 2))
    data, extra, flags, who = end.recvmsg(2)
    w.result("recvmsg", (data, flags == socket.MSG_TRUNC, who[:2] == w.peer.tell("u.getsockname()[:2]")))
    room = ctypes.create_string_buffer(9)
    w.result("MSG_TRUNC", (C.recv(end.fileno(), room, 2, socket.MSG_TRUNC), room.value))
    flags = socket.MSG_TRUNC | socket.MSG_PEEK
    w.result("MSG_TRUNC and MSG_PEEK", (C.recv(end.fileno(), room, 0, flags), C.recv(end.fileno(), room, 9, 0)))
    parts = [bytearray(1), bytearray(2)]
    octets, _, flags, _ = end.recvmsg_into(parts)
    w.result("parts", (octets, bytes(parts[0]), bytes(parts[1]), flags == socket.MSG_TRUNC))
    w.result("waiting for all", attempt(end.recv, 100, socket.MSG_WAITALL))


@case
def names_that_are_none(w):
    """Less than nothing of them, nothing at all, and one of another family."""
    end = w.udp(w.port())
    end.connect(w.peer_udp())
    strange = ctypes.create_string_buffer(struct.pack("=H200x", socket.AF_UNIX))
    for length in (-1, 0, 1, 129, 28):
        w.result(f"sendto, {length}", answer(C.sendto(end.fileno(), b"x", 1, 0, strange, length)))
    text = ctypes.create_string_buffer(b"hello", 10)
    vector = ctypes.create_string_buffer(struct.pack("PN", ctypes.addressof(text), 5))

    def message(length, name=ctypes.addressof(strange)):
        return ctypes.create_string_buffer(struct.pack("PixxxxPNPNixxxx", name, length, ctypes.addressof(vector), 1, 0, 0, 0))

    for length in (-1, 0, 1, 129):
        w.result(f"sendmsg, {length}", answer(C.sendmsg(end.fileno(), message(length), 0)))
    w.result("sendmsg to no name, -1", answer(C.sendmsg(end.fileno(), message(-1, 0), 0)))
    w.peer.do("u.recv(10); u.recv(10); me = %r; [u.sendto(b'%%d' %% n, me) for n in range(4)]" % (end.getsockname()[:2],))
    readable(end)
    settle()
    less = lambda: ctypes.byref(ctypes.c_int(-1))
    w.result("recvmsg, -1", answer(C.recvmsg(end.fileno(), message(-1), socket.MSG_DONTWAIT)))
    w.result("recvfrom, -1", answer(C.recvfrom(end.fileno(), text, 5, socket.MSG_DONTWAIT, strange, less())))
    w.result("recvfrom without a length", answer(C.recvfrom(end.fileno(), text, 5, socket.MSG_DONTWAIT, strange, None)))
    w.result("recvfrom without a name", answer(C.recvfrom(end.fileno(), text, 5, socket.MSG_DONTWAIT, None, less())))
    asked = message(7, 0)
    w.result("recvmsg without a name", answer(C.recvmsg(end.fileno(), asked, socket.MSG_DONTWAIT)))
    w.result("its length then", struct.unpack_from("i", asked, 8)[0])
    w.result("what is left", attempt(end.recv, 10, socket.MSG_DONTWAIT))


@case
def too_long_ones(w):
    end = w.udp(w.port())
    to = w.peer_udp()
    w.result("the longest", attempt(end.sendto, bytes(65_507 + 20 * w.six), to))
    w.result("one more", attempt(end.sendto, bytes(65_508 + 20 * w.six), to))
    w.result("several packets", attempt(end.sendto, bytes(4000), to))


@case
def connected_ones(w):
    end = w.udp()
    to = w.peer_udp()
    w.result("connect", attempt(end.connect, to))
    w.result("own address", end.getsockname()[0] == w.own)
    w.result("send", attempt(end.send, b"hello"))
    w.result("peer reads", w.peer.tell("u.recv(10)"))
    w.result("sendto the peer", attempt(end.sendto, b"again", to))
    w.peer.do("u.recv(10); v = u")
    other = w.peer_udp()
    w.result("sendto another", attempt(end.sendto, b"hello", other))
    w.result("the other reads", w.peer.tell("outcome(u.recv, 10)"))
    asked(w, end)
    time.sleep(0.2)
    w.result("from another", attempt(end.recv, 10, socket.MSG_DONTWAIT))
    w.result("connect elsewhere", attempt(end.connect, other))
    asked(w, end)
    w.result("recv", attempt(end.recv, 10))


@case
def options_of_connected_ones_that_send_to_another(w):
    """They count whoever it is sent to, and so do those of one datagram."""
    level, bits, hops, discover = (socket.IPPROTO_IPV6, 67, 52, 23) if w.six else (socket.IPPROTO_IP, 1, 2, 10)
    end = w.udp()
    end.connect(w.peer_udp())
    other = w.peer_udp()
    w.peer.do("all = wire()")
    end.setsockopt(level, bits, 0x48)
    end.setsockopt(level, 16 if w.six else hops, 7)
    reads = lambda: w.peer.tell(f"outcome(header_of, all, {other[1]})")
    for name, whole in (("may be cut up", 0), ("are kept whole", 2), ("probe", 3), ("may be cut up again", 0)):
        end.setsockopt(level, discover, whole)
        w.result(f"{name}: the socket's", (attempt(end.sendto, b"hello", other), reads()))
        own = [(level, bits, struct.pack("i", 0x20)), (level, hops, struct.pack("i", 9))]
        w.result(f"{name}: its own", (attempt(end.sendmsg, [b"hello"], own, 0, other), reads()))
        w.result(f"{name}: the socket's again", (attempt(end.sendto, b"hello", other), reads()))


@case
def options_of_one_to_the_peer_and_the_next_to_the_own_machine(w):
    """Each has options of its own, the same."""
    level, names, hears = (socket.IPPROTO_IPV6, (67, 52), (66, 51)) if w.six else (socket.IPPROTO_IP, (1, 2), (13, 12))
    end, near, to = w.udp(w.port()), w.udp(w.port()), w.peer_udp()
    for name in hears:
        near.setsockopt(level, name, 1)
    settle()
    for there in (to, near.getsockname()[:2]):
        own = [(level, name, struct.pack("i", value)) for name, value in zip(names, (0x20, 9))]
        w.result("sendmsg", attempt(end.sendmsg, [b"hello"], own, 0, there))
    heard = readable(near)
    w.result("poll", heard)
    if "IN" in heard:
        data, told, _, _ = near.recvmsg(10, 100)
        w.result("it reads", (data, sorted(value[0] for about, _, value in told if about == level)))


@case
def connected_ones_that_send_to_their_own_machine(w):
    near = [w.udp(w.port()), socket.socket(w.family, socket.SOCK_DGRAM)]
    near[1].bind(("::1" if w.six else "127.0.0.1", w.port()))
    there = w.udp(w.port())
    for name, end, peer in (("the peer", w.udp(), w.peer_udp()), ("the own machine", w.udp(w.port()), there.getsockname()[:2])):
        end.connect(peer)
        for where, other in zip(("the own address", "loopback"), near):
            step = f"connected to {name}, sends to {where}"
            w.result(step, attempt(end.sendto, b"hello", other.getsockname()[:2]))
            heard = readable(other)
            w.result(f"{step}: poll", heard)
            if "IN" in heard:
                data, sender = other.recvfrom(10)
                w.result(f"{step}: it reads", (data, sender == end.getsockname()))
                w.result(f"{step}: is answered", attempt(other.sendto, b"x", sender))
        time.sleep(0.2)
        w.result(f"connected to {name}, hears of the others", attempt(end.recv, 10, socket.MSG_DONTWAIT))


@case
def connected_ones_that_send_to_a_group(w):
    link = next(number for number, name in socket.if_nameindex() if name != "lo")
    group, near = "ff15::7" if w.six else "239.9.9.7", socket.socket(w.family, socket.SOCK_DGRAM)
    near.bind(("", w.port()))
    end = w.udp()
    end.connect(w.peer_udp())
    if w.six:
        near.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, socket.inet_pton(w.family, group) + struct.pack("i", link))
        end.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, link)
    else:
        near.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group) + struct.pack("=4xi", link))
        end.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, struct.pack("=8xi", link))
    settle()
    w.result("sendto", attempt(end.sendto, b"hello", (group, near.getsockname()[1])))
    heard = readable(near)
    w.result("poll", heard)
    if "IN" in heard:
        data, sender = near.recvfrom(10)
        w.result("it reads", (data, sender[:2] == end.getsockname()[:2]))


@case
def a_listener_that_was_taken_apart(w):
    listener = w.tcp()
    listener.bind((w.own, w.port()))
    listener.listen()
    settle()
    w.peer_connects(listener)
    taken, _ = listener.accept()
    nobody = struct.pack("=H", socket.AF_UNSPEC) + bytes(14)
    w.result("connect to nobody", C.connect(listener.fileno(), nobody, 16))
    w.result("listens again beside what it has accepted", attempt(listener.listen))
    taken.close()


@case
def disconnected_ones(w):
    port = w.port()
    end = w.udp(port)
    to = w.peer_udp()
    end.connect(to)
    unspecified = struct.pack("=H26x", socket.AF_UNSPEC)
    w.result("connect to nobody", answer(C.connect(end.fileno(), unspecified, 16)))
    w.result("getpeername", attempt(end.getpeername))
    w.result("the port stays", end.getsockname()[1] == port)
    w.result("the address stays", end.getsockname()[0] == w.own)
    w.result("send", attempt(end.send, b"x"))
    w.peer_udp()
    asked(w, end)
    w.result("recv from anybody", attempt(end.recv, 10) if wait_for(lambda: polled(end) & 1) else "nothing")
    w.result("sendto", attempt(end.sendto, b"hello", to))


@case
def disconnected_ones_that_were_never_bound(w):
    end = w.udp()
    end.connect(w.peer_udp())
    C.connect(end.fileno(), struct.pack("=H26x", socket.AF_UNSPEC), 16)
    host, port, *_ = end.getsockname()
    w.result("the name", (host in ("0.0.0.0", "::"), port == 0))


@case
def connected_to_any_address(w):
    """That is this machine."""
    end = w.udp(w.port())
    w.result("connect", attempt(end.connect, ("::" if w.six else "0.0.0.0", w.port())))
    w.result("getpeername", end.getpeername()[0])


@case
def shut_down_ones(w):
    end = w.udp()
    end.connect(w.peer_udp())
    w.result("reading", attempt(end.shutdown, socket.SHUT_RD))
    w.result("poll", words(polled(end)))
    w.result("recv", attempt(end.recv, 10))
    w.result("recv without waiting", attempt(end.recv, 10, socket.MSG_DONTWAIT))
    w.result("writing", attempt(end.shutdown, socket.SHUT_WR))
    heard = []
    before = signal.signal(signal.SIGPIPE, lambda *_: heard.append("SIGPIPE"))
    w.result("send", attempt(end.send, b"x"))
    w.result("signals", heard)
    signal.signal(signal.SIGPIPE, before)
    w.result("send nowhere", attempt(end.sendto, b"x", (w.there, 0)))
    w.result("poll then", words(polled(end)))


@case
def shut_down_before_they_are_connected(w):
    """It fails, and counts."""
    for end, name in ((w.udp(), "new"), (w.udp(w.port()), "bound")):
        w.result(f"{name}: shutdown", attempt(end.shutdown, socket.SHUT_RDWR))
        w.result(f"{name}: poll", words(polled(end)))
        end.connect(w.peer_udp())
        w.result(f"{name}: send", attempt(end.send, b"x"))
        w.result(f"{name}: recv", attempt(end.recv, 10))


@case
def a_reader_that_is_shut_down(w):
    end = w.udp()
    end.connect(w.peer_udp())
    threading.Timer(0.3, lambda: end.shutdown(socket.SHUT_RD)).start()
    w.result("recv", attempt(end.recv, 10))
    end = w.udp(w.port())
    threading.Timer(0.3, lambda: attempt(end.shutdown, socket.SHUT_RD)).start()
    w.result("recv of one without a peer", attempt(end.recv, 10))


@case
def waiting_for_one(w):
    end = w.udp(w.port())
    end.setsockopt(SOL, socket.SO_RCVTIMEO, struct.pack("ll", 0, 200_000))
    w.result("recv", attempt(end.recv, 10))
    end.setblocking(False)
    w.result("recv without waiting", attempt(end.recv, 10))
    w.result("urgent", attempt(end.recv, 10, socket.MSG_OOB))
    w.result("sending urgent", attempt(end.sendto, b"x", socket.MSG_OOB, (w.there, 9)))


@case
def how_much_is_there(w):
    def waiting(end):
        return struct.unpack("i", fcntl.ioctl(end, termios.FIONREAD, b"\0" * 4))[0]
    end = w.udp(w.port())
    w.peer_udp()
    w.result("nothing", waiting(end))
    asked(w, end)
    asked(w, end, "b'longer than that'")
    time.sleep(0.2)
    w.result("two", waiting(end))
    end.recv(1)
    w.result("one", waiting(end))


@case
def refused_ones(w):
    end = w.udp()
    end.connect((w.there, 1))
    end.send(b"x")
    w.result("poll", events(end, select.POLLERR))
    w.result("send", attempt(end.send, b"x"))
    wait_for(lambda: polled(end) & select.POLLERR)
    w.result("SO_ERROR", error_of(end))
    w.result("recv", attempt(end.recv, 1, socket.MSG_DONTWAIT))


@case
def to_everyone(w):
    if w.six:
        return
    end = w.udp()
    w.result("without permission", attempt(end.sendto, b"x", ("10.99.0.255", 9)))
    w.result("connect", attempt(end.connect, ("10.99.0.255", 9)))
    end.setsockopt(SOL, socket.SO_BROADCAST, 1)
    w.result("with permission", attempt(end.sendto, b"x", ("10.99.0.255", 9)))


@case
def epoll_by_edge_of_datagrams(w):
    end = w.udp(w.port())
    w.peer_udp()
    e = select.epoll()
    e.register(end, select.EPOLLIN | select.EPOLLET)
    asked(w, end)
    w.result("one", [words(event) for _, event in e.poll(SURELY)])
    w.result("again", [words(event) for _, event in e.poll(0.2)])
    asked(w, end)
    w.result("another", [words(event) for _, event in e.poll(SURELY)])
    end.recv(10)
    w.result("one taken", [words(event) for _, event in e.poll(0.2)])


@case
def a_process_and_its_child(w):
    end = w.udp(w.port())
    to = w.peer_udp()
    pid = os.fork()
    if pid == 0:
        end.sendto(b"from the child", to)
        os._exit(0)
    os.waitpid(pid, 0)
    w.result("peer reads", w.peer.tell("u.recv(100)"))
    asked(w, end)
    w.result("recv", attempt(end.recv, 100))


@case
def one_of_several_calls(w):
    cork, more = (socket.IPPROTO_UDP, 1), socket.MSG_MORE
    end = w.udp(w.port())
    first = w.peer_udp()
    w.peer.do("v = u")
    other = w.peer_udp()
    has = lambda which: w.peer.tell(f"bool(select.select([{which}], [], [], 0.2)[0])")
    reads = lambda: (w.peer.tell("v.recv(70000)"), has("v"))
    w.result("alone", (attempt(end.sendto, b"alone", more, first), has("v")))
    w.result("its end", attempt(end.sendto, b"-its end", other))
    w.result("the first reads", reads())
    w.result("the other reads", has("u"))
    w.result("usual", end.getsockopt(*cork))
    end.setsockopt(*cork, 1)
    w.result("corked", (end.getsockopt(*cork), attempt(end.sendto, b"c", first), attempt(end.sendto, b"d", first)))
    w.result("nothing yet", has("v"))
    w.result("let go", attempt(end.setsockopt, *cork, 0))
    w.result("then", reads())
    w.result("again", attempt(end.setsockopt, *cork, 0))
    w.result("much", attempt(end.sendto, bytes(60000), more, first))
    w.result("too much", attempt(end.sendto, bytes(10000), first))
    w.result("after that", attempt(end.sendto, b"after", first))
    w.result("is read", reads())
    w.result("nobody", attempt(w.udp(w.port()).send, b"x", more))
    end.sendto(b"never", more, first)
    w.result("poll", words(polled(end)))
    end.close()
    settle()
    w.result("closed", has("v"))
    end = w.udp(w.port())
    end.connect(first)
    w.result("sendmsg", (attempt(end.send, b"one ", more), attempt(end.sendmsg, [b"and", b" two"])))
    w.result("is whole", reads())


@case
def a_neighbour_that_is_not_there(w):
    """Whoever asks hears of it from his own host, each time, in three seconds at the latest."""
    absent = (w.own[: w.own.rindex(":" if w.six else ".") + 1] + "77", 9)
    option = (socket.IPPROTO_IPV6, 25, 1) if w.six else (socket.IPPROTO_IP, 11, 1)
    for how in ("connected", "to anybody"):
        end = w.udp(w.port())
        end.setsockopt(*option)
        if how == "connected":
            end.connect(absent)
            w.result(f"{how}: send", attempt(end.send, b"hello"))
        else:
            w.result(f"{how}: send", attempt(end.sendto, b"hello", absent))
        watch = select.poll()
        watch.register(end, select.POLLIN)
        w.result(f"{how}: poll", words(watch.poll(5000)[0][1]))
        w.result(f"{how}: recv", attempt(end.recv, 10, socket.MSG_DONTWAIT))
        data, about, _, to = end.recvmsg(100, 100, socket.MSG_ERRQUEUE)
        w.result(f"{how}: error", (data, [part[:16].hex() for _, _, part in about], to[:2] == absent))


@case
def epoll_by_edge_of_errors(w):
    end = w.udp(w.port())
    end.connect((w.there, 1))
    e = select.epoll()
    e.register(end, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)
    w.result("at first", [words(event) for _, event in e.poll(SURELY)])
    for name in ("one", "another"):
        end.send(b"question")
        w.result(name, [words(event) for _, event in e.poll(SURELY)])
        w.result(f"{name} is taken", attempt(end.recv, 1, socket.MSG_DONTWAIT))
        w.result(f"{name} and no more", attempt(end.recv, 1, socket.MSG_DONTWAIT))


@case
def who_waits_where_reading_was_shut_down(w):
    """It hears from nobody."""
    end = w.udp()
    end.connect(w.peer_udp())
    w.result("shutdown", attempt(end.shutdown, socket.SHUT_RD))
    w.result("recvfrom", attempt(end.recvfrom, 10))
    w.result("recvmsg", attempt(end.recvmsg, 10))


@case
def times_below_zero(w):
    for name, end in (("early", socket.socket(w.family, socket.SOCK_DGRAM)), ("bound", w.udp(w.port()))):
        w.result(f"{name}: set", attempt(end.setsockopt, SOL, socket.SO_RCVTIMEO, struct.pack("qq", -1, 0)))
        w.result(f"{name}: get", struct.unpack("qq", end.getsockopt(SOL, socket.SO_RCVTIMEO, 16)))
        if name == "early":
            end.bind((w.own, w.port()))
        w.result(f"{name}: recv", outcome_of(*blocked(end.recv, 1)))
        w.result(f"{name}: no time", attempt(end.setsockopt, SOL, socket.SO_RCVTIMEO, struct.pack("qq", -1, 1_000_000)))


@case
def room_for_a_part_of_what_is_told(w):
    if w.six:
        return
    end, there = w.udp(w.port()), w.peer_udp()
    # IP_PKTINFO and IP_RECVTTL
    for name in (8, 12):
        end.setsockopt(socket.IPPROTO_IP, name, 1)
    for room in (0, 8, 16, 24, 27, 28, 32, 40, 48, 51, 52, 56):
        asked(w, end)
        readable(end)
        _, told, flags, _ = end.recvmsg(10, room)
        # Which interface it is differs.
        shown = [(level, kind, len(data), data[4:8] == socket.inet_aton(w.own)) for level, kind, data in told]
        w.result(f"{room} bytes", (shown, flags))


@case
def receiving_before_there_is_a_name(w):
    """A thread waits for what comes, and another gives the socket its name."""
    def polls(end):
        p = select.poll()
        p.register(end, select.POLLIN)
        return words(sum(event for _, event in p.poll(1000 * SURELY)))

    def watches(end):
        e = select.epoll()
        e.register(end, select.EPOLLIN)
        return words(sum(mask for _, mask in e.poll(SURELY)))

    ways = {
        "recv": lambda end: attempt(end.recv, 100),
        "poll": polls,
        "select": lambda end: len(select.select([end], [], [], SURELY)[0]),
        "epoll": watches,
    }
    there = w.peer_udp()
    for name, wait in ways.items():
        for how in ("bind", "connect", "send"):
            end, port = w.udp(), w.port()
            waiting = blocked(wait, end)
            if how == "bind":
                end.bind((w.own, port))
            else:
                (end.connect if how == "connect" else lambda to: end.sendto(b"question", to))(there)
            settle()
            w.peer.do(f"u.sendto(b'answer', {(w.own, end.getsockname()[1])!r})")
            w.result(f"{name}, {how}", outcome_of(*waiting, SURELY))
