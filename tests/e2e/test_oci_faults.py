# SPDX-License-Identifier: Apache-2.0
"""Engines that fail: whatever the engine does, the verdict is `error` with the cause, nothing is left behind, and the
next call works."""

import json
import os
import signal
import subprocess
import time

import pytest

from container_lab import IMAGE as IMAGE_NAME
from container_lab import PATH, cages_of
from engine_proxy import Proxy
from native import TIME_SCALE
from waiting import wait_until

pytestmark = pytest.mark.container

CREATE, START, IMAGE, PING, REMOVE = ("POST .*/containers/create", "POST .*/start", "GET .*/images/", "GET .*/_ping",
                                      "DELETE .*/containers/")


def left(cages):
    """Containers, and directories whose owner is gone: those of a process that lives are in use."""
    return cages.containers() | {one for one in cages.run_directories()
                                 if not os.path.exists(f"/proc/{os.path.basename(one).split('-')[0]}")}


class Faulty:
    """Docker behind a proxy."""

    def __init__(self, cages, directory):
        self.cages, self.proxy = cages, Proxy(directory / "s", cages.api.path)
        self.environment = {"DOCKER_HOST": f"unix://{self.proxy.path}"}
        self.before = self.left()

    def left(self):
        return left(self.cages)

    def call(self, *argv, **more):
        policy = self.cages.policy(**more)
        done = self.cages.command("exec", "--policy", policy, "--tool", "t", "--json", "--", *(argv or ("true",)),
                                  env=self.environment)
        return done, json.loads(done.stdout) if done.stdout.startswith("{") else None

    def check_error(self, *causes, **more):
        """A call that fails with the cause, and leaves nothing."""
        begin = time.monotonic()
        done, result = self.call(**more)
        assert result and result["verdict"] == "error", (done, result)
        text = result["reason"] + (result["fix"] or "")
        assert any(cause in text for cause in causes), (causes, text)
        assert "\x1b" not in text
        self.check_nothing_left()
        return time.monotonic() - begin

    def check_nothing_left(self):
        assert wait_until(lambda: self.left() <= self.before, 10), self.left() - self.before

    def check_next(self):
        self.proxy.heal()
        done, result = self.call("echo", "well")
        assert result and result["verdict"] == "ok" and result["stdout"] == "well\n", (done, result)
        self.check_nothing_left()


@pytest.fixture
def faulty(lab, tmp_path):
    made = Faulty(cages_of(lab, "docker"), tmp_path)
    yield made
    made.proxy.close()


SPOILED = [
    (PING, "html", ("no Docker daemon answers", "which version")),
    (IMAGE, "rubbish", ("no answer that can be used",)),
    (IMAGE, "huge", ("more than",)),
    (IMAGE, "html", ("not the JSON",)),
    (CREATE, "cut", ("no answer that can be used",)),
    (CREATE, "rubbish", ("no answer that can be used",)),
    (CREATE, "silent", ("no answer that can be used",)),
    (CREATE, "html", ("does not make",)),
    (CREATE, "empty", ("not the JSON",)),
    (CREATE, "huge", ("more than",)),
]


@pytest.mark.parametrize(("where", "kind", "causes"), SPOILED,
                         ids=[f"{where.split('/')[-1] or 'images'}-{kind}" for where, kind, _ in SPOILED])
def test_an_answer_that_is_none_is_an_error_and_leaves_nothing(faulty, where, kind, causes):
    faulty.proxy.fault(where, kind)
    faulty.check_error(*causes)
    assert faulty.proxy.spoiled


@pytest.mark.parametrize("kind", ["html", "silent"])
def test_a_container_that_has_called_is_there_whatever_the_engine_says_of_its_start(faulty, kind):
    faulty.proxy.fault(START, kind)
    done, result = faulty.call("echo", "well")
    # Which of the two comes first is open.
    assert result and (result["verdict"], result["stdout"]) in (("ok", "well\n"), ("error", "")), (done, result)
    assert faulty.proxy.spoiled
    faulty.check_nothing_left()


def test_after_any_fault_the_next_call_works(faulty):
    faulty.proxy.fault(CREATE, "cut")
    faulty.check_error("no answer that can be used")
    faulty.check_next()


@pytest.mark.parametrize(("where", "status", "message"), [
    (CREATE, 500, "write /data: no space left on device"),
    (CREATE, 404, "No such image: sha256:0"),
    (CREATE, 409, "Conflict. The container name is already in use"),
    (START, 500, "OCI runtime create failed: container_linux.go"),
    (IMAGE, 503, "the daemon is shutting down"),
])
def test_the_engines_own_words_are_the_reason(faulty, where, status, message):
    faulty.proxy.fault(where, "status", status=status, message=message)
    faulty.check_error(message)


def test_words_of_an_engine_cannot_control_the_terminal(faulty):
    faulty.proxy.fault(CREATE, "status", status=500, message="bad\\u001b[2J thing")
    faulty.check_error("bad [2J thing")


def test_an_image_that_is_missing_is_an_error_with_its_remedy(faulty):
    faulty.check_error("no image", image="toolcage/tool-sandbox:not-there")
    _, result = faulty.call(image="toolcage/tool-sandbox:not-there")
    assert "toolcage image build --load docker" in result["fix"]


def test_an_engine_that_is_slow_ends_with_the_calls_time(faulty):
    faulty.proxy.fault(CREATE, "slow", seconds=7)
    begin = time.monotonic()
    done, result = faulty.call(timeout="1s")
    assert result["verdict"] in ("error", "timeout"), (done, result)
    assert time.monotonic() - begin < 30 * TIME_SCALE
    # What it made in the end is removed all the same.
    assert wait_until(lambda: faulty.left() <= faulty.before, 30), faulty.left() - faulty.before
    faulty.check_next()


def test_a_removal_that_fails_is_made_up_for(faulty):
    faulty.proxy.fault(REMOVE, "silent")
    _, result = faulty.call("echo", "well")
    assert result["verdict"] == "ok" and result["stdout"] == "well\n"
    faulty.check_nothing_left()


def test_a_socket_that_is_gone_is_an_error(faulty):
    faulty.proxy.close()
    faulty.check_error(faulty.proxy.path)
    faulty.proxy.open()
    faulty.check_next()


def test_no_room_for_our_own_files_is_an_error(faulty):
    """As on a full disk: the directory that containers see cannot be filled."""
    policy = faulty.cages.policy()
    script = ("mkdir -p -m 0700 /run/toolcage && mount -t tmpfs -o size=16k,mode=0700 none /run/toolcage && "
              'exec "$@"')
    done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", faulty.cages.lab.base / "toolcage", "exec",
                           "--policy", policy, "--tool", "t", "--", "true"], capture_output=True, text=True,
                          env=faulty.cages.environment, check=False, timeout=60 * TIME_SCALE)
    assert done.returncode == 125 and "No space left on device" in done.stderr, done
    faulty.check_nothing_left()


def restart(lab, api):
    """The daemon again, on what the last one left."""
    api.process = lab.serve(api.process.args, api.answers, "dockerd",
                            env={"PATH": PATH, "HOME": os.path.dirname(api.path)})


def test_a_daemon_that_is_restarted_in_a_call_is_an_error_and_the_next_call_works(lab):
    cages = cages_of(lab, "docker")
    before = cages.containers()
    call = cages.start("exec", "--policy", cages.policy(), "--tool", "t", "--json", "--", "sleep", "30")
    assert wait_until(lambda: any(one["State"] == "running" for one in cages.api.get("/containers/json")), 10)
    time.sleep(0.3)
    lab.end(cages.api.process)
    outcome = cages.finish(call)
    restart(lab, cages.api)
    result = json.loads(outcome.stdout)
    assert result["verdict"] in ("error", "signaled"), result
    assert wait_until(lambda: cages.containers() <= before, 10)
    assert cages.result("echo", "well").stdout == "well\n"
    assert wait_until(lambda: cages.containers() <= before, 10)


@pytest.mark.parametrize("name", ["docker", "podman-user"])
def test_a_killed_toolcage_leaves_nothing_that_the_next_one_does_not_remove(lab, name):
    cages = cages_of(lab, name)
    before = cages.containers()
    call = cages.start("exec", "--policy", cages.policy(), "--tool", "t", "--", "sleep", "60")
    assert wait_until(lambda: cages.containers() - before, 20)
    time.sleep(0.5)
    os.killpg(call.pid, signal.SIGKILL)
    call.communicate()
    # The container's first program sees its socket end, and the engine removes what has ended.
    assert wait_until(lambda: cages.containers() <= before, 20), cages.containers() - before
    assert cages.result("true").verdict == "ok"
    assert left(cages) <= before


def make(cages, name, owner):
    """A container as a killed toolcage leaves it when it was not started yet."""
    body = {"Image": IMAGE_NAME, "Entrypoint": ["/bin/true"], "Labels": {"io.toolcage.owner": owner},
            "HostConfig": {"NetworkMode": "none"}}
    status, answer = cages.api.request("POST", f"/containers/create?name={name}", json.dumps(body),
                                       {"Content-Type": "application/json"})
    assert status == 201, answer
    return json.loads(answer)["Id"]


def test_containers_of_owners_that_are_gone_are_removed_and_no_others(lab):
    cages = cages_of(lab, "docker")
    gone, other, alive = "4000000-1-1.1-00000000", "somebody", "toolcage-web"
    made = [make(cages, "toolcage-00000000000000aa", gone), make(cages, "toolcage-00000000000000ab", other),
            make(cages, alive, gone)]
    try:
        assert cages.result("true").verdict == "ok"
        left = cages.containers()
        assert made[0] not in left
        assert made[1] in left  # a label that says nothing
        assert made[2] in left  # not a name of ours: the label came with an image
    finally:
        for one in made:
            cages.api.request("DELETE", f"/containers/{one}?force=1&v=1")
