/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: sealed files of memory, as they are written (sealed.h). */
#include "backend/sealed.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include "backend/program.h"
#include "base/fd.h"
#include "gate/inside.h"
#include "gate/setup.h"

enum { alignment = 8 };

uint32_t tci_sealed_text(struct tci_buf *out, const char *text)
{
    uint32_t offset = (uint32_t)out->length;
    tci_buf_append(out, text ? text : "", text ? strlen(text) + 1 : 1);
    return offset;
}

struct tci_sealed_array tci_sealed_put(struct tci_buf *out, const void *items, size_t count,
                                       size_t size)
{
    static const char zeros[alignment];
    uint32_t offset;
    tci_buf_append(out, zeros, (alignment - out->length % alignment) % alignment);
    offset = (uint32_t)out->length;
    tci_buf_append(out, items, count * size);
    return (struct tci_sealed_array){ offset, (uint32_t)count };
}

static struct tci_sealed_array put_messages(struct tci_buf *out, const struct tci_netlink_batch *b)
{
    return tci_sealed_put(out, b->bytes, b->used, 1);
}

void tci_sealed_put_gate(struct tci_buf *out, const struct tci_network *network,
                         const struct tci_gate_ports *ports, bool has_v6,
                         struct tci_sealed_gate *ret)
{
    static const uint16_t catcher = TCI_GATE_CATCH_PORT, dns = TCI_GATE_DNS_PORT;
    struct tci_gate_setup setup;
    tci_gate_setup(ports->every, tci_gate_catches_loopback(network), &setup);
    ret->is_there = 1;
    ret->has_v6 = has_v6;
    ret->v4 = put_messages(out, &setup.v4);
    ret->v6 = put_messages(out, &setup.v6);
    if (ports->every) {
        ret->catcher = put_messages(out, &setup.catcher);
        ret->ports = tci_sealed_put(out, &catcher, 1, sizeof catcher);
        return;
    }
    ret->ports = tci_sealed_put(out, ports->items, ports->count, sizeof ports->items[0]);
    if (tci_gate_ports_has(ports, dns))
        return;
    tci_buf_append(out, (const char *)&dns, sizeof dns); /* right behind them */
    ret->ports.count++;
}

int tci_sealed_store(const struct tci_buf *out, const char *name, const char *what,
                     struct tc_error *reterr)
{
    tc_cleanup(tci_closep) int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || tci_write_all(fd, out->data, out->length) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        return tci_program_no_memory_file(reterr, what);
    return tci_take_fd(&fd);
}
