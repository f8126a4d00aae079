/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: searching one file, a window of it at a time: a file of any size takes the same memory. */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/utf8.h"
#include "inside/files_search.h"

enum {
    TEXT_MAX = 500,      /* bytes of a line in the answer */
    TEXT_BEFORE = 100,   /* of them before the match */
    BINARY_PROBE = 8192, /* bytes in which a NUL means that this is no text */
    SHOWN_MAX = 1 << 20, /* bytes of a path with every byte of it as \xNN */
    LINES_BETWEEN = 256, /* lines until the clock is asked again */
};

/* A window of the file, with the number of its first line. */
struct window {
    const char *begin, *end;
    uint64_t line;
};

static int64_t now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

bool tci_search_is_over(struct tci_search *search)
{
    if (search->stopped)
        return true;
    if (search->matches <= 0)
        search->stopped = "limit";
    else if (search->bytes <= 0)
        search->stopped = "bytes";
    else if (search->out.length > TCI_INSIDE_ANSWER_MAX - 128 * 1024)
        search->stopped = "answer_size";
    else if (now() > search->deadline)
        search->stopped = "time";
    return search->stopped;
}

/* The end of the line that begins at `at`. */
static const char *line_end(const struct window *window, const char *at)
{
    const char *newline = memchr(at, '\n', (size_t)(window->end - at));
    return newline ? newline : window->end;
}

/* A line as text, or a part of it around `match`; bytes that are not UTF-8 become U+FFFD. */
static bool write_line(struct tci_json *json, const char *key, const char *line, const char *end,
                       int64_t match)
{
    if (end > line && end[-1] == '\r')
        end--;
    const char *begin = match > TEXT_MAX - TEXT_BEFORE ? line + match - TEXT_BEFORE : line;
    const char *last = end - begin > TEXT_MAX ? begin + TEXT_MAX : end;
    /* Not in the middle of a character. */
    while (begin > line && begin < last && ((unsigned char)*begin & 0xc0) == 0x80)
        begin++;
    while (last < end && last > begin && ((unsigned char)*last & 0xc0) == 0x80)
        last--;
    tci_json_bytes(json, key, begin, (size_t)(last - begin));
    return begin > line || last < end;
}

static void write_before(struct tci_search *search, const struct window *window, const char *line)
{
    const char *at = line;
    for (size_t count = 0; count < search->context && at > window->begin; count++) {
        at--;
        while (at > window->begin && at[-1] != '\n')
            at--;
    }
    tci_json_array_begin(&search->json, "before");
    while (at < line) {
        const char *end = line_end(window, at);
        (void)write_line(&search->json, NULL, at, end, 0);
        at = end + 1;
    }
    tci_json_array_end(&search->json);
}

static void write_after(struct tci_search *search, const struct window *window, const char *end)
{
    tci_json_array_begin(&search->json, "after");
    for (size_t count = 0; count < search->context && end + 1 < window->end; count++) {
        const char *at = end + 1;
        end = line_end(window, at);
        (void)write_line(&search->json, NULL, at, end, 0);
    }
    tci_json_array_end(&search->json);
}

static void write_match(struct tci_search *search, const struct window *window, const char *path,
                        uint64_t number, const char *line, const char *end, int64_t match)
{
    struct tci_buf shown = TCI_BUF_INIT(SHOWN_MAX);
    bool escaped = tci_inside_name(&shown, path, strlen(path));
    tci_json_object_begin(&search->json, NULL);
    tci_json_bytes(&search->json, "path", shown.data ? shown.data : "", shown.length);
    tci_json_unsigned(&search->json, "line", number);
    if (write_line(&search->json, "text", line, end, match))
        tci_json_bool(&search->json, "cut", true);
    if (search->context) {
        write_before(search, window, line);
        write_after(search, window, end);
    }
    if (escaped)
        tci_json_bool(&search->json, "escaped", true);
    tci_json_object_end(&search->json);
    tci_buf_free(&shown);
}

/* Every line of the window. Its lines are counted. */
static void search_window(struct tci_search *search, struct window *window, const char *path)
{
    for (const char *line = window->begin; line < window->end;) {
        const char *end = line_end(window, line);
        /* So that "$" is the end of a line in files with two characters there, too. */
        const char *text_end = end > line && end[-1] == '\r' ? end - 1 : end;
        int64_t match = tci_matcher_find(search->matcher, line, (size_t)(text_end - line), path,
                                         window->line);
        if (match >= 0) {
            write_match(search, window, path, window->line, line, end, match);
            search->matches--;
        }
        bool look = match >= 0 || window->line % LINES_BETWEEN == 0;
        window->line += end < window->end;
        line = end + 1;
        if (look && line < window->end && tci_search_is_over(search))
            return;
    }
}

/* Fills the window behind the `kept` bytes. How many bytes it holds then; -1: it cannot be read. */
static int64_t fill(struct tci_search *search, int fd, size_t kept, size_t size, bool *ret_end)
{
    size_t used = kept;
    *ret_end = false;
    while (used < size) {
        ssize_t got = read(fd, search->window + used, size - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        *ret_end = got == 0;
        if (got == 0)
            break;
        used += (size_t)got;
        search->bytes -= got;
    }
    return (int64_t)used;
}

void tci_search_file(struct tci_search *search, int fd, const char *path)
{
    /* Small at first: most files are, and whether it is text is seen at once. */
    size_t kept = 0, size = TCI_SEARCH_FIRST;
    struct window window = { .line = 1 };
    bool at_end = false;
    while (!at_end && !search->stopped) {
        int64_t used = fill(search, fd, kept, size, &at_end);
        size_t probe = used > BINARY_PROBE ? BINARY_PROBE : used > 0 ? (size_t)used : 0;
        if (used < 0 || memchr(search->window, 0, probe)) {
            search->skipped++;
            break;
        }
        search->files += window.line == 1 && window.begin == NULL;
        const char *end = search->window + used;
        const char *last = at_end || !used ? NULL : memrchr(search->window, '\n', (size_t)used);
        window.begin = search->window;
        /* A line that is longer than the window is searched in pieces. */
        window.end = last ? last + 1 : end;
        search_window(search, &window, path);
        kept = (size_t)(end - window.end);
        memmove(search->window, window.end, kept);
        size = TCI_SEARCH_WINDOW;
        if (!at_end && tci_search_is_over(search))
            break;
    }
    close(fd);
}
