/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: which answer each system call number gets: profile, then `allow`, then what the profile and
 * the backend narrow, then `deny`. Trusts the tables; not the names in the policy.
 */
#include "backend/filter/filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "backend/filter/filter_table.h"
#include "base/quote.h"

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "the tables are for x86_64 and aarch64"
#endif

/* Numbers with this bit are x32 on x86_64: another set of calls, with other checks. */
enum { X32_BIT = 0x40000000 };

struct choice {
    tci_rules rules;
    bool allowed, named; /* named: in `allow` */
};

struct work {
    struct choice calls[TCI_CALL_COUNT];
    tci_answer answers[TCI_NUMBER_LIMIT];
    struct tci_range ranges[TCI_NUMBER_LIMIT + 3];
};

static const struct {
    unsigned flag;
    const char *reason;
} flag_reasons[] = {
    { TCI_FILTER_NO_SOCKETS, "this cage has no sockets" },
    { TCI_FILTER_NO_TRUNCATE, "this kernel's Landlock cannot protect files from it" },
    { TCI_FILTER_KEEP_GROUP, "a process that leaves its group would outlive the call" },
    { TCI_FILTER_NO_SIGNALS, "it would reach processes of the host" },
    { TCI_FILTER_KEEP_CPUS, "the cage's share of the processors is kept by pinning it" },
    { TCI_FILTER_SELF_ONLY, "it would reach processes of the host" },
    { TCI_FILTER_LANDLOCK_GAPS, "Landlock does not rule it, so it would reach files of the host" },
    { TCI_FILTER_NO_MEMFD, "it would start programs that are not in \"commands\"" },
    { TCI_FILTER_NO_IPC, "it would reach objects of the host" },
    { TCI_FILTER_COUNT_MEMORY, "memory outside of the address space would not be counted" },
    { TCI_FILTER_NO_UNIX, "it would reach sockets of the host" },
};

static void choose_profile(struct work *work, enum tci_syscall_profile profile)
{
    static const uint8_t bits[] = { [TCI_SYSCALLS_DEFAULT] = TCI_PROFILE_D,
                                    [TCI_SYSCALLS_STRICT] = TCI_PROFILE_S,
                                    [TCI_SYSCALLS_PURE] = TCI_PROFILE_P };
    for (unsigned i = 0; i < TCI_CALL_COUNT; i++) {
        work->calls[i].rules = tci_call_rows[i].rules;
        work->calls[i].allowed = (tci_call_rows[i].profiles & bits[profile]) != 0;
    }
}

/* The call with this name, or -1 with an error. */
static int find_call(const char *list, const char *name, struct tc_error *reterr)
{
    enum tci_call call = tci_call_find(name);
    char quoted[TCI_QUOTE_MAX];
    const char *nearest;
    if (call != TCI_CALL_COUNT)
        return (int)call;
    (void)tci_error_set(reterr, TC_ERROR_POLICY,
                        "syscalls.%s: %s is not a system call of x86_64 or aarch64", list,
                        tci_quote(name, strlen(name), quoted));
    nearest = tci_call_nearest(name);
    if (nearest)
        tci_error_remedy(reterr, "did you mean \"%s\"?", nearest);
    else
        tci_error_remedy(reterr, "use the kernel's name, as in syscalls(2)");
    return -1;
}

static int choose_allowed(struct work *work, const struct tci_strings *allow,
                          struct tc_error *reterr)
{
    for (size_t i = 0; i < allow->count; i++) {
        int call = find_call("allow", allow->items[i].text, reterr);
        if (call < 0)
            return -1;
        if (tci_call_rows[call].profiles & TCI_PROFILE_NEVER) {
            (void)tci_error_set(
                reterr, TC_ERROR_POLICY, "syscalls.allow: \"%s\" may never be allowed: %s",
                tci_call_name((enum tci_call)call), tci_call_reason((enum tci_call)call));
            tci_error_remedy(reterr, "take it out of \"allow\"; a tool that needs it needs "
                                     "another kind of cage, such as backend = \"microvm\"");
            return -1;
        }
        work->calls[call].allowed = work->calls[call].named = true;
    }
    return 0;
}

/* A name in `allow` that could have no effect is not dropped in silence. */
static int refuse_named(unsigned call, unsigned flag, struct tc_error *reterr)
{
    for (size_t i = 0; i < tci_array_size(flag_reasons); i++)
        if (flag_reasons[i].flag == flag)
            (void)tci_error_set(reterr, TC_ERROR_POLICY,
                                "syscalls.allow: \"%s\" cannot be allowed here: %s",
                                tci_call_name((enum tci_call)call), flag_reasons[i].reason);
    tci_error_remedy(reterr, "take it out of \"allow\", or use a backend with namespaces of its "
                             "own, such as \"jail\"");
    return -1;
}

static int narrow(struct work *work, unsigned when, struct tc_error *reterr)
{
    for (unsigned i = 0; i < tci_narrow_count; i++) {
        const struct tci_narrow_row *row = &tci_narrow_rows[i];
        struct choice *choice = &work->calls[row->call];
        bool by_profile = (row->when & (TCI_WHEN_STRICT | TCI_WHEN_PURE)) != 0;
        if (!(row->when & when) || (by_profile && choice->named))
            continue;
        if (row->rules) {
            choice->rules |= row->rules;
            continue;
        }
        if (choice->named)
            return refuse_named(row->call, row->when, reterr);
        choice->allowed = false;
    }
    return 0;
}

static int choose_denied(struct work *work, const struct tci_strings *deny, struct tc_error *reterr)
{
    for (size_t i = 0; i < deny->count; i++) {
        int call = find_call("deny", deny->items[i].text, reterr);
        if (call < 0)
            return -1;
        if (call == TCI_CALL_execve) {
            (void)tci_error_set(reterr, TC_ERROR_POLICY,
                                "syscalls.deny: without \"execve\" the command itself could not "
                                "start");
            tci_error_remedy(reterr, "write commands = [] to let it start no other program");
            return -1;
        }
        work->calls[call].allowed = false;
    }
    return 0;
}

static void add_range(struct work *work, unsigned *count, uint32_t first, tci_answer answer)
{
    if (*count > 0 && work->ranges[*count - 1].answer == answer)
        return;
    work->ranges[*count].first = first;
    work->ranges[(*count)++].answer = answer;
}

/* From choices per call to ranges of numbers; how many. */
static unsigned make_ranges(struct work *work, uint32_t arch)
{
    unsigned count = 0;
    for (unsigned i = 0; i < TCI_NUMBER_LIMIT; i++)
        work->answers[i] = TCI_ANSWER_ERRNO | ENOSYS;
    for (unsigned i = 0; i < TCI_CALL_COUNT; i++) {
        const struct choice *choice = &work->calls[i];
        int number = tci_call_number((enum tci_call)i, arch);
        if (number == TCI_NUMBER_NONE)
            continue;
        if (choice->allowed)
            work->answers[number] = choice->rules;
        else if (number < TCI_NUMBER_NEW)
            work->answers[number] = TCI_ANSWER_ERRNO | EPERM;
    }
    for (unsigned i = 0; i < TCI_NUMBER_LIMIT; i++)
        add_range(work, &count, i, work->answers[i]);
    add_range(work, &count, TCI_NUMBER_LIMIT, TCI_ANSWER_ERRNO | ENOSYS);
    if (arch == AUDIT_ARCH_X86_64) {
        add_range(work, &count, X32_BIT, TCI_ANSWER_KILL);
        /* -1 is no x32 call: it is what a tracer writes to skip one. */
        add_range(work, &count, UINT32_MAX, TCI_ANSWER_ERRNO | ENOSYS);
    }
    return count;
}

static int compile(struct work *work, const struct tci_filter_spec *spec, uint32_t arch,
                   struct tci_filter *ret, struct tc_error *reterr)
{
    static const unsigned profile_bits[] = { [TCI_SYSCALLS_DEFAULT] = 0,
                                             [TCI_SYSCALLS_STRICT] = TCI_WHEN_STRICT,
                                             [TCI_SYSCALLS_PURE] = TCI_WHEN_PURE };
    const struct tci_syscalls *syscalls = spec->syscalls;
    choose_profile(work, syscalls->profile);
    if (choose_allowed(work, &syscalls->allow, reterr) < 0 ||
        narrow(work, spec->flags | profile_bits[syscalls->profile], reterr) < 0 ||
        choose_denied(work, &syscalls->deny, reterr) < 0)
        return -1;
    return tci_filter_assemble(arch, work->ranges, make_ranges(work, arch), ret, reterr);
}

int tci_filter_compile(const struct tci_filter_spec *spec, struct tci_filter *ret,
                       struct tc_error *reterr)
{
    uint32_t arch = spec->arch ? spec->arch : NATIVE_ARCH;
    struct work *work;
    int status;
    if (arch != AUDIT_ARCH_X86_64 && arch != AUDIT_ARCH_AARCH64)
        return tci_error_set(reterr, TC_ERROR_INTERNAL, "no tables for architecture %#x", arch);
    work = calloc(1, sizeof *work);
    if (!work)
        return tci_error_no_memory(reterr);
    status = compile(work, spec, arch, ret, reterr);
    free(work);
    return status;
}

void tci_filter_free(struct tci_filter *filter)
{
    free(filter->code);
    *filter = (struct tci_filter){ 0 };
}

const char *tci_filter_call_name(uint32_t arch, uint32_t number)
{
    if (!arch)
        arch = NATIVE_ARCH;
    if (number >= TCI_NUMBER_LIMIT)
        return NULL;
    for (unsigned i = 0; i < TCI_CALL_COUNT; i++)
        if (tci_call_number((enum tci_call)i, arch) == (int)number)
            return tci_call_name((enum tci_call)i);
    return NULL;
}
