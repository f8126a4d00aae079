/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: reading `mcp`, what passes between a wrapped MCP server and its clients. What is not said stays
 * closed where the server would ask the client, and bounded everywhere.
 */
#include "policy/reader.h"

#include <stddef.h>
#include <string.h>

enum {
    message_default = 4000000,
    message_max = 64 * 1024 * 1024, /* it is read into memory whole */
    message_min = 1024,
    rate_default = 600,
    calls_default = 16,
    calls_max = 1024,
    name_max = 128,
};

/* In the order of the TCI_FEATURE_* bits. */
static const char *const features[] = { "resources", "prompts",     "logging", "completions",
                                        "sampling",  "elicitation", "roots",   NULL };

const char *tci_mcp_feature_name(size_t i)
{
    return i < tci_array_size(features) ? features[i] : NULL;
}

struct tci_wrapped tci_wrapped_default(void)
{
    return (struct tci_wrapped){
        .any_tool = true,
        .features = TCI_FEATURES_DEFAULT,
        .message = message_default,
        .rate = rate_default,
        .calls = calls_default,
    };
}

static int read_features(struct tci_reader *reader, const char *name, const struct tci_node *value,
                         void *field)
{
    return tci_read_words(reader, name, value, features, field);
}

static int read_tools(struct tci_reader *reader, const char *name, const struct tci_node *value,
                      void *field)
{
    struct tci_strings *list = field;
    if (tci_read_strings(reader, name, value, list) < 0 ||
        tci_read_list_size(reader, name, value) < 0)
        return -1;
    for (size_t i = 0; i < list->count; i++)
        if (strlen(list->items[i].text) > name_max)
            return tci_read_fail(reader, TCI_FINDING_BAD_NAME, list->items[i].pos,
                                 "write the name that the server gives it",
                                 "\"%s\" in %s: a name is longer than %d bytes", name,
                                 reader->where, name_max);
    return 0;
}

static int out_of_range(struct tci_reader *reader, const char *name, const struct tci_node *value,
                        const char *remedy)
{
    return tci_read_fail(reader, TCI_FINDING_OUT_OF_RANGE, value->pos, remedy,
                         "\"%s\" in %s is out of range", name, reader->where);
}

static int read_message(struct tci_reader *reader, const char *name, const struct tci_node *value,
                        void *field)
{
    uint64_t bytes = 0;
    if (tci_read_size_or_zero(reader, name, value, &bytes) < 0)
        return -1;
    if (bytes < message_min || bytes > message_max)
        return out_of_range(reader, name, value, "give a size from \"1KiB\" to \"64MiB\"");
    *(uint64_t *)field = bytes;
    return 0;
}

static int read_calls(struct tci_reader *reader, const char *name, const struct tci_node *value,
                      void *field)
{
    uint64_t calls = 0;
    if (tci_read_count_or_zero(reader, name, value, &calls) < 0)
        return -1;
    if (calls == 0 || calls > calls_max)
        return out_of_range(reader, name, value, "give a whole number from 1 to 1024");
    *(uint64_t *)field = calls;
    return 0;
}

int tci_read_mcp(struct tci_reader *reader, const char *name, const struct tci_node *value,
                 void *field)
{
    static const struct tci_field fields[] = {
        { "tools", read_tools, offsetof(struct tci_wrapped, tools) },
        { "features", read_features, offsetof(struct tci_wrapped, features) },
        { "message", read_message, offsetof(struct tci_wrapped, message) },
        { "rate", tci_read_count, offsetof(struct tci_wrapped, rate) },
        { "calls", read_calls, offsetof(struct tci_wrapped, calls) },
        { "pin", tci_read_path, offsetof(struct tci_wrapped, pin) },
    };
    struct tci_wrapped *mcp = field;
    *mcp = tci_wrapped_default();
    mcp->given = true;
    if (tci_read_expect(reader, name, value, TCI_NODE_TABLE,
                        "a table such as { tools = [\"read_*\"] }") < 0)
        return -1;
    mcp->any_tool = !tci_table_find(value, "tools", 5);
    mcp->has_features = tci_table_find(value, "features", 8);
    return tci_read_fields(reader, name, value, fields, tci_array_size(fields), mcp);
}
