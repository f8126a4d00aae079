/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: tests of what a policy's paths become in a container, for every engine. */
#include "oci_support.h"

/* ---- mounts ----------------------------------------------------------------------------------------------- */

static void test_parents_come_before_what_lies_in_them(void **state)
{
    (void)state;
    struct made made = must_make(&runc,
                                 "filesystem = { readable = [\"HOST/work/a/b\", \"HOST/data\"], "
                                 "writable = [\"HOST/work\"] }");
    json_t *mounts = at(made.config, "mounts");
    size_t count = json_array_size(mounts);
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < count; j++) {
            const char *first = text_at(json_array_get(mounts, i), "destination");
            const char *then = text_at(json_array_get(mounts, j), "destination");
            if (strncmp(first, then, strlen(then)) == 0 && first[strlen(then)] == '/')
                fail_msg("%s would be covered by %s", first, then);
        }
    /* Ours is the last of all: nothing covers it. */
    assert_string_equal(text_at(json_array_get(mounts, count - 1), "destination"),
                        TCI_ENTRY_DIRECTORY);
    assert_true(has_option(made.config, TCI_ENTRY_DIRECTORY, "ro"));
    end(&made);
}

static void test_every_mount_is_without_setuid_and_devices(void **state)
{
    (void)state;
    struct made made = must_make(&runc,
                                 "filesystem = { readable = [\"HOST/data\", \"HOST/file\"], "
                                 "writable = [\"HOST/work\"], hidden = [\"HOST/work/keys\"] }");
    json_t *mounts = at(made.config, "mounts");
    for (size_t i = 0; i < json_array_size(mounts); i++) {
        json_t *options = at(json_array_get(mounts, i), "options");
        const char *where = text_at(json_array_get(mounts, i), "destination");
        assert_true(has_string(options, "nosuid"));
        /* /dev holds the runtime's few devices, /dev/pts terminals. */
        assert_true(has_string(options, "nodev") || strncmp(where, "/dev", 4) == 0);
    }
    end(&made);
}

static void test_grants_are_taken_as_they_were_checked(void **state)
{
    (void)state;
    struct made made = must_make(&runc, "filesystem = { readable = [\"HOST/data\", \"HOST/file\"], "
                                        "writable = [\"HOST/work\"] }");
    char path[100];
    struct stat status;
    const struct tci_oci_mount *m;
    (void)snprintf(path, sizeof path, "%s/work", host);
    m = mount_of(&made, path);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(m->inode, status.st_ino);
    assert_true(m->writable && !m->is_file && m->source >= 0);
    assert_true(has_option(made.config, path, "rw"));
    (void)snprintf(path, sizeof path, "%s/file", host);
    assert_true(mount_of(&made, path)->is_file && !mount_of(&made, path)->writable);
    assert_true(has_option(made.config, path, "ro"));
    assert_true(has_option(made.config, path, "bind"));
    assert_non_null(strstr(text_at(mount_at(made.config, path), "source"), TCI_STAGE_MOUNTS "/"));
    end(&made);
    /* Who is not root opens them again, and an engine by their path. */
    made = must_make(&crun_user, "filesystem = { writable = [\"HOST/work\"] }");
    (void)snprintf(path, sizeof path, "%s/work", host);
    assert_int_equal(mount_of(&made, path)->source, -1);
    end(&made);
}

static void test_missing_grants_are_refused_unless_optional(void **state)
{
    (void)state;
    struct made made;
    assert_refused(&crun, "filesystem = { readable = [\"HOST/none\"] }", "none");
    made = must_make(&crun,
                     "filesystem = { readable = [{ host = \"HOST/none\", optional = true }] }");
    for (size_t i = 0; i < made.plan->mount_count; i++)
        assert_int_not_equal(made.plan->mounts[i].kind, TCI_OCI_MOUNT_BIND);
    end(&made);
}

static void test_nothing_is_made_in_a_granted_directory(void **state)
{
    (void)state;
    assert_refused(&docker,
                   "filesystem = { writable = [\"HOST/work\"], readable = [{ host = \"HOST/data\", "
                   "cage = \"HOST/work/none\" }] }",
                   "inside");
    assert_refused(&docker,
                   "filesystem = { writable = [\"HOST/work\"], readable = [{ host = \"HOST/data\", "
                   "cage = \"HOST/work/keys/private\" }] }",
                   "inside");
}

static void test_the_containers_own_places_cannot_be_granted(void **state)
{
    (void)state;
    static const char *const places[] = { "/", "/.toolcage", "/.toolcage/entry" };
    struct how how = crun;
    struct made made;
    for (size_t i = 0; i < tci_array_size(places); i++) {
        char text[200];
        (void)snprintf(text, sizeof text,
                       "filesystem = { writable = [{ host = \"HOST/work\", cage = \"%s\" }] }",
                       places[i]);
        assert_refused(&crun, text, places[i][1] == '.' ? "toolcage" : "container");
        assert_refused(&podman, text, places[i][1] == '.' ? "toolcage" : "container");
    }
    assert_refused(&crun, "filesystem = { hidden = [\"/.toolcage\"] }", "toolcage");
    /* The policy's reader refuses these; a handler's library could be there. */
    how.library = "/dev/null";
    assert_int_equal(make(&how, "", &made), -1);
    assert_non_null(strstr(made.error.message, "/dev of its own"));
    end(&made);
}

static void test_hidden_paths_of_a_grant_are_covered(void **state)
{
    (void)state;
    struct made made = must_make(&crun, "filesystem = { readable = [\"HOST/data\"], "
                                        "hidden = [\"HOST/data/.env\", \"HOST/data/keys\"] }");
    char path[100];
    const struct tci_oci_mount *m;
    (void)snprintf(path, sizeof path, "%s/data/.env", host);
    m = mount_of(&made, path);
    assert_true(m->kind == TCI_OCI_MOUNT_FILE && m->is_file && !m->writable && m->length == 0);
    assert_string_equal(m->mode, "0000");
    assert_string_equal(m->over, path);
    (void)snprintf(path, sizeof path, "%s/data/keys", host);
    m = mount_of(&made, path);
    assert_true(m->kind == TCI_OCI_MOUNT_TMPFS && !m->writable && m->staged);
    assert_string_equal(m->mode, "0111");
    assert_string_equal(m->over, path);
    end(&made);
    assert_refused(&crun,
                   "filesystem = { readable = [\"HOST/data\"], hidden = [\"HOST/data/none\"] }",
                   "hidden");
    assert_refused(&crun,
                   "filesystem = { readable = [\"HOST/data\"], hidden = [\"HOST/data/link\"] }",
                   "hidden");
}

/* The attack is in stage_points.c: a runtime makes a mount point on the host, or follows a link there. */
static void test_no_runtime_mounts_in_a_granted_directory(void **state)
{
    static const char settings[] = "filesystem = { writable = [\"HOST/work\"], hidden = "
                                   "[\"HOST/work/a/b\"] }";
    const struct how *const hows[] = { &crun, &crun_user, &runc, &runsc };
    char work[100], parent[100], path[100];
    (void)state;
    (void)snprintf(work, sizeof work, "%s/work", host);
    (void)snprintf(parent, sizeof parent, "%s/work/a", host);
    (void)snprintf(path, sizeof path, "%s/work/a/b", host);
    for (size_t i = 0; i < tci_array_size(hows); i++) {
        struct made made = must_make(hows[i], settings);
        assert_true(mount_of(&made, path)->inner && mount_of(&made, parent)->inner);
        assert_false(mount_of(&made, work)->inner);
        assert_null(mount_at(made.config, path));
        assert_null(mount_at(made.config, parent));
        /* crun would leave behind what is mounted in it. */
        assert_true(!mount_at(made.config, work) == (hows[i]->runtime == TCI_OCI_CRUN));
        end(&made);
    }
    /* In memory that crun makes nobody else can mount anything before. */
    struct made made = must_make(&crun, "filesystem = { readable = [{ host = \"HOST/data\", cage = "
                                        "\"/tmp/data\" }], hidden = [\"/tmp/data/keys\"] }");
    assert_true(has_option(made.config, "/tmp/data", "ro"));
    assert_true(has_option(made.config, "/tmp/data/keys", "ro"));
    end(&made);
    made = must_make(&docker, settings);
    assert_false(mount_of(&made, path)->inner);
    end(&made);
}

/* The attack is in mounts.c: a tool writes the passwd that the next call's runtime reads. */
static void test_our_passwd_lies_over_that_of_a_granted_directory(void **state)
{
    static const char settings[] = "filesystem = { writable = [{ host = \"HOST/work/a\", cage = "
                                   "\"/etc\" }] }";
    struct made made = must_make(&runc, settings);
    char path[100];
    (void)state;
    assert_null(mount_of(&made, "/etc/passwd")); /* nobody has one */
    assert_null(mount_of(&made, "/etc/hosts"));
    end(&made);
    (void)snprintf(path, sizeof path, "%s/work/a/passwd", host);
    assert_int_equal(mkfifo(path, 0644), 0);
    made = must_make(&runc, settings);
    assert_true(mount_of(&made, "/etc/passwd")->kind == TCI_OCI_MOUNT_FILE);
    assert_non_null(strstr(mount_of(&made, "/etc/passwd")->bytes, "cage:"));
    assert_null(mount_of(&made, "/etc/group"));
    end(&made);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/dev/zero", path), 0);
    assert_refused(&runc, settings, "link");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0755), 0);
    assert_refused(&crun_user, settings, "directory");
    assert_int_equal(rmdir(path), 0);
}

static void test_hidden_beats_readable_beats_writable_at_one_path(void **state)
{
    (void)state;
    char path[100];
    struct made made = must_make(&crun, "filesystem = { readable = [\"HOST/work\"], "
                                        "writable = [\"HOST/work\"] }");
    (void)snprintf(path, sizeof path, "%s/work", host);
    assert_false(mount_of(&made, path)->writable);
    end(&made);
    made = must_make(&docker,
                     "filesystem = { readable = [\"HOST/work\"], hidden = [\"HOST/work\"] }");
    assert_null(mount_of(&made, path));
    assert_true(is_masked(&made, path));
    end(&made);
}

static void test_hidden_paths_of_a_root_directory_are_covered(void **state)
{
    static const struct how *const all[] = { &crun, &runc, &runsc };
    (void)state;
    for (size_t i = 0; i < tci_array_size(all); i++) {
        struct made made = must_make(
            all[i], "filesystem = { hidden = [\"/data/.env\", \"/data/keys\", \"/none\"] }");
        assert_null(made.plan->masked);
        assert_int_equal(mount_of(&made, "/data/.env")->kind, TCI_OCI_MOUNT_FILE);
        assert_int_equal(mount_of(&made, "/data/keys")->kind, TCI_OCI_MOUNT_TMPFS);
        assert_null(mount_of(&made, "/none"));
        end(&made);
    }
}

/* An image stays as it is; in a directory of the user's somebody could make it while the call runs. */
static void test_what_could_appear_in_a_rootfs_must_be_there_to_be_hidden(void **state)
{
    static const struct how *const all[] = { &crun, &runc, &runsc };
    (void)state;
    for (size_t i = 0; i < tci_array_size(all); i++) {
        char path[100];
        struct made made;
        bool is_directory;
        int fd;
        assert_refused(all[i], "rootfs = \"HOST\"\nfilesystem = { hidden = [\"/data/late\"] }",
                       "cannot be hidden");
        made = must_make(all[i], "rootfs = \"HOST\"\nfilesystem = { hidden = [{ host = "
                                 "\"/data/late\", optional = true }, { host = \"/data/.env\", "
                                 "optional = true }] }");
        fd = open(host, O_PATH | O_CLOEXEC);
        assert_int_equal(tci_granted_identify(fd, &made.plan->rootfs_device,
                                              &made.plan->rootfs_inode, &is_directory),
                         0);
        (void)close(fd);
        assert_false(tci_oci_is_stale((const struct tc_plan *)(const void *)made.plan));
        (void)snprintf(path, sizeof path, "%s/data/late", host);
        fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        (void)close(fd);
        assert_true(tci_oci_is_stale((const struct tc_plan *)(const void *)made.plan));
        assert_int_equal(unlink(path), 0);
        end(&made);
    }
}

static void test_what_hides_behind_an_images_links_is_masked_by_the_runtime(void **state)
{
    struct how how = docker;
    struct made made = must_make(&runc, "filesystem = { hidden = [\"/data/link\"] }");
    (void)state;
    assert_true(is_masked(&made, "/data/link"));
    assert_true(has_string(at(made.config, "linux/maskedPaths"), "/data/link"));
    assert_true(has_string(at(made.config, "linux/maskedPaths"), "/proc/kcore"));
    end(&made);
    /* An engine's image cannot be looked at. */
    made = must_make(&docker, "filesystem = { hidden = [\"/usr/bin/secret\"] }");
    assert_true(is_masked(&made, "/usr/bin/secret"));
    end(&made);
    /* gVisor passes over masked paths. */
    assert_refused(&runsc, "filesystem = { hidden = [\"/data/link\"] }", "gVisor");
    how.runtime = TCI_OCI_RUNSC;
    assert_refused(&how, "filesystem = { hidden = [\"/data\"] }", "gVisor");
}

static void test_a_grant_inside_a_hidden_directory_stays(void **state)
{
    (void)state;
    struct made made = must_make(&docker, "filesystem = { hidden = [\"/srv\"], readable = "
                                          "[{ host = \"HOST/data\", cage = \"/srv/data\" }] }");
    assert_int_equal(mount_of(&made, "/srv")->kind, TCI_OCI_MOUNT_TMPFS);
    assert_true(mount_of(&made, "/srv") < mount_of(&made, "/srv/data"));
    assert_false(is_masked(&made, "/srv"));
    end(&made);
}

/* The attack is in mount_rules.c: a directory on the way to a hidden path is renamed. */
static void test_directories_on_the_way_to_a_rule_cannot_be_renamed(void **state)
{
    (void)state;
    struct made made = must_make(&crun, "filesystem = { writable = [\"HOST/work\"], "
                                        "hidden = [\"HOST/work/a/b/c\"] }");
    char path[100];
    const struct tci_oci_mount *m;
    (void)snprintf(path, sizeof path, "%s/work/a", host);
    m = mount_of(&made, path);
    assert_true(m && m->kind == TCI_OCI_MOUNT_BIND && m->writable);
    assert_string_equal(m->host, path);
    (void)snprintf(path, sizeof path, "%s/work/a/b", host);
    assert_non_null(mount_of(&made, path));
    (void)snprintf(path, sizeof path, "%s/work/a/b/c", host);
    assert_int_equal(mount_of(&made, path)->kind, TCI_OCI_MOUNT_TMPFS);
    end(&made);
    /* In what cannot be written nobody renames. */
    made = must_make(&crun, "filesystem = { readable = [\"HOST/work\"], "
                            "hidden = [\"HOST/work/a/b/c\"] }");
    (void)snprintf(path, sizeof path, "%s/work/a", host);
    assert_null(mount_of(&made, path));
    end(&made);
}

static void test_scratch_has_its_size_and_can_be_left_out(void **state)
{
    (void)state;
    struct made made = must_make(&crun, "filesystem = { scratch = \"3MB\" }");
    assert_true(has_option(made.config, "/tmp", "size=3000000"));
    assert_true(has_option(made.config, "/tmp", "mode=1777"));
    assert_true(has_option(made.config, "/dev/shm", "size=3000000"));
    assert_true(has_option(made.config, "/dev/shm", "noexec"));
    assert_false(has_option(made.config, "/tmp", "noexec"));
    end(&made);
    made = must_make(&crun, "filesystem = { scratch = \"0MB\" }");
    assert_null(mount_at(made.config, "/tmp"));
    assert_null(mount_at(made.config, "/dev/shm"));
    end(&made);
    /* Engines make one whether it is wanted or not. */
    made = must_make(&docker, "filesystem = { scratch = \"0MB\" }");
    assert_false(mount_of(&made, "/dev/shm")->writable);
    end(&made);
    made = must_make(&docker, "filesystem = { hidden = [\"/tmp\"] }");
    assert_null(mount_of(&made, "/tmp"));
    assert_true(is_masked(&made, "/tmp"));
    end(&made);
}

static void test_what_is_written_cannot_run_where_programs_are_listed(void **state)
{
    (void)state;
    struct made made = must_make(&runc, "commands = [\"/bin/sh\"]\nfilesystem = { writable = "
                                        "[\"HOST/work\"] }");
    char path[100];
    (void)snprintf(path, sizeof path, "%s/work", host);
    assert_true(has_option(made.config, path, "noexec"));
    assert_true(has_option(made.config, "/tmp", "noexec"));
    end(&made);
}

static void test_runc_gets_memory_with_its_mode(void **state)
{
    struct made made = must_make(&runc,
                                 "filesystem = { hidden = [\"/data/keys\", \"/work\"], readable = "
                                 "[{ host = \"HOST/data\", cage = \"/work/a\" }] }");
    (void)state;
    assert_true(mount_of(&made, "/tmp")->staged && mount_of(&made, "/data/keys")->staged);
    assert_string_equal(text_at(mount_at(made.config, "/tmp"), "type"), "bind");
    /* In this one runc itself makes a place. */
    assert_false(mount_of(&made, "/work")->staged);
    assert_string_equal(text_at(mount_at(made.config, "/work"), "type"), "tmpfs");
    end(&made);
}

static void test_container_mounts_are_grants(void **state)
{
    (void)state;
    struct made made = must_make(&docker, "container = { mounts = [{ host = \"HOST/data\", cage = "
                                          "\"/in\", read_only = true }] }");
    assert_true(mount_of(&made, "/in") && !mount_of(&made, "/in")->writable);
    end(&made);
}

static void test_a_tools_library_can_be_loaded(void **state)
{
    (void)state;
    char library[100];
    struct how how = crun;
    struct made made;
    (void)snprintf(library, sizeof library, "%s/file", host);
    how.library = library;
    made = must_make(&how, "commands = []");
    assert_true(has_option(made.config, library, "ro"));
    assert_false(has_option(made.config, library, "noexec"));
    end(&made);
}

static void test_hostile_names_stay_text(void **state)
{
    (void)state;
    static const char *const names[] = {
        "/x\\\",\\\"type\\\":\\\"bind",
        "/a b,rw,suid",
        "/\\u00e9\\u202e\\U0001f600",
        "/${HOME}/'",
    };
    for (size_t i = 0; i < tci_array_size(names); i++) {
        char text[300];
        struct made made;
        const struct tci_oci_mount *m = NULL;
        (void)snprintf(text, sizeof text,
                       "filesystem = { readable = [{ host = \"HOST/data\", cage = \"%s\" }] }",
                       names[i]);
        made = must_make(&runc, text);
        for (size_t j = 0; j < made.plan->mount_count; j++)
            if (made.plan->mounts[j].kind == TCI_OCI_MOUNT_BIND)
                m = &made.plan->mounts[j];
        assert_non_null(m);
        assert_non_null(mount_at(made.config, m->cage)); /* byte for byte */
        end(&made);
    }
}

static void test_paths_that_json_cannot_say_are_refused(void **state)
{
    (void)state;
    char library[100];
    struct how how = crun;
    struct made made;
    int fd;
    (void)snprintf(library, sizeof library, "%s/\xff.so", host);
    fd = open(library, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
    how.library = library;
    assert_int_equal(make(&how, "", &made), -1);
    assert_non_null(strstr(made.error.message, "UTF-8"));
    end(&made);
    assert_int_equal(unlink(library), 0);
}

/* ---- a host that changes ---------------------------------------------------------------------------------- */

static bool is_stale(const struct made *made)
{
    return tci_oci_is_stale((const struct tc_plan *)(const void *)made->plan);
}

static void test_a_directory_made_anew_makes_the_plan_stale(void **state)
{
    struct made made = must_make(&docker, "filesystem = { writable = [\"HOST/work/keys\"] }");
    char path[100], aside[100];
    (void)state;
    assert_false(is_stale(&made));
    (void)snprintf(path, sizeof path, "%s/work/keys", host);
    (void)snprintf(aside, sizeof aside, "%s/work/aside", host);
    assert_int_equal(rename(path, aside), 0);
    assert_true(is_stale(&made));
    assert_int_equal(mkdir(path, 0755), 0);
    assert_true(is_stale(&made)); /* another one */
    assert_int_equal(rmdir(path), 0);
    /* The attack: a link to the same directory, put there by an earlier call. */
    assert_int_equal(symlink("/etc", path), 0);
    assert_true(is_stale(&made));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rename(aside, path), 0);
    assert_false(is_stale(&made));
    end(&made);
}

static void test_an_optional_path_that_appears_makes_the_plan_stale(void **state)
{
    struct made made = must_make(&docker, "filesystem = { readable = [\"HOST/data\"], hidden = "
                                          "[{ host = \"HOST/data/new\", optional = true }] }");
    char path[100];
    (void)state;
    assert_false(is_stale(&made));
    (void)snprintf(path, sizeof path, "%s/data/new", host);
    make_file(path);
    assert_true(is_stale(&made));
    assert_int_equal(unlink(path), 0);
    end(&made);
}

/* The attack is in mount_list.c: the cover goes with the file that it lies on. */
static void test_a_hidden_file_made_anew_makes_the_plan_stale(void **state)
{
    struct made made = must_make(&crun, "filesystem = { readable = [\"HOST/data\"], hidden = "
                                        "[\"HOST/data/.env\"] }");
    char path[100];
    (void)state;
    made.plan->rootfs = NULL;
    assert_false(is_stale(&made));
    (void)snprintf(path, sizeof path, "%s/data/.env", host);
    assert_int_equal(unlink(path), 0);
    assert_true(is_stale(&made));
    make_file(path); /* the old one's number is not free: the plan holds it */
    assert_true(is_stale(&made));
    end(&made);
}

static void test_a_passwd_that_appears_in_a_granted_directory_makes_the_plan_stale(void **state)
{
    struct made made = must_make(&crun, "filesystem = { writable = [{ host = \"HOST/work/a\", "
                                        "cage = \"/etc\" }] }");
    char path[100];
    (void)state;
    made.plan->rootfs = NULL;
    assert_false(is_stale(&made));
    (void)snprintf(path, sizeof path, "%s/work/a/group", host);
    assert_int_equal(symlink("/dev/zero", path), 0);
    assert_true(is_stale(&made));
    assert_int_equal(unlink(path), 0);
    end(&made);
}

static void test_another_root_directory_makes_the_plan_stale(void **state)
{
    struct made made = must_make(&crun, "");
    bool is_directory;
    int fd = open(host, O_PATH | O_CLOEXEC);
    (void)state;
    assert_int_equal(tci_granted_identify(fd, &made.plan->rootfs_device, &made.plan->rootfs_inode,
                                          &is_directory),
                     0);
    (void)close(fd);
    assert_false(is_stale(&made));
    made.plan->rootfs = "/";
    assert_true(is_stale(&made));
    end(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parents_come_before_what_lies_in_them),
        cmocka_unit_test(test_every_mount_is_without_setuid_and_devices),
        cmocka_unit_test(test_grants_are_taken_as_they_were_checked),
        cmocka_unit_test(test_missing_grants_are_refused_unless_optional),
        cmocka_unit_test(test_nothing_is_made_in_a_granted_directory),
        cmocka_unit_test(test_the_containers_own_places_cannot_be_granted),
        cmocka_unit_test(test_hidden_paths_of_a_grant_are_covered),
        cmocka_unit_test(test_no_runtime_mounts_in_a_granted_directory),
        cmocka_unit_test(test_our_passwd_lies_over_that_of_a_granted_directory),
        cmocka_unit_test(test_hidden_beats_readable_beats_writable_at_one_path),
        cmocka_unit_test(test_hidden_paths_of_a_root_directory_are_covered),
        cmocka_unit_test(test_what_could_appear_in_a_rootfs_must_be_there_to_be_hidden),
        cmocka_unit_test(test_what_hides_behind_an_images_links_is_masked_by_the_runtime),
        cmocka_unit_test(test_a_grant_inside_a_hidden_directory_stays),
        cmocka_unit_test(test_directories_on_the_way_to_a_rule_cannot_be_renamed),
        cmocka_unit_test(test_scratch_has_its_size_and_can_be_left_out),
        cmocka_unit_test(test_what_is_written_cannot_run_where_programs_are_listed),
        cmocka_unit_test(test_runc_gets_memory_with_its_mode),
        cmocka_unit_test(test_container_mounts_are_grants),
        cmocka_unit_test(test_a_tools_library_can_be_loaded),
        cmocka_unit_test(test_hostile_names_stay_text),
        cmocka_unit_test(test_paths_that_json_cannot_say_are_refused),
        cmocka_unit_test(test_a_directory_made_anew_makes_the_plan_stale),
        cmocka_unit_test(test_an_optional_path_that_appears_makes_the_plan_stale),
        cmocka_unit_test(test_a_hidden_file_made_anew_makes_the_plan_stale),
        cmocka_unit_test(test_a_passwd_that_appears_in_a_granted_directory_makes_the_plan_stale),
        cmocka_unit_test(test_another_root_directory_makes_the_plan_stale),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
