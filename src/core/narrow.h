/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what a tool has under a grant and for one request. Both can only take away. What cannot be
 * taken away exactly is refused: a cage that is a little too wide is the one that gets used.
 */
#ifndef TCI_CORE_NARROW_H
#define TCI_CORE_NARROW_H

#include "base/error.h"
#include "policy/model.h"

enum { TCI_LIMIT_COUNT = 8, TCI_LIMIT_TEXT_MAX = 40 };

/* The limits of one call, in the order of narrow.c's table. */
struct tci_limits {
    uint64_t values[TCI_LIMIT_COUNT];
};

/* The grants that a call is made under: its agent's, and those of whoever it works for. */
enum { TCI_GRANTS_MAX = 16 };
struct tci_grants {
    const struct tci_grant *items[TCI_GRANTS_MAX];
    size_t count;
    /* Who holds each, and its id in the journal (NULL: it is the policy's). They live as long as the
     * call. */
    const char *agents[TCI_GRANTS_MAX], *ids[TCI_GRANTS_MAX];
};

/* The tool's, the grants', the surrounding call's (`most`; NULL: there is none) and the request's
 * limits: the smallest of each. Returns the key of a limit that the request wants to be wider than the
 * others allow, or -1 when there is none. */
int tci_narrow_limits(const struct tci_tool *tool, const struct tci_grants *grants,
                      const struct tci_limits *most, const struct tc_limits *request,
                      struct tci_limits *ret);
/* One of them, from tool and grants alone. */
uint64_t tci_narrowed_limit(const struct tci_tool *tool, const struct tci_grants *grants,
                            enum tci_key key);
void tci_limits_set(struct tci_limits *limits, enum tci_key key, uint64_t value);

/* What the policy (with the grant) and what the request say about a limit. */
uint64_t tci_limits_get(const struct tci_limits *limits, enum tci_key key);
uint64_t tci_limits_requested(const struct tc_limits *request, enum tci_key key);
/* A limit in words (30s, 256MB, 64, 0.500), and as a policy writes it, with quotes where it has them. */
const char *tci_limit_text(enum tci_key key, uint64_t value, char buffer[TCI_LIMIT_TEXT_MAX]);
const char *tci_limit_toml(enum tci_key key, uint64_t value, char buffer[TCI_LIMIT_TEXT_MAX]);

/* The tool with its limits replaced, and its network and file system cut down to what the grant
 * (NULL: none) leaves of them. New lists are in the arena; the rest is shared with `tool`. */
int tci_narrow_tool(struct tci_arena *arena, const struct tci_tool *tool,
                    const struct tci_grant *grant, const struct tci_limits *limits,
                    struct tci_tool *ret, struct tc_error *reterr);

/* Does the grant change the tool's network, what is said about it, or the file system? */
bool tci_grant_narrows(const struct tci_grant *grant);

/*
 * narrow_nested.c: the tool (with its grants' narrowing done) cut down to what the call around it has.
 * 1: it has something that the other has not and that cannot be taken away exactly; *reterr says what.
 */
int tci_narrow_nested(struct tci_arena *arena, const struct tci_tool *tool,
                      const struct tci_settings *around, struct tci_tool *ret,
                      struct tc_error *reterr);
/* narrow_nested_paths.c: the file system of that; the same results. */
int tci_narrow_nested_paths(struct tci_arena *arena, const struct tci_settings *tool,
                            const struct tci_settings *around, struct tci_settings *ret,
                            struct tc_error *reterr);

/* narrow_paths.c, narrow_network.c */
int tci_narrow_filesystem(struct tci_arena *arena, const struct tci_tool *tool,
                          const struct tci_grant *grant, struct tci_filesystem *ret,
                          struct tc_error *reterr);
int tci_narrow_network(struct tci_arena *arena, const struct tci_network *tool,
                       const struct tci_network *grant, struct tci_network *ret,
                       struct tc_error *reterr);

struct tci_network_limits tci_narrow_network_limits(const struct tci_network_limits *tool,
                                                    const struct tci_network_limits *grant);

#endif
