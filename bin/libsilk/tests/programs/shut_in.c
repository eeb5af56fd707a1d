/* Programs that shut themselves in (seccomp(2)) when they have their sockets, as chronyd does: what they may do from then on is what they
 * do with those, and neither to make an eventfd nor to move a descriptor to a high number. They die of either. */
#include "check.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static int by_prctl(struct sock_fprog *program)
{
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program);
}

static int by_syscall_prctl(struct sock_fprog *program)
{
	return syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0);
}

/* As libseccomp does it. */
static int by_syscall(struct sock_fprog *program)
{
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, program);
}

static int shut_in(int (*way)(struct sock_fprog *))
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_eventfd2, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_DUPFD_CLOEXEC, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof code / sizeof *code, code };
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || way(&program);
}

static int ends[2], start[2];

static void *writes(void *unused)
{
	char b;
	(void)unused;
	CHECK(read(start[0], &b, 1) == 1);
	usleep(50000);
	CHECK(write(ends[1], "x", 1) == 1);
	return NULL;
}

/* Waits for a socket beside a pipe, twice. */
static void waits(int (*way)(struct sock_fprog *))
{
	pthread_t thread;
	char b;
	int pipes[2];
	pair(ends);
	CHECK(pipe(start) == 0 && pipe(pipes) == 0);
	CHECK(pthread_create(&thread, NULL, writes, NULL) == 0);
	CHECK(shut_in(way) == 0);
	struct pollfd both[2] = { { pipes[0], POLLIN, 0 }, { ends[0], POLLIN, 0 } };
	CHECK(poll(both, 2, 1) == 0);
	CHECK(write(start[1], "s", 1) == 1);
	CHECK(poll(both, 2, 10000) == 1 && both[1].revents == POLLIN && both[0].revents == 0);
	CHECK(read(ends[0], &b, 1) == 1);
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	int (*ways[])(struct sock_fprog *) = { by_prctl, by_syscall_prctl, by_syscall };
	begin(argc, argv);
	for (int way = 0; way < 3; way++) {
		int status;
		fflush(NULL);
		if (fork() == 0) {
			waits(ways[way]);
			_exit(failures != 0);
		}
		CHECK(wait(&status) > 0 && status == 0);
	}
	return end();
}
