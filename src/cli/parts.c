/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: finding the part of a verb that is meant, and refusing what it does not take (parts.h). */
#include "cli/parts.h"

#include <string.h>
#include "base/nearest.h"
#include "base/quote.h"

enum { parts_max = 16 };

static int refuse_unknown(const struct cli_call *call, const struct cli_parts *parts)
{
    const char *words[parts_max + 1] = { NULL }, *name = call->argument, *nearest;
    char remedy[96], quoted[TCI_QUOTE_MAX];
    for (size_t i = 0; i < parts->count && i < parts_max; i++)
        words[i] = parts->items[i].name;
    nearest = tci_nearest_word(name, strlen(name), words);
    if (nearest)
        (void)snprintf(remedy, sizeof remedy, "did you mean \"%s\"?", nearest);
    return cli_usage(nearest ? remedy : parts->unknown_remedy, "\"toolcage %s\" %s %s",
                     call->verb->name, parts->unknown, tci_quote(name, strlen(name), quoted));
}

int cli_run_part(const struct cli_call *call, const struct cli_parts *parts)
{
    const char *verb = call->verb->name;
    const struct cli_part *part = NULL;
    if (!call->argument)
        return cli_usage(parts->missing_remedy, "%s", parts->missing);
    for (size_t i = 0; i < parts->count; i++)
        if (strcmp(call->argument, parts->items[i].name) == 0)
            part = &parts->items[i];
    if (!part)
        return refuse_unknown(call, parts);
    /* An option that this part does not know is refused: ignored, it would look obeyed. */
    for (int id = 0; id < CLI_OPTION_COUNT; id++)
        if (call->values[id] && !((part->options | parts->options) & cli_option_bit(id)))
            return cli_usage("remove it", "\"toolcage %s %s\" has no option --%s", verb, part->name,
                             cli_options[id].name);
    if (call->more[0] && part->no_word)
        return cli_usage(part->no_word, "\"toolcage %s %s\" takes no argument", verb, part->name);
    return part->run(call, call->more[0]);
}
