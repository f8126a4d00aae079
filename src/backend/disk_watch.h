/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: how much a tree of processes has written to storage, by looking at it again and again. */
#ifndef TCI_BACKEND_DISK_WATCH_H
#define TCI_BACKEND_DISK_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct tci_disk_watch;

struct tci_disk_watch *tci_disk_watch_new(void); /* NULL: no memory */
void tci_disk_watch_free(struct tci_disk_watch *watch);
/* Bytes that everybody below the process `root_pid` has written so far, as far as can be seen. */
uint64_t tci_disk_watch_look(struct tci_disk_watch *watch, int root_pid);

#endif
