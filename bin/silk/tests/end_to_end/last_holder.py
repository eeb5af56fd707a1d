"""How a connection ends: last_holder.py hear PORT | HOW ADDRESS PORT, where HOW is one of the functions behind `hear`."""
import ctypes
import os
import signal
import socket
import struct
import sys
import threading
import time

MUCH = bytes(4_000_000)


def hear(port):
    """Says of each connection how much came, and how it ended."""
    listener = socket.create_server(("", port))
    print("listening", flush=True)
    while True:
        end, _ = listener.accept()
        got = 0
        try:
            while part := end.recv(1 << 16):
                got += len(part)
            print(got, "ended", flush=True)
        except ConnectionResetError:
            print(got, "reset", flush=True)


def together(end):
    """Both exit at the same moment, with much that is still to be sent."""
    go, tell = os.pipe()
    for _ in range(2):
        if os.fork() == 0:
            os.close(tell)
            os.read(go, 1)
            os._exit(0)
    end.close()
    time.sleep(0.2)


def in_turn(end):
    """The one closes it, the other exits."""
    if child := os.fork():
        end.close()
        os.waitpid(child, 0)
    else:
        time.sleep(0.2)
        sys.exit()


def left_from_a_cage(end):
    """The one exits where a filter of system calls kills whoever sends a message (as sshd's does), then the other closes it."""
    if child := os.fork():
        if os.waitpid(child, 0)[1] != 0:
            os.kill(os.getpid(), signal.SIGKILL)
        end.close()
        return
    sendto, sendmsg = (44, 46) if os.uname().machine == "x86_64" else (206, 211)
    program = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in [
        (0x20, 0, 0, 0),            # the call's number
        (0x15, 2, 0, sendto),
        (0x15, 1, 0, sendmsg),
        (0x06, 0, 0, 0x7FFF0000),   # SECCOMP_RET_ALLOW
        (0x06, 0, 0, 0x80000000),   # SECCOMP_RET_KILL_PROCESS
    ]))
    rules = ctypes.create_string_buffer(struct.pack("@HP", 5, ctypes.addressof(program)))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    assert prctl(38, 1, 0, 0, 0) == 0 and prctl(22, 2, rules) == 0, ctypes.get_errno()
    sys.exit()


def killed(end):
    """The one closes it, the other is killed."""
    if child := os.fork():
        end.close()
        time.sleep(0.5)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    else:
        signal.pause()


def survived(end):
    """The one is killed, the other closes it."""
    if child := os.fork():
        time.sleep(0.2)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        end.sendall(MUCH)
        end.close()
    else:
        signal.pause()


def executed(_end):
    """Its only process executes another program, which does not have it."""
    os.execlp("true", "true")


def executed_in_vain(end):
    """Its last process could not execute another program, and is killed afterwards."""
    if child := os.fork():
        end.close()
        os.waitpid(child, 0)
        return
    try:
        os.execlp("/no such program", "true")
    except FileNotFoundError:
        # Until all has left.
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)


def left_quickly(_end):
    """Its only process ends by the C library's quick_exit."""
    ctypes.CDLL(None).quick_exit(0)


def end_thread():
    """The system call that ends the calling thread alone."""
    ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)


def left_by_its_only_thread(_end):
    """Its only process ends with its only thread."""
    end_thread()


def left_by_its_last_thread(_end):
    """Its only process ends with its last thread, which is not its first."""
    def last():
        time.sleep(0.3)
        end_thread()

    threading.Thread(target=last).start()
    end_thread()


how, *at = sys.argv[1:]
if how == "hear":
    hear(int(at[0]))
connection = socket.create_connection((at[0], int(at[1])))
connection.sendall(MUCH)
globals()[how](connection)
