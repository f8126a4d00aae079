/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: noticing that a package's files are not as they were installed. The attack, or the accident: a
 * program of the host that was exchanged, or into which somebody wrote a password, goes into an image that
 * is handed around. dpkg has a digest of every file, and compares.
 */
#include "backend/oci/image.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include "backend/probe_exec.h"

enum { output_max = 1 << 20, limit_ms = 120000 };

static bool is_skipped(struct tci_arena *arena, const char *path)
{
    struct tci_image_rule rule;
    for (const char *at = NULL; tci_image_rule_next(arena, "skip", &at, &rule);)
        if (fnmatch(rule.first, path, FNM_NOESCAPE) == 0)
            return true;
    return false;
}

/* "??5??????   /usr/bin/x": nine letters, the third for the digest; a file that is gone is "missing". */
static int look(struct tci_arena *arena, char *text, struct tc_error *reterr)
{
    for (char *line = text, *next; *line; line = next) {
        const char *path = strchr(line, '/');
        next = line + strcspn(line, "\n");
        if (*next)
            *next++ = '\0';
        if (strlen(line) < 12 || line[2] != '5' || !path || path >= next || is_skipped(arena, path))
            continue;
        tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "%.200s is not as its package installed it",
                      path);
        tci_error_remedy(reterr,
                         "run 'sudo apt-get install --reinstall' for the package that "
                         "'dpkg -S %.200s' names, or, as root, 'toolcage image build --from "
                         "debootstrap'",
                         path);
        return -1;
    }
    return 0;
}

static int no_answer(const struct tci_program_result *result, struct tc_error *reterr)
{
    switch (result->end) {
    case TCI_PROGRAM_EXITED:
        tci_error_set(reterr, TC_ERROR_IO, "dpkg --verify ended with status %d", result->status);
        break;
    case TCI_PROGRAM_KILLED:
        tci_error_set(reterr, TC_ERROR_IO, "dpkg --verify was killed by signal %d", result->status);
        break;
    case TCI_PROGRAM_TOO_LATE:
        tci_error_set(reterr, TC_ERROR_IO, "dpkg --verify did not end within %d s",
                      limit_ms / 1000);
        break;
    case TCI_PROGRAM_NOT_BEGUN:
        tci_error_set(reterr, TC_ERROR_IO, "dpkg --verify could not be started: %s",
                      strerror(result->status));
        break;
    }
    tci_error_remedy(reterr, "run 'dpkg --verify' to see why");
    return -1;
}

int tci_packages_check(struct tci_arena *arena, const char *root,
                       const struct tci_package_list *packages, struct tc_error *reterr)
{
    const char **argv = tci_arena_new_array(arena, packages->chosen + 3, const char *);
    char program[TCI_PROGRAM_PATH_MAX], *output;
    struct tci_program_result result;
    size_t count = 0;
    int r;

    if (strcmp(root, "/") != 0)
        return 0; /* debootstrap has just installed it */
    if (!tci_program_find("dpkg", program))
        return tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "this host has dpkg-query, but no dpkg");
    output = malloc(output_max);
    if (!argv || !output) {
        free(output);
        return tci_error_no_memory(reterr);
    }
    argv[count++] = "dpkg";
    argv[count++] = "--verify";
    for (size_t i = 0; i < packages->count; i++)
        if (packages->packages[i].chosen)
            argv[count++] = packages->packages[i].qualified;
    /* Its exit status says whether anything at all differs, also what is of no interest here. */
    result = tci_program_run(program, argv, 0, limit_ms, output, output_max);
    output[result.length < output_max ? result.length : output_max - 1] = '\0';
    if (result.end == TCI_PROGRAM_EXITED && result.status <= 1)
        r = look(arena, output, reterr);
    else
        r = no_answer(&result, reterr);
    free(output);
    return r;
}
