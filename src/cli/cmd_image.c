/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: `toolcage image build|list|show|rm|load`. */
#include "cli/cli.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "backend/oci/image.h"
#include "backend/oci/oci.h"
#include "base/clock.h"
#include "base/quote.h"
#include "cli/parts.h"
#include "json/write.h"

enum { answer_max = 1 << 22, redraw_us = 100000 };

/* ---- watching ------------------------------------------------------------------------------------------ */

/* Set by a signal: work ends, and leaves nothing. */
static atomic_bool stopped;
static volatile sig_atomic_t stop_signal;

static void on_signal(int number)
{
    stop_signal = number;
    atomic_store(&stopped, true);
}

static void catch_signals(void)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
    struct sigaction action = { .sa_handler = on_signal }, before;
    for (size_t i = 0; i < tci_array_size(signals); i++)
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            (void)sigaction(signals[i], &action, NULL);
    /* A limit on the size of files is an error like a full disk, and not the end. */
    (void)signal(SIGXFSZ, SIG_IGN);
}

/* Is there a terminal that can go back in its line? A dumb one would show the words over and over. */
static bool can_draw(void)
{
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

static void draw(void *context, enum tci_image_phase phase, uint64_t done, uint64_t all)
{
    static const char *const words[] = {
        [TCI_IMAGE_WAITING] = "waiting for another process",
        [TCI_IMAGE_DEBOOTSTRAP] = "debootstrap (takes minutes)",
        [TCI_IMAGE_PACKAGES] = "looking at packages",
        [TCI_IMAGE_LAYER] = "writing the layer",
        [TCI_IMAGE_UNPACKING] = "unpacking",
        [TCI_IMAGE_LOADING] = "loading",
    };
    uint64_t *last = context, now = tci_clock_us();
    if (!can_draw() || (now - *last < redraw_us && done < all))
        return;
    *last = now;
    (void)fprintf(stderr, "\r%s", words[phase]);
    if (all)
        (void)fprintf(stderr, " %" PRIu64 "%%", done * 100 / all);
    (void)fputs("\033[K", stderr);
}

static void wipe(void)
{
    if (can_draw())
        (void)fputs("\r\033[K", stderr);
}

/* The status of a program that a signal has ended, as a shell gives it. */
static int fail(const struct tc_error *error)
{
    int status = cli_fail(error);
    return stop_signal ? 128 + stop_signal : status;
}

/* ---- telling ------------------------------------------------------------------------------------------- */

struct telling {
    struct tci_json json;
    struct tci_buf *out;
    bool as_json, whole;
    size_t count;
};

static void tell_json(struct tci_json *json, const char *key, const struct tci_image_info *info,
                      bool whole)
{
    const struct tci_image *image = info->image;
    char name[TCI_IMAGE_NAME_MAX], unpacked[96];
    tci_json_object_begin(json, key);
    tci_json_string(json, "name", tci_image_name_text(&info->entry->name, name));
    tci_json_printf(json, "digest", "sha256:%s", info->entry->name.digest);
    tci_json_string(json, "store", info->store);
    tci_image_unpacked_name(info->entry->name.digest, unpacked);
    if (info->unpacked)
        tci_json_printf(json, "unpacked", "%s/%s", info->store, unpacked);
    else
        tci_json_null(json, "unpacked");
    tci_json_string(json, "problem", info->problem);
    tci_json_string(json, "created", image ? image->created : NULL);
    if (image)
        tci_json_unsigned(json, "size", info->size);
    else
        tci_json_null(json, "size");
    tci_json_string(json, "architecture", image ? image->architecture : NULL);
    tci_json_string(json, "toolcage", image ? image->version : NULL);
    if (whole && image) {
        tci_json_array_begin(json, "packages");
        for (const char *p = image->packages; *p; p += strspn(p, " ")) {
            size_t length = strcspn(p, " ");
            tci_json_bytes(json, NULL, p, length);
            p += length;
        }
        tci_json_array_end(json);
    }
    tci_json_object_end(json);
}

static void tell_text(struct tci_buf *out, const struct tci_image_info *info, bool whole)
{
    const struct tci_image *image = info->image;
    char name[TCI_IMAGE_NAME_MAX];
    tci_image_name_text(&info->entry->name, name);
    if (!whole) {
        tci_buf_printf(out, "%-36s  %.12s  ", name, info->entry->name.digest);
        if (image)
            tci_buf_printf(out, "%4" PRIu64 " MB  %.10s%s\n", info->size / 1000000, image->created,
                           info->unpacked ? "" : "  not unpacked");
        else
            tci_buf_printf(out, "%s\n", info->problem);
        return;
    }
    tci_buf_printf(out, "name:      %s\ndigest:    sha256:%s\nstore:     %s\n", name,
                   info->entry->name.digest, info->store);
    tci_buf_printf(out, "unpacked:  %s\n", info->unpacked ? "yes" : "no");
    if (!image)
        return;
    tci_buf_printf(out, "created:   %s\nsize:      %" PRIu64 " MB\n", image->created,
                   info->size / 1000000);
    tci_buf_printf(out, "packages:\n");
    for (const char *p = image->packages; *p; p += strspn(p, " ")) {
        int length = (int)strcspn(p, " ");
        tci_buf_printf(out, "    %.*s\n", length, p);
        p += length;
    }
}

static void tell(void *context, const struct tci_image_info *info)
{
    struct telling *telling = context;
    telling->count++;
    if (telling->as_json)
        tell_json(&telling->json, telling->whole ? "image" : NULL, info, telling->whole);
    else
        tell_text(telling->out, info, telling->whole);
}

static int run_list(const struct cli_call *call, const char *word)
{
    struct tci_buf out = TCI_BUF_INIT(answer_max);
    struct telling telling = { .out = &out, .as_json = cli_given(call, CLI_JSON) };
    struct tc_error error = { 0 };

    (void)word;
    telling.json = (struct tci_json){ .out = &out, .pretty = true };
    if (telling.as_json) {
        tci_json_object_begin(&telling.json, NULL);
        tci_json_array_begin(&telling.json, "images");
    }
    if (tci_image_each(tell, &telling, &error) < 0) {
        tci_buf_free(&out);
        return cli_fail(&error);
    }
    if (telling.as_json) {
        tci_json_array_end(&telling.json);
        tci_json_object_end(&telling.json);
        tci_buf_char(&out, '\n');
    } else if (!telling.count) {
        tci_buf_string(&out, "no images; 'toolcage image build' makes one\n");
    }
    return cli_output(&out, !telling.as_json, CLI_EXIT_OK);
}

/* The image that a part is about. Otherwise the result is an exit status, and everything has been said. */
static int read_name(const struct cli_call *call, const char *word, struct tci_image_name *ret)
{
    struct tc_error error = { 0 };
    if (!word)
        return cli_usage("'toolcage image list' shows the names",
                         "\"toolcage image %s\" needs the name of an image", call->argument);
    return tci_image_name_parse(word, ret, &error) < 0 ? cli_fail(&error) : CLI_EXIT_OK;
}

static int show(const struct cli_call *call, const struct tci_image_name *name)
{
    struct tci_buf out = TCI_BUF_INIT(answer_max);
    struct telling telling = { .out = &out, .as_json = cli_given(call, CLI_JSON), .whole = true };
    struct tc_error error = { 0 };

    telling.json = (struct tci_json){ .out = &out, .pretty = true };
    if (telling.as_json)
        tci_json_object_begin(&telling.json, NULL);
    if (tci_image_show(name, tell, &telling, &error) < 0) {
        tci_buf_free(&out);
        return cli_fail(&error);
    }
    if (telling.as_json) {
        tci_json_object_end(&telling.json);
        tci_buf_char(&out, '\n');
    }
    return cli_output(&out, !telling.as_json, CLI_EXIT_OK);
}

static int run_show(const struct cli_call *call, const char *word)
{
    struct tci_image_name name = { .repository = "" };
    int status = read_name(call, word, &name);
    return status == CLI_EXIT_OK ? show(call, &name) : status;
}

/* ---- doing --------------------------------------------------------------------------------------------- */

static int load_one(const struct tci_image_name *name, const char *engine)
{
    uint64_t last = 0;
    const struct tci_image_watch watch = { draw, &last, &stopped };
    char there[TCI_IMAGE_NAME_MAX];
    struct tc_error error = { 0 };
    int r = tci_image_load(name, engine, &watch, there, &error);
    wipe();
    if (r < 0)
        return fail(&error);
    (void)fprintf(stderr, "loaded into %s: %s\n", engine, there);
    return CLI_EXIT_OK;
}

/* "podman,docker": 0, or a usage error that has been reported. With a name, each of them gets it. */
static int each_engine(const char *text, enum cli_option_id option,
                       const struct tci_image_name *name)
{
    int status = CLI_EXIT_OK;
    for (size_t length; status == CLI_EXIT_OK && *text; text += length + (text[length] == ',')) {
        char quoted[TCI_QUOTE_MAX];
        const char *engine;
        length = strcspn(text, ",");
        engine = length != 6                       ? NULL
                 : strncmp(text, "podman", 6) == 0 ? "podman"
                 : strncmp(text, "docker", 6) == 0 ? "docker"
                                                   : NULL;
        if (!engine)
            return cli_usage("write podman, docker or podman,docker", "--%s: there is no engine %s",
                             cli_options[option].name, tci_quote(text, length, quoted));
        if (name)
            status = load_one(name, engine);
    }
    return status;
}

static int run_build(const struct cli_call *call, const char *word)
{
    const char *from = call->values[CLI_FROM], *load = call->values[CLI_LOAD];
    const char *text = cli_given(call, CLI_NAME) ? call->values[CLI_NAME] : TCI_IMAGE_DEFAULT;
    enum tci_image_source source = TCI_IMAGE_FROM_HOST;
    uint64_t last = 0;
    const struct tci_image_watch watch = { draw, &last, &stopped };
    char quoted[TCI_QUOTE_MAX];
    struct tc_error error = { 0 };
    struct tci_image_name name;
    int status, r;

    (void)word;
    if (from && strcmp(from, "debootstrap") == 0)
        source = TCI_IMAGE_FROM_DEBOOTSTRAP;
    else if (from && strcmp(from, "host") != 0)
        return cli_usage("write host or debootstrap", "--from cannot be %s",
                         tci_quote(from, strlen(from), quoted));
    if (load && (!*load || each_engine(load, CLI_LOAD, NULL) != CLI_EXIT_OK))
        return *load ? CLI_EXIT_REFUSED : cli_usage("write podman or docker", "--load is empty");
    if (tci_image_name_parse(text, &name, &error) < 0)
        return cli_fail(&error);
    catch_signals();
    r = tci_image_build(&name, source, &watch, &error);
    wipe();
    if (r < 0)
        return fail(&error);
    status = load ? each_engine(load, CLI_LOAD, &name) : CLI_EXIT_OK;
    return status == CLI_EXIT_OK ? show(call, &name) : status;
}

static int run_rm(const struct cli_call *call, const char *word)
{
    struct tci_image_name name = { .repository = "" };
    struct tc_error error = { 0 };
    int status = read_name(call, word, &name);
    if (status != CLI_EXIT_OK)
        return status;
    return tci_image_rm(&name, &error) < 0 ? cli_fail(&error) : CLI_EXIT_OK;
}

static int run_load(const struct cli_call *call, const char *word)
{
    const char *engine = call->values[CLI_ENGINE];
    struct tci_image_name name = { .repository = "" };
    int status = read_name(call, word, &name);
    if (status != CLI_EXIT_OK)
        return status;
    if (!engine || !*engine)
        return cli_usage("write --engine podman or --engine docker",
                         "\"toolcage image load\" needs an engine");
    if (each_engine(engine, CLI_ENGINE, NULL) != CLI_EXIT_OK)
        return CLI_EXIT_REFUSED;
    catch_signals();
    return each_engine(engine, CLI_ENGINE, &name);
}

/* ---- which part ---------------------------------------------------------------------------------------- */

#define O(id) cli_option_bit(CLI_##id)
static const struct cli_part items[] = {
    { "build", "write --name NAME:TAG", O(FROM) | O(NAME) | O(LOAD) | O(JSON), run_build },
    { "list", "remove it", O(JSON), run_list },
    { "show", NULL, O(JSON), run_show },
    { "rm", NULL, 0, run_rm },
    { "load", NULL, O(ENGINE), run_load },
};
#undef O

static const struct cli_parts parts = {
    .items = items,
    .count = tci_array_size(items),
    .missing = "what to do is missing",
    .missing_remedy = "write toolcage image build, list, show, rm or load",
    .unknown = "cannot",
    .unknown_remedy = "write build, list, show, rm or load",
};

int cli_run_image(const struct cli_call *call)
{
    return cli_run_part(call, &parts);
}
