/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what a call brings back besides its verdict: usage, and files that `outputs` names. */
#include "core/call.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include "base/clock.h"
#include "base/quote.h"
#include "core/extract.h"

int tci_call_open_out(const char *path, int *ret, struct tc_error *reterr)
{
    char quoted[TCI_QUOTE_MAX];
    if (mkdir(path, 0777) < 0 && errno != EEXIST) {
        tci_error_set(reterr, TC_ERROR_USAGE, "cannot make the directory for files %s: %s",
                      tci_quote(path, strlen(path), quoted), strerrordesc_np(errno));
        tci_error_remedy(reterr, "name a directory whose parent exists and can be written");
        return -1;
    }
    *ret = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*ret < 0) {
        tci_error_set(reterr, TC_ERROR_USAGE, "cannot open the directory for files %s: %s",
                      tci_quote(path, strlen(path), quoted), strerrordesc_np(errno));
        tci_error_remedy(reterr, "name a directory that can be read and written");
        return -1;
    }
    return 0;
}

static int open_in_cage(void *context, const char *path, struct tc_error *reterr)
{
    const struct tc_call *call = context;
    return call->plan->backend->open_directory(call->run, path, reterr);
}

/* A failure to bring files back must not look like success; nor may it hide the tool's own. */
static int cannot_extract(struct tc_call *call, const struct tc_error *error,
                          struct tc_error *reterr)
{
    if (error->code == TC_ERROR_NO_MEMORY)
        return tci_error_no_memory(reterr);
    if (call->result->public.verdict == TC_VERDICT_OK)
        tci_result_verdict(call->result, TC_VERDICT_ERROR, error->remedy,
                           "the files could not be brought back: %s", error->message);
    else if (tci_result_deny(call->result, "output", call->out_path ? call->out_path : "",
                             error->message) < 0)
        return tci_error_no_memory(reterr);
    return 0;
}

static int add_extracted(struct tci_result *result, const struct tci_extracted *found,
                         struct tc_error *reterr)
{
    result->public.files = found->files;
    result->public.file_count = found->count;
    for (size_t i = 0; i < found->skipped_count; i++)
        if (tci_result_deny(result, found->skipped[i].kind, found->skipped[i].target,
                            found->skipped[i].rule) < 0)
            return tci_error_no_memory(reterr);
    return 0;
}

static int bring_files(struct tc_call *call, struct tc_error *reterr)
{
    const struct tci_settings *s = &call->plan->narrowed.settings;
    const struct tci_outputs *outputs = &s->outputs;
    struct tci_arena *arena = call->result->arena;
    const char **globs = tci_arena_new_array(arena, outputs->globs.count, const char *);
    struct tci_extracted found = { 0 };
    struct tc_error error = { 0 };
    struct tci_extract what = {
        .globs = globs,
        .glob_count = outputs->globs.count,
        .cwd = s->filesystem.cwd       ? s->filesystem.cwd
               : s->filesystem.scratch ? "/tmp"
                                       : "/",
        .max_file = outputs->max_file,
        .max_files = outputs->max_files,
        .out = call->out,
        .out_path = call->out_path,
        .open_directory = open_in_cage,
        .context = call,
    };
    if (call->plan->backend->reader)
        what.reader = call->plan->backend->reader(call->run);

    if (!globs)
        return tci_error_no_memory(reterr);
    for (size_t i = 0; i < outputs->globs.count; i++)
        globs[i] = outputs->globs.items[i].text;
    if (tci_extract(&what, arena, &found, &error) < 0)
        return cannot_extract(call, &error, reterr);
    return add_extracted(call->result, &found, reterr);
}

/* Did a command run, so that its files mean something? */
static bool has_run(const struct tc_call *call, const struct tc_outcome *outcome)
{
    return call->cause != TCI_CAUSE_CANCEL && call->cause != TCI_CAUSE_CALLER &&
           (outcome->end == TCI_END_EXITED || outcome->end == TCI_END_SIGNALED);
}

int tci_call_collect(struct tc_call *call, const struct tc_outcome *outcome,
                     struct tc_error *reterr)
{
    struct tc_usage *usage = &call->result->public.usage;
    *usage = outcome->usage;
    usage->duration_us = tci_clock_us() - call->started;
    if (!call->plan->narrowed.settings.outputs.globs.count || !has_run(call, outcome))
        return 0;
    return bring_files(call, reterr);
}
