# SPDX-License-Identifier: Apache-2.0
"""The examples work as they are, from a fresh copy of the tree."""

import shutil
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.native


@pytest.fixture(scope="module")
def examples(repo, tmp_path_factory):
    """A copy that any cage may see."""
    folder = tmp_path_factory.mktemp("tree") / "examples"
    shutil.copytree(repo / "examples", folder)
    for path in [folder.parent, folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    return folder


@pytest.fixture(scope="module")
def run(toolcage, must_work, examples):
    """Runs a command as a tool of an example, from the directory above."""

    def call(policy, tool, *argv, **options):
        done = toolcage("exec", "--policy", f"examples/{policy}", "--tool", tool, "--", *argv,
                        cwd=examples.parent, **options)
        if done.returncode == 125:
            must_work("jail", f"a jail cannot be built here: {done.stderr}")
        return done

    return call


def test_python_tool_of_the_first_example_runs(run):
    done = run("tools.toml", "run_python", "python3", "/workspace/main.py", input='{"numbers": [1, 2.5]}')
    assert (done.returncode, done.stdout, done.stderr) == (0, '{"sum": 3.5, "count": 2}\n', "")


def test_search_tool_of_the_first_example_finds_its_notes(run):
    done = run("tools.toml", "search_notes", "grep", "-rn", "--", "tomatoes", "/notes")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 2


def granted(policy):
    """The paths of the host that the tools of a policy name."""
    for tool in policy["tool"].values():
        filesystem = tool.get("filesystem", {})
        for entry in filesystem.get("readable", []) + filesystem.get("writable", []) if filesystem != "none" else []:
            yield entry["host"] if isinstance(entry, dict) else entry.split(":")[0]


def test_relative_paths_that_examples_grant_are_in_the_tree(repo):
    found = 0
    for path in (repo / "examples").glob("*.toml"):
        for name in granted(tomllib.loads(path.read_text())):
            if not Path(name).is_absolute():
                assert (path.parent / name).exists(), f"{path.name}: {name}"
                found += 1
    assert found >= 3


@pytest.mark.parametrize("policy, tool, arguments, words", [
    ("policy.yaml", "readable_size", '{"bytes": 1536}', "1.5KiB\n"),
    ("policy.yaml", "read_docs", '{"page": "mcp.md"}', "# MCP\n"),
    ("tool-files.toml", "list_notes", "{}", '"name":"garden.txt"'),
    ("tool-files.toml", "count_words", '{"page": "garden.txt"}', "/notes/garden.txt"),
])
def test_small_tools_of_the_examples_answer(toolcage, must_work, examples, repo, policy, tool, arguments, words):
    docs = examples.parent / "docs"
    docs.mkdir(exist_ok=True)
    shutil.copy(repo / "docs" / "mcp.md", docs)
    docs.chmod(0o755)
    done = toolcage("call", "--no-journal", "--policy", examples / policy, "--agent", "assistant", tool, arguments)
    if done.returncode == 125:
        must_work("jail", f"a jail cannot be built here: {done.stderr}")
    assert (done.returncode, done.stderr) == (0, "")
    assert words in done.stdout
