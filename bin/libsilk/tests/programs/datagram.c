/* Datagrams: whole or not at all, each with its sender. */
#include "check.h"

/* All that a pipe holds is one datagram, and what cannot be sent stays there. */
static void splices(void)
{
	static char page[3000], b[70000];
	int ends[2], from = bound(SOCK_DGRAM), to = bound(SOCK_DGRAM);
	struct sockaddr_in there = at(port_of(to));
	CHECK(pipe(ends) == 0);
	CHECK(write(ends[1], page, sizeof page) == sizeof page && write(ends[1], page, sizeof page) == sizeof page);
	FAILS(splice(ends[0], NULL, from, NULL, sizeof b, 0), EDESTADDRREQ);
	CHECK(connect(from, (struct sockaddr *)&there, sizeof there) == 0);
	CHECK(splice(ends[0], NULL, from, NULL, sizeof b, 0) == 2 * sizeof page);
	settle();
	CHECK(recv(to, b, sizeof b, MSG_DONTWAIT) == 2 * sizeof page);
	FAILS(splice(ends[0], NULL, from, NULL, 1, SPLICE_F_NONBLOCK), EAGAIN);
	/* Some of it, a part of a datagram, and the rest of that. */
	CHECK(write(ends[1], "abcdef", 6) == 6);
	CHECK(splice(ends[0], NULL, from, NULL, 2, 0) == 2);
	CHECK(splice(ends[0], NULL, from, NULL, 2, SPLICE_F_MORE) == 2);
	CHECK(splice(ends[0], NULL, from, NULL, sizeof b, 0) == 2);
	settle();
	CHECK(recv(to, b, sizeof b, MSG_DONTWAIT) == 2 && !memcmp(b, "ab", 2));
	CHECK(recv(to, b, sizeof b, MSG_DONTWAIT) == 4 && !memcmp(b, "cdef", 4));
	/* More than any datagram has. */
	CHECK(write(ends[1], b, 65536) == 65536);
	FAILS(splice(ends[0], NULL, from, NULL, 65536, 0), EMSGSIZE);
	CHECK(read(ends[0], b, sizeof b) == 65536);
	/* The end of a pipe is none. */
	CHECK(close(ends[1]) == 0 && splice(ends[0], NULL, from, NULL, 1, 0) == 0);
	settle();
	FAILS(recv(to, b, sizeof b, MSG_DONTWAIT), EAGAIN);
	close(ends[0]), close(from), close(to);
}

int main(int argc, char **argv)
{
	begin(argc, argv);
	char b[128];
	int n;
	struct sockaddr_in who, to;
	socklen_t len = sizeof who;
	int server = bound(SOCK_DGRAM), client = socket(AF_INET, SOCK_DGRAM, 0);
	to = at(port_of(server));
	FAILS(send(client, "x", 1, 0), EDESTADDRREQ);
	CHECK(sendto(client, "one", 3, 0, (struct sockaddr *)&to, sizeof to) == 3);
	CHECK(sendto(client, "", 0, 0, (struct sockaddr *)&to, sizeof to) == 0);
	CHECK(writev(client, &(struct iovec){ b, 0 }, 1) == 0);
	CHECK(sendto(client, "three", 5, 0, (struct sockaddr *)&to, sizeof to) == 5);
	settle();
	CHECK(ioctl(server, FIONREAD, &n) == 0 && n == 3);
	CHECK(read(server, b, 0) == 0 && readv(server, &(struct iovec){ b, 0 }, 1) == 0);
	CHECK(recvfrom(server, b, sizeof b, MSG_PEEK, (struct sockaddr *)&who, &len) == 3 && !memcmp(b, "one", 3));
	CHECK(ntohs(who.sin_port) == port_of(client) && len == sizeof who);
	CHECK(recv(server, b, sizeof b, 0) == 3);
	CHECK(recv(server, b, sizeof b, 0) == 0);
	struct iovec v = { b, 2 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_name = &who, .msg_namelen = sizeof who };
	CHECK(recvmsg(server, &m, 0) == 2 && m.msg_flags == MSG_TRUNC && m.msg_namelen == sizeof who);
	CHECK(sendto(server, "abcdef", 6, 0, (struct sockaddr *)&who, sizeof who) == 6);
	settle();
	CHECK(recv(client, b, 2, MSG_TRUNC) == 6);
	FAILS(recv(client, b, 2, MSG_DONTWAIT), EAGAIN);
	FAILS(getpeername(client, (struct sockaddr *)&who, &len), ENOTCONN);

	/* Connected: to one peer, from one peer. */
	CHECK(connect(client, (struct sockaddr *)&to, sizeof to) == 0);
	len = sizeof who;
	CHECK(getpeername(client, (struct sockaddr *)&who, &len) == 0 && who.sin_port == to.sin_port);
	CHECK(write(client, "hi", 2) == 2);
	len = sizeof who;
	settle();
	CHECK(recvfrom(server, b, sizeof b, 0, (struct sockaddr *)&who, &len) == 2);
	int stranger = bound(SOCK_DGRAM);
	CHECK(sendto(stranger, "no", 2, 0, (struct sockaddr *)&who, sizeof who) == 2 || errno == ECONNREFUSED);
	CHECK(sendto(server, "yes", 3, 0, (struct sockaddr *)&who, sizeof who) == 3);
	settle();
	CHECK(read(client, b, sizeof b) == 3 && !memcmp(b, "yes", 3));
	FAILS(recv(client, b, 2, MSG_DONTWAIT), EAGAIN);

	/* Only an address of no family dissolves that, not one that is no address. */
	FAILS(connect(client, (struct sockaddr *)&to, 8), EINVAL);
	struct sockaddr local = { .sa_family = AF_UNIX };
	FAILS(connect(client, &local, sizeof local), EAFNOSUPPORT);
	FAILS(sendto(client, "x", 1, 0, (struct sockaddr *)&to, 0), EINVAL);
	len = sizeof who;
	CHECK(getpeername(client, (struct sockaddr *)&who, &len) == 0 && who.sin_port == to.sin_port);

	/* Many at once. */
	struct iovec o[3] = { { "a", 1 }, { "bb", 2 }, { "ccc", 3 } };
	struct mmsghdr out[3], in[4];
	memset(out, 0, sizeof out), memset(in, 0, sizeof in);
	char place[4][8];
	struct iovec i[4];
	for (int k = 0; k < 3; k++)
		out[k].msg_hdr.msg_iov = &o[k], out[k].msg_hdr.msg_iovlen = 1;
	for (int k = 0; k < 4; k++) {
		i[k].iov_base = place[k], i[k].iov_len = 8;
		in[k].msg_hdr.msg_iov = &i[k], in[k].msg_hdr.msg_iovlen = 1;
	}
	struct sockaddr_storage name[2];
	memcpy(name, &to, sizeof to);
	struct msghdr named = { .msg_name = name, .msg_namelen = sizeof name, .msg_iov = o, .msg_iovlen = 1 };
	CHECK(sendmsg(client, &named, 0) == 1);
	settle();
	CHECK(recv(server, b, sizeof b, 0) == 1);
	CHECK(sendmmsg(client, out, 3, 0) == 3 && out[2].msg_len == 3);
	settle();
	CHECK(recvmmsg(server, in, 4, MSG_WAITFORONE, NULL) == 3 && in[1].msg_len == 2 && !memcmp(place[2], "ccc", 3));

	/* Waiting, but not for nothing. */
	CHECK(read(server, b, 0) == 0);
	struct pollfd p = { server, POLLIN | POLLOUT, 0 };
	CHECK(poll(&p, 1, 0) == 1 && p.revents == POLLOUT);
	CHECK(write(client, "w", 1) == 1);
	p.events = POLLIN;
	CHECK(poll(&p, 1, 2000) == 1);
	CHECK(read(server, b, sizeof b) == 1);
	struct timeval t = { 0, 40000 };
	CHECK(setsockopt(server, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t) == 0);
	FAILS(recv(server, b, 1, 0), EAGAIN);
	static char big[70000];
	FAILS(send(client, big, sizeof big, 0), EMSGSIZE);
	FAILS(listen(server, 1), EOPNOTSUPP);
	FAILS(accept(server, NULL, NULL), EOPNOTSUPP);
	FAILS(accept4(server, NULL, NULL, 1), EINVAL);
	close(server), close(stranger);
	/* Nobody there: told at the next call. */
	CHECK(write(client, "x", 1) == 1);
	settle();
	FAILS(read(client, b, 1), ECONNREFUSED);
	close(client);
	splices();
	return end();
}
