/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: finding a pattern in a line. The attack: a regular expression that takes exponential time,
 * written by a model or by whoever told it to. Steps and memory of each match are counted; the whole
 * search has an alarm besides (files_search.c).
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>
#include "inside/files_search.h"

enum { STEPS_MAX = 200 * 1000, HEAP_MAX_KIB = 8 * 1024 };

struct tci_matcher {
    const char *literal; /* NULL: a regular expression */
    size_t literal_length;
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *context;
};

struct tci_matcher *tci_matcher_new(const char *pattern, size_t length, bool literal,
                                    bool case_sensitive)
{
    struct tci_matcher *matcher = tci_inside_alloc(sizeof *matcher);
    if (literal && case_sensitive) {
        matcher->literal = pattern;
        matcher->literal_length = length;
        return matcher;
    }
    uint32_t options = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | (case_sensitive ? 0 : PCRE2_CASELESS) |
                       (literal ? PCRE2_LITERAL : PCRE2_NEVER_BACKSLASH_C);
    int code;
    size_t place;
    matcher->code = pcre2_compile((PCRE2_SPTR)pattern, length, options, &code, &place, NULL);
    if (!matcher->code) {
        char reason[200] = "";
        (void)pcre2_get_error_message(code, (PCRE2_UCHAR *)reason, sizeof reason);
        tci_inside_fail(
            "the pattern is not a regular expression, at character %zu: %s. With literal "
            "it is taken as it stands",
            place + 1, reason);
    }
    matcher->data = pcre2_match_data_create(1, NULL);
    matcher->context = pcre2_match_context_create(NULL);
    if (!matcher->data || !matcher->context)
        tci_inside_no_memory();
    (void)pcre2_set_match_limit(matcher->context, STEPS_MAX);
    (void)pcre2_set_heap_limit(matcher->context, HEAP_MAX_KIB);
    return matcher;
}

int64_t tci_matcher_find(const struct tci_matcher *matcher, const char *line, size_t length,
                         const char *path, uint64_t number)
{
    if (matcher->literal) {
        const char *at = memmem(line, length, matcher->literal, matcher->literal_length);
        return at ? at - line : -1;
    }
    int found = pcre2_match(matcher->code, (PCRE2_SPTR)line, length, 0, 0, matcher->data,
                            matcher->context);
    if (found == PCRE2_ERROR_NOMATCH)
        return -1;
    if (found < 0) /* the three limits */
        tci_inside_fail("the pattern takes too many steps in %s, line %llu: write a simpler one",
                        tci_inside_shown(path, strlen(path)), (unsigned long long)number);
    return (int64_t)pcre2_get_ovector_pointer(matcher->data)[0];
}
