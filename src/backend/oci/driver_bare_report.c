/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: a stage's report in one sentence. What a runtime said is shown, cleaned: it may repeat bytes of an
 * image or of a policy, and a terminal must not obey them. */
#include "backend/oci/stage.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum { words_max = 400 };

static const char *const step_texts[] = {
#define X(id, text) text,
    TCI_STAGE_STEPS(X)
#undef X
};

static const char *runtime_name(const struct tci_oci_plan *plan)
{
    static const char *const names[] = { "crun", "runc", "runsc", "the runtime" };
    return names[plan->choice.runtime];
}

static const char *errno_text(int number)
{
    const char *text = strerrordesc_np(number);
    return text ? text : "unknown error";
}

/* ---- what the runtime said --------------------------------------------------------------------------- */

/* The message of a line of structured log (time=... level=error msg="..."), or the line itself. */
static void message_part(const char **line, size_t *length)
{
    static const char key[] = "msg=\"";
    const char *end = *line + *length;
    for (const char *at = *line; at + sizeof key - 1 <= end; at++)
        if (memcmp(at, key, sizeof key - 1) == 0) {
            *line = at + sizeof key - 1;
            *length = (size_t)(end - *line);
            if (*length && (*line)[*length - 1] == '"')
                (*length)--;
            return;
        }
}

/* The last line that says something. */
static void last_line(const char *text, size_t length, const char **ret, size_t *ret_length)
{
    size_t end = length, begin;
    while (end && (text[end - 1] == '\n' || text[end - 1] == '\r' || text[end - 1] == ' '))
        end--;
    begin = end;
    while (begin && text[begin - 1] != '\n')
        begin--;
    *ret = text + begin;
    *ret_length = end - begin;
}

/* Printable ASCII only: no control character, no escape sequence, no half of a character. */
static void clean(const char *text, size_t length, char *ret, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < length && n + 1 < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '\\' && i + 1 < length && text[i + 1] == '"')
            continue; /* a quote in a line of structured log */
        ret[n++] = c >= 0x20 && c < 0x7f ? (char)c : '?';
    }
    ret[n] = '\0';
}

static void explain_end(const struct tci_oci_plan *plan, const struct tci_stage_report *report,
                        struct tc_error *reterr)
{
    char words[words_max];
    const char *line;
    size_t length;
    last_line(report->text, report->text_length, &line, &length);
    message_part(&line, &length);
    clean(line, length, words, sizeof words);
    if (words[0])
        tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "%s could not run the container: %s",
                      runtime_name(plan), words);
    else if (WIFSIGNALED(report->status))
        tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "%s was ended by signal %d", runtime_name(plan),
                      WTERMSIG(report->status));
    else
        tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                      "%s ended with status %d and said nothing about it", runtime_name(plan),
                      WEXITSTATUS(report->status));
    /* A runtime passes descriptors to its children. What other programs of this user keep in their sockets
     * counts, too. */
    if (strstr(words, errno_text(ETOOMANYREFS)))
        tci_error_remedy(reterr,
                         "raise this process's limit on open files (ulimit -n), or find out "
                         "who of this user keeps so many descriptors in sockets");
    else
        tci_error_remedy(reterr, "see \"toolcage doctor\"");
}

/* ---- what the stage says -------------------------------------------------------------------------------- */

static const char *mount_name(const struct tci_oci_plan *plan, uint32_t item)
{
    static const char *const own[] = { "/proc", "/dev", "/sys", TCI_ENTRY_DIRECTORY };
    if (item < plan->mount_count)
        return plan->mounts[item].cage;
    item -= (uint32_t)plan->mount_count;
    return item < tci_array_size(own) ? own[item] : "";
}

static void explain_point(const struct tci_oci_plan *plan, const struct tci_stage_report *report,
                          struct tc_error *reterr)
{
    const char *name = mount_name(plan, report->item);
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                  "%.200s cannot be mounted: in the root directory %.200s there is %s", name,
                  plan->rootfs ? plan->rootfs : "",
                  report->status == ELOOP     ? "a link on the way to it"
                  : report->status == EISDIR  ? "a directory at its place, and it is a file"
                  : report->status == ENOTDIR ? "a file at its place, and it is a directory"
                                              : errno_text(report->status));
    tci_error_remedy(reterr, "grant it at another path of the container (\"HOST:CAGE\")");
}

/* Nothing is made in a granted directory, and no link is followed there. */
static void explain_place(const struct tci_oci_plan *plan, const struct tci_stage_report *report,
                          struct tc_error *reterr)
{
    const bool is_known = report->item < plan->mount_count && plan->mounts[report->item].over;
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "%.200s cannot be mounted: %.300s on the host %s",
                  mount_name(plan, report->item),
                  is_known ? plan->mounts[report->item].over : "its place",
                  report->status == ESTALE    ? "was exchanged since it was checked"
                  : report->status == ELOOP   ? "has become a link"
                  : report->status == ENOENT  ? "has gone since it was checked"
                  : report->status == ENOTDIR ? "has a file on the way to it"
                                              : errno_text(report->status));
    tci_error_remedy(reterr, "call again when nobody changes it (toolcage makes nothing there)");
}

static void explain_overlay(const struct tci_oci_plan *plan, const struct tci_stage_report *report,
                            struct tc_error *reterr)
{
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                  "the root directory %.300s cannot be the lower part of an overlay: %s",
                  plan->rootfs ? plan->rootfs : "", errno_text(report->status));
    tci_error_remedy(reterr,
                     report->status == ENODEV
                         ? "load the kernel's overlay module: see overlay in toolcage doctor"
                         : "copy it to an ordinary file system (ext4, xfs, btrfs)");
}

static void explain_start(const struct tci_oci_plan *plan, const struct tci_stage_report *report,
                          struct tc_error *reterr)
{
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "%.300s cannot be started: %s",
                  plan->choice.program, errno_text(report->status));
    tci_error_remedy(reterr, "install %s again, or name another one in container.runtime",
                     runtime_name(plan));
}

static void explain_other(const struct tci_oci_plan *plan, const struct tci_stage_report *report,
                          struct tc_error *reterr)
{
    const bool has_path = report->step >= TCI_STAGE_STEP_SOURCE &&
                          report->step <= TCI_STAGE_STEP_ATTRIBUTES &&
                          report->item < plan->mount_count;
    const bool is_root = report->step == TCI_STAGE_STEP_ROOTFS ||
                         report->step == TCI_STAGE_STEP_ROOTFS_CHANGED;
    const bool is_view = report->step == TCI_STAGE_STEP_VIEW && report->item < plan->mount_count;
    const char *path = has_path  ? plan->mounts[report->item].host
                       : is_view ? plan->mounts[report->item].cage
                       : is_root ? plan->rootfs
                                 : NULL;
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "the container could not be made: %s%s%.300s: %s",
                  report->step < tci_array_size(step_texts) ? step_texts[report->step] : "?",
                  path ? " " : "", path ? path : "", errno_text(report->status));
    if (report->step == TCI_STAGE_STEP_SOURCE_CHANGED ||
        report->step == TCI_STAGE_STEP_ROOTFS_CHANGED)
        tci_error_remedy(reterr, "find out who exchanged it, and call again");
    else if (is_view)
        tci_error_remedy(reterr, "what is mounted inside a granted directory must be there, and "
                                 "be no link: find out who removed it");
    else if (report->step == TCI_STAGE_STEP_GATE)
        tci_error_remedy(reterr, "see gate_local_route and gate_redirect in \"toolcage doctor\"");
    else
        tci_error_remedy(reterr, "see \"toolcage doctor\"");
}

void tci_stage_explain(const struct tci_oci_plan *plan, const struct tci_stage_report *report,
                       struct tc_error *reterr)
{
    if (report->end == TCI_STAGE_ENDED)
        explain_end(plan, report, reterr);
    else if (report->step == TCI_STAGE_STEP_POINT)
        explain_point(plan, report, reterr);
    else if (report->step == TCI_STAGE_STEP_PLACE)
        explain_place(plan, report, reterr);
    else if (report->step == TCI_STAGE_STEP_OVERLAY && report->item == 0)
        explain_overlay(plan, report, reterr);
    else if (report->step == TCI_STAGE_STEP_START && report->item == 1)
        explain_start(plan, report, reterr);
    else
        explain_other(plan, report, reterr);
}
