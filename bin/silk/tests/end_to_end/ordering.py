"""Servers, most of them around an event set, and their clients.

The first waits until each of its clients has written, and then prints, answer by answer, of whom the set
tells it; its client writes from each of the given sources, all at once.

ordering.py serve PORT CLIENTS
ordering.py write ADDRESS PORT SOURCE...

The second says to each byte how it is scheduled, and waits for them in one of three ways; its client keeps a connection for
each source and asks from them in turn.

ordering.py follow HOW PORT
ordering.py ask ADDRESS PORT SOURCE...

The third says the same to each datagram, for which it waits in one of five ways; its client sends one after the other.

ordering.py answer HOW PORT
ordering.py say ADDRESS PORT COUNT
"""
import os
import select
import socket
import sys


def serve(port, clients):
    listener = socket.create_server(("0.0.0.0", port))
    events = select.epoll()
    # A listener in the set shows that there are classes, as in every event-driven server.
    events.register(listener, select.EPOLLIN)
    waiting = {}
    while len(waiting) < clients:
        connection, (source, _) = listener.accept()
        # Whoever only looks whether the port is open writes nothing.
        if connection.recv(1, socket.MSG_PEEK):
            waiting[connection.fileno()] = connection, source
    for number in waiting:
        events.register(number, select.EPOLLIN)
    while waiting:
        answer = [waiting.pop(number) for number, _ in events.poll()]
        print(*(source for _, source in answer), flush=True)
        for connection, _ in answer:
            connection.recv(1)
            connection.close()


def write(address, port, sources):
    connections = [socket.create_connection((address, port), 10, (source, 0)) for source in sources]
    for connection in connections:
        connection.send(b"x")
    for connection in connections:
        connection.recv(1)


def follow(how, port):
    listener = socket.create_server(("0.0.0.0", port))
    events, pipe = select.epoll() if how == "epoll" else select.poll(), os.pipe()
    events.register(listener, select.EPOLLIN)
    if how == "poll with a pipe":
        events.register(pipe[0], select.EPOLLIN)
    connections = {}
    while True:
        for number, _ in events.poll():
            if number == listener.fileno():
                connection, _ = listener.accept()
                connections[connection.fileno()] = connection
                events.register(connection, select.EPOLLIN)
            elif connections[number].recv(1):
                connections[number].send(scheduling())
            else:
                events.unregister(number)
                connections.pop(number).close()


def scheduling():
    return f"{os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK} {os.sched_getparam(0).sched_priority}".encode()


def answer(how, port):
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind(("0.0.0.0", port))
    events, several, pipe = select.epoll(), select.poll(), os.pipe()
    for each in (events, several):
        each.register(datagrams, select.EPOLLIN)
    wait = {
        "recv": lambda: None,
        "epoll": events.poll,
        "poll": several.poll,
        "select": lambda: select.select([datagrams], [], []),
        "select with a pipe": lambda: select.select([datagrams, pipe[0]], [], []),
    }
    print("bound", flush=True)
    while True:
        wait[how]()
        _, asker = datagrams.recvfrom(1)
        datagrams.sendto(scheduling(), asker)


def say(address, port, count):
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.settimeout(10)
    end.connect((address, port))
    for _ in range(count):
        end.send(b"?")
        print(end.recv(100).decode(), flush=True)


def ask(address, port, sources):
    connections = {}
    for source in sources:
        if source not in connections:
            connections[source] = socket.create_connection((address, port), 10, (source, 0))
        connections[source].send(b"?")
        print(connections[source].recv(100).decode(), flush=True)


match sys.argv[1:]:
    case ["serve", port, clients]:
        serve(int(port), int(clients))
    case ["write", address, port, *sources]:
        write(address, int(port), sources)
    case ["follow", how, port]:
        follow(how, int(port))
    case ["answer", how, port]:
        answer(how, int(port))
    case ["say", address, port, count]:
        say(address, int(port), int(count))
    case ["ask", address, port, *sources]:
        ask(address, int(port), sources)
