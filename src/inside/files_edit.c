/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: edit_file: an exact text in a file is replaced by another. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "inside/files.h"

enum {
    FILE_MAX = 8 << 20,  /* bytes of a file, before and after */
    DIFF_MAX = 16 << 10, /* bytes of the diff; a larger one is left out */
    DIFF_CONTEXT = 2,    /* lines before and after */
};

struct editing {
    const char *path, *old_text, *new_text;
    size_t old_length, new_length;
    const char *file;
    size_t file_length;
    const char *first; /* the first occurrence */
    size_t count;
};

static size_t line_of(const struct editing *editing, const char *at)
{
    size_t line = 1;
    for (const char *p = editing->file; p < at; p++)
        line += *p == '\n';
    return line;
}

static const char *find(const struct editing *editing, const char *from)
{
    size_t rest = (size_t)(editing->file + editing->file_length - from);
    return memmem(from, rest, editing->old_text, editing->old_length);
}

static void count_occurrences(struct editing *editing)
{
    editing->first = find(editing, editing->file);
    for (const char *at = editing->first; at; at = find(editing, at + editing->old_length))
        editing->count++;
}

/* The text with each run of white space as one space, and where each byte of it was. */
static size_t squeeze(const char *text, size_t length, char *out, uint32_t *places)
{
    size_t used = 0;
    for (size_t i = 0; i < length; i++) {
        bool space = isspace((unsigned char)text[i]) != 0;
        if (space && used && out[used - 1] == ' ')
            continue;
        if (places)
            places[used] = (uint32_t)i;
        out[used++] = space ? ' ' : text[i];
    }
    return used;
}

/* Almost there? Then the model need not guess what is different. */
static void fail_not_found(const struct editing *editing)
{
    const char *shown = tci_inside_shown(editing->path, strlen(editing->path));
    char *file = tci_inside_alloc(editing->file_length),
         *old = tci_inside_alloc(editing->old_length);
    uint32_t *places = tci_inside_alloc(editing->file_length * sizeof places[0]);
    size_t file_length = squeeze(editing->file, editing->file_length, file, places);
    size_t old_length = squeeze(editing->old_text, editing->old_length, old, NULL);
    const char *words = old;
    /* White space around the text says nothing. */
    while (old_length && *words == ' ') {
        words++;
        old_length--;
    }
    while (old_length && words[old_length - 1] == ' ')
        old_length--;
    const char *near = old_length ? memmem(file, file_length, words, old_length) : NULL;
    if (near)
        tci_inside_fail("old_text does not occur in %s. With other white space (spaces, tabs, line "
                        "ends) it does, at line %zu: read those lines and copy them exactly",
                        shown, line_of(editing, editing->file + places[near - file]));
    tci_inside_fail("old_text does not occur in %s: read the file and copy the text exactly",
                    shown);
}

/* A new file, with every occurrence that is to be replaced. */
static void build(const struct editing *editing, struct tci_buf *out)
{
    const char *from = editing->file, *end = editing->file + editing->file_length;
    for (const char *at = editing->first; at; at = find(editing, from)) {
        tci_buf_append(out, from, (size_t)(at - from));
        tci_buf_append(out, editing->new_text, editing->new_length);
        from = at + editing->old_length;
    }
    tci_buf_append(out, from, (size_t)(end - from));
    if (out->too_large)
        tci_inside_fail("%s would be larger than %d MB",
                        tci_inside_shown(editing->path, strlen(editing->path)), FILE_MAX >> 20);
    if (out->no_memory)
        tci_inside_no_memory();
}

/* Lines of a part of the file, each behind a sign. */
static void add_lines(struct tci_buf *out, char sign, const char *text, size_t length)
{
    while (length) {
        const char *newline = memchr(text, '\n', length);
        size_t size = newline ? (size_t)(newline - text) + 1 : length;
        tci_buf_char(out, sign);
        tci_buf_append(out, text, size);
        if (!newline)
            tci_buf_string(out, "\n");
        text += size;
        length -= size;
    }
}

/* Where `count` lines before `at` begin. */
static const char *lines_before(const struct editing *editing, const char *at, unsigned count)
{
    while (at > editing->file) {
        if (at[-1] == '\n' && count-- == 0)
            break;
        at--;
    }
    return at;
}

static const char *lines_after(const struct editing *editing, const char *at, unsigned count)
{
    const char *end = editing->file + editing->file_length;
    while (at < end && count) {
        count -= *at == '\n';
        at++;
    }
    return at;
}

/* The first replacement, with the lines around it. */
static void write_diff(const struct editing *editing, struct tci_buf *out)
{
    const char *begin = lines_before(editing, editing->first, 0);
    const char *behind = editing->first + editing->old_length;
    bool whole = editing->old_text[editing->old_length - 1] == '\n';
    const char *end = whole ? behind : lines_after(editing, behind, 1);
    const char *context = lines_before(editing, begin, DIFF_CONTEXT);
    const char *context_end = lines_after(editing, end, DIFF_CONTEXT);
    struct tci_buf after = TCI_BUF_INIT(DIFF_MAX);
    tci_buf_append(&after, begin, (size_t)(editing->first - begin));
    tci_buf_append(&after, editing->new_text, editing->new_length);
    tci_buf_append(&after, behind, (size_t)(end - behind));
    tci_buf_printf(out, "@@ line %zu @@\n", line_of(editing, context));
    add_lines(out, ' ', context, (size_t)(begin - context));
    add_lines(out, '-', begin, (size_t)(end - begin));
    add_lines(out, '+', after.data ? after.data : "", after.length);
    add_lines(out, ' ', end, (size_t)(context_end - end));
    out->too_large |= after.too_large;
    tci_buf_free(&after);
}

static void answer(const struct editing *editing)
{
    struct tci_buf out = TCI_BUF_INIT(TCI_INSIDE_ANSWER_MAX), diff = TCI_BUF_INIT(DIFF_MAX);
    struct tci_json json = { .out = &out };
    write_diff(editing, &diff);
    tci_json_object_begin(&json, NULL);
    tci_json_string(&json, "path", editing->path);
    tci_json_unsigned(&json, "replacements", editing->count);
    tci_json_unsigned(&json, "line", line_of(editing, editing->first));
    if (!diff.too_large && !diff.no_memory)
        tci_json_bytes(&json, "diff", diff.data, diff.length);
    tci_json_object_end(&json);
    tci_buf_char(&out, '\n');
    tci_inside_answer(&out);
}

static void check_texts(const struct editing *editing)
{
    if (!editing->old_length)
        tci_inside_fail("old_text is empty: write_file makes a new file");
    if (editing->old_length == editing->new_length &&
        memcmp(editing->old_text, editing->new_text, editing->old_length) == 0)
        tci_inside_fail("old_text and new_text are the same: there is nothing to change");
}

/* The whole file; it must hold still. */
static void load(struct editing *editing, struct stat *ret_status)
{
    const char *shown = tci_inside_shown(editing->path, strlen(editing->path));
    int fd = tci_files_open(editing->path, ret_status);
    if (ret_status->st_size > FILE_MAX)
        tci_inside_fail("%s is larger than %d MB, which is too much to edit", shown,
                        FILE_MAX >> 20);
    size_t size = (size_t)ret_status->st_size;
    char *file = tci_inside_alloc(size + 1);
    editing->file = file;
    editing->file_length = tci_files_pread(fd, editing->path, file, size + 1, 0);
    close(fd);
    if (editing->file_length != size)
        tci_inside_fail("%s changes while it is read: try again", shown);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

void tci_files_edit(const json_t *arguments)
{
    struct editing editing = { .path = tci_inside_path(arguments, "path", NULL) };
    editing.old_text = tci_inside_string(arguments, "old_text", true, &editing.old_length);
    editing.new_text = tci_inside_string(arguments, "new_text", true, &editing.new_length);
    bool all = tci_inside_bool(arguments, "replace_all", false);
    check_texts(&editing);
    struct stat before, now;
    load(&editing, &before);
    count_occurrences(&editing);
    if (!editing.count)
        fail_not_found(&editing);
    const char *shown = tci_inside_shown(editing.path, strlen(editing.path));
    if (editing.count > 1 && !all)
        tci_inside_fail(
            "old_text occurs %zu times in %s, first at line %zu: add lines around it until "
            "it is the only one, or set replace_all",
            editing.count, shown, line_of(&editing, editing.first));
    struct tci_buf content = TCI_BUF_INIT(FILE_MAX);
    build(&editing, &content);
    char *resolved;
    /* The attack: another call has written the file since, and its work would be lost. */
    if (!tci_files_resolve(editing.path, &resolved, &now) || !is_same(&before, &now))
        tci_inside_fail("%s has changed while it was edited: read it again", shown);
    tci_files_put(resolved, editing.path, content.data ? content.data : "", content.length,
                  TCI_FILES_REPLACE, &now);
    answer(&editing);
}
