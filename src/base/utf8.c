/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: UTF-8 decoding, and the tables of characters that deceive. */
#include "base/utf8.h"

#include "base/attr.h"

struct range {
    uint32_t first, last;
};

/* All of Unicode 15.1 that has the property Default_Ignorable_Code_Point (shows nothing) or the general
 * category Cf (acts on the text around it), but for U+FE0F, which is in every second emoji; and a few
 * more that look like nothing or end a line. Unassigned ones are in it where Unicode has set them aside
 * for this. In order. */
static const struct range deceptive[] = {
    { 0x00ad, 0x00ad },   /* soft hyphen */
    { 0x034f, 0x034f },   /* combining grapheme joiner */
    { 0x0600, 0x0605 },   /* Arabic signs that reach over the digits behind them */
    { 0x061c, 0x061c },   /* Arabic letter mark: changes direction */
    { 0x06dd, 0x06dd },   /* Arabic end of ayah: encloses the digits behind it */
    { 0x070f, 0x070f },   /* Syriac abbreviation mark: reaches over letters */
    { 0x0890, 0x0891 },   /* Arabic currency marks over digits */
    { 0x08e2, 0x08e2 },   /* Arabic disputed end of ayah: encloses digits */
    { 0x115f, 0x1160 },   /* Hangul fillers: letters that show nothing */
    { 0x17b4, 0x17b5 },   /* Khmer vowels that show nothing */
    { 0x180b, 0x180f },   /* Mongolian separator and variation selectors */
    { 0x200b, 0x200f },   /* zero width, direction marks */
    { 0x2028, 0x202e },   /* line separators, embeddings, overrides */
    { 0x2060, 0x206f },   /* word joiner, invisible operators, isolates, deprecated formatting */
    { 0x2800, 0x2800 },   /* Braille pattern blank */
    { 0x3164, 0x3164 },   /* Hangul filler */
    { 0xfe00, 0xfe0e },   /* variation selectors */
    { 0xfeff, 0xfeff },   /* byte order mark inside a text */
    { 0xffa0, 0xffa0 },   /* half-width Hangul filler */
    { 0xfff0, 0xfffb },   /* set aside to show nothing; interlinear annotation */
    { 0x110bd, 0x110bd }, /* Kaithi number sign: reaches over digits */
    { 0x110cd, 0x110cd }, /* Kaithi number sign above */
    { 0x13430, 0x1343f }, /* Egyptian hieroglyph joiners and segments: stack what is around them */
    { 0x1bca0, 0x1bca3 }, /* shorthand format controls */
    { 0x1d173, 0x1d17a }, /* musical beams, ties, slurs: begin and end, invisible */
    { 0xe0000, 0xe0fff }, /* tags, more variation selectors, the rest set aside to show nothing */
};

static bool is_in(uint32_t code_point, const struct range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (code_point >= ranges[i].first && code_point <= ranges[i].last)
            return true;
    return false;
}

bool tci_utf8_is_deceptive(uint32_t code_point)
{
    return is_in(code_point, deceptive, tci_array_size(deceptive));
}

/* A blank that is not U+0020: one that looks the same and is another, or is wider. */
static bool is_foreign_blank(uint32_t code_point)
{
    return code_point == 0xa0 || code_point == 0x1680 ||
           (code_point >= 0x2000 && code_point <= 0x200a) || code_point == 0x202f ||
           code_point == 0x205f || code_point == 0x3000;
}

bool tci_utf8_is_plain(uint32_t code_point)
{
    static const struct range not_plain[] = {
        { 0x0000, 0x001f },    { 0x007f, 0x009f }, /* controls */
        { 0x0300, 0x036f },    { 0x0483, 0x0489 }, /* accents, strokes; Cyrillic, which enclose */
        { 0x1ab0, 0x1aff },    { 0x1dc0, 0x1dff }, /* more of them */
        { 0x20d0, 0x20ff },    { 0xa66f, 0xa672 }, /* for symbols; Cyrillic again */
        { 0xe000, 0xf8ff },    { 0xfdd0, 0xfdef }, /* private use; noncharacters */
        { 0xfe0f, 0xfe0f },                        /* in every second emoji, and shows nothing */
        { 0xfe20, 0xfe2f },                        /* half marks */
        { 0xf0000, 0x10ffff },                     /* private use */
    };
    return !is_in(code_point, not_plain, tci_array_size(not_plain)) &&
           (code_point & 0xfffe) != 0xfffe && !tci_utf8_is_deceptive(code_point) &&
           !is_foreign_blank(code_point);
}

size_t tci_utf8_decode(const char *bytes, size_t length, uint32_t *ret_code_point)
{
    static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const unsigned char *p = (const unsigned char *)bytes;
    size_t size;
    uint32_t c;

    if (length == 0)
        return 0;
    if (p[0] < 0x80) {
        *ret_code_point = p[0];
        return 1;
    }
    if (p[0] >= 0xc2 && p[0] <= 0xdf)
        size = 2;
    else if ((p[0] & 0xf0) == 0xe0)
        size = 3;
    else if (p[0] >= 0xf0 && p[0] <= 0xf4)
        size = 4;
    else
        return 0;
    if (length < size)
        return 0;
    c = p[0] & (0xffU >> (size + 1));
    for (size_t i = 1; i < size; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = (c << 6) | (p[i] & 0x3fU);
    }
    if (c < smallest[size] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    *ret_code_point = c;
    return size;
}
