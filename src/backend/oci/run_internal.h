/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the state of one call in a container, shared by run*.c. */
#ifndef TCI_BACKEND_OCI_RUN_INTERNAL_H
#define TCI_BACKEND_OCI_RUN_INTERNAL_H

#include "backend/oci/run.h"
#include "backend/watch.h"

enum { TCI_OCI_STREAMS = 3 };

struct tc_run {
    struct tci_oci_plan *plan;
    struct tci_oci_cage *cage;
    int epoll;
    struct tci_watch watch;
    int watched[3]; /* the cage's control, watch and pidfd as the epoll knows them; -1 */
    int streams[TCI_OCI_STREAMS]; /* the call's own, until they were sent */
    struct tci_buf message;
    size_t sent;
    struct tci_entry_report last; /* `kind` is 0 until the command has ended, or never will start */
    char incoming[sizeof(struct tci_entry_report)];
    size_t incoming_length;
    uint64_t killed_us; /* when; 0: it was not */
    bool is_counted;    /* among the plan's calls */
    bool was_lost;      /* the cage had failed by itself before */
    bool hold;          /* files will be brought back */
    bool begun;         /* the message is on its way */
    bool crowded;       /* it is not: the kernel lets no more descriptors pass */
    bool started;       /* the command's program runs, or ran */
    bool silent;        /* the socket has ended */
    uint64_t silent_us; /* when */
    bool ended;         /* nobody of the container lives */
};

/* run.c: the call's own streams are the container's now, or nobody's. */
void tci_oci_drop_streams(struct tc_run *run);
/* run_end.c */
bool tci_oci_is_readable(int fd);

/* run_watch.c: limits that are kept by looking, and what was used. */
int tci_oci_watch_begin(struct tc_run *run,
                        struct tc_error *reterr); /* the command is about to start */
void tci_oci_watch_look(struct tc_run *run);
void tci_oci_watch_last(struct tc_run *run); /* before everybody is killed */
void tci_oci_watch_usage(struct tc_run *run, struct tc_outcome *ret);
/* Steps come at short intervals from now on, the first at once. */
int tci_oci_watch_timer(struct tc_run *run, struct tc_error *reterr);

/* run_outcome.c: what is said of the end. */
void tci_oci_outcome(struct tc_run *run, struct tc_outcome *ret, struct tc_error *reterr);

#endif
