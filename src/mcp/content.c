/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: a result of a call as the result of tools/call. What the tool printed is data: it is escaped by
 * the writer, or base64, and never becomes a member of ours. In order: the verdict if it is not ok, stdout,
 * stderr, files (content_files.c).
 */
#include <string.h>
#include "base/base64.h"
#include "base/utf8.h"
#include "json/write.h"
#include "mcp/job.h"

enum {
    inline_max = 4 * 1024 * 1024, /* bytes of files in one answer; the others are linked */
    short_text = 1024 * 1024,     /* of each stream, when all of it makes the answer too large */
    denials_max = 16,
};

/* ---- streams -------------------------------------------------------------------------------- */

/* The longest beginning that is UTF-8. */
static size_t utf8_length(const char *text, size_t length)
{
    size_t i = 0, size = 1;
    uint32_t code_point;
    while (i < length && size > 0) {
        if ((unsigned char)text[i] < 0x80) {
            i++;
            continue;
        }
        size = tci_utf8_decode(text + i, length - i, &code_point);
        i += size;
    }
    return i;
}

/* Output that was cut may end within a character: that part is not shown, and it is text all the same. */
static bool is_text(const char *bytes, size_t *length, bool is_cut)
{
    size_t good = utf8_length(bytes, *length);
    if (good == *length)
        return true;
    if (!is_cut || *length - good > 3)
        return false;
    *length = good;
    return true;
}

static void put_text(struct tci_json *json, const char *text, size_t length)
{
    tci_json_object_begin(json, NULL);
    tci_json_string(json, "type", "text");
    tci_json_bytes(json, "text", text, length);
    tci_json_object_end(json);
}

static void put_stdout(struct tci_json *json, const struct tc_result *result, size_t most)
{
    size_t length = result->stdout_length < most ? result->stdout_length : most;
    bool is_cut = length < result->stdout_length || result->stdout_truncated;

    if (length == 0)
        return;
    if (is_text(result->stdout_data, &length, is_cut)) {
        put_text(json, result->stdout_data, length);
        return;
    }
    tci_json_object_begin(json, NULL);
    tci_json_string(json, "type", "resource");
    tci_json_object_begin(json, "resource");
    tci_json_printf(json, "uri", "toolcage://call/%s/stdout", result->call_id);
    tci_json_string(json, "mimeType", "application/octet-stream");
    tci_json_raw(json, "blob", "\"");
    tci_base64_encode(json->out, result->stdout_data, length);
    tci_buf_char(json->out, '"');
    tci_json_object_end(json);
    tci_json_object_end(json);
}

static int put_stderr(struct tci_json *json, const struct tc_result *result, size_t most,
                      struct tc_error *reterr)
{
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(SIZE_MAX / 4);
    size_t length = result->stderr_length < most ? result->stderr_length : most;

    if (length == 0)
        return 0;
    (void)is_text(result->stderr_data, &length, true);
    tci_buf_string(&text, "stderr:\n");
    tci_buf_append(&text, result->stderr_data, length);
    if (tci_buf_check(&text, reterr) < 0)
        return -1;
    put_text(json, text.data, text.length);
    return 0;
}

static int put_verdict(struct tci_json *json, const struct tc_result *result,
                       struct tc_error *reterr)
{
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(4096);
    if (result->verdict == TC_VERDICT_OK)
        return 0;
    tci_buf_printf(&text, "%s: %s", tc_verdict_name(result->verdict), result->reason);
    if (*result->fix)
        tci_buf_printf(&text, "\nFix: %s", result->fix);
    if (tci_buf_check(&text, reterr) < 0)
        return -1;
    put_text(json, text.data, text.length);
    return 0;
}

/* ---- what programs read --------------------------------------------------------------------- */

static void put_denials(struct tci_json *json, const struct tc_result *result)
{
    if (result->denial_count == 0)
        return;
    tci_json_array_begin(json, "denials");
    for (size_t i = 0; i < result->denial_count && i < denials_max; i++) {
        tci_json_object_begin(json, NULL);
        tci_json_string(json, "kind", result->denials[i].kind);
        tci_json_string(json, "target", result->denials[i].target);
        tci_json_string(json, "rule", result->denials[i].rule);
        tci_json_object_end(json);
    }
    tci_json_array_end(json);
}

static void put_usage(struct tci_json *json, const struct tc_usage *usage)
{
    tci_json_object_begin(json, "usage");
    tci_json_double(json, "duration_ms", (double)usage->duration_us / 1000);
    tci_json_double(json, "cpu_ms", (double)usage->cpu_us / 1000);
    if (usage->memory_peak_bytes)
        tci_json_unsigned(json, "memory_peak_bytes", usage->memory_peak_bytes);
    if (usage->processes_peak)
        tci_json_unsigned(json, "processes_peak", usage->processes_peak);
    tci_json_unsigned(json, "bytes_written", usage->bytes_written);
    tci_json_object_end(json);
}

static void put_meta(struct tci_json *json, const struct tc_result *result, size_t most)
{
    tci_json_object_begin(json, "_meta");
    tci_json_object_begin(json, "toolcage");
    tci_json_string(json, "call_id", result->call_id);
    tci_json_string(json, "verdict", tc_verdict_name(result->verdict));
    if (*result->reason)
        tci_json_string(json, "reason", result->reason);
    if (*result->fix)
        tci_json_string(json, "fix", result->fix);
    if (result->exit_code >= 0)
        tci_json_integer(json, "exit_code", result->exit_code);
    if (result->signal)
        tci_json_integer(json, "signal", result->signal);
    tci_json_string(json, "mode", result->mode == TC_MODE_REPLAY ? "replay" : "live");
    tci_json_string(json, "backend", result->backend);
    tci_json_string(json, "layers", result->layers);
    tci_json_unsigned(json, "stdout_bytes", result->stdout_bytes);
    tci_json_bool(json, "stdout_truncated",
                  result->stdout_truncated || result->stdout_length > most);
    tci_json_unsigned(json, "stderr_bytes", result->stderr_bytes);
    tci_json_bool(json, "stderr_truncated",
                  result->stderr_truncated || result->stderr_length > most);
    put_denials(json, result);
    put_usage(json, &result->usage);
    if (*result->state_hash)
        tci_json_string(json, "state_hash", result->state_hash);
    tci_json_object_end(json);
    tci_json_object_end(json);
}

/* ---- the whole ------------------------------------------------------------------------------ */

/* The output under its schema: MCP has objects only. */
static const char *structured(const struct tci_mcp_content *content)
{
    const char *output = content->result->output_json;
    return content->version >= TCI_MCP_2025_06_18 && output && *output == '{' ? output : NULL;
}

static int put_content(struct tci_json *json, const struct tci_mcp_content *content, size_t most,
                       struct tc_error *reterr)
{
    const struct tc_result *result = content->result;
    size_t begun = json->out->length, room = inline_max;

    if (put_verdict(json, result, reterr) < 0)
        return -1;
    if (structured(content)) /* clients that know no structuredContent read the same in the text */
        put_text(json, structured(content), strlen(structured(content)));
    else
        put_stdout(json, result, most);
    if (put_stderr(json, result, most, reterr) < 0)
        return -1;
    for (size_t i = 0; i < result->file_count; i++)
        if (tci_mcp_content_file(content, i, json, &room, reterr) < 0)
            return -1;
    if (json->out->length == begun) /* clients expect one */
        put_text(json, "", 0);
    return 0;
}

static int write_all(const struct tci_mcp_content *content, struct tci_buf *out, size_t most,
                     struct tc_error *reterr)
{
    struct tci_json json = { .out = out };
    int r;

    if (content->id)
        tci_mcp_write_result_begin(&json, content->id);
    tci_json_object_begin(&json, content->id ? "result" : NULL);
    tci_json_array_begin(&json, "content");
    r = put_content(&json, content, most, reterr);
    tci_json_array_end(&json);
    if (structured(content))
        tci_json_value(&json, "structuredContent", structured(content));
    tci_json_bool(&json, "isError", content->result->verdict != TC_VERDICT_OK);
    put_meta(&json, content->result, most);
    tci_json_object_end(&json);
    if (content->id)
        tci_json_object_end(&json);
    return r;
}

/* A control character is six bytes of JSON. Output under a schema stands there twice, and has none. */
size_t tci_mcp_content_most(const struct tci_mcp_content *content)
{
    const struct tc_result *result = content->result;
    const size_t most = TCI_MCP_ANSWER_MAX;
    size_t streams = result->stdout_length < most ? result->stdout_length : most, files = 0;

    streams += result->stderr_length < most ? result->stderr_length : most;
    for (size_t i = 0; i < result->file_count && files < inline_max; i++)
        files += result->files[i].size < inline_max ? (size_t)result->files[i].size : inline_max;
    if (streams > most / 6)
        return most;
    streams = 65536 + 6 * streams + 2 * files;
    return streams < most ? streams : most;
}

/* A line break between two tokens of JSON is a blank, but it would end the message. Those in texts are
 * escaped. */
static void make_one_line(struct tci_buf *out)
{
    for (char *at = out->data, *end = at + out->length; at < end; at++)
        if (*at == '\n' || *at == '\r')
            *at = ' ';
}

int tci_mcp_content_write(const struct tci_mcp_content *content, struct tci_buf *out,
                          struct tc_error *reterr)
{
    size_t maximum = out->maximum;
    if (write_all(content, out, SIZE_MAX, reterr) < 0)
        return -1;
    if (out->too_large) { /* `output` of the policy allows more than a message holds */
        tci_buf_free(out);
        *out = (struct tci_buf)TCI_BUF_INIT(maximum);
        if (write_all(content, out, short_text, reterr) < 0)
            return -1;
    }
    if (tci_buf_check(out, reterr) < 0)
        return -1;
    make_one_line(out);
    return 0;
}
