/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the shape of an expression: what follows what, assertions, quantifiers. */
#include "json/schema_ecma.h"

#include <stdio.h>
#include <string.h>
#include "base/utf8.h"

enum { repeat_max = 65535 }; /* PCRE2's */

void tci_ecma_emit(struct tci_ecma *ecma, const char *text)
{
    if (ecma->out)
        tci_buf_string(ecma->out, text);
}

/* In a class or outside of it: letters and digits as they are, the rest by number, so that nothing
 * has a second meaning. */
void tci_ecma_emit_character(struct tci_ecma *ecma, uint32_t c)
{
    if (!ecma->out)
        return;
    if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_')
        tci_buf_char(ecma->out, (char)c);
    else
        tci_buf_printf(ecma->out, "\\x{%x}", (unsigned)c);
}

bool tci_ecma_fail(struct tci_ecma *ecma, const char *problem)
{
    if (!ecma->problem)
        ecma->problem = problem;
    return false;
}

bool tci_ecma_next(struct tci_ecma *ecma, uint32_t *ret)
{
    size_t size;
    if (ecma->at == ecma->end)
        return tci_ecma_fail(ecma, "it ends too early");
    size = tci_utf8_decode(ecma->at, (size_t)(ecma->end - ecma->at), ret);
    if (size == 0)
        return tci_ecma_fail(ecma, "a byte that is not UTF-8");
    ecma->at += size;
    return true;
}

bool tci_ecma_is_surrogate(uint32_t c)
{
    return c >= 0xd800 && c <= 0xdfff;
}

bool tci_ecma_is_next(const struct tci_ecma *ecma, const char *text)
{
    size_t length = strlen(text);
    return (size_t)(ecma->end - ecma->at) >= length && memcmp(ecma->at, text, length) == 0;
}

bool tci_ecma_skip(struct tci_ecma *ecma, const char *text)
{
    if (!tci_ecma_is_next(ecma, text))
        return false;
    ecma->at += strlen(text);
    return true;
}

/* ---- the parts -------------------------------------------------------------------------------- */

static bool read_count(struct tci_ecma *ecma, unsigned *ret)
{
    const char *first = ecma->at;
    *ret = 0;
    for (; ecma->at < ecma->end && *ecma->at >= '0' && *ecma->at <= '9'; ecma->at++) {
        *ret = *ret * 10 + (unsigned)(*ecma->at - '0');
        if (*ret > repeat_max)
            return tci_ecma_fail(ecma, "a count beyond 65535");
    }
    return ecma->at > first || tci_ecma_fail(ecma, "a count in { } is missing; for the sign itself "
                                                   "write \\{");
}

static bool read_braces(struct tci_ecma *ecma)
{
    char text[32];
    unsigned least, most;
    ecma->at++;
    if (!read_count(ecma, &least))
        return false;
    (void)snprintf(text, sizeof text, "{%u}", least);
    most = least;
    if (tci_ecma_skip(ecma, ",")) {
        (void)snprintf(text, sizeof text, "{%u,}", least);
        most = UINT32_MAX;
        if (!tci_ecma_is_next(ecma, "}")) {
            if (!read_count(ecma, &most))
                return false;
            if (most < least)
                return tci_ecma_fail(ecma, "counts in { } that are out of order");
            (void)snprintf(text, sizeof text, "{%u,%u}", least, most);
        }
    }
    if (!tci_ecma_skip(ecma, "}"))
        return tci_ecma_fail(ecma, "a { without its }; for the sign itself write \\{");
    tci_ecma_emit(ecma, text);
    tci_simple_repeat(ecma->simple, least, most);
    return true;
}

static bool read_quantifier(struct tci_ecma *ecma, bool can_repeat)
{
    char sign = *ecma->at;
    if (!can_repeat)
        return tci_ecma_fail(ecma, "nothing to repeat");
    if (sign == '{') {
        if (!read_braces(ecma))
            return false;
    } else {
        tci_ecma_emit(ecma, sign == '*' ? "*" : sign == '+' ? "+" : "?");
        tci_simple_repeat(ecma->simple, sign == '+', sign == '?' ? 1 : UINT32_MAX);
        ecma->at++;
    }
    if (tci_ecma_skip(ecma, "?"))
        tci_ecma_emit(ecma, "?");
    return true;
}

static bool read_escape(struct tci_ecma *ecma, bool *ret_can_repeat)
{
    struct tci_ecma_escape escape;
    struct tci_simple_set set = { { 0 }, TCI_OTHERS_OUT };
    char text[32];

    ecma->at++;
    if (!tci_ecma_read_escape(ecma, false, &escape))
        return false;
    if (tci_ecma_simple_set(&escape, &set))
        tci_simple_add(ecma->simple, &set);
    else
        tci_simple_give_up(ecma->simple);
    *ret_can_repeat = escape.kind != TCI_ECMA_WORD_BOUNDARY;
    switch (escape.kind) {
    case TCI_ECMA_CHARACTER:
        if (tci_ecma_is_surrogate(escape.character))
            tci_ecma_emit(ecma, "[^\\x{0}-\\x{10ffff}]");
        else
            tci_ecma_emit_character(ecma, escape.character);
        break;
    case TCI_ECMA_SET:
        tci_ecma_emit(ecma, *escape.set ? "[" : "[^\\x{0}-\\x{10ffff}");
        tci_ecma_emit(ecma, escape.set);
        tci_ecma_emit(ecma, "]");
        break;
    case TCI_ECMA_WORD_BOUNDARY:
        tci_ecma_emit(ecma, escape.negated ? "\\B" : "\\b");
        break;
    case TCI_ECMA_BACKWARD:
        (void)snprintf(text, sizeof text, "\\g{%u}", escape.group);
        tci_ecma_emit(ecma, text);
        break;
    }
    return true;
}

/* A character that stands for itself. */
static bool read_literal(struct tci_ecma *ecma)
{
    struct tci_ecma_escape itself = { .kind = TCI_ECMA_CHARACTER };
    struct tci_simple_set set = { { 0 }, TCI_OTHERS_OUT };
    if (!tci_ecma_next(ecma, &itself.character))
        return false;
    tci_ecma_emit_character(ecma, itself.character);
    if (tci_ecma_simple_set(&itself, &set))
        tci_simple_add(ecma->simple, &set);
    else
        tci_simple_give_up(ecma->simple);
    return true;
}

static void read_dot(struct tci_ecma *ecma)
{
    struct tci_simple_set set = { { 0 }, TCI_OTHERS_OUT };
    tci_simple_set_range(&set, '\n', '\n');
    tci_simple_set_range(&set, '\r', '\r');
    tci_simple_set_invert(&set);
    set.others = TCI_OTHERS_BUT_SEPARATORS;
    tci_simple_add(ecma->simple, &set);
    tci_ecma_emit(ecma, "[^\\n\\r\\x{2028}\\x{2029}]");
    ecma->at++;
}

/* |, ^ and $, which match no character. $ is the very end, and not before a line feed that ends the
 * text. */
static void read_assertion(struct tci_ecma *ecma)
{
    char sign = *ecma->at;
    if (sign == '^' && ecma->at == ecma->begin)
        tci_simple_begin(ecma->simple);
    else if (sign == '$')
        tci_simple_end(ecma->simple);
    else
        tci_simple_give_up(ecma->simple);
    tci_ecma_emit(ecma, sign == '|' ? "|" : sign == '^' ? "^" : "\\z");
    ecma->at++;
}

struct shape {
    bool looks[TCI_ECMA_NESTING_MAX]; /* of the groups that are open */
    size_t depth;
    bool can_repeat; /* what was read last */
};

static bool read_bracket(struct tci_ecma *ecma, struct shape *shape)
{
    tci_simple_give_up(ecma->simple);
    if (*ecma->at == '(') {
        if (shape->depth == TCI_ECMA_NESTING_MAX)
            return tci_ecma_fail(ecma, "groups nested more than 100 deep");
        shape->can_repeat = false;
        return tci_ecma_open_group(ecma, &shape->looks[shape->depth++]);
    }
    if (shape->depth == 0)
        return tci_ecma_fail(ecma, "a ) without its (");
    shape->can_repeat = !shape->looks[--shape->depth];
    tci_ecma_emit(ecma, ")");
    ecma->at++;
    return true;
}

static bool read_part(struct tci_ecma *ecma, struct shape *shape)
{
    switch (*ecma->at) {
    case '(':
    case ')':
        return read_bracket(ecma, shape);
    case '*':
    case '+':
    case '?':
    case '{':
        if (!read_quantifier(ecma, shape->can_repeat))
            return false;
        shape->can_repeat = false;
        return true;
    case '|':
    case '^':
    case '$':
        read_assertion(ecma);
        shape->can_repeat = false;
        return true;
    case '.':
        read_dot(ecma);
        break;
    case '[':
        ecma->at++;
        if (!tci_ecma_class(ecma))
            return false;
        break;
    case '\\':
        return read_escape(ecma, &shape->can_repeat);
    default:
        if (!read_literal(ecma))
            return false;
        break;
    }
    shape->can_repeat = true;
    return true;
}

int tci_ecma_translate(const char *pattern, size_t length, struct tci_buf *out,
                       struct tci_simple *simple, const char **ret_problem, size_t *ret_offset)
{
    struct tci_ecma ecma = {
        .begin = pattern, .at = pattern, .end = pattern + length, .out = out, .simple = simple
    };
    struct shape shape = { .depth = 0 };
    bool good = tci_ecma_count_groups(&ecma);

    while (good && ecma.at < ecma.end)
        good = read_part(&ecma, &shape);
    if (good && shape.depth > 0)
        good = tci_ecma_fail(&ecma, "a ( without its )");
    if (good)
        return 0;
    *ret_problem = ecma.problem;
    *ret_offset = (size_t)(ecma.at - ecma.begin);
    return -1;
}
