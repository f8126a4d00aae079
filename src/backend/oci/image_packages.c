/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: which packages an image has: those of the table images/tool-sandbox.packages that are installed,
 * and what they depend on. Trusts dpkg's database, which only root can write.
 */
#include "backend/oci/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "backend/probe_exec.h"
#include "base/buf.h"

enum { output_max = 32 << 20, limit_ms = 60000, arguments_max = 1024 };

/* ---- the table -------------------------------------------------------------------------------------- */

static const char *take_word(struct tci_arena *arena, const char **text, const char *end)
{
    const char *from = *text, *to;
    while (from < end && (*from == ' ' || *from == '\t'))
        from++;
    for (to = from; to < end && *to != ' ' && *to != '\t';)
        to++;
    *text = to;
    return tci_arena_strndup(arena, from, (size_t)(to - from));
}

bool tci_image_rule_next(struct tci_arena *arena, const char *word, const char **position,
                         struct tci_image_rule *ret)
{
    const char *begin = (const char *)tci_tool_sandbox_blob;
    const char *end = begin + tci_tool_sandbox_blob_size;
    size_t length = strlen(word);
    for (const char *line = *position ? *position : begin; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line)), *text = line;
        stop = stop ? stop : end;
        line = stop + 1;
        if ((size_t)(stop - text) <= length || strncmp(text, word, length) != 0 ||
            text[length] != ' ')
            continue;
        *position = line;
        ret->word = take_word(arena, &text, stop);
        ret->first = take_word(arena, &text, stop);
        ret->second = take_word(arena, &text, stop);
        return ret->word && ret->first && ret->second;
    }
    return false;
}

/* ---- dpkg-query -------------------------------------------------------------------------------------- */

static int no_dpkg(struct tc_error *reterr)
{
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "this host has no dpkg to take packages from");
    tci_error_remedy(reterr, "run 'toolcage image build --from debootstrap' as root, or build on "
                             "Debian or Ubuntu and copy the image store");
    return -1;
}

int tci_packages_query(struct tci_arena *arena, const char *root, const char *const *extra,
                       char **ret, struct tc_error *reterr)
{
    char program[TCI_PROGRAM_PATH_MAX], database[PATH_MAX + 32];
    const char *argv[arguments_max + 4] = { "dpkg-query", database };
    struct tci_program_result result;
    size_t count = 2;
    char *output;

    if (!tci_program_find("dpkg-query", program))
        return no_dpkg(reterr);
    (void)snprintf(database, sizeof database, "--admindir=%s/var/lib/dpkg",
                   strcmp(root, "/") == 0 ? "" : root);
    for (; *extra; extra++) {
        if (count > arguments_max)
            return tci_error_set(reterr, TC_ERROR_TOO_LARGE, "the image has too many packages");
        argv[count++] = *extra;
    }
    output = malloc(output_max);
    if (!output)
        return tci_error_no_memory(reterr);
    result = tci_program_run(program, argv, 0, limit_ms, output, output_max);
    if (result.end != TCI_PROGRAM_EXITED || result.status != 0 || result.length >= output_max - 1) {
        free(output);
        tci_error_set(reterr, TC_ERROR_IO, "dpkg-query does not answer");
        tci_error_remedy(reterr, "see what 'dpkg-query -W' and 'dpkg --audit' say");
        return -1;
    }
    *ret = tci_arena_strndup(arena, output, result.length);
    free(output);
    return *ret ? 0 : tci_error_no_memory(reterr);
}

/* The next field of a line, which ends with a tab or the line. */
static char *take_field(char **line)
{
    char *field = *line;
    *line += strcspn(field, "\t");
    if (**line)
        *(*line)++ = '\0';
    return field;
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct tci_package *)a)->name, ((const struct tci_package *)b)->name);
}

/* One line of the answer, which stays where it is; false: not installed. */
static bool read_package(char *line, struct tci_package *ret)
{
    const char *status = take_field(&line);
    ret->architecture = take_field(&line);
    ret->name = take_field(&line);
    ret->qualified = take_field(&line);
    ret->version = take_field(&line);
    ret->pre_depends = take_field(&line);
    ret->depends = take_field(&line);
    ret->provides = take_field(&line);
    return strcmp(status, "installed") == 0;
}

/* Packages of other architectures, which a host may have beside its own, are left out. dpkg itself is of
 * the host's own. */
static void keep_own_architecture(struct tci_package_list *list)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->packages[i].name, "dpkg") == 0)
            list->architecture = list->packages[i].architecture;
    for (size_t i = 0; list->architecture && i < list->count; i++)
        if (strcmp(list->packages[i].architecture, "all") == 0 ||
            strcmp(list->packages[i].architecture, list->architecture) == 0)
            list->packages[kept++] = list->packages[i];
    list->count = kept;
}

static int list_installed(struct tci_arena *arena, const char *root, struct tci_package_list *ret,
                          struct tc_error *reterr)
{
    static const char *const query[] = {
        "-W", "-f",
        "${db:Status-Status}\t${Architecture}\t${Package}\t${binary:Package}\t${Version}\t"
        "${Pre-Depends}\t${Depends}\t${Provides}\n",
        NULL
    };
    size_t lines = 0;
    char *text = NULL;

    if (tci_packages_query(arena, root, query, &text, reterr) < 0 || !text)
        return -1;
    for (const char *p = text; (p = strchr(p, '\n')); p++)
        lines++;
    ret->packages = tci_arena_new_array(arena, lines + 2, struct tci_package);
    if (!ret->packages)
        return tci_error_no_memory(reterr);
    for (char *line = text, *next; *line; line = next) {
        next = line + strcspn(line, "\n");
        if (*next)
            *next++ = '\0';
        ret->count += read_package(line, &ret->packages[ret->count]);
    }
    keep_own_architecture(ret);
    qsort(ret->packages, ret->count, sizeof *ret->packages, compare);
    return ret->count > 0 ? 0 : no_dpkg(reterr);
}

/* ---- what depends on what --------------------------------------------------------------------------- */

/* The next name of "a (>= 1) | b:any, c", up to one of `ends`; its length, or 0 at the end. */
static size_t take_name(const char **text, char end, const char **ret)
{
    const char *from = *text + strspn(*text, " "), *stop = from;
    size_t length = strcspn(from, " (:,|[");
    for (unsigned depth = 0; *stop && (depth || (*stop != end && *stop != ',')); stop++)
        depth += *stop == '(' ? 1U : *stop == ')' && depth ? -1U : 0U;
    *ret = from;
    *text = stop;
    return length;
}

static struct tci_package *find(const struct tci_package_list *list, const char *name,
                                size_t length)
{
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strncmp(list->packages[middle].name, name, length);
        if (order == 0 && list->packages[middle].name[length])
            order = 1;
        if (order == 0)
            return &list->packages[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static struct tci_package *find_provider(const struct tci_package_list *list, const char *name,
                                         size_t length)
{
    for (size_t i = 0; i < list->count; i++)
        for (const char *text = list->packages[i].provides, *provided; *text;
             text += *text == ',') {
            size_t here = take_name(&text, ',', &provided);
            if (here == length && strncmp(provided, name, length) == 0)
                return &list->packages[i];
        }
    return NULL;
}

/* One of "a | b | c": the first that is installed, else one that provides one of them. */
static struct tci_package *find_one(const struct tci_package_list *list, const char *group)
{
    struct tci_package *found = NULL;
    const char *name;
    for (const char *text = group; !found && *text && *text != ','; text += *text == '|') {
        size_t length = take_name(&text, '|', &name);
        found = find(list, name, length);
    }
    for (const char *text = group; !found && *text && *text != ','; text += *text == '|') {
        size_t length = take_name(&text, '|', &name);
        found = find_provider(list, name, length);
    }
    return found;
}

static bool is_unwanted(struct tci_arena *arena, const char *name)
{
    struct tci_image_rule rule;
    for (const char *position = NULL; tci_image_rule_next(arena, "without", &position, &rule);)
        if (strcmp(rule.first, name) == 0)
            return true;
    return false;
}

struct choice {
    struct tci_arena *arena;
    struct tci_package_list *list;
    struct tci_package **todo;
    size_t count, done;
    struct tci_buf missing; /* names, each with a blank before it */
};

static void choose(struct choice *choice, const char *group)
{
    struct tci_package *package = find_one(choice->list, group);
    const char *name, *text = group;
    if (!package) {
        size_t length = take_name(&text, '|', &name);
        if (length > 0) {
            tci_buf_char(&choice->missing, ' ');
            tci_buf_append(&choice->missing, name, length);
        }
        return;
    }
    if (package->chosen || is_unwanted(choice->arena, package->name))
        return;
    package->chosen = true;
    choice->list->chosen++;
    choice->todo[choice->count++] = package;
}

static void choose_all(struct choice *choice, const char *depends)
{
    const char *name;
    for (const char *text = depends; *text; text += *text == ',') {
        text += strspn(text, " ");
        choose(choice, text);
        (void)take_name(&text, ',', &name);
    }
}

int tci_packages_choose(struct tci_arena *arena, const char *root, struct tci_package_list *ret,
                        struct tc_error *reterr)
{
    struct choice choice = { .arena = arena, .list = ret, .missing = TCI_BUF_INIT(4096) };
    struct tci_image_rule rule;
    int r = 0;

    *ret = (struct tci_package_list){ 0 };
    if (list_installed(arena, root, ret, reterr) < 0)
        return -1;
    choice.todo = tci_arena_new_array(arena, ret->count + 1, struct tci_package *);
    if (!choice.todo)
        return tci_error_no_memory(reterr);
    for (const char *position = NULL; tci_image_rule_next(arena, "package", &position, &rule);)
        choose(&choice, rule.first);
    while (choice.done < choice.count) {
        const struct tci_package *package = choice.todo[choice.done++];
        choose_all(&choice, package->pre_depends);
        choose_all(&choice, package->depends);
    }
    if (choice.missing.length > 0) {
        r = tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "not installed on this host:%s",
                          choice.missing.data ? choice.missing.data : "");
        tci_error_remedy(reterr,
                         "run 'sudo apt-get install --no-install-recommends%s', or, as root, "
                         "'toolcage image build --from debootstrap'",
                         choice.missing.data ? choice.missing.data : "");
    }
    tci_buf_free(&choice.missing);
    return r;
}
