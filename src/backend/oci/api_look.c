/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: where the places of a plan are in its image, and the rule that links must keep (api_look.h). */
#include "backend/oci/api_look.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/path.h"

enum { LINKS_MAX = 40, ROOM = TCI_PATH_MAX + 1 };

struct memory {
    const char *path;
    struct tci_api_seen seen;
    struct memory *next;
};

struct looking {
    const struct tci_api_look *what;
    struct tci_api_points *points;
    struct tci_api_archive archive;
    bool ask_engine;
    struct memory *known;
    struct tc_error *reterr;
};

/* ---- one path ---------------------------------------------------------------------------------- */

static int look_afresh(struct looking *l, const char *path, struct tci_api_seen *ret)
{
    const struct tci_api_look *what = l->what;
    if (!l->ask_engine && what->layers && tci_api_layers_look(what->layers, path, ret) == 0)
        return 0;
    /* Podman says of a link that leads to nothing that there is none. */
    if (what->api->engine == TCI_OCI_ENGINE_PODMAN) {
        tci_error_set(l->reterr, TC_ERROR_UNSUPPORTED,
                      "the image \"%.200s\" cannot be looked at: %.300s in it cannot be read",
                      what->image_name, path);
        tci_error_remedy(l->reterr,
                         "use Podman's storage driver \"overlay\" or \"vfs\"; or make the image "
                         "again as one layer (podman build --squash-all)");
        return -1;
    }
    l->ask_engine = true;
    if (!l->archive.is_made &&
        tci_api_archive_open(&l->archive, what->api, what->image, what->owner, l->reterr) < 0)
        return -1;
    return tci_api_archive_look(&l->archive, path, ret, l->reterr);
}

static const struct tci_api_seen *look_at(struct looking *l, const char *path)
{
    struct memory *m;
    for (m = l->known; m; m = m->next)
        if (strcmp(m->path, path) == 0)
            return &m->seen;
    m = tci_arena_new_of(l->points->arena, struct memory);
    if (!m || !(m->path = tci_arena_strdup(l->points->arena, path))) {
        tci_error_no_memory(l->reterr);
        return NULL;
    }
    if (look_afresh(l, path, &m->seen) < 0)
        return NULL;
    m->next = l->known;
    l->known = m;
    return &m->seen;
}

static int refuse(const struct looking *l, const char *place, const char *why, const char *other)
{
    tci_error_set(l->reterr, TC_ERROR_UNSUPPORTED,
                  "the image \"%.200s\" has something at %.200s that %s%.200s", l->what->image_name,
                  place, why, other);
    tci_error_remedy(l->reterr,
                     "use an image without a link at %.200s or above it; or grant another "
                     "path of the container (\"HOST:CAGE\")",
                     place);
    return -1;
}

/* The attack: see api_look.h. */
static int check_place(const struct looking *l, const char *cage, const char *real)
{
    for (size_t i = 0; i < l->points->count; i++) {
        const struct tci_api_point *other = &l->points->items[i];
        if (other->real && !other->is_mask && tci_path_is_within(real, other->real) &&
            !tci_path_is_within(cage, other->cage))
            return refuse(l, cage, "leads into what is mounted at ", other->cage);
    }
    return 0;
}

/* A walk through the image. */
struct walk {
    const char *cage;
    bool check; /* each step behind a link, too: the attack is a way in and out again */
    char *left; /* still to go */
    char *real; /* so far; "": the root */
    unsigned links;
    enum tci_api_kind kind;
};

static int follow(const struct looking *l, struct walk *w, const char *target)
{
    char joined[ROOM];
    const int n = snprintf(joined, sizeof joined, "%s/%s", target, w->left);
    if (++w->links > LINKS_MAX || n < 0 || (size_t)n >= sizeof joined)
        return refuse(l, w->cage, "is a link without an end", "");
    memcpy(w->left, joined, (size_t)n + 1);
    if (*target == '/')
        w->real[0] = '\0';
    w->kind = TCI_API_DIRECTORY;
    return 0;
}

static int step(struct looking *l, struct walk *w, const char *name)
{
    const size_t length = strlen(w->real);
    const struct tci_api_seen *seen;
    char *slash;
    if (strcmp(name, ".") == 0)
        return 0;
    if (strcmp(name, "..") == 0) {
        slash = strrchr(w->real, '/');
        if (slash)
            *slash = '\0';
        w->kind = TCI_API_DIRECTORY;
        return 0;
    }
    if (length + strlen(name) + 2 > ROOM)
        return refuse(l, w->cage, "is too long", "");
    w->real[length] = '/';
    memcpy(w->real + length + 1, name, strlen(name) + 1);
    if (w->kind == TCI_API_MISSING) /* and so is all below it */
        return 0;
    seen = look_at(l, w->real);
    if (!seen)
        return -1;
    w->kind = seen->kind;
    if (w->check && w->links && check_place(l, w->cage, w->real) < 0)
        return -1;
    if (seen->kind != TCI_API_LINK)
        return 0;
    w->real[length] = '\0';
    return follow(l, w, seen->target);
}

/* Where `cage` is. NULL: *reterr is set. */
static const char *walk(struct looking *l, const char *cage, bool check,
                        enum tci_api_kind *ret_kind)
{
    char name[TCI_COMPONENT_MAX + 1], *room = malloc(2 * (size_t)ROOM);
    struct walk w = { .cage = cage, .check = check, .kind = TCI_API_DIRECTORY };
    const char *found = NULL;
    int r = 0;
    if (!room) {
        tci_error_no_memory(l->reterr);
        return NULL;
    }
    w.left = room;
    w.real = room + ROOM;
    w.real[0] = '\0';
    (void)snprintf(w.left, ROOM, "%s", cage);
    while (r == 0 && tci_path_take(w.left, name))
        r = step(l, &w, name);
    if (r == 0 && w.left[strspn(w.left, "/")])
        r = refuse(l, cage, "is too long", "");
    if (r == 0) {
        found = tci_arena_strdup(l->points->arena, *w.real ? w.real : "/");
        if (!found)
            tci_error_no_memory(l->reterr);
    }
    *ret_kind = w.kind;
    free(room);
    return found;
}

/* ---- all of them --------------------------------------------------------------------------------- */

/* What lies in a mount by its name is not of the image: the outermost other one around it. */
static const struct tci_api_point *around(const struct tci_api_points *points,
                                          const struct tci_api_point *point)
{
    const struct tci_api_point *found = NULL;
    for (size_t i = 0; i < points->count; i++) {
        const struct tci_api_point *other = &points->items[i];
        if (!other->is_mask && strcmp(other->cage, point->cage) != 0 &&
            tci_path_is_within(point->cage, other->cage) &&
            (!found || strlen(other->cage) < strlen(found->cage)))
            found = other;
    }
    return found;
}

static int place(struct looking *l, struct tci_api_point *point, bool check)
{
    const struct tci_api_point *above = around(l->points, point);
    const char *base = above ? above->cage : point->cage, *real;
    enum tci_api_kind kind = TCI_API_DIRECTORY;
    check = check && !point->is_mask;
    real = walk(l, base, check && !above, &kind);
    if (!real)
        return -1;
    if (!above && !point->is_mask && kind == TCI_API_OTHER)
        return refuse(l, point->cage, "is neither a file nor a directory", "");
    if (above)
        real = tci_arena_printf(l->points->arena, "%s%s", real, point->cage + strlen(base));
    if (!real)
        return tci_error_no_memory(l->reterr);
    point->real = real;
    return check ? check_place(l, point->cage, real) : 0;
}

/* The attack: a named pipe as /etc/passwd. Docker's daemon reads it for ever, and can never remove
 * the container. It does so in the image, whatever is mounted there. */
static int check_accounts(struct looking *l)
{
    static const char *const files[] = { "/etc/passwd", "/etc/group" };
    for (size_t i = 0; i < tci_array_size(files); i++) {
        enum tci_api_kind kind;
        if (!walk(l, files[i], false, &kind))
            return -1;
        if (kind == TCI_API_OTHER || kind == TCI_API_DIRECTORY)
            return refuse(l, files[i], "is no file", "");
    }
    return 0;
}

static void add(struct tci_api_points *points, const char *cage)
{
    points->items[points->count++].cage = cage;
}

/* What engines mount by themselves, in every container. Places in /proc and /sys are the kernel's. */
static const char *const own[] = {
    "/dev",
    "/proc",
    "/sys",
    "/dev/pts",
    "/dev/shm",
    "/dev/mqueue",
    "/dev/console",
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/etc/hosts",
    "/etc/hostname",
    "/etc/passwd",
    "/etc/group",
    "/etc/resolv.conf",
    "/run/.containerenv", /* Podman's; the last one */
};

static int list_points(const struct tci_api_look *what, struct tci_api_points *points)
{
    const struct tci_oci_plan *plan = what->plan;
    const bool docker = plan->choice.engine == TCI_OCI_ENGINE_DOCKER;
    size_t masks = 0;
    while (plan->masked && plan->masked[masks])
        masks++;
    points->items = tci_arena_new_array(
        points->arena, plan->mount_count + what->image->volume_count + masks + tci_array_size(own),
        struct tci_api_point);
    if (!points->items)
        return -1;
    for (size_t i = 0; i < plan->mount_count; i++) {
        const struct tci_oci_mount *m = &plan->mounts[i];
        points->items[points->count].has_below = m->kind == TCI_OCI_MOUNT_BIND && !m->is_file &&
                                                 (m->writable || plan->choice.engine_is_rootless);
        add(points, m->cage);
    }
    for (size_t i = 0; i < tci_array_size(own) - docker; i++)
        add(points, own[i]);
    for (size_t i = 0; docker && i < what->image->volume_count; i++)
        add(points, what->image->volumes[i]);
    for (size_t i = 0; i < masks; i++) {
        points->items[points->count].is_mask = true;
        add(points, plan->masked[i]);
    }
    return 0;
}

int tci_api_look(const struct tci_api_look *what, struct tci_api_points *ret,
                 struct tc_error *reterr)
{
    struct tci_api_points points = { .arena = tci_arena_new() };
    struct looking l = {
        .what = what, .points = &points, .archive = { .abort = what->abort }, .reterr = reterr
    };
    int r = points.arena && list_points(what, &points) == 0 ? 0 : tci_error_no_memory(reterr);
    if (r == 0)
        r = check_accounts(&l);
    /* First where all of them are, then whether one is in another. */
    for (unsigned check = 0; check < 2; check++)
        for (size_t i = 0; i < points.count && r == 0; i++)
            r = place(&l, &points.items[i], check);
    if (r == 0 && l.archive.is_made)
        r = tci_api_archive_confirm(&l.archive, reterr);
    tci_api_archive_close(&l.archive);
    if (r == 0)
        *ret = points;
    else
        tci_api_points_free(&points);
    return r;
}

void tci_api_points_free(struct tci_api_points *points)
{
    tci_arena_free(points->arena);
    *points = (struct tci_api_points){ 0 };
}

bool tci_api_points_know(const struct tci_api_points *points, const char *place)
{
    if (strcmp(place, "/") == 0 || tci_path_is_within(place, "/proc") ||
        tci_path_is_within(place, "/sys"))
        return true;
    for (size_t i = 0; i < points->count; i++)
        if (strcmp(place, points->items[i].real) == 0 ||
            strcmp(place, points->items[i].cage) == 0 ||
            (points->items[i].has_below && tci_path_is_within(place, points->items[i].real)))
            return true;
    return false;
}
