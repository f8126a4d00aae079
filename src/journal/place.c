/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: whether what is written will be found: the three files of an open journal are still those at
 * its path, and there is room on their file system.
 *
 * SQLite does not look. A journal that is removed, replaced or emptied while it is open would take
 * records that no file has afterwards, and give grants that were revoked in the file that is there now.
 * A -wal file that is gone is the same: the newest records are in it. A -shm file that is gone means
 * that others lock a new one, and that two write at the same time.
 */
#include "journal/journal_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Of a call whose output is small. Refusals do not use it up: they stay for prune and revoke. */
enum { reserve = 1024 * 1024 };

/* Where these are in the shared memory, which begins with the header of SQLite's index of its log
 * ("WAL-mode File Format"): the size of a page as the eighth 16 bits, the frames as the fifth 32 bits. */
enum { index_page_size = 7, index_frames = 4, log_header = 32, frame_header = 24 };

static const char *const suffixes[TCI_JOURNAL_FILES] = { "", "-wal", "-shm" };

/* Somebody may have taken the log from a journal (PRAGMA journal_mode = DELETE): then it gets one
 * again, without which readers and writers would wait for each other. */
static int bring_log(struct tci_journal *journal, const char *path, struct tc_error *reterr)
{
    struct stat status;
    if (stat(path, &status) == 0)
        return 0;
    return tci_journal_exec(journal, "PRAGMA journal_mode = WAL; SELECT rows FROM head", reterr);
}

int tci_journal_place_keep(struct tci_journal *journal, struct tc_error *reterr)
{
    int moved = 0;
    for (size_t i = 0; i < TCI_JOURNAL_FILES; i++) {
        struct tci_journal_file *file = &journal->files[i];
        struct stat status;
        if (asprintf(&file->path, "%s%s", journal->path, suffixes[i]) < 0) {
            file->path = NULL;
            return tci_error_no_memory(reterr);
        }
        if (bring_log(journal, file->path, reterr) < 0)
            return -1;
        if (stat(file->path, &status) < 0)
            return tci_error_errno(reterr, errno, "journal %s", file->path);
        file->device = status.st_dev;
        file->inode = status.st_ino;
    }
    /* Is it the one that SQLite has opened? */
    (void)sqlite3_file_control(journal->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    journal->placed = true;
    return moved ? tci_journal_fail(journal, SQLITE_READONLY_DBMOVED, reterr) : 0;
}

void tci_journal_place_forget(struct tci_journal *journal)
{
    for (size_t i = 0; i < TCI_JOURNAL_FILES; i++)
        free(journal->files[i].path);
}

static int is_another(const struct tci_journal_file *file, const char *what,
                      struct tc_error *reterr)
{
    tci_error_set(reterr, TC_ERROR_IO, "journal file %s was %s while it was open", file->path,
                  what);
    tci_error_remedy(reterr, "open the journal, or the engine, again; 'toolcage journal verify' "
                             "says what is in the file that is there now");
    return -1;
}

/* How long the log must be for the frames that the shared memory says it has. */
static int64_t log_size(struct tci_journal *journal)
{
    void volatile *index = NULL;
    sqlite3_file *file = NULL;
    uint16_t page_size;
    uint32_t frames;

    if (sqlite3_file_control(journal->db, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK ||
        !file || !file->pMethods || file->pMethods->iVersion < 2 ||
        file->pMethods->xShmMap(file, 0, 32768, 0, &index) != SQLITE_OK || !index)
        return 0;
    page_size = ((const volatile uint16_t *)index)[index_page_size];
    frames = ((const volatile uint32_t *)index)[index_frames];
    return frames ? log_header +
                        (int64_t)frames * (frame_header + (page_size == 1 ? 65536 : page_size))
                  : 0;
}

int tci_journal_place_check(struct tci_journal *journal, bool writing, struct tc_error *reterr)
{
    struct stat status[TCI_JOURNAL_FILES];
    if (!journal->placed)
        return 0;
    for (size_t i = 0; i < TCI_JOURNAL_FILES; i++) {
        const struct tci_journal_file *file = &journal->files[i];
        if (stat(file->path, &status[i]) < 0)
            return is_another(file, errno == ENOENT ? "removed" : "put out of reach", reterr);
        if (status[i].st_ino != file->inode || status[i].st_dev != file->device)
            return is_another(file, "replaced by another", reterr);
    }
    if (status[0].st_size == 0)
        return is_another(&journal->files[0], "emptied", reterr);
    /* Only a writer knows that nobody shortens the log rightly at this moment. */
    if (writing && status[1].st_size < log_size(journal))
        return is_another(&journal->files[1], "cut short", reterr);
    return 0;
}

static int check_room(const struct tci_journal *journal, size_t bytes, struct tc_error *reterr)
{
    uint64_t needed = (uint64_t)bytes + reserve, blocks;
    struct statvfs room;
    /* A file system that says nothing about itself is believed; no new files are made. */
    if (statvfs(journal->path, &room) < 0 || room.f_blocks == 0 || room.f_frsize == 0)
        return 0;
    blocks = geteuid() == 0 ? room.f_bfree : room.f_bavail;
    if (blocks >= needed / room.f_frsize + 1)
        return 0;
    tci_error_set(reterr, TC_ERROR_IO,
                  "journal %s: " TCI_JOURNAL_NO_SPACE ": %" PRIu64 " KiB are free where it "
                  "is, and %" PRIu64 " KiB must be",
                  journal->path, (uint64_t)(blocks * room.f_frsize / 1024), needed / 1024);
    tci_error_remedy(reterr, "free some space there, or name another file with --journal or in "
                             "TOOLCAGE_JOURNAL");
    return -1;
}

/* What no question answers (quotas, limits on the size of files), a write does. It changes nothing: but
 * SQLite leaves out a change of a row that is none, and not this one. */
static int try_write(struct tci_journal *journal, struct tc_error *reterr)
{
    char sql[64];
    (void)snprintf(sql, sizeof sql, "PRAGMA user_version = %d", TCI_JOURNAL_VERSION);
    return tci_journal_end(journal, tci_journal_exec(journal, sql, reterr), reterr);
}

/* A transaction is begun in any case: with a process that keeps the file locked the call would run, and then not be
 * recorded. */
int tci_journal_writable(struct tci_journal *journal, size_t bytes, struct tc_error *reterr)
{
    int r;
    if (tci_journal_begin(journal, reterr) < 0)
        return -1;
    r = check_room(journal, bytes, reterr);
    if (r == 0 && !journal->proven)
        return try_write(journal, reterr);
    tci_journal_abandon(journal);
    return r;
}
