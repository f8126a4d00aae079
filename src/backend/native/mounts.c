/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the root directory of a jail, as a list of things to make and to mount, parents first. The
 * same tables as decide_path.c (cage_paths.c), and the order of precedence of backend/places.h.
 *
 * Nothing is made on a file system of the host: a mount point inside a granted directory must be
 * there already.
 */
#include "backend/native/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"

enum { items_max = 4096 };

/* ---- who speaks about a path ------------------------------------------------------------------ */

/*
 * Where the host has a link (/bin to usr/bin), the cage has it too, and what the policy says about
 * /bin/bash it says about /usr/bin/bash: there is one file, and both names lead to it.
 */
static const char *behind_links(const struct tci_mount_build *b, const char *path)
{
    const struct tci_settings *s = b->plan->spec.settings;
    const struct tci_cage_path *own;
    char target[TCI_PATH_MAX + 1], normal[TCI_PATH_MAX + 1];
    if (s->rootfs)
        return path;
    for (size_t i = 0; (own = tci_cage_path_at(s, i)); i++) {
        size_t length = strlen(own->path);
        ssize_t n;
        char *text;
        if (strcmp(own->key, "system") != 0 || strcmp(path, own->path) == 0 ||
            !tci_path_is_within(path, own->path) ||
            (n = readlink(own->path, target, sizeof target - 1)) <= 0)
            continue;
        target[n] = '\0';
        if (tci_path_normalise("/", target, (size_t)n, normal) != TCI_PATH_OK)
            continue;
        text = tci_arena_printf(b->plan->arena, "%s%s", normal, path + length);
        return text; /* NULL: no memory */
    }
    return path;
}

static int collect_places(struct tci_mount_build *b)
{
    const struct tci_settings *s = b->plan->spec.settings;
    const char *library = b->plan->spec.library;
    const struct tci_cage_path *own;
    struct tci_places *places = &b->places;
    size_t own_count = 0;
    while (tci_cage_path_at(s, own_count))
        own_count++;
    places->items = tci_arena_new_array(b->plan->arena, s->filesystem.count + own_count + 2,
                                        struct tci_place);
    if (!places->items)
        return tci_error_no_memory(b->reterr);
    for (size_t i = 0; i < s->filesystem.count; i++) {
        struct tci_path_rule *rule = tci_arena_new_of(b->plan->arena, struct tci_path_rule);
        if (!rule)
            return tci_error_no_memory(b->reterr);
        *rule = s->filesystem.rules[i];
        rule->cage = behind_links(b, rule->cage);
        if (!rule->cage)
            return tci_error_no_memory(b->reterr);
        places->items[places->count++] = (struct tci_place){ .path = rule->cage, .rule = rule };
    }
    if (library &&
        tci_places_add_library(places, b->plan->arena, library, behind_links(b, library)) < 0)
        return tci_error_no_memory(b->reterr);
    for (size_t i = 0; (own = tci_cage_path_at(s, i)); i++)
        if (!tci_places_is_hidden(&s->filesystem, own->path))
            places->items[places->count++] = (struct tci_place){ .path = own->path, .own = own };
    tci_places_settle(places);
    return 0;
}

/* ---- the whole ---------------------------------------------------------------------------------- */

static int place_root(struct tci_mount_build *b)
{
    const struct tci_settings *s = b->plan->spec.settings;
    struct tci_mount *m;
    const struct tci_place *first = b->places.items;
    if (b->places.count && strcmp(first->path, "/") == 0 && first->rule &&
        first->rule->access != TCI_ACCESS_HIDDEN)
        return tci_place_grant(b, first->rule);
    if (s->rootfs) {
        struct tci_path_rule rule = { .access = TCI_ACCESS_READABLE,
                                      .host = s->rootfs,
                                      .cage = "/" };
        if (tci_place_grant(b, &rule) < 0)
            return -1;
        /* It holds programs of its own. */
        b->plan->mounts.items[0].attributes &= ~(uint64_t)MOUNT_ATTR_NOEXEC;
        return 0;
    }
    m = tci_mounts_add(b, TCI_MOUNT_TMPFS, "/");
    if (!m)
        return -1;
    m->attributes = TCI_LOCKED_DOWN | MOUNT_ATTR_NOEXEC;
    return tci_place_tmpfs_options(b, m, 4 << 20, 1024 + 8 * b->places.count, "0755");
}

/* A root of the host's has a /dev of the host's: ours is laid over it, so that devices can be made. */
static int place_dev(struct tci_mount_build *b)
{
    const struct tci_mount *root = &b->plan->mounts.items[0];
    if (!root->host)
        return 0;
    return tci_place_tmpfs(b, "/dev", 1 << 16, "0755", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
}

/* An optional path that is not there: then its parents need not be there either. */
static bool is_absent(const struct tci_mount_build *b, const struct tci_path_rule *rule)
{
    return rule->optional && tci_mount_look(b, rule->cage) == -ENOENT;
}

/* Combinations of which one wall would be missing. */
static int check_walls(const struct tc_plan *plan, struct tc_error *reterr)
{
    const struct tci_settings *s = plan->spec.settings;
    for (size_t i = 0; i < s->filesystem.count && plan->landlock_abi < 2; i++)
        if (s->filesystem.rules[i].access == TCI_ACCESS_READABLE) {
            tci_error_set(
                reterr, TC_ERROR_UNSUPPORTED,
                "without Landlock 2, a jail cannot keep %.300s readable only: FIFOs in it "
                "could be written to",
                s->filesystem.rules[i].host);
            tci_error_remedy(
                reterr, "use Linux 5.19 or newer with Landlock: see landlock in toolcage doctor");
            return -1;
        }
    if (s->rootfs && !s->commands.any) {
        tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                      "\"commands\" cannot be kept with a rootfs: its loader could start every "
                      "program in it");
        tci_error_remedy(reterr,
                         "leave out commands, or use a rootfs that holds no other programs");
        return -1;
    }
    return 0;
}

int tci_native_mounts(struct tc_plan *plan, struct tc_error *reterr)
{
    struct tci_mount_build b = { .plan = plan, .reterr = reterr };
    if (check_walls(plan, reterr) < 0)
        return -1;
    if (collect_places(&b) < 0 || place_root(&b) < 0 || place_dev(&b) < 0)
        return -1;
    for (size_t i = 0; i < b.places.count; i++) {
        const struct tci_place *p = &b.places.items[i];
        int r = 0;
        if (strcmp(p->path, "/") == 0)
            continue;
        if (p->rule && !is_absent(&b, p->rule) && tci_place_pin_parents(&b, p->path) < 0)
            return -1;
        if (!p->rule)
            r = tci_place_own(&b, p->own);
        else
            r = p->rule->access == TCI_ACCESS_HIDDEN ? tci_place_hidden(&b, p->rule)
                                                     : tci_place_grant(&b, p->rule);
        if (r < 0)
            return -1;
    }
    if (plan->mounts.count > items_max)
        return tci_error_set(reterr, TC_ERROR_TOO_LARGE, "the cage would have more than %d mounts",
                             (int)items_max);
    return 0;
}
