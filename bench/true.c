/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: the least that a command can be. Linked statically; every benchmark starts this program. */
int main(void)
{
    return 0;
}
