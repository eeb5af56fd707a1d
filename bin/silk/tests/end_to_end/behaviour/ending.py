"""How connections end: in order, by halves, by a reset, and what calls tell of it."""
from suite import *


@case
def lingering_below_zero(w):
    end = w.connected()
    end.setsockopt(SOL, socket.SO_LINGER, struct.pack("ii", 1, -1))
    end.sendall(b"hello")
    end.close()
    w.result("the peer reads", w.peer.tell("outcome(all_of, e, 100)"))


@case
def shutdown_of_what_is_not_connected(w):
    for end, name in ((w.tcp(), "new"), (w.tcp(w.port()), "bound")):
        w.result(name, attempt(end.shutdown, socket.SHUT_RDWR))
        w.result(f"{name}, poll", words(polled(end)))
        w.result(f"{name}, recv", attempt(end.recv, 10))
    end = w.connected()
    w.result("no such direction", attempt(end.shutdown, 7))


@case
def shutdown_before_listening(w):
    """What is accepted is shut down so, too."""
    for how, name in ((socket.SHUT_RD, "reading"), (socket.SHUT_WR, "writing"), (socket.SHUT_RDWR, "both")):
        listener = w.tcp(w.port())
        w.result(name, attempt(listener.shutdown, how))
        listener.listen()
        settle()
        w.peer_connects(listener)
        end, _ = listener.accept()
        w.result(f"{name}, poll", words(polled(end)))
        w.result(f"{name}, send", attempt(end.send, b"x"))
        w.result(f"{name}, recv", attempt(end.recv, 10, socket.MSG_DONTWAIT))
        if how != socket.SHUT_RD:
            w.result(f"{name}, the peer reads", w.peer.tell("outcome(e.recv, 10)"))


@case
def a_refusal_that_was_not_told_before_it_was_taken_apart(w):
    end = w.tcp()
    end.setblocking(False)
    attempt(end.connect, (w.there, 9))
    wait_for(lambda: polled(end) & select.POLLERR)
    w.result("taken apart", answer(C.connect(end.fileno(), bytes(16), 16)))
    w.result("poll", words(polled(end)))
    w.result("an address that is none", answer(C.connect(end.fileno(), struct.pack("=H", w.family), 2)))
    w.result("error", name_of(end.getsockopt(SOL, socket.SO_ERROR)))


@case
def shutdown_of_writing(w):
    end = w.connected()
    end.sendall(b"last words")
    w.result("shutdown", attempt(end.shutdown, socket.SHUT_WR))
    w.result("peer reads", w.peer.tell("all_of(e, 100)"))
    w.result("poll", words(polled(end)))
    w.result("send", attempt(end.send, b"x"))
    w.result("shutdown again", attempt(end.shutdown, socket.SHUT_WR))
    w.peer.do("e.sendall(b'answer')")
    w.result("poll with an answer", readable(end))
    w.result("recv", attempt(end.recv, 100))
    w.peer.do("e.close()")
    w.result("poll at the end", events(end, select.POLLHUP))
    w.result("recv at the end", attempt(end.recv, 100))
    wait_for(lambda: attempt(end.getpeername) == "ENOTCONN")
    w.result("getpeername", attempt(lambda: end.getpeername() and "a name"))
    w.result("shutdown at the end", attempt(end.shutdown, socket.SHUT_RD))


@case
def failure_in_the_middle_of_a_call(w):
    """What had been sent, or received, is told, and the failure is for the next call."""
    end, whole = w.connected(), 10 << 20
    sending = blocked(end.send, bytes(whole))
    w.peer.do("reset(e)")
    sent = outcome_of(*sending)
    w.result("send", "a part" if isinstance(sent, int) and 0 < sent < whole else sent)
    w.result("poll", words(polled(end)))
    w.result("send again", attempt(end.send, b"x"))
    w.result("once more", attempt(end.send, b"x"))
    end = w.connected()
    receiving = blocked(end.recv, 10, socket.MSG_WAITALL)
    w.peer.do("e.sendall(b'begun')")
    settle()
    w.peer.do("reset(e)")
    w.result("recv of all", outcome_of(*receiving))
    w.result("recv again", attempt(end.recv, 10))
    w.result("recv once more", attempt(end.recv, 10))


@case
def shutdown_of_reading(w):
    end = w.connected()
    w.result("shutdown", attempt(end.shutdown, socket.SHUT_RD))
    w.result("poll", words(polled(end)))
    w.result("recv", attempt(end.recv, 100))
    w.result("send", attempt(end.send, b"still here"))
    w.result("peer reads", w.peer.tell("outcome(e.recv, 100)"))
    w.peer.do("e.sendall(b'unwanted')")
    time.sleep(0.2)
    w.result("recv of what comes later", attempt(end.recv, 100))
    w.result("recv then", attempt(end.recv, 100))
    w.result("peer sends more", w.peer.tell("outcome(e.send, b'more')"))


@case
def shutdown_of_reading_with_data_there(w):
    end = w.connected()
    w.peer.do("e.sendall(b'waiting')")
    readable(end)
    end.shutdown(socket.SHUT_RD)
    w.result("poll", words(polled(end)))
    w.result("recv", attempt(end.recv, 100))
    w.result("recv again", attempt(end.recv, 100))


@case
def shutdown_of_both(w):
    end = w.connected()
    w.result("shutdown", attempt(end.shutdown, socket.SHUT_RDWR))
    w.result("poll", events(end, select.POLLHUP))
    w.result("recv", attempt(end.recv, 100))
    w.result("send", attempt(end.send, b"x"))
    w.result("peer reads", w.peer.tell("outcome(e.recv, 100)"))
    w.peer.do("e.close()")
    time.sleep(0.2)
    w.result("again", attempt(end.shutdown, socket.SHUT_RDWR))


@case
def the_peer_shuts_writing_down(w):
    end = w.connected()
    w.peer.do("e.sendall(b'all'); e.shutdown(socket.SHUT_WR)")
    w.result("poll", events(end, select.POLLRDHUP))
    w.result("recv", attempt(end.recv, 100))
    w.result("poll of an empty one", words(polled(end)))
    w.result("recv at the end", attempt(end.recv, 100))
    w.result("recv once more", attempt(end.recv, 100))
    w.result("send", attempt(end.send, b"thanks"))
    w.result("peer reads", w.peer.tell("e.recv(100)"))
    w.result("getpeername", attempt(end.getpeername) != "ENOTCONN")


@case
def the_peer_closes(w):
    end = w.connected()
    w.peer.do("e.close()")
    w.result("poll", events(end, select.POLLRDHUP))
    w.result("recv", attempt(end.recv, 100))
    w.result("send", attempt(end.send, b"x"))
    w.result("poll after the reset", events(end, select.POLLHUP))
    w.result("send again", attempt(end.send, b"x"))
    w.result("SO_ERROR", error_of(end))
    w.result("recv again", attempt(end.recv, 100))
    w.result("getpeername", attempt(end.getpeername))


@case
def reset_behind_the_peers_end(w):
    for call in ("recv", "connect", "SO_ERROR"):
        end = w.connected()
        w.peer.do("e.close()")
        events(end, select.POLLRDHUP)
        end.send(b"x")
        w.result(f"poll before {call}", events(end, select.POLLHUP))
        argument = {"recv": 1, "connect": (w.there, 1)}.get(call)
        w.result(call, attempt(getattr(end, call), argument) if argument else error_of(end))
        w.result(f"recv after {call}", attempt(end.recv, 1))
        w.result(f"send after {call}", attempt(end.send, b"x"))
    end = w.connected()
    w.peer.do("e.shutdown(socket.SHUT_WR)")
    events(end, select.POLLRDHUP)
    end.shutdown(socket.SHUT_WR)
    w.result("the peer reads the end", w.peer.tell("e.recv(1)"))
    w.peer.do("reset(e)")
    w.result("with both ended", error_of(end))


@case
def reset_before_our_end_is_acknowledged(w):
    """Both have ended, and the peer is not known to have heard the last of it."""
    calls = {
        "recv": lambda end: attempt(end.recv, 1),
        "send": lambda end: attempt(end.send, b"x"),
        "SO_ERROR": error_of,
    }
    for name, call in calls.items():
        end = w.connected()
        w.peer.do("e.shutdown(socket.SHUT_WR)")
        events(end, select.POLLRDHUP)
        w.peer.do("deafen(e)")
        end.shutdown(socket.SHUT_WR)
        # LAST-ACK: it has been sent.
        wait_for(lambda: end.getsockopt(TCP, socket.TCP_INFO, 1)[0] == 9)
        w.result(f"poll before the reset, {name}", words(polled(end)))
        w.peer.do("reset(e)")
        w.result(f"poll before {name}", events(end, select.POLLERR))
        w.result(name, call(end))
        w.result(f"{name} again", call(end))
        w.result(f"SO_ERROR after {name}", error_of(end))


@case
def reset_with_data_there(w):
    end = w.connected()
    w.peer.do("e.sendall(b'waiting')")
    readable(end)
    w.peer.do("reset(e)")
    w.result("poll", events(end, select.POLLHUP))
    for step in ("recv", "recv again", "third recv"):
        w.result(step, attempt(end.recv, 100))
    w.result("SO_ERROR", error_of(end))
    w.result("send", attempt(end.send, b"x"))
    w.result("poll then", words(polled(end)))
    w.result("shutdown", attempt(end.shutdown, socket.SHUT_WR))
    w.result("getpeername", attempt(end.getpeername))
    w.result("getsockname", end.getsockname()[0] == w.own)


def reset_connection(w):
    end = w.connected()
    w.peer.do("reset(e)")
    events(end, select.POLLHUP)
    return end


@case
def reset_heard_from_so_error(w):
    end = reset_connection(w)
    w.result("SO_ERROR", error_of(end))
    w.result("SO_ERROR again", error_of(end))
    w.result("recv", attempt(end.recv, 100))
    w.result("send", attempt(end.send, b"x"))
    w.result("poll", words(polled(end)))


@case
def reset_heard_from_send(w):
    end = reset_connection(w)
    w.result("send", attempt(end.send, b"x"))
    w.result("send again", attempt(end.send, b"x"))
    w.result("recv", attempt(end.recv, 100))


@case
def reset_heard_from_peeking(w):
    end = reset_connection(w)
    w.result("peek", attempt(end.recv, 1, socket.MSG_PEEK))
    w.result("recv", attempt(end.recv, 1))


@case
def reset_then_connect_again(w):
    end = reset_connection(w)
    w.result("connect", attempt(end.connect, w.peer_listens()))
    w.result("once more", attempt(end.connect, w.peer_listens()))


@case
def close_with_data_unread(w):
    end = w.connected()
    w.peer.do("e.sendall(b'unread')")
    readable(end)
    end.close()
    w.result("peer reads", w.peer.tell("outcome(e.recv, 100)"))


@case
def close_and_data_that_comes_later(w):
    end = w.connected()
    end.close()
    w.result("peer reads", w.peer.tell("outcome(e.recv, 100)"))
    w.result("peer sends", w.peer.tell("outcome(e.send, b'late')"))
    time.sleep(0.2)
    w.result("peer sends again", w.peer.tell("outcome(e.send, b'late')"))


@case
def linger_of_no_time(w):
    end = w.connected()
    end.sendall(b"data")
    w.peer.do("time.sleep(0.1)")
    end.setsockopt(SOL, socket.SO_LINGER, struct.pack("ii", 1, 0))
    end.close()
    time.sleep(0.2)
    w.result("peer reads", w.peer.tell("outcome(e.recv, 100)"))
    w.result("peer reads on", w.peer.tell("outcome(e.recv, 100)"))


def full(w):
    """A connection whose peer does not read, and as much sent as goes."""
    end = w.connected()
    end.setblocking(False)
    for _ in range(200):
        try:
            while True:
                end.send(bytes(65536))
        except BlockingIOError:
            time.sleep(0.01)
    end.setblocking(True)
    return end


@case
def linger(w):
    end = w.connected()
    end.setsockopt(SOL, socket.SO_LINGER, struct.pack("ii", 1, 1000))
    end.sendall(b"data")
    w.result("waits for nothing", outcome_of(*blocked(end.close)))
    w.result("peer reads", w.peer.tell("all_of(e, 100)"))
    end = full(w)
    end.setsockopt(SOL, socket.SO_LINGER, struct.pack("ii", 1, 1))
    began = time.monotonic()
    end.close()
    w.result("waits for what is not sent", time.monotonic() - began > 0.9)
    end = full(w)
    end.setblocking(False)
    end.setsockopt(SOL, socket.SO_LINGER, struct.pack("ii", 1, 1))
    began = time.monotonic()
    end.close()
    w.result("waits where nothing else does", time.monotonic() - began > 0.9)
    end = full(w)
    w.peer.do("e.send(b'never read')")
    readable(end)
    end.setsockopt(SOL, socket.SO_LINGER, struct.pack("ii", 1, 20))
    w.result("waits where something was not read", outcome_of(*blocked(end.close)))


@case
def signal_of_a_broken_pipe(w):
    def child(end, flags):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        end.shutdown(socket.SHUT_WR)
        C.send(end.fileno(), b"x", 1, flags)
        os._exit(ctypes.get_errno())
    for name, flag in (("send", 0), ("MSG_NOSIGNAL", socket.MSG_NOSIGNAL)):
        end = w.connected()
        pid = os.fork()
        if pid == 0:
            child(end, flag)
        _, status = os.waitpid(pid, 0)
        signalled = os.WIFSIGNALED(status)
        told = signal.Signals(os.WTERMSIG(status)).name if signalled else name_of(os.WEXITSTATUS(status))
        w.result(name, told)


@case
def threads_that_write_while_their_process_ends(w):
    """What is written just then is lost or not, but no thread meets a broken pipe."""
    def child(end):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        threading.Thread(target=lambda: [C.send(end.fileno(), b"x" * 1000, 1000, 0) for _ in iter(int, 1)], daemon=True).start()
        time.sleep(0.02)
        os._exit(0)
    statuses = set()
    for _ in range(20):
        end = w.connected()
        w.peer.do("import threading; threading.Thread(target=lambda e=e: outcome(lambda: [0 for _ in iter(lambda: e.recv(65536), b'')]), daemon=True).start()")
        pid = os.fork()
        if pid == 0:
            child(end)
        end.close()
        statuses.add(os.waitpid(pid, 0)[1])
    w.result("statuses", statuses)


@case
def terminals_and_nothing_in_place_of_standard_connections(w):
    """A program that a super-server has started has its connection there."""
    end = w.connected()
    told, tell = os.pipe()

    def on_a_terminal():
        child, terminal = os.forkpty()
        if child == 0:
            os.write(1, b"first\n")
            os.execvp("sh", ["sh", "-c", "test -t 0 && test -t 1 && test -t 2 && echo terminal"])
        said = b""
        try:
            while more := os.read(terminal, 100):
                said += more
        except OSError:
            pass
        os.waitpid(child, 0)
        os.write(tell, said.replace(b"\r", b""))

    def as_a_daemon():
        C.daemon(1, 0)
        os.write(1, b"nothing")
        os.write(tell, os.readlink("/proc/self/fd/1").encode())

    for name, does in (("forkpty", on_a_terminal), ("daemon", as_a_daemon)):
        pid = os.fork()
        if pid == 0:
            for standard in range(3):
                os.dup2(end.fileno(), standard)
            does()
            os._exit(0)
        w.result(name, os.read(told, 200))
        os.waitpid(pid, 0)
    end.sendall(b"bye")
    w.result("the peer reads", w.peer.tell("e.recv(100)"))


@case
def shutdown_while_another_thread_reads(w):
    end = w.connected()
    reader = blocked(end.recv, 10)
    end.shutdown(socket.SHUT_RD)
    w.result("recv", outcome_of(*reader))


@case
def shutdown_while_another_thread_accepts(w):
    listener = w.listener()
    accepting = blocked(listener.accept)
    listener.shutdown(socket.SHUT_RD)
    w.result("accept", outcome_of(*accepting))


@case
def shutdown_while_another_thread_polls(w):
    end = w.connected()
    p = select.poll()
    p.register(end, select.POLLIN)
    polling = blocked(lambda: [words(event) for _, event in p.poll(5000)])
    end.shutdown(socket.SHUT_RDWR)
    w.result("poll", outcome_of(*polling))


@case
def shutdown_while_another_thread_polls_beside_a_pipe(w):
    a_pipe = os.pipe()
    connected = w.udp()
    connected.connect(w.peer_udp())
    for name, end in (("a stream", w.connected()), ("a listener", w.listener()), ("datagrams", connected), ("datagrams of anybody", w.udp(w.port()))):
        polling = poll_alone(end, a_pipe[0])
        attempt(end.shutdown, socket.SHUT_RDWR)
        w.result(name, outcome_of(*polling, 0.8))
    # Whoever waits for room hears that none comes any more.
    end = w.connected()
    end.setblocking(False)
    fill(end)
    polling = poll_alone(end, a_pipe[0], select.POLLOUT)
    attempt(end.shutdown, socket.SHUT_WR)
    w.result("a full stream, writing", outcome_of(*polling, 0.8))


@case
def close_while_another_thread_reads(w):
    end = w.connected()
    reader = blocked(C.recv, end.fileno(), ctypes.create_string_buffer(10), 10, 0)
    os.close(end.detach())
    w.result("recv at first", outcome_of(*reader, 0.3))
    w.peer.tell("outcome(e.sendall, b'hello')")
    w.result("recv when data come", outcome_of(*reader))


@case
def close_while_another_thread_accepts(w):
    listener = w.listener()
    where = listener.getsockname()[:2]
    accepting = blocked(lambda fd: C.accept(fd, None, None) >= 0, listener.fileno())
    os.close(listener.detach())
    w.result("accept at first", outcome_of(*accepting, 0.3))
    w.peer.tell(f"outcome(socket.create_connection, {where!r}) and None")
    w.result("accept when somebody comes", outcome_of(*accepting, 1))


def poll_alone(end, also=-1, wanted=select.POLLIN):
    waits = struct.pack("ihhihh", end.fileno(), wanted, 0, also, select.POLLIN, 0)
    waits = ctypes.create_string_buffer(waits)

    def said():
        assert C.poll(waits, 2, 5000) == 1, "nothing"
        return words(struct.unpack("ihhihh", waits.raw[:16])[2])
    return blocked(said)


@case
def close_while_another_thread_polls(w):
    a_pipe = os.pipe()
    for name, also in (("alone", -1), ("beside a pipe", a_pipe[0])):
        end = w.connected()
        polling = poll_alone(end, also)
        os.close(end.detach())
        w.result(f"poll {name}", outcome_of(*polling))


@case
def close_of_an_event_set_in_which_another_thread_waits(w):
    """The next has its number, and what comes there is the next one's alone."""
    first, end = w.connected(), w.connected()
    closed = select.epoll()
    closed.register(first, select.EPOLLIN)
    told = ctypes.create_string_buffer(12)
    waiting = blocked(lambda: answer(C.epoll_wait(closed.fileno(), told, 1, 4000)))
    closed.close()
    following = select.epoll()
    following.register(end, select.EPOLLIN | select.EPOLLET | select.EPOLLONESHOT)
    time.sleep(1.5)
    w.peer.do("e.sendall(b'hello')")
    w.result("the next", [words(event) for _, event in following.poll(SURELY)])
    w.result("the closed one", outcome_of(*waiting, 0.3))


@case
def another_descriptor_in_place_of_what_another_thread_polls(w):
    """As Java does to end a thread's wait before it closes a socket: what comes in its place has ended, and the
    thread is interrupted besides."""
    signal.signal(signal.SIGUSR1, lambda *_: None)
    signal.siginterrupt(signal.SIGUSR1, True)
    one, other = socket.socketpair()
    other.close()
    end = w.connected()
    thread, said = poll_alone(end)
    os.dup2(one.fileno(), end.fileno())
    signal.pthread_kill(thread.ident, signal.SIGUSR1)
    thread.join(PATIENCE)
    w.result("poll", "ended" if said else "still blocked")


@case
def reset_while_another_thread_reads(w):
    end = w.connected()
    reader = blocked(end.recv, 10)
    w.peer.do("reset(e)")
    w.result("recv", outcome_of(*reader))


@case
def signal_while_reading(w):
    end = w.connected()
    signal.signal(signal.SIGUSR1, lambda *_: None)
    signal.siginterrupt(signal.SIGUSR1, True)
    main = threading.main_thread().ident
    threading.Timer(0.3, lambda: signal.pthread_kill(main, signal.SIGUSR1)).start()
    w.result("interrupting", answer(C.recv(end.fileno(), ctypes.create_string_buffer(9), 9, 0)))
    signal.siginterrupt(signal.SIGUSR1, False)
    threading.Timer(0.3, lambda: signal.pthread_kill(main, signal.SIGUSR1)).start()
    later = threading.Timer(0.8, lambda: w.peer.do("e.sendall(b'hello')"))
    later.start()
    w.result("restarting", answer(C.recv(end.fileno(), ctypes.create_string_buffer(9), 9, 0)))
    later.join()


@case
def signal_while_waiting_otherwise(w):
    """What is waited for comes half a second after the signal."""
    signal.signal(signal.SIGUSR1, lambda *_: None)
    main = threading.main_thread().ident
    end, other, listener = w.connected(), w.udp(w.port()), w.listener()
    end.setsockopt(SOL, socket.SO_RCVTIMEO, struct.pack("ll", 5, 0))
    where = listener.getsockname()[:2]

    def poll_of(*ends):
        waits = b"".join(struct.pack("ihh", one.fileno(), select.POLLIN, 0) for one in ends)
        return lambda: C.poll(ctypes.create_string_buffer(waits), len(ends), 5000)

    def empty(call):
        while attempt(call) != "EAGAIN":
            pass
    send = "e.sendall(b'hello')"
    calls = {
        "accept": (lambda: min(C.accept(listener.fileno(), None, None), 0), f"socket.create_connection({where!r})"),
        "recv with a limit": (lambda: C.recv(end.fileno(), ctypes.create_string_buffer(9), 9, 0), send),
        "poll": (poll_of(end), send),
        "poll of two": (poll_of(end, other), send),
    }
    for ends in (True, False):
        signal.siginterrupt(signal.SIGUSR1, ends)
        for name, (call, comes) in calls.items():
            first = threading.Timer(0.2, lambda: signal.pthread_kill(main, signal.SIGUSR1))
            later = threading.Timer(0.6, lambda: w.peer.tell(f"outcome(lambda: {comes}) and None"))
            first.start()
            later.start()
            told = answer(call())
            w.result(f"{name}, {'ending' if ends else 'restarting'}", told)
            first.join()
            later.join()
            # What nobody has taken must not be met by the next call.
            assert told != "EINTR" or wait_for(lambda: polled(end, 1) or polled(listener, 1))
            empty(lambda: end.recv(100, socket.MSG_DONTWAIT))
            listener.setblocking(False)
            empty(listener.accept)
            listener.setblocking(True)


@case
def ends_of_a_forked_process(w):
    end = w.connected()
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        end.sendall(b"from the child")
        os.read(ours, 1)
        os._exit(0)
    w.result("peer reads", w.peer.tell("e.recv(100)"))
    end.sendall(b"and the parent")
    end.close()
    w.result("peer reads on", w.peer.tell("e.recv(100)"))
    w.result("the end has come", w.peer.tell("(e.settimeout(0.3), outcome(e.recv, 100))[1]"))
    os.write(theirs, b"x")
    os.waitpid(pid, 0)
    w.result("now it has", w.peer.tell("(e.settimeout(5), outcome(e.recv, 100))[1]"))


@case
def duplicates(w):
    end = w.connected()
    twin = socket.socket(fileno=os.dup(end.fileno()))
    end.setblocking(False)
    w.result("flags are shared", attempt(C.recv, twin.fileno(), ctypes.create_string_buffer(1), 1, 0) == -1)
    end.close()
    w.result("send of the twin", attempt(twin.send, b"hello"))
    w.result("peer reads", w.peer.tell("e.recv(100)"))
    other = os.dup2(twin.fileno(), 77)
    twin.shutdown(socket.SHUT_WR)
    w.result("write of the third", attempt(os.write, other, b"x"))
    twin.close()
    w.peer.do("e.sendall(b'answer')")
    readable(other)
    w.result("read of the third", attempt(os.read, other, 100))
    os.close(other)


@case
def process_that_dies(w):
    """Linux closes what a killed process leaves behind in order."""
    port = w.port()
    w.peer.do(f"l = socket.create_server((address, {port}), family=family)")
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        end = w.tcp()
        end.connect((w.there, port))
        end.sendall(b"last words")
        os.write(theirs, b"x")
        time.sleep(60)
    os.read(ours, 1)
    w.peer.do("e = taken(l)")
    w.result("peer reads", w.peer.tell("e.recv(100)"))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    w.result("peer reads the end", w.peer.tell("outcome(e.recv, 100)"))
