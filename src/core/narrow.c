/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the limits of one call, and putting a narrowed tool together. */
#include "core/narrow.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "policy/limits.h"
#include "policy/units.h"

enum unit { UNIT_DURATION, UNIT_SIZE, UNIT_CORES, UNIT_COUNT };

static const struct {
    enum tci_key key;
    enum unit unit;
    size_t setting, request; /* offsets in struct tci_settings and struct tc_limits */
} limits_table[TCI_LIMIT_COUNT] = {
#define ROW(id, unit, setting, request)                                                            \
    {                                                                                              \
        TCI_KEY_##id, unit, offsetof(struct tci_settings, setting),                                \
            offsetof(struct tc_limits, request)                                                    \
    }
    ROW(TIMEOUT, UNIT_DURATION, timeout, timeout_ms),
    ROW(CPU_TIME, UNIT_DURATION, cpu_time, cpu_time_ms),
    ROW(MEMORY, UNIT_SIZE, memory, memory),
    ROW(DISK, UNIT_SIZE, disk, disk),
    ROW(OUTPUT, UNIT_SIZE, output, output),
    ROW(CPU, UNIT_CORES, cpu, cpu_millis),
    ROW(PIDS, UNIT_COUNT, pids, pids),
    ROW(FILES, UNIT_COUNT, files, files),
#undef ROW
};

static uint64_t requested(const struct tc_limits *request, size_t row)
{
    uint64_t value;
    memcpy(&value, (const char *)request + limits_table[row].request, sizeof value);
    return value;
}

static size_t row_of(enum tci_key key)
{
    size_t row = 0;
    while (row + 1 < TCI_LIMIT_COUNT && limits_table[row].key != key)
        row++;
    return row;
}

uint64_t tci_narrowed_limit(const struct tci_tool *tool, const struct tci_grants *grants,
                            enum tci_key key)
{
    uint64_t limit = tci_effective_limit(tool, NULL, key);
    for (size_t i = 0; i < grants->count; i++) {
        uint64_t narrower = tci_effective_limit(tool, grants->items[i], key);
        limit = narrower < limit ? narrower : limit;
    }
    return limit;
}

int tci_narrow_limits(const struct tci_tool *tool, const struct tci_grants *grants,
                      const struct tci_limits *most, const struct tc_limits *request,
                      struct tci_limits *ret)
{
    int wider = -1;
    for (size_t i = 0; i < TCI_LIMIT_COUNT; i++) {
        uint64_t allowed = tci_narrowed_limit(tool, grants, limits_table[i].key);
        uint64_t wanted = requested(request, i);
        if (most && most->values[i] < allowed)
            allowed = most->values[i];
        if (wanted > allowed && wider < 0)
            wider = (int)limits_table[i].key;
        ret->values[i] = wanted && wanted < allowed ? wanted : allowed;
    }
    return wider;
}

void tci_limits_set(struct tci_limits *limits, enum tci_key key, uint64_t value)
{
    limits->values[row_of(key)] = value;
}

uint64_t tci_limits_get(const struct tci_limits *limits, enum tci_key key)
{
    return limits->values[row_of(key)];
}

uint64_t tci_limits_requested(const struct tc_limits *request, enum tci_key key)
{
    return requested(request, row_of(key));
}

const char *tci_limit_text(enum tci_key key, uint64_t value, char buffer[TCI_LIMIT_TEXT_MAX])
{
    char text[TCI_UNIT_TEXT_MAX];
    enum unit unit = limits_table[row_of(key)].unit;
    if (value == TCI_UNLIMITED)
        (void)snprintf(buffer, TCI_LIMIT_TEXT_MAX, "unlimited");
    else if (unit == UNIT_CORES)
        (void)snprintf(buffer, TCI_LIMIT_TEXT_MAX, "%" PRIu64 ".%03" PRIu64, value / 1000,
                       value % 1000);
    else if (unit == UNIT_COUNT)
        (void)snprintf(buffer, TCI_LIMIT_TEXT_MAX, "%" PRIu64, value);
    else
        (void)snprintf(buffer, TCI_LIMIT_TEXT_MAX, "%s",
                       unit == UNIT_SIZE ? tci_size_format(value, text)
                                         : tci_duration_format(value, text));
    return buffer;
}

const char *tci_limit_toml(enum tci_key key, uint64_t value, char buffer[TCI_LIMIT_TEXT_MAX])
{
    char text[TCI_LIMIT_TEXT_MAX];
    enum unit unit = limits_table[row_of(key)].unit;
    const char *quote = value == TCI_UNLIMITED || unit == UNIT_SIZE || unit == UNIT_DURATION ? "\""
                                                                                             : "";
    (void)snprintf(buffer, TCI_LIMIT_TEXT_MAX, "%s%.36s%s", quote, tci_limit_text(key, value, text),
                   quote);
    return buffer;
}

static bool has(const struct tci_grant *grant, enum tci_key key)
{
    return grant && (grant->narrow->present & tci_key_bit(key));
}

bool tci_grant_narrows(const struct tci_grant *grant)
{
    return has(grant, TCI_KEY_NETWORK) || has(grant, TCI_KEY_NETWORK_LIMITS) ||
           has(grant, TCI_KEY_INSPECT) || has(grant, TCI_KEY_FILESYSTEM);
}

int tci_narrow_tool(struct tci_arena *arena, const struct tci_tool *tool,
                    const struct tci_grant *grant, const struct tci_limits *limits,
                    struct tci_tool *ret, struct tc_error *reterr)
{
    struct tci_settings *s = &ret->settings;
    *ret = *tool;
    for (size_t i = 0; i < TCI_LIMIT_COUNT; i++)
        memcpy((char *)s + limits_table[i].setting, &limits->values[i], sizeof limits->values[i]);
    if (has(grant, TCI_KEY_NETWORK) &&
        tci_narrow_network(arena, &tool->settings.network, &grant->narrow->network, &s->network,
                           reterr) < 0)
        return -1;
    if (has(grant, TCI_KEY_NETWORK_LIMITS))
        s->network_limits = tci_narrow_network_limits(&s->network_limits,
                                                      &grant->narrow->network_limits);
    if (has(grant, TCI_KEY_INSPECT))
        s->inspect_strict |= grant->narrow->inspect_strict;
    if (has(grant, TCI_KEY_FILESYSTEM) &&
        tci_narrow_filesystem(arena, tool, grant, &s->filesystem, reterr) < 0)
        return -1;
    return 0;
}
