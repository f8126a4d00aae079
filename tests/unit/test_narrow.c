/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what a grant leaves of a tool. Whatever is made must agree with what the policy decides: for
 * a list of paths and destinations, a narrowed tool may never allow what decide.c denies.
 */
#include "call_support.h"

#include "policy/cage_paths.h"
#include "policy/limits.h"

static struct tci_arena *arena;

static int make_arena(void **state)
{
    (void)state;
    arena = tci_arena_new();
    return arena ? 0 : -1;
}

static int free_arena(void **state)
{
    (void)state;
    tci_arena_free(arena);
    return 0;
}

/* A policy with one tool "t" and one agent "a" that has a grant for it. */
static struct tc_policy *make_policy(const char *tool, const char *grant)
{
    char text[2000];
    (void)snprintf(text, sizeof text,
                   "[tool.t]\n%s\n[agent.a]\ngrants = [{ tool = \"t\", %s }]\n[tool.narrowed]\n",
                   tool, grant);
    return load_text(text);
}

static int narrow(const struct tc_policy *policy, struct tci_tool *ret, struct tc_error *error)
{
    const struct tci_tool *tool = tci_policy_tool(policy, "t");
    const struct tci_grant *grant = tci_agent_grant(tci_policy_agent(policy, "a"), "t");
    const struct tci_grants one = { .items = { grant }, .count = 1 };
    struct tci_limits limits;
    assert_int_equal(tci_narrow_limits(tool, &one, NULL, &(struct tc_limits){ 0 }, &limits), -1);
    return tci_narrow_tool(arena, tool, grant, &limits, ret, error);
}

/* ---- paths ------------------------------------------------------------------------------------ */

static const char *const paths[] = {
    "/",     "/a",         "/a/b",   "/a/b/c",   "/a/x",   "/d",         "/d/e",
    "/etc",  "/etc/hosts", "/tmp",   "/tmp/x",   "/usr",   "/usr/share", "/usr/share/doc",
    "/proc", "/w",         "/w/sub", "/w/sub/f", "/other",
};

/* The narrowed tool takes the place of the policy's "narrowed", so that decide.c judges it. */
static void compare_paths(struct tc_policy *policy, const struct tci_tool *narrowed, bool exactly)
{
    struct tci_tool *place = (struct tci_tool *)(uintptr_t)tci_policy_tool(policy, "narrowed");
    place->settings = narrowed->settings;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        for (int access = TC_ACCESS_READ; access <= TC_ACCESS_WRITE; access++) {
            struct tc_decision decided, made;
            tc_decide_path(policy, "a", "t", paths[i], (enum tc_access)access, &decided);
            tc_decide_path(policy, NULL, "narrowed", paths[i], (enum tc_access)access, &made);
            if (made.allowed > decided.allowed || (exactly && made.allowed != decided.allowed))
                fail_msg("%s of %s: decided %d, made %d (%s)", access ? "writing" : "reading",
                         paths[i], decided.allowed, made.allowed, made.reason);
        }
    }
}

static void test_grants_of_paths_that_can_be_kept(void **state)
{
    static const struct {
        const char *tool, *grant;
    } cases[] = {
        { "filesystem = { readable = [\"/a\"], writable = [\"/w\"] }", "filesystem = \"none\"" },
        { "filesystem = { readable = [\"/a\"], writable = [\"/w\"] }",
          "filesystem = { readable = [\"/a\", \"/w\"] }" },
        { "filesystem = { writable = [\"/a\", \"/w\"] }",
          "filesystem = { writable = [\"/w\"], readable = [\"/a\"] }" },
        { "filesystem = { writable = [\"/a\", \"/a/b\"] }",
          "filesystem = { writable = [\"/a\"], readable = [\"/a/b\"] }" },
        { "filesystem = { writable = [\"/a\", \"/a/b\"] }", "filesystem = { readable = [\"/\"] }" },
        { "filesystem = { writable = [\"/a\"] }",
          "filesystem = { writable = [\"/a\"], hidden = [\"/a/b\"] }" },
        { "filesystem = { writable = [\"/a\"], hidden = [\"/a/b\"] }",
          "filesystem = { writable = [\"/a\"] }" },
        { "filesystem = { writable = [\"/a\"], hidden = [\"/etc\"] }",
          "filesystem = { readable = [\"/a\", \"/etc\"] }" },
        { "filesystem = { writable = [\"/a\"] }",
          "filesystem = { hidden = [\"/etc\", \"/usr\"] }" },
        { "filesystem = { writable = [\"/a\"] }", "filesystem = { readable = [\"/usr\"], "
                                                  "hidden = [\"/usr/share\"], scratch = \"0B\" }" },
        { "filesystem = { readable = [\"/\"] }", "filesystem = { readable = [\"/\"] }" },
        { "filesystem = { readable = [{ host = \"/h\", cage = \"/a\" }] }",
          "filesystem = { readable = [\"/a\"] }" },
        { "filesystem = { writable = [\"/usr/share\"] }", "filesystem = \"none\"" },
        { "backend = \"jail\"\nrootfs = \"/r\"\nfilesystem = { writable = [\"/a\"] }",
          "filesystem = \"none\"" },
        { "filesystem = { writable = [\"/a\"], readable = [\"/a/b\"] }",
          "filesystem = { writable = [\"/a\", \"/other\"] }" },
        { "filesystem = \"none\"", "filesystem = { writable = [\"/a\", \"/tmp\"] }" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tc_policy *policy = make_policy(cases[i].tool, cases[i].grant);
        struct tci_tool narrowed;
        struct tc_error error = { 0 };
        if (narrow(policy, &narrowed, &error) < 0)
            fail_msg("%s / %s: %s", cases[i].tool, cases[i].grant, error.message);
        compare_paths(policy, &narrowed, true);
        /* No source but the tool's own. */
        for (size_t j = 0; j < narrowed.settings.filesystem.count; j++) {
            const struct tci_path_rule *rule = &narrowed.settings.filesystem.rules[j];
            const struct tci_filesystem *own = &tci_policy_tool(policy, "t")->settings.filesystem;
            bool found = !rule->host;
            for (size_t k = 0; k < own->count; k++)
                found |= rule->host && own->rules[k].host &&
                         strcmp(own->rules[k].host, rule->host) == 0 &&
                         strcmp(own->rules[k].cage, rule->cage) == 0;
            assert_true(found);
        }
        tc_policy_free(policy);
    }
}

static void test_grants_of_a_part_of_a_source_are_refused(void **state)
{
    static const struct {
        const char *tool, *grant;
    } cases[] = {
        { "filesystem = { writable = [\"/w\"] }", "filesystem = { writable = [\"/w/sub\"] }" },
        { "filesystem = { writable = [\"/w\"] }",
          "filesystem = { writable = [\"/w\"], readable = [\"/w/sub\"] }" },
        { "filesystem = { writable = [\"/w\"] }",
          "filesystem = { readable = [\"/w\"], writable = [\"/w/sub\"] }" },
        { "filesystem = { writable = [\"/w\"] }",
          "filesystem = { readable = [\"/w\", \"/w/sub/f\"], hidden = [\"/w/sub\"] }" },
        { "filesystem = { writable = [\"/w\"], cwd = \"/w\" }",
          "filesystem = { readable = [\"/w\"], cwd = \"/other\" }" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tc_policy *policy = make_policy(cases[i].tool, cases[i].grant);
        struct tci_tool narrowed;
        struct tc_error error = { 0 };
        if (narrow(policy, &narrowed, &error) == 0)
            fail_msg("%s / %s was made", cases[i].tool, cases[i].grant);
        assert_true(error.message[0] && error.remedy[0]);
        tc_policy_free(policy);
    }
}

static void test_private_scratch_is_not_replaced_by_the_hosts(void **state)
{
    struct tc_policy *policy = make_policy("filesystem = { readable = [\"/\"] }",
                                           "filesystem = { readable = [\"/\"], scratch = \"0B\" }");
    struct tci_tool narrowed;
    struct tc_decision made;
    struct tci_tool *place = (struct tci_tool *)(uintptr_t)tci_policy_tool(policy, "narrowed");
    (void)state;
    assert_int_equal(narrow(policy, &narrowed, NULL), 0);
    assert_int_equal(narrowed.settings.filesystem.scratch, 0);
    place->settings = narrowed.settings;
    tc_decide_path(policy, NULL, "narrowed", "/tmp/x", TC_ACCESS_READ, &made);
    assert_int_equal(made.allowed, 0);
    tc_policy_free(policy);
}

static void test_scratch_and_cwd_under_a_grant(void **state)
{
    struct tc_policy *policy;
    struct tci_tool narrowed;
    (void)state;
    policy = make_policy(
        "filesystem = { readable = [\"/a\", \"/d\"], cwd = \"/a\", scratch = \"5MB\" }",
        "filesystem = { readable = [\"/d\"], scratch = \"2MB\" }");
    assert_int_equal(narrow(policy, &narrowed, NULL), 0);
    assert_int_equal(narrowed.settings.filesystem.scratch, 2000000);
    assert_null(narrowed.settings.filesystem.cwd); /* it cannot be seen any more */
    tc_policy_free(policy);
    policy = make_policy(
        "filesystem = { readable = [\"/a\", \"/d\"], cwd = \"/a\", scratch = \"5MB\" }",
        "filesystem = { readable = [\"/d\"], scratch = \"9MB\", cwd = \"/d\" }");
    assert_int_equal(narrow(policy, &narrowed, NULL), 0);
    assert_int_equal(narrowed.settings.filesystem.scratch, 5000000);
    assert_string_equal(narrowed.settings.filesystem.cwd, "/d");
    tc_policy_free(policy);
}

/* ---- network ---------------------------------------------------------------------------------- */

static void test_networks_of_tool_and_grant_are_both_kept(void **state)
{
    static const char *const networks[] = {
        "\"none\"",
        "\"public\"",
        "\"host\"",
        "[\"a.example:443\"]",
        "[\"*.example:443\", \"10.0.0.0/8:*\"]",
        "[\"*.example:1-1000\", \"deny:b.example:*\", \"10.1.0.0/16:80\"]",
        "[\"a.example:440-450\", \"192.0.2.1:80\", \"deny:10.1.2.3:80\"]",
        "[\"a.b.example:443\", \"[2001:db8::]/32:443\", \"8.8.8.8:53\"]",
        "[\"other.test:443\"]",
    };
    static const struct {
        const char *host;
        unsigned port;
    } destinations[] = {
        { "a.example", 443 }, { "a.example", 80 },   { "a.b.example", 443 },   { "b.example", 443 },
        { "example", 443 },   { "10.1.2.3", 80 },    { "10.1.2.4", 80 },       { "10.9.9.9", 80 },
        { "192.0.2.1", 80 },  { "8.8.8.8", 53 },     { "[2001:db8::1]", 443 }, { "localhost", 80 },
        { "127.0.0.1", 80 },  { "other.test", 443 },
    };
    enum { count = sizeof networks / sizeof *networks };
    unsigned allowed = 0;
    (void)state;
    for (size_t i = 0; i < count * count; i++) {
        char tool[300], grant[300];
        struct tc_policy *policy;
        struct tci_tool narrowed, *place;
        (void)snprintf(tool, sizeof tool, "allow_host_network = true\nnetwork = %s",
                       networks[i / count]);
        (void)snprintf(grant, sizeof grant, "network = %s", networks[i % count]);
        policy = make_policy(tool, grant);
        assert_int_equal(narrow(policy, &narrowed, NULL), 0);
        place = (struct tci_tool *)(uintptr_t)tci_policy_tool(policy, "narrowed");
        place->settings = narrowed.settings;
        for (size_t d = 0; d < sizeof destinations / sizeof *destinations; d++) {
            struct tc_decision decided, made;
            tc_decide_network(policy, "a", "t", destinations[d].host, destinations[d].port,
                              &decided);
            tc_decide_network(policy, NULL, "narrowed", destinations[d].host, destinations[d].port,
                              &made);
            if (made.allowed > decided.allowed)
                fail_msg("%s under %s: %s", tool, grant, made.reason);
            /* The narrower answer is only for "public", which no list of ranges can say. */
            if (made.allowed != decided.allowed &&
                narrowed.settings.network.mode == TCI_NETWORK_RULES && !strstr(tool, "public") &&
                !strstr(grant, "public"))
                fail_msg("%s under %s: lost %s", tool, grant, destinations[d].host);
            allowed += made.allowed ? 1U : 0;
        }
        tc_policy_free(policy);
    }
    assert_true(allowed > 50);
}

static void test_grant_without_network_takes_it_away(void **state)
{
    struct tc_policy *policy = make_policy("network = [\"a.example:443\"]", "network = false");
    struct tci_tool narrowed;
    (void)state;
    assert_int_equal(narrow(policy, &narrowed, NULL), 0);
    assert_int_equal(narrowed.settings.network.mode, TCI_NETWORK_NONE);
    assert_true(tci_tool_clauses(&narrowed) & tci_clause_bit(TCI_CLAUSE_NETWORK_NONE));
    tc_policy_free(policy);
}

static void test_grant_narrows_what_connections_may_use(void **state)
{
    static const struct {
        const char *tool, *grant;
        struct tci_network_limits expected;
        bool strict;
    } cases[] = {
        { "", "network_limits = {}", { 256, 0, 0, 0 }, false },
        { "", "network_limits = { connections = 10, rate = \"1kB\" }", { 10, 0, 0, 1000 }, false },
        { "", "network_limits = { connections = 300 }", { 256, 0, 0, 0 }, false },
        { "network_limits = { connections = \"unlimited\", bytes_in = \"5B\", rate = \"7B\" }",
          "network_limits = { bytes_in = \"6B\", rate = \"6B\", bytes_out = \"unlimited\" }",
          { 0, 5, 0, 6 },
          false },
        { "network_limits = { bytes_out = \"5B\" }",
          "network_limits = { bytes_out = \"unlimited\", connections = \"unlimited\" }",
          { 256, 0, 5, 0 },
          false },
        { "", "inspect = \"strict\"", { 256, 0, 0, 0 }, true },
        { "inspect = \"strict\"", "inspect = \"names\"", { 256, 0, 0, 0 }, true },
        { "inspect = \"strict\"", "network_limits = {}", { 256, 0, 0, 0 }, true },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tc_policy *policy = make_policy(cases[i].tool, cases[i].grant);
        const struct tci_grant *grant = tci_agent_grant(tci_policy_agent(policy, "a"), "t");
        struct tci_tool narrowed;
        assert_int_equal(narrow(policy, &narrowed, NULL), 0);
        assert_memory_equal(&narrowed.settings.network_limits, &cases[i].expected,
                            sizeof cases[i].expected);
        assert_int_equal(narrowed.settings.inspect_strict, cases[i].strict);
        assert_true(tci_grant_narrows(grant)); /* so it has a plan of its own */
        tc_policy_free(policy);
    }
}

/* What is cut out of "public" stays without this machine, also if a rule names its address. */
static void test_rules_cut_out_of_public_say_so(void **state)
{
    static const struct {
        const char *tool, *grant;
        bool only_public;
    } cases[] = {
        { "\"public\"", "[\"8.8.8.8:53\"]", true },
        { "[\"8.8.8.8:53\"]", "\"public\"", true },
        { "[\"8.8.8.8:53\"]", "[\"8.8.8.0/24:53\"]", false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char tool[100], grant[100];
        struct tc_policy *policy;
        struct tci_tool narrowed;
        (void)snprintf(tool, sizeof tool, "network = %s", cases[i].tool);
        (void)snprintf(grant, sizeof grant, "network = %s", cases[i].grant);
        policy = make_policy(tool, grant);
        assert_int_equal(narrow(policy, &narrowed, NULL), 0);
        assert_int_equal(narrowed.settings.network.mode, TCI_NETWORK_RULES);
        assert_int_equal(narrowed.settings.network.only_public, cases[i].only_public);
        tc_policy_free(policy);
    }
}

/* ---- a call inside a call --------------------------------------------------------------------- */

/* What is at a path of the cage: a path of the host, something of every cage, or "" for nothing. */
static bool source_of(const struct tci_settings *s, const char *path, char ret[200])
{
    const struct tci_path_rule *rule = tci_path_rule_find(&s->filesystem, path);
    const struct tci_cage_path *own = tci_cage_path_find(s, path);
    ret[0] = '\0';
    if (rule &&
        (!own || rule->access == TCI_ACCESS_HIDDEN || strlen(own->path) <= strlen(rule->cage))) {
        size_t host = rule->host ? strlen(rule->host) : 0, cage = strlen(rule->cage);
        if (rule->access != TCI_ACCESS_HIDDEN)
            (void)snprintf(ret, 200, "%.*s%s", host > 1 ? (int)host : 0, rule->host,
                           path + (cage > 1 ? cage : 0));
        return rule->access == TCI_ACCESS_WRITABLE;
    }
    if (own && own->access != TCI_ACCESS_HIDDEN)
        (void)snprintf(ret, 200, "own %s %s", own->path, own->key);
    return own && own->access == TCI_ACCESS_WRITABLE;
}

static struct tc_policy *make_pair(const char *inner, const char *outer)
{
    char text[2000];
    (void)snprintf(text, sizeof text, "[tool.inner]\n%s\n[tool.outer]\n%s\n", inner, outer);
    return load_text(text);
}

static int nest(const struct tc_policy *policy, struct tci_tool *ret, struct tc_error *error)
{
    return tci_narrow_nested(arena, tci_policy_tool(policy, "inner"),
                             &tci_policy_tool(policy, "outer")->settings, ret, error);
}

static const char *const nested_systems[] = {
    "filesystem = \"none\"",
    "filesystem = { readable = [\"/a\"] }",
    "filesystem = { writable = [\"/a\"] }",
    "filesystem = { readable = [\"/d:/a\"] }",
    "filesystem = { writable = [\"/a\"], readable = [\"/a/b\"] }",
    "filesystem = { writable = [\"/a\"], hidden = [\"/a/b\"] }",
    "filesystem = { readable = [\"/a\", \"/other:/a/b\"] }",
    "filesystem = { readable = [\"/a/b\"] }",
    "filesystem = { readable = [\"/\"] }",
    "filesystem = { readable = [\"/\"], scratch = \"0B\" }",
    "filesystem = { writable = [\"/\"], hidden = [\"/etc\"] }\nsystem = false",
    "filesystem = { readable = [\"/w:/usr/share\"] }",
    "filesystem = { readable = [\"/usr/share\"], hidden = [\"/usr/share/doc\"] }",
    "filesystem = { writable = [\"/w:/tmp\"] }",
    "filesystem = { writable = [\"/tmp/x\"], readable = [\"/w\"] }",
    "filesystem = \"none\"\nsystem = false",
};

static void check_nested_paths(const char *inner, const char *outer, size_t *refused)
{
    struct tc_policy *policy = make_pair(inner, outer);
    const struct tci_settings *own = &tci_policy_tool(policy, "inner")->settings;
    const struct tci_settings *around = &tci_policy_tool(policy, "outer")->settings;
    struct tci_tool narrowed;
    struct tc_error error = { 0 };
    int r = nest(policy, &narrowed, &error);

    assert_true(r == 0 || (r == 1 && *error.remedy));
    *refused += r == 1;
    for (size_t i = 0; r == 0 && i < sizeof paths / sizeof *paths; i++) {
        char has[200], tool_has[200], outer_has[200];
        bool writes = source_of(&narrowed.settings, paths[i], has);
        bool tool_writes = source_of(own, paths[i], tool_has);
        bool outer_writes = source_of(around, paths[i], outer_has);
        bool both = strcmp(tool_has, outer_has) == 0;
        if (*has && (strcmp(has, tool_has) != 0 || !both))
            fail_msg("%s in %s: %s shows \"%s\", not \"%s\" or \"%s\"", inner, outer, paths[i], has,
                     tool_has, outer_has);
        if (writes && *has && (!tool_writes || !outer_writes))
            fail_msg("%s in %s: %s is writable", inner, outer, paths[i]);
        /* What both have in the same way is not lost. */
        if (both && *tool_has && !*has && inner == outer)
            fail_msg("%s: %s is lost", inner, paths[i]);
    }
    tc_policy_free(policy);
}

static void test_nested_call_sees_no_file_that_the_other_does_not(void **state)
{
    size_t count = sizeof nested_systems / sizeof *nested_systems, refused = 0;
    (void)state;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++)
            check_nested_paths(nested_systems[i], nested_systems[j], &refused);
    assert_in_range(refused, 1, count * count / 2);
}

static void test_nested_tool_that_cannot_be_narrowed_is_refused(void **state)
{
    static const struct {
        const char *inner, *outer, *key;
    } cases[] = {
        { "backend = \"process\"", "", "\"backend\"" },
        { "rootfs = \"/x\"", "", "\"rootfs\"" },
        { "backend = \"oci\"", "", "\"image\"" },
        { "", "commands = [\"ls\"]", "\"commands\"" },
        { "commands = [\"ls\", \"sh\"]", "commands = [\"ls\"]", "\"commands\"" },
        { "commands = [\"ls\"]\ncommand = [\"sh\"]", "commands = [\"ls\"]", "\"commands\"" },
        { "syscalls = { allow = [\"ptrace\"] }", "", "\"syscalls\"" },
        { "filesystem = { readable = [\"/b:/workspace\"] }",
          "filesystem = { readable = [\"/a:/workspace\"] }", "\"filesystem\"" },
        { "filesystem = { writable = [\"/a/b\"] }", "filesystem = { writable = [\"/a\"] }",
          "\"filesystem\"" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tc_policy *policy = make_pair(cases[i].inner, cases[i].outer);
        struct tci_tool narrowed;
        struct tc_error error = { 0 };
        int r = nest(policy, &narrowed, &error);
        if (r != 1 || !strstr(error.message, cases[i].key))
            fail_msg("%s in %s: %d %s", cases[i].inner, cases[i].outer, r, error.message);
        assert_true(error.remedy[0]);
        tc_policy_free(policy);
    }
}

static void test_nested_tool_is_cut_down_to_what_the_other_has(void **state)
{
    struct tc_policy *policy = make_pair("network = [\"a.example:443\", \"b.example:443\"]\n"
                                         "env_pass = [\"SECRET\", \"LC_ALL\"]\n"
                                         "syscalls = { deny = [\"flock\"] }\ncommands = [\"ls\"]\n"
                                         "command = [\"ls\"]\n",
                                         "network = [\"b.example:443\"]\ninspect = \"strict\"\n"
                                         "network_limits = { connections = 2 }\n"
                                         "env_pass = [\"LC_ALL\"]\nsystem = false\n"
                                         "syscalls = { profile = \"strict\", deny = [\"chmod\"] }\n"
                                         "commands = [\"ls\", \"sh\"]\n");
    struct tci_tool narrowed;
    const struct tci_settings *s = &narrowed.settings;
    struct tc_error error = { 0 };
    char text[TCI_RULE_TEXT_MAX];
    (void)state;

    if (nest(policy, &narrowed, &error) != 0)
        fail_msg("%s", error.message);
    assert_int_equal(s->network.count, 1);
    assert_string_equal(tci_netrule_format(&s->network.rules[0].rule, text), "b.example:443");
    assert_true(s->inspect_strict);
    assert_int_equal(s->network_limits.connections, 2);
    assert_false(s->system);
    assert_int_equal(s->env_pass.count, 1);
    assert_string_equal(s->env_pass.items[0].text, "LC_ALL");
    assert_int_equal(s->syscalls.profile, TCI_SYSCALLS_STRICT);
    assert_int_equal(s->syscalls.deny.count, 2);
    tc_policy_free(policy);

    policy = make_pair("network = \"public\"", "network = \"none\"");
    assert_int_equal(nest(policy, &narrowed, &error), 0);
    assert_int_equal(s->network.mode, TCI_NETWORK_NONE);
    tc_policy_free(policy);
}

/* A second grant must not give this machine's own address back, which the first took away. */
static void test_rules_cut_out_of_public_stay_so_under_a_second_grant(void **state)
{
    struct tc_policy *policy = make_policy("network = \"public\"", "network = [\"8.8.8.8:53\"]");
    const struct tci_grant *grant = tci_agent_grant(tci_policy_agent(policy, "a"), "t");
    struct tci_tool once, twice;
    struct tci_limits limits = { .values = { 0 } };
    (void)state;

    assert_int_equal(narrow(policy, &once, NULL), 0);
    assert_int_equal(tci_narrow_tool(arena, &once, grant, &limits, &twice, NULL), 0);
    assert_int_equal(twice.settings.network.mode, TCI_NETWORK_RULES);
    assert_true(twice.settings.network.only_public);
    tc_policy_free(policy);
}

/* ---- the whole way ---------------------------------------------------------------------------- */

static void test_agents_share_plans_unless_their_grants_differ(void **state)
{
    struct fixture fixture;
    const char *agents[] = { NULL, "one", "two", "three", "three" };
    int made[5];
    (void)state;
    open_fixture(
        &fixture,
        "[tool.t]\nnetwork = [\"a.example:1\"]\n[tool.n]\nfilesystem = { writable = "
        "[\"/w\"] }\n[agent.one]\ngrants = [\"n\"]\n[agent.two]\ngrants = [{ tool = \"n\", "
        "max_calls = 9 }]\n[agent.three]\ngrants = [{ tool = \"n\", filesystem = \"none\" }, "
        "{ tool = \"t\", network = false }]\n[agent.part]\ngrants = [{ tool = \"n\", "
        "filesystem = { readable = [\"/w/x\"] } }]\n");
    for (int i = 0; i < 5; i++) {
        struct tc_request request = { .tool = "n",
                                      .agent = agents[i],
                                      .argv = ARGV("double:exit") };
        int before = double_plans_made;
        tc_result_free(call(fixture.engine, &request));
        made[i] = double_plans_made - before;
    }
    assert_memory_equal(made, ((int[]){ 1, 0, 0, 1, 0 }), sizeof made);
    assert_int_equal(double_settings.filesystem.count, 0);

    /* The tool's own rules need a gate; what the grant leaves of them does not. */
    struct tc_request request = { .tool = "t", .argv = ARGV("double:exit") };
    struct tc_result *r = call(fixture.engine, &request);
    assert_int_equal(r->verdict, TC_VERDICT_ERROR);
    tc_result_free(r);
    request.agent = "three";
    r = call(fixture.engine, &request);
    assert_int_equal(r->verdict, TC_VERDICT_OK);
    tc_result_free(r);

    request = (struct tc_request){ .tool = "n", .agent = "part", .argv = ARGV("double:exit") };
    r = call(fixture.engine, &request);
    assert_int_equal(r->verdict, TC_VERDICT_ERROR);
    assert_non_null(strstr(r->reason, "only a part"));
    assert_true(r->fix[0]);
    tc_result_free(r);
    close_fixture(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grants_of_paths_that_can_be_kept),
        cmocka_unit_test(test_grants_of_a_part_of_a_source_are_refused),
        cmocka_unit_test(test_private_scratch_is_not_replaced_by_the_hosts),
        cmocka_unit_test(test_scratch_and_cwd_under_a_grant),
        cmocka_unit_test(test_networks_of_tool_and_grant_are_both_kept),
        cmocka_unit_test(test_grant_without_network_takes_it_away),
        cmocka_unit_test(test_grant_narrows_what_connections_may_use),
        cmocka_unit_test(test_rules_cut_out_of_public_say_so),
        cmocka_unit_test(test_nested_call_sees_no_file_that_the_other_does_not),
        cmocka_unit_test(test_nested_tool_that_cannot_be_narrowed_is_refused),
        cmocka_unit_test(test_nested_tool_is_cut_down_to_what_the_other_has),
        cmocka_unit_test(test_rules_cut_out_of_public_stay_so_under_a_second_grant),
        cmocka_unit_test(test_agents_share_plans_unless_their_grants_differ),
    };
    return cmocka_run_group_tests(tests, make_arena, free_arena);
}
