/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tools/list. An agent sees the tools that it may call now, and nothing of the others: not their
 * names, not their number. Grants are in the journal, which may be locked: a worker looks, not the loop.
 */
#include "base/error.h"
#include "mcp/job.h"
#include "mcp/list.h"

static enum tci_mcp_outcome read_tools(struct tci_mcp_job *job, struct tci_buf *result,
                                       struct tci_mcp_failure *failure)
{
    struct tci_mcp_engine *engine = job->engine;
    struct tci_mcp_listed listed;
    struct tc_error error = { 0 };
    char cursor[40];
    size_t first;
    int more;

    if (tci_mcp_page_of(job->arguments, engine->generation, &first, failure) != TCI_MCP_DONE)
        return TCI_MCP_FAILED;
    tci_buf_string(result, "{\"tools\":");
    more = tci_mcp_list_tools(engine, job->request->session, first, result, &listed, &error);
    if (more < 0)
        return tci_mcp_failed(failure, TCI_MCP_INTERNAL, "the tools cannot be listed: %s",
                              error.message);
    if (more) {
        tci_mcp_page_cursor(engine->generation, first + TCI_MCP_PAGE, cursor);
        tci_buf_printf(result, ",\"nextCursor\":\"%s\"", cursor);
    }
    tci_buf_char(result, '}');
    if (!first)
        job->listed = listed;
    return TCI_MCP_DONE;
}

enum tci_mcp_outcome tci_mcp_tools_list(struct tci_mcp_request *request,
                                        const struct json_t *params, struct tci_buf *result,
                                        struct tci_mcp_failure *failure)
{
    const char *cursor;
    (void)result;
    if (tci_mcp_page_text(params, &cursor, failure) != TCI_MCP_DONE)
        return TCI_MCP_FAILED;
    return tci_mcp_job_read(request, read_tools, NULL, cursor, failure);
}
