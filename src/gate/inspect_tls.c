/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the inspection of TLS: the hello must name the connection's host, and so must a second one.
 * Trusts: hello.c to give one reading of a hello or none.
 *
 * The attack with two hellos: the first one names the allowed host and offers keys that the server
 * declines. The server asks for another hello (HelloRetryRequest), which is sent in clear as well; some
 * servers take the name from that one. So records are followed until no second hello can come.
 */
#include "gate/inspect_internal.h"

#include <string.h>

enum {
    message_header = 4,
    hello_high_byte_max = 2, /* of its length: no server reads hellos of more than 192 KiB */
    session_length_at = 38,
    session_max = 32,
};

static enum tci_inspect_step check_hello(struct tci_inspect *inspect, const struct tci_hello *hello)
{
    if (hello->name_length > 0 && !tci_inspect_is_meant(inspect, hello->name, hello->name_length))
        return tci_inspect_refuse(inspect, "the TLS hello is for another host: %s", inspect->meant);
    if (hello->name_length == 0 && inspect->strict)
        return tci_inspect_refuse(inspect, "the TLS hello names no host, and inspection is strict");
    if (hello->is_encrypted && inspect->strict)
        return tci_inspect_refuse(inspect, "the TLS hello is encrypted (ECH), and inspection is "
                                           "strict");
    if (hello->name_length == 0)
        tci_inspect_note(inspect, "no server name in TLS");
    if (hello->is_encrypted)
        tci_inspect_note(inspect, "an encrypted hello (ECH) in TLS may name another host");
    return TCI_STEP_GO;
}

enum tci_inspect_step tci_inspect_hello(struct tci_inspect *inspect, struct tci_inspect_input *in)
{
    struct tci_hello hello;

    switch (tci_hello_read(&inspect->hello, in->bytes, in->length, &hello)) {
    case TCI_HELLO_MORE:
        return in->at_end ? tci_inspect_refuse(inspect, "the TLS hello is cut off") : TCI_STEP_MORE;
    case TCI_HELLO_MALFORMED:
        return tci_inspect_refuse(inspect, "the TLS hello cannot be read: %s", hello.problem);
    case TCI_HELLO_DONE:
        break;
    }
    if (check_hello(inspect, &hello) == TCI_STEP_REFUSED)
        return TCI_STEP_REFUSED;
    tci_inspect_use(in, inspect->hello.records);
    inspect->has_early_data = hello.has_early_data;
    inspect->record_left = 0;
    return tci_inspect_go(inspect, TCI_INSPECT_AT_RECORDS);
}

static enum tci_inspect_step go_hello(struct tci_inspect *inspect)
{
    memset(&inspect->hello, 0, sizeof inspect->hello);
    return tci_inspect_go(inspect, TCI_INSPECT_AT_HELLO);
}

/* A handshake record behind a ChangeCipherSpec: a second hello (TLS 1.3), or the end of the handshake
 * (TLS 1.2, a resumed session), which is encrypted and can look like anything. That one is a single
 * record; a hello fills its records exactly. */
static enum tci_inspect_step judge_changed(struct tci_inspect *inspect,
                                           const struct tci_inspect_input *in, size_t size)
{
    const uint8_t *message = in->bytes + TCI_TLS_RECORD_HEADER;
    size_t there = in->length - TCI_TLS_RECORD_HEADER, want;

    if (there < size)
        return in->at_end ? TCI_STEP_OPEN : TCI_STEP_MORE;
    if ((size > 1 && message[1] > hello_high_byte_max) ||
        (size > session_length_at && message[session_length_at] > session_max))
        return TCI_STEP_OPEN;
    if (size >= message_header) {
        want = message_header + ((size_t)message[1] << 16 | (size_t)message[2] << 8 | message[3]);
        if (want <= size)
            return want == size ? go_hello(inspect) : TCI_STEP_OPEN;
    }
    if (there == size)
        return in->at_end ? TCI_STEP_OPEN : TCI_STEP_MORE;
    return message[size] == TCI_TLS_HANDSHAKE ? go_hello(inspect) : TCI_STEP_OPEN;
}

static enum tci_inspect_step judge_handshake(struct tci_inspect *inspect,
                                             const struct tci_inspect_input *in, size_t size)
{
    if (size == 0)
        return tci_inspect_refuse(inspect, "the TLS handshake has an empty record");
    if (in->length == TCI_TLS_RECORD_HEADER)
        return in->at_end ? TCI_STEP_OPEN : TCI_STEP_MORE;
    /* What comes instead of a second hello is the rest of a handshake of TLS 1.2. */
    if (in->bytes[TCI_TLS_RECORD_HEADER] != TCI_TLS_CLIENT_HELLO)
        return TCI_STEP_OPEN;
    return inspect->has_changed_cipher ? judge_changed(inspect, in, size) : go_hello(inspect);
}

enum tci_inspect_step tci_inspect_records(struct tci_inspect *inspect, struct tci_inspect_input *in)
{
    while (in->length > 0) {
        size_t size;
        if (inspect->record_left > 0) {
            size = in->length < inspect->record_left ? in->length : inspect->record_left;
            inspect->record_left -= size;
            tci_inspect_use(in, size);
            continue;
        }
        if (in->length < TCI_TLS_RECORD_HEADER)
            return in->at_end ? TCI_STEP_OPEN : TCI_STEP_MORE;
        size = (size_t)in->bytes[3] << 8 | in->bytes[4];
        if (in->bytes[0] == TCI_TLS_HANDSHAKE)
            return judge_handshake(inspect, in, size);
        /* Data before the handshake is over is skipped by a server that wants a second hello. */
        if (in->bytes[0] != TCI_TLS_CHANGE_CIPHER_SPEC && in->bytes[0] != TCI_TLS_ALERT &&
            !(in->bytes[0] == TCI_TLS_APPLICATION_DATA && inspect->has_early_data))
            return TCI_STEP_OPEN;
        inspect->has_changed_cipher |= in->bytes[0] == TCI_TLS_CHANGE_CIPHER_SPEC;
        inspect->record_left = TCI_TLS_RECORD_HEADER + size;
    }
    return TCI_STEP_MORE;
}
