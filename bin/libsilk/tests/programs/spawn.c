/* Children that are made by posix_spawn. */
#include "check.h"
#include <spawn.h>

static char *bare[] = { "PATH=/usr/bin:/bin", NULL };

/* The child ends well, and so does the connection, of which it was the last holder. */
static void over(pid_t child, int peer)
{
	int status;
	char b;
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(read(peer, &b, 1) == 0);
	close(peer);
}

static void answers(int peer, const char *what)
{
	char got[256];
	size_t length = strlen(what);
	CHECK(recv(peer, got, length, MSG_WAITALL) == (ssize_t)length && !memcmp(got, what, length));
}

/* A child that sends back what it reads. */
static pid_t cat(int fd, int path)
{
	pid_t child;
	posix_spawn_file_actions_t actions;
	char *argv[] = { "cat", NULL };
	CHECK(!posix_spawn_file_actions_init(&actions));
	CHECK(!posix_spawn_file_actions_adddup2(&actions, fd, 0));
	CHECK(!posix_spawn_file_actions_adddup2(&actions, fd, 1));
	if (path)
		CHECK(!posix_spawnp(&child, "cat", &actions, NULL, argv, bare));
	else
		CHECK(!posix_spawn(&child, "/bin/cat", &actions, NULL, argv, bare));
	CHECK(!posix_spawn_file_actions_destroy(&actions));
	return child;
}

/* Standard input and output are sockets that the parent closes on exec. */
static void standard(int path)
{
	int fds[2];
	pair(fds);
	fcntl(fds[0], F_SETFD, FD_CLOEXEC), fcntl(fds[1], F_SETFD, FD_CLOEXEC);
	pid_t child = cat(fds[1], path);
	close(fds[1]);
	CHECK(write(fds[0], "there and back", 14) == 14);
	answers(fds[0], "there and back");
	shutdown(fds[0], SHUT_WR);
	over(child, fds[0]);
}

/* A socket that is not closed on exec, or is no more by a copy onto itself, is the child's under its number. */
static void inherited(int itself)
{
	int fds[2];
	pid_t child;
	char script[64], *argv[] = { "sh", "-c", script, NULL };
	posix_spawn_file_actions_t actions;
	pair(fds);
	fcntl(fds[0], F_SETFD, FD_CLOEXEC);
	snprintf(script, sizeof script, "cat <&%d", fds[1]);
	CHECK(!posix_spawn_file_actions_init(&actions));
	CHECK(!posix_spawn_file_actions_adddup2(&actions, fds[1], 1));
	if (itself) {
		fcntl(fds[1], F_SETFD, FD_CLOEXEC);
		CHECK(!posix_spawn_file_actions_adddup2(&actions, fds[1], fds[1]));
	}
	CHECK(!posix_spawnp(&child, "sh", &actions, NULL, argv, bare));
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	CHECK(write(fds[0], "kept", 4) == 4);
	answers(fds[0], "kept");
	shutdown(fds[0], SHUT_WR);
	over(child, fds[0]);
}

/* Files and folders. */
static void files(void)
{
	int fds[2], folder = open("/usr", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	pid_t child;
	char name[] = "/tmp/XXXXXX", *argv[] = { "sh", "-c", "pwd; cat <&7", NULL };
	int file = mkstemp(name);
	posix_spawn_file_actions_t actions;
	CHECK(write(file, "from a file\n", 12) == 12);
	close(file);
	pair(fds);
	CHECK(!posix_spawn_file_actions_init(&actions));
	CHECK(!posix_spawn_file_actions_addfchdir_np(&actions, folder));
	CHECK(!posix_spawn_file_actions_addchdir_np(&actions, "bin/.."));
	CHECK(!posix_spawn_file_actions_adddup2(&actions, fds[1], 1));
	CHECK(!posix_spawn_file_actions_addclose(&actions, fds[0]));
	CHECK(!posix_spawn_file_actions_addclose(&actions, 99));
	CHECK(!posix_spawn_file_actions_addclosefrom_np(&actions, 3));
	CHECK(!posix_spawn_file_actions_addopen(&actions, 7, name, O_RDONLY, 0));
	CHECK(!posix_spawnp(&child, "sh", &actions, NULL, argv, bare));
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]), close(folder);
	answers(fds[0], "/usr\nfrom a file\n");
	over(child, fds[0]);
	unlink(name);
}

/* Several threads do so at the same time. Nobody's child has anything of another's. */
static void *echoes(void *unused)
{
	for (int i = 0; i < 20; i++) {
		int l = listening(), fds[2];
		struct sockaddr_in a = at(port_of(l));
		fcntl(l, F_SETFD, FD_CLOEXEC);
		fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		CHECK(!connect(fds[0], (struct sockaddr *)&a, sizeof a));
		fds[1] = accept4(l, NULL, NULL, SOCK_CLOEXEC);
		close(l);
		pid_t child = cat(fds[1], 1);
		close(fds[1]);
		CHECK(write(fds[0], "back", 4) == 4);
		answers(fds[0], "back");
		shutdown(fds[0], SHUT_WR);
		over(child, fds[0]);
	}
	return unused;
}

static void at_once(void)
{
	pthread_t threads[3];
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, echoes, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

static void handler(int signal) { (void)signal; }

/* The signals of this kind in what /proc says. */
static unsigned long long signals(const char *status, const char *kind)
{
	const char *line = strstr(status, kind);
	return line ? strtoull(line + strlen(kind), NULL, 16) : 0;
}

static void attributes(void)
{
	int fds[2], length = 0, got, self = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	pid_t child;
	char own[8192], status[8192], *argv[] = { "cat", "/proc/self/status", NULL };
	sigset_t set, before;
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t asked;
	pair(fds);
	fcntl(fds[0], F_SETFD, FD_CLOEXEC);
	CHECK(!posix_spawn_file_actions_init(&actions) && !posix_spawnattr_init(&asked));
	CHECK(!posix_spawn_file_actions_adddup2(&actions, fds[1], 1));
	signal(SIGUSR1, SIG_IGN), signal(SIGUSR2, SIG_IGN), signal(SIGTERM, handler);
	sigemptyset(&set), sigaddset(&set, SIGUSR2);
	CHECK(!posix_spawnattr_setsigdefault(&asked, &set));
	sigemptyset(&set), sigaddset(&set, SIGHUP);
	CHECK(!posix_spawnattr_setsigmask(&asked, &set));
	CHECK(!posix_spawnattr_setpgroup(&asked, 0));
	CHECK(!posix_spawnattr_setflags(&asked,
					POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP));
	CHECK(!posix_spawnp(&child, "cat", &actions, &asked, argv, bare));
	CHECK(getpgid(child) == child);
	sigprocmask(SIG_SETMASK, NULL, &before);
	CHECK(!sigismember(&before, SIGHUP) && !sigismember(&before, SIGUSR1));
	posix_spawn_file_actions_destroy(&actions), posix_spawnattr_destroy(&asked);
	close(fds[1]);
	while ((got = read(fds[0], status + length, sizeof status - 1 - length)) > 0)
		length += got;
	status[length] = 0;
	CHECK(signals(status, "SigBlk:") == 1 << (SIGHUP - 1));
	/* Whoever started us may have ignored others. */
	own[read(self, own, sizeof own - 1)] = 0;
	close(self);
	CHECK(signals(own, "SigIgn:") & 1 << (SIGUSR2 - 1) && signals(own, "SigIgn:") & 1 << (SIGUSR1 - 1));
	CHECK(signals(status, "SigIgn:") == (signals(own, "SigIgn:") & ~(1ULL << (SIGUSR2 - 1))));
	CHECK((signals(status, "SigCgt:") & 1 << (SIGTERM - 1)) == 0);
	over(child, fds[0]);
	signal(SIGUSR1, SIG_DFL), signal(SIGUSR2, SIG_DFL), signal(SIGTERM, SIG_DFL);
}

/* What fails is said, leaves no child behind, and nothing is changed. */
static void failures_are_told(void)
{
	int fds[2];
	pid_t child;
	char *argv[] = { "true", NULL }, b;
	posix_spawn_file_actions_t actions;
	pair(fds);
	CHECK(posix_spawn(&child, "/nonexistent", NULL, NULL, argv, bare) == ENOENT);
	CHECK(posix_spawn(&child, "/etc/passwd", NULL, NULL, argv, bare) == EACCES);
	posix_spawn_file_actions_init(&actions);
	CHECK(!posix_spawn_file_actions_adddup2(&actions, 98, 0));
	CHECK(posix_spawn(&child, "/bin/true", &actions, NULL, argv, bare) == EBADF);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawn_file_actions_init(&actions);
	CHECK(!posix_spawn_file_actions_addopen(&actions, 0, "/nonexistent", O_RDONLY, 0));
	CHECK(posix_spawn(&child, "/bin/true", &actions, NULL, argv, bare) == ENOENT);
	posix_spawn_file_actions_destroy(&actions);
	/* The object is as new after that. */
	posix_spawn_file_actions_init(&actions);
	CHECK(posix_spawn(&child, "/bin/true", &actions, NULL, argv, bare) == 0);
	posix_spawn_file_actions_destroy(&actions);
	CHECK(waitpid(child, NULL, 0) == child);
	FAILS(waitpid(-1, NULL, 0), ECHILD);
	CHECK(write(fds[0], "x", 1) == 1 && recv(fds[1], &b, 1, 0) == 1);
	close(fds[0]);
	CHECK(read(fds[1], &b, 1) == 0);
	close(fds[1]);
}

int main(int argc, char **argv)
{
	begin(argc, argv);
	standard(0);
	standard(1);
	inherited(0);
	inherited(1);
	files();
	attributes();
	failures_are_told();
	at_once();
	return end();
}
