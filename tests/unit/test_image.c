/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of backend/oci/image.h that need a store or a layer that toolcage itself would never write:
 * hostile names, hostile archives, damaged blobs.
 */
#include "support.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "backend/oci/image.h"
#include "backend/oci/oci.h"

static char directory[64], outside[80];

static int setup(void **state)
{
    char store[80];
    (void)state;
    (void)snprintf(directory, sizeof directory, "/tmp/toolcage-image-XXXXXX");
    assert_non_null(mkdtemp(directory));
    (void)snprintf(outside, sizeof outside, "%s/outside", directory);
    (void)snprintf(store, sizeof store, "%s/store", directory);
    assert_int_equal(mkdir(outside, 0755), 0);
    return setenv("TOOLCAGE_IMAGES", store, 1);
}

static int teardown(void **state)
{
    (void)state;
    return tci_image_remove(AT_FDCWD, directory);
}

/* ---- names ------------------------------------------------------------------------------------- */

#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void test_names_are_read_in_all_their_forms(void **state)
{
    static const struct {
        const char *text, *normal;
    } names[] = {
        { "a", "a:latest" },
        { "toolcage/tool-sandbox", "toolcage/tool-sandbox:latest" },
        { "localhost/toolcage/tool-sandbox", "toolcage/tool-sandbox:latest" },
        { "a.b_c__d--e/f:V1.0-x_y", "a.b_c__d--e/f:V1.0-x_y" },
        { "a@sha256:" DIGEST, "a@sha256:" DIGEST },
        { "a:1@sha256:" DIGEST, "a@sha256:" DIGEST },
        { "sha256:" DIGEST, "sha256:" DIGEST },
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(names); i++) {
        struct tci_image_name name;
        struct tc_error error = { 0 };
        char text[TCI_IMAGE_NAME_MAX];
        if (tci_image_name_parse(names[i].text, &name, &error) < 0)
            fail_msg("%s: %s", names[i].text, error.message);
        assert_string_equal(tci_image_name_text(&name, text), names[i].normal);
    }
}

static void test_hostile_names_are_refused(void **state)
{
    static const char *const names[] = {
        "",
        "/",
        "a/",
        "/a",
        "..",
        "../a",
        "a/../b",
        "a/..",
        ".a",
        "-a",
        "--help",
        "a//b",
        "A",
        "a b",
        "a\nb",
        "a\033[1m",
        "a:",
        "a:-x",
        "a:.x",
        "a:b/c",
        "a:b:c",
        "a:x\"y",
        "a_",
        "a-",
        "a..b",
        "a___b",
        "a._b",
        "a@",
        "a@sha256:",
        "a@sha256:" DIGEST "0",
        "a@sha512:" DIGEST,
        "@sha256:" DIGEST,
        "a@sha256:../../../../../../etc/passwd",
        "sha256:../x",
        "\xc3\xa4",
        "a\x80",
    };
    char many[400];
    struct tci_image_name name;
    (void)state;
    for (size_t i = 0; i < tci_array_size(names); i++)
        if (tci_image_name_parse(names[i], &name, NULL) == 0)
            fail_msg("taken: \"%s\"", names[i]);
    memset(many, 'a', sizeof many);
    many[TCI_IMAGE_PART_MAX - 1] = '\0';
    assert_int_equal(tci_image_name_parse(many, &name, NULL), 0);
    many[TCI_IMAGE_PART_MAX - 1] = 'a';
    many[TCI_IMAGE_PART_MAX] = '\0';
    assert_int_equal(tci_image_name_parse(many, &name, NULL), -1);
}

/* ---- layers ------------------------------------------------------------------------------------ */

struct layer {
    char bytes[32768];
    size_t length;
};

static void add(struct layer *layer, const char *path, char type, const char *content)
{
    size_t size = type == '0' || type == 'x' ? strlen(content) : 0;
    tci_tar_header(layer->bytes + layer->length, path, type, 04755, size, 0,
                   type == '1' || type == '2' ? content : NULL);
    layer->length += 512;
    memcpy(layer->bytes + layer->length, content, size);
    layer->length += (size + 511) / 512 * 512;
    assert_true(layer->length < sizeof layer->bytes);
}

/* An image "t" with this layer; `change` spoils a byte of it afterwards. */
static void make_store(const struct layer *layer, bool change)
{
    struct tci_image_store store;
    struct tci_image_name name;
    struct tci_blob blob, manifest;
    struct tc_error error = { 0 };

    if (tci_image_name_parse("t", &name, &error) < 0 ||
        tci_image_store_open(true, &store, &error) < 0 ||
        tci_image_store_lock(&store, NULL, &error) < 0 ||
        tci_blob_put(&store, layer->bytes, layer->length, &blob, &error) < 0 ||
        tci_image_write(&store, &blob, 0, "amd64", "", &manifest, &error) < 0 ||
        tci_image_index_add(&store, &name, &manifest, &error) < 0)
        fail_msg("%s", error.message);
    if (change) {
        char path[128];
        int fd;
        (void)snprintf(path, sizeof path, "blobs/sha256/%s", blob.digest);
        fd = openat(store.directory, path, O_WRONLY | O_CLOEXEC);
        assert_int_equal(pwrite(fd, "!", 1, 600), 1);
        (void)close(fd);
    }
    tci_image_store_close(&store);
}

static size_t count_below(const char *name)
{
    char command[160], line[32] = "";
    FILE *stream;
    (void)snprintf(command, sizeof command, "find %s/%s -mindepth 1 | wc -l", directory, name);
    stream = popen(command, "re");
    assert_non_null(stream);
    assert_non_null(fgets(line, sizeof line, stream));
    (void)pclose(stream);
    return strtoul(line, NULL, 10);
}

static void expect_refusal(const struct layer *layer, bool change, const char *why)
{
    struct tc_error error = { 0 };
    char path[PATH_MAX];
    make_store(layer, change);
    assert_int_equal(tci_image_find("t", path, &error), -1);
    if (!strstr(error.message, why))
        fail_msg("\"%s\" does not say \"%s\"", error.message, why);
    assert_int_equal(count_below("outside"), 0);
    assert_int_equal(count_below("store/unpacked"), 0);
    assert_int_equal(count_below("store/tmp"), 0);
}

static void test_good_layer_is_unpacked_without_bits_that_give_power(void **state)
{
    struct layer layer = { .length = 0 };
    struct tc_error error = { 0 };
    char path[PATH_MAX], file[PATH_MAX + 16], again[PATH_MAX];
    struct stat status;
    (void)state;
    add(&layer, "d", '5', "");
    add(&layer, "d/file", '0', "content");
    add(&layer, "link", '2', "/etc/passwd");
    make_store(&layer, false);
    if (tci_image_find("t:latest", path, &error) < 0)
        fail_msg("%s", error.message);
    (void)snprintf(file, sizeof file, "%s/d/file", path);
    assert_int_equal(lstat(file, &status), 0);
    assert_int_equal(status.st_mode, S_IFREG | 0755);
    assert_int_equal(status.st_size, 7);
    assert_int_equal(tci_image_find("localhost/t", again, &error), 0);
    assert_string_equal(path, again);
}

static void test_name_that_climbs_out_is_refused(void **state)
{
    struct layer layer = { .length = 0 };
    (void)state;
    add(&layer, "d", '5', "");
    add(&layer, "d/../../../../outside/x", '0', "x");
    expect_refusal(&layer, false, "leads elsewhere");
}

static void test_absolute_name_is_refused(void **state)
{
    struct layer layer = { .length = 0 };
    char name[100];
    (void)state;
    (void)snprintf(name, sizeof name, "%s/x", outside);
    add(&layer, name, '0', "x");
    expect_refusal(&layer, false, "leads elsewhere");
}

static void test_name_through_a_link_is_refused(void **state)
{
    struct layer layer = { .length = 0 };
    (void)state;
    add(&layer, "way", '2', outside);
    add(&layer, "way/x", '0', "x");
    expect_refusal(&layer, false, "without a directory");
}

static void test_long_name_that_climbs_out_is_refused(void **state)
{
    struct layer layer = { .length = 0 };
    (void)state;
    add(&layer, "PaxHeaders", 'x', "33 path=../../../../../outside/x\n");
    add(&layer, "harmless", '0', "x");
    expect_refusal(&layer, false, "leads elsewhere");
}

static void test_broken_extended_headers_are_refused(void **state)
{
    static const char *const records[] = { "9999999999 path=x\n", "0 path=x\n", "-5 path=x\n",
                                           "10 path=xy",          "path=x\n",   "7 path=xyz\n" };
    (void)state;
    for (size_t i = 0; i < tci_array_size(records); i++) {
        struct layer layer = { .length = 0 };
        add(&layer, "PaxHeaders", 'x', records[i]);
        add(&layer, "harmless", '0', "x");
        expect_refusal(&layer, false, "broken extended header");
    }
}

static void test_devices_hard_links_and_others_are_refused(void **state)
{
    (void)state;
    for (const char *type = "13467gKSL"; *type; type++) {
        struct layer layer = { .length = 0 };
        add(&layer, "thing", *type, "/etc/passwd");
        expect_refusal(&layer, false, "no file, directory or link");
    }
}

static void test_second_entry_does_not_write_through_the_first(void **state)
{
    struct layer layer = { .length = 0 };
    char target[100];
    (void)state;
    (void)snprintf(target, sizeof target, "%s/x", outside);
    add(&layer, "x", '2', target);
    add(&layer, "x", '0', "x");
    expect_refusal(&layer, false, "has a name twice");
}

static void test_size_beyond_the_archive_is_refused(void **state)
{
    struct layer layer = { .length = 512 };
    (void)state;
    tci_tar_header(layer.bytes, "x", '0', 0644, 1 << 30, 0, NULL);
    expect_refusal(&layer, false, "ends too early");
}

static void test_changed_byte_is_noticed(void **state)
{
    struct layer layer = { .length = 0 };
    (void)state;
    add(&layer, "file", '0',
        "content content content content content content content content "
        "content content content content");
    expect_refusal(&layer, true, "other bytes");
}

static void test_store_that_others_can_write_is_refused(void **state)
{
    struct layer layer = { .length = 0 };
    struct tc_error error = { 0 };
    char path[PATH_MAX], store[80];
    (void)state;
    add(&layer, "file", '0', "x");
    make_store(&layer, false);
    (void)snprintf(store, sizeof store, "%s/store", directory);
    assert_int_equal(chmod(store, 0777), 0);
    assert_int_equal(tci_image_find("t", path, &error), -1);
    assert_non_null(strstr(error.message, "others can write"));
}

static void test_path_of_an_image_has_no_links_in_it(void **state)
{
    struct layer layer = { .length = 0 };
    struct tc_error error = { 0 };
    char path[PATH_MAX], link[80], store[96], real[96];
    (void)state;
    add(&layer, "file", '0', "x");
    make_store(&layer, false);
    (void)snprintf(link, sizeof link, "%s/link", directory);
    (void)snprintf(store, sizeof store, "%s/store", link);
    (void)snprintf(real, sizeof real, "%s/store/unpacked/", directory);
    assert_int_equal(symlink(directory, link), 0);
    assert_int_equal(setenv("TOOLCAGE_IMAGES", store, 1), 0);
    if (tci_image_find("t", path, &error) < 0)
        fail_msg("%s", error.message);
    assert_memory_equal(path, real, strlen(real));
}

static void test_store_that_others_can_exchange_is_refused(void **state)
{
    struct layer layer = { .length = 0 };
    struct tc_error error = { 0 };
    char path[PATH_MAX];
    (void)state;
    add(&layer, "file", '0', "x");
    make_store(&layer, false);
    assert_int_equal(chmod(directory, 0777), 0);
    assert_int_equal(tci_image_find("t", path, &error), -1);
    assert_non_null(strstr(error.message, "others can exchange"));
    assert_non_null(strstr(error.message, directory));
    assert_int_equal(chmod(directory, 01777), 0);
    assert_int_equal(tci_image_find("t", path, NULL), 0);
}

static void test_index_that_names_files_elsewhere_is_refused(void **state)
{
    static const char *const digests[] = { "sha256:../../../outside", "sha256:", "md5:0", "" };
    (void)state;
    for (size_t i = 0; i < tci_array_size(digests); i++) {
        struct layer layer = { .length = 0 };
        struct tc_error error = { 0 };
        char path[PATH_MAX], name[96], text[512];
        FILE *stream;
        add(&layer, "file", '0', "x");
        make_store(&layer, false);
        (void)snprintf(text, sizeof text,
                       "{\"manifests\":[{\"mediaType\":\"application/vnd.oci.image.manifest.v1+"
                       "json\",\"digest\":\"%s\",\"size\":1,\"annotations\":{\"org."
                       "opencontainers.image.ref.name\":\"t:latest\"}}]}",
                       digests[i]);
        (void)snprintf(name, sizeof name, "%s/store/index.json", directory);
        stream = fopen(name, "we");
        assert_non_null(stream);
        (void)fputs(text, stream);
        (void)fclose(stream);
        assert_int_equal(tci_image_find("t", path, &error), -1);
        assert_non_null(strstr(error.message, "index.json"));
        assert_int_equal(unlink(name), 0);
    }
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_names_are_read_in_all_their_forms),
        T(test_hostile_names_are_refused),
        T(test_good_layer_is_unpacked_without_bits_that_give_power),
        T(test_name_that_climbs_out_is_refused),
        T(test_absolute_name_is_refused),
        T(test_name_through_a_link_is_refused),
        T(test_long_name_that_climbs_out_is_refused),
        T(test_broken_extended_headers_are_refused),
        T(test_devices_hard_links_and_others_are_refused),
        T(test_second_entry_does_not_write_through_the_first),
        T(test_size_beyond_the_archive_is_refused),
        T(test_changed_byte_is_noticed),
        T(test_store_that_others_can_write_is_refused),
        T(test_path_of_an_image_has_no_links_in_it),
        T(test_store_that_others_can_exchange_is_refused),
        T(test_index_that_names_files_elsewhere_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
