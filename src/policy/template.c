/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: cutting a command element into literals and placeholders. */
#include "policy/template.h"

#include <string.h>

static bool is_identifier_byte(char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (!first && ((c >= '0' && c <= '9') || c == '-'));
}

static int placeholder(const char **cursor, struct tci_template_part *ret)
{
    const char *p = *cursor + 1;
    size_t length = 0;
    while (is_identifier_byte(p[length], length == 0))
        length++;
    *ret = (struct tci_template_part){ .is_placeholder = true, .text = p, .length = length };
    p += length;
    if (strncmp(p, "...", 3) == 0) {
        ret->is_list = true;
        p += 3;
    }
    if (length == 0 || *p != '}')
        return -1;
    *cursor = p + 1;
    return 1;
}

int tci_template_next(const char **cursor, struct tci_template_part *ret)
{
    const char *p = *cursor;
    if (!*p)
        return 0;
    if (*p == '{' && p[1] != '{')
        return placeholder(cursor, ret);
    if (*p == '}' && p[1] != '}')
        return -1;
    *ret = (struct tci_template_part){ .text = p };
    if (*p == '{' || *p == '}') {
        ret->length = 1;
        *cursor = p + 2;
        return 1;
    }
    ret->length = strcspn(p, "{}");
    *cursor = p + ret->length;
    return 1;
}

bool tci_template_is_option(const char *element)
{
    return element[0] == '-' && element[1] && strcmp(element, "--") != 0;
}

bool tci_template_wants_value(const char *element)
{
    size_t dashes = element[1] == '-' ? 2 : 1, open;
    if (!tci_template_is_option(element) || (dashes == 2 && strchr(element, '=')))
        return false;
    for (open = 0; element[open] && (element[open] != '{' || element[open + 1] == '{'); open++)
        open += element[open] == '{'; /* a brace that is text */
    return !element[open] ||
           open <= dashes; /* in "-{letter}" the placeholder is the option's name */
}
