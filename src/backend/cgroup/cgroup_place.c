/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: where groups can be made. In version 1, below our own group of each controller. In version
 * 2, a group has a controller only if the group above turned it on for its children, and one with
 * processes in it cannot do that, except at the very top. So, in this order: below our own group if
 * its controllers are on; beside it, in a group that was handed over to us; below our own if that
 * was handed over to us alone, after this process stepped down into a leaf; the same in a scope that
 * systemd makes for us.
 *
 * Invariants: no process but our own is moved. cgroup.subtree_control is changed only in a group
 * that is ours to change: see is_ours().
 */
#include "backend/cgroup/cgroup_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "backend/probe_cgroup.h"

enum { SYSTEMD_MS = 3000 };

/* In this order: the sweep wants the one that stops forks before the others. */
static const struct {
    unsigned bit;
    const char *name, *enable;
} controllers[] = {
    { TCI_CGROUP_HAS_PIDS, "pids", "+pids" },
    { TCI_CGROUP_HAS_MEMORY, "memory", "+memory" },
    { TCI_CGROUP_HAS_CPU, "cpu", "+cpu" },
};

static int open_directory(int at, const char *path)
{
    return openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static bool may_write(int directory, const char *file)
{
    return faccessat(directory, file, W_OK, AT_EACCESS) == 0;
}

/* Groups can be made here, and a child of ours can be moved into them. */
static bool is_usable(int directory)
{
    return may_write(directory, ".") && may_write(directory, "cgroup.procs");
}

/* ---- version 2 ----------------------------------------------------------------------------- */

/* Which controllers a file such as cgroup.subtree_control lists. */
static unsigned listed(int directory, const char *file)
{
    char text[512];
    unsigned bits = 0;
    if (tci_cgroup_read(directory, ".", file, text, sizeof text))
        return 0;
    for (size_t i = 0; i < tci_array_size(controllers); i++)
        if (tci_cgroup_has_word(text, controllers[i].name, ' '))
            bits |= controllers[i].bit;
    return bits;
}

/*
 * Are there processes in it, where none may be? The topmost group has no type and no such rule. The
 * kernel would let pids and cpu be turned on all the same, and make it the root of a threaded tree,
 * in which nothing can have memory any more.
 */
static bool is_busy(int directory)
{
    char text[16];
    return faccessat(directory, "cgroup.type", F_OK, 0) == 0 &&
           tci_cgroup_read(directory, ".", "cgroup.procs", text, sizeof text) == 0 && text[0];
}

/* Turns controllers on for the children, as far as they come down to this group. Returns those that
 * are on then; `ret_busy`: processes were in the way. */
static unsigned enable(int directory, unsigned wanted, bool *ret_busy)
{
    unsigned on = listed(directory, "cgroup.subtree_control");
    unsigned missing = listed(directory, "cgroup.controllers") & wanted & ~on;
    *ret_busy = missing && is_busy(directory);
    if (!missing || *ret_busy)
        return on & wanted;
    /* One at a time: one that cannot be had does not keep the others away. */
    for (size_t i = 0; i < tci_array_size(controllers); i++)
        if (controllers[i].bit & missing &&
            tci_cgroup_write(directory, ".", "cgroup.subtree_control", controllers[i].enable) ==
                EBUSY)
            *ret_busy = true;
    return listed(directory, "cgroup.subtree_control") & wanted;
}

/*
 * By its name alone: is it ours where systemd runs? A name that no unit has was made by somebody
 * else, by hand for instance. A scope or a service has groups below it only when it was delegated;
 * user@UID.service is, to the user's service manager and not to us.
 */
static bool is_ours_by_name(const char *path, bool is_above)
{
    const char *name = strrchr(path, '/'), *end = name ? strrchr(name, '.') : NULL;
    if (!end)
        return name && name[1];
    if (strcmp(end, ".slice") == 0)
        return false;
    if (strcmp(end, ".scope") == 0 || strcmp(end, ".service") == 0)
        return is_above && strncmp(name, "/user@", 6) != 0;
    return true;
}

/*
 * Was this group handed over to us? We must be able to write. Without systemd that is all there is
 * to say. systemd wants to be the only one who changes its tree; root could change it anywhere, and
 * a user everything below user@UID.service, so there its mark decides (user.delegate since version
 * 251, trusted.delegate for root before), or, for want of one, the name.
 */
static bool is_ours(int directory, const char *path, bool is_above)
{
    static const char *const marks[] = { "user.delegate", "trusted.delegate" };
    char value[4];
    if (!is_usable(directory) || !may_write(directory, "cgroup.subtree_control"))
        return false;
    if (access("/run/systemd/system", F_OK) < 0)
        return true;
    for (size_t i = 0; i < tci_array_size(marks); i++)
        if (fgetxattr(directory, marks[i], value, sizeof value) == 1)
            return value[0] == '1';
    return is_ours_by_name(path, is_above);
}

/* Is this process the only one in the group? One that we cannot see is listed as 0. */
static bool is_alone(int directory)
{
    char text[64], self[32];
    (void)snprintf(self, sizeof self, "%d\n", (int)getpid());
    return tci_cgroup_read(directory, ".", "cgroup.procs", text, sizeof text) == 0 &&
           strcmp(text, self) == 0;
}

/* Moves this process out of the way, into a leaf, so that controllers can be turned on. */
static unsigned step_down(int own, unsigned wanted, const struct tci_cgroup_owner *owner)
{
    char leaf[TCI_CGROUP_NAME_MAX];
    unsigned on = 0;
    bool busy;
    if (!is_alone(own) || !tci_cgroup_name(owner, TCI_CGROUP_SELF, leaf, sizeof leaf) ||
        (mkdirat(own, leaf, 0755) < 0 && errno != EEXIST)) /* another thread does the same */
        return 0;
    if (tci_cgroup_write(own, leaf, "cgroup.procs", "0") == 0) {
        on = enable(own, wanted, &busy);
        if (on)
            return on;
        /* Somebody came in meanwhile. */
        (void)tci_cgroup_write(own, ".", "cgroup.procs", "0");
    }
    (void)unlinkat(own, leaf, AT_REMOVEDIR);
    return on;
}

/* The group above ours, if it was handed over to us and has, or can have, controllers. */
static int choose_above(const struct tci_cgroup_own *own, unsigned wanted,
                        unsigned *ret_controllers)
{
    char path[TCI_CGROUP_PATH_MAX], *slash;
    int above = own->depth ? open_directory(own->directory, "..") : -1;
    bool busy;
    if (above < 0)
        return -1;
    (void)snprintf(path, sizeof path, "%s", own->path);
    if ((slash = strrchr(path, '/')))
        *slash = '\0';
    if (is_ours(above, path, true) && (*ret_controllers = enable(above, wanted, &busy)))
        return above;
    (void)close(above);
    return -1;
}

int tci_cgroup_choose(const struct tci_cgroup_own *own, unsigned wanted,
                      const struct tci_cgroup_owner *owner, unsigned *ret_controllers)
{
    bool busy = false;
    int above;
    *ret_controllers = listed(own->directory, "cgroup.subtree_control") & wanted;
    if (*ret_controllers == wanted && is_usable(own->directory))
        return own->directory;
    above = choose_above(own, wanted, ret_controllers);
    if (above >= 0)
        return above;
    if (!own->given && !is_ours(own->directory, own->path, false))
        return -1;
    *ret_controllers = enable(own->directory, wanted, &busy);
    if (busy)
        *ret_controllers |= step_down(own->directory, wanted, owner);
    return *ret_controllers ? own->directory : -1;
}

static void add(struct tci_cgroups *groups, int base, bool v2, unsigned bits)
{
    char text[256];
    groups->hierarchies[groups->count++] = (struct tci_cgroup_hierarchy){
        .base = base,
        .v2 = v2,
        .controllers = bits,
        .oom_waits = !v2 && bits & TCI_CGROUP_HAS_MEMORY &&
                     tci_cgroup_read(base, ".", "memory.oom_control", text, sizeof text) == 0 &&
                     tci_cgroup_field(text, "oom_kill_disable") != 0,
    };
    groups->has |= bits;
}

/* Looks for a base whose groups have (some of) the controllers `wanted`; with none wanted, any that
 * can be used. Version 2 measures processor time in every group, without a controller. */
static bool place_v2_at(struct tci_cgroups *groups, const struct tci_cgroup_place *place,
                        unsigned wanted, bool given)
{
    struct tci_cgroup_own own = { open_directory(AT_FDCWD, place->directory), place->directory,
                                  place->depth, given };
    unsigned on = 0;
    int base;
    if (own.directory < 0)
        return false;
    if (wanted)
        base = tci_cgroup_choose(&own, wanted, &groups->owner, &on);
    else
        base = is_usable(own.directory) ? own.directory : -1;
    if (base != own.directory)
        (void)close(own.directory);
    if (base >= 0)
        add(groups, base, true, on | TCI_CGROUP_HAS_CPU_USAGE);
    return base >= 0;
}

/* Another thread may have moved this process meanwhile: then it is looked for again. */
static bool place_v2_with(struct tci_cgroups *groups, struct tci_cgroup_place *place,
                          unsigned wanted, bool given)
{
    struct tci_cgroup_place before;
    do {
        if (place_v2_at(groups, place, wanted, given))
            return true;
        before = *place;
    } while (tci_cgroup_find(NULL, place) == 0 && strcmp(place->directory, before.directory) != 0);
    return false;
}

static void place_v2(struct tci_cgroups *groups, struct tci_cgroup_place *place, unsigned wanted)
{
    if (wanted && place_v2_with(groups, place, wanted, false))
        return;
    /* systemd hands over what it has in version 2 only. */
    if (wanted == TCI_CGROUP_LIMITS && tci_cgroup_systemd_scope(&groups->owner, SYSTEMD_MS) == 0 &&
        tci_cgroup_find(NULL, place) == 0 && place_v2_with(groups, place, wanted, true))
        return;
    /* For its kill and its clock: version 1 has the controllers, or nobody. */
    (void)place_v2_with(groups, place, 0, false);
}

/* ---- version 1 ----------------------------------------------------------------------------- */

/* Controllers that are mounted together share a directory, and one group. */
static bool share(struct tci_cgroups *groups, int base, unsigned bit)
{
    struct stat a, b;
    for (unsigned i = 0; i < groups->count; i++)
        if (fstat(groups->hierarchies[i].base, &a) == 0 && fstat(base, &b) == 0 &&
            a.st_dev == b.st_dev && a.st_ino == b.st_ino) {
            groups->hierarchies[i].controllers |= bit;
            groups->has |= bit;
            return true;
        }
    return false;
}

static void place_v1(struct tci_cgroups *groups, const struct tci_cgroup_place *place, unsigned bit)
{
    int base = open_directory(AT_FDCWD, place->directory);
    if (base < 0)
        return;
    if (!may_write(base, ".") ||
        (bit == TCI_CGROUP_HAS_MEMORY && tci_cgroup_swap_escapes(base, ".")) ||
        share(groups, base, bit))
        (void)close(base);
    else
        add(groups, base, false, bit);
}

/* ---- all ------------------------------------------------------------------------------------ */

/* What is looked for: version 2, the controllers of the table, and the clock of version 1. */
enum { PLACE_V2, PLACE_FIRST, PLACE_CPU_USAGE = PLACE_FIRST + tci_array_size(controllers) };

void tci_cgroups_place(struct tci_cgroups *groups)
{
    struct tci_cgroup_place places[PLACE_CPU_USAGE + 1];
    const char *names[PLACE_CPU_USAGE + 1] = { NULL };
    unsigned found = 0, v1 = 0;
    bool has_v2;
    for (size_t i = 0; i < tci_array_size(controllers); i++)
        names[PLACE_FIRST + i] = controllers[i].name;
    names[PLACE_CPU_USAGE] = "cpuacct";
    (void)tci_cgroup_find_all(names, tci_array_size(names), places, &found);
    has_v2 = found >> PLACE_V2 & 1;
    /* A host may have version 1 for other controllers than ours: that makes no hybrid. */
    for (size_t i = 0; i < tci_array_size(controllers); i++)
        if (found >> (PLACE_FIRST + i) & 1)
            v1 |= controllers[i].bit;
    groups->kind = v1 ? has_v2 ? "hybrid" : "v1" : has_v2 ? "v2" : "none";
    if (has_v2)
        place_v2(groups, &places[PLACE_V2], TCI_CGROUP_LIMITS & ~v1);
    for (size_t i = 0; i < tci_array_size(controllers); i++)
        if (v1 & controllers[i].bit)
            place_v1(groups, &places[PLACE_FIRST + i], controllers[i].bit);
    if (!(groups->has & TCI_CGROUP_HAS_CPU_USAGE) && found >> PLACE_CPU_USAGE & 1)
        place_v1(groups, &places[PLACE_CPU_USAGE], TCI_CGROUP_HAS_CPU_USAGE);
}
