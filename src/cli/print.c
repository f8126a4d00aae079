/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: everything that is written to a terminal or a pipe.
 * The attack: a policy, a path or a message holds escape sequences or bidirectional overrides, and
 * what a person reads is not what is there. Such characters are printed as <U+XXXX>.
 */
#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/utf8.h"

static bool is_harmless(uint32_t c, bool one_line)
{
    if (c == '\n' || c == '\t')
        return !one_line;
    if (c < 0x20 || (c >= 0x7f && c <= 0x9f))
        return false;
    return !tci_utf8_is_deceptive(c);
}

static void print_safe(FILE *stream, const char *text, size_t length, bool one_line)
{
    for (size_t i = 0; i < length;) {
        uint32_t c = 0;
        size_t size = tci_utf8_decode(text + i, length - i, &c);
        if (size && is_harmless(c, one_line))
            (void)fwrite(text + i, 1, size, stream);
        else if (size)
            (void)fprintf(stream, "<U+%04X>", c);
        else
            (void)fprintf(stream, "<\\x%02X>", (unsigned)(unsigned char)text[i]);
        i += size ? size : 1;
    }
}

void cli_print_safe(FILE *stream, const char *text, size_t length)
{
    print_safe(stream, text, length, false);
}

bool cli_colours(FILE *stream)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    if (no_color && *no_color)
        return false;
    return isatty(fileno(stream)) && term && strcmp(term, "dumb") != 0;
}

void cli_print_line(FILE *stream, const char *text)
{
    print_safe(stream, text, strlen(text), true);
}

/* "FILE:LINE:COLUMN: error: MESSAGE [ID]", then the remedy on a line of its own. */
static void print_message(FILE *stream, const char *file, unsigned line, unsigned column,
                          enum tci_severity severity, const char *message, const char *id,
                          const char *remedy)
{
    static const char *const colours[] = { "\033[36m", "\033[33m", "\033[31m" };
    bool colour = cli_colours(stream);

    if (*file) {
        cli_print_line(stream, file);
        if (line)
            (void)fprintf(stream, ":%u:%u", line, column);
        (void)fputs(": ", stream);
    }
    (void)fprintf(stream, "%s%s:%s ", colour ? colours[severity] : "", tci_severity_name(severity),
                  colour ? "\033[0m" : "");
    cli_print_line(stream, message);
    if (*id)
        (void)fprintf(stream, " [%s]", id);
    (void)fputc('\n', stream);
    if (*remedy) {
        (void)fputs("    remedy: ", stream);
        cli_print_line(stream, remedy);
        (void)fputc('\n', stream);
    }
}

void cli_print_findings(FILE *stream, const struct tci_findings *findings)
{
    for (const struct tci_finding *f = findings->first; f; f = f->next)
        print_message(stream, tci_findings_file(findings, f->pos), f->pos.line, f->pos.column,
                      tci_finding_severity(f->id), f->message, tci_finding_name(f->id), f->remedy);
}

int cli_fail(const struct tc_error *error)
{
    print_message(stderr, *error->file ? error->file : "toolcage", error->line, error->column,
                  TCI_SEVERITY_ERROR, error->message, error->id, error->remedy);
    return tc_error_exit_status(error->code);
}

int cli_usage(const char *remedy, const char *format, ...)
{
    struct tc_error error = { .code = TC_ERROR_USAGE };
    va_list args;
    va_start(args, format);
    (void)vsnprintf(error.message, sizeof error.message, format, args);
    va_end(args);
    tci_error_remedy(&error, "%s", remedy);
    return cli_fail(&error);
}

int cli_output(struct tci_buf *out, bool safe, int status)
{
    struct tc_error error = { 0 };
    bool failed;
    int errnum;

    if (tci_buf_check(out, &error) < 0) {
        tci_buf_free(out);
        return cli_fail(&error);
    }
    errno = 0; /* the first failure may be in any of the writes */
    if (safe)
        cli_print_safe(stdout, out->data, out->length);
    else
        (void)fwrite(out->data, 1, out->length, stdout);
    failed = fflush(stdout) != 0 || ferror(stdout);
    errnum = errno ? errno : EIO;
    tci_buf_free(out);
    if (failed) {
        tci_error_errno(&error, errnum, "cannot write to standard output");
        tci_error_remedy(&error, "check where the output goes");
        return cli_fail(&error);
    }
    return status;
}
