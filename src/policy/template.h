/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the syntax of one element of `command`. `{name}` is a placeholder, `{name...}` a list that
 * stands alone, `{{` and `}}` are braces. Every other brace is an error, so that nothing that looks
 * like a placeholder is taken for text, or the other way round.
 */
#ifndef TCI_POLICY_TEMPLATE_H
#define TCI_POLICY_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>

struct tci_template_part {
    bool is_placeholder, is_list;
    const char *text; /* literal bytes (one "{" or "}" for a doubled one), or the name */
    size_t length;
};

/* Takes the next part from *cursor. 1: *ret is filled; 0: at the end; -1: malformed here. */
int tci_template_next(const char **cursor, struct tci_template_part *ret);

/* Would a program take the element behind this one for its value? An option that has none of its own:
 * "-C" and "--include" may, "-C{dir}", "--include={glob}" and "--" do not. */
bool tci_template_wants_value(const char *element);
/* Is it an option by itself, as "--include={glob}" is? Without it nothing moves to another's place. */
bool tci_template_is_option(const char *element);

#endif
