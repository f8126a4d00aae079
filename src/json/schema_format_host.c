/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: addresses of hosts and of people: ipv4, ipv6, hostname, idn-hostname, email, idn-email. */
#include "json/schema_format.h"

#include <string.h>
#include <strings.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* ---- addresses -------------------------------------------------------------------------------- */

/* Four numbers without leading zeros: "010" is 8 to some readers and 10 to others. */
bool tci_format_ipv4(const char *text, size_t length, const struct tci_format_context *context)
{
    size_t i = 0;
    (void)context;
    for (unsigned part = 0; part < 4; part++) {
        unsigned value = 0, digits = 0;
        if (part > 0 && (i == length || text[i++] != '.'))
            return false;
        for (; i < length && is_digit(text[i]) && digits < 4; i++, digits++)
            value = value * 10 + (unsigned)(text[i] - '0');
        if (digits == 0 || value > 255 || (digits > 1 && text[i - digits] == '0'))
            return false;
    }
    return i == length;
}

static size_t hex_digits(const char *text, size_t length)
{
    size_t i = 0;
    while (i < length && (is_digit(text[i]) || (text[i] >= 'a' && text[i] <= 'f') ||
                          (text[i] >= 'A' && text[i] <= 'F')))
        i++;
    return i;
}

bool tci_format_ipv6(const char *text, size_t length, const struct tci_format_context *context)
{
    size_t i = 0;
    unsigned groups = 0;
    bool gap = false, after_colon = true;

    if (length >= 2 && text[0] == ':' && text[1] == ':') {
        gap = true;
        i = 2;
    }
    while (i < length) {
        size_t digits = hex_digits(text + i, length - i);
        if (digits > 0 && i + digits < length && text[i + digits] == '.')
            return groups + 2 <= 8 && (gap ? groups + 2 < 8 : groups + 2 == 8) &&
                   tci_format_ipv4(text + i, length - i, context);
        if (digits == 0 || digits > 4 || groups == 8)
            return false;
        groups++;
        i += digits;
        after_colon = false;
        if (i == length)
            break;
        if (text[i++] != ':')
            return false;
        after_colon = true;
        if (i < length && text[i] == ':') {
            if (gap)
                return false;
            gap = true;
            i++;
            if (i == length)
                after_colon = false;
        }
    }
    return (!after_colon || groups == 0) && (gap ? groups < 8 : groups == 8);
}

/* ---- host names ------------------------------------------------------------------------------- */

/* Letters, digits and hyphens, no hyphen at either end. */
static bool is_ldh_label(const char *label, size_t length)
{
    if (length == 0 || length > TCI_LABEL_MAX || label[0] == '-' || label[length - 1] == '-')
        return false;
    for (size_t i = 0; i < length; i++)
        if (!is_letter(label[i]) && !is_digit(label[i]) && label[i] != '-')
            return false;
    return true;
}

static bool has_ace_prefix(const char *label, size_t length)
{
    return length >= 4 && (label[0] | 0x20) == 'x' && (label[1] | 0x20) == 'n' && label[2] == '-' &&
           label[3] == '-';
}

bool tci_format_hostname(const char *text, size_t length, const struct tci_format_context *context)
{
    size_t from = 0;
    struct tci_label label;

    if (length == 0 || length > TCI_HOSTNAME_MAX)
        return false;
    for (size_t i = 0; i <= length; i++) {
        if (i < length && text[i] != '.')
            continue;
        if (!is_ldh_label(text + from, i - from))
            return false;
        if (has_ace_prefix(text + from, i - from) &&
            !tci_idna_label(context, text + from, i - from, &label))
            return false;
        from = i + 1;
    }
    return true;
}

/* Bytes of a dot at `text`, in any of the four forms that separate labels; 0: none. */
static size_t dot_size(const char *text, size_t length)
{
    static const char *const wide[] = { "\xe3\x80\x82", "\xef\xbc\x8e", "\xef\xbd\xa1" };
    if (length > 0 && text[0] == '.')
        return 1;
    for (size_t i = 0; length >= 3 && i < tci_array_size(wide); i++)
        if (memcmp(text, wide[i], 3) == 0)
            return 3;
    return 0;
}

bool tci_format_idn_hostname(const char *text, size_t length,
                             const struct tci_format_context *context)
{
    size_t from = 0, total = 0;
    bool right_to_left = false, keeps_rule = true;

    /* A character has up to 4 bytes, and every label of the wire form at least as many as it has
     * characters: what is longer than this cannot be a name. */
    if (length / 4 > TCI_HOSTNAME_MAX)
        return false;
    for (size_t i = 0; i <= length; i++) {
        size_t dot = dot_size(text + i, length - i);
        struct tci_label label;
        if (i < length && dot == 0)
            continue;
        if (!tci_idna_label(context, text + from, i - from, &label))
            return false;
        total += label.ascii_length + (total > 0);
        right_to_left |= label.has_right_to_left;
        keeps_rule &= label.keeps_bidi_rule;
        if (dot > 0)
            i += dot - 1;
        from = i + 1;
    }
    return total <= TCI_HOSTNAME_MAX && (keeps_rule || !right_to_left);
}

/* ---- e-mail ----------------------------------------------------------------------------------- */

static bool is_atom_character(char c, bool international)
{
    return is_letter(c) || is_digit(c) || (c && strchr("!#$%&'*+-/=?^_`{|}~", c)) ||
           (international && (unsigned char)c >= 0x80);
}

/* The length of the local part before its @; 0: there is none. */
static size_t quoted_length(const char *text, size_t length, bool international)
{
    size_t i = 1;
    for (; i < length && text[i] != '"'; i++) {
        if (text[i] == '\\' && i + 1 < length)
            i++;
        if ((unsigned char)text[i] >= 0x80 ? !international : text[i] < ' ' || text[i] == 0x7f)
            return 0;
    }
    return i < length ? i + 1 : 0;
}

static size_t atoms_length(const char *text, size_t length, bool international)
{
    size_t i = 0;
    for (; i < length && text[i] != '@'; i++) {
        bool dot = text[i] == '.' && i > 0 && text[i - 1] != '.';
        if (!dot && !is_atom_character(text[i], international))
            return 0;
    }
    return i > 0 && text[i - 1] == '.' ? 0 : i;
}

/* [192.0.2.1] or [IPv6:2001:db8::1] */
static bool is_literal(const char *text, size_t length, const struct tci_format_context *context)
{
    if (length < 2 || text[0] != '[' || text[length - 1] != ']')
        return false;
    text++;
    length -= 2;
    if (length > 5 && strncasecmp(text, "IPv6:", 5) == 0)
        return tci_format_ipv6(text + 5, length - 5, context);
    return tci_format_ipv4(text, length, context);
}

static bool is_mailbox(const char *text, size_t length, bool international,
                       const struct tci_format_context *context)
{
    size_t local = length > 0 && text[0] == '"' ? quoted_length(text, length, international)
                                                : atoms_length(text, length, international);
    const char *domain = text + local + 1;
    size_t domain_length;

    if (local == 0 || local > 64 || local + 1 >= length || text[local] != '@')
        return false;
    domain_length = length - local - 1;
    if (domain[0] == '[')
        return is_literal(domain, domain_length, context);
    return international ? tci_format_idn_hostname(domain, domain_length, context)
                         : tci_format_hostname(domain, domain_length, context);
}

bool tci_format_email(const char *text, size_t length, const struct tci_format_context *context)
{
    return is_mailbox(text, length, false, context);
}

bool tci_format_idn_email(const char *text, size_t length, const struct tci_format_context *context)
{
    return is_mailbox(text, length, true, context);
}
