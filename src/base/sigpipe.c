/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sigpipe.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

static void only_pipe(sigset_t *ret)
{
    (void)sigemptyset(ret);
    (void)sigaddset(ret, SIGPIPE);
}

void tci_sigpipe_hold(struct tci_sigpipe *held)
{
    sigset_t pipe, pending;
    only_pipe(&pipe);
    (void)pthread_sigmask(SIG_BLOCK, &pipe, &held->before);
    /* One that was pending before stays: that can only be where the host has blocked it itself. */
    held->was_pending = sigismember(&held->before, SIGPIPE) == 1 && sigpending(&pending) == 0 &&
                        sigismember(&pending, SIGPIPE) == 1;
}

void tci_sigpipe_release(const struct tci_sigpipe *held, bool may_have_come)
{
    const struct timespec now = { 0 };
    const int problem = errno;
    sigset_t pipe;
    only_pipe(&pipe);
    if (may_have_come && !held->was_pending)
        (void)sigtimedwait(&pipe, NULL, &now);
    (void)pthread_sigmask(SIG_SETMASK, &held->before, NULL);
    errno = problem;
}
