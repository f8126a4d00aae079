/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: `linux.resources` of a bundle: the policy's limits in the words of the runtime spec, and the devices.
 *
 * The control group of toolcage keeps the limits (plan_limits.c), whatever the runtime makes of these: crun
 * and runsc are told to leave groups alone, since on a host with control groups of version 1 they drop limits
 * without a word, or fail. The bundle still says what the policy says: whoever reads it, or runs it with a
 * group of his own, gets no more than the tool does. The figures are those of the group, never larger.
 */
#include "backend/oci/spec.h"

enum {
    period_us = 100000,
    period_long_us = 1000000, /* the kernel takes no quota below 1 ms */
    quota_min_us = 1000,
};

/* The spec's numbers are signed: what does not fit is the largest one. */
static void write_number(struct tci_json *json, const char *key, uint64_t value)
{
    tci_json_unsigned(json, key, value < INT64_MAX ? value : INT64_MAX);
}

/* `swap` counts memory and swap together: with the same figure there is none, and a tool cannot move to
 * the disk what does not fit into its memory. */
static void write_memory(struct tci_json *json, uint64_t memory)
{
    if (memory == TCI_UNLIMITED)
        return;
    tci_json_object_begin(json, "memory");
    write_number(json, "limit", memory);
    write_number(json, "swap", memory);
    tci_json_object_end(json);
}

/* As cgroup_limits.c does it. */
static void write_cpu(struct tci_json *json, uint64_t thousandths)
{
    const uint64_t most = 1000000; /* more cores than there will be */
    const uint64_t share = thousandths < most ? thousandths : most;
    const uint64_t period = share * period_us / 1000 < quota_min_us ? period_long_us : period_us;
    if (thousandths == TCI_UNLIMITED)
        return;
    tci_json_object_begin(json, "cpu");
    tci_json_unsigned(json, "quota", share * period / 1000);
    tci_json_unsigned(json, "period", period);
    tci_json_object_end(json);
}

/* Entry is one of the container's processes, not one of the policy's. gVisor's own kernel counts: here
 * its threads would be counted, which are none of the tool's. */
static void write_pids(struct tci_json *json, const struct tci_oci_plan *plan)
{
    const uint64_t pids = plan->spec.settings->pids;
    if (pids == TCI_UNLIMITED || plan->choice.runtime == TCI_OCI_RUNSC)
        return;
    tci_json_object_begin(json, "pids");
    write_number(json, "limit", pids < INT64_MAX ? pids + 1 : INT64_MAX);
    tci_json_object_end(json);
}

static void write_device(struct tci_json *json, bool allow, int64_t major, int64_t minor)
{
    tci_json_object_begin(json, NULL);
    tci_json_bool(json, "allow", allow);
    if (allow) {
        tci_json_string(json, "type", "c");
        tci_json_integer(json, "major", major);
        if (minor >= 0)
            tci_json_integer(json, "minor", minor);
    }
    tci_json_string(json, "access", allow ? "rw" : "rwm");
    tci_json_object_end(json);
}

/* No node of an image, and none that a tool could make, opens a disk or the kernel's memory: everything is
 * denied first, and then the harmless few that a runtime makes are allowed; `m`, to make one, is not. */
static void write_devices(struct tci_json *json)
{
    static const struct {
        int major, minor;
    } few[] = {
        { 1, 3 } /* null */,    { 1, 5 } /* zero */, { 1, 7 } /* full */, { 1, 8 } /* random */,
        { 1, 9 } /* urandom */, { 5, 0 } /* tty */,  { 5, 2 } /* ptmx */, { 136, -1 } /* pts */,
    };
    tci_json_array_begin(json, "devices");
    write_device(json, false, 0, 0);
    for (size_t i = 0; i < tci_array_size(few); i++)
        write_device(json, true, few[i].major, few[i].minor);
    tci_json_array_end(json);
}

/* runc has no word for "no control groups". With a limit it looks for a group of its own, of which the
 * stage gives it none, and ends with "pids.max: no such file" (runc 1.1.5, as root and as an ordinary
 * user). With devices alone it does not. */
static bool takes_limits(const struct tci_oci_plan *plan)
{
    return plan->choice.runtime != TCI_OCI_RUNC;
}

void tci_oci_spec_resources(struct tci_json *json, const struct tci_oci_plan *plan)
{
    const struct tci_settings *s = plan->spec.settings;
    tci_json_object_begin(json, "resources");
    write_devices(json);
    if (takes_limits(plan)) {
        write_memory(json, s->memory);
        write_cpu(json, s->cpu);
        write_pids(json, plan);
    }
    tci_json_object_end(json);
}
