/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: findings as JSON and SARIF. */
#include "policy/report.h"

#include "json/write.h"

static void write_finding(struct tci_json *json, const struct tci_findings *findings,
                          const struct tci_finding *f)
{
    tci_json_object_begin(json, NULL);
    tci_json_string(json, "id", tci_finding_name(f->id));
    tci_json_string(json, "severity", tci_severity_name(tci_finding_severity(f->id)));
    if (f->pos.file)
        tci_json_string(json, "file", tci_findings_file(findings, f->pos));
    if (f->pos.line) {
        tci_json_unsigned(json, "line", f->pos.line);
        tci_json_unsigned(json, "column", f->pos.column);
    }
    if (f->tool)
        tci_json_string(json, "tool", f->tool);
    tci_json_string(json, "message", f->message);
    tci_json_string(json, "remedy", f->remedy);
    tci_json_object_end(json);
}

void tci_report_json(const struct tci_findings *findings, struct tci_buf *out)
{
    struct tci_json json = { .out = out, .pretty = true };
    tci_json_object_begin(&json, NULL);
    tci_json_string(&json, "file", findings->file);
    tci_json_unsigned(&json, "errors", findings->count[TCI_SEVERITY_ERROR]);
    tci_json_unsigned(&json, "warnings", findings->count[TCI_SEVERITY_WARNING]);
    tci_json_unsigned(&json, "notes", findings->count[TCI_SEVERITY_NOTE]);
    tci_json_array_begin(&json, "findings");
    for (const struct tci_finding *f = findings->first; f; f = f->next)
        write_finding(&json, findings, f);
    tci_json_array_end(&json);
    tci_json_object_end(&json);
    tci_buf_char(out, '\n');
}

/* ---- SARIF -------------------------------------------------------------------------------- */

static void write_rules(struct tci_json *json)
{
    tci_json_array_begin(json, "rules");
    for (int id = 0; id < TCI_FINDING_COUNT; id++) {
        tci_json_object_begin(json, NULL);
        tci_json_string(json, "id", tci_finding_name((enum tci_finding_id)id));
        tci_json_object_begin(json, "shortDescription");
        tci_json_string(json, "text", tci_finding_title((enum tci_finding_id)id));
        tci_json_object_end(json);
        tci_json_object_begin(json, "defaultConfiguration");
        tci_json_string(json, "level",
                        tci_severity_name(tci_finding_severity((enum tci_finding_id)id)));
        tci_json_object_end(json);
        tci_json_object_end(json);
    }
    tci_json_array_end(json);
}

/* A file name as a URI reference: everything but unreserved bytes and '/' is escaped. */
static void write_uri(struct tci_json *json, const char *file)
{
    tc_cleanup(tci_buf_free) struct tci_buf uri = TCI_BUF_INIT(16384);
    tci_buf_string(&uri, file[0] == '/' ? "file://" : "");
    for (const char *p = file; *p; p++) {
        char c = *p;
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            c == '/' || c == '.' || c == '-' || c == '_' || c == '~')
            tci_buf_char(&uri, c);
        else
            tci_buf_printf(&uri, "%%%02X", (unsigned)(unsigned char)c);
    }
    /* A buffer that failed here must fail the document, not shorten it. */
    json->out->no_memory |= uri.no_memory;
    json->out->too_large |= uri.too_large;
    tci_json_string(json, "uri", uri.data ? uri.data : "");
}

static void write_location(struct tci_json *json, const char *file, struct tci_pos pos)
{
    tci_json_array_begin(json, "locations");
    tci_json_object_begin(json, NULL);
    tci_json_object_begin(json, "physicalLocation");
    tci_json_object_begin(json, "artifactLocation");
    write_uri(json, file);
    tci_json_object_end(json);
    if (pos.line) {
        tci_json_object_begin(json, "region");
        tci_json_unsigned(json, "startLine", pos.line);
        tci_json_unsigned(json, "startColumn", pos.column);
        tci_json_object_end(json);
    }
    tci_json_object_end(json);
    tci_json_object_end(json);
    tci_json_array_end(json);
}

static void write_result(struct tci_json *json, const char *file, const struct tci_finding *f)
{
    tci_json_object_begin(json, NULL);
    tci_json_string(json, "ruleId", tci_finding_name(f->id));
    tci_json_unsigned(json, "ruleIndex", (uint64_t)f->id);
    tci_json_string(json, "level", tci_severity_name(tci_finding_severity(f->id)));
    tci_json_object_begin(json, "message");
    tci_json_printf(json, "text", "%.500s. Remedy: %.500s", f->message, f->remedy);
    tci_json_object_end(json);
    write_location(json, file, f->pos);
    tci_json_object_end(json);
}

void tci_report_sarif(const struct tci_findings *findings, struct tci_buf *out)
{
    struct tci_json json = { .out = out, .pretty = true };
    tci_json_object_begin(&json, NULL);
    tci_json_string(&json, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
    tci_json_string(&json, "version", "2.1.0");
    tci_json_array_begin(&json, "runs");
    tci_json_object_begin(&json, NULL);
    tci_json_object_begin(&json, "tool");
    tci_json_object_begin(&json, "driver");
    tci_json_string(&json, "name", "toolcage lint");
    tci_json_string(&json, "version", tc_version());
    write_rules(&json);
    tci_json_object_end(&json);
    tci_json_object_end(&json);
    tci_json_string(&json, "columnKind", "unicodeCodePoints");
    tci_json_array_begin(&json, "results");
    for (const struct tci_finding *f = findings->first; f; f = f->next)
        write_result(&json, tci_findings_file(findings, f->pos), f);
    tci_json_array_end(&json);
    tci_json_object_end(&json);
    tci_json_array_end(&json);
    tci_json_object_end(&json);
    tci_buf_char(out, '\n');
}
