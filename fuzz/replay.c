/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: running a fuzz target over the files of a directory, without libFuzzer, as one test a file
 * (TAP). A target that finds something aborts, and the test program with it.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { seed_max = 4 * 1024 * 1024 };

static int replay(const char *directory, const char *name)
{
    char path[4096];
    uint8_t *exact, *bytes = malloc(seed_max);
    size_t size;
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    file = fopen(path, "rb");
    if (!file || !bytes) {
        perror(path);
        free(bytes);
        return -1;
    }
    size = fread(bytes, 1, seed_max, file);
    (void)fclose(file);
    /* A copy of the exact size, so that a sanitizer sees the first byte too many. */
    exact = malloc(size ? size : 1);
    if (exact && size)
        memcpy(exact, bytes, size);
    free(bytes);
    if (!exact)
        return -1;
    (void)LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    return 0;
}

int main(int argc, char **argv)
{
    int count = 0, failed = 0;
    struct dirent *entry;
    DIR *directory;

    if (argc != 2 || !(directory = opendir(argv[1]))) {
        (void)fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
        return 2;
    }
    while ((entry = readdir(directory)) != NULL) {
        int r;
        if (entry->d_name[0] == '.')
            continue;
        r = replay(argv[1], entry->d_name);
        failed += r < 0;
        (void)printf("%s %d - %s\n", r < 0 ? "not ok" : "ok", ++count, entry->d_name);
        (void)fflush(stdout);
    }
    (void)closedir(directory);
    if (count == 0) {
        (void)printf("not ok 1 - there are no seeds in %s\n", argv[1]);
        count = failed = 1;
    }
    (void)printf("1..%d\n", count);
    return failed > 0;
}
