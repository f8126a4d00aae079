/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: are system calls filtered when we ask for it, and can a supervisor answer them? Both are
 * tried on a call that harms nobody: getsid() is made to fail, or to return what we say.
 */
#include "backend/probe.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ANSWER = 4711, NOTIFY_LIMIT_MS = 300 };

static const char REMEDY_FILTER[] = "use a kernel built with CONFIG_SECCOMP_FILTER";
static const char REMEDY_NOTIFY[] = "optional: use Linux 5.5 or newer; in a container whose engine "
                                    "listens to notifications itself it cannot be had";

/* Installs a filter that applies `action` to getsid(); what seccomp(2) returned. */
static int install(unsigned flags, unsigned action)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getsid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { .len = tci_array_size(code), .filter = code };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

static void filter(const struct tci_probe *p)
{
    const enum tci_feature id = TCI_FEATURE_SECCOMP_FILTER;
    if (install(0, SECCOMP_RET_ERRNO | EXDEV) < 0) {
        tci_probe_refused(p, id, REMEDY_FILTER, "seccomp", errno);
        return;
    }
    errno = 0;
    if (syscall(SYS_getsid, 0) == -1 && errno == EXDEV)
        tci_probe_yes(p, id, "a filtered call was refused");
    else
        tci_probe_no(p, id, REMEDY_FILTER, "a filter was installed and had no effect");
}

/* Answers one notification on `listener` with ANSWER; 0 or an errno. */
static int answer(int listener)
{
    /* The kernel of tomorrow may have larger structs: room is kept. */
    union {
        struct seccomp_notif notification;
        char room[256];
    } request = { 0 };
    union {
        struct seccomp_notif_resp response;
        char room[256];
    } reply = { 0 };
    struct pollfd polled = { .fd = listener, .events = POLLIN };
    if (poll(&polled, 1, NOTIFY_LIMIT_MS) != 1)
        return ETIMEDOUT;
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) < 0)
        return errno;
    reply.response.id = request.notification.id;
    reply.response.val = ANSWER;
    return ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &reply) < 0 ? errno : 0;
}

static void notify(const struct tci_probe *p)
{
    const enum tci_feature id = TCI_FEATURE_SECCOMP_NOTIFY;
    int problem, listener = install(SECCOMP_FILTER_FLAG_NEW_LISTENER, SECCOMP_RET_USER_NOTIF);
    pid_t pid;
    if (listener < 0) {
        /* EBUSY: somebody outside listens already, and there can be only one. */
        if (errno == EBUSY)
            tci_probe_no(p, id, REMEDY_NOTIFY, "somebody else listens already");
        else
            tci_probe_refused(p, id, REMEDY_NOTIFY, "seccomp", errno);
        return;
    }
    pid = tci_probe_fork();
    if (pid == 0) {
        (void)close(listener); /* only the parent answers: if it dies, the call fails */
        _exit(syscall(SYS_getsid, 0) == ANSWER ? 0 : 1);
    }
    if (pid < 0) {
        tci_probe_unknown(p, id, NULL, "fork: %s", strerrordesc_np(errno));
        return;
    }
    problem = answer(listener);
    /* Closing it lets a call that nobody answered fail, so that the child ends. */
    (void)close(listener);
    if (tci_probe_wait(pid) == 0 && !problem)
        tci_probe_yes(p, id, "a call was answered by its supervisor");
    else
        tci_probe_unknown(p, id, REMEDY_NOTIFY, "installed, but no call was answered: %s",
                          problem ? strerrordesc_np(problem) : "wrong value");
}

/* Filters cannot be taken off again: each gets a child. */
void tci_probe_seccomp(const struct tci_probe *p)
{
    pid_t pid = tci_probe_fork();
    if (pid == 0) {
        filter(p);
        _exit(0);
    }
    if (pid > 0)
        (void)tci_probe_wait(pid);
    notify(p);
}
