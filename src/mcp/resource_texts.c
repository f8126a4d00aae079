/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what a client may read about tools, as text.
 * The attack: an agent asks about what it was not given. The owner sees everything; an agent sees only
 * tools that it holds a grant for now, and of these only what a caller has to know (no environment, no
 * command, no paths of the host, no other agents).
 */
#include "base/moment.h"
#include "core/engine_runtime.h"
#include "core/engine_tools.h"
#include "json/write.h"
#include "mcp/resources.h"
#include "policy/dump.h"
#include "policy/explain.h"
#include "policy/value.h"

/* ---- which tools -------------------------------------------------------------------------- */

/* After refresh(). */
static bool is_visible(const struct tci_mcp_session *session, struct tc_engine *engine,
                       const struct tci_tool *tool)
{
    bool granted = true;
    struct tc_error error = { 0 };
    return !session->agent || (tci_engine_is_granted_known(engine, session->agent, tool->name,
                                                           &granted, &error) == 0 &&
                               granted);
}

/* False: nothing is known of an agent's grants, and it sees nothing. */
static bool refresh(const struct tci_mcp_session *session, struct tc_engine *engine)
{
    struct tc_error error = { 0 };
    return !session->agent || tci_engine_refresh(engine, &error) == 0;
}

const struct tci_tool *tci_mcp_visible_tool(const struct tci_mcp_session *session,
                                            struct tc_engine *engine, const char *name)
{
    const struct tci_tool *tool = tci_engine_tool(engine, name);
    return tool && refresh(session, engine) && is_visible(session, engine, tool) ? tool : NULL;
}

struct visible {
    const struct tci_mcp_session *session;
    struct tc_engine *engine;
    int (*each)(void *context, const struct tci_tool *tool);
    void *context;
};

static int visit(void *context, const struct tci_tool *tool)
{
    const struct visible *visible = context;
    return is_visible(visible->session, visible->engine, tool)
               ? visible->each(visible->context, tool)
               : 0;
}

int tci_mcp_each_visible(const struct tci_mcp_session *session, struct tc_engine *engine,
                         int (*each)(void *context, const struct tci_tool *tool), void *context)
{
    struct visible visible = { session, engine, each, context };
    if (!refresh(session, engine))
        return 0;
    return tci_engine_each_tool(engine, visit, &visible);
}

/* ---- the policy, for whoever reads it ----------------------------------------------------- */

/* The owner's client is a model all the same. Keys of services are given to tools by `env` so that the
 * model does not have them: it reads the names, and not the values. */
static int hide_values(struct tci_arena *arena, struct tci_environment *env)
{
    struct tci_variable *items = tci_arena_alloc(arena, (env->count + 1) * sizeof *items);
    if (!items)
        return -1;
    for (size_t i = 0; i < env->count; i++) {
        items[i] = env->items[i];
        items[i].value = "(hidden)";
    }
    env->items = items;
    return 0;
}

/* A copy of the policy that may be shown; it shares the rest with the policy. */
static int copy_policy(struct tci_arena *arena, const struct tc_policy *policy,
                       struct tc_policy *ret, struct tc_error *reterr)
{
    *ret = *policy;
    ret->tools = tci_arena_alloc(arena, (policy->tool_count + 1) * sizeof *ret->tools);
    if (!ret->tools)
        return tci_error_no_memory(reterr);
    for (size_t i = 0; i < policy->tool_count; i++) {
        ret->tools[i] = policy->tools[i];
        if (hide_values(arena, &ret->tools[i].settings.env) < 0)
            return tci_error_no_memory(reterr);
    }
    return 0;
}

int tci_mcp_text_policy(const struct tc_engine *engine, const struct tci_tool *tool, bool explain,
                        struct tci_buf *out, struct tc_error *reterr)
{
    struct tci_arena *arena = tci_arena_new();
    struct tc_policy copy = { 0 };
    int r = arena ? copy_policy(arena, engine->policy, &copy, reterr) : tci_error_no_memory(reterr);
    if (r == 0 && explain)
        tci_explain_json(&copy, tool ? &copy.tools[tool - engine->policy->tools] : NULL, NULL, out);
    else if (r == 0)
        tci_policy_dump(&copy, out);
    tci_arena_free(arena);
    return r < 0 ? -1 : tci_buf_check(out, reterr);
}

/* ---- a tool, for an agent ----------------------------------------------------------------- */

static void put_paths(struct tci_json *json, const char *key, const struct tci_settings *settings,
                      enum tci_access access)
{
    tci_json_array_begin(json, key);
    for (size_t i = 0; i < settings->filesystem.count; i++)
        if (settings->filesystem.rules[i].access == access)
            tci_json_string(json, NULL, settings->filesystem.rules[i].cage);
    tci_json_array_end(json);
}

static void put_grant(struct tci_json *json, const struct tci_grant *grant)
{
    char text[TCI_MOMENT_TEXT_MAX];
    tci_json_object_begin(json, NULL);
    if (grant->has_expiry)
        tci_json_string(json, "expires", tci_moment_format(grant->expires, text));
    if (grant->has_max_calls)
        tci_json_unsigned(json, "max_calls", grant->max_calls);
    for (int key = 0; key < TCI_KEY_COUNT; key++)
        if ((grant->narrow->present & tci_key_bit(key)) && key != TCI_KEY_FILESYSTEM)
            tci_value_write(json, tci_key_name((enum tci_key)key), grant->narrow,
                            (enum tci_key)key);
    if (grant->narrow->present & tci_key_bit(TCI_KEY_FILESYSTEM)) {
        put_paths(json, "readable", grant->narrow, TCI_ACCESS_READABLE);
        put_paths(json, "writable", grant->narrow, TCI_ACCESS_WRITABLE);
    }
    tci_json_object_end(json);
}

/* What narrows it: the agent's grant, and those of whom it works for. */
static void put_grants(struct tci_json *json, const struct tc_engine *engine, const char *agent,
                       const char *tool)
{
    const char *chain[TCI_GRANTS_MAX];
    size_t count = tci_engine_chain(engine, agent, chain);
    tci_json_array_begin(json, "grants");
    for (size_t i = 0; i < count && i < TCI_GRANTS_MAX; i++) {
        const struct tci_agent *holder = tci_policy_agent(engine->policy, chain[i]);
        const struct tci_grant *grant = holder ? tci_agent_grant(holder, tool) : NULL;
        if (grant)
            put_grant(json, grant);
    }
    tci_json_array_end(json);
}

static void put_tool(struct tci_json *json, const struct tc_engine *engine, const char *agent,
                     const struct tci_tool *tool)
{
    static const enum tci_key keys[] = {
        TCI_KEY_DESCRIPTION, TCI_KEY_BACKEND, TCI_KEY_NETWORK,    TCI_KEY_TIMEOUT, TCI_KEY_MEMORY,
        TCI_KEY_CPU,         TCI_KEY_PIDS,    TCI_KEY_FILES,      TCI_KEY_DISK,    TCI_KEY_OUTPUT,
        TCI_KEY_COMMANDS,    TCI_KEY_OUTPUTS, TCI_KEY_PARAMETERS, TCI_KEY_RETURNS, TCI_KEY_APPROVAL,
    };
    const struct tci_settings *settings = &tool->settings;
    tci_json_object_begin(json, NULL);
    tci_json_string(json, "name", tool->name);
    for (size_t i = 0; i < tci_array_size(keys); i++)
        if (tci_value_is_set(settings, keys[i]))
            tci_value_write(json, tci_key_name(keys[i]), settings, keys[i]);
    put_paths(json, "readable", settings, TCI_ACCESS_READABLE);
    put_paths(json, "writable", settings, TCI_ACCESS_WRITABLE);
    put_grants(json, engine, agent, tool->name);
    tci_json_object_end(json);
}

struct listing {
    struct tci_json json;
    const struct tc_engine *engine;
    const char *agent;
};

static int list_tool(void *context, const struct tci_tool *tool)
{
    struct listing *listing = context;
    put_tool(&listing->json, listing->engine, listing->agent, tool);
    return 0;
}

int tci_mcp_text_tools(const struct tci_mcp_session *session, struct tc_engine *engine,
                       const struct tci_tool *tool, struct tci_buf *out, struct tc_error *reterr)
{
    struct listing listing = { { .out = out, .pretty = true }, engine, session->agent };
    if (!session->agent)
        return tci_mcp_text_policy(engine, tool, true, out, reterr);
    tci_json_object_begin(&listing.json, NULL);
    tci_json_string(&listing.json, "agent", session->agent);
    tci_json_array_begin(&listing.json, "tools");
    if (tool)
        (void)list_tool(&listing, tool);
    else
        (void)tci_mcp_each_visible(session, engine, list_tool, &listing);
    tci_json_array_end(&listing.json);
    tci_json_object_end(&listing.json);
    return tci_buf_check(out, reterr);
}
