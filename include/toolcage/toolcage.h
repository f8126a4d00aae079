/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toolcage: a policy for every tool call of a language model, and a cage to keep it.
 *
 * This is the whole public interface. Conventions:
 *   - a function that can fail returns 0, or a negative value and fills *reterr;
 *   - `ret_x` is set only on success; what it points to then belongs to the caller;
 *   - the library prints nothing, never exits and keeps no global state that can change:
 *     objects may be used from any thread, a policy and an engine from many at once, a call and
 *     its result from one at a time;
 *   - structs grow only at their end: fill them by name, and zero the rest.
 */
#ifndef TOOLCAGE_H
#define TOOLCAGE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TC_EXPORT __attribute__((visibility("default")))
#else
#define TC_EXPORT
#endif

/* "MAJOR.MINOR.PATCH" of the library that is loaded, which may differ from this header's. */
TC_EXPORT const char *tc_version(void);

/* ---- errors ----------------------------------------------------------------------------- */

enum tc_error_code {
    TC_ERROR_NONE = 0,
    TC_ERROR_NO_MEMORY,   /* an allocation failed */
    TC_ERROR_IO,          /* a file could not be opened or read */
    TC_ERROR_TOO_LARGE,   /* input beyond a stated maximum */
    TC_ERROR_SYNTAX,      /* not TOML, not YAML, not JSON */
    TC_ERROR_POLICY,      /* well-formed, but not a policy */
    TC_ERROR_USAGE,       /* the caller asked for something that does not exist */
    TC_ERROR_UNSUPPORTED, /* this host or this build cannot do it */
    TC_ERROR_INTERNAL,    /* a bug: please report it */
};

/*
 * Why something failed: caller-owned, fixed size, nothing to free. Text that does not fit is cut.
 * The first cause wins; functions on the way up add where it happened.
 */
struct tc_error {
    enum tc_error_code code;
    unsigned line, column; /* in `file`, from 1; 0: not about a place in a file */
    char id[12];           /* stable, documented in docs/lint.md: "TC-P012"; may be empty */
    char file[512];        /* may be empty */
    char message[768];     /* one sentence: what is wrong */
    char remedy[512];      /* one sentence: what to do; may be empty */
};

/* A stable lower-case name ("no_memory"), for logs and JSON. */
TC_EXPORT const char *tc_error_name(enum tc_error_code code);

/* The exit status, HTTP status and JSON-RPC code that toolcage's own programs give for a code. */
TC_EXPORT int tc_error_exit_status(enum tc_error_code code);
TC_EXPORT int tc_error_http_status(enum tc_error_code code);
TC_EXPORT int tc_error_jsonrpc_code(enum tc_error_code code);

/* ---- policies --------------------------------------------------------------------------- */

/* A policy that was read and checked; it does not change any more. */
struct tc_policy;

/* Reads a policy file: TOML, or YAML when its name ends in .yaml or .yml; "-" is standard input.
 * Fails on the first thing that is wrong with it, and says where. Free it with tc_policy_free. */
TC_EXPORT int tc_policy_load(const char *path, struct tc_policy **ret_policy,
                             struct tc_error *reterr);
TC_EXPORT void tc_policy_free(struct tc_policy *policy);

/* The normal form as TOML, which loads to an equal policy. free() the text. */
TC_EXPORT int tc_policy_dump(const struct tc_policy *policy, char **ret_toml,
                             struct tc_error *reterr);

/* What lint finds without looking at this host, as JSON (schemas/lint.json). free() the text. */
TC_EXPORT int tc_policy_lint(const struct tc_policy *policy, char **ret_json,
                             struct tc_error *reterr);

/* ---- decisions -------------------------------------------------------------------------- */

/* An answer of the policy, with what said so. All texts are in the struct; nothing to free. */
struct tc_decision {
    int allowed;           /* 1 or 0 */
    unsigned line, column; /* of the clause in the policy file; 0: built-in, or no clause at all */
    char key[32];          /* the clause: "network", "filesystem", "grants", ... */
    char rule[320];        /* the rule that decided, in canonical form; may be empty */
    char reason[512];      /* one sentence */
    char fix[512];         /* the smallest change that would allow it; empty when allowed */
    unsigned file;         /* the file that the clause is in: see tc_policy_file_name */
};

/* A policy may have tools in files of their own: the name of the one with this number (0: the policy
 * file itself). It lives as long as the policy. */
TC_EXPORT const char *tc_policy_file_name(const struct tc_policy *policy, unsigned file);

/*
 * May `agent` call `tool` at the moment `now` (seconds since 1970), having called it `calls_made`
 * times under this grant? A NULL agent is the policy's owner at the command line, who needs no
 * grant. For an agent, "not granted" and "no such tool" are one answer.
 */
TC_EXPORT void tc_decide_call(const struct tc_policy *policy, const char *agent, const char *tool,
                              int64_t now, uint64_t calls_made, struct tc_decision *ret);

/*
 * May a call of `tool` by `agent` (NULL: the owner) reach this host and port? This and the next are
 * about a call that is under way: they do not look at expiry and number of calls, which
 * tc_decide_call has decided before it began.
 */
TC_EXPORT void tc_decide_network(const struct tc_policy *policy, const char *agent,
                                 const char *tool, const char *host, unsigned port,
                                 struct tc_decision *ret);

enum tc_access { TC_ACCESS_READ, TC_ACCESS_WRITE };

/* May a call of `tool` by `agent` (NULL: the owner) read or write this path of its cage? */
TC_EXPORT void tc_decide_path(const struct tc_policy *policy, const char *agent, const char *tool,
                              const char *path, enum tc_access access, struct tc_decision *ret);

/* ---- calls ------------------------------------------------------------------------------- */

/*
 * An engine holds a policy and what was made from it once: plans, filters, control groups. It may be
 * used from many threads at once. Close it when no call is under way any more.
 */
struct tc_engine;

/* "live" runs calls and records them; "replay" never starts a cage: it finds each request in the
 * journal and gives the result that was recorded. */
enum tc_mode { TC_MODE_LIVE, TC_MODE_REPLAY };

/* What somebody is asked to approve: exactly what would run. All texts are UTF-8 and may come from a
 * model: show them escaped. They live until the function returns. */
struct tc_approval {
    const char *call_id, *tool, *agent;            /* agent NULL: the policy's owner */
    const char *arguments_json;                    /* canonical; NULL: the request has argv */
    const char *const *argv;                       /* ends with NULL */
    const char *const *readable, *const *writable; /* paths of the cage, HOST:CAGE where it is
                                                      another one of the host; end with NULL */
    const char *const *network; /* rules, or "none", "public", "host"; ends with NULL */
    uint64_t timeout_ms;        /* an answer that comes later counts as no */
    const void *input;          /* bytes for stdin; NULL: none, or */
    size_t input_length;
    int input_unseen; /* 1: stdin is read while it runs, and nobody knows what will be in it */
};
/* 1: yes; negative: nobody could be asked; anything else: no. It is called by the thread that makes
 * the call, and may wait. */
typedef int tc_approval_function(void *context, const struct tc_approval *approval);

enum tc_engine_flag {
    TC_ENGINE_REPLAY_RESUME = 1, /* replay goes on where the last one of the session stopped, in
                                    whichever process that was */
    TC_ENGINE_WARM =
        2, /* keeps as many cages ready as the policy's `warm` says, from a tool's first
                           call on: for processes that stay */
};

struct tc_engine_options {
    const char *policy_path;        /* a policy file, or */
    const struct tc_policy *policy; /* a policy that outlives the engine, or neither: built-in
                                       defaults, with the present directory readable at /workspace */
    const char *journal_path; /* a journal, made if it is missing; NULL: nothing is recorded, grants
                                 made at run time are not known, and `max_calls` counts the calls of
                                 this engine only */
    enum tc_mode mode;
    unsigned flags;                    /* bits of enum tc_engine_flag */
    tc_approval_function *on_approval; /* NULL: what needs approval is denied */
    void *approval_context;
};

/* Where `toolcage` keeps its journal: $XDG_STATE_HOME/toolcage/journal.db. free() it. */
TC_EXPORT int tc_journal_default_path(char **ret_path, struct tc_error *reterr);

TC_EXPORT int tc_engine_open(const struct tc_engine_options *options, struct tc_engine **ret_engine,
                             struct tc_error *reterr);
TC_EXPORT void tc_engine_close(struct tc_engine *engine);

/* ---- tools of the host's own -------------------------------------------------------------- */

/* One call of a handler, in its cage. */
struct tc_handler_call {
    const char *arguments_json; /* canonical, valid by the tool's `parameters` */
    size_t arguments_length;
    void *context; /* of the definition; NULL in a shared object */
    /* Appends to the call's stdout. 0, or -1 with errno. Do not use stdio in a function handler:
     * what the host has in its buffers would come out, too. */
    int (*reply)(const struct tc_handler_call *call, const void *bytes, size_t length);
};
/* Returns the exit status. */
typedef int tc_handler(const struct tc_handler_call *call);

/*
 * A tool that is not in the policy file. What runs is one of: `function`, a function of this program,
 * called in a caged child that is a fork of it; `library` and `symbol`, a tc_handler in a shared
 * object, which is loaded inside the cage and never into this process; or the `command` in `policy`.
 */
struct tc_tool_definition {
    const char *name;
    const char
        *policy; /* the keys of a [tool.NAME] table, as TOML; NULL: the policy's [defaults] */
    tc_handler *function;
    void *context;
    const char *library; /* absolute path */
    const char *symbol;
};
/* Before the first call of it; the engine keeps copies of all texts. A name that the policy or an
 * earlier definition has is an error. */
TC_EXPORT int tc_tool_define(struct tc_engine *engine, const struct tc_tool_definition *definition,
                             struct tc_error *reterr);

/* All tools of the engine (or those that `agent` holds a grant for; NULL: all) as JSON in the form
 * that a kind of model API takes: "openai", "anthropic", "mcp" or "json". free() the text. */
TC_EXPORT int tc_engine_tools(struct tc_engine *engine, const char *agent, const char *format,
                              char **ret_json, struct tc_error *reterr);

/* ---- grants at run time: they are kept in the journal -------------------------------------- */

/* `grant` is what a policy's grant table holds, as TOML or JSON: { tool = "x", max_calls = 3 }. */
TC_EXPORT int tc_grant_add(struct tc_engine *engine, const char *agent, const char *grant,
                           char ret_id[37], struct tc_error *reterr);
TC_EXPORT int tc_grant_revoke(struct tc_engine *engine, const char *id, struct tc_error *reterr);
/* Those of the policy and those of the journal, as JSON (schemas/grants.json). free() the text. */
TC_EXPORT int tc_grant_list(struct tc_engine *engine, char **ret_json, struct tc_error *reterr);

/* ---- one call ------------------------------------------------------------------------------ */

enum tc_stream { TC_STREAM_STDOUT = 1, TC_STREAM_STDERR = 2 };

/* Bytes of a running call, as they come. They are the cage's: data, never to be interpreted. A value
 * other than 0 cancels the call. */
typedef int tc_output_function(void *context, enum tc_stream stream, const void *bytes,
                               size_t length);

/*
 * Something that the gate of a running call did or refused, as it happens. Names come from the cage:
 * they are data, never to be interpreted. Texts are never NULL, and live until the function that gets
 * them returns. That function may cancel the call, but not free it.
 */
struct tc_network_event {
    const char *kind;             /* "opened", "closed", "refused", "failed" */
    const char *protocol;         /* "tcp", "udp", "dns" */
    const char *host;             /* the name, or the address where the cage used one */
    const char *address;          /* that was dialled or refused; "": none was */
    unsigned port;                /* 0: a name that was asked for */
    const char *rule;             /* of the policy, that allowed or denied it; "": none */
    const char *reason;           /* why it was refused or failed, or a note; may be empty */
    const char *fix;              /* refused: the smallest change that would allow it */
    uint64_t bytes_in, bytes_out; /* closed: in is to the cage */
    uint64_t duration_us;         /* closed, failed */
    uint64_t count;               /* refused: how often the same was tried so far */
};
typedef void tc_network_function(void *context, const struct tc_network_event *event);

/* Limits of one call. They can only narrow what the policy says; 0 leaves it as it is. */
struct tc_limits {
    uint64_t timeout_ms, cpu_time_ms;
    uint64_t memory, disk, output; /* bytes */
    uint64_t cpu_millis;           /* thousandths of a core */
    uint64_t pids, files;
};

/* Names are UTF-8 text, and not empty: anything else is TC_ERROR_USAGE. */
struct tc_request {
    const char *tool;           /* a tool of the policy; NULL: the policy's [defaults] */
    const char *agent;          /* NULL: the policy's owner, who needs no grant */
    const char *session;        /* a name for a series of calls; NULL: none */
    const char *trace_id;       /* 32 hexadecimal digits; NULL: one is made */
    const char *arguments_json; /* for the tool's own `command` */
    const char *const *argv;    /* a command of the caller's instead; ends with NULL */
    const void *input;          /* bytes for stdin: they live until the call is over; `input_fd`
                                   must be -1 or 0 then */
    size_t input_length;
    int input_fd;              /* > 0: read and relayed until its end; the caller closes it */
    const char *out_directory; /* where files named by `outputs` are saved; NULL: only listed */
    struct tc_limits limits;
    tc_output_function *on_output;
    void *context;
    unsigned flags; /* bits of enum tc_request_flag */
    int terminal;   /* with TC_REQUEST_TERMINAL: the slave of a pseudo terminal of the caller's */
    tc_network_function *on_network; /* NULL: connections are in the result only */
    void *network_context;
    const char *parent; /* call_id of a call of this engine that is under way, in which this one is
                           made: it gets no more than that one has. NULL: none */
};

enum tc_request_flag {
    TC_REQUEST_KEEP_NOTHING = 1, /* output goes to on_output only, the result holds none of it; not
                                       for a tool with `returns` */
    TC_REQUEST_TERMINAL = 2,     /* stdin, stdout and stderr are `terminal`; nor this */
    TC_REQUEST_EXPLAIN_DENIALS = 4, /* trace the call, slowly, and list what was refused */
};

/* How a call ended, as one word. */
enum tc_verdict {
    TC_VERDICT_OK,
    TC_VERDICT_FAILED,   /* exit status other than 0 */
    TC_VERDICT_SIGNALED, /* died of a signal of its own */
    TC_VERDICT_TIMEOUT,  /* limits, from here */
    TC_VERDICT_MEMORY,
    TC_VERDICT_CPU,
    TC_VERDICT_PIDS,
    TC_VERDICT_DISK,
    TC_VERDICT_OUTPUT,
    TC_VERDICT_DENIED, /* by the policy, or by a grant that is missing */
    TC_VERDICT_INVALID_INPUT,
    TC_VERDICT_INVALID_OUTPUT,
    TC_VERDICT_ERROR, /* the cage could not be built or kept, or the call was cancelled */
};
TC_EXPORT const char *tc_verdict_name(enum tc_verdict verdict); /* "ok", "invalid_input", ... */

/* A file that the call left behind and the policy's `outputs` named. */
struct tc_file {
    const char *path; /* in the cage */
    uint64_t size;
    char sha256[65];
    const char *media_type;
    const char *saved; /* where it was saved; NULL: it was not */
};

/* Something that the cage refused, as far as the kernel lets us know. */
struct tc_denial {
    const char *kind;   /* "read", "write", "exec", "network", "syscall", "grant", ... */
    const char *target; /* a path, a program, a host, an address, a call */
    const char *rule;   /* the key of the policy that decides, with what it would take */
};

/* A connection to the world that the policy allowed, and the gate made or tried to make. */
struct tc_connection {
    const char *name;             /* that the cage asked for; NULL: it used an address */
    const char *address;          /* that was dialled; NULL: none was */
    unsigned port;                /* 0: it came no further than the name's lookup, which failed */
    const char *protocol;         /* "tcp"; "dns" for such a lookup */
    const char *rule;             /* of the policy, that allowed it; NULL: none is known */
    const char *note;             /* what was remarkable about it; NULL: nothing */
    const char *error;            /* why it could not be made; NULL: it was */
    uint64_t bytes_in, bytes_out; /* in: to the cage */
    uint64_t started_us, duration_us; /* started: since the start of the cage */
};

struct tc_usage {
    uint64_t duration_us, cpu_us;
    uint64_t memory_peak_bytes; /* 0: not known */
    uint64_t processes_peak;    /* 0: not known */
    uint64_t bytes_written;     /* to storage */
};

/* Everything in it belongs to the result. Texts are never NULL unless it says so. */
struct tc_result {
    char call_id[37];    /* UUID version 7 */
    char sandbox_id[72]; /* a container's id, or "tc-" and 16 digits */
    char trace_id[33];
    const char *tool, *agent, *session; /* NULL: none was given */
    const char *backend;
    const char *layers; /* what was in force: "userns mountns ... cgroup:v2" */
    enum tc_verdict verdict;
    char reason[768];                      /* one sentence; empty when ok */
    char fix[512];                         /* the smallest change that would help; may be empty */
    int exit_code;                         /* -1: it did not exit */
    int signal;                            /* 0: none */
    const char *stdout_data, *stderr_data; /* `output` bytes in all are kept; NUL behind each */
    size_t stdout_length, stderr_length;
    uint64_t stdout_bytes, stderr_bytes; /* seen in all */
    int stdout_truncated, stderr_truncated;
    const struct tc_file *files;
    size_t file_count;
    const struct tc_denial *denials;
    size_t denial_count;
    struct tc_usage usage;
    const uint64_t *denial_times; /* how often each denial happened, as far as is known; never 0 */
    const struct tc_connection *connections; /* in the order in which they began */
    size_t connection_count;
    uint64_t network_unlisted; /* connections and refusals beyond those that are listed */
    enum tc_mode mode;
    const char *output_json; /* stdout, checked against `returns`; NULL: none, or it is not valid */
    char state_hash[65];     /* of the session in the journal, after this call; "": not recorded */
};

/* Runs a call to its end. 0: there is a result, whatever its verdict; a refusal is a result too.
 * Negative: nothing was done, because the request or the engine's memory did not allow it. */
TC_EXPORT int tc_call(struct tc_engine *engine, const struct tc_request *request,
                      struct tc_result **ret_result, struct tc_error *reterr);

/*
 * The same for an event loop: start, wait until `fd` is readable, step; when step sets *ret_result,
 * the call is over. A call that is freed before is killed first.
 */
struct tc_call;
TC_EXPORT int tc_call_start(struct tc_engine *engine, const struct tc_request *request,
                            struct tc_call **ret_call, struct tc_error *reterr);
TC_EXPORT int tc_call_fd(const struct tc_call *call);
TC_EXPORT const char *tc_call_id(const struct tc_call *call);
TC_EXPORT int tc_call_step(struct tc_call *call, struct tc_result **ret_result,
                           struct tc_error *reterr);
TC_EXPORT void tc_call_cancel(struct tc_call *call);
TC_EXPORT void tc_call_free(struct tc_call *call);

/* The result as JSON (schemas/result.json); it belongs to the result. NULL: out of memory. */
TC_EXPORT const char *tc_result_json(struct tc_result *result);
/* The exit status that `toolcage exec` gives for it. */
TC_EXPORT int tc_result_exit_status(const struct tc_result *result);
TC_EXPORT void tc_result_free(struct tc_result *result);

#ifdef __cplusplus
}
#endif

#endif
