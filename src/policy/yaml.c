/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the way from bytes through libyaml's events to the document tree.
 * Trusts: libyaml to be memory-safe on text that check_text() has passed; not to be fast (see
 * below), not to be strict, and not to word its errors for people.
 *
 * Invariants:
 * - libyaml sees only UTF-8 without control characters and without the line breaks that YAML 1.1
 *   has and 1.2 has not. With U+2028 a line that every editor shows as a comment could be a key.
 * - Time is linear in the input. Two things in libyaml are quadratic: flow collections that nest
 *   (each token looks at every open bracket) and %TAG directives (each is compared with all before
 *   it, inside one call). The depth limit ends the first; check_directives() and check_rest() see
 *   to it that libyaml never meets a %TAG.
 * - Whatever a second reader of YAML could take for something else is refused, with a remedy.
 */
#include "policy/yaml_internal.h"

#include <stdio.h>
#include <string.h>

/* ---- the tree --------------------------------------------------------------------------- */

static struct tci_yaml_frame *top(struct tci_yaml *r)
{
    return r->depth ? &r->frames[r->depth - 1] : NULL;
}

static bool expects_key(struct tci_yaml *r)
{
    return r->depth && top(r)->node->type == TCI_NODE_TABLE && !top(r)->has_key;
}

/* Anchors and tags. The tag "!" of a scalar libyaml drops without a word, although in YAML 1.2 it
 * makes a string of `! 12`: that one is looked for in the text. */
static int check_properties(struct tci_yaml *r, const yaml_event_t *event,
                            const yaml_char_t *anchor, const yaml_char_t *tag)
{
    struct tci_text text = tci_yaml_text_from(r, event->start_mark);

    if (anchor) {
        tci_error_set(r->reterr, TC_ERROR_SYNTAX, "'&' starts an anchor, which is not allowed");
        tci_error_remedy(r->reterr, ANCHOR_REMEDY);
    } else if (tag || (text.length && text.data[0] == '!')) {
        tci_error_set(r->reterr, TC_ERROR_SYNTAX, "'!' starts a tag, which is not allowed");
        tci_error_remedy(r->reterr, TAG_REMEDY);
    } else {
        return 0;
    }
    return tci_yaml_at(r, tci_yaml_mark_pos(r, event->start_mark));
}

/* A new node for the value that starts here. */
static int new_node(struct tci_yaml *r, enum tci_node_type type, const yaml_event_t *event,
                    struct tci_node **ret)
{
    struct tci_pos pos = tci_yaml_mark_pos(r, event->start_mark);

    if (r->depth > TCI_YAML_DEPTH_MAX) {
        tci_error_set(r->reterr, TC_ERROR_TOO_LARGE, "more than %d levels of nesting",
                      TCI_YAML_DEPTH_MAX);
        tci_error_remedy(r->reterr, "nest less deeply");
        return tci_yaml_at(r, pos);
    }
    *ret = tci_node_new(r->arena, type, pos);
    return *ret ? 0 : tci_error_no_memory(r->reterr);
}

/* Puts a value where it belongs. */
static int add_node(struct tci_yaml *r, struct tci_node *node)
{
    struct tci_yaml_frame *f = top(r);

    if (!f && node->type != TCI_NODE_TABLE) {
        tci_error_set(r->reterr, TC_ERROR_SYNTAX,
                      "the file holds %s where keys and values are expected",
                      tci_node_type_name(node->type));
        tci_error_remedy(r->reterr, "write \"key: value\" lines");
        return tci_yaml_at(r, node->pos);
    }
    if (!f) {
        r->root = node;
        return 0;
    }
    if (f->node->type == TCI_NODE_ARRAY)
        return tci_array_add(r->arena, f->node, node) < 0 ? tci_error_no_memory(r->reterr) : 0;
    f->has_key = false;
    return tci_table_add(r->arena, f->node, f->key, f->key_pos, node)
               ? 0
               : tci_error_no_memory(r->reterr);
}

static int open_collection(struct tci_yaml *r, enum tci_node_type type, const yaml_event_t *event,
                           bool braces)
{
    struct tci_node *node;

    if (expects_key(r)) {
        tci_error_set(r->reterr, TC_ERROR_SYNTAX, "a key must be text, and this is %s",
                      tci_node_type_name(type));
        tci_error_remedy(r->reterr, "put text that has brackets or braces in quotes");
        return tci_yaml_at(r, tci_yaml_mark_pos(r, event->start_mark));
    }
    if (new_node(r, type, event, &node) < 0 || add_node(r, node) < 0)
        return -1;
    r->frames[r->depth++] = (struct tci_yaml_frame){ .node = node, .braces = braces };
    return 0;
}

static int refuse_key(struct tci_yaml *r, struct tci_text key, const struct tci_entry *first,
                      struct tci_pos pos)
{
    struct tc_error *e = r->reterr;

    if (first) {
        tci_error_set(e, TC_ERROR_SYNTAX,
                      "the key \"%s\" is given twice, first in line %u, column %u",
                      tci_yaml_excerpt(key).text, (unsigned)first->key_pos.line,
                      (unsigned)first->key_pos.column);
        tci_error_remedy(e, "remove one of the two, or join their values");
    } else if (tci_yaml_is_null(key)) {
        tci_error_set(e, TC_ERROR_SYNTAX, "a key is missing");
        tci_error_remedy(e, "write a key before the ':'%s",
                         key.length ? ", or put it in quotes" : "");
    } else {
        tci_error_set(e, TC_ERROR_SYNTAX, "the %s key %s is not allowed",
                      key.data[0] == '<' ? "merge" : "value", tci_yaml_excerpt(key).text);
        tci_error_remedy(e, "%s",
                         key.data[0] == '<' ? "write the keys and values out"
                                            : "put it in quotes if it is text");
    }
    return tci_yaml_at(r, pos);
}

static int read_key(struct tci_yaml *r, struct tci_text text, const yaml_event_t *event)
{
    struct tci_yaml_frame *f = top(r);
    bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    struct tci_pos pos = tci_yaml_mark_pos(r, event->start_mark);
    struct tci_entry *first = tci_table_find(f->node, text.data, text.length);

    if (first ||
        (plain && (tci_yaml_is_null(text) || tci_text_is(text, "<<") || tci_text_is(text, "="))))
        return refuse_key(r, text, first, pos);
    f->key = (struct tci_text){ tci_arena_strndup(r->arena, text.data, text.length), text.length };
    if (!f->key.data)
        return tci_error_no_memory(r->reterr);
    f->key_pos = pos;
    f->has_key = true;
    return 0;
}

static int refuse_null(struct tci_yaml *r, struct tci_text text, struct tci_pos pos)
{
    const struct tci_yaml_frame *f = top(r);
    struct tc_error *e = r->reterr;

    if (!f) {
        tci_error_set(e, TC_ERROR_SYNTAX, "the file has no value");
        tci_error_remedy(e, "write \"key: value\" lines");
    } else if (f->node->type == TCI_NODE_ARRAY) {
        tci_error_set(e, TC_ERROR_SYNTAX, "an item of the list has no value");
        tci_error_remedy(e, "remove the item or give it a value; \"\" is the empty text");
    } else {
        tci_error_set(e, TC_ERROR_SYNTAX, "the key \"%s\" has no value",
                      tci_yaml_excerpt(f->key).text);
        if (!f->braces)
            tci_error_remedy(e, "remove the key or give it a value; \"\" is the empty text");
        else if (memchr(f->key.data, ':', f->key.length))
            tci_error_remedy(e, "write a blank after the ':' between key and value");
        else /* {url}: somebody means the text */
            tci_error_remedy(e, "write {key: value}; if text in braces is meant, use quotes: "
                                "\"{name}\"");
        if (!text.length) /* then libyaml's place is that of whatever comes next */
            pos = f->key_pos;
    }
    return tci_yaml_at(r, pos);
}

/* The empty document: a table without keys. */
static int read_nothing(struct tci_yaml *r)
{
    r->root = tci_node_new(r->arena, TCI_NODE_TABLE, tci_pos(1, 1));
    return r->root ? 0 : tci_error_no_memory(r->reterr);
}

static int read_value(struct tci_yaml *r, struct tci_text text, const yaml_event_t *event)
{
    bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    struct tci_node *node;

    if (plain && !text.length && !r->depth)
        return read_nothing(r);
    if (plain && tci_yaml_is_null(text))
        return refuse_null(r, text, tci_yaml_mark_pos(r, event->start_mark));
    if (new_node(r, TCI_NODE_STRING, event, &node) < 0)
        return -1;
    node->string = text;
    if (plain && tci_yaml_type_plain(text, node, r->reterr) < 0)
        return r->reterr && r->reterr->code == TC_ERROR_NO_MEMORY ? -1 : tci_yaml_at(r, node->pos);
    if (node->type == TCI_NODE_STRING) {
        node->string.data = tci_arena_strndup(r->arena, text.data, text.length);
        if (!node->string.data)
            return tci_error_no_memory(r->reterr);
    }
    return add_node(r, node);
}

/* ---- events ----------------------------------------------------------------------------- */

static int on_document_start(struct tci_yaml *r, const yaml_event_t *event)
{
    const yaml_version_directive_t *version = event->data.document_start.version_directive;

    if (r->root)
        return tci_yaml_refuse_second_document(r, tci_yaml_mark_pos(r, event->start_mark));
    if (version && (version->major != 1 || version->minor != 2)) {
        tci_error_set(r->reterr, TC_ERROR_SYNTAX, "the file says it is YAML %d.%d, not 1.2",
                      version->major, version->minor);
        tci_error_remedy(r->reterr, "remove the %%YAML line");
        return tci_yaml_at(r, tci_yaml_mark_pos(r, event->start_mark));
    }
    return 0;
}

static int on_scalar(struct tci_yaml *r, const yaml_event_t *event)
{
    struct tci_text text = { (const char *)event->data.scalar.value, event->data.scalar.length };

    if (check_properties(r, event, event->data.scalar.anchor, event->data.scalar.tag) < 0)
        return -1;
    return expects_key(r) ? read_key(r, text, event) : read_value(r, text, event);
}

static int on_sequence_start(struct tci_yaml *r, const yaml_event_t *event)
{
    if (check_properties(r, event, event->data.sequence_start.anchor,
                         event->data.sequence_start.tag) < 0)
        return -1;
    return open_collection(r, TCI_NODE_ARRAY, event, false);
}

static int on_mapping_start(struct tci_yaml *r, const yaml_event_t *event)
{
    if (check_properties(r, event, event->data.mapping_start.anchor,
                         event->data.mapping_start.tag) < 0)
        return -1;
    return open_collection(r, TCI_NODE_TABLE, event,
                           event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE);
}

static int on_alias(struct tci_yaml *r, const yaml_event_t *event)
{
    tci_error_set(r->reterr, TC_ERROR_SYNTAX, "'*' starts an alias, which is not allowed");
    tci_error_remedy(r->reterr, ALIAS_REMEDY);
    return tci_yaml_at(r, tci_yaml_mark_pos(r, event->start_mark));
}

/* 0: go on, 1: that was the end. */
static int on_event(struct tci_yaml *r, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_STREAM_START_EVENT:
        return 0;
    case YAML_STREAM_END_EVENT:
        return r->root || read_nothing(r) == 0 ? 1 : -1;
    case YAML_DOCUMENT_START_EVENT:
        return on_document_start(r, event);
    case YAML_DOCUMENT_END_EVENT:
        return tci_yaml_check_rest(r, event->end_mark);
    case YAML_ALIAS_EVENT:
        return on_alias(r, event);
    case YAML_SCALAR_EVENT:
        return on_scalar(r, event);
    case YAML_SEQUENCE_START_EVENT:
        return on_sequence_start(r, event);
    case YAML_MAPPING_START_EVENT:
        return on_mapping_start(r, event);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        r->depth--;
        return 0;
    case YAML_NO_EVENT:
        break;
    }
    return tci_error_set(r->reterr, TC_ERROR_INTERNAL, "libyaml gave no event");
}

static int read_stream(struct tci_yaml *r)
{
    int result = 0;

    yaml_parser_set_encoding(&r->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r->parser, (const unsigned char *)r->bytes, r->length);
    while (result == 0) {
        tc_cleanup(yaml_event_delete) yaml_event_t event = { 0 };
        result = yaml_parser_parse(&r->parser, &event) ? on_event(r, &event)
                                                       : tci_yaml_refuse_parser_error(r);
    }
    return result < 0 ? -1 : 0;
}

int tci_yaml_parse(struct tci_arena *arena, const char *bytes, size_t length,
                   struct tci_node **ret_root, struct tc_error *reterr)
{
    struct tci_yaml r = {
        .arena = arena, .reterr = reterr, .bytes = length ? bytes : "", .length = length
    };
    int result;

    if (tci_yaml_check_text(&r) < 0 || tci_yaml_check_directives(&r) < 0)
        return -1;
    if (!yaml_parser_initialize(&r.parser))
        return tci_error_no_memory(reterr);
    result = read_stream(&r);
    yaml_parser_delete(&r.parser);
    if (result == 0)
        *ret_root = r.root;
    return result;
}
