/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: a kernel that lacks something. The calls of a feature fail in it as they do where it was
 * never built in, or where the administrator has turned it off.
 *
 *   hide-feature FEATURE[,FEATURE...] COMMAND...     hide-feature --list
 *
 * "landlock-abi=N" answers the question for Landlock's version with N and leaves the rest alone:
 * that answer is a number and not an error, so a supervisor of the filter gives it.
 */
#include <errno.h>
#include <linux/sched.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct feature {
    const char *name;
    const char *call;
    int error;
    int argument;              /* -1: whatever its arguments */
    unsigned long mask, value; /* or only where (argument & mask) == value */
};

enum { NO_NEW_PRIVS = 38, SET_SECCOMP = 22 };

/* clone3 hides its flags from a filter: where a kind of namespace is hidden, it is not there. */
#define NAMESPACE(name, flag, error)                                                               \
    { name, "unshare", error, 0, flag, flag }, { name, "clone", error, 0, flag, flag },            \
    {                                                                                              \
        name, "clone3", ENOSYS, -1, 0, 0                                                           \
    }

static const struct feature features[] = {
    { "landlock", "landlock_create_ruleset", ENOSYS, -1, 0, 0 },
    { "landlock", "landlock_add_rule", ENOSYS, -1, 0, 0 },
    { "landlock", "landlock_restrict_self", ENOSYS, -1, 0, 0 },
    { "landlock-off", "landlock_create_ruleset", EOPNOTSUPP, -1, 0, 0 },
    { "landlock-late", "landlock_restrict_self", EPERM, -1, 0, 0 },
    NAMESPACE("userns", CLONE_NEWUSER, EPERM),
    NAMESPACE("userns-full", CLONE_NEWUSER, ENOSPC),
    NAMESPACE("mountns", CLONE_NEWNS, EINVAL),
    NAMESPACE("pidns", CLONE_NEWPID, EINVAL),
    NAMESPACE("netns", CLONE_NEWNET, EINVAL),
    NAMESPACE("ipcns", CLONE_NEWIPC, EINVAL),
    NAMESPACE("utsns", CLONE_NEWUTS, EINVAL),
    NAMESPACE("cgroupns", CLONE_NEWCGROUP, EINVAL),
    { "timens", "unshare", EINVAL, 0, 0x80, 0x80 },
    { "openat2", "openat2", ENOSYS, -1, 0, 0 },
    { "mount-api", "open_tree", ENOSYS, -1, 0, 0 },
    { "mount-api", "move_mount", ENOSYS, -1, 0, 0 },
    { "mount-api", "fsopen", ENOSYS, -1, 0, 0 },
    { "mount-api", "fsmount", ENOSYS, -1, 0, 0 },
    { "mount-api", "mount_setattr", ENOSYS, -1, 0, 0 },
    { "mount-setattr", "mount_setattr", ENOSYS, -1, 0, 0 },
    { "mount", "mount", EPERM, -1, 0, 0 },
    { "mount", "fsmount", EPERM, -1, 0, 0 },
    { "mount", "move_mount", EPERM, -1, 0, 0 },
    { "pivot-root", "pivot_root", EPERM, -1, 0, 0 },
    { "clone3", "clone3", ENOSYS, -1, 0, 0 },
    { "pidfd", "pidfd_open", ENOSYS, -1, 0, 0 },
    { "pidfd", "pidfd_send_signal", ENOSYS, -1, 0, 0 },
    { "memfd", "memfd_create", ENOSYS, -1, 0, 0 },
    { "close-range", "close_range", ENOSYS, -1, 0, 0 },
    { "execveat", "execveat", ENOSYS, -1, 0, 0 },
    { "statx", "statx", ENOSYS, -1, 0, 0 },
    { "seccomp", "seccomp", ENOSYS, -1, 0, 0 },
    { "seccomp", "prctl", EINVAL, 0, 0xffffffff, SET_SECCOMP },
    { "no-new-privs", "prctl", EINVAL, 0, 0xffffffff, NO_NEW_PRIVS },
    { "capset", "capset", EPERM, -1, 0, 0 },
    { "rlimits", "prlimit64", EPERM, -1, 0, 0 },
    { "rlimits", "setrlimit", EPERM, -1, 0, 0 },
    { "sethostname", "sethostname", EPERM, -1, 0, 0 },
    { "setsid", "setsid", EPERM, -1, 0, 0 },
    { "inotify", "inotify_init1", ENOSYS, -1, 0, 0 },
    { "eventfd", "eventfd2", ENOSYS, -1, 0, 0 },
};

static int list(void)
{
    const char *last = "";
    for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++) {
        if (strcmp(last, features[i].name) != 0)
            puts(last = features[i].name);
    }
    return 0;
}

/* Our own filter is installed with these calls: they are refused by the second of two. */
static int hide(scmp_filter_ctx filter, const char *name)
{
    int found = -1;
    for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++) {
        const struct feature *f = &features[i];
        if (strcmp(f->name, name) != 0)
            continue;
        int call = seccomp_syscall_resolve_name(f->call), result;
        unsigned argument = (unsigned)(f->argument < 0 ? 0 : f->argument);
        if (f->argument < 0)
            result = seccomp_rule_add(filter, SCMP_ACT_ERRNO((unsigned)f->error), call, 0);
        else
            result = seccomp_rule_add(filter, SCMP_ACT_ERRNO((unsigned)f->error), call, 1,
                                      SCMP_CMP64(argument, SCMP_CMP_MASKED_EQ, f->mask, f->value));
        if (result < 0 && result != -EEXIST)
            return -1;
        found = 0;
    }
    return found;
}

/* Answers the question for the version until everybody who could ask is gone. */
static void answer(int listener, long version)
{
    struct seccomp_notif *question = NULL;
    struct seccomp_notif_resp *reply = NULL;
    if (seccomp_notify_alloc(&question, &reply) < 0)
        _exit(64);
    for (;;) {
        /* Receiving from a listener that nobody is under any more fails with ENOENT for ever. */
        struct pollfd asked = { .fd = listener, .events = POLLIN };
        if (poll(&asked, 1, -1) < 0 && errno != EINTR)
            _exit(0);
        if (asked.revents & (POLLHUP | POLLERR))
            _exit(0);
        /* Where nobody is left to ask, a receive would wait for ever; the descriptor hangs up. */
        struct pollfd wait = { .fd = listener, .events = POLLIN };
        if (poll(&wait, 1, -1) < 0 || !(wait.revents & POLLIN))
            _exit(0);
        memset(question, 0, sizeof(*question));
        if (seccomp_notify_receive(listener, question) < 0) {
            if (errno == ENOENT || errno == EINTR)
                continue;
            _exit(0);
        }
        reply->id = question->id;
        reply->val = (int64_t)version;
        reply->error = 0;
        reply->flags = 0;
        seccomp_notify_respond(listener, reply);
    }
}

static int send_fd(int socket, int fd)
{
    char byte = 'x';
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = { 0 };
    struct iovec data = { &byte, 1 };
    struct msghdr message = { .msg_iov = &data,
                              .msg_iovlen = 1,
                              .msg_control = &control,
                              .msg_controllen = sizeof(control) };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd, sizeof(fd));
    return sendmsg(socket, &message, 0) < 0 ? -1 : 0;
}

static int receive_fd(int socket)
{
    char byte;
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = { 0 };
    struct iovec data = { &byte, 1 };
    struct msghdr message = { .msg_iov = &data,
                              .msg_iovlen = 1,
                              .msg_control = &control,
                              .msg_controllen = sizeof(control) };
    int fd = -1;
    if (recvmsg(socket, &message, 0) <= 0)
        return -1;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header)
        memcpy(&fd, CMSG_DATA(header), sizeof(fd));
    return fd;
}

/* A second process holds the listener: it must be made before the filter is, and not be under it. */
static int fake_version(long version)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return -1;
    int pid = fork();
    if (pid < 0)
        return -1;
    if (pid == 0) {
        /* Out of the caller's way: neither its group nor its streams. */
        setsid();
        close(ends[0]);
        for (int fd = 0; fd < 3; fd++)
            close(fd);
        answer(receive_fd(ends[1]), version);
    }
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    if (!filter ||
        seccomp_rule_add(filter, SCMP_ACT_NOTIFY, SCMP_SYS(landlock_create_ruleset), 1,
                         SCMP_A2(SCMP_CMP_EQ, 1, 0)) < 0 ||
        seccomp_load(filter) < 0)
        return -1;
    int listener = seccomp_notify_fd(filter);
    int result = send_fd(ends[0], listener);
    close(listener);
    close(ends[0]);
    close(ends[1]);
    return result;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0)
        return list();
    if (argc < 3)
        return 64;
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    if (!filter)
        return 64;
    /* As root we do not need no_new_privs, and must not give away what is being tested. */
    seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, geteuid() != 0);
    for (char *name = strtok(argv[1], ","); name; name = strtok(NULL, ",")) {
        int result = strncmp(name, "landlock-abi=", 13) == 0 ? fake_version(atol(name + 13))
                                                             : hide(filter, name);
        if (result < 0) {
            fprintf(stderr, "hide-feature: cannot hide %s\n", name);
            return 64;
        }
    }
    if (seccomp_load(filter) < 0) {
        fprintf(stderr, "hide-feature: cannot load the filter\n");
        return 64;
    }
    seccomp_release(filter);
    execv(argv[2], argv + 2);
    fprintf(stderr, "hide-feature: cannot start %s: %s\n", argv[2], strerror(errno));
    return 64;
}
