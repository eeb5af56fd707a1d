/* Event sets in which several processes wait. */
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

int main(int argc, char **argv)
{
	begin(argc, argv);
	two_processes(0);
	two_processes(1);
	return end();
}
