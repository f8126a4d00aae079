/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the fuzz target of gate/dns.h. Input: a message. Checks what must hold for each input, not what
 * one input should give.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "gate/dns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_question(const struct tci_dns_question *question)
{
    check(question->wire_length <= sizeof question->wire);
    check(strlen(question->name) <= TCI_NAME_MAX);
    for (const char *c = question->name; *c; c++)
        check(*c > 0x20 && *c < 0x7f && !(*c >= 'A' && *c <= 'Z'));
    if (!question->is_host_name)
        return;
    struct tci_host host;
    struct tci_netrule_problem problem;
    check(tci_destination_parse(question->name, strlen(question->name), &host, &problem) == 0);
    check(host.kind == TCI_HOST_NAME && strcmp(host.name, question->name) == 0);
}

/* An answer is read as a question again once it says that it is one. */
static void check_answer(const struct tci_dns_question *question, int code)
{
    static const struct tci_address v4 = { .bytes = { 198, 18, 0, 2 } };
    static const struct tci_address v6 = { .is_v6 = true, .bytes = { 0x20, 0x01, 0, 2 } };
    uint8_t *answer = malloc(TCI_DNS_MESSAGE_MAX);
    struct tci_dns_question again;

    check(answer != NULL);
    size_t length = tci_dns_write_answer(question, code, &v4, &v6, 60, answer);
    check(length >= 12 && length <= TCI_DNS_MESSAGE_MAX);
    check(tci_dns_read_question(answer, length, &again) == -1);
    check((answer[3] & 0x0f) == code);
    check(answer[7] == 0 || code == TCI_DNS_OK);
    answer[2] &= 0x7f;
    int r = tci_dns_read_question(answer, length, &again);
    check(again.id == question->id && again.opcode == question->opcode);
    check(r == 0 || question->opcode != 0 || question->wire_length == 0);
    if (r == 0) {
        check(strcmp(again.name, question->name) == 0 && again.type == question->type);
        check(answer[7] > 0 || again.has_options == question->has_options);
    }
    free(answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tci_dns_question question;
    int r = tci_dns_read_question(data, size, &question);

    check(r == -1 || r == 0 || r == TCI_DNS_MALFORMED || r == TCI_DNS_UNKNOWN);
    check_question(&question);
    if (r < 0)
        return 0;
    check(r != 0 || question.wire_length > 0);
    check_answer(&question, r);
    check_answer(&question, TCI_DNS_NO_NAME);
    return 0;
}
