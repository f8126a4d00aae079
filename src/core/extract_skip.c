/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: opening below a handle, and saying what was not taken and why. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/sys.h"
#include "base/utf8.h"
#include "core/extract_internal.h"

int tci_extract_open(int directory, const char *path, int flags)
{
    int fd, tries = 0;

    /* EAGAIN: a rename came between, or somebody holds a lease. Not for ever: the enemy may go on. */
    do
        fd = tci_sys.open_beneath(directory, path, flags);
    while (fd < 0 && (errno == EINTR || errno == EAGAIN) && ++tries < 32);
    return fd;
}

bool tci_extract_is_fatal(int errnum, struct tc_error *reterr)
{
    if (errnum == ENOMEM) {
        tci_error_no_memory(reterr);
        return true;
    }
    if (errnum == EMFILE || errnum == ENFILE) {
        tci_error_errno(reterr, errnum, "cannot open the files of the call");
        tci_error_remedy(reterr, "raise the limit on open files (ulimit -n)");
        return true;
    }
    if (errnum == ENOSYS) {
        tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                      "files cannot be brought back safely: this kernel has no openat2");
        tci_error_remedy(reterr, "use Linux 5.6 or newer, or a tool without \"outputs\"");
        return true;
    }
    return false;
}

const char *tci_extract_kind(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFLNK:
        return "is a symbolic link, which is not followed";
    case S_IFIFO:
        return "is a FIFO and not a file";
    case S_IFSOCK:
        return "is a socket and not a file";
    case S_IFDIR:
        return "is a directory and not a file";
    default:
        return "is a device and not a file";
    }
}

/* Line breaks and terminal escapes would forge lines in a listing; direction overrides and invisible
 * characters show another name than the one that is there. */
static bool is_clean_character(uint32_t c)
{
    return c >= 0x20 && !(c >= 0x7f && c <= 0x9f) && !(c >= 0x2028 && c <= 0x202e) &&
           !tci_utf8_is_deceptive(c);
}

bool tci_extract_is_clean(const char *path)
{
    size_t length = strlen(path), i = 0;

    while (i < length) {
        uint32_t c;
        size_t size = tci_utf8_decode(path + i, length - i, &c);
        if (size == 0 || !is_clean_character(c))
            return false;
        i += size;
    }
    return true;
}

/* A path that is not clean, so that it can be shown and told from any other. */
static const char *escape(struct tci_arena *arena, const char *path)
{
    static const char digits[] = "0123456789abcdef";
    char *text = tci_arena_array(arena, strlen(path) + 1, 4), *to = text;

    if (!text)
        return NULL;
    for (; *path; path++) {
        unsigned char c = (unsigned char)*path;
        if (c >= 0x20 && c < 0x7f && c != '\\') {
            *to++ = (char)c;
            continue;
        }
        *to++ = '\\';
        *to++ = 'x';
        *to++ = digits[c >> 4];
        *to++ = digits[c & 15];
    }
    *to = '\0';
    return text;
}

int tci_extract_skip(struct tci_extraction *x, const char *path, const char *format, ...)
{
    struct tci_extracted *ret = x->ret;
    struct tc_denial skipped = { .kind = "output" };
    char reason[256];
    va_list args;

    if (ret->skipped_count > TCI_EXTRACT_SKIPPED_MAX)
        return 0;
    if (!ret->skipped)
        ret->skipped = tci_arena_new_array(x->arena, TCI_EXTRACT_SKIPPED_MAX + 1, struct tc_denial);
    if (!ret->skipped)
        return tci_error_no_memory(x->reterr);
    va_start(args, format);
    (void)vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    if (ret->skipped_count == TCI_EXTRACT_SKIPPED_MAX) {
        skipped = (struct tc_denial){ "more", "", "more files were not taken than are listed" };
    } else {
        skipped.target = tci_extract_is_clean(path) ? tci_arena_strdup(x->arena, path)
                                                    : escape(x->arena, path);
        skipped.rule = tci_arena_strdup(x->arena, reason);
    }
    if (!skipped.target || !skipped.rule)
        return tci_error_no_memory(x->reterr);
    ret->skipped[ret->skipped_count++] = skipped;
    return 0;
}
