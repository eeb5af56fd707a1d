"""`serve`: keeps connections and reads nothing until it is told to go on, then lets all go and serves whoever
comes. `visit`: opens connections that send more than is read, until no more is let in; ends them all, and
is served again."""
import os
import socket
import sys
import time

PORT = 7


def serve():
    listener = socket.create_server(("", PORT), backlog=1000)
    print("listening", flush=True)
    listener.settimeout(0.1)
    kept = []
    while not os.path.exists("go"):
        try:
            kept.append(listener.accept()[0])
        except TimeoutError:
            pass
    for each in kept:
        each.close()
    listener.settimeout(None)
    while True:
        connection, _ = listener.accept()
        connection.sendall(connection.recv(16))
        connection.close()


def visit(server):
    open_ones = []
    try:
        while len(open_ones) < 500:
            connection = socket.create_connection((server, PORT), timeout=2)
            connection.setblocking(False)
            fill(connection)
            open_ones.append(connection)
    except TimeoutError:
        pass
    print(len(open_ones), "let in", flush=True)
    for each in open_ones:
        each.close()
    ask(server)
    print("then served again")


def fill(connection):
    end = time.monotonic() + 0.1
    while time.monotonic() < end:
        try:
            connection.send(bytes(65536))
        except BlockingIOError:
            time.sleep(0.005)


def ask(server):
    for _ in range(20):
        try:
            with socket.create_connection((server, PORT), timeout=3) as connection:
                connection.sendall(b"well?")
                if connection.recv(16) == b"well?":
                    return
        except OSError:
            time.sleep(0.2)
    sys.exit("not served again")


serve() if sys.argv[1] == "serve" else visit(sys.argv[2])
