# SPDX-License-Identifier: Apache-2.0
"""Kernels that lack something: a cage is refused, with the reason and a remedy, or keeps every clause.

hide-feature makes calls fail as they do where a feature is missing or turned off. Then attempts of
each kind run: whatever is missing, none of them may work.
"""

import subprocess

import pytest

from native import IS_ROOT, ORDINARY_ID, PROGRAMS, SLOW, Caller
from native_host import Host
from native_run import jail_host, run
from table import ATTEMPTS, CONTROLS

pytestmark = [pytest.mark.native, pytest.mark.apart]

HIDE = PROGRAMS / "hide-feature"
BY_NAME = {attempt.name: attempt for attempt in ATTEMPTS + CONTROLS}
# One of each kind: files, links, rights, network, sockets without a path, processes, signals, exec, memory.
ATTACKS = ("read-path", "readonly-fifo", "readonly-truncate", "readonly-chmod", "plant-setuid-chmod", "tcp4",
           "unix-abstract", "read-victim-environ", "signal-victim-owner", "exec-other", "memory-anonymous", "fork-bomb")

KEPT, REFUSED, EITHER = "kept", "refused", "either"

# feature: (jail, process, a word of the reason)
FEATURES = {
    "landlock": (EITHER, REFUSED, "landlock"),
    "landlock-off": (EITHER, REFUSED, "landlock"),
    "landlock-late": (REFUSED, REFUSED, "landlock"),
    "landlock-abi=1": (EITHER, EITHER, "Landlock"),
    "landlock-abi=2": (KEPT, EITHER, ""),
    "landlock-abi=3": (KEPT, EITHER, ""),
    "landlock-abi=5": (KEPT, EITHER, ""),
    "userns": (REFUSED, EITHER, "namespace"),
    "userns-full": (REFUSED, EITHER, "namespace"),
    "mountns": (REFUSED, EITHER, "namespace"),
    "pidns": (REFUSED, EITHER, "namespace"),
    "netns": (REFUSED, EITHER, "namespace"),
    "ipcns": (REFUSED, EITHER, "namespace"),
    "utsns": (REFUSED, EITHER, "namespace"),
    "cgroupns": (REFUSED, EITHER, "namespace"),
    "timens": (EITHER, KEPT, "namespace"),
    "openat2": (EITHER, EITHER, ""),
    "mount-api": (EITHER, KEPT, ""),
    "mount-setattr": (EITHER, KEPT, ""),
    "mount": (REFUSED, KEPT, ""),
    "pivot-root": (REFUSED, KEPT, ""),
    "clone3": (EITHER, EITHER, ""),
    "pidfd": (EITHER, EITHER, ""),
    "memfd": (EITHER, EITHER, ""),
    "close-range": (EITHER, EITHER, ""),
    "execveat": (EITHER, EITHER, ""),
    "statx": (EITHER, EITHER, ""),
    "seccomp": (REFUSED, REFUSED, "filter"),
    "no-new-privs": (REFUSED, REFUSED, "privileges"),
    "capset": (EITHER, EITHER, "capabilities"),
    "rlimits": (REFUSED, REFUSED, "limit"),
    "sethostname": (EITHER, KEPT, ""),
    "setsid": (EITHER, EITHER, ""),
    "inotify": (EITHER, EITHER, ""),
    "eventfd": (EITHER, EITHER, ""),
}
USERS = ["user", "root"] if IS_ROOT else ["user"]
BACKENDS = ["jail", "process", "process:default"]
CHOSEN = list(FEATURES)
if SLOW:
    USERS = USERS[-1:]
    CHOSEN = ["landlock", "landlock-abi=1", "userns", "openat2", "mount-api", "seccomp"]
    BACKENDS = ["jail", "process"]


@pytest.fixture(scope="module", params=USERS)
def host(request):
    with jail_host(request.param) as made:
        yield made


def test_every_hidden_feature_is_in_the_table():
    known = set(subprocess.run([HIDE, "--list"], capture_output=True, text=True, check=True).stdout.split())
    assert known == {name for name in FEATURES if "=" not in name}


def test_hiding_works():
    """The wrapper itself: what it hides is gone for the programs that it starts."""
    def status(feature, *command):
        return subprocess.run([HIDE, feature, *command], capture_output=True, check=False).returncode

    probe = ["/usr/bin/unshare", "--user", "/bin/true"]
    if status("timens", *probe) == 0:
        assert status("userns", *probe) != 0
    assert status("userns", "/bin/true") == 0


def assert_refused(outcome, word):
    result = outcome.result
    assert outcome.verdict == "error" and outcome.stdout == "" and not outcome.problems, outcome
    assert result["exit_code"] is None and word in result["reason"].lower(), outcome
    assert result["fix"], f"refused without a remedy\n{outcome}"


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("feature", CHOSEN)
def test_refused_or_kept_without(host, feature, backend):
    expected = FEATURES[feature][0 if backend == "jail" else 1]
    wrapper = [str(HIDE), feature]
    first = run(host, BY_NAME["control-read"], backend, wrapper=wrapper)
    assert first.result, first
    if first.verdict == "error":
        assert expected != KEPT, first
        # Where flags of clone3 cannot be seen, all of it is hidden: `process` misses that.
        assert_refused(first, FEATURES[feature][2] if expected == REFUSED else "")
        return
    assert expected != REFUSED and first.verdict == "ok", first
    for name in ATTACKS:
        outcome = run(host, BY_NAME[name], backend, wrapper=wrapper)
        assert outcome.result and not outcome.escaped, (name, str(outcome))


@pytest.mark.parametrize("feature", ["landlock", "openat2", "seccomp"])
@pytest.mark.parametrize("backend", ["jail", "process"])
def test_exec_allowlist_is_refused_or_kept_without(host, feature, backend):
    """`commands` is Landlock's work: without it no namespace helps."""
    outcome = run(host, BY_NAME["exec-other"], backend, wrapper=[str(HIDE), feature])
    assert not outcome.escaped, outcome
    if outcome.verdict == "error":
        assert_refused(outcome, "")


def test_status_of_a_refusal_is_125(host):
    """Without --json the reason and the remedy are on standard error, and nothing on standard output."""
    attempt = BY_NAME["reopen-stdout"]  # runs without --json
    outcome = run(host, attempt, "process", wrapper=[str(HIDE), "landlock"])
    assert outcome.status == 125 and outcome.stdout == "", outcome
    assert "landlock" in outcome.stderr.lower(), outcome


@pytest.mark.skipif(not IS_ROOT, reason="only root can take a control group away")
@pytest.mark.parametrize("backend", ["jail", "process:default"])
def test_refused_without_a_control_group(backend):
    """Limits of a whole tree cannot be kept without one: refused, and the remedy names it."""
    host = Host(Caller("user", ORDINARY_ID))
    try:
        outcome = run(host, BY_NAME["control-read"], backend)
        assert_refused(outcome, "memory")
        assert "control group" in outcome.result["reason"] + outcome.result["fix"], outcome
    finally:
        host.close()


@pytest.mark.skipif(not IS_ROOT, reason="only root can take a control group away")
def test_pure_process_needs_no_control_group():
    """One process has nothing to share its limits with: they are kept by other means."""
    host = Host(Caller("user", ORDINARY_ID))
    try:
        assert run(host, BY_NAME["control-read"], "process").verdict == "ok"
        for name in (*ATTACKS, "memory-heap", "memory-memfd", "memory-page-tables", "thread-bomb", "cpu-burn"):
            outcome = run(host, BY_NAME[name], "process")
            assert outcome.result and not outcome.escaped, (name, str(outcome))
    finally:
        host.close()
