/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the start message, read and checked. It comes from the supervisor, and is read as if it came from
 * an enemy: whoever got hold of the socket must not make us read beyond it. No pointer leaves the message;
 * every count is checked against the bytes that are there before it is used.
 */
#include <linux/mman.h>
#include "inside/entry.h"

enum { small = 64 * 1024, sol_socket = 1, scm_rights = 1, message_truncated = 0x08 };

static bool read_all(int fd, void *to, size_t length)
{
    char *at = to;
    while (length) {
        long n = CALL(read, fd, at, length, 0, 0);
        if (n == -EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        length -= (size_t)n;
    }
    return true;
}

/* The first bytes, and with them the descriptors: as many as they say, no more and no fewer. */
static long read_head(int control, struct tci_entry_start *ret, int fds[ENTRY_DESCRIPTORS_MAX])
{
    struct {
        struct entry_cmsghdr head;
        int fds[ENTRY_DESCRIPTORS_MAX + 1];
    } room = { 0 };
    struct entry_iovec vector = { ret, sizeof *ret };
    struct entry_msghdr message = {
        .vectors = &vector,
        .vector_count = 1,
        .control = &room,
        .control_length = sizeof room.head + sizeof(int) * ENTRY_DESCRIPTORS_MAX,
    };
    size_t count;
    long n;
    do
        n = CALL(recvmsg, control, &message, ENTRY_CLOEXEC_MESSAGE, 0, 0);
    while (n == -EINTR);
    if (n <= 0)
        return n;
    if (message.flags & message_truncated || message.control_length < sizeof room.head ||
        room.head.level != sol_socket || room.head.type != scm_rights)
        return -EBADMSG;
    count = (room.head.length - sizeof room.head) / sizeof(int);
    for (size_t i = 0; i < count && i < ENTRY_DESCRIPTORS_MAX; i++)
        fds[i] = room.fds[i];
    if (!read_all(control, (char *)ret + n, sizeof *ret - (size_t)n))
        return 0;
    return count == (size_t)ENTRY_STREAMS + ret->group_count ? n : -EBADMSG;
}

static bool head_is_sound(const struct tci_entry_start *s)
{
    const uint32_t known = TCI_ENTRY_HOLD | TCI_ENTRY_TERMINAL | TCI_ENTRY_BRING |
                           TCI_ENTRY_NO_NEW_PRIVS;
    uint64_t fixed, texts;
    if (s->magic != TCI_ENTRY_MAGIC || s->flags & ~known || s->unused ||
        s->group_count > TCI_ENTRY_GROUPS_MAX || s->length > TCI_ENTRY_BYTES_MAX ||
        s->limit_count > TCI_ENTRY_LIMITS_MAX || s->filter_count > ENTRY_FILTER_MAX ||
        s->arg_count < 1)
        return false;
    fixed = (uint64_t)s->limit_count * sizeof(struct tci_entry_limit) +
            (uint64_t)s->filter_count * sizeof(struct sock_filter);
    texts = 1 + (uint64_t)s->place_count + s->env_count + s->arg_count; /* a NUL each, at least */
    return fixed + texts <= s->length;
}

/* Memory for the message and the pointers into it. Most calls need none from the kernel. */
static char *get_room(size_t size)
{
    static _Alignas(16) char room[small];
    long address;
    if (size <= sizeof room)
        return room;
    address = CALL6(mmap, 0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return address < 0 && address > -4096 ? NULL : (char *)address;
}

/* The next text, which must end before `end`; NULL: it does not. */
static char *next_text(char **at, const char *end)
{
    char *text = *at;
    while (*at < end)
        if (!*(*at)++)
            return text;
    return NULL;
}

static bool is_variable(const char *text)
{
    if (*text == '=')
        return false;
    while (*text && *text != '=')
        text++;
    return *text == '=';
}

static bool take_texts(const struct tci_entry_start *s, char *at, const char *end, char **pointers,
                       struct entry_call *ret)
{
    ret->directory = next_text(&at, end);
    if (!ret->directory || ret->directory[0] != '/')
        return false;
    ret->places = pointers;
    for (uint32_t i = 0; i < s->place_count; i++)
        if (!(*pointers++ = next_text(&at, end)) || pointers[-1][0] != '/')
            return false;
    *pointers++ = NULL;
    ret->environment = pointers;
    for (uint32_t i = 0; i < s->env_count; i++)
        if (!(*pointers++ = next_text(&at, end)) || !is_variable(pointers[-1]))
            return false;
    *pointers++ = NULL;
    ret->arguments = pointers;
    for (uint32_t i = 0; i < s->arg_count; i++)
        if (!(*pointers++ = next_text(&at, end)))
            return false;
    *pointers = NULL;
    return at == end && ret->arguments[0][0]; /* nothing is left over */
}

static bool limits_are_sound(const struct entry_call *call)
{
    for (uint32_t i = 0; i < call->limit_count; i++)
        if (call->limits[i].resource >= ENTRY_RESOURCES || call->limits[i].unused)
            return false;
    return true;
}

bool entry_read(int control, struct entry_call *ret, long *ret_error)
{
    struct tci_entry_start s = { 0 };
    size_t pointers_size;
    char *room, *bytes;
    long n = read_head(control, &s, ret->streams);
    *ret_error = n < 0 ? n : 0;
    if (n <= 0)
        return false;
    *ret_error = -EBADMSG;
    if (!head_is_sound(&s))
        return false;
    pointers_size = ((size_t)s.place_count + s.env_count + s.arg_count + 3) * sizeof(char *);
    room = get_room(pointers_size + s.length);
    *ret_error = room ? 0 : -ENOMEM;
    if (!room || !read_all(control, bytes = room + pointers_size, s.length))
        return false;
    *ret_error = -EBADMSG;
    ret->flags = s.flags;
    ret->group_count = s.group_count;
    ret->limits = (const struct tci_entry_limit *)(void *)bytes;
    ret->limit_count = s.limit_count;
    bytes += s.limit_count * sizeof(struct tci_entry_limit);
    ret->filter = (struct sock_filter *)(void *)bytes;
    ret->filter_count = s.filter_count;
    bytes += s.filter_count * sizeof(struct sock_filter);
    return limits_are_sound(ret) &&
           take_texts(&s, bytes, room + pointers_size + s.length, (char **)(void *)room, ret);
}
