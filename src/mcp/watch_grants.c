/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: noticing that an agent may call other tools than it was told: a grant was made or revoked at run
 * time, or has expired, or there is another policy. Decisions do not wait for this: each asks the journal
 * and the clock itself.
 *
 * Once a second, and when the policy is replaced, a worker asks the journal whether any grant has changed, and
 * the clock whether one of the session's agent has expired. Only then are lists made, for the sessions that
 * have read theirs, and only those who would read another one are told: an agent hears nothing of the others'
 * grants, and nothing of their changes. The clock on the wall is looked at anew each time, not waited for:
 * somebody may set it, also back, and then an expired grant holds again.
 */
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/siphash.h"
#include "core/engine.h"
#include "core/engine_runtime.h"
#include "core/engine_tools.h"
#include "journal/journal.h"
#include "mcp/server.h"

enum { seconds_between = 1 };

struct list {
    struct tci_mcp_session *session; /* held */
    struct tci_mcp_listed seen;      /* when the look began */
    struct tci_mcp_listed now;       /* what it would read */
    bool is_made;                    /* the latter is known */
};

struct look {
    struct tci_mcp_post post;
    struct tci_mcp_server *server;
    struct tci_mcp_grants *grants; /* NULL: it is gone; loop's thread only */
    struct tci_mcp_engine *engine; /* held */
    uint64_t version;              /* of the journal's grants; 0: nothing is known of them */
    size_t count;
    struct list lists[];
};

struct tci_mcp_grants {
    struct tci_mcp_server *server;
    struct event *timer;
    struct look *look;
};

/* ---- what a session has read ---------------------------------------------------------------- */

static int64_t seconds_now(void)
{
    return (int64_t)(tci_clock_realtime_ms() / 1000);
}

static uint64_t sum_of(const char *text, size_t length)
{
    static const uint64_t no_key[2]; /* nobody gains by two lists that look alike */
    uint64_t sum = tci_siphash(no_key, text, length);
    return sum ? sum : 1;
}

int tci_mcp_list_tools(struct tci_mcp_engine *engine, const struct tci_mcp_session *session,
                       size_t first, struct tci_buf *out, struct tci_mcp_listed *ret,
                       struct tc_error *reterr)
{
    const struct tci_tools_page page = { .first = first,
                                         .count = TCI_MCP_PAGE,
                                         .no_outputs = session->version < TCI_MCP_2025_06_18 };
    const size_t before = out->length;
    int more;
    /* Before the list, not after: what changes in between is found by the next look. */
    *ret = (struct tci_mcp_listed){
        .is_read = true, .generation = engine->generation, .at = seconds_now(), .until = INT64_MAX
    };
    if (session->agent && engine->engine->journal &&
        tci_journal_grants_version(engine->engine->journal, &ret->version, reterr) < 0)
        return -1;
    more = tci_engine_tools_page(engine->engine, session->agent, &page, out, reterr);
    if (more == 0 && first == 0 && out->data)
        ret->sum = sum_of(out->data + before, out->length - before);
    if (session->agent)
        ret->until = tci_engine_next_expiry(engine->engine, session->agent, ret->at);
    return more;
}

/* ---- a look --------------------------------------------------------------------------------- */

static void free_look(struct look *look)
{
    for (size_t i = 0; i < look->count; i++)
        tci_mcp_session_release(look->lists[i].session);
    tci_mcp_engine_release(look->engine);
    free(look);
}

/* What it has read meanwhile is newer. */
static void tell(const struct list *list)
{
    struct tci_mcp_session *session = list->session;
    const struct tci_mcp_listed *seen = &list->seen, *listed = &session->listed;
    if (session->state != TCI_MCP_READY || !list->is_made || listed->version != seen->version ||
        listed->sum != seen->sum || listed->at != seen->at ||
        listed->generation != seen->generation)
        return;
    session->listed = list->now;
    /* It was told with the new policy, and has not read since. */
    if (list->now.sum != seen->sum && seen->generation)
        tci_mcp_tools_changed(session);
}

static void looked(void *context)
{
    struct look *look = context;
    struct tci_mcp_grants *grants = look->grants;
    const bool is_outdated = look->engine != look->server->engine;
    if (grants)
        grants->look = NULL;
    for (size_t i = 0; grants && !is_outdated && i < look->count; i++)
        tell(&look->lists[i]);
    free_look(look);
    if (grants && is_outdated)
        tci_mcp_grants_look(grants);
}

/* A list of more than a page has no sum, and counts as another one whenever a grant changes. */
static void make_list(const struct look *look, struct list *list)
{
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    struct tc_error error = { 0 };
    int more = tci_mcp_list_tools(look->engine, list->session, 0, &text, &list->now, &error);
    list->is_made = more >= 0 && tci_buf_check(&text, &error) == 0;
    /* The version that was seen with the decision to look: what came later is found by the next look. */
    list->now.version = look->version;
    if (more > 0)
        list->now.sum = list->seen.sum + 1;
}

/* Has a grant expired since, or was the clock set back, so that one may hold again? Or is it a list of another
 * policy, whose grants expire at other times? */
static bool is_due(const struct tci_mcp_listed *seen, const struct tci_mcp_engine *engine,
                   int64_t now)
{
    return now >= seen->until || now < seen->at || seen->generation != engine->generation;
}

/* In a worker. What cannot be read now is looked at again. */
static void look_at_grants(void *context)
{
    struct look *look = context;
    struct tci_journal *journal = look->engine->engine->journal;
    const int64_t now = seconds_now();
    struct tc_error error = { 0 };
    if (!journal || tci_journal_grants_version(journal, &look->version, &error) == 0)
        for (size_t i = 0; i < look->count; i++)
            if (look->lists[i].seen.version != look->version ||
                is_due(&look->lists[i].seen, look->engine, now))
                make_list(look, &look->lists[i]);
    look->post = (struct tci_mcp_post){ .task = looked, .context = look };
    tci_mcp_loop_post(look->server->loop, &look->post);
}

/* Without a journal only the clock changes anything: most of the time nobody is, and no worker is needed. */
static bool is_concerned(const struct tci_mcp_session *session, int64_t now)
{
    const struct tci_mcp_engine *engine = session->server->engine;
    return session->agent && session->state == TCI_MCP_READY && session->listed.is_read &&
           (engine->engine->journal || is_due(&session->listed, engine, now));
}

static struct look *new_look(struct tci_mcp_grants *grants)
{
    struct tci_mcp_server *server = grants->server;
    const int64_t now = seconds_now(); /* one for both: who is counted has a place */
    struct look *look;
    size_t count = 0;
    for (struct tci_mcp_session *session = server->sessions; session; session = session->next)
        count += is_concerned(session, now);
    look = count ? calloc(1, sizeof *look + count * sizeof look->lists[0]) : NULL;
    if (!look)
        return NULL;
    look->server = server;
    look->grants = grants;
    look->engine = tci_mcp_engine_hold(server);
    for (struct tci_mcp_session *session = server->sessions; session; session = session->next) {
        if (!is_concerned(session, now))
            continue;
        session->users++;
        look->lists[look->count++] = (struct list){ .session = session, .seen = session->listed };
    }
    look->post = (struct tci_mcp_post){ .task = look_at_grants, .context = look };
    return look;
}

void tci_mcp_grants_look(struct tci_mcp_grants *grants)
{
    struct look *look;
    if (grants->look)
        return;
    look = new_look(grants);
    if (!look)
        return;
    if (tci_mcp_loop_work(grants->server->loop, &look->post, NULL) < 0)
        free_look(look);
    else
        grants->look = look;
}

static void on_time(evutil_socket_t fd, short what, void *context)
{
    (void)fd, (void)what;
    tci_mcp_grants_look(context);
}

/* ---- the watch ------------------------------------------------------------------------------ */

int tci_mcp_grants_new(struct tci_mcp_server *server, struct tci_mcp_grants **ret,
                       struct tc_error *reterr)
{
    static const struct timeval between = { .tv_sec = seconds_between };
    struct tci_mcp_grants *grants = calloc(1, sizeof *grants);
    if (!grants)
        return tci_error_no_memory(reterr);
    grants->server = server;
    grants->timer = event_new(tci_mcp_loop_base(server->loop), -1, EV_PERSIST, on_time, grants);
    if (!grants->timer || event_add(grants->timer, &between) < 0) {
        tci_mcp_grants_free(grants);
        return tci_error_no_memory(reterr);
    }
    *ret = grants;
    return 0;
}

void tci_mcp_grants_free(struct tci_mcp_grants *grants)
{
    if (!grants)
        return;
    if (grants->look)
        grants->look->grants = NULL;
    if (grants->timer)
        event_free(grants->timer);
    free(grants);
}
