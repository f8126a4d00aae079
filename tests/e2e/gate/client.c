/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that links no resolver and no other library, for the tests of the gate.
 *
 *   gate-client get 4|6 NAME PORT         asks the name server in /etc/resolv.conf, fetches "/", prints what came
 *   gate-client race ADDRESS ADDRESS PORT COUNT
 *       dials the first IPv4 address COUNT times from several threads, while another thread puts the second one
 *       in its place, and prints how often a connection came about with each; goes on for a while where all
 *       ended in the same way: on a busy machine the other thread may not have had its turn
 *
 * Status: 0; 1 and a line "WHAT: ERRNO" on standard error.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum {
    type_a = 1,
    type_aaaa = 28,
    message_max = 512,
    head_length = 12,
    dialers = 4,
    hold = 300,     /* turns of a loop for which an address stays */
    patience = 100, /* times COUNT until all ended differently */

    fail_status = 1
};

static _Noreturn void fail(const char *what, int number)
{
    fprintf(stderr, "%s: %s\n", what, number ? strerrorname_np(number) : "none");
    exit(fail_status);
}

/* ---- Names ---- */

static struct sockaddr_in name_server(void)
{
    struct sockaddr_in server = { .sin_family = AF_INET, .sin_port = htons(53) };
    char line[256], text[64];
    FILE *file = fopen("/etc/resolv.conf", "re");

    while (file && fgets(line, sizeof(line), file)) {
        if (sscanf(line, "nameserver %63s", text) == 1 &&
            inet_pton(AF_INET, text, &server.sin_addr) == 1) {
            fclose(file);
            return server;
        }
    }
    fail("resolv.conf", 0);
}

static size_t write_question(const char *name, uint8_t type, uint8_t message[message_max])
{
    static const uint8_t head[head_length] = { 0x12, 0x34, 1, 0, 0, 1 };
    size_t at = sizeof(head);

    if (strlen(name) > 200)
        fail("name", ENAMETOOLONG);
    memcpy(message, head, sizeof(head));
    while (*name) {
        size_t length = strcspn(name, ".");
        message[at++] = (uint8_t)length;
        memcpy(message + at, name, length);
        at += length;
        name += length + (name[length] == '.');
    }
    memcpy(message + at, (uint8_t[]){ 0, 0, type, 0, 1 }, 5);
    return at + 5;
}

static size_t skip_name(const uint8_t *message, size_t at, size_t length)
{
    while (at < length && message[at] && message[at] < 0xc0)
        at += 1U + message[at];
    return at + (at < length && message[at] ? 2 : 1);
}

/* The first address of the answer. */
static bool read_answer(const uint8_t *message, size_t length, size_t question, uint8_t type,
                        void *ret)
{
    size_t at = question, size = type == type_a ? 4 : 16;

    for (unsigned count = message[7]; count > 0; count--) {
        at = skip_name(message, at, length);
        if (at + 10 > length)
            return false;
        size_t data = (size_t)message[at + 8] << 8 | message[at + 9];
        if (message[at + 1] == type && data == size && at + 10 + data <= length) {
            memcpy(ret, message + at + 10, size);
            return true;
        }
        at += 10 + data;
    }
    return false;
}

static void resolve(const char *name, uint8_t type, void *ret)
{
    struct sockaddr_in server = name_server();
    uint8_t message[message_max], answer[message_max];
    size_t length = write_question(name, type, message);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ .tv_sec = 5 },
               sizeof(struct timeval));
    if (connect(fd, (struct sockaddr *)&server, sizeof(server)) < 0 ||
        send(fd, message, length, 0) < 0)
        fail("question", errno);
    ssize_t got = recv(fd, answer, sizeof(answer), 0);
    if (got < head_length)
        fail("answer", errno);
    close(fd);
    if ((answer[3] & 15) != 0)
        fail("code", answer[3] & 15 ? ENOENT : 0);
    if (!read_answer(answer, (size_t)got, length, type, ret))
        fail("address", ENODATA);
}

/* ---- One request ---- */

static int get(const char *family, const char *name, const char *port)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = v4.sin_port };
    const bool is_v6 = *family == '6';
    char request[512], bytes[4096];
    ssize_t got;

    if (is_v6 && inet_pton(AF_INET6, name, &v6.sin6_addr) != 1)
        resolve(name, type_aaaa, &v6.sin6_addr);
    if (!is_v6 && inet_pton(AF_INET, name, &v4.sin_addr) != 1)
        resolve(name, type_a, &v4.sin_addr);
    int fd = socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, is_v6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4,
                is_v6 ? sizeof(v6) : sizeof(v4)) < 0)
        fail("connect", errno);
    int length = snprintf(request, sizeof(request),
                          "GET / HTTP/1.1\r\nHost: %.200s\r\nConnection: close\r\n\r\n", name);
    if (send(fd, request, (size_t)length, MSG_NOSIGNAL) < 0)
        fail("send", errno);
    while ((got = recv(fd, bytes, sizeof(bytes), 0)) > 0)
        fwrite(bytes, 1, (size_t)got, stdout);
    if (got < 0)
        fail("recv", errno);
    return 0;
}

/* ---- A race ---- */

static struct sockaddr_in shared;
static in_addr_t first, second;
static atomic_bool done;
static atomic_int reached[2], refused;
static int tries;

/* What a supervisor that reads the address from our memory, and lets the kernel read it again, would fall for. */
static void *exchange(void *context)
{
    for (unsigned turn = 0; !done; turn++) {
        __atomic_store_n(&shared.sin_addr.s_addr, turn % 2 ? first : second, __ATOMIC_RELAXED);
        for (unsigned pause = 0; pause < hold && !done; pause++)
            continue;
    }
    return context;
}

/* Whether attempts ended in two ways: here or there, or refused. */
static bool raced(void)
{
    return (reached[0] > 0) + (reached[1] > 0) + (refused > 0) > 1;
}

static void *dial(void *context)
{
    for (int i = 0; i < tries || (!raced() && i < tries * patience); i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct sockaddr_in peer = { .sin_family = AF_INET };
        socklen_t length = sizeof(peer);
        if (connect(fd, (struct sockaddr *)&shared, sizeof(shared)) < 0)
            refused++;
        else if (getpeername(fd, (struct sockaddr *)&peer, &length) == 0)
            reached[peer.sin_addr.s_addr == second]++;
        close(fd);
    }
    return context;
}

static int race(const char *one, const char *other, const char *port, const char *count)
{
    pthread_t exchanger, threads[dialers];
    shared = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };
    if (inet_pton(AF_INET, one, &first) != 1 || inet_pton(AF_INET, other, &second) != 1)
        fail("address", EINVAL);
    shared.sin_addr.s_addr = first;
    tries = atoi(count) / dialers;
    pthread_create(&exchanger, NULL, exchange, NULL);
    for (int i = 0; i < dialers; i++)
        pthread_create(&threads[i], NULL, dial, NULL);
    for (int i = 0; i < dialers; i++)
        pthread_join(threads[i], NULL);
    done = true;
    pthread_join(exchanger, NULL);
    printf("{\"first\": %d, \"second\": %d, \"refused\": %d}\n", reached[0], reached[1], refused);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "get") == 0)
        return get(argv[2], argv[3], argv[4]);
    if (argc == 6 && strcmp(argv[1], "race") == 0)
        return race(argv[2], argv[3], argv[4], argv[5]);
    fprintf(stderr, "usage: gate-client get 4|6 NAME PORT | race ADDRESS ADDRESS PORT COUNT\n");
    return 2;
}
