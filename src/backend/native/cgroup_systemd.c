#include "backend/native/cgroup_internal.h"
#include <errno.h>
int tci_cgroup_systemd_scope(int deadline_ms)
{
    (void)deadline_ms;
    return ENOSYS;
}
