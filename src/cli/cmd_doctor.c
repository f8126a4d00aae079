/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: `toolcage doctor`: the report of the host's features and of each backend, for people and
 * as JSON (schemas/doctor.json). */
#include "cli/cli.h"

#include <string.h>
#include "backend/backend.h"
#include "backend/ready.h"
#include "json/write.h"

enum { doctor_max = 1024 * 1024 };

static bool is_built_in(const char *backend)
{
    /* "oci/crun": who makes the containers of a backend comes behind its name. */
    char name[16];
    int kind;
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(backend, "/"), backend);
    kind = tci_backend_kind_from_name(name);
    return kind >= 0 && tci_backend_for((enum tci_backend_kind)kind);
}

/* ---- text --------------------------------------------------------------------------------- */

static void text_feature(const struct tci_host_feature *feature, struct tci_buf *out)
{
    tci_buf_printf(out, "  %-8s%-22s %s\n", tci_feature_state_name(feature->state),
                   tci_feature_name(feature->id), feature->detail);
}

static void text_missing(const struct tci_host_report *report, const struct tci_missing *missing,
                         struct tci_buf *out)
{
    for (size_t i = 0; i < missing->count; i++) {
        const struct tci_host_feature *feature = &report->features[missing->features[i]];
        tci_buf_printf(out, "              %s: %s\n", tci_feature_name(feature->id),
                       feature->remedy[0] ? feature->remedy : feature->detail);
    }
}

static void text_clauses(const struct tci_host_report *report, const char *backend,
                         struct tci_buf *out)
{
    for (int c = 0; c < TCI_CLAUSE_COUNT; c++) {
        struct tci_keeping keeping;
        tci_backend_keeps(report, backend, (enum tci_clause)c, &keeping);
        if (keeping.keeps == TCI_KEEPS_NO)
            tci_buf_printf(out, "              cannot keep %s: %s\n",
                           tci_clause_name((enum tci_clause)c), keeping.why);
        else if (keeping.keeps == TCI_KEEPS_IF)
            tci_buf_printf(out, "              keeps %s only for some tools: %s\n",
                           tci_clause_name((enum tci_clause)c), keeping.why);
    }
}

static void text_report(const struct tci_host_report *report, struct tci_buf *out)
{
    tci_buf_string(out, "what this host offers\n");
    for (size_t i = 0; i < TCI_FEATURE_COUNT; i++)
        text_feature(&report->features[i], out);
    tci_buf_string(out, "\nwhat each backend could do here\n");
    for (size_t i = 0; i < tci_backend_count(); i++) {
        const char *name = tci_backend_name(i);
        struct tci_missing missing = { 0 };
        bool ready = tci_backend_ready(report, name, &missing);
        tci_buf_printf(out, "  %-10s  %s\n", name, ready ? "the host is ready" : "missing:");
        if (ready)
            text_clauses(report, name, out);
        else
            text_missing(report, &missing, out);
    }
    tci_buf_printf(out, "\nbuilt into toolcage %s:", tc_version());
    for (size_t i = 0; i < tci_backend_count(); i++)
        if (is_built_in(tci_backend_name(i)))
            tci_buf_printf(out, " %s", tci_backend_name(i));
    tci_buf_string(out, "; a tool with another backend is refused\n");
}

/* ---- JSON --------------------------------------------------------------------------------- */

static void json_features(const struct tci_host_report *report, struct tci_json *json)
{
    tci_json_object_begin(json, "features");
    for (size_t i = 0; i < TCI_FEATURE_COUNT; i++) {
        const struct tci_host_feature *feature = &report->features[i];
        tci_json_object_begin(json, tci_feature_name(feature->id));
        tci_json_string(json, "state", tci_feature_state_name(feature->state));
        tci_json_string(json, "detail", feature->detail);
        tci_json_string(json, "purpose", tci_feature_purpose(feature->id));
        if (feature->remedy[0])
            tci_json_string(json, "remedy", feature->remedy);
        tci_json_object_end(json);
    }
    tci_json_object_end(json);
}

static void json_clauses(const struct tci_host_report *report, const char *backend,
                         struct tci_json *json)
{
    static const char *const words[] = {
        [TCI_KEEPS_NO] = "no", [TCI_KEEPS_IF] = "some", [TCI_KEEPS_YES] = "yes"
    };
    tci_json_object_begin(json, "clauses");
    for (int c = 0; c < TCI_CLAUSE_COUNT; c++) {
        struct tci_keeping keeping;
        tci_backend_keeps(report, backend, (enum tci_clause)c, &keeping);
        tci_json_object_begin(json, tci_clause_name((enum tci_clause)c));
        tci_json_string(json, "kept", words[keeping.keeps]);
        if (keeping.keeps == TCI_KEEPS_IF)
            tci_json_string(json, "only_if", tci_fact_name(keeping.fact));
        if (keeping.why[0])
            tci_json_string(json, "why", keeping.why);
        if (keeping.keeps != TCI_KEEPS_YES && keeping.remedy[0])
            tci_json_string(json, "remedy", keeping.remedy);
        tci_json_object_end(json);
    }
    tci_json_object_end(json);
}

static void json_report(const struct tci_host_report *report, struct tci_buf *out)
{
    struct tci_json json = { .out = out, .pretty = true };
    tci_json_object_begin(&json, NULL);
    tci_json_string(&json, "version", tc_version());
    json_features(report, &json);
    tci_json_object_begin(&json, "backends");
    for (size_t i = 0; i < tci_backend_count(); i++) {
        const char *name = tci_backend_name(i);
        struct tci_missing missing = { 0 };
        tci_json_object_begin(&json, name);
        tci_json_bool(&json, "built_in", is_built_in(name));
        tci_json_bool(&json, "host_ready", tci_backend_ready(report, name, &missing));
        tci_json_array_begin(&json, "missing");
        for (size_t m = 0; m < missing.count; m++)
            tci_json_string(&json, NULL, tci_feature_name(missing.features[m]));
        tci_json_array_end(&json);
        json_clauses(report, name, &json);
        tci_json_object_end(&json);
    }
    tci_json_object_end(&json);
    tci_json_object_end(&json);
    tci_buf_char(out, '\n');
}

int cli_run_doctor(const struct cli_call *call)
{
    static struct tci_host_report report; /* large */
    struct tci_buf out = TCI_BUF_INIT(doctor_max);
    bool json = cli_given(call, CLI_JSON);
    tci_host_probe(&report);
    if (json)
        json_report(&report, &out);
    else
        text_report(&report, &out);
    return cli_output(&out, !json, CLI_EXIT_OK);
}
