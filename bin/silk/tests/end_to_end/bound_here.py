"""Connects to an echo server on its own machine, at ADDRESS and PORT, from sockets that have been bound: waiting or not,
watched by an event set before, with options that were set since, and once more after a connection elsewhere failed. What is
sent must come back, and from the port that the socket had been told."""
import errno, select, socket, struct, sys

ADDRESS, PORT, ELSEWHERE = sys.argv[1], int(sys.argv[2]), (sys.argv[3], 9)
FAMILY = socket.AF_INET6 if ":" in ADDRESS else socket.AF_INET
ANY = "::" if FAMILY == socket.AF_INET6 else "0.0.0.0"
THERE = (ADDRESS, PORT)
LINGER = struct.pack("ii", 1, 3)


def bound(at=ANY):
    end = socket.socket(FAMILY)
    end.bind((at, 0))
    return end, end.getsockname()[1]


def echo(end, port):
    end.settimeout(10)
    assert (end.getsockname()[1], end.getpeername()[:2]) == (port, THERE), end
    end.sendall(b"there and back")
    assert end.recv(64) == b"there and back"


plain, port = bound()
plain.connect(THERE)
echo(plain, port)

here, port = bound(ADDRESS)
here.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
here.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER)
here.connect(THERE)
assert here.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
assert here.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8) == LINGER
assert here.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR) == 0
echo(here, port)

watched, port = bound()
watched.setblocking(False)
events = select.epoll()
events.register(watched, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)
events.poll(0)
assert watched.connect_ex(THERE) in (0, errno.EINPROGRESS)
assert events.poll(10) == [(watched.fileno(), select.EPOLLOUT)]
assert watched.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
watched.send(b"news")
# What comes after a pause is told of, to who asks for it since.
told = 0
while not told & select.EPOLLIN:
    (told,) = [bits for _, bits in events.poll(10)]
assert watched.recv(64) == b"news"
try:
    watched.recv(64)
except BlockingIOError:
    pass
echo(watched, port)

refused, port = bound()
try:
    refused.connect((ADDRESS, 9))
    sys.exit("nobody listens there")
except ConnectionRefusedError:
    pass

if FAMILY == socket.AF_INET:
    again, _ = bound()
    assert again.connect_ex(ELSEWHERE) == errno.ECONNREFUSED
    again.connect(THERE)
    echo(again, again.getsockname()[1])
    free = socket.socket()
    assert free.connect_ex(ELSEWHERE) == errno.ECONNREFUSED
    free.connect(THERE)
    echo(free, free.getsockname()[1])
print("all came back")
