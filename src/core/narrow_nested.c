/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: a call inside a call: what the tool has, cut down to what the call around it has. The one
 * around it may be run by a model that was talked into it, and asks for another tool to get out: to a
 * host, a path, a program, a system call that its own cage does not have.
 *
 * Each setting is one of three kinds: a number or a list that can be cut exactly (limits, network,
 * paths, system, syscalls, env_pass) is cut; something that is either inside the other or not (root,
 * backend, commands, container) is refused when it is not; what says only how the tool does its work
 * (command, env, schemas, outputs) stays.
 */
#include "core/narrow.h"

#include <string.h>

static int refuse(struct tc_error *reterr, const char *key, const char *what)
{
    tci_error_set(reterr, TC_ERROR_POLICY, "\"%s\": the tool %s the call around it", key, what);
    tci_error_remedy(reterr, "call the tool by itself, or change \"%s\" of one of the two tools",
                     key);
    return 1;
}

static bool is_in(const struct tci_strings *list, const char *text)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].text, text) == 0)
            return true;
    return false;
}

static bool is_subset(const struct tci_strings *inner, const struct tci_strings *outer)
{
    for (size_t i = 0; i < inner->count; i++)
        if (!is_in(outer, inner->items[i].text))
            return false;
    return true;
}

/* Items of `a` that are (`common`) or are not in `b`, behind those that are in *list already. */
static void add(struct tci_strings *list, const struct tci_strings *a, const struct tci_strings *b,
                bool common)
{
    for (size_t i = 0; i < a->count; i++)
        if (is_in(b, a->items[i].text) == common)
            list->items[list->count++] = a->items[i];
}

static int new_list(struct tci_arena *arena, size_t room, struct tci_strings *ret,
                    struct tc_error *reterr)
{
    *ret = (struct tci_strings){ .items = tci_arena_new_array(arena, room, struct tci_string) };
    return ret->items || !room ? 0 : tci_error_no_memory(reterr);
}

/* How much stands between the cage and the host's kernel. */
static int strength(enum tci_backend_kind backend)
{
    switch (backend) {
    case TCI_BACKEND_PROCESS:
        return 0;
    case TCI_BACKEND_JAIL:
    case TCI_BACKEND_OCI:
        return 1;
    case TCI_BACKEND_GVISOR:
    case TCI_BACKEND_WASM:
        return 2;
    case TCI_BACKEND_MICROVM:
        return 3;
    case TCI_BACKEND_KIND_COUNT:
        break;
    }
    return -1;
}

static bool same(const char *a, const char *b)
{
    return !a || (b && strcmp(a, b) == 0);
}

static int check_cage(const struct tci_settings *tool, const struct tci_settings *around,
                      struct tc_error *reterr)
{
    const struct tci_container *c = &tool->container;
    if (strength(tool->backend) < strength(around->backend))
        return refuse(reterr, "backend", "has a weaker cage than");
    if (!same(tool->rootfs, around->rootfs))
        return refuse(reterr, "rootfs", "has another root than");
    if (!same(tool->image, around->image))
        return refuse(reterr, "image", "has another image than");
    if (c->cap_add.count || !c->read_only_rootfs || !c->no_new_privileges)
        return refuse(reterr, "container", "has privileges that are not those of");
    return 0;
}

/* May the program be started in the call around it? Names are compared as they are written: two ways to
 * write one program are two programs here. */
static bool may_start(const struct tci_settings *around, const char *program)
{
    return is_in(&around->commands.list, program) ||
           (around->command.count && strcmp(around->command.items[0].text, program) == 0);
}

/* A tool's own program may always start, listed or not: here it must be listed out there as well. One
 * that we bring ourselves is not looked up in the cage, and starts no other. */
static int narrow_commands(const struct tci_settings *tool, const struct tci_settings *around,
                           struct tci_commands *ret, struct tc_error *reterr)
{
    bool ours = tool->builtin && tool->builtin->program != TCI_PROGRAM_NONE;
    if (around->commands.any)
        return 0;
    if (ours && tool->commands.any) {
        *ret = (struct tci_commands){ .any = false };
        return 0;
    }
    if (tool->commands.any)
        return refuse(reterr, "commands", "may start any program, unlike");
    for (size_t i = 0; i < tool->commands.list.count; i++)
        if (!may_start(around, tool->commands.list.items[i].text))
            return refuse(reterr, "commands", "may start programs that are not those of");
    if (!ours && tool->command.count && !may_start(around, tool->command.items[0].text))
        return refuse(reterr, "commands", "is a program that may not start in");
    return 0;
}

/* Profiles contain each other: what "pure" allows, "strict" allows, and what that does, "default". */
static int narrow_syscalls(struct tci_arena *arena, const struct tci_syscalls *tool,
                           const struct tci_syscalls *around, struct tci_syscalls *ret,
                           struct tc_error *reterr)
{
    static const struct tci_strings none;
    if (!is_subset(&tool->allow, &around->allow))
        return refuse(reterr, "syscalls", "allows calls that are not in \"allow\" of");
    ret->profile = tool->profile > around->profile ? tool->profile : around->profile;
    ret->allow = tool->allow;
    if (new_list(arena, tool->deny.count + around->deny.count, &ret->deny, reterr) < 0)
        return -1;
    add(&ret->deny, &tool->deny, &none, false);
    add(&ret->deny, &around->deny, &tool->deny, false);
    return 0;
}

/* Values of the host's environment that only the tool gets would be read through it. */
static int narrow_env_pass(struct tci_arena *arena, const struct tci_strings *tool,
                           const struct tci_strings *around, struct tci_strings *ret,
                           struct tc_error *reterr)
{
    if (new_list(arena, tool->count, ret, reterr) < 0)
        return -1;
    add(ret, tool, around, true);
    return 0;
}

int tci_narrow_nested(struct tci_arena *arena, const struct tci_tool *tool,
                      const struct tci_settings *around, struct tci_tool *ret,
                      struct tc_error *reterr)
{
    const struct tci_settings *own = &tool->settings;
    struct tci_settings *s = &ret->settings;
    int r;

    *ret = *tool;
    if ((r = check_cage(own, around, reterr)) != 0 ||
        (r = narrow_commands(own, around, &s->commands, reterr)) != 0 ||
        (r = narrow_syscalls(arena, &own->syscalls, &around->syscalls, &s->syscalls, reterr)) != 0)
        return r;
    s->system = own->system && around->system;
    s->inspect_strict |= around->inspect_strict;
    s->network_limits = tci_narrow_network_limits(&own->network_limits, &around->network_limits);
    if (tci_narrow_network(arena, &own->network, &around->network, &s->network, reterr) < 0 ||
        narrow_env_pass(arena, &own->env_pass, &around->env_pass, &s->env_pass, reterr) < 0)
        return -1;
    return tci_narrow_nested_paths(arena, own, around, s, reterr);
}
