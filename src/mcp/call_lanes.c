/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: whose calls run. Each agent has a lane, and one for reading resources, and a part of the workers at
 * most; what is more waits in its lane, in the order in which it came. When a worker is free, the agent with
 * the fewest under way is next. The attack: an agent with many slow calls, or with questions that nobody
 * answers, that leaves no worker to the others, or stands in line before them. Sessions of one agent share a
 * lane. What waits is bounded in number and in bytes: a client that sends large calls and does not stay for
 * the answers would fill the memory, and one that ends its session takes its calls out of the line.
 *
 * A call that waits for a person does nothing: it counts for its agent, and not for the server, until it has an
 * answer. Then it waits for a place, before all that have not begun: else many that are approved at once would run
 * at once. That time counts for `approval_timeout`, as the person's does.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include "mcp/job.h"

struct tci_mcp_lane {
    struct tci_mcp_lane *next;
    char *agent; /* NULL: the policy's owner */
    bool
        is_reading; /* resources, lists: by workers of their own: long calls keep nobody from them */
    unsigned running;
    struct tci_mcp_job *first, *last; /* that wait */
    size_t waiting, waiting_bytes;    /* how many, and of their arguments */
};

static bool is_of(const struct tci_mcp_lane *lane, const char *agent, bool is_reading)
{
    if (lane->is_reading != is_reading)
        return false;
    return agent ? lane->agent && strcmp(lane->agent, agent) == 0 : !lane->agent;
}

/* There are as many as agents have called: they come from the command line or the token file. */
static struct tci_mcp_lane *lane_of(struct tci_mcp_server *server, const char *agent,
                                    bool is_reading)
{
    struct tci_mcp_lane *lane = server->lanes;
    while (lane && !is_of(lane, agent, is_reading))
        lane = lane->next;
    if (lane)
        return lane;
    lane = calloc(1, sizeof *lane);
    if (lane && agent && !(lane->agent = strdup(agent)))
        free(tc_take(lane));
    if (!lane)
        return NULL;
    lane->is_reading = is_reading;
    lane->next = server->lanes;
    server->lanes = lane;
    return lane;
}

static bool may_run(const struct tci_mcp_server *server, const struct tci_mcp_lane *lane)
{
    const unsigned most = lane->is_reading ? TCI_MCP_AGENT_READS : TCI_MCP_AGENT_CALLS;
    const unsigned all = lane->is_reading ? TCI_MCP_READERS : TCI_MCP_WORKERS;
    return lane->running < most && server->running[lane->is_reading] < all;
}

static int begin(struct tci_mcp_server *server, struct tci_mcp_job *job, struct tc_error *reterr)
{
    /* Not before: those who wait have no descriptor, of which there are few. */
    job->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (job->wake < 0)
        return tci_error_errno(reterr, errno, "cannot make an event");
    if (tci_mcp_loop_work(server->loop, &job->work, reterr) < 0)
        return -1;
    job->lane->running++;
    server->running[job->lane->is_reading]++;
    return 0;
}

static size_t bytes_of(const struct tci_mcp_job *job)
{
    return job->arguments ? strlen(job->arguments) : 0;
}

static int wait_in_line(struct tci_mcp_server *server, struct tci_mcp_lane *lane,
                        struct tci_mcp_job *job, struct tc_error *reterr)
{
    size_t bytes = bytes_of(job);
    if (lane->waiting >= TCI_MCP_WAITING_MAX || lane->waiting_bytes + bytes > TCI_MCP_WAITING_BYTES)
        return tci_error_set(reterr, TC_ERROR_TOO_LARGE,
                             "too many calls wait for their turn; try again later");
    if (lane->last)
        lane->last->next = job;
    else
        lane->first = job;
    lane->last = job;
    lane->waiting++;
    lane->waiting_bytes += bytes;
    server->jobs_waiting++;
    job->is_waiting = true;
    return 0;
}

int tci_mcp_lane_add(struct tci_mcp_session *session, struct tci_mcp_job *job,
                     struct tc_error *reterr)
{
    const bool is_reading = job->is_reading;
    struct tci_mcp_lane *lane = session->lanes[is_reading];
    if (!lane)
        lane = session->lanes[is_reading] = lane_of(session->server, session->agent, is_reading);
    if (!lane)
        return tci_error_no_memory(reterr);
    job->lane = lane;
    if (!may_run(session->server, lane))
        return wait_in_line(session->server, lane, job, reterr);
    return begin(session->server, job, reterr);
}

/* `before`: the one before it in its lane; NULL: it is the first. */
static void take_out(struct tci_mcp_server *server, struct tci_mcp_job *job,
                     struct tci_mcp_job *before)
{
    struct tci_mcp_lane *lane = job->lane;
    *(before ? &before->next : &lane->first) = job->next;
    if (lane->last == job)
        lane->last = before;
    lane->waiting--;
    lane->waiting_bytes -= bytes_of(job);
    server->jobs_waiting--;
    job->next = NULL;
    job->is_waiting = false;
}

bool tci_mcp_lane_leave(struct tci_mcp_server *server, struct tci_mcp_job *job)
{
    struct tci_mcp_job *before = NULL;
    if (!job->is_waiting)
        return false;
    for (struct tci_mcp_job *at = job->lane->first; at != job; at = at->next)
        before = at;
    take_out(server, job, before);
    return true;
}

/* The one that has waited longest, of the agent that has the fewest; NULL: none may run. */
static struct tci_mcp_job *next_job(struct tci_mcp_server *server)
{
    struct tci_mcp_lane *best = NULL;
    struct tci_mcp_job *job;
    for (struct tci_mcp_lane *lane = server->lanes; lane; lane = lane->next)
        if (lane->first && may_run(server, lane) && (!best || lane->running < best->running))
            best = lane;
    if (!best)
        return NULL;
    job = best->first;
    take_out(server, job, NULL);
    return job;
}

static bool take_approved(struct tci_mcp_server *server, struct tci_mcp_job *job)
{
    struct tci_mcp_job *before = NULL, *at = server->approved;
    for (; at && at != job; at = at->next)
        before = at;
    if (!at)
        return false;
    *(before ? &before->next : &server->approved) = job->next;
    if (server->approved_last == job)
        server->approved_last = before;
    job->next = NULL;
    return true;
}

static void come_back(struct tci_mcp_server *server, struct tci_mcp_job *job)
{
    job->is_aside = false;
    server->asking--;
    server->running[false]++;
}

/* Gives places away, as long as there are some. */
static void go_on(struct tci_mcp_server *server)
{
    struct tc_error error = { 0 };
    struct tci_mcp_job *job;
    while ((job = server->approved) && server->running[false] < TCI_MCP_WORKERS) {
        (void)take_approved(server, job);
        come_back(server, job);
        job->go(job);
    }
    while (server->jobs_waiting && (job = next_job(server)))
        if (begin(server, job, &error) < 0)
            job->failed(job, &error);
}

void tci_mcp_lane_done(struct tci_mcp_server *server, struct tci_mcp_lane *lane)
{
    lane->running--;
    server->running[lane->is_reading]--;
    go_on(server);
}

void tci_mcp_lane_ask(struct tci_mcp_server *server, struct tci_mcp_job *job)
{
    if (job->is_aside || server->asking >= TCI_MCP_ASKING_MAX)
        return;
    job->is_aside = true;
    server->asking++;
    server->running[false]--;
    go_on(server);
}

bool tci_mcp_lane_answered(struct tci_mcp_server *server, struct tci_mcp_job *job, bool at_once)
{
    if (!job->is_aside)
        return true;
    if (!at_once && server->running[false] >= TCI_MCP_WORKERS) {
        *(server->approved_last ? &server->approved_last->next : &server->approved) = job;
        server->approved_last = job;
        return false;
    }
    (void)take_approved(server, job);
    come_back(server, job);
    return true;
}

void tci_mcp_lanes_free(struct tci_mcp_server *server)
{
    while (server->lanes) {
        struct tci_mcp_lane *lane = server->lanes;
        server->lanes = lane->next;
        free(lane->agent);
        free(lane);
    }
}
