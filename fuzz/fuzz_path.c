/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the fuzz target of base/path.h. Input: a path; behind the first newline, if there is one,
 * a base. Checks what must hold for each input, not what one input should give.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* Absolute, no ".", ".." or empty component, no control byte, within bounds, and a fixpoint. */
static void check_normal(const char *path)
{
    char again[TCI_PATH_MAX + 1];
    unsigned components = 0;
    size_t length = strlen(path);

    check(path[0] == '/' && length <= TCI_PATH_MAX);
    for (const char *p = path; *p;) {
        size_t component = strcspn(++p, "/");
        check(component > 0 || length == 1);
        check(component <= TCI_COMPONENT_MAX);
        check(!(component == 1 && p[0] == '.') && !(component == 2 && p[0] == '.' && p[1] == '.'));
        components += component > 0;
        p += component;
    }
    for (const char *p = path; *p; p++)
        check((unsigned char)*p >= 0x20 && *p != 0x7f);
    check(tci_path_depth(path) == components);
    check(tci_path_normalise(NULL, path, length, again) == TCI_PATH_OK);
    check(strcmp(again, path) == 0);
    check(tci_path_normalise("/some/where", path, length, again) == TCI_PATH_OK);
    check(strcmp(again, path) == 0);
    check(tci_path_is_within(path, path) && tci_path_is_within(path, "/"));
}

/* A path is within each of its own directories, and not within what only starts like one. (The
 * first ones are enough: checking all of a long path would take most of the fuzzer's time.) */
static void check_within(const char *path)
{
    char directory[TCI_PATH_MAX + 1];

    for (size_t i = 1; i < 64 && path[1] != '\0' && path[i] != '\0'; i++) {
        memcpy(directory, path, i);
        directory[i] = '\0';
        if (directory[i - 1] == '/')
            continue;
        check(tci_path_is_within(path, directory) == (path[i] == '/'));
        check(!tci_path_is_within(directory, path));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *newline = size > 0 ? memchr(data, '\n', size) : NULL;
    size_t length = newline ? (size_t)(newline - text) : size;
    char base[TCI_PATH_MAX + 1], path[TCI_PATH_MAX + 1], rooted[TCI_PATH_MAX + 1];
    bool have_base = newline &&
                     tci_path_normalise(NULL, newline + 1, size - length - 1, base) == TCI_PATH_OK;

    if (have_base)
        check_normal(base);
    enum tci_path_problem problem = tci_path_normalise(have_base ? base : NULL, text, length, path);
    check(strlen(tci_path_problem_text(problem)) > 0);
    if (problem != TCI_PATH_OK) {
        check(path[0] == '\0');
        return 0;
    }
    check_normal(path);
    check_within(path);
    /* What stays below the root stays below the base. */
    if (have_base && text[0] != '/' && tci_path_normalise("/", text, length, rooted) == TCI_PATH_OK)
        check(tci_path_is_within(path, base));
    return 0;
}
