"""Opens more connections than a server has room for; each is served in the end."""
import socket
import sys
import threading

served = []


def client(number):
    connection = socket.create_connection((sys.argv[1], 7), timeout=50)
    connection.sendall(b"%d" % number)
    served.append(connection.recv(16) == b"%d" % number)


clients = [threading.Thread(target=client, args=(n,)) for n in range(int(sys.argv[2]))]
for each in clients:
    each.start()
for each in clients:
    each.join()
print(f"{sum(served)} of {len(clients)} were served")
