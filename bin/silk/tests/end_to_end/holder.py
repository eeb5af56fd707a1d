"""`serve PORT` takes connections and keeps them; `wait PORT HOST` opens one and says how its wait ends;
`many PORT HOST SOURCE COUNT` opens many, says how many are not refused, and holds them."""
import select, socket, sys, time


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


def many(port, host, source, count):
    connections = [socket.create_connection((host, port), source_address=(source, 0)) for _ in range(count)]
    for connection in connections:
        connection.sendall(b"x")
    time.sleep(2)  # What is refused hears of it when it sends its byte again.
    ended, _, _ = select.select(connections, [], [], 0)
    print("kept", count - len(ended), flush=True)
    time.sleep(60)


match sys.argv[1:]:
    case ["serve", port]:
        serve(int(port))
    case ["wait", port, host]:
        wait(int(port), host)
    case ["many", port, host, source, count]:
        many(int(port), host, source, int(count))
