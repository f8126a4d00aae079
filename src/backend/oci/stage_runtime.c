/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the runtime's process, and the stage's life beside it. The stage ends when the runtime does, or
 * when its owner does; with it, as pid 1, everybody else in here.
 *
 * The runtime gets entry's socket, a pipe for what it says, and no other descriptor. Only the last of its
 * words are kept, and only so much is read at all: entry has the same pipe, and a command that gets hold of
 * it must not keep the stage busy.
 */
#include "backend/oci/stage_program.h"

#include <linux/keyctl.h>
#include <linux/sched.h>
#include <linux/signal.h>
#include <linux/wait.h>
#include <poll.h>

enum {
    stack_size = 16384,
    read_max = 1 << 16,
    could_not_start = 127,
    signal_set_size = 8,
    in_set = 1 << (17 - 1), /* SIGCHLD */
};

struct start {
    const struct stage *stage;
    const char *words[TCI_STAGE_WORDS_MAX + 2];
    long in, out, program;
    long problem; /* a negative errno */
};

struct last_words {
    struct tci_stage_report report;
    size_t seen;
};

/* ---- in the child, which shares our memory until execve -------------------------------------------------------- */

static void become_runtime(void *argument)
{
    static const char *const environment[] = {
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", NULL
    };
    struct start *start = argument;
    const struct tci_stage_config *config = start->stage->config;
    const unsigned long none = 0;
    long result = CALL(dup3, start->in, 0, 0, 0, 0);
    if (result >= 0)
        result = CALL(dup3, start->out, 1, 0, 0, 0);
    if (result >= 0)
        result = CALL(dup3, start->out, 2, 0, 0, 0);
    if (result >= 0)
        result = CALL(dup3, TCI_STAGE_FD_CONTROL, config->control_at, 0, 0, 0);
    (void)CALL(rt_sigprocmask, 2 /* SIG_SETMASK */, &none, 0, signal_set_size, 0);
    /* The caller's session keyring stays behind. A runtime would fail when its user's keys (200) are used up, which
     * any program of that user can bring about; in a container nobody may use keys, so the old one does no harm. */
    (void)CALL(keyctl, KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0);
    if (result >= 0)
        result = CALL(close_range, config->control_at == 3 ? 4 : 3, ~0U, 4 /* CLOEXEC */, 0, 0);
    /* By its path first: only so a script works. What lay in a directory that is hidden by now is
     * started from the handle. */
    if (result >= 0)
        result = CALL(execve, config_at(start->stage, config->program), start->words, environment,
                      0, 0);
    if (result == -ENOENT && start->program >= 0)
        result = CALL(execveat, start->program, "", start->words, environment, STAGE_AT_EMPTY_PATH);
    start->problem = result;
    (void)CALL(exit_group, could_not_start, 0, 0, 0, 0);
}

/* ---- here --------------------------------------------------------------------------------------------------------- */

static long start_runtime(const struct stage *stage, long in, long out)
{
    static _Alignas(16) char stack[stack_size];
    const struct tci_stage_config *config = stage->config;
    const uint32_t *words = config_at(stage, config->words.offset);
    const uint32_t count = config->words.count;
    struct start start;
    long pid;
    start.stage = stage;
    start.in = in;
    start.out = out;
    start.problem = 0;
    start.program = stage->program;
    if (count > TCI_STAGE_WORDS_MAX)
        broken(TCI_STAGE_STEP_START, 0, -E2BIG);
    for (uint32_t i = 0; i < count; i++)
        start.words[i] = config_at(stage, words[i]);
    start.words[count] = stage->id;
    start.words[count + 1] = NULL;
    pid = must(
        TCI_STAGE_STEP_START, 0,
        clone_run(CLONE_VM | CLONE_VFORK | SIGCHLD, stack + sizeof stack, become_runtime, &start));
    must(TCI_STAGE_STEP_START, 1, start.problem);
    return pid;
}

/* Keeps the end of what was said. False: nothing more is to be read. */
static bool listen_to(struct last_words *words, long from)
{
    char bytes[512] = { 0 };
    struct tci_stage_report *report = &words->report;
    long n = CALL(read, from, bytes, sizeof bytes, 0, 0);
    size_t room = sizeof report->text - report->text_length;
    if (n <= 0)
        return n == -EAGAIN;
    words->seen += (size_t)n;
    if (room < (size_t)n) {
        size_t lost = (size_t)n - room;
        for (size_t i = lost; i < report->text_length; i++)
            report->text[i - lost] = report->text[i];
        report->text_length -= (uint32_t)lost;
    }
    for (long i = 0; i < n; i++)
        report->text[report->text_length++] = bytes[i];
    return words->seen < read_max;
}

/* Collects whoever has ended; true: the runtime was among them. */
static bool collect(long runtime, int *ret_status)
{
    int status = 0;
    long pid;
    while ((pid = CALL(wait4, -1, &status, 1 /* WNOHANG */, 0, 0)) > 0)
        if (pid == runtime) {
            *ret_status = status;
            return true;
        }
    return false;
}

static _Noreturn void say_end(struct last_words *words, bool can_listen, long from, int status)
{
    /* Nothing is waited for: what it said is in the pipe by now. */
    for (size_t before = words->seen + 1; can_listen && before != words->seen;) {
        before = words->seen;
        can_listen = listen_to(words, from);
    }
    words->report.status = status;
    send_report(&words->report);
    leave();
}

static _Noreturn void watch(long runtime, long from, long signals)
{
    struct pollfd all[] = { { .fd = (int)signals, .events = POLLIN },
                            { .fd = TCI_STAGE_FD_OWNER, .events = POLLIN },
                            { .fd = (int)from, .events = POLLIN } };
    struct last_words words;
    char ignored[128 * 4];
    int status = 0;
    words.seen = 0;
    words.report.magic = TCI_STAGE_MAGIC;
    words.report.end = TCI_STAGE_ENDED;
    words.report.step = words.report.item = words.report.text_length = 0;
    for (;;) {
        long n = CALL(ppoll, all, 3, 0, 0, signal_set_size);
        if (n < 0 && n != -EINTR)
            broken(TCI_STAGE_STEP_WATCH, 0, n);
        if (all[1].revents)
            leave(); /* nobody is left to whom anything could be said */
        if (all[2].revents && !listen_to(&words, from))
            all[2].fd = -1;
        if (!all[0].revents)
            continue;
        (void)CALL(read, signals, ignored, sizeof ignored, 0, 0);
        if (collect(runtime, &status))
            say_end(&words, all[2].fd >= 0, from, status);
    }
}

_Noreturn void run_runtime(const struct stage *stage)
{
    const unsigned long child_ended = in_set;
    int ends[2] = { -1, -1 }, empty[2] = { -1, -1 };
    long signals, runtime;
    must(TCI_STAGE_STEP_START, 2, CALL(pipe2, ends, STAGE_O_CLOEXEC, 0, 0, 0));
    /* Not /dev/null: crun gives its three streams to the container's user, and it is the host's. */
    must(TCI_STAGE_STEP_START, 2, CALL(pipe2, empty, STAGE_O_CLOEXEC, 0, 0, 0));
    (void)CALL(close, empty[1], 0, 0, 0, 0);
    must(TCI_STAGE_STEP_START, 3, CALL(fcntl, ends[0], 4 /* F_SETFL */, STAGE_O_NONBLOCK, 0, 0));
    /* The library started us with every signal blocked; so they stay. */
    signals = must(
        TCI_STAGE_STEP_WATCH, 1,
        CALL(signalfd4, -1, &child_ended, signal_set_size, STAGE_O_CLOEXEC | STAGE_O_NONBLOCK, 0));
    runtime = start_runtime(stage, empty[0], ends[1]);
    (void)CALL(close, ends[1], 0, 0, 0, 0);
    (void)CALL(close, TCI_STAGE_FD_CONTROL, 0, 0, 0, 0);
    watch(runtime, ends[0], signals);
}
