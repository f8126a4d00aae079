/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: labels of internationalized host names. The rules are written as expressions over PCRE2's
 * tables of Unicode: which characters may stand in a label (RFC 5892), which only beside others, and
 * in which direction it may run (RFC 5893).
 *
 * Not exact in one point: RFC 5892 lets a ZERO WIDTH NON-JOINER stand between any letters that join;
 * here those of the Arabic block are known, with at most two marks before it.
 */
#include "json/schema_format.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>
#include "json/schema_punycode.h"
#include "json/schema_regex.h"

struct tci_idna {
    const struct tci_regex *characters;   /* only what may stand in a label; no mark at its start */
    const struct tci_regex *out_of_place; /* a character that is not beside what it needs */
    const struct tci_regex *right_to_left, *bidi_rule;
};

/* Letters, marks and digits that NFKC and case folding change: they look like others. */
#define UNSTABLE                                                                                   \
    "\\xaa-\\xba\\x{133}\\x{140}\\x{149}\\x{17f}\\x{1c6}-\\x{1cc}\\x{1f3}\\x{2b0}-\\x{2b8}"        \
    "\\x{2e0}-\\x{2e4}\\x{340}\\x{341}\\x{343}-\\x{345}\\x{374}\\x{37a}\\x{3d0}-\\x{3d6}"          \
    "\\x{3f0}-\\x{3f2}\\x{3f5}\\x{587}\\x{675}-\\x{678}\\x{958}-\\x{95f}\\x{9dc}-\\x{9df}"         \
    "\\x{a33}\\x{a36}\\x{a59}-\\x{a5b}\\x{a5e}\\x{b5c}\\x{b5d}\\x{e33}\\x{eb3}\\x{edc}\\x{edd}"    \
    "\\x{f43}\\x{f4d}\\x{f52}\\x{f57}\\x{f5c}\\x{f69}\\x{f73}\\x{f75}-\\x{f79}\\x{f81}\\x{f93}"    \
    "\\x{f9d}\\x{fa2}\\x{fa7}\\x{fac}\\x{fb9}\\x{10fc}\\x{13f8}-\\x{13fd}\\x{1c80}-\\x{1c88}"      \
    "\\x{1d2c}-\\x{1d2e}\\x{1d30}-\\x{1d3a}\\x{1d3c}-\\x{1d4d}\\x{1d4f}-\\x{1d6a}\\x{1d78}"        \
    "\\x{1d9b}-\\x{1dbf}\\x{1e9a}\\x{1e9b}\\x{1f71}\\x{1f73}\\x{1f75}\\x{1f77}\\x{1f79}\\x{1f7b}"  \
    "\\x{1f7d}-\\x{1fa7}\\x{1fb2}-\\x{1fb4}\\x{1fb7}-\\x{1fc4}\\x{1fc7}\\x{1fd3}\\x{1fe3}"         \
    "\\x{1ff2}-\\x{1ff4}\\x{1ff7}-\\x{209c}\\x{210a}-\\x{2149}\\x{2c7c}\\x{2c7d}\\x{2d6f}"         \
    "\\x{309f}\\x{30ff}\\x{3131}-\\x{318e}\\x{a69c}\\x{a69d}\\x{a770}\\x{a7f2}-\\x{a7f4}\\x{a7f8}" \
    "\\x{a7f9}\\x{ab5c}-\\x{ab5f}\\x{ab69}-\\x{abbf}\\x{f900}-\\x{fa0d}\\x{fa10}\\x{fa12}"         \
    "\\x{fa15}-\\x{fa1e}\\x{fa20}\\x{fa22}\\x{fa25}\\x{fa26}\\x{fa2a}-\\x{fb1d}\\x{fb1f}-\\x{"     \
    "fdfb}"                                                                                        \
    "\\x{fe70}-\\x{fe72}\\x{fe74}-\\x{ffdc}\\x{10781}-\\x{107ba}\\x{1d41a}-\\x{1d7ff}"             \
    "\\x{1ee00}-\\x{1fbf9}\\x{2f800}-\\x{2fa1d}"

/* Further ones that are not allowed: exceptions of the RFC, old Hangul, and what is not seen. */
#define EXCLUDED                                                                                   \
    "\\x{640}\\x{7fa}\\x{302e}\\x{302f}\\x{3031}-\\x{3035}\\x{303b}\\x{1100}-\\x{11ff}"            \
    "\\x{a960}-\\x{a97c}\\x{d7b0}-\\x{d7fb}\\p{Default_Ignorable_Code_Point}"

/* Allowed although they are no letters, or not stable; then those that need a neighbour. */
#define INCLUDED                                                                                   \
    "\\xdf\\x{3c2}\\x{6fd}\\x{6fe}\\x{f0b}\\x{3007}\\xb7\\x{375}\\x{5f3}\\x{5f4}\\x{30fb}"         \
    "\\x{200c}\\x{200d}"

#define VIRAMA                                                                                     \
    "[\\x{94d}\\x{9cd}\\x{a4d}\\x{acd}\\x{b4d}\\x{bcd}\\x{c4d}\\x{ccd}\\x{d3b}\\x{d3c}\\x{d4d}"    \
    "\\x{dca}\\x{e3a}\\x{eba}\\x{f84}\\x{1039}\\x{103a}\\x{1714}\\x{1715}\\x{1734}\\x{17d2}"       \
    "\\x{1a60}\\x{1b44}\\x{1baa}\\x{1bab}\\x{1bf2}\\x{1bf3}\\x{2d7f}\\x{a806}\\x{a82c}\\x{a8c4}"   \
    "\\x{a953}\\x{a9c0}\\x{aaf6}\\x{abed}\\x{10a3f}\\x{11046}\\x{11070}\\x{1107f}\\x{110b9}"       \
    "\\x{11133}\\x{11134}\\x{111c0}\\x{11235}\\x{112ea}\\x{1134d}\\x{11442}\\x{114c2}\\x{115bf}"   \
    "\\x{1163f}\\x{116b6}\\x{1172b}\\x{11839}\\x{1193d}\\x{1193e}\\x{119e0}\\x{11a34}\\x{11a47}"   \
    "\\x{11a99}\\x{11c3f}\\x{11d44}\\x{11d45}\\x{11d97}]"

/* Arabic letters that join on both sides, and those that join only to the one before. */
#define JOINS_BOTH                                                                                 \
    "\\x{620}\\x{626}\\x{628}\\x{62a}-\\x{62e}\\x{633}-\\x{63f}\\x{641}-\\x{647}\\x{649}\\x{64a}"  \
    "\\x{66e}\\x{66f}\\x{679}-\\x{687}\\x{69a}-\\x{6bf}\\x{6c1}\\x{6c2}\\x{6cc}\\x{6ce}\\x{6d0}"   \
    "\\x{6d1}\\x{6fa}-\\x{6fc}\\x{6ff}"
#define JOINS_BEFORE                                                                               \
    "\\x{622}-\\x{625}\\x{627}\\x{629}\\x{62f}-\\x{632}\\x{648}\\x{671}-\\x{673}\\x{688}-\\x{699}" \
    "\\x{6c0}\\x{6c3}-\\x{6cb}\\x{6cd}\\x{6cf}\\x{6d2}\\x{6d3}\\x{6d5}\\x{6ee}\\x{6ef}"

#define LEFT_NOT(what) "(?<!" what ")"

static const char characters[] = "^(?!\\p{M})(?:[a-z0-9-]|[" INCLUDED "]|(?![" EXCLUDED UNSTABLE
                                 "])"
                                 "[\\p{Ll}\\p{Lo}\\p{Lm}\\p{Mn}\\p{Mc}\\p{Nd}])+\\z";

static const char out_of_place[] =
    LEFT_NOT("l") "\\xb7|\\xb7(?!l)|\\x{375}(?!\\p{sc:Greek})|" LEFT_NOT(
        "\\p{sc:Hebrew}") "[\\x{5f3}\\x{5f4}]|"
                          "^(?=.*\\x{30fb})[^\\p{sc:Hiragana}\\p{sc:Katakana}\\p{sc:Han}]+\\z|"
                          "[\\x{660}-\\x{669}].*[\\x{6f0}-\\x{6f9}]|[\\x{6f0}-\\x{6f9}].*[\\x{660}-"
                          "\\x{669}]|" LEFT_NOT(VIRAMA) "\\x{200d}|" LEFT_NOT(
                              VIRAMA) "\\x{200c}(?!\\p{Mn}*[" JOINS_BOTH JOINS_BEFORE
                                      "])|" LEFT_NOT(VIRAMA) LEFT_NOT("[" JOINS_BOTH "]")
                                          LEFT_NOT("[" JOINS_BOTH "]\\p{Mn}") LEFT_NOT(
                                              "[" JOINS_BOTH "]\\p{Mn}\\p{Mn}") "\\x{200c}";

static const char right_to_left[] = "[\\p{bidiR}\\p{bidiAL}\\p{bidiAN}]";

/* Either from right to left: no European and Arabic digits together; or from left to right. */
#define NEUTRAL "\\p{bidiES}\\p{bidiCS}\\p{bidiET}\\p{bidiON}\\p{bidiBN}\\p{bidiNSM}"
static const char bidi_rule[] =
    "^(?=[\\p{bidiR}\\p{bidiAL}])(?!.*\\p{bidiEN}.*\\p{bidiAN})(?!.*\\p{bidiAN}.*\\p{bidiEN})"
    "[\\p{bidiR}\\p{bidiAL}\\p{bidiAN}\\p{bidiEN}" NEUTRAL "]*"
    "[\\p{bidiR}\\p{bidiAL}\\p{bidiAN}\\p{bidiEN}]\\p{bidiNSM}*\\z|"
    "^(?=\\p{bidiL})[\\p{bidiL}\\p{bidiEN}" NEUTRAL "]*[\\p{bidiL}\\p{bidiEN}]\\p{bidiNSM}*\\z";

const struct tci_idna *tci_idna_new(struct tci_arena *arena, struct tci_regex **list,
                                    struct tc_error *reterr)
{
    struct tci_idna *idna = tci_arena_new_of(arena, struct tci_idna);
    if (!idna) {
        tci_error_no_memory(reterr);
        return NULL;
    }
    if (tci_regex_compile_raw(characters, list, &idna->characters, reterr) < 0 ||
        tci_regex_compile_raw(out_of_place, list, &idna->out_of_place, reterr) < 0 ||
        tci_regex_compile_raw(right_to_left, list, &idna->right_to_left, reterr) < 0 ||
        tci_regex_compile_raw(bidi_rule, list, &idna->bidi_rule, reterr) < 0)
        return NULL;
    return idna;
}

static bool matches(const struct tci_format_context *context, const struct tci_regex *regex,
                    const char *text, size_t length)
{
    return tci_regex_matches(regex, context->limits, text, length, context->budget);
}

/* A label in Unicode; "--" in the third and fourth place is kept for encodings. */
static bool is_unicode_label(const struct tci_format_context *context, const char *label,
                             size_t length)
{
    const struct tci_idna *idna = context->idna;
    if (length == 0 || label[0] == '-' || label[length - 1] == '-')
        return false;
    if (length >= 4 && (label[0] & 0x80) == 0 && (label[1] & 0x80) == 0 && label[2] == '-' &&
        label[3] == '-')
        return false;
    return matches(context, idna->characters, label, length) &&
           !matches(context, idna->out_of_place, label, length);
}

static bool is_ascii(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] >= 0x80)
            return false;
    return true;
}

static void judge_direction(const struct tci_format_context *context, const char *label,
                            size_t length, struct tci_label *ret)
{
    ret->has_right_to_left = matches(context, context->idna->right_to_left, label, length);
    ret->keeps_bidi_rule = matches(context, context->idna->bidi_rule, label, length);
}

/* "xn--" and Punycode: what it stands for must need it, and must give the same text again. */
static bool is_encoded_label(const struct tci_format_context *context, const char *label,
                             size_t length, struct tci_label *ret)
{
    char unicode[4 * TCI_LABEL_MAX], again[TCI_LABEL_MAX];
    size_t unicode_length, again_length;

    if (!tci_punycode_decode(label + 4, length - 4, unicode, sizeof unicode, &unicode_length) ||
        is_ascii(unicode, unicode_length) || !is_unicode_label(context, unicode, unicode_length))
        return false;
    if (!tci_punycode_encode(unicode, unicode_length, again, sizeof again, &again_length) ||
        again_length != length - 4 || strncasecmp(again, label + 4, again_length) != 0)
        return false;
    judge_direction(context, unicode, unicode_length, ret);
    return !ret->has_right_to_left || ret->keeps_bidi_rule;
}

static bool is_plain_label(const char *label, size_t length)
{
    if (label[0] == '-' || label[length - 1] == '-' ||
        (length >= 4 && label[2] == '-' && label[3] == '-'))
        return false;
    for (size_t i = 0; i < length; i++) {
        char c = label[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '-'))
            return false;
    }
    return true;
}

bool tci_idna_label(const struct tci_format_context *context, const char *label, size_t length,
                    struct tci_label *ret)
{
    char encoded[TCI_LABEL_MAX];
    size_t encoded_length;

    if (length == 0)
        return false;
    if (is_ascii(label, length)) {
        ret->ascii_length = length;
        if (length > TCI_LABEL_MAX)
            return false;
        if (length >= 4 && strncasecmp(label, "xn--", 4) == 0)
            return is_encoded_label(context, label, length, ret);
        judge_direction(context, label, length, ret);
        return is_plain_label(label, length);
    }
    if (!is_unicode_label(context, label, length) ||
        !tci_punycode_encode(label, length, encoded, sizeof encoded, &encoded_length) ||
        encoded_length + 4 > TCI_LABEL_MAX)
        return false;
    ret->ascii_length = encoded_length + 4;
    judge_direction(context, label, length, ret);
    return true;
}
