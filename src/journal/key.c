/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the files of keys: PEM around the one DER form that an Ed25519 key has (RFC 8410), as
 * `openssl genpkey -algorithm ed25519` writes it. Nothing else is read: no encrypted key, no other
 * algorithm, no second block in the file.
 */
#include "journal/sign.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base64.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"
#include "base/quote.h"
#include "base/uuid.h"
#include "journal/sign_internal.h"

enum { key_file_max = 4096 };

struct form {
    const char *label;
    unsigned char prefix[16]; /* DER in front of the 32 bytes */
    size_t prefix_size;
};

static const struct form private_form = {
    "PRIVATE KEY",
    { 0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20 },
    16,
};
static const struct form public_form = {
    "PUBLIC KEY",
    { 0x30, 0x2a, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 3, 0x21, 0 },
    12,
};

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool tci_unhex(const char *text, unsigned char *ret, size_t size)
{
    if (!text || strlen(text) != 2 * size)
        return false;
    for (size_t i = 0; i < size; i++) {
        int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        ret[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

bool tci_sign_key_from_text(const char *text, struct tci_sign_key *ret)
{
    *ret = (struct tci_sign_key){ 0 };
    return tci_unhex(text, ret->public_key, sizeof ret->public_key);
}

void tci_sign_key_forget(struct tci_sign_key *key)
{
    explicit_bzero(key, sizeof *key);
}

/* ---- reading ------------------------------------------------------------------------------ */

/* The bytes of a PEM file that holds exactly one block of this form. */
static bool from_pem(const struct form *form, const char *text,
                     unsigned char ret[TCI_SIGN_KEY_SIZE])
{
    tc_cleanup(tci_buf_free) struct tci_buf base64 = TCI_BUF_INIT(key_file_max),
                                            der = TCI_BUF_INIT(key_file_max);
    char begin[64], end[64];
    size_t begin_length, line;
    bool good;

    begin_length = (size_t)snprintf(begin, sizeof begin, "-----BEGIN %s-----", form->label);
    (void)snprintf(end, sizeof end, "-----END %s-----", form->label);
    if (strncmp(text, begin, begin_length) != 0)
        return false;
    for (text += begin_length; *text && *text != '-'; text += line) {
        text += strspn(text, "\r\n");
        line = strcspn(text, "\r\n-");
        tci_buf_append(&base64, text, line);
    }
    if (strncmp(text, end, strlen(end)) != 0 ||
        text[strlen(end) + strspn(text + strlen(end), "\r\n")])
        return false;
    good = base64.length && tci_base64_decode(&der, base64.data, base64.length) == 0 &&
           der.length == form->prefix_size + TCI_SIGN_KEY_SIZE &&
           memcmp(der.data, form->prefix, form->prefix_size) == 0;
    if (good)
        memcpy(ret, der.data + form->prefix_size, TCI_SIGN_KEY_SIZE);
    if (base64.data)
        explicit_bzero(base64.data, base64.length);
    if (der.data)
        explicit_bzero(der.data, der.length);
    return good;
}

static int not_a_key(const char *path, const struct form *form, struct tc_error *reterr)
{
    char quoted[TCI_QUOTE_MAX];
    tci_error_set(reterr, TC_ERROR_SYNTAX, "%s does not hold an Ed25519 %s in PEM",
                  tci_quote(path, strlen(path), quoted),
                  form == &private_form ? "private key" : "public key");
    if (form == &private_form)
        tci_error_remedy(reterr, "make one with toolcage journal keygen --key FILE");
    else
        tci_error_remedy(reterr, "give the .pub file that toolcage journal keygen wrote");
    return -1;
}

/* What others may read they can sign with; what others may write, they may have chosen. */
static int check_owner(const char *path, int fd, struct tc_error *reterr)
{
    char quoted[TCI_QUOTE_MAX];
    struct stat st;
    const int wrong = tci_file_judge_secret(fd, true, &st);
    if (wrong < 0)
        return tci_error_errno(reterr, errno, "cannot look at the key");
    tci_quote(path, strlen(path), quoted);
    if (wrong & TCI_SECRET_NO_FILE) {
        tci_error_set(reterr, TC_ERROR_IO, "the key %s is not a regular file", quoted);
        tci_error_remedy(reterr, "give the file that toolcage journal keygen wrote");
        return -1;
    }
    if (wrong & TCI_SECRET_EXPOSED) {
        tci_error_set(reterr, TC_ERROR_IO, "the private key %s is open to others (mode %04o)",
                      quoted, (unsigned)st.st_mode & 07777);
        tci_error_remedy(reterr, "chmod 600 it, and make a new key if others may have read it");
        return -1;
    }
    if (wrong & TCI_SECRET_FOREIGN) {
        tci_error_set(reterr, TC_ERROR_IO, "the private key %s belongs to another user", quoted);
        tci_error_remedy(reterr, "use a key of your own");
        return -1;
    }
    return 0;
}

static int read_key(const char *path, const struct form *form, char ret[key_file_max + 1],
                    struct tc_error *reterr)
{
    char quoted[TCI_QUOTE_MAX];
    size_t length = 0;
    tc_cleanup(tci_closep) int fd = tci_file_open(path);
    if (fd < 0) {
        tci_error_errno(reterr, errno, "cannot open the key %s",
                        tci_quote(path, strlen(path), quoted));
        tci_error_remedy(reterr, "make one with toolcage journal keygen --key FILE");
        return -1;
    }
    if (form == &private_form && check_owner(path, fd, reterr) < 0)
        return -1;
    while (length < key_file_max) {
        ssize_t got = tci_read_some(fd, ret + length, key_file_max - length);
        if (got < 0)
            return tci_error_errno(reterr, errno, "cannot read the key %s",
                                   tci_quote(path, strlen(path), quoted));
        if (got == 0)
            break;
        length += (size_t)got;
    }
    ret[length] = '\0';
    if (length == key_file_max || strlen(ret) != length)
        return not_a_key(path, form, reterr);
    return 0;
}

int tci_sign_key_read_private(const char *path, struct tci_sign_key *ret, struct tc_error *reterr)
{
    char text[key_file_max + 1];
    struct tci_sign_key key = { .is_private = true };
    int r = read_key(path, &private_form, text, reterr);
    if (r == 0 && !from_pem(&private_form, text, key.seed))
        r = not_a_key(path, &private_form, reterr);
    explicit_bzero(text, sizeof text);
    if (r == 0)
        r = tci_sign_key_derive(&key, reterr);
    if (r == 0)
        *ret = key;
    tci_sign_key_forget(&key);
    return r;
}

int tci_sign_key_read_public(const char *path, struct tci_sign_key *ret, struct tc_error *reterr)
{
    char text[key_file_max + 1];
    struct tci_sign_key key = { 0 };
    if (read_key(path, &public_form, text, reterr) < 0)
        return -1;
    if (!from_pem(&public_form, text, key.public_key))
        return not_a_key(path, &public_form, reterr);
    *ret = key;
    return 0;
}

/* ---- making ------------------------------------------------------------------------------- */

static int write_pem(const char *path, mode_t mode, const struct form *form,
                     const unsigned char bytes[TCI_SIGN_KEY_SIZE], struct tc_error *reterr)
{
    tc_cleanup(tci_buf_free) struct tci_buf out = TCI_BUF_INIT(1024);
    unsigned char der[16 + TCI_SIGN_KEY_SIZE];
    char quoted[TCI_QUOTE_MAX];
    int failure = 0;
    /* O_EXCL: neither a key that is there is lost, nor a link that somebody put there followed. */
    tc_cleanup(tci_closep) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0) {
        tci_error_errno(reterr, errno, "cannot make %s", tci_quote(path, strlen(path), quoted));
        tci_error_remedy(reterr,
                         "give a name that is not taken, in a directory that you may write");
        return -1;
    }
    memcpy(der, form->prefix, form->prefix_size);
    memcpy(der + form->prefix_size, bytes, TCI_SIGN_KEY_SIZE);
    tci_buf_printf(&out, "-----BEGIN %s-----\n", form->label);
    tci_base64_encode(&out, der, form->prefix_size + TCI_SIGN_KEY_SIZE);
    tci_buf_printf(&out, "\n-----END %s-----\n", form->label);
    if (tci_buf_check(&out, reterr) < 0)
        failure = ENOMEM;
    else if (tci_write_all(fd, out.data, out.length) < 0 || fsync(fd) < 0)
        failure = errno;
    explicit_bzero(der, sizeof der);
    if (out.data)
        explicit_bzero(out.data, out.length);
    if (!failure)
        return 0;
    (void)unlink(path);
    return tci_error_errno(reterr, failure, "cannot write %s",
                           tci_quote(path, strlen(path), quoted));
}

int tci_sign_key_make(const char *path, char ret_public[TCI_SIGN_KEY_TEXT_MAX],
                      struct tc_error *reterr)
{
    char public_path[TCI_PATH_MAX + 1];
    struct tci_sign_key key = { .is_private = true };
    int r;

    if ((size_t)snprintf(public_path, sizeof public_path, "%s.pub", path) >= sizeof public_path)
        return tci_error_set(reterr, TC_ERROR_TOO_LARGE, "the path of the key is too long");
    if (tci_random(key.seed, sizeof key.seed) < 0)
        return tci_error_errno(reterr, errno, "cannot get random numbers");
    r = tci_sign_key_derive(&key, reterr);
    if (r == 0)
        r = write_pem(path, 0600, &private_form, key.seed, reterr);
    if (r == 0 && write_pem(public_path, 0644, &public_form, key.public_key, reterr) < 0) {
        (void)unlink(path); /* ours: made a moment ago, and nobody has used it */
        r = -1;
    }
    if (r == 0)
        tci_hex(key.public_key, sizeof key.public_key, ret_public);
    tci_sign_key_forget(&key);
    return r;
}
