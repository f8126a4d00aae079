/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what is looked at in an image before an engine mounts anything into it: the layers of an overlay, and the
 * rule that links of an image must keep. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/oci/api_look.h"
#include "base/attr.h"

static char top[64], layers[256];

/* "1/etc/x": in the layer 1; the one with the smallest number is the topmost. */
static const char *in(const char *path)
{
    static char whole[512];
    (void)snprintf(whole, sizeof whole, "%s/%s", top, path);
    return whole;
}

static void make_directory(const char *path)
{
    assert_int_equal(mkdir(in(path), 0755), 0);
}

static void make_file(const char *path)
{
    assert_int_equal(mknod(in(path), S_IFREG | 0644, 0), 0);
}

static void make_link(const char *target, const char *path)
{
    assert_int_equal(symlink(target, in(path)), 0);
}

static int setup(void **state)
{
    (void)state;
    (void)snprintf(top, sizeof top, "/tmp/toolcage-look-XXXXXX");
    assert_non_null(mkdtemp(top));
    make_directory("1");
    make_directory("2");
    (void)snprintf(layers, sizeof layers, "%s/1:%s/2", top, top);
    return 0;
}

static int teardown(void **state)
{
    char command[128];
    (void)state;
    (void)snprintf(command, sizeof command, "rm -rf -- %s", top);
    return system(command); /* NOLINT(cert-env33-c): a name of our own */
}

static enum tci_api_kind kind_of(const char *path)
{
    struct tci_api_seen seen;
    assert_int_equal(tci_api_layers_look(layers, path, &seen), 0);
    return seen.kind;
}

static void test_the_topmost_layer_that_knows_a_name_says_what_it_is(void **state)
{
    struct tci_api_seen seen;
    (void)state;
    make_directory("1/a");
    make_directory("2/a");
    make_file("2/a/below");
    make_file("2/a/both");
    make_link("/x", "1/a/both");
    assert_int_equal(mkfifo(in("2/pipe"), 0600), 0);
    assert_int_equal(kind_of("/a"), TCI_API_DIRECTORY);
    assert_int_equal(kind_of("/a/below"), TCI_API_FILE);
    assert_int_equal(kind_of("/a/none"), TCI_API_MISSING);
    assert_int_equal(kind_of("/pipe"), TCI_API_OTHER);
    assert_int_equal(tci_api_layers_look(layers, "/a/both", &seen), 0);
    assert_int_equal(seen.kind, TCI_API_LINK);
    assert_string_equal(seen.target, "/x");
    make_directory("composefs-data"); /* Podman's other way to keep layers */
    assert_true(tci_api_layers_look(layers, "/a", &seen) < 0);
    assert_true(tci_api_layers_look("/nowhere", "/a", &seen) < 0);
    assert_true(tci_api_layers_look("relative", "/a", &seen) < 0);
}

static void test_what_a_layer_removes_is_not_seen(void **state)
{
    (void)state;
    make_directory("2/a");
    make_file("2/a/gone");
    make_file("2/a/kept");
    make_directory("1/a");
    if (mknod(in("1/a/gone"), S_IFCHR, 0) < 0)
        skip();
    assert_int_equal(kind_of("/a/gone"), TCI_API_MISSING);
    assert_int_equal(kind_of("/a/gone/below"), TCI_API_MISSING);
    assert_int_equal(kind_of("/a/kept"), TCI_API_FILE);
    if (setxattr(in("1/a"), "trusted.overlay.opaque", "y", 1, 0) < 0)
        skip();
    assert_int_equal(kind_of("/a/kept"), TCI_API_MISSING);
}

/* The attack: fuse-overlayfs' signs in an image for the kernel's overlay, which does not know them. */
static void test_a_sign_that_the_kernel_does_not_know_is_not_believed(void **state)
{
    static const struct {
        const char *mark, *value;
    } marks[] = {
        { "user.overlay.opaque", "y" },
        { "user.fuseoverlayfs.opaque", "y" },
        { "trusted.overlay.opaque", "x" }, /* since Linux 6.7: does not hide anything */
        { "trusted.overlay.opaque", "yy" },
    };
    struct tci_api_seen seen;
    (void)state;
    make_directory("1/a");
    make_directory("1/a/.wh.data");
    make_directory("2/a");
    make_link("/work", "2/a/data");
    make_file("2/a/kept");
    assert_int_equal(tci_api_layers_look(layers, "/a/data", &seen), -EOPNOTSUPP);
    assert_int_equal(kind_of("/a/kept"), TCI_API_FILE);
    make_directory("1/b");
    make_file("1/b/own");
    make_directory("2/b");
    make_link("/work", "2/b/data");
    for (size_t i = 0; i < tci_array_size(marks); i++) {
        if (setxattr(in("1/b"), marks[i].mark, marks[i].value, strlen(marks[i].value), 0) < 0)
            continue; /* not on this file system, or only for root */
        assert_int_equal(tci_api_layers_look(layers, "/b/data", &seen), -EOPNOTSUPP);
        assert_int_equal(kind_of("/b/own"), TCI_API_FILE);
        assert_int_equal(removexattr(in("1/b"), marks[i].mark), 0);
        assert_int_equal(kind_of("/b/data"), TCI_API_LINK);
    }
    make_file("1/b/.wh..wh..opq");
    assert_int_equal(tci_api_layers_look(layers, "/b/data", &seen), -EOPNOTSUPP);
}

/* ---- the rule ------------------------------------------------------------------------------------ */

static int look(const char *first, const char *second, struct tci_api_points *ret,
                struct tc_error *reterr)
{
    const struct tci_settings settings = { 0 };
    struct tci_oci_mount mounts[] = {
        { .kind = TCI_OCI_MOUNT_BIND, .cage = first, .writable = true },
        { .kind = TCI_OCI_MOUNT_BIND, .cage = second },
    };
    const struct tci_oci_plan plan = { .spec = { .settings = &settings },
                                       .choice = { .engine = TCI_OCI_ENGINE_PODMAN },
                                       .mounts = mounts,
                                       .mount_count = second ? 2 : 1 };
    const struct tci_api api = { .engine = TCI_OCI_ENGINE_PODMAN };
    const struct tci_api_image image = { 0 };
    return tci_api_look(&(struct tci_api_look){ .plan = &plan,
                                                .api = &api,
                                                .image = &image,
                                                .image_name = "i",
                                                .owner = "o",
                                                .layers = layers },
                        ret, reterr);
}

static void make_image(void)
{
    make_directory("1/work");
    make_directory("1/opt");
    make_directory("1/etc");
    make_directory("1/run");
    make_directory("1/var");
    make_link("../run", "1/var/run");
    make_link("opt", "1/srv");
    make_link("/work", "1/data");
    make_link("work/../opt", "1/around");
    make_link("/a/b", "1/deep");
    make_link("loop", "1/loop");
}

static void test_a_link_may_lead_to_the_image_and_not_into_a_mount(void **state)
{
    static const struct {
        const char *first, *second;
        bool good;
        const char *real; /* of the second */
    } cases[] = {
        { "/work", "/work/in", true, "/work/in" },
        { "/work", "/srv/in", true, "/opt/in" },
        { "/work", "/var/run/x", true, "/run/x" },
        { "/srv", "/srv/in", true, "/opt/in" },
        { "/work", "/data", false, NULL },
        { "/work", "/data/in/deep", false, NULL },
        { "/data", "/work", false, NULL },
        { "/work", "/around/in", false, NULL },
        { "/a", "/deep", false, NULL },
        { "/a/b/c", "/deep", false, NULL }, /* it would lie over the other */
        { "/work", "/loop/x", false, NULL },
        { "/var/run", NULL, false, NULL }, /* Podman makes a file in it */
    };
    (void)state;
    make_image();
    for (size_t i = 0; i < tci_array_size(cases); i++) {
        struct tci_api_points points = { 0 };
        struct tc_error error = { 0 };
        int r = look(cases[i].first, cases[i].second, &points, &error);
        if ((r == 0) != cases[i].good)
            fail_msg("%s, %s: %d %s", cases[i].first, cases[i].second, r, error.message);
        if (r == 0)
            assert_string_equal(points.items[1].real, cases[i].real);
        else
            assert_non_null(strstr(error.message, "the image \"i\""));
        tci_api_points_free(&points);
    }
}

static void test_accounts_that_are_no_files_are_refused(void **state)
{
    struct tci_api_points points = { 0 };
    struct tc_error error = { 0 };
    (void)state;
    make_image();
    assert_int_equal(mkfifo(in("1/opt/pipe"), 0600), 0);
    make_link("/srv/pipe", "1/etc/group");
    assert_int_equal(look("/work", NULL, &points, &error), -1);
    assert_non_null(strstr(error.message, "/etc/group"));
    /* Also below a directory that is granted: the daemon reads the image's own. */
    assert_int_equal(look("/etc", NULL, &points, &error), -1);
}

static void test_mounts_that_the_plan_does_not_know_are_noticed(void **state)
{
    struct tci_api_points points = { 0 };
    (void)state;
    make_image();
    assert_int_equal(look("/work", "/srv/in", &points, NULL), 0);
    assert_true(tci_api_points_know(&points, "/"));
    assert_true(tci_api_points_know(&points, "/work"));
    assert_true(tci_api_points_know(&points, "/work/mounted/on/the/host"));
    assert_true(tci_api_points_know(&points, "/opt/in"));
    assert_true(tci_api_points_know(&points, "/proc/sys"));
    assert_true(tci_api_points_know(&points, "/dev/null"));
    assert_false(tci_api_points_know(&points, "/opt"));
    assert_false(tci_api_points_know(&points, "/opt/in/below"));
    assert_false(tci_api_points_know(&points, "/workspace"));
    assert_false(tci_api_points_know(&points, "/dev/kvm"));
    assert_false(tci_api_points_know(&points, "/run/secrets"));
    tci_api_points_free(&points);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_topmost_layer_that_knows_a_name_says_what_it_is,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_a_layer_removes_is_not_seen, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_sign_that_the_kernel_does_not_know_is_not_believed,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_link_may_lead_to_the_image_and_not_into_a_mount,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_accounts_that_are_no_files_are_refused, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_mounts_that_the_plan_does_not_know_are_noticed, setup,
                                        teardown),
    };
    return cmocka_run_group_tests_name("oci_look", tests, NULL, NULL);
}
