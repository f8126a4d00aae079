# SPDX-License-Identifier: Apache-2.0
"""Attacks on containers of an engine that once worked, or nearly: hostile images, exchanged sockets, slow daemons."""

import contextlib
import hashlib
import io
import json
import os
import shutil
import stat
import tarfile
import time

import pytest

from container_lab import HOSTILE, cages_of
from engine_proxy import Proxy

pytestmark = pytest.mark.container
ROOTFUL = ["docker", "podman"]
NULL = os.makedev(1, 3)  # a device that every engine's own filter lets pass


def make_image(cages, tag, changes=HOSTILE, links=(), nodes=()):
    """An image of the lab's busybox with links ((path, target), ...) and device nodes; returns its name."""
    lab, name = cages.lab, f"toolcage-lab:{tag}"

    def make():
        archive = lab.base / f"{tag}.tar"
        with tarfile.open(archive, "w") as tar:
            tar.add(lab.rootfs() / "bin/busybox", "bin/busybox")
            entries = [(f"bin/{one}", "busybox") for one in ("sh", "cat", "true", "id", "ls", "stat", "dd")]
            for path, target in [*entries, *links]:
                entry = tarfile.TarInfo(path)
                entry.type, entry.linkname = tarfile.SYMTYPE, target
                tar.addfile(entry)
            for path, device in nodes:
                entry = tarfile.TarInfo(path)
                entry.type, entry.mode = tarfile.CHRTYPE, 0o666
                entry.devmajor, entry.devminor = os.major(device), os.minor(device)
                tar.addfile(entry)
        own = f"/v4.0.0/libpod/images/import?reference=localhost/{name}" if cages.engine.kind == "podman" else ""
        cages.api.load(archive, name, changes, own)
        return name

    return lab.part(f"image {tag} in {cages.engine.kind}", make)


@contextlib.contextmanager
def clean(cages):
    """What tests put into the granted directory is gone afterwards: others use it, too."""
    before = set((cages.place / "work").iterdir())
    yield cages
    for path in set((cages.place / "work").iterdir()) - before:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


@pytest.fixture(params=ROOTFUL)
def cages(request, lab):
    with clean(cages_of(lab, request.param)) as made:
        yield made


@pytest.fixture
def docker(lab):
    with clean(cages_of(lab, "docker")) as made:
        yield made


def check_refused(cages, *words, **more):
    outcome = cages.result("true", **more)
    assert outcome.verdict == "error", outcome
    text = outcome.result["reason"] + (outcome.result["fix"] or "")
    assert all(word in text for word in words), (words, text)
    return text


# ---- links of an image --------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["/work", "/work/sub"])
def test_a_link_at_tmp_of_an_image_never_changes_a_directory_of_the_host(cages, target):
    image = make_image(cages, f"link{target.count('/')}", links=[("tmp", target)])
    victim = cages.place / target.lstrip("/")
    with contextlib.suppress(FileExistsError):
        victim.mkdir(mode=0o700)
    before = stat.S_IMODE(victim.stat().st_mode)
    assert before & 0o002 == 0
    check_refused(cages, "/tmp", "link", image=image)
    assert stat.S_IMODE(victim.stat().st_mode) == before


def test_a_link_on_the_way_to_a_hidden_directory_uncovers_nothing(cages):
    """The image leads the memory that is to cover a directory elsewhere."""
    image = make_image(cages, "cover", links=[("docs", "/elsewhere")])
    fs = {"readable": [f"{cages.place}/docs:/docs"], "hidden": ["/docs/sub"]}
    outcome = cages.result("cat", "/docs/sub/hidden.txt", image=image, fs=fs)
    assert "hidden\n" not in outcome.stdout and outcome.verdict in ("error", "failed"), outcome


# ---- device nodes -------------------------------------------------------------------------------


def test_device_nodes_of_an_image_and_of_granted_paths_do_not_open(cages):
    image = make_image(cages, "nodes", nodes=[("node", NULL)])
    node = cages.place / "work/node"
    os.mknod(node, 0o666 | stat.S_IFCHR, NULL)
    node.chmod(0o666)
    outcome = cages.shell("cat /dev/null && echo own=opens; for i in /node /work/node; do cat $i && echo $i=opens; done;"
                          "exit 0", image=image)
    assert outcome.said == {"own": "opens"}, outcome
    assert outcome.stderr.count("Permission denied") == 2, outcome


def test_the_root_directory_and_granted_paths_are_without_setuid_and_devices(cages):
    outcome = cages.shell("cat /proc/self/mountinfo")
    options = {line.split()[4]: line.split()[5].split(",") for line in outcome.stdout.splitlines()}
    for path in ("/", "/work", "/docs", "/tmp", "/dev/shm"):
        assert {"nosuid", "nodev"} <= set(options[path]), (path, outcome.stdout)
    assert "nodev" not in options["/dev"]


# ---- volumes of an image ------------------------------------------------------------------------


def test_a_volume_within_a_granted_path_changes_nothing_there(docker):
    image = make_image(docker, "volumes", (*HOSTILE, "VOLUME /docs/sub", "VOLUME /work/kept"))
    kept = docker.place / "work/kept"
    kept.mkdir()
    os.chown(kept, docker.owner, docker.owner)
    (kept / "file").write_text("kept\n")
    outcome = docker.shell("cat /work/kept/file /docs/sub/hidden.txt; echo new > /work/kept/new; "
                           "echo no > /docs/sub/new && echo written=yes; exit 0", image=image)
    assert outcome.stdout == "kept\nhidden\n", outcome
    assert (kept / "new").read_text() == "new\n"
    assert not (docker.place / "docs/sub/new").exists()


def test_a_volume_that_would_make_a_directory_of_the_host_is_refused(docker):
    image = make_image(docker, "makes", ("VOLUME /work/made",))
    check_refused(docker, "VOLUME /work/made", image, image=image)
    assert not (docker.place / "work/made").exists()


@pytest.mark.parametrize("place", ["/.toolcage", "/.toolcage/entry"])
def test_a_volume_over_toolcages_own_directory_is_refused(docker, place):
    image = make_image(docker, f"own{place.count('/')}", (f"VOLUME {place}",))
    check_refused(docker, f"VOLUME {place}", image, image=image)


# ---- an engine that keeps calls waiting -----------------------------------------------------------


def test_an_engine_that_does_not_answer_holds_no_call(docker, tmp_path):
    """The call's own time limit is not over what comes before it and after it. Both at once, for they take long."""
    faults = {"DELETE .*/containers/": "ok", "GET .*/images/": "error"}
    policy, begin = docker.policy(timeout="10s"), time.monotonic()
    with contextlib.ExitStack() as stack:
        calls = []
        for number, fault in enumerate(faults):
            proxy = Proxy(tmp_path / f"s{number}", docker.api.path)
            stack.callback(proxy.close)
            proxy.fault(fault, "slow", seconds=60)
            calls.append((proxy, docker.start("exec", "--policy", policy, "--tool", "t", "--json", "--", "true",
                                              env={"DOCKER_HOST": f"unix://{proxy.path}"})))
        for (proxy, call), verdict in zip(calls, faults.values(), strict=True):
            done = docker.finish(call)
            assert time.monotonic() - begin < 45, done
            assert proxy.spoiled and json.loads(done.stdout)["verdict"] == verdict, done


# ---- a store with an image that somebody else has made --------------------------------------------


def make_store(store, name, entries):
    """A layout with one image, whose layer has these entries: (path, target of a link or None)."""
    for part in ("blobs/sha256", "unpacked", "tmp"):
        (store / part).mkdir(parents=True)
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, target in entries:
            entry = tarfile.TarInfo(path)
            if target:
                entry.type, entry.linkname = tarfile.SYMTYPE, target
            entry.size = 0 if target else 1
            tar.addfile(entry, io.BytesIO(b"x"))

    def put(kind, content):
        digest = hashlib.sha256(content).hexdigest()
        (store / "blobs/sha256" / digest).write_bytes(content)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content)}

    blob = put("layer.v1.tar", layer.getvalue())
    config = put("config.v1+json", json.dumps({"architecture": "amd64", "os": "linux", "config": {},
                                               "rootfs": {"type": "layers", "diff_ids": [blob["digest"]]}}).encode())
    manifest = put("manifest.v1+json", json.dumps({"schemaVersion": 2, "config": config, "layers": [blob]}).encode())
    manifest["annotations"] = {"org.opencontainers.image.ref.name": name}
    (store / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [manifest]}))
    (store / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')


@pytest.mark.parametrize(("entries", "problem"), [
    ([("a", None), ("a", None)], "has a name twice"),
    ([("a", "{out}/new"), ("a", None)], "has a name twice"),
    ([("a", "{out}"), ("a/new", None)], "has an entry without a directory"),
    ([("../../../out/new", None)], "has a name that leads elsewhere"),
], ids=["twice", "over-a-link", "through-a-link", "upwards"])
def test_a_layer_writes_nothing_outside_and_the_damage_is_told(lab, tmp_path, entries, problem):
    cages, out = cages_of(lab, "crun"), tmp_path / "out"
    out.mkdir()
    make_store(tmp_path / "store", "hostile:latest", [(path, target and target.format(out=out)) for path, target in entries])
    policy = cages.policy(rootfs=None, image="hostile:latest")
    done = cages.command("exec", "--policy", policy, "--tool", "t", "--", "/a",
                         env={"TOOLCAGE_IMAGES": str(tmp_path / "store")})
    assert done.status == 125 and "is damaged" in done.stderr and problem in done.stderr, done
    assert "toolcage image build" in done.stderr
    assert not list(out.iterdir()) and not list((tmp_path / "store/unpacked").iterdir())
