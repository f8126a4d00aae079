/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: `toolcage explain`: what holds for a tool, and the answer to one question about it. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/quote.h"
#include "policy/explain.h"

static const enum cli_option_id questions[] = { CLI_CALL, CLI_REACH, CLI_READ, CLI_WRITE };

/* "HOST:PORT" or "[V6]:PORT", cut at the last colon. */
static int split_port(const char *text, char *host, size_t size, unsigned *ret_port)
{
    const char *colon = strrchr(text, ':');
    char *end = NULL;
    unsigned long port;
    size_t length = colon ? (size_t)(colon - text) : 0;

    if (!colon || length >= size || colon[1] < '0' || colon[1] > '9')
        return cli_usage("write --reach HOST:PORT, such as api.example.com:443",
                         "--reach needs a host and a port");
    port = strtoul(colon + 1, &end, 10);
    if (*end || port < 1 || port > 65535)
        return cli_usage("use a port from 1 to 65535", "--reach has no valid port");
    memcpy(host, text, length);
    host[length] = '\0';
    *ret_port = (unsigned)port;
    return CLI_EXIT_OK;
}

static int ask(const struct cli_call *call, const struct tc_policy *policy,
               enum cli_option_id question, struct tc_decision *ret)
{
    const char *agent = call->values[CLI_AGENT], *tool = call->argument;
    const char *target = call->values[question];
    char host[512];
    unsigned port = 0;

    /* Who may not call the tool now reaches and reads nothing through it. */
    tc_decide_call(policy, agent, tool, (int64_t)time(NULL), 0, ret);
    if (question == CLI_CALL || !ret->allowed)
        return CLI_EXIT_OK;
    if (question == CLI_REACH) {
        int status = split_port(target, host, sizeof host, &port);
        if (status == CLI_EXIT_OK)
            tc_decide_network(policy, agent, tool, host, port, ret);
        return status;
    }
    tc_decide_path(policy, agent, tool, target,
                   question == CLI_WRITE ? TC_ACCESS_WRITE : TC_ACCESS_READ, ret);
    return CLI_EXIT_OK;
}

static void decision_text(const struct tc_policy *policy, const struct tc_decision *d,
                          struct tci_buf *out)
{
    tci_buf_printf(out, "%s: %s\n", d->allowed ? "yes" : "no", d->reason);
    if (d->line)
        tci_buf_printf(out, "    by: %s:%u:%u (%s)\n", tc_policy_file_name(policy, d->file),
                       d->line, d->column, d->key);
    if (!d->allowed)
        tci_buf_printf(out, "    fix: %s\n", d->fix);
}

static int answer(const struct cli_call *call, const struct tc_policy *policy,
                  enum cli_option_id question)
{
    struct tci_buf out = TCI_BUF_INIT(65536);
    struct tc_decision decision;
    bool json = cli_given(call, CLI_JSON);
    int status;

    if (!call->argument)
        return cli_usage("name the tool: toolcage explain TOOL ...", "--%s needs a tool",
                         cli_options[question].name);
    status = ask(call, policy, question, &decision);
    if (status != CLI_EXIT_OK)
        return status;
    if (json)
        tci_decision_json(policy, cli_options[question].name, call->values[question], &decision,
                          &out);
    else
        decision_text(policy, &decision, &out);
    return cli_output(&out, !json, decision.allowed ? CLI_EXIT_OK : CLI_EXIT_FINDINGS);
}

static int explain(const struct cli_call *call, const struct tc_policy *policy)
{
    struct tci_buf out = TCI_BUF_INIT(TCI_EXPLAIN_MAX);
    const struct tci_tool *tool = NULL;
    char text[TCI_QUOTE_MAX];

    if (cli_given(call, CLI_AGENT))
        return cli_usage("add --call, --reach, --read or --write", "--agent goes with a question");
    if (call->argument && !(tool = tci_policy_tool(policy, call->argument)))
        return cli_usage("\"toolcage tools\" lists what there is", "%s has no tool %s",
                         policy->file, tci_quote(call->argument, strlen(call->argument), text));
    if (cli_given(call, CLI_JSON))
        tci_explain_json(policy, tool, cli_explain_maker, &out);
    else
        tci_explain_text(policy, tool, cli_explain_maker, &out);
    if (out.length == 0)
        tci_buf_string(&out, "the policy has no tools; [tool.NAME] defines one\n");
    return cli_output(&out, !cli_given(call, CLI_JSON), CLI_EXIT_OK);
}

int cli_run_explain(const struct cli_call *call)
{
    tc_cleanup(tci_policy_freep) struct tc_policy *policy = NULL;
    int question = -1, status;

    for (size_t i = 0; i < tci_array_size(questions); i++) {
        if (!cli_given(call, questions[i]))
            continue;
        if (question >= 0)
            return cli_usage("ask one thing at a time", "more than one question is asked");
        question = (int)questions[i];
    }
    status = cli_load_policy(call, false, &policy);
    if (status != CLI_EXIT_OK)
        return status;
    if (question >= 0)
        return answer(call, policy, (enum cli_option_id)question);
    return explain(call, policy);
}
