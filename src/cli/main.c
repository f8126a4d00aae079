/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: reading the command line by the tables, and nothing else. */
#include "cli/cli.h"
#include "cli/selftest.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "base/nearest.h"
#include "base/quote.h"

enum { words_max = 32 };

static const char *quote(const char *text, char buffer[TCI_QUOTE_MAX])
{
    return tci_quote(text, strlen(text), buffer);
}

static int unknown_verb(const char *name)
{
    const char *words[words_max + 1] = { NULL }, *nearest;
    char remedy[128], text[TCI_QUOTE_MAX];
    for (size_t i = 0; i < words_max && cli_verbs[i].name; i++)
        words[i] = cli_verbs[i].name;
    nearest = tci_nearest_word(name, strlen(name), words);
    if (nearest)
        (void)snprintf(remedy, sizeof remedy, "did you mean \"%s\"?", nearest);
    return cli_usage(nearest ? remedy : "see toolcage --help", "there is no verb %s",
                     quote(name, text));
}

static int unknown_option(const struct cli_verb *verb, const char *name, size_t length)
{
    const char *words[CLI_OPTION_COUNT + 1] = { NULL }, *nearest;
    char remedy[128], text[TCI_QUOTE_MAX];
    size_t count = 0;
    for (int id = 0; id < CLI_OPTION_COUNT; id++)
        if (cli_takes(verb, id))
            words[count++] = cli_options[id].name;
    nearest = tci_nearest_word(name, length, words);
    if (nearest)
        (void)snprintf(remedy, sizeof remedy, "did you mean --%s?", nearest);
    else
        (void)snprintf(remedy, sizeof remedy, "see toolcage %s --help", verb->name);
    return cli_usage(remedy, "\"toolcage %s\" has no option %s", verb->name,
                     tci_quote(name, length, text));
}

/* The option that `word` ("--name", "--name=value", "-n", "-nvalue") means for the verb, or -1. */
static int find_option(const struct cli_verb *verb, const char *word, const char **ret_value)
{
    bool is_long = word[1] == '-';
    const char *name = word + (is_long ? 2 : 1);
    size_t length = is_long ? strcspn(name, "=") : 1;

    *ret_value = NULL;
    if (name[length] == '=')
        *ret_value = name + length + 1;
    else if (!is_long && name[length])
        *ret_value = name + length;
    for (int id = 0; id < CLI_OPTION_COUNT; id++) {
        const struct cli_option *option = &cli_options[id];
        bool same = is_long
                        ? strlen(option->name) == length && strncmp(option->name, name, length) == 0
                        : option->letter && option->letter == name[0];
        if (same && cli_takes(verb, id))
            return id;
    }
    return -1;
}

/* One option; may take the next word. Returns how many words it took, or -1. */
static int take_option(struct cli_call *call, char *const *words)
{
    const char *value;
    int id = find_option(call->verb, words[0], &value);
    const struct cli_option *option;

    if (id < 0) {
        const char *name = words[0] + strspn(words[0], "-");
        unknown_option(call->verb, name, strcspn(name, "="));
        return -1;
    }
    option = &cli_options[id];
    if (call->values[id]) {
        cli_usage("give it once", "--%s is given twice", option->name);
        return -1;
    }
    if (!option->argument && value) {
        cli_usage("remove the value", "--%s takes no value", option->name);
        return -1;
    }
    if (option->argument && !value && !(value = words[1])) {
        char remedy[80];
        (void)snprintf(remedy, sizeof remedy, "write --%s %s", option->name, option->argument);
        cli_usage(remedy, "--%s needs a value", option->name);
        return -1;
    }
    call->values[id] = option->argument ? value : "";
    return option->argument && value == words[1] ? 2 : 1;
}

static int too_many_words(const struct cli_verb *verb, const char *word)
{
    char text[TCI_QUOTE_MAX];
    bool option = cli_ends_options(verb) && word[0] == '-' && word[1];
    cli_usage(option ? "options come before TOOL" : "remove it",
              "\"toolcage %s\" does not take the argument %s", verb->name, quote(word, text));
    return -1;
}

/* How many words the verb may have besides its options and its command: as many as its help shows. */
static size_t words_of(const struct cli_verb *verb)
{
    size_t count = 0;
    for (const char *p = verb->arguments + strspn(verb->arguments, " "); *p; p += strspn(p, " ")) {
        if (cli_takes_command_behind(verb) && strncmp(p, "[-- ", 4) == 0)
            break;
        count++;
        p += strcspn(p, " ");
    }
    return count < CLI_WORDS_MAX ? count : CLI_WORDS_MAX;
}

/* What follows "--" of a verb with words of its own. */
static int take_command(struct cli_call *call, char *const *words)
{
    if (!*words) {
        cli_usage("write the command behind it, or leave it out", "there is no command behind --");
        return -1;
    }
    call->command = words;
    return 0;
}

static int take_words(struct cli_call *call, char *const *words)
{
    size_t count = 0, most = words_of(call->verb);
    bool options = true;
    while (*words) {
        if (options && strcmp(*words, "--") == 0) {
            options = false;
            words++;
            if (cli_takes_command_behind(call->verb))
                return take_command(call, words);
        } else if (options && (*words)[0] == '-' && (*words)[1]) {
            int taken = take_option(call, words);
            if (taken < 0)
                return -1;
            words += taken;
        } else if (cli_takes_command(call->verb)) {
            call->command = words;
            return 0;
        } else if (count < most) {
            *(count == 0 ? &call->argument : &call->more[count - 1]) = *words++;
            count++;
            options &= !cli_ends_options(call->verb);
        } else {
            return too_many_words(call->verb, *words);
        }
    }
    return 0;
}

static int print_help(const struct cli_verb *verb)
{
    struct tci_buf out = TCI_BUF_INIT(65536);
    cli_help(&out, verb);
    return cli_output(&out, false, CLI_EXIT_OK);
}

static int print_version(void)
{
    struct tci_buf out = TCI_BUF_INIT(256);
    tci_buf_printf(&out, "toolcage %s\n", tc_version());
    return cli_output(&out, false, CLI_EXIT_OK);
}

int cli_run_help(const struct cli_call *call)
{
    const struct cli_verb *verb = NULL;
    if (call->argument && !(verb = cli_find_verb(call->argument)))
        return unknown_verb(call->argument);
    return print_help(verb);
}

/* A closed 0, 1 or 2 would be taken by the next file that is opened, and written to. What stands in
 * for it is open the wrong way round, so that using it fails: an answer that nobody gets must not look
 * like a success. */
static int open_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        int opened = fd;
        if (fcntl(fd, F_GETFD) < 0)
            opened = open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
        if (opened != fd)
            return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct cli_call call = { 0 };
    const char *first = argc > 1 ? argv[1] : NULL;

    if (open_standard_streams() < 0)
        return CLI_EXIT_REFUSED;
    if (!first)
        return cli_usage("see toolcage --help", "a verb is missing");
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0)
        return print_help(NULL);
    if (strcmp(first, "--version") == 0 || strcmp(first, "-V") == 0)
        return print_version();
    if (strcmp(first, "selftest-attempt") == 0) /* inside a cage; not for people */
        return selftest_inside(argc - 2, argv + 2);
    call.verb = cli_find_verb(first);
    if (!call.verb)
        return unknown_verb(first);
    if (take_words(&call, argv + 2) < 0)
        return CLI_EXIT_REFUSED;
    if (cli_given(&call, CLI_HELP))
        return print_help(call.verb);
    return call.verb->run(&call);
}
