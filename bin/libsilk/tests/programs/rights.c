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

int main(int argc, char **argv)
{
	char *door = getenv("SILK_SOCKET");
	begin(argc, argv);
	if (argc == 2) {
		CHECK(setuid(getuid()) == 0);
		CHECK(!door || unlink(door) == 0);
		speak();
		char *again[] = { argv[0], argv[1], "executed", NULL };
		execv("/proc/self/exe", again);
		CHECK(!"executed");
	} else if (fork() == 0) {
		speak();
		_exit(failures != 0);
	} else {
		int status;
		speak();
		CHECK(wait(&status) > 0 && status == 0);
	}
	return end();
}
