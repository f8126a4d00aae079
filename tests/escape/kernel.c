/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: attempts to reach parts of the kernel that no tool needs. Those that act on the machine are
 * called so that nothing changes: with the present value, or so that the kernel looks, and stops. */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <linux/reboot.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/klog.h>
#include <sys/quota.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <unistd.h>
#ifdef __x86_64__
#include <asm/ldt.h>
#include <sys/io.h>
#endif
#include "attempt.h"

/* A call that gets past the question of rights fails for another reason, which is `expected`. */
static int reached(long result, int expected, const char *step)
{
    if (result >= 0 || errno == expected)
        return escaped("the kernel took the call: %s", step);
    if (errno == ENOSYS)
        return absent("%s: no such call", step);
    return held("%s", step);
}

static int bpf_map(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    union bpf_attr attr = {
        .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1
    };
    return judge(syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr)), "made a BPF map");
}

static int bpf_program(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    struct bpf_insn code[2] = { { .code = 0xb7 }, { .code = 0x95 } };
    union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_SOCKET_FILTER, .insn_cnt = 2 };
    attr.insns = (uintptr_t)code;
    attr.license = (uintptr_t) "GPL";
    return judge(syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr)), "loaded a BPF program");
}

static int perf_event(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
                                    .size = sizeof(attr),
                                    .config = PERF_COUNT_SW_TASK_CLOCK,
                                    .exclude_kernel = 1,
                                    .exclude_hv = 1 };
    return judge(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0), "opened a performance counter");
}

static int user_fault(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return judge(syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY), "userfaultfd");
}

static int kexec(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    /* No segments: unloads a kernel, where none is loaded. */
    return reached(syscall(SYS_kexec_load, 0UL, 0UL, NULL, 0UL), EINVAL, "kexec_load");
}

static int load_module(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return reached(syscall(SYS_init_module, "not a module", 12UL, ""), ENOEXEC, "init_module");
}

static int delete_module(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return reached(syscall(SYS_delete_module, "no_such_module", O_NONBLOCK), ENOENT,
                   "delete_module");
}

#ifdef __x86_64__
static int change_ldt(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    struct user_desc segment = { .entry_number = 0, .limit = 0xfff, .seg_32bit = 1, .useable = 1 };
    return judge(syscall(SYS_modify_ldt, 1, &segment, sizeof(segment)), "modify_ldt");
}

static int change_io_level(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return reached(iopl(3), EINVAL, "iopl");
}

static int change_io_ports(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return reached(ioperm(0x80, 1, 1), EINVAL, "ioperm");
}
#endif

static int quota(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return judge(quotactl(QCMD(Q_SYNC, USRQUOTA), NULL, 0, NULL), "quotactl");
}

static int swap_on(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return reached(swapon("/no/such/file", 0), ENOENT, "swapon");
}

static int swap_off(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return reached(swapoff("/no/such/file"), ENOENT, "swapoff");
}

/* What happens at Ctrl-Alt-Del: set to what it is. */
static int reboot_machine(int argc, char **argv)
{
    char now = '1';
    (void)argc;
    (void)argv;
    int fd = open("/proc/sys/kernel/ctrl-alt-del", O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && read(fd, &now, 1) < 0)
        now = '1';
    unsigned command = now == '0' ? LINUX_REBOOT_CMD_CAD_OFF : LINUX_REBOOT_CMD_CAD_ON;
    return judge(syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, command, NULL),
                 "reboot");
}

static int host_name(int argc, char **argv)
{
    (void)argc;
    return judge(sethostname(argv[0], strlen(argv[0])), "sethostname");
}

static int domain_name(int argc, char **argv)
{
    (void)argc;
    return judge(setdomainname(argv[0], strlen(argv[0])), "setdomainname");
}

static int set_time(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    /* Neither a time nor a zone: only the right is asked for. */
    return judge(syscall(SYS_settimeofday, NULL, NULL), "settimeofday");
}

static int adjust_time(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    struct timex now = { 0 };
    if (adjtimex(&now) < 0)
        return held("adjtimex without a change");
    struct timex same = { .modes = ADJ_TICK, .tick = now.tick };
    return judge(adjtimex(&same), "adjtimex");
}

static int kernel_log(int argc, char **argv)
{
    char text[256];
    (void)argc;
    (void)argv;
    return judge(klogctl(3, text, sizeof(text)), "read the kernel's log");
}

static int watch_files(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return judge(fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY), "fanotify_init");
}

const struct attempt kernel_attempts[] = {
    { "bpf-map", 0, bpf_map, "make a BPF map" },
    { "bpf-program", 0, bpf_program, "load a BPF program" },
    { "perf-event", 0, perf_event, "open a performance counter" },
    { "userfaultfd", 0, user_fault, "handle page faults" },
    { "kexec-load", 0, kexec, "load another kernel" },
    { "init-module", 0, load_module, "load a kernel module" },
    { "delete-module", 0, delete_module, "unload a kernel module" },
#ifdef __x86_64__
    { "modify-ldt", 0, change_ldt, "make a segment descriptor" },
    { "iopl", 0, change_io_level, "get access to all I/O ports" },
    { "ioperm", 0, change_io_ports, "get access to an I/O port" },
#endif
    { "quotactl", 0, quota, "talk to the quota system" },
    { "swapon", 0, swap_on, "add swap space" },
    { "swapoff", 0, swap_off, "remove swap space" },
    { "reboot", 0, reboot_machine, "decide what Ctrl-Alt-Del does" },
    { "sethostname", 1, host_name, "name the host NAME" },
    { "setdomainname", 1, domain_name, "name the domain NAME" },
    { "settimeofday", 0, set_time, "set the clock" },
    { "adjtimex", 0, adjust_time, "adjust the clock" },
    { "kernel-log", 0, kernel_log, "read the kernel's log" },
    { "fanotify", 0, watch_files, "watch the files of everybody" },
    { 0 },
};
