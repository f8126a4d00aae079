/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the tracer concludes from a call; test_denials.py has real cages. */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "backend/native/trace_internal.h"

/* ---- the filter --------------------------------------------------------------------------------- */

struct filtered {
    struct tc_policy *policy;
    struct tc_plan plan;
};

static void make_filter(struct filtered *f, const char *text, unsigned flags, bool is_jail)
{
    struct tc_error error = { 0 };
    f->policy = load_text(text);
    f->plan = (struct tc_plan){ .is_jail = is_jail,
                                .spec.settings = &tci_policy_tool(f->policy, "t")->settings };
    struct tci_filter_spec spec = { .syscalls = &f->plan.spec.settings->syscalls, .flags = flags };
    if (tci_filter_compile(&spec, &f->plan.filter, &error) < 0)
        fail_msg("%s", error.message);
}

static void free_filter(struct filtered *f)
{
    tci_filter_free(&f->plan.filter);
    tc_policy_free(f->policy);
}

static struct seccomp_data a_call(long number, uint64_t first)
{
    return (struct seccomp_data){ .nr = (int)number, .arch = TCI_TRACE_ARCH, .args = { first } };
}

static void expect_rule(struct filtered *f, const struct seccomp_data *data, const char *part)
{
    char rule[TCI_TRACE_RULE_MAX];
    tci_trace_filter_rule(&f->plan, data, rule);
    if (!strstr(rule, part))
        fail_msg("\"%s\" is not in: %s", part, rule);
}

static void test_the_filter_is_run_as_the_kernel_runs_it(void **state)
{
    struct filtered f;
    struct seccomp_data data = a_call(SYS_read, 0);
    (void)state;
    make_filter(&f, "[tool.t]\n", 0, true);
    assert_int_equal(tci_trace_filter_run(&f.plan.filter, &data), SECCOMP_RET_ALLOW);
    data = a_call(SYS_mount, 0);
    assert_int_equal(tci_trace_filter_run(&f.plan.filter, &data), SECCOMP_RET_ERRNO | EPERM);
    data = a_call(SYS_clone3, 0);
    assert_int_equal(tci_trace_filter_run(&f.plan.filter, &data), SECCOMP_RET_ERRNO | ENOSYS);
    data = a_call(SYS_clone, CLONE_NEWUSER);
    assert_int_equal(tci_trace_filter_run(&f.plan.filter, &data), SECCOMP_RET_ERRNO | EPERM);
    data = a_call(SYS_clone, SIGCHLD);
    assert_int_equal(tci_trace_filter_run(&f.plan.filter, &data), SECCOMP_RET_ALLOW);
    data = a_call(SYS_socket, AF_VSOCK);
    assert_int_equal(tci_trace_filter_run(&f.plan.filter, &data), SECCOMP_RET_ERRNO | EAFNOSUPPORT);
    data = a_call(SYS_read, 0);
    data.arch = AUDIT_ARCH_I386;
    assert_int_equal(tci_trace_filter_run(&f.plan.filter, &data), SECCOMP_RET_KILL_PROCESS);
    free_filter(&f);
}

static void test_a_broken_program_never_allows(void **state)
{
    struct sock_filter programs[][2] = {
        { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 64), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) },
        { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 2), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) },
        { BPF_STMT(BPF_JMP | BPF_JA, 7), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) },
        { BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 9, 9),
          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) },
        { BPF_STMT(BPF_MISC | BPF_TAX, 0), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) },
    };
    struct seccomp_data data = a_call(SYS_read, 0);
    (void)state;
    for (size_t i = 0; i < tci_array_size(programs); i++)
        assert_int_equal(tci_trace_filter_run(&(struct tci_filter){ programs[i], 2 }, &data),
                         SECCOMP_RET_KILL_PROCESS);
    assert_int_equal(tci_trace_filter_run(&(struct tci_filter){ NULL, 0 }, &data),
                     SECCOMP_RET_KILL_PROCESS);
}

static void test_only_the_same_errno_is_the_filters(void **state)
{
    struct filtered f;
    struct seccomp_data data = a_call(SYS_mount, 0);
    (void)state;
    make_filter(&f, "[tool.t]\n", 0, true);
    assert_true(tci_trace_filter_refused(&f.plan, &data, EPERM));
    assert_false(tci_trace_filter_refused(&f.plan, &data, EACCES));
    data = a_call(SYS_read, 0);
    assert_false(tci_trace_filter_refused(&f.plan, &data, EPERM));
    free_filter(&f);
}

static void test_the_rule_of_a_call_says_what_it_would_take(void **state)
{
    struct filtered f;
    struct seccomp_data data;
    (void)state;
    make_filter(&f, "[tool.t]\nsyscalls = { profile = \"pure\", deny = [\"getcwd\"] }\n", 0, true);
    data = a_call(SYS_mount, 0);
    expect_rule(&f, &data, "profile \"pure\" does not have it; \"mount\" may never be allowed");
    data = a_call(SYS_getcwd, 0);
    expect_rule(&f, &data, "remove \"getcwd\" from \"deny\"");
    data = a_call(SYS_getpeername, 0);
    expect_rule(&f, &data, "add \"getpeername\" to \"allow\"");
    data = a_call(500, 0);
    expect_rule(&f, &data, "does not know the call");
    data.arch = AUDIT_ARCH_I386;
    expect_rule(&f, &data, "another architecture");
    free_filter(&f);

    make_filter(&f, "[tool.t]\n", 0, true);
    data = a_call(SYS_clone, CLONE_NEWUSER);
    expect_rule(&f, &data, "with these arguments, and no policy");
    free_filter(&f);

    make_filter(&f, "[tool.t]\nbackend = \"process\"\nsyscalls = \"default\"\n",
                TCI_FILTER_NO_NAMESPACES | TCI_FILTER_KEEP_GROUP, false);
    data = a_call(SYS_setsid, 0);
    expect_rule(&f, &data, "use backend = \"jail\"");
    free_filter(&f);
}

/* ---- text --------------------------------------------------------------------------------------- */

static void expect_clean(const char *bytes, const char *text)
{
    char buffer[64];
    assert_string_equal(tci_trace_clean(bytes, strlen(bytes), buffer, sizeof buffer), text);
}

static void test_text_of_the_cage_can_be_shown_and_quoted(void **state)
{
    char buffer[12];
    (void)state;
    expect_clean("/etc/passwd", "/etc/passwd");
    expect_clean("/tmp/gr\xc3\xbc\xc3\x9f", "/tmp/gr\xc3\xbc\xc3\x9f");
    expect_clean("a\"b\\c", "a\\x22b\\x5cc");
    expect_clean("a\nb\x1b[31m\x7f", "a\\x0ab\\x1b[31m\\x7f");
    expect_clean("\xff\xc3", "\\xff\\xc3");
    expect_clean("\xe2\x80\xae", "\\xe2\\x80\\xae");          /* right-to-left override */
    expect_clean("\xf3\xa0\x81\x81", "\\xf3\\xa0\\x81\\x81"); /* an invisible tag character */
    assert_string_equal(tci_trace_clean("0123456789abcdef", 16, buffer, sizeof buffer), "01234567");
    assert_string_equal(tci_trace_clean("\n\n\n\n", 4, buffer, sizeof buffer), "\\x0a\\x0a");
}

static void test_the_list_has_each_denial_once_and_an_end(void **state)
{
    struct tci_trace_list list = { .arena = tci_arena_new() };
    char target[16];
    (void)state;
    for (int i = 0; i < 2 * TCI_TRACE_DENIALS_MAX; i++) {
        (void)snprintf(target, sizeof target, "/%d", i);
        tci_trace_list_add(&list, "read", target, "rule");
        tci_trace_list_add(&list, "read", target, "rule");
    }
    tci_trace_list_end(&list);
    tci_trace_list_end(&list);
    assert_false(list.no_memory);
    assert_int_equal(list.count, TCI_TRACE_DENIALS_MAX + 1);
    assert_string_equal(list.denials[1].target, "/1");
    assert_string_equal(list.denials[TCI_TRACE_DENIALS_MAX].kind, "more");
    assert_non_null(strstr(list.denials[TCI_TRACE_DENIALS_MAX].rule, "128 attempts more"));
    tci_arena_free(list.arena);
}

static void test_the_same_path_read_and_written_are_two_denials(void **state)
{
    struct tci_trace_list list = { .arena = tci_arena_new() };
    (void)state;
    tci_trace_list_add(&list, "read", "/x", "rule");
    tci_trace_list_add(&list, "write", "/x", "rule");
    tci_trace_list_end(&list);
    assert_int_equal(list.count, 2);
    tci_arena_free(list.arena);
}

/* ---- paths -------------------------------------------------------------------------------------- */

static void expect_normal(const char *base, const char *path, const char *normal, bool exact)
{
    char buffer[TCI_PATH_MAX + 1];
    bool is_exact = !exact;
    assert_true(tci_trace_normalise(base, path, buffer, &is_exact));
    assert_string_equal(buffer, normal);
    assert_int_equal(is_exact, exact);
}

static void test_paths_are_made_absolute_as_text(void **state)
{
    char *path = malloc(2 * TCI_PATH_MAX), buffer[TCI_PATH_MAX + 1];
    bool exact;
    (void)state;
    expect_normal("/work", "a/b", "/work/a/b", true);
    expect_normal("/work", "/a//b/./c/", "/a/b/c", true);
    expect_normal("/work/deep", "../x", "/work/x", true);
    expect_normal("/work", "../../../x", "/x", true);
    expect_normal("/work", "", "/work", true);
    expect_normal("/", "..", "/", true);
    expect_normal("/work", "link/../x", "/work/x", false); /* "link" may lead anywhere */
    expect_normal("", "/a/../b", "/b", false);
    expect_normal("/work", "...", "/work/...", true);
    assert_non_null(path);
    memset(path, 'a', 2 * TCI_PATH_MAX);
    path[2 * TCI_PATH_MAX - 1] = '\0';
    assert_false(tci_trace_normalise("/", path, buffer, &exact));
    path[TCI_PATH_MAX - 1] = '\0';
    assert_true(tci_trace_normalise("/", path, buffer, &exact));
    assert_int_equal(strlen(buffer), TCI_PATH_MAX);
    path[TCI_PATH_MAX - 1] = 'a';
    path[TCI_PATH_MAX] = '\0';
    assert_false(tci_trace_normalise("/", path, buffer, &exact));
    free(path);
}

static const char filesystem_policy[] =
    "[tool.t]\n"
    "filesystem = { readable = [\"/data\", \"/srv/docs:/docs\"], writable = [\"/work\"],\n"
    "               hidden = [\"/work/secret\"] }\n"
    "[tool.none]\n"
    "filesystem = { scratch = \"0MB\" }\n"
    "system = false\n";

static void expect_path(const struct tci_settings *s, enum tci_trace_access access,
                        const char *path, const char *part)
{
    struct tci_trace_host nothing = { .mounts = NULL };
    char rule[TCI_TRACE_RULE_MAX] = "";
    bool allowed = tci_trace_path_allowed(s, &nothing, access, path, rule);
    if (allowed != !part || (part && !strstr(rule, part)))
        fail_msg("%s: allowed %d, rule %s", path, allowed, rule);
}

static void test_the_rule_of_a_path_says_what_it_would_take(void **state)
{
    struct tc_policy *policy = load_text(filesystem_policy);
    const struct tci_settings *s = &tci_policy_tool(policy, "t")->settings;
    const struct tci_settings *none = &tci_policy_tool(policy, "none")->settings;
    (void)state;
    expect_path(s, TCI_TRACE_READ, "/data/x", NULL);
    expect_path(s, TCI_TRACE_READ, "/usr/bin/ls", NULL);
    expect_path(s, TCI_TRACE_WRITE, "/work/x", NULL);
    expect_path(s, TCI_TRACE_MAKE, "/tmp/x", NULL);
    expect_path(s, TCI_TRACE_READ, "/etc/shadow", "add \"/etc/shadow\" to \"readable\"");
    expect_path(s, TCI_TRACE_EXEC, "/opt/x", "add \"/opt/x\" to \"readable\"");
    expect_path(s, TCI_TRACE_WRITE, "/etc/shadow", "add \"/etc/shadow\" to \"writable\"");
    expect_path(s, TCI_TRACE_MAKE, "/new",
                "make files below a path that is \"writable\", or in /tmp");
    expect_path(s, TCI_TRACE_WRITE, "/data/x", "move \"/data\" from \"readable\" to \"writable\"");
    expect_path(s, TCI_TRACE_WRITE, "/usr/x", "system: \"/usr\" is only readable");
    expect_path(s, TCI_TRACE_READ, "/work/secret/x", "remove \"/work/secret\" from \"hidden\"");
    expect_path(s, TCI_TRACE_READ, "/srv/docs/a", "is \"/docs/a\" in the cage");
    expect_path(s, TCI_TRACE_READ, "/srv/docs", "is \"/docs\" in the cage");
    expect_path(s, TCI_TRACE_READ, "/srv/docs2", "add \"/srv/docs2\" to \"readable\"");
    expect_path(none, TCI_TRACE_READ, "/usr/bin/ls", "add \"/usr/bin/ls\" to \"readable\"");
    expect_path(none, TCI_TRACE_MAKE, "/tmp/x", "\"writable\"");
    tc_policy_free(policy);
}

static void test_a_path_in_a_rule_is_whole_or_not_there(void **state)
{
    struct tc_policy *policy = load_text(filesystem_policy);
    const struct tci_settings *s = &tci_policy_tool(policy, "t")->settings;
    char path[1000];
    (void)state;
    memset(path, 'a', sizeof path);
    path[0] = '/';
    path[200] = '\0';
    expect_path(s, TCI_TRACE_READ, path, "aaa\" to \"readable\"");
    path[200] = 'a';
    path[999] = '\0';
    expect_path(s, TCI_TRACE_READ, path, "add it to \"readable\"");
    memset(path, '\n', 150);
    path[0] = '/';
    path[150] = '\0'; /* four times as long when it is shown */
    expect_path(s, TCI_TRACE_READ, path, "add it to \"readable\"");
    expect_path(s, TCI_TRACE_READ, "/\" to \"writable", "add \"/\\x22 to \\x22writable\" to");
    tc_policy_free(policy);
}

static void test_a_program_that_is_not_listed_is_named(void **state)
{
    struct tci_native_program listed[] = { { .path = "/usr/bin/ls" } };
    struct tc_policy *policy = load_text("[tool.t]\ncommands = [\"ls\", \"/opt/run\"]\n");
    struct tc_plan plan = { .is_jail = true,
                            .spec.settings = &tci_policy_tool(policy, "t")->settings,
                            .programs = { .items = listed, .count = 1 } };
    char rule[TCI_TRACE_RULE_MAX];
    (void)state;
    tci_trace_program_rule(&plan, "/usr/bin/cat", rule);
    assert_string_equal(rule, "commands: the program is not listed; add \"cat\" to \"commands\"");
    tci_trace_program_rule(&plan, "/usr/bin/run", rule);
    assert_non_null(strstr(rule, "not listed; add \"run\""));
    tci_trace_program_rule(&plan, "/bin/ls", rule);
    assert_non_null(strstr(rule, "it is listed"));
    tci_trace_program_rule(&plan, "/opt/run", rule);
    assert_non_null(strstr(rule, "it is listed"));
    plan.programs.any = true;
    tci_trace_program_rule(&plan, "/usr/bin/cat", rule);
    assert_non_null(strstr(rule, "any program may start"));
    tc_policy_free(policy);
}

/* ---- the host ----------------------------------------------------------------------------------- */

static void parse_host(struct tci_arena *arena, const char *text, struct tci_trace_host *ret)
{
    assert_int_equal(tci_trace_host_parse(arena, text, ret), 0);
}

static void test_only_local_file_systems_are_looked_at(void **state)
{
    struct tci_arena *arena = tci_arena_new();
    struct tci_trace_host host;
    (void)state;
    parse_host(arena,
               "1 0 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
               "2 1 0:9 / /etc rw - nfs4 server:/export rw\n"
               "3 1 0:8 / /net rw shared:2 master:3 - autofs /etc/auto.net rw\n"
               "4 1 0:7 / /with\\040space rw - tmpfs tmpfs rw\n",
               &host);
    assert_int_equal(host.count, 4);
    assert_string_equal(host.mounts[3].path, "/with space");
    assert_true(host.mounts[0].is_local && host.mounts[3].is_local);
    assert_true(tci_trace_host_has(&host, "/usr/bin"));
    assert_true(tci_trace_host_has(&host, "/"));
    assert_false(tci_trace_host_has(&host, "/usr/bin/no such program"));
    assert_false(tci_trace_host_has(&host, "/etc/passwd")); /* it is there, but nobody asks NFS */
    assert_false(tci_trace_host_has(&host, "/net/host.example/x"));
    /* Something on top of a network file system may lie under it as well. */
    parse_host(arena,
               "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:9 / /usr rw - fuse.sshfs x rw\n"
               "3 2 0:8 / /usr/bin rw - tmpfs tmpfs rw\n",
               &host);
    assert_false(tci_trace_host_has(&host, "/usr/bin"));
    parse_host(arena, "", &host);
    assert_false(tci_trace_host_has(&host, "/usr/bin"));
    parse_host(arena, "nonsense\n\n 1 2 3\n", &host);
    assert_false(tci_trace_host_has(&host, "/usr/bin"));
    tci_arena_free(arena);
}

static void test_links_are_not_followed_to_another_file_system(void **state)
{
    struct tci_arena *arena = tci_arena_new();
    struct tci_trace_host host;
    char directory[] = "/tmp/test-trace-XXXXXX", path[128];
    (void)state;
    assert_non_null(mkdtemp(directory));
    assert_int_equal(tci_trace_host_read(arena, &host), 0);
    assert_true(host.count > 0);
    (void)snprintf(path, sizeof path, "%s/out", directory);
    assert_int_equal(symlink("/proc", path), 0);
    assert_true(tci_trace_host_has(&host, path)); /* the link itself is there */
    (void)snprintf(path, sizeof path, "%s/out/self", directory);
    assert_int_equal(access(path, F_OK), 0);
    assert_false(tci_trace_host_has(&host, path));
    (void)snprintf(path, sizeof path, "%s/out", directory);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(directory), 0);
    tci_arena_free(arena);
}

/* ---- names -------------------------------------------------------------------------------------- */

static const unsigned char question[] = { 0x12, 0x34, 0x01, 0,   0,   1, 0,   0,   0,
                                          0,    0,    0,    1,   'a', 7, 'e', 'x', 'a',
                                          'm',  'p',  'l',  'e', 0,   0, 1,   0,   1 };

static void test_the_name_of_a_question_is_read(void **state)
{
    unsigned char packet[sizeof question];
    char name[254];
    (void)state;
    assert_true(tci_trace_question_name(question, sizeof question, name, sizeof name));
    assert_string_equal(name, "a.example");
    for (size_t length = 0; length < sizeof question; length++)
        assert_false(tci_trace_question_name(question, length, name, sizeof name));
    assert_false(tci_trace_question_name(question, sizeof question, name, 8));
    static const struct {
        size_t at;
        unsigned char value;
    } wrong[] = { { 2, 0x80 }, { 2, 0x28 }, { 5, 2 },    { 7, 1 },     { 12, 0xc0 },
                  { 12, 64 },  { 13, '.' }, { 13, '"' }, { 13, 0x1b }, { 26, 3 } };
    for (size_t i = 0; i < tci_array_size(wrong); i++) {
        memcpy(packet, question, sizeof packet);
        packet[wrong[i].at] = wrong[i].value;
        assert_false(tci_trace_question_name(packet, sizeof packet, name, sizeof name));
    }
}

static void test_any_bytes_may_be_asked_about(void **state)
{
    unsigned char packet[64];
    char name[32];
    unsigned seed = 1;
    (void)state;
    for (int round = 0; round < 20000; round++) {
        memcpy(packet, question, 13);
        for (size_t i = 12; i < sizeof packet; i++) {
            seed = seed * 1103515245 + 12345;
            packet[i] = (unsigned char)(seed >> 16) & (round % 2 ? 0xff : 0x0f);
        }
        if (tci_trace_question_name(packet, 13 + (size_t)(round % 50), name, sizeof name))
            assert_in_range(strlen(name), 1, sizeof name - 1);
    }
}

/* ---- real cages --------------------------------------------------------------------------------- */

/* Nothing that a host may be unable to keep; nothing of this is about limits. */
static const char cage_policy[] = "[defaults]\n"
                                  "timeout = \"30s\"\n"
                                  "memory = \"unlimited\"\n"
                                  "cpu = \"unlimited\"\n"
                                  "pids = \"unlimited\"\n";

struct fixture {
    struct tc_policy *policy;
    struct tc_engine *engine;
    bool works;
};

static int open_engine(void **state)
{
    static const char *const argv[] = { "true", NULL };
    static struct fixture fixture;
    struct tc_result *result = NULL;
    struct tc_error error = { 0 };
    const char *must_work = getenv("TOOLCAGE_MUST_WORK");
    fixture.policy = load_text(cage_policy);
    if (tc_engine_open(&(struct tc_engine_options){ .policy = fixture.policy }, &fixture.engine,
                       &error) < 0 ||
        tc_call(fixture.engine, &(struct tc_request){ .argv = argv }, &result, &error) < 0)
        fail_msg("%s", error.message);
    fixture.works = result->verdict == TC_VERDICT_OK;
    if (!fixture.works && must_work && (strstr(must_work, "jail") || strstr(must_work, "all")))
        fail_msg("jail must work here: %s", result->reason);
    tc_result_free(result);
    *state = &fixture;
    return 0;
}

static int close_engine(void **state)
{
    struct fixture *fixture = *state;
    tc_engine_close(fixture->engine);
    tc_policy_free(fixture->policy);
    /* Nobody is left of all these cages, neither as a child nor as a tracee. */
    return waitpid(-1, NULL, WNOHANG | __WALL) == -1 && errno == ECHILD ? 0 : -1;
}

static struct tc_engine *engine_of(void **state)
{
    struct fixture *fixture = *state;
    if (!fixture->works)
        skip();
    return fixture->engine;
}

static struct tc_result *explain(struct tc_engine *engine, const char *script)
{
    const char *const argv[] = { "sh", "-c", script, NULL };
    struct tc_result *result = NULL;
    struct tc_error error = { 0 };
    if (tc_call(engine, &(struct tc_request){ .argv = argv, .flags = TC_REQUEST_EXPLAIN_DENIALS },
                &result, &error) < 0)
        fail_msg("%s", error.message);
    return result;
}

static int child_that_ends_with(int status)
{
    int pid = fork();
    if (pid == 0) {
        (void)usleep(100000);
        _exit(status);
    }
    return pid;
}

static void test_children_of_the_host_are_left_alone(void **state)
{
    struct tc_engine *engine = engine_of(state);
    int pid = child_that_ends_with(7), status = 0;
    struct tc_result *result = explain(engine, "sleep 0.3; cat /etc/shadow 2>/dev/null; exit 3");
    assert_int_equal(result->exit_code, 3);
    assert_int_equal(result->denial_count, 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    tc_result_free(result);
}

static void *explain_some(void *argument)
{
    intptr_t wrong = 0;
    for (int i = 0; i < 5; i++) {
        struct tc_result *result = explain(argument, "cat /etc/shadow; (exit 4)");
        wrong += result->exit_code != 4 || result->denial_count != 1 ||
                 strcmp(result->denials[0].target, "/etc/shadow") != 0;
        tc_result_free(result);
    }
    return (void *)wrong;
}

static void test_several_threads_trace_at_once(void **state)
{
    struct tc_engine *engine = engine_of(state);
    pthread_t threads[4];
    for (size_t i = 0; i < tci_array_size(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, explain_some, engine), 0);
    for (size_t i = 0; i < tci_array_size(threads); i++) {
        void *wrong = NULL;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
}

static void test_a_call_can_be_given_up_at_any_moment(void **state)
{
    static const char *const argv[] = { "sh", "-c", "while true; do cat /etc/shadow; done", NULL };
    struct tc_engine *engine = engine_of(state);
    for (unsigned i = 0; i < 30; i++) {
        struct tc_call *call = NULL;
        struct tc_error error = { 0 };
        if (tc_call_start(engine,
                          &(struct tc_request){ .argv = argv, .flags = TC_REQUEST_EXPLAIN_DENIALS },
                          &call, &error) < 0)
            fail_msg("%s", error.message);
        (void)usleep(i * i * 100);
        if (i % 2)
            tc_call_cancel(call);
        tc_call_free(call);
    }
}

static atomic_bool is_over;

static void *wait_for_everybody(void *unused)
{
    while (!atomic_load(&is_over))
        if (waitpid(-1, NULL, __WALL | WNOHANG) <= 0)
            (void)usleep(1000);
    return unused;
}

/* It takes the tracer's messages away; the call still ends. */
static void test_a_host_that_waits_for_everybody_is_not_kept(void **state)
{
    static const char *const argv[] = { "sh", "-c", "while true; do cat /etc/shadow; done", NULL };
    struct tc_engine *engine = engine_of(state);
    pthread_t thread;
    atomic_store(&is_over, false);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_everybody, NULL), 0);
    for (int i = 0; i < 5; i++) {
        struct tc_result *result = NULL;
        struct tc_error error = { 0 };
        if (tc_call(engine,
                    &(struct tc_request){ .argv = argv,
                                          .limits.timeout_ms = 200,
                                          .flags = TC_REQUEST_EXPLAIN_DENIALS |
                                                   TC_REQUEST_KEEP_NOTHING },
                    &result, &error) < 0)
            fail_msg("%s", error.message);
        assert_int_equal(result->verdict, TC_VERDICT_TIMEOUT);
        tc_result_free(result);
    }
    atomic_store(&is_over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* ---- who can be traced -------------------------------------------------------------------------- */

static void test_another_backend_is_refused(void **state)
{
    const struct tc_backend other = { .abi = TC_BACKEND_ABI,
                                      .kind = TCI_BACKEND_JAIL,
                                      .name = "other" };
    struct tci_trace *trace = NULL;
    struct tc_error error = { 0 };
    (void)state;
    assert_int_equal(tci_trace_start(&other, NULL, &trace, &error), -1);
    assert_int_equal(error.code, TC_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.remedy, "backend = \"jail\""));
    assert_null(trace);
    tci_trace_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_filter_is_run_as_the_kernel_runs_it),
        cmocka_unit_test(test_a_broken_program_never_allows),
        cmocka_unit_test(test_only_the_same_errno_is_the_filters),
        cmocka_unit_test(test_the_rule_of_a_call_says_what_it_would_take),
        cmocka_unit_test(test_text_of_the_cage_can_be_shown_and_quoted),
        cmocka_unit_test(test_the_list_has_each_denial_once_and_an_end),
        cmocka_unit_test(test_the_same_path_read_and_written_are_two_denials),
        cmocka_unit_test(test_paths_are_made_absolute_as_text),
        cmocka_unit_test(test_the_rule_of_a_path_says_what_it_would_take),
        cmocka_unit_test(test_a_path_in_a_rule_is_whole_or_not_there),
        cmocka_unit_test(test_a_program_that_is_not_listed_is_named),
        cmocka_unit_test(test_only_local_file_systems_are_looked_at),
        cmocka_unit_test(test_links_are_not_followed_to_another_file_system),
        cmocka_unit_test(test_the_name_of_a_question_is_read),
        cmocka_unit_test(test_any_bytes_may_be_asked_about),
        cmocka_unit_test(test_another_backend_is_refused),
        cmocka_unit_test(test_children_of_the_host_are_left_alone),
        cmocka_unit_test(test_several_threads_trace_at_once),
        cmocka_unit_test(test_a_call_can_be_given_up_at_any_moment),
        cmocka_unit_test(test_a_host_that_waits_for_everybody_is_not_kept),
    };
    return cmocka_run_group_tests(tests, open_engine, close_engine);
}
