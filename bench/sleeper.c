/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: a command that says that it runs and then waits for its end. Linked statically. */
#include <unistd.h>

int main(void)
{
    if (write(1, "x", 1) != 1)
        return 1;
    for (;;)
        (void)pause();
}
