/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: malloc and its kin, counted and made to fail, for one test program. They are defined here, so
 * that those of jansson, libyaml and the C library fail too. For programs of one file only: the
 * counters are that file's own.
 *
 * SANITIZED: the sanitizer owns malloc, and nothing here can fail.
 */
#ifndef TCI_TESTS_ALLOC_SUPPORT_H
#define TCI_TESTS_ALLOC_SUPPORT_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include "toolcage/toolcage.h"
#include "sanitized.h"

/* clang-format off */
static __attribute__((unused)) struct {
    long live;       /* allocated and not freed */
    long made;       /* in this round */
    long fail_at;    /* this one of the round fails; 0: none */
    long failed;     /* in this round */
    bool failing_on; /* once failed, all fail: memory seldom comes back at once */
} allocations;
/* clang-format on */

/* From now on the `fail_at`th allocation fails; 0: none. */
static inline void begin_round(long fail_at)
{
    allocations.made = allocations.failed = 0;
    allocations.fail_at = fail_at;
}

#ifndef SANITIZED
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void __libc_free(void *p);

static bool may_allocate(void)
{
    long made = ++allocations.made, fail_at = allocations.fail_at;
    if (fail_at && (made == fail_at || (allocations.failing_on && made > fail_at))) {
        allocations.failed++;
        errno = ENOMEM;
        return false;
    }
    return true;
}

static void *counted(void *p)
{
    allocations.live += p != NULL;
    return p;
}

TC_EXPORT void *malloc(size_t size)
{
    return may_allocate() ? counted(__libc_malloc(size)) : NULL;
}

TC_EXPORT void *calloc(size_t count, size_t size)
{
    return may_allocate() ? counted(__libc_calloc(count, size)) : NULL;
}

TC_EXPORT void *realloc(void *old, size_t size)
{
    if (!may_allocate())
        return NULL;
    return old ? __libc_realloc(old, size) : counted(__libc_malloc(size));
}

TC_EXPORT void free(void *p)
{
    allocations.live -= p != NULL;
    __libc_free(p);
}
#endif

#endif
