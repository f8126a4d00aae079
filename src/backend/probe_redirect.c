/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: can the gate listen for every port at once? Installs the gate's own nf_tables rule (setup.h) in
 * a network namespace of our own, then dials a port at which nobody listens.
 */
#include "backend/probe.h"
#include "backend/probe_gate.h"

#include <errno.h>
#include <string.h>
#include "gate/inside.h"
#include "gate/setup.h"

enum { DIALLED = 4435 };

static const char REMEDY[] =
    "load the modules: sudo modprobe -a nf_tables nft_tproxy; or use a kernel with "
    "CONFIG_NF_TABLES_INET and CONFIG_NFT_TPROXY";

void tci_probe_gate_redirect(const struct tci_probe *p)
{
    const enum tci_feature id = TCI_FEATURE_GATE_REDIRECT;
    char why[TCI_FEATURE_DETAIL_MAX] = "";
    struct tci_gate_setup setup;
    const char *step;
    int problem = tci_gate_enter(&step, why, sizeof why);
    if (problem) {
        tci_probe_failed(p, id, "see user_namespaces and net_namespace", problem, "%s: %s", step,
                         *why ? why : strerrordesc_np(problem));
        return;
    }
    tci_gate_setup(true, false, &setup);
    problem = tci_netlink_send(NETLINK_NETFILTER, &setup.catcher);
    if (problem) {
        tci_probe_refused(p, id, REMEDY, "nf_tables", problem);
        return;
    }
    problem = tci_netlink_send(NETLINK_ROUTE, &setup.v4);
    if (!problem)
        problem = tci_gate_catch(AF_INET, "198.51.100.7", DIALLED, TCI_GATE_CATCH_PORT);
    if (problem)
        tci_probe_refused(p, id, REMEDY, "a connection handed over", problem);
    else
        tci_probe_yes(p, id, "a connection to another port was caught");
}
