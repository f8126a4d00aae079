# SPDX-License-Identifier: Apache-2.0
"""Owns: cages in the world of gate_world.py: how the tests of the gate start programs there, in a cage or without one,
and what came out. The fixtures are imported by the modules that use them."""

import json
import shutil
import subprocess
from dataclasses import dataclass

import pytest

from conftest import skip_or_fail
from ended import Ended
from gate_world import ENVIRONMENT, Missing, World, names
from native import IS_ROOT, REPO, SLOW, TIME_SCALE, caller, processes  # noqa: F401  (for the tests)

PYTHON = ("/usr/bin/python3", "-I", "-S", "-B", "-c")


@dataclass
class Outcome(Ended):
    """How a program ended, in a cage or without one."""

    @property
    def said(self):
        """What a snippet told with say()."""
        lines = self.stdout.strip().splitlines()
        assert lines and lines[-1].startswith("{"), self
        return json.loads(lines[-1])

    def denials(self):
        """{target: rule} of what the network refused."""
        return {entry["target"]: entry["rule"] for entry in self.result["denials"] if entry["kind"] == "network"}

    def connections(self, name=None):
        return [entry for entry in self.result["connections"] if name in (None, entry["name"])]


class Cage:
    """Runs programs in the world as one caller: in a cage with network rules, or as they are."""

    def __init__(self, world, who):
        self.world, self.who = world, who
        self.caller = caller(who)
        self.policies = world.base / "policies"
        self.count = 0

    def close(self):
        self.caller.close()

    def policy(self, network, more=""):
        """A policy with these rules; `more`: other lines of [defaults]."""
        lines = {"timeout": '"20s"', "pids": "128", "memory": '"512MB"', "files": "1024"}
        given = {line.split(" ")[0] for line in more.split("\n")}
        lines = {key: value for key, value in lines.items() if key not in given}
        text = "version = 1\n[defaults]\n" + "".join(f"{key} = {value}\n" for key, value in lines.items())
        text += f'filesystem = {{ readable = ["{self.world.public}"], scratch = "64MB" }}\n'
        text += f"network = {json.dumps(network)}\n{more}\n"
        self.count += 1
        path = self.policies / f"{self.who}-{self.count}.toml"
        path.write_text(text)
        return path

    def spawn(self, *command, **options):
        """Starts a program in the world, without a cage; the process is the program itself."""
        groups = self.caller.groups
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
                   "preexec_fn": groups.enter if groups else None} | options
        return subprocess.Popen([*self.world.prefix(self.who), *map(str, command)], cwd=self.world.base,
                                env=ENVIRONMENT | {"HOME": "/nonexistent"}, **options)

    def start(self, network, *command, more="", flags=("--json",), **options):
        """Starts `toolcage exec`."""
        return self.spawn(self.world.base / "toolcage", "exec", "--policy", self.policy(network, more), *flags, "--",
                          *command, **options)

    @staticmethod
    def finish(process, timeout=40):
        return Outcome.of(process, timeout)

    def bare(self, *command):
        """Without a cage: what the world itself allows."""
        return self.finish(self.spawn(*command))

    def run(self, network, *command, more="", flags=()):
        """In a cage; the outcome is the command's, with toolcage's result."""
        outcome = self.finish(self.start(network, *command, more=more, flags=("--json", *flags)))
        assert outcome.status == 0 and outcome.stdout.startswith("{"), outcome
        result = json.loads(outcome.stdout)
        check_schema(result)
        assert result["verdict"] != "error", result
        status = result["exit_code"] if result["exit_code"] is not None else -1
        return Outcome(status, result["stdout"], result["stderr"], result["usage"]["duration_ms"] / 1000, result)

    def snippet(self, code):
        """The words of a command that runs the code with gate/inside.py."""
        return (*PYTHON, f"import sys\nsys.path.insert(0, {str(self.world.public)!r})\nfrom inside import *\n{code}")

    def python(self, network, code, **options):
        """Runs a snippet in a cage; it ends well, and says something."""
        outcome = self.run(network, *self.snippet(code), **options)
        assert outcome.status == 0, (outcome.stderr, outcome.result)
        return outcome

    def bare_python(self, code):
        outcome = self.bare(*self.snippet(code))
        assert outcome.status == 0, outcome
        return outcome


SCHEMA = json.loads((REPO / "schemas" / "result.json").read_text(encoding="utf-8"))


def check_schema(result):
    import jsonschema
    jsonschema.validate(result, SCHEMA, jsonschema.Draft202012Validator)


def quiet(world, mark, allowed=(), events=("open", "datagram", "packet", "question")):
    """Nobody outside has heard of anything but what is allowed."""
    found = [entry for entry in world.log(mark) if entry["event"] in events
             and not (entry["event"] == "packet" and (entry["to"], entry["port"]) == (names.NAME_SERVER, 53))
             and not (entry["event"] == "question" and entry["name"] == "allowed.test")
             and entry.get("to") not in allowed]
    assert found == []


def need(*programs):
    """`make check` installs what the tests need."""
    for program in programs:
        if not shutil.which(program, path=ENVIRONMENT["PATH"]):
            skip_or_fail("jail", f"{program} is not installed")


# ---- fixtures: modules import them --------------------------------------------------------------


@pytest.fixture(scope="module")
def world():
    try:
        made = World()
    except Missing as error:
        skip_or_fail("jail", f"no network of our own can be made here: {error}")
    yield made
    left = {pid: entry for pid, entry in processes().items()
            if str(made.base) in entry[2] and pid not in (made.internet.pid, made.host.pid)}
    made.close()
    assert not left, left


def make_cage(world, who):
    if who == "root" and not IS_ROOT:
        pytest.skip("only root can show what happens to root")
    made = Cage(world, who)
    probe = made.finish(made.start(["allowed.test:80"], "true"))
    reason = json.loads(probe.stdout)["reason"] if probe.stdout.startswith("{") else probe.stderr
    if probe.status != 0 or json.loads(probe.stdout)["verdict"] == "error":
        made.close()
        skip_or_fail("jail", f"a cage with a gate cannot be built here: {reason}")
    return made


# Sanitizers and emulated machines are slow; an ordinary user can do less, so that one is left.
@pytest.fixture(scope="module", params=["user"] if SLOW else ["user", "root"])
def cage(request, world):
    made = make_cage(world, request.param)
    yield made
    made.close()


@pytest.fixture(scope="module")
def one_cage(world):
    """Where it does not matter who starts it: an ordinary user, who can do less."""
    made = make_cage(world, "user")
    yield made
    made.close()


@pytest.fixture(scope="module")
def no_cage(world):
    """For what works in the world as it is: without that, a test of a cage says nothing."""
    made = Cage(world, "user")
    yield made
    made.close()


@pytest.fixture
def mark(world):
    return world.mark()
