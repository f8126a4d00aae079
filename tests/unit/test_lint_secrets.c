/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of the findings about secrets in paths that a tool can read: by name, and by what is
 * on this host.
 */
#include "lint_support.h"

#include <stdio.h>
#include <unistd.h>
#include "base/attr.h"
#include "policy/lint.h"

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

static void make_file(const struct directory *directory, const char *name)
{
    char path[256];
    FILE *file;
    (void)snprintf(path, sizeof path, "%s/%s", directory->path, name);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
