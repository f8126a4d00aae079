/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the tests of the system call filter share: compiling one, and running it. */
#ifndef TCI_TESTS_FILTER_SUPPORT_H
#define TCI_TESTS_FILTER_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "backend/filter/filter.h"
#include "backend/filter/filter_values.h"
#include "base/attr.h"

#define X86   AUDIT_ARCH_X86_64
#define ARM   AUDIT_ARCH_AARCH64
#define ALLOW SECCOMP_RET_ALLOW
#define KILL  SECCOMP_RET_KILL_PROCESS
#define E(n)  (SECCOMP_RET_ERRNO | (n))

#ifdef __x86_64__
#define NATIVE X86
#else
#define NATIVE ARM
#endif

enum {
    DEFAULT = TCI_SYSCALLS_DEFAULT,
    STRICT = TCI_SYSCALLS_STRICT,
    PURE = TCI_SYSCALLS_PURE,
    FLAG_COUNT = 14,
    ALL_FLAGS = (1 << FLAG_COUNT) - 1,
};

/* ---- an interpreter ---- */

static inline uint32_t jump_operation(const struct sock_filter *at, uint32_t a)
{
    switch (at->code) {
    case BPF_JMP | BPF_JEQ | BPF_K:
        return a == at->k ? at->jt : at->jf;
    case BPF_JMP | BPF_JGE | BPF_K:
        return a >= at->k ? at->jt : at->jf;
    case BPF_JMP | BPF_JGT | BPF_K:
        return a > at->k ? at->jt : at->jf;
    case BPF_JMP | BPF_JSET | BPF_K:
        return a & at->k ? at->jt : at->jf;
    case BPF_JMP | BPF_JA:
        return at->k;
    default:
        fail_msg("instruction %#x", at->code);
        return 0;
    }
}

/* *steps: how many instructions ran; *constant: none of them looked at an argument. */
static inline uint32_t interpret(const struct tci_filter *filter, const struct seccomp_data *data,
                                 unsigned *steps, bool *constant)
{
    uint32_t a = 0, pc = 0;
    *constant = true;
    for (*steps = 1;; (*steps)++) {
        const struct sock_filter *at = &filter->code[pc];
        if (pc >= filter->count)
            fail_msg("ran past the end");
        pc++;
        switch (at->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            assert_true(at->k % 4 == 0 && at->k + 4 <= sizeof *data);
            memcpy(&a, (const char *)data + at->k, 4);
            *constant = *constant && at->k < offsetof(struct seccomp_data, args);
            break;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= at->k;
            break;
        case BPF_RET | BPF_K:
            return at->k;
        default:
            pc += jump_operation(at, a);
        }
    }
}

static inline uint32_t answer_to(const struct tci_filter *filter, uint32_t arch, uint32_t number,
                                 const uint64_t args[6])
{
    struct seccomp_data data = { .nr = (int)number, .arch = arch };
    unsigned steps;
    bool constant;
    memcpy(data.args, args, sizeof data.args);
    return interpret(filter, &data, &steps, &constant);
}

/* ---- help ---- */

static inline struct tci_strings strings(struct tci_string *items, size_t count)
{
    return (struct tci_strings){ items, count };
}

static inline int compile(int profile, const char *allow, const char *deny, unsigned flags,
                          uint32_t arch, struct tci_filter *ret, struct tc_error *error)
{
    struct tci_string allowed = { .text = allow }, denied = { .text = deny };
    struct tci_syscalls syscalls = { .profile = (enum tci_syscall_profile)profile,
                                     .allow = strings(&allowed, allow ? 1 : 0),
                                     .deny = strings(&denied, deny ? 1 : 0) };
    struct tci_filter_spec spec = { .syscalls = &syscalls, .flags = flags, .arch = arch };
    memset(error, 0, sizeof *error);
    return tci_filter_compile(&spec, ret, error);
}

static inline struct tci_filter must_compile(int profile, unsigned flags, uint32_t arch)
{
    struct tci_filter filter = { 0 };
    struct tc_error error;
    if (compile(profile, NULL, NULL, flags, arch, &filter, &error) < 0)
        fail_msg("%s", error.message);
    return filter;
}

#endif
