/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: which texts are URIs, IRIs (RFC 3986, RFC 3987) and URI templates (RFC 6570). */
#include "json/schema_uri.h"

#include <stdint.h>
#include <string.h>
#include "base/utf8.h"
#include "json/schema_format.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_unreserved(char c)
{
    return is_letter(c) || is_digit(c) || (c && strchr("-._~", c));
}

static bool is_sub_delimiter(char c)
{
    return c && strchr("!$&'()*+,;=", c);
}

/* Of other scripts: no controls, no surrogates, no noncharacters. Private use only in queries. */
static bool is_international(uint32_t c, bool private_use)
{
    if (c >= 0xe000 && c <= 0xf8ff)
        return private_use;
    if (c >= 0xf0000)
        return private_use && (c & 0xfffe) != 0xfffe;
    return c >= 0xa0 && (c < 0xfdd0 || c > 0xfdef) && (c < 0xfff0 || c > 0xffff) &&
           (c & 0xfffe) != 0xfffe && (c < 0xe0000 || c >= 0xe1000);
}

struct check {
    const char *extra; /* characters beside the usual ones */
    bool international, private_use;
};

/* The length of one character or %XX at `text`; 0: it may not stand there. */
static size_t character(const struct check *check, const char *text, size_t length)
{
    uint32_t c;
    size_t size;
    if (text[0] == '%')
        return length >= 3 && is_hex(text[1]) && is_hex(text[2]) ? 3 : 0;
    if ((unsigned char)text[0] < 0x80)
        return is_unreserved(text[0]) || is_sub_delimiter(text[0]) ||
               (text[0] && strchr(check->extra, text[0]));
    if (!check->international)
        return 0;
    size = tci_utf8_decode(text, length, &c);
    return size > 0 && is_international(c, check->private_use) ? size : 0;
}

static bool all(struct check check, struct tci_uri_part part)
{
    for (size_t i = 0; i < part.length;) {
        size_t size = character(&check, part.text + i, part.length - i);
        if (size == 0)
            return false;
        i += size;
    }
    return true;
}

/* [2001:db8::1] or [v1.future] */
static bool is_ip_literal(struct tci_uri_part host)
{
    const char *text = host.text + 1;
    size_t length = host.length - 2, digits = 1;

    if (length > 0 && (text[0] | 0x20) == 'v') {
        while (digits < length && is_hex(text[digits]))
            digits++;
        if (digits < 2 || digits + 1 >= length || text[digits] != '.' || memchr(text, '%', length))
            return false;
        return all((struct check){ ":", false, false },
                   (struct tci_uri_part){ text + digits + 1, length - digits - 1 });
    }
    return tci_format_ipv6(text, length, NULL);
}

static bool is_authority(struct tci_uri_part authority, bool international)
{
    const char *at = authority.length ? memrchr(authority.text, '@', authority.length) : NULL;
    struct tci_uri_part user = { authority.text, at ? (size_t)(at - authority.text) : 0 };
    struct tci_uri_part host = authority;
    size_t port;

    if (at)
        host = (struct tci_uri_part){ at + 1, authority.length - user.length - 1 };
    if (!all((struct check){ ":", international, false }, user))
        return false;
    for (port = host.length; port > 0 && is_digit(host.text[port - 1]);)
        port--;
    if (port > 0 && host.text[port - 1] == ':')
        host.length = port - 1;
    if (host.length >= 2 && host.text[0] == '[' && host.text[host.length - 1] == ']')
        return is_ip_literal(host);
    return all((struct check){ "", international, false }, host);
}

bool tci_uri_is_valid(const char *text, size_t length, bool relative, bool international)
{
    struct tci_uri uri = tci_uri_split(text, length);
    const char *slash, *colon;

    if (!uri.scheme.text) {
        if (!relative)
            return false;
        /* "a:b" would be a scheme. */
        colon = memchr(uri.path.text, ':', uri.path.length);
        slash = memchr(uri.path.text, '/', uri.path.length);
        if (!uri.authority.text && colon && (!slash || colon < slash))
            return false;
    }
    return (!uri.authority.text || is_authority(uri.authority, international)) &&
           all((struct check){ ":@/", international, false }, uri.path) &&
           all((struct check){ ":@/?", international, true }, uri.query) &&
           all((struct check){ ":@/?", international, false }, uri.fragment);
}

/* ---- templates -------------------------------------------------------------------------------- */

/* A name between dots, such as "a.b"; the characters read, 0: none. */
static size_t variable_name(const char *text, size_t length)
{
    size_t i = 0;
    bool after_dot = true;
    while (i < length) {
        if (text[i] == '.' && !after_dot) {
            after_dot = true;
            i++;
            continue;
        }
        if (text[i] == '%' && length - i >= 3 && is_hex(text[i + 1]) && is_hex(text[i + 2]))
            i += 3;
        else if (is_letter(text[i]) || is_digit(text[i]) || text[i] == '_')
            i++;
        else
            break;
        after_dot = false;
    }
    return after_dot ? 0 : i;
}

/* "*", or ":" and a number from 1 to 9999. */
static size_t modifier(const char *text, size_t length)
{
    size_t i = 1;
    if (length == 0)
        return 0;
    if (text[0] == '*')
        return 1;
    if (text[0] != ':' || length < 2 || text[1] == '0')
        return 0;
    while (i < length && i < 5 && is_digit(text[i]))
        i++;
    return i > 1 ? i : 0;
}

/* Behind {; the characters up to and with }, 0: not an expression. */
static size_t expression(const char *text, size_t length)
{
    size_t i = length > 0 && text[0] && strchr("+#./;?&", text[0]) ? 1 : 0;
    for (;;) {
        size_t name = variable_name(text + i, length - i);
        if (name == 0)
            return 0;
        i += name;
        i += modifier(text + i, length - i);
        if (i == length)
            return 0;
        if (text[i] == '}')
            return i + 1;
        if (text[i++] != ',')
            return 0;
    }
}

static size_t literal(const char *text, size_t length)
{
    uint32_t c;
    size_t size = tci_utf8_decode(text, length, &c);
    if (text[0] == '%')
        return length >= 3 && is_hex(text[1]) && is_hex(text[2]) ? 3 : 0;
    if (size == 1)
        return c > ' ' && c < 0x7f && !strchr("\"<>\\^`{|}", (int)c);
    return size > 0 && is_international(c, true) ? size : 0;
}

bool tci_format_uri_template(const char *text, size_t length,
                             const struct tci_format_context *context)
{
    (void)context;
    for (size_t i = 0; i < length;) {
        size_t size = text[i] == '{' ? expression(text + i + 1, length - i - 1)
                                     : literal(text + i, length - i);
        if (size == 0)
            return false;
        i += size + (text[i] == '{');
    }
    return true;
}
