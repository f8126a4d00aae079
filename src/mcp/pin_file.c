/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the pin file (schemas/mcp-pin.json): what somebody looked at and approved. It holds the whole
 * definitions and not only hashes, so that a difference can be shown, and replay needs no server.
 */
#include "mcp/wrap_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/file.h"
#include "base/quote.h"
#include "json/canonical.h"
#include "policy/place.h"

static int not_a_pin(struct tc_error *reterr, const char *why)
{
    tci_error_set(reterr, TC_ERROR_SYNTAX, "the file is not a pin of an MCP server: %s", why);
    tci_error_remedy(reterr, "make it again with \"toolcage mcp pin\"");
    return -1;
}

/* ---- reading -------------------------------------------------------------------------------- */

static int read_tools(const json_t *tools, struct tci_wrap_list *ret, struct tc_error *reterr)
{
    char problem[256];
    if (!json_is_array(tools))
        return not_a_pin(reterr, "it has no list of tools");
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *entry = json_array_get(tools, i);
        int r = tci_wrap_list_add(ret, json_object_get(entry, "definition"), problem, reterr);
        if (r != 0)
            return r > 0 ? not_a_pin(reterr, problem) : -1;
    }
    if (tci_wrap_list_complete(ret, problem, reterr) != 0)
        return reterr && reterr->code ? -1 : not_a_pin(reterr, problem);
    /* Somebody who edits a definition by hand has not seen what the server says. */
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *entry = json_array_get(tools, i);
        const char *hash = json_string_value(json_object_get(entry, "hash"));
        const char *name = json_string_value(
            json_object_get(json_object_get(entry, "definition"), "name"));
        const struct tci_wrap_tool *tool = tci_wrap_list_find(ret, name);
        if (!hash || !tool || strncmp(hash, "sha256:", 7) != 0 || strcmp(hash + 7, tool->hash) != 0)
            return not_a_pin(reterr, "the hash of a tool is not that of its definition");
    }
    return 0;
}

static int read_pin(const json_t *pin, struct tci_wrap_list *ret, struct tc_error *reterr)
{
    const json_t *instructions = json_object_get(pin, "instructions");
    const char *version = json_string_value(json_object_get(pin, "protocol"));
    const char *hash = json_string_value(json_object_get(pin, "hash"));
    json_t *server = json_object_get(pin, "server");
    json_t *capabilities = json_object_get(pin, "capabilities");

    if (!json_is_number(json_object_get(pin, "version")) ||
        json_number_value(json_object_get(pin, "version")) != 1)
        return not_a_pin(reterr, "its version is not 1");
    if (!version || strlen(version) >= sizeof ret->version || !json_is_object(server) ||
        !json_is_object(capabilities) || (instructions && !json_is_string(instructions)))
        return not_a_pin(reterr, "it does not say which server it is for");
    (void)snprintf(ret->version, sizeof ret->version, "%s", version);
    ret->server_info = json_incref(server);
    ret->capabilities = json_incref(capabilities);
    ret->instructions = instructions ? strdup(json_string_value(instructions)) : NULL;
    if (instructions && !ret->instructions)
        return tci_error_no_memory(reterr);
    if (read_tools(json_object_get(pin, "tools"), ret, reterr) < 0)
        return -1;
    if (!hash || strncmp(hash, "sha256:", 7) != 0 || strcmp(hash + 7, ret->hash) != 0)
        return not_a_pin(reterr, "its hash is not that of what it says");
    return 0;
}

int tci_pin_check(const char *path, const struct tci_filesystem *cage, int *ret_fd,
                  struct tc_error *reterr)
{
    const struct tci_place place = { .what = "pin", .cage = cage, .ours = true };
    return tci_place_open(path, &place, ret_fd, reterr) == 0 ? 0 : -1;
}

/* The hashes in the file are no protection against somebody who can write it: who can, is looked at. */
static int read_bytes(const char *path, const struct tci_filesystem *cage, struct tci_arena *arena,
                      char **ret_bytes, size_t *ret_length, struct tc_error *reterr)
{
    tc_cleanup(tci_closep) int fd = -1;
    struct tc_error why = { 0 };
    char quoted[TCI_QUOTE_MAX];

    if (tci_pin_check(path, cage, &fd, reterr) < 0)
        return -1;
    if (fd >= 0 && tci_file_read_fd(arena, fd, TCI_WRAP_PIN_MAX, ret_bytes, ret_length, &why) == 0)
        return 0;
    tci_error_set(reterr, fd < 0 ? TC_ERROR_IO : why.code, "the pin %s cannot be read: %s",
                  tci_quote(path, strlen(path), quoted), fd < 0 ? "there is none" : why.message);
    tci_error_remedy(reterr, "make it with \"toolcage mcp pin\"");
    return -1;
}

int tci_pin_read(const char *path, const struct tci_filesystem *cage, struct tci_wrap_list *ret,
                 struct tc_error *reterr)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    struct tc_error why = { 0 };
    json_t *pin;
    char *bytes;
    size_t length;
    int r;

    *ret = (struct tci_wrap_list){ 0 };
    if (!arena)
        return tci_error_no_memory(reterr);
    if (read_bytes(path, cage, arena, &bytes, &length, reterr) < 0)
        return -1;
    pin = tci_json_read(bytes, length, &why);
    if (!pin && why.code == TC_ERROR_NO_MEMORY)
        return tci_error_no_memory(reterr);
    r = pin ? read_pin(pin, ret, reterr) : not_a_pin(reterr, "it is not JSON");
    json_decref(pin);
    if (r < 0) {
        tci_wrap_list_free(ret);
        tci_error_place(reterr, path, 0, 0);
    }
    return r;
}

/* ---- writing -------------------------------------------------------------------------------- */

static void put_value(struct tci_json *json, const char *key, const json_t *value)
{
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(TCI_WRAP_PIN_MAX);
    if (value)
        tci_mcp_write_value(&text, value);
    if (tci_buf_check(&text, NULL) < 0)
        json->out->no_memory = true;
    else
        tci_json_value(json, key, value ? text.data : "{}");
}

static void write_pin(struct tci_buf *out, const struct tci_wrap_list *list)
{
    struct tci_json json = { .out = out, .pretty = true };
    tci_json_object_begin(&json, NULL);
    tci_json_unsigned(&json, "version", 1);
    tci_json_printf(&json, "hash", "sha256:%s", list->hash);
    tci_json_string(&json, "protocol", list->version);
    put_value(&json, "server", list->server_info);
    put_value(&json, "capabilities", list->capabilities);
    if (list->instructions)
        tci_json_string(&json, "instructions", list->instructions);
    tci_json_array_begin(&json, "tools");
    for (size_t i = 0; i < list->count; i++) {
        tci_json_object_begin(&json, NULL);
        tci_json_printf(&json, "hash", "sha256:%s", list->tools[i].hash);
        put_value(&json, "definition", list->tools[i].definition);
        tci_json_object_end(&json);
    }
    tci_json_array_end(&json);
    tci_json_object_end(&json);
    tci_buf_char(out, '\n');
}

/* Written beside it and renamed: nobody ever reads half of it. */
static int replace(const char *path, const struct tci_buf *text, struct tc_error *reterr)
{
    char beside[4096], quoted[TCI_QUOTE_MAX];
    int fd;

    if (snprintf(beside, sizeof beside, "%s.XXXXXX", path) >= (int)sizeof beside)
        return tci_error_set(reterr, TC_ERROR_USAGE, "the pin's path is too long");
    fd = mkostemp(beside, O_CLOEXEC);
    if (fd < 0)
        return tci_error_errno(reterr, errno, "cannot write the pin beside %s",
                               tci_quote(path, strlen(path), quoted));
    if (tci_write_all(fd, text->data, text->length) < 0 || fchmod(fd, 0644) < 0 || fsync(fd) < 0 ||
        rename(beside, path) < 0) {
        tci_error_errno(reterr, errno, "cannot write the pin %s",
                        tci_quote(path, strlen(path), quoted));
        (void)unlink(beside);
        (void)tci_close(fd);
        return -1;
    }
    (void)tci_close(fd);
    return 0;
}

int tci_pin_write(const char *path, const struct tci_wrap_list *list, struct tc_error *reterr)
{
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(TCI_WRAP_PIN_MAX);
    write_pin(&text, list);
    if (tci_buf_check(&text, reterr) < 0)
        return -1;
    return replace(path, &text, reterr);
}
