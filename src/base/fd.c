/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: descriptors: closing, pipes, Unix sockets, reads and writes that signals do not end. */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/sys.h"

int tci_close(int fd)
{
    int saved = errno;

    /* Not again on EINTR: Linux has released the number already, and it may belong to another
     * thread by now. */
    if (fd >= 0)
        (void)tci_sys.close(fd);
    errno = saved;
    return -1;
}

void tci_closep(int *fd)
{
    *fd = tci_close(*fd);
}

int tci_take_fd(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

int tci_pipe(int ret_ends[2], int flags)
{
    if (pipe2(ret_ends, flags | O_CLOEXEC) == 0)
        return 0;
    ret_ends[0] = ret_ends[1] = -1;
    return -1;
}

int tci_set_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0)
        return -1;
    return flags & O_NONBLOCK ? 0 : fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

ssize_t tci_read_some(int fd, void *buffer, size_t size)
{
    ssize_t n;
    do
        n = tci_sys.read(fd, buffer, size);
    while (n < 0 && errno == EINTR);
    return n;
}

int tci_write_all(int fd, const void *bytes, size_t length)
{
    const char *from = bytes;

    while (length > 0) {
        ssize_t n = write(fd, from, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            /* A file that takes nothing and gives no reason would be asked for ever. */
            errno = n == 0 ? EIO : errno;
            return -1;
        }
        from += n;
        length -= (size_t)n;
    }
    return 0;
}

int tci_unix_connect(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    const size_t length = strlen(path);
    int fd;

    if (length >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address.sun_path, path, length);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) < 0)
        fd = tci_close(fd);
    return fd;
}
