/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: \p{...}. ECMA-262 has exact names, PCRE2 loose and other ones: only known names go on. */
#include "json/schema_ecma.h"

#include <stdio.h>
#include <string.h>

enum { word_max = 48 };

struct category {
    const char *name, *short_name, *alias;
};

struct binary {
    const char *name, *short_name, *inside, *outside;
};

#define CATEGORY(name, short_name, alias) { name, short_name, alias },
#define BINARY(name, short_name, inside, outside)
static const struct category categories[] = {
#include "json/schema_property.def"
};
#undef CATEGORY
#undef BINARY

#define CATEGORY(name, short_name, alias)
#define BINARY(name, short_name, inside, outside) { name, short_name, inside, outside },
static const struct binary binaries[] = {
#include "json/schema_property.def"
};
#undef CATEGORY
#undef BINARY

static bool is_word(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* Letters up to `end`, which is skipped. */
static bool read_word(struct tci_ecma *ecma, const char *ends, char ret[word_max], char *ret_end)
{
    size_t length = 0;
    while (ecma->at < ecma->end && is_word(*ecma->at) && length + 1 < word_max)
        ret[length++] = *ecma->at++;
    ret[length] = '\0';
    if (ecma->at == ecma->end || !strchr(ends, *ecma->at) || length == 0)
        return tci_ecma_fail(ecma, "a name in { } is missing after \\p");
    *ret_end = *ecma->at++;
    return true;
}

static bool is_named(const char *word, const char *name)
{
    return *name && strcmp(word, name) == 0;
}

static bool put(struct tci_ecma_escape *ret, bool negated, const char *name)
{
    (void)snprintf(ret->set_text, sizeof ret->set_text, "\\%c{%s}", negated ? 'P' : 'p', name);
    ret->set = ret->set_text;
    return true;
}

static bool find_category(const char *word, bool negated, struct tci_ecma_escape *ret)
{
    for (size_t i = 0; i < tci_array_size(categories); i++) {
        const struct category *c = &categories[i];
        if (is_named(word, c->name) || is_named(word, c->short_name) || is_named(word, c->alias))
            return put(ret, negated, strcmp(c->short_name, "LC") == 0 ? "L&" : c->short_name);
    }
    return false;
}

static bool find_binary(const char *word, bool negated, struct tci_ecma_escape *ret)
{
    for (size_t i = 0; i < tci_array_size(binaries); i++) {
        const struct binary *b = &binaries[i];
        if (is_named(word, b->name) || is_named(word, b->short_name)) {
            ret->set = negated ? b->outside : b->inside;
            return true;
        }
    }
    return false;
}

/* \p{Script=Greek}: whether there is such a script is for PCRE2's tables. */
static bool find_script(const char *prefix, const char *word, bool negated,
                        struct tci_ecma_escape *ret)
{
    char name[word_max + 8];
    (void)snprintf(name, sizeof name, "%s:%s", prefix, word);
    return put(ret, negated, name);
}

bool tci_ecma_property(struct tci_ecma *ecma, bool negated, struct tci_ecma_escape *ret)
{
    char word[word_max], value[word_max], end = '\0';
    bool found = false;

    ret->kind = TCI_ECMA_SET;
    if (ecma->at == ecma->end || *ecma->at != '{')
        return tci_ecma_fail(ecma, "a name in { } is missing after \\p");
    ecma->at++;
    if (!read_word(ecma, "}=", word, &end))
        return false;
    if (end == '}')
        found = find_category(word, negated, ret) || find_binary(word, negated, ret);
    else if (!read_word(ecma, "}", value, &end))
        return false;
    else if (strcmp(word, "General_Category") == 0 || strcmp(word, "gc") == 0)
        found = find_category(value, negated, ret);
    else if (strcmp(word, "Script") == 0 || strcmp(word, "sc") == 0)
        found = find_script("sc", value, negated, ret);
    else if (strcmp(word, "Script_Extensions") == 0 || strcmp(word, "scx") == 0)
        found = find_script("scx", value, negated, ret);
    return found || tci_ecma_fail(ecma, "a property in \\p{ } that ECMA-262 does not know");
}
