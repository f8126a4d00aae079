/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what cages may write, as places in file systems: the host path of each rule, every mount below it,
 * since cages are given whole trees, and the upper layers of overlays among these.
 * Rules with the same host path are looked at once: policies have many tools with few directories.
 */
#include "policy/reach_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/path.h"

static int by_host(const void *a, const void *b)
{
    const char *const *left = a, *const *right = b;
    return strcmp(*left, *right);
}

static int new_source(struct tci_reach *reach, const struct tci_reach_source *source)
{
    if (reach->source_count == reach->source_room) {
        void *all = tci_arena_grow(reach->arena, reach->sources, reach->source_count,
                                   sizeof *reach->sources, &reach->source_room);
        if (!all)
            return -1;
        reach->sources = all;
    }
    reach->sources[reach->source_count++] = *source;
    return 0;
}

struct adding {
    struct tci_reach *reach;
    struct tci_reach_source source;
    int depth;
};

static int add_source(const struct adding *adding);

/* The attack: what a cage writes to an overlay is written to the upper layer, where the policy lies. It has
 * the same paths as what is seen. */
static int add_upper(void *context, enum tci_reach_layer kind, const char *path)
{
    const struct adding *above = context;
    struct adding next = *above;
    const char *rest = above->source.origin.path;
    if (kind != TCI_LAYER_UPPER)
        return 0;
    if (tci_mount_table_locate(&next.reach->mounts, path, next.reach->arena, &next.source.origin) <
        0)
        return -1;
    if (rest[1])
        next.source.origin.path = tci_arena_printf(
            next.reach->arena, "%s%s", next.source.origin.path[1] ? next.source.origin.path : "",
            rest);
    next.depth++;
    return next.source.origin.path ? add_source(&next) : -1;
}

static int add_source(const struct adding *adding)
{
    struct adding upper = *adding;
    if (adding->depth > TCI_REACH_LAYERS_MAX || new_source(adding->reach, &adding->source) < 0)
        return -1;
    return tci_reach_each_layer(adding->reach, adding->source.origin.mount, add_upper, &upper);
}

/* The attack: a directory is mounted below a granted one as well, and the cage is given that mount, too.
 * One that is read-only stays so in the cage. */
static int add_below(struct adding *adding, const char *real)
{
    const struct tci_mount_table *mounts = &adding->reach->mounts;
    const struct tci_mounted *own = adding->source.origin.mount;
    for (size_t i = 0; i < mounts->count; i++) {
        const struct tci_mounted *mount = &mounts->items[i];
        if (mount == own || mount->read_only || !tci_path_is_within(mount->point, real))
            continue;
        adding->source.origin = (struct tci_mount_origin){ .mount = mount, .path = mount->root };
        adding->source.below = mount;
        if (add_source(adding) < 0)
            return -1;
    }
    return 0;
}

static int add_host(struct tci_reach *reach, const char *host)
{
    struct adding adding = { .reach = reach, .source = { .host = host } };
    char *real = realpath(host, NULL);
    struct stat st;
    int r;
    if (!real && (errno == ENOENT || errno == ENOTDIR))
        return 0; /* nothing is there that could be granted */
    if (!real && errno != EACCES)
        return -1;
    if (stat(host, &st) == 0)
        reach->tops[reach->top_count++] = (struct tci_reach_top){ st.st_dev, st.st_ino, host };
    r = tci_mount_table_locate(&reach->mounts, real ? real : host, reach->arena,
                               &adding.source.origin);
    if (r == 0)
        r = add_source(&adding);
    if (r == 0)
        r = add_below(&adding, real ? real : host);
    free(real);
    return r;
}

int tci_reach_collect(struct tci_reach *reach)
{
    const char **hosts = reach->hosts;
    reach->tops = tci_arena_new_array(reach->arena, reach->host_count, struct tci_reach_top);
    if (!reach->tops ||
        (!reach->mounts.count && tci_mount_table_read(&reach->mounts, reach->arena) < 0))
        return -1;
    qsort(hosts, reach->host_count, sizeof *hosts, by_host);
    for (size_t i = 0; i < reach->host_count; i++)
        if ((i == 0 || strcmp(hosts[i - 1], hosts[i]) != 0) && add_host(reach, hosts[i]) < 0)
            return -1;
    return 0;
}
