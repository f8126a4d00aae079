# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests share: where the tree and the build are, and how to run the command."""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]

APART = re.compile(r"test_mcp_|test_gate_(?!result)")  # test_gate_result.py looks at all mounts of the host

CALLERS = {"root", "user", "container"}  # who starts cages in the tests

# How much slower than usual this machine is: time limits of tests are multiplied by it.
TIME_SCALE = float(os.environ.get("TOOLCAGE_TIME_SCALE") or os.environ.get("TIME_SCALE") or 1)


def take_signals():
    """What whoever started us (nohup, a shell's background) has ignored would be ignored by all that tests start, and
    tests send these signals."""
    for number, usual in ((signal.SIGHUP, signal.SIG_DFL), (signal.SIGQUIT, signal.SIG_DFL),
                          (signal.SIGINT, signal.default_int_handler)):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, usual)


def pytest_configure(config):
    take_signals()
    config.addinivalue_line("markers", "tree: about the source tree, the same for every build")
    config.addinivalue_line("markers", "reading: starts no cage and measures nothing: runs beside the others")
    config.addinivalue_line("markers", "apart: looks at nothing but its own on the host: runs beside containers")
    config.addinivalue_line("markers", "other: of those `apart`, what runs in the same process as the containers")
    config.addinivalue_line("markers", "container: runs containers of every engine that is here (container_lab.py)")
    config.addinivalue_line("markers", "native: runs cages; also run in the VM (make check-vm)")


def pytest_collection_modifyitems(config, items):
    """Tests of the MCP server look at their own server only, most tests of the gate at their own network. With
    $TOOLCAGE_CALLERS, cases for another caller (a parameter "root", "user", "container") are left out."""
    for item in items:
        if APART.match(item.path.name) and not item.get_closest_marker("reading"):
            item.add_marker("apart")
    apart = [item for item in items if item.get_closest_marker("apart")]
    # Sanitizers run hardly any containers and none of the long ones; else one file makes both processes end together.
    halves = "SANITIZER_REPORTS" in os.environ
    others = sorted({item.path.name for item in apart})[::2] if halves else ["test_hidden_features.py"]
    for item in apart:
        if item.path.name in others:
            item.add_marker("other")
    wanted = set(os.environ.get("TOOLCAGE_CALLERS", "").replace(",", " ").split())
    if not wanted:
        return

    def is_wanted(item):
        values = item.callspec.params.values() if hasattr(item, "callspec") else ()
        return {value for value in values if isinstance(value, str)} & CALLERS <= wanted

    config.hook.pytest_deselected(items=[item for item in items if not is_wanted(item)])
    items[:] = [item for item in items if is_wanted(item)]


def skip_or_fail(name, reason):
    """For a test that cannot run here: a skip, or a failure if $TOOLCAGE_MUST_WORK names `name`.

    Names are those of backends, separated by commas; `all` stands for every name.
    """
    must_work = os.environ.get("TOOLCAGE_MUST_WORK", "").replace(",", " ").split()
    if name in must_work or "all" in must_work:
        pytest.fail(f"{name} must work here: {reason}", pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def must_work():
    """must_work("jail", reason): the test cannot run here; see skip_or_fail."""
    return skip_or_fail


@pytest.fixture(scope="session")
def time_scale():
    """What to multiply time limits with: 1 on a usual machine."""
    return TIME_SCALE


@pytest.fixture(scope="session")
def repo():
    """The top of the source tree."""
    return REPO


@pytest.fixture(scope="session")
def build_dir():
    """The build under test: $TOOLCAGE_BUILD, or build/."""
    directory = REPO / os.environ.get("TOOLCAGE_BUILD", "build")
    if not (directory / "src" / "toolcage").exists():
        pytest.fail(f"{directory} holds no toolcage: run `make` first", pytrace=False)
    return directory


@pytest.fixture(scope="session")
def clean_env():
    """The environment without what changes how programs print."""
    changing = ("NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR")
    return {key: value for key, value in os.environ.items() if key not in changing} | {"LC_ALL": "C.UTF-8"}


@pytest.fixture(scope="session")
def lab(build_dir):  # pylint: disable=unused-argument
    """Container engines of the tests' own (container_lab.py): each is started when a test asks for it."""
    from container_lab import Lab  # pylint: disable=import-outside-toplevel
    made = Lab()
    yield made
    made.close()


@pytest.fixture(scope="session")
def jail(toolcage, tmp_path_factory):
    """For tests of jails: one can be built here."""
    first = toolcage("exec", "--", "true", cwd=tmp_path_factory.mktemp("jail"))
    if first.returncode != 0:
        skip_or_fail("jail", f"a jail cannot be built here: {first.stderr}")


@pytest.fixture(scope="session")
def toolcage(build_dir, clean_env):
    """Runs the command: toolcage("lint", path) returns a CompletedProcess with text in it.

    Keyword arguments go to subprocess.run; `env` adds to the environment; `timeout` is scaled.
    """

    def run(*args, env=None, timeout=60, **options):
        if "input" not in options:
            options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run(
            [build_dir / "src" / "toolcage", *map(str, args)], env=clean_env | (env or {}), timeout=timeout * TIME_SCALE,
            capture_output=True, text=True, check=False, **options)

    return run
