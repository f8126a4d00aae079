/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: stdin, stdout and stderr of one call: pipes, what is kept of the output, and the relay of
 * input. Nothing here blocks. Trusts nothing about the other side: it may never read, never stop
 * writing, keep a writing end open after its end, or change the pipe's flags.
 *
 * No SIGPIPE: we keep a reading end of stdin's pipe open until the call is over, so that writing to
 * it can find it full, but never broken. Only where somebody wants to know that the cage has closed it
 * (a server, which nobody can ask anything after that) is it not kept, and the signal taken back. The
 * host's handlers and masks are left alone.
 */
#ifndef TCI_CORE_STREAMS_H
#define TCI_CORE_STREAMS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include "core/result.h"

/* What an event of the call's epoll is about. */
enum tci_event {
    TCI_EVENT_STDOUT,
    TCI_EVENT_STDERR,
    TCI_EVENT_STDIN,  /* there is room in the pipe */
    TCI_EVENT_SOURCE, /* the caller's input can be read */
    TCI_EVENT_TIMER,
    TCI_EVENT_RUN,
    TCI_EVENT_COUNT
};
int tci_event_add(int epoll, int fd, uint32_t events, enum tci_event event);

enum tci_flow {
    TCI_FLOW_ON,
    TCI_FLOW_FULL,      /* more output than the limit */
    TCI_FLOW_STOPPED,   /* the caller's function said so */
    TCI_FLOW_NO_MEMORY, /* to keep it */
};

struct tci_input {
    int fd;            /* the writing end; -1: no more input */
    int source;        /* the caller's; -1: bytes in memory, or nothing left to read */
    bool source_waits; /* it can be waited for, unlike a file */
    const char *bytes; /* not yet written */
    size_t length;
    char *buffer;    /* for what was read from `source` */
    bool is_watched; /* set before tci_streams_begin: the end of the last reader is noticed */
    bool is_refused; /* and it has come */
};

struct tci_streams {
    int epoll; /* the call's */
    int cage[3];
    int output[2]; /* ours; -1: at its end */
    struct tci_input input;
    struct tci_result *result; /* keeps what the limit allows */
    uint64_t room;             /* bytes of stdout and stderr together before the limit */
    bool keep, held;
    bool draining; /* the tree is gone: what is left comes now, or never */
    tc_output_function *on_output;
    void *context;
    char *buffer;
};

/* Nothing is open yet: tci_streams_close is allowed from here on. */
void tci_streams_init(struct tci_streams *streams);

/* Makes the pipes. `bytes` is what stdin gets if there is no `input_fd`; it stays the caller's.
 * Without either, and with `has_null`, stdin has no pipe: cage[0] is -1. With a terminal there are none. Failing, or not, tci_streams_close ends it. */
int tci_streams_open(struct tci_streams *streams, int epoll, const struct tc_request *request,
                     const void *bytes, size_t length, bool has_null, uint64_t limit,
                     struct tci_result *result, struct tc_error *reterr);
/* Moves a descriptor away from 0, 1 and 2. */
int tci_above_standard(int *fd);
/* After the cage has its ends: closes ours of them, and lets things flow. */
int tci_streams_begin(struct tci_streams *streams, struct tc_error *reterr);

/* Deals with an event. `budget` is how many bytes it may read; it is lowered. */
enum tci_flow tci_streams_event(struct tci_streams *streams, enum tci_event event, size_t *budget);

/* After the end of the tree: what is in the pipes, and not a byte that comes later. */
enum tci_flow tci_streams_drain(struct tci_streams *streams);

/* Stops and resumes reading output: the cage waits when its pipe is full. Ignored at the end. */
int tci_streams_hold(struct tci_streams *streams, bool hold);

void tci_streams_close(struct tci_streams *streams);

#endif
