/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the list of findings and the table behind their ids. */
#include "policy/findings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *title;
    enum tci_severity severity;
} table[] = {
#define X(id, name, severity, title) { name, title, TCI_SEVERITY_##severity },
#include "policy/findings.def"
#undef X
};

const char *tci_finding_name(enum tci_finding_id id)
{
    return table[id].name;
}

const char *tci_finding_title(enum tci_finding_id id)
{
    return table[id].title;
}

enum tci_severity tci_finding_severity(enum tci_finding_id id)
{
    return table[id].severity;
}

const char *tci_severity_name(enum tci_severity severity)
{
    static const char *const names[] = { "note", "warning", "error" };
    return names[severity];
}

int tci_finding_from_name(const char *name)
{
    for (int i = 0; i < TCI_FINDING_COUNT; i++)
        if (strcmp(table[i].name, name) == 0)
            return i;
    return -1;
}

struct tci_findings *tci_findings_new(const char *file)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    struct tci_findings *findings = arena ? tci_arena_new_of(arena, struct tci_findings) : NULL;
    if (!findings)
        return NULL;
    findings->file = tci_arena_strdup(arena, file);
    if (!findings->file)
        return NULL;
    findings->arena = tc_take(arena);
    return findings;
}

void tci_findings_free(struct tci_findings *findings)
{
    if (findings)
        tci_arena_free(findings->arena);
}

void tci_findings_freep(struct tci_findings **findings)
{
    tci_findings_free(*findings);
    *findings = NULL;
}

bool tci_findings_full(const struct tci_findings *findings)
{
    return findings->count[TCI_SEVERITY_ERROR] > TCI_ERRORS_MAX;
}

int tci_findings_set_files(struct tci_findings *findings, const struct tci_tool_file *files,
                           size_t count)
{
    const char **names = tci_arena_new_array(findings->arena, count, const char *);
    for (size_t i = 0; names && i < count; i++) {
        names[i] = tci_arena_strdup(findings->arena, files[i].name);
        if (!names[i])
            names = NULL;
    }
    if (!names) {
        findings->no_memory = true;
        return -1;
    }
    findings->files = names;
    findings->file_count = count;
    return 0;
}

const char *tci_findings_file(const struct tci_findings *findings, struct tci_pos pos)
{
    return pos.file > 0 && pos.file <= findings->file_count ? findings->files[pos.file - 1]
                                                            : findings->file;
}

static void append(struct tci_findings *findings, struct tci_finding *finding)
{
    if (findings->last)
        findings->last->next = finding;
    else
        findings->first = finding;
    findings->last = finding;
}

void tci_findings_addv(struct tci_findings *findings, enum tci_finding_id id, struct tci_pos pos,
                       const char *tool, const char *remedy, const char *format, va_list args)
{
    char message[768];
    struct tci_finding *f;

    findings->count[table[id].severity]++;
    if (findings->no_memory)
        return;
    (void)vsnprintf(message, sizeof message, format, args);
    /* Past the maximum, one finding says so and the rest are only counted. */
    if (table[id].severity == TCI_SEVERITY_ERROR && tci_findings_full(findings)) {
        if (findings->count[TCI_SEVERITY_ERROR] > TCI_ERRORS_MAX + 1)
            return;
        id = TCI_FINDING_TOO_MANY;
        (void)snprintf(message, sizeof message, "more than %d errors; the rest are not listed",
                       TCI_ERRORS_MAX);
        remedy = "mend the first ones and check again";
    }
    f = tci_arena_new_of(findings->arena, struct tci_finding);
    if (f) {
        f->id = id;
        f->pos = pos;
        f->tool = tool ? tci_arena_strdup(findings->arena, tool) : NULL;
        f->message = tci_arena_strdup(findings->arena, message);
        f->remedy = tci_arena_strdup(findings->arena, remedy ? remedy : "");
    }
    if (!f || !f->message || !f->remedy || (tool && !f->tool)) {
        findings->no_memory = true;
        return;
    }
    append(findings, f);
}

void tci_findings_add(struct tci_findings *findings, enum tci_finding_id id, struct tci_pos pos,
                      const char *tool, const char *remedy, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tci_findings_addv(findings, id, pos, tool, remedy, format, args);
    va_end(args);
}

static int compare_values(unsigned long a, unsigned long b)
{
    return (a > b) - (a < b);
}

static int compare_places(const struct tci_finding *a, const struct tci_finding *b)
{
    int order = compare_values(a->pos.file, b->pos.file);
    if (!order)
        order = compare_values(a->pos.line, b->pos.line);
    if (!order)
        order = compare_values(a->pos.column, b->pos.column);
    return order ? order : compare_values(a->id, b->id);
}

/* Merge sort of the list: stable, no allocation. */
static struct tci_finding *sort_list(struct tci_finding *list, size_t count)
{
    struct tci_finding *left, *right, *tail, head = { 0 };
    size_t half = count / 2;

    if (count < 2)
        return list;
    tail = list;
    for (size_t i = 1; i < half; i++)
        tail = tail->next;
    right = tail->next;
    tail->next = NULL;
    left = sort_list(list, half);
    right = sort_list(right, count - half);
    tail = &head;
    while (left && right) {
        struct tci_finding **smaller = compare_places(right, left) < 0 ? &right : &left;
        tail->next = *smaller;
        tail = *smaller;
        *smaller = (*smaller)->next;
    }
    tail->next = left ? left : right;
    return head.next;
}

int tci_findings_sort(struct tci_findings *findings, struct tc_error *reterr)
{
    size_t count = 0;
    if (findings->no_memory)
        return tci_error_no_memory(reterr);
    for (struct tci_finding *f = findings->first; f; f = f->next)
        count++;
    findings->first = sort_list(findings->first, count);
    for (struct tci_finding *f = findings->first; f; f = f->next)
        findings->last = f;
    return 0;
}

int tci_findings_error(const struct tci_findings *findings, struct tc_error *reterr)
{
    if (findings->no_memory)
        return tci_error_no_memory(reterr);
    for (const struct tci_finding *f = findings->first; f; f = f->next) {
        if (table[f->id].severity != TCI_SEVERITY_ERROR)
            continue;
        tci_error_set(reterr, TC_ERROR_POLICY, "%s", f->message);
        tci_error_id(reterr, table[f->id].name);
        tci_error_place(reterr, tci_findings_file(findings, f->pos), f->pos.line, f->pos.column);
        tci_error_remedy(reterr, "%s", f->remedy);
        return -1;
    }
    return 0;
}
