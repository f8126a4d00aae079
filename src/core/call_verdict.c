/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the verdict. It follows from what we did ourselves (cancel, timeout, output), from limits
 * that the kernel says were hit, and from how the command ended, in that order. Reason and fix are
 * sentences for a model and for the person who owns the policy; nothing is guessed.
 */
#include "core/call.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/quote.h"
#include "policy/limits.h"

enum { could_not_start = 126, not_found = 127 };

void tci_call_refuse(struct tci_result *result, const struct tc_error *error)
{
    tci_result_verdict(result, TC_VERDICT_ERROR, error->remedy, "%s",
                       error->message[0] ? error->message : "the cage could not be built");
}

/* ---- limits ------------------------------------------------------------------------------- */

/* What to change: the request where it was narrower than the policy, else the policy. */
static void fix_for_limit(const struct tc_call *call, enum tci_key key, const char *otherwise,
                          char *buffer, size_t size)
{
    const struct tci_plan_entry *plan = call->plan;
    uint64_t limit = tci_limits_get(&plan->limits, key);
    uint64_t allowed = tci_narrowed_limit(plan->tool, &call->grants, key);
    const char *name = tci_key_name(key), *where = plan->tool->name;
    char text[TCI_LIMIT_TEXT_MAX];

    if (limit < allowed && call->depth) {
        (void)snprintf(buffer, size, "give the call around it a higher %s, or %s", name, otherwise);
        return;
    }
    if (limit < allowed) {
        (void)snprintf(buffer, size, "ask for a higher %s (the policy allows %s), or %s", name,
                       tci_limit_text(key, allowed, text), otherwise);
        return;
    }
    (void)tci_limit_toml(key, limit > UINT64_MAX / 4 ? TCI_UNLIMITED : 2 * limit, text);
    if (*where)
        (void)snprintf(buffer, size, "set %s = %s for tool \"%s\"%s, or %s", name, text, where,
                       call->grants.count > 1 ? " and its grants"
                       : call->grants.count   ? " and its grant"
                                              : "",
                       otherwise);
    else
        (void)snprintf(buffer, size, "set %s = %s in [defaults] of a policy, or %s", name, text,
                       otherwise);
}

/* A verdict about a limit: its value stands between the two texts. */
static void limit_verdict(struct tc_call *call, enum tc_verdict verdict, enum tci_key key,
                          const char *otherwise, const char *before, const char *after)
{
    char fix[512], text[TCI_LIMIT_TEXT_MAX];
    fix_for_limit(call, key, otherwise, fix, sizeof fix);
    (void)tci_limit_text(key, tci_limits_get(&call->plan->limits, key), text);
    tci_result_verdict(call->result, verdict, fix, "%s%s%s", before, text, after);
}

/* Why we ended the tree ourselves. False: we did not. */
static bool own_verdict(struct tc_call *call)
{
    switch (call->cause) {
    case TCI_CAUSE_CANCEL:
    case TCI_CAUSE_CALLER:
        tci_result_verdict(call->result, TC_VERDICT_ERROR, NULL, "cancelled by the caller");
        return true;
    case TCI_CAUSE_TIMEOUT:
        limit_verdict(call, TC_VERDICT_TIMEOUT, TCI_KEY_TIMEOUT, "do less per call",
                      "stopped after ", ": timeout");
        return true;
    case TCI_CAUSE_OUTPUT:
        limit_verdict(call, TC_VERDICT_OUTPUT, TCI_KEY_OUTPUT, "print less", "stopped after ",
                      " of output, all that the call may print");
        return true;
    case TCI_CAUSE_NO_MEMORY:
        tci_result_verdict(call->result, TC_VERDICT_ERROR,
                           "free memory of the host, or lower \"output\"",
                           "the caller ran out of memory for the output");
        return true;
    case TCI_CAUSE_NONE:
        break;
    }
    return false;
}

/* Limits that the kernel says were hit. False: none that explains the end. */
static bool kernel_verdict(struct tc_call *call, const struct tc_outcome *outcome)
{
    bool ended_well = outcome->end == TCI_END_EXITED && outcome->status == 0;
    if (outcome->hit & TCI_HIT_MEMORY)
        limit_verdict(call, TC_VERDICT_MEMORY, TCI_KEY_MEMORY, "work on less at a time",
                      "the kernel killed a process: all of them together have ", " of memory");
    else if (outcome->hit & TCI_HIT_CPU)
        limit_verdict(call, TC_VERDICT_CPU, TCI_KEY_CPU_TIME, "compute less per call",
                      "stopped after ", " of processor time: cpu_time");
    else if (outcome->hit & TCI_HIT_DISK)
        limit_verdict(call, TC_VERDICT_DISK, TCI_KEY_DISK, "write less", "stopped after writing ",
                      " to granted paths: disk");
    else if ((outcome->hit & TCI_HIT_PIDS) && !ended_well)
        limit_verdict(call, TC_VERDICT_PIDS, TCI_KEY_PIDS, "start fewer processes and threads",
                      "a process or thread was refused, and the command failed: it may have ",
                      " at a time");
    else
        return false;
    return true;
}

/* ---- programs that did not start ---------------------------------------------------------- */

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Does `commands` name this program? Two paths must be equal; a bare name stands for any path. */
static bool is_listed(const struct tci_settings *s, const char *program)
{
    if (s->command.count && strcmp(s->command.items[0].text, program) == 0)
        return true; /* a tool's own program may always start */
    for (size_t i = 0; i < s->commands.list.count; i++) {
        const char *listed = s->commands.list.items[i].text;
        bool paths = strchr(listed, '/') && strchr(program, '/');
        if (strcmp(paths ? listed : last_part(listed), paths ? program : last_part(program)) == 0)
            return true;
    }
    return false;
}

static int deny_program(struct tc_call *call, const char *quoted, struct tc_error *reterr)
{
    char fix[256];
    (void)snprintf(fix, sizeof fix, "add %s to \"commands\", or run a program that is listed there",
                   quoted);
    tci_result_verdict(call->result, TC_VERDICT_DENIED, fix,
                       "\"commands\" does not list %s, so it may not start", quoted);
    call->result->public.exit_code = could_not_start;
    if (tci_result_deny(call->result, "exec", call->program,
                        "commands: the program is not listed") < 0)
        return tci_error_no_memory(reterr);
    return 0;
}

static const char *fix_for_missing(const struct tci_settings *s)
{
    if (s->backend == TCI_BACKEND_OCI || s->backend == TCI_BACKEND_GVISOR)
        return "name a program that is in the image, use an image that has it, or grant the "
               "directory that it is in with \"filesystem\"";
    return s->system ? "name a program that is in the host's /usr or /bin, or grant the directory "
                       "that it is in with \"filesystem\""
                     : "grant the directory that it is in with \"filesystem\", or set system = "
                       "true for the host's programs";
}

static int not_started(struct tc_call *call, int problem, struct tc_error *reterr)
{
    const struct tci_settings *s = &call->plan->narrowed.settings;
    const char *text = strerrordesc_np(problem);
    char quoted[TCI_QUOTE_MAX];

    (void)tci_quote(call->program, strlen(call->program), quoted);
    if ((problem == EACCES || problem == EPERM) && !s->commands.any && !is_listed(s, call->program))
        return deny_program(call, quoted, reterr);
    if (problem == ENOENT)
        tci_result_verdict(call->result, TC_VERDICT_FAILED, fix_for_missing(s),
                           "there is no program %s in the cage, or not what it needs to start",
                           quoted);
    else
        tci_result_verdict(
            call->result, TC_VERDICT_FAILED,
            problem == EACCES || problem == EPERM ? "check that it is an executable file"
                                                  : "check the program and its arguments",
            "the program %s could not be started: %s", quoted, text ? text : "unknown error");
    call->result->public.exit_code = problem == ENOENT ? not_found : could_not_start;
    return 0;
}

/* ---- the whole ---------------------------------------------------------------------------- */

static void ended(struct tci_result *result, const struct tc_outcome *outcome)
{
    char name[TCI_SIGNAL_NAME_MAX];
    const char *what = sigdescr_np(outcome->status);
    if (outcome->end == TCI_END_SIGNALED)
        tci_result_verdict(result, TC_VERDICT_SIGNALED, NULL, "the command died of %s (%s)",
                           tci_signal_name(outcome->status, name), what ? what : "a signal");
    else if (outcome->status != 0)
        tci_result_verdict(result, TC_VERDICT_FAILED, NULL, "the command ended with exit status %d",
                           outcome->status);
    else
        tci_result_verdict(result, TC_VERDICT_OK, NULL, "%s", "");
}

/* A container that was never there: whoever waited for it in vain is told what it was that did not come,
 * and not that the command took too long. A caller who gave up knows. */
static bool was_never_there(const struct tc_call *call, const struct tc_outcome *outcome)
{
    return outcome->end == TCI_END_BROKEN && outcome->never_started &&
           call->cause == TCI_CAUSE_TIMEOUT;
}

int tci_call_verdict(struct tc_call *call, const struct tc_outcome *outcome,
                     const struct tc_error *broken, struct tc_error *reterr)
{
    struct tc_result *public = &call->result->public;
    if (outcome->end == TCI_END_EXITED)
    public->exit_code = outcome->status;
    else if (outcome->end == TCI_END_SIGNALED) public->signal = outcome->status;
    if (!was_never_there(call, outcome) && (own_verdict(call) || kernel_verdict(call, outcome)))
        return 0;
    switch (outcome->end) {
    case TCI_END_NOT_STARTED:
        return not_started(call, outcome->status, reterr);
    case TCI_END_BROKEN:
        tci_result_verdict(call->result, TC_VERDICT_ERROR, broken->remedy, "%s",
                           broken->message[0] ? broken->message : "the cage broke");
        return 0;
    case TCI_END_EXITED:
    case TCI_END_SIGNALED:
        break;
    }
    ended(call->result, outcome);
    return 0;
}
