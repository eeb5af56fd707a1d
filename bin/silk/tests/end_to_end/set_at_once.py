"""Connects sockets that have been bound to an echo server on its own machine, at ADDRESS and PORT, while another thread sets an
option and a flag of each: both count, whenever they come. Says of how many that is so."""
import fcntl, os, random, select, socket, sys, threading, time

THERE, ROUNDS = (sys.argv[1], int(sys.argv[2])), 600
IDLE = (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)


def once():
    ready = threading.Barrier(2)
    with socket.socket() as end:
        end.bind(("0.0.0.0", 0))

        def change():
            ready.wait()
            time.sleep(random.uniform(0, 0.0003))
            if random.random() < 0.5:
                end.setsockopt(*IDLE, 77)
                fcntl.fcntl(end, fcntl.F_SETFL, os.O_NONBLOCK)
            else:
                fcntl.fcntl(end, fcntl.F_SETFL, os.O_NONBLOCK)
                end.setsockopt(*IDLE, 77)

        thread = threading.Thread(target=change)
        thread.start()
        ready.wait()
        end.connect_ex(THERE)
        thread.join()
        select.select([], [end], [], 10)
        end.getpeername()
        return end.getsockopt(*IDLE) == 77 and fcntl.fcntl(end, fcntl.F_GETFL) & os.O_NONBLOCK != 0


print(sum(once() for _ in range(ROUNDS)), "of", ROUNDS)
