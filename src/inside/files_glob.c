/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: which files search_files opens: a pattern for names, translated to a regular expression.
 *
 *   *       any characters of a name          ?       one of them
 *   **      any characters, slashes too       [a-z]   one of these; [!a-z] none of these
 *   {a,b}   a or b                            \x      x itself
 *
 * The attack: a pattern that takes for ever on a chosen name. The matcher counts its steps and gives
 * up; then the name does not match.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <ctype.h>
#include <pcre2.h>
#include <string.h>
#include "inside/files.h"

enum { STEPS_MAX = 10000 };

struct tci_files_glob {
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *context;
    bool whole_path;
};

static void add_literal(struct tci_buf *out, char c)
{
    if ((unsigned char)c < 0x80 && !isalnum((unsigned char)c))
        tci_buf_char(out, '\\');
    tci_buf_char(out, c);
}

/* A class from its bracket on; how many bytes it has, or 0 when it has no end. */
static size_t add_class(struct tci_buf *out, const char *text, size_t length)
{
    size_t at = 1;
    bool negated = at < length && (text[at] == '!' || text[at] == '^');
    at += negated;
    size_t first = at;
    size_t end = first + 1; /* a bracket right at the beginning is a member */
    while (end < length && text[end] != ']')
        end++;
    if (end >= length)
        return 0;
    /* A slash is no character of a name: "[^a]" must not leave its directory. */
    tci_buf_string(out, negated ? "(?!/)[^" : "(?!/)[");
    for (; at < end; at++)
        if (text[at] == '-' && at > first && at + 1 < end)
            tci_buf_char(out, '-');
        else
            add_literal(out, text[at]);
    tci_buf_char(out, ']');
    return end + 1;
}

static size_t add_star(struct tci_buf *out, const char *text, size_t length)
{
    if (length < 2 || text[1] != '*') {
        tci_buf_string(out, "[^/]*");
        return 1;
    }
    bool slash = length > 2 && text[2] == '/';
    tci_buf_string(out, slash ? "(?:.*/)?" : ".*");
    return slash ? 3 : 2;
}

/* What stands at `text`; how many bytes of it were taken. */
static size_t add_next(struct tci_buf *out, const char *text, size_t length, unsigned *braces)
{
    size_t taken = 0;
    switch (*text) {
    case '*':
        return add_star(out, text, length);
    case '?':
        tci_buf_string(out, "[^/]");
        return 1;
    case '[':
        taken = add_class(out, text, length);
        break;
    case '{':
        if (memchr(text, '}', length)) {
            ++*braces;
            tci_buf_string(out, "(?:");
            return 1;
        }
        break;
    case ',':
    case '}':
        if (*braces) {
            tci_buf_char(out, *text == ',' ? '|' : ')');
            *braces -= *text == '}';
            return 1;
        }
        break;
    case '\\':
        if (length > 1) {
            add_literal(out, text[1]);
            return 2;
        }
        break;
    default:
        break;
    }
    if (!taken)
        add_literal(out, *text);
    return taken ? taken : 1;
}

struct tci_files_glob *tci_files_glob_compile(const char *text, size_t length)
{
    if (!text || !length)
        return NULL;
    struct tci_files_glob *glob = tci_inside_alloc(sizeof *glob);
    glob->whole_path = memchr(text, '/', length) != NULL;
    struct tci_buf pattern = TCI_BUF_INIT(65536);
    unsigned braces = 0;
    size_t at = text[0] == '/' ? 1 : length > 1 && text[0] == '.' && text[1] == '/' ? 2 : 0;
    while (at < length)
        at += add_next(&pattern, text + at, length - at, &braces);
    while (braces--)
        tci_buf_char(&pattern, ')');
    int code = 0;
    size_t place;
    glob->code = pcre2_compile((PCRE2_SPTR)(pattern.data ? pattern.data : ""), pattern.length,
                               PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_DOTALL | PCRE2_ANCHORED |
                                   PCRE2_ENDANCHORED,
                               &code, &place, NULL);
    glob->data = glob->code ? pcre2_match_data_create(1, NULL) : NULL;
    glob->context = pcre2_match_context_create(NULL);
    if (!glob->data || !glob->context)
        tci_inside_fail("the argument \"glob\" is not a pattern: %s",
                        tci_inside_shown(text, length));
    (void)pcre2_set_match_limit(glob->context, STEPS_MAX);
    tci_buf_free(&pattern);
    return glob;
}

bool tci_files_glob_matches(const struct tci_files_glob *glob, const char *path, const char *name)
{
    if (!glob)
        return true;
    const char *subject = glob->whole_path ? path : name;
    return pcre2_match(glob->code, (PCRE2_SPTR)subject, strlen(subject), 0, 0, glob->data,
                       glob->context) >= 0;
}
