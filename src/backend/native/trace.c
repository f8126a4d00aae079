/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the thread that holds a cage's processes by ptrace. It attaches to init before the command
 * exists, takes over the command at its birth, lets init go, and ends when there is nobody left.
 *
 * Invariants: the thread waits for nobody but its own tracees (__WNOTHREAD), so the host's children
 * are not touched; it never waits for one of them in particular, so none can keep it; a ptrace call
 * that fails means that the tracee was killed, which will be reported. If the thread or the whole
 * host dies, the kernel kills the tracees (PTRACE_O_EXITKILL).
 */
#include "backend/native/trace_internal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include "backend/native/backends.h"

enum {
    stack_size = 256 * 1024,
    options = PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
              PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC,
    call_stop = SIGTRAP | 0x80, /* PTRACE_O_TRACESYSGOOD */
};

/* ---- tracees ------------------------------------------------------------------------------------- */

static struct tci_tracee *find(struct tci_trace *trace, int id)
{
    for (size_t i = 0; i < trace->tracee_count; i++)
        if (trace->tracees[i].id == id)
            return &trace->tracees[i];
    return NULL;
}

/* NULL: out of memory; then this one is not explained. */
static struct tci_tracee *find_or_add(struct tci_trace *trace, int id)
{
    struct tci_tracee *tracee = find(trace, id);
    if (tracee)
        return tracee;
    if (trace->tracee_count == trace->tracee_room) {
        size_t room = trace->tracee_room ? 2 * trace->tracee_room : 16;
        struct tci_tracee *larger = reallocarray(trace->tracees, room, sizeof *larger);
        if (!larger) {
            trace->list.no_memory = true;
            return NULL;
        }
        trace->tracees = larger;
        trace->tracee_room = room;
    }
    tracee = &trace->tracees[trace->tracee_count++];
    *tracee = (struct tci_tracee){ .id = id, .name_socket = -1, .held.nr = -1 };
    return tracee;
}

static void forget(struct tci_trace *trace, int id)
{
    struct tci_tracee *tracee = find(trace, id);
    if (tracee)
        *tracee = trace->tracees[--trace->tracee_count];
}

/* ---- stops --------------------------------------------------------------------------------------- */

static void let_go_on(int id, enum __ptrace_request how, int signal)
{
    (void)ptrace(how, id, NULL, (void *)(intptr_t)signal);
}

static void look_at_call(struct tci_trace *trace, int id)
{
    struct __ptrace_syscall_info info = { 0 };
    struct tci_tracee *tracee = find_or_add(trace, id);
    if (!tracee || ptrace(PTRACE_GET_SYSCALL_INFO, id, sizeof info, &info) <= 0)
        return;
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
        tracee->in_call = true;
        tracee->call = (struct seccomp_data){ .nr = (int)info.entry.nr,
                                              .arch = info.arch,
                                              .instruction_pointer = info.instruction_pointer };
        memcpy(tracee->call.args, info.entry.args, sizeof tracee->call.args);
    } else if (info.op == PTRACE_SYSCALL_INFO_EXIT && tracee->in_call) {
        tracee->in_call = false;
        tci_trace_call_ended(trace, tracee, info.exit.rval);
    }
}

/* After execve there is one thread, and it has the id of the first, whoever called. */
static void follow_execve(struct tci_trace *trace, int id)
{
    unsigned long former = 0;
    if (ptrace(PTRACE_GETEVENTMSG, id, NULL, &former) == 0 && (int)former != id)
        forget(trace, (int)former);
    forget(trace, id);
}

static bool is_stop_signal(int signal)
{
    return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

/* A child that is born is attached from its first moment, and stops by itself before it runs. */
static bool is_birth(int event)
{
    return event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK || event == PTRACE_EVENT_CLONE;
}

/* Init builds the cage unwatched. When it has started the command, it is none of our business. */
static void on_init_stop(struct tci_trace *trace, int signal, int event)
{
    int init = trace->init;
    if (is_birth(event)) {
        trace->init = 0;
        let_go_on(init, PTRACE_DETACH, 0);
    } else if (event == PTRACE_EVENT_STOP && is_stop_signal(signal)) {
        let_go_on(init, PTRACE_LISTEN, 0);
    } else {
        let_go_on(init, PTRACE_CONT, event ? 0 : signal);
    }
}

static void on_stop(struct tci_trace *trace, int id, int signal, int event)
{
    if (signal == call_stop) {
        look_at_call(trace, id);
        let_go_on(id, PTRACE_SYSCALL, 0);
    } else if (event == PTRACE_EVENT_STOP && is_stop_signal(signal)) {
        /* Stopped for its shell or by SIGSTOP: it stays so until SIGCONT. */
        let_go_on(id, PTRACE_LISTEN, 0);
    } else if (event) {
        if (event == PTRACE_EVENT_EXEC) {
            trace->is_preparing = false;
            follow_execve(trace, id);
        }
        let_go_on(id, PTRACE_SYSCALL, 0);
    } else {
        let_go_on(id, PTRACE_SYSCALL, signal); /* it is delivered as if nobody watched */
    }
}

static void follow(struct tci_trace *trace)
{
    for (;;) {
        int status = 0;
        int id = waitpid(-1, &status, __WALL | __WNOTHREAD);
        struct tci_tracee *tracee;
        if (id < 0 && errno == EINTR)
            continue;
        if (id < 0)
            return; /* nobody is left */
        if (WIFSTOPPED(status)) {
            int signal = WSTOPSIG(status), event = status >> 16;
            if (id == trace->init)
                on_init_stop(trace, signal, event);
            else
                on_stop(trace, id, signal, event);
            continue;
        }
        tracee = find(trace, id);
        if (tracee)
            tci_trace_socket_release(trace, tracee, NULL);
        if (tracee && WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
            tci_trace_call_killed(trace, tracee);
        forget(trace, id);
    }
}

/* ---- life ---------------------------------------------------------------------------------------- */

struct beginning {
    struct tci_trace *trace;
    struct tc_run *run;
};

/* Init may be dead already, because the cage could not be built; the run says why. */
static int attach(const struct tc_run *run)
{
    struct pollfd p = { .fd = run->pidfd, .events = POLLIN };
    if (ptrace(PTRACE_SEIZE, run->pid, NULL, (void *)(intptr_t)options) == 0 || errno == ESRCH)
        return 0;
    return errno == EPERM && poll(&p, 1, 0) == 1 ? 0 : errno;
}

static void *watch(void *argument)
{
    struct beginning begin = *(struct beginning *)argument;
    struct tci_trace *trace = begin.trace;
    trace->attach_error = attach(begin.run);
    if (!trace->attach_error)
        tci_native_go(begin.run); /* here, where a SIGPIPE for a dead init is blocked */
    (void)sem_post(&trace->attached);
    if (!trace->attach_error)
        follow(trace);
    return NULL;
}

/* A signal for the host's handlers is not for this thread. */
static int start_thread(struct beginning *begin)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    int r = pthread_attr_init(&attributes);
    if (r)
        return r;
    (void)pthread_attr_setstacksize(&attributes, stack_size);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    r = pthread_create(&begin->trace->thread, &attributes, watch, begin);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    if (r)
        return r;
    while (sem_wait(&begin->trace->attached) < 0)
        ; /* EINTR */
    return 0;
}

static int cannot_attach(const struct tci_trace *trace, struct tc_error *reterr)
{
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "the cage cannot be traced: %s",
                  strerrordesc_np(trace->attach_error));
    tci_error_remedy(reterr, "leave --explain-denials out; or %s",
                     trace->plan->is_jail || geteuid() == 0
                         ? "allow ptrace: kernel.yama.ptrace_scope may be 2 at most, and a "
                           "container's filter must not refuse it"
                         : "use backend = \"jail\"");
    return -1;
}

static void join(struct tci_trace *trace)
{
    if (!trace->joined)
        (void)pthread_join(trace->thread, NULL);
    trace->joined = true;
}

int tci_trace_start(const struct tc_backend *backend, struct tc_run *run, struct tci_trace **ret,
                    struct tc_error *reterr)
{
    struct tci_trace *trace;
    struct beginning begin = { .run = run };
    int r;
    if (backend != &tci_backend_jail && backend != &tci_backend_process) {
        tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "cages of \"%s\" cannot be traced",
                      backend->name);
        tci_error_remedy(reterr, "leave --explain-denials out, or use backend = \"jail\"");
        return -1;
    }
    trace = calloc(1, sizeof *trace);
    if (!trace)
        return tci_error_no_memory(reterr);
    begin.trace = trace;
    trace->plan = run->plan;
    trace->init = run->pid;
    trace->is_preparing = true;
    trace->joined = true; /* nothing to join yet */
    (void)sem_init(&trace->attached, 0, 0);
    trace->arena = trace->list.arena = tci_arena_new();
    if (!trace->arena || tci_trace_host_read(trace->arena, &trace->host) < 0) {
        tci_trace_free(trace);
        return tci_error_no_memory(reterr);
    }
    tci_trace_calls_prepare(trace);
    r = start_thread(&begin);
    trace->joined = r != 0;
    if (r || trace->attach_error) {
        r = r ? tci_error_errno(reterr, r, "starting a thread") : cannot_attach(trace, reterr);
        tci_trace_free(trace);
        return r;
    }
    *ret = trace;
    return 0;
}

int tci_trace_finish(struct tci_trace *trace, const struct tc_denial **ret, size_t *ret_count,
                     struct tc_error *reterr)
{
    join(trace);
    tci_trace_list_end(&trace->list);
    *ret = trace->list.denials;
    *ret_count = trace->list.count;
    return trace->list.no_memory ? tci_error_no_memory(reterr) : 0;
}

void tci_trace_free(struct tci_trace *trace)
{
    if (!trace)
        return;
    join(trace);
    (void)sem_destroy(&trace->attached);
    free(trace->tracees);
    tci_arena_free(trace->arena);
    free(trace);
}
