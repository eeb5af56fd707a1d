"""Names of sockets: bind, its conflicts, getsockname and getpeername, and both families at once."""
from suite import *


def bare(w, kind=socket.SOCK_STREAM, *options):
    end = socket.socket(w.family, kind)
    for option in options:
        end.setsockopt(SOL, option, 1)
    return end


@case
def names_in_each_state(w):
    def both(end):
        def told(call):
            try:
                host, port, *_ = call()
                known = {w.own: "own", w.there: "peer", "0.0.0.0": "any", "::": "any"}
                return known.get(host, host), port > 0
            except OSError as error:
                return name_of(error.errno)
        return told(end.getsockname), told(end.getpeername)
    w.result("new", both(bare(w)))
    w.result("bound", both(w.tcp(w.port())))
    any_address = bare(w)
    any_address.bind(("", 0))
    w.result("bound to any", both(any_address))
    w.result("listening", both(w.listener()))
    end = w.connected()
    w.result("connected", both(end))
    w.result("accepted", both(w.accepted()))
    any_address.connect(w.peer_listens())
    w.result("bound to any and connected", both(any_address))
    # The peer has let go of it with the name of its end.
    end.shutdown(socket.SHUT_RDWR)
    wait_for(lambda: attempt(end.getpeername) == "ENOTCONN")
    w.result("shut down", both(end))
    end = w.connected()
    w.peer.do("reset(e)")
    events(end, select.POLLHUP)
    w.result("reset", both(end))
    refused = bare(w)
    refused.connect_ex((w.there, 1))
    w.result("refused", both(refused))
    datagrams = bare(w, socket.SOCK_DGRAM)
    w.result("new datagrams", both(datagrams))
    datagrams.connect(w.peer_udp())
    w.result("connected datagrams", both(datagrams))


@case
def bind_and_its_faults(w):
    port = w.port()
    end = w.tcp(port)
    w.result("twice", attempt(end.bind, (w.own, w.port())))
    w.result("another's address", attempt(bare(w).bind, ("2001:db8::1" if w.six else "192.0.2.1", port)))
    w.result("the peer's address", attempt(bare(w).bind, (w.there, port)))
    other = struct.pack("=H26x", socket.AF_INET if w.six else socket.AF_INET6)
    fresh = bare(w)
    w.result("another family", answer(C.bind(fresh.fileno(), other, 28)))
    w.result("too short", answer(C.bind(fresh.fileno(), struct.pack("=H26x", w.family), 3)))
    w.result("port 0", bind_port(w) > 0)
    listener = w.listener()
    w.result("a listener", attempt(listener.bind, (w.own, w.port())))


def bind_port(w):
    end = bare(w)
    end.bind((w.own, 0))
    return end.getsockname()[1]


def pair(w, kind, first, second, listens=True):
    """Whether a second socket can be bound, and listen, where a first one does."""
    port = w.port()
    a, b = bare(w, kind, *first), bare(w, kind, *second)
    a.bind((w.own, port))
    if kind == socket.SOCK_STREAM and listens:
        a.listen()
    told = attempt(b.bind, (w.own, port))
    if told == "ok" and kind == socket.SOCK_STREAM:
        told = f"ok, listen {attempt(b.listen)}"
    return told


@case
def two_of_one_port(w):
    reuse, share = [socket.SO_REUSEADDR], [socket.SO_REUSEPORT]
    for name, kind in (("streams", socket.SOCK_STREAM), ("datagrams", socket.SOCK_DGRAM)):
        w.result(f"{name}, plain", pair(w, kind, [], []))
        w.result(f"{name}, both SO_REUSEADDR", pair(w, kind, reuse, reuse))
        w.result(f"{name}, one SO_REUSEADDR", pair(w, kind, [], reuse))
        w.result(f"{name}, both SO_REUSEPORT", pair(w, kind, share, share))
        w.result(f"{name}, one SO_REUSEPORT", pair(w, kind, share, []))
    w.result("bound only, both SO_REUSEADDR", pair(w, socket.SOCK_STREAM, reuse, reuse, False))
    w.result("bound only, plain", pair(w, socket.SOCK_STREAM, [], [], False))


@case
def any_address_and_one(w):
    plain, reuse, share = [], [socket.SO_REUSEADDR], [socket.SO_REUSEPORT]
    for order, addresses in (("one after any", ("", w.own)), ("any after one", (w.own, ""))):
        for name, options in (("plain", plain), ("SO_REUSEADDR", reuse), ("SO_REUSEPORT", share)):
            for listens in (True, False):
                port = w.port()
                a, b = bare(w, socket.SOCK_STREAM, *options), bare(w, socket.SOCK_STREAM, *options)
                a.bind((addresses[0], port))
                if listens:
                    a.listen()
                told = attempt(b.bind, (addresses[1], port))
                if told == "ok":
                    told += f", listen {attempt(b.listen)}"
                    if not listens:
                        told += f", the first {attempt(a.listen)}"
                w.result(f"{order}, {name}, {'listening' if listens else 'bound'}", told)
        for name, options in (("plain", plain), ("SO_REUSEADDR", reuse), ("SO_REUSEPORT", share)):
            port = w.port()
            a, b = bare(w, socket.SOCK_DGRAM, *options), bare(w, socket.SOCK_DGRAM, *options)
            a.bind((addresses[0], port))
            w.result(f"{order}, {name}, datagrams", attempt(b.bind, (addresses[1], port)))


@case
def a_listener_that_shares_an_address(w):
    port = w.port()
    a, b = w.tcp(port), w.tcp(port)
    w.result("the first", attempt(a.listen))
    w.result("the second", attempt(b.listen))
    w.result("the second connects", attempt(b.connect, w.peer_listens()))
    a.close()
    c = w.tcp(port)
    w.result("after the first, beside a connection", attempt(c.listen))
    b.close()
    a = bare(w, socket.SOCK_STREAM, socket.SO_REUSEADDR)
    w.result("one more while it listens", attempt(a.bind, (w.own, port)))
    c.shutdown(socket.SHUT_RDWR)
    w.result("once it no longer does", attempt(a.bind, (w.own, port)))
    w.result("and listens", attempt(a.listen))
    w.result("beside whom the first does not", attempt(c.listen))


@case
def streams_and_datagrams_of_one_port(w):
    listener = w.listener()
    w.result("bind", attempt(bare(w, socket.SOCK_DGRAM).bind, (w.own, listener.getsockname()[1])))


@case
def a_port_again_after_its_use(w):
    listener = w.listener()
    port = listener.getsockname()[1]
    w.peer_connects(listener)
    end, _ = listener.accept()
    listener.close()
    w.result("with a connection", attempt(bare(w).bind, (w.own, port)))
    w.result("with SO_REUSEADDR", attempt(bare(w, socket.SOCK_STREAM, socket.SO_REUSEADDR).bind, (w.own, port)))
    end.close()
    w.peer.do("e.recv(1); e.close()")
    time.sleep(0.2)
    w.result("in TIME-WAIT", attempt(bare(w).bind, (w.own, port)))
    again = bare(w, socket.SOCK_STREAM, socket.SO_REUSEADDR)
    w.result("in TIME-WAIT with SO_REUSEADDR", attempt(again.bind, (w.own, port)))
    w.result("listen", attempt(again.listen))


@case
def a_port_that_was_only_bound(w):
    port = w.port()
    end = bare(w)
    end.bind((w.own, port))
    end.listen()
    end.close()
    w.result("bind", attempt(bare(w).bind, (w.own, port)))


@case
def connect_from_a_port_twice(w):
    port = w.port()
    a, b = w.tcp(port), w.tcp(port)
    to = w.peer_listens()
    w.result("first", attempt(a.connect, to))
    w.result("second", attempt(b.connect, to))
    w.result("to another", attempt(w.tcp(port).connect, w.peer_listens()))


@case
def both_families_on_one_socket(w):
    v4 = "10.99.0.1"
    port = w.port()
    end = socket.socket(socket.AF_INET6)
    end.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    end.bind(("::", port))
    end.listen()
    w.result("told", end.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY))
    w.result("changed later", attempt(end.setsockopt, socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1))
    settle()
    w.peer.do(f"e = socket.create_connection((%r, {port}))" % v4)
    taken, who = end.accept()
    w.result("peer", who[0])
    w.result("own", taken.getsockname()[0])
    only4 = socket.socket()
    w.result("IPv4 on the same port", attempt(only4.bind, (v4, port)))


@case
def both_ips_after_an_address_that_was_taken(w):
    if not w.six:
        return
    port = w.port()
    w.tcp(port).listen()
    end = w.tcp()
    w.result("one address", attempt(end.bind, (w.own, port)))
    w.result("told", end.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY))
    end.bind(("::", w.port()))
    w.result("told of all", end.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY))


@case
def each_family_its_socket(w):
    v4 = "10.99.0.1"
    port = w.port()
    six, four = socket.socket(socket.AF_INET6), socket.socket()
    six.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    six.bind(("::", port))
    six.listen()
    w.result("bind", attempt(four.bind, ("", port)))
    w.result("listen", attempt(four.listen))
    settle()
    w.peer.do(f"e = socket.create_connection((%r, {port}))" % v4)
    w.result("which", words(polled(six)) + " " + readable(four))


@case
def mapped_addresses(w):
    port = w.port()
    w.peer.do(f"l = socket.create_server(('', {port}))")
    for name, only in (("both", 0), ("IPV6_V6ONLY", 1)):
        end = socket.socket(socket.AF_INET6)
        end.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only)
        w.result(f"connect, {name}", attempt(end.connect, ("::ffff:10.99.0.2", port)))
        if not only:
            w.result("names", (end.getsockname()[0], end.getpeername()[0]))


@case
def without_a_family(w):
    """As old programs name any address: over IPv4 it is one."""
    for what, kind in (("stream", socket.SOCK_STREAM), ("datagrams", socket.SOCK_DGRAM)):
        port, end = w.port(), socket.socket(w.family, kind)
        name = struct.pack("!HH24x", socket.AF_UNSPEC, port)
        w.result(f"bind, {what}", answer(C.bind(end.fileno(), name, 28)))
        w.result(f"the port, {what}", end.getsockname()[1] == port)
        named = socket.inet_pton(w.family, w.own)
        refused = struct.pack("!HH", socket.AF_UNSPEC, w.port()) + named.ljust(24, b"\0")
        w.result(f"one address, {what}", answer(C.bind(socket.socket(w.family, kind).fileno(), refused, 28)))
        if w.family == socket.AF_INET and kind == socket.SOCK_STREAM:
            w.result("listen", attempt(end.listen))
            settle()
            w.peer.do(f"e = socket.create_connection((%r, {port}))" % w.own)
            w.result("accept", readable(end))
        elif w.family == socket.AF_INET:
            settle()
            w.peer.do(f"u = socket.socket(family, socket.SOCK_DGRAM); u.sendto(b'hello', (%r, {port}))" % w.own)
            w.result("recv", outcome_of(*blocked(end.recv, 100), SURELY))


@case
def bind_after_a_failure(w):
    end = w.tcp()
    w.result("connect", attempt(end.connect, (w.there, 1)))
    w.result("bind", attempt(end.bind, (w.own, w.port())))


@case
def options_of_one_that_is_bound_and_connects_to_the_machine_itself(w):
    server = socket.socket(w.family)
    server.bind(("::1" if w.six else "127.0.0.1", w.port()))
    server.listen()
    level = socket.IPPROTO_IPV6 if w.six else socket.IPPROTO_IP
    # Of <linux/in.h>, <linux/in6.h>, <linux/tcp.h> and <asm-generic/socket.h>.
    service, hops, errors, discovery = (67, 16, 25, 23) if w.six else (1, 2, 11, 10)
    inq, rate = 36, 47
    end = w.tcp()
    taken_back = [(level, service, 0x28, 0), (level, hops, 9, -1), (level, errors, 1, 0),
                  (TCP, socket.TCP_USER_TIMEOUT, 9000, 0), (TCP, socket.TCP_NOTSENT_LOWAT, 7000, 0),
                  (TCP, socket.TCP_LINGER2, 5, 0)]
    for at, name, early, _ in taken_back:
        end.setsockopt(at, name, early)
    end.bind(("", 0))
    for at, name, _, value in taken_back:
        end.setsockopt(at, name, value)
    late = [(level, discovery, 3), (TCP, inq, 1), (SOL, rate, 1234567)]
    for at, name, value in late:
        end.setsockopt(at, name, value)
    end.setsockopt(TCP, socket.TCP_CONGESTION, b"reno")
    w.result("connect", attempt(end.connect, server.getsockname()[:2]))
    w.result("as usual again", [end.getsockopt(at, name) for at, name, *_ in taken_back])
    w.result("set late", [end.getsockopt(at, name) for at, name, _ in late])
    w.result("congestion", end.getsockopt(TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0"))
