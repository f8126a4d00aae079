/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: a tools/call under way (or another method that may have to wait for the disk or the journal: resources/read,
 * tools/list), as the files that work on it share it. The loop's thread fills it and
 * hands it to a worker; the worker posts it back once, at its end. In between the two share only what
 * stands behind the lock.
 * Invariant: a job outlives every post of it: posts keep their order, and the last one frees it.
 */
#ifndef TCI_MCP_JOB_H
#define TCI_MCP_JOB_H

#include <pthread.h>
#include <stdatomic.h>
#include "base/buf.h"
#include "mcp/elicit_text.h"
#include "mcp/server.h"

enum {
    TCI_MCP_LINE_MAX = 4096,          /* bytes of a line that is passed on */
    TCI_MCP_LINES_RATE = 200,         /* lines a second of one call */
    TCI_MCP_LINES_BYTES = 256 * 1024, /* of lines that wait for the loop */
    TCI_MCP_PROGRESS_TEXT = 200,
    TCI_MCP_PROGRESS_GAP = 50 * 1000, /* microseconds between two */
};

struct tci_mcp_progress {
    bool is_set, has_total;
    double value;
    char message[TCI_MCP_PROGRESS_TEXT + 1];
};

/* call_lines.c */
struct tci_mcp_lines {
    /* The worker's. */
    struct tci_buf line; /* that has not ended yet */
    uint64_t window;     /* tci_clock_us: when the present second began */
    unsigned in_window;
    uint64_t left_out;
    uint64_t started, last; /* when the call began; when progress was last given to the loop */
    double newest;          /* the highest that was ever given or waits */
    uint64_t seconds;       /* that were told */
    uint64_t asked;         /* microseconds that a person took to approve it */
    bool has_percent;
    struct tci_mcp_progress waiting;
    /* Behind the lock. */
    struct tci_buf ready; /* lines: their level, their length, their bytes */
    struct tci_mcp_progress progress;
    bool posted;
};

/* Answers a method in a worker, since it has to look into the journal: which may be locked by somebody else, and
 * then everybody waits who looks. `job->engine` is the policy that it answers for. */
typedef enum tci_mcp_outcome tci_mcp_reader(struct tci_mcp_job *job, struct tci_buf *result,
                                            struct tci_mcp_failure *failure);

struct tci_mcp_job {
    /* Filled before the work begins; then only read. */
    struct tci_mcp_request
        *request; /* the loop's, but for its session's names, which do not change */
    struct tci_mcp_server *server; /* of which the worker uses the engine and the budget */
    struct tci_mcp_loop *loop;
    void (*run)(struct tci_mcp_job *job); /* in the worker: leaves an answer or a failure behind */
    char *tool, *arguments;
    tci_mcp_reader *read; /* NULL: `run` makes the answer */
    struct tci_mcp_reading
        *reading;    /* resource_read.c; NULL: it reads something else, or is a call */
    bool is_reading; /* no call */
    bool can_elicit, wants_progress;

    struct tci_mcp_lane *lane; /* the loop's: call_lanes.c */
    struct tci_mcp_job *next;
    bool is_waiting; /* in its lane: no worker has it yet */
    bool
        is_aside; /* it waits for a person, or for a place after that: it is not among those that run */
    void (*failed)(struct tci_mcp_job *job, const struct tc_error *error); /* it cannot begin */
    void (*go)(struct tci_mcp_job *job); /* there is a place for it again: elicit.c */

    /* The worker's, when it begins: the policy that counts is the one that is in force then. */
    struct tci_mcp_engine *engine;
    bool is_listed;
    uint64_t timeout_ms; /* UINT64_MAX: none */

    /* Made by the loop while the worker waits. NULL: the tool has no `outputs`, or see has_directory */
    char *out_directory;
    bool has_directory; /* behind the lock: the loop has tried */

    atomic_bool cancelled;
    int wake; /* an eventfd: readable when cancelled */
    struct tci_mcp_post work, done, flush, ask, unask, files, directory;

    pthread_mutex_t lock;
    pthread_cond_t changed; /* of the monotonic clock */
    struct tci_mcp_lines lines;

    /* elicit.c, behind the lock; the number is the loop's */
    char *question;
    uint64_t question_number;
    int approval; /* what the approval function returns */
    bool is_answered;
    bool is_asking; /* the worker's */

    /* Files of the result: the loop fills the URIs, which live until tci_mcp_files_done. */
    struct tc_result *result;
    const char **uris;
    bool has_uris, files_posted;

    /* What the worker leaves behind: an answer, as a whole message, or a failure. */
    struct tci_buf answer;
    struct tci_mcp_failure *failure;
    char *complaint;              /* for the person who runs the server; NULL: none */
    struct tci_mcp_listed listed; /* what its session has read of its tools with the answer */

    /* budget.c: its share, behind the lock there; whether it waits no more, behind the job's. */
    size_t share, share_wanted;
    struct tci_mcp_job *budget_next;
    bool has_share;
};

/* job.c: makes one, and hands it to a worker when it is its turn. Takes what `what` points to. */
struct tci_mcp_work {
    void (*run)(struct tci_mcp_job *job);
    char *tool;      /* of a call */
    char *arguments; /* counted for who waits */
    struct tci_mcp_reading *reading;
    bool is_reading; /* something that takes not long: it has a lane of its own */
    tci_mcp_reader *read;
};
enum tci_mcp_outcome tci_mcp_job_begin(struct tci_mcp_request *request,
                                       const struct tci_mcp_work *what,
                                       struct tci_mcp_failure *failure);
/* One that answers with `read`; the texts (NULL: none) are copied into job->tool and job->arguments. */
enum tci_mcp_outcome tci_mcp_job_read(struct tci_mcp_request *request, tci_mcp_reader *read,
                                      const char *tool, const char *arguments,
                                      struct tci_mcp_failure *failure);

/* call_lines.c, in the worker: output as it comes, and its end. */
void tci_mcp_lines_begin(struct tci_mcp_job *job);
int tci_mcp_lines_output(void *context, enum tc_stream stream, const void *bytes, size_t length);
void tci_mcp_lines_end(struct tci_mcp_job *job);
/* Lets the loop send what is ready, once, however often it is called before that. With the lock held. */
void tci_mcp_lines_post(struct tci_mcp_job *job);
/* In the loop's thread: sends what is ready. */
void tci_mcp_lines_send(struct tci_mcp_job *job);
void tci_mcp_lines_free(struct tci_mcp_lines *lines);

/* call_progress.c, in the worker: a line of stderr; what has to be told by the clock; the end. */
void tci_mcp_progress_line(struct tci_mcp_job *job, const char *text, size_t length);
void tci_mcp_progress_tick(struct tci_mcp_job *job);
int tci_mcp_progress_timeout(
    const struct tci_mcp_job *job); /* milliseconds until then; -1: never */
void tci_mcp_progress_end(struct tci_mcp_job *job);
/* In the loop's thread. */
void tci_mcp_progress_send(struct tci_mcp_job *job, const struct tci_mcp_progress *progress);

/* elicit.c: the job of this worker, for the approval function; NULL: none. */
void tci_mcp_elicit_for(struct tci_mcp_job *job);

/* call_job.c, in the worker: makes the call. */
void tci_mcp_job_run(struct tci_mcp_job *job);
/* Waits for a change or for `until` (tci_clock_us), with the lock held. */
void tci_mcp_job_wait(struct tci_mcp_job *job, uint64_t until);

/* content.c: the result of tools/call. */
struct tci_mcp_content {
    enum tci_mcp_version version;
    const struct tc_result *result;
    const char *out_directory; /* files are read below it only; NULL: none is */
    const char *const *uris;   /* one for each file; members, and it, may be NULL */
    const struct json_t *id;   /* of the request: a whole message; NULL: the result alone */
};
/* How many bytes that takes at most, as memory. */
size_t tci_mcp_content_most(const struct tci_mcp_content *content);
int tci_mcp_content_write(const struct tci_mcp_content *content, struct tci_buf *out,
                          struct tc_error *reterr) tci_must_check;
/* content_files.c: one file of it, and how many bytes of files may still go inline. */
struct tci_json;
int tci_mcp_content_file(const struct tci_mcp_content *content, size_t number,
                         struct tci_json *json, size_t *room,
                         struct tc_error *reterr) tci_must_check;

#endif
