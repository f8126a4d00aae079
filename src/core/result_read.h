/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: how single values of a stored result are read. */
#ifndef TCI_CORE_RESULT_READ_H
#define TCI_CORE_RESULT_READ_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/arena.h"

/* Failure sticks: `wrong` names the first member that is not what it should be. */
struct tci_stored {
    struct tci_arena *arena;
    const char *wrong;
    bool no_memory;
};

/* The member `key` of the result is not what it should be. */
void tci_stored_refuse(struct tci_stored *reader, const char *key);

/* Each reads a member of an object. What is missing or of another type is refused, and gives "", 0 or
 * NULL. Texts are in the arena. */
json_t *tci_stored_member(struct tci_stored *reader, const json_t *object, const char *key);
const char *tci_stored_text(struct tci_stored *reader, const json_t *object, const char *key);
/* null: there is none. */
const char *tci_stored_name(struct tci_stored *reader, const json_t *object, const char *key);
/* Into a field of fixed size; null leaves it empty. */
void tci_stored_field(struct tci_stored *reader, const json_t *object, const char *key, char *field,
                      size_t size);
uint64_t tci_stored_count(struct tci_stored *reader, const json_t *object, const char *key);
/* null: 0, it is not known. */
uint64_t tci_stored_known_count(struct tci_stored *reader, const json_t *object, const char *key);
/* As microseconds. */
uint64_t tci_stored_milliseconds(struct tci_stored *reader, const json_t *object, const char *key);
int tci_stored_flag(struct tci_stored *reader, const json_t *object, const char *key);
/* A list of objects with so many members each (0: any); *ret_items has room for them. */
const json_t *tci_stored_list(struct tci_stored *reader, const json_t *object, const char *key,
                              size_t members, size_t size, void **ret_items, size_t *ret_count);

#endif
