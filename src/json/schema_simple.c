/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the simple matcher. Invariant of what it matches: a part that may take more or fewer
 * characters shares none with whatever may follow it, so taking as many as possible is right.
 */
#include "json/schema_simple.h"

#include <string.h>
#include "base/utf8.h"

void tci_simple_give_up(struct tci_simple *simple)
{
    if (simple)
        simple->given_up = true;
}

void tci_simple_begin(struct tci_simple *simple)
{
    if (simple)
        simple->begins = true;
}

void tci_simple_end(struct tci_simple *simple)
{
    if (simple)
        simple->ends = true;
}

void tci_simple_add(struct tci_simple *simple, const struct tci_simple_set *set)
{
    if (!simple || simple->given_up)
        return;
    if (simple->count == TCI_SIMPLE_PARTS_MAX || simple->ends) {
        simple->given_up = true;
        return;
    }
    simple->parts[simple->count++] = (struct tci_simple_part){ *set, 1, 1 };
}

void tci_simple_repeat(struct tci_simple *simple, uint32_t least, uint32_t most)
{
    if (!simple || simple->given_up || simple->count == 0)
        return;
    simple->parts[simple->count - 1].least = least;
    simple->parts[simple->count - 1].most = most;
}

/* ASCII only: the caller gives up on others. */
void tci_simple_set_range(struct tci_simple_set *set, uint32_t first, uint32_t last)
{
    for (uint32_t c = first; c <= last && c < 128; c++)
        set->ascii[c / 64] |= (uint64_t)1 << c % 64;
}

void tci_simple_set_invert(struct tci_simple_set *set)
{
    set->ascii[0] = ~set->ascii[0];
    set->ascii[1] = ~set->ascii[1];
    set->others = set->others == TCI_OTHERS_OUT ? TCI_OTHERS_IN : TCI_OTHERS_OUT;
}

static bool share_any(const struct tci_simple_set *a, const struct tci_simple_set *b)
{
    return (a->ascii[0] & b->ascii[0]) || (a->ascii[1] & b->ascii[1]) || (a->others && b->others);
}

/* Behind the end of an expression without $ anything may follow, and it does not matter. */
bool tci_simple_is_certain(const struct tci_simple *simple)
{
    if (simple->given_up || !simple->begins)
        return false;
    for (size_t i = 0; i < simple->count; i++) {
        if (simple->parts[i].least == simple->parts[i].most)
            continue;
        for (size_t j = i + 1; j < simple->count; j++) {
            if (share_any(&simple->parts[i].set, &simple->parts[j].set))
                return false;
            if (simple->parts[j].least > 0)
                break;
        }
    }
    return true;
}

/* The bytes of the character at `text` if it is in the set; else 0. */
static inline size_t take(const struct tci_simple_set *set, const char *text, size_t length)
{
    unsigned char c = (unsigned char)text[0];
    uint32_t code_point;
    size_t size;

    if (c < 128)
        return set->ascii[c / 64] >> c % 64 & 1;
    if (set->others == TCI_OTHERS_OUT)
        return 0;
    size = tci_utf8_decode(text, length, &code_point);
    if (set->others == TCI_OTHERS_BUT_SEPARATORS && (code_point == 0x2028 || code_point == 0x2029))
        return 0;
    return size;
}

bool tci_simple_matches(const struct tci_simple *simple, const char *text, size_t length)
{
    size_t at = 0;
    for (size_t i = 0; i < simple->count; i++) {
        const struct tci_simple_part *part = &simple->parts[i];
        uint32_t count = 0;
        while (count < part->most && at < length) {
            size_t size = take(&part->set, text + at, length - at);
            if (size == 0)
                break;
            at += size;
            count++;
        }
        if (count < part->least)
            return false;
    }
    return at == length || !simple->ends;
}
