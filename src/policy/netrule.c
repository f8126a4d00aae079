/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: one network rule as text: reading it, writing it, and the words of its problems.
 * Trusts: nothing about the text. Hosts are read by netrule_host.c, matched by netrule_match.c.
 * Invariant: what tci_netrule_format writes is read back as an equal rule, and a message about a
 * rule holds printable ASCII only, whatever bytes the rule had.
 */
#include "policy/netrule_internal.h"

#include <stdarg.h>
#include <stdio.h>

enum { port_max = 65535, suggestion_max = 200 };

/* ---- Problems ---- */

void tci_problem_message(struct tci_netrule_problem *problem, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(problem->message, sizeof problem->message, format, arguments);
    va_end(arguments);
}

int tci_problem_remedy(struct tci_netrule_problem *problem, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(problem->remedy, sizeof problem->remedy, format, arguments);
    va_end(arguments);
    return -1;
}

/* Escapes everything but printable ASCII, so that a hostile rule cannot send terminal sequences or
 * forge a line of a log through the message about it. */
const char *tci_span_excerpt(struct tci_span span, struct tci_excerpt *excerpt)
{
    static const char digits[] = "0123456789abcdef";
    enum { room_for_end = sizeof "\\xff...\"" };
    char *out = excerpt->text;
    size_t i = 0;

    *out++ = '"';
    for (; i < span.length && out < excerpt->text + sizeof excerpt->text - room_for_end; i++) {
        unsigned char byte = (unsigned char)span.at[i];
        if (byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\') {
            *out++ = (char)byte;
            continue;
        }
        *out++ = '\\';
        *out++ = 'x';
        *out++ = digits[byte >> 4];
        *out++ = digits[byte & 0xf];
    }
    for (int dots = 0; i < span.length && dots < 3; dots++)
        *out++ = '.';
    *out++ = '"';
    *out = '\0';
    return excerpt->text;
}

int tci_span_check_bytes(struct tci_span span, struct tci_netrule_problem *problem)
{
    struct tci_excerpt excerpt;

    if (span.length == 0) {
        tci_problem_message(problem, "the host is missing");
        return tci_problem_remedy(problem, "write one, e.g. \"api.example.com\"");
    }
    for (size_t i = 0; i < span.length; i++) {
        unsigned char byte = (unsigned char)span.at[i];
        if (byte > 0x20 && byte < 0x7f)
            continue;
        tci_span_excerpt(span, &excerpt);
        tci_problem_message(problem, "%s contains the byte \\x%02x", excerpt.text, byte);
        /* Look-alike letters, and full-width digits that IDNA folds into "127.0.0.1". */
        if (byte >= 0x80)
            return tci_problem_remedy(problem, "write it as punycode (xn--...)");
        return tci_problem_remedy(problem, "remove it: spaces and control bytes are not allowed");
    }
    return 0;
}

/* ---- Numbers ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool tci_span_number(struct tci_span span, unsigned max, unsigned *ret)
{
    unsigned value = 0;

    if (span.length < 1 || span.length > 5 || (span.length > 1 && span.at[0] == '0'))
        return false;
    for (size_t i = 0; i < span.length; i++) {
        if (!is_digit(span.at[i]))
            return false;
        value = value * 10 + (unsigned)(span.at[i] - '0');
    }
    if (value > max)
        return false;
    *ret = value;
    return true;
}

/* ---- Writing ---- */

static void append(char buffer[TCI_RULE_TEXT_MAX], const char *text)
{
    size_t used = strlen(buffer), length = strlen(text);

    if (length >= TCI_RULE_TEXT_MAX - used)
        length = TCI_RULE_TEXT_MAX - used - 1;
    memcpy(buffer + used, text, length);
    buffer[used + length] = '\0';
}

static void append_host(char buffer[TCI_RULE_TEXT_MAX], const struct tci_host *host)
{
    char address[TCI_ADDRESS_TEXT_MAX], prefix[16] = "";
    bool is_v6 = host->address.is_v6;

    if (host->kind != TCI_HOST_ADDRESS) {
        append(buffer, host->kind == TCI_HOST_WILDCARD ? "*." : "");
        append(buffer, host->name);
        return;
    }
    if (host->prefix < (is_v6 ? 128 : 32))
        snprintf(prefix, sizeof prefix, "/%u", host->prefix);
    append(buffer, is_v6 ? "[" : "");
    append(buffer, tci_address_format(&host->address, address));
    append(buffer, prefix);
    append(buffer, is_v6 ? "]" : "");
}

const char *tci_host_format(const struct tci_host *host, char buffer[TCI_RULE_TEXT_MAX])
{
    buffer[0] = '\0';
    append_host(buffer, host);
    return buffer;
}

const char *tci_netrule_format(const struct tci_netrule *rule, char buffer[TCI_RULE_TEXT_MAX])
{
    char ports[sizeof ":65535-65535"];

    if (rule->port_low == 1 && rule->port_high == port_max)
        snprintf(ports, sizeof ports, ":*");
    else if (rule->port_low == rule->port_high)
        snprintf(ports, sizeof ports, ":%u", rule->port_low);
    else
        snprintf(ports, sizeof ports, ":%u-%u", rule->port_low, rule->port_high);
    buffer[0] = '\0';
    append(buffer, rule->deny ? "deny:" : "");
    append_host(buffer, &rule->host);
    append(buffer, ports);
    return buffer;
}

/* ---- Ports ---- */

static int parse_ports(struct tci_span text, struct tci_netrule *ret,
                       struct tci_netrule_problem *problem)
{
    struct tci_excerpt excerpt;
    unsigned low = 1, high = port_max;

    if (text.length != 1 || text.at[0] != '*') {
        size_t dash = tci_span_find(text, '-');
        struct tci_span upper = dash < text.length ? tci_span_from(text, dash + 1) : text;
        if (!tci_span_number(tci_span_until(text, dash), port_max, &low) ||
            !tci_span_number(upper, port_max, &high) || low == 0) {
            tci_problem_message(problem, "%s is not a port", tci_span_excerpt(text, &excerpt));
            return tci_problem_remedy(problem, "write a number from 1 to 65535, a range such as "
                                               "\"8000-8010\", or \"*\"");
        }
    }
    if (low > high) {
        tci_problem_message(problem, "the port range %u-%u is empty", low, high);
        return tci_problem_remedy(problem, "write %u-%u", high, low);
    }
    ret->port_low = (uint16_t)low;
    ret->port_high = (uint16_t)high;
    return 0;
}

/* ---- Prefixes ---- */

/* Words that people write before a rule, and the prefix that they mean. */
static const struct prefix_word {
    const char *word, *remedy;
} prefix_words[] = {
#define ALLOW                                                                                      \
    "write \"allowlist:\" in lower case, once, at the start; or nothing, which means the same"
#define DENY "write \"deny:\" in lower case, once, at the start"
    { "allowlist", ALLOW }, { "allow", ALLOW },  { "allowed", ALLOW },  { "whitelist", ALLOW },
    { "permit", ALLOW },    { "accept", ALLOW }, { "deny", DENY },      { "denylist", DENY },
    { "denied", DENY },     { "block", DENY },   { "blocklist", DENY }, { "blacklist", DENY },
    { "reject", DENY },     { "drop", DENY },
#undef ALLOW
#undef DENY
};

/* Is all of the text up to its first ":" this word? (With or without the dot that names lose.) */
static bool is_led_by(struct tci_span text, const char *word)
{
    struct tci_span lead = tci_span_until(text, tci_span_find(text, ':'));

    if (lead.length > 0 && lead.at[lead.length - 1] == '.')
        lead.length--;
    return lead.length == strlen(word) && tci_span_starts_with(lead, word);
}

/* Refuses `text` if such a word stands where its host would: "allow:x:443", "DENY:x:443", a second
 * prefix. As the name of a host they are refused too: "allowlist:deny:443" would be written back as
 * "deny:443", and a rule that allows must never read as one that denies, or the other way round. */
static int check_prefix_word(struct tci_span text, struct tci_netrule_problem *problem)
{
    for (size_t i = 0; i < tci_array_size(prefix_words); i++) {
        const struct prefix_word *p = &prefix_words[i];
        if (!is_led_by(text, p->word))
            continue;
        tci_problem_message(problem, "\"%s\" can be neither prefix nor host here", p->word);
        return tci_problem_remedy(problem, "%s", p->remedy);
    }
    return 0;
}

static bool take_prefix(struct tci_span *text, const char *prefix)
{
    size_t length = strlen(prefix);

    if (text->length < length || memcmp(text->at, prefix, length) != 0)
        return false;
    *text = tci_span_from(*text, length);
    return true;
}

/* ---- Rules ---- */

/* The canonical rule as something to write, or an example when it is too long to show. */
static int suggest(struct tci_netrule_problem *problem, const char *what,
                   const struct tci_netrule *rule)
{
    char text[TCI_RULE_TEXT_MAX];

    tci_netrule_format(rule, text);
    bool fits = strlen(text) <= suggestion_max;
    return tci_problem_remedy(problem, "%s \"%s\"", what, fits ? text : "api.example.com:443");
}

static int refuse_missing_port(struct tci_span text, struct tci_netrule *rule,
                               struct tci_netrule_problem *problem)
{
    struct tci_excerpt excerpt;

    if (tci_host_parse(text.at, text.length, &rule->host, problem) < 0)
        return -1;
    tci_problem_message(problem, "%s has no port", tci_span_excerpt(text, &excerpt));
    rule->port_low = rule->port_high = 443;
    return suggest(problem, "add the port, e.g.", rule);
}

/* More than one ":" outside brackets. "2001:db8::1:443" has two readings; show the likely one. */
static int refuse_colons(struct tci_span text, size_t last_colon, struct tci_netrule *rule,
                         struct tci_netrule_problem *problem)
{
    struct tci_excerpt excerpt;
    struct tci_address *address = &rule->host.address;
    struct tci_span port = tci_span_from(text, last_colon + 1);

    rule->host.kind = TCI_HOST_ADDRESS;
    rule->host.prefix = 128;
    bool with_port = tci_address_parse_v6(text.at, last_colon, address) &&
                     parse_ports(port, rule, problem) == 0;
    if (!with_port)
        rule->port_low = rule->port_high = 443;
    if (with_port || tci_address_parse_v6(text.at, text.length, address)) {
        char host[TCI_RULE_TEXT_MAX];
        tci_host_format(&rule->host, host);
        if (tci_host_parse(host, strlen(host), &rule->host, problem) < 0)
            return -1;
        tci_problem_message(problem, "%s has an IPv6 address without brackets",
                            tci_span_excerpt(text, &excerpt));
        return suggest(problem, "put the address in brackets:", rule);
    }
    tci_problem_message(problem, "%s has more than one \":\"", tci_span_excerpt(text, &excerpt));
    return tci_problem_remedy(problem, "write HOST:PORT, with an IPv6 address in brackets, "
                                       "e.g. \"[2001:db8::1]:443\"");
}

static int parse_host_and_ports(struct tci_span text, struct tci_netrule *ret,
                                struct tci_netrule_problem *problem)
{
    size_t skip = text.length > 0 && text.at[0] == '[' ? tci_span_find(text, ']') : 0;
    size_t colon = skip + tci_span_find(tci_span_from(text, skip), ':');
    size_t last = text.length;

    while (last > colon && text.at[last - 1] != ':')
        last--;
    if (colon == text.length)
        return refuse_missing_port(text, ret, problem);
    if (skip == 0 && last - 1 != colon)
        return refuse_colons(text, last - 1, ret, problem);
    if (tci_host_parse(text.at, colon, &ret->host, problem) < 0)
        return -1;
    return parse_ports(tci_span_from(text, colon + 1), ret, problem);
}

/* "https://x.y/path": the scheme gives the port, the path is nothing that a rule can hold to. A
 * user part is not guessed at: "https://good.example@evil.example/" leads to the second. */
static int refuse_url(struct tci_span text, size_t scheme_end, struct tci_netrule *rule,
                      struct tci_netrule_problem *problem)
{
    struct tci_excerpt excerpt;
    struct tci_netrule_problem ignored;
    struct tci_span rest = tci_span_from(text, scheme_end + sizeof "://" - 1);
    size_t end = 0;

    tci_problem_message(problem, "%s is a URL, not a host and a port",
                        tci_span_excerpt(text, &excerpt));
    while (end < rest.length && !strchr("/?#", rest.at[end]))
        end++;
    rest = tci_span_until(rest, end);
    bool plain = tci_span_starts_with(text, "http:") || tci_span_starts_with(text, "ws:");
    bool known = plain || tci_span_starts_with(text, "https:") ||
                 tci_span_starts_with(text, "wss:");
    if (rest.length == 0 || check_prefix_word(rest, &ignored) < 0)
        known = false;
    else if (parse_host_and_ports(rest, rule, &ignored) == 0)
        return suggest(problem, "write", rule);
    rule->port_low = rule->port_high = plain ? 80 : 443;
    if (known && tci_host_parse(rest.at, rest.length, &rule->host, &ignored) == 0)
        return suggest(problem, "write", rule);
    return tci_problem_remedy(problem, "write the host and the port, e.g. \"api.example.com:443\"");
}

int tci_netrule_parse(const char *text, size_t length, struct tci_netrule *ret,
                      struct tci_netrule_problem *problem)
{
    struct tci_span span = { text, length };
    struct tci_netrule rule = { .deny = false };

    if (tci_span_check_bytes(span, problem) < 0)
        return -1;
    if (!take_prefix(&span, "allowlist:"))
        rule.deny = take_prefix(&span, "deny:");
    if (check_prefix_word(span, problem) < 0)
        return -1;
    size_t colon = tci_span_find(span, ':');
    if (span.length - colon >= 3 && memcmp(span.at + colon, "://", 3) == 0)
        return refuse_url(span, colon, &rule, problem);
    if (parse_host_and_ports(span, &rule, problem) < 0)
        return -1;
    *ret = rule;
    return 0;
}
