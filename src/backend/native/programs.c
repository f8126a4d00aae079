/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: `commands`: from names to the files that may be started. The kernel keeps the list, for the
 * whole tree: Landlock lets only these files be executed. The loader must be one of them, and it can
 * start any program that it can map; so in a jail everything else is mounted noexec, which stops the
 * loader too, and only the directories of shared libraries stay mappable. The process backend has no
 * mounts: there, other programs cannot even be read.
 *
 * The interpreter of a listed script is not added: it could run anything. It must be listed itself.
 */
#include "backend/native/native.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "backend/program.h"
#include "base/fd.h"
#include "base/path.h"

enum { programs_max = 4096, headers_max = 64, interpreter_max = 256 };

static int add_program(struct tc_plan *plan, const struct tci_native_program *program,
                       struct tc_error *reterr)
{
    struct tci_programs *list = &plan->programs;
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].path, program->path) == 0)
            return 0;
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 16;
        struct tci_native_program *items = tci_arena_new_array(plan->arena, capacity,
                                                               struct tci_native_program);
        if (!items)
            return tci_error_no_memory(reterr);
        if (list->count)
            memcpy(items, list->items, list->count * sizeof *items);
        list->items = items;
        list->capacity = capacity;
    }
    if (list->count == programs_max)
        return tci_error_set(reterr, TC_ERROR_TOO_LARGE, "\"commands\" lists too many programs");
    list->items[list->count++] = *program;
    return 0;
}

/* PT_INTERP of an ELF file into `buffer`; "" when there is none. */
static void read_interpreter(const char *host, char buffer[interpreter_max])
{
    Elf64_Ehdr header;
    Elf64_Phdr parts[headers_max];
    tc_cleanup(tci_closep) int fd = open(host, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    size_t size;
    buffer[0] = '\0';
    if (fd < 0 || pread(fd, &header, sizeof header, 0) != (ssize_t)sizeof header ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_phentsize != sizeof parts[0] || header.e_phnum > headers_max)
        return;
    size = header.e_phnum * sizeof parts[0];
    if (pread(fd, parts, size, (off_t)header.e_phoff) != (ssize_t)size)
        return;
    for (size_t i = 0; i < header.e_phnum; i++) {
        size_t length = parts[i].p_filesz;
        if (parts[i].p_type != PT_INTERP || length < 2 || length >= interpreter_max)
            continue;
        if (pread(fd, buffer, length, (off_t)parts[i].p_offset) != (ssize_t)length)
            buffer[0] = '\0';
        buffer[length] = '\0';
    }
}

/* The regular file behind a path of the host: its own path, without links, and what it is. A link at a
 * place that a tool may write to is not followed. */
static bool find_file(const struct tc_plan *plan, const char *host, char *ret_host,
                      struct tci_native_program *ret)
{
    char handle[64];
    struct stat status;
    bool is_directory;
    ssize_t n;
    tc_cleanup(tci_closep) int fd = tci_granted_open(&plan->writables, host);
    if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) ||
        tci_granted_identify(fd, &ret->device, &ret->inode, &is_directory) < 0)
        return false;
    (void)snprintf(handle, sizeof handle, "/proc/self/fd/%d", fd);
    n = readlink(handle, ret_host, TCI_PATH_MAX);
    ret_host[n < 0 ? 0 : n] = '\0';
    return n > 0;
}

/* The same for a path of the cage, and the file's path there. False when it is not there, or when a
 * link leads out of what the cage can see. */
static bool resolve(const struct tc_plan *plan, const char *cage, char *ret_host, char *ret_cage,
                    struct tci_native_program *ret)
{
    char buffer[TCI_PATH_MAX + 1];
    const char *from = cage;
    if (plan->is_jail && !(from = tci_native_host_path(plan, cage, buffer, sizeof buffer)))
        from = cage; /* perhaps below a link such as /bin: on the host it is the same one */
    if (!find_file(plan, from, ret_host, ret))
        return false;
    if (strcmp(from, cage) == 0)
        memcpy(ret_cage, ret_host, strlen(ret_host) + 1);
    else if (strcmp(ret_host, from) == 0) /* granted under another name, without links behind it */
        memcpy(ret_cage, cage, strlen(cage) + 1);
    else
        return false;
    if (!plan->is_jail)
        return true;
    from = tci_native_host_path(plan, ret_cage, buffer, sizeof buffer);
    return from && strcmp(from, ret_host) == 0;
}

static int allow(struct tc_plan *plan, const char *cage, bool with_loader, struct tc_error *reterr)
{
    static const size_t size = TCI_PATH_MAX + 1;
    char interpreter[interpreter_max];
    struct tci_native_program program = { 0 };
    char *host = tci_arena_alloc(plan->arena, size), *real = tci_arena_alloc(plan->arena, size);
    if (!host || !real)
        return tci_error_no_memory(reterr);
    if (!resolve(plan, cage, host, real, &program))
        return 0;
    program.path = real;
    if (add_program(plan, &program, reterr) < 0)
        return -1;
    if (plan->is_jail && tci_native_mount_program(plan, real, host, true, &program, reterr) < 0)
        return -1;
    if (!with_loader)
        return 0;
    read_interpreter(host, interpreter);
    return *interpreter == '/' ? allow(plan, interpreter, false, reterr) : 0;
}

static int allow_name(struct tc_plan *plan, const char *name, struct tc_error *reterr)
{
    char path[TCI_PATH_MAX + 1];
    const char *from = tci_search_path;
    if (*name == '/')
        return allow(plan, name, true, reterr);
    while (*from) {
        size_t length = strcspn(from, ":");
        int n = snprintf(path, sizeof path, "%.*s/%s", (int)length, from, name);
        if (n > 0 && (size_t)n < sizeof path && allow(plan, path, true, reterr) < 0)
            return -1;
        from += length + (from[length] == ':');
    }
    return 0;
}

/* ---- shared libraries ------------------------------------------------------------------------ */

/* Directories that hold libraries and, by convention, no programs. On systems where the loader itself
 * lies in /usr/lib, there is no narrower one than that. */
static const char *const library_directories[] = {
    "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib32",
    "/lib/x86_64-linux-gnu",     "/lib/aarch64-linux-gnu",     "/lib64",     "/usr/local/lib",
};
static const char *const loaders[] = { "/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1",
                                       "/lib/ld-musl-x86_64.so.1", "/lib/ld-musl-aarch64.so.1" };

static int add_libraries(struct tc_plan *plan, const char *directory, struct tc_error *reterr)
{
    struct tci_programs *list = &plan->programs;
    struct stat status;
    char *real = tci_arena_alloc(plan->arena, TCI_PATH_MAX + 1);
    if (!real)
        return tci_error_no_memory(reterr);
    if (!realpath(directory, real) || stat(real, &status) < 0 || !S_ISDIR(status.st_mode))
        return 0;
    for (size_t i = 0; i < list->library_count; i++)
        if (tci_path_is_within(real, list->libraries[i]))
            return 0;
    list->libraries[list->library_count++] = real;
    return plan->is_jail ? tci_native_mount_program(plan, real, real, false, NULL, reterr) : 0;
}

static int add_library_directories(struct tc_plan *plan, struct tc_error *reterr)
{
    struct tci_programs *list = &plan->programs;
    char real[TCI_PATH_MAX + 1];
    list->libraries = tci_arena_new_array(plan->arena, tci_array_size(library_directories) + 4,
                                          const char *);
    if (!list->libraries)
        return tci_error_no_memory(reterr);
    for (size_t i = 0; i < tci_array_size(loaders); i++)
        if (realpath(loaders[i], real) && strncmp(real, "/usr/lib/ld-", 12) == 0 &&
            add_libraries(plan, "/usr/lib", reterr) < 0)
            return -1;
    for (size_t i = 0; i < tci_array_size(library_directories); i++)
        if (add_libraries(plan, library_directories[i], reterr) < 0)
            return -1;
    return 0;
}

/* Extension modules of Python lie beside its programs' own files. */
static int add_python(struct tc_plan *plan, struct tc_error *reterr)
{
    for (size_t i = 0; i < plan->programs.count; i++) {
        const char *name = strrchr(plan->programs.items[i].path, '/') + 1;
        char directory[64];
        if (strncmp(name, "python3", 7) != 0 || strlen(name) > 16)
            continue;
        (void)snprintf(directory, sizeof directory, "/usr/lib/%s", name);
        if (add_libraries(plan, directory, reterr) < 0 ||
            add_libraries(plan, "/usr/lib/python3", reterr) < 0)
            return -1;
        return 0;
    }
    return 0;
}

int tci_native_programs(struct tc_plan *plan, struct tc_error *reterr)
{
    const struct tci_settings *s = plan->spec.settings;
    const char *interpreter;
    plan->programs.any = s->commands.any;
    if (s->commands.any)
        return 0;
    if (s->system && add_library_directories(plan, reterr) < 0)
        return -1;
    for (size_t i = 0; i < s->commands.list.count; i++)
        if (allow_name(plan, s->commands.list.items[i].text, reterr) < 0)
            return -1;
    if (s->command.count && plan->spec.program == TCI_PROGRAM_NONE && !plan->spec.is_function &&
        allow_name(plan, s->command.items[0].text, reterr) < 0)
        return -1;
    /* One of ours needs no place in the list; the loader that the kernel starts for it does. */
    interpreter = tci_program_interpreter(plan->spec.program);
    if (interpreter && allow(plan, interpreter, false, reterr) < 0)
        return -1;
    return s->system ? add_python(plan, reterr) : 0;
}
