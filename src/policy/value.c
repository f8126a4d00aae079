/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: writing typed values. Invariant: reading what was written gives the same value. */
#include "policy/value.h"

#include <stddef.h>
#include <string.h>
#include "policy/units.h"

static const char unlimited[] = "unlimited";

/* One function a type of keys.def, all of one shape: `field` points into a struct tci_settings. */

static void write_text(struct tci_json *out, const char *name, const void *field)
{
    tci_json_string(out, name, *(const char *const *)field);
}

static void write_path(struct tci_json *out, const char *name, const void *field)
{
    write_text(out, name, field);
}

static void write_image(struct tci_json *out, const char *name, const void *field)
{
    write_text(out, name, field);
}

static void write_boolean(struct tci_json *out, const char *name, const void *field)
{
    tci_json_bool(out, name, *(const bool *)field);
}

static void write_backend(struct tci_json *out, const char *name, const void *field)
{
    tci_json_string(out, name, tci_backend_kind_name(*(const enum tci_backend_kind *)field));
}

static void write_size(struct tci_json *out, const char *name, const void *field)
{
    uint64_t value = *(const uint64_t *)field;
    char text[TCI_UNIT_TEXT_MAX];
    tci_json_string(out, name, value == TCI_UNLIMITED ? unlimited : tci_size_format(value, text));
}

static void write_duration(struct tci_json *out, const char *name, const void *field)
{
    uint64_t value = *(const uint64_t *)field;
    char text[TCI_UNIT_TEXT_MAX];
    tci_json_string(out, name,
                    value == TCI_UNLIMITED ? unlimited : tci_duration_format(value, text));
}

static void write_wait(struct tci_json *out, const char *name, const void *field)
{
    write_duration(out, name, field);
}

static void write_approval(struct tci_json *out, const char *name, const void *field)
{
    tci_json_string(out, name, tci_approval_name(*(const enum tci_approval *)field));
}

static void write_builtin(struct tci_json *out, const char *name, const void *field)
{
    tci_json_string(out, name, (*(const struct tci_builtin *const *)field)->name);
}

static void write_count(struct tci_json *out, const char *name, const void *field)
{
    uint64_t value = *(const uint64_t *)field;
    if (value == TCI_UNLIMITED)
        tci_json_string(out, name, unlimited);
    else
        tci_json_unsigned(out, name, value);
}

static void write_count_or_zero(struct tci_json *out, const char *name, const void *field)
{
    write_count(out, name, field);
}

static void write_cores(struct tci_json *out, const char *name, const void *field)
{
    uint64_t value = *(const uint64_t *)field;
    if (value == TCI_UNLIMITED)
        tci_json_string(out, name, unlimited);
    else
        tci_json_double(out, name, (double)value / 1000);
}

static void write_strings(struct tci_json *out, const char *name, const void *field)
{
    const struct tci_strings *list = field;
    tci_json_array_begin(out, name);
    for (size_t i = 0; i < list->count; i++)
        tci_json_string(out, NULL, list->items[i].text);
    tci_json_array_end(out);
}

static void write_names(struct tci_json *out, const char *name, const void *field)
{
    write_strings(out, name, field);
}

static void write_pointers(struct tci_json *out, const char *name, const void *field)
{
    write_strings(out, name, field);
}

static void write_command(struct tci_json *out, const char *name, const void *field)
{
    write_strings(out, name, field);
}

static void write_commands(struct tci_json *out, const char *name, const void *field)
{
    write_strings(out, name, &((const struct tci_commands *)field)->list);
}

static void write_network(struct tci_json *out, const char *name, const void *field)
{
    const struct tci_network *network = field;
    char text[TCI_RULE_TEXT_MAX];
    if (network->mode != TCI_NETWORK_RULES) {
        tci_json_string(out, name, tci_network_mode_name(network->mode));
        return;
    }
    tci_json_array_begin(out, name);
    for (size_t i = 0; i < network->count; i++)
        tci_json_string(out, NULL, tci_netrule_format(&network->rules[i].rule, text));
    tci_json_array_end(out);
}

static void write_hosts(struct tci_json *out, const char *name, const void *field)
{
    write_network(out, name, field);
}

/* What a grant does not speak of is not written, and neither is what no tool has unless it says so. */
static void write_network_limits(struct tci_json *out, const char *name, const void *field)
{
    const struct tci_network_limits *limits = field;
    const struct {
        const char *name;
        uint64_t value;
    } sizes[] = {
        { "bytes_in", limits->bytes_in },
        { "bytes_out", limits->bytes_out },
        { "rate", limits->rate },
    };
    tci_json_object_begin(out, name);
    if (!limits->connections)
        tci_json_string(out, "connections", unlimited);
    else if (limits->connections != TCI_UNLIMITED)
        tci_json_unsigned(out, "connections", limits->connections);
    for (size_t i = 0; i < tci_array_size(sizes); i++)
        if (sizes[i].value && sizes[i].value != TCI_UNLIMITED)
            write_size(out, sizes[i].name, &sizes[i].value);
    tci_json_object_end(out);
}

static void write_inspect(struct tci_json *out, const char *name, const void *field)
{
    tci_json_string(out, name, *(const bool *)field ? "strict" : "names");
}

static void write_path_rule(struct tci_json *out, const struct tci_path_rule *rule)
{
    const char *host = rule->host ? rule->host : rule->cage;
    bool plain = !rule->optional && !strchr(host, ':') && !strchr(rule->cage, ':');
    if (plain && strcmp(host, rule->cage) == 0) {
        tci_json_string(out, NULL, rule->cage);
        return;
    }
    tci_json_object_begin(out, NULL);
    tci_json_string(out, "host", host);
    tci_json_string(out, "cage", rule->cage);
    if (rule->optional)
        tci_json_bool(out, "optional", true);
    tci_json_object_end(out);
}

static void write_filesystem(struct tci_json *out, const char *name, const void *field)
{
    const struct tci_filesystem *fs = field;
    static const enum tci_access order[] = { TCI_ACCESS_READABLE, TCI_ACCESS_WRITABLE,
                                             TCI_ACCESS_HIDDEN };
    tci_json_object_begin(out, name);
    for (size_t a = 0; a < tci_array_size(order); a++) {
        bool open = false;
        for (size_t i = 0; i < fs->count; i++) {
            if (fs->rules[i].access != order[a])
                continue;
            if (!open)
                tci_json_array_begin(out, tci_access_name(order[a]));
            open = true;
            write_path_rule(out, &fs->rules[i]);
        }
        if (open)
            tci_json_array_end(out);
    }
    if (fs->scratch != TCI_SCRATCH_UNSET)
        write_size(out, "scratch", &fs->scratch);
    if (fs->cwd)
        tci_json_string(out, "cwd", fs->cwd);
    tci_json_object_end(out);
}

static void write_syscalls(struct tci_json *out, const char *name, const void *field)
{
    const struct tci_syscalls *syscalls = field;
    const char *profile = tci_syscall_profile_name(syscalls->profile);
    if (!syscalls->allow.count && !syscalls->deny.count) {
        tci_json_string(out, name, profile);
        return;
    }
    tci_json_object_begin(out, name);
    tci_json_string(out, "profile", profile);
    if (syscalls->allow.count)
        write_strings(out, "allow", &syscalls->allow);
    if (syscalls->deny.count)
        write_strings(out, "deny", &syscalls->deny);
    tci_json_object_end(out);
}

static void write_capabilities(struct tci_json *out, const char *name, const void *field)
{
    unsigned capabilities = *(const unsigned *)field;
    static const char *const names[] = { "fs_read", "fs_write", "net_http", "exec_run" };
    tci_json_array_begin(out, name);
    for (size_t i = 0; i < tci_array_size(names); i++)
        if (capabilities & (1U << i))
            tci_json_string(out, NULL, names[i]);
    tci_json_array_end(out);
}

static void write_paths(struct tci_json *out, const char *name, const void *field)
{
    const struct tci_filesystem *fs = field;
    tci_json_array_begin(out, name);
    for (size_t i = 0; i < fs->count; i++)
        write_path_rule(out, &fs->rules[i]);
    tci_json_array_end(out);
}

static void write_environment(struct tci_json *out, const char *name, const void *field)
{
    const struct tci_environment *env = field;
    tci_json_object_begin(out, name);
    for (size_t i = 0; i < env->count; i++)
        tci_json_string(out, env->items[i].name, env->items[i].value);
    tci_json_object_end(out);
}

static bool is_plain_ascii(const char *text)
{
    for (; *text; text++)
        if (*text < 0x20 || *text > 0x7e)
            return false;
    return true;
}

/* JSON can hold a schema as it is. TOML has no null, so there it is a text: between single quotes,
 * which need no escapes, unless it contains one. */
static void write_schema(struct tci_json *out, const char *name, const void *field)
{
    const struct tci_schema *schema = field;
    tc_cleanup(tci_buf_free) struct tci_buf literal = TCI_BUF_INIT(TCI_SCHEMA_BYTES_MAX + 2);
    bool is_boolean = schema->json[0] != '{';
    if (out->syntax == TCI_SYNTAX_JSON || is_boolean) {
        tci_json_value(out, name, schema->json);
        return;
    }
    if (strchr(schema->json, '\'') || !is_plain_ascii(schema->json)) {
        tci_json_string(out, name, schema->json);
        return;
    }
    tci_buf_printf(&literal, "'%s'", schema->json);
    if (tci_buf_check(&literal, NULL) < 0)
        out->out->no_memory = true;
    else
        tci_json_raw(out, name, literal.data);
}

static void write_outputs(struct tci_json *out, const char *name, const void *field)
{
    const struct tci_outputs *outputs = field;
    tci_json_object_begin(out, name);
    write_strings(out, "globs", &outputs->globs);
    write_size(out, "max_file", &outputs->max_file);
    write_count(out, "max_files", &outputs->max_files);
    tci_json_object_end(out);
}

/* Without its mounts: they are part of the file system by now. */
static void write_container(struct tci_json *out, const char *name, const void *field)
{
    const struct tci_container *container = field;
    tci_json_object_begin(out, name);
    if (container->engine)
        tci_json_string(out, "engine", container->engine);
    if (container->runtime)
        tci_json_string(out, "runtime", container->runtime);
    if (container->user)
        tci_json_string(out, "user", container->user);
    write_strings(out, "cap_drop", &container->cap_drop);
    write_strings(out, "cap_add", &container->cap_add);
    tci_json_bool(out, "read_only_rootfs", container->read_only_rootfs);
    tci_json_bool(out, "no_new_privileges", container->no_new_privileges);
    tci_json_object_end(out);
}

static void write_mcp(struct tci_json *out, const char *name, const void *field)
{
    const struct tci_wrapped *mcp = field;
    tci_json_object_begin(out, name);
    if (!mcp->any_tool)
        write_strings(out, "tools", &mcp->tools);
    /* Written out, the default would be a choice of the author's, which counts for more. */
    if (mcp->has_features) {
        tci_json_array_begin(out, "features");
        for (size_t i = 0; tci_mcp_feature_name(i); i++)
            if (mcp->features & 1U << i)
                tci_json_string(out, NULL, tci_mcp_feature_name(i));
        tci_json_array_end(out);
    }
    write_size(out, "message", &mcp->message);
    write_count(out, "rate", &mcp->rate);
    write_count(out, "calls", &mcp->calls);
    if (mcp->pin)
        tci_json_string(out, "pin", mcp->pin);
    tci_json_object_end(out);
}

static void write_record(struct tci_json *out, const char *name, const void *field)
{
    enum tci_record record = *(const enum tci_record *)field;
    if (record == TCI_RECORD_HASH_ONLY)
        tci_json_string(out, name, tci_record_name(record));
    else
        tci_json_bool(out, name, record == TCI_RECORD_TRUE);
}

bool tci_value_is_compiled(enum tci_key key)
{
    return key == TCI_KEY_CAPABILITIES || key == TCI_KEY_ALLOWED_PATHS ||
           key == TCI_KEY_ALLOWED_HOSTS || key == TCI_KEY_ALLOWED_COMMANDS;
}

bool tci_value_is_set(const struct tci_settings *s, enum tci_key key)
{
    switch (key) {
    case TCI_KEY_DESCRIPTION:
        return s->description != NULL;
    case TCI_KEY_NETWORK_LIMITS:
    case TCI_KEY_INSPECT:
        return tci_network_has_gate(&s->network);
    case TCI_KEY_ROOTFS:
        return s->rootfs != NULL;
    case TCI_KEY_IMAGE:
        return s->image != NULL;
    case TCI_KEY_COMMANDS:
        return !s->commands.any;
    case TCI_KEY_ENV:
        return s->env.count > 0;
    case TCI_KEY_ENV_PASS:
        return s->env_pass.count > 0;
    case TCI_KEY_BUILTIN:
        return s->builtin != NULL;
    case TCI_KEY_REDACT:
        return s->redact.count > 0;
    case TCI_KEY_COMMAND:
        return s->command.count > 0;
    case TCI_KEY_PARAMETERS:
        return s->parameters.json != NULL;
    case TCI_KEY_RETURNS:
        return s->returns.json != NULL;
    case TCI_KEY_OUTPUTS:
        return s->outputs.globs.count > 0;
    case TCI_KEY_MCP:
        return s->mcp.given;
    case TCI_KEY_CONTAINER:
        return s->backend == TCI_BACKEND_OCI || s->backend == TCI_BACKEND_GVISOR;
    default:
        return key < TCI_KEY_COUNT;
    }
}

typedef void write_function(struct tci_json *out, const char *name, const void *field);

static const struct {
    write_function *write;
    size_t offset;
} writers[] = {
#define X(id, name, field, where, type, standard, doc)                                             \
    { write_##type, offsetof(struct tci_settings, field) },
#include "policy/keys.def"
#undef X
};

void tci_value_write(struct tci_json *out, const char *name, const struct tci_settings *s,
                     enum tci_key key)
{
    writers[key].write(out, name, (const char *)s + writers[key].offset);
}
