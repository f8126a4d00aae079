/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: JSON of strangers, from a model or from a cage. Before the parser gets a text, one pass over
 * its bytes bounds what the parser would make of it. The attacks: a text that is small and becomes
 * large in memory; one so deep that whoever reads the result overflows a stack; an integer such as an
 * id that is rounded on its way, and then names something else.
 * Trusts: the parser with syntax; the pass only looks at what a valid text would mean.
 */
#include "core/contract.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include "base/quote.h"
#include "json/canonical.h"

const struct tci_contract_side tci_side_arguments = { "arguments", "the arguments are",
                                                      "the arguments have", TCI_ARGUMENTS_MAX };
const struct tci_contract_side tci_side_output = { "output", "the output is", "the output has",
                                                   TCI_OUTPUT_JSON_MAX };

/* 1, for the caller to return. */
static int tci_printf_like(3, 4)
    wrong(struct tci_contract_problem *problem, const char *fix, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(problem->reason, sizeof problem->reason, format, args);
    va_end(args);
    (void)snprintf(problem->fix, sizeof problem->fix, "%s", fix);
    return 1;
}

/* ---- numbers ------------------------------------------------------------------------------ */

/* The digits of a number without zeros at both ends. */
struct digits {
    size_t count;
    char first[17]; /* of them, as text */
    long power;     /* of ten, of the last one */
};

static long read_exponent(const char *text, const char *end)
{
    bool negative = text < end && *text == '-';
    long value = 0;
    if (text < end && (*text == '-' || *text == '+'))
        text++;
    for (; text < end && isdigit((unsigned char)*text) && value < 100000000; text++)
        value = 10 * value + (*text - '0');
    return negative ? -value : value;
}

static struct digits read_digits(const char *token, size_t length)
{
    const char *end = token + length;
    struct digits d = { .count = 0 };
    size_t zeros = 0; /* since the last digit that counts */
    bool fraction = false;

    for (; token < end && *token != 'e' && *token != 'E'; token++) {
        if (*token == '.')
            fraction = true;
        if (!isdigit((unsigned char)*token))
            continue;
        d.power -= fraction;
        if (*token == '0') {
            zeros += d.count > 0;
            continue;
        }
        for (; zeros > 0; zeros--, d.count++)
            if (d.count < 16)
                d.first[d.count] = '0';
        if (d.count < 16)
            d.first[d.count] = *token;
        d.count++;
    }
    d.power += (long)zeros + (token < end ? read_exponent(token + 1, end) : 0);
    return d;
}

/*
 * Numbers are doubles, here as in most readers of JSON. Fifteen digits survive that whatever they are,
 * and integers up to 2^53. Other integers are not rounded, but refused. What has a fraction is an
 * approximation in any case.
 */
static bool arrives_as_sent(const char *token, size_t length)
{
    struct digits d = read_digits(token, length);
    if (d.count <= 15 || d.power < 0)
        return true;
    return d.count == 16 && d.power == 0 && strcmp(d.first, "9007199254740992") <= 0;
}

/* ---- the pass over the bytes --------------------------------------------------------------- */

/* Behind the end of the string that begins at `i`. */
static size_t skip_string(const char *text, size_t length, size_t i)
{
    for (i++; i < length && text[i] != '"'; i++)
        i += text[i] == '\\';
    return i + 1;
}

static int check_number(const struct tci_contract_side *side, const char *token, size_t length,
                        struct tci_contract_problem *problem)
{
    char quoted[TCI_QUOTE_MAX];
    if (arrives_as_sent(token, length))
        return 0;
    return wrong(problem, "write it as a string, where the schema allows that",
                 "%s an integer that is too large to be exact: %s", side->have,
                 tci_quote(token, length, quoted));
}

static int scan(const struct tci_contract_side *side, const char *text, size_t length,
                struct tci_contract_problem *problem)
{
    unsigned depth = 0;
    size_t values = 1, number;
    for (size_t i = 0; i < length;) {
        char c = text[i];
        if (c == '"') {
            i = skip_string(text, length, i);
            continue;
        }
        number = 0;
        while (i + number < length && strchr("+-.0123456789eE", text[i + number]) &&
               text[i + number])
            number++;
        if (number && check_number(side, text + i, number, problem) > 0)
            return 1;
        i += number ? number : 1;
        values += c == ',' || c == '[' || c == '{';
        depth += c == '[' || c == '{';
        depth -= (c == ']' || c == '}') && depth > 0;
        if (depth > TCI_CONTRACT_DEPTH_MAX)
            return wrong(problem, "nest the values less deeply", "%s nested more than %d deep",
                         side->are, TCI_CONTRACT_DEPTH_MAX);
        if (values > TCI_CONTRACT_VALUES_MAX)
            return wrong(problem, "send fewer values", "%s more than %d values", side->have,
                         TCI_CONTRACT_VALUES_MAX);
    }
    return 0;
}

/* ---- reading ------------------------------------------------------------------------------ */

static int not_json(const struct tci_contract_side *side, const struct tc_error *error,
                    struct tci_contract_problem *problem)
{
    static const char fix[] = "write one JSON value in UTF-8, with each key once";
    if (strstr(error->message, "JSON_ALLOW_NUL")) /* the parser's advice is for its programmer */
        return wrong(problem, "remove the NUL", "%s a NUL character in a text", side->have);
    if (!error->line)
        return wrong(problem, fix, "%s not valid JSON: %.300s", side->are, error->message);
    return wrong(problem, fix, "%s not valid JSON, at line %u, column %u: %.300s", side->are,
                 error->line, error->column, error->message);
}

int tci_contract_read(struct tci_arena *arena, const struct tci_contract_side *side,
                      const char *text, size_t length, struct json_t **ret, const char **ret_text,
                      struct tci_contract_problem *problem, struct tc_error *reterr)
{
    struct tc_error error = { 0 };
    const char *canonical;
    json_t *value;
    int r;

    if (length > side->maximum)
        return wrong(problem, "send less at a time", "%s larger than %zu MiB", side->are,
                     side->maximum >> 20);
    if ((r = scan(side, text, length, problem)) != 0)
        return r;
    if (tci_json_canonical(arena, text, length, &canonical, &error) < 0)
        return error.code == TC_ERROR_NO_MEMORY ? tci_error_no_memory(reterr)
                                                : not_json(side, &error, problem);
    value = tci_json_read_canonical(arena, canonical, &error);
    if (!value)
        return tci_error_no_memory(reterr); /* it was read a moment ago */
    *ret = value;
    *ret_text = canonical;
    return 0;
}
