/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: both ends of the connections that the benchmark of the gate makes. The clock is the client's:
 * starting a cage is not in its figures.
 *
 *   bench_net serve                       on 127.0.0.1; prints its port; until standard input ends
 *   bench_net stream HOST PORT BYTES      fetches them over one connection; prints MB per second
 *   bench_net request HOST PORT COUNT     connects and asks for a small page, so often; prints the median, in ms
 *   bench_net many HOST PORT COUNT        so many connections, all open, one page each; prints ms for all
 *
 * Everything is HTTP/1.1, so that a gate reads it as it would read any client's.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    buffer_size = 262144,
    page_size = 200,
    clients_max = 4096,
    events_max = 64,
    samples_max = 10000
};

static char buffer[buffer_size];

static _Noreturn void fail(const char *what)
{
    (void)fprintf(stderr, "bench_net: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* ---- server ---- */

/* What a client of this descriptor still gets; the head of the answer is sent at once. */
static uint64_t owed[clients_max];

static void watch(int loop, int operation, int fd, uint32_t events)
{
    struct epoll_event event = { .events = events, .data.fd = fd };
    if (epoll_ctl(loop, operation, fd, &event) < 0)
        fail("epoll_ctl");
}

static void answer(int loop, int fd)
{
    char head[128];
    ssize_t got = recv(fd, buffer, sizeof(buffer) - 1, 0);
    unsigned long bytes = page_size;

    if (got <= 0) {
        owed[fd] = 0;
        (void)close(fd);
        return;
    }
    buffer[got] = '\0';
    if (strncmp(buffer, "GET /bytes/", 11) == 0)
        bytes = strtoul(buffer + 11, NULL, 10);
    int length = snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %lu\r\n\r\n",
                          bytes);
    memset(buffer, 'x', bytes < sizeof(buffer) ? bytes + (size_t)length : sizeof(buffer));
    owed[fd] = bytes;
    if (bytes == page_size) { /* in one piece, as a server would */
        memcpy(buffer, head, (size_t)length);
        (void)send(fd, buffer, (size_t)length + bytes, MSG_NOSIGNAL);
        owed[fd] = 0;
    } else {
        (void)send(fd, head, (size_t)length, MSG_NOSIGNAL | MSG_MORE);
        watch(loop, EPOLL_CTL_MOD, fd, EPOLLOUT);
    }
}

static void pour(int loop, int fd)
{
    size_t most = owed[fd] < sizeof(buffer) ? owed[fd] : sizeof(buffer);
    ssize_t sent = send(fd, buffer, most, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0)
        owed[fd] -= (uint64_t)sent;
    if (owed[fd] == 0 || (sent < 0 && errno != EAGAIN))
        watch(loop, EPOLL_CTL_MOD, fd, EPOLLIN);
}

static void serve(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct epoll_event events[events_max];
    socklen_t length = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
        loop = epoll_create1(EPOLL_CLOEXEC);

    if (bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        listen(listener, 1024) < 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) < 0)
        fail("listen");
    (void)printf("%d\n", ntohs(address.sin_port));
    (void)fflush(stdout);
    watch(loop, EPOLL_CTL_ADD, listener, EPOLLIN);
    watch(loop, EPOLL_CTL_ADD, STDIN_FILENO, EPOLLIN);
    for (;;) {
        int count = epoll_wait(loop, events, events_max, -1);
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd == STDIN_FILENO)
                return;
            if (fd == listener) {
                int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
                if (client >= clients_max)
                    fail("too many clients");
                if (client >= 0)
                    watch(loop, EPOLL_CTL_ADD, client, EPOLLIN);
            } else if (owed[fd]) {
                pour(loop, fd);
            } else {
                answer(loop, fd);
            }
        }
    }
}

/* ---- client ---- */

static struct addrinfo *target;
static const char *host;

static void find(const char *name, const char *port)
{
    const struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
    host = name;
    if (getaddrinfo(name, port, &hints, &target) != 0)
        fail(name);
}

static int dial(int flags)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
    if (connect(fd, target->ai_addr, target->ai_addrlen) < 0 && errno != EINPROGRESS)
        fail("connect");
    return fd;
}

static void ask(int fd, uint64_t bytes)
{
    char request[512];
    int length = snprintf(request, sizeof(request), "GET /bytes/%llu HTTP/1.1\r\nHost: %s\r\n\r\n",
                          (unsigned long long)bytes, host);
    if (send(fd, request, (size_t)length, MSG_NOSIGNAL) != length)
        fail("send");
}

/* Reads an answer whose body has so many bytes. */
static void take(int fd, uint64_t bytes)
{
    uint64_t all = 0;
    while (all == 0 || all < bytes) {
        ssize_t got = recv(fd, buffer, sizeof(buffer), 0);
        if (got <= 0)
            fail("recv");
        if (all == 0) { /* the head comes in one piece; what is behind it is body */
            char *body = memmem(buffer, (size_t)got, "\r\n\r\n", 4);
            if (!body)
                fail("no answer");
            got -= body + 4 - buffer;
            all = 1;
            bytes++;
        }
        all += (uint64_t)got;
    }
}

static void stream(uint64_t bytes)
{
    int fd = dial(0);
    double begin = now_ms();
    ask(fd, bytes);
    take(fd, bytes);
    (void)printf("%.3f\n", (double)bytes / 1e3 / (now_ms() - begin));
    (void)close(fd);
}

static int order(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void request(unsigned count)
{
    static double samples[samples_max];
    for (unsigned i = 0; i < count; i++) {
        double begin = now_ms();
        int fd = dial(0);
        ask(fd, page_size);
        take(fd, page_size);
        samples[i] = now_ms() - begin;
        (void)close(fd);
    }
    qsort(samples, count, sizeof(*samples), order);
    (void)printf("%.4f\n", samples[count / 2]);
}

static void many(unsigned count)
{
    static int fds[samples_max];
    struct epoll_event event;
    double begin = now_ms();
    int loop = epoll_create1(EPOLL_CLOEXEC);

    for (unsigned i = 0; i < count; i++) {
        fds[i] = dial(SOCK_NONBLOCK);
        watch(loop, EPOLL_CTL_ADD, fds[i], EPOLLOUT | EPOLLONESHOT);
    }
    for (unsigned i = 0; i < count; i++)
        if (epoll_wait(loop, &event, 1, 20000) != 1)
            fail("a connection does not come about");
    for (unsigned i = 0; i < count; i++) {
        ask(fds[i], page_size);
        watch(loop, EPOLL_CTL_MOD, fds[i], EPOLLIN | EPOLLONESHOT);
    }
    for (unsigned i = 0; i < count; i++) {
        if (epoll_wait(loop, &event, 1, 20000) != 1)
            fail("an answer does not come");
        take(event.data.fd, page_size);
    }
    (void)printf("%.4f\n", now_ms() - begin);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "serve") == 0) {
        serve();
        return 0;
    }
    unsigned long number = argc == 5 ? strtoul(argv[4], NULL, 10) : 0;
    if (number == 0 || (argv[1][0] != 's' && number > samples_max)) {
        (void)fprintf(stderr, "usage: bench_net serve | stream|request|many HOST PORT NUMBER\n");
        return 2;
    }
    find(argv[2], argv[3]);
    if (strcmp(argv[1], "stream") == 0)
        stream(number);
    else if (strcmp(argv[1], "request") == 0)
        request((unsigned)number);
    else
        many((unsigned)number);
    freeaddrinfo(target);
    return 0;
}
