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
    { "/dev/stderr", TCI_ACCESS_WRITABLE, "" },
};

/* Without a pid namespace, /proc would show every process of the host, with its environment. */
static const struct tci_cage_path own_processes[] = {
    { "/proc", TCI_ACCESS_READABLE, "" },
    /* Names of the caller's keys. */
    { "/proc/keys", TCI_ACCESS_HIDDEN, "" },
    { "/proc/key-users", TCI_ACCESS_HIDDEN, "" },
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

static const struct list {
    const struct tci_cage_path *paths;
    size_t count;
} lists[] = {
    { always, tci_array_size(always) },
    { own_processes, tci_array_size(own_processes) },
    { scratch, tci_array_size(scratch) },
    { host_system, tci_array_size(host_system) },
};

static bool has_list(const struct tci_settings *s, const struct list *list)
{
    if (list->paths == own_processes)
        return s->backend != TCI_BACKEND_PROCESS;
    if (list->paths == scratch)
        return s->filesystem.scratch > 0;
    return list->paths != host_system || s->system;
}

const struct tci_cage_path *tci_cage_path_at(const struct tci_settings *s, size_t index)
{
    for (size_t i = 0; i < tci_array_size(lists); i++) {
        if (!has_list(s, &lists[i]))
            continue;
        if (index < lists[i].count)
            return &lists[i].paths[index];
        index -= lists[i].count;
    }
    return NULL;
}

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
    for (size_t i = 0; i < tci_array_size(lists); i++)
        if (has_list(s, &lists[i]))
            best = deeper(lists[i].paths, lists[i].count, path, best);
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
