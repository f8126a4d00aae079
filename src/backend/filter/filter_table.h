/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the tables of system calls as data, and the program that is made from them; between the
 * files of the filter only. The tables are plain numbers without pointers: nothing has to be
 * relocated when a program starts, and a plan costs microseconds.
 */
#ifndef TCI_BACKEND_FILTER_TABLE_H
#define TCI_BACKEND_FILTER_TABLE_H

#include <stdint.h>
#include "backend/filter/filter.h"

/* Every call has an index; a group begins at the index of its first call. */
enum tci_call {
#define GROUP(id, reason)                           TCI_CALL_AT_##id, TCI_CALL_BEFORE_##id = TCI_CALL_AT_##id - 1,
#define CALL(name, x86_64, aarch64, profiles, rule) TCI_CALL_##name,
#include "backend/filter/syscalls.def"
#include "backend/filter/syscalls_never.def"
#undef CALL
#undef GROUP
    TCI_CALL_COUNT
};

enum tci_rule_index {
#define RULE(id) TCI_RULE_INDEX_##id,
#define LINE(...)
#define OTHERWISE(...)
#include "backend/filter/arguments.def"
#undef OTHERWISE
#undef LINE
#undef RULE
    TCI_RULE_COUNT
};

/* A set of rules, all of which must pass; an answer of ours is such a set or one of those below. */
typedef uint32_t tci_rules;
_Static_assert(TCI_RULE_COUNT <= 31, "a set of rules is 31 bits; the last marks an answer");

enum tci_rule_set {
#define RULE(id) TCI_RULE_##id = 1 << TCI_RULE_INDEX_##id,
#define LINE(...)
#define OTHERWISE(...)
#include "backend/filter/arguments.def"
#undef OTHERWISE
#undef LINE
#undef RULE
    TCI_RULE_ANY = 0,
    TCI_RULE_REFUSE = 0 /* in syscalls_narrow.def, where a rule must be named */
};

/* What a system call number gets: the rules to ask (none: allowed), an errno, or the end. */
typedef uint32_t tci_answer;
#define TCI_ANSWER_ERRNO ((tci_answer)0x80000000)
#define TCI_ANSWER_KILL  ((tci_answer)0xffffffff)

enum { TCI_PROFILE_D = 1, TCI_PROFILE_S = 2, TCI_PROFILE_P = 4, TCI_PROFILE_NEVER = 8 };
/* From TCI_NUMBER_NEW on numbers are the same everywhere, and a refused call gets ENOSYS. */
enum { TCI_NUMBER_NONE = -1, TCI_NUMBER_NEW = 424, TCI_NUMBER_LIMIT = 512 };

struct tci_call_row {
    int16_t x86_64, aarch64;
    uint8_t profiles;
    tci_rules rules;
};

/* STRICT and PURE beside the flags of filter.h. */
enum { TCI_WHEN_STRICT = 1 << 14, TCI_WHEN_PURE = 1 << 15 };

struct tci_narrow_row {
    uint16_t when, call;
    tci_rules rules;
};

enum tci_test_kind { TCI_TEST_NONE, TCI_TEST_IS, TCI_TEST_BETWEEN, TCI_TEST_HAS };
enum { TCI_TESTS_MAX = 3, TCI_VALUES_MAX = 6 };

struct tci_test {
    uint8_t kind, argument, count;
    uint32_t mask, values[TCI_VALUES_MAX];
};

struct tci_rule_line {
    uint32_t rule;   /* enum tci_rule_index */
    uint32_t action; /* what a filter returns; SECCOMP_RET_ALLOW: pass */
    struct tci_test tests[TCI_TESTS_MAX];
};

extern const struct tci_call_row tci_call_rows[TCI_CALL_COUNT];
extern const struct tci_narrow_row tci_narrow_rows[];
extern const unsigned tci_narrow_count;
extern const struct tci_rule_line tci_rule_lines[];
extern const unsigned tci_rule_line_count;

const char *tci_call_name(enum tci_call call);
/* TCI_CALL_COUNT: there is no such name. */
enum tci_call tci_call_find(const char *name);
const char *tci_call_nearest(const char *name); /* or NULL */
/* Why its group is as it is. */
const char *tci_call_reason(enum tci_call call);
int tci_call_number(enum tci_call call, uint32_t arch);

/* Neighbouring numbers with the same answer. The first range begins at 0, each ends before the
 * next, and the last one never. */
struct tci_range {
    uint32_t first;
    tci_answer answer;
};

int tci_filter_assemble(uint32_t arch, const struct tci_range *ranges, unsigned count,
                        struct tci_filter *ret, struct tc_error *reterr);

#endif
