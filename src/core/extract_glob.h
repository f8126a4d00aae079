/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the patterns of `outputs`, and matching them while a tree is walked.
 *
 *   *       any number of characters of one name
 *   **      any number of characters, slashes too; as a whole part of the path, "**" with a slash
 *           behind it also matches nothing: "a/" + "**" + "/b" is "a/b" as well
 *   ?       one character of a name
 *   [a-z]   one character out of these; [!a-z] and [^a-z]: one that is none of them
 *   \x      x itself
 *
 * A dot at the beginning of a name is matched only by a dot at the beginning of a name in the
 * pattern: what a tool hides, such as ".git" or ".netrc", is brought back only when it is named.
 * Everything else is itself.
 *
 * The attack: names chosen by an enemy so that matching them takes for ever. Therefore no
 * backtracking: a set of places in the pattern is carried along the name, and each character costs
 * at most one step for each place.
 */
#ifndef TCI_CORE_EXTRACT_GLOB_H
#define TCI_CORE_EXTRACT_GLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/path.h"

enum { TCI_GLOB_TOKENS_MAX = 1023, TCI_GLOB_WORDS = (TCI_GLOB_TOKENS_MAX + 1) / 64 };

struct tci_glob_token;

struct tci_glob {
    struct tci_glob_token *tokens;
    size_t count;
};

/* Places in the pattern that the text so far may have reached. */
struct tci_glob_set {
    uint64_t words[TCI_GLOB_WORDS];
};

/* The bytes at the beginning of a pattern that name a directory without any wildcard: up to and not
 * with the last slash before the first wildcard, or before the last name. "/" gives 0. */
size_t tci_glob_static_length(const char *pattern);

/* Compiles a pattern without a slash at its beginning. 0; -1: no memory; 1: too many tokens. */
int tci_glob_compile(struct tci_arena *arena, const char *pattern, struct tci_glob *ret);

/* Where matching begins. */
struct tci_glob_set tci_glob_start(const struct tci_glob *glob);
/* Behind one name of the path (no slash in it). */
struct tci_glob_set tci_glob_name(const struct tci_glob *glob, const struct tci_glob_set *set,
                                  const char *name);
/* Behind the slash that follows it. False: nothing below can match. */
bool tci_glob_slash(const struct tci_glob *glob, struct tci_glob_set *set);
/* Is the pattern complete here? */
bool tci_glob_accepts(const struct tci_glob *glob, const struct tci_glob_set *set);

/* At the beginning of a name: when only one name can go on from here, it is written to `ret`. */
bool tci_glob_only_name(const struct tci_glob *glob, const struct tci_glob_set *set,
                        char ret[TCI_COMPONENT_MAX + 1]);

/* A whole relative path at once. */
bool tci_glob_matches(const struct tci_glob *glob, const char *path);

#endif
