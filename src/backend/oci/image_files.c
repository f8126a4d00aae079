/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the files of an image: what the chosen packages have installed, without what the table leaves out,
 * and the few that are made here. A file that no package brought is never taken, nor one that not
 * everybody may read: an image is handed around, and the host's secrets must not be in it. Modes are made
 * new, so that no set-user-id bit and no slip of an umask gets in.
 */
#include "backend/oci/image.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/fd.h"
#include "base/sys.h"

enum { skips_max = 64 };

struct collector {
    struct tci_file_list *list;
    const char *skips[skips_max];
    size_t skip_count;
};

struct tci_file *tci_files_add(struct tci_file_list *list, const char *path,
                               enum tci_file_kind kind, unsigned mode, enum tci_file_rank rank)
{
    struct tci_file *file;
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 16384;
        struct tci_file *files = reallocarray(list->files, capacity, sizeof *files);
        if (!files)
            return NULL;
        list->files = files;
        list->capacity = capacity;
    }
    file = &list->files[list->count++];
    *file = (struct tci_file){ .path = path, .kind = kind, .mode = mode, .rank = rank };
    return file;
}

bool tci_files_has(const struct tci_file_list *list, const char *path)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->files[i].path, path) == 0)
            return true;
    return false;
}

/* ---- files of packages ------------------------------------------------------------------------------ */

static bool is_skipped(const struct collector *collector, const char *path)
{
    for (size_t i = 0; i < collector->skip_count; i++)
        if (fnmatch(collector->skips[i], path, FNM_NOESCAPE) == 0)
            return true;
    return false;
}

/* "/bin/x" as "usr/bin/x" where /bin is a link to usr/bin, as it is on all newer systems: an archive must
 * not have files below a link. */
static const char *merged(const struct tci_file_list *list, const char *path)
{
    static const char *const tops[] = { "bin", "lib", "lib32", "lib64", "libx32", "sbin" };
    for (size_t i = 0; i < tci_array_size(tops); i++) {
        size_t length = strlen(tops[i]);
        char target[64], expected[16];
        ssize_t n;
        if (strncmp(path, tops[i], length) != 0 || (path[length] && path[length] != '/'))
            continue;
        n = readlinkat(list->root, tops[i], target, sizeof target - 1);
        (void)snprintf(expected, sizeof expected, "usr/%s", tops[i]);
        if (n <= 0)
            return path;
        target[n] = '\0';
        if (strcmp(target[0] == '/' ? target + 1 : target, expected) != 0)
            return path;
        return path[length] ? tci_arena_printf(list->arena, "usr/%s", path)
                            : tci_arena_strdup(list->arena, expected);
    }
    return path;
}

static int add_merged_links(struct tci_file_list *list)
{
    static const char *const tops[] = { "bin", "lib", "lib32", "lib64", "libx32", "sbin" };
    for (size_t i = 0; i < tci_array_size(tops); i++) {
        const char *target = merged(list, tops[i]);
        struct tci_file *file;
        if (!target)
            return -1;
        if (target == tops[i] || !tci_files_has(list, target))
            continue;
        file = tci_files_add(list, tops[i], TCI_FILE_LINK, 0777, TCI_FILE_OWN);
        if (!file)
            return -1;
        file->target = target;
    }
    return 0;
}

static int read_target(struct tci_file *file, struct tci_file_list *list, int fd, uint64_t size,
                       struct tc_error *reterr)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(fd, "", target, sizeof target);
    if (n < 0 || (uint64_t)n != size || n == PATH_MAX)
        return tci_error_errno(reterr, n < 0 ? errno : EIO, "cannot read the link /%s", file->path);
    file->target = tci_arena_strndup(list->arena, target, (size_t)n);
    return file->target ? 0 : tci_error_no_memory(reterr);
}

/* One path of a package's list. What is not there (dpkg can be told to leave out manuals) or is neither
 * file, directory nor link is passed over. */
static int take_path(struct collector *collector, const char *path, struct tc_error *reterr)
{
    struct tci_file_list *list = collector->list;
    tc_cleanup(tci_closep) int fd = -1;
    struct tci_file *file;
    struct stat status;

    if (is_skipped(collector, path))
        return 0;
    path = merged(list, path + 1);
    if (!path)
        return tci_error_no_memory(reterr);
    if (!*path || strcmp(path, ".") == 0)
        return 0;
    fd = tci_sys.open_beneath(list->root, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == EACCES))
        return 0;
    if (fd < 0 || fstat(fd, &status) < 0)
        return tci_error_errno(reterr, errno, "cannot look at /%s", path);
    if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode) && !S_ISLNK(status.st_mode))
        return 0;
    if (S_ISREG(status.st_mode) && !(status.st_mode & S_IROTH))
        return 0;
    file = tci_files_add(list, path, TCI_FILE_DIRECTORY, 0755, TCI_FILE_OF_PACKAGE);
    if (!file)
        return tci_error_no_memory(reterr);
    if (S_ISLNK(status.st_mode)) {
        file->kind = TCI_FILE_LINK;
        file->mode = 0777;
        return read_target(file, list, fd, (uint64_t)status.st_size, reterr);
    }
    if (S_ISREG(status.st_mode)) {
        file->kind = TCI_FILE_REGULAR;
        file->mode = status.st_mode & 0111 ? 0755 : 0644;
        file->size = (uint64_t)status.st_size;
        file->changed = status.st_mtime;
    }
    return 0;
}

/* The output of "dpkg-query -L": paths; behind a path that was diverted, where it is now. */
static int take_list(struct collector *collector, char *text, struct tc_error *reterr)
{
    const char *path = NULL;
    for (char *line = text, *next; *line; line = next) {
        const char *moved = strstr(line, "diverted ");
        next = line + strcspn(line, "\n");
        if (*next)
            *next++ = '\0';
        if (*line == '/') {
            if (path && take_path(collector, path, reterr) < 0)
                return -1;
            path = line;
        } else if (moved && moved < next && (moved = strstr(line, " to: /"))) {
            path = moved + 5;
        }
    }
    return path ? take_path(collector, path, reterr) : 0;
}

static int take_packages(struct collector *collector, const char *root,
                         const struct tci_package_list *packages, struct tc_error *reterr)
{
    struct tci_arena *arena = collector->list->arena;
    const char **arguments = tci_arena_new_array(arena, packages->chosen + 2, const char *);
    size_t count = 0;
    char *text;

    if (!arguments)
        return tci_error_no_memory(reterr);
    arguments[count++] = "-L";
    for (size_t i = 0; i < packages->count; i++)
        if (packages->packages[i].chosen)
            arguments[count++] = packages->packages[i].qualified;
    if (tci_packages_query(arena, root, arguments, &text, reterr) < 0)
        return -1;
    return take_list(collector, text, reterr);
}

/* ---- order ------------------------------------------------------------------------------------------- */

/* Of several with one path the first here stays: what was made here before what a package has, and that
 * before what is only on the way to something else. */
static int compare(const void *a, const void *b)
{
    const struct tci_file *left = a, *right = b;
    int order = strcmp(left->path, right->path);
    if (order == 0)
        order = (int)right->rank - (int)left->rank;
    return order ? order : (int)left->kind - (int)right->kind;
}

static void sort(struct tci_file_list *list)
{
    size_t kept = 0;
    qsort(list->files, list->count, sizeof *list->files, compare);
    for (size_t i = 0; i < list->count; i++)
        if (kept == 0 || strcmp(list->files[i].path, list->files[kept - 1].path) != 0)
            list->files[kept++] = list->files[i];
    list->count = kept;
}

static int add_parents(struct tci_file_list *list, struct tc_error *reterr)
{
    for (size_t i = 0, count = list->count; i < count; i++)
        for (const char *path = list->files[i].path, *slash = strchr(path, '/'); slash;
             slash = strchr(slash + 1, '/')) {
            const char *parent = tci_arena_strndup(list->arena, path, (size_t)(slash - path));
            if (!parent ||
                !tci_files_add(list, parent, TCI_FILE_DIRECTORY, 0755, TCI_FILE_ON_THE_WAY))
                return tci_error_no_memory(reterr);
        }
    return 0;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct tci_file *)a)->path, ((const struct tci_file *)b)->path);
}

/* Unpacking follows no links: what lies below one could not be unpacked. */
static int check_parents(const struct tci_file_list *list, struct tc_error *reterr)
{
    for (size_t i = 0; i < list->count; i++) {
        const char *path = list->files[i].path, *slash = strrchr(path, '/');
        char parent[PATH_MAX];
        struct tci_file key = { .path = parent };
        const struct tci_file *found;
        if (!slash || slash - path >= PATH_MAX)
            continue;
        (void)snprintf(parent, sizeof parent, "%.*s", (int)(slash - path), path);
        found = bsearch(&key, list->files, list->count, sizeof key, by_path);
        if (!found || found->kind != TCI_FILE_DIRECTORY)
            return tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                                 "/%s is not below a directory, but below a link", path);
    }
    return 0;
}

int tci_files_collect(struct tci_arena *arena, const char *root,
                      const struct tci_package_list *packages, struct tci_file_list *ret,
                      struct tc_error *reterr)
{
    struct collector collector = { .list = ret };
    struct tci_image_rule rule;

    *ret = (struct tci_file_list){ .arena = arena };
    ret->root = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (ret->root < 0)
        return tci_error_errno(reterr, errno, "cannot open %s", root);
    for (const char *at = NULL; tci_image_rule_next(arena, "skip", &at, &rule);)
        if (collector.skip_count < skips_max)
            collector.skips[collector.skip_count++] = rule.first;
    if (take_packages(&collector, root, packages, reterr) < 0 ||
        tci_files_add_own(ret, reterr) < 0 || add_parents(ret, reterr) < 0)
        return -1;
    if (add_merged_links(ret) < 0)
        return tci_error_no_memory(reterr);
    sort(ret);
    for (size_t i = 0; i < ret->count; i++) {
        ret->bytes += ret->files[i].size;
        if (ret->files[i].changed > ret->newest)
            ret->newest = ret->files[i].changed;
    }
    return check_parents(ret, reterr);
}

void tci_files_free(struct tci_file_list *list)
{
    free(list->files);
    list->files = NULL;
    list->root = tci_close(list->root);
}
