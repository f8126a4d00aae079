/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: which protocol does a connection speak? And for a kept-alive one: where does the next request
 * begin?
 *
 * The attack: bytes that are "something else" to us and a request, or a hello, to a server that
 * forgives. So a line is HTTP when any server could take it for HTTP, and proper only when it is
 * written by the book (http.c). The opposite danger is a protocol that waits for an answer while we
 * wait for its next byte. So only what looks like a proper request or hello is held back:
 *
 *   first word          goes at once; it is kept, and alone makes no server do anything
 *   " /", " http:"      a request: held back until its head is whole
 *   anything else       goes at once; but if the first line turns out to end in HTTP/1.x, its line end
 *                       is not sent, and the connection is refused
 *
 * In strict mode, and behind a first request, there is nothing else: everything is held until known.
 */
#include "gate/inspect_internal.h"

#include <string.h>

enum {
    tls_version_end = 0x10, /* majors from here on are TLS to nobody */
    tls_shown = 6,          /* bytes that tell an old or odd version of TLS from something else */
    gap_max = 16,
    other_max = 65536, /* a longer first line is no request to anybody */
};

enum answer { NO, YES, UNSURE };

/* ---- Something else ---- */

/* Follows a word that begins with "HTTP/" and a digit through the line. From `version_word` on, the line
 * ends in such a word, or in blanks behind it. */
enum { version_word = sizeof " http/", behind_version };

static unsigned match_version(unsigned match, uint8_t byte)
{
    static const char wanted[] = " http/";
    uint8_t lower = byte >= 'A' && byte <= 'Z' ? (uint8_t)(byte - 'A' + 'a') : byte;

    /* Other spaces are part of the word for some servers. */
    if (match == version_word)
        return byte == ' ' || byte == '\t' ? behind_version : version_word;
    if (tci_http_is_space(byte))
        return match == behind_version ? behind_version : 1;
    if (match == version_word - 1)
        return byte >= '0' && byte <= '9' ? version_word : 0;
    if (match == behind_version)
        match = 1;
    return match > 0 && lower == (uint8_t)wanted[match] ? match + 1 : 0;
}

static enum tci_inspect_step is_other(struct tci_inspect *inspect)
{
    if (!inspect->is_open && inspect->is_http)
        return tci_inspect_refuse(inspect, "what follows an HTTP request is not another one");
    if (!inspect->is_open)
        return tci_inspect_refuse(inspect,
                                  "it is neither TLS nor HTTP/1, and inspection is strict");
    if (!inspect->is_http)
        inspect->protocol = "other";
    tci_inspect_note(inspect, inspect->is_http ? "it was not inspected behind an HTTP upgrade"
                                               : "it is neither TLS nor HTTP/1: not inspected");
    inspect->other_has_text = inspect->word_length > 0;
    inspect->other_count = 0;
    inspect->other_match = inspect->is_odd; /* a blank stands before the word, maybe a space */
    for (size_t i = 0; i < inspect->word_length; i++)
        inspect->other_match = match_version(inspect->other_match, (uint8_t)inspect->word[i]);
    return tci_inspect_go(inspect, TCI_INSPECT_AT_OTHER);
}

enum tci_inspect_step tci_inspect_other(struct tci_inspect *inspect, struct tci_inspect_input *in)
{
    while (in->length > 0) {
        uint8_t byte = in->bytes[0];
        bool is_end = byte == '\n' || byte == '\r';
        if (is_end && inspect->other_match >= version_word) {
            inspect->protocol = "http";
            return tci_inspect_refuse(inspect, "the HTTP request has a first line that servers "
                                               "read in different ways");
        }
        if ((byte == '\n' && inspect->other_has_text) || inspect->other_count > other_max)
            return TCI_STEP_OPEN;
        inspect->other_match = match_version(inspect->other_match, byte);
        if (byte > 0x20 && !tci_http_is_space(byte))
            inspect->other_has_text = true;
        if (inspect->other_has_text)
            inspect->other_count++;
        tci_inspect_use(in, 1);
    }
    return TCI_STEP_MORE;
}

/* ---- The first bytes ---- */

/* Does it begin like a record of TLS? Versions other than 3.x are read by some servers, so a whole
 * header and a sign of a hello (or of an alert, which some skip) are TLS too. */
static enum answer begins_like_tls(const uint8_t *bytes, size_t length)
{
    const bool is_alert = bytes[0] == TCI_TLS_ALERT;

    if (bytes[0] < TCI_TLS_CHANGE_CIPHER_SPEC || bytes[0] > TCI_TLS_HEARTBEAT)
        return NO;
    if (length < 2)
        return UNSURE;
    if (bytes[1] == 3)
        return YES;
    if (bytes[1] >= tls_version_end || (!is_alert && bytes[0] != TCI_TLS_HANDSHAKE))
        return NO;
    if (length > 3 && bytes[3] > (is_alert ? 0 : 0x40))
        return NO;
    if (length > 4 && is_alert && bytes[4] != 2)
        return NO;
    if (length > 5 && bytes[5] != 1 && !(is_alert && bytes[5] == 2))
        return NO;
    return length < tls_shown ? UNSURE : YES;
}

/* Blank bytes go at once. Servers skip empty lines before a request; some skip more. */
enum tci_inspect_step tci_inspect_start(struct tci_inspect *inspect, struct tci_inspect_input *in)
{
    if (inspect->is_fresh && in->length > 0) {
        enum answer tls = begins_like_tls(in->bytes, in->length);
        if (tls == UNSURE && !in->at_end)
            return TCI_STEP_MORE;
        if (tls == YES) {
            inspect->protocol = "tls";
            memset(&inspect->hello, 0, sizeof inspect->hello);
            return tci_inspect_go(inspect, TCI_INSPECT_AT_HELLO);
        }
        inspect->is_fresh = false;
    }
    inspect->word_length = 0;
    for (; in->length > 0; tci_inspect_use(in, 1)) {
        uint8_t byte = in->bytes[0];
        if (byte == '\r' || byte == '\n')
            continue;
        if (byte > 0x20 && !tci_http_is_space(byte))
            return tci_inspect_go(inspect, TCI_INSPECT_AT_WORD);
        if (!inspect->is_open)
            return is_other(inspect);
        inspect->is_odd = true;
        inspect->has_nul |= byte == '\0';
    }
    return TCI_STEP_MORE;
}

/* ---- The first word ---- */

static bool word_is(const struct tci_inspect *inspect, const char *lower_case)
{
    return tci_http_equals((struct tci_http_text){ inspect->word, inspect->word_length },
                           lower_case);
}

enum tci_inspect_step tci_inspect_word(struct tci_inspect *inspect, struct tci_inspect_input *in)
{
    size_t at = 0;

    if (!inspect->is_open)
        inspect->word_length = 0; /* it was held back, so here it is again */
    while (at < in->length && tci_http_is_token(in->bytes[at]) &&
           inspect->word_length < TCI_HTTP_METHOD_MAX)
        inspect->word[inspect->word_length++] = (char)in->bytes[at++];
    inspect->word[inspect->word_length] = '\0';
    if (inspect->is_open) {
        tci_inspect_use(in, at);
        at = 0;
    }
    if (at == in->length && !in->at_end)
        return TCI_STEP_MORE;
    if (at == in->length || !tci_http_is_space(in->bytes[at]))
        return is_other(inspect);
    /* The PROXY protocol, both versions: a line about the client in front of what the server then
     * takes for the connection. What stands behind it would not be looked at. */
    if (in->bytes[at] == ' ' ? word_is(inspect, "proxy")
                             : inspect->has_nul && word_is(inspect, "quit"))
        return tci_inspect_refuse(inspect, "a PROXY protocol header hides what follows it");
    if (in->bytes[at] == '\r' || in->bytes[at] == '\n')
        return is_other(inspect);
    inspect->rest_at = at;
    inspect->seen = at;
    return tci_inspect_go(inspect, TCI_INSPECT_AT_LINE);
}

/* ---- The first line ---- */

/* Does the second word begin as that of a proper request does? */
static enum answer begins_like_target(const struct tci_inspect *inspect, const uint8_t *bytes,
                                      size_t length)
{
    static const char scheme[] = "https";
    size_t i = 0;

    if (length == 0)
        return UNSURE;
    if (bytes[0] == '/' || word_is(inspect, "connect"))
        return YES;
    if (bytes[0] == '*')
        return word_is(inspect, "options") || word_is(inspect, "pri") ? YES : NO;
    while (i < length && i < strlen(scheme) && (bytes[i] | 0x20) == scheme[i])
        i++;
    if (i == length)
        return UNSURE;
    return i >= strlen("http") && bytes[i] == ':' ? YES : NO;
}

/* Something else that began like a request (git's protocol), or a request that no server should take. */
static enum tci_inspect_step is_improper(struct tci_inspect *inspect, const char *problem)
{
    if (!tci_http_is_known_method(inspect->word))
        return is_other(inspect);
    inspect->protocol = "http";
    return tci_inspect_refuse(inspect, "the HTTP request %s", problem);
}

static enum tci_inspect_step judge_line(struct tci_inspect *inspect, const uint8_t *bytes,
                                        size_t end, bool is_whole)
{
    if (!tci_http_has_version(bytes + inspect->rest_at, end - inspect->rest_at))
        return is_improper(inspect, "has no version (HTTP/0.9), so it names no host");
    inspect->protocol = "http";
    if (inspect->is_odd)
        return tci_inspect_refuse(inspect, "the HTTP request has something before its method");
    if (!is_whole)
        return tci_inspect_refuse(inspect, "the HTTP request is cut off");
    inspect->seen = inspect->line_at = end + 1;
    return tci_inspect_go(inspect, TCI_INSPECT_AT_HEAD);
}

/* The line end, or a byte that no line of text has. */
static size_t find_line_stop(const uint8_t *bytes, size_t at, size_t limit)
{
    while (at < limit && bytes[at] != '\n' && bytes[at] != 0x7f &&
           (bytes[at] >= 0x20 || tci_http_is_space(bytes[at])))
        at++;
    return at;
}

enum tci_inspect_step tci_inspect_line(struct tci_inspect *inspect, struct tci_inspect_input *in)
{
    size_t limit = in->length < TCI_INSPECT_HEAD_MAX ? in->length : TCI_INSPECT_HEAD_MAX;
    size_t at = inspect->rest_at;

    while (at < limit && in->bytes[at] != '\n' && tci_http_is_space(in->bytes[at]))
        at++;
    if (at - inspect->rest_at > gap_max)
        return is_improper(inspect, "has a gap in its first line");
    switch (begins_like_target(inspect, in->bytes + at, limit - at)) {
    case UNSURE:
        return in->at_end ? is_other(inspect) : TCI_STEP_MORE;
    case NO:
        return is_other(inspect);
    case YES:
        break;
    }
    at = find_line_stop(in->bytes, inspect->seen > at ? inspect->seen : at, limit);
    inspect->seen = at;
    if (at < limit && in->bytes[at] != '\n')
        return is_improper(inspect, "has a control byte in its head");
    if (at == limit && in->length > TCI_INSPECT_HEAD_MAX)
        return tci_inspect_refuse(inspect, "the HTTP request has a head of more than 64 KiB");
    if (at == limit && !in->at_end)
        return TCI_STEP_MORE;
    return judge_line(inspect, in->bytes, at, at < limit);
}
