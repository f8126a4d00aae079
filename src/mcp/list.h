/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the form of an answer with a list in it: {"NAME":[...]}, and a cursor if there is more. */
#ifndef TCI_MCP_LIST_H
#define TCI_MCP_LIST_H

#include "json/write.h"
#include "mcp/server.h"

/* A page of a list: `cursor` of the params, checked, as an index. Cursors name the generation of the list:
 * one of another generation is not valid. */
enum tci_mcp_outcome tci_mcp_page(const struct json_t *params, uint64_t generation,
                                  size_t *ret_first, struct tci_mcp_failure *failure);
/* The same in two steps, for who answers later: the cursor's text (NULL: none), and what it means. */
enum tci_mcp_outcome tci_mcp_page_text(const struct json_t *params, const char **ret,
                                       struct tci_mcp_failure *failure);
enum tci_mcp_outcome tci_mcp_page_of(const char *cursor, uint64_t generation, size_t *ret_first,
                                     struct tci_mcp_failure *failure);
void tci_mcp_page_cursor(uint64_t generation, size_t next, char ret[40]);

struct tci_mcp_list {
    struct tci_json json; /* for the elements */
    size_t first;         /* the index of the page's first one */
    uint64_t generation;
};

/* Reads the cursor of the params and opens the array. On failure nothing was written. */
enum tci_mcp_outcome tci_mcp_list_begin(struct tci_mcp_list *list,
                                        const struct tci_mcp_session *session,
                                        const struct json_t *params, const char *name,
                                        struct tci_buf *result, struct tci_mcp_failure *failure);
/* `count`: of all elements; what lies behind this page is left for the next. */
void tci_mcp_list_end(struct tci_mcp_list *list, size_t count);

#endif
