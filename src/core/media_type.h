/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: guessing what kind of file this is, from all of its bytes and from its name. The name is the
 * enemy's: it decides only between kinds that the bytes do not contradict, so that a page of scripts
 * called "chart.png" is not handed on as an image.
 */
#ifndef TCI_CORE_MEDIA_TYPE_H
#define TCI_CORE_MEDIA_TYPE_H

#include <stdbool.h>
#include <stddef.h>

enum { TCI_MEDIA_HEAD = 264 }; /* as far as the signatures look: tar's ends at byte 262 */

/* Begin with zeros. */
struct tci_media {
    unsigned char head[TCI_MEDIA_HEAD];
    size_t head_length;
    bool not_text;
    unsigned char pending[4]; /* of a character that the next piece goes on with */
    size_t pending_length;
    char first, second, last; /* characters that are not white space */
};

/* The next bytes of the file. */
void tci_media_add(struct tci_media *media, const void *bytes, size_t length);

/* After all of them. A constant text such as "image/png". */
const char *tci_media_type(const struct tci_media *media, const char *name);

#endif
