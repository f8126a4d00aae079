/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: requests of a client that are no calls, and for which a server may do something all the same: to read a
 * resource, to get a prompt. A server that can be talked into sending data away by a tool can be by a resource, so
 * each is decided by the grants that hold now, and leaves a record: who asked for what, when, how it ended, and the
 * size and hash of what came back. What came back itself is not kept: a resource may be large, and is read again
 * and again; the hash says whether a copy that somebody has is the one that was read. Lists and levels, in which
 * there is no word of the client's, need the grant as well, and leave a record only if there is none.
 *
 * The records are in a session of their own, NAME-reads: a replay of the calls does not meet them.
 */
#include "mcp/wrap_internal.h"

#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>

/* {"method":..., and the members of the params}: a path of `redact` means the same here as in a call. */
static char *arguments_of(const char *method, const json_t *params)
{
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    struct tc_error ignored = { 0 };
    json_t *own = params ? json_copy((json_t *)(uintptr_t)params) : json_object();
    if (!own)
        return NULL;
    if (json_object_set_new(own, "method", json_string(method)) < 0) {
        json_decref(own);
        return NULL;
    }
    tci_mcp_write_value(&text, own);
    json_decref(own);
    return tci_buf_check(&text, NULL) == 0 ? tci_buf_take(&text, &ignored) : NULL;
}

/* NULL: it may not be; a client that waits for an answer (`id`) was told why. */
static struct tc_call *note(struct tci_wrap *wrap, const json_t *id, const char *method,
                            const json_t *params)
{
    char *arguments = arguments_of(method, params);
    struct tc_request request = {
        .tool = wrap->options->tool,
        .agent = wrap->options->agent,
        .session = wrap->reads_session,
        .arguments_json = arguments,
    };
    struct tc_result *result = NULL;
    struct tc_error error = { 0 };
    struct tc_call *call = NULL;

    if (!arguments)
        tci_error_no_memory(&error);
    else if (tci_relayed_note(wrap->engine, &request, &call, &result, &error) < 0)
        call = NULL;
    free(arguments);
    if (!call && id && result)
        tci_wrap_client_error(wrap, id,
                              result->verdict == TC_VERDICT_DENIED ? TCI_MCP_INVALID_PARAMS
                                                                   : TCI_MCP_INTERNAL,
                              result->reason, result->fix);
    else if (!call && id)
        tci_wrap_client_error(wrap, id, TCI_MCP_INTERNAL, error.message, error.remedy);
    tc_result_free(result);
    return call;
}

bool tci_wrap_read_begin(struct tci_wrap_pending *pending, const struct json_t *params)
{
    struct tc_call *call = note(pending->wrap, pending->client_id, pending->method, params);
    bool is_allowed = call;
    /* A cursor is any text: it must not be one that nobody can find again. */
    if (tci_wrap_is_work(pending->method) || json_object_get(params, "cursor"))
        pending->call = call;
    else
        tc_call_free(call);
    return is_allowed;
}

bool tci_wrap_is_granted(struct tci_wrap *wrap, const char *method)
{
    struct tc_call *call = note(wrap, NULL, method, NULL);
    bool is_allowed = call;
    tc_call_free(call);
    return is_allowed;
}

bool tci_wrap_read_end(struct tci_wrap_pending *pending, const struct tci_relayed_end *end,
                       bool answer)
{
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(4096);
    struct tci_json json = { .out = &text };
    struct tci_wrap *wrap = pending->wrap;
    struct tci_relayed_end kept = *end;
    struct tc_result *result = NULL;
    struct tc_error error = { 0 };
    char hash[TCI_SHA256_TEXT_MAX];
    bool is_recorded;

    if (!pending->call)
        return true;
    if (end->output) {
        tci_sha256_text(end->output, end->output_length, hash);
        tci_json_object_begin(&json, NULL);
        tci_json_unsigned(&json, "bytes", end->output_length);
        tci_json_string(&json, "sha256", hash);
        tci_json_object_end(&json);
        kept.output = tci_buf_check(&text, NULL) == 0 ? text.data : NULL;
        kept.output_length = text.length;
    }
    if (tci_relayed_end(tc_take(pending->call), wrap->call, &kept, &result, &error) == 0)
        (void)tci_error_set(&error, TC_ERROR_IO, "%s", result->reason);
    /* A failure to record it is a verdict of its own. */
    is_recorded = result && result->verdict == end->verdict;
    if (!is_recorded && answer)
        tci_wrap_client_error(wrap, pending->client_id, TCI_MCP_INTERNAL, error.message,
                              result ? result->fix : error.remedy);
    tc_result_free(result);
    return is_recorded;
}
