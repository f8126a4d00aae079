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
#include "backend/native/native.h"

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

enum { items_max = 4096, copy_max = 4096 };

#define LOCKED_DOWN (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
#define READ_ONLY   (LOCKED_DOWN | MOUNT_ATTR_RDONLY)

/* A path of the cage and what the policy says about it; `rule` NULL: what every cage has. */
struct place {
    const char *path;
    const struct tci_path_rule *rule;
    const struct tci_cage_path *own;
};

struct build {
    struct tc_plan *plan;
    struct tc_error *reterr;
    struct place *places;
    size_t place_count;
};

static struct tci_mount *add(struct build *b, enum tci_init_mount_kind kind, const char *cage)
{
    struct tci_mounts_list *list = &b->plan->mounts;
    struct tci_mount *m;
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 64;
        struct tci_mount *items = tci_arena_new_array(b->plan->arena, capacity, struct tci_mount);
        if (!items) {
            tci_error_no_memory(b->reterr);
            return NULL;
        }
        if (list->count)
            memcpy(items, list->items, list->count * sizeof *items);
        list->items = items;
        list->capacity = capacity;
    }
    m = &list->items[list->count++];
    *m = (struct tci_mount){ .kind = kind, .target = cage + 1, .source = -1, .text = "" };
    return m;
}

/* ---- who speaks about a path ------------------------------------------------------------------ */

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
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
static const char *behind_links(const struct build *b, const char *path)
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

static int collect_places(struct build *b)
{
    const struct tci_settings *s = b->plan->spec.settings;
    const struct tci_cage_path *own;
    size_t own_count = 0, kept = 0;
    while (tci_cage_path_at(s, own_count))
        own_count++;
    b->places = tci_arena_new_array(b->plan->arena, s->filesystem.count + own_count + 1,
                                    struct place);
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
        b->places[b->place_count++] = (struct place){ .path = rule->cage, .rule = rule };
    }
    for (size_t i = 0; (own = tci_cage_path_at(s, i)); i++)
        if (!is_hidden_by_policy(&s->filesystem, own->path))
            b->places[b->place_count++] = (struct place){ .path = own->path, .own = own };
    qsort(b->places, b->place_count, sizeof *b->places, compare_places);
    for (size_t i = 0; i < b->place_count; i++)
        if (!kept || strcmp(b->places[i].path, b->places[kept - 1].path) != 0)
            b->places[kept++] = b->places[i];
    b->place_count = kept;
    return 0;
}

/* ---- mount points ------------------------------------------------------------------------------ */

static bool is_mount(const struct tci_mount *m)
{
    return m->kind >= TCI_MOUNT_BIND;
}

/* `path` and the targets are without their first slash. */
static bool is_inside(const char *path, const char *target)
{
    size_t length = strlen(target);
    return !length ||
           (strncmp(path, target, length) == 0 && (path[length] == '/' || path[length] == '\0'));
}

/* The mount that `path` would lie on, so far. */
static const struct tci_mount *mount_around(const struct tc_plan *plan, const char *path)
{
    const struct tci_mount *best = NULL;
    for (size_t i = 0; i < plan->mounts.count; i++) {
        const struct tci_mount *m = &plan->mounts.items[i];
        if (is_mount(m) && is_inside(path, m->target) &&
            (!best || strlen(m->target) >= strlen(best->target)))
            best = m;
    }
    return best;
}

const char *tci_native_host_path(const struct tc_plan *plan, const char *cage, char *buffer,
                                 size_t size)
{
    const struct tci_mount *m = mount_around(plan, cage + 1);
    const char *rest;
    int n;
    if (!m || !m->host)
        return NULL;
    rest = cage + 1 + strlen(m->target);
    rest += *rest == '/';
    n = snprintf(buffer, size, "%s%s%s", strcmp(m->host, "/") == 0 ? "" : m->host,
                 *rest || strcmp(m->host, "/") == 0 ? "/" : "", rest);
    return n > 0 && (size_t)n < size ? buffer : NULL;
}

static bool has_target(const struct tc_plan *plan, const char *target, size_t length)
{
    for (size_t i = 0; i < plan->mounts.count; i++) {
        const char *other = plan->mounts.items[i].target;
        if (strncmp(other, target, length) == 0 && !other[length])
            return true;
    }
    return false;
}

/* Directories on the way to `cage`, on a file system of ours. */
static int make_parents(struct build *b, const char *cage)
{
    for (const char *slash = strchr(cage + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        size_t length = (size_t)(slash - cage);
        char *parent;
        if (has_target(b->plan, cage + 1, length - 1))
            continue;
        parent = tci_arena_strndup(b->plan->arena, cage, length);
        if (!parent)
            return tci_error_no_memory(b->reterr);
        if (!add(b, TCI_MOUNT_DIRECTORY, parent))
            return -1;
    }
    return 0;
}

/* Is there something at `cage` in the directory of the host that it lies in? 1: a directory, 0: a
 * file, negative errno. No link is followed: that is how it will be opened. */
static int look_at_point(const struct build *b, const char *cage)
{
    char host[TCI_PATH_MAX + 1];
    uint64_t device, inode;
    bool is_directory = false;
    int fd, r;
    struct stat status;
    if (!tci_native_host_path(b->plan, cage, host, sizeof host))
        return -ENOENT;
    fd = tci_native_open_grant(b->plan, host);
    if (fd < 0)
        return fd;
    r = tci_native_identify(fd, &device, &inode, &is_directory);
    (void)tci_close(fd);
    if (r == 0 && lstat(host, &status) == 0 && S_ISLNK(status.st_mode))
        return -ELOOP;
    return r < 0 ? r : is_directory;
}

static int point_missing(struct build *b, const char *cage, int problem)
{
    const struct tci_mount *around = mount_around(b->plan, cage + 1);
    tci_error_set(
        b->reterr, TC_ERROR_UNSUPPORTED,
        "%.300s cannot be a place of its own inside %.200s, which the cage takes from the "
        "host: %s",
        cage, around && around->host ? around->host : "/", strerrordesc_np(-problem));
    tci_error_remedy(b->reterr, "create it on the host (toolcage makes nothing there), or grant "
                                "another path");
    return -1;
}

/* Prepares the mount point of `cage`: on a file system of ours it will be made, in a directory of the
 * host it must be there, and of the same kind. */
static int prepare_point(struct build *b, const char *cage, bool is_file, uint32_t *flags)
{
    const struct tci_mount *around = mount_around(b->plan, cage + 1);
    int found;
    *flags |= is_file ? TCI_MOUNT_IS_FILE : 0;
    if (around && around->kind == TCI_MOUNT_PROC)
        return 0; /* the kernel's own files: as on the host */
    if (around && !around->host) {
        *flags |= TCI_MOUNT_MAKE;
        return make_parents(b, cage);
    }
    found = look_at_point(b, cage);
    if (found >= 0 && found != !is_file)
        found = is_file ? -EISDIR : -ENOTDIR;
    return found < 0 ? point_missing(b, cage, found) : 0;
}

/* ---- the kinds of places ------------------------------------------------------------------------ */

/* Options as init hands them to fsconfig: name, NUL, value, NUL, ... */
static int tmpfs_options(struct build *b, struct tci_mount *m, uint64_t size, uint64_t inodes,
                         const char *mode)
{
    /* Inodes cost memory that the size does not count: one for each 4 KiB, as if each held a page. */
    char text[160];
    int n = snprintf(text, sizeof text, "size%c%llu%cnr_inodes%c%llu%cmode%c%s%c", 0,
                     (unsigned long long)size, 0, 0, (unsigned long long)inodes, 0, 0, mode, 0);
    m->text_length = (size_t)n;
    m->text = tci_arena_strndup(b->plan->arena, text, (size_t)n);
    return m->text ? 0 : tci_error_no_memory(b->reterr);
}

static int place_tmpfs(struct build *b, const char *cage, uint64_t size, const char *mode,
                       uint64_t attributes)
{
    uint32_t flags = 0;
    struct tci_mount *m;
    if (prepare_point(b, cage, false, &flags) < 0 || !(m = add(b, TCI_MOUNT_TMPFS, cage)))
        return -1;
    m->flags = flags;
    m->attributes = attributes;
    return tmpfs_options(b, m, size, size / 4096 + 64, mode);
}

static int place_bytes(struct build *b, enum tci_init_mount_kind kind, const char *cage,
                       const char *bytes, size_t length)
{
    struct tci_mount *m;
    if (make_parents(b, cage) < 0 || !(m = add(b, kind, cage)))
        return -1;
    m->text = bytes;
    m->text_length = length;
    return 0;
}

static int place_text(struct build *b, enum tci_init_mount_kind kind, const char *cage,
                      const char *text)
{
    return place_bytes(b, kind, cage, text, strlen(text));
}

/* A path of the host that is the system's own, which only root can change. */
static int place_bind(struct build *b, const char *cage, const char *host, bool is_file,
                      uint64_t attributes)
{
    uint32_t flags = 0;
    struct tci_mount *m;
    if (prepare_point(b, cage, is_file, &flags) < 0 || !(m = add(b, TCI_MOUNT_BIND, cage)))
        return -1;
    m->flags = flags;
    m->text = m->host = host;
    m->text_length = strlen(host);
    m->attributes = attributes;
    return 0;
}

static uint64_t no_exec(const struct tc_plan *plan)
{
    /* With a list of programs, nothing else may be mapped as code: neither execve nor the loader. */
    return plan->spec.settings->commands.any ? 0 : MOUNT_ATTR_NOEXEC;
}

static int place_grant(struct build *b, const struct tci_path_rule *rule);

/*
 * The attack: the policy lets a tool write to /work and hides /work/keys/private. One call renames
 * /work/keys and makes another; the next call hides the wrong one. A mount point cannot be renamed:
 * so every directory on the way from a writable grant to a rule inside it becomes one, laid over
 * itself.
 */
static int pin_parents(struct build *b, const char *cage)
{
    const struct tci_mount *outer = mount_around(b->plan, cage + 1);
    const char *slash;
    size_t from;
    if (!outer || !outer->writable)
        return 0;
    from = 1 + strlen(outer->target) + (*outer->target ? 1 : 0);
    for (slash = strchr(cage + from, '/'); slash; slash = strchr(slash + 1, '/')) {
        char buffer[TCI_PATH_MAX + 1];
        struct tci_path_rule rule = { .access = TCI_ACCESS_WRITABLE };
        rule.cage = tci_arena_strndup(b->plan->arena, cage, (size_t)(slash - cage));
        if (!rule.cage)
            return tci_error_no_memory(b->reterr);
        if (!tci_native_host_path(b->plan, rule.cage, buffer, sizeof buffer))
            return 0;
        rule.host = tci_arena_strdup(b->plan->arena, buffer);
        if (!rule.host)
            return tci_error_no_memory(b->reterr);
        if (place_grant(b, &rule) < 0)
            return -1;
    }
    return 0;
}

static int place_grant(struct build *b, const struct tci_path_rule *rule)
{
    const struct tc_plan *plan = b->plan;
    bool writable = rule->access == TCI_ACCESS_WRITABLE, is_directory;
    uint64_t device, inode;
    uint32_t flags = 0;
    struct tci_mount *m;
    int fd = tci_native_open_grant(plan, rule->host);
    int r = fd < 0 ? fd : tci_native_identify(fd, &device, &inode, &is_directory);
    if (r < 0) {
        (void)tci_close(fd < 0 ? -1 : fd);
        if (r == -ENOENT && rule->optional)
            return 0; /* tci_native_is_stale looks again */
        tci_error_errno(b->reterr, -r, "the granted path %.300s", rule->host);
        tci_error_remedy(b->reterr,
                         r == -ENOSYS
                             ? "use Linux 5.6 or newer; see openat2 and statx in toolcage doctor"
                         : r == -ELOOP ? "a link lies at a place that this policy lets a tool "
                                         "write to: replace it by the directory itself"
                                       : "create it, or mark the entry with optional = true");
        return -1;
    }
    if (*rule->cage == '/' && rule->cage[1] &&
        prepare_point(b, rule->cage, !is_directory, &flags) < 0) {
        (void)tci_close(fd);
        return -1;
    }
    m = add(b, plan->is_root ? TCI_MOUNT_HANDED : TCI_MOUNT_BIND, rule->cage);
    if (!m) {
        (void)tci_close(fd);
        return -1;
    }
    m->flags = flags | TCI_MOUNT_CHECKED;
    m->text = m->host = rule->host;
    m->text_length = strlen(rule->host);
    m->device = device;
    m->inode = inode;
    m->writable = writable;
    m->attributes = (writable ? LOCKED_DOWN : READ_ONLY) | no_exec(plan);
    if (plan->is_root)
        m->source = fd; /* kept for every call */
    else
        (void)tci_close(fd);
    return 0;
}

/* Is anything granted below it? */
static bool has_inside(const struct build *b, const char *cage)
{
    for (size_t i = 0; i < b->place_count; i++)
        if (strcmp(b->places[i].path, cage) != 0 && tci_path_is_within(b->places[i].path, cage))
            return true;
    return false;
}

/* An empty directory that can be passed through and not be listed, for what is granted inside it. */
static int cover(struct build *b, const char *cage)
{
    const bool open = has_inside(b, cage);
    if (place_tmpfs(b, cage, 65536, "0111", (open ? LOCKED_DOWN : READ_ONLY) | MOUNT_ATTR_NOEXEC) <
        0)
        return -1;
    if (open)
        b->plan->mounts.items[b->plan->mounts.count - 1].flags |= TCI_MOUNT_SEAL;
    return 0;
}

/* Something unreadable over it. What is not there cannot be covered, and could appear later. */
static int place_hidden(struct build *b, const struct tci_path_rule *rule)
{
    const struct tci_mount *around = mount_around(b->plan, rule->cage + 1);
    int found;
    if (around && !around->host) {
        /* Nothing is there, and nobody can make it except in a tmpfs that the command may write. */
        bool nobody = around->attributes & MOUNT_ATTR_RDONLY || !*around->target;
        return nobody && !has_inside(b, rule->cage) ? 0 : cover(b, rule->cage);
    }
    found = look_at_point(b, rule->cage);
    if (found == -ENOENT && rule->optional)
        return 0;
    if (found < 0) {
        tci_error_set(b->reterr, TC_ERROR_UNSUPPORTED, "%.400s cannot be hidden: %s", rule->cage,
                      strerrordesc_np(-found));
        tci_error_remedy(b->reterr,
                         found == -ENOENT
                             ? "create it (what is not there cannot be covered, and could appear "
                               "while the call runs), or mark the entry with optional = true"
                             : "name the path that the link leads to");
        return -1;
    }
    if (found)
        return cover(b, rule->cage);
    /* A device that may not be opened, because of nodev. */
    return place_bind(b, rule->cage, "/dev/null", true, READ_ONLY | MOUNT_ATTR_NOEXEC);
}

/* ---- what every cage has ------------------------------------------------------------------------ */

static const struct {
    const char *path, *text;
} generated[] = {
    { "/etc/passwd", "cage:x:1000:1000:cage:/tmp:/bin/sh\n"
                     "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" },
    { "/etc/group", "cage:x:1000:\nnogroup:x:65534:\n" },
    { "/etc/hosts", "127.0.0.1 localhost cage\n::1 localhost cage\n" },
    { "/etc/resolv.conf", "" },
};

static const struct {
    const char *path, *text;
} links[] = {
    { "/dev/fd", "/proc/self/fd" },
    { "/dev/stdin", "/proc/self/fd/0" },
    { "/dev/stdout", "/proc/self/fd/1" },
    { "/dev/stderr", "/proc/self/fd/2" },
};

/* A small file is copied: that is quicker than a mount. 1: done, 0: mount it. */
static int place_copy(struct build *b, const char *path, const struct stat *status)
{
    tc_cleanup(tci_closep) int fd = -1;
    char *text;
    ssize_t n;
    if (!S_ISREG(status->st_mode) || status->st_size > copy_max || !(status->st_mode & S_IROTH) ||
        (fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)) < 0)
        return 0;
    text = tci_arena_alloc(b->plan->arena, copy_max + 2);
    if (!text)
        return tci_error_no_memory(b->reterr);
    n = tci_read_some(fd, text, copy_max + 1);
    if (n < 0 || n > copy_max)
        return 0;
    return place_bytes(b, TCI_MOUNT_FILE, path, text, (size_t)n) < 0 ? -1 : 1;
}

/* The host's own file, directory or link; what this host does not have, the cage has not either. */
static int place_system(struct build *b, const char *path)
{
    struct stat status;
    char target[TCI_PATH_MAX + 1];
    ssize_t n;
    char *text;
    uint64_t attributes = READ_ONLY | no_exec(b->plan);
    const struct tci_mount *around = mount_around(b->plan, path + 1);
    if (lstat(path, &status) < 0)
        return 0;
    if (around && !around->host) {
        int copied = place_copy(b, path, &status);
        if (copied)
            return copied < 0 ? -1 : 0;
    }
    if (!S_ISLNK(status.st_mode))
        return place_bind(b, path, path, !S_ISDIR(status.st_mode), attributes);
    if (around && around->host)
        return 0; /* a root of the host's: the link is there, or it is another system's */
    n = readlink(path, target, sizeof target - 1);
    if (n < 0)
        return tci_error_errno(b->reterr, errno, "reading the link %s", path);
    text = tci_arena_strndup(b->plan->arena, target, (size_t)n);
    return text ? place_text(b, TCI_MOUNT_LINK, path, text) : tci_error_no_memory(b->reterr);
}

static int place_own(struct build *b, const struct tci_cage_path *own)
{
    const struct tci_settings *s = b->plan->spec.settings;
    const struct tci_mount *around = mount_around(b->plan, own->path + 1);
    bool ours = around && !around->host;
    if (strcmp(own->path, "/proc") == 0) {
        uint32_t flags = 0;
        struct tci_mount *m;
        if (prepare_point(b, own->path, false, &flags) < 0 ||
            !(m = add(b, TCI_MOUNT_PROC, own->path)))
            return -1;
        m->flags = flags;
        m->attributes = READ_ONLY | MOUNT_ATTR_NOEXEC;
        return 0;
    }
    if (strcmp(own->path, "/tmp") == 0)
        return place_tmpfs(b, own->path, s->filesystem.scratch, "1777",
                           LOCKED_DOWN | no_exec(b->plan));
    if (strcmp(own->path, "/dev/shm") == 0)
        return place_tmpfs(b, own->path, s->filesystem.scratch, "1777",
                           LOCKED_DOWN | MOUNT_ATTR_NOEXEC);
    if (own->access == TCI_ACCESS_HIDDEN)
        return access(own->path, F_OK) < 0
                   ? 0
                   : place_bind(b, own->path, "/dev/null", true, READ_ONLY | MOUNT_ATTR_NOEXEC);
    for (size_t i = 0; i < tci_array_size(links); i++)
        if (strcmp(own->path, links[i].path) == 0)
            return ours ? place_text(b, TCI_MOUNT_LINK, own->path, links[i].text) : 0;
    for (size_t i = 0; i < tci_array_size(generated); i++)
        if (strcmp(own->path, generated[i].path) == 0 && ours)
            return place_text(b, TCI_MOUNT_FILE, own->path, generated[i].text);
    if (strncmp(own->path, "/dev/", 5) == 0)
        return place_bind(b, own->path, own->path, true, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
    return place_system(b, own->path);
}

int tci_native_mount_program(struct tc_plan *plan, const char *cage, const char *host, bool is_file,
                             const struct tci_program *checked, struct tc_error *reterr)
{
    struct tci_mount *m;
    struct build b = { .plan = plan, .reterr = reterr };
    const struct tci_mount *around = mount_around(plan, cage + 1);
    if (!around || !(around->attributes & MOUNT_ATTR_NOEXEC))
        return 0;
    if (strcmp(around->target, cage + 1) == 0) { /* it is a mount of its own already */
        plan->mounts.items[around - plan->mounts.items].attributes &= ~(uint64_t)MOUNT_ATTR_NOEXEC;
        return 0;
    }
    if (place_bind(&b, cage, host, is_file, READ_ONLY) < 0)
        return -1;
    if (checked) {
        m = &plan->mounts.items[plan->mounts.count - 1];
        m->flags |= TCI_MOUNT_CHECKED;
        m->device = checked->device;
        m->inode = checked->inode;
    }
    return 0;
}

/* ---- the whole ---------------------------------------------------------------------------------- */

static int place_root(struct build *b)
{
    const struct tci_settings *s = b->plan->spec.settings;
    struct tci_mount *m;
    if (b->place_count && strcmp(b->places[0].path, "/") == 0 && b->places[0].rule &&
        b->places[0].rule->access != TCI_ACCESS_HIDDEN)
        return place_grant(b, b->places[0].rule);
    if (s->rootfs) {
        struct tci_path_rule rule = { .access = TCI_ACCESS_READABLE,
                                      .host = s->rootfs,
                                      .cage = "/" };
        if (place_grant(b, &rule) < 0)
            return -1;
        /* It holds programs of its own. */
        b->plan->mounts.items[0].attributes &= ~(uint64_t)MOUNT_ATTR_NOEXEC;
        return 0;
    }
    m = add(b, TCI_MOUNT_TMPFS, "/");
    if (!m)
        return -1;
    m->attributes = LOCKED_DOWN | MOUNT_ATTR_NOEXEC;
    return tmpfs_options(b, m, 4 << 20, 1024 + 8 * b->place_count, "0755");
}

/* A root of the host's has a /dev of the host's: ours is laid over it, so that devices can be made. */
static int place_dev(struct build *b)
{
    const struct tci_mount *root = &b->plan->mounts.items[0];
    if (!root->host)
        return 0;
    return place_tmpfs(b, "/dev", 1 << 16, "0755", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
}

/* An optional path that is not there: then its parents need not be there either. */
static bool is_absent(const struct build *b, const struct tci_path_rule *rule)
{
    return rule->optional && look_at_point(b, rule->cage) == -ENOENT;
}

/* Combinations of which one wall would be missing. */
static int check_walls(const struct tc_plan *plan, struct tc_error *reterr)
{
    const struct tci_settings *s = plan->spec.settings;
    for (size_t i = 0; i < s->filesystem.count && plan->landlock_abi < 2; i++)
        if (s->filesystem.rules[i].access == TCI_ACCESS_READABLE) {
            tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                          "without Landlock 2, a jail cannot keep %.300s readable only: FIFOs in it "
                          "could be written to",
                          s->filesystem.rules[i].host);
            tci_error_remedy(reterr, "use Linux 5.19 or newer with Landlock: see landlock in toolcage doctor");
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
    struct build b = { .plan = plan, .reterr = reterr };
    if (check_walls(plan, reterr) < 0)
        return -1;
    if (collect_places(&b) < 0 || place_root(&b) < 0 || place_dev(&b) < 0)
        return -1;
    for (size_t i = 0; i < b.place_count; i++) {
        const struct place *p = &b.places[i];
        int r = 0;
        if (strcmp(p->path, "/") == 0)
            continue;
        if (p->rule && !is_absent(&b, p->rule) && pin_parents(&b, p->path) < 0)
            return -1;
        if (!p->rule)
            r = place_own(&b, p->own);
        else
            r = p->rule->access == TCI_ACCESS_HIDDEN ? place_hidden(&b, p->rule)
                                                     : place_grant(&b, p->rule);
        if (r < 0)
            return -1;
    }
    if (plan->mounts.count > items_max)
        return tci_error_set(reterr, TC_ERROR_TOO_LARGE, "the cage would have more than %d mounts",
                             (int)items_max);
    return 0;
}
