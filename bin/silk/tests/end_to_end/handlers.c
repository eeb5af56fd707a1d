/* What handlers of signals and cancelled threads do to sockets: handlers WHAT. Each ends; who waits for ever is killed by
 * its test. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SOCKETS = 300 };

static int sockets[SOCKETS], set;
static volatile sig_atomic_t closed;

/* A listening socket, which silk serves, and whose event set has a bell. */
static int listening(void) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    listen(fd, 5);
    return fd;
}

static void watch_all(void) {
    set = epoll_create1(EPOLL_CLOEXEC);
    for (int n = 0; n < SOCKETS; n++) {
        struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT};
        sockets[n] = n % 8 ? socket(AF_INET, SOCK_STREAM, 0) : listening();
        epoll_ctl(set, EPOLL_CTL_ADD, sockets[n], &event);
    }
}

/* Closes the next, and has another by the same number at once. */
static void close_next(int signal) {
    (void)signal;
    if (closed < SOCKETS) {
        close(sockets[closed]);
        sockets[closed] = socket(AF_INET, SOCK_STREAM, 0);
        closed++;
    }
}

static void every(int microseconds, void (*handler)(int)) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct itimerval time = {{0, microseconds}, {0, microseconds}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &time, NULL);
}

static void watching(void) {
    struct epoll_event events[8];
    watch_all();
    every(2000, close_next);
    while (closed < SOCKETS)
        epoll_wait(set, events, 8, 0);
}

static void forking(void) {
    watch_all();
    every(1000, close_next);
    while (closed < SOCKETS) {
        pid_t child = fork();
        if (!child)
            _exit(0);
        while (waitpid(child, NULL, 0) < 0)
            ;
    }
}

/* Of a cancelled thread: it ends where it closes. */
static void *close_one(void *nothing) {
    int fd = listening();
    sleep(1);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    close(fd);
    puts("not cancelled");
    return nothing;
}

static void *begin(void *what) {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    return close_one(what);
}

static void cancelling(void) {
    pthread_t thread;
    void *end;
    pthread_create(&thread, NULL, begin, NULL);
    usleep(300000);
    pthread_cancel(thread);
    pthread_join(thread, &end);
    puts(end == PTHREAD_CANCELED ? "cancelled" : "not cancelled");
    pid_t child = fork();
    if (!child)
        _exit(0);
    waitpid(child, NULL, 0);
}

static void poll_too(int signal) {
    struct pollfd mixed[2] = {{.fd = sockets[0], .events = POLLIN}, {.fd = sockets[1], .events = POLLIN}};
    (void)signal;
    poll(mixed, 2, 1);
    closed++;
}

static void polling(void) {
    int ends[2];
    if (pipe(ends))
        return;
    sockets[0] = listening();
    sockets[1] = ends[0];
    every(3000, poll_too);
    while (closed < 100) {
        struct pollfd mixed[2] = {{.fd = sockets[0], .events = POLLIN}, {.fd = sockets[1], .events = POLLIN}};
        poll(mixed, 2, 50);
    }
}

typedef void (*handler)(int);
/* What `signal` is to a program that is compiled for POSIX alone. */
extern handler __sysv_signal(int, handler);

static void nothing(int signal) {
    (void)signal;
}

static void interrupted(void) {
    int fd = listening();
    __sysv_signal(SIGUSR1, nothing);
    if (!fork()) {
        usleep(500000);
        kill(getppid(), SIGUSR1);
        _exit(0);
    }
    puts(accept(fd, NULL, NULL) < 0 && errno == EINTR ? "interrupted" : "not interrupted");
    wait(NULL);
}

int main(int count, char **given) {
    static const struct {
        const char *name;
        void (*does)(void);
    } all[] = {{"watching", watching}, {"forking", forking}, {"cancelling", cancelling}, {"polling", polling}, {"interrupted", interrupted}};
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t n = 0; count == 2 && n < sizeof all / sizeof *all; n++)
        if (!strcmp(all[n].name, given[1]))
            all[n].does();
    puts("ended");
    fflush(stdout);
    _exit(0);
}
