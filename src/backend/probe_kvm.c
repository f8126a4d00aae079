/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: does KVM run a guest here, at the speed of the processor? The file /dev/kvm being there
 * says little: a guest is started, watched step by step, and its loop is timed against the same
 * loop on the host. Everything belongs to descriptors of this child and goes with it.
 */
#include "backend/probe.h"
#include "backend/probe_kvm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const char REMEDY_MISSING[] =
    "enable virtualisation in the firmware and load the module: sudo modprobe kvm_intel (or "
    "kvm_amd); in a virtual machine, enable nested virtualisation for it";
static const char REMEDY_ACCESS[] = "sudo usermod -aG kvm $USER, then log in again";

#if defined(__x86_64__)

enum {
    EMULATED_FACTOR = 25, /* slower than the host by this: interpreted. Hardware is within 2. */
    CPUID_MAX = 256,
};

static const char REMEDY_EMULATED[] =
    "KVM has no hardware virtualisation to work with here: enable nested virtualisation in the "
    "hypervisor that this machine runs on, or use another host";

struct machine {
    int kvm, vm, vcpu;
    uint8_t *memory;
    struct kvm_run *run;
    const char *step; /* what is being done, for the report */
};

static int64_t now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Memory, interrupt controllers and timer. 0, or -1 with errno set and m->step naming the cause. */
static int machine_make(struct machine *m)
{
    struct kvm_userspace_memory_region region = { .memory_size = TCI_GUEST_MEMORY };
    struct kvm_pit_config timer = { 0 };
    m->step = "KVM_CREATE_VM";
    m->vm = ioctl(m->kvm, KVM_CREATE_VM, 0);
    if (m->vm < 0)
        return -1;
    m->step = "KVM_SET_TSS_ADDR";
    if (ioctl(m->vm, KVM_SET_TSS_ADDR, 0xfffbd000UL) < 0)
        return -1;
    m->step = "KVM_CREATE_IRQCHIP";
    if (ioctl(m->vm, KVM_CREATE_IRQCHIP, 0) < 0)
        return -1;
    m->step = "KVM_CREATE_PIT2";
    if (ioctl(m->vm, KVM_CREATE_PIT2, &timer) < 0)
        return -1;
    m->step = "guest memory";
    m->memory = mmap(NULL, TCI_GUEST_MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                     -1, 0);
    if (m->memory == MAP_FAILED)
        return -1;
    tci_guest_load(m->memory);
    region.userspace_addr = (uintptr_t)m->memory;
    return ioctl(m->vm, KVM_SET_USER_MEMORY_REGION, &region);
}

static int vcpu_make(struct machine *m)
{
    _Alignas(struct kvm_cpuid2) char
        bytes[sizeof(struct kvm_cpuid2) + CPUID_MAX * sizeof(struct kvm_cpuid_entry2)] = { 0 };
    struct kvm_cpuid2 *cpuid = (struct kvm_cpuid2 *)(void *)bytes;
    int size;
    m->step = "KVM_CREATE_VCPU";
    m->vcpu = ioctl(m->vm, KVM_CREATE_VCPU, 0);
    if (m->vcpu < 0)
        return -1;
    m->step = "the vCPU's shared page";
    size = ioctl(m->kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
    if (size < (int)sizeof *m->run)
        return -1;
    m->run = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, m->vcpu, 0);
    if (m->run == MAP_FAILED)
        return -1;
    m->step = "CPUID"; /* without it the vCPU refuses long mode */
    cpuid->nent = CPUID_MAX;
    if (ioctl(m->kvm, KVM_GET_SUPPORTED_CPUID, cpuid) < 0)
        return -1;
    return ioctl(m->vcpu, KVM_SET_CPUID2, cpuid);
}

/* A tick every 2 ms on the line that leads to TCI_GUEST_TIMER_VECTOR. */
static int timer_start(struct machine *m)
{
    struct kvm_irqchip chip = { .chip_id = KVM_IRQCHIP_PIC_MASTER };
    struct kvm_pit_state2 timer;
    m->step = "the timer";
    if (ioctl(m->vm, KVM_GET_IRQCHIP, &chip) < 0 || ioctl(m->vm, KVM_GET_PIT2, &timer) < 0)
        return -1;
    chip.chip.pic.irq_base = TCI_GUEST_TIMER_VECTOR;
    chip.chip.pic.imr = 0xfe; /* all masked but the timer */
    chip.chip.pic.init4 = 1;
    timer.channels[0].count = 2386; /* of 1193182 per second */
    timer.channels[0].mode = 2;     /* again and again */
    timer.channels[0].rw_mode = 3;
    timer.channels[0].gate = 1;
    if (ioctl(m->vm, KVM_SET_IRQCHIP, &chip) < 0)
        return -1;
    return ioctl(m->vm, KVM_SET_PIT2, &timer);
}

static int set_mode(struct machine *m, void (*mode)(struct kvm_regs *, struct kvm_sregs *))
{
    struct kvm_regs regs;
    struct kvm_sregs sregs;
    m->step = "registers";
    if (ioctl(m->vcpu, KVM_GET_SREGS, &sregs) < 0)
        return -1;
    mode(&regs, &sregs);
    if (ioctl(m->vcpu, KVM_SET_SREGS, &sregs) < 0)
        return -1;
    return ioctl(m->vcpu, KVM_SET_REGS, &regs);
}

/* Runs until the guest's next mark; -1 if something else came. */
static int next_mark(struct machine *m)
{
    m->step = "KVM_RUN";
    while (ioctl(m->vcpu, KVM_RUN, 0) < 0)
        if (errno != EINTR && errno != EAGAIN)
            return -1;
    errno = 0;
    if (m->run->exit_reason != KVM_EXIT_IO || m->run->io.port != TCI_GUEST_PORT)
        return -1;
    return *((const uint8_t *)m->run + m->run->io.data_offset);
}

/* The OUT that made the mark is finished by another KVM_RUN, which here does nothing more. */
static void finish_io(struct machine *m)
{
    m->run->immediate_exit = 1;
    (void)ioctl(m->vcpu, KVM_RUN, 0);
    m->run->immediate_exit = 0;
}

static void report_step(const struct tci_probe *p, const struct machine *m, int last)
{
    if (errno)
        tci_probe_unknown(p, TCI_FEATURE_KVM, NULL, "%s failed after step %d: %s", m->step, last,
                          strerrordesc_np(errno));
    else
        tci_probe_no(p, TCI_FEATURE_KVM, REMEDY_EMULATED,
                     "the guest stopped after step %d of %d (exit reason %u)", last,
                     TCI_GUEST_TIMER, m->run->exit_reason);
}

static int64_t host_loop_ns(void)
{
    int64_t best = INT64_MAX;
    for (int i = 0; i < TCI_GUEST_LOOPS; i++) {
        int64_t begin = now_ns(), took;
        tci_guest_loop_here();
        took = now_ns() - begin;
        best = took < best ? took : best;
    }
    return best > 0 ? best : 1;
}

/* Follows the guest from mark to mark; the fastest of its loops, or -1 (reported). */
static int64_t watch(const struct tci_probe *p, struct machine *m)
{
    int64_t begin = 0, best = INT64_MAX;
    int last = TCI_GUEST_REAL_MODE;
    for (;;) {
        int mark = next_mark(m);
        int expected = last == TCI_GUEST_LOOP_END && mark == TCI_GUEST_LOOP_BEGIN ? mark : last + 1;
        if (mark != expected) {
            report_step(p, m, last);
            return -1;
        }
        if (mark == TCI_GUEST_LOOP_BEGIN)
            begin = now_ns();
        else if (mark == TCI_GUEST_LOOP_END && now_ns() - begin < best)
            best = now_ns() - begin;
        else if (mark == TCI_GUEST_TIMER)
            return best;
        last = mark;
    }
}

/* The measure without its noise, so that two reports of one host are equal. */
static int power_of_ten(int64_t factor)
{
    int power = 10;
    while (power < 10000 && power * INT64_C(10) <= factor)
        power *= 10;
    return power;
}

static void try_guest(const struct tci_probe *p, int kvm)
{
    struct machine m = { .kvm = kvm, .vm = -1, .vcpu = -1 };
    int64_t guest, host;
    if (machine_make(&m) < 0 || vcpu_make(&m) < 0 || timer_start(&m) < 0 ||
        set_mode(&m, tci_guest_real_mode) < 0) {
        tci_probe_unknown(p, TCI_FEATURE_KVM, NULL, "%s: %s", m.step, strerrordesc_np(errno));
        return;
    }
    if (next_mark(&m) != TCI_GUEST_REAL_MODE) {
        report_step(p, &m, 0);
        return;
    }
    finish_io(&m);
    if (set_mode(&m, tci_guest_long_mode) < 0) {
        tci_probe_unknown(p, TCI_FEATURE_KVM, NULL, "%s: %s", m.step, strerrordesc_np(errno));
        return;
    }
    guest = watch(p, &m);
    if (guest < 0)
        return;
    host = host_loop_ns();
    if (guest / host >= EMULATED_FACTOR)
        tci_probe_no(p, TCI_FEATURE_KVM, REMEDY_EMULATED,
                     "guests are emulated, not executed (more than %d times slower than this "
                     "processor): a stock kernel seems to hang",
                     power_of_ten(guest / host));
    else
        tci_probe_yes(p, TCI_FEATURE_KVM,
                      "a 64-bit guest took a fault and an interrupt and ran at full speed");
}

#else

static void try_guest(const struct tci_probe *p, int kvm)
{
    int vm = ioctl(kvm, KVM_CREATE_VM, 0);
    int vcpu = vm < 0 ? -1 : ioctl(vm, KVM_CREATE_VCPU, 0);
    if (vcpu < 0)
        tci_probe_unknown(p, TCI_FEATURE_KVM, NULL, "creating a machine: %s",
                          strerrordesc_np(errno));
    else
        tci_probe_unknown(p, TCI_FEATURE_KVM, NULL,
                          "a machine was made; no guest was tried on this processor");
}

#endif

void tci_probe_kvm(const struct tci_probe *p)
{
    int version, kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
    if (kvm < 0) {
        if (errno == ENOENT || errno == ENODEV || errno == ENXIO)
            tci_probe_no(p, TCI_FEATURE_KVM, REMEDY_MISSING, "no /dev/kvm: %s",
                         strerrordesc_np(errno));
        else if (errno == EACCES || errno == EPERM)
            tci_probe_no(p, TCI_FEATURE_KVM, REMEDY_ACCESS, "/dev/kvm: %s", strerrordesc_np(errno));
        else
            tci_probe_refused(p, TCI_FEATURE_KVM, NULL, "/dev/kvm", errno);
        return;
    }
    /* Something else may stand under that name: a file, /dev/null. */
    version = ioctl(kvm, KVM_GET_API_VERSION, 0);
    if (version != KVM_API_VERSION)
        tci_probe_no(p, TCI_FEATURE_KVM, REMEDY_MISSING, "/dev/kvm is not KVM: %s",
                     version < 0 ? strerrordesc_np(errno) : "another interface version");
    else
        try_guest(p, kvm);
    (void)close(kvm);
}
