/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the effective policy of a tool as text and as JSON. */
#include "policy/explain.h"

#include <stdio.h>
#include <string.h>
#include "policy/value.h"

static const char *source_name(enum tci_origin source)
{
    static const char *const names[] = { "built-in", "defaults", "tool", "builtin" };
    return names[source];
}

/* Keys that are worth a line: those with a value, and compiled ones only where they were given. */
static bool is_shown(const struct tci_tool *tool, enum tci_key key)
{
    if (tci_value_is_compiled(key) && tool->source[key] == TCI_FROM_BUILTIN)
        return false;
    return tci_value_is_set(&tool->settings, key);
}

/* ---- text --------------------------------------------------------------------------------- */

/* On one line, whatever it holds: a second one could pass for another line of the list. */
static void write_line(const char *text, struct tci_buf *out)
{
    for (; *text; text++)
        tci_buf_char(out, *text == '\n' || *text == '\t' ? ' ' : *text);
}

/* "line 3", and the file when it is another than the tool's. */
static void write_place(const struct tc_policy *policy, const struct tci_tool *tool,
                        struct tci_pos pos, struct tci_buf *out)
{
    if (pos.file != tool->pos.file) {
        write_line(tci_policy_file(policy, pos), out);
        tci_buf_string(out, ", ");
    }
    tci_buf_printf(out, "line %u", pos.line);
}

static void write_source(const struct tc_policy *policy, const struct tci_tool *tool,
                         enum tci_key key, struct tci_buf *out)
{
    struct tci_pos pos = tool->settings.pos[key];
    switch ((enum tci_origin)tool->source[key]) {
    case TCI_FROM_BUILTIN:
        tci_buf_string(out, "built-in");
        break;
    case TCI_FROM_DEFAULTS:
        tci_buf_string(out, "[defaults], ");
        write_place(policy, tool, pos, out);
        break;
    case TCI_FROM_TOOL:
        write_place(policy, tool, pos, out);
        break;
    case TCI_FROM_BUILTIN_TOOL:
        tci_buf_string(out, "built-in tool, ");
        write_place(policy, tool, pos, out);
        break;
    }
}

static void text_row(const struct tc_policy *policy, const struct tci_tool *tool, enum tci_key key,
                     struct tci_buf *out)
{
    struct tci_json writer = { .out = out, .syntax = TCI_SYNTAX_TOML };
    size_t start;
    tci_buf_printf(out, "  %-18s ", tci_key_name(key));
    start = out->length;
    tci_value_write(&writer, NULL, &tool->settings, key);
    for (size_t used = out->length - start; used < 40; used++)
        tci_buf_char(out, ' ');
    tci_buf_string(out, "  # ");
    write_source(policy, tool, key, out);
    tci_buf_char(out, '\n');
}

static void text_clauses(const struct tci_tool *tool, struct tci_buf *out)
{
    tci_clauses asked = tci_tool_clauses(tool);
    tci_buf_string(out, "  asks of the backend:");
    for (int c = 0; c < TCI_CLAUSE_COUNT; c++)
        if (asked & tci_clause_bit(c))
            tci_buf_printf(out, " %s", tci_clause_name((enum tci_clause)c));
    tci_buf_char(out, '\n');
}

static void text_agents(const struct tc_policy *policy, const struct tci_tool *tool,
                        struct tci_buf *out)
{
    tci_buf_string(out, "  may be called by:    ");
    for (const struct tci_granted *g = tool->granted; g; g = g->next) {
        tci_buf_printf(out, "%s%s (", g == tool->granted ? "" : ", ", g->agent->name);
        write_place(policy, tool, g->grant->pos, out);
        tci_buf_char(out, ')');
    }
    tci_buf_string(out, tool->granted ? "\n" : "no agent\n");
}

/* False: the tool runs in no container, or nobody looks at the host. */
static bool find_maker(const struct tci_tool *tool, tci_explain_host *host,
                       struct tci_explain_maker *ret)
{
    const enum tci_backend_kind backend = tool->settings.backend;
    memset(ret, 0, sizeof *ret);
    if (!host || (backend != TCI_BACKEND_OCI && backend != TCI_BACKEND_GVISOR))
        return false;
    host(&tool->settings, ret);
    return true;
}

static void text_maker(const struct tci_tool *tool, tci_explain_host *host, struct tci_buf *out)
{
    struct tci_explain_maker maker;
    if (!find_maker(tool, host, &maker))
        return;
    tci_buf_string(out, "  made here by:        ");
    if (maker.problem[0]) {
        tci_buf_string(out, "nobody: ");
        write_line(maker.problem, out);
        tci_buf_string(out, "\n                       fix: ");
        write_line(maker.remedy, out);
        tci_buf_char(out, '\n');
        return;
    }
    if (strcmp(maker.engine, "none") != 0)
        tci_buf_printf(out, "%s, runtime %s", maker.engine, maker.runtime);
    else
        tci_buf_printf(out, "%s, no engine", maker.runtime);
    if (maker.version[0])
        tci_buf_printf(out, ", %s", maker.version);
    if (maker.platform[0])
        tci_buf_printf(out, ", platform %s", maker.platform);
    tci_buf_printf(out, " (%s)\n", maker.why);
    tci_buf_string(out, "  root directory:      ");
    write_line(maker.root[0] ? maker.root : tool->settings.image, out);
    tci_buf_string(out, maker.root[0] ? "\n" : ", an image of the engine\n");
}

static void text_tool(const struct tc_policy *policy, const struct tci_tool *tool,
                      tci_explain_host *host, struct tci_buf *out)
{
    tci_buf_printf(out, "%s  (", tool->name);
    write_line(tci_policy_file(policy, tool->pos), out);
    tci_buf_printf(out, ":%u)\n", tool->pos.line);
    for (int key = 0; key < TCI_KEY_COUNT; key++)
        if (is_shown(tool, (enum tci_key)key))
            text_row(policy, tool, (enum tci_key)key, out);
    text_clauses(tool, out);
    text_maker(tool, host, out);
    text_agents(policy, tool, out);
}

void tci_explain_text(const struct tc_policy *policy, const struct tci_tool *tool,
                      tci_explain_host *host, struct tci_buf *out)
{
    if (tool) {
        text_tool(policy, tool, host, out);
        return;
    }
    for (size_t i = 0; i < policy->tool_count; i++) {
        if (i)
            tci_buf_char(out, '\n');
        text_tool(policy, &policy->tools[i], host, out);
    }
}

/* ---- JSON --------------------------------------------------------------------------------- */

static void json_file(struct tci_json *json, const struct tc_policy *policy, struct tci_pos pos)
{
    if (pos.file)
        tci_json_string(json, "file", tci_policy_file(policy, pos));
}

static void json_setting(struct tci_json *json, const struct tc_policy *policy,
                         const struct tci_tool *tool, enum tci_key key)
{
    tci_json_object_begin(json, tci_key_name(key));
    tci_value_write(json, "value", &tool->settings, key);
    tci_json_string(json, "source", source_name((enum tci_origin)tool->source[key]));
    if (tool->source[key] != TCI_FROM_BUILTIN) {
        json_file(json, policy, tool->settings.pos[key]);
        tci_json_unsigned(json, "line", tool->settings.pos[key].line);
        tci_json_unsigned(json, "column", tool->settings.pos[key].column);
    }
    tci_json_object_end(json);
}

static void json_agents(struct tci_json *json, const struct tci_tool *tool)
{
    tci_json_array_begin(json, "agents");
    for (const struct tci_granted *g = tool->granted; g; g = g->next)
        tci_json_string(json, NULL, g->agent->name);
    tci_json_array_end(json);
}

static void json_maker(struct tci_json *json, const struct tci_tool *tool, tci_explain_host *host)
{
    struct tci_explain_maker maker;
    if (!find_maker(tool, host, &maker))
        return;
    tci_json_object_begin(json, "made_by");
    if (maker.problem[0]) {
        tci_json_string(json, "problem", maker.problem);
        tci_json_string(json, "remedy", maker.remedy);
    } else {
        tci_json_string(json, "engine", maker.engine);
        tci_json_string(json, "runtime", maker.runtime);
        tci_json_string(json, "why", maker.why);
        if (maker.version[0])
            tci_json_string(json, "version", maker.version);
        if (maker.platform[0])
            tci_json_string(json, "platform", maker.platform);
        if (maker.root[0])
            tci_json_string(json, "root", maker.root);
        else if (tool->settings.image)
            tci_json_string(json, "image", tool->settings.image);
    }
    tci_json_object_end(json);
}

static void json_tool(struct tci_json *json, const struct tc_policy *policy,
                      const struct tci_tool *tool, tci_explain_host *host)
{
    tci_clauses asked = tci_tool_clauses(tool);
    tci_json_object_begin(json, NULL);
    tci_json_string(json, "name", tool->name);
    json_file(json, policy, tool->pos);
    tci_json_unsigned(json, "line", tool->pos.line);
    tci_json_unsigned(json, "column", tool->pos.column);
    tci_json_object_begin(json, "settings");
    for (int key = 0; key < TCI_KEY_COUNT; key++)
        if (is_shown(tool, (enum tci_key)key))
            json_setting(json, policy, tool, (enum tci_key)key);
    tci_json_object_end(json);
    tci_json_array_begin(json, "clauses");
    for (int c = 0; c < TCI_CLAUSE_COUNT; c++)
        if (asked & tci_clause_bit(c))
            tci_json_string(json, NULL, tci_clause_name((enum tci_clause)c));
    tci_json_array_end(json);
    json_maker(json, tool, host);
    json_agents(json, tool);
    tci_json_object_end(json);
}

void tci_explain_json(const struct tc_policy *policy, const struct tci_tool *tool,
                      tci_explain_host *host, struct tci_buf *out)
{
    struct tci_json json = { .out = out, .pretty = true };
    tci_json_object_begin(&json, NULL);
    tci_json_string(&json, "file", policy->file);
    tci_json_array_begin(&json, "tools");
    for (size_t i = 0; i < policy->tool_count; i++)
        if (!tool || tool == &policy->tools[i])
            json_tool(&json, policy, &policy->tools[i], host);
    tci_json_array_end(&json);
    tci_json_object_end(&json);
    tci_buf_char(out, '\n');
}

void tci_decision_json(const struct tc_policy *policy, const char *question, const char *target,
                       const struct tc_decision *decision, struct tci_buf *out)
{
    struct tci_json json = { .out = out, .pretty = true };
    tci_json_object_begin(&json, NULL);
    tci_json_string(&json, "question", question);
    tci_json_string(&json, "target", target);
    tci_json_bool(&json, "allowed", decision->allowed != 0);
    tci_json_string(&json, "key", decision->key);
    if (decision->rule[0])
        tci_json_string(&json, "rule", decision->rule);
    if (decision->file)
        tci_json_string(&json, "file", tc_policy_file_name(policy, decision->file));
    if (decision->line) {
        tci_json_unsigned(&json, "line", decision->line);
        tci_json_unsigned(&json, "column", decision->column);
    }
    tci_json_string(&json, "reason", decision->reason);
    if (!decision->allowed)
        tci_json_string(&json, "fix", decision->fix);
    tci_json_object_end(&json);
    tci_buf_char(out, '\n');
}

/* ---- the registry ------------------------------------------------------------------------- */

static void text_network(const struct tci_network *network, struct tci_buf *out)
{
    char text[TCI_RULE_TEXT_MAX];
    if (network->mode != TCI_NETWORK_RULES)
        tci_buf_string(out, tci_network_mode_name(network->mode));
    for (size_t i = 0; i < network->count; i++)
        tci_buf_printf(out, "%s%s", i ? " " : "",
                       tci_netrule_format(&network->rules[i].rule, text));
}

static void text_filesystem(const struct tci_filesystem *fs, struct tci_buf *out)
{
    bool any = false;
    for (size_t i = 0; i < fs->count; i++) {
        const struct tci_path_rule *rule = &fs->rules[i];
        if (rule->access == TCI_ACCESS_HIDDEN)
            continue;
        tci_buf_string(out, any ? " " : "");
        if (rule->host && strcmp(rule->host, rule->cage) != 0)
            tci_buf_printf(out, "%s:", rule->host);
        tci_buf_printf(out, "%s%s", rule->cage,
                       rule->access == TCI_ACCESS_WRITABLE ? "(rw)" : "(ro)");
        any = true;
    }
    if (!any)
        tci_buf_string(out, "none");
}

void tci_tools_text(const struct tc_policy *policy, struct tci_buf *out)
{
    for (size_t i = 0; i < policy->tool_count; i++) {
        const struct tci_tool *tool = &policy->tools[i];
        const struct tci_settings *s = &tool->settings;
        tci_buf_printf(out, "%s\n", tool->name);
        if (s->description && *s->description) {
            tci_buf_string(out, "    ");
            write_line(s->description, out);
            tci_buf_char(out, '\n');
        }
        tci_buf_printf(out, "    backend %s; network ", tci_backend_kind_name(s->backend));
        text_network(&s->network, out);
        tci_buf_string(out, "; files ");
        text_filesystem(&s->filesystem, out);
        tci_buf_char(out, '\n');
        tci_buf_string(out, "  ");
        text_agents(policy, tool, out);
    }
}
