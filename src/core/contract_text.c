/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: JSON of strangers, from a model or from a cage. Before the parser gets a text, one pass over
 * its bytes (json/scan.h) bounds what the parser would make of it.
 */
#include "core/contract.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include "base/quote.h"
#include "json/canonical.h"
#include "json/scan.h"

const struct tci_contract_side tci_side_arguments = { "arguments", "the arguments are",
                                                      "the arguments have", TCI_ARGUMENTS_MAX };
const struct tci_contract_side tci_side_output = { "output", "the output is", "the output has",
                                                   TCI_OUTPUT_JSON_MAX };

/* 1, for the caller to return. */
static int tci_printf_like(3, 4)
    wrong(struct tci_contract_problem *problem, const char *fix, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(problem->reason, sizeof problem->reason, format, args);
    va_end(args);
    (void)snprintf(problem->fix, sizeof problem->fix, "%s", fix);
    return 1;
}

/* ---- before the parser ---------------------------------------------------------------------- */

static int scan(const struct tci_contract_side *side, const char *text, size_t length,
                struct tci_contract_problem *problem)
{
    static const struct tci_json_bounds bounds = { .values = TCI_CONTRACT_VALUES_MAX,
                                                   .depth = TCI_CONTRACT_DEPTH_MAX,
                                                   .exact = true };
    struct tci_json_scanned scanned;
    char quoted[TCI_QUOTE_MAX];
    switch (tci_json_scan(text, length, &bounds, &scanned)) {
    case TCI_JSON_WITHIN:
        break;
    case TCI_JSON_TOO_MANY:
        return wrong(problem, "send fewer values", "%s more than %d values", side->have,
                     TCI_CONTRACT_VALUES_MAX);
    case TCI_JSON_TOO_DEEP:
        return wrong(problem, "nest the values less deeply", "%s nested more than %d deep",
                     side->are, TCI_CONTRACT_DEPTH_MAX);
    case TCI_JSON_INEXACT:
        return wrong(problem, "write it as a string, where the schema allows that",
                     "%s an integer that is too large to be exact: %s", side->have,
                     tci_quote(scanned.inexact.text, scanned.inexact.length, quoted));
    }
    return 0;
}

/* ---- reading ------------------------------------------------------------------------------ */

static int not_json(const struct tci_contract_side *side, const struct tc_error *error,
                    struct tci_contract_problem *problem)
{
    static const char fix[] = "write one JSON value in UTF-8, with each key once";
    if (strstr(error->message, "JSON_ALLOW_NUL")) /* the parser's advice is for its programmer */
        return wrong(problem, "remove the NUL", "%s a NUL character in a text", side->have);
    if (!error->line)
        return wrong(problem, fix, "%s not valid JSON: %.300s", side->are, error->message);
    return wrong(problem, fix, "%s not valid JSON, at line %u, column %u: %.300s", side->are,
                 error->line, error->column, error->message);
}

int tci_contract_read(struct tci_arena *arena, const struct tci_contract_side *side,
                      const char *text, size_t length, struct json_t **ret, const char **ret_text,
                      struct tci_contract_problem *problem, struct tc_error *reterr)
{
    struct tc_error error = { 0 };
    const char *canonical;
    json_t *value;
    int r;

    if (length > side->maximum)
        return wrong(problem, "send less at a time", "%s larger than %zu MiB", side->are,
                     side->maximum >> 20);
    if ((r = scan(side, text, length, problem)) != 0)
        return r;
    if (tci_json_canonical(arena, text, length, &canonical, &error) < 0)
        return error.code == TC_ERROR_NO_MEMORY ? tci_error_no_memory(reterr)
                                                : not_json(side, &error, problem);
    value = tci_json_read_canonical(arena, canonical, &error);
    if (!value)
        return tci_error_no_memory(reterr); /* it was read a moment ago */
    *ret = value;
    *ret_text = canonical;
    return 0;
}
