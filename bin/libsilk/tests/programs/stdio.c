/* Streams of stdio that are made of a socket. */
#include "check.h"
#include <stdarg.h>

static void lines(void)
{
	int fds[2];
	char line[64];
	pair(fds);
	FILE *one = fdopen(fds[0], "r+"), *in = fdopen(fds[1], "r"), *out = fdopen(dup(fds[1]), "w");
	CHECK(one && in && out);
	CHECK(fileno(one) == fds[0] && fileno(in) == fds[1] && fileno_unlocked(in) == fds[1]);
	CHECK(fileno(out) != fds[1] && fileno(out) > 2 && fileno(stderr) == 2);
	CHECK(fprintf(one, "%s %d\n", "hello", 42) == 9 && fflush(one) == 0);
	CHECK(fgets(line, sizeof line, in) && !strcmp(line, "hello 42\n"));
	CHECK(fputs("first\nsecond\n", out) >= 0 && fflush(out) == 0);
	CHECK(fgets(line, sizeof line, one) && !strcmp(line, "first\n"));
	CHECK(fgetc(one) == 's' && ungetc('S', one) == 'S');
	CHECK(fgets(line, sizeof line, one) && !strcmp(line, "Second\n"));
	CHECK(fseek(one, 0, SEEK_SET) == -1 && errno == ESPIPE);
	CHECK(fclose(out) == 0);
	CHECK(shutdown(fileno(in), SHUT_WR) == 0);
	CHECK(fgetc(one) == EOF && feof(one) && !ferror(one));
	clearerr(one);
	CHECK(fclose(one) == 0);
	CHECK(fgetc(in) == EOF && feof(in));
	CHECK(fclose(in) == 0);
	FAILS(read(fds[0], line, 1), EBADF);
	FAILS(read(fds[1], line, 1), EBADF);
}

static int formatted(int fd, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	int count = vdprintf(fd, format, arguments);
	va_end(arguments);
	return count;
}

/* Text that is formatted for a descriptor. */
static void straight(void)
{
	int fds[2];
	char got[64], *name = "/tmp/XXXXXX";
	pair(fds);
	CHECK(dprintf(fds[0], "%s %d %.2f %c", "one", 2, 3.25, '4') == 12);
	CHECK(recv(fds[1], got, 12, MSG_WAITALL) == 12 && !memcmp(got, "one 2 3.25 4", 12));
	/* More than the registers hold of both sorts. */
	CHECK(dprintf(fds[0], "%d%d%d%d%d%d%d%d %g %g %g %g %g %g %g %g %g %s", 1, 2, 3, 4, 5, 6, 7, 8,
		      1., 2., 3., 4., 5., 6., 7., 8., 9.5, "end") == 32);
	CHECK(recv(fds[1], got, 32, MSG_WAITALL) == 32 && !memcmp(got, "12345678 1 2 3 4 5 6 7 8 9.5 end", 32));
	CHECK(formatted(fds[0], "%s-%g", "list", .5) == 8);
	CHECK(recv(fds[1], got, 8, MSG_WAITALL) == 8 && !memcmp(got, "list-0.5", 8));
	/* By its address it is the one without a check. */
	int (*volatile plain)(int, const char *, ...) = dprintf;
	CHECK(plain(fds[0], "%d %.1f", -7, 2.5) == 6 && recv(fds[1], got, 6, MSG_WAITALL) == 6);
	CHECK(!memcmp(got, "-7 2.5", 6));
	CHECK(dprintf(fds[0], "%s", "") == 0);
	close(fds[1]);
	close(fds[0]);
	FAILS(dprintf(fds[0], "x"), EBADF);
	char path[16];
	strcpy(path, name);
	int file = mkstemp(path);
	CHECK(file >= 0 && unlink(path) == 0 && dprintf(file, "%d", 77) == 2);
	CHECK(pread(file, got, 64, 0) == 2 && !memcmp(got, "77", 2) && close(file) == 0);
}

static void much(void)
{
	static char sent[300000], got[300000];
	int fds[2], status;
	pair(fds);
	for (unsigned i = 0; i < sizeof sent; i++)
		sent[i] = i * 7 + i / 251;
	fflush(NULL);
	pid_t child = fork();
	if (!child) {
		close(fds[0]);
		FILE *out = fdopen(fds[1], "w");
		_exit(fwrite(sent, 1, sizeof sent, out) != sizeof sent || fclose(out));
	}
	close(fds[1]);
	FILE *in = fdopen(fds[0], "r");
	CHECK(fread(got, 1, sizeof got, in) == sizeof got && !memcmp(got, sent, sizeof got));
	CHECK(fgetc(in) == EOF && fclose(in) == 0);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void faults(void)
{
	int fds[2], flags;
	char c;
	pair(fds);
	FILE *in = fdopen(fds[0], "r");
	flags = fcntl(fds[0], F_GETFL);
	CHECK(fcntl(fileno(in), F_SETFL, flags | O_NONBLOCK) == 0);
	errno = 0;
	CHECK(fgetc(in) == EOF && ferror(in) && !feof(in));
	clearerr(in);
	CHECK(write(fds[1], "x", 1) == 1);
	settle();
	CHECK(fread(&c, 1, 1, in) == 1 && c == 'x');
	FILE *out = fdopen(fds[1], "w");
	signal(SIGPIPE, SIG_IGN);
	CHECK(shutdown(fileno(out), SHUT_WR) == 0);
	CHECK(fputc('y', out) == 'y' && !ferror(out));
	CHECK(fflush(out) == EOF && errno == EPIPE && ferror(out));
	CHECK(fclose(in) == 0);
	(void)fclose(out);
	FAILS(close(fds[1]), EBADF);
	/* A stream that is none of a socket is as it was, also at an address that one had. */
	FILE *file = tmpfile();
	CHECK(file && fileno(file) > 2 && fputs("file", file) >= 0 && fflush(file) == 0);
	CHECK(lseek(fileno(file), 0, SEEK_CUR) == 4 && fclose(file) == 0);
	CHECK(!fdopen(-1, "r") && errno == EBADF);
}

/* Answers its peer as a program does that inetd starts. */
static int served(void)
{
	char line[64];
	if (!fgets(line, sizeof line, stdin))
		return 3;
	fprintf(stderr, "got ");
	printf("%s", line);
	puts("bye");
	/* The C library writes the rest when the program ends. */
	return 0;
}

static void converses(int fd, pid_t child)
{
	int status;
	char line[64];
	FILE *peer = fdopen(fd, "r+");
	CHECK(fputs("hello\n", peer) >= 0 && fflush(peer) == 0);
	CHECK(fgets(line, sizeof line, peer) && !strcmp(line, "got hello\n"));
	CHECK(fgets(line, sizeof line, peer) && !strcmp(line, "bye\n"));
	CHECK(!fgets(line, sizeof line, peer) && feof(peer));
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(fclose(peer) == 0);
}

static void standard(char *self, int exec)
{
	int fds[2];
	pair(fds);
	fflush(NULL);
	pid_t child = fork();
	if (!child) {
		if (dup2(fds[1], 0) != 0 || dup2(fds[1], 1) != 1 || dup2(fds[1], 2) != 2)
			_exit(4);
		close(fds[0]), close(fds[1]);
		if (exec)
			execl(self, self, host, "served", NULL);
		exit(exec ? 5 : served());
	}
	close(fds[1]);
	converses(fds[0], child);
}

/* Ways by which a socket gets a number because it is the lowest free one. */
enum way { DUP, DUPFD, DUPFD_CLOEXEC, ACCEPT, SOCKET, WAYS };

/* Whether `number` becomes a socket's in this way, as a copy of `fd` where it is one. */
static int arrives(enum way way, int number, int fd, int listener)
{
	struct sockaddr_in a = at(port_of(listener));
	close(number);
	switch (way) {
	case DUP:
		return dup(fd) == number;
	case DUPFD:
		return fcntl(fd, F_DUPFD, 0) == number;
	case DUPFD_CLOEXEC:
		return fcntl(fd, F_DUPFD_CLOEXEC, number) == number;
	case ACCEPT:
		return accept(listener, NULL, NULL) == number;
	default:
		return socket(AF_INET, SOCK_STREAM, 0) == number && !connect(number, (struct sockaddr *)&a, sizeof a);
	}
}

/* One stream after the other takes the free number, the first of them (any of the three) by the way asked for. */
static void lowest(enum way way, int first)
{
	int listener = listening();
	fflush(NULL);
	pid_t child = fork();
	if (!child) {
		int fd = way < ACCEPT ? connected(listener) : first;
		if (!arrives(way, first, fd, listener))
			_exit(4);
		for (int n = 0; n < 3; n++)
			if (n != first && !arrives(way < ACCEPT ? way : DUP, n, fd, listener))
				_exit(5);
		close(listener);
		if (fd > 2)
			close(fd);
		exit(served());
	}
	int fd = way == ACCEPT ? connected(listener) : accept(listener, NULL, NULL);
	close(listener);
	converses(fd, child);
}

/* What descriptor 2 is while something is refused, of which a library might want to speak. */
static void refused(const char *name, int stream)
{
	int listener = listening(), status;
	struct sockaddr_in a = at(port_of(listener));
	fflush(NULL);
	pid_t child = fork();
	if (!child) {
		int broken[2];
		signal(SIGPIPE, SIG_DFL);
		if (stream >= 0) {
			if (dup2(stream, 2) != 2)
				_exit(3);
		} else if (name) {
			/* A file of the program's own that gets the number because it is free. */
			close(2);
			if (open(name, O_WRONLY) != 2)
				_exit(4);
		} else if (pipe(broken) || close(broken[0]) || dup2(broken[1], 2) != 2) {
			_exit(5);
		}
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		if (bind(fd, (struct sockaddr *)&a, sizeof a) != -1 || errno != EADDRINUSE)
			_exit(6);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	close(listener);
}

static void silent(void)
{
	int fds[2];
	char name[] = "/tmp/XXXXXX", got[64];
	int file = mkstemp(name);
	refused(name, -1);
	CHECK(file >= 0 && lseek(file, 0, SEEK_END) == 0);
	close(file), unlink(name);
	refused(NULL, -1);
	pair(fds);
	refused(NULL, fds[1]);
	FAILS(recv(fds[0], got, sizeof got, MSG_DONTWAIT), EAGAIN);
	close(fds[0]), close(fds[1]);
}

int main(int argc, char **argv)
{
	if (argc > 2)
		return served();
	begin(argc, argv);
	standard(argv[0], 0);
	standard(argv[0], 1);
	for (enum way way = 0; way < WAYS; way++)
		for (int first = 0; first < 3; first++)
			lowest(way, first);
	lines();
	straight();
	much();
	faults();
	silent();
	return end();
}
