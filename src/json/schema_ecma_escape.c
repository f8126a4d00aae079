/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: escapes. Sets are written out as ranges: PCRE2's own \d, \w and \s depend on its
 * options and differ from ECMA-262's. */
#include "json/schema_ecma.h"

#include <stdio.h>
#include <string.h>

/* The inside of a class for \d, \w, \s and their opposites. */
static const char digits[] = "0-9", not_digits[] = "\\x{0}-\\x{2f}\\x{3a}-\\x{10ffff}";
static const char words[] = "0-9A-Za-z_",
                  not_words[] = "\\x{0}-\\x{2f}\\x{3a}-\\x{40}\\x{5b}-\\x{5e}\\x{60}"
                                "\\x{7b}-\\x{10ffff}";
static const char spaces[] = "\\x{9}-\\x{d}\\x{20}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}"
                             "\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}";
static const char not_spaces[] =
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}"
    "\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}"
    "\\x{3001}-\\x{fefe}\\x{ff00}-\\x{10ffff}";

static bool is_set(struct tci_ecma_escape *ret, const char *set)
{
    ret->kind = TCI_ECMA_SET;
    ret->set = set;
    return true;
}

static bool is_character(struct tci_ecma_escape *ret, uint32_t c)
{
    ret->kind = TCI_ECMA_CHARACTER;
    ret->character = c;
    return true;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Exactly `count` digits. */
static bool read_hex(struct tci_ecma *ecma, unsigned count, uint32_t *ret)
{
    *ret = 0;
    for (unsigned i = 0; i < count; i++) {
        int digit = ecma->at < ecma->end ? hex_digit(*ecma->at) : -1;
        if (digit < 0)
            return tci_ecma_fail(ecma, "a hexadecimal digit is missing");
        *ret = *ret << 4 | (uint32_t)digit;
        ecma->at++;
    }
    return true;
}

/* \u{1f432} */
static bool read_braced(struct tci_ecma *ecma, uint32_t *ret)
{
    unsigned count = 0;
    *ret = 0;
    for (ecma->at++; ecma->at < ecma->end && *ecma->at != '}'; ecma->at++, count++) {
        int digit = hex_digit(*ecma->at);
        if (digit < 0)
            return tci_ecma_fail(ecma, "a hexadecimal digit is missing");
        *ret = *ret << 4 | (uint32_t)digit;
        if (*ret > 0x10ffff)
            return tci_ecma_fail(ecma, "a code point beyond U+10FFFF");
    }
    if (ecma->at == ecma->end || count == 0)
        return tci_ecma_fail(ecma, "\\u{ without digits and }");
    ecma->at++;
    return true;
}

/* \uXXXX, \u{X}; two escapes that are a surrogate pair are one character. */
static bool read_unicode(struct tci_ecma *ecma, struct tci_ecma_escape *ret)
{
    const char *before;
    uint32_t high, low;

    if (ecma->at < ecma->end && *ecma->at == '{')
        return read_braced(ecma, &high) && is_character(ret, high);
    if (!read_hex(ecma, 4, &high))
        return false;
    before = ecma->at;
    if (high >= 0xd800 && high <= 0xdbff && ecma->end - ecma->at >= 6 && ecma->at[0] == '\\' &&
        ecma->at[1] == 'u' && hex_digit(ecma->at[2]) >= 0) {
        ecma->at += 2;
        if (!read_hex(ecma, 4, &low))
            return false;
        if (low >= 0xdc00 && low <= 0xdfff)
            return is_character(ret, 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00));
        ecma->at = before;
    }
    return is_character(ret, high);
}

static bool read_control(struct tci_ecma *ecma, struct tci_ecma_escape *ret)
{
    uint32_t c;
    if (!tci_ecma_next(ecma, &c))
        return false;
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')))
        return tci_ecma_fail(ecma, "\\c without a letter");
    return is_character(ret, c & 0x1f);
}

/* \0 is the character NUL, \1 and more are references to groups. */
static bool read_number(struct tci_ecma *ecma, bool in_class, uint32_t first,
                        struct tci_ecma_escape *ret)
{
    unsigned group = first - '0';
    bool more = ecma->at < ecma->end && *ecma->at >= '0' && *ecma->at <= '9';

    if (first == '0')
        return more ? tci_ecma_fail(ecma, "\\0 before a digit") : is_character(ret, 0);
    if (in_class)
        return tci_ecma_fail(ecma, "a reference to a group within [ ]");
    for (; ecma->at < ecma->end && *ecma->at >= '0' && *ecma->at <= '9'; ecma->at++) {
        group = group * 10 + (unsigned)(*ecma->at - '0');
        if (group > ecma->group_count)
            break;
    }
    if (group > ecma->group_count)
        return tci_ecma_fail(ecma, "a reference to a group that does not exist");
    ret->kind = TCI_ECMA_BACKWARD;
    ret->group = group;
    return true;
}

static bool read_named_reference(struct tci_ecma *ecma, struct tci_ecma_escape *ret)
{
    struct tci_ecma_name name;
    if (!tci_ecma_group_name(ecma, &name))
        return false;
    for (size_t i = 0; i < ecma->name_count; i++) {
        if (ecma->names[i].length == name.length &&
            memcmp(ecma->names[i].text, name.text, name.length) == 0) {
            ret->kind = TCI_ECMA_BACKWARD;
            ret->group = ecma->names[i].group;
            return true;
        }
    }
    return tci_ecma_fail(ecma, "a reference to a group that does not exist");
}

/* Signs stand for themselves; a letter that means nothing may mean something elsewhere. */
static bool read_identity(struct tci_ecma *ecma, uint32_t c, struct tci_ecma_escape *ret)
{
    bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (c < 0x20 || c >= 0x7f || is_letter)
        return tci_ecma_fail(ecma, "ECMA-262 does not know this escape");
    return is_character(ret, c);
}

static bool read_boundary(bool in_class, bool negated, struct tci_ecma *ecma,
                          struct tci_ecma_escape *ret)
{
    if (in_class)
        return negated ? tci_ecma_fail(ecma, "\\B within [ ]") : is_character(ret, '\b');
    ret->kind = TCI_ECMA_WORD_BOUNDARY;
    ret->negated = negated;
    return true;
}

bool tci_ecma_read_escape(struct tci_ecma *ecma, bool in_class, struct tci_ecma_escape *ret)
{
    uint32_t c;
    if (!tci_ecma_next(ecma, &c))
        return false;
    if (c >= '0' && c <= '9')
        return read_number(ecma, in_class, c, ret);
    switch (c) {
    case 'd':
    case 'D':
        return is_set(ret, c == 'd' ? digits : not_digits);
    case 'w':
    case 'W':
        return is_set(ret, c == 'w' ? words : not_words);
    case 's':
    case 'S':
        return is_set(ret, c == 's' ? spaces : not_spaces);
    case 'p':
    case 'P':
        return tci_ecma_property(ecma, c == 'P', ret);
    case 't':
        return is_character(ret, '\t');
    case 'n':
        return is_character(ret, '\n');
    case 'v':
        return is_character(ret, '\v');
    case 'f':
        return is_character(ret, '\f');
    case 'r':
        return is_character(ret, '\r');
    case 'c':
        return read_control(ecma, ret);
    case 'x':
        return read_hex(ecma, 2, &c) && is_character(ret, c);
    case 'u':
        return read_unicode(ecma, ret);
    case 'b':
    case 'B':
        return read_boundary(in_class, c == 'B', ecma, ret);
    case 'k':
        return in_class ? tci_ecma_fail(ecma, "\\k within [ ]") : read_named_reference(ecma, ret);
    default:
        return read_identity(ecma, c, ret);
    }
}

/* Adds to the set; what is beyond ASCII must be in it as a whole or not at all. */
bool tci_ecma_simple_set(const struct tci_ecma_escape *escape, struct tci_simple_set *set)
{
    struct tci_simple_set found = { { 0 }, TCI_OTHERS_OUT };
    if (escape->kind == TCI_ECMA_CHARACTER) {
        tci_simple_set_range(set, escape->character, escape->character);
        return escape->character < 128;
    }
    if (escape->kind != TCI_ECMA_SET)
        return false;
    tci_simple_set_range(&found, '0', '9');
    if (escape->set == words || escape->set == not_words) {
        tci_simple_set_range(&found, 'A', 'Z');
        tci_simple_set_range(&found, 'a', 'z');
        tci_simple_set_range(&found, '_', '_');
    } else if (escape->set != digits && escape->set != not_digits) {
        return false;
    }
    if (escape->set == not_digits || escape->set == not_words)
        tci_simple_set_invert(&found);
    set->ascii[0] |= found.ascii[0];
    set->ascii[1] |= found.ascii[1];
    if (found.others)
        set->others = found.others;
    return true;
}
