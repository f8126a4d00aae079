/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the normal form of a policy: every tool with every effective value written out, no
 * [defaults], paths absolute, rules canonical. It loads to an equal policy, and its own normal form
 * is itself, byte for byte.
 */
#ifndef TCI_POLICY_DUMP_H
#define TCI_POLICY_DUMP_H

#include "base/buf.h"
#include "json/write.h"
#include "policy/model.h"

enum { TCI_DUMP_MAX = 128 * 1024 * 1024 };

/* A grant as an object, in the writer's syntax. */
void tci_grant_write_table(struct tci_json *writer, const struct tci_grant *grant);

void tci_policy_dump(const struct tc_policy *policy, struct tci_buf *out);

#endif
