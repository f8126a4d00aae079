/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the normal form of paths, as text.
 * Trusts: `base` to be in normal form; nothing about `path`, which may come from a policy, from a
 * model or from inside a cage.
 * Invariant: a path that is accepted is absolute, has no empty, "." or ".." component, no control
 * byte, and fits the kernel's limits; normalising it again changes nothing.
 */
#include "base/path.h"

#include <string.h>

const char *tci_path_problem_text(enum tci_path_problem problem)
{
    static const char *const texts[] = {
        [TCI_PATH_OK] = "is fine",
        [TCI_PATH_EMPTY] = "is empty",
        [TCI_PATH_CONTROL_BYTE] = "contains a control character",
        [TCI_PATH_TOO_LONG] = "is longer than 4095 bytes",
        [TCI_PATH_COMPONENT_TOO_LONG] = "has a component of more than 255 bytes",
        [TCI_PATH_EMPTY_COMPONENT] = "contains an empty component (\"//\")",
        [TCI_PATH_LEAVES_ROOT] = "leads above the root directory with \"..\"",
        [TCI_PATH_RELATIVE] = "is relative, and there is no directory to take it from",
    };
    return (size_t)problem < tci_array_size(texts) ? texts[problem] : "is not a path";
}

/* NUL would end the path early for the kernel: "/data\0.txt" is checked as one file and opened as
 * another. The others write to a terminal, or break the lines of a mount table. */
static bool has_control_byte(const char *path, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)path[i];
        if (byte < 0x20 || byte == 0x7f)
            return true;
    }
    return false;
}

/* The bytes from `path` to the next slash, or to its end. */
static size_t component_length(const char *path, const char *end)
{
    const char *slash = memchr(path, '/', (size_t)(end - path));
    return (size_t)((slash ? slash : end) - path);
}

/* Looks at each component between `path` and `end`: first all lengths, then all empty ones. */
static enum tci_path_problem check_components(const char *path, const char *end)
{
    bool empty = false;

    while (path < end) {
        size_t length = component_length(path, end);
        if (length > TCI_COMPONENT_MAX)
            return TCI_PATH_COMPONENT_TOO_LONG;
        if (length == 0)
            empty = true;
        path += length;
        if (path < end)
            path++;
    }
    return empty ? TCI_PATH_EMPTY_COMPONENT : TCI_PATH_OK;
}

static bool component_is(const char *component, size_t length, const char *wanted)
{
    return length == strlen(wanted) && memcmp(component, wanted, length) == 0;
}

/* Drops the last component of buffer[0..used). False at the root: ".." there is an attempt to get
 * out, not a typing error to be ignored as the kernel does. */
static bool drop_component(const char *buffer, size_t *used)
{
    if (*used == 0)
        return false;
    do
        (*used)--;
    while (buffer[*used] != '/');
    return true;
}

/* Adds the components one by one to buffer[0..used), which is "" for the root and otherwise a
 * normal path. The caller has made sure that all of them fit. */
static enum tci_path_problem add_components(const char *path, const char *end, char *buffer,
                                            size_t used)
{
    while (path < end) {
        size_t length = component_length(path, end);
        if (component_is(path, length, "..")) {
            if (!drop_component(buffer, &used))
                return TCI_PATH_LEAVES_ROOT;
        } else if (!component_is(path, length, ".")) {
            buffer[used++] = '/';
            memcpy(buffer + used, path, length);
            used += length;
        }
        path += length;
        if (path < end)
            path++;
    }
    if (used == 0)
        buffer[used++] = '/';
    buffer[used] = '\0';
    return TCI_PATH_OK;
}

static enum tci_path_problem normalise(const char *base, const char *path, size_t length,
                                       char *buffer)
{
    const char *start = path, *end = path + length;
    size_t base_length = 0;

    if (length == 0)
        return TCI_PATH_EMPTY;
    if (has_control_byte(path, length))
        return TCI_PATH_CONTROL_BYTE;

    bool relative = path[0] != '/';
    if (relative && base && strcmp(base, "/") != 0)
        base_length = strlen(base);
    /* Joined, even if ".." would make it shorter again: so the buffer cannot overflow. */
    if (length > TCI_PATH_MAX || base_length + relative > TCI_PATH_MAX - length)
        return TCI_PATH_TOO_LONG;

    if (!relative)
        start++;
    enum tci_path_problem problem = check_components(start, end);
    if (problem != TCI_PATH_OK)
        return problem;

    if (base_length > 0)
        memcpy(buffer, base, base_length);
    problem = add_components(start, end, buffer, base_length);
    if (problem != TCI_PATH_OK)
        return problem;
    return relative && !base ? TCI_PATH_RELATIVE : TCI_PATH_OK;
}

enum tci_path_problem tci_path_normalise(const char *base, const char *path, size_t length,
                                         char buffer[TCI_PATH_MAX + 1])
{
    enum tci_path_problem problem = normalise(base, path, length, buffer);

    /* Half of a path is still a path: do not leave one for a caller who does not look. */
    if (problem != TCI_PATH_OK)
        buffer[0] = '\0';
    return problem;
}

bool tci_path_is_within(const char *path, const char *directory)
{
    size_t length;

    if (strcmp(directory, "/") == 0)
        return path[0] == '/';
    /* Most pairs differ in their first letter, and lint asks about hundreds of thousands. */
    if (path[0] && directory[0] && path[1] != directory[1])
        return false;
    /* "/ab" starts with "/a" but is not below it. */
    length = strlen(directory);
    return strncmp(path, directory, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

bool tci_path_take(char *left, char name[TCI_COMPONENT_MAX + 1])
{
    const char *from = left + strspn(left, "/");
    size_t length = strcspn(from, "/");

    if (!length || length > TCI_COMPONENT_MAX)
        return false;
    memcpy(name, from, length);
    name[length] = '\0';
    memmove(left, from + length, strlen(from + length) + 1);
    return true;
}

unsigned tci_path_depth(const char *path)
{
    unsigned depth = 0;

    if (strcmp(path, "/") == 0)
        return 0;
    for (; *path; path++)
        depth += *path == '/';
    return depth;
}
