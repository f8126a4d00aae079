/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the smallest MCP server over stdio: knows one tool, and answers every request at once. It is what
 * wrapping is measured on: nearly all time is the way of a message, there and back.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char initialized[] =
    "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},"
    "\"serverInfo\":{\"name\":\"echo\",\"version\":\"1\"}}";
static const char tools[] = "{\"tools\":[{\"name\":\"echo\",\"description\":\"echoes\","
                            "\"inputSchema\":{\"type\":\"object\"}}]}";
static const char called[] = "{\"content\":[{\"type\":\"text\",\"text\":\"done\"}]}";

static const char *result_of(const char *line)
{
    if (strstr(line, "\"initialize\""))
        return initialized;
    if (strstr(line, "\"tools/list\""))
        return tools;
    return strstr(line, "\"tools/call\"") ? called : "{}";
}

/* The id as it stands there, a number or a plain string; NULL: a notification. */
static const char *id_of(const char *line, int *ret_length)
{
    const char *id = strstr(line, "\"id\":");
    if (!id)
        return NULL;
    id += strlen("\"id\":");
    id += strspn(id, " ");
    *ret_length = (int)(*id == '"' ? strcspn(id + 1, "\"") + 2 : strcspn(id, ",} "));
    return id;
}

int main(void)
{
    char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, stdin) > 0) {
        int length = 0;
        const char *id = id_of(line, &length);
        if (id && dprintf(STDOUT_FILENO, "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":%s}\n",
                          length, id, result_of(line)) < 0)
            break;
    }
    free(line);
    return 0;
}
