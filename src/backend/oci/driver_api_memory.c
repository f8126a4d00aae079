/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: which limits did the kernel keep in a container whose limits are the engine's (an ordinary user
 * with root's Docker)? Did it kill for memory, or refuse a process? The engine says so only of memory, when
 * the container has ended, and forgets it then. Its control group says so at once, to everybody; it is found
 * through entry, which lives while this is asked.
 */
#include "backend/oci/driver_api.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/fd.h"

enum { TEXT_MAX = 8192 };

static bool read_text(const char *path, char *text)
{
    tc_cleanup(tci_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t used = 0;
    ssize_t n = 0;
    while (fd >= 0 && used < TEXT_MAX - 1 &&
           (n = tci_read_some(fd, text + used, TEXT_MAX - 1 - used)) > 0)
        used += (size_t)n;
    text[used] = '\0';
    return fd >= 0 && n >= 0;
}

/* "oom_kill 3": the number behind the word at the beginning of a line. */
static bool counts(const char *text, const char *word)
{
    const size_t length = strlen(word);
    while (text) {
        if (strncmp(text, word, length) == 0)
            return strtoull(text + length, NULL, 10) > 0;
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    return false;
}

/* Of one control group: where the controller is (version 1: "/memory"), and what its files say. */
static unsigned look_at(const char *controller, const char *group, const char *file,
                        const char *word, unsigned hit, char *text)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "/sys/fs/cgroup%s%s/%s", controller, group, file);
    return n < (int)sizeof path && read_text(path, text) && counts(text, word) ? hit : 0;
}

/* A line of /proc/PID/cgroup: "9:memory:/docker/ID" (version 1), "0::/system.slice/docker-
 * ID.scope". */
static unsigned look(char *line, char *text)
{
    char *controllers = strchr(line, ':'),
         *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group || strstr(group, "/.."))
        return 0; /* not below what we see */
    *group++ = '\0';
    controllers++;
    if (strcmp(controllers, "memory") == 0)
        return look_at("/memory", group, "memory.oom_control", "oom_kill ", TCI_HIT_MEMORY, text);
    if (strcmp(controllers, "pids") == 0)
        return look_at("/pids", group, "pids.events", "max ", TCI_HIT_PIDS, text);
    if (*controllers)
        return 0;
    return look_at("", group, "memory.events", "oom_kill ", TCI_HIT_MEMORY, text) |
           look_at("", group, "pids.events", "max ", TCI_HIT_PIDS, text);
}

static unsigned group_hits(int pid)
{
    char path[32], *lines = malloc(TEXT_MAX), *text = malloc(TEXT_MAX), *rest = lines, *line;
    unsigned hits = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/cgroup", pid);
    if (lines && text && read_text(path, lines))
        while ((line = strsep(&rest, "\n")))
            hits |= look(line, text);
    free(lines);
    free(text);
    return hits;
}

unsigned tci_api_hits(struct tci_oci_cage *cage, bool ask)
{
    const struct tci_api_job *job = cage->driver_state;
    char path[128];
    const struct tci_api_request request = { .method = "GET", .path = path, .limit_ms = 1000 };
    struct tci_api_answer answer;
    unsigned hits = cage->pid > 0 ? group_hits(cage->pid) : 0;
    if (!ask || hits & TCI_HIT_MEMORY)
        return hits;
    (void)snprintf(path, sizeof path, "/containers/" TCI_API_NAME_PREFIX "%s/json", job->name);
    if (tci_api_send(job->api, &request, &answer, NULL) == 0 && answer.status == 200 &&
        tci_api_read_oom(&answer))
        hits |= TCI_HIT_MEMORY;
    tci_api_answer_free(&answer);
    return hits;
}
