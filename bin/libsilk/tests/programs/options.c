/* Options of TCP and IP: what is taken, what is refused, what reads back, before and after there
 * is a connection. */
#include "check.h"

#ifndef IP_PMTUDISC_OMIT
#define IP_PMTUDISC_OMIT 5
#endif

static int number(int fd, int level, int name)
{
	int v = -77;
	socklen_t n = sizeof v;
	CHECK(getsockopt(fd, level, name, &v, &n) == 0 && n == sizeof v);
	return v;
}

static int give(int fd, int level, int name, int v) { return setsockopt(fd, level, name, &v, sizeof v); }

static void is_congestion(int fd, const char *name)
{
	char b[64];
	socklen_t n = sizeof b;
	memset(b, 'x', sizeof b);
	CHECK(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, b, &n) == 0 && n == 16);
	CHECK(!strcmp(b, name));
}

static void congestion(void)
{
	int l = listening(), fds[2];
	/* Every Linux has Reno and lets everybody choose it. */
	CHECK(setsockopt(l, IPPROTO_TCP, TCP_CONGESTION, "reno", 4) == 0);
	is_congestion(l, "reno");
	fds[0] = connected(l);
	fds[1] = accept(l, NULL, NULL);
	is_congestion(fds[1], "reno");
	FAILS(setsockopt(fds[0], IPPROTO_TCP, TCP_CONGESTION, "nonesuch", 8), ENOENT);
	FAILS(setsockopt(fds[0], IPPROTO_TCP, TCP_CONGESTION, "", 0), EINVAL);
	CHECK(setsockopt(fds[0], IPPROTO_TCP, TCP_CONGESTION, "reno\0junk", 9) == 0);
	is_congestion(fds[0], "reno");
	char two[2];
	socklen_t n = sizeof two;
	CHECK(getsockopt(fds[0], IPPROTO_TCP, TCP_CONGESTION, two, &n) == 0 && n == 2 && !memcmp(two, "re", 2));
	close(l), close(fds[0]), close(fds[1]);
}

static void numbers_of_tcp(void)
{
	int fds[2];
	pair(fds);
	int fd = fds[0];
	CHECK(number(fd, IPPROTO_TCP, TCP_USER_TIMEOUT) == 0);
	CHECK(give(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 1500) == 0 && number(fd, IPPROTO_TCP, TCP_USER_TIMEOUT) == 1500);
	FAILS(give(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, -1), EINVAL);
	FAILS(give(fd, IPPROTO_TCP, TCP_SYNCNT, 0), EINVAL);
	FAILS(give(fd, IPPROTO_TCP, TCP_SYNCNT, 128), EINVAL);
	CHECK(give(fd, IPPROTO_TCP, TCP_SYNCNT, 3) == 0 && number(fd, IPPROTO_TCP, TCP_SYNCNT) == 3);
	CHECK(give(fd, IPPROTO_TCP, TCP_LINGER2, 5) == 0 && number(fd, IPPROTO_TCP, TCP_LINGER2) == 5);
	CHECK(give(fd, IPPROTO_TCP, TCP_LINGER2, -9) == 0 && number(fd, IPPROTO_TCP, TCP_LINGER2) == -1);
	CHECK(give(fd, IPPROTO_TCP, TCP_LINGER2, 4000) == 0 && number(fd, IPPROTO_TCP, TCP_LINGER2) == 120);
	CHECK(give(fd, IPPROTO_TCP, TCP_QUICKACK, 0) == 0 && number(fd, IPPROTO_TCP, TCP_QUICKACK) == 0);
	CHECK(give(fd, IPPROTO_TCP, TCP_QUICKACK, 1) == 0 && number(fd, IPPROTO_TCP, TCP_QUICKACK) == 1);
	CHECK(number(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT) == 0);
	CHECK(give(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, 16384) == 0);
	CHECK(number(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT) == 16384);
	FAILS(give(fd, IPPROTO_TCP, TCP_MAXSEG, 87), EINVAL);
	FAILS(give(fd, IPPROTO_TCP, TCP_MAXSEG, 32768), EINVAL);
	CHECK(number(fd, IPPROTO_TCP, TCP_MAXSEG) > 500);
	FAILS(give(fd, IPPROTO_TCP, TCP_KEEPIDLE, 0), EINVAL);
	FAILS(give(fd, IPPROTO_TCP, TCP_KEEPIDLE, 32768), EINVAL);
	FAILS(give(fd, IPPROTO_TCP, TCP_KEEPINTVL, 0), EINVAL);
	FAILS(give(fd, IPPROTO_TCP, TCP_KEEPCNT, 128), EINVAL);
	CHECK(give(fd, IPPROTO_TCP, TCP_KEEPCNT, 5) == 0 && number(fd, IPPROTO_TCP, TCP_KEEPCNT) == 5);
	int l = listening();
	CHECK(give(l, IPPROTO_TCP, TCP_MAXSEG, 1000) == 0 && number(l, IPPROTO_TCP, TCP_MAXSEG) == 1000);
	CHECK(give(l, IPPROTO_TCP, TCP_DEFER_ACCEPT, 1) == 0 && number(l, IPPROTO_TCP, TCP_DEFER_ACCEPT) == 1);
	CHECK(give(l, IPPROTO_TCP, TCP_DEFER_ACCEPT, 5) == 0 && number(l, IPPROTO_TCP, TCP_DEFER_ACCEPT) == 7);
	CHECK(give(l, IPPROTO_TCP, TCP_DEFER_ACCEPT, 130) == 0 && number(l, IPPROTO_TCP, TCP_DEFER_ACCEPT) == 247);
	CHECK(give(l, IPPROTO_TCP, TCP_DEFER_ACCEPT, 1 << 30) == 0 && number(l, IPPROTO_TCP, TCP_DEFER_ACCEPT) == 29887);
	CHECK(give(l, IPPROTO_TCP, TCP_DEFER_ACCEPT, -1) == 0 && number(l, IPPROTO_TCP, TCP_DEFER_ACCEPT) == 0);
	close(l), close(fds[0]), close(fds[1]);
}

static void pacing(void)
{
	int fds[2];
	unsigned int v = 0;
	unsigned long long rate = 1ull << 40, got = 0;
	socklen_t n = sizeof v;
	pair(fds);
	CHECK(getsockopt(fds[0], SOL_SOCKET, SO_MAX_PACING_RATE, &v, &n) == 0 && n == 4 && v == ~0u);
	v = 1000000;
	CHECK(setsockopt(fds[0], SOL_SOCKET, SO_MAX_PACING_RATE, &v, sizeof v) == 0);
	n = sizeof got;
	CHECK(getsockopt(fds[0], SOL_SOCKET, SO_MAX_PACING_RATE, &got, &n) == 0 && n == 8 && got == 1000000);
	CHECK(setsockopt(fds[0], SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate) == 0);
	CHECK(getsockopt(fds[0], SOL_SOCKET, SO_MAX_PACING_RATE, &got, &n) == 0 && got == rate);
	n = sizeof v;
	CHECK(getsockopt(fds[0], SOL_SOCKET, SO_MAX_PACING_RATE, &v, &n) == 0 && v == ~0u);
	v = ~0u;
	CHECK(setsockopt(fds[0], SOL_SOCKET, SO_MAX_PACING_RATE, &v, sizeof v) == 0);
	n = sizeof got;
	CHECK(getsockopt(fds[0], SOL_SOCKET, SO_MAX_PACING_RATE, &got, &n) == 0 && got == ~0ull);
	close(fds[0]), close(fds[1]);
}

static void numbers_of_ip(int fd, int tos)
{
	unsigned char byte = 33;
	socklen_t n = sizeof byte;
	CHECK(number(fd, IPPROTO_IP, IP_TTL) == 64);
	CHECK(give(fd, IPPROTO_IP, IP_TTL, 7) == 0 && number(fd, IPPROTO_IP, IP_TTL) == 7);
	FAILS(give(fd, IPPROTO_IP, IP_TTL, 0), EINVAL);
	FAILS(give(fd, IPPROTO_IP, IP_TTL, 256), EINVAL);
	CHECK(setsockopt(fd, IPPROTO_IP, IP_TTL, &byte, 1) == 0 && number(fd, IPPROTO_IP, IP_TTL) == 33);
	byte = 0;
	CHECK(getsockopt(fd, IPPROTO_IP, IP_TTL, &byte, &n) == 0 && n == 1 && byte == 33);
	CHECK(give(fd, IPPROTO_IP, IP_TTL, -1) == 0 && number(fd, IPPROTO_IP, IP_TTL) == 64);
	CHECK(give(fd, IPPROTO_IP, IP_TOS, 0x2b) == 0 && number(fd, IPPROTO_IP, IP_TOS) == tos);
	CHECK(number(fd, IPPROTO_IP, IP_MTU_DISCOVER) == IP_PMTUDISC_WANT);
	CHECK(give(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE) == 0);
	CHECK(number(fd, IPPROTO_IP, IP_MTU_DISCOVER) == IP_PMTUDISC_PROBE);
	CHECK(give(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_OMIT) == 0);
	FAILS(give(fd, IPPROTO_IP, IP_MTU_DISCOVER, 6), EINVAL);
	FAILS(give(fd, IPPROTO_IP, IP_MTU_DISCOVER, -1), EINVAL);
	CHECK(number(fd, IPPROTO_IP, IP_RECVERR) == 0);
	CHECK(give(fd, IPPROTO_IP, IP_RECVERR, 5) == 0 && number(fd, IPPROTO_IP, IP_RECVERR) == 1);
}

/* What was set on a socket before it had a name is kept. */
static void before(void)
{
	int l = listening(), fd = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in a = at(port_of(l));
	CHECK(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4) == 0);
	CHECK(give(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 9000) == 0 && give(fd, IPPROTO_IP, IP_TTL, 12) == 0);
	CHECK(give(fd, IPPROTO_TCP, TCP_SYNCNT, 2) == 0 && give(fd, IPPROTO_IP, IP_TOS, 0x20) == 0);
	CHECK(connect(fd, (struct sockaddr *)&a, sizeof a) == 0);
	is_congestion(fd, "reno");
	CHECK(number(fd, IPPROTO_TCP, TCP_USER_TIMEOUT) == 9000 && number(fd, IPPROTO_IP, IP_TTL) == 12);
	CHECK(number(fd, IPPROTO_TCP, TCP_SYNCNT) == 2 && number(fd, IPPROTO_IP, IP_TOS) == 0x20);
	close(l), close(fd);
}

static void information(void)
{
	int fds[2], l = listening();
	unsigned char all[512], few[10];
	socklen_t n = sizeof few;
	pair(fds);
	memset(few, 0xee, sizeof few);
	CHECK(getsockopt(fds[0], IPPROTO_TCP, TCP_INFO, few, &n) == 0 && n == 10 && few[0] == 1);
	n = sizeof all;
	CHECK(getsockopt(fds[0], IPPROTO_TCP, TCP_INFO, all, &n) == 0 && n >= 240);
	n = sizeof all;
	CHECK(getsockopt(l, IPPROTO_TCP, TCP_INFO, all, &n) == 0 && all[0] == TCP_LISTEN);
	close(l), close(fds[0]), close(fds[1]);
}

int main(int argc, char **argv)
{
	int fds[2], u;
	begin(argc, argv);
	congestion();
	numbers_of_tcp();
	pacing();
	pair(fds);
	CHECK(number(fds[0], SOL_SOCKET, SO_INCOMING_CPU) >= -1);
	CHECK(give(fds[0], SOL_SOCKET, SO_INCOMING_CPU, 0) == 0);
	numbers_of_ip(fds[0], 0x28);
	close(fds[0]), close(fds[1]);
	u = bound(SOCK_DGRAM);
	numbers_of_ip(u, 0x2b);
	int v;
	socklen_t n = sizeof v;
	FAILS(give(u, IPPROTO_TCP, TCP_NODELAY, 1), ENOPROTOOPT);
	FAILS(getsockopt(u, IPPROTO_TCP, TCP_NODELAY, &v, &n), EOPNOTSUPP);
	close(u);
	before();
	information();
	return end();
}
