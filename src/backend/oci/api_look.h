/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what is looked at in an image before an engine mounts anything into it.
 *
 * The attack: an engine mounts where links of an image lead to, and makes what is missing there. An image
 * with /data -> /work lets root make directories in the host's directory that is granted as /work; one with
 * /etc/group -> /work/x a file there, one with /dev -> /work/d device nodes; and VOLUME at a link
 * covers a grant. When the container can be looked at, it has happened.
 *
 * So each place where something will be mounted is followed through the image first. The rule: links must
 * not put one place into another that it does not lie in by its name. A link to somewhere in the image
 * alone (/var/run -> /run) is no harm.
 */
#ifndef TCI_BACKEND_OCI_API_LOOK_H
#define TCI_BACKEND_OCI_API_LOOK_H

#include "backend/oci/api.h"

/* ---- what is seen (api_layers.c, api_archive.c) ------------------------------------------------ */

enum tci_api_kind {
    TCI_API_MISSING,
    TCI_API_DIRECTORY,
    TCI_API_FILE,
    TCI_API_LINK,
    TCI_API_OTHER /* a named pipe, a socket, a device */
};
enum { TCI_API_TARGET_MAX = 1024 };
struct tci_api_seen {
    enum tci_api_kind kind;
    char target[TCI_API_TARGET_MAX]; /* LINK */
};

/* The layers of an image, the topmost first, as paths of the host with ":" between them. `path`: absolute,
 * normal form, and no link above its last name. 0, or a negative errno: they cannot be read here, or
 * only the kernel understands them. */
int tci_api_layers_look(const char *layers, const char *path, struct tci_api_seen *ret);

/* A container of the image alone, that is never started, and is asked for one path after the other. */
struct tci_api_archive {
    const struct tci_api *api;
    const atomic_bool *abort; /* may be NULL */
    uint64_t until_us;        /* all questions together */
    char name[sizeof TCI_API_NAME_PREFIX + TCI_API_NAME_LENGTH];
    bool is_made;
};
int tci_api_archive_open(struct tci_api_archive *archive, const struct tci_api *api,
                         const struct tci_api_image *image, const char *owner,
                         struct tc_error *reterr);
int tci_api_archive_look(const struct tci_api_archive *archive, const char *path,
                         struct tci_api_seen *ret, struct tc_error *reterr);
/* After the last question: was it there all the time? "No such container" and "no such path" look alike, and who removes
 * the one (a prune) would make the image look empty. */
int tci_api_archive_confirm(const struct tci_api_archive *archive, struct tc_error *reterr);
void tci_api_archive_close(struct tci_api_archive *archive);

/* ---- where everything will be (api_look.c) ----------------------------------------------------- */

struct tci_api_point {
    const char *cage; /* as it is asked for */
    const char *real; /* where that is in the image, without links */
    bool is_mask;     /* a hidden path: covered where it is, if it is there at all */
    bool has_below;   /* a bind that brings along what the host has mounted below it */
};
struct tci_api_points {
    struct tci_arena *arena;
    struct tci_api_point *items; /* the plan's mounts first, in their order */
    size_t count;
};

/* All places of a plan; refuses an image whose links do harm. `layers`: NULL: not known, then the engine is
 * asked. `ret` is freed with tci_api_points_free(). */
struct tci_api_look {
    const struct tci_oci_plan *plan;
    const struct tci_api *api;
    const struct tci_api_image *image;
    const char *image_name, *owner, *layers;
    const atomic_bool *abort; /* may be NULL */
};
int tci_api_look(const struct tci_api_look *what, struct tci_api_points *ret,
                 struct tc_error *reterr);
void tci_api_points_free(struct tci_api_points *points);
/* Is this what the container may have mounted there? */
bool tci_api_points_know(const struct tci_api_points *points, const char *place);

#endif
