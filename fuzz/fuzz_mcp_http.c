/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the fuzz target of the heads that the MCP server reads over HTTP (mcp/http_head.c, http_guard.c).
 * Input: a head, up to its empty line, and the beginning of a body. What must hold: a head is taken only if
 * the one Host in it is a name of ours and the token is there; a refusal has a status of a client's fault and
 * a sentence; the body's bytes are counted, never more than there are.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/sha256.h"
#include "mcp/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char token[] = "0123456789abcdef0123456789abcdef";

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* Does the head hold this text, in any case? */
static bool holds(const char *text, size_t length, const char *word)
{
    size_t size = strlen(word);
    for (size_t i = 0; i + size <= length; i++)
        if (strncasecmp(text + i, word, size) == 0)
            return true;
    return false;
}

static size_t head_length(const char *text, size_t length)
{
    for (size_t i = 0; i + 4 <= length; i++)
        if (memcmp(text + i, "\r\n\r\n", 4) == 0)
            return i + 4;
    return length;
}

static void read_body(const struct tci_mcp_head *head, const char *text, size_t length)
{
    struct tci_http_body body;
    const char *problem = NULL;
    size_t used = 0;
    tci_http_body_start(&body, &head->framing);
    if (length)
        (void)tci_http_body_feed(&body, (const uint8_t *)text, length, &used, &problem);
    check(used <= length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tci_mcp_token known = { .agent = NULL };
    struct tci_mcp_http_options options = { .address = "127.0.0.1",
                                            .tokens = &known,
                                            .token_count = 1 };
    struct tci_sha256 hash;
    struct tci_mcp_guard guard;
    struct tci_mcp_head head;
    struct tci_mcp_refusal refusal = { 0 };
    const char *text = (const char *)data;
    size_t length = head_length(text, size);

    tci_sha256_begin(&hash);
    tci_sha256_add(&hash, token, strlen(token));
    tci_sha256_end(&hash, known.hash);
    check(tci_mcp_guard_init(&guard, &options, 8080, NULL) == 0);
    if (tci_mcp_head_read(&guard, text, length, &head, &refusal)) {
        check(head.token == 0 && head.method != TCI_MCP_OTHER);
        check(holds(text, length, token) && holds(text, length, "host:"));
        check(holds(text, length, "localhost:8080") || holds(text, length, "127.0.0.1:8080") ||
              holds(text, length, "[::1]:8080"));
        check(strlen(head.session) < sizeof head.session);
        read_body(&head, text + length, size - length);
    } else {
        check(refusal.status >= 400 && refusal.status < 500 && refusal.message);
    }
    tci_mcp_guard_free(&guard);
    return 0;
}
