/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: judging a place. The attack: a model that talks a tool into changing the tool's own policy, or a server
 * that changes its own pin, is free from then on. Everybody who asks whether that is possible asks here.
 *
 * A place is reached when a directory on the way to it is, by device and inode, one that a cage may write; or
 * when it is within such a directory in its file system, whatever mounts lead to the one and to the other; or
 * when it has another name. Invariant: what cannot be known is reached.
 *
 * That a narrower rule of the cage hides it there, or makes it readable, is no help. The attack: somebody writes
 * a new file and renames it, as editors do; the kernel takes the cover off running cages with the old one.
 */
#include "policy/reach_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/path.h"

/* ---- making it ------------------------------------------------------------------------------ */

static void note(struct tci_reach *reach, const struct tci_filesystem *cage)
{
    for (size_t i = 0; i < cage->count; i++)
        if (cage->rules[i].access == TCI_ACCESS_WRITABLE && cage->rules[i].host)
            reach->hosts[reach->host_count++] = cage->rules[i].host;
}

static struct tci_reach *prepare(size_t rules)
{
    struct tci_arena *arena = tci_arena_new();
    struct tci_reach *reach = arena ? tci_arena_new_of(arena, struct tci_reach) : NULL;
    if (reach)
        reach->hosts = tci_arena_new_array(arena, rules + 1, const char *);
    if (!reach || !reach->hosts) {
        tci_arena_free(arena);
        return NULL;
    }
    reach->arena = arena;
    return reach;
}

/* Why something is not known: everything that allocates leaves this behind. */
static enum tci_reached say_unknown(void)
{
    return errno == ENOMEM ? TCI_REACHED_NO_MEMORY : TCI_REACHED_UNKNOWN;
}

static void finish(struct tci_reach *reach)
{
    errno = 0;
    if (reach->host_count && tci_reach_collect(reach) < 0)
        reach->unknown = say_unknown();
}

struct tci_reach *tci_reach_of_cage(const struct tci_filesystem *cage)
{
    return tci_reach_of_cage_in(NULL, cage);
}

struct tci_reach *tci_reach_of_cage_in(const struct tci_mount_table *mounts,
                                       const struct tci_filesystem *cage)
{
    struct tci_reach *reach = prepare(cage->count);
    if (!reach)
        return NULL;
    if (mounts)
        reach->mounts = *mounts;
    note(reach, cage);
    finish(reach);
    return reach;
}

struct tci_reach *tci_reach_of_policy(const struct tc_policy *policy)
{
    struct tci_reach *reach;
    size_t rules = 0;
    for (size_t i = 0; i < policy->tool_count; i++)
        rules += policy->tools[i].settings.filesystem.count;
    reach = prepare(rules);
    if (!reach)
        return NULL;
    for (size_t i = 0; i < policy->tool_count; i++)
        note(reach, &policy->tools[i].settings.filesystem);
    finish(reach);
    return reach;
}

void tci_reach_free(struct tci_reach *reach)
{
    if (reach)
        tci_arena_free(reach->arena); /* it is in it itself */
}

void tci_reach_freep(struct tci_reach **reach)
{
    tci_reach_free(*reach);
}

bool tci_reach_is_empty(const struct tci_reach *reach)
{
    return !reach->host_count;
}

/* ---- one place ------------------------------------------------------------------------------ */

/* False: it cannot be looked at. */
static bool make_chain(struct tci_reach *reach, const char *place)
{
    struct tci_reach_chain *chain = &reach->chain;
    char *part = tci_arena_strdup(reach->arena, place);
    const size_t length = strlen(place);
    chain->count = 0;
    if (!part || place[0] != '/')
        return false;
    for (size_t end = 1; end <= length; end++) {
        struct stat st;
        char next = part[end];
        if (end > 1 && next != '/' && next != '\0') /* "/" itself is the first */
            continue;
        part[end] = '\0';
        if (chain->count == TCI_REACH_DEPTH_MAX || lstat(part, &st) < 0)
            return false;
        part[end] = next;
        chain->items[chain->count].device = st.st_dev;
        chain->items[chain->count++].inode = st.st_ino;
        chain->is_linked = S_ISREG(st.st_mode) && st.st_nlink > 1;
    }
    return true;
}

/* By what the directories are. Names do not tell where case does not count, and what is mounted on the way,
 * read-only, may be gone at the next start. */
static const char *find_by_inode(const struct tci_reach *reach)
{
    const struct tci_reach_chain *chain = &reach->chain;
    for (size_t i = 0; i < reach->top_count; i++) {
        const struct tci_reach_top *top = &reach->tops[i];
        for (int k = chain->count - 1; k >= 0; k--)
            if (chain->items[k].inode == top->inode && chain->items[k].device == top->device)
                return top->host;
    }
    return NULL;
}

/* What is mounted over hides what is below it, in the cage as well. */
static bool is_there(const struct tci_reach_source *source)
{
    return !source->below || tci_mount_is_seen(source->below);
}

/* By where it is in its file system: a bind mount has other parents there than its path says. A file that has
 * other names can be written by any of them, and nobody can say where they are: somewhere in the file system. */
static const char *find_by_origin(const struct tci_reach *reach,
                                  const struct tci_mount_origin *place, bool anywhere)
{
    for (size_t i = 0; i < reach->source_count; i++) {
        const struct tci_reach_source *source = &reach->sources[i];
        if (tci_mounts_are_same(source->origin.mount, place->mount) &&
            (anywhere || tci_path_is_within(place->path, source->origin.path)) && is_there(source))
            return source->host;
    }
    return NULL;
}

/* ---- overlays ------------------------------------------------------------------------------- */

struct judging {
    struct tci_reach *reach;
    struct tci_mount_origin origin; /* of the place */
    int depth;
    const char *host;
};

static enum tci_reached judge(struct tci_reach *reach, const char *place, int depth,
                              const char **ret_host);

/* In a lower layer a name may stand for another directory, and the work directory has no names of ours: there
 * it is enough that a cage can write something. */
static const char *find_within(const struct tci_reach *reach, const struct tci_mount_origin *layer)
{
    for (size_t i = 0; i < reach->source_count; i++) {
        const struct tci_reach_source *source = &reach->sources[i];
        if (tci_mounts_are_same(source->origin.mount, layer->mount) &&
            tci_path_is_within(source->origin.path, layer->path) && is_there(source))
            return source->host;
    }
    return NULL;
}

/* The attack: the policy is seen through an overlay, and the tool may write the layer that it lies in. */
static int judge_layer(void *context, enum tci_reach_layer kind, const char *path)
{
    struct judging *judging = context;
    struct tci_reach *reach = judging->reach;
    const char *inside = judging->origin.path[1] ? judging->origin.path : "";
    const char *place = tci_arena_printf(reach->arena, "%s%s", path[1] ? path : "", inside);
    struct tci_mount_origin layer;
    struct stat st;
    int r;
    if (!place)
        return -1;
    if (kind == TCI_LAYER_WORK || lstat(*place ? place : "/", &st) < 0)
        place = path;
    r = (int)judge(reach, *place ? place : "/", judging->depth + 1, &judging->host);
    if (r != TCI_REACHED_NOT || kind == TCI_LAYER_UPPER)
        return r;
    if (tci_mount_table_locate(&reach->mounts, path, reach->arena, &layer) < 0)
        return -1;
    judging->host = find_within(reach, &layer);
    return judging->host ? TCI_REACHED : TCI_REACHED_NOT;
}

static enum tci_reached judge(struct tci_reach *reach, const char *place, int depth,
                              const char **ret_host)
{
    struct judging judging = { .reach = reach, .depth = depth };
    int r;
    if (depth > TCI_REACH_LAYERS_MAX || !make_chain(reach, place) ||
        tci_mount_table_locate(&reach->mounts, place, reach->arena, &judging.origin) < 0)
        return TCI_REACHED_UNKNOWN;
    *ret_host = find_by_inode(reach);
    if (!*ret_host)
        *ret_host = find_by_origin(reach, &judging.origin, false);
    if (*ret_host)
        return TCI_REACHED;
    if (reach->chain.is_linked)
        *ret_host = find_by_origin(reach, &judging.origin, true);
    if (*ret_host)
        return TCI_REACHED_BY_NAME;
    r = tci_reach_each_layer(reach, judging.origin.mount, judge_layer, &judging);
    *ret_host = judging.host;
    return r < 0 ? TCI_REACHED_UNKNOWN : (enum tci_reached)r;
}

enum tci_reached tci_reach_look(struct tci_reach *reach, const char *place, const char **ret_host)
{
    const char *host = NULL;
    enum tci_reached reached = reach->unknown;
    if (reach->host_count && !reached) {
        errno = 0;
        reached = judge(reach, place, 0, &host);
        if (reached && errno == ENOMEM)
            reached = TCI_REACHED_NO_MEMORY;
    }
    if (ret_host)
        *ret_host = host ? host : reach->host_count ? reach->hosts[0] : "";
    return reached;
}

enum tci_reached tci_reach_look_below(struct tci_reach *reach, const char *place,
                                      const char **ret_host)
{
    struct tci_mount_origin origin;
    *ret_host = reach->host_count ? reach->hosts[0] : "";
    if (!reach->host_count || reach->unknown)
        return reach->unknown;
    errno = 0;
    if (tci_mount_table_locate(&reach->mounts, place, reach->arena, &origin) < 0)
        return say_unknown();
    *ret_host = find_within(reach, &origin);
    return *ret_host ? TCI_REACHED : TCI_REACHED_NOT;
}
