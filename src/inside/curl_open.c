/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: opening libcurl at run time, inside a cage and outside. Starts nothing of it. */
#include <dlfcn.h>
#include <string.h>
#include "base/attr.h"
#include "inside/curl_abi.h"

const char *tci_curl_open(struct tci_curl *ret)
{
    const struct {
        const char *name;
        void *target;
    } wanted[] = {
        { "curl_global_init", &ret->global_init },   { "curl_easy_init", &ret->easy_init },
        { "curl_easy_setopt", &ret->setopt },        { "curl_easy_perform", &ret->perform },
        { "curl_easy_getinfo", &ret->getinfo },      { "curl_slist_append", &ret->slist_append },
        { "curl_easy_strerror", &ret->strerror },    { "curl_easy_cleanup", &ret->easy_cleanup },
        { "curl_slist_free_all", &ret->slist_free },
    };
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library)
        library = dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library)
        return "";
    for (size_t i = 0; i < tci_array_size(wanted); i++) {
        void *found = dlsym(library, wanted[i].name);
        if (!found)
            return wanted[i].name;
        /* POSIX lets a pointer to an object become one to a function only by its bytes. */
        memcpy(wanted[i].target, &found, sizeof found);
    }
    return NULL;
}
