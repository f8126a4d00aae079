/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the files of the relay share. All of it is touched by the loop's thread only, except where
 * a comment says so.
 *
 * The wrapped server is the enemy: everything that it says is bounded, checked and written anew. The
 * client is trusted as little as any: it gets what its agent was granted.
 */
#ifndef TCI_MCP_WRAP_INTERNAL_H
#define TCI_MCP_WRAP_INTERNAL_H

#include <pthread.h>
#include "base/sha256.h"
#include "core/relayed.h"
#include "json/schema.h"
#include "json/write.h"
#include "mcp/elicit_text.h"
#include "mcp/channel.h"
#include "mcp/loop.h"
#include "mcp/wrap.h"
#include "policy/model.h"

struct event;

enum {
    TCI_WRAP_TOOLS_MAX = 1000,           /* of one server */
    TCI_WRAP_PAGES_MAX = 100,            /* of its list */
    TCI_WRAP_LIST_MAX = 4 * 1000 * 1000, /* bytes of all of them */
    TCI_WRAP_NAME_MAX = 128,             /* bytes of a tool's name */
    TCI_WRAP_REQUESTS_MAX = 64,          /* of the client, that are no calls */
    TCI_WRAP_HELD_MAX = 4 * 1024 * 1024, /* bytes of those that wait for the server's list */
    TCI_WRAP_ASKED_MAX = 64,             /* of the server, and of ours, to the client */
    TCI_WRAP_ABANDONED_MAX = 256,        /* cancelled, and not answered yet */
    TCI_WRAP_QUEUE_MAX = 1024 * 1024, /* bytes that wait for a reader: then nothing more is read */
    TCI_WRAP_ROUNDS_MAX = 20,         /* lists until the server has settled */
    TCI_WRAP_RELIST_US = 1000 * 1000, /* from one list to the next, once the client has seen it */
    TCI_WRAP_PIN_MAX = 16 * 1024 * 1024,     /* bytes of a pin file */
    TCI_WRAP_TEXT_MAX = 64 * 1024,           /* bytes of a text of our own */
    TCI_WRAP_LONG_MAX = 1024 * 1024,         /* of one that may be long */
    TCI_WRAP_ABANDONED_US = 2 * 1000 * 1000, /* so long a cancelled call counts as under way */
    TCI_WRAP_GRACE_MS = 2000,                /* from the end of its input to the server's end */
    TCI_WRAP_DEAF_MS = 500, /* from the end that it made of its input itself to its own */
};

/* ---- wrap_text.c ------------------------------------------------------------------------------ */

/* Cuts bytes into lines. `take` gets each, without its end. */
struct tci_wrap_lines {
    struct tci_buf part; /* of a line; its maximum is that of a line */
};
typedef int tci_wrap_line(void *context, const char *line, size_t length);
/* 0; 1: a line is too long; another value: what `take` returned, when it was not 0. */
int tci_wrap_lines_add(struct tci_wrap_lines *lines, const char *bytes, size_t length,
                       tci_wrap_line *take, void *context);

/* Lines as one sentence: "; " between them. */
void tci_wrap_join(const char *lines, char *ret, size_t size);

/* The code of a stranger's error; what is no whole number of 32 bits is one of ours. */
int tci_wrap_code(const struct json_t *code);

/* Text of strangers for people: quoted, escaped, cut (SIZE_MAX: whole). */
void tci_wrap_show(struct tci_buf *out, const char *text, size_t length, size_t maximum);

/* ---- pin_list.c: what a server says of its tools ---------------------------------------------- */

struct tci_wrap_tool {
    char *name;
    struct json_t *definition; /* what clients see, and the hash is of */
    char hash[TCI_SHA256_TEXT_MAX];
    struct tci_schema_program *input, *output; /* compiled when first needed */
    bool compiled;
    char problem[256]; /* why a schema cannot be used; "": it can */
};

struct tci_wrap_list {
    struct tci_wrap_tool *tools; /* sorted by name, once complete */
    size_t count, room;
    size_t bytes;       /* of the definitions, as JSON */
    char *instructions; /* NULL: none */
    char said
        [TCI_SHA256_TEXT_MAX]; /* hash of what it says of itself: all that is here but the tools */
    char hash[TCI_SHA256_TEXT_MAX]; /* of everything */
    char version[16];               /* of the protocol */
    struct json_t *server_info;     /* name, title, and version, which is in no hash; NULL: none */
    struct json_t *capabilities;
};

void tci_wrap_list_free(struct tci_wrap_list *list);
/* Takes a tool as the server describes it. 0; 1: `problem` says what is wrong with it; -1. */
int tci_wrap_list_add(struct tci_wrap_list *list, const struct json_t *tool, char problem[256],
                      struct tc_error *reterr) tci_must_check;
/* All are in: sorts them and makes the hashes. 0, 1 (a name is there twice), -1. */
int tci_wrap_list_complete(struct tci_wrap_list *list, char problem[256],
                           struct tc_error *reterr) tci_must_check;
struct tci_wrap_tool *tci_wrap_list_find(const struct tci_wrap_list *list, const char *name);
/* What differs, one thing a line; nothing: they are equal. */
void tci_wrap_list_compare(const struct tci_wrap_list *was, const struct tci_wrap_list *is,
                           struct tci_buf *out);
/* Compiles its schemas, once. False: `problem` says why they cannot be used. */
bool tci_wrap_tool_compile(struct tci_wrap_tool *tool);

/* pin_file.c */
/* Is it where only this user or root can change it, and not the server itself, in its cage (NULL: any)?
 * *ret_fd (ret_fd may be NULL): the file, or -1: there is none yet. */
int tci_pin_check(const char *path, const struct tci_filesystem *cage, int *ret_fd,
                  struct tc_error *reterr) tci_must_check;
/* Checks that, and reads it. */
int tci_pin_read(const char *path, const struct tci_filesystem *cage, struct tci_wrap_list *ret,
                 struct tc_error *reterr) tci_must_check;
int tci_pin_write(const char *path, const struct tci_wrap_list *list,
                  struct tc_error *reterr) tci_must_check;

/* ---- the relay -------------------------------------------------------------------------------- */

enum tci_wrap_kind {
    TCI_WRAP_PLAIN,      /* of the client; the answer goes back as it is */
    TCI_WRAP_CALL,       /* tools/call of the client */
    TCI_WRAP_INITIALIZE, /* ours, from here on */
    TCI_WRAP_LIST,
    TCI_WRAP_SETTLE,    /* a ping behind a list */
    TCI_WRAP_PING,      /* is it alive? */
    TCI_WRAP_ABANDONED, /* nobody waits for the answer any more; it may still come */
};

/* Something that the server was asked, or a call that is being decided. */
struct tci_wrap_pending {
    struct tci_wrap *wrap;
    struct tci_wrap_pending *next;
    enum tci_wrap_kind kind;
    uint64_t id; /* that the server knows it by; 0: it was not sent yet */
    struct json_t *client_id, *progress_token; /* references; may be NULL */
    const char *method;
    struct event *timer;
    /* Of a call, and of what is like one (`call` alone): */
    struct tci_wrap_tool *tool; /* NULL: the client sees no such tool */
    struct json_t *arguments;   /* {"name":..., "arguments":...}; until it was sent */
    char *arguments_text;       /* as long */
    struct tci_relayed_refusal refusal;
    bool is_refused;
    bool is_deciding; /* in a worker, to whom the next four belong as long */
    struct tc_call *call;
    struct tc_result *result;
    struct tc_error error;
    int status;
    bool is_cancelled;     /* while it was decided */
    uint64_t abandoned_us; /* when it was; 0: it was not, or is no work */
    struct tci_mcp_post post;
};

/* Something that the client was asked: by the server, or by us. Ids: "tc-1", ... */
struct tci_wrap_asked {
    struct tci_wrap_asked *next;
    uint64_t id;
    struct json_t *server_id;           /* a reference; NULL: it is our own question */
    struct tci_wrap_question *question; /* our own */
};

/* Requests that came together, and are answered together. */
struct tci_wrap_batch {
    struct tci_wrap_batch *next;
    struct json_t *ids; /* an array: of the answers that are to come */
    struct tci_buf text;
};

/* So many at once, so many a second. */
struct tci_wrap_bucket {
    double tokens, most, a_second;
    uint64_t at_us;
};
bool tci_wrap_bucket_take(struct tci_wrap_bucket *bucket);
/* Several at once; one that takes more than there are leaves a debt. */
bool tci_wrap_bucket_take_many(struct tci_wrap_bucket *bucket, double count);

struct tci_wrap {
    const struct tci_mcp_wrap_options *options;
    struct tc_engine *engine;
    const struct tci_tool *tool;
    struct tci_wrapped rules_in_force; /* of the policy; see wrap.c */
    const struct tci_wrapped *rules;
    struct tci_mcp_loop *loop;
    struct event_base *base;
    char session[96], server_session[112], reads_session[112];
    struct tci_wrap_list approved; /* from the pin file */
    bool has_pin;
    struct tci_wrap_list list, next_list; /* what the server has, and what it says now */
    bool has_list;
    unsigned pages, rounds;
    bool list_again; /* it said that it changed while it was asked */
    bool is_listing;
    bool is_shown;          /* the client has seen the list: from now on it must stay as it is */
    uint64_t list_after_us; /* then it is not asked for before this time */
    struct event *relist;
    struct json_t
        *held;         /* an array: requests of the client that wait for the list; params as text */
    size_t held_bytes; /* of these texts */

    /* The client; not for a pin. */
    struct tci_mcp_channel *client;
    bool is_gone; /* it reads no more */
    enum { TCI_WRAP_NEW, TCI_WRAP_STARTING, TCI_WRAP_READY } state;
    struct json_t *initialize_id;
    bool can_elicit, can_sample, has_roots;
    struct tci_wrap_batch *batches, *batch_read; /* the latter: its members are being read */
    bool is_at_end;                              /* no more comes from the client */

    /* The server. */
    struct tc_call *call;
    struct event *call_event;
    struct tci_mcp_channel *to_server;
    int server_in[2]; /* the pipe: the call reads one end, `to_server` writes the other */
    struct tci_wrap_lines from_server, server_stderr;
    bool in_step, is_held;
    struct tci_wrap_bucket unasked, unasked_work, stderr_lines, calls_a_minute, refusals;
    size_t line_work; /* what reading the present line costs, in bytes; 0: it was counted */
    uint64_t stderr_left_out;
    struct event *grace;
    struct event *deaf; /* it has closed its input: is it about to end, or goes it on? */
    bool is_ending;     /* it was told to go */

    struct tci_wrap_pending *pending;
    size_t call_count, plain_count, abandoned_count;
    uint64_t last_id, forgotten_id; /* what was abandoned up to this one may still be answered */
    struct tci_wrap_asked *asked;
    size_t asked_count;
    uint64_t last_asked;

    /* The end. */
    struct tc_error error;
    bool is_failed, is_told; /* told: the client has seen why */
    struct event *failing;   /* the rest of tci_wrap_fail, as soon as nobody is in the middle */
    struct event *linger;    /* how long to wait until it can be told */
    bool is_patient;         /* it still waits for that */
    bool is_reported;        /* all of `failing` was done */
    void (*listed)(struct tci_wrap *wrap); /* the handshake is done; for a pin, that is all */

    pthread_mutex_t lock; /* of the rest: wrap_ask.c */
    pthread_cond_t answered;
    bool is_closing; /* under the lock: nobody will be asked any more */
};

/* wrap.c */
int tci_wrap_open(struct tci_wrap *wrap, const struct tci_mcp_wrap_options *options,
                  struct tc_error *reterr) tci_must_check;
int tci_wrap_run(struct tci_wrap *wrap, struct tc_error *reterr) tci_must_check;
/* --pin, or what the policy says, or NULL. */
const char *tci_wrap_pin_path(const struct tci_wrap *wrap);
void tci_wrap_close(struct tci_wrap *wrap);
void tci_wrap_say(struct tci_wrap *wrap, const char *format, ...) tci_printf_like(2, 3);
/* The server is stopped, and everybody who waits for it told why. The first reason counts. */
void tci_wrap_fail(struct tci_wrap *wrap, const char *remedy, const char *format, ...)
    tci_printf_like(3, 4);
/* Something ended: is it all over? */
void tci_wrap_check_end(struct tci_wrap *wrap);
int tci_wrap_timer(struct tci_wrap *wrap, struct event **event, uint64_t ms,
                   void (*function)(int, short, void *), void *context);

/* wrap_batch.c */
/* An answer to the client; the text is freed. `id` NULL or null: to what was no request. */
void tci_wrap_client_answer(struct tci_wrap *wrap, const struct json_t *id, struct tci_buf *text);
void tci_wrap_batch_drop(struct tci_wrap *wrap, const struct json_t *id); /* it gets no answer */
/* Around the reading of the members of an array. */
int tci_wrap_batch_begin(struct tci_wrap *wrap, const struct json_t *members) tci_must_check;
void tci_wrap_batch_end(struct tci_wrap *wrap);
void tci_wrap_batches_free(struct tci_wrap *wrap);

/* wrap_held.c */
void tci_wrap_hold(struct tci_wrap *wrap, const struct json_t *id, const char *method,
                   const struct json_t *params);
void tci_wrap_held_release(struct tci_wrap *wrap); /* the list is there */
void tci_wrap_held_cancel(struct tci_wrap *wrap, const struct json_t *id);

/* wrap_client.c */
void tci_wrap_client_request(struct tci_wrap *wrap, const struct json_t *id, const char *method,
                             const struct json_t *params);
int tci_wrap_client_open(struct tci_wrap *wrap, int in, int out,
                         struct tc_error *reterr) tci_must_check;
void tci_wrap_client_error(struct tci_wrap *wrap, const struct json_t *id, int code,
                           const char *message, const char *fix);
void tci_wrap_client_put(struct tci_wrap *wrap, struct tci_buf *text); /* and frees it */
void tci_wrap_client_flow(struct tci_wrap *wrap);                      /* reads on, or not */
void tci_wrap_client_listed(struct tci_wrap *wrap);

/* wrap_server.c */
int tci_wrap_server_start(struct tci_wrap *wrap, struct tc_error *reterr) tci_must_check;
/* The part of it that makes `to_server`, which writes to server_in[1]. */
int tci_wrap_server_open_input(struct tci_wrap *wrap, struct tc_error *reterr) tci_must_check;
void tci_wrap_server_end(struct tci_wrap *wrap);  /* the end of its input; later it is killed */
void tci_wrap_server_kill(struct tci_wrap *wrap); /* at once */
void tci_wrap_server_flow(struct tci_wrap *wrap);
void tci_wrap_server_put(struct tci_wrap *wrap, struct tci_buf *text); /* and frees it */
/* Waits for its end, for a while; for the record. */
void tci_wrap_server_wait(struct tci_wrap *wrap);
/* wrap_messages.c: one line of its stdout. 0, or 1: it was stopped. */
int tci_wrap_server_line(void *context, const char *line, size_t length);

/* wrap_notices.c: a notification of the server's that may pass. */
void tci_wrap_progress(struct tci_wrap *wrap, const struct json_t *params);
void tci_wrap_pass_notice(struct tci_wrap *wrap, const char *method, const struct json_t *params);
bool tci_wrap_is_level(const char *level); /* of logs; NULL: no */

/* wrap_list.c */
void tci_wrap_handshake(struct tci_wrap *wrap, const struct json_t *params);
void tci_wrap_initialized(struct tci_wrap *wrap, const struct json_t *result);
/* It says that its list changed. */
void tci_wrap_list_again(struct tci_wrap *wrap);
/* The answer to the ping behind a list: what the server wanted to say at its start has been said. */
void tci_wrap_list_settled(struct tci_wrap *wrap);
/* The client wants to see or use the list: is it what was approved? False: the server was stopped. */
bool tci_wrap_list_show(struct tci_wrap *wrap);
void tci_wrap_list_page(struct tci_wrap *wrap, const struct json_t *result);
bool tci_wrap_is_version(const char *version);

/* wrap_pending.c */
struct tci_wrap_pending *tci_wrap_pending_new(struct tci_wrap *wrap, enum tci_wrap_kind kind,
                                              const struct json_t *client_id, const char *method);
/* Sends it with a new id. `params` may be NULL; of its _meta only the progress token is kept.
 * `timeout_ms`: TCI_UNLIMITED: none. */
void tci_wrap_send(struct tci_wrap_pending *pending, const struct json_t *params,
                   uint64_t timeout_ms);
/* The token of a request of the client's: text or a whole number, as ids; NULL: none that could be given back
 * exactly. A new reference. */
struct json_t *tci_wrap_progress_token(const struct json_t *params);
void tci_wrap_notify_server(struct tci_wrap *wrap, const char *method, const char *params_json);
struct tci_wrap_pending *tci_wrap_pending_of_client(const struct tci_wrap *wrap,
                                                    const struct json_t *id);
struct tci_wrap_pending *tci_wrap_pending_of_server(const struct tci_wrap *wrap,
                                                    const struct json_t *id);
void tci_wrap_pending_free(struct tci_wrap_pending *pending); /* takes it out */
/* Nobody waits for it any more: the server is told. */
void tci_wrap_abandon(struct tci_wrap_pending *pending, const char *reason);
void tci_wrap_pending_answer(struct tci_wrap_pending *pending,
                             const struct tci_mcp_message *answer);
void tci_wrap_pending_end_all(struct tci_wrap *wrap); /* with wrap->error */
/* Requests that the server works on, or may still: calls, what is like one, and what was cancelled a moment
 * ago. For `mcp.calls`. */
size_t tci_wrap_busy(const struct tci_wrap *wrap);

/* wrap_calls.c */
void tci_wrap_call_begin(struct tci_wrap *wrap, const struct json_t *id,
                         const struct json_t *params);
void tci_wrap_call_answer(struct tci_wrap_pending *pending, const struct tci_mcp_message *answer);
/* Ends it with a verdict of ours; the client gets it as a result, or, with `as_error`, as an error. With
 * `answer` false it gets nothing. The pending is not freed. */
void tci_wrap_call_end(struct tci_wrap_pending *pending, const struct tci_relayed_end *end,
                       bool answer, bool as_error);

/* wrap_reads.c: requests that are no calls, and for which a server may do something. */
/* Decided by the policy, and to be recorded if it says something of the client's. False: the client was told why
 * not. `params`: those that the server gets. */
bool tci_wrap_read_begin(struct tci_wrap_pending *pending, const struct json_t *params);
/* Does a grant hold for this notification of the client's? */
bool tci_wrap_is_granted(struct tci_wrap *wrap, const char *method);
/* It is over: recorded, with the size and hash of its output. Nothing for what was not begun. False: it could not be
 * recorded, so nobody gets it; with `answer`, the client was told. */
bool tci_wrap_read_end(struct tci_wrap_pending *pending, const struct tci_relayed_end *end,
                       bool answer);

/* wrap_params.c: requests of the client that are relayed, beside calls */
/* Its name as one that lives as long as the program; NULL: it is not known. */
const char *tci_wrap_method(const char *name);
/* Is there anything in its result? If not, the client gets {}. */
bool tci_wrap_has_result(const char *name);
/* The params that the server gets: the members that are known, without _meta. NULL: `problem` says what is wrong. */
struct json_t *tci_wrap_params(const char *name, const struct json_t *params, char problem[160]);

/* wrap_check.c */
enum tci_wrap_side { TCI_WRAP_CLIENT, TCI_WRAP_SERVER };
/* May this side send the request or notification? Not those that are answered here. */
bool tci_wrap_may_pass(const struct tci_wrap *wrap, enum tci_wrap_side side, bool is_request,
                       const char *method);
/* Is the request like a call: does a server do something for it, other than to list what it has? */
bool tci_wrap_is_work(const char *method);
bool tci_wrap_is_visible(const struct tci_wrap *wrap, const char *name);
/* Are the arguments what the server's schema says? False: why. */
bool tci_wrap_check_arguments(struct tci_wrap_tool *tool, const struct json_t *arguments,
                              struct tci_relayed_refusal *ret);
/* Is the result one? False: `problem`. */
bool tci_wrap_check_result(struct tci_wrap_tool *tool, const struct json_t *result,
                           char problem[512]);

/* wrap_form.c: what a person sees of the server's words: no control, nothing that hides or reorders (base/utf8.h). */
void tci_wrap_plain(struct tci_buf *out, const char *text, size_t length);
/* Makes the params of elicitation/create fit to be shown. false: it must not be asked. */
bool tci_wrap_form(const struct tci_wrap *wrap, struct json_t *params) tci_must_check;

/* wrap_ask.c */
int tci_wrap_approve(void *context, const struct tc_approval *approval); /* in a worker */
/* A question of the server's; false: it cannot be asked. */
bool tci_wrap_ask(struct tci_wrap *wrap, const struct json_t *server_id, const char *method,
                  const struct json_t *params);
void tci_wrap_asked_answer(struct tci_wrap *wrap, const struct tci_mcp_message *answer);
void tci_wrap_asked_cancel(struct tci_wrap *wrap, const struct json_t *server_id);
/* Nobody will answer any more: workers and the server are told. */
void tci_wrap_asked_end(struct tci_wrap *wrap);
/* The person need not answer any more: the call that it was about was cancelled. */
void tci_wrap_unask(struct tci_wrap_pending *pending);
/* For this call the worker asks, from now on. NULL: for none. */
void tci_wrap_ask_for(struct tci_wrap_pending *pending);
void tci_wrap_asked_free(struct tci_wrap *wrap); /* all; workers that wait get a no */

#endif
