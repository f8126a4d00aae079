/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: finding our own control group: /proc/self/cgroup says where in each hierarchy, and
 * /proc/self/mountinfo where that hierarchy, or a part of it, is mounted. Reads only. Lines that
 * are longer than any that matters are skipped whole.
 */
#include "backend/probe_cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/mountinfo.h"

struct lines {
    int fd;
    size_t start, end;
    bool skipping; /* inside a line that did not fit */
    char buffer[8192];
};

/* The next line without its end, or NULL. It lives until the next call. */
static char *next_line(struct lines *l)
{
    for (;;) {
        char *from = l->buffer + l->start;
        char *newline = memchr(from, '\n', l->end - l->start);
        ssize_t n;
        if (newline) {
            bool skip = l->skipping;
            *newline = '\0';
            l->start = (size_t)(newline + 1 - l->buffer);
            l->skipping = false;
            if (skip)
                continue;
            return from;
        }
        if (l->start == 0 && l->end == sizeof l->buffer) {
            l->skipping = true;
            l->end = 0;
        }
        memmove(l->buffer, l->buffer + l->start, l->end - l->start);
        l->end -= l->start;
        l->start = 0;
        n = read(l->fd, l->buffer + l->end, sizeof l->buffer - l->end);
        if (n <= 0)
            return NULL;
        l->end += (size_t)n;
    }
}

bool tci_cgroup_has_word(const char *text, const char *word, char separator)
{
    const char separators[] = { separator, ' ', '\n', '\0' };
    size_t length = strlen(word);
    while (*text) {
        size_t n = strcspn(text, separators);
        if (n == length && memcmp(text, word, n) == 0)
            return true;
        text += n;
        text += strspn(text, separators);
    }
    return false;
}

/* Opens a file that is always there; without /proc nothing is known. */
static int lines_open(struct lines *l, const char *path)
{
    l->start = l->end = 0;
    l->skipping = false;
    l->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (l->fd >= 0)
        return 0;
    return errno == ENOENT ? ENXIO : errno;
}

/* What is looked for, and what is known of it. */
struct wanted {
    const char *controller; /* NULL: version 2 */
    char path[TCI_CGROUP_PATH_MAX];
    bool has_path, found;
};

/* "ID:CONTROLLERS:PATH"; version 2 has the id 0 and no controllers. */
static int own_paths(struct lines *l, struct wanted *all, size_t count)
{
    char *line;
    int problem = lines_open(l, "/proc/self/cgroup");
    if (problem)
        return problem;
    while ((line = next_line(l))) {
        char *controllers = strchr(line, ':'), *path;
        if (!controllers || !(path = strchr(++controllers, ':')))
            continue;
        *path++ = '\0';
        for (size_t i = 0; i < count; i++) {
            struct wanted *w = &all[i];
            if (w->has_path ||
                !(w->controller ? tci_cgroup_has_word(controllers, w->controller, ',')
                                : strncmp(line, "0:", 2) == 0 && !*controllers))
                continue;
            w->has_path = (size_t)snprintf(w->path, sizeof w->path, "%s", path) < sizeof w->path;
        }
    }
    (void)close(l->fd);
    return 0;
}

struct mount_line {
    char *root, *point, *type, *options;
};

/* "36 35 98:0 /root /point options [optional] - type source super-options" */
static bool mount_parse(char *line, struct mount_line *ret)
{
    char *rest, *dash = strstr(line, " - "), *fields[5];
    if (!dash)
        return false;
    *dash = '\0';
    rest = line;
    for (size_t i = 0; i < tci_array_size(fields); i++)
        if (!(fields[i] = strsep(&rest, " ")))
            return false;
    ret->root = fields[3];
    ret->point = fields[4];
    rest = dash + 3;
    ret->type = strsep(&rest, " ");
    if (!strsep(&rest, " ") || !rest)
        return false;
    ret->options = rest;
    tci_mountinfo_unescape(ret->root);
    tci_mountinfo_unescape(ret->point);
    return true;
}

/* `path` in the hierarchy, seen through a mount of its part `root`. */
static bool place_from(const struct mount_line *m, const char *path, struct tci_cgroup_place *ret)
{
    size_t length = strcmp(m->root, "/") == 0 ? 0 : strlen(m->root);
    int n;
    if (strncmp(path, m->root, length) != 0 || (path[length] && path[length] != '/'))
        return false;
    path += length;
    if (strcmp(path, "/") == 0)
        path = "";
    ret->depth = 0;
    for (const char *c = path; *c; c++)
        ret->depth += *c == '/';
    n = snprintf(ret->directory, sizeof ret->directory, "%s%s", m->point, path);
    return n > 0 && (size_t)n < sizeof ret->directory;
}

static bool is_mount_of(const struct mount_line *m, const char *controller)
{
    return controller
               ? strcmp(m->type, "cgroup") == 0 && tci_cgroup_has_word(m->options, controller, ',')
               : strcmp(m->type, "cgroup2") == 0;
}

int tci_cgroup_find_all(const char *const *controllers, size_t count, struct tci_cgroup_place *ret,
                        unsigned *ret_found)
{
    struct lines l;
    struct wanted all[TCI_CGROUP_FIND_MAX];
    char *line;
    int problem;
    *ret_found = 0;
    if (count > TCI_CGROUP_FIND_MAX)
        return EINVAL;
    for (size_t i = 0; i < count; i++) {
        all[i].controller = controllers[i];
        all[i].has_path = all[i].found = false;
    }
    problem = own_paths(&l, all, count);
    if (!problem)
        problem = lines_open(&l, "/proc/self/mountinfo");
    if (problem)
        return problem;
    while ((line = next_line(&l))) {
        struct mount_line m;
        if (!mount_parse(line, &m) || strncmp(m.type, "cgroup", 6) != 0)
            continue;
        for (size_t i = 0; i < count; i++)
            if (all[i].has_path && !all[i].found && is_mount_of(&m, all[i].controller))
                all[i].found = place_from(&m, all[i].path, &ret[i]);
    }
    (void)close(l.fd);
    for (size_t i = 0; i < count; i++)
        *ret_found |= all[i].found ? 1U << i : 0;
    return 0;
}

int tci_cgroup_find(const char *controller, struct tci_cgroup_place *ret)
{
    unsigned found;
    int problem = tci_cgroup_find_all(&controller, 1, ret, &found);
    return problem || found ? problem : ENOENT;
}

int tci_cgroup_kinds(struct tci_cgroup_kinds *ret)
{
    struct lines l;
    char *line;
    int problem = lines_open(&l, "/proc/self/mountinfo");
    memset(ret, 0, sizeof *ret);
    if (problem)
        return problem;
    while ((line = next_line(&l))) {
        struct mount_line m;
        if (!mount_parse(line, &m))
            continue;
        /* A hierarchy without controllers (systemd's own) limits nothing. */
        if (strcmp(m.type, "cgroup") == 0 && !strstr(m.options, "name="))
            ret->v1 = true;
        if (strcmp(m.type, "cgroup2") == 0 && !ret->v2) {
            ret->v2 = true;
            (void)snprintf(ret->v2_mount, sizeof ret->v2_mount, "%.*s",
                           (int)sizeof ret->v2_mount - 1, m.point);
        }
    }
    (void)close(l.fd);
    return 0;
}
