/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: from a call that failed to who refused it: first the filter, whose answer can be computed,
 * then limits, then paths and addresses. What none of them explains is not listed: many calls fail
 * in every program, and nobody has refused them anything.
 */
#include "backend/native/trace_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum what {
    OPEN,
    ASK,
    READ,
    WRITE,
    MAKE,
    EXEC,
    PAIR_READ,
    PAIR_WRITE,
    PAIR_MAKE,
    FILL,
    MAP,
    ADDRESS,
    MESSAGE,
    SOCKET,
    FORK,
    CLOSE,
};

enum { NO = -1, errno_max = 4095 };

static const struct row {
    const char *name;
    enum what what;
    int a, b, c;
} rows[] = {
#define ROW(name, what, a, b, c) { #name, what, a, b, c },
#include "backend/native/trace_calls.def"
#undef ROW
};
_Static_assert(tci_array_size(rows) < 255, "a row's number is one byte");

void tci_trace_calls_prepare(struct tci_trace *trace)
{
    for (uint32_t number = 0; number < TCI_TRACE_NUMBERS; number++) {
        const char *name = tci_filter_call_name(0, number);
        for (size_t i = 0; name && i < tci_array_size(rows); i++)
            if (strcmp(rows[i].name, name) == 0) {
                trace->first_row[number] = (uint8_t)(i + 1);
                break;
            }
    }
}

static const char *name_of(const struct seccomp_data *call, char buffer[32])
{
    const char *name = tci_filter_call_name(call->arch, (uint32_t)call->nr);
    if (call->arch == TCI_TRACE_ARCH && name)
        return name;
    (void)snprintf(buffer, 32, "%s %d", call->arch == TCI_TRACE_ARCH ? "number" : "foreign number",
                   call->nr);
    return buffer;
}

/* ---- the filter ---------------------------------------------------------------------------------- */

static void add_call(struct tci_trace *trace, const struct seccomp_data *call)
{
    char buffer[32];
    tci_trace_filter_rule(trace->plan, call, trace->rule);
    tci_trace_list_add(&trace->list, "syscall", name_of(call, buffer), trace->rule);
}

/* Was it the filter? Then that is said here, unless the answer is one that programs take for a kernel
 * without some feature and work on: another errno, or clone3, in whose place every C library then
 * uses clone, for each thread that it starts. */
static bool filter_refused(struct tci_trace *trace, struct tci_tracee *tracee, int error)
{
    const struct seccomp_data *call = &tracee->call;
    char buffer[32];
    const char *name;
    if (!tci_trace_filter_refused(trace->plan, call, error))
        return false;
    name = name_of(call, buffer);
    if (strcmp(name, "socket") == 0 || strcmp(name, "socketpair") == 0)
        tci_trace_socket_hold(trace, tracee, error);
    else if ((error == EPERM || error == ENOSYS) && strcmp(name, "clone3") != 0)
        add_call(trace, call);
    return true;
}

void tci_trace_call_killed(struct tci_trace *trace, const struct tci_tracee *tracee)
{
    uint32_t answer = tci_trace_filter_run(&trace->plan->filter, &tracee->call);
    if (answer == SECCOMP_RET_KILL_PROCESS || answer == SECCOMP_RET_KILL_THREAD)
        add_call(trace, &tracee->call);
}

/* ---- limits -------------------------------------------------------------------------------------- */

static void too_many(struct tci_trace *trace, const struct tci_tracee *tracee, const char *key,
                     uint64_t limit)
{
    char buffer[32];
    if (limit == TCI_UNLIMITED)
        return; /* then it was a limit of the host */
    (void)snprintf(trace->rule, sizeof trace->rule, "%s: %llu at a time; raise \"%s\"", key,
                   (unsigned long long)limit, key);
    tci_trace_list_add(&trace->list, key, name_of(&tracee->call, buffer), trace->rule);
}

/* ---- paths --------------------------------------------------------------------------------------- */

static enum tci_trace_access access_of(const struct row *row, const __u64 *args)
{
    uint64_t flags = row->c == NO ? 0 : args[row->c];
    switch (row->what) {
    case OPEN:
        if (flags & O_PATH)
            return TCI_TRACE_READ;
        if (flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)))
            return TCI_TRACE_MAKE;
        return (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC ? TCI_TRACE_WRITE
                                                                  : TCI_TRACE_READ;
    case ASK:
        return flags & W_OK ? TCI_TRACE_WRITE : flags & X_OK ? TCI_TRACE_EXEC : TCI_TRACE_READ;
    case WRITE:
    case PAIR_WRITE:
        return TCI_TRACE_WRITE;
    case MAKE:
    case PAIR_MAKE:
        return TCI_TRACE_MAKE;
    case EXEC:
        return TCI_TRACE_EXEC;
    default:
        return TCI_TRACE_READ;
    }
}

static void look_at_path(struct tci_trace *trace, struct tci_tracee *tracee, const struct row *row,
                         int error)
{
    struct tci_trace_attempt attempt = {
        .access = access_of(row, tracee->call.args),
        .path = trace->normal,
        .error = error,
        .is_question = row->what == READ || row->what == ASK,
        .is_one_of_two = row->what >= PAIR_READ && row->what <= PAIR_MAKE,
    };
    bool is_full = error == ENOSPC || error == EDQUOT;
    if (error != EACCES && error != EPERM && error != EROFS && error != ENOENT && !is_full &&
        tracee->held.nr < 0)
        return;
    if (!tci_trace_argument_path(trace, tracee, row->a, row->b, &attempt.exact))
        return;
    tci_trace_socket_release(trace, tracee, trace->normal);
    if (!is_full)
        tci_trace_path(trace, &attempt);
    else if (attempt.access == TCI_TRACE_MAKE || attempt.access == TCI_TRACE_WRITE)
        tci_trace_full(trace, trace->normal, error);
}

static void look_at_descriptor(struct tci_trace *trace, const struct tci_tracee *tracee,
                               const struct row *row, int64_t result)
{
    const __u64 *args = tracee->call.args;
    int error = result < 0 ? (int)-result : 0;
    if (row->b != NO && tracee->name_socket >= 0 && (int)args[row->a] == tracee->name_socket)
        tci_trace_question(trace, tracee, args[row->b], args[row->c]);
    if ((error == ENOSPC || error == EDQUOT || error == EFBIG) &&
        tci_trace_descriptor(tracee->id, args[row->a], trace->normal))
        tci_trace_full(trace, trace->normal, error);
}

/* The loader maps programs that it may not start: noexec stops that. */
static void look_at_mapping(struct tci_trace *trace, const struct tci_tracee *tracee,
                            const struct row *row, int error)
{
    const __u64 *args = tracee->call.args;
    if ((error != EPERM && error != EACCES) || !(args[row->b] & PROT_EXEC) ||
        (args[row->c] & MAP_ANONYMOUS) ||
        !tci_trace_descriptor(tracee->id, args[row->a], trace->normal))
        return;
    tci_trace_program_rule(trace->plan, trace->normal, trace->rule);
    (void)tci_trace_clean(trace->normal, strlen(trace->normal), trace->target,
                          sizeof trace->target);
    tci_trace_list_add(&trace->list, "exec", trace->target, trace->rule);
}

/* ---- all of them --------------------------------------------------------------------------------- */

static void apply(struct tci_trace *trace, struct tci_tracee *tracee, const struct row *row,
                  int64_t result)
{
    int error = result < 0 ? (int)-result : 0;
    switch (row->what) {
    case FILL:
        look_at_descriptor(trace, tracee, row, result);
        break;
    case ADDRESS:
        tci_trace_address(trace, tracee, result, row->b, row->c);
        break;
    case MESSAGE:
        tci_trace_message(trace, tracee, result);
        break;
    case CLOSE:
        if ((int)tracee->call.args[0] == tracee->name_socket)
            tracee->name_socket = -1;
        break;
    case MAP:
        look_at_mapping(trace, tracee, row, error);
        break;
    case FORK:
        if (error == EAGAIN)
            too_many(trace, tracee, "pids", trace->plan->spec.settings->pids);
        break;
    case SOCKET:
        break; /* only the filter refuses one */
    default:
        look_at_path(trace, tracee, row, error);
    }
}

void tci_trace_call_ended(struct tci_trace *trace, struct tci_tracee *tracee, int64_t result)
{
    const struct seccomp_data *call = &tracee->call;
    unsigned first = call->arch == TCI_TRACE_ARCH && (unsigned)call->nr < TCI_TRACE_NUMBERS
                         ? trace->first_row[call->nr]
                         : 0;
    bool failed = result < 0 && result >= -errno_max;
    if (trace->is_preparing && (!first || rows[first - 1].what != EXEC))
        return;
    if (failed && filter_refused(trace, tracee, (int)-result))
        return;
    if (result == -EMFILE)
        too_many(trace, tracee, "files", trace->plan->spec.settings->files);
    for (size_t i = first;
         i > 0 && i <= tci_array_size(rows) && strcmp(rows[i - 1].name, rows[first - 1].name) == 0;
         i++)
        apply(trace, tracee, &rows[i - 1], failed ? result : 0);
}
