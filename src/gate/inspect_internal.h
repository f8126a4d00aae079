/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what inspect.c (the loop), inspect_start.c (which protocol is it?), inspect_http.c and
 * inspect_tls.c share, and nobody else uses.
 */
#ifndef TCI_GATE_INSPECT_INTERNAL_H
#define TCI_GATE_INSPECT_INTERNAL_H

#include "base/attr.h"
#include "gate/hello.h"
#include "gate/http.h"
#include "gate/inspect.h"

enum { TCI_INSPECT_HEAD_MAX = 65536 };

enum tci_inspect_state {
    TCI_INSPECT_AT_START, /* of the connection, or of the next request: blank bytes */
    TCI_INSPECT_AT_WORD,  /* the first word: a method? */
    TCI_INSPECT_AT_LINE,  /* the line that it begins */
    TCI_INSPECT_AT_HEAD,  /* of an HTTP request */
    TCI_INSPECT_AT_BODY,
    TCI_INSPECT_AT_OTHER,   /* passes; the first line must still not turn out to be a request */
    TCI_INSPECT_AT_HELLO,   /* of TLS */
    TCI_INSPECT_AT_RECORDS, /* of TLS, until no second hello can come */
    TCI_INSPECT_AT_OPEN,
    TCI_INSPECT_AT_REFUSED,
};

struct tci_inspect {
    char name[TCI_NAME_MAX + 1];
    uint16_t port;
    bool strict;
    enum tci_inspect_state state;

    bool
        is_open; /* what is neither TLS nor HTTP may pass here: not strict, and no request before */
    bool is_fresh; /* no byte yet, so TLS can begin */
    bool is_odd;   /* something stands before the first word that a proper request has not */
    bool has_nul;
    bool is_http; /* a request has passed */
    char word[TCI_HTTP_METHOD_MAX + 1];
    size_t word_length;

    size_t held; /* bytes that were not passed by the last call: they must come again */
    /* Of these. */
    size_t rest_at; /* behind the word */
    size_t line_at; /* where the present line begins */
    size_t seen;    /* looked at up to here */

    bool is_upgrade; /* the request asked for another protocol */
    struct tci_http_body body;

    bool other_has_text;  /* the line has more than blanks */
    unsigned other_match; /* of " HTTP/1" */
    size_t other_count;   /* bytes of it */
    struct tci_hello_progress hello;
    size_t record_left;      /* of a record that may pass */
    bool has_changed_cipher; /* such a record came */
    bool has_early_data;

    const char *protocol;
    char reason[TCI_GATE_REASON_MAX];
    char meant[TCI_NAME_MAX + 1];
};

/* What is left of the bytes of one call. */
struct tci_inspect_input {
    const uint8_t *bytes;
    size_t length, used;
    bool at_end;
};

/* These bytes may go. */
static inline void tci_inspect_use(struct tci_inspect_input *in, size_t count)
{
    in->bytes += count;
    in->length -= count;
    in->used += count;
}

enum tci_inspect_step {
    TCI_STEP_GO,   /* look at `state` again */
    TCI_STEP_MORE, /* what is left is held back */
    TCI_STEP_OPEN,
    TCI_STEP_REFUSED,
};

typedef enum tci_inspect_step tci_inspect_part(struct tci_inspect *inspect,
                                               struct tci_inspect_input *in);
tci_inspect_part tci_inspect_start, tci_inspect_word, tci_inspect_line, tci_inspect_other,
    tci_inspect_head, tci_inspect_body, tci_inspect_hello, tci_inspect_records;

static inline enum tci_inspect_step tci_inspect_go(struct tci_inspect *inspect,
                                                   enum tci_inspect_state state)
{
    inspect->state = state;
    return TCI_STEP_GO;
}

/* REFUSED, with the reason. */
enum tci_inspect_step tci_inspect_refuse(struct tci_inspect *inspect, const char *format, ...)
    tci_printf_like(2, 3);
/* For the record of a connection that goes on. The first one stays. */
void tci_inspect_note(struct tci_inspect *inspect, const char *note);
/* Is this a spelling of the connection's name? If not, it is kept as what was meant. */
bool tci_inspect_is_meant(struct tci_inspect *inspect, const char *text, size_t length);

#endif
