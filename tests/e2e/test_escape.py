# SPDX-License-Identifier: Apache-2.0
"""Escape attempts: each works without a cage, and is held in every native one.

The table is tests/escape/table.py, the enemy tests/escape/*.c, the canaries native_host.py.
"""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from conftest import skip_or_fail
from native import IS_ROOT, PROGRAMS, SLOW, TIME_SCALE, caller
from native_host import Host
from native_run import refusal, run
from table import ATTEMPTS, CONTROLS, ESSENTIAL, HELPERS

pytestmark = [pytest.mark.native, pytest.mark.apart]

# In a place like an unprivileged container only `process` can work.
CAGES = [("jail", "root"), ("jail", "user"), ("process", "root"), ("process", "user"), ("process", "container"),
         ("process:default", "root"), ("process:default", "user")]
CHOSEN = ATTEMPTS
if SLOW:
    CAGES = [("jail", "root" if IS_ROOT else "user"), ("process", "container")]
    CHOSEN = [attempt for attempt in ATTEMPTS if attempt.name in ESSENTIAL]


class Hosts:
    """One Host for each caller, made anew when somebody has damaged it."""

    def __init__(self):
        self.made, self.refusals = {}, {}

    def get(self, name):
        if name == "root" and not IS_ROOT:
            pytest.skip("only root can show what happens to root")
        if name not in self.made:
            self.made[name] = Host(caller(name))
        return self.made[name]

    def run(self, name, attempt, backend=None, **options):
        outcome = run(self.get(name), attempt, backend, **options)
        if outcome.problems:
            self.drop(name)
        return outcome

    def late(self, name):
        """What shows only after the attempt has ended: whoever got a signal writes it down when it has its turn."""
        end = time.monotonic() + 20 * TIME_SCALE
        while not (problems := self.get(name).problems()) and time.monotonic() < end:
            time.sleep(0.01)
        if problems:
            self.drop(name)
        return problems

    def cage(self, name, attempt, cage):
        """The same in a cage that this host must have."""
        host = self.get(name)
        if (name, cage) not in self.refusals:
            self.refusals[name, cage] = refusal(host, cage)
        if self.refusals[name, cage]:
            skip_or_fail(cage.split(":")[0], self.refusals[name, cage])
        return self.run(name, attempt, cage)

    def drop(self, name):
        host = self.made.pop(name)
        host.close()
        host.who.close()


@pytest.fixture(scope="module")
def hosts():
    pool = Hosts()
    yield pool
    for name in list(pool.made):
        pool.drop(name)


def by_name(attempt):
    return attempt.name


def test_program_and_table_know_the_same_attempts():
    text = subprocess.run([PROGRAMS / "escape-attempts", "--list"], capture_output=True, text=True, check=True).stdout
    in_program = {line.split("\t")[0] for line in text.splitlines()}
    in_table = [attempt.name for attempt in ATTEMPTS + CONTROLS]
    assert len(set(in_table)) == len(in_table) and ESSENTIAL <= set(in_table)
    assert {*in_table, *HELPERS} == in_program


def test_table_is_large_enough():
    """Those that a kernel may lack do not count."""
    assert sum(not attempt.may_be_absent for attempt in ATTEMPTS) >= 200


def wait_for_keys(uid):
    """A user may have 200 keys, and those of processes that nobody has waited for count, too."""
    end = time.monotonic() + 30 * TIME_SCALE
    while (found := re.search(rf"^ *{uid}:.* (\d+)/200 ", Path("/proc/key-users").read_text(), re.M)) and \
            int(found[1]) > 150 and time.monotonic() < end:
        time.sleep(0.05)


@pytest.mark.tree  # no part of toolcage is in it
@pytest.mark.parametrize("user", ["root"] if SLOW else ["user", "root"])  # as a user: on this kernel, not on every one
@pytest.mark.parametrize("attempt", CHOSEN, ids=by_name)
def test_works_without_a_cage(hosts, attempt, user):
    if attempt.proof == "root" and user == "user":
        pytest.skip("takes privileges; shown as root")
    if attempt.name.startswith("keyring"):
        wait_for_keys(hosts.get(user).who.uid)
    outcome = hosts.run(user, attempt)
    if attempt.may_be_absent and not outcome.escaped:
        pytest.skip(f"cannot be shown here: {attempt.may_be_absent}")
    assert outcome.escaped or hosts.late(user), outcome


def assert_held(outcome, attempt):
    assert not outcome.escaped, outcome
    # "absent": for the program it looks as if this kernel had no such thing. It was shown to have it.
    if outcome.said.startswith(("held", "absent")):
        return
    if outcome.watched:
        return
    # The loader took our place, and was not let.
    if attempt.name == "exec-loader-listed" and outcome.result["exit_code"] in (126, 127):
        return
    # It did not come to its last line: something must have stopped it, and say what.
    if attempt.killed and outcome.verdict == "signaled":
        assert outcome.result["signal"] == "SIGSYS", outcome
        return
    assert outcome.verdict in set(attempt.verdicts) - {"failed", "ok"}, outcome


@pytest.mark.parametrize("backend, user", CAGES)
@pytest.mark.parametrize("attempt", CHOSEN, ids=by_name)
def test_is_held_in_a_cage(hosts, attempt, backend, user):
    outcome = hosts.cage(user, attempt, backend)
    # A container may have a control group all the same: then there is nothing to refuse.
    if attempt.refusal(backend, user) and (outcome.refused or user != "container"):
        # The policy asks for what this backend cannot keep: it says so and runs nothing.
        assert outcome.refused and outcome.said == "" and not outcome.problems, outcome
        return
    if attempt.exception(backend, user):
        assert outcome.escaped, f"{attempt.exception(backend, user)}: no longer so\n{outcome}"
        return
    if not outcome.result and not set(attempt.caller) & set("lt"):
        pytest.fail(f"no result\n{outcome}", pytrace=False)
    assert outcome.verdict != "error", outcome
    assert_held(outcome, attempt)
    if outcome.verdict and not attempt.killed:
        assert outcome.verdict in attempt.verdicts, outcome


@pytest.mark.parametrize("backend, user", CAGES)
@pytest.mark.parametrize("attempt", CONTROLS, ids=by_name)
def test_what_is_granted_works(hosts, attempt, backend, user):
    outcome = hosts.cage(user, attempt, backend)
    if attempt.exception(backend, user):
        assert outcome.verdict == "failed" and not outcome.problems, outcome
        return
    assert outcome.verdict == "ok" and outcome.stdout.startswith("ok: "), outcome
    assert not outcome.problems, outcome


def test_an_escape_would_be_seen(hosts):
    """The tests themselves: a program that says it is out, and one that touches a canary."""
    from native_run import Outcome
    assert Outcome(0, "ESCAPED: x\n", "", 0).escaped
    assert Outcome(1, "held: x\n", "", 0, problems=["the secret came out"]).escaped
    assert not Outcome(1, "held: x\n", "", 0).escaped
    host = Host(caller("root" if IS_ROOT else "user"))
    try:
        assert host.problems() == []
        assert host.problems(output=host.token) == ["the secret came out"]
        (host.base / "data/data.txt").chmod(0o600)
        os.kill(int(host.victim_pid), signal.SIGUSR1)
        while len(host.problems()) == 1:  # until the signal has come; a test that hangs fails too
            time.sleep(0.01)
        assert len(host.problems()) == 2
    finally:
        host.close()
        host.who.close()


def test_jail_is_refused_in_a_container(hosts):
    """No namespaces, no jail: with a reason and a remedy, and never a weaker cage."""
    for user, word in (("container", ""), ("user", "namespace")):
        wrapper = [PROGRAMS / "like-container"] if user == "user" else []
        outcome = hosts.run(user, CONTROLS[0], "jail", wrapper=wrapper)
        assert outcome.verdict == "error" and outcome.stdout == "" and not outcome.problems, outcome
        assert word in outcome.result["reason"] and outcome.result["fix"], outcome
