/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: one request of http_fetch and what is kept of its answer. */
#ifndef TCI_INSIDE_HTTP_FETCH_H
#define TCI_INSIDE_HTTP_FETCH_H

#include "inside/curl_abi.h"
#include "inside/inside.h"

#define TCI_HTTP_TOKEN                                                                             \
    "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

enum {
    TCI_FETCH_BODY = 200 * 1000,     /* bytes of a body that are kept */
    TCI_FETCH_BODY_MAX = 400 * 1000, /* when more is asked for; twice that fits into an answer */
    TCI_FETCH_ENCODED_MAX = 2 * TCI_FETCH_BODY_MAX,
    TCI_FETCH_HEADERS_MAX = 32 * 1024, /* of one answer */
    TCI_FETCH_VALUE_MAX = 2 * TCI_FETCH_HEADERS_MAX,
    TCI_FETCH_HEADER_COUNT = 100,
};

struct tci_fetch_header {
    char *name, *value; /* the name in small letters */
};

struct tci_fetch {
    const char *url, *method, *body;
    size_t body_length, max_bytes;
    int64_t timeout; /* seconds */
    bool follow;
    /* The answer. */
    struct tci_buf content;
    struct tci_fetch_header headers[TCI_FETCH_HEADER_COUNT];
    size_t header_count, header_bytes;
    bool truncated;
};

/* The tool: argv[1] of toolcage-loader is "http_fetch". The exit status. */
int tci_inside_http_fetch(int argc, char **argv);

/* Makes the request with a handle that is set up but for where the answer goes; prints the answer,
 * or fails. */
void tci_fetch_perform(const struct tci_curl *curl, void *handle, struct tci_fetch *fetch);

#endif
