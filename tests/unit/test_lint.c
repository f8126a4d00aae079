/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of policy/lint.h: for each finding what must be found, what must be left alone, and
 * what is easily got wrong. Whole policies with their findings are in docs/lint.md, and run too.
 */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/attr.h"
#include "policy/lint.h"

/* ---- support -------------------------------------------------------------------------------- */

/* Lints a policy; the caller frees the findings. */
static struct tci_findings *lint_with(const char *text, const struct tci_lint_options *options)
{
    struct tc_policy *policy = load_text(text);
    struct tci_findings *findings = tci_findings_new("test.toml");
    struct tc_error error = { 0 };
    assert_non_null(findings);
    if (tci_lint(policy, options, findings, &error) < 0)
        fail_msg("%s", error.message);
    tc_policy_free(policy);
    return findings;
}

static struct tci_findings *lint(const char *text)
{
    struct tci_lint_options options = { .now = 0 };
    return lint_with(text, &options);
}

static size_t count_of(const struct tci_findings *findings, enum tci_finding_id id)
{
    size_t count = 0;
    for (const struct tci_finding *f = findings->first; f; f = f->next)
        count += f->id == id;
    return count;
}

static const struct tci_finding *first_of(const struct tci_findings *findings,
                                          enum tci_finding_id id)
{
    const struct tci_finding *f = findings->first;
    while (f && f->id != id)
        f = f->next;
    if (!f) {
        fail_msg("no %s", tci_finding_name(id));
        abort(); /* not reached, but the compiler does not know */
    }
    return f;
}

static void print_all(const struct tci_findings *findings)
{
    for (const struct tci_finding *f = findings->first; f; f = f->next)
        print_error("  %u:%u %s %s (%s)\n", f->pos.line, f->pos.column, tci_finding_name(f->id),
                    f->message, f->remedy);
}

static void check_count(const char *text, const struct tci_lint_options *options,
                        enum tci_finding_id id, size_t expected)
{
    struct tci_findings *findings = lint_with(text, options);
    size_t count = count_of(findings, id);
    if (count != expected) {
        print_error("%s\n", text);
        print_all(findings);
        fail_msg("%zu of %s, not %zu", count, tci_finding_name(id), expected);
    }
    tci_findings_free(findings);
}

/* Lines of a tool, and how many findings of the id at hand they make. */
struct row {
    const char *lines;
    size_t expected;
};

static void check_rows_with(const struct row *rows, size_t count, enum tci_finding_id id,
                            const struct tci_lint_options *options)
{
    for (size_t i = 0; i < count; i++) {
        char text[8192];
        (void)snprintf(text, sizeof text, "version = 1\n[tool.t]\n%s\n[agent.a]\ngrants = ['t']\n",
                       rows[i].lines);
        check_count(text, options, id, rows[i].expected);
    }
}

static void check_rows(const struct row *rows, size_t count, enum tci_finding_id id)
{
    struct tci_lint_options options = { .now = 0 };
    check_rows_with(rows, count, id, &options);
}
#define CHECK(rows, id) check_rows(rows, tci_array_size(rows), TCI_FINDING_##id)

/* Whole policies. */
static void check_policies(const struct row *rows, size_t count, enum tci_finding_id id)
{
    struct tci_lint_options options = { .now = 0 };
    for (size_t i = 0; i < count; i++)
        check_count(rows[i].lines, &options, id, rows[i].expected);
}
#define CHECK_POLICIES(rows, id) check_policies(rows, tci_array_size(rows), TCI_FINDING_##id)

static void check_message(const char *text, enum tci_finding_id id, const char *message,
                          const char *remedy)
{
    struct tci_findings *findings = lint(text);
    const struct tci_finding *f = first_of(findings, id);
    if (!strstr(f->message, message) || !strstr(f->remedy, remedy)) {
        print_all(findings);
        fail_msg("expected \"%s\" and \"%s\"", message, remedy);
    }
    tci_findings_free(findings);
}

/* ---- the whole ------------------------------------------------------------------------------ */

static void test_good_policy_has_no_finding(void **state)
{
    struct tci_findings *findings = lint("version = 1\n"
                                         "[tool.fetch]\n"
                                         "network = ['api.example.com:443']\n"
                                         "command = ['curl', '-sS', '--', '{url}']\n"
                                         "parameters = { properties = { url = {} } }\n"
                                         "[tool.edit]\n"
                                         "filesystem = { writable = ['/workspace'] }\n"
                                         "[agent.a]\n"
                                         "grants = ['fetch', 'edit']\n");
    (void)state;
    print_all(findings);
    assert_null(findings->first);
    tci_findings_free(findings);
}

static void test_findings_come_in_the_order_of_the_file(void **state)
{
    struct tci_findings *findings = lint("[tool.b]\n"
                                         "memory = 'unlimited'\n"
                                         "network = 'host'\n"
                                         "[agent.a]\n"
                                         "grants = ['nothing']\n"
                                         "[tool.a]\n"
                                         "timeout = 'unlimited'\n");
    uint32_t line = 0;
    (void)state;
    assert_non_null(findings->first);
    for (const struct tci_finding *f = findings->first; f; f = f->next) {
        assert_true(f->pos.line >= line);
        line = f->pos.line;
    }
    assert_int_equal(line, 7);
    tci_findings_free(findings);
}

static void test_finding_names_its_tool_and_place(void **state)
{
    struct tci_findings *findings = lint("version = 1\n[tool.alpha]\n[tool.beta]\n"
                                         "network = 'host'\n");
    const struct tci_finding *f = first_of(findings, TCI_FINDING_HOST_NETWORK);
    (void)state;
    assert_string_equal(f->tool, "beta");
    assert_int_equal(f->pos.line, 4);
    assert_int_equal(f->pos.column, 11);
    tci_findings_free(findings);
}

static void test_every_finding_has_a_remedy_and_one_line(void **state)
{
    struct tci_lint_options options = { .now = 4102444800 };
    struct tci_findings *findings = lint_with(
        "[defaults]\nnetwork = 'host'\nmemory = 'unlimited'\nenv = { LD_PRELOAD = 'x', A_TOKEN = "
        "'y' }\n"
        "[tool.t]\nfilesystem = { readable = ['/etc', '/root'], writable = ['~/.ssh', '/', '/usr'] "
        "}\n"
        "command = ['bash', '-c', '{x}', '{y}']\nparameters = { properties = { z = {} } }\n"
        "pids = 99999\n"
        "[tool.u]\nnetwork = ['*.com:*', '10.0.0.1:1', '169.254.169.254:80', 'deny:x.org:1']\n"
        "backend = 'oci'\ncontainer = { user = 'root', cap_add = ['SYS_ADMIN'] }\n"
        "[tool.v]\ncapabilities = ['fs_read']\n"
        "[agent.a]\ngrants = ['w', { tool = 't', memory = '1GB', expires = '2001-01-01' }]\n",
        &options);
    (void)state;
    for (const struct tci_finding *f = findings->first; f; f = f->next) {
        assert_int_not_equal(f->remedy[0], '\0');
        assert_int_not_equal(f->message[0], '\0');
        assert_null(strchr(f->message, '\n'));
        assert_null(strchr(f->remedy, '\n'));
        assert_true(f->pos.line > 0 && f->pos.column > 0);
    }
    tci_findings_free(findings);
}

static void test_built_in_values_are_never_reported(void **state)
{
    static const char *const backends[] = { "process", "jail", "oci", "gvisor", "wasm", "microvm" };
    (void)state;
    for (size_t i = 0; i < tci_array_size(backends); i++) {
        char text[200];
        (void)snprintf(text, sizeof text,
                       "version = 1\n[tool.t]\nbackend = '%s'\n[agent.a]\ngrants = ['t']\n",
                       backends[i]);
        struct tci_findings *findings = lint(text);
        print_all(findings);
        assert_null(findings->first);
        tci_findings_free(findings);
    }
}

static void test_lint_as_library_call_gives_json(void **state)
{
    struct tc_policy *policy = load_text("[tool.t]\nnetwork = 'host'\n");
    struct tc_error error = { 0 };
    char *json = NULL;
    (void)state;
    assert_int_equal(tc_policy_lint(policy, &json, &error), 0);
    assert_non_null(strstr(json, "\"TC-L120\""));
    assert_non_null(strstr(json, "\"errors\": 1"));
    free(json);
    tc_policy_free(policy);
}

static void test_more_errors_than_anybody_reads_are_cut(void **state)
{
    static char text[32768];
    size_t used = (size_t)snprintf(text, sizeof text, "version = 1\n");
    struct tci_findings *findings;
    (void)state;
    for (int i = 0; i < 150; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "[tool.t%d]\nnetwork = 'host'\n",
                                 i);
    findings = lint(text);
    assert_int_equal(count_of(findings, TCI_FINDING_HOST_NETWORK), TCI_ERRORS_MAX);
    assert_int_equal(count_of(findings, TCI_FINDING_TOO_MANY), 1);
    assert_int_equal(findings->count[TCI_SEVERITY_ERROR], 150);
    tci_findings_free(findings);
}

static void test_missing_version_is_a_note(void **state)
{
    static const struct row rows[] = {
        { "[tool.t]\n", 1 },
        { "version = 1\n[tool.t]\n", 0 },
    };
    (void)state;
    CHECK_POLICIES(rows, NO_VERSION);
}

static void test_hidden_text_is_found_where_it_is(void **state)
{
    static const struct row rows[] = {
        { "version = 1 # \xe2\x80\xae reversed\n[tool.t]\n", 1 },
        { "version = 1\n[tool.t]\ndescription = \"a\xe2\x81\xa6z\xe2\x80\x8b\"\n", 2 },
        { "version = 1\n[tool.t]\ndescription = \"Gr\xc3\xbc\xc3\x9f dich \xe2\x82\xac\"\n", 0 },
        { "version = 1\n[tool.t]\ndescription = \"\\u202E\"\n", 0 },
    };
    (void)state;
    CHECK_POLICIES(rows, HIDDEN_TEXT);
}

/* ---- secrets -------------------------------------------------------------------------------- */

static void test_secret_is_found_by_its_name(void **state)
{
    static const char *const secrets[] = {
        "/home/u/.ssh",
        "/home/u/.ssh/id_rsa",
        "/home/u/.ssh/keys/work",
        "/root/.gnupg/private-keys-v1.d",
        "/home/u/.aws/credentials",
        "/home/u/.config/gcloud/legacy_credentials",
        "/home/u/.config/gh/hosts.yml",
        "/home/u/.kube/config",
        "/home/u/.docker/config.json",
        "/home/u/.netrc",
        "/srv/app/.env",
        "/srv/app/.env.local",
        "/srv/app/.env.production",
        "/srv/app/.env/secrets",
        "/srv/app/deploy/id_ed25519",
        "/home/u/.local/share/keyrings",
        "/home/u/.cargo/credentials.toml",
        "/home/u/.claude/.credentials.json",
        "/home/u/.m2/settings.xml",
        "/home/u/.bash_history",
        "/srv/infra/terraform.tfstate",
        "/srv/app/.envrc",
        "/home/u/.claude.json",
        "/srv/tls/server.pem",
        "/srv/tls/server.key",
        "/srv/passwords.kdbx",
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(secrets); i++) {
        char lines[200];
        struct row row = { lines, 1 };
        (void)snprintf(lines, sizeof lines, "filesystem = { readable = ['%s'] }", secrets[i]);
        check_rows(&row, 1, TCI_FINDING_SECRET_READABLE);
        (void)snprintf(lines, sizeof lines, "filesystem = { writable = ['%s'] }", secrets[i]);
        check_rows(&row, 1, TCI_FINDING_SECRET_READABLE);
    }
}

static void test_what_only_looks_like_a_secret_is_left_alone(void **state)
{
    static const char *const paths[] = {
        "/data",
        "/home/u/project",
        "/home/u/.sshfs",
        "/home/u/my.ssh",
        "/srv/app/.environment",
        "/srv/app/dotenv",
        "/srv/app/.env.example",
        "/srv/app/.env.sample",
        "/srv/app/.env.template",
        "/home/u/.ssh/known_hosts",
        "/home/u/.ssh/id_ed25519.pub",
        "/etc/ssh/ssh_config",
        "/srv/id_rsa_notes",
        "/etc/hosts",
        "/etc/ssl/certs",
        "/etc/shadowsocks",
        "/run/myservice",
        "/var/lib/myservice",
        "/sys/devices/system/cpu",
        "/home/u/.cache/pip",
        "/home/u/.gradle",
        "/home/u/.config/nvim",
        "/opt/docker.socket",
        "/etc/ssl/certs/server.pem",
        "/srv/tls/ca.pem",
        "/srv/tls/fullchain.pem",
        "/srv/tls/cert.pem",
        "/srv/keys",
        "/srv/.key",
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(paths); i++) {
        char lines[200];
        struct row row = { lines, 0 };
        (void)snprintf(lines, sizeof lines, "filesystem = { readable = ['%s'] }", paths[i]);
        check_rows(&row, 1, TCI_FINDING_SECRET_READABLE);
    }
}

static void test_directory_above_a_secret_includes_it(void **state)
{
    static const struct row rows[] = {
        { "filesystem = { readable = ['/etc'] }", 1 },
        { "filesystem = { readable = ['/etc/ssl'] }", 1 },
        { "filesystem = { readable = ['/run'] }", 1 },
        { "filesystem = { readable = ['/var'] }", 1 },
        { "filesystem = { readable = ['/var/lib'] }", 1 },
        { "filesystem = { readable = ['/sys'] }", 1 },
        { "filesystem = { readable = ['/home/u/.config'] }", 1 },
        { "filesystem = { readable = ['/home/u/.local/share'] }", 1 },
        { "filesystem = { readable = ['/home/u/.local'] }", 1 },
        { "filesystem = { readable = ['/home/u/.cargo'] }", 1 },
        { "filesystem = { readable = ['/etc', '/run', '/data'] }", 2 },
        /* All of them are in the root: that is a finding of its own. */
        { "filesystem = { readable = ['/'] }", 0 },
    };
    (void)state;
    CHECK(rows, SECRET_READABLE);
}

static void test_one_finding_names_the_first_secrets_and_counts_the_rest(void **state)
{
    (void)state;
    check_message("[tool.t]\nfilesystem = { readable = ['/etc'] }\n", TCI_FINDING_SECRET_READABLE,
                  "readable \"/etc\" includes secrets: \"/etc/shadow\", \"/etc/shadow-\", "
                  "\"/etc/gshadow\" and ",
                  "hidden = [\"/etc/shadow\", ");
    check_message("[tool.t]\nfilesystem = { readable = ['/etc/ssl'] }\n",
                  TCI_FINDING_SECRET_READABLE, "secrets: \"/etc/ssl/private\"",
                  "hidden = [\"/etc/ssl/private\"]");
}

static void test_secret_that_is_hidden_is_no_finding(void **state)
{
    static const struct row rows[] = {
        { "filesystem = { readable = ['/etc/ssl'], hidden = ['/etc/ssl/private'] }", 0 },
        { "filesystem = { readable = ['/home/u/.cargo'], hidden = ['/home/u/.cargo/credentials', "
          "'/home/u/.cargo/credentials.toml'] }",
          0 },
        { "filesystem = { readable = ['/home/u/.cargo'], hidden = ['/home/u/.cargo/credentials'] }",
          1 },
        /* The directory above is hidden as well as the secret itself. */
        { "filesystem = { readable = ['/etc/pki'], hidden = ['/etc/pki/tls'] }", 0 },
        { "filesystem = { readable = ['/home/u/.ssh'], hidden = ['/home/u/.ssh'] }", 0 },
        { "filesystem = { readable = ['/etc/ssh'], hidden = ['/etc/ssh'] }", 0 },
        /* Half of it is hidden. */
        { "filesystem = { readable = ['/etc/ssl'], hidden = ['/etc/ssl/private/key.pem'] }", 1 },
        { "filesystem = { readable = ['/etc/ssl'], hidden = ['/etc/ssl/privat'] }", 1 },
        /* What is more specific than the hidden path is visible again. */
        { "filesystem = { readable = ['/home/u/.ssh/id_rsa'], hidden = ['/home/u/.ssh'] }", 1 },
    };
    (void)state;
    CHECK(rows, SECRET_READABLE);
}

static void test_hidden_path_is_a_path_of_the_cage(void **state)
{
    static const struct row rows[] = {
        { "filesystem = { readable = ['/etc/ssl:/certs'], hidden = ['/certs/private'] }", 0 },
        { "filesystem = { readable = ['/etc/ssl:/certs'], hidden = ['/etc/ssl/private'] }", 1 },
        /* Granted at two places, hidden at one. */
        { "filesystem = { readable = ['/etc/ssl:/a', '/etc/ssl:/b'], hidden = ['/a/private'] }",
          2 },
        { "filesystem = { readable = ['/etc/ssl:/a', '/etc/ssl:/b'], "
          "hidden = ['/a/private', '/b/private'] }",
          0 },
        /* Something else was put in its place. */
        { "filesystem = { readable = ['/etc/ssl', '/srv/empty:/etc/ssl/private'] }", 0 },
        { "filesystem = { readable = ['/etc/ssl:/'], hidden = ['/private'] }", 0 },
    };
    (void)state;
    CHECK(rows, SECRET_READABLE);
    check_message("[tool.t]\nfilesystem = { readable = ['/etc/ssl:/certs'] }\n",
                  TCI_FINDING_SECRET_READABLE, "\"/etc/ssl/private\"", "[\"/certs/private\"]");
}

static void test_mapping_does_not_hide_where_a_path_comes_from(void **state)
{
    static const struct row rows[] = {
        { "filesystem = { readable = ['/home/u/.ssh:/keys'] }", 1 },
        { "filesystem = { readable = ['/home/u/.ssh:/'] }", 1 },
        { "filesystem = { readable = [{ host = '/home/u/.ssh', cage = '/keys' }] }", 1 },
        { "filesystem = { readable = [{ host = '/etc/shadow', cage = '/x', optional = true }] }",
          1 },
        { "filesystem = { readable = ['/proc:/host/proc'] }", 1 },
        { "filesystem = { readable = ['/dev/sda:/disk'] }", 1 },
        /* It is called like a secret only in the cage. */
        { "filesystem = { readable = ['/srv/testdata:/home/u/.ssh'] }", 0 },
    };
    (void)state;
    CHECK(rows, SECRET_READABLE);
}

static void test_container_socket_is_a_secret_wherever_it_is(void **state)
{
    static const struct row rows[] = {
        { "filesystem = { writable = ['/var/run/docker.sock'] }", 1 },
        { "filesystem = { writable = ['/run/docker.sock'] }", 1 },
        { "filesystem = { writable = ['/run/user/1000/docker.sock:/docker.sock'] }", 1 },
        { "filesystem = { readable = ['/opt/rootless/podman.sock'] }", 1 },
        { "filesystem = { readable = ['sockets/docker.sock'] }", 1 },
        { "filesystem = { writable = ['/run/containerd'] }", 1 },
        { "filesystem = { writable = ['/run/dbus/system_bus_socket'] }", 1 },
        { "filesystem = { writable = ['/run/libvirt/libvirt-sock'] }", 1 },
        { "filesystem = { writable = ['/var/lib/lxd/unix.socket'] }", 1 },
        { "filesystem = { writable = ['/run/agent/agent.sock'] }", 0 },
    };
    (void)state;
    CHECK(rows, SECRET_READABLE);
}

static void test_relative_path_is_taken_from_the_policy(void **state)
{
    static const struct row rows[] = {
        { "filesystem = { readable = ['../etc/shadow'] }", 1 },
        { "filesystem = { readable = ['.env'] }", 1 },
        { "filesystem = { readable = ['./sub/../.ssh'] }", 1 },
        { "filesystem = { readable = ['data'] }", 0 },
    };
    (void)state;
    CHECK(rows, SECRET_READABLE);
}

static void test_container_mounts_are_paths_like_others(void **state)
{
    static const struct row rows[] = {
        { "backend = 'oci'\ncontainer = { mounts = ['/var/run/docker.sock:/docker.sock:rw'] }", 1 },
        { "backend = 'gvisor'\ncontainer = { mounts = ['/home/u/.aws:/aws'] }", 1 },
        { "backend = 'oci'\ncontainer = { mounts = [{ host = '/etc/shadow', cage = '/s' }] }", 1 },
        { "backend = 'oci'\ncontainer = { mounts = ['/data:/data:ro'] }", 0 },
        { "backend = 'oci'\nfilesystem = { hidden = ['/certs/private'] }\n"
          "container = { mounts = ['/etc/ssl:/certs:ro'] }",
          0 },
    };
    (void)state;
    CHECK(rows, SECRET_READABLE);
}

static void test_root_directory_of_the_cage_is_a_grant(void **state)
{
    static const struct row readable[] = {
        { "rootfs = '/'", 1 },
        { "rootfs = '/home/u'", 1 },
        { "rootfs = '/srv/rootfs'", 0 },
    };
    static const struct row secrets[] = {
        { "rootfs = '/etc'", 1 },
        { "rootfs = '/root/.ssh'", 1 },
        { "rootfs = '/etc/ssl'\nfilesystem = { hidden = ['/private'] }", 0 },
        { "rootfs = '/srv/rootfs'", 0 },
    };
    static const struct row writable[] = {
        { "backend = 'oci'\nrootfs = '/'\ncontainer = { read_only_rootfs = false }", 1 },
        { "backend = 'oci'\nrootfs = '/'", 0 },
    };
    static const struct row unexpanded[] = {
        { "rootfs = '~/rootfs'", 1 },
        { "rootfs = '${HOME}/rootfs'", 1 },
        { "rootfs = '/home/$USER/rootfs'", 1 },
        { "rootfs = 'rootfs'", 0 },
    };
    (void)state;
    CHECK(readable, HOME_READABLE);
    CHECK(secrets, SECRET_READABLE);
    CHECK(writable, ROOT_WRITABLE);
    CHECK(unexpanded, NOT_EXPANDED);
}

static void test_capability_paths_are_paths_like_others(void **state)
{
    static const struct row rows[] = {
        { "capabilities = ['fs_read']\nallowed_paths = ['/home/u/.ssh']", 1 },
        { "capabilities = ['fs_write']\nallowed_paths = ['/home/u/.ssh']", 1 },
        /* Without the capability the list grants nothing. */
        { "capabilities = ['net_http']\nallowed_paths = ['/home/u/.ssh']", 0 },
    };
    (void)state;
    CHECK(rows, SECRET_READABLE);
}

/* ---- files on this host --------------------------------------------------------------------- */

struct directory {
    char path[64];
};

static int make_directory(void **state)
{
    struct directory *directory = calloc(1, sizeof *directory);
    if (!directory)
        return -1;
    (void)strcpy(directory->path, "/tmp/test_lint.XXXXXX");
    *state = directory;
    return mkdtemp(directory->path) ? 0 : -1;
}

static int remove_directory(void **state)
{
    struct directory *directory = *state;
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", directory->path);
    int r = system(command);
    free(directory);
    return r;
}

static void make_file(const struct directory *directory, const char *name)
{
    char path[256];
    FILE *file;
    (void)snprintf(path, sizeof path, "%s/%s", directory->path, name);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
}

static void make_folder(const struct directory *directory, const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", directory->path, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

/* `format` holds one %s, for the directory. */
static void check_on_host(const struct directory *directory, const char *format, bool look,
                          size_t expected)
{
    struct tci_lint_options options = { .look_at_files = look };
    char lines[512];
    struct row row = { lines, expected };
    size_t used = 0;
    for (const char *p = format; *p && used < sizeof lines - 80; p++)
        if (*p == '@')
            used += (size_t)snprintf(lines + used, sizeof lines - used, "%s", directory->path);
        else
            lines[used++] = *p;
    lines[used] = '\0';
    check_rows_with(&row, 1, TCI_FINDING_SECRET_READABLE, &options);
}

static void test_secret_that_exists_in_a_project_is_found(void **state)
{
    const struct directory *directory = *state;
    check_on_host(directory, "filesystem = { readable = ['@'] }", true, 0);
    make_file(directory, ".env");
    check_on_host(directory, "filesystem = { readable = ['@'] }", true, 1);
    check_on_host(directory, "filesystem = { writable = ['@:/project'] }", true, 1);
    check_on_host(directory, "filesystem = { readable = ['@'] }", false, 0);
    check_on_host(directory, "filesystem = { readable = ['@'], hidden = ['@/.env'] }", true, 0);
    check_on_host(directory, "filesystem = { readable = ['@:/p'], hidden = ['/p/.env'] }", true, 0);
    check_on_host(directory, "filesystem = { readable = ['@:/p'], hidden = ['@/.env'] }", true, 1);
}

static void test_several_secrets_in_one_directory_are_one_finding(void **state)
{
    const struct directory *directory = *state;
    make_file(directory, ".env.production");
    make_file(directory, ".npmrc");
    make_folder(directory, ".ssh");
    check_on_host(directory, "filesystem = { readable = ['@'] }", true, 1);
    check_on_host(directory, "filesystem = { readable = ['@'], hidden = ['@/.npmrc', '@/.ssh'] }",
                  true, 1);
    check_on_host(directory,
                  "filesystem = { readable = ['@'], hidden = ['@/.npmrc', '@/.ssh', "
                  "'@/.env.production'] }",
                  true, 0);
}

static void test_secret_two_levels_down_is_found_from_each_level(void **state)
{
    const struct directory *directory = *state;
    make_folder(directory, ".cache");
    make_folder(directory, ".cache/huggingface");
    check_on_host(directory, "filesystem = { readable = ['@/.cache'] }", true, 0);
    make_file(directory, ".cache/huggingface/token");
    check_on_host(directory, "filesystem = { readable = ['@'] }", true, 1);
    check_on_host(directory, "filesystem = { readable = ['@/.cache'] }", true, 1);
    check_on_host(directory, "filesystem = { readable = ['@/.cache/huggingface'] }", true, 1);
    check_on_host(directory, "filesystem = { readable = ['@/.cache'] }", false, 0);
}

static void test_directory_without_its_usual_secret_is_left_alone_on_the_host(void **state)
{
    const struct directory *directory = *state;
    make_folder(directory, ".config");
    check_on_host(directory, "filesystem = { readable = ['@/.config'] }", true, 0);
    check_on_host(directory, "filesystem = { readable = ['@/.config'] }", false, 1);
    make_folder(directory, ".config/gh");
    check_on_host(directory, "filesystem = { readable = ['@/.config'] }", true, 1);
}

static void test_link_that_leads_nowhere_is_still_a_secret(void **state)
{
    const struct directory *directory = *state;
    char path[256];
    (void)snprintf(path, sizeof path, "%s/.env", directory->path);
    assert_int_equal(symlink("/nonexistent", path), 0);
    check_on_host(directory, "filesystem = { readable = ['@'] }", true, 1);
}

static void test_link_is_followed_on_the_host(void **state)
{
    const struct directory *directory = *state;
    char path[256];
    (void)snprintf(path, sizeof path, "%s/link", directory->path);
    assert_int_equal(symlink("/etc", path), 0);
    check_on_host(directory, "filesystem = { readable = ['@/link'] }", true, 1);
    check_on_host(directory, "filesystem = { readable = ['@/link/shadow'] }", true, 1);
    check_on_host(directory, "filesystem = { readable = ['@/link'] }", false, 0);
}

static void test_path_that_is_not_there_is_no_finding(void **state)
{
    check_on_host(*state, "filesystem = { readable = ['@/missing'] }", true, 0);
}

/* ---- wide and writable paths ---------------------------------------------------------------- */

static void test_writable_root_and_homes(void **state)
{
    static const struct row rows[] = {
        { "filesystem = { writable = ['/'] }", 1 },
        { "filesystem = { writable = ['/:/host'] }", 1 },
        { "filesystem = { writable = ['/root'] }", 1 },
        { "filesystem = { writable = ['/home'] }", 1 },
        { "filesystem = { writable = ['/home/user'] }", 1 },
        { "filesystem = { writable = ['/home/user/.'] }", 1 },
        { "filesystem = { writable = ['/home/user:/work'] }", 1 },
        { "filesystem = { writable = ['/var/home/user'] }", 1 },
        { "filesystem = { writable = ['/Users/user'] }", 1 },
        { "filesystem = { writable = ['..'] }", 1 }, /* of /policy */
        { "filesystem = { writable = ['/home/user/project'] }", 0 },
        { "filesystem = { writable = ['/homes/user'] }", 0 },
        { "filesystem = { writable = ['/srv/root'] }", 0 },
        { "filesystem = { writable = ['/data:/home/user'] }", 0 },
        { "filesystem = { readable = ['/home/user'] }", 0 },
    };
    (void)state;
    CHECK(rows, ROOT_WRITABLE);
}

static void test_readable_root_and_homes(void **state)
{
    static const struct row rows[] = {
        { "filesystem = { readable = ['/'] }", 1 },
        { "filesystem = { readable = ['/root'] }", 1 },
        { "filesystem = { readable = ['/home'] }", 1 },
        { "filesystem = { readable = ['/home/user:/me'] }", 1 },
        { "filesystem = { readable = ['/home/user/project'] }", 0 },
        { "filesystem = { writable = ['/home/user'] }", 0 }, /* that is an error already */
        { "filesystem = { hidden = ['/home/user'] }", 0 },
    };
    (void)state;
    CHECK(rows, HOME_READABLE);
}

static void test_callers_home_is_a_home_wherever_it_is(void **state)
{
    struct tci_lint_options options = { .home = "/data/people/eve" };
    static const struct row rows[] = {
        { "filesystem = { writable = ['/data/people/eve'] }", 1 },
        { "filesystem = { writable = ['/data/people'] }", 1 },
        { "filesystem = { writable = ['/data/people/eve/project'] }", 0 },
        { "filesystem = { writable = ['/data/people/eve2'] }", 0 },
    };
    (void)state;
    check_rows_with(rows, tci_array_size(rows), TCI_FINDING_ROOT_WRITABLE, &options);
    options.home = "/";
    check_rows_with(&(struct row){ "filesystem = { writable = ['/data'] }", 0 }, 1,
                    TCI_FINDING_ROOT_WRITABLE, &options);
}

static void test_writable_system_directories(void **state)
{
    static const struct row rows[] = {
        { "filesystem = { writable = ['/etc'] }", 1 },
        { "filesystem = { writable = ['/etc/cron.d'] }", 1 },
        { "filesystem = { writable = ['/usr/local/bin'] }", 1 },
        { "filesystem = { writable = ['/usr/local/bin:/bin'] }", 1 },
        { "filesystem = { writable = ['/var'] }", 1 },
        { "filesystem = { writable = ['/var/lib'] }", 1 },
        { "filesystem = { writable = ['/var/lib/dpkg/info'] }", 1 },
        { "filesystem = { writable = ['/var/spool/cron'] }", 1 },
        { "filesystem = { writable = ['/run/systemd'] }", 1 },
        { "filesystem = { writable = ['/boot/efi'] }", 1 },
        { "filesystem = { writable = ['/opt'] }", 1 },
        /* What somebody's next login, editor or commit runs. */
        { "filesystem = { writable = ['/home/u/.bashrc'] }", 1 },
        { "filesystem = { writable = ['/home/u/.local/bin'] }", 1 },
        { "filesystem = { writable = ['/home/u/.config/autostart/x.desktop'] }", 1 },
        { "filesystem = { writable = ['/srv/p/.git'] }", 1 },
        { "filesystem = { writable = ['/srv/p/.git/hooks'] }", 1 },
        { "filesystem = { readable = ['/srv/p/.git', '/home/u/.bashrc'] }", 0 },
        { "filesystem = { writable = ['/srv/p/.github', '/srv/p/git'] }", 0 },
        /* A service's own state. */
        { "filesystem = { writable = ['/var/lib/agent/work'] }", 0 },
        { "filesystem = { writable = ['/run/agent'] }", 0 },
        { "filesystem = { writable = ['/srv', '/workspace', '/opt/agent/data'] }", 0 },
        { "filesystem = { writable = ['/data:/usr/local'] }", 0 },
        { "filesystem = { readable = ['/usr'] }", 0 },
        { "filesystem = { writable = ['/'] }", 0 }, /* a finding of its own */
        { "filesystem = { writable = ['/library'] }", 0 },
    };
    (void)state;
    CHECK(rows, SYSTEM_WRITABLE);
}

static void test_path_in_both_lists(void **state)
{
    static const struct row rows[] = {
        { "filesystem = { readable = ['/data'], writable = ['/data'] }", 1 },
        { "filesystem = { readable = ['/data/'], writable = ['/data/x/..'] }", 1 },
        { "filesystem = { readable = ['/srv:/data'], writable = ['/srv:/data'] }", 1 },
        { "filesystem = { readable = ['/data'], writable = ['/data/out'] }", 0 },
        { "filesystem = { readable = ['/data/in'], writable = ['/data'] }", 0 },
        { "filesystem = { readable = ['/data'], writable = ['/data2'] }", 0 },
    };
    (void)state;
    CHECK(rows, READABLE_AND_WRITABLE);
}

static void test_path_that_is_writable_at_another_place_of_the_cage(void **state)
{
    static const struct row rows[] = {
        { "filesystem = { readable = ['/data:/in'], writable = ['/data:/out'] }", 1 },
        { "filesystem = { readable = ['/data/ro:/in'], writable = ['/data:/work'] }", 1 },
        { "filesystem = { readable = ['/data/ro:/in'], writable = ['/data:/work'], "
          "hidden = ['/work/ro'] }",
          0 },
        { "filesystem = { readable = ['/data:/in'], writable = ['/data/out:/out'] }", 0 },
    };
    (void)state;
    CHECK(rows, READABLE_AND_WRITABLE);
}

static void test_tool_that_can_rewrite_its_policy(void **state)
{
    static const struct row rows[] = {
        { "filesystem = { writable = ['/policy'] }", 1 },
        { "filesystem = { writable = ['.'] }", 1 },
        { "filesystem = { writable = ['test.toml'] }", 1 },
        { "filesystem = { writable = ['/policy:/work'] }", 1 },
        { "filesystem = { writable = ['/'] }", 1 },
        { "filesystem = { writable = ['.'], hidden = ['test.toml'] }", 0 },
        { "filesystem = { writable = ['.'], readable = ['test.toml'] }", 0 },
        { "filesystem = { writable = ['/policy:/work'], hidden = ['/work/test.toml'] }", 0 },
        { "filesystem = { writable = ['/policy:/work'], hidden = ['/policy/test.toml'] }", 1 },
        { "filesystem = { writable = ['data'] }", 0 },
        { "filesystem = { writable = ['/policy2'] }", 0 },
        { "filesystem = { readable = ['.'] }", 0 },
        { "backend = 'oci'\ncontainer = { mounts = ['/policy:/p:rw'] }", 1 },
        { "backend = 'oci'\ncontainer = { mounts = ['/policy:/p:ro'] }", 0 },
    };
    (void)state;
    CHECK(rows, POLICY_WRITABLE);
}

/* A policy in the directory, with a schema in its folder "s". */
static size_t count_rewritable(const struct directory *directory, const char *text)
{
    struct tci_findings *findings = tci_findings_new("test.toml");
    struct tci_lint_options options = { .now = 0 };
    struct tc_policy *policy = NULL;
    struct tc_error error = { 0 };
    size_t count;
    assert_non_null(findings);
    if (tci_policy_parse(text, strlen(text), TCI_FORMAT_TOML, directory->path, findings, &policy,
                         &error) < 0 ||
        tci_lint(policy, &options, findings, &error) < 0)
        fail_msg("%s", error.message);
    count = count_of(findings, TCI_FINDING_POLICY_WRITABLE);
    tc_policy_free(policy);
    tci_findings_free(findings);
    return count;
}

static void test_tool_that_can_rewrite_a_schema_of_the_policy(void **state)
{
    static const struct row rows[] = {
        { "[tool.t]\nfilesystem = { writable = ['s'] }\nparameters = 's/x.json'\n", 1 },
        { "[tool.t]\nfilesystem = { writable = ['s/x.json'] }\nparameters = 's/x.json'\n", 1 },
        { "[tool.t]\nfilesystem = { writable = ['s'] }\n[tool.u]\nreturns = 's/x.json'\n", 1 },
        { "[tool.t]\nfilesystem = { readable = ['s'] }\nparameters = 's/x.json'\n", 0 },
        { "[tool.t]\nfilesystem = { writable = ['s'] }\nparameters = { type = 'object' }\n", 0 },
    };
    const struct directory *directory = *state;
    char path[256];
    FILE *file;
    make_folder(directory, "s");
    (void)snprintf(path, sizeof path, "%s/s/x.json", directory->path);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs("{}", file) >= 0);
    assert_int_equal(fclose(file), 0);
    for (size_t i = 0; i < tci_array_size(rows); i++)
        if (count_rewritable(directory, rows[i].lines) != rows[i].expected)
            fail_msg("%s", rows[i].lines);
}

static void test_program_that_the_tool_can_rewrite(void **state)
{
    static const struct row rows[] = {
        { "filesystem = { writable = ['/w'] }\ncommand = ['/w/bin/run']", 1 },
        { "filesystem = { writable = ['/w'] }\ncommand = ['timeout', '5', '/w/bin/run']", 1 },
        { "filesystem = { writable = ['/w'] }\ncommand = ['python3', '/w/run.py']", 1 },
        { "filesystem = { writable = ['/w'] }\ncommands = ['/w/git']\ncommand = ['run']", 1 },
        { "filesystem = { writable = ['/srv:/w'] }\ncommand = ['/w/run']", 1 },
        { "filesystem = { writable = ['/w'] }\ncommand = ['run', '/w/data']", 0 },
        { "filesystem = { writable = ['/w'], readable = ['/w/bin'] }\ncommand = ['/w/bin/run']",
          0 },
        { "filesystem = { writable = ['/w'] }\ncommand = ['/usr/bin/run']", 0 },
        { "filesystem = { writable = ['/w'] }\ncommand = ['w/run']", 0 },
    };
    (void)state;
    CHECK(rows, POLICY_WRITABLE);
}

static void test_hidden_path_that_shows_at_another_place(void **state)
{
    static const struct row rows[] = {
        { "filesystem = { readable = ['/data', '/data:/mirror'], hidden = ['/data/x'] }", 1 },
        { "filesystem = { readable = ['/data', '/data/x:/s'], hidden = ['/data/x'] }", 1 },
        { "filesystem = { readable = ['/srv/d', '/srv:/srv2'], hidden = ['/srv/d/x'] }", 1 },
        { "filesystem = { readable = ['/data', '/data:/m'], hidden = ['/data/x', '/m/x'] }", 0 },
        { "filesystem = { readable = ['/data', '/data/y:/m'], hidden = ['/data/x'] }", 0 },
        { "filesystem = { readable = ['/data', '/other:/m'], hidden = ['/data/x'] }", 0 },
        { "filesystem = { readable = ['/data', '/data/x/ok'], hidden = ['/data/x'] }", 0 },
        { "filesystem = { hidden = ['/data/x'] }", 0 },
    };
    (void)state;
    CHECK(rows, SECRET_READABLE);
}

static void test_many_nested_paths_are_compared_within_bounds(void **state)
{
    static char text[400000];
    size_t used = (size_t)snprintf(text, sizeof text, "[tool.t]\nfilesystem = { readable = [");
    struct tci_findings *findings;
    (void)state;
    for (int list = 0; list < 2; list++) {
        for (int i = 1; i <= 400; i++) {
            used += (size_t)snprintf(text + used, sizeof text - used, "'/a");
            for (int j = 0; j < i; j++)
                used += (size_t)snprintf(text + used, sizeof text - used, "/b");
            used += (size_t)snprintf(text + used, sizeof text - used, ":/%c%d',", "rw"[list], i);
        }
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 list ? "] }\n" : "], writable = [");
    }
    findings = lint(text);
    assert_true(count_of(findings, TCI_FINDING_READABLE_AND_WRITABLE) > 0);
    assert_true(count_of(findings, TCI_FINDING_READABLE_AND_WRITABLE) <= 30000);
    assert_int_equal(count_of(findings, TCI_FINDING_TOO_MANY_RULES), 1);
    tci_findings_free(findings);
}

static void test_tilde_and_variables_are_said_not_to_be_expanded(void **state)
{
    static const struct row rows[] = {
        { "filesystem = { readable = ['~/data'] }", 1 },
        { "filesystem = { readable = ['~'] }", 1 },
        { "filesystem = { readable = ['~bob/data'] }", 1 },
        { "filesystem = { writable = ['${HOME}/data'] }", 1 },
        { "filesystem = { writable = ['$HOME/data'] }", 1 },
        { "filesystem = { writable = ['/home/$USER/data'] }", 1 },
        { "filesystem = { readable = ['~/data:/data'] }", 1 },
        { "filesystem = { readable = [{ host = '~/data', cage = '/data' }] }", 1 },
        { "filesystem = { readable = ['/data'], hidden = ['~/.ssh'] }", 1 },
        { "capabilities = ['fs_read']\nallowed_paths = ['~/data']", 1 },
        { "filesystem = { readable = ['/data/file~'] }", 0 },
        { "filesystem = { readable = ['/data/100$'] }", 0 },
        { "filesystem = { readable = ['/data/a$1'] }", 0 },
        { "filesystem = { readable = ['./~'] }", 0 },
    };
    (void)state;
    CHECK(rows, NOT_EXPANDED);
}

static void test_command_and_environment_are_not_expanded_either(void **state)
{
    static const struct row rows[] = {
        { "command = ['tool', '~/config']", 1 },
        { "command = ['tool', '$HOME/config']", 1 },
        { "command = ['tool', '$1']", 0 },
        { "command = ['tool', 'cost: $HOME']", 0 },
        { "command = ['sh', '-c', '$HOME/bin/x']", 0 },
        { "command = ['tool', '~']", 0 },
        { "env = { CONFIG = '~/x' }", 1 },
        { "env = { CONFIG = '${HOME}/x' }", 1 },
        { "env = { PATH = '/opt/bin:$PATH' }", 1 },
        { "env = { GREETING = 'it costs $5 ~ roughly' }", 0 },
    };
    (void)state;
    CHECK(rows, NOT_EXPANDED);
}

/* ---- inheritance ---------------------------------------------------------------------------- */

static void test_inherited_value_is_reported_once(void **state)
{
    struct tci_findings *findings = lint("version = 1\n"
                                         "[defaults]\n"
                                         "filesystem = { readable = ['/etc'] }\n"
                                         "network = ['*.com:*']\n"
                                         "memory = 'unlimited'\n"
                                         "env = { LD_PRELOAD = 'x' }\n"
                                         "[tool.a]\n[tool.b]\n[tool.c]\n[tool.d]\n");
    (void)state;
    assert_int_equal(count_of(findings, TCI_FINDING_SECRET_READABLE), 1);
    assert_int_equal(count_of(findings, TCI_FINDING_WIDE_WILDCARD), 1);
    assert_int_equal(count_of(findings, TCI_FINDING_WILDCARD_PORT), 1);
    assert_int_equal(count_of(findings, TCI_FINDING_NO_LIMIT), 1);
    assert_int_equal(count_of(findings, TCI_FINDING_LOADER_ENVIRONMENT), 1);
    assert_int_equal(first_of(findings, TCI_FINDING_SECRET_READABLE)->pos.line, 3);
    tci_findings_free(findings);
}

static void test_own_value_is_reported_for_each_tool(void **state)
{
    static const struct row rows[] = {
        { "[defaults]\nmemory = 'unlimited'\n[tool.a]\nmemory = 'unlimited'\n[tool.b]\n[tool.c]\n"
          "memory = 'unlimited'\n",
          3 },
    };
    (void)state;
    CHECK_POLICIES(rows, NO_LIMIT);
}

static void test_default_that_every_tool_replaces_is_not_reported(void **state)
{
    static const struct row rows[] = {
        { "[defaults]\nmemory = 'unlimited'\n[tool.a]\nmemory = '1MB'\n", 0 },
        { "[defaults]\nmemory = 'unlimited'\n[tool.a]\nmemory = '1MB'\n[tool.b]\n", 1 },
    };
    (void)state;
    CHECK_POLICIES(rows, NO_LIMIT);
}

static void test_own_container_does_not_repeat_inherited_paths(void **state)
{
    static const struct row rows[] = {
        { "[defaults]\nbackend = 'oci'\nfilesystem = { readable = ['/etc'] }\n"
          "[tool.a]\ncontainer = { user = '1000' }\n[tool.b]\ncontainer = { user = '1001' }\n",
          1 },
        /* But what the container itself mounts is reported for each. */
        { "[defaults]\nbackend = 'oci'\nfilesystem = { readable = ['/etc'] }\n"
          "[tool.a]\ncontainer = { mounts = ['/root/.ssh:/a'] }\n"
          "[tool.b]\ncontainer = { mounts = ['/root/.ssh:/b'] }\n",
          3 },
    };
    (void)state;
    CHECK_POLICIES(rows, SECRET_READABLE);
}

static void test_inherited_container_is_reported_though_the_first_tool_has_none(void **state)
{
    static const struct row rows[] = {
        { "[defaults]\ncontainer = { user = 'root' }\n[tool.a]\n[tool.b]\nbackend = 'oci'\n"
          "[tool.c]\nbackend = 'oci'\n",
          1 },
        { "[defaults]\ncontainer = { user = 'root' }\n[tool.a]\n", 0 },
    };
    (void)state;
    CHECK_POLICIES(rows, WEAK_CONTAINER);
}

static void test_inherited_paths_are_judged_by_each_tools_capability(void **state)
{
    static const char text[] = "[defaults]\nallowed_paths = ['/home/u']\n"
                               "[tool.none]\ncapabilities = ['net_http']\n"
                               "[tool.reads]\ncapabilities = ['fs_read']\n"
                               "[tool.writes]\ncapabilities = ['fs_write']\n"
                               "[tool.writes_too]\ncapabilities = ['fs_write']\n";
    struct tci_lint_options options = { .now = 0 };
    (void)state;
    check_count(text, &options, TCI_FINDING_HOME_READABLE, 1);
    check_count(text, &options, TCI_FINDING_ROOT_WRITABLE, 1);
}

static void test_what_one_tool_mounts_over_a_secret_does_not_hide_it_for_the_next(void **state)
{
    static const struct row rows[] = {
        { "[defaults]\nfilesystem = { readable = ['/etc/ssl'] }\n[tool.a]\nbackend = 'oci'\n"
          "container = { mounts = ['/empty:/etc/ssl/private'] }\n[tool.b]\n",
          1 },
    };
    (void)state;
    CHECK_POLICIES(rows, SECRET_READABLE);
}

static void test_inherited_root_is_judged_by_each_tools_right_to_it(void **state)
{
    static const char text[] =
        "[defaults]\nbackend = 'oci'\nrootfs = '/home/u'\n[tool.a]\n[tool.b]\n"
        "container = { read_only_rootfs = false }\n[tool.c]\n"
        "container = { read_only_rootfs = false }\n";
    struct tci_lint_options options = { .now = 0 };
    (void)state;
    check_count(text, &options, TCI_FINDING_HOME_READABLE, 1);
    check_count(text, &options, TCI_FINDING_ROOT_WRITABLE, 1);
}

static void test_inherited_hosts_are_reported_though_the_first_tool_cannot_use_them(void **state)
{
    static const struct row rows[] = {
        { "[defaults]\nallowed_hosts = ['*.com']\n[tool.a]\ncapabilities = ['fs_read']\n"
          "[tool.b]\ncapabilities = ['net_http']\n[tool.c]\ncapabilities = ['exec_run']\n"
          "[tool.d]\ncapabilities = ['net_http']\n",
          1 },
    };
    (void)state;
    CHECK_POLICIES(rows, WIDE_WILDCARD);
}

/* ---- network -------------------------------------------------------------------------------- */

static void test_host_network_is_an_error_until_it_is_confirmed(void **state)
{
    static const struct row unconfirmed[] = {
        { "network = 'host'", 1 },
        { "network = 'host'\nallow_host_network = false", 1 },
        { "network = 'host'\nallow_host_network = true", 0 },
        { "network = 'public'", 0 },
        { "network = 'none'\nallow_host_network = true", 0 },
    };
    static const struct row confirmed[] = {
        { "network = 'host'\nallow_host_network = true", 1 },
        { "network = 'host'", 0 },
        { "network = 'public'\nallow_host_network = true", 0 },
    };
    (void)state;
    CHECK(unconfirmed, HOST_NETWORK);
    CHECK(confirmed, HOST_NETWORK_CONFIRMED);
}

static void test_one_tools_confirmation_is_not_anothers(void **state)
{
    static const char text[] = "[defaults]\nnetwork = 'host'\n"
                               "[tool.a]\nallow_host_network = true\n[tool.b]\n[tool.c]\n";
    struct tci_lint_options options = { .now = 0 };
    (void)state;
    check_count(text, &options, TCI_FINDING_HOST_NETWORK, 1);
    check_count(text, &options, TCI_FINDING_HOST_NETWORK_CONFIRMED, 1);
}

static void test_rules_for_every_port(void **state)
{
    static const struct row rows[] = {
        { "network = ['a.example.com:*']", 1 },
        { "network = ['a.example.com:1-65535']", 1 },
        { "network = ['a.example.com:1024-65535']", 1 },
        { "network = ['a.example.com:1-40000', 'a.example.com:40001-65535']", 2 },
        { "network = ['a.example.com:30000-39998']", 0 },
        { "network = ['a.example.com:8000-8010']", 0 },
        { "network = ['a.example.com:443', 'deny:b.example.com:*']", 0 },
        { "network = ['a.example.com:*', 'b.example.com:*']", 2 },
        { "capabilities = ['net_http']\nallowed_hosts = ['a.example.com:*']", 1 },
        { "capabilities = ['net_http']\nallowed_hosts = ['a.example.com']", 0 },
    };
    (void)state;
    CHECK(rows, WILDCARD_PORT);
}

static void test_wildcards_below_which_anybody_gets_a_name(void **state)
{
    static const struct row rows[] = {
        { "network = ['*.com:443']", 1 },
        { "network = ['*.io:443']", 1 },
        { "network = ['*.co.uk:443']", 1 },
        { "network = ['*.github.io:443']", 1 },
        { "network = ['*.GitHub.IO.:443']", 1 },
        { "network = ['*.s3.amazonaws.com:443']", 1 },
        { "network = ['*.s3.eu-west-1.amazonaws.com:443']", 1 },
        { "network = ['*.us-east-1.amazonaws.com:443']", 1 },
        { "network = ['*.execute-api.us-gov-west-1.amazonaws.com:443']", 1 },
        { "network = ['*.lambda-url.us-east-2.on.aws:443']", 1 },
        { "network = ['*.ngrok-free.app:443']", 1 },
        { "network = ['*.workers.dev:443']", 1 },
        { "network = ['*.on.aws:443']", 1 },
        { "capabilities = ['net_http']\nallowed_hosts = ['*.com']", 1 },
        { "network = ['*.example.com:443']", 0 },
        { "network = ['*.me.github.io:443']", 0 },
        { "network = ['me.github.io:443']", 0 },
        { "network = ['*.bucket.s3.amazonaws.com:443']", 0 },
        { "network = ['*.notgithub.io:443']", 0 },
        { "network = ['a.example.com:443', 'deny:*.com:443']", 0 },
    };
    (void)state;
    CHECK(rows, WIDE_WILDCARD);
}

static void test_wide_ranges_of_addresses(void **state)
{
    static const struct row rows[] = {
        { "network = ['0.0.0.0/0:443']", 1 },
        { "network = ['8.0.0.0/8:443']", 1 },
        { "network = ['8.0.0.0/15:443']", 1 },
        { "network = ['8.8.0.0/16:443']", 0 },
        { "network = ['8.8.8.8:443']", 0 },
        { "network = ['[::]/0:443']", 1 },
        { "network = ['[2600::]/16:443']", 1 },
        { "network = ['[2606:4700::]/32:443']", 0 },
        /* Wide, but nobody else's: that is another finding. */
        { "network = ['10.0.0.0/8:443']", 0 },
        { "network = ['127.0.0.0/8:443']", 0 },
        { "network = ['[fc00::]/7:443']", 0 },
        /* Together they are wide. */
        { "network = ['8.0.0.0/16:443', '8.1.0.0/16:443', '8.2.0.0/16:443', '8.3.0.0/16:443', "
          "'8.4.0.0/16:443', '8.5.0.0/16:443', '8.6.0.0/16:443', '8.7.0.0/16:443', "
          "'8.8.0.0/16:443', '8.9.0.0/16:443', '8.10.0.0/16:443', '8.11.0.0/16:443', "
          "'8.12.0.0/16:443', '8.13.0.0/16:443', '8.14.0.0/16:443', '8.15.0.0/16:443']",
          1 },
        { "network = ['8.0.0.0/16:443', '8.1.0.0/16:443', '8.2.0.0/16:443']", 0 },
        /* Half of it is the internet. */
        { "network = ['10.0.0.0/7:443']", 1 },
    };
    (void)state;
    CHECK(rows, WIDE_WILDCARD);
}

static void test_private_addresses_and_local_names(void **state)
{
    static const struct row rows[] = {
        { "network = ['10.1.2.3:5432']", 1 },
        { "network = ['192.168.0.0/16:80']", 1 },
        { "network = ['172.16.0.0/12:80']", 1 },
        { "network = ['127.0.0.1:8080']", 1 },
        { "network = ['allowlist:127.0.0.1:5432']", 1 },
        { "network = ['[::1]:8080']", 1 },
        { "network = ['[fd00::1]:8080']", 1 },
        { "network = ['0.0.0.0:8080']", 1 },
        { "network = ['100.64.0.1:80']", 1 },
        { "network = ['localhost:8080']", 1 },
        { "network = ['LOCALHOST.:8080']", 1 },
        { "network = ['app.localhost:8080']", 1 },
        { "network = ['*.localhost:8080']", 1 },
        { "network = ['host.docker.internal:80']", 1 },
        { "network = ['printer.local:631']", 1 },
        { "network = ['*.local:80']", 1 },
        { "network = ['db:5432']", 1 },
        { "network = ['router.lan:80']", 1 },
        { "network = ['kubernetes.default.svc:443']", 1 },
        { "network = ['api.example.com:443', '8.8.8.8:53']", 0 },
        { "network = ['localhost.example.com:443']", 0 },
        { "network = ['notlocalhost.com:443']", 0 },
        { "network = ['api.example.com:443', 'deny:10.0.0.0/8:*']", 0 },
        { "network = 'public'", 0 },
    };
    (void)state;
    CHECK(rows, PRIVATE_RANGE);
}

static void test_metadata_services(void **state)
{
    static const struct row rows[] = {
        { "network = ['169.254.169.254:80']", 1 },
        { "network = ['169.254.0.0/16:80']", 1 },
        { "network = ['0.0.0.0/0:80']", 1 },
        { "network = ['[fd00:ec2::254]:80']", 1 },
        { "network = ['100.100.100.200:80']", 1 },
        { "network = ['[64:ff9b::a9fe:a9fe]:80']", 1 },
        { "network = ['metadata.google.internal:80']", 1 },
        { "network = ['Metadata.Google.Internal.:80']", 1 },
        { "network = ['*.google.internal:80']", 1 },
        { "network = ['*.internal:80']", 1 },
        { "network = ['metadata:80']", 1 },
        { "network = ['169.254.1.1:80']", 0 },
        { "network = ['metadata.example.com:443']", 0 },
        { "network = ['api.example.com:443', 'deny:169.254.169.254:*']", 0 },
    };
    (void)state;
    CHECK(rows, METADATA_RANGE);
}

static void test_metadata_service_is_not_reported_as_private_too(void **state)
{
    static const struct row rows[] = {
        { "network = ['169.254.169.254:80', 'metadata.google.internal:80']", 0 },
    };
    (void)state;
    CHECK(rows, PRIVATE_RANGE);
}

static void test_addresses_of_the_gate(void **state)
{
    static const struct row rows[] = {
        { "network = ['198.18.0.1:80']", 1 },
        { "network = ['198.19.255.255:80']", 1 },
        { "network = ['198.18.0.0/15:80', '[2001:2::]/48:443']", 2 },
        { "network = ['[2001:2:0:1::7]:443']", 1 },
        { "network = ['198.20.0.1:80', '[2001:2:1::]/48:80']", 0 },
        { "network = ['198.16.0.0/13:80']", 0 }, /* more than the gate's: not meant for it */
        { "network = ['a.example.com:80', 'deny:198.18.0.1:80']", 0 },
    };
    (void)state;
    CHECK(rows, GATE_RANGE);
    check_message("[tool.t]\nnetwork = ['198.18.0.1:80']\n", TCI_FINDING_GATE_RANGE, "never dials",
                  "name");
    check_rows((struct row[]){ { "network = ['198.18.0.1:80']", 0 } }, 1,
               TCI_FINDING_PRIVATE_RANGE);
}

static void test_limits_of_a_network_that_is_not_there(void **state)
{
    static const struct row rows[] = {
        { "network_limits = { connections = 5 }", 1 },
        { "network = 'none'\nnetwork_limits = { rate = '1MB' }\ninspect = 'strict'", 2 },
        { "network = []\ninspect = 'names'", 1 },
        { "network = ['a.example.com:443']\ninspect = 'strict'\nnetwork_limits = {}", 0 },
        { "network = 'public'\ninspect = 'strict'\nnetwork_limits = {}", 0 },
        { "capabilities = ['net_http']\nallowed_hosts = ['a.example.com']\ninspect = 'strict'", 0 },
        { "capabilities = []\nallowed_hosts = ['a.example.com']\ninspect = 'strict'", 1 },
    };
    static const struct row policies[] = {
        { "[defaults]\ninspect = 'strict'\nnetwork_limits = { rate = '1MB' }\n[tool.t]\n", 0 },
    };
    (void)state;
    CHECK(rows, NO_GATE);
    CHECK_POLICIES(policies, NO_GATE);
}

static void test_limits_of_the_network_that_a_tool_drops(void **state)
{
    static const struct row policies[] = {
        { "[defaults]\nnetwork_limits = { bytes_out = '1MB', rate = '1kB' }\n"
          "[tool.t]\nnetwork = ['a.example.com:443']\nnetwork_limits = { bytes_in = '1MB' }\n",
          2 },
        { "[defaults]\nnetwork_limits = { bytes_out = '1MB', connections = 5 }\n"
          "[tool.t]\nnetwork_limits = { bytes_out = '2MB' }\n[tool.u]\n",
          0 },
        { "[defaults]\nnetwork_limits = { bytes_out = '1MB' }\ninspect = 'strict'\n"
          "[tool.t]\nnetwork = 'host'\n[tool.u]\nnetwork = 'public'\n",
          2 },
    };
    (void)state;
    CHECK_POLICIES(policies, DROPPED_DEFAULT);
}

static void test_rules_that_have_no_effect(void **state)
{
    static const struct row rows[] = {
        { "network = ['a.example.com:443', 'a.example.com:443']", 1 },
        { "network = ['a.example.com:443', 'allowlist:A.Example.com.:443']", 1 },
        { "network = ['a.example.com:443', 'deny:*.example.com:*']", 1 },
        { "network = ['*.example.com:443', 'deny:a.example.com:443']", 0 },
        { "network = ['a.example.com:80-443', 'deny:a.example.com:80']", 0 },
        { "network = ['*.example.com:443', 'a.example.com:443']", 1 },
        { "network = ['*.example.com:443', 'a.example.com:80']", 0 },
        { "network = ['*.example.com:443', 'example.com:443']", 0 },
        { "network = ['192.0.2.0/24:443', '192.0.2.7:443']", 1 },
        { "capabilities = ['net_http']\nallowed_hosts = ['a.org', 'a.org']", 1 },
        { "capabilities = ['net_http']\nallowed_hosts = ['a.org', 'a.org:443']", 1 },
    };
    (void)state;
    CHECK(rows, REPEATED_RULE);
}

static void test_denials_of_what_is_not_allowed_have_no_effect(void **state)
{
    static const struct row rows[] = {
        { "network = ['deny:evil.example.com:443']", 1 },
        { "network = ['deny:evil.example.com:443', 'deny:10.0.0.0/8:*']", 2 },
        { "network = ['api.example.com:443', 'deny:evil.example.org:443']", 1 },
        { "network = ['api.example.com:443', 'deny:api.example.com:80']", 1 },
        { "network = ['*.example.com:443', 'deny:*.b.example.com:443']", 0 },
        { "network = ['*.example.com:1-1000', 'deny:a.example.com:900-2000']", 0 },
        /* A name's addresses are checked as well. */
        { "network = ['api.example.com:443', 'deny:10.0.0.0/8:*']", 0 },
        { "network = ['192.0.2.0/24:443', 'deny:192.0.2.7:443']", 0 },
        { "network = ['192.0.2.0/24:443', 'deny:198.51.100.7:443']", 1 },
    };
    (void)state;
    CHECK(rows, REPEATED_RULE);
    check_message("[tool.t]\nnetwork = ['deny:evil.example.com:443']\n", TCI_FINDING_REPEATED_RULE,
                  "no rule allows what it denies", "denied anyway");
}

static void test_deny_is_named_rather_than_a_wider_allow(void **state)
{
    (void)state;
    check_message("[tool.t]\nnetwork = ['a.example.com:443', '*.example.com:443', "
                  "'deny:*.example.com:443']\n",
                  TCI_FINDING_REPEATED_RULE, "takes it back", "remove one");
}

/* ---- limits --------------------------------------------------------------------------------- */

static void test_unlimited_is_an_error(void **state)
{
    static const struct row rows[] = {
        { "timeout = 'unlimited'", 1 },
        { "memory = 'unlimited'", 1 },
        { "cpu = 'unlimited'", 1 },
        { "pids = 'unlimited'", 1 },
        { "files = 'unlimited'", 1 },
        { "disk = 'unlimited'", 1 },
        { "output = 'unlimited'", 1 },
        { "memory = 'unlimited'\npids = 'unlimited'", 2 },
        { "cpu_time = 'unlimited'", 0 }, /* the timeout still holds */
        { "outputs = { globs = ['/w/*'], max_file = 'unlimited' }", 1 },
        { "outputs = { globs = ['/w/*'], max_files = 'unlimited' }", 1 },
        { "outputs = ['/w/*']", 0 },
        { "network_limits = { connections = 'unlimited' }", 1 },
        { "network_limits = { bytes_in = 'unlimited', rate = 'unlimited' }", 0 },
        { "memory = '1GB'", 0 },
    };
    (void)state;
    CHECK(rows, NO_LIMIT);
}

static void test_absurd_limits(void **state)
{
    static const struct row rows[] = {
        { "timeout = '9ms'", 1 },
        { "timeout = '10ms'", 0 },
        { "timeout = '24h'", 0 },
        { "timeout = '25h'", 1 },
        { "cpu_time = '25h'", 1 },
        { "memory = '999kB'", 1 },
        { "memory = '1MB'", 0 },
        { "memory = '1TB'", 0 },
        { "memory = '1TiB'", 1 },
        { "cpu = 0.005", 1 },
        { "cpu = 0.01", 0 },
        { "cpu = 1024", 0 },
        { "cpu = 2000", 1 },
        { "pids = 32768", 0 },
        { "pids = 32769", 1 },
        { "files = 7", 1 },
        { "files = 8", 0 },
        { "disk = '11TB'", 1 },
        { "output = '2GB'", 1 },
        { "filesystem = { scratch = '2TB' }", 1 },
        { "filesystem = { scratch = '0B' }", 0 },
        { "warm = 1000", 0 },
        { "warm = 1001", 1 },
        { "outputs = { globs = ['/w/*'], max_file = '2TB' }", 1 },
        { "outputs = { globs = ['/w/*'], max_files = 2000000 }", 1 },
        { "network_limits = { connections = 10000, bytes_in = '1kB', rate = '100GB' }", 0 },
        { "network_limits = { connections = 10001 }", 1 },
        { "network_limits = { bytes_in = '999B', bytes_out = '11TB', rate = '100B' }", 3 },
        { "network_limits = { connections = 'unlimited' }", 0 },
        { "memory = 'unlimited'", 0 }, /* a finding of its own */
    };
    (void)state;
    CHECK(rows, ABSURD_LIMIT);
}

/* ---- code ----------------------------------------------------------------------------------- */

static void test_shell_code_in_all_spellings(void **state)
{
    static const char *const commands[] = {
        "'bash', '-c', '{x}'",
        "'sh', '-c', 'echo {x}'",
        "'sh', '-lc', '{x}'",
        "'bash', '-euxo', 'pipefail', '-c', '{x}'",
        "'bash', '-o', 'pipefail', '-c', '{x}'",
        "'bash', '-ceu', '{x}'",
        "'bash', '-c', '--', '{x}'",
        "'bash', '-c', '-x', '{x}'",
        "'bash', '--norc', '-c', '{x}'",
        "'bash', '--rcfile', '/dev/null', '-c', '{x}'",
        "'bash', '-c{x}'",
        "'bash', '-c', '{x...}'",
        "'/bin/bash', '-c', '{x}'",
        "'/usr/local/bin/zsh', '-c', '{x}'",
        "'dash', '-c', '{x}'",
        "'fish', '-c', '{x}'",
        "'fish', '--command={x}'",
        "'fish', '--command', '{x}'",
        "'fish', '-C', '{x}'",
        "'busybox', 'sh', '-c', '{x}'",
        "'env', 'bash', '-c', '{x}'",
        "'env', 'A=b', 'bash', '-c', '{x}'",
        "'env', '-i', '-u', 'HOME', 'bash', '-c', '{x}'",
        "'/usr/bin/env', '--', 'bash', '-c', '{x}'",
        "'env', '-S', 'bash -c {x}'",
        "'env', '--split-string=bash {x}'",
        "'timeout', '5', 'sh', '-c', '{x}'",
        "'timeout', '-k', '5', '--signal', 'KILL', '10s', 'sh', '-c', '{x}'",
        "'sudo', '-u', 'nobody', 'sh', '-c', '{x}'",
        "'sudo', '-u', 'nobody', '--', 'sh', '-c', '{x}'",
        "'nice', '-n', '10', 'sh', '-c', '{x}'",
        "'stdbuf', '-o', 'L', 'sh', '-c', '{x}'",
        "'chroot', '/srv', 'sh', '-c', '{x}'",
        "'xargs', '-n', '1', 'sh', '-c', '{x}'",
        "'docker', 'exec', 'box', 'sh', '-c', '{x}'",
        "'kubectl', 'exec', 'pod', '--', 'sh', '-c', '{x}'",
        "'find', '/data', '-exec', 'sh', '-c', '{x}', ';'",
        "'some-wrapper', '--flag', 'bash', '-c', '{x}'",
        "'su', 'user', '-c', '{x}'",
        "'su', '-', 'user', '--command={x}'",
        "'runuser', '-u', 'user', '--', 'bash', '-c', '{x}'",
        "'script', '-qc', '{x}', '/dev/null'",
        "'flock', '/lock', '-c', '{x}'",
        "'watch', '-n', '2', 'ls {x}'",
        "'ssh', 'host', 'ls {x}'",
        "'ssh', '-p', '22', '-o', 'BatchMode=yes', 'host', 'ls', '{x}'",
        "'eval', '{x}'",
        /* The call chooses what is run. */
        "'timeout', '5', '{x}'",
        "'env', '--', '{x}'",
        "'bash', '--', '{x}'",
        "'sh', '{x}'",
        "'find', '/data', '-exec', '{x}', ';'",
        /* Options that run a command. */
        "'git', '-c', 'core.pager={x}', 'log'",
        "'tar', '--to-command={x}', '-xf', 'a.tar'",
        "'rsync', '-e', '{x}', 'a', 'b'",
        "'ssh', '-oProxyCommand={x}', 'host'",
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(commands); i++) {
        char lines[256];
        struct row row = { lines, 1 };
        (void)snprintf(lines, sizeof lines, "command = [%s]", commands[i]);
        check_rows(&row, 1, TCI_FINDING_SHELL_TEMPLATE);
    }
}

static void test_interpreter_code_in_all_spellings(void **state)
{
    static const char *const commands[] = {
        "'python', '-c', '{x}'",
        "'python3', '-c', 'print({x})'",
        "'python3.11', '-c', '{x}'",
        "'/opt/venv/bin/python3.12', '-c', '{x}'",
        "'python3', '-I', '-c', '{x}'",
        "'python3', '-Ic', '{x}'",
        "'python3', '-W', 'ignore', '-c', '{x}'",
        "'python3', '-X', 'dev', '-u', '-c', '{x}'",
        "'python3', '-c{x}'",
        "'pypy3', '-c', '{x}'",
        "'perl', '-e', '{x}'",
        "'perl', '-E', '{x}'",
        "'perl', '-pe', 's/a/{x}/', 'file'",
        "'perl', '-lane', '{x}'",
        "'perl', '-i.bak', '-pe', '{x}'",
        "'perl', '-i', '-pe', '{x}'",
        "'perl', '-MList::Util', '-e', '{x}'",
        "'perl', '-I', 'lib', '-e', '{x}'",
        "'perl', '-e', 'print 1;', '-e', '{x}'",
        "'ruby', '-e', '{x}'",
        "'ruby', '-rjson', '-ne', '{x}'",
        "'node', '-e', '{x}'",
        "'node', '-pe', '{x}'",
        "'node', '--eval', '{x}'",
        "'node', '--eval={x}'",
        "'node', '--print={x}'",
        "'node', '-r', 'fs', '-e', '{x}'",
        "'nodejs', '-p', '{x}'",
        "'deno', 'eval', '{x}'",
        "'deno', 'eval', '--ext=ts', '{x}'",
        "'bun', '-e', '{x}'",
        "'php', '-r', '{x}'",
        "'php8.2', '-d', 'a=b', '-r', '{x}'",
        "'lua5.4', '-e', '{x}'",
        "'Rscript', '-e', '{x}'",
        "'julia', '-e', '{x}'",
        "'pwsh', '-NonInteractive', '-Command', '{x}'",
        "'osh', '-c', '{x}'",
        "'make', '--eval={x}'",
        "'vim', '-es', '-c', '{x}'",
        "'gdb', '-batch', '-ex', '{x}'",
        "'awk', '{x}'",
        "'awk', '-F', ',', '{x}'",
        "'gawk', '-v', 'a=1', '$1 == \"{x}\"'",
        "'sed', '{x}'",
        "'sed', '-n', 's/{x}/y/', 'file'",
        "'sed', '-E', '-e', '{x}'",
        "'sed', '-e', 's/a/b/', '-e', '{x}', 'file'",
        "'sed', '-i', '--expression={x}', 'file'",
        "'env', 'awk', '{x}'",
        "'timeout', '5', 'sed', '{x}'",
        "'uv', 'run', 'python', '-c', '{x}'",
        "'python3.11-dbg', '-c', '{x}'",
        "'python3', '--', '{x}'",
        "'node', '--import=data:text/javascript,{x}'",
        "'perl', '-M{x}', '-e', '1'",
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(commands); i++) {
        char lines[256];
        struct row row = { lines, 1 };
        (void)snprintf(lines, sizeof lines, "command = [%s]", commands[i]);
        check_rows(&row, 1, TCI_FINDING_SHELL_TEMPLATE);
    }
}

static void test_text_that_is_data_for_an_interpreter_is_left_alone(void **state)
{
    static const char *const commands[] = {
        "'bash', '-c', 'echo \"$1\"', '--', '{x}'",
        "'bash', '-c', 'grep -- \"$1\" file', 'sh', '{x}'",
        "'sh', 'script.sh', '-c', '{x}'",
        "'bash', '-s', '{x}'",
        "'bash', '-o', 'pipefail', 'script.sh', '{x}'",
        "'python3', 'script.py', '-c', '{x}'",
        "'python3', '-m', 'tool', '-c', '{x}'",
        "'python3', '-c', 'import sys', '{x}'",
        "'python3', '-', '{x}'",
        "'perl', 'script.pl', '-e', '{x}'",
        "'perl', '-e', 'print shift', '--', '{x}'",
        "'node', 'app.js', '--eval', '{x}'",
        "'deno', 'run', 'app.ts', 'eval', '{x}'",
        "'awk', '-v', 'name={x}', '$1 == name'",
        "'awk', '-vname={x}', '$1 == name'",
        "'awk', '-f', 'program.awk', '{x}'",
        "'awk', '{{print $1}}', '{x}'",
        "'sed', 's/a/b/', '{x}'",
        "'sed', '-f', 'script.sed', '{x}'",
        "'sed', '-e', 's/a/b/', '--', '{x}'",
        "'grep', '-c', '{x}'",
        "'grep', '-e', '{x}'",
        "'git', '-C', '{x}', 'log'",
        "'git', 'commit', '-c', '{x}'",
        "'grep', '-rn', 'python', '{x}'",
        "'highlight', '--syntax', 'bash', '{x}'",
        "'python3', '/scripts/{x}'",
        "'gcc', '-c', '{x}'",
        "'curl', '--', '{x}'",
        "'man', 'awk', '{x}'",
        "'ssh', '--', '{x}'",
        "'env', 'NAME={x}', 'program'",
        "'timeout', '{x}', 'program'",
        "'bash', '-c', 'echo hello'",
        "'echo', '{{x}}'",
        "'bashful', '-c', '{x}'",
        "'python3-config', '-c', '{x}'",
        "'make', '-C', 'dir', '{x}'",
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(commands); i++) {
        char lines[256];
        struct row row = { lines, 0 };
        (void)snprintf(lines, sizeof lines, "command = [%s]", commands[i]);
        check_rows(&row, 1, TCI_FINDING_SHELL_TEMPLATE);
    }
}

static void check_shell_code(const char *const *codes, size_t count, size_t expected)
{
    for (size_t i = 0; i < count; i++) {
        char lines[256];
        struct row row = { lines, expected };
        (void)snprintf(lines, sizeof lines, "command = ['bash', '-c', '''%s''', '_', '{x}']",
                       codes[i]);
        check_rows(&row, 1, TCI_FINDING_SHELL_TEMPLATE);
    }
}

static void test_shell_code_that_runs_its_arguments(void **state)
{
    static const char *const codes[] = {
        "eval \"$1\"",
        "eval\t\"$1\"",
        "cd /w; eval $1",
        "$1",
        "\"$1\"",
        "\"$@\"",
        "exec \"$@\"",
        "set -e; \"$@\"",
        "ls; $1",
        "true && \"$1\"",
        "if true; then \"$1\"; fi",
        "( \"$1\" )",
        "x=$(\"$1\")",
        "echo \"$(sh -c \"$1\")\"",
        "echo `$1`",
        "sh -c \"$1\"",
        "cd /w && bash -c \"$1\"",
        "bash -euc \"$1\"",
        "python3 -c \"$1\"",
        "bash \"$1\"",
        "bash <<< \"$1\"",
        "echo \"$1\" | sh",
        "echo \"$1\" | tr a b | bash",
        "echo \"$1\" | python3 -",
        "x=$1; $x",
        "x=\"$1\"; $x",
        ". \"$1\"",
        "source \"$1\"",
        "trap \"$1\" EXIT",
        "timeout 5 $1",
        "timeout 5 \"$1\"",
        "env \"$@\"",
        "env A=b \"$@\"",
        "find . $1",
        "[[ $1 -eq 1 ]]",
        "echo $(( $1 + 1 ))",
        "echo $1",
        "${{1}}",
    };
    (void)state;
    check_shell_code(codes, tci_array_size(codes), 1);
}

static void test_shell_code_that_keeps_its_arguments_as_data(void **state)
{
    static const char *const codes[] = {
        "echo \"$1\"",
        "grep -- \"$1\" file | wc -l",
        "cd \"$1\" && ls",
        "evaluate \"$1\"",
        "retrieval \"$1\"",
        "x=$1; echo \"$x\"",
        "x=\"$1\"; echo \"$x\"",
        "timeout 5 grep -- \"$1\" file",
        "env A=b grep -- \"$1\" file",
        "python3 script.py \"$1\"",
        "echo \"$(grep -- \"$1\" file)\" \"$1\"",
        "if [ \"$1\" = a ]; then ls; fi",
        "[[ \"$1\" == a ]] && ls",
        "for f in \"$@\"; do echo \"$f\"; done",
        "echo \"$#\" $?",
        "echo 5\\$1",
        "ls > \"$1\"",
        "printf %s \"$1\" | sha256sum",
        "$HOME/bin/x \"$1\"",
        "echo hello",
        "",
    };
    (void)state;
    check_shell_code(codes, tci_array_size(codes), 0);
}

static void test_shell_code_runs_only_what_comes_from_the_call(void **state)
{
    static const struct row rows[] = {
        { "command = ['sh', '-c', '$0', '{x}']", 1 },
        { "command = ['sh', '-c', '\"$@\"', 'sh', '{x...}']", 1 },
        { "command = ['sh', '-c', 'exec \"$@\"', 'sh', 'git', 'log', '{x}']", 0 },
        { "command = ['sh', '-c', 'exec \"$@\"', 'sh', 'bash', '-c', '{x}']", 1 },
        { "command = ['sh', '-c', '\"$1\" \"$2\"', 'sh', 'git', '{x}']", 0 },
        { "command = ['sh', '-c', 'eval \"$1\"', 'sh', 'fixed']", 0 },
        { "command = ['sh', '-c', 'echo \"$1\"', 'sh', 'bash', '-c', '{x}']", 0 },
    };
    (void)state;
    CHECK(rows, SHELL_TEMPLATE);
}

static void check_commands(const char *const *commands, size_t count, size_t expected)
{
    for (size_t i = 0; i < count; i++) {
        char lines[256];
        struct row row = { lines, expected };
        (void)snprintf(lines, sizeof lines, "command = [%s]", commands[i]);
        check_rows(&row, 1, TCI_FINDING_SHELL_TEMPLATE);
    }
}

/* Without a placeholder the call's arguments are JSON on stdin: {"a":"$(id)"} runs id. */
static void test_interpreter_that_reads_its_program_from_stdin(void **state)
{
    static const char *const commands[] = {
        "'bash'",
        "'/bin/sh'",
        "'sh', '-s'",
        "'bash', '-'",
        "'bash', '--'",
        "'bash', '-eu'",
        "'bash', '-o', 'pipefail'",
        "'bash', '-s', 'argument'",
        "'bash', '/dev/stdin'",
        "'fish'",
        "'python3'",
        "'python3', '-'",
        "'python3.11', '-u', '-'",
        "'python3', '-X', 'dev'",
        "'python3', '/proc/self/fd/0'",
        "'node'",
        "'node', '-'",
        "'node', '-r', 'fs'",
        "'node', '--require=fs'",
        "'perl'",
        "'perl', '-MExporter'",
        "'ruby', '-rjson'",
        "'php', '-d', 'a=b'",
        "'pwsh', '-Command', '-'",
        "'lua', '-'",
        "'awk', '-f', '-'",
        "'awk', '-f/dev/stdin', 'file'",
        "'sed', '--file=-', 'file'",
        "'make', '-f', '-'",
        "'parallel'",
        /* Behind others. */
        "'env', 'bash'",
        "'env', '-u', 'FOO', 'A=b', 'python3', '-'",
        "'env', '-S', 'bash -s'",
        "'timeout', '5', 'sh'",
        "'nice', '-n', '5', 'node'",
        "'busybox', 'sh'",
        "'sudo', '-s'",
        "'sudo', '-u', 'bob', 'sh'",
        "'su', 'bob'",
        "'su', 'bob', '-c', 'sh'",
        "'chroot', '/srv/root'",
        "'docker', 'exec', '-i', 'c', 'sh'",
        "'kubectl', 'exec', '-i', 'p', '--', 'bash', '-s'",
        /* What xargs reads becomes the code, the script or the program. */
        "'xargs', '-0', 'sh', '-c'",
        "'xargs', 'bash'",
        "'xargs', 'env'",
        "'xargs', '-I', '%', 'sh', '-c', 'ls %'",
        "'xargs', '-I%', 'sh', '-c', 'ls %'",
    };
    (void)state;
    check_commands(commands, tci_array_size(commands), 1);
}

static void test_json_on_stdin_that_is_data_is_left_alone(void **state)
{
    static const char *const commands[] = {
        "'cat'",
        "'jq', '.'",
        "'bash', 'script.sh'",
        "'bash', '-eu', '--', 'script.sh', '-s'",
        "'bash', '-o', 'pipefail', 'script.sh'",
        "'bash', '-', 'script.sh'",
        "'bash', '--version'",
        "'python3', '/srv/x.py'",
        "'python3', '-u', '/srv/x.py', '-'",
        "'python3', '-m', 'json.tool'",
        "'python3', '-mjson.tool'",
        "'python3', '-V'",
        "'python3', '-c', 'import json,sys; json.load(sys.stdin)'",
        "'python3', '-c', 'import sys', '-'",
        "'node', '--version'",
        "'node', '-r', 'fs', 'app.js'",
        "'node', '-e', '0', '-'",
        "'perl', '-ne', 'print'",
        "'perl', '-MExporter', '-e', '1'",
        "'ruby', '-rjson', 'x.rb'",
        "'php', '-r', '1;'",
        "'awk', 'NR == 1'",
        "'awk', '-f', 'x.awk', '-'",
        "'sed', 's/a/b/', '-'",
        "'tar', '-xf', '-'",
        "'make', '-f', 'x.mk'",
        "'make'",
        "'grep', 'python'",
        "'man', 'bash'",
        "'env', 'A=b', 'python3', 'x.py'",
        "'timeout', '5', 'jq', '.'",
        "'sudo', '-l'",
        "'su', 'bob', '-c', 'ls'",
        "'docker', 'pull', 'python'",
        "'docker', 'exec', '-i', 'c', 'python3', 'x.py'",
        "'xargs', 'ls', '--'",
        "'xargs', 'sh', '-c', 'echo \"$1\"', '_'",
        "'xargs', 'python3', 'x.py'",
        "'xargs', '-I', '%', 'sh', '-c', 'echo \"$1\"', '_', '%'",
    };
    (void)state;
    check_commands(commands, tci_array_size(commands), 0);
}

static void check_stdin_code(const char *const *codes, size_t count, size_t expected)
{
    for (size_t i = 0; i < count; i++) {
        char lines[256];
        struct row row = { lines, expected };
        (void)snprintf(lines, sizeof lines, "command = ['sh', '-c', '''%s''']", codes[i]);
        check_rows(&row, 1, TCI_FINDING_SHELL_TEMPLATE);
    }
}

static void test_shell_code_that_runs_its_stdin(void **state)
{
    static const char *const codes[] = {
        "sh",
        "exec bash -s",
        "cd /w && python3 -",
        "bash 2>&1",
        "bash > /tmp/log",
        "bash </dev/stdin",
        "if true; then sh; fi",
        "( sh )",
        "{{ sh; }}",
        "true || sh",
        "timeout 5 sh",
        "cat | sh",
        "jq -r .code | tr a b | python3 -",
        "tee >(sh)",
        "bash <(cat)",
        ". /dev/stdin",
        ". <(cat)",
        "eval \"$(cat)\"",
        "eval $(cat)",
        "eval `cat`",
        "eval \"$(</dev/stdin)\"",
        "eval \"$(jq -r .code)\"",
        "eval \"$(cat; true)\"",
        "$(cat)",
        "sh -c \"$(cat)\"",
        "python3 -c \"$(cat)\"",
        "bash <<< \"$(cat)\"",
        "echo \"$(cat)\" | sh",
        "x=$(cat); eval \"$x\"",
        "x=\"$(cat)\"; sh -c \"$x\"",
        "x=$(cat); $x",
        "x=$(cat); y=$x; \"$y\"",
        "read -r x; eval \"$x\"",
        "while read -r x; do $x; done",
        "for x in $(cat); do $x; done",
        "set -- $(cat); \"$@\"",
        "sh -c sh",
        "sh -c \"eval \\\"\\$(cat)\\\"\"",
        "xargs sh -c",
        "xargs -I % sh -c \"ls %\"",
    };
    (void)state;
    check_stdin_code(codes, tci_array_size(codes), 1);
}

static void test_shell_code_that_keeps_its_stdin_as_data(void **state)
{
    static const char *const codes[] = {
        "",
        "cat",
        "jq . > /tmp/x",
        "cd /srv && exec python3 x.py",
        "python3 x.py 2>&1 | tee /tmp/log",
        "bash < /srv/x.sh",
        "bash <<< ls",
        "cat | python3 x.py",
        "python3 -c \"import sys\"",
        "curl -s https://example.com/x | sh",
        "eval \"$(ssh-agent -s)\"",
        "d=$(dirname \"$0\"); exec \"$d/run\"",
        "d=/srv/app; exec $d/bin/run",
        "exec $HOME/bin/run",
        "x=$(cat); echo \"$x\"",
        "x=$(jq -r .name); grep -- \"$x\" file",
        "x=$(cat); python3 x.py \"$x\"",
        "read -r x; echo \"$x\" > \"/tmp/$x\"",
        "while read -r x; do ls -- \"$x\"; done",
        "if [ \"$(cat)\" = a ]; then ls; fi",
        "x=$((1+2)); exit $((x+1))",
        "command -v bash",
        "which python3",
        "sh -c \"cat\"",
        "xargs ls --",
        "xargs python3 x.py",
        "echo bash",
        "echo \"sh; sh\"",
    };
    (void)state;
    check_stdin_code(codes, tci_array_size(codes), 0);
}

static void test_finding_names_the_interpreter_that_runs_its_stdin(void **state)
{
    (void)state;
    check_message("[tool.t]\ncommand = ['env', '/bin/bash']\n", TCI_FINDING_SHELL_TEMPLATE,
                  "JSON on stdin, become code for \"bash\"",
                  "as an argument of its own behind the code or script");
}

static void test_finding_names_the_interpreter_and_points_at_the_code(void **state)
{
    struct tci_findings *findings = lint("[tool.t]\n"
                                         "command = ['timeout', '5',\n"
                                         "  '/bin/bash', '-c',\n"
                                         "  '{x}']\n");
    const struct tci_finding *f = first_of(findings, TCI_FINDING_SHELL_TEMPLATE);
    (void)state;
    assert_non_null(strstr(f->message, "\"bash\""));
    assert_int_equal(f->pos.line, 4);
    tci_findings_free(findings);
}

/* ---- parameters ----------------------------------------------------------------------------- */

#define PARAMETERS(x) "\nparameters = { properties = { x = " x " } }"

static void test_text_that_can_be_taken_for_an_option(void **state)
{
    static const struct row rows[] = {
        { "command = ['curl', '{x}']" PARAMETERS("{ type = 'string' }"), 1 },
        { "command = ['curl', '{x}']" PARAMETERS("{}"), 1 },
        { "command = ['curl', '--', '{x}']" PARAMETERS("{}"), 0 },
        { "command = ['curl', '{x}', '--']" PARAMETERS("{}"), 1 },
        { "command = ['curl', '--', 'a', '{x}']" PARAMETERS("{}"), 0 },
        { "command = ['curl', '--url={x}']" PARAMETERS("{}"), 0 },
        { "command = ['curl', 'https://example.com/{x}']" PARAMETERS("{}"), 0 },
        { "command = ['curl', './{x}']" PARAMETERS("{}"), 0 },
        { "command = ['curl', '{x}.txt']" PARAMETERS("{}"), 1 },
        { "command = ['curl', '{x...}']" PARAMETERS("{ type = 'array' }"), 1 },
        { "command = ['curl', '--', '{x...}']" PARAMETERS("{ type = 'array' }"), 0 },
        { "command = ['curl', '{x}', '{x}']" PARAMETERS("{}"), 2 },
        { "command = ['curl', '{{x}}']", 0 },
    };
    (void)state;
    CHECK(rows, OPTION_INJECTION);
}

static void test_dashes_of_a_wrapper_protect_nothing(void **state)
{
    static const struct row rows[] = {
        { "command = ['env', '--', 'git', 'log', '{x}']" PARAMETERS("{}"), 1 },
        { "command = ['sudo', '-u', 'n', '--', 'git', 'log', '{x}']" PARAMETERS("{}"), 1 },
        { "command = ['env', '--', 'git', 'log', '--', '{x}']" PARAMETERS("{}"), 0 },
        { "command = ['timeout', '5', 'git', 'log', '--', '{x}']" PARAMETERS("{}"), 0 },
        { "command = ['kubectl', 'exec', 'p', '--', 'git', 'log', '{x}']" PARAMETERS("{}"), 1 },
        { "command = ['kubectl', 'exec', 'p', '--', 'git', 'log', '--', '{x}']" PARAMETERS("{}"),
          0 },
        { "command = ['cargo', 'run', '--', '{x}']" PARAMETERS("{}"), 1 },
        /* These do not know "--". */
        { "command = ['find', '--', '{x}']" PARAMETERS("{}"), 1 },
        { "command = ['find', './{x}']" PARAMETERS("{}"), 0 },
    };
    (void)state;
    CHECK(rows, OPTION_INJECTION);
    check_message("[tool.t]\ncommand = ['find', '--', '{x}']\n", TCI_FINDING_OPTION_INJECTION,
                  "{x}", "does not know \"--\"");
}

static void test_arguments_behind_code_are_no_options(void **state)
{
    static const struct row rows[] = {
        { "command = ['bash', '-c', 'echo \"$1\"', 'sh', '{x}']" PARAMETERS("{}"), 0 },
        { "command = ['python3', '-c', 'import sys', '{x}']" PARAMETERS("{}"), 0 },
        /* perl and node go on reading options behind the code. */
        { "command = ['perl', '-e', 'print shift', '{x}']" PARAMETERS("{}"), 1 },
        { "command = ['node', '-e', 'f()', '{x}']" PARAMETERS("{}"), 1 },
        /* Code is a finding of its own. */
        { "command = ['bash', '-c', '{x}']" PARAMETERS("{}"), 0 },
        { "command = ['bash', 'script.sh', '{x}']" PARAMETERS("{}"), 1 },
    };
    (void)state;
    CHECK(rows, OPTION_INJECTION);
}

static void test_parameter_that_cannot_begin_with_a_dash(void **state)
{
    static const char *const good[] = {
        "{ type = 'integer' }",
        "{ type = 'number' }",
        "{ type = 'boolean' }",
        "{ type = ['integer', 'boolean'] }",
        "{ enum = ['a', 'b'] }",
        "{ const = 'a' }",
        "{ type = 'string', pattern = '^[a-z]+$' }",
        "{ pattern = '^[A-Za-z0-9_][A-Za-z0-9_-]*$' }",
        "{ pattern = '^https?://' }",
        "{ pattern = '^/data/' }",
        "{ pattern = '^\\d{4}' }",
        "{ pattern = '^\\w' }",
        "{ pattern = '^[\\w.]' }",
        "{ pattern = '^[^-]' }",
        "{ pattern = '^[^/-]' }",
        "{ pattern = '^[a-z]{1,8}$' }",
    };
    static const char *const bad[] = {
        "{ type = 'string' }",     "{ type = ['integer', 'string'] }",
        "{ enum = ['a', '-b'] }",  "{ enum = [] }",
        "{ const = '-rf' }",       "{ pattern = '[a-z]' }",
        "{ pattern = '^.' }",      "{ pattern = '^[a-z]*' }",
        "{ pattern = '^[a-z]?' }", "{ pattern = '^[a-z]{0,8}' }",
        "{ pattern = '^a?-x' }",   "{ pattern = '^[a-z-]' }",
        "{ pattern = '^[-a-z]' }", "{ pattern = '^[+-9]' }",
        "{ pattern = '^[^/]' }",   "{ pattern = '^[\\W]' }",
        "{ pattern = '^[\\-a]' }", "{ pattern = '^\\S' }",
        "{ pattern = '^-' }",      "{ pattern = '^(a|-b)' }",
        "{ pattern = '^a|-b' }",   "{ pattern = '^(a)?' }",
        "{ pattern = '^[a-z' }",   "{ pattern = '^[' }",
        "{ pattern = '^[^' }",     "{ pattern = '^\\' }",
        "{ pattern = '^' }",       "{ pattern = '' }",
        "{ minLength = 1 }",
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(good) + tci_array_size(bad); i++) {
        bool is_good = i < tci_array_size(good);
        char lines[256];
        struct row row = { lines, !is_good };
        (void)snprintf(lines, sizeof lines,
                       "command = ['tool', '{x}']\nparameters = { properties = { x = %s } }",
                       is_good ? good[i] : bad[i - tci_array_size(good)]);
        check_rows(&row, 1, TCI_FINDING_OPTION_INJECTION);
        (void)snprintf(lines, sizeof lines,
                       "command = ['tool', '{x...}']\n"
                       "parameters = { properties = { x = { type = 'array', items = %s } } }",
                       is_good ? good[i] : bad[i - tci_array_size(good)]);
        check_rows(&row, 1, TCI_FINDING_OPTION_INJECTION);
    }
}

static void test_placeholder_without_a_parameter(void **state)
{
    static const struct row rows[] = {
        { "command = ['tool', '--', '{x}']", 1 },
        { "command = ['tool', '--', '{x}']\nparameters = true", 1 },
        { "command = ['tool', '--', '{x}']" PARAMETERS("{}"), 0 },
        { "command = ['tool', '--', '{x}', '{y}']" PARAMETERS("{}"), 1 },
        { "command = ['tool', '--', '{X}']" PARAMETERS("{}"), 1 },
        { "command = ['tool', '--', '{xx}']" PARAMETERS("{}"), 1 },
        { "command = ['tool', '--', '{x}']\nparameters = { properties = [] }", 1 },
        { "command = ['tool', '--', '{x}']\nparameters = { properties = 'x' }", 1 },
        { "command = ['tool', '{{x}}']", 0 },
        { "command = ['tool']", 0 },
    };
    (void)state;
    CHECK(rows, UNDECLARED_PLACEHOLDER);
}

static void test_value_of_an_option_that_can_be_left_out(void **state)
{
#define XY "\nparameters = { required = ['y'], properties = { x = {}, y = {} } }"
    static const struct row rows[] = {
        { "command = ['tool', '-C', '{x}', '--', '{y}']" XY, 1 },
        { "command = ['tool', '-C', '{x}', '{x}', '{y}']" XY, 1 },
        { "command = ['tool', '--include', './{x}', '{y}']" XY, 1 },
        { "command = ['tool', '-o', '{x...}', '{y}']" XY, 1 },
        { "command = ['tool', '-o', '{y}{x}', '{y}']" XY, 1 },
        { "command = ['tool', '-o', '--x={x}', '{x}', '{y}']" XY, 1 },
        { "command = ['tool', '-{y}', '{x}', '{y}']" XY, 1 },
        { "command = ['tool', '-C', '{y}', '{x}', '--', '{y}']" XY, 0 },
        { "command = ['tool', '-C', '{y}', '--', '{x}']" XY, 0 },
        { "command = ['tool', '{y}', '-C', '{x}']" XY, 0 },
        { "command = ['tool', '-C{x}', '--', '{y}']" XY, 0 },
        { "command = ['tool', '-r', '--include={x}', '--', '{y}']" XY, 0 },
        { "command = ['tool', '--color=auto', '{x}', '{y}']" XY, 0 },
        { "command = ['tool', '--', '{x}', '{y}']" XY, 0 },
        { "command = ['tool', '-', '{x}', '{y}']" XY, 0 },
        /* That it has no parameter is a finding of its own. */
        { "command = ['tool', '-C', '{z}', '--', '{y}']" XY, 0 },
    };
    (void)state;
    CHECK(rows, OPTIONAL_VALUE);
#undef XY
}

static void test_parameter_that_is_never_used(void **state)
{
    static const struct row rows[] = {
        { "command = ['tool', '--', '{x}']" PARAMETERS("{}, y = {}, z = {}"), 2 },
        { "command = ['tool', '--', '{x}', '{x}']" PARAMETERS("{}"), 0 },
        { "command = ['tool', '--x={x}']" PARAMETERS("{}"), 0 },
        /* Without any placeholder all arguments arrive on stdin. */
        { "command = ['tool']" PARAMETERS("{}"), 0 },
        { "command = ['tool', '{{x}}']" PARAMETERS("{}"), 0 },
        { "description = 'no command'" PARAMETERS("{}"), 0 },
    };
    (void)state;
    CHECK(rows, UNUSED_PARAMETER);
}

/* ---- environment ---------------------------------------------------------------------------- */

static void test_variables_that_look_like_secrets(void **state)
{
    static const struct row rows[] = {
        { "env = { GITHUB_TOKEN = 'x' }", 1 },
        { "env = { token = 'x' }", 1 },
        { "env = { OPENAI_API_KEY = 'x' }", 1 },
        { "env = { STRIPE_KEY = 'x' }", 1 },
        { "env = { DB_PASS = 'x', MYSQL_PWD = 'x', PGPASSWORD = 'x' }", 3 },
        { "env = { AWS_SECRET_ACCESS_KEY = 'x' }", 1 },
        { "env = { GOOGLE_APPLICATION_CREDENTIALS = '/x' }", 1 },
        { "env_pass = ['SSH_AUTH_SOCK', 'KUBECONFIG', 'DATABASE_URL', 'KRB5CCNAME']", 4 },
        { "env_pass = ['LANG', 'TZ']", 0 },
        { "env = { MAX_TOKENS = '5', TOKENIZERS_PARALLELISM = 'false' }", 0 },
        { "env = { PASSAGE = 'x', KEYBOARD = 'x', MONKEY = 'x', PWD = '/', COMPASS = 'n' }", 0 },
    };
    (void)state;
    CHECK(rows, SECRET_ENVIRONMENT);
}

static void test_values_that_are_secrets(void **state)
{
    static const struct row rows[] = {
        { "env = { A = 'ghp_0123456789abcdef0123456789abcdef0123' }", 1 },
        { "env = { A = 'AKIAIOSFODNN7EXAMPLE' }", 1 },
        { "env = { A = 'sk-proj-0123456789abcdef0123456789' }", 1 },
        { "env = { A = '-----BEGIN OPENSSH PRIVATE KEY-----' }", 1 },
        { "env = { A = 'postgres://me:hunter2@db.example.com/x' }", 1 },
        { "env = { A = 'https://example.com/a:b@c' }", 0 },
        { "env = { A = 'https://me@example.com/' }", 0 },
        { "env = { A = 'https://example.com:8080/' }", 0 },
        { "env = { A = 'sk-short', B = 'AKIA', C = 'ghp_' }", 0 },
        { "env = { A = 'hello' }", 0 },
    };
    (void)state;
    CHECK(rows, SECRET_ENVIRONMENT);
}

static void test_secret_value_is_not_in_the_message(void **state)
{
    struct tci_findings *findings = lint(
        "[tool.t]\nenv = { A = 'AKIAIOSFODNN7EXAMPLE', B = 'x:/${Y}/hunter2' }\n");
    (void)state;
    assert_int_equal(count_of(findings, TCI_FINDING_SECRET_ENVIRONMENT), 1);
    for (const struct tci_finding *f = findings->first; f; f = f->next) {
        assert_null(strstr(f->message, "AKIA"));
        assert_null(strstr(f->message, "hunter2"));
        assert_null(strstr(f->remedy, "AKIA"));
    }
    tci_findings_free(findings);
}

static void test_variables_that_decide_what_is_loaded(void **state)
{
    static const struct row rows[] = {
        { "env = { LD_PRELOAD = '/x.so' }", 1 },
        { "env = { LD_LIBRARY_PATH = '/x' }", 1 },
        { "env_pass = ['LD_AUDIT', 'BASH_ENV', 'NODE_OPTIONS', 'GIT_SSH_COMMAND']", 4 },
        { "env = { PYTHONSTARTUP = '/x', PERL5OPT = '-Mx', RUBYOPT = '-rx' }", 3 },
        { "env = { LUA_INIT_5_4 = 'x' }", 1 },
        { "env = { PYTHONINSPECT = '1' }", 1 },
        { "env = { ENVIRONMENT = 'test', OLD_ENV = 'x', BUILD_ID = '1' }", 0 },
        { "env = { ld_preload = 'x' }", 0 },
    };
    (void)state;
    CHECK(rows, LOADER_ENVIRONMENT);
}

static void test_search_path_must_be_fixed(void **state)
{
    static const struct row rows[] = {
        { "filesystem = { readable = ['/w'] }\nenv = { PYTHONPATH = '/w/src' }", 0 },
        { "filesystem = { writable = ['/w'] }\nenv = { PYTHONPATH = '/w/src' }", 1 },
        { "filesystem = { writable = ['/w'], readable = ['/w/src'] }\nenv = { NODE_PATH = '/w/src' "
          "}",
          0 },
        { "env = { PATH = '/usr/local/bin:/usr/bin:/bin' }", 0 },
        { "env = { PATH = '/tmp:/usr/bin' }", 1 },
        { "env = { PATH = '/usr/bin:' }", 1 },
        { "env = { PATH = ':/usr/bin' }", 1 },
        { "env = { PATH = '/usr/bin::/bin' }", 1 },
        { "env = { PATH = 'bin:/usr/bin' }", 1 },
        { "env = { PATH = '' }", 1 },
        { "env = { RUBYLIB = '/not/granted' }", 1 },
        { "env_pass = ['PATH', 'PYTHONPATH']", 2 },
        { "env = { PAGER = 'cat', GIT_CONFIG_GLOBAL = '/dev/null', EDITOR = '/usr/bin/vi -n' }",
          0 },
        { "env = { PAGER = '/tmp/x' }", 1 },
        { "env_pass = ['PAGER', 'EDITOR']", 0 },
        { "backend = 'oci'\nenv = { PATH = '/app/bin:/usr/bin' }", 0 },
    };
    (void)state;
    CHECK(rows, LOADER_ENVIRONMENT);
}

/* ---- agents --------------------------------------------------------------------------------- */

static void test_grant_for_a_tool_that_is_not_there(void **state)
{
    static const struct row rows[] = {
        { "version = 1\n[tool.web_fetch]\n[agent.a]\ngrants = ['web_fetch']\n", 0 },
        { "version = 1\n[tool.web_fetch]\n[agent.a]\ngrants = ['webfetch']\n", 1 },
        { "version = 1\n[tool.web_fetch]\n[agent.a]\ngrants = [{ tool = 'Web_Fetch' }]\n", 1 },
        { "version = 1\n[agent.a]\ngrants = ['x', 'y']\n", 2 },
    };
    (void)state;
    CHECK_POLICIES(rows, UNKNOWN_TOOL);
    check_message("[tool.web_fetch]\n[agent.a]\ngrants = ['webfetch']\n", TCI_FINDING_UNKNOWN_TOOL,
                  "\"webfetch\"", "did you mean \"web_fetch\"?");
    check_message("[tool.web_fetch]\n[agent.a]\ngrants = ['completely_else']\n",
                  TCI_FINDING_UNKNOWN_TOOL, "\"completely_else\"", "define the tool");
}

static void test_tool_that_nobody_may_call(void **state)
{
    static const struct row rows[] = {
        { "[tool.a]\n[tool.b]\n[agent.x]\ngrants = ['a']\n", 1 },
        { "[tool.a]\n[tool.b]\n[agent.x]\ngrants = ['a']\n[agent.y]\ngrants = ['b']\n", 0 },
        { "[tool.a]\n[agent.x]\ngrants = []\n", 1 },
        { "[tool.a]\n[agent.x]\n", 1 },
        { "[tool.a]\n", 0 }, /* no agent at all is another finding */
    };
    (void)state;
    CHECK_POLICIES(rows, UNGRANTED_TOOL);
}

static void test_policy_without_agents_is_a_note(void **state)
{
    static const struct row rows[] = {
        { "[tool.a]\n", 1 },
        { "[tool.a]\n[agent.x]\n", 0 },
    };
    (void)state;
    CHECK_POLICIES(rows, NO_AGENTS);
}

static void test_grant_has_expired_from_its_moment_on(void **state)
{
    static const char text[] = "[tool.t]\n[agent.a]\n"
                               "grants = [{ tool = 't', expires = '2027-01-01' }]\n";
    const int64_t moment = 1798761600; /* 2027-01-01T00:00:00Z */
    struct tci_lint_options options = { .now = moment - 1 };
    (void)state;
    check_count(text, &options, TCI_FINDING_EXPIRED_GRANT, 0);
    options.now = moment;
    check_count(text, &options, TCI_FINDING_EXPIRED_GRANT, 1);
    options.now = moment + 1;
    check_count(text, &options, TCI_FINDING_EXPIRED_GRANT, 1);
    options.now = 0;
    check_count(text, &options, TCI_FINDING_EXPIRED_GRANT, 0);
}

static void test_expiry_of_a_grant_for_nothing_is_still_told(void **state)
{
    struct tci_lint_options options = { .now = 4102444800 };
    static const char text[] = "[tool.t]\n[agent.a]\n"
                               "grants = [{ tool = 'gone', expires = 2020-01-01T00:00:00Z }]\n";
    (void)state;
    check_count(text, &options, TCI_FINDING_EXPIRED_GRANT, 1);
    check_count(text, &options, TCI_FINDING_UNKNOWN_TOOL, 1);
}

static void check_grant(const char *tool, const char *grant, size_t expected)
{
    struct tci_lint_options options = { .now = 0 };
    char text[1024];
    (void)snprintf(text, sizeof text,
                   "version = 1\n[tool.t]\n%s\n[agent.a]\ngrants = [{ tool = 't', %s }]\n", tool,
                   grant);
    check_count(text, &options, TCI_FINDING_WIDER_GRANT, expected);
}

static void test_grant_with_a_limit_above_the_tools(void **state)
{
    (void)state;
    check_grant("memory = '1GB'", "memory = '2GB'", 1);
    check_grant("memory = '1GB'", "memory = '1GB'", 0);
    check_grant("memory = '1GB'", "memory = '500MB'", 0);
    check_grant("", "memory = '1GB'", 1); /* above the built-in value */
    check_grant("", "timeout = '10s'", 0);
    check_grant("memory = 'unlimited'", "memory = '1TB'", 0);
    check_grant("", "memory = 'unlimited'", 1);
    check_grant("cpu_time = '1s'", "cpu_time = '2s', pids = 65, files = 1000", 3);
    check_grant("network_limits = { rate = '1MB' }",
                "network_limits = { rate = '2MB', bytes_in = '1GB', connections = 257 }", 2);
    check_grant("network_limits = { rate = '1MB' }", "network_limits = { rate = '1MB' }", 0);
    check_grant("network_limits = { rate = '1MB' }", "network_limits = { rate = 'unlimited' }", 1);
    check_grant("network_limits = { rate = '1MB' }", "network_limits = {}", 0);
    check_grant("inspect = 'strict'", "inspect = 'names'", 1);
    check_grant("inspect = 'names'", "inspect = 'strict'", 0);
}

static void test_grant_with_network_that_the_tool_does_not_have(void **state)
{
    (void)state;
    check_grant("network = ['a.example.com:443']", "network = ['a.example.com:443']", 0);
    check_grant("network = ['*.example.com:443']", "network = ['a.example.com:443']", 0);
    check_grant("network = ['a.example.com:443']", "network = ['*.example.com:443']", 1);
    check_grant("network = ['a.example.com:443']", "network = ['a.example.com:80']", 1);
    check_grant("network = ['a.example.com:443']", "network = 'public'", 1);
    check_grant("network = ['a.example.com:443']", "network = 'none'", 0);
    check_grant("network = ['a.example.com:443']", "network = false", 0);
    check_grant("network = 'none'", "network = ['a.example.com:443']", 1);
    check_grant("network = 'none'", "network = []", 0);
    check_grant("network = 'public'", "network = ['a.example.com:443']", 0);
    check_grant("network = 'public'", "network = ['8.8.8.8:53']", 0);
    check_grant("network = 'public'", "network = ['10.0.0.1:53']", 1);
    check_grant("network = 'public'", "network = 'host'", 1);
    check_grant("network = 'host'\nallow_host_network = true", "network = ['10.0.0.1:53']", 0);
    check_grant("network = ['*.example.com:443', 'deny:a.example.com:443']",
                "network = ['a.example.com:443']", 1);
    check_grant("network = ['a.example.com:443']", "network = ['deny:b.example.com:443']", 0);
}

static void test_grant_with_paths_that_the_tool_does_not_have(void **state)
{
    (void)state;
    check_grant("filesystem = { writable = ['/w'] }", "filesystem = { writable = ['/w'] }", 0);
    check_grant("filesystem = { writable = ['/w'] }", "filesystem = { readable = ['/w/sub'] }", 0);
    check_grant("filesystem = { readable = ['/w'] }", "filesystem = { writable = ['/w'] }", 1);
    check_grant("filesystem = { readable = ['/w'] }", "filesystem = { readable = ['/x'] }", 1);
    check_grant("filesystem = { readable = ['/w'] }", "filesystem = { readable = ['/'] }", 1);
    check_grant("filesystem = { readable = ['/w'], hidden = ['/w/s'] }",
                "filesystem = { readable = ['/w/s'] }", 1);
    check_grant("filesystem = { readable = ['/w'] }", "filesystem = { hidden = ['/x'] }", 0);
    check_grant("filesystem = { readable = ['/w'] }", "filesystem = 'none'", 0);
    check_grant("", "filesystem = { readable = ['/usr'] }", 0); /* the system is there anyway */
    check_grant("", "filesystem = { writable = ['/usr'] }", 1);
}

static void test_paths_of_a_grant_are_not_expanded_either(void **state)
{
    static const struct row rows[] = {
        { "[tool.t]\n[agent.a]\ngrants = [{ tool = 't', filesystem = { hidden = ['~/x'] } }]\n",
          1 },
    };
    (void)state;
    CHECK_POLICIES(rows, NOT_EXPANDED);
}

/* ---- capabilities --------------------------------------------------------------------------- */

static void test_capability_and_list_need_each_other(void **state)
{
    static const struct row rows[] = {
        { "capabilities = ['fs_read']\nallowed_paths = ['/data']", 0 },
        { "capabilities = ['fs_read', 'fs_write']\nallowed_paths = ['/data']", 0 },
        { "capabilities = ['fs_read']", 1 },
        { "capabilities = ['fs_read']\nallowed_paths = []", 1 },
        { "capabilities = ['net_http']", 1 },
        { "capabilities = ['exec_run']", 1 },
        { "capabilities = ['fs_read', 'net_http', 'exec_run']", 3 },
        { "capabilities = []", 0 },
        { "allowed_paths = ['/data']", 1 },
        { "allowed_paths = []", 0 },
        { "capabilities = ['net_http']\nallowed_paths = ['/data']\nallowed_hosts = ['a.org']", 1 },
        { "capabilities = ['exec_run']\nallowed_commands = ['git']", 0 },
        { "network = 'none'", 0 },
    };
    (void)state;
    CHECK(rows, CAPABILITY_WITHOUT_LIST);
}

static void test_list_in_defaults_is_for_those_who_have_the_capability(void **state)
{
    static const struct row rows[] = {
        { "[defaults]\nallowed_hosts = ['a.org']\nallowed_paths = ['/data']\n"
          "[tool.a]\ncapabilities = ['fs_read']\n[tool.b]\ncapabilities = ['net_http']\n",
          0 },
        { "[defaults]\nallowed_hosts = ['a.org']\n[tool.a]\n[tool.b]\n", 1 },
        { "[defaults]\ncapabilities = ['fs_read']\n[tool.a]\n[tool.b]\nallowed_paths = ['/data']\n",
          0 },
        { "[defaults]\ncapabilities = ['fs_read']\n[tool.a]\n[tool.b]\n", 1 },
    };
    (void)state;
    CHECK_POLICIES(rows, CAPABILITY_WITHOUT_LIST);
}

/* ---- containers ----------------------------------------------------------------------------- */

static void test_weak_containers(void **state)
{
    static const struct row rows[] = {
        { "backend = 'oci'\ncontainer = { read_only_rootfs = false }", 1 },
        { "backend = 'oci'\ncontainer = { no_new_privileges = false }", 1 },
        { "backend = 'gvisor'\ncontainer = { cap_drop = ['NET_RAW'] }", 1 },
        { "backend = 'oci'\ncontainer = { cap_drop = [] }", 1 },
        { "backend = 'oci'\ncontainer = { cap_drop = ['all'] }", 0 },
        { "backend = 'oci'\ncontainer = { cap_add = ['NET_BIND_SERVICE'] }", 1 },
        { "backend = 'oci'\ncontainer = { user = 'root' }", 1 },
        { "backend = 'oci'\ncontainer = { user = '0' }", 1 },
        { "backend = 'oci'\ncontainer = { user = '0:0' }", 1 },
        { "backend = 'oci'\ncontainer = { user = 'root:users' }", 1 },
        { "backend = 'oci'\ncontainer = { user = '00:100' }", 1 },
        { "backend = 'oci'\ncontainer = { user = '4294967296' }", 1 },
        { "backend = 'oci'\ncontainer = { user = '0x' }", 0 },
        { "backend = 'oci'\ncontainer = { user = '1000:1000' }", 0 },
        { "backend = 'oci'\ncontainer = { user = 'rooted' }", 0 },
        { "backend = 'oci'\ncontainer = { read_only_rootfs = true, no_new_privileges = true }", 0 },
        { "backend = 'oci'\ncontainer = { user = '0', cap_add = ['ALL'], cap_drop = [], "
          "read_only_rootfs = false, no_new_privileges = false }",
          5 },
    };
    (void)state;
    CHECK(rows, WEAK_CONTAINER);
}

static void test_dangerous_system_calls(void **state)
{
    static const struct row rows[] = {
        { "syscalls = { allow = ['ptrace', 'mount', 'read'] }", 2 },
        { "syscalls = { deny = ['ptrace'] }", 0 },
        { "syscalls = 'strict'", 0 },
    };
    (void)state;
    CHECK(rows, DANGEROUS_SYSCALL);
}

/* ---- the host ------------------------------------------------------------------------------- */

/* A host that cannot keep some clauses, for a reason each. */
struct fake_host {
    const char *why[TCI_CLAUSE_COUNT];
    size_t asked;
    tci_clauses clauses;
};

static bool fake_host_can(void *context, const struct tci_tool *tool, enum tci_clause clause,
                          char ret_why[TCI_LINT_TEXT_MAX], char ret_remedy[TCI_LINT_TEXT_MAX])
{
    struct fake_host *host = context;
    host->asked++;
    host->clauses |= tci_clause_bit(clause);
    assert_non_null(tool);
    if (!host->why[clause])
        return true;
    (void)snprintf(ret_why, TCI_LINT_TEXT_MAX, "%s", host->why[clause]);
    (void)snprintf(ret_remedy, TCI_LINT_TEXT_MAX, "get %s", host->why[clause]);
    return false;
}

static void test_clauses_that_fail_for_one_reason_are_one_finding(void **state)
{
    struct fake_host host = { .why = { [TCI_CLAUSE_MEMORY] = "no cgroup",
                                       [TCI_CLAUSE_PIDS] = "no cgroup",
                                       [TCI_CLAUSE_NETWORK_NAMES] = "no gate",
                                       [TCI_CLAUSE_NETWORK_PUBLIC] = "not asked for" } };
    struct tci_lint_options options = { .host_can = fake_host_can, .host_context = &host };
    struct tci_findings *findings = lint_with("version = 1\n[tool.t]\nmemory = '1GB'\n"
                                              "network = ['a.example.com:443']\n",
                                              &options);
    const struct tci_finding *f = first_of(findings, TCI_FINDING_CANNOT_ENFORCE);
    (void)state;
    assert_int_equal(count_of(findings, TCI_FINDING_CANNOT_ENFORCE), 2);
    /* In the order of the file; a reason is placed at the key of its first clause. */
    assert_int_equal(f->pos.line, 3);
    assert_non_null(strstr(f->message, "memory, pids"));
    assert_non_null(strstr(f->message, "no cgroup"));
    assert_string_equal(f->remedy, "get no cgroup");
    f = f->next;
    assert_int_equal(f->pos.line, 4);
    assert_non_null(strstr(f->message, "network_names"));
    tci_findings_free(findings);
}

static void test_missing_backend_is_one_finding_at_the_tool(void **state)
{
    struct fake_host host = { .asked = 0 };
    struct tci_lint_options options = { .host_can = fake_host_can, .host_context = &host };
    struct tci_findings *findings;
    const struct tci_finding *f;
    (void)state;
    for (size_t i = 0; i < TCI_CLAUSE_COUNT; i++)
        host.why[i] = "runsc is not installed";
    findings = lint_with("version = 1\n[tool.t]\nbackend = 'gvisor'\n", &options);
    f = first_of(findings, TCI_FINDING_CANNOT_ENFORCE);
    assert_int_equal(count_of(findings, TCI_FINDING_CANNOT_ENFORCE), 1);
    assert_non_null(strstr(f->message, "\"gvisor\""));
    assert_string_equal(f->tool, "t");
    assert_int_equal(f->pos.line, 2);
    tci_findings_free(findings);
}

static void test_host_is_asked_only_for_what_the_tool_asks(void **state)
{
    struct fake_host host = { .asked = 0 };
    struct tci_lint_options options = { .host_can = fake_host_can, .host_context = &host };
    (void)state;
    check_count("[tool.t]\nmemory = 'unlimited'\nfilesystem = { scratch = '0B' }\n", &options,
                TCI_FINDING_CANNOT_ENFORCE, 0);
    assert_false(host.clauses & tci_clause_bit(TCI_CLAUSE_MEMORY));
    assert_false(host.clauses & tci_clause_bit(TCI_CLAUSE_SCRATCH));
    assert_false(host.clauses & tci_clause_bit(TCI_CLAUSE_EXEC_ALLOWLIST));
    assert_false(host.clauses & tci_clause_bit(TCI_CLAUSE_NETWORK_HOST));
    assert_true(host.clauses & tci_clause_bit(TCI_CLAUSE_NETWORK_NONE));
    assert_true(host.clauses & tci_clause_bit(TCI_CLAUSE_FILESYSTEM));
}

static void test_host_is_not_asked_without_tools_or_without_a_function(void **state)
{
    struct fake_host host = { .asked = 0 };
    struct tci_lint_options options = { .host_can = fake_host_can, .host_context = &host };
    (void)state;
    check_count("[agent.a]\ngrants = []\n", &options, TCI_FINDING_CANNOT_ENFORCE, 0);
    assert_int_equal(host.asked, 0);
    options.host_can = NULL;
    check_count("[tool.t]\n", &options, TCI_FINDING_CANNOT_ENFORCE, 0);
}

static void test_every_tool_is_judged_by_the_host(void **state)
{
    struct fake_host host = { .why = { [TCI_CLAUSE_MEMORY] = "no cgroup" } };
    struct tci_lint_options options = { .host_can = fake_host_can, .host_context = &host };
    (void)state;
    check_count("[defaults]\nmemory = '1GB'\n[tool.a]\n[tool.b]\n[tool.c]\nmemory = 'unlimited'\n",
                &options, TCI_FINDING_CANNOT_ENFORCE, 2);
}

/* ---- odd input ------------------------------------------------------------------------------ */

static void test_long_paths_are_cut_in_messages_and_nothing_else_happens(void **state)
{
    static char text[16384];
    char component[252];
    size_t used;
    struct tci_lint_options options = { .look_at_files = true, .home = "/home/u" };
    struct tci_findings *findings;
    (void)state;
    memset(component, 'a', sizeof component - 1);
    component[sizeof component - 1] = '\0';
    used = (size_t)snprintf(text, sizeof text, "[tool.t]\nfilesystem = { readable = ['");
    for (int i = 0; i < 16; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "/%s", component);
    (void)snprintf(text + used, sizeof text - used, "/.ssh'], hidden = ['/x'] }\n");
    findings = lint_with(text, &options);
    assert_int_equal(count_of(findings, TCI_FINDING_SECRET_READABLE), 1);
    tci_findings_free(findings);
}

static void test_many_tools_with_many_grants_take_no_time(void **state)
{
    enum { tools = 1000 };
    static char text[tools * 64];
    size_t used = (size_t)snprintf(
        text, sizeof text, "version = 1\n[defaults]\nfilesystem = { readable = ['/etc'] }\n");
    struct tci_lint_options options = { .look_at_files = true };
    struct tci_findings *findings;
    (void)state;
    for (int i = 0; i < tools; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "[tool.t%d]\n", i);
    used += (size_t)snprintf(text + used, sizeof text - used, "[agent.a]\ngrants = [");
    for (int i = 0; i < tools; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "'t%d',", i);
    (void)snprintf(text + used, sizeof text - used, "]\n");
    findings = lint_with(text, &options);
    assert_int_equal(count_of(findings, TCI_FINDING_SECRET_READABLE), 1);
    assert_ptr_equal(findings->first, findings->last);
    tci_findings_free(findings);
}

/* ---- contracts ------------------------------------------------------------------------------ */

static void test_schemas_that_cannot_be_compiled_are_found(void **state)
{
    static const struct row rows[] = {
        { "parameters = { type = 'object' }\nreturns = { type = 'number' }", 0 },
        { "parameters = { '$ref' = '#/$defs/a', '$defs' = { a = { type = 'object' } } }", 0 },
        { "parameters = { '$schema' = 'http://json-schema.org/draft-07/schema#' }", 0 },
        { "parameters = { type = 'text' }", 1 },
        { "returns = { type = 1 }", 1 },
        { "parameters = { minLength = -1 }\nreturns = { pattern = '(' }", 2 },
        { "parameters = { '$ref' = '#/$defs/missing' }", 1 },
        { "parameters = { '$ref' = 'https://example.com/schema.json' }", 1 },
        { "parameters = { '$schema' = 'http://json-schema.org/draft-04/schema#' }", 1 },
        { "parameters = true", 0 },
        { "builtin = 'read_file'", 0 },
    };
    (void)state;
    CHECK(rows, SCHEMA_INVALID);
    check_message("[tool.t]\nparameters = { properties = { x = { type = 'text' } } }\n",
                  TCI_FINDING_SCHEMA_INVALID, "#/properties/x/type", "JSON Schema");
}

static void test_large_schema_is_found(void **state)
{
    enum { size = 250000 };
    char *text = malloc(size + 200);
    size_t used;
    (void)state;
    assert_non_null(text);
    used = (size_t)snprintf(text, size, "[tool.t]\nparameters = '{\"allOf\":[{}");
    while (used < size)
        used += (size_t)snprintf(text + used, 8, ",{}");
    (void)snprintf(text + used, 100, "]}'\n");
    check_message(text, TCI_FINDING_SCHEMA_INVALID, "\"parameters\"", "smaller");
    free(text);
}

static void test_arguments_that_are_no_object_are_found(void **state)
{
    static const struct row rows[] = {
        { "parameters = {}", 0 },
        { "parameters = { type = 'object' }", 0 },
        { "parameters = { properties = {} }", 0 },
        { "parameters = { type = 'string' }", 1 },
        { "parameters = { type = ['object', 'null'] }", 1 },
        { "parameters = true", 1 },
        { "returns = { type = 'string' }", 0 },
    };
    (void)state;
    CHECK(rows, NOT_AN_OBJECT);
}

static void test_pointers_that_lead_nowhere_are_found(void **state)
{
    static const struct row rows[] = {
        { "redact = ['/a']\nparameters = { properties = { a = {} } }", 0 },
        { "redact = ['/a/b/0']\nparameters = { properties = { a = {} } }", 0 },
        { "redact = ['/a~1b', '/c~0d']\nparameters = { properties = { 'a/b' = {}, 'c~d' = {} } }",
          0 },
        { "redact = ['/b', '/a/b', '/c']\nparameters = { properties = { a = {} } }", 2 },
        { "redact = ['/b']\nparameters = { properties = {}, patternProperties = { b = {} } }", 0 },
        { "redact = ['/b']", 0 },
        { "redact = ['/nothing']\nbuiltin = 'bash'", 1 },
        { "redact = ['/command']\nbuiltin = 'bash'", 0 },
    };
    static const struct row policies[] = {
        { "[defaults]\nredact = ['/b']\n[tool.t]\nparameters = { properties = { a = {} } }\n", 0 },
    };
    (void)state;
    CHECK(rows, REDACT_UNKNOWN);
    CHECK_POLICIES(policies, REDACT_UNKNOWN);
}

/* ---- built-in tools ------------------------------------------------------------------------- */

static void test_built_in_tools_without_anything_to_reach_are_found(void **state)
{
    static const struct row rows[] = {
        { "builtin = 'read_file'", 1 },
        { "builtin = 'list_dir'\nfilesystem = { hidden = ['/x'] }", 1 },
        { "builtin = 'read_file'\nfilesystem = { readable = ['/srv/x'] }", 0 },
        { "builtin = 'search_files'\nfilesystem = { writable = ['/srv/x'] }", 0 },
        { "builtin = 'write_file'\nfilesystem = { readable = ['/srv/x'] }", 1 },
        { "builtin = 'edit_file'\nfilesystem = { writable = ['/srv/x'] }", 0 },
        { "builtin = 'read_file'\nrootfs = '/srv/root'", 0 },
        { "builtin = 'http_fetch'", 1 },
        { "builtin = 'http_fetch'\nnetwork = []", 1 },
        { "builtin = 'http_fetch'\nnetwork = 'public'", 0 },
        { "builtin = 'bash'", 0 },
    };
    (void)state;
    CHECK(rows, USELESS_BUILTIN);
}

/* The choice was deliberate: no error about a shell, one note on what it has. */
static void test_built_in_shell_is_a_note_and_not_a_shell_template(void **state)
{
    static const struct row notes[] = { { "builtin = 'bash'", 1 },
                                        { "builtin = 'python'", 1 },
                                        { "builtin = 'python'\napproval = 'ask'", 1 },
                                        { "builtin = 'list_dir'", 0 } };
    static const struct row templates[] = { { "builtin = 'bash'", 0 },
                                            { "builtin = 'python'", 0 } };
    (void)state;
    CHECK(notes, CODE_BUILTIN);
    CHECK(templates, SHELL_TEMPLATE);
    CHECK(templates, OPTION_INJECTION);
    check_message("[tool.t]\nbuiltin = 'bash'\nnetwork = 'public'\n"
                  "filesystem = { readable = ['/a'], writable = ['/b'] }\n",
                  TCI_FINDING_CODE_BUILTIN, "network public, paths to read 2, to write 1",
                  "approval");
}

/* ---- child agents and approval -------------------------------------------------------------- */

static void test_grants_of_children_without_their_parents_are_found(void **state)
{
    static const struct row policies[] = {
        { "[tool.t]\n[agent.a]\ngrants = ['t']\n[agent.b]\nparent = 'a'\ngrants = ['t']\n", 0 },
        { "[tool.t]\n[agent.a]\n[agent.b]\nparent = 'a'\ngrants = ['t']\n", 1 },
        { "[tool.t]\n[agent.a]\n[agent.b]\nparent = 'a'\ngrants = [{ tool = 't' }]\n", 1 },
        { "[tool.t]\n[agent.a]\n[agent.b]\nparent = 'a'\ngrants = ['missing']\n", 0 },
    };
    (void)state;
    CHECK_POLICIES(policies, CHILD_WITHOUT_PARENT);
}

static void test_grants_that_would_silence_the_question_are_found(void **state)
{
    static const struct row policies[] = {
        { "[tool.t]\n[agent.a]\ngrants = [{ tool = 't', approval = 'ask' }]\n", 0 },
        { "[tool.t]\n[agent.a]\ngrants = [{ tool = 't', approval = 'never' }]\n", 0 },
        { "[tool.t]\napproval = 'ask'\n[agent.a]\ngrants = [{ tool = 't', approval = 'never' }]\n",
          1 },
        { "[tool.t]\n[agent.a]\ngrants = [{ tool = 't', approval_timeout = '5s' }]\n", 0 },
        { "[tool.t]\n[agent.a]\ngrants = [{ tool = 't', approval_timeout = '5h' }]\n", 1 },
    };
    (void)state;
    CHECK_POLICIES(policies, WIDER_GRANT);
}

int main(void)
{
#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, make_directory, remove_directory)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schemas_that_cannot_be_compiled_are_found),
        cmocka_unit_test(test_large_schema_is_found),
        cmocka_unit_test(test_arguments_that_are_no_object_are_found),
        cmocka_unit_test(test_pointers_that_lead_nowhere_are_found),
        cmocka_unit_test(test_built_in_tools_without_anything_to_reach_are_found),
        cmocka_unit_test(test_built_in_shell_is_a_note_and_not_a_shell_template),
        cmocka_unit_test(test_grants_of_children_without_their_parents_are_found),
        cmocka_unit_test(test_grants_that_would_silence_the_question_are_found),
        cmocka_unit_test(test_good_policy_has_no_finding),
        cmocka_unit_test(test_findings_come_in_the_order_of_the_file),
        cmocka_unit_test(test_finding_names_its_tool_and_place),
        cmocka_unit_test(test_every_finding_has_a_remedy_and_one_line),
        cmocka_unit_test(test_built_in_values_are_never_reported),
        cmocka_unit_test(test_lint_as_library_call_gives_json),
        cmocka_unit_test(test_more_errors_than_anybody_reads_are_cut),
        cmocka_unit_test(test_missing_version_is_a_note),
        cmocka_unit_test(test_hidden_text_is_found_where_it_is),
        cmocka_unit_test(test_secret_is_found_by_its_name),
        cmocka_unit_test(test_what_only_looks_like_a_secret_is_left_alone),
        cmocka_unit_test(test_directory_above_a_secret_includes_it),
        cmocka_unit_test(test_one_finding_names_the_first_secrets_and_counts_the_rest),
        cmocka_unit_test(test_secret_that_is_hidden_is_no_finding),
        cmocka_unit_test(test_hidden_path_is_a_path_of_the_cage),
        cmocka_unit_test(test_mapping_does_not_hide_where_a_path_comes_from),
        cmocka_unit_test(test_container_socket_is_a_secret_wherever_it_is),
        cmocka_unit_test(test_relative_path_is_taken_from_the_policy),
        cmocka_unit_test(test_container_mounts_are_paths_like_others),
        cmocka_unit_test(test_root_directory_of_the_cage_is_a_grant),
        cmocka_unit_test(test_capability_paths_are_paths_like_others),
        IN_DIRECTORY(test_secret_that_exists_in_a_project_is_found),
        IN_DIRECTORY(test_several_secrets_in_one_directory_are_one_finding),
        IN_DIRECTORY(test_secret_two_levels_down_is_found_from_each_level),
        IN_DIRECTORY(test_directory_without_its_usual_secret_is_left_alone_on_the_host),
        IN_DIRECTORY(test_link_that_leads_nowhere_is_still_a_secret),
        IN_DIRECTORY(test_link_is_followed_on_the_host),
        IN_DIRECTORY(test_path_that_is_not_there_is_no_finding),
        cmocka_unit_test(test_writable_root_and_homes),
        cmocka_unit_test(test_readable_root_and_homes),
        cmocka_unit_test(test_callers_home_is_a_home_wherever_it_is),
        cmocka_unit_test(test_writable_system_directories),
        cmocka_unit_test(test_path_in_both_lists),
        cmocka_unit_test(test_path_that_is_writable_at_another_place_of_the_cage),
        cmocka_unit_test(test_tool_that_can_rewrite_its_policy),
        IN_DIRECTORY(test_tool_that_can_rewrite_a_schema_of_the_policy),
        cmocka_unit_test(test_program_that_the_tool_can_rewrite),
        cmocka_unit_test(test_hidden_path_that_shows_at_another_place),
        cmocka_unit_test(test_many_nested_paths_are_compared_within_bounds),
        cmocka_unit_test(test_tilde_and_variables_are_said_not_to_be_expanded),
        cmocka_unit_test(test_command_and_environment_are_not_expanded_either),
        cmocka_unit_test(test_inherited_value_is_reported_once),
        cmocka_unit_test(test_own_value_is_reported_for_each_tool),
        cmocka_unit_test(test_default_that_every_tool_replaces_is_not_reported),
        cmocka_unit_test(test_own_container_does_not_repeat_inherited_paths),
        cmocka_unit_test(test_inherited_container_is_reported_though_the_first_tool_has_none),
        cmocka_unit_test(test_inherited_paths_are_judged_by_each_tools_capability),
        cmocka_unit_test(test_what_one_tool_mounts_over_a_secret_does_not_hide_it_for_the_next),
        cmocka_unit_test(test_inherited_root_is_judged_by_each_tools_right_to_it),
        cmocka_unit_test(test_inherited_hosts_are_reported_though_the_first_tool_cannot_use_them),
        cmocka_unit_test(test_host_network_is_an_error_until_it_is_confirmed),
        cmocka_unit_test(test_one_tools_confirmation_is_not_anothers),
        cmocka_unit_test(test_rules_for_every_port),
        cmocka_unit_test(test_wildcards_below_which_anybody_gets_a_name),
        cmocka_unit_test(test_wide_ranges_of_addresses),
        cmocka_unit_test(test_private_addresses_and_local_names),
        cmocka_unit_test(test_metadata_services),
        cmocka_unit_test(test_metadata_service_is_not_reported_as_private_too),
        cmocka_unit_test(test_addresses_of_the_gate),
        cmocka_unit_test(test_limits_of_a_network_that_is_not_there),
        cmocka_unit_test(test_limits_of_the_network_that_a_tool_drops),
        cmocka_unit_test(test_rules_that_have_no_effect),
        cmocka_unit_test(test_denials_of_what_is_not_allowed_have_no_effect),
        cmocka_unit_test(test_deny_is_named_rather_than_a_wider_allow),
        cmocka_unit_test(test_unlimited_is_an_error),
        cmocka_unit_test(test_absurd_limits),
        cmocka_unit_test(test_shell_code_in_all_spellings),
        cmocka_unit_test(test_interpreter_code_in_all_spellings),
        cmocka_unit_test(test_text_that_is_data_for_an_interpreter_is_left_alone),
        cmocka_unit_test(test_shell_code_that_runs_its_arguments),
        cmocka_unit_test(test_shell_code_that_keeps_its_arguments_as_data),
        cmocka_unit_test(test_shell_code_runs_only_what_comes_from_the_call),
        cmocka_unit_test(test_interpreter_that_reads_its_program_from_stdin),
        cmocka_unit_test(test_json_on_stdin_that_is_data_is_left_alone),
        cmocka_unit_test(test_shell_code_that_runs_its_stdin),
        cmocka_unit_test(test_shell_code_that_keeps_its_stdin_as_data),
        cmocka_unit_test(test_finding_names_the_interpreter_that_runs_its_stdin),
        cmocka_unit_test(test_finding_names_the_interpreter_and_points_at_the_code),
        cmocka_unit_test(test_text_that_can_be_taken_for_an_option),
        cmocka_unit_test(test_dashes_of_a_wrapper_protect_nothing),
        cmocka_unit_test(test_arguments_behind_code_are_no_options),
        cmocka_unit_test(test_parameter_that_cannot_begin_with_a_dash),
        cmocka_unit_test(test_placeholder_without_a_parameter),
        cmocka_unit_test(test_value_of_an_option_that_can_be_left_out),
        cmocka_unit_test(test_parameter_that_is_never_used),
        cmocka_unit_test(test_variables_that_look_like_secrets),
        cmocka_unit_test(test_values_that_are_secrets),
        cmocka_unit_test(test_secret_value_is_not_in_the_message),
        cmocka_unit_test(test_variables_that_decide_what_is_loaded),
        cmocka_unit_test(test_search_path_must_be_fixed),
        cmocka_unit_test(test_grant_for_a_tool_that_is_not_there),
        cmocka_unit_test(test_tool_that_nobody_may_call),
        cmocka_unit_test(test_policy_without_agents_is_a_note),
        cmocka_unit_test(test_grant_has_expired_from_its_moment_on),
        cmocka_unit_test(test_expiry_of_a_grant_for_nothing_is_still_told),
        cmocka_unit_test(test_grant_with_a_limit_above_the_tools),
        cmocka_unit_test(test_grant_with_network_that_the_tool_does_not_have),
        cmocka_unit_test(test_grant_with_paths_that_the_tool_does_not_have),
        cmocka_unit_test(test_paths_of_a_grant_are_not_expanded_either),
        cmocka_unit_test(test_capability_and_list_need_each_other),
        cmocka_unit_test(test_list_in_defaults_is_for_those_who_have_the_capability),
        cmocka_unit_test(test_weak_containers),
        cmocka_unit_test(test_dangerous_system_calls),
        cmocka_unit_test(test_clauses_that_fail_for_one_reason_are_one_finding),
        cmocka_unit_test(test_missing_backend_is_one_finding_at_the_tool),
        cmocka_unit_test(test_host_is_asked_only_for_what_the_tool_asks),
        cmocka_unit_test(test_host_is_not_asked_without_tools_or_without_a_function),
        cmocka_unit_test(test_every_tool_is_judged_by_the_host),
        cmocka_unit_test(test_long_paths_are_cut_in_messages_and_nothing_else_happens),
        cmocka_unit_test(test_many_tools_with_many_grants_take_no_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
