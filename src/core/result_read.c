/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the way back from the canonical form of a result to a result. Strict: a member that is missing,
 * of another type, or that nobody knows is an error. A record may have been made by anybody who could
 * write the file, so nothing is copied before its length is known to fit.
 * Invariant: the result that is read gives the same JSON again.
 */
#include "core/record.h"

#include <signal.h>
#include <string.h>
#include "base/base64.h"
#include "core/result_read.h"
#include "json/canonical.h"

static void decref(json_t **value)
{
    json_decref(*value);
}

/* ---- members ------------------------------------------------------------------------------ */

static enum tc_verdict read_verdict(struct tci_stored *reader, const json_t *object)
{
    const char *name = tci_stored_text(reader, object, "verdict");
    for (int i = TC_VERDICT_OK; i <= TC_VERDICT_ERROR; i++)
        if (strcmp(tc_verdict_name((enum tc_verdict)i), name) == 0)
            return (enum tc_verdict)i;
    tci_stored_refuse(reader, "verdict");
    return TC_VERDICT_ERROR;
}

static int read_exit_code(struct tci_stored *reader, const json_t *object)
{
    uint64_t code;
    if (json_is_null(tci_stored_member(reader, object, "exit_code")))
        return -1;
    code = tci_stored_count(reader, object, "exit_code");
    if (code > 255)
        tci_stored_refuse(reader, "exit_code");
    return (int)(code & 255);
}

static int read_signal(struct tci_stored *reader, const json_t *object)
{
    const char *name = tci_stored_name(reader, object, "signal");
    char buffer[TCI_SIGNAL_NAME_MAX];
    if (!name)
        return 0;
    for (int i = 1; i <= SIGRTMAX; i++)
        if (strcmp(tci_signal_name(i, buffer), name) == 0)
            return i;
    tci_stored_refuse(reader, "signal");
    return 0;
}

static const char *read_layers(struct tci_stored *reader, const json_t *object)
{
    tc_cleanup(tci_buf_free) struct tci_buf out = TCI_BUF_INIT(SIZE_MAX / 4);
    const json_t *list = tci_stored_member(reader, object, "layers");
    const char *copy;

    if (!json_is_array(list))
        tci_stored_refuse(reader, "layers");
    tci_buf_append(&out, "", 0);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *word = json_string_value(json_array_get(list, i));
        if (!word || !*word || strchr(word, ' '))
            tci_stored_refuse(reader, "layers");
        tci_buf_string(&out, i ? " " : "");
        tci_buf_string(&out, word ? word : "");
    }
    copy = out.no_memory ? NULL : tci_arena_strndup(reader->arena, out.data, out.length);
    if (!copy)
        reader->no_memory = true;
    return copy ? copy : "";
}

static const char *read_stream(struct tci_stored *reader, const json_t *object, const char *key,
                               const char *encoding_key, size_t *ret_length)
{
    tc_cleanup(tci_buf_free) struct tci_buf out = TCI_BUF_INIT(SIZE_MAX / 4);
    const char *encoding = tci_stored_text(reader, object, encoding_key);
    const char *text = tci_stored_text(reader, object, key);

    *ret_length = strlen(text);
    if (strcmp(encoding, "utf-8") == 0)
        return text;
    tci_buf_append(&out, "", 0);
    if (strcmp(encoding, "base64") != 0)
        tci_stored_refuse(reader, encoding_key);
    else if (tci_base64_decode(&out, text, *ret_length) < 0)
        tci_stored_refuse(reader, key);
    text = out.no_memory ? NULL : tci_arena_strndup(reader->arena, out.data, out.length);
    if (!text)
        reader->no_memory = true;
    *ret_length = text ? out.length : 0;
    return text ? text : "";
}

static const char *read_output(struct tci_stored *reader, const json_t *object)
{
    tc_cleanup(tci_buf_free) struct tci_buf out = TCI_BUF_INIT(SIZE_MAX / 4);
    json_t *value = tci_stored_member(reader, object, "output");
    const char *text = NULL;

    if (!value || json_is_null(value))
        return NULL;
    if (tci_json_canonical_value(reader->arena, &out, value) == 0 && !out.no_memory)
        text = tci_arena_strndup(reader->arena, out.data, out.length);
    if (!text)
        reader->no_memory = true;
    return text;
}

static void read_files(struct tci_stored *reader, const json_t *object, struct tc_result *ret)
{
    void *items;
    const json_t *list = tci_stored_list(reader, object, "files", 5, sizeof(struct tc_file), &items,
                                         &ret->file_count);
    struct tc_file *files = items;
    for (size_t i = 0; i < ret->file_count; i++) {
        const json_t *file = json_array_get(list, i);
        files[i].media_type = tci_stored_text(reader, file, "media_type");
        files[i].path = tci_stored_text(reader, file, "path");
        files[i].saved = tci_stored_name(reader, file, "saved");
        tci_stored_field(reader, file, "sha256", files[i].sha256, sizeof files[i].sha256);
        files[i].size = tci_stored_count(reader, file, "size");
    }
    ret->files = files;
}

static void read_denials(struct tci_stored *reader, const json_t *object, struct tc_result *ret)
{
    void *items, *counts;
    const json_t *list = tci_stored_list(reader, object, "denials", 4, sizeof(struct tc_denial),
                                         &items, &ret->denial_count);
    struct tc_denial *denials = items;
    uint64_t *times;
    (void)tci_stored_list(reader, object, "denials", 0, sizeof *times, &counts, &ret->denial_count);
    times = counts;
    for (size_t i = 0; denials && i < ret->denial_count; i++) {
        const json_t *denial = json_array_get(list, i);
        times[i] = tci_stored_count(reader, denial, "count");
        denials[i].kind = tci_stored_text(reader, denial, "kind");
        denials[i].rule = tci_stored_text(reader, denial, "rule");
        denials[i].target = tci_stored_text(reader, denial, "target");
    }
    ret->denials = denials;
    ret->denial_times = times;
}

static unsigned read_port(struct tci_stored *reader, const json_t *connection)
{
    uint64_t port = tci_stored_known_count(reader, connection, "port");
    if (port > 65535)
        tci_stored_refuse(reader, "port");
    return (unsigned)(port & 65535);
}

static void read_connections(struct tci_stored *reader, const json_t *object, struct tc_result *ret)
{
    void *items;
    const json_t *all = tci_stored_list(reader, object, "connections", 11,
                                        sizeof(struct tc_connection), &items,
                                        &ret->connection_count);
    struct tc_connection *list = items;
    for (size_t i = 0; i < ret->connection_count; i++) {
        const json_t *connection = json_array_get(all, i);
        list[i].address = tci_stored_name(reader, connection, "address");
        list[i].bytes_in = tci_stored_count(reader, connection, "bytes_in");
        list[i].bytes_out = tci_stored_count(reader, connection, "bytes_out");
        list[i].duration_us = tci_stored_milliseconds(reader, connection, "duration_ms");
        list[i].error = tci_stored_name(reader, connection, "error");
        list[i].name = tci_stored_name(reader, connection, "name");
        list[i].note = tci_stored_name(reader, connection, "note");
        list[i].port = read_port(reader, connection);
        list[i].protocol = tci_stored_text(reader, connection, "protocol");
        list[i].rule = tci_stored_name(reader, connection, "rule");
        list[i].started_us = tci_stored_milliseconds(reader, connection, "started_ms");
    }
    ret->connections = list;
}

static void read_usage(struct tci_stored *reader, const json_t *object, struct tc_usage *ret)
{
    const json_t *usage = tci_stored_member(reader, object, "usage");
    if (json_object_size(usage) != 5)
        tci_stored_refuse(reader, "usage");
    ret->bytes_written = tci_stored_count(reader, usage, "bytes_written");
    ret->cpu_us = tci_stored_milliseconds(reader, usage, "cpu_ms");
    ret->duration_us = tci_stored_milliseconds(reader, usage, "duration_ms");
    ret->memory_peak_bytes = tci_stored_known_count(reader, usage, "memory_peak_bytes");
    ret->processes_peak = tci_stored_known_count(reader, usage, "processes_peak");
}

/* ---- the object --------------------------------------------------------------------------- */

static void read_streams(struct tci_stored *reader, const json_t *object, struct tc_result *ret)
{
    ret->stdout_data = read_stream(reader, object, "stdout", "stdout_encoding",
                                   &ret->stdout_length);
    ret->stdout_bytes = tci_stored_count(reader, object, "stdout_bytes");
    ret->stdout_truncated = tci_stored_flag(reader, object, "stdout_truncated");
    ret->stderr_data = read_stream(reader, object, "stderr", "stderr_encoding",
                                   &ret->stderr_length);
    ret->stderr_bytes = tci_stored_count(reader, object, "stderr_bytes");
    ret->stderr_truncated = tci_stored_flag(reader, object, "stderr_truncated");
}

static void read_members(struct tci_stored *reader, const json_t *object, struct tc_result *ret)
{
    const char *backend = tci_stored_name(reader, object, "backend");
    enum { member_count = 27 };

    if (json_object_size(object) != member_count)
        tci_stored_refuse(reader, "the whole");
    tci_stored_field(reader, object, "call_id", ret->call_id, sizeof ret->call_id);
    tci_stored_field(reader, object, "sandbox_id", ret->sandbox_id, sizeof ret->sandbox_id);
    tci_stored_field(reader, object, "trace_id", ret->trace_id, sizeof ret->trace_id);
    ret->tool = tci_stored_name(reader, object, "tool");
    ret->agent = tci_stored_name(reader, object, "agent");
    ret->session = tci_stored_name(reader, object, "session");
    ret->backend = backend ? backend : "";
    ret->layers = read_layers(reader, object);
    ret->verdict = read_verdict(reader, object);
    tci_stored_field(reader, object, "reason", ret->reason, sizeof ret->reason);
    tci_stored_field(reader, object, "fix", ret->fix, sizeof ret->fix);
    ret->exit_code = read_exit_code(reader, object);
    ret->signal = read_signal(reader, object);
    read_streams(reader, object, ret);
    ret->output_json = read_output(reader, object);
    read_files(reader, object, ret);
    read_denials(reader, object, ret);
    read_connections(reader, object, ret);
    ret->network_unlisted = tci_stored_count(reader, object, "network_unlisted");
    read_usage(reader, object, &ret->usage);
}

int tci_result_read(struct tci_result *result, const char *text, struct tc_error *reterr)
{
    tc_cleanup(decref) json_t *object = tci_json_read(text, strlen(text), reterr);
    struct tci_stored reader = { .arena = result->arena };
    struct tc_result read = { .state_hash = "" };

    if (!object)
        return -1;
    read_members(&reader, object, &read);
    if (reader.no_memory)
        return tci_error_no_memory(reterr);
    if (reader.wrong)
        return tci_error_set(reterr, TC_ERROR_SYNTAX,
                             "the record is not a result: \"%s\" is missing or not as it should be",
                             reader.wrong);
    read.mode = result->public.mode;
    memcpy(read.state_hash, result->public.state_hash, sizeof read.state_hash);
    result->public = read;
    return 0;
}
