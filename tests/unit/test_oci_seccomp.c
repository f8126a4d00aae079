/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: tests of a container's outer system call profile, and of the program that crun gets instead. */
#include "oci_support.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include "backend/filter/filter_table.h"
#include "base/base64.h"
#include "filter_support.h"

static json_t *profile_of(const struct made *made)
{
    json_t *profile = json_loads(made->plan->seccomp_json, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(profile);
    assert_string_equal(text_at(profile, "defaultAction"), "SCMP_ACT_ERRNO");
    return profile;
}

/* In a rule that allows, with or without a look at arguments. */
static bool is_allowed(json_t *profile, const char *call, bool narrowed)
{
    json_t *rules = at(profile, "syscalls");
    for (size_t i = 0; i < json_array_size(rules); i++) {
        json_t *rule = json_array_get(rules, i);
        if (strcmp(text_at(rule, "action"), "SCMP_ACT_ALLOW") == 0 &&
            has_string(at(rule, "names"), call) && !!at(rule, "args") == narrowed)
            return true;
    }
    return false;
}

static void test_the_outer_profile_never_allows_what_undoes_a_cage(void **state)
{
    (void)state;
    static const char *const never[] = {
        "mount",  "unshare",           "setns",          "ptrace", "bpf",
        "keyctl", "open_by_handle_at", "io_uring_setup", "clone3", "kexec_load"
    };
    struct made made = must_make(&crun, "");
    json_t *profile = profile_of(&made);
    for (size_t i = 0; i < tci_array_size(never); i++)
        assert_false(is_allowed(profile, never[i], false) || is_allowed(profile, never[i], true));
    /* Only with these arguments. */
    assert_true(is_allowed(profile, "clone", true) && !is_allowed(profile, "clone", false));
    assert_true(is_allowed(profile, "socket", true) && !is_allowed(profile, "socket", false));
    assert_true(json_equal(profile, at(made.config, "linux/seccomp")));
    json_decref(profile);
    end(&made);
}

static void test_the_outer_profile_lets_entry_work(void **state)
{
    (void)state;
    static const char *const needed[] = { "recvmsg",   "sendmsg",      "execve",    "execveat",
                                          "wait4",     "prctl",        "seccomp",   "kill",
                                          "dup3",      "close",        "setsid",    "close_range",
                                          "prlimit64", "poll",         "futex",     "ioctl",
                                          "chdir",     "rt_sigaction", "exit_group" };
    static const char *const profiles[] = { "pure", "strict", "default" };
    for (size_t i = 0; i < tci_array_size(profiles); i++) {
        char text[100];
        struct made made;
        json_t *profile;
        (void)snprintf(text, sizeof text, "syscalls = \"%s\"", profiles[i]);
        made = must_make(&docker, text);
        profile = profile_of(&made);
        for (size_t j = 0; j < tci_array_size(needed); j++)
            if (!is_allowed(profile, needed[j], false))
                fail_msg("%s lacks %s", profiles[i], needed[j]);
        assert_true(is_allowed(profile, "clone", true));
        assert_true(is_allowed(profile, "connect", false)); /* to us */
        json_decref(profile);
        end(&made);
    }
}

static void test_the_outer_profile_follows_allow_and_deny(void **state)
{
    (void)state;
    struct made made = must_make(&crun,
                                 "syscalls = { profile = \"strict\", allow = [\"io_setup\"] }");
    json_t *profile = profile_of(&made);
    assert_true(is_allowed(profile, "io_setup", false));
    assert_false(is_allowed(profile, "connect", false));
    json_decref(profile);
    end(&made);
    made = must_make(&crun,
                     "syscalls = { profile = \"default\", deny = [\"mlockall\", \"execve\"] }");
    profile = profile_of(&made);
    assert_false(is_allowed(profile, "mlockall", false));
    assert_true(is_allowed(profile, "execve", false)); /* entry's own */
    json_decref(profile);
    end(&made);
}

static void test_the_same_policy_gives_the_same_bytes(void **state)
{
    (void)state;
    static const char text[] = "filesystem = { readable = [\"HOST/data\"] }\nnetwork = \"public\"";
    struct made one = must_make(&crun, text), two = must_make(&crun, text);
    assert_string_equal(one.plan->config_json, two.plan->config_json);
    assert_string_equal(one.plan->seccomp_json, two.plan->seccomp_json);
    assert_null(strchr(one.plan->seccomp_json, '\n'));
    end(&one);
    end(&two);
}

/* ---- the same as a program ---------------------------------------------------------------------------------- */

static struct tci_filter program_of(const struct made *made, struct tci_buf *bytes)
{
    const char *text = made->plan->seccomp_program;
    struct tci_filter filter;
    assert_non_null(text);
    assert_int_equal(tci_base64_decode(bytes, text, strlen(text)), 0);
    assert_int_equal(bytes->length % sizeof *filter.code, 0);
    filter.code = (struct sock_filter *)(void *)bytes->data;
    filter.count = (unsigned short)(bytes->length / sizeof *filter.code);
    return filter;
}

static bool is_missing(json_t *profile, const char *call)
{
    json_t *rules = at(profile, "syscalls");
    for (size_t i = 0; i < json_array_size(rules); i++) {
        json_t *rule = json_array_get(rules, i);
        if (strcmp(text_at(rule, "action"), "SCMP_ACT_ERRNO") == 0 &&
            json_integer_value(at(rule, "errnoRet")) == ENOSYS &&
            has_string(at(rule, "names"), call))
            return true;
    }
    return false;
}

static void test_the_program_says_what_the_profile_says(void **state)
{
    static const char narrow[] = "syscalls = { profile = \"strict\", allow = [\"socket\", "
                                 "\"io_setup\"], deny = [\"mlockall\"] }";
    static const char *const settings[] = { "", "syscalls = \"pure\"", narrow };
    static const uint64_t ordinary[6] = { 1, 1 }; /* AF_UNIX, SOCK_STREAM */
    (void)state;
    for (size_t i = 0; i < tci_array_size(settings); i++) {
        struct made made = must_make(&crun, settings[i]);
        struct tci_buf bytes = TCI_BUF_INIT(1 << 20);
        struct tci_filter program = program_of(&made, &bytes);
        json_t *profile = profile_of(&made);
        for (unsigned call = 0; call < TCI_CALL_COUNT; call++) {
            const char *name = tci_call_name((enum tci_call)call);
            int number = tci_call_number((enum tci_call)call, NATIVE);
            bool allowed = is_allowed(profile, name, false) || is_allowed(profile, name, true);
            uint64_t args[6] = { 0 };
            if (number == TCI_NUMBER_NONE)
                continue;
            if (call == TCI_CALL_socket)
                memcpy(args, ordinary, sizeof args);
            if (answer_to(&program, NATIVE, (uint32_t)number, args) != (allowed ? ALLOW
                                                                        : is_missing(profile, name)
                                                                            ? E(ENOSYS)
                                                                            : E(EPERM)))
                fail_msg("%s: they differ about %s", settings[i], name);
        }
        json_decref(profile);
        tci_buf_free(&bytes);
        end(&made);
    }
}

static void test_the_program_looks_at_dangerous_arguments(void **state)
{
    struct made made = must_make(&crun, "");
    struct tci_buf bytes = TCI_BUF_INIT(1 << 20);
    struct tci_filter program = program_of(&made, &bytes);
    const uint64_t user_namespace[6] = { CLONE_NEWUSER }, vsock[6] = { AF_VSOCK, SOCK_STREAM },
                   none[6] = { 0 };
    (void)state;
    assert_int_equal(answer_to(&program, NATIVE, SYS_clone, user_namespace), E(EPERM));
    assert_int_equal(answer_to(&program, NATIVE, SYS_socket, vsock), E(EAFNOSUPPORT));
    /* Calls newer than our tables, and another architecture. */
    assert_int_equal(answer_to(&program, NATIVE, 600, none), E(ENOSYS));
    assert_int_equal(answer_to(&program, NATIVE == X86 ? ARM : X86, SYS_read, none), KILL);
    tci_buf_free(&bytes);
    end(&made);
}

/* Abstract names belong to the network, and no mount keeps a tool from them. */
static void test_the_hosts_network_brings_no_unix_sockets(void **state)
{
    static const char host_network[] = "network = \"host\"\nallow_host_network = true";
    const uint64_t local[6] = { AF_UNIX, SOCK_STREAM }, internet[6] = { AF_INET, SOCK_STREAM };
    struct made made = must_make(&crun, host_network);
    struct tci_buf bytes = TCI_BUF_INIT(1 << 20);
    struct tci_filter program = program_of(&made, &bytes);
    (void)state;
    assert_int_equal(answer_to(&program, NATIVE, SYS_socket, local), E(EAFNOSUPPORT));
    assert_int_equal(answer_to(&program, NATIVE, SYS_socket, internet), ALLOW);
    assert_true(tci_filter_reaches_unix(made.plan->spec.settings));
    tci_buf_free(&bytes);
    end(&made);
}

/* The only filter of a tool that may gain privileges. */
static void test_no_profile_lets_anybody_make_a_setuid_file(void **state)
{
    static const struct {
        long number;
        uint64_t args[6];
        uint32_t answer;
    } rows[] = {
        { SYS_fchmod, { 3, 0755 }, ALLOW },
        { SYS_fchmod, { 3, 04755 }, E(EPERM) },
        { SYS_fchmod, { 3, 02755 }, E(EPERM) },
        { SYS_fchmodat, { 3, 0, 0644 }, ALLOW },
        { SYS_fchmodat, { 3, 0, 06644 }, E(EPERM) },
        { SYS_openat, { 3, 0, O_CREAT | O_WRONLY, 0600 }, ALLOW },
        { SYS_openat, { 3, 0, O_CREAT | O_WRONLY, 04700 }, E(EPERM) },
        { SYS_openat, { 3, 0, O_TMPFILE | O_WRONLY, 04700 }, E(EPERM) },
        { SYS_openat, { 3, 0, O_RDONLY, 0xffffffff }, ALLOW }, /* nobody looks at it */
        { SYS_mknodat, { 3, 0, S_IFIFO | 0600 }, ALLOW },
        { SYS_mknodat, { 3, 0, S_IFREG | 04755 }, E(EPERM) },
        { SYS_mknodat, { 3, 0, S_IFBLK | 0600 }, E(EPERM) },
    };
    static const char *const calls[] = { "fchmod", "fchmodat", "openat", "mknodat" };
    static const char text[] = "container = { no_new_privileges = false }\n"
                               "filesystem = { writable = [\"HOST/data\"] }";
    struct made made = must_make(&crun, text);
    struct tci_buf bytes = TCI_BUF_INIT(1 << 20);
    struct tci_filter program = program_of(&made, &bytes);
    json_t *profile = profile_of(&made);
    const uint64_t unix_socket[6] = { AF_UNIX, SOCK_STREAM };
    (void)state;
    for (size_t i = 0; i < tci_array_size(rows); i++)
        if (answer_to(&program, NATIVE, (uint32_t)rows[i].number, rows[i].args) != rows[i].answer)
            fail_msg("row %zu is answered otherwise", i);
    for (size_t i = 0; i < tci_array_size(calls); i++)
        assert_true(is_allowed(profile, calls[i], true) && !is_allowed(profile, calls[i], false));
    /* Sockets of the host may lie in what is granted. */
    assert_int_equal(answer_to(&program, NATIVE, SYS_socket, unix_socket), E(EAFNOSUPPORT));
    json_decref(profile);
    tci_buf_free(&bytes);
    end(&made);
}

static void test_only_crun_gets_the_program(void **state)
{
    static const struct how *const others[] = { &runc, &runsc, &docker, &podman };
    (void)state;
    for (size_t i = 0; i < tci_array_size(others); i++) {
        struct made made = must_make(others[i], "");
        assert_null(made.plan->seccomp_program);
        assert_null(at(made.config, "annotations"));
        end(&made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_outer_profile_never_allows_what_undoes_a_cage),
        cmocka_unit_test(test_the_outer_profile_lets_entry_work),
        cmocka_unit_test(test_the_outer_profile_follows_allow_and_deny),
        cmocka_unit_test(test_the_same_policy_gives_the_same_bytes),
        cmocka_unit_test(test_the_program_says_what_the_profile_says),
        cmocka_unit_test(test_the_program_looks_at_dangerous_arguments),
        cmocka_unit_test(test_the_hosts_network_brings_no_unix_sockets),
        cmocka_unit_test(test_no_profile_lets_anybody_make_a_setuid_file),
        cmocka_unit_test(test_only_crun_gets_the_program),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
