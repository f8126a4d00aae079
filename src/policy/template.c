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
