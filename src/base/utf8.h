/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: strict UTF-8 decoding (RFC 3629): no overlong forms, no surrogates, nothing past U+10FFFF. */
#ifndef TCI_BASE_UTF8_H
#define TCI_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length of the sequence at `bytes` (1 to 4) with its code point, or 0 when it is not UTF-8. */
size_t tci_utf8_decode(const char *bytes, size_t length, uint32_t *ret_code_point);

/* Does the character reorder or hide text, so that what a person reads is not what is there?
 * Direction overrides and isolates, zero-width characters, everything else that Unicode says shows
 * nothing or formats what is around it, and the invisible tag characters, with which instructions for
 * a model can be hidden in a description. */
bool tci_utf8_is_deceptive(uint32_t code_point);

/* May a person who has to judge a text see the character as it is? Not controls, nor what is deceptive, a
 * foreign blank, or of no agreed shape (private use, noncharacters), nor marks that are drawn over what
 * stands before them, or over other lines when there are many. Letters with accents are characters of
 * their own; accents apart are no loss. */
bool tci_utf8_is_plain(uint32_t code_point);

#endif
