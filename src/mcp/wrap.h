/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: somebody else's MCP server in a cage. The client talks to us over stdio; we talk to the server
 * over the pipes of its cage. Every message is read, checked and written anew; none is passed on as bytes.
 */
#ifndef TCI_MCP_WRAP_H
#define TCI_MCP_WRAP_H

#include "mcp/message.h"
#include "toolcage/toolcage.h"

struct tci_mcp_wrap_options {
    const char *policy_path;
    const char *tool;           /* of the policy: the cage of the server, and its `mcp` table */
    const char *const *command; /* the server; ends with NULL; NULL: the tool's own `command` */
    const char *agent;          /* NULL: the policy's owner */
    const char *journal_path;   /* NULL: nothing is recorded */
    const char *session;        /* NULL: a new one */
    const char *pin_path;       /* NULL: what the policy says; without one, nothing is pinned */
    bool explain_denials; /* trace the server, slowly: all that was refused is said at its end */
    enum tc_mode mode;    /* replay: no server is started; the pin says what its tools are */
    void (*say)(void *context, const char *line);
    void *context;
};

/* Until the client goes, or the server ends or is ended: then *reterr says why. */
int tci_mcp_wrap(const struct tci_mcp_wrap_options *options, int in, int out,
                 struct tc_error *reterr) tci_must_check;

/* Starts the server in its cage, asks for its tools, and writes what there is to approve to `pin_path`
 * (schemas/mcp-pin.json). *ret_text: for people: what was pinned, and what differs from the pin that was
 * there. free() it. */
int tci_mcp_pin(const struct tci_mcp_wrap_options *options, char **ret_text,
                struct tc_error *reterr) tci_must_check;

#endif
