/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the two sides of `toolcage selftest` share: the one that watches from outside
 * (cmd_selftest.c, selftest_canaries.c), and the attempts, which run inside a cage (selftest_*.c). */
#ifndef TCI_CLI_SELFTEST_H
#define TCI_CLI_SELFTEST_H

#include <stdbool.h>
#include "base/path.h"

/* Everything that an attempt could reach if the cage did not hold. */
enum { SELFTEST_PATH_MAX = TCI_PATH_MAX + 64 };
struct selftest_canaries {
    char directory[64];              /* open/file, open/hidden, open/socket, work/, secret; root/ */
    char program[SELFTEST_PATH_MAX]; /* this one */
    char abstract[32], port[8], pid[16];
    int tcp, by_name, by_path, leaked; /* sockets, and a descriptor without O_CLOEXEC */
};

/* selftest_canaries.c: 0, or -1 with errno; torn down in both cases. */
int selftest_set_up(struct selftest_canaries *canaries);
void selftest_tear_down(struct selftest_canaries *canaries);
/* What the attempts on one backend have written: the next one may run as another user. */
void selftest_clear(const struct selftest_canaries *canaries);
/* Did anybody come in? What the canaries saw, or NULL. */
const char *selftest_seen(const struct selftest_canaries *canaries);

/* What an attempt is told about the canaries outside. */
struct selftest_target {
    const char *directory; /* open/, open/hidden, open/socket, work/, secret */
    const char *abstract;  /* name of an abstract socket */
    int port;              /* on 127.0.0.1 */
    int pid;               /* a process of the host */
};

/* An attempt returns true when it got what it must not get, and says what on stdout. */
typedef bool selftest_attempt(const struct selftest_target *target);

#define X(clause, name, backends, expects, policy, text) selftest_attempt selftest_##name;
#include "cli/selftest.def"
#undef X

/* `toolcage selftest-attempt NAME DIRECTORY ABSTRACT PORT PID`: the side inside. 0: escaped, 1: held,
 * 125: the invocation is wrong. */
int selftest_inside(int count, char **words);

/* The content of open files of the host that must not be seen, and a variable's value. */
#define SELFTEST_SECRET "toolcage-selftest-secret"

#endif
