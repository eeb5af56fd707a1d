/* Threads that use a descriptor while another thread changes what it is. */
#include "check.h"

static int number, over;

/* Writes all the time; how often it went wrong. */
static void *writes(void *unused)
{
	(void)unused;
	long wrong = 0;
	while (!__atomic_load_n(&over, __ATOMIC_SEQ_CST))
		wrong += send(number, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN;
	return (void *)wrong;
}

/* `dup2` closes the one and opens the other at one moment. */
static void replaced(void)
{
	int one[2], two[2], file = open("/dev/null", O_RDONLY);
	void *wrong;
	pthread_t t;
	char b[4096];
	pair(one), pair(two);
	number = dup(one[0]);
	pthread_create(&t, NULL, writes, NULL);
	for (int n = 0; n < 20000; n++) {
		CHECK(dup2(n % 2 ? one[0] : two[0], number) == number);
		recv(n % 2 ? one[1] : two[1], b, sizeof b, MSG_DONTWAIT);
	}
	__atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
	pthread_join(t, &wrong);
	CHECK(wrong == NULL);
	/* What cannot be done changes nothing. */
	FAILS(dup3(two[0], number, O_APPEND), EINVAL);
	FAILS(dup3(file, number, O_APPEND), EINVAL);
	CHECK(send(number, "y", 1, MSG_NOSIGNAL) == 1);
	for (int i = 0; i < 2; i++)
		close(one[i]), close(two[i]);
	close(number), close(file);
}

static struct { pthread_barrier_t start; int fd; } shared;

static void *receives(void *unused)
{
	(void)unused;
	char b[8];
	pthread_barrier_wait(&shared.start);
	return (void *)recv(shared.fd, b, sizeof b, 0);
}

static void *names(void *unused)
{
	(void)unused;
	struct sockaddr_in a = at(0);
	pthread_barrier_wait(&shared.start);
	return (void *)(long)bind(shared.fd, (struct sockaddr *)&a, sizeof a);
}

/* A datagram socket is shut down while another thread names it: who receives is told, one way or the other. */
static void shut_down(void)
{
	struct timeval limit = { 5, 0 };
	pthread_barrier_init(&shared.start, NULL, 3);
	for (int n = 0; n < 300; n++) {
		pthread_t one, two;
		void *got, *named;
		shared.fd = socket(AF_INET, SOCK_DGRAM, 0);
		setsockopt(shared.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
		pthread_create(&one, NULL, receives, NULL);
		pthread_create(&two, NULL, names, NULL);
		pthread_barrier_wait(&shared.start);
		FAILS(shutdown(shared.fd, SHUT_RD), ENOTCONN);
		pthread_join(one, &got);
		pthread_join(two, &named);
		CHECK(got == NULL && named == NULL);
		close(shared.fd);
	}
}

/* Names it at any address. */
static void *binds(void *unused)
{
	(void)unused;
	struct sockaddr_in a = { .sin_family = AF_INET };
	pthread_barrier_wait(&shared.start);
	return (void *)(long)bind(shared.fd, (struct sockaddr *)&a, sizeof a);
}

/* What silk cannot keep is set while another thread names the socket: it has its name all the same, whoever serves it. */
static void set_apart(void)
{
	int hops = 1;
	pthread_barrier_init(&shared.start, NULL, 2);
	for (int n = 0; n < 300; n++) {
		pthread_t t;
		void *named;
		shared.fd = socket(AF_INET, SOCK_DGRAM, 0);
		pthread_create(&t, NULL, binds, NULL);
		pthread_barrier_wait(&shared.start);
		int refused = setsockopt(shared.fd, IPPROTO_IP, 21 /* IP_MINTTL */, &hops, sizeof hops) ? errno : 0;
		pthread_join(t, &named);
		CHECK(refused == 0 || refused == ENOPROTOOPT);
		CHECK(named == NULL && port_of(shared.fd) != 0);
		close(shared.fd);
	}
}

int main(int argc, char **argv)
{
	begin(argc, argv);
	replaced();
	shut_down();
	set_apart();
	return end();
}
