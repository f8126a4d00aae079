/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the two sides of `toolcage selftest` share: the one that watches from outside
 * (cmd_selftest.c), and the attempts, which run inside a cage (selftest_*.c). */
#ifndef TCI_CLI_SELFTEST_H
#define TCI_CLI_SELFTEST_H

#include <stdbool.h>

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
