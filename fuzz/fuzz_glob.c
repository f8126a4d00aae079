/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the fuzz target of core/extract_glob.h. Input: a pattern, a newline, a path. The automaton must
 * say what a plain recursive matcher says, which is written here from the description alone; a path
 * with every special character escaped must match itself; the walk's shortcuts must be right.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/arena.h"
#include "base/utf8.h"
#include "core/extract_glob.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { text_max = 2000, small = 120 }; /* characters that the recursive matcher gets */

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* ---- the plain matcher ------------------------------------------------------------------------ */

struct text {
    uint32_t at[small + 1]; /* ends with 0 */
    size_t length;
};

struct question {
    struct text pattern, path;
    unsigned char known[small + 1][small + 1]; /* 0: not yet; 1: no; 2: yes */
};

static bool read_text(const char *bytes, struct text *ret)
{
    size_t length = strlen(bytes), i = 0;
    ret->length = 0;
    while (i < length) {
        uint32_t c;
        size_t size = tci_utf8_decode(bytes + i, length - i, &c);
        if (ret->length == small)
            return false;
        ret->at[ret->length++] = size ? c : 0x110000U + (unsigned char)bytes[i];
        i += size ? size : 1;
    }
    ret->at[ret->length] = 0;
    return true;
}

static bool begins_name(const struct text *text, size_t i)
{
    return i == 0 || text->at[i - 1] == '/';
}

static bool is_hidden(const struct question *q, size_t j)
{
    return q->path.at[j] == '.' && begins_name(&q->path, j);
}

/* Behind the class at `i`, or 0 when it is none. */
static size_t skip_class(const struct text *pattern, size_t i)
{
    i++;
    i += pattern->at[i] == '!' || pattern->at[i] == '^';
    i += pattern->at[i] == ']';
    for (; pattern->at[i] && pattern->at[i] != '/'; i++) {
        if (pattern->at[i] == ']')
            return i + 1;
        i += pattern->at[i] == '\\' && pattern->at[i + 1] && pattern->at[i + 1] != '/';
    }
    return 0;
}

static bool class_holds(const struct text *pattern, size_t i, size_t end, uint32_t c)
{
    bool negated = pattern->at[i + 1] == '!' || pattern->at[i + 1] == '^', found = false;
    i += 1 + negated;
    while (i < end) {
        uint32_t first, last;
        i += pattern->at[i] == '\\' && i + 1 < end;
        first = last = pattern->at[i++];
        if (pattern->at[i] == '-' && i + 1 < end) {
            i++;
            i += pattern->at[i] == '\\' && i + 1 < end;
            last = pattern->at[i++];
        }
        found |= c >= first && c <= last;
    }
    return found != negated;
}

static bool ask(struct question *q, size_t i, size_t j);

/* Two stars and more, of which the last is before `end`. */
static bool ask_deep(struct question *q, size_t i, size_t end, size_t j)
{
    bool whole_part = begins_name(&q->pattern, i) && q->pattern.at[end] == '/';
    if (ask(q, whole_part ? end + 1 : end, j))
        return true;
    for (; j < q->path.length && !is_hidden(q, j); j++) {
        if (whole_part ? q->path.at[j] == '/' && ask(q, end + 1, j + 1) : ask(q, end, j + 1))
            return true;
    }
    return false;
}

static bool answer(struct question *q, size_t i, size_t j)
{
    const struct text *pattern = &q->pattern;
    uint32_t c = q->path.at[j];
    bool in_name = j < q->path.length && c != '/' && !is_hidden(q, j);
    size_t next = i + 1;

    if (i == pattern->length)
        return j == q->path.length;
    if (pattern->at[i] == '*') {
        while (pattern->at[next] == '*')
            next++;
        if (next > i + 1)
            return ask_deep(q, i, next, j);
        return ask(q, next, j) || (in_name && ask(q, i, j + 1));
    }
    if (pattern->at[i] == '?')
        return in_name && ask(q, next, j + 1);
    if (pattern->at[i] == '[' && (next = skip_class(pattern, i)) > 0)
        return in_name && class_holds(pattern, i, next - 1, c) && ask(q, next, j + 1);
    next = i + (pattern->at[i] == '\\' && pattern->at[i + 1] && pattern->at[i + 1] != '/');
    return j < q->path.length && pattern->at[next] == c &&
           (!is_hidden(q, j) || begins_name(pattern, i)) && ask(q, next + 1, j + 1);
}

static bool ask(struct question *q, size_t i, size_t j)
{
    if (!q->known[i][j])
        q->known[i][j] = answer(q, i, j) ? 2 : 1;
    return q->known[i][j] == 2;
}

/* ---- what must hold --------------------------------------------------------------------------- */

/* As a walk gives it: no empty name, none that is too long. */
static bool is_path(const char *path)
{
    for (;;) {
        size_t length = strcspn(path, "/");
        if (length == 0 || length > TCI_COMPONENT_MAX)
            return false;
        if (!path[length])
            return true;
        path += length + 1;
    }
}

/* Where only one name can go on, no other may have matched; where nothing can, nothing does. */
static void check_walk(const struct tci_glob *glob, const char *path, bool matched)
{
    struct tci_glob_set set = tci_glob_start(glob);
    for (;;) {
        char name[TCI_COMPONENT_MAX + 1], only[TCI_COMPONENT_MAX + 1];
        size_t length = strcspn(path, "/");
        memcpy(name, path, length);
        name[length] = '\0';
        if (tci_glob_only_name(glob, &set, only)) {
            check(strlen(only) > 0 && !strchr(only, '/'));
            check(!matched || strcmp(only, name) == 0);
        }
        set = tci_glob_name(glob, &set, name);
        if (!path[length]) {
            check(tci_glob_accepts(glob, &set) == matched);
            return;
        }
        if (!tci_glob_slash(glob, &set)) {
            check(!matched);
            return;
        }
        path += length + 1;
    }
}

static void check_against_plain(const char *pattern, const char *path, bool matched)
{
    static struct question q; /* 14 KiB: not for the stack of every input */
    if (!read_text(pattern, &q.pattern) || !read_text(path, &q.path))
        return;
    memset(q.known, 0, sizeof q.known);
    check(ask(&q, 0, 0) == matched);
}

static void check_escaped(struct tci_arena *arena, const char *path)
{
    char pattern[2 * text_max + 1], *to = pattern;
    struct tci_glob glob;
    int compiled;

    for (const char *p = path; *p; p++) {
        if (strchr("*?[]\\", *p))
            *to++ = '\\';
        *to++ = *p;
    }
    *to = '\0';
    compiled = tci_glob_compile(arena, pattern, &glob);
    check(compiled >= 0);
    check(compiled > 0 || tci_glob_matches(&glob, path));
}

static void check_static(const char *pattern)
{
    char rooted[text_max + 2] = "/";
    size_t length;

    memcpy(rooted + 1, pattern, strlen(pattern) + 1);
    length = tci_glob_static_length(rooted);
    check(rooted[length] == '/' && strcspn(rooted, "*?\\") >= length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *newline = size > 0 ? memchr(data, '\n', size) : NULL;
    char pattern[text_max + 1] = "", path[text_max + 1] = "";
    size_t pattern_length = newline ? (size_t)(newline - data) : 0;
    size_t path_length = newline ? size - pattern_length - 1 : 0;
    struct tci_arena *arena;
    struct tci_glob glob;
    int compiled;

    if (!newline || pattern_length > text_max || path_length > text_max)
        return 0;
    memcpy(pattern, data, pattern_length);
    memcpy(path, newline + 1, path_length);
    arena = tci_arena_new();
    check(arena != NULL);
    check_static(pattern);
    compiled = tci_glob_compile(arena, pattern, &glob);
    check(compiled >= 0 && (compiled == 0 || strlen(pattern) > TCI_GLOB_TOKENS_MAX));
    if (compiled == 0 && is_path(path)) {
        bool matched = tci_glob_matches(&glob, path);
        check_walk(&glob, path, matched);
        check_against_plain(pattern, path, matched);
        check_escaped(arena, path);
    }
    tci_arena_free(arena);
    return 0;
}
