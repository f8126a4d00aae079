/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: names of the model's enumerations, and looking things up in a policy. */
#include "policy/model.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *type, *standard, *doc;
    unsigned where;
} keys[] = {
#define D                                              TCI_IN_DEFAULTS
#define T                                              TCI_IN_TOOL
#define G                                              TCI_IN_GRANT
#define X(id, name, field, where, type, standard, doc) { name, #type, standard, doc, where },
#include "policy/keys.def"
#undef X
#undef D
#undef T
#undef G
};

/* The first spelling of each kind is its name; the others are synonyms. */
static const struct {
    const char *name;
    enum tci_backend_kind kind;
} backends[] = {
    { "process", TCI_BACKEND_PROCESS },
    { "L1", TCI_BACKEND_PROCESS },
    { "L1_PROCESS", TCI_BACKEND_PROCESS },
    { "jail", TCI_BACKEND_JAIL },
    { "L2", TCI_BACKEND_JAIL },
    { "L2_CHROOT", TCI_BACKEND_JAIL },
    { "oci", TCI_BACKEND_OCI },
    { "L3", TCI_BACKEND_OCI },
    { "L3_DOCKER", TCI_BACKEND_OCI },
    { "gvisor", TCI_BACKEND_GVISOR },
    { "wasm", TCI_BACKEND_WASM },
    { "microvm", TCI_BACKEND_MICROVM },
    { "firecracker", TCI_BACKEND_MICROVM },
};

const char *tci_key_name(enum tci_key key)
{
    return keys[key].name;
}

unsigned tci_key_where(enum tci_key key)
{
    return keys[key].where;
}

const char *tci_key_doc(enum tci_key key)
{
    return keys[key].doc;
}

const char *tci_key_standard(enum tci_key key)
{
    return keys[key].standard;
}

const char *tci_key_type(enum tci_key key)
{
    return keys[key].type;
}

int tci_backend_kind_from_name(const char *name)
{
    for (size_t i = 0; i < tci_array_size(backends); i++)
        if (strcmp(backends[i].name, name) == 0)
            return (int)backends[i].kind;
    return -1;
}

const char *tci_backend_kind_name(enum tci_backend_kind kind)
{
    for (size_t i = 0; i < tci_array_size(backends); i++)
        if (backends[i].kind == kind)
            return backends[i].name;
    return "unknown";
}

const char *tci_backend_kind_spelling(size_t i)
{
    return i < tci_array_size(backends) ? backends[i].name : NULL;
}

const char *tci_network_mode_name(enum tci_network_mode mode)
{
    static const char *const names[] = { "none", "rules", "public", "host" };
    return names[mode];
}

bool tci_network_has_gate(const struct tci_network *network)
{
    return network->mode == TCI_NETWORK_RULES || network->mode == TCI_NETWORK_PUBLIC;
}

const char *tci_syscall_profile_name(enum tci_syscall_profile profile)
{
    static const char *const names[] = { "default", "strict", "pure" };
    return names[profile];
}

const char *tci_access_name(enum tci_access access)
{
    static const char *const names[] = { "hidden", "readable", "writable" };
    return names[access];
}

const char *tci_record_name(enum tci_record record)
{
    static const char *const names[] = { "false", "true", "hash-only" };
    return names[record];
}

const char *tci_approval_name(enum tci_approval approval)
{
    return approval == TCI_APPROVAL_ASK ? "ask" : "never";
}

const char *tci_policy_file(const struct tc_policy *policy, struct tci_pos pos)
{
    if (pos.file == 0)
        return policy->file;
    return pos.file <= policy->tool_file_count ? policy->tool_files[pos.file - 1].name
                                               : "(made by the program)";
}

const char *tc_policy_file_name(const struct tc_policy *policy, unsigned file)
{
    return tci_policy_file(policy, (struct tci_pos){ .file = file });
}

static int compare_name_to_tool(const void *name, const void *tool)
{
    return strcmp(name, (*(struct tci_tool *const *)tool)->name);
}

const struct tci_tool *tci_policy_tool(const struct tc_policy *policy, const char *name)
{
    struct tci_tool **found;
    if (!policy->tool_count)
        return NULL;
    found = bsearch(name, policy->tools_by_name, policy->tool_count, sizeof *policy->tools_by_name,
                    compare_name_to_tool);
    return found ? *found : NULL;
}

const struct tci_agent *tci_policy_agent(const struct tc_policy *policy, const char *name)
{
    for (size_t i = 0; i < policy->agent_count; i++)
        if (strcmp(policy->agents[i].name, name) == 0)
            return &policy->agents[i];
    return NULL;
}

const struct tci_grant *tci_agent_grant(const struct tci_agent *agent, const char *tool)
{
    for (size_t i = 0; i < agent->grant_count; i++)
        if (strcmp(agent->grants[i].tool, tool) == 0)
            return &agent->grants[i];
    return NULL;
}

static enum tci_clause network_clause(enum tci_network_mode mode)
{
    switch (mode) {
    case TCI_NETWORK_RULES:
        return TCI_CLAUSE_NETWORK_NAMES;
    case TCI_NETWORK_PUBLIC:
        return TCI_CLAUSE_NETWORK_PUBLIC;
    case TCI_NETWORK_HOST:
        return TCI_CLAUSE_NETWORK_HOST;
    case TCI_NETWORK_NONE:
        break;
    }
    return TCI_CLAUSE_NETWORK_NONE;
}

/* Scratch has a size of its own; only paths of the host need their writes counted. */
static bool writes_to_host(const struct tci_settings *s)
{
    for (size_t i = 0; i < s->filesystem.count; i++)
        if (s->filesystem.rules[i].access == TCI_ACCESS_WRITABLE)
            return true;
    return (s->image || s->rootfs) && !s->container.read_only_rootfs;
}

tci_clauses tci_tool_clauses(const struct tci_tool *tool)
{
    const struct tci_settings *s = &tool->settings;
    const struct {
        enum tci_clause clause;
        bool asked;
    } table[] = {
        { TCI_CLAUSE_FILESYSTEM, true },
        { network_clause(s->network.mode), true },
        { TCI_CLAUSE_SYSCALLS, true },
        { TCI_CLAUSE_EXEC_ALLOWLIST, !s->commands.any },
        { TCI_CLAUSE_MEMORY, s->memory != TCI_UNLIMITED },
        { TCI_CLAUSE_CPU, s->cpu != TCI_UNLIMITED },
        { TCI_CLAUSE_CPU_TIME, s->cpu_time != TCI_UNLIMITED },
        { TCI_CLAUSE_PIDS, s->pids != TCI_UNLIMITED },
        { TCI_CLAUSE_FILES, s->files != TCI_UNLIMITED },
        { TCI_CLAUSE_DISK, s->disk != TCI_UNLIMITED && writes_to_host(s) },
        { TCI_CLAUSE_SCRATCH, s->filesystem.scratch > 0 },
        { TCI_CLAUSE_TIMEOUT, s->timeout != TCI_UNLIMITED },
        { TCI_CLAUSE_OUTPUT, s->output != TCI_UNLIMITED },
    };
    tci_clauses set = 0;
    for (size_t i = 0; i < tci_array_size(table); i++)
        if (table[i].asked)
            set |= tci_clause_bit(table[i].clause);
    return set;
}
