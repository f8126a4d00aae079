/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: a result from its first moment to its last, and the table of verdicts.
 * Trusts: its caller with ids; nothing about the bytes that come from the cage.
 * Invariant: texts that the public header says are never NULL are not, from the beginning.
 */
#include "core/result.h"

#include <ctype.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/utf8.h"
#include "base/uuid.h"

/* ---- verdicts ----------------------------------------------------------------------------- */

enum { OF_COMMAND = -1, OF_REFUSAL = -2, refused = 125, not_executable = 126, not_found = 127 };

static const struct {
    const char *name;
    int exit_status;
    const char *sentence;
} verdicts[] = {
#define X(verdict, name, exit_status, sentence) [verdict] = { name, exit_status, sentence },
#include "core/verdicts.def"
#undef X
};

static size_t known(enum tc_verdict verdict)
{
    return (size_t)verdict < tci_array_size(verdicts) ? (size_t)verdict : TC_VERDICT_ERROR;
}

const char *tc_verdict_name(enum tc_verdict verdict)
{
    return verdicts[known(verdict)].name;
}

const char *tci_verdict_sentence(enum tc_verdict verdict)
{
    return verdicts[known(verdict)].sentence;
}

int tc_result_exit_status(const struct tc_result *result)
{
    int status = verdicts[known(result->verdict)].exit_status;

    if (status == OF_REFUSAL)
        return result->exit_code == not_executable || result->exit_code == not_found
                   ? result->exit_code
                   : refused;
    if (status != OF_COMMAND)
        return status;
    if (result->signal > 0)
        return (128 + result->signal) & 255;
    return result->exit_code >= 0 ? result->exit_code & 255 : refused;
}

const char *tci_signal_name(int signal, char buffer[TCI_SIGNAL_NAME_MAX])
{
    const char *name = signal > 0 ? sigabbrev_np(signal) : NULL;

    if (name)
        (void)snprintf(buffer, TCI_SIGNAL_NAME_MAX, "SIG%s", name);
    else if (signal >= SIGRTMIN && signal <= SIGRTMAX)
        (void)snprintf(buffer, TCI_SIGNAL_NAME_MAX, "SIGRTMIN+%d", signal - SIGRTMIN);
    else
        (void)snprintf(buffer, TCI_SIGNAL_NAME_MAX, "SIG%d", signal);
    return buffer;
}

/* ---- life --------------------------------------------------------------------------------- */

bool tci_trace_id_is_valid(const char *trace_id)
{
    return strlen(trace_id) == 32 && strspn(trace_id, "0123456789abcdefABCDEF") == 32 &&
           strspn(trace_id, "0") < 32;
}

static int set_ids(struct tc_result *result, const char *trace_id)
{
    if (tci_uuid7(result->call_id) < 0)
        return -1;
    if (!trace_id)
        return tci_random_hex(16, result->trace_id);
    /* One id has one spelling: others look for it as text. */
    for (size_t i = 0; i + 1 < sizeof result->trace_id && trace_id[i]; i++)
        result->trace_id[i] = (char)tolower((unsigned char)trace_id[i]);
    return 0;
}

struct tci_result *tci_result_new(const char *trace_id)
{
    struct tci_result *result = calloc(1, sizeof *result);

    if (!result)
        return NULL;
    result->public = (struct tc_result){
        .backend = "",
        .layers = "",
        .verdict = TC_VERDICT_ERROR,
        .exit_code = -1,
        .stdout_data = "",
        .stderr_data = "",
    };
    result->arena = tci_arena_new();
    if (!result->arena || set_ids(&result->public, trace_id) < 0) {
        tc_result_free(&result->public);
        return NULL;
    }
    return result;
}

void tc_result_free(struct tc_result *public)
{
    struct tci_result *result = (struct tci_result *)public;

    if (!result)
        return;
    tci_buf_free(&result->output[0]);
    tci_buf_free(&result->output[1]);
    tci_arena_free(result->arena);
    free(result->json);
    free(result);
}

const char *tc_result_json(struct tc_result *public)
{
    struct tci_result *result = (struct tci_result *)public;

    if (!result->json)
        result->json = tci_result_write(public);
    return result->json;
}

/* ---- filling ------------------------------------------------------------------------------ */

/* Takes a character off the end that was cut in half, so that a message does not end in rubbish. */
static void drop_half_character(char *text)
{
    size_t length = strlen(text), start = length;
    uint32_t code_point;

    while (start > 0 && length - start < 4 && (text[start - 1] & 0xc0) == 0x80)
        start--;
    if (start > 0 && (text[start - 1] & 0x80) &&
        tci_utf8_decode(text + start - 1, length - start + 1, &code_point) == 0)
        text[start - 1] = '\0';
}

void tci_result_verdict(struct tci_result *result, enum tc_verdict verdict, const char *fix,
                        const char *format, ...)
{
    struct tc_result *public = &result->public;
    va_list args;

    public->verdict = verdict;
    va_start(args, format);
    if ((size_t)vsnprintf(public->reason, sizeof public->reason, format, args) >=
        sizeof public->reason)
        drop_half_character(public->reason);
    va_end(args);
    if ((size_t)snprintf(public->fix, sizeof public->fix, "%s", fix ? fix : "") >=
        sizeof public->fix)
        drop_half_character(public->fix);
}

/* Its place in the list, or the place behind the last one. */
static size_t find_denial(const struct tc_result *public, const struct tc_denial *denial)
{
    size_t i = 0;
    while (i < public->denial_count && (strcmp(public->denials[i].target, denial->target) != 0 ||
                                        strcmp(public->denials[i].kind, denial->kind) != 0 ||
                                        strcmp(public->denials[i].rule, denial->rule) != 0))
        i++;
    return i;
}

static int grow_denials(struct tci_result *result)
{
    size_t count = result->public.denial_count;
    size_t room = result->denial_room ? 2 * result->denial_room : 8;
    struct tc_denial *denials = tci_arena_new_array(result->arena, room, struct tc_denial);
    uint64_t *times = tci_arena_new_array(result->arena, room, uint64_t);

    if (!denials || !times)
        return -1;
    if (count > 0) {
        memcpy(denials, result->denials, count * sizeof *denials);
        memcpy(times, result->denial_times, count * sizeof *times);
    }
    result->public.denials = result->denials = denials;
    result->public.denial_times = result->denial_times = times;
    result->denial_room = room;
    return 0;
}

static int append_denial(struct tci_result *result, struct tc_denial denial)
{
    if (result->public.denial_count == result->denial_room && grow_denials(result) < 0)
        return -1;
    denial.kind = tci_arena_strdup(result->arena, denial.kind);
    denial.target = tci_arena_strdup(result->arena, denial.target);
    denial.rule = tci_arena_strdup(result->arena, denial.rule);
    if (!denial.kind || !denial.target || !denial.rule)
        return -1;
    result->denials[result->public.denial_count++] = denial;
    return 0;
}

int tci_result_deny_times(struct tci_result *result, const char *kind, const char *target,
                          const char *rule, uint64_t times)
{
    static const struct tc_denial more = { "more", "", "only the first 256 denials are listed" };
    struct tc_denial denial = { kind, target, rule };
    size_t place = find_denial(&result->public, &denial);

    if (place >= TCI_DENIALS_MAX) {
        place = TCI_DENIALS_MAX;
        denial = more;
    }
    if (place == result->public.denial_count && append_denial(result, denial) < 0)
        return -1;
    result->denial_times[place] += times;
    return 0;
}

int tci_result_deny(struct tci_result *result, const char *kind, const char *target,
                    const char *rule)
{
    return tci_result_deny_times(result, kind, target, rule, 1);
}

int tci_result_keep(struct tci_result *result, enum tc_stream stream, const char *bytes,
                    size_t length)
{
    struct tc_result *public = &result->public;
    bool is_stdout = stream == TC_STREAM_STDOUT;
    struct tci_buf *kept = &result->output[is_stdout ? 0 : 1];
    int *truncated = is_stdout ? &public->stdout_truncated : &public->stderr_truncated;
    /* Once cut, a stream stays cut: what comes later would follow a hole that nobody sees. */
    size_t room = *truncated ? 0 : result->output_room < SIZE_MAX ? result->output_room : SIZE_MAX;
    size_t taken = length < room ? length : room;

    *(is_stdout ? &public->stdout_bytes : &public->stderr_bytes) += length;
    if (taken < length)
        *truncated = 1;
    if (taken > 0) {
        kept->maximum = SIZE_MAX / 4;
        tci_buf_append(kept, bytes, taken);
        if (tci_buf_check(kept, NULL) < 0)
            return -1;
        result->output_room -= taken;
        *(is_stdout ? &public->stdout_data : &public->stderr_data) = kept->data;
        *(is_stdout ? &public->stdout_length : &public->stderr_length) = kept->length;
    }
    return *truncated;
}
