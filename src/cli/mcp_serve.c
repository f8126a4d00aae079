/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: `toolcage mcp serve`: what the command line says about the transport.
 * Over HTTP everybody who reaches the port is a stranger, and so are the pages of a browser on this host:
 * without a word to the contrary a token is needed, and only this host can reach it.
 */
#include "cli/mcp.h"

#include <string.h>
#include <unistd.h>
#include "base/quote.h"

enum { hosts_max = 32, host_name_max = 253 };

/* ---- an address --------------------------------------------------------------------------- */

static bool read_port(const char *text, unsigned *ret)
{
    unsigned value = 0;
    const char *p = text;
    for (; *p >= '0' && *p <= '9' && value <= 65535; p++)
        value = value * 10 + (unsigned)(*p - '0');
    *ret = value;
    return p != text && !*p && value <= 65535;
}

/* "HOST:PORT" or "[V6]:PORT". */
static bool split_address(const char *text, struct mcp_address *ret)
{
    const char *end, *colon;
    bool bracket = *text == '[';
    size_t length;
    if (bracket)
        text++;
    end = bracket ? strchr(text, ']') : strrchr(text, ':');
    colon = !end ? NULL : bracket ? end + 1 : end;
    if (!colon || *colon != ':' || end == text)
        return false;
    length = (size_t)(end - text);
    if (length >= sizeof ret->host || (!bracket && memchr(text, ':', length)))
        return false;
    memcpy(ret->host, text, length);
    ret->host[length] = '\0';
    return read_port(colon + 1, &ret->port);
}

int mcp_read_address(const char *text, struct mcp_address *ret)
{
    char quoted[TCI_QUOTE_MAX];
    if (split_address(text, ret))
        return 0;
    cli_usage("write an address and a port, such as 127.0.0.1:8080 or [::1]:8080",
              "--http cannot be %s", tci_quote(text, strlen(text), quoted));
    return -1;
}

void mcp_write_url(struct tci_buf *out, const struct mcp_address *address)
{
    bool v6 = strchr(address->host, ':') != NULL;
    tci_buf_printf(out, "http://%s%s%s:%u/mcp", v6 ? "[" : "", address->host, v6 ? "]" : "",
                   address->port);
}

/* ---- names -------------------------------------------------------------------------------- */

/* The names of --allow-host, without ports. */
struct names {
    char text[hosts_max * (host_name_max + 1)];
    const char *items[hosts_max + 1];
};

static bool is_name(const char *name, size_t length)
{
    /* A wildcard would let in every page whose name somebody points at this address. */
    return length > 0 && length <= host_name_max &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._[]:") >=
               length;
}

static int read_names(const char *list, struct names *ret)
{
    char quoted[TCI_QUOTE_MAX], *to = ret->text;
    size_t count = 0;
    for (const char *p = list;;) {
        size_t length = strcspn(p, ",");
        if (!is_name(p, length) || count == hosts_max) {
            cli_usage("write names as a browser shows them: tools.example.com,tools",
                      count == hosts_max ? "--allow-host has too many names at %s"
                                         : "--allow-host has no name in %s",
                      tci_quote(p, length, quoted));
            return -1;
        }
        ret->items[count++] = to;
        memcpy(to, p, length);
        to[length] = '\0';
        to += length + 1;
        if (!p[length])
            return 0;
        p += length + 1;
    }
}

/* ---- tokens ------------------------------------------------------------------------------- */

struct http {
    struct tci_mcp_http_options options;
    struct mcp_address address;
    struct names names;
    struct mcp_tokens tokens;
    char token[MCP_TOKEN_TEXT]; /* that was made; "": none was */
};

/* The one place where a token is shown, once: who starts the server needs it. */
static void listening(void *context, const char *url)
{
    const struct http *http = context;
    (void)fputs("toolcage: serving MCP at ", stderr);
    cli_print_line(stderr, url);
    (void)fputc('\n', stderr);
    if (*http->token)
        (void)fprintf(
            stderr,
            "toolcage: clients must send this header; the token is made anew at every start\n"
            "Authorization: Bearer %s\n",
            http->token);
    (void)fflush(stderr);
}

static int find_tokens(const struct cli_call *cli, const struct mcp_setup *setup, struct http *http)
{
    const char *path = cli->values[CLI_TOKEN_FILE];
    struct tc_error error = { 0 };
    int r;
    if (cli_given(cli, CLI_NO_TOKEN)) {
        if (path)
            return cli_usage("leave one of them out",
                             "--token-file names tokens, and --no-token says none");
        /* On the network, "no token" is an open door to everything that the policy allows. */
        if (cli_given(cli, CLI_ALLOW_REMOTE))
            return cli_usage("leave one of them out",
                             "--no-token is for this host only, and --allow-remote is for others");
        return CLI_EXIT_OK;
    }
    if (path && cli_given(cli, CLI_AGENT))
        return cli_usage("leave one of them out",
                         "--agent names one agent, and --token-file one for each token");
    r = path ? mcp_tokens_read(setup, path, &http->tokens, &error)
             : mcp_tokens_make(cli->values[CLI_AGENT], &http->tokens, http->token, &error);
    return r < 0 ? cli_fail(&error) : CLI_EXIT_OK;
}

static int find_http(const struct cli_call *cli, const struct mcp_setup *setup, struct http *http)
{
    int status;
    if (mcp_read_address(cli->values[CLI_HTTP], &http->address) < 0)
        return CLI_EXIT_REFUSED;
    if (cli_given(cli, CLI_ALLOW_HOST) && read_names(cli->values[CLI_ALLOW_HOST], &http->names) < 0)
        return CLI_EXIT_REFUSED;
    status = find_tokens(cli, setup, http);
    http->options = (struct tci_mcp_http_options){
        .address = http->address.host,
        .port = http->address.port,
        .allow_remote = cli_given(cli, CLI_ALLOW_REMOTE),
        .hosts = http->names.items,
        .tokens = http->tokens.items,
        .token_count = http->tokens.count,
        .agent = cli->values[CLI_AGENT],
        .listening = listening,
        .context = http,
    };
    return status;
}

/* ---- the part ----------------------------------------------------------------------------- */

static int serve_http(const struct cli_call *cli, struct mcp_setup *setup,
                      const struct tci_mcp_options *options)
{
    static struct http http; /* large, and there is one */
    struct tc_error error = { 0 };
    int status = find_http(cli, setup, &http);
    tci_policy_freep(&setup->policy); /* the server has its own */
    if (status == CLI_EXIT_OK && tci_mcp_serve_http(options, &http.options, &error) < 0)
        status = cli_fail(&error);
    mcp_tokens_free(&http.tokens);
    explicit_bzero(http.token, sizeof http.token);
    return status;
}

/* Options that mean something only together with --http: ignored, they would look obeyed. */
static int check_stdio(const struct cli_call *cli)
{
    static const enum cli_option_id http_only[] = { CLI_TOKEN_FILE, CLI_NO_TOKEN, CLI_ALLOW_HOST,
                                                    CLI_ALLOW_REMOTE };
    for (size_t i = 0; i < tci_array_size(http_only); i++)
        if (cli_given(cli, http_only[i]))
            return cli_usage("add --http ADDR:PORT, or remove it", "--%s is for --http",
                             cli_options[http_only[i]].name);
    if (isatty(STDIN_FILENO))
        mcp_say(NULL, "waiting for an MCP client on standard input; \"toolcage mcp config\" prints "
                      "what a client needs to start this");
    return CLI_EXIT_OK;
}

/* A client shows an empty list and no reason; most show what the server wrote to stderr in a log. */
static void say_if_nothing_can_be_called(const struct tc_policy *policy)
{
    for (size_t i = 0; i < policy->tool_count; i++)
        if (policy->tools[i].settings.command.count > 0)
            return;
    mcp_say(NULL, "the policy has no tool with a \"command\" or \"builtin\": clients see none");
}

int mcp_run_serve(const struct cli_call *cli, const char *word)
{
    tc_cleanup(mcp_setup_free) struct mcp_setup setup = { 0 };
    struct tci_mcp_options options;
    struct tc_error error = { 0 };
    int status = cli_given(cli, CLI_HTTP) ? CLI_EXIT_OK : check_stdio(cli);

    (void)word;
    if (cli->command)
        return cli_usage("to put a server into a cage, write toolcage mcp wrap",
                         "\"toolcage mcp serve\" takes no command");
    if (status == CLI_EXIT_OK)
        status = mcp_setup(cli, false, &setup);
    if (status != CLI_EXIT_OK)
        return status;
    options = (struct tci_mcp_options){
        .policy_path = setup.policy_path,
        .journal_path = setup.journal_path,
        .mode = setup.mode,
        .session = cli->values[CLI_SESSION],
        .warm = true,
        .say = mcp_say,
    };
    say_if_nothing_can_be_called(setup.policy);
    tci_mcp_files_sweep();
    if (cli_given(cli, CLI_HTTP))
        return serve_http(cli, &setup, &options);
    tci_policy_freep(&setup.policy);
    if (tci_mcp_serve_stdio(&options, cli->values[CLI_AGENT], STDIN_FILENO, STDOUT_FILENO, &error) <
        0)
        return cli_fail(&error);
    return CLI_EXIT_OK;
}
