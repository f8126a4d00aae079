# SPDX-License-Identifier: Apache-2.0
"""Attacks that take more than one program: links and names that are exchanged between two calls, while
a cage is built, and while files are brought out; and the host's own program as the command."""

import contextlib
import os
import subprocess
import time

import pytest

from native import IS_ROOT, SLOW, TIME_SCALE
from native_run import Run, jail_host, run
from table import Attempt

pytestmark = pytest.mark.native

USERS = ["root"] if IS_ROOT and SLOW else ["user", "root"] if IS_ROOT else ["user"]
WORK = Attempt("commands")
ROUNDS = 4 if SLOW else 15


@pytest.fixture(params=USERS)
def host(request):
    with jail_host(request.param) as made:
        yield made


@contextlib.contextmanager
def swapper(host, first, second):
    """Exchanges two names of the workspace all the time."""
    process = subprocess.Popen([host.helper, "--swap", host.base / "work" / first, host.base / "work" / second],
                               stdin=subprocess.PIPE)
    try:
        yield
        assert process.poll() is None, "the accomplice gave up"
    finally:
        process.stdin.close()
        process.wait()


def make(host, name, text=None):
    """A directory or a file of the caller's in its workspace."""
    path = host.base / "work" / name
    if text is None:
        path.mkdir(parents=True)
    else:
        path.write_text(text)
    os.chown(path, host.who.uid, host.who.uid)
    return path


def link(host, name, target):
    path = host.base / "work" / name
    path.symlink_to(target)
    os.chown(path, host.who.uid, host.who.uid, follow_symlinks=False)
    return path


def shell(host, script, attempt=WORK, **options):
    return run(host, attempt, "jail", command=["/bin/sh", "-c", script], **options)


# ---- between two calls --------------------------------------------------------------------------


def test_granted_directory_replaced_by_a_link_in_an_earlier_call(host):
    """The first call may write to the workspace and puts a link where the second is granted a directory."""
    make(host, "later")
    first = shell(host, f"rmdir later && ln -s {host.base}/secret later && echo done")
    assert first.stdout == "done\n", first
    grants = {"readable": ["{work}/later"]}
    second = shell(host, "cat later/secret.txt", Attempt("second", grants=grants))
    assert not second.problems and host.token not in str(second), second
    third = shell(host, "cat /later/secret.txt", Attempt("third", grants={"readable": ["{work}/later:/later"]}))
    assert not third.problems and host.token not in str(third), third


def test_link_above_a_granted_directory_from_an_earlier_call(host):
    make(host, "a")
    make(host, "a/secret")
    first = shell(host, f"rm -r a && ln -s {host.base} a && echo done")
    assert first.stdout == "done\n", first
    second = shell(host, "cat /given/secret.txt", Attempt("second", grants={"readable": ["{work}/a/secret:/given"]}))
    assert not second.problems and host.token not in str(second), second


def test_hidden_file_cannot_be_renamed_away_for_a_later_call(host):
    """The first call moves the directory of a hidden file and leaves a false one to be hidden instead."""
    attempt = Attempt("hidden", grants={"hidden": ["{work}/sub/hidden.txt"]})
    first = shell(host, "mv sub away; mkdir -p sub; [ -e sub/hidden.txt ] || echo false >sub/hidden.txt; true", attempt)
    assert host.token not in str(first), first
    second = shell(host, "cat sub/hidden.txt away/hidden.txt", attempt)
    assert host.token not in str(second), second


def test_readable_directory_cannot_be_replaced_for_a_later_call(host):
    """A read-only directory in a writable one: its parent is not moved away either."""
    make(host, "deep")
    make(host, "deep/ro")
    make(host, "deep/ro/config", "good")
    attempt = Attempt("nested", grants={"readable": ["{work}/deep/ro"]})
    shell(host, "mv deep away; mkdir -p deep/ro; echo bad >deep/ro/config; true", attempt)
    assert (host.base / "work/deep/ro/config").read_text() == "good"


# ---- while a cage is built ----------------------------------------------------------------------


def race(host):
    """Names for an accomplice: work/a/inner is granted, and work/b leads to the secrets."""
    make(host, "a")
    make(host, "a/inner")
    make(host, "a/inner/secret.txt", "harmless")
    (host.base / "secret/inner").mkdir()
    (host.base / "secret/inner/secret.txt").write_text(host.token)
    for path in ("secret/inner", "secret/inner/secret.txt"):
        os.chown(host.base / path, host.who.uid, host.who.uid)
    link(host, "b", host.base / "secret")
    host.before = host._files()


def test_link_swaps_do_work_without_a_cage(host):
    race(host)
    seen, end = set(), time.monotonic() + 20 * TIME_SCALE
    with swapper(host, "a", "b"):
        while len(seen) < 2 and time.monotonic() < end:
            with contextlib.suppress(OSError):
                seen.add((host.base / "work/a/inner/secret.txt").read_text())
    assert seen == {"harmless", host.token}


@pytest.mark.parametrize("backend", ["jail", "process"])
def test_link_swaps_while_the_cage_is_built(host, backend):
    race(host)
    attempt = Attempt("race", grants={"readable": ["{work}/a/inner"]})
    ended = set()
    with swapper(host, "a", "b"):
        for _ in range(ROUNDS):
            outcome = run(host, attempt, backend, command=["/bin/cat", str(host.base / "work/a/inner/secret.txt")])
            assert host.token not in str(outcome), outcome
            ended.add(outcome.verdict)
    assert ended <= {"ok", "failed", "error"}


# ---- while files are brought out ----------------------------------------------------------------


OUTPUTS = Attempt("outputs", policy={"outputs": ["{work}/out/**"]})


def collected(directory):
    """Everything that was saved, as text."""
    text = ""
    for path in directory.rglob("*"):
        assert not path.is_symlink() and (path.is_dir() or path.is_file()), path
        if path.is_file():
            text += path.read_text(errors="replace")
    return text


def out_directory(host):
    out = host.base / "host/out"
    out.mkdir()
    os.chown(out, host.who.uid, host.who.uid)
    return out


def test_links_and_devices_are_not_brought_out(host):
    out = out_directory(host)
    script = (f"mkdir -p out/real && echo fine >out/real/file && ln -s {host.base}/secret/secret.txt out/link && "
              f"ln -s {host.base}/secret out/directory && ln -s /proc/self/root{host.base}/secret out/magic && "
              f"ln -s ../../secret/secret.txt out/relative && mkfifo out/fifo && "
              "ln -s /dev/zero out/endless && ln -s . out/loop && echo done")
    outcome = shell(host, script, OUTPUTS, options=["--out", str(out)])
    assert outcome.stdout == "done\n" and outcome.verdict == "ok", outcome
    assert collected(out) == "fine\n"
    assert [file["path"].rsplit("/", 1)[1] for file in outcome.result["files"]] == ["file"], outcome
    assert not outcome.problems, outcome


def test_link_swaps_while_files_are_brought_out(host):
    """An accomplice outside exchanges a file for a link, and a directory for a link, all the time."""
    make(host, "out")
    make(host, "out/file", "fine")
    link(host, "file-link", host.base / "secret/secret.txt")
    make(host, "out/d")
    make(host, "out/d/secret.txt", "fine")
    link(host, "directory-link", host.base / "secret")
    out = out_directory(host)
    with swapper(host, "out/file", "file-link"), swapper(host, "out/d", "directory-link"):
        for _ in range(ROUNDS):
            outcome = shell(host, "true", OUTPUTS, options=["--out", str(out)])
            assert outcome.verdict in ("ok", "error"), outcome
            assert host.token not in str(outcome), outcome
            assert host.token not in collected(out)


def test_saved_files_do_not_follow_links_in_the_out_directory(host):
    """A link that lies where a file is to be saved is replaced, not followed."""
    out = out_directory(host)
    (out / host.base.relative_to("/") / "work/out").mkdir(parents=True)
    for path in [out, *out.rglob("*")]:
        os.chown(path, host.who.uid, host.who.uid)
    for directory in [out, *(path for path in out.rglob("*") if path.is_dir())]:
        (directory / "file").symlink_to(host.base / "secret/secret.txt")
    outcome = shell(host, "mkdir out && echo CHANGED >out/file", OUTPUTS, options=["--out", str(out)])
    assert not outcome.problems and outcome.verdict in ("ok", "error"), outcome


# ---- programs and terminals ---------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["jail", "process"])
@pytest.mark.parametrize("program", ["/proc/self/exe", "/proc/1/exe", "/proc/thread-self/exe", "/proc/self/fd/3"])
def test_the_hosts_own_program_is_not_the_command(host, program, backend):
    """A command that names the program of whoever builds the cage must not get at it."""
    outcome = run(host, WORK, backend, command=[program, "--version"])
    assert outcome.verdict not in ("ok", "") and not outcome.problems, outcome
    assert "toolcage" not in outcome.stdout


@pytest.mark.parametrize("name", ["tiocsti", "tiocsti-high-bit", "tiocsti-high-bits"])
@pytest.mark.parametrize("options", [["--tty"], []])
def test_nothing_is_typed_into_the_callers_terminal(host, name, options):
    """Also where the command has a terminal: it is one of its own, and TIOCSTI is refused on it too."""
    outcome = Run(host, Attempt(name, caller="t"), "jail", options=options).outcome
    assert not outcome.problems and "ESCAPED" not in outcome.stdout + outcome.stderr, outcome
    assert "held" in outcome.stdout + outcome.stderr, outcome
