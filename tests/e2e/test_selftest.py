# SPDX-License-Identifier: Apache-2.0
"""`toolcage selftest`: everything holds, and its attacks are real: they succeed without a cage."""

import json
import os
import socket
import subprocess

import jsonschema
import pytest

from container_lab import Missing
from native import SLOW

pytestmark = pytest.mark.native

SECRET = "toolcage-selftest-secret"


def run_selftest(toolcage, *arguments, **options):
    result = toolcage("selftest", "--json", *arguments, timeout=300, **options)
    assert result.returncode in (0, 1, 125), result.stderr
    return result, json.loads(result.stdout)


# Runtimes; an engine needs an image, see below.
@pytest.mark.parametrize("backend", ["process", "jail", "oci/crun", "gvisor"])
def test_every_attack_is_held(toolcage, repo, must_work, backend):
    if SLOW and backend not in ("process", "jail"):
        pytest.skip("takes minutes where everything is slow, and the plain build attacks the same sandbox")
    result, report = run_selftest(toolcage, backend)
    jsonschema.validate(report, json.loads((repo / "schemas" / "selftest.json").read_text()))
    assert [entry for entry in report["attempts"] if entry["outcome"] == "fail"] == []
    if not report["attempts"]:
        assert result.returncode == 125
        must_work(backend, "this host cannot build its cages")
    assert result.returncode == 0
    assert {entry["backend"] for entry in report["attempts"]} == {backend}
    assert report["passed"] >= 20


@pytest.mark.container  # beside the others that use the one daemon of the run
def test_engine_is_attacked_in_containers_of_the_built_image(toolcage, lab, must_work):
    if SLOW:
        pytest.skip("takes a quarter of a minute, and the plain build attacks the same containers")
    try:
        api, images = lab.docker(), lab.images()
    except Missing as missing:
        must_work("oci/docker", str(missing))
    env = {"DOCKER_HOST": f"unix://{api.path}", "TOOLCAGE_IMAGES": str(images)}
    loaded = toolcage("image", "load", "--engine", "docker", "toolcage/tool-sandbox", env=env)
    assert loaded.returncode == 0, loaded.stderr
    try:
        result, report = run_selftest(toolcage, "oci/docker", env=env)
    finally:
        api.request("DELETE", "/images/toolcage/tool-sandbox:latest?force=1")
    assert [entry for entry in report["attempts"] if entry["outcome"] == "fail"] == []
    assert (result.returncode, report["passed"] >= 20) == (0, True), report


def test_backends_that_do_not_work_are_named_with_the_reason(toolcage, tmp_path):
    """As after an installation without any container engine."""
    env = dict(os.environ, PATH="/nonexistent", DOCKER_HOST=f"unix://{tmp_path}/none", CONTAINER_HOST=f"unix://{tmp_path}/none")
    done = toolcage("selftest", "oci/podman", env=env)
    assert done.returncode == 125
    assert f"not available: container.engine is \"podman\", and none answers at unix://{tmp_path}/none" in done.stdout


def test_one_backend_can_be_named(toolcage):
    _, report = run_selftest(toolcage, "process")
    assert {entry["backend"] for entry in report["attempts"]} <= {"process"}


def test_unknown_backend_is_an_error(toolcage):
    result = toolcage("selftest", "jial")
    assert result.returncode == 125 and "jial" in result.stderr and result.stdout == ""


def test_nothing_is_left(toolcage, tmp_path):
    before = {name for name in os.listdir("/tmp") if name.startswith("toolcage-selftest")}
    toolcage("selftest", "process", timeout=300)
    assert {name for name in os.listdir("/tmp") if name.startswith("toolcage-selftest")} <= before


@pytest.fixture
def canaries(tmp_path):
    """What an attempt is given, for real, and a listener on each socket."""
    for name in ("open", "work"):
        (tmp_path / name).mkdir()
    for name in ("secret", "open/file", "open/hidden"):
        (tmp_path / name).write_text(SECRET + "\n")
    sockets = [socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)]
    name = f"toolcage-test-{os.getpid()}"
    sockets[1].bind("\0" + name)
    here = os.getcwd()
    os.chdir(tmp_path)  # the name of a socket is short
    sockets[2].bind("open/socket")
    os.chdir(here)
    for each in sockets[1:]:
        each.listen()
    yield [str(tmp_path), name, str(sockets[0].getsockname()[1]), str(os.getpid())]
    for each in sockets:
        each.close()


def apart():
    """Root tries them in namespaces of their own, should one of them ever do what it only asks for."""
    return ["unshare", "--mount", "--uts", "--ipc", "--"] if os.geteuid() == 0 else []


@pytest.mark.parametrize("attempt", [
    "read_secret", "read_through_proc", "read_hidden", "write_read_only", "make_setuid", "inherit_descriptor",
    "read_environment", "connect_tcp", "connect_abstract", "signal_host", "become_root", "fill_memory", "fork_many",
    "open_many", "fill_disk", "start_unlisted", "start_by_loader", "start_from_memory", "kernel_calls", "namespaces",
    "mounts"])
def test_attack_succeeds_without_a_cage(build_dir, canaries, attempt):
    read_end, write_end = os.pipe()
    result = subprocess.run(
        [*apart(), build_dir / "src" / "toolcage", "selftest-attempt", attempt, *canaries], capture_output=True,
        text=True, check=False, timeout=60, env=os.environ | {"LEAK": SECRET}, pass_fds=(read_end,))
    os.close(read_end)
    os.close(write_end)
    assert result.returncode == 0 and result.stdout, f"{result.returncode} {result.stdout} {result.stderr}"
