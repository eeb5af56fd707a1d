"""A server of datagrams, and who asks it.

lanes.py answer HOW ADDRESS PORT: says to each datagram how it is scheduled, and how many that said `slow` it has heard, for each of which it
sleeps. It waits in `recv`, at an event set (`epoll`), or looks at each before it takes it (`peek`). `join` has it join a group, `peer` hear this peer alone, `all` everybody again.
lanes.py again ADDRESS PORT COUNT: five sockets, one after the other, that answer so many questions each.
lanes.py ask FROM TO PORT WORD...: one word after the other, and what was said to it.
lanes.py flood FROM TO PORT COUNT: so many times `slow`, without waiting for answers.
"""
import ctypes
import os
import select
import socket
import sys
import time

GROUP = socket.inet_aton("239.9.9.9") + bytes(4)


def end_at(address, port=0):
    end = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
    end.bind((address, port))
    return end


def answer(how, address, port):
    end, events, slow = end_at(address, port), select.epoll(), 0
    events.register(end, select.EPOLLIN)
    print("bound", flush=True)
    while True:
        if how == "epoll":
            events.poll()
        if how == "peek":
            first = end.recv(100, socket.MSG_PEEK)
            # A more important one may come meanwhile.
            time.sleep(0.02)
        word, asker = end.recvfrom(100)
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
        said = f"{os.sched_getscheduler(0)} {os.sched_getparam(0).sched_priority} {slow}"
        end.sendto(said.encode(), asker)


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


def flood(source, to, port, count):
    end = end_at(source)
    for _ in range(count):
        end.sendto(b"slow", (to, port))


match sys.argv[1:]:
    case ["answer", how, address, port]:
        answer(how, address, int(port))
    case ["again", address, port, count]:
        again(address, int(port), int(count))
    case ["ask", source, to, port, *words]:
        ask(source, to, int(port), words)
    case ["flood", source, to, port, count]:
        flood(source, to, int(port), int(count))
