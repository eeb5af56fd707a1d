/* Threads that use a descriptor while another thread changes what it is. */
#include "check.h"

static int number, over;

/* Writes all the time; how often it went wrong. */
static void *writes(void *unused)
{
	(void)unused;
	long wrong = 0;
	while (!__atomic_load_n(&over, __ATOMIC_SEQ_CST))
		wrong += send(number, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN;
	return (void *)wrong;
}

/* `dup2` closes the one and opens the other at one moment. */
static void replaced(void)
{
	int one[2], two[2], file = open("/dev/null", O_RDONLY);
	void *wrong;
	pthread_t t;
	char b[4096];
	pair(one), pair(two);
	number = dup(one[0]);
	pthread_create(&t, NULL, writes, NULL);
	for (int n = 0; n < 20000; n++) {
		CHECK(dup2(n % 2 ? one[0] : two[0], number) == number);
		recv(n % 2 ? one[1] : two[1], b, sizeof b, MSG_DONTWAIT);
	}
	__atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
	pthread_join(t, &wrong);
	CHECK(wrong == NULL);
	/* What cannot be done changes nothing. */
	FAILS(dup3(two[0], number, O_APPEND), EINVAL);
	FAILS(dup3(file, number, O_APPEND), EINVAL);
	CHECK(send(number, "y", 1, MSG_NOSIGNAL) == 1);
	for (int i = 0; i < 2; i++)
		close(one[i]), close(two[i]);
	close(number), close(file);
}

int main(int argc, char **argv)
{
	begin(argc, argv);
	replaced();
	return end();
}
