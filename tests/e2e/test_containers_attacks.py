# SPDX-License-Identifier: Apache-2.0
"""What a hostile tool has tried against containers of bare runtimes and gVisor, kept so that it goes on failing: files
that come back although they are hidden, setuid files in a granted directory, descriptors that fill the kernel's account
of a user, pseudo-terminals and keys that are used up, named pipes, the first process of a container, and children that may not be killed.
"""

import contextlib
import os
import resource
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from container_lab import cages_of
from native import IS_ROOT, SLOW, TIME_SCALE, processes

pytestmark = pytest.mark.container

BARE = ["crun"] if SLOW else ["crun", "runc", "gvisor"]
CRUN_RUNC = ["crun"] if SLOW else ["crun", "runc"]
NOBODY = 2000000000  # as whom root's tools run on the host
FILES = 1024


@pytest.fixture
def cages(lab, request):
    return cages_of(lab, request.param)


def on(*names):
    return pytest.mark.parametrize("cages", names, indirect=True)


def paths(outcome):
    return {file["path"] for file in outcome.result["files"]}


# ---- files that come back -------------------------------------------------------------------------


@pytest.fixture
def workspace(cages):
    """A directory that a tool may write to, with something hidden and something else granted in it."""
    place = cages.place / "work/attacked"
    for part in ("", "secret", "keys", "keys/private", "other"):
        (place / part).mkdir()
    (place / "secret/k").write_text("TOP SECRET\n")
    (place / "keys/private/k").write_text("TOP SECRET\n")
    (place / "key.pem").write_text("TOP SECRET\n")
    (place / "other/covered").write_text("TOP SECRET\n")
    (place / "seen").write_text("seen\n")
    for path in [place, *place.rglob("*")]:
        os.chown(path, cages.owner, cages.owner)
    yield {"writable": [f"{place}:/w"], "hidden": ["/w/secret", "/w/keys/private", "/w/key.pem"],
           "readable": [f"{cages.place}/docs:/w/other"], "cwd": "/w"}
    subprocess.run(["rm", "-rf", place], check=True)


def assert_nothing_hidden(outcome, out):
    assert {"/w/seen", "/w/other/readme.txt"} <= paths(outcome), outcome
    assert not {path for path in paths(outcome) if "secret" in path or path.endswith(("/k", "covered"))}, outcome
    saved = [path.read_text() for path in out.rglob("*") if path.is_file()]
    assert "seen\n" in saved
    assert not any("TOP SECRET" in text for text in saved), outcome


@on(*BARE, *([] if SLOW else ["gvisor-user"]))
def test_outputs_bring_back_nothing_that_is_hidden(cages, workspace, tmp_path):
    tmp_path.chmod(0o777)
    for directory in tmp_path.parents:
        with contextlib.suppress(PermissionError):
            directory.chmod(directory.stat().st_mode | 0o011)
    outcome = cages.result("sh", "-c", "mv /w/keys /w/moved; cat /w/key.pem /w/secret/k; echo seen > /w/new/x; true",
                           flags=("--out", tmp_path / "out"), fs=workspace, outputs=["/w/**"])
    assert outcome.verdict == "ok" and "SECRET" not in outcome.stdout, outcome
    assert_nothing_hidden(outcome, tmp_path / "out")


@on("gvisor")
def test_files_that_cannot_be_reached_are_not_said_to_be_none(cages):
    outcome = cages.result("sh", "-c", "echo x > /dev/shm/x", outputs=["/dev/shm/*"])
    assert outcome.verdict == "error" and "could not be brought back" in outcome.result["reason"], outcome


# ---- descriptors on their way ----------------------------------------------------------------------

HOG = """
import array, os, socket, sys, time
resource = __import__("resource")
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]),) * 2)
fd, pairs, count = os.open("/dev/null", os.O_RDONLY), [], 0
try:
    while True:
        pairs.append(socket.socketpair())
        pairs[-1][0].setblocking(False)
        try:
            while True:
                pairs[-1][0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd] * 250))])
                count += 250
        except BlockingIOError:
            pass
except OSError:
    pass
print(count, flush=True)
time.sleep(float(sys.argv[1]))
"""


@contextlib.contextmanager
def descriptors_on_their_way(uid, seconds):
    """A process of this user that keeps as many in its sockets as its limit allows; ours is no higher."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, before[1]))
    hog = subprocess.Popen([sys.executable, "-c", HOG, str(seconds), str(FILES)], stdout=subprocess.PIPE,
                           user=uid if IS_ROOT else None, group=uid if IS_ROOT else None,
                           extra_groups=[] if IS_ROOT else None, cwd="/")
    try:
        assert int(hog.stdout.readline()) > FILES
        yield
    finally:
        hog.kill()
        hog.communicate()
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@on(*CRUN_RUNC)
def test_files_come_back_while_no_descriptor_can_be_sent(cages, workspace, tmp_path):
    """Entry's own handle on its root cannot be sent; neither are files lost then, nor is the wrong tree looked at."""
    with descriptors_on_their_way(NOBODY, 60 * TIME_SCALE):
        outcome = cages.result("sh", "-c", "echo made > /tmp/made", flags=("--out", tmp_path / "out"), fs=workspace,
                               outputs=["/w/**", "/tmp/made"])
    assert outcome.verdict == "ok", outcome
    assert "/tmp/made" in paths(outcome), outcome
    assert_nothing_hidden(outcome, tmp_path / "out")


@on("runc-user")
def test_a_call_waits_until_its_streams_can_be_sent(cages):
    with descriptors_on_their_way(cages.caller.uid, 1):
        outcome = cages.result("echo", "here", timeout=f"{int(20 * TIME_SCALE)}s")
    assert outcome.verdict == "ok" and outcome.stdout == "here\n", outcome
    assert outcome.seconds > 0.5, outcome
    with descriptors_on_their_way(cages.caller.uid, 60 * TIME_SCALE):
        outcome = cages.result("echo", "here", timeout="1s")
    assert outcome.verdict == "error", outcome
    assert "too many descriptors" in outcome.result["reason"], outcome


@on("crun")
def test_a_tools_limit_on_files_leaves_room_for_the_others(cages):
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, before[1]))
    try:
        assert int(cages.shell("ulimit -n", files=100000).stdout) < FILES - 253
        assert int(cages.shell("ulimit -n", files=100).stdout) == 100
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


# ---- what all users and cages of the host share ------------------------------------------------------

TERMINALS = """
i=0
while [ $i -lt 80 ]; do
    eval "exec $((i + 10))<>/dev/ptmx"
    i=$((i + 1))
    echo $i
done
"""


@on(*CRUN_RUNC)
def test_a_tool_cannot_take_every_pseudo_terminal(cages):
    outcome = cages.result("sh", "-c", TERMINALS)
    assert outcome.stdout.split()[-1] == "64", outcome
    assert "No space left on device" in outcome.stderr, outcome


@on(*CRUN_RUNC, *([] if SLOW else ["crun-user"]))
def test_a_tool_cannot_take_every_signal_that_may_wait(cages):
    """Their number is the user's; who has taken all leaves no timer to his other programs."""
    words = cages.shell("grep 'Max pending signals' /proc/self/limits").stdout.split()
    assert 0 < int(words[4]) <= 1024 and words[3] == words[4], words


# ---- files on the host ------------------------------------------------------------------------------


@on(*BARE)
def test_no_setuid_file_appears_on_the_host_whatever_the_tool_may_gain(cages):
    cages.result("sh", "-c", "for mode in 4755 2755 6755; do cp /bin/busybox /work/su$mode; chmod $mode /work/su$mode;"
                 " done", container={"no_new_privileges": False})
    made = list((cages.place / "work").glob("su*"))
    assert len(made) == 3
    for path in made:
        assert not path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID), path
        path.unlink()


@on(*CRUN_RUNC)
def test_a_root_that_may_be_written_is_memory_of_one_call(cages):
    script = "echo made > /made && cat /made; mkdir /bin/made"
    for _ in range(2):
        outcome = cages.result("sh", "-c", f"ls /made; {script}", container={"read_only_rootfs": False})
        assert outcome.stdout == "made\n" and "No such file" in outcome.stderr, outcome
        # What is root's in the image stays root's: the container does not know that user.
        assert "Permission denied" in outcome.stderr, outcome
    assert not (cages.lab.rootfs() / "made").exists()


@pytest.fixture
def pipe(cages):
    path = cages.place / "docs/pipe"
    os.mkfifo(path)
    path.chmod(0o666)
    fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    yield path, fd
    os.close(fd)
    path.unlink()


@on(*CRUN_RUNC, *([] if SLOW else ["crun-user"]))
def test_a_pipe_that_may_be_read_is_not_written(cages, pipe):
    path, fd = pipe
    for granted, where in ((f"{path}:/pipe", "/pipe"), (f"{path.parent}:/d", "/d/pipe")):
        outcome = cages.result("sh", "-c", f"echo out > {where}", fs={"readable": [granted]})
        assert outcome.verdict == "failed" and "ermission denied" in outcome.stderr, outcome
    with pytest.raises(BlockingIOError):
        os.read(fd, 10)
    outcome = cages.result("true", fs={"readable": [f"{path}:/pipe"]}, container={"read_only_rootfs": False})
    assert outcome.verdict == "error" and "named pipe" in outcome.result["reason"], outcome


@on(*CRUN_RUNC)
def test_scratch_holds_no_more_files_than_pages(cages):
    outcome = cages.result("sh", "-c", "i=0; while [ $i -lt 500 ]; do : > /tmp/$i || exit 1; i=$((i + 1)); done",
                           fs={"scratch": "1MB"})
    assert outcome.verdict == "failed" and "No space left" in outcome.stderr, outcome


# ---- processes -----------------------------------------------------------------------------------------


@on("gvisor")
def test_who_kills_gvisors_first_process_has_ended_its_own_call(cages):
    outcome = cages.result("sh", "-c", "echo here; kill -9 1; sleep 60")
    assert outcome.verdict == "signaled" and outcome.result["signal"] == "SIGKILL", outcome
    assert outcome.stdout == "here\n"


@on("crun")
def test_who_became_another_user_does_not_outlive_the_command(cages):
    script = ("import os, time\nreader, writer = os.pipe()\nif os.fork() == 0:\n    os.setuid(0)\n    os.setsid()\n"
              "    print('became', os.getuid())\n    os.sys.stdout.flush()\n    os.write(writer, b'x')\n"
              "    time.sleep(123.25)\nos.read(reader, 1)")
    libraries = [f"/usr/{name}:/{name}" for name in ("lib", "lib64") if os.path.isdir(f"/usr/{name}")]
    outcome = cages.result(os.path.realpath(sys.executable), "-c", script, fs={"readable": ["/usr", *libraries]},
                           container={"cap_add": ["SETUID"]}, timeout=f"{int(15 * TIME_SCALE)}s")
    assert outcome.verdict == "ok" and outcome.stdout == "became 0\n", outcome
    assert not [command for _, _, command in processes().values() if "sleep(123.25)" in command]


@pytest.mark.skipif(not IS_ROOT, reason="only root has groups to give up")
@on("gvisor")
def test_gvisor_of_root_has_none_of_roots_groups(cages):
    before = os.getgroups()
    os.setgroups([0, 4, 42])
    try:
        process = cages.start("exec", "--policy", cages.policy(), "--tool", "t", "--", "sh", "-c", "echo up; sleep 60")
    finally:
        os.setgroups(before)
    try:
        assert process.stdout.readline() == b"up\n"
        groups = dict(sandbox_groups(process.pid))
        assert groups and not any(groups.values()), groups
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20 * TIME_SCALE)


def sandbox_groups(top):
    """(pid, groups) of the processes below this one that are not root's any more."""
    family, everybody = {top}, processes()
    while more := {pid for pid, (parent, _, _) in everybody.items() if parent in family} - family:
        family |= more
    for pid in family:
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{pid}/status").read_text()
            fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
            if fields["Uid"].split()[0] == str(NOBODY):
                yield pid, fields["Groups"].split()


# ---- keys of the kernel ---------------------------------------------------------------------------

KEYS = """
import ctypes, errno, platform, sys, time
add_key = {"x86_64": 248, "aarch64": 217}[platform.machine()]
call, count, refused = ctypes.CDLL(None, use_errno=True).syscall, 0, 0
while refused < 20:  # for a while: keys of ended processes are taken back with time
    if call(add_key, b"user", b"toolcage-%d" % count, b"x", ctypes.c_size_t(1), -2) >= 0:
        count, refused = count + 1, 0
    elif ctypes.get_errno() == errno.EDQUOT:
        refused += 1
        time.sleep(0.01)
print(count, flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def no_key_left(uid):
    """A process of this user that has all the keys that its user may have."""
    with subprocess.Popen([sys.executable, "-c", KEYS], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          user=uid if IS_ROOT else None, group=uid if IS_ROOT else None,
                          extra_groups=[] if IS_ROOT else None, cwd="/") as hog:
        assert int(hog.stdout.readline()) > 100
        yield


@on("crun-user", *([] if SLOW else ["runc-user"]))
def test_a_call_works_while_its_user_has_no_key_left(cages):
    assert cages.result("true").verdict == "ok"
    with no_key_left(cages.owner):
        outcome = cages.result("cat", "/proc/keys")
    assert outcome.verdict == "ok" and outcome.stdout == "", outcome
