/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the two probes of the gate share: a namespace, and a connection to catch. */
#ifndef TCI_BACKEND_PROBE_GATE_H
#define TCI_BACKEND_PROBE_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <netinet/in.h>
#include <sys/socket.h>

/* A user and a network namespace with its loopback up. 0, or an errno and the step that failed. */
int tci_gate_enter(const char **ret_step, char *ret_why, size_t size);

/* Listens, connects to `address` at `port`, and checks that the connection arrives at a listener
 * on `listen_port` under its original address. 0 or an errno. */
int tci_gate_catch(int family, const char *address, uint16_t port, uint16_t listen_port);

#endif
