/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: `toolcage journal show`: rows as a table or as JSON (schemas/journal.json), and one record in
 * full. What a journal holds was written by models and tools: every part of it is printed escaped.
 */
#include "cli/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include "base/moment.h"
#include "base/utf8.h"
#include "json/canonical.h"
#include "json/write.h"

enum {
    rows_for_people = 20,
    row_max = 256 * 1024 * 1024, /* of JSON; a row's texts are far smaller */
    session_min = 14,
    session_max = 47, /* "mcp-", a UUID and "-server": replay wants all of it */
    indent_max = 64,  /* levels that are shown by blanks */
    depth_max = 128,  /* of JSON that is shown as such: readers have limits, too */
};

struct show {
    bool json, full;
    size_t session_width;    /* of the table */
    uint64_t shown, changed; /* changed: rows that are not what was recorded */
    struct tci_buf scratch;
};

/* ---- for people --------------------------------------------------------------------------- */

/* One cell: at most `width` characters, padded. A cut cell ends with "~". */
static void print_cell(const char *text, size_t width)
{
    char piece[5];
    size_t used = 0, length = strlen(text);
    for (size_t i = 0; i < length && used < width;) {
        uint32_t c = 0;
        size_t size = tci_utf8_decode(text + i, length - i, &c);
        size = size ? size : 1;
        if (used == width - 1 && i + size < length) {
            (void)fputc('~', stdout);
        } else {
            memcpy(piece, text + i, size);
            piece[size] = '\0';
            cli_print_line(stdout, piece);
        }
        i += size;
        used++;
    }
    (void)printf("%*s", (int)(width - used) + 1, "");
}

static const char *moment_text(int64_t us, char buffer[TCI_MOMENT_TEXT_MAX])
{
    return tci_moment_format(us / 1000000, buffer);
}

static double milliseconds(const struct tci_journal_entry *entry)
{
    return (double)(entry->ended_us - entry->started_us) / 1000;
}

static void print_row(const struct tci_journal_row *row, int session_width, bool first)
{
    const struct tci_journal_entry *entry = &row->entry;
    char moment[TCI_MOMENT_TEXT_MAX], number[32];
    bool is_call = strcmp(entry->kind, "call") == 0;

    if (first)
        (void)printf("%8s %-20s %-*s %-16s %-12s %-14s %9s CALL\n", "ROW", "STARTED", session_width,
                     "SESSION", "TOOL", "AGENT", "VERDICT", "MS");
    (void)printf("%8" PRIu64 " ", row->row);
    print_cell(moment_text(entry->started_us, moment), 20);
    print_cell(*entry->session ? entry->session : "-", (size_t)session_width);
    print_cell(*entry->tool ? entry->tool : "-", 16);
    print_cell(*entry->agent ? entry->agent : "-", 12);
    print_cell(is_call ? entry->verdict : entry->kind, 14);
    (void)snprintf(number, sizeof number, "%.1f", milliseconds(entry));
    (void)printf("%9s ", is_call ? number : "-");
    cli_print_line(stdout, *entry->call_id ? entry->call_id : "-");
    (void)fputc('\n', stdout);
}

static void print_member(const char *name, const char *value)
{
    (void)printf("%-13s ", name);
    cli_print_line(stdout, *value ? value : "-");
    (void)fputc('\n', stdout);
}

static bool is_deep(const char *text)
{
    unsigned depth = 0;
    bool in_string = false;
    for (const char *p = text; *p && depth <= depth_max; p++) {
        if (in_string && *p == '\\' && p[1])
            p++;
        else if (*p == '"')
            in_string = !in_string;
        else if (!in_string && (*p == '{' || *p == '['))
            depth++;
        else if (!in_string && (*p == '}' || *p == ']') && depth > 0)
            depth--;
    }
    return depth > depth_max;
}

/* A text may be anything, in a file of a stranger's: pasted into ours, it could add members. */
static bool is_json(const char *text)
{
    json_t *value = is_deep(text) ? NULL : tci_json_read(text, strlen(text), NULL);
    json_decref(value);
    return value;
}

static void new_line(struct tci_buf *out, unsigned depth)
{
    tci_buf_printf(out, "\n%*s", (int)(2 * (depth < indent_max ? depth : indent_max)), "");
}

/* Canonical JSON with a line for each member. Texts stay as they are: their escapes keep a line break
 * in them from looking like one of ours. */
static void print_json(const char *name, const char *text)
{
    tc_cleanup(tci_buf_free) struct tci_buf out = TCI_BUF_INIT(row_max);
    unsigned depth = 0;
    bool in_string = false;

    if (!text) {
        (void)printf("%-13s only the hash is kept\n", name);
        return;
    }
    if (!is_json(text)) {
        (void)printf("%s (not JSON, or too deep):\n", name);
        cli_print_line(stdout, text);
        (void)fputc('\n', stdout);
        return;
    }
    for (const char *p = text; *p && !out.too_large; p++) {
        bool opens = *p == '{' || *p == '[', closes = *p == '}' || *p == ']';
        bool empty = opens && (p[1] == '}' || p[1] == ']');
        if (in_string || *p == '"') {
            in_string = *p == '"' ? !in_string : in_string;
            tci_buf_char(&out, *p);
            if (in_string && *p == '\\' && p[1])
                tci_buf_char(&out, *++p);
            continue;
        }
        if (closes && p > text && p[-1] != '{' && p[-1] != '[')
            new_line(&out, --depth);
        tci_buf_char(&out, *p);
        if (*p == ':')
            tci_buf_char(&out, ' ');
        if ((opens && !empty) || *p == ',')
            new_line(&out, depth += opens ? 1 : 0);
    }
    (void)printf("%s:\n", name);
    if (tci_buf_check(&out, NULL) == 0)
        cli_print_safe(stdout, out.data, out.length);
    else
        cli_print_line(stdout, text);
    (void)fputc('\n', stdout);
}

static void print_problem(const struct tci_journal_row *row, const char *problem)
{
    (void)printf("row %" PRIu64 " is not what was recorded: ", row->row);
    cli_print_line(stdout, problem);
    (void)fputc('\n', stdout);
}

static void print_full(const struct tci_journal_row *row)
{
    const struct tci_journal_entry *entry = &row->entry;
    char moment[TCI_MOMENT_TEXT_MAX];

    print_member("call", entry->call_id);
    print_member("kind", entry->kind);
    (void)printf("row           %" PRIu64 "\nstep          %" PRIu64 "\n", row->row, row->step);
    print_member("session", entry->session);
    print_member("tool", entry->tool);
    print_member("agent", entry->agent);
    print_member("verdict", entry->verdict);
    print_member("started", moment_text(entry->started_us, moment));
    (void)printf("took          %.3f ms\n", milliseconds(entry));
    print_member("policy", entry->policy_hash);
    print_member("request hash", entry->request_hash);
    print_member("result hash", entry->result_hash);
    print_member("row before", row->row_before);
    print_member("previous", row->previous);
    print_member("state hash", row->state_hash);
    print_json("grants", entry->grants);
    print_json("request", entry->request);
    print_json("result", entry->result);
}

/* ---- JSON --------------------------------------------------------------------------------- */

static void write_text(struct tci_json *json, const char *name, const char *text)
{
    if (!text)
        tci_json_value(json, name, "null");
    else if (is_json(text))
        tci_json_value(json, name, text);
    else
        tci_json_string(json, name, text);
}

static void write_row(struct tci_json *json, const struct tci_journal_row *row, const char *problem,
                      bool full)
{
    const struct tci_journal_entry *entry = &row->entry;
    char moment[TCI_MOMENT_TEXT_MAX];

    tci_json_object_begin(json, NULL);
    tci_json_unsigned(json, "row", row->row);
    tci_json_string(json, "kind", entry->kind);
    tci_json_string(json, "call_id", entry->call_id);
    tci_json_string(json, "session", entry->session);
    tci_json_unsigned(json, "step", row->step);
    tci_json_string(json, "tool", entry->tool);
    tci_json_string(json, "agent", entry->agent);
    tci_json_string(json, "verdict", entry->verdict);
    tci_json_string(json, "started", moment_text(entry->started_us, moment));
    tci_json_integer(json, "started_us", entry->started_us);
    tci_json_integer(json, "ended_us", entry->ended_us);
    tci_json_string(json, "request_hash", entry->request_hash);
    tci_json_string(json, "result_hash", entry->result_hash);
    tci_json_string(json, "policy_hash", entry->policy_hash);
    write_text(json, "grants", entry->grants && *entry->grants ? entry->grants : "[]");
    tci_json_string(json, "row_before", row->row_before);
    tci_json_string(json, "previous", row->previous);
    tci_json_string(json, "state_hash", row->state_hash);
    if (full) {
        write_text(json, "request", entry->request);
        write_text(json, "result", entry->result);
    }
    if (problem)
        tci_json_string(json, "problem", problem);
    tci_json_object_end(json);
}

/* A row at a time: a journal is larger than memory may be. */
static int print_row_json(const struct tci_journal_row *row, const char *problem, struct show *show,
                          struct tc_error *reterr)
{
    tc_cleanup(tci_buf_free) struct tci_buf out = TCI_BUF_INIT(row_max);
    struct tci_json json = { .out = &out };
    write_row(&json, row, problem, show->full);
    if (tci_buf_check(&out, reterr) < 0)
        return -1;
    (void)fputs(show->shown ? ",\n" : "\n", stdout);
    (void)fwrite(out.data, 1, out.length, stdout);
    return 0;
}

/* ------------------------------------------------------------------------------------------- */

static int show_row(void *context, const struct tci_journal_row *row, struct tc_error *reterr)
{
    struct show *show = context;
    struct tc_error failed = { 0 };
    const char *problem = tci_journal_row_check(row, &show->scratch, &failed);
    int r = 0;

    if (failed.code != TC_ERROR_NONE)
        return tci_error_no_memory(reterr);
    if (show->json) {
        r = print_row_json(row, problem, show, reterr);
    } else if (show->full) {
        if (show->shown)
            (void)fputc('\n', stdout);
        print_full(row);
    } else {
        print_row(row, (int)show->session_width, show->shown == 0);
    }
    if (problem && !show->json)
        print_problem(row, problem);
    show->changed += problem ? 1 : 0;
    show->shown++;
    return r < 0 ? r : (ferror(stdout) ? 1 : 0); /* nobody reads any more: stop */
}

static int measure_row(void *context, const struct tci_journal_row *row, struct tc_error *reterr)
{
    struct show *show = context;
    size_t length = strlen(row->entry.session);
    (void)reterr;
    if (length > show->session_width)
        show->session_width = length < session_max ? length : session_max;
    return show->session_width == session_max ? 1 : 0;
}

int cli_journal_show(const struct cli_call *call, const char *call_id)
{
    tc_cleanup(tci_journal_closep) struct tci_journal *journal = NULL;
    struct show show = { .json = cli_given(call, CLI_JSON),
                         .full = call_id,
                         .session_width = session_min,
                         .scratch = TCI_BUF_INIT(row_max) };
    struct tci_journal_query query = {
        .session = call->values[CLI_SESSION],
        .tool = call->values[CLI_TOOL],
        .agent = call->values[CLI_AGENT],
        .verdict = call->values[CLI_VERDICT],
        .call_id = call_id,
        .last = show.json || call_id ? 0 : rows_for_people,
    };
    struct tci_buf rest = TCI_BUF_INIT(64);
    struct tc_error error = { 0 };
    int status, r = 0;

    if (cli_given(call, CLI_LAST) && !cli_number(call, CLI_LAST, &query.last))
        return CLI_EXIT_REFUSED;
    status = cli_journal_open(call, NULL, TCI_JOURNAL_READ_ONLY, &journal);
    if (status != CLI_EXIT_OK)
        return status;
    if (show.json)
        (void)fputs("{\"rows\":[", stdout);
    if (!show.json && !show.full)
        r = tci_journal_each(journal, &query, measure_row, &show, &error);
    if (r >= 0)
        r = tci_journal_each(journal, &query, show_row, &show, &error);
    tci_buf_free(&show.scratch);
    if (r < 0) {
        (void)fflush(stdout);
        return cli_fail(&error);
    }
    if (!show.shown && call_id && !show.json)
        (void)fputs("the journal has no such call\n", stdout);
    tci_buf_string(&rest, show.json ? "\n]}\n" : "");
    return cli_output(&rest, !show.json,
                      show.changed || (!show.shown && call_id) ? CLI_EXIT_FINDINGS : CLI_EXIT_OK);
}
