/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the way from a file to a policy: read, parse, check every table, inherit.
 * Invariant: a policy is returned only when nothing at all was wrong with the file; an error in one
 * tool is never "that tool is left out".
 */
#include "policy/load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/utf8.h"
#include "policy/reader.h"
#include "policy/toml.h"
#include "policy/yaml.h"

/* What the top level of a policy holds. */
struct sections {
    const struct tci_node *defaults, *tools, *directories, *agents;
};

void tc_policy_free(struct tc_policy *policy)
{
    if (policy)
        tci_arena_free(policy->arena);
}

void tci_policy_freep(struct tc_policy **policy)
{
    tc_policy_free(*policy);
    *policy = NULL;
}

static int read_version(struct tci_reader *reader, const struct tci_node *value,
                        struct tc_policy *policy)
{
    if (tci_read_expect(reader, "version", value, TCI_NODE_INTEGER, "the number 1") < 0)
        return -1;
    if (value->integer != 1)
        return tci_read_fail(reader, TCI_FINDING_VERSION, value->pos,
                             "write version = 1, or use a toolcage that knows this version",
                             "policy version %lld is not known", (long long)value->integer);
    policy->has_version = true;
    return 0;
}

static int read_top(struct tci_reader *reader, const struct tci_node *root,
                    struct tc_policy *policy, struct sections *sections)
{
    static const char *const words[] = { "tools", "version", "defaults", "tool", "agent", NULL };
    const struct {
        const char *name;
        const struct tci_node **ret;
    } tables[] = { { "defaults", &sections->defaults },
                   { "tool", &sections->tools },
                   { "agent", &sections->agents } };
    int status = 0;

    tci_table_foreach (entry, root) {
        const struct tci_node **ret = NULL;
        for (size_t i = 0; i < tci_array_size(tables); i++)
            if (tci_text_is(entry->key, tables[i].name))
                ret = tables[i].ret;
        int r = 0;
        if (tci_text_is(entry->key, "version"))
            r = read_version(reader, entry->value, policy);
        else if (tci_text_is(entry->key, "tools") && entry->value->type != TCI_NODE_TABLE)
            sections->directories = entry->value;
        else if (!ret)
            /* [tools.x] is a slip for [tool.x]. */
            r = tci_read_unknown(reader, entry, reader->where,
                                 words + (entry->value->type == TCI_NODE_TABLE));
        else if ((r = tci_read_expect(reader, entry->key.data, entry->value, TCI_NODE_TABLE,
                                      "a table")) == 0)
            *ret = entry->value;
        if (r < 0)
            status = -1;
    }
    return status;
}

/* ---- agents ------------------------------------------------------------------------------- */

static struct tci_tool *find_tool(struct tc_policy *policy, const char *name)
{
    const struct tci_tool *found = tci_policy_tool(policy, name);
    return found ? &policy->tools[found - policy->tools] : NULL;
}

/* A grant can limit the host's network as little as a tool can. */
int tci_check_grant(struct tci_reader *reader, const struct tci_tool *tool,
                    const struct tci_grant *grant)
{
    const struct tci_settings *narrow = grant->narrow;
    bool own_network = (narrow->present & tci_key_bit(TCI_KEY_NETWORK)) != 0;
    if (tool->settings.network.mode != TCI_NETWORK_HOST)
        return 0;
    return tci_check_gate_keys(reader, narrow,
                               own_network ? narrow->network.mode : TCI_NETWORK_HOST);
}

/* From the last to the first, so that each list is in the order of the file. */
static int index_grants(struct tci_reader *reader, struct tc_policy *policy)
{
    for (size_t i = policy->agent_count; i-- > 0;) {
        struct tci_agent *agent = &policy->agents[i];
        (void)snprintf(reader->where, sizeof reader->where, "[agent.%.64s]", agent->name);
        for (size_t j = agent->grant_count; j-- > 0;) {
            struct tci_tool *tool = find_tool(policy, agent->grants[j].tool);
            struct tci_granted *granted;
            if (!tool)
                continue;
            if (tci_check_grant(reader, tool, &agent->grants[j]) < 0)
                return -1;
            granted = tci_arena_new_of(reader->arena, struct tci_granted);
            if (!granted)
                return tci_read_no_memory(reader);
            *granted = (struct tci_granted){ agent, &agent->grants[j], tool->granted };
            tool->granted = granted;
        }
    }
    return 0;
}

/* ---- calls without a tool ----------------------------------------------------------------- */

/* [defaults] as if it were a tool. It is last, so that what is wrong with it is said only when
 * nothing else is: a tool that inherits the same mistake has said it. */
static int make_anonymous(struct tci_reader *reader, const struct tci_settings *defaults,
                          struct tc_policy *policy)
{
    static const struct tci_settings nothing;
    struct tci_tool *tool = tci_arena_new_of(reader->arena, struct tci_tool);
    if (!tool)
        return tci_read_no_memory(reader);
    tool->name = "";
    reader->tool = NULL;
    reader->path_rules = 0; /* its paths are not one of the tools', whose sum has a maximum */
    (void)snprintf(reader->where, sizeof reader->where, "[defaults]");
    policy->anonymous = tool;
    return tci_effective(reader, defaults, &nothing, tool);
}

/* ---- the whole ---------------------------------------------------------------------------- */

static int build(struct tci_reader *reader, const struct tci_node *root, struct tc_policy *policy)
{
    struct sections sections = { 0 };
    struct tci_settings *defaults = tci_arena_new_of(reader->arena, struct tci_settings);
    int status;

    if (!defaults)
        return tci_read_no_memory(reader);
    policy->defaults = defaults;
    (void)snprintf(reader->where, sizeof reader->where, "the policy");
    if (root->table.count == 0)
        return tci_read_fail(reader, TCI_FINDING_EMPTY, tci_pos(1, 1),
                             "write version = 1 and a [tool.NAME] table",
                             "the policy is empty: it grants nothing and names no tool");
    status = read_top(reader, root, policy, &sections);
    if (sections.defaults) {
        (void)snprintf(reader->where, sizeof reader->where, "[defaults]");
        if (tci_read_settings(reader, sections.defaults, TCI_IN_DEFAULTS, defaults) < 0 ||
            tci_check_defaults(reader, defaults) < 0)
            status = -1;
    }
    if ((sections.directories && tci_find_tool_files(reader, sections.directories, policy) < 0) ||
        tci_read_tools(reader, sections.tools, defaults, policy) < 0)
        status = -1;
    if (sections.agents && tci_read_agents(reader, sections.agents, policy) < 0)
        status = -1;
    if (status < 0 || index_grants(reader, policy) < 0)
        return -1;
    return make_anonymous(reader, defaults, policy);
}

static int syntax_error(struct tci_findings *findings, struct tc_error *error)
{
    struct tci_pos pos = tci_pos(error->line, error->column);
    if (error->code == TC_ERROR_NO_MEMORY) {
        findings->no_memory = true;
        return -1;
    }
    /* Too large as a whole: the reader names no place. */
    bool too_large = error->code == TC_ERROR_TOO_LARGE && !error->line;
    if (too_large)
        pos = tci_pos(1, 1);
    tci_findings_add(findings, too_large ? TCI_FINDING_FILE_TOO_LARGE : TCI_FINDING_SYNTAX, pos,
                     NULL,
                     error->remedy[0] ? error->remedy : "mend the line; see toolcage-policy(5)",
                     "%s", error->message);
    return -1;
}

static int parse_document(struct tci_arena *arena, const char *bytes, size_t length,
                          enum tci_format format, struct tci_findings *findings,
                          struct tci_node **ret)
{
    struct tc_error error = { 0 };
    int r;

    if (format == TCI_FORMAT_YAML && length > TCI_YAML_SIZE_MAX) {
        tci_findings_add(findings, TCI_FINDING_FILE_TOO_LARGE, tci_pos(1, 1), NULL,
                         "split the policy, or write it in TOML, which may be larger",
                         "the YAML file is larger than %d bytes", TCI_YAML_SIZE_MAX);
        return -1;
    }
    r = format == TCI_FORMAT_YAML ? tci_yaml_parse(arena, bytes, length, ret, &error)
                                  : tci_toml_parse(arena, bytes, length, TCI_TOML_1_1, ret, &error);
    return r < 0 ? syntax_error(findings, &error) : 0;
}

static bool is_ascii(const char *bytes, size_t length)
{
    unsigned char all = 0;
    for (size_t i = 0; i < length; i++)
        all |= (unsigned char)bytes[i];
    return all < 0x80;
}

void tci_find_deceptive(const char *bytes, size_t length, uint32_t file, struct tc_policy *policy)
{
    struct tci_pos pos = tci_pos(1, 1);
    size_t size, i = length >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

    if (is_ascii(bytes, length))
        return;
    for (; i < length && policy->deceptive_count < tci_array_size(policy->deceptive); i += size) {
        uint32_t c = 0;
        size = 1;
        if (bytes[i] & 0x80)
            size = tci_utf8_decode(bytes + i, length - i, &c);
        if (tci_utf8_is_deceptive(c)) {
            policy->deceptive[policy->deceptive_count] = (struct tci_deceptive){ pos, c };
            policy->deceptive[policy->deceptive_count++].pos.file = file;
        }
        pos.column++;
        if (bytes[i] == '\n')
            pos = tci_pos(pos.line + 1, 1);
        if (size == 0)
            return;
    }
}

/* A policy's text holds no NUL, so that no other set of files gives the same bytes. Without further
 * files the hash is the one that sha256sum prints. */
void tci_hash_file(struct tci_reader *reader, const char *kind, const char *name, const char *bytes,
                   size_t length)
{
    char size[32];
    if (!reader->hash)
        return;
    (void)snprintf(size, sizeof size, "%zu", length);
    tci_sha256_add(reader->hash, "", 1);
    tci_sha256_add(reader->hash, kind, strlen(kind) + 1);
    tci_sha256_add(reader->hash, name, strlen(name) + 1);
    tci_sha256_add(reader->hash, size, strlen(size) + 1);
    tci_sha256_add(reader->hash, bytes, length);
}

/* Takes the arena over. */
static int parse(struct tci_arena *arena_taken, const char *bytes, size_t length,
                 enum tci_format format, const char *directory, struct tci_findings *findings,
                 struct tc_policy **ret, struct tc_error *reterr)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = arena_taken;
    struct tc_policy *policy = tci_arena_new_of(arena, struct tc_policy);
    struct tci_sha256 hash;
    struct tci_reader reader = {
        .arena = arena, .findings = findings, .directory = directory, .hash = &hash
    };
    struct tci_node *root = NULL;

    tci_sha256_begin(&hash);
    tci_sha256_add(&hash, bytes, length);
    if (!policy)
        return tci_error_no_memory(reterr);
    policy->file = tci_arena_strdup(arena, findings->file);
    policy->directory = directory ? tci_arena_strdup(arena, directory) : NULL;
    if (!policy->file || (directory && !policy->directory))
        return tci_error_no_memory(reterr);
    if (parse_document(arena, bytes, length, format, findings, &root) < 0 ||
        build(&reader, root, policy) < 0 || findings->no_memory) {
        if (tci_findings_sort(findings, reterr) < 0)
            return -1;
        if (tci_findings_error(findings, reterr) < 0) {
            if (reterr && !root)
                reterr->code = findings->first->id == TCI_FINDING_SYNTAX ? TC_ERROR_SYNTAX
                                                                         : TC_ERROR_TOO_LARGE;
            return -1;
        }
        return tci_error_set(reterr, TC_ERROR_INTERNAL, "a value was refused without a reason");
    }
    tci_find_deceptive(bytes, length, 0, policy);
    tci_sha256_end_text(&hash, policy->hash);
    policy->arena = tc_take(arena);
    *ret = policy;
    return 0;
}

int tci_policy_parse(const char *bytes, size_t length, enum tci_format format,
                     const char *directory, struct tci_findings *findings, struct tc_policy **ret,
                     struct tc_error *reterr)
{
    struct tci_arena *arena = tci_arena_new();
    if (!arena)
        return tci_error_no_memory(reterr);
    return parse(arena, bytes, length, format, directory, findings, ret, reterr);
}

static int no_working_directory(struct tc_error *reterr, int errnum)
{
    tci_error_errno(reterr, errnum, "cannot find the working directory");
    tci_error_id(reterr, "TC-P001");
    tci_error_remedy(reterr, "change to a directory that exists, or give an absolute path");
    return -1;
}

/* The directory part of a path that was opened, with "a//b" as "a/b": shells make such paths, and
 * the kernel reads them so. Returns its length; what does not fit is cut, and refused for it. */
static size_t single_slashes(const char *path, char buffer[TCI_PATH_MAX + 1])
{
    const char *slash = strrchr(path, '/');
    size_t length = 0;
    for (const char *p = path; slash && p <= slash && length <= TCI_PATH_MAX; p++)
        if (*p != '/' || length == 0 || buffer[length - 1] != '/')
            buffer[length++] = *p;
    return length;
}

/* The absolute directory of the file, by name alone: links are not followed. */
static int directory_of(const char *path, char buffer[TCI_PATH_MAX + 1], struct tc_error *reterr)
{
    char current[TCI_PATH_MAX + 1], single[TCI_PATH_MAX + 1];
    size_t length = single_slashes(path, single);
    enum tci_path_problem problem;

    if (path[0] == '/')
        problem = tci_path_normalise(NULL, single, length, buffer);
    else if (!tci_sys.getcwd(current, sizeof current))
        return no_working_directory(reterr, errno);
    else if (length == 0)
        problem = tci_path_normalise(NULL, current, strlen(current), buffer);
    else
        problem = tci_path_normalise(current, single, length, buffer);
    if (problem == TCI_PATH_OK)
        return 0;
    tci_error_set(reterr, TC_ERROR_USAGE, "the policy's path %s", tci_path_problem_text(problem));
    tci_error_id(reterr, "TC-P021");
    tci_error_remedy(reterr, "give the path in a plain form");
    return -1;
}

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), ending_length = strlen(ending);
    return length > ending_length && strcmp(text + length - ending_length, ending) == 0;
}

/* An error about the file as a whole becomes a finding too, so that all reports look alike. */
static int file_error(struct tci_findings *findings, const char *path, struct tc_error *reterr)
{
    int id = tci_finding_from_name(reterr->id);
    tci_error_place(reterr, path, 1, 1);
    if (id >= 0)
        tci_findings_add(findings, (enum tci_finding_id)id, tci_pos(1, 1), NULL, reterr->remedy,
                         "%s", reterr->message);
    return -1;
}

int tci_policy_load(const char *path, struct tci_findings *findings, struct tc_policy **ret,
                    struct tc_error *reterr)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    char directory[TCI_PATH_MAX + 1];
    enum tci_format format = TCI_FORMAT_TOML;
    struct tc_error unwanted = { 0 };
    char *bytes = NULL;
    size_t length = 0;

    if (!reterr)
        reterr = &unwanted; /* findings are made from it */
    if (!arena)
        return tci_error_no_memory(reterr);
    if (tci_file_read(arena, path, TCI_POLICY_BYTES_MAX, &bytes, &length, reterr) < 0 ||
        directory_of(strcmp(path, "-") == 0 ? "" : path, directory, reterr) < 0)
        return file_error(findings, path, reterr);
    if (ends_with(path, ".yaml") || ends_with(path, ".yml"))
        format = TCI_FORMAT_YAML;
    return parse(tc_take(arena), bytes, length, format, directory, findings, ret, reterr);
}

int tc_policy_load(const char *path, struct tc_policy **ret_policy, struct tc_error *reterr)
{
    tc_cleanup(tci_findings_freep) struct tci_findings *findings = tci_findings_new(path);
    tci_error_clear(reterr);
    if (!findings)
        return tci_error_no_memory(reterr);
    return tci_policy_load(path, findings, ret_policy, reterr);
}
