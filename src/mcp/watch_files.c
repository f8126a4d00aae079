/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: looking at the files of a policy. */
#include "mcp/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/siphash.h"
#include "policy/doc.h"
#include "policy/model.h"

enum { links_max = 40 }; /* the kernel's own limit */

void tci_watch_each_file(const struct tc_policy *policy, const char *path, tci_watch_visitor *visit,
                         void *context)
{
    visit(context, path);
    for (size_t i = 0; i < policy->tool_directory_count; i++)
        visit(context, policy->tool_directories[i].path);
    for (size_t i = 0; i < policy->tool_file_count; i++)
        visit(context, policy->tool_files[i].path);
    for (size_t i = 0; i < policy->tool_count; i++) {
        const struct tci_settings *s = &policy->tools[i].settings;
        if (s->parameters.file)
            visit(context, s->parameters.file);
        if (s->returns.file)
            visit(context, s->returns.file);
    }
}

/* ---- places -------------------------------------------------------------------------------- */

struct walk {
    tci_watch_visitor *visit;
    void *context;
    int links;
};

/* The directory of `path`, behind all links; NULL: there is none. free() it. */
static char *real_parent(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *directory = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path))
                            : strdup(".");
    char *real = directory ? realpath(directory, NULL) : NULL;
    free(directory);
    return real;
}

static char *join(const char *directory, const char *name)
{
    char *path;
    return asprintf(&path, "%s/%s", directory[1] ? directory : "", name) < 0 ? NULL : path;
}

static void walk_path(struct walk *walk, const char *path);

/* On the heap: forty of these may be open at one time, in a worker's small stack. */
static void walk_link(struct walk *walk, const char *path)
{
    const char *slash = strrchr(path, '/');
    char *directory = real_parent(path), *target = calloc(1, PATH_MAX), *place = NULL;
    ssize_t n = target ? readlink(path, target, PATH_MAX - 1) : -1;
    if (directory && n > 0 && ++walk->links <= links_max) {
        place = join(directory, slash ? slash + 1 : path);
        if (place)
            walk->visit(walk->context, place);
        free(place);
        place = target[0] == '/' ? strdup(target) : join(directory, target);
        if (place)
            walk_path(walk, place);
    }
    free(place);
    free(target);
    free(directory);
}

/* Links among the parts of the path. What comes behind a link is looked up by the kernel. */
static void walk_path(struct walk *walk, const char *path)
{
    char *part = strdup(path);
    struct stat st;
    size_t length = strlen(path);
    for (size_t i = 1; part && i <= length; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        part[i] = '\0';
        if (lstat(part, &st) == 0 && S_ISLNK(st.st_mode))
            walk_link(walk, part);
        part[i] = path[i];
    }
    free(part);
}

void tci_watch_each_place(const char *path, tci_watch_visitor *visit, void *context)
{
    struct walk walk = { .visit = visit, .context = context };
    char real[PATH_MAX];
    walk_path(&walk, path);
    if (realpath(path, real))
        visit(context, real);
}

/* ---- changes ------------------------------------------------------------------------------- */

/* The sum so far is the key for the next file: their order counts as well. */
static void add_fingerprint(void *context, const char *path)
{
    uint64_t *sum = context;
    struct stat st = { 0 };
    const int problem = stat(path, &st) < 0 ? errno : 0;
    const uint64_t seen[] = {
        (uint64_t)problem,
        st.st_dev,
        st.st_ino,
        (uint64_t)st.st_size,
        (uint64_t)st.st_mtim.tv_sec,
        (uint64_t)st.st_mtim.tv_nsec,
        (uint64_t)st.st_ctim.tv_sec, /* nobody can set this one */
        (uint64_t)st.st_ctim.tv_nsec,
    };
    const uint64_t key[2] = { *sum, 0 };
    *sum = tci_siphash(key, seen, sizeof seen);
}

uint64_t tci_watch_fingerprint(const struct tc_policy *policy, const char *path)
{
    uint64_t sum = 0;
    tci_watch_each_file(policy, path, add_fingerprint, &sum);
    return sum;
}

/*
 * Nobody gets a lease for reading while somebody has the file open for writing. Who opens it while we hold
 * the lease makes the kernel tell us: by a signal that does nothing, instead of SIGIO, which would end us.
 */
static void look_for_writer(void *context, const char *path)
{
    bool *found = context;
    tc_cleanup(tci_closep) int fd = *found
                                        ? -1
                                        : open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || fcntl(fd, F_SETSIG, SIGURG) < 0)
        return;
    if (fcntl(fd, F_SETLEASE, F_RDLCK) == 0)
        (void)fcntl(fd, F_SETLEASE, F_UNLCK);
    else
        *found = errno == EAGAIN;
}

bool tci_watch_is_being_written(const struct tc_policy *policy, const char *path)
{
    bool found = false;
    tci_watch_each_file(policy, path, look_for_writer, &found);
    return found;
}
