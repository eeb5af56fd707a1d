"""`serve PORT` takes connections and keeps them; `wait PORT HOST` opens one and says how its wait ends."""
import socket, sys


def serve(port):
    server = socket.create_server(("0.0.0.0", port))
    print("listening", flush=True)
    kept = []
    while True:
        kept.append(server.accept())


def wait(port, host):
    connection = socket.create_connection((host, port))
    print("connected", flush=True)
    try:
        print("ended with", connection.recv(1), flush=True)
    except OSError as error:
        print(type(error).__name__, error, flush=True)


if sys.argv[1] == "serve":
    serve(int(sys.argv[2]))
else:
    wait(int(sys.argv[2]), sys.argv[3])
