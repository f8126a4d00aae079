/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: `toolcage journal` and its parts; `show` is in journal_show.c. */
#include "cli/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/moment.h"
#include "base/quote.h"
#include "cli/parts.h"
#include "journal/head.h"
#include "journal/prune.h"
#include "journal/sign.h"
#include "journal/transfer.h"
#include "json/write.h"

enum { answer_max = 65536 };

static int missing(const char *part, const char *what)
{
    char remedy[96];
    (void)snprintf(remedy, sizeof remedy, "write toolcage journal %s %s", part, what);
    return cli_usage(remedy, "\"toolcage journal %s\" needs %s", part, what);
}

/* ---- verify ------------------------------------------------------------------------------- */

static void write_report(const struct tci_journal_report *report, bool by_key, uint64_t signed_row,
                         struct tci_buf *out)
{
    struct tci_json json = { .out = out, .pretty = true };
    tci_json_object_begin(&json, NULL);
    tci_json_bool(&json, "good", report->good);
    tci_json_unsigned(&json, "rows", report->rows);
    tci_json_unsigned(&json, "sessions", report->sessions);
    tci_json_unsigned(&json, "signatures", report->signatures);
    tci_json_string(&json, "head", report->head);
    if (by_key)
        tci_json_unsigned(&json, "signed_row", signed_row);
    if (!report->good) {
        tci_json_object_begin(&json, "bad");
        tci_json_unsigned(&json, "row", report->bad_row);
        tci_json_string(&json, "session", report->bad_session);
        tci_json_unsigned(&json, "step", report->bad_step);
        tci_json_string(&json, "problem", report->problem);
        tci_json_object_end(&json);
    }
    tci_json_object_end(&json);
    tci_buf_char(out, '\n');
}

static void print_report(const struct tci_journal_report *report, bool by_key, uint64_t signed_row)
{
    if (report->good) {
        (void)printf("good: rows %" PRIu64 ", sessions %" PRIu64 ", signatures %" PRIu64
                     "\nhead: %s\n",
                     report->rows, report->sessions, report->signatures, report->head);
        if (by_key)
            (void)printf("signed by the given key: every row up to %" PRIu64 "\n", signed_row);
        return;
    }
    if (report->bad_row)
        (void)printf("bad: row %" PRIu64 ": ", report->bad_row);
    else
        (void)fputs("bad: ", stdout);
    cli_print_line(stdout, report->problem);
    (void)fputc('\n', stdout);
    if (report->bad_step) {
        (void)printf("    it is step %" PRIu64 " of session \"", report->bad_step);
        cli_print_line(stdout, report->bad_session);
        (void)fputs("\"\n", stdout);
    }
    (void)printf("    %" PRIu64 " rows before it are good\n", report->rows);
}

static int run_verify(const struct cli_call *call, const char *file)
{
    tc_cleanup(tci_journal_closep) struct tci_journal *journal = NULL;
    struct tci_buf out = TCI_BUF_INIT(answer_max);
    struct tci_journal_report report = { 0 };
    struct tc_error error = { 0 };
    struct tci_sign_key key;
    bool by_key = cli_given(call, CLI_KEY);
    uint64_t signed_row = 0;
    int status, r;

    if (file && cli_given(call, CLI_JOURNAL))
        return cli_usage("keep one of them", "both FILE and --journal are given");
    if (by_key && tci_sign_key_read_public(call->values[CLI_KEY], &key, &error) < 0)
        return cli_fail(&error);
    status = cli_journal_open(call, file, TCI_JOURNAL_READ_ONLY, &journal);
    if (status != CLI_EXIT_OK)
        return status;
    r = tci_journal_verify(journal, &report, cli_journal_progress, NULL, &error);
    cli_journal_progress_end();
    if (r < 0 || (by_key && report.good &&
                  tci_head_signed_by(journal, &key, &report, &signed_row, &error) < 0))
        return cli_fail(&error);
    if (cli_given(call, CLI_JSON))
        write_report(&report, by_key, signed_row, &out);
    else
        print_report(&report, by_key, signed_row);
    return cli_output(&out, !cli_given(call, CLI_JSON),
                      report.good ? CLI_EXIT_OK : CLI_EXIT_FINDINGS);
}

/* ---- export and import -------------------------------------------------------------------- */

static bool is_standard(const char *file)
{
    return strcmp(file, "-") == 0;
}

static int fail_file(const char *what, const char *file, const char *remedy)
{
    struct tc_error error = { 0 };
    char quoted[TCI_QUOTE_MAX];
    tci_error_errno(&error, errno, "cannot %s %s", what, tci_quote(file, strlen(file), quoted));
    tci_error_remedy(&error, "%s", remedy);
    return cli_fail(&error);
}

static int run_export(const struct cli_call *call, const char *file)
{
    tc_cleanup(tci_journal_closep) struct tci_journal *journal = NULL;
    struct tci_transfer options = { .salt = cli_given(call, CLI_SALT),
                                    .progress = cli_journal_progress };
    bool standard = !file || is_standard(file);
    tc_cleanup(tci_closep) int opened = -1;
    struct tci_transfer_report report;
    struct tc_error error = { 0 };
    int status = cli_journal_open(call, NULL, TCI_JOURNAL_READ_ONLY, &journal), r;

    if (status != CLI_EXIT_OK)
        return status;
    /* O_EXCL: what is there is not overwritten, and a link that somebody put there not followed. */
    if (!standard)
        opened = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (!standard && opened < 0)
        return fail_file("make", file, "give a name that is not taken");
    r = tci_journal_export(journal, standard ? STDOUT_FILENO : opened, &options, &report, &error);
    cli_journal_progress_end();
    if (r == 0 && !standard && fsync(opened) < 0)
        r = tci_error_errno(&error, errno, "cannot write the export");
    if (r < 0) {
        if (!standard)
            (void)unlink(file); /* ours, and not whole */
        return cli_fail(&error);
    }
    if (!standard)
        (void)fprintf(stderr, "exported: rows %" PRIu64 ", head %s\n", report.rows, report.head);
    return CLI_EXIT_OK;
}

static int run_import(const struct cli_call *call, const char *file)
{
    tc_cleanup(tci_journal_closep) struct tci_journal *journal = NULL;
    struct tci_transfer options = { .progress = cli_journal_progress };
    tc_cleanup(tci_closep) int opened = -1;
    struct tci_transfer_report report;
    struct tci_buf out = TCI_BUF_INIT(answer_max);
    struct tc_error error = { 0 };
    int status, r;

    if (!file)
        return missing("import", "FILE");
    if (!is_standard(file))
        opened = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (!is_standard(file) && opened < 0)
        return fail_file("open", file, "give a file that toolcage journal export wrote");
    status = cli_journal_open(call, NULL, TCI_JOURNAL_CREATE, &journal);
    if (status != CLI_EXIT_OK)
        return status;
    r = tci_journal_import(journal, opened < 0 ? STDIN_FILENO : opened, &options, &report, &error);
    cli_journal_progress_end();
    if (r < 0) {
        if (error.line)
            tci_error_place(&error, is_standard(file) ? "standard input" : file, 0, 0);
        return cli_fail(&error);
    }
    tci_buf_printf(&out,
                   "imported: rows %" PRIu64 ", grants in force %" PRIu64 ", signatures %" PRIu64
                   "\nhead: %s\n",
                   report.rows, report.grants, report.signatures, report.head);
    return cli_output(&out, true, CLI_EXIT_OK);
}

/* ---- prune -------------------------------------------------------------------------------- */

static int prune_options(const struct cli_call *call, struct tci_prune *ret)
{
    const char *date = call->values[CLI_BEFORE];
    int64_t moment;
    *ret = (struct tci_prune){ .keep = UINT64_MAX };
    if (!date == !cli_given(call, CLI_KEEP))
        return cli_usage("write --before DATE or --keep N",
                         "\"toolcage journal prune\" needs to know what may go, in one way");
    if (!date)
        return cli_number(call, CLI_KEEP, &ret->keep) ? CLI_EXIT_OK : CLI_EXIT_REFUSED;
    if (!tci_moment_parse(date, strlen(date), &moment) || moment <= 0 ||
        moment > INT64_MAX / 1000000)
        return cli_usage("write 2027-01-01 or 2027-01-01T12:00:00Z", "--before is not a date");
    ret->before_us = moment * 1000000;
    return CLI_EXIT_OK;
}

static int run_prune(const struct cli_call *call, const char *file)
{
    tc_cleanup(tci_journal_closep) struct tci_journal *journal = NULL;
    tc_cleanup(tci_sign_key_forget) struct tci_sign_key key = { 0 };
    struct tci_prune_report report;
    struct tci_prune options;
    struct tci_buf out = TCI_BUF_INIT(answer_max);
    struct tc_error error = { 0 };
    int status = prune_options(call, &options);

    (void)file;
    if (status != CLI_EXIT_OK)
        return status;
    if (cli_given(call, CLI_KEY)) {
        if (tci_sign_key_read_private(call->values[CLI_KEY], &key, &error) < 0)
            return cli_fail(&error);
        options.key = &key;
    }
    status = cli_journal_open(call, NULL, 0, &journal);
    if (status != CLI_EXIT_OK)
        return status;
    if (tci_journal_prune(journal, &options, &report, &error) < 0)
        return cli_fail(&error);
    tci_buf_printf(&out, "removed: rows %" PRIu64 "; left: rows %" PRIu64, report.removed,
                   report.left);
    if (report.removed)
        tci_buf_printf(&out, " from row %" PRIu64 " on, grants in force %" PRIu64, report.first_row,
                       report.grants);
    tci_buf_char(&out, '\n');
    return cli_output(&out, true, CLI_EXIT_OK);
}

/* ---- keys --------------------------------------------------------------------------------- */

static int run_keygen(const struct cli_call *call, const char *file)
{
    const char *path = call->values[CLI_KEY];
    char public_key[TCI_SIGN_KEY_TEXT_MAX];
    struct tc_error error = { 0 };
    struct tci_buf out = TCI_BUF_INIT(answer_max);

    (void)file;
    if (!path || !*path)
        return missing("keygen", "--key FILE");
    if (tci_sign_key_make(path, public_key, &error) < 0)
        return cli_fail(&error);
    tci_buf_printf(&out, "private key: %s (keep it)\npublic key:  %s.pub (hand it out)\n%s\n", path,
                   path, public_key);
    return cli_output(&out, true, CLI_EXIT_OK);
}

static int run_sign(const struct cli_call *call, const char *file)
{
    tc_cleanup(tci_journal_closep) struct tci_journal *journal = NULL;
    tc_cleanup(tci_sign_key_forget) struct tci_sign_key key = { 0 };
    struct tci_head head;
    struct tci_buf out = TCI_BUF_INIT(answer_max);
    struct tc_error error = { 0 };
    int status;

    (void)file;
    if (!cli_given(call, CLI_KEY))
        return missing("sign", "--key FILE");
    if (tci_sign_key_read_private(call->values[CLI_KEY], &key, &error) < 0)
        return cli_fail(&error);
    status = cli_journal_open(call, NULL, 0, &journal);
    if (status != CLI_EXIT_OK)
        return status;
    if (tci_head_sign(journal, &key, &head, &error) < 0)
        return cli_fail(&error);
    tci_buf_printf(&out, "signed: row %" PRIu64 ", head %s\n", head.row, head.state_hash);
    return cli_output(&out, true, CLI_EXIT_OK);
}

/* ---- which part --------------------------------------------------------------------------- */

#define O(id) cli_option_bit(CLI_##id)
static const struct cli_part items[] = {
    { "show", NULL, O(JSON) | O(LAST) | O(SESSION) | O(TOOL) | O(AGENT) | O(VERDICT),
      cli_journal_show },
    { "verify", NULL, O(JSON) | O(KEY), run_verify },
    { "export", NULL, O(SALT), run_export },
    { "import", NULL, 0, run_import },
    { "prune", "remove it", O(BEFORE) | O(KEEP) | O(KEY), run_prune },
    { "keygen", "remove it", O(KEY), run_keygen },
    { "sign", "remove it", O(KEY), run_sign },
};

static const struct cli_parts parts = {
    .items = items,
    .count = tci_array_size(items),
    .options = O(JOURNAL),
    .missing = "say what to do with the journal: show, verify, export, ...",
    .missing_remedy = "see toolcage journal --help",
    .unknown = "has no part",
    .unknown_remedy = "see toolcage journal --help",
};
#undef O

int cli_run_journal(const struct cli_call *call)
{
    return cli_run_part(call, &parts);
}
