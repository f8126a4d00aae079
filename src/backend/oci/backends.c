/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the tables of the two container backends. They differ in the plan alone: gvisor is oci with the
 * runtime runsc. */
#include "backend/oci/backends.h"

#include "backend/oci/run.h"

static int plan_oci(const struct tc_spec *spec, struct tc_plan **ret, struct tc_error *reterr)
{
    return tci_oci_plan(&tci_backend_oci, spec, ret, reterr);
}

static int plan_gvisor(const struct tc_spec *spec, struct tc_plan **ret, struct tc_error *reterr)
{
    return tci_oci_plan(&tci_backend_gvisor, spec, ret, reterr);
}

#define CONTAINER                                                                                  \
    .abi = TC_BACKEND_ABI, .plan_free = tci_oci_plan_free, .is_stale = tci_oci_is_stale,           \
    .start = tci_oci_start, .fd = tci_oci_fd, .step = tci_oci_step, .kill = tci_oci_kill,          \
    .destroy = tci_oci_destroy, .layers = tci_oci_layers, .sandbox_id = tci_oci_sandbox_id,        \
    .open_directory = tci_oci_open_directory, .pid = tci_oci_pid, .go = tci_oci_go,                \
    .network = tci_oci_network, .reader = tci_oci_reader

const struct tc_backend tci_backend_oci = {
    CONTAINER,        .kind = TCI_BACKEND_OCI,
    .name = "oci",    .summary = "a container of Podman, Docker, crun or runc",
    .plan = plan_oci,
};

const struct tc_backend tci_backend_gvisor = {
    CONTAINER,           .kind = TCI_BACKEND_GVISOR,
    .name = "gvisor",    .summary = "a container whose system calls gVisor's own kernel answers",
    .plan = plan_gvisor,
};
