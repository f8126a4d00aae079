/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of the system call filter that were written by hand, without its tables: what must
 * be refused and what must work, values at the borders, high bits; and the errors of a policy.
 */
#include "filter_support.h"

#include <signal.h>
#include <sys/syscall.h>

#define HIGH 0xabcdef0100000000ULL

struct expectation {
    int profile;
    unsigned flags;
    int number; /* of this machine */
    uint64_t args[4];
    uint32_t answer;
};

static void check(const struct expectation *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct tci_filter filter = must_compile(list[i].profile, list[i].flags, 0);
        uint64_t args[6] = { 0 };
        for (unsigned high = 0; high < 2; high++) {
            uint32_t answer;
            for (unsigned a = 0; a < 4; a++)
                args[a] = list[i].args[a] | (high ? HIGH : 0);
            answer = answer_to(&filter, NATIVE, (uint32_t)list[i].number, args);
            if (answer != list[i].answer)
                fail_msg("#%zu %s(%#llx, %#llx, %#llx, %#llx): %#x instead of %#x", i,
                         tci_filter_call_name(0, (uint32_t)list[i].number),
                         (unsigned long long)args[0], (unsigned long long)args[1],
                         (unsigned long long)args[2], (unsigned long long)args[3], answer,
                         list[i].answer);
        }
        tci_filter_free(&filter);
    }
}

static void test_no_profile_makes_namespaces(void **state)
{
    static const struct expectation list[] = {
        { DEFAULT, 0, SYS_clone, { SIGCHLD }, ALLOW },
        { STRICT, 0, SYS_clone, { CLONE_VM | CLONE_VFORK | SIGCHLD }, ALLOW },
        { DEFAULT, 0, SYS_clone, { 0x3d0f00 }, ALLOW }, /* pthread_create */
        { DEFAULT, 0, SYS_clone, { 0x00020000 }, E(EPERM) },
        { DEFAULT, 0, SYS_clone, { 0x02000000 }, E(EPERM) },
        { DEFAULT, 0, SYS_clone, { 0x04000000 }, E(EPERM) },
        { DEFAULT, 0, SYS_clone, { 0x08000000 }, E(EPERM) },
        { DEFAULT, 0, SYS_clone, { 0x10000000 | SIGCHLD }, E(EPERM) },
        { STRICT, 0, SYS_clone, { 0x20000000 }, E(EPERM) },
        { DEFAULT, 0, SYS_clone, { 0x40000000 }, E(EPERM) },
        { DEFAULT, 0, SYS_clone, { CLONE_PARENT | SIGCHLD }, E(EPERM) },
        { DEFAULT, 0, SYS_clone, { CLONE_UNTRACED | SIGCHLD }, E(EPERM) },
        { DEFAULT, 0, SYS_clone3, { 0 }, E(ENOSYS) },
        { DEFAULT, 0, SYS_unshare, { CLONE_NEWUSER }, E(EPERM) },
        { DEFAULT, 0, SYS_setns, { 3 }, E(EPERM) },
        { PURE, 0, SYS_clone, { SIGCHLD }, E(EPERM) },
        { PURE, 0, SYS_clone, { 0x3d0f00 }, E(EPERM) },
        { PURE, 0, SYS_clone3, { 0 }, E(ENOSYS) },
#ifdef SYS_fork
        { DEFAULT, 0, SYS_fork, { 0 }, ALLOW },
        { PURE, 0, SYS_fork, { 0 }, E(EPERM) },
        { PURE, 0, SYS_vfork, { 0 }, E(EPERM) },
#endif
        { PURE, 0, SYS_execve, { 0 }, ALLOW },
        { PURE, 0, SYS_execveat, { 0 }, ALLOW },
    };
    (void)state;
    check(list, tci_array_size(list));
}

static void test_sockets_of_few_kinds(void **state)
{
    static const struct expectation list[] = {
        { DEFAULT, 0, SYS_socket, { AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0 }, ALLOW },
        { DEFAULT, 0, SYS_socket, { AF_UNIX, SOCK_SEQPACKET, 0 }, ALLOW },
        { DEFAULT, 0, SYS_socket, { AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 6 }, ALLOW },
        { DEFAULT, 0, SYS_socket, { AF_INET6, SOCK_DGRAM, 17 }, ALLOW },
        { DEFAULT, 0, SYS_socket, { AF_INET, SOCK_DGRAM, 1 }, E(EPROTONOSUPPORT) },    /* ping */
        { DEFAULT, 0, SYS_socket, { AF_INET, SOCK_STREAM, 262 }, E(EPROTONOSUPPORT) }, /* MPTCP */
        { DEFAULT, 0, SYS_socket, { AF_INET, SOCK_STREAM, 132 }, E(EPROTONOSUPPORT) }, /* SCTP */
        { DEFAULT, 0, SYS_socket, { AF_INET, SOCK_RAW, 1 }, E(EPROTONOSUPPORT) },
        { DEFAULT, 0, SYS_socket, { AF_INET, SOCK_RAW | SOCK_CLOEXEC, 255 }, E(EPROTONOSUPPORT) },
        { DEFAULT, 0, SYS_socket, { AF_INET6, SOCK_RAW, 0 }, E(EPROTONOSUPPORT) },
        { DEFAULT, 0, SYS_socket, { AF_INET, SOCK_STREAM | 0x100, 0 }, E(EPROTONOSUPPORT) },
        { DEFAULT, 0, SYS_socket, { AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0 }, ALLOW },
        { DEFAULT, 0, SYS_socket, { AF_NETLINK, SOCK_DGRAM, 0 }, ALLOW },
        { DEFAULT, 0, SYS_socket, { AF_NETLINK, SOCK_RAW, 9 }, E(EPROTONOSUPPORT) }, /* audit */
        { DEFAULT,
          0,
          SYS_socket,
          { AF_NETLINK, SOCK_RAW, 12 },
          E(EPROTONOSUPPORT) }, /* netfilter */
        { DEFAULT, 0, SYS_socket, { AF_VSOCK, SOCK_STREAM, 0 }, E(EAFNOSUPPORT) },
        { DEFAULT, 0, SYS_socket, { AF_ALG, SOCK_SEQPACKET, 0 }, E(EAFNOSUPPORT) },
        { DEFAULT, 0, SYS_socket, { AF_PACKET, SOCK_RAW, 0 }, E(EAFNOSUPPORT) },
        { DEFAULT, 0, SYS_socket, { AF_BLUETOOTH, SOCK_RAW, 0 }, E(EAFNOSUPPORT) },
        { DEFAULT, 0, SYS_socket, { 0, SOCK_STREAM, 0 }, E(EAFNOSUPPORT) },
        { DEFAULT, 0, SYS_socket, { 0xffffffff, SOCK_STREAM, 0 }, E(EAFNOSUPPORT) },
        { DEFAULT, 0, SYS_socketpair, { AF_UNIX, SOCK_STREAM }, ALLOW },
        { DEFAULT, 0, SYS_socketpair, { AF_TIPC, SOCK_STREAM }, E(EAFNOSUPPORT) },
        { DEFAULT, 0, SYS_setsockopt, { 3, SOL_SOCKET, SO_REUSEADDR }, ALLOW },
        { DEFAULT, 0, SYS_setsockopt, { 3, SOL_SOCKET, SO_ATTACH_FILTER }, E(EPERM) },
        { DEFAULT, 0, SYS_setsockopt, { 3, SOL_SOCKET, SO_ATTACH_BPF }, E(EPERM) },
        { DEFAULT, 0, SYS_setsockopt, { 3, IPPROTO_TCP, TCP_NODELAY }, ALLOW },
        { DEFAULT, 0, SYS_setsockopt, { 3, IPPROTO_TCP, TCP_ULP }, E(ENOPROTOOPT) },
        { DEFAULT, TCI_FILTER_HOST_NETWORK, SYS_socket, { AF_INET, SOCK_RAW }, E(EPROTONOSUPPORT) },
        { STRICT, 0, SYS_socket, { AF_UNIX, SOCK_STREAM, 0 }, E(EPERM) },
        { STRICT, 0, SYS_connect, { 3 }, E(EPERM) },
        { STRICT, 0, SYS_socketpair, { AF_UNIX, SOCK_STREAM }, ALLOW },
        { STRICT, 0, SYS_sendmsg, { 3 }, ALLOW },
        { PURE, 0, SYS_socket, { AF_UNIX, SOCK_STREAM, 0 }, E(EPERM) },
        { PURE, 0, SYS_socketpair, { AF_UNIX, SOCK_STREAM }, E(EPERM) },
        { DEFAULT, TCI_FILTER_NO_SOCKETS, SYS_socket, { AF_UNIX, SOCK_STREAM }, E(EPERM) },
        { DEFAULT, TCI_FILTER_NO_SOCKETS, SYS_socketpair, { AF_UNIX, SOCK_STREAM }, E(EPERM) },
        { DEFAULT, TCI_FILTER_NO_SOCKETS, SYS_sendto, { 0 }, E(EPERM) },
        { DEFAULT, TCI_FILTER_NO_SOCKETS, SYS_getsockopt, { 0 }, ALLOW },
    };
    (void)state;
    check(list, tci_array_size(list));
}

static void test_terminals_cannot_be_typed_into(void **state)
{
    static const struct expectation list[] = {
        { DEFAULT, 0, SYS_ioctl, { 0, 0x5412 }, E(EPERM) }, /* TIOCSTI */
        { DEFAULT, 0, SYS_ioctl, { 0, 0x5411 }, ALLOW },
        { DEFAULT, 0, SYS_ioctl, { 0, 0x5413 }, ALLOW },
        { DEFAULT, 0, SYS_ioctl, { 0, 0x541c }, E(EPERM) }, /* TIOCLINUX */
        { DEFAULT, 0, SYS_ioctl, { 0, 0x541d }, E(EPERM) }, /* TIOCCONS */
        { DEFAULT, 0, SYS_ioctl, { 0, 0x5423 }, E(EPERM) }, /* TIOCSETD */
        { DEFAULT, 0, SYS_ioctl, { 0, 0x4aff }, ALLOW },
        { DEFAULT, 0, SYS_ioctl, { 0, 0x4b00 }, E(EPERM) },
        { DEFAULT, 0, SYS_ioctl, { 0, 0x4bff }, E(EPERM) },
        { DEFAULT, 0, SYS_ioctl, { 0, 0x4c00 }, ALLOW },
        { DEFAULT, 0, SYS_ioctl, { 0, 0x5606 }, E(EPERM) }, /* VT_ACTIVATE */
        { DEFAULT, 0, SYS_ioctl, { 0, 0x8901 }, E(EPERM) }, /* FIOSETOWN */
        { DEFAULT, 0, SYS_ioctl, { 0, 0x8902 }, E(EPERM) }, /* SIOCSPGRP */
        { DEFAULT, 0, SYS_ioctl, { 0, 0x8933 }, ALLOW },    /* SIOCGIFINDEX */
        { STRICT, 0, SYS_ioctl, { 0, 0x5401 }, ALLOW },     /* TCGETS */
        { STRICT, 0, SYS_ioctl, { 0, 0x540b }, ALLOW },
        { STRICT, 0, SYS_ioctl, { 0, 0x540c }, E(ENOTTY) }, /* TIOCEXCL */
        { STRICT, 0, SYS_ioctl, { 0, 0x5412 }, E(EPERM) },
        { STRICT, 0, SYS_ioctl, { 0, 0x8933 }, E(ENOTTY) },
        { PURE, 0, SYS_ioctl, { 0, 0x5413 }, ALLOW },         /* TIOCGWINSZ */
        { PURE, 0, SYS_ioctl, { 0, 0x541b }, ALLOW },         /* FIONREAD */
        { PURE, 0, SYS_ioctl, { 0, 0x5451 }, ALLOW },         /* FIOCLEX */
        { PURE, 0, SYS_ioctl, { 0, 0x40086602 }, E(ENOTTY) }, /* FS_IOC_SETFLAGS */
        { DEFAULT, 0, SYS_ioctl, { 0, 0x40086602 }, ALLOW },
        { DEFAULT, TCI_FILTER_LANDLOCK_GAPS, SYS_ioctl, { 0, 0x40086602 }, E(ENOTTY) },
    };
    (void)state;
    check(list, tci_array_size(list));
}

static void test_no_setuid_files_and_no_devices(void **state)
{
    static const struct expectation list[] = {
        { DEFAULT, 0, SYS_fchmod, { 3, 0777 }, ALLOW },
        { DEFAULT, 0, SYS_fchmod, { 3, 01777 }, ALLOW },
        { DEFAULT, 0, SYS_fchmod, { 3, 04755 }, E(EPERM) },
        { DEFAULT, 0, SYS_fchmod, { 3, 02755 }, E(EPERM) },
        { DEFAULT, 0, SYS_fchmodat, { 3, 06777, 0755 }, ALLOW },
        { DEFAULT, 0, SYS_fchmodat, { 3, 0, 04000 }, E(EPERM) },
        { STRICT, 0, 452, { 3, 0, 02000 }, E(EPERM) },
        { STRICT, 0, 452, { 3, 0, 0644 }, ALLOW },
        { PURE, 0, SYS_fchmod, { 3, 0644 }, E(EPERM) },
        { DEFAULT, 0, SYS_openat, { 3, 0, O_RDONLY, 06000 }, ALLOW },
        { DEFAULT, 0, SYS_openat, { 3, 0, O_CREAT | O_WRONLY, 0644 }, ALLOW },
        { DEFAULT, 0, SYS_openat, { 3, 0, O_CREAT | O_WRONLY, 04755 }, E(EPERM) },
        { PURE, 0, SYS_openat, { 3, 0, O_CREAT | O_WRONLY, 02755 }, E(EPERM) },
        { DEFAULT, 0, SYS_openat, { 3, 0, O_TMPFILE | O_RDWR, 04755 }, E(EPERM) },
        { DEFAULT, 0, SYS_openat, { 3, 0, O_TMPFILE | O_RDWR, 0600 }, ALLOW },
        { DEFAULT, 0, SYS_openat2, { 3 }, E(ENOSYS) },
        { DEFAULT, 0, SYS_mknodat, { 3, 0, S_IFREG | 0644 }, ALLOW },
        { DEFAULT, 0, SYS_mknodat, { 3, 0, 0644 }, ALLOW },
        { DEFAULT, 0, SYS_mknodat, { 3, 0, S_IFIFO | 0644 }, ALLOW },
        { DEFAULT, 0, SYS_mknodat, { 3, 0, S_IFSOCK | 0644 }, ALLOW },
        { DEFAULT, 0, SYS_mknodat, { 3, 0, S_IFCHR | 0644 }, E(EPERM) },
        { DEFAULT, 0, SYS_mknodat, { 3, 0, S_IFBLK | 0644 }, E(EPERM) },
        { DEFAULT, 0, SYS_mknodat, { 3, 0, S_IFDIR | 0644 }, E(EPERM) },
        { DEFAULT, 0, SYS_mknodat, { 3, 0, S_IFREG | 04755 }, E(EPERM) },
        { PURE, 0, SYS_mknodat, { 3, 0, S_IFIFO | 0644 }, E(EPERM) },
#ifdef SYS_open
        { DEFAULT, 0, SYS_chmod, { 0, 0755 }, ALLOW },
        { DEFAULT, 0, SYS_chmod, { 0, 04755 }, E(EPERM) },
        { DEFAULT, 0, SYS_open, { 0, O_RDONLY, 06000 }, ALLOW },
        { DEFAULT, 0, SYS_open, { 0, O_CREAT, 02755 }, E(EPERM) },
        { DEFAULT, 0, SYS_creat, { 0, 0755 }, ALLOW },
        { DEFAULT, 0, SYS_creat, { 0, 04755 }, E(EPERM) },
        { DEFAULT, 0, SYS_mknod, { 0, S_IFCHR | 0644 }, E(EPERM) },
        { DEFAULT, 0, SYS_mknod, { 0, S_IFIFO | 0644 }, ALLOW },
#endif
    };
    (void)state;
    check(list, tci_array_size(list));
}

static void test_options_of_processes(void **state)
{
    static const struct expectation list[] = {
        { PURE, 0, SYS_prctl, { PR_SET_NAME }, ALLOW },
        { PURE, 0, SYS_prctl, { PR_SET_NO_NEW_PRIVS }, ALLOW },
        { DEFAULT, 0, SYS_prctl, { PR_SET_SECCOMP }, ALLOW },
        { DEFAULT, 0, SYS_prctl, { PR_SET_DUMPABLE, 0 }, E(EPERM) },
        { DEFAULT, 0, SYS_prctl, { PR_SET_DUMPABLE, 1 }, E(EPERM) },
        { DEFAULT, 0, SYS_prctl, { PR_GET_DUMPABLE }, ALLOW },
        { DEFAULT, 0, SYS_prctl, { PR_SET_MM }, E(EPERM) },
        { DEFAULT, 0, SYS_prctl, { PR_SET_PTRACER }, E(EINVAL) },
        { DEFAULT, 0, SYS_prctl, { 67 }, E(EINVAL) },     /* PR_SET_MEMORY_MERGE */
        { DEFAULT, 0, SYS_prctl, { 0x53564d41 }, ALLOW }, /* PR_SET_VMA */
        { DEFAULT, 0, SYS_prctl, { 0xffffffff }, E(EINVAL) },
        { DEFAULT, 0, SYS_prctl, { PR_SET_PDEATHSIG }, ALLOW },
        { DEFAULT, TCI_FILTER_KEEP_GROUP, SYS_prctl, { PR_SET_PDEATHSIG }, E(EPERM) },
        { DEFAULT, TCI_FILTER_KEEP_GROUP, SYS_prctl, { PR_SET_NAME }, ALLOW },
        { DEFAULT, TCI_FILTER_KEEP_GROUP, SYS_prctl, { PR_SET_DUMPABLE }, E(EPERM) },
        { DEFAULT, 0, SYS_setsid, { 0 }, ALLOW },
        { DEFAULT, TCI_FILTER_KEEP_GROUP, SYS_setsid, { 0 }, E(EPERM) },
        { DEFAULT, TCI_FILTER_KEEP_GROUP, SYS_setpgid, { 0 }, E(EPERM) },
        { DEFAULT, 0, SYS_seccomp, { 1, 0 }, ALLOW },
        { DEFAULT, 0, SYS_seccomp, { 1, SECCOMP_FILTER_FLAG_TSYNC }, ALLOW },
        { DEFAULT, 0, SYS_seccomp, { 1, SECCOMP_FILTER_FLAG_NEW_LISTENER }, E(EINVAL) },
        { DEFAULT, 0, SYS_seccomp, { 1, SECCOMP_FILTER_FLAG_LOG }, E(EINVAL) },
        { DEFAULT, 0, SYS_personality, { 0 }, ALLOW },
        { DEFAULT, 0, SYS_personality, { 0xffffffff }, ALLOW },
        { DEFAULT, 0, SYS_personality, { ADDR_NO_RANDOMIZE }, ALLOW },
        { DEFAULT, 0, SYS_personality, { READ_IMPLIES_EXEC }, E(EPERM) },
        { DEFAULT, 0, SYS_personality, { ADDR_NO_RANDOMIZE | READ_IMPLIES_EXEC }, E(EPERM) },
        { STRICT, 0, SYS_personality, { 0 }, E(EPERM) },
        { DEFAULT, 0, SYS_fcntl, { 3, F_GETFL }, ALLOW },
        { DEFAULT, 0, SYS_fcntl, { 3, F_DUPFD_CLOEXEC }, ALLOW },
        { DEFAULT, 0, SYS_fcntl, { 3, F_SETLEASE }, E(EPERM) },
        { DEFAULT, 0, SYS_fcntl, { 3, F_SET_FILE_RW_HINT + 1 }, E(EINVAL) },
        { DEFAULT, 0, SYS_fcntl, { 3, F_SETOWN }, ALLOW },
        { PURE, 0, SYS_fcntl, { 3, F_SETOWN }, E(EPERM) },
        { DEFAULT, TCI_FILTER_NO_SIGNALS, SYS_fcntl, { 3, F_SETOWN_EX }, E(EPERM) },
        { DEFAULT, TCI_FILTER_NO_SIGNALS, SYS_fcntl, { 3, F_SETSIG }, E(EPERM) },
        { DEFAULT, TCI_FILTER_NO_SIGNALS, SYS_fcntl, { 3, F_SETLEASE }, E(EPERM) },
    };
    (void)state;
    check(list, tci_array_size(list));
}

static void test_other_processes_are_left_alone(void **state)
{
    static const struct expectation list[] = {
        { DEFAULT, 0, SYS_kill, { 42 }, ALLOW },
        { PURE, 0, SYS_kill, { 0 }, ALLOW },
        { PURE, 0, SYS_kill, { 42 }, E(EPERM) },
        { PURE, 0, SYS_kill, { 0xffffffff }, E(EPERM) },
        { PURE, 0, SYS_tgkill, { 42, 42 }, ALLOW }, /* abort() */
        { PURE, 0, SYS_rt_sigqueueinfo, { 42 }, E(EPERM) },
        { PURE, 0, SYS_pidfd_send_signal, { 3 }, E(ENOSYS) },
        { DEFAULT, TCI_FILTER_NO_SIGNALS, SYS_kill, { 0 }, ALLOW },
        { DEFAULT, TCI_FILTER_NO_SIGNALS, SYS_kill, { 1 }, E(EPERM) },
        { DEFAULT, TCI_FILTER_NO_SIGNALS, SYS_tgkill, { 42, 42 }, E(EPERM) },
        { DEFAULT, TCI_FILTER_NO_SIGNALS, SYS_tkill, { 42 }, E(EPERM) },
        { DEFAULT, TCI_FILTER_NO_SIGNALS, SYS_rt_tgsigqueueinfo, { 42 }, E(EPERM) },
        { DEFAULT, TCI_FILTER_NO_SIGNALS, SYS_pidfd_send_signal, { 3 }, E(ENOSYS) },
        { DEFAULT, 0, SYS_prlimit64, { 42 }, ALLOW },
        { STRICT, 0, SYS_prlimit64, { 42 }, E(EPERM) },
        { PURE, 0, SYS_prlimit64, { 0 }, ALLOW },
        { DEFAULT, TCI_FILTER_SELF_ONLY, SYS_prlimit64, { 42 }, E(EPERM) },
        { DEFAULT, TCI_FILTER_SELF_ONLY, SYS_prlimit64, { 0 }, ALLOW },
        { DEFAULT, TCI_FILTER_SELF_ONLY, SYS_setpriority, { PRIO_PROCESS, 0 }, ALLOW },
        { DEFAULT, TCI_FILTER_SELF_ONLY, SYS_setpriority, { PRIO_PROCESS, 42 }, E(EPERM) },
        { DEFAULT, TCI_FILTER_SELF_ONLY, SYS_setpriority, { PRIO_USER, 0 }, E(EPERM) },
        { DEFAULT, TCI_FILTER_SELF_ONLY, SYS_ioprio_set, { IOPRIO_WHO_USER, 0 }, E(EPERM) },
        { DEFAULT, TCI_FILTER_SELF_ONLY, SYS_ioprio_set, { IOPRIO_WHO_PROCESS, 0 }, ALLOW },
        { DEFAULT, TCI_FILTER_SELF_ONLY, SYS_sched_setaffinity, { 42 }, E(EPERM) },
        { DEFAULT, TCI_FILTER_SELF_ONLY, SYS_sched_setaffinity, { 0 }, ALLOW },
        { DEFAULT, TCI_FILTER_KEEP_CPUS, SYS_sched_setaffinity, { 0 }, E(EPERM) },
        { DEFAULT, 0, SYS_ptrace, { 0 }, E(EPERM) },
        { DEFAULT, 0, SYS_process_vm_writev, { 42 }, E(EPERM) },
    };
    (void)state;
    check(list, tci_array_size(list));
}

static void test_what_landlock_does_not_rule(void **state)
{
    static const struct expectation list[] = {
        { DEFAULT, 0, SYS_openat, { 3, 0, O_TRUNC }, ALLOW },
        { DEFAULT, TCI_FILTER_NO_TRUNCATE, SYS_openat, { 3, 0, O_TRUNC }, E(EPERM) },
        { DEFAULT, TCI_FILTER_NO_TRUNCATE, SYS_openat, { 3, 0, O_TRUNC | 3 }, E(EPERM) },
        { DEFAULT, TCI_FILTER_NO_TRUNCATE, SYS_openat, { 3, 0, O_TRUNC | O_WRONLY }, ALLOW },
        { DEFAULT, TCI_FILTER_NO_TRUNCATE, SYS_openat, { 3, 0, O_TRUNC | O_RDWR }, ALLOW },
        { DEFAULT, TCI_FILTER_NO_TRUNCATE, SYS_openat, { 3, 0, O_RDONLY }, ALLOW },
        { DEFAULT,
          TCI_FILTER_NO_TRUNCATE,
          SYS_openat,
          { 3, 0, O_CREAT | O_TRUNC | O_WRONLY, 04755 },
          E(EPERM) },
        { DEFAULT, TCI_FILTER_NO_TRUNCATE, SYS_truncate, { 0 }, E(EPERM) },
        { DEFAULT, TCI_FILTER_NO_TRUNCATE, SYS_ftruncate, { 3 }, ALLOW },
        { DEFAULT, TCI_FILTER_LANDLOCK_GAPS, SYS_fchmodat, { 3, 0, 0644 }, E(EPERM) },
        { DEFAULT, TCI_FILTER_LANDLOCK_GAPS, SYS_utimensat, { 3 }, E(EPERM) },
        { DEFAULT, TCI_FILTER_LANDLOCK_GAPS, SYS_setxattr, { 0 }, E(EPERM) },
        { DEFAULT, TCI_FILTER_LANDLOCK_GAPS, SYS_getxattr, { 0 }, E(EOPNOTSUPP) },
        { DEFAULT, TCI_FILTER_LANDLOCK_GAPS, SYS_fgetxattr, { 0 }, ALLOW },
        { DEFAULT, TCI_FILTER_LANDLOCK_GAPS, SYS_inotify_add_watch, { 0 }, E(EPERM) },
        { DEFAULT, TCI_FILTER_NO_MEMFD, SYS_memfd_create, { 0 }, E(EPERM) },
        { DEFAULT, 0, SYS_memfd_create, { 0, MFD_CLOEXEC }, ALLOW },
        { DEFAULT, 0, SYS_memfd_create, { 0, MFD_HUGETLB }, E(EINVAL) },
        { DEFAULT, 0, SYS_mmap, { 0, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS }, ALLOW },
        { PURE, 0, SYS_mmap, { 0, 4096, 3, MAP_PRIVATE | MAP_HUGETLB }, E(ENOMEM) },
        { DEFAULT, 0, SYS_shmget, { 0, 4096, SHM_HUGETLB }, E(EPERM) },
        { DEFAULT, 0, SYS_shmget, { 0, 4096, 0600 }, ALLOW },
        { DEFAULT, TCI_FILTER_NO_IPC, SYS_shmget, { 0, 4096, 0600 }, E(EPERM) },
        { DEFAULT, TCI_FILTER_NO_IPC, SYS_mq_open, { 0 }, E(EPERM) },
        { DEFAULT, TCI_FILTER_NO_UNIX, SYS_socket, { AF_UNIX, SOCK_STREAM }, E(EAFNOSUPPORT) },
        { DEFAULT, TCI_FILTER_NO_UNIX, SYS_socket, { AF_INET, SOCK_STREAM }, ALLOW },
        { DEFAULT, TCI_FILTER_NO_UNIX, SYS_socketpair, { AF_UNIX, SOCK_STREAM }, ALLOW },
        { DEFAULT, 0, SYS_fallocate, { 3, 0 }, E(EOPNOTSUPP) },
        { DEFAULT, 0, SYS_ioctl, { 3, 0x40305828 }, E(EOPNOTSUPP) }, /* FS_IOC_RESVSP */
        { DEFAULT, 0, SYS_ioctl, { 3, 0x40305828 | (1ULL << 40) }, E(EOPNOTSUPP) },
        { DEFAULT, 0, SYS_ioctl, { 3, FICLONE }, ALLOW },
        { DEFAULT, 0, SYS_ioctl, { 3, 0x5000940e }, E(EOPNOTSUPP) }, /* BTRFS_IOC_SUBVOL_CREATE */
        { DEFAULT, 0, SYS_io_setup, { 8 }, E(EPERM) },
        { DEFAULT, 0, SYS_socketpair, { AF_UNIX, SOCK_STREAM }, ALLOW },
        { DEFAULT, 0, SYS_socketpair, { AF_UNIX, SOCK_DGRAM }, E(EPROTONOSUPPORT) },
        { DEFAULT, 0, SYS_fallocate, { 3, FALLOC_FL_KEEP_SIZE }, E(EOPNOTSUPP) },
        { DEFAULT, 0, SYS_fallocate, { 3, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE }, ALLOW },
        { DEFAULT, 0, SYS_fcntl, { 3, F_SETPIPE_SZ }, ALLOW },
        { DEFAULT, TCI_FILTER_COUNT_MEMORY, SYS_fcntl, { 3, F_SETPIPE_SZ }, E(EPERM) },
        { DEFAULT, TCI_FILTER_COUNT_MEMORY, SYS_memfd_create, { 0 }, E(EPERM) },
        { STRICT, 0, SYS_shmat, { 0 }, E(EPERM) },
        { STRICT, 0, SYS_inotify_init1, { 0 }, E(EPERM) },
    };
    (void)state;
    check(list, tci_array_size(list));
}

/* ---- allow and deny ---- */

static uint32_t with(int profile, const char *allow, const char *deny, int number, uint64_t first)
{
    const uint64_t args[6] = { first, SOCK_STREAM };
    struct tci_filter filter = { 0 };
    struct tc_error error;
    uint32_t answer;
    if (compile(profile, allow, deny, 0, 0, &filter, &error) < 0)
        fail_msg("%s", error.message);
    answer = answer_to(&filter, NATIVE, (uint32_t)number, args);
    tci_filter_free(&filter);
    return answer;
}

static void test_allow_adds_a_call_as_default_has_it(void **state)
{
    (void)state;
    assert_int_equal(with(DEFAULT, "mbind", NULL, SYS_mbind, 0), ALLOW);
    assert_int_equal(with(STRICT, "socket", NULL, SYS_socket, AF_INET), ALLOW);
    assert_int_equal(with(STRICT, "socket", NULL, SYS_socket, AF_VSOCK), E(EAFNOSUPPORT));
    assert_int_equal(with(PURE, "clone", NULL, SYS_clone, SIGCHLD), ALLOW);
    assert_int_equal(with(PURE, "clone", NULL, SYS_clone, CLONE_NEWUSER), E(EPERM));
    assert_int_equal(with(PURE, "kill", NULL, SYS_kill, 42), ALLOW);
    assert_int_equal(with(STRICT, "prlimit64", NULL, SYS_prlimit64, 42), ALLOW);
    assert_int_equal(with(PURE, "statmount", NULL, 457, 0), ALLOW);
}

static void test_deny_takes_a_call_away(void **state)
{
    (void)state;
    assert_int_equal(with(DEFAULT, NULL, "socket", SYS_socket, AF_INET), E(EPERM));
    assert_int_equal(with(DEFAULT, NULL, "close_range", SYS_close_range, 0), E(ENOSYS));
    assert_int_equal(with(DEFAULT, "mbind", "mbind", SYS_mbind, 0), E(EPERM));
    assert_int_equal(with(DEFAULT, NULL, "execveat", SYS_execveat, 0), E(EPERM));
    assert_int_equal(with(DEFAULT, NULL, "mount", SYS_mount, 0), E(EPERM));
}

static struct tc_error refused(int profile, const char *allow, const char *deny, unsigned flags)
{
    struct tci_filter filter = { 0 };
    struct tc_error error;
    assert_int_equal(compile(profile, allow, deny, flags, 0, &filter, &error), -1);
    assert_null(filter.code);
    assert_int_equal(error.code, TC_ERROR_POLICY);
    assert_true(error.remedy[0] != '\0');
    return error;
}

static void test_unknown_names_are_errors_with_the_nearest_one(void **state)
{
    struct tc_error error = refused(DEFAULT, "opennat", NULL, 0);
    (void)state;
    assert_non_null(strstr(error.message, "\"opennat\" is not a system call"));
    assert_string_equal(error.remedy, "did you mean \"openat\"?");
    error = refused(PURE, NULL, "soket", 0);
    assert_non_null(strstr(error.message, "syscalls.deny"));
    assert_string_equal(error.remedy, "did you mean \"socket\"?");
    error = refused(DEFAULT, "qqqqqqqqqqqq", NULL, 0);
    assert_non_null(strstr(error.remedy, "syscalls(2)"));
    (void)refused(DEFAULT, "", NULL, 0);
    error = refused(DEFAULT, "\x1b[31m", NULL, 0);
    assert_null(strchr(error.message, '\x1b'));
}

static void test_some_calls_may_never_be_allowed(void **state)
{
    static const char *const names[] = {
#define GROUP(id, reason)
#define CALL(name, x86_64, aarch64, profiles, rule) #name,
#include "backend/filter/syscalls_never.def"
    };
    static const char *const expected[] = {
        "mount",
        "umount2",
        "unshare",
        "setns",
        "ptrace",
        "bpf",
        "keyctl",
        "kexec_load",
        "init_module",
        "io_uring_setup",
        "userfaultfd",
        "perf_event_open",
        "process_vm_readv",
        "pidfd_getfd",
        "open_by_handle_at",
        "reboot",
        "swapon",
        "pivot_root",
        "chroot",
        "acct",
        "quotactl",
        "lookup_dcookie",
        "iopl",
        "ioperm",
        "clone3",
        "openat2",
        "kcmp",
        "move_mount",
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(names); i++)
        for (int profile = DEFAULT; profile <= PURE; profile++)
            assert_non_null(
                strstr(refused(profile, names[i], NULL, 0).message, "may never be allowed: "));
    for (size_t i = 0; i < tci_array_size(expected); i++)
        (void)refused(DEFAULT, expected[i], NULL, 0);
}

static void test_allow_cannot_undo_what_the_backend_needs(void **state)
{
    static const struct {
        unsigned flag;
        const char *name;
    } pairs[] = {
        { TCI_FILTER_NO_SOCKETS, "socket" },
        { TCI_FILTER_NO_TRUNCATE, "truncate" },
        { TCI_FILTER_KEEP_GROUP, "setsid" },
        { TCI_FILTER_NO_SIGNALS, "tgkill" },
        { TCI_FILTER_KEEP_CPUS, "sched_setaffinity" },
        { TCI_FILTER_SELF_ONLY, "process_mrelease" },
        { TCI_FILTER_LANDLOCK_GAPS, "fchmod" },
        { TCI_FILTER_NO_MEMFD, "memfd_create" },
        { TCI_FILTER_NO_IPC, "shmget" },
        { TCI_FILTER_COUNT_MEMORY, "memfd_secret" },
    };
    const uint64_t stranger[6] = { 42 };
    struct tci_filter filter = { 0 };
    struct tc_error error;
    (void)state;
    for (size_t i = 0; i < tci_array_size(pairs); i++)
        assert_non_null(strstr(refused(PURE, pairs[i].name, NULL, pairs[i].flag).message,
                               "cannot be allowed here: "));
    assert_int_equal(compile(PURE, "kill", NULL, TCI_FILTER_NO_SIGNALS, 0, &filter, &error), 0);
    assert_int_equal(answer_to(&filter, NATIVE, SYS_kill, stranger), E(EPERM));
    tci_filter_free(&filter);
}

static void test_the_command_must_be_able_to_start(void **state)
{
    (void)state;
    assert_non_null(strstr(refused(DEFAULT, NULL, "execve", 0).message, "could not start"));
}

static void test_other_architectures_have_no_tables(void **state)
{
    struct tci_filter filter = { 0 };
    struct tc_error error;
    (void)state;
    assert_int_equal(compile(DEFAULT, NULL, NULL, 0, AUDIT_ARCH_I386, &filter, &error), -1);
    assert_null(filter.code);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_profile_makes_namespaces),
        cmocka_unit_test(test_sockets_of_few_kinds),
        cmocka_unit_test(test_terminals_cannot_be_typed_into),
        cmocka_unit_test(test_no_setuid_files_and_no_devices),
        cmocka_unit_test(test_options_of_processes),
        cmocka_unit_test(test_other_processes_are_left_alone),
        cmocka_unit_test(test_what_landlock_does_not_rule),
        cmocka_unit_test(test_allow_adds_a_call_as_default_has_it),
        cmocka_unit_test(test_deny_takes_a_call_away),
        cmocka_unit_test(test_unknown_names_are_errors_with_the_nearest_one),
        cmocka_unit_test(test_some_calls_may_never_be_allowed),
        cmocka_unit_test(test_allow_cannot_undo_what_the_backend_needs),
        cmocka_unit_test(test_the_command_must_be_able_to_start),
        cmocka_unit_test(test_other_architectures_have_no_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
