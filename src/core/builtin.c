/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the built-in policy. It is written as a policy's text and read like any other, so that it
 * cannot mean anything that a policy could not say, and so that people can be shown it.
 * The attack: a directory whose name is TOML. It is quoted by the one writer that quotes strings; a
 * name that this writer cannot carry unchanged is refused, never mended.
 */
#include "core/builtin.h"

#include <errno.h>
#include <string.h>
#include "base/path.h"
#include "base/sys.h"
#include "base/utf8.h"
#include "json/write.h"

enum { text_max = 4 * TCI_PATH_MAX };

static int refuse(struct tc_error *reterr, const char *why)
{
    tci_error_set(reterr, TC_ERROR_USAGE, "the present directory cannot be granted: %s", why);
    tci_error_remedy(reterr, "change to another directory, or name a policy");
    return -1;
}

static bool is_utf8(const char *text)
{
    size_t length = strlen(text), size;
    uint32_t code_point;
    for (size_t i = 0; i < length; i += size)
        if ((size = tci_utf8_decode(text + i, length - i, &code_point)) == 0)
            return false;
    return true;
}

static int present_directory(char *ret, size_t size, struct tc_error *reterr)
{
    char normal[TCI_PATH_MAX + 1];
    if (!tci_sys.getcwd(ret, size)) {
        tci_error_errno(reterr, errno, "cannot find the present directory");
        tci_error_remedy(reterr, "change to a directory that exists, or name a policy");
        return -1;
    }
    /* Of a directory that this process cannot reach, the kernel says "(unreachable)/...". */
    if (tci_path_normalise(NULL, ret, strlen(ret), normal) != TCI_PATH_OK ||
        strcmp(ret, normal) != 0)
        return refuse(reterr, "its path is not a plain one");
    if (!is_utf8(ret))
        return refuse(reterr, "its path is not UTF-8");
    /* Nobody who types a command in "/" means to show it every file of this machine. */
    if (strcmp(ret, "/") == 0)
        return refuse(reterr, "it is \"/\", the whole host");
    return 0;
}

static void write_policy(const char *directory, struct tci_buf *out)
{
    struct tci_json toml = { .out = out, .syntax = TCI_SYNTAX_TOML };
    tci_buf_string(out, "version = 1\n[defaults]\n");
    tci_json_object_begin(&toml, "filesystem");
    tci_json_array_begin(&toml, "readable");
    tci_json_object_begin(&toml, NULL);
    tci_json_string(&toml, "host", directory);
    tci_json_string(&toml, "cage", "/workspace");
    tci_json_object_end(&toml);
    tci_json_array_end(&toml);
    tci_json_string(&toml, "cwd", "/workspace");
    tci_json_object_end(&toml);
    tci_buf_char(out, '\n');
}

int tci_builtin_policy(struct tc_policy **ret, struct tc_error *reterr)
{
    tc_cleanup(tci_findings_freep) struct tci_findings *findings = NULL;
    tc_cleanup(tci_buf_free) struct tci_buf text = TCI_BUF_INIT(text_max);
    char directory[TCI_PATH_MAX + 1];

    if (present_directory(directory, sizeof directory, reterr) < 0)
        return -1;
    write_policy(directory, &text);
    if (tci_buf_check(&text, reterr) < 0)
        return -1;
    findings = tci_findings_new("built-in defaults");
    if (!findings)
        return tci_error_no_memory(reterr);
    return tci_policy_parse(text.data, text.length, TCI_FORMAT_TOML, NULL, findings, ret, reterr);
}
