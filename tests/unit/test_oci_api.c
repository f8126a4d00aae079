/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what is made of a container engine's answers, also of those that no engine gives; owners; and the
 * bodies that engines are sent. */
#include <errno.h>
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
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/oci/driver_api.h"
#include "base/fd.h"

#define ID_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define ID_B "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct tci_api_answer answer_of(const char *text)
{
    struct tci_api_answer answer = { .status = 200, .body = TCI_BUF_INIT(TCI_API_ANSWER_MAX) };
    tci_buf_string(&answer.body, text);
    return answer;
}

/* ---- ids ------------------------------------------------------------------------------------------ */

static void test_an_id_is_64_small_hex_digits_and_nothing_else(void **state)
{
    static const char *const bad[] = {
        "",
        "abc",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "Aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "../../images/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa?force",
    };
    (void)state;
    assert_true(tci_api_is_id(ID_A));
    assert_true(tci_api_is_id(ID_B));
    for (size_t i = 0; i < tci_array_size(bad); i++)
        assert_false(tci_api_is_id(bad[i]));
}

static void test_create_answers_without_an_id_are_errors(void **state)
{
    static const char *const bad[] = { "",
                                       "OK",
                                       "{",
                                       "[]",
                                       "{}",
                                       "null",
                                       "{\"Id\":7}",
                                       "{\"Id\":null}",
                                       "{\"Id\":\"\"}",
                                       "{\"Id\":[\"" ID_A "\"]}",
                                       "{\"Id\":\"/" ID_A "\"}",
                                       "{\"Id\":\"" ID_A "\",\"Id\":\"" ID_B "\"}",
                                       "{\"Id\":\"" ID_A "\"} trailing",
                                       "{\"Id\":\"\\u0000\"}" };
    char id[TCI_API_ID_LENGTH + 1] = "untouched";
    struct tci_api_answer answer;
    (void)state;
    for (size_t i = 0; i < tci_array_size(bad); i++) {
        struct tc_error error = { 0 };
        answer = answer_of(bad[i]);
        assert_int_equal(tci_api_read_id(&answer, id, &error), -1);
        assert_true(error.message[0]);
        assert_string_equal(id, "untouched");
        tci_api_answer_free(&answer);
    }
    answer = answer_of("{\"Id\":\"" ID_B "\",\"Warnings\":[]}\n");
    assert_int_equal(tci_api_read_id(&answer, id, NULL), 0);
    assert_string_equal(id, ID_B);
    tci_api_answer_free(&answer);
}

/* ---- words ---------------------------------------------------------------------------------------- */

static void test_an_engines_words_cannot_control_a_terminal_or_fill_a_message(void **state)
{
    char words[TCI_API_WORDS_MAX], large[4000];
    struct tci_api_answer answer = answer_of(
        "{\"message\":\"no such thing\\u001b[2J\\r\\nroot# \xc2\x9b"
        "31m\"}");
    (void)state;
    tci_api_words(&answer, words);
    assert_non_null(strstr(words, "no such thing"));
    for (const char *c = words; *c; c++)
        assert_true(*c >= ' ' && *c < 0x7f);
    tci_api_answer_free(&answer);

    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    answer = answer_of("{\"message\":\"");
    tci_buf_string(&answer.body, large);
    tci_buf_string(&answer.body, "\"}");
    tci_api_words(&answer, words);
    assert_int_equal(strlen(words), TCI_API_WORDS_MAX - 1);
    tci_api_answer_free(&answer);
}

static void test_an_error_without_words_shows_its_status_and_what_came(void **state)
{
    static const char *const bodies[] = { "", "<html>\x1b[2J", "{\"message\":7}",
                                          "{\"message\":\"\"}", "[1]" };
    char words[TCI_API_WORDS_MAX];
    (void)state;
    for (size_t i = 0; i < tci_array_size(bodies); i++) {
        struct tci_api_answer answer = answer_of(bodies[i]);
        answer.status = 502;
        tci_api_words(&answer, words);
        assert_non_null(strstr(words, "502"));
        assert_null(strchr(words, '\x1b'));
        tci_api_answer_free(&answer);
    }
}

/* ---- images --------------------------------------------------------------------------------------- */

static void test_volumes_of_an_image_are_noted_in_normal_form(void **state)
{
    struct tci_arena *arena = tci_arena_new();
    struct tci_api_image image;
    struct tci_api_answer answer = answer_of(
        "{\"Id\":\"sha256:" ID_A "\",\"Config\":{\"Volumes\":{\"/data/../var/lib/\":{}}}}");
    (void)state;
    assert_int_equal(tci_api_read_image(&answer, arena, &image, NULL), 0);
    assert_string_equal(image.id, ID_A);
    assert_int_equal(image.volume_count, 1);
    assert_string_equal(image.volumes[0], "/var/lib");
    tci_api_answer_free(&answer);
    answer = answer_of("{\"Id\":\"" ID_A "\",\"Config\":null}");
    assert_int_equal(tci_api_read_image(&answer, arena, &image, NULL), 0);
    assert_int_equal(image.volume_count, 0);
    tci_api_answer_free(&answer);
    tci_arena_free(arena);
}

static void test_an_image_that_cannot_be_understood_is_refused(void **state)
{
    static const char *const bad[] = {
        "{\"Config\":{}}",
        "{\"Id\":\"sha512:" ID_A "\"}",
        "{\"Id\":\"" ID_A "\",\"Config\":[]}",
        "{\"Id\":\"" ID_A "\",\"Config\":{\"Volumes\":[\"/data\"]}}",
        "{\"Id\":\"" ID_A "\",\"Config\":{\"Volumes\":\"/data\"}}",
        "{\"Id\":\"" ID_A "\",\"Config\":{\"Volumes\":{\"/\":{}}}}",
        "{\"Id\":\"" ID_A "\",\"Config\":{\"Volumes\":{\"data\":{}}}}",
        "{\"Id\":\"" ID_A "\",\"Config\":{\"Volumes\":{\"/..\":{}}}}",
    };
    struct tci_arena *arena = tci_arena_new();
    struct tci_api_image image;
    (void)state;
    for (size_t i = 0; i < tci_array_size(bad); i++) {
        struct tci_api_answer answer = answer_of(bad[i]);
        struct tc_error error = { 0 };
        assert_int_equal(tci_api_read_image(&answer, arena, &image, &error), -1);
        assert_true(error.message[0]);
        tci_api_answer_free(&answer);
    }
    tci_arena_free(arena);
}

static void test_an_image_with_more_volumes_than_can_be_covered_is_refused(void **state)
{
    struct tci_arena *arena = tci_arena_new();
    struct tci_api_image image;
    struct tci_api_answer answer = answer_of("{\"Id\":\"" ID_A "\",\"Config\":{\"Volumes\":{");
    struct tc_error error = { 0 };
    (void)state;
    for (int i = 0; i <= TCI_API_VOLUMES_MAX; i++)
        tci_buf_printf(&answer.body, "%s\"/v%d\":{}", i ? "," : "", i);
    tci_buf_string(&answer.body, "}}}");
    assert_int_equal(tci_api_read_image(&answer, arena, &image, &error), -1);
    assert_non_null(strstr(error.message, "volumes"));
    tci_api_answer_free(&answer);
    tci_arena_free(arena);
}

/* ---- version, memory, lists ------------------------------------------------------------------------ */

static void take(struct tci_api_answer *answer, const char *line)
{
    tci_api_take_header(answer, line, strlen(line));
}

static void test_the_version_comes_from_the_headers_of_a_ping(void **state)
{
    struct tci_api_answer answer = { .status = 200 };
    struct tci_api_version version;
    (void)state;
    take(&answer, "api-version: 1.41\r\n");
    take(&answer, "Server: Docker/20.10.24+dfsg1 (linux)\r\n");
    assert_int_equal(tci_api_read_version(&answer, &version, NULL), 0);
    assert_int_equal(version.api, 1041);
    assert_int_equal(version.libpod, 0);
    assert_string_equal(version.engine, "20.10.24+dfsg1");
    take(&answer, "Libpod-Api-Version: 4.3.1\r\n");
    assert_int_equal(tci_api_read_version(&answer, &version, NULL), 0);
    assert_int_equal(version.libpod, 4003);
}

static void test_a_ping_without_a_version_is_no_engine(void **state)
{
    static const char *const bad[] = { "",
                                       "Api-Version:\r\n",
                                       "Api-Version: x.y\r\n",
                                       "Api-Version: -1.41\r\n",
                                       "Xpi-Version: 1.41\r\n",
                                       "Api-Version: 99999999999999999999\r\n" };
    struct tci_api_version version;
    (void)state;
    for (size_t i = 0; i < tci_array_size(bad); i++) {
        struct tci_api_answer answer = { .status = 200 };
        take(&answer, bad[i]);
        assert_int_equal(tci_api_read_version(&answer, &version, NULL), -1);
    }
    struct tci_api_answer wrong = { .status = 500 };
    take(&wrong, "Api-Version: 1.41\r\n");
    assert_int_equal(tci_api_read_version(&wrong, &version, NULL), -1);
}

static void test_memory_ran_out_only_if_the_engine_says_so_in_so_many_words(void **state)
{
    static const struct {
        const char *text;
        bool killed;
    } table[] = {
        { "{\"State\":{\"OOMKilled\":true}}", true },
        { "{\"State\":{\"OOMKilled\":false}}", false },
        { "{\"State\":{\"OOMKilled\":\"true\"}}", false },
        { "{\"State\":{\"OOMKilled\":1}}", false },
        { "{\"OOMKilled\":true}", false },
        { "{\"State\":[true]}", false },
        { "rubbish", false },
        { "", false },
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(table); i++) {
        struct tci_api_answer answer = answer_of(table[i].text);
        assert_int_equal(tci_api_read_oom(&answer), table[i].killed);
        tci_api_answer_free(&answer);
    }
}

static void count(void *data, const char *id, const char *owner)
{
    assert_string_equal(id, ID_B);
    assert_string_equal(owner, "me");
    (*(int *)data)++;
}

#define ME "\"Labels\":{\"io.toolcage.owner\":\"me\"}"

static void test_only_whole_entries_of_a_list_count(void **state)
{
    int found = 0;
    struct tci_api_answer answer = answer_of(
        "[{\"Id\":\"" ID_B "\",\"Names\":[\"/toolcage-0123456789abcdef\"]," ME "},"
        "{\"Id\":\"" ID_B "\",\"Names\":[\"toolcage-0123456789abcdef\"]," ME "},"
        "{\"Id\":\"" ID_B "\",\"Names\":[\"toolcage-0123456789abcdef\"],\"Labels\":{}},"
        "{\"Id\":\"" ID_B "\"},7,null,[],"
        "{\"Id\":\"../x\",\"Names\":[\"toolcage-0123456789abcdef\"]," ME "},"
        "{\"Id\":\"" ID_B "\",\"Names\":[\"toolcage-0123456789abcdef\"],"
        "\"Labels\":{\"io.toolcage.owner\":[\"me\"]}},"
        /* Made by others, from an image with our label on it. */
        "{\"Id\":\"" ID_B "\",\"Names\":[\"/toolcage-0123456789abcdefff\"]," ME "},"
        "{\"Id\":\"" ID_B "\",\"Names\":[\"/toolcage-web\",7,null]," ME "},"
        "{\"Id\":\"" ID_B "\",\"Names\":\"toolcage-0123456789abcdef\"," ME "},"
        "{\"Id\":\"" ID_B "\"," ME "}]");
    (void)state;
    assert_int_equal(tci_api_read_list(&answer, count, &found, NULL), 0);
    assert_int_equal(found, 2);
    tci_api_answer_free(&answer);
    answer = answer_of("{\"message\":\"no\"}");
    assert_int_equal(tci_api_read_list(&answer, count, &found, NULL), -1);
    tci_api_answer_free(&answer);
}

/* ---- owners --------------------------------------------------------------------------------------- */

static void test_this_process_is_not_gone_and_a_dead_one_is(void **state)
{
    char owner[TCI_API_OWNER_MAX], other[TCI_API_OWNER_MAX + 32];
    const char *rest;
    pid_t child;
    (void)state;
    assert_int_equal(tci_api_owner(owner, NULL), 0);
    assert_false(tci_api_owner_is_gone(owner));
    child = fork();
    if (child == 0)
        _exit(0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    rest = strchr(owner, '-');
    (void)snprintf(other, sizeof other, "%d%s", (int)child, rest);
    assert_true(tci_api_owner_is_gone(other));
    /* The same number at another time: somebody else. */
    rest = strchr(rest + 1, '-');
    (void)snprintf(other, sizeof other, "%d-1%s", (int)getpid(), rest);
    assert_true(tci_api_owner_is_gone(other));
    /* Before the last boot. */
    (void)snprintf(other, sizeof other, "%.*sffffffff", (int)(strlen(owner) - 8), owner);
    assert_true(tci_api_owner_is_gone(other));
}

static void test_an_owner_that_cannot_be_judged_is_left_alone(void **state)
{
    char owner[TCI_API_OWNER_MAX], other[TCI_API_OWNER_MAX + 32];
    static const char *const bad[] = { "",
                                       "1",
                                       "1-2-3.4",
                                       "x-1-1.1-aaaaaaaa",
                                       "-5-1-1.1-aaaaaaaa",
                                       "0-1-1.1-aaaaaaaa",
                                       " 99999-1-1.1-aaaaaaaa",
                                       "99999-1-1.1-aaaaaaaabbb",
                                       "99999-01-1.1-aaaaaaaa",
                                       "../../etc" };
    const char *boot;
    (void)state;
    for (size_t i = 0; i < tci_array_size(bad); i++)
        assert_false(tci_api_owner_is_gone(bad[i]));
    /* In another pid namespace: whoever that is may live. */
    assert_int_equal(tci_api_owner(owner, NULL), 0);
    boot = strrchr(owner, '-');
    (void)snprintf(other, sizeof other, "4194303-1-1.1%s", boot);
    assert_false(tci_api_owner_is_gone(other));
}

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
                        TCI_ENTRY_PROGRAM);
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

static void test_what_is_mounted_below_a_read_only_path_is_read_only_too(void **state)
{
    struct fixture f;
    json_t *body, *mounts, *bind;
    size_t i;
    bool found = false;
    (void)state;
    fixture_open(&f, TCI_OCI_ENGINE_DOCKER);
    /* "/proc" is mounted below "/" everywhere. */
    f.mounts[0].host = "/";
    f.mounts[0].cage = "/host";
    f.mounts[0].writable = false;
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
    /* In a user namespace the kernel binds only with what is below; it is covered then. */
    f.plan.choice.engine_is_rootless = true;
    body = body_of(&f);
    mounts = json_object_get(json_object_get(body, "HostConfig"), "Mounts");
    found = false;
    json_array_foreach(mounts, i, bind)
    {
        assert_true(json_is_true(json_object_get(bind, "ReadOnly")));
        found |= strcmp(text_at(bind, "Target"), "/host/proc") == 0;
    }
    assert_true(found);
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
    for (int i = 0; i < 500; i++) { /* until it listens */
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
        cmocka_unit_test(test_an_id_is_64_small_hex_digits_and_nothing_else),
        cmocka_unit_test(test_create_answers_without_an_id_are_errors),
        cmocka_unit_test(test_an_engines_words_cannot_control_a_terminal_or_fill_a_message),
        cmocka_unit_test(test_an_error_without_words_shows_its_status_and_what_came),
        cmocka_unit_test(test_volumes_of_an_image_are_noted_in_normal_form),
        cmocka_unit_test(test_an_image_that_cannot_be_understood_is_refused),
        cmocka_unit_test(test_an_image_with_more_volumes_than_can_be_covered_is_refused),
        cmocka_unit_test(test_the_version_comes_from_the_headers_of_a_ping),
        cmocka_unit_test(test_a_ping_without_a_version_is_no_engine),
        cmocka_unit_test(test_memory_ran_out_only_if_the_engine_says_so_in_so_many_words),
        cmocka_unit_test(test_only_whole_entries_of_a_list_count),
        cmocka_unit_test(test_this_process_is_not_gone_and_a_dead_one_is),
        cmocka_unit_test(test_an_owner_that_cannot_be_judged_is_left_alone),
        cmocka_unit_test(test_a_cages_directory_holds_what_the_container_needs_and_goes),
        cmocka_unit_test(test_a_cage_that_cannot_be_made_leaves_no_directory),
        cmocka_unit_test(test_docker_is_told_everything_that_an_image_could_say),
        cmocka_unit_test(test_podman_gets_a_path_with_commas_as_one_path),
        cmocka_unit_test(test_limits_are_left_to_a_group_of_ours_where_there_is_one),
        cmocka_unit_test(test_what_is_mounted_below_a_read_only_path_is_read_only_too),
        cmocka_unit_test(test_a_volume_within_a_grant_is_what_is_there_or_refused),
        cmocka_unit_test(test_a_socket_that_nobody_listens_on_is_an_error_with_a_remedy),
        cmocka_unit_test(test_nothing_is_sent_to_a_socket_of_another_user),
    };
    return cmocka_run_group_tests_name("oci_api", tests, NULL, NULL);
}
