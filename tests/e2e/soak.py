#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The soak: thousands of calls, several at a time, through the library and through the command, with
random kills of calls, of their processes and of toolcage itself. Afterwards nothing is left, and the
library's process is as large as before.

  tests/e2e/soak.py [CALLS]      20,000 without an argument; $TOOLCAGE_SOAK; 8 at a time

The tests run a short one (test_leftovers.py).
"""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from native import (PROGRAMS, SANITIZED, TIME_SCALE, TOOLCAGE, cage_groups, caller, mounts,  # noqa: E402
                    processes, temporary_files)
from waiting import eventually  # noqa: E402

AT_ONCE = 8
MEMORY_SLACK_KB = 3000  # what an allocator may keep for threads that are gone
DESCRIPTOR_SLACK = 8 * 8  # control groups that an engine keeps, times what each has open
ENDINGS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, None)

POLICY = """version = 1
[defaults]
filesystem = {{ readable = ["{base}/bin"], scratch = "4MB" }}
memory = "64MB"
pids = 16
output = "64KB"
timeout = "20s"
"""


class Place:
    """A directory with a program and a policy that one caller uses."""

    def __init__(self, name):
        self.who = caller(name)
        self.base = Path(tempfile.mkdtemp(prefix="toolcage-soak-", dir="/var/tmp"))
        (self.base / "bin").mkdir()
        self.base.chmod(0o755)
        for source, target in ((PROGRAMS / "escape-attempts", "bin/enemy"), (TOOLCAGE, "toolcage"),
                               (PROGRAMS / "soak-driver", "driver")):
            shutil.copy(source, self.base / target)
            (self.base / target).chmod(0o755)
        text = POLICY.format(base=self.base)
        for backend in ("jail", "process"):
            more = 'scratch = "4MB", ' if backend == "jail" else ""
            common = (f'backend = "{backend}"\nfilesystem = {{ {more}readable = ["{self.base}/bin"] }}\n'
                      + ('syscalls = "default"\n' if backend == "process" else ""))
            text += f"[tool.{backend}_quick]\n{common}\n[tool.{backend}_flood]\n{common}\n"
            text += f'[tool.{backend}_slow]\n{common}timeout = "60ms"\n'
            text += f'[tool.{backend}_long]\n{common}timeout = "15s"\n'
        (self.base / "policy.toml").write_text(text)
        (self.base / "policy.toml").chmod(0o644)

    def start(self, *command, **options):
        """Starts a program of the place as the caller, in a session of its own."""
        def prepare():
            os.setsid()
            self.who.become()

        return subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, cwd=self.base,
                                env={"PATH": "/usr/bin:/bin"}, preexec_fn=prepare, **options)

    def execute(self, tool, *command, **options):
        """Starts `toolcage exec`."""
        return self.start(self.base / "toolcage", "exec", "--policy", self.base / "policy.toml", "--tool", tool, "--",
                          self.base / "bin/enemy", *command, **options)

    def left(self):
        """Processes of this place."""
        found = {}
        for pid, (_, _, command) in processes().items():
            with contextlib.suppress(OSError):
                command += " " + os.readlink(f"/proc/{pid}/exe")
            if str(self.base) in command:
                found[pid] = command
        return found

    def close(self):
        for pid in self.left():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.who.close()
        shutil.rmtree(self.base, ignore_errors=True)


def drive(place, calls, seed):
    """Calls through the library: what the driver says, and what is wrong with it."""
    done = place.start(place.base / "driver", place.base / "policy.toml", place.base / "bin/enemy", place.base,
                       calls, AT_ONCE, seed, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    stdout, stderr = done.communicate()
    problems = [stderr.strip()] if stderr.strip() else []
    if done.returncode or not stdout:
        return problems + [f"the driver ended with status {done.returncode}: {stdout}"], stdout.strip()
    said = json.loads(stdout)
    early, late = said["memory_kb"]
    # A sanitizer keeps freed memory for a while.
    if late > early + MEMORY_SLACK_KB and not SANITIZED:
        problems.append(f"memory grew from {early} to {late} KB")
    before, early, late, closed = said["files"]
    if closed != before:
        problems.append(f"the engine left descriptors open: {said['files']}")
    # It keeps control groups for the next calls, and how many there are is a matter of luck.
    if late > early + DESCRIPTOR_SLACK:
        problems.append(f"descriptors grew: {said['files']}")
    return problems, stdout.strip()


def hammer(place, calls, rng):
    """Commands that are killed, or not, after a random time, several at a time."""
    running, ended = [], {}
    for number in range(calls + AT_ONCE):
        while len(running) >= (AT_ONCE if number < calls else 1):
            end, process, ending = running.pop(0)
            if ending is None:
                process.wait(timeout=60 * TIME_SCALE)
            else:
                time.sleep(max(0, end - time.monotonic()))
                process.send_signal(ending)
                process.wait(timeout=60 * TIME_SCALE)
            ended[process.returncode] = ended.get(process.returncode, 0) + 1
        if number < calls:
            backend, ending = rng.choice(("jail", "jail", "process")), rng.choice(ENDINGS)
            command = ("control-fork",) if ending is None else rng.choice(
                (("outlive-daemon", "/none"), ("sleep-long", "9000"), ("fork-bomb", "9"), ("control-fork",),
                 ("outlive-deaf", "/none"), ("outlive-runaway", "/none")))
            process = place.execute(f"{backend}_long", *command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            running.append((time.monotonic() + rng.random() * 0.06, process, ending))
            running.sort(key=lambda one: one[0])
    return ended


def soak(place, calls, seed):
    """Returns (problems, numbers)."""
    before_mounts, before_files = mounts(), temporary_files(place.who.uid)
    commands = max(20, calls // 10)
    problems, said = drive(place, calls - commands, seed)
    ended = hammer(place, commands, random.Random(seed))
    if left := eventually(place.left):
        problems.append(f"processes are left: {left}")
    # What a killed toolcage could not remove, the next one collects.
    last = place.execute("jail_quick", "control-fork", stdout=subprocess.DEVNULL)
    if last.wait(timeout=60 * TIME_SCALE):
        problems.append(f"the last run ended with {last.returncode}")
    if groups := eventually(lambda: cage_groups(place.who.groups)):
        problems.append(f"control groups are left: {groups}")
    if more := set(mounts()) - set(before_mounts):
        problems.append(f"mounts are left: {more}")
    if files := temporary_files(place.who.uid) - before_files:
        problems.append(f"files are left: {files}")
    return problems, f"{said} ended {ended}"


def main():
    calls = int(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("TOOLCAGE_SOAK") or 20000)
    seed = random.randrange(1 << 30)
    print(f"{calls} calls, {AT_ONCE} at a time, seed {seed}", flush=True)
    worst = 0
    for name in ("root", "user") if os.geteuid() == 0 else ("user",):
        place = Place(name)
        started = time.monotonic()
        try:
            problems, numbers = soak(place, calls // (2 if os.geteuid() == 0 else 1), seed)
        finally:
            place.close()
        print(f"{name}: {time.monotonic() - started:.0f} s, {numbers}", flush=True)
        for problem in problems:
            print(f"{name}: {problem}")
        worst |= bool(problems)
    return worst


if __name__ == "__main__":
    sys.exit(main())
