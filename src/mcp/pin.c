/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: recording what was approved. The person who pins must see what a model would read, and nothing
 * that only looks like it: every text of the server is shown escaped, and whole.
 */
#include "mcp/wrap_internal.h"

#include <event2/event.h>
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "policy/place.h"

enum {
    settle_ms = 500, /* some servers complete their list a moment after the start */
    shown_max = 8 * TCI_WRAP_PIN_MAX, /* all of a pin, with an escape for each letter */
};

static void settled(evutil_socket_t fd, short what, void *context)
{
    struct tci_wrap *wrap = context;
    (void)fd, (void)what;
    if (wrap->is_listing)
        return;
    /* As at the end of a client: the server ends by itself, and its record does not say that somebody
     * stopped it. */
    wrap->is_at_end = true;
    tci_wrap_check_end(wrap);
}

/* Again for each list: it is over when nothing new came for a while. */
static void listed(struct tci_wrap *wrap)
{
    if (tci_wrap_timer(wrap, &wrap->linger, settle_ms, settled, wrap) < 0)
        tci_mcp_loop_stop(wrap->loop);
}

/* ---- for people ----------------------------------------------------------------------------- */

static void show_text(struct tci_buf *out, const char *label, const json_t *text)
{
    if (!json_is_string(text))
        return;
    tci_buf_printf(out, "    %s: ", label);
    tci_wrap_show(out, json_string_value(text), json_string_length(text), SIZE_MAX);
    tci_buf_char(out, '\n');
}

static void show_value(struct tci_buf *out, const char *label, const json_t *value)
{
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(TCI_WRAP_PIN_MAX);
    struct tci_json json = { .out = out };
    if (!value)
        return;
    tci_mcp_write_value(&text, value);
    if (tci_buf_check(&text, NULL) < 0) {
        out->no_memory = true; /* what cannot be shown is not pinned */
        return;
    }
    tci_buf_printf(out, "    %s: ", label);
    tci_json_value(&json, NULL, text.data); /* with escapes for what deceives */
    tci_buf_char(out, '\n');
}

static void show_names(struct tci_buf *out, json_t *capabilities)
{
    tci_buf_string(out, "    capabilities:");
    for (void *i = json_object_iter(capabilities); i; i = json_object_iter_next(capabilities, i))
        tci_buf_printf(out, " %s", json_object_iter_key(i)); /* names of ours (wrap_list.c) */
    tci_buf_char(out, '\n');
}

static void show_list(const struct tci_wrap *wrap, struct tci_buf *out)
{
    const struct tci_wrap_list *list = &wrap->list;
    const char *name = json_string_value(json_object_get(list->server_info, "name"));
    const char *version = json_string_value(json_object_get(list->server_info, "version"));

    tci_buf_string(out, "server ");
    tci_wrap_show(out, name ? name : "", strlen(name ? name : ""), 256);
    tci_buf_string(out, " version ");
    tci_wrap_show(out, version ? version : "", strlen(version ? version : ""), 256);
    tci_buf_printf(out, ", protocol %s, %zu tool%s\n", list->version, list->count,
                   list->count == 1 ? "" : "s");
    show_text(out, "title", json_object_get(list->server_info, "title"));
    show_names(out, list->capabilities);
    if (list->instructions) {
        tci_buf_string(out, "instructions: ");
        tci_wrap_show(out, list->instructions, strlen(list->instructions), SIZE_MAX);
        tci_buf_char(out, '\n');
    }
    for (size_t i = 0; i < list->count; i++) {
        const struct tci_wrap_tool *tool = &list->tools[i];
        tci_buf_string(out, "tool ");
        tci_wrap_show(out, tool->name, strlen(tool->name), TCI_WRAP_NAME_MAX);
        tci_buf_printf(out, "%s\n",
                       tci_wrap_is_visible(wrap, tool->name) ? "" : " (hidden by the policy)");
        show_text(out, "title", json_object_get(tool->definition, "title"));
        show_text(out, "description", json_object_get(tool->definition, "description"));
        show_value(out, "input", json_object_get(tool->definition, "inputSchema"));
        show_value(out, "output", json_object_get(tool->definition, "outputSchema"));
        show_value(out, "annotations", json_object_get(tool->definition, "annotations"));
    }
    tci_buf_printf(out, "sha256:%s\n", list->hash);
}

/* What changed since the pin that was there. One that cannot be read is no pin. */
static void show_differences(const struct tci_wrap *wrap, const char *path, struct tci_buf *out)
{
    struct tci_wrap_list before = { 0 };
    struct tc_error error = { 0 };
    if (access(path, F_OK) != 0)
        return;
    if (tci_pin_read(path, NULL, &before, &error) < 0) {
        tci_buf_printf(out, "the pin that was there could not be read: %s\n", error.message);
        return;
    }
    if (strcmp(before.hash, wrap->list.hash) == 0) {
        tci_buf_string(out, "nothing changed since it was last pinned\n");
    } else {
        tci_buf_string(out, "changed since it was last pinned:\n");
        tci_wrap_list_compare(&before, &wrap->list, out);
    }
    tci_wrap_list_free(&before);
}

static int finish(struct tci_wrap *wrap, const char *path, char **ret_text, struct tc_error *reterr)
{
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(shown_max);
    char *shown;
    if (!wrap->has_list) {
        tci_error_set(reterr, TC_ERROR_IO, "it was interrupted before the server had answered");
        return -1;
    }
    show_list(wrap, &text);
    show_differences(wrap, path, &text);
    shown = tci_buf_take(&text, reterr);
    if (!shown || tci_pin_write(path, &wrap->list, reterr) < 0) {
        free(shown);
        return -1;
    }
    *ret_text = shown;
    return 0;
}

/* Before anything is started. A pin that somebody else could write is replaced by one of ours; a place where
 * they, or the server, could do it again is none. */
static int check_place(const char *path, const struct tci_filesystem *cage, struct tc_error *reterr)
{
    const struct tci_place place = {
        .what = "pin", .cage = cage, .ours = true, .is_replaced = true
    };
    return tci_place_open(path, &place, NULL, reterr) == 0 ? 0 : -1;
}

static int run(struct tci_wrap *wrap, const struct tci_mcp_wrap_options *options, char **ret_text,
               struct tc_error *reterr)
{
    const char *path;
    if (tci_wrap_open(wrap, options, reterr) < 0)
        return -1;
    path = tci_wrap_pin_path(wrap);
    if (!path) {
        tci_error_set(reterr, TC_ERROR_USAGE, "there is no file to pin to");
        tci_error_remedy(reterr, "name one with --pin, or with pin = \"FILE\" in the policy");
        return -1;
    }
    if (check_place(path, &wrap->tool->settings.filesystem, reterr) < 0)
        return -1;
    wrap->listed = listed;
    wrap->has_pin = true; /* the server is told what it will be told then */
    if (tci_wrap_server_start(wrap, reterr) < 0)
        return -1;
    tci_wrap_handshake(wrap, NULL);
    if (tci_wrap_run(wrap, reterr) < 0)
        return -1;
    return finish(wrap, path, ret_text, reterr);
}

int tci_mcp_pin(const struct tci_mcp_wrap_options *options, char **ret_text,
                struct tc_error *reterr)
{
    struct tci_wrap *wrap = calloc(1, sizeof *wrap);
    int r;
    if (!wrap)
        return tci_error_no_memory(reterr);
    tci_error_clear(reterr);
    r = run(wrap, options, ret_text, reterr);
    tci_wrap_close(wrap);
    free(wrap);
    return r;
}
