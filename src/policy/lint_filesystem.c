/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: lint of paths. The attacks: a tool reads the credentials of the person who runs it, or
 * writes where the host will later run or trust what it finds.
 */
#include "policy/lint_internal.h"

#include <stdio.h>
#include <string.h>
#include "base/path.h"
#include "base/sys.h"

enum kind {
    KIND_SECRET,
    KIND_MAYBE,
    KIND_KEYFILE,
    KIND_PLACE,
    KIND_SYSTEM,
    KIND_SHARED,
    KIND_STARTUP,
    KIND_HOMES,
};

static const struct known {
    enum kind kind;
    const char *path;
} known[] = {
#define SECRET(name)  { KIND_SECRET, name },
#define MAYBE(name)   { KIND_MAYBE, name },
#define KEYFILE(end)  { KIND_KEYFILE, end },
#define PLACE(path)   { KIND_PLACE, path },
#define SYSTEM(path)  { KIND_SYSTEM, path },
#define SHARED(path)  { KIND_SHARED, path },
#define STARTUP(name) { KIND_STARTUP, name },
#define HOMES(path)   { KIND_HOMES, path },
#include "policy/lint_secrets.def"
#undef SECRET
#undef MAYBE
#undef KEYFILE
#undef PLACE
#undef SYSTEM
#undef SHARED
#undef STARTUP
#undef HOMES
};

static bool is_root(const char *path)
{
    return strcmp(path, "/") == 0;
}

/* "/root", "/home", "/home/NAME", or the caller's own. */
static bool is_home(const struct tci_lint *lint, const char *directory)
{
    const char *home = lint->options->home;
    for (size_t i = 0; i < tci_array_size(known); i++)
        if (known[i].kind == KIND_HOMES && tci_path_is_within(directory, known[i].path) &&
            tci_path_depth(directory) <= tci_path_depth(known[i].path) + 1)
            return true;
    return strcmp(directory, "/root") == 0 ||
           (home && !is_root(home) && tci_path_is_within(home, directory) && !is_root(directory));
}

/* Where a path of the host, which lies within rule->host, is in the cage. */
static const char *cage_path(const struct tci_path_rule *rule, const char *path,
                             char buffer[2 * TCI_PATH_MAX + 1])
{
    size_t below = is_root(rule->host) ? 0 : strlen(rule->host);
    if (strcmp(path, rule->host) == 0)
        return rule->cage;
    (void)snprintf(buffer, 2 * TCI_PATH_MAX + 1, "%s%s", is_root(rule->cage) ? "" : rule->cage,
                   path + below);
    return buffer;
}

/* Does the rule show this path of the host, which lies within rule->host? Not if another rule is
 * more specific at its place in the cage, or hides it there. */
static bool shows(const struct tci_filesystem *fs, const struct tci_path_rule *rule,
                  const char *path)
{
    char buffer[2 * TCI_PATH_MAX + 1];
    const char *cage = cage_path(rule, path, buffer);
    size_t depth = strlen(rule->cage);
    for (size_t i = 0; i < fs->count; i++) {
        const struct tci_path_rule *other = &fs->rules[i];
        size_t other_depth = strlen(other->cage);
        if (other != rule && tci_path_is_within(cage, other->cage) &&
            (other_depth > depth || (other_depth == depth && other->access < rule->access)))
            return false;
    }
    return true;
}

/* ---- secrets ------------------------------------------------------------------------------- */

static bool ends_with(const char *name, const char *end)
{
    size_t length = strlen(name), end_length = strlen(end);
    return length > end_length && strcmp(name + length - end_length, end) == 0;
}

/* What may lie beside secrets, or be called like one, and is none. */
static bool is_harmless(const char *name)
{
    static const char *const names[] = { "known_hosts", "ssh_known_hosts", "ssh_config" };
    static const char *const ends[] = { ".pub", ".example", ".sample", ".template", ".dist" };
    for (size_t i = 0; i < tci_array_size(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    for (size_t i = 0; i < tci_array_size(ends); i++)
        if (ends_with(name, ends[i]))
            return true;
    return false;
}

/* Certificates have the same endings as keys; they are called like this. */
static bool is_certificate(const char *path, const char *name)
{
    static const char *const words[] = { "cert", "chain", "bundle", "pub" };
    for (size_t i = 0; i < tci_array_size(words); i++)
        if (strstr(name, words[i]))
            return true;
    return strncmp(name, "ca", 2) == 0 || tci_path_is_within(path, "/etc/ssl/certs") ||
           tci_path_is_within(path, "/usr");
}

/* Does the path contain these components, one after the other? ".env.local" counts as ".env". */
static bool has_components(const char *path, const char *wanted)
{
    size_t length = strlen(wanted);
    for (const char *p = path; (p = strstr(p, wanted)) != NULL; p++) {
        char after = p[length];
        bool whole = after == '\0' || after == '/';
        if (p > path && p[-1] == '/' && (whole || (after == '.' && strcmp(wanted, ".env") == 0)))
            return true;
    }
    return false;
}

static bool is_secret(const char *path)
{
    bool dotted = strstr(path, "/.") != NULL; /* most paths have no name that begins so */
    const char *name = strrchr(path, '/') + 1;
    if (is_harmless(name))
        return false;
    for (size_t i = 0; i < tci_array_size(known); i++) {
        if (known[i].kind <= KIND_MAYBE && known[i].path[0] == '.' && !dotted)
            continue;
        const char *text = known[i].path;
        enum kind kind = known[i].kind;
        if ((kind <= KIND_MAYBE && has_components(path, text)) ||
            (kind == KIND_KEYFILE && ends_with(name, text) && !is_certificate(path, name)) ||
            (kind == KIND_PLACE && tci_path_is_within(path, text)))
            return true;
    }
    return false;
}

/* The secrets in one granted directory make one finding, which names the first few. */
struct secrets {
    size_t count;
    char list[600], hide[400];
};

enum { named_max = 3 };

static void add_secret(const struct tci_path_rule *rule, const char *path, struct secrets *secrets)
{
    char buffer[2 * TCI_PATH_MAX + 1];
    size_t used = strlen(secrets->list), hide = strlen(secrets->hide);
    if (secrets->count++ >= named_max)
        return;
    (void)snprintf(secrets->list + used, sizeof secrets->list - used, "%s\"%.160s\"",
                   used ? ", " : "", path);
    (void)snprintf(secrets->hide + hide, sizeof secrets->hide - hide, "%s\"%.100s\"",
                   hide ? ", " : "", cage_path(rule, path, buffer));
}

static void report_secrets(struct tci_lint *lint, const struct tci_path_rule *rule,
                           const struct secrets *secrets)
{
    size_t more = secrets->count > named_max ? secrets->count - named_max : 0;
    char remedy[512], rest[32] = "";
    if (more)
        (void)snprintf(rest, sizeof rest, " and %zu more", more);
    (void)snprintf(remedy, sizeof remedy,
                   "grant only what the tool needs, or hide the secrets: hidden = [%.400s%s]",
                   secrets->hide, more ? ", ..." : "");
    tci_lint_add(lint, TCI_FINDING_SECRET_READABLE, rule->pos, remedy,
                 "%s \"%.100s\" includes secrets: %s%s", tci_access_name(rule->access), rule->host,
                 secrets->list, rest);
}

/* Is there something on this host that can be looked at, or into? */
static bool is_there(const struct tci_lint *lint, const char *path)
{
    struct stat st;
    return lint->options->look_at_files && tci_sys.lstat(path, &st) == 0;
}

/* Notes the secret if it is there. Apart from find_name(), for the size of its buffer. */
static void look_for(const struct tci_filesystem *fs, const struct tci_path_rule *rule,
                     const char *below, bool look, struct secrets *secrets)
{
    char path[TCI_PATH_MAX + 64];
    struct stat st;
    if (snprintf(path, sizeof path, "%s/%s", is_root(rule->host) ? "" : rule->host, below) >
        TCI_PATH_MAX)
        return;
    if ((!look || tci_sys.lstat(path, &st) == 0) && shows(fs, rule, path))
        add_secret(rule, path, secrets);
}

/* Is the secret `name` in the granted directory? On this host that can be seen. Without looking,
 * only a directory that is known to hold it is suspicious: ".config" for ".config/gcloud". */
static void find_name(const struct tci_lint *lint, const struct tci_filesystem *fs,
                      const struct tci_path_rule *rule, const struct known *secret, size_t split,
                      bool look, struct secrets *secrets)
{
    size_t host = strlen(rule->host);
    bool suspicious = split > 0 && secret->kind == KIND_SECRET && !lint->options->look_at_files;

    if (!look && !suspicious)
        return;
    if (split > 0 && (host < split + 1 || rule->host[host - split - 1] != '/' ||
                      memcmp(rule->host + host - split, secret->path, split) != 0))
        return;
    look_for(fs, rule, secret->path + split + (split > 0), look, secrets);
}

static void lint_secrets(struct tci_lint *lint, const struct tci_filesystem *fs,
                         const struct tci_path_rule *rule, bool look)
{
    struct secrets secrets = { 0 };
    if (is_secret(rule->host)) {
        if (shows(fs, rule, rule->host))
            tci_lint_add(lint, TCI_FINDING_SECRET_READABLE, rule->pos, "do not grant it",
                         "%s makes a secret visible: \"%.300s\"", tci_access_name(rule->access),
                         rule->host);
        return;
    }
    for (size_t i = 0; i < tci_array_size(known); i++) {
        const char *path = known[i].path;
        if (known[i].kind <= KIND_MAYBE && !look && lint->options->look_at_files)
            continue; /* nothing is there */
        if (known[i].kind <= KIND_MAYBE) {
            find_name(lint, fs, rule, &known[i], 0, look, &secrets);
            for (const char *slash = path; (slash = strchr(slash, '/')) != NULL; slash++)
                find_name(lint, fs, rule, &known[i], (size_t)(slash - path), look, &secrets);
        } else if (known[i].kind == KIND_PLACE && !is_root(rule->host) &&
                   tci_path_is_within(path, rule->host) && shows(fs, rule, path)) {
            /* The root contains all of them: that is a finding of its own. */
            add_secret(rule, path, &secrets);
        }
    }
    if (secrets.count)
        report_secrets(lint, rule, &secrets);
}

/* ---- wide and writable paths --------------------------------------------------------------- */

static void lint_wide(struct tci_lint *lint, const struct tci_path_rule *rule)
{
    bool root = is_root(rule->host), home = is_home(lint, rule->host);
    if ((root || home) && rule->access == TCI_ACCESS_WRITABLE)
        tci_lint_add(lint, TCI_FINDING_ROOT_WRITABLE, rule->pos,
                     "grant only the directory that the tool works on",
                     root ? "the host's root directory is writable"
                          : "a whole home directory is writable: \"%.300s\"",
                     rule->host);
    else if (root || home)
        tci_lint_add(lint, TCI_FINDING_HOME_READABLE, rule->pos,
                     "grant only the directories that the tool needs",
                     root ? "the host's root directory is readable"
                          : "a whole home directory is readable: \"%.300s\"",
                     rule->host);
}

/* Is it what the host runs or trusts, or does it include such a thing? */
static bool is_trusted(const char *path, const struct known *trusted)
{
    switch (trusted->kind) {
    case KIND_SYSTEM:
        return tci_path_is_within(path, trusted->path) || tci_path_is_within(trusted->path, path);
    case KIND_SHARED:
        return tci_path_is_within(trusted->path, path);
    case KIND_STARTUP:
        return has_components(path, trusted->path);
    default:
        return false;
    }
}

static void lint_system(struct tci_lint *lint, const struct tci_path_rule *rule)
{
    if (rule->access != TCI_ACCESS_WRITABLE || is_root(rule->host))
        return;
    for (size_t i = 0; i < tci_array_size(known); i++) {
        if (!is_trusted(rule->host, &known[i]))
            continue;
        tci_lint_add(lint, TCI_FINDING_SYSTEM_WRITABLE, rule->pos,
                     "grant a directory that belongs to the tool alone",
                     "\"%.300s\" is writable, and the host runs or trusts what is in %s",
                     rule->host, known[i].path);
        return;
    }
}

/* One path in both lists; or one directory of the host at two places of the cage, so that what
 * was granted for reading can be written at the other place. */
static void report_both(struct tci_lint *lint, const struct tci_path_rule *rule,
                        const struct tci_path_rule *other)
{
    char buffer[2 * TCI_PATH_MAX + 1];
    tci_lint_add(lint, TCI_FINDING_READABLE_AND_WRITABLE, rule->pos, "grant it at one place only",
                 "\"%.150s\" is readable as \"%.150s\" and writable as \"%.150s\"", other->host,
                 other->cage, cage_path(rule, other->host, buffer));
}

static void lint_both(struct tci_lint *lint, const struct tci_filesystem *fs,
                      const struct tci_path_rule *rule)
{
    if (rule->access != TCI_ACCESS_WRITABLE || !tci_lint_may_compare(lint, fs->count))
        return;
    for (size_t i = 0; i < fs->count; i++) {
        const struct tci_path_rule *other = &fs->rules[i];
        if (other->access != TCI_ACCESS_READABLE)
            continue;
        if (strcmp(other->cage, rule->cage) == 0)
            tci_lint_add(lint, TCI_FINDING_READABLE_AND_WRITABLE, rule->pos,
                         "keep it in one list; writable includes readable",
                         "\"%.300s\" is both readable and writable; it will be only readable",
                         rule->cage);
        else if (tci_path_is_within(other->host, rule->host) &&
                 tci_lint_may_compare(lint, fs->count) && shows(fs, rule, other->host))
            report_both(lint, rule, other);
    }
}

/* A narrower rule that hides it there, or makes it readable, is no help: the kernel takes that cover off a running
 * cage when the file is replaced by rename, as editors do. */
static bool can_write(const struct tci_path_rule *rule, const char *path)
{
    return path && tci_path_is_within(path, rule->host);
}

/* A tool that can write its policy decides its own permissions from the next call on. The schemas and
 * tool directories that a policy names are part of it. */
static void lint_policy_writable(struct tci_lint *lint, const struct tci_path_rule *rule)
{
    const struct tc_policy *policy = lint->policy;
    const char *slash = strrchr(policy->file, '/');
    char file[2 * TCI_PATH_MAX];
    bool can = false;

    if (rule->access != TCI_ACCESS_WRITABLE)
        return;
    if (policy->directory && strcmp(policy->file, "-") != 0) {
        (void)snprintf(file, sizeof file, "%s/%s",
                       is_root(policy->directory) ? "" : policy->directory,
                       slash ? slash + 1 : policy->file);
        can = can_write(rule, file);
    }
    for (size_t i = 0; !can && i < policy->tool_directory_count; i++)
        can = can_write(rule, policy->tool_directories[i].path) ||
              tci_path_is_within(rule->host, policy->tool_directories[i].path);
    for (size_t i = 0; lint->has_schema_files && !can && i < policy->tool_count; i++)
        can = can_write(rule, policy->tools[i].settings.parameters.file) ||
              can_write(rule, policy->tools[i].settings.returns.file);
    if (can)
        tci_lint_add(lint, TCI_FINDING_POLICY_WRITABLE, rule->pos,
                     "keep the policy, its tool files and schemas elsewhere",
                     "the tool can rewrite this policy through \"%.300s\"", rule->host);
}

/* ---- the whole ----------------------------------------------------------------------------- */

void tci_lint_not_expanded(struct tci_lint *lint, const char *given, struct tci_pos pos)
{
    bool expands = given && given[0] == '~';
    for (const char *p = given; p && (p = strchr(p, '$')) != NULL; p++)
        expands |= p[1] == '{' || p[1] == '_' || (p[1] >= 'A' && p[1] <= 'Z') ||
                   (p[1] >= 'a' && p[1] <= 'z');
    if (expands)
        tci_lint_add(lint, TCI_FINDING_NOT_EXPANDED, pos,
                     "write the path out, or make it relative to the policy file",
                     "\"%.300s\" is taken as it stands: ~ and ${VAR} are not expanded", given);
}

/* What is hidden at one place of the cage must not show at another: the author took it for hidden. */
static void lint_hidden_source(struct tci_lint *lint, const struct tci_filesystem *fs,
                               const struct tci_path_rule *hidden, const struct tci_path_rule *rule)
{
    char path[2 * TCI_PATH_MAX + 1], buffer[2 * TCI_PATH_MAX + 1];
    size_t below = is_root(rule->cage) ? 0 : strlen(rule->cage);
    if (!tci_lint_may_compare(lint, fs->count))
        return;
    (void)snprintf(path, sizeof path, "%s%s", is_root(rule->host) ? "" : rule->host,
                   hidden->cage + below);
    for (size_t i = 0; i < fs->count; i++) {
        const struct tci_path_rule *other = &fs->rules[i];
        if (other == rule || !other->host || !tci_path_is_within(path, other->host) ||
            !tci_lint_may_compare(lint, fs->count) || !shows(fs, other, path))
            continue;
        tci_lint_add(lint, TCI_FINDING_SECRET_READABLE, other->pos,
                     "hide it there too, or do not grant it twice",
                     "\"%.150s\" is hidden as \"%.150s\", and shows as \"%.150s\"", path,
                     hidden->cage, cage_path(other, path, buffer));
    }
}

static void lint_hidden(struct tci_lint *lint, const struct tci_filesystem *fs,
                        const struct tci_path_rule *hidden)
{
    if (!tci_lint_may_compare(lint, fs->count))
        return;
    for (size_t i = 0; i < fs->count; i++)
        if (fs->rules[i].host && tci_path_is_within(hidden->cage, fs->rules[i].cage))
            lint_hidden_source(lint, fs, hidden, &fs->rules[i]);
}

/* On this host a link can be followed: what it leads to is what is granted. */
static void lint_link(struct tci_lint *lint, const struct tci_filesystem *fs,
                      const struct tci_path_rule *rule)
{
    char resolved[TCI_PATH_MAX + 1];
    struct tci_path_rule target = *rule;
    if (!tci_sys.realpath(rule->host, resolved) || strcmp(resolved, rule->host) == 0)
        return;
    target.host = resolved;
    lint_wide(lint, &target);
    lint_system(lint, &target);
    lint_secrets(lint, fs, &target, true);
    lint_policy_writable(lint, &target);
}

static void lint_rule(struct tci_lint *lint, const struct tci_filesystem *fs,
                      const struct tci_path_rule *rule)
{
    bool there;
    tci_lint_not_expanded(lint, rule->as_given, rule->pos);
    if (!rule->host) {
        lint_hidden(lint, fs, rule);
        return;
    }
    there = is_there(lint, rule->host);
    lint_wide(lint, rule);
    lint_system(lint, rule);
    lint_secrets(lint, fs, rule, there);
    lint_both(lint, fs, rule);
    lint_policy_writable(lint, rule);
    if (there)
        lint_link(lint, fs, rule);
}

/* A root directory is a grant like any other: all of it can be read. */
static void lint_rootfs(struct tci_lint *lint)
{
    const struct tci_settings *s = &lint->tool->settings;
    const char *directory = lint->policy->directory;
    struct tci_path_rule rule = { .host = s->rootfs, .cage = "/", .as_given = s->rootfs };
    bool inherited = lint->tool->source[TCI_KEY_ROOTFS] == TCI_FROM_DEFAULTS;
    bool *seen = &lint->seen_root[s->container.read_only_rootfs];
    if (!s->rootfs || (inherited && *seen))
        return;
    *seen |= inherited;
    rule.pos = s->pos[TCI_KEY_ROOTFS];
    rule.access = s->container.read_only_rootfs ? TCI_ACCESS_READABLE : TCI_ACCESS_WRITABLE;
    /* It was made absolute when it was read: "~/x" begins behind the policy's directory. */
    if (directory && !is_root(directory) && tci_path_is_within(s->rootfs, directory) &&
        strcmp(s->rootfs, directory) != 0)
        rule.as_given = s->rootfs + strlen(directory) + 1;
    lint_rule(lint, &s->filesystem, &rule);
}

void tci_lint_filesystem(struct tci_lint *lint)
{
    const struct tci_tool *tool = lint->tool;
    const struct tci_settings *s = &tool->settings;
    const struct tci_filesystem *fs = &s->filesystem;
    bool inherited = tool->source[TCI_KEY_FILESYSTEM] == TCI_FROM_DEFAULTS;
    struct tci_filesystem inherited_fs = *fs;
    size_t own = fs->count - s->container.mounts.count; /* the mounts are the last ones */
    bool *seen = &lint->seen_paths[s->capabilities & TCI_CAP_FS_WRITE  ? 2
                                   : s->capabilities & TCI_CAP_FS_READ ? 1
                                                                       : 0];

    /* Inherited paths are judged once, so without what this very tool mounts over them. */
    if (inherited)
        inherited_fs.count = own;
    for (size_t i = 0; i < own && !(inherited && *seen); i++)
        lint_rule(lint, &inherited_fs, &fs->rules[i]);
    *seen |= inherited && own > 0;
    for (size_t i = own; i < fs->count && tci_lint_wants(lint, TCI_KEY_CONTAINER); i++)
        lint_rule(lint, fs, &fs->rules[i]);
    lint_rootfs(lint);
}
