/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: compiling and matching with PCRE2. A match is tried with a small limit first and charged
 * little; only one that needs more is tried again with more, and charged for it. So a validation
 * with a thousand slow matches ends by its budget, and one with a thousand quick ones does not.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "json/schema_regex.h"

#include <pcre2.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "json/schema_ecma.h"

enum {
    translated_max = 256 * 1024,
    heap_max = 8192,   /* KiB of one match */
    depth_max = 50000, /* backtracking points that are open at once */
    tiers = 3,
    small_cost = 50,
};

struct tci_regex {
    struct tci_regex *next;
    pcre2_code *code;
    bool is_simple;
    struct tci_simple simple;
};

struct tier {
    uint32_t limit;
    pcre2_match_context *context; /* only read by matches */
};

struct tci_regex_limits {
    struct tier tiers[tiers];
    /* Memory of a match that is not running. Whoever takes it leaves NULL. */
    _Atomic(pcre2_match_data *) spare;
};

struct tci_regex_limits *tci_regex_limits_new(uint32_t matches)
{
    struct tci_regex_limits *limits = calloc(1, sizeof *limits);
    uint32_t limit[tiers] = { matches / 1000 + 100, matches / 30 + 200, matches };

    if (!limits)
        return NULL;
    for (unsigned i = 0; i < tiers; i++) {
        struct tier *tier = &limits->tiers[i];
        tier->limit = limit[i] < matches ? limit[i] : matches;
        tier->context = pcre2_match_context_create(NULL);
        if (!tier->context) {
            tci_regex_limits_free(limits);
            return NULL;
        }
        (void)pcre2_set_match_limit(tier->context, tier->limit);
        (void)pcre2_set_depth_limit(tier->context, depth_max);
        (void)pcre2_set_heap_limit(tier->context, heap_max);
    }
    return limits;
}

void tci_regex_limits_free(struct tci_regex_limits *limits)
{
    if (!limits)
        return;
    for (unsigned i = 0; i < tiers; i++)
        pcre2_match_context_free(limits->tiers[i].context);
    pcre2_match_data_free(atomic_load(&limits->spare));
    free(limits);
}

/* ---- compiling -------------------------------------------------------------------------------- */

static void free_context(pcre2_compile_context **context)
{
    pcre2_compile_context_free(*context);
}

static int compile(const char *pattern, size_t length, struct tci_regex **list,
                   const struct tci_regex **ret, struct tc_error *reterr)
{
    tc_cleanup(free_context) pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    struct tci_regex *regex = calloc(1, sizeof *regex);
    PCRE2_SIZE offset = 0;
    char text[128] = "";
    int error = 0;

    if (!context || !regex) {
        free(regex);
        return tci_error_no_memory(reterr);
    }
    (void)pcre2_set_parens_nest_limit(context, TCI_ECMA_NESTING_MAX);
    regex->code = pcre2_compile((PCRE2_SPTR)pattern, length,
                                PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | PCRE2_NEVER_UCP |
                                    PCRE2_MATCH_UNSET_BACKREF | PCRE2_DOLLAR_ENDONLY,
                                &error, &offset, context);
    if (!regex->code) {
        free(regex);
        if (error == PCRE2_ERROR_HEAP_FAILED)
            return tci_error_no_memory(reterr);
        (void)pcre2_get_error_message(error, (PCRE2_UCHAR *)text, sizeof text);
        return tci_error_set(reterr, TC_ERROR_SYNTAX, "%s", text);
    }
    regex->next = *list;
    *list = regex;
    *ret = regex;
    return 0;
}

int tci_regex_compile(const char *pattern, size_t length, struct tci_regex **list,
                      const struct tci_regex **ret, struct tc_error *reterr)
{
    tc_cleanup(tci_buf_free) struct tci_buf out = TCI_BUF_INIT(translated_max);
    struct tci_simple simple = { .count = 0 };
    const char *problem = NULL;
    size_t offset = 0;

    if (tci_ecma_translate(pattern, length, &out, &simple, &problem, &offset) < 0)
        return tci_error_set(reterr, TC_ERROR_SYNTAX, "%s, at byte %zu", problem, offset);
    if (tci_buf_check(&out, reterr) < 0)
        return -1;
    if (compile(out.data ? out.data : "", out.length, list, ret, reterr) < 0)
        return -1;
    (*list)->is_simple = tci_simple_is_certain(&simple);
    (*list)->simple = simple;
    return 0;
}

int tci_regex_compile_raw(const char *pattern, struct tci_regex **list,
                          const struct tci_regex **ret, struct tc_error *reterr)
{
    return compile(pattern, PCRE2_ZERO_TERMINATED, list, ret, reterr);
}

void tci_regex_free_list(struct tci_regex *list)
{
    while (list) {
        struct tci_regex *next = list->next;
        pcre2_code_free(list->code);
        free(list);
        list = next;
    }
}

/* ---- matching --------------------------------------------------------------------------------- */

static bool was_limit(int status)
{
    return status == PCRE2_ERROR_MATCHLIMIT || status == PCRE2_ERROR_DEPTHLIMIT ||
           status == PCRE2_ERROR_HEAPLIMIT;
}

static bool run(const struct tci_regex *regex, const struct tci_regex_limits *limits,
                const char *text, size_t length, struct tci_schema_budget *budget,
                pcre2_match_data *data)
{
    int status = PCRE2_ERROR_MATCHLIMIT;
    uint64_t cost = small_cost + length / 8;
    for (unsigned i = 0; i < tiers && status == PCRE2_ERROR_MATCHLIMIT; i++) {
        if (!tci_budget_take(budget, cost))
            return false;
        status = pcre2_match(regex->code, (PCRE2_SPTR)text, length, 0, 0, data,
                             limits->tiers[i].context);
        cost = limits->tiers[i < tiers - 1 ? i + 1 : i].limit;
    }
    if (was_limit(status))
        return tci_budget_end(budget, TCI_EXHAUSTED_MATCH);
    if (status == PCRE2_ERROR_NOMEMORY)
        return tci_budget_end(budget, TCI_EXHAUSTED_MEMORY);
    return status >= 0;
}

bool tci_regex_matches(const struct tci_regex *regex, struct tci_regex_limits *limits,
                       const char *text, size_t length, struct tci_schema_budget *budget)
{
    pcre2_match_data *data;
    bool matches;

    if (regex->is_simple)
        return tci_budget_take(budget, 1 + length / 16) &&
               tci_simple_matches(&regex->simple, text, length);
    data = atomic_exchange(&limits->spare, NULL);
    if (!data)
        data = pcre2_match_data_create(1, NULL);
    if (!data)
        return tci_budget_end(budget, TCI_EXHAUSTED_MEMORY);
    matches = run(regex, limits, text, length, budget, data);
    pcre2_match_data_free(atomic_exchange(&limits->spare, data));
    return matches;
}

bool tci_regex_is_valid(const char *pattern, size_t length)
{
    const char *problem;
    size_t offset;
    return tci_ecma_translate(pattern, length, NULL, NULL, &problem, &offset) == 0;
}
