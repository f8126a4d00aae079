/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tools that the host defines (tc_tool_define), finding a tool wherever it is from, and what a
 * tool brings into its cage: a program of ours, a shared object, a function of this process.
 * Invariant: a definition is complete before anybody can find it, and stays until the engine closes.
 */
#include "core/engine_tools.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "backend/program.h"
#include "base/fd.h"
#include "base/path.h"
#include "policy/parse.h"

/* A tool of the host's own. */
struct tci_defined {
    struct tci_defined *next;
    struct tci_arena *arena; /* of everything in it, and of itself */
    struct tci_tool *tool;
    tc_handler *function; /* NULL: none */
    void *context;
    const char *library; /* NULL: none */
};

/* ---- finding ------------------------------------------------------------------------------ */

/* With the lock held. */
static struct tci_defined *find_name(const struct tc_engine *engine, const char *name)
{
    for (struct tci_defined *d = engine->defined; d; d = d->next)
        if (strcmp(d->tool->name, name) == 0)
            return d;
    return NULL;
}

/* NULL: the tool is the policy's. */
static const struct tci_defined *find_tool(struct tc_engine *engine, const struct tci_tool *tool)
{
    struct tci_defined *d;
    (void)pthread_mutex_lock(&engine->lock);
    for (d = engine->defined; d && d->tool != tool; d = d->next)
        ;
    (void)pthread_mutex_unlock(&engine->lock);
    return d;
}

const struct tci_tool *tci_engine_tool(struct tc_engine *engine, const char *name)
{
    const struct tci_tool *tool = tci_policy_tool(engine->policy, name);
    const struct tci_defined *d;
    if (tool)
        return tool;
    (void)pthread_mutex_lock(&engine->lock);
    d = find_name(engine, name);
    (void)pthread_mutex_unlock(&engine->lock);
    return d ? d->tool : NULL;
}

int tci_engine_each_tool(struct tc_engine *engine,
                         int (*each)(void *context, const struct tci_tool *tool), void *context)
{
    struct tci_defined *d;
    for (size_t i = 0; i < engine->policy->tool_count; i++) {
        int r = each(context, &engine->policy->tools[i]);
        if (r != 0)
            return r;
    }
    (void)pthread_mutex_lock(&engine->lock);
    d = engine->defined;
    (void)pthread_mutex_unlock(&engine->lock);
    /* New ones come in at the end, and none goes: without the lock, which `each` may want. */
    while (d) {
        int r = each(context, d->tool);
        if (r != 0)
            return r;
        (void)pthread_mutex_lock(&engine->lock);
        d = d->next;
        (void)pthread_mutex_unlock(&engine->lock);
    }
    return 0;
}

/* ---- defining ----------------------------------------------------------------------------- */

static int usage(struct tc_error *reterr, const char *remedy, const char *message)
{
    tci_error_set(reterr, TC_ERROR_USAGE, "%s", message);
    tci_error_remedy(reterr, "%s", remedy);
    return -1;
}

static int check_definition(const struct tc_tool_definition *definition, struct tc_error *reterr)
{
    if (!definition->name || !*definition->name)
        return usage(reterr, "give it a name", "a tool without a name cannot be defined");
    if (definition->function && (definition->library || definition->symbol))
        return usage(reterr, "give one of them",
                     "a tool has either a function or a library, not both");
    if (!definition->library != !definition->symbol)
        return usage(reterr, "give both", "a library needs a symbol, and a symbol a library");
    if (definition->symbol && !*definition->symbol)
        return usage(reterr, "name the handler", "the symbol is empty");
    if (definition->library && *definition->library != '/')
        return usage(reterr, "give the absolute path of the shared object",
                     "the library's path is not absolute");
    return 0;
}

/* "{" is a placeholder in a command, "{{" is a brace. */
static const char *as_template(struct tci_arena *arena, const char *text)
{
    char *copy = tci_arena_alloc(arena, 2 * strlen(text) + 1), *to = copy;
    for (; copy && *text; text++) {
        if (*text == '{' || *text == '}')
            *to++ = *text;
        *to++ = *text;
    }
    return copy;
}

/* What the loader is started with; the arguments of a call follow on its stdin. A function has the
 * same, as a name for messages and for those who approve. */
static int set_command(struct tci_defined *d, const struct tc_tool_definition *definition,
                       struct tc_error *reterr)
{
    const char *words[3] = { d->function ? "function" : "toolcage-loader",
                             d->function ? d->tool->name : d->library,
                             d->function ? NULL : definition->symbol };
    struct tci_strings *command = &d->tool->settings.command;
    command->items = tci_arena_new_array(d->arena, tci_array_size(words), struct tci_string);
    command->count = 0;
    for (size_t i = 0; command->items && i < tci_array_size(words) && words[i]; i++) {
        const char *text = as_template(d->arena, words[i]);
        if (!text)
            return tci_error_no_memory(reterr);
        command->items[command->count++].text = text;
    }
    return command->items ? 0 : tci_error_no_memory(reterr);
}

static int check_library(const struct tci_defined *d, struct tc_error *reterr)
{
    const struct tci_settings *s = &d->tool->settings;
    if (access(d->library, R_OK) < 0) {
        tci_error_errno(reterr, errno, "the library of tool \"%.100s\", %.300s", d->tool->name,
                        d->library);
        tci_error_remedy(reterr, "build it, or correct the path");
        return -1;
    }
    if (s->system || s->rootfs)
        return 0;
    tci_error_set(
        reterr, TC_ERROR_UNSUPPORTED,
        "tool \"%.100s\" has system = false: a shared object cannot be loaded without the "
        "loader and the C library",
        d->tool->name);
    tci_error_remedy(reterr, "set system = true, or give the tool a rootfs that has them");
    return -1;
}

/* Exactly one of: a function, a library, a command. */
static int check_handler(struct tci_defined *d, const struct tc_tool_definition *definition,
                         struct tc_error *reterr)
{
    const struct tci_settings *s = &d->tool->settings;
    const bool handled = d->function || d->library;
    if (handled == (s->command.count > 0)) {
        tci_error_set(reterr, TC_ERROR_USAGE, "tool \"%.100s\" %s", d->tool->name,
                      handled ? "has a command and a handler: only one can run"
                              : "has nothing to run");
        tci_error_remedy(reterr, handled ? "leave one of them out"
                                         : "give a function, a library with a symbol, or a "
                                           "\"command\" in the policy");
        return -1;
    }
    if (!handled)
        return 0;
    if (s->backend != TCI_BACKEND_JAIL && s->backend != TCI_BACKEND_PROCESS) {
        tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                      "tool \"%.100s\": backend \"%s\" cannot run a handler of this program",
                      d->tool->name, tci_backend_kind_name(s->backend));
        tci_error_remedy(reterr, "set backend = \"jail\" or \"process\"");
        return -1;
    }
    if (d->library && check_library(d, reterr) < 0)
        return -1;
    return set_command(d, definition, reterr);
}

static int copy_library(struct tci_defined *d, const char *library, struct tc_error *reterr)
{
    char normal[TCI_PATH_MAX + 1];
    if (tci_path_normalise("/", library, strlen(library), normal) != TCI_PATH_OK)
        return tci_error_set(reterr, TC_ERROR_USAGE, "the library's path is not usable: %.300s",
                             library);
    d->library = tci_arena_strdup(d->arena, normal);
    return d->library ? 0 : tci_error_no_memory(reterr);
}

/* False: another one has the name. At the end: who walks the list misses none. */
static bool insert(struct tc_engine *engine, struct tci_defined *d)
{
    struct tci_defined **end;
    bool is_new;
    (void)pthread_mutex_lock(&engine->lock);
    is_new = !find_name(engine, d->tool->name);
    for (end = &engine->defined; *end; end = &(*end)->next)
        ;
    if (is_new)
        *end = d;
    (void)pthread_mutex_unlock(&engine->lock);
    return is_new;
}

int tc_tool_define(struct tc_engine *engine, const struct tc_tool_definition *definition,
                   struct tc_error *reterr)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    struct tci_defined *d = arena ? tci_arena_new_of(arena, struct tci_defined) : NULL;
    const char *text = definition->policy ? definition->policy : "";

    tci_error_clear(reterr);
    if (!d)
        return tci_error_no_memory(reterr);
    d->arena = arena;
    d->function = definition->function;
    d->context = definition->context;
    if (check_definition(definition, reterr) < 0 ||
        (definition->library && copy_library(d, definition->library, reterr) < 0) ||
        tci_tool_parse(engine->policy, arena, definition->name, text, strlen(text), NULL, &d->tool,
                       reterr) < 0 ||
        check_handler(d, definition, reterr) < 0)
        return -1;
    if (!insert(engine, d)) {
        tci_error_set(reterr, TC_ERROR_USAGE, "a tool \"%.100s\" is defined already",
                      d->tool->name);
        tci_error_remedy(reterr, "give it another name");
        return -1;
    }
    (void)tc_take(arena);
    return 0;
}

void tci_engine_tools_free(struct tc_engine *engine)
{
    for (size_t i = 0; i < tci_array_size(engine->program_fds); i++)
        if (engine->program_fds[i] > 0)
            engine->program_fds[i] = tci_close(engine->program_fds[i]);
    while (engine->defined) {
        struct tci_defined *d = engine->defined;
        engine->defined = d->next;
        tci_arena_free(d->arena);
    }
}

/* ---- what runs ---------------------------------------------------------------------------- */

void tci_engine_brings(struct tc_engine *engine, const struct tci_tool *tool, struct tc_spec *spec)
{
    const struct tci_defined *d = find_tool(engine, tool);
    spec->program = TCI_PROGRAM_NONE;
    if (tool->settings.builtin)
        spec->program = tool->settings.builtin->program;
    if (d && d->library)
        spec->program = TCI_PROGRAM_LOADER;
    spec->library = d ? d->library : NULL;
    spec->is_function = d && d->function;
}

/* One for all calls of the engine: it is sealed, and carries nothing from one to the other. */
static int program_fd(struct tc_engine *engine, enum tci_program program, struct tc_error *reterr)
{
    int fd;
    if ((size_t)program >= tci_array_size(engine->program_fds))
        return tci_error_set(reterr, TC_ERROR_INTERNAL, "no such program is built in");
    (void)pthread_mutex_lock(&engine->lock);
    fd = engine->program_fds[program];
    if (fd <= 0 && (fd = tci_program_fd(program, reterr)) > 0)
        engine->program_fds[program] = fd;
    (void)pthread_mutex_unlock(&engine->lock);
    return fd;
}

int tci_engine_start_with(struct tc_engine *engine, const struct tc_call *call,
                          const struct tc_spec *spec, struct tc_io *io, struct tc_error *reterr)
{
    const struct tci_defined *d = spec->is_function ? find_tool(engine, call->tool) : NULL;
    if (spec->program != TCI_PROGRAM_NONE &&
        (io->program = program_fd(engine, spec->program, reterr)) < 0)
        return -1;
    if (!d)
        return 0;
    io->function = d->function;
    io->handler.context = d->context;
    io->handler.arguments_json = call->arguments_text ? call->arguments_text : "{}";
    io->handler.arguments_length = strlen(io->handler.arguments_json);
    return 0;
}
