/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the contract of a call: what goes in against `parameters`, what comes out against `returns`.
 * It holds for calls with arguments; a command of the caller's own has no contract.
 * Invariant: an agent without a grant learns nothing here. Arguments are read before it is known who
 * may call, but what is wrong with them is said afterwards.
 */
#include "core/call.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include "core/contract.h"

static const char *text_of(const struct tc_request *request)
{
    return request->arguments_json ? request->arguments_json : "{}";
}

int tci_call_read_arguments(struct tc_call *call, const struct tc_request *request,
                            struct tc_error *reterr)
{
    const char *text = text_of(request);
    struct tci_contract_problem problem;
    if (request->argv)
        return 0;
    return tci_contract_read(call->result->arena, &tci_side_arguments, text, strlen(text),
                             &call->arguments, &call->arguments_text, &problem, reterr) < 0
               ? -1
               : 0;
}

static int invalid(struct tci_result *result, enum tc_verdict verdict, const char *fix,
                   const struct tci_contract_problem *problem)
{
    tci_result_verdict(result, verdict, problem->fix[0] ? problem->fix : fix, "%s",
                       problem->reason);
    return 1;
}

static int invalid_arguments(struct tc_call *call, const struct tci_contract_problem *problem)
{
    return invalid(call->result, TC_VERDICT_INVALID_INPUT,
                   "correct the arguments as it says, and call again", problem);
}

static const char *type_of(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    case JSON_NULL:
        return "null";
    case JSON_OBJECT:
        break;
    }
    return "an object";
}

/* The output of a tool with `returns` must be there to be checked. */
static int check_flags(const struct tc_call *call, const struct tc_request *request,
                       struct tc_error *reterr)
{
    if (!call->tool->settings.returns.json ||
        !(request->flags & (TC_REQUEST_KEEP_NOTHING | TC_REQUEST_TERMINAL)))
        return 0;
    return tci_error_set(
        reterr, TC_ERROR_USAGE,
        "tool \"%s\" has \"returns\", so its output is kept: %s cannot be asked for",
        call->tool->name,
        request->flags & TC_REQUEST_TERMINAL ? "TC_REQUEST_TERMINAL" : "TC_REQUEST_KEEP_NOTHING");
}

int tci_call_check_arguments(struct tc_call *call, const struct tc_request *request,
                             struct tc_error *reterr)
{
    const char *text = text_of(request);
    struct tci_contract_problem problem = { .reason = "" };
    int r;

    if (request->argv)
        return 0;
    if (check_flags(call, request, reterr) < 0)
        return -1;
    if (!call->arguments) /* once more, for what is wrong with them */
        r = tci_contract_read(call->result->arena, &tci_side_arguments, text, strlen(text),
                              &call->arguments, &call->arguments_text, &problem, reterr);
    else if (!json_is_object(call->arguments)) {
        (void)snprintf(problem.reason, sizeof problem.reason,
                       "the arguments are %s, not an object with one member for each argument",
                       type_of(call->arguments));
        (void)snprintf(problem.fix, sizeof problem.fix, "send a JSON object: {\"name\": value}");
        r = 1;
    } else {
        r = tci_contract_check(call->engine, call->tool, TCI_KEY_PARAMETERS, &tci_side_arguments,
                               call->arguments, &problem, reterr);
    }
    return r > 0 ? invalid_arguments(call, &problem) : r;
}

/* ---- output ------------------------------------------------------------------------------- */

static void invalid_output(struct tc_call *call, const struct tci_contract_problem *problem)
{
    char fix[256];
    (void)snprintf(fix, sizeof fix,
                   "the tool is at fault: make \"%s\" print what its \"returns\" says, or mend "
                   "\"returns\"",
                   call->tool->name);
    (void)invalid(call->result, TC_VERDICT_INVALID_OUTPUT, fix, problem);
}

static int check_text(struct tc_call *call, json_t **ret_value,
                      struct tci_contract_problem *problem, struct tc_error *reterr)
{
    const struct tc_result *public = &call->result->public;
    const char *missing = public->stdout_truncated ? "the output is cut off, so it is not checked"
                          : public->stdout_length == 0
                              ? "the tool printed nothing, and must print one JSON value"
                              : NULL;
    const char *text;
    int r;

    if (missing) {
        (void)snprintf(problem->reason, sizeof problem->reason, "%s", missing);
        return 1;
    }
    r = tci_contract_read(call->result->arena, &tci_side_output, public->stdout_data,
                          public->stdout_length, ret_value, &text, problem, reterr);
    problem->fix[0] = '\0'; /* it is not for the caller to mend */
    if (r == 0)
        r = tci_contract_check(call->engine, call->tool, TCI_KEY_RETURNS, &tci_side_output,
                               *ret_value, problem, reterr);
    if (r == 0)
        call->result->public.output_json = text;
    return r;
}

int tci_call_check_output(struct tc_call *call, struct tc_error *reterr)
{
    struct tci_contract_problem problem = { .reason = "" };
    struct tc_error error = { 0 };
    json_t *value = NULL;
    int r;

    if (!call->arguments || call->result->public.verdict != TC_VERDICT_OK ||
        !call->tool->settings.returns.json)
        return 0;
    r = check_text(call, &value, &problem, &error);
    json_decref(value);
    if (r < 0 && error.code == TC_ERROR_NO_MEMORY)
        return tci_error_no_memory(reterr);
    if (r < 0)
        tci_call_refuse(call->result, &error);
    if (r > 0)
        invalid_output(call, &problem);
    return 0;
}
