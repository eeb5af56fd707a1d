/* poll, select and epoll, on sockets alone and beside the kernel's descriptors. */
#include "check.h"
#include <sys/resource.h>

static int fds[2], event;

static void *later(void *what)
{
	usleep(80000);
	if (*(char *)what == 'e') {
		unsigned long one = 1;
		return (void *)write(event, &one, 8);
	}
	return (void *)write(fds[1], what, 1);
}

static void after_a_while(char *what, pthread_t *t) { pthread_create(t, NULL, later, what); }

static void polls(void)
{
	pthread_t t;
	char b[64];
	struct pollfd p[4] = { { fds[0], POLLIN, 0 }, { -1, POLLIN, 0 }, { fds[1], POLLIN | POLLOUT, 0 }, { event, POLLIN, 9 } };
	CHECK(poll(p, 1, 0) == 0 && p[0].revents == 0);
	CHECK(poll(p, 3, -1) == 1 && p[2].revents == POLLOUT);
	long before = millis();
	CHECK(poll(p, 1, 60) == 0);
	CHECK(millis() - before >= 59);
	after_a_while("a", &t);
	CHECK(poll(p, 2, 5000) == 1 && p[0].revents == POLLIN && p[1].revents == 0);
	pthread_join(t, NULL);
	CHECK(read(fds[0], b, 64) == 1);
	/* Mixed: first ours, then the kernel's. */
	p[2].events = POLLIN;
	after_a_while("b", &t);
	CHECK(poll(p, 4, 5000) == 1 && p[0].revents == POLLIN && p[3].revents == 0);
	pthread_join(t, NULL);
	CHECK(read(fds[0], b, 64) == 1);
	after_a_while("e", &t);
	CHECK(poll(p, 4, 5000) == 1 && p[0].revents == 0 && p[3].revents == POLLIN);
	pthread_join(t, NULL);
	CHECK(read(event, b, 8) == 8);
	before = millis();
	CHECK(poll(p, 4, 50) == 0);
	CHECK(millis() - before >= 49);
	/* A signal that is let in only while it waits. */
	sigset_t set, none;
	sigemptyset(&none), sigemptyset(&set), sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGUSR2);
	struct timespec ts = { 5, 0 };
	FAILS(ppoll(p, 1, &ts, &none), EINTR);
}

static void selects(void)
{
	pthread_t t;
	char b[64];
	fd_set r, w;
	int max = fds[0] > event ? fds[0] : event;
	max = max > fds[1] ? max : fds[1];
	FD_ZERO(&r); FD_ZERO(&w);
	FD_SET(fds[0], &r); FD_SET(event, &r); FD_SET(fds[1], &w);
	CHECK(select(max + 1, &r, &w, NULL, NULL) == 1 && FD_ISSET(fds[1], &w) && !FD_ISSET(fds[0], &r));
	struct timeval tv = { 0, 50000 };
	FD_SET(fds[0], &r); FD_SET(event, &r);
	CHECK(select(max + 1, &r, NULL, NULL, &tv) == 0 && !FD_ISSET(event, &r) && tv.tv_sec == 0);
	FD_ZERO(&r); FD_SET(fds[0], &r);
	tv.tv_sec = 5;
	after_a_while("c", &t);
	CHECK(select(fds[0] + 1, &r, NULL, NULL, &tv) == 1 && FD_ISSET(fds[0], &r));
	pthread_join(t, NULL);
	CHECK(read(fds[0], b, 64) == 1);
	/* What lies behind the count is not looked at, and gone from the count's last word. */
	FD_SET(fds[0] | 63, &r);
	tv.tv_sec = tv.tv_usec = 0;
	CHECK(select(fds[0] + 1, &r, NULL, NULL, &tv) == 0 && !FD_ISSET(fds[0] | 63, &r));
}

static void epolls(void)
{
	struct epoll_event e = { EPOLLIN | EPOLLOUT, { .u64 = 77 } }, got[8];
	char b[64];
	pthread_t t;
	int ep = epoll_create1(EPOLL_CLOEXEC);
	FAILS(epoll_ctl(ep, EPOLL_CTL_MOD, fds[0], &e), ENOENT);
	CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, fds[0], &e) == 0);
	FAILS(epoll_ctl(ep, EPOLL_CTL_ADD, fds[0], &e), EEXIST);
	FAILS(epoll_wait(ep, got, 0, 0), EINVAL);
	/* Level: again and again. */
	for (int i = 0; i < 3; i++)
		CHECK(epoll_wait(ep, got, 8, -1) == 1 && got[0].events == EPOLLOUT && got[0].data.u64 == 77);
	e.events = EPOLLIN;
	CHECK(epoll_ctl(ep, EPOLL_CTL_MOD, fds[0], &e) == 0);
	CHECK(epoll_wait(ep, got, 8, 0) == 0);
	long before = millis();
	CHECK(epoll_wait(ep, got, 8, 60) == 0);
	CHECK(millis() - before >= 59);
	after_a_while("d", &t);
	CHECK(epoll_wait(ep, got, 8, 5000) == 1 && got[0].events == EPOLLIN);
	pthread_join(t, NULL);
	CHECK(epoll_wait(ep, got, 8, 0) == 1);
	CHECK(read(fds[0], b, 1) == 1);
	CHECK(epoll_wait(ep, got, 8, 0) == 0);
	/* Edge: once for each arrival. */
	e.events = EPOLLIN | EPOLLOUT | EPOLLET | EPOLLRDHUP;
	CHECK(epoll_ctl(ep, EPOLL_CTL_MOD, fds[0], &e) == 0);
	CHECK(epoll_wait(ep, got, 8, 0) == 1 && got[0].events == EPOLLOUT);
	CHECK(epoll_wait(ep, got, 8, 30) == 0);
	CHECK(write(fds[1], "x", 1) == 1);
	CHECK(epoll_wait(ep, got, 8, 5000) == 1 && got[0].events == (EPOLLIN | EPOLLOUT));
	CHECK(epoll_wait(ep, got, 8, 30) == 0);
	CHECK(write(fds[1], "y", 1) == 1);
	CHECK(epoll_wait(ep, got, 8, 5000) == 1);
	CHECK(read(fds[0], b, 64) == 2);
	CHECK(epoll_wait(ep, got, 8, 30) == 0);
	/* One shot: until it is armed again. */
	e.events = EPOLLIN | EPOLLONESHOT;
	CHECK(epoll_ctl(ep, EPOLL_CTL_MOD, fds[0], &e) == 0);
	CHECK(write(fds[1], "z", 1) == 1);
	CHECK(epoll_wait(ep, got, 8, 5000) == 1);
	CHECK(epoll_wait(ep, got, 8, 30) == 0);
	CHECK(epoll_ctl(ep, EPOLL_CTL_MOD, fds[0], &e) == 0);
	CHECK(epoll_wait(ep, got, 8, 5000) == 1);
	CHECK(read(fds[0], b, 64) == 1);
	/* Mixed with the kernel's. */
	struct epoll_event k = { EPOLLIN, { .u64 = 88 } };
	CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, event, &k) == 0);
	e.events = EPOLLIN;
	CHECK(epoll_ctl(ep, EPOLL_CTL_MOD, fds[0], &e) == 0);
	after_a_while("e", &t);
	CHECK(epoll_wait(ep, got, 8, 5000) == 1 && got[0].data.u64 == 88);
	pthread_join(t, NULL);
	CHECK(write(fds[1], "q", 1) == 1);
	settle();
	/* One place: both come in turn. */
	int ours = 0, theirs = 0;
	for (int i = 0; i < 16; i++) {
		CHECK(epoll_wait(ep, got, 1, 1000) == 1);
		ours += got[0].data.u64 == 77, theirs += got[0].data.u64 == 88;
	}
	CHECK(ours > 0 && theirs > 0);
	CHECK(epoll_wait(ep, got, 8, 1000) >= 1);
	CHECK(read(event, b, 8) == 8 && read(fds[0], b, 64) == 1);
	CHECK(epoll_ctl(ep, EPOLL_CTL_DEL, event, NULL) == 0);
	/* Hang-ups. */
	e.events = EPOLLIN | EPOLLRDHUP;
	CHECK(epoll_ctl(ep, EPOLL_CTL_MOD, fds[0], &e) == 0);
	shutdown(fds[1], SHUT_WR);
	CHECK(epoll_wait(ep, got, 8, 5000) == 1 && got[0].events == (EPOLLIN | EPOLLRDHUP));
	shutdown(fds[0], SHUT_WR);
	CHECK(epoll_wait(ep, got, 8, 5000) == 1 && got[0].events == (EPOLLIN | EPOLLRDHUP | EPOLLHUP));
	/* A closed socket is gone from the set. */
	close(fds[0]);
	CHECK(epoll_wait(ep, got, 8, 30) == 0);
	close(ep);
	FAILS(epoll_wait(ep, got, 8, 0), EBADF);
}

static int ep2;
static volatile int woken[2];
static void *waiter(void *n)
{
	struct epoll_event got;
	woken[(long)n] = epoll_wait(ep2, &got, 1, 5000);
	return NULL;
}

/* Two threads sleep in one set with two sockets: each gets one. */
static void two_threads(void)
{
	int a[2], b[2];
	pair(a), pair(b);
	ep2 = epoll_create(1);
	struct epoll_event e = { EPOLLIN | EPOLLET, { .u64 = 1 } };
	CHECK(epoll_ctl(ep2, EPOLL_CTL_ADD, a[0], &e) == 0);
	CHECK(epoll_ctl(ep2, EPOLL_CTL_ADD, b[0], &e) == 0);
	pthread_t t[2];
	for (long i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, waiter, (void *)i);
	settle();
	CHECK(write(a[1], "x", 1) == 1);
	settle();
	CHECK(write(b[1], "x", 1) == 1);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	CHECK(woken[0] == 1 && woken[1] == 1);
	close(a[0]), close(a[1]), close(b[0]), close(b[1]), close(ep2);
}

/* A socket that is in a set before it is connected. */
static void before_connect(void)
{
	int l = listening(), ep = epoll_create1(0), fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	struct epoll_event e = { EPOLLOUT | EPOLLONESHOT, { .u64 = 5 } }, le = { EPOLLIN, { .u64 = 6 } }, got[4];
	CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e) == 0);
	CHECK(epoll_wait(ep, got, 4, 1000) == 1 && got[0].events == (EPOLLOUT | EPOLLHUP));
	struct sockaddr_in a = at(port_of(l));
	FAILS(connect(fd, (struct sockaddr *)&a, sizeof a), EINPROGRESS);
	settle();
	CHECK(epoll_ctl(ep, EPOLL_CTL_MOD, fd, &e) == 0);
	CHECK(epoll_wait(ep, got, 4, 1000) == 1 && got[0].events == EPOLLOUT);
	CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, l, &le) == 0);
	CHECK(epoll_wait(ep, got, 4, 1000) == 1 && got[0].data.u64 == 6);
	int c = accept(l, NULL, NULL);
	CHECK(epoll_wait(ep, got, 4, 30) == 0);
	close(c), close(fd), close(l), close(ep);
}

static void on_signal(int s) { (void)s; }

/* A long wait takes several sleeps. Children whose alarms ring about when the second of them is over, a
 * tenth of a millisecond apart: each hears its own. */
static void alarmed(int i)
{
	struct pollfd p[2] = { { fds[0], POLLIN, 0 }, { event, POLLIN, 0 } };
	struct epoll_event e = { EPOLLIN, { .u64 = 1 } }, got;
	struct itimerval when = { { 0, 0 }, { 2, 274000 + i / 2 * 100 } };
	int ep = epoll_create1(0);
	setitimer(ITIMER_REAL, &when, NULL);
	CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, fds[0], &e) == 0);
	if (i % 2)
		FAILS(epoll_wait(ep, &got, 1, 6000), EINTR);
	else
		FAILS(poll(p, 2, 6000), EINTR);
}

static void alarms(void)
{
	pid_t children[32];
	signal(SIGALRM, on_signal);
	for (int i = 0; i < 32; i++)
		if ((children[i] = fork()) == 0) {
			failures = 0;
			alarmed(i);
			_exit(failures);
		}
	for (int i = 0; i < 32; i++) {
		int how = -1;
		CHECK(waitpid(children[i], &how, 0) == children[i] && how == 0);
	}
}

/* What is no time, or too many, is refused, and nothing is waited for or changed. */
static void nonsense(void)
{
	struct pollfd p = { .fd = fds[0], .events = POLLIN };
	struct epoll_event e = { .events = EPOLLIN };
	fd_set r;
	int ep = epoll_create1(0);
	CHECK(!epoll_ctl(ep, EPOLL_CTL_ADD, fds[0], &e));
	FD_ZERO(&r); FD_SET(fds[0], &r);
	struct timespec bad[] = { { -1, 0 }, { 0, -1 }, { 0, 1000000000 } };
	for (int i = 0; i < 3; i++) {
		FAILS(ppoll(&p, 1, &bad[i], NULL), EINVAL);
		FAILS(pselect(fds[0] + 1, &r, NULL, NULL, &bad[i], NULL), EINVAL);
		FAILS(epoll_pwait2(ep, &e, 1, &bad[i], NULL), EINVAL);
	}
	struct timeval before[] = { { -1, 0 }, { 0, -1 } };
	for (int i = 0; i < 2; i++)
		FAILS(select(fds[0] + 1, &r, NULL, NULL, &before[i]), EINVAL);
	CHECK(FD_ISSET(fds[0], &r));
	struct rlimit limit, few;
	CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
	few = limit, few.rlim_cur = 200;
	CHECK(!setrlimit(RLIMIT_NOFILE, &few));
	struct pollfd many[201];
	for (int i = 0; i < 201; i++)
		many[i] = p;
	FAILS(poll(many, 201, 0), EINVAL);
	CHECK(poll(many, 200, 0) == 0);
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
	close(ep);
}

/* Who waits for the least that there is, and gets it, is told of what was there before. */
static void at_once(void)
{
	struct timespec least = { 0, 1 };
	struct epoll_event e = { .events = EPOLLIN }, got;
	int ep = epoll_create1(0), ready = eventfd(1, EFD_NONBLOCK);
	CHECK(!epoll_ctl(ep, EPOLL_CTL_ADD, fds[0], &e) && !epoll_ctl(ep, EPOLL_CTL_ADD, ready, &e));
	for (int i = 0; i < 8; i++)
		CHECK(epoll_pwait2(ep, &got, 1, &least, NULL) == 1);
	close(ready), close(ep);
}

static volatile int handled;

static void count(int s) { (void)s, handled++; }

/* A signal that the call lets in ends it, also one that does not wait, unless there is something to tell. */
static void pending(void)
{
	struct pollfd p = { .fd = fds[0], .events = POLLIN };
	struct timespec none = { 0, 0 };
	sigset_t all, blocked;
	fd_set r;
	signal(SIGUSR1, count);
	sigemptyset(&all), sigemptyset(&blocked), sigaddset(&blocked, SIGUSR1);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	raise(SIGUSR1);
	CHECK(ppoll(&p, 1, &none, NULL) == 0 && handled == 0);
	p.events = POLLIN | POLLOUT;
	CHECK(ppoll(&p, 1, &none, &all) == 1 && handled == 0);
	p.events = POLLIN;
	FAILS(ppoll(&p, 1, &none, &all), EINTR);
	CHECK(handled == 1);
	raise(SIGUSR1);
	FD_ZERO(&r); FD_SET(fds[0], &r);
	FAILS(pselect(fds[0] + 1, &r, NULL, NULL, &none, &all), EINTR);
	CHECK(handled == 2);
	sigprocmask(SIG_UNBLOCK, &blocked, NULL);
	signal(SIGUSR1, SIG_DFL);
}

int main(int argc, char **argv)
{
	begin(argc, argv);
	signal(SIGUSR2, on_signal);
	pair(fds);
	event = eventfd(0, EFD_NONBLOCK);
	polls();
	selects();
	nonsense();
	at_once();
	pending();
	alarms();
	epolls();
	two_threads();
	before_connect();
	return end();
}
