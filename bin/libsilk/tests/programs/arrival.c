/* What is told with a datagram of how it arrived, to who has asked for it. */
#include "check.h"
#include <netinet/ip.h>

static union { char room[512]; struct cmsghdr align; } control;
static struct msghdr m;
static char b[100];

/* Sends a datagram to it, and receives it with so much room for control data. */
static void exchange(int server, int client, size_t room)
{
	static struct iovec v = { b, sizeof b };
	m = (struct msghdr){ .msg_iov = &v, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = room };
	struct sockaddr_in to = at(port_of(server));
	CHECK(sendto(client, "x", 1, 0, (struct sockaddr *)&to, sizeof to) == 1);
	CHECK(recvmsg(server, &m, 0) == 1);
}

/* How many entries came, of which the last of this kind is copied; -1: none of this kind. */
static int told(int level, int kind, void *value, size_t size)
{
	int n = 0, found = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c), n++)
		if (c->cmsg_level == level && c->cmsg_type == kind && c->cmsg_len == CMSG_LEN(size))
			memcpy(value, CMSG_DATA(c), size), found = 1;
	return found ? n : -1;
}

static int number(int fd, int level, int name)
{
	int v = -99;
	socklen_t n = sizeof v;
	CHECK(getsockopt(fd, level, name, &v, &n) == 0);
	return v;
}

/* Sets it and looks that it reads back. */
static void ask(int fd, int level, int name, int on)
{
	CHECK(setsockopt(fd, level, name, &on, sizeof on) == 0);
	CHECK(number(fd, level, name) == on);
}

/* Hops and service bits: a number and a byte. */
static void way(int server, int client)
{
	int hops = 0, bits = 0x48;
	uint8_t service = 0;
	CHECK(setsockopt(client, IPPROTO_IP, IP_TOS, &bits, sizeof bits) == 0);
	CHECK(number(server, IPPROTO_IP, IP_RECVTTL) == 0 && number(server, IPPROTO_IP, IP_RECVTOS) == 0);
	ask(server, IPPROTO_IP, IP_RECVTTL, 1);
	exchange(server, client, sizeof control);
	CHECK(told(IPPROTO_IP, IP_TTL, &hops, sizeof hops) == 1 && hops == 64);
	ask(server, IPPROTO_IP, IP_RECVTOS, 1);
	exchange(server, client, sizeof control);
	CHECK(told(IPPROTO_IP, IP_TTL, &hops, sizeof hops) == 2 && hops == 64);
	CHECK(told(IPPROTO_IP, IP_TOS, &service, 1) == 2 && service == 0x48);
	/* Of IP's options one byte is enough. */
	CHECK(setsockopt(server, IPPROTO_IP, IP_RECVTTL, "", 1) == 0);
	exchange(server, client, sizeof control);
	CHECK(told(IPPROTO_IP, IP_TOS, &service, 1) == 1 && service == 0x48);
	exchange(server, client, CMSG_LEN(1) - 1);
	CHECK(m.msg_flags == MSG_CTRUNC);
	ask(server, IPPROTO_IP, IP_RECVTOS, 0);
	exchange(server, client, sizeof control);
	CHECK(m.msg_controllen == 0 && m.msg_flags == 0);
}

static int64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* What is told is when it came, in whichever form was asked for last, not when it is read. */
static void time_of(int server, int client)
{
	struct pollfd p = { server, POLLIN, 0 };
	struct timespec t = { 0 };
	struct timeval tv = { 0 };
	struct sockaddr_in to = at(port_of(server));
	struct iovec v = { b, sizeof b };
	ask(server, SOL_SOCKET, SO_TIMESTAMP, 1);
	exchange(server, client, sizeof control);
	CHECK(told(SOL_SOCKET, SCM_TIMESTAMP, &tv, sizeof tv) == 1);
	int64_t told_time = tv.tv_sec * 1000000000LL + tv.tv_usec * 1000LL;
	CHECK(llabs(told_time - now()) < 600000000000LL);
	ask(server, SOL_SOCKET, SO_TIMESTAMPNS, 1);
	CHECK(number(server, SOL_SOCKET, SO_TIMESTAMP) == 0);
	/* Linux notes when a packet comes once somebody has asked for it, and takes a while over that: until then it tells when it is read. */
	int64_t there = 0;
	for (int tries = 0; tries < 100 && (told_time > there || tries == 0); tries++) {
		CHECK(sendto(client, "x", 1, 0, (struct sockaddr *)&to, sizeof to) == 1 && poll(&p, 1, 5000) == 1);
		there = now();
		usleep(20000);
		m = (struct msghdr){ .msg_iov = &v, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control };
		CHECK(recvmsg(server, &m, 0) == 1);
		CHECK(told(SOL_SOCKET, SCM_TIMESTAMPNS, &t, sizeof t) == 1);
		told_time = t.tv_sec * 1000000000LL + t.tv_nsec;
	}
	CHECK(told_time <= there && told_time > there - 600000000000LL);
	/* Either ends both. */
	ask(server, SOL_SOCKET, SO_TIMESTAMP, 0);
	CHECK(number(server, SOL_SOCKET, SO_TIMESTAMPNS) == 0);
	exchange(server, client, sizeof control);
	CHECK(m.msg_controllen == 0);
	FAILS(setsockopt(server, SOL_SOCKET, SO_TIMESTAMP, "x", 1), EINVAL);
	/* It is told before all others. */
	ask(server, SOL_SOCKET, SO_TIMESTAMPNS, 1);
	ask(server, IPPROTO_IP, IP_RECVTTL, 1);
	exchange(server, client, CMSG_LEN(sizeof t));
	CHECK(told(SOL_SOCKET, SCM_TIMESTAMPNS, &t, sizeof t) == 1 && m.msg_flags == MSG_CTRUNC);
	ask(server, SOL_SOCKET, SO_TIMESTAMPNS, 0);
	ask(server, IPPROTO_IP, IP_RECVTTL, 0);
}

/* Where it was sent to. */
static void target(int server, int client)
{
	struct sockaddr_in to = { 0 }, own = at(port_of(server));
	ask(server, IPPROTO_IP, IP_RECVORIGDSTADDR, 1);
	exchange(server, client, sizeof control);
	CHECK(told(IPPROTO_IP, IP_ORIGDSTADDR, &to, sizeof to) == 1 && !memcmp(&to, &own, sizeof to));
	ask(server, IPPROTO_IP, IP_RECVORIGDSTADDR, 0);
}

/* A socket of both IPs tells of IPv4's datagrams what IPv4's options ask for. */
static void both(void)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6 };
	int server = socket(AF_INET6, SOCK_DGRAM, 0), client = bound(SOCK_DGRAM), hops = 0;
	CHECK(bind(server, (struct sockaddr *)&any, sizeof any) == 0);
	ask(server, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
	ask(server, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
	ask(server, IPPROTO_IPV6, IPV6_RECVORIGDSTADDR, 1);
	exchange(server, client, sizeof control);
	CHECK(m.msg_controllen == 0);
	ask(server, IPPROTO_IP, IP_RECVTTL, 1);
	exchange(server, client, sizeof control);
	CHECK(told(IPPROTO_IP, IP_TTL, &hops, sizeof hops) == 1 && hops == 64);
	struct sockaddr_in to = { 0 }, own = at(port_of(server));
	ask(server, IPPROTO_IP, IP_RECVORIGDSTADDR, 1);
	exchange(server, client, sizeof control);
	CHECK(told(IPPROTO_IP, IP_ORIGDSTADDR, &to, sizeof to) == 2 && !memcmp(&to, &own, sizeof to));
	close(server), close(client);
}

int main(int argc, char **argv)
{
	begin(argc, argv);
	int server = bound(SOCK_DGRAM), client = socket(AF_INET, SOCK_DGRAM, 0);
	way(server, client);
	time_of(server, client);
	target(server, client);
	close(server), close(client);
	both();
	return end();
}
