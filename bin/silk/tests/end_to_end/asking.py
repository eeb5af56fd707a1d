"""A server whose clients ask it about its own sockets, and a client that does.

asking.py serve PORT
asking.py ask ADDRESS PORT SOURCE COMMAND...
"""
import errno
import os
import socket
import struct
import sys
import time

SOL_SILK, SILK_PRIORITY = 0x5117, 1


def answer(connection, words):
    """What the server says to one command."""
    match words:
        case ["get"]:
            return connection.getsockopt(SOL_SILK, SILK_PRIORITY)
        case ["set", priority]:
            connection.setsockopt(SOL_SILK, SILK_PRIORITY, int(priority))
            return "ok"
        case ["scheduling"]:
            return f"{os.sched_getscheduler(0)} {os.sched_getparam(0).sched_priority}"
    return "what?"


def serve(port):
    listener = socket.create_server(("0.0.0.0", port))
    try:
        listener.setsockopt(SOL_SILK, SILK_PRIORITY, 0)
    except OSError as error:
        print("listener:", errno.errorcode[error.errno], flush=True)
    while True:
        connection, _ = listener.accept()
        with connection, connection.makefile("rw") as lines:
            for line in lines:
                try:
                    said = answer(connection, line.split())
                except OSError as error:
                    said = errno.errorcode[error.errno]
                print(said, file=lines, flush=True)


def ask(address, port, source, commands):
    with socket.create_connection((address, port), 10, (source, 0)) as connection:
        lines = connection.makefile("rw")
        for command in commands:
            if command == "wait":
                print("waiting", flush=True)
                time.sleep(60)
            print(command, file=lines, flush=True)
            print(lines.readline().strip(), flush=True)


match sys.argv[1:]:
    case ["serve", port]:
        serve(int(port))
    case ["ask", address, port, source, *commands]:
        ask(address, int(port), source, commands)
