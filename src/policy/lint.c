/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the order of checks, and the checks that concern a tool or the policy as a whole. */
#include "policy/lint_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/path.h"
#include "policy/report.h"

bool tci_lint_wants(const struct tci_lint *lint, enum tci_key key)
{
    switch ((enum tci_origin)lint->tool->source[key]) {
    case TCI_FROM_TOOL:
        return true;
    case TCI_FROM_DEFAULTS:
        return !(lint->seen_in_defaults & tci_key_bit(key));
    case TCI_FROM_BUILTIN:
    case TCI_FROM_BUILTIN_TOOL:
        break;
    }
    return false;
}

void tci_lint_add(struct tci_lint *lint, enum tci_finding_id id, struct tci_pos pos,
                  const char *remedy, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tci_findings_addv(lint->findings, id, pos, lint->tool ? lint->tool->name : NULL, remedy, format,
                      args);
    va_end(args);
}

/* ---- capabilities -------------------------------------------------------------------------- */

struct capability_list {
    enum tci_key key;
    unsigned capabilities;
    const char *names;
};

static const struct capability_list capability_lists[] = {
    { TCI_KEY_ALLOWED_PATHS, TCI_CAP_FS_READ | TCI_CAP_FS_WRITE, "fs_read or fs_write" },
    { TCI_KEY_ALLOWED_HOSTS, TCI_CAP_NET_HTTP, "net_http" },
    { TCI_KEY_ALLOWED_COMMANDS, TCI_CAP_EXEC_RUN, "exec_run" },
};

static bool has_entries(const struct tci_settings *s, enum tci_key list)
{
    if (list == TCI_KEY_ALLOWED_PATHS)
        return s->allowed_paths.count > 0;
    if (list == TCI_KEY_ALLOWED_HOSTS)
        return s->allowed_hosts.count > 0;
    return s->allowed_commands.list.count > 0;
}

/* Does some tool have both? Then what stands in [defaults] has its use. */
static bool is_used(const struct tci_lint *lint, const struct capability_list *list)
{
    for (size_t i = 0; i < lint->policy->tool_count; i++) {
        const struct tci_settings *s = &lint->policy->tools[i].settings;
        if ((s->capabilities & list->capabilities) && has_entries(s, list->key))
            return true;
    }
    return false;
}

bool tci_lint_may_compare(struct tci_lint *lint, size_t count)
{
    enum { compared_max = 20000000 };
    lint->compared += count;
    return lint->compared <= compared_max;
}

static void lint_capability(struct tci_lint *lint, const struct capability_list *list)
{
    const struct tci_tool *tool = lint->tool;
    const struct tci_settings *s = &tool->settings;
    bool has = s->capabilities & list->capabilities, entries = has_entries(s, list->key);
    enum tci_key key = has ? TCI_KEY_CAPABILITIES : list->key;

    if (has == entries || !tci_lint_wants(lint, key) ||
        (tool->source[key] == TCI_FROM_DEFAULTS && is_used(lint, list)))
        return;
    if (has)
        tci_lint_add(lint, TCI_FINDING_CAPABILITY_WITHOUT_LIST, s->pos[key],
                     "list what is allowed, or remove the capability",
                     "%s grants nothing without entries in \"%s\"", list->names,
                     tci_key_name(list->key));
    else
        tci_lint_add(lint, TCI_FINDING_CAPABILITY_WITHOUT_LIST, s->pos[key],
                     "add the capability or remove the list",
                     "\"%s\" grants nothing without the capability %s", tci_key_name(list->key),
                     list->names);
}

static void lint_capabilities(struct tci_lint *lint)
{
    for (size_t i = 0; i < tci_array_size(capability_lists); i++)
        lint_capability(lint, &capability_lists[i]);
}

/* ---- environment --------------------------------------------------------------------------- */

/* The attacks: the environment hands over a secret, or decides which code is loaded. */

enum variable_kind {
    LOADER_NAMED,
    SEARCH_PATH,
    PROGRAM_NAMED,
    NAME_IS,
    NAME_HAS,
    NAME_ENDS,
    VALUE_STARTS,
};

static const struct {
    enum variable_kind kind;
    const char *text;
    size_t length; /* of the whole value, at least */
} variables[] = {
#define LOADER(name)                { LOADER_NAMED, name, 0 },
#define SEARCH(name)                { SEARCH_PATH, name, 0 },
#define PROGRAM(name)               { PROGRAM_NAMED, name, 0 },
#define CREDENTIAL(name)            { NAME_IS, name, 0 },
#define SECRET_WORD(word)           { NAME_HAS, word, 0 },
#define SECRET_END(end)             { NAME_ENDS, end, 0 },
#define SECRET_VALUE(start, length) { VALUE_STARTS, start, length },
#include "policy/lint_variables.def"
#undef LOADER
#undef SEARCH
#undef PROGRAM
#undef CREDENTIAL
#undef SECRET_WORD
#undef SECRET_END
#undef SECRET_VALUE
};

static bool is_loader(const char *name)
{
    for (size_t i = 0; i < tci_array_size(variables); i++) {
        const char *text = variables[i].text;
        size_t length = strcspn(text, "*");
        if (variables[i].kind == LOADER_NAMED && strncmp(name, text, length) == 0 &&
            (text[length] || !name[length]))
            return true;
    }
    return false;
}

/* May the tool read the path, and not write it? Then what is there is what the policy's author
 * put there. */
static bool is_fixed(const struct tci_lint *lint, const char *path)
{
    struct tc_decision read, write;
    tc_decide_path(lint->policy, NULL, lint->tool->name, path, TC_ACCESS_READ, &read);
    tc_decide_path(lint->policy, NULL, lint->tool->name, path, TC_ACCESS_WRITE, &write);
    return read.allowed && (!write.allowed || strcmp(path, "/dev/null") == 0);
}

/* A search path with a directory, or a program's path, that is not fixed. */
static bool leads_to_code(const struct tci_lint *lint, const char *name, const char *value)
{
    char path[TCI_PATH_MAX + 1];
    size_t i = 0, length;
    while (i < tci_array_size(variables) &&
           (strcmp(variables[i].text, name) != 0 ||
            (variables[i].kind != SEARCH_PATH && variables[i].kind != PROGRAM_NAMED)))
        i++;
    if (i == tci_array_size(variables))
        return false;
    if (variables[i].kind == PROGRAM_NAMED && (!value || value[0] != '/'))
        return false; /* found in PATH, like any program */
    for (; value; value += length + 1) {
        length = strcspn(value, variables[i].kind == SEARCH_PATH ? ":" : " ");
        if (length > TCI_PATH_MAX || value[0] != '/')
            return true;
        (void)snprintf(path, sizeof path, "%.*s", (int)length, value);
        if (!is_fixed(lint, path))
            return true;
        if (!value[length] || variables[i].kind == PROGRAM_NAMED)
            return false;
    }
    return true; /* passed through: whatever the caller has */
}

static bool name_ends(const char *name, const char *end)
{
    size_t length = strlen(name), end_length = strlen(end);
    return length >= end_length && strcasecmp(name + length - end_length, end) == 0;
}

/* `value` is NULL for a variable that is passed through. */
static bool is_secret(const char *name, const char *value)
{
    for (size_t i = 0; i < tci_array_size(variables); i++) {
        const char *text = variables[i].text;
        switch (variables[i].kind) {
        case LOADER_NAMED:
        case SEARCH_PATH:
        case PROGRAM_NAMED:
            break;
        case NAME_IS:
            if (strcmp(name, text) == 0)
                return true;
            break;
        case NAME_HAS:
            if (strcasestr(name, text))
                return true;
            break;
        case NAME_ENDS:
            if (name_ends(name, text))
                return true;
            break;
        case VALUE_STARTS:
            if (value && strncmp(value, text, strlen(text)) == 0 &&
                strlen(value) >= variables[i].length)
                return true;
            break;
        }
    }
    return false;
}

/* "https://user:password@host/": a credential in a URL. */
static bool is_url_with_password(const char *value)
{
    const char *host = strstr(value, "://"), *at, *colon;
    if (!host)
        return false;
    host += 3;
    at = strpbrk(host, "@/");
    colon = strpbrk(host, ":@/");
    return at && *at == '@' && colon && *colon == ':' && colon + 1 < at;
}

static void lint_variable(struct tci_lint *lint, const char *name, const char *value,
                          struct tci_pos pos)
{
    if (is_loader(name))
        tci_lint_add(lint, TCI_FINDING_LOADER_ENVIRONMENT, pos, "remove it",
                     "%.100s decides which code programs load", name);
    else if (leads_to_code(lint, name, value))
        tci_lint_add(lint, TCI_FINDING_LOADER_ENVIRONMENT, pos,
                     "name absolute paths that the tool can read and not write, or remove it",
                     "%.100s leads to code that the policy does not fix", name);
    else if (is_secret(name, value) || (value && is_url_with_password(value)))
        tci_lint_add(lint, TCI_FINDING_SECRET_ENVIRONMENT, pos,
                     "give the tool a narrower credential, or none",
                     "%.100s looks like a secret, and every process of the call can read it", name);
    if (value && (strncmp(value, "~/", 2) == 0 || strstr(value, "${") || strstr(value, "$HOME") ||
                  strstr(value, "$PATH")))
        tci_lint_add(lint, TCI_FINDING_NOT_EXPANDED, pos, "write the value out",
                     "%.100s is taken as it stands: ~ and ${VAR} are not expanded", name);
}

static void lint_environment(struct tci_lint *lint)
{
    const struct tci_settings *s = &lint->tool->settings;
    if (tci_lint_wants(lint, TCI_KEY_ENV))
        for (size_t i = 0; i < s->env.count; i++)
            lint_variable(lint, s->env.items[i].name, s->env.items[i].value, s->env.items[i].pos);
    if (tci_lint_wants(lint, TCI_KEY_ENV_PASS))
        for (size_t i = 0; i < s->env_pass.count; i++)
            lint_variable(lint, s->env_pass.items[i].text, NULL, s->env_pass.items[i].pos);
}

/* ---- system calls -------------------------------------------------------------------------- */

/* The attack: a call that makes namespaces, mounts, modules or other processes' memory reachable
 * undoes what the other layers keep. Profiles leave all of them out. */
static bool is_dangerous(const char *name)
{
    static const char *const calls[] = {
        "mount",
        "umount2",
        "pivot_root",
        "chroot",
        "open_tree",
        "move_mount",
        "fsopen",
        "fsmount",
        "fsconfig",
        "mount_setattr",
        "unshare",
        "setns",
        "ptrace",
        "process_vm_readv",
        "process_vm_writev",
        "pidfd_getfd",
        "bpf",
        "perf_event_open",
        "userfaultfd",
        "io_uring_setup",
        "io_uring_enter",
        "io_uring_register",
        "open_by_handle_at",
        "keyctl",
        "add_key",
        "request_key",
        "init_module",
        "finit_module",
        "delete_module",
        "kexec_load",
        "kexec_file_load",
        "reboot",
        "swapon",
        "swapoff",
        "iopl",
        "ioperm",
        "acct",
        "settimeofday",
        "clock_settime",
        "mknod",
        "mknodat",
        "quotactl",
    };
    for (size_t i = 0; i < tci_array_size(calls); i++)
        if (strcmp(calls[i], name) == 0)
            return true;
    return false;
}

static void lint_syscalls(struct tci_lint *lint)
{
    const struct tci_strings *allow = &lint->tool->settings.syscalls.allow;
    for (size_t i = 0; i < allow->count && tci_lint_wants(lint, TCI_KEY_SYSCALLS); i++)
        if (is_dangerous(allow->items[i].text))
            tci_lint_add(lint, TCI_FINDING_DANGEROUS_SYSCALL, allow->items[i].pos,
                         "remove it unless the tool cannot work without it",
                         "\"%.60s\" can be used to leave the cage", allow->items[i].text);
}

/* ---- container ----------------------------------------------------------------------------- */

static bool has_string(const struct tci_strings *list, const char *text)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].text, text) == 0)
            return true;
    return false;
}

/* "root", "0", "00:100"; also a number that is too large, and is cut to another one. */
static bool is_root_user(const char *user)
{
    size_t length = strcspn(user, ":"), digits = strspn(user, "0123456789");
    unsigned long long number = strtoull(user, NULL, 10);
    if (length == 4 && strncmp(user, "root", 4) == 0)
        return true;
    return digits == length && (number == 0 || number > UINT32_MAX - 1);
}

static bool is_container(enum tci_backend_kind backend)
{
    return backend == TCI_BACKEND_OCI || backend == TCI_BACKEND_GVISOR;
}

static void lint_container(struct tci_lint *lint)
{
    const struct tci_container *c = &lint->tool->settings.container;
    struct tci_pos pos = lint->tool->settings.pos[TCI_KEY_CONTAINER];
    const struct {
        bool weak;
        const char *message, *remedy;
    } table[] = {
        { !c->read_only_rootfs, "the container's root is writable",
          "remove read_only_rootfs = false and give the tool scratch or a writable path" },
        { !c->no_new_privileges, "setuid programs in the container gain privileges",
          "remove no_new_privileges = false" },
        { !has_string(&c->cap_drop, "ALL"), "not all capabilities are dropped",
          "write cap_drop = [\"ALL\"] and name what is needed in cap_add" },
        { c->cap_add.count > 0, "capabilities are added to the container",
          "remove cap_add unless the tool cannot work without it" },
        { c->user && is_root_user(c->user), "the container's command runs as root",
          "name an unprivileged user" },
    };
    if (!tci_lint_wants(lint, TCI_KEY_CONTAINER))
        return;
    for (size_t i = 0; i < tci_array_size(table); i++)
        if (table[i].weak)
            tci_lint_add(lint, TCI_FINDING_WEAK_CONTAINER, pos, table[i].remedy, "%s",
                         table[i].message);
}

/* What no host can do, whatever is installed there: refused when the tool is called. True: reported. */
static bool lint_conflict(struct tci_lint *lint)
{
    const struct tci_settings *s = &lint->tool->settings;
    const struct tci_container *c = &s->container;
    const bool gvisor = s->backend == TCI_BACKEND_GVISOR;
    const bool runsc = c->runtime ? strcmp(c->runtime, "runsc") == 0 : gvisor;
    const bool engine = c->engine && strcmp(c->engine, "none") != 0;
    const bool other_calls = s->syscalls.profile != TCI_SYSCALLS_DEFAULT ||
                             s->syscalls.allow.count || s->syscalls.deny.count;
    const struct {
        bool conflict;
        enum tci_key key;
        const char *message, *remedy;
    } table[] = {
        { gvisor && !runsc, TCI_KEY_CONTAINER,
          "backend \"gvisor\" runs no other runtime than runsc",
          "remove container.runtime, or use backend = \"oci\"" },
        { engine && runsc, TCI_KEY_CONTAINER, "toolcage runs runsc itself, not through an engine",
          "remove container.engine, or set it to \"none\"" },
        { engine && s->rootfs, TCI_KEY_ROOTFS, "an engine runs images, not a directory",
          "set container.engine to \"none\", or name an image instead of rootfs" },
        { !c->no_new_privileges && other_calls, TCI_KEY_SYSCALLS,
          "the kernel takes a filter for system calls only from who gives up new privileges",
          "remove no_new_privileges = false, or use syscalls = \"default\"" },
        { s->system, TCI_KEY_SYSTEM, "a container has the system of its image, not the host's",
          "remove system = true, or grant /usr in filesystem.readable" },
    };
    if (!is_container(s->backend))
        return false;
    for (size_t i = 0; i < tci_array_size(table); i++) {
        if (!table[i].conflict)
            continue;
        struct tci_pos pos = lint->tool->source[table[i].key] == TCI_FROM_BUILTIN
                                 ? lint->tool->pos
                                 : s->pos[table[i].key];
        tci_lint_add(lint, TCI_FINDING_CONTAINER_CONFLICT, pos, table[i].remedy, "%s",
                     table[i].message);
        return true;
    }
    return false;
}

/* ---- the whole ----------------------------------------------------------------------------- */

/* Was the inherited value looked at? Not if the tool's backend has no use for it. */
static bool was_seen(const struct tci_tool *tool, enum tci_key key)
{
    return key != TCI_KEY_CONTAINER || is_container(tool->settings.backend);
}

static void lint_tool(struct tci_lint *lint)
{
    tci_lint_dropped(lint);
    lint_capabilities(lint);
    tci_lint_filesystem(lint);
    tci_lint_network(lint);
    tci_lint_limits(lint);
    tci_lint_command(lint);
    tci_lint_contract(lint);
    lint_environment(lint);
    lint_syscalls(lint);
    lint_container(lint);
    tci_lint_mcp(lint);
    tci_lint_own(lint);
    /* A tool that no host can run needs none to be looked at. */
    if (!lint_conflict(lint))
        tci_lint_clauses(lint);
    for (int key = 0; key < TCI_KEY_COUNT; key++)
        if (lint->tool->source[key] == TCI_FROM_DEFAULTS && was_seen(lint->tool, (enum tci_key)key))
            lint->seen_in_defaults |= tci_key_bit(key);
}

int tci_lint(const struct tc_policy *policy, const struct tci_lint_options *options,
             struct tci_findings *findings, struct tc_error *reterr)
{
    struct tci_lint lint = { .policy = policy, .options = options, .findings = findings };
    if (tci_findings_set_files(findings, policy->tool_files, policy->tool_file_count) < 0)
        return tci_error_no_memory(reterr);
    for (size_t i = 0; i < policy->tool_count; i++)
        lint.has_schema_files |= policy->tools[i].settings.parameters.file != NULL ||
                                 policy->tools[i].settings.returns.file != NULL;
    if (!policy->has_version)
        tci_lint_add(&lint, TCI_FINDING_NO_VERSION, tci_pos(1, 1),
                     "begin the file with version = 1 (in YAML: version: 1)",
                     "the policy does not state its version");
    for (size_t i = 0; i < policy->deceptive_count; i++)
        tci_lint_add(&lint, TCI_FINDING_HIDDEN_TEXT, policy->deceptive[i].pos,
                     "remove it, or write it as an escape: \"\\uXXXX\"",
                     "U+%04X hides or reorders text: this line is not what it looks like",
                     policy->deceptive[i].code_point);
    for (size_t i = 0; i < policy->tool_count; i++) {
        lint.tool = &policy->tools[i];
        lint_tool(&lint);
    }
    tci_lint_command_end(&lint);
    lint.tool = NULL;
    tci_lint_agents(&lint);
    tci_lint_files(&lint);
    if (!tci_lint_may_compare(&lint, 0))
        tci_lint_add(&lint, TCI_FINDING_TOO_MANY_RULES, tci_pos(1, 1),
                     "grant directories, not every file in them",
                     "the policy has so many rules that lint did not compare all of them");
    return tci_findings_sort(findings, reterr);
}

int tc_policy_lint(const struct tc_policy *policy, char **ret_json, struct tc_error *reterr)
{
    tc_cleanup(tci_findings_freep) struct tci_findings *findings = tci_findings_new(policy->file);
    tc_cleanup(tci_buf_free) struct tci_buf out = TCI_BUF_INIT(TCI_REPORT_MAX);
    struct tci_lint_options options = { .now = 0 };
    char *text;

    tci_error_clear(reterr);
    if (!findings)
        return tci_error_no_memory(reterr);
    if (tci_lint(policy, &options, findings, reterr) < 0)
        return -1;
    tci_report_json(findings, &out);
    text = tci_buf_take(&out, reterr);
    if (!text)
        return -1;
    *ret_json = text;
    return 0;
}
