/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: files that calls brought back, as resources of a session. They lie in the server's store
 * (resource_store.c): STORE/SESSION/CALL/...
 * What comes out is what the call left: files are read below the store only, and hashed again. How many
 * are kept is bounded, for a session and for an agent, who could have many: the oldest go.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/uuid.h"
#include "mcp/resources.h"

static const int directory_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

enum { random_bytes = 8 };

/* ---- a session's part of it --------------------------------------------------------------- */

/* 0700, or less if the umask says so; one that is there already is a mistake of ours, or an attack. */
static int make_directory(const char *path, struct tc_error *reterr)
{
    if (mkdir(path, 0700) == 0)
        return 0;
    tci_error_errno(reterr, errno, "cannot make %s", path);
    tci_error_remedy(reterr, "check the room and the permissions of $TMPDIR");
    return -1;
}

static int make_place(struct tci_mcp_session *session, struct tc_error *reterr)
{
    char random[2 * random_bytes + 1], path[4096];
    if (session->files_place)
        return 0;
    if (tci_random_hex(random_bytes, random) < 0)
        return tci_error_errno(reterr, errno, "cannot get random bytes");
    (void)snprintf(path, sizeof path, "%s/%s", session->server->store, random);
    if (make_directory(path, reterr) < 0)
        return -1;
    session->files_place = strdup(random);
    return session->files_place ? 0 : tci_error_no_memory(reterr);
}

char *tci_mcp_files_directory(struct tci_mcp_session *session, const char *call,
                              struct tc_error *reterr)
{
    struct tci_mcp_server *server = session->server;
    char *path;
    if (tci_mcp_store_make(server, reterr) < 0 || make_place(session, reterr) < 0)
        return NULL;
    if (asprintf(&path, "%s/%s/%s", server->store, session->files_place, call) < 0) {
        tci_error_no_memory(reterr);
        return NULL;
    }
    if (make_directory(path, reterr) == 0)
        return path;
    free(path);
    return NULL;
}

static void free_file(struct tci_mcp_file *file)
{
    free(file->uri);
    free(file->name);
    free(file->media_type);
    free(file->path);
    free(file);
}

void tci_mcp_files_free(struct tci_mcp_session *session)
{
    while (session->files) {
        struct tci_mcp_file *file = session->files;
        session->files = file->next;
        free_file(file);
    }
    session->file_count = 0;
    session->file_bytes = 0;
    if (session->files_place && session->server->store) {
        tc_cleanup(tci_closep) int store = open(session->server->store, directory_flags);
        if (store >= 0)
            tci_mcp_store_remove(store, session->files_place);
    }
    free(tc_take(session->files_place));
}

/* ---- one file ----------------------------------------------------------------------------- */

/* Everything but what a URI may hold as it is (RFC 3986, unreserved). */
static void put_encoded(struct tci_buf *out, const char *text)
{
    for (; *text; text++)
        if (isalnum((unsigned char)*text) || strchr("-._~", *text))
            tci_buf_char(out, *text);
        else
            tci_buf_printf(out, "%%%02X", (unsigned)(unsigned char)*text);
}

static char *make_uri(const char *call_id, uint64_t number, const char *name)
{
    struct tci_buf out = TCI_BUF_INIT(4096);
    tci_buf_printf(&out, "toolcage://file/%s/%" PRIu64 "/", call_id, number);
    put_encoded(&out, name);
    return tci_buf_take(&out, NULL);
}

/* What comes after the store's own path; NULL: it is not in there. */
static const char *below_store(const struct tci_mcp_server *server, const char *saved)
{
    size_t length = server->store ? strlen(server->store) : 0;
    return length && strncmp(saved, server->store, length) == 0 && saved[length] == '/'
               ? saved + length + 1
               : NULL;
}

/* The length of "SESSION/CALL" in a path below the store. */
static size_t call_length(const char *path)
{
    size_t session = strcspn(path, "/");
    return path[session] ? session + 1 + strcspn(path + session + 1, "/") : session;
}

static bool is_of_call(const struct tci_mcp_file *file, const char *call, size_t length)
{
    return strncmp(file->path, call, length) == 0 && file->path[length] == '/';
}

/* Removes a call's directory, and forgets its files. */
static void forget_call(struct tci_mcp_session *session, const char *path)
{
    size_t length = call_length(path);
    char *call = strndup(path, length), *slash = call ? strchr(call, '/') : NULL;
    struct tci_mcp_file **next = &session->files;
    tc_cleanup(tci_closep) int store = open(session->server->store, directory_flags);
    tc_cleanup(tci_closep) int place = store < 0 || !session->files_place
                                           ? -1
                                           : openat(store, session->files_place, directory_flags);

    if (place >= 0 && slash)
        tci_mcp_store_remove(place, slash + 1);
    while (call && *next) {
        struct tci_mcp_file *file = *next;
        if (!is_of_call(file, call, length)) {
            next = &file->next;
            continue;
        }
        *next = file->next;
        session->file_count--;
        session->file_bytes -= file->size;
        free_file(file);
    }
    free(call);
}

/* False: it has none that could go. */
static bool forget_oldest(struct tci_mcp_session *session)
{
    const struct tci_mcp_file *oldest = NULL;
    size_t before = session->file_count;
    for (const struct tci_mcp_file *file = session->files; file; file = file->next)
        if (file->is_done)
            oldest = file;
    if (oldest)
        forget_call(session, oldest->path);
    return session->file_count < before; /* else without memory */
}

/* Of all sessions of the agent; *ret_largest: the one that has most. */
static uint64_t bytes_of_agent(const struct tci_mcp_session *session,
                               struct tci_mcp_session **ret_largest)
{
    uint64_t bytes = 0;
    *ret_largest = NULL;
    for (struct tci_mcp_session *other = session->server->sessions; other; other = other->next) {
        if (!tci_mcp_same_agent(other->agent, session->agent))
            continue;
        bytes += other->file_bytes;
        if (!*ret_largest || other->file_bytes > (*ret_largest)->file_bytes)
            *ret_largest = other;
    }
    return bytes;
}

/* A model that calls a tool all day would fill the disk with its files: the oldest go. */
static bool make_room(struct tci_mcp_session *session, uint64_t size)
{
    struct tci_mcp_session *largest;
    if (size > TCI_MCP_FILES_BYTES)
        return false;
    while (session->file_count >= TCI_MCP_FILES_MAX ||
           session->file_bytes + size > TCI_MCP_FILES_BYTES)
        if (!forget_oldest(session))
            return false;
    while (bytes_of_agent(session, &largest) + size > TCI_MCP_AGENT_FILES_BYTES)
        if (!largest || !forget_oldest(largest))
            return false;
    return true;
}

void tci_mcp_files_done(struct tci_mcp_session *session, const char *directory)
{
    const char *call = below_store(session->server, directory);
    bool kept = false;
    for (struct tci_mcp_file *file = session->files; call && file; file = file->next)
        if (is_of_call(file, call, strlen(call)))
            kept = file->is_done = true;
    if (call && !kept)
        forget_call(session, call);
}

static struct tci_mcp_file *new_file(const char *call_id, const struct tc_file *file,
                                     const char *path, uint64_t number)
{
    const char *slash = strrchr(file->path, '/'), *name = slash ? slash + 1 : file->path;
    struct tci_mcp_file *entry = calloc(1, sizeof *entry);
    if (!entry)
        return NULL;
    entry->uri = make_uri(call_id, number, name);
    entry->name = strdup(name);
    entry->media_type = strdup(file->media_type);
    entry->path = strdup(path);
    entry->size = file->size;
    (void)snprintf(entry->sha256, sizeof entry->sha256, "%s", file->sha256);
    (void)snprintf(entry->call_id, sizeof entry->call_id, "%s", call_id);
    if (entry->uri && entry->name && entry->media_type && entry->path)
        return entry;
    free_file(entry);
    return NULL;
}

const char *tci_mcp_files_add(struct tci_mcp_session *session, const char *call_id,
                              const struct tc_file *file)
{
    const char *path = file->saved ? below_store(session->server, file->saved) : NULL;
    const struct tci_mcp_file *before;
    struct tci_mcp_file *entry;

    if (!path || !make_room(session, file->size))
        return NULL;
    before = session->files && strcmp(session->files->call_id, call_id) == 0 ? session->files
                                                                             : NULL;
    entry = new_file(call_id, file, path, before ? before->number + 1 : 1);
    if (!entry)
        return NULL;
    entry->number = before ? before->number + 1 : 1;
    entry->next = session->files;
    session->files = entry;
    session->file_count++;
    session->file_bytes += entry->size;
    if (!before) /* once for all files of a call */
        tci_mcp_notify(session, 0, "notifications/resources/list_changed", NULL);
    return entry->uri;
}

const struct tci_mcp_file *tci_mcp_files_find(const struct tci_mcp_session *session,
                                              const char *uri)
{
    for (const struct tci_mcp_file *file = session->files; file; file = file->next)
        if (strcmp(file->uri, uri) == 0)
            return file;
    return NULL;
}

int tci_mcp_files_read(const char *store, const struct tci_mcp_file *file, struct tci_arena *arena,
                       char **ret_bytes, size_t *ret_length, struct tc_error *reterr)
{
    char hash[TCI_SHA256_TEXT_MAX];
    if (file->size > TCI_MCP_RESOURCE_MAX)
        return tci_error_set(reterr, TC_ERROR_TOO_LARGE,
                             "the file has more than the %d MiB that a message can carry",
                             TCI_MCP_RESOURCE_MAX / 1024 / 1024);
    if (tci_file_read_beneath(arena, store, file->path, TCI_MCP_RESOURCE_MAX, ret_bytes, ret_length,
                              reterr) < 0)
        return -1;
    /* A tool that has the host's /tmp granted could have put something else there. */
    tci_sha256_text(*ret_bytes, *ret_length, hash);
    if (strcmp(hash, file->sha256) == 0)
        return 0;
    return tci_error_set(reterr, TC_ERROR_IO, "the file is not what the call left any more");
}
