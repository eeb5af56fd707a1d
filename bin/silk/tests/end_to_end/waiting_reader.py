"""`waiting_reader.py ADDRESS NAME GO FILE` asks for a file over HTTP, takes none of it before `GO` exists, and then
all, with the head before it."""
import os, socket, sys, time

address, name, go, into = sys.argv[1:]
with socket.socket() as there, open(into, "wb") as here:
    # A small window, so that most has to wait at the other end.
    there.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
    there.settimeout(30)
    there.connect((address, 80))
    there.sendall(f"GET /{name} HTTP/1.0\r\n\r\n".encode())
    while not os.path.exists(go):
        time.sleep(0.01)
    while part := there.recv(1 << 16):
        here.write(part)
