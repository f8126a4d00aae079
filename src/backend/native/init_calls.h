/* SPDX-License-Identifier: Apache-2.0 */
/* Owns: nothing but the name under which init*.c start. */
#ifndef TCI_BACKEND_NATIVE_INIT_CALLS_H
#define TCI_BACKEND_NATIVE_INIT_CALLS_H

#include "base/calls.h"

#define INIT_START BARE_START("init_main")

#endif
