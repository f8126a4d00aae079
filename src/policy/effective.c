/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what a tool has in the end. For each key: the tool's own value, else the one of [defaults],
 * else the built-in one. A value replaces the inherited one whole; lists are never merged, so that
 * what a tool's table shows is what the tool has.
 *
 * `capabilities` and `allowed_*` are compiled to `filesystem`, `network` and `commands` here: after
 * this file there is only one way in which a permission is expressed.
 */
#include "policy/reader.h"

#include <stdio.h>
#include <string.h>
#include "policy/cage_paths.h"

#define BIT(id) tci_key_bit(TCI_KEY_##id)

enum { path_rules_max = 200000 };

static const uint64_t capability_keys = BIT(CAPABILITIES) | BIT(ALLOWED_PATHS) |
                                        BIT(ALLOWED_HOSTS) | BIT(ALLOWED_COMMANDS);
static const uint64_t compiled_keys = BIT(NETWORK) | BIT(FILESYSTEM) | BIT(COMMANDS);

struct tci_container tci_container_default(void)
{
    static struct tci_string all = { .text = "ALL" };
    return (struct tci_container){
        .cap_drop = { .items = &all, .count = 1 },
        .read_only_rootfs = true,
        .no_new_privileges = true,
    };
}

struct tci_network_limits tci_network_limits_default(void)
{
    return (struct tci_network_limits){ .connections = TCI_CONNECTIONS_DEFAULT };
}

static bool is_container(enum tci_backend_kind backend)
{
    return backend == TCI_BACKEND_OCI || backend == TCI_BACKEND_GVISOR;
}

/* The built-in values; some depend on the backend. */
static void set_builtin(enum tci_backend_kind backend, struct tci_settings *s)
{
    *s = (struct tci_settings){
        .backend = TCI_BACKEND_JAIL,
        .network_limits = tci_network_limits_default(),
        .filesystem = { .scratch = TCI_SCRATCH_UNSET },
        .system = backend == TCI_BACKEND_PROCESS || backend == TCI_BACKEND_JAIL,
        .image = is_container(backend) ? "toolcage/tool-sandbox" : NULL,
        .timeout = 30000,
        .cpu_time = TCI_UNLIMITED,
        .memory = 256000000,
        .cpu = 1000,
        .pids = 64,
        .files = 256,
        .disk = 256000000,
        .output = 1000000,
        .syscalls.profile = backend == TCI_BACKEND_PROCESS ? TCI_SYSCALLS_PURE
                                                           : TCI_SYSCALLS_DEFAULT,
        .commands.any = true,
        .parameters.json = "{}",
        .outputs = { .max_file = TCI_MAX_FILE_DEFAULT, .max_files = TCI_MAX_FILES_DEFAULT },
        .container = tci_container_default(),
        .record = TCI_RECORD_TRUE,
        .approval_timeout = TCI_APPROVAL_TIMEOUT_DEFAULT,
        .mcp = tci_wrapped_default(),
    };
}

/* Copies each value that the tool has not set itself. */
static void inherit(const struct tci_settings *from, uint64_t which, enum tci_origin source,
                    struct tci_tool *tool)
{
    struct tci_settings *to = &tool->settings;
#define X(id, name, field, where, type, standard, doc)                                             \
    if (which & BIT(id)) {                                                                         \
        to->field = from->field;                                                                   \
        to->pos[TCI_KEY_##id] = from->pos[TCI_KEY_##id];                                           \
        tool->source[TCI_KEY_##id] = (uint8_t)source;                                              \
    }
#include "policy/keys.def"
#undef X
}

/* ---- capabilities ------------------------------------------------------------------------- */

static int check_mixture(struct tci_reader *reader, const struct tci_settings *table,
                         const char *where)
{
    static const enum tci_key compiled[] = { TCI_KEY_NETWORK, TCI_KEY_FILESYSTEM,
                                             TCI_KEY_COMMANDS };
    if (!(table->present & capability_keys))
        return 0;
    for (size_t i = 0; i < tci_array_size(compiled); i++)
        if (table->present & tci_key_bit(compiled[i]))
            return tci_read_fail(reader, TCI_FINDING_CONFLICT, table->pos[compiled[i]],
                                 "use either capabilities with allowed_*, or the plain keys",
                                 "\"%s\" in %s stands beside capabilities, which replace it",
                                 tci_key_name(compiled[i]), where);
    return 0;
}

/* Room for rules that are made for one tool. A small file could have a few long lists copied into
 * thousands of tools: the sum has a maximum. */
static struct tci_path_rule *new_rules(struct tci_reader *reader, size_t count)
{
    struct tci_path_rule *rules;
    reader->path_rules += count;
    if (reader->path_rules > path_rules_max) {
        tci_read_fail(reader, TCI_FINDING_OUT_OF_RANGE, tci_pos(1, 1),
                      "grant directories, not every file in them",
                      "the tools have more than %d paths in all", path_rules_max);
        return NULL;
    }
    rules = tci_arena_new_array(reader->arena, count, struct tci_path_rule);
    if (!rules)
        tci_read_no_memory(reader);
    return rules;
}

/* fs_read makes the paths readable, fs_write writable (which includes reading). */
static int compile_paths(struct tci_reader *reader, struct tci_settings *s)
{
    struct tci_filesystem *fs = &s->filesystem;
    enum tci_access access = s->capabilities & TCI_CAP_FS_WRITE ? TCI_ACCESS_WRITABLE
                                                                : TCI_ACCESS_READABLE;

    *fs = (struct tci_filesystem){ .scratch = TCI_SCRATCH_UNSET };
    if (!(s->capabilities & (TCI_CAP_FS_READ | TCI_CAP_FS_WRITE)))
        return 0;
    fs->rules = new_rules(reader, s->allowed_paths.count);
    if (!fs->rules)
        return -1;
    for (size_t i = 0; i < s->allowed_paths.count; i++) {
        fs->rules[i] = s->allowed_paths.rules[i];
        fs->rules[i].access = access;
    }
    fs->count = s->allowed_paths.count;
    return 0;
}

static void compile_hosts(struct tci_settings *s)
{
    s->network = s->capabilities & TCI_CAP_NET_HTTP ? s->allowed_hosts
                                                    : (struct tci_network){ .count = 0 };
}

static void compile_commands(struct tci_settings *s)
{
    s->commands = s->capabilities & TCI_CAP_EXEC_RUN ? s->allowed_commands
                                                     : (struct tci_commands){ .any = false };
    s->commands.any = false;
}

/* The key that an answer about a compiled value should point at: the list, else the capability. */
static void set_origin(struct tci_tool *tool, enum tci_key compiled, enum tci_key list)
{
    enum tci_key key = tool->source[list] != TCI_FROM_BUILTIN ? list : TCI_KEY_CAPABILITIES;
    tool->source[compiled] = tool->source[key];
    tool->settings.pos[compiled] = tool->settings.pos[key];
}

/* `own_plain` are the plain keys in the tool's own table: they beat inherited capabilities. */
static int compile_capabilities(struct tci_reader *reader, uint64_t own_plain,
                                struct tci_tool *tool)
{
    struct tci_settings *s = &tool->settings;
    if (!(own_plain & BIT(FILESYSTEM))) {
        if (compile_paths(reader, s) < 0)
            return -1;
        set_origin(tool, TCI_KEY_FILESYSTEM, TCI_KEY_ALLOWED_PATHS);
    }
    if (!(own_plain & BIT(NETWORK))) {
        compile_hosts(s);
        set_origin(tool, TCI_KEY_NETWORK, TCI_KEY_ALLOWED_HOSTS);
    }
    if (!(own_plain & BIT(COMMANDS))) {
        compile_commands(s);
        set_origin(tool, TCI_KEY_COMMANDS, TCI_KEY_ALLOWED_COMMANDS);
    }
    return 0;
}

/* ---- checks across keys ------------------------------------------------------------------- */

/* Container mounts are grants like any other: they join the file system's rules. */
static int join_mounts(struct tci_reader *reader, struct tci_settings *s)
{
    struct tci_mounts *mounts = &s->container.mounts;
    struct tci_filesystem *fs = &s->filesystem;
    struct tci_path_rule *rules;

    if (!mounts->count || !is_container(s->backend))
        return 0;
    rules = new_rules(reader, fs->count + mounts->count);
    if (!rules)
        return -1;
    for (size_t i = 0; i < mounts->count; i++)
        for (size_t j = 0; j < fs->count; j++)
            if (strcmp(mounts->rules[i].cage, fs->rules[j].cage) == 0)
                return tci_read_fail(reader, TCI_FINDING_CONFLICT, mounts->rules[i].pos,
                                     "grant the path once",
                                     "\"mounts\" in %s names %s, which \"filesystem\" names too",
                                     reader->where, mounts->rules[i].cage);
    if (fs->count)
        memcpy(rules, fs->rules, fs->count * sizeof *rules);
    memcpy(rules + fs->count, mounts->rules, mounts->count * sizeof *rules);
    fs->rules = rules;
    fs->count += mounts->count;
    return 0;
}

static int check_cwd(struct tci_reader *reader, const struct tci_settings *s, struct tci_pos pos)
{
    const struct tci_filesystem *fs = &s->filesystem;
    const char *cwd = fs->cwd;
    const struct tci_path_rule *rule = cwd ? tci_path_rule_find(fs, cwd) : NULL;
    const struct tci_cage_path *own = cwd ? tci_cage_path_find(s, cwd) : NULL;

    if (!cwd || (rule && rule->access != TCI_ACCESS_HIDDEN) || (!rule && own))
        return 0;
    return tci_read_fail(reader, TCI_FINDING_BAD_CWD, pos,
                         "choose a readable or writable path, or /tmp",
                         "\"cwd\" in %s is outside the granted paths: %s", reader->where, cwd);
}

static int check_root(struct tci_reader *reader, const struct tci_settings *table)
{
    if (!(table->present & BIT(ROOTFS)) || !(table->present & BIT(IMAGE)))
        return 0;
    return tci_read_fail(reader, TCI_FINDING_CONFLICT, table->pos[TCI_KEY_IMAGE],
                         "keep one of the two", "%s has both \"rootfs\" and \"image\"",
                         reader->where);
}

/* Keys that only some backends can honour must not be accepted and then ignored. */
static int check_backend_keys(struct tci_reader *reader, const struct tci_settings *own,
                              const struct tci_settings *s)
{
    bool vm = s->backend == TCI_BACKEND_MICROVM, container = is_container(s->backend);
    const struct {
        enum tci_key key;
        bool meaningful;
        const char *remedy;
    } table[] = {
        { TCI_KEY_CONTAINER, container, "set backend = \"oci\" or \"gvisor\", or remove it" },
        { TCI_KEY_IMAGE, container || vm, "set backend = \"oci\" or \"gvisor\", or remove it" },
        { TCI_KEY_ROOTFS, container || vm || s->backend == TCI_BACKEND_JAIL,
          "set backend = \"jail\", \"oci\" or \"gvisor\", or remove it" },
    };
    int status = 0;
    for (size_t i = 0; i < tci_array_size(table); i++)
        if ((own->present & tci_key_bit(table[i].key)) && !table[i].meaningful)
            status = tci_read_fail(
                reader, TCI_FINDING_CONFLICT, own->pos[table[i].key], table[i].remedy,
                "\"%s\" in %s has no meaning for backend \"%s\"", tci_key_name(table[i].key),
                reader->where, tci_backend_kind_name(s->backend));
    return check_root(reader, own) < 0 ? -1 : status;
}

/* A server of somebody else's gets no arguments: what it is asked comes later, as messages. */
static int check_wrapped(struct tci_reader *reader, const struct tci_settings *s)
{
    if (!s->mcp.given || !s->builtin)
        return 0;
    return tci_read_fail(reader, TCI_FINDING_CONFLICT, s->pos[TCI_KEY_MCP],
                         "name the server in \"command\" instead of \"builtin\"",
                         "\"mcp\" in %s: a built-in tool is no MCP server", reader->where);
}

/* Nothing stands between the host's network and a tool that has it: a limit that somebody wrote
 * would be kept by nobody. */
int tci_check_gate_keys(struct tci_reader *reader, const struct tci_settings *given,
                        enum tci_network_mode mode)
{
    static const enum tci_key keys[] = { TCI_KEY_NETWORK_LIMITS, TCI_KEY_INSPECT };
    for (size_t i = 0; mode == TCI_NETWORK_HOST && i < tci_array_size(keys); i++)
        if (given->present & tci_key_bit(keys[i]))
            return tci_read_fail(reader, TCI_FINDING_CONFLICT, given->pos[keys[i]],
                                 "name the hosts in \"network\", or use \"public\"; or remove it",
                                 "\"%s\" in %s cannot be kept: the network is \"host\"",
                                 tci_key_name(keys[i]), reader->where);
    return 0;
}

/* An inherited value that the tool's backend has no use for is dropped, with its origin. */
static void drop_unused(const struct tci_settings *own, struct tci_tool *tool)
{
    struct tci_settings *s = &tool->settings;
    bool container = is_container(s->backend);
    if (!container && s->backend != TCI_BACKEND_MICROVM)
        s->image = NULL;
    if (!container && s->backend != TCI_BACKEND_MICROVM && s->backend != TCI_BACKEND_JAIL)
        s->rootfs = NULL;
    /* One root: the tool's own choice, else the directory. */
    if (s->rootfs && (own->present & BIT(IMAGE)))
        s->rootfs = NULL;
    else if (s->rootfs)
        s->image = NULL;
    if (!container)
        s->container = tci_container_default();
}

int tci_effective(struct tci_reader *reader, const struct tci_settings *defaults,
                  const struct tci_settings *own, struct tci_tool *tool)
{
    struct tci_settings builtin;
    uint64_t all = tci_key_bit(TCI_KEY_COUNT) - 1;
    struct tci_settings *s = &tool->settings;

    if (check_mixture(reader, own, reader->where) < 0)
        return -1;
    *s = *own;
    for (int key = 0; key < TCI_KEY_COUNT; key++)
        tool->source[key] = TCI_FROM_TOOL;
    inherit(defaults, defaults->present & ~own->present, TCI_FROM_DEFAULTS, tool);
    set_builtin((own->present | defaults->present) & BIT(BACKEND) ? s->backend : TCI_BACKEND_JAIL,
                &builtin);
    inherit(&builtin, all & ~(own->present | defaults->present), TCI_FROM_BUILTIN, tool);

    if (tci_apply_builtin(reader, own, tool) < 0 || check_backend_keys(reader, own, s) < 0)
        return -1;
    if (check_wrapped(reader, s) < 0)
        return -1;
    drop_unused(own, tool);
    if (((own->present | defaults->present) & capability_keys) &&
        compile_capabilities(reader, own->present & compiled_keys, tool) < 0)
        return -1;
    if (join_mounts(reader, s) < 0 || tci_check_gate_keys(reader, own, s->network.mode) < 0)
        return -1;
    /* The process backend has no mount namespace in which /tmp could be private. */
    if (s->filesystem.scratch == TCI_SCRATCH_UNSET)
        s->filesystem.scratch = s->backend == TCI_BACKEND_PROCESS ? 0 : TCI_SCRATCH_DEFAULT;
    return check_cwd(reader, s, s->pos[TCI_KEY_FILESYSTEM]);
}

int tci_check_defaults(struct tci_reader *reader, const struct tci_settings *defaults)
{
    if (check_mixture(reader, defaults, "[defaults]") < 0 ||
        tci_check_gate_keys(reader, defaults, defaults->network.mode) < 0)
        return -1;
    return check_root(reader, defaults);
}
