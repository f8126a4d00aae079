/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: lint of limits, and of clauses that the backend cannot keep on this host. */
#include "policy/lint_internal.h"

#include <stdio.h>
#include <string.h>
#include "policy/limits.h"

/* Outside of these a limit is a slip of the pen. In the units of the model. */
static const struct {
    enum tci_key key;
    uint64_t low, high;
    const char *range;
} sane[] = {
    { TCI_KEY_TIMEOUT, 10, 86400000, "10ms to 24h" },
    { TCI_KEY_MEMORY, 1000000, 1000000000000, "1MB to 1TB" },
    { TCI_KEY_CPU, 10, 1024000, "0.01 to 1024" },
    { TCI_KEY_CPU_TIME, 10, 86400000, "10ms to 24h" },
    { TCI_KEY_PIDS, 1, 32768, "1 to 32768" },
    { TCI_KEY_FILES, 8, 1048576, "8 to 1048576" },
    { TCI_KEY_DISK, 1, 10000000000000, "up to 10TB" },
    { TCI_KEY_OUTPUT, 1, 1000000000, "up to 1GB" },
};

/* Files that come back are read by the host: their size is a limit like the others. */
static void lint_outputs(struct tci_lint *lint)
{
    const struct tci_outputs *outputs = &lint->tool->settings.outputs;
    struct tci_pos pos = lint->tool->settings.pos[TCI_KEY_OUTPUTS];
    if (!tci_lint_wants(lint, TCI_KEY_OUTPUTS))
        return;
    if (outputs->max_file == TCI_UNLIMITED || outputs->max_files == TCI_UNLIMITED)
        tci_lint_add(lint, TCI_FINDING_NO_LIMIT, pos,
                     "choose max_file up to 1TB and max_files up to "
                     "1000000",
                     "\"outputs\" is unlimited: one call can fill the disk");
    else if (outputs->max_file > 1000000000000 || outputs->max_files > 1000000)
        tci_lint_add(lint, TCI_FINDING_ABSURD_LIMIT, pos,
                     "choose max_file up to 1TB and max_files "
                     "up to 1000000",
                     "\"outputs\" is absurdly high");
}

/* Of each limit of the network; 0 is none. */
static void lint_network_limits(struct tci_lint *lint)
{
    const struct tci_network_limits *limits = &lint->tool->settings.network_limits;
    struct tci_pos pos = lint->tool->settings.pos[TCI_KEY_NETWORK_LIMITS];
    const struct {
        const char *name;
        uint64_t value, low, high;
        const char *range;
    } table[] = {
        { "connections", limits->connections, 1, 10000, "1 to 10000" },
        { "bytes_in", limits->bytes_in, 1000, 10000000000000, "1kB to 10TB" },
        { "bytes_out", limits->bytes_out, 1000, 10000000000000, "1kB to 10TB" },
        { "rate", limits->rate, 1000, 100000000000, "1kB to 100GB" },
    };
    if (!tci_lint_wants(lint, TCI_KEY_NETWORK_LIMITS))
        return;
    if (!limits->connections)
        tci_lint_add(lint, TCI_FINDING_NO_LIMIT, pos, "choose connections up to 10000",
                     "\"connections\" is unlimited: one call can take all sockets of the host");
    for (size_t i = 0; i < tci_array_size(table); i++) {
        char remedy[80];
        (void)snprintf(remedy, sizeof remedy, "choose a value in the range %s", table[i].range);
        if (table[i].value && (table[i].value < table[i].low || table[i].value > table[i].high))
            tci_lint_add(lint, TCI_FINDING_ABSURD_LIMIT, pos, remedy,
                         "\"%s\" of \"network_limits\" is absurdly %s", table[i].name,
                         table[i].value < table[i].low ? "low" : "high");
    }
}

void tci_lint_limits(struct tci_lint *lint)
{
    const struct tci_settings *s = &lint->tool->settings;
    for (size_t i = 0; i < tci_array_size(sane); i++) {
        enum tci_key key = sane[i].key;
        uint64_t value = tci_limit(s, key);
        char remedy[80];
        if (!tci_lint_wants(lint, key))
            continue;
        (void)snprintf(remedy, sizeof remedy, "choose a value in the range %s", sane[i].range);
        if (value == TCI_UNLIMITED && key != TCI_KEY_CPU_TIME)
            tci_lint_add(lint, TCI_FINDING_NO_LIMIT, s->pos[key], remedy,
                         "\"%s\" is unlimited: one call can take the whole machine",
                         tci_key_name(key));
        else if (value != TCI_UNLIMITED && (value < sane[i].low || value > sane[i].high))
            tci_lint_add(lint, TCI_FINDING_ABSURD_LIMIT, s->pos[key], remedy,
                         "\"%s\" is absurdly %s", tci_key_name(key),
                         value < sane[i].low ? "low" : "high");
    }
    if (tci_lint_wants(lint, TCI_KEY_FILESYSTEM) && s->filesystem.scratch > 1000000000000)
        tci_lint_add(lint, TCI_FINDING_ABSURD_LIMIT, s->pos[TCI_KEY_FILESYSTEM],
                     "scratch is memory: choose up to 1TB", "\"scratch\" is absurdly high");
    if (tci_lint_wants(lint, TCI_KEY_WARM) && s->warm > 1000)
        tci_lint_add(lint, TCI_FINDING_ABSURD_LIMIT, s->pos[TCI_KEY_WARM],
                     "keep up to 1000 cages ready", "\"warm\" is absurdly high");
    lint_outputs(lint);
    lint_network_limits(lint);
}

/* ---- clauses ------------------------------------------------------------------------------ */

/* The key that asks for a clause, to point at. */
static enum tci_key clause_key(enum tci_clause clause)
{
    switch (clause) {
    case TCI_CLAUSE_NETWORK_NONE:
    case TCI_CLAUSE_NETWORK_NAMES:
    case TCI_CLAUSE_NETWORK_PUBLIC:
    case TCI_CLAUSE_NETWORK_HOST:
        return TCI_KEY_NETWORK;
    case TCI_CLAUSE_SYSCALLS:
        return TCI_KEY_SYSCALLS;
    case TCI_CLAUSE_EXEC_ALLOWLIST:
        return TCI_KEY_COMMANDS;
    case TCI_CLAUSE_MEMORY:
        return TCI_KEY_MEMORY;
    case TCI_CLAUSE_CPU:
        return TCI_KEY_CPU;
    case TCI_CLAUSE_CPU_TIME:
        return TCI_KEY_CPU_TIME;
    case TCI_CLAUSE_PIDS:
        return TCI_KEY_PIDS;
    case TCI_CLAUSE_FILES:
        return TCI_KEY_FILES;
    case TCI_CLAUSE_DISK:
        return TCI_KEY_DISK;
    case TCI_CLAUSE_TIMEOUT:
        return TCI_KEY_TIMEOUT;
    case TCI_CLAUSE_OUTPUT:
        return TCI_KEY_OUTPUT;
    case TCI_CLAUSE_FILESYSTEM:
    case TCI_CLAUSE_SCRATCH:
    case TCI_CLAUSE_COUNT:
        break;
    }
    return TCI_KEY_FILESYSTEM;
}

struct failure {
    enum tci_clause first;
    char why[TCI_LINT_TEXT_MAX], remedy[TCI_LINT_TEXT_MAX];
    char names[TCI_LINT_TEXT_MAX]; /* of all clauses that fail for this reason */
};

static void add_name(struct failure *failure, enum tci_clause clause)
{
    size_t used = strlen(failure->names);
    (void)snprintf(failure->names + used, sizeof failure->names - used, "%s%s", used ? ", " : "",
                   tci_clause_name(clause));
}

/* Clauses that fail for one reason make one finding: a missing engine is one problem, not ten. */
static size_t collect_failures(struct tci_lint *lint, struct failure failures[TCI_CLAUSE_COUNT])
{
    const struct tci_tool *tool = lint->tool;
    tci_clauses asked = tci_tool_clauses(tool);
    size_t count = 0;
    for (int c = 0; c < TCI_CLAUSE_COUNT; c++) {
        struct failure *failure = &failures[count];
        size_t same = 0;
        *failure = (struct failure){ .first = (enum tci_clause)c };
        if (!(asked & tci_clause_bit(c)) ||
            lint->options->host_can(lint->options->host_context, tool, (enum tci_clause)c,
                                    failure->why, failure->remedy))
            continue;
        while (strcmp(failures[same].why, failure->why) != 0)
            same++;
        add_name(&failures[same], (enum tci_clause)c);
        count += same == count;
    }
    return count;
}

static void report_failures(struct tci_lint *lint)
{
    struct failure failures[TCI_CLAUSE_COUNT] = { 0 };
    const struct tci_tool *tool = lint->tool;
    size_t count = collect_failures(lint, failures);

    for (size_t i = 0; i < count; i++) {
        enum tci_key key = clause_key(failures[i].first);
        struct tci_pos pos = tool->source[key] == TCI_FROM_TOOL ? tool->settings.pos[key]
                                                                : tool->pos;
        tci_lint_add(lint, TCI_FINDING_CANNOT_ENFORCE, pos, failures[i].remedy,
                     "backend \"%s\" cannot keep %s on this host: %s",
                     tci_backend_kind_name(tool->settings.backend), failures[i].names,
                     failures[i].why);
    }
}

void tci_lint_clauses(struct tci_lint *lint)
{
    if (lint->options->host_can)
        report_failures(lint);
}
