/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: a comparison of the three answers, over random small policies, with a second
 * implementation that is slow and plain.
 */
#include "decide_support.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/buf.h"

/* ---- against a second implementation ---------------------------------------------------------- */

static uint64_t random_state;

/* xorshift64*: the same policies in every run. */
static unsigned pick(unsigned below)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (unsigned)((random_state * 0x2545f4914f6cdd1dULL) >> 33) % below;
}

#define pick_of(array) ((array)[pick((unsigned)tci_array_size(array))])

static const char *const rule_hosts[] = {
    "a.example",      "b.a.example", "*.a.example", "*.example", "xa.example",
    "10.0.0.0/8",     "10.1.2.3",    "8.8.8.8",     "0.0.0.0/0", "169.254.0.0/16",
    "[2606:4700::1]", "[2606::/16]", "[::/0]",      "127.0.0.1", "10.1.0.0/16",
};
static const char *const rule_ports[] = { "443", "80", "80-443", "*", "22" };
static const char *const asked_hosts[] = {
    "a.example",       "A.Example.",   "b.a.example",     "c.b.a.example",
    "xa.example",      "example",      "y.example",       "10.1.2.3",
    "10.2.3.4",        "8.8.8.8",      "169.254.169.254", "127.0.0.1",
    "::ffff:10.1.2.3", "2606:4700::1", "[2606:4700::2]",  "::1",
    "localhost",       "LOCALHOST.",   "a.localhost",     "fe80::1",
    "1.1.1.1",
};
static const unsigned asked_ports[] = { 443, 80, 81, 22, 65535, 0, 65536 };
static const char *const path_names[] = { "/",    "/a",       "/a/b", "/a/b/c", "/ab",     "/usr",
                                          "/tmp", "/usr/bin", "/etc", "/tmp/x", "/a/b/c/d" };
static const char *const asked_steps[] = { "a",   "b",      "c",  "ab", "usr", "bin",  "tmp", "x",
                                           "etc", "passwd", "..", ".",  "dev", "null", "proc" };

enum { rules_max = 5, mode_none = 0, mode_rules, mode_public, mode_host };

struct reference_rule {
    bool deny;
    const char *host, *port;
};

struct reference_network {
    int mode;
    struct reference_rule rules[rules_max];
    unsigned count;
};

struct reference_paths {
    /* [0] hidden, [1] readable, [2] writable */
    const char *paths[3][rules_max];
    unsigned count[3];
    bool scratch;
};

struct reference {
    struct reference_network network, grant_network;
    struct reference_paths paths, grant_paths;
    bool has_grant_network, has_grant_paths, system, rootfs;
    bool has_expiry, has_max_calls;
    unsigned max_calls;
};

static struct reference_network random_network(struct tci_buf *out)
{
    static const char *const words[] = { "\"none\"", NULL, "\"public\"", "\"host\"" };
    struct reference_network n = { .mode = (int)pick(8) };
    n.mode = n.mode > 3 ? mode_rules : n.mode;
    if (n.mode != mode_rules) {
        tci_buf_string(out, words[n.mode]);
        return n;
    }
    n.count = pick(rules_max + 1);
    tci_buf_string(out, "[");
    for (unsigned i = 0; i < n.count; i++) {
        n.rules[i] = (struct reference_rule){ pick(4) == 0, pick_of(rule_hosts),
                                              pick_of(rule_ports) };
        tci_buf_printf(out, "%s\"%s%s:%s\"", i ? ", " : "",
                       n.rules[i].deny ? "deny:"
                       : pick(2)       ? "allowlist:"
                                       : "",
                       n.rules[i].host, n.rules[i].port);
    }
    tci_buf_string(out, "]");
    return n;
}

static struct reference_paths random_paths(struct tci_buf *out)
{
    static const char *const names[] = { "hidden", "readable", "writable" };
    struct reference_paths p = { .scratch = pick(3) > 0 };
    tci_buf_printf(out, "{ scratch = \"%s\"", p.scratch ? "1MB" : "0B");
    for (unsigned a = 0; a < 3; a++) {
        tci_buf_printf(out, ", %s = [", names[a]);
        for (unsigned tries = pick(rules_max); tries; tries--) {
            const char *path = pick_of(path_names);
            bool repeated = false;
            for (unsigned i = 0; i < p.count[a]; i++)
                repeated |= strcmp(p.paths[a][i], path) == 0;
            if (repeated)
                continue;
            tci_buf_printf(out, "%s\"%s\"", p.count[a] ? ", " : "", path);
            p.paths[a][p.count[a]++] = path;
        }
        tci_buf_string(out, "]");
    }
    tci_buf_string(out, " }");
    return p;
}

static struct tc_policy *random_policy(struct reference *ref)
{
    struct tci_buf out = TCI_BUF_INIT(100000);
    struct tc_policy *policy;
    char *text;
    memset(ref, 0, sizeof *ref);
    ref->system = pick(2);
    ref->rootfs = pick(4) == 0;
    tci_buf_printf(&out, "[tool.t]\nsystem = %s\n%snetwork = ", ref->system ? "true" : "false",
                   ref->rootfs ? "rootfs = \"/srv\"\n" : "");
    ref->network = random_network(&out);
    tci_buf_string(&out, "\nfilesystem = ");
    ref->paths = random_paths(&out);
    tci_buf_string(&out, "\n[agent.a]\ngrants = [{ tool = \"t\"");
    if ((ref->has_grant_network = pick(2))) {
        tci_buf_string(&out, ", network = ");
        ref->grant_network = random_network(&out);
    }
    if ((ref->has_grant_paths = pick(2))) {
        tci_buf_string(&out, ", filesystem = ");
        ref->grant_paths = random_paths(&out);
    }
    if ((ref->has_expiry = pick(2)))
        tci_buf_string(&out, ", expires = \"1970-01-01T00:00:05Z\"");
    if ((ref->has_max_calls = pick(2))) {
        ref->max_calls = pick(6);
        tci_buf_printf(&out, ", max_calls = %u", ref->max_calls);
    }
    tci_buf_string(&out, " }]\n");
    text = tci_buf_take(&out, NULL);
    assert_non_null(text);
    policy = load_text(text);
    free(text);
    return policy;
}

/* An address as 128 bits; IPv4 as ::ffff:a.b.c.d. */
static bool address_bits(const char *text, unsigned char bits[128], bool *v4)
{
    unsigned char bytes[16] = { [10] = 0xff, [11] = 0xff };
    char bare[60];
    size_t length = strlen(text);
    if (text[0] == '[') {
        text++;
        length -= 2;
    }
    (void)snprintf(bare, sizeof bare, "%.*s", (int)length, text);
    if (inet_pton(AF_INET, bare, bytes + 12) != 1 && inet_pton(AF_INET6, bare, bytes) != 1)
        return false;
    *v4 = memcmp(bytes, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12) == 0;
    for (unsigned i = 0; i < 128; i++)
        bits[i] = (bytes[i / 8] >> (7 - i % 8)) & 1;
    return true;
}

static bool prefix_matches(const char *rule, const char *host)
{
    unsigned char rule_bits[128], host_bits[128];
    char network[60];
    const char *slash = strchr(rule, '/');
    bool rule_v4, host_v4;
    unsigned prefix;
    (void)snprintf(network, sizeof network, "%.*s%s", (int)(slash ? slash - rule : 50), rule,
                   slash && rule[0] == '[' ? "]" : "");
    if (!address_bits(network, rule_bits, &rule_v4) || !address_bits(host, host_bits, &host_v4) ||
        rule_v4 != host_v4)
        return false;
    prefix = slash ? (unsigned)atoi(slash + 1) + (rule_v4 ? 96 : 0) : 128;
    for (unsigned i = 0; i < prefix; i++)
        if (rule_bits[i] != host_bits[i])
            return false;
    return true;
}

/* A name without its final dot, in small letters. */
static void plain_name(const char *host, char name[100])
{
    size_t length = strlen(host);
    (void)snprintf(name, 100, "%s", host);
    if (length && name[length - 1] == '.')
        name[length - 1] = '\0';
    for (char *p = name; *p; p++)
        *p = *p >= 'A' && *p <= 'Z' ? (char)(*p + 32) : *p;
}

static bool reference_matches(const struct reference_rule *rule, const char *host, unsigned port)
{
    char name[100];
    unsigned low, high;
    if (strcmp(rule->port, "*") == 0) {
        low = 1;
        high = 65535;
    } else if (sscanf(rule->port, "%u-%u", &low, &high) < 2) {
        high = low;
    }
    if (port < low || port > high)
        return false;
    if (prefix_matches(rule->host, host))
        return true;
    plain_name(host, name);
    if (rule->host[0] == '*') {
        size_t length = strlen(name), ending = strlen(rule->host) - 1;
        return length > ending && strcmp(name + length - ending, rule->host + 1) == 0;
    }
    return strcmp(name, rule->host) == 0;
}

static bool reference_is_public(const char *host)
{
    static const char *const near[] = { "10.0.0.0/8", "169.254.0.0/16", "127.0.0.0/8", "[::1/128]",
                                        "[fe80::/10]" };
    for (size_t i = 0; i < tci_array_size(near); i++)
        if (prefix_matches(near[i], host))
            return false;
    return true;
}

static bool reference_network(const struct reference_network *n, const char *host, unsigned port)
{
    bool allowed = false;
    if (port < 1 || port > 65535 || n->mode == mode_none)
        return false;
    if (n->mode == mode_host)
        return true;
    if (n->mode == mode_public)
        return !strcasestr(host, "localhost") && reference_is_public(host);
    if (strcasestr(host, "localhost") && !reference_network(n, "127.0.0.1", port) &&
        !reference_network(n, "::1", port))
        return false;
    for (unsigned i = 0; i < n->count; i++) {
        if (!reference_matches(&n->rules[i], host, port))
            continue;
        if (n->rules[i].deny)
            return false;
        allowed = true;
    }
    return allowed;
}

static void go_up(char *path)
{
    char *slash = strrchr(path, '/');
    slash[slash == path ? 1 : 0] = '\0';
}

enum { hidden = 0, no_rule = 3 };

/* What the policy's own rule for the path says. */
static unsigned reference_rule_of(const struct reference_paths *p, const char *path)
{
    char here[200];
    (void)snprintf(here, sizeof here, "%s", path);
    for (;;) {
        for (unsigned access = 0; access < 3; access++)
            for (unsigned i = 0; i < p->count[access]; i++)
                if (strcmp(p->paths[access][i], here) == 0)
                    return access;
        if (strcmp(here, "/") == 0)
            return no_rule;
        go_up(here);
    }
}

/*
 * From the path upwards to the root: the first directory about which anything is said decides; but
 * what the policy hides stays hidden, also where the cage has something of its own below.
 */
static bool reference_path(const struct reference *ref, const struct reference_paths *p,
                           const char *path, bool write)
{
    static const char *const always_writable[] = { "/dev/null" }, *const always_readable[] = {
        "/proc"
    };
    static const char *const system_paths[] = { "/usr", "/bin", "/etc/passwd" };
    char here[200];
    if (reference_rule_of(p, path) == hidden)
        return false;
    (void)snprintf(here, sizeof here, "%s", path);
    for (;;) {
        for (unsigned access = 0; access < 3; access++)
            for (unsigned i = 0; i < p->count[access]; i++)
                if (strcmp(p->paths[access][i], here) == 0)
                    return !write || access == 2;
        for (size_t i = 0; i < tci_array_size(always_writable); i++)
            if (strcmp(always_writable[i], here) == 0)
                return true;
        for (size_t i = 0; i < tci_array_size(always_readable); i++)
            if (strcmp(always_readable[i], here) == 0)
                return !write;
        if (p->scratch && strcmp(here, "/tmp") == 0)
            return true;
        for (size_t i = 0; ref->system && i < tci_array_size(system_paths); i++)
            if (strcmp(system_paths[i], here) == 0)
                return !write;
        if (strcmp(here, "/") == 0)
            return ref->rootfs && !write;
        go_up(here);
    }
}

/* A path of random steps, and its normal form; false when it leaves the root. */
static bool random_path(char asked[200], char normal[200])
{
    const char *stack[8];
    unsigned depth = 0, steps = pick(7);
    bool inside = true;
    size_t used = 0;
    asked[used] = '\0';
    for (unsigned i = 0; i < steps; i++) {
        const char *step = pick_of(asked_steps);
        used += (size_t)snprintf(asked + used, 200 - used, "/%s", step);
        if (strcmp(step, "..") == 0) {
            inside = inside && depth > 0;
            depth -= depth > 0;
        } else if (strcmp(step, ".") != 0) {
            stack[depth++] = step;
        }
    }
    if (steps == 0 || pick(5) == 0)
        (void)snprintf(asked + used, 200 - used, "/");
    used = 0;
    for (unsigned i = 0; i < depth; i++)
        used += (size_t)snprintf(normal + used, 200 - used, "/%s", stack[i]);
    if (depth == 0)
        (void)snprintf(normal, 200, "/");
    return inside;
}

/* A call that may never be made reaches nothing either. */
static bool reference_may_ask(const struct reference *ref, const char *agent)
{
    return !agent || !ref->has_max_calls || ref->max_calls > 0;
}

static void ask_network(const struct tc_policy *policy, const struct reference *ref,
                        const char *agent, unsigned allowed[2])
{
    const char *host = pick_of(asked_hosts);
    unsigned port = pick_of(asked_ports);
    struct tc_decision d = decide_network(policy, agent, host, port);
    bool expected = reference_may_ask(ref, agent) && reference_network(&ref->network, host, port);
    if (agent && ref->has_grant_network)
        expected = expected && reference_network(&ref->grant_network, host, port);
    assert_well_formed(&d);
    if (d.allowed != expected)
        fail_msg("%s:%u for %s: %s", host, port, agent ? agent : "the owner", d.reason);
    allowed[d.allowed]++;
}

static void ask_path(const struct tc_policy *policy, const struct reference *ref, const char *agent,
                     unsigned allowed[2])
{
    char asked[200], normal[200];
    bool inside = random_path(asked, normal), write = pick(2);
    struct tc_decision d = decide_path(policy, agent, asked,
                                       write ? TC_ACCESS_WRITE : TC_ACCESS_READ);
    bool expected = inside && reference_may_ask(ref, agent) &&
                    reference_path(ref, &ref->paths, normal, write);
    if (agent && ref->has_grant_paths)
        expected = expected && reference_path(ref, &ref->grant_paths, normal, write);
    assert_well_formed(&d);
    if (d.allowed != expected)
        fail_msg("%s %s for %s: %s", write ? "write" : "read", asked, agent ? agent : "the owner",
                 d.reason);
    allowed[d.allowed]++;
}

static void ask_call(const struct tc_policy *policy, const struct reference *ref,
                     unsigned allowed[2])
{
    int64_t now = (int64_t)pick(10);
    unsigned made = pick(6);
    struct tc_decision d = decide_call(policy, "a", "t", now, made);
    bool expected = !(ref->has_expiry && now >= 5) &&
                    !(ref->has_max_calls && made >= ref->max_calls);
    assert_well_formed(&d);
    assert_int_equal(d.allowed, expected);
    allowed[d.allowed]++;
}

static void test_random_policies_agree_with_the_reference(void **state)
{
    unsigned network[2] = { 0 }, path[2] = { 0 }, call[2] = { 0 };
    (void)state;
    random_state = 0x746f6f6c63616765;
    for (int i = 0; i < 1500; i++) {
        struct reference ref;
        struct tc_policy *policy = random_policy(&ref);
        for (int q = 0; q < 60; q++) {
            const char *agent = pick(2) ? "a" : NULL;
            ask_network(policy, &ref, agent, network);
            ask_path(policy, &ref, agent, path);
            ask_call(policy, &ref, call);
        }
        tc_policy_free(policy);
    }
    /* Questions that all have one answer would prove nothing. */
    assert_true(network[0] > 10000 && network[1] > 10000);
    assert_true(path[0] > 10000 && path[1] > 10000);
    assert_true(call[0] > 10000 && call[1] > 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_policies_agree_with_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
