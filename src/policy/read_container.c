/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: reading `container` and `image`. Starts hardened: whatever is not said stays closed. */
#include "policy/reader.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char *const engines[] = { "podman", "docker", "none", NULL };
static const char *const runtimes[] = { "crun", "runc", "runsc", NULL };

static int read_engine(struct tci_reader *reader, const char *name, const struct tci_node *value,
                       void *field)
{
    size_t index;
    if (tci_read_word(reader, name, value, engines, &index) < 0)
        return -1;
    *(const char **)field = engines[index];
    return 0;
}

static int read_runtime(struct tci_reader *reader, const char *name, const struct tci_node *value,
                        void *field)
{
    size_t index;
    if (tci_read_word(reader, name, value, runtimes, &index) < 0)
        return -1;
    *(const char **)field = runtimes[index];
    return 0;
}

/* USER or UID[:GID]. */
static int read_user(struct tci_reader *reader, const char *name, const struct tci_node *value,
                     void *field)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_.-:";
    const char *user;
    if (tci_read_plain_string(reader, name, value, "a user such as \"1000:1000\"", &user) < 0)
        return -1;
    if (user[strspn(user, allowed)] || user[0] == ':' || user[0] == '-' || strlen(user) > 64)
        return tci_read_fail(reader, TCI_FINDING_BAD_NAME, value->pos, "write USER or UID:GID",
                             "\"%s\" in %s is not a user", name, reader->where);
    *(const char **)field = user;
    return 0;
}

/* "NET_ADMIN" and "CAP_NET_ADMIN" are one; kept without the prefix, in capitals, or "ALL". */
static const char *capability_name(struct tci_reader *reader, const char *text)
{
    char *name = tci_arena_strdup(reader->arena, text);
    if (!name)
        return NULL;
    for (char *p = name; *p; p++)
        if (*p >= 'a' && *p <= 'z')
            *p = (char)(*p - 32);
    return strncmp(name, "CAP_", 4) == 0 ? name + 4 : name;
}

static bool is_linux_capability(const char *name)
{
    static const char *const known[] = {
        "ALL",
        "AUDIT_CONTROL",
        "AUDIT_READ",
        "AUDIT_WRITE",
        "BLOCK_SUSPEND",
        "BPF",
        "CHECKPOINT_RESTORE",
        "CHOWN",
        "DAC_OVERRIDE",
        "DAC_READ_SEARCH",
        "FOWNER",
        "FSETID",
        "IPC_LOCK",
        "IPC_OWNER",
        "KILL",
        "LEASE",
        "LINUX_IMMUTABLE",
        "MAC_ADMIN",
        "MAC_OVERRIDE",
        "MKNOD",
        "NET_ADMIN",
        "NET_BIND_SERVICE",
        "NET_BROADCAST",
        "NET_RAW",
        "PERFMON",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_ADMIN",
        "SYS_BOOT",
        "SYS_CHROOT",
        "SYS_MODULE",
        "SYS_NICE",
        "SYS_PACCT",
        "SYS_PTRACE",
        "SYS_RAWIO",
        "SYS_RESOURCE",
        "SYS_TIME",
        "SYS_TTY_CONFIG",
        "SYSLOG",
        "WAKE_ALARM",
    };
    for (size_t i = 0; i < tci_array_size(known); i++)
        if (strcmp(known[i], name) == 0)
            return true;
    return false;
}

static int read_linux_capabilities(struct tci_reader *reader, const char *name,
                                   const struct tci_node *value, void *field)
{
    struct tci_strings *list = field;
    int status = tci_read_strings(reader, name, value, list);
    for (size_t i = 0; status == 0 && i < list->count; i++) {
        struct tci_text given = { list->items[i].text, strlen(list->items[i].text) };
        char quoted[TCI_QUOTE_MAX];
        list->items[i].text = capability_name(reader, given.data);
        if (!list->items[i].text)
            return tci_read_no_memory(reader);
        if (!is_linux_capability(list->items[i].text))
            status = tci_read_fail(reader, TCI_FINDING_BAD_VALUE, list->items[i].pos,
                                   "use a name of capabilities(7), or \"ALL\"",
                                   "\"%s\" in %s: %s is not a Linux capability", name,
                                   reader->where, tci_read_quote(given, quoted));
    }
    return status;
}

int tci_read_container(struct tci_reader *reader, const char *name, const struct tci_node *value,
                       void *field)
{
    static const struct tci_field fields[] = {
        { "engine", read_engine, offsetof(struct tci_container, engine) },
        { "runtime", read_runtime, offsetof(struct tci_container, runtime) },
        { "user", read_user, offsetof(struct tci_container, user) },
        { "cap_drop", read_linux_capabilities, offsetof(struct tci_container, cap_drop) },
        { "cap_add", read_linux_capabilities, offsetof(struct tci_container, cap_add) },
        { "read_only_rootfs", tci_read_boolean, offsetof(struct tci_container, read_only_rootfs) },
        { "no_new_privileges", tci_read_boolean,
          offsetof(struct tci_container, no_new_privileges) },
        { "mounts", tci_read_mounts, offsetof(struct tci_container, mounts) },
    };
    struct tci_container *container = field;
    *container = tci_container_default();
    if (tci_read_expect(reader, name, value, TCI_NODE_TABLE, "a table") < 0)
        return -1;
    return tci_read_fields(reader, name, value, fields, tci_array_size(fields), container);
}

/* REGISTRY/PATH:TAG@DIGEST: never an option for an engine, never white space. */
int tci_read_image(struct tci_reader *reader, const char *name, const struct tci_node *value,
                   void *field)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_.-:/@";
    const char *image;
    char quoted[TCI_QUOTE_MAX];
    if (tci_read_plain_string(reader, name, value, "an image such as \"debian:12\"", &image) < 0)
        return -1;
    if (image[strspn(image, allowed)] || strchr("-./:@", image[0]) || strlen(image) > 512 ||
        strstr(image, ".."))
        return tci_read_fail(reader, TCI_FINDING_BAD_NAME, value->pos,
                             "write NAME, NAME:TAG or NAME@DIGEST",
                             "\"%s\" in %s: %s is not an image reference", name, reader->where,
                             tci_read_quote(value->string, quoted));
    *(const char **)field = image;
    return 0;
}
