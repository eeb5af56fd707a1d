"""A server of datagrams, and who asks it.

lanes.py answer HOW ADDRESS PORT: says to each datagram how it is scheduled, and how many that said `slow` it has heard, for each of which it
sleeps. From `near` on it sends with nine hops, but to `far` five times one datagram with 77 and one without hops of its own. It waits in `recv`, at an event set (`epoll`; `edge`: that tells of each change once), or looks at each before it takes it (`peek`). `join` has it join a group, `peer` hear this peer alone, `all` everybody again.
lanes.py share OPTION ADDRESS PORT COUNT: so many sockets that share the port by this option (`SO_REUSEPORT`). Each says which of them it is, and how many `slow` all
have heard. `more` makes one more, `join` has the first join a group.
lanes.py again ADDRESS PORT COUNT: five sockets, one after the other, that answer so many questions each.
lanes.py ask FROM TO PORT WORD...: one word after the other, and what was said to it.
lanes.py hops FROM TO PORT WORD COUNT: the hops with which so many answers to a word were sent.
lanes.py flood FROM TO PORT COUNT: so many times `slow`, without waiting for answers.
"""
import ctypes
import os
import select
import socket
import sys
import time

IP_RECVTTL = 12
GROUP = socket.inet_aton("239.9.9.9") + bytes(4)


def end_at(address, port=0):
    end = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
    end.bind((address, port))
    return end


def answer(how, address, port):
    end, events, slow, more = end_at(address, port), select.epoll(), 0, False
    events.register(end, select.EPOLLIN | (select.EPOLLET if how == "edge" else 0))
    end.setblocking(how != "edge")
    print("bound", flush=True)
    while True:
        if how == "epoll" or how == "edge" and not more:
            events.poll()
        if how == "peek":
            first = end.recv(100, socket.MSG_PEEK)
            # A more important one may come meanwhile.
            time.sleep(0.02)
        try:
            word, asker = end.recvfrom(100)
            more = True
        except BlockingIOError:
            more = False
            continue
        assert how != "peek" or word == first, (word, first)
        match word:
            case b"slow":
                slow += 1
                time.sleep(0.005)
            case b"join":
                end.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, GROUP)
            case b"peer":
                end.connect(asker)
            case b"all":
                # AF_UNSPEC
                assert ctypes.CDLL(None).connect(end.fileno(), bytes(16), 16) == 0
            case b"near":
                end.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, 9)
        said = f"{os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK} {os.sched_getparam(0).sched_priority} {slow}"
        for own in [77, 0] * 5 if word == b"far" else [0]:
            hops = [(socket.IPPROTO_IP, socket.IP_TTL, bytes([own, 0, 0, 0]))]
            end.sendmsg([said.encode()], hops if own else [], 0, asker)


def share(option, address, port, count):
    ends, events, slow = [], select.epoll(), 0

    def more():
        end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        end.setsockopt(socket.SOL_SOCKET, getattr(socket, option), 1)
        end.bind((address, port))
        events.register(end, select.EPOLLIN)
        ends.append(end)

    for _ in range(count):
        more()
    print("bound", flush=True)
    while True:
        [(descriptor, _)] = events.poll(maxevents=1)
        [number] = [number for number, end in enumerate(ends) if end.fileno() == descriptor]
        word, asker = ends[number].recvfrom(100)
        match word:
            case b"slow":
                slow += 1
                time.sleep(0.005)
            case b"more":
                more()
            case b"join":
                ends[0].setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, GROUP)
        ends[number].sendto(f"{number} {slow}".encode(), asker)


def again(address, port, count):
    for number in range(5):
        end = end_at(address, port)
        print("bound", number, flush=True)
        for _ in range(count):
            word, asker = end.recvfrom(100)
            end.sendto(word, asker)
        end.close()


def ask(source, to, port, words):
    end = end_at(source)
    end.settimeout(10)
    for word in words:
        end.sendto(word.encode(), (to, port))
        print(end.recv(100).decode(), flush=True)


def hops(source, to, port, word, count):
    end = end_at(source)
    end.settimeout(10)
    end.setsockopt(socket.IPPROTO_IP, IP_RECVTTL, 1)
    end.sendto(word.encode(), (to, port))
    for _ in range(count):
        _, [(_, _, hops)], _, _ = end.recvmsg(100, 100)
        print(hops[0], flush=True)


def flood(source, to, port, count):
    end = end_at(source)
    for _ in range(count):
        end.sendto(b"slow", (to, port))


match sys.argv[1:]:
    case ["answer", how, address, port]:
        answer(how, address, int(port))
    case ["share", option, address, port, count]:
        share(option, address, int(port), int(count))
    case ["again", address, port, count]:
        again(address, int(port), int(count))
    case ["ask", source, to, port, *words]:
        ask(source, to, int(port), words)
    case ["hops", source, to, port, word, count]:
        hops(source, to, int(port), word, int(count))
    case ["flood", source, to, port, count]:
        flood(source, to, int(port), int(count))
