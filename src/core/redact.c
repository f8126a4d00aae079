/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: values of arguments that a journal must not hold: found by JSON pointer (RFC 6901), replaced by
 * their salted hash, and gathered as secrets, so that the result can be searched for them.
 * The attack that it stops: somebody who reads a journal, or a copy of it, learns a password that a
 * tool was called with. What a tool makes of a value (its base64, its reverse) is not found.
 */
#include "core/redact.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include "json/canonical.h"

static void decref(json_t **value)
{
    json_decref(*value);
}

void tci_redact_hash(const unsigned char *salt, const char *text, size_t length,
                     char ret[TCI_SHA256_TEXT_MAX])
{
    struct tci_sha256 hash;
    tci_sha256_begin(&hash);
    tci_sha256_add(&hash, salt, 32);
    tci_sha256_add(&hash, text, length);
    tci_sha256_end_text(&hash, ret);
}

/* ---- pointers ----------------------------------------------------------------------------- */

/* The next part of a pointer, unescaped. False: it is not a pointer. */
static bool next_part(struct tci_buf *part, const char **pointer)
{
    const char *p = *pointer;
    part->length = 0;
    tci_buf_append(part, "", 0);
    if (*p++ != '/')
        return false;
    for (; *p && *p != '/'; p++) {
        if (*p == '~' && (p[1] == '0' || p[1] == '1'))
            tci_buf_char(part, *++p == '0' ? '~' : '/');
        else
            tci_buf_char(part, *p);
    }
    *pointer = p;
    return true;
}

/* "0", "17": no sign, no leading zero. "-" is the place behind the last one, where nothing is. */
static bool index_of(const char *text, size_t *ret)
{
    size_t value = 0, digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 9 || text[digits] || (text[0] == '0' && digits > 1))
        return false;
    for (; *text; text++)
        value = value * 10 + (size_t)(*text - '0');
    *ret = value;
    return true;
}

static json_t *child_of(const json_t *value, const char *name)
{
    size_t index;
    if (json_is_object(value))
        return json_object_get(value, name);
    return json_is_array(value) && index_of(name, &index) ? json_array_get(value, index) : NULL;
}

/* Puts `new` in place of what the pointer names, if that is there. Takes `new` over. */
static int replace(json_t **root, const char *pointer, json_t *new)
{
    tc_cleanup(tci_buf_free) struct tci_buf part = TCI_BUF_INIT(SIZE_MAX / 4);
    tc_cleanup(decref) json_t *owned = new;
    json_t *at = *root, *next;
    size_t index;

    if (!new)
        return -1;
    if (!*pointer) {
        json_decref(*root);
        *root = tc_take(owned);
        return 0;
    }
    while (*pointer) {
        if (!next_part(&part, &pointer) || tci_buf_check(&part, NULL) < 0)
            return part.no_memory ? -1 : 0;
        next = child_of(at, part.data);
        if (!next)
            return 0;
        if (*pointer)
            at = next;
    }
    if (json_is_object(at))
        return json_object_set(at, part.data, owned);
    return index_of(part.data, &index) ? json_array_set(at, index, owned) : 0;
}

static int resolve(json_t *root, const char *pointer, json_t **ret)
{
    tc_cleanup(tci_buf_free) struct tci_buf part = TCI_BUF_INIT(SIZE_MAX / 4);
    while (root && *pointer) {
        if (!next_part(&part, &pointer))
            root = NULL;
        else if (tci_buf_check(&part, NULL) < 0)
            return -1;
        else
            root = child_of(root, part.data);
    }
    *ret = root;
    return 0;
}

/* ---- arguments ---------------------------------------------------------------------------- */

/* Hash and secrets are those of the value as it was given, also where another pointer leads into it. */
static int redact_one(struct tci_collector *to, json_t *original, json_t **copy,
                      const char *pointer, const unsigned char *salt)
{
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(SIZE_MAX / 4);
    char hash[TCI_SHA256_TEXT_MAX], marked[sizeof "sha256:" + TCI_SHA256_TEXT_MAX];
    json_t *value;

    if (resolve(original, pointer, &value) < 0)
        return -1;
    if (!value)
        return 0;
    if (tci_json_canonical_value(to->arena, &text, value) < 0 || tci_buf_check(&text, NULL) < 0 ||
        tci_collect_strings(to, value) < 0 || tci_collect_numbers(to, text.data) < 0)
        return -1;
    tci_redact_hash(salt, text.data, text.length, hash);
    (void)snprintf(marked, sizeof marked, "sha256:%s", hash);
    return replace(copy, pointer, json_pack("{s:s}", "redacted", marked));
}

int tci_redact_arguments(struct tci_arena *arena, const json_t *arguments, const char *sent,
                         const struct tci_strings *pointers, const unsigned char *salt,
                         struct tci_buf *out, struct tci_secrets *ret, struct tc_error *reterr)
{
    tc_cleanup(decref) json_t *copy = json_deep_copy(arguments);
    tc_cleanup(decref) json_t *original = json_incref((json_t *)(uintptr_t)arguments);
    struct tci_collector to = { .arena = arena, .secrets = ret };

    if (!copy)
        return tci_error_no_memory(reterr);
    for (size_t i = 0; i < pointers->count; i++)
        if (redact_one(&to, original, &copy, pointers->items[i].text, salt) < 0)
            return tci_error_no_memory(reterr);
    if ((sent && tci_collect_sent(&to, sent) < 0) || tci_json_canonical_value(arena, out, copy) < 0)
        return tci_error_no_memory(reterr);
    return 0;
}
