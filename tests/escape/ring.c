/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: attempts through io_uring, which does what system calls do without making them: a filter
 * does not see the files it opens and the sockets it connects. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "attempt.h"

struct ring {
    int fd;
    char *queues; /* submission and completion share one mapping */
    struct io_uring_sqe *entries;
    struct io_uring_params params;
};

static int ring_open(struct ring *ring)
{
    memset(ring, 0, sizeof(*ring));
    ring->fd = (int)syscall(SYS_io_uring_setup, 4, &ring->params);
    if (ring->fd < 0)
        return -1;
    size_t submissions = ring->params.sq_off.array + ring->params.sq_entries * sizeof(uint32_t);
    size_t completions = ring->params.cq_off.cqes +
                         ring->params.cq_entries * sizeof(struct io_uring_cqe);
    size_t size = submissions > completions ? submissions : completions;
    ring->queues = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd,
                        IORING_OFF_SQ_RING);
    ring->entries = mmap(NULL, ring->params.sq_entries * sizeof(struct io_uring_sqe),
                         PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, (off_t)IORING_OFF_SQES);
    return ring->queues == MAP_FAILED || (void *)ring->entries == MAP_FAILED ? -1 : 0;
}

static uint32_t *ring_word(const struct ring *ring, uint32_t offset)
{
    return (uint32_t *)(void *)(ring->queues + offset);
}

/* Does one thing and returns its result, or -errno. */
static int ring_do(struct ring *ring, const struct io_uring_sqe *what)
{
    uint32_t *tail = ring_word(ring, ring->params.sq_off.tail);
    uint32_t slot = *tail & *ring_word(ring, ring->params.sq_off.ring_mask);
    ring->entries[slot] = *what;
    ring_word(ring, ring->params.sq_off.array)[slot] = slot;
    __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
    if (syscall(SYS_io_uring_enter, ring->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
        return -errno;
    uint32_t *head = ring_word(ring, ring->params.cq_off.head);
    uint32_t mask = *ring_word(ring, ring->params.cq_off.ring_mask);
    const struct io_uring_cqe *done = (const void *)(ring->queues + ring->params.cq_off.cqes);
    int result = done[*head & mask].res;
    __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
    return result;
}

static int ring_setup(int argc, char **argv)
{
    struct ring ring;
    (void)argc;
    (void)argv;
    return judge(ring_open(&ring), "set up an io_uring");
}

static int ring_read(int argc, char **argv)
{
    struct ring ring;
    (void)argc;
    if (ring_open(&ring) < 0)
        return held("io_uring_setup");
    struct io_uring_sqe open_it = { .opcode = IORING_OP_OPENAT,
                                    .fd = AT_FDCWD,
                                    .addr = (uintptr_t)argv[0],
                                    .open_flags = O_RDONLY | O_CLOEXEC };
    int fd = ring_do(&ring, &open_it);
    if (fd < 0) {
        errno = -fd;
        return held("open through io_uring");
    }
    return loot_fd(fd, "opened through io_uring");
}

static int ring_connect(int argc, char **argv)
{
    struct ring ring;
    (void)argc;
    if (ring_open(&ring) < 0)
        return held("io_uring_setup");
    struct io_uring_sqe make = {
        .opcode = IORING_OP_SOCKET, .fd = AF_INET, .off = SOCK_STREAM, .len = 0
    };
    int fd = ring_do(&ring, &make);
    if (fd < 0) {
        errno = -fd;
        return held("socket through io_uring");
    }
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)number(argv[0])) };
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct io_uring_sqe go = {
        .opcode = IORING_OP_CONNECT, .fd = fd, .addr = (uintptr_t)&address, .off = sizeof(address)
    };
    int result = ring_do(&ring, &go);
    errno = result < 0 ? -result : 0;
    return judge(result, "connected through io_uring");
}

const struct attempt ring_attempts[] = {
    { "io-uring-setup", 0, ring_setup, "set up an io_uring" },
    { "io-uring-read", 1, ring_read, "open and read SECRET through io_uring" },
    { "io-uring-connect", 1, ring_connect, "connect to 127.0.0.1:PORT through io_uring" },
    { 0 },
};
