"""Both ends of one connection after the other that carries a long stream there and then back, the same on both stacks.

there_and_back.py ADDRESS serve|connect PORT

Says `whole`, and how large the buffers for receiving and sending have become, of each.
"""
import random
import socket
import sys

OCTETS = 6_000_000
TIMES = 3


def receive(end):
    got = bytearray()
    while len(got) < OCTETS and (data := end.recv(1 << 18)):
        got += data
    return bytes(got)


at, role, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
listening = socket.create_server((at, port)) if role == "serve" else None
print("ready", flush=True)
for number in range(TIMES):
    text = random.Random(number).randbytes(OCTETS)
    if listening:
        end, _ = listening.accept()
        got = receive(end)
        end.sendall(text)
    else:
        end = socket.create_connection((at, port))
        end.sendall(text)
        got = receive(end)
    sizes = [end.getsockopt(socket.SOL_SOCKET, option) for option in (socket.SO_RCVBUF, socket.SO_SNDBUF)]
    end.close()
    print("whole" if got == text else f"{len(got)} octets that are not what was sent", *sizes, flush=True)
