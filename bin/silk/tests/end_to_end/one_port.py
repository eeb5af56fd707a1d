"""One port, many sockets. serve PORT NAME=ADDRESS...: a listener and a datagram socket for each, of one process; whoever
asks hears the name. With "any" as an address they share by SO_REUSEPORT, and SO_REUSEADDR for datagrams. ask PORT
ADDRESS...: what each answers, by stream and by datagram. leave PORT FROM ADDRESS...: connects to each from the same port
at FROM, all of which stay, and says what each sends. many PORT COUNT ADDRESS...: opens so many connections to each, which
stay, from ports of the system's choice, and then one more to each."""
import errno, select, socket, sys


def family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def opened(kind, address, *options):
    end = socket.socket(family(address), kind)
    for option in options:
        end.setsockopt(socket.SOL_SOCKET, option, 1)
    if family(address) == socket.AF_INET6:
        end.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    return end


def serve(port, *seats):
    seats = [seat.split("=") for seat in seats]
    shares = any(address in ("0.0.0.0", "::") for _, address in seats)
    streams, datagrams, ends = {}, {}, []
    for name, address in seats:
        stream = opened(socket.SOCK_STREAM, address, socket.SO_REUSEADDR, *[socket.SO_REUSEPORT] * shares)
        stream.bind((address, port))
        stream.listen()
        datagram = opened(socket.SOCK_DGRAM, address, *[socket.SO_REUSEADDR] * shares)
        datagram.bind((address, port))
        streams[stream], datagrams[datagram] = name, name
    print("listening", flush=True)
    while True:
        for end in select.select([*streams, *datagrams], [], [])[0]:
            if end in streams:
                with end.accept()[0] as one:
                    one.sendall(streams[end].encode())
            else:
                end.sendto(datagrams[end].encode(), end.recvfrom(100)[1])


def heard(end):
    whole = b""
    while part := end.recv(100):
        whole += part
    return whole.decode()


def ask(port, *addresses):
    for address in addresses:
        with opened(socket.SOCK_STREAM, address) as stream, opened(socket.SOCK_DGRAM, address) as datagram:
            stream.settimeout(10)
            datagram.settimeout(10)
            stream.connect((address, port))
            datagram.sendto(b"who?", (address, port))
            print(address, heard(stream), datagram.recv(100).decode(), flush=True)


def leave(port, source, *addresses):
    ends = []
    for address in [*addresses, addresses[0]]:
        end = opened(socket.SOCK_STREAM, source, socket.SO_REUSEADDR)
        end.settimeout(10)
        end.bind((source, port))
        try:
            end.connect((address, port))
            ends.append(end)
        except OSError as error:
            print(errno.errorcode[error.errno], flush=True)
    for end in ends:
        print(end.getsockname()[1] == port, end.getpeername()[0], heard(end), flush=True)


def many(port, count, *addresses):
    ends = []
    for address in addresses:
        for _ in range(int(count) + 1):
            end = opened(socket.SOCK_STREAM, address)
            end.settimeout(10)
            try:
                end.connect((address, port))
                ends.append(end)
            except OSError as error:
                print(address, errno.errorcode[error.errno], flush=True)
    names = [heard(end) for end in ends]
    for name in sorted(set(names)):
        print(name, names.count(name), flush=True)
    print("ports", len({end.getsockname()[1] for end in ends}), flush=True)


what, port, *rest = sys.argv[1:]
{"serve": serve, "ask": ask, "leave": leave, "many": many}[what](int(port), *rest)
