/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what SQLite's result codes mean for a person who has a journal. */
#include "journal/journal_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct meaning {
    int code; /* extended, or primary for all of its kind */
    enum tc_error_code error;
    const char *sentence, *remedy;
} meanings[] = {
    { SQLITE_IOERR_NOMEM, TC_ERROR_NO_MEMORY, "there is no memory for it", "" },
    { SQLITE_NOMEM, TC_ERROR_NO_MEMORY, "there is no memory for it", "" },
    { SQLITE_CANTOPEN_SYMLINK, TC_ERROR_USAGE, "it is a symbolic link",
      "name the file itself: a link could lead a journal anywhere" },
    { SQLITE_READONLY_DIRECTORY, TC_ERROR_IO, "its directory cannot be written",
      "make its directory writable, or name another file with --journal" },
    { SQLITE_READONLY_CANTINIT, TC_ERROR_IO, "its directory cannot be written",
      "make its directory writable, or copy the journal and its -wal file to one that is" },
    { SQLITE_READONLY_DBMOVED, TC_ERROR_IO, "the file was moved or removed while it was open",
      "open the journal, or the engine, again" },
    { SQLITE_BUSY, TC_ERROR_IO, "another process has it locked",
      "wait for that process, or end it: 'fuser' on the file names it" },
    { SQLITE_LOCKED, TC_ERROR_IO, "another process has it locked",
      "wait for that process, or end it: 'fuser' on the file names it" },
    { SQLITE_FULL, TC_ERROR_IO, TCI_JOURNAL_NO_SPACE,
      "free some space where it is, or name another file with --journal" },
    { SQLITE_READONLY, TC_ERROR_IO, "it cannot be written",
      "make the file and its directory writable for this user, or name another with --journal" },
    { SQLITE_PERM, TC_ERROR_IO, "access is denied",
      "make the file and its directory accessible for this user" },
    { SQLITE_AUTH, TC_ERROR_IO, "access is denied",
      "make the file and its directory accessible for this user" },
    { SQLITE_CORRUPT, TC_ERROR_IO, "the file is damaged",
      "'toolcage journal verify' says from which row on; keep the file, and record into a new "
      "one" },
    { SQLITE_CONSTRAINT, TC_ERROR_IO, "the file is damaged: a row that comes next is there already",
      "'toolcage journal verify' says from which row on; keep the file, and record into a new "
      "one" },
    { SQLITE_NOTADB, TC_ERROR_USAGE, "it is not a journal",
      "name another file with --journal or in TOOLCAGE_JOURNAL" },
    { SQLITE_TOOBIG, TC_ERROR_TOO_LARGE, "a text is larger than a row may be",
      "lower the limit on output, or record only hashes (record = \"hash-only\")" },
    { SQLITE_CANTOPEN, TC_ERROR_IO, "it, or its -wal or -shm file beside it, cannot be opened",
      "make the file and its directory accessible for this user" },
    { SQLITE_PROTOCOL, TC_ERROR_IO, "its locks do not work",
      "a journal belongs on a local file system, not on one of a network" },
    { SQLITE_IOERR, TC_ERROR_IO, "reading or writing it failed",
      "look at the disk and its space ('df'); then 'toolcage journal verify'" },
};

static const struct meaning *meaning_of(int code)
{
    for (size_t i = 0; i < tci_array_size(meanings); i++)
        if (meanings[i].code == code)
            return &meanings[i];
    return (code & 0xff) != code ? meaning_of(code & 0xff) : NULL;
}

int tci_journal_fail(const struct tci_journal *journal, int code, struct tc_error *reterr)
{
    const struct meaning *meaning = meaning_of(code);
    int number;
    if (!meaning)
        return tci_error_set(reterr, TC_ERROR_INTERNAL, "journal %s: %s", journal->path,
                             journal->db ? sqlite3_errmsg(journal->db) : sqlite3_errstr(code));
    if (meaning->error == TC_ERROR_NO_MEMORY)
        return tci_error_no_memory(reterr);
    number = journal->db ? sqlite3_system_errno(journal->db) : 0;
    /* What the system said is of use only where it is about the same thing. */
    if (number && (meaning->code == SQLITE_CANTOPEN || meaning->code == SQLITE_IOERR))
        tci_error_errno(reterr, number, "journal %s: %s", journal->path, meaning->sentence);
    else
        tci_error_set(reterr, meaning->error, "journal %s: %s", journal->path, meaning->sentence);
    tci_error_remedy(reterr, "%s", meaning->remedy);
    return -1;
}

int tci_journal_damaged(const struct tci_journal *journal, struct tc_error *reterr,
                        const char *format, ...)
{
    char what[256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    tci_error_set(reterr, TC_ERROR_IO, "journal %s was changed or is damaged: %s", journal->path,
                  what);
    tci_error_remedy(reterr, "'toolcage journal verify' says which row is the first bad one; keep "
                             "the file, and record into a new one");
    return -1;
}
