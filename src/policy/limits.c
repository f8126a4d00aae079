/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: numeric settings by key. */
#include "policy/limits.h"

#include <stddef.h>

static const struct {
    enum tci_key key;
    size_t offset;
} limits[] = {
    { TCI_KEY_TIMEOUT, offsetof(struct tci_settings, timeout) },
    { TCI_KEY_MEMORY, offsetof(struct tci_settings, memory) },
    { TCI_KEY_CPU, offsetof(struct tci_settings, cpu) },
    { TCI_KEY_CPU_TIME, offsetof(struct tci_settings, cpu_time) },
    { TCI_KEY_PIDS, offsetof(struct tci_settings, pids) },
    { TCI_KEY_FILES, offsetof(struct tci_settings, files) },
    { TCI_KEY_DISK, offsetof(struct tci_settings, disk) },
    { TCI_KEY_OUTPUT, offsetof(struct tci_settings, output) },
};

static const uint64_t *find(const struct tci_settings *settings, enum tci_key key)
{
    for (size_t i = 0; i < tci_array_size(limits); i++)
        if (limits[i].key == key)
            return (const uint64_t *)(const void *)((const char *)settings + limits[i].offset);
    return NULL;
}

bool tci_key_is_limit(enum tci_key key)
{
    static const struct tci_settings none;
    return find(&none, key) != NULL;
}

uint64_t tci_limit(const struct tci_settings *settings, enum tci_key key)
{
    const uint64_t *value = find(settings, key);
    return value ? *value : 0;
}

uint64_t tci_effective_limit(const struct tci_tool *tool, const struct tci_grant *grant,
                             enum tci_key key)
{
    uint64_t limit = tci_limit(&tool->settings, key), narrower;
    if (!grant || !(grant->narrow->present & tci_key_bit(key)))
        return limit;
    narrower = tci_limit(grant->narrow, key);
    return narrower < limit ? narrower : limit;
}
