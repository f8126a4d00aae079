# SPDX-License-Identifier: Apache-2.0
"""The benchmark of cages: that it measures, and that it says so when it cannot."""

import glob
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from mcp_peers import jail_refusal

TREE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TOOLCAGE_BUILD", TREE / "build"))
DRIVER = BUILD / "bench" / "bench_native"


def leftovers():
    return set(glob.glob("/var/tmp/toolcage-bench-*"))


def run(*arguments):
    return subprocess.run([sys.executable, "-B", TREE / "bench" / "run.py", DRIVER, *arguments], text=True,
                          capture_output=True, timeout=120, check=False)


@pytest.fixture(name="report", scope="module")
def fixture_report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    before = leftovers()
    done = run("--rounds", "3", "--only", "f0", "python", "firejail", "--json", folder / "out.json", "--svg",
               folder / "out.svg")
    assert done.returncode == 0, done.stderr
    assert leftovers() <= before
    return done.stdout, json.loads((folder / "out.json").read_text()), folder / "out.svg"


def test_every_round_gives_one_sample_of_a_subject(report):
    floor = next(row for row in report[1]["subjects"] if row["id"] == "f0")
    assert floor["samples"] == 3
    assert 0 < floor["best"] <= floor["p10"] <= floor["median"] <= floor["p90"]


def test_a_subject_that_cannot_run_is_a_row_with_the_reason(report):
    for row in report[1]["subjects"]:
        assert ("median" in row) != bool(row.get("note")), row


def test_a_target_without_its_figures_is_not_called_met(report):
    assert all("met" not in entry for entry in report[1]["targets"])
    assert "not measured" in report[0]


def test_the_plot_is_well_formed_and_follows_the_theme(report):
    text = report[2].read_text()
    assert ElementTree.fromstring(text).tag.endswith("svg")
    assert "prefers-color-scheme: dark" in text


def test_an_unknown_subject_is_refused_and_leaves_nothing():
    before = leftovers()
    done = run("--rounds", "1", "--only", "nonsense")
    assert done.returncode != 0
    assert "no such subject" in done.stderr
    assert leftovers() <= before


def test_what_mcp_adds_is_measured_against_the_same_call(tmp_path):
    subjects = ["mcp_process", "mcp_process_stdio", "mcp_process_http"]
    if not jail_refusal():
        subjects += ["mcp_echo", "mcp_echo_wrapped"]
    done = run("--rounds", "2", "--only", *subjects, "--json", tmp_path / "out.json")
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "out.json").read_text())
    assert {row["id"] for row in found["subjects"] if row.get("median")} == set(subjects), done.stdout
    assert len([entry for entry in found["targets"] if "met" in entry]) == (3 if "mcp_echo" in subjects else 2)
