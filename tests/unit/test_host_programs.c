/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of programs that probes run: which one is found, what it gets, and that it leaves
 * nothing.
 */
#include "host_support.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "backend/host.h"
#include "backend/probe.h"
#include "backend/probe_exec.h"

/* ---- programs ----------------------------------------------------------------------------- */

static char planted[64]; /* a directory with a program called "planted" in it */

static int plant(void **state)
{
    char path[96];
    FILE *file;
    (void)state;
    snprintf(planted, sizeof planted, "/tmp/test_host.XXXXXX");
    if (!mkdtemp(planted))
        return -1;
    snprintf(path, sizeof path, "%s/planted", planted);
    file = fopen(path, "we");
    if (!file)
        return -1;
    fputs("#!/bin/sh\necho planted\n", file);
    fclose(file);
    return chmod(path, 0755);
}

static int unplant(void **state)
{
    char path[96];
    (void)state;
    snprintf(path, sizeof path, "%s/planted", planted);
    unlink(path);
    return rmdir(planted);
}

static void test_program_in_a_relative_directory_is_not_found(void **state)
{
    char path[TCI_PROGRAM_PATH_MAX], before[4096], value[256], here[1024];
    const char *const relative[] = { ".", "", ":", ":/usr/bin:", "./", "../tmp", "bin:." };
    (void)state;
    snprintf(before, sizeof before, "%s", getenv("PATH"));
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(planted), 0);
    for (size_t i = 0; i < tci_array_size(relative); i++) {
        setenv("PATH", relative[i], 1);
        assert_false(tci_program_find("planted", path));
    }
    snprintf(value, sizeof value, ".:%s:/usr/bin", planted);
    setenv("PATH", value, 1);
    assert_true(tci_program_find("planted", path));
    assert_int_equal(path[0], '/');
    unsetenv("PATH");
    assert_false(tci_program_find("planted", path));
    setenv("PATH", before, 1);
    assert_int_equal(chdir(here), 0);
}

static void test_program_gets_a_clean_environment_and_no_descriptors(void **state)
{
    const char *const environment[] = { "env", NULL };
    const char *const list[] = { "sh", "-c", "echo /proc/self/fd/*", NULL };
    char output[1024];
    int inherited = open("/dev/null", O_RDONLY); /* without CLOEXEC, as a careless caller has it */
    struct tci_program_result r;
    (void)state;
    setenv("TEST_HOST_SECRET", "swordfish", 1);
    r = tci_program_run("/usr/bin/env", environment, 0, 2000, output, sizeof output);
    unsetenv("TEST_HOST_SECRET");
    assert_int_equal(r.end, TCI_PROGRAM_EXITED);
    assert_null(strstr(output, "swordfish"));
    assert_non_null(strstr(output, "HOME=/dev/null\n"));
    r = tci_program_run("/bin/sh", list, 0, 2000, output, sizeof output);
    assert_int_equal(r.end, TCI_PROGRAM_EXITED);
    /* 3 is the shell's own handle on the directory. */
    assert_null(strstr(output, "/4"));
    close(inherited);
}

static void test_program_output_is_capped_and_time_is_limited(void **state)
{
    const char *const endless[] = { "sh", "-c", "while :; do echo yes; done", NULL };
    const char *const long_output[] = { "sh", "-c",
                                        "i=0; while [ $i -lt 5000 ]; do echo x; "
                                        "i=$((i+1)); done; exit 3",
                                        NULL };
    char output[100];
    int64_t begin = now_ms();
    struct tci_program_result r = tci_program_run("/bin/sh", endless, 0, 200, output,
                                                  sizeof output);
    (void)state;
    assert_int_equal(r.end, TCI_PROGRAM_TOO_LATE);
    assert_int_equal(r.length, sizeof output - 1);
    assert_true(now_ms() - begin < 20000); /* not for ever */
    r = tci_program_run("/bin/sh", long_output, 0, 30000, output, sizeof output);
    assert_int_equal(r.end, TCI_PROGRAM_EXITED);
    assert_int_equal(r.status, 3);
    assert_int_equal(r.length, sizeof output - 1);
    assert_no_children();
}

/* How many processes have this word among their arguments. */
static int count_processes(const char *word)
{
    DIR *directory = opendir("/proc");
    const struct dirent *entry;
    int count = 0;
    assert_non_null(directory);
    while ((entry = readdir(directory))) {
        char path[300], text[512];
        ssize_t length;
        snprintf(path, sizeof path, "/proc/%s/cmdline", entry->d_name);
        length = isdigit((unsigned char)entry->d_name[0])
                     ? tci_probe_read_file(AT_FDCWD, path, text, sizeof text)
                     : 0;
        for (ssize_t at = 0; at < length; at += (ssize_t)strlen(text + at) + 1)
            count += strcmp(text + at, word) == 0;
    }
    closedir(directory);
    return count;
}

/* The attack: a child in a session of its own, which also keeps the output open. In a pid namespace
 * and without one (as for helpers that gain privileges). */
static void test_program_leaves_no_process_in_another_session(void **state)
{
    static const unsigned flags[] = { 0, TCI_PROGRAM_SETUID };
    static const char *const scripts[] = {
        "setsid sleep $0 & setsid sleep $0 >/dev/null 2>&1 & sleep 0.1; echo done",
        "(setsid sh -c 'setsid sleep $0 & setsid sleep $0' $0) & sleep 0.1; echo done",
        "setsid sleep $0 & setsid sleep $0 >/dev/null 2>&1 & echo done; sleep 0.1; kill -SEGV $$",
        "setsid sleep $0 & setsid sleep $0 & sleep 50",
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(flags) * tci_array_size(scripts); i++) {
        const size_t which = i / tci_array_size(flags);
        char word[32], output[64];
        const char *argv[] = { "sh", "-c", scripts[which], word, NULL };
        struct tci_program_result r;
        snprintf(word, sizeof word, "99.%d%zu", (int)getpid(), i);
        r = tci_program_run("/bin/sh", argv, flags[i % tci_array_size(flags)], 700, output,
                            sizeof output);
        assert_int_equal(count_processes(word), 0);
        assert_no_children();
        assert_int_equal(r.end, which == 3   ? TCI_PROGRAM_TOO_LATE
                                : which == 2 ? TCI_PROGRAM_KILLED
                                             : TCI_PROGRAM_EXITED);
        assert_string_equal(output, which == 3 ? "" : "done\n");
        if (which == 2)
            assert_int_equal(r.status, SIGSEGV);
    }
}

/* Its parent is the guard: in a namespace it cannot be killed, and elsewhere nothing is lost. */
static void kills_its_guard(const struct tci_probe *p)
{
    const char *const argv[] = { "sh", "-c", "setsid sleep 99.4711 & kill -9 $PPID; sleep 50",
                                 NULL };
    char output[64];
    for (unsigned flags = 0; flags <= TCI_PROGRAM_SETUID; flags += TCI_PROGRAM_SETUID)
        (void)tci_program_run("/bin/sh", argv, flags, 300, output, sizeof output);
    tci_probe_yes(p, TCI_FEATURE_KERNEL, "done");
}

static void test_program_that_kills_its_guard_leaves_nothing(void **state)
{
    (void)state;
    assert_int_equal(run_job(kills_its_guard, NULL, 3000).state, TCI_FEATURE_YES);
    assert_int_equal(count_processes("99.4711"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_program_in_a_relative_directory_is_not_found, plant,
                                        unplant),
        cmocka_unit_test(test_program_gets_a_clean_environment_and_no_descriptors),
        cmocka_unit_test(test_program_output_is_capped_and_time_is_limited),
        cmocka_unit_test(test_program_leaves_no_process_in_another_session),
        cmocka_unit_test(test_program_that_kills_its_guard_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
