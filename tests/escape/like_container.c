/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: a place that is like an unprivileged container under the default system call profile of the
 * common engines: no namespaces, no mounts, no keys, no privileges, and no way to new ones. Nothing
 * but the `process` backend can work in it.
 *
 *   like-container COMMAND...
 */
#include <errno.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What those profiles refuse to a container without capabilities. */
static const char *const refused[] = {
    "acct",
    "add_key",
    "bpf",
    "chroot",
    "clock_adjtime",
    "clock_settime",
    "delete_module",
    "fanotify_init",
    "finit_module",
    "fsconfig",
    "fsmount",
    "fsopen",
    "fspick",
    "init_module",
    "io_uring_enter",
    "io_uring_register",
    "io_uring_setup",
    "ioperm",
    "iopl",
    "kcmp",
    "kexec_file_load",
    "kexec_load",
    "keyctl",
    "lookup_dcookie",
    "mbind",
    "mount",
    "mount_setattr",
    "move_mount",
    "move_pages",
    "nfsservctl",
    "open_by_handle_at",
    "open_tree",
    "perf_event_open",
    "pivot_root",
    "process_vm_readv",
    "process_vm_writev",
    "quotactl",
    "reboot",
    "request_key",
    "set_mempolicy",
    "setdomainname",
    "sethostname",
    "setns",
    "settimeofday",
    "swapoff",
    "swapon",
    "sysfs",
    "syslog",
    "umount2",
    "unshare",
    "userfaultfd",
    "vhangup",
};

static int refuse(scmp_filter_ctx filter)
{
    const unsigned long kinds = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                                CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWCGROUP;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        int call = seccomp_syscall_resolve_name(refused[i]);
        if (call >= 0 && seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), call, 0) < 0)
            return -1;
    }
    /* The flags of clone3 cannot be seen, so it is not there at all. */
    if (seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0) < 0)
        return -1;
    for (unsigned long bit = 1; bit < 1UL << 32; bit <<= 1) {
        if ((kinds & bit) && seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                                              SCMP_A0(SCMP_CMP_MASKED_EQ, bit, bit)) < 0)
            return -1;
    }
    return seccomp_load(filter);
}

int main(int argc, char **argv)
{
    struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct none[2] = { { 0, 0, 0 }, { 0, 0, 0 } };
    if (argc < 2)
        return 64;
    for (unsigned long cap = 0; prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0;)
        cap++;
    if (syscall(SYS_capset, &header, none) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
        perror("like-container: drop capabilities");
        return 64;
    }
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    if (!filter || refuse(filter) < 0) {
        fprintf(stderr, "like-container: no filter\n");
        return 64;
    }
    seccomp_release(filter);
    execv(argv[1], argv + 1);
    fprintf(stderr, "like-container: cannot start %s: %s\n", argv[1], strerror(errno));
    return 64;
}
