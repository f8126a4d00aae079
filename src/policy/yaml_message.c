/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: places in the text, and errors in words for people: libyaml's complaints are turned into
 * ours by a table. Text of the file is shown only as far as it is printable.
 */
#include "policy/yaml_internal.h"

#include <stdio.h>
#include <string.h>
#include "base/utf8.h"

/* ---- places and messages ---------------------------------------------------------------- */

/* Says where the error is; returns -1. */
int tci_yaml_at(struct tci_yaml *r, struct tci_pos pos)
{
    tci_error_place(r->reterr, NULL, pos.line, pos.column);
    return -1;
}

/* libyaml puts the end of a file without a final newline on a line that is not there. */
struct tci_pos tci_yaml_mark_pos(const struct tci_yaml *r, yaml_mark_t mark)
{
    if (mark.index >= r->characters)
        return r->end;
    return tci_pos((uint32_t)mark.line + 1, (uint32_t)mark.column + 1);
}

/* The bytes from a mark on. Marks count characters. Events come in file order, so going on from the
 * last mark makes it one pass over the text for all of them. */
struct tci_text tci_yaml_text_from(struct tci_yaml *r, yaml_mark_t mark)
{
    if (mark.index < r->known_character)
        r->known_byte = r->known_character = 0;
    for (; r->known_character < mark.index && r->known_byte < r->length; r->known_character++) {
        uint32_t ignored;
        r->known_byte += tci_utf8_decode(r->bytes + r->known_byte, r->length - r->known_byte,
                                         &ignored);
    }
    return (struct tci_text){ r->bytes + r->known_byte, r->length - r->known_byte };
}

/* Letters that look the same wherever they are printed. What is not listed is escaped: U+202E would
 * make a message say something else. */
static bool is_printable(uint32_t c)
{
    return (c >= 0x20 && c <= 0x7e && c != '"' && c != '\\') ||
           (c >= 0xa1 && c <= 0x24f && c != 0xad) ||                       /* Latin */
           (c >= 0x391 && c <= 0x3c9) ||                                   /* Greek */
           (c >= 0x400 && c <= 0x481) ||                                   /* Cyrillic */
           (c >= 0x3041 && c <= 0x3096) || (c >= 0x30a1 && c <= 0x30fa) || /* Kana */
           (c >= 0x4e00 && c <= 0x9fff) ||                                 /* Han */
           (c >= 0xac00 && c <= 0xd7a3);                                   /* Hangul */
}

struct tci_yaml_excerpt tci_yaml_excerpt(struct tci_text text)
{
    struct tci_yaml_excerpt e = { "" };
    size_t used = 0, size;
    for (size_t done = 0; done < text.length; done += size) {
        char piece[16];
        uint32_t c = 0;
        size = tci_utf8_decode(text.data + done, text.length - done, &c);
        if (!size || used + sizeof piece + sizeof "..." > sizeof e.text) {
            (void)snprintf(e.text + used, sizeof e.text - used, "...");
            break;
        }
        if (is_printable(c))
            (void)snprintf(piece, sizeof piece, "%.*s", (int)size, text.data + done);
        else if (c == '"' || c == '\\')
            (void)snprintf(piece, sizeof piece, "\\%c", (char)c);
        else
            (void)snprintf(piece, sizeof piece, c > 0xffff ? "\\U%08X" : "\\u%04X", c);
        used += (size_t)snprintf(e.text + used, sizeof e.text - used, "%s", piece);
    }
    return e;
}

/* ---- what libyaml complains about ------------------------------------------------------- */

#define TAB_MESSAGE   "a tab cannot be used for indentation"
#define TAB_REMEDY    "indent with spaces"
#define ESCAPE_REMEDY "write \\\\ for a backslash, or use single quotes, which know no escapes"
#define INDENT_REMEDY "start keys (or dashes) that belong together in the same column"

/* Where to point: at the problem, at the start of what it is in, or at the problem while naming
 * the start. */
enum where { HERE, START, BOTH };

static const struct complaint {
    const char *context; /* a part of libyaml's words... */
    const char *problem; /* ...and all of them; NULL: any */
    enum where where;
    const char *message, *remedy;
} complaints[] = {
    { "%YAML directive", NULL, START, "a %YAML line without a version", "remove the %YAML line" },
    { "directive", NULL, START, "a line that starts with '%' is a directive",
      "remove it, or put text that starts with '%' in quotes" },
    { "an alias", NULL, START, "'*' starts an alias, which is not allowed", ALIAS_REMEDY },
    { "an anchor", NULL, START, "'&' starts an anchor, which is not allowed", ANCHOR_REMEDY },
    { "a tag", NULL, START, "'!' starts a tag, which is not allowed", TAG_REMEDY },
    { NULL, "found undefined tag handle", START, "'!' starts a tag, which is not allowed",
      TAG_REMEDY },
    { NULL, "found a tab character that violates indentation", HERE, TAB_MESSAGE, TAB_REMEDY },
    { NULL, "found a tab character where an indentation space is expected", HERE, TAB_MESSAGE,
      TAB_REMEDY },
    { NULL, "could not find expected ':'", START, "a key without a ':' behind it",
      "write \"key: value\" on one line; a key has at most 1024 characters" },
    { NULL, "mapping values are not allowed in this context", HERE, "a ':' that cannot be here",
      "check the indentation; put text that contains \": \" in quotes" },
    { NULL, "found unexpected ':'", HERE, "a ':' that cannot be here",
      "write a blank after the ':' between key and value, or put the text in quotes" },
    { NULL, "mapping keys are not allowed in this context", HERE, "a '?' that cannot be here",
      "put text that starts with '?' in quotes" },
    { NULL, "block sequence entries are not allowed in this context", HERE,
      "a '-' that cannot be here",
      "start the list on a line of its own, or put text that starts with '-' in quotes" },
    { "a block mapping", "did not find expected key", BOTH,
      "expected a key, indented like those above", INDENT_REMEDY },
    { "a block collection", NULL, BOTH, "expected a '-', indented like those above",
      INDENT_REMEDY },
    { NULL, "did not find expected ',' or ']'", BOTH, "expected ',' or ']' in the list",
      "separate items with ',' and close the list with ']'" },
    { NULL, "did not find expected ',' or '}'", BOTH, "expected ',' or '}' after a value",
      "separate entries with ',' and close the braces; put text that has braces in quotes" },
    { NULL, "did not find expected node content", HERE, "a value or a key is missing here",
      "write a value; put text that starts with a YAML character such as ',' or '-' in quotes" },
    { "a quoted scalar", "found unexpected end of stream", BOTH, "the closing quote is missing",
      "close the quotes" },
    { "a quoted scalar", "found unexpected document indicator", BOTH,
      "the closing quote is missing before --- or ...", "close the quotes" },
    { NULL, "found unknown escape character", HERE,
      "an escape that YAML does not have, in double quotes", ESCAPE_REMEDY },
    { NULL, "did not find expected hexdecimal number", HERE,
      "an escape in double quotes that is not finished: \\x takes 2, \\u 4, \\U 8 hex digits",
      ESCAPE_REMEDY },
    { NULL, "found invalid Unicode character escape code", HERE,
      "an escape in double quotes that is no character", "write the character itself" },
    { "a block scalar", NULL, BOTH, "text that cannot follow '|' or '>'",
      "start the text on the next line; if the '|' or '>' is text, use quotes" },
    { NULL, "found incompatible YAML document", HERE, "the file says it is not YAML 1.2",
      "remove the %YAML line" },
    { NULL, "found duplicate %YAML directive", HERE, "a second %YAML line", "remove it" },
    { NULL, "did not find expected <document start>", HERE,
      "more text where the document has ended",
      "check the indentation; after a %YAML line write ---" },
};

static bool is_complaint(const struct complaint *c, const yaml_parser_t *parser)
{
    const char *context = parser->context ? parser->context : "";
    const char *problem = parser->problem ? parser->problem : "";
    return (!c->context || strstr(context, c->context)) &&
           (!c->problem || strcmp(c->problem, problem) == 0);
}

static int refuse_start_character(struct tci_yaml *r)
{
    struct tci_text rest = tci_yaml_text_from(r, r->parser.problem_mark);
    uint32_t ignored;
    rest.length = tci_utf8_decode(rest.data, rest.length, &ignored);
    if (rest.length && rest.data[0] == '\t') {
        tci_error_set(r->reterr, TC_ERROR_SYNTAX, TAB_MESSAGE);
        tci_error_remedy(r->reterr, TAB_REMEDY);
    } else {
        tci_error_set(r->reterr, TC_ERROR_SYNTAX, "a value cannot start with '%s'",
                      tci_yaml_excerpt(rest).text);
        tci_error_remedy(r->reterr, "put the value in quotes");
    }
    return tci_yaml_at(r, tci_yaml_mark_pos(r, r->parser.problem_mark));
}

static int refuse_complaint(struct tci_yaml *r, const struct complaint *c)
{
    struct tci_pos start = tci_yaml_mark_pos(r, r->parser.context_mark);
    char began[64] = "";

    if (c->where == BOTH)
        (void)snprintf(began, sizeof began, " (start: line %u, column %u)", (unsigned)start.line,
                       (unsigned)start.column);
    tci_error_set(r->reterr, TC_ERROR_SYNTAX, "%s%s", c->message, began);
    tci_error_remedy(r->reterr, "%s", c->remedy);
    return tci_yaml_at(r, c->where == START ? start : tci_yaml_mark_pos(r, r->parser.problem_mark));
}

/* Says what libyaml said, in words for people. */
int tci_yaml_refuse_parser_error(struct tci_yaml *r)
{
    const char *problem = r->parser.problem ? r->parser.problem : "not readable";

    if (r->parser.error == YAML_MEMORY_ERROR)
        return tci_error_no_memory(r->reterr);
    if (strcmp(problem, "found character that cannot start any token") == 0)
        return refuse_start_character(r);
    for (size_t i = 0; i < tci_array_size(complaints); i++)
        if (is_complaint(&complaints[i], &r->parser))
            return refuse_complaint(r, &complaints[i]);
    /* A version of libyaml with other words. */
    tci_error_set(r->reterr, TC_ERROR_SYNTAX, "not YAML: %s",
                  tci_yaml_excerpt((struct tci_text){ problem, strlen(problem) }).text);
    return tci_yaml_at(r, tci_yaml_mark_pos(r, r->parser.problem_mark));
}
