/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the files that a policy is made of, as watch.c needs them: have they changed, is somebody writing
 * them, could a tool of the policy. Everything here looks at the host, and may be called in any thread.
 */
#ifndef TCI_MCP_WATCH_H
#define TCI_MCP_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct tc_policy;

/* Each file and directory that the policy was read from: `path`, its tool directories and their files,
 * its schemas. */
typedef void tci_watch_visitor(void *context, const char *path);
void tci_watch_each_file(const struct tc_policy *policy, const char *path, tci_watch_visitor *visit,
                         void *context);

/* Each place at which a name on the way to `path` can be changed: links on the way, as DIRECTORY/NAME with
 * DIRECTORY behind all links, and in the end the file itself, behind all links. */
void tci_watch_each_place(const char *path, tci_watch_visitor *visit, void *context);

/* A number that is another one when a file of it was replaced or changed. */
uint64_t tci_watch_fingerprint(const struct tc_policy *policy, const char *path);

/* Has somebody opened a file of it for writing? False also when that cannot be known: the file is another
 * user's, or its file system has no leases. */
bool tci_watch_is_being_written(const struct tc_policy *policy, const char *path);

/* watch_guard.c: can a tool of the policy write a file of it, whatever the way is called? What cannot be
 * known counts as yes. */
bool tci_watch_is_writable(const struct tc_policy *policy, const char *path);

#endif
