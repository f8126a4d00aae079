/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the engine's journal, from open to close. An engine that shall record and cannot does not open:
 * nobody finds out after a call that nothing of it was kept.
 */
#include "core/call.h"

#include <stdlib.h>
#include <string.h>
#include "journal/journal.h"

static unsigned flags_of(const struct tc_engine_options *options)
{
    if (options->mode == TC_MODE_LIVE)
        return TCI_JOURNAL_CREATE;
    /* Where a reading stopped is noted in the journal itself. */
    return options->flags & TC_ENGINE_REPLAY_RESUME ? 0 : TCI_JOURNAL_READ_ONLY;
}

int tci_engine_open_journal(struct tc_engine *engine, const struct tc_engine_options *options,
                            struct tc_error *reterr)
{
    if (options->mode != TC_MODE_LIVE && options->mode != TC_MODE_REPLAY)
        return tci_error_set(reterr, TC_ERROR_USAGE, "there is no mode %d", (int)options->mode);
    if (options->journal_path) {
        if (tci_journal_open(options->journal_path, flags_of(options), &engine->journal, reterr) <
            0)
            return -1;
        return options->mode == TC_MODE_LIVE ? tci_journal_writable(engine->journal, 0, reterr) : 0;
    }
    if (options->mode == TC_MODE_LIVE)
        return 0;
    tci_error_set(reterr, TC_ERROR_USAGE, "replay needs a journal to read from");
    tci_error_remedy(reterr, "name the journal that the session was recorded in");
    return -1;
}

void tci_engine_close_journal(struct tc_engine *engine)
{
    tci_engine_replays_free(engine);
    tci_journal_close(engine->journal);
    engine->journal = NULL;
}

int tc_journal_default_path(char **ret_path, struct tc_error *reterr)
{
    char path[TCI_PATH_MAX + 1];
    char *copy;

    tci_error_clear(reterr);
    if (tci_journal_default_path(path, reterr) < 0)
        return -1;
    copy = strdup(path);
    if (!copy)
        return tci_error_no_memory(reterr);
    *ret_path = copy;
    return 0;
}
