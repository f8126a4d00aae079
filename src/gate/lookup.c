/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: questions to the host's resolver. A question is shared by its thread and by the lookup that
 * waits for it; whoever lets go last frees it. The thread knows nothing but the question.
 *
 * A thread cannot be stopped inside of getaddrinfo(): one that nobody waits for runs to its end, which
 * the resolver's own timeouts bring. That is why their number is limited.
 */
#include "gate/lookup.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <resolv.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/fd.h"

enum { stack_size = 256 * 1024 };

struct question {
    atomic_uint holders;
    atomic_bool answered;
    int bell; /* an eventfd: readable when it was answered */
    struct tci_lookup_result result;
    char name[];
};

struct tci_lookup {
    struct tci_loop *loop;
    struct tci_source source;
    struct tci_grave grave;
    struct question *question;
    tci_lookup_done *done; /* NULL: was called, or will not be */
    void *data;
};

/* ---- how many run -------------------------------------------------------------------------------- */

/* The process in the upper half, its threads in the lower one: a child of the host that was made by
 * fork() has none of them, and must not believe that it has. */
static _Atomic uint64_t running;

static uint64_t running_here(uint64_t value)
{
    uint64_t here = (uint64_t)getpid() << 32;
    return (value & ~(uint64_t)UINT32_MAX) == here ? value : here;
}

static bool take_place(void)
{
    uint64_t old = atomic_load(&running), now;
    do {
        now = running_here(old);
        if ((now & UINT32_MAX) >= TCI_LOOKUP_RUNNING_MAX)
            return false;
    } while (!atomic_compare_exchange_weak(&running, &old, now + 1));
    return true;
}

static void leave_place(void)
{
    (void)atomic_fetch_sub(&running, 1);
}

/* ---- the thread ---------------------------------------------------------------------------------- */

static void let_go(struct question *question)
{
    if (atomic_fetch_sub(&question->holders, 1) != 1)
        return;
    (void)tci_close(question->bell);
    free(question);
}

/* False for what cannot be dialled by its bytes alone: a link-local address with an interface. */
static bool read_address(const struct addrinfo *info, struct tci_address *ret)
{
    struct tci_address address = { 0 };
    if (info->ai_family == AF_INET && info->ai_addrlen >= sizeof(struct sockaddr_in)) {
        struct sockaddr_in in;
        memcpy(&in, info->ai_addr, sizeof in);
        memcpy(address.bytes, &in.sin_addr, 4);
    } else if (info->ai_family == AF_INET6 && info->ai_addrlen >= sizeof(struct sockaddr_in6)) {
        struct sockaddr_in6 in;
        memcpy(&in, info->ai_addr, sizeof in);
        if (in.sin6_scope_id)
            return false;
        address.is_v6 = true;
        memcpy(address.bytes, &in.sin6_addr, 16);
    } else {
        return false;
    }
    /* The kernel dials a mapped address as IPv4: it is judged as what it is. */
    if (!tci_address_is_mapped(&address, ret))
        *ret = address;
    return true;
}

static bool is_known(const struct tci_lookup_result *result, const struct tci_address *address)
{
    for (size_t i = 0; i < result->count; i++)
        if (tci_address_in_prefix(&result->addresses[i], address, address->is_v6 ? 128 : 32))
            return true;
    return false;
}

/*
 * The attack: for a name that does not exist, the resolver tries the domains of the host's search list
 * behind it. "c2VjcmV0.allowed.example.corp.example" is none that a rule allows; it would leave the host
 * all the same, and its address would count as the allowed name's. A name without a dot is meant so: it
 * is no other name by that. The setting is this thread's own.
 */
static void ask_for_it_alone(const char *name)
{
#ifdef RES_DNSRCH
    if (strchr(name, '.') && res_init() == 0)
        _res.options &= ~(unsigned long)(RES_DEFNAMES | RES_DNSRCH);
#else
    (void)name;
#endif
}

static void ask(struct question *question)
{
    const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
    struct tci_lookup_result *result = &question->result;
    struct addrinfo *list = NULL;
    struct tci_address address;
    int r, problem;
    ask_for_it_alone(question->name);
    r = getaddrinfo(question->name, NULL, &hints, &list);
    problem = errno;
    if (r != 0) {
        result->end = r == EAI_NONAME || r == EAI_NODATA || r == EAI_ADDRFAMILY ? TCI_LOOKUP_NO_NAME
                                                                                : TCI_LOOKUP_FAILED;
        result->reason = r == EAI_SYSTEM ? strerrordesc_np(problem) : gai_strerror(r);
        if (!result->reason)
            result->reason = "unknown error";
        return;
    }
    for (const struct addrinfo *i = list; i && result->count < TCI_LOOKUP_ADDRESSES_MAX;
         i = i->ai_next)
        if (read_address(i, &address) && !is_known(result, &address))
            result->addresses[result->count++] = address;
    freeaddrinfo(list);
    result->end = result->count ? TCI_LOOKUP_FOUND : TCI_LOOKUP_NO_NAME;
    result->reason = result->count ? "" : "no address that could be dialled";
}

static void *run_thread(void *data)
{
    struct question *question = data;
    ask(question);
    atomic_store(&question->answered, true);
    (void)eventfd_write(question->bell, 1);
    let_go(question);
    leave_place();
    return NULL;
}

/* The host's signals are none of this thread's business: they are blocked before it is born. */
static int start_thread(struct question *question)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    int r = pthread_attr_init(&attributes);
    if (r)
        return -r;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&attributes, stack_size);
    r = pthread_create(&thread, &attributes, run_thread, question);
    if (r == EINVAL) {
        /* The host's own thread-local variables need more than that. */
        (void)pthread_attr_destroy(&attributes);
        (void)pthread_attr_init(&attributes);
        (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        r = pthread_create(&thread, &attributes, run_thread, question);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    return -r;
}

/* ---- the gate's side ----------------------------------------------------------------------------- */

static void end_lookup(struct tci_lookup *lookup)
{
    lookup->done = NULL;
    tci_loop_remove(lookup->loop, &lookup->source);
    let_go(lookup->question);
    tci_loop_bury(lookup->loop, &lookup->grave, lookup);
}

static void bell_rang(struct tci_source *source, uint32_t events)
{
    struct tci_lookup *lookup = source->data;
    tci_lookup_done *done = lookup->done;
    (void)events;
    if (!atomic_load(&lookup->question->answered))
        return;
    tci_loop_remove(lookup->loop, source);
    lookup->done = NULL;
    done(lookup->data, &lookup->question->result);
    end_lookup(lookup);
}

static struct question *new_question(const char *name)
{
    size_t size = strlen(name) + 1;
    struct question *question = calloc(1, sizeof *question + size);
    if (!question)
        return NULL;
    memcpy(question->name, name, size);
    atomic_init(&question->holders, 1);
    question->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (question->bell < 0) {
        free(question);
        return NULL;
    }
    return question;
}

int tci_lookup_start(struct tci_loop *loop, const char *name, tci_lookup_done *done, void *data,
                     struct tci_lookup **ret)
{
    struct tci_lookup *lookup;
    int r;
    if (!take_place())
        return -EAGAIN;
    errno = ENOMEM;
    lookup = calloc(1, sizeof *lookup);
    if (!lookup || !(lookup->question = new_question(name))) {
        r = -errno;
        free(lookup);
        leave_place();
        return r;
    }
    lookup->loop = loop;
    lookup->done = done;
    lookup->data = data;
    lookup->source.ready = bell_rang;
    lookup->source.data = lookup;
    r = tci_loop_add(loop, &lookup->source, lookup->question->bell, EPOLLIN);
    if (r == 0) {
        (void)atomic_fetch_add(&lookup->question->holders, 1);
        r = start_thread(lookup->question);
        if (r == 0) {
            *ret = lookup;
            return 0;
        }
        (void)atomic_fetch_sub(&lookup->question->holders, 1);
    }
    leave_place();
    end_lookup(lookup);
    return r;
}

void tci_lookup_cancel(struct tci_lookup *lookup)
{
    if (lookup && lookup->done)
        end_lookup(lookup);
}
