"""nowhere.py ADDRESS …: what a program is told that sends a datagram to each, a line for each way of doing so."""
import errno
import socket
import sys

FOUR, SIX = socket.AF_INET, socket.AF_INET6


def outcome(do):
    try:
        do()
        return "sent"
    except OSError as error:
        return errno.errorcode.get(error.errno, repr(error))


def bound(family):
    end = socket.socket(family, socket.SOCK_DGRAM)
    end.bind(("", 0))
    return end


def connected(end, to):
    end.connect(to)
    end.send(b"to whom it may concern")


for address in sys.argv[1:]:
    six = ":" in address
    mapped = address if six else f"::ffff:{address}"
    ends = [("any", bound(SIX if six else FOUR)), ("any of both", bound(SIX))]
    for name, end in ends:
        to = (mapped if end.family == SIX else address, 9)
        said = [
            outcome(lambda: end.sendto(b"once", to)),
            outcome(lambda: end.sendto(b"again", to)),
            outcome(lambda: end.sendmsg([b"a", b"message"], [], 0, to)),
            outcome(lambda: end.sendto(bytes(70_000), to)),
            outcome(lambda: end.sendto(b"a part", socket.MSG_MORE, to)),
        ]
        # What was kept of it leaves.
        outcome(lambda: end.sendto(b".", to))
        # Another socket, as what was sent before may come back as an error.
        said.append(outcome(lambda: connected(bound(end.family), to)))
        print(address, name, *said, flush=True)
        end.close()
