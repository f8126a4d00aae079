# SPDX-License-Identifier: Apache-2.0
"""The escape attempts of the native cages (tests/escape/table.py), in containers of every engine.

That each works without a cage is shown by test_escape.py. Those that need nothing special share one container, one
process after the other, and the host is looked at afterwards; the others have a container each.
"""

import dataclasses

import pytest

from container_lab import BY_NAME, ENGINES, PATH, cages_of
from native import SLOW, TIME_SCALE
from native_host import Host
from native_run import run, words
from table import ATTEMPTS, CONTROLS, ESSENTIAL, Attempt
from test_escape_links import make, race, swapper

pytestmark = pytest.mark.container

# Of the sanitizers' run this is no part (scripts/sanitize): the programs are not ours.
CHOSEN = ["crun"] if SLOW else [engine.name for engine in ENGINES]
# Where a container costs least each of the special ones is tried, then one of each kind, then a few.
ALL, ONE_OF_EACH = {"crun"}, {"docker", "podman-user", "gvisor"}
FEW = {"memory-anonymous", "fork-bomb", "outlive-daemon", "ptrace-parent", "read-hidden", "leaked-any-fd"}
SLOW_TO_START = {"sleep-long"}  # its limit is shorter than what an engine or gVisor needs: test_containers.py

# About whoever started them: alone, the parent is toolcage's own first process.
ABOUT_PARENT = {"read-parent-environ", "open-parent-memory", "ptrace-parent", "pidfd-getfd-parent", "reopen-parent-fd",
                "kill-parent", "stop-parent", "signal-group", "signal-caller-group", "inherited-session",
                "overwrite-parent"}
# The default profile lets a debugger do this, it opens nothing beyond the program itself, and runtimes differ in it.
FOR_DEBUGGERS = {"personality-no-random", "personality-linux32"}
GVISOR = "a device of gVisor's own kernel, which serves nobody but this container"
OWN_TERMINALS = "a file system for terminals of the container's own: no path of the host is told by it"
# {attempt: {engine, its kind, "gvisor" or "oci": why it is not held, and why that is no secret}}
EXCEPTIONS = {
    "mountinfo-host": {"oci": OWN_TERMINALS, "gvisor": OWN_TERMINALS},
    "open-fuse": {"gvisor": GVISOR},
    "open-tun": {"gvisor": GVISOR},
}
# Of gVisor the first process can be killed from inside, which ends the container and the call with it.
ENDS_THE_CAGE = {("gvisor", "kill-parent")}
# {attempt: {...: the policy cannot be kept there, so that the call is refused}}
MISSING = "what is not there cannot be covered, and could appear while the call runs"
REFUSED = {name: dict.fromkeys(("oci", "gvisor"), MISSING) for name in (
    "protected-create", "protected-mkdir", "protected-symlink", "protected-rename")}
COMMANDS = "which programs may be started is Landlock's to keep, and no container engine has it"
REFUSED |= {attempt.name: dict.fromkeys(("oci", "gvisor"), COMMANDS) for attempt in ATTEMPTS if "commands" in attempt.policy}


def reason(table, attempt, engine):
    entries = table.get(attempt.name, {})
    return next((entries[key] for key in (engine.name, engine.kind, engine.backend) if key in entries), "")


def is_plain(attempt):
    """Needs no policy, streams or look of its own."""
    return not (attempt.grants or attempt.policy or attempt.host or attempt.killed or attempt.caller != "-"
                or attempt.verdicts != ("failed",) or attempt.name in ABOUT_PARENT)


class Enemy:
    """An engine, and a host full of canaries that belongs to its caller."""

    def __init__(self, cages):
        self.cages, self.engine, self.host = cages, cages.engine, None

    def get(self):
        if self.host is None:
            self.host = Host(self.cages.caller)
        return self.host

    def drop(self):
        if self.host is not None:
            self.host.close()
            self.host = None

    def adapted(self, attempt):
        """The attempt with the lines of this engine in its policy."""
        more = {f"container.{key}": value for key, value in self.engine.container.items()} | self.cages.root
        return dataclasses.replace(attempt, policy={"memory": "256MB"} | attempt.policy | more)

    def run(self, attempt, **options):
        environment = self.cages.environment | {"PATH": PATH}
        wrapper = ["env", *(f"{key}={value}" for key, value in environment.items())]
        outcome = run(self.get(), self.adapted(attempt), self.engine.backend, wrapper=wrapper, timeout=60, **options)
        if outcome.problems:
            self.drop()
        return outcome


@pytest.fixture(scope="module")
def enemy(request, lab):
    made = Enemy(cages_of(lab, request.param))
    yield made
    made.drop()


@pytest.fixture(scope="module")
def together(enemy):
    """What the plain attempts said, all in one container: {name: its line}."""
    known = words(enemy.get(), "/tmp")
    lines = []
    for attempt in filter(is_plain, ATTEMPTS):
        quoted = " ".join("'" + word.format(**known) + "'" for word in (attempt.name, *attempt.args))
        lines.append(f"printf '\\n== {attempt.name}\\n'; {enemy.get().program} {quoted} 2>&1")
    outcome = enemy.run(dataclasses.replace(CONTROLS[0], policy={"timeout": f"{50 * TIME_SCALE:.0f}s", "output": "8MB"}),
                        command=["sh", "-c", "\n".join(lines)])
    said, name = {}, ""
    for line in outcome.stdout.splitlines():
        if line.startswith("== "):
            name = line[3:]
            said[name] = ""
        elif line.startswith(("ESCAPED: ", "held: ", "absent: ")) and not said.get(name):
            said[name] = line
    return outcome, said


def by_name(attempt):
    return attempt.name


def assert_held(outcome, attempt):
    assert not outcome.escaped, outcome
    if outcome.said.startswith(("held", "absent")) or outcome.watched:
        return
    if attempt.killed and outcome.verdict == "signaled":
        return
    if attempt.name == "exec-loader-listed" and outcome.result["exit_code"] in (126, 127):
        return
    assert outcome.verdict in set(attempt.verdicts) - {"failed", "ok"}, outcome


@pytest.mark.parametrize("enemy", CHOSEN, indirect=True)
def test_plain_attempts_are_held_in_one_container(enemy, together):
    """Beside each other: none is out, and nothing on the host has changed."""
    outcome, said = together
    assert outcome.verdict in ("ok", "failed"), outcome
    wanted = {attempt.name for attempt in ATTEMPTS if is_plain(attempt)}
    assert set(said) == wanted, (wanted - set(said), outcome)
    by = {attempt.name: attempt for attempt in ATTEMPTS}
    out = {name for name, line in said.items() if not line.startswith(("held", "absent"))} - FOR_DEBUGGERS
    known = {name for name in wanted if reason(EXCEPTIONS, by[name], enemy.engine)}
    assert out - known == set(), {name: said[name] for name in out - known} | {"problems": outcome.problems}
    assert known - out == set(), "no longer exceptions"
    assert not outcome.problems, outcome


def alone(name):
    """Attempts that have a container of their own."""
    wanted = {one.name for one in ATTEMPTS} if name in ALL else ESSENTIAL - SLOW_TO_START if name in ONE_OF_EACH else FEW
    chosen = [one for one in ATTEMPTS if not is_plain(one) and one.name in wanted]
    # gVisor gives no terminal: test_containers.py.
    return [one for one in chosen if not ("t" in one.caller and BY_NAME[name].is_gvisor)]


@pytest.mark.parametrize("enemy, attempt", [pytest.param(name, one, id=f"{name}-{one.name}") for name in CHOSEN
                                            for one in alone(name)], indirect=["enemy"])
def test_attempt_is_held(enemy, attempt):
    """One attempt in a container of its own."""
    outcome = enemy.run(attempt)
    if reason(REFUSED, attempt, enemy.engine):
        assert outcome.refused and outcome.said == "" and not outcome.problems, outcome
        return
    if why := reason(EXCEPTIONS, attempt, enemy.engine):
        assert outcome.escaped, f"{why}: no longer so\n{outcome}"
        return
    assert outcome.result or set(attempt.caller) & set("lt"), outcome
    if (enemy.engine.backend, attempt.name) in ENDS_THE_CAGE:
        assert outcome.verdict == "signaled" and not outcome.problems, outcome
        return
    assert outcome.verdict != "error", outcome
    assert_held(outcome, attempt)
    if outcome.verdict and not attempt.killed:
        assert outcome.verdict in attempt.verdicts, outcome


@pytest.mark.parametrize("enemy", CHOSEN, indirect=True)
@pytest.mark.parametrize("attempt", CONTROLS, ids=by_name)
def test_what_is_granted_works(enemy, attempt):
    outcome = enemy.run(attempt)
    assert outcome.verdict == "ok" and outcome.stdout.startswith("ok: "), outcome
    assert not outcome.problems, outcome


# ---- names that are exchanged -------------------------------------------------------------------

RACED = [name for name in CHOSEN if name in ("crun", "crun-user", "gvisor", "docker", "podman-user")]


@pytest.fixture
def race_host(enemy):
    """A host of which the workspace will be in disorder."""
    enemy.drop()
    yield enemy.get()
    enemy.drop()


@pytest.mark.parametrize("enemy", RACED, indirect=True)
def test_link_swaps_while_the_container_is_made(enemy, race_host):
    """An accomplice exchanges a directory above a grant for a link to the secrets, all the time. That the swaps do
    work is shown in test_escape_links.py."""
    race(race_host)
    attempt = Attempt("race", grants={"readable": ["{work}/a/inner"]})
    with swapper(race_host, "a", "b"):
        for _ in range(6):
            outcome = enemy.run(attempt, command=["/bin/cat", str(race_host.base / "work/a/inner/secret.txt")])
            assert race_host.token not in str(outcome), outcome
            assert outcome.verdict in ("ok", "failed", "error"), outcome


@pytest.mark.parametrize("enemy", RACED, indirect=True)
def test_granted_directory_replaced_by_a_link_in_an_earlier_call(enemy, race_host):
    make(race_host, "later")
    script = f"rmdir later && ln -s {race_host.base}/secret later && echo done"
    first = enemy.run(Attempt("commands"), command=["/bin/sh", "-c", script])
    assert first.stdout == "done\n", first
    for entry in ("{work}/later", "{work}/later:/later"):
        second = enemy.run(Attempt("second", grants={"readable": [entry]}),
                           command=["/bin/sh", "-c", "cat later/secret.txt /later/secret.txt"])
        assert not second.problems and race_host.token not in str(second), second


def test_tables_name_attempts_that_there_are():
    names = {attempt.name for attempt in ATTEMPTS}
    assert set(EXCEPTIONS) | set(REFUSED) | ABOUT_PARENT | FEW | SLOW_TO_START | FOR_DEBUGGERS <= names
