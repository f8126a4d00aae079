/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: limits on the command line, with the units of a policy. */
#include "cli/exec.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "base/quote.h"
#include "policy/units.h"

enum kind { DURATION, SIZE, CORES, COUNT };

static const struct {
    enum cli_option_id option;
    enum kind kind;
    size_t offset; /* in struct tc_limits */
} limits[] = {
    { CLI_TIMEOUT, DURATION, offsetof(struct tc_limits, timeout_ms) },
    { CLI_CPU_TIME, DURATION, offsetof(struct tc_limits, cpu_time_ms) },
    { CLI_MEMORY, SIZE, offsetof(struct tc_limits, memory) },
    { CLI_DISK, SIZE, offsetof(struct tc_limits, disk) },
    { CLI_OUTPUT, SIZE, offsetof(struct tc_limits, output) },
    { CLI_CPU, CORES, offsetof(struct tc_limits, cpu_millis) },
    { CLI_PIDS, COUNT, offsetof(struct tc_limits, pids) },
    { CLI_FILES, COUNT, offsetof(struct tc_limits, files) },
};

static const char *const examples[] = {
    [DURATION] = "500ms, 30s, 2m or 1h",
    [SIZE] = "128MB or 1GiB",
    [CORES] = "0.5 or 2",
    [COUNT] = "64",
};

/* Decimal digits with at most three behind a point, as thousandths. */
static bool parse_cores(const char *text, uint64_t *ret)
{
    uint64_t value = 0;
    int behind = -1; /* digits behind the point */
    if (*text < '0' || *text > '9')
        return false;
    for (; *text; text++) {
        if (*text == '.' && behind < 0 && text[1])
            behind = 0;
        else if (*text < '0' || *text > '9' || behind == 3 || value > 100000000)
            return false;
        else {
            value = value * 10 + (uint64_t)(*text - '0');
            behind += behind >= 0;
        }
    }
    for (; behind < 3; behind++)
        value *= behind < 0 ? 1 : 10;
    *ret = value;
    return true;
}

static bool parse_count(const char *text, uint64_t *ret)
{
    uint64_t value = 0;
    const char *p = text;
    for (; *p >= '0' && *p <= '9' && value <= INT32_MAX; p++)
        value = value * 10 + (uint64_t)(*p - '0');
    *ret = value;
    return p != text && !*p && value <= INT32_MAX;
}

static bool parse(enum kind kind, const char *text, uint64_t *ret)
{
    switch (kind) {
    case DURATION:
        return tci_duration_parse(text, strlen(text), ret) == TCI_UNIT_OK;
    case SIZE:
        return tci_size_parse(text, strlen(text), ret) == TCI_UNIT_OK;
    case CORES:
        return parse_cores(text, ret);
    case COUNT:
        return parse_count(text, ret);
    }
    return false;
}

int exec_limits(const struct cli_call *cli, struct tc_limits *ret)
{
    char quoted[TCI_QUOTE_MAX], remedy[80];
    for (size_t i = 0; i < tci_array_size(limits); i++) {
        const char *text = cli->values[limits[i].option];
        uint64_t value = 0;
        if (!text)
            continue;
        /* 0 would mean "as the policy says", which nobody means who writes it. */
        if (!parse(limits[i].kind, text, &value) || value == 0) {
            (void)snprintf(remedy, sizeof remedy, "write a limit above zero such as %s",
                           examples[limits[i].kind]);
            cli_usage(remedy, "--%s cannot be %s", cli_options[limits[i].option].name,
                      tci_quote(text, strlen(text), quoted));
            return -1;
        }
        memcpy((char *)ret + limits[i].offset, &value, sizeof value);
    }
    return 0;
}
