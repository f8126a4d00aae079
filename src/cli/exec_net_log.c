/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: `--net-log`: a line on standard error for each connection, its end, and each refusal, while the
 * command runs.
 * The attacks: a name that acts on the terminal of the reader, so everything is escaped; and a cage that
 * asks for refused hosts without end, to fill a log or our memory, so a repeated refusal is shown again
 * only when it has become ten times as frequent, and lines that nobody reads are counted, not kept.
 */
#include "cli/exec.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { pending_max = 65536 };

/* ---- numbers ------------------------------------------------------------------------------ */

static void print_size(FILE *stream, uint64_t bytes)
{
    static const char *const units[] = { "kB", "MB", "GB", "TB" };
    double value = (double)bytes / 1000;
    size_t i = 0;

    if (bytes < 1000) {
        (void)fprintf(stream, "%" PRIu64 " B", bytes);
        return;
    }
    while (value >= 999.95 && i + 1 < tci_array_size(units)) {
        value /= 1000;
        i++;
    }
    (void)fprintf(stream, "%.1f %s", value, units[i]);
}

static void print_duration(FILE *stream, uint64_t microseconds)
{
    if (microseconds < 9950)
        (void)fprintf(stream, "%.1f ms", (double)microseconds / 1000);
    else if (microseconds < 999500)
        (void)fprintf(stream, "%.0f ms", (double)microseconds / 1000);
    else
        (void)fprintf(stream, "%.1f s", (double)microseconds / 1000000);
}

/* ---- one line ----------------------------------------------------------------------------- */

static const struct {
    const char *kind, *colour;
} colours[] = {
    { "opened", "\033[32m" },
    { "closed", "\033[36m" },
    { "refused", "\033[31m" },
    { "failed", "\033[33m" },
};

static void print_kind(FILE *stream, const char *kind, bool with_colours)
{
    const char *colour = "";
    for (size_t i = 0; with_colours && i < tci_array_size(colours); i++)
        if (strcmp(kind, colours[i].kind) == 0)
            colour = colours[i].colour;
    (void)fprintf(stream, "net: %s%s%s ", colour, kind, *colour ? "\033[0m" : "");
}

static void print_joined(FILE *stream, const char *before, const char *text, const char *after)
{
    if (!*text)
        return;
    (void)fputs(before, stream);
    cli_print_line(stream, text);
    (void)fputs(after, stream);
}

void exec_net_line(FILE *stream, const struct tc_network_event *event, bool with_colours)
{
    bool is_refused = strcmp(event->kind, "refused") == 0;
    char target[TCI_NETWORK_TARGET_MAX];

    print_kind(stream, event->kind, with_colours);
    cli_print_line(stream, tci_network_target(event, target));
    if (strcmp(event->kind, "closed") == 0) {
        (void)fputc(' ', stream);
        print_size(stream, event->bytes_in);
        (void)fputs(" in, ", stream);
        print_size(stream, event->bytes_out);
        (void)fputs(" out, ", stream);
        print_duration(stream, event->duration_us);
        print_joined(stream, "; ", event->reason, "");
        return;
    }
    if (strcmp(event->address, event->host) != 0)
        print_joined(stream, " (", event->address, ")");
    if (strcmp(event->kind, "opened") == 0) {
        print_joined(stream, " by \"", event->rule, "\"");
        return;
    }
    if (is_refused && event->count > 1)
        (void)fprintf(stream, ", %" PRIu64 " times", event->count);
    print_joined(stream, ": ", event->reason, "");
    if (is_refused)
        print_joined(stream, *event->reason ? "; " : ": ", event->fix, "");
}

/* ---- the log ------------------------------------------------------------------------------ */

/* The first, the tenth, the hundredth, ... time. */
static bool is_worth_a_line(const struct tc_network_event *event)
{
    uint64_t count = event->count;
    if (strcmp(event->kind, "refused") != 0)
        return true;
    while (count >= 10 && count % 10 == 0)
        count /= 10;
    return count <= 1;
}

/* How many bytes of lines wait for a reader. */
static size_t pending(const struct exec_writer *out)
{
    return out->pending.length - out->done;
}

static void write_line(struct exec_net_log *log, const struct tc_network_event *event)
{
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    bool failed;

    if (!stream) {
        log->lost++;
        return;
    }
    if (event)
        exec_net_line(stream, event, log->colours);
    else
        (void)fprintf(stream, "net: %" PRIu64 " lines were lost: nobody read them in time",
                      log->lost);
    /* A terminal that hands on keys as they are does not add a carriage return by itself. */
    (void)fputs(log->terminal && log->terminal->raw ? "\r\n" : "\n", stream);
    failed = ferror(stream);
    failed |= fclose(stream) != 0;
    if (failed)
        log->lost++;
    else
        (void)exec_writer_write(log->out, text, length); /* its `problem` says so if it fails */
    free(text);
}

void exec_net_log_end(struct exec_net_log *log)
{
    if (log->lost)
        write_line(log, NULL);
    log->lost = 0;
}

void exec_net_log(struct exec_net_log *log, const struct tc_network_event *event)
{
    if (!is_worth_a_line(event))
        return;
    if (pending(log->out) > pending_max) {
        log->lost++;
        return;
    }
    exec_net_log_end(log);
    write_line(log, event);
}
