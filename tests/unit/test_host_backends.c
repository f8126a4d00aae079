/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: tests of the conclusions from a report of the host: what each backend can keep. */
#include "host_support.h"

#include <stdio.h>
#include <string.h>
#include "backend/host.h"
#include "backend/ready.h"

static void fill(struct tci_host_report *report, enum tci_feature_state state)
{
    memset(report, 0, sizeof *report);
    for (size_t i = 0; i < TCI_FEATURE_COUNT; i++) {
        report->features[i].id = (enum tci_feature)i;
        report->features[i].state = state;
        snprintf(report->features[i].detail, sizeof report->features[i].detail, "detail %zu", i);
        if (state != TCI_FEATURE_YES)
            snprintf(report->features[i].remedy, sizeof report->features[i].remedy, "remedy %zu",
                     i);
    }
}

/* ---- conclusions -------------------------------------------------------------------------- */

static void test_backends_have_their_names(void **state)
{
    static const char *const names[] = { "process",  "jail",       "oci/crun",
                                         "oci/runc", "oci/podman", "oci/docker",
                                         "gvisor",   "wasm",       "microvm" };
    (void)state;
    assert_int_equal(tci_backend_count(), tci_array_size(names));
    for (size_t i = 0; i < tci_array_size(names); i++)
        assert_string_equal(tci_backend_name(i), names[i]);
    assert_null(tci_backend_name(tci_array_size(names)));
}

static void test_host_without_anything_keeps_nothing(void **state)
{
    static struct tci_host_report report;
    const enum tci_feature_state states[] = { TCI_FEATURE_NO, TCI_FEATURE_UNKNOWN };
    (void)state;
    for (size_t s = 0; s < tci_array_size(states); s++) {
        fill(&report, states[s]);
        for (size_t b = 0; b < tci_backend_count(); b++) {
            struct tci_missing missing;
            assert_false(tci_backend_ready(&report, tci_backend_name(b), &missing));
            assert_true(missing.count > 0);
            for (size_t c = 0; c < TCI_CLAUSE_COUNT; c++) {
                char why[256], remedy[256];
                assert_false(tci_backend_can_for(&report, tci_backend_name(b), (enum tci_clause)c,
                                                 ~0U, why, sizeof why, remedy, sizeof remedy));
                assert_string_not_equal(why, "");
                assert_string_not_equal(remedy, "");
            }
        }
    }
}

/* Also shows that the table has an answer for every backend and clause. */
static void test_host_with_everything_keeps_all_but_what_cannot_be(void **state)
{
    static struct tci_host_report report;
    static const char *const never[] = {
        "process network_names",
        "process network_public",
        "process scratch",
        "oci/crun exec_allowlist",
        "oci/runc exec_allowlist",
        "oci/podman exec_allowlist",
        "oci/docker exec_allowlist",
        "gvisor exec_allowlist",
        "wasm network_host",
        "microvm filesystem",
        "microvm network_names",
        "microvm network_public",
        "microvm network_host",
        "microvm syscalls",
        "microvm exec_allowlist",
        "microvm pids",
        "microvm files",
        "microvm scratch",
    };
    size_t refused = 0;
    (void)state;
    fill(&report, TCI_FEATURE_YES);
    for (size_t b = 0; b < tci_backend_count(); b++) {
        const char *backend = tci_backend_name(b);
        struct tci_missing missing;
        assert_true(tci_backend_ready(&report, backend, &missing));
        assert_int_equal(missing.count, 0);
        for (size_t c = 0; c < TCI_CLAUSE_COUNT; c++) {
            struct tci_keeping k;
            char pair[64];
            bool found = false;
            tci_backend_keeps(&report, backend, (enum tci_clause)c, &k);
            assert_null(strstr(k.why, "no such"));
            snprintf(pair, sizeof pair, "%s %s", backend, tci_clause_name((enum tci_clause)c));
            for (size_t i = 0; i < tci_array_size(never); i++)
                found |= strcmp(pair, never[i]) == 0;
            refused += k.keeps == TCI_KEEPS_NO;
            if (found != (k.keeps == TCI_KEEPS_NO))
                fail_msg("%s: %s", pair, k.why);
            if (k.keeps != TCI_KEEPS_YES)
                assert_string_not_equal(k.remedy, "");
        }
    }
    assert_int_equal(refused, tci_array_size(never));
}

/* The kernel limits no sum of bytes over all files. They are counted where the supervisor sees the whole
 * tree: not in Docker's containers, unless it is root. */
static void test_disk_is_kept_only_where_nothing_is_writable(void **state)
{
    static const char *const counted[] = { "jail", "oci/crun", "oci/runc", "oci/podman", "gvisor" };
    static struct tci_host_report report;
    char why[256], remedy[256];
    (void)state;
    fill(&report, TCI_FEATURE_YES);
    for (size_t b = 0; b < tci_backend_count(); b++) {
        const char *backend = tci_backend_name(b);
        bool is_counted = false;
        for (size_t i = 0; i < tci_array_size(counted); i++)
            is_counted |= strcmp(backend, counted[i]) == 0;
        report.features[TCI_FEATURE_PRIVILEGED].state = TCI_FEATURE_YES;
        if (is_counted || strcmp(backend, "oci/docker") == 0)
            assert_true(tci_backend_can(&report, backend, TCI_CLAUSE_DISK, why, sizeof why, remedy,
                                        sizeof remedy));
        report.features[TCI_FEATURE_PRIVILEGED].state = TCI_FEATURE_NO;
        if (is_counted)
            continue;
        assert_false(tci_backend_can(&report, backend, TCI_CLAUSE_DISK, why, sizeof why, remedy,
                                     sizeof remedy));
        assert_true(tci_backend_can_for(&report, backend, TCI_CLAUSE_DISK,
                                        TCI_FACT_NOTHING_WRITABLE, why, sizeof why, remedy,
                                        sizeof remedy));
        assert_string_equal(why, "");
    }
}

static void test_process_without_control_groups_keeps_limits_of_lone_tools(void **state)
{
    static struct tci_host_report report;
    const enum tci_clause clauses[] = { TCI_CLAUSE_MEMORY, TCI_CLAUSE_PIDS, TCI_CLAUSE_CPU_TIME };
    char why[256], remedy[256];
    (void)state;
    fill(&report, TCI_FEATURE_NO);
    report.features[TCI_FEATURE_SECCOMP_FILTER].state = TCI_FEATURE_YES;
    for (size_t i = 0; i < tci_array_size(clauses); i++) {
        assert_false(tci_backend_can(&report, "process", clauses[i], why, sizeof why, remedy,
                                     sizeof remedy));
        assert_non_null(strstr(why, "control group"));
        assert_non_null(strstr(remedy, "pure"));
        assert_true(tci_backend_can_for(&report, "process", clauses[i], TCI_FACT_ALONE, why,
                                        sizeof why, remedy, sizeof remedy));
        assert_false(tci_backend_can_for(&report, "process", clauses[i], TCI_FACT_WHOLE_CORES, why,
                                         sizeof why, remedy, sizeof remedy));
    }
    assert_false(tci_backend_can_for(&report, "process", TCI_CLAUSE_FILESYSTEM, ~0U, why,
                                     sizeof why, remedy, sizeof remedy));
    assert_non_null(strstr(why, "landlock"));
}

/* A listener for each port needs nothing of nftables; one for all ports does. */
static void test_names_without_redirect_are_kept_for_few_ports(void **state)
{
    static const char *const backends[] = { "jail",       "oci/crun",   "oci/runc",
                                            "oci/podman", "oci/docker", "gvisor" };
    static struct tci_host_report report;
    char why[256], remedy[256];
    (void)state;
    fill(&report, TCI_FEATURE_YES);
    report.features[TCI_FEATURE_GATE_REDIRECT].state = TCI_FEATURE_NO;
    for (size_t i = 0; i < tci_array_size(backends); i++) {
        assert_false(tci_backend_can_for(&report, backends[i], TCI_CLAUSE_NETWORK_NAMES,
                                         ~(unsigned)TCI_FACT_FEW_PORTS, why, sizeof why, remedy,
                                         sizeof remedy));
        assert_non_null(strstr(why, "32 ports"));
        assert_non_null(strstr(remedy, "gate_redirect"));
        assert_true(tci_backend_can_for(&report, backends[i], TCI_CLAUSE_NETWORK_NAMES,
                                        TCI_FACT_FEW_PORTS, why, sizeof why, remedy,
                                        sizeof remedy));
        assert_string_equal(why, "");
        assert_false(tci_backend_can_for(&report, backends[i], TCI_CLAUSE_NETWORK_PUBLIC, ~0U, why,
                                         sizeof why, remedy, sizeof remedy));
        assert_non_null(strstr(why, "gate_redirect"));
    }
    report.features[TCI_FEATURE_GATE_LOCAL_ROUTE].state = TCI_FEATURE_NO;
    for (size_t i = 0; i < tci_array_size(backends); i++)
        assert_false(tci_backend_can_for(&report, backends[i], TCI_CLAUSE_NETWORK_NAMES, ~0U, why,
                                         sizeof why, remedy, sizeof remedy));
}

static unsigned facts_of_network(const char *network)
{
    char text[1000];
    unsigned facts;
    struct tc_policy *policy;
    (void)snprintf(text, sizeof text, "[tool.t]\nnetwork = %s\n", network);
    policy = load_text(text);
    facts = tci_settings_facts(&policy->tools[0].settings);
    tc_policy_free(policy);
    return facts;
}

static void test_few_ports_are_counted_over_all_rules(void **state)
{
    (void)state;
    assert_true(facts_of_network("\"none\"") & TCI_FACT_FEW_PORTS);
    assert_true(facts_of_network("[\"a.example:443\", \"deny:*.b.example:*\"]") &
                TCI_FACT_FEW_PORTS);
    assert_true(facts_of_network("[\"a.example:1-32\", \"b.example:8-20\"]") & TCI_FACT_FEW_PORTS);
    assert_false(facts_of_network("[\"a.example:1-32\", \"b.example:33\"]") & TCI_FACT_FEW_PORTS);
    assert_false(facts_of_network("[\"a.example:*\"]") & TCI_FACT_FEW_PORTS);
    assert_false(facts_of_network("\"public\"") & TCI_FACT_FEW_PORTS);
}

static void test_process_never_promises_network_names(void **state)
{
    static struct tci_host_report report;
    char why[256], remedy[256];
    (void)state;
    fill(&report, TCI_FEATURE_YES);
    assert_false(tci_backend_can_for(&report, "process", TCI_CLAUSE_NETWORK_NAMES, ~0U, why,
                                     sizeof why, remedy, sizeof remedy));
    assert_string_equal(why, "the process backend has no network namespace");
}

static void test_uncertain_feature_is_not_relied_on(void **state)
{
    static struct tci_host_report report;
    char why[256], remedy[256];
    (void)state;
    fill(&report, TCI_FEATURE_YES);
    report.features[TCI_FEATURE_KVM].state = TCI_FEATURE_UNKNOWN;
    assert_false(tci_backend_can(&report, "microvm", TCI_CLAUSE_MEMORY, why, sizeof why, remedy,
                                 sizeof remedy));
    assert_non_null(strstr(why, "kvm is not certain"));
}

static void test_jail_counts_processes_with_either_means(void **state)
{
    static struct tci_host_report report;
    char why[256], remedy[256];
    (void)state;
    fill(&report, TCI_FEATURE_YES);
    report.features[TCI_FEATURE_CGROUP_PIDS].state = TCI_FEATURE_NO;
    assert_true(
        tci_backend_can(&report, "jail", TCI_CLAUSE_PIDS, why, sizeof why, remedy, sizeof remedy));
    report.features[TCI_FEATURE_USERNS_PROCESS_LIMIT].state = TCI_FEATURE_NO;
    assert_false(
        tci_backend_can(&report, "jail", TCI_CLAUSE_PIDS, why, sizeof why, remedy, sizeof remedy));
    assert_non_null(strstr(why, "cgroup_pids"));
}

static void test_jail_runs_as_root_without_user_namespaces(void **state)
{
    static struct tci_host_report report;
    struct tci_missing missing;
    (void)state;
    fill(&report, TCI_FEATURE_YES);
    report.features[TCI_FEATURE_USER_NAMESPACES].state = TCI_FEATURE_NO;
    assert_true(tci_backend_ready(&report, "jail", &missing));
    report.features[TCI_FEATURE_PRIVILEGED].state = TCI_FEATURE_NO;
    assert_false(tci_backend_ready(&report, "jail", &missing));
    assert_int_equal(missing.count, 1);
    assert_int_equal(missing.features[0], TCI_FEATURE_USER_NAMESPACES);
}

/* Docker's processes are root's: who is not root has the daemon's own limits and no gate. */
static void test_docker_of_an_ordinary_user_keeps_what_the_daemon_keeps(void **state)
{
    static const enum tci_clause kept[] = { TCI_CLAUSE_MEMORY, TCI_CLAUSE_CPU, TCI_CLAUSE_PIDS };
    static const enum tci_clause lost[] = { TCI_CLAUSE_CPU_TIME, TCI_CLAUSE_NETWORK_NAMES,
                                            TCI_CLAUSE_NETWORK_PUBLIC };
    static struct tci_host_report report;
    char why[256], remedy[256];
    (void)state;
    fill(&report, TCI_FEATURE_YES);
    report.features[TCI_FEATURE_PRIVILEGED].state = TCI_FEATURE_NO;
    for (size_t i = 0; i < tci_array_size(kept); i++)
        assert_true(tci_backend_can(&report, "oci/docker", kept[i], why, sizeof why, remedy,
                                    sizeof remedy));
    for (size_t i = 0; i < tci_array_size(lost); i++)
        assert_false(tci_backend_can_for(&report, "oci/docker", lost[i], ~0U, why, sizeof why,
                                         remedy, sizeof remedy));
    report.features[TCI_FEATURE_DOCKER_LIMITS].state = TCI_FEATURE_NO;
    for (size_t i = 0; i < tci_array_size(kept); i++)
        assert_false(tci_backend_can_for(&report, "oci/docker", kept[i], ~0U, why, sizeof why,
                                         remedy, sizeof remedy));
}

/* Limits of runtimes and of rootless Podman are dropped without a word on some hosts: only a control
 * group of ours counts. */
static void test_containers_without_a_control_group_keep_no_memory_limit(void **state)
{
    static const char *const backends[] = { "oci/crun", "oci/runc", "oci/podman", "gvisor" };
    static struct tci_host_report report;
    char why[256], remedy[256];
    (void)state;
    fill(&report, TCI_FEATURE_YES);
    report.features[TCI_FEATURE_CGROUP_MEMORY].state = TCI_FEATURE_NO;
    for (size_t i = 0; i < tci_array_size(backends); i++) {
        assert_false(tci_backend_can_for(&report, backends[i], TCI_CLAUSE_MEMORY, ~0U, why,
                                         sizeof why, remedy, sizeof remedy));
        assert_non_null(strstr(why, "cgroup_memory"));
        assert_true(tci_backend_can(&report, backends[i], TCI_CLAUSE_CPU, why, sizeof why, remedy,
                                    sizeof remedy));
    }
}

static void test_a_container_root_that_can_be_written_is_a_writable_path(void **state)
{
    static const char *const lines[] = { "read_only_rootfs = true", "read_only_rootfs = false" };
    (void)state;
    for (size_t i = 0; i < tci_array_size(lines); i++) {
        char text[200];
        struct tc_policy *policy;
        (void)snprintf(text, sizeof text, "[tool.t]\nbackend = \"oci\"\ncontainer = { %s }\n",
                       lines[i]);
        policy = load_text(text);
        assert_int_equal(
            !(tci_settings_facts(&policy->tools[0].settings) & TCI_FACT_NOTHING_WRITABLE), i);
        tc_policy_free(policy);
    }
}

static void test_unknown_backend_keeps_nothing(void **state)
{
    static struct tci_host_report report;
    struct tci_missing missing;
    char why[256], remedy[256];
    (void)state;
    fill(&report, TCI_FEATURE_YES);
    assert_false(tci_backend_ready(&report, "Jail", &missing));
    assert_false(tci_backend_can(&report, "Jail", TCI_CLAUSE_MEMORY, why, sizeof why, remedy,
                                 sizeof remedy));
    assert_non_null(strstr(why, "no such backend"));
    assert_false(
        tci_backend_can(&report, "jail", TCI_CLAUSE_COUNT, why, sizeof why, remedy, sizeof remedy));
    assert_non_null(strstr(why, "no such clause"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_backends_have_their_names),
        cmocka_unit_test(test_host_without_anything_keeps_nothing),
        cmocka_unit_test(test_host_with_everything_keeps_all_but_what_cannot_be),
        cmocka_unit_test(test_disk_is_kept_only_where_nothing_is_writable),
        cmocka_unit_test(test_process_without_control_groups_keeps_limits_of_lone_tools),
        cmocka_unit_test(test_names_without_redirect_are_kept_for_few_ports),
        cmocka_unit_test(test_few_ports_are_counted_over_all_rules),
        cmocka_unit_test(test_process_never_promises_network_names),
        cmocka_unit_test(test_uncertain_feature_is_not_relied_on),
        cmocka_unit_test(test_jail_counts_processes_with_either_means),
        cmocka_unit_test(test_jail_runs_as_root_without_user_namespaces),
        cmocka_unit_test(test_docker_of_an_ordinary_user_keeps_what_the_daemon_keeps),
        cmocka_unit_test(test_containers_without_a_control_group_keep_no_memory_limit),
        cmocka_unit_test(test_a_container_root_that_can_be_written_is_a_writable_path),
        cmocka_unit_test(test_unknown_backend_keeps_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
