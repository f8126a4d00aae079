/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the table of formats, and those of them that are short. */
#include "json/schema_format.h"

#include <string.h>
#include "json/schema_regex.h"
#include "json/schema_uri.h"

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool check_uuid(const char *text, size_t length, const struct tci_format_context *context)
{
    (void)context;
    if (length != 36)
        return false;
    for (size_t i = 0; i < length; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? text[i] != '-' : !is_hex(text[i]))
            return false;
    }
    return true;
}

static bool check_json_pointer(const char *text, size_t length,
                               const struct tci_format_context *context)
{
    (void)context;
    if (length > 0 && text[0] != '/')
        return false;
    for (size_t i = 0; i < length; i++)
        if (text[i] == '~' && (i + 1 == length || (text[i + 1] != '0' && text[i + 1] != '1')))
            return false;
    return true;
}

/* "0", "12/foo", "1#" */
static bool check_relative_pointer(const char *text, size_t length,
                                   const struct tci_format_context *context)
{
    size_t digits = 0;
    while (digits < length && text[digits] >= '0' && text[digits] <= '9')
        digits++;
    if (digits == 0 || (text[0] == '0' && digits > 1))
        return false;
    if (length - digits == 1 && text[digits] == '#')
        return true;
    return check_json_pointer(text + digits, length - digits, context);
}

static bool check_regex(const char *text, size_t length, const struct tci_format_context *context)
{
    (void)context;
    return tci_regex_is_valid(text, length);
}

static bool check_uri(const char *text, size_t length, const struct tci_format_context *context)
{
    (void)context;
    return tci_uri_is_valid(text, length, false, false);
}

static bool check_uri_reference(const char *text, size_t length,
                                const struct tci_format_context *context)
{
    (void)context;
    return tci_uri_is_valid(text, length, true, false);
}

static bool check_iri(const char *text, size_t length, const struct tci_format_context *context)
{
    (void)context;
    return tci_uri_is_valid(text, length, false, true);
}

static bool check_iri_reference(const char *text, size_t length,
                                const struct tci_format_context *context)
{
    (void)context;
    return tci_uri_is_valid(text, length, true, true);
}

static const struct tci_schema_format formats[] = {
    { "date-time", "a date and time such as 2026-01-31T08:30:00Z", tci_format_date_time, false },
    { "date", "a date such as 2026-01-31", tci_format_date, false },
    { "time", "a time with offset such as 08:30:00Z", tci_format_time, false },
    { "duration", "a duration such as P1DT12H", tci_format_duration, false },
    { "email", "an e-mail address", tci_format_email, true },
    { "idn-email", "an e-mail address", tci_format_idn_email, true },
    { "hostname", "a host name such as www.example.com", tci_format_hostname, true },
    { "idn-hostname", "a host name such as www.example.com", tci_format_idn_hostname, true },
    { "ipv4", "an IPv4 address such as 192.0.2.1", tci_format_ipv4, false },
    { "ipv6", "an IPv6 address such as 2001:db8::1", tci_format_ipv6, false },
    { "uri", "an absolute URI such as https://example.com/path", check_uri, false },
    { "uri-reference", "a URI or a relative reference such as /path", check_uri_reference, false },
    { "iri", "an absolute IRI such as https://example.com/path", check_iri, false },
    { "iri-reference", "an IRI or a relative reference such as /path", check_iri_reference, false },
    { "uri-template", "a URI template such as /users/{id}", tci_format_uri_template, false },
    { "uuid", "a UUID such as 2eb8aa08-aa98-11ea-b4aa-73b441d16380", check_uuid, false },
    { "json-pointer", "a JSON Pointer such as /items/0", check_json_pointer, false },
    { "relative-json-pointer", "a relative JSON Pointer such as 1/items/0", check_relative_pointer,
      false },
    { "regex", "a regular expression of ECMA-262", check_regex, false },
};

const struct tci_schema_format *tci_schema_format_find(const char *name)
{
    for (size_t i = 0; i < tci_array_size(formats); i++)
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    return NULL;
}
