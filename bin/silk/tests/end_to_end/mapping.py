"""`mapping.py FILE` sends, to each peer of port 7000, the memory that it has mapped the file to: as it is (`file`),
after it was made writable and filled with ones (`written`), with other memory mapped in its place, full of twos
(`mapped`), or with other memory moved there, full of threes (`moved`). After `held` it keeps the file and the
connection until somebody else connects, whatever becomes of them."""
import ctypes, os, select, socket, sys

c = ctypes.CDLL(None, use_errno=True)
for name in ("mmap", "mremap"):
    getattr(c, name).restype = ctypes.c_void_p
READ, WRITE, PRIVATE, FIXED, ANONYMOUS, MOVE = 1, 2, 2, 16, 32, 1 | 2
size = os.stat(sys.argv[1]).st_size
length = ctypes.c_size_t(size)


def map(at, allowed, flags, fd=-1):
    got = c.mmap(ctypes.c_void_p(at), length, allowed, flags, fd, ctypes.c_long(0))
    assert got not in (None, ctypes.c_void_p(-1).value), ctypes.get_errno()
    return got


def become(at, how):
    if how == "written":
        assert c.mprotect(ctypes.c_void_p(at), length, READ | WRITE) == 0
        ctypes.memset(at, 1, size)
    elif how == "mapped":
        map(at, READ | WRITE, PRIVATE | ANONYMOUS | FIXED)
        ctypes.memset(at, 2, size)
    elif how == "moved":
        other = map(0, READ | WRITE, PRIVATE | ANONYMOUS)
        ctypes.memset(other, 3, size)
        assert c.mremap(ctypes.c_void_p(other), length, length, MOVE, ctypes.c_void_p(at)) == at


with socket.create_server(("", 7000)) as listening:
    while True:
        there, _ = listening.accept()
        with there, open(sys.argv[1], "rb") as file:
            how = there.recv(100).decode().strip()
            if not how:
                continue
            at = map(0, READ, PRIVATE, file.fileno())
            become(at, how)
            sent = 0
            while 0 <= sent < size:
                sent += c.send(there.fileno(), ctypes.c_void_p(at + sent), ctypes.c_size_t(size - sent), 0)
            if how == "held":
                select.select([listening], [], [])
            assert c.munmap(ctypes.c_void_p(at), length) == 0
