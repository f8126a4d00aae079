/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: groups: their names, their number, and how they may begin. */
#include "json/schema_ecma.h"

#include <string.h>

static bool is_name_character(uint32_t c, bool first)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || c == '$' || c > 0x9f ||
           (!first && c >= '0' && c <= '9');
}

bool tci_ecma_group_name(struct tci_ecma *ecma, struct tci_ecma_name *ret)
{
    uint32_t c = 0;
    if (!tci_ecma_skip(ecma, "<"))
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
    if (!tci_ecma_group_name(ecma, &name) || !name.text)
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
bool tci_ecma_count_groups(struct tci_ecma *ecma)
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
            if (!tci_ecma_is_next(ecma, "(?")) {
                ecma->group_count++;
            } else if (tci_ecma_is_next(ecma, "(?<") && !tci_ecma_is_next(ecma, "(?<=") &&
                       !tci_ecma_is_next(ecma, "(?<!")) {
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

/* What may be opened; `looks`: it matches a place and cannot be repeated. */
struct opening {
    const char *text;
    bool looks;
};

static const struct opening openings[] = {
    { "(?:", false }, { "(?=", true }, { "(?!", true }, { "(?<=", true }, { "(?<!", true },
};

bool tci_ecma_open_group(struct tci_ecma *ecma, bool *ret_looks)
{
    struct tci_ecma_name name;
    *ret_looks = false;
    for (size_t i = 0; i < tci_array_size(openings); i++) {
        if (tci_ecma_skip(ecma, openings[i].text)) {
            *ret_looks = openings[i].looks;
            tci_ecma_emit(ecma, openings[i].text);
            return true;
        }
    }
    tci_ecma_emit(ecma, "(");
    if (tci_ecma_skip(ecma, "(?"))
        return tci_ecma_is_next(ecma, "<")
                   ? tci_ecma_group_name(ecma, &name)
                   : tci_ecma_fail(ecma, "ECMA-262 does not know this kind of (?");
    ecma->at++;
    return true;
}
