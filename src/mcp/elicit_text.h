/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what a person reads before they approve a call, of the server's tools and of a wrapped server's. */
#ifndef TCI_MCP_ELICIT_TEXT_H
#define TCI_MCP_ELICIT_TEXT_H

#include "base/buf.h"

/* Everything that the person is asked to approve, as text. Returns its length: if that is more than
 * TCI_APPROVAL_SHOWN_MAX, not all of it is in the buffer, and it must not be asked. */
size_t tci_mcp_elicit_text(struct tci_buf *out, const struct tc_approval *approval);

#endif
