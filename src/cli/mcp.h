/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the files of `toolcage mcp` share. Standard output belongs to the protocol: what is said to
 * people goes to standard error. */
#ifndef TCI_CLI_MCP_H
#define TCI_CLI_MCP_H

#include "cli/cli.h"
#include "mcp/server.h"

/* cmd_mcp.c: which policy, journal and mode. */
struct mcp_setup {
    const char *policy_path;
    const char *journal_path; /* NULL: none */
    enum tc_mode mode;
    char *memory; /* of journal_path */
    struct tc_policy *policy;
};
void mcp_setup_free(struct mcp_setup *setup);
/* Loads the policy, so that everything that is wrong with it is shown before a client waits for an
 * answer, and finds the journal; `without_journal`: there may be none. An exit status; what is wrong has
 * been reported. */
int mcp_setup(const struct cli_call *cli, bool without_journal, struct mcp_setup *ret);
/* A line for a person; for options->say. */
void mcp_say(void *context, const char *line);
/* Is there such an agent, in the policy or by a grant of the journal? A mistyped name would be an agent
 * without any tool. */
int mcp_check_agent(const struct mcp_setup *setup, const char *agent,
                    struct tc_error *reterr) tci_must_check;

/* An address and a port as --http takes them. */
struct mcp_address {
    char host[256]; /* without brackets */
    unsigned port;
};
/* mcp_serve.c: -1: reported. */
int mcp_read_address(const char *text, struct mcp_address *ret);
/* The URL of a server there. */
void mcp_write_url(struct tci_buf *out, const struct mcp_address *address);
int mcp_run_serve(const struct cli_call *cli, const char *word);

/* mcp_tokens.c */
struct mcp_tokens {
    struct tci_mcp_token *items;
    size_t count;
};
enum { MCP_TOKEN_MIN = 32, MCP_TOKEN_MAX = 512, MCP_TOKENS_MAX = 1000, MCP_TOKEN_TEXT = 44 };
void mcp_tokens_free(struct mcp_tokens *tokens);
/* A file of lines "AGENT TOKEN". `setup` knows the agents. */
int mcp_tokens_read(const struct mcp_setup *setup, const char *path, struct mcp_tokens *ret,
                    struct tc_error *reterr) tci_must_check;
/* One token of 256 random bits for `agent` (NULL: the policy's owner); ret_text shows it. */
int mcp_tokens_make(const char *agent, struct mcp_tokens *ret, char ret_text[MCP_TOKEN_TEXT],
                    struct tc_error *reterr) tci_must_check;

/* mcp_config.c */
int mcp_run_config(const struct cli_call *cli, const char *word);

#endif
