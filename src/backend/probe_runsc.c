/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns: is runsc new enough, and does its platform kvm work? The attempt runs in mount and process
 * namespaces of its own (probe_exec.c): a sandbox that hangs holds three processes in sessions of their
 * own, and all of them die with the first process of the namespace.
 */
#include "backend/probe_exec.h"
#include "backend/runsc.h"

#include <ctype.h>
#include <stdlib.h>
#include <unistd.h>

/* Eight digits that begin with 20, with no digit beside them. */
unsigned tci_runsc_date(const char *version)
{
    for (const char *p = version; *p; p++) {
        size_t n = 0;
        if (p > version && isdigit((unsigned char)p[-1]))
            continue;
        while (isdigit((unsigned char)p[n]))
            n++;
        if (n == 8 && p[0] == '2' && p[1] == '0')
            return (unsigned)strtoul(p, NULL, 10);
    }
    return 0;
}

bool tci_runsc_kvm_works(const char *runsc)
{
    const char *argv[] = { "runsc",
                           "--root=/tmp",
                           "--platform=kvm",
                           "--network=none",
                           "--ignore-cgroups",
                           "--rootless",
                           "do",
                           "/bin/true",
                           NULL };
    char output[1024];
    struct tci_program_result r;
    if (geteuid() == 0)
        argv[5] = "--rootless=false";
    r = tci_program_run(runsc, argv, TCI_PROGRAM_PRIVATE, TCI_RUNSC_KVM_LIMIT_MS, output,
                        sizeof output);
    return r.end == TCI_PROGRAM_EXITED && r.status == 0;
}
