/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the start of the command's program: found as a shell does it, or handed over. */
#include "backend/native/init.h"

enum { path_max = 4096, program_failed = 127, at_empty_path = 0x1000 };

static _Noreturn void not_started(long result)
{
    struct tci_init_report r = { .end = TCI_INIT_NOT_STARTED, .status = (int32_t)-result };
    report(&r);
    leave(program_failed);
}

static const char *search_path(char **environment)
{
    for (char **e = environment; *e; e++)
        if ((*e)[0] == 'P' && (*e)[1] == 'A' && (*e)[2] == 'T' && (*e)[3] == 'H' && (*e)[4] == '=')
            return *e + 5;
    return "";
}

static bool has_slash(const char *text)
{
    for (; *text; text++)
        if (*text == '/')
            return true;
    return false;
}

/* "directory/name" into `buffer`; false when it does not fit. */
static bool join(char *buffer, const char *directory, size_t length, const char *name)
{
    size_t n = 0;
    if (length + 2 >= path_max)
        return false;
    for (; n < length; n++)
        buffer[n] = directory[n];
    buffer[n++] = '/';
    for (; *name; name++) {
        if (n + 1 >= path_max)
            return false;
        buffer[n++] = *name;
    }
    buffer[n] = '\0';
    return true;
}

/* As a shell does it: the first that can be started; "not allowed" is remembered over "not there". */
static long start_program(const struct init *init)
{
    static char path[path_max];
    const char *from = search_path(init->environment);
    long worst = -ENOENT;
    /* A file of memory: no mount says noexec to it, and Landlock's list of programs is about paths. It
     * is sealed, and what the command could gain by starting it again is what it is already. */
    if (init->has_program)
        return CALL(execveat, TCI_INIT_FD_PROGRAM, "", init->command, init->environment,
                    at_empty_path);
    if (has_slash(init->command[0]))
        return CALL(execve, init->command[0], init->command, init->environment, 0, 0);
    while (*from) {
        size_t length = 0;
        while (from[length] && from[length] != ':')
            length++;
        if (length && join(path, from, length, init->command[0])) {
            long result = CALL(execve, path, init->command, init->environment, 0, 0);
            if (result != -ENOENT && result != -ENOTDIR && result != -EACCES)
                return result;
            if (result == -EACCES)
                worst = result;
        }
        from += length + (from[length] == ':');
    }
    return worst;
}

_Noreturn void become_command(const struct init *init)
{
    prepare_command(init);
    not_started(start_program(init));
}
