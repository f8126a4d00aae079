# SPDX-License-Identifier: Apache-2.0
"""One meaning everywhere: what `explain` says about a path is what a cage does with it.

A tree of files on the host, policies with nested grants over it, and for each path two answers: the one of the
policy engine, and the one of a program that tries it inside. They must be the same.
"""

import itertools
import json
import os
import random
import subprocess
import time

import pytest

pytestmark = pytest.mark.native

PROBE = r"""
import json, os, sys
answers = {}
for path in json.load(sys.stdin):
    try:
        if os.path.isdir(path):
            os.listdir(path)
        else:
            open(path, "rb").close()
        read = True
    except OSError:
        read = False
    try:
        if os.path.isdir(path):
            name = os.path.join(path, "made-by-the-cage")
            open(name, "wb").close()
            os.unlink(name)
        else:
            open(path, "r+b").close()
        write = True
    except OSError:
        write = False
    answers[path] = [read, write]
json.dump(answers, sys.stdout)
"""


@pytest.fixture
def tree(tmp_path):
    """/data on the host: directories a, b and a/c, a/c/d, each with a file."""
    top = tmp_path / "data"
    for directory in ("", "a", "b", "a/c", "a/c/d"):
        (top / directory).mkdir(parents=True, exist_ok=True)
        (top / directory / "file").write_text("content\n")
    return top


def policy_text(top, rules):
    """A tool `t` whose rules are {cage path below /data: access}."""
    lists = {"readable": [], "writable": [], "hidden": []}
    for path, access in rules.items():
        inside = ("/data/" + path).rstrip("/")
        host = f"{top}/{path}".rstrip("/")
        lists[access].append(inside if access == "hidden" else f"{host}:{inside}")
    return "[tool.t]\nfilesystem = { " + ", ".join(f"{key} = {json.dumps(value)}" for key, value in lists.items()) + " }\n"


def paths_below(top):
    """Every path that could be asked about, as the cage names it."""
    return sorted("/data/" + str(path.relative_to(top)) for path in top.rglob("*")) + ["/data"]


def ask(toolcage, policy, path, how):
    result = toolcage("explain", "--policy", policy, "t", f"--{how}", path)
    assert result.returncode in (0, 1), result.stderr
    return result.returncode == 0


def try_inside(toolcage, policy, paths):
    result = toolcage("exec", "--policy", policy, "--tool", "t", "--", "python3", "-c", PROBE, input=json.dumps(paths))
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def is_visible(rules, path):
    """Is there anything at this path of the cage? Above a grant there are only empty directories of the cage's own."""
    return any(("/data/" + rule).rstrip("/") in (path, *map(str, __import__("pathlib").PurePosixPath(path).parents))
               for rule in rules)


def compare(toolcage, tmp_path, tree, rules):
    policy = tmp_path / "policy.toml"
    policy.write_text(policy_text(tree, rules))
    paths = [path for path in paths_below(tree) if is_visible(rules, path)]
    found = try_inside(toolcage, policy, paths)
    for path in paths:
        said = [ask(toolcage, policy, path, "read"), ask(toolcage, policy, path, "write")]
        assert found[path] == said, f"{path}: the policy says read, write = {said}, the cage {found[path]}; {rules}"


ACCESS = ("readable", "writable", "hidden")


@pytest.mark.parametrize("outer, inner", itertools.product(ACCESS, ACCESS))
def test_inner_rule_decides_inside_the_outer_one(toolcage, tmp_path, tree, outer, inner):
    compare(toolcage, tmp_path, tree, {"a": outer, "a/c": inner})


@pytest.mark.parametrize("inner", ACCESS)
def test_rule_for_a_single_file(toolcage, tmp_path, tree, inner):
    compare(toolcage, tmp_path, tree, {"a": "readable", "a/file": inner, "a/c/file": "writable"})


def test_three_levels(toolcage, tmp_path, tree):
    compare(toolcage, tmp_path, tree, {"": "readable", "a": "hidden", "a/c": "writable", "a/c/d": "readable"})


@pytest.mark.parametrize("seed", range(6))
def test_random_rules(toolcage, tmp_path, tree, seed):
    generator = random.Random(seed)
    places = ["", "a", "b", "a/c", "a/c/d", "a/file", "b/file", "a/c/d/file"]
    chosen = generator.sample(places, generator.randint(2, 6))
    compare(toolcage, tmp_path, tree, {place: generator.choice(ACCESS) for place in chosen})


@pytest.mark.parametrize("path, read, write", [
    ("/etc/passwd", True, False), ("/usr/bin/env", True, False), ("/dev/null", True, True), ("/dev/urandom", True, False),
    ("/tmp", True, True), ("/dev/shm", True, True), ("/proc/version", True, False), ("/etc/shadow", False, False),
    ("/root", False, False), ("/sys", False, False), ("/home", False, False), ("/var", False, False),
    ("/boot", False, False)])
def test_what_every_cage_has(toolcage, tmp_path, path, read, write):
    policy = tmp_path / "policy.toml"
    policy.write_text("[tool.t]\n")
    assert [ask(toolcage, policy, path, "read"), ask(toolcage, policy, path, "write")] == [read, write]
    assert try_inside(toolcage, policy, [path])[path] == [read, write]


def test_hidden_beats_what_every_cage_has(toolcage, tmp_path):
    policy = tmp_path / "policy.toml"
    policy.write_text('[tool.t]\nfilesystem = { hidden = ["/usr/share", "/etc/hosts"] }\n')
    found = try_inside(toolcage, policy, ["/usr/share", "/etc/hosts", "/usr/lib"])
    assert found == {"/usr/share": [False, False], "/etc/hosts": [False, False], "/usr/lib": [True, False]}


def test_missing_path_to_hide_is_refused_unless_optional(toolcage, tmp_path, tree):
    policy = tmp_path / "policy.toml"
    policy.write_text(f'[tool.t]\nfilesystem = {{ writable = ["{tree}:/data"], hidden = ["/data/.env"] }}\n')
    refused = toolcage("exec", "--policy", policy, "--tool", "t", "--", "true")
    assert refused.returncode == 125 and "/data/.env cannot be hidden" in refused.stderr
    assert not (tree / ".env").exists(), "nothing is made on the host"
    policy.write_text(f'[tool.t]\nfilesystem = {{ writable = ["{tree}:/data"], '
                      'hidden = [{ host = "/data/.env", cage = "/data/.env", optional = true }] }\n')
    assert toolcage("exec", "--policy", policy, "--tool", "t", "--", "true").returncode == 0
    assert not (tree / ".env").exists()


def test_link_planted_in_a_writable_grant_is_not_followed(toolcage, tmp_path, tree):
    """An earlier call may write to /data and replaces /data/b, which the policy grants to another tool."""
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "file").write_text("SECRET\n")
    policy = tmp_path / "policy.toml"
    policy.write_text(f'[tool.writer]\nfilesystem = {{ writable = ["{tree}:/data"] }}\n'
                      f'[tool.reader]\nfilesystem = {{ readable = ["{tree}/b:/b"] }}\n')
    swap = f"rm -r /data/b && ln -s {secret} /data/b"
    assert toolcage("exec", "--policy", policy, "--tool", "writer", "--", "sh", "-c", swap).returncode == 0
    read = toolcage("exec", "--policy", policy, "--tool", "reader", "--", "cat", "/b/file")
    assert read.returncode == 125 and "SECRET" not in read.stdout
    assert "a link lies at a place that this policy lets a tool write to" in read.stderr


def test_files_made_in_a_grant_belong_to_the_caller(toolcage, tmp_path, tree):
    policy = tmp_path / "policy.toml"
    policy.write_text(f'[tool.t]\nfilesystem = {{ writable = ["{tree}:/data"] }}\n')
    assert toolcage("exec", "--policy", policy, "--tool", "t", "--", "touch", "/data/new").returncode == 0
    made, old = (tree / "new").stat(), (tree / "file").stat()
    assert (made.st_uid, made.st_gid) == (old.st_uid, old.st_gid)


def test_command_does_not_run_as_host_root(build_dir, tmp_path):
    """Seen from the host: the real user id of a process in the cage."""
    seconds = f"60.{os.getpid()}"  # that nobody else sleeps
    process = subprocess.Popen([build_dir / "src" / "toolcage", "exec", "--", "sh", "-c", f"echo ready; exec sleep {seconds}"],
                               stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    try:
        assert process.stdout.readline() == "ready\n"
        owners, end = set(), time.monotonic() + 20
        while not owners and time.monotonic() < end:  # it is ready a little before it sleeps
            found = subprocess.run(["ps", "-eo", "uid,args"], capture_output=True, text=True, check=True).stdout
            owners = {line.split()[0] for line in found.splitlines() if line.split()[1:] == ["sleep", seconds]}
        assert owners and "0" not in owners
    finally:
        process.terminate()
        process.wait(30)
