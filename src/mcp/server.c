/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the server: its engine, which a new policy replaces, and its sessions.
 * Invariant: an engine is closed when the last call that uses it is over, and it is not the present
 * one.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/clock.h"
#include "core/engine.h"
#include "mcp/server.h"

void tci_mcp_say(struct tci_mcp_server *server, const char *format, ...)
{
    char line[2048];
    va_list arguments;
    if (!server->options->say)
        return;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    server->options->say(server->options->context, line);
}

/* ---- engines ------------------------------------------------------------------------------ */

int tci_mcp_engine_open(struct tci_mcp_server *server, struct tc_policy *policy,
                        struct tc_engine **ret, struct tc_error *reterr)
{
    const struct tci_mcp_options *options = server->options;
    struct tc_engine_options engine = {
        .policy_path = policy ? NULL : options->policy_path,
        .policy = policy,
        .journal_path = options->journal_path,
        .mode = options->mode,
        .flags = options->warm ? TC_ENGINE_WARM : 0,
        .on_approval = tci_mcp_approve,
        .approval_context = server,
    };
    if (tc_engine_open(&engine, ret, reterr) < 0)
        return -1;
    if (policy)
        (*ret)->own_policy = policy;
    return 0;
}

struct tci_mcp_engine *tci_mcp_engine_hold(struct tci_mcp_server *server)
{
    struct tci_mcp_engine *engine;
    (void)pthread_mutex_lock(&server->policy_lock);
    engine = server->engine;
    engine->users++;
    (void)pthread_mutex_unlock(&server->policy_lock);
    return engine;
}

/* With the lock. False: it takes too long. The time counts from the change on, not from the call: else a
 * load that hangs would let calls fill all workers. */
static bool await_policy(struct tci_mcp_server *server)
{
    while (server->policy_pending) {
        uint64_t until = server->policy_pending + TCI_MCP_POLICY_MS * 1000ULL;
        struct timespec at = { .tv_sec = (time_t)(until / 1000000),
                               .tv_nsec = (long)(until % 1000000 * 1000) };
        if (tci_clock_us() >= until)
            return false;
        (void)pthread_cond_timedwait(&server->policy_settled, &server->policy_lock, &at);
    }
    return true;
}

bool tci_mcp_policy_await(struct tci_mcp_server *server)
{
    bool is_settled;
    (void)pthread_mutex_lock(&server->policy_lock);
    is_settled = await_policy(server);
    (void)pthread_mutex_unlock(&server->policy_lock);
    return is_settled;
}

struct tci_mcp_engine *tci_mcp_engine_take(struct tci_mcp_server *server)
{
    struct tci_mcp_engine *engine = NULL;
    (void)pthread_mutex_lock(&server->policy_lock);
    if (await_policy(server)) {
        engine = server->engine;
        engine->users++;
    }
    (void)pthread_mutex_unlock(&server->policy_lock);
    return engine;
}

void tci_mcp_policy_pending(struct tci_mcp_server *server, bool pending)
{
    (void)pthread_mutex_lock(&server->policy_lock);
    if (!pending || !server->policy_pending)
        server->policy_pending = pending ? tci_clock_us() : 0;
    (void)pthread_cond_broadcast(&server->policy_settled);
    (void)pthread_mutex_unlock(&server->policy_lock);
}

static void close_engine(void *context)
{
    struct tci_mcp_engine *engine = context;
    tc_engine_close(engine->engine);
    free(engine);
}

/* Cages that it keeps ready take a while to end: that is not the loop's work. */
void tci_mcp_engine_release(struct tci_mcp_engine *engine)
{
    unsigned left;
    if (!engine)
        return;
    (void)pthread_mutex_lock(&engine->server->policy_lock);
    left = --engine->users;
    (void)pthread_mutex_unlock(&engine->server->policy_lock);
    if (left)
        return;
    engine->post = (struct tci_mcp_post){ .task = close_engine, .context = engine };
    if (engine->server->closing || tci_mcp_loop_work(engine->server->loop, &engine->post, NULL) < 0)
        close_engine(engine);
}

/* ---- a new policy ------------------------------------------------------------------------- */

/* Does the owner see other tools than before? What cannot be compared counts as changed. Lists of agents are made
 * from the journal's grants, too, and the loop does not wait for the journal: watch_grants.c compares those. */
static bool tools_differ(struct tc_engine *before, struct tc_engine *now)
{
    char *a = NULL, *b = NULL;
    struct tc_error why = { 0 };
    bool differ = tc_engine_tools(before, NULL, "mcp", &a, &why) < 0 ||
                  tc_engine_tools(now, NULL, "mcp", &b, &why) < 0 || strcmp(a, b) != 0;
    free(a);
    free(b);
    return differ;
}

bool tci_mcp_same_agent(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

void tci_mcp_tools_changed(struct tci_mcp_session *session)
{
    tci_mcp_notify(session, 0, "notifications/tools/list_changed", NULL);
    tci_mcp_notify(session, 0, "notifications/resources/list_changed", NULL);
    tci_mcp_resource_updated(session, "toolcage://tools");
}

/* An agent's session that has read its list is told by the look at grants, if the list is another one now; of one
 * that has not, nobody knows what it has seen. */
static void tell_session(struct tci_mcp_session *session, bool owners_differ)
{
    if (session->agent ? !session->listed.is_read : owners_differ) {
        session->listed.generation = 0;
        tci_mcp_tools_changed(session);
    }
    tci_mcp_resource_updated(session, "toolcage://policy");
}

void tci_mcp_server_replace(struct tci_mcp_server *server, struct tc_engine *engine)
{
    struct tci_mcp_engine *before = server->engine, *now = calloc(1, sizeof *now);
    struct tci_mcp_session *next;
    bool differ;
    if (!now) {
        tci_mcp_say(server, "no memory for the new policy: the old one stays in force");
        tc_engine_close(engine);
        return;
    }
    *now = (struct tci_mcp_engine){
        .engine = engine, .users = 1, .generation = before->generation + 1, .server = server
    };
    (void)pthread_mutex_lock(&server->policy_lock);
    tci_engine_replace(before->engine, engine);
    server->engine = now;
    (void)pthread_mutex_unlock(&server->policy_lock);
    differ = tools_differ(before->engine, engine);
    for (struct tci_mcp_session *session = server->sessions; session; session = next) {
        next = session->next;
        if (session->state != TCI_MCP_READY)
            continue;
        session->users++; /* its transport may end while it is told */
        tell_session(session, differ);
        tci_mcp_session_release(session);
    }
    tci_mcp_grants_look(server->grants);
    tci_mcp_engine_release(before);
}

/* ---- the server --------------------------------------------------------------------------- */

static void make_lock(struct tci_mcp_server *server)
{
    pthread_condattr_t clock;
    (void)pthread_mutex_init(&server->policy_lock, NULL);
    tci_mcp_budget_init(&server->budget);
    (void)pthread_condattr_init(&clock);
    (void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&server->policy_settled, &clock);
    (void)pthread_condattr_destroy(&clock);
}

static void free_server(struct tci_mcp_server *server)
{
    tci_mcp_lanes_free(server);
    (void)pthread_cond_destroy(&server->policy_settled);
    (void)pthread_mutex_destroy(&server->policy_lock);
    tci_mcp_budget_destroy(&server->budget);
    free(server);
}

int tci_mcp_server_new(const struct tci_mcp_options *options, struct tci_mcp_loop *loop,
                       struct tci_mcp_server **ret, struct tc_error *reterr)
{
    struct tci_mcp_server *server = calloc(1, sizeof *server);
    if (server)
        server->engine = calloc(1, sizeof *server->engine);
    if (!server || !server->engine) {
        free(server);
        return tci_error_no_memory(reterr);
    }
    make_lock(server);
    server->options = options;
    server->loop = loop;
    server->store_lock = -1;
    server->engine->users = 1;
    server->engine->generation = 1;
    server->engine->server = server;
    if (tci_mcp_engine_open(server, NULL, &server->engine->engine, reterr) < 0) {
        free(server->engine);
        free_server(server);
        return -1;
    }
    if ((options->policy_path && tci_mcp_watch_new(server, &server->watch, reterr) < 0) ||
        tci_mcp_grants_new(server, &server->grants, reterr) < 0) {
        tci_mcp_server_free(server);
        return -1;
    }
    *ret = server;
    return 0;
}

void tci_mcp_server_free(struct tci_mcp_server *server)
{
    if (!server)
        return;
    server->closing = true;
    tci_mcp_watch_free(server->watch);
    server->watch = NULL;
    tci_mcp_grants_free(server->grants);
    while (server->sessions)
        tci_mcp_session_close(server->sessions);
    tci_mcp_loop_drain(server->loop);
    tci_mcp_files_close(server);
    tci_mcp_engine_release(server->engine);
    free_server(server);
}
