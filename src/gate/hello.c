/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the reading of a TLS ClientHello.
 * Trusts: nothing. First the records are walked until they hold one whole message and nothing else;
 * then the message is read byte by byte across the records' borders, so that nothing is copied.
 * Invariant: what is accepted has one reading. Extensions that appear twice, lengths that do not add
 * up, a list of several names: one server takes the first, another the last. They are refused.
 */
#include "gate/hello.h"

#include <string.h>

enum {
    record_max = 16384,
    message_header = 4,
    random_size = 32,
    session_max = 32,
    extensions_max = 128, /* browsers send about twenty */
    extension_server_name = 0,
    extension_early_data = 42,
    extension_ech = 0xfe0d,
    extension_ech_first_draft = 0xfe08,
    extension_esni = 0xffce,
    name_type_host = 0,
};

/* ---- Records ---- */

/* A message of a handshake that was found whole, as if its records had no borders. */
struct reader {
    const uint8_t *bytes;
    size_t at;
    size_t in_record; /* left of the record */
    size_t left;      /* of the part that is being read */
};

static size_t record_size(const uint8_t *header)
{
    return (size_t)header[3] << 8 | header[4];
}

static uint8_t next_byte(struct reader *reader)
{
    if (reader->in_record == 0) {
        reader->in_record = record_size(reader->bytes + reader->at);
        reader->at += TCI_TLS_RECORD_HEADER;
    }
    reader->in_record--;
    reader->left--;
    return reader->bytes[reader->at++];
}

/* A number of `size` bytes. */
static bool read_number(struct reader *reader, unsigned size, size_t *ret)
{
    if (reader->left < size)
        return false;
    for (*ret = 0; size > 0; size--)
        *ret = *ret << 8 | next_byte(reader);
    return true;
}

static bool skip(struct reader *reader, size_t count)
{
    if (reader->left < count)
        return false;
    while (count-- > 0)
        (void)next_byte(reader);
    return true;
}

/* ---- Extensions ---- */

/* RFC 6066: a list of names, one of each type; there is one type. */
static const char *read_server_name(struct reader *reader, struct tci_hello *ret)
{
    size_t list, type, length;

    if (!read_number(reader, 2, &list) || list != reader->left || !read_number(reader, 1, &type) ||
        type != name_type_host || !read_number(reader, 2, &length) || length != reader->left)
        return "its server name is not exactly one host name";
    if (length == 0 || length > TCI_HELLO_NAME_MAX)
        return "its server name is empty or too long";
    ret->name_length = length;
    for (size_t i = 0; i < length; i++)
        ret->name[i] = (char)next_byte(reader);
    return NULL;
}

static const char *read_extension(struct reader *reader, size_t type, struct tci_hello *ret)
{
    if (type == extension_server_name)
        return read_server_name(reader, ret);
    if (type == extension_esni || (type >= extension_ech_first_draft && type <= extension_ech))
        ret->is_encrypted = true;
    if (type == extension_early_data)
        ret->has_early_data = true;
    (void)skip(reader, reader->left);
    return NULL;
}

static bool is_repeated(const uint16_t *types, size_t count, size_t type)
{
    for (size_t i = 0; i < count; i++)
        if (types[i] == type)
            return true;
    return false;
}

static const char *read_extensions(struct reader *reader, struct tci_hello *ret)
{
    uint16_t types[extensions_max];
    size_t count = 0, type, length;

    while (reader->left > 0) {
        const char *problem;
        size_t rest;
        if (!read_number(reader, 2, &type) || !read_number(reader, 2, &length) ||
            length > reader->left)
            return "an extension of it is cut off";
        if (count == extensions_max)
            return "it has too many extensions";
        if (is_repeated(types, count, type))
            return "it has an extension twice";
        types[count++] = (uint16_t)type;
        rest = reader->left - length;
        reader->left = length;
        problem = read_extension(reader, type, ret);
        if (problem)
            return problem;
        reader->left = rest;
    }
    return NULL;
}

static const char *read_message(struct reader *reader, struct tci_hello *ret)
{
    static const char wrong[] = "its fields do not add up";
    size_t length;

    if (!skip(reader, message_header) || !skip(reader, 2 /* version */ + random_size))
        return wrong;
    if (!read_number(reader, 1, &length) || length > session_max || !skip(reader, length))
        return wrong;
    if (!read_number(reader, 2, &length) || length == 0 || length % 2 || !skip(reader, length))
        return wrong; /* cipher suites */
    if (!read_number(reader, 1, &length) || length == 0 || !skip(reader, length))
        return wrong; /* compression methods */
    if (reader->left == 0)
        return NULL;
    if (!read_number(reader, 2, &length) || length != reader->left)
        return wrong;
    return read_extensions(reader, ret);
}

/* ---- The whole ---- */

static enum tci_hello_says malformed(struct tci_hello *ret, const char *problem)
{
    ret->problem = problem;
    return TCI_HELLO_MALFORMED;
}

/* What can be said of a record before all of it is there. NULL, or what is wrong. */
static const char *record_problem(const struct tci_hello_progress *progress, const uint8_t *record,
                                  size_t length)
{
    /* An alert or an empty record in front: some servers skip it, and then read another hello. */
    if (length > 0 && record[0] != TCI_TLS_HANDSHAKE)
        return "it does not begin with a hello, or something stands inside it";
    if (length >= TCI_TLS_RECORD_HEADER &&
        (record_size(record) == 0 || record_size(record) > record_max))
        return "it has a record that is empty or too long";
    if (progress->have == 0 && length > TCI_TLS_RECORD_HEADER &&
        record[TCI_TLS_RECORD_HEADER] != TCI_TLS_CLIENT_HELLO)
        return "its first message is not a hello";
    return NULL;
}

/* How long the message says that it is, once its header is there. */
static void read_want(struct tci_hello_progress *progress, const uint8_t *bytes)
{
    struct reader reader = { .bytes = bytes, .left = message_header };
    size_t type;

    if (progress->want > 0 || progress->have < message_header)
        return;
    (void)read_number(&reader, 1, &type);
    (void)read_number(&reader, 3, &progress->want);
    progress->want += message_header;
}

enum tci_hello_says tci_hello_read(struct tci_hello_progress *progress, const uint8_t *bytes,
                                   size_t length, struct tci_hello *ret)
{
    memset(ret, 0, sizeof *ret);
    while (progress->want == 0 || progress->have < progress->want) {
        const uint8_t *record = bytes + progress->records;
        size_t there = length - progress->records, size;
        const char *problem = record_problem(progress, record, there);
        if (problem)
            return malformed(ret, problem);
        if (there < TCI_TLS_RECORD_HEADER)
            return TCI_HELLO_MORE;
        size = TCI_TLS_RECORD_HEADER + record_size(record);
        if (progress->records + size > TCI_HELLO_MAX)
            return malformed(ret, "it is too long");
        if (there < size)
            return TCI_HELLO_MORE;
        progress->records += size;
        progress->have += size - TCI_TLS_RECORD_HEADER;
        read_want(progress, bytes);
        if (progress->want > TCI_HELLO_MAX)
            return malformed(ret, "it is too long");
    }
    if (progress->have > progress->want)
        return malformed(ret, "something follows it in its record");
    struct reader reader = { .bytes = bytes, .left = progress->want };
    const char *problem = read_message(&reader, ret);
    return problem ? malformed(ret, problem) : TCI_HELLO_DONE;
}
