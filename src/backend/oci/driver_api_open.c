/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the engines' driver does once for each plan: finds the engine or starts Podman's
 * service, sweeps, looks at the image, and writes down everything that all cages of the plan share.
 * No image is ever pulled: what a policy names is there, or it is an error.
 */
#include "backend/oci/driver_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "backend/program.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/quote.h"

enum {
    DOCKER_API = 1041,
    PODMAN_API = 4000,
    LOST_MS = 500,
    LOOK_US = 1000000,
    STALE_MS = 1000,
    /* All questions of a plan together: no call's own time limit is over them. Sweeping is the least
     * important of them. */
    OPEN_MS = 4000,
    OPEN_OWN_MS = 15000, /* of a service that we have just started, on a host that may be busy */
    SWEEP_MS = 1500,
};

static int ask(const struct tci_api *api, const char *path, uint64_t until,
               struct tci_api_answer *ret, struct tc_error *reterr)
{
    const struct tci_api_request request = { .method = "GET",
                                             .path = path,
                                             .limit_ms = tci_api_left_ms(until) };
    return tci_api_send(api, &request, ret, reterr);
}

static int too_old(const struct tci_api *api, const struct tci_api_version *version,
                   struct tc_error *reterr)
{
    bool docker = api->engine == TCI_OCI_ENGINE_DOCKER;
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "%s %s is too old", tci_api_name(api),
                  version->engine);
    tci_error_remedy(reterr,
                     docker ? "install Docker 20.10 or newer" : "install Podman 4 or newer");
    return -1;
}

/* Podman understands Docker's words, too, and not all of them as they are meant: an image's annotations, which
 * it hands to its runtime, are not named there. */
static int is_podman(const struct tci_api *api, struct tc_error *reterr)
{
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "%s is Podman's socket, not Docker's", api->socket);
    tci_error_remedy(reterr, "set container.engine = \"podman\"");
    return -1;
}

/* Which words it understands. */
static int agree(struct tci_api *api, struct tci_oci_choice *choice, uint64_t until,
                 struct tc_error *reterr)
{
    struct tci_api_answer answer;
    struct tci_api_version version = { 0 };
    int r = ask(api, "/_ping", until, &answer, reterr);
    if (r == 0)
        r = tci_api_read_version(&answer, &version, reterr);
    tci_api_answer_free(&answer);
    if (r < 0)
        return tci_error_wrap(reterr, "%s at %s", tci_api_name(api), api->socket);
    (void)snprintf(choice->version, sizeof choice->version, "%s", version.engine);
    if (api->engine == TCI_OCI_ENGINE_PODMAN) {
        if (version.libpod < PODMAN_API)
            return too_old(api, &version, reterr);
        (void)snprintf(api->prefix, sizeof api->prefix, "/v4.0.0/libpod");
        return 0;
    }
    if (version.libpod)
        return is_podman(api, reterr);
    if (version.api < DOCKER_API)
        return too_old(api, &version, reterr);
    /* Its own newest: newer daemons do not speak 1.41 any more. */
    (void)snprintf(api->prefix, sizeof api->prefix, "/v%u.%u", version.api / 1000,
                   version.api % 1000);
    return 0;
}

/* The attack: a reference that ends the path and adds parameters of its own. */
static void write_path(struct tci_buf *out, const char *reference)
{
    tci_buf_string(out, "/images/");
    for (; *reference; reference++) {
        unsigned char c = (unsigned char)*reference;
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            strchr("._-/:@", c))
            tci_buf_char(out, (char)c);
        else
            tci_buf_printf(out, "%%%02X", c);
    }
    tci_buf_string(out, "/json");
}

static int ask_image(const struct tci_api *api, const char *reference, long limit_ms,
                     struct tci_api_answer *ret, struct tc_error *reterr)
{
    struct tci_buf path = TCI_BUF_INIT(900);
    struct tci_api_request request = { .method = "GET", .limit_ms = limit_ms };
    int r;
    *ret = (struct tci_api_answer){ 0 };
    write_path(&path, reference);
    r = tci_buf_check(&path, reterr);
    request.path = path.data;
    if (r == 0)
        r = tci_api_send(api, &request, ret, reterr);
    tci_buf_free(&path);
    return r;
}

static const char *reference_of(const struct tci_oci_plan *plan)
{
    return plan->image ? plan->image : TCI_IMAGE_DEFAULT;
}

static int no_image(const struct tci_api *api, const char *reference, struct tc_error *reterr)
{
    const char *program = api->engine == TCI_OCI_ENGINE_DOCKER ? "docker" : "podman";
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "%s has no image \"%.200s\"", tci_api_name(api),
                  reference);
    if (strncmp(reference, TCI_IMAGE_DEFAULT, strlen(TCI_IMAGE_DEFAULT)) == 0)
        tci_error_remedy(reterr, "toolcage image build --load %s", program);
    else
        tci_error_remedy(reterr, "%s pull %.200s; or leave out image for toolcage's own", program,
                         reference);
    return -1;
}

static int refuse_annotation(const char *reference, const char *annotation, struct tc_error *reterr)
{
    char shown[TCI_QUOTE_MAX];
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                  "the image \"%.200s\" has the annotation %s, which Podman hands to the runtime",
                  reference, tci_quote(annotation, strlen(annotation), shown));
    tci_error_remedy(reterr, "build the image without it: an image may only have annotations that "
                             "describe it (org.opencontainers.image.*)");
    return -1;
}

static int find_image(struct tci_oci_plan *plan, struct tci_api_state *state, uint64_t until,
                      struct tc_error *reterr)
{
    const struct tci_api *api = &state->api;
    const char *reference = reference_of(plan);
    struct tci_api_answer answer;
    char words[TCI_API_WORDS_MAX];
    int r = ask_image(api, reference, tci_api_left_ms(until), &answer, reterr);
    if (r == 0 && answer.status == 404) {
        r = no_image(api, reference, reterr);
    } else if (r == 0 && answer.status != 200) {
        tci_api_words(&answer, words);
        r = tci_error_set(reterr, TC_ERROR_IO, "%s does not describe the image \"%.200s\": %s",
                          tci_api_name(api), reference, words);
    } else if (r == 0) {
        r = tci_api_read_image(&answer, plan->arena, &state->image, reterr);
    }
    if (r == 0 && state->image.annotation)
        r = refuse_annotation(reference, state->image.annotation, reterr);
    tci_api_answer_free(&answer);
    state->looked_us = tci_clock_us();
    return r;
}

/* Containers are made from the image that the plan saw, by its hash, and its volumes are
 * covered. Another image of the same name means another plan; so do annotations, which do not count
 * for the hash. */
bool tci_api_driver_is_stale(const struct tci_oci_plan *plan)
{
    struct tci_api_state *state = plan->driver_state;
    struct tci_api_answer answer;
    struct tci_api_image image;
    struct tci_arena *arena;
    bool look;
    /* Killed for its memory, or by an operator: the next plan starts another one. */
    if (atomic_load(&state->image_changed) ||
        tci_podman_service_is_gone(&state->service, state->api.socket))
        return true;
    (void)pthread_mutex_lock(&state->lock);
    look = tci_clock_us() - state->looked_us > LOOK_US;
    if (look)
        state->looked_us = tci_clock_us();
    (void)pthread_mutex_unlock(&state->lock);
    if (!look)
        return false;
    arena = tci_arena_new();
    /* What the engine does not say is for the call to find out. */
    if (arena && ask_image(&state->api, reference_of(plan), STALE_MS, &answer, NULL) == 0 &&
        (answer.status == 404 ||
         (answer.status == 200 && tci_api_read_image(&answer, arena, &image, NULL) == 0 &&
          (image.annotation || strcmp(image.id, state->image.id) != 0))))
        atomic_store(&state->image_changed, true);
    if (arena)
        tci_api_answer_free(&answer);
    tci_arena_free(arena);
    return atomic_load(&state->image_changed);
}

static int write_program(const struct tci_oci_plan *plan, const struct tci_api_place *place,
                         struct tc_error *reterr)
{
    tc_cleanup(tci_closep) int fd = -1;
    struct stat s;
    void *bytes;
    int r;
    if (plan->spec.program == TCI_PROGRAM_NONE)
        return 0;
    fd = tci_program_fd(plan->spec.program, reterr);
    if (fd < 0)
        return -1;
    bytes = fstat(fd, &s) < 0 ? MAP_FAILED
                              : mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return tci_error_no_memory(reterr);
    r = tci_api_place_write(place, "program", 0555, bytes, (size_t)s.st_size, reterr);
    (void)munmap(bytes, (size_t)s.st_size);
    return r;
}

static int write_files(const struct tci_oci_plan *plan, const struct tci_api_state *state,
                       struct tc_error *reterr)
{
    const struct tci_api_place *place = &state->place;
    char name[24];
    if (tci_api_place_write(place, "entry", 0555, tci_entry_blob, tci_entry_blob_size, reterr) <
            0 ||
        write_program(plan, place, reterr) < 0)
        return -1;
    for (size_t i = 0; i < plan->mount_count; i++) {
        const struct tci_oci_mount *m = &plan->mounts[i];
        if (m->kind != TCI_OCI_MOUNT_FILE)
            continue;
        (void)snprintf(name, sizeof name, "f%zu", i);
        if (tci_api_place_write(place, name,
                                m->mode ? (mode_t)strtoul(m->mode, NULL, 8) & 0444 : 0444,
                                m->bytes ? m->bytes : "", m->length, reterr) < 0)
            return -1;
    }
    if (state->api.engine == TCI_OCI_ENGINE_PODMAN && plan->seccomp_json)
        return tci_api_place_write(place, "seccomp.json", 0444, plan->seccomp_json,
                                   strlen(plan->seccomp_json), reterr);
    return 0;
}

static int open_state(struct tci_oci_plan *plan, struct tci_api_state *state,
                      struct tc_error *reterr)
{
    const struct tci_api_body what = { .plan = plan,
                                       .place = &state->place,
                                       .image = &state->image };
    char socket[TCI_OCI_SOCKET_MAX];
    uint64_t until;
    (void)snprintf(socket, sizeof socket, "%s", plan->choice.socket);
    if (tci_api_place_open(&state->place, reterr) < 0)
        return -1;
    state->service.runtime = tci_api_runtime(plan->choice.runtime);
    if (!*socket && tci_podman_service_start(&state->service, plan->choice.program, &state->place,
                                             socket, reterr) < 0)
        return -1;
    until = tci_clock_us() + (state->service.pid ? OPEN_OWN_MS : OPEN_MS) * UINT64_C(1000);
    if (tci_api_open(&state->api, plan->choice.engine, socket, reterr) < 0 ||
        agree(&state->api, &plan->choice, until, reterr) < 0)
        return -1;
    tci_api_sweep(&state->api, SWEEP_MS);
    if (find_image(plan, state, until, reterr) < 0)
        return -1;
    if (plan->choice.engine == TCI_OCI_ENGINE_DOCKER &&
        tci_api_volumes(plan, reference_of(plan), &state->image, reterr) < 0)
        return -1;
    if (tci_api_below(plan, reterr) < 0)
        return -1;
    if (write_files(plan, state, reterr) < 0)
        return -1;
    return plan->choice.engine == TCI_OCI_ENGINE_DOCKER
               ? tci_api_docker_body(&what, &state->body, reterr)
               : tci_api_podman_body(&what, &state->body, reterr);
}

static void close_state(struct tci_api_state *state)
{
    char name[sizeof TCI_API_NAME_PREFIX + TCI_API_NAME_LENGTH];
    for (size_t i = 0; i < state->lost_count; i++) {
        (void)snprintf(name, sizeof name, TCI_API_NAME_PREFIX "%s", state->lost[i]);
        (void)tci_api_remove(&state->api, name, LOST_MS / (long)state->lost_count, NULL, NULL);
    }
    tci_podman_service_end(&state->service);
    tci_api_place_close(&state->place);
    tci_buf_free(&state->body);
    tci_api_points_free(&state->points);
    (void)pthread_mutex_destroy(&state->look_lock);
    (void)pthread_mutex_destroy(&state->lock);
    free(state);
}

int tci_api_driver_open(struct tci_oci_plan *plan, struct tc_error *reterr)
{
    struct tci_api_state *state = calloc(1, sizeof *state);
    if (!state)
        return tci_error_no_memory(reterr);
    state->service.alive = state->place.directory = -1;
    state->body = (struct tci_buf)TCI_BUF_INIT(TCI_API_ANSWER_MAX);
    (void)pthread_mutex_init(&state->lock, NULL);
    (void)pthread_mutex_init(&state->look_lock, NULL);
    if (open_state(plan, state, reterr) < 0) {
        close_state(state);
        return -1;
    }
    plan->driver_state = state;
    return 0;
}

void tci_api_driver_close(struct tci_oci_plan *plan)
{
    close_state(plan->driver_state);
    plan->driver_state = NULL;
}
