# SPDX-License-Identifier: Apache-2.0
"""Who makes a tool's containers, as `explain` and `lint` tell it, and the example that works out of the box."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time

import jsonschema
import pytest

RUNSC = """case "$1" in
--version) echo "runsc version release-20240729.0";;
flags) printf '  -platform string\\n    \\tsystrap (default), kvm\\n  -root string\\n';;
*) sleep 97531;;
esac
"""


@pytest.fixture
def host(tmp_path, toolcage, repo):
    """A host with made-up programs only: host("crun", runsc=SCRIPT)(verb, policy text, ...)."""
    schema = json.loads((repo / "schemas" / "explain.json").read_text())
    programs = tmp_path / "bin"
    programs.mkdir()
    # Nothing else is found: what distributions install beside PATH is not asked for by these names.
    for name in ("sh", "sleep"):
        (programs / name).symlink_to(shutil.which(name))

    def make(*names, **scripts):
        for name, script in {**dict.fromkeys(names, "exit 0\n"), **scripts}.items():
            (programs / name).write_text("#!/bin/sh\n" + script)
            (programs / name).chmod(0o755)

        def run(verb, lines, *arguments, **variables):
            path = tmp_path / "policy.toml"
            path.write_text(f"version = 1\n[tool.t]\n{lines}\n[agent.a]\ngrants = ['t']\n")
            env = {"PATH": str(programs), "DOCKER_HOST": f"unix://{tmp_path}/none.sock",
                   "CONTAINER_HOST": f"unix://{tmp_path}/none.sock", "TOOLCAGE_IMAGES": str(tmp_path / "images"),
                   **variables}
            done = toolcage(verb, "--json", "--policy", path, *arguments, env=env)
            answer = json.loads(done.stdout or done.stderr)
            if verb == "explain":
                jsonschema.validate(answer, schema)
                return answer["tools"][0].get("made_by")
            return answer["findings"]

        return run

    return make


def test_tool_that_needs_no_container_names_no_maker(host):
    assert host("crun")("explain", "backend = 'jail'") is None


def test_maker_and_root_directory_are_told(host, tmp_path):
    made = host("crun", "runc")("explain", f"backend = 'oci'\nrootfs = '{tmp_path}'\ncontainer = {{ runtime = 'runc' }}")
    assert made == {"engine": "none", "runtime": "runc", "why": "the policy names it, and no engine", "root": str(tmp_path)}


def test_named_engine_that_is_missing_is_never_replaced(host, tmp_path):
    run = host("crun", "runc")
    for engine in ("docker", "podman"):
        made = run("explain", f"backend = 'oci'\ncontainer = {{ engine = '{engine}' }}")
        assert made["problem"] == f'container.engine is "{engine}", and none answers at unix://{tmp_path}/none.sock'
        assert made["remedy"]


@contextlib.contextmanager
def engine_of(uid, path):
    """Somebody's socket that answers pings, until the end."""
    script = ("import os, socket, sys\n"
              "s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[2]); os.chmod(sys.argv[2], 0o666)\n"
              "os.setuid(int(sys.argv[1])); s.listen(8); print('ready', flush=True)\n"
              "while True:\n"
              "    c = s.accept()[0]; c.recv(4096)\n"
              "    c.sendall(b'HTTP/1.0 200 OK\\r\\nApi-Version: 1.41\\r\\n\\r\\nOK'); c.close()\n")
    process = subprocess.Popen([sys.executable, "-c", script, str(uid), str(path)], stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"ready\n"
        yield
    finally:
        process.kill()
        process.communicate()


def test_engine_that_is_there_and_of_no_use_is_told_with_the_reason(host, tmp_path):
    run, lines = host(), "backend = 'oci'\ncontainer = { engine = 'docker' }"
    made = run("explain", lines, DOCKER_HOST="tcp://127.0.0.1:2375")
    assert made["problem"] == "DOCKER_HOST is tcp://127.0.0.1:2375, and only engines on this host are used"
    (tmp_path / "file").write_text("")
    made = run("explain", lines, DOCKER_HOST=f"unix://{tmp_path}/file")
    assert "none answers at" in made["problem"]
    if os.getuid() == 0:
        with engine_of(65534, tmp_path / "other"):
            made = run("explain", lines, DOCKER_HOST=f"unix://{tmp_path}/other")
        assert "is of no use: it is user 65534's, neither root's nor one's own" in made["problem"]
        assert made["remedy"]


def test_missing_image_is_told_with_the_command_that_builds_it(host):
    made = host("crun")("explain", "backend = 'oci'\ncontainer = { runtime = 'crun' }")
    assert "toolcage/tool-sandbox" in made["problem"] and "toolcage image build" in made["remedy"]


def test_lint_judges_the_engine_that_the_tool_names(host):
    run = host("crun", "runc")
    found = run("lint", "backend = 'oci'\ncontainer = { engine = 'docker' }")
    assert [finding["id"] for finding in found] == ["TC-L170"]
    assert "none answers at" in found[0]["message"] and found[0]["remedy"]


def test_lint_finds_an_image_that_toolcage_does_not_have(host, tmp_path):
    run, lines = host("crun"), "backend = 'oci'\ncontainer = { runtime = 'crun' }\n"

    def found(more, *options):
        return [finding for finding in run("lint", lines + more, *options) if "there is no image" in finding["message"]]

    for more, name in (("", "toolcage/tool-sandbox"), ("image = 'nosuch:1'", "nosuch:1")):
        finding, = found(more)
        assert (finding["id"], name in finding["message"]) == ("TC-L170", True) and finding["remedy"]
        assert found(more, "--no-host") == []
    assert found(f"rootfs = '{tmp_path}'") == []


def test_what_no_host_can_run_is_found_without_a_host(host):
    run = host(runsc=RUNSC)
    for lines in ("backend = 'gvisor'\ncontainer = { runtime = 'crun' }", "backend = 'gvisor'\ncontainer = { engine = 'podman' }",
                  "backend = 'oci'\nrootfs = '/srv'\ncontainer = { engine = 'docker' }",
                  "backend = 'oci'\nsyscalls = 'strict'\ncontainer = { no_new_privileges = false }",
                  "backend = 'oci'\nsystem = true"):
        for options in ((), ("--no-host",)):
            assert "TC-L172" in [finding["id"] for finding in run("lint", lines, *options)], lines


@pytest.mark.parametrize("wanted,platform", [("", "systrap"), ("systrap", "systrap"), ("ptrace", "ptrace")])
def test_platform_of_runsc(host, tmp_path, wanted, platform):
    made = host(runsc=RUNSC)("explain", f"backend = 'gvisor'\nrootfs = '{tmp_path}'", TOOLCAGE_RUNSC_PLATFORM=wanted)
    assert (made["runtime"], made["platform"], made["version"]) == ("runsc", platform, "release-20240729.0")


def test_unknown_platform_is_an_error(host, tmp_path):
    made = host(runsc=RUNSC)("explain", f"backend = 'gvisor'\nrootfs = '{tmp_path}'", TOOLCAGE_RUNSC_PLATFORM="xen")
    assert "TOOLCAGE_RUNSC_PLATFORM" in made["problem"] and "systrap" in made["remedy"]


def test_kvm_that_hangs_is_refused_in_time_and_leaves_nothing(host, tmp_path, time_scale):
    """/dev/kvm may be there and hang every sandbox: it is tried, and everything of the attempt ends."""
    begin = time.monotonic()
    made = host(runsc=RUNSC.replace("*)", "*) (setsid sleep 97531) &"))(
        "explain", f"backend = 'gvisor'\nrootfs = '{tmp_path}'", TOOLCAGE_RUNSC_PLATFORM="kvm")
    assert time.monotonic() - begin < 30 * time_scale
    assert "did not end within 3 seconds" in made["problem"]
    assert subprocess.run(["pgrep", "-f", "^sleep 97531$"], capture_output=True, check=False).returncode == 1


# ---- the example ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def example(repo, toolcage, tmp_path_factory, must_work):
    """Runs a tool of examples/containers.toml with the image of a fresh store."""
    place = tmp_path_factory.mktemp("containers")
    store = place / "images"
    shutil.copytree(repo / "examples", place / "examples")
    for path in [*place.parents[:2], place, *place.rglob("*")]:
        path.chmod(path.stat().st_mode | (0o755 if path.is_dir() else 0o644))
    built = toolcage("image", "build", env={"TOOLCAGE_IMAGES": str(store)}, timeout=120)
    assert built.returncode == 0, built.stderr

    def run(backend, tool, *argv, **options):
        # Without an engine, which would need the image in a store of its own.
        env = {"TOOLCAGE_IMAGES": str(store), "DOCKER_HOST": "unix:///none", "CONTAINER_HOST": "unix:///none"}
        done = toolcage("exec", "--policy", place / "examples" / "containers.toml", "--tool", tool, "--", *argv,
                        env=env, **options)
        if done.returncode == 125:
            must_work(backend, f"no container can be made here: {done.stderr}")
        return done

    return run


def test_bash_tool_of_the_example_runs(example):
    done = example("oci/crun", "bash", "bash", "/workspace/build.sh")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1:] == ["build.sh", "main.py", "the workspace cannot be changed"]
    assert done.stdout.startswith("in /workspace, as user ")


def test_untrusted_code_of_the_example_runs(example):
    done = example("gvisor", "untrusted_code", "python3", "/workspace/main.py", input='{"numbers": [1, 2.5]}')
    assert (done.returncode, done.stdout, done.stderr) == (0, '{"sum": 3.5, "count": 2}\n', "")


def test_web_tool_of_the_example_reaches_nothing_else(example):
    done = example("oci/crun", "web_fetch", "curl", "-sS", "--max-time", "5", "--", "https://other.example/")
    assert done.returncode == 6, done.stderr
    assert "other.example" in done.stderr
