/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what a probe's child sends to its parent. Both are the same program: no byte order. */
#ifndef TCI_BACKEND_PROBE_RECORD_H
#define TCI_BACKEND_PROBE_RECORD_H

#include <assert.h>
#include <limits.h>
#include "backend/host.h"

struct tci_probe_record {
    int id, state;
    char detail[TCI_FEATURE_DETAIL_MAX], remedy[TCI_FEATURE_REMEDY_MAX];
};
static_assert(sizeof(struct tci_probe_record) <= 4096, "written whole: pipe(7), PIPE_BUF");

#endif
