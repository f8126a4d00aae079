/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: compiling and running patterns as a non-deterministic automaton.
 * Invariant: bit i of a set says that the tokens before i have matched what was seen so far; bit
 * `count` that all have. A set is closed: behind a token that may match nothing, the next bit is set.
 */
#include "core/extract_glob.h"

#include <string.h>
#include "base/utf8.h"

enum kind {
    LITERAL,
    ONE,        /* ? */
    CLASS,      /* [...] */
    STAR,       /* * */
    DEEP,       /* ** */
    DEEP_SLASH, /* a whole part "**" and the slash behind it */
};

struct range {
    uint32_t first, last;
};

struct tci_glob_token {
    enum kind kind;
    bool negated;
    bool begins_name; /* a name of the path begins here, and not inside or behind a wildcard */
    uint32_t character;
    size_t range_count;
    struct range *ranges;
};

/* One character; a byte that is not UTF-8 is a character of its own, beyond all others. */
static size_t next_character(const char *text, size_t length, uint32_t *ret)
{
    size_t size = tci_utf8_decode(text, length, ret);
    if (size > 0)
        return size;
    *ret = 0x110000 + (unsigned char)text[0];
    return 1;
}

/* ---- compiling ---------------------------------------------------------------------------- */

/* Where the class that begins at `pattern` ("[") ends: its "]". NULL: it does not, before the end of
 * this part of the path, and the bracket is an ordinary character. */
static const char *class_end(const char *pattern)
{
    const char *p = pattern + 1;

    if (*p == '!' || *p == '^')
        p++;
    if (*p == ']')
        p++;
    for (; *p && *p != '/'; p++) {
        if (*p == ']')
            return p;
        if (*p == '\\' && p[1] && p[1] != '/')
            p++;
    }
    return NULL;
}

static bool is_wildcard(const char *p)
{
    return *p == '*' || *p == '?' || (*p == '[' && class_end(p));
}

size_t tci_glob_static_length(const char *pattern)
{
    size_t slash = 0;

    for (const char *p = pattern; *p && !is_wildcard(p); p++) {
        if (*p == '/')
            slash = (size_t)(p - pattern);
        /* An escaped name is not the name: leave it to the matcher. */
        else if (*p == '\\')
            break;
    }
    return slash;
}

static uint32_t class_character(const char **at, const char *end)
{
    uint32_t character;

    if (**at == '\\' && *at + 1 < end)
        (*at)++;
    *at += next_character(*at, (size_t)(end - *at), &character);
    return character;
}

static int compile_class(struct tci_arena *arena, const char *pattern, const char *end,
                         struct tci_glob_token *token)
{
    const char *p = pattern + 1;

    token->kind = CLASS;
    token->negated = *p == '!' || *p == '^';
    p += token->negated;
    token->ranges = tci_arena_new_array(arena, (size_t)(end - p), struct range);
    if (!token->ranges)
        return -1;
    while (p < end) {
        struct range *range = &token->ranges[token->range_count++];
        range->first = range->last = class_character(&p, end);
        if (*p == '-' && p + 1 < end) {
            p++;
            range->last = class_character(&p, end);
        }
    }
    return 0;
}

/* A run of two stars and more. */
static size_t compile_deep(const char *pattern, bool at_part_start, struct tci_glob_token *token)
{
    size_t length = strspn(pattern, "*");

    token->kind = at_part_start && pattern[length] == '/' ? DEEP_SLASH : DEEP;
    return length + (token->kind == DEEP_SLASH);
}

/* Fills one token; its length in the pattern, or 0 without memory. */
static size_t compile_token(struct tci_arena *arena, const char *pattern, bool at_part_start,
                            struct tci_glob_token *token)
{
    const char *end;

    if (pattern[0] == '*' && pattern[1] == '*')
        return compile_deep(pattern, at_part_start, token);
    if (pattern[0] == '*' || pattern[0] == '?') {
        token->kind = pattern[0] == '*' ? STAR : ONE;
        return 1;
    }
    if (pattern[0] == '[' && (end = class_end(pattern)) != NULL)
        return compile_class(arena, pattern, end, token) < 0 ? 0 : (size_t)(end + 1 - pattern);
    token->kind = LITERAL;
    bool escaped = pattern[0] == '\\' && pattern[1] && pattern[1] != '/';
    return escaped +
           next_character(pattern + escaped, strlen(pattern + escaped), &token->character);
}

int tci_glob_compile(struct tci_arena *arena, const char *pattern, struct tci_glob *ret)
{
    size_t room = strlen(pattern);
    struct tci_glob glob = { .count = 0 };
    bool at_part_start = true;

    if (room > TCI_GLOB_TOKENS_MAX)
        room = TCI_GLOB_TOKENS_MAX;
    glob.tokens = tci_arena_new_array(arena, room, struct tci_glob_token);
    if (!glob.tokens)
        return -1;
    while (*pattern) {
        size_t length;
        if (glob.count == room)
            return 1;
        glob.tokens[glob.count].begins_name = at_part_start;
        length = compile_token(arena, pattern, at_part_start, &glob.tokens[glob.count++]);
        if (length == 0)
            return -1;
        pattern += length;
        at_part_start = pattern[-1] == '/';
    }
    *ret = glob;
    return 0;
}

/* ---- matching ----------------------------------------------------------------------------- */

static bool has(const struct tci_glob_set *set, size_t place)
{
    return set->words[place / 64] >> (place % 64) & 1;
}

static void put(struct tci_glob_set *set, size_t place)
{
    set->words[place / 64] |= (uint64_t)1 << (place % 64);
}

/* The first place of the set from `place` on; past all of them when there is none. */
static size_t next_place(const struct tci_glob_set *set, size_t place)
{
    size_t word = place / 64;
    uint64_t bits = word < TCI_GLOB_WORDS ? set->words[word] & ~(uint64_t)0 << (place % 64) : 0;

    while (!bits && ++word < TCI_GLOB_WORDS)
        bits = set->words[word];
    return bits ? 64 * word + (size_t)__builtin_ctzll(bits) : (size_t)TCI_GLOB_WORDS * 64;
}

static bool is_empty(const struct tci_glob_set *set)
{
    return next_place(set, 0) > TCI_GLOB_TOKENS_MAX;
}

/*
 * Sets the places behind tokens that may match nothing, from left to right. `arrived` holds the places
 * that were reached by a step forward: only there may DEEP_SLASH be passed over, since inside of it a
 * slash must come first.
 */
static void close_set(const struct tci_glob *glob, struct tci_glob_set *set,
                      struct tci_glob_set *arrived)
{
    for (size_t i = next_place(set, 0); i < glob->count; i = next_place(set, i + 1)) {
        enum kind kind = glob->tokens[i].kind;
        if (kind == STAR || kind == DEEP) {
            put(set, i + 1);
        } else if (kind == DEEP_SLASH && has(arrived, i)) {
            put(set, i + 1);
            put(arrived, i + 1);
        }
    }
}

static bool class_has(const struct tci_glob_token *token, uint32_t character)
{
    for (size_t i = 0; i < token->range_count; i++)
        if (character >= token->ranges[i].first && character <= token->ranges[i].last)
            return !token->negated;
    return token->negated;
}

/* What the token at `place` does with a character: stay, go on, or both. */
static void step_token(const struct tci_glob *glob, size_t place, uint32_t character, bool hidden,
                       struct tci_glob_set *stays, struct tci_glob_set *arrived)
{
    const struct tci_glob_token *token = &glob->tokens[place];
    bool in_name = character != '/' && !hidden;

    switch (token->kind) {
    case LITERAL:
        if (character == token->character && (!hidden || token->begins_name))
            put(arrived, place + 1);
        break;
    case ONE:
        if (in_name)
            put(arrived, place + 1);
        break;
    case CLASS:
        if (in_name && class_has(token, character))
            put(arrived, place + 1);
        break;
    case STAR:
        if (in_name)
            put(stays, place);
        break;
    case DEEP_SLASH:
        if (character == '/')
            put(arrived, place + 1);
        if (!hidden)
            put(stays, place);
        break;
    case DEEP:
        if (!hidden)
            put(stays, place);
        break;
    }
}

/* `hidden`: the character is a dot at the beginning of a name. */
static struct tci_glob_set step(const struct tci_glob *glob, const struct tci_glob_set *set,
                                uint32_t character, bool hidden)
{
    struct tci_glob_set stays = { 0 }, arrived = { 0 };

    for (size_t i = next_place(set, 0); i < glob->count; i = next_place(set, i + 1))
        step_token(glob, i, character, hidden, &stays, &arrived);
    for (size_t word = 0; word < TCI_GLOB_WORDS; word++)
        stays.words[word] |= arrived.words[word];
    close_set(glob, &stays, &arrived);
    return stays;
}

struct tci_glob_set tci_glob_start(const struct tci_glob *glob)
{
    struct tci_glob_set set = { 0 }, arrived = { 0 };

    put(&set, 0);
    put(&arrived, 0);
    close_set(glob, &set, &arrived);
    return set;
}

struct tci_glob_set tci_glob_name(const struct tci_glob *glob, const struct tci_glob_set *set,
                                  const char *name)
{
    struct tci_glob_set now = *set;
    size_t length = strlen(name), i = 0;

    while (i < length && !is_empty(&now)) {
        uint32_t character;
        bool first = i == 0;
        i += next_character(name + i, length - i, &character);
        now = step(glob, &now, character, first && character == '.');
    }
    return now;
}

bool tci_glob_slash(const struct tci_glob *glob, struct tci_glob_set *set)
{
    *set = step(glob, set, '/', false);
    return !is_empty(set);
}

bool tci_glob_accepts(const struct tci_glob *glob, const struct tci_glob_set *set)
{
    return has(set, glob->count);
}

static size_t encode(uint32_t c, char *to)
{
    if (c >= 0x110000) { /* a byte that is not UTF-8 */
        to[0] = (char)(c - 0x110000);
        return 1;
    }
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    size_t size = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = size - 1; i > 0; i--, c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)((0xf00 >> size & 0xff) | c);
    return size;
}

bool tci_glob_only_name(const struct tci_glob *glob, const struct tci_glob_set *set,
                        char ret[TCI_COMPONENT_MAX + 1])
{
    size_t place = next_place(set, 0), used = 0;

    if (next_place(set, place + 1) <= glob->count)
        return false;
    for (; place < glob->count; place++) {
        const struct tci_glob_token *token = &glob->tokens[place];
        if (token->kind != LITERAL || used + 4 > TCI_COMPONENT_MAX)
            return false;
        if (token->character == '/')
            break;
        used += encode(token->character, ret + used);
    }
    ret[used] = '\0';
    return used > 0;
}

bool tci_glob_matches(const struct tci_glob *glob, const char *path)
{
    struct tci_glob_set set = tci_glob_start(glob);

    while (!is_empty(&set)) {
        char name[TCI_COMPONENT_MAX + 1];
        size_t length = strcspn(path, "/");
        if (length > TCI_COMPONENT_MAX)
            return false;
        memcpy(name, path, length);
        name[length] = '\0';
        set = tci_glob_name(glob, &set, name);
        if (!path[length])
            return tci_glob_accepts(glob, &set);
        (void)tci_glob_slash(glob, &set);
        path += length + 1;
    }
    return false;
}
