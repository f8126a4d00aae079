/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: writing a policy in normal form. */
#include "policy/dump.h"

#include <string.h>
#include "base/moment.h"
#include "policy/value.h"

static struct tci_json toml_writer(struct tci_buf *out)
{
    return (struct tci_json){ .out = out, .syntax = TCI_SYNTAX_TOML };
}

/* [section.NAME]; names may hold dots, which need quotes. */
static void write_header(struct tci_buf *out, const char *section, const char *name)
{
    bool bare = !strchr(name, '.');
    tci_buf_printf(out, bare ? "\n[%s.%s]\n" : "\n[%s.\"%s\"]\n", section, name);
}

static void write_setting(struct tci_buf *out, const struct tci_settings *s, enum tci_key key)
{
    struct tci_json writer = toml_writer(out);
    tci_value_write(&writer, tci_key_name(key), s, key);
    tci_buf_char(out, '\n');
}

static void write_tool(struct tci_buf *out, const struct tci_tool *tool)
{
    write_header(out, "tool", tool->name);
    for (int key = 0; key < TCI_KEY_COUNT; key++)
        if (!tci_value_is_compiled((enum tci_key)key) &&
            tool->source[key] != TCI_FROM_BUILTIN_TOOL &&
            tci_value_is_set(&tool->settings, (enum tci_key)key))
            write_setting(out, &tool->settings, (enum tci_key)key);
}

void tci_grant_write_table(struct tci_json *writer, const struct tci_grant *grant)
{
    char text[TCI_MOMENT_TEXT_MAX];
    tci_json_object_begin(writer, NULL);
    tci_json_string(writer, "tool", grant->tool);
    if (grant->has_expiry)
        tci_json_string(writer, "expires", tci_moment_format(grant->expires, text));
    if (grant->has_max_calls)
        tci_json_unsigned(writer, "max_calls", grant->max_calls);
    for (int key = 0; key < TCI_KEY_COUNT; key++)
        if (grant->narrow->present & tci_key_bit(key))
            tci_value_write(writer, tci_key_name((enum tci_key)key), grant->narrow,
                            (enum tci_key)key);
    tci_json_object_end(writer);
}

static void write_grant(struct tci_json *writer, const struct tci_grant *grant)
{
    if (!grant->narrow->present && !grant->has_expiry && !grant->has_max_calls)
        tci_json_string(writer, NULL, grant->tool);
    else
        tci_grant_write_table(writer, grant);
}

static void write_agent(struct tci_buf *out, const struct tci_agent *agent)
{
    write_header(out, "agent", agent->name);
    if (agent->parent) {
        struct tci_json writer = toml_writer(out);
        tci_json_string(&writer, "parent", agent->parent->name);
        tci_buf_char(out, '\n');
    }
    if (agent->description) {
        struct tci_json writer = toml_writer(out);
        tci_json_string(&writer, "description", agent->description);
        tci_buf_char(out, '\n');
    }
    tci_buf_string(out, "grants = [\n");
    for (size_t i = 0; i < agent->grant_count; i++) {
        struct tci_json writer = toml_writer(out);
        tci_buf_string(out, "    ");
        write_grant(&writer, &agent->grants[i]);
        tci_buf_string(out, ",\n");
    }
    tci_buf_string(out, "]\n");
}

void tci_policy_dump(const struct tc_policy *policy, struct tci_buf *out)
{
    tci_buf_string(out, "version = 1\n");
    for (size_t i = 0; i < policy->tool_count; i++)
        write_tool(out, &policy->tools[i]);
    for (size_t i = 0; i < policy->agent_count; i++)
        write_agent(out, &policy->agents[i]);
}

int tc_policy_dump(const struct tc_policy *policy, char **ret_toml, struct tc_error *reterr)
{
    tc_cleanup(tci_buf_free) struct tci_buf out = TCI_BUF_INIT(TCI_DUMP_MAX);
    char *text;
    tci_error_clear(reterr);
    tci_policy_dump(policy, &out);
    text = tci_buf_take(&out, reterr);
    if (!text)
        return -1;
    *ret_toml = text;
    return 0;
}
