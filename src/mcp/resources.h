/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: what the files behind resources/ share. */
#ifndef TCI_MCP_RESOURCES_H
#define TCI_MCP_RESOURCES_H

#include "base/arena.h"
#include "mcp/server.h"

struct tci_mcp_job;
struct tci_tool;

/* Bytes of a resource: as base64 with escapes it must fit into one message of ours. */
enum { TCI_MCP_RESOURCE_MAX = 32 * 1024 * 1024 };

/* A file that a call brought back. */
struct tci_mcp_file {
    struct tci_mcp_file *next; /* newest first */
    char *uri;                 /* toolcage://file/CALL_ID/NUMBER/NAME, NAME percent-encoded */
    char *name;                /* the last part of its path in the cage */
    char *media_type;
    char *path;            /* below the store: SESSION/CALL/... */
    uint64_t size, number; /* of the files of its call, from 1 */
    char sha256[65], call_id[37];
    bool is_done; /* its call is over: nobody but the client uses the URI */
};

/* resource_store.c: makes the server's store, unless it is there. */
int tci_mcp_store_make(struct tci_mcp_server *server, struct tc_error *reterr) tci_must_check;
/* Removes a directory with all that is in it, below the handle, without following links. */
void tci_mcp_store_remove(int parent, const char *name);

/* resource_files.c: NULL: the session has no such file. */
const struct tci_mcp_file *tci_mcp_files_find(const struct tci_mcp_session *session,
                                              const char *uri);
/* Its bytes, if they are still those that the call left. `store`: the server's. Any thread. */
int tci_mcp_files_read(const char *store, const struct tci_mcp_file *file, struct tci_arena *arena,
                       char **ret_bytes, size_t *ret_length,
                       struct tc_error *reterr) tci_must_check;

/* resources.c: is it there for this session? An agent does not see the policy, which tells of others. */
bool tci_mcp_resource_is_there(const struct tci_mcp_session *session, const char *uri);
/* resource_read.c: the `uri` of the params; NULL: the failure says why. */
const char *tci_mcp_resource_uri(const struct json_t *params, struct tci_mcp_failure *failure);
/* One that is being read, by a job. NULL: nothing. */
struct tci_mcp_reading;
/* A share of the budget for a text of so many bytes and its answer, unless the job has one. Who has it must not wait
 * for the journal any more. False: the job was cancelled. */
bool tci_mcp_reading_share(struct tci_mcp_job *job, size_t bytes);
void tci_mcp_reading_free(struct tci_mcp_reading *reading);
/* One answer for "there is none" and "it is not yours"; `why` may be NULL. */
enum tci_mcp_outcome tci_mcp_no_resource(struct tci_mcp_failure *failure, const char *uri,
                                         const char *why);

#define TCI_MCP_POLICY_URI  "toolcage://policy"
#define TCI_MCP_TOOLS_URI   "toolcage://tools"
#define TCI_MCP_JOURNAL_URI "toolcage://session/journal"
#define TCI_MCP_TOOL_PREFIX "toolcage://tool/"
#define TCI_MCP_CALL_PREFIX "toolcage://call/"

/* resource_texts.c: what the server knows about tools and calls, as text. All append to `out`. */

/* May the session see this tool? NULL: no, or there is none: one answer. */
const struct tci_tool *tci_mcp_visible_tool(const struct tci_mcp_session *session,
                                            struct tc_engine *engine, const char *name);
/* Calls `each` for every tool that it may see. */
int tci_mcp_each_visible(const struct tci_mcp_session *session, struct tc_engine *engine,
                         int (*each)(void *context, const struct tci_tool *tool), void *context);
/* The whole policy in its normal form, or (`explain`) one tool (NULL: all) with where each value comes
 * from: for the owner. Values of `env` are hidden. */
int tci_mcp_text_policy(const struct tc_engine *engine, const struct tci_tool *tool, bool explain,
                        struct tci_buf *out, struct tc_error *reterr) tci_must_check;
/* One tool, or (NULL) all that are visible. */
int tci_mcp_text_tools(const struct tci_mcp_session *session, struct tc_engine *engine,
                       const struct tci_tool *tool, struct tci_buf *out,
                       struct tc_error *reterr) tci_must_check;
/* resource_calls.c: the last records of the job's session, one a line. Both end early when the job is cancelled, and
 * then what they leave behind is nothing to be sent. */
int tci_mcp_text_journal(struct tci_mcp_job *job, struct tci_buf *out,
                         struct tc_error *reterr) tci_must_check;
/* The result of a call of the session. 1: there is none; *ret_why says more. */
int tci_mcp_text_call(struct tci_mcp_job *job, const char *call_id, struct tci_buf *out,
                      const char **ret_why, struct tc_error *reterr) tci_must_check;

#endif
