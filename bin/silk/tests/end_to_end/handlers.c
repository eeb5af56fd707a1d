/* What handlers of signals and cancelled threads do to sockets: handlers WHAT. Each ends; who waits for ever is killed by
 * its test. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
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

static int on_stack;

static void every(int microseconds, void (*handler)(int)) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART | on_stack};
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

/* The program's memory is the C library's, with a word of who asks for it while a handler runs. */
static volatile sig_atomic_t in_handler, asked;
void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t), *__libc_memalign(size_t, size_t);
void __libc_free(void *);

void *malloc(size_t size) { return asked += in_handler, __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return asked += in_handler, __libc_calloc(count, size); }
void *realloc(void *at, size_t size) { return asked += in_handler, __libc_realloc(at, size); }
void *aligned_alloc(size_t to, size_t size) { return asked += in_handler, __libc_memalign(to, size); }
int posix_memalign(void **at, size_t to, size_t size) { return asked += in_handler, !(*at = __libc_memalign(to, size)); }
void free(void *at) { asked += in_handler && at, __libc_free(at); }

/* What POSIX lets it do in the middle of its thread's malloc, of which it may not have anything then. */
static void do_all(int signal) {
    (void)signal;
    struct sockaddr_in name;
    socklen_t length = sizeof name;
    char octets[4];
    in_handler = 1;
    int fd = socket(AF_INET, SOCK_STREAM, 0), to, copy = dup(sockets[0]);
    getsockname(sockets[0], (struct sockaddr *)&name, &length);
    connect(fd, (struct sockaddr *)&name, sizeof name);
    to = accept(sockets[0], NULL, NULL);
    struct pollfd mixed[3] = {{.fd = fd, .events = POLLIN}, {.fd = to, .events = POLLIN}, {.fd = sockets[1], .events = POLLIN}};
    poll(mixed, 2, 1);
    poll(mixed, 3, 1);
    fd_set set;
    struct timeval soon = {0, 1000};
    FD_ZERO(&set);
    FD_SET(fd, &set);
    select(fd + 1, &set, NULL, NULL, &soon);
    send(fd, "text", 4, 0);
    recv(to, octets, sizeof octets, MSG_WAITALL);
    shutdown(fd, SHUT_WR);
    execl("/no such program", "none", NULL);
    int before = asked;
    pid_t child = fork();
    if (!child) {
        close(fd);
        if (asked > before)
            puts("the child asks for memory");
        _exit(0);
    }
    waitpid(child, NULL, 0);
    close(fd);
    close(to);
    close(copy);
    in_handler = 0;
}

static void allocating(void) {
    int ends[2];
    if (pipe(ends))
        return;
    sockets[0] = listening();
    sockets[1] = ends[0];
    signal(SIGALRM, do_all);
    raise(SIGALRM);
    /* A thread's first wait and its first accept are noted once. */
    asked = 0;
    raise(SIGALRM);
    if (asked)
        printf("%d times\n", (int)asked);
}

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

/* A connection whose one end silk serves, and whose other end is another process's, which does `other` to it and says so. */
static int served(pid_t *child, void (*other)(int)) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, own;
    socklen_t len = sizeof own;
    int waiting = listening();
    getsockname(waiting, (struct sockaddr *)&own, &len);
    to.sin_port = own.sin_port;
    *child = fork();
    if (!*child) {
        close(waiting);
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
            other(fd);
        _exit(0);
    }
    int fd = accept(waiting, NULL, NULL);
    close(waiting);
    return fd;
}

/* Messages of two kinds, of which a handler sends one: each is whole. */
/* As long as they are whole in the smallest room for which a writer waits. */
enum { LONG = 3000, SHORT = 30, MESSAGES = 50000 };

/* How many messages of each kind come, and how many octets that are of the other. */
static void read_messages(int fd, long lengths[2], long *mixed) {
    static char message[LONG];
    char kind;
    while (recv(fd, &kind, 1, 0) == 1) {
        ssize_t len = (kind == 'L' ? LONG : SHORT) - 1;
        if (recv(fd, message, len, MSG_WAITALL) != len)
            break;
        for (ssize_t n = 0; n < len; n++)
            *mixed += message[n] != kind;
        lengths[kind == 'L']++;
    }
}

static void check_messages(int fd) {
    long lengths[2] = {0, 0}, mixed = 0;
    read_messages(fd, lengths, &mixed);
    printf("%s, %s, %s\n", lengths[1] == MESSAGES ? "all" : "not all", lengths[0] > 0 ? "both" : "one", mixed ? "mixed" : "whole");
}

static int in_common;

static void send_too(int signal) {
    char message[SHORT];
    (void)signal;
    memset(message, 'S', SHORT);
    send(in_common, message, SHORT, MSG_DONTWAIT);
}

static void send_messages(void (*meanwhile)(int)) {
    static char message[LONG];
    memset(message, 'L', LONG);
    every(37, meanwhile);
    for (int n = 0; n < MESSAGES; n++)
        if (send(in_common, message, LONG, 0) != LONG)
            puts("short");
    every(0, nothing);
}

static void send_beside(void (*meanwhile)(int)) {
    pid_t child;
    in_common = served(&child, check_messages);
    send_messages(meanwhile);
    close(in_common);
    waitpid(child, NULL, 0);
}

static void sending(void) { send_beside(send_too); }

/* A handler that jumps within itself, in the middle of what its thread sends: all of that is sent. */
static void jump_within(int signal) {
    sigjmp_buf within;
    (void)signal;
    if (sigsetjmp(within, 0) == 0)
        siglongjmp(within, 1);
}

static void jumping(void) { send_beside(jump_within); }

/* The same of one with a stack of its own. */
static void jumping_apart(void) {
    static char room[1 << 16];
    stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
    sigaltstack(&stack, NULL);
    on_stack = SA_ONSTACK;
    jumping();
}

static void *idle(void *forever) {
    pause();
    return forever;
}

/* The same of a process with several threads, and of a socket that several hold. */
static void sending_together(void) {
    pthread_t thread;
    sigset_t alarm;
    pid_t child, holder;
    int ends[2];
    char byte;
    in_common = served(&child, check_messages);
    if (pipe(ends))
        return;
    holder = fork();
    if (!holder) {
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) != 0);
    }
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    pthread_create(&thread, NULL, idle, NULL);
    pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
    send_messages(send_too);
    close(in_common);
    close(ends[1]);
    waitpid(holder, NULL, 0);
    waitpid(child, NULL, 0);
}

/* A handler that leaves, again and again, what its thread is sending: what was sent is whole, and afterwards another thread can send. */
enum { JUMPS = 20000, LAST = 10 };

static sigjmp_buf away;

static void leave(int signal) {
    (void)signal;
    siglongjmp(away, 1);
}

static void *send_last(void *nothing) {
    char message[SHORT];
    memset(message, 'S', SHORT);
    for (int n = 0; n < LAST; n++)
        send(in_common, message, SHORT, 0);
    return nothing;
}

static void check_left(int fd) {
    long lengths[2] = {0, 0}, mixed = 0;
    read_messages(fd, lengths, &mixed);
    printf("%s, %s\n", lengths[0] == LAST ? "all" : "not all", mixed ? "mixed" : "whole");
}

static void leave_often(void) {
    static char message[LONG];
    static volatile int jumps;
    memset(message, 'L', LONG);
    if (sigsetjmp(away, 1) == 0)
        every(37, leave);
    if (++jumps <= JUMPS)
        for (;;)
            send(in_common, message, LONG, 0);
    every(0, nothing);
}

static void leaving(void) {
    pid_t child;
    in_common = served(&child, check_left);
    leave_often();
    send_last(NULL);
    close(in_common);
    waitpid(child, NULL, 0);
}

static void leaving_to_others(void) {
    pthread_t thread;
    sigset_t alarm;
    pid_t child;
    in_common = served(&child, check_left);
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    pthread_create(&thread, NULL, idle, NULL);
    pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
    leave_often();
    pthread_create(&thread, NULL, send_last, NULL);
    pthread_join(thread, NULL);
    close(in_common);
    waitpid(child, NULL, 0);
}

/* A handler that sends to one socket in the middle of what its thread sends to another, and leaves both the second time it comes. */
static int elsewhere;
static volatile sig_atomic_t inside;

static void send_or_leave(int signal) {
    static char message[LONG];
    (void)signal;
    if (inside++)
        siglongjmp(away, 1);
    for (;;)
        send(elsewhere, message, LONG, MSG_DONTWAIT);
}

static void read_all(int fd) {
    static char octets[9000];
    while (recv(fd, octets, sizeof octets, 0) > 0)
        ;
}

static void leave_two(void) {
    static char message[LONG];
    static volatile int jumps;
    struct sigaction action = {.sa_handler = send_or_leave, .sa_flags = SA_RESTART | SA_NODEFER};
    struct itimerval time = {{0, 37}, {0, 37}};
    memset(message, 'L', LONG);
    sigsetjmp(away, 1);
    inside = 0;
    sigaction(SIGALRM, &action, NULL);
    if (jumps == 0)
        setitimer(ITIMER_REAL, &time, NULL);
    if (++jumps <= JUMPS)
        for (;;)
            send(in_common, message, LONG, 0);
    every(0, nothing);
}

static void leaving_two(void) {
    pthread_t thread;
    pid_t children[2];
    elsewhere = served(&children[0], read_all);
    in_common = served(&children[1], check_left);
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    pthread_create(&thread, NULL, idle, NULL);
    pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
    leave_two();
    pthread_create(&thread, NULL, send_last, NULL);
    pthread_join(thread, NULL);
    close(in_common);
    close(elsewhere);
    waitpid(children[1], NULL, 0);
    waitpid(children[0], NULL, 0);
}

/* A handler that leaves, again and again, what gives a socket its name: other threads can fork afterwards. */
enum { LEAVES = 300 };

static volatile sig_atomic_t may_leave, left;

static void leave_naming(int signal) {
    (void)signal;
    if (!may_leave)
        return;
    may_leave = 0;
    left++;
    siglongjmp(away, 1);
}

static void *fork_one(void *nothing) {
    pid_t child = fork();
    if (!child)
        _exit(0);
    waitpid(child, NULL, 0);
    return nothing;
}

static void leaving_names(void) {
    static volatile int fd;
    pthread_t thread;
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    pthread_create(&thread, NULL, idle, NULL);
    pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
    fd = listening();
    every(37, leave_naming);
    sigsetjmp(away, 1);
    close(fd);
    while (left < LEAVES) {
        fd = socket(AF_INET, SOCK_STREAM, 0);
        may_leave = 1;
        listen(fd, 5);
        may_leave = 0;
        close(fd);
    }
    every(0, nothing);
    pthread_create(&thread, NULL, fork_one, NULL);
    pthread_join(thread, NULL);
}

/* Octets that count up, of which a handler takes some: each comes once. */
enum { ROUNDS = 400000 };

static void send_octets(int fd) {
    unsigned char all[256];
    for (int n = 0; n < 256; n++)
        all[n] = (unsigned char)n;
    for (int n = 0; n < ROUNDS; n++)
        send(fd, all, sizeof all, 0);
}

static long times[256], taken;

static void count(const unsigned char *octets, ssize_t len) {
    for (ssize_t n = 0; n < len; n++)
        times[octets[n]]++;
}

/* What the thread has taken at that moment it has not counted yet; what is added in its middle may be lost. */
static long beside[256];

static void receive_too(int signal) {
    unsigned char octets[77];
    (void)signal;
    ssize_t got = recv(in_common, octets, sizeof octets, MSG_DONTWAIT);
    for (ssize_t n = 0; n < got; n++, taken++)
        beside[octets[n]]++;
}

static void receiving(void) {
    static unsigned char octets[9000];
    pid_t child;
    ssize_t got;
    int wrong = 0;
    in_common = served(&child, send_octets);
    every(37, receive_too);
    while ((got = recv(in_common, octets, sizeof octets, 0)) > 0)
        count(octets, got);
    every(0, nothing);
    for (int n = 0; n < 256; n++)
        wrong += times[n] + beside[n] != ROUNDS;
    printf("%s, %s\n", taken > 0 ? "both" : "one", wrong ? "not each once" : "each once");
    waitpid(child, NULL, 0);
}

int main(int count, char **given) {
    static const struct {
        const char *name;
        void (*does)(void);
    } all[] = {{"watching", watching}, {"forking", forking}, {"cancelling", cancelling}, {"polling", polling}, {"interrupted", interrupted},
      {"allocating", allocating}, {"sending", sending}, {"sending-together", sending_together}, {"receiving", receiving}, {"leaving", leaving}, {"leaving-to-others", leaving_to_others},
      {"leaving-two", leaving_two}, {"leaving-names", leaving_names}, {"jumping", jumping}, {"jumping-apart", jumping_apart}};
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t n = 0; count == 2 && n < sizeof all / sizeof *all; n++)
        if (!strcmp(all[n].name, given[1]))
            all[n].does();
    puts("ended");
    fflush(stdout);
    _exit(0);
}
