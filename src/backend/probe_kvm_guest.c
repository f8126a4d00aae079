/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the guest of the KVM probe: a few dozen instructions and the tables that they need. It does
 * what the first moments of a stock kernel depend on and nothing else: no devices, no memory but
 * its own.
 *
 * Why a loop: there are hosts where /dev/kvm runs every instruction of a guest's kernel in software
 * (seen: PVM, a KVM without hardware virtualisation below it). Everything works there, a thousand
 * times slower, and a stock kernel seems to hang. Only the clock tells.
 */
#if defined(__x86_64__)

#include "backend/probe_kvm.h"

#include <string.h>

enum {
    CODE = 0x1000,
    DESCRIPTORS = 0x2000,
    INTERRUPTS = 0x3000,
    LEVEL_4 = 0x4000,
    LEVEL_3 = 0x5000,
    LEVEL_2 = 0x6000,
    LEVEL_3_HIGH = 0x7000,
    STACK_TOP = 0x80000,
    CODE_SELECTOR = 8,
    DATA_SELECTOR = 16,
    VECTOR_INVALID_OPCODE = 6,
};

#define MARK(number) "mov $" #number ", %al\n out %al, $0x80\n"

/* r8 holds the number of iterations, r9 the number of loops. */
/* clang-format off */
__asm__(
    ".pushsection .rodata, \"a\"\n"
    ".hidden tci_guest_code, tci_guest_long, tci_guest_bad, tci_guest_skip, tci_guest_tick\n"
    ".hidden tci_guest_code_end\n"
    ".globl tci_guest_code, tci_guest_long, tci_guest_bad, tci_guest_skip, tci_guest_tick\n"
    ".globl tci_guest_code_end\n"

    "tci_guest_code:\n"
    ".code16\n"
    MARK(1)
    "0: hlt\n jmp 0b\n"

    ".code64\n"
    "tci_guest_long:\n"
    " mov %cs, %eax\n test $3, %al\n jnz tci_guest_bad\n"
    MARK(2)
    /* What was given can be read, and written back; EFER says that long mode is active. */
    " sub $16, %rsp\n"
    " sgdt (%rsp)\n lgdt (%rsp)\n"
    " sidt (%rsp)\n lidt (%rsp)\n"
    " add $16, %rsp\n"
    " mov %cr3, %rax\n mov %rax, %cr3\n"
    " mov $0xc0000080, %ecx\n rdmsr\n"
    " bt $10, %eax\n jnc tci_guest_bad\n"
    " wrmsr\n"
    MARK(3)
    /* The fault's handler steps over the two bytes of ud2. */
    " ud2\n"
    MARK(4)
    " lea 1f(%rip), %rax\n"
    " movabs $0xffffffff80000000, %rbx\n add %rbx, %rax\n jmp *%rax\n"
    "1:\n"
    MARK(5)
    "2:\n"
    MARK(6)
    " mov %r8, %rcx\n"
    "3: dec %rcx\n jnz 3b\n"
    MARK(7)
    " dec %r9\n jnz 2b\n"
    " xor %r10d, %r10d\n"
    " sti\n hlt\n cli\n"
    " test %r10d, %r10d\n jz tci_guest_bad\n"
    MARK(8)
    "tci_guest_bad:\n"
    MARK(15)
    "4: hlt\n jmp 4b\n"

    "tci_guest_skip:\n addq $2, (%rsp)\n iretq\n"
    "tci_guest_tick:\n inc %r10d\n iretq\n"
    "tci_guest_code_end:\n"
    ".popsection\n");
/* clang-format on */

extern const uint8_t tci_guest_code[], tci_guest_long[], tci_guest_bad[], tci_guest_skip[],
    tci_guest_tick[], tci_guest_code_end[];

static uint64_t address_of(const uint8_t *label)
{
    return CODE + (uint64_t)(label - tci_guest_code);
}

static void put(uint8_t *memory, size_t at, size_t index, uint64_t value)
{
    memcpy(memory + at + index * sizeof value, &value, sizeof value);
}

/* A 64-bit interrupt gate: present, privilege 0. */
static void gate(uint8_t *memory, size_t vector, const uint8_t *handler)
{
    uint64_t address = address_of(handler);
    put(memory, INTERRUPTS, 2 * vector,
        (address & 0xffff) | CODE_SELECTOR << 16 | 0x8eULL << 40 | (address & 0xffff0000) << 32);
    put(memory, INTERRUPTS, 2 * vector + 1, address >> 32);
}

void tci_guest_load(uint8_t *memory)
{
    memcpy(memory + CODE, tci_guest_code, (size_t)(tci_guest_code_end - tci_guest_code));
    put(memory, DESCRIPTORS, CODE_SELECTOR / 8, 0x00af9b000000ffff);
    put(memory, DESCRIPTORS, DATA_SELECTOR / 8, 0x00cf93000000ffff);
    for (size_t i = 0; i < 256; i++)
        gate(memory, i, tci_guest_bad);
    gate(memory, VECTOR_INVALID_OPCODE, tci_guest_skip);
    gate(memory, TCI_GUEST_TIMER_VECTOR, tci_guest_tick);
    /* Present and writable (3); two pages of 2 MiB (0x80), at 0 and once more in the high half. */
    put(memory, LEVEL_4, 0, LEVEL_3 | 3);
    put(memory, LEVEL_4, 511, LEVEL_3_HIGH | 3);
    put(memory, LEVEL_3, 0, LEVEL_2 | 3);
    put(memory, LEVEL_3_HIGH, 510, LEVEL_2 | 3);
    put(memory, LEVEL_2, 0, 0x83);
    put(memory, LEVEL_2, 1, 0x200083);
}

void tci_guest_real_mode(struct kvm_regs *regs, struct kvm_sregs *sregs)
{
    *regs = (struct kvm_regs){ .rip = CODE, .rflags = 2 };
    sregs->cs.base = 0;
    sregs->cs.selector = 0;
}

void tci_guest_long_mode(struct kvm_regs *regs, struct kvm_sregs *sregs)
{
    struct kvm_segment code = {
        .limit = ~0U, .selector = CODE_SELECTOR, .present = 1, .type = 11, .s = 1, .l = 1, .g = 1
    };
    struct kvm_segment data = {
        .limit = ~0U, .selector = DATA_SELECTOR, .present = 1, .type = 3, .s = 1, .db = 1, .g = 1
    };
    *regs = (struct kvm_regs){ .rip = address_of(tci_guest_long),
                               .rsp = STACK_TOP,
                               .rflags = 2,
                               .r8 = TCI_GUEST_ITERATIONS,
                               .r9 = TCI_GUEST_LOOPS };
    sregs->cs = code;
    sregs->ds = sregs->es = sregs->fs = sregs->gs = sregs->ss = data;
    sregs->gdt = (struct kvm_dtable){ .base = DESCRIPTORS, .limit = 3 * 8 - 1 };
    sregs->idt = (struct kvm_dtable){ .base = INTERRUPTS, .limit = 256 * 16 - 1 };
    sregs->cr0 = 0x80050033; /* paging, write protect, numeric error, protected mode */
    sregs->cr3 = LEVEL_4;
    sregs->cr4 = 0x20;   /* physical address extension */
    sregs->efer = 0x500; /* long mode enabled and active */
}

void tci_guest_loop_here(void)
{
    uint64_t count = TCI_GUEST_ITERATIONS;
    __asm__ volatile("1: dec %0\n jnz 1b\n" : "+r"(count) : : "cc");
}

#else
typedef int tci_no_guest_for_this_processor;
#endif
