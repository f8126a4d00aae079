/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what is made of a container engine's answers, also of those that no engine gives; and owners. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/oci/driver_api.h"

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
        "{\"Id\":\"" ID_A "\",\"Annotations\":[\"run.oci.handler\"]}",
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

/* The first of the second family would be the outer system call filter. */
static void test_annotations_that_a_runtime_could_act_on_are_noted(void **state)
{
    static const struct {
        const char *text, *found;
    } cases[] = {
        { "null", NULL },
        { "{}", NULL },
        { "{\"org.opencontainers.image.title\":\"x\",\"com.docker.official-images.bashbrew.arch\":"
          "\"y\","
          "\"org.label-schema.name\":\"z\",\"io.buildah.version\":\"1\"}",
          NULL },
        { "{\"org.opencontainers.image.title\":\"x\",\"run.oci.seccomp_bpf_data\":\"\"}",
          "run.oci.seccomp_bpf_data" },
        { "{\"org.opencontainers.images\":\"\"}", "org.opencontainers.images" },
        { "{\"dev.gvisor.flag.network\":\"host\"}", "dev.gvisor.flag.network" },
        { "{\"\":\"\"}", "" },
    };
    struct tci_arena *arena = tci_arena_new();
    struct tci_api_image image;
    (void)state;
    for (size_t i = 0; i < tci_array_size(cases); i++) {
        struct tci_api_answer answer = answer_of("{\"Id\":\"" ID_A "\",\"Annotations\":");
        tci_buf_printf(&answer.body, "%s}", cases[i].text);
        assert_int_equal(tci_api_read_image(&answer, arena, &image, NULL), 0);
        assert_int_equal(!image.annotation, !cases[i].found);
        if (image.annotation)
            assert_string_equal(image.annotation, cases[i].found);
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
        cmocka_unit_test(test_annotations_that_a_runtime_could_act_on_are_noted),
        cmocka_unit_test(test_the_version_comes_from_the_headers_of_a_ping),
        cmocka_unit_test(test_a_ping_without_a_version_is_no_engine),
        cmocka_unit_test(test_memory_ran_out_only_if_the_engine_says_so_in_so_many_words),
        cmocka_unit_test(test_only_whole_entries_of_a_list_count),
        cmocka_unit_test(test_this_process_is_not_gone_and_a_dead_one_is),
        cmocka_unit_test(test_an_owner_that_cannot_be_judged_is_left_alone),
    };
    return cmocka_run_group_tests_name("oci_api", tests, NULL, NULL);
}
