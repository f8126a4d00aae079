/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: system calls, and the start of a program and of a process, without a C library: for programs of
 * ours that have none, or share code with one that has none. A call that fails returns a negative errno. */
#ifndef TCI_BASE_CALLS_H
#define TCI_BASE_CALLS_H

#include <asm/unistd.h>

#if defined(__x86_64__)

static inline long call6(long number, long a, long b, long c, long d, long e, long f)
{
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

/* clone or clone3 with what they take, and a function that does not return on the new stack. */
static inline long clone_call(long number, long a, long b, long c, void (*function)(void *),
                              void *argument)
{
    long result;
    register long r10 __asm__("r10") = 0;
    register long r8 __asm__("r8") = 0;
    register void (*run)(void *) __asm__("r12") = function;
    register void *with __asm__("r13") = argument;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "mov %%r13, %%rdi\n\t"
                     "call *%%r12\n\t"
                     "hlt\n\t"
                     "1:"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(run), "r"(with)
                     : "rcx", "r11", "memory");
    return result;
}

#define BARE_START(function)                                                                       \
    __asm__(".globl _start\n"                                                                      \
            ".type _start, @function\n"                                                            \
            "_start:\n"                                                                            \
            "    xor %ebp, %ebp\n"                                                                 \
            "    mov %rsp, %rdi\n"                                                                 \
            "    and $-16, %rsp\n"                                                                 \
            "    call " function "\n"                                                              \
            "    hlt\n")

#elif defined(__aarch64__)

static inline long call6(long number, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory", "cc");
    return x0;
}

/* clone or clone3 with what they take, and a function that does not return on the new stack. */
static inline long clone_call(long number, long a, long b, long c, void (*function)(void *),
                              void *argument)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = 0;
    register long x4 __asm__("x4") = 0;
    register void (*run)(void *) __asm__("x20") = function;
    register void *with __asm__("x21") = argument;
    __asm__ volatile("svc 0\n\t"
                     "cbnz x0, 1f\n\t"
                     "mov x29, #0\n\t"
                     "mov x0, x21\n\t"
                     "blr x20\n\t"
                     "brk #0\n\t"
                     "1:"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(run), "r"(with)
                     : "memory", "cc");
    return x0;
}

#define BARE_START(function)                                                                       \
    __asm__(".globl _start\n"                                                                      \
            ".type _start, %function\n"                                                            \
            "_start:\n"                                                                            \
            "    mov x29, #0\n"                                                                    \
            "    mov x30, #0\n"                                                                    \
            "    mov x0, sp\n"                                                                     \
            "    bl " function "\n"                                                                \
            "    brk #0\n")

#else
#error "there are no system calls for this architecture"
#endif

static inline long clone_run(unsigned long flags, void *stack, void (*function)(void *),
                             void *argument)
{
    return clone_call(__NR_clone, (long)flags, (long)stack, 0, function, argument);
}

#define CALL(name, a, b, c, d, e)                                                                  \
    call6(__NR_##name, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define CALL6(name, a, b, c, d, e, f)                                                              \
    call6(__NR_##name, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

#endif
