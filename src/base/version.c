/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the library's version, which the build sets. */
#include "toolcage/toolcage.h"

const char *tc_version(void)
{
    return TOOLCAGE_VERSION;
}
