/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: base64 with the standard alphabet and padding (RFC 4648, section 4). */
#ifndef TCI_BASE_BASE64_H
#define TCI_BASE_BASE64_H

#include <stddef.h>
#include <sys/types.h>
#include "base/attr.h"
#include "base/buf.h"

/* Appends the text of the bytes. */
void tci_base64_encode(struct tci_buf *out, const void *bytes, size_t length);

/* Appends the bytes of the text. 0, or -1 when it is not base64 in its one canonical form: wrong
 * length, a foreign character, a line break, padding elsewhere, or bits that mean nothing. */
int tci_base64_decode(struct tci_buf *out, const char *text, size_t length) tci_must_check;

#endif
