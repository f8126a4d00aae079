/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the files of the HTTP transport share. Everything is touched by the loop's thread only.
 *
 *   http.c          listens; which message belongs to which session; the three methods
 *   http_listen.c   the sockets; a connection is accepted
 *   http_peer.c     a connection: its life; http_receive.c: what comes in; http_reply.c: what goes out
 *   http_guard.c    who may talk to us at all: Host, Origin, token; http_head.c: the fields that MCP knows
 *   http_session.c  sessions by their secret ids
 *   http_stream.c   where the answer to a POST goes, and the session's own stream
 *   http_events.c   events that are kept, for a client that comes back
 *   http_share.c    who has how much of what is bounded for all, and who has to go
 *   http_end.c      the end: who reads gets whole what it was sent
 *
 * Lifetimes: a peer and a stream know each other by one pointer each; whoever ends first clears the
 * other's. A peer is freed only by its own event callbacks, by accepting, which no peer's callback calls, and at
 * the very end: never below a caller.
 */
#ifndef TCI_MCP_HTTP_H
#define TCI_MCP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"
#include "gate/http.h"
#include "mcp/server.h"

struct event;
struct evbuffer;
struct evconnlistener;
struct tci_mcp_http;
struct tci_mcp_http_session;

enum {
    TCI_MCP_PEERS_MAX = 1100,                    /* connections */
    TCI_MCP_HEAD_MAX = 32 * 1024,                /* bytes of a head */
    TCI_MCP_FIELDS_MAX = 128,                    /* fields of a head */
    TCI_MCP_PEER_QUEUE_MAX = 8 * 1024 * 1024,    /* bytes that a slow reader lets wait */
    TCI_MCP_PEER_QUEUES_MAX = 256 * 1024 * 1024, /* the same of all */
    TCI_MCP_BODIES_MAX = 64 * 1024 * 1024, /* bytes of messages that are being received, of all */
    TCI_MCP_EVENTS_MAX = 256,              /* kept for one session */
    TCI_MCP_EVENT_BYTES_MAX = 1024 * 1024,
    TCI_MCP_EVENTS_ALL_MAX = 128 * 1024 * 1024, /* bytes kept for all sessions */
    TCI_MCP_SECRET_SIZE = 44,                   /* of a session's id, with the NUL */
};

/* ---- guard ---------------------------------------------------------------------------------- */

/* Names that Host and Origin may show. `port` 0: with ours, 80 or 443, or none. */
struct tci_mcp_name {
    char host[256]; /* lower case; IPv6 in brackets */
    unsigned port;
};

struct tci_mcp_guard {
    struct tci_mcp_name *names;
    size_t name_count;
    unsigned port; /* that we listen at */
    const struct tci_mcp_token *tokens;
    size_t token_count;
};

int tci_mcp_guard_init(struct tci_mcp_guard *guard, const struct tci_mcp_http_options *options,
                       unsigned port, struct tc_error *reterr) tci_must_check;
void tci_mcp_guard_free(struct tci_mcp_guard *guard);
bool tci_mcp_guard_host(const struct tci_mcp_guard *guard, struct tci_http_text value);
bool tci_mcp_guard_origin(const struct tci_mcp_guard *guard, struct tci_http_text value);
/* The token's number, or -1. */
int tci_mcp_guard_token(const struct tci_mcp_guard *guard, struct tci_http_text authorization);
/* Is it "localhost" or an address of the loopback interface? */
bool tci_mcp_is_loopback(const char *address);

enum tci_mcp_http_method { TCI_MCP_OTHER, TCI_MCP_GET, TCI_MCP_POST, TCI_MCP_DELETE };

/* What a head says, checked. Nothing of it is borrowed. */
struct tci_mcp_head {
    enum tci_mcp_http_method method;
    int token;           /* that it showed; -1: none is asked for */
    bool is_1_0;         /* HTTP/1.0: no chunks */
    bool wants_close;    /* Connection: close */
    bool wants_continue; /* Expect: 100-continue */
    bool has_body;
    bool takes_json, takes_events; /* Accept */
    bool has_session, has_last_event;
    char session[TCI_MCP_SECRET_SIZE]; /* Mcp-Session-Id; "": one that cannot be ours */
    bool has_odd_version;              /* MCP-Protocol-Version names one that is not served here */
    uint64_t last_stream, last_event;  /* Last-Event-ID */
    struct tci_http_head framing;      /* of the body; its texts are gone */
};

/* Why a request is refused. */
struct tci_mcp_refusal {
    int status;
    int code; /* JSON-RPC */
    const char *message;
    bool hang_up; /* somebody who must not be here */
};

/* Reads a whole head, up to and with the empty line. false: *ret_refusal says why not. Everything that
 * can be known without the body is checked here: a stranger's body is never read. */
bool tci_mcp_head_read(const struct tci_mcp_guard *guard, const char *text, size_t length,
                       struct tci_mcp_head *ret, struct tci_mcp_refusal *ret_refusal);

/* ---- shares --------------------------------------------------------------------------------- */

/* What is bounded for all tokens together. */
enum tci_mcp_measure {
    TCI_MCP_SHARE_PEERS,    /* connections that have shown a token */
    TCI_MCP_SHARE_WAITING,  /* bytes that wait for slow readers */
    TCI_MCP_SHARE_BODIES,   /* bytes of messages that were received and not read */
    TCI_MCP_SHARE_SESSIONS, /* sessions */
    TCI_MCP_SHARE_EVENTS,   /* bytes of events that are kept */
    TCI_MCP_SHARE_MEASURES,
};

struct tci_mcp_share {
    size_t of[TCI_MCP_SHARE_MEASURES];
};

struct tci_mcp_shares {
    struct tci_mcp_share all;
    struct tci_mcp_share *tokens; /* by the token's number + 1; the first is of those without one */
    size_t count;
};

int tci_mcp_shares_init(struct tci_mcp_shares *shares, size_t tokens,
                        struct tc_error *reterr) tci_must_check;
void tci_mcp_shares_free(struct tci_mcp_shares *shares);
/* `token` has so much of it now, and had so much before. */
void tci_mcp_share_change(struct tci_mcp_shares *shares, enum tci_mcp_measure measure, int token,
                          size_t before, size_t now);
size_t tci_mcp_share_of(const struct tci_mcp_shares *shares, enum tci_mcp_measure measure,
                        int token);
/* The number of the token that would have most if `token` got so much more; -1: those without one. */
int tci_mcp_share_greediest(const struct tci_mcp_shares *shares, enum tci_mcp_measure measure,
                            int token, size_t more);

/* ---- events --------------------------------------------------------------------------------- */

struct tci_mcp_event {
    struct tci_mcp_event *next;
    uint64_t number; /* counts the events of the session, from 1 */
    struct tci_mcp_stream *stream;
    size_t length;
    char text[];
};

/* Of one session. The oldest goes first. */
struct tci_mcp_events {
    struct tci_mcp_event *first, *last;
    size_t count, bytes;
    uint64_t newest; /* number of the last one, kept or not */
};

/* Counts the event and keeps it if it can. Its number. */
uint64_t tci_mcp_events_add(struct tci_mcp_stream *stream, const char *text, size_t length);
void tci_mcp_events_free(struct tci_mcp_http_session *session);

/* ---- streams -------------------------------------------------------------------------------- */

struct tci_mcp_stream {
    struct tci_mcp_http_session *session;
    struct tci_mcp_stream *next;
    uint64_t number;           /* 0: the session's own */
    struct tci_mcp_peer *peer; /* NULL: nobody listens */
    struct event *patience;    /* held back no longer than this */
    bool has_events;           /* it is an event stream: a client can come back for it */
    bool is_first;             /* the answer to `initialize`: carries the session's id */
    bool ended;                /* its last event was sent or kept */
    size_t kept;               /* events of it in the store */
    uint64_t lost;             /* the newest event of it that is kept no more */
    uint64_t delivered;        /* own stream: the newest that went to a listener */
};

/* A new one for the answer to a message; the peer waits for it. NULL: no memory. */
struct tci_mcp_stream *tci_mcp_stream_new(struct tci_mcp_http_session *session,
                                          struct tci_mcp_peer *peer);
struct tci_mcp_stream *tci_mcp_stream_find(struct tci_mcp_http_session *session, uint64_t number);
/* tci_mcp_transport.send */
void tci_mcp_stream_send(void *context, uint64_t number, bool last, const char *text,
                         size_t length);
/* GET. */
void tci_mcp_stream_listen(struct tci_mcp_http_session *session, struct tci_mcp_peer *peer,
                           const struct tci_mcp_head *head);
/* No message is to come for it. */
void tci_mcp_stream_accepted(struct tci_mcp_stream *stream);
/* The peer is gone; the work goes on. */
void tci_mcp_stream_detach(struct tci_mcp_stream *stream);
/* An event left the store. */
void tci_mcp_stream_forget(struct tci_mcp_stream *stream, uint64_t number);
/* Ends all streams of a session that ends. */
void tci_mcp_streams_end(struct tci_mcp_http_session *session, int status, const char *message);

/* ---- sessions ------------------------------------------------------------------------------- */

struct tci_mcp_http_session {
    struct tci_mcp_http *http;
    struct tci_mcp_http_session *next; /* of the same slot */
    struct tci_mcp_session *session;
    char id[TCI_MCP_SECRET_SIZE];
    int token;        /* that made it; -1: none was asked for */
    uint64_t used_us; /* last message or GET */
    uint64_t busy_us; /* when it was last seen with a call or a listener; 0: never */
    uint64_t streams_last;
    struct tci_mcp_stream *streams; /* newest first; the session's own is always there */
    struct tci_mcp_events events;
};

enum { TCI_MCP_SLOTS = 1024 };

struct tci_mcp_sessions {
    struct tci_mcp_http_session *slots[TCI_MCP_SLOTS];
    uint64_t key[2];
};

int tci_mcp_sessions_init(struct tci_mcp_sessions *sessions,
                          struct tc_error *reterr) tci_must_check;
int tci_mcp_http_session_open(struct tci_mcp_http *http, int token,
                              struct tci_mcp_http_session **ret,
                              struct tc_error *reterr) tci_must_check;
/* NULL: there is none with this id that this token made. */
struct tci_mcp_http_session *tci_mcp_http_session_find(struct tci_mcp_http *http, const char *id,
                                                       int token);
void tci_mcp_http_session_close(struct tci_mcp_http_session *session, int status,
                                const char *message);
void tci_mcp_sessions_close(struct tci_mcp_http *http);
/* Of the sessions that this token made, the one with most bytes of events; NULL: none has any. */
struct tci_mcp_http_session *tci_mcp_sessions_fullest(struct tci_mcp_http *http, int token);
/* Ends those that nobody has used for so long, with no call and no listener since then. Must be called now and
 * then: it is what sees that a session has one. */
void tci_mcp_sessions_sweep(struct tci_mcp_http *http, uint64_t idle_us);

/* ---- peers ---------------------------------------------------------------------------------- */

enum tci_mcp_peer_state {
    TCI_MCP_PEER_HEAD,    /* waits for a request, or is in its head */
    TCI_MCP_PEER_BODY,    /* in its body */
    TCI_MCP_PEER_WAITS,   /* for the answer */
    TCI_MCP_PEER_LISTENS, /* to events */
    TCI_MCP_PEER_FLUSH,   /* has its answer; goes when it is out */
    TCI_MCP_PEER_DRAIN,   /* what it still sends is thrown away, so that it reads our answer */
    TCI_MCP_PEER_GONE,    /* freed by its next event */
};

struct tci_mcp_peer {
    struct tci_mcp_http *http;
    struct tci_mcp_peer *previous, *next;
    int fd;
    enum tci_mcp_peer_state state;
    struct event *read, *write, *timer;
    struct tci_buf in; /* what was received and not looked at */
    size_t searched;   /* of `in`: the end of the head is not in there */
    struct tci_mcp_head head;
    struct tci_http_body framing;
    uint64_t raw; /* bytes of the body, with its framing */
    struct tci_buf body;
    struct evbuffer *out;
    size_t counted, body_counted; /* of `out` and `body`, in its token's shares */
    struct tci_mcp_stream *stream;
    bool known;       /* showed a good token once */
    int token;        /* the last one; -1: none was asked for */
    bool half_closed; /* sends no more */
    bool advancing;   /* in its requests: not again from below */
    bool has_rest;    /* was refused before all of its request was here */
    uint64_t line;    /* http_line.c: its place, until its message was read; 0: it has none */
    uint64_t drained;
};

int tci_mcp_peer_new(struct tci_mcp_http *http, int fd);
void tci_mcp_peer_free(struct tci_mcp_peer *peer);
/* http_share.c: its body was read, or is not wanted. */
void tci_mcp_peer_drop_body(struct tci_mcp_peer *peer);
/* A whole answer. `fields`: more lines of the head, or "". */
void tci_mcp_peer_reply(struct tci_mcp_peer *peer, int status, const char *fields, const char *type,
                        const char *body, size_t length);
/* The same for a JSON-RPC error without an id. */
void tci_mcp_peer_refuse(struct tci_mcp_peer *peer, const struct tci_mcp_refusal *refusal);
/* An answer of events. */
void tci_mcp_peer_events_begin(struct tci_mcp_peer *peer);
void tci_mcp_peer_event(struct tci_mcp_peer *peer, uint64_t stream, uint64_t number,
                        const char *text, size_t length);
/* The first one: nothing but an id to come back with, and how long to wait before. */
void tci_mcp_peer_event_first(struct tci_mcp_peer *peer, uint64_t stream, uint64_t number);
void tci_mcp_peer_still_here(struct tci_mcp_peer *peer);
void tci_mcp_peer_events_end(struct tci_mcp_peer *peer);

/* ---- the server ----------------------------------------------------------------------------- */

struct tci_mcp_http {
    struct tci_mcp_server *server;
    const struct tci_mcp_http_options *options;
    struct event_base *base;
    struct tci_mcp_guard guard;
    struct evconnlistener *listeners[2];
    unsigned port;
    struct tci_mcp_peer *peers; /* newest first */
    struct tci_mcp_peer *oldest;
    size_t peer_count, peers_max;
    struct tci_mcp_shares shares;
    struct tci_mcp_sessions sessions;
    bool ending;          /* no request is taken any more; a connection closes with its answer */
    struct event *beat;   /* now and then: keeps streams alive, ends idle sessions */
    struct event *resume; /* accepting, after it failed */
    struct tci_mcp_line_reading *reading; /* http_line.c: the large message that a worker reads */
    uint64_t line_last;                   /* the place that was given last */
    int line_token;                       /* whose turn was last */
    char scratch[64 * 1024];
};

/* http_listen.c */
int tci_mcp_http_listen(struct tci_mcp_http *http, struct tc_error *reterr) tci_must_check;
void tci_mcp_http_accept(struct tci_mcp_http *http); /* from now on */

/* http_end.c: ends the sessions, and lets what was sent reach those who read. Waits no longer than a few
 * seconds for all of them together, and not at all after one more signal. */
void tci_mcp_http_end(struct tci_mcp_http *http, struct tci_mcp_loop *loop);

/* http.c: for http_peer.c: a whole head, a whole request. */
bool tci_mcp_http_head(struct tci_mcp_peer *peer, const char *text, size_t length);
void tci_mcp_http_request(struct tci_mcp_peer *peer);
/* For http_line.c: its message, which was read; `r`: what tci_mcp_read said. The message stays the caller's. */
void tci_mcp_http_take(struct tci_mcp_peer *peer, const struct tci_mcp_message *message, int r);
/* Both, now. */
void tci_mcp_http_read(struct tci_mcp_peer *peer);

/* http_line.c: does its message wait for its turn? Then it is taken later. */
bool tci_mcp_line_add(struct tci_mcp_peer *peer);
/* It is about to be freed. */
void tci_mcp_line_leave(const struct tci_mcp_peer *peer);

#endif
