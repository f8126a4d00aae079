/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: finding what a pattern names. Only directories that the pattern can still match are entered,
 * and where it leaves one name to choose, that name is looked up and nothing listed.
 *
 * The attack: the tree changes while we walk, and has no end. Each directory is opened from the handle
 * of the one above it, one name at a time, links refused: a directory that is swapped for a link is an
 * error and never followed, and one that is moved away is still itself. Entries, depth, length of paths
 * and their memory have maxima.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "base/fd.h"
#include "core/extract_glob.h"
#include "core/extract_internal.h"

struct walk {
    struct tci_extraction *x;
    struct tci_glob glob;
    size_t static_length;
    bool exhausted; /* a maximum was met: no more */
    unsigned depth;
    size_t length;
    char path[TCI_PATH_MAX + 1]; /* of the present directory; "" is the root */
};

static int walk_directory(struct walk *walk, int fd, const struct tci_glob_set *set);

static void closedirp(DIR **directory)
{
    int saved = errno;
    if (*directory)
        (void)closedir(*directory);
    errno = saved;
}

/* Behind the path of the present directory; false when it gets too long. */
static bool enter_name(struct walk *walk, const char *name)
{
    size_t length = strlen(name);

    if (length + 1 > TCI_PATH_MAX - walk->length)
        return false;
    walk->path[walk->length] = '/';
    memcpy(walk->path + walk->length + 1, name, length + 1);
    walk->length += length + 1;
    return true;
}

static void leave_name(struct walk *walk, size_t length)
{
    walk->length = length;
    walk->path[length] = '\0';
}

static int add_match(struct walk *walk)
{
    struct tci_extraction *x = walk->x;
    struct tci_match *match;

    if (walk->length + 1 > TCI_EXTRACT_MATCH_BYTES_MAX - x->match_bytes) {
        walk->exhausted = true;
        return tci_extract_skip(x, walk->path,
                                "too many files match: those from here on are not "
                                "looked at; use a narrower pattern");
    }
    if (x->match_count == x->match_room) {
        void *matches = tci_arena_grow(x->arena, x->matches, x->match_count, sizeof *x->matches,
                                       &x->match_room);
        if (!matches)
            return tci_error_no_memory(x->reterr);
        x->matches = matches;
    }
    match = &x->matches[x->match_count];
    match->static_length = walk->static_length;
    match->path = tci_arena_strndup(x->arena, walk->path, walk->length);
    if (!match->path)
        return tci_error_no_memory(x->reterr);
    x->match_bytes += walk->length + 1;
    x->match_count++;
    return 0;
}

/* A directory below the present one, whose path is in walk->path already. */
static int descend(struct walk *walk, int above, const char *name, const struct tci_glob_set *set)
{
    struct stat st;
    int fd, status;

    if (walk->depth == TCI_EXTRACT_DEPTH_MAX)
        return tci_extract_skip(walk->x, walk->path, "lies too deep: more than %d directories down",
                                TCI_EXTRACT_DEPTH_MAX);
    fd = tci_extract_open(above, name, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        int errnum = errno;
        if (errnum == ENOENT)
            return 0;
        if (tci_extract_is_fatal(errnum, walk->x->reterr))
            return -1;
        if (errnum == ELOOP || errnum == ENOTDIR)
            return tci_extract_skip(walk->x, walk->path, "changed while it was looked at");
        return tci_extract_skip(walk->x, walk->path, "cannot be opened: %s",
                                strerrordesc_np(errnum));
    }
    if (fstat(fd, &st) < 0 || !tci_extract_may(walk->x->what, fd, &st, S_IXOTH)) {
        tci_close(fd);
        return tci_extract_skip(walk->x, walk->path, "is not the tool's to enter");
    }
    walk->depth++;
    status = walk_directory(walk, fd, set);
    walk->depth--;
    return status;
}

/* The kind of an entry: DT_DIR, DT_LNK, or anything else; DT_UNKNOWN when it is gone. */
static unsigned char kind_of_entry(int directory, const char *name, unsigned char said)
{
    struct stat st;

    if (said != DT_UNKNOWN)
        return said;
    if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return DT_UNKNOWN;
    return S_ISDIR(st.st_mode) ? DT_DIR : S_ISLNK(st.st_mode) ? DT_LNK : DT_REG;
}

/* `only`: the pattern leaves no other name. */
static int visit_path(struct walk *walk, int directory, const char *name, unsigned char kind,
                      bool accepted, const struct tci_glob_set *below, bool only)
{
    if (kind == DT_DIR && below)
        return descend(walk, directory, name, below);
    if (kind == DT_DIR)
        return only ? tci_extract_skip(walk->x, walk->path,
                                       "is a directory: add /** for the files in it")
                    : 0;
    if (accepted)
        return add_match(walk);
    /* It stands where a directory was wanted. */
    return kind == DT_LNK
               ? tci_extract_skip(walk->x, walk->path, "is a symbolic link, which is not followed")
               : 0;
}

static int visit(struct walk *walk, int directory, const struct tci_glob_set *set, const char *name,
                 unsigned char said, bool only)
{
    struct tci_glob_set here = tci_glob_name(&walk->glob, set, name);
    bool accepted = tci_glob_accepts(&walk->glob, &here);
    bool deeper = tci_glob_slash(&walk->glob, &here);
    size_t length = walk->length;
    unsigned char kind;
    int status;

    if (!accepted && !deeper)
        return 0;
    kind = kind_of_entry(directory, name, said);
    if (kind == DT_UNKNOWN)
        return 0;
    if (!enter_name(walk, name))
        return tci_extract_skip(walk->x, walk->path,
                                "has an entry with a path of more than %d bytes", TCI_PATH_MAX);
    status = visit_path(walk, directory, name, kind, accepted, deeper ? &here : NULL, only);
    leave_name(walk, length);
    return status;
}

/* The kernel's own trees: their files have no size, and reading one can block, or act. */
static bool is_of_the_kernel(int fd)
{
    struct statfs fs;

    if (fstatfs(fd, &fs) < 0)
        return true;
    switch ((unsigned long)fs.f_type) {
    case PROC_SUPER_MAGIC:
    case SYSFS_MAGIC:
    case CGROUP_SUPER_MAGIC:
    case CGROUP2_SUPER_MAGIC:
    case DEVPTS_SUPER_MAGIC:
    case DEBUGFS_MAGIC:
    case TRACEFS_MAGIC:
    case SECURITYFS_MAGIC:
    case BPF_FS_MAGIC:
    case BINFMTFS_MAGIC:
    case AUTOFS_SUPER_MAGIC:
        return true;
    default:
        return false;
    }
}

static int read_entries(struct walk *walk, DIR *directory, const struct tci_glob_set *set)
{
    const struct dirent *entry;

    while (!walk->exhausted) {
        errno = 0;
        /* cppcheck-suppress readdirCalled ; nobody else reads from this handle */
        entry = readdir(directory);
        if (!entry)
            break;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (walk->x->entries == TCI_EXTRACT_ENTRIES_MAX) {
            walk->exhausted = true;
            return tci_extract_skip(walk->x, walk->path[0] ? walk->path : "/",
                                    "not all of it was looked at: %d entries are the maximum; use "
                                    "a narrower pattern",
                                    TCI_EXTRACT_ENTRIES_MAX);
        }
        walk->x->entries++;
        if (visit(walk, dirfd(directory), set, entry->d_name, entry->d_type, false) < 0)
            return -1;
    }
    if (!walk->exhausted && errno != 0)
        return tci_extract_skip(walk->x, walk->path[0] ? walk->path : "/", "cannot be read: %s",
                                strerrordesc_np(errno));
    return 0;
}

/* Closes `fd`. */
static int list_directory(struct walk *walk, int fd, const struct tci_glob_set *set)
{
    struct stat st;
    const bool may = fstat(fd, &st) == 0 && tci_extract_may(walk->x->what, fd, &st, S_IROTH);
    tc_cleanup(closedirp) DIR *directory = may ? fdopendir(fd) : NULL;

    if (!directory)
        tci_close(fd);
    if (!may)
        return tci_extract_skip(walk->x, walk->path[0] ? walk->path : "/",
                                "is not the tool's to list");
    if (!directory)
        return tci_error_no_memory(walk->x->reterr);
    return read_entries(walk, directory, set);
}

/* Closes `fd`. */
static int walk_directory(struct walk *walk, int fd, const struct tci_glob_set *set)
{
    char name[TCI_COMPONENT_MAX + 1];
    int status;

    if (is_of_the_kernel(fd))
        status = tci_extract_skip(walk->x, walk->path[0] ? walk->path : "/",
                                  "is a file system of the kernel, which holds no files");
    else if (tci_glob_only_name(&walk->glob, set, name))
        status = visit(walk, fd, set, name, DT_UNKNOWN, true);
    else
        return list_directory(walk, fd, set);
    tci_close(fd);
    return status;
}

/* A cage whose root is gone has no directory at all, and "it is not there" says nothing: then the
 * files are lost, which must not look like there being none. */
static int check_root(struct tci_extraction *x)
{
    int fd;

    if (x->root_seen)
        return 0;
    fd = x->what->open_directory(x->what->context, "/", x->reterr);
    if (fd < 0)
        return tci_error_set(x->reterr, TC_ERROR_IO, "the cage's root cannot be opened");
    tci_close(fd);
    x->root_seen = true;
    return 0;
}

/* Is it no answer about the path? The cage is gone, or this backend cannot look there: then the files are lost,
 * and a list without them must not look like success. */
static bool is_ours(const struct tc_error *error, int errnum)
{
    return error->code == TC_ERROR_NO_MEMORY || error->code == TC_ERROR_UNSUPPORTED ||
           error->code == TC_ERROR_INTERNAL || errnum == ESRCH;
}

/* The directory up to which a pattern is plain text. -1: not there; -2: the extraction ends. */
static int open_static(struct tci_extraction *x, const char *path)
{
    struct tc_error error = { 0 };
    int fd, errnum;

    errno = 0;
    fd = tci_extract_directory(x->what, path, &error);
    errnum = errno;
    if (fd >= 0)
        return fd;
    if (errnum == ENOENT || errnum == ENOTDIR)
        return check_root(x) < 0 ? -2 : -1;
    if (is_ours(&error, errnum) || tci_extract_is_fatal(errnum, x->reterr)) {
        if (x->reterr && !x->reterr->code)
            *x->reterr = error;
        return -2;
    }
    return tci_extract_skip(x, path, "cannot be opened%s%s", error.code ? ": " : "",
                            error.message) < 0
               ? -2
               : -1;
}

/* `pattern` is in normal form; its first `literal` bytes are text even if they look like wildcards. */
static int walk_pattern(struct tci_extraction *x, const char *pattern, size_t literal)
{
    struct walk walk = { .x = x };
    struct tci_glob_set start;
    int fd, compiled;

    walk.static_length = literal + tci_glob_static_length(pattern + literal);
    if (!pattern[walk.static_length] || !pattern[walk.static_length + 1])
        return tci_extract_skip(x, pattern, "is a directory: add /** for the files in it");
    compiled = tci_glob_compile(x->arena, pattern + walk.static_length + 1, &walk.glob);
    if (compiled < 0)
        return tci_error_no_memory(x->reterr);
    if (compiled > 0)
        return tci_extract_skip(x, pattern,
                                "is too long a pattern: at most %d characters behind "
                                "the directory in which it begins",
                                TCI_GLOB_TOKENS_MAX);
    walk.length = walk.static_length;
    memcpy(walk.path, pattern, walk.length);
    walk.path[walk.length] = '\0';
    fd = open_static(x, walk.length ? walk.path : "/");
    if (fd < 0)
        return fd == -1 ? 0 : -1;
    start = tci_glob_start(&walk.glob);
    return walk_directory(&walk, fd, &start);
}

int tci_extract_walk(struct tci_extraction *x)
{
    const char *cwd = x->what->cwd;

    for (size_t i = 0; i < x->what->glob_count; i++) {
        const char *glob = x->what->globs[i];
        char pattern[TCI_PATH_MAX + 1];
        enum tci_path_problem problem = tci_path_normalise(cwd, glob, strlen(glob), pattern);
        bool relative = glob[0] != '/';
        int status;
        if (problem != TCI_PATH_OK)
            status = tci_extract_skip(x, glob, "is no pattern: it %s",
                                      tci_path_problem_text(problem));
        else if (relative && !tci_path_is_within(pattern, cwd))
            status = tci_extract_skip(x, glob, "leads out of the working directory");
        else
            status = walk_pattern(x, pattern, relative && strcmp(cwd, "/") != 0 ? strlen(cwd) : 0);
        if (status < 0)
            return -1;
    }
    return 0;
}
