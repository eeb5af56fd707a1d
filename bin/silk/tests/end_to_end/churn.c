/* Threads that do anything at any time to descriptors that all of them have: churn SERVER SECONDS SEED THREADS. A server
 * that sends back what it gets is at port 7 of SERVER, for streams and datagrams. What each call answers is not looked at:
 * who closes what another thread uses gets what he deserves. But every call returns, and the program ends. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DESCRIPTORS = 24, THREADS = 16, CALLS = 28, ENDED = -1 };

static _Atomic int descriptors[DESCRIPTORS], doing[THREADS];
static atomic_bool over;
static struct sockaddr_in server;
static int set, text;
static char source[] = __FILE__;

static int any(unsigned *chance, int below) {
    return (int)(rand_r(chance) % (unsigned)below);
}

static int pick(unsigned *chance) {
    return descriptors[any(chance, DESCRIPTORS)];
}

/* One more descriptor, in the place of another, which is closed. */
static void put(unsigned *chance, int fd) {
    if (fd < 0)
        return;
    int before = atomic_exchange(&descriptors[any(chance, DESCRIPTORS)], fd);
    if (before >= 0)
        close(before);
}

/* The same number names something else from one moment to the next. */
static void replace(unsigned *chance, int fd) {
    int copy = dup(fd);
    if (copy < 0)
        return;
    int before = atomic_exchange(&descriptors[any(chance, DESCRIPTORS)], copy);
    if (before >= 0 && dup2(fd, before) >= 0)
        close(before);
}

/* Over a socket pair, as to another process. */
static void pass(unsigned *chance, int fd) {
    int ends[2];
    if (any(chance, 4) || socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) < 0)
        return;
    char octet = 0, space[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec vector = {&octet, 1};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    *head = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fd)};
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    if (sendmsg(ends[0], &message, MSG_DONTWAIT) >= 0 && any(chance, 4) && recvmsg(ends[1], &message, MSG_DONTWAIT) >= 0) {
        head = CMSG_FIRSTHDR(&message);
        if (head && head->cmsg_type == SCM_RIGHTS) {
            memcpy(&fd, CMSG_DATA(head), sizeof fd);
            put(chance, fd);
        }
    }
    close(ends[0]);
    close(ends[1]);
}

/* A connection to one of our own listening sockets, if that is one. */
static void visit(unsigned *chance, int fd) {
    struct sockaddr_in at;
    socklen_t length = sizeof at;
    if (getsockname(fd, (void *)&at, &length) < 0 || !at.sin_port)
        return;
    int visitor = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (at.sin_addr.s_addr == INADDR_ANY)
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connect(visitor, (void *)&at, sizeof at);
    put(chance, visitor);
}

/* A child uses some of them, and ends in some way. */
static void fork_one(unsigned *chance, char *room) {
    if (any(chance, 40))
        return;
    pid_t child = fork();
    if (child) {
        waitpid(child, NULL, 0);
        return;
    }
    for (int n = 0; n < 6; n++) {
        int fd = pick(chance);
        send(fd, room, 200, MSG_DONTWAIT | MSG_NOSIGNAL);
        recv(fd, room, 200, MSG_DONTWAIT);
        if (n % 2)
            close(fd);
    }
    if (!any(chance, 3))
        kill(getpid(), SIGKILL);
    _exit(0);
}

static void call(int which, unsigned *chance, char *room, size_t size) {
    int fd = pick(chance), yes = any(chance, 2), flags = MSG_DONTWAIT | MSG_NOSIGNAL;
    struct sockaddr_in address = {.sin_family = AF_INET}, closed = server;
    socklen_t length = sizeof address;
    struct epoll_event events[8] = {{.events = EPOLLIN | (yes ? EPOLLET : EPOLLOUT), .data.fd = fd}};
    struct pollfd watched[4];
    struct iovec pieces[2] = {{room, 10}, {room, 300}};
    struct mmsghdr messages[2] = {{{.msg_iov = pieces, .msg_iovlen = 1}, 0}, {{.msg_iov = pieces, .msg_iovlen = 2}, 0}};
    off_t from = 0;
    int before;
    switch (which) {
    case 0: put(chance, socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)); break;
    case 1: put(chance, socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0)); break;
    case 2: case 3: connect(fd, (void *)&server, sizeof server); break;
    case 4: closed.sin_port = htons(1); connect(fd, (void *)&closed, sizeof closed); break;
    case 5: case 6: send(fd, room, (size_t)any(chance, yes ? 300 : (int)size), flags); break;
    case 7: case 8: recv(fd, room, (size_t)any(chance, (int)size), MSG_DONTWAIT | (any(chance, 8) ? 0 : MSG_PEEK)); break;
    case 9: before = atomic_exchange(&descriptors[any(chance, DESCRIPTORS)], -1); if (before >= 0) close(before); break;
    case 10: shutdown(fd, any(chance, 3)); break;
    case 11:
        for (int n = 0; n < 4; n++)
            watched[n] = (struct pollfd){.fd = pick(chance), .events = POLLIN | POLLOUT};
        poll(watched, 4, any(chance, 3));
        break;
    case 12: epoll_ctl(set, EPOLL_CTL_ADD + any(chance, 3), fd, events); break;
    case 13: epoll_wait(set, events, 8, any(chance, 3)); break;
    case 14: replace(chance, fd); break;
    case 15: setsockopt(fd, IPPROTO_TCP, any(chance, 2) ? TCP_NODELAY : TCP_CORK, &yes, sizeof yes); break;
    case 16: length = sizeof yes; getsockopt(fd, SOL_SOCKET, SO_ERROR, &yes, &length); break;
    case 17: yes ? getsockname(fd, (void *)&address, &length) : getpeername(fd, (void *)&address, &length); break;
    case 18: bind(fd, (void *)&address, sizeof address); break;
    case 19: listen(fd, 5); break;
    case 20: put(chance, accept4(fd, NULL, NULL, SOCK_NONBLOCK)); break;
    case 21: sendto(fd, room, (size_t)any(chance, 1400), flags, (void *)&server, sizeof server); break;
    case 22: ioctl(fd, FIONREAD, &yes); break;
    case 23: fork_one(chance, room); break;
    case 24: address.sin_family = AF_UNSPEC; if (yes) connect(fd, (void *)&address, sizeof address); break;
    case 25: visit(chance, fd); break;
    case 26: pass(chance, fd); break;
    case 27:
        if (yes)
            recvmmsg(fd, messages, 2, MSG_DONTWAIT, NULL);
        else if (any(chance, 2))
            sendmmsg(fd, messages, 2, (unsigned)flags);
        else
            sendfile(fd, text, &from, 3000);
        break;
    }
}

static void *work(void *argument) {
    _Atomic int *mine = argument;
    unsigned chance = (unsigned)*mine;
    char room[60000] = "text";
    while (!over)
        call(*mine = any(&chance, CALLS), &chance, room, sizeof room);
    *mine = ENDED;
    return NULL;
}

int main(int count, char **given) {
    if (count != 5)
        return 2;
    int seconds = atoi(given[2]), threads = atoi(given[4]), stuck = 0;
    server = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(7), .sin_addr.s_addr = inet_addr(given[1])};
    signal(SIGPIPE, SIG_IGN);
    set = epoll_create1(EPOLL_CLOEXEC);
    text = open(source, O_RDONLY | O_CLOEXEC);
    for (int n = 0; n < DESCRIPTORS; n++)
        descriptors[n] = -1;
    for (int n = 0; n < threads && n < THREADS; n++) {
        pthread_t thread;
        doing[n] = atoi(given[3]) * THREADS + n;
        pthread_create(&thread, NULL, work, &doing[n]);
    }
    sleep((unsigned)seconds);
    over = 1;
    /* Nothing waits longer than a moment: who has not come back by then never will. */
    for (int n = 0; n < 300; n++) {
        stuck = 0;
        for (int each = 0; each < threads; each++)
            stuck += doing[each] != ENDED;
        if (!stuck)
            break;
        usleep(100000);
    }
    for (int each = 0; each < threads; each++)
        if (doing[each] != ENDED)
            printf("thread %d is still in call %d\n", each, doing[each]);
    for (int n = 0; n < DESCRIPTORS && !stuck; n++)
        if (descriptors[n] >= 0)
            close(descriptors[n]);
    puts("ended");
    fflush(stdout);
    _exit(stuck ? 1 : 0);
}
