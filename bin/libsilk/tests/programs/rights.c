/* A program that gives up the way to the daemon, by giving up rights or otherwise, before it makes its first socket, and one that is executed
 * after that. */
#include "check.h"

static void speak(void)
{
	int fds[2];
	char b[8];
	pair(fds);
	CHECK(write(fds[0], "a", 1) == 1 && recv(fds[1], b, 1, 0) == 1);
	CHECK(write(fds[1], "b", 1) == 1 && recv(fds[0], b, 1, 0) == 1);
	close(fds[0]), close(fds[1]);
}

/* In a child too, which has no more rights than its parent. */
static void child_speaks(void)
{
	int status;
	fflush(NULL);
	if (fork() == 0) {
		speak();
		_exit(failures != 0);
	}
	CHECK(wait(&status) > 0 && status == 0);
}

static void become(char **argv, char *what)
{
	char *again[] = { argv[0], argv[1], what, NULL };
	fflush(NULL);
	execv("/proc/self/exe", again);
	CHECK(!"executed");
}

int main(int argc, char **argv)
{
	char *door = getenv("SILK_SOCKET");
	begin(argc, argv);
	if (argc == 2) {
		CHECK(setuid(getuid()) == 0);
		CHECK(!door || unlink(door) == 0);
		child_speaks();
		if (!failures)
			become(argv, "executed");
	} else if (!strcmp(argv[2], "executed")) {
		speak();
		child_speaks();
		if (!failures)
			become(argv, "stranger");
	} else {
		/* Whoever had sockets does not let what it executes into the family, which says so. */
		dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
		struct sockaddr_in a = at(0);
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		CHECK((bind(fd, (struct sockaddr *)&a, sizeof a) == 0) == !door);
	}
	return end();
}
