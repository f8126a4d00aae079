/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the layers of an overlay file system, as the list of mounts tells them. The attack: a file is seen
 * through an overlay, and a cage may write the layer that it comes from; or the other way round.
 * Layers that are not here were named by somebody with another view of the file system, such as who made
 * the container that we run in: no path of ours leads to them.
 */
#include "policy/reach_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    enum tci_reach_layer kind;
    bool is_list;
} options[] = {
    { "upperdir=", TCI_LAYER_UPPER, false }, { "workdir=", TCI_LAYER_WORK, false },
    { "lowerdir=", TCI_LAYER_LOWER, true },  { "lowerdir+=", TCI_LAYER_LOWER, false },
    { "datadir+=", TCI_LAYER_LOWER, false },
};

struct visit {
    struct tci_reach *reach;
    const struct tci_mounted *mount;
    tci_reach_layer_visitor *function;
    void *context;
    bool found; /* a layer that is here */
};

/* The root of our own file systems was made elsewhere. */
static bool is_our_root(const struct tci_reach *reach, const struct tci_mounted *mount)
{
    for (size_t i = 0; i < reach->mounts.count; i++)
        if (!reach->mounts.items[i].point[1] && tci_mounts_are_same(&reach->mounts.items[i], mount))
            return true;
    return false;
}

static int see_path(struct visit *visit, enum tci_reach_layer kind, const char *path)
{
    char *real;
    int r;
    if (path[0] != '/') /* from where it was mounted, and nobody knows that any more */
        return is_our_root(visit->reach, visit->mount) ? 0 : -1;
    real = realpath(path, NULL);
    if (!real && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    visit->found = true;
    if (!real && errno != EACCES)
        return -1;
    r = visit->function(visit->context, kind, real ? real : path);
    free(real);
    return r;
}

/* A backslash may be one of the name, or protect the next character from mount's own reading. */
static int see_layer(struct visit *visit, enum tci_reach_layer kind, char *path)
{
    char *to = path;
    int r = *path ? see_path(visit, kind, path) : 0;
    if (r || !strchr(path, '\\'))
        return r;
    for (const char *from = path; *from; from++) {
        from += *from == '\\' && from[1];
        *to++ = *from;
    }
    *to = '\0';
    return see_path(visit, kind, path);
}

/* "a:b\:c::d" */
static int see_list(struct visit *visit, enum tci_reach_layer kind, char *list)
{
    int r = 0;
    while (r == 0 && list) {
        char *end = list;
        while (*end && *end != ':')
            end += *end == '\\' && end[1] ? 2 : 1;
        if (*end)
            *end++ = '\0';
        else
            end = NULL;
        r = see_layer(visit, kind, list);
        list = end;
    }
    return r;
}

static int see_option(struct visit *visit, char *option)
{
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const size_t length = strlen(options[i].name);
        if (strncmp(option, options[i].name, length) != 0)
            continue;
        tci_mountinfo_unescape(option + length);
        return options[i].is_list ? see_list(visit, options[i].kind, option + length)
                                  : see_layer(visit, options[i].kind, option + length);
    }
    return 0;
}

int tci_reach_each_layer(struct tci_reach *reach, const struct tci_mounted *mount,
                         tci_reach_layer_visitor *visit, void *context)
{
    struct visit all = { .reach = reach, .mount = mount, .function = visit, .context = context };
    char *text, *option;
    int r = 0;
    if (strcmp(mount->type, "overlay") != 0 ||
        (reach->bare && tci_mounts_are_same(reach->bare, mount)))
        return 0;
    text = tci_arena_strdup(reach->arena, mount->options);
    if (!text)
        return -1;
    while (r == 0 && (option = strsep(&text, ",")))
        r = see_option(&all, option);
    if (r == 0 && !all.found)
        reach->bare = mount;
    return r;
}
