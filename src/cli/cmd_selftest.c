/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: `toolcage selftest`: for each backend that works here, one cage per attempt of selftest.def,
 * with canaries outside. An attempt is this very program, started inside the cage. What counts is what
 * is seen from outside: the verdict, and the canaries; the attempt's own word only adds to that.
 *
 * A clause that this host cannot keep must be refused: that is a pass, too, and it is shown as such.
 */
#include "cli/cli.h"
#include "cli/selftest.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "backend/backend.h"
#include "base/fd.h"
#include "base/path.h"
#include "json/write.h"
#include "policy/clauses.h"

enum { J = 1, P = 2, policy_max = 16384, report_max = 1 << 20, path_max = TCI_PATH_MAX + 64 };
enum expects { EXPECTS_HELD = -1 };

static const struct attempt {
    enum tci_clause clause;
    const char *name;
    unsigned backends;
    int expects; /* EXPECTS_HELD or an enum tc_verdict */
    const char *policy, *text;
} attempts[] = {
#define TC_VERDICT_HELD EXPECTS_HELD
#define X(clause, name, backends, expects, policy, text)                                           \
    { TCI_CLAUSE_##clause, #name, backends, TC_VERDICT_##expects, policy, text },
#include "cli/selftest.def"
#undef X
};

static const struct {
    const char *name;
    unsigned bit;
    enum tci_backend_kind kind;
} backends[] = { { "process", P, TCI_BACKEND_PROCESS }, { "jail", J, TCI_BACKEND_JAIL } };

/* Everything that an attempt could reach if the cage did not hold. */
struct canaries {
    char directory[64];     /* open/file, open/hidden, open/socket, work/, secret */
    char program[path_max]; /* this one */
    char abstract[32], port[8], pid[16];
    int tcp, by_name, by_path, leaked; /* sockets, and a descriptor without O_CLOEXEC */
};

enum outcome { PASSED, FAILED, REFUSED };

struct counts {
    unsigned passed, failed, refused, available;
};

/* ---- canaries -------------------------------------------------------------------------------- */

static int write_secret(const char *directory, const char *name)
{
    char path[path_max + 96];
    int fd, r;
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    r = fd < 0 ? -1 : tci_write_all(fd, SELFTEST_SECRET "\n", strlen(SELFTEST_SECRET) + 1);
    (void)tci_close(fd);
    return r;
}

static int listen_at(const void *address, socklen_t length)
{
    const struct sockaddr *at = address;
    int fd = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && (bind(fd, at, length) < 0 || listen(fd, 8) < 0))
        fd = tci_close(fd);
    return fd;
}

static int open_sockets(struct canaries *c)
{
    struct sockaddr_in internet = { .sin_family = AF_INET };
    struct sockaddr_un name = { .sun_family = AF_UNIX }, path = { .sun_family = AF_UNIX };
    socklen_t length = sizeof internet;
    internet.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->tcp = listen_at(&internet, sizeof internet);
    if (c->tcp < 0 || getsockname(c->tcp, (struct sockaddr *)&internet, &length) < 0)
        return -1;
    (void)snprintf(c->port, sizeof c->port, "%u", (unsigned)ntohs(internet.sin_port));
    (void)snprintf(c->abstract, sizeof c->abstract, "toolcage-selftest-%d", (int)getpid());
    memcpy(name.sun_path + 1, c->abstract, strlen(c->abstract));
    c->by_name = listen_at(
        &name, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(c->abstract)));
    if ((size_t)snprintf(path.sun_path, sizeof path.sun_path, "%.80s/open/socket", c->directory) >=
        sizeof path.sun_path)
        return -1;
    c->by_path = listen_at(&path, sizeof path);
    return c->by_name < 0 || c->by_path < 0 ? -1 : 0;
}

static int set_up(struct canaries *c)
{
    char path[path_max + 32];
    ssize_t n = readlink("/proc/self/exe", c->program, sizeof c->program - 1);
    c->tcp = c->by_name = c->by_path = c->leaked = -1;
    if (n <= 0)
        return -1;
    c->program[n] = '\0';
    (void)snprintf(c->pid, sizeof c->pid, "%d", (int)getpid());
    (void)snprintf(c->directory, sizeof c->directory, "/tmp/toolcage-selftest-XXXXXX");
    if (!mkdtemp(c->directory))
        return -1;
    (void)snprintf(path, sizeof path, "%s/open", c->directory);
    if (mkdir(path, 0755) < 0 || write_secret(path, "file") < 0 ||
        write_secret(path, "hidden") < 0 || write_secret(c->directory, "secret") < 0)
        return -1;
    (void)snprintf(path, sizeof path, "%s/work", c->directory);
    if (mkdir(path, 0755) < 0 || open_sockets(c) < 0)
        return -1;
    (void)snprintf(path, sizeof path, "%s/secret", c->directory);
    c->leaked = open(path, O_RDONLY); // NOLINT: without O_CLOEXEC, on purpose
    return c->leaked < 0 || setenv("TOOLCAGE_SELFTEST", SELFTEST_SECRET, 1) < 0 ? -1 : 0;
}

static void remove_below(const char *directory)
{
    static const char *const names[] = { "open/file",     "open/hidden", "open/socket",
                                         "secret",        "work/device", "work/memory",
                                         "work/outlived", "work/setuid" };
    char path[path_max + 32];
    for (int i = 0; i < 128; i++) {
        (void)snprintf(path, sizeof path, "%s/work/file-%d", directory, i);
        (void)unlink(path);
    }
    for (size_t i = 0; i < tci_array_size(names); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        (void)unlink(path);
    }
    (void)snprintf(path, sizeof path, "%s/open", directory);
    (void)rmdir(path);
    (void)snprintf(path, sizeof path, "%s/work", directory);
    (void)rmdir(path);
    (void)rmdir(directory);
}

static void tear_down(struct canaries *c)
{
    (void)tci_close(c->tcp);
    (void)tci_close(c->by_name);
    (void)tci_close(c->by_path);
    (void)tci_close(c->leaked);
    if (*c->directory)
        remove_below(c->directory);
}

/* Did anybody come in? What the canaries saw, or NULL. */
static const char *check_canaries(const struct canaries *c)
{
    static const char *const made[] = { "work/outlived", "work/device", "work/memory" };
    const int sockets[] = { c->tcp, c->by_name, c->by_path };
    char path[path_max + 32];
    struct stat status;
    for (size_t i = 0; i < tci_array_size(sockets); i++) {
        int fd = accept4(sockets[i], NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) {
            (void)tci_close(fd);
            return "a socket of the host was reached";
        }
    }
    for (size_t i = 0; i < tci_array_size(made); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", c->directory, made[i]);
        if (stat(path, &status) == 0)
            return "something was left behind";
    }
    (void)snprintf(path, sizeof path, "%s/work/setuid", c->directory);
    if (stat(path, &status) == 0 && status.st_mode & (S_ISUID | S_ISGID))
        return "a setuid file was left behind";
    (void)snprintf(path, sizeof path, "%s/open/file", c->directory);
    return stat(path, &status) < 0 || status.st_size == 0 ? "a read-only file was changed" : NULL;
}

/* ---- one attempt --------------------------------------------------------------------------- */

/* Limits that are not under test are off, so that a host without control groups can be tested. */
static int make_policy(const char *backend, const char *lines, const struct canaries *c,
                       struct tc_policy **ret, struct tc_error *reterr)
{
    static const struct {
        const char *key, *line;
    } base[] = { { "memory", "memory = \"unlimited\"\n" },
                 { "cpu", "cpu = \"unlimited\"\n" },
                 { "pids", "pids = \"unlimited\"\n" },
                 { "disk", "disk = \"unlimited\"\n" },
                 { "timeout", "timeout = \"20s\"\n" } };
    struct tci_buf text = TCI_BUF_INIT(policy_max);
    tc_cleanup(tci_findings_freep) struct tci_findings *findings = tci_findings_new("selftest");
    int r = -1;
    tci_buf_printf(&text, "[defaults]\nbackend = \"%s\"\n", backend);
    for (size_t i = 0; i < tci_array_size(base); i++) {
        char start[32], after[32];
        (void)snprintf(start, sizeof start, "%s =", base[i].key);
        (void)snprintf(after, sizeof after, "\n%s =", base[i].key);
        if (strncmp(lines, start, strlen(start)) != 0 && !strstr(lines, after))
            tci_buf_string(&text, base[i].line);
    }
    for (const char *at = lines; *at; at++) {
        const char *put = strncmp(at, "%s", 2) == 0   ? c->directory
                          : strncmp(at, "%p", 2) == 0 ? c->program
                                                      : NULL;
        if (put)
            tci_buf_string(&text, put);
        else
            tci_buf_char(&text, *at);
        at += put != NULL;
    }
    if (!strstr(lines, "filesystem"))
        tci_buf_printf(&text, "filesystem = { readable = [\"%s\"] }\n", c->program);
    tci_buf_printf(&text, "[tool.t]\ncommand = [\"%s\"]\n", c->program);
    if (!findings)
        tci_error_no_memory(reterr);
    else if (tci_buf_check(&text, reterr) == 0)
        r = tci_policy_parse(text.data, text.length, TCI_FORMAT_TOML, "/", findings, ret, reterr);
    tci_buf_free(&text);
    return r;
}

static int run_attempt(const char *backend, const struct attempt *a, const struct canaries *c,
                       struct tc_result **ret, struct tc_error *reterr)
{
    tc_cleanup(tci_policy_freep) struct tc_policy *policy = NULL;
    struct tc_engine *engine = NULL;
    const char *argv[] = {
        c->program, "selftest-attempt", a->name, c->directory, c->abstract, c->port, c->pid, NULL
    };
    int r = make_policy(backend, a->policy, c, &policy, reterr);
    if (r == 0)
        r = tc_engine_open(&(struct tc_engine_options){ .policy = policy }, &engine, reterr);
    if (r == 0)
        r = tc_call(engine, &(struct tc_request){ .tool = "t", .argv = argv, .input_fd = -1 }, ret,
                    reterr);
    tc_engine_close(engine);
    return r;
}

static enum outcome judge(const struct attempt *a, const struct tc_result *r,
                          const struct canaries *c, const char **why)
{
    const char *seen;
    if (a->expects == TC_VERDICT_OK)
        (void)usleep(600000); /* the time that what was left behind would need */
    seen = check_canaries(c);
    *why = seen;
    if (seen)
        return FAILED;
    *why = r->reason;
    if (r->verdict == TC_VERDICT_ERROR)
        return REFUSED;
    /* The loader, for one, ends with a status of its own when it is refused. */
    if (a->expects == EXPECTS_HELD
            ? r->verdict == TC_VERDICT_FAILED && !r->stdout_length && r->exit_code != 126
            : (int)r->verdict == a->expects)
        return PASSED;
    if (*r->stdout_data)
        *why = r->stdout_data;
    return FAILED;
}

/* ---- reports --------------------------------------------------------------------------------- */

struct report {
    struct tci_buf out;
    struct tci_json json;
    bool is_json;
    struct counts counts;
};

static void show(struct report *report, const char *backend, const struct attempt *a,
                 enum outcome outcome, const char *why)
{
    static const char *const words[] = { "pass", "FAIL", "refused" };
    report->counts.passed += outcome == PASSED;
    report->counts.failed += outcome == FAILED;
    report->counts.refused += outcome == REFUSED;
    if (report->is_json) {
        tci_json_object_begin(&report->json, NULL);
        tci_json_string(&report->json, "backend", backend);
        tci_json_string(&report->json, "clause", tci_clause_name(a->clause));
        tci_json_string(&report->json, "attempt", a->name);
        tci_json_string(&report->json, "text", a->text);
        tci_json_string(&report->json, "outcome",
                        outcome == PASSED   ? "pass"
                        : outcome == FAILED ? "fail"
                                            : "refused");
        tci_json_string(&report->json, "detail", outcome == PASSED ? "" : why);
        tci_json_object_end(&report->json);
        return;
    }
    tci_buf_printf(&report->out, "  %-8s%-15s %s\n", words[outcome], tci_clause_name(a->clause),
                   a->text);
    if (outcome != PASSED)
        tci_buf_printf(&report->out, "          %.*s\n", (int)strcspn(why, "\n"), why);
}

/* One cage with nothing to attack: is the backend there at all? */
static bool is_available(const char *backend, const struct canaries *c, struct report *report)
{
    const struct attempt hello = { .name = "inherit_descriptor", .policy = "" };
    struct tc_result *result = NULL;
    struct tc_error error = { 0 };
    bool works = run_attempt(backend, &hello, c, &result, &error) == 0 &&
                 result->verdict != TC_VERDICT_ERROR;
    if (!works && !report->is_json)
        tci_buf_printf(&report->out, "  not available: %s\n",
                       result ? result->reason : error.message);
    tc_result_free(result);
    return works;
}

static int test_backend(const char *backend, unsigned bit, const struct canaries *c,
                        struct report *report, struct tc_error *reterr)
{
    if (!report->is_json)
        tci_buf_printf(&report->out, "%s\n", backend);
    if (!is_available(backend, c, report))
        return 0;
    report->counts.available++;
    for (size_t i = 0; i < tci_array_size(attempts); i++) {
        struct tc_result *result = NULL;
        const char *why = "";
        enum outcome outcome;
        if (!(attempts[i].backends & bit))
            continue;
        if (isatty(STDERR_FILENO))
            (void)fprintf(stderr, "\r%s: %-24s", backend, attempts[i].name);
        if (run_attempt(backend, &attempts[i], c, &result, reterr) < 0 || !result)
            return -1;
        outcome = judge(&attempts[i], result, c, &why);
        show(report, backend, &attempts[i], outcome, why);
        tc_result_free(result);
    }
    if (isatty(STDERR_FILENO))
        (void)fputs("\r\033[K", stderr);
    return 0;
}

static void finish_report(struct report *report)
{
    const struct counts *n = &report->counts;
    if (report->is_json) {
        tci_json_array_end(&report->json);
        tci_json_unsigned(&report->json, "passed", n->passed);
        tci_json_unsigned(&report->json, "failed", n->failed);
        tci_json_unsigned(&report->json, "refused", n->refused);
        tci_json_object_end(&report->json);
        tci_buf_char(&report->out, '\n');
        return;
    }
    tci_buf_printf(&report->out,
                   "%u passed, %u failed, %u refused because this host cannot keep them\n",
                   n->passed, n->failed, n->refused);
}

int cli_run_selftest(const struct cli_call *call)
{
    struct report report = { .out = TCI_BUF_INIT(report_max),
                             .is_json = cli_given(call, CLI_JSON) };
    struct canaries canaries = { .tcp = -1, .by_name = -1, .by_path = -1, .leaked = -1 };
    struct tc_error error = { 0 };
    int r, status;
    if (call->argument && strcmp(call->argument, "process") != 0 &&
        strcmp(call->argument, "jail") != 0)
        return cli_usage("name process or jail", "there is no native backend \"%.40s\"",
                         call->argument);
    r = set_up(&canaries);
    report.json = (struct tci_json){ .out = &report.out, .pretty = true };
    if (r < 0)
        tci_error_errno(&error, errno, "setting up the canaries");
    if (report.is_json) {
        tci_json_object_begin(&report.json, NULL);
        tci_json_array_begin(&report.json, "attempts");
    }
    for (size_t i = 0; r == 0 && i < tci_array_size(backends); i++)
        if (!call->argument || strcmp(call->argument, backends[i].name) == 0)
            r = test_backend(backends[i].name, backends[i].bit, &canaries, &report, &error);
    tear_down(&canaries);
    if (r < 0) {
        tci_buf_free(&report.out);
        return cli_fail(&error);
    }
    finish_report(&report);
    status = report.counts.failed      ? CLI_EXIT_FINDINGS
             : report.counts.available ? CLI_EXIT_OK
                                       : CLI_EXIT_REFUSED;
    return cli_output(&report.out, true, status);
}
