/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: which resources there are for a session, and who is told when one changes. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "mcp/list.h"
#include "mcp/resources.h"

static bool has_journal(const struct tci_mcp_session *session)
{
    return session->server->options->journal_path != NULL;
}

bool tci_mcp_resource_is_there(const struct tci_mcp_session *session, const char *uri)
{
    if (strcmp(uri, TCI_MCP_POLICY_URI) == 0)
        return !session->agent;
    if (strcmp(uri, TCI_MCP_JOURNAL_URI) == 0 ||
        strncmp(uri, TCI_MCP_CALL_PREFIX, strlen(TCI_MCP_CALL_PREFIX)) == 0)
        return has_journal(session);
    return true;
}

/* ---- lists -------------------------------------------------------------------------------- */

struct listed {
    const char *uri, *name, *title, *description, *media_type;
};

static const struct listed fixed[] = {
    { TCI_MCP_POLICY_URI, "policy", "Effective policy",
      "The policy in its normal form: every tool with every value.", "application/toml" },
    { TCI_MCP_TOOLS_URI, "tools", "Tools and their limits",
      "What each tool may read, write and reach, and its limits.", "application/json" },
    { TCI_MCP_JOURNAL_URI, "journal", "Calls of this session",
      "One line of JSON for each call that was made: request, verdict, reason.",
      "application/jsonl" },
};

static const struct listed templates[] = {
    { "toolcage://tool/{name}", "tool", "One tool", "What the tool may do, and its limits.",
      "application/json" },
    { "toolcage://call/{call_id}", "call", "Result of a call",
      "The whole result of a call of this session.", "application/json" },
    { "toolcage://file/{call_id}/{n}/{name}", "file", "File of a call",
      "A file that a call of this session brought back.", NULL },
};

static void put_listed(struct tci_json *json, const struct tci_mcp_session *session,
                       const struct listed *entry, const char *uri_key)
{
    tci_json_object_begin(json, NULL);
    tci_json_string(json, uri_key, entry->uri);
    tci_json_string(json, "name", entry->name);
    if (session->version >= TCI_MCP_2025_06_18)
        tci_json_string(json, "title", entry->title);
    tci_json_string(json, "description", entry->description);
    if (entry->media_type)
        tci_json_string(json, "mimeType", entry->media_type);
    tci_json_object_end(json);
}

static void put_file(struct tci_json *json, const struct tci_mcp_file *file)
{
    tci_json_object_begin(json, NULL);
    tci_json_string(json, "uri", file->uri);
    tci_json_string(json, "name", file->name);
    tci_json_printf(json, "description", "Brought back by the call %s.", file->call_id);
    tci_json_string(json, "mimeType", file->media_type);
    tci_json_unsigned(json, "size", file->size);
    tci_json_object_end(json);
}

/* In the order in which they came: a file that comes while a client turns pages moves nothing. */
static size_t in_order(const struct tci_mcp_session *session,
                       const struct tci_mcp_file *ret[TCI_MCP_FILES_MAX])
{
    size_t left = session->file_count;
    for (const struct tci_mcp_file *file = session->files; file && left; file = file->next)
        ret[--left] = file;
    return session->file_count;
}

enum tci_mcp_outcome tci_mcp_resources_list(struct tci_mcp_request *request,
                                            const struct json_t *params, struct tci_buf *result,
                                            struct tci_mcp_failure *failure)
{
    const struct tci_mcp_session *session = request->session;
    const struct tci_mcp_file *files[TCI_MCP_FILES_MAX] = { NULL };
    size_t count = in_order(session, files), all = tci_array_size(fixed) + count;
    struct tci_mcp_list list;

    if (tci_mcp_list_begin(&list, session, params, "resources", result, failure) != TCI_MCP_DONE)
        return TCI_MCP_FAILED;
    for (size_t i = list.first; i < all && i < list.first + TCI_MCP_PAGE; i++)
        if (i < tci_array_size(fixed)) {
            if (tci_mcp_resource_is_there(session, fixed[i].uri))
                put_listed(&list.json, session, &fixed[i], "uri");
        } else if (files[i - tci_array_size(fixed)]) {
            put_file(&list.json, files[i - tci_array_size(fixed)]);
        }
    tci_mcp_list_end(&list, all);
    return TCI_MCP_DONE;
}

enum tci_mcp_outcome tci_mcp_resources_templates(struct tci_mcp_request *request,
                                                 const struct json_t *params,
                                                 struct tci_buf *result,
                                                 struct tci_mcp_failure *failure)
{
    const struct tci_mcp_session *session = request->session;
    struct tci_mcp_list list;
    if (tci_mcp_list_begin(&list, session, params, "resourceTemplates", result, failure) !=
        TCI_MCP_DONE)
        return TCI_MCP_FAILED;
    for (size_t i = list.first; i < tci_array_size(templates); i++)
        if (tci_mcp_resource_is_there(session, templates[i].uri))
            put_listed(&list.json, session, &templates[i], "uriTemplate");
    tci_mcp_list_end(&list, tci_array_size(templates));
    return TCI_MCP_DONE;
}

/* ---- subscriptions ------------------------------------------------------------------------ */

static size_t find_subscription(const struct tci_mcp_session *session, const char *uri)
{
    size_t i = 0;
    while (i < session->subscribed_count && strcmp(session->subscribed[i], uri) != 0)
        i++;
    return i;
}

enum tci_mcp_outcome tci_mcp_resources_subscribe(struct tci_mcp_request *request,
                                                 const struct json_t *params,
                                                 struct tci_buf *result,
                                                 struct tci_mcp_failure *failure)
{
    struct tci_mcp_session *session = request->session;
    const char *uri = tci_mcp_resource_uri(params, failure);
    bool known = false;

    if (!uri)
        return TCI_MCP_FAILED;
    for (size_t i = 0; i < tci_array_size(fixed); i++)
        known |= strcmp(fixed[i].uri, uri) == 0 && tci_mcp_resource_is_there(session, uri);
    if (!known)
        return tci_mcp_no_resource(failure, uri, "only what toolcage:// lists and can change");
    if (find_subscription(session, uri) == session->subscribed_count) {
        char *copy = session->subscribed_count < TCI_MCP_SUBSCRIPTIONS_MAX ? strdup(uri) : NULL;
        if (!copy)
            return tci_mcp_failed(failure, TCI_MCP_BUSY, "there are too many subscriptions");
        session->subscribed[session->subscribed_count++] = copy;
    }
    tci_buf_string(result, "{}");
    return TCI_MCP_DONE;
}

enum tci_mcp_outcome tci_mcp_resources_unsubscribe(struct tci_mcp_request *request,
                                                   const struct json_t *params,
                                                   struct tci_buf *result,
                                                   struct tci_mcp_failure *failure)
{
    struct tci_mcp_session *session = request->session;
    const char *uri = tci_mcp_resource_uri(params, failure);
    size_t i;
    if (!uri)
        return TCI_MCP_FAILED;
    i = find_subscription(session, uri);
    if (i < session->subscribed_count) {
        free(session->subscribed[i]);
        session->subscribed[i] = session->subscribed[--session->subscribed_count];
    }
    tci_buf_string(result, "{}");
    return TCI_MCP_DONE;
}

void tci_mcp_resource_updated(struct tci_mcp_session *session, const char *uri)
{
    struct tci_buf params = TCI_BUF_INIT(4096);
    if (find_subscription(session, uri) == session->subscribed_count)
        return;
    tci_buf_printf(&params, "{\"uri\":\"%s\"}", uri); /* one of ours, without anything to escape */
    if (tci_buf_check(&params, NULL) == 0)
        tci_mcp_notify(session, 0, "notifications/resources/updated", params.data);
    tci_buf_free(&params);
}
