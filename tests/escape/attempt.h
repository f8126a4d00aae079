/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what an escape attempt is. One function tries one attack and says how it ended, in its exit
 * status and in one line on standard output:
 *
 *   0  "ESCAPED: ..."  the attack worked: this must never be seen in a cage
 *   1  "held: ..."     it was refused, and the line says at which step and with which errno
 *   2  "absent: ..."   this kernel has no such thing, so there is nothing to attack
 *
 * Every attempt is harmless when it works: it reads a canary, changes a canary, or does a privileged
 * thing that changes nothing. The tests run each of them without a cage first, where it must work.
 */
#ifndef TOOLCAGE_TESTS_ATTEMPT_H
#define TOOLCAGE_TESTS_ATTEMPT_H

#include <stdbool.h>
#include <stddef.h>

enum { ESCAPED = 0, HELD = 1, ABSENT = 2, USAGE = 64 };

struct attempt {
    const char *name;
    int arguments;                     /* how many it needs at least */
    int (*run)(int argc, char **argv); /* argv[0] is the first argument */
    const char *what;                  /* with the arguments in capitals */
};

/* Tables, one per class of attacks; each ends with a NULL name. */
extern const struct attempt read_attempts[], write_attempts[], plant_attempts[], mount_attempts[],
    device_attempts[], process_attempts[], signal_attempts[], namespace_attempts[],
    outlive_attempts[], network_attempts[], family_attempts[], ring_attempts[], ipc_attempts[],
    kernel_attempts[], foreign_attempts[], terminal_attempts[], inherit_attempts[], exec_attempts[],
    memory_attempts[], process_limit_attempts[], disk_attempts[], control_attempts[];

int escaped(const char *format, ...) __attribute__((format(printf, 1, 2)));
int absent(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Names the step that was refused and adds errno. */
int held(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A result of a system call: negative is held; ENOSYS is absent only where `may_be_absent`. */
int judge(long result, const char *step);

/* Reads a descriptor or a file whole, up to 4095 bytes, and reports them as loot. */
int loot_fd(int fd, const char *how);
int loot_path(const char *path, const char *how);

long number(const char *text);
/* Joins texts into a path in a fixed buffer that the next call overwrites. */
const char *join(const char *a, const char *b, const char *c);
/* Sleeps even where a signal comes in between. */
void sleep_ms(long milliseconds);
/* Writes all bytes; 0, or -1 with errno. */
int write_all(int fd, const void *bytes, size_t length);
/* Makes a file with this content; 0, or -1 with errno. */
int make_file(const char *path, const char *text, unsigned mode);
/* Ends a child and waits for it. */
void end_child(int pid);
/* A user and mount namespace of our own, if that is what it takes; then a mount namespace alone.
 * An attack on mounts that works must not change the host's. */
bool own_mounts(void);

/* Programs that are no attempts: they make the canaries on the host's side. */
int helper_launch(int argc, char **argv);
int helper_victim(int argc, char **argv);
int helper_ipc(int argc, char **argv);
int helper_handle(int argc, char **argv);
int helper_swap(int argc, char **argv);

#endif
