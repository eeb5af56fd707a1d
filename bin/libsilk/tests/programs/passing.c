/* Sockets that are passed to another process (SCM_RIGHTS). */
#include "check.h"
#include <sys/stat.h>
#include <sys/syscall.h>

/* Control data with room for so many descriptors. */
#define MOST 8
union control {
	char bytes[CMSG_SPACE(MOST * sizeof(int))];
	struct cmsghdr aligned;
};

static struct msghdr message(struct iovec *part, union control *control, size_t length)
{
	return (struct msghdr){ .msg_iov = part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = length };
}

static struct msghdr carrying(struct iovec *part, union control *control, const int *fds, int count)
{
	memset(control, 0, sizeof *control);
	struct msghdr m = message(part, control, CMSG_SPACE(count * sizeof(int)));
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	return m;
}

static int give(int over, const int *fds, int count, int flags)
{
	char c = 'x';
	union control control;
	struct iovec part = { &c, 1 };
	struct msghdr m = carrying(&part, &control, fds, count);
	return sendmsg(over, &m, flags);
}

static int found(struct msghdr *m, int *fds)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(m);
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return 0;
	int count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(fds, CMSG_DATA(c), count * sizeof(int));
	return count;
}

/* What has been passed, and how many: -1 if nothing came. */
static int get(int over, int *fds, int flags)
{
	char c;
	union control control;
	struct iovec part = { &c, 1 };
	struct msghdr m = message(&part, &control, sizeof control);
	return recvmsg(over, &m, flags) == 1 ? found(&m, fds) : -1;
}

static int get_one(int over)
{
	int fds[MOST];
	return get(over, fds, 0) == 1 ? fds[0] : -1;
}

static void says(int fd, const char *what)
{
	char got[64] = "";
	size_t n = strlen(what), have = 0;
	while (have < n) {
		ssize_t r = read(fd, got + have, n - have);
		if (r <= 0)
			break;
		have += r;
	}
	CHECK(!strcmp(got, what));
}

static int ends_well(pid_t child)
{
	int status;
	return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* A server that accepts, and a child that serves. */
static void accepted(void)
{
	int over[2], l = listening();
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, over) == 0);
	fflush(NULL);
	pid_t child = fork();
	if (!child) {
		close(over[0]);
		for (int n = 0; n < 3; n++) {
			int fd = get_one(over[1]);
			struct sockaddr_in peer;
			socklen_t length = sizeof peer;
			CHECK(fd >= 0 && getpeername(fd, (struct sockaddr *)&peer, &length) == 0);
			CHECK(peer.sin_family == AF_INET && peer.sin_addr.s_addr == at(0).sin_addr.s_addr);
			CHECK(port_of(fd) == port_of(l));
			says(fd, "question");
			CHECK(write(fd, "answer", 6) == 6);
			CHECK(close(fd) == 0);
		}
		_exit(failures != 0);
	}
	close(over[1]);
	/* One after the other, which may get what the one before had. */
	for (int n = 0; n < 3; n++) {
		char c;
		int client = connected(l), fd = accept(l, NULL, NULL);
		CHECK(fd >= 0 && write(client, "question", 8) == 8);
		CHECK(give(over[0], &fd, 1, 0) == 1);
		CHECK(close(fd) == 0);
		says(client, "answer");
		CHECK(read(client, &c, 1) == 0);
		CHECK(close(client) == 0);
	}
	CHECK(ends_well(child));
	close(over[0]), close(l);
}

/* The sender keeps it: both have it. */
static void kept(void)
{
	int over[2], fds[2], flags;
	char c;
	pair(fds);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, over) == 0);
	CHECK((flags = fcntl(fds[1], F_GETFL)) >= 0 && fcntl(fds[1], F_SETFL, flags | O_NONBLOCK) == 0);
	fflush(NULL);
	pid_t child = fork();
	if (!child) {
		close(over[0]), close(fds[0]), close(fds[1]);
		int fd = get_one(over[1]);
		CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
		CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0);
		FAILS(read(fd, &c, 1), EAGAIN);
		CHECK(write(fd, "child", 5) == 5);
		_exit(failures != 0);
	}
	CHECK(give(over[0], &fds[1], 1, 0) == 1);
	says(fds[0], "child");
	CHECK(ends_well(child));
	CHECK(write(fds[1], "parent", 6) == 6);
	says(fds[0], "parent");
	close(fds[1]);
	CHECK(read(fds[0], &c, 1) == 0);
	close(fds[0]), close(over[0]), close(over[1]);
}

/* The receiver's standard streams, which have the lowest free numbers. */
static void standard(void)
{
	int over[2], fds[2];
	pair(fds);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, over) == 0);
	fflush(NULL);
	pid_t child = fork();
	if (!child) {
		char line[64];
		close(over[0]), close(fds[0]), close(fds[1]);
		close(0), close(1);
		if (get_one(over[1]) != 0 || get_one(over[1]) != 1 || !fgets(line, sizeof line, stdin))
			_exit(3);
		printf("heard %s", line);
		exit(0);
	}
	for (int n = 0; n < 2; n++)
		CHECK(give(over[0], &fds[1], 1, 0) == 1);
	CHECK(close(fds[1]) == 0 && write(fds[0], "hello\n", 6) == 6);
	says(fds[0], "heard hello\n");
	CHECK(ends_well(child));
	close(fds[0]), close(over[0]), close(over[1]);
}

/* A socket that listens, one that is only bound, one for datagrams, a client's. */
static void kinds(void)
{
	int over[2], fds[4] = { listening(), bound(SOCK_STREAM), bound(SOCK_DGRAM), -1 };
	int ports[3] = { port_of(fds[0]), port_of(fds[1]), port_of(fds[2]) };
	int l = listening();
	fds[3] = connected(l);
	int server = accept(l, NULL, NULL);
	CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, over) == 0);
	fflush(NULL);
	pid_t child = fork();
	if (!child) {
		int got[MOST];
		for (int n = 0; n < 4; n++)
			close(fds[n]);
		close(server), close(l), close(over[0]);
		CHECK(get(over[1], got, 0) == 4);
		for (int n = 0; n < 3; n++)
			CHECK(port_of(got[n]) == ports[n]);
		CHECK(listen(got[1], 16) == 0);
		CHECK(write(over[1], "!", 1) == 1);
		for (int n = 0; n < 2; n++) {
			int fd = accept(got[n], NULL, NULL);
			CHECK(fd >= 0 && write(fd, "welcome", 7) == 7);
			close(fd);
		}
		char datagram[64];
		struct sockaddr_in from;
		socklen_t length = sizeof from;
		CHECK(recvfrom(got[2], datagram, 64, 0, (struct sockaddr *)&from, &length) == 4);
		CHECK(sendto(got[2], datagram, 4, 0, (struct sockaddr *)&from, length) == 4);
		CHECK(write(got[3], "client", 6) == 6);
		_exit(failures != 0);
	}
	CHECK(give(over[0], fds, 4, 0) == 1);
	for (int n = 0; n < 4; n++)
		close(fds[n]);
	char c, datagram[64];
	CHECK(read(over[0], &c, 1) == 1);
	for (int n = 0; n < 2; n++) {
		struct sockaddr_in a = at(ports[n]);
		int client = socket(AF_INET, SOCK_STREAM, 0);
		CHECK(connect(client, (struct sockaddr *)&a, sizeof a) == 0);
		says(client, "welcome");
		close(client);
	}
	struct sockaddr_in a = at(ports[2]);
	int asks = bound(SOCK_DGRAM);
	CHECK(sendto(asks, "ping", 4, 0, (struct sockaddr *)&a, sizeof a) == 4);
	CHECK(recv(asks, datagram, 64, 0) == 4 && !memcmp(datagram, "ping", 4));
	says(server, "client");
	CHECK(ends_well(child));
	CHECK(read(server, &c, 1) == 0);
	close(asks), close(server), close(l), close(over[0]), close(over[1]);
}

/* To oneself: a copy, as of dup. Beside others, looked at first, closed on exec. */
static void oneself(void)
{
	int over[2], pipes[2], fds[2], got[MOST], looked[MOST];
	char c;
	pair(fds);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, over) == 0 && pipe(pipes) == 0);
	int both[] = { pipes[1], fds[1], STDERR_FILENO };
	CHECK(give(over[0], both, 3, 0) == 1);
	CHECK(get(over[1], looked, MSG_PEEK) == 3);
	for (int n = 0; n < 3; n++)
		CHECK(close(looked[n]) == 0);
	CHECK(get(over[1], got, MSG_CMSG_CLOEXEC) == 3);
	for (int n = 0; n < 3; n++)
		CHECK(fcntl(got[n], F_GETFD) & FD_CLOEXEC);
	CHECK(write(got[0], "p", 1) == 1 && read(pipes[0], &c, 1) == 1 && c == 'p');
	CHECK(write(got[1], "copy", 4) == 4);
	says(fds[0], "copy");
	CHECK(close(fds[1]) == 0);
	CHECK(write(got[1], "still", 5) == 5);
	says(fds[0], "still");
	CHECK(close(got[1]) == 0);
	CHECK(read(fds[0], &c, 1) == 0);
	close(got[0]), close(got[2]), close(pipes[0]), close(pipes[1]), close(fds[0]), close(over[0]), close(over[1]);
}

/* What is not sent stays; what nobody receives ends. */
static void lost(void)
{
	int over[2], fds[2], bad[2] = { -1, -1 };
	char c;
	pair(fds);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, over) == 0);
	bad[0] = fds[1];
	FAILS(give(over[0], bad, 2, 0), EBADF);
	CHECK(write(fds[1], "here", 4) == 4);
	says(fds[0], "here");
	CHECK(give(over[0], &fds[1], 1, 0) == 1);
	CHECK(close(fds[1]) == 0);
	CHECK(write(fds[0], "anybody?", 8) == 8);
	struct pollfd p = { fds[0], POLLIN, 0 };
	CHECK(poll(&p, 1, 50) == 0);
	close(over[0]), close(over[1]);
	CHECK(poll(&p, 1, 5000) == 1 && read(fds[0], &c, 1) <= 0);
	close(fds[0]);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, over) == 0);
	pair(fds);
	close(over[1]);
	FAILS(give(over[0], &fds[1], 1, MSG_NOSIGNAL), EPIPE);
	CHECK(write(fds[1], "back", 4) == 4);
	says(fds[0], "back");
	close(fds[0]), close(fds[1]), close(over[0]);
}

/* The plural forms. */
static void several(void)
{
	int over[2], fds[4], got[2][MOST];
	char c[2] = "ab";
	union control control[2];
	pair(fds), pair(fds + 2);
	CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, over) == 0);
	struct iovec parts[2] = { { c, 1 }, { c + 1, 1 } };
	struct mmsghdr m[2] = { 0 };
	m[0].msg_hdr = carrying(&parts[0], &control[0], &fds[1], 1);
	m[1].msg_hdr = carrying(&parts[1], &control[1], &fds[3], 1);
	CHECK(sendmmsg(over[0], m, 2, 0) == 2 && m[0].msg_len == 1);
	close(fds[1]), close(fds[3]);
	for (int n = 0; n < 2; n++)
		m[n].msg_hdr = message(&parts[n], &control[n], sizeof control[n]);
	CHECK(recvmmsg(over[1], m, 2, 0, NULL) == 2);
	for (int n = 0; n < 2; n++) {
		CHECK(found(&m[n].msg_hdr, got[n]) == 1);
		CHECK(write(got[n][0], "two", 3) == 3);
		says(fds[2 * n], "two");
		close(got[n][0]), close(fds[2 * n]);
	}
	close(over[0]), close(over[1]);
}

/* What `fstat` and its kin tell of a descriptor, which all must be the same. */
static struct stat about(int fd)
{
	struct stat s, again;
	struct statx x;
	CHECK(fstat(fd, &s) == 0 && S_ISSOCK(s.st_mode) && s.st_ino != 0);
	CHECK(fstatat(fd, "", &again, AT_EMPTY_PATH) == 0 && again.st_ino == s.st_ino);
	CHECK(syscall(SYS_newfstatat, fd, "", &again, AT_EMPTY_PATH) == 0 && again.st_ino == s.st_ino);
	CHECK(syscall(SYS_fstat, fd, &again) == 0 && again.st_ino == s.st_ino && again.st_dev == s.st_dev);
	CHECK(statx(fd, "", AT_EMPTY_PATH, STATX_INO, &x) == 0 && x.stx_ino == s.st_ino);
	return s;
}

static int are_same(struct stat a, struct stat b)
{
	return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Each socket has an inode of its own, whoever has it and under which number. */
static void inodes(void)
{
	enum { COUNT = 6 };
	int over[2], fds[COUNT];
	struct stat files[COUNT];
	pair(fds), pair(fds + 2);
	fds[4] = listening(), fds[5] = bound(SOCK_DGRAM);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, over) == 0);
	for (int n = 0; n < COUNT; n++) {
		files[n] = about(fds[n]);
		int copy = dup(fds[n]);
		CHECK(are_same(about(copy), files[n]) && close(copy) == 0);
		for (int before = 0; before < n; before++)
			CHECK(!are_same(files[n], files[before]));
	}
	fflush(NULL);
	pid_t child = fork();
	if (!child) {
		int got[MOST];
		close(over[0]);
		for (int n = 0; n < COUNT; n++)
			CHECK(are_same(about(fds[n]), files[n]) && close(fds[n]) == 0);
		CHECK(get(over[1], got, 0) == COUNT);
		for (int n = 0; n < COUNT; n++)
			CHECK(are_same(about(got[n]), files[n]));
		CHECK(write(got[1], "same", 4) == 4);
		_exit(failures != 0);
	}
	CHECK(give(over[0], fds, COUNT, 0) == 1);
	says(fds[0], "same");
	CHECK(ends_well(child));
	for (int n = 0; n < COUNT; n++)
		close(fds[n]);
	struct stat file, link;
	CHECK(stat("/proc/self/exe", &file) == 0 && fstatat(AT_FDCWD, "/proc/self/exe", &link, 0) == 0);
	CHECK(are_same(file, link));
	close(over[0]), close(over[1]);
}

int main(int argc, char **argv)
{
	begin(argc, argv);
	accepted();
	kept();
	standard();
	kinds();
	oneself();
	lost();
	several();
	inodes();
	return end();
}
