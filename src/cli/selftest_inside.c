/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the side of `toolcage selftest` that runs in a cage: one attempt, and its answer. */
#include "cli/selftest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name;
    selftest_attempt *run;
} attempts[] = {
#define X(clause, name, backends, expects, policy, text) { #name, selftest_##name },
#include "cli/selftest.def"
#undef X
};

int selftest_inside(int count, char **words)
{
    struct selftest_target target;
    if (count != 5)
        return 125;
    target = (struct selftest_target){ .directory = words[1],
                                       .abstract = words[2],
                                       .port = (int)strtol(words[3], NULL, 10),
                                       .pid = (int)strtol(words[4], NULL, 10) };
    for (size_t i = 0; i < sizeof attempts / sizeof attempts[0]; i++)
        if (strcmp(attempts[i].name, words[0]) == 0) {
            bool escaped = attempts[i].run(&target);
            (void)fflush(stdout);
            _exit(escaped ? 0 : 1);
        }
    return 125;
}
