/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the fuzz target of gate/hello.h and of gate/inspect.h for TLS. Input: what a client sends; its
 * last byte says in which pieces. Checks what must hold for each input.
 */
#include "inspect_feed.h"

#include "gate/hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Read at once, and byte by byte. */
static void check_reader(const uint8_t *data, size_t size)
{
    struct tci_hello_progress at_once = { 0 }, by_byte = { 0 };
    struct tci_hello hello, other;
    enum tci_hello_says said = tci_hello_read(&at_once, data, size, &hello), says = TCI_HELLO_MORE;

    for (size_t i = 0; i <= size && i < 4096 && says == TCI_HELLO_MORE; i++)
        says = tci_hello_read(&by_byte, data, i, &other);
    check(says == said || (size > 4096 && says == TCI_HELLO_MORE));
    check(hello.name_length <= TCI_HELLO_NAME_MAX);
    check((said == TCI_HELLO_MALFORMED) == (hello.problem != NULL));
    if (said != TCI_HELLO_DONE || says != said)
        return;
    check(at_once.records == by_byte.records && at_once.records <= size);
    check(at_once.have == at_once.want && at_once.records <= TCI_HELLO_MAX);
    check(hello.name_length == other.name_length &&
          memcmp(hello.name, other.name, hello.name_length) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    uint8_t choice = data[--size];
    size_t piece = choice / 4 + 1;
    if (size / piece > 5000) /* slow, and nothing new */
        piece = size / 5000;
    check_reader(data, size);
    (void)feed_both_ways(data, size, piece, choice & 1, choice & 2);
    return 0;
}
