"""Sends back what it receives, as echo_server.py does, but accepts in one process and serves in three others, which it passes
each connection to in turn (SCM_RIGHTS). They are forked before there is a socket. The first is passed the listening socket as
well, and accepts too, half of the time at least."""
import asyncio, os, select, socket, sys
from echo_server import echo

WORKERS = 3


async def work(inbox):
    loop, tasks = asyncio.get_running_loop(), set()

    async def serve(connection):
        await echo(*await asyncio.open_connection(sock=connection))

    def arrived():
        message, fds, _, _ = socket.recv_fds(inbox, 1, 1)
        if not fds:
            os._exit(0)
        passed = socket.socket(fileno=fds[0])
        passed.setblocking(False)
        made = asyncio.start_server(echo, sock=passed) if message == b"l" else serve(passed)
        task = loop.create_task(made)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    loop.add_reader(inbox, arrived)
    await asyncio.Event().wait()


outboxes = []
for _ in range(WORKERS):
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        for other in [*outboxes, ours]:
            other.close()
        asyncio.run(work(theirs))
    theirs.close()
    outboxes.append(ours)

listener = socket.create_server(("0.0.0.0", int(sys.argv[1])), backlog=128)
socket.send_fds(outboxes[0], [b"l"], [listener.fileno()])
turn = 0
while True:
    # It does not block: who was passed it has said so, and it is one socket.
    select.select([listener], [], [])
    try:
        connection, _ = listener.accept()
    except BlockingIOError:
        continue
    turn += 1
    with connection:
        socket.send_fds(outboxes[turn % WORKERS], [b"c"], [connection.fileno()])
