/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the little that programs without a C library take from one (bare.h). Built into them only. */
#include "base/bare.h"

#include <linux/errno.h>
#include <stdbool.h>
#include "base/calls.h"

enum { path_max = 4096 };

void *memset(void *to, int value, size_t length)
{
    unsigned char *bytes = to;
    while (length--)
        *bytes++ = (unsigned char)value;
    return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t length)
{
    unsigned char *bytes = to;
    const unsigned char *source = from;
    while (length--)
        *bytes++ = *source++;
    return to;
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
    while (*text && *text != '/')
        text++;
    return *text;
}

/* "directory/name" into `buffer`; false when it does not fit. */
static bool join(char *buffer, const char *directory, size_t length, const char *name)
{
    size_t n = 0;
    if (length + 2 >= path_max)
        return false;
    for (; n < length; n++)
        buffer[n] = directory[n];
    for (buffer[n++] = '/'; *name; name++) {
        if (n + 1 >= path_max)
            return false;
        buffer[n++] = *name;
    }
    buffer[n] = '\0';
    return true;
}

long tci_bare_start(const char *name, char **arguments, char **environment)
{
    static char path[path_max];
    const char *from = search_path(environment);
    long worst = -ENOENT;
    if (has_slash(name))
        return CALL(execve, name, arguments, environment, 0, 0);
    while (*from) {
        size_t length = 0;
        while (from[length] && from[length] != ':')
            length++;
        if (length && join(path, from, length, name)) {
            long result = CALL(execve, path, arguments, environment, 0, 0);
            if (result != -ENOENT && result != -ENOTDIR && result != -EACCES)
                return result;
            if (result == -EACCES)
                worst = result;
        }
        from += length + (from[length] == ':');
    }
    return worst;
}
