/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the host that run in cages: well-behaved ones, and ones that want to get out. */
#include "handler_host.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((format(printf, 2, 3))) static void say(const struct tc_handler_call *call,
                                                      const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    (void)call->reply(call, text, strlen(text));
}

/* ---- well-behaved ---------------------------------------------------------------------------- */

static int echo(const struct tc_handler_call *call)
{
    char *copy = malloc(call->arguments_length + 1); /* works, whatever other threads were doing */
    if (!copy || call->context != &host)
        return 3;
    memcpy(copy, call->arguments_json, call->arguments_length);
    (void)call->reply(call, copy, call->arguments_length);
    free(copy);
    return 0;
}

static int seven(const struct tc_handler_call *call)
{
    (void)call;
    return 7;
}

static int secret(const struct tc_handler_call *call)
{
    return call->reply(call, host.secret, strlen(host.secret)) < 0;
}

/* Needs more than the small stack that a process is started on. */
static int deep(const struct tc_handler_call *call)
{
    volatile char room[1 << 20];
    for (size_t i = 0; i < sizeof room; i += 4096)
        room[i] = (char)i;
    say(call, "deep %d", room[8192]);
    return 0;
}

static int child_of_mine(const struct tc_handler_call *call)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        execlp("sh", "sh", "-c", "echo from a program; exit 5", (char *)NULL);
        _exit(9);
    }
    (void)waitpid(pid, &status, 0);
    say(call, "status %d", WEXITSTATUS(status));
    return 0;
}

static int write_file(const struct tc_handler_call *call)
{
    int fd = open("/tmp/made.txt", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    (void)call;
    return fd < 0 || write(fd, "made\n", 5) != 5;
}

/* ---- in trouble ------------------------------------------------------------------------------ */

static int crash(const struct tc_handler_call *call)
{
    (void)call;
    (void)raise(SIGSEGV);
    return 0;
}

static int abort_now(const struct tc_handler_call *call)
{
    (void)call;
    abort();
}

static int spin(const struct tc_handler_call *call)
{
    (void)call;
    for (volatile unsigned i = 0; i < 1; i *= 2)
        ;
    return 0;
}

static int sleep_long(const struct tc_handler_call *call)
{
    (void)call;
    return (int)sleep(1000);
}

static int memory(const struct tc_handler_call *call)
{
    (void)call;
    for (;;) {
        /* Not malloc(): a sanitizer's gives up in its own way when the kernel refuses. */
        void *block = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                           0);
        if (block == MAP_FAILED)
            return 4;
        memset(block, 1, 1 << 20);
    }
}

static int flood(const struct tc_handler_call *call)
{
    static const char text[4096] = "x";
    while (call->reply(call, text, sizeof text) == 0)
        ;
    return 0;
}

static int bomb(const struct tc_handler_call *call)
{
    int made = 0;
    while (made < 5000) {
        pid_t pid = fork();
        if (pid == 0)
            (void)sleep(100);
        if (pid == 0)
            _exit(0);
        if (pid < 0)
            break;
        made++;
    }
    say(call, "%d", made);
    return made < 5000;
}

/* Leaves somebody behind. */
static int orphan(const struct tc_handler_call *call)
{
    if (fork() == 0) {
        (void)sleep(1000);
        _exit(0);
    }
    say(call, "left");
    return 0;
}

/* ---- hostile --------------------------------------------------------------------------------- */

static int touch_shared(const struct tc_handler_call *call)
{
    (void)call;
    memcpy(host.shared, "after!", 7);
    return 0;
}

static int touch_file(const struct tc_handler_call *call)
{
    (void)call;
    if (mprotect(host.mapped, 4096, PROT_READ | PROT_WRITE) < 0)
        return 5;
    host.mapped[0] = 66;
    return 0;
}

static int connect_to(const char *address, int port)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), r;
    (void)inet_pton(AF_INET, address, &to.sin_addr);
    r = fd < 0 ? -1 : connect(fd, (struct sockaddr *)&to, sizeof to);
    if (fd >= 0)
        close(fd);
    return r;
}

/* Names of what worked and must not have; the arguments are {"path":"...","port":N} of a canary. */
static int escape(const struct tc_handler_call *call)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2] = { { 0 } };
    char path[512] = "";
    const char *from = strstr(call->arguments_json, "\"path\":\"");
    const char *number = strstr(call->arguments_json, "\"port\":");
    struct stat status;
    if (from)
        (void)sscanf(from + 8, "%511[^\"]", path);
    if (!from || open(path, O_RDONLY | O_CLOEXEC) >= 0)
        say(call, "file ");
    if (open("/etc/shadow", O_RDONLY | O_CLOEXEC) >= 0 || open("/root/.", O_RDONLY) >= 0)
        say(call, "shadow ");
    if (chdir("../../../../../..") == 0 && open(path + 1, O_RDONLY | O_CLOEXEC) >= 0)
        say(call, "cwd ");
    if (!number || connect_to("127.0.0.1", atoi(number + 7)) == 0)
        say(call, "network ");
    if (kill(host.pid, 0) == 0)
        say(call, "kill ");
    if (getppid() > 1 && kill(getppid(), SIGKILL) == 0 && !from)
        say(call, "parent ");
    if (ptrace(PTRACE_ATTACH, host.pid, NULL, NULL) == 0)
        say(call, "ptrace ");
    if (syscall(SYS_pidfd_open, host.pid, 0) >= 0)
        say(call, "pidfd ");
    for (int fd = 3; fd < 1024; fd++)
        if (fcntl(fd, F_GETFD) >= 0 && fstat(fd, &status) == 0 && !S_ISDIR(status.st_mode))
            say(call, "fd%d ", fd);
    if (write(host.pipe[1], "x", 1) == 1 || write(host.file, "x", 1) == 1)
        say(call, "write ");
    if (unshare(CLONE_NEWUSER) == 0)
        say(call, "unshare ");
    if (setuid(0) == 0 || setgid(0) == 0)
        say(call, "setuid ");
    if (mount("none", "/tmp", "tmpfs", 0, NULL) == 0 || chroot("/tmp") == 0)
        say(call, "mount ");
    if (syscall(SYS_capget, &header, data) < 0 || data[0].permitted || data[0].effective ||
        data[0].inheritable || data[1].permitted)
        say(call, "capabilities ");
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
        say(call, "privileges ");
    if (prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN, 0, 0, 0) == 1 && geteuid() == 1000)
        say(call, "bounding ");
    if (open("/proc/1/mem", O_RDONLY) >= 0 || open("/proc/1/root/.", O_RDONLY) >= 0)
        say(call, "init ");
    say(call, "done");
    return 0;
}

/* Who it is, as the kernel says. */
static int identity(const struct tc_handler_call *call)
{
    char line[256];
    FILE *status = fopen("/proc/self/status", "re");
    say(call, "{\"pid\":%d,\"parent\":%d,\"uid\":%d,\"gid\":%d,\"session\":%d", getpid(), getppid(),
        getuid(), getgid(), getsid(0));
    while (status && fgets(line, sizeof line, status))
        if (strncmp(line, "Seccomp:", 8) == 0)
            say(call, ",\"seccomp\":%d", atoi(line + 8));
    say(call, "}");
    return 0;
}

/* ---------------------------------------------------------------------------------------------- */

tc_handler *host_function(const char *name)
{
    static const struct {
        const char *name;
        tc_handler *function;
    } table[] = {
        { "echo", echo },
        { "seven", seven },
        { "secret", secret },
        { "deep", deep },
        { "child", child_of_mine },
        { "write_file", write_file },
        { "crash", crash },
        { "abort", abort_now },
        { "spin", spin },
        { "sleep", sleep_long },
        { "memory", memory },
        { "flood", flood },
        { "bomb", bomb },
        { "orphan", orphan },
        { "touch_shared", touch_shared },
        { "touch_file", touch_file },
        { "escape", escape },
        { "identity", identity },
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(table[i].name, name) == 0)
            return table[i].function;
    exit(96);
}
