# SPDX-License-Identifier: Apache-2.0
"""scripts/mcp-peers: installs the MCP clients and servers of others once, and never stands in anybody's way."""

import json
import os
import re
import subprocess

import pytest
from mcp_peers import SCRIPTS, wanted_stamp

pytestmark = [pytest.mark.tree, pytest.mark.reading]


@pytest.fixture
def peers(repo, tmp_path):
    """peers(npm=TEXT): runs the script with that as npm (None: there is none); what it did is in peers.log."""
    programs, place, log = tmp_path / "bin", tmp_path / "peers", tmp_path / "log"
    programs.mkdir()
    for name in ("bash", "cat", "cp", "dirname", "env", "head", "id", "mkdir", "rm", "sha256sum", "stat", "timeout", "tr"):
        (programs / name).symlink_to(f"/usr/bin/{name}")

    def program(name, text):
        (programs / name).write_text(f"#!/bin/bash\necho \"{name} $*\" >>'{log}'\n{text}\n")
        (programs / name).chmod(0o755)

    def run(npm="exit 1"):
        log.write_text("")
        program("sleep", ":")
        if npm is not None:
            program("npm", npm)
        env = {"PATH": str(programs), "HOME": str(tmp_path), "TOOLCAGE_PEERS": str(place)}
        return subprocess.run([repo / "scripts" / "mcp-peers"], env=env, stdin=subprocess.DEVNULL, text=True, timeout=60,
                              capture_output=True, check=False)

    run.place, run.log = place, log
    return run


def test_registry_that_cannot_be_reached_is_tried_twice_and_then_told(peers):
    done = peers("echo nobody answers >&2; exit 1")
    assert done.returncode == 0
    assert "nobody answers" in done.stderr and "skipped" in done.stderr
    assert len(re.findall("^npm ci ", peers.log.read_text(), re.M)) == 2
    assert "npm could not install" in (peers.place.parent / "peers.failed").read_text()
    assert not peers.place.exists() and not (peers.place.parent / "peers.new").exists()


def test_no_npm_is_told_and_changes_nothing(peers):
    peers.place.mkdir()
    done = peers(npm=None)
    assert done.returncode == 0 and "no npm" in done.stderr
    assert not list(peers.place.iterdir())


def test_nothing_is_done_when_all_is_there(peers):
    peers.place.mkdir()
    (peers.place / "stamp").write_text(wanted_stamp() + "\n")
    done = peers()
    assert (done.returncode, done.stdout, done.stderr, peers.log.read_text()) == (0, "", "", "")


def test_an_installation_that_fails_leaves_the_old_one(peers):
    peers.place.mkdir()
    (peers.place / "stamp").write_text("of an older list\n")
    assert peers().returncode == 0
    assert (peers.place / "stamp").exists()


def test_no_script_of_a_package_is_run_and_versions_are_fixed(peers):
    peers()
    assert "--ignore-scripts" in peers.log.read_text()
    package = json.loads((SCRIPTS / "package.json").read_text())
    versions = [*package["dependencies"].values(), *package["optionalDependencies"].values()]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions)
    assert all("==" in line or line.startswith("#") for line in (SCRIPTS / "requirements.txt").read_text().splitlines())


def test_the_lock_file_names_no_registry():
    lock = json.loads((SCRIPTS / "package-lock.json").read_text())
    entries = [entry for path, entry in lock["packages"].items() if path]
    assert entries and all("integrity" in entry and "resolved" not in entry for entry in entries)
    assert os.environ.get("HOME", "/root") not in json.dumps(lock)
