/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of the system call filter as a program. An interpreter of its own runs it for every
 * number, and what it answers is compared with a plain reading of the tables and with a list of
 * expectations that was written by hand.
 */
#include "filter_support.h"

#include <seccomp.h>
#include "backend/filter/filter_table.h"

enum { NUMBER_MAX = 600 };
static const uint32_t arches[] = { X86, ARM };

/* ---- the tables, read once more ---- */

struct row {
    const char *name;
    int number[2];
    const char *profiles, *rule;
};

#define NONE (-1)
#define GROUP(id, reason)
#define CALL(name, x86_64, aarch64, profiles, rule)                                                \
    { #name, { x86_64, aarch64 }, #profiles, #rule },
static const struct row rows[] = {
#include "backend/filter/syscalls.def"
#include "backend/filter/syscalls_never.def"
};
#undef CALL
#undef GROUP

/* Beside the flags of filter.h, which end before. */
#define TCI_FILTER_STRICT        (1U << 30)
#define TCI_FILTER_PURE          (1U << 31)
#define NARROW(when, call, rule) { TCI_FILTER_##when, #call, #rule },
static const struct {
    unsigned when;
    const char *call, *rule;
} narrows[] = {
#include "backend/filter/syscalls_narrow.def"
};

struct test {
    char kind; /* 0: none; 'i'n a set, 'b'etween, 'h'as bits */
    int argument;
    uint32_t mask, values[9];
    size_t count;
};

struct line {
    const char *rule;
    uint32_t action;
    struct test tests[3];
};

#define WORD       0xffffffffU
#define PASS       SECCOMP_RET_ALLOW
#define NO(errnum) (SECCOMP_RET_ERRNO | (errnum))
#define IS(n, mask_, ...)                                                                          \
    {                                                                                              \
        .kind = 'i', .argument = n, .mask = (uint32_t)(mask_), .values = { __VA_ARGS__ },          \
        .count = sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t)                            \
    }
#define BETWEEN(n, low, high)                                                                      \
    {                                                                                              \
        .kind = 'b', .argument = n, .mask = WORD, .values = { low, high }, .count = 2              \
    }
#define HAS(n, bits)                                                                               \
    {                                                                                              \
        .kind = 'h', .argument = n, .mask = WORD, .values = { (uint32_t)(bits) }, .count = 1       \
    }
#define RULE(id)
#define LINE(id, answer, ...) { .rule = #id, .action = answer, .tests = { __VA_ARGS__ } },
#define OTHERWISE(id, answer) { .rule = #id, .action = answer },
static const struct line lines[] = {
#include "backend/filter/arguments.def"
};

/* ---- a plain reading of them ---- */

static bool is_active(unsigned when, int profile, unsigned flags)
{
    return when & (flags | (profile == STRICT ? TCI_FILTER_STRICT : 0) |
                   (profile == PURE ? TCI_FILTER_PURE : 0));
}

static bool holds(const struct test *test, const uint64_t args[6])
{
    uint32_t value = (uint32_t)args[test->argument] & test->mask;
    if (test->kind == 'b')
        return value >= test->values[0] && value <= test->values[1];
    if (test->kind == 'h')
        return value & test->values[0];
    for (size_t i = 0; i < test->count; i++)
        if (value == test->values[i])
            return true;
    return test->kind == 0;
}

static uint32_t ask_rule(const char *rule, const uint64_t args[6])
{
    for (size_t i = 0; i < tci_array_size(lines); i++)
        if (strcmp(lines[i].rule, rule) == 0 && holds(&lines[i].tests[0], args) &&
            holds(&lines[i].tests[1], args) && holds(&lines[i].tests[2], args))
            return lines[i].action;
    assert_string_equal(rule, "ANY");
    return ALLOW;
}

/* What the tables say; more than one rule may refuse, then the errno may be that of any. */
static bool is_right(int profile, unsigned flags, const struct row *row, const uint64_t args[6],
                     uint32_t answer)
{
    uint32_t refused = E(row->number[0] >= 424 ? ENOSYS : EPERM), one;
    bool allowed = true, right = false;
    if (row->profiles[profile] != "DSP"[profile])
        return answer == refused;
    for (size_t i = 0; i < tci_array_size(narrows); i++)
        if (strcmp(narrows[i].call, row->name) == 0 && strcmp(narrows[i].rule, "REFUSE") == 0 &&
            is_active(narrows[i].when, profile, flags))
            return answer == refused;
    one = ask_rule(row->rule, args);
    allowed = one == ALLOW;
    right = !allowed && answer == one;
    for (size_t i = 0; i < tci_array_size(narrows); i++)
        if (strcmp(narrows[i].call, row->name) == 0 && is_active(narrows[i].when, profile, flags)) {
            one = ask_rule(narrows[i].rule, args);
            allowed = allowed && one == ALLOW;
            right = right || (one != ALLOW && answer == one);
        }
    return allowed ? answer == ALLOW : right;
}

static const struct row *row_of(unsigned arch, int number)
{
    for (size_t i = 0; i < tci_array_size(rows); i++)
        if (rows[i].number[arch] == number)
            return &rows[i];
    return NULL;
}

/* ---- every number ---- */

static void check_call(const struct tci_filter *filter, int profile, unsigned flags, unsigned arch,
                       const struct row *row, const uint64_t args[6])
{
    uint32_t answer = answer_to(filter, arches[arch], (uint32_t)row->number[arch], args);
    if (!is_right(profile, flags, row, args, answer))
        fail_msg("profile %d flags %#x arch %u %s(%#llx, %#llx, %#llx, %#llx): %#x", profile, flags,
                 arch, row->name, (unsigned long long)args[0], (unsigned long long)args[1],
                 (unsigned long long)args[2], (unsigned long long)args[3], answer);
}

static bool has_rule(const struct row *row, const char *rule)
{
    for (size_t i = 0; i < tci_array_size(narrows); i++)
        if (strcmp(narrows[i].call, row->name) == 0 && strcmp(narrows[i].rule, rule) == 0)
            return true;
    return strcmp(row->rule, rule) == 0;
}

/* Each value that a rule of the call names, its neighbours, and all that with high bits, among
 * other arguments of several kinds. */
static void check_arguments(const struct tci_filter *filter, int profile, unsigned flags,
                            unsigned arch, const struct row *row)
{
    static const uint64_t bases[][4] = {
        { 0, 0, 0, 0 },
        { AF_UNIX, SOCK_STREAM, 0, 0 },
        { AF_INET, SOCK_DGRAM, IPPROTO_UDP, 0 },
        { AF_NETLINK, SOCK_RAW, NETLINK_ROUTE, 0 },
        { 3, SOL_SOCKET, SO_KEEPALIVE, 0 },
        { 3, IPPROTO_TCP, TCP_NODELAY, 0 },
        { (uint64_t)-100, O_CREAT, O_CREAT, S_ISUID },
    };
    static const int offsets[] = { -1, 0, 1 };
    for (size_t i = 0; i < tci_array_size(lines); i++)
        for (size_t t = 0; t < 3 && lines[i].tests[t].count > 0 && has_rule(row, lines[i].rule);
             t++)
            for (size_t base = 0; base < tci_array_size(bases); base++)
                for (size_t v = 0; v < lines[i].tests[t].count * 6; v++) {
                    uint64_t args[6] = { 0 };
                    uint32_t value = lines[i].tests[t].values[v / 6] + (uint32_t)offsets[v % 3];
                    memcpy(args, bases[base], sizeof bases[base]);
                    args[lines[i].tests[t].argument] = value |
                                                       (v % 6 < 3 ? 0 : 0xdeadbeef00000000ULL);
                    check_call(filter, profile, flags, arch, row, args);
                }
}

static void check_all_numbers(int profile, unsigned flags, unsigned arch)
{
    static const uint64_t zero[6] = { 0 };
    struct tci_filter filter = must_compile(profile, flags, arches[arch]);
    for (int number = 0; number <= NUMBER_MAX; number++) {
        const struct row *row = row_of(arch, number);
        if (!row) {
            assert_int_equal(answer_to(&filter, arches[arch], (uint32_t)number, zero), E(ENOSYS));
            continue;
        }
        check_call(&filter, profile, flags, arch, row, zero);
        check_arguments(&filter, profile, flags, arch, row);
    }
    tci_filter_free(&filter);
}

static void test_every_number_gets_what_the_tables_say(void **state)
{
    (void)state;
    for (int profile = DEFAULT; profile <= PURE; profile++)
        for (unsigned arch = 0; arch < 2; arch++) {
            check_all_numbers(profile, 0, arch);
            check_all_numbers(profile, ALL_FLAGS, arch);
        }
}

static void test_each_flag_takes_away_what_the_tables_say(void **state)
{
    (void)state;
    for (int profile = DEFAULT; profile <= PURE; profile++)
        for (unsigned flag = 0; flag < FLAG_COUNT; flag++)
            check_all_numbers(profile, 1U << flag, profile == STRICT);
}

static void test_x32_and_foreign_architectures_are_killed(void **state)
{
    static const uint32_t foreign[] = { AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_RISCV64, 0,
                                        ~0U };
    static const uint64_t zero[6] = { 0 };
    (void)state;
    for (int profile = DEFAULT; profile <= PURE; profile++)
        for (unsigned arch = 0; arch < 2; arch++) {
            struct tci_filter filter = must_compile(profile, 0, arches[arch]);
            for (uint32_t number = 0; number <= NUMBER_MAX; number++) {
                uint32_t x32 = answer_to(&filter, arches[arch], 0x40000000U + number, zero);
                assert_int_equal(x32, arch == 0 ? KILL : E(ENOSYS));
                for (size_t i = 0; i < tci_array_size(foreign); i++)
                    assert_int_equal(answer_to(&filter, foreign[i], number, zero), KILL);
                assert_int_equal(answer_to(&filter, arches[1 - arch], number, zero), KILL);
            }
            assert_int_equal(answer_to(&filter, arches[arch], 0x3fffffff, zero), E(ENOSYS));
            assert_int_equal(answer_to(&filter, arches[arch], 0xfffffffe, zero),
                             arch == 0 ? KILL : E(ENOSYS));
            assert_int_equal(answer_to(&filter, arches[arch], 0xffffffff, zero), E(ENOSYS));
            tci_filter_free(&filter);
        }
}

/* A policy may cut the numbers into many pieces; then ways are longer than a jump can be. */
static void check_pieces(uint32_t seed)
{
    static const uint64_t new_user[6] = { CLONE_NEWUSER }, setuid[6] = { 0, 04755 };
    static const struct {
        tci_answer answer;
        uint32_t plain, with_new_user, with_setuid;
    } kinds[] = {
        { 0, ALLOW, ALLOW, ALLOW },
        { TCI_ANSWER_ERRNO | EPERM, E(EPERM), E(EPERM), E(EPERM) },
        { TCI_ANSWER_ERRNO | ENOSYS, E(ENOSYS), E(ENOSYS), E(ENOSYS) },
        { TCI_ANSWER_KILL, KILL, KILL, KILL },
        { TCI_RULE_CLONE, ALLOW, E(EPERM), ALLOW },
        { TCI_RULE_MODE_SECOND, ALLOW, ALLOW, E(EPERM) },
        { TCI_RULE_CLONE | TCI_RULE_MODE_SECOND, ALLOW, E(EPERM), E(EPERM) },
    };
    static const uint64_t zero[6] = { 0 };
    struct tci_range ranges[TCI_NUMBER_LIMIT];
    uint8_t kind[TCI_NUMBER_LIMIT + 10], previous = 0;
    struct tci_filter filter = { 0 };
    unsigned count = 0;
    for (uint32_t number = 0; number < tci_array_size(kind); number++) {
        seed = seed * 1103515245 + 12345;
        kind[number] = number < TCI_NUMBER_LIMIT ? seed >> 16 & 7 : previous;
        if (kind[number] >= tci_array_size(kinds))
            kind[number] = previous;
        if (number == 0 || kind[number] != previous)
            ranges[count++] = (struct tci_range){ number, kinds[kind[number]].answer };
        previous = kind[number];
    }
    assert_int_equal(tci_filter_assemble(X86, ranges, count, &filter, NULL), 0);
    assert_true(count > 300 && filter.count > 350);
    for (uint32_t number = 0; number < tci_array_size(kind); number++) {
        unsigned k = kind[number];
        assert_int_equal(answer_to(&filter, X86, number, zero), kinds[k].plain);
        assert_int_equal(answer_to(&filter, X86, number, new_user), kinds[k].with_new_user);
        assert_int_equal(answer_to(&filter, X86, number, setuid), kinds[k].with_setuid);
    }
    tci_filter_free(&filter);
}

static void test_long_programs_reach_their_ends(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 50; seed++)
        check_pieces(seed);
}

/* ---- the tables themselves ---- */

static void check_numbers(unsigned arch, uint32_t token)
{
    for (size_t i = 0; i < tci_array_size(rows); i++) {
        int known = seccomp_syscall_resolve_name_arch(token, rows[i].name);
        /* Negative: the library does not know the name, or that it exists there. */
        if (known >= 0 && known != rows[i].number[arch])
            fail_msg("%s is %d, not %d", rows[i].name, known, rows[i].number[arch]);
        if (known < 0 && rows[i].number[arch] >= 0 && rows[i].number[arch] < 400 &&
            strncmp(rows[i].name, "ur", 2) != 0 && strcmp(rows[i].name, "uprobe") != 0)
            fail_msg("%s does not exist", rows[i].name);
        if (rows[i].number[arch] != NONE)
            assert_ptr_equal(row_of(arch, rows[i].number[arch]), &rows[i]);
    }
    for (int number = 0; number < NUMBER_MAX; number++) {
        char *name = seccomp_syscall_resolve_num_arch(token, number);
        if (name && !row_of(arch, number))
            fail_msg("%s (%d) is missing", name, number);
        free(name);
    }
}

static void test_numbers_are_those_of_libseccomp(void **state)
{
    (void)state;
    check_numbers(0, SCMP_ARCH_X86_64);
    check_numbers(1, SCMP_ARCH_AARCH64);
}

static void test_each_profile_has_only_what_the_wider_one_has(void **state)
{
    (void)state;
    for (size_t i = 0; i < tci_array_size(rows); i++) {
        const char *profiles = rows[i].profiles;
        if (strcmp(profiles, "DSP") != 0 && strcmp(profiles, "DS_") != 0 &&
            strcmp(profiles, "D__") != 0 && strcmp(profiles, "___") != 0)
            assert_string_equal(profiles, "NEVER");
    }
}

static void test_every_rule_ends_with_otherwise(void **state)
{
    (void)state;
    for (size_t i = 0; i < tci_array_size(lines); i++) {
        bool last = i + 1 == tci_array_size(lines) || strcmp(lines[i].rule, lines[i + 1].rule) != 0;
        assert_int_equal(lines[i].tests[0].kind == 0, last);
    }
}

static void test_names_are_found_by_number(void **state)
{
    (void)state;
    for (size_t i = 0; i < tci_array_size(rows); i++)
        for (unsigned arch = 0; arch < 2; arch++)
            if (rows[i].number[arch] != NONE)
                assert_string_equal(
                    tci_filter_call_name(arches[arch], (uint32_t)rows[i].number[arch]),
                    rows[i].name);
    assert_null(tci_filter_call_name(X86, 400));
    assert_null(tci_filter_call_name(X86, 0xffffffff));
    assert_null(tci_filter_call_name(ARM, 0xffffffff));
}

/* Installing costs time for each instruction, and for each step on the way to each number. */
static void test_programs_and_paths_are_short(void **state)
{
    (void)state;
    for (int profile = DEFAULT; profile <= PURE; profile++)
        for (unsigned arch = 0; arch < 2; arch++) {
            struct tci_filter filter = must_compile(profile, 0, arches[arch]);
            unsigned sum = 0;
            for (int number = 0; number < 470; number++) {
                struct seccomp_data data = { .nr = number, .arch = arches[arch] };
                unsigned steps;
                bool constant;
                uint32_t answer = interpret(&filter, &data, &steps, &constant);
                const struct row *row = row_of(arch, number);
                sum += constant ? steps : 0;
                /* The kernel's bitmap of calls that need no filter works only for these. */
                if (constant && answer == ALLOW)
                    assert_non_null(row);
                if (row && answer == ALLOW && strcmp(row->rule, "ANY") == 0 &&
                    strcmp(row->name, "kill") != 0 && strcmp(row->name, "prlimit64") != 0 &&
                    strcmp(row->name, "setpriority") != 0)
                    assert_true(constant);
                assert_true(!constant || steps <= 18);
            }
            assert_in_range(filter.count, 100, 240);
            assert_in_range(sum, 1000, 11 * 470);
            tci_filter_free(&filter);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_number_gets_what_the_tables_say),
        cmocka_unit_test(test_each_flag_takes_away_what_the_tables_say),
        cmocka_unit_test(test_x32_and_foreign_architectures_are_killed),
        cmocka_unit_test(test_long_programs_reach_their_ends),
        cmocka_unit_test(test_numbers_are_those_of_libseccomp),
        cmocka_unit_test(test_each_profile_has_only_what_the_wider_one_has),
        cmocka_unit_test(test_every_rule_ends_with_otherwise),
        cmocka_unit_test(test_names_are_found_by_number),
        cmocka_unit_test(test_programs_and_paths_are_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
