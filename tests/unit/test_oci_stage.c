/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: tests of the stage's words and of furnishing a network namespace that somebody else has made. What
 * the stage builds is tested with real runtimes (tests/e2e/test_oci_stage.py). */
#include "oci_support.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "backend/oci/stage.h"

/* ---- words ----------------------------------------------------------------------------------------------- */

static const char *words_of(const struct tci_oci_plan *plan, uint32_t end, int status,
                            const char *text, size_t length)
{
    static struct tc_error error;
    struct tci_stage_report report = {
        .magic = TCI_STAGE_MAGIC, .end = end, .status = status, .text_length = (uint32_t)length
    };
    memset(&error, 0, sizeof error);
    memcpy(report.text, text, length);
    tci_stage_explain(plan, &report, &error);
    return error.message;
}

#define SAID(text) words_of(&plan, TCI_STAGE_ENDED, 256, text, sizeof(text) - 1)

static void test_last_line_of_a_runtime_is_its_message(void **state)
{
    (void)state;
    static const struct tci_oci_plan plan = { .choice.runtime = TCI_OCI_RUNC };
    assert_string_equal(SAID("a warning\nthe reason\n\n"),
                        "runc could not run the container: the reason");
    assert_string_equal(SAID("time=\"now\" level=error msg=\"open \\\"x\\\": no\"\n"),
                        "runc could not run the container: open \"x\": no");
    assert_string_equal(SAID("msg=\""), "runc ended with status 1 and said nothing about it");
    assert_string_equal(SAID(" \n\r\n"), "runc ended with status 1 and said nothing about it");
    assert_string_equal(words_of(&plan, TCI_STAGE_ENDED, SIGKILL, "", 0),
                        "runc was ended by signal 9");
}

static void test_control_characters_of_a_runtime_are_not_passed_on(void **state)
{
    (void)state;
    static const struct tci_oci_plan plan = { .choice.runtime = TCI_OCI_CRUN };
    char all[TCI_STAGE_TEXT_MAX];
    assert_string_equal(SAID("\033]0;x\007\t\xc3\xa9\x7f\x9b"
                             "31m\0z"),
                        "crun could not run the container: ?]0;x??????31m?z");
    for (size_t i = 0; i < sizeof all; i++)
        all[i] = (char)i;
    all[10] = 'x';
    for (const char *at = words_of(&plan, TCI_STAGE_ENDED, 0, all, sizeof all); *at; at++)
        assert_true(*at >= 0x20 && *at < 0x7f);
}

static const char *broken_at(const struct tci_oci_plan *plan, enum tci_stage_step step,
                             uint32_t item, int status)
{
    static struct tc_error error;
    const struct tci_stage_report report = { .magic = TCI_STAGE_MAGIC,
                                             .end = TCI_STAGE_BROKEN,
                                             .status = status,
                                             .step = step,
                                             .item = item };
    memset(&error, 0, sizeof error);
    tci_stage_explain(plan, &report, &error);
    assert_true(error.remedy[0]);
    return error.message;
}

static void test_failure_of_the_stage_names_the_path(void **state)
{
    (void)state;
    struct tci_oci_mount mounts[] = { { .cage = "/ws", .host = "/srv/ws" } };
    const struct tci_oci_plan plan = { .choice = { .program = "/opt/crun" },
                                       .rootfs = "/srv/image",
                                       .mounts = mounts,
                                       .mount_count = 1 };
    assert_string_equal(
        broken_at(&plan, TCI_STAGE_STEP_POINT, 0, ELOOP),
        "/ws cannot be mounted: in the root directory /srv/image there is a link on "
        "the way to it");
    assert_non_null(strstr(broken_at(&plan, TCI_STAGE_STEP_POINT, 1, ENOTDIR), "/proc cannot be"));
    assert_non_null(strstr(broken_at(&plan, TCI_STAGE_STEP_SOURCE_CHANGED, 0, ESTALE), "/srv/ws"));
    assert_non_null(strstr(broken_at(&plan, TCI_STAGE_STEP_OVERLAY, 0, EINVAL), "/srv/image"));
    assert_non_null(strstr(broken_at(&plan, TCI_STAGE_STEP_START, 1, ENOENT), "/opt/crun"));
    /* A report is data: numbers that mean nothing do no harm. */
    (void)broken_at(&plan, (enum tci_stage_step)9999, 77, 123456);
    (void)broken_at(&plan, TCI_STAGE_STEP_POINT, UINT32_MAX, -5);
}

/* ---- the configuration ------------------------------------------------------------------------------------- */

static void test_configuration_is_sealed(void **state)
{
    (void)state;
    struct made made = must_make(&crun, "filesystem = { readable = [\"HOST/data:/data\"] }");
    struct tci_stage_config header = { 0 };
    int fd = tci_stage_config(made.plan, false, &made.error);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &header, sizeof header, 0), sizeof header);
    assert_int_equal(header.magic, TCI_STAGE_MAGIC);
    assert_int_equal(header.mounts.count, made.plan->mount_count);
    assert_int_equal(header.bundle.count, strlen(made.plan->config_json));
    assert_int_equal(pwrite(fd, "x", 1, 0), -1);
    assert_int_equal(ftruncate(fd, 0), -1);
    (void)tci_close(fd);
    end(&made);
}

/* ---- furnishing ---------------------------------------------------------------------------------------------- */

/* Somebody in namespaces of his own, who says so and waits. */
static pid_t somebody(int flags, int line[2])
{
    pid_t pid;
    char byte = 0;
    assert_int_equal(pipe2(line, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        byte = unshare(flags) == 0 ? 'y' : 'n';
        (void)!write(line[1], &byte, 1);
        (void)pause();
        _exit(0);
    }
    assert_int_equal(read(line[0], &byte, 1), 1);
    (void)close(line[0]);
    (void)close(line[1]);
    if (byte == 'y')
        return pid;
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    return -1;
}

static bool has_resolver(pid_t pid)
{
    static const char *const files[] = { "udp", "udp6" };
    char path[64], line[256];
    bool found = false;
    for (size_t i = 0; i < tci_array_size(files); i++) {
        FILE *file;
        (void)snprintf(path, sizeof path, "/proc/%d/net/%s", (int)pid, files[i]);
        file = fopen(path, "re");
        while (file && fgets(line, sizeof line, file))
            found |= strstr(line, ":0035 ") != NULL;
        if (file)
            (void)fclose(file);
    }
    return found;
}

static void test_network_of_another_process_is_furnished(void **state)
{
    (void)state;
    struct made made = must_make(&docker, "network = [\"example.com:443\"]");
    struct tci_gate *gate = NULL;
    int inside = -1, line[2];
    pid_t pid = somebody(CLONE_NEWUSER | CLONE_NEWNET, line);
    if (pid < 0) {
        end(&made);
        skip();
    }
    assert_true(made.plan->has_gate);
    assert_false(has_resolver(pid));
    assert_int_equal(
        tci_gate_new(&(struct tci_gate_options){ .settings = made.plan->spec.settings }, &gate,
                     &inside, &made.error),
        0);
    assert_int_equal(tci_stage_furnish(pid, made.plan, inside, NULL, &made.error), 0);
    (void)close(inside);
    tci_gate_step(gate);
    assert_true(has_resolver(pid));
    tci_gate_free(gate);
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    /* Nobody is there any more. */
    assert_int_equal(tci_stage_furnish(pid, made.plan, -1, NULL, &made.error), -1);
    assert_true(made.error.message[0]);
    end(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_last_line_of_a_runtime_is_its_message),
        cmocka_unit_test(test_control_characters_of_a_runtime_are_not_passed_on),
        cmocka_unit_test(test_failure_of_the_stage_names_the_path),
        cmocka_unit_test(test_configuration_is_sealed),
        cmocka_unit_test(test_network_of_another_process_is_furnished),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
