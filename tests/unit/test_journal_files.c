/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: tests of journals that cannot be opened, read or written: each fails with a sentence of its own
 * and a remedy, waits for nobody, and leaves a handle that can be used again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "descriptors.h"
#include "journal_support.h"

static void assert_refused(const char *path, unsigned flags, enum tc_error_code code,
                           const char *sentence)
{
    struct tci_journal *journal = NULL;
    struct tc_error error = { 0 };
    int before = count_descriptors();
    assert_int_equal(tci_journal_open(path, flags, &journal, &error), -1);
    assert_null(journal);
    if (!strstr(error.message, sentence))
        fail_msg("\"%s\" does not say \"%s\"", error.message, sentence);
    assert_int_equal(error.code, code);
    assert_true(error.remedy[0]);
    assert_int_equal(count_descriptors(), before);
}

static void write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    (void)close(fd);
}

static int try_append(struct tci_journal *journal, struct tc_error *error)
{
    char hash[TCI_SHA256_TEXT_MAX];
    struct sample sample;
    memset(error, 0, sizeof *error);
    make_entry(&sample, "s", 1);
    return tci_journal_append(journal, &sample.entry, hash, error);
}

/* Does `run` in a process of its own; its status must be 0. */
static void in_child(void (*run)(const struct place *place), const struct place *place)
{
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        run(place);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void child_needs(bool condition, const char *what, const struct tc_error *error)
{
    if (condition)
        return;
    (void)fprintf(stderr, "%s: %s\n", what, error->message);
    _exit(1);
}

/* ---- opening ------------------------------------------------------------------------------ */

static void test_files_that_are_no_journals_are_refused(void **state)
{
    struct place place = new_place();
    char link[128];
    (void)state;
    assert_refused(place.path, 0, TC_ERROR_IO, "there is no journal");
    assert_refused(place.directory, TCI_JOURNAL_CREATE, TC_ERROR_USAGE, "a directory");
    assert_refused("/dev/full", TCI_JOURNAL_CREATE, TC_ERROR_USAGE, "a device, a fifo");
    assert_refused("/dev/null/x/journal", 0, TC_ERROR_IO, "Not a directory");

    assert_int_equal(mkfifo(place.path, 0600), 0);
    assert_refused(place.path, TCI_JOURNAL_CREATE, TC_ERROR_USAGE, "a device, a fifo");
    assert_int_equal(unlink(place.path), 0);

    (void)snprintf(link, sizeof link, "%s/target", place.directory);
    assert_int_equal(symlink(link, place.path), 0);
    assert_refused(place.path, TCI_JOURNAL_CREATE, TC_ERROR_USAGE, "a symbolic link");
    assert_int_equal(access(link, F_OK), -1);
    assert_int_equal(unlink(place.path), 0);

    write_text(place.path,
               "This is no database, but it is longer than the header of one, which has "
               "a hundred bytes, and so it must be looked at to know that.\n");
    assert_refused(place.path, TCI_JOURNAL_CREATE, TC_ERROR_USAGE, "not a journal");
    write_text(place.path, "short");
    assert_refused(place.path, 0, TC_ERROR_USAGE, "not a journal");
    write_text(place.path, "");
    assert_refused(place.path, 0, TC_ERROR_USAGE, "is empty");
    remove_place(&place);
}

static void test_an_empty_file_becomes_a_journal(void **state)
{
    struct place place = new_place();
    struct tci_journal *journal;
    (void)state;
    write_text(place.path, "");
    journal = open_journal(place.path);
    append(journal, "s", 1);
    assert_good(journal, 1);
    tci_journal_close(journal);
    remove_place(&place);
}

static void test_databases_of_others_and_of_the_future_are_refused(void **state)
{
    struct place place = new_place();
    (void)state;
    run_sql(place.path, "CREATE TABLE x (a)");
    assert_refused(place.path, TCI_JOURNAL_CREATE, TC_ERROR_USAGE, "of another program");
    remove_beside(&place, "");
    tci_journal_close(open_journal(place.path));
    run_sql(place.path, "PRAGMA user_version = 2");
    assert_refused(place.path, TCI_JOURNAL_CREATE, TC_ERROR_UNSUPPORTED, "has version 2");
    run_sql(place.path, "PRAGMA user_version = 0");
    assert_refused(place.path, TCI_JOURNAL_CREATE, TC_ERROR_IO, "no version");
    remove_place(&place);
}

static void test_what_is_made_is_for_the_owner_only(void **state)
{
    struct place place = new_place();
    char deep[160], path[192];
    struct stat status;
    mode_t before = umask(0);
    (void)state;
    (void)snprintf(deep, sizeof deep, "%s/a/b", place.directory);
    (void)snprintf(path, sizeof path, "%s/j.db", deep);
    struct tci_journal *journal = open_journal(path);
    append(journal, "s", 1);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(stat(deep, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    (void)strcat(path, "-wal");
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    tci_journal_close(journal);
    (void)unlink(path);
    (void)memcpy(strrchr(path, '-'), "-shm", 5);
    (void)unlink(path);
    *strrchr(path, '-') = '\0';
    (void)unlink(path);
    (void)rmdir(deep);
    *strrchr(deep, '/') = '\0';
    (void)rmdir(deep);
    (void)umask(before);
    remove_place(&place);
}

static void test_links_above_the_file_are_followed(void **state)
{
    struct place place = new_place();
    char link[96], path[128];
    (void)state;
    (void)snprintf(link, sizeof link, "%s/link", place.directory);
    (void)snprintf(path, sizeof path, "%s/link/journal.db", place.directory);
    assert_int_equal(symlink(".", link), 0);
    struct tci_journal *journal = open_journal(path);
    append(journal, "s", 1);
    tci_journal_close(journal);
    assert_int_equal(access(place.path, F_OK), 0);
    (void)unlink(link);
    remove_place(&place);
}

static void test_default_path_is_that_of_the_user(void **state)
{
    char path[TCI_PATH_MAX + 1];
    struct tc_error error = { 0 };
    char *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
    (void)state;
    (void)setenv("XDG_STATE_HOME", "/x", 1);
    assert_ok(tci_journal_default_path(path, &error), &error);
    assert_string_equal(path, "/x/toolcage/journal.db");
    (void)setenv("XDG_STATE_HOME", "relative", 1);
    (void)setenv("HOME", "/h", 1);
    assert_ok(tci_journal_default_path(path, &error), &error);
    assert_string_equal(path, "/h/.local/state/toolcage/journal.db");
    (void)unsetenv("HOME");
    assert_int_equal(tci_journal_default_path(path, &error), -1);
    assert_true(error.remedy[0]);
    (void)unsetenv("XDG_STATE_HOME");
    if (home)
        (void)setenv("HOME", home, 1);
    free(home);
}

/* ---- reading and writing ------------------------------------------------------------------ */

static void test_a_journal_open_for_reading_is_not_written(void **state)
{
    struct place place = new_place();
    struct tci_journal *journal;
    struct tc_error error = { 0 };
    (void)state;
    journal = open_journal(place.path);
    append(journal, "s", 1);
    tci_journal_close(journal);
    assert_ok(tci_journal_open(place.path, TCI_JOURNAL_READ_ONLY, &journal, &error), &error);
    assert_int_equal(try_append(journal, &error), -1);
    assert_non_null(strstr(error.message, "cannot be written"));
    assert_good(journal, 1);
    tci_journal_close(journal);
    remove_place(&place);
}

static void become_nobody(void)
{
    if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
        _exit(2);
}

static void use_read_only_file(const struct place *place)
{
    struct tci_journal *journal = NULL;
    struct tc_error error = { 0 };
    become_nobody();
    child_needs(tci_journal_open(place->path, TCI_JOURNAL_CREATE, &journal, &error) < 0, "opened",
                &error);
    child_needs(error.code == TC_ERROR_IO && error.remedy[0], "another error", &error);
    memset(&error, 0, sizeof error);
    /* It is at rest: it can be read where nothing can be written. */
    child_needs(tci_journal_open(place->path, TCI_JOURNAL_READ_ONLY, &journal, &error) == 0,
                "not read", &error);
    struct tci_journal_report report;
    child_needs(tci_journal_verify(journal, &report, NULL, NULL, &error) == 0 && report.good &&
                    report.rows == 1,
                "not verified", &error);
    tci_journal_close(journal);
}

static void test_a_file_that_others_own_or_can_write_is_refused(void **state)
{
    static const char *const names[] = { "", "-wal", "-shm" };
    struct place place = new_place();
    struct tci_journal *journal = open_journal(place.path);
    char path[128];
    (void)state;
    append(journal, "s", 1);
    tci_journal_close(journal);
    for (size_t i = 0; i < tci_array_size(names); i++) {
        (void)snprintf(path, sizeof path, "%s%s", place.path, names[i]);
        for (unsigned mode = 0620; mode >= 0602; mode -= 016) {
            assert_int_equal(chmod(path, mode), 0);
            assert_refused(place.path, 0, TC_ERROR_USAGE, "written by others");
            assert_refused(place.path, TCI_JOURNAL_READ_ONLY, TC_ERROR_USAGE, "written by others");
        }
        assert_int_equal(chmod(path, 0600), 0);
        if (geteuid() == 0) {
            assert_int_equal(chown(path, 65534, (gid_t)-1), 0);
            assert_refused(place.path, TCI_JOURNAL_CREATE, TC_ERROR_USAGE, "another user");
            assert_int_equal(chown(path, 0, (gid_t)-1), 0);
        }
        tci_journal_close(open_journal(place.path));
    }
    remove_place(&place);
}

static void test_a_directory_that_cannot_be_written_has_an_error_of_its_own(void **state)
{
    struct place place = new_place();
    struct tci_journal *journal = open_journal(place.path);
    (void)state;
    append(journal, "s", 1);
    tci_journal_close(journal);
    run_sql(place.path, "PRAGMA wal_checkpoint(TRUNCATE)");
    assert_int_equal(chmod(place.path, 0444), 0);
    assert_int_equal(chmod(place.directory, 0555), 0);
    in_child(use_read_only_file, &place);
    assert_int_equal(chmod(place.directory, 0700), 0);
    remove_place(&place);
}

static void test_a_locked_journal_is_an_error_after_the_timeout(void **state)
{
    struct place place = new_place();
    struct tci_journal *journal = open_journal(place.path);
    struct tc_error error;
    sqlite3 *other = NULL;
    (void)state;
    append(journal, "s", 1);
    assert_int_equal(sqlite3_open(place.path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    tci_journal_set_timeout(journal, 50);
    assert_int_equal(try_append(journal, &error), -1);
    assert_non_null(strstr(error.message, "another process has it locked"));
    assert_true(error.remedy[0]);
    assert_good(journal, 1); /* readers do not wait for writers */
    assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(try_append(journal, &error), 0);
    assert_good(journal, 2);
    (void)sqlite3_close(other);
    tci_journal_close(journal);
    remove_place(&place);
}

/* Writes until it fails; afterwards the handle reads, and the chain is good. */
static void fill_up(const struct place *place, const char *sentence, rlim_t limit)
{
    enum { size = 64 * 1024 };
    struct tci_journal *journal = open_journal(place->path);
    struct tc_error error = { 0 };
    struct tci_journal_report report;
    struct sample sample;
    char hash[TCI_SHA256_TEXT_MAX], *text = malloc(size + 3);
    uint64_t done = 0;
    child_needs(text != NULL, "no memory", &error);
    memset(text, 'x', size + 2);
    text[0] = text[size + 1] = '"';
    text[size + 2] = '\0';
    make_entry(&sample, "s", 1);
    sample.entry.result = text;
    tci_sha256_text(text, strlen(text), sample.entry.result_hash);
    (void)signal(SIGXFSZ, SIG_IGN);
    if (limit)
        (void)setrlimit(RLIMIT_FSIZE, &(struct rlimit){ limit, limit });
    while (done < 1000 && tci_journal_append(journal, &sample.entry, hash, &error) == 0)
        done++;
    child_needs(done > 3 && done < 1000, "it was never full", &error);
    child_needs(strstr(error.message, sentence) && error.remedy[0], "another sentence", &error);
    memset(&error, 0, sizeof error);
    child_needs(tci_journal_verify(journal, &report, NULL, NULL, &error) == 0 && report.good &&
                    report.rows == done,
                "the chain does not hold", &error);
    tci_journal_close(journal);
    free(text);
}

static void fill_limit(const struct place *place)
{
    fill_up(place, "journal", 1024 * 1024);
}

static void test_a_limit_on_the_size_of_files_loses_no_record(void **state)
{
    struct place place = new_place();
    (void)state;
    in_child(fill_limit, &place);
    struct tci_journal *journal = open_journal(place.path);
    assert_true(verify(journal).good);
    append(journal, "s", 1);
    assert_true(verify(journal).good);
    tci_journal_close(journal);
    remove_place(&place);
}

static void fill_disk(const struct place *place)
{
    struct tc_error error = { 0 };
    struct place inside = *place;
    child_needs(unshare(CLONE_NEWNS) == 0 &&
                    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
                    mount("none", place->directory, "tmpfs", 0, "size=1m") == 0,
                strerror(errno), &error);
    fill_up(&inside, "no space left", 0);
}

static void test_a_full_disk_loses_no_record(void **state)
{
    struct place place = new_place();
    (void)state;
    if (geteuid() != 0) {
        remove_place(&place);
        skip(); /* only root may mount; the limit above is for everybody */
    }
    in_child(fill_disk, &place);
    remove_place(&place);
}

static void test_the_log_does_not_grow_with_processes_that_make_one_call(void **state)
{
    struct place place = new_place();
    char path[128];
    struct stat status;
    off_t largest = 0;
    (void)state;
    (void)snprintf(path, sizeof path, "%s-wal", place.path);
    for (unsigned i = 0; i < 200; i++) {
        struct tci_journal *journal = open_journal(place.path);
        append(journal, "s", i);
        tci_journal_close(journal);
        assert_int_equal(stat(path, &status), 0);
        largest = status.st_size > largest ? status.st_size : largest;
    }
    assert_in_range(largest, 4096, (TCI_JOURNAL_LOG_PAGES + 50) * 4200);
    struct tci_journal *journal = open_journal(place.path);
    assert_good(journal, 200);
    tci_journal_close(journal);
    remove_place(&place);
}

static void test_two_handles_of_one_process_keep_their_locks(void **state)
{
    struct place place = new_place();
    struct tci_journal *first = open_journal(place.path), *second;
    struct tc_error error;
    (void)state;
    assert_ok(tci_journal_begin(first, &error), &error);
    second = open_journal(place.path);
    tci_journal_close(second); /* would give the lock away, had it opened the file itself */
    second = open_journal(place.path);
    tci_journal_set_timeout(second, 20);
    assert_int_equal(try_append(second, &error), -1);
    assert_int_equal(tci_journal_end(first, 0, &error), 0);
    assert_int_equal(try_append(second, &error), 0);
    tci_journal_close(second);
    assert_good(first, 1);
    tci_journal_close(first);
    remove_place(&place);
}

/* ---- files that go while they are open ---------------------------------------------------- */

static void beside(const struct place *place, const char *suffix, char ret[128])
{
    (void)snprintf(ret, 128, "%s%s", place->path, suffix);
}

static void remove_all(const struct place *place)
{
    remove_beside(place, "");
    remove_beside(place, "-wal");
    remove_beside(place, "-shm");
}

static void remove_log(const struct place *place)
{
    remove_beside(place, "-wal");
}

static void remove_memory(const struct place *place)
{
    remove_beside(place, "-shm");
}

static void put_another_there(const struct place *place)
{
    char moved[128];
    beside(place, ".old", moved);
    assert_int_equal(rename(place->path, moved), 0);
    remove_beside(place, "-wal");
    remove_beside(place, "-shm");
    tci_journal_close(open_journal(place->path));
}

static void empty_file(const struct place *place)
{
    assert_int_equal(truncate(place->path, 0), 0);
}

static void cut_log(const struct place *place)
{
    char path[128];
    beside(place, "-wal", path);
    assert_int_equal(truncate(path, 4096), 0);
}

static void put_another_log_there(const struct place *place)
{
    char path[128];
    beside(place, "-wal", path);
    remove_beside(place, "-wal");
    write_text(path, "");
}

/* The record would be in no file afterwards, and the caller would have been told that it is. */
static void test_a_journal_that_is_gone_or_another_takes_no_record(void **state)
{
    static const struct {
        void (*change)(const struct place *place);
        const char *sentence;
        bool only_writers_see_it;
    } ways[] = {
        { remove_all, "removed", false },
        { remove_log, "removed", false },
        { remove_memory, "removed", false },
        { put_another_there, "replaced", false },
        { put_another_log_there, "replaced", false },
        { empty_file, "emptied", false },
        { cut_log, "cut short", true },
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(ways); i++) {
        struct place place = new_place();
        struct tci_journal *journal = open_journal(place.path);
        struct tc_error error = { 0 };
        uint64_t version;
        append(journal, "s", 1);
        ways[i].change(&place);
        assert_int_equal(try_append(journal, &error), -1);
        if (!strstr(error.message, ways[i].sentence) || !strstr(error.remedy, "again"))
            fail_msg("way %zu: \"%s\" (%s)", i, error.message, error.remedy);
        if (!ways[i].only_writers_see_it) {
            assert_int_equal(tci_journal_writable(journal, 0, &error), -1);
            assert_int_equal(tci_journal_grants_version(journal, &version, &error), -1);
        }
        tci_journal_close(journal);
        remove_beside(&place, ".old");
        remove_place(&place);
    }
}

static void test_a_log_that_others_shorten_rightly_is_no_error(void **state)
{
    struct place place = new_place();
    struct tci_journal *journal = open_journal(place.path);
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        append(journal, "s", i);
        run_sql(place.path, "PRAGMA wal_checkpoint(TRUNCATE)");
    }
    assert_good(journal, 4);
    tci_journal_close(journal);
    remove_place(&place);
}

static void test_a_journal_whose_log_was_taken_gets_one_again(void **state)
{
    struct place place = new_place();
    struct tci_journal *journal = open_journal(place.path);
    (void)state;
    append(journal, "s", 1);
    tci_journal_close(journal);
    run_sql(place.path, "PRAGMA journal_mode = DELETE");
    journal = open_journal(place.path);
    append(journal, "s", 2);
    assert_good(journal, 2);
    tci_journal_close(journal);
    remove_place(&place);
}

static void needs_not_writable(struct tci_journal *journal, size_t bytes, const char *sentence)
{
    struct tc_error error = { 0 };
    child_needs(tci_journal_writable(journal, bytes, &error) == -1 &&
                    strstr(error.message, sentence) && error.remedy[0],
                sentence, &error);
}

static void ask_on_a_small_disk(const struct place *place)
{
    struct tc_error error = { 0 };
    struct tci_journal *journal;
    child_needs(unshare(CLONE_NEWNS) == 0 &&
                    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
                    mount("none", place->directory, "tmpfs", 0, "size=2m") == 0,
                strerror(errno), &error);
    journal = open_journal(place->path);
    child_needs(tci_journal_writable(journal, 0, &error) == 0, "there is room", &error);
    needs_not_writable(journal, 1024 * 1024, "no space left");
    child_needs(mount(NULL, place->directory, NULL, MS_REMOUNT, "size=900k") == 0, strerror(errno),
                &error);
    needs_not_writable(journal, 0, "no space left");
    tci_journal_close(journal);
}

static void ask_under_a_limit(const struct place *place)
{
    struct tci_journal *journal;
    tci_journal_close(open_journal(place->path));
    journal = open_journal(place->path);
    (void)signal(SIGXFSZ, SIG_IGN);
    (void)setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 1024, 1024 });
    needs_not_writable(journal, 0, "journal");
    tci_journal_close(journal);
}

static void test_what_cannot_be_written_is_known_before(void **state)
{
    struct place place = new_place();
    struct tci_journal *journal = open_journal(place.path);
    struct tc_error error = { 0 };
    int status = 0;
    pid_t child;
    (void)state;
    assert_ok(tci_journal_writable(journal, 1000, &error), &error);
    append(journal, "s", 1);
    child = fork();
    assert_true(child >= 0);
    if (!child) {
        needs_not_writable(journal, 0, "before a fork");
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    tci_journal_close(journal);
    assert_ok(tci_journal_open(place.path, TCI_JOURNAL_READ_ONLY, &journal, &error), &error);
    assert_int_equal(tci_journal_writable(journal, 0, &error), -1);
    tci_journal_close(journal);
    remove_place(&place);
    place = new_place();
    in_child(ask_under_a_limit, &place);
    if (geteuid() == 0) /* only root may mount */
        in_child(ask_on_a_small_disk, &place);
    remove_place(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_that_are_no_journals_are_refused),
        cmocka_unit_test(test_an_empty_file_becomes_a_journal),
        cmocka_unit_test(test_databases_of_others_and_of_the_future_are_refused),
        cmocka_unit_test(test_what_is_made_is_for_the_owner_only),
        cmocka_unit_test(test_links_above_the_file_are_followed),
        cmocka_unit_test(test_default_path_is_that_of_the_user),
        cmocka_unit_test(test_a_journal_open_for_reading_is_not_written),
        cmocka_unit_test(test_a_file_that_others_own_or_can_write_is_refused),
        cmocka_unit_test(test_a_directory_that_cannot_be_written_has_an_error_of_its_own),
        cmocka_unit_test(test_a_locked_journal_is_an_error_after_the_timeout),
        cmocka_unit_test(test_a_limit_on_the_size_of_files_loses_no_record),
        cmocka_unit_test(test_a_full_disk_loses_no_record),
        cmocka_unit_test(test_the_log_does_not_grow_with_processes_that_make_one_call),
        cmocka_unit_test(test_two_handles_of_one_process_keep_their_locks),
        cmocka_unit_test(test_a_journal_that_is_gone_or_another_takes_no_record),
        cmocka_unit_test(test_a_log_that_others_shorten_rightly_is_no_error),
        cmocka_unit_test(test_a_journal_whose_log_was_taken_gets_one_again),
        cmocka_unit_test(test_what_cannot_be_written_is_known_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
