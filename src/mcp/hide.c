/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: names that are left out of what an agent is told. The attack: a model that learns from refusals whom its
 * agent works for, and how the host's directories are called, has names for its next try, and for its reports.
 *
 * Texts are searched, since they come from everywhere. What a path of the host is called in the cage takes its place:
 * so the reason still says which one it is about.
 */
#include "mcp/hide.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "base/buf.h"
#include "policy/model.h"
#include "toolcage/toolcage.h"

enum { text_max = 16 * 1024 };

static bool is_in_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

/* Does the text go on with this path, or one below it? */
static size_t match_path(const char *at, const char *path)
{
    size_t length = path ? strlen(path) : 0;
    if (length < 2 || strncmp(at, path, length) != 0 || is_in_name(at[length]))
        return 0;
    return length;
}

/* The longest path of the host that stands here: its length, and what an agent may read instead. */
static size_t find_path(const struct tci_settings *settings, const char *at, const char **ret)
{
    const struct tci_filesystem *fs = &settings->filesystem;
    size_t longest = match_path(at, settings->rootfs), length;
    if (longest)
        *ret = "(rootfs)";
    for (size_t i = 0; i < fs->count; i++) {
        length = match_path(at, fs->rules[i].host);
        if (length > longest) {
            longest = length;
            *ret = fs->rules[i].cage;
        }
    }
    return longest;
}

/* agent "NAME": all of it, if it is another than this one. */
static size_t find_agent(const char *agent, const char *at)
{
    static const char begin[] = "agent \"";
    const size_t length = sizeof begin - 1;
    const char *name = at + length, *end;
    if (strncmp(at, begin, length) != 0 || !(end = strchr(name, '"')))
        return 0;
    if (strlen(agent) == (size_t)(end - name) && strncmp(name, agent, strlen(agent)) == 0)
        return 0;
    return (size_t)(end + 1 - at);
}

/* Where a text begins to say what is wrong with the journal: all its errors begin with where it is. */
static const char *find_journal(const char *text)
{
    static const char *const beginnings[] = { "journal /", "journal file /" };
    const char *at;
    for (size_t i = 0; i < tci_array_size(beginnings); i++)
        for (at = strstr(text, beginnings[i]); at; at = strstr(at + 1, beginnings[i]))
            if (at == text || !is_in_name(at[-1]))
                return at;
    return NULL;
}

bool tci_mcp_is_of_journal(const char *text)
{
    return find_journal(text) != NULL;
}

/* Behind it nothing is for an agent. */
static void hide_journal(char *text, size_t size)
{
    const char *at = find_journal(text);
    if (at)
        (void)snprintf(text + (at - text), size - (size_t)(at - text),
                       "the journal cannot be read or written");
}

void tci_mcp_hide_text(const struct tci_tool *tool, const char *agent, char *text, size_t size)
{
    tc_cleanup(tci_buf_free) struct tci_buf out = TCI_BUF_INIT(text_max);
    const char *at = text, *instead = NULL;
    if (!agent || !*text)
        return;
    hide_journal(text, size);
    while (*at) {
        const bool begins = at == text || !(is_in_name(at[-1]) || at[-1] == '/' || at[-1] == '.');
        size_t length = 0;
        if (begins && *at == '/' && tool)
            length = find_path(&tool->settings, at, &instead);
        else if (begins && (length = find_agent(agent, at)))
            instead = "an agent that this one works for";
        if (length)
            tci_buf_string(&out, instead);
        else
            tci_buf_char(&out, *at);
        at += length ? length : 1;
    }
    if (tci_buf_check(&out, NULL) == 0)
        (void)snprintf(text, size, "%s", out.data);
    else
        (void)snprintf(text, size, "the journal has the reason");
}

void tci_mcp_hide(const struct tci_tool *tool, const char *agent, struct tc_result *result)
{
    if (agent && tci_mcp_is_of_journal(result->reason))
        (void)snprintf(result->fix, sizeof result->fix, "tell the person who runs the server");
    tci_mcp_hide_text(tool, agent, result->reason, sizeof result->reason);
    tci_mcp_hide_text(tool, agent, result->fix, sizeof result->fix);
}
