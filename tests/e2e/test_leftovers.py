# SPDX-License-Identifier: Apache-2.0
"""Nothing outlives its call, whatever ended it: no process, mount, file or control group."""

import os
import random
import signal
import subprocess
import time

import pytest

import soak
from conftest import skip_or_fail
from native import IS_ROOT, SLOW, TIME_SCALE, cage_groups, mounts, processes, temporary_files

pytestmark = pytest.mark.native

USERS = ["root"] if IS_ROOT and SLOW else ["user", "root"] if IS_ROOT else ["user"]
BACKENDS = ["jail"] if SLOW else ["jail", "process"]
CALLS = int(os.environ.get("TOOLCAGE_SOAK") or (60 if SLOW else 300))

# tool, command, how toolcage ends
ENDS = {
    "success": ("quick", ("control-fork",), {0}),
    "failure": ("quick", ("control-read", "/no/such/file"), {3}),
    "daemon": ("quick", ("outlive-daemon", "/none"), {1}),
    "daemon that holds stdout": ("quick", ("outlive-stdout", "/none"), {1}),
    "sister": ("quick", ("outlive-sister", "/none"), {1}),
    "runaway": ("quick", ("outlive-runaway", "/none"), {1}),
    "timeout": ("slow", ("sleep-long", "9000"), {124}),
    "timeout of the deaf": ("slow", ("outlive-deaf", "/none"), {124}),
    "timeout of the stopped": ("slow", ("outlive-stopped", "/none"), {124}),
    "timeout of many": ("slow", ("outlive-many", "/none", "12"), {124}),
    "output": ("flood", ("flood-both", "8"), {141}),
    "memory": ("quick", ("memory-anonymous", "128"), {137}),
    "pids": ("quick", ("fork-bomb", "64"), {1}),
}


@pytest.fixture(scope="module", params=USERS)
def place(request):
    made = soak.Place(request.param)
    first = made.execute("jail_quick", "control-fork", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    reason = first.communicate()[1]
    if first.returncode == 125:
        made.close()
        skip_or_fail("jail", reason)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def nothing_is_left(place):
    """Before and after each test."""
    before_mounts, before_files = set(mounts()), temporary_files(place.who.uid)
    yield
    left = soak.eventually(place.left)
    assert not left, left
    # The next run collects what a killed one could not remove.
    assert place.execute("jail_quick", "control-fork", stdout=subprocess.DEVNULL).wait(timeout=30 * TIME_SCALE) == 0
    assert not soak.eventually(lambda: cage_groups(place.who.groups))
    assert not place.who.groups or not place.who.groups.children()
    assert not set(mounts()) - before_mounts
    assert not temporary_files(place.who.uid) - before_files


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("end", ENDS)
def test_at_once_after(place, end, backend):
    """When toolcage has ended, so has the tree: not a moment later."""
    tool, command, statuses = ENDS[end]
    process = place.execute(f"{backend}_{tool}", *command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    status = process.wait(timeout=30 * TIME_SCALE)
    left = place.left()
    assert status in statuses and not left, (status, left)
    assert not cage_groups(place.who.groups), "an orderly end leaves no group"


def running(place, backend, command):
    """A call that is under way: its payload has started, and some have ended already."""
    process = place.execute(f"{backend}_long", *command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 10 * TIME_SCALE
    while time.monotonic() < end:
        started = any(text.startswith(f"{place.base}/bin/enemy") for text in place.left().values())
        if started or process.poll() is not None:
            return process
        time.sleep(0.005)
    raise AssertionError(f"the payload does not start: {place.left()}")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda one: one.name)
@pytest.mark.parametrize("command", ["outlive-deaf", "outlive-stopped", "outlive-runaway", "outlive-daemon",
                                     "outlive-many"])
def test_at_once_after_a_signal_to_toolcage(place, backend, ending, command):
    """Cancelled: the tree goes, and the status tells the signal."""
    process = running(place, backend, (command, "/none", "12"))
    process.send_signal(ending)
    status = process.wait(timeout=30 * TIME_SCALE)
    left = place.left()
    # A payload that ended just before leaves its own status.
    assert status in {128 + ending, -ending, 125} | ({1} if command in ("outlive-daemon", "outlive-runaway") else set())
    assert not left, left


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("command", ["outlive-deaf", "outlive-stopped", "outlive-runaway", "outlive-daemon",
                                     "outlive-stdout", "outlive-many"])
def test_soon_after_a_kill_of_toolcage(place, backend, command):
    """Nobody can clean up after SIGKILL but the kernel and the cage's own init; the fixture looks."""
    process = running(place, backend, (command, "/none", "12"))
    process.kill()
    process.wait(timeout=30 * TIME_SCALE)
    left = soak.eventually(place.left, 3)  # by itself it ends after ten seconds, however slow the machine is
    assert not left, left


@pytest.mark.parametrize("backend", BACKENDS)
def test_soon_after_kills_at_random_moments(place, backend):
    """While the cage is half built, too."""
    rng = random.Random(7)
    for _ in range(25):
        command = rng.choice((("outlive-daemon", "/none"), ("sleep-long", "9000"), ("outlive-deaf", "/none")))
        process = place.execute(f"{backend}_long", *command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.random() * 0.03)
        process.kill()
        process.wait(timeout=30 * TIME_SCALE)
    left = soak.eventually(place.left, 3)
    assert not left, left


@pytest.mark.parametrize("backend", BACKENDS)
def test_kill_of_a_cages_own_processes(place, backend):
    """Somebody kills init, or whatever stands between: the call ends, and so does the tree."""
    process = running(place, backend, ("outlive-deaf", "/none"))
    for pid, (parent, _, _) in processes().items():
        if parent == process.pid:
            os.kill(pid, signal.SIGKILL)
    status = process.wait(timeout=30 * TIME_SCALE)
    assert status not in (0, 124), status
    left = soak.eventually(place.left, 3)
    assert not left, left


def test_short_soak(place):
    problems, numbers = soak.soak(place, CALLS, seed=int(time.time()))
    assert not problems, (problems, numbers)
