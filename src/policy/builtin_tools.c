/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: looking up built-in tools. */
#include "policy/builtin_tools.h"

#include <stddef.h>
#include <string.h>
#include "base/attr.h"

#define ARGV(...) ((const char *const[]){ __VA_ARGS__, NULL })
static const struct tci_builtin builtins[] = {
#define X(name, description, parameters, returns, program, command)                                \
    { name, description, parameters, returns, TCI_PROGRAM_##program, command },
#include "policy/builtin_tools.def"
#undef X
};

static const char *const names[] = {
#define X(name, description, parameters, returns, program, command) name,
#include "policy/builtin_tools.def"
#undef X
    NULL
};

const struct tci_builtin *tci_builtin_find(const char *name)
{
    for (size_t i = 0; i < tci_array_size(builtins); i++)
        if (strcmp(builtins[i].name, name) == 0)
            return &builtins[i];
    return NULL;
}

const char *const *tci_builtin_names(void)
{
    return names;
}
