/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: classes, in [ ]. Members are written out as ranges, without PCRE2's own names for sets. */
#include "json/schema_ecma.h"

struct members {
    bool any;       /* is there one? */
    bool is_simple; /* does `set` hold them all? */
    struct tci_simple_set set;
};

/* One end of a range, or a set. */
static bool read_atom(struct tci_ecma *ecma, struct tci_ecma_escape *ret)
{
    uint32_t c;
    if (!tci_ecma_next(ecma, &c))
        return false;
    if (c == '\\')
        return tci_ecma_read_escape(ecma, true, ret);
    ret->kind = TCI_ECMA_CHARACTER;
    ret->character = c;
    return true;
}

static bool begins_range(const struct tci_ecma *ecma)
{
    return ecma->end - ecma->at >= 2 && ecma->at[0] == '-' && ecma->at[1] != ']';
}

/* Halves of surrogate pairs are in no text that is UTF-8: they are left out. */
static bool emit_range(struct tci_ecma *ecma, uint32_t first, uint32_t last,
                       struct members *members)
{
    tci_simple_set_range(&members->set, first, last);
    members->is_simple &= last < 128;
    if (first > last)
        return tci_ecma_fail(ecma, "a range that is out of order");
    if (tci_ecma_is_surrogate(first))
        first = 0xe000;
    if (tci_ecma_is_surrogate(last))
        last = 0xd7ff;
    if (first > last)
        return true;
    members->any = true;
    tci_ecma_emit_character(ecma, first);
    if (last > first) {
        tci_ecma_emit(ecma, "-");
        tci_ecma_emit_character(ecma, last);
    }
    return true;
}

static void emit_set(struct tci_ecma *ecma, const struct tci_ecma_escape *escape,
                     struct members *members)
{
    members->any |= *escape->set != '\0';
    members->is_simple &= tci_ecma_simple_set(escape, &members->set);
    tci_ecma_emit(ecma, escape->set);
}

static bool read_members(struct tci_ecma *ecma, struct members *members)
{
    while (ecma->at < ecma->end && *ecma->at != ']') {
        struct tci_ecma_escape first = { .character = 0 }, last = { .character = 0 };
        if (!read_atom(ecma, &first))
            return false;
        if (first.kind == TCI_ECMA_SET) {
            emit_set(ecma, &first, members);
            continue;
        }
        if (!begins_range(ecma)) {
            if (!emit_range(ecma, first.character, first.character, members))
                return false;
            continue;
        }
        ecma->at++;
        if (!read_atom(ecma, &last))
            return false;
        if (last.kind != TCI_ECMA_SET) {
            if (!emit_range(ecma, first.character, last.character, members))
                return false;
            continue;
        }
        /* [a-\d]: the three of them. */
        if (!emit_range(ecma, first.character, first.character, members) ||
            !emit_range(ecma, '-', '-', members))
            return false;
        emit_set(ecma, &last, members);
    }
    return ecma->at < ecma->end || tci_ecma_fail(ecma, "a [ without its ]");
}

/* PCRE2 would take the ] of an empty class for a member: a class without members is written as one
 * that excludes everything. */
bool tci_ecma_class(struct tci_ecma *ecma)
{
    bool negated = ecma->at < ecma->end && *ecma->at == '^';
    struct members members = { .is_simple = true };
    size_t start = ecma->out ? ecma->out->length : 0;

    ecma->at += negated;
    tci_ecma_emit(ecma, negated ? "[^" : "[");
    if (!read_members(ecma, &members))
        return false;
    ecma->at++;
    if (!members.any) {
        if (ecma->out && !ecma->out->no_memory && !ecma->out->too_large)
            ecma->out->length = start;
        tci_ecma_emit(ecma, negated ? "[\\x{0}-\\x{10ffff}" : "[^\\x{0}-\\x{10ffff}");
    }
    tci_ecma_emit(ecma, "]");
    if (negated)
        tci_simple_set_invert(&members.set);
    if (members.is_simple)
        tci_simple_add(ecma->simple, &members.set);
    else
        tci_simple_give_up(ecma->simple);
    return true;
}
