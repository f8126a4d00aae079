/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the thread that has one container made. The requests block, and nobody but it waits for
 * them. Invariant: it touches its job and nothing of the cage, so a cage's owner never waits for an
 * engine except in the end, and there for a stated time.
 */
#include "backend/oci/driver_api.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { CALL_BACK_S = 10, LOOK_MS = 300, GRACE_MS = 2000 };

static void after(struct timespec *ret, long ms)
{
    (void)clock_gettime(CLOCK_MONOTONIC, ret);
    ret->tv_sec += ms / 1000;
    ret->tv_nsec += ms % 1000 * 1000000;
    if (ret->tv_nsec >= 1000000000) {
        ret->tv_sec++;
        ret->tv_nsec -= 1000000000;
    }
}

static int refused(const struct tci_api *api, const struct tci_api_answer *answer, const char *what,
                   struct tc_error *reterr)
{
    char words[TCI_API_WORDS_MAX];
    tci_api_words(answer, words);
    return tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "%s does not %s the container: %s",
                         tci_api_name(api), what, words);
}

static int create(struct tci_api_job *job, struct tc_error *reterr)
{
    const struct tci_api *api = job->api;
    struct tci_api_request request = { .method = "POST",
                                       .path = "/containers/create",
                                       .body = job->body,
                                       .length = job->body_length,
                                       .limit_ms = TCI_API_MAKE_MS,
                                       .abort = &job->abort };
    char path[96], id[TCI_API_ID_LENGTH + 1];
    struct tci_api_answer answer;
    int r;
    /* It has a name of ours, so that it can be removed also when the answer with its id never
     * came. */
    if (api->engine == TCI_OCI_ENGINE_DOCKER) {
        (void)snprintf(path, sizeof path, "/containers/create?name=" TCI_API_NAME_PREFIX "%s",
                       job->name);
        request.path = path;
    }
    r = tci_api_send(api, &request, &answer, reterr);
    if (r == 0 && answer.status == 404)
        atomic_store(job->image_changed, true); /* the next call makes another plan */
    if (r == 0 && answer.status != 201)
        r = refused(api, &answer, "make", reterr);
    else if (r == 0)
        r = tci_api_read_id(&answer, id, reterr);
    tci_api_answer_free(&answer);
    if (r < 0)
        return -1;
    (void)pthread_mutex_lock(&job->lock);
    memcpy(job->id, id, sizeof id);
    (void)pthread_mutex_unlock(&job->lock);
    return 0;
}

/* Podman 4 gives every container its service's runtime, whatever it is told. Another one than
 * the policy names is refused. */
static int check_runtime(const struct tci_api_job *job, struct tc_error *reterr)
{
    char path[128], name[32] = "";
    const struct tci_api_request request = {
        .method = "GET", .path = path, .limit_ms = TCI_API_ASK_MS, .abort = &job->abort
    };
    struct tci_api_answer answer;
    int r;
    (void)snprintf(path, sizeof path, "/containers/%s/json", job->id);
    r = tci_api_send(job->api, &request, &answer, reterr);
    if (r == 0)
        tci_api_read_runtime(&answer, name, sizeof name);
    tci_api_answer_free(&answer);
    if (r < 0 || strcmp(name, job->runtime) == 0)
        return r;
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                  "container.runtime is \"%s\", and the Podman service at %s uses \"%s\"",
                  job->runtime, job->api->socket, name);
    tci_error_remedy(reterr,
                     "set runtime = \"%s\" in containers.conf and start the service again; or stop "
                     "it, and toolcage starts its own",
                     job->runtime);
    return -1;
}

static int start(struct tci_api_job *job, struct tc_error *reterr)
{
    char path[128];
    const struct tci_api_request request = {
        .method = "POST", .path = path, .limit_ms = TCI_API_MAKE_MS, .abort = &job->abort
    };
    struct tci_api_answer answer;
    int r;
    (void)snprintf(path, sizeof path, "/containers/%s/start", job->id);
    r = tci_api_send(job->api, &request, &answer, reterr);
    if (r == 0 && answer.status != 204)
        r = refused(job->api, &answer, "start", reterr);
    tci_api_answer_free(&answer);
    return r;
}

/* Is it there and running? What is not known counts as yes. */
static bool is_running(const struct tci_api_job *job)
{
    char path[128];
    const struct tci_api_request request = {
        .method = "GET", .path = path, .limit_ms = TCI_API_ASK_MS, .abort = &job->abort
    };
    struct tci_api_answer answer;
    bool running = true;
    (void)snprintf(path, sizeof path, "/containers/%s/json", job->id);
    if (tci_api_send(job->api, &request, &answer, NULL) == 0) {
        json_t *document = answer.status == 200 ? tci_api_parse(&answer, NULL) : NULL;
        running = answer.status != 404 &&
                  !json_is_false(json_object_get(json_object_get(document, "State"), "Running"));
        json_decref(document);
    }
    tci_api_answer_free(&answer);
    return running;
}

/* A container that started and does not call would be waited for until the call's own time
 * limit, and then look like a tool that was too slow. */
static int wait_for_call(struct tci_api_job *job, struct tc_error *reterr)
{
    bool connected = false;
    for (int i = 0; i < CALL_BACK_S * 1000 / LOOK_MS && !atomic_load(&job->killed); i++) {
        struct timespec until;
        int r = 0;
        after(&until, LOOK_MS);
        (void)pthread_mutex_lock(&job->lock);
        while (!job->connected && !atomic_load(&job->killed) && r == 0)
            r = pthread_cond_timedwait(&job->changed, &job->lock, &until);
        connected = job->connected;
        (void)pthread_mutex_unlock(&job->lock);
        if (connected)
            return 0;
        if (!is_running(job))
            return tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                                 "the container ended before its first program could call back");
    }
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                  "the container was started, but its first program did not call back within %d s",
                  CALL_BACK_S);
    tci_error_remedy(reterr, "%s must run on this machine and see its directories",
                     tci_api_name(job->api));
    return -1;
}

static int make(struct tci_api_job *job, struct tc_error *reterr)
{
    if (create(job, reterr) < 0 || (job->runtime && check_runtime(job, reterr) < 0))
        return -1;
    if (tci_api_job_look(job, reterr) < 0)
        return -1;
    if (atomic_load(&job->killed))
        return tci_error_set(reterr, TC_ERROR_IO, "the call ended before its container started");
    if (start(job, reterr) < 0)
        return -1;
    return wait_for_call(job, reterr);
}

void *tci_api_job_work(void *data)
{
    struct tci_api_job *job = data;
    struct tc_error error = { 0 };
    int r = make(job, &error);
    (void)pthread_mutex_lock(&job->lock);
    job->failed = r < 0;
    job->error = error;
    job->finished = true;
    (void)pthread_cond_broadcast(&job->changed);
    (void)pthread_mutex_unlock(&job->lock);
    (void)eventfd_write(job->event, 1);
    return NULL;
}

void tci_api_job_connected(struct tci_api_job *job)
{
    (void)pthread_mutex_lock(&job->lock);
    job->connected = true;
    (void)pthread_cond_broadcast(&job->changed);
    (void)pthread_mutex_unlock(&job->lock);
}

bool tci_api_job_join(struct tci_api_job *job)
{
    struct timespec until;
    int r = 0;
    bool known;
    if (!job->has_thread)
        return true;
    after(&until, GRACE_MS);
    (void)pthread_mutex_lock(&job->lock);
    atomic_store(&job->killed, true);
    (void)pthread_cond_broadcast(&job->changed);
    while (!job->finished && r == 0)
        r = pthread_cond_timedwait(&job->changed, &job->lock, &until);
    known = job->finished;
    (void)pthread_mutex_unlock(&job->lock);
    atomic_store(&job->abort, true);
    (void)pthread_join(job->thread, NULL);
    job->has_thread = false;
    return known;
}
