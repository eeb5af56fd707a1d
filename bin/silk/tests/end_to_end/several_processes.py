"""Processes that hold one socket: several_processes.py count PORT | write ADDRESS PORT | killed ADDRESS PORT |
read ADDRESS PORT | flood ADDRESS PORT."""
import os
import random
import signal
import socket
import sys
import time

RECORD = 64
WRITERS, RECORDS = 4, 3000
READERS, DATAGRAMS = 4, 10_000
KILLED = 60


def record(letter):
    return letter.encode() * (RECORD - 1) + b"\n"


def count(port):
    """Says what came over one connection: octets, whole records, and how many of them by each writer."""
    listener = socket.create_server(("", port))
    print("listening", flush=True)
    end, _ = listener.accept()
    whole = b""
    while part := end.recv(1 << 16):
        whole += part
    records = [whole[at:at + RECORD] for at in range(0, len(whole), RECORD)]
    good = [one for one in records if one == record(chr(one[0]))]
    by = {letter: sum(one[:1] == letter.encode() for one in good) for letter in "ABCDP"}
    print(f"{len(records) - len(good)} broken, {by}", flush=True)


def write(address, port):
    end = socket.create_connection((address, port))
    writers = []
    for letter in "ABCD"[:WRITERS]:
        writers.append(os.fork())
        if writers[-1] == 0:
            for _ in range(RECORDS):
                end.sendall(record(letter))
            os._exit(0)
    for writer in writers:
        os.waitpid(writer, 0)


def killed(address, port):
    """Writers die at any moment, and the last goes on."""
    end = socket.create_connection((address, port))
    chance = random.Random(3)
    for _ in range(KILLED):
        writer = os.fork()
        if writer == 0:
            while True:
                end.send(record("A"))
        # Somebody else writes all the while.
        until = time.monotonic() + chance.uniform(0.001, 0.02)
        while time.monotonic() < until:
            end.send(record("B"))
        os.kill(writer, signal.SIGKILL)
        os.waitpid(writer, 0)
    for _ in range(1000):
        end.sendall(record("P"))


def read(address, port):
    """Says how many datagrams the readers have had together, and how many different ones."""
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.bind((address, port))
    end.settimeout(3)
    answers = []
    for _ in range(READERS):
        ours, theirs = os.pipe()
        answers.append(ours)
        if os.fork() == 0:
            heard = []
            try:
                while True:
                    heard.append(end.recv(100))
            except TimeoutError:
                os.write(theirs, b" ".join(heard))
            os._exit(0)
        os.close(theirs)
    print("reading", flush=True)
    heard = [datagram for answer in answers for datagram in os.fdopen(answer, "rb").read().split()]
    print(f"{len(heard)} {len(set(heard))}", flush=True)


def flood(address, port):
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for number in range(DATAGRAMS):
        end.sendto(str(number).encode(), (address, port))
        if number % 20 == 0:
            time.sleep(0.0005)


what, *rest = sys.argv[1:]
globals()[what](*(int(word) if word.isdigit() else word for word in rest))
