/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mountinfo.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tci_mountinfo_unescape(char *text)
{
    char *to = text;
    while (*text) {
        if (text[0] == '\\' && text[1] >= '0' && text[1] <= '3' && text[2] >= '0' &&
            text[2] <= '7' && text[3] >= '0' && text[3] <= '7') {
            *to++ = (char)((text[1] - '0') << 6 | (text[2] - '0') << 3 | (text[3] - '0'));
            text += 4;
        } else {
            *to++ = *text++;
        }
    }
    *to = '\0';
}

/* Behind the options of the mount: "shared:1 master:2 - type source options"; there may be none of the first. */
static void parse_type(char *rest, struct tci_mounted *ret)
{
    char *field;
    ret->type = ret->options = "";
    do
        field = strsep(&rest, " \n");
    while (field && strcmp(field, "-") != 0);
    field = strsep(&rest, " \n");
    if (!field)
        return;
    ret->type = field;
    (void)strsep(&rest, " \n");
    field = strsep(&rest, " \n");
    if (field)
        ret->options = field;
}

/* "36 35 98:0 /root /point options ...": the first six fields. */
static bool parse(char *line, struct tci_mounted *ret)
{
    char *fields[6], *rest = line, *end;
    for (int i = 0; i < 6; i++) {
        fields[i] = strsep(&rest, " \n");
        if (!fields[i])
            return false;
    }
    ret->major = (unsigned)strtoul(fields[2], &end, 10);
    if (*end != ':')
        return false;
    ret->minor = (unsigned)strtoul(end + 1, &end, 10);
    if (*end)
        return false;
    ret->id = strtoull(fields[0], NULL, 10);
    tci_mountinfo_unescape(fields[3]);
    tci_mountinfo_unescape(fields[4]);
    ret->root = fields[3];
    ret->point = fields[4];
    ret->read_only = strncmp(fields[5], "ro", 2) == 0 && (!fields[5][2] || fields[5][2] == ',');
    parse_type(rest, ret);
    return true;
}

int tci_mountinfo_each_in(const char *path,
                          int (*visit)(void *context, const struct tci_mounted *mount),
                          void *context)
{
    FILE *file = fopen(path, "re");
    struct tci_mounted mount;
    char *line = NULL, buffer[4096];
    size_t size = 0;
    int r = 0, problem;
    if (!file)
        return -1;
    (void)setvbuf(file, buffer, _IOFBF, sizeof buffer);
    while (r == 0 && getline(&line, &size, file) > 0)
        if (parse(line, &mount))
            r = visit(context, &mount);
    problem = feof(file) ? 0 : ferror(file) ? EIO : errno; /* there may be no memory for a line */
    free(line);
    (void)fclose(file);
    if (r == 0 && problem) {
        errno = problem;
        r = -1;
    }
    return r;
}

int tci_mountinfo_each(int (*visit)(void *context, const struct tci_mounted *mount), void *context)
{
    return tci_mountinfo_each_in("/proc/self/mountinfo", visit, context);
}
