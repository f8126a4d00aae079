/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the files that speak to a container engine share: the client for its socket, what its
 * answers say, the create bodies, and directories of ours that containers see.
 *
 * An engine's answer is checked like a stranger's: sizes are capped before they are read, every
 * field's type is looked at, and an id is taken only if it is one.
 */
#ifndef TCI_BACKEND_OCI_API_H
#define TCI_BACKEND_OCI_API_H

#include <jansson.h>
#include <stdatomic.h>
#include "backend/oci/oci.h"
#include "inside/curl_abi.h"
#include "json/write.h"

/* ---- the client (api.c) ---------------------------------------------------------------------- */

enum {
    TCI_API_ANSWER_MAX = 1 << 20,
    TCI_API_CONNECT_MS = 2000,
    TCI_API_ASK_MS = 5000,   /* what changes nothing */
    TCI_API_MAKE_MS = 10000, /* create, start, remove: each */
    TCI_API_PREFIX_MAX = 24,
    TCI_API_STAT_MAX = 2048,
};

/* Does not change after it was opened: used by many threads. */
struct tci_api {
    struct tci_curl curl;
    enum tci_oci_engine engine;
    char socket[TCI_OCI_SOCKET_MAX];
    char prefix[TCI_API_PREFIX_MAX]; /* "/v1.41", "/v4.0.0/libpod" */
};

struct tci_api_request {
    const char *method, *path; /* behind the prefix */
    const char *body;          /* JSON; NULL: none */
    size_t length;
    long limit_ms;
    const atomic_bool *abort; /* looked at about once a second; may be NULL */
};

struct tci_api_answer {
    int status;
    char api[16], libpod[16], server[TCI_OCI_VERSION_MAX]; /* headers of these names; "": none */
    char stat[TCI_API_STAT_MAX];                           /* X-Docker-Container-Path-Stat */
    struct tci_buf body;
};

const char *tci_api_name(const struct tci_api *api); /* "Docker", "Podman" */
/* Opens libcurl; asks nobody. */
int tci_api_open(struct tci_api *api, enum tci_oci_engine engine, const char *socket,
                 struct tc_error *reterr);
/* One request. 0: an answer of any status is in *ret (free it, also after -1). -1: there was
 * none that can be used, and *reterr says why. */
int tci_api_send(const struct tci_api *api, const struct tci_api_request *request,
                 struct tci_api_answer *ret, struct tc_error *reterr);
void tci_api_answer_free(struct tci_api_answer *answer);

/* ---- answers (api_answer.c) ------------------------------------------------------------------ */

enum { TCI_API_ID_LENGTH = 64, TCI_API_VOLUMES_MAX = 64, TCI_API_WORDS_MAX = 320 };

/* The document, or NULL with *reterr. */
json_t *tci_api_parse(const struct tci_api_answer *answer, struct tc_error *reterr);
/* The engine's own words for what went wrong, made fit for a message. */
void tci_api_words(const struct tci_api_answer *answer, char ret[TCI_API_WORDS_MAX]);
/* A container's id from the answer to create. */
int tci_api_read_id(const struct tci_api_answer *answer, char ret[TCI_API_ID_LENGTH + 1],
                    struct tc_error *reterr);
bool tci_api_is_id(const char *text);

struct tci_api_image {
    char id[TCI_API_ID_LENGTH + 1];
    const char *volumes[TCI_API_VOLUMES_MAX]; /* absolute, normal form */
    size_t volume_count;
    const char *annotation; /* the first one that a runtime could act on; NULL: none */
    /* Its directories on the host, the topmost first, with ":" between them; NULL: it does not say. */
    const char *layers;
    bool
        is_plain; /* containers are plain directories (vfs, btrfs): they can be read without being mounted */
};
int tci_api_read_image(const struct tci_api_answer *answer, struct tci_arena *arena,
                       struct tci_api_image *ret, struct tc_error *reterr);

/* One line of an answer's header, as it came. */
void tci_api_take_header(struct tci_api_answer *answer, const char *line, size_t length);
struct tci_api_version {
    char engine[TCI_OCI_VERSION_MAX]; /* "20.10.24" */
    unsigned api;                     /* Docker's, 1.41: 1041 */
    unsigned libpod;                  /* Podman's, 4.3.1: 4003 */
};
/* From the answer to /_ping: /version lets Podman start a dozen programs, and takes half a
 * second. */
int tci_api_read_version(const struct tci_api_answer *answer, struct tci_api_version *ret,
                         struct tc_error *reterr);
/* OCIRuntime of an inspected container of Podman; "": it does not say. */
void tci_api_read_runtime(const struct tci_api_answer *answer, char *buffer, size_t size);
/* State.OOMKilled of an inspected container. */
bool tci_api_read_oom(const struct tci_api_answer *answer);
/* A container is called this and 16 digits. */
#define TCI_API_NAME_PREFIX "toolcage-"
enum { TCI_API_NAME_LENGTH = 16 };
/* Calls `each` for every container of a list that has such a name and an owner's label. */
int tci_api_read_list(const struct tci_api_answer *answer,
                      void (*each)(void *data, const char *id, const char *owner), void *data,
                      struct tc_error *reterr);

/* ---- who owns it (api_owner.c) --------------------------------------------------------------- */

#define TCI_API_LABEL_OWNER "io.toolcage.owner"
#define TCI_API_LABEL_TOOL  "io.toolcage.tool"
enum { TCI_API_OWNER_MAX = 64 };

/* "PID-STARTED-PIDNS.TIMENS-BOOT": this process. */
int tci_api_owner(char ret[TCI_API_OWNER_MAX], struct tc_error *reterr);
/* Surely gone. False for what cannot be judged, or is not such a name at all. */
bool tci_api_owner_is_gone(const char *owner);

/* ---- directories (api_place.c) --------------------------------------------------------------- */

/* BASE/OWNER/pN, 0700 down to here: nobody but this user and the engine reaches what is below. */
struct tci_api_place {
    char owner[TCI_API_OWNER_MAX];
    char path[PATH_MAX]; /* "": none */
    int directory;       /* handle of it; -1 */
    size_t parent;       /* how much of `path` is the process' directory */
};

/* Makes it, and removes those of owners that are gone. */
int tci_api_place_open(struct tci_api_place *place, struct tc_error *reterr);
void tci_api_place_close(struct tci_api_place *place);
/* A file for the container: mode 0444, or 0555 for programs. */
int tci_api_place_write(const struct tci_api_place *place, const char *name, mode_t mode,
                        const void *bytes, size_t length, struct tc_error *reterr);
/* The directory of one cage, that the container sees as TCI_API_ENTRY_DIRECTORY: entry, the program,
 * and a listening socket, which is returned. */
int tci_api_place_cage(const struct tci_api_place *place, const char *name, bool program,
                       struct tc_error *reterr);
void tci_api_place_cage_remove(const struct tci_api_place *place, const char *name);

/* ---- what is asked for (api_docker.c, api_podman.c, api_mounts.c) ---------------------------- */

/* In the two bodies the cage's directory is written as this, and replaced for each cage: the
 * rest does not depend on it. 16 letters, as random names have. */
#define TCI_API_CAGE_MARK "@@@cage@@@cage@@"
/*
 * Where the container has it. The attack: an image with a link at a place that is known beforehand, or to
 * it; an engine follows it, mounts a granted directory over ours, and starts the program that an earlier
 * call has left there: without limits and filter, as no call.
 */
#define TCI_API_ENTRY_DIRECTORY TCI_ENTRY_DIRECTORY "-" TCI_API_CAGE_MARK

struct tci_api_body {
    const struct tci_oci_plan *plan;
    const struct tci_api_place *place;
    const struct tci_api_image *image;
};
int tci_api_docker_body(const struct tci_api_body *what, struct tci_buf *out,
                        struct tc_error *reterr);
int tci_api_podman_body(const struct tci_api_body *what, struct tci_buf *out,
                        struct tc_error *reterr);

/* A path of the host. `recursive`: with what is mounted below it. */
struct tci_api_bind {
    const char *host, *cage;
    bool writable, no_exec, recursive;
};
/* One bind, as the engine wants to read it. */
typedef void tci_api_bind_writer(struct tci_json *json, const struct tci_api_bind *bind);
/* The cage's own directory, then the plan's binds and files as binds: elements of an open array. */
int tci_api_write_binds(struct tci_json *json, const struct tci_api_body *what,
                        tci_api_bind_writer *write, struct tc_error *reterr);
void tci_api_write_list(struct tci_json *json, const char *key, const struct tci_strings *list);
const char *tci_api_runtime(enum tci_oci_runtime runtime); /* NULL: the engine's own */
/* Docker: volumes of an image that lie within granted paths become binds of the plan, of what is there
 * anyway; those that cannot are refused. `name`: the image's, for a message. Before the body is made. */
int tci_api_volumes(struct tci_oci_plan *plan, const char *name, const struct tci_api_image *image,
                    struct tc_error *reterr);
/* api_below.c: rootful engines: what the host has mounted below read-only paths becomes binds of the plan. After the
 * volumes, before the body is made. */
int tci_api_below(struct tci_oci_plan *plan, struct tc_error *reterr);
/* Is this place of the image's volumes to be covered, and by memory that may be read only? */
bool tci_api_covers(const struct tci_api_body *what, const char *volume, bool *ret_read_only);

/* ---- Podman without a service (podman_service.c) --------------------------------------------- */

struct tci_podman_service {
    int pid;   /* of the program that watches it; 0: none */
    int alive; /* our end of a pipe: closed, the service ends; -1 */
    const char
        *runtime; /* set before the start: the one that its containers get; NULL: its default */
};
int tci_podman_service_start(struct tci_podman_service *service, const char *program,
                             const struct tci_api_place *place, char ret_socket[TCI_OCI_SOCKET_MAX],
                             struct tc_error *reterr);
void tci_podman_service_end(struct tci_podman_service *service);
/* One that was started, and was killed since: nobody listens at `socket` any more. */
bool tci_podman_service_is_gone(const struct tci_podman_service *service, const char *socket);

/* ---- what others left (sweep.c) -------------------------------------------------------------- */

/* Removes containers with our label whose owner is gone, for at most `limit_ms`. Failing is no
 * error: the next one tries again. */
void tci_api_sweep(const struct tci_api *api, long limit_ms);
/* What is left until then, for a request; at least 1. */
long tci_api_left_ms(uint64_t until_us);
/* DELETE until it is gone, for at most `limit_ms`. */
int tci_api_remove(const struct tci_api *api, const char *name, long limit_ms,
                   const atomic_bool *abort, struct tc_error *reterr);

#endif
