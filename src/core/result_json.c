/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the result as JSON (schemas/result.json) and its hash.
 *
 * The same table of members is written twice: for readers, in the order of the table and with
 * everything escaped that could deceive them; and in the canonical form of RFC 8785, whose bytes are
 * hashed. The two are the same JSON value, so that anyone can check the hash.
 * Trusts: nothing about the bytes that the cage printed. Inner objects are written in the order of
 * their keys, which is the canonical one.
 */
#include "core/result_values.h"

#include <stdlib.h>
#include <string.h>
#include "base/base64.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "json/canonical.h"

/* ---- members: each gets the address of its field ------------------------------------------ */

static void write_text_field(struct tci_result_writer *to, const char *key, const void *field)
{
    tci_put_text(to, key, field);
}

static void write_id(struct tci_result_writer *to, const char *key, const void *field)
{
    tci_put_name(to, key, field);
}

static void write_name(struct tci_result_writer *to, const char *key, const void *field)
{
    tci_put_name(to, key, *(const char *const *)field);
}

static void write_count(struct tci_result_writer *to, const char *key, const void *field)
{
    tci_put_count(to, key, *(const uint64_t *)field);
}

static void write_flag(struct tci_result_writer *to, const char *key, const void *field)
{
    tci_json_bool(&to->json, key, *(const int *)field != 0);
}

/* A JSON value in canonical form, which was read by us: for readers, what could deceive them becomes
 * an escape. */
static void write_value(struct tci_result_writer *to, const char *key, const void *field)
{
    const char *value = *(const char *const *)field;
    if (!value)
        tci_json_null(&to->json, key);
    else if (to->canonical)
        tci_json_raw(&to->json, key, value);
    else
        tci_json_value(&to->json, key, value);
}

static void write_mode(struct tci_result_writer *to, const char *key, const void *field)
{
    enum tc_mode mode = *(const enum tc_mode *)field;
    if (!to->canonical)
        tci_put_text(to, key, mode == TC_MODE_REPLAY ? "replay" : "live");
}

static void write_verdict(struct tci_result_writer *to, const char *key, const void *field)
{
    tci_put_text(to, key, tc_verdict_name(*(const enum tc_verdict *)field));
}

static void write_exit_code(struct tci_result_writer *to, const char *key, const void *field)
{
    int code = *(const int *)field;
    if (code >= 0)
        tci_put_count(to, key, (uint64_t)code);
    else
        tci_json_null(&to->json, key);
}

static void write_signal(struct tci_result_writer *to, const char *key, const void *field)
{
    char name[TCI_SIGNAL_NAME_MAX];
    int signal = *(const int *)field;
    tci_put_name(to, key, signal > 0 ? tci_signal_name(signal, name) : NULL);
}

static void write_layers(struct tci_result_writer *to, const char *key, const void *field)
{
    const char *words = *(const char *const *)field;

    tci_json_array_begin(&to->json, key);
    for (words += strspn(words, " "); *words; words += strspn(words, " ")) {
        size_t length = strcspn(words, " ");
        tci_put_bytes(to, NULL, words, length);
        words += length;
    }
    tci_json_array_end(&to->json);
}

/* Does the text end inside a character, with nothing wrong but the missing bytes? */
static bool is_half_character(const char *bytes, size_t length)
{
    unsigned char first = (unsigned char)bytes[0];
    size_t wanted = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;

    if (first < 0xc2 || first > 0xf4 || length >= wanted)
        return false;
    for (size_t i = 1; i < length; i++)
        if ((bytes[i] & 0xc0) != 0x80)
            return false;
    return true;
}

/* Text is UTF-8 without NUL, which many readers of JSON take for an end. What `output` cut off ends
 * between characters: half of one must not turn a megabyte of text into base64. */
static bool is_text(const char *bytes, size_t *length, bool truncated)
{
    uint32_t code_point;
    size_t i = 0;

    while (i < *length) {
        size_t size = tci_utf8_decode(bytes + i, *length - i, &code_point);
        if (size == 0 && truncated && is_half_character(bytes + i, *length - i))
            *length = i;
        else if (size == 0 || code_point == 0)
            return false;
        i += size;
    }
    return true;
}

struct stream {
    const char *bytes;
    size_t length;
    bool is_text;
};

static struct stream stream_of(const char *bytes, size_t length, bool truncated)
{
    struct stream stream = { bytes, length, false };
    stream.is_text = is_text(bytes, &stream.length, truncated);
    return stream;
}

static struct stream stdout_of(const struct tc_result *r)
{
    return stream_of(r->stdout_data, r->stdout_length, r->stdout_truncated);
}

static struct stream stderr_of(const struct tc_result *r)
{
    return stream_of(r->stderr_data, r->stderr_length, r->stderr_truncated);
}

static void put_stream(struct tci_result_writer *to, const char *key, struct stream stream)
{
    if (stream.is_text) {
        tci_put_bytes(to, key, stream.bytes, stream.length);
        return;
    }
    tci_json_raw(&to->json, key, "\"");
    tci_base64_encode(to->json.out, stream.bytes, stream.length);
    tci_buf_char(to->json.out, '"');
}

static void write_stdout(struct tci_result_writer *to, const char *key, const void *result)
{
    put_stream(to, key, stdout_of(result));
}

static void write_stderr(struct tci_result_writer *to, const char *key, const void *result)
{
    put_stream(to, key, stderr_of(result));
}

static void write_stdout_encoding(struct tci_result_writer *to, const char *key, const void *result)
{
    tci_put_text(to, key, stdout_of(result).is_text ? "utf-8" : "base64");
}

static void write_stderr_encoding(struct tci_result_writer *to, const char *key, const void *result)
{
    tci_put_text(to, key, stderr_of(result).is_text ? "utf-8" : "base64");
}

static void write_files(struct tci_result_writer *to, const char *key, const void *result)
{
    const struct tc_result *r = result;

    tci_json_array_begin(&to->json, key);
    for (size_t i = 0; i < r->file_count; i++) {
        const struct tc_file *file = &r->files[i];
        tci_json_object_begin(&to->json, NULL);
        tci_put_text(to, "media_type", file->media_type);
        tci_put_text(to, "path", file->path);
        tci_put_name(to, "saved", file->saved);
        tci_put_text(to, "sha256", file->sha256);
        tci_put_count(to, "size", file->size);
        tci_json_object_end(&to->json);
    }
    tci_json_array_end(&to->json);
}

static void write_denials(struct tci_result_writer *to, const char *key, const void *result)
{
    const struct tc_result *r = result;

    tci_json_array_begin(&to->json, key);
    for (size_t i = 0; i < r->denial_count; i++) {
        tci_json_object_begin(&to->json, NULL);
        tci_put_count(to, "count", r->denial_times[i]);
        tci_put_text(to, "kind", r->denials[i].kind);
        tci_put_text(to, "rule", r->denials[i].rule);
        tci_put_text(to, "target", r->denials[i].target);
        tci_json_object_end(&to->json);
    }
    tci_json_array_end(&to->json);
}

static void write_connections(struct tci_result_writer *to, const char *key, const void *result)
{
    const struct tc_result *r = result;

    tci_json_array_begin(&to->json, key);
    for (size_t i = 0; i < r->connection_count; i++) {
        const struct tc_connection *connection = &r->connections[i];
        tci_json_object_begin(&to->json, NULL);
        tci_put_name(to, "address", connection->address);
        tci_put_count(to, "bytes_in", connection->bytes_in);
        tci_put_count(to, "bytes_out", connection->bytes_out);
        tci_put_milliseconds(to, "duration_ms", connection->duration_us);
        tci_put_name(to, "error", connection->error);
        tci_put_name(to, "name", connection->name);
        tci_put_name(to, "note", connection->note);
        tci_put_known_count(to, "port", connection->port);
        tci_put_text(to, "protocol", connection->protocol);
        tci_put_name(to, "rule", connection->rule);
        tci_put_milliseconds(to, "started_ms", connection->started_us);
        tci_json_object_end(&to->json);
    }
    tci_json_array_end(&to->json);
}

static void write_usage(struct tci_result_writer *to, const char *key, const void *field)
{
    const struct tc_usage *usage = field;

    tci_json_object_begin(&to->json, key);
    tci_put_count(to, "bytes_written", usage->bytes_written);
    tci_put_milliseconds(to, "cpu_ms", usage->cpu_us);
    tci_put_milliseconds(to, "duration_ms", usage->duration_us);
    tci_put_known_count(to, "memory_peak_bytes", usage->memory_peak_bytes);
    tci_put_known_count(to, "processes_peak", usage->processes_peak);
    tci_json_object_end(&to->json);
}

/* ---- the object --------------------------------------------------------------------------- */

struct member {
    const char *key; /* first, for tci_json_compare_keys */
    size_t offset;
    void (*write)(struct tci_result_writer *to, const char *key, const void *field);
};

#define FIELD(name) #name, offsetof(struct tc_result, name)
#define WHOLE(name) #name, 0

/* In the order in which a reader gets them; `hash` and `state_hash` follow. `mode` is not in the
 * canonical form: a replayed call has the hash of the call that it repeats. */
static const struct member members[] = {
    { FIELD(call_id), write_id },
    { FIELD(sandbox_id), write_id },
    { FIELD(trace_id), write_id },
    { FIELD(tool), write_name },
    { FIELD(agent), write_name },
    { FIELD(session), write_name },
    { FIELD(mode), write_mode },
    { FIELD(backend), write_name },
    { FIELD(layers), write_layers },
    { FIELD(verdict), write_verdict },
    { FIELD(reason), write_text_field },
    { FIELD(fix), write_text_field },
    { FIELD(exit_code), write_exit_code },
    { FIELD(signal), write_signal },
    { WHOLE(stdout), write_stdout },
    { WHOLE(stdout_encoding), write_stdout_encoding },
    { FIELD(stdout_bytes), write_count },
    { FIELD(stdout_truncated), write_flag },
    { WHOLE(stderr), write_stderr },
    { WHOLE(stderr_encoding), write_stderr_encoding },
    { FIELD(stderr_bytes), write_count },
    { FIELD(stderr_truncated), write_flag },
    { "output", offsetof(struct tc_result, output_json), write_value },
    { WHOLE(files), write_files },
    { WHOLE(denials), write_denials },
    { WHOLE(connections), write_connections },
    { FIELD(network_unlisted), write_count },
    { FIELD(usage), write_usage },
};

static void write_members(struct tci_result_writer *to, const struct tc_result *result,
                          const struct member *list)
{
    for (size_t i = 0; i < tci_array_size(members); i++)
        list[i].write(to, list[i].key, (const char *)result + list[i].offset);
}

char *tci_result_canonical(const struct tc_result *result)
{
    struct tci_buf out = TCI_BUF_INIT(SIZE_MAX / 4);
    struct tci_result_writer to = { .json = { .out = &out }, .canonical = true };
    struct member sorted[tci_array_size(members)];
    char *text;

    memcpy(sorted, members, sizeof members);
    qsort(sorted, tci_array_size(sorted), sizeof sorted[0], tci_json_compare_keys);
    tci_json_object_begin(&to.json, NULL);
    write_members(&to, result, sorted);
    tci_json_object_end(&to.json);
    text = tci_buf_take(&out, NULL);
    tci_buf_free(&out);
    return text;
}

static int hash_result(const struct tc_result *result, char ret[TCI_SHA256_TEXT_MAX])
{
    char *text = tci_result_canonical(result);
    if (!text)
        return -1;
    tci_sha256_text(text, strlen(text), ret);
    free(text);
    return 0;
}

char *tci_result_write(const struct tc_result *result)
{
    struct tci_buf out = TCI_BUF_INIT(SIZE_MAX / 4);
    struct tci_result_writer to = { .json = { .out = &out } };
    char hash[TCI_SHA256_TEXT_MAX];
    char *text;

    if (hash_result(result, hash) < 0)
        return NULL;
    tci_json_object_begin(&to.json, NULL);
    write_members(&to, result, members);
    tci_put_text(&to, "hash", hash);
    tci_put_name(&to, "state_hash", result->state_hash);
    tci_json_object_end(&to.json);
    text = tci_buf_take(&out, NULL);
    tci_buf_free(&out);
    return text;
}
