"""Several datagrams in a call: segments.py send PEER PORT | receive ADDRESS PORT [together]. What was
received is told by the lengths and a sum of the bytes."""
import errno
import hashlib
import socket
import struct
import sys

SEGMENT, GRO, UDP = 103, 104, 17
DATA = bytes(n % 251 for n in range(60000))
# Longer than what is before it, so that it stands alone.
END = b"." * 1450
HELLO = b"first"

what, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)


def attempt(call, *arguments):
    try:
        return call(*arguments)
    except TimeoutError:
        return "timed out"
    except OSError as error:
        return errno.errorcode[error.errno]


def receive():
    s.bind((address, port))
    s.settimeout(20)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    if "together" in sys.argv:
        s.setsockopt(UDP, GRO, 1)
    print("ready", flush=True)
    total, lengths, told, sender = hashlib.md5(), {}, set(), None
    while True:
        try:
            data, control, _, sender = s.recvmsg(65536, 64)
        except TimeoutError:
            print("no end after", sorted(lengths.items()))
            return
        if data == END:
            break
        if data.startswith(HELLO):
            s.sendto(HELLO, sender)
            continue
        size = [struct.unpack("=i", d)[0] for level, kind, d in control if (level, kind) == (UDP, GRO)]
        told.update(size)
        each = size[0] if size else len(data)
        for at in range(0, len(data), each):
            length = len(data[at:at + each])
            lengths[length] = lengths.get(length, 0) + 1
        total.update(data)
    print(sorted(lengths.items()), total.hexdigest()[:8], "in more than one" if told else "one by one")


def send():
    # Until the neighbour's address is known no large datagram waits for it.
    s.settimeout(1)
    any(attempt(lambda: s.sendto(HELLO, (address, port)) and s.recv(100)) == HELLO for _ in range(20))
    s.connect((address, port))
    s.setsockopt(UDP, SEGMENT, 1400)
    print(attempt(s.send, DATA), attempt(s.send, DATA[:1400]), attempt(s.send, DATA[:20]))
    print(attempt(s.sendmsg, [DATA[:1000]], [(UDP, SEGMENT, struct.pack("=H", 300))]))
    s.setsockopt(UDP, SEGMENT, 1473)
    print(attempt(s.send, DATA[:3000]), attempt(s.send, DATA[:1400]))
    s.setsockopt(UDP, SEGMENT, 0)
    s.send(END)


send() if what == "send" else receive()
