/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the question at the terminal. */
#ifndef TCI_CLI_APPROVE_H
#define TCI_CLI_APPROVE_H

#include "cli/cli.h"

/* A tc_approval_function: asks on /dev/tty. 1: yes; 0: no; -1: there is nobody to ask. */
int cli_approve(void *context, const struct tc_approval *approval);

#endif
