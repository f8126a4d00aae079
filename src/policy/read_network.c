/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: reading `network`, `allowed_hosts`, `network_limits` and `inspect`.
 * Invariant: mode RULES has at least one rule; a list without rules is mode NONE, so that an empty
 * allowlist can never be taken for "no restriction" further down.
 */
#include "policy/reader.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char network_wanted[] = "\"none\", \"public\", \"host\" or a list of rules";

static int bad_rule(struct tci_reader *reader, const char *name, const struct tci_node *item,
                    const struct tci_netrule_problem *problem)
{
    char quoted[TCI_QUOTE_MAX];
    return tci_read_fail(reader, TCI_FINDING_BAD_RULE, item->pos, problem->remedy,
                         "\"%s\" in %s: %s: %s", name, reader->where,
                         tci_read_quote(item->string, quoted), problem->message);
}

/* Appends a rule that is not there yet; a repeated one is kept for lint to mention. */
static void add_rule(struct tci_network *network, const struct tci_netrule *rule,
                     const struct tci_node *item)
{
    for (size_t i = 0; i < network->count; i++) {
        if (tci_netrule_equal(&network->rules[i].rule, rule)) {
            network->ignored.items[network->ignored.count++] =
                (struct tci_string){ item->string.data, item->pos };
            return;
        }
    }
    network->rules[network->count++] = (struct tci_network_entry){ *rule, item->pos };
}

typedef int read_item(struct tci_reader *reader, const char *name, const struct tci_node *item,
                      struct tci_network *network);

static int read_rule(struct tci_reader *reader, const char *name, const struct tci_node *item,
                     struct tci_network *network)
{
    struct tci_netrule_problem problem;
    struct tci_netrule rule;
    if (tci_netrule_parse(item->string.data, item->string.length, &rule, &problem) < 0)
        return bad_rule(reader, name, item, &problem);
    add_rule(network, &rule, item);
    return 0;
}

/* A host without a port stands for the two ports of HTTP. */
static int read_http_host(struct tci_reader *reader, const char *name, const struct tci_node *item,
                          struct tci_network *network)
{
    struct tci_netrule_problem problem;
    struct tci_netrule rule = { .port_low = 443, .port_high = 443 };
    if (tci_host_parse(item->string.data, item->string.length, &rule.host, &problem) < 0)
        return read_rule(reader, name, item, network);
    add_rule(network, &rule, item);
    rule.port_low = rule.port_high = 80;
    add_rule(network, &rule, item);
    return 0;
}

static int read_list(struct tci_reader *reader, const char *name, const struct tci_node *value,
                     read_item *read, struct tci_network *network)
{
    size_t room = value->array.count * (read == read_http_host ? 2 : 1);
    int status = 0;

    if (tci_read_list_size(reader, name, value) < 0)
        return -1;
    network->rules = tci_arena_new_array(reader->arena, room, struct tci_network_entry);
    network->ignored.items = tci_arena_new_array(reader->arena, room, struct tci_string);
    if (!network->rules || !network->ignored.items)
        return tci_read_no_memory(reader);
    for (size_t i = 0; i < value->array.count; i++) {
        const struct tci_node *item = value->array.items[i];
        if (tci_read_expect(reader, name, item, TCI_NODE_STRING,
                            "a list of rules such as \"api.example.com:443\"") < 0 ||
            read(reader, name, item, network) < 0)
            status = -1;
    }
    network->mode = network->count ? TCI_NETWORK_RULES : TCI_NETWORK_NONE;
    return status;
}

int tci_read_network(struct tci_reader *reader, const char *name, const struct tci_node *value,
                     void *field)
{
    static const char *const words[] = { "none", "public", "bridge", "host", NULL };
    static const enum tci_network_mode modes[] = { TCI_NETWORK_NONE, TCI_NETWORK_PUBLIC,
                                                   TCI_NETWORK_PUBLIC, TCI_NETWORK_HOST };
    struct tci_network *network = field;
    struct tci_netrule_problem problem;
    struct tci_netrule rule;
    size_t index;

    if (value->type == TCI_NODE_ARRAY)
        return read_list(reader, name, value, read_rule, network);
    if (tci_read_expect(reader, name, value, TCI_NODE_STRING, network_wanted) < 0)
        return -1;
    if (tci_netrule_parse(value->string.data, value->string.length, &rule, &problem) == 0)
        return tci_read_fail(reader, TCI_FINDING_WRONG_TYPE, value->pos,
                             "put the rule in square brackets", "\"%s\" in %s is one rule, not %s",
                             name, reader->where, network_wanted);
    if (tci_read_word(reader, name, value, words, &index) < 0)
        return -1;
    network->mode = modes[index];
    return 0;
}

/* In a grant `false` is the short way to say "none". */
int tci_read_grant_network(struct tci_reader *reader, const char *name,
                           const struct tci_node *value, void *field)
{
    if (value->type != TCI_NODE_BOOLEAN)
        return tci_read_network(reader, name, value, field);
    if (value->boolean)
        return tci_read_fail(reader, TCI_FINDING_BAD_VALUE, value->pos,
                             "remove it: without \"network\" the grant has the tool's network",
                             "\"network = true\" in %s: a grant can only take away", reader->where);
    ((struct tci_network *)field)->mode = TCI_NETWORK_NONE;
    return 0;
}

int tci_read_hosts(struct tci_reader *reader, const char *name, const struct tci_node *value,
                   void *field)
{
    if (tci_read_expect(reader, name, value, TCI_NODE_ARRAY, "a list of hosts") < 0)
        return -1;
    return read_list(reader, name, value, read_http_host, field);
}

/* ---- what connections may use ------------------------------------------------------------- */

/* In these limits 0 stands for "unlimited": nobody can write it, as a limit of zero is refused. */
static int read_limit(tci_read_function *read, struct tci_reader *reader, const char *name,
                      const struct tci_node *value, uint64_t *field)
{
    uint64_t limit = 0;
    if (read(reader, name, value, &limit) < 0)
        return -1;
    *field = limit == TCI_UNLIMITED ? 0 : limit;
    return 0;
}

static int read_limit_count(struct tci_reader *reader, const char *name,
                            const struct tci_node *value, void *field)
{
    return read_limit(tci_read_count, reader, name, value, field);
}

static int read_limit_size(struct tci_reader *reader, const char *name,
                           const struct tci_node *value, void *field)
{
    return read_limit(tci_read_size, reader, name, value, field);
}

static int read_limits(struct tci_reader *reader, const char *name, const struct tci_node *value,
                       struct tci_network_limits *limits)
{
    static const struct tci_field fields[] = {
        { "connections", read_limit_count, offsetof(struct tci_network_limits, connections) },
        { "bytes_in", read_limit_size, offsetof(struct tci_network_limits, bytes_in) },
        { "bytes_out", read_limit_size, offsetof(struct tci_network_limits, bytes_out) },
        { "rate", read_limit_size, offsetof(struct tci_network_limits, rate) },
    };
    if (tci_read_expect(reader, name, value, TCI_NODE_TABLE,
                        "a table such as { connections = 100, bytes_out = \"10MB\" }") < 0)
        return -1;
    return tci_read_fields(reader, name, value, fields, tci_array_size(fields), limits);
}

int tci_read_network_limits(struct tci_reader *reader, const char *name,
                            const struct tci_node *value, void *field)
{
    *(struct tci_network_limits *)field = tci_network_limits_default();
    return read_limits(reader, name, value, field);
}

/* In a grant, what is not said stays as the tool has it. */
int tci_read_grant_network_limits(struct tci_reader *reader, const char *name,
                                  const struct tci_node *value, void *field)
{
    *(struct tci_network_limits *)field =
        (struct tci_network_limits){ TCI_UNLIMITED, TCI_UNLIMITED, TCI_UNLIMITED, TCI_UNLIMITED };
    return read_limits(reader, name, value, field);
}

int tci_read_inspect(struct tci_reader *reader, const char *name, const struct tci_node *value,
                     void *field)
{
    static const char *const words[] = { "names", "strict", NULL };
    size_t index;
    if (tci_read_word(reader, name, value, words, &index) < 0)
        return -1;
    *(bool *)field = index == 1;
    return 0;
}
