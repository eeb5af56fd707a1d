"""`serve PORT` takes connections and keeps them, `greet PORT` sends each a byte, too; `wait PORT HOST` opens one and says
how its wait ends; `many PORT HOST SOURCE COUNT` tries to open many, says how many are greeted, and holds them."""
import socket, sys, time


def serve(port, greeting=b""):
    server = socket.create_server(("0.0.0.0", port))
    print("listening", flush=True)
    kept = []
    while True:
        kept.append(server.accept())
        kept[-1][0].sendall(greeting)


def wait(port, host):
    connection = socket.create_connection((host, port))
    print("connected", flush=True)
    try:
        print("ended with", connection.recv(1), flush=True)
    except OSError as error:
        print(type(error).__name__, error, flush=True)


def many(port, host, source, count):
    connections = [socket.socket() for _ in range(count)]
    for connection in connections:
        connection.setblocking(False)
        connection.bind((source, 0))
        connection.connect_ex((host, port))
    time.sleep(4)  # Whoever finds no room tries again, after 1 s and 2 s more.
    greeted = 0
    for connection in connections:
        try:
            greeted += connection.recv(1) == b"k"
        except OSError:
            pass
    print("kept", greeted, flush=True)
    time.sleep(60)


match sys.argv[1:]:
    case ["serve", port]:
        serve(int(port))
    case ["greet", port]:
        serve(int(port), b"k")
    case ["wait", port, host]:
        wait(int(port), host)
    case ["many", port, host, source, count]:
        many(int(port), host, source, int(count))
