/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the functions of the container backends' tables that belong to one call. */
#ifndef TCI_BACKEND_OCI_RUN_H
#define TCI_BACKEND_OCI_RUN_H

#include "backend/oci/oci.h"

int tci_oci_start(struct tc_plan *plan, const struct tc_io *io, struct tc_run **ret,
                  struct tc_error *reterr);
int tci_oci_fd(const struct tc_run *run);
int tci_oci_step(struct tc_run *run, struct tc_outcome *ret, struct tc_error *reterr);
void tci_oci_kill(struct tc_run *run);
void tci_oci_destroy(struct tc_run *run);
const char *tci_oci_layers(const struct tc_run *run);
const char *tci_oci_sandbox_id(const struct tc_run *run);
struct tci_file_reader tci_oci_reader(const struct tc_run *run);
int tci_oci_open_directory(const struct tc_run *run, const char *path, struct tc_error *reterr);
int tci_oci_pid(const struct tc_run *run);
void tci_oci_go(struct tc_run *run);
const struct tci_gate_record *tci_oci_network(const struct tc_run *run, size_t *ret_count,
                                              uint64_t *ret_dropped);

#endif
