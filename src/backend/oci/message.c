/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the start message for entry, from a plan and one call. */
#include "backend/oci/oci.h"

#include <string.h>

enum { argv_max = 65536 };

static size_t count_texts(const char *const *texts, size_t max)
{
    size_t count = 0;
    while (count < max && texts && texts[count])
        count++;
    return count;
}

static void put_text(struct tci_buf *out, const char *text)
{
    tci_buf_append(out, text, strlen(text) + 1);
}

static uint32_t flags_of(const struct tci_oci_plan *plan, const struct tc_io *io, bool holds)
{
    uint32_t flags = 0;
    if (holds)
        flags |= TCI_ENTRY_HOLD;
    if (io->terminal)
        flags |= TCI_ENTRY_TERMINAL;
    if (io->program > 0)
        flags |= TCI_ENTRY_BRING;
    /* gVisor takes a filter only with it, and the filter is what keeps setuid files from the host. */
    if (plan->spec.settings->container.no_new_privileges || plan->choice.runtime == TCI_OCI_RUNSC)
        flags |= TCI_ENTRY_NO_NEW_PRIVS;
    return flags;
}

/* Is there something of the host that may be read and not written? It may be a named pipe, or hold some, and a
 * read-only mount does not stop writing to these. Only with a read-only root can all places for
 * writing be listed; and gVisor opens no named pipe of the host. */
static bool lists_places(const struct tci_oci_plan *plan)
{
    const struct tci_container *container = &plan->spec.settings->container;
    if (!container->read_only_rootfs || !container->no_new_privileges ||
        plan->choice.runtime == TCI_OCI_RUNSC)
        return false;
    for (size_t i = 0; i < plan->mount_count; i++)
        if (plan->mounts[i].kind == TCI_OCI_MOUNT_BIND && !plan->mounts[i].writable)
            return true;
    return false;
}

/* Returns how many. */
static uint32_t put_places(struct tci_buf *out, const struct tci_oci_plan *plan)
{
    uint32_t count = 2;
    if (!lists_places(plan))
        return 0;
    put_text(out, "/dev");
    put_text(out, "/proc");
    for (size_t i = 0; i < plan->mount_count; i++) {
        if (!plan->mounts[i].writable)
            continue;
        put_text(out, plan->mounts[i].cage);
        count++;
    }
    return count;
}

int tci_oci_message(const struct tci_oci_plan *plan, const struct tc_io *io, bool holds,
                    struct tci_buf *out, struct tc_error *reterr)
{
    const char *const *environment = (const char *const *)plan->environment;
    size_t args = count_texts(io->argv, argv_max), variables = count_texts(environment, argv_max);
    struct tci_entry_start head = { .magic = TCI_ENTRY_MAGIC,
                                    .flags = flags_of(plan, io, holds),
                                    .limit_count = plan->limit_count,
                                    .filter_count = plan->filter.count,
                                    .env_count = (uint32_t)variables,
                                    .arg_count = (uint32_t)args };
    if (!args || io->argv[args])
        return tci_error_set(reterr, TC_ERROR_USAGE, "a command of 1 to %d words is needed",
                             argv_max - 1);
    *out = (struct tci_buf)TCI_BUF_INIT(sizeof head + TCI_ENTRY_BYTES_MAX);
    tci_buf_append(out, (const char *)&head, sizeof head); /* its place; filled in below */
    tci_buf_append(out, (const char *)plan->limits, plan->limit_count * sizeof plan->limits[0]);
    if (plan->filter.count)
        tci_buf_append(out, (const char *)plan->filter.code,
                       plan->filter.count * sizeof plan->filter.code[0]);
    put_text(out, plan->directory ? plan->directory : "/");
    head.place_count = put_places(out, plan);
    for (size_t i = 0; i < variables; i++)
        put_text(out, environment[i]);
    for (size_t i = 0; i < args; i++)
        put_text(out, io->argv[i]);
    if (out->too_large) {
        tci_error_set(reterr, TC_ERROR_USAGE,
                      "the command and its environment take more than %d bytes",
                      TCI_ENTRY_BYTES_MAX);
        tci_error_remedy(reterr, "pass what is long as input, or in a file");
        return -1;
    }
    if (tci_buf_check(out, reterr) < 0)
        return -1;
    head.length = (uint32_t)(out->length - sizeof head);
    memcpy(out->data, &head, sizeof head);
    return 0;
}
