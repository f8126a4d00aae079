/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the files of an image that no package brings: those of /etc, links and empty directories of the
 * table, and the certificates of the host. They are the same on every host, but for certificates that its
 * administrator has added.
 */
#include "backend/oci/image.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/sys.h"

enum { certificates_max = 8 << 20 };

static int add_text(struct tci_file_list *list, const char *path, const char *bytes, size_t size)
{
    struct tci_file *file = tci_files_add(list, path, TCI_FILE_REGULAR, 0644, TCI_FILE_OWN);
    if (!file)
        return -1;
    file->bytes = bytes;
    file->size = size;
    return 0;
}

/* The certificates that the host trusts, also those that its administrator has added: what works on the
 * host works in a cage. Only certificates: a key that somebody pasted beside one stays where it is. */
static int add_certificates(struct tci_file_list *list, struct tc_error *reterr)
{
    static const char source[] = "etc/ssl/certs/ca-certificates.crt";
    static const char begin[] = "-----BEGIN CERTIFICATE-----", end[] = "-----END CERTIFICATE-----";
    tc_cleanup(tci_closep) int fd = tci_sys.open_beneath(list->root, source, O_RDONLY | O_CLOEXEC);
    char *text = tci_arena_alloc(list->arena, certificates_max + 1), *out = text;
    size_t have = 0;
    ssize_t n;

    if (!text)
        return tci_error_no_memory(reterr);
    while (fd >= 0 && have < certificates_max &&
           (n = tci_read_some(fd, text + have, certificates_max - have)) > 0)
        have += (size_t)n;
    for (char *from = strstr(text, begin), *to; from; from = strstr(to, begin)) {
        to = strstr(from, end);
        if (!to)
            break;
        to += sizeof end - 1;
        memmove(out, from, (size_t)(to - from));
        out += to - from;
        *out++ = '\n';
        /* What has been moved here must not be found again. */
        if (out > to)
            to = out;
    }
    if (out == text) {
        tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "there are no certificates in /%s", source);
        tci_error_remedy(reterr, "run 'sudo update-ca-certificates'");
        return -1;
    }
    return add_text(list, source, text, (size_t)(out - text)) < 0 ? tci_error_no_memory(reterr) : 0;
}

/* "A|B": the first that is beside the link, else the last. */
static const char *link_target(struct tci_file_list *list, const char *path, const char *targets)
{
    const char *slash = strrchr(path, '/'), *text = targets;
    for (;; text++) {
        size_t length = strcspn(text, "|");
        char *beside = tci_arena_printf(list->arena, "%.*s/%.*s", slash ? (int)(slash - path) : 0,
                                        path, (int)length, text);
        if (!beside)
            return NULL;
        if (!text[length] || tci_files_has(list, beside))
            return tci_arena_strndup(list->arena, text, length);
        text += length;
    }
}

int tci_files_add_own(struct tci_file_list *list, struct tc_error *reterr)
{
    static const struct {
        const char *path, *text;
    } texts[] = {
        { "etc/passwd", "root:x:0:0:root:/root:/bin/bash\n"
                        "user:x:1000:1000:user:/home:/bin/bash\n"
                        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" },
        { "etc/group", "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n" },
        { "etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n" },
        { "etc/hosts", "127.0.0.1 localhost\n::1 localhost\n" },
        { "etc/hostname", "toolcage\n" },
        { "etc/resolv.conf", "" },
    };
    struct tci_image_rule rule;

    for (size_t i = 0; i < tci_array_size(texts); i++)
        if (add_text(list, texts[i].path, texts[i].text, strlen(texts[i].text)) < 0)
            return tci_error_no_memory(reterr);
    for (const char *at = NULL; tci_image_rule_next(list->arena, "folder", &at, &rule);)
        if (!tci_files_add(list, rule.first + 1, TCI_FILE_DIRECTORY,
                           strstr(rule.first, "tmp") ? 01777 : 0755, TCI_FILE_OWN))
            return tci_error_no_memory(reterr);
    for (const char *at = NULL; tci_image_rule_next(list->arena, "link", &at, &rule);) {
        const char *target = link_target(list, rule.first + 1, rule.second);
        struct tci_file *file =
            target ? tci_files_add(list, rule.first + 1, TCI_FILE_LINK, 0777, TCI_FILE_OWN) : NULL;
        if (!file)
            return tci_error_no_memory(reterr);
        file->target = target;
    }
    return add_certificates(list, reterr);
}
