"""Connects COUNT times to an echo server as fast as it can, pauses until there is a file `go`, and does so again, in
children too, and while others of its threads do the same. What is sent must come back each time."""
import os, socket, sys, threading, time

HOST, PORT, COUNT = sys.argv[1], *map(int, sys.argv[2:])


def often(name):
    for number in range(COUNT):
        with socket.create_connection((HOST, PORT), timeout=20) as connection:
            said = f"{name} {number}".encode()
            connection.sendall(said)
            heard = connection.recv(64)
            assert heard == said, (said, heard)


often("first")
print("paused", flush=True)
while not os.path.exists("go"):
    time.sleep(0.02)
often("again")
threads = [threading.Thread(target=often, args=(f"thread {n}",)) for n in range(3)]
for thread in threads:
    thread.start()
children = []
for n in range(4):
    child = os.fork()
    if not child:
        often(f"child {n}")
        os._exit(0)
    children.append(child)
for thread in threads:
    thread.join()
assert all(os.waitpid(child, 0)[1] == 0 for child in children)
often("last")
print("all", flush=True)
