/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: looking at an image between the making of a plan's first container and its start. The engine has
 * mounted nothing by then. Images do not change: what was found holds for all containers of the plan.
 */
#include "backend/oci/driver_api.h"

#include <stdio.h>
#include <string.h>

static int ask_to(const struct tci_api_job *job, const char *what, struct tci_api_answer *ret,
                  struct tc_error *reterr)
{
    char path[128];
    const struct tci_api_request request = {
        .method = "POST", .path = path, .limit_ms = TCI_API_ASK_MS, .abort = &job->abort
    };
    (void)snprintf(path, sizeof path, "/containers/%s/%s", job->id, what);
    return tci_api_send(job->api, &request, ret, reterr);
}

/* Podman without overlays: the container is a directory, and mounting it tells which, as text or as JSON. */
static int find_directory(const struct tci_api_job *job, char ret[PATH_MAX],
                          struct tc_error *reterr)
{
    struct tci_api_answer answer;
    const char *path;
    size_t length;
    int r = ask_to(job, "mount", &answer, reterr);
    path = answer.body.data ? answer.body.data : "";
    path += *path == '"';
    length = strcspn(path, "\"\n:\\");
    if (r == 0 && answer.status == 200 && *path == '/' && length < PATH_MAX)
        (void)snprintf(ret, PATH_MAX, "%.*s", (int)length, path);
    else if (r == 0)
        r = tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                          "Podman does not say where the container's files are (%d)",
                          answer.status);
    tci_api_answer_free(&answer);
    return r;
}

static int look(struct tci_api_job *job, struct tci_api_state *state, struct tc_error *reterr)
{
    const struct tci_oci_plan *plan = job->plan;
    struct tci_api_look what = { .plan = plan,
                                 .api = &state->api,
                                 .image = &state->image,
                                 .image_name = plan->image ? plan->image : TCI_IMAGE_DEFAULT,
                                 .owner = state->place.owner,
                                 .layers = state->image.layers,
                                 .abort = &job->abort };
    char directory[PATH_MAX] = "";
    struct tci_api_answer answer;
    int r = 0;
    /* A rootless engine's own mounts are in a namespace of its own: here their places are empty. */
    if (job->api->engine == TCI_OCI_ENGINE_PODMAN && !what.layers &&
        (state->image.is_plain || !plan->choice.engine_is_rootless))
        r = find_directory(job, directory, reterr);
    if (*directory)
        what.layers = directory;
    if (r == 0)
        r = tci_api_look(&what, &state->points, reterr);
    if (*directory) {
        (void)ask_to(job, "unmount", &answer, NULL);
        tci_api_answer_free(&answer);
    }
    return r;
}

int tci_api_job_look(struct tci_api_job *job, struct tc_error *reterr)
{
    struct tci_api_state *state = job->plan->driver_state;
    int r = 0;
    (void)pthread_mutex_lock(&state->look_lock);
    if (!state->points.arena)
        r = look(job, state, reterr);
    (void)pthread_mutex_unlock(&state->look_lock);
    return r;
}

const struct tci_api_points *tci_api_points_of(const struct tci_oci_plan *plan)
{
    struct tci_api_state *state = plan->driver_state;
    const struct tci_api_points *points;
    (void)pthread_mutex_lock(&state->look_lock);
    points = &state->points;
    (void)pthread_mutex_unlock(&state->look_lock);
    return points;
}
