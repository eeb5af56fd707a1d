"""`serve` and `visit`: connections over which each side sends more than anybody reads until there is a file "go". Then both
read it all, compare it, and stay until they are killed."""
import os
import socket
import sys
import threading
import time

PORT = 7
CONNECTIONS = 30
LENGTH = 2 << 20
PIECE = 96 << 10


def text(number, to_server):
    unit = f"{number} to {'server' if to_server else 'peer'}, ".encode()
    return (unit * (LENGTH // len(unit) + 1))[:LENGTH]


def read(connection, length):
    """All of it at once, as far as the stream goes on."""
    return connection.recv(length, socket.MSG_WAITALL)


def exchange(connection, number, at_server, done):
    sender = threading.Thread(target=connection.sendall, args=(text(number, not at_server),))
    sender.start()
    while not os.path.exists("go"):
        time.sleep(0.05)
    expected = text(number, at_server)
    for at in range(0, LENGTH, PIECE):
        got = read(connection, min(PIECE, LENGTH - at))
        if got != expected[at : at + PIECE]:
            print(f"connection {number} has {got[:40]!r} and so on at {at}", flush=True)
            return
    sender.join()
    done.release()


def stay(done):
    for _ in range(CONNECTIONS):
        done.acquire()
    print("all came", flush=True)
    time.sleep(600)


def serve():
    listener = socket.create_server(("", PORT), backlog=100)
    print("listening", flush=True)
    done = threading.Semaphore(0)
    for _ in range(CONNECTIONS):
        connection, _ = listener.accept()
        number = int(read(connection, 4))
        threading.Thread(target=exchange, args=(connection, number, True, done), daemon=True).start()
    stay(done)


def visit(server):
    done = threading.Semaphore(0)
    for number in range(CONNECTIONS):
        connection = socket.create_connection((server, PORT))
        connection.sendall(f"{number:4}".encode())
        threading.Thread(target=exchange, args=(connection, number, False, done), daemon=True).start()
        time.sleep(0.15)
    print("all there", flush=True)
    stay(done)


serve() if sys.argv[1] == "serve" else visit(sys.argv[2])
