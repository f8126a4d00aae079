/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the sentences of built-in tools: what failed, and what a model can do about it. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/utf8.h"
#include "inside/inside.h"

enum {
    SHOWN_MAX = 300, /* bytes of a name in a sentence */
    ESCAPED_MAX = 8 * SHOWN_MAX,
};

static void say(const char *text, size_t length)
{
    while (length) {
        ssize_t put = write(STDERR_FILENO, text, length);
        if (put < 0 && errno != EINTR)
            return;
        text += put > 0 ? put : 0;
        length -= put > 0 ? (size_t)put : 0;
    }
}

void tci_inside_fail(const char *format, ...)
{
    char sentence[2048];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(sentence, sizeof sentence - 1, format, arguments);
    va_end(arguments);
    size_t used = length < 0 ? 0 : strnlen(sentence, sizeof sentence - 1);
    sentence[used] = '\n';
    say(sentence, used + 1);
    _exit(1);
}

void tci_inside_no_memory(void)
{
    static const char text[] = "there is not enough memory in this cage\n";
    say(text, sizeof text - 1);
    _exit(1);
}

bool tci_inside_name(struct tci_buf *out, const char *name, size_t length)
{
    bool escaped = false;
    for (size_t at = 0; at < length;) {
        uint32_t code_point;
        size_t size = tci_utf8_decode(name + at, length - at, &code_point);
        if (size) {
            tci_buf_append(out, name + at, size);
        } else {
            tci_buf_printf(out, "\\x%02x", (unsigned char)name[at]);
            escaped = true;
        }
        at += size ? size : 1;
    }
    return escaped;
}

const char *tci_inside_shown(const char *text, size_t length)
{
    struct tci_buf out = TCI_BUF_INIT(ESCAPED_MAX);
    tci_buf_char(&out, '"');
    size_t at = 0;
    while (at < length && at < SHOWN_MAX) {
        uint32_t code_point = 0;
        size_t size = tci_utf8_decode(text + at, length - at, &code_point);
        bool plain = size && code_point >= 0x20 && (code_point < 0x7f || code_point > 0x9f) &&
                     code_point != '"' && !tci_utf8_is_deceptive(code_point);
        if (plain)
            tci_buf_append(&out, text + at, size);
        else if (code_point == '"')
            tci_buf_string(&out, "\\\"");
        else
            for (size_t i = 0; i < (size ? size : 1); i++)
                tci_buf_printf(&out, "\\x%02x", (unsigned char)text[at + i]);
        at += size ? size : 1;
    }
    tci_buf_string(&out, at < length ? "\"..." : "\"");
    return out.data ? out.data : "\"\"";
}

/* What a model can do about it; NULL: the kernel's own words must do. */
static const char *advice(int errnum)
{
    switch (errnum) {
    case ENOENT:
        return "it does not exist here. Only paths that the policy grants are visible in this cage";
    case EROFS:
        return "the policy grants it read-only, or does not grant it";
    case EACCES:
    case EPERM:
        return "permission denied, by the policy or by the file's own mode";
    case ENOSPC:
    case EDQUOT:
        return "there is no space left in the part of the disk that this cage may use";
    case ENOTDIR:
        return "a part of the path is not a directory";
    case EISDIR:
        return "it is a directory";
    case ELOOP:
        return "its symbolic links lead in a circle";
    case ENAMETOOLONG:
        return "a name in it is too long";
    default:
        return NULL;
    }
}

void tci_inside_fail_path(int errnum, const char *path, const char *what)
{
    const char *reason = advice(errnum);
    tci_inside_fail("%s cannot %s: %s", tci_inside_shown(path, strlen(path)), what,
                    reason ? reason : strerror(errnum));
}
