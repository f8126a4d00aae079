/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the file system of a call inside a call.
 *
 * A place is the same for both when its path in the cage and its path on the host are: "/workspace" of
 * one tool may be another directory than that of the other. As with grants (narrow_paths.c) no source
 * is made up, and none is taken because it lies below one of the other's: whoever may write there can
 * put a link in its place. What both name stays, with the lesser access. What the call around it does
 * not have goes. What it has, but as another file or only as a part of something, is refused.
 */
#include "core/narrow.h"

#include <string.h>
#include "base/path.h"
#include "core/narrow_view.h"
#include "policy/cage_paths.h"

static void hide(struct tci_filesystem *fs, const char *path)
{
    tci_view_keep(fs, &(struct tci_path_rule){ .cage = path, .as_given = path }, TCI_LEVEL_NONE);
}

static bool names(const struct tci_filesystem *fs, const char *path)
{
    const struct tci_path_rule *rule = tci_path_rule_find(fs, path);
    return rule && strcmp(rule->cage, path) == 0;
}

static int refuse(const char *path, const char *why, struct tc_error *reterr)
{
    tci_error_set(reterr, TC_ERROR_POLICY,
                  "\"filesystem\": %.300s of the tool %s in the call around it", path, why);
    tci_error_remedy(
        reterr, "give both tools the same entry for \"%.200s\", or call the tool by itself", path);
    return 1;
}

/* One place that the tool's own rules name. */
static int take_place(const struct tci_path_rule *rule, const struct tci_settings *around,
                      struct tci_filesystem *fs, struct tc_error *reterr)
{
    struct tci_view outer = tci_view_at(around, rule->cage);
    enum tci_level level = tci_level_of(rule->access);

    if (level == TCI_LEVEL_NONE || (outer.rule && outer.level == TCI_LEVEL_NONE)) {
        tci_view_keep(fs, rule, TCI_LEVEL_NONE);
        return 0;
    }
    if (outer.level == TCI_LEVEL_NONE)
        return 0; /* nor does that call have anything around this place that could show instead */
    if (!outer.rule)
        return refuse(rule->cage, "stands where other files are", reterr);
    if (strcmp(outer.rule->cage, rule->cage) != 0)
        return refuse(rule->cage, "is only a part of what is granted", reterr);
    if (!rule->host || !outer.rule->host || strcmp(rule->host, outer.rule->host) != 0)
        return refuse(rule->cage, "is another directory of the host than", reterr);
    tci_view_keep(fs, rule, level < outer.level ? level : outer.level);
    return 0;
}

/* Is the place of `part` what one sees of `whole` there anyway? */
static bool is_part(const struct tci_path_rule *part, const struct tci_path_rule *whole)
{
    size_t cage = strlen(whole->cage), host = whole->host ? strlen(whole->host) : 0;
    if (!part->host || !whole->host || !tci_path_is_within(part->cage, whole->cage) ||
        !tci_path_is_within(part->host, whole->host))
        return false;
    return strcmp(part->cage + (cage > 1 ? cage : 0), part->host + (host > 1 ? host : 0)) == 0;
}

/* Places that only the call around it names. What is hidden there is hidden here, too; a part with
 * less access keeps that; and where it has something else than the tool, both have nothing. */
static void cover_places(const struct tci_settings *around, struct tci_settings *ret)
{
    for (size_t i = 0; i < around->filesystem.count; i++) {
        const struct tci_path_rule *rule = &around->filesystem.rules[i];
        struct tci_view inner = tci_view_at(ret, rule->cage),
                        outer = tci_view_at(around, rule->cage);
        if (names(&ret->filesystem, rule->cage) || outer.rule != rule)
            continue;
        if (outer.level != TCI_LEVEL_NONE && inner.level == TCI_LEVEL_NONE)
            continue;
        if (outer.level != TCI_LEVEL_NONE && inner.rule && is_part(rule, inner.rule))
            tci_view_keep(&ret->filesystem, rule,
                          inner.level < outer.level ? inner.level : outer.level);
        else
            hide(&ret->filesystem, rule->cage);
    }
}

/* Places that a cage has of its own, and that a rule would show from the host where they went. The
 * attack: both see "/", and only one has a private /tmp: the host's was never meant to be seen. */
static void cover_own_places(const struct tci_settings *owner, struct tci_settings *ret)
{
    const struct tci_cage_path *own;
    for (size_t i = 0; (own = tci_cage_path_at(owner, i)) != NULL; i++) {
        struct tci_view inner = tci_view_at(ret, own->path);
        if (inner.rule && inner.level != TCI_LEVEL_NONE && !tci_view_at(owner, own->path).rule)
            hide(&ret->filesystem, own->path);
    }
}

static size_t count_own_places(const struct tci_settings *s)
{
    size_t count = 0;
    while (tci_cage_path_at(s, count))
        count++;
    return count;
}

int tci_narrow_nested_paths(struct tci_arena *arena, const struct tci_settings *tool,
                            const struct tci_settings *around, struct tci_settings *ret,
                            struct tc_error *reterr)
{
    const struct tci_filesystem *own = &tool->filesystem, *outer = &around->filesystem;
    struct tci_filesystem *fs = &ret->filesystem;
    size_t room = own->count + outer->count + count_own_places(tool) + count_own_places(around);

    *fs = (struct tci_filesystem){ .scratch = own->scratch < outer->scratch ? own->scratch
                                                                            : outer->scratch };
    fs->rules = tci_arena_new_array(arena, room, struct tci_path_rule);
    if (!fs->rules)
        return tci_error_no_memory(reterr);
    for (size_t i = 0; i < own->count; i++) {
        int r = tci_view_at(tool, own->rules[i].cage).rule == &own->rules[i]
                    ? take_place(&own->rules[i], around, fs, reterr)
                    : 0; /* a stronger rule of the tool speaks about the same place */
        if (r != 0)
            return r;
    }
    cover_places(around, ret);
    cover_own_places(tool, ret);
    cover_own_places(around, ret);
    if (own->cwd && tci_view_at(ret, own->cwd).level != TCI_LEVEL_NONE)
        fs->cwd = own->cwd;
    return 0;
}
