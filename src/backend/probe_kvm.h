/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the two halves of the KVM probe share: the guest and the host that watches it. */
#ifndef TCI_BACKEND_PROBE_KVM_H
#define TCI_BACKEND_PROBE_KVM_H

#include <stdint.h>
#include <linux/kvm.h>

/* What the guest says on its way, one byte to TCI_GUEST_PORT each. The numbers stand in the
 * guest's code, too. */
enum tci_guest_mark {
    TCI_GUEST_REAL_MODE = 1,  /* 16-bit code ran: firmware would */
    TCI_GUEST_LONG_MODE = 2,  /* 64-bit code ran with paging, at the highest privilege */
    TCI_GUEST_TABLES = 3,     /* descriptor tables and a model-specific register read and written */
    TCI_GUEST_FAULT = 4,      /* a fault went through the guest's own table and came back */
    TCI_GUEST_HIGH_HALF = 5,  /* runs at the addresses where kernels live */
    TCI_GUEST_LOOP_BEGIN = 6, /* the host looks at its clock now, */
    TCI_GUEST_LOOP_END = 7,   /* and now; this pair comes TCI_GUEST_LOOPS times */
    TCI_GUEST_TIMER = 8,      /* an interrupt of the timer woke the halted guest: the end */
    TCI_GUEST_WRONG = 15,     /* the guest found something that should not be */
};

enum {
    TCI_GUEST_PORT = 0x80,
    TCI_GUEST_LOOPS = 3,
    TCI_GUEST_ITERATIONS = 50000,
    TCI_GUEST_MEMORY = 4 << 20,
    TCI_GUEST_TIMER_VECTOR = 0x20,
};

/* Writes the guest into its memory (TCI_GUEST_MEMORY bytes of zeroes). */
void tci_guest_load(uint8_t *memory);

/* Registers for the 16-bit start and for the 64-bit one. `sregs` holds what the vCPU has. */
void tci_guest_real_mode(struct kvm_regs *regs, struct kvm_sregs *sregs);
void tci_guest_long_mode(struct kvm_regs *regs, struct kvm_sregs *sregs);

/* The loop that the guest runs, on the host itself. */
void tci_guest_loop_here(void);

#endif
