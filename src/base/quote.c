/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: quoting for messages. */
#include "base/quote.h"

#include <stdio.h>
#include <string.h>

enum { cut_at = 60 };

const char *tci_quote(const char *text, size_t length, char buffer[TCI_QUOTE_MAX])
{
    size_t used = 0;
    buffer[used++] = '"';
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (used > cut_at) {
            memcpy(buffer + used, "...", 3);
            used += 3;
            break;
        }
        if (c == '"' || c == '\\')
            buffer[used++] = '\\';
        if (c >= 0x20 && c < 0x7f)
            buffer[used++] = (char)c;
        else
            used += (size_t)snprintf(buffer + used, TCI_QUOTE_MAX - used, "\\x%02x", c);
    }
    buffer[used++] = '"';
    buffer[used] = '\0';
    return buffer;
}
