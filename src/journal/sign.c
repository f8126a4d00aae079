/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: what is used of libcrypto.so.3: a handful of functions, found by name at run time. Nothing of
 * it is kept between calls but the loaded library itself.
 */
#include "journal/sign_internal.h"

#include <dlfcn.h>
#include <string.h>
#include "base/uuid.h"

enum { type_ed25519 = 1087 }; /* EVP_PKEY_ED25519, a part of libcrypto's stable interface */

/* X(result, name, parameters) */
#define FUNCTIONS                                                                                  \
    X(void *, EVP_PKEY_new_raw_private_key, (int, void *, const unsigned char *, size_t))          \
    X(void *, EVP_PKEY_new_raw_public_key, (int, void *, const unsigned char *, size_t))           \
    X(int, EVP_PKEY_get_raw_public_key, (const void *, unsigned char *, size_t *))                 \
    X(void, EVP_PKEY_free, (void *))                                                               \
    X(void *, EVP_MD_CTX_new, (void))                                                              \
    X(void, EVP_MD_CTX_free, (void *))                                                             \
    X(int, EVP_DigestSignInit, (void *, void **, const void *, void *, void *))                    \
    X(int, EVP_DigestSign, (void *, unsigned char *, size_t *, const unsigned char *, size_t))     \
    X(int, EVP_DigestVerifyInit, (void *, void **, const void *, void *, void *))                  \
    X(int, EVP_DigestVerify, (void *, const unsigned char *, size_t, const unsigned char *, size_t))

struct crypto {
#define X(result, name, parameters) result(*name) parameters;
    FUNCTIONS
#undef X
};

static int missing(struct tc_error *reterr, const char *why)
{
    tci_error_set(reterr, TC_ERROR_UNSUPPORTED, "signatures need libcrypto.so.3 of OpenSSL 3: %s",
                  why ? why : "it could not be opened");
    tci_error_remedy(reterr, "install it (Debian: apt install libssl3)");
    return -1;
}

/* The library stays loaded: opening it again costs nothing, and closing it would end its threads' and
 * exit handlers' code under them. */
static int open_crypto(struct crypto *ret, struct tc_error *reterr)
{
    void *library = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library)
        return missing(reterr, dlerror());
        /* ISO C has no way from an object pointer to a function pointer but through memory. */
#define X(result, name, parameters)                                                                \
    do {                                                                                           \
        void *found = dlsym(library, #name);                                                       \
        if (!found)                                                                                \
            return missing(reterr, #name " is not in it");                                         \
        memcpy(&ret->name, &found, sizeof found);                                                  \
    } while (0);
    FUNCTIONS
#undef X
    return 0;
}

static int failed(struct tc_error *reterr, const char *what)
{
    return tci_error_set(reterr, TC_ERROR_INTERNAL, "libcrypto could not %s", what);
}

int tci_sign_key_derive(struct tci_sign_key *key, struct tc_error *reterr)
{
    struct crypto crypto;
    size_t size = sizeof key->public_key;
    void *pair;
    int good;
    if (open_crypto(&crypto, reterr) < 0)
        return -1;
    pair = crypto.EVP_PKEY_new_raw_private_key(type_ed25519, NULL, key->seed, sizeof key->seed);
    if (!pair)
        return failed(reterr, "use the key");
    good = crypto.EVP_PKEY_get_raw_public_key(pair, key->public_key, &size);
    crypto.EVP_PKEY_free(pair);
    return good == 1 && size == sizeof key->public_key ? 0 : failed(reterr, "use the key");
}

int tci_sign(const struct tci_sign_key *key, const char *text, size_t length,
             char ret[TCI_SIGNATURE_TEXT_MAX], struct tc_error *reterr)
{
    struct crypto crypto;
    unsigned char signature[TCI_SIGNATURE_SIZE];
    size_t size = sizeof signature;
    void *pair, *context;
    bool good = false;

    if (open_crypto(&crypto, reterr) < 0)
        return -1;
    pair = crypto.EVP_PKEY_new_raw_private_key(type_ed25519, NULL, key->seed, sizeof key->seed);
    context = crypto.EVP_MD_CTX_new();
    if (pair && context)
        good = crypto.EVP_DigestSignInit(context, NULL, NULL, NULL, pair) == 1 &&
               crypto.EVP_DigestSign(context, signature, &size, (const unsigned char *)text,
                                     length) == 1 &&
               size == sizeof signature;
    crypto.EVP_MD_CTX_free(context);
    crypto.EVP_PKEY_free(pair);
    if (!good)
        return failed(reterr, "sign");
    tci_hex(signature, sizeof signature, ret);
    return 0;
}

int tci_sign_check(const struct tci_sign_key *key, const char *text, size_t length,
                   const char *signature, struct tc_error *reterr)
{
    struct crypto crypto;
    unsigned char bytes[TCI_SIGNATURE_SIZE];
    void *public_key, *context;
    int good = 0;

    if (!tci_unhex(signature, bytes, sizeof bytes))
        return 1;
    if (open_crypto(&crypto, reterr) < 0)
        return -1;
    public_key = crypto.EVP_PKEY_new_raw_public_key(type_ed25519, NULL, key->public_key,
                                                    sizeof key->public_key);
    context = crypto.EVP_MD_CTX_new();
    if (public_key && context &&
        crypto.EVP_DigestVerifyInit(context, NULL, NULL, NULL, public_key) == 1)
        good = crypto.EVP_DigestVerify(context, bytes, sizeof bytes, (const unsigned char *)text,
                                       length);
    crypto.EVP_MD_CTX_free(context);
    crypto.EVP_PKEY_free(public_key);
    return good == 1 ? 0 : 1; /* whatever is not a clear yes is a no */
}
