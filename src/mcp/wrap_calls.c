/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tools/call of a client. Each is decided by the policy, recorded and, in replay, found again, like
 * any call; only its work is done by the server (core/relayed.h). What the policy refuses never reaches
 * the server, and what it does not let out never reaches the client.
 */
#include "mcp/wrap_internal.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/quote.h"
#include "json/canonical.h"
#include "mcp/hide.h"

/* As a program of its own would exit: so a record says how the server answered. */
enum { exit_ok = 0, exit_is_error = 1, exit_rpc_error = 2 };

/* ---- answers to the client ------------------------------------------------------------------ */

static void put_meta(struct tci_json *json, const struct tc_result *result)
{
    tci_json_object_begin(json, "_meta");
    tci_json_object_begin(json, "toolcage");
    tci_json_string(json, "call_id", result->call_id);
    tci_json_string(json, "verdict", tc_verdict_name(result->verdict));
    if (result->verdict != TC_VERDICT_OK) {
        tci_json_string(json, "reason", result->reason);
        tci_json_string(json, "fix", result->fix);
    }
    tci_json_object_end(json);
    tci_json_object_end(json);
}

/* A verdict of ours, in words for the model. */
static void put_verdict(struct tci_json *json, const struct tc_result *result)
{
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(8192);
    tci_buf_printf(&text, "%s: %s", tc_verdict_name(result->verdict), result->reason);
    if (result->fix[0])
        tci_buf_printf(&text, "\nFix: %s", result->fix);
    tci_json_object_begin(json, NULL);
    tci_json_array_begin(json, "content");
    tci_json_object_begin(json, NULL);
    tci_json_string(json, "type", "text");
    tci_json_string(json, "text", text.data ? text.data : "");
    tci_json_object_end(json);
    tci_json_array_end(json);
    tci_json_bool(json, "isError", true);
    put_meta(json, result);
    tci_json_object_end(json);
}

/* The server's own words. Only what is kept in the record: a replay gives the same. */
static bool put_output(struct tci_buf *out, const struct tc_result *result)
{
    struct tc_error ignored = { 0 };
    json_t *value = tci_json_read(result->stdout_data, result->stdout_length, &ignored);
    struct tci_json json = { .out = out };
    if (!json_is_object(value)) {
        json_decref(value);
        return false;
    }
    (void)json_object_del(value, "_meta"); /* ours takes its place */
    tci_json_object_begin(&json, NULL);
    for (void *i = json_object_iter(value); i; i = json_object_iter_next(value, i)) {
        tci_json_raw(&json, json_object_iter_key(i), "");
        tci_mcp_write_value(out, json_object_iter_value(i));
    }
    put_meta(&json, result);
    tci_json_object_end(&json);
    json_decref(value);
    return true;
}

static bool put_rpc_error(struct tci_buf *text, const struct json_t *id,
                          const struct tc_result *result)
{
    struct tc_error ignored = { 0 };
    json_t *value = tci_json_read(result->stdout_data, result->stdout_length, &ignored);
    const json_t *code = json_object_get(value, "code"), *data = json_object_get(value, "data");
    const char *message = json_string_value(json_object_get(value, "message"));
    tc_cleanup(tci_buf_free) struct tci_buf written = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);

    if (data)
        tci_mcp_write_value(&written, data);
    if (value)
        tci_mcp_write_error(text, id, tci_wrap_code(code),
                            message ? message : "the server did not say why",
                            data && tci_buf_check(&written, NULL) == 0 ? written.data : NULL);
    json_decref(value);
    return value;
}

static void respond(struct tci_wrap_pending *pending, const struct tc_result *result)
{
    bool output = result->stdout_length > 0 &&
                  (result->verdict == TC_VERDICT_OK || result->verdict == TC_VERDICT_FAILED);
    struct tci_buf text = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    tc_cleanup(tci_buf_free) struct tci_buf written = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    struct tci_json json = { .out = &written };

    if (!pending->tool) {
        tci_wrap_client_error(pending->wrap, pending->client_id, TCI_MCP_INVALID_PARAMS,
                              result->reason, result->fix);
        return;
    }
    if (output && result->exit_code == exit_rpc_error &&
        put_rpc_error(&text, pending->client_id, result)) {
        tci_wrap_client_answer(pending->wrap, pending->client_id, &text);
        return;
    }
    if (!output || !put_output(&written, result))
        put_verdict(&json, result);
    if (tci_buf_check(&written, NULL) == 0)
        tci_mcp_write_result(&text, pending->client_id, written.data);
    tci_wrap_client_answer(pending->wrap, pending->client_id, &text);
}

/* What an agent does not hear of the journal, the person who runs this does. */
static void hide(struct tci_wrap *wrap, struct tc_result *result)
{
    if (wrap->options->agent && tci_mcp_is_of_journal(result->reason) &&
        tci_wrap_bucket_take(&wrap->refusals))
        tci_wrap_say(wrap, "%s: %s", wrap->tool->name, result->reason);
    tci_mcp_hide(wrap->tool, wrap->options->agent, result);
}

void tci_wrap_call_end(struct tci_wrap_pending *pending, const struct tci_relayed_end *end,
                       bool answer, bool as_error)
{
    struct tci_wrap *wrap = pending->wrap;
    struct tc_result *result = NULL;
    struct tc_error error = { 0 };

    if (tci_relayed_end(tc_take(pending->call), wrap->call, end, &result, &error) < 0) {
        if (answer)
            tci_wrap_client_error(wrap, pending->client_id, TCI_MCP_INTERNAL, error.message,
                                  error.remedy);
        return;
    }
    hide(wrap, result);
    if (answer && as_error)
        tci_wrap_client_error(wrap, pending->client_id, TCI_MCP_INTERNAL, result->reason,
                              result->fix);
    else if (answer)
        respond(pending, result);
    tc_result_free(result);
}

/* ---- answers of the server ------------------------------------------------------------------ */

void tci_wrap_call_answer(struct tci_wrap_pending *pending, const struct tci_mcp_message *answer)
{
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    struct tci_relayed_end end = { .verdict = TC_VERDICT_OK, .exit_code = exit_ok };
    char problem[512] = "";

    if (answer->kind == TCI_MCP_INVALID) {
        (void)snprintf(problem, sizeof problem, "the server's answer is not valid: %s",
                       answer->problem);
    } else if (answer->failure) {
        end.verdict = TC_VERDICT_FAILED;
        end.exit_code = exit_rpc_error;
        end.reason = "the server answered with an error";
        tci_mcp_write_value(&text, answer->failure);
    } else if (tci_wrap_check_result(pending->tool, answer->result, problem)) {
        tci_mcp_write_value(&text, answer->result);
        if (json_is_true(json_object_get(answer->result, "isError"))) {
            end.verdict = TC_VERDICT_FAILED;
            end.exit_code = exit_is_error;
            end.reason = "the tool says that it failed";
        }
    }
    if (problem[0]) {
        end.verdict = TC_VERDICT_INVALID_OUTPUT;
        end.exit_code = -1;
        end.reason = problem;
        end.fix = "the server is at fault: use another version of it, or another tool";
    } else if (tci_buf_check(&text, NULL) == 0) {
        end.output = text.data;
        end.output_length = text.length;
    }
    tci_wrap_call_end(pending, &end, true, false);
}

/* ---- the beginning -------------------------------------------------------------------------- */

/* Decided: it goes to the server, or back to the client. */
static void decided(struct tci_wrap_pending *pending)
{
    struct tci_wrap *wrap = pending->wrap;
    struct tc_result *result = tc_take(pending->result);

    if (pending->call && !pending->is_cancelled && !wrap->is_failed && wrap->call) {
        pending->method = "tools/call";
        tci_wrap_send(pending, pending->arguments, tci_relayed_timeout(pending->call));
        return;
    }
    if (pending->call)
        tci_wrap_call_end(pending,
                          &(struct tci_relayed_end){ .verdict = TC_VERDICT_ERROR,
                                                     .reason = wrap->is_failed
                                                                   ? wrap->error.message
                                                                   : "the call was cancelled",
                                                     .exit_code = -1 },
                          !pending->is_cancelled, true);
    else if (result && !pending->is_cancelled) {
        hide(wrap, result);
        respond(pending, result);
    } else if (!result && !pending->is_cancelled)
        tci_wrap_client_error(wrap, pending->client_id, TCI_MCP_INTERNAL, pending->error.message,
                              pending->error.remedy);
    tc_result_free(result);
    tci_wrap_pending_free(pending);
    tci_wrap_check_end(wrap);
}

/* In the loop's thread, or in a worker: of the relay only what does not change is looked at. */
static void decide(struct tci_wrap_pending *pending)
{
    const struct tci_wrap *wrap = pending->wrap;
    struct tc_request request = {
        .tool = wrap->options->tool,
        .agent = wrap->options->agent,
        .session = wrap->session,
        .arguments_json = pending->arguments_text,
    };
    pending->status = tci_relayed_begin(wrap->engine, &request,
                                        pending->is_refused ? &pending->refusal : NULL,
                                        &pending->call, &pending->result, &pending->error);
}

static void back_in_loop(void *context)
{
    struct tci_wrap_pending *pending = context;
    pending->is_deciding = false;
    decided(pending);
}

static void in_worker(void *context)
{
    struct tci_wrap_pending *pending = context;
    struct tci_mcp_loop *loop = pending->wrap->loop;
    tci_wrap_ask_for(pending);
    decide(pending);
    tci_wrap_ask_for(NULL);
    pending->post = (struct tci_mcp_post){ .task = back_in_loop, .context = pending };
    tci_mcp_loop_post(loop, &pending->post);
}

static void refuse(struct tci_wrap_pending *pending, const char *fix, const char *reason)
{
    pending->is_refused = true;
    pending->refusal.verdict = TC_VERDICT_DENIED;
    (void)snprintf(pending->refusal.reason, sizeof pending->refusal.reason, "%s", reason);
    (void)snprintf(pending->refusal.fix, sizeof pending->refusal.fix, "%s", fix);
}

/* A hidden tool and one that does not exist are one answer. */
static void check(struct tci_wrap_pending *pending, const char *name, const json_t *arguments)
{
    struct tci_wrap *wrap = pending->wrap;
    char quoted[TCI_QUOTE_MAX], reason[160];

    pending->tool = tci_wrap_is_visible(wrap, name) ? tci_wrap_list_find(&wrap->list, name) : NULL;
    if (!pending->tool) {
        (void)snprintf(reason, sizeof reason, "there is no tool %s",
                       tci_quote(name, strlen(name), quoted));
        refuse(pending, "use a tool of tools/list, or add it to \"mcp.tools\" in the policy",
               reason);
    } else if (tci_wrap_busy(wrap) > wrap->rules->calls) { /* with this one */
        refuse(pending, "wait until one is over, or raise \"mcp.calls\" in the policy",
               "too many calls are under way");
    } else if (wrap->rules->rate != TCI_UNLIMITED && !tci_wrap_bucket_take(&wrap->calls_a_minute)) {
        refuse(pending, "wait a while, or raise \"mcp.rate\" in the policy",
               "there were too many calls within a minute");
    } else {
        pending->is_refused = !tci_wrap_check_arguments(pending->tool, arguments,
                                                        &pending->refusal);
    }
}

static int make_arguments(struct tci_wrap_pending *pending, json_t *name, json_t *arguments)
{
    struct tci_buf text = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    struct tc_error ignored = { 0 };
    pending->arguments = json_pack("{s:O,s:O}", "name", name, "arguments", arguments);
    if (!pending->arguments)
        return -1;
    tci_mcp_write_value(&text, pending->arguments);
    pending->arguments_text = tci_buf_take(&text, &ignored);
    tci_buf_free(&text);
    return pending->arguments_text ? 0 : -1;
}

void tci_wrap_call_begin(struct tci_wrap *wrap, const struct json_t *id,
                         const struct json_t *params)
{
    json_t *name = json_object_get(params, "name");
    json_t *arguments = json_incref(json_object_get(params, "arguments"));
    struct tci_wrap_pending *pending = NULL;

    if (!arguments || json_is_null(arguments)) {
        json_decref(arguments);
        arguments = json_object();
    }
    if (!json_is_string(name) || !json_is_object(arguments)) {
        tci_wrap_client_error(wrap, id, TCI_MCP_INVALID_PARAMS,
                              "tools/call needs a name, and arguments that are an object", NULL);
    } else {
        pending = tci_wrap_pending_new(wrap, TCI_WRAP_CALL, id, "tools/call");
        if (!pending || make_arguments(pending, name, arguments) < 0) {
            tci_wrap_client_error(wrap, id, TCI_MCP_INTERNAL, "not enough memory", NULL);
            if (pending)
                tci_wrap_pending_free(tc_take(pending));
        }
    }
    if (pending) {
        pending->progress_token = tci_wrap_progress_token(params);
        check(pending, json_string_value(name), arguments);
    }
    json_decref(arguments);
    if (!pending)
        return;
    if (!pending->is_refused &&
        tci_relayed_asks(wrap->engine, wrap->options->agent, wrap->options->tool)) {
        pending->is_deciding = true;
        pending->post = (struct tci_mcp_post){ .task = in_worker, .context = pending };
        if (tci_mcp_loop_work(wrap->loop, &pending->post, &pending->error) == 0)
            return;
        pending->is_deciding =
            false; /* not here: the loop would wait for an answer that it brings */
    } else {
        decide(pending);
    }
    decided(pending);
}
