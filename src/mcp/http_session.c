/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the sessions of HTTP clients, by their ids.
 * An id is a secret: who has it (and the token) speaks for the session. So it is 256 random bits, it is in no
 * journal and no message, it is looked up by a keyed hash and compared in constant time, and another token
 * than the one that made it gets the answer for an unknown one.
 */
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "base/base64.h"
#include "base/clock.h"
#include "base/siphash.h"
#include "mcp/http.h"

enum { secret_bytes = 32, hurry_us = 60 * 1000 * 1000 };

static int random_bytes(void *ret, size_t length, struct tc_error *reterr)
{
    if (getrandom(ret, length, 0) == (ssize_t)length)
        return 0;
    return tci_error_set(reterr, TC_ERROR_INTERNAL, "there are no random numbers");
}

int tci_mcp_sessions_init(struct tci_mcp_sessions *sessions, struct tc_error *reterr)
{
    return random_bytes(sessions->key, sizeof sessions->key, reterr);
}

/* base64url, without padding: any header and any shell takes it. */
static int make_id(char ret[TCI_MCP_SECRET_SIZE], struct tc_error *reterr)
{
    unsigned char bytes[secret_bytes];
    struct tci_buf text = TCI_BUF_INIT(TCI_MCP_SECRET_SIZE + 8);

    if (random_bytes(bytes, sizeof bytes, reterr) < 0)
        return -1;
    tci_base64_encode(&text, bytes, sizeof bytes);
    if (tci_buf_check(&text, reterr) < 0) {
        tci_buf_free(&text);
        return -1;
    }
    for (size_t i = 0; i < TCI_MCP_SECRET_SIZE - 1; i++)
        ret[i] = text.data[i] == '+' ? '-' : text.data[i] == '/' ? '_' : text.data[i];
    ret[TCI_MCP_SECRET_SIZE - 1] = '\0';
    tci_buf_free(&text);
    return 0;
}

static struct tci_mcp_http_session **slot_of(struct tci_mcp_http *http, const char *id)
{
    uint64_t hash = tci_siphash(http->sessions.key, id, strlen(id));
    return &http->sessions.slots[hash % TCI_MCP_SLOTS];
}

static bool same_secret(const char *left, const char *right)
{
    volatile unsigned char differs = 0;
    for (size_t i = 0; i < TCI_MCP_SECRET_SIZE; i++)
        differs |= (unsigned char)(left[i] ^ right[i]);
    return differs == 0;
}

struct tci_mcp_http_session *tci_mcp_http_session_find(struct tci_mcp_http *http, const char *id,
                                                       int token)
{
    struct tci_mcp_http_session *session;

    if (strlen(id) != TCI_MCP_SECRET_SIZE - 1)
        return NULL;
    for (session = *slot_of(http, id); session; session = session->next)
        if (same_secret(session->id, id))
            return session->token == token ? session : NULL;
    return NULL;
}

/* ---- life ----------------------------------------------------------------------------------- */

static bool is_idle(struct tci_mcp_http_session *session)
{
    for (const struct tci_mcp_stream *stream = session->streams; stream; stream = stream->next)
        if (stream->peer)
            return false;
    return tci_mcp_session_busy(session->session) == 0;
}

static uint64_t idle_since(const struct tci_mcp_http_session *session)
{
    return session->busy_us > session->used_us ? session->busy_us : session->used_us;
}

/* Of those that this token made. Of busy ones: with the oldest message. */
static struct tci_mcp_http_session *find_idlest(struct tci_mcp_http *http, int token,
                                                bool also_busy)
{
    struct tci_mcp_http_session *idlest = NULL;
    uint64_t earliest = UINT64_MAX;

    for (size_t i = 0; i < TCI_MCP_SLOTS; i++)
        for (struct tci_mcp_http_session *session = http->sessions.slots[i]; session;
             session = session->next) {
            uint64_t since = also_busy ? session->used_us : idle_since(session);
            if (session->token == token && since < earliest && (also_busy || is_idle(session))) {
                idlest = session;
                earliest = since;
            }
        }
    return idlest;
}

struct tci_mcp_http_session *tci_mcp_sessions_fullest(struct tci_mcp_http *http, int token)
{
    struct tci_mcp_http_session *fullest = NULL;

    for (size_t i = 0; i < TCI_MCP_SLOTS; i++)
        for (struct tci_mcp_http_session *session = http->sessions.slots[i]; session;
             session = session->next)
            if (session->token == token &&
                session->events.bytes > (fullest ? fullest->events.bytes : 0))
                fullest = session;
    return fullest;
}

void tci_mcp_sessions_sweep(struct tci_mcp_http *http, uint64_t idle_us)
{
    uint64_t now = tci_clock_us();

    for (size_t i = 0; i < TCI_MCP_SLOTS; i++) {
        struct tci_mcp_http_session *session = http->sessions.slots[i], *next;
        for (; session; session = next) {
            next = session->next;
            if (!is_idle(session))
                session->busy_us = now;
            else if (now - idle_since(session) >= idle_us)
                tci_mcp_http_session_close(session, 404, "the session was idle for too long");
        }
    }
}

/* Clients that forget DELETE must not lock out others of their own: the session that was idle for longest
 * goes. Nor must one token lock out the others by keeping all sessions in use: who has less than a share
 * gets the place of one of the token that has most. */
static void make_place(struct tci_mcp_http *http, int token)
{
    size_t tokens = http->options->token_count ? http->options->token_count : 1;
    struct tci_mcp_http_session *idlest;

    if (http->shares.all.of[TCI_MCP_SHARE_SESSIONS] < TCI_MCP_SESSIONS_MAX)
        return;
    if (tci_mcp_share_of(&http->shares, TCI_MCP_SHARE_SESSIONS, token) * tokens <
        TCI_MCP_SESSIONS_MAX) {
        int greediest = tci_mcp_share_greediest(&http->shares, TCI_MCP_SHARE_SESSIONS, token, 0);
        idlest = find_idlest(http, greediest, false);
        if (!idlest)
            idlest = find_idlest(http, greediest, true);
        if (idlest)
            tci_mcp_http_session_close(idlest, 404, "another client needed the place");
        return;
    }
    idlest = find_idlest(http, token, false);
    if (idlest && tci_clock_us() - idle_since(idlest) >= hurry_us)
        tci_mcp_http_session_close(idlest, 404, "the session was idle for too long");
}

int tci_mcp_http_session_open(struct tci_mcp_http *http, int token,
                              struct tci_mcp_http_session **ret, struct tc_error *reterr)
{
    const char *agent = token >= 0 ? http->options->tokens[token].agent : http->options->agent;
    struct tci_mcp_http_session *session, **slot;
    struct tci_mcp_transport transport = { .send = tci_mcp_stream_send };

    make_place(http, token);
    session = calloc(1, sizeof *session);
    if (!session)
        return tci_error_no_memory(reterr);
    session->http = http;
    session->token = token;
    session->used_us = tci_clock_us();
    transport.context = session;
    if (make_id(session->id, reterr) < 0 || !tci_mcp_stream_new(session, NULL) ||
        tci_mcp_session_open(http->server, agent, &transport, &session->session, reterr) < 0) {
        free(session->streams);
        free(session);
        return reterr->code ? -1 : tci_error_no_memory(reterr);
    }
    slot = slot_of(http, session->id);
    session->next = *slot;
    *slot = session;
    tci_mcp_share_change(&http->shares, TCI_MCP_SHARE_SESSIONS, token, 0, 1);
    *ret = session;
    return 0;
}

/* Who waits for a whole answer gets a status. A stream of events has its status already: without an answer
 * the client would come back for it, again and again. */
static void fail_requests(struct tci_mcp_http_session *session, const char *message)
{
    for (const struct tci_mcp_request *request = session->session->requests; request;
         request = request->next) {
        const struct tci_mcp_stream *stream = tci_mcp_stream_find(session, request->stream);
        struct tci_buf text = TCI_BUF_INIT(4096);
        if (!stream || !stream->peer || !stream->has_events || request->cancelled)
            continue;
        tci_mcp_write_error(&text, request->id, TCI_MCP_BUSY, message, NULL);
        if (tci_buf_check(&text, NULL) == 0)
            tci_mcp_peer_event(stream->peer, stream->number, ++session->events.newest, text.data,
                               text.length);
        tci_buf_free(&text);
    }
}

/* It is not in the table any more. */
static void end_session(struct tci_mcp_http_session *session, int status, const char *message)
{
    tci_mcp_share_change(&session->http->shares, TCI_MCP_SHARE_SESSIONS, session->token, 1, 0);
    fail_requests(session, message);
    /* First: nothing is said any more while its calls end. */
    tci_mcp_session_close(session->session);
    tci_mcp_streams_end(session, status, message);
    explicit_bzero(session->id, sizeof session->id);
    free(session);
}

void tci_mcp_http_session_close(struct tci_mcp_http_session *session, int status,
                                const char *message)
{
    struct tci_mcp_http_session **at = slot_of(session->http, session->id);

    while (*at != session)
        at = &(*at)->next;
    *at = session->next;
    end_session(session, status, message);
}

void tci_mcp_sessions_close(struct tci_mcp_http *http)
{
    for (size_t i = 0; i < TCI_MCP_SLOTS; i++)
        while (http->sessions.slots[i]) {
            struct tci_mcp_http_session *session = http->sessions.slots[i];
            http->sessions.slots[i] = session->next;
            end_session(session, 503, "the server is ending");
        }
}
