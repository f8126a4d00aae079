/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: prompts: one, which tells a model what the tools may do and how to read a refusal. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "base/quote.h"
#include "core/engine.h"
#include "mcp/job.h"
#include "mcp/list.h"
#include "mcp/resources.h"
#include "policy/model.h"
#include "policy/value.h"

enum { tools_max = 40, name_max = 4096 };

static const char prompt_name[] = "toolcage";

static const char introduction[] = "The tools below run in cages. A cage gives a call only what "
                                   "the policy grants: the files, hosts "
                                   "and limits named here, and nothing else. Everything outside is "
                                   "invisible or refused, however it "
                                   "is tried.\n";

static const char verdicts[] =
    "\nHow to read a result: every call ends with a verdict, in _meta.toolcage.verdict and, unless "
    "it "
    "is ok, in the first line of the content.\n"
    "- failed, signaled: the program itself did not succeed; its output says why.\n"
    "- timeout, memory, cpu, pids, disk, output: a limit was reached. Ask for less at a time.\n"
    "- denied: the policy, a grant or a person says no. Do not try the same again or work around "
    "it.\n"
    "- invalid_input: the arguments break the tool's schema; correct them and call again.\n"
    "- invalid_output: the tool broke its own contract; report it.\n"
    "- error: the cage could not be built; this is for the user to mend.\n"
    "The line \"Fix:\" names the smallest change that would help. If it is a change of the policy, "
    "tell the user; you cannot make it yourself.\n";

/* ---- what a tool may do ------------------------------------------------------------------- */

static void put_paths(struct tci_buf *out, const struct tci_settings *settings,
                      enum tci_access access, const char *verb)
{
    size_t count = 0;
    for (size_t i = 0; i < settings->filesystem.count; i++)
        if (settings->filesystem.rules[i].access == access)
            tci_buf_printf(out, "%s%s", count++ ? ", " : verb, settings->filesystem.rules[i].cage);
    if (count)
        tci_buf_string(out, "; ");
}

/* A setting as the policy writes it. */
static void put_setting(struct tci_buf *out, const char *label, const struct tci_settings *settings,
                        enum tci_key key)
{
    struct tci_json json = { .out = out, .syntax = TCI_SYNTAX_JSON };
    if (!tci_value_is_set(settings, key))
        return;
    tci_buf_string(out, label);
    tci_value_write(&json, NULL, settings, key);
}

struct text {
    struct tci_buf *out;
    size_t count;
};

static int put_tool(void *context, const struct tci_tool *tool)
{
    struct text *text = context;
    const struct tci_settings *settings = &tool->settings;
    struct tci_buf *out = text->out;

    if (settings->command.count == 0) /* nothing that a client could call */
        return 0;
    if (text->count++ >= tools_max)
        return 0;
    tci_buf_printf(out, "\n%s: %s\n  ", tool->name,
                   settings->description ? settings->description : "(no description)");
    put_paths(out, settings, TCI_ACCESS_READABLE, "reads ");
    put_paths(out, settings, TCI_ACCESS_WRITABLE, "writes ");
    put_setting(out, "network ", settings, TCI_KEY_NETWORK);
    put_setting(out, "; at most ", settings, TCI_KEY_TIMEOUT);
    put_setting(out, ", memory ", settings, TCI_KEY_MEMORY);
    put_setting(out, ", output ", settings, TCI_KEY_OUTPUT);
    if (settings->approval != TCI_APPROVAL_NEVER)
        tci_buf_string(out, "; a person must approve it");
    tci_buf_char(out, '\n');
    return 0;
}

/* ---- the methods -------------------------------------------------------------------------- */

enum tci_mcp_outcome tci_mcp_prompts_list(struct tci_mcp_request *request,
                                          const struct json_t *params, struct tci_buf *result,
                                          struct tci_mcp_failure *failure)
{
    const struct tci_mcp_session *session = request->session;
    struct tci_mcp_list list;
    struct tci_json *json = &list.json;
    if (tci_mcp_list_begin(&list, session, params, "prompts", result, failure) != TCI_MCP_DONE)
        return TCI_MCP_FAILED;
    if (list.first == 0) {
        tci_json_object_begin(json, NULL);
        tci_json_string(json, "name", prompt_name);
        if (session->version >= TCI_MCP_2025_06_18)
            tci_json_string(json, "title", "Tools and their limits");
        tci_json_string(json, "description",
                        "What the tools may do, their limits, and how to read a refusal.");
        tci_json_array_begin(json, "arguments");
        tci_json_object_begin(json, NULL);
        tci_json_string(json, "name", "tool");
        tci_json_string(json, "description", "Only this tool; without it, all.");
        tci_json_bool(json, "required", false);
        tci_json_object_end(json);
        tci_json_array_end(json);
        tci_json_object_end(json);
    }
    tci_mcp_list_end(&list, 1);
    return TCI_MCP_DONE;
}

/* The argument `tool`; NULL: none. false: the failure says what is wrong. */
static bool read_tool(const struct json_t *params, const char **ret,
                      struct tci_mcp_failure *failure)
{
    const json_t *arguments = json_object_get(params, "arguments");
    const json_t *name = json_object_get(arguments, "tool");
    *ret = NULL;
    if ((arguments && !json_is_object(arguments)) || (name && !json_is_string(name))) {
        (void)tci_mcp_failed(failure, TCI_MCP_INVALID_PARAMS, "arguments must be texts");
        return false;
    }
    if (name && json_string_length(name) > name_max) {
        (void)tci_mcp_failed(failure, TCI_MCP_INVALID_PARAMS,
                             "there is no tool with a name of more than %d bytes", name_max);
        return false;
    }
    if (name && *json_string_value(name))
        *ret = json_string_value(name);
    return true;
}

static void put_message(struct tci_buf *result, const char *text, size_t length)
{
    struct tci_json json = { .out = result };
    tci_json_object_begin(&json, NULL);
    tci_json_string(&json, "description", "The tools of this server and their limits");
    tci_json_array_begin(&json, "messages");
    tci_json_object_begin(&json, NULL);
    tci_json_string(&json, "role", "user");
    tci_json_object_begin(&json, "content");
    tci_json_string(&json, "type", "text");
    tci_json_bytes(&json, "text", text, length);
    tci_json_object_end(&json);
    tci_json_object_end(&json);
    tci_json_array_end(&json);
    tci_json_object_end(&json);
}

/* In a worker: which tools it may see is in the journal. */
static enum tci_mcp_outcome write_prompt(struct tci_mcp_job *job, struct tci_buf *result,
                                         struct tci_mcp_failure *failure)
{
    const struct tci_mcp_session *session = job->request->session;
    struct tc_engine *engine = job->engine->engine;
    tc_cleanup(tci_buf_free) struct tci_buf out = TCI_BUF_INIT(TCI_MCP_RESOURCE_MAX);
    struct text text = { .out = &out };
    const struct tci_tool *tool = job->tool ? tci_mcp_visible_tool(session, engine, job->tool)
                                            : NULL;
    char quoted[TCI_QUOTE_MAX];

    if (job->tool && !tool)
        return tci_mcp_failed(failure, TCI_MCP_INVALID_PARAMS, "there is no tool %s",
                              tci_quote(job->tool, strlen(job->tool), quoted));
    tci_buf_string(&out, introduction);
    if (tool)
        (void)put_tool(&text, tool);
    else
        (void)tci_mcp_each_visible(session, engine, put_tool, &text);
    if (text.count > tools_max)
        tci_buf_printf(&out, "\nAnd %zu more: see the resource toolcage://tools.\n",
                       text.count - tools_max);
    if (text.count == 0)
        tci_buf_string(&out, "\n(There is no tool that you may call.)\n");
    tci_buf_string(&out, verdicts);
    if (tci_buf_check(&out, NULL) < 0)
        return tci_mcp_failed(failure, TCI_MCP_INTERNAL, "the prompt cannot be written");
    put_message(result, out.data, out.length);
    return TCI_MCP_DONE;
}

enum tci_mcp_outcome tci_mcp_prompts_get(struct tci_mcp_request *request,
                                         const struct json_t *params, struct tci_buf *result,
                                         struct tci_mcp_failure *failure)
{
    const json_t *name = json_object_get(params, "name");
    const char *tool;
    char quoted[TCI_QUOTE_MAX];

    (void)result;
    if (!json_is_string(name) || strcmp(json_string_value(name), prompt_name) != 0)
        return tci_mcp_failed(failure, TCI_MCP_INVALID_PARAMS, "there is no prompt %s",
                              tci_quote(name ? json_string_value(name) : "",
                                        name ? json_string_length(name) : 0, quoted));
    if (!read_tool(params, &tool, failure))
        return TCI_MCP_FAILED;
    return tci_mcp_job_read(request, write_prompt, tool, NULL, failure);
}
