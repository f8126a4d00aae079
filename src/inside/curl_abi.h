/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: the part of libcurl's interface that http_fetch uses inside its cage, and the container engines'
 * client (backend/oci/api.c) outside of any, by number. libcurl is opened at run time: whoever builds or
 * runs toolcage without these does not need it. The numbers belong to libcurl.so.4, which has kept them
 * since 2006.
 */
#ifndef TCI_INSIDE_CURL_ABI_H
#define TCI_INSIDE_CURL_ABI_H

#include <stddef.h>

/* Options: 0 and up take a long, 10000 a pointer, 20000 a function, 30000 a 64-bit integer. */
enum tci_curl_option {
    TCI_CURL_HTTP_POST = 47,
    TCI_CURL_NO_PROGRESS = 43,
    TCI_CURL_NO_BODY = 44,
    TCI_CURL_FOLLOW = 52,
    TCI_CURL_MAX_REDIRECTS = 68,
    TCI_CURL_NO_SIGNAL = 99,
    TCI_CURL_TIMEOUT_MS = 155,
    TCI_CURL_CONNECT_TIMEOUT_MS = 156,
    TCI_CURL_PROTOCOLS = 181,
    TCI_CURL_REDIRECT_PROTOCOLS = 182,
    TCI_CURL_WRITE_DATA = 10001,
    TCI_CURL_URL = 10002,
    TCI_CURL_PROXY = 10004,
    TCI_CURL_ERROR_TEXT = 10010,
    TCI_CURL_BODY = 10015,
    TCI_CURL_USER_AGENT = 10018,
    TCI_CURL_HEADERS = 10023,
    TCI_CURL_HEADER_DATA = 10029,
    TCI_CURL_METHOD = 10036,
    TCI_CURL_PROGRESS_DATA = 10057,
    TCI_CURL_CA_FILE = 10065,
    TCI_CURL_ENCODINGS = 10102,
    TCI_CURL_UNIX_SOCKET = 10231, /* since 7.40 */
    TCI_CURL_WRITE = 20011,
    TCI_CURL_HEADER = 20079,
    TCI_CURL_PROGRESS = 20219,
    TCI_CURL_BODY_SIZE = 30120,
};

enum tci_curl_info { TCI_CURL_FINAL_URL = 0x100001, TCI_CURL_STATUS = 0x200002 };

enum tci_curl_code {
    TCI_CURL_OK = 0,
    TCI_CURL_BAD_PROTOCOL = 1,
    TCI_CURL_BAD_URL = 3,
    TCI_CURL_NO_HOST = 6,
    TCI_CURL_NO_CONNECTION = 7,
    TCI_CURL_WRITE_ENDED = 23,
    TCI_CURL_TIMEOUT = 28,
    TCI_CURL_ABORTED = 42,
    TCI_CURL_TOO_MANY_REDIRECTS = 47,
    TCI_CURL_BAD_CERTIFICATE = 60,
};

enum {
    TCI_CURL_HTTP = 1,
    TCI_CURL_HTTPS = 2,
    TCI_CURL_ERROR_SIZE = 256,
    TCI_CURL_GLOBAL_ALL = 3,
    TCI_CURL_GLOBAL_NOTHING = 0
};

/* Its functions, once it is open. */
struct tci_curl {
    int (*global_init)(long flags);
    void *(*easy_init)(void);
    int (*setopt)(void *handle, int option, ...);
    int (*perform)(void *handle);
    int (*getinfo)(void *handle, int info, ...);
    void *(*slist_append)(void *list, const char *text);
    const char *(*strerror)(int code);
    void (*easy_cleanup)(void *handle);
    void (*slist_free)(void *list);
};

/* Opens libcurl and finds all of them. NULL, or what is not there: "" is the library itself (dlerror()
 * says why), anything else a function that it lacks. It stays loaded: its exit handlers and threads would
 * be without their code. */
const char *tci_curl_open(struct tci_curl *ret);

#endif
