/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: noticing that the policy changed. The directories are watched, not the files: editors write
 * a new file and rename it, and a watch would stay with the old one. Whoever can write the policy
 * decides what is allowed, now at once and not only after the next start: so one that a tool of its
 * own can write is not watched at all.
 * Invariants: at most one load is under way; what happens meanwhile is looked at after it. A policy
 * that does not load changes nothing: half a policy must not be in force, nor none. So one that is
 * being written is not taken: it must be the same twice, a while apart, and nobody may have it open
 * for writing. While one is being loaded, calls wait for it (server.c).
 * What inotify does not see (a link on the way that points elsewhere, another name of the file) is
 * found by a look at the files once a second.
 */
#include <errno.h>
#include <event2/event.h>
#include <limits.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "core/engine.h"
#include "mcp/server.h"
#include "mcp/watch.h"

enum {
    settle_ms = 100,       /* without another change */
    written_ms = 200,      /* somebody has it open for writing: look again */
    written_said = 25,     /* so often, and it is said */
    slow_seconds = 1,      /* between looks at the files themselves */
    settle_most_ms = 1000, /* but somebody may write for ever */
    retry_ms = 1000,       /* a directory that is not there now */
    events_size = 16 * 1024,
};

/* One look at the policy, in a worker. */
struct load {
    struct tci_mcp_post post;
    struct tci_mcp_server *server;
    struct tci_mcp_watch *watch;   /* NULL: it is gone; loop's thread only */
    struct tci_mcp_engine *before; /* the one in force, held */
    char seen[65];            /* hash of a new one that was seen before, and then of this one; "":
                                      it is the same as the one in force */
    bool is_written;          /* somebody is at it */
    struct tc_engine *engine; /* NULL: nothing new is to be taken yet */
    bool writable;            /* by its own tools */
    struct tc_error error;
};

struct tci_mcp_watch {
    struct tci_mcp_server *server;
    int fd;           /* -1: no inotify */
    int file;         /* the watch of the policy file itself */
    bool is_modified; /* that file, and it was not closed since */
    struct event *changed, *settled, *slow;
    uint64_t fingerprint; /* of the files, before they were read last */
    char seen[65];        /* hash of a policy that was seen once, and is not in force; "": none */
    unsigned written;     /* how often somebody was at it */
    uint64_t since;       /* when the first of these changes was seen; 0: none */
    struct load *load;
    bool again;
    char said[sizeof((struct tc_error){ 0 }.message)]; /* why it does not load; "": it does */
};

static void set_timer(struct tci_mcp_watch *watch, unsigned milliseconds)
{
    struct timeval after = { .tv_sec = milliseconds / 1000,
                             .tv_usec = (suseconds_t)(milliseconds % 1000) * 1000 };
    (void)event_add(watch->settled, &after);
}

/* ---- directories --------------------------------------------------------------------------- */

static int watch_directory(struct tci_mcp_watch *watch, const char *path)
{
    const uint32_t mask = IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                          IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
    return inotify_add_watch(watch->fd, path, mask);
}

/* The directory that a file is in. */
static int watch_parent(struct tci_mcp_watch *watch, const char *path)
{
    char directory[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    if (!slash)
        return watch_directory(watch, ".");
    if (length >= sizeof directory)
        return -1;
    (void)snprintf(directory, sizeof directory, "%.*s", length ? (int)length : 1, path);
    return watch_directory(watch, directory);
}

static int watch_schema(struct tci_mcp_watch *watch, const struct tci_schema *schema)
{
    return schema->file ? watch_parent(watch, schema->file) : 0;
}

static void watch_place(void *context, const char *place)
{
    (void)watch_parent(context, place);
}

/* Only of this file is it of interest that somebody writes: in its directory that happens all the time. */
static void watch_file(struct tci_mcp_watch *watch, const char *path)
{
    int file = inotify_add_watch(watch->fd, path, IN_MODIFY | IN_CLOSE_WRITE);
    if (file != watch->file)
        watch->is_modified = false;
    watch->file = file;
}

/* All that the policy in force was read from. What is watched already stays so, and nobody minds a
 * directory too many. A policy file that is a link may change at each of its ends. */
static void watch_all(struct tci_mcp_watch *watch)
{
    const struct tc_policy *policy = watch->server->engine->engine->policy;
    const char *path = watch->server->options->policy_path;
    int r;
    if (watch->fd < 0)
        return;
    r = watch_parent(watch, path);
    tci_watch_each_place(path, watch_place, watch);
    watch_file(watch, path);
    for (size_t i = 0; i < policy->tool_directory_count; i++)
        if (watch_directory(watch, policy->tool_directories[i].path) < 0)
            r = -1;
    for (size_t i = 0; i < policy->tool_count; i++)
        if (watch_schema(watch, &policy->tools[i].settings.parameters) < 0 ||
            watch_schema(watch, &policy->tools[i].settings.returns) < 0)
            r = -1;
    if (r < 0 && !evtimer_pending(watch->settled, NULL))
        set_timer(watch, retry_ms);
}

static void say_not_watched(struct tci_mcp_server *server)
{
    tci_mcp_say(server,
                "a tool can write this policy (lint: TC-L104), so changes of it will not be taken "
                "until the next start");
}

/* ---- loading ------------------------------------------------------------------------------- */

static void load_free(struct load *load)
{
    if (load->engine)
        tc_engine_close(load->engine);
    if (load->before)
        tci_mcp_engine_release(load->before);
    free(load);
}

/* One that does not load: the old one stays in force. Said once, not with each change elsewhere
 * in the directory. */
static void say_failure(struct tci_mcp_watch *watch, const struct tc_error *error)
{
    static const char for_clients[] =
        "the policy has changed and does not load: the old one stays in force";
    struct tci_mcp_session *next;
    char place[sizeof error->file + 32] = "";
    if (strcmp(watch->said, error->message) == 0)
        return;
    (void)snprintf(watch->said, sizeof watch->said, "%s", error->message);
    if (error->file[0])
        (void)snprintf(place, sizeof place, "%s:%u:%u: ", error->file, error->line, error->column);
    tci_mcp_say(watch->server,
                "the policy has changed and does not load, so the old one stays in force: %s%s",
                place, error->message);
    /* A client may show it to a model: paths of the host and lines of the policy stay here. */
    for (struct tci_mcp_session *session = watch->server->sessions; session; session = next) {
        next = session->next;
        tci_mcp_log(session, 0, TCI_MCP_ERROR, "toolcage", for_clients, sizeof for_clients - 1);
    }
}

static void start_load(struct tci_mcp_watch *watch);

/* From now on it stays as it is. */
static void stop_watching(struct tci_mcp_watch *watch)
{
    say_not_watched(watch->server);
    if (watch->changed)
        (void)event_del(watch->changed);
    (void)event_del(watch->settled);
    (void)event_del(watch->slow);
    watch->again = false;
}

/* Is there something to wait for? Then the timer is set. */
static bool must_wait(struct tci_mcp_watch *watch, const struct load *load)
{
    (void)snprintf(watch->seen, sizeof watch->seen, "%s", load->is_written ? "" : load->seen);
    if (load->is_written) {
        if (++watch->written == written_said)
            tci_mcp_say(
                watch->server,
                "the policy is open for writing, so the old one stays in force; better write "
                "a new file and rename it");
        set_timer(watch, written_ms);
        return true;
    }
    watch->written = 0;
    if (load->engine || load->writable || load->error.code || !load->seen[0])
        return false;
    set_timer(watch, settle_ms);
    return true;
}

static void take_new(struct tci_mcp_watch *watch, struct load *load)
{
    if (load->error.code) {
        say_failure(watch, &load->error);
        return;
    }
    if (load->engine)
        tci_mcp_say(watch->server, "the policy has changed: the new one is in force");
    else if (watch->said[0])
        tci_mcp_say(watch->server, "the policy loads again");
    watch->said[0] = '\0';
    if (load->engine) {
        tci_mcp_server_replace(watch->server, tc_take(load->engine));
        /* Its files may have changed before they are watched. */
        watch->again = true;
    }
    watch->seen[0] = '\0';
}

static void loaded(void *context)
{
    struct load *load = context;
    struct tci_mcp_watch *watch = load->watch;
    bool waits;
    if (!watch) {
        load_free(load);
        return;
    }
    watch->load = NULL;
    waits = must_wait(watch, load);
    if (!waits) {
        take_new(watch, load);
        if (load->writable)
            stop_watching(watch);
        else
            watch_all(watch);
    }
    /* While somebody writes, the new policy is not there yet. */
    if (!waits || load->is_written)
        tci_mcp_policy_pending(watch->server, false);
    load_free(load);
    if (watch->again) {
        watch->again = false;
        start_load(watch);
    }
}

/* A new policy that was read twice, and was the same. The tools that run now must not have been able to
 * write it, either. */
static int take_policy(struct load *load, struct tc_policy **policy)
{
    const char *path = load->server->options->policy_path;
    if (tci_watch_is_writable(load->before->engine->policy, path)) {
        load->writable = true;
        return 0;
    }
    if (tci_mcp_engine_open(load->server, *policy, &load->engine, &load->error) < 0)
        return -1;
    *policy = NULL;
    load->writable = tci_watch_is_writable(load->engine->policy, path);
    return 0;
}

/* In a worker. The hash is of all files of the policy: most changes in a directory are none of
 * it. */
static void load_policy(void *context)
{
    struct load *load = context;
    const struct tc_policy *before = load->before->engine->policy;
    const char *path = load->server->options->policy_path;
    struct tc_policy *policy = NULL;
    char seen[sizeof load->seen];

    memcpy(seen, load->seen, sizeof seen);
    load->seen[0] = '\0';
    load->is_written = tci_watch_is_being_written(before, path);
    if (!load->is_written && tc_policy_load(path, &policy, &load->error) == 0 &&
        strcmp(policy->hash, before->hash) != 0) {
        (void)snprintf(load->seen, sizeof load->seen, "%s", policy->hash);
        load->is_written = tci_watch_is_being_written(policy, path);
        if (!load->is_written && strcmp(seen, policy->hash) == 0)
            (void)take_policy(load, &policy);
    }
    tc_policy_free(policy);
    load->post = (struct tci_mcp_post){ .task = loaded, .context = load };
    tci_mcp_loop_post(load->server->loop, &load->post);
}

static uint64_t fingerprint(const struct tci_mcp_watch *watch)
{
    return tci_watch_fingerprint(watch->server->engine->engine->policy,
                                 watch->server->options->policy_path);
}

static void start_load(struct tci_mcp_watch *watch)
{
    struct load *load;
    struct tc_error error = { 0 };
    if (watch->load) {
        watch->again = true;
        return;
    }
    /* Before, not after: what changes while it is read is found by the next look. */
    watch->fingerprint = fingerprint(watch);
    load = calloc(1, sizeof *load);
    if (!load) {
        set_timer(watch, retry_ms);
        return;
    }
    load->server = watch->server;
    load->watch = watch;
    load->before = tci_mcp_engine_hold(watch->server);
    memcpy(load->seen, watch->seen, sizeof load->seen);
    load->post = (struct tci_mcp_post){ .task = load_policy, .context = load };
    tci_mcp_policy_pending(watch->server, true);
    if (tci_mcp_loop_work_first(watch->server->loop, &load->post, &error) < 0) {
        tci_mcp_policy_pending(watch->server, false);
        load_free(load);
        set_timer(watch, retry_ms);
        return;
    }
    watch->load = load;
}

/* ---- changes ------------------------------------------------------------------------------- */

static void on_settled(evutil_socket_t fd, short what, void *context)
{
    struct tci_mcp_watch *watch = context;
    (void)fd, (void)what;
    watch->since = 0;
    watch_all(watch);
    /* For those who cannot have a lease. Not for ever: the end of it may have been missed. */
    if (watch->is_modified && watch->written < written_said) {
        watch->written++;
        set_timer(watch, written_ms);
        return;
    }
    start_load(watch);
}

/* Once a second. */
static void on_slow(evutil_socket_t fd, short what, void *context)
{
    struct tci_mcp_watch *watch = context;
    (void)fd, (void)what;
    if (!evtimer_pending(watch->settled, NULL) && fingerprint(watch) != watch->fingerprint)
        set_timer(watch, settle_ms);
}

static bool has_ending(const char *name, const char *ending)
{
    size_t length = strlen(name), rest = strlen(ending);
    return length > rest && strcmp(name + length - rest, ending) == 0;
}

/* May it be about the policy? Directories that programs work in change all the time. "..data" is
 * the link that is changed when a container's configuration is. */
static bool matters(const struct tci_mcp_watch *watch, const struct inotify_event *event)
{
    const char *slash = strrchr(watch->server->options->policy_path, '/');
    const char *base = slash ? slash + 1 : watch->server->options->policy_path;
    if (!event->len)
        return !(event->mask & IN_IGNORED);
    return strcmp(event->name, base) == 0 || has_ending(event->name, ".toml") ||
           has_ending(event->name, ".yaml") || has_ending(event->name, ".yml") ||
           has_ending(event->name, ".json") || strcmp(event->name, "..data") == 0;
}

static void on_changed(evutil_socket_t fd, short what, void *context)
{
    struct tci_mcp_watch *watch = context;
    alignas(struct inotify_event) char events[events_size];
    ssize_t n = tci_read_some(fd, events, sizeof events);
    bool any = false;
    uint64_t now;
    (void)what;
    for (ssize_t at = 0; at < n;) {
        const struct inotify_event *event = (const void *)(events + at);
        any = any || matters(watch, event);
        if (event->wd == watch->file)
            watch->is_modified = event->mask & IN_MODIFY;
        at += (ssize_t)(sizeof *event + event->len);
    }
    if (!any)
        return;
    now = tci_clock_us();
    if (!watch->since)
        watch->since = now;
    if (now - watch->since < settle_most_ms * 1000ULL)
        set_timer(watch, settle_ms);
}

/* ---- the watch ----------------------------------------------------------------------------- */

static int make_events(struct tci_mcp_watch *watch)
{
    static const struct timeval slowly = { .tv_sec = slow_seconds };
    struct event_base *base = tci_mcp_loop_base(watch->server->loop);
    watch->settled = evtimer_new(base, on_settled, watch);
    watch->slow = event_new(base, -1, EV_PERSIST, on_slow, watch);
    if (!watch->settled || !watch->slow || event_add(watch->slow, &slowly) < 0)
        return -1;
    /* Users have few of these: without one, changes are seen a little later. */
    watch->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (watch->fd < 0)
        return 0;
    watch->changed = event_new(base, watch->fd, EV_READ | EV_PERSIST, on_changed, watch);
    return watch->changed && event_add(watch->changed, NULL) == 0 ? 0 : -1;
}

int tci_mcp_watch_new(struct tci_mcp_server *server, struct tci_mcp_watch **ret,
                      struct tc_error *reterr)
{
    const char *path = server->options->policy_path;
    struct tci_mcp_watch *watch;
    *ret = NULL;
    /* Standard input does not change. */
    if (strcmp(path, "-") == 0)
        return 0;
    if (tci_watch_is_writable(server->engine->engine->policy, path)) {
        say_not_watched(server);
        return 0;
    }
    watch = calloc(1, sizeof *watch);
    if (!watch)
        return tci_error_no_memory(reterr);
    watch->server = server;
    watch->fd = watch->file = -1;
    if (make_events(watch) < 0) {
        tci_mcp_watch_free(watch);
        return tci_error_no_memory(reterr);
    }
    watch_all(watch);
    /* It may have changed since it was read, before anybody watched. */
    start_load(watch);
    *ret = watch;
    return 0;
}

void tci_mcp_watch_free(struct tci_mcp_watch *watch)
{
    if (!watch)
        return;
    if (watch->load)
        watch->load->watch = NULL;
    tci_mcp_policy_pending(watch->server, false);
    if (watch->changed)
        event_free(watch->changed);
    if (watch->settled)
        event_free(watch->settled);
    if (watch->slow)
        event_free(watch->slow);
    (void)tci_close(watch->fd);
    free(watch);
}
