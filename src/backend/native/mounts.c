/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the root directory of a jail, as a list of things to make and to mount, parents first. The
 * same tables as decide_path.c (cage_paths.c) and the same order of precedence: the most specific
 * path wins; at one path hidden beats readable beats writable; the policy beats what every cage has;
 * hidden beats what every cage has even below it.
 *
 * Nothing is made on a file system of the host: a mount point inside a granted directory must be
 * there already.
 */
#include "backend/native/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "policy/cage_paths.h"

enum { items_max = 4096 };

/* ---- who speaks about a path ------------------------------------------------------------------ */

static int compare_places(const void *a, const void *b)
{
    const struct tci_place *x = a, *y = b;
    int order = strcmp(x->path, y->path);
    if (order)
        return order;
    if (!x->rule != !y->rule)
        return x->rule ? -1 : 1; /* the policy first */
    if (!x->rule || x->rule->access == y->rule->access)
        return 0;
    return x->rule->access < y->rule->access ? -1 : 1;
}

/* What every cage has disappears inside what the policy hides. */
static bool is_hidden_by_policy(const struct tci_filesystem *fs, const char *path)
{
    const struct tci_path_rule *rule = tci_path_rule_find(fs, path);
    return rule && rule->access == TCI_ACCESS_HIDDEN;
}

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

/* The handler's shared object: no rule of the policy, and so no grant can take it away. */
static int add_library(struct tci_mount_build *b)
{
    struct tci_path_rule *rule = tci_arena_new_of(b->plan->arena, struct tci_path_rule);
    if (!rule)
        return tci_error_no_memory(b->reterr);
    rule->access = TCI_ACCESS_READABLE;
    rule->host = b->plan->spec.library;
    rule->cage = behind_links(b, b->plan->spec.library);
    if (!rule->cage)
        return tci_error_no_memory(b->reterr);
    b->places[b->place_count++] = (struct tci_place){ .path = rule->cage, .rule = rule };
    return 0;
}

static int collect_places(struct tci_mount_build *b)
{
    const struct tci_settings *s = b->plan->spec.settings;
    const struct tci_cage_path *own;
    size_t own_count = 0, kept = 0;
    while (tci_cage_path_at(s, own_count))
        own_count++;
    b->places = tci_arena_new_array(b->plan->arena, s->filesystem.count + own_count + 2,
                                    struct tci_place);
    if (!b->places)
        return tci_error_no_memory(b->reterr);
    for (size_t i = 0; i < s->filesystem.count; i++) {
        struct tci_path_rule *rule = tci_arena_new_of(b->plan->arena, struct tci_path_rule);
        if (!rule)
            return tci_error_no_memory(b->reterr);
        *rule = s->filesystem.rules[i];
        rule->cage = behind_links(b, rule->cage);
        if (!rule->cage)
            return tci_error_no_memory(b->reterr);
        b->places[b->place_count++] = (struct tci_place){ .path = rule->cage, .rule = rule };
    }
    if (b->plan->spec.library && add_library(b) < 0)
        return -1;
    for (size_t i = 0; (own = tci_cage_path_at(s, i)); i++)
        if (!is_hidden_by_policy(&s->filesystem, own->path))
            b->places[b->place_count++] = (struct tci_place){ .path = own->path, .own = own };
    qsort(b->places, b->place_count, sizeof *b->places, compare_places);
    for (size_t i = 0; i < b->place_count; i++)
        if (!kept || strcmp(b->places[i].path, b->places[kept - 1].path) != 0)
            b->places[kept++] = b->places[i];
    b->place_count = kept;
    return 0;
}

/* ---- the whole ---------------------------------------------------------------------------------- */

static int place_root(struct tci_mount_build *b)
{
    const struct tci_settings *s = b->plan->spec.settings;
    struct tci_mount *m;
    if (b->place_count && strcmp(b->places[0].path, "/") == 0 && b->places[0].rule &&
        b->places[0].rule->access != TCI_ACCESS_HIDDEN)
        return tci_place_grant(b, b->places[0].rule);
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
    return tci_place_tmpfs_options(b, m, 4 << 20, 1024 + 8 * b->place_count, "0755");
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
    for (size_t i = 0; i < b.place_count; i++) {
        const struct tci_place *p = &b.places[i];
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
