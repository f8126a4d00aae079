/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: a request in its canonical form (RFC 8785): what a journal keeps of it, and what replay finds it
 * by. Two requests have the same text when they ask for the same: session, time and ids are not in it.
 * Bytes that are not UTF-8 are kept as base64, so that no two requests fall together.
 * Trusts: call->arguments_text, which is canonical. Keys are written in their order.
 */
#include "core/record.h"

#include <jansson.h>
#include <string.h>
#include "base/base64.h"
#include "base/utf8.h"
#include "json/canonical.h"
#include "json/write.h"

/* Arguments that are not JSON are the caller's mistake: of large ones, the hash is enough. */
enum { raw_text_max = 64 * 1024 };

bool tci_is_utf8(const char *text, size_t length)
{
    uint32_t code_point;
    for (size_t i = 0; i < length;) {
        size_t size = tci_utf8_decode(text + i, length - i, &code_point);
        if (size == 0)
            return false;
        i += size;
    }
    return true;
}

static void put_string(struct tci_json *json, const char *key, const char *text)
{
    size_t length = strlen(text);
    tci_json_raw(json, key, "");
    if (tci_is_utf8(text, length)) {
        tci_json_canonical_string(json->out, text, length);
        return;
    }
    tci_buf_string(json->out, "{\"base64\":\"");
    tci_base64_encode(json->out, text, length);
    tci_buf_string(json->out, "\"}");
}

/* The text itself must not be stored: {"word":"sha256:..."}. */
static void put_hash(struct tci_json *json, const char *key, const char *word, const char *hash)
{
    tci_json_raw(json, key, "");
    tci_buf_printf(json->out, "{\"%s\":\"sha256:%s\"}", word, hash);
}

/* What is not JSON has no pointers into it: with `redact`, nothing of it can be shown. */
static void put_raw_arguments(struct tci_json *json, const char *text, bool redact,
                              const unsigned char *salt)
{
    char hash[TCI_SHA256_TEXT_MAX];
    size_t length = strlen(text);
    if (redact) {
        tci_redact_hash(salt, text, length, hash);
        put_hash(json, "arguments_text", "redacted", hash);
    } else if (length > raw_text_max) {
        tci_sha256_text(text, length, hash);
        put_hash(json, "arguments_text", "large", hash);
    } else {
        put_string(json, "arguments_text", text);
    }
}

static int put_redacted(struct tci_json *json, const struct tc_call *call, const char *sent,
                        const struct tci_strings *redact, const unsigned char *salt,
                        struct tci_secrets *ret_secrets, struct tc_error *reterr)
{
    /* Pointers lead into objects. A text that holds the object once more, as models write it, would
     * be stored with all that is in it. */
    struct tci_string everything = { .text = "" };
    struct tci_strings whole = { &everything, 1 };

    tci_json_raw(json, "arguments", "");
    return tci_redact_arguments(call->result->arena, call->arguments, sent,
                                json_is_object(call->arguments) ? redact : &whole, salt, json->out,
                                ret_secrets, reterr);
}

static int put_arguments(struct tci_json *json, const struct tc_call *call,
                         const struct tc_request *request, const struct tci_strings *redact,
                         const unsigned char *salt, struct tci_secrets *ret_secrets,
                         struct tc_error *reterr)
{
    if (!call->arguments) {
        ret_secrets->unread = redact->count > 0;
        put_raw_arguments(json, request->arguments_json ? request->arguments_json : "",
                          redact->count > 0, salt);
        return 0;
    }
    if (redact->count)
        return put_redacted(json, call, request->arguments_json, redact, salt, ret_secrets, reterr);
    tci_json_raw(json, "arguments", call->arguments_text);
    return 0;
}

static void put_argv(struct tci_json *json, const char *const *argv)
{
    tci_json_array_begin(json, "argv");
    for (size_t i = 0; argv[i]; i++)
        put_string(json, NULL, argv[i]);
    tci_json_array_end(json);
}

/* A stream is read once, by the cage: it is not known before the call, and not kept. */
static void put_input(struct tci_json *json, const struct tc_request *request)
{
    char hash[TCI_SHA256_TEXT_MAX];
    if (request->flags & TC_REQUEST_TERMINAL)
        tci_json_raw(json, "input", "\"terminal\"");
    else if (request->input_fd > 0)
        tci_json_raw(json, "input", "\"stream\"");
    else if (request->input) {
        tci_sha256_text(request->input, request->input_length, hash);
        put_string(json, "input_sha256", hash);
    }
}

static void put_limits(struct tci_json *json, const struct tc_limits *limits)
{
    const struct {
        const char *key;
        uint64_t value;
    } all[] = {
        { "cpu_millis", limits->cpu_millis },
        { "cpu_time_ms", limits->cpu_time_ms },
        { "disk", limits->disk },
        { "files", limits->files },
        { "memory", limits->memory },
        { "output", limits->output },
        { "pids", limits->pids },
        { "timeout_ms", limits->timeout_ms },
    };
    bool begun = false;
    for (size_t i = 0; i < tci_array_size(all); i++) {
        if (!all[i].value)
            continue;
        if (!begun)
            tci_json_object_begin(json, "limits");
        begun = true;
        tci_json_double(json, all[i].key, (double)all[i].value);
    }
    if (begun)
        tci_json_object_end(json);
}

int tci_request_text(const struct tc_call *call, const struct tc_request *request,
                     const struct tci_settings *settings, const unsigned char *salt,
                     struct tci_recorded *ret, struct tc_error *reterr)
{
    tc_cleanup(tci_buf_free) struct tci_buf out = TCI_BUF_INIT(SIZE_MAX / 4);
    struct tci_json json = { .out = &out };

    tci_json_object_begin(&json, NULL);
    if (request->agent)
        put_string(&json, "agent", request->agent);
    if (request->argv)
        put_argv(&json, request->argv);
    else if (put_arguments(&json, call, request, &settings->redact, salt, &ret->secrets, reterr) <
             0)
        return -1;
    if (ret->secrets.too_large && ret->record == TCI_RECORD_TRUE)
        ret->record = TCI_RECORD_HASH_ONLY;
    put_input(&json, request);
    put_limits(&json, &request->limits);
    if (request->parent)
        tci_json_bool(&json, "parent", true);
    if (request->tool)
        put_string(&json, "tool", request->tool);
    tci_json_object_end(&json);
    if (tci_buf_check(&out, reterr) < 0)
        return -1;
    ret->text = tci_arena_strndup(call->result->arena, out.data, out.length);
    if (!ret->text)
        return tci_error_no_memory(reterr);
    tci_sha256_text(out.data, out.length, ret->hash);
    return 0;
}
