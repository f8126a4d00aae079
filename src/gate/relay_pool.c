/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what relays need only while they move bytes: one buffer and a few pipes for all relays of a
 * loop, so that a connection which is idle costs its two sockets and nothing else.
 *
 * Invariant: a pipe in the pool is empty. Bytes of one connection never meet another.
 */
#include "gate/relay_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include "base/attr.h"
#include "base/fd.h"
#include "base/sigpipe.h"

static void close_pipe(struct tci_relay_pipe *pipe)
{
    pipe->in = tci_close(pipe->in);
    pipe->out = tci_close(pipe->out);
}

static void end_pool(void *shared)
{
    struct tci_relay_pool *pool = shared;
    while (pool->pipe_count)
        close_pipe(&pool->pipes[--pool->pipe_count]);
    free(pool);
}

struct tci_relay_pool *tci_relay_pool(struct tci_loop *loop)
{
    struct tci_relay_pool *pool = tci_loop_shared(loop);
    if (pool)
        return pool;
    pool = malloc(sizeof *pool); /* the buffer is not zeroed: its pages come when they are used */
    if (!pool)
        return NULL;
    pool->pipe_count = pool->pipes_made = 0;
    tci_loop_share(loop, pool, end_pool);
    return pool;
}

/* A user whose share of pipe memory is used up gets tiny pipes, with which copying is faster. */
bool tci_pool_take_pipe(struct tci_relay_pool *pool, struct tci_relay_pipe *ret)
{
    int ends[2];
    if (pool->pipe_count) {
        *ret = pool->pipes[--pool->pipe_count];
        return true;
    }
    if (pool->pipes_made == TCI_PIPES_MAX || tci_pipe(ends, O_NONBLOCK) < 0)
        return false;
    ret->out = ends[0];
    ret->in = ends[1];
    if (fcntl(ret->in, F_SETPIPE_SZ, TCI_PIPE_SIZE) < 0 &&
        fcntl(ret->in, F_GETPIPE_SZ) < TCI_FLOW_CHUNK) {
        close_pipe(ret);
        return false;
    }
    pool->pipes_made++;
    return true;
}

void tci_pool_give_pipe(struct tci_relay_pool *pool, struct tci_relay_pipe *pipe, bool is_empty)
{
    if (is_empty && pool->pipe_count < tci_array_size(pool->pipes)) {
        pool->pipes[pool->pipe_count++] = *pipe;
    } else {
        close_pipe(pipe);
        pool->pipes_made--;
    }
}

/* ---- splice -------------------------------------------------------------------------------------- */

ssize_t tci_splice_in(int socket, int pipe, size_t length)
{
    ssize_t n;
    do
        n = splice(socket, NULL, pipe, NULL, length, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    while (n < 0 && errno == EINTR);
    return n;
}

/* splice() knows no MSG_NOSIGNAL, and a peer that is gone must not end the host. */
ssize_t tci_splice_out(int pipe, int socket, size_t length)
{
    struct tci_sigpipe held;
    ssize_t n;
    tci_sigpipe_hold(&held);
    do
        n = splice(pipe, NULL, socket, NULL, length, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    while (n < 0 && errno == EINTR);
    tci_sigpipe_release(&held, n != (ssize_t)length);
    return n;
}
