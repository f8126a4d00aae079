/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: did the kernel kill for memory in a container whose limit the engine keeps (an ordinary
 * user with root's Docker)? The engine says so only when the container has ended, and forgets it
 * then. Its control group says so at once, to everybody; it is found through entry, which is held
 * while this is asked.
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
static bool has_killed(const char *text)
{
    while (text) {
        if (strncmp(text, "oom_kill ", 9) == 0)
            return strtoull(text + 9, NULL, 10) > 0;
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    return false;
}

/* A line of /proc/PID/cgroup: "9:memory:/docker/ID" (version 1), "0::/system.slice/docker-
 * ID.scope". */
static bool look(char *line, char *text)
{
    char *controllers = strchr(line, ':'),
         *group = controllers ? strchr(controllers + 1, ':') : NULL;
    char path[PATH_MAX];
    if (!group || strstr(group, "/.."))
        return false; /* not below what we see */
    *group++ = '\0';
    controllers++;
    if (strcmp(controllers, "memory") == 0)
        (void)snprintf(path, sizeof path, "/sys/fs/cgroup/memory%s/memory.oom_control", group);
    else if (!*controllers)
        (void)snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.events", group);
    else
        return false;
    return read_text(path, text) && has_killed(text);
}

static bool group_has_killed(int pid)
{
    char path[32], *lines = malloc(TEXT_MAX), *text = malloc(TEXT_MAX), *rest = lines, *line;
    bool killed = false;
    (void)snprintf(path, sizeof path, "/proc/%d/cgroup", pid);
    if (lines && text && read_text(path, lines))
        while (!killed && (line = strsep(&rest, "\n")))
            killed = look(line, text);
    free(lines);
    free(text);
    return killed;
}

bool tci_api_out_of_memory(struct tci_oci_cage *cage)
{
    const struct tci_api_job *job = cage->driver_state;
    char path[128];
    const struct tci_api_request request = { .method = "GET", .path = path, .limit_ms = 1000 };
    struct tci_api_answer answer;
    bool killed;
    if (cage->pid > 0 && group_has_killed(cage->pid))
        return true;
    (void)snprintf(path, sizeof path, "/containers/" TCI_API_NAME_PREFIX "%s/json", job->name);
    killed = tci_api_send(job->api, &request, &answer, NULL) == 0 && answer.status == 200 &&
             tci_api_read_oom(&answer);
    tci_api_answer_free(&answer);
    return killed;
}
