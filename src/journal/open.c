/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: from a path to a journal that is open.
 *
 * The file is never opened by us: whoever closes any descriptor of it loses the locks that another
 * connection of this process has (POSIX). So it is looked at by lstat and made by mknod, and only
 * SQLite opens it. It must be a regular file: reading a fifo would wait for ever.
 */
#include "journal/journal_internal.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int tci_journal_default_path(char ret[TCI_PATH_MAX + 1], struct tc_error *reterr)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int length;
    /* The specification of these directories: a path that is not absolute does not count. */
    if (state && state[0] == '/')
        length = snprintf(ret, TCI_PATH_MAX + 1, "%s/toolcage/journal.db", state);
    else if (home && home[0] == '/')
        length = snprintf(ret, TCI_PATH_MAX + 1, "%s/.local/state/toolcage/journal.db", home);
    else {
        tci_error_set(reterr, TC_ERROR_USAGE,
                      "there is no place for a journal: neither "
                      "XDG_STATE_HOME nor HOME is an absolute path");
        tci_error_remedy(reterr, "set HOME, or name a file with --journal or in TOOLCAGE_JOURNAL");
        return -1;
    }
    if (length > TCI_PATH_MAX)
        return tci_error_set(reterr, TC_ERROR_TOO_LARGE, "the path of the journal is too long");
    return 0;
}

static int cannot_make(const char *path, int cause, struct tc_error *reterr)
{
    tci_error_errno(reterr, cause, "cannot make directory %s for the journal", path);
    tci_error_remedy(reterr,
                     "make the directory above it writable, or name a file with --journal or "
                     "in TOOLCAGE_JOURNAL");
    return -1;
}

/* mkdir -p for the owner alone. A read-only system says so of directories that are there, too: what
 * could not be made is known by looking. */
static int make_directories(char *path, struct tc_error *reterr)
{
    for (char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash)
            *slash = '\0';
        if (mkdir(path, 0700) < 0 && errno != EEXIST) {
            int cause = errno;
            if (access(path, F_OK) < 0)
                return cannot_make(path, cause, reterr);
        }
        if (!slash)
            return 0;
        *slash = '/';
    }
}

static int no_journal(const char *path, struct tc_error *reterr)
{
    tci_error_set(reterr, TC_ERROR_IO, "there is no journal %s", path);
    tci_error_remedy(reterr, "record a call first, or name a file with --journal or in "
                             "TOOLCAGE_JOURNAL");
    return -1;
}

static int no_directory(const char *directory, struct tc_error *reterr)
{
    tci_error_errno(reterr, errno, "directory %s of the journal", directory);
    tci_error_remedy(reterr, "make it (mkdir -m 700), or name another file with --journal");
    return -1;
}

/* The path with its directory resolved: links above the file are a matter of the host, the file
 * itself may be none. free() it. */
static char *resolve(const char *path, bool create, struct tc_error *reterr)
{
    char directory[TCI_PATH_MAX + 1], *resolved, *whole = NULL;
    size_t length = strlen(path);
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || length > TCI_PATH_MAX) {
        tci_error_set(reterr, TC_ERROR_USAGE,
                      "the path of a journal must end in the name of a file");
        return NULL;
    }
    (void)snprintf(directory, sizeof directory, "%.*s", slash ? (int)(slash - path) : 1,
                   slash ? path : ".");
    if (slash == path)
        (void)snprintf(directory, sizeof directory, "/");
    if (create && access(directory, F_OK) < 0 && make_directories(directory, reterr) < 0)
        return NULL;
    resolved = realpath(directory, NULL);
    if (!resolved) {
        if (errno == ENOMEM)
            tci_error_no_memory(reterr);
        else if (errno == ENOENT && !create)
            no_journal(path, reterr);
        else
            no_directory(directory, reterr);
        return NULL;
    }
    if (asprintf(&whole, "%s/%s", strcmp(resolved, "/") == 0 ? "" : resolved, name) < 0) {
        whole = NULL;
        tci_error_no_memory(reterr);
    }
    free(resolved);
    return whole;
}

static int refuse_kind(const char *path, const char *kind, struct tc_error *reterr)
{
    tci_error_set(reterr, TC_ERROR_USAGE, "journal %s is %s, not a file", path, kind);
    tci_error_remedy(reterr, "name a file with --journal or in TOOLCAGE_JOURNAL");
    return -1;
}

static int refuse_access(const char *path, const char *why, const char *command,
                         struct tc_error *reterr)
{
    tci_error_set(reterr, TC_ERROR_USAGE, "journal %s %s", path, why);
    tci_error_remedy(reterr, "if you trust what is in it: %s %s; else name another with --journal",
                     command, path);
    return -1;
}

/* Who can write a journal can give grants in it. The attack: another user puts one where we look for
 * ours, or writes into it, or into SQLite's files beside it. */
static int check_access(const char *path, const struct stat *status, struct tc_error *reterr)
{
    char command[64];
    if (status->st_uid != geteuid() && status->st_uid != 0) {
        (void)snprintf(command, sizeof command, "chown %u", (unsigned)geteuid());
        return refuse_access(path, "belongs to another user", command, reterr);
    }
    if (status->st_mode & (S_IWGRP | S_IWOTH))
        return refuse_access(path, "can be written by others than its owner", "chmod 600", reterr);
    return 0;
}

static int check_beside(const char *path, struct tc_error *reterr)
{
    static const char *const suffixes[] = { "-wal", "-shm" };
    for (size_t i = 0; i < tci_array_size(suffixes); i++) {
        char beside[TCI_PATH_MAX + 8];
        struct stat status;
        (void)snprintf(beside, sizeof beside, "%s%s", path, suffixes[i]);
        if (lstat(beside, &status) == 0 && check_access(beside, &status, reterr) < 0)
            return -1;
    }
    return 0;
}

static int check_file(const char *path, bool create, struct tc_error *reterr)
{
    struct stat status;
    if (lstat(path, &status) < 0) {
        if (errno != ENOENT)
            return tci_error_errno(reterr, errno, "journal %s", path);
        if (!create)
            return no_journal(path, reterr);
        /* What tools were told and what they answered is for the owner only. */
        if (mknod(path, S_IFREG | 0600, 0) < 0 && errno != EEXIST) {
            tci_error_errno(reterr, errno, "journal %s cannot be made", path);
            tci_error_remedy(reterr, "make its directory writable for this user, or name another "
                                     "file with --journal or in TOOLCAGE_JOURNAL");
            return -1;
        }
        if (lstat(path, &status) < 0)
            return tci_error_errno(reterr, errno, "journal %s", path);
    }
    if (S_ISLNK(status.st_mode))
        return refuse_kind(path, "a symbolic link", reterr);
    if (S_ISDIR(status.st_mode))
        return refuse_kind(path, "a directory", reterr);
    if (!S_ISREG(status.st_mode))
        return refuse_kind(path, "a device, a fifo or a socket", reterr);
    return check_access(path, &status, reterr) < 0 ? -1 : check_beside(path, reterr);
}

static int configure(struct tci_journal *journal, struct tc_error *reterr)
{
    static const struct {
        int option, value;
    } options[] = {
        { SQLITE_DBCONFIG_DEFENSIVE, 1 },
        { SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0 },
        { SQLITE_DBCONFIG_ENABLE_TRIGGER, 0 },
        { SQLITE_DBCONFIG_ENABLE_VIEW, 0 },
        { SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0 },
        /* A process that makes one call would wait for the disk twice. */
        { SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1 },
    };
    for (size_t i = 0; i < tci_array_size(options); i++)
        (void)sqlite3_db_config(journal->db, options[i].option, options[i].value, NULL);
    (void)sqlite3_limit(journal->db, SQLITE_LIMIT_LENGTH, 4 * TCI_JOURNAL_TEXT_MAX);
    (void)sqlite3_limit(journal->db, SQLITE_LIMIT_ATTACHED, 0);
    tci_journal_set_timeout(journal, TCI_JOURNAL_TIMEOUT_MS);
    journal->log_limit = TCI_JOURNAL_LOG_PAGES;
    (void)sqlite3_wal_hook(journal->db, tci_journal_log_grew, journal);
    return tci_journal_exec(journal,
                            "PRAGMA cell_size_check = ON; PRAGMA synchronous = NORMAL; "
                            "PRAGMA temp_store = MEMORY",
                            reterr);
}

/* A journal whose directory cannot be written has no place for SQLite's shared memory. If it has no
 * log beside it, nobody is writing, and it can be read as it is. */
static bool is_at_rest(const char *path)
{
    char log[TCI_PATH_MAX + 8];
    struct stat status;
    (void)snprintf(log, sizeof log, "%s-wal", path);
    return lstat(log, &status) < 0 ? errno == ENOENT : status.st_size == 0;
}

static char *immutable_name(const char *path)
{
    static const char hex[] = "0123456789ABCDEF";
    char *name = malloc(strlen(path) * 3 + 32), *to = name;
    if (!name)
        return NULL;
    to = stpcpy(to, "file:");
    for (; *path; path++) {
        if (*path == '?' || *path == '#' || *path == '%') {
            *to++ = '%';
            *to++ = hex[*path >> 4 & 15];
            *to++ = hex[*path & 15];
        } else
            *to++ = *path;
    }
    (void)stpcpy(to, "?immutable=1");
    return name;
}

static int connect_to(struct tci_journal *journal, bool create, bool at_rest,
                      struct tc_error *reterr)
{
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_PRIVATECACHE |
                SQLITE_OPEN_EXRESCODE |
                (journal->read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE);
    char *name = at_rest ? immutable_name(journal->path) : NULL;
    int code;
    if (at_rest && !name)
        return tci_error_no_memory(reterr);
    code = sqlite3_open_v2(at_rest ? name : journal->path, &journal->db,
                           flags | (at_rest ? SQLITE_OPEN_URI : 0), NULL);
    free(name);
    if (code != SQLITE_OK)
        return tci_journal_fail(journal, code, reterr);
    if (configure(journal, reterr) < 0)
        return -1;
    /* SQLite opens for reading what it cannot open for writing; we want to know now. */
    if (!journal->read_only && sqlite3_db_readonly(journal->db, "main") == 1)
        return tci_journal_fail(journal, SQLITE_READONLY, reterr);
    return tci_journal_schema(journal, create, reterr);
}

static int connect_any_way(struct tci_journal *journal, bool create, struct tc_error *reterr)
{
    struct tc_error first = { 0 };
    int code;
    if (connect_to(journal, create, false, &first) == 0)
        return 0;
    code = journal->db ? sqlite3_errcode(journal->db) & 0xff : SQLITE_NOMEM;
    if (journal->read_only && (code == SQLITE_CANTOPEN || code == SQLITE_READONLY) &&
        is_at_rest(journal->path)) {
        (void)sqlite3_close_v2(journal->db);
        journal->db = NULL;
        tci_error_clear(&first);
        if (connect_to(journal, false, true, &first) == 0)
            return 0;
    }
    if (reterr && reterr->code == TC_ERROR_NONE)
        *reterr = first;
    return -1;
}

static struct tci_journal *new_handle(char *path, bool read_only)
{
    struct tci_journal *journal = calloc(1, sizeof *journal);
    pthread_mutexattr_t attributes;
    if (!journal)
        return NULL;
    (void)pthread_mutexattr_init(&attributes);
    (void)pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    (void)pthread_mutex_init(&journal->lock, &attributes);
    (void)pthread_mutexattr_destroy(&attributes);
    journal->owner = getpid();
    journal->path = path;
    journal->read_only = read_only;
    return journal;
}

int tci_journal_open(const char *path, unsigned flags, struct tci_journal **ret,
                     struct tc_error *reterr)
{
    tc_cleanup(tci_journal_closep) struct tci_journal *journal = NULL;
    bool read_only = flags & TCI_JOURNAL_READ_ONLY;
    bool create = flags & TCI_JOURNAL_CREATE && !read_only;
    char *whole = resolve(path, create, reterr);
    if (!whole)
        return -1;
    if (check_file(whole, create, reterr) < 0) {
        free(whole);
        return -1;
    }
    journal = new_handle(whole, read_only);
    if (!journal) {
        free(whole);
        return tci_error_no_memory(reterr);
    }
    /* Once more: SQLite takes files that another user has put there since. */
    if (connect_any_way(journal, create, reterr) < 0 || check_beside(journal->path, reterr) < 0 ||
        (!read_only && tci_journal_place_keep(journal, reterr) < 0))
        return -1;
    *ret = tc_take(journal);
    return 0;
}
