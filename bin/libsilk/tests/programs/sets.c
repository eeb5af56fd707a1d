/* Event sets in which several processes wait, and such as are watched themselves. */
#include "check.h"

/* Less than a sleeper takes to look by itself, whatever it was not told. */
enum { PATIENCE = 700 };

static void add(int ep, int fd, unsigned events)
{
	struct epoll_event e = { events, { .fd = fd } };
	CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e) == 0);
}

/* Answers what comes to `mine` until that ends, and what comes to the pipe `all`, through `answers`. Events of the
 * other process's sockets are seen too, and left to it. */
static void serve(int ep, int mine, int all, int answers)
{
	struct epoll_event got;
	char b;
	for (;;) {
		if (epoll_wait(ep, &got, 1, -1) != 1)
			_exit(2);
		if (got.data.fd == all && read(all, &b, 1) == 1 && write(answers, &b, 1) != 1)
			_exit(3);
		if (got.data.fd != mine)
			continue;
		if (read(mine, &b, 1) != 1)
			_exit(0);
		if (write(mine, &b, 1) != 1)
			_exit(4);
	}
}

static int answers_to(int to, int from)
{
	struct pollfd p = { from, POLLIN, 0 };
	char b;
	return write(to, "x", 1) == 1 && poll(&p, 1, PATIENCE) == 1 && read(from, &b, 1) == 1;
}

/* A set that was made before a fork, and waited in or not. */
static void two_processes(int waited)
{
	int a[2], b[2], all[2], answers[2], status;
	pair(a), pair(b);
	CHECK(pipe2(all, O_NONBLOCK) == 0 && pipe(answers) == 0);
	if (fork() == 0) {
		close(a[0]), close(b[0]);
		close(all[1]), close(answers[0]);
		struct epoll_event got;
		int ep = epoll_create1(0);
		add(ep, a[1], EPOLLIN);
		if (waited)
			CHECK(epoll_wait(ep, &got, 1, 0) == 0);
		if (fork() == 0) {
			/* When the parent sleeps there already. */
			settle();
			close(a[1]);
			add(ep, b[1], EPOLLIN);
			add(ep, all[0], EPOLLIN);
			serve(ep, b[1], all[0], answers[1]);
		}
		close(b[1]);
		serve(ep, a[1], all[0], answers[1]);
	}
	close(a[1]), close(b[1]), close(answers[1]);
	int lost = 0;
	settle(), settle();
	for (int i = 0; i < 40; i++) {
		lost += !answers_to(a[0], a[0]);
		lost += !answers_to(b[0], b[0]);
		if (i % 4 == 0)
			lost += !answers_to(all[1], answers[0]);
	}
	CHECK(lost == 0);
	close(a[0]), close(b[0]);
	wait(&status);
	CHECK(status == 0);
	/* Until the other has ended too. */
	CHECK(read(answers[0], &status, 1) == 0);
	close(all[0]), close(all[1]), close(answers[0]);
}

static int quiet(int fd)
{
	struct pollfd p = { fd, POLLIN, 9 };
	return poll(&p, 1, 0) == 0 && p.revents == 0;
}

/* Whether poll and select say that the descriptor is readable, or say so within the time. */
static int told(int fd)
{
	struct pollfd p = { fd, POLLIN, 0 };
	struct timeval tv = { 5, 0 };
	fd_set r;
	FD_ZERO(&r);
	FD_SET(fd, &r);
	return poll(&p, 1, 5000) == 1 && p.revents == POLLIN && select(fd + 1, &r, NULL, NULL, &tv) == 1 && FD_ISSET(fd, &r);
}

static int got(int ep, int fd)
{
	struct epoll_event e[4];
	return epoll_wait(ep, e, 4, 0) == 1 && e[0].data.fd == fd && e[0].events == EPOLLIN;
}

static void polled(void)
{
	int a[2], event = eventfd(0, 0), ep = epoll_create1(0);
	unsigned long n = 1;
	char b[8];
	pair(a);
	CHECK(quiet(ep));
	add(ep, a[0], EPOLLIN);
	CHECK(quiet(ep));
	CHECK(write(a[1], "xy", 2) == 2 && told(ep));
	/* By level: until all is read. */
	CHECK(got(ep, a[0]) && told(ep) && read(a[0], b, 1) == 1 && told(ep));
	CHECK(read(a[0], b, 1) == 1 && quiet(ep));
	/* What nobody asked for is not told. */
	CHECK(write(a[0], "x", 1) == 1 && read(a[1], b, 1) == 1);
	settle();
	CHECK(quiet(ep));
	/* The kernel's beside it. */
	add(ep, event, EPOLLIN);
	CHECK(write(event, &n, 8) == 8 && told(ep) && got(ep, event) && read(event, &n, 8) == 8 && quiet(ep));
	/* By edge: until it is heard. */
	struct epoll_event e = { EPOLLIN | EPOLLET, { .fd = a[0] } };
	CHECK(epoll_ctl(ep, EPOLL_CTL_MOD, a[0], &e) == 0 && quiet(ep));
	CHECK(write(a[1], "x", 1) == 1 && told(ep) && got(ep, a[0]) && quiet(ep));
	CHECK(write(a[1], "x", 1) == 1 && told(ep) && got(ep, a[0]) && quiet(ep));
	/* Once, and by a new wish. */
	e.events = EPOLLIN | EPOLLONESHOT;
	CHECK(epoll_ctl(ep, EPOLL_CTL_MOD, a[0], &e) == 0 && told(ep) && got(ep, a[0]) && quiet(ep));
	CHECK(epoll_ctl(ep, EPOLL_CTL_MOD, a[0], &e) == 0 && told(ep));
	CHECK(epoll_ctl(ep, EPOLL_CTL_DEL, a[0], NULL) == 0 && quiet(ep));
	close(a[0]), close(a[1]), close(event), close(ep);
}

static void nested(unsigned how)
{
	int a[2], inner = epoll_create1(0), outer = epoll_create1(0), outmost = epoll_create1(0);
	struct epoll_event e[4];
	char b[8];
	pair(a);
	add(outmost, outer, EPOLLIN);
	add(outer, inner, EPOLLIN);
	add(inner, a[0], EPOLLIN | how);
	CHECK(epoll_wait(outer, e, 4, 0) == 0);
	for (int i = 0; i < 3; i++) {
		CHECK(write(a[1], "x", 1) == 1);
		CHECK(epoll_wait(outmost, e, 4, 5000) == 1 && e[0].data.fd == outer);
		CHECK(epoll_wait(outer, e, 4, 5000) == 1 && e[0].data.fd == inner && e[0].events == EPOLLIN);
		CHECK(told(outer) && got(outer, inner) && got(inner, a[0]));
		CHECK(read(a[0], b, 8) == 1);
		CHECK(epoll_wait(outer, e, 4, 0) == 0 && quiet(outmost));
	}
	/* What nobody asked for wakes nobody. */
	CHECK(write(a[0], "x", 1) == 1 && read(a[1], b, 1) == 1);
	CHECK(epoll_wait(outer, e, 4, 50) == 0);
	CHECK(epoll_ctl(outer, EPOLL_CTL_DEL, inner, NULL) == 0);
	CHECK(write(a[1], "x", 1) == 1 && told(inner) && epoll_wait(outer, e, 4, 0) == 0);
	close(a[0]), close(a[1]), close(inner), close(outer), close(outmost);
}

static int ep, above, done[2];

static void *watcher(void *n)
{
	return (void *)(long)(told(ep) && write(done[1], "x", 1) == 1);
}

/* Somebody watches while sockets come into the set, and while others wait in it. */
static void watched_by_a_thread(void)
{
	int a[2];
	struct epoll_event e[4];
	pthread_t t;
	void *heard;
	char b;
	pair(a);
	ep = epoll_create1(0);
	CHECK(pipe(done) == 0);
	struct pollfd p = { done[0], POLLIN, 0 };
	for (int there = 0; there < 2; there++) {
		pthread_create(&t, NULL, watcher, NULL);
		settle();
		if (!there)
			add(ep, a[0], EPOLLIN);
		CHECK(epoll_wait(ep, e, 4, 30) == 0);
		CHECK(write(a[1], "x", 1) == 1);
		CHECK(epoll_wait(ep, e, 4, 5000) == 1);
		CHECK(poll(&p, 1, PATIENCE) == 1 && read(done[0], &b, 1) == 1);
		pthread_join(t, &heard);
		CHECK(heard && read(a[0], &b, 1) == 1);
	}
	close(a[0]), close(a[1]), close(ep), close(done[0]), close(done[1]);
}

/* Polls before it waits, as EventMachine does, or waits in the set above. */
static void *answering(void *fd)
{
	struct pollfd p = { ep, POLLIN, 0 };
	struct epoll_event e[4];
	char b;
	for (;;) {
		if (above < 0 ? poll(&p, 1, 5000) : epoll_wait(above, e, 4, 5000))
			if (epoll_wait(ep, e, 4, 0) == 1 && (read(*(int *)fd, &b, 1) != 1 || write(*(int *)fd, &b, 1) != 1))
				return NULL;
	}
}

static void heard_through(int by_above, unsigned how)
{
	int a[2], lost = 0;
	pthread_t t;
	pair(a);
	ep = epoll_create1(0), above = by_above ? epoll_create1(0) : -1;
	add(ep, a[0], EPOLLIN | how);
	if (by_above)
		add(above, ep, EPOLLIN);
	pthread_create(&t, NULL, answering, &a[0]);
	settle();
	for (int i = 0; i < 30; i++)
		lost += !answers_to(a[1], a[1]);
	CHECK(lost == 0);
	close(a[1]);
	pthread_join(t, NULL);
	close(a[0]), close(ep), close(above);
}

/* What the bell was rung for is read by now, and takes no place of what the kernel has. */
static void one_event_of_a_watched_set(void)
{
	int a[2], other[2], ep = epoll_create1(0);
	struct epoll_event e;
	char b;
	pair(a);
	CHECK(pipe(other) == 0);
	add(ep, a[0], EPOLLIN), add(ep, other[0], EPOLLIN);
	/* Which of the two is looked at first changes. */
	for (int i = 0; i < 8; i++) {
		CHECK(write(a[1], "x", 1) == 1 && told(ep) && read(a[0], &b, 1) == 1);
		CHECK(write(other[1], "x", 1) == 1);
		CHECK(epoll_wait(ep, &e, 1, 0) == 1 && e.data.fd == other[0]);
		CHECK(read(other[0], &b, 1) == 1 && epoll_wait(ep, &e, 1, 0) == 0);
	}
	close(a[0]), close(a[1]), close(other[0]), close(other[1]), close(ep);
}

static int comes(int ep, int fd)
{
	struct epoll_event e[4];
	return epoll_wait(ep, e, 4, 5000) == 1 && e[0].data.fd == fd && e[0].events == EPOLLIN;
}

static int silent(int ep)
{
	struct epoll_event e[4];
	return epoll_wait(ep, e, 4, 30) == 0;
}

/* Once for each connection that comes, however many wait and whoever takes them. */
static void listener_by_edge(void)
{
	int l = listening(), c[5] = { connected(l) }, ends[2], status, ep = epoll_create1(0);
	struct epoll_event e;
	char b;
	/* One that was there before. */
	add(ep, l, EPOLLIN | EPOLLET);
	CHECK(comes(ep, l) && silent(ep));
	/* Longer than a set goes without a look at all that is in it. */
	CHECK(epoll_wait(ep, &e, 1, 1300) == 0);
	/* One more, while that waits. */
	c[1] = connected(l);
	CHECK(comes(ep, l) && silent(ep));
	c[2] = accept(l, NULL, NULL);
	CHECK(c[2] >= 0 && silent(ep));
	/* A process with a set of its own takes that, and the next one. */
	CHECK(pipe(ends) == 0);
	if (fork() == 0) {
		int own = epoll_create1(0);
		add(own, l, EPOLLIN | EPOLLET);
		for (int i = 0; i < 2; i++)
			if (!comes(own, l) || accept(l, NULL, NULL) < 0 || write(ends[1], "x", 1) != 1)
				_exit(1);
		_exit(!silent(own));
	}
	close(ends[1]);
	CHECK(read(ends[0], &b, 1) == 1);
	c[3] = connected(l);
	CHECK(read(ends[0], &b, 1) == 1 && wait(&status) > 0 && status == 0);
	/* Nothing is left to tell, and the one after is told. */
	CHECK(silent(ep));
	c[4] = connected(l);
	CHECK(comes(ep, l) && silent(ep));
	for (int i = 0; i < 5; i++)
		close(c[i]);
	close(l), close(ep), close(ends[0]);
}

/* The first connection after it has listened anew is not the one that was told before. */
static void listener_that_begins_again(void)
{
	int l = listening(), c[2], ep = epoll_create1(0);
	add(ep, l, EPOLLIN | EPOLLET);
	c[0] = connected(l);
	CHECK(comes(ep, l));
	CHECK(shutdown(l, SHUT_RD) == 0 && listen(l, 16) == 0);
	c[1] = connected(l);
	CHECK(comes(ep, l) && silent(ep));
	close(c[0]), close(c[1]), close(l), close(ep);
}

/* A set of its parent's, which waits there too. */
static void watched_by_a_child(void)
{
	int a[2], b[2], status, ep = epoll_create1(0);
	struct epoll_event e[4];
	char c;
	pair(a), pair(b);
	add(ep, a[0], EPOLLIN);
	CHECK(epoll_wait(ep, e, 4, 0) == 0);
	if (fork() == 0) {
		add(ep, b[0], EPOLLIN);
		for (int i = 0; i < 3; i++)
			CHECK(quiet(ep) && write(b[1], "x", 1) == 1 && told(ep) && read(b[0], &c, 1) == 1);
		_exit(failures != 0);
	}
	wait(&status);
	CHECK(status == 0 && quiet(ep));
	CHECK(write(a[1], "x", 1) == 1 && told(ep) && got(ep, a[0]));
	close(a[0]), close(a[1]), close(b[0]), close(b[1]), close(ep);
}

int main(int argc, char **argv)
{
	begin(argc, argv);
	two_processes(0);
	two_processes(1);
	polled();
	nested(0);
	nested(EPOLLET);
	watched_by_a_thread();
	heard_through(0, 0), heard_through(0, EPOLLET);
	heard_through(1, 0), heard_through(1, EPOLLET);
	one_event_of_a_watched_set();
	listener_by_edge();
	listener_that_begins_again();
	watched_by_a_child();
	return end();
}
