/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: a fresh Debian system to take packages from, by debootstrap, with the mirror that the host's own
 * apt uses. It runs in a mount namespace of its own: what it mounts is gone with it, however it ends, and
 * removing its directory cannot reach through a mount that was left.
 */
#include "backend/oci/image.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "backend/probe_exec.h"
#include "base/buf.h"
#include "base/fd.h"

enum { words_max = 1 << 18, poll_ms = 100 };

struct origin {
    char mirror[512], suite[64];
};

/* "MIRROR SUITE COMPONENT" of the first source of apt with the base system of the host's own release. */
static int find_origin(struct origin *ret, struct tc_error *reterr)
{
    static const char *const argv[] = { "apt-get",
                                        "indextargets",
                                        "--format",
                                        "$(REPO_URI) $(CODENAME) $(COMPONENT)",
                                        "Created-By: Packages",
                                        NULL };
    char program[TCI_PROGRAM_PATH_MAX], *text = malloc(words_max);
    struct tci_program_result result = { .end = TCI_PROGRAM_NOT_BEGUN };

    ret->mirror[0] = '\0';
    if (!text)
        return tci_error_no_memory(reterr);
    if (tci_program_find("apt-get", program))
        /* Root's apt, which will not answer where it cannot write its cache: it is not held back. */
        result = tci_program_run(program, argv, TCI_PROGRAM_SETUID, 60000, text, words_max);
    text[result.end == TCI_PROGRAM_EXITED ? result.length : 0] = '\0';
    for (char *line = text, *next; *line && !*ret->mirror; line = next) {
        char component[32];
        next = line + strcspn(line, "\n");
        if (*next)
            *next++ = '\0';
        if (sscanf(line, "%511s %63s %31s", ret->mirror, ret->suite, component) != 3 ||
            strcmp(component, "main") != 0 || strpbrk(ret->suite, "-/") ||
            (strncmp(ret->mirror, "http", 4) != 0 && strncmp(ret->mirror, "file:", 5) != 0))
            ret->mirror[0] = '\0';
    }
    free(text);
    if (*ret->mirror)
        return 0;
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "apt has no source with the base system in it");
    tci_error_remedy(reterr, "see what 'apt-get indextargets' says, and add a mirror to "
                             "/etc/apt/sources.list");
    return -1;
}

/* An option with the packages of the table, with commas between them. */
static void list_packages(struct tci_arena *arena, struct tci_buf *out)
{
    struct tci_image_rule rule;
    const char *between = "--include=";
    for (const char *at = NULL; tci_image_rule_next(arena, "package", &at, &rule);) {
        tci_buf_string(out, between);
        between = ",";
        tci_buf_append(out, rule.first, strcspn(rule.first, "|"));
    }
}

/* Waits; ends it, and with its pid namespace all that it has started, when the watcher says so. */
static int wait_for(pid_t child, const struct tci_image_watch *watch, struct tc_error *reterr)
{
    const struct timespec pause = { 0, poll_ms * 1000000L };
    int status, r = 0;
    pid_t got;
    while ((got = waitpid(child, &status, WNOHANG)) == 0 || (got < 0 && errno == EINTR)) {
        if (r == 0 && (r = tci_image_step(watch, TCI_IMAGE_DEBOOTSTRAP, 0, 0, reterr)) < 0)
            (void)kill(child, SIGKILL);
        (void)nanosleep(&pause, NULL);
    }
    if (r < 0)
        return -1;
    if (got < 0)
        return tci_error_errno(reterr, errno, "cannot wait for debootstrap");
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}

/* The last line that it has written. */
static void last_words(int log, char ret[200])
{
    char text[1024];
    ssize_t n = pread(log, text, sizeof text - 1,
                      lseek(log, 0, SEEK_END) > (off_t)sizeof text
                          ? lseek(log, 0, SEEK_END) - (off_t)sizeof text + 1
                          : 0);
    const char *line;
    size_t length = 0;
    text[n > 0 ? n : 0] = '\0';
    for (n = (ssize_t)strlen(text); n > 0 && text[n - 1] == '\n'; n--)
        text[n - 1] = '\0';
    line = strrchr(text, '\n');
    for (line = line ? line + 1 : text; *line && length < 199; line++)
        ret[length++] = *line >= ' ' && *line < 127 ? *line : '?';
    ret[length] = '\0';
}

static int run(char *const argv[], int log, const struct tci_image_watch *watch,
               struct tc_error *reterr)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char words[200];
    pid_t child;
    int r;

    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&actions, log, 1);
    (void)posix_spawn_file_actions_adddup2(&actions, log, 2);
    /* A group of its own: a key pressed at the terminal reaches us, and we end it. */
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    r = posix_spawnp(&child, argv[0], &actions, &attributes, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    if (r != 0)
        return tci_error_errno(reterr, r, "cannot start %s", argv[0]);
    r = wait_for(child, watch, reterr);
    if (r <= 0)
        return r;
    last_words(log, words);
    tci_error_set(reterr, TC_ERROR_IO, "debootstrap failed: %s", words);
    tci_error_remedy(reterr, "see that the mirror of apt can be reached");
    return -1;
}

int tci_image_debootstrap(struct tci_image_store *store, const char *name,
                          const struct tci_image_watch *watch, char ret_root[PATH_MAX],
                          struct tc_error *reterr)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    tc_cleanup(tci_buf_free) struct tci_buf include = TCI_BUF_INIT(4096);
    tc_cleanup(tci_closep) int log = -1;
    struct origin origin = { 0 };
    char program[TCI_PROGRAM_PATH_MAX];

    if (!arena)
        return tci_error_no_memory(reterr);
    if (geteuid() != 0) {
        tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "debootstrap needs root");
        tci_error_remedy(reterr, "run it with sudo, or use --from host");
        return -1;
    }
    if (!tci_program_find("debootstrap", program) || !tci_program_find("unshare", program)) {
        tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "there is no debootstrap");
        tci_error_remedy(reterr, "run 'sudo apt-get install debootstrap', or use --from host");
        return -1;
    }
    if (find_origin(&origin, reterr) < 0)
        return -1;
    list_packages(arena, &include);
    if (snprintf(ret_root, PATH_MAX, "%s/%s", store->path, name) >= PATH_MAX)
        return tci_error_set(reterr, TC_ERROR_TOO_LARGE, "the path of the image store is too long");
    if (tci_buf_check(&include, reterr) < 0)
        return -1;
    if (mkdirat(store->directory, name, 0755) < 0)
        return tci_image_store_fail(store, "make directories", reterr);
    log = openat(store->directory, "tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (log < 0)
        return tci_image_store_fail(store, "write", reterr);
    char *const argv[] = { program,
                           (char[]){ "--mount" },
                           (char[]){ "--propagation=private" },
                           (char[]){ "--pid" },
                           (char[]){ "--fork" },
                           (char[]){ "--kill-child" },
                           (char[]){ "--" },
                           (char[]){ "debootstrap" },
                           (char[]){ "--variant=minbase" },
                           include.data,
                           origin.suite,
                           ret_root,
                           origin.mirror,
                           NULL };
    return run(argv, log, watch, reterr);
}
