/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: attempts of `toolcage selftest` on the kernel itself, on privileges, programs and limits. */
#include "cli/selftest.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { path_max = 4096, chunk = 1 << 20 };

/*
 * Every call here is made so that it fails even for root of the host: with a path that is not there,
 * a descriptor that is not open, or a number that means nothing. If a cage should not hold, nothing
 * happens. Refused means that the kernel did not even look at that: EPERM, EACCES or ENOSYS.
 */
static bool is_refused(long result)
{
    return result < 0 && (errno == EPERM || errno == ENOSYS || errno == EACCES);
}

#define CALL(number, ...)                                                                          \
    {                                                                                              \
#number, is_refused(syscall(number, __VA_ARGS__))                                          \
    }

struct tried {
    const char *name;
    bool refused;
};

static bool any_passed(const struct tried *all, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!all[i].refused) {
            (void)printf("%s reached the kernel\n", all[i].name);
            return true;
        }
    return false;
}

#define NOWHERE "/toolcage-selftest/nowhere"

bool selftest_kernel_calls(const struct selftest_target *t)
{
    const struct tried all[] = {
        CALL(SYS_bpf, -1, NULL, 0),
        CALL(SYS_perf_event_open, NULL, 0, -1, -1, ~0UL),
        CALL(SYS_userfaultfd, -1),
        CALL(SYS_io_uring_setup, 0, NULL),
        CALL(SYS_keyctl, -1, 0, 0, 0, 0),
        CALL(SYS_add_key, NULL, NULL, NULL, 0, 0),
        CALL(SYS_kexec_load, 0, ~0UL, NULL, ~0UL),
        CALL(SYS_init_module, NULL, 0, NULL),
        CALL(SYS_ptrace, -1, 0, NULL, NULL),
        CALL(SYS_process_vm_writev, t->pid, NULL, 0, NULL, 0, ~0UL),
        CALL(SYS_open_by_handle_at, -1, NULL, 0),
        CALL(SYS_swapon, NOWHERE, 0),
        CALL(SYS_reboot, 0, 0, 0, NULL),
        CALL(SYS_syslog, -1, NULL, 0),
        CALL(SYS_acct, NOWHERE),
        CALL(SYS_quotactl, ~0U, NULL, 0, NULL),
        CALL(SYS_sethostname, NULL, -1),
        CALL(SYS_clock_settime, -1, NULL),
    };
    return any_passed(all, sizeof all / sizeof all[0]);
}

bool selftest_namespaces(const struct selftest_target *t)
{
    /* With CLONE_FS these combinations are never possible; unshare concerns this process alone. */
    const struct tried all[] = {
        CALL(SYS_clone, CLONE_NEWUSER | CLONE_FS | SIGCHLD, NULL, NULL, NULL, 0L),
        CALL(SYS_clone, CLONE_NEWNS | CLONE_FS | SIGCHLD, NULL, NULL, NULL, 0L),
        CALL(SYS_clone3, NULL, 0),
        CALL(SYS_setns, -1, CLONE_NEWUSER),
        CALL(SYS_unshare, CLONE_NEWUSER),
        CALL(SYS_unshare, CLONE_NEWNS),
        CALL(SYS_unshare, CLONE_NEWNET),
    };
    (void)t;
    return any_passed(all, sizeof all / sizeof all[0]);
}

bool selftest_mounts(const struct selftest_target *t)
{
    const struct tried all[] = {
        CALL(SYS_mount, "none", NOWHERE, "tmpfs", 0, NULL),
        CALL(SYS_mount, NULL, NOWHERE, NULL, MS_REMOUNT | MS_BIND, NULL),
        CALL(SYS_umount2, NOWHERE, 0),
        CALL(SYS_pivot_root, NOWHERE, NOWHERE),
        CALL(SYS_chroot, NOWHERE),
        CALL(SYS_open_tree, -1, "", 0),
        CALL(SYS_fsopen, "toolcage-none", 0),
        CALL(SYS_move_mount, -1, "", -1, "", 0),
        CALL(SYS_mount_setattr, -1, "", 0, NULL, 0),
    };
    (void)t;
    return any_passed(all, sizeof all / sizeof all[0]);
}

bool selftest_push_terminal_input(const struct selftest_target *t)
{
    static const unsigned long requests[] = { TIOCSTI, TIOCSTI | (1UL << 32), 0x541cUL };
    char byte = 'x';
    (void)t;
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++)
        if (!is_refused(syscall(SYS_ioctl, 0, requests[i], &byte))) {
            (void)printf("ioctl %#lx reached the kernel\n", requests[i]);
            return true;
        }
    return false;
}

bool selftest_become_root(const struct selftest_target *t)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2] = { { 0 } };
    (void)t;
    if (syscall(SYS_capget, &header, data) == 0 &&
        (data[0].permitted | data[1].permitted | data[0].effective | data[0].inheritable)) {
        (void)printf("there are capabilities\n");
        return true;
    }
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) {
        (void)printf("new privileges are possible\n");
        return true;
    }
    if (geteuid() != 0 && setuid(0) == 0) {
        (void)printf("became root\n");
        return true;
    }
    return false;
}

/* ---- programs ------------------------------------------------------------------------------- */

static char echo[] = "/bin/echo", started[] = "started";

static bool starts(char *const argv[])
{
    char *none[] = { NULL };
    (void)execve(argv[0], argv, none); /* if it works, `echo` says so in our place */
    return false;
}

bool selftest_start_unlisted(const struct selftest_target *t)
{
    char *argv[] = { echo, started, NULL };
    (void)t;
    return starts(argv);
}

bool selftest_start_by_loader(const struct selftest_target *t)
{
    static char loaders[][32] = { "/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1" };
    (void)t;
    for (size_t i = 0; i < sizeof loaders / sizeof loaders[0]; i++) {
        char *argv[] = { loaders[i], echo, started, NULL };
        (void)starts(argv);
    }
    return false;
}

bool selftest_start_from_memory(const struct selftest_target *t)
{
    static char bytes[chunk];
    char *argv[] = { echo, started, NULL }, *none[] = { NULL };
    int from = open("/bin/echo", O_RDONLY | O_CLOEXEC), to = memfd_create("x", 0);
    ssize_t n;
    (void)t;
    if (from < 0)
        from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    while (to >= 0 && (n = read(from, bytes, sizeof bytes)) > 0)
        if (write(to, bytes, (size_t)n) != n)
            return false;
    if (to >= 0)
        (void)syscall(SYS_execveat, to, "", argv, none, AT_EMPTY_PATH);
    return false;
}

/* ---- limits ------------------------------------------------------------------------------------ */

bool selftest_fill_memory(const struct selftest_target *t)
{
    const size_t size = 256U << 20;
    char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)t;
    if (bytes == MAP_FAILED)
        return false;
    for (size_t i = 0; i < size; i += 4096)
        ((volatile char *)bytes)[i] = 1;
    (void)printf("touched %zu bytes\n", size);
    return true;
}

static bool fill(const char *path, size_t megabytes)
{
    static char bytes[chunk];
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    memset(bytes, 'x', sizeof bytes);
    for (size_t i = 0; i < megabytes; i++)
        if (write(fd, bytes, sizeof bytes) != (ssize_t)sizeof bytes)
            return false;
    (void)printf("wrote %zu MB to %s\n", megabytes, path);
    return true;
}

bool selftest_fill_tmpfs(const struct selftest_target *t)
{
    (void)t;
    return fill("/tmp/large", 256);
}

bool selftest_fill_scratch(const struct selftest_target *t)
{
    (void)t;
    return fill("/tmp/large", 16);
}

bool selftest_fill_disk(const struct selftest_target *t)
{
    char path[path_max];
    bool done = true;
    for (int i = 0; i < 128 && done; i++) {
        (void)snprintf(path, sizeof path, "%s/work/file-%d", t->directory, i);
        done = fill(path, 1) || i == 0;
    }
    return done;
}

bool selftest_fork_many(const struct selftest_target *t)
{
    (void)t;
    for (int i = 0; i < 64; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            (void)sleep(5);
            _exit(0);
        }
        if (pid < 0)
            return false;
    }
    (void)printf("started 64 processes\n");
    return true;
}

bool selftest_burn(const struct selftest_target *t)
{
    struct timespec start, now;
    (void)t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
    do
        (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    while (now.tv_sec - start.tv_sec < 10);
    (void)printf("computed for 10 seconds\n");
    return true;
}

bool selftest_open_many(const struct selftest_target *t)
{
    int opened = 0;
    (void)t;
    while (opened < 64 && open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0)
        opened++;
    if (opened == 64)
        (void)printf("opened 64 files\n");
    return opened == 64;
}

bool selftest_sleep_long(const struct selftest_target *t)
{
    (void)t;
    (void)signal(SIGTERM, SIG_IGN);
    (void)sleep(60);
    (void)printf("slept for a minute\n");
    return true;
}

/* Ends well; whether the one left behind has written is seen outside. */
bool selftest_outlive(const struct selftest_target *t)
{
    char path[path_max];
    if (fork() == 0) {
        (void)setsid();
        if (fork() != 0)
            _exit(0);
        for (int fd = 0; fd < 3; fd++)
            (void)close(fd);
        (void)usleep(300000);
        (void)snprintf(path, sizeof path, "%s/work/outlived", t->directory);
        (void)open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        _exit(0);
    }
    (void)usleep(20000);
    return true;
}

bool selftest_flood(const struct selftest_target *t)
{
    static char bytes[65536];
    (void)t;
    memset(bytes, 'x', sizeof bytes);
    for (int i = 0; i < 1024; i++)
        if (write(1, bytes, sizeof bytes) < 0)
            return false;
    return true;
}
