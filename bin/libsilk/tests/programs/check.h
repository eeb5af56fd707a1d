/* What every program here begins with: a check that says where it failed, and a pair of
 * connected stream sockets on the address it is given. The same programs run over Linux's
 * own stack and over silk, and must find the same. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int failures;
#define CHECK(x)                                                                               \
	do {                                                                                   \
		errno = 0;                                                                     \
		if (!(x)) {                                                                    \
			fprintf(stderr, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #x, errno); \
			failures++;                                                            \
		}                                                                              \
	} while (0)
#define FAILS(x, e) CHECK((x) == -1 && errno == (e))

static const char *host;

static struct sockaddr_in at(int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	inet_pton(AF_INET, host, &a.sin_addr);
	return a;
}

static int port_of(int fd)
{
	struct sockaddr_in a;
	socklen_t n = sizeof a;
	if (getsockname(fd, (struct sockaddr *)&a, &n))
		perror("getsockname"), exit(1);
	return ntohs(a.sin_port);
}

static int bound(int kind)
{
	struct sockaddr_in a = at(0);
	int fd = socket(AF_INET, kind, 0);
	if (bind(fd, (struct sockaddr *)&a, sizeof a))
		perror("bind"), exit(1);
	return fd;
}

static int listening_with(int backlog)
{
	int fd = bound(SOCK_STREAM);
	if (listen(fd, backlog))
		perror("listen"), exit(1);
	return fd;
}

static int listening(void) { return listening_with(16); }

static int connected(int listener)
{
	struct sockaddr_in a = at(port_of(listener));
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd, (struct sockaddr *)&a, sizeof a))
		perror("connect"), exit(1);
	return fd;
}

static void pair(int fds[2])
{
	int l = listening();
	fds[0] = connected(l);
	fds[1] = accept(l, NULL, NULL);
	if (fds[1] < 0)
		perror("accept"), exit(1);
	close(l);
}

static long millis(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Gives the other side the time to do what it does without being waited for. */
static void settle(void) { usleep(30000); }

static void begin(int argc, char **argv)
{
	(void)millis, (void)settle, (void)pair;
	if (argc < 2)
		exit(2);
	host = argv[1];
	/* What hangs ends, and a machine that has much else to do is waited for. */
	alarm(100);
}

static int end(void)
{
	if (!failures)
		puts("ok");
	return failures != 0;
}
