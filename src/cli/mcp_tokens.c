/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: who may call over HTTP. A token is a password: only its hash is kept, and a file of them that
 * others can read, or could have written, is refused.
 */
#include "cli/mcp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/fd.h"
#include "base/file.h"
#include "base/quote.h"
#include "base/sha256.h"
#include "base/uuid.h"

enum { file_max = 1024 * 1024 };

void mcp_tokens_free(struct mcp_tokens *tokens)
{
    for (size_t i = 0; i < tokens->count; i++)
        free(tokens->items[i].agent);
    free(tokens->items);
    *tokens = (struct mcp_tokens){ 0 };
}

/* 1: the same token is there already. */
static int add(struct mcp_tokens *tokens, const char *agent, const char *token, size_t length,
               struct tc_error *reterr)
{
    struct tci_mcp_token entry = { .agent = NULL }, *items;
    struct tci_sha256 hash;

    tci_sha256_begin(&hash);
    tci_sha256_add(&hash, token, length);
    tci_sha256_end(&hash, entry.hash);
    for (size_t i = 0; i < tokens->count; i++)
        if (memcmp(tokens->items[i].hash, entry.hash, sizeof entry.hash) == 0)
            return 1;
    items = reallocarray(tokens->items, tokens->count + 1, sizeof *items);
    if (!items)
        return tci_error_no_memory(reterr);
    tokens->items = items;
    if (agent && !(entry.agent = strdup(agent)))
        return tci_error_no_memory(reterr);
    items[tokens->count++] = entry;
    return 0;
}

/* ---- the file ----------------------------------------------------------------------------- */

struct reader {
    const struct mcp_setup *setup;
    const char *path;
    struct mcp_tokens *tokens;
    unsigned line;
};

static int wrong(const struct reader *reader, const char *remedy, const char *message,
                 struct tc_error *reterr)
{
    tci_error_set(reterr, TC_ERROR_USAGE, "%s", message);
    tci_error_place(reterr, reader->path, reader->line, 1);
    tci_error_remedy(reterr, "%s", remedy);
    return -1;
}

/* What an Authorization header may carry behind "Bearer" (RFC 6750). */
static bool is_token_text(const char *text)
{
    return strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/=") ==
           strlen(text);
}

/* The token itself is never in a message: those end up in logs. */
static int read_line(struct reader *reader, char *line, struct tc_error *reterr)
{
    static const char form[] = "write AGENT TOKEN, or - TOKEN for the policy's owner";
    static const char make[] = "make one with: openssl rand -base64 32";
    char *save = NULL, *agent = strtok_r(line, " \t\r", &save);
    char *token = agent ? strtok_r(NULL, " \t\r", &save) : NULL;
    int r;

    if (!agent || *agent == '#')
        return 0;
    if (!token || strtok_r(NULL, " \t\r", &save))
        return wrong(reader, form, "a line of the token file has not two words", reterr);
    if (strlen(token) < MCP_TOKEN_MIN)
        return wrong(reader, make, "the token is shorter than 32 characters", reterr);
    if (strlen(token) > MCP_TOKEN_MAX)
        return wrong(reader, make, "the token is longer than 512 characters", reterr);
    if (!is_token_text(token))
        return wrong(reader, make, "the token has characters that no HTTP header can carry",
                     reterr);
    if (reader->tokens->count == MCP_TOKENS_MAX)
        return wrong(reader, "start another server for the rest",
                     "the token file has more than 1000 tokens", reterr);
    if (strcmp(agent, "-") == 0)
        agent = NULL;
    if (mcp_check_agent(reader->setup, agent, reterr) < 0) {
        tci_error_place(reterr, reader->path, reader->line, 1);
        return -1;
    }
    r = add(reader->tokens, agent, token, strlen(token), reterr);
    /* Two agents with one token: which of them calls would be a matter of their order. */
    return r > 0 ? wrong(reader, make, "the token stands in the file twice", reterr) : r;
}

static int read_lines(struct reader *reader, char *text, struct tc_error *reterr)
{
    while (text) {
        char *end = strchr(text, '\n');
        if (end)
            *end++ = '\0';
        reader->line++;
        if (read_line(reader, text, reterr) < 0)
            return -1;
        text = end;
    }
    if (reader->tokens->count)
        return 0;
    reader->line = 0;
    return wrong(reader, "write a line AGENT TOKEN, or - TOKEN for the policy's owner",
                 "the token file has no token", reterr);
}

/* Not root's file either: who may call is said by the user who serves. */
static int check_file(const char *path, int fd, struct tc_error *reterr)
{
    char quoted[TCI_QUOTE_MAX];
    struct stat st;
    const char *name = tci_quote(path, strlen(path), quoted);
    const int faults = tci_file_judge_secret(fd, false, &st);

    if (faults < 0)
        return tci_error_errno(reterr, errno, "cannot look at the token file %s", name);
    if (faults & TCI_SECRET_NO_FILE || st.st_size > file_max) {
        tci_error_set(reterr, TC_ERROR_USAGE, "the token file %s is not a file of at most 1 MiB",
                      name);
        tci_error_remedy(reterr, "name a file with lines AGENT TOKEN");
        return -1;
    }
    if (faults & TCI_SECRET_FOREIGN) {
        tci_error_set(reterr, TC_ERROR_USAGE,
                      "the token file %s belongs to another user, who knows its tokens", name);
        tci_error_remedy(reterr, "make a file of your own, with new tokens");
        return -1;
    }
    if (faults & TCI_SECRET_EXPOSED) {
        tci_error_set(reterr, TC_ERROR_USAGE, "others may read or write the token file %s", name);
        tci_error_remedy(reterr, "chmod 600 it, and change the tokens that others may have read");
        return -1;
    }
    return 0;
}

int mcp_tokens_read(const struct mcp_setup *setup, const char *path, struct mcp_tokens *ret,
                    struct tc_error *reterr)
{
    struct reader reader = { .setup = setup, .path = path, .tokens = ret };
    char quoted[TCI_QUOTE_MAX], *text;
    size_t length = 0;
    ssize_t n = 0;
    int r = -1;
    tc_cleanup(tci_closep) int fd = tci_file_open(path);

    if (fd < 0) {
        tci_error_errno(reterr, errno, "cannot open the token file %s",
                        tci_quote(path, strlen(path), quoted));
        tci_error_remedy(reterr, "check its name");
        return -1;
    }
    if (check_file(path, fd, reterr) < 0)
        return -1;
    text = malloc(file_max + 1);
    if (!text)
        return tci_error_no_memory(reterr);
    while (length < file_max && (n = tci_read_some(fd, text + length, file_max - length)) > 0)
        length += (size_t)n;
    text[length] = '\0';
    if (n < 0)
        tci_error_errno(reterr, errno, "cannot read the token file");
    else if (memchr(text, '\0', length))
        (void)wrong(&reader, "write it anew as text", "the token file contains a NUL", reterr);
    else
        r = read_lines(&reader, text, reterr);
    explicit_bzero(text, length);
    free(text);
    return r;
}

/* ---- a new one ---------------------------------------------------------------------------- */

int mcp_tokens_make(const char *agent, struct mcp_tokens *ret, char ret_text[MCP_TOKEN_TEXT],
                    struct tc_error *reterr)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned char bytes[MCP_TOKEN_TEXT - 1];

    /* Six bits of each byte: 43 digits hold 258 bits. */
    if (tci_random(bytes, sizeof bytes) < 0)
        return tci_error_errno(reterr, errno, "cannot make a token");
    for (size_t i = 0; i < sizeof bytes; i++)
        ret_text[i] = digits[bytes[i] & 63];
    ret_text[sizeof bytes] = '\0';
    explicit_bzero(bytes, sizeof bytes);
    return add(ret, agent, ret_text, MCP_TOKEN_TEXT - 1, reterr);
}
