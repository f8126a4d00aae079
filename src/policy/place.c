/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: judging where a file lies. The attack: a server whose cage may write to a directory puts another
 * pin there, or another link on the way to it, and has approved itself; or another user of the host does.
 * Whether the cage can write something is reach.h's to say; here is the way to the file. Invariant: the
 * descriptor that is handed out is of the file that was judged.
 */
#include "policy/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "base/quote.h"

enum { links_max = 40 };

struct walk {
    const struct tci_place *place;
    const char *path;        /* as it was given */
    struct tci_reach *reach; /* NULL: no cage is asked */
    char left[2 * PATH_MAX]; /* what is still to be walked */
    char rest[2 * PATH_MAX], target[PATH_MAX];
    int at;
    int links;
    const char *host; /* what the cage was given, once it reaches something */
    int file;         /* the end of the way, for reading; -1 */
};

/* ---- judging -------------------------------------------------------------------------------- */

/* Where something is that we hold; "" when the kernel does not say: then nothing is known of it. */
static const char *name_of(struct walk *w, int fd)
{
    char link[32];
    ssize_t n;
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, w->target, sizeof w->target - 1);
    w->target[n > 0 ? n : 0] = '\0';
    return w->target;
}

/* The attack: the server writes its own pin or policy, or the link or directory that leads there. */
static int check_cage(struct walk *w, int fd, struct tc_error *reterr)
{
    char quoted[TCI_QUOTE_MAX];
    const char *what = w->place->what;
    enum tci_reached reached = w->reach ? tci_reach_look(w->reach, name_of(w, fd), &w->host)
                                        : TCI_REACHED_NOT;
    if (reached == TCI_REACHED_BY_NAME && w->place->is_replaced)
        return 0; /* the new one has no other name */
    if (reached == TCI_REACHED_NOT)
        return 0;
    if (reached == TCI_REACHED_NO_MEMORY)
        return tci_error_no_memory(reterr);
    tci_error_set(reterr, TC_ERROR_USAGE,
                  "the tool could change the %s %s: it may write to \"%.300s\"", what,
                  tci_quote(w->path, strlen(w->path), quoted), w->host);
    if (reached == TCI_REACHED_BY_NAME)
        tci_error_remedy(reterr, "give the %s only one name: it has another one, a hard link",
                         what);
    else if (reached == TCI_REACHED_UNKNOWN)
        tci_error_remedy(reterr, "make sure that /proc is mounted: how the one is mounted, and the "
                                 "other, cannot be seen");
    else
        tci_error_remedy(reterr, "keep the %s where the tool cannot write", what);
    return 1;
}

static int refuse(const struct walk *w, const char *remedy, const char *why,
                  struct tc_error *reterr)
{
    char quoted[TCI_QUOTE_MAX];
    tci_error_set(reterr, TC_ERROR_USAGE, "the %s %s %s", w->place->what,
                  tci_quote(w->path, strlen(w->path), quoted), why);
    tci_error_remedy(reterr, "%s", remedy);
    return -1;
}

static bool is_foreign(const struct stat *st)
{
    return st->st_uid != geteuid() && st->st_uid != 0;
}

/* Whoever can write to the directory can put another file in its place; where the sticky bit is set, only
 * the owner of the file can. A group with the number of its user is that user's own, by custom. */
static int check_directory(const struct walk *w, struct tc_error *reterr)
{
    struct stat st;
    if (!w->place->ours)
        return 0;
    if (fstat(w->at, &st) < 0)
        return tci_error_errno(reterr, errno, "cannot look at the directory of the %s",
                               w->place->what);
    if (is_foreign(&st))
        return refuse(w, "keep it in a directory of your own", "is in a directory of another user",
                      reterr);
    if (st.st_mode & S_ISVTX)
        return 0;
    if (st.st_mode & S_IWOTH || (st.st_mode & S_IWGRP && st.st_gid != st.st_uid))
        return refuse(w, "chmod go-w its directory, or keep it in another one",
                      "can be replaced by others, who may write to its directory", reterr);
    return 0;
}

static int check_file(const struct walk *w, const struct stat *st, struct tc_error *reterr)
{
    if (!w->place->ours || w->place->is_replaced)
        return 0;
    if (is_foreign(st))
        return refuse(w, "look at it and make it your own (chown), or make it again",
                      "belongs to another user, who can change it", reterr);
    if (!S_ISLNK(st->st_mode) && st->st_mode & (S_IWGRP | S_IWOTH))
        return refuse(w, "look at it, and chmod go-w it", "can be changed by others", reterr);
    return 0;
}

/* ---- the walk ------------------------------------------------------------------------------- */

static bool is_last(const struct walk *w)
{
    return !w->left[strspn(w->left, "/")];
}

static int failed(const struct walk *w, int errnum, struct tc_error *reterr)
{
    char quoted[TCI_QUOTE_MAX];
    return tci_error_errno(reterr, errnum, "cannot open the %s %s", w->place->what,
                           tci_quote(w->path, strlen(w->path), quoted));
}

static int to_root(struct walk *w, struct tc_error *reterr)
{
    (void)tci_close(w->at);
    w->at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return w->at < 0 ? failed(w, errno, reterr) : 0;
}

/* Puts the target of a link in front of what is left. */
static int follow(struct walk *w, int link, struct tc_error *reterr)
{
    ssize_t n = readlinkat(link, "", w->target, sizeof w->target - 1);
    int length;
    if (n < 0 || ++w->links > links_max)
        return failed(w, n < 0 ? errno : ELOOP, reterr);
    w->target[n] = '\0';
    memcpy(w->rest, w->left, strlen(w->left) + 1);
    length = snprintf(w->left, sizeof w->left, "%s/%s", w->target, w->rest);
    if (length < 0 || (size_t)length >= sizeof w->left)
        return failed(w, ENAMETOOLONG, reterr);
    return w->target[0] == '/' ? to_root(w, reterr) : 0;
}

static int open_last(struct walk *w, const char *name, struct tc_error *reterr)
{
    struct stat st;
    w->file = openat(w->at, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (w->file < 0 || fstat(w->file, &st) < 0)
        return failed(w, errno, reterr);
    return check_file(w, &st, reterr);
}

/* There is none yet: it is who could make it that counts. */
static int end_missing(struct walk *w, int errnum, struct tc_error *reterr)
{
    int r = is_last(w) ? check_directory(w, reterr) : 0;
    if (r == 0)
        r = check_cage(w, w->at, reterr);
    if (r == 0 && !is_last(w) && !w->place->may_be_missing)
        r = failed(w, errnum, reterr);
    w->left[0] = '\0';
    return r;
}

/* A link, or the end of the way: who can change it, or put another one there, decides which file it is. */
static int check_name(struct walk *w, int next, const struct stat *st, struct tc_error *reterr)
{
    int r = check_directory(w, reterr);
    if (r == 0)
        r = check_file(w, st, reterr);
    return r == 0 ? check_cage(w, next, reterr) : r;
}

static int step(struct walk *w, const char *name, bool reads, struct tc_error *reterr)
{
    struct stat st;
    tc_cleanup(tci_closep) int next = openat(w->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    int r = 0;

    if (next < 0 && (errno == ENOENT || (errno == ENOTDIR && w->place->may_be_missing)))
        return end_missing(w, errno, reterr);
    if (next < 0 || fstat(next, &st) < 0)
        return failed(w, errno, reterr);
    /* "a/../b" is another file when somebody puts a link in the place of a. */
    if (strcmp(name, "..") == 0)
        r = check_cage(w, w->at, reterr);
    if (r == 0 && (is_last(w) || S_ISLNK(st.st_mode)))
        r = check_name(w, next, &st, reterr);
    if (r == 0 && S_ISLNK(st.st_mode))
        return follow(w, next, reterr);
    if (r == 0 && reads && is_last(w))
        r = open_last(w, name, reterr);
    (void)tci_close(w->at);
    w->at = tci_take_fd(&next);
    return r;
}

static int begin(struct walk *w, struct tc_error *reterr)
{
    int length;
    if (w->path[0] != '/' && !getcwd(w->rest, sizeof w->rest))
        return failed(w, errno, reterr);
    length = w->path[0] == '/' ? snprintf(w->left, sizeof w->left, "%s", w->path)
                               : snprintf(w->left, sizeof w->left, "%s/%s", w->rest, w->path);
    if (length < 0 || (size_t)length >= sizeof w->left)
        return failed(w, ENAMETOOLONG, reterr);
    return to_root(w, reterr);
}

static int walk(struct walk *w, int *ret_fd, struct tc_error *reterr)
{
    char name[NAME_MAX + 1];
    int r = begin(w, reterr);
    while (r == 0 && tci_path_take(w->left, name))
        r = step(w, name, ret_fd, reterr);
    if (r == 0 && !is_last(w))
        r = failed(w, ENAMETOOLONG, reterr);
    if (r == 0 && ret_fd)
        *ret_fd = tci_take_fd(&w->file);
    (void)tci_close(w->file);
    (void)tci_close(w->at);
    return r;
}

static int open_place(const char *path, const struct tci_place *place, int *ret_fd,
                      const char **ret_host, struct tc_error *reterr)
{
    struct walk *w = calloc(1, sizeof *w); /* too large for a small stack */
    tc_cleanup(tci_reach_freep) struct tci_reach *own = NULL;
    int r;

    if (!w)
        return tci_error_no_memory(reterr);
    if (!place->reach && place->cage)
        own = tci_reach_of_cage(place->cage);
    w->place = place;
    w->path = path;
    w->reach = place->reach ? place->reach : own;
    w->at = w->file = -1;
    r = place->cage && !w->reach ? tci_error_no_memory(reterr) : walk(w, ret_fd, reterr);
    if (ret_host)
        *ret_host = w->host;
    free(w);
    return r;
}

int tci_place_open(const char *path, const struct tci_place *place, int *ret_fd,
                   struct tc_error *reterr)
{
    return open_place(path, place, ret_fd, NULL, reterr);
}

int tci_place_check_tree(const struct tci_own_place *own, struct tci_reach *reach,
                         const char **ret_host, struct tc_error *reterr)
{
    const struct tci_place place = { .what = own->what, .reach = reach, .may_be_missing = true };
    char quoted[TCI_QUOTE_MAX];
    char *real;
    int r;
    if (tci_reach_is_empty(reach))
        return 0;
    r = open_place(own->path, &place, NULL, ret_host, reterr);
    if (r != 0)
        return r;
    real = realpath(own->path, NULL);
    if (real && tci_reach_look_below(reach, real, ret_host))
        r = 1;
    free(real);
    if (r == 1)
        tci_error_set(reterr, TC_ERROR_USAGE,
                      "the tool could change the %s %s: it may write to \"%.300s\"", own->what,
                      tci_quote(own->path, strlen(own->path), quoted), *ret_host);
    return r;
}
