/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: does somebody else own malloc here? Then a test cannot replace it. */
#ifndef TCI_TESTS_SANITIZED_H
#define TCI_TESTS_SANITIZED_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define SANITIZED 1
#endif

#endif
