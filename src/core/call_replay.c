/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the canonical request of a call that has a journal, and results that come out of it. In replay
 * nothing is decided, asked, counted or started: the answer is the record of an equal request, or an
 * error that says where the two runs part.
 */
#include "core/record.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/clock.h"
#include "base/quote.h"
#include "journal/journal.h"

/* A session that is being read. */
struct tci_engine_replay {
    struct tci_engine_replay *next;
    struct tci_replay *replay;
    char session[];
};

void tci_engine_replays_free(struct tc_engine *engine)
{
    struct tci_engine_replay *next;
    for (struct tci_engine_replay *r = engine->replays; r; r = next) {
        next = r->next;
        tci_replay_close(r->replay);
        free(r);
    }
    engine->replays = NULL;
}

/* ---- sessions ----------------------------------------------------------------------------- */

/* With the lock held. */
static int open_replay(struct tc_engine *engine, const char *session, struct tci_replay **ret,
                       struct tc_error *reterr)
{
    struct tci_engine_replay *entry;
    size_t size = strlen(session) + 1;

    for (entry = engine->replays; entry; entry = entry->next)
        if (strcmp(entry->session, session) == 0) {
            *ret = entry->replay;
            return 0;
        }
    entry = calloc(1, sizeof *entry + size);
    if (!entry)
        return tci_error_no_memory(reterr);
    memcpy(entry->session, session, size);
    if (tci_replay_open(engine->journal, session, engine->flags & TC_ENGINE_REPLAY_RESUME,
                        &entry->replay, reterr) < 0) {
        free(entry);
        return -1;
    }
    entry->next = engine->replays;
    engine->replays = entry;
    *ret = entry->replay;
    return 0;
}

static int take_record(struct tc_call *call, const char *session, struct tci_journal_row *ret,
                       struct tc_error *reterr)
{
    struct tc_engine *engine = call->engine;
    struct tci_replay *replay = NULL;
    int r;

    (void)pthread_mutex_lock(&engine->lock);
    r = open_replay(engine, session, &replay, reterr);
    (void)pthread_mutex_unlock(&engine->lock);
    if (r < 0)
        return -1;
    return tci_replay_take(replay, call->recorded->hash, call->result->arena, ret, reterr);
}

/* ---- divergence --------------------------------------------------------------------------- */

static int note_step(void *context, const struct tci_journal_row *row, struct tc_error *reterr)
{
    (void)reterr;
    *(uint64_t *)context = row->step;
    return 0;
}

/* Everything that was recorded has been asked for. */
static void session_ended(struct tc_call *call, const char *session)
{
    struct tci_journal_query query = { .session = session, .last = 1 };
    char quoted[TCI_QUOTE_MAX];
    uint64_t steps = 0;

    (void)tci_quote(session, strlen(session), quoted);
    (void)tci_journal_each(call->engine->journal, &query, note_step, &steps, NULL);
    tci_result_verdict(call->result, TC_VERDICT_ERROR,
                       "record a new session, or replay this one from its beginning",
                       "replay diverged at step %llu of session %s: it has only %llu steps",
                       (unsigned long long)steps + 1, quoted, (unsigned long long)steps);
}

static void diverged(struct tc_call *call, const char *session, const struct tci_journal_row *row)
{
    tc_cleanup(tci_buf_free) struct tci_buf diff = TCI_BUF_INIT(SIZE_MAX / 4);
    char quoted[TCI_QUOTE_MAX];

    if (row->row == 0) {
        session_ended(call, session);
        return;
    }
    tci_buf_append(&diff, "", 0);
    if (row->entry.request)
        tci_request_diff(call->result->arena, row->entry.request, call->recorded->text, &diff);
    else
        tci_buf_printf(&diff,
                       "the recorded request is kept only as its hash %.12s, this one has %.12s",
                       row->entry.request_hash, call->recorded->hash);
    tci_result_verdict(call->result, TC_VERDICT_ERROR,
                       "make the same calls in the order of the record, or record a new session",
                       "replay diverged at step %llu of session %s: %s",
                       (unsigned long long)row->step, tci_quote(session, strlen(session), quoted),
                       diff.length ? diff.data : "the requests differ");
}

/* ---- results ------------------------------------------------------------------------------ */

static int give_result(struct tc_call *call, const char *session, const struct tci_journal_row *row,
                       struct tc_error *reterr)
{
    const char *why = NULL, *fix = NULL;
    char quoted[TCI_QUOTE_MAX];
    int r = tci_record_read(row, call->result, &why, &fix, reterr);

    (void)tci_quote(session, strlen(session), quoted);
    if (r < 0)
        return tci_error_wrap(reterr, "step %llu of session %s", (unsigned long long)row->step,
                              quoted);
    if (r > 0)
        tci_result_verdict(call->result, TC_VERDICT_ERROR, fix,
                           "step %llu of session %s cannot be replayed: %s",
                           (unsigned long long)row->step, quoted, why);
    return 0;
}

static int replay(struct tc_call *call, const struct tc_request *request, struct tc_error *reterr)
{
    const char *session = request->session ? request->session : "";
    struct tci_journal_row row = { .row = 0 };
    struct tc_error error = { 0 };
    int r;

    call->result->public.mode = TC_MODE_REPLAY;
    call->streams.on_output = request->on_output;
    call->streams.context = request->context;
    r = take_record(call, session, &row, &error);
    if (r == 0)
        r = give_result(call, session, &row, &error);
    else if (r > 0)
        diverged(call, session, &row);
    if (r < 0 && error.code == TC_ERROR_NO_MEMORY)
        return tci_error_no_memory(reterr);
    if (r < 0)
        tci_call_refuse(call->result, &error);
    return 1;
}

void tci_call_replay_output(struct tc_call *call)
{
    const struct tc_result *public = &call->result->public;
    tc_output_function *on_output = call->streams.on_output;

    if (public->mode != TC_MODE_REPLAY || !on_output)
        return;
    call->streams.on_output = NULL;
    if ((public->stdout_length == 0 ||
         on_output(call->streams.context, TC_STREAM_STDOUT, public->stdout_data,
                   public->stdout_length) == 0) &&
        public->stderr_length > 0)
        (void)on_output(call->streams.context, TC_STREAM_STDERR, public->stderr_data,
                        public->stderr_length);
}

/* ---- the stage ---------------------------------------------------------------------------- */

static int64_t now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec < 0 ? 0 : (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* A name for people, in lists and messages: one line of text. */
static int check_session(const char *session, struct tc_error *reterr)
{
    enum { session_max = 255 };
    size_t length = strlen(session);
    bool control = false;

    for (size_t i = 0; i < length; i++)
        control |= (unsigned char)session[i] < 0x20 || session[i] == 0x7f;
    if (length > 0 && length <= session_max && !control && tci_is_utf8(session, length))
        return 0;
    tci_error_set(reterr, TC_ERROR_USAGE, "the session's name cannot be recorded");
    tci_error_remedy(reterr, "name it with 1 to %d bytes of UTF-8 text without control characters",
                     session_max);
    return -1;
}

/* A nested call is also made for the agents around it, which are not known yet. */
static bool may_be_recorded_by_defaults(const struct tc_call *call,
                                        const struct tc_request *request)
{
    return (request->agent || request->parent) &&
           call->engine->policy->anonymous->settings.record != TCI_RECORD_FALSE;
}

void tci_call_decided(struct tc_call *call, const struct tc_request *request, bool allowed)
{
    struct tci_recorded *recorded = call->recorded;
    if (!recorded)
        return;
    if (!allowed && (request->agent || request->parent)) {
        recorded->record = call->engine->policy->anonymous->settings.record;
        recorded->without_request = true;
    }
    if (recorded->record == TCI_RECORD_FALSE)
        call->recorded = NULL;
}

/* What cannot be recorded does not run: a tool that fills the disk would run unseen from then on. Nor is
 * the refusal recorded; what is left of the space is for revoke and prune. */
static int check_journal(struct tc_call *call, struct tc_error *reterr)
{
    if (tci_journal_writable(call->engine->journal, strlen(call->recorded->text), reterr) == 0)
        return 0;
    call->recorded = NULL;
    return tci_error_wrap(reterr, "the call was not made, since it could not be recorded");
}

int tci_call_replay(struct tc_call *call, const struct tc_request *request, struct tc_error *reterr)
{
    struct tc_engine *engine = call->engine;
    const struct tci_tool *tool = NULL;
    const struct tci_settings *settings;

    if (!engine->journal)
        return 0;
    if (request->session && check_session(request->session, reterr) < 0)
        return -1;
    /* What the policy says of a tool that it does not have is what [defaults] say. */
    tool = request->tool ? tci_engine_tool(engine, request->tool) : NULL;
    settings = &(tool ? tool : engine->policy->anonymous)->settings;
    if (engine->mode == TC_MODE_REPLAY)
        call->tool = tool ? tool : engine->policy->anonymous; /* for callers; nothing is decided */
    if (settings->record == TCI_RECORD_FALSE && engine->mode == TC_MODE_LIVE &&
        !may_be_recorded_by_defaults(call, request))
        return 0;
    call->recorded = tci_arena_new_of(call->result->arena, struct tci_recorded);
    if (!call->recorded)
        return tci_error_no_memory(reterr);
    call->recorded->record = settings->record;
    call->recorded->began_us = now_us();
    call->recorded->began_clock = tci_clock_us();
    if (tci_request_text(call, request, settings, tci_journal_salt(engine->journal), call->recorded,
                         reterr) < 0)
        return -1;
    return engine->mode == TC_MODE_REPLAY ? replay(call, request, reterr)
                                          : check_journal(call, reterr);
}
