/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: tests of a bundle's config.json (read back with another JSON library), of users, capabilities and
 * limits. What is mounted: test_oci_mounts.c; the system call profile: test_oci_seccomp.c. */
#include "oci_support.h"

#include <sys/resource.h>

/* ---- the bundle ----------------------------------------------------------------------------------------- */

static void test_a_plain_tool_gets_nothing_but_its_image(void **state)
{
    (void)state;
    static const char *const sets[] = { "bounding", "effective", "inheritable", "permitted",
                                        "ambient" };
    static const char *const members[] = { "ociVersion", "process", "root",       "hostname",
                                           "mounts",     "linux",   "annotations" };
    struct made made = must_make(&crun, "");
    json_t *c = made.config;
    const char *key;
    json_t *value;
    assert_string_equal(text_at(c, "ociVersion"), "1.0.2");
    assert_string_equal(text_at(c, "root/path"), TCI_STAGE_ROOTFS);
    assert_true(json_is_true(at(c, "root/readonly")));
    assert_true(json_is_true(at(c, "process/noNewPrivileges")));
    assert_true(json_is_false(at(c, "process/terminal")));
    assert_string_equal(text_at(c, "process/args/0"), TCI_ENTRY_PROGRAM);
    assert_string_equal(text_at(c, "process/args/1"), "fd:3");
    assert_int_equal(json_array_size(at(c, "process/args")), 2);
    /* Or crun looks for it in a file that a tool may have written. */
    assert_int_equal(json_array_size(at(c, "process/env")), 1);
    assert_string_equal(text_at(c, "process/env/0"), "HOME=/");
    for (size_t i = 0; i < tci_array_size(sets); i++) {
        json_t *set = json_object_get(at(c, "process/capabilities"), sets[i]);
        assert_true(json_is_array(set) && json_array_size(set) == 0);
    }
    /* Only our own program: test_oci_seccomp.c. */
    assert_int_equal(json_object_size(at(c, "annotations")), 1);
    assert_non_null(at(c, "annotations/run.oci.seccomp_bpf_data"));
    /* No hooks, nothing that a runtime would obey besides. */
    json_object_foreach(c, key, value)
    {
        bool known = false;
        for (size_t i = 0; i < tci_array_size(members); i++)
            known |= strcmp(key, members[i]) == 0;
        if (!known)
            fail_msg("a member that nobody wanted: %s", key);
    }
    end(&made);
}

static void test_every_namespace_is_new_and_the_network_is_empty(void **state)
{
    (void)state;
    static const char *const types[] = {
        "pid", "mount", "ipc", "uts", "cgroup", "user", "network"
    };
    struct made made = must_make(&runc, "network = \"none\"");
    for (size_t i = 0; i < tci_array_size(types); i++) {
        assert_non_null(namespace_of(made.config, types[i]));
        assert_null(at(namespace_of(made.config, types[i]), "path"));
    }
    end(&made);
}

static void test_the_gates_network_is_joined_by_path(void **state)
{
    (void)state;
    struct made made = must_make(&crun, "network = [\"example.org:443\"]");
    assert_string_equal(text_at(namespace_of(made.config, "network"), "path"), TCI_STAGE_NETWORK);
    assert_non_null(strstr(mount_of(&made, "/etc/resolv.conf")->bytes, "nameserver "));
    end(&made);
    made = must_make(&crun, "network = \"none\"");
    assert_int_equal(mount_of(&made, "/etc/resolv.conf")->length, 0);
    end(&made);
}

static void test_only_the_host_network_lists_none(void **state)
{
    (void)state;
    struct made made = must_make(&crun, "network = \"host\"\nallow_host_network = true");
    assert_null(namespace_of(made.config, "network"));
    assert_non_null(namespace_of(made.config, "user"));
    end(&made);
}

static void check_mapping(const struct made *made, const char *which, size_t count,
                          const int (*pairs)[2])
{
    json_t *maps = at(made->config, which);
    assert_int_equal(json_array_size(maps), count);
    for (size_t i = 0; i < count; i++) {
        json_t *map = json_array_get(maps, i);
        assert_int_equal(json_integer_value(at(map, "containerID")), pairs[i][0]);
        assert_int_equal(json_integer_value(at(map, "hostID")), pairs[i][1]);
        assert_int_equal(json_integer_value(at(map, "size")), 1);
    }
}

static void test_no_user_of_a_roots_container_is_one_of_the_host(void **state)
{
    (void)state;
    static const int two[][2] = { { 0, TCI_JAIL_HOST_ID + 1 }, { 1000, TCI_JAIL_HOST_ID } };
    static const int one[][2] = { { 0, TCI_JAIL_HOST_ID } };
    static const int group[][2] = { { 0, TCI_JAIL_HOST_ID + 1 }, { 8, TCI_JAIL_HOST_ID } };
    struct made made = must_make(&crun, "");
    check_mapping(&made, "linux/uidMappings", 2, two);
    check_mapping(&made, "linux/gidMappings", 2, two);
    assert_int_equal(json_integer_value(at(made.config, "process/user/uid")), 1000);
    assert_int_equal(made.plan->host_uid, TCI_JAIL_HOST_ID);
    assert_non_null(strstr(mount_of(&made, "/etc/passwd")->bytes, "cage:x:1000:1000:"));
    end(&made);
    made = must_make(&crun, "container = { user = \"0:8\" }");
    check_mapping(&made, "linux/uidMappings", 1, one);
    check_mapping(&made, "linux/gidMappings", 2, group);
    end(&made);
}

static void test_an_ordinary_user_gives_his_one_id(void **state)
{
    (void)state;
    static const int one[][2] = { { 1000, 0 } }, root[][2] = { { 0, 0 } };
    struct made made = must_make(&crun_user, "");
    check_mapping(&made, "linux/uidMappings", 1, one);
    assert_int_equal(made.plan->host_uid, geteuid());
    end(&made);
    made = must_make(&runc_user, ""); /* which maps 0 or nothing */
    check_mapping(&made, "linux/uidMappings", 1, root);
    assert_int_equal(json_integer_value(at(made.config, "process/user/uid")), 0);
    end(&made);
    assert_refused(&runc_user, "container = { user = \"1000\" }", "runc");
    /* gVisor's stage has a user namespace whoever asks. */
    made = must_make(&runsc, "");
    assert_null(namespace_of(made.config, "user"));
    assert_null(at(made.config, "linux/uidMappings"));
    assert_int_equal(json_integer_value(at(made.config, "process/user/uid")), 0);
    assert_int_equal(made.plan->host_uid, TCI_JAIL_HOST_ID);
    end(&made);
    assert_refused(&runsc, "container = { user = \"1000\" }", "runsc");
}

static void test_a_users_name_is_for_rootless_engines(void **state)
{
    (void)state;
    static const char *const not_numbers[] = { "web", "1000:web", "99999999999", "1000:" };
    struct made made;
    for (size_t i = 0; i < tci_array_size(not_numbers); i++) {
        char text[100];
        (void)snprintf(text, sizeof text, "container = { user = \"%s\" }", not_numbers[i]);
        assert_refused(&crun, text, "container.user");
    }
    /* Without a user namespace the image would say who on the host that is. */
    assert_refused(&docker, "container = { user = \"web\" }", "container.user");
    made = must_make(&podman, "container = { user = \"web\" }");
    assert_string_equal(made.plan->user, "web");
    assert_null(mount_of(&made, "/etc/passwd")); /* the image's own knows him */
    assert_non_null(mount_of(&made, "/etc/hosts"));
    end(&made);
}

static void test_an_engines_user_owns_what_was_granted(void **state)
{
    (void)state;
    char work[100];
    struct made made;
    (void)snprintf(work, sizeof work, "%s/work", host);
    if (geteuid() == 0)
        assert_int_equal(chown(work, 4321, 4322), 0);
    made = must_make(&docker,
                     "filesystem = { readable = [\"HOST/data\"], writable = [\"HOST/work\"] }");
    if (geteuid() == 0)
        assert_string_equal(made.plan->user, "4321:4322");
    end(&made);
    if (geteuid() == 0)
        assert_int_equal(chown(work, 0, 0), 0);
    made = must_make(&docker, "");
    assert_string_equal(made.plan->user, "65534:65534");
    end(&made);
    made = must_make(&podman, "filesystem = { writable = [\"HOST/work\"] }");
    assert_string_equal(made.plan->user, "0:0"); /* the caller */
    assert_non_null(strstr(mount_of(&made, "/etc/passwd")->bytes, "root:x:0:0:"));
    end(&made);
}

static void test_capabilities_are_those_that_are_added_and_not_dropped(void **state)
{
    (void)state;
    struct made made = must_make(&crun, "container = { cap_add = [\"NET_RAW\", \"cap_chown\"], "
                                        "cap_drop = [\"CHOWN\"] }");
    json_t *sets = at(made.config, "process/capabilities"), *set;
    const char *name;
    assert_int_equal(json_object_size(sets), 5);
    json_object_foreach(sets, name, set)
    {
        assert_int_equal(json_array_size(set), 1);
        assert_true(has_string(set, "CAP_NET_RAW"));
    }
    end(&made);
    /* To drop less than all gives nothing. */
    made = must_make(&crun, "container = { cap_drop = [\"NET_RAW\"] }");
    assert_int_equal(json_array_size(at(made.config, "process/capabilities/bounding")), 0);
    end(&made);
    assert_refused(&crun, "container = { cap_add = [\"ALL\"] }", "cap_add");
    assert_refused(&docker, "container = { cap_add = [\"ALL\"] }", "cap_add");
}

static void test_gvisor_gets_its_socket_as_stdin_and_no_foreign_filter(void **state)
{
    (void)state;
    struct made made = must_make(&runsc, "outputs = [\"/tmp/*\"]");
    assert_string_equal(text_at(made.config, "process/args/1"), "fd:0");
    assert_null(at(made.config, "linux/seccomp"));
    assert_null(at(made.config, "linux/maskedPaths"));
    assert_true(mount_of(&made, "/tmp")->staged);
    assert_string_equal(text_at(mount_at(made.config, "/tmp"), "type"), "bind");
    end(&made);
    made = must_make(&runsc, "");
    assert_string_equal(text_at(mount_at(made.config, "/tmp"), "type"), "tmpfs");
    end(&made);
}

/* ---- resources ------------------------------------------------------------------------------------------ */

static void assert_number(json_t *config, const char *path, json_int_t wanted)
{
    json_t *value = at(config, path);
    if (!json_is_integer(value) || json_integer_value(value) != wanted)
        fail_msg("%s is %lld, not %lld", path, (long long)json_integer_value(value),
                 (long long)wanted);
}

static void test_the_bundle_names_the_limits_of_the_policy(void **state)
{
    (void)state;
    static const struct how *const both[] = { &crun, &crun_user };
    for (size_t i = 0; i < tci_array_size(both); i++) {
        struct made made = must_make(both[i], "memory = \"5MB\"\npids = 7\ncpu = 1.5");
        assert_number(made.config, "linux/resources/memory/limit", 5000000);
        assert_number(made.config, "linux/resources/memory/swap", 5000000); /* together: no swap */
        assert_number(made.config, "linux/resources/pids/limit", 8);        /* and entry */
        assert_number(made.config, "linux/resources/cpu/quota", 150000);
        assert_number(made.config, "linux/resources/cpu/period", 100000);
        end(&made);
    }
}

static void test_a_share_too_small_for_the_kernel_gets_a_longer_period(void **state)
{
    (void)state;
    struct made made = must_make(&crun, "cpu = 0.005");
    assert_number(made.config, "linux/resources/cpu/quota", 5000);
    assert_number(made.config, "linux/resources/cpu/period", 1000000);
    end(&made);
}

static void test_what_is_unlimited_is_not_named(void **state)
{
    (void)state;
    struct made made = must_make(
        &crun, "memory = \"unlimited\"\npids = \"unlimited\"\ncpu = \"unlimited\"");
    assert_int_equal(json_object_size(at(made.config, "linux/resources")), 1);
    assert_non_null(at(made.config, "linux/resources/devices"));
    end(&made);
}

static void test_limits_that_a_runtime_cannot_take_are_left_to_our_group(void **state)
{
    (void)state;
    static const char text[] = "memory = \"5MB\"\npids = 7\ncpu = 1";
    static const struct how *const both[] = { &runc, &runc_user };
    struct made made;
    for (size_t i = 0; i < tci_array_size(both); i++) { /* it fails with any */
        made = must_make(both[i], text);
        assert_int_equal(json_object_size(at(made.config, "linux/resources")), 1);
        assert_non_null(at(made.config, "linux/resources/devices"));
        end(&made);
    }
    made = must_make(&runsc, text); /* its threads are not the tool's */
    assert_null(at(made.config, "linux/resources/pids"));
    assert_number(made.config, "linux/resources/memory/limit", 5000000);
    end(&made);
}

static void test_every_device_is_denied_before_a_few_are_allowed(void **state)
{
    (void)state;
    static const int few[][2] = { { 1, 3 }, { 1, 5 }, { 1, 7 }, { 1, 8 },
                                  { 1, 9 }, { 5, 0 }, { 5, 2 }, { 136, -1 } };
    static const struct how *const all[] = { &crun, &crun_user, &runc, &runc_user, &runsc };
    for (size_t i = 0; i < tci_array_size(all); i++) {
        struct made made = must_make(all[i], "");
        json_t *devices = at(made.config, "linux/resources/devices"), *first;
        assert_int_equal(json_array_size(devices), tci_array_size(few) + 1);
        first = json_array_get(devices, 0);
        assert_true(json_is_false(at(first, "allow")));
        assert_string_equal(text_at(first, "access"), "rwm");
        assert_int_equal(json_object_size(first), 2); /* of whatever type and number */
        for (size_t d = 0; d < tci_array_size(few); d++) {
            json_t *device = json_array_get(devices, d + 1);
            assert_true(json_is_true(at(device, "allow")));
            assert_string_equal(text_at(device, "type"), "c");
            assert_string_equal(text_at(device, "access"), "rw"); /* and not made */
            assert_number(device, "major", few[d][0]);
            if (few[d][1] < 0)
                assert_null(at(device, "minor"));
            else
                assert_number(device, "minor", few[d][1]);
        }
        end(&made);
    }
}

/* ---- limits --------------------------------------------------------------------------------------------------- */

static uint64_t limit_of(const struct tci_oci_plan *plan, uint32_t resource)
{
    for (uint32_t i = 0; i < plan->limit_count; i++)
        if (plan->limits[i].resource == resource)
            return plan->limits[i].value;
    return UINT64_MAX;
}

static void test_limits_count_the_tool_and_not_the_runtime(void **state)
{
    (void)state;
    static const char text[] =
        "pids = 7\nfiles = 40\ndisk = \"1000B\"\nmemory = \"5MB\"\ncpu_time = \"1500ms\"";
    struct made made = must_make(&crun, text);
    struct tci_oci_plan *plan = made.plan;
    unsigned has;
    assert_int_equal(tci_cgroups_open(&plan->cgroups, &made.error), 0);
    has = tci_cgroups_has(plan->cgroups);
    tci_oci_limits(plan);
    assert_int_equal(limit_of(plan, RLIMIT_NOFILE), 40);
    assert_int_equal(limit_of(plan, RLIMIT_FSIZE), 1000);
    assert_int_equal(limit_of(plan, RLIMIT_CORE), 1);
    assert_in_range(limit_of(plan, RLIMIT_SIGPENDING), 1, 1024);
    assert_int_equal(limit_of(plan, RLIMIT_CPU), has & TCI_CGROUP_HAS_CPU_USAGE ? 3 : 2);
    assert_true(plan->watch_cpu && !plan->enter_early);
    assert_int_equal(plan->use_cgroup, has != 0);
    if (has & TCI_CGROUP_HAS_PIDS)
        assert_int_equal(plan->cgroup_limits.pids, 8);
    else
        assert_int_equal(limit_of(plan, RLIMIT_NPROC), 8);
    if (has & TCI_CGROUP_HAS_MEMORY)
        assert_int_equal(plan->cgroup_limits.memory, 5000000);
    plan->choice.runtime = TCI_OCI_RUNSC;
    plan->limit_count = 0;
    tci_oci_limits(plan);
    assert_int_equal(plan->enter_early, has != 0);
    assert_int_equal(plan->cgroup_limits.pids, TCI_UNLIMITED);
    assert_int_equal(limit_of(plan, RLIMIT_NPROC), 8); /* counted by gVisor's own kernel */
    assert_int_equal(limit_of(plan, RLIMIT_SIGPENDING), UINT64_MAX); /* it would refuse */
    tci_cgroups_free(plan->cgroups);
    end(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_plain_tool_gets_nothing_but_its_image),
        cmocka_unit_test(test_every_namespace_is_new_and_the_network_is_empty),
        cmocka_unit_test(test_the_gates_network_is_joined_by_path),
        cmocka_unit_test(test_only_the_host_network_lists_none),
        cmocka_unit_test(test_no_user_of_a_roots_container_is_one_of_the_host),
        cmocka_unit_test(test_an_ordinary_user_gives_his_one_id),
        cmocka_unit_test(test_a_users_name_is_for_rootless_engines),
        cmocka_unit_test(test_an_engines_user_owns_what_was_granted),
        cmocka_unit_test(test_capabilities_are_those_that_are_added_and_not_dropped),
        cmocka_unit_test(test_gvisor_gets_its_socket_as_stdin_and_no_foreign_filter),
        cmocka_unit_test(test_the_bundle_names_the_limits_of_the_policy),
        cmocka_unit_test(test_a_share_too_small_for_the_kernel_gets_a_longer_period),
        cmocka_unit_test(test_what_is_unlimited_is_not_named),
        cmocka_unit_test(test_limits_that_a_runtime_cannot_take_are_left_to_our_group),
        cmocka_unit_test(test_every_device_is_denied_before_a_few_are_allowed),
        cmocka_unit_test(test_limits_count_the_tool_and_not_the_runtime),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
