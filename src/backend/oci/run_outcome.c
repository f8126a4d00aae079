/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: how a call in a container ended, in the words of the backend's contract. */
#include "backend/oci/run_internal.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

static const char *const step_texts[] = {
#define X(id, text) text,
    TCI_ENTRY_STEPS(X)
#undef X
};

static const char *text_of(int problem)
{
    const char *text = strerrordesc_np(problem);
    return text ? text : "unknown error";
}

static void describe_report(const struct tc_run *run, struct tc_error *reterr)
{
    const struct tci_entry_report *r = &run->last;
    const bool is_directory = r->step == TCI_ENTRY_STEP_DIRECTORY;
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "the container could not be used: %s%s%.200s: %s",
                  r->step < tci_array_size(step_texts) ? step_texts[r->step] : "?",
                  is_directory ? " " : "", is_directory ? run->plan->directory : "",
                  text_of(r->status));
    tci_error_remedy(reterr, is_directory ? "name a \"cwd\" that is in the image or granted"
                                          : "see \"toolcage doctor\"");
}

/* Nothing was started, and nobody says why but us. */
static void describe_waiting(const struct tc_run *run, struct tc_error *reterr)
{
    const struct tci_oci_cage *cage = run->cage;
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "the command never started: still waiting for %s",
                  run->crowded         ? "the kernel, which passes on no streams while other "
                                         "programs of this user keep too many descriptors in "
                                         "their sockets"
                  : cage->hello        ? "its program to be started in the container"
                  : cage->control >= 0 ? "the container's first process"
                                       : "the container to be made");
    tci_error_remedy(reterr, run->crowded
                                 ? "raise this process's limit on open files (ulimit -n), or lower "
                                   "\"files\" of the tools that run beside it"
                                 : "allow a longer \"timeout\", or see \"toolcage doctor\"");
}

static void describe_loss(const struct tc_run *run, struct tc_error *reterr)
{
    if (run->cage->failed && run->cage->error.message[0]) {
        if (reterr)
            *reterr = run->cage->error;
        return;
    }
    tci_error_set(reterr, TC_ERROR_INTERNAL, "the container was ended by somebody else");
}

void tci_oci_outcome(struct tc_run *run, struct tc_outcome *ret, struct tc_error *reterr)
{
    const struct tci_entry_report *r = &run->last;
    ret->finished = true;
    ret->end = TCI_END_BROKEN;
    ret->never_started = !run->started;
    if (r->kind == TCI_ENTRY_ENDED) {
        ret->end = WIFEXITED(r->status) ? TCI_END_EXITED : TCI_END_SIGNALED;
        ret->status = WIFEXITED(r->status) ? WEXITSTATUS(r->status) : WTERMSIG(r->status);
    } else if (r->kind == TCI_ENTRY_NOT_STARTED) {
        ret->end = TCI_END_NOT_STARTED;
        ret->status = r->status;
    } else if (r->kind == TCI_ENTRY_BROKEN) {
        describe_report(run, reterr);
    } else if (run->started && (run->killed_us || ret->hit || run->cage->ended_itself)) {
        /* By us, by the kernel together with its tree, or by one of its own. */
        ret->end = TCI_END_SIGNALED;
        ret->status = SIGKILL;
    } else if (run->killed_us && !run->was_lost) {
        describe_waiting(run, reterr);
    } else {
        describe_loss(run, reterr);
    }
}
