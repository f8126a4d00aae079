/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills a journal for tests/e2e/test_journal_cli.py, without cages:
 *
 *   journal_probe FILE < LINES
 *
 * Each line is JSON: {"call": {members of an entry}}, {"grant": {"agent", "tool", "grant": {...}}} or
 * {"revoke": ID}. Prints a line for each: the state hash of a call, the id of a grant, "0" or "1".
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "journal/journal.h"

static const char *text_of(const json_t *object, const char *name, const char *otherwise)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : otherwise;
}

static int append(struct tci_journal *journal, const json_t *call, struct tc_error *error)
{
    char state_hash[TCI_SHA256_TEXT_MAX];
    struct tci_journal_entry entry = {
        .kind = "call",
        .session = text_of(call, "session", ""),
        .call_id = text_of(call, "call_id", ""),
        .tool = text_of(call, "tool", "echo"),
        .agent = text_of(call, "agent", ""),
        .verdict = text_of(call, "verdict", "ok"),
        .started_us = json_integer_value(json_object_get(call, "started_us")),
        .ended_us = json_integer_value(json_object_get(call, "ended_us")),
        .request = text_of(call, "request", "{}"),
        .result = text_of(call, "result", "{}"),
        .policy_hash = text_of(call, "policy_hash", ""),
        .grants = text_of(call, "grants", "[]"),
    };
    tci_sha256_text(entry.request, strlen(entry.request), entry.request_hash);
    tci_sha256_text(entry.result, strlen(entry.result), entry.result_hash);
    if (json_is_true(json_object_get(call, "hash_only")))
        entry.request = entry.result = NULL;
    if (tci_journal_append(journal, &entry, state_hash, error) < 0)
        return -1;
    puts(state_hash);
    return 0;
}

static int grant(struct tci_journal *journal, const json_t *value, struct tc_error *error)
{
    char id[TCI_UUID_TEXT_MAX], *text = json_dumps(json_object_get(value, "grant"), 0);
    int r = tci_journal_grant_add(journal, text_of(value, "agent", ""), text_of(value, "tool", ""),
                                  text ? text : "", id, error);
    free(text);
    if (r == 0)
        puts(id);
    return r;
}

static int obey(struct tci_journal *journal, const json_t *line, struct tc_error *error)
{
    const json_t *value;
    int r;
    if ((value = json_object_get(line, "call")))
        return append(journal, value, error);
    if ((value = json_object_get(line, "grant")))
        return grant(journal, value, error);
    r = tci_journal_grant_revoke(journal, text_of(line, "revoke", ""), error);
    if (r >= 0)
        printf("%d\n", r);
    return r < 0 ? -1 : 0;
}

int main(int argc, char **argv)
{
    struct tci_journal *journal = NULL;
    struct tc_error error = { 0 };
    json_error_t problem;
    json_t *line;
    int r = 0;

    if (argc != 2 || tci_journal_open(argv[1], TCI_JOURNAL_CREATE, &journal, &error) < 0) {
        fprintf(stderr, "journal_probe: %s\n", error.message);
        return 1;
    }
    while (r == 0 && (line = json_loadf(stdin, JSON_DISABLE_EOF_CHECK, &problem))) {
        r = obey(journal, line, &error);
        json_decref(line);
    }
    if (r < 0)
        fprintf(stderr, "journal_probe: %s\n", error.message);
    tci_journal_close(journal);
    return r < 0;
}
