/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: turning nodes of the document tree into typed values. One function per type of value, all
 * of one shape, listed in tables: a table of a policy file is read by looking each of its keys up
 * in a table of fields.
 *
 * Every reader function checks, normalises, stores into `field` on success and returns 0; on a bad
 * value it adds a finding and returns -1, and the caller goes on with the next key, so that one run
 * reports all errors. When memory runs out, `findings->no_memory` is set.
 */
#ifndef TCI_POLICY_READER_H
#define TCI_POLICY_READER_H

#include "base/quote.h"
#include "base/sha256.h"
#include "policy/findings.h"
#include "policy/model.h"

struct tci_reader {
    struct tci_arena *arena; /* the policy's */
    struct tci_findings *findings;
    const char *directory;    /* what relative paths are relative to; NULL: nothing */
    const char *tool;         /* being read, or NULL */
    struct tci_node *schemas; /* a table of the schema files read so far */
    struct tci_sha256 *hash;  /* of all files; NULL: nobody asks */
    size_t tool_file_bytes;   /* of all tool files so far */
    size_t path_rules;        /* of all tools, as far as they are not shared */
    char where[96];           /* "[tool.web_fetch]": for messages */
};

typedef int tci_read_function(struct tci_reader *reader, const char *name,
                              const struct tci_node *value, void *field);

struct tci_field {
    const char *name;
    tci_read_function *read;
    size_t offset; /* of the field in the struct that is filled */
};

/* Adds a finding; returns -1. */
int tci_read_fail(struct tci_reader *reader, enum tci_finding_id id, struct tci_pos pos,
                  const char *remedy, const char *format, ...) tci_printf_like(5, 6);
/* Sets no_memory; returns -1. */
int tci_read_no_memory(struct tci_reader *reader);

/* Is the value of this type? If not, a finding that names `wanted` ("a string such as \"30s\""). */
int tci_read_expect(struct tci_reader *reader, const char *name, const struct tci_node *value,
                    enum tci_node_type type, const char *wanted);

/* One of `words` (which ends with NULL); *ret_index says which. */
int tci_read_word(struct tci_reader *reader, const char *name, const struct tci_node *value,
                  const char *const *words, size_t *ret_index);

/* A list of `words`; *ret has a bit for each, the first word's is the lowest. */
int tci_read_words(struct tci_reader *reader, const char *name, const struct tci_node *value,
                   const char *const *words, unsigned *ret);

/* Strings that must be of one kind. */
struct tci_string_kind {
    bool (*is_one)(const char *text);
    enum tci_finding_id id; /* of the finding, if one is not */
    const char *kind;       /* "a system call" */
    const char *remedy;
};
int tci_read_check_strings(struct tci_reader *reader, const char *name,
                           const struct tci_strings *list, const struct tci_string_kind *kind);

/* An unknown key, with the nearest of `words` (which ends with NULL). */
int tci_read_unknown(struct tci_reader *reader, const struct tci_entry *entry, const char *inside,
                     const char *const *words);

/* Lists whose entries are compared with each other have a maximum: time stays bounded. */
enum { TCI_LIST_MAX = 1000 };
int tci_read_list_size(struct tci_reader *reader, const char *name, const struct tci_node *value);

/* As many tools and agents as one policy may have. */
enum { TCI_TABLE_MAX = 10000 };
int tci_read_table_size(struct tci_reader *reader, const char *what, size_t count,
                        struct tci_pos pos);

/* Reads every entry of a table; unknown keys are findings. -1 if any entry failed. */
int tci_read_fields(struct tci_reader *reader, const char *name, const struct tci_node *table,
                    const struct tci_field *fields, size_t field_count, void *out);

/* A non-empty string without control bytes into the arena; `wanted` as in tci_read_expect. */
int tci_read_plain_string(struct tci_reader *reader, const char *name, const struct tci_node *value,
                          const char *wanted, const char **ret);

/* A name of a tool or an agent: letters, digits, '_', '-', '.', at most 64. */
int tci_read_check_name(struct tci_reader *reader, const char *what, struct tci_text name,
                        struct tci_pos pos);

/* Text from the file, made safe to print. */
const char *tci_read_quote(struct tci_text text, char buffer[TCI_QUOTE_MAX]);

/* read_basic.c */
tci_read_function tci_read_text, tci_read_boolean, tci_read_duration, tci_read_size,
    tci_read_size_or_zero, tci_read_cores, tci_read_count, tci_read_count_or_zero, tci_read_names,
    tci_read_backend, tci_read_record, tci_read_capabilities, tci_read_environment,
    tci_read_strings, tci_read_wait, tci_read_approval;
/* read_builtin.c */
tci_read_function tci_read_builtin, tci_read_pointers;
/* read_network.c */
tci_read_function tci_read_network, tci_read_grant_network, tci_read_hosts, tci_read_network_limits,
    tci_read_grant_network_limits, tci_read_inspect;
/* read_filesystem.c */
tci_read_function tci_read_filesystem, tci_read_paths, tci_read_path, tci_read_mounts;
/* read_command.c */
tci_read_function tci_read_command, tci_read_commands, tci_read_syscalls, tci_read_outputs;
/* read_container.c */
tci_read_function tci_read_container, tci_read_image;
/* read_mcp.c */
tci_read_function tci_read_mcp;
struct tci_wrapped tci_wrapped_default(void);
/* read_schema.c */
tci_read_function tci_read_schema;

/* read_agents.c: [agent.NAME]; fills policy->agents. */
int tci_read_agents(struct tci_reader *reader, const struct tci_node *table,
                    struct tc_policy *policy);

/* read_agents.c: one grant's table. */
int tci_read_grant(struct tci_reader *reader, const struct tci_node *table,
                   struct tci_grant *grant);
/* load.c: a grant against the tool that it is for. */
int tci_check_grant(struct tci_reader *reader, const struct tci_tool *tool,
                    const struct tci_grant *grant);

/* tool_files.c: the names in the directories that the key `tools` names; fills
 * policy->tool_files. */
int tci_find_tool_files(struct tci_reader *reader, const struct tci_node *value,
                        struct tc_policy *policy);
/* Reads the i-th of them; *ret is the file's table. */
int tci_read_tool_file(struct tci_reader *reader, struct tc_policy *policy, size_t i,
                       struct tci_node **ret);
/* load.c: what a file adds to the policy's hash, beside the policy's own bytes. */
void tci_hash_file(struct tci_reader *reader, const char *kind, const char *name, const char *bytes,
                   size_t length);
/* load.c: notes where a text, which is UTF-8 by now, deceives its reader. */
void tci_find_deceptive(const char *bytes, size_t length, uint32_t file, struct tc_policy *policy);

/* read_tools.c: [tool.NAME] (`table` may be NULL) and the tool files; fills policy->tools. */
int tci_read_tools(struct tci_reader *reader, const struct tci_node *table,
                   const struct tci_settings *defaults, struct tc_policy *policy);
/* One of them: its name, the name's place, its table. */
int tci_read_tool(struct tci_reader *reader, struct tci_text name, struct tci_pos pos,
                  const struct tci_node *table, const struct tci_settings *defaults,
                  struct tci_tool *tool);
/* read_builtin.c: fills in what the tool's `builtin` brings. */
int tci_apply_builtin(struct tci_reader *reader, const struct tci_settings *own,
                      struct tci_tool *tool);

/* read_settings.c: a table of settings; `where` is one of TCI_IN_*. */
int tci_read_settings(struct tci_reader *reader, const struct tci_node *table, unsigned where,
                      struct tci_settings *out);
/* One key that the grant reader found to be a setting; false when it is none. */
bool tci_read_setting(struct tci_reader *reader, const struct tci_entry *entry, unsigned where,
                      struct tci_settings *out, int *ret_status);

/* effective.c: checks of [defaults] across keys. */
int tci_check_defaults(struct tci_reader *reader, const struct tci_settings *defaults);
/* effective.c: what a tool without limits of its own may do with the network. */
struct tci_network_limits tci_network_limits_default(void);
/* effective.c: the network has no gate that could keep limits or look at names. Adds a finding for
 * the first of these keys that `given` has nevertheless; returns -1 then. */
int tci_check_gate_keys(struct tci_reader *reader, const struct tci_settings *given,
                        enum tci_network_mode mode);
/* effective.c: a container's built-in settings: closed. */
struct tci_container tci_container_default(void);
/* effective.c: what a tool has in the end: its own values, then the defaults', then built-in. */
int tci_effective(struct tci_reader *reader, const struct tci_settings *defaults,
                  const struct tci_settings *own, struct tci_tool *tool);

#endif
