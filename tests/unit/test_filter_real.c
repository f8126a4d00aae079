/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of the system call filter in the kernel. Each attempt is made twice by a child of its
 * own: without the filter, where it must end in another way, and with it.
 */
#include "filter_support.h"

#include <linux/ioprio.h>
#include <signal.h>
#include <spawn.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FAILED_TO_INSTALL = 200, OUTPUT_MAX = 4096 };

/* In a child: from here on the filter is in force. */
static void install(const struct tci_filter *filter)
{
    struct sock_fprog program = { .len = filter->count, .filter = filter->code };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
        _exit(FAILED_TO_INSTALL);
}

static int wait_for(pid_t pid)
{
    int status;
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* ---- single calls: each returns 0 or an errno ---- */

static int result_of(long value)
{
    return value < 0 ? errno : 0;
}

static int end_child(long pid)
{
    if (pid == 0)
        _exit(0);
    if (pid < 0)
        return errno;
    return waitpid((pid_t)pid, NULL, __WALL) < 0 ? errno : 0;
}

static int try_clone_user(void)
{
    /* EINVAL: a new user namespace with a shared directory. */
    return end_child(syscall(SYS_clone, CLONE_NEWUSER | CLONE_FS | SIGCHLD, 0, 0, 0, 0));
}

static int try_clone(void)
{
    return end_child(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
}

static int try_clone3(void)
{
    return result_of(syscall(SYS_clone3, NULL, 0)); /* EINVAL */
}

static int try_openat2(void)
{
    return result_of(syscall(SYS_openat2, AT_FDCWD, "/", NULL, 0)); /* EINVAL */
}

static int try_io_uring(void)
{
    return result_of(syscall(SYS_io_uring_setup, 0, NULL));
}

static int try_ptrace(void)
{
    return result_of(syscall(SYS_ptrace, 0L, 0L, 0L, 0L)); /* PTRACE_TRACEME */
}

static int try_process_vm(void)
{
    char byte = 0, copy;
    struct iovec from = { &byte, 1 }, to = { &copy, 1 };
    return result_of(syscall(SYS_process_vm_readv, getpid(), &to, 1L, &from, 1L, 0L));
}

static int try_keyctl(void)
{
    return result_of(syscall(SYS_keyctl, 99999L, 0L, 0L, 0L, 0L));
}

static int try_chroot(void)
{
    return result_of(syscall(SYS_chroot, NULL)); /* EFAULT */
}

static int try_mount(void)
{
    return result_of(syscall(SYS_mount, NULL, NULL, NULL, 0L, NULL)); /* EFAULT */
}

static int try_kcmp(void)
{
    return result_of(syscall(SYS_kcmp, getpid(), getpid(), 1L, 0L, 0L));
}

static int try_vsock(void)
{
    return result_of(socket(AF_VSOCK, 99, 0));
}

static int try_packet(void)
{
    return result_of(socket(AF_INET, SOCK_PACKET, 0));
}

static int try_uevents(void)
{
    return result_of(socket(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT));
}

static int try_tcp(void)
{
    return result_of(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

static int try_pair(void)
{
    int pair[2];
    return result_of(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
}

static int try_typing(void)
{
    return result_of(ioctl(-1, TIOCSTI, "x")); /* EBADF */
}

static int try_typing_high(void)
{
    return result_of(syscall(SYS_ioctl, -1L, 0x100000000UL | TIOCSTI, "x"));
}

static int try_other_ioctl(void)
{
    return result_of(ioctl(-1, SIOCGIFCONF, NULL)); /* EBADF */
}

static int try_setuid_file(void)
{
    return result_of(fchmod(-1, 04755)); /* EBADF */
}

static int try_make_setuid_file(void)
{
    return result_of(open("", O_CREAT | O_WRONLY | O_CLOEXEC, 04755)); /* ENOENT */
}

static int try_plain_chmod(void)
{
    int fd = memfd_create("test", MFD_CLOEXEC);
    return fd < 0 ? EIO : result_of(fchmod(fd, 0755));
}

static int try_any_chmod(void)
{
    return result_of(fchmod(-1, 0755)); /* EBADF */
}

static int try_device(void)
{
    return result_of(mknod("", S_IFCHR | 0600, 0)); /* ENOENT */
}

static int try_dumpable(void)
{
    return result_of(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
}

static int try_listener(void)
{
    return result_of(
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, NULL));
}

static int try_executable_data(void)
{
    return result_of(personality(READ_IMPLIES_EXEC));
}

static int try_lease(void)
{
    char path[] = "/tmp/filter-XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);
    return fd < 0 || unlink(path) < 0 ? EIO : result_of(fcntl(fd, F_SETLEASE, F_WRLCK));
}

static int try_huge_pages(void)
{
    /* EINVAL: no page size has 2^1 bytes. */
    return result_of((long)mmap(NULL, 4096, PROT_READ,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | 1 << MAP_HUGE_SHIFT, -1,
                                0));
}

static int try_kill_parent(void)
{
    return result_of(kill(getppid(), 0));
}

static int try_kill_group(void)
{
    return result_of(kill(0, 0));
}

static int try_thread_signal(void)
{
    return result_of(syscall(SYS_tgkill, getpid(), gettid(), 0));
}

static int try_signal_by_descriptor(void)
{
    int pair[2];
    if (pipe(pair) < 0)
        return EIO;
    return result_of(fcntl(pair[0], F_SETOWN, getppid()));
}

static int try_limits_of_parent(void)
{
    return result_of(prlimit(getppid(), RLIMIT_NOFILE, NULL, &(struct rlimit){ 0 }));
}

static int try_own_limits(void)
{
    return result_of(prlimit(0, RLIMIT_NOFILE, NULL, &(struct rlimit){ 0 }));
}

static int try_session(void)
{
    return result_of(setsid());
}

static int try_death_signal(void)
{
    return result_of(prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0));
}

static int try_affinity(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) < 0)
        return EIO;
    return result_of(sched_setaffinity(0, sizeof set, &set));
}

static int try_truncate(void)
{
    return result_of(truncate("", 0)); /* ENOENT */
}

static int try_open_truncate(void)
{
    return result_of(open("", O_RDONLY | O_TRUNC)); /* ENOENT */
}

static int try_memfd(void)
{
    return result_of(memfd_create("test", MFD_CLOEXEC));
}

static int try_shared_memory(void)
{
    return result_of(shmctl(-1, IPC_RMID, NULL)); /* EINVAL */
}

static int try_attribute(void)
{
    return result_of(syscall(SYS_getxattr, "", "user.x", NULL, 0L)); /* ENOENT */
}

static int try_inotify(void)
{
    return result_of(inotify_init1(IN_CLOEXEC));
}

#define F(flag) TCI_FILTER_##flag

static const struct {
    const char *name;
    int (*attempt)(void);
    int profile;
    unsigned flags;
    int expected; /* 0: it must work, and so it must without a filter */
} attempts[] = {
    { "clone with a user namespace", try_clone_user, DEFAULT, 0, EPERM },
    { "clone", try_clone, DEFAULT, 0, 0 },
    { "clone", try_clone, STRICT, 0, 0 },
    { "clone", try_clone, PURE, 0, EPERM },
    { "clone3", try_clone3, DEFAULT, 0, ENOSYS },
    { "openat2", try_openat2, DEFAULT, 0, ENOSYS },
    { "io_uring", try_io_uring, DEFAULT, 0, ENOSYS },
    { "ptrace", try_ptrace, DEFAULT, 0, EPERM },
    { "process_vm_readv", try_process_vm, DEFAULT, 0, EPERM },
    { "keyctl", try_keyctl, DEFAULT, 0, EPERM },
    { "chroot", try_chroot, DEFAULT, 0, EPERM },
    { "mount", try_mount, DEFAULT, 0, EPERM },
    { "kcmp", try_kcmp, DEFAULT, 0, EPERM },
    { "AF_VSOCK", try_vsock, DEFAULT, 0, EAFNOSUPPORT },
    { "SOCK_PACKET", try_packet, DEFAULT, 0, EPROTONOSUPPORT },
    { "netlink uevents", try_uevents, DEFAULT, 0, EPROTONOSUPPORT },
    { "TCP", try_tcp, DEFAULT, 0, 0 },
    { "TCP", try_tcp, STRICT, 0, EPERM },
    { "TCP", try_tcp, PURE, 0, EPERM },
    { "TCP", try_tcp, DEFAULT, F(NO_SOCKETS), EPERM },
    { "socketpair", try_pair, STRICT, 0, 0 },
    { "socketpair", try_pair, PURE, 0, EPERM },
    { "socketpair", try_pair, DEFAULT, F(NO_SOCKETS), EPERM },
    { "TIOCSTI", try_typing, DEFAULT, 0, EPERM },
    { "TIOCSTI with a high bit", try_typing_high, DEFAULT, 0, EPERM },
    { "SIOCGIFCONF", try_other_ioctl, STRICT, 0, ENOTTY },
    { "chmod 4755", try_setuid_file, DEFAULT, 0, EPERM },
    { "open with mode 4755", try_make_setuid_file, PURE, 0, EPERM },
    { "chmod 755", try_plain_chmod, STRICT, 0, 0 },
    { "chmod 755", try_any_chmod, PURE, 0, EPERM },
    { "chmod 755", try_any_chmod, DEFAULT, F(LANDLOCK_GAPS), EPERM },
    { "a device node", try_device, DEFAULT, 0, EPERM },
    { "PR_SET_DUMPABLE", try_dumpable, DEFAULT, 0, EPERM },
    { "a seccomp listener", try_listener, DEFAULT, 0, EINVAL },
    { "READ_IMPLIES_EXEC", try_executable_data, DEFAULT, 0, EPERM },
    { "a lease", try_lease, DEFAULT, 0, EPERM },
    { "huge pages", try_huge_pages, DEFAULT, 0, ENOMEM },
    { "kill of the parent", try_kill_parent, PURE, 0, EPERM },
    { "kill of the parent", try_kill_parent, DEFAULT, F(NO_SIGNALS), EPERM },
    { "kill of the own group", try_kill_group, PURE, F(NO_SIGNALS), 0 },
    { "tgkill of oneself", try_thread_signal, PURE, 0, 0 },
    { "tgkill", try_thread_signal, PURE, F(NO_SIGNALS), EPERM },
    { "F_SETOWN", try_signal_by_descriptor, PURE, 0, EPERM },
    { "F_SETOWN", try_signal_by_descriptor, DEFAULT, F(NO_SIGNALS), EPERM },
    { "limits of the parent", try_limits_of_parent, STRICT, 0, EPERM },
    { "limits of the parent", try_limits_of_parent, DEFAULT, F(SELF_ONLY), EPERM },
    { "own limits", try_own_limits, PURE, F(SELF_ONLY), 0 },
    { "setsid", try_session, DEFAULT, F(KEEP_GROUP), EPERM },
    { "setsid", try_session, DEFAULT, 0, 0 },
    { "PR_SET_PDEATHSIG", try_death_signal, PURE, F(KEEP_GROUP), EPERM },
    { "sched_setaffinity", try_affinity, DEFAULT, F(KEEP_CPUS), EPERM },
    { "sched_setaffinity", try_affinity, DEFAULT, 0, 0 },
    { "truncate", try_truncate, DEFAULT, F(NO_TRUNCATE), EPERM },
    { "open with O_RDONLY and O_TRUNC", try_open_truncate, PURE, F(NO_TRUNCATE), EPERM },
    { "memfd", try_memfd, DEFAULT, F(NO_MEMFD), EPERM },
    { "memfd", try_memfd, STRICT, 0, 0 },
    { "shared memory", try_shared_memory, STRICT, 0, EPERM },
    { "shared memory", try_shared_memory, DEFAULT, F(NO_IPC), EPERM },
    { "getxattr", try_attribute, PURE, F(LANDLOCK_GAPS), EOPNOTSUPP },
    { "inotify", try_inotify, STRICT, 0, EPERM },
    { "inotify", try_inotify, DEFAULT, 0, 0 },
};

/* The errno of an attempt, with a filter or without (NULL). */
static int errno_of(int (*attempt)(void), const struct tci_filter *filter)
{
    pid_t pid = fork();
    int status;
    if (pid == 0) {
        if (filter)
            install(filter);
        _exit(attempt());
    }
    status = wait_for(pid);
    if (!WIFEXITED(status))
        fail_msg("ended by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

static void test_refused_calls_are_refused_by_the_kernel(void **state)
{
    (void)state;
    for (size_t i = 0; i < tci_array_size(attempts); i++) {
        struct tci_filter filter = must_compile(attempts[i].profile, attempts[i].flags, 0);
        int without = errno_of(attempts[i].attempt, NULL);
        int with = errno_of(attempts[i].attempt, &filter);
        tci_filter_free(&filter);
        if (with != attempts[i].expected)
            fail_msg("%s: %s", attempts[i].name, strerror(with));
        /* Where another filter is in force already, its answers may be the same. */
        if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 0 &&
            (attempts[i].expected ? without == with : without != 0))
            fail_msg("%s, without a filter: %s", attempts[i].name, strerror(without));
    }
}

/* No argument is valid: a filter with a hole would show another errno, and do no harm. */
static int try_never(void)
{
    static const struct {
        const char *name;
        int number[2];
    } calls[] = {
#define NONE (-1)
#define GROUP(id, reason)
#define CALL(name, x86_64, aarch64, profiles, rule) { #name, { x86_64, aarch64 } },
#include "backend/filter/syscalls_never.def"
    };
    (void)setsid();
    for (size_t i = 0; i < tci_array_size(calls); i++) {
        int number = calls[i].number[NATIVE == ARM];
        if (number != NONE && (syscall(number, -1L, -1L, -1L, -1L, -1L, -1L) != -1 ||
                               errno != (number < 424 ? EPERM : ENOSYS))) {
            (void)fprintf(stderr, "%s: %s\n", calls[i].name, strerror(errno));
            return 1;
        }
    }
    return result_of(syscall(511)) == ENOSYS ? 0 : 1;
}

static void test_calls_that_nobody_may_have_are_refused_by_the_kernel(void **state)
{
    (void)state;
    for (int profile = DEFAULT; profile <= PURE; profile++) {
        struct tci_filter filter = must_compile(profile, 0, 0);
        assert_int_equal(errno_of(try_never, &filter), 0);
        tci_filter_free(&filter);
    }
}

/* vfs_mkdir() masks the bits; were that to change, mkdir would need a rule. */
static void test_mkdir_makes_no_setuid_directory(void **state)
{
    char path[] = "/tmp/filter-XXXXXX", inner[64];
    struct stat status;
    (void)state;
    assert_non_null(mkdtemp(path));
    (void)snprintf(inner, sizeof inner, "%s/inner", path);
    assert_int_equal(mkdir(inner, 06755), 0);
    assert_int_equal(stat(inner, &status), 0);
    assert_int_equal(rmdir(inner), 0);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(status.st_mode & 06000, 0);
}

#ifdef __x86_64__
static int call_x32(void)
{
    return result_of(syscall(0x40000000L | SYS_getpid));
}

static int call_i386(void)
{
    long result = 20; /* getpid there, writev here */
    __asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
    return result == getpid() ? 0 : 1;
}

static void test_other_ways_into_the_kernel_end_the_process(void **state)
{
    static int (*const ways[])(void) = { call_x32, call_i386 };
    (void)state;
    for (int profile = DEFAULT; profile <= PURE; profile++)
        for (size_t i = 0; i < tci_array_size(ways); i++) {
            struct tci_filter filter = must_compile(profile, 0, 0);
            pid_t pid = fork();
            int status;
            if (pid == 0) {
                install(&filter);
                _exit(ways[i]());
            }
            status = wait_for(pid);
            tci_filter_free(&filter);
            assert_true(WIFSIGNALED(status));
            /* A kernel without 32-bit programs sends SIGSEGV. */
            assert_true(WTERMSIG(status) == SIGSYS || (i == 1 && WTERMSIG(status) == SIGSEGV));
        }
}
#endif

static void test_abort_ends_the_process_under_every_filter(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct tci_filter filter = must_compile(PURE, i ? TCI_FILTER_NO_SIGNALS : 0, 0);
        pid_t pid = fork();
        int status;
        if (pid == 0) {
            (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* no core file */
            (void)signal(SIGSEGV, SIG_DFL);           /* the test library has handlers */
            (void)signal(SIGILL, SIG_DFL);
            install(&filter);
            abort();
        }
        status = wait_for(pid);
        tci_filter_free(&filter);
        assert_true(WIFSIGNALED(status));
        if (i == 0)
            assert_int_equal(WTERMSIG(status), SIGABRT);
        else
            assert_int_not_equal(WTERMSIG(status), SIGABRT); /* as filter.h says */
    }
}

/* ---- whole programs ---- */

/* What the process backend sets, on a kernel without any help. */
#define PROCESS                                                                                    \
    (TCI_FILTER_NO_NAMESPACES | TCI_FILTER_KEEP_GROUP | TCI_FILTER_NO_SOCKETS |                    \
     TCI_FILTER_NO_TRUNCATE | TCI_FILTER_NO_SIGNALS | TCI_FILTER_KEEP_CPUS)

static const struct {
    int profile;
    unsigned flags;
    bool optional; /* the machine of a developer may not have it */
    const char *argv[5];
    const char *output; /* how it begins */
} programs[] = {
    { DEFAULT, 0, false, { "/usr/bin/python3", "-c", "print(6*7)" }, "42\n" },
    { DEFAULT, 0, false, { "/bin/bash", "-c", "echo $(echo a | cat; ls -d /) & wait" }, "a /\n" },
    { DEFAULT,
      0,
      false,
      { "/usr/bin/python3", "-c",
        "import subprocess as s, threading as t, socket, asyncio, tempfile, os\n"
        "x = t.Thread(target=lambda: None); x.start(); x.join()\n"
        "asyncio.run(asyncio.sleep(0))\n"
        "socket.socket(); tempfile.TemporaryFile(); os.sched_getaffinity(0)\n"
        "print(s.check_output(['/bin/echo', 'ok'], text=True))" },
      "ok\n" },
    { DEFAULT, 0, false, { "/usr/bin/gcc", "-xc", "-S", "-o-", "/dev/null" }, "\t.file" },
    { DEFAULT, 0, true, { "/usr/bin/git", "--version" }, "git version" },
    { DEFAULT, 0, true, { "/usr/bin/curl", "--version" }, "curl " },
    { DEFAULT,
      0,
      true,
      { "/usr/bin/node", "-e", "console.log(require('child_process').execSync('echo ok')+'')" },
      "ok\n" },
    { DEFAULT, PROCESS, false, { "/bin/bash", "-c", "echo $(echo a | cat)" }, "a\n" },
    { STRICT,
      0,
      false,
      { "/usr/bin/python3", "-c",
        "import subprocess as s, asyncio\n"
        "asyncio.run(asyncio.sleep(0))\n"
        "print(s.check_output(['/bin/echo', 'ok'], text=True))" },
      "ok\n" },
    { STRICT, 0, false, { "/bin/bash", "-c", "ls -l / | sort | grep -c ' usr$'" }, "1\n" },
    { STRICT, 0, false, { "/usr/bin/gcc", "-xc", "-S", "-o-", "/dev/null" }, "\t.file" },
    { STRICT, 0, true, { "/usr/bin/git", "--version" }, "git version" },
    { STRICT, 0, true, { "/usr/bin/node", "-e", "console.log(6*7)" }, "42\n" },
    { PURE, 0, false, { "/usr/bin/python3", "-c", "print(1)" }, "1\n" },
    { PURE,
      PROCESS,
      false,
      { "/usr/bin/python3", "-c",
        "import json, time, os, tempfile, random\n"
        "f = tempfile.TemporaryFile(); f.write(b'x'); f.flush(); os.listdir('/')\n"
        "time.sleep(0); print(json.dumps({'a': 1}))" },
      "{\"a\": 1}\n" },
    { PURE, PROCESS, false, { "/bin/cat", "/proc/self/comm" }, "cat\n" },
    { PURE, PROCESS, false, { "/bin/grep", "-c", "", "/proc/self/comm" }, "1\n" },
    { PURE, PROCESS, false, { "/usr/bin/sort", "/proc/self/comm" }, "sort\n" },
    { PURE, PROCESS, false, { "/bin/ls", "-ld", "/" }, "d" },
    { PURE, PROCESS, true, { "/bin/busybox", "echo", "static" }, "static\n" },
    { PURE, PROCESS, false, { "/bin/bash", "-c", "/bin/true & echo $?" }, "" },
};

/* Runs one with its streams on pipes; its status, and its output in `output`. */
static int run(size_t index, char output[OUTPUT_MAX])
{
    struct tci_filter filter = must_compile(programs[index].profile, programs[index].flags, 0);
    size_t length = 0;
    ssize_t got;
    int pair[2];
    pid_t pid;
    assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        char *const environment[] = { (char[]){ "PATH=/usr/bin:/bin" }, (char[]){ "HOME=/tmp" },
                                      NULL };
        char *argv[6] = { NULL };
        for (size_t i = 0; i < 5 && programs[index].argv[i]; i++)
            argv[i] = strdup(programs[index].argv[i]);
        if (dup2(pair[1], STDOUT_FILENO) < 0 || setsid() < 0)
            _exit(1);
        install(&filter);
        (void)execve(argv[0], argv, environment);
        _exit(127);
    }
    (void)close(pair[1]);
    while (length < OUTPUT_MAX - 1 &&
           (got = read(pair[0], output + length, OUTPUT_MAX - 1 - length)) > 0)
        length += (size_t)got;
    output[length] = '\0';
    (void)close(pair[0]);
    tci_filter_free(&filter);
    return wait_for(pid);
}

static void test_ordinary_programs_work(void **state)
{
    char output[OUTPUT_MAX];
    (void)state;
    for (size_t i = 0; i + 1 < tci_array_size(programs); i++) {
        int status;
        if (access(programs[i].argv[0], X_OK) < 0) {
            if (!programs[i].optional)
                fail_msg("%s is missing", programs[i].argv[0]);
            print_message("# not here: %s\n", programs[i].argv[0]);
            continue;
        }
        status = run(i, output);
        if (status != 0 || strncmp(output, programs[i].output, strlen(programs[i].output)) != 0)
            fail_msg("profile %d: %s %s: status %#x, output %s", programs[i].profile,
                     programs[i].argv[0], programs[i].argv[1], status, output);
    }
}

static void test_pure_starts_no_second_process(void **state)
{
    char output[OUTPUT_MAX];
    (void)state;
    assert_int_not_equal(run(tci_array_size(programs) - 1, output), 0);
    assert_string_equal(output, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_calls_are_refused_by_the_kernel),
        cmocka_unit_test(test_calls_that_nobody_may_have_are_refused_by_the_kernel),
        cmocka_unit_test(test_mkdir_makes_no_setuid_directory),
#ifdef __x86_64__
        cmocka_unit_test(test_other_ways_into_the_kernel_end_the_process),
#endif
        cmocka_unit_test(test_abort_ends_the_process_under_every_filter),
        cmocka_unit_test(test_ordinary_programs_work),
        cmocka_unit_test(test_pure_starts_no_second_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
