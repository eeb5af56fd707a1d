"""Connects to ports where there may be somebody, and sends datagrams there, until it is killed."""
import random
import socket
import sys
import time

four, six, *sources = sys.argv[1:5]
ports = [int(port) for port in sys.argv[5:]] + [4200, 4203]
dice, kept = random.Random(1), []
while True:
    port = dice.choice(ports)
    to = six if dice.random() < 0.2 else four
    kind = socket.AF_INET6 if to == six else socket.AF_INET
    try:
        if dice.random() < 0.3:
            with socket.socket(kind, socket.SOCK_DGRAM) as one:
                one.sendto(b'x' * dice.randrange(1500), (to, port))
        else:
            one = socket.socket(kind, socket.SOCK_STREAM)
            one.settimeout(0.05)
            if kind == socket.AF_INET:
                one.bind((dice.choice(sources), 0))
            one.connect((to, port))
            one.send(b'x' * dice.randrange(1, 3000))
            kept.append((time.monotonic(), one))
    except OSError:
        pass
    while kept and (len(kept) > 20 or kept[0][0] < time.monotonic() - 1):
        kept.pop(0)[1].close()
    time.sleep(0.003)
