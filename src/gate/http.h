/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: where an HTTP/1 request begins, which host it names, and where it ends (RFC 9112). Pure.
 * Input is hostile. Servers forgive much, each something else; what two of them could read in two
 * ways is refused, so that there is one answer to "which host?" and to "where does the next one begin?".
 */
#ifndef TCI_GATE_HTTP_H
#define TCI_GATE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TCI_HTTP_METHOD_MAX = 24 }; /* UPDATEREDIRECTREF has 17 */

/* A piece of the head; not NUL-terminated. */
struct tci_http_text {
    const char *at; /* NULL: there is none */
    size_t length;
};

struct tci_http_head {
    struct tci_http_text host;   /* of the Host field: HOST or HOST:PORT */
    struct tci_http_text target; /* the same of an absolute target ("GET http://HOST/ HTTP/1.1") */
    bool is_chunked;
    uint64_t length; /* of the body, unless chunked */
    bool has_upgrade;
};

/* A byte of a method, or of a field's name (RFC 9110: tchar). */
bool tci_http_is_token(uint8_t byte);
/* What one server or another takes for the space between two words. */
bool tci_http_is_space(uint8_t byte);
/* One that servers know by name, in any case. */
bool tci_http_is_known_method(const char *method);
/* Does a word of this line begin with "HTTP/" (in any case, behind any space)? */
bool tci_http_has_version(const uint8_t *line, size_t length);
/* Is the text this lower-case word, in any case? */
bool tci_http_equals(struct tci_http_text text, const char *lower_case);

/* `rest`: from the byte behind the method up to the end of the empty line. NULL, or why it is refused:
 * it follows "the HTTP request ". */
const char *tci_http_read_head(const char *method, const uint8_t *rest, size_t length,
                               struct tci_http_head *ret);

enum tci_http_body_says {
    TCI_HTTP_BODY_MORE, /* all of it belongs to the body, and more is to come */
    TCI_HTTP_BODY_DONE, /* it ended */
    TCI_HTTP_BODY_BAD,
};

struct tci_http_body {
    int state;
    uint64_t left; /* of the body, or of the chunk */
    unsigned count;
    char name[sizeof "transfer-encoding" + 1]; /* of a trailer's field, cut */
};

void tci_http_body_start(struct tci_http_body *body, const struct tci_http_head *head);
/* How many of the next bytes are content, at most; 0: the next byte frames it. For a reader that wants the
 * content alone. */
uint64_t tci_http_body_content(const struct tci_http_body *body);
/* Nothing is held back: *ret_used bytes are all right to go, in each case. BAD: *ret_problem follows
 * "the HTTP request ". */
enum tci_http_body_says tci_http_body_feed(struct tci_http_body *body, const uint8_t *bytes,
                                           size_t length, size_t *ret_used,
                                           const char **ret_problem);

#endif
