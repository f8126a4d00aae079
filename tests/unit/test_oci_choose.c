/* SPDX-License-Identifier: Apache-2.0 */
/* Pins which engine and runtime are taken, in which order, and that nothing replaces what was named.
 * Programs and sockets are made up; the host's own are hidden in a mount namespace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/oci/choose.h"
#include "backend/runsc.h"
#include "support.h"

#define RUNSC_GOOD "echo 'runsc version release-20240729.0'; echo 'spec: 1.1.0'"
#define FLAGS                                                                                      \
    "[ \"$1\" = flags ] && printf '  -platform string\\n  \\tsystrap (default), kvm\\n  -x\\n' "   \
    "&& exit; "

enum { ROOT = 1, USER = 2, BOTH = 3 };

static const struct choice {
    const char *what;
    int who;
    const char *programs; /* with words that they say, for runsc */
    const char *runsc;    /* a script; NULL: there is none */
    const char *sockets;  /* "docker", "podman" */
    const char *settings;
    const char *engine, *problem, *remedy; /* the name in ready.def, or words of the error */
} choices[] = {
    { "user: podman first", USER, "podman newuidmap crun runc", NULL, "docker", "backend = 'oci'",
      "oci/podman", NULL, NULL },
    { "podman without its helper is not there", USER, "podman crun", NULL, "", "backend = 'oci'",
      "oci/crun", NULL, NULL },
    { "user: a podman that runs", USER, "crun", NULL, "podman", "backend = 'oci'", "oci/podman",
      NULL, NULL },
    { "user: docker second", USER, "crun runc", NULL, "docker", "backend = 'oci'", "oci/docker",
      NULL, NULL },
    { "user: crun third", USER, "crun runc", NULL, "", "backend = 'oci'", "oci/crun", NULL, NULL },
    { "user: runc last", USER, "runc", NULL, "", "backend = 'oci'", "oci/runc", NULL, NULL },
    { "root: crun first", ROOT, "podman newuidmap crun runc", NULL, "docker", "backend = 'oci'",
      "oci/crun", NULL, NULL },
    { "root: runc second", ROOT, "podman runc", NULL, "docker", "backend = 'oci'", "oci/runc", NULL,
      NULL },
    { "root: docker third", ROOT, "podman", NULL, "docker", "backend = 'oci'", "oci/docker", NULL,
      NULL },
    { "root: podman last", ROOT, "podman", NULL, "", "backend = 'oci'", "oci/podman", NULL, NULL },
    { "nothing", BOTH, "", NULL, "", "backend = 'oci'", NULL, "no container engine or runtime",
      "apt install" },
    { "rootfs: no engine", BOTH, "podman newuidmap crun", NULL, "docker",
      "backend = 'oci'\nrootfs = '/x'", "oci/crun", NULL, NULL },
    { "rootfs: an engine does not know it", BOTH, "podman newuidmap crun", NULL, "docker",
      "backend = 'oci'\nrootfs = '/x'\ncontainer = { engine = 'docker' }", NULL, "rootfs", "none" },
    { "named engine", BOTH, "podman newuidmap crun", NULL, "docker",
      "backend = 'oci'\ncontainer = { engine = 'docker' }", "oci/docker", NULL, NULL },
    { "named engine is missing", BOTH, "podman newuidmap crun runc", NULL, "",
      "backend = 'oci'\ncontainer = { engine = 'docker' }", NULL,
      "none answers at unix:///mnt/docker.sock", "DOCKER_HOST" },
    { "podman is missing", BOTH, "crun runc", NULL, "docker",
      "backend = 'oci'\ncontainer = { engine = 'podman' }", NULL, "not installed", "podman" },
    { "no engine", BOTH, "podman newuidmap runc", NULL, "docker",
      "backend = 'oci'\ncontainer = { engine = 'none' }", "oci/runc", NULL, NULL },
    { "no engine and no runtime", BOTH, "podman newuidmap", NULL, "docker",
      "backend = 'oci'\ncontainer = { engine = 'none' }", NULL, "neither crun nor runc", "crun" },
    { "named runtime", BOTH, "podman newuidmap crun runc", NULL, "docker",
      "backend = 'oci'\ncontainer = { runtime = 'runc' }", "oci/runc", NULL, NULL },
    { "named runtime is missing", BOTH, "podman newuidmap runc", NULL, "docker",
      "backend = 'oci'\ncontainer = { runtime = 'crun' }", NULL, "crun is not installed", "crun" },
    { "gvisor", BOTH, "podman newuidmap crun runc", RUNSC_GOOD, "docker", "backend = 'gvisor'",
      "gvisor", NULL, NULL },
    { "runsc by name", BOTH, "crun", RUNSC_GOOD, "",
      "backend = 'oci'\ncontainer = { runtime = 'runsc' }", "gvisor", NULL, NULL },
    { "gvisor is missing", BOTH, "podman newuidmap crun runc", NULL, "docker", "backend = 'gvisor'",
      NULL, "runsc is not installed", "runsc" },
    { "gvisor is runsc", BOTH, "crun", RUNSC_GOOD, "",
      "backend = 'gvisor'\ncontainer = { runtime = 'crun' }", NULL, "must be \"runsc\"", "oci" },
    { "runsc through an engine", BOTH, "podman newuidmap", RUNSC_GOOD, "docker",
      "backend = 'gvisor'\ncontainer = { engine = 'docker' }", NULL, "not through podman or docker",
      "engine" },
    { "runsc is too old", BOTH, "", "echo runsc version release-20220101.0", "",
      "backend = 'gvisor'", NULL, "is of 20220101: gvisor needs runsc 20221219", "newer runsc" },
    { "runsc without a release", BOTH, "", "echo runsc version VERSION_MISSING", "",
      "backend = 'gvisor'", NULL, "VERSION_MISSING", "newer runsc" },
    { "runsc says nothing", BOTH, "", "exit 0", "", "backend = 'gvisor'", NULL,
      "does not say its version", "newer runsc" },
};

/* ---- a world of its own -------------------------------------------------------------------- */

static void must(bool good, const char *what)
{
    if (!good) {
        perror(what);
        _exit(99);
    }
}

static void make_program(const char *directory, const char *name, const char *script)
{
    char path[300];
    FILE *file;
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    file = fopen(path, "w");
    must(file != NULL, path);
    (void)fprintf(file, "#!/bin/sh\n%s\n", script);
    (void)fclose(file);
    must(chmod(path, 0755) == 0, path);
}

/* Answers every connection with what engines say to a ping. */
static void serve(const char *path)
{
    static const char answer[] = "HTTP/1.0 200 OK\r\nApi-Version: 1.41\r\n\r\nOK";
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%.100s", path);
    must(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
             listen(fd, 8) == 0 && chmod(path, 0777) == 0,
         path);
    if (fork() != 0) {
        (void)close(fd);
        return;
    }
    for (;;) {
        char request[256];
        int one = accept(fd, NULL, NULL);
        if (one < 0 || read(one, request, sizeof request) <= 0)
            continue;
        (void)!write(one, answer, sizeof answer - 1);
        (void)close(one);
    }
}

/* Where the host has its own. /usr/bin itself stays, with the shell of the made-up programs in it. */
static void hide_host(void)
{
    static const char *const places[] = { "/usr/sbin", "/usr/local/bin", "/usr/local/sbin" };
    must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "private");
    must(mount("tmpfs", "/mnt", "tmpfs", 0, "mode=0755") == 0, "/mnt");
    must(mkdir("/mnt/bin", 0755) == 0, "/mnt/bin");
    for (size_t i = 0; i < tci_array_size(places); i++)
        must(mount("tmpfs", places[i], "tmpfs", 0, "mode=0755") == 0, places[i]);
    for (size_t i = 0; i < 4; i++) {
        static const char *const names[] = { "crun", "runc", "runsc", "podman" };
        char path[64];
        (void)snprintf(path, sizeof path, "/usr/bin/%s", names[i]);
        /* A file that cannot be executed hides a program. */
        if (access(path, F_OK) == 0)
            must(mount("/dev/null", path, NULL, MS_BIND, NULL) == 0, path);
    }
    if (access("/usr/bin/newuidmap", F_OK) == 0)
        must(mount("/dev/null", "/usr/bin/newuidmap", NULL, MS_BIND, NULL) == 0, "newuidmap");
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    must(file && fputs(text, file) >= 0 && fclose(file) == 0, path);
}

/* Mounts and processes of its own; an ordinary user stays who he is. */
static void leave_host(void)
{
    const unsigned uid = geteuid(), gid = getegid();
    char map[64];
    if (uid == 0) {
        must(unshare(CLONE_NEWNS | CLONE_NEWPID) == 0, "unshare");
        return;
    }
    must(unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID) == 0, "unshare");
    write_text("/proc/self/setgroups", "deny");
    (void)snprintf(map, sizeof map, "%u %u 1", uid, uid);
    write_text("/proc/self/uid_map", map);
    (void)snprintf(map, sizeof map, "%u %u 1", gid, gid);
    write_text("/proc/self/gid_map", map);
}

static void enter_world(const struct choice *c, int who)
{
    static char directory[] = "/mnt/bin";
    char *words = strdup(c->programs), *rest = NULL;
    leave_host();
    /* The servers die with this one, the first process of its namespace. */
    pid_t pid = fork();
    must(pid >= 0, "fork");
    if (pid) {
        int status = 0;
        (void)waitpid(pid, &status, 0);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 98);
    }
    hide_host();
    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        make_program(directory, word, "exit 0");
    if (c->runsc) {
        char script[500];
        (void)snprintf(script, sizeof script, FLAGS "%s", c->runsc);
        make_program(directory, "runsc", script);
    }
    free(words);
    (void)setenv("PATH", "relative:/mnt/bin", 1);
    (void)unsetenv("XDG_RUNTIME_DIR");
    (void)unsetenv("TOOLCAGE_RUNSC_PLATFORM");
    (void)setenv("DOCKER_HOST", "unix:///mnt/docker.sock", 1);
    (void)unsetenv("CONTAINER_HOST");
    if (strstr(c->sockets, "docker"))
        serve("/mnt/docker.sock");
    if (strstr(c->sockets, "podman")) {
        (void)setenv("CONTAINER_HOST", "unix:///mnt/podman.sock", 1);
        serve("/mnt/podman.sock");
    }
    if (who == USER && geteuid() == 0)
        must(setgid(65534) == 0 && setuid(65534) == 0, "setuid");
}

static void check(const struct choice *c, int who)
{
    static struct tci_oci_choice choice;
    struct tc_error error = { 0 };
    char text[400];
    struct tc_policy *policy;
    int status;
    (void)snprintf(text, sizeof text, "version = 1\n[tool.t]\n%s\n", c->settings);
    policy = load_text(text);
    status = tci_oci_choose(&policy->tools[0].settings, &choice, &error);
    if (c->engine) {
        if (status != 0)
            fail_msg("%s: %s", c->what, error.message);
        assert_string_equal(tci_oci_ready_name(&choice), c->engine);
        assert_string_not_equal(choice.why, "");
        assert_int_equal(choice.is_root, who == ROOT);
        if (choice.runtime == TCI_OCI_RUNSC)
            assert_string_equal(choice.platform, "systrap");
    } else {
        assert_int_equal(status, -1);
        assert_int_equal(error.code, TC_ERROR_UNSUPPORTED);
        if (!strstr(error.message, c->problem) || !strstr(error.remedy, c->remedy))
            fail_msg("%s: %s (%s)", c->what, error.message, error.remedy);
    }
    tc_policy_free(policy);
}

/* In a child: what happens to mounts and users there is its own. 0: as expected. */
static int try_choice(const struct choice *c, int who)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        enter_world(c, who);
        check(c, who);
        _exit(0);
    }
    (void)waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 97;
}

static bool has_namespaces(void)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(unshare(geteuid() ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS) == 0 ? 0 : 1);
    (void)waitpid(pid, &status, 0);
    return status == 0;
}

static void test_every_choice_is_the_stated_one(void **state)
{
    (void)state;
    if (!has_namespaces())
        skip();
    for (size_t i = 0; i < tci_array_size(choices); i++) {
        const struct choice *c = &choices[i];
        for (int who = ROOT; who <= USER; who++) {
            if (!(c->who & who) || (who == ROOT && geteuid() != 0))
                continue;
            int status = try_choice(c, who);
            if (status)
                fail_msg("%s, as %s: %d", c->what, who == ROOT ? "root" : "user", status);
        }
    }
}

static void test_release_dates_are_read_from_any_version(void **state)
{
    (void)state;
    assert_int_equal(tci_runsc_date("runsc version 0.0~20221219.0"), 20221219);
    assert_int_equal(tci_runsc_date("release-20240729.0"), 20240729);
    assert_int_equal(tci_runsc_date("release-20240729.0-12-gabc"), 20240729);
    assert_int_equal(tci_runsc_date("VERSION_MISSING"), 0);
    assert_int_equal(tci_runsc_date("1.2.3"), 0);
    assert_int_equal(tci_runsc_date("120221219"), 0);
    assert_int_equal(tci_runsc_date("202212190"), 0);
    assert_int_equal(tci_runsc_date(""), 0);
}

static void test_a_program_that_never_answers_is_killed_in_time(void **state)
{
    char name[] = "sh", option[] = "-c", script[] = "echo begun; sleep 600 & sleep 600";
    char *const argv[] = { name, option, script, NULL };
    char output[64];
    struct tci_oci_answer answer = tci_oci_ask("/bin/sh", argv, 300, output, sizeof output);
    (void)state;
    assert_int_equal(answer.problem, ETIMEDOUT);
    assert_string_equal(output, "begun\n");
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_release_dates_are_read_from_any_version),
        cmocka_unit_test(test_a_program_that_never_answers_is_killed_in_time),
        cmocka_unit_test(test_every_choice_is_the_stated_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
