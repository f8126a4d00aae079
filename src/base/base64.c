/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: base64, both ways. Decoding accepts exactly what encoding gives. */
#include "base/base64.h"

#include <stdint.h>
#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Four characters for one to three bytes. */
static void encode_group(const unsigned char *from, size_t count, char to[4])
{
    uint32_t bits = (uint32_t)from[0] << 16;
    if (count > 1)
        bits |= (uint32_t)from[1] << 8;
    if (count > 2)
        bits |= from[2];
    to[0] = alphabet[bits >> 18];
    to[1] = alphabet[bits >> 12 & 63];
    to[2] = count > 1 ? alphabet[bits >> 6 & 63] : '=';
    to[3] = count > 2 ? alphabet[bits & 63] : '=';
}

void tci_base64_encode(struct tci_buf *out, const void *bytes, size_t length)
{
    const unsigned char *from = bytes;
    char text[256]; /* pieces, so that the buffer grows a few times and not for every group */
    size_t used = 0;

    while (length > 0) {
        size_t count = length < 3 ? length : 3;
        encode_group(from, count, text + used);
        from += count;
        length -= count;
        used += 4;
        if (used == sizeof text) {
            tci_buf_append(out, text, used);
            used = 0;
        }
    }
    tci_buf_append(out, text, used);
}

/* 0 to 63, or 64 for a character outside the alphabet. */
static uint32_t value_of(char c)
{
    const char *found = c ? strchr(alphabet, c) : NULL;
    return found ? (uint32_t)(found - alphabet) : 64;
}

int tci_base64_decode(struct tci_buf *out, const char *text, size_t length)
{
    if (length % 4 != 0)
        return -1;
    for (; length > 0; length -= 4, text += 4) {
        size_t count = 3;
        uint32_t bits = 0;
        if (length == 4 && text[3] == '=')
            count = text[2] == '=' ? 1 : 2;
        for (size_t i = 0; i < 4; i++) {
            uint32_t value = i <= count ? value_of(text[i]) : 0;
            if (value > 63)
                return -1;
            bits = bits << 6 | value;
        }
        /* The bits behind the last byte are zero: one value has one text. */
        if (bits & (count == 1 ? 0xffff : count == 2 ? 0xff : 0))
            return -1;
        tci_buf_append(out,
                       (char[]){ (char)(bits >> 16), (char)(bits >> 8 & 255), (char)(bits & 255) },
                       count);
    }
    return 0;
}
