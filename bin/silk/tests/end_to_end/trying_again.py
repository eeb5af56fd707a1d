"""Servers whose daemon dies, and that try again for ever whatever they are told: by accept, by poll and accept, by recvfrom,
and by accepting until nobody is there, which tries again after an error of the network as accept(2) advises (Redis does).
Each tells how often in two seconds. A child that is forked then tells what it is told."""
import errno
import os
import select
import socket
import sys
import threading
import time


def server(kind, port):
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM if kind == "recvfrom" else socket.SOCK_STREAM)
    end.bind(("", port))
    if kind != "recvfrom":
        end.listen()
    return end


def drain(end):
    worst = None
    for _ in range(1000):
        try:
            end.accept()
        except BlockingIOError as why:
            return worst or why
        except OSError as why:
            worst = why
    return worst


def ask(kind, end):
    if kind in ("poll", "drain"):
        end.setblocking(False)
        waits = select.poll()
        waits.register(end, select.POLLIN)
        waits.poll(2000)
    if kind == "drain":
        return drain(end)
    try:
        end.recvfrom(10) if kind == "recvfrom" else end.accept()
    except OSError as why:
        return why
    return None


def again(kind, end):
    why = None
    while why is None or isinstance(why, BlockingIOError):
        why = ask(kind, end)
    times, until = 0, time.monotonic() + 2
    while time.monotonic() < until:
        ask(kind, end)
        times += 1
    asked[kind] = times


asked = {}
kinds = ["accept", "poll", "recvfrom", "drain"]
ends = [server(kind, 20 + number) for number, kind in enumerate(kinds)]
print("listening", flush=True)
threads = [threading.Thread(target=again, args=each) for each in zip(kinds, ends)]
for each in threads:
    each.start()
for each in threads:
    each.join()
for kind, times in asked.items():
    print(f"{kind}: {times} times")
sys.stdout.flush()
if child := os.fork():
    os.waitpid(child, 0)
else:
    print("forked afterwards:", errno.errorcode[ask("accept", ends[0]).errno], flush=True)
    os._exit(0)
