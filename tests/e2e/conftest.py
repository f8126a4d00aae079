# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests share: where the tree and the build are, and how to run the command."""

import os
import subprocess
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]


def pytest_configure(config):
    config.addinivalue_line("markers", "tree: about the source tree, the same for every build")


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
def toolcage(build_dir, clean_env):
    """Runs the command: toolcage("lint", path) returns a CompletedProcess with text in it.

    Keyword arguments go to subprocess.run; `env` adds to the environment.
    """

    def run(*args, env=None, timeout=60, **options):
        if "input" not in options:
            options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run(
            [build_dir / "src" / "toolcage", *map(str, args)], env=clean_env | (env or {}), timeout=timeout,
            capture_output=True, text=True, check=False, **options)

    return run
