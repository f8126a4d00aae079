/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the fuzz target of json/schema_ecma.h and json/schema_simple.h. Input: a pattern, a newline, a
 * text. What is translated must compile unless PCRE2 has a limit there, stays ASCII, and the simple
 * matcher must say what PCRE2 says.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/utf8.h"
#include "json/schema_ecma.h"
#include "json/schema_regex.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { pattern_max = 500, text_max = 500 };

static void check(bool holds)
{
    if (!holds)
        abort();
}

static bool is_utf8(const char *text, size_t length)
{
    for (size_t i = 0; i < length;) {
        uint32_t c;
        size_t size = tci_utf8_decode(text + i, length - i, &c);
        if (size == 0)
            return false;
        i += size;
    }
    return true;
}

static bool matches(const struct tci_regex *regex, const char *text, size_t length,
                    struct tci_schema_budget *budget)
{
    struct tci_regex_limits *limits = tci_regex_limits_new(20000);
    bool found;
    check(limits != NULL);
    found = tci_regex_matches(regex, limits, text, length, budget);
    tci_regex_limits_free(limits);
    return found;
}

/* The translation again without the simple matcher. */
static void check_match(const char *translated, const struct tci_regex *regex, const char *text,
                        size_t length, struct tci_regex **list)
{
    struct tci_schema_budget one = { 100000, 10, 0 }, two = one;
    const struct tci_regex *raw;
    bool first, second;

    check(tci_regex_compile_raw(translated, list, &raw, NULL) == 0);
    first = matches(regex, text, length, &one);
    second = matches(raw, text, length, &two);
    check(first == second || one.exhausted || two.exhausted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *)data;
    const char *newline = size > 0 ? memchr(bytes, '\n', size) : NULL;
    size_t length = newline ? (size_t)(newline - bytes) : 0, offset = 0;
    struct tci_buf out = TCI_BUF_INIT(64 * 1024);
    struct tci_regex *list = NULL;
    const struct tci_regex *regex;
    const char *problem = NULL;
    struct tc_error error = { 0 };

    if (!newline || length > pattern_max || size - length - 1 > text_max)
        return 0;
    if (tci_ecma_translate(bytes, length, &out, NULL, &problem, &offset) < 0) {
        check(problem && offset <= length);
        check(tci_regex_compile(bytes, length, &list, &regex, &error) < 0);
        check(!tci_regex_is_valid(bytes, length));
    } else {
        check(tci_regex_is_valid(bytes, length) && is_utf8(bytes, length));
        for (size_t i = 0; i < out.length; i++)
            check(out.data[i] > 0x20 && out.data[i] < 0x7f);
        if (tci_regex_compile(bytes, length, &list, &regex, &error) == 0 &&
            is_utf8(newline + 1, size - length - 1))
            check_match(out.data ? out.data : "", regex, newline + 1, size - length - 1, &list);
    }
    tci_regex_free_list(list);
    tci_buf_free(&out);
    return 0;
}
