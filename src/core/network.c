/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: from the gate's records to the result's lists. What was refused is a denial, with the same
 * words as every other; what was allowed is a connection, whether it could be made or not.
 * Trusts: the gate with numbers. Names are what the cage asked for; they are copied, and escaped where
 * they are shown.
 */
#include "core/network.h"

#include <stdio.h>
#include <string.h>

static const char *const kinds[] = {
    [TCI_GATE_REFUSED] = "refused",
    [TCI_GATE_OPENED] = "opened",
    [TCI_GATE_CLOSED] = "closed",
    [TCI_GATE_FAILED] = "failed",
};

void tci_network_event(const struct tci_gate_record *record, struct tc_network_event *ret)
{
    *ret = (struct tc_network_event){
        .kind = kinds[record->event],
        .protocol = record->protocol,
        .host = record->host,
        .address = record->address,
        .port = record->port,
        .rule = record->rule,
        .reason = record->reason,
        .fix = record->fix,
        .bytes_in = record->bytes_in,
        .bytes_out = record->bytes_out,
        .duration_us = record->duration_us,
        .count = record->count,
    };
}

const char *tci_network_target(const struct tc_network_event *event,
                               char buffer[TCI_NETWORK_TARGET_MAX])
{
    bool is_bare_v6 = strchr(event->host, ':') && event->host[0] != '[';
    const char *open = is_bare_v6 ? "[" : "", *close = is_bare_v6 ? "]" : "";

    if (event->port == 0)
        (void)snprintf(buffer, TCI_NETWORK_TARGET_MAX, "%s", event->host);
    else
        (void)snprintf(buffer, TCI_NETWORK_TARGET_MAX, "%s%s%s:%u%s", open, event->host, close,
                       event->port, strcmp(event->protocol, "udp") == 0 ? "/udp" : "");
    return buffer;
}

/* ---- denials ------------------------------------------------------------------------------ */

static int add_denial(struct tci_result *result, const struct tci_gate_record *record)
{
    char target[TCI_NETWORK_TARGET_MAX];
    char rule[sizeof "network: " + sizeof record->reason + sizeof record->fix];
    struct tc_network_event event;

    tci_network_event(record, &event);
    (void)snprintf(rule, sizeof rule, "network: %s%s%s", record->reason,
                   *record->reason && *record->fix ? "; " : "", record->fix);
    return tci_result_deny_times(result, "network", tci_network_target(&event, target), rule,
                                 record->count ? record->count : 1);
}

/* ---- connections -------------------------------------------------------------------------- */

static bool is_address(const char *host)
{
    size_t length = strlen(host);
    struct tci_address address;

    if (host[0] == '[')
        return true; /* no name begins so */
    return tci_address_parse_v4(host, length, &address) ||
           tci_address_parse_v6(host, length, &address);
}

/* "" and NULL: there is none. */
static int copy(struct tci_arena *arena, const char *text, const char **ret)
{
    *ret = text && *text ? tci_arena_strdup(arena, text) : NULL;
    return text && *text && !*ret ? -1 : 0;
}

static int add_connection(struct tci_arena *arena, const struct tci_gate_record *record,
                          struct tc_connection *ret)
{
    bool failed = record->event == TCI_GATE_FAILED, has_name = !is_address(record->host);
    const char *error = *record->reason ? record->reason : "the connection could not be made";

    ret->port = record->port;
    ret->bytes_in = record->bytes_in;
    ret->bytes_out = record->bytes_out;
    ret->started_us = record->started_us;
    ret->duration_us = record->duration_us;
    if (copy(arena, has_name ? record->host : NULL, &ret->name) < 0 ||
        copy(arena, *record->address || has_name ? record->address : record->host, &ret->address) <
            0 ||
        copy(arena, record->protocol, &ret->protocol) < 0 ||
        copy(arena, record->rule, &ret->rule) < 0 ||
        copy(arena, failed ? NULL : record->reason, &ret->note) < 0 ||
        copy(arena, failed ? error : NULL, &ret->error) < 0)
        return -1;
    return 0;
}

int tci_network_add(struct tci_result *result, const struct tci_gate_record *records, size_t count,
                    uint64_t dropped, struct tc_error *reterr)
{
    struct tc_result *public = &result->public;
    struct tc_connection *connections;
    size_t made = 0;

    public->network_unlisted = dropped;
    for (size_t i = 0; i < count; i++) {
        if (records[i].event != TCI_GATE_REFUSED)
            made++;
        else if (add_denial(result, &records[i]) < 0)
            return tci_error_no_memory(reterr);
    }
    if (made == 0)
        return 0;
    connections = tci_arena_new_array(result->arena, made, struct tc_connection);
    if (!connections)
        return tci_error_no_memory(reterr);
    public->connections = connections;
    for (size_t i = 0; i < count; i++)
        if (records[i].event != TCI_GATE_REFUSED &&
            add_connection(result->arena, &records[i], &connections[public->connection_count++]) <
                0)
            return tci_error_no_memory(reterr);
    return 0;
}
