/* SPDX-License-Identifier: Apache-2.0 */
/* What the host has, and the functions that run in cages try to get at. */
#ifndef HANDLER_HOST_H
#define HANDLER_HOST_H

#include <stdbool.h>
#include <toolcage/toolcage.h>

struct host {
    int pid, pipe[2], file;
    char secret[32];
    char *shared; /* with nobody, but it could be */
    char *mapped; /* of `file` */
};
extern struct host host;

/* Ends the program when there is none of that name. */
tc_handler *host_function(const char *name);

#endif
