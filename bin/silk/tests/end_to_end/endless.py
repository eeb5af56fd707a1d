"""A server with a child for each connection, which sends and reads for ever, and whom it serves.

endless.py serve PORT
endless.py ask ADDRESS PORT    says the child's number once much has passed both ways, and goes on
"""
import os
import signal
import socket
import sys
import threading

MUCH = 12_000_000


def send(end):
    try:
        while True:
            end.sendall(bytes(1 << 18))
    except OSError as error:
        # Of a reset one of those who wait hears, once.
        print(error.strerror, flush=True)


def serve(port):
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listening = socket.create_server(("", port))
    print("ready", flush=True)
    while True:
        end, _ = listening.accept()
        if os.fork() == 0:
            end.sendall(b"%8d" % os.getpid())
            threading.Thread(target=send, args=[end], daemon=True).start()
            while end.recv(1 << 18):
                pass
            os._exit(0)
        end.close()


def ask(address, port):
    end = socket.create_connection((address, port))
    child = int(end.recv(8, socket.MSG_WAITALL))
    sending = threading.Thread(target=send, args=[end], daemon=True)
    sending.start()
    got = 0
    told = False
    while data := end.recv(1 << 18):
        got += len(data)
        if got > MUCH and not told:
            told = True
            print(child, flush=True)
    # It is the one that has heard, and has yet to say so.
    sending.join()


if sys.argv[1] == "serve":
    serve(int(sys.argv[2]))
try:
    ask(sys.argv[2], int(sys.argv[3]))
except OSError as error:
    print(error.strerror, flush=True)
