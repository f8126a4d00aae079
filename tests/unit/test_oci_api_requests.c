/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what container engines are sent: the directories that a container sees, the bodies of requests, and
 * to whom nothing is sent. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/oci/driver_api.h"
#include "base/fd.h"

#define ID_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

/* ---- directories ----------------------------------------------------------------------------------- */

static void test_a_cages_directory_holds_what_the_container_needs_and_goes(void **state)
{
    struct tci_api_place place;
    struct tc_error error = { 0 };
    char path[PATH_MAX + 64], saved[PATH_MAX];
    struct stat s;
    int fd;
    (void)state;
    assert_int_equal(tci_api_place_open(&place, &error), 0);
    (void)snprintf(saved, sizeof saved, "%s", place.path);
    assert_int_equal(stat(place.path, &s), 0);
    assert_int_equal(s.st_mode & 0777, 0700);
    assert_int_equal(tci_api_place_write(&place, "entry", 0555, "#!", 2, &error), 0);
    assert_int_equal(tci_api_place_write(&place, "entry", 0555, "#!", 2, NULL), -1);
    fd = tci_api_place_cage(&place, "0123456789abcdef", false, &error);
    assert_true(fd >= 0);
    (void)snprintf(path, sizeof path, "%s/0123456789abcdef/entry", place.path);
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(s.st_mode & 0777, 0555);
    (void)snprintf(path, sizeof path, "%s/0123456789abcdef/control", place.path);
    assert_int_equal(stat(path, &s), 0);
    assert_true(S_ISSOCK(s.st_mode));
    assert_int_equal(s.st_mode & 0777, 0666);
    assert_int_equal(tci_close(fd), -1);
    tci_api_place_cage_remove(&place, "0123456789abcdef");
    assert_int_equal(stat(path, &s), -1);
    tci_api_place_close(&place);
    assert_int_equal(stat(saved, &s), -1);
}

static void test_a_cage_that_cannot_be_made_leaves_no_directory(void **state)
{
    struct tci_api_place place;
    struct tc_error error = { 0 };
    char path[PATH_MAX + 64];
    struct stat s;
    (void)state;
    assert_int_equal(tci_api_place_open(&place, &error), 0);
    /* No entry was written. */
    assert_int_equal(tci_api_place_cage(&place, "0123456789abcdef", false, &error), -1);
    (void)snprintf(path, sizeof path, "%s/0123456789abcdef", place.path);
    assert_int_equal(stat(path, &s), -1);
    tci_api_place_close(&place);
}

/* ---- bodies --------------------------------------------------------------------------------------- */

struct fixture {
    struct tci_oci_plan plan;
    struct tci_settings settings;
    struct tci_api_place place;
    struct tci_api_image image;
    struct tci_oci_mount mounts[2];
    struct tci_string all;
};

static void fixture_open(struct fixture *f, enum tci_oci_engine engine)
{
    *f = (struct fixture){ 0 };
    f->all.text = "ALL";
    f->settings.container = (struct tci_container){ .cap_drop = { &f->all, 1 },
                                                    .read_only_rootfs = true,
                                                    .no_new_privileges = true };
    f->settings.memory = 1 << 26;
    f->settings.pids = 9;
    f->settings.cpu = 500;
    f->settings.files = 64;
    f->mounts[0] = (struct tci_oci_mount){ .kind = TCI_OCI_MOUNT_BIND,
                                           .host = "/a,ro:\"b",
                                           .cage = "/in,rw",
                                           .writable = true,
                                           .source = -1 };
    f->mounts[1] = (struct tci_oci_mount){ .kind = TCI_OCI_MOUNT_TMPFS,
                                           .cage = "/secret",
                                           .size = 4096,
                                           .mode = "0111",
                                           .no_exec = true,
                                           .source = -1 };
    f->plan = (struct tci_oci_plan){ .arena = tci_arena_new(),
                                     .spec = { .tool = "t", .settings = &f->settings },
                                     .choice = { .engine = engine,
                                                 .runtime = TCI_OCI_RUNTIME_OF_ENGINE },
                                     .mounts = f->mounts,
                                     .mount_count = 2,
                                     .user = "7:8",
                                     .seccomp_json = "{\"defaultAction\":\"SCMP_ACT_ERRNO\"}" };
    (void)snprintf(f->place.path, sizeof f->place.path, "/run/x");
    (void)snprintf(f->place.owner, sizeof f->place.owner, "1-2-3.4-55555555");
    (void)snprintf(f->image.id, sizeof f->image.id, "%s", ID_A);
    f->image.volumes[0] = "/vol";
    f->image.volumes[1] = "/secret";
    f->image.volume_count = 2;
}

static json_t *body_of(struct fixture *f)
{
    const struct tci_api_body what = { .plan = &f->plan, .place = &f->place, .image = &f->image };
    struct tci_buf out = TCI_BUF_INIT(TCI_API_ANSWER_MAX);
    struct tc_error error = { 0 };
    json_t *body;
    if (f->plan.choice.engine == TCI_OCI_ENGINE_DOCKER)
        assert_int_equal(tci_api_docker_body(&what, &out, &error), 0);
    else
        assert_int_equal(tci_api_podman_body(&what, &out, &error), 0);
    body = json_loadb(out.data, out.length, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(body);
    tci_buf_free(&out);
    return body;
}

static const char *text_at(json_t *value, const char *key)
{
    const char *text = json_string_value(json_object_get(value, key));
    return text ? text : "";
}

static void test_docker_is_told_everything_that_an_image_could_say(void **state)
{
    struct fixture f;
    fixture_open(&f, TCI_OCI_ENGINE_DOCKER);
    json_t *body = body_of(&f), *host = json_object_get(body, "HostConfig");
    json_t *tmpfs = json_object_get(host, "Tmpfs");
    json_t *bind = json_array_get(json_object_get(host, "Mounts"), 1);
    (void)state;
    assert_string_equal(text_at(body, "Image"), "sha256:" ID_A);
    assert_string_equal(text_at(body, "User"), "7:8");
    assert_string_equal(json_string_value(json_array_get(json_object_get(body, "Entrypoint"), 0)),
                        TCI_API_ENTRY_DIRECTORY "/entry");
    assert_int_equal(json_array_size(json_object_get(body, "Cmd")), 0);
    assert_string_equal(json_string_value(json_array_get(
                            json_object_get(json_object_get(body, "Healthcheck"), "Test"), 0)),
                        "NONE");
    assert_true(json_is_true(json_object_get(host, "ReadonlyRootfs")));
    assert_true(json_is_true(json_object_get(host, "AutoRemove")));
    assert_true(json_is_false(json_object_get(host, "Privileged")));
    assert_string_equal(text_at(host, "NetworkMode"), "none");
    assert_int_equal(json_integer_value(json_object_get(host, "Memory")), 1 << 26);
    assert_int_equal(json_integer_value(json_object_get(host, "MemorySwap")), 1 << 26);
    assert_int_equal(json_integer_value(json_object_get(host, "PidsLimit")), 10);
    assert_int_equal(json_integer_value(json_object_get(host, "NanoCpus")), 500000000);
    assert_string_equal(text_at(bind, "Source"), "/a,ro:\"b");
    assert_string_equal(text_at(bind, "Target"), "/in,rw");
    /* The volume is covered; the one that the plan covers is not covered twice. */
    assert_non_null(strstr(text_at(tmpfs, "/vol"), "ro,"));
    assert_non_null(strstr(text_at(tmpfs, "/secret"), "mode=0111"));
    assert_int_equal(json_object_size(tmpfs), 2);
    json_decref(body);
    tci_arena_free(f.plan.arena);
}

static void test_podman_gets_a_path_with_commas_as_one_path(void **state)
{
    struct fixture f;
    fixture_open(&f, TCI_OCI_ENGINE_PODMAN);
    json_t *body = body_of(&f), *mounts = json_object_get(body, "mounts");
    json_t *bind = json_array_get(mounts, 1), *memory = json_array_get(mounts, 2), *option;
    bool kept_empty = false;
    size_t i;
    (void)state;
    assert_int_equal(json_array_size(mounts), 3);
    assert_string_equal(text_at(bind, "source"), "/a,ro:\"b");
    assert_string_equal(text_at(bind, "destination"), "/in,rw");
    assert_string_equal(text_at(body, "image_volume_mode"), "ignore");
    assert_string_equal(text_at(body, "seccomp_profile_path"), "/run/x/seccomp.json");
    assert_string_equal(text_at(json_object_get(body, "netns"), "nsmode"), "none");
    assert_true(json_is_true(json_object_get(body, "no_new_privileges")));
    /* Else Podman fills a hidden directory with what is to be hidden. */
    json_array_foreach(json_object_get(memory, "options"), i, option)
        kept_empty |= strcmp(json_string_value(option), "notmpcopyup") == 0;
    assert_true(kept_empty);
    json_decref(body);
    tci_arena_free(f.plan.arena);
}

static void test_limits_are_left_to_a_group_of_ours_where_there_is_one(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f, TCI_OCI_ENGINE_DOCKER);
    f.plan.use_cgroup = true;
    json_t *body = body_of(&f);
    assert_null(json_object_get(json_object_get(body, "HostConfig"), "Memory"));
    json_decref(body);
    tci_arena_free(f.plan.arena);
    fixture_open(&f, TCI_OCI_ENGINE_PODMAN);
    body = body_of(&f);
    assert_non_null(json_object_get(json_object_get(body, "resource_limits"), "memory"));
    json_decref(body);
    tci_arena_free(f.plan.arena);
}

/* "/proc" is mounted below "/" everywhere; a link leads there just as well. */
static void below_fixture(struct fixture *f, enum tci_oci_engine engine, const char *host)
{
    fixture_open(f, engine);
    f->mounts[0].host = host;
    f->mounts[0].cage = "/host";
    f->mounts[0].writable = false;
}

static void test_what_is_mounted_below_a_read_only_path_is_read_only_too(void **state)
{
    char link[] = "/tmp/toolcage-below-XXXXXX";
    const char *const hosts[] = { "/", link };
    struct fixture f;
    json_t *body, *mounts, *bind;
    size_t i;
    (void)state;
    assert_non_null(mkdtemp(link));
    assert_int_equal(rmdir(link), 0);
    assert_int_equal(symlink("/", link), 0);
    for (size_t n = 0; n < tci_array_size(hosts); n++) {
        bool found = false;
        below_fixture(&f, TCI_OCI_ENGINE_DOCKER, hosts[n]);
        assert_int_equal(tci_api_below(&f.plan, NULL), 0);
        body = body_of(&f);
        mounts = json_object_get(json_object_get(body, "HostConfig"), "Mounts");
        json_array_foreach(mounts, i, bind)
        {
            json_t *options = json_object_get(bind, "BindOptions");
            assert_true(json_is_true(json_object_get(bind, "ReadOnly")));
            assert_true(json_is_true(json_object_get(options, "NonRecursive")));
            found |= strcmp(text_at(bind, "Target"), "/host/proc") == 0 &&
                     strcmp(text_at(bind, "Source"), "/proc") == 0;
        }
        assert_true(found);
        json_decref(body);
        tci_arena_free(f.plan.arena);
    }
    assert_int_equal(unlink(link), 0);
}

/* So that the plan is looked through, and the container: whatever lies at the path by then. */
static void test_what_is_mounted_below_is_known_by_more_than_its_path(void **state)
{
    const struct tci_oci_mount *found = NULL;
    struct fixture f;
    struct stat s;
    (void)state;
    below_fixture(&f, TCI_OCI_ENGINE_PODMAN, "/");
    assert_int_equal(tci_api_below(&f.plan, NULL), 0);
    for (size_t i = 0; i < f.plan.mount_count; i++)
        if (strcmp(f.plan.mounts[i].cage, "/host/proc") == 0)
            found = &f.plan.mounts[i];
    assert_non_null(found);
    assert_int_equal(stat("/proc", &s), 0);
    assert_int_equal(found->kind, TCI_OCI_MOUNT_BIND);
    assert_int_equal(found->inode, s.st_ino);
    assert_int_equal(found->device, (uint64_t)major(s.st_dev) << 32 | minor(s.st_dev));
    assert_false(found->writable || found->is_file);
    tci_arena_free(f.plan.arena);
}

/* In a user namespace the kernel binds only with what is below, listed or not. */
static void test_a_rootless_engine_is_told_no_more_than_the_plan_says(void **state)
{
    struct fixture f;
    json_t *body, *mounts;
    (void)state;
    below_fixture(&f, TCI_OCI_ENGINE_DOCKER, "/");
    f.plan.choice.engine_is_rootless = true;
    assert_int_equal(tci_api_below(&f.plan, NULL), 0);
    assert_int_equal(f.plan.mount_count, 2);
    body = body_of(&f);
    mounts = json_object_get(json_object_get(body, "HostConfig"), "Mounts");
    assert_int_equal(json_array_size(mounts), 2);
    assert_true(json_is_true(json_object_get(json_array_get(mounts, 1), "ReadOnly")));
    assert_true(json_is_false(json_object_get(
        json_object_get(json_array_get(mounts, 1), "BindOptions"), "NonRecursive")));
    json_decref(body);
    tci_arena_free(f.plan.arena);
}

static void volume_fixture(struct fixture *f, const char *host, const char *volume)
{
    fixture_open(f, TCI_OCI_ENGINE_DOCKER);
    f->mounts[0].host = host;
    f->mounts[0].cage = "/in";
    f->mounts[0].is_file = false;
    f->mounts[1].writable = false;
    f->image.volumes[0] = volume;
    f->image.volume_count = 1;
}

static void test_a_volume_within_a_grant_is_what_is_there_or_refused(void **state)
{
    static const struct {
        const char *volume;
        size_t mounts; /* 0: refused */
    } table[] = {
        { "/in/sub", 3 },    { "/in/missing", 0 },  { "/in/link", 0 },     { "/in/file", 0 },
        { "/.toolcage", 0 }, { "/.toolcage/x", 0 }, { "/secret/deep", 0 }, { "/secret", 2 },
        { "/in", 2 },        { "/elsewhere", 2 },   { "/inner", 2 },
    };
    char directory[] = "/tmp/toolcage-volume-XXXXXX", path[64];
    (void)state;
    assert_non_null(mkdtemp(directory));
    (void)snprintf(path, sizeof path, "%s/sub", directory);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/link", directory);
    assert_int_equal(symlink("/etc", path), 0);
    (void)snprintf(path, sizeof path, "%s/file", directory);
    assert_true(close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) == 0);
    for (size_t i = 0; i < tci_array_size(table); i++) {
        tc_cleanup(tci_closep) int top = open(directory, O_PATH | O_CLOEXEC);
        struct tc_error error = { 0 };
        struct fixture f;
        bool is_directory;
        int r;
        volume_fixture(&f, directory, table[i].volume);
        assert_int_equal(
            tci_granted_identify(top, &f.mounts[0].device, &f.mounts[0].inode, &is_directory), 0);
        r = tci_api_volumes(&f.plan, "an-image", &f.image, &error);
        assert_int_equal(r, table[i].mounts ? 0 : -1);
        if (r < 0) {
            assert_non_null(strstr(error.message, "an-image"));
            assert_non_null(strstr(error.message, table[i].volume));
            assert_true(error.remedy[0]);
        } else {
            assert_int_equal(f.plan.mount_count, table[i].mounts);
        }
        if (table[i].mounts == 3) {
            (void)snprintf(path, sizeof path, "%s/sub", directory);
            assert_string_equal(f.plan.mounts[2].host, path);
            assert_true(f.plan.mounts[2].writable && f.plan.mounts[2].inode != f.mounts[0].inode);
        }
        tci_arena_free(f.plan.arena);
    }
    (void)snprintf(path, sizeof path, "%s/sub", directory);
    assert_int_equal(rmdir(path), 0);
    (void)snprintf(path, sizeof path, "%s/link", directory);
    assert_int_equal(unlink(path), 0);
    (void)snprintf(path, sizeof path, "%s/file", directory);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(directory), 0);
}

/* ---- an engine that is none ------------------------------------------------------------------------- */

static void test_a_socket_that_nobody_listens_on_is_an_error_with_a_remedy(void **state)
{
    struct tci_api api;
    struct tci_api_answer answer;
    struct tc_error error = { 0 };
    const struct tci_api_request request = { .method = "GET", .path = "/_ping", .limit_ms = 1000 };
    (void)state;
    if (tci_api_open(&api, TCI_OCI_ENGINE_DOCKER, "/nonexistent/docker.sock", &error) < 0) {
        assert_non_null(strstr(error.remedy, "libcurl"));
        return;
    }
    assert_int_equal(tci_api_send(&api, &request, &answer, &error), -1);
    assert_non_null(strstr(error.message, "/nonexistent/docker.sock"));
    assert_true(error.remedy[0]);
    tci_api_answer_free(&answer);
}

/* Answers one ping as this user; the child of the test. */
static void serve_as(uid_t uid, const char *path)
{
    static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nOK";
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;
    char request[512];
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (bind(listening, (const struct sockaddr *)&address, sizeof address) < 0 ||
        setresuid(uid, uid, uid) < 0 || listen(listening, 4) < 0)
        _exit(1);
    do /* a connection without a request only looks who is here */
        fd = accept(listening, NULL, NULL);
    while (fd >= 0 && read(fd, request, sizeof request) <= 0);
    if (write(fd, ok, sizeof ok - 1) < 0)
        _exit(1);
    _exit(0);
}

static int ping_served_by(uid_t uid, struct tc_error *reterr)
{
    const struct tci_api_request request = { .method = "GET", .path = "/_ping", .limit_ms = 5000 };
    char directory[] = "/tmp/toolcage-engine-XXXXXX", path[64];
    struct tci_api api;
    struct tci_api_answer answer;
    int r = 0;
    pid_t pid;
    assert_non_null(mkdtemp(directory));
    (void)snprintf(path, sizeof path, "%s/s", directory);
    pid = fork();
    if (pid == 0)
        serve_as(uid, path);
    assert_int_equal(tci_api_open(&api, TCI_OCI_ENGINE_DOCKER, path, reterr), 0);
    for (int i = 0; i < 3000; i++) { /* until it listens */
        *reterr = (struct tc_error){ 0 };
        r = tci_api_send(&api, &request, &answer, reterr);
        tci_api_answer_free(&answer);
        if (r == 0 || !strstr(reterr->message, "cannot be reached"))
            break;
        (void)usleep(10000);
    }
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    (void)unlink(path);
    (void)rmdir(directory);
    return r;
}

static void test_nothing_is_sent_to_a_socket_of_another_user(void **state)
{
    struct tc_error error = { 0 };
    (void)state;
    assert_int_equal(ping_served_by(geteuid(), &error), 0);
    if (geteuid() != 0)
        skip();
    assert_int_equal(ping_served_by(65534, &error), -1);
    assert_non_null(strstr(error.message, "another user's"));
    assert_true(error.remedy[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_cages_directory_holds_what_the_container_needs_and_goes),
        cmocka_unit_test(test_a_cage_that_cannot_be_made_leaves_no_directory),
        cmocka_unit_test(test_docker_is_told_everything_that_an_image_could_say),
        cmocka_unit_test(test_podman_gets_a_path_with_commas_as_one_path),
        cmocka_unit_test(test_limits_are_left_to_a_group_of_ours_where_there_is_one),
        cmocka_unit_test(test_what_is_mounted_below_a_read_only_path_is_read_only_too),
        cmocka_unit_test(test_what_is_mounted_below_is_known_by_more_than_its_path),
        cmocka_unit_test(test_a_rootless_engine_is_told_no_more_than_the_plan_says),
        cmocka_unit_test(test_a_volume_within_a_grant_is_what_is_there_or_refused),
        cmocka_unit_test(test_a_socket_that_nobody_listens_on_is_an_error_with_a_remedy),
        cmocka_unit_test(test_nothing_is_sent_to_a_socket_of_another_user),
    };
    return cmocka_run_group_tests_name("oci_api_requests", tests, NULL, NULL);
}
