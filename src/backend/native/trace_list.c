/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the list of denials. The attacks: a cage that is refused without end, to fill the memory of
 * the host; and names that, shown in a result, would be read as something else by a person, a
 * terminal or a model.
 */
#include "backend/native/trace_internal.h"

#include <stdio.h>
#include <string.h>
#include "base/utf8.h"

static bool has(const struct tci_trace_list *list, const char *kind, const char *target)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->denials[i].target, target) == 0 &&
            strcmp(list->denials[i].kind, kind) == 0)
            return true;
    return false;
}

void tci_trace_list_add(struct tci_trace_list *list, const char *kind, const char *target,
                        const char *rule)
{
    struct tc_denial denial = { .kind = kind };
    if (has(list, kind, target))
        return;
    if (list->count == TCI_TRACE_DENIALS_MAX) {
        list->more++;
        return;
    }
    denial.target = tci_arena_strdup(list->arena, target);
    denial.rule = tci_arena_strdup(list->arena, rule);
    if (denial.target && denial.rule)
        list->denials[list->count++] = denial;
    else
        list->no_memory = true;
}

void tci_trace_list_end(struct tci_trace_list *list)
{
    char *rule;
    if (!list->more || list->count > TCI_TRACE_DENIALS_MAX)
        return;
    rule = tci_arena_printf(list->arena,
                            "only the first %d denials are listed; %zu attempts more were refused",
                            (int)TCI_TRACE_DENIALS_MAX, list->more);
    if (rule)
        list->denials[list->count++] = (struct tc_denial){ "more", "", rule };
    else
        list->no_memory = true;
}

static bool is_shown(uint32_t c)
{
    return c >= 0x20 && c != '"' && c != '\\' && !(c >= 0x7f && c <= 0x9f) &&
           !(c >= 0x2028 && c <= 0x202e) && !tci_utf8_is_deceptive(c);
}

const char *tci_trace_clean(const char *bytes, size_t length, char *buffer, size_t size)
{
    size_t to = 0;
    for (size_t i = 0; i < length;) {
        uint32_t c = 0;
        size_t n = tci_utf8_decode(bytes + i, length - i, &c);
        if (to + 5 > size)
            break;
        if (n && is_shown(c)) {
            memcpy(buffer + to, bytes + i, n);
            to += n;
        } else {
            n = 1;
            to += (size_t)snprintf(buffer + to, 5, "\\x%02x", (unsigned)(unsigned char)bytes[i]);
        }
        i += n;
    }
    buffer[to] = '\0';
    return buffer;
}
