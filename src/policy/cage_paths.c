/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the built-in contents of a cage, and finding the rule that speaks about a path. */
#include "policy/cage_paths.h"

#include <string.h>
#include "base/path.h"

static const struct tci_cage_path always[] = {
    { "/dev/null", TCI_ACCESS_WRITABLE, "" },    { "/dev/zero", TCI_ACCESS_WRITABLE, "" },
    { "/dev/full", TCI_ACCESS_WRITABLE, "" },    { "/dev/random", TCI_ACCESS_READABLE, "" },
    { "/dev/urandom", TCI_ACCESS_READABLE, "" }, { "/dev/fd", TCI_ACCESS_WRITABLE, "" },
    { "/dev/stdin", TCI_ACCESS_READABLE, "" },   { "/dev/stdout", TCI_ACCESS_WRITABLE, "" },
    { "/dev/stderr", TCI_ACCESS_WRITABLE, "" },  { "/proc", TCI_ACCESS_READABLE, "" },
};

static const struct tci_cage_path scratch[] = {
    { "/tmp", TCI_ACCESS_WRITABLE, "filesystem" },
    { "/dev/shm", TCI_ACCESS_WRITABLE, "filesystem" },
};

static const struct tci_cage_path host_system[] = {
    { "/usr", TCI_ACCESS_READABLE, "system" },
    { "/bin", TCI_ACCESS_READABLE, "system" },
    { "/sbin", TCI_ACCESS_READABLE, "system" },
    { "/lib", TCI_ACCESS_READABLE, "system" },
    { "/lib32", TCI_ACCESS_READABLE, "system" },
    { "/lib64", TCI_ACCESS_READABLE, "system" },
    { "/libx32", TCI_ACCESS_READABLE, "system" },
    { "/etc/alternatives", TCI_ACCESS_READABLE, "system" },
    { "/etc/ca-certificates", TCI_ACCESS_READABLE, "system" },
    { "/etc/ld.so.cache", TCI_ACCESS_READABLE, "system" },
    { "/etc/ld.so.conf", TCI_ACCESS_READABLE, "system" },
    { "/etc/ld.so.conf.d", TCI_ACCESS_READABLE, "system" },
    { "/etc/localtime", TCI_ACCESS_READABLE, "system" },
    { "/etc/ssl/certs", TCI_ACCESS_READABLE, "system" },
    { "/etc/passwd", TCI_ACCESS_READABLE, "system" },      /* generated */
    { "/etc/group", TCI_ACCESS_READABLE, "system" },       /* generated */
    { "/etc/hosts", TCI_ACCESS_READABLE, "system" },       /* generated */
    { "/etc/resolv.conf", TCI_ACCESS_READABLE, "system" }, /* generated */
    { "/etc/nsswitch.conf", TCI_ACCESS_READABLE, "system" },
};

static const struct tci_cage_path image_root = { "/", TCI_ACCESS_READABLE, "image" };
static const struct tci_cage_path rootfs_root = { "/", TCI_ACCESS_READABLE, "rootfs" };
static const struct tci_cage_path open_root = { "/", TCI_ACCESS_WRITABLE, "container" };

static const struct tci_cage_path *deeper(const struct tci_cage_path *table, size_t count,
                                          const char *path, const struct tci_cage_path *best)
{
    for (size_t i = 0; i < count; i++)
        if (tci_path_is_within(path, table[i].path) &&
            (!best || strlen(table[i].path) > strlen(best->path)))
            best = &table[i];
    return best;
}

const struct tci_cage_path *tci_cage_path_find(const struct tci_settings *s, const char *path)
{
    const struct tci_cage_path *best = NULL;
    if ((s->image || s->rootfs) && !s->container.read_only_rootfs)
        best = &open_root;
    else if (s->rootfs)
        best = &rootfs_root;
    else if (s->image)
        best = &image_root;
    best = deeper(always, tci_array_size(always), path, best);
    if (s->filesystem.scratch)
        best = deeper(scratch, tci_array_size(scratch), path, best);
    if (s->system)
        best = deeper(host_system, tci_array_size(host_system), path, best);
    return best;
}

const struct tci_path_rule *tci_path_rule_find(const struct tci_filesystem *fs, const char *path)
{
    const struct tci_path_rule *best = NULL;
    for (size_t i = 0; i < fs->count; i++) {
        const struct tci_path_rule *rule = &fs->rules[i];
        if (!tci_path_is_within(path, rule->cage))
            continue;
        if (!best || strlen(rule->cage) > strlen(best->cage) ||
            (strlen(rule->cage) == strlen(best->cage) && rule->access < best->access))
            best = rule;
    }
    return best;
}
