/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: tests of policies that are refused: keys that contradict each other, stand in the wrong
 * place or are not known, bad grants, and several errors at once.
 */
#include "model_support.h"

#include <stdlib.h>
#include "base/buf.h"
#include "policy/reader.h"

/* ---- what contradicts, stands in the wrong place, or is not known ----------------------------- */

static void test_conflicting_keys_are_refused(void **state)
{
    static const struct {
        const char *text;
        unsigned line, column;
    } cases[] = {
        { "[tool.t]\ncapabilities = []\nnetwork = \"none\"\n", 3, 11 },
        { "[tool.t]\nfilesystem = \"none\"\nallowed_paths = []\n", 2, 14 },
        { "[tool.t]\nallowed_hosts = []\ncommands = []\n", 3, 12 },
        { "[tool.t]\nallowed_commands = []\ncommands = []\n", 3, 12 },
        { "[defaults]\ncapabilities = []\nnetwork = \"none\"\n", 3, 11 },
        { "[tool.t]\nbackend = \"jail\"\ncontainer = {}\n", 3, 13 },
        { "[tool.t]\nbackend = \"wasm\"\nimage = \"a\"\n", 3, 9 },
        { "[tool.t]\nbackend = \"process\"\nrootfs = \"/x\"\n", 3, 10 },
        { "[tool.t]\nimage = \"a\"\n", 2, 9 }, /* the backend is jail by default */
        { "[tool.t]\nbackend = \"oci\"\nimage = \"a\"\nrootfs = \"/x\"\n", 3, 9 },
        { "[tool.t]\nbackend = \"oci\"\nfilesystem = { readable = [\"/x\"] }\n"
          "container = { mounts = [\"/x:/x:ro\"] }\n",
          4, 25 },
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(cases); i++)
        assert_one_error(cases[i].text, "TC-P019", cases[i].line, cases[i].column);
}

static void test_mounts_join_the_file_system(void **state)
{
    (void)state;
    assert_same_dump("[tool.t]\nbackend = \"oci\"\nfilesystem = { readable = [\"/r\"] }\n"
                     "container = { mounts = [\"/a:/b\", \"/c:/d:rw\", \"/e:ro\", { host = \"/f\", "
                     "read_only = false, optional = true }, { host = \"/g\" }] }\n",
                     "[tool.t]\nbackend = \"oci\"\nfilesystem = { readable = [\"/r\", \"/a:/b\", "
                     "\"/e\", \"/g\"], writable = [\"/c:/d\", { host = \"/f\", optional = true }] "
                     "}\n");
}

static void test_keys_out_of_place_are_refused(void **state)
{
    char text[text_max];
    unsigned refused = 0;
    (void)state;
    for (int k = 0; k < TCI_KEY_COUNT; k++) {
        enum tci_key key = (enum tci_key)k;
        if (!(tci_key_where(key) & TCI_IN_DEFAULTS)) {
            format_text(text, "[defaults]\n%s = 1\n", tci_key_name(key));
            assert_one_error(text, "TC-P011", 2, 1);
            refused++;
        }
        if (!(tci_key_where(key) & TCI_IN_GRANT)) {
            format_text(text, "[agent.a]\ngrants = [{ tool = \"t\", %s = 1 }]\n",
                        tci_key_name(key));
            assert_one_error(text, "TC-P011", 2, 25);
            refused++;
        }
    }
    assert_true(refused > TCI_KEY_COUNT / 2);
    assert_one_error("[agent.a]\ngrants = [{ tool = \"t\", isolation = \"jail\" }]\n", "TC-P011", 2,
                     25);
}

static void test_unknown_keys_suggest_the_nearest(void **state)
{
    static const struct {
        const char *text;
        unsigned line, column;
        const char *remedy;
    } cases[] = {
        { "verson = 1\n", 1, 1, "\"version\"" },
        { "[tools.t]\n", 1, 2, "\"tool\"" },
        { "[default]\n", 1, 2, "\"defaults\"" },
        { "[agents.a]\n", 1, 2, "\"agent\"" },
        { "[tool.t]\ntimout = \"1s\"\n", 2, 1, "\"timeout\"" },
        { "[tool.t]\n  netwrok = \"none\"\n", 2, 3, "\"network\"" },
        { "[tool.t]\nenv-pass = []\n", 2, 1, "\"env_pass\"" },
        { "[tool.t]\nISOLATION = \"jail\"\n", 2, 1, "\"isolation\"" },
        { "[defaults]\nmemroy = \"1MB\"\n", 2, 1, "\"memory\"" },
        { "[agent.a]\ngrant = []\n", 2, 1, "\"grants\"" },
        { "[agent.a]\ngrants = [{ tool = \"t\", expire = \"2027-01-01\" }]\n", 2, 25,
          "\"expires\"" },
        { "[agent.a]\ngrants = [{ tool = \"t\", maxcalls = 1 }]\n", 2, 25, "\"max_calls\"" },
        { "[tool.t]\nfilesystem = { writeable = [] }\n", 2, 16, "\"writable\"" },
        { "[tool.t]\nfilesystem = { readable = [{ hots = \"/x\" }] }\n", 2, 30, "\"host\"" },
        { "[tool.t]\nsyscalls = { profil = \"pure\" }\n", 2, 14, "\"profile\"" },
        { "[tool.t]\noutputs = { max_flie = \"1MB\" }\n", 2, 13, "\"max_file\"" },
        { "[tool.t]\nbackend = \"oci\"\ncontainer = { no_new_privs = true }\n", 3, 15,
          "no_new_privileges" },
        { "[tool.t]\nsandboxing_engine = 1\n", 2, 1, "known keys:" },
        { "[tool.t]\n\"\" = 1\n", 2, 1, "known keys:" },
        { "[tool.t]\n\"net\\u0000work\" = 1\n", 2, 1, "" },
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(cases); i++) {
        struct tc_error error;
        assert_one_error(cases[i].text, "TC-P010", cases[i].line, cases[i].column);
        error = load_error(cases[i].text);
        if (!strstr(error.remedy, cases[i].remedy))
            fail_msg("%s says: %s", cases[i].text, error.remedy);
    }
}

static void test_bad_words_suggest_the_nearest(void **state)
{
    (void)state;
    assert_non_null(strstr(load_error("[tool.t]\nbackend = \"OCI\"\n").remedy, "\"oci\"?"));
    assert_non_null(strstr(load_error("[tool.t]\nbackend = \"gviser\"\n").remedy, "\"gvisor\"?"));
    assert_non_null(strstr(load_error("[tool.t]\nnetwork = \"pubilc\"\n").remedy, "\"public\"?"));
    assert_non_null(strstr(load_error("[tool.t]\nsyscalls = \"strickt\"\n").remedy, "\"strict\"?"));
    assert_non_null(
        strstr(load_error("[tool.t]\ncapabilities = [\"fs-read\"]\n").remedy, "\"fs_read\"?"));
    /* Without a near one, all that is accepted is listed. */
    assert_non_null(strstr(load_error("[tool.t]\nbackend = \"qqqqqq\"\n").remedy, "\"microvm\""));
}

static void test_top_level_is_checked(void **state)
{
    (void)state;
    assert_one_error("version = 2\n", "TC-P007", 1, 11);
    assert_one_error("version = \"1\"\n", "TC-P012", 1, 11);
    assert_one_error("version = 1.0\n", "TC-P012", 1, 11);
    assert_one_error("tool = 1\n", "TC-P012", 1, 8);
    assert_one_error("tool = []\n", "TC-P012", 1, 8);
    assert_one_error("[[tool]]\nname = \"x\"\n", "TC-P012", 1, 1);
    assert_one_error("[tool]\nt = 1\n", "TC-P012", 2, 5);
    assert_one_error("defaults = \"none\"\n", "TC-P012", 1, 12);
    assert_one_error("agent = true\n", "TC-P012", 1, 9);
    assert_one_error("", "TC-P006", 1, 1);
    assert_one_error(" \n\t\r\n# only a comment\n", "TC-P006", 1, 1);
}

static void test_names_of_tools_and_agents(void **state)
{
    static const char *const good_names[] = { "a", "web_fetch", "A-1", "\"a.b\"", "_x", "9" };
    static const char *const bad_names[] = {
        "\"\"",   "\"a b\"",         "\"-x\"",    "\".x\"",       "\"a/b\"",
        "\"..\"", "\"caf\xc3\xa9\"", "\"a\\nb\"", "\"a\\u0000b\""
    };
    char text[text_max], longest[66];
    (void)state;
    for (size_t i = 0; i < tci_array_size(good_names); i++) {
        format_text(text, "[tool.%s]\n[agent.%s]\n", good_names[i], good_names[i]);
        tc_policy_free(load_text(text));
    }
    for (size_t i = 0; i < tci_array_size(bad_names); i++) {
        format_text(text, "[tool.%s]\n", bad_names[i]);
        assert_one_error(text, "TC-P016", 1, 7);
        format_text(text, "[agent.%s]\n", bad_names[i]);
        assert_one_error(text, "TC-P016", 1, 8);
    }
    memset(longest, 'n', 65);
    longest[65] = '\0';
    format_text(text, "[tool.%s]\n", longest);
    assert_one_error(text, "TC-P016", 1, 7);
    longest[64] = '\0';
    format_text(text, "[tool.%s]\n", longest);
    tc_policy_free(load_text(text));
}

static void test_misspelt_name_is_not_blamed_on_the_tool_before(void **state)
{
    struct broken broken = load_broken("[tool.good]\n[tool.\"bad name\"]\n", TCI_FORMAT_TOML);
    (void)state;
    assert_null(broken.findings->first->tool);
    tci_findings_free(broken.findings);
}

/* ---- grants ----------------------------------------------------------------------------------- */

static void test_bad_grants_are_refused(void **state)
{
    static const struct {
        const char *grants, *id;
        unsigned column;
    } cases[] = {
        { "\"t\"", "TC-P012", 10 },
        { "[1]", "TC-P012", 11 },
        { "[\"\"]", "TC-P013", 11 },
        { "[\"a\\u001b\"]", "TC-P017", 11 },
        { "[{}]", "TC-P013", 11 },
        { "[{ max_calls = 1 }]", "TC-P013", 11 },
        { "[{ tool = 1 }]", "TC-P012", 20 },
        { "[\"t\", \"t\"]", "TC-P018", 16 },
        { "[\"t\", { tool = \"t\", network = false }]", "TC-P018", 16 },
        { "[{ tool = \"t\", network = true }]", "TC-P013", 35 },
        { "[{ tool = \"t\", network = [\"x\"] }]", "TC-P020", 36 },
        { "[{ tool = \"t\", memory = 5 }]", "TC-P014", 34 },
        { "[{ tool = \"t\", filesystem = \"all\" }]", "TC-P012", 38 },
        { "[{ tool = \"t\", network_limits = { rate = \"0B\" } }]", "TC-P015", 51 },
        { "[{ tool = \"t\", network_limits = { x = 1 } }]", "TC-P010", 44 },
        { "[{ tool = \"t\", inspect = false }]", "TC-P012", 35 },
        { "[{ tool = \"t\", max_calls = -1 }]", "TC-P015", 37 },
        { "[{ tool = \"t\", max_calls = \"5\" }]", "TC-P012", 37 },
        { "[{ tool = \"t\", max_calls = \"unlimited\" }]", "TC-P012", 37 },
        { "[{ tool = \"t\", expires = 5 }]", "TC-P012", 35 },
        { "[{ tool = \"t\", expires = \"tomorrow\" }]", "TC-P026", 35 },
        { "[{ tool = \"t\", expires = \"2027-02-29\" }]", "TC-P026", 35 },
        { "[{ tool = \"t\", expires = \"2027-01-01T00:00:00\" }]", "TC-P026", 35 },
        { "[{ tool = \"t\", expires = 2027-01-01T00:00:00 }]", "TC-P026", 35 },
        { "[{ tool = \"t\", expires = 00:00:00 }]", "TC-P012", 35 },
        /* Moments whose year in UTC cannot be written with four digits from 0001. */
        { "[{ tool = \"t\", expires = 0000-01-01 }]", "TC-P026", 35 },
        { "[{ tool = \"t\", expires = 0001-01-01T00:00:00+00:01 }]", "TC-P026", 35 },
        { "[{ tool = \"t\", expires = \"0001-01-01T00:00:00+00:01\" }]", "TC-P026", 35 },
        { "[{ tool = \"t\", expires = 9999-12-31T23:59:59-00:01 }]", "TC-P026", 35 },
        { "[{ tool = \"t\", expires = \"9999-12-31T23:59:59-00:01\" }]", "TC-P026", 35 },
        { "[{ tool = \"t\", expires = \"9999-12-31T23:59:60Z\" }]", "TC-P026", 35 },
    };
    char text[text_max];
    (void)state;
    for (size_t i = 0; i < tci_array_size(cases); i++) {
        format_text(text, "[agent.a]\ngrants = %s\n", cases[i].grants);
        assert_one_error(text, cases[i].id, 2, cases[i].column);
    }
}

/* Its grants would be counted on from the broken one's, past the end of their array. */
static void test_agent_after_a_broken_one_starts_from_nothing(void **state)
{
    static const char text[] = "[agent.broken]\n"
                               "grants = [\"a\", 5]\n"
                               "[agent.sound]\n"
                               "grants = [{ tool = \"x\", pids = 1 }]\n"
                               "[tool.t]\npids = 0\n";
    struct broken broken = load_broken(text, TCI_FORMAT_TOML);
    (void)state;
    assert_finding(broken.findings->first, "TC-P012", 2, 16, text);
    assert_finding(broken.findings->first->next, "TC-P015", 6, 8, text);
    if (broken.findings->first->next->next)
        fail_msg("%s", broken.findings->first->next->next->message);
    tci_findings_free(broken.findings);
}

static void test_dump_keeps_all_of_a_grant(void **state)
{
    char *dump = dump_of("[agent.a]\ndescription = \"who\"\n"
                         "grants = [\"plain\", { tool = \"full\", pids = 3, timeout = \"1.5s\",\n"
                         "  network = false, filesystem = { readable = [\"/r\"] }, cpu = 0.5,\n"
                         "  network_limits = { rate = \"1000B\" }, inspect = \"strict\",\n"
                         "  memory = \"1000kB\", max_calls = 0, expires = 2027-01-01 }]\n");
    (void)state;
    assert_string_equal(dump,
                        "version = 1\n"
                        "\n"
                        "[agent.a]\n"
                        "description = \"who\"\n"
                        "grants = [\n"
                        "    \"plain\",\n"
                        "    { tool = \"full\", expires = \"2027-01-01T00:00:00Z\", max_calls = 0, "
                        "network = \"none\", network_limits = { rate = \"1kB\" }, "
                        "inspect = \"strict\", filesystem = { readable = [\"/r\"] }, "
                        "timeout = \"1500ms\", memory = \"1MB\", cpu = 0.5, pids = 3 },\n"
                        "]\n");
    free(dump);
}

static void test_expiry_may_be_a_date_of_the_file_or_a_text(void **state)
{
    static const struct {
        const char *text;
        int64_t moment;
    } cases[] = {
        { "2027-01-01", 1798761600 },
        { "\"2027-01-01\"", 1798761600 },
        { "2027-01-01T00:00:00Z", 1798761600 },
        { "\"2027-01-01T02:00:00+02:00\"", 1798761600 },
        { "2027-01-01 02:00:00.9+02:00",
          1798761600 }, /* fractions are dropped: sooner, not later */
        { "0001-01-01", -62135596800 },
        { "\"9999-12-31T23:59:59Z\"", 253402300799 },
    };
    char text[text_max];
    (void)state;
    for (size_t i = 0; i < tci_array_size(cases); i++) {
        struct tc_policy *policy;
        const struct tci_grant *grant;
        char *once, *twice;
        format_text(text, "[agent.a]\ngrants = [{ tool = \"t\", expires = %s }]\n", cases[i].text);
        policy = load_text(text);
        grant = tci_agent_grant(tci_policy_agent(policy, "a"), "t");
        assert_non_null(grant);
        assert_int_equal(grant->expires, cases[i].moment);
        assert_int_equal(grant->expires_pos.column, 35);
        once = dump_text(policy);
        twice = dump_of(once);
        assert_string_equal(once, twice);
        free(once);
        free(twice);
        tc_policy_free(policy);
    }
}

/* ---- several errors --------------------------------------------------------------------------- */

static void test_errors_of_all_tables_are_reported_in_file_order(void **state)
{
    static const char text[] = "version = 9\n"
                               "[defaults]\ntimeout = 5\n"
                               "[tool.a]\nmemory = \"x\"\nnetwork = [\"bad\", \"also bad\"]\n"
                               "[tool.fine]\n"
                               "[tool.b]\nunknown_thing = 1\ncommand = []\n"
                               "[agent.z]\ngrants = [1, 2]\n"
                               "[agent.y]\nwhatever = 1\n";
    static const struct {
        const char *id;
        unsigned line, column;
        const char *tool;
    } expected[] = {
        { "TC-P007", 1, 11, NULL }, { "TC-P014", 3, 11, NULL },  { "TC-P014", 5, 10, "a" },
        { "TC-P020", 6, 12, "a" },  { "TC-P020", 6, 19, "a" },   { "TC-P010", 9, 1, "b" },
        { "TC-P013", 10, 11, "b" }, { "TC-P012", 12, 11, NULL }, { "TC-P012", 12, 14, NULL },
        { "TC-P010", 14, 1, NULL },
    };
    struct broken broken = load_broken(text, TCI_FORMAT_TOML);
    const struct tci_finding *f = broken.findings->first;
    (void)state;
    for (size_t i = 0; i < tci_array_size(expected); i++, f = f->next) {
        assert_finding(f, expected[i].id, expected[i].line, expected[i].column, text);
        if (f->tool && expected[i].tool)
            assert_string_equal(f->tool, expected[i].tool);
        else
            assert_ptr_equal(f->tool, expected[i].tool);
    }
    assert_null(f);
    assert_int_equal(broken.findings->count[TCI_SEVERITY_ERROR], tci_array_size(expected));
    tci_findings_free(broken.findings);
}

static void test_more_than_a_hundred_errors_are_counted_but_not_kept(void **state)
{
    static const unsigned totals[] = { 99, 100, 101, 102, 5000 };
    (void)state;
    for (size_t i = 0; i < tci_array_size(totals); i++) {
        struct tci_buf buf = TCI_BUF_INIT(1 << 20);
        struct broken broken;
        unsigned kept = 0;
        char *text;
        tci_buf_string(&buf, "[tool.t]\n");
        for (unsigned j = 0; j < totals[i]; j++)
            tci_buf_printf(&buf, "nonsense_%u = 1\n", j);
        text = tci_buf_take(&buf, NULL);
        assert_non_null(text);
        broken = load_broken(text, TCI_FORMAT_TOML);
        for (const struct tci_finding *f = broken.findings->first; f; f = f->next, kept++)
            assert_int_equal(f->id, kept < 100 ? TCI_FINDING_UNKNOWN_KEY : TCI_FINDING_TOO_MANY);
        assert_int_equal(kept, totals[i] < 101 ? totals[i] : 101);
        assert_int_equal(broken.findings->count[TCI_SEVERITY_ERROR], totals[i]);
        tci_findings_free(broken.findings);
        free(text);
    }
}

static void test_syntax_error_is_told_from_a_policy_error(void **state)
{
    struct broken broken = load_broken("[tool.t\n", TCI_FORMAT_TOML);
    (void)state;
    assert_int_equal(broken.error.code, TC_ERROR_SYNTAX);
    assert_string_equal(broken.error.id, "TC-P005");
    assert_true(broken.error.line == 1 && broken.error.column > 1 && broken.error.remedy[0]);
    tci_findings_free(broken.findings);
    broken = load_broken("tool: {t: [}\n", TCI_FORMAT_YAML);
    assert_int_equal(broken.error.code, TC_ERROR_SYNTAX);
    tci_findings_free(broken.findings);
    assert_int_equal(load_error("[tool.t]\nx = 1\n").code, TC_ERROR_POLICY);
}

static void test_lists_have_a_maximum(void **state)
{
    static const struct {
        const char *before, *item, *after;
    } lists[] = {
        { "[tool.t]\nnetwork = [", "\"a%u.example:443\", ", "]\n" },
        { "[tool.t]\nallowed_hosts = [", "\"a%u.example\", ", "]\n" },
        { "[tool.t]\nallowed_paths = [", "\"/a%u\", ", "]\n" },
        { "[tool.t]\nfilesystem = { readable = [", "\"/a%u\", ", "] }\n" },
        { "[tool.t]\nfilesystem = { hidden = [", "\"/a%u\", ", "] }\n" },
    };
    (void)state;
    for (size_t i = 0; i < tci_array_size(lists) * 2; i++) {
        unsigned count = TCI_LIST_MAX + (unsigned)(i % 2);
        struct tci_buf buf = TCI_BUF_INIT(1 << 20);
        char *text;
        tci_buf_string(&buf, lists[i / 2].before);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        for (unsigned j = 0; j < count; j++)
            tci_buf_printf(&buf, lists[i / 2].item, j);
#pragma GCC diagnostic pop
        tci_buf_string(&buf, lists[i / 2].after);
        text = tci_buf_take(&buf, NULL);
        assert_non_null(text);
        if (i % 2)
            assert_string_equal(load_error(text).id, "TC-P015");
        else
            tc_policy_free(load_text(text));
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conflicting_keys_are_refused),
        cmocka_unit_test(test_mounts_join_the_file_system),
        cmocka_unit_test(test_keys_out_of_place_are_refused),
        cmocka_unit_test(test_unknown_keys_suggest_the_nearest),
        cmocka_unit_test(test_bad_words_suggest_the_nearest),
        cmocka_unit_test(test_top_level_is_checked),
        cmocka_unit_test(test_names_of_tools_and_agents),
        cmocka_unit_test(test_misspelt_name_is_not_blamed_on_the_tool_before),
        cmocka_unit_test(test_bad_grants_are_refused),
        cmocka_unit_test(test_agent_after_a_broken_one_starts_from_nothing),
        cmocka_unit_test(test_dump_keeps_all_of_a_grant),
        cmocka_unit_test(test_expiry_may_be_a_date_of_the_file_or_a_text),
        cmocka_unit_test(test_errors_of_all_tables_are_reported_in_file_order),
        cmocka_unit_test(test_more_than_a_hundred_errors_are_counted_but_not_kept),
        cmocka_unit_test(test_syntax_error_is_told_from_a_policy_error),
        cmocka_unit_test(test_lists_have_a_maximum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
