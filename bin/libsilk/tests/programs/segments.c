/* Several datagrams in one call: cut up when they are sent (UDP_SEGMENT), put together when they are
 * received (UDP_GRO). */
#include "check.h"
#include <netinet/udp.h>

static char b[70000];
static union { char room[64]; struct cmsghdr align; } control;

/* Sends `len` bytes, to be cut into such of `size`, by control data. */
static ssize_t send_cut(int fd, size_t len, uint16_t size, size_t room)
{
	struct iovec v = { b, len };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = control.room };
	m.msg_controllen = CMSG_SPACE(room);
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_UDP, c->cmsg_type = UDP_SEGMENT, c->cmsg_len = CMSG_LEN(room);
	memcpy(CMSG_DATA(c), &size, sizeof size);
	return sendmsg(fd, &m, 0);
}

/* What the receiver is told of each datagram's size; 0: nothing. */
static int told(struct msghdr *m)
{
	int size = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
		if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO)
			memcpy(&size, CMSG_DATA(c), sizeof size);
	return size;
}

static ssize_t receive(int fd, size_t len, int *size)
{
	struct iovec v = { b, len };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = control.room };
	m.msg_controllen = sizeof control.room;
	ssize_t got = recvmsg(fd, &m, MSG_DONTWAIT);
	*size = got < 0 ? 0 : told(&m);
	return got;
}

int main(int argc, char **argv)
{
	begin(argc, argv);
	int server = bound(SOCK_DGRAM), client = socket(AF_INET, SOCK_DGRAM, 0), value, size;
	struct sockaddr_in to = at(port_of(server));
	socklen_t len = sizeof value;
	CHECK(connect(client, (struct sockaddr *)&to, sizeof to) == 0);
	for (size_t n = 0; n < sizeof b; n++)
		b[n] = n % 251;

	/* What is set is told, within bounds; streams know nothing of it. */
	CHECK(getsockopt(client, SOL_UDP, UDP_SEGMENT, &value, &len) == 0 && value == 0);
	value = -1;
	FAILS(setsockopt(client, SOL_UDP, UDP_SEGMENT, &value, sizeof value), EINVAL);
	value = 65536;
	FAILS(setsockopt(client, SOL_UDP, UDP_SEGMENT, &value, sizeof value), EINVAL);
	value = 100;
	CHECK(setsockopt(client, SOL_UDP, UDP_SEGMENT, &value, sizeof value) == 0);
	value = 0;
	CHECK(getsockopt(client, SOL_UDP, UDP_SEGMENT, &value, &len) == 0 && value == 100);

	/* Cut, the last one shorter; not cut where it is one; control data come before the option. */
	CHECK(write(client, b, 250) == 250);
	CHECK(write(client, b, 100) == 100);
	CHECK(write(client, b, 0) == 0);
	CHECK(send_cut(client, 90, 60, 2) == 90);
	CHECK(send_cut(client, 150, 0, 2) == 150);
	settle();
	int expected[] = { 100, 100, 50, 100, 0, 60, 30, 150 };
	for (int k = 0; k < 8; k++) {
		CHECK(receive(server, 300, &size) == expected[k] && size == 0);
		if (k == 2)
			CHECK(b[0] == (char)(200 % 251));
	}
	FAILS(receive(server, 300, &size), EAGAIN);

	/* Not everything can be cut up. */
	FAILS(write(client, b, 12801), EINVAL);
	FAILS(write(client, b, 65508), EMSGSIZE);
	FAILS(send_cut(client, 250, 100, 4), EINVAL);
	CHECK(write(client, b, 12800) == 12800);
	settle();
	for (int k = 0; k < 128; k++)
		CHECK(receive(server, 300, &size) == 100);
	FAILS(receive(server, 300, &size), EAGAIN);

	/* Put together: as long as they are as long as the first, and one shorter at last. */
	value = 1;
	CHECK(setsockopt(server, SOL_UDP, UDP_GRO, &value, sizeof value) == 0);
	value = 0;
	CHECK(getsockopt(server, SOL_UDP, UDP_GRO, &value, &len) == 0 && value == 1);
	for (size_t n = 0; n < sizeof b; n++)
		b[n] = n % 251;
	CHECK(write(client, b, 1050) == 1050);
	settle();
	memset(b, 0, sizeof b);
	CHECK(receive(server, sizeof b, &size) == 1050 && size == 100);
	for (int n = 0; n < 1050; n++)
		if (b[n] != (char)(n % 251)) {
			CHECK(!"the bytes are those that were sent");
			break;
		}
	CHECK(write(client, b, 70) == 70);
	settle();
	CHECK(receive(server, sizeof b, &size) == 70 && size == 0);
	FAILS(receive(server, sizeof b, &size), EAGAIN);
	close(server), close(client);
	return end();
}
