/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: from a file to a policy. */
#ifndef TCI_POLICY_LOAD_H
#define TCI_POLICY_LOAD_H

#include "policy/findings.h"
#include "policy/model.h"

enum { TCI_POLICY_BYTES_MAX = 4 * 1024 * 1024 };

enum tci_format { TCI_FORMAT_TOML, TCI_FORMAT_YAML };

/* Reads a policy file (by its ending: .yaml and .yml are YAML, everything else TOML; "-" is TOML
 * on standard input). On failure the first problem is in *reterr and all of them in *findings. */
int tci_policy_load(const char *path, struct tci_findings *findings, struct tc_policy **ret,
                    struct tc_error *reterr) tci_must_check;

/* The same from memory. `directory` (normal form, or NULL) is what relative paths start from. */
int tci_policy_parse(const char *bytes, size_t length, enum tci_format format,
                     const char *directory, struct tci_findings *findings, struct tc_policy **ret,
                     struct tc_error *reterr) tci_must_check;

void tci_policy_freep(struct tc_policy **policy);

#endif
