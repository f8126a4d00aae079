/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: read_file: a part of a file, by lines or from a byte on, as text or as base64. */
#include <stdlib.h>
#include <string.h>
#include "base/base64.h"
#include "base/utf8.h"
#include "inside/files.h"

enum {
    CONTENT_MAX = 256 << 10, /* bytes of one answer */
    CONTENT_MORE = 4,        /* read besides, to see whether there is more */
    ENCODED_CONTENT_MAX = 2 * CONTENT_MAX,
    SCAN_CHUNK = 256 << 10,
    SCAN_MAX = 256 << 20, /* how far a line is looked for */
    ENCODED_MAX = TCI_INSIDE_ANSWER_MAX - 64 * 1024,
};

struct reading {
    const char *path;
    int fd;
    int64_t line;     /* number of the first line; 0: reading by bytes */
    int64_t limit;    /* lines; 0: no limit */
    int64_t start;    /* byte of the file where the content begins */
    size_t max_bytes; /* of the content */
    char *content;
    size_t length;
    bool more;     /* there is something behind the content */
    bool is_text;  /* UTF-8 without NUL */
    size_t lines;  /* in the content */
    bool at_break; /* the content ends where a line ends */
};

/* The byte where line number `line` begins. The attack: a sparse file of a terabyte without a line
 * end in it; so the way is bounded. */
static int64_t find_line(const struct reading *reading)
{
    int64_t offset = 0, seen = 1;
    char *chunk = tci_inside_alloc(SCAN_CHUNK);
    while (seen < reading->line) {
        if (offset >= SCAN_MAX)
            tci_inside_fail("line %lld lies more than %d MB into %s: use byte_offset",
                            (long long)reading->line, SCAN_MAX >> 20,
                            tci_inside_shown(reading->path, strlen(reading->path)));
        size_t got = tci_files_pread(reading->fd, reading->path, chunk, SCAN_CHUNK, offset);
        const char *at = chunk, *end = chunk + got;
        while (seen < reading->line && at && at < end) {
            at = memchr(at, '\n', (size_t)(end - at));
            if (at) {
                at++;
                seen++;
            }
        }
        offset += at ? at - chunk : (int64_t)got;
        if (seen < reading->line && got < SCAN_CHUNK)
            tci_inside_fail("%s ends before line %lld: it has %lld line ends",
                            tci_inside_shown(reading->path, strlen(reading->path)),
                            (long long)reading->line, (long long)(seen - 1));
    }
    free(chunk);
    return offset;
}

/* Cuts the content behind its first `limit` lines. */
static void cut_lines(struct reading *reading)
{
    const char *at = reading->content, *end = at + reading->length;
    for (int64_t count = 0; count < reading->limit; count++) {
        at = memchr(at, '\n', (size_t)(end - at));
        if (!at)
            return;
        at++;
    }
    reading->more |= at < end;
    reading->length = (size_t)(at - reading->content);
}

/* How many bytes a character takes in JSON. */
static size_t encoded_size(uint32_t code_point, size_t size)
{
    if (code_point < 0x20 || code_point == 0x7f)
        return 6;
    return code_point == '"' || code_point == '\\' ? 2 : size;
}

/* Is the content text? Cuts what does not fit into an answer, and a character that was cut. */
static void look_at_text(struct reading *reading)
{
    size_t at = 0, encoded = 0;
    while (at < reading->length && encoded < ENCODED_MAX) {
        uint32_t code_point;
        size_t size = tci_utf8_decode(reading->content + at, reading->length - at, &code_point);
        bool cut = !size && reading->more && at > 0 && reading->length - at < 4;
        if (cut)
            break;
        if (!size || code_point == 0)
            return;
        encoded += encoded_size(code_point, size);
        at += size;
    }
    reading->is_text = true;
    reading->more |= at < reading->length;
    reading->length = at;
}

/* A text that was cut by bytes ends with a whole line where there is one, so that the next call can
 * go on with a line. */
static void cut_at_line_end(struct reading *reading)
{
    const char *last = reading->length ? memrchr(reading->content, '\n', reading->length) : NULL;
    if (last && reading->more)
        reading->length = (size_t)(last - reading->content) + 1;
    reading->at_break = last && last == reading->content + reading->length - 1;
    for (size_t i = 0; i < reading->length; i++)
        reading->lines += reading->content[i] == '\n';
    reading->lines += reading->length && !reading->at_break;
}

static void read_content(struct reading *reading)
{
    size_t size = reading->max_bytes + CONTENT_MORE;
    reading->content = tci_inside_alloc(size);
    reading->length = tci_files_pread(reading->fd, reading->path, reading->content, size,
                                      reading->start);
    if (reading->length > reading->max_bytes) {
        reading->length = reading->max_bytes;
        reading->more = true;
    }
    if (reading->limit)
        cut_lines(reading);
    look_at_text(reading);
    if (reading->is_text)
        cut_at_line_end(reading);
}

static void answer(const struct reading *reading, int64_t size)
{
    int64_t end = reading->start + (int64_t)reading->length;
    struct tci_buf out = TCI_BUF_INIT(TCI_INSIDE_ANSWER_MAX);
    struct tci_json json = { .out = &out };
    tci_json_object_begin(&json, NULL);
    tci_json_string(&json, "path", reading->path);
    if (reading->is_text) {
        tci_json_bytes(&json, "content", reading->content, reading->length);
    } else {
        struct tci_buf text = TCI_BUF_INIT(ENCODED_CONTENT_MAX);
        tci_base64_encode(&text, reading->content, reading->length);
        tci_json_bytes(&json, "content", text.data ? text.data : "", text.length);
    }
    tci_json_string(&json, "encoding", reading->is_text ? "utf-8" : "base64");
    /* Files of /proc have no size, and files that grow have another by now. */
    tci_json_integer(&json, "size", size > end ? size : end);
    tci_json_unsigned(&json, "lines", reading->lines);
    tci_json_bool(&json, "truncated", reading->more);
    if (reading->more) {
        if (reading->line && reading->at_break)
            tci_json_integer(&json, "next_line", reading->line + (int64_t)reading->lines);
        tci_json_integer(&json, "next_byte", end);
    }
    tci_json_object_end(&json);
    tci_buf_char(&out, '\n');
    tci_inside_answer(&out);
}

void tci_files_read(const json_t *arguments)
{
    struct reading reading = {
        .path = tci_inside_path(arguments, "path", NULL),
        .line = tci_inside_integer(arguments, "offset", 1, INT32_MAX, 0),
        .limit = tci_inside_integer(arguments, "limit", 1, INT32_MAX, 0),
        .start = tci_inside_integer(arguments, "byte_offset", 0, INT64_MAX / 2, -1),
        .max_bytes = (size_t)tci_inside_integer(arguments, "max_bytes", 1, CONTENT_MAX,
                                                CONTENT_MAX),
    };
    if (reading.line && reading.start >= 0)
        tci_inside_fail("give offset (a line) or byte_offset, not both");
    if (!reading.line && reading.start < 0)
        reading.line = 1;
    struct stat status;
    reading.fd = tci_files_open(reading.path, &status);
    if (reading.line)
        reading.start = find_line(&reading);
    else if (reading.start > status.st_size && status.st_size)
        tci_inside_fail(
            "byte %lld is behind the end of %s, which has %lld bytes", (long long)reading.start,
            tci_inside_shown(reading.path, strlen(reading.path)), (long long)status.st_size);
    read_content(&reading);
    answer(&reading, status.st_size);
}
