# SPDX-License-Identifier: Apache-2.0
"""What lies on top of a granted directory: covers of hidden paths, nested grants, passwd. The host, or another tool,
changes the directory between two calls of a host that keeps its plans, or while a container waits. Nothing hidden is
shown, nothing is made on the host, no link is followed."""

import contextlib
import os
import shutil
import subprocess
import threading
import time

import pytest

from container_lab import SANITIZER, cages_of
from native import PROGRAMS, TIME_SCALE, processes

pytestmark = pytest.mark.container

BARE = ["crun", "crun-user", "runc", "runc-user", "gvisor"]
SHOW = "cat /ws/key.pem /ws/deep/secret/k /ws/other/k 2>/dev/null; echo done"


class Host:
    """A driver that keeps its plans, and a workspace in which two paths are hidden."""

    def __init__(self, cages, mode, **more):
        self.cages, lab = cages, cages.lab
        lab.count += 1
        self.ws = cages.place / f"ws-{lab.count}"
        (self.ws / "deep/secret").mkdir(parents=True)
        (self.ws / "key.pem").write_text("OLDKEY\n")
        (self.ws / "deep/secret/k").write_text("TOPSECRET\n")
        (self.ws / "plain").write_text("plain\n")
        for path in [self.ws, *self.ws.rglob("*")]:
            os.chown(path, cages.owner, cages.owner)
        fs = {"writable": [f"{self.ws}:/ws"], "hidden": ["/ws/key.pem", "/ws/deep/secret"], "cwd": "/"}
        more = {"fs": fs, "warm": 1} | more
        driver = lab.base / "kept-driver"
        if not driver.exists():
            shutil.copy(PROGRAMS / "kept-driver", driver)
        self.process = subprocess.Popen(
            [*map(str, (*cages.caller.prefix, driver, cages.policy(**more), mode))], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, cwd=cages.place, env=cages.environment | SANITIZER,
            preexec_fn=cages.caller.become)

    def call(self, script, tool="t"):
        """(verdict, reason, stdout)"""
        self.process.stdin.write(f"{tool} {script}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "the driver ended"
        return tuple(part.strip() for part in line.split("\t"))

    def replace(self, name, text):
        """As an editor does it: a new file, renamed over the old one."""
        new = self.ws / "new"
        new.write_text(text)
        os.chown(new, self.cages.owner, self.cages.owner)
        new.replace(self.ws / name)

    def wait_for_warm(self):
        """Until a container waits. gVisor's processes are its kernel's: some time has to do."""
        if self.cages.engine.is_gvisor:
            time.sleep(0.7 * TIME_SCALE)
            return
        end = time.monotonic() + 20 * TIME_SCALE
        while not self.waiting():
            assert time.monotonic() < end, "no container waits"
            time.sleep(0.02)
        time.sleep(0.1)

    def waiting(self):
        known, found = {self.process.pid}, False
        everybody = processes()
        for _ in range(6):
            known |= {pid for pid, (parent, _, _) in everybody.items() if parent in known}
        for pid in known:
            with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
                found |= file.read().startswith(b"/.toolcage/entry")
        return found

    def names(self):
        return sorted(str(path.relative_to(self.ws)) for path in self.ws.rglob("*"))

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=30 * TIME_SCALE)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()


@pytest.fixture(name="host")
def host_fixture(lab):
    with contextlib.ExitStack() as stack:
        def make(name, mode, **more):
            made = Host(cages_of(lab, name), mode, **more)
            stack.callback(made.close)
            return made
        yield make


@pytest.mark.parametrize("name", BARE)
def test_a_hidden_file_that_is_replaced_while_a_container_waits_stays_hidden(host, name):
    made = host(name, "warm")
    assert made.call(SHOW) == ("ok", "", "done")
    made.wait_for_warm()
    made.replace("key.pem", "NEWKEY\n")
    assert made.call(SHOW) == ("ok", "", "done")
    # Twice, so that the first one's number could come back; and a directory.
    made.wait_for_warm()
    made.replace("key.pem", "NEWKEY\n")
    made.replace("key.pem", "NEWKEY\n")
    (made.ws / "deep/secret").rename(made.ws / "deep/old")
    (made.ws / "deep/secret").mkdir(mode=0o755)
    (made.ws / "deep/secret/k").write_text("NEWSECRET\n")
    assert made.call(SHOW) == ("ok", "", "done")


@pytest.mark.parametrize("name", ["crun", "runc-user", "gvisor"])
def test_a_hidden_file_that_went_and_came_back_stays_hidden(host, name):
    """On the host everything is as it was; in the waiting container the cover is gone."""
    made = host(name, "warm")
    assert made.call(SHOW) == ("ok", "", "done")
    made.wait_for_warm()
    os.link(made.ws / "key.pem", made.ws / "keep")
    made.replace("key.pem", "NEWKEY\n")
    (made.ws / "keep").replace(made.ws / "key.pem")
    assert made.call(SHOW) == ("ok", "", "done")


@pytest.mark.parametrize("name", BARE)
def test_a_hidden_path_that_is_gone_is_not_made_on_the_host(host, name):
    made = host(name, "cold")
    assert made.call("true")[0] == "ok"
    (made.ws / "key.pem").unlink()
    shutil.rmtree(made.ws / "deep/secret")
    before = made.names()
    verdict, reason, _ = made.call("true")
    assert verdict == "error" and "cannot be hidden" in reason, (verdict, reason)
    assert made.names() == before


@pytest.mark.parametrize("name", BARE)
def test_a_link_at_a_mount_point_of_a_workspace_is_refused(host, name):
    made = host(name, "cold")
    assert made.call("true")[0] == "ok"
    (made.ws / "deep/secret").rename(made.ws / "other")
    (made.ws / "deep/secret").symlink_to("/etc")
    verdict, reason, printed = made.call(SHOW)
    assert verdict == "error" and "TOPSECRET" not in printed, (verdict, reason, printed)


@pytest.mark.parametrize("name", ["crun", "crun-user", "runc", "gvisor"])
def test_mount_points_that_change_while_calls_begin_are_never_made_or_followed(host, name):
    """Nobody wins the race between what the plan looked at and what the runtime mounts."""
    made = host(name, "cold")
    secret, kept, over = made.ws / "deep/secret", made.ws / "deep/kept", threading.Event()

    def flip():
        while not over.is_set():
            secret.rename(kept)
            time.sleep(0.002)
            kept.rename(secret)
            time.sleep(0.002)

    thread = threading.Thread(target=flip)
    thread.start()
    try:
        seen = [made.call("cat /ws/deep/secret/k 2>/dev/null; echo done") for _ in range(6)]
    finally:
        over.set()
        thread.join()
    assert all(verdict == "error" or printed == "done" for verdict, _, printed in seen), seen
    assert made.names() == ["deep", "deep/secret", "deep/secret/k", "key.pem", "plain"]


@pytest.mark.parametrize("name", BARE)
def test_covers_hold_in_a_workspace_that_lies_in_scratch(host, name):
    """crun makes /tmp itself, and everything in it; and a grant lies in what is hidden."""
    made = host(name, "cold", fs={})
    place = made.cages.place
    made = host(name, "cold", fs={
        "writable": [f"{made.ws}:/tmp/ws"], "readable": [f"{place}/docs:/tmp/ws/deep/secret/docs"],
        "hidden": ["/tmp/ws/key.pem", "/tmp/ws/deep/secret"], "cwd": "/"})
    verdict, reason, printed = made.call(
        "cd /tmp/ws; cat key.pem deep/secret/k plain deep/secret/docs/readme.txt; ls deep/secret >/dev/null || "
        "echo closed; (echo x > deep/secret/new) || echo no")
    if made.cages.engine.user == "root":
        assert (verdict, printed) == ("ok", "plain read me closed no"), (verdict, reason, printed)
    else:  # memory in which a place was made is its user's own
        assert verdict == "ok" and printed.startswith("plain read me"), (verdict, reason, printed)
    assert not (made.ws / "deep/secret/docs").exists()


@pytest.mark.parametrize("name", ["crun", "runc", "gvisor"])
def test_what_lies_beneath_a_mount_of_the_host_is_not_uncovered(host, name):
    made = host(name, "cold")
    place = made.ws / "mounted"
    place.mkdir()
    (place / "beneath").write_text("BENEATH\n")
    subprocess.run(["mount", "-t", "tmpfs", "none", place], check=True)
    try:
        made = host(name, "cold", fs={"readable": [f"{made.ws}:/ws"], "writable": [], "cwd": "/"})
        assert made.call("ls /ws/mounted; echo done") == ("ok", "", "done")
    finally:
        made.close()
        subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize(("planted", "name"), [("pipe", one) for one in BARE] +
                         [(what, one) for what in ("sparse", "zero") for one in ("crun", "runc")])
def test_a_planted_passwd_stalls_no_runtime(host, planted, name):
    made = host(name, "cold", fs={"writable": [], "cwd": "/"})
    etc = made.ws / "etc"
    etc.mkdir()
    os.chown(etc, made.cages.owner, made.cages.owner)
    made.close()
    made = host(name, "cold", fs={"readable": [], "writable": [f"{etc}:/etc"], "cwd": "/"}, timeout="40s")
    assert made.call("true") == ("ok", "", "")
    if planted == "pipe":
        os.mkfifo(etc / "passwd", 0o666)
    elif planted == "sparse":
        with open(etc / "passwd", "wb") as file:
            file.truncate(3 << 30)
    else:
        (etc / "passwd").symlink_to("/dev/zero")
    begin = time.monotonic()
    verdict, reason, printed = made.call("grep -c cage: /etc/passwd")
    if planted == "zero":
        assert verdict == "error" and "a link" in reason, (verdict, reason)
    else:
        assert (verdict, printed) == ("ok", "1"), (verdict, reason)
    assert time.monotonic() - begin < 30


@pytest.mark.parametrize("name", ["crun", "crun-user", "runc", "runc-user"])
def test_a_named_pipe_that_is_granted_for_reading_takes_no_bytes(host, name):
    made = host(name, "cold", fs={"writable": [], "cwd": "/"})
    pipe = made.ws / "pipe"
    os.mkfifo(pipe)
    pipe.chmod(0o666)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        made = host(name, "cold", fs={"readable": [f"{pipe}:/pipe"], "writable": [], "cwd": "/"})
        verdict, reason, printed = made.call("(echo bytes > /pipe) 2>&1; echo done")
        assert verdict == "ok" and "denied" in printed, (verdict, reason, printed)
        with contextlib.suppress(BlockingIOError):
            assert os.read(reader, 100) == b""
    finally:
        os.close(reader)
