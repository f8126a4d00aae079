/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: requests of the client that came as one array (2025-03-26): their answers go back as one. Invariant:
 * a batch is in the table as long as an answer of it is to come; what is cancelled is not to come.
 * The attack: many batches with large answers, each with a request that is never answered. So what is gathered is
 * bounded over all of them; the largest comes as more than one array.
 */
#include "mcp/wrap_internal.h"

#include <jansson.h>
#include <stdlib.h>

enum { together_max = 16 * 1024 * 1024 }; /* bytes, of all batches */

static void flush(struct tci_wrap *wrap, struct tci_wrap_batch *batch)
{
    if (!batch->text.length)
        return;
    tci_buf_char(&batch->text, ']');
    tci_wrap_client_put(wrap, &batch->text);
    batch->text = (struct tci_buf)TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
}

static size_t gathered(const struct tci_wrap *wrap, struct tci_wrap_batch **ret_largest)
{
    size_t bytes = 0;
    *ret_largest = wrap->batches;
    for (struct tci_wrap_batch *batch = wrap->batches; batch; batch = batch->next) {
        bytes += batch->text.length;
        if (batch->text.length > (*ret_largest)->text.length)
            *ret_largest = batch;
    }
    return bytes;
}

static void add(struct tci_wrap *wrap, struct tci_wrap_batch *batch, struct tci_buf *answer)
{
    struct tci_wrap_batch *largest;
    size_t bytes;
    if (tci_buf_check(answer, NULL) < 0)
        tci_wrap_fail(wrap, NULL, "there is not enough memory for a message");
    while ((bytes = gathered(wrap, &largest)) && bytes + answer->length > together_max)
        flush(wrap, largest);
    tci_buf_char(&batch->text, batch->text.length ? ',' : '[');
    tci_buf_append(&batch->text, answer->data, answer->length);
    tci_buf_free(answer);
    if (batch->text.length > together_max)
        flush(wrap, batch);
}

static void end_if_done(struct tci_wrap *wrap, struct tci_wrap_batch *batch)
{
    struct tci_wrap_batch **link = &wrap->batches;
    if (json_array_size(batch->ids) || batch == wrap->batch_read)
        return;
    while (*link != batch)
        link = &(*link)->next;
    *link = batch->next;
    flush(wrap, batch);
    json_decref(batch->ids);
    tci_buf_free(&batch->text);
    free(batch);
}

/* The batch that waits for an answer with this id, which it does no longer. */
static struct tci_wrap_batch *take_id(const struct tci_wrap *wrap, const struct json_t *id)
{
    for (struct tci_wrap_batch *batch = wrap->batches; batch && id; batch = batch->next)
        for (size_t i = 0; i < json_array_size(batch->ids); i++)
            if (json_equal(json_array_get(batch->ids, i), id)) {
                (void)json_array_remove(batch->ids, i);
                return batch;
            }
    return NULL;
}

void tci_wrap_client_answer(struct tci_wrap *wrap, const struct json_t *id, struct tci_buf *text)
{
    struct tci_wrap_batch *batch = take_id(wrap, id);
    if (!batch && !json_is_string(id) && !json_is_number(id))
        batch = wrap->batch_read; /* a member that was no request */
    if (!batch) {
        tci_wrap_client_put(wrap, text);
        return;
    }
    add(wrap, batch, text);
    end_if_done(wrap, batch);
}

void tci_wrap_batch_drop(struct tci_wrap *wrap, const struct json_t *id)
{
    struct tci_wrap_batch *batch = take_id(wrap, id);
    if (batch)
        end_if_done(wrap, batch);
}

int tci_wrap_batch_begin(struct tci_wrap *wrap, const struct json_t *members)
{
    struct tci_wrap_batch *batch = calloc(1, sizeof *batch);
    if (!batch)
        return -1;
    batch->text = (struct tci_buf)TCI_BUF_INIT(TCI_MCP_ANSWER_MAX);
    batch->ids = json_array();
    for (size_t i = 0; i < json_array_size(members); i++) {
        struct tci_mcp_message member;
        if (tci_mcp_read_value(json_array_get(members, i), &member, NULL) == 0 &&
            member.kind == TCI_MCP_REQUEST)
            (void)json_array_append(batch->ids, (json_t *)(uintptr_t)member.id);
        tci_mcp_message_free(&member);
    }
    batch->next = wrap->batches;
    wrap->batches = wrap->batch_read = batch;
    return 0;
}

void tci_wrap_batch_end(struct tci_wrap *wrap)
{
    struct tci_wrap_batch *batch = tc_take(wrap->batch_read);
    if (batch)
        end_if_done(wrap, batch);
}

void tci_wrap_batches_free(struct tci_wrap *wrap)
{
    while (wrap->batches) {
        struct tci_wrap_batch *batch = wrap->batches;
        wrap->batches = batch->next;
        json_decref(batch->ids);
        tci_buf_free(&batch->text);
        free(batch);
    }
}
