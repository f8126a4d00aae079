/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the little of D-Bus that one method call needs: signing in, a call, its answer. Everything
 * has a maximum and a moment at which it gives up. Functions return 0 or an errno.
 */
#ifndef TCI_BACKEND_CGROUP_BUS_H
#define TCI_BACKEND_CGROUP_BUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TCI_BUS_CALL_MAX = 1024,   /* bytes of a call */
    TCI_BUS_ANSWER_MAX = 8192, /* bytes of a message from the other side */
    TCI_BUS_MESSAGES_MAX = 64, /* messages that are read while an answer is awaited */
};

/* Values are appended at their natural alignment. What does not fit sets `full`. */
struct tci_bus_data {
    unsigned char bytes[TCI_BUS_CALL_MAX];
    size_t used;
    bool full;
};

void tci_bus_pad(struct tci_bus_data *data, size_t alignment);
void tci_bus_u32(struct tci_bus_data *data, uint32_t value);
void tci_bus_string(struct tci_bus_data *data, const char *text);
void tci_bus_signature(struct tci_bus_data *data, const char *text);
/* An array whose elements need this alignment; `mark` goes from begin to end. */
void tci_bus_array_begin(struct tci_bus_data *data, size_t alignment, size_t mark[2]);
void tci_bus_array_end(struct tci_bus_data *data, const size_t mark[2]);

struct tci_bus_call {
    const char *destination; /* NULL: whoever is at the other end */
    const char *path, *interface, *member;
    const char *signature; /* of `body`; NULL: there is none */
    const struct tci_bus_data *body;
    uint32_t serial;
};

/* As the user that we are, over a connected stream socket that does not block. */
int tci_bus_sign_in(int fd, int64_t until_ms);
/* Sends a call and waits for its answer. EPERM: the answer was an error; EEXIST: it was that of
 * systemd for a unit that exists. */
int tci_bus_call(int fd, const struct tci_bus_call *call, int64_t until_ms);

#endif
