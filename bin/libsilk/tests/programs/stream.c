/* Byte streams: ends, errors, flags, options, names. */
#include "check.h"

static volatile sig_atomic_t pipes, alarms;
static void on_pipe(int s) { (void)s; pipes++; }
static void on_alarm(int s) { (void)s; alarms++; }

static void names_and_states(void)
{
	int fds[2], v, flag = 1;
	socklen_t n;
	struct sockaddr_in a;
	pair(fds);
	n = sizeof a;
	CHECK(getpeername(fds[0], (struct sockaddr *)&a, &n) == 0 && n == sizeof a && a.sin_family == AF_INET);
	CHECK(ntohs(a.sin_port) == port_of(fds[1]));
	n = 4;
	CHECK(getsockname(fds[0], (struct sockaddr *)&a, &n) == 0 && n == sizeof a);
	n = -1;
	FAILS(getsockname(fds[0], (struct sockaddr *)&a, &n), EINVAL);
	FAILS(getpeername(fds[0], (struct sockaddr *)&a, &n), EINVAL);
	FAILS(getsockopt(fds[0], SOL_SOCKET, SO_TYPE, &v, &n), EINVAL);
	FAILS(setsockopt(fds[0], SOL_SOCKET, SO_KEEPALIVE, &flag, -1), EINVAL);
	FAILS(setsockopt(fds[0], IPPROTO_TCP, TCP_CONGESTION, "reno", -1), EINVAL);
	int alone = listening();
	CHECK(read(alone, &v, 0) == 0 && readv(alone, NULL, 0) == 0 && writev(alone, NULL, 0) == 0);
	FAILS(getpeername(alone, (struct sockaddr *)&a, &n), ENOTCONN);
	close(alone);
	alone = bound(SOCK_STREAM);
	struct sockaddr_in group = { .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(0xe0000001) };
	FAILS(connect(alone, (struct sockaddr *)&group, sizeof group), ENETUNREACH);
	close(alone);
	n = sizeof v;
	CHECK(getsockopt(fds[0], SOL_SOCKET, SO_TYPE, &v, &n) == 0 && v == SOCK_STREAM && n == sizeof v);
	CHECK(getsockopt(fds[0], SOL_SOCKET, SO_DOMAIN, &v, &n) == 0 && v == AF_INET);
	CHECK(getsockopt(fds[0], SOL_SOCKET, SO_ACCEPTCONN, &v, &n) == 0 && v == 0);
	CHECK(getsockopt(fds[1], SOL_SOCKET, SO_ERROR, &v, &n) == 0 && v == 0);
	CHECK(setsockopt(fds[0], IPPROTO_TCP, TCP_NODELAY, &flag, sizeof flag) == 0);
	CHECK(getsockopt(fds[0], IPPROTO_TCP, TCP_NODELAY, &v, &n) == 0 && v == 1);
	CHECK(setsockopt(fds[0], SOL_SOCKET, SO_KEEPALIVE, &flag, sizeof flag) == 0);
	v = 33;
	CHECK(setsockopt(fds[0], IPPROTO_TCP, TCP_KEEPIDLE, &v, sizeof v) == 0);
	v = 0;
	CHECK(getsockopt(fds[0], IPPROTO_TCP, TCP_KEEPIDLE, &v, &n) == 0 && v == 33);
	FAILS(setsockopt(fds[0], IPPROTO_TCP, TCP_NODELAY, &flag, 1), EINVAL);
	struct tcp_info info;
	n = sizeof info;
	CHECK(getsockopt(fds[0], IPPROTO_TCP, TCP_INFO, &info, &n) == 0 && n >= 104);
	struct timeval t = { .tv_sec = 0, .tv_usec = 50000 }, got = { 9, 9 };
	CHECK(setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t) == 0);
	n = sizeof got;
	CHECK(getsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &got, &n) == 0 && got.tv_sec == 0 && got.tv_usec >= 50000);
	char c;
	long before = millis();
	FAILS(read(fds[0], &c, 1), EAGAIN);
	CHECK(millis() - before >= 45);
	FAILS(listen(fds[0], 1), EINVAL);
	FAILS(bind(fds[0], (struct sockaddr *)&a, sizeof a), EINVAL);
	FAILS(connect(fds[0], (struct sockaddr *)&a, sizeof a), EISCONN);
	FAILS(lseek(fds[0], 0, SEEK_SET), ESPIPE);
	FAILS(pread(fds[0], &c, 1, 0), ESPIPE);
	close(fds[0]), close(fds[1]);
}

static void ends(void)
{
	int fds[2];
	char b[64];
	pair(fds);
	CHECK(write(fds[0], "hello", 5) == 5);
	CHECK(shutdown(fds[0], SHUT_WR) == 0);
	CHECK(recv(fds[1], b, 3, MSG_WAITALL) == 3 && !memcmp(b, "hel", 3));
	CHECK(recv(fds[1], b, 64, MSG_PEEK) == 2 && !memcmp(b, "lo", 2));
	CHECK(recv(fds[1], b, 64, MSG_WAITALL) == 2);
	CHECK(read(fds[1], b, 64) == 0);
	CHECK(read(fds[1], b, 64) == 0);
	FAILS(write(fds[0], "x", 1), EPIPE);
	CHECK(pipes == 1);
	FAILS(send(fds[0], "x", 1, MSG_NOSIGNAL), EPIPE);
	CHECK(pipes == 1);
	CHECK(write(fds[1], "back", 4) == 4);
	CHECK(read(fds[0], b, 64) == 4);
	CHECK(shutdown(fds[0], SHUT_RD) == 0);
	CHECK(read(fds[0], b, 64) == 0);
	close(fds[0]), close(fds[1]);

	/* A close with data unread is a reset; what arrived before it can still be read. */
	pair(fds);
	CHECK(write(fds[0], "unread", 6) == 6 && write(fds[1], "last", 4) == 4);
	settle();
	close(fds[1]);
	settle();
	FAILS(recv(fds[0], b, 64, 0) == 4 ? recv(fds[0], b, 64, 0) : -1, ECONNRESET);
	CHECK(recv(fds[0], b, 64, 0) == 0);
	FAILS(send(fds[0], "x", 1, MSG_NOSIGNAL), EPIPE);
	close(fds[0]);

	/* SO_LINGER with zero seconds is a reset too. */
	pair(fds);
	struct linger l = { 1, 0 };
	CHECK(setsockopt(fds[1], SOL_SOCKET, SO_LINGER, &l, sizeof l) == 0);
	close(fds[1]);
	settle();
	int v = 0;
	socklen_t n = sizeof v;
	CHECK(getsockopt(fds[0], SOL_SOCKET, SO_ERROR, &v, &n) == 0 && v == ECONNRESET);
	CHECK(getsockopt(fds[0], SOL_SOCKET, SO_ERROR, &v, &n) == 0 && v == 0);
	CHECK(read(fds[0], b, 1) == 0);
	close(fds[0]);
}

static void calls_that_do_not_wait(void)
{
	int fds[2], n, on = 1;
	char b[64];
	static char big[1 << 20];
	pair(fds);
	FAILS(recv(fds[0], b, 64, MSG_DONTWAIT), EAGAIN);
	CHECK(fcntl(fds[0], F_SETFL, fcntl(fds[0], F_GETFL) | O_NONBLOCK) == 0);
	CHECK(fcntl(fds[0], F_GETFL) == (O_RDWR | O_NONBLOCK));
	FAILS(read(fds[0], b, 64), EAGAIN);
	long sent = 0, more;
	for (int quiet = 0; quiet < 5;) {
		more = write(fds[0], big, sizeof big);
		if (more > 0)
			sent += more, quiet = 0;
		else
			quiet++, settle();
	}
	FAILS(write(fds[0], big, 1), EAGAIN);
	CHECK(sent > 0);
	struct pollfd p = { fds[0], POLLOUT, 0 };
	CHECK(poll(&p, 1, 0) == 0);
	CHECK(ioctl(fds[1], FIONREAD, &n) == 0 && n > 0);
	long got = 0;
	while (got < sent && (more = read(fds[1], big, sizeof big)) > 0)
		got += more;
	CHECK(got == sent);
	CHECK(poll(&p, 1, 1000) == 1 && p.revents == POLLOUT);
	CHECK(ioctl(fds[1], FIONBIO, &on) == 0);
	FAILS(read(fds[1], b, 1), EAGAIN);
	CHECK(fcntl(fds[1], F_GETFL) & O_NONBLOCK);
	/* A duplicate shares the flag, as it shares the socket. */
	int d = dup(fds[1]);
	CHECK(fcntl(d, F_GETFL) & O_NONBLOCK);
	close(fds[1]);
	CHECK(write(fds[0], "x", 1) == 1);
	settle();
	CHECK(read(d, b, 64) == 1);
	close(d);
	settle();
	CHECK(read(fds[0], b, 64) == 0);
	close(fds[0]);
}

static void vectors_and_messages(void)
{
	int fds[2];
	char a[4] = "", b[8] = "";
	pair(fds);
	struct iovec out[3] = { { "abc", 3 }, { NULL, 0 }, { "defg", 4 } };
	CHECK(writev(fds[0], out, 3) == 7);
	settle();
	struct iovec in[2] = { { a, 2 }, { b, 8 } };
	CHECK(readv(fds[1], in, 2) == 7 && !memcmp(a, "ab", 2) && !memcmp(b, "cdefg", 5));
	volatile int senseless = -1;
	FAILS(readv(fds[1], in, senseless), EINVAL);
	struct iovec endless[2] = { { a, 2 }, { b, -1 } };
	struct msghdr e = { .msg_iov = endless, .msg_iovlen = 2 };
	FAILS(readv(fds[1], endless, 2), EINVAL);
	FAILS(writev(fds[1], endless, 2), EINVAL);
	FAILS(sendmsg(fds[1], &e, 0), EINVAL);
	FAILS(recvmsg(fds[1], &e, 0), EINVAL);
	struct msghdr m = { .msg_iov = out, .msg_iovlen = 3 };
	CHECK(sendmsg(fds[1], &m, 0) == 7);
	struct sockaddr_in who;
	struct msghdr r = { .msg_iov = in, .msg_iovlen = 2, .msg_name = &who, .msg_namelen = sizeof who };
	settle();
	CHECK(recvmsg(fds[0], &r, 0) == 7 && r.msg_namelen == 0 && r.msg_flags == 0);
	CHECK(read(fds[0], a, 0) == 0);
	CHECK(send(fds[1], "x", 1, 0) == 1);
	settle();
	/* Where no name is asked for, its length is nobody's. */
	r.msg_name = NULL, r.msg_namelen = 7;
	CHECK(recvmsg(fds[0], &r, MSG_CMSG_CLOEXEC) == 1 && r.msg_flags == MSG_CMSG_CLOEXEC && r.msg_namelen == 7);
	close(fds[0]), close(fds[1]);
}

static void signals(void)
{
	int fds[2];
	char b;
	struct sigaction s = { .sa_handler = on_alarm };
	pair(fds);
	sigaction(SIGUSR1, &s, NULL);
	pid_t me = getpid();
	/* Again and again until it is told to stop: a call may begin too late for one of them, and two may become one. */
	int stop[2], sent;
	CHECK(pipe(stop) == 0);
	if (fork() == 0) {
		struct pollfd told = { stop[0], POLLIN, 0 };
		for (int n = 0;; n++) {
			if (poll(&told, 1, 60))
				_exit(n);
			kill(me, SIGUSR1);
		}
	}
	FAILS(read(fds[0], &b, 1), EINTR);
	struct pollfd p = { fds[0], POLLIN, 0 };
	FAILS(poll(&p, 1, 5000), EINTR);
	s.sa_flags = SA_RESTART;
	sigaction(SIGUSR1, &s, NULL);
	CHECK(write(stop[1], "x", 1) == 1 && wait(&sent) > 0 && WIFEXITED(sent));
	int until_now = alarms;
	CHECK(until_now >= 2 && until_now <= WEXITSTATUS(sent));
	close(stop[0]), close(stop[1]);
	/* With SA_RESTART the read goes on. */
	if (fork() == 0) {
		usleep(60000), kill(me, SIGUSR1), usleep(60000);
		_exit(write(fds[1], "x", 1) != 1);
	}
	CHECK(read(fds[0], &b, 1) == 1 && alarms == until_now + 1);
	wait(NULL);
	close(fds[0]), close(fds[1]);
}

static void connecting(void)
{
	int l = listening(), v;
	socklen_t n = sizeof v;
	struct sockaddr_in a = at(port_of(l));
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC);
	CHECK(fcntl(fd, F_GETFL) == (O_RDWR | O_NONBLOCK));
	FAILS(getpeername(fd, (struct sockaddr *)&a, &n), ENOTCONN);
	a = at(port_of(l));
	FAILS(connect(fd, (struct sockaddr *)&a, sizeof a), EINPROGRESS);
	struct pollfd p = { fd, POLLOUT, 0 };
	CHECK(poll(&p, 1, 2000) == 1 && p.revents == POLLOUT);
	n = sizeof v;
	CHECK(getsockopt(fd, SOL_SOCKET, SO_ERROR, &v, &n) == 0 && v == 0);
	CHECK(connect(fd, (struct sockaddr *)&a, sizeof a) == 0);
	FAILS(connect(fd, (struct sockaddr *)&a, sizeof a), EISCONN);
	int c = accept4(l, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	CHECK(fcntl(c, F_GETFL) == (O_RDWR | O_NONBLOCK) && fcntl(c, F_GETFD) == FD_CLOEXEC);
	FAILS(accept4(l, NULL, NULL, 12345), EINVAL);
	CHECK(fcntl(l, F_SETFL, O_NONBLOCK) == 0);
	FAILS(accept(l, NULL, NULL), EAGAIN);
	FAILS(read(l, &v, 1), ENOTCONN);
	FAILS(accept(c, NULL, NULL), EINVAL);
	close(fd), close(c);
	/* Nobody listens there any more. */
	close(l);
	settle();
	fd = socket(AF_INET, SOCK_STREAM, 0);
	FAILS(connect(fd, (struct sockaddr *)&a, sizeof a), ECONNREFUSED);
	/* It may try again, and is as new until then. */
	p.fd = fd;
	CHECK(poll(&p, 1, 0) == 1 && p.revents == (POLLOUT | POLLHUP));
	FAILS(recv(fd, &v, 1, 0), ENOTCONN);
	FAILS(connect(fd, (struct sockaddr *)&a, sizeof a), ECONNREFUSED);
	close(fd);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (connect(fd, (struct sockaddr *)&a, sizeof a) == -1 && errno == EINPROGRESS) {
		p.fd = fd;
		CHECK(poll(&p, 1, 2000) == 1 && p.revents == (POLLOUT | POLLERR | POLLHUP));
		CHECK(getsockopt(fd, SOL_SOCKET, SO_ERROR, &v, &n) == 0 && v == ECONNREFUSED);
	}
	close(fd);
	/* Not connected, never will be. */
	fd = socket(AF_INET, SOCK_STREAM, 0);
	FAILS(recv(fd, &v, 1, 0), ENOTCONN);
	FAILS(send(fd, &v, 1, MSG_NOSIGNAL), EPIPE);
	FAILS(shutdown(fd, SHUT_WR), ENOTCONN);
	p.fd = fd;
	CHECK(poll(&p, 1, 0) == 1 && p.revents == (POLLOUT | POLLHUP));
	close(fd);
	FAILS(close(fd), EBADF);
	FAILS(read(fd, &v, 1), EBADF);
}

static void *closer(void *fd)
{
	usleep(100000);
	shutdown(*(int *)fd, SHUT_RDWR);
	return NULL;
}

static void shut_by_another_thread(void)
{
	int fds[2], l = listening();
	char b;
	pthread_t t;
	pair(fds);
	pthread_create(&t, NULL, closer, &l);
	FAILS(accept(l, NULL, NULL), EINVAL);
	pthread_join(t, NULL);
	close(l);
	pthread_create(&t, NULL, closer, &fds[0]);
	CHECK(read(fds[0], &b, 1) == 0);
	pthread_join(t, NULL);
	CHECK(read(fds[1], &b, 1) == 0);
	close(fds[0]), close(fds[1]);
}

static void *copy(void *fds)
{
	static char b[30011];
	long n, got = 0;
	int *p = fds;
	while ((n = read(p[1], b, sizeof b)) > 0) {
		for (long i = 0; i < n; i++)
			if (b[i] != (char)((got + i) % 251))
				return (void *)-1;
		got += n;
	}
	return (void *)got;
}

static void files(void)
{
	static char data[300000];
	int fds[2];
	char name[] = "/tmp/libsilk-XXXXXX";
	int f = mkstemp(name);
	unlink(name);
	for (unsigned i = 0; i < sizeof data; i++)
		data[i] = i % 251;
	CHECK(write(f, data, sizeof data) == sizeof data);
	pair(fds);
	pthread_t t;
	void *got;
	pthread_create(&t, NULL, copy, fds);
	off_t from = 0;
	long sent = 0, n;
	/* More than there is: the end of the file ends it. */
	while ((n = sendfile(fds[0], f, &from, 1000000)) > 0)
		sent += n;
	CHECK(n == 0 && sent == sizeof data && from == sizeof data);
	shutdown(fds[0], SHUT_WR);
	pthread_join(t, &got);
	CHECK((long)got == sizeof data);
	close(f), close(fds[0]), close(fds[1]);
}

/* A file that is read past the cache, in whole blocks. What a peer makes room for is none, nor does it lie where one may. */
static void files_past_the_cache(void)
{
	static char data[300000], block[4096] __attribute__((aligned(4096)));
	char name[] = "/tmp/libsilk-XXXXXX", b;
	int fds[2], written = mkstemp(name), f = open(name, O_RDONLY | O_DIRECT);
	off_t from;
	unlink(name);
	for (unsigned i = 0; i < sizeof data; i++)
		data[i] = i % 251;
	CHECK(write(written, data, sizeof data) == sizeof data);
	close(written);
	/* Some file systems have no such files. */
	for (int stands = 0; f >= 0 && stands < 2; stands++) {
		pthread_t t;
		void *got;
		pair(fds);
		CHECK(write(fds[0], "x", 1) == 1 && read(fds[1], &b, 1) == 1);
		pthread_create(&t, NULL, copy, fds);
		from = 0;
		CHECK(sendfile(fds[0], f, stands ? NULL : &from, 1 << 20) == sizeof data);
		CHECK((stands ? lseek(f, 0, SEEK_CUR) : from) == sizeof data);
		shutdown(fds[0], SHUT_WR);
		pthread_join(t, &got);
		CHECK((long)got == sizeof data);
		close(fds[0]), close(fds[1]);
	}
	if (f < 0)
		return;
	/* From the middle of a block it goes where reading does. */
	pair(fds);
	from = 1;
	long read_so = pread(f, block, sizeof block, from);
	CHECK(sendfile(fds[0], f, &from, sizeof block) == read_so);
	CHECK(from == (read_so < 0 ? 1 : 1 + read_so));
	close(f), close(fds[0]), close(fds[1]);
}

int main(int argc, char **argv)
{
	begin(argc, argv);
	struct sigaction s = { .sa_handler = on_pipe, .sa_flags = SA_RESTART };
	sigaction(SIGPIPE, &s, NULL);
	names_and_states();
	ends();
	calls_that_do_not_wait();
	vectors_and_messages();
	signals();
	connecting();
	shut_by_another_thread();
	files();
	files_past_the_cache();
	return end();
}
