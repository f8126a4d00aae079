/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: `toolcage mcp config`: what a person pastes into the settings of a client. Every path in it is
 * absolute: a client starts servers from a directory of its own choice, with a PATH of its own.
 */
#include "cli/mcp.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/nearest.h"
#include "base/quote.h"
#include "core/record.h"
#include "json/write.h"

enum { output_max = 1024 * 1024 };

/* What every client is told, in its own words. */
struct entry {
    const char *name;       /* of the server, for the client */
    char program[PATH_MAX]; /* ours */
    char policy[PATH_MAX];  /* absolute */
    char pin[PATH_MAX];     /* "": none */
    const struct cli_call *cli;
    const char *url; /* NULL: the client starts it, over stdio */
};

struct client {
    const char *name;
    const char *file;                  /* where it belongs */
    const char *path[2];               /* keys around the servers; the second may be NULL */
    const char *stdio_type;            /* of "type"; NULL: none is written */
    const char *http_key, *http_value; /* the transport; NULL: none is written */
    bool stdio_only;
    bool asks;      /* it can ask for the token and keep it */
    bool env_table; /* wants "env", even if it is empty */
};

static const struct client clients[] = {
    { .name = "claude-desktop",
      .file = "claude_desktop_config.json (Settings, Developer, Edit Config)",
      .path = { "mcpServers" },
      .stdio_only = true },
    { .name = "claude-code",
      .file = ".mcp.json in the project's directory",
      .path = { "mcpServers" },
      .stdio_type = "stdio",
      .http_key = "type",
      .http_value = "http" },
    { .name = "cursor",
      .file = "~/.cursor/mcp.json, or .cursor/mcp.json in the project's directory",
      .path = { "mcpServers" } },
    { .name = "vscode",
      .file = ".vscode/mcp.json in the project's directory",
      .path = { "servers" },
      .stdio_type = "stdio",
      .http_key = "type",
      .http_value = "http",
      .asks = true },
    { .name = "zed",
      .file = "~/.config/zed/settings.json",
      .path = { "context_servers" },
      .env_table = true },
    { .name = "openclaw",
      .file = "~/.openclaw/openclaw.json",
      .path = { "mcp", "servers" },
      .http_key = "transport",
      .http_value = "streamable-http" },
};

/* ---- one snippet -------------------------------------------------------------------------- */

static void put_stdio(struct tci_json *json, const struct client *client, const struct entry *entry)
{
    const struct cli_call *cli = entry->cli;
    const char *tool = cli->values[CLI_TOOL], *agent = cli->values[CLI_AGENT];
    if (client->stdio_type)
        tci_json_string(json, "type", client->stdio_type);
    tci_json_string(json, "command", entry->program);
    tci_json_array_begin(json, "args");
    tci_json_string(json, NULL, "mcp");
    tci_json_string(json, NULL, tool ? "wrap" : "serve");
    tci_json_string(json, NULL, "--policy");
    tci_json_string(json, NULL, entry->policy);
    if (tool) {
        tci_json_string(json, NULL, "--tool");
        tci_json_string(json, NULL, tool);
    }
    if (agent) {
        tci_json_string(json, NULL, "--agent");
        tci_json_string(json, NULL, agent);
    }
    if (*entry->pin) {
        tci_json_string(json, NULL, "--pin");
        tci_json_string(json, NULL, entry->pin);
    }
    if (cli->command) {
        tci_json_string(json, NULL, "--");
        for (char *const *word = cli->command; *word; word++)
            tci_json_string(json, NULL, *word);
    }
    tci_json_array_end(json);
    if (client->env_table) {
        tci_json_object_begin(json, "env");
        tci_json_object_end(json);
    }
}

static void put_http(struct tci_json *json, const struct client *client, const struct entry *entry)
{
    if (client->http_key)
        tci_json_string(json, client->http_key, client->http_value);
    tci_json_string(json, "url", entry->url);
    tci_json_object_begin(json, "headers");
    tci_json_string(json, "Authorization",
                    client->asks ? "Bearer ${input:toolcage-token}"
                                 : "Bearer PASTE-THE-TOKEN-HERE");
    tci_json_object_end(json);
}

/* VS Code's way to keep a secret out of a file that may be committed. */
static void put_inputs(struct tci_json *json)
{
    tci_json_array_begin(json, "inputs");
    tci_json_object_begin(json, NULL);
    tci_json_string(json, "type", "promptString");
    tci_json_string(json, "id", "toolcage-token");
    tci_json_string(json, "description", "Token of toolcage mcp");
    tci_json_bool(json, "password", true);
    tci_json_object_end(json);
    tci_json_array_end(json);
}

static void put_client(struct tci_buf *out, const struct client *client, const struct entry *entry)
{
    struct tci_json json = { .out = out, .pretty = true };
    tci_json_object_begin(&json, NULL);
    if (entry->url && client->asks)
        put_inputs(&json);
    for (size_t i = 0; i < tci_array_size(client->path); i++)
        if (client->path[i])
            tci_json_object_begin(&json, client->path[i]);
    tci_json_object_begin(&json, entry->name);
    if (entry->url)
        put_http(&json, client, entry);
    else
        put_stdio(&json, client, entry);
    tci_json_object_end(&json);
    for (size_t i = 0; i < tci_array_size(client->path); i++)
        if (client->path[i])
            tci_json_object_end(&json);
    tci_json_object_end(&json);
    tci_buf_char(out, '\n');
}

/* ---- what goes into it -------------------------------------------------------------------- */

/* The directory is resolved and the name is kept: a link may be there so that it can be changed. */
static int absolute(const char *path, char ret[PATH_MAX])
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char quoted[TCI_QUOTE_MAX], directory[PATH_MAX], resolved[PATH_MAX];
    int n = -1;

    if (!slash)
        (void)strcpy(directory, ".");
    else if ((size_t)(slash - path) < sizeof directory - 1)
        (void)snprintf(directory, sizeof directory, "%.*s/", (int)(slash - path), path);
    else
        errno = ENAMETOOLONG;
    if ((!slash || (size_t)(slash - path) < sizeof directory - 1) && realpath(directory, resolved))
        n = snprintf(ret, PATH_MAX, "%s%s%s", resolved, resolved[1] ? "/" : "", name);
    if (n > 0 && n < PATH_MAX && tci_is_utf8(ret, (size_t)n))
        return CLI_EXIT_OK;
    return cli_usage("use a path that is there and is UTF-8 text", "%s cannot be named in JSON",
                     tci_quote(path, strlen(path), quoted));
}

static int find_program(char ret[PATH_MAX])
{
    struct tc_error error = { 0 };
    ssize_t n = readlink("/proc/self/exe", ret, PATH_MAX - 1);
    if (n <= 0) {
        tci_error_errno(&error, errno, "cannot find out where this program is");
        tci_error_remedy(&error, "mount /proc");
        return cli_fail(&error);
    }
    ret[n] = '\0';
    return CLI_EXIT_OK;
}

static int check_words(const struct cli_call *cli)
{
    if (!cli_given(cli, CLI_TOOL)) {
        if (cli->command || cli_given(cli, CLI_PIN))
            return cli_usage("add --tool NAME", "%s is for a server that is wrapped",
                             cli->command ? "a command" : "--pin");
        return CLI_EXIT_OK;
    }
    for (char *const *word = cli->command; word && *word; word++)
        if (!tci_is_utf8(*word, strlen(*word)))
            return cli_usage("start it through a script", "the command is not UTF-8 text");
    return cli_given(cli, CLI_HTTP)
               ? cli_usage("leave --http out", "a wrapped server is started by its client")
               : CLI_EXIT_OK;
}

static int find_url(const struct cli_call *cli, struct tci_buf *url, const char **ret)
{
    struct mcp_address address;
    struct tc_error error = { 0 };
    if (!cli_given(cli, CLI_HTTP))
        return CLI_EXIT_OK;
    if (cli_given(cli, CLI_AGENT))
        return cli_usage("leave --agent out", "over HTTP the token says which agent calls");
    if (mcp_read_address(cli->values[CLI_HTTP], &address) < 0)
        return CLI_EXIT_REFUSED;
    if (address.port == 0)
        return cli_usage("choose a port", "a client cannot be told \"any free port\"");
    mcp_write_url(url, &address);
    if (tci_buf_check(url, &error) < 0)
        return cli_fail(&error);
    *ret = url->data;
    return CLI_EXIT_OK;
}

static int find_entry(const struct cli_call *cli, struct mcp_setup *setup, struct entry *ret)
{
    const char *tool = cli->values[CLI_TOOL], *pin = cli->values[CLI_PIN];
    char quoted[TCI_QUOTE_MAX];
    int status = check_words(cli);

    if (status == CLI_EXIT_OK)
        status = mcp_setup(cli, true, setup);
    if (status == CLI_EXIT_OK && tool && !tci_policy_tool(setup->policy, tool))
        status = cli_usage("see toolcage tools for those that it has", "the policy has no tool %s",
                           tci_quote(tool, strlen(tool), quoted));
    if (status == CLI_EXIT_OK)
        status = absolute(setup->policy_path, ret->policy);
    if (status == CLI_EXIT_OK && pin)
        status = absolute(pin, ret->pin);
    if (status == CLI_EXIT_OK)
        status = find_program(ret->program);
    ret->name = tool ? tool : "toolcage";
    ret->cli = cli;
    return status;
}

/* ---- the part ----------------------------------------------------------------------------- */

static int unknown_client(const char *name)
{
    const char *words[tci_array_size(clients) + 1] = { NULL }, *nearest;
    char remedy[96], quoted[TCI_QUOTE_MAX];
    for (size_t i = 0; i < tci_array_size(clients); i++)
        words[i] = clients[i].name;
    nearest = tci_nearest_word(name, strlen(name), words);
    if (nearest)
        (void)snprintf(remedy, sizeof remedy, "did you mean %s?", nearest);
    return cli_usage(nearest ? remedy
                             : "write claude-desktop, claude-code, cursor, vscode, zed or openclaw",
                     "there is no client %s", tci_quote(name, strlen(name), quoted));
}

static int find_client(const struct cli_call *cli, const struct client **ret)
{
    const char *name = cli->values[CLI_CLIENT];
    for (size_t i = 0; name && i < tci_array_size(clients); i++)
        if (strcmp(clients[i].name, name) == 0)
            *ret = &clients[i];
    if (name && !*ret)
        return unknown_client(name);
    if (*ret && (*ret)->stdio_only && cli_given(cli, CLI_HTTP))
        return cli_usage("leave --http out: it starts the server itself",
                         "the settings file of %s takes no address", name);
    return CLI_EXIT_OK;
}

int mcp_run_config(const struct cli_call *cli, const char *word)
{
    tc_cleanup(mcp_setup_free) struct mcp_setup setup = { 0 };
    tc_cleanup(tci_buf_free) struct tci_buf url = TCI_BUF_INIT(512);
    struct tci_buf out = TCI_BUF_INIT(output_max);
    static struct entry entry; /* large, and there is one */
    const struct client *only = NULL;
    int status = find_client(cli, &only);

    (void)word;
    if (status == CLI_EXIT_OK)
        status = find_url(cli, &url, &entry.url);
    if (status == CLI_EXIT_OK)
        status = find_entry(cli, &setup, &entry);
    if (status != CLI_EXIT_OK)
        return status;
    if (only)
        put_client(&out, only, &entry);
    for (size_t i = 0; !only && i < tci_array_size(clients); i++) {
        tci_buf_printf(&out, "%s# %s: %s\n", i ? "\n" : "", clients[i].name, clients[i].file);
        if (entry.url && clients[i].stdio_only)
            tci_buf_string(&out, "# (takes no address: see toolcage mcp config without --http)\n");
        else
            put_client(&out, &clients[i], &entry);
    }
    return cli_output(&out, true, CLI_EXIT_OK);
}
