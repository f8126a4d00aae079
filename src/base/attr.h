/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: compiler attributes and the cleanup idiom. Everything else includes this first. */
#ifndef TCI_BASE_ATTR_H
#define TCI_BASE_ATTR_H

#define tci_printf_like(text, first) __attribute__((__format__(__printf__, text, first)))
#define tci_must_check               __attribute__((warn_unused_result))

/* Runs `function(&variable)` when the variable goes out of scope. */
#define tc_cleanup(function) __attribute__((cleanup(function)))

/* Hands a pointer over: yields its value and leaves NULL behind, so that cleanup does nothing. */
#define tc_take(pointer)                                                                           \
    __extension__({                                                                                \
        __typeof__(pointer) *p_ = &(pointer);                                                      \
        __typeof__(pointer) taken_ = *p_;                                                          \
        *p_ = NULL;                                                                                \
        taken_;                                                                                    \
    })

/* For code that runs in a child which shares our memory and never returns: the address sanitizer's
 * marks on its stack would stay behind. */
#define tci_no_address_checks __attribute__((no_sanitize("address")))

#define tci_array_size(array) (sizeof(array) / sizeof((array)[0]))

#endif
