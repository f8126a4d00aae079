/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: containers by Podman or Docker, over their sockets. The engine makes the container and
 * starts our first program in it; that one calls back on a socket in a directory that only this
 * user and the container reach, and from then on the engine has no part in the call. It is asked
 * once more, in the end, to remove what is left.
 */
#include "backend/oci/driver_api.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/uuid.h"

/* END_MS: all of an end together, whatever the engine does. Removing gets at least REMOVE_MS of it. */
enum { END_MS = 4500, DEATH_MS = 2000, REMOVE_MS = 1000, UNSURE_MS = 1000 };

/* ---- beginning ------------------------------------------------------------------------------- */

static bool copy_body(const struct tci_api_state *state, struct tci_api_job *job)
{
    char *at;
    job->body_length = state->body.length;
    job->body = malloc(state->body.length + 1);
    if (!job->body)
        return false;
    memcpy(job->body, state->body.data, state->body.length + 1);
    at = job->body;
    while ((at = strstr(at, TCI_API_CAGE_MARK)))
        memcpy(at, job->name, TCI_API_NAME_LENGTH);
    return true;
}

static bool watch(int epoll, int fd)
{
    struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

static void free_job(struct tci_api_job *job)
{
    (void)tci_close(job->listening);
    (void)tci_close(job->event);
    (void)tci_close(job->epoll);
    (void)pthread_mutex_destroy(&job->lock);
    (void)pthread_cond_destroy(&job->changed);
    free(job->body);
    free(job);
}

static struct tci_api_job *new_job(const struct tci_oci_plan *plan)
{
    struct tci_api_state *state = plan->driver_state;
    struct tci_api_job *job = calloc(1, sizeof *job);
    pthread_condattr_t attributes;
    if (!job)
        return NULL;
    job->api = &state->api;
    job->plan = plan;
    job->image_changed = &state->image_changed;
    job->listening = job->event = job->epoll = -1;
    (void)pthread_mutex_init(&job->lock, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&job->changed, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    return job;
}

static int prepare(const struct tci_oci_plan *plan, struct tci_api_job *job,
                   struct tc_error *reterr)
{
    const struct tci_api_state *state = plan->driver_state;
    int r;
    if (plan->choice.engine == TCI_OCI_ENGINE_PODMAN && !state->service.pid)
        job->runtime = tci_api_runtime(plan->choice.runtime);
    if (tci_random_hex(TCI_API_NAME_LENGTH / 2, job->name) < 0)
        return tci_error_errno(reterr, errno, "taking random numbers");
    if (!copy_body(state, job))
        return tci_error_no_memory(reterr);
    job->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    job->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (job->event < 0 || job->epoll < 0)
        return tci_error_errno(reterr, errno, "preparing a container");
    job->listening = tci_api_place_cage(&state->place, job->name,
                                        plan->spec.program != TCI_PROGRAM_NONE, reterr);
    if (job->listening < 0)
        return -1;
    r = watch(job->epoll, job->event) && watch(job->epoll, job->listening) ? 0 : errno;
    if (r == 0)
        r = tci_oci_start_thread(&job->thread, tci_api_job_work, job);
    job->has_thread = r == 0;
    return r == 0 ? 0 : tci_error_errno(reterr, r, "preparing a container");
}

static int begin(struct tci_oci_cage *cage, struct tc_error *reterr)
{
    struct tci_api_state *state = cage->plan->driver_state;
    struct tci_api_job *job = new_job(cage->plan);
    if (!job)
        return tci_error_no_memory(reterr);
    if (prepare(cage->plan, job, reterr) < 0) {
        if (job->name[0])
            tci_api_place_cage_remove(&state->place, job->name);
        free_job(job);
        return -1;
    }
    cage->driver_state = job;
    cage->watch = job->epoll;
    return 0;
}

/* ---- the call back --------------------------------------------------------------------------- */

/* Exactly one, and nothing of a model has run before it: whoever comes later finds nobody. */
static void accept_one(struct tci_oci_cage *cage, struct tci_api_job *job)
{
    const struct tci_api_state *state = cage->plan->driver_state;
    char path[TCI_API_NAME_LENGTH + 16];
    int fd = job->listening < 0 ? -1
                                : accept4(job->listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    cage->control = fd;
    job->listening = tci_close(job->listening); /* and out of the epoll set */
    (void)snprintf(path, sizeof path, "%s/control", job->name);
    (void)unlinkat(state->place.directory, path, 0);
    tci_api_job_connected(job);
}

static void step(struct tci_oci_cage *cage)
{
    struct tci_api_job *job = cage->driver_state;
    eventfd_t count;
    bool finished;
    (void)eventfd_read(job->event, &count);
    accept_one(cage, job);
    (void)pthread_mutex_lock(&job->lock);
    finished = job->finished;
    if (job->id[0])
        (void)snprintf(cage->id, sizeof cage->id, "%s", job->id);
    /* A container that has called is there, whatever the engine said about its start. */
    if (finished && job->failed && !job->connected && !cage->failed) {
        cage->failed = true;
        cage->error = job->error;
    }
    (void)pthread_mutex_unlock(&job->lock);
    if (!finished || cage->failed)
        return;
    if (cage->control < 0 && !cage->hello) {
        cage->failed = true;
        tci_error_set(&cage->error, TC_ERROR_UNSUPPORTED,
                      "the container ended before it could be used");
    }
    cage->watch = -1; /* there is nothing more to say */
}

/* ---- the end --------------------------------------------------------------------------------- */

static void kill_cage(struct tci_oci_cage *cage)
{
    struct tci_api_job *job = cage->driver_state;
    atomic_store(&job->killed, true);
    /* Entry's own process and its socket are cage.c's: their end is the container's. */
}

/* The engine did not remove it. It asks itself to do so when its process ends (AutoRemove); and
 * we ask again when the plan ends, and the next plan of anybody when this process is gone. */
static void remember(struct tci_api_state *state, const char *name)
{
    (void)pthread_mutex_lock(&state->lock);
    if (state->lost_count < TCI_API_LOST_MAX)
        memcpy(state->lost[state->lost_count++], name, TCI_API_NAME_LENGTH + 1);
    (void)pthread_mutex_unlock(&state->lock);
}

static void end(struct tci_oci_cage *cage)
{
    struct tci_api_state *state = cage->plan->driver_state;
    struct tci_api_job *job = cage->driver_state;
    struct pollfd death = { .fd = cage->pidfd, .events = POLLIN };
    const uint64_t until = tci_clock_us() + END_MS * UINT64_C(1000);
    long left;
    char name[sizeof TCI_API_NAME_PREFIX + TCI_API_NAME_LENGTH];
    bool known;
    tci_oci_cage_kill(cage);
    if (cage->pidfd >= 0)
        (void)poll(&death, 1, DEATH_MS);
    known = tci_api_job_join(job);
    atomic_store(&job->abort, false);
    (void)snprintf(name, sizeof name, TCI_API_NAME_PREFIX "%s", job->name);
    if (!known) {
        /* A request was given up: it may be made only now. */
        const struct timespec moment = { .tv_nsec = 500000000L };
        (void)tci_api_remove(job->api, name, UNSURE_MS, NULL, NULL);
        (void)nanosleep(&moment, NULL);
    }
    left = tci_api_left_ms(until);
    if (tci_api_remove(job->api, name, left > REMOVE_MS ? left : REMOVE_MS, NULL, NULL) < 0)
        remember(state, job->name);
    tci_api_place_cage_remove(&state->place, job->name);
    cage->watch = -1;
    cage->driver_state = NULL;
    free_job(job);
}

const struct tci_oci_driver tci_oci_driver_api = {
    .name = "api",
    .open = tci_api_driver_open,
    .close = tci_api_driver_close,
    .begin = begin,
    .step = step,
    .ready = tci_api_ready,
    .kill = kill_cage,
    .end = end,
    .hits = tci_api_hits,
    .is_stale = tci_api_driver_is_stale,
};
