/* A filter of system calls that does not know futex_waitv(2), as those of containers did for long: whoever waits waits,
 * and does not ask again and again. */
#include "check.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

enum { FUTEX_WAITV = 449 };

static volatile sig_atomic_t refused, handled;

/* Refuses, and counts. */
static void refuse(int signal, siginfo_t *info, void *context)
{
	ucontext_t *of = context;
	(void)signal, (void)info;
	refused++;
#ifdef __x86_64__
	of->uc_mcontext.gregs[REG_RAX] = -EPERM;
#else
	of->uc_mcontext.regs[0] = -EPERM;
#endif
}

static void filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FUTEX_WAITV, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof code / sizeof *code, code };
	struct sigaction action = { .sa_sigaction = refuse, .sa_flags = SA_SIGINFO | SA_RESTART };
	CHECK(sigaction(SIGSYS, &action, NULL) == 0);
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static void on_signal(int signal) { (void)signal, handled++; }

static void handles(int signal, int flags)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = flags };
	sigaction(signal, &action, NULL);
}

static int one[2], other[2];

static void *writes(void *to)
{
	usleep(80000);
	return (void *)write(*(int *)to, "x", 1);
}

static void *signals(void *thread)
{
	usleep(80000);
	return (void *)(long)pthread_kill(*(pthread_t *)thread, SIGUSR1);
}

static void later(void *(*what)(void *), void *with, pthread_t *thread)
{
	sigset_t all, before;
	sigfillset(&all), sigdelset(&all, SIGSYS);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	pthread_create(thread, NULL, what, with);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int main(int argc, char **argv)
{
	pthread_t thread, self = pthread_self();
	char b;
	begin(argc, argv);
	pair(one), pair(other);
	struct pollfd both[2] = { { one[0], POLLIN, 0 }, { other[0], POLLIN, 0 } };
	filter();
	/* Several sockets, and no handler whose kind matters. */
	signal(SIGSYS, SIG_DFL);
	struct sigaction action = { .sa_sigaction = refuse, .sa_flags = SA_SIGINFO };
	sigaction(SIGSYS, &action, NULL);
	later(writes, &other[1], &thread);
	CHECK(poll(both, 2, 5000) == 1 && both[1].revents == POLLIN);
	pthread_join(thread, NULL);
	CHECK(read(other[0], &b, 1) == 1);
	CHECK(poll(both, 2, 50) == 0);
	/* One, and a handler that ends the call. */
	handles(SIGUSR1, 0);
	later(writes, &one[1], &thread);
	CHECK(read(one[0], &b, 1) == 1 && handled == 0);
	pthread_join(thread, NULL);
	later(signals, &self, &thread);
	FAILS(read(one[0], &b, 1), EINTR);
	pthread_join(thread, NULL);
	CHECK(handled == 1);
	CHECK(refused < 20);
	return end();
}
