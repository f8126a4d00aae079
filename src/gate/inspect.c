/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the loop of the inspection and what it remembers: each part takes what it can and names the
 * next one. The parts are in inspect_start.c, inspect_http.c and inspect_tls.c.
 * Trusts: the name and the port. Nothing of the bytes.
 * Invariant: a part leaves nothing for later that it could say now, so the outcome depends on the
 * bytes alone. A refusal stays one.
 */
#include "gate/inspect_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tci_inspect *tci_inspect_new(const char *name, uint16_t port, bool strict)
{
    struct tci_inspect *inspect = calloc(1, sizeof *inspect);

    if (!inspect)
        return NULL;
    (void)snprintf(inspect->name, sizeof inspect->name, "%s", name);
    inspect->port = port;
    inspect->strict = strict;
    inspect->is_open = !strict;
    inspect->is_fresh = true;
    inspect->protocol = "";
    return inspect;
}

void tci_inspect_free(struct tci_inspect *inspect)
{
    free(inspect);
}

const char *tci_inspect_reason(const struct tci_inspect *inspect)
{
    return inspect->reason;
}

const char *tci_inspect_meant(const struct tci_inspect *inspect)
{
    return inspect->meant;
}

const char *tci_inspect_protocol(const struct tci_inspect *inspect)
{
    return inspect->protocol;
}

enum tci_inspect_step tci_inspect_refuse(struct tci_inspect *inspect, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(inspect->reason, sizeof inspect->reason, format, arguments);
    va_end(arguments);
    inspect->state = TCI_INSPECT_AT_REFUSED;
    return TCI_STEP_REFUSED;
}

void tci_inspect_note(struct tci_inspect *inspect, const char *note)
{
    if (inspect->reason[0] == '\0')
        (void)snprintf(inspect->reason, sizeof inspect->reason, "%s", note);
}

bool tci_inspect_is_meant(struct tci_inspect *inspect, const char *text, size_t length)
{
    struct tci_host host;
    struct tci_netrule_problem problem;
    char canonical[TCI_RULE_TEXT_MAX];
    size_t i;

    if (tci_destination_parse(text, length, &host, &problem) == 0) {
        if (strcmp(tci_host_format(&host, canonical), inspect->name) == 0)
            return true;
        (void)snprintf(inspect->meant, sizeof inspect->meant, "%.*s", TCI_NAME_MAX, canonical);
        return false;
    }
    /* It will be shown: no terminal sequences, no forged lines. */
    for (i = 0; i < length && i < sizeof inspect->meant - 1; i++)
        inspect->meant[i] = text[i] > 0x20 && text[i] < 0x7f ? text[i] : '?';
    inspect->meant[i] = '\0';
    return false;
}

static enum tci_inspect_step step(struct tci_inspect *inspect, struct tci_inspect_input *in)
{
    switch (inspect->state) {
    case TCI_INSPECT_AT_START:
        return tci_inspect_start(inspect, in);
    case TCI_INSPECT_AT_WORD:
        return tci_inspect_word(inspect, in);
    case TCI_INSPECT_AT_LINE:
        return tci_inspect_line(inspect, in);
    case TCI_INSPECT_AT_HEAD:
        return tci_inspect_head(inspect, in);
    case TCI_INSPECT_AT_BODY:
        return tci_inspect_body(inspect, in);
    case TCI_INSPECT_AT_OTHER:
        return tci_inspect_other(inspect, in);
    case TCI_INSPECT_AT_HELLO:
        return tci_inspect_hello(inspect, in);
    case TCI_INSPECT_AT_RECORDS:
        return tci_inspect_records(inspect, in);
    case TCI_INSPECT_AT_OPEN:
        return TCI_STEP_OPEN;
    case TCI_INSPECT_AT_REFUSED:
        break;
    }
    return TCI_STEP_REFUSED;
}

enum tci_inspect_says tci_inspect_feed(struct tci_inspect *inspect, const uint8_t *bytes,
                                       size_t length, bool at_end, size_t *ret_pass)
{
    static const uint8_t nothing[1];
    struct tci_inspect_input in = { .bytes = length > 0 ? bytes : nothing,
                                    .length = length,
                                    .at_end = at_end };
    enum tci_inspect_step said;

    /* Places in the held bytes are remembered: a caller that drops some must not lead us astray. */
    if (length < inspect->held)
        (void)tci_inspect_refuse(inspect, "bytes that were held back are lost");
    do
        said = step(inspect, &in);
    while (said == TCI_STEP_GO);
    if (said == TCI_STEP_MORE && at_end && in.length > 0)
        said = tci_inspect_refuse(inspect, "what was sent is cut off");
    inspect->held = in.length;
    *ret_pass = in.used;
    if (said == TCI_STEP_MORE)
        return in.length > 0 ? TCI_INSPECT_MORE : TCI_INSPECT_PASS;
    if (said == TCI_STEP_OPEN) {
        inspect->state = TCI_INSPECT_AT_OPEN;
        *ret_pass = length;
        return TCI_INSPECT_OPAQUE;
    }
    /* What was all right before the refused bytes goes first, as if it had come alone. */
    if (in.used > 0 && in.length > 0)
        return TCI_INSPECT_PASS;
    *ret_pass = 0;
    return TCI_INSPECT_REFUSED;
}
