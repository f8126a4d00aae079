/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: reading YAML through libyaml into the same tree as TOML. Core-schema scalars become typed
 * values; anchors, aliases, merge keys, tags and several documents are refused: a policy must
 * mean what it shows, and aliases are how small files become huge.
 */
#ifndef TCI_POLICY_YAML_H
#define TCI_POLICY_YAML_H

#include "base/arena.h"
#include "base/error.h"
#include "policy/doc.h"

enum {
    /* How many keys and list items may lead from the root to a value, as in TOML. It also keeps
     * libyaml linear: without it, 250 KB of "[" take more than a minute. */
    TCI_YAML_DEPTH_MAX = 64,

    /* Bytes. The slowest text found (a long list inside 60 others, on one line) takes 0.5 s at this
     * size, the one that needs most memory ("[a,a,...") 50 MB; both grow linearly. */
    TCI_YAML_SIZE_MAX = 1024 * 1024,
};

/* As tci_toml_parse: same tree, same errors, same places. An empty document is an empty table. */
int tci_yaml_parse(struct tci_arena *arena, const char *bytes, size_t length,
                   struct tci_node **ret_root, struct tc_error *reterr) tci_must_check;

#endif
