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
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "json/write.h"
#include "policy/clauses.h"

enum { J = 1, P = 2, C = 4, E = 8, G = 16, policy_max = 16384, report_max = 1 << 20 };
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

/* Containers by who makes them. Without an engine the root is an empty directory, so that no image is
 * needed; an engine needs the one of `toolcage image build`. */
#define BARE(runtime)                                                                              \
    "container = { engine = \"none\", runtime = \"" runtime "\" }\nrootfs = \"%s/root\"\n"
#define ENGINE(engine) "container = { engine = \"" engine "\" }\n"

static const struct backend {
    const char *name;
    unsigned bit;
    const char *kind, *policy; /* what is added for it */
} backends[] = {
    { "process", P, "process", "" },
    { "jail", J, "jail", "" },
    { "oci/crun", C, "oci", BARE("crun") },
    { "oci/runc", C, "oci", BARE("runc") },
    { "oci/podman", E, "oci", ENGINE("podman") },
    { "oci/docker", E, "oci", ENGINE("docker") },
    { "gvisor", G, "gvisor", "rootfs = \"%s/root\"\n" },
};

enum outcome { PASSED, FAILED, REFUSED };

struct counts {
    unsigned passed, failed, refused, available;
};

/* ---- one attempt --------------------------------------------------------------------------- */

static void put_lines(struct tci_buf *text, const char *lines, const struct selftest_canaries *c,
                      const char *program)
{
    for (const char *at = lines; *at; at++) {
        const char *put = strncmp(at, "%s", 2) == 0   ? c->directory
                          : strncmp(at, "%p", 2) == 0 ? program
                                                      : NULL;
        if (put)
            tci_buf_string(text, put);
        else
            tci_buf_char(text, *at);
        at += put != NULL;
    }
}

static bool is_link(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

/* The program, as an item of a list of paths. In a container its libraries have to come with it: they
 * are the host's, whatever the image holds. /lib that is a link into /usr comes with that: an image has
 * the same link there, and a mount on it would be hidden by the one at /usr. An empty root has none. */
static void name_program(const struct backend *backend, const struct selftest_canaries *c,
                         char *ret, size_t size)
{
    static const char *const libraries[] = { "/usr", "/lib", "/lib64" };
    int n = snprintf(ret, size, "%s", c->program);
    for (size_t i = 0; backend->bit & (C | E | G) && i < tci_array_size(libraries); i++)
        if (access(libraries[i], F_OK) == 0 && !(backend->bit & E && is_link(libraries[i])) &&
            n > 0 && (size_t)n < size)
            n += snprintf(ret + n, size - (size_t)n, "\", \"%s", libraries[i]);
}

/* Limits that are not under test are off, so that a host without control groups can be tested. */
static int make_policy(const struct backend *backend, const char *lines,
                       const struct selftest_canaries *c, struct tc_policy **ret,
                       struct tc_error *reterr)
{
    static const struct {
        const char *key, *line;
    } base[] = { { "memory", "memory = \"unlimited\"\n" },
                 { "cpu", "cpu = \"unlimited\"\n" },
                 { "pids", "pids = \"unlimited\"\n" },
                 { "disk", "disk = \"unlimited\"\n" },
                 { "timeout", "timeout = \"20s\"\n" } };
    char program[SELFTEST_PATH_MAX + 64];
    struct tci_buf text = TCI_BUF_INIT(policy_max);
    tc_cleanup(tci_findings_freep) struct tci_findings *findings = tci_findings_new("selftest");
    int r = -1;
    name_program(backend, c, program, sizeof program);
    tci_buf_printf(&text, "[defaults]\nbackend = \"%s\"\n", backend->kind);
    put_lines(&text, backend->policy, c, program);
    for (size_t i = 0; i < tci_array_size(base); i++) {
        char start[32], after[32];
        (void)snprintf(start, sizeof start, "%s =", base[i].key);
        (void)snprintf(after, sizeof after, "\n%s =", base[i].key);
        if (strncmp(lines, start, strlen(start)) != 0 && !strstr(lines, after))
            tci_buf_string(&text, base[i].line);
    }
    put_lines(&text, lines, c, program);
    if (!strstr(lines, "filesystem"))
        tci_buf_printf(&text, "filesystem = { readable = [\"%s\"] }\n", program);
    tci_buf_printf(&text, "[tool.t]\ncommand = [\"%s\"]\n", c->program);
    if (!findings)
        tci_error_no_memory(reterr);
    else if (tci_buf_check(&text, reterr) == 0)
        r = tci_policy_parse(text.data, text.length, TCI_FORMAT_TOML, "/", findings, ret, reterr);
    tci_buf_free(&text);
    return r;
}

static int run_attempt(const struct backend *backend, const struct attempt *a,
                       const struct selftest_canaries *c, struct tc_result **ret,
                       struct tc_error *reterr)
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
                          const struct selftest_canaries *c, const char **why)
{
    const char *seen;
    bool held;
    if (a->expects == TC_VERDICT_OK)
        (void)usleep(600000); /* the time that what was left behind would need */
    seen = selftest_seen(c);
    *why = seen;
    if (seen)
        return FAILED;
    *why = r->reason;
    if (r->verdict == TC_VERDICT_ERROR)
        return REFUSED;
    /* The loader, for one, ends with a status of its own when it is refused. */
    held = r->verdict == TC_VERDICT_FAILED && !r->stdout_length && r->exit_code != 126;
    if (a->expects == EXPECTS_HELD
            ? held
            : (int)r->verdict == a->expects || (a->clause == TCI_CLAUSE_PIDS && held))
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
static bool is_available(const struct backend *backend, const struct selftest_canaries *c,
                         struct report *report)
{
    const struct attempt hello = { .name = "inherit_descriptor", .policy = "" };
    struct tc_result *result = NULL;
    struct tc_error error = { 0 };
    bool works = run_attempt(backend, &hello, c, &result, &error) == 0 &&
                 result->verdict != TC_VERDICT_ERROR;
    if (!works && !report->is_json) {
        const char *fix = result ? result->fix : error.remedy;
        tci_buf_printf(&report->out, "  not available: %s\n",
                       result ? result->reason : error.message);
        if (fix[0])
            tci_buf_printf(&report->out, "    fix: %s\n", fix);
    }
    tc_result_free(result);
    return works;
}

static int test_backend(const struct backend *backend, const struct selftest_canaries *c,
                        struct report *report, struct tc_error *reterr)
{
    if (!report->is_json)
        tci_buf_printf(&report->out, "%s\n", backend->name);
    if (!is_available(backend, c, report))
        return 0;
    report->counts.available++;
    for (size_t i = 0; i < tci_array_size(attempts); i++) {
        struct tc_result *result = NULL;
        const char *why = "";
        enum outcome outcome;
        if (!(attempts[i].backends & backend->bit))
            continue;
        if (isatty(STDERR_FILENO))
            (void)fprintf(stderr, "\r%s: %-24s", backend->name, attempts[i].name);
        if (run_attempt(backend, &attempts[i], c, &result, reterr) < 0 || !result)
            return -1;
        outcome = judge(&attempts[i], result, c, &why);
        show(report, backend->name, &attempts[i], outcome, why);
        tc_result_free(result);
    }
    if (isatty(STDERR_FILENO))
        (void)fputs("\r\033[K", stderr);
    selftest_clear(c);
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

/* By its own name, or by the one that it shares with others ("oci"). */
static bool is_named(const struct backend *backend, const char *name)
{
    return strcmp(backend->name, name) == 0 || strcmp(backend->kind, name) == 0;
}

static bool is_known(const char *name)
{
    for (size_t i = 0; i < tci_array_size(backends); i++)
        if (is_named(&backends[i], name))
            return true;
    return false;
}

int cli_run_selftest(const struct cli_call *call)
{
    struct report report = { .out = TCI_BUF_INIT(report_max),
                             .is_json = cli_given(call, CLI_JSON) };
    struct selftest_canaries canaries = { .tcp = -1, .by_name = -1, .by_path = -1, .leaked = -1 };
    struct tc_error error = { 0 };
    int r, status;
    if (call->argument && !is_known(call->argument))
        return cli_usage("name process, jail, oci, oci/crun, oci/runc, oci/podman, oci/docker or "
                         "gvisor",
                         "there is no backend \"%.40s\" to attack", call->argument);
    r = selftest_set_up(&canaries);
    report.json = (struct tci_json){ .out = &report.out, .pretty = true };
    if (r < 0)
        tci_error_errno(&error, errno, "setting up the canaries");
    if (report.is_json) {
        tci_json_object_begin(&report.json, NULL);
        tci_json_array_begin(&report.json, "attempts");
    }
    for (size_t i = 0; r == 0 && i < tci_array_size(backends); i++)
        if (!call->argument || is_named(&backends[i], call->argument))
            r = test_backend(&backends[i], &canaries, &report, &error);
    selftest_tear_down(&canaries);
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
