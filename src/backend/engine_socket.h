/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: one harmless question to a container engine over its local socket: who answers there? No
 * HTTP library, because the question is asked before it is known whether one is needed.
 */
#ifndef TCI_BACKEND_ENGINE_SOCKET_H
#define TCI_BACKEND_ENGINE_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { TCI_ENGINE_PLACE_MAX = 108, TCI_ENGINE_API_MAX = 16 };

/* One GET; the answer is kept as text, cut off at `size`. 0, or an errno: ETIMEDOUT after
 * `limit_ms`. `ret_peer`: as whom the engine listens, stamped by the kernel; may be NULL. */
int tci_engine_get(const char *socket_path, const char *what, int limit_ms, char *answer,
                   size_t size, uid_t *ret_peer);
/* Is it HTTP 200? */
bool tci_engine_is_ok(const char *answer);

struct tci_engine_answer {
    char api[TCI_ENGINE_API_MAX]; /* "1.41"; "?": it does not say */
    uid_t peer;
};

/* 0 if an engine answers at `socket_path`, or an errno: ENOENT, ECONNREFUSED, EACCES, EPROTO ... */
int tci_engine_ping(const char *socket_path, int limit_ms, struct tci_engine_answer *ret);

/* Where a Docker daemon may listen, best first. DOCKER_HOST alone, if it is set: 0 places if it is
 * not a local socket. How many; at most 3. */
size_t tci_docker_places(char ret[3][TCI_ENGINE_PLACE_MAX]);
/* The same for Podman: CONTAINER_HOST alone, if it is set. */
size_t tci_podman_places(bool is_root, char ret[3][TCI_ENGINE_PLACE_MAX]);

#endif
