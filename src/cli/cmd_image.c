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
#include "base/nearest.h"
#include "base/quote.h"
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
    if (!isatty(STDERR_FILENO) || (now - *last < redraw_us && done < all))
        return;
    *last = now;
    (void)fprintf(stderr, "\r%s", words[phase]);
    if (all)
        (void)fprintf(stderr, " %" PRIu64 "%%", done * 100 / all);
    (void)fputs("\033[K", stderr);
}

static void wipe(void)
{
    if (isatty(STDERR_FILENO))
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

static int run_list(const struct cli_call *call, const struct tci_image_name *name)
{
    struct tci_buf out = TCI_BUF_INIT(answer_max);
    struct telling telling = { .out = &out, .as_json = cli_given(call, CLI_JSON) };
    struct tc_error error = { 0 };

    (void)name;
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

static int run_show(const struct cli_call *call, const struct tci_image_name *name)
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
        const char *engine;
        length = strcspn(text, ",");
        engine = length != 6                       ? NULL
                 : strncmp(text, "podman", 6) == 0 ? "podman"
                 : strncmp(text, "docker", 6) == 0 ? "docker"
                                                   : NULL;
        if (!engine)
            return cli_usage("write podman or docker", "--%s names no engine",
                             cli_options[option].name);
        if (name)
            status = load_one(name, engine);
    }
    return status;
}

static int run_build(const struct cli_call *call, const struct tci_image_name *unused)
{
    const char *from = call->values[CLI_FROM], *load = call->values[CLI_LOAD];
    const char *text = cli_given(call, CLI_NAME) ? call->values[CLI_NAME] : TCI_IMAGE_DEFAULT;
    enum tci_image_source source = TCI_IMAGE_FROM_HOST;
    uint64_t last = 0;
    const struct tci_image_watch watch = { draw, &last, &stopped };
    struct tc_error error = { 0 };
    struct tci_image_name name;
    int status, r;

    (void)unused;
    if (from && strcmp(from, "debootstrap") == 0)
        source = TCI_IMAGE_FROM_DEBOOTSTRAP;
    else if (from && strcmp(from, "host") != 0)
        return cli_usage("write host or debootstrap", "--from names nothing to build from");
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
    return status == CLI_EXIT_OK ? run_show(call, &name) : status;
}

static int run_rm(const struct cli_call *call, const struct tci_image_name *name)
{
    struct tc_error error = { 0 };
    (void)call;
    return tci_image_rm(name, &error) < 0 ? cli_fail(&error) : CLI_EXIT_OK;
}

static int run_load(const struct cli_call *call, const struct tci_image_name *name)
{
    const char *engine = call->values[CLI_ENGINE];
    if (!engine || !*engine)
        return cli_usage("write --engine podman or --engine docker",
                         "\"toolcage image load\" needs an engine");
    if (each_engine(engine, CLI_ENGINE, NULL) != CLI_EXIT_OK)
        return CLI_EXIT_REFUSED;
    catch_signals();
    return each_engine(engine, CLI_ENGINE, name);
}

/* ---- which part ---------------------------------------------------------------------------------------- */

#define O(id) cli_option_bit(CLI_##id)
static const struct part {
    const char *name;
    bool takes_name;
    uint64_t options;
    int (*run)(const struct cli_call *call, const struct tci_image_name *name);
} parts[] = {
    { "build", false, O(FROM) | O(NAME) | O(LOAD) | O(JSON), run_build },
    { "list", false, O(JSON), run_list },
    { "show", true, O(JSON), run_show },
    { "rm", true, 0, run_rm },
    { "load", true, O(ENGINE), run_load },
};
#undef O

static int unknown_part(const char *name)
{
    const char *words[tci_array_size(parts) + 1] = { NULL }, *nearest;
    char remedy[96], quoted[TCI_QUOTE_MAX];
    for (size_t i = 0; i < tci_array_size(parts); i++)
        words[i] = parts[i].name;
    nearest = tci_nearest_word(name, strlen(name), words);
    if (nearest)
        (void)snprintf(remedy, sizeof remedy, "did you mean \"%s\"?", nearest);
    return cli_usage(nearest ? remedy : "write build, list, show, rm or load",
                     "\"toolcage image\" cannot %s", tci_quote(name, strlen(name), quoted));
}

int cli_run_image(const struct cli_call *call)
{
    const struct part *part = NULL;
    struct tc_error error = { 0 };
    struct tci_image_name name = { .repository = "" };

    if (!call->argument)
        return cli_usage("write toolcage image build, list, show, rm or load",
                         "what to do is missing");
    for (size_t i = 0; i < tci_array_size(parts); i++)
        if (strcmp(call->argument, parts[i].name) == 0)
            part = &parts[i];
    if (!part)
        return unknown_part(call->argument);
    /* An option that this part does not know is refused: ignored, it would look obeyed. */
    for (int id = 0; id < CLI_OPTION_COUNT; id++)
        if (call->values[id] && !(part->options & cli_option_bit(id)))
            return cli_usage("remove it", "\"toolcage image %s\" has no option --%s", part->name,
                             cli_options[id].name);
    if (call->more[0] && !part->takes_name)
        return cli_usage(part->run == run_build ? "write --name NAME:TAG" : "remove it",
                         "\"toolcage image %s\" takes no argument", part->name);
    if (part->takes_name && !call->more[0])
        return cli_usage("'toolcage image list' shows the names",
                         "\"toolcage image %s\" needs the name of an image", part->name);
    if (part->takes_name && tci_image_name_parse(call->more[0], &name, &error) < 0)
        return cli_fail(&error);
    return part->run(call, &name);
}
