/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the effective policy of a tool, with where each value comes from. */
#ifndef TCI_POLICY_EXPLAIN_H
#define TCI_POLICY_EXPLAIN_H

#include "base/buf.h"
#include "policy/model.h"

enum { TCI_EXPLAIN_MAX = 64 * 1024 * 1024 };

/* Who would make the containers of a tool on this host, and from what. */
struct tci_explain_maker {
    char engine[16], runtime[16];   /* "none" or an engine; "default": the engine's own runtime */
    char version[64], platform[16]; /* "": not known; only runsc has platforms */
    char why[192];                  /* why that one */
    char root[1024];                /* directory of a bare runtime's root; "": the engine's image */
    char problem[512], remedy[512]; /* "": none; else nobody would, and the rest is empty */
};

/* Answers for tools that run in containers. What the host has comes in through a function, since hosts
 * are below policies in the layers. */
typedef void tci_explain_host(const struct tci_settings *settings, struct tci_explain_maker *ret);

/* For people: a line a key. `tool` NULL: every tool. `host` NULL: do not look at the host. */
void tci_explain_text(const struct tc_policy *policy, const struct tci_tool *tool,
                      tci_explain_host *host, struct tci_buf *out);
/* For programs: schemas/explain.json. */
void tci_explain_json(const struct tc_policy *policy, const struct tci_tool *tool,
                      tci_explain_host *host, struct tci_buf *out);

/* The registry, for people. */
void tci_tools_text(const struct tc_policy *policy, struct tci_buf *out);

/* A decision for programs, part of schemas/explain.json. */
void tci_decision_json(const struct tc_policy *policy, const char *question, const char *target,
                       const struct tc_decision *decision, struct tci_buf *out);

#endif
