"""Both ends of connections that carry a stream each way, the same on both stacks.

streams.py ADDRESS serve PORT…      takes one connection at each port
streams.py ADDRESS connect PORT…    opens one to each port of ADDRESS

All connections are carried at once. Who connects ends its stream first (port even) or when the other
has ended (port odd), and who takes does the contrary. It says `PORT whole` of each, or what is wrong with it.
"""
import socket
import sys
import threading

OCTETS = 300_000


def family(at):
    return socket.AF_INET6 if ":" in at else socket.AF_INET


def pattern(port, salt):
    """It repeats itself, but not at the size of a ring."""
    once = bytes((n * 31 + (n >> 8) * 7 + port + salt) & 255 for n in range(65_521))
    return (once * (OCTETS // len(once) + 1))[:OCTETS]


def read_all(end):
    got = bytearray()
    while data := end.recv(1 << 16):
        got += data
    return bytes(got)


def what_is_wrong(got, sent):
    """Where something else came than was sent: a bit that a link broke, or octets from elsewhere?"""
    if got == sent:
        return None
    wrong = [n for n, (one, other) in enumerate(zip(got, sent)) if one != other]
    runs = [n for n in wrong if got[n - 1] == sent[n - 1] or n == 0]
    few = ", ".join(f"{n}: {got[n:n + 4].hex()} for {sent[n:n + 4].hex()}" for n in runs[:4])
    return f"{len(got)} octets of {len(sent)}, {len(wrong)} of them wrong in {len(runs)} places: {few}"


def carry(end, port, own, other, waits):
    """Sends one stream and reads the other at the same time."""
    def send():
        end.sendall(pattern(port, own))
        if not waits:
            end.shutdown(socket.SHUT_WR)
    sender = threading.Thread(target=send)
    sender.start()
    got = read_all(end)
    sender.join()
    # What is not sent yet is sent after the program has ended.
    end.close()
    print(port, what_is_wrong(got, pattern(port, other)) or "whole", flush=True)


def serve(at, port):
    listener = socket.create_server((at, port), family=family(at))
    print("ready", port, flush=True)
    end, _ = listener.accept()
    carry(end, port, 1, 2, port % 2 == 0)


def connect(at, port):
    end = socket.create_connection((at, port), 60)
    end.settimeout(None)
    carry(end, port, 2, 1, port % 2 == 1)


what = {"serve": serve, "connect": connect}[sys.argv[2]]
threads = [threading.Thread(target=what, args=(sys.argv[1], int(port))) for port in sys.argv[3:]]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
