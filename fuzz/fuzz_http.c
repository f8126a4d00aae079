/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the fuzz target of gate/http.h and of gate/inspect.h for everything. Input: what a client sends;
 * its last byte says in which pieces. Checks that pieces do not matter, and that no server that forgives
 * much could find the name of another host in what has passed.
 */
#include "inspect_feed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- A server that forgives much ---- */

struct text {
    const char *at;
    size_t length;
};

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static struct text trim(struct text text)
{
    for (; text.length > 0 && is_space(text.at[0]); text.at++)
        text.length--;
    while (text.length > 0 && is_space(text.at[text.length - 1]))
        text.length--;
    return text;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool starts_with(struct text text, const char *lower_case)
{
    for (; *lower_case; lower_case++, text.at++, text.length--)
        if (text.length == 0 || lower(text.at[0]) != *lower_case)
            return false;
    return true;
}

/* Takes a line off; false: there is no whole one. */
static bool next_line(struct text *rest, struct text *ret)
{
    const char *end = rest->length > 0 ? memchr(rest->at, '\n', rest->length) : NULL;
    if (!end)
        return false;
    *ret = trim((struct text){ rest->at, (size_t)(end - rest->at) });
    rest->length -= (size_t)(end - rest->at) + 1;
    rest->at = end + 1;
    return true;
}

static bool is_request(struct text line)
{
    size_t last = line.length;
    while (last > 0 && !is_space(line.at[last - 1]))
        last--;
    struct text version = { line.at + last, line.length - last };
    return last > 0 && starts_with(version, "http/") && version.length > 5 &&
           version.at[5] >= '0' && version.at[5] <= '9';
}

static void check_host(struct text line)
{
    line.at += strlen("host");
    line.length -= strlen("host");
    line = trim(line);
    if (line.length == 0 || line.at[0] != ':')
        return; /* another field */
    line.at++;
    line.length--;
    line = trim(line);
    check(starts_with(line, NAME));
    check(line.length == strlen(NAME) || line.at[strlen(NAME)] == ':' ||
          line.at[strlen(NAME)] == '.');
}

/* The first request in what has passed, if its head is whole. */
static void check_first_request(struct text rest)
{
    struct text line, all = { 0 };
    bool is_whole = false, has_host = false;

    do {
        if (!next_line(&rest, &line))
            return;
    } while (line.length == 0);
    if (!is_request(line))
        return;
    all = rest;
    while (!is_whole && next_line(&rest, &line))
        is_whole = line.length == 0;
    if (!is_whole)
        return;
    while (next_line(&all, &line) && line.length > 0) {
        if (!starts_with(line, "host"))
            continue;
        check_host(line);
        has_host = true;
    }
    check(has_host);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    uint8_t choice = data[--size];
    size_t piece = choice / 4 + 1;
    if (size / piece > 5000) /* slow, and nothing new */
        piece = size / 5000;
    struct fed fed = feed_both_ways(data, size, piece, choice & 1, choice & 2);
    if (fed.says != TCI_INSPECT_REFUSED && strcmp(fed.protocol, "tls") != 0)
        check_first_request((struct text){ (const char *)data, fed.passed });
    return 0;
}
