/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what is made from the table of keys besides code: the JSON Schema of policies and the
 * policy reference of the manual. Not installed; `make generate` runs it, and a test fails when its
 * output differs from what is in the tree.
 *
 * usage: toolcage-reference schema DEFINITIONS | markdown | man | findings
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>
#include "base/attr.h"
#include "policy/findings.h"
#include "policy/model.h"

/* ---- JSON Schema -------------------------------------------------------------------------- */

static json_t *property(enum tci_key key, unsigned where)
{
    const char *type = tci_key_type(key);
    if (key == TCI_KEY_NETWORK && where == TCI_IN_GRANT)
        type = "grant_network";
    json_t *reference = json_sprintf("#/$defs/%s", type);
    return json_pack("{s:o, s:s}", "$ref", reference, "description", tci_key_doc(key));
}

static json_t *properties(unsigned where)
{
    json_t *object = json_object();
    for (int key = 0; key < TCI_KEY_COUNT; key++) {
        if (!(tci_key_where((enum tci_key)key) & where))
            continue;
        json_object_set_new(object, tci_key_name((enum tci_key)key),
                            property((enum tci_key)key, where));
        if (key == TCI_KEY_BACKEND)
            json_object_set_new(object, "isolation", property(TCI_KEY_BACKEND, where));
    }
    return object;
}

static json_t *backend_names(void)
{
    json_t *names = json_array();
    for (size_t i = 0; tci_backend_kind_spelling(i); i++)
        json_array_append_new(names, json_string(tci_backend_kind_spelling(i)));
    return names;
}

static json_t *builtin_names(void)
{
    json_t *names = json_array();
    for (const char *const *name = tci_builtin_names(); *name; name++)
        json_array_append_new(names, json_string(*name));
    return names;
}

/* The types of values are written by hand in `definitions`; the tables of keys are added here. */
static int write_schema(const char *definitions)
{
    json_error_t error;
    json_t *root = json_load_file(definitions, 0, &error), *defs, *grant;
    if (!root) {
        (void)fprintf(stderr, "%s:%d: %s\n", definitions, error.line, error.text);
        return 1;
    }
    defs = json_object_get(root, "$defs");
    json_object_set_new(defs, "backend",
                        json_pack("{s:s, s:o}", "type", "string", "enum", backend_names()));
    json_object_set_new(defs, "builtin",
                        json_pack("{s:s, s:o}", "type", "string", "enum", builtin_names()));
    json_object_set_new(defs, "defaults",
                        json_pack("{s:s, s:b, s:o}", "type", "object", "additionalProperties", 0,
                                  "properties", properties(TCI_IN_DEFAULTS)));
    json_object_set_new(defs, "tool",
                        json_pack("{s:s, s:b, s:o}", "type", "object", "additionalProperties", 0,
                                  "properties", properties(TCI_IN_TOOL)));
    grant = json_object_get(json_object_get(defs, "grant_table"), "properties");
    json_object_update_new(grant, properties(TCI_IN_GRANT));
    if (json_dumpf(root, stdout, JSON_INDENT(2)) < 0)
        return 1;
    (void)puts("");
    json_decref(root);
    return 0;
}

/* ---- reference ---------------------------------------------------------------------------- */

static void write_where(unsigned where)
{
    (void)printf("%s%s%s", where & TCI_IN_DEFAULTS ? "defaults, " : "", "tool",
                 where & TCI_IN_GRANT ? ", grant" : "");
}

static int write_markdown(void)
{
    (void)puts("| key | in | default | meaning |\n|---|---|---|---|");
    for (int k = 0; k < TCI_KEY_COUNT; k++) {
        enum tci_key key = (enum tci_key)k;
        (void)printf("| `%s` | ", tci_key_name(key));
        write_where(tci_key_where(key));
        (void)printf(" | %s | %s |\n", tci_key_standard(key), tci_key_doc(key));
    }
    return 0;
}

/* Text of the table in roff: `code` in bold, backslashes and leading dots made harmless. */
static void write_roff(const char *text)
{
    bool bold = false;
    for (; *text; text++) {
        if (*text == '`') {
            bold = !bold;
            (void)fputs(bold ? "\\fB" : "\\fR", stdout);
        } else if (*text == '\\') {
            (void)fputs("\\e", stdout);
        } else if (*text == '-') {
            (void)fputs("\\-", stdout);
        } else if (*text == '~') {
            (void)fputs("\\(ti", stdout);
        } else if (*text == '^') {
            (void)fputs("\\(ha", stdout);
        } else {
            (void)putchar(*text);
        }
    }
}

static int write_man(void)
{
    for (int k = 0; k < TCI_KEY_COUNT; k++) {
        enum tci_key key = (enum tci_key)k;
        (void)printf(".TP\n.B %s\n", tci_key_name(key));
        write_roff(tci_key_doc(key));
        (void)fputs("\nIn: ", stdout);
        write_where(tci_key_where(key));
        (void)fputs(". Default: ", stdout);
        write_roff(tci_key_standard(key));
        (void)puts(".");
    }
    return 0;
}

/* ID<TAB>severity<TAB>title: for the tests of docs/lint.md. */
static int write_findings(void)
{
    for (int i = 0; i < TCI_FINDING_COUNT; i++) {
        enum tci_finding_id id = (enum tci_finding_id)i;
        (void)printf("%s\t%s\t%s\n", tci_finding_name(id),
                     tci_severity_name(tci_finding_severity(id)), tci_finding_title(id));
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "schema") == 0)
        return write_schema(argv[2]);
    if (argc == 2 && strcmp(argv[1], "markdown") == 0)
        return write_markdown();
    if (argc == 2 && strcmp(argv[1], "man") == 0)
        return write_man();
    if (argc == 2 && strcmp(argv[1], "findings") == 0)
        return write_findings();
    (void)fprintf(stderr, "usage: %s schema DEFINITIONS | markdown | man | findings\n", argv[0]);
    return 2;
}
