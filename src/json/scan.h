/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what JSON text of a stranger would become, known from one pass over its bytes, before a parser makes
 * anything of it. The attacks: a text that is small and becomes large in memory ("[{},{},{},...": a hundred
 * bytes and more for each two); one so deep that whoever reads the result overflows a stack; an integer such
 * as an id that is rounded on its way, and then names something else.
 */
#ifndef TCI_JSON_SCAN_H
#define TCI_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>

struct tci_json_bounds {
    size_t values;  /* also of those that are in others; an empty array or object counts as two */
    unsigned depth; /* arrays and objects in one another; 0: any */
    bool exact;     /* no integer that a double does not hold */
};

enum tci_json_excess {
    TCI_JSON_WITHIN,
    TCI_JSON_TOO_MANY,
    TCI_JSON_TOO_DEEP,
    TCI_JSON_INEXACT,
};

/* A part of a text. */
struct tci_json_part {
    const char *text;
    size_t length;
};

struct tci_json_scanned {
    size_t values;
    struct tci_json_part inexact; /* the first integer that is not exact; empty: there is none */
};

/* Of text that is not JSON it says something, too, but it may be anything. `ret` has all of it unless that is too
 * much or too deep. */
enum tci_json_excess tci_json_scan(const char *text, size_t length,
                                   const struct tci_json_bounds *bounds,
                                   struct tci_json_scanned *ret);

/* The value of a member of the object that the text is, found without reading the rest: for who refuses the
 * text and wants to say which one it was. Returns how often the key is there; *ret: the first one's value.
 * `key` is found as it is written, without escapes. */
size_t tci_json_scan_member(const char *text, size_t length, const char *key,
                            struct tci_json_part *ret);

/* The values of several members in one pass, whole also if they are arrays or objects; a part without length: the
 * key is not there. Of a key that is there twice the last one counts, as for a parser. */
void tci_json_scan_members(const char *text, size_t length, const char *const *keys, size_t count,
                           struct tci_json_part *ret);

#endif
