/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: batches (2025-03-26): their answers are gathered, and sent together when the last is there; and how many
 * bytes are gathered at one time.
 * The attack: many batches of calls with large answers, each with a call that does not end: nobody waits for them, and
 * all answers stay in memory. So they are bounded for a batch, for an agent and for the server. What does not fit is an
 * error of its own, and the other members are answered. An agent gets no more than what then is left for the others.
 * Invariants: a session has counted what its batches have; nothing is kept for a session that is closed. Every member
 * has room for a small answer, counted from the beginning; a batch that has none is refused, member by member.
 */
#include <stdlib.h>
#include "mcp/server.h"

enum {
    small = 4096, /* bytes of an answer that is always taken: an id and a message, all escaped */
    batch_max = 16 * 1024 * 1024,
    agent_max = 32 * 1024 * 1024, /* of all its sessions */
    server_max = 128 * 1024 * 1024,
};

struct tci_mcp_batch {
    struct tci_mcp_session *session;
    uint64_t stream;
    size_t pending; /* requests, and the reader while it reads */
    size_t asked;   /* what has to be answered, in all */
    size_t counted; /* of the session's batch_bytes */
    bool is_refused;
    struct tci_buf out;
};

static const char agent_full[] =
    "the answers of this agent's batches take too much memory: send calls one by one";

static bool is_over(const struct tci_mcp_session *session)
{
    return session->state == TCI_MCP_CLOSED;
}

static bool has_room(const struct tci_mcp_session *session, size_t more)
{
    size_t own = more, all = more;
    for (const struct tci_mcp_session *s = session->server->sessions; s; s = s->next) {
        all += s->batch_bytes;
        if (tci_mcp_same_agent(s->agent, session->agent))
            own += s->batch_bytes;
    }
    return own <= agent_max && all <= server_max && own <= server_max - all;
}

static void count(struct tci_mcp_batch *batch, size_t more)
{
    batch->counted += more;
    batch->session->batch_bytes += more;
}

void tci_mcp_batch_forget(struct tci_mcp_batch *batch)
{
    batch->session->batch_bytes -= batch->counted;
    batch->counted = 0;
    tci_buf_free(&batch->out);
}

struct tci_mcp_batch *tci_mcp_batch_new(struct tci_mcp_session *session, uint64_t stream,
                                        size_t members)
{
    struct tci_mcp_batch *batch = calloc(1, sizeof *batch);
    if (!batch)
        return NULL;
    *batch = (struct tci_mcp_batch){
        .session = session,
        .stream = stream,
        .pending = 1,
        .is_refused = !has_room(session, members * small),
        .out = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX),
    };
    /* A refused one is over as soon as it was read. */
    if (!batch->is_refused)
        count(batch, members * small);
    session->users++;
    return batch;
}

const char *tci_mcp_batch_refusal(const struct tci_mcp_batch *batch)
{
    return batch && batch->is_refused ? agent_full : NULL;
}

void tci_mcp_batch_asked(struct tci_mcp_batch *batch, bool is_pending)
{
    batch->asked++;
    batch->pending += is_pending;
}

void tci_mcp_batch_add(struct tci_mcp_batch *batch, const struct json_t *id, struct tci_buf *text)
{
    const char *problem = NULL;
    if (is_over(batch->session) || !text->length)
        return;
    if (text->length > small && batch->counted + text->length > batch_max)
        problem = "the answers of this batch are too large together: send calls one by one";
    else if (text->length > small && !has_room(batch->session, text->length))
        problem = agent_full;
    else if (text->length > small)
        count(batch, text->length);
    if (problem) {
        tci_buf_free(text);
        tci_mcp_write_error(text, id, TCI_MCP_BUSY, problem, NULL);
    }
    tci_buf_char(&batch->out, batch->out.length ? ',' : '[');
    tci_buf_append(&batch->out, text->data, text->length);
}

void tci_mcp_batch_done(struct tci_mcp_batch *batch)
{
    struct tci_mcp_session *session = batch->session;
    if (--batch->pending)
        return;
    if (batch->asked && !is_over(session)) {
        if (batch->out.length)
            tci_buf_char(&batch->out, ']');
        if (tci_buf_check(&batch->out, NULL) < 0) {
            tci_buf_free(&batch->out);
            batch->out = (struct tci_buf)TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
            tci_mcp_write_error(&batch->out, NULL, TCI_MCP_INTERNAL,
                                "there is no memory for the answers of this batch", NULL);
        }
        session->transport.send(session->transport.context, batch->stream, true, batch->out.data,
                                batch->out.length);
    }
    tci_mcp_batch_forget(batch);
    free(batch);
    tci_mcp_session_release(session);
}

bool tci_mcp_batch_taken(struct tci_mcp_batch *batch)
{
    bool answered = batch->asked;
    tci_mcp_batch_done(batch);
    return answered;
}
