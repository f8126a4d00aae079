/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: findings as documents for programs: our own JSON (schemas/lint.json) and SARIF 2.1.0. */
#ifndef TCI_POLICY_REPORT_H
#define TCI_POLICY_REPORT_H

#include "base/buf.h"
#include "policy/findings.h"

enum { TCI_REPORT_MAX = 64 * 1024 * 1024 };

void tci_report_json(const struct tci_findings *findings, struct tci_buf *out);
void tci_report_sarif(const struct tci_findings *findings, struct tci_buf *out);

#endif
