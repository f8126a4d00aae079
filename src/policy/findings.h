/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the list of what is wrong with a policy. The loader and lint add to it; programs print it.
 * It has an arena of its own, so that it outlives a policy that did not load.
 */
#ifndef TCI_POLICY_FINDINGS_H
#define TCI_POLICY_FINDINGS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include "base/error.h"
#include "policy/doc.h"

enum tci_severity { TCI_SEVERITY_NOTE, TCI_SEVERITY_WARNING, TCI_SEVERITY_ERROR };

enum tci_finding_id {
#define X(id, name, severity, title) TCI_FINDING_##id,
#include "policy/findings.def"
#undef X
    TCI_FINDING_COUNT
};

enum { TCI_ERRORS_MAX = 100 }; /* of one file; more are counted, not kept */

struct tci_finding {
    enum tci_finding_id id;
    struct tci_pos pos; /* line 0: about the whole file */
    const char *tool;   /* or NULL */
    const char *message, *remedy;
    struct tci_finding *next;
};

struct tci_findings {
    struct tci_arena *arena;
    const char *file;
    const char **files; /* names of the tool files; index: pos.file - 1 */
    size_t file_count;
    struct tci_finding *first, *last;
    size_t count[3]; /* by severity; also those past the maximum */
    bool no_memory;
};

/* Are there so many errors that another would not be kept? Then do not work for its remedy. */
bool tci_findings_full(const struct tci_findings *findings);

/* NULL when out of memory. `file` is for the messages and is copied. */
struct tci_findings *tci_findings_new(const char *file) tci_must_check;
void tci_findings_free(struct tci_findings *findings);
void tci_findings_freep(struct tci_findings **findings);

/* The tool files that findings may be about; their names are copied. -1: no memory (and no_memory). */
int tci_findings_set_files(struct tci_findings *findings, const struct tci_tool_file *files,
                           size_t count);
/* The name of the file that the place is in. */
const char *tci_findings_file(const struct tci_findings *findings, struct tci_pos pos);

/* Adds one. `remedy` may be NULL; `tool` may be NULL and is copied. */
void tci_findings_add(struct tci_findings *findings, enum tci_finding_id id, struct tci_pos pos,
                      const char *tool, const char *remedy, const char *format, ...)
    tci_printf_like(6, 7);
void tci_findings_addv(struct tci_findings *findings, enum tci_finding_id id, struct tci_pos pos,
                       const char *tool, const char *remedy, const char *format, va_list args)
    tci_printf_like(6, 0);

/* Sorts by file, place in it, then id; keeps the order of equal ones. */
int tci_findings_sort(struct tci_findings *findings, struct tc_error *reterr) tci_must_check;

/* Turns the first error finding into *reterr; returns -1. Without one: 0. */
int tci_findings_error(const struct tci_findings *findings, struct tc_error *reterr);

const char *tci_finding_name(enum tci_finding_id id);
const char *tci_finding_title(enum tci_finding_id id);
enum tci_severity tci_finding_severity(enum tci_finding_id id);
const char *tci_severity_name(enum tci_severity severity);
/* The finding with the stable id, or -1. */
int tci_finding_from_name(const char *name);

#endif
