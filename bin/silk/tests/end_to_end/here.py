"""Datagrams that come back as they were: `serve ADDRESS PORT` sends them back, and says how long they were and whose;
`ask ADDRESS PORT [plain|bound|connected|both]` sends some of every length and compares."""
import hashlib, socket, sys

mode, address, port, how = sys.argv[1], sys.argv[2], int(sys.argv[3]), (sys.argv[4:] or ["plain"])[0]
family = socket.AF_INET6 if ":" in address else socket.AF_INET
end = socket.socket(family, socket.SOCK_DGRAM)

if mode == "serve":
    end.bind((address, port))
    print("ready", flush=True)
    while True:
        data, peer = end.recvfrom(70000)
        print(len(data), peer[0], flush=True)
        end.sendto(data, peer)

end.settimeout(1)
if how in ("bound", "both"):
    end.bind(("::" if family == socket.AF_INET6 else "0.0.0.0", 0))
if how in ("connected", "both"):
    end.connect((address, port))


def ask(data):
    """Asks until it is answered: Linux drops what it has no room for, over loopback too, while others flood its CPU."""
    for _ in range(60):
        if how in ("connected", "both"):
            end.send(data)
        else:
            end.sendto(data, (address, port))
        try:
            while True:
                back, peer = end.recvfrom(70000)
                assert peer[:2] == (address, port), peer
                if back == data:
                    return
                assert back in before, f"{len(data)} bytes were sent, {len(back)} came back"
        except TimeoutError:
            pass
    sys.exit(f"nothing came back of {len(data)} bytes")


before = []
for length in 1, 0, 1000, 3000, 20000, 60000:
    before.append(hashlib.shake_128(str(length).encode()).digest(length))
    ask(before[-1])
print("all came back")
