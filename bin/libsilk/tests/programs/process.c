/* Descriptors and processes: dup, close_range, fork, exec. */
#include "check.h"
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static char *self;

/* The image after an exec: finds its socket under the number it is told and answers. */
static int after(int fd, const char *say)
{
	char b[16];
	if (recv(fd, b, 2, MSG_WAITALL) != 2)
		return 3;
	if (fcntl(fd, F_GETFL) != (O_RDWR | O_APPEND))
		return 4;
	if (send(fd, say, strlen(say), 0) != (ssize_t)strlen(say))
		return 5;
	return 0;
}

static void answered(int fd, const char *say)
{
	char b[16] = "";
	CHECK(write(fd, "go", 2) == 2);
	CHECK(recv(fd, b, strlen(say), MSG_WAITALL) == (ssize_t)strlen(say) && !strcmp(b, say));
	int status;
	wait(&status);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK(read(fd, b, 1) == 0);
	close(fd);
}

static void execs(void)
{
	char number[16], *env[] = { "A=b", NULL };
	char *with[] = { "LD_PRELOAD=libm.so.6", NULL }, *without[] = { "LD_PRELOAD=", NULL };
	for (int how = 0; how < 8; how++) {
		int fds[2];
		pair(fds);
		fcntl(fds[1], F_SETFL, O_APPEND);
		snprintf(number, sizeof number, "%d", fds[1]);
		if ((how == 5 ? vfork() : fork()) == 0) {
			char *v[] = { self, (char *)host, "after", number, "abc", "d", "e", NULL };
			close(fds[0]);
			if (how == 0)
				execv(self, v);
			if (how == 1)
				execl(self, self, host, "after", number, "abc", "d", "e", NULL);
			if (how == 2)
				execle(self, self, host, "after", number, "abc", NULL, env);
			if (how == 3)
				execve(self, v, env);
			if (how == 4)
				execlp(self, self, host, "after", number, "abc", "d", "e", "f", "g", "h", NULL);
			if (how == 6)
				execve(self, v, with);
			if (how == 7)
				execve(self, v, without);
			execvp(self, v);
			_exit(9);
		}
		close(fds[1]);
		answered(fds[0], "abc");
	}
	/* An exec that fails changes nothing; a socket closed on exec is closed by it. */
	int fds[2];
	char b;
	pair(fds);
	char *v[] = { "true", NULL };
	FAILS(execv("/nonexistent", v), ENOENT);
	CHECK(write(fds[0], "x", 1) == 1 && recv(fds[1], &b, 1, 0) == 1);
	fcntl(fds[1], F_SETFD, FD_CLOEXEC);
	if (fork() == 0) {
		close(fds[0]);
		execvp("true", v);
		_exit(9);
	}
	close(fds[1]);
	CHECK(read(fds[0], &b, 1) == 0);
	wait(NULL);
	close(fds[0]);
}

static void forks(void)
{
	int fds[2], l = listening();
	char b[8];
	/* Children accept for their parent. */
	for (int i = 0; i < 3; i++)
		if (fork() == 0) {
			int c = accept(l, NULL, NULL);
			_exit(c < 0 || write(c, "hi", 2) != 2);
		}
	for (int i = 0; i < 3; i++) {
		int c = connected(l);
		CHECK(recv(c, b, 2, MSG_WAITALL) == 2);
		CHECK(read(c, b, 1) == 0);
		close(c);
	}
	for (int i = 0; i < 3; i++) {
		int status;
		wait(&status);
		CHECK(status == 0);
	}
	close(l);
	/* A connection ends when its last holder lets go, whoever that is. */
	pair(fds);
	if (fork() == 0) {
		close(fds[0]);
		usleep(60000);
		_exit(write(fds[1], "late", 4) != 4);
	}
	close(fds[1]);
	CHECK(recv(fds[0], b, 4, MSG_WAITALL) == 4);
	CHECK(read(fds[0], b, 1) == 0);
	wait(NULL);
	close(fds[0]);
}

/* Whether a hard limit may be raised again. */
static int may_raise_limits(void)
{
	struct rlimit low = { 200, 200 }, high = { 200, 201 };
	int status;
	if (fork() == 0)
		_exit(setrlimit(RLIMIT_NOFILE, &low) || setrlimit(RLIMIT_NOFILE, &high));
	wait(&status);
	return status == 0;
}

/* On Linux a fork needs no descriptor, nor does one of the child. */
static void forks_without_a_free_descriptor(rlim_t hard)
{
	struct rlimit before, limit;
	int fds[2], most = 0, status;
	char b[8];
	pair(fds);
	getrlimit(RLIMIT_NOFILE, &before);
	limit = before;
	limit.rlim_cur = 200;
	if (hard)
		limit.rlim_max = hard;
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	for (int fd; (fd = dup(2)) >= 0; most = fd)
		;
	FAILS(dup(2), EMFILE);
	CHECK(most > 3);
	if (fork() == 0) {
		if (fork() == 0)
			_exit(write(fds[1], "mine", 4) != 4 || dup(2) >= 0);
		wait(&status);
		_exit(status || write(fds[1], "mine", 4) != 4 || dup(2) >= 0);
	}
	CHECK(recv(fds[0], b, 8, MSG_WAITALL) == 8 && !memcmp(b, "minemine", 8));
	wait(&status);
	CHECK(status == 0);
	FAILS(dup(2), EMFILE);
	CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur == 200);
	CHECK(limit.rlim_max == (hard ? hard : before.rlim_max));
	for (int fd = 3; fd <= most; fd++)
		if (fd != fds[0] && fd != fds[1])
			close(fd);
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
	close(fds[0]), close(fds[1]);
}

/* The system call that ends the calling thread alone, and with the last of them the process. */
static void *ends_later(void *to)
{
	usleep(60000);
	if (write(*(int *)to, "last", 4) == 4)
		syscall(SYS_exit, 0);
	return NULL;
}

static void ends_by_thread(int fd, int thread)
{
	pthread_t other;
	if (thread == 0)
		ends_later(&fd);
	pthread_create(&other, NULL, ends_later, &fd);
	if (thread == 1)
		syscall(SYS_exit, 0);
	/* A thread that ends takes nothing with it. */
	usleep(120000);
	_exit(write(fd, "more", 4) != 4);
}

static void ends_by_threads(void)
{
	char b[8];
	int fds[2], status;
	for (int thread = 0; thread < 3; thread++) {
		pair(fds);
		if (fork() == 0) {
			close(fds[0]);
			ends_by_thread(fds[1], thread);
		}
		close(fds[1]);
		CHECK(recv(fds[0], b, 4, MSG_WAITALL) == 4 && !memcmp(b, "last", 4));
		if (thread == 2)
			CHECK(recv(fds[0], b, 4, MSG_WAITALL) == 4 && !memcmp(b, "more", 4));
		CHECK(read(fds[0], b, 1) == 0);
		CHECK(wait(&status) > 0 && status == 0);
		close(fds[0]);
	}
}

/* Connections are made and closed, to and fro. */
static void *busy(void *rounds)
{
	for (int i = 0; i < *(int *)rounds; i++) {
		int fds[2], l = listening();
		char b[4];
		fds[0] = connected(l), fds[1] = accept(l, NULL, NULL);
		int copy = dup(fds[1]);
		close(l);
		CHECK(write(fds[0], "go", 2) == 2 && recv(fds[1], b, 2, MSG_WAITALL) == 2);
		CHECK(write(copy, "ok", 2) == 2 && recv(fds[0], b, 2, MSG_WAITALL) == 2);
		close(fds[1]);
		close(copy);
		CHECK(read(fds[0], b, 1) == 0);
		close(fds[0]);
	}
	return NULL;
}

/* Meanwhile another thread forks: of each connection a child has all, and closes it, or nothing. */
static void forks_meanwhile(void)
{
	enum { CHILDREN = 12, THREADS = 3 };
	pid_t children[CHILDREN];
	pthread_t threads[THREADS];
	int rounds = 60;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, busy, &rounds);
	for (int i = 0; i < CHILDREN; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			closefrom(3);
			pause();
			_exit(0);
		}
		usleep(5000);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < CHILDREN; i++) {
		kill(children[i], SIGKILL);
		CHECK(waitpid(children[i], NULL, 0) == children[i]);
	}
}

/* Room for all that connect while nobody accepts: without it they would wait, the last of them for ever. */
enum { FOR_ALL = 1024 };

/* No more than there is memory for, however late the exec is. */
static void *connects(void *listener)
{
	for (int n = 0; n < 80; n++)
		close(connected(*(int *)listener));
	return NULL;
}

/* The image after an exec in the middle of that closes whatever it has. */
static int closes(int but)
{
	for (int fd = 3; fd < 500; fd++)
		if (fd != but)
			close(fd);
	CHECK(write(but, "x", 1) == 1);
	pause();
	return 0;
}

/* A child of which one thread executes, at another moment each time, while others do that to a listening socket; the new image writes to
 * the pipe once it has closed everything. */
static pid_t executes(void *(*others)(void *), int l, int p[2], int when)
{
	char number[16];
	CHECK(pipe(p) == 0);
	pid_t child = fork();
	if (child == 0) {
		pthread_t thread;
		close(p[0]);
		snprintf(number, sizeof number, "%d", p[1]);
		for (int t = 0; t < 3; t++)
			pthread_create(&thread, NULL, others, &l);
		usleep(2000 + 300 * when);
		execl(self, self, host, "closes", number, NULL);
		_exit(9);
	}
	close(p[1]);
	return child;
}

/* Nothing stays open that nobody knows. */
static void all_end(int *ends, int n, pid_t child)
{
	struct timeval limit = { 5, 0 };
	char b;
	while (n > 0) {
		setsockopt(ends[--n], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
		CHECK(read(ends[n], &b, 1) == 0 || errno == ECONNRESET);
		close(ends[n]);
	}
	kill(child, SIGKILL);
	CHECK(waitpid(child, NULL, 0) == child);
}

/* One thread executes while others connect and close. */
static void execs_meanwhile(void)
{
	static int peers[20000];
	for (int i = 0; i < 12; i++) {
		int p[2], n = 0, l = listening_with(FOR_ALL);
		char b;
		pid_t child = executes(connects, l, p, i);
		fcntl(l, F_SETFL, O_NONBLOCK);
		struct pollfd either[] = { { l, POLLIN, 0 }, { p[0], POLLIN, 0 } };
		while (poll(either, 2, 10000) > 0 && n < 20000) {
			while (n < 20000 && (peers[n] = accept(l, NULL, NULL)) >= 0)
				n++;
			if (either[1].revents)
				break;
		}
		CHECK(read(p[0], &b, 1) == 1);
		all_end(peers, n, child);
		close(l), close(p[0]);
	}
}

static void *accepts(void *listener)
{
	for (;;)
		close(accept(*(int *)listener, NULL, NULL));
	return NULL;
}

/* One thread executes while others accept: each connection is the new image's, which closes it, or is accepted by who listens, too. */
static void execs_while_others_accept(void)
{
	enum { PEERS = 60 };
	int peers[PEERS];
	for (int i = 0; i < 12; i++) {
		int p[2], n = 0, left, l = listening_with(FOR_ALL);
		char b;
		pid_t child = executes(accepts, l, p, i);
		struct pollfd is_another = { p[0], POLLIN, 0 };
		while (n < PEERS && poll(&is_another, 1, 0) == 0)
			peers[n++] = connected(l);
		CHECK(read(p[0], &b, 1) == 1);
		fcntl(l, F_SETFL, O_NONBLOCK);
		while ((left = accept(l, NULL, NULL)) >= 0)
			close(left);
		/* What shakes hands still, because its last packet waits on a busy CPU, comes into the queue after that: reset. */
		close(l);
		all_end(peers, n, child);
		close(p[0]);
	}
}

ssize_t __read(int, void *, size_t), __write(int, const void *, size_t), __send(int, const void *, size_t, int);
int __poll(struct pollfd *, nfds_t, int), __dup2(int, int), __fcntl(int, int, ...);

/* The C library's other names of its functions, and the newest system calls. */
static void by_other_names(int fds[2])
{
	char b[8];
	struct iovec v = { b, 8 };
	struct pollfd p = { .fd = fds[1], .events = POLLIN };
	struct epoll_event e = { .events = EPOLLIN };
	struct timespec ms = { 0, 1000000 };
	fd_set r;
	int ep = epoll_create1(0);
	CHECK(!epoll_ctl(ep, EPOLL_CTL_ADD, fds[1], &e));
	FD_ZERO(&r); FD_SET(fds[1], &r);
	CHECK(syscall(SYS_epoll_pwait2, ep, &e, 1, &ms, NULL, 8) == 0);
	CHECK(syscall(SYS_pselect6, fds[1] + 1, &r, NULL, NULL, &ms, NULL) == 0);
	CHECK(__write(fds[0], "abc", 3) == 3 && __poll(&p, 1, 1000) == 1 && __read(fds[1], b, 8) == 3);
	CHECK(__send(fds[0], "de", 2, 0) == 2 && syscall(SYS_epoll_pwait2, ep, &e, 1, NULL, NULL, 8) == 1);
	FD_SET(fds[1], &r);
	CHECK(syscall(SYS_pselect6, fds[1] + 1, &r, NULL, NULL, NULL, NULL) == 1 && FD_ISSET(fds[1], &r));
	CHECK(syscall(SYS_preadv2, fds[1], &v, 1, -1L, -1L, 0) == 2);
	v.iov_len = 1;
	CHECK(syscall(SYS_pwritev2, fds[0], &v, 1, -1L, -1L, 0) == 1 && recv(fds[1], b, 8, 0) == 1);
	CHECK(__dup2(fds[0], 200) == 200 && __fcntl(200, F_DUPFD, 201) == 201);
	CHECK(write(201, "f", 1) == 1 && recv(fds[1], b, 8, 0) == 1);
	close(ep), close(200), close(201);
}

static void descriptors(void)
{
	int fds[2];
	char b[8];
	pair(fds);
	int d = dup2(fds[1], 200);
	CHECK(d == 200);
	close(fds[1]);
	CHECK(write(fds[0], "a", 1) == 1 && recv(200, b, 1, 0) == 1);
	CHECK(fcntl(200, F_DUPFD_CLOEXEC, 300) == 300);
	CHECK(dup3(300, 301, O_CLOEXEC) == 301 && fcntl(301, F_GETFD) == FD_CLOEXEC);
	FAILS(dup3(300, 300, 0), EINVAL);
	CHECK(dup2(300, 300) == 300);
	FAILS(dup2(999, 300), EBADF);
	CHECK(write(300, "b", 1) == 1 && recv(fds[0], b, 1, 0) == 1);
	close(200);
	CHECK(close_range(250, 290, 0) == 0);
	FAILS(close_range(300, 400, 1), EINVAL);
	CHECK(write(301, "c", 1) == 1 && recv(fds[0], b, 1, 0) == 1);
	CHECK(close_range(300, ~0U, 0) == 0);
	FAILS(write(301, "c", 1), EBADF);
	CHECK(read(fds[0], b, 1) == 0);
	/* A file in the place of a socket is a file. */
	int f = open("/dev/null", O_RDWR);
	CHECK(dup2(f, fds[0]) == fds[0]);
	CHECK(write(fds[0], "gone", 4) == 4 && read(fds[0], b, 1) == 0);
	close(f), close(fds[0]);
	/* Whoever closes everything it can think of does not saw off the branch. */
	for (int i = 3; i < 1200; i++)
		close(i);
	pair(fds);
	CHECK(syscall(SYS_write, fds[0], "raw", 3) == 3 && syscall(SYS_read, fds[1], b, 8) == 3);
	by_other_names(fds);
	closefrom(3);
	pair(fds);
	CHECK(write(fds[0], "y", 1) == 1 && recv(fds[1], b, 1, 0) == 1);
	close(fds[0]), close(fds[1]);
}

static int cloned(void *end)
{
	char b[8];
	return recv(*(int *)end, b, 2, MSG_WAITALL) == 2 && send(*(int *)end, "child", 5, 0) == 5 ? 0 : 5;
}

static int cloned_and_executed(void *end)
{
	char number[16];
	snprintf(number, sizeof number, "%d", *(int *)end);
	close(*(int *)end + 1);
	execl(self, self, host, "after", number, "child", NULL);
	return 9;
}

/* Nor is one that has a stack of its own a stranger, or one that begins without anybody being told. */
static void clones(void)
{
	static char stack[1 << 18] __attribute__((aligned(16)));
	for (int i = 0; i < 4; i++) {
		int fds[2];
		pair(fds);
		fcntl(fds[1], F_SETFL, O_APPEND);
		pid_t child = i == 0 ? clone(cloned, stack + sizeof stack, SIGCHLD, &fds[1])
			: i == 1 ? clone(cloned_and_executed, stack + sizeof stack, SIGCHLD, &fds[1])
			: i == 2 ? clone(cloned_and_executed, stack + sizeof stack, CLONE_VM | CLONE_VFORK | CLONE_SIGHAND | SIGCHLD, &fds[1])
			: _Fork();
		if (child == 0)
			_exit(cloned(&fds[1]));
		CHECK(child > 0);
		close(fds[1]);
		answered(fds[0], "child");
		/* What it only has, and does not use, is still its parent's. */
		pair(fds);
		child = i == 3 ? _Fork() : clone((int (*)(void *))_exit, stack + sizeof stack, SIGCHLD | (i == 2 ? CLONE_VM | CLONE_VFORK : 0), NULL);
		if (child == 0)
			_exit(0);
		char b;
		CHECK(waitpid(child, NULL, 0) == child);
		CHECK(write(fds[0], "x", 1) == 1 && read(fds[1], &b, 1) == 1);
		close(fds[0]), close(fds[1]);
	}
	FAILS(clone(cloned, NULL, SIGCHLD, NULL), EINVAL);
}

static int begun[2], done[2];

static int waits_for_a_thread(void *nothing)
{
	char b = 'x';
	return write(begun[1], &b, 1) != 1 || read(done[0], &b, 1) != 1;
}

static void *busy_meanwhile(void *nothing)
{
	int rounds = 2;
	char b;
	CHECK(read(begun[0], &b, 1) == 1);
	busy(&rounds);
	CHECK(write(done[1], &b, 1) == 1);
	return nothing;
}

/* Who waits until his child executes, or ends, is waited for by no other thread. */
static void clones_that_are_waited_for(void)
{
	static char stack[1 << 18] __attribute__((aligned(16)));
	static const struct { uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls; } how = {
		.flags = CLONE_VFORK, .exit_signal = SIGCHLD
	};
	for (int i = 0; i < 3; i++) {
		pthread_t other;
		int status;
		CHECK(pipe(begun) == 0 && pipe(done) == 0);
		pthread_create(&other, NULL, busy_meanwhile, NULL);
		long child = i == 0 ? clone(waits_for_a_thread, stack + sizeof stack, CLONE_VFORK | SIGCHLD, NULL)
			: i == 1 ? syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0) : syscall(SYS_clone3, &how, sizeof how);
		if (child == 0)
			_exit(waits_for_a_thread(NULL));
		CHECK(waitpid(child, &status, 0) == child && status == 0);
		pthread_join(other, NULL);
		for (int n = 0; n < 2; n++)
			close(begun[n]), close(done[n]);
	}
}

/* A child that the C library has not seen made holds its parent's sockets, too. */
static void forks_otherwise(void)
{
	struct { uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls; } how = { .exit_signal = SIGCHLD };
	for (int i = 0; i < 3; i++) {
		int fds[2];
		char b[8] = "";
		pair(fds);
		long child = i == 0 ? syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : i == 1 ? syscall(SYS_clone3, &how, sizeof how)
			: syscall(SYS_fork);
		if (child == 0) {
			close(fds[0]);
			_exit(recv(fds[1], b, 2, MSG_WAITALL) == 2 && send(fds[1], "child", 5, 0) == 5 ? 0 : 5);
		}
		CHECK(child > 0);
		close(fds[1]);
		answered(fds[0], "child");
	}
	/* One that is not made leaves all as it was. */
	errno = 0;
	FAILS(syscall(SYS_clone, CLONE_FS | CLONE_NEWNS | SIGCHLD, 0, 0, 0, 0), EINVAL);
	int fds[2];
	char b;
	pair(fds);
	CHECK(write(fds[0], "x", 1) == 1 && read(fds[1], &b, 1) == 1);
	close(fds[0]), close(fds[1]);
}

/* KB of shared memory that are there. */
static long shared(void)
{
	char line[256];
	long kb = -1;
	FILE *f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof line, f))
		sscanf(line, "RssShmem: %ld kB", &kb);
	if (f)
		fclose(f);
	return kb;
}

/* What is locked is what is used. Without the right to lock, nothing is. */
static void locked(int flags)
{
	int fds[2];
	char b;
	if (mlockall(flags))
		CHECK(errno == ENOMEM || errno == EPERM);
	pair(fds);
	CHECK(write(fds[0], "x", 1) == 1 && read(fds[1], &b, 1) == 1);
	close(fds[0]), close(fds[1]);
	CHECK(shared() < 32 << 10);
	munlockall();
}

/* A limit of the address space is the program's own. */
static void limited(void)
{
	struct rlimit before, now, other = { 300 << 20, RLIM_INFINITY };
	int fds[2];
	char b;
	CHECK(!getrlimit(RLIMIT_AS, &before) && before.rlim_cur == RLIM_INFINITY);
	int child = fork();
	if (child) {
		int status;
		CHECK(wait(&status) == child && WIFEXITED(status) && !WEXITSTATUS(status));
		return;
	}
	/* Before the first socket of the image, or after it. (Who may not raise a hard limit sets it after.) */
	CHECK(!setrlimit(RLIMIT_AS, &other) && !getrlimit(RLIMIT_AS, &now));
	CHECK(now.rlim_cur == other.rlim_cur && now.rlim_max == other.rlim_max);
	pair(fds);
	CHECK(write(fds[0], "x", 1) == 1 && read(fds[1], &b, 1) == 1);
	CHECK(!prlimit(0, RLIMIT_AS, NULL, &now) && now.rlim_cur == other.rlim_cur);
	void *much = mmap(NULL, 64 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(much != MAP_FAILED && !munmap(much, 64 << 20));
	CHECK(mmap(NULL, 320 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
	now.rlim_cur = now.rlim_max = 200 << 20;
	CHECK(!setrlimit(RLIMIT_AS, &now) && !getrlimit(RLIMIT_AS, &other) && other.rlim_max == now.rlim_max);
	CHECK( mmap(NULL, 250 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
	_exit(0);
}

int main(int argc, char **argv)
{
	begin(argc, argv);
	self = argv[0];
	if (argc > 3 && !strcmp(argv[2], "closes"))
		return closes(atoi(argv[3]));
	if (argc > 4 && !strcmp(argv[2], "after"))
		return after(atoi(argv[3]), argv[4]);
	limited();
	FAILS(mlockall(64), EINVAL);
	/* Before the first socket and after it. */
	locked(MCL_CURRENT | MCL_FUTURE);
	locked(MCL_CURRENT | MCL_FUTURE);
	locked(MCL_FUTURE);
	execs();
	forks();
	forks_without_a_free_descriptor(0);
	/* Over silk one at the hard limit takes the right to go beyond it. */
	if (may_raise_limits())
		forks_without_a_free_descriptor(200);
	forks_otherwise();
	ends_by_threads();
	clones();
	clones_that_are_waited_for();
	limited();
	descriptors();
	forks_meanwhile();
	execs_meanwhile();
	execs_while_others_accept();
	return end();
}
