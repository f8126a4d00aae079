/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what our own approval functions can say beyond yes and no.
 *
 * The attack: a command that is innocent as far as a person reads, and goes on far behind that. So what
 * does not fit into a text that somebody can judge is not asked at all: a person who is shown a part and
 * a hash would say yes to what they did not see.
 */
#ifndef TCI_CORE_APPROVAL_H
#define TCI_CORE_APPROVAL_H

#include <limits.h>
#include <stddef.h>

enum { TCI_APPROVAL_SHOWN_MAX = 16 * 1024 }; /* bytes of a question, as it is shown */

/* To be returned: nobody was asked, for the question would have `bytes` bytes, which is more than
 * TCI_APPROVAL_SHOWN_MAX. For hosts it is one of the many numbers that mean no. */
static inline int tci_approval_too_long(size_t bytes)
{
    return bytes < INT_MAX ? (int)bytes : INT_MAX;
}

#endif
