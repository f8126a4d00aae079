/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: `toolcage replay`: a recorded session, shown again. Results are checked against their hashes
 * before they are shown. What they hold came out of cages: on a terminal it is escaped.
 */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>
#include "base/quote.h"
#include "cli/journal.h"
#include "core/record.h"

enum { batch_bytes = 1024 * 1024 };

struct replay {
    const struct cli_call *cli;
    struct tci_buf out; /* written now and then: a session may be longer than memory */
    uint64_t steps;
    int status;
};

/* ---- one step ----------------------------------------------------------------------------- */

static int flush(struct replay *replay)
{
    bool terminal = isatty(STDOUT_FILENO);
    int status = cli_output(&replay->out, terminal, CLI_EXIT_OK);
    replay->out = (struct tci_buf)TCI_BUF_INIT(SIZE_MAX / 4);
    if (status != CLI_EXIT_OK)
        replay->status = status;
    return status == CLI_EXIT_OK ? 0 : 1;
}

static void put_stream(struct tci_buf *out, const char *bytes, size_t length)
{
    tci_buf_append(out, bytes, length);
    if (length && bytes[length - 1] != '\n')
        tci_buf_char(out, '\n');
}

static void put_text(struct tci_buf *out, const struct tci_journal_row *row,
                     const struct tc_result *result)
{
    char quoted[TCI_QUOTE_MAX];
    tci_buf_printf(out, "step %" PRIu64 ": ", row->step);
    if (result->tool)
        tci_buf_printf(out, "%s ", tci_quote(result->tool, strlen(result->tool), quoted));
    tci_buf_printf(out, "%s", tc_verdict_name(result->verdict));
    if (result->reason[0])
        tci_buf_printf(out, ": %s", tci_quote(result->reason, strlen(result->reason), quoted));
    tci_buf_char(out, '\n');
    put_stream(out, result->stdout_data, result->stdout_length);
    put_stream(out, result->stderr_data, result->stderr_length);
}

static void cannot_show(struct replay *replay, const struct tci_journal_row *row, const char *why)
{
    (void)fprintf(stderr, "toolcage: step %" PRIu64 " cannot be shown: %s\n", row->step, why);
    replay->status = CLI_EXIT_FINDINGS;
}

static int show(void *context, const struct tci_journal_row *row, struct tc_error *reterr)
{
    struct replay *replay = context;
    struct tci_result *result = tci_result_new(NULL);
    const char *why = NULL, *fix = NULL, *json = NULL;
    int r = -1;

    replay->steps++;
    if (!result)
        return tci_error_no_memory(reterr);
    result->public.mode = TC_MODE_REPLAY;
    r = tci_record_read(row, result, &why, &fix, reterr);
    if (r > 0)
        cannot_show(replay, row, why);
    else if (r == 0 && !cli_given(replay->cli, CLI_JSON))
        put_text(&replay->out, row, &result->public);
    else if (r == 0 && !(json = tc_result_json(&result->public)))
        r = tci_error_no_memory(reterr);
    if (json) {
        tci_buf_string(&replay->out, json);
        tci_buf_char(&replay->out, '\n');
    }
    tc_result_free(&result->public);
    if (r < 0)
        return -1;
    return replay->out.length >= batch_bytes ? flush(replay) : 0;
}

/* ---- the verb ----------------------------------------------------------------------------- */

static int show_session(const struct cli_call *cli, struct tci_journal *journal)
{
    struct tci_journal_query query = { .session = cli->argument, .kind = "call" };
    struct replay replay = { .cli = cli, .out = TCI_BUF_INIT(SIZE_MAX / 4) };
    struct tc_error error = { 0 };
    char quoted[TCI_QUOTE_MAX];
    int r = tci_journal_each(journal, &query, show, &replay, &error);

    if (r == 0)
        (void)flush(&replay);
    else
        tci_buf_free(&replay.out);
    if (r < 0)
        return cli_fail(&error);
    if (replay.steps)
        return replay.status;
    tci_error_set(&error, TC_ERROR_USAGE, "the journal has no session %s",
                  tci_quote(cli->argument, strlen(cli->argument), quoted));
    tci_error_remedy(&error,
                     "see toolcage journal show for what it has, or name another --journal");
    return cli_fail(&error);
}

int cli_run_replay(const struct cli_call *cli)
{
    bool restart = cli_given(cli, CLI_RESTART);
    struct tci_journal *journal = NULL;
    struct tc_error error = { 0 };
    int status;

    if (!cli->argument)
        return cli_usage("write toolcage replay SESSION", "the session's name is missing");
    status = cli_journal_open(cli, NULL, restart ? 0 : TCI_JOURNAL_READ_ONLY, &journal);
    if (status == CLI_EXIT_OK && restart && tci_replay_restart(journal, cli->argument, &error) < 0)
        status = cli_fail(&error);
    else if (status == CLI_EXIT_OK && !restart)
        status = show_session(cli, journal);
    tci_journal_close(journal);
    return status;
}
