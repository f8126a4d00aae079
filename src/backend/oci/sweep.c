/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: removing containers: our own at their end, and those of owners that are gone. A container
 * is ours to remove only if its label names an owner that is surely gone; nobody else's label is
 * judged.
 */
#include "backend/oci/api.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include "base/clock.h"

/* ONE_MS: for one of several leftovers, at most. */
enum { SWEEP_MAX = 64, PAUSE_MS = 20, LOST_MS = 1000, ONE_MS = 500 };

/* Never 0, which is no limit at all. */
long tci_api_left_ms(uint64_t until_us)
{
    const uint64_t now = tci_clock_us();
    return until_us > now + 1000 ? (long)((until_us - now) / 1000) : 1;
}

/* Both engines: 204 or 200 removed, 404 not there, 409 being removed already, 500 something
 * else. */
int tci_api_remove(const struct tci_api *api, const char *name, long limit_ms,
                   const atomic_bool *abort, struct tc_error *reterr)
{
    const uint64_t begin = tci_clock_us(), until = begin + (uint64_t)limit_ms * 1000;
    /* An engine that is not there: whoever waits for it waits in vain. */
    const uint64_t until_lost = begin + (uint64_t)(limit_ms < LOST_MS ? limit_ms : LOST_MS) * 1000;
    const struct timespec moment = { .tv_nsec = PAUSE_MS * 1000000L };
    char path[160], words[TCI_API_WORDS_MAX];
    (void)snprintf(path, sizeof path, "/containers/%.100s?force=true&v=true%s", name,
                   api->engine == TCI_OCI_ENGINE_PODMAN ? "&timeout=0" : "");
    for (;;) {
        const struct tci_api_request request = {
            .method = "DELETE", .path = path, .limit_ms = tci_api_left_ms(until), .abort = abort
        };
        struct tci_api_answer answer;
        struct tc_error problem = { 0 };
        int r = tci_api_send(api, &request, &answer, &problem), status = answer.status;
        if (r == 0)
            tci_api_words(&answer, words);
        tci_api_answer_free(&answer);
        if (r == 0 && (status == 200 || status == 204 || status == 404))
            return 0;
        if (tci_clock_us() > (r < 0 ? until_lost : until) || (abort && atomic_load(abort))) {
            if (r == 0)
                tci_error_set(&problem, TC_ERROR_IO, "%s does not remove a container: %s",
                              tci_api_name(api), words);
            if (reterr && reterr->code == TC_ERROR_NONE)
                *reterr = problem;
            return -1;
        }
        (void)nanosleep(&moment, NULL);
    }
}

struct found {
    char ids[SWEEP_MAX][TCI_API_ID_LENGTH + 1];
    size_t count;
};

static void note(void *data, const char *id, const char *owner)
{
    struct found *found = data;
    if (found->count < SWEEP_MAX && tci_api_owner_is_gone(owner))
        memcpy(found->ids[found->count++], id, TCI_API_ID_LENGTH + 1);
}

void tci_api_sweep(const struct tci_api *api, long limit_ms)
{
    const uint64_t until = tci_clock_us() + (uint64_t)limit_ms * 1000;
    /* {"label":["io.toolcage.owner"],"name":["toolcage-"]}. An image may have the label, too: a container that
     * somebody made of it must not fill this list. No image gives names. */
    const struct tci_api_request request = {
        .method = "GET",
        .path = "/containers/json?all=true&filters=%7B%22label"
                "%22%3A%5B%22" TCI_API_LABEL_OWNER
                "%22%5D%2C%22name%22%3A%5B%22" TCI_API_NAME_PREFIX "%22%5D%7D",
        .limit_ms = limit_ms
    };
    struct tci_api_answer answer;
    struct found found = { .count = 0 };
    size_t begin;
    if (tci_api_send(api, &request, &answer, NULL) == 0 && answer.status == 200)
        (void)tci_api_read_list(&answer, note, &found, NULL);
    tci_api_answer_free(&answer);
    /* The attack: a container that the daemon can never remove, and each sweep waits for that one alone. So
     * each has its share of the time, and another one is the first each time. */
    begin = found.count ? tci_clock_us() % found.count : 0;
    for (size_t i = 0; i < found.count && tci_clock_us() < until; i++) {
        const long share = tci_api_left_ms(until) / (long)(found.count - i);
        (void)tci_api_remove(api, found.ids[(begin + i) % found.count],
                             share > ONE_MS ? ONE_MS : share + 1, NULL, NULL);
    }
}
