/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the first process of a container, for real: what it starts, what it reports, what it refuses, and
 * that nothing outlives it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <cmocka.h>
#include "entry_support.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include "base/buf.h"

enum { patience_ms = 20000 };

struct entry {
    pid_t pid;
    int control, out; /* out: what the command prints */
    int given[3], group;
};

/* What a message is made of; a test changes what it is about. */
struct draft {
    struct tci_entry_start head;
    bool keep_length, keep_counts;
    struct tci_entry_limit limits[20];
    struct sock_filter filter[4];
    const char *directory;
    const char *places[4], *env[8], *argv[8];
    size_t fd_count;
};

static struct draft draft_of(const char *script)
{
    return (struct draft){
        .head = { .magic = TCI_ENTRY_MAGIC },
        .directory = "/",
        .env = { "PATH=/usr/bin:/bin" },
        .argv = { "/bin/sh", "-c", script },
        .fd_count = 3,
    };
}

static struct tci_buf message_of(struct draft *d)
{
    struct tci_buf out = TCI_BUF_INIT(8 << 20);
    size_t env = 0, args = 0, places = 0;
    while (d->places[places])
        places++;
    while (d->env[env])
        env++;
    while (d->argv[args])
        args++;
    if (!d->keep_counts) {
        d->head.place_count = (uint32_t)places;
        d->head.env_count = (uint32_t)env;
        d->head.arg_count = (uint32_t)args;
    }
    tci_buf_append(&out, (const char *)&d->head, sizeof d->head);
    tci_buf_append(&out, (const char *)d->limits,
                   (d->head.limit_count < 20 ? d->head.limit_count : 0) * sizeof d->limits[0]);
    tci_buf_append(&out, (const char *)d->filter,
                   (d->head.filter_count < 4 ? d->head.filter_count : 0) * sizeof d->filter[0]);
    tci_buf_append(&out, d->directory, strlen(d->directory) + 1);
    for (size_t i = 0; i < places; i++)
        tci_buf_append(&out, d->places[i], strlen(d->places[i]) + 1);
    for (size_t i = 0; i < env; i++)
        tci_buf_append(&out, d->env[i], strlen(d->env[i]) + 1);
    for (size_t i = 0; i < args; i++)
        tci_buf_append(&out, d->argv[i], strlen(d->argv[i]) + 1);
    if (!d->keep_length)
        d->head.length = (uint32_t)(out.length - sizeof d->head);
    assert_non_null(out.data);
    memcpy(out.data, &d->head, sizeof d->head);
    return out;
}

/* The first bytes with descriptors. */
static void send_first(const struct entry *e, const char *bytes, size_t length, size_t fd_count)
{
    int fds[4] = { e->given[0], e->given[1], e->given[2], e->group > 0 ? e->group : e->given[0] };
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof fds)];
    } room = { 0 };
    struct iovec vector = { (void *)(uintptr_t)bytes, length };
    struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1 };
    if (fd_count) {
        message.msg_control = &room;
        message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
        room.head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(fd_count * sizeof(int)),
                                      .cmsg_level = SOL_SOCKET,
                                      .cmsg_type = SCM_RIGHTS };
        memcpy(CMSG_DATA(&room.head), fds, fd_count * sizeof(int));
    }
    assert_int_equal(sendmsg(e->control, &message, MSG_NOSIGNAL), (ssize_t)length);
}

static void drop_given(struct entry *e)
{
    for (int i = 0; i < 3; i++) {
        if (e->given[i] >= 0)
            (void)close(e->given[i]);
        e->given[i] = -1;
    }
}

static void send_draft(struct entry *e, struct draft *d)
{
    struct tci_buf out = message_of(d);
    send_first(e, out.data, out.length, d->fd_count);
    drop_given(e);
    tci_buf_free(&out);
}

/* The next report; kind 0: the socket has ended. */
static struct tci_entry_report next_report(const struct entry *e)
{
    struct tci_entry_report r = { 0 };
    struct pollfd p = { .fd = e->control, .events = POLLIN };
    ssize_t n;
    assert_int_equal(poll(&p, 1, patience_ms), 1);
    n = recv(e->control, &r, sizeof r, MSG_WAITALL);
    if (n <= 0)
        return (struct tci_entry_report){ 0 };
    assert_int_equal(n, sizeof r);
    assert_int_equal(r.magic, TCI_ENTRY_MAGIC);
    return r;
}

static struct entry start_entry_with(unsigned long flags)
{
    struct entry e = { .control = -1 };
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    e.out = ends[0];
    e.given[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    e.given[1] = ends[1];
    e.given[2] = open("/dev/null", O_WRONLY | O_CLOEXEC);
    e.pid = spawn_entry_with(flags, &e.control);
    assert_int_equal(next_report(&e).kind, TCI_ENTRY_HELLO);
    return e;
}

static struct entry start_entry(void)
{
    return start_entry_with(0);
}

static void end_entry(struct entry *e)
{
    drop_given(e);
    (void)close(e->out);
    if (e->control >= 0)
        (void)close(e->control);
    assert_int_equal(waitpid(e->pid, NULL, 0), e->pid);
}

static void expect(const struct entry *e, enum tci_entry_kind kind, int status)
{
    struct tci_entry_report r = next_report(e);
    if (r.kind != kind || r.status != status)
        fail_msg("report %u with status %d (step %u), not %u with %d", r.kind, r.status, r.step,
                 kind, status);
}

/* All that the command prints; also says that nobody has its output open any more. */
static const char *output_of(const struct entry *e)
{
    static char text[8192];
    size_t length = 0;
    for (;;) {
        struct pollfd p = { .fd = e->out, .events = POLLIN };
        ssize_t n;
        assert_int_equal(poll(&p, 1, patience_ms), 1);
        n = read(e->out, text + length, sizeof text - 1 - length);
        if (n <= 0)
            break;
        length += (size_t)n;
    }
    text[length] = '\0';
    return text;
}

/* A draft that must run: its output. */
static const char *run(struct draft d)
{
    struct entry e = start_entry();
    const char *text;
    send_draft(&e, &d);
    expect(&e, TCI_ENTRY_STARTED, 0);
    text = output_of(&e);
    expect(&e, TCI_ENTRY_ENDED, 0);
    end_entry(&e);
    return text;
}

/* ---- hello ------------------------------------------------------------------------------------------ */

static void test_hello_says_who_it_is_and_brings_its_root(void **state)
{
    static const int on = 1;
    struct tci_entry_report hello = { 0 };
    struct iovec vector = { &hello, sizeof hello };
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int))];
    } room;
    struct msghdr message = {
        .msg_iov = &vector, .msg_iovlen = 1, .msg_control = &room, .msg_controllen = sizeof room
    };
    struct stat root, own;
    int control, fd = -1;
    struct ucred who = { 0 };
    pid_t pid = spawn_entry(&control);
    (void)state;
    assert_int_equal(setsockopt(control, SOL_SOCKET, SO_PASSCRED, &on, sizeof on), 0);
    assert_int_equal(recvmsg(control, &message, MSG_CMSG_CLOEXEC), sizeof hello);
    assert_int_equal(hello.kind, TCI_ENTRY_HELLO);
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_type == SCM_CREDENTIALS)
            memcpy(&who, CMSG_DATA(c), sizeof who);
        if (c->cmsg_type == SCM_RIGHTS)
            memcpy(&fd, CMSG_DATA(c), sizeof fd);
    }
    assert_int_equal(who.pid, pid);
    assert_true(fd >= 0 && fcntl(fd, F_GETFL) & O_PATH);
    assert_int_equal(fstat(fd, &root), 0);
    assert_int_equal(stat("/", &own), 0);
    assert_int_equal(root.st_ino, own.st_ino);
    (void)close(fd);
    (void)close(control);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_supervisor_that_goes_before_the_call_ends_entry(void **state)
{
    struct entry e = start_entry();
    int status;
    (void)state;
    (void)close(e.control);
    assert_int_equal(waitpid(e.pid, &status, 0), e.pid);
    assert_true(WIFEXITED(status));
    drop_given(&e);
    (void)close(e.out);
}

/* ---- what runs ------------------------------------------------------------------------------------------ */

static void test_command_gets_streams_environment_and_directory(void **state)
{
    struct draft d = draft_of("echo \"$X:$PWD:$(umask)\"; env | wc -l");
    (void)state;
    d.env[1] = "X=y";
    d.directory = "/usr";
    assert_string_equal(run(d), "y:/usr:0022\n3\n"); /* and PWD of the shell */
}

static void test_exit_status_and_signal_are_reported_as_they_were(void **state)
{
    struct draft d = draft_of("exit 7");
    struct entry e = start_entry();
    (void)state;
    send_draft(&e, &d);
    expect(&e, TCI_ENTRY_STARTED, 0);
    expect(&e, TCI_ENTRY_ENDED, 7 << 8);
    end_entry(&e);
    d = draft_of("kill -SEGV $$");
    e = start_entry();
    send_draft(&e, &d);
    expect(&e, TCI_ENTRY_STARTED, 0);
    assert_int_equal(next_report(&e).status & 0x7f, SIGSEGV);
    end_entry(&e);
}

static void test_signals_are_as_at_birth(void **state)
{
    (void)state;
    assert_string_equal(run(draft_of("grep -E 'Sig(Blk|Ign)' /proc/self/status")),
                        "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

static void test_command_is_a_session_of_its_own(void **state)
{
    (void)state;
    assert_string_equal(run(draft_of("read -r p c s ppid group session rest < /proc/self/stat; "
                                     "[ $$ = $session ] && [ $$ = $group ] && echo own")),
                        "own\n");
}

static void test_what_the_runtime_left_open_is_not_the_commands(void **state)
{
    int leaked = fcntl(STDERR_FILENO, F_DUPFD, 40), directory = open("/", O_RDONLY | O_DIRECTORY);
    (void)state;
    assert_true(leaked >= 40 && directory >= 0);
    assert_string_equal(run(draft_of("for i in $(seq 0 99); do [ ! -e /proc/$$/fd/$i ] || echo $i; "
                                     "done")),
                        "0\n1\n2\n");
    (void)close(leaked);
    (void)close(directory);
}

static void test_limits_are_set_and_never_raised(void **state)
{
    struct draft d = draft_of("ulimit -Sn; ulimit -Hn; ulimit -Hc");
    struct rlimit present;
    char expected[128];
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_CORE, &present), 0);
    d.head.limit_count = 2;
    d.limits[0] = (struct tci_entry_limit){ .resource = RLIMIT_NOFILE, .value = 17 };
    d.limits[1] = (struct tci_entry_limit){ .resource = RLIMIT_CORE, .value = UINT64_MAX };
    if (present.rlim_max == RLIM_INFINITY)
        (void)snprintf(expected, sizeof expected, "17\n17\nunlimited\n");
    else
        (void)snprintf(expected, sizeof expected, "17\n17\n%lu\n",
                       (unsigned long)present.rlim_max / 512);
    assert_string_equal(run(d), expected);
}

static void test_limit_above_the_hard_one_stays_at_it(void **state)
{
    struct draft d = draft_of("ulimit -Hn");
    struct rlimit before, lower;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    lower = (struct rlimit){ 200, before.rlim_max };
    d.head.limit_count = 1;
    d.limits[0] = (struct tci_entry_limit){ .resource = RLIMIT_NOFILE, .value = UINT64_MAX / 2 };
    if (before.rlim_max > 1000000)
        skip();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &lower), 0);
    assert_int_equal(strtoul(run(d), NULL, 10), before.rlim_max);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void test_filter_and_no_new_privileges_are_installed(void **state)
{
    struct draft d = draft_of("grep -E 'NoNewPrivs|Seccomp:' /proc/self/status");
    (void)state;
    d.head.flags = TCI_ENTRY_NO_NEW_PRIVS;
    d.head.filter_count = 1;
    d.filter[0] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    assert_string_equal(run(d), "NoNewPrivs:\t1\nSeccomp:\t2\n");
}

static void test_program_is_looked_up_as_a_shell_does_it(void **state)
{
    char directory[] = "/tmp/toolcage-entry-XXXXXX", path[64], file[80], env[160];
    struct draft d = { .head.magic = TCI_ENTRY_MAGIC, .directory = "/", .fd_count = 3 };
    const struct {
        const char *name;
        int problem;
    } cases[] = { { "no-such-program", ENOENT },
                  { "/no/such", ENOENT },
                  { "plain", EACCES },
                  { "/etc/passwd/x", ENOTDIR },
                  { "/tmp", EACCES } };
    int fd;
    (void)state;
    assert_non_null(mkdtemp(directory));
    (void)snprintf(path, sizeof path, "%s", directory);
    (void)snprintf(file, sizeof file, "%s/plain", path);
    fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
    (void)snprintf(env, sizeof env, "PATH=:/etc/passwd:%s:/usr/bin:/bin", path);
    d.env[0] = env;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct entry e = start_entry();
        d.argv[0] = cases[i].name;
        send_draft(&e, &d);
        expect(&e, TCI_ENTRY_NOT_STARTED, cases[i].problem);
        assert_int_equal(next_report(&e).kind, 0);
        end_entry(&e);
    }
    d.argv[0] = "echo";
    d.argv[1] = "found";
    assert_string_equal(run(d), "found\n");
    (void)unlink(file);
    (void)rmdir(directory);
}

static void test_directory_that_is_not_there_breaks_the_call(void **state)
{
    struct draft d = draft_of("true");
    struct entry e = start_entry();
    struct tci_entry_report r;
    (void)state;
    d.directory = "/no/such/directory";
    send_draft(&e, &d);
    r = next_report(&e);
    assert_int_equal(r.kind, TCI_ENTRY_BROKEN);
    assert_int_equal(r.step, TCI_ENTRY_STEP_DIRECTORY);
    assert_int_equal(r.status, ENOENT);
    end_entry(&e);
}

/* A named pipe can be written to through a read-only mount: only the list of places stops that. */
static void test_files_are_written_in_the_places_that_are_listed(void **state)
{
    char directory[] = "/tmp/toolcage-entry-XXXXXX", in[64], script[256] = "";
    struct draft d = draft_of(script);
    (void)state;
    if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1) < 1)
        skip();
    assert_non_null(mkdtemp(directory));
    (void)snprintf(in, sizeof in, "%s/in", directory);
    assert_int_equal(mkdir(in, 0700), 0);
    (void)snprintf(script, sizeof script,
                   "cd %s && mkdir out && mkfifo out/pipe && echo x > in/file && cat in/file; "
                   "(echo x 1<>out/pipe) 2>/dev/null || echo refused; echo y > /dev/null && echo z",
                   directory);
    d.head.flags = TCI_ENTRY_NO_NEW_PRIVS;
    d.places[0] = in;
    d.places[1] = "/no/such/place";
    d.places[2] = "/dev";
    assert_string_equal(run(d), "x\nrefused\nz\n");
    (void)snprintf(script, sizeof script, "rm -r %s", directory);
    assert_int_equal(system(script), 0);
}

static void test_groups_are_entered_and_closed_before_the_command(void **state)
{
    struct draft d = draft_of("for i in $(seq 3 99); do [ ! -e /proc/$$/fd/$i ] || echo $i; done");
    struct entry e = start_entry();
    int ends[2];
    char text[8] = "";
    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    d.head.group_count = 1;
    d.fd_count = 4;
    e.group = ends[1];
    send_draft(&e, &d);
    (void)close(ends[1]);
    expect(&e, TCI_ENTRY_STARTED, 0);
    assert_string_equal(output_of(&e), "");
    expect(&e, TCI_ENTRY_ENDED, 0);
    assert_int_equal(read(ends[0], text, sizeof text), 1);
    assert_string_equal(text, "0");
    assert_int_equal(read(ends[0], text, sizeof text), 0); /* nobody has it any more */
    (void)close(ends[0]);
    end_entry(&e);
}

static void test_group_that_cannot_be_entered_breaks_the_call(void **state)
{
    struct draft d = draft_of("echo ran");
    struct entry e = start_entry();
    struct tci_entry_report r;
    (void)state;
    d.head.group_count = 1;
    d.fd_count = 4;
    e.group = e.given[0]; /* not for writing */
    send_draft(&e, &d);
    r = next_report(&e);
    assert_int_equal(r.kind, TCI_ENTRY_BROKEN);
    assert_int_equal(r.step, TCI_ENTRY_STEP_GROUP);
    assert_string_equal(output_of(&e), "");
    end_entry(&e);
}

/* ---- the end ---------------------------------------------------------------------------------------- */

static void test_supervisor_that_goes_in_mid_call_ends_the_tree(void **state)
{
    struct draft d = draft_of("sleep 1000 & echo up; sleep 1000");
    struct entry e = start_entry();
    (void)state;
    send_draft(&e, &d);
    expect(&e, TCI_ENTRY_STARTED, 0);
    (void)close(e.control);
    e.control = -1;
    (void)output_of(&e); /* ends with the last process */
    end_entry(&e);
}

static void test_what_the_command_left_behind_is_gone_with_the_report(void **state)
{
    struct draft d = draft_of("sleep 1000 & exit 3");
    struct entry e = start_entry();
    struct pollfd p;
    (void)state;
    send_draft(&e, &d);
    expect(&e, TCI_ENTRY_STARTED, 0);
    expect(&e, TCI_ENTRY_ENDED, 3 << 8);
    p = (struct pollfd){ .fd = e.out, .events = POLLIN };
    assert_int_equal(poll(&p, 1, 0), 1);
    assert_true(p.revents & POLLHUP);
    end_entry(&e);
}

/* In a pid namespace, as in a container: also those who made sessions of their own. */
static void test_first_process_ends_everybody_in_its_namespace(void **state)
{
    const unsigned long flags = CLONE_NEWPID | (geteuid() ? CLONE_NEWUSER : 0);
    struct draft d = draft_of("for i in 1 2 3 4 5; do setsid sleep 1000 & done; "
                              "(setsid sh -c 'while :; do sleep 1000 & wait; done' &); exit 0");
    struct entry e;
    struct pollfd p;
    pid_t probe = (pid_t)syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);
    (void)state;
    if (!probe)
        _exit(0);
    if (probe < 0)
        skip();
    assert_int_equal(waitpid(probe, NULL, 0), probe);
    e = start_entry_with(flags);
    send_draft(&e, &d);
    expect(&e, TCI_ENTRY_STARTED, 0);
    expect(&e, TCI_ENTRY_ENDED, 0);
    p = (struct pollfd){ .fd = e.out, .events = POLLIN };
    assert_int_equal(poll(&p, 1, 0), 1);
    assert_true(p.revents & POLLHUP);
    end_entry(&e);
}

static void test_command_cannot_look_into_entry(void **state)
{
    struct draft d = draft_of("ls /proc/$PPID/fd >/dev/null 2>&1 && echo seen; echo done");
    (void)state;
    if (!geteuid())
        d = draft_of("stat -c %u:%a /proc/$PPID/fd; echo done"); /* root sees all; what is not
                                                                    dumpable is root's */
    assert_string_equal(run(d), geteuid() ? "done\n" : "0:500\ndone\n");
}

static void test_held_entry_leaves_at_a_byte(void **state)
{
    struct draft d = draft_of("true");
    struct entry e = start_entry();
    (void)state;
    d.head.flags = TCI_ENTRY_HOLD;
    send_draft(&e, &d);
    expect(&e, TCI_ENTRY_STARTED, 0);
    expect(&e, TCI_ENTRY_ENDED, 0);
    (void)usleep(20000);
    assert_int_equal(waitpid(e.pid, NULL, WNOHANG), 0);
    assert_int_equal(send(e.control, "h", 1, MSG_NOSIGNAL), 1);
    assert_int_equal(next_report(&e).kind, 0);
    end_entry(&e);
}

/* ---- messages that are not right ---------------------------------------------------------------------- */

static void expect_refusal(struct draft d, const char *what)
{
    struct entry e = start_entry();
    struct tci_entry_report r;
    send_draft(&e, &d);
    r = next_report(&e);
    if (r.kind != TCI_ENTRY_BROKEN || r.step != TCI_ENTRY_STEP_MESSAGE || r.status != EBADMSG)
        fail_msg("%s: report %u, step %u, status %d", what, r.kind, r.step, r.status);
    assert_string_equal(output_of(&e), "");
    end_entry(&e);
}

#define REFUSED(what, ...)                                                                         \
    do {                                                                                           \
        struct draft d = draft_of("echo ran");                                                     \
        __VA_ARGS__;                                                                               \
        expect_refusal(d, what);                                                                   \
    } while (0)

static void test_malformed_messages_are_refused(void **state)
{
    (void)state;
    REFUSED("magic", d.head.magic = 1);
    REFUSED("flag", d.head.flags = 1U << 31);
    REFUSED("groups that did not come", d.head.group_count = 1);
    REFUSED("groups without end", d.head.group_count = UINT32_MAX);
    REFUSED("no descriptors", d.fd_count = 0);
    REFUSED("two descriptors", d.fd_count = 2);
    REFUSED("four descriptors", d.fd_count = 4);
    REFUSED("too long", d.keep_length = true, d.head.length = TCI_ENTRY_BYTES_MAX + 1);
    REFUSED("far too long", d.keep_length = true, d.head.length = UINT32_MAX);
    REFUSED("shorter than its texts", d.keep_length = true, d.head.length = 30);
    REFUSED("too many limits", d.head.limit_count = TCI_ENTRY_LIMITS_MAX + 1);
    REFUSED("limits beyond the end", d.head.limit_count = UINT32_MAX);
    REFUSED("filter beyond the end", d.head.filter_count = 4096);
    REFUSED("filter too long", d.head.filter_count = UINT32_MAX);
    REFUSED("resource", d.head.limit_count = 1, d.limits[0].resource = 16);
    REFUSED("unused of a limit", d.head.limit_count = 1, d.limits[0].unused = 1);
    REFUSED("no command", d.keep_counts = true, d.head.env_count = 4);
    REFUSED("fewer arguments than texts", d.keep_counts = true, d.head.env_count = 1,
            d.head.arg_count = 2);
    REFUSED("more arguments than texts", d.keep_counts = true, d.head.env_count = 1,
            d.head.arg_count = 4);
    REFUSED("counts that overflow", d.keep_counts = true, d.head.env_count = UINT32_MAX,
            d.head.arg_count = UINT32_MAX);
    REFUSED("relative place", d.places[0] = "tmp");
    REFUSED("places without end", d.keep_counts = true, d.head.place_count = UINT32_MAX,
            d.head.env_count = 1, d.head.arg_count = 3);
    REFUSED("unused", d.head.unused = 1);
    REFUSED("relative directory", d.directory = "usr");
    REFUSED("no directory", d.directory = "");
    REFUSED("variable without value", d.env[1] = "X");
    REFUSED("variable without name", d.env[1] = "=x");
    REFUSED("empty program", d.argv[0] = "");
}

static void test_message_without_its_last_nul_is_refused(void **state)
{
    struct draft d = draft_of("echo ran");
    struct tci_buf out = message_of(&d);
    struct entry e = start_entry();
    (void)state;
    out.data[out.length - 1] = 'x';
    send_first(&e, out.data, out.length, 3);
    drop_given(&e);
    assert_int_equal(next_report(&e).kind, TCI_ENTRY_BROKEN);
    assert_string_equal(output_of(&e), "");
    tci_buf_free(&out);
    end_entry(&e);
}

static void test_message_that_breaks_off_starts_nothing(void **state)
{
    struct draft d = draft_of("echo ran");
    struct tci_buf out = message_of(&d);
    (void)state;
    for (size_t length = 1; length < out.length; length += length < 40 ? 13 : 29) {
        struct entry e = start_entry();
        send_first(&e, out.data, length, 3);
        drop_given(&e);
        (void)close(e.control);
        e.control = -1;
        assert_string_equal(output_of(&e), "");
        end_entry(&e);
    }
    tci_buf_free(&out);
}

static void test_message_may_come_byte_by_byte(void **state)
{
    struct draft d = draft_of("echo ran");
    struct tci_buf out = message_of(&d);
    struct entry e = start_entry();
    (void)state;
    send_first(&e, out.data, 1, 3);
    drop_given(&e);
    for (size_t i = 1; i < out.length; i++)
        assert_int_equal(send(e.control, out.data + i, 1, MSG_NOSIGNAL), 1);
    expect(&e, TCI_ENTRY_STARTED, 0);
    assert_string_equal(output_of(&e), "ran\n");
    expect(&e, TCI_ENTRY_ENDED, 0);
    tci_buf_free(&out);
    end_entry(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hello_says_who_it_is_and_brings_its_root),
        cmocka_unit_test(test_supervisor_that_goes_before_the_call_ends_entry),
        cmocka_unit_test(test_command_gets_streams_environment_and_directory),
        cmocka_unit_test(test_exit_status_and_signal_are_reported_as_they_were),
        cmocka_unit_test(test_signals_are_as_at_birth),
        cmocka_unit_test(test_command_is_a_session_of_its_own),
        cmocka_unit_test(test_what_the_runtime_left_open_is_not_the_commands),
        cmocka_unit_test(test_limits_are_set_and_never_raised),
        cmocka_unit_test(test_limit_above_the_hard_one_stays_at_it),
        cmocka_unit_test(test_filter_and_no_new_privileges_are_installed),
        cmocka_unit_test(test_program_is_looked_up_as_a_shell_does_it),
        cmocka_unit_test(test_directory_that_is_not_there_breaks_the_call),
        cmocka_unit_test(test_files_are_written_in_the_places_that_are_listed),
        cmocka_unit_test(test_groups_are_entered_and_closed_before_the_command),
        cmocka_unit_test(test_group_that_cannot_be_entered_breaks_the_call),
        cmocka_unit_test(test_supervisor_that_goes_in_mid_call_ends_the_tree),
        cmocka_unit_test(test_what_the_command_left_behind_is_gone_with_the_report),
        cmocka_unit_test(test_first_process_ends_everybody_in_its_namespace),
        cmocka_unit_test(test_command_cannot_look_into_entry),
        cmocka_unit_test(test_held_entry_leaves_at_a_byte),
        cmocka_unit_test(test_malformed_messages_are_refused),
        cmocka_unit_test(test_message_without_its_last_nul_is_refused),
        cmocka_unit_test(test_message_that_breaks_off_starts_nothing),
        cmocka_unit_test(test_message_may_come_byte_by_byte),
    };
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
