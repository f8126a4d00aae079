/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the .def tables as arrays, and finding calls in them by name and number. */
#include "backend/filter/filter_table.h"

#include <errno.h>
#include <linux/audit.h>
#include <string.h>
#include "base/nearest.h"
#include "backend/filter/filter_values.h"

#define NONE  TCI_NUMBER_NONE
#define DSP   (TCI_PROFILE_D | TCI_PROFILE_S | TCI_PROFILE_P)
#define DS_   (TCI_PROFILE_D | TCI_PROFILE_S)
#define D__   TCI_PROFILE_D
#define ___   0
#define NEVER TCI_PROFILE_NEVER

#define GROUP(id, reason)
#define CALL(name, x86_64, aarch64, profiles, rule) { x86_64, aarch64, profiles, TCI_RULE_##rule },
const struct tci_call_row tci_call_rows[TCI_CALL_COUNT] = {
#include "backend/filter/syscalls.def"
#include "backend/filter/syscalls_never.def"
};
#undef CALL

/* Fixed width, so that the array holds no pointers; the length is checked below. */
#define CALL(name, x86_64, aarch64, profiles, rule) #name,
static const char names[TCI_CALL_COUNT][24] = {
#include "backend/filter/syscalls.def"
#include "backend/filter/syscalls_never.def"
};
#undef CALL

#define CALL(name, x86_64, aarch64, profiles, rule)                                                \
    _Static_assert(sizeof(#name) <= sizeof names[0], #name);                                       \
    _Static_assert((x86_64) < TCI_NUMBER_LIMIT && (aarch64) < TCI_NUMBER_LIMIT, #name);
#include "backend/filter/syscalls.def"
#include "backend/filter/syscalls_never.def"
#undef CALL
#undef GROUP

#define GROUP(id, reason) { TCI_CALL_AT_##id, reason },
#define CALL(name, x86_64, aarch64, profiles, rule)
static const struct {
    int16_t first;
    char reason[92];
} groups[] = {
#include "backend/filter/syscalls.def"
#include "backend/filter/syscalls_never.def"
};
#undef CALL
#undef GROUP

#define TCI_FILTER_STRICT        TCI_WHEN_STRICT
#define TCI_FILTER_PURE          TCI_WHEN_PURE
#define NARROW(when, call, rule) { TCI_FILTER_##when, TCI_CALL_##call, TCI_RULE_##rule },
const struct tci_narrow_row tci_narrow_rows[] = {
#include "backend/filter/syscalls_narrow.def"
};
#undef NARROW
const unsigned tci_narrow_count = tci_array_size(tci_narrow_rows);

#define WORD          0xffffffffU
#define PASS          SECCOMP_RET_ALLOW
#define NO(errnum)    (SECCOMP_RET_ERRNO | (errnum))
#define COUNT_OF(...) (sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))
#define IS(n, mask, ...)                                                                           \
    {                                                                                              \
        TCI_TEST_IS, n, COUNT_OF(__VA_ARGS__), (uint32_t)(mask),                                   \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define BETWEEN(n, low, high)                                                                      \
    {                                                                                              \
        TCI_TEST_BETWEEN, n, 2, WORD,                                                              \
        {                                                                                          \
            low, high                                                                              \
        }                                                                                          \
    }
#define HAS(n, bits)                                                                               \
    {                                                                                              \
        TCI_TEST_HAS, n, 1, WORD,                                                                  \
        {                                                                                          \
            (uint32_t)(bits)                                                                       \
        }                                                                                          \
    }

#define RULE(id)
#define LINE(id, answer, ...) { TCI_RULE_INDEX_##id, answer, { __VA_ARGS__ } },
#define OTHERWISE(id, answer) { .rule = TCI_RULE_INDEX_##id, .action = answer },
const struct tci_rule_line tci_rule_lines[] = {
#include "backend/filter/arguments.def"
};
const unsigned tci_rule_line_count = tci_array_size(tci_rule_lines);

const char *tci_call_name(enum tci_call call)
{
    return names[call];
}

enum tci_call tci_call_find(const char *name)
{
    unsigned i;
    for (i = 0; i < TCI_CALL_COUNT; i++)
        if (names[i][0] == name[0] && strcmp(names[i], name) == 0)
            break;
    return (enum tci_call)i;
}

const char *tci_call_nearest(const char *name)
{
    const char *words[TCI_CALL_COUNT + 1];
    for (unsigned i = 0; i < TCI_CALL_COUNT; i++)
        words[i] = names[i];
    words[TCI_CALL_COUNT] = NULL;
    return tci_nearest_word(name, strlen(name), words);
}

const char *tci_call_reason(enum tci_call call)
{
    unsigned group = 0;
    while (group + 1 < tci_array_size(groups) && groups[group + 1].first <= call)
        group++;
    return groups[group].reason;
}

int tci_call_number(enum tci_call call, uint32_t arch)
{
    const struct tci_call_row *row = &tci_call_rows[call];
    return arch == AUDIT_ARCH_X86_64 ? row->x86_64 : row->aarch64;
}
