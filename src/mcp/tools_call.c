/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: tools/call: its params. What comes of it is a job (job.c). */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "mcp/job.h"

enum { name_max = 1024 };

/* The arguments as they are sent on; NULL: *failure says why. */
static char *read_arguments(const json_t *params, struct tci_mcp_failure *failure)
{
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    const json_t *arguments = json_object_get(params, "arguments");
    char *taken;

    if (!arguments || json_is_null(arguments))
        tci_buf_string(&text, "{}");
    else if (json_is_object(arguments))
        tci_mcp_write_value(&text, arguments);
    else {
        (void)tci_mcp_failed(failure, TCI_MCP_INVALID_PARAMS, "arguments must be an object");
        return NULL;
    }
    taken = tci_buf_take(&text, NULL);
    if (!taken)
        (void)tci_mcp_failed(failure, TCI_MCP_INTERNAL, "out of memory");
    return taken;
}

enum tci_mcp_outcome tci_mcp_tools_call(struct tci_mcp_request *request,
                                        const struct json_t *params, struct tci_buf *result,
                                        struct tci_mcp_failure *failure)
{
    const json_t *name = json_object_get(params, "name");
    struct tci_mcp_work what = { .run = tci_mcp_job_run };

    (void)result;
    /* A longer one could not be recorded, and no tool has one. */
    if (!json_is_string(name) || json_string_length(name) == 0 ||
        json_string_length(name) > name_max ||
        strlen(json_string_value(name)) != json_string_length(name))
        return tci_mcp_failed(failure, TCI_MCP_INVALID_PARAMS,
                              "name must be the name of a tool, of at most %d bytes", name_max);
    what.arguments = read_arguments(params, failure);
    if (!what.arguments)
        return TCI_MCP_FAILED;
    what.tool = strdup(json_string_value(name));
    if (!what.tool) {
        free(what.arguments);
        return tci_mcp_failed(failure, TCI_MCP_INTERNAL, "out of memory");
    }
    return tci_mcp_job_begin(request, &what, failure);
}
