/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the start of the command's program: found as a shell does it, or handed over. */
#include "backend/native/init.h"

#include "base/bare.h"

enum { program_failed = 127, at_empty_path = 0x1000 };

static _Noreturn void not_started(long result)
{
    struct tci_init_report r = { .end = TCI_INIT_NOT_STARTED, .status = (int32_t)-result };
    report(&r);
    leave(program_failed);
}

static long start_program(const struct init *init)
{
    /* A file of memory: no mount says noexec to it, and Landlock's list of programs is about paths. It
     * is sealed, and what the command could gain by starting it again is what it is already. */
    if (init->has_program)
        return CALL(execveat, TCI_INIT_FD_PROGRAM, "", init->command, init->environment,
                    at_empty_path);
    return tci_bare_start(init->command[0], init->command, init->environment);
}

_Noreturn void become_command(const struct init *init)
{
    prepare_command(init);
    not_started(start_program(init));
}
