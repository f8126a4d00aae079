/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: is this runsc one that was tried, and on which platform does it run? systrap where it has it,
 * else ptrace: both work wherever a process may be traced. kvm never by itself: a /dev/kvm that exists
 * may hang every sandbox, and whoever wants it says so (TOOLCAGE_RUNSC_PLATFORM) and has it tried with
 * a time limit, in a child that takes everything with it (probe_runsc.c).
 *
 * The answers are kept for the process, by the program's file: many tools share one runsc, and each
 * question costs as much as a tenth of a sandbox.
 */
#include "backend/oci/choose.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "backend/runsc.h"

enum {
    NO_SYSTRAP = 20230101, /* before it there was none: its flags need not be asked for */
    ANSWER_LIMIT_MS = 3000,
    FLAGS_MAX = 65536,
};

struct known {
    uint64_t device, inode, size;
    struct timespec changed;
    char version[TCI_OCI_VERSION_MAX];
    bool has_systrap, kvm_tried, kvm_works;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct known last; /* under the lock; inode 0: nothing is known */

static const char REMEDY[] = "install a newer runsc (sudo apt install runsc, or as gVisor's "
                             "documentation says), or use backend = \"oci\"";

/* "runsc version 0.0~20221219.0\nspec: ...": the last word of the first line. */
static void take_version(const char *text, char ret[TCI_OCI_VERSION_MAX])
{
    size_t end = strcspn(text, "\r\n"), begin = end;
    while (begin && text[begin - 1] != ' ')
        begin--;
    (void)snprintf(ret, TCI_OCI_VERSION_MAX, "%.*s", (int)(end - begin), text + begin);
    for (char *p = ret; *p; p++)
        if (!isgraph((unsigned char)*p))
            *p = '?';
}

static int ask_version(const char *program, struct known *ret, struct tc_error *reterr)
{
    char name[] = "runsc", question[] = "--version", *const argv[] = { name, question, NULL };
    char output[1024];
    struct tci_oci_answer answer = tci_oci_ask(program, argv, ANSWER_LIMIT_MS, output,
                                               sizeof output);
    if (answer.problem) {
        tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "%.200s does not say its version: %s", program,
                      strerrordesc_np(answer.problem));
        tci_error_remedy(reterr, "%s", REMEDY);
        return -1;
    }
    take_version(output, ret->version);
    return 0;
}

static int check_version(const char *program, const char *version, struct tc_error *reterr)
{
    const unsigned date = tci_runsc_date(version);
    if (date >= TCI_RUNSC_OLDEST)
        return 0;
    if (date)
        tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                      "%.200s is of %u: gvisor needs runsc %d or newer", program, date,
                      TCI_RUNSC_OLDEST);
    else
        tci_error_set(
            reterr, TC_ERROR_UNSUPPORTED,
            "%.200s says that its version is \"%s\": gvisor needs a release of %d or newer",
            program, version, TCI_RUNSC_OLDEST);
    tci_error_remedy(reterr, "%s", REMEDY);
    return -1;
}

/* Does "-platform" of its flags know the word? Its description is on the next line. */
static bool ask_systrap(const char *program, const char *version)
{
    char name[] = "runsc", question[] = "flags", *const argv[] = { name, question, NULL };
    struct tci_oci_answer answer;
    const char *flag, *end;
    char *output;
    bool has = false;
    if (tci_runsc_date(version) < NO_SYSTRAP)
        return false;
    output = malloc(FLAGS_MAX);
    if (!output)
        return false;
    answer = tci_oci_ask(program, argv, ANSWER_LIMIT_MS, output, FLAGS_MAX);
    flag = answer.problem ? NULL : strstr(output, "-platform string");
    if (flag) {
        end = strstr(flag, "\n  -");
        has = memmem(flag, end ? (size_t)(end - flag) : strlen(flag), "systrap", 7) != NULL;
    }
    free(output);
    return has;
}

static bool is_same(const struct known *known, const struct stat *st)
{
    return known->inode && known->device == st->st_dev && known->inode == st->st_ino &&
           known->size == (uint64_t)st->st_size && known->changed.tv_sec == st->st_mtim.tv_sec &&
           known->changed.tv_nsec == st->st_mtim.tv_nsec;
}

static int learn(const char *program, struct tc_error *reterr)
{
    struct stat st;
    struct known now = { .inode = 0 };
    if (stat(program, &st) < 0)
        return tci_error_errno(reterr, errno, "%.300s", program);
    if (is_same(&last, &st))
        return 0;
    now.device = st.st_dev;
    now.inode = st.st_ino;
    now.size = (uint64_t)st.st_size;
    now.changed = st.st_mtim;
    if (ask_version(program, &now, reterr) < 0)
        return -1;
    now.has_systrap = ask_systrap(program, now.version);
    last = now;
    return 0;
}

/* ---- the platform -------------------------------------------------------------------------- */

static int refuse_platform(struct tc_error *reterr, const char *platform, const char *why)
{
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "TOOLCAGE_RUNSC_PLATFORM is \"%.20s\": %s",
                  platform, why);
    tci_error_remedy(reterr, "unset it, or set it to \"systrap\" or \"ptrace\"");
    return -1;
}

static int choose_platform(struct tci_oci_choice *choice, struct tc_error *reterr)
{
    const char *wanted = getenv("TOOLCAGE_RUNSC_PLATFORM");
    const char *platform = last.has_systrap ? "systrap" : "ptrace";
    if (wanted && *wanted) {
        if (strcmp(wanted, "systrap") != 0 && strcmp(wanted, "ptrace") != 0 &&
            strcmp(wanted, "kvm") != 0)
            return refuse_platform(reterr, "?", "toolcage knows systrap, ptrace and kvm");
        if (strcmp(wanted, "systrap") == 0 && !last.has_systrap)
            return refuse_platform(reterr, wanted, "this runsc does not have it");
        if (strcmp(wanted, "kvm") == 0 && !last.kvm_tried) {
            last.kvm_works = tci_runsc_kvm_works(choice->program);
            last.kvm_tried = true;
        }
        if (strcmp(wanted, "kvm") == 0 && !last.kvm_works)
            return refuse_platform(reterr, wanted,
                                   "a sandbox that was tried with it did not end within 3 seconds");
        platform = wanted;
    }
    (void)snprintf(choice->platform, sizeof choice->platform, "%s", platform);
    return 0;
}

int tci_oci_runsc(struct tci_oci_choice *choice, struct tc_error *reterr)
{
    int status;
    (void)pthread_mutex_lock(&lock);
    status = learn(choice->program, reterr);
    if (status == 0)
        status = check_version(choice->program, last.version, reterr);
    if (status == 0)
        status = choose_platform(choice, reterr);
    if (status == 0)
        (void)snprintf(choice->version, sizeof choice->version, "%s", last.version);
    (void)pthread_mutex_unlock(&lock);
    return status;
}
