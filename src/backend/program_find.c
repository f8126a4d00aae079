/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: finding a program of the host that toolcage starts itself. The attack: a directory of PATH that
 * another user can write to, with a "crun" of his in it; root would start it. So a program counts only if
 * nobody but root and the caller could have put it there: the file, and every directory on the way to it,
 * before and after links, is theirs, and not everybody's to write to.
 */
#include "backend/probe_exec.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_program(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
           faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0;
}

/* In a sticky directory nobody can exchange what belongs to somebody else. */
static bool is_trusted(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && (st.st_uid == 0 || st.st_uid == geteuid()) &&
           (!(st.st_mode & S_IWOTH) || (S_ISDIR(st.st_mode) && st.st_mode & S_ISVTX));
}

static bool is_way_trusted(const char *path)
{
    char part[PATH_MAX];
    for (const char *slash = path; slash; slash = strchr(slash + 1, '/')) {
        size_t length = slash == path ? 1 : (size_t)(slash - path);
        if (length >= sizeof part)
            return false;
        memcpy(part, path, length);
        part[length] = '\0';
        if (!is_trusted(part))
            return false;
    }
    return is_trusted(path);
}

/* As written, because a link on the way could be exchanged; and where the links lead. */
static bool may_be_started(const char *path)
{
    char behind[PATH_MAX];
    return is_program(path) && is_way_trusted(path) && realpath(path, behind) &&
           is_way_trusted(behind);
}

static bool find_in(const char *directories, const char *name, char ret_path[TCI_PROGRAM_PATH_MAX])
{
    const char *from = directories;
    while (from && *from) {
        size_t length = strcspn(from, ":");
        if (from[0] == '/') {
            int n = snprintf(ret_path, TCI_PROGRAM_PATH_MAX, "%.*s/%s", (int)length, from, name);
            if (n > 0 && n < TCI_PROGRAM_PATH_MAX && may_be_started(ret_path))
                return true;
        }
        from += length;
        from += *from == ':';
    }
    return false;
}

bool tci_program_find(const char *name, char ret_path[TCI_PROGRAM_PATH_MAX])
{
    return find_in(getenv("PATH"), name, ret_path);
}

bool tci_runtime_find(const char *name, char ret_path[TCI_PROGRAM_PATH_MAX])
{
    return tci_program_find(name, ret_path) ||
           find_in("/usr/sbin:/usr/local/sbin:/usr/local/bin", name, ret_path);
}
