/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what a cage's passwd, group, hosts and resolv.conf say. They name the cage's user and nobody of
 * the host; names of the network are found by the gate, or not at all. */
#include "backend/etc_files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include "base/fd.h"
#include "gate/inside.h"

enum { contents_max = 65536 };
enum which { PASSWD, GROUP, HOSTS, RESOLV };

static const char *const paths[TCI_ETC_FILES] = {
    [PASSWD] = "/etc/passwd",
    [GROUP] = "/etc/group",
    [HOSTS] = "/etc/hosts",
    [RESOLV] = "/etc/resolv.conf",
};

const char *tci_etc_path(unsigned index)
{
    return paths[index];
}

/* Who has the host's network finds its names as the host does. Often a link to where the cage has
 * nothing: what it says is copied. */
static int copy_contents(struct tci_arena *arena, struct tci_etc_file *file,
                         struct tc_error *reterr)
{
    char *text = tci_arena_alloc(arena, contents_max + 1);
    tc_cleanup(tci_closep) int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n;
    if (!text)
        return tci_error_no_memory(reterr);
    n = fd < 0 ? 0 : tci_read_some(fd, text, contents_max);
    if (n < 0)
        return tci_error_errno(reterr, errno, "reading %s", file->path);
    file->bytes = text;
    file->length = (size_t)n;
    return 0;
}

static const char *text_of(struct tci_arena *arena, const struct tci_etc_cage *cage,
                           enum which which)
{
    switch (which) {
    case PASSWD:
        return tci_arena_printf(arena, "%s:x:%u:%u:cage:/tmp:/bin/sh\n%s",
                                cage->uid ? "cage" : "root", cage->uid, cage->gid,
                                cage->uid == 65534 ? ""
                                                   : "nobody:x:65534:65534:nobody:/nonexistent:"
                                                     "/usr/sbin/nologin\n");
    case GROUP:
        return tci_arena_printf(arena, "%s:x:%u:\n%s", cage->gid ? "cage" : "root", cage->gid,
                                cage->gid == 65534 ? "" : "nogroup:x:65534:\n");
    case HOSTS:
        return "127.0.0.1 localhost cage\n::1 localhost cage\n";
    case RESOLV:
        break;
    }
    return cage->has_gate ? "nameserver " TCI_GATE_RESOLVER "\n" : "";
}

int tci_etc_file(struct tci_arena *arena, const struct tci_etc_cage *cage, unsigned index,
                 struct tci_etc_file *ret, struct tc_error *reterr)
{
    *ret = (struct tci_etc_file){ .path = paths[index] };
    if (cage->host_network && (index == HOSTS || index == RESOLV))
        return copy_contents(arena, ret, reterr);
    ret->bytes = text_of(arena, cage, (enum which)index);
    if (!ret->bytes)
        return tci_error_no_memory(reterr);
    ret->length = strlen(ret->bytes);
    return 0;
}
