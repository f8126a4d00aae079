/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the host's side of the attempts: the caller of a cage with secrets about it, a victim, and
 * objects of the kernel that have no path. They run outside every cage. */
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <mqueue.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "attempt.h"

static int record = -1;

static void record_signal(int number_of)
{
    char text[4] = { (char)('0' + number_of / 10), (char)('0' + number_of % 10), '\n', 0 };
    if (write(record, text, 3) < 0)
        _exit(99);
}

static void record_signals(const char *path)
{
    record = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    struct sigaction action = { .sa_handler = record_signal, .sa_flags = SA_RESTART };
    for (int i = 1; i < 32; i++) {
        if (i != SIGCHLD && i != SIGKILL && i != SIGSTOP && i != SIGTERM && i != SIGINT &&
            i != SIGSEGV)
            sigaction(i, &action, NULL);
    }
}

/*
 * --launch RECORD KEY SECRET OPTIONS COMMAND...: a caller that leads a process group, has a key in a
 * session keyring of its own and writes down each signal that it gets. OPTIONS: letters; i: with
 * SIGUSR2 ignored, b: with SIGUSR2 blocked, u: with a mask of 0, -: none of it.
 */
int helper_launch(int argc, char **argv)
{
    if (argc < 5)
        return USAGE;
    setpgid(0, 0);
    if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0)
        syscall(SYS_add_key, "user", argv[1], argv[2], strlen(argv[2]), KEY_SPEC_SESSION_KEYRING);
    /* Before the command can send one. It inherits none of it: exec forgets handlers, and closes the record. */
    record_signals(argv[0]);
    int pid = fork();
    if (pid == 0) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGUSR2);
        if (strchr(argv[3], 'i'))
            signal(SIGUSR2, SIG_IGN);
        if (strchr(argv[3], 'b'))
            sigprocmask(SIG_BLOCK, &set, NULL);
        if (strchr(argv[3], 'u'))
            umask(0);
        execv(argv[4], argv + 4);
        fprintf(stderr, "cannot start %s: %s\n", argv[4], strerror(errno));
        _exit(USAGE);
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* --victim RECORD SECRET: prints its id and where the secret is, then waits to be left alone. */
int helper_victim(int argc, char **argv)
{
    static char secret[64];
    if (argc < 2)
        return USAGE;
    snprintf(secret, sizeof(secret), "%s", argv[1]);
    record_signals(argv[0]);
    signal(SIGINT, SIG_DFL);
    printf("%d %p\n", getpid(), (void *)secret);
    fflush(stdout);
    /* Standard input is the tests': when they end, so do we. */
    char byte;
    while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR)
        ;
    return secret[0] == '\0';
}

static int make_ipc(key_t key, const char *queue, const char *secret)
{
    struct {
        long type;
        char text[64];
    } message = { .type = 1 };
    snprintf(message.text, sizeof(message.text), "%s", secret);
    int shm = shmget(key, 4096, IPC_CREAT | 0600);
    char *memory = shm < 0 ? NULL : shmat(shm, NULL, 0);
    if (!memory || (intptr_t)memory == -1)
        return -1;
    snprintf(memory, 64, "%s", secret);
    int msg = msgget(key, IPC_CREAT | 0600);
    if (msg < 0 || msgsnd(msg, &message, sizeof(message.text), IPC_NOWAIT) < 0)
        return -1;
    if (semget(key, 1, IPC_CREAT | 0600) < 0)
        return -1;
    mqd_t mq = mq_open(queue, O_RDWR | O_CREAT | O_NONBLOCK, 0600, NULL);
    return mq < 0 ? -1 : mq_send(mq, secret, strlen(secret), 0);
}

/* What is left of them: "shm ok", "msg 1", "sem 0". */
static void show_ipc(key_t key, const char *queue)
{
    struct msqid_ds messages = { 0 };
    struct mq_attr attr = { 0 };
    msgctl(msgget(key, 0), IPC_STAT, &messages);
    mqd_t mq = mq_open(queue, O_RDONLY | O_NONBLOCK);
    if (mq >= 0)
        mq_getattr(mq, &attr);
    printf("%lu %d %ld\n", (unsigned long)messages.msg_qnum, semctl(semget(key, 0, 0), 0, GETVAL),
           attr.mq_curmsgs);
}

/* --ipc make|show|remove KEY QUEUE SECRET */
int helper_ipc(int argc, char **argv)
{
    if (argc < 4)
        return USAGE;
    key_t key = (key_t)number(argv[1]);
    if (strcmp(argv[0], "make") == 0 && make_ipc(key, argv[2], argv[3]) < 0) {
        perror("make IPC objects");
        return 1;
    }
    if (strcmp(argv[0], "show") == 0)
        show_ipc(key, argv[2]);
    if (strcmp(argv[0], "remove") == 0) {
        shmctl(shmget(key, 0, 0), IPC_RMID, NULL);
        msgctl(msgget(key, 0), IPC_RMID, NULL);
        semctl(semget(key, 0, 0), 0, IPC_RMID);
        mq_unlink(argv[2]);
    }
    return 0;
}

/* --handle PATH: its type and bytes, for open_by_handle_at. */
int helper_handle(int argc, char **argv)
{
    union {
        struct file_handle handle;
        char bytes[sizeof(struct file_handle) + 128];
    } u = { .handle = { .handle_bytes = 128 } };
    int mount;
    if (argc < 1)
        return USAGE;
    if (name_to_handle_at(AT_FDCWD, argv[0], &u.handle, &mount, 0) < 0) {
        perror("name_to_handle_at");
        return 1;
    }
    printf("%d ", u.handle.handle_type);
    for (unsigned i = 0; i < u.handle.handle_bytes; i++)
        printf("%02x", u.handle.f_handle[i]);
    printf("\n");
    return 0;
}

/* --swap A B: exchanges two names as fast as it can, until standard input ends: an accomplice who
 * has the right to write where a path leads through. */
int helper_swap(int argc, char **argv)
{
    if (argc < 2)
        return USAGE;
    fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
    char byte;
    while (read(STDIN_FILENO, &byte, 1) != 0) {
        for (int i = 0; i < 200; i++) {
            if (renameat2(AT_FDCWD, argv[0], AT_FDCWD, argv[1], RENAME_EXCHANGE) < 0) {
                perror("renameat2");
                return 1;
            }
            /* Both sides of a race need time: neither name stays for long, nor for no time. */
            for (volatile int wait = 0; wait < 20000; wait++)
                ;
        }
    }
    return 0;
}
