"""Who answers and resets: resetting.py serve PORT, resetting.py ask SERVER PORT. The server answers each question, which
it leaves unread or reads as the question says, and resets; the client tells what it read and how that ended."""
import socket
import struct
import sys

KINDS = ["unread", "lingering"]


def serve(port):
    with socket.create_server(("", port), backlog=8) as listener:
        while True:
            connection, _ = listener.accept()
            if connection.recv(64, socket.MSG_PEEK) == b"lingering":
                connection.recv(64)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.sendall(b"answer")
            connection.close()


def ask(server, port):
    for kind in KINDS * 20:
        with socket.create_connection((server, port), timeout=20) as connection:
            connection.sendall(kind.encode())
            heard = []
            try:
                while text := connection.recv(64):
                    heard.append(text.decode())
                heard.append("end")
            except OSError as error:
                heard.append(type(error).__name__)
        print(kind, *heard, flush=True)


if sys.argv[1] == "serve":
    serve(int(sys.argv[2]))
else:
    ask(sys.argv[2], int(sys.argv[3]))
