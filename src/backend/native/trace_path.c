/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what is said about a path that was refused. The same tables and the same order of precedence
 * as decide_path.c, on the settings that were in force. What the policy grants and the kernel
 * refuses all the same is said to be so; why, only the owner of the file knows.
 */
#include "backend/native/trace_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "policy/cage_paths.h"
#include "policy/limits.h"

/* What programs ask for as a matter of course, and go on without. docs/denials.md names them. */
static const char *const quiet_paths[] = {
    /* the loader: code of the host's choice */
    "/etc/ld.so.preload",
    /* the C library: old names of locales, options of the resolver, a cache of users and hosts */
    "/usr/share/locale/locale.alias",
    "/etc/locale.alias",
    "/etc/host.conf",
    "/etc/gai.conf",
    "/var/run/nscd/socket",
    /* ls, cp, mkdir and others: is there SELinux? */
    "/proc/filesystems",
    "/proc/mounts",
    /* the C library, for the first thread: how many processors? */
    "/sys/devices/system/cpu/online",
    /* bash: the terminal of its session */
    "/dev/tty",
};

static const char *const kinds[] = { [TCI_TRACE_READ] = "read",
                                     [TCI_TRACE_WRITE] = "write",
                                     [TCI_TRACE_MAKE] = "write",
                                     [TCI_TRACE_EXEC] = "exec" };

struct text {
    char text[TCI_TRACE_SHOWN_MAX + 16];
};

/* A path in quotes, for a sentence. A long one would be cut, and then it would be another path. */
static const char *quoted(const char *path, struct text *buffer)
{
    size_t length = strlen(path);
    if (length > TCI_TRACE_SHOWN_MAX)
        return "it";
    buffer->text[0] = '"';
    (void)tci_trace_clean(path, length, buffer->text + 1, TCI_TRACE_SHOWN_MAX + 5);
    if (strlen(buffer->text) > TCI_TRACE_SHOWN_MAX)
        return "it";
    memcpy(buffer->text + strlen(buffer->text), "\"", 2);
    return buffer->text;
}

/* The directory of a path in normal form. */
static void parent_of(const char *path, char buffer[TCI_PATH_MAX + 1])
{
    size_t length = (size_t)(strrchr(path, '/') - path);
    length = length ? length : 1;
    memcpy(buffer, path, length);
    buffer[length] = '\0';
}

/* ---- rules --------------------------------------------------------------------------------------- */

/* The path of the host that was asked for is granted, under another name. */
static bool say_mapped(const struct tci_filesystem *fs, const char *path, char *rule)
{
    struct text shown;
    char cage[2 * TCI_PATH_MAX + 2];
    for (size_t i = 0; i < fs->count; i++) {
        const struct tci_path_rule *r = &fs->rules[i];
        const char *rest;
        if (r->access == TCI_ACCESS_HIDDEN || strcmp(r->host, r->cage) == 0 ||
            strcmp(r->host, "/") == 0 || !tci_path_is_within(path, r->host))
            continue;
        rest = path + strlen(r->host);
        (void)snprintf(cage, sizeof cage, "%s%s", strcmp(r->cage, "/") == 0 && *rest ? "" : r->cage,
                       rest);
        (void)snprintf(rule, TCI_TRACE_RULE_MAX,
                       "filesystem: this path of the host is %s in the cage", quoted(cage, &shown));
        return true;
    }
    return false;
}

static void say_not_granted(const struct tci_settings *s, const struct tci_trace_host *host,
                            enum tci_trace_access access, const char *path, char *rule)
{
    char parent[TCI_PATH_MAX + 1];
    struct text shown;
    if (say_mapped(&s->filesystem, path, rule))
        return;
    /* Only what is there can be granted. */
    if (access == TCI_TRACE_MAKE && !tci_trace_host_has(host, path)) {
        parent_of(path, parent);
        if (strcmp(parent, "/") == 0 || !tci_trace_host_has(host, parent))
            (void)snprintf(rule, TCI_TRACE_RULE_MAX,
                           "filesystem: not granted; make files below a path that is "
                           "\"writable\"%s",
                           s->filesystem.scratch ? ", or in /tmp" : "");
        else
            (void)snprintf(rule, TCI_TRACE_RULE_MAX,
                           "filesystem: not granted; add %s to \"writable\"",
                           quoted(parent, &shown));
        return;
    }
    (void)snprintf(rule, TCI_TRACE_RULE_MAX, "filesystem: not granted; add %s to \"%s\"",
                   quoted(path, &shown),
                   access == TCI_TRACE_WRITE || access == TCI_TRACE_MAKE ? "writable" : "readable");
}

bool tci_trace_path_allowed(const struct tci_settings *s, const struct tci_trace_host *host,
                            enum tci_trace_access access, const char *path,
                            char rule[TCI_TRACE_RULE_MAX])
{
    const struct tci_path_rule *granted = tci_path_rule_find(&s->filesystem, path);
    const struct tci_cage_path *own = tci_cage_path_find(s, path);
    bool is_writing = access == TCI_TRACE_WRITE || access == TCI_TRACE_MAKE;
    struct text shown;
    /* As in decide_path.c: the deeper of the two, and hidden beats both. */
    if (granted && own && granted->access != TCI_ACCESS_HIDDEN &&
        strlen(own->path) > strlen(granted->cage))
        granted = NULL;
    if (granted && granted->access == TCI_ACCESS_HIDDEN) {
        (void)snprintf(rule, TCI_TRACE_RULE_MAX, "filesystem: hidden; remove %s from \"hidden\"",
                       quoted(granted->cage, &shown));
        return false;
    }
    if (granted && is_writing && granted->access != TCI_ACCESS_WRITABLE) {
        (void)snprintf(rule, TCI_TRACE_RULE_MAX,
                       "filesystem: only readable; move %s from \"readable\" to \"writable\"",
                       quoted(granted->cage, &shown));
        return false;
    }
    if (!granted && own && is_writing && own->access != TCI_ACCESS_WRITABLE) {
        (void)snprintf(rule, TCI_TRACE_RULE_MAX,
                       "%s: %s is only readable in every cage; write to a path that is "
                       "\"writable\"%s",
                       *own->key ? own->key : "filesystem", quoted(own->path, &shown),
                       s->filesystem.scratch ? ", or to /tmp" : "");
        return false;
    }
    if (!granted && !own) {
        say_not_granted(s, host, access, path, rule);
        return false;
    }
    return true;
}

/* ---- attempts ------------------------------------------------------------------------------------ */

static bool is_quiet(const char *path)
{
    for (size_t i = 0; i < tci_array_size(quiet_paths); i++)
        if (strcmp(path, quiet_paths[i]) == 0)
            return true;
    return false;
}

/* Opening, to read, something that only the host's /tmp has: the cage's own /tmp is another. Who only
 * asks whether it is there, or writes, may well mean the cage's own. False: it is not that. */
static bool say_other_scratch(const struct tci_trace *trace, const struct tci_trace_attempt *a,
                              char *rule)
{
    const struct tci_settings *s = trace->plan->spec.settings;
    const struct tci_cage_path *own = tci_cage_path_find(s, a->path);
    struct text shown;
    if (a->is_question || (a->access != TCI_TRACE_READ && a->access != TCI_TRACE_EXEC) || !own ||
        own->access != TCI_ACCESS_WRITABLE || strcmp(own->key, "filesystem") != 0 ||
        tci_path_rule_find(&s->filesystem, a->path))
        return false;
    (void)snprintf(rule, TCI_TRACE_RULE_MAX,
                   "filesystem: %s is the cage's own, not the host's; add %s to \"readable\"",
                   own->path, quoted(a->path, &shown));
    return true;
}

/* The cage says that it is not there. That is a denial if it is there, outside; or if the policy hides
 * the place, whatever there is. */
static bool is_kept_out(struct tci_trace *trace, const struct tci_trace_attempt *a)
{
    const struct tci_path_rule *rule = tci_path_rule_find(&trace->plan->spec.settings->filesystem,
                                                          a->path);
    if (!trace->plan->is_jail || !a->exact)
        return false;
    if ((rule && rule->access == TCI_ACCESS_HIDDEN) || tci_trace_host_has(&trace->host, a->path))
        return true;
    if (a->access != TCI_TRACE_MAKE)
        return false;
    parent_of(a->path, trace->base);
    return tci_trace_host_has(&trace->host, trace->base);
}

static void say_permissions(const struct tci_trace *trace, const struct tci_trace_attempt *a,
                            char *rule)
{
    const struct tc_plan *plan = trace->plan;
    if (a->error == EROFS)
        (void)snprintf(rule, TCI_TRACE_RULE_MAX,
                       "permissions: the policy grants it; its file system is read-only");
    else if (!plan->is_jail && !plan->programs.any && tci_path_is_within(a->path, "/usr"))
        (void)snprintf(rule, TCI_TRACE_RULE_MAX,
                       "commands: with a list of programs, backend \"process\" lets only those, "
                       "libraries and /usr/share be read");
    else
        (void)snprintf(rule, TCI_TRACE_RULE_MAX,
                       "permissions: the policy grants it; its owner, its mode or a link on the "
                       "way refuses");
}

void tci_trace_path(struct tci_trace *trace, const struct tci_trace_attempt *a)
{
    bool is_refused = a->error == EACCES || a->error == EPERM || a->error == EROFS;
    bool is_allowed;
    if ((!is_refused && a->error != ENOENT) || is_quiet(a->path))
        return;
    is_allowed = tci_trace_path_allowed(trace->plan->spec.settings, &trace->host, a->access,
                                        a->path, trace->rule);
    if (!is_refused && is_allowed)
        is_allowed = !say_other_scratch(trace, a, trace->rule);
    if (!is_refused && (is_allowed || !is_kept_out(trace, a)))
        return;
    if (is_allowed && a->is_one_of_two)
        return;
    if (is_allowed && a->access == TCI_TRACE_EXEC)
        tci_trace_program_rule(trace->plan, a->path, trace->rule);
    else if (is_allowed)
        say_permissions(trace, a, trace->rule);
    (void)tci_trace_clean(a->path, strlen(a->path), trace->target, sizeof trace->target);
    tci_trace_list_add(&trace->list, kinds[a->access], trace->target, trace->rule);
}

void tci_trace_full(struct tci_trace *trace, const char *path, int error)
{
    const struct tci_settings *s = trace->plan->spec.settings;
    const struct tci_path_rule *granted = tci_path_rule_find(&s->filesystem, path);
    bool is_scratch = s->filesystem.scratch &&
                      (tci_path_is_within(path, "/tmp") || tci_path_is_within(path, "/dev/shm"));
    if (error == EFBIG)
        (void)snprintf(trace->rule, sizeof trace->rule,
                       "disk: a file may have %llu bytes at most; raise \"disk\"",
                       (unsigned long long)s->disk);
    else if (is_scratch && !granted)
        (void)snprintf(trace->rule, sizeof trace->rule,
                       "filesystem: %llu bytes of scratch are full; raise \"scratch\"",
                       (unsigned long long)s->filesystem.scratch);
    else if (granted && granted->access == TCI_ACCESS_WRITABLE)
        (void)snprintf(trace->rule, sizeof trace->rule,
                       "the file system of the host is full, or a quota is used up");
    else
        return; /* /dev/full, and the like */
    (void)tci_trace_clean(path, strlen(path), trace->target, sizeof trace->target);
    tci_trace_list_add(&trace->list, "disk", trace->target, trace->rule);
}
