/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: attempts on shared objects that have no path: System V IPC, message queues, shared memory
 * and the kernel's keys. */
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <mqueue.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "attempt.h"

static int sysv_shm(int argc, char **argv)
{
    (void)argc;
    int id = shmget((key_t)number(argv[0]), 0, 0);
    if (id < 0)
        return held("shmget");
    const char *text = shmat(id, NULL, SHM_RDONLY);
    if ((intptr_t)text == -1)
        return held("shmat");
    return escaped("shared memory of the host: %.64s", text);
}

static int sysv_msg(int argc, char **argv)
{
    struct {
        long type;
        char text[128];
    } message = { 0 };
    (void)argc;
    int id = msgget((key_t)number(argv[0]), 0);
    if (id < 0)
        return held("msgget");
    if (msgrcv(id, &message, sizeof(message.text) - 1, 0, IPC_NOWAIT | MSG_NOERROR) < 0)
        return held("msgrcv");
    return escaped("message of the host: %s", message.text);
}

static int sysv_sem(int argc, char **argv)
{
    (void)argc;
    int id = semget((key_t)number(argv[0]), 0, 0);
    if (id < 0)
        return held("semget");
    struct sembuf add = { .sem_num = 0, .sem_op = 5, .sem_flg = IPC_NOWAIT };
    return judge(semop(id, &add, 1), "changed a semaphore of the host");
}

static int posix_queue(int argc, char **argv)
{
    char text[8192];
    (void)argc;
    mqd_t queue = mq_open(argv[0], O_RDONLY | O_NONBLOCK);
    if (queue < 0)
        return held("mq_open");
    ssize_t got = mq_receive(queue, text, sizeof(text), NULL);
    if (got < 0)
        return held("mq_receive");
    return escaped("message of the host: %.*s", (int)(got < 64 ? got : 64), text);
}

static int shared_file(int argc, char **argv)
{
    (void)argc;
    return loot_path(join("/dev/shm/", argv[0], ""), "shared memory of the host");
}

static int key_search(int argc, char **argv)
{
    char text[256] = "";
    (void)argc;
    long key = syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user", argv[0], 0);
    if (key < 0)
        return held("search the session keyring");
    if (syscall(SYS_keyctl, KEYCTL_READ, key, text, sizeof(text) - 1) < 0)
        return held("read the key");
    return escaped("key of the caller: %s", text);
}

static int key_request(int argc, char **argv)
{
    (void)argc;
    return judge(syscall(SYS_request_key, "user", argv[0], NULL, 0),
                 "requested a key of the caller");
}

static int key_list(int argc, char **argv)
{
    char line[1024];
    (void)argc;
    FILE *file = fopen("/proc/keys", "re");
    if (!file)
        return held("open /proc/keys");
    while (fgets(line, sizeof(line), file)) {
        if (strstr(line, argv[0])) {
            fclose(file);
            return escaped("the caller's key is in /proc/keys");
        }
    }
    fclose(file);
    errno = ENOKEY;
    return held("the caller's key in /proc/keys");
}

/* The user's keyring is one for all of this user's processes. */
static int key_add(int argc, char **argv)
{
    (void)argc;
    long key = syscall(SYS_add_key, "user", argv[0], "x", 1, KEY_SPEC_USER_KEYRING);
    if (key < 0)
        return held("add_key");
    syscall(SYS_keyctl, KEYCTL_UNLINK, key, KEY_SPEC_USER_KEYRING);
    return escaped("put a key into the user's keyring");
}

const struct attempt ipc_attempts[] = {
    { "sysv-shm", 1, sysv_shm, "read shared memory KEY of the host" },
    { "sysv-msg", 1, sysv_msg, "take a message of queue KEY of the host" },
    { "sysv-sem", 1, sysv_sem, "change semaphore KEY of the host" },
    { "posix-mqueue", 1, posix_queue, "take a message of queue NAME of the host" },
    { "dev-shm-file", 1, shared_file, "read NAME in the host's /dev/shm" },
    { "keyring-search", 1, key_search, "read key NAME of the session keyring" },
    { "keyring-request", 1, key_request, "request key NAME" },
    { "keyring-list", 1, key_list, "find key NAME in /proc/keys" },
    { "keyring-add", 1, key_add, "add key NAME to the user's keyring" },
    { 0 },
};
