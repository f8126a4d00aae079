/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what the files about images share.
 *
 *   image.c             finding, listing, removing
 *   image_name.c        references: "toolcage/tool-sandbox:latest"
 *   image_store.c       where a store is; its directory, lock and temporary files
 *   image_way.c         the way to it: making it, and whether others can change it
 *   image_blob.c        content by its digest
 *   image_index.c       index.json
 *   image_manifest.c    manifests and configurations
 *   image_packages.c    which packages, by the table images/tool-sandbox.packages
 *   image_check.c       whether these are as they were installed
 *   image_files.c       packages -> a sorted list of files
 *   image_own.c         files that no package brings
 *   image_tar.c         that list -> a layer
 *   image_build.c       all of that, from start to end
 *   image_debootstrap.c a fresh system to take the packages from
 *   image_unpack.c      a layer -> a directory
 *   image_load.c        an image -> Podman's or Docker's own store
 *
 * A store is an OCI image layout and, beside it, "unpacked" (a root directory for each manifest), "lock"
 * and "tmp". Whatever is written is written in tmp, under the lock, and gets its name when it is whole:
 * what has its name is complete, and what is in tmp while nobody holds the lock is rubbish.
 */
#ifndef TCI_BACKEND_OCI_IMAGE_H
#define TCI_BACKEND_OCI_IMAGE_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/error.h"
#include "base/sha256.h"

/* ---- names ------------------------------------------------------------------------------------- */

enum { TCI_IMAGE_PART_MAX = 129, TCI_IMAGE_NAME_MAX = 340 };

struct tci_image_name {
    char repository[TCI_IMAGE_PART_MAX]; /* "toolcage/tool-sandbox"; "": by digest alone */
    char tag[TCI_IMAGE_PART_MAX];        /* "latest" if none was given; "": by digest */
    char digest[TCI_SHA256_TEXT_MAX];    /* 64 digits; "": by tag */
};

/* "NAME[:TAG]", "NAME@sha256:DIGEST" or "sha256:DIGEST". "localhost/", Podman's word for images of no
 * registry, is taken off. The attack: parts of it become names of files and lines of other programs. */
int tci_image_name_parse(const char *text, struct tci_image_name *ret, struct tc_error *reterr);
/* "NAME:TAG", or "NAME@sha256:DIGEST" for one without a tag. */
const char *tci_image_name_text(const struct tci_image_name *name, char ret[TCI_IMAGE_NAME_MAX]);
/* 64 lower-case digits and nothing else? What becomes the name of a file must pass here. */
bool tci_image_is_digest(const char *text);

/* ---- watching ------------------------------------------------------------------------------------ */

enum tci_image_phase {
    TCI_IMAGE_WAITING, /* for another process */
    TCI_IMAGE_DEBOOTSTRAP,
    TCI_IMAGE_PACKAGES,
    TCI_IMAGE_LAYER,
    TCI_IMAGE_UNPACKING,
    TCI_IMAGE_LOADING,
};

/* `step` is called now and then with bytes done of bytes in all (0: not known). When `stop` is set, work
 * ends with an error and leaves nothing. Either may be NULL. */
struct tci_image_watch {
    void (*step)(void *context, enum tci_image_phase phase, uint64_t done, uint64_t all);
    void *context;
    const atomic_bool *stop;
};
/* 0, or an error that says "interrupted"; `watch` may be NULL. */
int tci_image_step(const struct tci_image_watch *watch, enum tci_image_phase phase, uint64_t done,
                   uint64_t all, struct tc_error *reterr);

/* ---- stores --------------------------------------------------------------------------------------- */

#define TCI_IMAGE_SYSTEM_STORE "/var/lib/toolcage/images"

/* Names of blobs and of unpacked roots must fit behind it. */
enum { TCI_IMAGE_STORE_PATH_MAX = PATH_MAX - 256 };

struct tci_image_store {
    int directory;       /* -1: there is none */
    int lock;            /* -1: not held */
    char path[PATH_MAX]; /* of an open one: without links */
};

#define TCI_IMAGE_STORE_NONE                                                                       \
    {                                                                                              \
        .directory = -1, .lock = -1                                                                \
    }

/* Where the caller's own store is, or would be. */
int tci_image_store_place(char ret[PATH_MAX], struct tc_error *reterr);
/* One's own store ($TOOLCAGE_IMAGES, root's, or the user's); with `make` it is made where it is missing.
 * Without, a missing one is no error: `directory` is -1. A store that somebody else can write, or put
 * another in the place of, is refused: the attack is an image that was put there for us to run. */
int tci_image_store_open(bool make, struct tci_image_store *ret, struct tc_error *reterr);
/* Root's, for everybody else to read; -1 where it does not count. */
int tci_image_store_open_system(struct tci_image_store *ret, struct tc_error *reterr);
void tci_image_store_close(struct tci_image_store *store);
/* image_way.c: makes `path`, with `make`, and takes the links out of it. 1: nobody but root and the caller can
 * change what it leads to. 0: there is none. */
int tci_image_way(struct tci_image_store *store, bool make, struct tc_error *reterr);
/* Waits until nobody else writes; removes what a killed process has left. Given back by close. */
int tci_image_store_lock(struct tci_image_store *store, const struct tci_image_watch *watch,
                         struct tc_error *reterr);
/* A name in tmp that nobody has. */
void tci_image_temporary(char ret[64]);
/* An error about the store whose cause is errno; names the remedy for a full disk. */
int tci_image_store_fail(const struct tci_image_store *store, const char *what,
                         struct tc_error *reterr);
/* Removes a file or a whole tree, below the directory, without following links. */
int tci_image_remove(int directory, const char *name);

/* ---- blobs ---------------------------------------------------------------------------------------- */

struct tci_blob {
    char digest[TCI_SHA256_TEXT_MAX];
    uint64_t size;
};

struct tci_blob_writer {
    struct tci_image_store *store;
    int fd;
    char temporary[64];
    struct tci_sha256 hash;
    uint64_t size;
    char *buffer;
    size_t used;
};

int tci_blob_begin(struct tci_image_store *store, struct tci_blob_writer *ret,
                   struct tc_error *reterr);
int tci_blob_write(struct tci_blob_writer *writer, const void *bytes, size_t length,
                   struct tc_error *reterr);
/* Gives it its name. Whether this or `drop` is called, the writer is gone afterwards. */
int tci_blob_finish(struct tci_blob_writer *writer, struct tci_blob *ret, struct tc_error *reterr);
void tci_blob_drop(struct tci_blob_writer *writer);
int tci_blob_put(struct tci_image_store *store, const void *bytes, size_t length,
                 struct tci_blob *ret, struct tc_error *reterr);
/* A whole small blob, with a NUL behind it, whose digest and size are right. */
int tci_blob_read(const struct tci_image_store *store, struct tci_arena *arena,
                  const struct tci_blob *blob, char **ret, struct tc_error *reterr);
/* A descriptor, and no look at what is in it but its size. */
int tci_blob_open(const struct tci_image_store *store, const struct tci_blob *blob,
                  struct tc_error *reterr);
/* Reads all of it. */
int tci_blob_check(const struct tci_image_store *store, const struct tci_blob *blob,
                   struct tc_error *reterr);

/* ---- images --------------------------------------------------------------------------------------- */

struct tci_image_entry {
    struct tci_image_name name; /* tag "": another image has its name now; digest: the manifest's */
    uint64_t size;              /* of the manifest */
};

struct tci_image_index {
    struct tci_arena *arena;
    struct tci_image_entry *entries;
    size_t count;
};

int tci_image_index_read(const struct tci_image_store *store, struct tci_image_index *ret,
                         struct tc_error *reterr);
void tci_image_index_free(struct tci_image_index *index);
const struct tci_image_entry *tci_image_index_find(const struct tci_image_index *index,
                                                   const struct tci_image_name *name);
/* Under the lock: the name goes to this manifest; what had it stays without. */
int tci_image_index_add(struct tci_image_store *store, const struct tci_image_name *name,
                        const struct tci_blob *manifest, struct tc_error *reterr);
int tci_image_index_write(struct tci_image_store *store, const struct tci_image_entry *entries,
                          size_t count, struct tc_error *reterr);

struct tci_image {
    struct tci_blob manifest, config, layer;
    char created[40];
    const char *architecture, *version; /* of toolcage */
    const char *packages;               /* "bash=5.2.15-2 ...", with blanks between them */
};

/* Reads the manifest and the configuration; their digests are checked. Texts are in the arena. */
int tci_image_read(const struct tci_image_store *store, const struct tci_image_entry *entry,
                   struct tci_arena *arena, struct tci_image *ret, struct tc_error *reterr);
/* Writes both, for a layer that is there. */
int tci_image_write(struct tci_image_store *store, const struct tci_blob *layer, int64_t created,
                    const char *architecture, const char *packages, struct tci_blob *ret,
                    struct tc_error *reterr);

/* ---- what an image is made of ---------------------------------------------------------------------- */

struct tci_package {
    const char *name, *qualified; /* "libc6", "libc6:amd64" */
    const char *architecture, *version, *depends, *pre_depends, *provides;
    bool chosen;
};

struct tci_package_list {
    struct tci_package *packages; /* all that are installed, sorted by name */
    size_t count, chosen;
    const char *architecture; /* Debian's word: "amd64" */
};

/* One line of the table. */
struct tci_image_rule {
    const char *word, *first, *second;
};
/* The lines with this word, one after another; `position` begins with 0. */
bool tci_image_rule_next(struct tci_arena *arena, const char *word, const char **position,
                         struct tci_image_rule *ret);

/* `root`: the host's "/", or a directory with a Debian system. Chosen: those of the table and what they
 * depend on. Missing packages: an error that names them all, with the command that brings them. */
int tci_packages_choose(struct tci_arena *arena, const char *root, struct tci_package_list *ret,
                        struct tc_error *reterr);
/* Refuses packages whose files were changed since they were installed (of the host only). */
int tci_packages_check(struct tci_arena *arena, const char *root,
                       const struct tci_package_list *packages, struct tc_error *reterr);
/* dpkg-query of `root`; `extra` ends with NULL. */
int tci_packages_query(struct tci_arena *arena, const char *root, const char *const *extra,
                       char **ret, struct tc_error *reterr);

enum tci_file_kind { TCI_FILE_REGULAR, TCI_FILE_DIRECTORY, TCI_FILE_LINK };
enum tci_file_rank { TCI_FILE_ON_THE_WAY, TCI_FILE_OF_PACKAGE, TCI_FILE_OWN };

struct tci_file {
    const char *path; /* "usr/bin/bash": no slash at either end */
    enum tci_file_kind kind;
    enum tci_file_rank rank;
    unsigned mode;      /* no more than 0777 and the sticky bit */
    const char *target; /* LINK */
    const char *bytes;  /* REGULAR: made here; NULL: read from the root directory */
    uint64_t size;
    int64_t changed;
};

struct tci_file_list {
    struct tci_arena *arena;
    struct tci_file *files; /* sorted by path, each once, parents first */
    size_t count, capacity;
    uint64_t bytes;
    int64_t newest; /* the youngest file of a package */
    int root;
};

int tci_files_collect(struct tci_arena *arena, const char *root,
                      const struct tci_package_list *packages, struct tci_file_list *ret,
                      struct tc_error *reterr);
/* image_own.c */
int tci_files_add_own(struct tci_file_list *list, struct tc_error *reterr);
/* NULL when out of memory; valid until the next one is added. */
struct tci_file *tci_files_add(struct tci_file_list *list, const char *path,
                               enum tci_file_kind kind, unsigned mode, enum tci_file_rank rank);
bool tci_files_has(const struct tci_file_list *list, const char *path);
void tci_files_free(struct tci_file_list *list);

/* The layer: a tar archive in which every time is `moment` and every owner is root. */
int tci_image_tar(struct tci_image_store *store, const struct tci_file_list *list, int64_t moment,
                  const struct tci_image_watch *watch, struct tci_blob *ret,
                  struct tc_error *reterr);
/* One header, as it is in every archive that is written here; `type` '0' file, '2' link, '5' directory. */
void tci_tar_header(char ret[512], const char *path, char type, unsigned mode, uint64_t size,
                    int64_t moment, const char *target);

/* A new system in a directory of the store's tmp. */
int tci_image_debootstrap(struct tci_image_store *store, const char *name,
                          const struct tci_image_watch *watch, char ret_root[PATH_MAX],
                          struct tc_error *reterr);

/* ---- what the command does ------------------------------------------------------------------------- */

enum tci_image_source { TCI_IMAGE_FROM_HOST, TCI_IMAGE_FROM_DEBOOTSTRAP };

int tci_image_build(const struct tci_image_name *name, enum tci_image_source source,
                    const struct tci_image_watch *watch, struct tc_error *reterr);
/* Under the lock. Does nothing where it is unpacked already. */
int tci_image_unpack(struct tci_image_store *store, const struct tci_image *image,
                     const struct tci_image_watch *watch, struct tc_error *reterr);
/* "unpacked/sha256-..." */
void tci_image_unpacked_name(const char *digest, char ret[96]);
bool tci_image_is_unpacked(const struct tci_image_store *store, const char *digest);

/* What `list` and `show` tell. */
struct tci_image_info {
    const char *store;
    const struct tci_image_entry *entry;
    const struct tci_image *image; /* NULL: `problem` says why */
    const char *problem;
    bool unpacked;
    uint64_t size;
};
typedef void tci_image_tell(void *context, const struct tci_image_info *info);
/* Every image of one's own store and then of root's. */
int tci_image_each(tci_image_tell *tell, void *context, struct tc_error *reterr);
/* One; every byte of it is checked. */
int tci_image_show(const struct tci_image_name *name, tci_image_tell *tell, void *context,
                   struct tc_error *reterr);
/* What an image is made of, wherever it is found; close the store afterwards. */
int tci_image_open(const struct tci_image_name *name, struct tci_arena *arena,
                   struct tci_image_store *ret_store, struct tci_image_entry *ret_entry,
                   struct tci_image *ret_image, struct tc_error *reterr);
/* Takes the name away, and removes what no other image needs. */
int tci_image_rm(const struct tci_image_name *name, struct tc_error *reterr);

/* Under the lock: removes blobs and unpacked roots that no image of the index needs. */
void tci_image_collect(struct tci_image_store *store);

/* Into an engine's own store, over its socket: "podman" or "docker". The name that it has there
 * (Podman: "localhost/NAME:TAG"; Docker: "NAME:TAG") is written to ret_name. */
int tci_image_load(const struct tci_image_name *name, const char *engine,
                   const struct tci_image_watch *watch, char ret_name[TCI_IMAGE_NAME_MAX],
                   struct tc_error *reterr);

/* images/tool-sandbox.packages. */
extern const unsigned char tci_tool_sandbox_blob[];
extern const size_t tci_tool_sandbox_blob_size;

#endif
