/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: requests of the client that wait for the server's list. Invariant: each is answered, begun, or
 * cancelled; and all of them together are no larger than TCI_WRAP_HELD_MAX.
 */
#include "mcp/wrap_internal.h"

#include <jansson.h>
#include <string.h>
#include "json/canonical.h"

/* The answer waits for the list. As text: read, it is many times as large, and a client could fill the
 * memory with what a slow server has not asked for yet. */
void tci_wrap_hold(struct tci_wrap *wrap, const struct json_t *id, const char *method,
                   const struct json_t *params)
{
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(TCI_WRAP_HELD_MAX);
    json_t *request = NULL;
    if (params && strcmp(method, "tools/list") != 0) /* which needs none */
        tci_mcp_write_value(&text, params);
    if (tci_buf_check(&text, NULL) == 0 && wrap->held_bytes + text.length <= TCI_WRAP_HELD_MAX &&
        json_array_size(wrap->held) < TCI_WRAP_REQUESTS_MAX)
        request = json_pack("{s:O,s:s}", "id", id, "method", method);
    if (request && text.length &&
        json_object_set_new(request, "params", json_stringn(text.data, text.length)) < 0)
        json_decref(tc_take(request));
    if (request && !wrap->held)
        wrap->held = json_array();
    if (request && json_array_append_new(wrap->held, request) == 0)
        wrap->held_bytes += text.length;
    else
        tci_wrap_client_error(wrap, id, TCI_MCP_BUSY, "too many requests are under way", NULL);
}

static void take_held(struct tci_wrap *wrap, const json_t *request)
{
    const json_t *text = json_object_get(request, "params");
    const json_t *id = json_object_get(request, "id");
    struct tc_error error = { 0 };
    json_t *params = text ? tci_json_read(json_string_value(text), json_string_length(text), &error)
                          : NULL;
    if (text && !params)
        tci_wrap_client_error(wrap, id, TCI_MCP_INTERNAL, error.message, NULL);
    else
        tci_wrap_client_request(wrap, id, json_string_value(json_object_get(request, "method")),
                                params);
    json_decref(params);
}

void tci_wrap_held_release(struct tci_wrap *wrap)
{
    json_t *held = tc_take(wrap->held); /* some may be held again */
    wrap->held_bytes = 0;
    for (size_t i = 0; i < json_array_size(held); i++)
        take_held(wrap, json_array_get(held, i));
    json_decref(held);
}

/* What still waits for the list is not begun, and not answered. */
void tci_wrap_held_cancel(struct tci_wrap *wrap, const struct json_t *id)
{
    for (size_t i = json_array_size(wrap->held); i > 0; i--) {
        const json_t *request = json_array_get(wrap->held, i - 1);
        if (!json_equal(json_object_get(request, "id"), id))
            continue;
        tci_wrap_batch_drop(wrap, id);
        wrap->held_bytes -= json_string_length(json_object_get(request, "params"));
        (void)json_array_remove(wrap->held, i - 1);
    }
    if (wrap->held && !json_array_size(wrap->held))
        json_decref(tc_take(wrap->held));
    tci_wrap_check_end(wrap);
}
