/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: `toolcage grant add|list|revoke`. */
#include "cli/cli.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/moment.h"
#include "base/nearest.h"
#include "base/quote.h"
#include "core/grants_list.h"
#include "policy/parse.h"

/* Options that become keys of the grant's table. */
static const struct {
    enum cli_option_id option;
    const char *key;
    bool is_number; /* in the policy file; else a string */
} keys[] = {
    { CLI_EXPIRES, "expires", false }, { CLI_MAX_CALLS, "max_calls", true },
    { CLI_TIMEOUT, "timeout", false }, { CLI_MEMORY, "memory", false },
    { CLI_CPU, "cpu", true },          { CLI_CPU_TIME, "cpu_time", false },
    { CLI_PIDS, "pids", true },        { CLI_FILES, "files", true },
    { CLI_DISK, "disk", false },       { CLI_OUTPUT, "output", false },
};

static const char *journal_path(const struct cli_call *cli, char **ret_memory,
                                struct tc_error *reterr)
{
    const char *variable = getenv("TOOLCAGE_JOURNAL");
    if (cli_given(cli, CLI_JOURNAL))
        return cli->values[CLI_JOURNAL];
    if (variable && *variable)
        return variable;
    return tc_journal_default_path(ret_memory, reterr) < 0 ? NULL : *ret_memory;
}

/* An exit status; what is wrong has been reported. */
static int open_engine(const struct cli_call *cli, bool needs_policy, struct tc_policy **ret_policy,
                       struct tc_engine **ret_engine)
{
    struct tc_engine_options options = { .policy = NULL };
    struct tc_error error = { 0 };
    char *memory = NULL;
    int status = CLI_EXIT_OK;

    if (needs_policy || cli_given(cli, CLI_POLICY) || cli_policy_variable())
        status = cli_load_policy(cli, false, ret_policy);
    if (status != CLI_EXIT_OK)
        return status;
    options.policy = *ret_policy;
    options.journal_path = journal_path(cli, &memory, &error);
    if (!options.journal_path || tc_engine_open(&options, ret_engine, &error) < 0)
        status = cli_fail(&error);
    free(memory);
    return status;
}

/* ---- add ---------------------------------------------------------------------------------- */

/* "none", or rules with commas between them. */
static void write_network(struct tci_json *json, const char *text)
{
    if (!strchr(text, ':')) {
        tci_json_string(json, "network", text);
        return;
    }
    tci_json_array_begin(json, "network");
    for (size_t length; *text; text += length + (text[length] == ',')) {
        length = strcspn(text, ",");
        tci_json_bytes(json, NULL, text, length);
    }
    tci_json_array_end(json);
}

/* As a JSON number if it looks like one. If not, the reader of grants says what is wrong with it. */
static void write_number(struct tci_json *json, const char *key, const char *text)
{
    size_t digits = strspn(text, "0123456789"), rest = text[digits] == '.' ? digits + 1 : digits;
    bool good = digits > 0 && digits < 16 && (digits == 1 || text[0] != '0');
    if (rest > digits)
        good = good && text[rest] && strlen(text) < 24;
    if (good && !text[rest + strspn(text + rest, "0123456789")])
        tci_json_raw(json, key, text);
    else
        tci_json_string(json, key, text);
}

static void write_grant(const struct cli_call *cli, const char *tool, struct tci_buf *out)
{
    struct tci_json json = { .out = out };
    tci_json_object_begin(&json, NULL);
    tci_json_string(&json, "tool", tool);
    for (size_t i = 0; i < tci_array_size(keys); i++) {
        const char *text = cli->values[keys[i].option];
        if (text && keys[i].is_number)
            write_number(&json, keys[i].key, text);
        else if (text)
            tci_json_string(&json, keys[i].key, text);
    }
    if (cli_given(cli, CLI_NETWORK))
        write_network(&json, cli->values[CLI_NETWORK]);
    if (cli_given(cli, CLI_ASK))
        tci_json_string(&json, "approval", "ask");
    tci_json_object_end(&json);
}

/* The option of the table that is given; NULL: none is. */
static const char *given_key(const struct cli_call *cli)
{
    for (size_t i = 0; i < tci_array_size(keys); i++)
        if (cli_given(cli, keys[i].option))
            return cli_options[keys[i].option].name;
    return cli_given(cli, CLI_NETWORK) ? "network" : cli_given(cli, CLI_ASK) ? "ask" : NULL;
}

static int added(const struct cli_call *cli, const char *id)
{
    struct tci_buf out = TCI_BUF_INIT(256);
    if (cli_given(cli, CLI_JSON)) {
        struct tci_json json = { .out = &out, .pretty = true };
        tci_json_object_begin(&json, NULL);
        tci_json_string(&json, "id", id);
        tci_json_object_end(&json);
    } else {
        tci_buf_string(&out, id);
    }
    tci_buf_char(&out, '\n');
    return cli_output(&out, false, CLI_EXIT_OK);
}

static int run_add(const struct cli_call *cli)
{
    const char *agent = cli->more[0], *tool = cli->more[1];
    bool is_table = tool && tool[strspn(tool, " \t\r\n")] == '{';
    tc_cleanup(tci_buf_free) struct tci_buf table = TCI_BUF_INIT(TCI_GRANT_TEXT_MAX);
    struct tc_policy *policy = NULL;
    struct tc_engine *engine = NULL;
    struct tc_error error = { 0 };
    char id[37];
    int status;

    if (!agent || !tool)
        return cli_usage("write toolcage grant add AGENT TOOL",
                         "\"toolcage grant add\" needs an agent and a tool");
    if (is_table && given_key(cli))
        return cli_usage("write it in the table", "--%s stands beside a whole table",
                         given_key(cli));
    if (is_table)
        tci_buf_string(&table, tool);
    else
        write_grant(cli, tool, &table);
    if (tci_buf_check(&table, &error) < 0)
        return cli_fail(&error);
    status = open_engine(cli, true, &policy, &engine);
    if (status == CLI_EXIT_OK)
        status = tc_grant_add(engine, agent, table.data, id, &error) < 0 ? cli_fail(&error)
                                                                         : added(cli, id);
    tc_engine_close(engine);
    tc_policy_free(policy);
    return status;
}

/* ---- list --------------------------------------------------------------------------------- */

struct listing {
    struct tci_buf *out;
    size_t revoked, shown;
};

static void print_row(void *context, const struct tci_listed_grant *row)
{
    struct listing *listing = context;
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT((size_t)4 * TCI_GRANT_TEXT_MAX);
    if (row->revoked_us) {
        listing->revoked++;
        return;
    }
    if (!row->text)
        tci_grant_write(row->grant, &text);
    tci_buf_printf(listing->out, "%-36s  %-8s  %s", row->id ? row->id : "policy", row->state,
                   row->agent);
    if (row->parent)
        tci_buf_printf(listing->out, " (works for %s)", row->parent);
    if (row->is_counted)
        tci_buf_printf(listing->out, "  calls %" PRIu64, row->calls);
    tci_buf_printf(listing->out, "  %s\n", row->text ? row->text : text.data ? text.data : "");
    listing->shown++;
}

static int run_list(const struct cli_call *cli)
{
    struct tci_buf out = TCI_BUF_INIT(SIZE_MAX / 4);
    struct listing listing = { .out = &out };
    bool json = cli_given(cli, CLI_JSON);
    struct tc_policy *policy = NULL;
    struct tc_engine *engine = NULL;
    struct tc_error error = { 0 };
    int r, status = open_engine(cli, false, &policy, &engine);

    if (status == CLI_EXIT_OK) {
        r = json ? tci_grants_json(engine, cli->more[0], &out, &error)
                 : tci_grants_each(engine, cli->more[0], print_row, &listing, &error);
        if (json)
            tci_buf_char(&out, '\n');
        else if (!listing.shown)
            tci_buf_string(&out, "no grants\n");
        if (listing.revoked)
            tci_buf_printf(&out, "%zu revoked; --json shows them\n", listing.revoked);
        if (r < 0)
            tci_buf_free(&out);
        status = r < 0 ? cli_fail(&error) : cli_output(&out, !json, CLI_EXIT_OK);
    }
    tc_engine_close(engine);
    tc_policy_free(policy);
    return status;
}

/* ---- revoke ------------------------------------------------------------------------------- */

static int run_revoke(const struct cli_call *cli)
{
    struct tc_policy *policy = NULL;
    struct tc_engine *engine = NULL;
    struct tc_error error = { 0 };
    int status;

    if (!cli->more[0])
        return cli_usage("write toolcage grant revoke ID", "\"toolcage grant revoke\" needs an id");
    status = open_engine(cli, false, &policy, &engine);
    if (status == CLI_EXIT_OK && tc_grant_revoke(engine, cli->more[0], &error) < 0)
        status = cli_fail(&error);
    tc_engine_close(engine);
    tc_policy_free(policy);
    return status;
}

int cli_run_grant(const struct cli_call *cli)
{
    static const char *const words[] = { "add", "list", "revoke", NULL };
    const char *action = cli->argument, *nearest;
    char remedy[64], quoted[TCI_QUOTE_MAX];

    if (!action)
        return cli_usage("write toolcage grant add, list or revoke", "what to do is missing");
    if (strcmp(action, "add") == 0)
        return run_add(cli);
    if (cli->more[1])
        return cli_usage("remove it", "\"toolcage grant %s\" does not take the argument %s",
                         strcmp(action, "list") == 0 ? "list" : "revoke",
                         tci_quote(cli->more[1], strlen(cli->more[1]), quoted));
    if (given_key(cli))
        return cli_usage("leave it out", "--%s is for \"toolcage grant add\"", given_key(cli));
    if (strcmp(action, "list") == 0)
        return run_list(cli);
    if (strcmp(action, "revoke") == 0)
        return run_revoke(cli);
    nearest = tci_nearest_word(action, strlen(action), words);
    if (nearest)
        (void)snprintf(remedy, sizeof remedy, "did you mean \"%s\"?", nearest);
    return cli_usage(nearest ? remedy : "write add, list or revoke", "\"toolcage grant\" cannot %s",
                     tci_quote(action, strlen(action), quoted));
}
