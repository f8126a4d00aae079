/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: completion/complete: names of tools and ids of calls, of those that the session may see. What is
 * not known has no completions, and is no error: clients ask while somebody types.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "core/engine.h"
#include "json/write.h"
#include "mcp/job.h"
#include "mcp/resources.h"
#include "policy/model.h"

enum {
    values_max = 100, /* as many as MCP allows */
    prefix_max = 4096,
};

struct values {
    struct tci_json json;
    const char *prefix;
    size_t total;
};

static void put_value(struct values *values, const char *value)
{
    if (strncmp(value, values->prefix, strlen(values->prefix)) != 0)
        return;
    if (values->total++ < values_max)
        tci_json_string(&values->json, NULL, value);
}

static int put_tool(void *context, const struct tci_tool *tool)
{
    put_value(context, tool->name);
    return 0;
}

/* Of files: from memory. Of the rest the journal knows more, but it may be locked, and nobody waits for
 * a completion: ids of calls whose files are here are those that somebody may want. */
static void put_calls(struct values *values, const struct tci_mcp_session *session)
{
    const char *last = "";
    for (const struct tci_mcp_file *file = session->files; file; file = file->next)
        if (strcmp(file->call_id, last) != 0) {
            put_value(values, file->call_id);
            last = file->call_id;
        }
}

static bool is_text(const json_t *value, const char *text)
{
    return json_is_string(value) && strcmp(json_string_value(value), text) == 0;
}

static bool asks_for_tools(const json_t *reference, const json_t *name)
{
    const json_t *type = json_object_get(reference, "type");
    return (is_text(type, "ref/prompt") && is_text(name, "tool") &&
            is_text(json_object_get(reference, "name"), "toolcage")) ||
           (is_text(type, "ref/resource") && is_text(name, "name") &&
            is_text(json_object_get(reference, "uri"), "toolcage://tool/{name}"));
}

static bool asks_for_calls(const json_t *reference, const json_t *name)
{
    const json_t *uri = json_object_get(reference, "uri");
    return is_text(json_object_get(reference, "type"), "ref/resource") &&
           is_text(name, "call_id") &&
           (is_text(uri, "toolcage://call/{call_id}") ||
            is_text(uri, "toolcage://file/{call_id}/{n}/{name}"));
}

static void begin(struct values *values, struct tci_buf *result, const char *prefix)
{
    *values = (struct values){ .json = { .out = result }, .prefix = prefix };
    tci_json_object_begin(&values->json, NULL);
    tci_json_object_begin(&values->json, "completion");
    tci_json_array_begin(&values->json, "values");
}

static void end(struct values *values)
{
    tci_json_array_end(&values->json);
    tci_json_unsigned(&values->json, "total", values->total);
    tci_json_bool(&values->json, "hasMore", values->total > values_max);
    tci_json_object_end(&values->json);
    tci_json_object_end(&values->json);
}

/* In a worker: which tools it may see is in the journal. */
static enum tci_mcp_outcome write_tools(struct tci_mcp_job *job, struct tci_buf *result,
                                        struct tci_mcp_failure *failure)
{
    struct values values;
    (void)failure;
    begin(&values, result, job->arguments);
    (void)tci_mcp_each_visible(job->request->session, job->engine->engine, put_tool, &values);
    end(&values);
    return TCI_MCP_DONE;
}

enum tci_mcp_outcome tci_mcp_complete(struct tci_mcp_request *request, const struct json_t *params,
                                      struct tci_buf *result, struct tci_mcp_failure *failure)
{
    const json_t *reference = json_object_get(params, "ref");
    const json_t *argument = json_object_get(params, "argument");
    const json_t *name = json_object_get(argument, "name");
    const json_t *value = json_object_get(argument, "value");
    struct values values;

    if (!json_is_object(reference) || !json_is_string(json_object_get(reference, "type")) ||
        !json_is_string(name) || !json_is_string(value))
        return tci_mcp_failed(failure, TCI_MCP_INVALID_PARAMS,
                              "ref with a type, and argument with a name and a value, are needed");
    /* Nothing that is completed is that long. */
    if (asks_for_tools(reference, name) && json_string_length(value) <= prefix_max)
        return tci_mcp_job_read(request, write_tools, NULL, json_string_value(value), failure);
    begin(&values, result, json_string_value(value));
    if (asks_for_calls(reference, name))
        put_calls(&values, request->session);
    end(&values);
    return TCI_MCP_DONE;
}
