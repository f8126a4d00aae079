/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the parts of the MCP server share: the server, its sessions, and the requests of a client
 * that are being answered. Everything here is touched by the loop's thread only (loop.h).
 * Trusts: the policy and the engine. Of clients and of what tools print nothing is trusted: every table
 * is bounded, every text is data.
 */
#ifndef TCI_MCP_SERVER_H
#define TCI_MCP_SERVER_H

#include <pthread.h>
#include <stdint.h>
#include "mcp/budget.h"
#include "mcp/loop.h"
#include "mcp/message.h"
#include "toolcage/toolcage.h"

enum {
    TCI_MCP_SESSIONS_MAX = 1000,
    TCI_MCP_REQUESTS_MAX = 64,           /* of one session, being answered */
    TCI_MCP_ASKED_MAX = 64,              /* of one session, that the client has not answered */
    TCI_MCP_SUBSCRIPTIONS_MAX = 64,      /* of one session */
    TCI_MCP_FILES_MAX = 256,             /* brought back, kept for a session as resources */
    TCI_MCP_FILES_BYTES = 256 << 20,     /* of them, together: /tmp is memory on many hosts */
    TCI_MCP_AGENT_FILES_BYTES = 1 << 30, /* of all sessions of one agent */
    TCI_MCP_PAGE = 100,                  /* entries of a page of a list */
    TCI_MCP_WORKERS = 32,                /* calls at one time */
    TCI_MCP_AGENT_CALLS = 24,            /* of one agent: the others must get through, too */
    TCI_MCP_READERS = 4,                 /* resources that are read at one time */
    TCI_MCP_AGENT_READS = 2,             /* of one agent */
    TCI_MCP_ASKING_MAX = 128,            /* that wait for a person, and do not count there */
    /* And one that looks at grants. */
    TCI_MCP_THREADS = TCI_MCP_WORKERS + TCI_MCP_ASKING_MAX + TCI_MCP_READERS + 1,
    TCI_MCP_WAITING_MAX = 4096,       /* calls of one agent that wait for their turn */
    TCI_MCP_WAITING_BYTES = 32 << 20, /* of their arguments */
    TCI_MCP_POLICY_MS = 2000,         /* how long calls wait for a policy that is being loaded */
};

struct tci_mcp_options {
    const char *policy_path;
    const char *journal_path; /* NULL: nothing is recorded */
    enum tc_mode mode;
    const char
        *session; /* name of the session in the journal; NULL: a new one for each MCP session */
    bool warm;    /* keep cages ready as the policy's `warm` says */
    /* A line for a person (a policy that does not load any more, ...). May be NULL. */
    void (*say)(void *context, const char *line);
    void *context;
};

/* An engine and those who use it: a new policy makes a new engine, calls under way end in the old one. */
struct tci_mcp_engine {
    struct tc_engine *engine;
    unsigned users;      /* behind the server's policy_lock */
    uint64_t generation; /* counts policies, from 1 */
    struct tci_mcp_server *server;
    struct tci_mcp_post post; /* server.c: for its end */
};

struct tci_mcp_server {
    const struct tci_mcp_options *options;
    struct tci_mcp_loop *loop;
    struct tci_mcp_engine
        *engine;                 /* the present one; written by the loop's thread, with the lock */
    struct tci_mcp_watch *watch; /* watch.c: the policy file */
    struct tci_mcp_grants *grants;    /* watch_grants.c */
    struct tci_mcp_session *sessions; /* all, by `next` */
    size_t session_count;
    struct tci_mcp_budget budget; /* of answers in the making; any thread */
    char *
        store; /* resource_files.c: a private directory for files brought back; NULL: not made yet */
    int store_lock;
    bool store_failed;          /* and that was said */
    uint64_t complained_us;     /* job.c: when something was last said of the journal; 0: never */
    struct tci_mcp_lane *lanes; /* call_lanes.c */
    unsigned running[2], jobs_waiting;            /* calls, and resources that are read */
    unsigned asking;                              /* calls that wait for a person, and do not run */
    struct tci_mcp_job *approved, *approved_last; /* of them: they wait for a place */
    bool closing;
    /* Workers take the engine when they begin, and wait while another one is being loaded. */
    pthread_mutex_t policy_lock;
    pthread_cond_t policy_settled; /* of the monotonic clock */
    uint64_t policy_pending;       /* tci_clock_us: since when; 0: none is being loaded */
};

/* server.c */
int tci_mcp_server_new(const struct tci_mcp_options *options, struct tci_mcp_loop *loop,
                       struct tci_mcp_server **ret, struct tc_error *reterr) tci_must_check;
/* Ends all sessions and waits for their calls, which are killed. */
void tci_mcp_server_free(struct tci_mcp_server *server);
/* For watch.c: from any thread. `policy`: that was read from the file, and is the engine's if that can be
 * opened; NULL: the file is read. */
struct tc_policy;
int tci_mcp_engine_open(struct tci_mcp_server *server, struct tc_policy *policy,
                        struct tc_engine **ret, struct tc_error *reterr) tci_must_check;
/* The present one; from any thread. */
struct tci_mcp_engine *tci_mcp_engine_hold(struct tci_mcp_server *server);
/* For workers: a policy that is being loaded is waited for. NULL: that takes too long. The old policy
 * is not used then: it may be the one under which this very call must not be made any more. */
struct tci_mcp_engine *tci_mcp_engine_take(struct tci_mcp_server *server);
/* The same without taking it. */
bool tci_mcp_policy_await(struct tci_mcp_server *server);
/* For watch.c: one is being loaded, or not any more. */
void tci_mcp_policy_pending(struct tci_mcp_server *server, bool pending);
/* From the loop's thread. */
void tci_mcp_engine_release(struct tci_mcp_engine *engine);
/* watch.c found a new policy that loads: sessions whose tools differ are told. */
void tci_mcp_server_replace(struct tci_mcp_server *server, struct tc_engine *engine);
void tci_mcp_say(struct tci_mcp_server *server, const char *format, ...) tci_printf_like(2, 3);

/* watch.c: looks at the policy file (and the files that it names), reloads it when it changed. One that
 * does not load leaves the old one in force, and says so. */
int tci_mcp_watch_new(struct tci_mcp_server *server, struct tci_mcp_watch **ret,
                      struct tc_error *reterr) tci_must_check;
void tci_mcp_watch_free(struct tci_mcp_watch *watch);

/* watch_grants.c: looks whether grants were made or revoked at run time, or the policy is another one, and tells those
 * agents whose tools differ. */
int tci_mcp_grants_new(struct tci_mcp_server *server, struct tci_mcp_grants **ret,
                       struct tc_error *reterr) tci_must_check;
void tci_mcp_grants_free(struct tci_mcp_grants *grants);
/* Now, and not only when the second is over. */
void tci_mcp_grants_look(struct tci_mcp_grants *grants);

/* ---- a session ---------------------------------------------------------------------------- */

/* By their order of age. */
enum tci_mcp_version { TCI_MCP_2025_03_26, TCI_MCP_2025_06_18, TCI_MCP_2025_11_25 };

/* Syslog's, as MCP names them: debug is 0, emergency 7. */
enum tci_mcp_level {
    TCI_MCP_DEBUG,
    TCI_MCP_INFO,
    TCI_MCP_NOTICE,
    TCI_MCP_WARNING,
    TCI_MCP_ERROR,
    TCI_MCP_CRITICAL,
    TCI_MCP_ALERT,
    TCI_MCP_EMERGENCY,
};

/* lifecycle.c: the names that MCP has for them. */
bool tci_mcp_version_find(const char *name, enum tci_mcp_version *ret);
const char *tci_mcp_level_name(enum tci_mcp_level level);

/*
 * The transport of a session. A `stream` is a number that the transport gives with each message that it
 * hands over: what belongs to that message goes back with it. 0: belongs to none.
 */
struct tci_mcp_transport {
    /* One whole message for the client. `last`: it is the answer to the message of this stream (of a
     * batch: to all of it), and nothing follows. The text is the caller's. `text` NULL, always with
     * `last`: the client has cancelled what it asked for, and gets no answer; the stream is over. It may
     * close the session. */
    void (*send)(void *context, uint64_t stream, bool last, const char *text, size_t length);
    /* The same for an answer, which is the last, without a copy: takes what is in the buffer. May be
     * NULL. */
    void (*give)(void *context, uint64_t stream, struct tci_buf *text);
    void *context;
};

/* What a session has read of its tools. */
struct tci_mcp_listed {
    bool is_read;
    uint64_t version; /* of the journal's grants, then */
    uint64_t sum;     /* of the list; 0: it is longer than a page */
    /* The policy that it was made from; 0: the session was told since that there is another list. */
    uint64_t generation;
    int64_t at, until; /* seconds since 1970: its moment, and the next at which a grant expires */
};

struct tci_mcp_session {
    struct tci_mcp_server *server;
    struct tci_mcp_session *next;
    struct tci_mcp_transport transport;
    char *agent;   /* NULL: the policy's owner */
    char name[80]; /* of the session in the journal. Not the id that HTTP clients show: that one
                             is a secret */
    enum { TCI_MCP_NEW, TCI_MCP_INITIALIZED, TCI_MCP_READY, TCI_MCP_CLOSED } state;
    enum tci_mcp_version version;
    bool can_elicit;                  /* the client's capability */
    enum tci_mcp_level level;         /* the lowest that it wants; at first, INFO */
    struct tci_mcp_request *requests; /* being answered */
    size_t request_count;
    size_t batch_bytes;          /* batch.c: answers that are not sent yet */
    struct tci_mcp_asked *asked; /* ours, not answered yet */
    size_t asked_count;
    uint64_t asked_last; /* their ids: "tc-1", "tc-2", ... */
    char *subscribed[TCI_MCP_SUBSCRIPTIONS_MAX];
    size_t subscribed_count;
    struct tci_mcp_file *files; /* resource_files.c */
    char *files_place;          /* its directory in the store; NULL: not made yet */
    size_t file_count;
    uint64_t file_bytes;
    struct tci_mcp_lane
        *lanes[2]; /* call_lanes.c: of its agent, for calls and for reading; NULL: none yet */
    bool hung_up;  /* the client says nothing any more */
    struct tci_mcp_listed listed;
    unsigned users; /* requests under way: it is freed when the last is over */
};

/* session.c */
int tci_mcp_session_open(struct tci_mcp_server *server, const char *agent,
                         const struct tci_mcp_transport *transport, struct tci_mcp_session **ret,
                         struct tc_error *reterr) tci_must_check;
/* Kills its calls. Nothing is sent any more; the transport may go away. */
void tci_mcp_session_close(struct tci_mcp_session *session);
/* A message that was read. A request, or a batch with one in it, is answered with exactly one `last`
 * message on this stream, now or later; so is an invalid message that has to be answered. Returns whether
 * that is so: false: nothing will come. The message stays the caller's. */
bool tci_mcp_session_take(struct tci_mcp_session *session, const struct tci_mcp_message *message,
                          uint64_t stream);
/* The client says nothing any more, but may read: questions to it count as refused. */
void tci_mcp_session_hung_up(struct tci_mcp_session *session);
/* Has it requests under way? Their number. */
size_t tci_mcp_session_busy(const struct tci_mcp_session *session);

/* watch_grants.c: a page of the session's tools, from any thread, as an array. 1: more follow; 0: that is
 * all; -1: an error. */
int tci_mcp_list_tools(struct tci_mcp_engine *engine, const struct tci_mcp_session *session,
                       size_t first, struct tci_buf *out, struct tci_mcp_listed *ret,
                       struct tc_error *reterr) tci_must_check;
/* server.c: NULL is the policy's owner. */
bool tci_mcp_same_agent(const char *a, const char *b);
/* Tells the client that its tools are others now. */
void tci_mcp_tools_changed(struct tci_mcp_session *session);

/* A notification: on the stream that it belongs to, or 0. */
void tci_mcp_notify(struct tci_mcp_session *session, uint64_t stream, const char *method,
                    const char *params_json);
/* notifications/message, if the client wants that level; `text` is data. */
void tci_mcp_log(struct tci_mcp_session *session, uint64_t stream, enum tci_mcp_level level,
                 const char *logger, const char *text, size_t length);

/* Asks the client. `answered` is called once, in the loop's thread: with its result, or with NULL when it
 * said no, answered with an error, or the session ended. The return value names the question for
 * tci_mcp_unask, which lets it be forgotten (the client is told with notifications/cancelled); 0: it
 * could not be asked, and `answered` is not called. */
typedef void tci_mcp_answered(void *context, const struct json_t *result);
uint64_t tci_mcp_ask(struct tci_mcp_session *session, uint64_t stream, const char *method,
                     const char *params_json, tci_mcp_answered *answered, void *context);
void tci_mcp_unask(struct tci_mcp_session *session, uint64_t question);

/* ---- a request of the client -------------------------------------------------------------- */

struct tci_mcp_request {
    struct tci_mcp_session *session;
    struct tci_mcp_request *next;
    struct json_t *id; /* a reference of its own */
    uint64_t stream;
    struct tci_mcp_batch *batch;   /* batch.c; NULL: it came alone */
    struct json_t *progress_token; /* a reference; NULL: none */
    /* For who answers later: called when the client cancels it or the session ends. It must still be
     * finished by tci_mcp_answer or tci_mcp_fail, then nothing is sent. */
    void (*cancel)(void *context);
    void *context;
    bool cancelled;
};

/* What a method says. */
enum tci_mcp_outcome {
    TCI_MCP_DONE,  /* the result is in the buffer, as JSON */
    TCI_MCP_LATER, /* it will call tci_mcp_answer or tci_mcp_fail, once */
    TCI_MCP_FAILED /* *error says why */
};

struct tci_mcp_failure {
    int code; /* enum tci_mcp_code; 0: internal */
    char message[512];
    char *data_json; /* malloc'd; NULL: none */
};
enum tci_mcp_outcome tci_mcp_failed(struct tci_mcp_failure *failure, int code, const char *format,
                                    ...) tci_printf_like(3, 4);

/* A method of the table (methods.def). `params` may be NULL. */
typedef enum tci_mcp_outcome tci_mcp_method(struct tci_mcp_request *request,
                                            const struct json_t *params, struct tci_buf *result,
                                            struct tci_mcp_failure *failure);

/* All free the request. */
void tci_mcp_answer(struct tci_mcp_request *request, const char *result_json);
/* With a whole message, id and all, so that a large one is not copied. Takes what is in the buffer. */
void tci_mcp_answer_message(struct tci_mcp_request *request, struct tci_buf *message);
void tci_mcp_fail(struct tci_mcp_request *request, const struct tci_mcp_failure *failure);

#define X(name, function, ready, capability) tci_mcp_method function;
#include "mcp/methods.def"
#undef X

/* batch.c, for session.c and request.c: answers of a batch are gathered and sent together. */
struct tci_mcp_batch *tci_mcp_batch_new(struct tci_mcp_session *session, uint64_t stream,
                                        size_t members);
/* Why its requests cannot begin; NULL: they can, or there is no batch. */
const char *tci_mcp_batch_refusal(const struct tci_mcp_batch *batch);
/* One member has to be answered; `is_pending`: it is a request, and tci_mcp_batch_done will be called for it. */
void tci_mcp_batch_asked(struct tci_mcp_batch *batch, bool is_pending);
/* An answer, or, when there is no room for it, an error instead. It may change the text, and copies it. */
void tci_mcp_batch_add(struct tci_mcp_batch *batch, const struct json_t *id, struct tci_buf *text);
void tci_mcp_batch_done(struct tci_mcp_batch *batch);
/* Its session is closed: what was gathered is freed. */
void tci_mcp_batch_forget(struct tci_mcp_batch *batch);
/* All its members were taken; it is over when the last is answered. Returns whether there is an answer. */
bool tci_mcp_batch_taken(struct tci_mcp_batch *batch);
/* request.c: an answer that needs no request: `id` may be NULL. */
void tci_mcp_answer_error(struct tci_mcp_session *session, uint64_t stream,
                          struct tci_mcp_batch *batch, const struct json_t *id, int code,
                          const char *message);
/* Looks the method up and runs it. Always answered, now or later. */
void tci_mcp_request_begin(struct tci_mcp_session *session, const struct tci_mcp_message *message,
                           uint64_t stream, struct tci_mcp_batch *batch);
/* Cancels it, unless that has been done. */
void tci_mcp_request_cancel(struct tci_mcp_request *request);
/* session.c: the last user frees it. */
void tci_mcp_session_release(struct tci_mcp_session *session);

/* ---- parts --------------------------------------------------------------------------------- */

/* tools_call.c: the tc_approval_function of the server's engines (elicit.c). Context: the server. */
int tci_mcp_approve(void *context, const struct tc_approval *approval);

/* call_lanes.c: one line of calls for each agent. From the loop's thread. */
struct tci_mcp_job;
int tci_mcp_lane_add(struct tci_mcp_session *session, struct tci_mcp_job *job,
                     struct tc_error *reterr) tci_must_check;
/* Takes a call that waits out of the line; false: it has begun. */
bool tci_mcp_lane_leave(struct tci_mcp_server *server, struct tci_mcp_job *job);
/* A call that was added is over: the next one begins. */
void tci_mcp_lane_done(struct tci_mcp_server *server, struct tci_mcp_lane *lane);
/* It waits for a person: as long it leaves its place to others. */
void tci_mcp_lane_ask(struct tci_mcp_server *server, struct tci_mcp_job *job);
/* It has an answer: true: it has a place again. False: it waits for one, and job->go will be called. `at_once`: it
 * takes one whether there is one or not, since it is about to end. */
bool tci_mcp_lane_answered(struct tci_mcp_server *server, struct tci_mcp_job *job, bool at_once);
void tci_mcp_lanes_free(struct tci_mcp_server *server);

/* resource_files.c: the directory for the outputs of one call, made now; NULL: *reterr says why. free() it. */
char *tci_mcp_files_directory(struct tci_mcp_session *session, const char *call,
                              struct tc_error *reterr);
/* A file that a call brought back becomes a resource of the session; returns its URI, which lives until
 * tci_mcp_files_done, or NULL when it keeps no more: then it is not linked. */
const char *tci_mcp_files_add(struct tci_mcp_session *session, const char *call_id,
                              const struct tc_file *file);
/* The call with this directory is over. Its files go when it has none that is kept, or when newer ones
 * need the place. */
void tci_mcp_files_done(struct tci_mcp_session *session, const char *directory);
void tci_mcp_files_free(struct tci_mcp_session *session); /* and removes them */
void tci_mcp_files_close(struct tci_mcp_server *server);  /* the directory itself */
/* Removes what servers of this user have left that were killed. Before one starts. */
void tci_mcp_files_sweep(void);

/* resources.c: something changed; those who subscribed to it are told. */
void tci_mcp_resource_updated(struct tci_mcp_session *session, const char *uri);

/* ---- transports ---------------------------------------------------------------------------- */

/* stdio.c: one session over two descriptors, until the input ends (calls under way are finished, as long
 * as somebody reads) or a signal comes. */
int tci_mcp_serve_stdio(const struct tci_mcp_options *options, const char *agent, int in, int out,
                        struct tc_error *reterr) tci_must_check;

/* A token and whose it is. */
struct tci_mcp_token {
    char *agent;            /* NULL: the policy's owner */
    unsigned char hash[32]; /* SHA-256 */
};

struct tci_mcp_http_options {
    const char *address; /* "127.0.0.1", "::1", "localhost", or another with `allow_remote` */
    unsigned port;       /* 0: any; `listening` is told */
    bool allow_remote;   /* else only loopback addresses are taken */
    const char *const
        *hosts; /* more names that Host and Origin may show; ends with NULL; may be NULL */
    const struct tci_mcp_token *tokens;
    size_t token_count; /* 0: everybody may call, as `agent` */
    const char *agent;
    void (*listening)(void *context, const char *url);
    void *context;
};

/* http.c: until a signal comes. */
int tci_mcp_serve_http(const struct tci_mcp_options *options,
                       const struct tci_mcp_http_options *http,
                       struct tc_error *reterr) tci_must_check;

#endif
