/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: reading one DNS question and writing the answer to it (RFC 1035, RFC 6891).
 * Trusts: nothing of the question. Each byte is read through a cursor that knows where the message ends.
 * Invariant: an answer is at most TCI_DNS_MESSAGE_MAX long, because a question is at most
 * TCI_DNS_WIRE_MAX long and there are at most two addresses.
 */
#include "gate/dns.h"

#include <string.h>

enum {
    header_size = 12,
    label_max = 63,
    name_wire_max = 255,
    pointer_bits = 0xc0,
    flag_response = 0x80, /* of the third byte */
    flag_recursion_desired = 0x01,
    flag_recursion_available = 0x80, /* of the fourth byte */
    opcode_shift = 3,
    opcode_mask = 0x0f,
    opcode_query = 0,
    class_internet = 1,
    type_options = 41,
    options_payload = 1232, /* what we would take in one datagram */
    pointer_to_question = 0xc000 + header_size,
};

/* ---- Reading ---- */

struct cursor {
    const uint8_t *bytes;
    size_t at, length;
};

static bool skip(struct cursor *cursor, size_t count)
{
    if (cursor->length - cursor->at < count)
        return false;
    cursor->at += count;
    return true;
}

static bool read_u8(struct cursor *cursor, uint8_t *ret)
{
    if (!skip(cursor, 1))
        return false;
    *ret = cursor->bytes[cursor->at - 1];
    return true;
}

static bool read_u16(struct cursor *cursor, uint16_t *ret)
{
    if (!skip(cursor, 2))
        return false;
    *ret = (uint16_t)(cursor->bytes[cursor->at - 2] << 8 | cursor->bytes[cursor->at - 1]);
    return true;
}

/* A byte of a label as it may be shown. A dot inside a label must not look like one between two. */
static char shown(uint8_t byte)
{
    if (byte >= 'A' && byte <= 'Z')
        return (char)(byte - 'A' + 'a');
    return byte > 0x20 && byte < 0x7f && byte != '.' ? (char)byte : '?';
}

/* The name of the question. A compression pointer has nothing before it to point to: it is refused,
 * and with it every loop. */
static bool read_name(struct cursor *cursor, char ret[TCI_NAME_MAX + 1])
{
    size_t start = cursor->at, written = 0;
    uint8_t length;

    for (;;) {
        if (!read_u8(cursor, &length) || length > label_max)
            return false;
        if (length == 0)
            break;
        /* With the root behind it. */
        if (cursor->at - start + length + 1 > name_wire_max || !skip(cursor, length))
            return false;
        if (written > 0)
            ret[written++] = '.';
        for (size_t i = cursor->at - length; i < cursor->at; i++)
            ret[written++] = shown(cursor->bytes[i]);
    }
    ret[written] = '\0';
    return true;
}

/* Only one way to spell a name reaches the rules: theirs. */
static bool is_host_name(const char *name)
{
    struct tci_host host;
    struct tci_netrule_problem problem;
    return tci_destination_parse(name, strlen(name), &host, &problem) == 0 &&
           host.kind == TCI_HOST_NAME && strcmp(host.name, name) == 0;
}

static bool read_wire(struct cursor *cursor, struct tci_dns_question *ret)
{
    size_t start = cursor->at;

    if (!read_name(cursor, ret->name) || !read_u16(cursor, &ret->type) ||
        !read_u16(cursor, &ret->class_))
        return false;
    ret->is_host_name = is_host_name(ret->name);
    ret->wire_length = cursor->at - start;
    memcpy(ret->wire, cursor->bytes + start, ret->wire_length);
    return true;
}

/* Past the name of a record. Pointers are stepped over, not followed. */
static bool skip_name(struct cursor *cursor, bool *ret_is_root)
{
    uint8_t length;

    *ret_is_root = false;
    for (bool first = true;; first = false) {
        if (!read_u8(cursor, &length))
            return false;
        if (length == 0) {
            *ret_is_root = first;
            return true;
        }
        if (length >= pointer_bits)
            return skip(cursor, 1);
        if (length > label_max || !skip(cursor, length))
            return false;
    }
}

/* The records behind the question: is there an EDNS one among them? There must be no second. */
static bool read_additional(struct cursor *cursor, unsigned count, bool *ret_has_options)
{
    bool is_root;
    uint16_t type, size;

    for (; count > 0; count--) {
        /* class and time to live: 2 + 4 */
        if (!skip_name(cursor, &is_root) || !read_u16(cursor, &type) || !skip(cursor, 6) ||
            !read_u16(cursor, &size) || !skip(cursor, size))
            return false;
        if (type != type_options)
            continue;
        if (*ret_has_options || !is_root)
            return false;
        *ret_has_options = true;
    }
    return cursor->at == cursor->length;
}

int tci_dns_read_question(const uint8_t *bytes, size_t length, struct tci_dns_question *ret)
{
    struct cursor cursor = { bytes, 0, length };
    uint16_t questions, answers, authorities, additional;

    memset(ret, 0, sizeof *ret);
    /* An answer to an answer could go round for ever between two that do so. */
    if (length < header_size || bytes[2] & flag_response)
        return -1;
    (void)read_u16(&cursor, &ret->id);
    ret->opcode = (bytes[2] >> opcode_shift) & opcode_mask;
    ret->recursion_desired = bytes[2] & flag_recursion_desired;
    (void)skip(&cursor, 2);
    (void)read_u16(&cursor, &questions);
    (void)read_u16(&cursor, &answers);
    (void)read_u16(&cursor, &authorities);
    (void)read_u16(&cursor, &additional);
    if (ret->opcode != opcode_query)
        return TCI_DNS_UNKNOWN;
    if (questions != 1 || !read_wire(&cursor, ret))
        return TCI_DNS_MALFORMED;
    /* Records in the other two sections mean nothing in a question: nobody looks at them, nor at what
     * stands behind them. */
    if (answers > 0 || authorities > 0)
        return 0;
    return read_additional(&cursor, additional, &ret->has_options) ? 0 : TCI_DNS_MALFORMED;
}

/* ---- Writing ---- */

static void put_u16(uint8_t *ret, size_t *at, unsigned value)
{
    ret[(*at)++] = (uint8_t)(value >> 8);
    ret[(*at)++] = (uint8_t)value;
}

static void put_bytes(uint8_t *ret, size_t *at, const uint8_t *bytes, size_t length)
{
    memcpy(ret + *at, bytes, length);
    *at += length;
}

static bool wants(const struct tci_dns_question *question, int code, unsigned type)
{
    return code == TCI_DNS_OK && question->wire_length > 0 &&
           (question->type == type || question->type == TCI_DNS_ANY);
}

static void put_address(const struct tci_address *address, uint32_t ttl, uint8_t *ret, size_t *at)
{
    unsigned size = address->is_v6 ? 16 : 4;

    put_u16(ret, at, pointer_to_question);
    put_u16(ret, at, address->is_v6 ? TCI_DNS_AAAA : TCI_DNS_A);
    put_u16(ret, at, class_internet);
    put_u16(ret, at, ttl >> 16);
    put_u16(ret, at, ttl & 0xffff);
    put_u16(ret, at, size);
    put_bytes(ret, at, address->bytes, size);
}

static void put_options(uint8_t *ret, size_t *at)
{
    ret[(*at)++] = 0; /* the root */
    put_u16(ret, at, type_options);
    put_u16(ret, at, options_payload);
    put_u16(ret, at, 0); /* extended code, version 0 */
    put_u16(ret, at, 0); /* flags */
    put_u16(ret, at, 0); /* no options */
}

size_t tci_dns_write_answer(const struct tci_dns_question *question, int code,
                            const struct tci_address *v4, const struct tci_address *v6,
                            uint32_t ttl, uint8_t ret[TCI_DNS_MESSAGE_MAX])
{
    size_t at = 0, count_at;
    unsigned answers = 0;

    put_u16(ret, &at, question->id);
    ret[at++] = (uint8_t)(flag_response | question->opcode << opcode_shift |
                          (question->recursion_desired ? flag_recursion_desired : 0));
    ret[at++] = (uint8_t)(flag_recursion_available | (code & opcode_mask));
    put_u16(ret, &at, question->wire_length > 0);
    count_at = at;
    put_u16(ret, &at, 0);
    put_u16(ret, &at, 0);
    put_u16(ret, &at, question->has_options);
    put_bytes(ret, &at, question->wire, question->wire_length);
    if (v4 && !v4->is_v6 && wants(question, code, TCI_DNS_A)) {
        put_address(v4, ttl, ret, &at);
        answers++;
    }
    if (v6 && v6->is_v6 && wants(question, code, TCI_DNS_AAAA)) {
        put_address(v6, ttl, ret, &at);
        answers++;
    }
    put_u16(ret, &count_at, answers);
    if (question->has_options)
        put_options(ret, &at);
    return at;
}
