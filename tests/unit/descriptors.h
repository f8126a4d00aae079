/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: how many descriptors this process has open, for tests that none is left behind. Comes after
 * cmocka.h. */
#ifndef TCI_TESTS_DESCRIPTORS_H
#define TCI_TESTS_DESCRIPTORS_H

#include <dirent.h>

static inline int count_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    int count = 0;
    assert_non_null(directory);
    while (readdir(directory))
        count++;
    (void)closedir(directory);
    return count;
}

#endif
