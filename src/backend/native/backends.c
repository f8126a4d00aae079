/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the tables of the two native backends. They differ in the plan alone. */
#include "backend/native/backends.h"

#include "backend/native/run.h"

static int plan_process(const struct tc_spec *spec, struct tc_plan **ret, struct tc_error *reterr)
{
    return tci_native_plan(&tci_backend_process, spec, ret, reterr);
}

static int plan_jail(const struct tc_spec *spec, struct tc_plan **ret, struct tc_error *reterr)
{
    return tci_native_plan(&tci_backend_jail, spec, ret, reterr);
}

#define NATIVE                                                                                     \
    .abi = TC_BACKEND_ABI, .plan_free = tci_native_plan_free, .is_stale = tci_native_is_stale,     \
    .start = tci_native_start, .fd = tci_native_fd, .step = tci_native_step,                       \
    .kill = tci_native_kill, .destroy = tci_native_destroy, .layers = tci_native_layers,           \
    .sandbox_id = tci_native_sandbox_id, .open_directory = tci_native_open_directory,              \
    .pid = tci_native_pid, .go = tci_native_go, .network = tci_native_network,                     \
    .reader = tci_native_reader

const struct tc_backend tci_backend_process = {
    NATIVE,
    .kind = TCI_BACKEND_PROCESS,
    .name = "process",
    .summary = "a process with a filter and Landlock, no namespaces",
    .plan = plan_process,
};

const struct tc_backend tci_backend_jail = {
    NATIVE,
    .kind = TCI_BACKEND_JAIL,
    .name = "jail",
    .summary = "namespaces, a root of its own, a filter and Landlock",
    .plan = plan_jail,
};
