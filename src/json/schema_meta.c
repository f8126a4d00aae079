/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: schemas of schemas. They are only needed when a schema refers to them ("$ref" to the URI of
 * its draft); what a keyword may hold is checked by the compiler itself. Written anew from the
 * specifications: the same values are valid, without the titles.
 */
#include "json/schema_compile.h"

#include <string.h>

/* JSON as it is, made a text by the preprocessor. */
#define JSON(...) #__VA_ARGS__

#define NEW     "https://json-schema.org/draft/2020-12/"
#define VOCAB   "https://json-schema.org/draft/2020-12/vocab/"
#define HEAD    "{\"$schema\":\"" NEW "schema\",\"$id\":\"" NEW
#define NEXT    "\",\"$dynamicAnchor\":\"meta\",\"$vocabulary\":{\"" VOCAB
#define SUBJECT ":true},\"type\":[\"object\",\"boolean\"],"

/* clang-format off */
static const char schema[] = HEAD "schema" NEXT "core\":true,\"" VOCAB "applicator\":true,\"" VOCAB
    "unevaluated\":true,\"" VOCAB "validation\":true,\"" VOCAB "meta-data\":true,\"" VOCAB
    "format-annotation\":true,\"" VOCAB "content\"" SUBJECT JSON(
    "allOf": [
        { "$ref": "meta/core" }, { "$ref": "meta/applicator" }, { "$ref": "meta/unevaluated" },
        { "$ref": "meta/validation" }, { "$ref": "meta/meta-data" },
        { "$ref": "meta/format-annotation" }, { "$ref": "meta/content" }
    ],
    "properties": {
        "definitions": { "type": "object", "additionalProperties": { "$dynamicRef": "#meta" } },
        "dependencies": { "type": "object", "additionalProperties": { "anyOf": [
            { "$dynamicRef": "#meta" }, { "$ref": "meta/validation#/$defs/names" } ] } },
        "$recursiveAnchor": { "$ref": "meta/core#/$defs/anchor" },
        "$recursiveRef": { "$ref": "meta/core#/$defs/reference" }
    }
});

static const char core[] = HEAD "meta/core" NEXT "core\"" SUBJECT JSON(
    "properties": {
        "$id": { "$ref": "#/$defs/reference", "pattern": "^[^#]*#?$" },
        "$schema": { "$ref": "#/$defs/absolute" },
        "$ref": { "$ref": "#/$defs/reference" },
        "$anchor": { "$ref": "#/$defs/anchor" },
        "$dynamicRef": { "$ref": "#/$defs/reference" },
        "$dynamicAnchor": { "$ref": "#/$defs/anchor" },
        "$vocabulary": {
            "type": "object",
            "propertyNames": { "$ref": "#/$defs/absolute" },
            "additionalProperties": { "type": "boolean" }
        },
        "$comment": { "type": "string" },
        "$defs": { "type": "object", "additionalProperties": { "$dynamicRef": "#meta" } }
    },
    "$defs": {
        "anchor": { "type": "string", "pattern": "^[A-Za-z_][-A-Za-z0-9._]*$" },
        "absolute": { "type": "string", "format": "uri" },
        "reference": { "type": "string", "format": "uri-reference" }
    }
});

static const char applicator[] = HEAD "meta/applicator" NEXT "applicator\"" SUBJECT JSON(
    "properties": {
        "prefixItems": { "$ref": "#/$defs/list" },
        "items": { "$dynamicRef": "#meta" },
        "contains": { "$dynamicRef": "#meta" },
        "additionalProperties": { "$dynamicRef": "#meta" },
        "properties": { "$ref": "#/$defs/map" },
        "patternProperties": { "$ref": "#/$defs/map", "propertyNames": { "format": "regex" } },
        "dependentSchemas": { "$ref": "#/$defs/map" },
        "propertyNames": { "$dynamicRef": "#meta" },
        "if": { "$dynamicRef": "#meta" },
        "then": { "$dynamicRef": "#meta" },
        "else": { "$dynamicRef": "#meta" },
        "allOf": { "$ref": "#/$defs/list" },
        "anyOf": { "$ref": "#/$defs/list" },
        "oneOf": { "$ref": "#/$defs/list" },
        "not": { "$dynamicRef": "#meta" }
    },
    "$defs": {
        "list": { "type": "array", "minItems": 1, "items": { "$dynamicRef": "#meta" } },
        "map": { "type": "object", "additionalProperties": { "$dynamicRef": "#meta" } }
    }
});

static const char unevaluated[] = HEAD "meta/unevaluated" NEXT "unevaluated\"" SUBJECT JSON(
    "properties": {
        "unevaluatedItems": { "$dynamicRef": "#meta" },
        "unevaluatedProperties": { "$dynamicRef": "#meta" }
    }
});

static const char validation[] = HEAD "meta/validation" NEXT "validation\"" SUBJECT JSON(
    "properties": {
        "type": { "anyOf": [
            { "$ref": "#/$defs/type" },
            { "type": "array", "items": { "$ref": "#/$defs/type" },
              "minItems": 1, "uniqueItems": true }
        ] },
        "const": true,
        "enum": { "type": "array" },
        "multipleOf": { "type": "number", "exclusiveMinimum": 0 },
        "maximum": { "type": "number" },
        "exclusiveMaximum": { "type": "number" },
        "minimum": { "type": "number" },
        "exclusiveMinimum": { "type": "number" },
        "maxLength": { "$ref": "#/$defs/count" },
        "minLength": { "$ref": "#/$defs/count" },
        "pattern": { "type": "string", "format": "regex" },
        "maxItems": { "$ref": "#/$defs/count" },
        "minItems": { "$ref": "#/$defs/count" },
        "uniqueItems": { "type": "boolean" },
        "maxContains": { "$ref": "#/$defs/count" },
        "minContains": { "$ref": "#/$defs/count" },
        "maxProperties": { "$ref": "#/$defs/count" },
        "minProperties": { "$ref": "#/$defs/count" },
        "required": { "$ref": "#/$defs/names" },
        "dependentRequired": {
            "type": "object", "additionalProperties": { "$ref": "#/$defs/names" } }
    },
    "$defs": {
        "count": { "type": "integer", "minimum": 0 },
        "names": { "type": "array", "items": { "type": "string" }, "uniqueItems": true },
        "type": { "enum":
            [ "array", "boolean", "integer", "null", "number", "object", "string" ] }
    }
});

static const char meta_data[] = HEAD "meta/meta-data" NEXT "meta-data\"" SUBJECT JSON(
    "properties": {
        "title": { "type": "string" },
        "description": { "type": "string" },
        "default": true,
        "deprecated": { "type": "boolean" },
        "readOnly": { "type": "boolean" },
        "writeOnly": { "type": "boolean" },
        "examples": { "type": "array" }
    }
});

static const char format_annotation[] = HEAD "meta/format-annotation" NEXT "format-annotation\""
    SUBJECT JSON("properties": { "format": { "type": "string" } } });

static const char format_assertion[] = HEAD "meta/format-assertion" NEXT "format-assertion\""
    SUBJECT JSON("properties": { "format": { "type": "string" } } });

static const char content[] = HEAD "meta/content" NEXT "content\"" SUBJECT JSON(
    "properties": {
        "contentEncoding": { "type": "string" },
        "contentMediaType": { "type": "string" },
        "contentSchema": { "$dynamicRef": "#meta" }
    }
});

static const char draft_7[] = JSON({
    "$schema": "http://json-schema.org/draft-07/schema#",
    "$id": "http://json-schema.org/draft-07/schema#",
    "definitions": {
        "list": { "type": "array", "minItems": 1, "items": { "$ref": "#" } },
        "map": { "type": "object", "additionalProperties": { "$ref": "#" } },
        "count": { "type": "integer", "minimum": 0 },
        "names": { "type": "array", "items": { "type": "string" }, "uniqueItems": true },
        "type": { "enum":
            [ "array", "boolean", "integer", "null", "number", "object", "string" ] }
    },
    "type": [ "object", "boolean" ],
    "properties": {
        "$id": { "type": "string", "format": "uri-reference" },
        "$schema": { "type": "string", "format": "uri" },
        "$ref": { "type": "string", "format": "uri-reference" },
        "$comment": { "type": "string" },
        "title": { "type": "string" },
        "description": { "type": "string" },
        "default": true,
        "readOnly": { "type": "boolean" },
        "writeOnly": { "type": "boolean" },
        "examples": { "type": "array" },
        "multipleOf": { "type": "number", "exclusiveMinimum": 0 },
        "maximum": { "type": "number" },
        "exclusiveMaximum": { "type": "number" },
        "minimum": { "type": "number" },
        "exclusiveMinimum": { "type": "number" },
        "maxLength": { "$ref": "#/definitions/count" },
        "minLength": { "$ref": "#/definitions/count" },
        "pattern": { "type": "string", "format": "regex" },
        "additionalItems": { "$ref": "#" },
        "items": { "anyOf": [ { "$ref": "#" }, { "$ref": "#/definitions/list" } ] },
        "maxItems": { "$ref": "#/definitions/count" },
        "minItems": { "$ref": "#/definitions/count" },
        "uniqueItems": { "type": "boolean" },
        "contains": { "$ref": "#" },
        "maxProperties": { "$ref": "#/definitions/count" },
        "minProperties": { "$ref": "#/definitions/count" },
        "required": { "$ref": "#/definitions/names" },
        "additionalProperties": { "$ref": "#" },
        "definitions": { "$ref": "#/definitions/map" },
        "properties": { "$ref": "#/definitions/map" },
        "patternProperties": { "allOf": [ { "$ref": "#/definitions/map" } ],
                               "propertyNames": { "format": "regex" } },
        "dependencies": { "type": "object", "additionalProperties": { "anyOf": [
            { "$ref": "#" }, { "$ref": "#/definitions/names" } ] } },
        "propertyNames": { "$ref": "#" },
        "const": true,
        "enum": { "type": "array", "items": true },
        "type": { "anyOf": [
            { "$ref": "#/definitions/type" },
            { "type": "array", "items": { "$ref": "#/definitions/type" },
              "minItems": 1, "uniqueItems": true }
        ] },
        "format": { "type": "string" },
        "contentMediaType": { "type": "string" },
        "contentEncoding": { "type": "string" },
        "if": { "$ref": "#" },
        "then": { "$ref": "#" },
        "else": { "$ref": "#" },
        "allOf": { "$ref": "#/definitions/list" },
        "anyOf": { "$ref": "#/definitions/list" },
        "oneOf": { "$ref": "#/definitions/list" },
        "not": { "$ref": "#" }
    }
});
/* clang-format on */

struct metaschema {
    const char *uri, *text;
};

static const struct metaschema metaschemas[] = {
    { NEW "schema", schema },
    { NEW "meta/core", core },
    { NEW "meta/applicator", applicator },
    { NEW "meta/unevaluated", unevaluated },
    { NEW "meta/validation", validation },
    { NEW "meta/meta-data", meta_data },
    { NEW "meta/format-annotation", format_annotation },
    { NEW "meta/format-assertion", format_assertion },
    { NEW "meta/content", content },
    { "http://json-schema.org/draft-07/schema", draft_7 },
};

const char *tci_metaschema_text(const char *uri)
{
    for (size_t i = 0; i < tci_array_size(metaschemas); i++)
        if (strcmp(uri, metaschemas[i].uri) == 0)
            return metaschemas[i].text;
    return NULL;
}
