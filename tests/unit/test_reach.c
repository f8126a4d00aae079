/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of policy/reach.h and policy/place.h: every way in which a cage could write a file that it was not
 * given by name, and neighbours that are none. Mounts are made in a namespace of our own; who may not make
 * them skips those tests.
 */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "policy/place.h"
#include "policy/reach.h"

static char base[] = "/tmp/toolcage-reach-XXXXXX";
static bool can_mount;

/* ---- a small host --------------------------------------------------------------------------- */

static const char *at(const char *name)
{
    static char paths[4][512];
    static unsigned next;
    char *path = paths[next++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s/%s", base, name);
    return path;
}

static void directory(const char *name)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s", at(name));
    for (char *slash = path + strlen(base) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
        *slash = '/';
    }
    assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
}

static void file(const char *name)
{
    int fd = open(at(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
}

static void bind(const char *from, const char *to)
{
    assert_int_equal(mount(at(from), at(to), NULL, MS_BIND, NULL), 0);
}

static void tmpfs(const char *name)
{
    assert_int_equal(mount("none", at(name), "tmpfs", 0, NULL), 0);
}

static int set_up(void **state)
{
    (void)state;
    if (can_mount && mount("none", base, "tmpfs", 0, NULL) < 0)
        return -1;
    directory("etc");
    directory("ws/sub");
    file("etc/policy.toml");
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st, (void)kind;
    return ftw->level ? remove(path) : 0;
}

static int tear_down(void **state)
{
    (void)state;
    return can_mount ? umount2(base, MNT_DETACH) : nftw(base, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* ---- asking --------------------------------------------------------------------------------- */

/* `filesystem` with HOST for the host's own directory. */
static struct tc_policy *policy_with(const char *filesystem)
{
    char text[4096] = "version = 1\n[tool.t]\ncommand = [\"true\"]\nfilesystem = { ";
    size_t used = strlen(text);
    while (*filesystem) {
        bool is_host = strncmp(filesystem, "HOST", 4) == 0;
        int n = is_host ? snprintf(text + used, sizeof text - used, "%s", base)
                        : snprintf(text + used, sizeof text - used, "%c", *filesystem);
        assert_true(n > 0);
        used += (size_t)n;
        filesystem += is_host ? 4 : 1;
    }
    (void)snprintf(text + used, sizeof text - used, " }\n");
    return load_text(text);
}

static enum tci_reached look(const char *filesystem, const char *place)
{
    struct tc_policy *policy = policy_with(filesystem);
    struct tci_reach *reach = tci_reach_of_policy(policy);
    enum tci_reached reached;
    assert_non_null(reach);
    reached = tci_reach_look(reach, at(place), NULL);
    tci_reach_free(reach);
    tc_policy_free(policy);
    return reached;
}

/* What tci_place_open says of a path as it was given. */
static int open_place(const char *filesystem, struct tci_place place, const char *path)
{
    struct tc_policy *policy = policy_with(filesystem);
    struct tc_error error = { 0 };
    int r;
    place.what = "pin";
    place.cage = &policy->tools[0].settings.filesystem;
    r = tci_place_open(at(path), &place, NULL, &error);
    if (r == 1)
        assert_non_null(strstr(error.message, "the tool could change the pin"));
    tc_policy_free(policy);
    return r;
}

static int check_tree(const char *filesystem, const char *path)
{
    struct tc_policy *policy = policy_with(filesystem);
    struct tci_reach *reach = tci_reach_of_policy(policy);
    const struct tci_own_place own = { "image store", at(path) };
    struct tc_error error = { 0 };
    const char *host = NULL;
    int r;
    assert_non_null(reach);
    r = tci_place_check_tree(&own, reach, &host, &error);
    if (r == 1) {
        assert_non_null(strstr(error.message, "image store"));
        assert_non_null(strstr(host, "ws"));
    }
    tci_reach_free(reach);
    tc_policy_free(policy);
    return r;
}

#define WS     "writable = [{ host = \"HOST/ws\", cage = \"/w\" }]"
#define POLICY "etc/policy.toml"

/* ---- directories ---------------------------------------------------------------------------- */

static void test_directory_is_reached_from_above_and_from_within(void **state)
{
    (void)state;
    directory("ws/sub/store/unpacked");
    directory("ws-other");
    assert_int_equal(check_tree(WS, "ws/sub/store"), 1);
    assert_int_equal(check_tree(WS, "ws"), 1);
    assert_int_equal(check_tree("writable = [{ host = \"HOST/ws/sub/store/unpacked\", cage = "
                                "\"/w\" }]",
                                "ws/sub/store"),
                     1);
    assert_int_equal(check_tree(WS, "ws-other"), 0);
    assert_int_equal(check_tree(WS, "etc"), 0);
    assert_int_equal(check_tree("readable = [{ host = \"HOST/ws\", cage = \"/w\" }]", "ws/sub"), 0);
    /* The cage could make it. */
    assert_int_equal(check_tree(WS, "ws/none/yet"), 1);
    assert_int_equal(check_tree(WS, "etc/none/yet"), 0);
    /* A link on the way, that the cage could lead elsewhere. */
    assert_int_equal(symlink(at("etc"), at("ws/link")), 0);
    assert_int_equal(check_tree(WS, "ws/link"), 1);
}

/* ---- without mounts ------------------------------------------------------------------------- */

static void test_what_is_beside_a_writable_directory_is_not_reached(void **state)
{
    (void)state;
    directory("ws2");
    file("ws2/policy.toml");
    assert_int_equal(look(WS, POLICY), TCI_REACHED_NOT);
    assert_int_equal(look(WS, "ws2/policy.toml"), TCI_REACHED_NOT);
    assert_int_equal(look("readable = [\"HOST\"]", POLICY), TCI_REACHED_NOT);
    assert_int_equal(look("writable = [\"HOST/absent:/w\"]", POLICY), TCI_REACHED_NOT);
}

static void test_what_is_within_a_writable_directory_is_reached(void **state)
{
    (void)state;
    file("ws/sub/f");
    assert_int_equal(symlink("ws", at("link")), 0);
    assert_int_equal(look(WS, "ws/sub/f"), TCI_REACHED);
    assert_int_equal(look(WS, "ws"), TCI_REACHED);
    assert_int_equal(look("writable = [{ host = \"HOST/ws/sub/f\", cage = \"/f\" }]", "ws/sub/f"),
                     TCI_REACHED);
    assert_int_equal(look("writable = [{ host = \"HOST/link\", cage = \"/w\" }]", "ws/sub/f"),
                     TCI_REACHED);
}

static void test_narrower_rule_is_no_protection(void **state)
{
    (void)state;
    file("ws/sub/f");
    directory("other");
    assert_int_equal(look(WS ", hidden = [\"/w/sub\"]", "ws/sub/f"), TCI_REACHED);
    assert_int_equal(
        look(WS ", readable = [{ host = \"HOST/other\", cage = \"/w/sub\" }]", "ws/sub/f"),
        TCI_REACHED);
}

static void test_file_with_another_name_is_reached_where_its_file_system_is_written(void **state)
{
    (void)state;
    assert_int_equal(link(at(POLICY), at("etc/name")), 0);
    assert_int_equal(look(WS, POLICY), TCI_REACHED_BY_NAME);
    assert_int_equal(look("writable = [\"/dev/shm:/w\"]", POLICY), TCI_REACHED_NOT);
}

static void test_unknown_place_is_reached(void **state)
{
    (void)state;
    assert_int_equal(look(WS, "etc/absent"), TCI_REACHED_UNKNOWN);
    assert_int_equal(look("readable = [\"HOST\"]", "etc/absent"), TCI_REACHED_NOT);
}

static void test_way_through_a_writable_directory_is_refused(void **state)
{
    const struct tci_place plain = { 0 }, replaced = { .is_replaced = true };
    const struct tci_place missing = { .may_be_missing = true };
    (void)state;
    assert_int_equal(symlink("../etc", at("ws/link")), 0);
    assert_int_equal(open_place(WS, plain, POLICY), 0);
    assert_int_equal(open_place(WS, plain, "ws/link/policy.toml"), 1);
    assert_int_equal(open_place(WS, plain, "ws/sub/../../etc/policy.toml"), 1);
    assert_int_equal(open_place(WS, plain, "etc/absent"), 0);
    assert_int_equal(open_place(WS, plain, "ws/absent"), 1);
    assert_int_equal(open_place(WS, plain, "etc/absent/absent"), -1);
    assert_int_equal(open_place(WS, missing, "etc/absent/absent"), 0);
    assert_int_equal(open_place(WS, missing, "ws/absent/absent"), 1);
    /* Another name of the old file is none of the new one. */
    assert_int_equal(link(at(POLICY), at("etc/name")), 0);
    assert_int_equal(open_place(WS, plain, POLICY), 1);
    assert_int_equal(open_place(WS, replaced, POLICY), 0);
}

/* ---- mounts --------------------------------------------------------------------------------- */

#define NEEDS_MOUNTS                                                                               \
    (void)state;                                                                                   \
    if (!can_mount)                                                                                \
    skip()

static void test_directory_that_is_mounted_below_a_writable_one_is_reached(void **state)
{
    NEEDS_MOUNTS;
    bind("etc", "ws/sub");
    assert_int_equal(look(WS, POLICY), TCI_REACHED);
    assert_int_equal(look("writable = [\"HOST/ws/sub:/w\"]", POLICY), TCI_REACHED);
    assert_int_equal(open_place(WS, (struct tci_place){ 0 }, POLICY), 1);
}

static void test_file_that_is_mounted_below_a_writable_directory_is_reached(void **state)
{
    NEEDS_MOUNTS;
    file("ws/f");
    file("etc/other");
    bind(POLICY, "ws/f");
    assert_int_equal(look(WS, POLICY), TCI_REACHED);
    assert_int_equal(look(WS, "etc/other"), TCI_REACHED_NOT);
}

static void test_another_file_system_with_two_mounts_is_reached(void **state)
{
    NEEDS_MOUNTS;
    directory("fs");
    tmpfs("fs");
    directory("fs/x");
    directory("fs/y");
    file("fs/x/policy.toml");
    bind("fs/x", "etc");
    bind("fs", "ws/sub");
    assert_int_equal(look(WS, POLICY), TCI_REACHED);
    assert_int_equal(look("writable = [\"HOST/fs/x:/w\"]", POLICY), TCI_REACHED);
    assert_int_equal(look("writable = [\"HOST/fs/y:/w\"]", POLICY), TCI_REACHED_NOT);
}

static void test_name_on_a_file_system_that_is_mounted_below_is_reached(void **state)
{
    NEEDS_MOUNTS;
    directory("fs");
    tmpfs("fs");
    file("fs/policy.toml");
    directory("fs/y");
    assert_int_equal(link(at("fs/policy.toml"), at("fs/y/name")), 0);
    assert_int_equal(look(WS, "fs/policy.toml"), TCI_REACHED_NOT);
    bind("fs/y", "ws/sub");
    assert_int_equal(look(WS, "fs/policy.toml"), TCI_REACHED_BY_NAME);
}

static void test_parents_of_a_bind_mount_count(void **state)
{
    NEEDS_MOUNTS;
    directory("seen");
    bind("ws/sub", "seen");
    file("ws/sub/policy.toml");
    assert_int_equal(look(WS, "seen/policy.toml"), TCI_REACHED);
}

static void test_mounts_that_change_nothing_are_allowed(void **state)
{
    NEEDS_MOUNTS;
    directory("etc2");
    directory("ws/two");
    directory("ws/three");
    bind("etc2", "ws/sub"); /* the name begins as ours does */
    tmpfs("ws/two");
    bind("etc", "ws/three");
    tmpfs("ws/three"); /* over it */
    assert_int_equal(look(WS, POLICY), TCI_REACHED_NOT);
}

static void test_read_only_mount_below_is_allowed(void **state)
{
    NEEDS_MOUNTS;
    bind("etc", "ws/sub");
    assert_int_equal(
        mount(NULL, at("ws/sub"), NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOATIME, NULL), 0);
    assert_int_equal(look(WS, POLICY), TCI_REACHED_NOT);
}

/* Its path is the tool's as soon as the mount is gone. */
static void test_read_only_mount_on_the_way_is_no_protection(void **state)
{
    NEEDS_MOUNTS;
    bind("etc", "ws/sub");
    assert_int_equal(
        mount(NULL, at("ws/sub"), NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOATIME, NULL), 0);
    assert_int_equal(look(WS, "ws/sub/policy.toml"), TCI_REACHED);
}

static void test_blanks_in_paths_of_mounts_are_understood(void **state)
{
    NEEDS_MOUNTS;
    directory("ws/a b");
    bind("etc", "ws/a b");
    assert_int_equal(look(WS, POLICY), TCI_REACHED);
}

/* The mount of the root directory is not in the list. Ends with the number of what is wrong. */
static void in_other_root(void)
{
    if (chroot(at("etc")) < 0 || chdir("/") < 0)
        _exit(1);
    memcpy(base, "/h", sizeof "/h");
    if (look(WS, "policy.toml") != TCI_REACHED_NOT)
        _exit(2);
    if (look(WS, "ws/sub") != TCI_REACHED)
        _exit(3);
    if (mount(at("out"), at("ws/sub"), NULL, MS_BIND, NULL) < 0 ||
        look(WS, "policy.toml") != TCI_REACHED_UNKNOWN)
        _exit(4);
    _exit(0);
}

static void test_changed_root_directory_is_no_reason_to_refuse(void **state)
{
    pid_t child;
    int status = -1;
    NEEDS_MOUNTS;
    directory("etc/h/ws/sub");
    directory("etc/h/out");
    directory("etc/proc");
    file("etc/h/policy.toml");
    assert_int_equal(mount("/proc", at("etc/proc"), NULL, MS_BIND | MS_REC, NULL), 0);
    child = fork();
    if (child == 0)
        in_other_root();
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    assert_int_equal(status, 0);
}

/* ---- overlays ------------------------------------------------------------------------------- */

static bool overlay(const char *lower, const char *upper)
{
    char options[2048];
    directory("low");
    directory(upper);
    directory("work");
    directory("merged");
    (void)snprintf(options, sizeof options, "lowerdir=%s/%s,upperdir=%s/%s,workdir=%s/work", base,
                   lower, base, upper, base);
    return mount("overlay", at("merged"), "overlay", 0, options) == 0;
}

static void test_layers_of_an_overlay_are_the_file(void **state)
{
    NEEDS_MOUNTS;
    directory("low");
    file("low/policy.toml");
    directory("low/ws");
    if (!overlay("low", "up"))
        skip();
    file("merged/new.toml");
    directory("up/ws");
    assert_int_equal(look(WS, "merged/new.toml"), TCI_REACHED_NOT);
    assert_int_equal(look("writable = [\"HOST/up:/w\"]", "merged/new.toml"), TCI_REACHED);
    assert_int_equal(look("writable = [\"HOST/up/ws:/w\"]", "merged/new.toml"), TCI_REACHED_NOT);
    assert_int_equal(look("writable = [\"HOST/work:/w\"]", "merged/new.toml"), TCI_REACHED);
    assert_int_equal(look("writable = [\"HOST/low:/w\"]", "merged/policy.toml"), TCI_REACHED);
    assert_int_equal(look("writable = [\"HOST/low/ws:/w\"]", "merged/policy.toml"), TCI_REACHED);
    bind("up", "ws/sub");
    assert_int_equal(look(WS, "merged/new.toml"), TCI_REACHED);
}

static void test_upper_layer_is_reached_through_the_overlay(void **state)
{
    NEEDS_MOUNTS;
    if (!overlay("low", "up"))
        skip();
    directory("merged/conf");
    file("merged/conf/policy.toml");
    assert_int_equal(look("writable = [\"HOST/merged:/w\"]", "up/conf/policy.toml"), TCI_REACHED);
    assert_int_equal(look("writable = [\"HOST/merged/conf:/w\"]", "up/conf/policy.toml"),
                     TCI_REACHED);
    assert_int_equal(look("writable = [\"HOST/merged:/w\"]", POLICY), TCI_REACHED_NOT);
    /* A whole system may be an overlay: there it is as elsewhere. */
    directory("merged/ws");
    assert_int_equal(look("writable = [\"HOST/merged/ws:/w\"]", "merged/conf/policy.toml"),
                     TCI_REACHED_NOT);
    assert_int_equal(look("writable = [\"HOST/merged:/w\"]", "merged/conf/policy.toml"),
                     TCI_REACHED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(test_directory_is_reached_from_above_and_from_within),
        TEST(test_what_is_beside_a_writable_directory_is_not_reached),
        TEST(test_what_is_within_a_writable_directory_is_reached),
        TEST(test_narrower_rule_is_no_protection),
        TEST(test_file_with_another_name_is_reached_where_its_file_system_is_written),
        TEST(test_unknown_place_is_reached),
        TEST(test_way_through_a_writable_directory_is_refused),
        TEST(test_directory_that_is_mounted_below_a_writable_one_is_reached),
        TEST(test_file_that_is_mounted_below_a_writable_directory_is_reached),
        TEST(test_another_file_system_with_two_mounts_is_reached),
        TEST(test_name_on_a_file_system_that_is_mounted_below_is_reached),
        TEST(test_parents_of_a_bind_mount_count),
        TEST(test_mounts_that_change_nothing_are_allowed),
        TEST(test_read_only_mount_below_is_allowed),
        TEST(test_read_only_mount_on_the_way_is_no_protection),
        TEST(test_changed_root_directory_is_no_reason_to_refuse),
        TEST(test_blanks_in_paths_of_mounts_are_understood),
        TEST(test_layers_of_an_overlay_are_the_file),
        TEST(test_upper_layer_is_reached_through_the_overlay),
    };
    int failed;
    if (!mkdtemp(base))
        return 1;
    can_mount = geteuid() == 0 && unshare(CLONE_NEWNS) == 0 &&
                mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)rmdir(base);
    return failed;
}
