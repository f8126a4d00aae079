# SPDX-License-Identifier: Apache-2.0
"""What an engine mounts and starts although nobody asked for it: attempts against engines, kept so that they go on
failing. A mount of the host below a readable path that may be written to, a link that takes the place of a mount, links
and annotations of an image; and an engine that is killed, or that counts alone."""

import contextlib
import hashlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from container_lab import BY_NAME, SANITIZER, Cages, cages_of, checked
from native import IS_ROOT, PROGRAMS, SLOW, TIME_SCALE

pytestmark = pytest.mark.container

ROOTFUL = ["docker"] if SLOW else ["docker", "podman"]
SECRET = "PRIVATE KEY"


@pytest.fixture
def cages(lab, request):
    return cages_of(lab, request.param)


def on(*names):
    return pytest.mark.parametrize("cages", names, indirect=True)


@pytest.fixture
def place(cages):
    """A directory of the owner of what is granted, unmounted and removed in the end."""
    cages.lab.count += 1
    made = cages.lab.base / f"mounts-{cages.lab.count}"
    made.mkdir()
    yield made
    shutil.rmtree(made)


def make(cages, *paths):
    for path in paths:
        path.mkdir()
        os.chown(path, cages.owner, cages.owner)
        path.chmod(0o755)


@contextlib.contextmanager
def mounted(cages, path):
    """Memory, on the host; the owner's. In whatever directory it is in the end."""
    options = f"mode=0755,uid={cages.owner},gid={cages.owner}"
    checked("mount", "-t", "tmpfs", "-o", options, "tmpfs", path)
    handle = os.open(path, os.O_PATH)
    try:
        yield
    finally:
        where = os.readlink(f"/proc/self/fd/{handle}")
        os.close(handle)
        checked("umount", where)


@contextlib.contextmanager
def mounted_for_podman(cages, path):
    """The same where only rootless Podman sees it: no list that toolcage could make has it."""
    def unshared(*words):
        done = cages.account.run("podman", "unshare", *words)
        assert done.returncode == 0, done.stderr
    unshared("mount", "-t", "tmpfs", "-o", "mode=0755", "tmpfs", path)
    try:
        yield
    finally:
        unshared("umount", path)


@contextlib.contextmanager
def kept(cages, policy):
    """Calls of a host that keeps its plans: (verdict, reason, stdout) of a tool's script."""
    driver = cages.lab.base / "kept-driver"
    if not driver.exists():
        shutil.copy(PROGRAMS / "kept-driver", driver)
    process = subprocess.Popen([*map(str, (*cages.caller.prefix, driver, policy, "cold"))], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True, cwd=cages.place, env=cages.environment | SANITIZER,
                               preexec_fn=cages.caller.become)

    def call(script, tool="t"):
        process.stdin.write(f"{tool} {script}\n")
        process.stdin.flush()
        line = process.stdout.readline()
        assert line, "the driver ended"
        return tuple(part.strip() for part in line.split("\t"))
    try:
        yield call
    finally:
        process.stdin.close()
        try:
            process.wait(timeout=30 * TIME_SCALE)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


# ---- written to although it is granted for reading --------------------------------------------------

WRITE = ("touch /data/sub/made; mkdir /data/sub/made; ln -s / /data/sub/made; touch /data/out/made && echo out; "
         "touch /tmp/made && echo tmp; ls /data/sub; cat /data/docs/readme.txt")


@on("podman-user")
def test_nothing_below_a_readable_path_can_be_written_to(cages, place):
    real = place / "real"
    make(cages, real, real / "sub", real / "out", real / "docs")
    (place / "link").symlink_to("real")
    with mounted_for_podman(cages, real / "sub"):
        for name in ("real", "link"):
            fs = {"readable": [f"{place}/{name}:/data", f"{cages.place}/docs:/data/docs"],
                  "writable": [f"{real}/out:/data/out"], "cwd": "/"}
            outcome = cages.shell(WRITE, fs=fs)
            assert outcome.stdout.split()[:2] == ["out", "tmp"] and "made" not in outcome.stdout, outcome
            assert outcome.stderr.count("Read-only file system") == 3, outcome
            assert (real / "out/made").exists()


@on("podman-user")
def test_a_mount_that_comes_after_the_plan_cannot_be_written_to(cages, place):
    make(cages, place / "real", place / "real/late")
    policy = cages.policy(fs={"readable": [f"{place}/real:/data"], "writable": None, "cwd": "/"})
    with kept(cages, policy) as call:
        assert call("ls /data") == ("ok", "", "late")
        with mounted_for_podman(cages, place / "real/late"):
            script = "grep -c ' /data/late ro,' /proc/self/mountinfo; touch /data/late/x && echo wrote"
            verdict, _, stdout = call(script)
            assert (verdict, stdout) == ("failed", "1")


@on(*ROOTFUL)
def test_a_link_to_a_readable_path_shows_no_more_than_the_path(cages, place):
    """What lies beneath a mount of the host stays covered."""
    make(cages, place / "real", place / "real/sub")
    (place / "real/sub/beneath").write_text("COVERED\n")
    (place / "link").symlink_to("real")
    with mounted(cages, place / "real/sub"):
        (place / "real/sub/mounted").touch()
        fs = {"readable": [f"{place}/link:/data"], "writable": None, "cwd": "/"}
        outcome = cages.shell("ls /data/sub; touch /data/sub/x; true", fs=fs)
        assert outcome.stdout == "mounted\n" and "Read-only" in outcome.stderr, outcome


# ---- a link in the place of a mount ------------------------------------------------------------------


@pytest.fixture
def project(cages, place):
    """A directory that one tool writes to and another one reads, with a mount of the host two levels down; and one that
    nobody was granted. (policy, the words that put a link to it in the place of the mount)"""
    project, secret = place / "project", place / "secret"
    make(cages, project, project / "x", project / "x/y", secret)
    (secret / "key").write_text(f"{SECRET}\n")
    (secret / "key").chmod(0o644)
    tools = {"t": {"fs": {"readable": [f"{project}:/p"], "writable": None, "cwd": "/"}},
             "w": {"fs": {"readable": None, "writable": [f"{project}:/p"], "cwd": "/"}}}
    with mounted(cages, project / "x/y"):
        yield cages.policy(tools), lambda top: f"mv {top}/x {top}/old && mkdir {top}/x && ln -s {secret} {top}/x/y"


READ = "cat /p/x/y/key /p/old/y/key 2>/dev/null; echo done"


@on(*ROOTFUL, "podman-user")
def test_a_link_in_the_place_of_a_mount_leads_nowhere(cages, project):
    policy, exchange = project
    with kept(cages, policy) as call:
        assert call(READ) == ("ok", "", "done")
        assert call(f"{exchange('/p')} && echo planted", "w") == ("ok", "", "planted")
        assert call(READ) == ("ok", "", "done")


class Between:
    """An engine's socket that does something before the engine hears of a request."""

    def __init__(self, path, engine, word, action):
        self.path, self.engine, self.word, self.action = str(path), engine, word, action
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(self.path)
        self.listening.listen(16)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                client = self.listening.accept()[0]
                server = socket.socket(socket.AF_UNIX)
                server.connect(self.engine)
                for one, other in ((client, server), (server, client)):
                    threading.Thread(target=self.pump, args=(one, other), daemon=True).start()

    def pump(self, one, other):
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                if data.startswith(b"POST ") and self.word in data.split(b"\r\n")[0] and self.action:
                    action, self.action = self.action, None
                    action()
                other.sendall(data)
        with contextlib.suppress(OSError):
            other.shutdown(socket.SHUT_WR)

    def close(self):
        with contextlib.suppress(OSError):
            self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()


@on(*ROOTFUL)
def test_a_link_that_takes_the_place_of_a_mount_in_the_last_moment_is_refused(cages, project, place, monkeypatch):
    """After everything was checked, and before the engine mounts."""
    policy, exchange = project
    between = Between(place / "engine.sock", cages.api.path, b"/containers/create",
                      lambda: checked("sh", "-c", exchange(place / "project")))
    name = "DOCKER_HOST" if cages.engine.kind == "docker" else "CONTAINER_HOST"
    monkeypatch.setitem(cages.environment, name, f"unix://{between.path}")
    try:
        outcome = cages.result("sh", "-c", READ, policy=policy)
    finally:
        between.close()
    assert between.action is None
    assert SECRET not in outcome.stdout and outcome.verdict == "error", outcome
    assert "/p/x/y in the container is not the" in outcome.result["reason"], outcome


# ---- what an image says to the runtime ---------------------------------------------------------------


def write_image(lab, directory, name, annotations):
    """DIRECTORY.tar: the lab's image in the layout of the OCI, with these annotations in its manifest."""
    def blob(kind, data):
        digest = hashlib.sha256(data).hexdigest()
        (directory / "blobs/sha256" / digest).write_bytes(data)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(data)}

    (directory / "blobs/sha256").mkdir(parents=True)
    layer = blob("layer.v1.tar", lab.archive().read_bytes())
    # Another image each time: what it is called by does not depend on its annotations.
    config = {"architecture": "amd64", "os": "linux", "config": {"Env": [f"OF={directory.name}"]},
              "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]}}
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "config": blob("config.v1+json", json.dumps(config).encode()), "layers": [layer],
                "annotations": annotations}
    (directory / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    entry = blob("manifest.v1+json", json.dumps(manifest).encode())
    entry["annotations"] = {"org.opencontainers.image.ref.name": name}
    (directory / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [entry]}))
    checked("tar", "-C", directory, "-cf", f"{directory}.tar", ".")


@on("podman-user")
def test_an_image_tells_the_runtime_nothing(cages, place, monkeypatch):
    """crun would take its system call filter from there, and files of the host to write to."""
    harmless = {"org.opencontainers.image.title": "x", "org.label-schema.name": "y", "io.buildah.version": "1"}
    for number, more in enumerate(({}, {"run.oci.seccomp_bpf_data": "BgAAAAAA/38="})):
        name = f"localhost/annotated:{number}"
        write_image(cages.lab, place / f"image-{number}", name, harmless | more)
        done = cages.account.run("podman", "load", "--input", place / f"image-{number}.tar")
        assert done.returncode == 0, done.stderr
        monkeypatch.setitem(cages.root, "image", name)
        outcome = cages.result("true")
        if not more:
            assert outcome.verdict == "ok", outcome
            continue
        assert outcome.verdict == "error", outcome
        assert '"run.oci.seccomp_bpf_data"' in outcome.result["reason"], outcome
        assert "without it" in outcome.result["fix"], outcome


@on("podman")
def test_podman_does_not_pass_for_docker(cages, monkeypatch):
    """What it hands to its runtime it does not say there."""
    monkeypatch.setitem(cages.environment, "DOCKER_HOST", cages.environment["CONTAINER_HOST"])
    outcome = cages.result("true", container={"engine": "docker"})
    assert outcome.verdict == "error" and "is Podman's socket" in outcome.result["reason"], outcome


# ---- an image's links ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def linked(lab):
    """Root directories as archives: with a link at the place of toolcage's own directory, and with one that leads
    there."""
    made = {}
    for name, link, target in (("own", ".toolcage", "/work"), ("grant", "work", "/.toolcage")):
        tree = lab.base / f"linked-{name}"
        checked("cp", "-a", lab.rootfs(), tree)
        (tree / link).symlink_to(target)
        made[name] = lab.base / f"linked-{name}.tar"
        checked("tar", "-C", tree, "-cf", made[name], ".")
        checked("rm", "-rf", tree)
    return made


@on("podman", *([] if SLOW else ["docker"]))
@pytest.mark.parametrize("name", ["own", "grant"])
def test_an_images_link_starts_no_program_of_the_tools(cages, linked, monkeypatch, name):
    image, work = f"localhost/linked-{name}:1", cages.place / "work"
    query = f"/v4.0.0/libpod/images/import?reference={image}" if cages.engine.kind == "podman" else ""
    cages.api.load(linked[name], image, (), query)
    monkeypatch.setitem(cages.root, "image", image)
    (work / "entry").write_text("#!/bin/sh\ntouch /work/ran\n")
    (work / "entry").chmod(0o755)
    try:
        outcome = cages.result("sh", "-c", "echo ran in its cage")
        assert not (work / "ran").exists()
        assert outcome.stdout == "ran in its cage\n", outcome
    finally:
        for left in ("entry", "ran"):
            (work / left).unlink(missing_ok=True)


# ---- an engine that is killed ----------------------------------------------------------------------------


def end_services(account):
    """Kills the Podman services of an account; how many there were. The end of a process is that of all its
    descriptors: not before, a call would be in mid-air. One that starts a program looks like two for a moment, and the
    second holds the same socket: until there is none."""
    ended = 0
    while services := [pid for pid, command in account.processes().items()
                       if "system service" in command and "toolcage-podman" not in command]:
        for pid in services:
            with contextlib.suppress(ProcessLookupError):
                handle = os.pidfd_open(pid)
                with os.fdopen(handle):
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                    assert select.select([handle], [], [], 10 * TIME_SCALE)[0]
                ended += 1
    return ended


@on("podman-user")
def test_a_service_that_was_killed_is_started_again(cages):
    with kept(cages, cages.policy()) as call:
        assert call("echo one") == ("ok", "", "one")
        assert end_services(cages.account)
        assert call("echo two") == ("ok", "", "two")


# ---- limits that the engine keeps ------------------------------------------------------------------------


@pytest.mark.skipif(not IS_ROOT, reason="the daemon is root's")
def test_memory_that_an_ordinary_user_of_docker_runs_out_of_ends_the_call(lab):
    """The kernel kills one process, and the tool says that all went well, or waits for the time limit to be blamed."""
    cages_of(lab, "docker")
    cages, user = Cages(lab, BY_NAME["docker"]), lab.user()
    engine = Path(cages.api.path)
    before = [(path, path.stat().st_mode & 0o7777) for path in (engine, engine.parent)]
    cages.caller = user.caller
    cages.environment |= {"XDG_RUNTIME_DIR": str(user.runtime), "HOME": str(user.home)}
    settings = {"memory": "64MB", "disk": "unlimited", "fs": {"readable": None, "writable": None, "cwd": "/"}}
    try:
        for path, _ in before:
            path.chmod(0o777)
        for rest in ("exit 0", "sleep 100"):
            script = f"(head -c 200000000 /dev/zero | tail -c 190000000 >/dev/null); {rest}"
            outcome = cages.result("sh", "-c", script, **settings)
            assert outcome.verdict == "memory" and outcome.seconds < 10 * TIME_SCALE, outcome
    finally:
        for path, mode in before:
            path.chmod(mode)
