/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the tests of recording and of replay share: an engine over a journal of its own, and a look
 * into that journal. */
#ifndef TCI_TESTS_RECORD_SUPPORT_H
#define TCI_TESTS_RECORD_SUPPORT_H

#include "call_support.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "journal/journal.h"

static const char policy_text[] = "version = 1\n"
                                  "[defaults]\n"
                                  "timeout = \"20s\"\n"
                                  "[tool.echo]\n"
                                  "command = [\"printf\", \"%s\\n\", \"{word}\"]\n"
                                  "[tool.typed]\n"
                                  "command = [\"cat\"]\n"
                                  "returns = { type = \"object\" }\n"
                                  "[tool.quiet]\n"
                                  "record = false\n"
                                  "command = [\"printf\", \"%s\", \"{word}\"]\n"
                                  "[tool.hashed]\n"
                                  "record = \"hash-only\"\n"
                                  "command = [\"printf\", \"%s\", \"{word}\"]\n"
                                  "[tool.secret]\n"
                                  "redact = [\"/token\", \"/absent\", \"/list/1\"]\n"
                                  "returns = { type = \"object\" }\n"
                                  "command = [\"sh\", \"-c\", \"tee /dev/stderr\"]\n"
                                  "[agent.reader]\n"
                                  "grants = [{ tool = \"echo\", max_calls = 3 }]\n";

/* ---- an engine over a journal of its own -------------------------------------------------- */

struct place {
    char directory[32], journal[64];
    struct tc_policy *policy;
    struct tc_engine *engine;
};

static inline struct tc_engine *open_mode(const struct place *place, enum tc_mode mode,
                                          unsigned flags)
{
    struct tc_engine_options options = {
        .policy = place->policy, .journal_path = place->journal, .mode = mode, .flags = flags
    };
    struct tc_engine *engine = NULL;
    struct tc_error error = { 0 };
    if (tci_engine_open_with(&options, double_for, &engine, &error) < 0)
        fail_msg("%s (%s)", error.message, error.remedy);
    return engine;
}

static inline int open_place(void **state)
{
    static struct place place;
    strcpy(place.directory, "/tmp/test_record.XXXXXX");
    assert_non_null(mkdtemp(place.directory));
    (void)snprintf(place.journal, sizeof place.journal, "%s/journal.db", place.directory);
    place.policy = load_text(policy_text);
    place.engine = open_mode(&place, TC_MODE_LIVE, 0);
    *state = &place;
    return 0;
}

static inline int close_place(void **state)
{
    struct place *place = *state;
    char command[64];
    tc_engine_close(place->engine);
    tc_policy_free(place->policy);
    (void)snprintf(command, sizeof command, "rm -rf %s", place->directory);
    return system(command);
}

static inline struct tc_result *call_tool(struct tc_engine *engine, const char *session,
                                          const char *tool, const char *arguments)
{
    return call(engine, &(struct tc_request){
                            .tool = tool, .session = session, .arguments_json = arguments });
}

/* A copy of the JSON, so that the result can go. */
static inline char *json_of(struct tc_result *result)
{
    char *text = strdup(tc_result_json(result));
    tc_result_free(result);
    return text;
}

/* The JSON of a replayed call, with the one word that may differ put back. */
static inline char *as_live(char *text)
{
    char *mode = strstr(text, "\"mode\":\"replay\"");
    assert_non_null(mode);
    memmove(mode + 8, "live\"", 5);
    memmove(mode + 13, mode + 15, strlen(mode + 15) + 1);
    return text;
}

static inline void assert_same(char *live, char *replayed)
{
    assert_string_equal(as_live(replayed), live);
    free(live);
    free(replayed);
}

static inline int copy_request(void *context, const struct tci_journal_row *row,
                               struct tc_error *reterr)
{
    char **texts = context;
    (void)reterr;
    free(texts[0]);
    free(texts[1]);
    texts[0] = row->entry.request ? strdup(row->entry.request) : NULL;
    texts[1] = row->entry.result ? strdup(row->entry.result) : NULL;
    return 0;
}

/* Request and result of the last record; free both. */
static inline void last_record(struct place *place, char *texts[2])
{
    struct tci_journal_query query = { .kind = "call", .last = 1 };
    texts[0] = texts[1] = NULL;
    assert_int_equal(tci_journal_each(place->engine->journal, &query, copy_request, texts, NULL),
                     0);
}

static inline int count_row(void *context, const struct tci_journal_row *row,
                            struct tc_error *reterr)
{
    (void)row, (void)reterr;
    ++*(int *)context;
    return 0;
}

static inline int count_rows(struct place *place, const char *session)
{
    struct tci_journal_query query = { .kind = "call", .session = session };
    int count = 0;
    assert_int_equal(tci_journal_each(place->engine->journal, &query, count_row, &count, NULL), 0);
    return count;
}

/* Is it anywhere in the files of the journal? */
static inline bool is_stored(const struct place *place, const char *text)
{
    static const char *const parts[] = { "", "-wal", "-shm" };
    bool found = false;
    for (size_t i = 0; i < tci_array_size(parts); i++) {
        char path[80];
        struct stat stat;
        char *bytes;
        int fd;
        (void)snprintf(path, sizeof path, "%s%s", place->journal, parts[i]);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        assert_int_equal(fstat(fd, &stat), 0);
        bytes = malloc((size_t)stat.st_size + 1);
        assert_int_equal(read(fd, bytes, (size_t)stat.st_size), stat.st_size);
        found |= memmem(bytes, (size_t)stat.st_size, text, strlen(text)) != NULL;
        free(bytes);
        close(fd);
    }
    return found;
}

#endif
