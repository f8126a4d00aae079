/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: tests of policy/yaml.h: bounds on depth, size and time, and behaviour without memory. */
#include "yaml_support.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "alloc_support.h"
#include "base/buf.h"
#include "policy/yaml.h"

/* ---- bounds ----------------------------------------------------------------------------- */

/* "a: " and then `depth` brackets around a number. */
static struct document nested(unsigned depth)
{
    char text[512];
    struct tci_buf buf = TCI_BUF_INIT(sizeof text);
    tci_buf_string(&buf, "a: ");
    for (unsigned i = 0; i < depth; i++)
        tci_buf_char(&buf, '[');
    tci_buf_char(&buf, '1');
    for (unsigned i = 0; i < depth; i++)
        tci_buf_char(&buf, ']');
    struct document d = parse_bytes(buf.data, buf.length);
    tci_buf_free(&buf);
    return d;
}

static void test_depth_has_a_limit_as_in_toml(void **state)
{
    (void)state;
    struct document d = nested(TCI_YAML_DEPTH_MAX - 1);
    assert_int_equal(d.result, 0);
    tci_arena_free(d.arena);
    d = nested(TCI_YAML_DEPTH_MAX);
    assert_int_equal(d.result, -1);
    assert_int_equal(d.error.code, TC_ERROR_TOO_LARGE);
    assert_int_equal(d.error.line, 1);
    assert_int_equal(d.error.column, 4 + TCI_YAML_DEPTH_MAX);
    assert_non_null(strstr(d.error.message, "more than 64 levels"));
    tci_arena_free(d.arena);
}

static void test_size_has_a_limit(void **state)
{
    char *text = malloc(TCI_YAML_SIZE_MAX + 1);
    (void)state;
    assert_non_null(text);
    memset(text, '#', TCI_YAML_SIZE_MAX + 1);
    struct document d = parse_bytes(text, TCI_YAML_SIZE_MAX);
    assert_int_equal(d.result, 0);
    tci_arena_free(d.arena);
    d = parse_bytes(text, TCI_YAML_SIZE_MAX + 1);
    assert_int_equal(d.result, -1);
    assert_int_equal(d.error.code, TC_ERROR_TOO_LARGE);
    assert_non_null(strstr(d.error.message, "1048577 bytes"));
    tci_arena_free(d.arena);
    free(text);
}

/* A text of this size: the prefix, and then the unit again and again; %u in a unit counts. */
static void fill(struct tci_buf *buf, const char *prefix, const char *unit, size_t size)
{
    const char *number = strstr(unit, "%u");
    tci_buf_string(buf, prefix);
    for (unsigned i = 0; buf->length + 32 < size; i++) {
        if (!number) {
            tci_buf_string(buf, unit);
            continue;
        }
        tci_buf_append(buf, unit, (size_t)(number - unit));
        tci_buf_printf(buf, "%u", i);
        tci_buf_string(buf, number + 2);
    }
}

static double reading_time(const char *prefix, const char *unit, size_t size)
{
    struct tci_buf buf = TCI_BUF_INIT(TCI_YAML_SIZE_MAX);
    fill(&buf, prefix, unit, size);
    clock_t start = clock();
    tci_arena_free(parse_bytes(buf.data, buf.length).arena);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    tci_buf_free(&buf);
    return seconds;
}

#define BRACKETS_60 "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["

/* libyaml alone takes minutes for the first few of them. */
static void test_hostile_texts_take_time_in_proportion_to_their_size(void **state)
{
    static const char *const shapes[][2] = {
        { "a: ", "[" },
        { "a: ", "[\n" },
        { "a: ", "{a: " },
        { "a: ", "[{a: " },
        { "", "%TAG !a%u! b\n" },
        { "a: 1\n...\n", "%TAG !a%u! b\n" },
        { "a: 1\n", "%TAG !a%u! b\n" },
        { "a: ", BRACKETS_60 },
        { "a: " BRACKETS_60, "a," },
        { "a: " BRACKETS_60, "a,\n" },
        { "a: " BRACKETS_60, "[]," },
        { "a: [", "a," },
        { "a: [", "a: b, " },
        { "a: {", "k%u: v, " },
        { "", "k%u: v\n" },
        { "", "? k%u\n: v\n" },
        { "a:\n", "- a\n" },
        { "a:\n", "- " },
        { "a:\n  ", "? " },
        { "a:\n  ", ": " },
        { "a: ", "x" },
        { "a: ", "x\n " },
        { "a: \"", "\n" },
        { "a: \"", "\\u00e9" },
        { "a: |\n", "   \n" },
        { "a: >\n", "  x\n\n" },
        { "a: ", "1" },
        { "a: 1.", "1" },
        { "", "# x\n" },
        { "a:", " " },
        { "", "---\n" },
        { "", "...\n" },
        { "a: ", "&a " },
        { "a: !", "%41" },
    };
#ifdef SANITIZED
    const size_t small = 40000; /* each node is a malloc of its own there */
#else
    const size_t small = 120000;
#endif
    (void)state;
    for (size_t i = 0; i < tci_array_size(shapes); i++) {
        double before = reading_time(shapes[i][0], shapes[i][1], small);
        double after = reading_time(shapes[i][0], shapes[i][1], 4 * small);
        /* Linear is 4 and quadratic 16; caches and a busy machine ask for slack. */
        if (after > 10 * before + 0.25)
            fail_msg("%s%s...: %.3f s, then %.3f s for four times as much", shapes[i][0],
                     shapes[i][1], before, after);
    }
}

#ifdef SANITIZED
static void test_no_memory_is_reported_at_every_allocation(void **state)
{
    (void)state;
    skip(); /* malloc belongs to the sanitizer */
}
#else
/* One of everything, and texts of 70 kB: those get chunks of their own in the arena, so that each
 * of its callers meets a failure. They come last: what is before them is read again and again. */
static void fill_chunks(struct tci_buf *buf)
{
    static char filler[70001];
    memset(filler, 'x', sizeof filler - 1);
    tci_buf_string(buf, "%YAML 1.2\n---\na: [1, 1.5, true, 2027-01-01, 'b', \"\\n\"]\n");
    tci_buf_string(buf, "deep: [[[[[[[[[[[[[[[[[[{a: {b: {c: d}}}]]]]]]]]]]]]]]]]]]\nmany:\n");
    for (unsigned i = 0; i < 100; i++)
        tci_buf_printf(buf, "  k%u: v\n", i);
    tci_buf_string(buf, "list: [");
    for (unsigned i = 0; i < 100; i++)
        tci_buf_string(buf, "a,");
    tci_buf_printf(buf, "]\n? \"%s\"\n: %s\n...\n", filler, filler);
}

/* Not so under valgrind, which puts its own functions before ours. */
static bool allocations_are_counted(void)
{
    begin_round(1);
    struct tci_arena *arena = tci_arena_new();
    begin_round(0);
    free(arena);
    return !arena;
}

static int parse_counted(const struct tci_buf *text, long successes, struct document *d)
{
    long before = allocations.live;
    *d = (struct document){ .arena = tci_arena_new() };
    begin_round(successes + 1);
    allocations.failing_on = true;
    d->result = tci_yaml_parse(d->arena, text->data, text->length, &d->root, &d->error);
    begin_round(0);
    tci_arena_free(d->arena);
    assert_int_equal(allocations.live, before);
    return d->result;
}

static void test_no_memory_is_reported_at_every_allocation(void **state)
{
    struct tci_buf text = TCI_BUF_INIT(TCI_YAML_SIZE_MAX);
    struct document d;
    long successes = 0;
    (void)state;
    if (!allocations_are_counted())
        skip();
    fill_chunks(&text);
    for (; parse_counted(&text, successes, &d) < 0 && successes < 100000; successes++) {
        if (d.error.code != TC_ERROR_NO_MEMORY)
            fail_msg("%ld: %u:%u: %s", successes, d.error.line, d.error.column, d.error.message);
        assert_null(d.root);
    }
    assert_int_equal(d.result, 0);
    if (successes < 300)
        fail_msg("only %ld allocations were tried", successes);
    tci_buf_free(&text);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_depth_has_a_limit_as_in_toml),
        cmocka_unit_test(test_size_has_a_limit),
        cmocka_unit_test(test_hostile_texts_take_time_in_proportion_to_their_size),
        cmocka_unit_test(test_no_memory_is_reported_at_every_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
