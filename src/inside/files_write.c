/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: write_file: a whole new file, in place of an old one, or behind its end. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/base64.h"
#include "inside/files.h"

struct writing {
    const char *path;
    const char *bytes;
    size_t length;
    bool append, only_new;
};

/* The bytes that the content stands for. */
static void read_content(const json_t *arguments, struct writing *writing)
{
    size_t length;
    const char *encoding = tci_inside_string(arguments, "encoding", false, &length);
    const char *content = tci_inside_string(arguments, "content", true, &writing->length);
    writing->bytes = content;
    if (!encoding || strcmp(encoding, "utf-8") == 0)
        return;
    if (strcmp(encoding, "base64") != 0)
        tci_inside_fail("the argument \"encoding\" is neither \"utf-8\" nor \"base64\"");
    struct tci_buf decoded = TCI_BUF_INIT(TCI_INSIDE_ARGUMENTS_MAX);
    if (tci_base64_decode(&decoded, content, writing->length) < 0)
        tci_inside_fail("the content is not base64: no line breaks, padded with \"=\"");
    writing->bytes = decoded.data ? decoded.data : "";
    writing->length = decoded.length;
}

static void read_mode(const json_t *arguments, struct writing *writing)
{
    size_t length;
    const char *mode = tci_inside_string(arguments, "mode", false, &length);
    writing->append = mode && strcmp(mode, "append") == 0;
    writing->only_new = mode && strcmp(mode, "create") == 0;
    if (mode && !writing->append && !writing->only_new && strcmp(mode, "overwrite") != 0)
        tci_inside_fail("the argument \"mode\" is none of \"overwrite\", \"append\", \"create\"");
}

/* The directories above the file, one after the other. */
static void make_directories(const char *path)
{
    char *copy = strdup(path);
    if (!copy)
        tci_inside_no_memory();
    for (char *at = strchr(copy + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        /* Where it exists, some file systems say EROFS or EACCES before EEXIST. */
        struct stat status;
        if (mkdir(copy, 0777) < 0) {
            int problem = errno;
            if (stat(copy, &status) < 0)
                tci_inside_fail_path(problem, copy, "be made");
        }
        *at = '/';
    }
    free(copy);
}

/* Behind the end of a file that is there. What cannot be written whole is taken back. */
static void append(const struct writing *writing, const char *resolved)
{
    int fd = open(resolved, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) < 0)
        tci_inside_fail_path(errno, writing->path, "be written");
    for (size_t done = 0; done < writing->length;) {
        ssize_t put = write(fd, writing->bytes + done, writing->length - done);
        if (put < 0 && errno != EINTR) {
            int problem = errno;
            if (ftruncate(fd, status.st_size) < 0)
                tci_inside_fail("%s got only a part of the content: %s",
                                tci_inside_shown(writing->path, strlen(writing->path)),
                                strerror(problem));
            tci_inside_fail_path(problem, writing->path, "be written");
        }
        done += put > 0 ? (size_t)put : 0;
    }
    close(fd);
}

static void check_old(const struct writing *writing, const struct stat *old)
{
    const char *shown = tci_inside_shown(writing->path, strlen(writing->path));
    if (S_ISDIR(old->st_mode))
        tci_inside_fail("%s is a directory: give the path of a file in it", shown);
    if (!S_ISREG(old->st_mode))
        tci_inside_fail("%s is not a regular file", shown);
    if (writing->only_new)
        tci_inside_fail(
            "%s exists already: mode \"overwrite\" replaces it, edit_file changes a part", shown);
}

static void answer(const struct writing *writing, bool created)
{
    struct tci_buf out = TCI_BUF_INIT(TCI_INSIDE_ANSWER_MAX);
    struct tci_json json = { .out = &out };
    tci_json_object_begin(&json, NULL);
    tci_json_string(&json, "path", writing->path);
    tci_json_unsigned(&json, "bytes", writing->length);
    tci_json_bool(&json, "created", created);
    tci_json_object_end(&json);
    tci_buf_char(&out, '\n');
    tci_inside_answer(&out);
}

void tci_files_write(const json_t *arguments)
{
    struct writing writing = { .path = tci_inside_path(arguments, "path", NULL) };
    read_content(arguments, &writing);
    read_mode(arguments, &writing);
    if (writing.path[strlen(writing.path) - 1] == '/')
        tci_inside_fail("%s names a directory: give the path of a file in it",
                        tci_inside_shown(writing.path, strlen(writing.path)));
    bool make = tci_inside_bool(arguments, "create_directories", false);
    if (make)
        make_directories(writing.path);
    char *resolved;
    struct stat old;
    bool is_there = tci_files_resolve(writing.path, &resolved, &old);
    if (is_there)
        check_old(&writing, &old);
    if (is_there && writing.append)
        append(&writing, resolved);
    else
        tci_files_put(resolved, writing.path, writing.bytes, writing.length,
                      is_there ? TCI_FILES_REPLACE : TCI_FILES_NEW, &old);
    answer(&writing, !is_there);
}
