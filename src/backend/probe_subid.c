/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: has this user a range of further user ids, and can it be mapped? Reads /etc/subuid and
 * /etc/subgid, then has newuidmap and newgidmap map the ranges for a throw-away user namespace.
 */
#include "backend/probe.h"
#include "backend/probe_exec.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NEEDED = 65536, MAP_LIMIT_MS = 1000, FILE_MAX_BYTES = 65536 };

static const char REMEDY_RANGE[] =
    "sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $USER (ranges of "
    "different users must not overlap: see /etc/subuid)";

struct range {
    unsigned long first, count;
};

/* The first large enough range of a user in "NAME-OR-ID:FIRST:COUNT" lines. 0, or an errno: ENOENT
 * if there is none. */
static int find_range(const char *path, const char *user, uid_t uid, struct range *ret)
{
    static char text[FILE_MAX_BYTES];
    char id[16], *rest = text, *line;
    if (tci_probe_read_file(AT_FDCWD, path, text, sizeof text) < 0)
        return errno;
    (void)snprintf(id, sizeof id, "%u", uid);
    while ((line = strsep(&rest, "\n"))) {
        char *owner = strsep(&line, ":"), *first = strsep(&line, ":"), *count = line;
        if (!first || !count || (strcmp(owner, user) != 0 && strcmp(owner, id) != 0))
            continue;
        ret->first = strtoul(first, NULL, 10);
        ret->count = strtoul(count, NULL, 10);
        if (ret->first && ret->count >= NEEDED)
            return 0;
    }
    return ENOENT;
}

/* Runs newuidmap or newgidmap: 0 -> our own id, 1... -> the range. */
static bool map(const struct tci_probe *p, const char *program, pid_t pid, unsigned own,
                const struct range *range)
{
    char path[TCI_PROGRAM_PATH_MAX], output[256], texts[3][24] = { "", "", "" };
    const char *argv[] = { program, texts[0], "0", texts[1], "1", "1", texts[2], "65536", NULL };
    struct tci_program_result r;
    (void)snprintf(texts[0], sizeof texts[0], "%d", (int)pid);
    (void)snprintf(texts[1], sizeof texts[1], "%u", own);
    (void)snprintf(texts[2], sizeof texts[2], "%lu", range->first);
    if (!tci_program_find(program, path)) {
        tci_probe_no(p, TCI_FEATURE_SUBID_RANGES, "sudo apt install uidmap", "%s is not in PATH",
                     program);
        return false;
    }
    r = tci_program_run(path, argv, TCI_PROGRAM_SETUID, MAP_LIMIT_MS, output, sizeof output);
    if (r.end == TCI_PROGRAM_EXITED && r.status == 0)
        return true;
    if (r.end != TCI_PROGRAM_EXITED)
        tci_probe_unknown(p, TCI_FEATURE_SUBID_RANGES, NULL, "%.100s did not come to an end", path);
    tci_probe_no(p, TCI_FEATURE_SUBID_RANGES, "sudo apt install --reinstall uidmap",
                 "%.100s could not map the range", path);
    return false;
}

static void map_both(const struct tci_probe *p, const struct range *users,
                     const struct range *groups)
{
    int ready[2], done[2], problem = EIO;
    char byte = 0;
    pid_t pid;
    if (pipe2(ready, O_CLOEXEC) < 0 || pipe2(done, O_CLOEXEC) < 0) {
        tci_probe_refused(p, TCI_FEATURE_SUBID_RANGES, NULL, "pipe", errno);
        return;
    }
    pid = tci_probe_fork();
    if (pid == 0) {
        (void)close(done[1]);
        problem = unshare(CLONE_NEWUSER) == 0 ? 0 : errno;
        (void)!write(ready[1], &problem, sizeof problem);
        (void)!read(done[0], &byte, 1);
        _exit(0);
    }
    if (pid < 0)
        problem = errno;
    (void)close(ready[1]);
    if (pid < 0 || read(ready[0], &problem, sizeof problem) != (ssize_t)sizeof problem || problem)
        tci_probe_failed(p, TCI_FEATURE_SUBID_RANGES, "see user_namespaces", problem,
                         "no user namespace to map into: %s", strerrordesc_np(problem));
    else if (map(p, "newuidmap", pid, geteuid(), users) &&
             map(p, "newgidmap", pid, getegid(), groups))
        tci_probe_yes(p, TCI_FEATURE_SUBID_RANGES, "%lu users from %lu, %lu groups from %lu",
                      users->count, users->first, groups->count, groups->first);
    (void)close(done[1]);
    if (pid > 0)
        (void)tci_probe_wait(pid);
}

void tci_probe_subid(const struct tci_probe *p)
{
    const enum tci_feature id = TCI_FEATURE_SUBID_RANGES;
    uid_t uid = geteuid();
    struct passwd entry, *user = NULL;
    char texts[4096];
    struct range users = { 0 }, groups = { 0 };
    const char *name;
    int problem;
    if (uid == 0) {
        tci_probe_yes(p, id, "not needed by root");
        return;
    }
    problem = getpwuid_r(uid, &entry, texts, sizeof texts, &user);
    if (!user && tci_probe_is_shortage(problem))
        tci_probe_refused(p, id, NULL, "the user's name", problem);
    name = user ? user->pw_name : "";
    if ((problem = find_range("/etc/subuid", name, uid, &users)))
        tci_probe_failed(p, id, REMEDY_RANGE, problem,
                         "no range of %d ids in /etc/subuid for user %u: %s", NEEDED, uid,
                         problem == ENOENT ? "none is listed" : strerrordesc_np(problem));
    else if ((problem = find_range("/etc/subgid", name, uid, &groups)))
        tci_probe_failed(p, id, REMEDY_RANGE, problem,
                         "no range of %d ids in /etc/subgid for user %u: %s", NEEDED, uid,
                         problem == ENOENT ? "none is listed" : strerrordesc_np(problem));
    else
        map_both(p, &users, &groups);
}
