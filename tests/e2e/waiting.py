# SPDX-License-Identifier: Apache-2.0
"""Owns: waiting for what happens in the background. Seconds are those of a usual machine (TIME_SCALE)."""

import time

from native import TIME_SCALE


def wait_until(look, seconds=30):
    """Looks until there is something; what was there at last."""
    end = time.monotonic() + seconds * TIME_SCALE
    while not (found := look()) and time.monotonic() < end:
        time.sleep(0.02)
    return found


def eventually(look, seconds=8):
    """What is still there after some time; nothing, if it goes away by itself."""
    end = time.monotonic() + seconds * TIME_SCALE
    while (found := look()) and time.monotonic() < end:
        time.sleep(0.02)
    return found
