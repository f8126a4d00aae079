/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the files about redaction share: how secrets are gathered (redact_secrets.c), and how
 * all of them are searched for at once (redact_search.c).
 */
#ifndef TCI_CORE_REDACT_H
#define TCI_CORE_REDACT_H

#include <stdint.h>
#include "core/record.h"

/* ---- redact_secrets.c --------------------------------------------------------------------- */

struct tci_collector {
    struct tci_arena *arena;
    struct tci_secrets *secrets;
    size_t room, bytes;
    double *numbers; /* those among the values */
    size_t number_count, number_room;
};

/* Every string and key in a value becomes a secret. -1: no memory. */
int tci_collect_strings(struct tci_collector *to, struct json_t *value) tci_must_check;

/* Every number in the canonical text of a value. */
int tci_collect_numbers(struct tci_collector *to, const char *canonical) tci_must_check;

/* The numbers of all values once more, as the text that was sent spells them. It is JSON. */
int tci_collect_sent(struct tci_collector *to, const char *text) tci_must_check;

/* ---- redact_search.c ---------------------------------------------------------------------- */

struct tci_search;

/* NULL: no memory. */
struct tci_search *tci_search_new(const struct tci_secrets *secrets) tci_must_check;
void tci_search_free(struct tci_search *search);

/* Where in the secrets the search is after one more byte. It begins with 0. */
uint32_t tci_search_step(const struct tci_search *search, uint32_t state, unsigned char byte);
/* How many of the last bytes are a whole secret, the longest one; 0: none is. */
uint32_t tci_search_whole(const struct tci_search *search, uint32_t state);
/* How many of the last bytes are the beginning of a secret. */
uint32_t tci_search_part(const struct tci_search *search, uint32_t state);

#endif
