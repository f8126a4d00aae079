/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toolcage: a policy for every tool call of a language model, and a cage to keep it.
 *
 * This is the whole public interface. Conventions:
 *   - a function that can fail returns 0, or a negative value and fills *reterr;
 *   - `ret_x` is set only on success; what it points to then belongs to the caller;
 *   - the library prints nothing, never exits and keeps no global state that can change:
 *     objects may be used from any thread, a loaded policy from many at once;
 *   - structs grow only at their end.
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
};

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

#ifdef __cplusplus
}
#endif

#endif
