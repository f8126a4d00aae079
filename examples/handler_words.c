/* SPDX-License-Identifier: Apache-2.0 */
/* A handler in a shared object: how many words are in the arguments' text? See handler.c. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <toolcage/toolcage.h>

TC_EXPORT tc_handler count_words;

/* The arguments were checked against the tool's `parameters` before, and are canonical JSON: no white
 * space but in texts. A real one would use a JSON library; its cage has those of the system. */
int count_words(const struct tc_handler_call *call)
{
    const char *at = strstr(call->arguments_json, "\"text\":\"");
    bool inside = false;
    unsigned words = 0;
    char answer[32];
    for (at = at ? at + 8 : ""; *at && *at != '"'; at++) {
        words += *at != ' ' && !inside;
        inside = *at != ' ';
    }
    (void)snprintf(answer, sizeof answer, "{\"words\":%u}", words);
    return call->reply(call, answer, strlen(answer)) < 0;
}
