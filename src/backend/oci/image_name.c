/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: references of images. What passes here is safe as the name of a file, as a line of JSON and as a
 * word for another program: no "..", no control byte, nothing that looks like an option.
 */
#include "backend/oci/image.h"

#include <stdio.h>
#include <string.h>
#include "base/quote.h"

bool tci_image_is_digest(const char *text)
{
    return strlen(text) == TCI_SHA256_TEXT_MAX - 1 &&
           strspn(text, "0123456789abcdef") == TCI_SHA256_TEXT_MAX - 1;
}

static bool is_lower(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* Parts with slashes between them, each beginning and ending with a letter or a digit; inside also one of
 * ".", "_", "__" and any number of "-". That is what Docker and Podman take, too. */
static bool is_repository(const char *text, size_t length)
{
    size_t dashes = 0;
    char before = '/';
    if (length == 0 || length >= TCI_IMAGE_PART_MAX)
        return false;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        bool is_joint = c == '.' || c == '_' || c == '-';
        if (!is_lower(c) && !is_joint && c != '/')
            return false;
        if ((is_joint || c == '/') && before == '/')
            return false;
        if (c == '/' && !is_lower(before))
            return false;
        dashes = is_joint ? dashes + 1 : 0;
        if (is_joint && dashes > 1 && (c != before || c == '.' || (c == '_' && dashes > 2)))
            return false;
        before = c;
    }
    return is_lower(before);
}

static bool is_tag(const char *text, size_t length)
{
    if (length == 0 || length >= TCI_IMAGE_PART_MAX || *text == '.' || *text == '-')
        return false;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (!is_lower(c) && !(c >= 'A' && c <= 'Z') && !(c && strchr("._-", c)))
            return false;
    }
    return true;
}

static int refuse(const char *text, struct tc_error *reterr)
{
    char quoted[TCI_QUOTE_MAX];
    tci_error_set(reterr, TC_ERROR_USAGE, "%s is not the name of an image",
                  tci_quote(text, strlen(text), quoted));
    tci_error_remedy(reterr, "write NAME:TAG in lower case, such as toolcage/tool-sandbox:latest");
    return -1;
}

int tci_image_name_parse(const char *text, struct tci_image_name *ret, struct tc_error *reterr)
{
    static const char local[] = "localhost/", digest[] = "sha256:";
    const char *whole = text, *at, *colon;
    size_t length;

    *ret = (struct tci_image_name){ .repository = "" };
    if (strncmp(text, local, sizeof local - 1) == 0)
        text += sizeof local - 1;
    if (strncmp(text, digest, sizeof digest - 1) == 0 &&
        tci_image_is_digest(text + sizeof digest - 1)) {
        memcpy(ret->digest, text + sizeof digest - 1, sizeof ret->digest);
        return 0;
    }
    length = strcspn(text, "@");
    at = text[length] ? text + length + 1 : NULL;
    colon = memchr(text, ':', length);
    if (at) {
        if (strncmp(at, digest, sizeof digest - 1) != 0 ||
            !tci_image_is_digest(at + sizeof digest - 1))
            return refuse(whole, reterr);
        memcpy(ret->digest, at + sizeof digest - 1, sizeof ret->digest);
    }
    if (colon && !is_tag(colon + 1, length - (size_t)(colon + 1 - text)))
        return refuse(whole, reterr);
    /* NAME:TAG@DIGEST: the digest counts, as it does for Docker. */
    if (!at && colon)
        memcpy(ret->tag, colon + 1, length - (size_t)(colon + 1 - text));
    else if (!at)
        memcpy(ret->tag, "latest", sizeof "latest");
    if (colon)
        length = (size_t)(colon - text);
    if (!is_repository(text, length))
        return refuse(whole, reterr);
    memcpy(ret->repository, text, length);
    return 0;
}

const char *tci_image_name_text(const struct tci_image_name *name, char ret[TCI_IMAGE_NAME_MAX])
{
    if (*name->tag)
        (void)snprintf(ret, TCI_IMAGE_NAME_MAX, "%s:%s", name->repository, name->tag);
    else
        (void)snprintf(ret, TCI_IMAGE_NAME_MAX, "%s%ssha256:%s", name->repository,
                       *name->repository ? "@" : "", name->digest);
    return ret;
}
