/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: `toolcage receipt`: handing out the record of one call, and checking one without a journal. */
#include "cli/journal.h"

#include <inttypes.h>
#include <string.h>
#include "base/file.h"
#include "base/moment.h"
#include "journal/receipt.h"
#include "json/write.h"

enum { answer_max = 65536 };

static void write_json(const struct tci_receipt_report *report, struct tci_buf *out)
{
    struct tci_json json = { .out = out, .pretty = true };
    tci_json_object_begin(&json, NULL);
    tci_json_bool(&json, "good", report->good);
    tci_json_string(&json, "key", report->is_signed ? report->key : NULL);
    tci_json_bool(&json, "by_given_key", report->by_given_key);
    if (report->good) {
        tci_json_string(&json, "call_id", report->call_id);
        tci_json_string(&json, "tool", report->tool);
        tci_json_string(&json, "agent", report->agent);
        tci_json_string(&json, "session", report->session);
        tci_json_string(&json, "verdict", report->verdict);
        tci_json_integer(&json, "started_us", report->started_us);
        tci_json_string(&json, "state_hash", report->state_hash);
        tci_json_bool(&json, "request", report->has_request);
        tci_json_bool(&json, "result", report->has_result);
    } else {
        tci_json_string(&json, "problem", report->problem);
    }
    tci_json_object_end(&json);
    tci_buf_char(out, '\n');
}

/* What it shows, and what it does not: a person must not read more into "good" than there is. */
static void write_proof(const struct tci_receipt_report *report, struct tci_buf *out)
{
    const char *texts = report->has_request && report->has_result ? "request and result"
                        : report->has_request                     ? "request"
                        : report->has_result                      ? "result"
                                                                  : NULL;
    tci_buf_string(out, "    shown: the record gives this state hash, nothing in it was changed\n");
    if (texts)
        tci_buf_printf(out, "    shown: the %s in it %s of the record\n", texts,
                       strchr(texts, ' ') ? "are those" : "is that");
    if (report->by_given_key)
        tci_buf_string(out, "    shown: the holder of the given key signed it\n");
    else if (report->is_signed)
        tci_buf_string(out, "    not shown: whose key it is; check with --key PUBLIC\n");
    else
        tci_buf_string(out, "    not shown: who made it; it is not signed, anybody could have\n");
    tci_buf_string(out, "    not shown: that the journal still holds it, or what came before\n");
}

static void print_part(const char *label, const char *text)
{
    (void)fputs(label, stdout);
    cli_print_line(stdout, *text ? text : "-");
}

/* A receipt is a stranger's: a line break in the name of a tool must not add a line to the answer. */
static void print_text(const struct tci_receipt_report *report, struct tci_buf *out)
{
    char moment[TCI_MOMENT_TEXT_MAX];
    if (!report->good) {
        print_part("bad: ", report->problem);
        tci_buf_char(out, '\n');
        return;
    }
    print_part("good: call ", report->call_id);
    print_part("\n    tool ", report->tool);
    print_part(", agent ", report->agent);
    print_part(", verdict ", report->verdict);
    tci_buf_printf(out, ", begun %s\n    state hash %s\n",
                   tci_moment_format(report->started_us / 1000000, moment), report->state_hash);
    if (report->is_signed)
        tci_buf_printf(out, "    signed by %s\n", report->key);
    write_proof(report, out);
}

static int check(const struct cli_call *call)
{
    tc_cleanup(tci_arena_freep) struct tci_arena *arena = tci_arena_new();
    struct tci_buf out = TCI_BUF_INIT(answer_max);
    struct tci_receipt_report report;
    struct tc_error error = { 0 };
    struct tci_sign_key key;
    char *text = NULL;
    size_t length = 0;
    bool by_key = cli_given(call, CLI_KEY);

    if (call->argument || cli_given(call, CLI_JOURNAL) || cli_given(call, CLI_TEXTS))
        return cli_usage("write toolcage receipt --verify FILE [--key PUBLIC]",
                         "a receipt is checked without a journal");
    if (!arena) {
        tci_error_no_memory(&error);
        return cli_fail(&error);
    }
    if (by_key && tci_sign_key_read_public(call->values[CLI_KEY], &key, &error) < 0)
        return cli_fail(&error);
    if (tci_file_read(arena, call->values[CLI_VERIFY], TCI_RECEIPT_MAX, &text, &length, &error) <
            0 ||
        tci_receipt_check(text, length, by_key ? &key : NULL, &report, &error) < 0)
        return cli_fail(&error);
    if (cli_given(call, CLI_JSON))
        write_json(&report, &out);
    else
        print_text(&report, &out);
    return cli_output(&out, !cli_given(call, CLI_JSON),
                      report.good ? CLI_EXIT_OK : CLI_EXIT_FINDINGS);
}

int cli_run_receipt(const struct cli_call *call)
{
    tc_cleanup(tci_journal_closep) struct tci_journal *journal = NULL;
    tc_cleanup(tci_sign_key_forget) struct tci_sign_key key = { 0 };
    struct tci_buf out = TCI_BUF_INIT(TCI_RECEIPT_MAX);
    struct tc_error error = { 0 };
    bool by_key = cli_given(call, CLI_KEY);
    int status, r;

    if (cli_given(call, CLI_VERIFY))
        return check(call);
    if (!call->argument)
        return cli_usage("write toolcage receipt CALL_ID, or --verify FILE",
                         "the id of a call is missing");
    if (cli_given(call, CLI_JSON))
        return cli_usage("remove it", "a receipt is JSON already");
    if (by_key && tci_sign_key_read_private(call->values[CLI_KEY], &key, &error) < 0)
        return cli_fail(&error);
    status = cli_journal_open(call, NULL, TCI_JOURNAL_READ_ONLY, &journal);
    if (status != CLI_EXIT_OK)
        return status;
    r = tci_receipt_write(journal, call->argument, cli_given(call, CLI_TEXTS), by_key ? &key : NULL,
                          &out, &error);
    if (r == 0)
        return cli_output(&out, false, CLI_EXIT_OK);
    tci_buf_free(&out);
    if (r > 0) {
        tci_error_set(&error, TC_ERROR_USAGE, "the journal has no such call");
        tci_error_remedy(&error, "see toolcage journal show, or name another with --journal");
    }
    return cli_fail(&error);
}
