/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: JSON-RPC 2.0 as MCP uses it: bytes to one checked message, and messages to bytes.
 * Trusts nothing: a message is bounded in size, values, depth and id before anything looks at it, duplicate
 * keys are refused (two readers would pick different ones), and what is sent is always written anew.
 */
#ifndef TCI_MCP_MESSAGE_H
#define TCI_MCP_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include "base/buf.h"
#include "base/error.h"

struct json_t;
struct tci_json;

enum {
    TCI_MCP_MESSAGE_MAX = 4 * 1024 * 1024, /* bytes of a message from a client */
    TCI_MCP_ANSWER_MAX = 64 * 1024 * 1024, /* bytes of a message of ours */
    TCI_MCP_VALUES_MAX = 100000,           /* JSON values of a message from a client */
    TCI_MCP_SERVER_VALUES_MAX = 200000,    /* of one from a wrapped server */
    TCI_MCP_DEPTH_MAX = 64,                /* arrays and objects in one another */
    TCI_MCP_ID_MAX = 256,                  /* bytes of an id that is text */
    TCI_MCP_BATCH_MAX = 64,                /* messages of a batch (2025-03-26 only) */
};

/* JSON-RPC's own codes, and MCP's. */
enum tci_mcp_code {
    TCI_MCP_PARSE_ERROR = -32700,
    TCI_MCP_INVALID_REQUEST = -32600,
    TCI_MCP_NO_METHOD = -32601,
    TCI_MCP_INVALID_PARAMS = -32602,
    TCI_MCP_INTERNAL = -32603,
    TCI_MCP_BUSY = -32000, /* a bound of ours is reached; try again */
    TCI_MCP_NO_RESOURCE = -32002,
};

enum tci_mcp_kind {
    TCI_MCP_INVALID, /* answer with `code` and `problem` */
    TCI_MCP_REQUEST,
    TCI_MCP_NOTIFICATION,
    TCI_MCP_RESPONSE, /* to a request of ours: `result` or `failure` is set */
    TCI_MCP_BATCH,    /* `document` is an array; read its members with tci_mcp_read_value */
};

/* One message. Everything but `document` is borrowed from it. */
struct tci_mcp_message {
    enum tci_mcp_kind kind;
    struct json_t *document; /* NULL: it was not JSON */
    struct json_t *id;       /* text, or a whole number that a double holds exactly; NULL: none */
    const char *method;      /* request, notification */
    struct json_t *params;   /* an object; NULL: none */
    struct json_t *result, *failure;
    int code;
    size_t values; /* that the text had, as json/scan.h counts them: what reading it costs */
    char problem[256];
};

/* Reads one message. 0: `ret` holds it, be it valid or TCI_MCP_INVALID (with `id`, where one could be
 * read). -1: no memory. Free it in either case. */
int tci_mcp_read(const char *text, size_t length, struct tci_mcp_message *ret,
                 struct tc_error *reterr) tci_must_check;
/* The same for what a wrapped server sent: of its results, which may be data of others, numbers that are not exact
 * pass, as they do in most clients; of a client's request they would name something else than it meant. */
int tci_mcp_read_server(const char *text, size_t length, struct tci_mcp_message *ret,
                        struct tc_error *reterr) tci_must_check;
/* The same for a value that was read: a member of a batch. Takes a reference of its own. */
int tci_mcp_read_value(struct json_t *value, struct tci_mcp_message *ret,
                       struct tc_error *reterr) tci_must_check;
void tci_mcp_message_free(struct tci_mcp_message *message);

/* Whole messages, without a line break: JSON escapes those in texts. `json` texts are JSON already.
 * `id` NULL: null. `data` and `params` may be NULL: left out. Failure sticks in the buffer. */
void tci_mcp_write_result(struct tci_buf *out, const struct json_t *id, const char *result_json);
/* What stands before the member `result` of one; end the object after it. */
void tci_mcp_write_result_begin(struct tci_json *json, const struct json_t *id);
void tci_mcp_write_error(struct tci_buf *out, const struct json_t *id, int code,
                         const char *message, const char *data_json);
void tci_mcp_write_notification(struct tci_buf *out, const char *method, const char *params_json);
void tci_mcp_write_request(struct tci_buf *out, const char *id, const char *method,
                           const char *params_json);
/* A value that was read, as JSON text. */
void tci_mcp_write_value(struct tci_buf *out, const struct json_t *value);

#endif
