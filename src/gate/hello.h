/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what a TLS ClientHello says about the server that it is meant for (RFC 8446, RFC 6066). Pure;
 * the hello may come in pieces and be spread over several records. Input is hostile: what a TLS library
 * could read in two ways is malformed here.
 */
#ifndef TCI_GATE_HELLO_H
#define TCI_GATE_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TCI_HELLO_MAX = 65536,    /* with its record headers */
    TCI_HELLO_NAME_MAX = 255, /* longer ones are no names of hosts */
    TCI_TLS_RECORD_HEADER = 5,
    TCI_TLS_CHANGE_CIPHER_SPEC = 20,
    TCI_TLS_ALERT = 21,
    TCI_TLS_HANDSHAKE = 22,
    TCI_TLS_APPLICATION_DATA = 23,
    TCI_TLS_HEARTBEAT = 24,
    TCI_TLS_CLIENT_HELLO = 1, /* first byte of a handshake message */
};

enum tci_hello_says {
    TCI_HELLO_MORE, /* so far it is one */
    TCI_HELLO_DONE,
    TCI_HELLO_MALFORMED, /* `problem` says why */
};

struct tci_hello {
    char name[TCI_HELLO_NAME_MAX + 1]; /* as it came; any byte may be in it */
    size_t name_length;                /* 0: no server name */
    bool is_encrypted;   /* has an Encrypted Client Hello (or ESNI): the name is not the true one */
    bool has_early_data; /* data may follow before a second hello */
    const char *problem;
};

/* How far a hello that comes in pieces has been looked at. Zeroed before its first byte. */
struct tci_hello_progress {
    size_t records; /* bytes of whole records */
    size_t have;    /* of the message, in these */
    size_t want;    /* of the whole message; 0: not known */
};

/* `bytes`: from the first byte of the first record, each time. DONE: the hello has progress->records
 * bytes; it ends where a record ends. */
enum tci_hello_says tci_hello_read(struct tci_hello_progress *progress, const uint8_t *bytes,
                                   size_t length, struct tci_hello *ret);

#endif
