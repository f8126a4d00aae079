/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the stub resolver of a cage. It answers for names that the rules allow, with addresses made up
 * for this cage; every other name does not exist, at once. The attack: a question is a message to
 * whoever runs the name's server ("c2VjcmV0.evil.example"). A refused name never leaves the host.
 */
#include "gate/gate_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/quote.h"

enum {
    question_max = 1024, /* what is longer is no question of a program that wants an address */
    length_size = 2,
    ttl_seconds = 60,
    idle_us = 10000000,
    any_port = 443,
    questions_per_step = 32,
};

struct tci_gate_peer {
    struct tci_gate *gate;
    struct tci_gate_peer *next;
    struct tci_source source;
    struct tci_timer timer;
    struct tci_grave grave;
    int fd;
    size_t used;
    uint8_t bytes[length_size + question_max];
};

/* ---- answers ------------------------------------------------------------------------------------ */

/* Which address a datagram was sent to, and from which the answer goes: programs check that. Where
 * there is no IPv6 the socket speaks IPv4 alone. */
union control {
    struct cmsghdr head;
    char room[CMSG_SPACE(sizeof(struct in6_pktinfo))];
};

static size_t write_control(const struct tci_gate_asker *asker, union control *ret)
{
    const struct in6_pktinfo from6 = { .ipi6_addr = asker->asked };
    struct in_pktinfo from4 = { 0 };
    const bool is_v6 = asker->address.ss_family == AF_INET6;
    const size_t size = is_v6 ? sizeof from6 : sizeof from4;
    memcpy(&from4.ipi_spec_dst, &asker->asked, sizeof from4.ipi_spec_dst);
    memset(ret, 0, sizeof *ret);
    ret->head.cmsg_level = is_v6 ? IPPROTO_IPV6 : IPPROTO_IP;
    ret->head.cmsg_type = is_v6 ? IPV6_PKTINFO : IP_PKTINFO;
    ret->head.cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(&ret->head), is_v6 ? (const void *)&from6 : (const void *)&from4, size);
    return CMSG_SPACE(size);
}

static bool read_control(struct msghdr *message, struct tci_gate_asker *ret)
{
    const struct cmsghdr *head = CMSG_FIRSTHDR(message);
    struct in_pktinfo to4;
    if (!head)
        return false;
    if (head->cmsg_level == IPPROTO_IPV6 && head->cmsg_type == IPV6_PKTINFO) {
        memcpy(&ret->asked, CMSG_DATA(head), sizeof ret->asked); /* its first member */
        return true;
    }
    if (head->cmsg_level != IPPROTO_IP || head->cmsg_type != IP_PKTINFO)
        return false;
    memcpy(&to4, CMSG_DATA(head), sizeof to4);
    memcpy(&ret->asked, &to4.ipi_addr, sizeof to4.ipi_addr);
    return true;
}

static void send_datagram(struct tci_gate *gate, const struct tci_gate_asker *asker, void *bytes,
                          size_t length)
{
    struct iovec vector = { bytes, length };
    struct sockaddr_storage to = asker->address;
    union control control;
    struct msghdr message = { .msg_name = &to,
                              .msg_namelen = asker->address_length,
                              .msg_iov = &vector,
                              .msg_iovlen = 1,
                              .msg_control = &control,
                              .msg_controllen = write_control(asker, &control) };
    (void)sendmsg(gate->sockets[TCI_GATE_SOCKET_DNS], &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void answer(struct tci_gate *gate, const struct tci_gate_asker *asker,
                   const struct tci_dns_question *question, int code, const uint32_t *index)
{
    const struct tci_address v4 = tci_gate_made_up(index ? *index : 0, false);
    const struct tci_address v6 = tci_gate_made_up(index ? *index : 0, true);
    uint8_t bytes[length_size + TCI_DNS_MESSAGE_MAX];
    size_t length = tci_dns_write_answer(question, code, index ? &v4 : NULL, index ? &v6 : NULL,
                                         ttl_seconds, bytes + length_size);
    if (!asker->peer) {
        send_datagram(gate, asker, bytes + length_size, length);
        return;
    }
    bytes[0] = (uint8_t)(length >> 8);
    bytes[1] = (uint8_t)length;
    /* Who does not read his answers gets no more of them. */
    (void)send(asker->peer->fd, bytes, length_size + length, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Is there an address that the name may have at this port? */
static bool leads_somewhere_at(struct tci_gate_name *name, uint16_t port,
                               struct tci_gate_verdict *verdict, const struct tci_address **refused)
{
    struct tci_gate_verdict by_name;
    if (!tci_gate_allows_name(name->gate->network, &name->host, port, &by_name))
        return false;
    for (size_t i = 0; i < name->found.count; i++) {
        const struct tci_address *address = &name->found.addresses[i];
        if (tci_gate_name_leads_to(name, address, port, verdict))
            return true;
        *refused = address;
    }
    return false;
}

/* Is it the first rule with its port? The others would only say the same again. */
static bool is_first_of_port(const struct tci_network *network, size_t i)
{
    for (size_t before = 0; before < i; before++)
        if (!network->rules[before].rule.deny &&
            network->rules[before].rule.port_low == network->rules[i].rule.port_low)
            return false;
    return true;
}

/* Can one of its addresses be reached at all? Else there is no use in giving the program one: it would
 * only learn later. The last word is spoken when the port is known. */
static bool find_out(struct tci_gate_name *name)
{
    const struct tci_network *network = name->gate->network;
    const struct tci_address *refused = NULL;
    struct tci_gate_verdict verdict = { 0 };
    if (network->mode == TCI_NETWORK_PUBLIC &&
        leads_somewhere_at(name, any_port, &verdict, &refused))
        return true;
    for (size_t i = 0; i < network->count; i++)
        if (!network->rules[i].rule.deny && is_first_of_port(network, i) &&
            leads_somewhere_at(name, network->rules[i].rule.port_low, &verdict, &refused))
            return true;
    if (!refused)
        return true; /* allowed in a way that only the port can tell */
    name->refusal = tci_gate_refused(name->gate, "dns", name->host.name, refused, 0, &verdict);
    return false;
}

/* Once for each lookup. The attack: a name with many refused addresses under many rules, asked for
 * again and again, keeps the host busy for seconds with each question. */
static bool leads_somewhere(struct tci_gate_name *name)
{
    if (name->leads == TCI_LEADS_NOWHERE)
        tci_gate_refused_again(name->gate, name->refusal);
    if (name->leads == TCI_LEADS_UNKNOWN)
        name->leads = find_out(name) ? TCI_LEADS_SOMEWHERE : TCI_LEADS_NOWHERE;
    return name->leads == TCI_LEADS_SOMEWHERE;
}

static void answer_known(struct tci_gate_name *name, const struct tci_gate_asker *asker,
                         const struct tci_dns_question *question)
{
    switch (name->found.end) {
    case TCI_LOOKUP_FOUND:
        if (leads_somewhere(name))
            answer(name->gate, asker, question, TCI_DNS_OK, &name->index);
        else
            answer(name->gate, asker, question, TCI_DNS_NO_NAME, NULL);
        break;
    case TCI_LOOKUP_NO_NAME:
        answer(name->gate, asker, question, TCI_DNS_NO_NAME, NULL);
        break;
    case TCI_LOOKUP_FAILED:
        answer(name->gate, asker, question, TCI_DNS_FAILED, NULL);
        break;
    }
}

void tci_gate_dns_found(struct tci_gate_name *name)
{
    struct tci_gate_waiting *waiting;
    if (name->found.end != TCI_LOOKUP_FOUND && name->waiting) {
        struct tci_gate_record record = { .event = TCI_GATE_FAILED, .protocol = "dns" };
        (void)snprintf(record.host, sizeof record.host, "%s", name->host.name);
        (void)snprintf(record.reason, sizeof record.reason, "the host could not resolve it: %s",
                       name->found.reason ? name->found.reason : "no address");
        (void)tci_gate_note(name->gate, &record);
    }
    while ((waiting = name->waiting) != NULL) {
        name->waiting = waiting->next;
        name->gate->waiting_count--;
        answer_known(name, &waiting->asker, &waiting->question);
        free(waiting);
    }
}

static bool wait_for(struct tci_gate_name *name, const struct tci_gate_asker *asker,
                     const struct tci_dns_question *question)
{
    struct tci_gate_waiting *waiting = NULL;
    if (name->gate->waiting_count < TCI_GATE_WAITING_MAX)
        waiting = malloc(sizeof *waiting);
    if (!waiting)
        return false;
    *waiting = (struct tci_gate_waiting){ name->waiting, *asker, *question };
    name->waiting = waiting;
    name->gate->waiting_count++;
    return true;
}

/* ---- questions ---------------------------------------------------------------------------------- */

/* Is it a name, and an allowed one? Then its entry. */
static bool is_allowed(struct tci_gate *gate, const struct tci_dns_question *question,
                       struct tci_host *ret)
{
    struct tci_netrule_problem problem;
    struct tci_gate_verdict verdict = { .reason = "it is no name of a host" };
    char quoted[TCI_QUOTE_MAX];
    bool is_name = question->is_host_name &&
                   tci_destination_parse(question->name, strlen(question->name), ret, &problem) ==
                       0 &&
                   ret->kind == TCI_HOST_NAME;
    if (is_name && tci_gate_allows_question(gate->network, ret, &verdict))
        return true;
    tci_gate_refused(gate, "dns",
                     is_name ? ret->name
                             : tci_quote(question->name, strlen(question->name), quoted),
                     NULL, 0, &verdict);
    return false;
}

static void handle(struct tci_gate *gate, const struct tci_gate_asker *asker, const uint8_t *bytes,
                   size_t length)
{
    struct tci_dns_question question;
    struct tci_gate_name *name;
    struct tci_host host;
    int code = tci_dns_read_question(bytes, length, &question);
    if (code < 0)
        return;
    if (code != 0 || question.class_ != 1) {
        answer(gate, asker, &question, code ? code : TCI_DNS_REFUSED, NULL);
    } else if (!is_allowed(gate, &question, &host)) {
        answer(gate, asker, &question, TCI_DNS_NO_NAME, NULL);
    } else if (question.type != TCI_DNS_A && question.type != TCI_DNS_AAAA) {
        answer(gate, asker, &question, TCI_DNS_OK, NULL); /* it exists, and has nothing of this */
    } else if ((name = tci_gate_name(gate, &host)) != NULL && tci_gate_name_is_known(name)) {
        answer_known(name, asker, &question);
    } else if (!name || !wait_for(name, asker, &question)) {
        answer(gate, asker, &question, TCI_DNS_FAILED, NULL);
    }
}

/* False: there is none. */
static bool receive(struct tci_gate *gate, int fd)
{
    uint8_t bytes[question_max];
    struct tci_gate_asker asker = { 0 };
    struct iovec vector = { bytes, sizeof bytes };
    union control control;
    struct msghdr message = { .msg_name = &asker.address,
                              .msg_namelen = sizeof asker.address,
                              .msg_iov = &vector,
                              .msg_iovlen = 1,
                              .msg_control = &control,
                              .msg_controllen = sizeof control };
    ssize_t n = recvmsg(fd, &message, MSG_DONTWAIT);
    if (n < 0)
        return false;
    asker.address_length = message.msg_namelen;
    if (!(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) && read_control(&message, &asker))
        handle(gate, &asker, bytes, (size_t)n);
    return true;
}

void tci_gate_dns_ready(struct tci_source *source, uint32_t events)
{
    struct tci_gate *gate = source->data;
    (void)events;
    for (int i = 0; i < questions_per_step && receive(gate, source->fd); i++)
        if (tci_gate_is_busy(gate, source))
            return;
}

/* ---- over TCP ------------------------------------------------------------------------------------ */

static void forget_waiting(struct tci_gate_name *name, const struct tci_gate_peer *peer)
{
    struct tci_gate_waiting **at = &name->waiting, *waiting;
    while ((waiting = *at) != NULL) {
        if (waiting->asker.peer != peer) {
            at = &waiting->next;
            continue;
        }
        *at = waiting->next;
        name->gate->waiting_count--;
        free(waiting);
    }
}

static void end_peer(struct tci_gate_peer *peer)
{
    struct tci_gate *gate = peer->gate;
    struct tci_gate_peer **at = &gate->peers;
    for (struct tci_gate_name *name = gate->names; name; name = name->next)
        forget_waiting(name, peer);
    while (*at != peer)
        at = &(*at)->next;
    *at = peer->next;
    gate->peer_count--;
    tci_loop_set_timer(gate->loop, &peer->timer, 0);
    tci_loop_remove(gate->loop, &peer->source);
    (void)tci_close(peer->fd);
    tci_loop_bury(gate->loop, &peer->grave, peer);
}

static void peer_is_late(struct tci_timer *timer)
{
    end_peer(timer->data);
}

static void peer_ready(struct tci_source *source, uint32_t events)
{
    struct tci_gate_peer *peer = source->data;
    const struct tci_gate_asker asker = { .peer = peer };
    size_t length;
    ssize_t n = recv(peer->fd, peer->bytes + peer->used, sizeof peer->bytes - peer->used,
                     MSG_DONTWAIT);
    (void)events;
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        end_peer(peer);
        return;
    }
    peer->used += n > 0 ? (size_t)n : 0;
    while (peer->used >= length_size) {
        length = (size_t)peer->bytes[0] << 8 | peer->bytes[1];
        if (length > question_max) {
            end_peer(peer);
            return;
        }
        if (peer->used < length_size + length)
            break;
        handle(peer->gate, &asker, peer->bytes + length_size, length);
        peer->used -= length_size + length;
        memmove(peer->bytes, peer->bytes + length_size + length, peer->used);
        (void)tci_gate_is_busy(peer->gate, source);
    }
    tci_loop_set_timer(peer->gate->loop, &peer->timer, tci_clock_us() + idle_us);
}

void tci_gate_dns_accept(struct tci_gate *gate, int fd)
{
    struct tci_gate_peer *peer = NULL;
    if (gate->peer_count < TCI_GATE_PEERS_MAX)
        peer = calloc(1, sizeof *peer);
    if (!peer) {
        (void)tci_close(fd);
        return;
    }
    peer->gate = gate;
    peer->fd = fd;
    peer->source = (struct tci_source){ .ready = peer_ready, .data = peer };
    peer->timer = (struct tci_timer){ .due = peer_is_late, .data = peer };
    peer->next = gate->peers;
    gate->peers = peer;
    gate->peer_count++;
    if (tci_loop_add(gate->loop, &peer->source, fd, EPOLLIN) < 0) {
        end_peer(peer);
        return;
    }
    tci_loop_set_timer(gate->loop, &peer->timer, tci_clock_us() + idle_us);
}

void tci_gate_dns_rested(struct tci_gate *gate)
{
    for (struct tci_gate_peer *peer = gate->peers; peer; peer = peer->next)
        if (!peer->source.in_loop)
            (void)tci_loop_add(gate->loop, &peer->source, peer->fd, EPOLLIN);
}

void tci_gate_dns_close(struct tci_gate *gate)
{
    while (gate->peers)
        end_peer(gate->peers);
}
