# SPDX-License-Identifier: Apache-2.0
"""What a bare runtime (crun, runc, runsc) finds around it is the stage's making: mount points where an image has links,
an image and a host that are never written to, the runtime's own words in an error, and nothing that outlives the
supervisor, also when the runtime hangs."""

import hashlib
import json
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from conftest import skip_or_fail
from native import IS_ROOT, TIME_SCALE, TOOLCAGE, processes

pytestmark = pytest.mark.container

RUNTIMES = ["crun", "runc", "runsc"]
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


class Place:
    """A root directory with busybox in it, a workspace, and calls of toolcage with one runtime."""

    def __init__(self, base, runtime):
        self.base, self.runtime = base, runtime
        self.root, self.workspace, self.programs = base / "root", base / "ws", base / "programs"
        for path in (self.root / "bin", self.root / "etc", self.workspace, self.programs):
            path.mkdir(parents=True)
        shutil.copy("/bin/busybox", self.root / "bin/busybox")
        for name in ("sh", "cat", "ls", "id", "touch", "dd", "sleep", "true"):
            (self.root / "bin" / name).symlink_to("busybox")

    def policy(self, more="", writable=None):
        backend = ('backend = "gvisor"' if self.runtime == "runsc" else
                   f'backend = "oci"\ncontainer = {{ engine = "none", runtime = "{self.runtime}" }}')
        grants = json.dumps(writable or [f"{self.workspace}:/ws"])
        path = self.base / "policy.toml"
        path.write_text(f'version = 1\n[defaults]\n{backend}\nrootfs = "{self.root}"\nmemory = "unlimited"\n'
                        f'cpu = "unlimited"\npids = "unlimited"\nfilesystem = {{ writable = {grants} }}\n{more}\n')
        return path

    def words(self, script, policy):
        return [TOOLCAGE, "exec", "--json", "--policy", policy, "--", "/bin/sh", "-c", script]

    def environment(self):
        return {"PATH": f"{self.programs}:{PATH}", "HOME": str(self.base)}

    def call(self, script, policy=None, **options):
        done = subprocess.run(self.words(script, policy or self.policy()), stdin=subprocess.DEVNULL, check=False,
                              capture_output=True, timeout=60 * TIME_SCALE, env=self.environment(), **options)
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    def replace_runtime(self, script):
        """A program of that name which is found first."""
        program = self.programs / self.runtime
        program.write_text("#!/bin/sh\n"
                           f'case "$*" in *version*) exec /usr/bin/env PATH={PATH} {self.runtime} "$@";; esac\n{script}\n')
        program.chmod(0o755)


def place_of(runtime):
    """Not in /tmp: that is the stage's own place, and a script that lies there cannot be a runtime."""
    if not shutil.which(runtime, path=PATH) or not os.path.exists("/bin/busybox"):
        skip_or_fail("gvisor" if runtime == "runsc" else "oci", f"{runtime} or busybox is missing")
    with tempfile.TemporaryDirectory(prefix="toolcage-stage-", dir="/var/tmp") as base:
        os.chmod(base, 0o755)  # for the user that root's cages run as
        yield Place(Path(base), runtime)


@pytest.fixture(name="place", params=RUNTIMES)
def any_place(request):
    yield from place_of(request.param)


@pytest.fixture(name="crun")
def crun_place():
    yield from place_of("crun")


def print_of(directory):
    """A hash over names, kinds, modes, times and content."""
    digest = hashlib.sha256()
    for path in sorted(directory.rglob("*")):
        status = path.lstat()
        digest.update(f"{path} {status.st_mode} {status.st_mtime_ns} {status.st_ino}".encode())
        if stat.S_ISREG(status.st_mode):
            digest.update(path.read_bytes())
    return digest.hexdigest()


# ---- mount points ---------------------------------------------------------------------------------


def test_link_of_an_image_at_a_mount_point_is_covered_and_not_followed(place):
    (place.root / "ws").symlink_to("/etc")
    (place.root / "proc").symlink_to("../../../../tmp")
    (place.root / "etc/passwd").symlink_to("/ws/planted")
    (place.workspace / "word").write_text("granted\n")
    before = print_of(place.root)
    result = place.call("cat /ws/word; ls /etc; cat /etc/passwd; cat /proc/self/comm; touch /ws/made; ls -d /ws/planted")
    assert result["verdict"] == "failed", result  # of the last word: nothing was planted
    assert result["stdout"].startswith("granted\n") and "cat\n" in result["stdout"], result
    assert "cage" in result["stdout"] or "root" in result["stdout"], result
    assert (place.workspace / "made").exists()
    assert print_of(place.root) == before


def test_link_of_an_image_on_the_way_to_a_mount_point_is_refused(place):
    (place.root / "var").symlink_to("/etc")
    before = print_of(place.root)
    result = place.call("true", place.policy(writable=[f"{place.workspace}:/var/ws"]))
    assert result["verdict"] == "error"
    assert "/var/ws cannot be mounted" in result["reason"] and "a link on the way" in result["reason"], result
    assert print_of(place.root) == before


def test_file_where_a_directory_is_granted_is_an_error(crun):
    (crun.root / "ws").write_text("a file")
    result = crun.call("true")
    assert result["verdict"] == "error" and "a file at its place" in result["reason"], result


def test_grant_below_scratch_is_there(place):
    (place.workspace / "word").write_text("granted\n")
    result = place.call("cat /tmp/deep/ws/word; echo more > /tmp/other && echo fine",
                        place.policy(writable=[f"{place.workspace}:/tmp/deep/ws"]))
    assert result["stdout"] == "granted\nfine\n", result


# ---- the image and the host -----------------------------------------------------------------------


def test_writable_root_is_memory_and_the_image_stays_as_it_is(place):
    before = print_of(place.root)
    container = '' if place.runtime == "runsc" else f', engine = "none", runtime = "{place.runtime}"'
    policy = place.policy()
    text = "\n".join(line for line in policy.read_text().splitlines() if not line.startswith("container"))
    policy.write_text(text + f'\ncontainer = {{ read_only_rootfs = false{container} }}\ndisk = "4MB"\n')
    script = "echo new > /bin/new && cat /bin/new; dd if=/dev/zero of=/big bs=1M count=64 2>/dev/null || echo full"
    if IS_ROOT:  # what an image of root's holds is root's: only its own user may write to it
        for path in (place.root, place.root / "bin"):
            path.chmod(0o777)
        before = print_of(place.root)
    result = place.call(script, policy)
    assert "new\n" in result["stdout"], result
    assert "full" in result["stdout"] or result["verdict"] in ("disk", "signaled"), result
    assert print_of(place.root) == before


def test_null_device_of_the_host_stays_roots(place):
    before = os.stat("/dev/null")
    assert place.call("true")["verdict"] == "ok"
    after = os.stat("/dev/null")
    assert (after.st_uid, after.st_gid, after.st_mode) == (before.st_uid, before.st_gid, before.st_mode)


def test_umask_of_the_caller_does_not_matter(place):
    result = place.call("cat /etc/passwd; ls -ld /ws", preexec_fn=lambda: os.umask(0o777))
    assert result["verdict"] == "ok" and "cage" in result["stdout"], result


# ---- errors ---------------------------------------------------------------------------------------


def test_last_words_of_a_runtime_are_shown_without_control_characters(crun):
    crun.replace_runtime(r"""printf 'first\n\033[31mred\007 \303\251 words\n\n' >&2; exit 3""")
    result = crun.call("true")
    assert result["verdict"] == "error"
    assert result["reason"] == "crun could not run the container: ?[31mred? ?? words", result


def test_flood_of_words_is_cut(crun):
    crun.replace_runtime("i=0; while [ $i -lt 600 ]; do echo a line of words that nobody reads >&2; i=$((i+1)); done; "
                         "echo the end >&2; exit 1")
    result = crun.call("true")
    assert result["reason"] == "crun could not run the container: the end", result


def test_runtime_that_was_killed_is_named(crun):
    crun.replace_runtime("kill -9 $$")
    result = crun.call("true")
    assert result["verdict"] == "error" and "signal 9" in result["reason"], result


def test_root_that_cannot_be_covered_is_an_error(crun):
    crun.root = "/proc"
    result = crun.call("true")
    assert result["verdict"] == "error", result
    assert "overlay" in result["reason"] or "mounted" in result["reason"], result


# ---- the end --------------------------------------------------------------------------------------


def of_this(place):
    """Processes that know the name of the place's runtime, or were started for its cages."""
    return {pid: command for pid, (_, _, command) in processes().items() if str(place.base) in command}


@pytest.mark.parametrize("ending", [signal.SIGKILL, None], ids=["killed", "timeout"])
def test_runtime_that_hangs_ends_with_its_owner(crun, ending):
    crun.replace_runtime("while :; do sleep 1; done")
    policy = crun.policy('timeout = "700ms"' if ending is None else "")
    with subprocess.Popen(crun.words("true", policy), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          env=crun.environment()) as owner:
        until = time.monotonic() + 20 * TIME_SCALE
        while not any("programs/crun --root" in one for one in of_this(crun).values()):
            assert time.monotonic() < until, "the runtime was not started"
            time.sleep(0.005)
        if ending is not None:
            owner.send_signal(ending)
        said = owner.communicate(timeout=30 * TIME_SCALE)[0]
    assert ending is not None or json.loads(said)["verdict"] in ("timeout", "error"), said
    while of_this(crun):
        assert time.monotonic() < until, of_this(crun)
        time.sleep(0.01)
