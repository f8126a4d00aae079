/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what is checked before libyaml sees the text: encoding, characters that readers of YAML
 * disagree about, directives, and what stands behind the document.
 */
#include "policy/yaml_internal.h"

#include <stdio.h>
#include <string.h>
#include "base/utf8.h"

/* ---- the text, before libyaml sees it --------------------------------------------------- */

static int refuse_character(struct tci_yaml *r, uint32_t c, struct tci_pos pos)
{
    struct tc_error *e = r->reterr;

    if (c == '\r') {
        tci_error_set(e, TC_ERROR_SYNTAX,
                      "a carriage return without a line feed, which hides text in many editors");
        tci_error_remedy(e, "save the file with LF or CRLF line ends; in double quotes write \\r");
    } else if (c == 0) {
        tci_error_set(e, TC_ERROR_SYNTAX, "a NUL byte is not allowed");
        tci_error_remedy(e, "save the file as UTF-8 if it is UTF-16; in double quotes write \\0");
    } else if (c == 0x85 || c == 0x2028 || c == 0x2029) {
        tci_error_set(e, TC_ERROR_SYNTAX,
                      "U+%04X is the end of a line to some YAML readers and not to others", c);
    } else if (c == 0xfeff) {
        tci_error_set(e, TC_ERROR_SYNTAX,
                      "a byte order mark (U+FEFF) that is not at the start of the file");
    } else {
        tci_error_set(e, TC_ERROR_SYNTAX, "the control character U+%04X is not allowed", c);
    }
    tci_error_remedy(e, "remove it, or write it as an escape in double quotes: \"\\u%04X\"", c);
    return tci_yaml_at(r, pos);
}

static bool is_allowed(uint32_t c, bool before_line_feed)
{
    if (c < 0x20)
        return c == '\t' || c == '\n' || (c == '\r' && before_line_feed);
    return !(c >= 0x7f && c <= 0x9f) && c != 0x2028 && c != 0x2029 && c != 0xfeff && c != 0xfffe &&
           c != 0xffff;
}

/* Checks every character, and counts characters and lines on the way, as libyaml will. */
static int check_characters(struct tci_yaml *r)
{
    struct tci_pos pos = tci_pos(1, 1);
    size_t done = 0, size;

    for (; done < r->length; done += size, r->characters++) {
        const char *p = r->bytes + done;
        uint32_t c = 0;
        size = tci_utf8_decode(p, r->length - done, &c);
        if (!size) {
            tci_error_set(r->reterr, TC_ERROR_SYNTAX, "the byte \\x%02X is not UTF-8 here",
                          (unsigned char)*p);
            tci_error_remedy(r->reterr, "save the file as UTF-8");
            return tci_yaml_at(r, pos);
        }
        if (!is_allowed(c, done + 1 < r->length && p[1] == '\n'))
            return refuse_character(r, c, pos);
        pos.column++;
        if (c == '\n')
            pos = tci_pos(pos.line + 1, 1);
    }
    r->end = pos;
    return 0;
}

/* UTF-16 and UTF-32, with or without a byte order mark (then a file starts with ASCII). libyaml
 * would read UTF-16; toolcage and whoever greps the policy would not see the same text. */
static bool is_wide(const unsigned char *b, size_t length)
{
    if (length >= 2 && ((b[0] == 0xff && b[1] == 0xfe) || (b[0] == 0xfe && b[1] == 0xff)))
        return true;
    return length >= 4 && ((!b[0] && (!b[1] || !b[2])) || (b[0] && !b[1] && !b[3]));
}

int tci_yaml_check_text(struct tci_yaml *r)
{
    if (r->length > TCI_YAML_SIZE_MAX) {
        tci_error_set(r->reterr, TC_ERROR_TOO_LARGE,
                      "the YAML text has %zu bytes, more than the %d that are read", r->length,
                      TCI_YAML_SIZE_MAX);
        tci_error_remedy(r->reterr, "split the file, or write it as TOML");
        return -1;
    }
    if (is_wide((const unsigned char *)r->bytes, r->length)) {
        tci_error_set(r->reterr, TC_ERROR_SYNTAX, "the file is UTF-16 or UTF-32, not UTF-8");
        tci_error_remedy(r->reterr, "save the file as UTF-8");
        return tci_yaml_at(r, tci_pos(1, 1));
    }
    if (r->length >= 3 && memcmp(r->bytes, "\xef\xbb\xbf", 3) == 0) {
        r->bytes += 3;
        r->length -= 3;
    }
    return check_characters(r);
}

/* ---- between documents ------------------------------------------------------------------ */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Does the line start with this word, and does the word end there? */
static bool starts_with(struct tci_text line, const char *word)
{
    size_t length = strlen(word);
    return line.length >= length && memcmp(line.data, word, length) == 0 &&
           (line.length == length || is_blank(line.data[length]));
}

/* Takes the next line off `rest`. */
static struct tci_text take_line(struct tci_text *rest)
{
    const char *feed = memchr(rest->data, '\n', rest->length);
    struct tci_text line = { rest->data, feed ? (size_t)(feed - rest->data) + 1 : rest->length };
    rest->data += line.length;
    rest->length -= line.length;
    return line;
}

/* Blank, a comment, or the end of a document: nothing that could belong to the next one. */
static bool is_idle(struct tci_text line)
{
    size_t i = 0;
    while (i < line.length && is_blank(line.data[i]))
        i++;
    return i == line.length || line.data[i] == '#' || starts_with(line, "...");
}

/* The lines before the document: refuses a %TAG among them. */
int tci_yaml_check_directives(struct tci_yaml *r)
{
    struct tci_text rest = { r->bytes, r->length };
    struct tci_pos pos = tci_pos(1, 1);

    for (; rest.length; pos.line++) {
        struct tci_text line = take_line(&rest);
        if (starts_with(line, "%TAG")) {
            tci_error_set(r->reterr, TC_ERROR_SYNTAX, "%%TAG directives are not allowed");
            tci_error_remedy(r->reterr, "remove the line, and all tags (!name) with it");
            return tci_yaml_at(r, pos);
        }
        if (!is_idle(line) && line.data[0] != '%')
            break;
    }
    return 0;
}

int tci_yaml_refuse_second_document(struct tci_yaml *r, struct tci_pos pos)
{
    tci_error_set(r->reterr, TC_ERROR_SYNTAX, "a second document starts here, one is allowed");
    tci_error_remedy(r->reterr, "put it into a file of its own, or remove the line with ---");
    return tci_yaml_at(r, pos);
}

/* What follows the document, from the mark on: refuses a line that starts another one. What else
 * is wrong there, libyaml says. */
int tci_yaml_check_rest(struct tci_yaml *r, yaml_mark_t mark)
{
    struct tci_text rest = tci_yaml_text_from(r, mark);
    struct tci_pos pos = tci_pos((uint32_t)mark.line + 1, (uint32_t)mark.column + 1);

    while (rest.length) {
        struct tci_text line = take_line(&rest);
        if (pos.column == 1 && (line.data[0] == '%' || starts_with(line, "---")))
            return tci_yaml_refuse_second_document(r, pos);
        if (!is_idle(line))
            break;
        pos = tci_pos(pos.line + 1, 1);
    }
    return 0;
}
