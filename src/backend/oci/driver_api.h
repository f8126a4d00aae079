/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the files of the engines' driver share: its state for each plan, and for each cage. */
#ifndef TCI_BACKEND_OCI_DRIVER_API_H
#define TCI_BACKEND_OCI_DRIVER_API_H

#include <pthread.h>
#include "backend/oci/api.h"
#include "backend/oci/api_look.h"

enum { TCI_API_LOST_MAX = 32 };

/* Once for each plan; does not change after open, except for what `lock` guards. */
struct tci_api_state {
    struct tci_api api;
    struct tci_podman_service service;
    struct tci_api_place place;
    struct tci_api_image image;
    struct tci_buf body; /* with TCI_API_CAGE_MARK in it */
    pthread_mutex_t lock;
    /* Containers that the engine did not remove when it was asked: asked for again. */
    char lost[TCI_API_LOST_MAX][TCI_API_NAME_LENGTH + 1];
    size_t lost_count;
    uint64_t looked_us; /* when the image was last looked at */
    atomic_bool image_changed;
    /* Where everything is in the image: looked at by the first container, before it starts. */
    pthread_mutex_t look_lock;
    struct tci_api_points points;
};

/* Once for each cage. A thread of its own makes the requests; it sees nothing of the cage but
 * this. */
struct tci_api_job {
    const struct tci_api *api;
    const struct tci_oci_plan *plan;
    char
        name[TCI_API_NAME_LENGTH + 1]; /* of its directory; the container is "toolcage-" and this */
    atomic_bool *image_changed;        /* of the plan: set when the engine has the image no more */
    const char *runtime; /* to be checked after create; NULL: the engine does as it is told */
    char *body;
    size_t body_length;
    int listening, event, epoll;
    pthread_t thread;
    bool has_thread;
    atomic_bool killed; /* do not start what is not started */
    atomic_bool abort;  /* give up requests */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Guarded by `lock`. */
    char id[TCI_API_ID_LENGTH + 1];
    bool connected, finished, failed;
    struct tc_error error;
};

/* driver_api_job.c: the thread: creates the container, starts it, and sees to it that it calls
 * back. */
void *tci_api_job_work(void *data);
/* It has called: the thread may end. */
void tci_api_job_connected(struct tci_api_job *job);
/* Waits for the thread, gives it up after a while, and joins it. False: it is not known whether
 * there is a container. */
bool tci_api_job_join(struct tci_api_job *job);

/* driver_api_look.c: between create and start: the image's links, once for each plan. */
int tci_api_job_look(struct tci_api_job *job, struct tc_error *reterr);
/* Once a container was started. */
const struct tci_api_points *tci_api_points_of(const struct tci_oci_plan *plan);

/* driver_api_ready.c */
int tci_api_ready(struct tci_oci_cage *cage, struct tc_error *reterr);

/* driver_api_memory.c */
unsigned tci_api_hits(struct tci_oci_cage *cage, bool ask);

/* driver_api_open.c */
int tci_api_driver_open(struct tci_oci_plan *plan, struct tc_error *reterr);
void tci_api_driver_close(struct tci_oci_plan *plan);
bool tci_api_driver_is_stale(const struct tci_oci_plan *plan);

#endif
