/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what may pass between a client and a wrapped server. What is not in the table does not: a new
 * version of the protocol, or an extension of somebody's, is no way around the policy.
 */
#include "mcp/wrap_internal.h"

#include <fnmatch.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

static const struct {
    enum tci_wrap_side side;
    bool is_request;
    const char *method;
    unsigned feature;
} passes[] = {
    { TCI_WRAP_CLIENT, true, "resources/list", TCI_FEATURE_RESOURCES },
    { TCI_WRAP_CLIENT, true, "resources/templates/list", TCI_FEATURE_RESOURCES },
    { TCI_WRAP_CLIENT, true, "resources/read", TCI_FEATURE_RESOURCES },
    { TCI_WRAP_CLIENT, true, "resources/subscribe", TCI_FEATURE_RESOURCES },
    { TCI_WRAP_CLIENT, true, "resources/unsubscribe", TCI_FEATURE_RESOURCES },
    { TCI_WRAP_CLIENT, true, "prompts/list", TCI_FEATURE_PROMPTS },
    { TCI_WRAP_CLIENT, true, "prompts/get", TCI_FEATURE_PROMPTS },
    { TCI_WRAP_CLIENT, true, "completion/complete", TCI_FEATURE_COMPLETIONS },
    { TCI_WRAP_CLIENT, true, "logging/setLevel", TCI_FEATURE_LOGGING },
    { TCI_WRAP_CLIENT, false, "notifications/roots/list_changed", TCI_FEATURE_ROOTS },
    { TCI_WRAP_SERVER, true, "sampling/createMessage", TCI_FEATURE_SAMPLING },
    { TCI_WRAP_SERVER, true, "elicitation/create", TCI_FEATURE_ELICITATION },
    { TCI_WRAP_SERVER, true, "roots/list", TCI_FEATURE_ROOTS },
    { TCI_WRAP_SERVER, false, "notifications/message", TCI_FEATURE_LOGGING },
    { TCI_WRAP_SERVER, false, "notifications/resources/updated", TCI_FEATURE_RESOURCES },
    { TCI_WRAP_SERVER, false, "notifications/resources/list_changed", TCI_FEATURE_RESOURCES },
    { TCI_WRAP_SERVER, false, "notifications/prompts/list_changed", TCI_FEATURE_PROMPTS },
};

bool tci_wrap_may_pass(const struct tci_wrap *wrap, enum tci_wrap_side side, bool is_request,
                       const char *method)
{
    for (size_t i = 0; i < tci_array_size(passes); i++)
        if (passes[i].side == side && passes[i].is_request == is_request &&
            strcmp(passes[i].method, method) == 0)
            return wrap->rules->features & passes[i].feature;
    return false;
}

bool tci_wrap_is_work(const char *method)
{
    return strcmp(method, "tools/call") == 0 || strcmp(method, "resources/read") == 0 ||
           strcmp(method, "resources/subscribe") == 0 ||
           strcmp(method, "resources/unsubscribe") == 0 || strcmp(method, "prompts/get") == 0 ||
           strcmp(method, "completion/complete") == 0;
}

bool tci_wrap_is_visible(const struct tci_wrap *wrap, const char *name)
{
    const struct tci_strings *tools = &wrap->rules->tools;
    if (wrap->rules->any_tool)
        return true;
    for (size_t i = 0; i < tools->count; i++)
        if (fnmatch(tools->items[i].text, name, FNM_NOESCAPE) == 0)
            return true;
    return false;
}

/* ---- schemas -------------------------------------------------------------------------------- */

/* The first lines of what is wrong, for the one who can mend it. */
static void explain(const struct tci_schema_report *report, const char *name, char *ret,
                    size_t size)
{
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(TCI_WRAP_TEXT_MAX);
    tci_schema_report_write(report, name, &text);
    tci_wrap_join(text.data && !text.too_large ? text.data : "not valid", ret, size);
}

bool tci_wrap_check_arguments(struct tci_wrap_tool *tool, const struct json_t *arguments,
                              struct tci_relayed_refusal *ret)
{
    struct tci_schema_report report = { 0 };
    bool valid;

    *ret = (struct tci_relayed_refusal){ .verdict = TC_VERDICT_INVALID_INPUT };
    if (!tci_wrap_tool_compile(tool)) {
        ret->verdict = TC_VERDICT_DENIED; /* what cannot be checked is not passed on */
        (void)snprintf(ret->reason, sizeof ret->reason, "%s", tool->problem);
        (void)snprintf(ret->fix, sizeof ret->fix, "use another tool: the server is at fault");
        return false;
    }
    valid = tci_schema_validate(tool->input, arguments, &report);
    if (!valid) {
        explain(&report, "arguments", ret->reason, sizeof ret->reason);
        (void)snprintf(ret->fix, sizeof ret->fix,
                       "correct the arguments as it says, and call again");
    }
    tci_schema_report_free(&report);
    return valid;
}

static bool is_content(const json_t *content)
{
    for (size_t i = 0; i < json_array_size(content); i++)
        if (!json_is_string(json_object_get(json_array_get(content, i), "type")))
            return false;
    return json_is_array(content);
}

bool tci_wrap_check_result(struct tci_wrap_tool *tool, const struct json_t *result,
                           char problem[512])
{
    const json_t *content = json_object_get(result, "content");
    const json_t *structured = json_object_get(result, "structuredContent");
    const json_t *is_error = json_object_get(result, "isError");
    struct tci_schema_report report = { 0 };
    const char *wrong = NULL;
    bool valid;

    if (!is_content(content) && (content || !structured))
        wrong = "the server's result has no list of contents";
    else if (structured && !json_is_object(structured))
        wrong = "the server's structuredContent is not an object";
    else if (is_error && !json_is_boolean(is_error))
        wrong = "the server's isError is neither true nor false";
    else if (!json_is_true(is_error) && tool->output && !structured)
        wrong = "the tool has an outputSchema, and its result no structuredContent";
    if (wrong) {
        (void)snprintf(problem, 512, "%s", wrong);
        return false;
    }
    if (!tool->output || json_is_true(is_error))
        return true;
    valid = tci_schema_validate(tool->output, structured, &report);
    if (!valid)
        explain(&report, "structuredContent", problem, 512);
    tci_schema_report_free(&report);
    return valid;
}
