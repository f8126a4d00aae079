/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the filter says about a call. The kernel gives the caller an errno and tells nobody that
 * it was the filter's; so the program of the plan is run again here, on the same numbers.
 */
#include "backend/native/trace_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the program --------------------------------------------------------------------------------- */

static bool holds(const struct sock_filter *at, uint32_t accumulator)
{
    switch (BPF_OP(at->code)) {
    case BPF_JEQ:
        return accumulator == at->k;
    case BPF_JGT:
        return accumulator > at->k;
    case BPF_JGE:
        return accumulator >= at->k;
    default:
        return (accumulator & at->k) != 0; /* BPF_JSET */
    }
}

/* Programs go forward only: this ends. */
uint32_t tci_trace_filter_run(const struct tci_filter *filter, const struct seccomp_data *data)
{
    uint32_t accumulator = 0;
    for (size_t i = 0; i < filter->count; i++) {
        const struct sock_filter *at = &filter->code[i];
        switch (at->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            if (at->k % 4 || at->k >= sizeof *data)
                return SECCOMP_RET_KILL_PROCESS;
            memcpy(&accumulator, (const char *)data + at->k, sizeof accumulator);
            break;
        case BPF_ALU | BPF_AND | BPF_K:
            accumulator &= at->k;
            break;
        case BPF_JMP | BPF_JA:
            i += at->k;
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
        case BPF_JMP | BPF_JGT | BPF_K:
        case BPF_JMP | BPF_JGE | BPF_K:
        case BPF_JMP | BPF_JSET | BPF_K:
            i += holds(at, accumulator) ? at->jt : at->jf;
            break;
        case BPF_RET | BPF_K:
            return at->k;
        default:
            return SECCOMP_RET_KILL_PROCESS;
        }
    }
    return SECCOMP_RET_KILL_PROCESS;
}

bool tci_trace_filter_refused(const struct tc_plan *plan, const struct seccomp_data *data,
                              int error)
{
    return tci_trace_filter_run(&plan->filter, data) == (SECCOMP_RET_ERRNO | (uint32_t)error);
}

/* ---- what it would take -------------------------------------------------------------------------- */

enum answer { NEVER, REFUSED, ALLOWED };

/* What a filter of this profile would say, with one more name in `allow` (NULL: none) and nothing
 * that a backend takes away. NEVER: the name may not stand there; `why` says why. */
static enum answer ask(const struct tci_syscalls *own, const char *name,
                       const struct seccomp_data *data, struct tc_error *why)
{
    struct tci_syscalls syscalls = { .profile = own->profile };
    const struct tci_filter_spec spec = { .syscalls = &syscalls };
    struct tci_filter filter = { 0 };
    enum answer answer = NEVER;
    struct tci_string *items = calloc(own->allow.count + 1, sizeof *items);
    if (!items)
        return REFUSED;
    if (own->allow.count)
        memcpy(items, own->allow.items, own->allow.count * sizeof *items);
    items[own->allow.count].text = name;
    syscalls.allow = (struct tci_strings){ items, own->allow.count + (name ? 1 : 0) };
    if (tci_filter_compile(&spec, &filter, why) == 0)
        answer = tci_trace_filter_run(&filter, data) == SECCOMP_RET_ALLOW ? ALLOWED : REFUSED;
    tci_filter_free(&filter);
    free(items);
    return answer;
}

static bool is_denied_by_name(const struct tci_syscalls *syscalls, const char *name)
{
    for (size_t i = 0; i < syscalls->deny.count; i++)
        if (strcmp(syscalls->deny.items[i].text, name) == 0)
            return true;
    return false;
}

void tci_trace_filter_rule(const struct tc_plan *plan, const struct seccomp_data *data,
                           char rule[TCI_TRACE_RULE_MAX])
{
    const struct tci_syscalls *own = &plan->spec.settings->syscalls;
    const char *profile = tci_syscall_profile_name(own->profile);
    const char *name = tci_filter_call_name(data->arch, (uint32_t)data->nr);
    struct tc_error why = { 0 };
    enum answer answer;
    if (data->arch != TCI_TRACE_ARCH || data->nr & 0x40000000) {
        (void)snprintf(rule, TCI_TRACE_RULE_MAX,
                       "syscalls: a call of another architecture ends the process");
        return;
    }
    if (!name) {
        (void)snprintf(rule, TCI_TRACE_RULE_MAX,
                       "syscalls: this version does not know the call, so no profile has it");
        return;
    }
    if (is_denied_by_name(own, name)) {
        (void)snprintf(rule, TCI_TRACE_RULE_MAX, "syscalls: remove \"%s\" from \"deny\"", name);
        return;
    }
    if (ask(own, NULL, data, &why) == ALLOWED) {
        (void)snprintf(
            rule, TCI_TRACE_RULE_MAX,
            plan->is_jail ? "syscalls: profile \"%s\" has it, but refusing it keeps another clause "
                            "(\"commands\", \"cpu\", \"memory\" or \"filesystem\")"
                          : "backend: profile \"%s\" has it, but backend \"process\" must refuse "
                            "it; use backend = \"jail\"",
            profile);
        return;
    }
    answer = ask(own, name, data, &why);
    if (answer == ALLOWED)
        (void)snprintf(rule, TCI_TRACE_RULE_MAX,
                       "syscalls: profile \"%s\" does not have it; add \"%s\" to \"allow\"",
                       profile, name);
    else if (answer == NEVER)
        (void)snprintf(
            rule, TCI_TRACE_RULE_MAX, "syscalls: profile \"%s\" does not have it; %.500s", profile,
            strncmp(why.message, "syscalls.allow: ", 16) == 0 ? why.message + 16 : why.message);
    else
        (void)snprintf(rule, TCI_TRACE_RULE_MAX,
                       "syscalls: profile \"%s\" refuses it with these arguments, and no policy "
                       "can allow them",
                       profile);
}
