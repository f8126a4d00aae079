/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: edit distance (optimal string alignment). Fixed memory: long words have no near ones. */
#include "base/nearest.h"

#include <stdbool.h>
#include <string.h>

enum { word_max = 40, edit = 2, case_edit = 1 };

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static unsigned smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static unsigned replace_cost(char a, char b)
{
    if (a == b)
        return 0;
    return lower(a) == lower(b) || (a == '-' && b == '_') ? case_edit : edit;
}

/* In half edits. Both words fit into word_max. */
static unsigned distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    unsigned rows[3][word_max + 1], *two_up = rows[0], *up = rows[1], *row = rows[2], *spare;

    for (size_t j = 0; j <= b_length; j++)
        up[j] = (unsigned)j * edit;
    for (size_t i = 1; i <= a_length; i++) {
        row[0] = (unsigned)i * edit;
        for (size_t j = 1; j <= b_length; j++) {
            row[j] = smaller(up[j - 1] + replace_cost(a[i - 1], b[j - 1]),
                             smaller(up[j], row[j - 1]) + edit);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = smaller(row[j], two_up[j - 2] + edit);
        }
        spare = two_up;
        two_up = up;
        up = row;
        row = spare;
    }
    return up[b_length];
}

static bool same_but_for_case(const char *a, const char *b, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (lower(a[i]) != lower(b[i]))
            return false;
    return true;
}

const char *tci_nearest_word(const char *text, size_t length, const char *const *words)
{
    const char *best = NULL;
    unsigned best_distance = edit * (length < 5 ? 1 : length < 9 ? 2 : 3) + 1;

    if (length == 0 || length > word_max)
        return NULL;
    for (; *words; words++) {
        size_t word_length = strlen(*words);
        unsigned d;
        if (word_length > word_max)
            continue;
        /* "OCI" for "oci" is one slip, however many letters it took. */
        if (word_length == length && same_but_for_case(text, *words, length))
            d = memcmp(text, *words, length) == 0 ? 0 : case_edit;
        else
            d = distance(text, length, *words, word_length);
        if (d < best_distance) {
            best_distance = d;
            best = *words;
        }
    }
    return best;
}
