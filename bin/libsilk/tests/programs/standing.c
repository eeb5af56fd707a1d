/* Streams of stdio that stay the streams they were: standard ones whose number becomes a socket's, and those that
 * are opened anew. */
#include "check.h"
#include <stdio_ext.h>

static char name[] = "/tmp/XXXXXX";

/* What is in the file, which is empty afterwards. */
static int holds(const char *text)
{
	char got[256] = "";
	int fd = open(name, O_RDONLY);
	ssize_t count = read(fd, got, sizeof got - 1);
	close(fd);
	return count == (ssize_t)strlen(text) && !strcmp(got, text) && !truncate(name, 0);
}

/* What has come, and nothing behind it. */
static int comes(int fd, const char *text)
{
	char got[256] = "";
	ssize_t count = strlen(text);
	if (count && recv(fd, got, count, MSG_WAITALL) != count)
		return 0;
	settle();
	return !strcmp(got, text) && recv(fd, got, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN;
}

/* Each in a process of its own, with a pair of sockets. */
static void apart(void (*one)(int *))
{
	int fds[2], status;
	pair(fds);
	fflush(NULL);
	pid_t child = fork();
	if (!child) {
		failures = 0;
		one(fds);
		_exit(failures);
	}
	close(fds[0]), close(fds[1]);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void opened_anew(int *fds)
{
	char got[8];
	FILE *out = fdopen(fds[1], "w");
	CHECK(fputs("last", out) >= 0);
	FILE *file = freopen(name, "w", out);
	CHECK(file && fileno(file) == fds[1]);
	FAILS(send(fds[1], "x", 1, 0), ENOTSOCK);
	/* What was written, and the end. */
	CHECK(recv(fds[0], got, sizeof got, MSG_WAITALL) == 4 && !memcmp(got, "last", 4));
	CHECK(fputs("text", file) >= 0 && ftell(file) == 4 && fflush(file) == 0 && holds("text"));
	/* It is the stream that it was. */
	CHECK(fileno(out) == fds[1] && fputs("more", out) >= 0 && fflush(out) == 0);
	CHECK((file = freopen64("/dev/null", "r", file)) && fileno(file) == fds[1] && fgetc(file) == EOF);
	CHECK(fclose(file) == 0);
	FAILS(fcntl(fds[1], F_GETFD), EBADF);
}

/* Nothing can be opened: the descriptor is gone all the same. */
static void in_vain(int *fds)
{
	FILE *one = fdopen(fds[0], "r+"), *other = fdopen(fds[1], "r+");
	CHECK(!freopen("/nowhere/at/all", "r", one));
	FAILS(fcntl(fds[0], F_GETFD), EBADF);
	FAILS(fileno(one), EBADF);
	/* A socket cannot be opened by its name. */
	CHECK(!freopen(NULL, "r+", other));
	FAILS(fcntl(fds[1], F_GETFD), EBADF);
	CHECK((one = freopen("/dev/null", "r", one)) && fgetc(one) == EOF);
}

static void standard_opened_anew(int *fds)
{
	int before = open(name, O_WRONLY | O_APPEND);
	CHECK(dup2(fds[1], 1) == 1 && printf("last") == 4);
	FILE *kept = stdout;
	CHECK(freopen(name, "w", stdout) == stdout && fileno(stdout) == 1);
	CHECK(comes(fds[0], "last"));
	CHECK(printf("text") == 4 && fflush(stdout) == 0 && holds("text"));
	CHECK(freopen(name, "a", stdout) == stdout && fputs("kept", kept) >= 0 && fflush(kept) == 0 && holds("kept"));
	/* To and fro. */
	CHECK(dup2(fds[1], 1) == 1 && printf("again") == 5 && fflush(stdout) == 0 && comes(fds[0], "again"));
	CHECK(dup2(before, 1) == 1 && freopen(NULL, "a", stdout) == stdout && fileno(stdout) == 1);
	CHECK(printf("file") == 4 && fflush(stdout) == 0 && holds("file"));
	/* After its number was closed. */
	CHECK(dup2(fds[1], 1) == 1 && close(1) == 0);
	CHECK(freopen64(name, "w", stdout) == stdout && fileno(stdout) == 1);
	CHECK(printf("text") == 4 && fflush(stdout) == 0 && holds("text"));
	CHECK(dup2(fds[1], 0) == 0 && freopen("/dev/null", "r", stdin) == stdin && fileno(stdin) == 0);
	CHECK(getchar() == EOF && feof(stdin));
}

static void keeps_lines(int *fds)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	CHECK(dup2(fds[1], 1) == 1 && __flbf(stdout));
	CHECK(printf("line\nand ") == 9 && comes(fds[0], "line\n"));
	CHECK(puts("more") >= 0 && comes(fds[0], "and more\n"));
}

static void keeps_unbuffered(int *fds)
{
	char c;
	setvbuf(stdout, NULL, _IONBF, 0);
	setvbuf(stdin, NULL, _IONBF, 0);
	CHECK(dup2(fds[1], 0) == 0 && dup2(fds[1], 1) == 1);
	CHECK(printf("at once") == 7 && comes(fds[0], "at once"));
	/* What is not asked for is left to others. */
	CHECK(send(fds[0], "ab", 2, 0) == 2 && getchar() == 'a');
	CHECK(read(0, &c, 1) == 1 && c == 'b');
}

static void keeps_buffered(int *fds)
{
	static char large[50000], text[40000], got[40000];
	memset(text, 't', sizeof text);
	/* Standard error, which is not buffered unless that was asked for. */
	setvbuf(stderr, NULL, _IOFBF, 0);
	int before = dup(2);
	dup2(fds[1], 2);
	fputs("later", stderr);
	int none = comes(fds[0], "");
	fflush(stderr);
	int came = comes(fds[0], "later");
	dup2(before, 2);
	CHECK(none && came);
	setvbuf(stdout, large, _IOFBF, sizeof large);
	CHECK(fwrite(text, 1, sizeof text, stdout) == sizeof text && dup2(fds[1], 1) == 1);
	CHECK(__fpending(stdout) == sizeof text && __fbufsize(stdout) == sizeof large && comes(fds[0], ""));
	CHECK(fflush(stdout) == 0 && recv(fds[0], got, sizeof got, MSG_WAITALL) == sizeof got);
	CHECK(!memcmp(got, text, sizeof got) && fclose(stdout) == 0);
	fflush(stderr);
}

static void keeps_what_was_written(int *fds)
{
	CHECK(printf("before ") == 7 && dup2(fds[1], 1) == 1 && comes(fds[0], ""));
	CHECK(printf("after") == 5 && fflush(stdout) == 0 && comes(fds[0], "before after"));
}

static void keeps_what_was_read(int *fds)
{
	char line[64];
	int ends[2];
	CHECK(pipe(ends) == 0 && write(ends[1], "one\ntwo\nthree\n", 14) == 14 && dup2(ends[0], 0) == 0);
	CHECK(fgets(line, sizeof line, stdin) && !strcmp(line, "one\n") && ungetc('>', stdin) == '>');
	CHECK(dup2(fds[1], 0) == 0 && send(fds[0], "four\n", 5, 0) == 5);
	CHECK(fgets(line, sizeof line, stdin) && !strcmp(line, ">two\n"));
	CHECK(fgets(line, sizeof line, stdin) && !strcmp(line, "three\n"));
	CHECK(fgets(line, sizeof line, stdin) && !strcmp(line, "four\n"));
}

int main(int argc, char **argv)
{
	begin(argc, argv);
	int file = mkstemp(name);
	CHECK(file >= 0 && close(file) == 0);
	apart(opened_anew);
	apart(in_vain);
	apart(standard_opened_anew);
	apart(keeps_lines);
	apart(keeps_unbuffered);
	apart(keeps_buffered);
	apart(keeps_what_was_written);
	apart(keeps_what_was_read);
	unlink(name);
	return end();
}
