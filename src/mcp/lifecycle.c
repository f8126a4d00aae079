/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: how a session begins: versions, capabilities, ping, and which log lines the client
 * wants. */
#include <jansson.h>
#include <string.h>
#include "json/write.h"
#include "mcp/server.h"

static const char *const versions[] = {
    [TCI_MCP_2025_03_26] = "2025-03-26",
    [TCI_MCP_2025_06_18] = "2025-06-18",
    [TCI_MCP_2025_11_25] = "2025-11-25",
};

static const char *const levels[] = {
    [TCI_MCP_DEBUG] = "debug",   [TCI_MCP_INFO] = "info",
    [TCI_MCP_NOTICE] = "notice", [TCI_MCP_WARNING] = "warning",
    [TCI_MCP_ERROR] = "error",   [TCI_MCP_CRITICAL] = "critical",
    [TCI_MCP_ALERT] = "alert",   [TCI_MCP_EMERGENCY] = "emergency",
};

static const char instructions[] =
    "Each tool runs in a cage of its own, which keeps it to the files, the network and the limits "
    "that "
    "its policy names. A call that is refused or stopped says why and what would help: do not try "
    "the "
    "same again, but change the call, or tell the user what the policy would have to allow.";

bool tci_mcp_version_find(const char *name, enum tci_mcp_version *ret)
{
    for (size_t i = 0; i < tci_array_size(versions); i++)
        if (strcmp(versions[i], name) == 0) {
            *ret = (enum tci_mcp_version)i;
            return true;
        }
    return false;
}

const char *tci_mcp_level_name(enum tci_mcp_level level)
{
    return levels[level];
}

/* ---- initialize --------------------------------------------------------------------------- */

/* Since 2025-11-25 it says which kinds; an empty object is a form, as before. */
static bool can_elicit(const json_t *capabilities, enum tci_mcp_version version)
{
    const json_t *elicitation = json_object_get(capabilities, "elicitation");
    return version >= TCI_MCP_2025_06_18 && json_is_object(elicitation) &&
           (json_object_size(elicitation) == 0 || json_object_get(elicitation, "form"));
}

static void write_capability(struct tci_json *json, const char *name)
{
    tci_json_object_begin(json, name);
    if (strcmp(name, "resources") == 0)
        tci_json_bool(json, "subscribe", true);
    if (strcmp(name, "resources") == 0 || strcmp(name, "tools") == 0)
        tci_json_bool(json, "listChanged", true);
    tci_json_object_end(json);
}

/* Each that the table of methods names, once: a capability's methods stand together. */
static void write_capabilities(struct tci_json *json)
{
    static const char *const names[] = {
#define X(name, function, when, capability) capability,
#include "mcp/methods.def"
#undef X
    };
    tci_json_object_begin(json, "capabilities");
    for (size_t i = 0; i < tci_array_size(names); i++)
        if (names[i] && (i == 0 || !names[i - 1] || strcmp(names[i - 1], names[i]) != 0))
            write_capability(json, names[i]);
    tci_json_object_end(json);
}

enum tci_mcp_outcome tci_mcp_initialize(struct tci_mcp_request *request,
                                        const struct json_t *params, struct tci_buf *result,
                                        struct tci_mcp_failure *failure)
{
    struct tci_mcp_session *session = request->session;
    struct tci_json json = { .out = result };
    const json_t *version = json_object_get(params, "protocolVersion");
    const json_t *capabilities = json_object_get(params, "capabilities");

    if (session->state != TCI_MCP_NEW)
        return tci_mcp_failed(failure, TCI_MCP_INVALID_REQUEST,
                              "this session has been initialized already");
    if (!json_is_string(version))
        return tci_mcp_failed(failure, TCI_MCP_INVALID_PARAMS, "protocolVersion must be a text");
    if (capabilities && !json_is_object(capabilities))
        return tci_mcp_failed(failure, TCI_MCP_INVALID_PARAMS, "capabilities must be an object");
    /* One that we do not know: the client decides whether it takes our newest. */
    if (!tci_mcp_version_find(json_string_value(version), &session->version))
        session->version = TCI_MCP_2025_11_25;
    session->can_elicit = can_elicit(capabilities, session->version);
    session->state = TCI_MCP_INITIALIZED;

    tci_json_object_begin(&json, NULL);
    tci_json_string(&json, "protocolVersion", versions[session->version]);
    write_capabilities(&json);
    tci_json_object_begin(&json, "serverInfo");
    tci_json_string(&json, "name", "toolcage");
    if (session->version >= TCI_MCP_2025_06_18)
        tci_json_string(&json, "title", "toolcage: caged tools");
    tci_json_string(&json, "version", tc_version());
    tci_json_object_end(&json);
    tci_json_string(&json, "instructions", instructions);
    tci_json_object_end(&json);
    return TCI_MCP_DONE;
}

enum tci_mcp_outcome tci_mcp_ping(struct tci_mcp_request *request, const struct json_t *params,
                                  struct tci_buf *result, struct tci_mcp_failure *failure)
{
    (void)request, (void)params, (void)failure;
    tci_buf_string(result, "{}");
    return TCI_MCP_DONE;
}

enum tci_mcp_outcome tci_mcp_set_level(struct tci_mcp_request *request, const struct json_t *params,
                                       struct tci_buf *result, struct tci_mcp_failure *failure)
{
    const char *level = json_string_value(json_object_get(params, "level"));
    for (size_t i = 0; level && i < tci_array_size(levels); i++)
        if (strcmp(levels[i], level) == 0) {
            request->session->level = (enum tci_mcp_level)i;
            tci_buf_string(result, "{}");
            return TCI_MCP_DONE;
        }
    return tci_mcp_failed(failure, TCI_MCP_INVALID_PARAMS,
                          "level must be debug, info, notice, warning, error, critical, alert or "
                          "emergency");
}
