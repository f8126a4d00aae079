/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the shape of an expression: groups, alternatives, assertions, quantifiers. */
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

static bool is_next(const struct tci_ecma *ecma, const char *text)
{
    size_t length = strlen(text);
    return (size_t)(ecma->end - ecma->at) >= length && memcmp(ecma->at, text, length) == 0;
}

static bool skip(struct tci_ecma *ecma, const char *text)
{
    if (!is_next(ecma, text))
        return false;
    ecma->at += strlen(text);
    return true;
}

/* ---- names ------------------------------------------------------------------------------------ */

static bool is_name_character(uint32_t c, bool first)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || c == '$' || c > 0x9f ||
           (!first && c >= '0' && c <= '9');
}

bool tci_ecma_group_name(struct tci_ecma *ecma, struct tci_ecma_name *ret)
{
    uint32_t c;
    if (!skip(ecma, "<"))
        return tci_ecma_fail(ecma, "a name in < > is missing");
    ret->text = ecma->at;
    for (;;) {
        bool first = ecma->at == ret->text;
        if (!tci_ecma_next(ecma, &c))
            return false;
        if (c == '>' && !first)
            break;
        if (!is_name_character(c, first))
            return tci_ecma_fail(ecma, "a name of a group has letters, digits, _ and $");
    }
    ret->length = (size_t)(ecma->at - ret->text) - 1;
    return true;
}

static bool add_name(struct tci_ecma *ecma)
{
    struct tci_ecma_name name = { .group = ecma->group_count };
    if (!tci_ecma_group_name(ecma, &name))
        return false;
    for (size_t i = 0; i < ecma->name_count; i++)
        if (ecma->names[i].length == name.length &&
            memcmp(ecma->names[i].text, name.text, name.length) == 0)
            return tci_ecma_fail(ecma, "two groups have one name");
    if (ecma->name_count == TCI_ECMA_NAMES_MAX)
        return tci_ecma_fail(ecma, "more than 32 groups with names");
    ecma->names[ecma->name_count++] = name;
    return true;
}

/* References may point forward, so groups are counted before anything else. */
static bool count_groups(struct tci_ecma *ecma)
{
    bool in_class = false;
    for (; ecma->at < ecma->end; ecma->at++) {
        switch (*ecma->at) {
        case '\\':
            ecma->at += ecma->at + 1 < ecma->end;
            break;
        case '[':
            in_class = true;
            break;
        case ']':
            in_class = false;
            break;
        case '(':
            if (in_class)
                break;
            if (!is_next(ecma, "(?")) {
                ecma->group_count++;
            } else if (is_next(ecma, "(?<") && !is_next(ecma, "(?<=") && !is_next(ecma, "(?<!")) {
                ecma->at += 2;
                ecma->group_count++;
                if (!add_name(ecma))
                    return false;
                ecma->at--;
            }
            break;
        default:
            break;
        }
    }
    ecma->at = ecma->begin;
    return true;
}

/* ---- the parts -------------------------------------------------------------------------------- */

/* What may be opened; `looks`: it matches a place and cannot be repeated. */
struct opening {
    const char *text;
    bool looks;
};

static const struct opening openings[] = {
    { "(?:", false }, { "(?=", true }, { "(?!", true }, { "(?<=", true }, { "(?<!", true },
};

static bool open_group(struct tci_ecma *ecma, bool *ret_looks)
{
    struct tci_ecma_name name;
    *ret_looks = false;
    for (size_t i = 0; i < tci_array_size(openings); i++) {
        if (skip(ecma, openings[i].text)) {
            *ret_looks = openings[i].looks;
            tci_ecma_emit(ecma, openings[i].text);
            return true;
        }
    }
    tci_ecma_emit(ecma, "(");
    if (skip(ecma, "(?"))
        return is_next(ecma, "<") ? tci_ecma_group_name(ecma, &name)
                                  : tci_ecma_fail(ecma, "ECMA-262 does not know this kind of (?");
    ecma->at++;
    return true;
}

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
    if (skip(ecma, ",")) {
        (void)snprintf(text, sizeof text, "{%u,}", least);
        most = UINT32_MAX;
        if (!is_next(ecma, "}")) {
            if (!read_count(ecma, &most))
                return false;
            if (most < least)
                return tci_ecma_fail(ecma, "counts in { } that are out of order");
            (void)snprintf(text, sizeof text, "{%u,%u}", least, most);
        }
    }
    if (!skip(ecma, "}"))
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
    if (skip(ecma, "?"))
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
        return open_group(ecma, &shape->looks[shape->depth++]);
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
    bool good = count_groups(&ecma);

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
