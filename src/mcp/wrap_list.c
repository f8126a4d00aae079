/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the beginning of a conversation with the wrapped server: initialize, and its list of tools, which
 * is asked for before the client sees anything. Some servers complete their list right after the start,
 * and say so; what counts is what the list is when the client first sees it. From then on it stays as it
 * is, or the server is stopped: a list that changes after somebody has approved it is an attack. One that is said to
 * change again and again is looked at once a second: a server must not keep this process busy.
 */
#include "mcp/wrap_internal.h"

#include <event2/util.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"

static const char *const versions[] = { "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05" };

bool tci_wrap_is_version(const char *version)
{
    for (size_t i = 0; version && i < tci_array_size(versions); i++)
        if (strcmp(version, versions[i]) == 0)
            return true;
    return false;
}

/* ---- initialize ----------------------------------------------------------------------------- */

/* What the server may think that it can ask of the client. With a pin, what the policy allows whoever the
 * client is: some servers have other tools for other clients. */
static json_t *capabilities(const struct tci_wrap *wrap)
{
    json_t *all = json_object();
    const struct {
        const char *name;
        unsigned feature;
        bool has;
    } table[] = { { "sampling", TCI_FEATURE_SAMPLING, wrap->can_sample },
                  { "elicitation", TCI_FEATURE_ELICITATION, wrap->can_elicit },
                  { "roots", TCI_FEATURE_ROOTS, wrap->has_roots } };
    for (size_t i = 0; all && i < tci_array_size(table); i++)
        if ((wrap->rules->features & table[i].feature) && (table[i].has || wrap->has_pin) &&
            json_object_set_new(all, table[i].name, json_object()) < 0) {
            json_decref(all);
            return NULL;
        }
    return all;
}

static const char *short_text(const json_t *object, const char *key, const char *standard)
{
    const json_t *value = json_object_get(object, key);
    return json_is_string(value) && json_string_length(value) <= 256 ? json_string_value(value)
                                                                     : standard;
}

void tci_wrap_handshake(struct tci_wrap *wrap, const struct json_t *params)
{
    struct tci_wrap_pending *pending;
    const json_t *client = json_object_get(params, "clientInfo");
    const char *version = json_string_value(json_object_get(params, "protocolVersion"));
    json_t *own = json_pack("{s:s,s:o,s:{s:s,s:s}}", "protocolVersion",
                            tci_wrap_is_version(version) ? version : versions[0], "capabilities",
                            capabilities(wrap), "clientInfo", "name",
                            short_text(client, "name", "toolcage"), "version",
                            short_text(client, "version", tc_version()));
    pending = own ? tci_wrap_pending_new(wrap, TCI_WRAP_INITIALIZE, NULL, "initialize") : NULL;
    if (pending)
        tci_wrap_send(pending, own, wrap->tool->settings.timeout);
    else
        tci_wrap_fail(wrap, NULL, "there is not enough memory");
    json_decref(own);
}

/* It is passed on and not pinned: no place for words to a model. */
static const char *version_text(const json_t *info)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789.+-_";
    const char *version = short_text(info, "version", "");
    const char *number = version + (version[0] == 'v');
    bool is_one = number[0] >= '0' && number[0] <= '9' && !version[strspn(version, allowed)] &&
                  strlen(version) <= 40;
    return is_one ? version : "unknown";
}

/* Name, version and title; no addresses, which clients would fetch. */
static json_t *server_info(const json_t *info)
{
    json_t *own = json_pack("{s:s,s:s}", "name", short_text(info, "name", "unknown"), "version",
                            version_text(info));
    const char *title = short_text(info, "title", NULL);
    if (own && title)
        (void)json_object_set_new(own, "title", json_string(title));
    return own;
}

/* Of what the server can do, what the policy lets pass. */
static json_t *passed_capabilities(const struct tci_wrap *wrap, const json_t *from)
{
    static const struct {
        const char *name;
        unsigned feature;
        const char *flags[2];
    } table[] = { { "tools", 0, { NULL, NULL } },
                  { "resources", TCI_FEATURE_RESOURCES, { "subscribe", "listChanged" } },
                  { "prompts", TCI_FEATURE_PROMPTS, { "listChanged", NULL } },
                  { "logging", TCI_FEATURE_LOGGING, { NULL, NULL } },
                  { "completions", TCI_FEATURE_COMPLETIONS, { NULL, NULL } } };
    json_t *all = json_object();
    for (size_t i = 0; all && i < tci_array_size(table); i++) {
        const json_t *has = json_object_get(from, table[i].name);
        json_t *own;
        if (!json_is_object(has) ||
            (table[i].feature && !(wrap->rules->features & table[i].feature)))
            continue;
        own = json_object();
        for (size_t j = 0; own && j < 2 && table[i].flags[j]; j++)
            if (json_is_true(json_object_get(has, table[i].flags[j])))
                (void)json_object_set_new(own, table[i].flags[j], json_true());
        (void)json_object_set_new(all, table[i].name, own);
    }
    return all;
}

static void ask_page(struct tci_wrap *wrap, const json_t *cursor)
{
    json_t *params = cursor ? json_pack("{s:O}", "cursor", cursor) : NULL;
    struct tci_wrap_pending *pending = tci_wrap_pending_new(wrap, TCI_WRAP_LIST, NULL,
                                                            "tools/list");
    wrap->is_listing = true;
    if (pending && (params || !cursor))
        tci_wrap_send(pending, params, wrap->tool->settings.timeout);
    else
        tci_wrap_fail(wrap, NULL, "there is not enough memory");
    json_decref(params);
}

/* What is no tool is the same for all lists of this run. */
static int begin_list(struct tci_wrap *wrap, const struct tci_wrap_list *from)
{
    struct tci_wrap_list *to = &wrap->next_list;
    char *instructions = from->instructions ? strdup(from->instructions) : NULL;
    if (from->instructions && !instructions)
        return -1;
    tci_wrap_list_free(to);
    to->instructions = instructions;
    memcpy(to->version, from->version, sizeof to->version);
    to->server_info = json_incref(from->server_info);
    to->capabilities = json_incref(from->capabilities);
    wrap->pages = 0;
    wrap->list_again = false;
    return 0;
}

static void take_list(struct tci_wrap *wrap);

void tci_wrap_initialized(struct tci_wrap *wrap, const struct json_t *result)
{
    const char *version = json_string_value(json_object_get(result, "protocolVersion"));
    const json_t *instructions = json_object_get(result, "instructions");
    const json_t *has = json_object_get(result, "capabilities");
    struct tci_wrap_list *list = &wrap->next_list;

    if (!tci_wrap_is_version(version) || !json_is_object(has)) {
        tci_wrap_fail(wrap, "use a version of the server that speaks MCP of 2024-11-05 or later",
                      "the server's answer to initialize has no version of the protocol that is "
                      "known, or no capabilities");
        return;
    }
    (void)snprintf(list->version, sizeof list->version, "%s", version);
    list->server_info = server_info(json_object_get(result, "serverInfo"));
    list->capabilities = passed_capabilities(wrap, has);
    if (json_string_length(instructions)) /* an empty text says nothing */
        list->instructions = strdup(json_string_value(instructions));
    if (!list->server_info || !list->capabilities ||
        (json_string_length(instructions) && !list->instructions)) {
        tci_wrap_fail(wrap, NULL, "there is not enough memory");
        return;
    }
    tci_wrap_notify_server(wrap, "notifications/initialized", NULL);
    if (json_object_get(list->capabilities, "tools"))
        ask_page(wrap, NULL);
    else
        take_list(wrap);
}

/* ---- the list ------------------------------------------------------------------------------- */

/* One difference a line becomes one sentence. */
static void changed(struct tci_wrap *wrap, struct tci_buf *differences, const char *what,
                    const char *remedy)
{
    char text[500];
    tci_wrap_join(differences->data ? differences->data : "they differ", text, sizeof text);
    tci_wrap_fail(wrap, remedy, "the server%s: %s", what, text);
}

bool tci_wrap_list_show(struct tci_wrap *wrap)
{
    tc_cleanup(tci_buf_free) struct tci_buf differences = TCI_BUF_INIT(TCI_WRAP_LONG_MAX);
    if (wrap->is_shown)
        return true;
    if (wrap->has_pin && strcmp(wrap->approved.hash, wrap->list.hash) != 0) {
        tci_wrap_list_compare(&wrap->approved, &wrap->list, &differences);
        changed(wrap, &differences,
                strcmp(wrap->approved.said, wrap->list.said) == 0
                    ? "'s tools are not those that were approved"
                    : " is not what was approved",
                "look at it with \"toolcage mcp pin\", and pin it again if that is wanted");
        return false;
    }
    wrap->is_shown = true;
    return true;
}

/* The list is whole. */
static void take_list(struct tci_wrap *wrap)
{
    tc_cleanup(tci_buf_free) struct tci_buf differences = TCI_BUF_INIT(TCI_WRAP_LONG_MAX);
    struct tci_wrap_pending *ping;
    struct tc_error error = { 0 };
    char problem[256] = "";
    int r = tci_wrap_list_complete(&wrap->next_list, problem, &error);

    if (r != 0) {
        tci_wrap_fail(wrap, "the server is at fault", "the server's list of tools is not valid: %s",
                      r > 0 ? problem : error.message);
        return;
    }
    if (wrap->is_shown && strcmp(wrap->list.hash, wrap->next_list.hash) != 0) {
        tci_wrap_list_compare(&wrap->list, &wrap->next_list, &differences);
        changed(wrap, &differences,
                "'s tools are not what they were when the client first saw them",
                "start it again to see the new ones; a server that changes them often cannot be "
                "relied on");
        return;
    }
    if (wrap->is_shown) { /* nothing new; calls under way keep theirs */
        wrap->is_listing = false;
        wrap->list_after_us = tci_clock_us() + TCI_WRAP_RELIST_US;
        if (wrap->list_again)
            tci_wrap_list_again(wrap);
        return;
    }
    tci_wrap_list_free(&wrap->list);
    wrap->list = wrap->next_list;
    wrap->next_list = (struct tci_wrap_list){ 0 };
    ping = tci_wrap_pending_new(wrap, TCI_WRAP_SETTLE, NULL, "ping");
    if (ping)
        tci_wrap_send(ping, NULL, wrap->tool->settings.timeout);
    else
        tci_wrap_fail(wrap, NULL, "there is not enough memory");
}

static void next_round(struct tci_wrap *wrap)
{
    if (++wrap->rounds > TCI_WRAP_ROUNDS_MAX)
        tci_wrap_fail(wrap, "the server is at fault",
                      "the server's list of tools changes again and again");
    else if (begin_list(wrap, &wrap->list) < 0)
        tci_wrap_fail(wrap, NULL, "there is not enough memory");
    else
        ask_page(wrap, NULL);
}

void tci_wrap_list_settled(struct tci_wrap *wrap)
{
    wrap->is_listing = false;
    if (wrap->list_again) {
        next_round(wrap);
        return;
    }
    wrap->has_list = true;
    wrap->listed(wrap);
}

static void list_later(evutil_socket_t fd, short what, void *context)
{
    struct tci_wrap *wrap = context;
    (void)fd, (void)what;
    if (wrap->call && !wrap->is_ending && !wrap->is_failed)
        tci_wrap_list_again(wrap);
}

void tci_wrap_list_again(struct tci_wrap *wrap)
{
    uint64_t now = tci_clock_us();
    wrap->list_again = true;
    if (wrap->is_listing || !wrap->has_list)
        return; /* it is seen when that is over */
    if (wrap->is_shown && now < wrap->list_after_us) {
        if (tci_wrap_timer(wrap, &wrap->relist, (wrap->list_after_us - now) / 1000 + 1, list_later,
                           wrap) < 0)
            tci_wrap_fail(wrap, NULL, "there is not enough memory");
        return;
    }
    wrap->rounds = wrap->is_shown ? 0 : wrap->rounds;
    next_round(wrap);
}

void tci_wrap_list_page(struct tci_wrap *wrap, const struct json_t *result)
{
    const json_t *tools = json_object_get(result, "tools");
    const json_t *cursor = json_object_get(result, "nextCursor");
    struct tc_error error = { 0 };
    char problem[256] = "its answer has no list";
    int r = json_is_array(tools) ? 0 : 1;

    for (size_t i = 0; r == 0 && i < json_array_size(tools); i++)
        r = tci_wrap_list_add(&wrap->next_list, json_array_get(tools, i), problem, &error);
    if (r == 0 && json_is_string(cursor) && ++wrap->pages == TCI_WRAP_PAGES_MAX) {
        (void)snprintf(problem, sizeof problem, "it has more than %d pages", TCI_WRAP_PAGES_MAX);
        r = 1;
    }
    if (r != 0)
        tci_wrap_fail(wrap, "the server is at fault", "the server's list of tools is not valid: %s",
                      r > 0 ? problem : error.message);
    else if (json_is_string(cursor))
        ask_page(wrap, cursor);
    else
        take_list(wrap);
}
