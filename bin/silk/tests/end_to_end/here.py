"""Datagrams that come back as they were: `serve ADDRESS PORT` sends them back, and tells nobody's but what it got;
`ask ADDRESS PORT [bound|connected|both]` sends some of every length and compares."""
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

end.settimeout(10)
if how in ("bound", "both"):
    end.bind(("::" if family == socket.AF_INET6 else "0.0.0.0", 0))
if how in ("connected", "both"):
    end.connect((address, port))
for length in 1, 0, 1000, 3000, 20000, 60000:
    data = hashlib.shake_128(str(length).encode()).digest(length)
    if how in ("connected", "both"):
        end.send(data)
    else:
        end.sendto(data, (address, port))
    try:
        back, peer = end.recvfrom(70000)
    except TimeoutError:
        sys.exit(f"nothing came back of {length} bytes")
    assert back == data, f"{length} bytes were sent, {len(back)} came back"
    assert peer[:2] == (address, port), peer
print("all came back")
