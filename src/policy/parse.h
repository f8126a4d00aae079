/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: single tools and grants that come as texts while a program runs, in the words of a policy
 * file. They are checked like those of the file and live in the caller's arena.
 */
#ifndef TCI_POLICY_PARSE_H
#define TCI_POLICY_PARSE_H

#include "base/buf.h"
#include "base/error.h"
#include "policy/model.h"

/* The most bytes that a tool's or a grant's text may have. */
enum { TCI_TOOL_TEXT_MAX = 1024 * 1024, TCI_GRANT_TEXT_MAX = 64 * 1024 };

/*
 * `toml` holds the keys of a [tool.NAME] table; what it does not set comes from the policy's
 * [defaults], and relative paths start at the policy's directory. `file` names the text in errors
 * (NULL: it has no name). A name that the policy has already is an error.
 */
int tci_tool_parse(const struct tc_policy *policy, struct tci_arena *arena, const char *name,
                   const char *toml, size_t length, const char *file, struct tci_tool **ret,
                   struct tc_error *reterr) tci_must_check;

/* `text` is a grant's table: a TOML inline table, or a JSON object. The tool need not exist. */
int tci_grant_parse(const struct tc_policy *policy, struct tci_arena *arena, const char *text,
                    size_t length, struct tci_grant **ret, struct tc_error *reterr) tci_must_check;

/* The grant as canonical JSON (RFC 8785), which tci_grant_parse reads as the same grant. */
void tci_grant_write(const struct tci_grant *grant, struct tci_buf *out);

#endif
