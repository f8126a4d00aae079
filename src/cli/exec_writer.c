/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: writing on what a command prints, at once and without ever waiting in a write: while a reader
 * is slow, timeouts and signals must still be heard. A pipe that poll() calls writable takes 4096
 * bytes without waiting; so that much is written at a time, and what does not fit is kept while the
 * command is held.
 */
#include "cli/exec.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

void exec_writer_init(struct exec_writer *writer, int fd)
{
    struct stat st;
    *writer = (struct exec_writer){ .fd = fd, .pending = TCI_BUF_INIT(SIZE_MAX / 4) };
    writer->waits = fstat(fd, &st) < 0 || !S_ISREG(st.st_mode);
}

bool exec_writer_is_behind(const struct exec_writer *writer)
{
    return writer->done < writer->pending.length;
}

/* Bytes written; less than `length`: it is full, or broken. */
static size_t write_now(struct exec_writer *writer, const char *bytes, size_t length)
{
    size_t written = 0;
    while (written < length && !writer->problem) {
        struct pollfd ready = { .fd = writer->fd, .events = POLLOUT };
        size_t left = length - written;
        ssize_t n;
        if (writer->waits && poll(&ready, 1, 0) == 0)
            break;
        n = write(writer->fd, bytes + written, writer->waits && left > PIPE_BUF ? PIPE_BUF : left);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (n <= 0)
            writer->problem = n < 0 ? errno : EIO;
        else
            written += (size_t)n;
    }
    return written;
}

int exec_writer_flush(struct exec_writer *writer)
{
    struct tci_buf *pending = &writer->pending;
    if (exec_writer_is_behind(writer))
        writer->done += write_now(writer, pending->data + writer->done,
                                  pending->length - writer->done);
    if (!exec_writer_is_behind(writer) || writer->problem)
        writer->done = pending->length = 0;
    return writer->problem ? -1 : 0;
}

int exec_writer_write(struct exec_writer *writer, const void *bytes, size_t length)
{
    size_t written = 0;
    if (!exec_writer_is_behind(writer))
        written = write_now(writer, bytes, length);
    if (written < length && !writer->problem) {
        tci_buf_append(&writer->pending, (const char *)bytes + written, length - written);
        if (tci_buf_check(&writer->pending, NULL) < 0)
            writer->problem = ENOMEM;
    }
    return writer->problem ? -1 : 0;
}
