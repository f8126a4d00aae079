/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what ThreadSanitizer has to be told of children that run on our memory (CLONE_VM). It takes such
 * a child for the thread that made it: descriptors that the child moves in its own table look like ours,
 * and its wrapper of clone() cleans up the memory of both. In other builds there is nothing to tell.
 */
#ifndef TCI_BASE_THREAD_CHECKS_H
#define TCI_BASE_THREAD_CHECKS_H

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TCI_THREAD_CHECKS 1
#endif
#endif

#ifdef TCI_THREAD_CHECKS

/* Of the sanitizer's runtime. */
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);

/* Around a clone after which this thread sleeps until the child is gone (CLONE_VFORK). */
static inline void tci_thread_checks_off(void)
{
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}

static inline void tci_thread_checks_on(void)
{
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}

/* libc's own, past the wrapper, and a function that leaves no trace: for a child that runs beside us. */
int __clone(int (*function)(void *), void *stack, int flags, void *argument, ...);
#define tci_clone            __clone
#define tci_no_thread_checks __attribute__((disable_sanitizer_instrumentation))

#else

static inline void tci_thread_checks_off(void)
{
}

static inline void tci_thread_checks_on(void)
{
}

#define tci_clone clone
#define tci_no_thread_checks

#endif

#endif
