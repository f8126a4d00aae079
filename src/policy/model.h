/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what a policy means, as typed values. Everything here was checked and normalised when it
 * was read and does not change afterwards; all of it lives in the policy's arena. Each value knows
 * the place in the file that it came from.
 */
#ifndef TCI_POLICY_MODEL_H
#define TCI_POLICY_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/arena.h"
#include "policy/builtin_tools.h"
#include "policy/clauses.h"
#include "policy/doc.h"
#include "policy/netrule.h"
#include "toolcage/toolcage.h"

/* A limit that somebody switched off on purpose; lint says so. */
#define TCI_UNLIMITED UINT64_MAX

/* A filesystem that does not say how much scratch it wants; the backend decides (effective.c). */
#define TCI_SCRATCH_UNSET (UINT64_MAX - 1)

/* Built-in values of the keys that are tables. */
enum {
    TCI_SCRATCH_DEFAULT = 64000000,
    TCI_CONNECTIONS_DEFAULT = 256,
    TCI_MAX_FILE_DEFAULT = 10000000,
    TCI_MAX_FILES_DEFAULT = 32,
    TCI_APPROVAL_TIMEOUT_DEFAULT = 60000
};

enum tci_key {
#define X(id, name, field, where, type, standard, doc) TCI_KEY_##id,
#include "policy/keys.def"
#undef X
    TCI_KEY_COUNT
};
#define tci_key_bit(key) ((uint64_t)1 << (key))

/* Where a key may stand. */
enum { TCI_IN_DEFAULTS = 1, TCI_IN_TOOL = 2, TCI_IN_GRANT = 4 };

enum tci_backend_kind {
    TCI_BACKEND_PROCESS,
    TCI_BACKEND_JAIL,
    TCI_BACKEND_OCI,
    TCI_BACKEND_GVISOR,
    TCI_BACKEND_WASM,
    TCI_BACKEND_MICROVM,
    TCI_BACKEND_KIND_COUNT
};

/* A string with its place, for list items that lint may want to point at. */
struct tci_string {
    const char *text;
    struct tci_pos pos;
};

struct tci_strings {
    struct tci_string *items;
    size_t count;
};

enum tci_network_mode {
    TCI_NETWORK_NONE, /* also what an empty list of rules becomes */
    TCI_NETWORK_RULES,
    TCI_NETWORK_PUBLIC,
    TCI_NETWORK_HOST,
};

struct tci_network_entry {
    struct tci_netrule rule;
    struct tci_pos pos;
};

struct tci_network {
    enum tci_network_mode mode;
    struct tci_network_entry *rules;
    size_t count;
    struct tci_strings ignored; /* duplicates, as written, for lint */
    /* RULES that were cut out of "public" (core/narrow_network.c): they reach the internet only,
     * also where a rule names an address of this very machine. */
    bool only_public;
};

/* What all connections of a cage may use together. 0: no limit. In a grant, TCI_UNLIMITED: the grant
 * does not speak of it. */
struct tci_network_limits {
    uint64_t connections;         /* open at one time */
    uint64_t bytes_in, bytes_out; /* in: to the cage */
    uint64_t rate;                /* bytes a second, both directions together */
};

/* In the order of precedence at the same path. */
enum tci_access { TCI_ACCESS_HIDDEN, TCI_ACCESS_READABLE, TCI_ACCESS_WRITABLE };

struct tci_path_rule {
    enum tci_access access;
    const char *host;     /* normal form; NULL for a hidden path, which has no source */
    const char *cage;     /* normal form */
    const char *as_given; /* before normalising, for lint */
    bool optional;        /* a missing host path is no error */
    struct tci_pos pos;
};

struct tci_filesystem {
    struct tci_path_rule *rules;
    size_t count;
    uint64_t scratch; /* bytes of the private /tmp; 0: none */
    const char *cwd;  /* in the cage; NULL: /tmp, or / without scratch */
};

enum tci_syscall_profile { TCI_SYSCALLS_DEFAULT, TCI_SYSCALLS_STRICT, TCI_SYSCALLS_PURE };

struct tci_syscalls {
    enum tci_syscall_profile profile;
    struct tci_strings allow, deny;
};

struct tci_commands {
    bool any; /* no list was given */
    struct tci_strings list;
};

enum { TCI_CAP_FS_READ = 1, TCI_CAP_FS_WRITE = 2, TCI_CAP_NET_HTTP = 4, TCI_CAP_EXEC_RUN = 8 };

struct tci_variable {
    const char *name, *value;
    struct tci_pos pos;
};

struct tci_environment {
    struct tci_variable *items;
    size_t count;
};

enum { TCI_SCHEMA_BYTES_MAX = 256 * 1024 };

struct tci_schema {
    const char *json; /* compact text with sorted keys; NULL: none */
    const char *file; /* where it was read from; NULL: written inline */
};

struct tci_outputs {
    struct tci_strings globs;
    uint64_t max_file, max_files;
};

/* Paths that a container grants in addition to `filesystem`; they become part of it. */
struct tci_mounts {
    struct tci_path_rule *rules;
    size_t count;
};

struct tci_container {
    const char *engine, *runtime, *user; /* NULL: chosen by the backend */
    struct tci_strings cap_drop, cap_add;
    bool read_only_rootfs, no_new_privileges;
    struct tci_mounts mounts;
};

/* What a wrapped MCP server may take part in. */
enum {
    TCI_FEATURE_RESOURCES = 1,
    TCI_FEATURE_PROMPTS = 2,
    TCI_FEATURE_LOGGING = 4,
    TCI_FEATURE_COMPLETIONS = 8,
    TCI_FEATURE_SAMPLING =
        16, /* from here on the server asks the client, and so the person or the model */
    TCI_FEATURE_ELICITATION = 32,
    TCI_FEATURE_ROOTS = 64,
    TCI_FEATURES_DEFAULT = 15,
};

/* An MCP server of somebody else's: what passes between it and its clients. */
struct tci_wrapped {
    bool given;               /* the tool is one */
    bool any_tool;            /* no list was given */
    struct tci_strings tools; /* names and patterns that clients see */
    unsigned features;        /* TCI_FEATURE_* */
    bool has_features;        /* they were given */
    uint64_t message;         /* bytes of one message of the server */
    uint64_t rate;            /* calls a minute; TCI_UNLIMITED: any number */
    uint64_t calls;           /* at one time */
    const char *pin;          /* a file, absolute; NULL: none */
};
/* read_mcp.c: the name of the i-th feature; NULL behind the last. */
const char *tci_mcp_feature_name(size_t i);

enum tci_record { TCI_RECORD_FALSE, TCI_RECORD_TRUE, TCI_RECORD_HASH_ONLY };

enum tci_approval { TCI_APPROVAL_NEVER, TCI_APPROVAL_ASK };

/* One table of settings: [defaults], a tool, or what a grant narrows. */
struct tci_settings {
    uint64_t present;                  /* bit per key: set in this very table */
    struct tci_pos pos[TCI_KEY_COUNT]; /* where, for the present ones */

    const char *description;
    enum tci_backend_kind backend;
    struct tci_network network;
    bool allow_host_network;
    struct tci_network_limits network_limits;
    bool inspect_strict; /* what does not show the name that it is meant for is refused */
    struct tci_filesystem filesystem;
    bool system;
    const char *rootfs, *image;
    uint64_t timeout, cpu_time;    /* milliseconds */
    uint64_t memory, disk, output; /* bytes */
    uint64_t cpu;                  /* thousandths of a core */
    uint64_t pids, files, warm;
    struct tci_syscalls syscalls;
    struct tci_commands commands;
    unsigned capabilities;
    struct tci_filesystem allowed_paths;
    struct tci_network allowed_hosts;
    struct tci_commands allowed_commands;
    struct tci_environment env;
    struct tci_strings env_pass;
    const struct tci_builtin *builtin; /* the rest of it is in `command` and below; NULL: none */
    struct tci_strings command;
    struct tci_schema parameters, returns;
    struct tci_outputs outputs;
    struct tci_container container;
    enum tci_record record;
    struct tci_strings redact; /* JSON Pointers, checked */
    enum tci_approval approval;
    uint64_t approval_timeout; /* milliseconds */
    struct tci_wrapped mcp;
};

struct tci_agent;
struct tci_grant;

enum tci_origin {
    TCI_FROM_BUILTIN, /* the value that a key has when nobody sets it */
    TCI_FROM_DEFAULTS,
    TCI_FROM_TOOL,
    TCI_FROM_BUILTIN_TOOL, /* brought by the tool's `builtin` */
};

/* Who holds a grant for a tool: the way back from a tool to its grants. */
struct tci_granted {
    const struct tci_agent *agent;
    const struct tci_grant *grant;
    struct tci_granted *next;
};

struct tci_tool {
    const char *name;
    struct tci_granted *granted; /* in the order of the file */
    struct tci_pos pos;
    struct tci_settings settings;  /* effective: inherited and built-in values filled in */
    uint8_t source[TCI_KEY_COUNT]; /* enum tci_origin of each effective value */
};

struct tci_grant {
    const char *tool;
    struct tci_pos pos;
    const struct tci_settings *narrow; /* never NULL; only keys with TCI_IN_GRANT: see `present` */
    bool has_expiry, has_max_calls;
    int64_t expires; /* seconds since 1970; from this moment on the grant is void */
    uint64_t max_calls;
    struct tci_pos expires_pos, max_calls_pos;
};

/* How far up a child agent may look: itself and seven above it. */
enum { TCI_AGENT_CHAIN_MAX = 8 };

struct tci_agent {
    const char *name, *description;
    const struct tci_agent *parent; /* may do no more than that one; NULL: none */
    const char *parent_name;
    struct tci_pos pos, parent_pos;
    struct tci_grant *grants;
    size_t grant_count;
};

struct tc_policy {
    struct tci_arena *arena;
    const char *file; /* as named by the caller, for messages; "-" for standard input */
    char hash[65];    /* SHA-256 of the file, and of the tool and schema files that it names */
    const struct tci_tool_file *tool_files; /* index: pos.file - 1 */
    size_t tool_file_count;
    struct tci_tool_directory {
        const char *path; /* absolute, normal form */
        struct tci_pos pos;
    } * tool_directories;
    size_t tool_directory_count;
    const char *directory; /* absolute, normal form: what relative paths are relative to */
    bool has_version;
    struct tci_deceptive {
        struct tci_pos pos;
        uint32_t code_point;
    } deceptive[8]; /* the first characters of the file that hide or reorder text, for lint */
    size_t deceptive_count;
    const struct tci_settings *defaults; /* as written; never NULL */
    struct tci_tool *tools;              /* in file order */
    size_t tool_count;
    struct tci_agent *agents;
    size_t agent_count;
    struct tci_tool **tools_by_name; /* sorted */
    /* What holds for a call that names no tool: [defaults] alone. Its name is "", and no list of
     * tools has it, so that no grant can name it. */
    const struct tci_tool *anonymous;
};

const struct tci_tool *tci_policy_tool(const struct tc_policy *policy, const char *name);
const struct tci_agent *tci_policy_agent(const struct tc_policy *policy, const char *name);
const struct tci_grant *tci_agent_grant(const struct tci_agent *agent, const char *tool);

/* The name of the file that a place is in. */
const char *tci_policy_file(const struct tc_policy *policy, struct tci_pos pos);

const char *tci_key_name(enum tci_key key);
unsigned tci_key_where(enum tci_key key);
const char *tci_key_doc(enum tci_key key);
const char *tci_key_standard(enum tci_key key);
const char *tci_key_type(enum tci_key key);

/* Synonyms included ("L3_DOCKER"); -1 when the name is none. */
int tci_backend_kind_from_name(const char *name);
const char *tci_backend_kind_name(enum tci_backend_kind kind);
/* The i-th accepted name, NULL behind the last: for messages, schema and completion. */
const char *tci_backend_kind_spelling(size_t i);

const char *tci_network_mode_name(enum tci_network_mode mode);
/* Does a gate stand between the network and the tool? */
bool tci_network_has_gate(const struct tci_network *network);
const char *tci_syscall_profile_name(enum tci_syscall_profile profile);
const char *tci_access_name(enum tci_access access);
const char *tci_record_name(enum tci_record record);
const char *tci_approval_name(enum tci_approval approval);

/* What a tool asks of its backend. */
tci_clauses tci_tool_clauses(const struct tci_tool *tool);

#endif
