# SPDX-License-Identifier: Apache-2.0
"""What a policy grants to a container, and what comes with it although nobody meant it: sockets of the host's network,
files that the tool could not read itself, the directories that decide what later containers run, the kernel's accounts
of a user; and limits that a capability lifts."""

import json
import os
import shutil
import socket
import subprocess
import time

import pytest

from container_lab import cages_of
from native import IS_ROOT, SLOW

pytestmark = pytest.mark.container

NOTHING = {"readable": None, "writable": None, "cwd": "/"}
CONNECT = """
import socket, sys
try:
    socket.socket(socket.AF_UNIX).connect("\\0" + sys.argv[1])
    print("ESCAPED")
except OSError as e:
    print("held:", e)
"""

WATCHERS = """
import ctypes
library, count = ctypes.CDLL(None), 0
while count < 100 and library.inotify_init1(0) >= 0:
    count += 1
print(count)
"""


@pytest.fixture
def cages(lab, request):
    return cages_of(lab, request.param)


def on(*names):
    return pytest.mark.parametrize("cages", names, indirect=True)


# ---- the host's network -----------------------------------------------------------------------------


@pytest.fixture
def abstract_name():
    """A listener of the host that has no path."""
    name = f"toolcage-test-{os.getpid()}-{time.monotonic_ns()}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{name}")
        listener.listen(8)
        with socket.socket(socket.AF_UNIX) as other:
            other.connect(f"\0{name}")
        yield name


@on(*(["podman"] if SLOW else ["docker", "podman", "podman-user"]))
def test_abstract_sockets_of_the_host_cannot_be_reached_from_a_container(cages, abstract_name):
    outcome = cages.result("/bin/attempt", "unix-abstract", f"@{abstract_name}", fs=NOTHING, network="host",
                           allow_host_network=True)
    assert "ESCAPED" not in outcome.stdout + outcome.stderr, outcome
    assert "socket" in outcome.stdout + outcome.stderr, outcome


@on("podman")
def test_an_engine_cannot_have_the_hosts_network_without_our_filter(cages):
    outcome = cages.result("true", fs=NOTHING, network="host", allow_host_network=True,
                           container={"no_new_privileges": False})
    assert outcome.verdict == "error" and "abstract unix sockets" in outcome.result["reason"], outcome


def test_abstract_sockets_of_the_host_cannot_be_reached_from_a_jail(toolcage, jail, tmp_path, abstract_name):
    policy = tmp_path / "policy.toml"
    policy.write_text('version = 1\n[tool.t]\nnetwork = "host"\nallow_host_network = true\n')
    done = toolcage("exec", "--policy", policy, "--tool", "t", "--json", "--", "/usr/bin/python3", "-c", CONNECT,
                    abstract_name)
    result = json.loads(done.stdout)
    assert result["verdict"] == "ok" and result["stdout"].startswith("held:"), result


# ---- files that come back ---------------------------------------------------------------------------


@pytest.fixture
def with_secrets(cages):
    """Files and a directory of root's in a directory that is the tool's own."""
    place = cages.place / "work/mixed"
    (place / "rootdir/deep").mkdir(parents=True)
    (place / "rootdir/deep/open.txt").write_text("ROOT SECRET\n")
    (place / "secret").write_text("ROOT SECRET\n")
    (place / "public").write_text("for all\n")
    (place / "secret").chmod(0o600)
    (place / "rootdir").chmod(0o700)
    os.chown(place, cages.owner, cages.owner)
    yield place
    shutil.rmtree(place, ignore_errors=True)


@on(*(["podman"] if SLOW else ["docker", "podman"]))
def test_outputs_bring_back_only_what_the_tool_could_read(cages, with_secrets, tmp_path):
    script = ("cat secret; cat rootdir/deep/open.txt; mv secret result.txt; mv public public.txt; mv rootdir found; "
              "echo own > own.txt; chmod 600 own.txt; true")
    outcome = cages.result("sh", "-c", script, flags=("--out", tmp_path / "out"),
                           fs={"writable": [f"{with_secrets}:/w"], "readable": None, "cwd": "/w"},
                           outputs=["/w/*.txt", "/w/found/deep/*.txt", "/w/f*/deep/*"])
    assert outcome.verdict == "ok" and "SECRET" not in outcome.stdout, outcome
    assert {file["path"] for file in outcome.result["files"]} == {"/w/own.txt", "/w/public.txt"}, outcome
    assert not any("SECRET" in path.read_text() for path in (tmp_path / "out").rglob("*") if path.is_file()), outcome
    said = {denial["target"]: denial["rule"] for denial in outcome.result["denials"]}
    assert "not the tool's" in said["/w/result.txt"] and "/w/found" in said, outcome


@pytest.mark.skipif(not IS_ROOT, reason="others cannot make files of somebody else")
def test_outputs_of_a_jail_bring_back_only_what_the_tool_could_read(toolcage, jail, tmp_path):
    work, policy = tmp_path / "work", tmp_path / "policy.toml"
    work.mkdir()
    for name, mode in (("secret", 0o600), ("public", 0o644)):
        (work / name).write_text(f"{name}\n")
        (work / name).chmod(mode)
        os.chown(work / name, 21234, 21234)
    policy.write_text(f'version = 1\n[tool.t]\nfilesystem = {{ writable = ["{work}:/w"], cwd = "/w" }}\n'
                      'outputs = ["/w/*.txt"]\n')
    done = toolcage("exec", "--policy", policy, "--tool", "t", "--json", "--", "sh", "-c",
                    "cat secret; mv secret result.txt; mv public public.txt; echo own > own.txt; chmod 600 own.txt")
    result = json.loads(done.stdout)
    assert "Permission denied" in result["stderr"], result
    assert [file["path"] for file in result["files"]] == ["/w/own.txt", "/w/public.txt"], result


# ---- what decides what containers run ---------------------------------------------------------------


@pytest.fixture
def share(cages, lab):
    place = lab.base / f"share-{cages.engine.name}"
    place.mkdir(exist_ok=True)
    os.chown(place, cages.caller.uid, cages.caller.uid)
    return place


@on("crun-user")
def test_no_tool_of_the_policy_may_write_the_image_store(cages, share):
    tools = {"t": {"rootfs": None, "image": "toolcage/tool-sandbox", "fs": NOTHING},
             "wide": {"rootfs": None, "image": "toolcage/tool-sandbox",
                      "fs": {"writable": [f"{share}:/share"], "readable": None, "cwd": "/"}}}
    policy = cages.policy(tools)
    # There is no image at all: what is refused first is the grant. The tool could make the store.
    for store in (share / "toolcage/images", share):
        cages.environment["TOOLCAGE_IMAGES"] = str(store)
        for tool in tools:
            outcome = cages.command("exec", "--policy", policy, "--tool", tool, "--", "true")
            assert outcome.status == 125 and "could change the image store" in outcome.stderr, outcome
            assert str(share) in outcome.stderr, outcome
    lint = cages.command("lint", "--json", policy)
    found = [one["message"] for one in json.loads(lint.stdout)["findings"] if one["id"] == "TC-L106"]
    assert any("image store" in message and str(share) in message for message in found), lint
    cages.environment["TOOLCAGE_IMAGES"] = str(cages.lab.base / "no-images")
    outcome = cages.command("exec", "--policy", policy, "--tool", "t", "--", "true")
    assert outcome.status == 125 and "there is no image" in outcome.stderr, outcome


@on("podman-user")
def test_no_tool_may_write_where_programs_of_running_containers_lie(cages):
    runtime = cages.environment["XDG_RUNTIME_DIR"]
    outcome = cages.result("true", fs={"writable": [f"{runtime}:/rt"], "readable": None, "cwd": "/"})
    assert outcome.verdict == "error" and "running containers" in outcome.result["reason"], outcome


@on("crun")
def test_an_image_that_is_removed_stays_for_calls_that_run(cages, lab):
    cages.with_own_image()
    store = lab.base / "images-removed"
    subprocess.run(["cp", "-al", lab.images(), store], check=True)
    cages.environment["TOOLCAGE_IMAGES"] = str(store)
    policy = cages.policy(rootfs=None, image="toolcage/tool-sandbox", fs=NOTHING)
    process = cages.start("exec", "--policy", policy, "--tool", "t", "--", "sh", "-c",
                          "echo runs; read line; cat /etc/os-release > /dev/null && ls -d /usr/bin",
                          stdin=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"runs\n"
        removed = cages.command("image", "rm", "toolcage/tool-sandbox")
        assert removed.status == 0, removed
        out, _ = process.communicate(b"go\n", timeout=60)
        assert (process.returncode, out) == (0, b"/usr/bin\n")
    finally:
        process.kill()
        process.communicate()
        shutil.rmtree(store, ignore_errors=True)


# ---- accounts and limits ----------------------------------------------------------------------------


@on(*(["crun-user"] if SLOW else ["crun-user", "runc-user"]))
def test_a_tool_cannot_take_all_inotify_instances_of_its_user(cages):
    cages.with_own_image()
    outcome = cages.result("python3", "-c", WATCHERS, rootfs=None, image="toolcage/tool-sandbox", fs=NOTHING)
    assert outcome.verdict == "ok" and 1 <= int(outcome.stdout) <= 16, outcome


@on("gvisor")
@pytest.mark.parametrize("name,more,kept", [("SYS_ADMIN", {}, "pids"), ("SYS_RESOURCE", {}, "pids"),
                                            ("SYS_RESOURCE", {"pids": "unlimited"}, "files")])
def test_gvisor_refuses_capabilities_that_lift_its_limits(cages, name, more, kept):
    outcome = cages.result("true", container={"cap_add": [name]}, **more)
    assert outcome.verdict == "error" and f'"{kept}"' in outcome.result["reason"], outcome
    assert name in outcome.result["fix"], outcome
