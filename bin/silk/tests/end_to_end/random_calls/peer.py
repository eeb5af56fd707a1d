"""The other end of random calls, over Linux's own stack: peer.py SOCKET ADDRESS ADDRESS, one of each IP. It does what it is
told, a line of words after the other over a Unix socket, and answers with what came of it. Nothing of it waits."""
import errno
import random
import socket
import sys
import time
import zlib

# TCP and UDP, at both addresses.
PORT = 7201
# After so many milliseconds without any more there is no more.
IDLE = 20


def brief(data):
    return f"{len(data)} {zlib.crc32(data):08x}"


class Peer:
    def __init__(self, own):
        self.listeners, self.udp, self.known = {}, {}, []
        for version, address in own.items():
            family = socket.AF_INET6 if version == "6" else socket.AF_INET
            self.listeners[version] = socket.create_server((address, PORT), family=family, backlog=50)
            self.listeners[version].setblocking(False)
            self.udp[version] = socket.socket(family, socket.SOCK_DGRAM)
            self.udp[version].bind((address, PORT))
            self.udp[version].setblocking(False)
            if version == "6":
                self.udp[version].setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, socket.if_nametoindex("eth0"))
            else:
                self.udp[version].setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))

    def keep(self, end):
        end.setblocking(False)
        # When it sends does not hang on when what it has sent is acknowledged.
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.known.append(end)
        return "connected"

    def accept(self, version):
        return self.keep(self.listeners[version].accept()[0])

    def connect(self, address, port):
        return self.keep(socket.create_connection((address, int(port)), timeout=1))

    def one(self, which):
        return self.known[int(which) % len(self.known)]

    def send(self, which, size):
        return str(self.one(which).send(random.Random(size).randbytes(int(size))))

    def urge(self, which, size):
        return str(self.one(which).send(random.Random(size).randbytes(int(size)), socket.MSG_OOB))

    def urged(self, which):
        return brief(self.one(which).recv(10, socket.MSG_OOB))

    def recv(self, which):
        """What has come; where that is much, also what comes meanwhile, since who sends it may wait for room. How much of what never
        comes whole does is each stack's own."""
        end, idle = self.one(which), 0
        data = end.recv(10000)
        while len(data) >= 10000 and idle < IDLE:
            try:
                more = end.recv(1 << 20)
            except BlockingIOError:
                idle += 1
                time.sleep(0.001)
                continue
            if not more:
                break
            data, idle = data + more, 0
        return brief(data) if len(data) < 100_000 else "much"

    def shutdown(self, which):
        self.one(which).shutdown(socket.SHUT_WR)
        return "done"

    def close(self, which):
        self.known.remove(end := self.one(which))
        end.close()
        return "done"

    def tell(self, address, port, size):
        version = "6" if ":" in address else "4"
        return str(self.udp[version].sendto(random.Random(size).randbytes(int(size)), (address, int(port))))

    def shout(self, group, port, size):
        return self.tell(group, port, size)

    def hear(self, version):
        return brief(self.udp[version].recv(10000))

    def answer(self, words):
        try:
            return getattr(self, words[0])(*words[1:])
        except ZeroDivisionError:
            return "nobody"
        except OSError as error:
            return errno.errorcode.get(error.errno, "no answer")


if __name__ == "__main__":
    door = socket.socket(socket.AF_UNIX)
    door.bind(sys.argv[1])
    door.listen()
    peer = Peer({"4": sys.argv[2], "6": sys.argv[3]})
    print("listening", flush=True)
    with door.accept()[0].makefile("rw") as talk:
        for line in talk:
            print(peer.answer(line.split()), file=talk, flush=True)
