# SPDX-License-Identifier: Apache-2.0
"""Ten callers at once, through the library with a warm pool: never more containers than callers and pool, each used
once, and nothing left."""

import json
import os
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest

from container_lab import SANITIZER, cages_of
from native import PROGRAMS, SLOW, TIME_SCALE
from soak import eventually

pytestmark = pytest.mark.container

CALLERS, WARM = 10, 3
CALLS = {"crun": 60 if SLOW else int(os.environ.get("TOOLCAGE_SOAK_CONTAINERS") or 500), "docker": 30, "gvisor": 40}
CHOSEN = ["crun"] if SLOW else list(CALLS)


def is_stage(pid):
    """Neither dead, nor the library's own on the way to its program."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return text[text.index("(") + 1:].startswith("memfd:toolcage") and text[text.rindex(")") + 2] not in "ZX"


class Watch(threading.Thread):
    """The most containers that were alive at one time, looked at again and again."""

    def __init__(self, cages, pid):
        super().__init__()
        self.cages, self.pid, self.most, self.looks, self.over = cages, pid, 0, 0, False
        self.start()

    def count(self):
        if self.cages.api:
            return len(self.cages.api.containers())
        # Those of two looks were alive together between them, whatever came and went during each.
        return len(self.children() & self.children())

    def children(self):
        """Of a bare runtime each container is one living child of the host: its stage. The kernel's own list, because
        these live for milliseconds, and a walk through /proc on a busy machine comes too late for all of them."""
        found = set()
        for task in Path(f"/proc/{self.pid}/task").glob("*/children"):
            try:
                found.update(pid for pid in task.read_text(encoding="ascii").split() if is_stage(pid))
            except OSError:
                pass  # that thread has ended
        return found

    def run(self):
        while not self.over:
            self.most, self.looks = max(self.most, self.count()), self.looks + 1
            time.sleep(0.02)

    def end(self):
        self.over = True
        self.join()
        return self.most


@pytest.mark.parametrize("name", CHOSEN)
def test_no_more_containers_than_callers_and_pool(lab, name):
    cages = cages_of(lab, name)
    driver = lab.base / "warm-driver"
    shutil.copy(PROGRAMS / "warm-driver", driver)
    policy = cages.policy(warm=WARM)
    before = cages.traces()
    process = subprocess.Popen([driver, policy, "t", str(CALLS[name]), str(CALLERS)], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cages.place,
                               env=cages.environment | SANITIZER, preexec_fn=cages.caller.become)
    watch = Watch(cages, process.pid)
    try:
        stdout, stderr = process.communicate(timeout=120 * TIME_SCALE)
    finally:
        most = watch.end()
        process.kill()
        process.wait()
    assert stdout, stderr
    said = json.loads(stdout)
    assert said["good"] == CALLS[name] and not stderr, (said, stderr[:2000])
    assert 2 <= most <= CALLERS + WARM and watch.looks > 5, (most, watch.looks)
    assert said["repeated_ids"] == 0 and not said["children"], said
    assert said["files"][0] == said["files"][1], said
    left = eventually(lambda: cages.traces() - before)
    assert not left, left
