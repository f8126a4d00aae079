/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: can the WebAssembly engine's library be loaded, and does it start? Loading runs code of
 * the library: hence in a child, and not at all where the loader would look into directories that
 * depend on where the user happens to be.
 */
#include "backend/probe.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

static const char REMEDY[] =
    "not packaged by Debian or Ubuntu: take the C API (libwasmtime.so) from the releases page of "
    "the Wasmtime project, put it into /usr/local/lib and run sudo ldconfig";

/* The attack: an empty or relative entry makes the loader take a library that somebody planted in
 * the working directory. */
static bool search_path_is_absolute(void)
{
    const char *from = getenv("LD_LIBRARY_PATH");
    if (!from || !*from)
        return true;
    for (;;) {
        if (*from != '/')
            return false;
        from += strcspn(from, ":;");
        if (!*from)
            return true;
        from++;
    }
}

/* What the backend calls: without one of these the library is too old. */
static const char *missing_symbol(void *library)
{
    static const char *const symbols[] = {
        "wasm_engine_new",     "wasm_engine_delete",          "wasmtime_store_new",
        "wasmtime_module_new", "wasmtime_linker_define_wasi", "wasmtime_store_limiter",
        "wasmtime_linker_new", "wasmtime_context_set_wasi",
    };
    for (size_t i = 0; i < tci_array_size(symbols); i++)
        if (!dlsym(library, symbols[i]))
            return symbols[i];
    return NULL;
}

static bool engine_starts(void *library)
{
    void *(*engine_new)(void);
    void (*engine_delete)(void *);
    void *symbol = dlsym(library, "wasm_engine_new"), *engine;
    memcpy(&engine_new, &symbol, sizeof engine_new);
    symbol = dlsym(library, "wasm_engine_delete");
    memcpy(&engine_delete, &symbol, sizeof engine_delete);
    engine = engine_new();
    if (!engine)
        return false;
    engine_delete(engine);
    return true;
}

void tci_probe_libwasmtime(const struct tci_probe *p)
{
    const enum tci_feature id = TCI_FEATURE_LIBWASMTIME;
    struct link_map *map = NULL;
    const char *missing;
    void *library;
    if (!search_path_is_absolute()) {
        tci_probe_unknown(p, id, "remove the empty or relative entries from LD_LIBRARY_PATH",
                          "not tried: LD_LIBRARY_PATH has an entry that is not absolute");
        return;
    }
    library = dlopen("libwasmtime.so", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        bool absent = why && strstr(why, "No such file");
        if (absent)
            tci_probe_no(p, id, REMEDY, "libwasmtime.so is not installed");
        else
            tci_probe_unknown(p, id, REMEDY, "%.180s", why ? why : "the loader gives no reason");
        return;
    }
    (void)dlinfo(library, RTLD_DI_LINKMAP, &map);
    missing = missing_symbol(library);
    if (missing)
        tci_probe_no(p, id, REMEDY, "%.100s lacks %s", map ? map->l_name : "the library", missing);
    else if (!engine_starts(library))
        tci_probe_no(p, id, REMEDY, "%.100s: no engine starts", map ? map->l_name : "the library");
    else
        tci_probe_yes(p, id, "%.150s", map ? map->l_name : "loaded");
}
