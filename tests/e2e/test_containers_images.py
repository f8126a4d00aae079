# SPDX-License-Identifier: Apache-2.0
"""What an image, or the settings of an engine, do to a container although the policy does not say so: links that lead
into granted paths, names of users, a named pipe that the daemon reads, mounts of containers.conf. Attempts that worked
once, kept so that they go on failing; and images with harmless links, which go on working."""

import json
import os
import shutil
import subprocess
import tarfile
import time
from pathlib import Path

import pytest

from container_lab import IMAGE, cages_of, checked
from engine_proxy import Proxy
from native import SLOW, TIME_SCALE

pytestmark = pytest.mark.container

ENGINES = ["docker"] if SLOW else ["docker", "podman", "podman-user"]
ROOTFUL = ["docker"] if SLOW else ["docker", "podman"]


@pytest.fixture
def cages(lab, request):
    return cages_of(lab, request.param)


def on(*names):
    return pytest.mark.parametrize("cages", names, indirect=True)


# ---- images --------------------------------------------------------------------------------------


def links(root):
    """Where a policy grants /work, or /opt/in: into one grant, onto another one, and nowhere in particular."""
    (root / "data").symlink_to("/work")
    (root / "around").symlink_to("../work/../opt")
    (root / "volume").symlink_to("work/sub")
    (root / "opt").mkdir()
    (root / "srv").symlink_to("opt")
    (root / "var").mkdir()
    (root / "var/run").symlink_to("../run")
    (root / "etc/mtab").symlink_to("../proc/self/mounts")
    (root / "etc/resolv.conf").symlink_to("../run/systemd/resolve/stub-resolv.conf")


def signs(root):
    """Who believes fuse-overlayfs' way to say that there is no /data does not see the link that the kernel sees. A name
    in a directory that the archive does not name: else the engine would take it for its own sign."""
    links(root)
    return ["./.wh.data/x"]


def accounts(root):
    """The engine puts a file there, and makes it if there is none."""
    (root / "etc/group").symlink_to("/work/made")


def pipe(root):
    (root / "etc/passwd").unlink()
    os.mkfifo(root / "etc/passwd")


def kernel(root):
    shutil.rmtree(root / "dev")
    (root / "dev").symlink_to("/work/made")


def archive(lab, prepare):
    def make():
        root = lab.base / f"image-{prepare.__name__}"
        checked("cp", "-a", lab.rootfs(), root)
        more = prepare(root) or ()
        checked("tar", "-C", root, "-cf", f"{root}.tar", ".")
        with tarfile.open(f"{root}.tar", "a") as file:
            for name in more:
                file.addfile(tarfile.TarInfo(name))
        Path(f"{root}.tar").chmod(0o644)
        shutil.rmtree(root)
        return f"{root}.tar"

    return lab.part(f"archive {prepare.__name__}", make)


def image(cages, prepare, *changes):
    name = f"lab-{prepare.__name__}-{len(changes)}:1"

    def make():
        file = archive(cages.lab, prepare)
        if cages.engine.kind == "rootless":
            words = [word for change in changes for word in ("--change", change)]
            done = cages.account.run("podman", "import", *words, file, name)
            assert done.returncode == 0, done.stderr
        elif cages.engine.kind == "podman":
            cages.api.load(file, name, changes, f"/v4.0.0/libpod/images/import?reference=localhost/{name}")
        else:
            cages.api.load(file, name, changes)
        return name

    return cages.lab.part(f"image {name} {cages.engine.kind}", make)


def on_host(cages):
    return {str(path) for path in cages.place.rglob("*")}


def assert_refused(outcome, *words):
    assert outcome.verdict == "error", str(outcome)
    assert all(word in outcome.result["reason"] for word in words), outcome.result["reason"]


# ---- links ---------------------------------------------------------------------------------------


@on(*ENGINES)
def test_a_link_of_an_image_makes_nothing_in_a_granted_directory(cages):
    before, containers = on_host(cages), cages.containers()
    outcome = cages.result("true", image=image(cages, links), fs={"readable": [f"{cages.place}/docs:/data/in/deep"]})
    assert_refused(outcome, "/data/in/deep", "/work")
    outcome = cages.result("true", image=image(cages, links), fs={"readable": [f"{cages.place}/docs:/around/in"]})
    assert_refused(outcome, "/around/in", "/work")
    outcome = cages.result("true", image=image(cages, accounts))
    assert_refused(outcome, "/etc/group", "/work")
    assert on_host(cages) == before and cages.containers() == containers


@on(*ENGINES)
def test_a_sign_in_an_image_hides_no_link(cages):
    before, containers = on_host(cages), cages.containers()
    outcome = cages.result("true", image=image(cages, signs), fs={"readable": [f"{cages.place}/docs:/data/in/deep"]})
    assert_refused(outcome, "/data", "cannot be looked at" if "podman" in cages.engine.name else "/work")
    assert on_host(cages) == before and cages.containers() == containers


@on(*[name for name in ENGINES if name != "docker"])
def test_no_device_is_made_in_a_granted_directory(cages):
    before = on_host(cages)
    assert_refused(cages.result("true", image=image(cages, kernel)), "/dev", "/work")
    assert on_host(cages) == before


@on("docker")
def test_a_volume_at_a_link_covers_no_grant(cages):
    sub = cages.place / "work/sub"
    sub.mkdir()
    try:
        outcome = cages.result("ls", "/work/sub", image=image(cages, links, "VOLUME /volume"))
        assert_refused(outcome, "/volume", "/work")
    finally:
        sub.rmdir()
    # What lies nowhere in a grant is memory, as ever.
    outcome = cages.result("ls", "/volume", image=image(cages, links, "VOLUME /volume"),
                           fs={"writable": [], "cwd": "/"})
    assert outcome.verdict == "ok", outcome.result["reason"]


@on(*ENGINES)
def test_links_that_stay_in_the_image_go_on_working(cages):
    outcome = cages.shell("cat /srv/in/readme.txt /opt/in/readme.txt /var/run/docs/readme.txt; echo made > /work/w",
                          image=image(cages, links), fs={"readable": [f"{cages.place}/docs:/srv/in",
                                                                      f"{cages.place}/docs:/var/run/docs"]})
    (cages.place / "work/w").unlink()
    assert outcome.stdout == "read me\n" * 3


@on("docker")
def test_an_image_whose_layers_cannot_be_read_is_asked_for(cages, tmp_path):
    """As by an ordinary user who asks root's daemon: here its answer does not name the layers."""
    proxy = Proxy(tmp_path / "s", cages.api.path)
    plain = proxy.ask
    proxy.ask = lambda request: plain(request).replace(b'"GraphDriver"', b'"NoSuchWord_"')
    before, containers = on_host(cages), cages.containers()
    try:
        for settings in ({"image": image(cages, accounts)},
                         {"image": image(cages, links), "fs": {"readable": [f"{cages.place}/docs:/data/in"]}},
                         {"image": image(cages, pipe)}):
            outcome = cages.command("exec", "--policy", cages.policy(**settings), "--tool", "t", "--json", "--", "true",
                                    env={"DOCKER_HOST": f"unix://{proxy.path}"})
            assert '"the image' in outcome.stdout.replace("\\", ""), outcome
        settings = {"image": image(cages, links), "fs": {"readable": [f"{cages.place}/docs:/srv/in"]}}
        outcome = cages.command("exec", "--policy", cages.policy(**settings), "--tool", "t", "--", "cat",
                                "/opt/in/readme.txt", env={"DOCKER_HOST": f"unix://{proxy.path}"})
        assert outcome.stdout == "read me\n", outcome
    finally:
        proxy.close()
    assert on_host(cages) == before and cages.containers() == containers


@on("docker")
def test_an_image_whose_container_is_removed_while_it_is_looked_at_is_not_taken_for_empty(cages, tmp_path):
    """Somebody prunes containers that were not started: the daemon says of each path that there is none."""
    proxy = Proxy(tmp_path / "s", cages.api.path)
    plain, removed = proxy.ask, []

    def ask(request):
        line = request.split(b"\r\n", 1)[0].decode()
        if line.startswith("HEAD ") and not removed:
            removed.append(line.split("/containers/")[1].split("/")[0])
            cages.api.request("DELETE", f"/containers/{removed[0]}?force=1")
        return plain(request).replace(b'"GraphDriver"', b'"NoSuchWord_"')

    proxy.ask = ask
    before, containers = on_host(cages), cages.containers()
    policy = cages.policy(image=image(cages, links), fs={"readable": [f"{cages.place}/docs:/data/in/deep"]})
    try:
        outcome = cages.command("exec", "--policy", policy, "--tool", "t", "--json", "--", "true",
                                env={"DOCKER_HOST": f"unix://{proxy.path}"})
    finally:
        proxy.close()
    assert removed and "was removed meanwhile" in outcome.stdout, outcome
    assert on_host(cages) == before and cages.containers() == containers


# ---- who the command is ----------------------------------------------------------------------------


@on(*ROOTFUL)
def test_an_image_does_not_say_who_on_the_host_the_command_is(cages):
    outcome = cages.result("id", container={"user": "root"})
    assert_refused(outcome, "container.user", "is a name")
    assert "numbers" in outcome.result["fix"], outcome


# ---- what a daemon reads, and what it cannot remove ----------------------------------------------------


@on("docker")
def test_a_pipe_in_the_place_of_passwd_leaves_no_container(cages):
    containers = cages.containers()
    outcome = cages.result("true", image=image(cages, pipe), timeout="3s")
    assert_refused(outcome, "/etc/passwd")
    assert cages.containers() == containers


def leave(cages, name, owner):
    wanted = {"Image": IMAGE, "Cmd": ["true"], "Labels": {"io.toolcage.owner": owner}}
    status, body = cages.api.request("POST", f"/containers/create?name=toolcage-{name}", json.dumps(wanted),
                                     {"Content-Type": "application/json"})
    assert status == 201, body
    return json.loads(body)["Id"]


@pytest.fixture
def dead_owner():
    with subprocess.Popen(["sleep", "60"]) as process:
        started = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
        spaces = ".".join(f"{os.stat(f'/proc/self/ns/{name}').st_ino & 0xffffffff:x}" for name in ("pid", "time"))
        process.kill()
    return f"{process.pid}-{started}-{spaces}-{Path('/proc/sys/kernel/random/boot_id').read_text()[:8]}"


@on("docker")
def test_containers_that_cannot_be_removed_hold_up_no_other(cages, dead_owner, tmp_path):
    made = [leave(cages, f"{number:016x}", dead_owner) for number in range(3)]
    proxy = Proxy(tmp_path / "s", cages.api.path)
    proxy.fault(rf"DELETE .*({made[0]}|{made[2]})", "slow", seconds=10)  # the list begins with one of them
    try:
        outcome = cages.command("exec", "--policy", cages.policy(), "--tool", "t", "--", "true",
                                env={"DOCKER_HOST": f"unix://{proxy.path}"})
        assert outcome.status == 0, outcome
        end = time.monotonic() + 10 * TIME_SCALE
        while made[1] in cages.containers() and time.monotonic() < end:
            time.sleep(0.05)  # the daemon was asked, and may take its time
        assert made[1] not in cages.containers()
    finally:
        proxy.close()
        for one in made:
            cages.api.request("DELETE", f"/containers/{one}?force=1")


# ---- mounts that nobody asked for ------------------------------------------------------------------------


@pytest.fixture
def with_volume(cages):
    """Calls a tool in a container to which the user's containers.conf adds a volume."""
    text = (Path(cages.environment["HOME"]) / ".config/containers/containers.conf").read_text()
    extra = cages.place / "extra.conf"

    def call(volume, *words):
        extra.write_text(f'{text}[containers]\nvolumes = ["{volume}"]\n')
        extra.chmod(0o644)
        return cages.command("exec", "--policy", cages.policy(), "--tool", "t", "--", *words,
                             env={"CONTAINERS_CONF": str(extra)})
    yield call
    extra.unlink(missing_ok=True)


@on("podman-user")
@pytest.mark.parametrize("point", ["/added", "/run/secrets"])
def test_directories_of_containers_conf_are_taken_away(cages, with_volume, point):
    secret = cages.place / "secret"
    assert (secret / "key").exists()
    script = f"ls {point}; grep -c ' {point} ' /proc/self/mountinfo; touch {point}/planted; echo done"
    outcome = with_volume(f"{secret}:{point}:rw", "sh", "-c", script)
    assert outcome.status == 0 and outcome.stdout == "0\ndone\n", outcome
    assert not (secret / "planted").exists()


@on("podman-user")
def test_files_of_containers_conf_are_refused(cages, with_volume):
    outcome = with_volume(f"{cages.place}/secret/key:/added:ro", "cat", "/added")
    assert outcome.status == 125 and "/added" in outcome.stderr, outcome
    assert "containers.conf" in outcome.stderr, outcome
