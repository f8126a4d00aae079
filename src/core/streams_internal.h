/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what streams.c and streams_input.c share. */
#ifndef TCI_CORE_STREAMS_INTERNAL_H
#define TCI_CORE_STREAMS_INTERNAL_H

#include "core/streams.h"

enum { TCI_CHUNK = 64 * 1024 };

/* `input->fd` is the writing end already. */
int tci_input_open(struct tci_input *input, const struct tc_request *request, const void *bytes,
                   size_t length, struct tc_error *reterr);
int tci_input_begin(struct tci_input *input, int epoll);
void tci_input_event(struct tci_input *input, int epoll, enum tci_event event);
void tci_input_close(struct tci_input *input);

#endif
