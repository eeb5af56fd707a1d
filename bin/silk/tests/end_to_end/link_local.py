"""A server and a client, of streams and of datagrams, at the link-local address of eth0: what silk's device does not bring."""
import socket

with open("/proc/net/if_inet6") as listed:
    lines = [line.split() for line in listed]
digits, number = next((line[0], line[1]) for line in lines if line[-1] == "eth0" and line[0].startswith("fe80"))
own, link = socket.inet_ntop(socket.AF_INET6, bytes.fromhex(digits)), int(number, 16)
listener, client = socket.socket(socket.AF_INET6), socket.socket(socket.AF_INET6)
listener.bind((own, 0, 0, link))
listener.listen()
assert listener.getsockname()[3] == link, listener.getsockname()
client.settimeout(10)
client.bind((own, 0, 0, link))
# As it was told, with the link.
client.connect(listener.getsockname())
served, peer = listener.accept()
assert peer == client.getsockname() and peer[3] == link, peer
client.sendall(b"hello")
assert served.recv(10) == b"hello"
server = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
server.bind((own, 0, 0, link))
asking = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
for end in server, asking:
    end.settimeout(10)
asking.sendto(b"good day", server.getsockname())
data, peer = server.recvfrom(10)
assert data == b"good day" and peer == (own, asking.getsockname()[1], 0, link), (data, peer)
server.sendto(b"same to you", peer)
assert asking.recv(20) == b"same to you"
print("all were served")
