/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the params of a client's requests that are relayed, beside calls. They are made anew of the members that the
 * protocol has for the method. The attack: an agent that may call nothing, or only what a person has approved, talks
 * to a server in members that nobody looks at, of a request that looks harmless.
 */
#include "mcp/wrap_internal.h"

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum type {
    is_text,
    is_texts, /* an object of them */
    is_level,
    is_object,
};

struct member {
    const char *name; /* NULL: the table ends */
    enum type type;
    bool is_needed;
    const struct member *members; /* of an object */
};

static const struct member of_reference[] = { { "type", is_text, true, NULL },
                                              { "name", is_text, false, NULL },
                                              { "title", is_text, false, NULL },
                                              { "uri", is_text, false, NULL },
                                              { 0 } };
static const struct member of_argument[] = { { "name", is_text, true, NULL },
                                             { "value", is_text, true, NULL },
                                             { 0 } };
static const struct member of_context[] = { { "arguments", is_texts, false, NULL }, { 0 } };

static const struct member of_list[] = { { "cursor", is_text, false, NULL }, { 0 } };
static const struct member of_resource[] = { { "uri", is_text, true, NULL }, { 0 } };
static const struct member of_prompt[] = { { "name", is_text, true, NULL },
                                           { "arguments", is_texts, false, NULL },
                                           { 0 } };
static const struct member of_completion[] = { { "ref", is_object, true, of_reference },
                                               { "argument", is_object, true, of_argument },
                                               { "context", is_object, false, of_context },
                                               { 0 } };
static const struct member of_logging[] = { { "level", is_level, true, NULL }, { 0 } };

static const struct method {
    const char *name;
    const struct member *members;
    bool has_result; /* that says something */
} methods[] = {
    { "resources/list", of_list, true },
    { "resources/templates/list", of_list, true },
    { "resources/read", of_resource, true },
    { "resources/subscribe", of_resource, false },
    { "resources/unsubscribe", of_resource, false },
    { "prompts/list", of_list, true },
    { "prompts/get", of_prompt, true },
    { "completion/complete", of_completion, true },
    { "logging/setLevel", of_logging, false },
};

static const struct method *find(const char *name)
{
    for (size_t i = 0; i < tci_array_size(methods); i++)
        if (strcmp(methods[i].name, name) == 0)
            return &methods[i];
    return NULL;
}

const char *tci_wrap_method(const char *name)
{
    const struct method *method = find(name);
    return method ? method->name : NULL;
}

bool tci_wrap_has_result(const char *name)
{
    const struct method *method = find(name);
    return !method || method->has_result;
}

/* ---- members -------------------------------------------------------------------------------- */

static bool are_texts(json_t *object)
{
    void *at = json_object_iter(object);
    while (at && json_is_string(json_object_iter_value(at)))
        at = json_object_iter_next(object, at);
    return json_is_object(object) && !at;
}

static json_t *own_object(const struct member *members, const json_t *from, const char **wrong);

/* NULL: it is not what it should be. */
static json_t *own_value(const struct member *member, json_t *value, const char **wrong)
{
    bool is_good = member->type == is_text    ? json_is_string(value)
                   : member->type == is_texts ? are_texts(value)
                   : member->type == is_level ? tci_wrap_is_level(json_string_value(value))
                                              : json_is_object(value);
    if (!is_good)
        return NULL;
    return member->type == is_object ? own_object(member->members, value, wrong)
                                     : json_incref(value);
}

/* NULL: `wrong` names the member that is. One that is null is not there. */
static json_t *own_object(const struct member *members, const json_t *from, const char **wrong)
{
    json_t *own = json_object();
    for (; own && members->name; members++) {
        json_t *value = json_object_get(from, members->name);
        if ((!value || json_is_null(value)) && !members->is_needed)
            continue;
        if (json_object_set_new(own, members->name, own_value(members, value, wrong)) < 0) {
            *wrong = members->name;
            json_decref(tc_take(own));
        }
    }
    return own;
}

struct json_t *tci_wrap_params(const char *name, const struct json_t *params, char problem[160])
{
    const struct method *method = find(name);
    const char *wrong = "params";
    json_t *own = method && (!params || json_is_object(params))
                      ? own_object(method->members, params, &wrong)
                      : NULL;
    if (!own)
        (void)snprintf(problem, 160, "\"%s\" of %s is missing, or not what the protocol has there",
                       wrong, name);
    return own;
}
