# SPDX-License-Identifier: Apache-2.0
"""Owns: how a program ended, for the labs that start programs."""

import subprocess
import time
from dataclasses import dataclass, field

from native import TIME_SCALE


@dataclass
class Ended:
    """A lab adds what its programs tell."""

    status: int
    stdout: str
    stderr: str
    seconds: float
    result: dict = field(default_factory=dict)

    @classmethod
    def of(cls, process, timeout, input=None):  # noqa: A002  (as subprocess calls it)
        """Waits for the end of a process; one that does not come to it is a failure."""
        begin = time.monotonic()
        try:
            stdout, stderr = process.communicate(input, timeout=timeout * TIME_SCALE)
        except subprocess.TimeoutExpired:
            process.kill()
            stdout, stderr = process.communicate()
            raise AssertionError(f"it does not end: {stdout!r} {stderr!r}") from None
        return cls(process.returncode, stdout.decode(errors="replace"), stderr.decode(errors="replace"),
                   time.monotonic() - begin)
