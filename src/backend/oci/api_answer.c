/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what an engine's answers say. They come from a daemon that may be of another version,
 * broken, or not the one it claims to be: every field is looked at before it is used, and what goes
 * into a message or into another request is held to the letters that belong there.
 */
#include "backend/oci/api.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/path.h"
#include "base/quote.h"

static int rubbish(struct tc_error *reterr, const char *what)
{
    return tci_error_set(reterr, TC_ERROR_IO, "the container engine's answer %s", what);
}

json_t *tci_api_parse(const struct tci_api_answer *answer, struct tc_error *reterr)
{
    json_error_t where;
    char shown[TCI_QUOTE_MAX];
    json_t *document = NULL;
    if (answer->body.length)
        document = json_loadb(answer->body.data, answer->body.length, JSON_REJECT_DUPLICATES,
                              &where);
    if (!document)
        tci_error_set(
            reterr, TC_ERROR_IO,
            "the container engine's answer is not the JSON that was expected: %s",
            tci_quote(answer->body.data ? answer->body.data : "", answer->body.length, shown));
    return document;
}

/* The attack: escape sequences in an error text, which rewrite the terminal that shows it; or so
 * much of it that the cause is pushed out. */
static void clean(const char *text, char ret[TCI_API_WORDS_MAX])
{
    size_t used = 0;
    for (; *text && used + 1 < TCI_API_WORDS_MAX; text++) {
        unsigned char c = (unsigned char)*text;
        ret[used++] = c < ' ' || c >= 0x7f ? ' ' : (char)c;
    }
    while (used > 0 && ret[used - 1] == ' ')
        used--;
    ret[used] = '\0';
}

void tci_api_words(const struct tci_api_answer *answer, char ret[TCI_API_WORDS_MAX])
{
    json_error_t where;
    char shown[TCI_QUOTE_MAX];
    json_t *document = answer->body.length
                           ? json_loadb(answer->body.data, answer->body.length, 0, &where)
                           : NULL;
    const char *message = json_string_value(json_object_get(document, "message"));
    if (message && *message)
        clean(message, ret);
    else
        (void)snprintf(
            ret, TCI_API_WORDS_MAX, "HTTP status %d, %s", answer->status,
            tci_quote(answer->body.data ? answer->body.data : "", answer->body.length, shown));
    json_decref(document);
}

bool tci_api_is_id(const char *text)
{
    size_t length = 0;
    for (; text[length]; length++)
        if (length >= TCI_API_ID_LENGTH || !isxdigit((unsigned char)text[length]) ||
            isupper((unsigned char)text[length]))
            return false;
    return length == TCI_API_ID_LENGTH;
}

static void free_document(json_t **document)
{
    json_decref(*document);
}

/* The attack: an id with slashes and dots in it, so that our next request removes something
 * else. */
int tci_api_read_id(const struct tci_api_answer *answer, char ret[TCI_API_ID_LENGTH + 1],
                    struct tc_error *reterr)
{
    tc_cleanup(free_document) json_t *document = tci_api_parse(answer, reterr);
    const char *id = json_string_value(json_object_get(document, "Id"));
    if (!document)
        return -1;
    if (!id || !tci_api_is_id(id))
        return rubbish(reterr, "does not name a container");
    memcpy(ret, id, TCI_API_ID_LENGTH + 1);
    return 0;
}

static int read_volume(struct tci_arena *arena, const char *path, struct tci_api_image *ret,
                       struct tc_error *reterr)
{
    char normal[TCI_PATH_MAX + 1], shown[TCI_QUOTE_MAX];
    if (ret->volume_count == TCI_API_VOLUMES_MAX)
        return tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "the image has more than %d volumes",
                             TCI_API_VOLUMES_MAX);
    if (tci_path_normalise(NULL, path, strlen(path), normal) != TCI_PATH_OK ||
        strcmp(normal, "/") == 0)
        return tci_error_set(reterr, TC_ERROR_UNSUPPORTED,
                             "the image has a volume at a place that cannot be covered: %s",
                             tci_quote(path, strlen(path), shown));
    ret->volumes[ret->volume_count] = tci_arena_strdup(arena, normal);
    if (!ret->volumes[ret->volume_count++])
        return tci_error_no_memory(reterr);
    return 0;
}

/*
 * The attack: Podman copies the annotations of an image's manifest into what its runtime reads. crun
 * takes another system call filter from there (run.oci.seccomp_bpf_data), the caller's groups, files of
 * the host to write to; runsc its own flags; and hooks of the host may wait for one. So only families are
 * let through that describe an image and that no runtime acts on. Docker copies none, and names none
 * in its answer.
 */
static bool is_harmless(const char *annotation)
{
    static const char *const families[] = { "org.opencontainers.image.", "com.docker.",
                                            "org.label-schema.", "io.buildah." };
    for (size_t i = 0; i < tci_array_size(families); i++)
        if (strncmp(annotation, families[i], strlen(families[i])) == 0)
            return true;
    return false;
}

static int read_annotations(struct tci_arena *arena, json_t *annotations, struct tci_api_image *ret,
                            struct tc_error *reterr)
{
    const char *name;
    json_t *value;
    if (annotations && !json_is_null(annotations) && !json_is_object(annotations))
        return rubbish(reterr, "describes an image whose annotations are no object");
    json_object_foreach(annotations, name, value)
    {
        if (is_harmless(name))
            continue;
        ret->annotation = tci_arena_strdup(arena, name);
        return ret->annotation ? 0 : tci_error_no_memory(reterr);
    }
    return 0;
}

/* {"Name":"overlay2","Data":{"UpperDir":"/a","LowerDir":"/b:/c"}} */
static int read_layers(struct tci_arena *arena, json_t *driver, struct tci_api_image *ret,
                       struct tc_error *reterr)
{
    json_t *data = json_object_get(driver, "Data");
    const char *name = json_string_value(json_object_get(driver, "Name"));
    const char *upper = json_string_value(json_object_get(data, "UpperDir"));
    const char *lower = json_string_value(json_object_get(data, "LowerDir"));
    ret->is_plain = name && (strcmp(name, "vfs") == 0 || strcmp(name, "btrfs") == 0);
    if (!name || strncmp(name, "overlay", 7) != 0 || !upper || !*upper)
        return 0;
    ret->layers = tci_arena_printf(arena, "%s%s%s", upper, lower && *lower ? ":" : "",
                                   lower ? lower : "");
    return ret->layers ? 0 : tci_error_no_memory(reterr);
}

int tci_api_read_image(const struct tci_api_answer *answer, struct tci_arena *arena,
                       struct tci_api_image *ret, struct tc_error *reterr)
{
    tc_cleanup(free_document) json_t *document = tci_api_parse(answer, reterr);
    const char *id = json_string_value(json_object_get(document, "Id")), *path;
    json_t *config = json_object_get(document, "Config"), *volumes, *value;
    if (!document)
        return -1;
    *ret = (struct tci_api_image){ 0 };
    if (id && strncmp(id, "sha256:", 7) == 0)
        id += 7;
    if (!id || !tci_api_is_id(id))
        return rubbish(reterr, "does not name an image");
    memcpy(ret->id, id, TCI_API_ID_LENGTH + 1);
    if (config && !json_is_null(config) && !json_is_object(config))
        return rubbish(reterr, "describes an image whose configuration is no object");
    if (read_annotations(arena, json_object_get(document, "Annotations"), ret, reterr) < 0 ||
        read_layers(arena, json_object_get(document, "GraphDriver"), ret, reterr) < 0)
        return -1;
    volumes = json_object_get(config, "Volumes");
    if (volumes && !json_is_null(volumes) && !json_is_object(volumes))
        return rubbish(reterr, "describes an image whose volumes are no object");
    json_object_foreach(volumes, path,
                        value) if (read_volume(arena, path, ret, reterr) < 0) return -1;
    return 0;
}

void tci_api_take_header(struct tci_api_answer *answer, const char *line, size_t length)
{
    const struct {
        const char *name;
        char *value;
        size_t size;
    } wanted[] = {
        { "Api-Version:", answer->api, sizeof answer->api },
        { "Libpod-Api-Version:", answer->libpod, sizeof answer->libpod },
        { "Server:", answer->server, sizeof answer->server },
        { "X-Docker-Container-Path-Stat:", answer->stat, sizeof answer->stat },
    };
    for (size_t i = 0; i < tci_array_size(wanted); i++) {
        size_t name = strlen(wanted[i].name), used = 0;
        if (length < name || strncasecmp(line, wanted[i].name, name) != 0)
            continue;
        for (; name < length && used + 1 < wanted[i].size; name++)
            if (line[name] > ' ' && line[name] < 0x7f)
                wanted[i].value[used++] = line[name];
        wanted[i].value[used] = '\0';
    }
}

/* "1.41" as 1041; 0: it is none. */
static unsigned read_number(const char *text)
{
    char *end;
    unsigned long major = strtoul(text, &end, 10), minor;
    if (*text < '0' || *text > '9' || *end != '.' || major > 999)
        return 0;
    text = end + 1;
    minor = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || minor > 999)
        return 0;
    return (unsigned)(major * 1000 + minor);
}

int tci_api_read_version(const struct tci_api_answer *answer, struct tci_api_version *ret,
                         struct tc_error *reterr)
{
    const char *version = strchr(answer->server, '/');
    ret->api = read_number(answer->api);
    ret->libpod = read_number(answer->libpod);
    if (answer->status != 200 || !ret->api)
        return rubbish(reterr, "does not say which version it is");
    (void)snprintf(ret->engine, sizeof ret->engine, "%s", version ? version + 1 : answer->api);
    ret->engine[strcspn(ret->engine, "(")] = '\0'; /* "20.10.24(linux)" */
    return 0;
}

void tci_api_read_runtime(const struct tci_api_answer *answer, char *buffer, size_t size)
{
    tc_cleanup(free_document) json_t *document = tci_api_parse(answer, NULL);
    const char *name = json_string_value(json_object_get(document, "OCIRuntime"));
    char words[TCI_API_WORDS_MAX] = "";
    if (name)
        clean(name, words);
    (void)snprintf(buffer, size, "%.*s", (int)size - 1, words);
}

bool tci_api_read_oom(const struct tci_api_answer *answer)
{
    tc_cleanup(free_document) json_t *document = tci_api_parse(answer, NULL);
    return json_is_true(json_object_get(json_object_get(document, "State"), "OOMKilled"));
}

/* The attack: an image with our label on it, so that containers which others made from it are
 * taken for ours and removed. A name cannot come from an image. */
static bool has_name_of_ours(const json_t *names)
{
    json_t *value;
    size_t i;
    json_array_foreach(names, i, value)
    {
        const char *name = json_string_value(value);
        if (name && name[0] == '/') /* Docker's */
            name++;
        if (name && strncmp(name, TCI_API_NAME_PREFIX, strlen(TCI_API_NAME_PREFIX)) == 0 &&
            strspn(name + strlen(TCI_API_NAME_PREFIX), "0123456789abcdef") == TCI_API_NAME_LENGTH &&
            strlen(name) == strlen(TCI_API_NAME_PREFIX) + TCI_API_NAME_LENGTH)
            return true;
    }
    return false;
}

int tci_api_read_list(const struct tci_api_answer *answer,
                      void (*each)(void *data, const char *id, const char *owner), void *data,
                      struct tc_error *reterr)
{
    tc_cleanup(free_document) json_t *document = tci_api_parse(answer, reterr);
    json_t *container;
    size_t i;
    if (!document)
        return -1;
    if (!json_is_array(document))
        return rubbish(reterr, "is not a list of containers");
    json_array_foreach(document, i, container)
    {
        const json_t *labels = json_object_get(container, "Labels");
        const char *id = json_string_value(json_object_get(container, "Id"));
        const char *owner = json_string_value(json_object_get(labels, TCI_API_LABEL_OWNER));
        if (id && owner && tci_api_is_id(id) &&
            has_name_of_ours(json_object_get(container, "Names")))
            each(data, id, owner);
    }
    return 0;
}
