"""itself.py ADDRESS …: a program that has both ends of what it says to an address of its own host, a line for each."""
import errno
import os
import socket
import sys
import threading


def outcome(do):
    try:
        return do()
    except OSError as error:
        return errno.errorcode.get(error.errno, repr(error))


def stream(address, port, own=None):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family)
    listener.bind((address, port))
    listener.listen()
    data = os.urandom(1 << 20)
    seen = []

    def serve():
        end, peer = listener.accept()
        read = b"".join(iter(lambda: end.recv(1 << 16), b""))
        end.sendall(read[::-1])
        end.close()
        seen.append(peer)

    server = threading.Thread(target=serve)
    server.start()
    client = socket.socket(family)
    client.settimeout(15)
    if own:
        client.bind((address, own))
    client.connect((address, port))
    name = client.getsockname()
    client.sendall(data)
    client.shutdown(socket.SHUT_WR)
    back = b"".join(iter(lambda: client.recv(1 << 16), b""))
    server.join()
    return back == data[::-1] and seen == [name] and name[0] == address


def datagrams(address, here, there):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    ends = [socket.socket(family, socket.SOCK_DGRAM) for _ in range(2)]
    for end, port in zip(ends, (here, there)):
        end.settimeout(5)
        end.bind((address, port))
    ends[0].sendto(b"question" * 1000, (address, there))
    question, peer = ends[1].recvfrom(1 << 16)
    ends[1].sendto(question[:8], peer)
    return ends[0].recvfrom(100)[0] == b"question" and len(question) == 8000 and peer[:2] == (address, here)


def refused(address, kind, port):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, kind) as end:
        end.settimeout(5)
        end.connect((address, port))
        end.send(b"nobody?")
        end.recv(10)


def itself(address, port):
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as end:
        end.settimeout(5)
        end.bind((address, port))
        end.connect((address, port))
        end.send(b"to myself")
        return end.recv(20)


for address in sys.argv[1:]:
    print(address, "a stream", outcome(lambda: stream(address, 7000)))
    print(address, "a stream from a port", outcome(lambda: stream(address, 7001, 7002)))
    print(address, "datagrams", outcome(lambda: datagrams(address, 7003, 7004)))
    print(address, "nobody listens", outcome(lambda: refused(address, socket.SOCK_STREAM, 7005)))
    print(address, "nobody hears", outcome(lambda: refused(address, socket.SOCK_DGRAM, 7006)))
    print(address, "a port to itself", outcome(lambda: itself(address, 7007)))
