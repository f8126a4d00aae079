/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the wire format of D-Bus, as far as one call needs it. Trusts the other side with nothing
 * but the answer: lengths are checked before they are used, and everything else is skipped.
 */
#include "backend/cgroup/cgroup_bus.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend/cgroup/cgroup_internal.h"

enum { TYPE_CALL = 1, TYPE_RETURN = 2, TYPE_ERROR = 3, HEADER = 16, LINE_MAX_BYTES = 256 };
enum {
    FIELD_PATH = 1,
    FIELD_INTERFACE = 2,
    FIELD_MEMBER = 3,
    FIELD_ERROR_NAME = 4,
    FIELD_REPLY_SERIAL = 5,
    FIELD_DESTINATION = 6,
    FIELD_SIGNATURE = 8,
};

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
static const unsigned char OUR_ORDER = 'l';
#else
static const unsigned char OUR_ORDER = 'B';
#endif

/* ---- writing -------------------------------------------------------------------------------- */

static void append(struct tci_bus_data *data, const void *bytes, size_t length)
{
    if (data->full || length > sizeof data->bytes - data->used) {
        data->full = true;
        return;
    }
    memcpy(data->bytes + data->used, bytes, length);
    data->used += length;
}

void tci_bus_pad(struct tci_bus_data *data, size_t alignment)
{
    static const unsigned char zeros[8];
    append(data, zeros, (alignment - data->used % alignment) % alignment);
}

void tci_bus_u32(struct tci_bus_data *data, uint32_t value)
{
    tci_bus_pad(data, 4);
    append(data, &value, sizeof value);
}

void tci_bus_string(struct tci_bus_data *data, const char *text)
{
    size_t length = strlen(text);
    tci_bus_u32(data, (uint32_t)length);
    append(data, text, length + 1);
}

void tci_bus_signature(struct tci_bus_data *data, const char *text)
{
    unsigned char length = (unsigned char)strlen(text);
    append(data, &length, 1);
    append(data, text, length + 1U);
}

void tci_bus_array_begin(struct tci_bus_data *data, size_t alignment, size_t mark[2])
{
    tci_bus_u32(data, 0);
    mark[0] = data->used - 4;
    tci_bus_pad(data, alignment); /* not a part of the length, and there even without an element */
    mark[1] = data->used;
}

void tci_bus_array_end(struct tci_bus_data *data, const size_t mark[2])
{
    uint32_t length = (uint32_t)(data->used - mark[1]);
    if (!data->full)
        memcpy(data->bytes + mark[0], &length, sizeof length);
}

static void field(struct tci_bus_data *data, unsigned char code, const char *type,
                  const char *value)
{
    if (!value)
        return;
    tci_bus_pad(data, 8);
    append(data, &code, 1);
    tci_bus_signature(data, type);
    if (type[0] == 'g')
        tci_bus_signature(data, value);
    else
        tci_bus_string(data, value);
}

static void encode(struct tci_bus_data *data, const struct tci_bus_call *call)
{
    const unsigned char start[] = { OUR_ORDER, TYPE_CALL, 0, 1 };
    size_t mark[2];
    append(data, start, sizeof start);
    tci_bus_u32(data, call->body ? (uint32_t)call->body->used : 0);
    tci_bus_u32(data, call->serial);
    tci_bus_array_begin(data, 8, mark);
    field(data, FIELD_PATH, "o", call->path);
    field(data, FIELD_INTERFACE, "s", call->interface);
    field(data, FIELD_MEMBER, "s", call->member);
    field(data, FIELD_DESTINATION, "s", call->destination);
    field(data, FIELD_SIGNATURE, "g", call->signature);
    tci_bus_array_end(data, mark);
    tci_bus_pad(data, 8);
    if (call->body) {
        append(data, call->body->bytes, call->body->used);
        data->full = data->full || call->body->full;
    }
}

/* ---- the socket ----------------------------------------------------------------------------- */

static int wait_for(int fd, short events, int64_t until_ms)
{
    struct pollfd ready = { .fd = fd, .events = events };
    int64_t left = until_ms - tci_cgroup_now_ms();
    int n = left <= 0 ? 0 : poll(&ready, 1, left > INT_MAX ? INT_MAX : (int)left);
    if (n < 0)
        return errno == EINTR ? 0 : errno;
    return n ? 0 : ETIMEDOUT;
}

/* After a call that failed: 0 means to try again. */
static int after_failure(int fd, short events, int64_t until_ms)
{
    if (errno == EAGAIN)
        return wait_for(fd, events, until_ms);
    return errno == EINTR ? 0 : errno;
}

static int send_all(int fd, const void *bytes, size_t length, int64_t until_ms)
{
    const char *at = bytes;
    while (length) {
        ssize_t n = send(fd, at, length, MSG_NOSIGNAL | MSG_DONTWAIT);
        int problem = n < 0 ? after_failure(fd, POLLOUT, until_ms) : 0;
        if (problem)
            return problem;
        at += n > 0 ? n : 0;
        length -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int receive_all(int fd, void *bytes, size_t length, int64_t until_ms)
{
    char *at = bytes;
    while (length) {
        ssize_t n = recv(fd, at, length, MSG_DONTWAIT);
        int problem = n < 0 ? after_failure(fd, POLLIN, until_ms) : n == 0 ? ECONNRESET : 0;
        if (problem)
            return problem;
        at += n > 0 ? n : 0;
        length -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

int tci_bus_sign_in(int fd, int64_t until_ms)
{
    char uid[16], text[64], line[LINE_MAX_BYTES];
    size_t used = 1; /* the first byte is 0: credentials may come with it */
    int problem, n = snprintf(uid, sizeof uid, "%u", geteuid());
    text[0] = '\0';
    used += (size_t)snprintf(text + used, sizeof text - used, "AUTH EXTERNAL ");
    for (int i = 0; i < n; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%02x", (unsigned)uid[i]);
    used += (size_t)snprintf(text + used, sizeof text - used, "\r\n");
    problem = send_all(fd, text, used, until_ms);
    /* Byte by byte, so that nothing behind the line is taken. */
    for (used = 0; !problem && (used == 0 || line[used - 1] != '\n'); used++) {
        if (used == sizeof line)
            return EPROTO;
        problem = receive_all(fd, line + used, 1, until_ms);
    }
    if (problem)
        return problem;
    if (used < 3 || memcmp(line, "OK ", 3) != 0)
        return EACCES;
    return send_all(fd, "BEGIN\r\n", 7, until_ms);
}

/* ---- reading -------------------------------------------------------------------------------- */

struct reader {
    const unsigned char *bytes;
    size_t at, end;
};

static bool skip_to(struct reader *r, size_t alignment, size_t length)
{
    size_t padding = (alignment - r->at % alignment) % alignment;
    if (padding > r->end - r->at || length > r->end - r->at - padding)
        return false;
    r->at += padding;
    return true;
}

static bool read_u32(struct reader *r, uint32_t *ret)
{
    if (!skip_to(r, 4, 4))
        return false;
    memcpy(ret, r->bytes + r->at, 4);
    r->at += 4;
    return true;
}

static bool read_signature(struct reader *r, char *ret_first)
{
    size_t length;
    if (!skip_to(r, 1, 1))
        return false;
    length = r->bytes[r->at];
    if (!skip_to(r, 1, length + 2) || r->bytes[r->at + 1 + length] != 0)
        return false;
    *ret_first = length == 1 ? (char)r->bytes[r->at + 1] : '?';
    r->at += length + 2;
    return true;
}

/* What is of interest in a message. */
struct answer {
    unsigned type;
    uint32_t serial; /* of the call that it answers; 0: none */
    bool exists;     /* the error is that there is one already */
};

static bool is_exists(const struct reader *r, uint32_t length)
{
    static const char name[] = "org.freedesktop.systemd1.UnitExists";
    return length == sizeof name - 1 && memcmp(r->bytes + r->at, name, length) == 0;
}

/* False: it is no header. */
static bool read_fields(struct reader *r, struct answer *ret)
{
    while (r->at < r->end) {
        unsigned char code;
        uint32_t value;
        char type;
        if (!skip_to(r, 8, 1))
            return false;
        code = r->bytes[r->at++];
        if (!read_signature(r, &type))
            return false;
        if (type == 'u') {
            if (!read_u32(r, &value))
                return false;
            if (code == FIELD_REPLY_SERIAL)
                ret->serial = value;
        } else if (type == 's' || type == 'o') {
            if (!read_u32(r, &value) || !skip_to(r, 1, (size_t)value + 1))
                return false;
            if (code == FIELD_ERROR_NAME)
                ret->exists = is_exists(r, value);
            r->at += (size_t)value + 1;
        } else if (type != 'g' || !read_signature(r, &type)) {
            return false;
        }
    }
    return true;
}

/* One message; its body is not looked at. */
static int receive(int fd, unsigned char *bytes, int64_t until_ms, struct answer *ret)
{
    uint32_t body, fields;
    struct reader r = { bytes, HEADER, 0 };
    size_t rest;
    int problem = receive_all(fd, bytes, HEADER, until_ms);
    if (problem)
        return problem;
    if (bytes[0] != OUR_ORDER || bytes[3] != 1)
        return EPROTO;
    memcpy(&body, bytes + 4, sizeof body);
    memcpy(&fields, bytes + 12, sizeof fields);
    if (body > TCI_BUS_ANSWER_MAX - HEADER || fields > TCI_BUS_ANSWER_MAX - HEADER)
        return EMSGSIZE;
    rest = ((size_t)fields + 7) / 8 * 8 + body;
    if (rest > TCI_BUS_ANSWER_MAX - HEADER)
        return EMSGSIZE;
    problem = receive_all(fd, bytes + HEADER, rest, until_ms);
    if (problem)
        return problem;
    r.end = HEADER + fields;
    *ret = (struct answer){ .type = bytes[1] };
    return read_fields(&r, ret) ? 0 : EPROTO;
}

int tci_bus_call(int fd, const struct tci_bus_call *call, int64_t until_ms)
{
    struct tci_bus_data data = { .used = 0 };
    unsigned char bytes[TCI_BUS_ANSWER_MAX];
    int problem;
    encode(&data, call);
    if (data.full)
        return EMSGSIZE;
    problem = send_all(fd, data.bytes, data.used, until_ms);
    for (int i = 0; !problem && i < TCI_BUS_MESSAGES_MAX; i++) {
        struct answer answer = { .type = 0 };
        problem = receive(fd, bytes, until_ms, &answer);
        if (problem || answer.serial != call->serial)
            continue; /* a signal, or something for nobody */
        if (answer.type == TYPE_RETURN)
            return 0;
        if (answer.type == TYPE_ERROR)
            return answer.exists ? EEXIST : EPERM;
    }
    return problem ? problem : EPROTO;
}
