/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: asking a person before a call is made, when the tool or any of the grants wants that.
 *
 * What is shown is what would run: the argv as it will be started, and the paths and the network as
 * they are after all narrowing. Nobody to ask, no answer in time, and anything but a clear yes are no.
 * The time is measured here, and not believed: a late yes may answer a question that the person no
 * longer has before their eyes.
 */
#include "core/call.h"

#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "core/approval.h"
#include "policy/units.h"

static bool asks(const struct tci_settings *s, uint64_t *timeout)
{
    bool has_timeout = s->present & tci_key_bit(TCI_KEY_APPROVAL_TIMEOUT);
    if (has_timeout && s->approval_timeout < *timeout)
        *timeout = s->approval_timeout;
    return (s->present & tci_key_bit(TCI_KEY_APPROVAL)) && s->approval == TCI_APPROVAL_ASK;
}

/* Must somebody be asked, and how long may they think? The shortest time of all counts. */
static bool is_needed(const struct tc_call *call, uint64_t *ret_timeout)
{
    const struct tci_settings *tool = &call->tool->settings;
    bool needed = tool->approval == TCI_APPROVAL_ASK;
    *ret_timeout = tool->approval_timeout;
    for (size_t i = 0; i < call->grants.count; i++)
        needed |= asks(call->grants.items[i]->narrow, ret_timeout);
    return needed;
}

/* ---- what is shown ------------------------------------------------------------------------ */

/* "CAGE", or "HOST:CAGE" as a policy writes it where the two differ. */
static const char *path_text(struct tci_arena *arena, const struct tci_path_rule *rule)
{
    if (!rule->host || strcmp(rule->host, rule->cage) == 0)
        return rule->cage;
    return tci_arena_printf(arena, "%s:%s", rule->host, rule->cage);
}

static const char *const *list_paths(struct tci_arena *arena, const struct tci_filesystem *fs,
                                     enum tci_access access)
{
    const char **list = tci_arena_new_array(arena, fs->count + 1, const char *);
    size_t count = 0;
    for (size_t i = 0; list && i < fs->count; i++) {
        if (fs->rules[i].access != access)
            continue;
        list[count] = path_text(arena, &fs->rules[i]);
        if (!list[count++])
            return NULL;
    }
    return list;
}

static const char *const *list_network(struct tci_arena *arena, const struct tci_network *network)
{
    bool rules = network->mode == TCI_NETWORK_RULES;
    const char **list = tci_arena_new_array(arena, rules ? network->count + 1 : 2, const char *);
    char text[TCI_RULE_TEXT_MAX];
    if (!list)
        return NULL;
    if (!rules) {
        list[0] = tci_network_mode_name(network->mode);
        return list;
    }
    for (size_t i = 0; i < network->count; i++) {
        list[i] = tci_arena_strdup(arena, tci_netrule_format(&network->rules[i].rule, text));
        if (!list[i])
            return NULL;
    }
    return list;
}

static int describe(struct tc_call *call, const struct tc_request *request,
                    const struct tci_command *command, struct tc_approval *ret,
                    struct tc_error *reterr)
{
    struct tci_arena *arena = call->result->arena;
    const struct tci_settings *s = &call->plan->narrowed.settings;
    const struct tc_result *public = &call->result->public;

    *ret = (struct tc_approval){
        .call_id = public->call_id,
        .tool = call->tool->name,
        .agent = public->agent,
        .arguments_json = call->arguments_text,
        .argv = command->argv,
        .readable = list_paths(arena, &s->filesystem, TCI_ACCESS_READABLE),
        .writable = list_paths(arena, &s->filesystem, TCI_ACCESS_WRITABLE),
        .network = list_network(arena, &s->network),
        .timeout_ms = ret->timeout_ms,
        .input = command->input ? command->input : request->input,
        .input_length = command->input ? command->input_length : request->input_length,
        .input_unseen = !command->input &&
                        (request->input_fd > 0 || (request->flags & TC_REQUEST_TERMINAL)),
    };
    return ret->readable && ret->writable && ret->network ? 0 : tci_error_no_memory(reterr);
}

/* ---- the answer --------------------------------------------------------------------------- */

static int deny(struct tc_call *call, const char *fix, const char *reason, struct tc_error *reterr)
{
    tci_result_verdict(call->result, TC_VERDICT_DENIED, fix, "%s", reason);
    if (tci_result_deny(call->result, "approval", call->tool->name, reason) < 0)
        return tci_error_no_memory(reterr);
    return 1;
}

static int nobody(struct tc_call *call, struct tc_error *reterr)
{
    return deny(call,
                "call it where somebody can be asked (a terminal, an MCP client that supports "
                "elicitation, on_approval), or set approval = \"never\" for it",
                "the call needs a person's approval, and there is nobody to ask", reterr);
}

/*
 * A person thinks for minutes. What was decided before may not hold any more: a grant that has expired
 * or was revoked, a policy that was replaced. The attack: to keep a question open until then, or simply
 * a yes by somebody who does not know that the owner said no in the meantime.
 */
static int still_allowed(struct tc_call *call, struct tc_error *reterr)
{
    struct tc_decision decision;
    if (atomic_load(&call->engine->replaced))
        return deny(call, "call again: it will be decided by the new policy",
                    "the policy changed while you were asked; call again", reterr);
    if (tci_engine_still_granted(call->engine, &call->grants, call->tool->name, &decision, reterr) <
        0)
        return -1;
    if (!decision.allowed)
        return tci_call_deny_grant(call, call->tool->name, &decision, reterr);
    return tci_call_still_nested(call, reterr);
}

int tci_call_approve(struct tc_call *call, const struct tc_request *request,
                     const struct tci_command *command, struct tc_error *reterr)
{
    const struct tc_engine *engine = call->engine;
    struct tc_approval approval = { .timeout_ms = 0 };
    uint64_t timeout, began, left;
    char reason[160], text[TCI_UNIT_TEXT_MAX];
    int answer;

    if (!is_needed(call, &timeout))
        return 0;
    if (!engine->on_approval)
        return nobody(call, reterr);
    /* A call inside a call has no longer than that one. */
    left = call->end_by == UINT64_MAX ? UINT64_MAX : tci_call_time(call);
    approval.timeout_ms = timeout < left ? timeout : left;
    if (describe(call, request, command, &approval, reterr) < 0)
        return -1;
    began = tci_clock_us();
    answer = engine->on_approval(engine->approval_context, &approval);
    if (answer < 0)
        return nobody(call, reterr);
    if (tci_clock_us() - began > approval.timeout_ms * 1000 &&
        approval.timeout_ms < UINT64_MAX / 1000) {
        (void)snprintf(reason, sizeof reason, "nobody approved the call within %s",
                       tci_duration_format(approval.timeout_ms, text));
        return deny(call, "ask the person to answer sooner, or set a longer approval_timeout",
                    reason, reterr);
    }
    if (answer > TCI_APPROVAL_SHOWN_MAX) {
        (void)snprintf(reason, sizeof reason,
                       "the call is too long to be shown to a person (%d bytes; at most %d)",
                       answer, TCI_APPROVAL_SHOWN_MAX);
        return deny(call, "make shorter calls: put what is long into a file that the tool reads",
                    reason, reterr);
    }
    if (answer != 1)
        return deny(call, "do without it, or ask the person what they would approve",
                    "a person was asked to approve the call, and did not", reterr);
    return still_allowed(call, reterr);
}
