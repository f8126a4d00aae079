/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the record of a call. It is in the journal before the caller has the result: who has seen one
 * can always find it there. A call that ran and could not be recorded says so in its verdict, and keeps
 * its output.
 */
#include "core/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/quote.h"
#include "journal/journal.h"
#include "json/canonical.h"
#include "json/write.h"
#include "policy/parse.h"

static void free_text(char **text)
{
    free(*text);
}

/* ---- grants ------------------------------------------------------------------------------- */

static void put_text(struct tci_json *json, const char *key, const char *text)
{
    char quoted[TCI_QUOTE_MAX];
    if (!tci_is_utf8(text, strlen(text)))
        text = tci_quote(text, strlen(text), quoted);
    tci_json_raw(json, key, "");
    tci_json_canonical_string(json->out, text, strlen(text));
}

/* What allowed the call, in canonical form. A call that was denied was allowed by nothing. */
static void write_grants(const struct tc_call *call, struct tci_buf *out)
{
    const struct tci_grants *grants = &call->grants;
    struct tci_json json = { .out = out };

    tci_json_array_begin(&json, NULL);
    for (size_t i = 0; call->tool && i < grants->count; i++) {
        tci_json_object_begin(&json, NULL);
        if (grants->agents[i])
            put_text(&json, "agent", grants->agents[i]);
        tci_json_raw(&json, "grant", "");
        tci_grant_write(grants->items[i], out);
        if (grants->ids[i])
            put_text(&json, "id", grants->ids[i]);
        put_text(&json, "source", grants->ids[i] ? "runtime" : "policy");
        tci_json_object_end(&json);
    }
    tci_json_array_end(&json);
}

/* ---- the record --------------------------------------------------------------------------- */

static char *stored_result(const struct tc_call *call, struct tc_error *reterr)
{
    const struct tci_recorded *recorded = call->recorded;
    struct tc_result copy;
    char *text;

    if (!tci_has_secrets(&recorded->secrets)) {
        text = tci_result_canonical(&call->result->public);
    } else {
        if (tci_redact_result(call->result->arena, &call->result->public, &recorded->secrets, &copy,
                              reterr) < 0)
            return NULL;
        text = tci_result_canonical(&copy);
    }
    if (!text)
        tci_error_no_memory(reterr);
    return text;
}

static int append(const struct tc_call *call, const char *result, const char *grants,
                  char ret_state_hash[TCI_SHA256_TEXT_MAX], struct tc_error *reterr)
{
    const struct tci_recorded *recorded = call->recorded;
    const struct tc_result *public = &call->result->public;
    bool whole = recorded->record == TCI_RECORD_TRUE;
    struct tci_journal_entry entry = {
        .kind = "call",
        .session = public->session ? public->session : "",
        .call_id = public->call_id,
        .tool = public->tool ? public->tool : "",
        .agent = public->agent ? public->agent : "",
        .verdict = tc_verdict_name(public->verdict),
        .started_us = recorded->began_us,
        .ended_us = recorded->began_us + (int64_t)(tci_clock_us() - recorded->began_clock),
        .request = whole && !recorded->without_request ? recorded->text : NULL,
        .result = whole ? result : NULL,
        .policy_hash = call->engine->policy->hash,
        .grants = grants,
    };
    memcpy(entry.request_hash, recorded->hash, sizeof entry.request_hash);
    tci_sha256_text(result, strlen(result), entry.result_hash);
    return tci_journal_append(call->engine->journal, &entry, ret_state_hash, reterr);
}

static int record(struct tc_call *call, struct tc_error *reterr)
{
    tc_cleanup(tci_buf_free) struct tci_buf grants = TCI_BUF_INIT(SIZE_MAX / 4);
    tc_cleanup(free_text) char *result = stored_result(call, reterr);

    if (!result)
        return -1;
    write_grants(call, &grants);
    if (tci_buf_check(&grants, reterr) < 0)
        return -1;
    return append(call, result, grants.data, call->result->public.state_hash, reterr);
}

/* Whoever reads the verdict must not take the call for one that the journal knows. */
static void not_recorded(struct tci_result *result, const struct tc_error *error)
{
    const char *was = tc_verdict_name(result->public.verdict);
    char before[sizeof result->public.reason];

    (void)snprintf(before, sizeof before, "%.300s", result->public.reason);
    result->public.state_hash[0] = '\0';
    tci_result_verdict(result, TC_VERDICT_ERROR, error->remedy,
                       "the call ended with \"%s\"%s%s%s, but it is not in the journal: %s", was,
                       before[0] ? " (" : "", before, before[0] ? ")" : "", error->message);
}

int tci_call_record(struct tc_call *call, struct tc_error *reterr)
{
    struct tc_error error = { 0 };

    (void)reterr; /* the call was made, and has a result in any case */
    if (!call->recorded || call->engine->mode != TC_MODE_LIVE)
        return 0;
    if (record(call, &error) < 0)
        not_recorded(call->result, &error);
    return 0;
}
