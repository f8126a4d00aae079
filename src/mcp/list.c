/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: pages of lists, and how the answer to a list method begins and ends. tools/list has only its pages
 * from here: its array is written by the engine.
 */
#include "mcp/list.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { cursor_size = 40 };

void tci_mcp_page_cursor(uint64_t generation, size_t next, char ret[40])
{
    (void)snprintf(ret, 40, "%" PRIu64 "-%zu", generation, next);
}

static enum tci_mcp_outcome is_not_valid(struct tci_mcp_failure *failure)
{
    return tci_mcp_failed(failure, TCI_MCP_INVALID_PARAMS,
                          "this cursor is not valid, or not any more: begin the list again");
}

enum tci_mcp_outcome tci_mcp_page_text(const struct json_t *params, const char **ret,
                                       struct tci_mcp_failure *failure)
{
    const json_t *cursor = json_object_get(params, "cursor");
    *ret = NULL;
    if (!cursor || json_is_null(cursor))
        return TCI_MCP_DONE;
    if (!json_is_string(cursor) || json_string_length(cursor) >= cursor_size)
        return is_not_valid(failure);
    *ret = json_string_value(cursor);
    return TCI_MCP_DONE;
}

/* What is read must give the same text again: a cursor has one spelling. */
enum tci_mcp_outcome tci_mcp_page_of(const char *cursor, uint64_t generation, size_t *ret_first,
                                     struct tci_mcp_failure *failure)
{
    const char *dash = cursor ? strchr(cursor, '-') : NULL;
    char again[cursor_size];
    *ret_first = 0;
    if (!cursor)
        return TCI_MCP_DONE;
    if (dash) {
        *ret_first = strtoul(dash + 1, NULL, 10);
        tci_mcp_page_cursor(generation, *ret_first, again);
        if (*ret_first && strcmp(again, cursor) == 0)
            return TCI_MCP_DONE;
    }
    *ret_first = 0;
    return is_not_valid(failure);
}

enum tci_mcp_outcome tci_mcp_page(const struct json_t *params, uint64_t generation,
                                  size_t *ret_first, struct tci_mcp_failure *failure)
{
    const char *cursor;
    *ret_first = 0;
    if (tci_mcp_page_text(params, &cursor, failure) != TCI_MCP_DONE)
        return TCI_MCP_FAILED;
    return tci_mcp_page_of(cursor, generation, ret_first, failure);
}

enum tci_mcp_outcome tci_mcp_list_begin(struct tci_mcp_list *list,
                                        const struct tci_mcp_session *session,
                                        const struct json_t *params, const char *name,
                                        struct tci_buf *result, struct tci_mcp_failure *failure)
{
    *list = (struct tci_mcp_list){ .json.out = result,
                                   .generation = session->server->engine->generation };
    if (tci_mcp_page(params, list->generation, &list->first, failure) != TCI_MCP_DONE)
        return TCI_MCP_FAILED;
    tci_json_object_begin(&list->json, NULL);
    tci_json_array_begin(&list->json, name);
    return TCI_MCP_DONE;
}

void tci_mcp_list_end(struct tci_mcp_list *list, size_t count)
{
    char cursor[40];

    tci_json_array_end(&list->json);
    if (count > list->first && count - list->first > TCI_MCP_PAGE) {
        tci_mcp_page_cursor(list->generation, list->first + TCI_MCP_PAGE, cursor);
        tci_json_string(&list->json, "nextCursor", cursor);
    }
    tci_json_object_end(&list->json);
}
