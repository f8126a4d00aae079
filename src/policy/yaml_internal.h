/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the files of the YAML reader share. */
#ifndef TCI_POLICY_YAML_INTERNAL_H
#define TCI_POLICY_YAML_INTERNAL_H

#include <yaml.h>
#include "policy/yaml.h"

/* A table or an array that is still open. */
struct tci_yaml_frame {
    struct tci_node *node;
    struct tci_text key; /* of a table: the key that waits for its value */
    struct tci_pos key_pos;
    bool has_key;
    bool braces; /* written as {...} */
};

struct tci_yaml {
    struct tci_arena *arena;
    struct tc_error *reterr;
    const char *bytes; /* the text, without a byte order mark */
    size_t length;     /* in bytes... */
    size_t characters; /* ...and in code points, as libyaml counts */
    struct tci_pos end;
    size_t known_byte, known_character; /* a place of which both counts are known */
    yaml_parser_t parser;
    struct tci_node *root;
    /* The values of the frame at [i] are i + 1 steps from the root, so the last frame can only
     * be empty. */
    struct tci_yaml_frame frames[TCI_YAML_DEPTH_MAX + 1];
    size_t depth; /* frames in use */
};

/* ---- yaml_message.c: places and messages --------------------------------------------------- */

/* A piece of the text that is safe to show. */
struct tci_yaml_excerpt {
    char text[96];
};

struct tci_yaml_excerpt tci_yaml_excerpt(struct tci_text text);

/* Says where the error is; returns -1. */
int tci_yaml_at(struct tci_yaml *r, struct tci_pos pos);
struct tci_pos tci_yaml_mark_pos(const struct tci_yaml *r, yaml_mark_t mark);
struct tci_text tci_yaml_text_from(struct tci_yaml *r, yaml_mark_t mark);

/* Said by us and in place of libyaml alike. */
#define ALIAS_REMEDY  "write the value out; if the '*' is text, use quotes: \"*.example.com\""
#define ANCHOR_REMEDY "write the value out where it is needed; if the '&' is text, use quotes"
#define TAG_REMEDY    "remove it; if the '!' is text, put the value in quotes"

/* What libyaml complained about, in our words; returns -1. */
int tci_yaml_refuse_parser_error(struct tci_yaml *r);

/* ---- yaml_text.c: the text, before libyaml sees it ------------------------------------------ */

int tci_yaml_check_text(struct tci_yaml *r);
int tci_yaml_check_directives(struct tci_yaml *r);
int tci_yaml_refuse_second_document(struct tci_yaml *r, struct tci_pos pos);
int tci_yaml_check_rest(struct tci_yaml *r, yaml_mark_t mark);

/* ---- yaml_scalar.c -------------------------------------------------------------------------- */

/* Is a plain scalar null in the core schema (nothing, ~, null)? */
bool tci_yaml_is_null(struct tci_text text);

/* Gives a plain scalar its type: fills node->type and the value; a string points to `text`, which
 * must be NUL-terminated. -1 with a message and a remedy, but no place, for what readers of YAML
 * disagree about or what does not fit. Null is for the caller to refuse, before. */
int tci_yaml_type_plain(struct tci_text text, struct tci_node *node,
                        struct tc_error *reterr) tci_must_check;

#endif
