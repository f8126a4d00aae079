/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: init as bytes inside the library, and the file of memory that it is started from. */
#include "backend/native/native.h"
#include "backend/program.h"

/* Made from init*.c by the build. */
extern const unsigned char tci_init_blob[];
extern const unsigned long tci_init_blob_size;

int tci_native_init_fd(struct tc_error *reterr)
{
    return tci_program_from_bytes("toolcage-init", tci_init_blob, tci_init_blob_size, reterr);
}
