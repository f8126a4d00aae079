/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the fuzz target of mcp/message.h. Input: a message. What must hold: it is of one kind and
 * has all that belongs to it, an invalid one says why, its id comes back as the same value, and
 * whatever is written is one line that is read as the same again.
 */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "mcp/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* As JSON text; free() it. */
static char *text_of(const json_t *value)
{
    struct tci_buf out = TCI_BUF_INIT(64 << 20);
    char *text;
    tci_mcp_write_value(&out, value);
    text = tci_buf_take(&out, NULL);
    check(text && !strpbrk(text, "\r\n"));
    return text;
}

static void check_id(const json_t *id)
{
    struct tci_buf out = TCI_BUF_INIT(1 << 20);
    struct tci_mcp_message again;
    tci_mcp_write_error(&out, id, TCI_MCP_INTERNAL, "x", "[\n1]");
    check(tci_buf_check(&out, NULL) == 0 && !strchr(out.data, '\n'));
    check(tci_mcp_read(out.data, out.length, &again, NULL) == 0);
    /* An id with a NUL is only given back. */
    if (json_is_string(id) && strlen(json_string_value(id)) != json_string_length(id))
        check(again.kind == TCI_MCP_INVALID);
    else
        check(again.kind == TCI_MCP_RESPONSE && (id ? json_equal(id, again.id) : !again.id));
    tci_mcp_message_free(&again);
    tci_buf_free(&out);
}

/* What was read and is written anew is the same message. */
static void check_again(const struct tci_mcp_message *message)
{
    char *text = text_of(message->document), *text_again;
    struct tci_mcp_message again;
    check(tci_mcp_read_server(text, strlen(text), &again, NULL) == 0);
    check(again.kind == message->kind && json_equal(again.document, message->document));
    text_again = text_of(again.document);
    check(strcmp(text, text_again) == 0);
    tci_mcp_message_free(&again);
    free(text_again);
    free(text);
}

static void check_message(const struct tci_mcp_message *message)
{
    check(message->kind == TCI_MCP_INVALID || message->document);
    switch (message->kind) {
    case TCI_MCP_INVALID:
        check(message->code < 0 && message->problem[0]);
        check_id(message->id);
        return;
    case TCI_MCP_REQUEST:
        check(message->id && message->method && !message->result && !message->failure);
        break;
    case TCI_MCP_NOTIFICATION:
        check(!message->id && message->method && !message->result && !message->failure);
        break;
    case TCI_MCP_RESPONSE:
        check(!message->method && !message->result != !message->failure);
        check(message->id || message->failure);
        break;
    case TCI_MCP_BATCH:
        check(json_array_size(message->document) >= 1 &&
              json_array_size(message->document) <= TCI_MCP_BATCH_MAX);
        break;
    }
    check(!message->params || json_is_object(message->params));
    check_id(message->id);
    check_again(message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tci_mcp_message message, strict;
    check(tci_mcp_read_server((const char *)data, size, &message, NULL) == 0);
    check_message(&message);
    /* A client's is the same message, or refused: integers that are not exact, too many values. */
    check(tci_mcp_read((const char *)data, size, &strict, NULL) == 0);
    check(strict.kind == message.kind || strict.kind == TCI_MCP_INVALID);
    check_id(strict.id);
    tci_mcp_message_free(&strict);
    for (size_t i = 0; message.kind == TCI_MCP_BATCH && i < json_array_size(message.document);
         i++) {
        struct tci_mcp_message member;
        check(tci_mcp_read_value(json_array_get(message.document, i), &member, NULL) == 0);
        check(member.kind != TCI_MCP_BATCH);
        check_message(&member);
        tci_mcp_message_free(&member);
    }
    tci_mcp_message_free(&message);
    return 0;
}
