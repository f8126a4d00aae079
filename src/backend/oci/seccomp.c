/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the outer system call profile of a container, in the words of the OCI (which engines take too). It
 * holds from before entry on. What the tool itself may do is ruled by our own filter, which entry
 * installs for the command and which looks at arguments (backend/filter); this one repeats the list of calls,
 * so that one mistake is not enough, and adds what entry and the end of a runtime's own work need.
 * Where the policy forbids a filter of ours (no_new_privileges = false), it is the only one: so calls
 * that are dangerous by their argument are narrowed here, too.
 *
 * The same policy gives the same bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/personality.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include "backend/filter/filter_table.h"
#include "backend/oci/oci.h"
#include "base/base64.h"
#include "json/write.h"

#if defined(__x86_64__)
#define ARCHITECTURE "SCMP_ARCH_X86_64"
#define NATIVE       AUDIT_ARCH_X86_64
#else
#define NATIVE       AUDIT_ARCH_AARCH64
#define ARCHITECTURE "SCMP_ARCH_AARCH64"
#endif

enum { profile_max = 64 * 1024 };

enum {
    namespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                 CLONE_NEWPID | CLONE_NEWNET,
    set_id = S_ISUID | S_ISGID,
    makes_file = O_CREAT | (O_TMPFILE & ~O_DIRECTORY),
};
static const uint64_t none[] = { 0 };
/* No device nodes, which are doors to the kernel's drivers. */
static const uint64_t file_types[] = { 0, S_IFREG, S_IFIFO, S_IFSOCK };
/* No AF_VSOCK (the hypervisor), AF_ALG, AF_PACKET or any other old family. */
/* AF_UNIX is the first: see choice.no_unix. */
static const uint64_t families[] = { AF_UNIX, AF_INET, AF_INET6, AF_NETLINK };
/* Those that change no mitigation of the kernel. */
static const uint64_t personalities[] = { 0, PER_LINUX32, 0x20000 /* UNAME26 */,
                                          PER_LINUX32 | 0x20000, UINT32_MAX };

/* Which calls: bit for bit by their index. */
struct choice {
    bool allowed[TCI_CALL_COUNT];
    bool no_unix; /* no new AF_UNIX sockets: those of the host could be reached */
};

static void allow_profile(struct choice *choice, unsigned bit)
{
    for (unsigned i = 0; i < TCI_CALL_COUNT; i++)
        if (tci_call_rows[i].profiles & bit)
            choice->allowed[i] = true;
}

static void set_named(struct choice *choice, const struct tci_strings *list, bool allowed)
{
    for (size_t i = 0; i < list->count; i++) {
        enum tci_call call = tci_call_find(list->items[i].text);
        if (call != TCI_CALL_COUNT && !(tci_call_rows[call].profiles & TCI_PROFILE_NEVER))
            choice->allowed[call] = allowed;
    }
}

static void choose(const struct tci_oci_plan *plan, struct choice *choice)
{
    static const uint8_t bits[] = { [TCI_SYSCALLS_DEFAULT] = TCI_PROFILE_D,
                                    [TCI_SYSCALLS_STRICT] = TCI_PROFILE_S,
                                    [TCI_SYSCALLS_PURE] = TCI_PROFILE_P };
    const struct tci_syscalls *syscalls = &plan->spec.settings->syscalls;
    allow_profile(choice, bits[syscalls->profile]);
    set_named(choice, &syscalls->allow, true);
    set_named(choice, &syscalls->deny, false);
    /* Entry starts processes, waits, sends signals and descriptors; a runtime in Go has threads until its
     * very last call. All of that is in the strict profile. */
    allow_profile(choice, TCI_PROFILE_S);
    choice->no_unix = plan->choice.engine == TCI_OCI_ENGINE_NONE &&
                      tci_filter_reaches_unix(plan->spec.settings);
    /* And with an engine entry connects to us. */
    if (plan->choice.engine != TCI_OCI_ENGINE_NONE)
        choice->allowed[TCI_CALL_socket] = choice->allowed[TCI_CALL_connect] = true;
}

/* Text that lives as long as the plan. */
static int keep(struct tci_oci_plan *plan, struct tci_buf *text, const char **ret,
                struct tc_error *reterr)
{
    int r = tci_buf_check(text, reterr);
    if (r == 0)
        *ret = tci_arena_strndup(plan->arena, text->data, text->length);
    tci_buf_free(text);
    return r == 0 && !*ret ? tci_error_no_memory(reterr) : r;
}

/* ---- writing ---------------------------------------------------------------------------------------- */

static void begin_rule(struct tci_json *json)
{
    tci_json_object_begin(json, NULL);
    tci_json_array_begin(json, "names");
}

static void end_rule(struct tci_json *json, const char *action)
{
    tci_json_array_end(json);
    tci_json_string(json, "action", action);
}

/* A call is allowed where an argument is one of these values; or, with a mask, where its bits are. */
struct narrow {
    enum tci_call call;
    unsigned argument;
    uint64_t
        mask; /* 0: the whole word. One with high bits, which the kernel ignores, is refused then */
    const uint64_t *values;
    size_t count;
};

/* One rule for each value, `from` this one on: rules of one call are alternatives. */
static void write_narrow(struct tci_json *json, const struct narrow *narrow, size_t from)
{
    for (size_t i = from; i < narrow->count; i++) {
        begin_rule(json);
        tci_json_string(json, NULL, tci_call_name(narrow->call));
        end_rule(json, "SCMP_ACT_ALLOW");
        tci_json_array_begin(json, "args");
        tci_json_object_begin(json, NULL);
        tci_json_unsigned(json, "index", narrow->argument);
        tci_json_unsigned(json, "value", narrow->mask ? narrow->mask : narrow->values[i]);
        if (narrow->mask)
            tci_json_unsigned(json, "valueTwo", narrow->values[i]);
        tci_json_string(json, "op", narrow->mask ? "SCMP_CMP_MASKED_EQ" : "SCMP_CMP_EQ");
        tci_json_object_end(json);
        tci_json_array_end(json);
        tci_json_object_end(json);
    }
}

/* A new namespace gives capabilities over kernel code that expects an administrator. A file that is setuid
 * would be the caller's own in a writable grant, and root's if root asks: whoever starts it becomes that one.
 * Where a file is not made, the mode of open may be anything. */
static const struct narrow narrowed[] = {
    { TCI_CALL_clone, 0, namespaces, none, 1 },
    { TCI_CALL_socket, 0, 0, families, tci_array_size(families) },
    { TCI_CALL_personality, 0, 0, personalities, tci_array_size(personalities) },
    { TCI_CALL_chmod, 1, set_id, none, 1 },
    { TCI_CALL_fchmod, 1, set_id, none, 1 },
    { TCI_CALL_fchmodat, 2, set_id, none, 1 },
    { TCI_CALL_fchmodat2, 2, set_id, none, 1 },
    { TCI_CALL_creat, 1, set_id, none, 1 },
    { TCI_CALL_open, 1, makes_file, none, 1 },
    { TCI_CALL_open, 2, set_id, none, 1 },
    { TCI_CALL_openat, 2, makes_file, none, 1 },
    { TCI_CALL_openat, 3, set_id, none, 1 },
    { TCI_CALL_mknod, 1, set_id | S_IFMT, file_types, tci_array_size(file_types) },
    { TCI_CALL_mknodat, 2, set_id | S_IFMT, file_types, tci_array_size(file_types) },
};

static bool is_narrowed(enum tci_call call)
{
    for (size_t i = 0; i < tci_array_size(narrowed); i++)
        if (narrowed[i].call == call)
            return true;
    return false;
}

static void write_calls(struct tci_json *json, struct choice *choice)
{
    begin_rule(json);
    for (unsigned i = 0; i < TCI_CALL_COUNT; i++)
        if (choice->allowed[i] && !is_narrowed((enum tci_call)i))
            tci_json_string(json, NULL, tci_call_name((enum tci_call)i));
    end_rule(json, "SCMP_ACT_ALLOW");
    tci_json_object_end(json);
    for (size_t i = 0; i < tci_array_size(narrowed); i++)
        if (choice->allowed[narrowed[i].call] &&
            tci_call_number(narrowed[i].call, NATIVE) != TCI_NUMBER_NONE)
            write_narrow(json, &narrowed[i],
                         choice->no_unix && narrowed[i].call == TCI_CALL_socket);
    /* Programs use an older call when a new one is not there; EPERM they take for an answer. */
    begin_rule(json);
    for (unsigned i = 0; i < TCI_CALL_COUNT; i++)
        if (!choice->allowed[i] && tci_call_rows[i].aarch64 >= TCI_NUMBER_NEW)
            tci_json_string(json, NULL, tci_call_name((enum tci_call)i));
    end_rule(json, "SCMP_ACT_ERRNO");
    tci_json_unsigned(json, "errnoRet", ENOSYS);
    tci_json_object_end(json);
}

/* ---- the same as a program ------------------------------------------------------------------------------ */

/* What a number gets; as the rules above say. */
static tci_answer answer_of(const struct choice *choice, enum tci_call call, int number)
{
    if (!choice->allowed[call])
        return TCI_ANSWER_ERRNO | (number < TCI_NUMBER_NEW ? EPERM : ENOSYS);
    if (call == TCI_CALL_socket && choice->no_unix)
        return TCI_RULE_SOCKET | TCI_RULE_SOCKET_NOT_UNIX;
    return is_narrowed(call) ? tci_call_rows[call].rules : TCI_RULE_ANY;
}

static void add_range(struct tci_range *ranges, unsigned *count, uint32_t first, tci_answer answer)
{
    if (!*count || ranges[*count - 1].answer != answer)
        ranges[(*count)++] = (struct tci_range){ .first = first, .answer = answer };
}

struct program {
    tci_answer answers[TCI_NUMBER_LIMIT];
    struct tci_range ranges[TCI_NUMBER_LIMIT + 3];
    struct tci_filter filter;
};

static int assemble(const struct choice *choice, struct program *program, struct tc_error *reterr)
{
    unsigned count = 0;
    for (unsigned i = 0; i < TCI_NUMBER_LIMIT; i++)
        program->answers[i] = TCI_ANSWER_ERRNO | ENOSYS; /* newer than our tables */
    for (unsigned i = 0; i < TCI_CALL_COUNT; i++) {
        int number = tci_call_number((enum tci_call)i, NATIVE);
        if (number != TCI_NUMBER_NONE)
            program->answers[number] = answer_of(choice, (enum tci_call)i, number);
    }
    for (unsigned i = 0; i < TCI_NUMBER_LIMIT; i++)
        add_range(program->ranges, &count, i, program->answers[i]);
    add_range(program->ranges, &count, TCI_NUMBER_LIMIT, TCI_ANSWER_ERRNO | ENOSYS);
#ifdef __x86_64__
    /* x32: another set of calls with other checks; but -1 is a tracer's way to skip one. */
    add_range(program->ranges, &count, 0x40000000, TCI_ANSWER_KILL);
    add_range(program->ranges, &count, UINT32_MAX, TCI_ANSWER_ERRNO | ENOSYS);
#endif
    return tci_filter_assemble(NATIVE, program->ranges, count, &program->filter, reterr);
}

/* crun takes the program itself, which saves it from making one at every start: 2 of 8 milliseconds. */
static int make_program(struct tci_oci_plan *plan, const struct choice *choice,
                        struct tc_error *reterr)
{
    struct tci_buf text = TCI_BUF_INIT(profile_max);
    struct program *program = tci_arena_new_of(plan->arena, struct program);
    if (!program)
        return tci_error_no_memory(reterr);
    if (assemble(choice, program, reterr) < 0)
        return -1;
    tci_base64_encode(&text, program->filter.code,
                      program->filter.count * sizeof *program->filter.code);
    tci_filter_free(&program->filter);
    return keep(plan, &text, &plan->seccomp_program, reterr);
}

int tci_oci_seccomp(struct tci_oci_plan *plan, struct tc_error *reterr)
{
    struct tci_buf out = TCI_BUF_INIT(profile_max);
    struct tci_json json = { .out = &out };
    struct choice choice = { 0 };
    choose(plan, &choice);
    tci_json_object_begin(&json, NULL);
    tci_json_string(&json, "defaultAction", "SCMP_ACT_ERRNO"); /* EPERM */
    tci_json_array_begin(&json, "architectures");
    tci_json_string(&json, NULL, ARCHITECTURE);
    tci_json_array_end(&json);
    tci_json_array_begin(&json, "syscalls");
    write_calls(&json, &choice);
    tci_json_array_end(&json);
    tci_json_object_end(&json);
    if (keep(plan, &out, &plan->seccomp_json, reterr) < 0)
        return -1;
    if (plan->choice.engine != TCI_OCI_ENGINE_NONE || plan->choice.runtime != TCI_OCI_CRUN)
        return 0;
    return make_program(plan, &choice, reterr);
}
