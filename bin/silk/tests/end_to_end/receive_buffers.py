"""How much waits for who does not read: receive_buffers.py receive ADDRESS | send ADDRESS. The receiver has three sockets that
have asked for different room, reads nothing before it is told that all was sent, and says how much there is."""
import socket
import sys
import time

# What each asks for, by which option: more than there usually is, nothing, little, and what only who may can have.
ASKED = {4500: (socket.SO_RCVBUF, 1 << 20), 4501: None, 4502: (socket.SO_RCVBUF, 8192), 4503: (33, 1 << 20)}
TOLD, SENT, SIZE = 4509, 600, 1400


def opened(address, port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    # Some programs ask before they bind, and others afterwards.
    if ASKED[port] and port % 2 == 0:
        s.setsockopt(socket.SOL_SOCKET, *ASKED[port])
    s.bind((address, port))
    if ASKED[port] and port % 2 == 1:
        s.setsockopt(socket.SOL_SOCKET, *ASKED[port])
    s.setblocking(False)
    return s


def waiting(s):
    count = 0
    try:
        while True:
            data = s.recv(2000)
            assert len(data) == SIZE and int.from_bytes(data[:2], "big") == count, (count, data[:2])
            count += 1
    except BlockingIOError:
        return count


if sys.argv[1] == "receive":
    sockets = [opened(sys.argv[2], port) for port in ASKED]
    told = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    told.bind((sys.argv[2], TOLD))
    for turn in range(2):
        print("ready", flush=True)
        told.recv(1)
        print(*(waiting(s) for s in sockets))
    print(*(s.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) for s in sockets), flush=True)
else:
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for port in ASKED:
        for number in range(SENT):
            s.sendto(number.to_bytes(2, "big") + bytes(SIZE - 2), (sys.argv[2], port))
            if number % 16 == 0:
                # A veth's ring holds 256 packets.
                time.sleep(0.001)
    time.sleep(0.2)
    s.sendto(b"x", (sys.argv[2], TOLD))
