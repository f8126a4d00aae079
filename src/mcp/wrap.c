/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the relay as a whole: what it is made of, why it ends, and in which order. Invariants: a reason to
 * stop is recorded when it is found, and acted on when nobody is in the middle of a message; everybody
 * who waits is told; the server's cage is gone before we are.
 */
#include "mcp/wrap_internal.h"

#include <event2/event.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/fd.h"
#include "base/uuid.h"
#include "core/engine.h"
#include "core/grants_list.h"
#include "journal/journal.h"
#include "policy/place.h"

enum {
    workers = 32,
    linger_ms = 2000, /* for the client to come and be told why there is no server */
};

void tci_wrap_say(struct tci_wrap *wrap, const char *format, ...)
{
    char line[4096];
    va_list arguments;
    if (!wrap->options->say)
        return;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    wrap->options->say(wrap->options->context, line);
}

int tci_wrap_timer(struct tci_wrap *wrap, struct event **event, uint64_t ms,
                   void (*function)(int, short, void *), void *context)
{
    struct timeval when = { .tv_sec = (time_t)(ms / 1000),
                            .tv_usec = (suseconds_t)(ms % 1000 * 1000) };
    if (!*event)
        *event = event_new(wrap->base, -1, 0, function, context);
    return *event ? event_add(*event, &when) : -1;
}

/* ---- the end -------------------------------------------------------------------------------- */

static void patience_over(evutil_socket_t fd, short what, void *context)
{
    struct tci_wrap *wrap = context;
    (void)fd, (void)what;
    wrap->is_patient = false;
    tci_wrap_check_end(wrap);
}

/* Requests that waited for a list that will not come. */
static void end_held(struct tci_wrap *wrap)
{
    json_t *held = tc_take(wrap->held), *id = tc_take(wrap->initialize_id);
    for (size_t i = 0; i < json_array_size(held); i++)
        tci_wrap_client_error(wrap, json_object_get(json_array_get(held, i), "id"),
                              TCI_MCP_INTERNAL, wrap->error.message, wrap->error.remedy);
    if (id)
        tci_wrap_client_error(wrap, id, TCI_MCP_INTERNAL, wrap->error.message, wrap->error.remedy);
    wrap->is_told |= id || json_array_size(held);
    json_decref(held);
    json_decref(id);
}

static void fail_now(evutil_socket_t fd, short what, void *context)
{
    struct tci_wrap *wrap = context;
    (void)fd, (void)what;
    if (wrap->is_reported)
        return;
    wrap->is_reported = true;
    end_held(wrap);
    tci_wrap_pending_end_all(wrap);
    tci_wrap_server_kill(wrap);
    /* Clients show an answer, and hardly ever why a program ended: it waits for a question. */
    if (wrap->client && !wrap->is_told && !wrap->is_at_end)
        wrap->is_patient = tci_wrap_timer(wrap, &wrap->linger, linger_ms, patience_over, wrap) == 0;
    tci_wrap_check_end(wrap);
}

void tci_wrap_fail(struct tci_wrap *wrap, const char *remedy, const char *format, ...)
{
    char message[sizeof wrap->error.message];
    va_list arguments;
    if (wrap->is_failed)
        return;
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    wrap->is_failed = true;
    tci_error_set(&wrap->error, TC_ERROR_INTERNAL, "%s", message);
    wrap->error.code = TC_ERROR_UNSUPPORTED; /* it is the server's doing, not a bug of ours */
    if (remedy && *remedy)
        tci_error_remedy(&wrap->error, "%s", remedy);
    if (tci_wrap_timer(wrap, &wrap->failing, 0, fail_now, wrap) < 0)
        tci_mcp_loop_stop(wrap->loop);
}

void tci_wrap_check_end(struct tci_wrap *wrap)
{
    bool busy = wrap->call_count || wrap->plain_count || wrap->held || wrap->initialize_id;

    if (wrap->is_failed && !wrap->is_reported)
        return;
    if (!wrap->is_failed && (!wrap->is_at_end || busy))
        return;
    if (!wrap->is_failed)
        tci_wrap_server_end(wrap);
    if (wrap->call || (wrap->is_patient && !wrap->is_told && !wrap->is_at_end))
        return;
    if (wrap->client && !wrap->is_gone && tci_mcp_channel_waiting(wrap->client))
        return;
    tci_mcp_loop_stop(wrap->loop);
}

void tci_wrap_close(struct tci_wrap *wrap)
{
    if (wrap->engine) { /* else nothing was begun */
        tci_wrap_asked_free(wrap);
        wrap->is_gone = true;
        if (wrap->loop) {
            tci_wrap_pending_end_all(wrap);
            tci_mcp_loop_drain(wrap->loop);
        }
        tci_wrap_server_wait(wrap);
    }
    if (wrap->failing)
        event_free(wrap->failing);
    if (wrap->linger)
        event_free(wrap->linger);
    if (wrap->relist)
        event_free(wrap->relist);
    tci_mcp_channel_finish(wrap->client);
    tci_mcp_channel_free(wrap->client);
    while (wrap->pending)
        tci_wrap_pending_free(wrap->pending);
    json_decref(wrap->held);
    json_decref(wrap->initialize_id);
    tci_wrap_batches_free(wrap);
    tci_mcp_loop_free(wrap->loop);
    tci_wrap_list_free(&wrap->approved);
    tci_wrap_list_free(&wrap->list);
    tci_wrap_list_free(&wrap->next_list);
    tci_buf_free(&wrap->from_server.part);
    tci_buf_free(&wrap->server_stderr.part);
    tc_engine_close(wrap->engine);
    (void)pthread_mutex_destroy(&wrap->lock);
    (void)pthread_cond_destroy(&wrap->answered);
}

/* ---- the beginning -------------------------------------------------------------------------- */

struct asked {
    const char *tool;
    bool found;
};

static void see_grant(void *context, const struct tci_listed_grant *row)
{
    struct asked *asked = context;
    const struct tci_settings *narrow = row->grant ? row->grant->narrow : NULL;
    asked->found |= strcmp(row->tool, asked->tool) == 0 && narrow && !row->revoked_us &&
                    (narrow->present & tci_key_bit(TCI_KEY_APPROVAL)) &&
                    narrow->approval == TCI_APPROVAL_ASK;
}

/* By the tool, or by a grant for it; whose it is does not matter, since grants are inherited. One that is
 * made later counts from the next start on; calls heed it at once. */
static int find_asked(const struct tci_wrap *wrap, bool *ret, struct tc_error *reterr)
{
    struct asked asked = { .tool = wrap->tool->name,
                           .found = wrap->tool->settings.approval == TCI_APPROVAL_ASK };
    int r = tci_grants_each(wrap->engine, NULL, see_grant, &asked, reterr);
    *ret = asked.found;
    return r;
}

static int find_tool(struct tci_wrap *wrap, struct tc_error *reterr)
{
    const char *name = wrap->options->tool;
    bool is_asked;
    wrap->tool = name ? tci_engine_tool(wrap->engine, name) : NULL;
    if (!wrap->tool) {
        tci_error_set(reterr, TC_ERROR_USAGE, "the policy has no tool \"%.100s\"",
                      name ? name : "");
        tci_error_remedy(reterr, "add [tool.NAME] with mcp = {} to the policy, and name it");
        return -1;
    }
    /* Without the table nobody has said which limits hold; a tool that was made for something else must
     * not become a server by mistake. */
    if (!wrap->tool->settings.mcp.given) {
        tci_error_set(reterr, TC_ERROR_USAGE, "tool \"%s\" is not for an MCP server", name);
        tci_error_remedy(reterr, "add mcp = { } to [tool.%s]", name);
        return -1;
    }
    wrap->rules_in_force = wrap->tool->settings.mcp;
    wrap->rules = &wrap->rules_in_force;
    /* A person wants to be asked. What is no call passes without a question, and a server may do anything
     * when a resource is read: it does not, unless somebody has named it. */
    if (find_asked(wrap, &is_asked, reterr) < 0)
        return -1;
    if (is_asked && !wrap->rules->has_features)
        wrap->rules_in_force.features &= ~(unsigned)(TCI_FEATURE_RESOURCES | TCI_FEATURE_PROMPTS |
                                                     TCI_FEATURE_COMPLETIONS);
    return 0;
}

static int name_sessions(struct tci_wrap *wrap, struct tc_error *reterr)
{
    char id[TCI_UUID_TEXT_MAX];
    if (tci_uuid7(id) < 0)
        return tci_error_set(reterr, TC_ERROR_IO, "there are no random numbers");
    if (wrap->options->session && strlen(wrap->options->session) >= sizeof wrap->session)
        return tci_error_set(reterr, TC_ERROR_USAGE, "the session's name is too long");
    if (wrap->options->session)
        (void)snprintf(wrap->session, sizeof wrap->session, "%s", wrap->options->session);
    else
        (void)snprintf(wrap->session, sizeof wrap->session, "mcp-%s", id);
    /* Of its own: a replay of the calls has no use for the run of the server. */
    (void)snprintf(wrap->server_session, sizeof wrap->server_session, "%s-server", wrap->session);
    /* Likewise: what is no call has no place between the calls, which are replayed in their order. */
    (void)snprintf(wrap->reads_session, sizeof wrap->reads_session, "%s-reads", wrap->session);
    return 0;
}

static int check_schemas(const struct tc_policy *policy, struct tci_place *place,
                         struct tc_error *reterr)
{
    int r = 0;
    place->what = "schema";
    for (size_t i = 0; r == 0 && i < policy->tool_count; i++) {
        const struct tci_settings *s = &policy->tools[i].settings;
        if (s->parameters.file)
            r = tci_place_open(s->parameters.file, place, NULL, reterr);
        if (r == 0 && s->returns.file)
            r = tci_place_open(s->returns.file, place, NULL, reterr);
    }
    return r;
}

/* A server that can write the policy gives itself another cage, or no pin, for the next time; one that can
 * write a schema of it allows itself other calls. */
static int check_policy(const struct tci_wrap *wrap, struct tc_error *reterr)
{
    const struct tc_policy *policy = wrap->engine->policy;
    tc_cleanup(tci_reach_freep) struct tci_reach *reach = tci_reach_of_cage(
        &wrap->tool->settings.filesystem);
    struct tci_place place = { .what = "policy", .reach = reach };
    int r = 0;
    if (!reach)
        return tci_error_no_memory(reterr);
    if (wrap->options->policy_path && strcmp(wrap->options->policy_path, "-") != 0)
        r = tci_place_open(wrap->options->policy_path, &place, NULL, reterr);
    place.what = "directory of tools";
    for (size_t i = 0; r == 0 && i < policy->tool_directory_count; i++)
        r = tci_place_open(policy->tool_directories[i].path, &place, NULL, reterr);
    place.what = "tool file";
    for (size_t i = 0; r == 0 && i < policy->tool_file_count; i++)
        r = tci_place_open(policy->tool_files[i].path, &place, NULL, reterr);
    if (r == 0)
        r = check_schemas(policy, &place, reterr);
    return r == 0 ? 0 : -1;
}

static void fill_buckets(struct tci_wrap *wrap)
{
    double rate = wrap->rules->rate == TCI_UNLIMITED ? 1 : (double)wrap->rules->rate;
    wrap->calls_a_minute = (struct tci_wrap_bucket){ .most = rate, .a_second = rate / 60 };
    wrap->unasked = (struct tci_wrap_bucket){ .most = 2000, .a_second = 500 };
    wrap->unasked_work = (struct tci_wrap_bucket){ .most = 32 << 20, .a_second = 8 << 20 };
    wrap->stderr_lines = (struct tci_wrap_bucket){ .most = 100, .a_second = 10 };
    wrap->refusals = (struct tci_wrap_bucket){ .most = 10, .a_second = 1 };
}

int tci_wrap_open(struct tci_wrap *wrap, const struct tci_mcp_wrap_options *options,
                  struct tc_error *reterr)
{
    struct tc_engine_options engine = {
        .policy_path = options->policy_path,
        .journal_path = options->journal_path,
        .mode = options->mode,
        .on_approval = tci_wrap_approve,
        .approval_context = wrap,
    };
    pthread_condattr_t clock;

    wrap->options = options;
    wrap->server_in[0] = wrap->server_in[1] = -1;
    (void)pthread_mutex_init(&wrap->lock, NULL);
    (void)pthread_condattr_init(&clock);
    (void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&wrap->answered, &clock);
    (void)pthread_condattr_destroy(&clock);
    if (tci_mcp_loop_new(workers, true, &wrap->loop, reterr) < 0)
        return -1;
    wrap->base = tci_mcp_loop_base(wrap->loop);
    if (tc_engine_open(&engine, &wrap->engine, reterr) < 0 || find_tool(wrap, reterr) < 0 ||
        check_policy(wrap, reterr) < 0 || name_sessions(wrap, reterr) < 0)
        return -1;
    fill_buckets(wrap);
    /* The loop's thread writes it, in the order in which calls end: with somebody who keeps it locked each of them
     * would hold up pings, timeouts and signals. */
    if (wrap->engine->journal)
        tci_journal_be_impatient(wrap->engine->journal);
    return 0;
}

int tci_wrap_run(struct tci_wrap *wrap, struct tc_error *reterr)
{
    if (tci_mcp_loop_run(wrap->loop, reterr) < 0)
        return -1;
    if (!wrap->is_failed)
        return 0;
    if (reterr)
        *reterr = wrap->error;
    return -1;
}

const char *tci_wrap_pin_path(const struct tci_wrap *wrap)
{
    return wrap->options->pin_path ? wrap->options->pin_path : wrap->rules->pin;
}

static int read_pin(struct tci_wrap *wrap, struct tc_error *reterr)
{
    const char *path = tci_wrap_pin_path(wrap);
    if (path) {
        wrap->has_pin = true;
        return tci_pin_read(path, &wrap->tool->settings.filesystem, &wrap->approved, reterr);
    }
    if (wrap->options->mode != TC_MODE_REPLAY)
        return 0;
    tci_error_set(reterr, TC_ERROR_USAGE,
                  "replay starts no server, and nothing else says which tools it has");
    tci_error_remedy(reterr, "pin it first with \"toolcage mcp pin\"");
    return -1;
}

/* Without a server: the pin says what it would say. */
static int begin_replay(struct tci_wrap *wrap, struct tc_error *reterr)
{
    wrap->has_list = wrap->is_shown = true;
    if (tci_pin_read(tci_wrap_pin_path(wrap), NULL, &wrap->list, reterr) < 0)
        return -1;
    json_decref(wrap->list.capabilities); /* only calls are recorded */
    wrap->list.capabilities = json_pack("{s:{}}", "tools");
    return wrap->list.capabilities ? 0 : tci_error_no_memory(reterr);
}

static int begin(struct tci_wrap *wrap, int in, int out, struct tc_error *reterr)
{
    if (read_pin(wrap, reterr) < 0)
        return -1;
    wrap->listed = tci_wrap_client_listed;
    if ((wrap->options->mode == TC_MODE_REPLAY ? begin_replay(wrap, reterr)
                                               : tci_wrap_server_start(wrap, reterr)) < 0)
        return -1;
    return tci_wrap_client_open(wrap, in, out, reterr);
}

int tci_mcp_wrap(const struct tci_mcp_wrap_options *options, int in, int out,
                 struct tc_error *reterr)
{
    struct tci_wrap *wrap = calloc(1, sizeof *wrap);
    int r;
    if (!wrap)
        return tci_error_no_memory(reterr);
    tci_error_clear(reterr);
    r = tci_wrap_open(wrap, options, reterr);
    if (r == 0)
        r = begin(wrap, in, out, reterr);
    if (r == 0)
        r = tci_wrap_run(wrap, reterr);
    tci_wrap_close(wrap);
    free(wrap);
    return r;
}
