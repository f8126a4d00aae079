# SPDX-License-Identifier: Apache-2.0
"""`toolcage image`: what is built is an OCI image layout that others read, the same each time, with nothing of the host
in it that no package brought, and nothing is left behind by a build that fails."""

import errno
import hashlib
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import tarfile
import threading
import time

import jsonschema
import pytest

ORDINARY = 65534
IS_ROOT = os.geteuid() == 0
NAME = "toolcage/tool-sandbox:latest"
MEDIA = "application/vnd.oci.image."
# Made by the builder itself; everything else comes from a package.
OWN = {"etc/passwd", "etc/group", "etc/nsswitch.conf", "etc/hosts", "etc/hostname", "etc/resolv.conf",
       "etc/ssl/certs/ca-certificates.crt"}


def build(toolcage, store, *args, **options):
    env = {"TOOLCAGE_IMAGES": str(store)} | options.pop("env", {})
    return toolcage("image", "build", *args, env=env, timeout=120, **options)


@pytest.fixture(scope="module")
def store(toolcage, tmp_path_factory, must_work):
    """A store with the image in it; tests do not change it."""
    if not shutil.which("dpkg-query"):
        must_work("oci", "there is no dpkg to take packages from")
    directory = tmp_path_factory.mktemp("images") / "store"
    done = build(toolcage, directory)
    assert done.returncode == 0, done.stderr
    return directory


@pytest.fixture
def copy(store, tmp_path):
    """A store to be spoilt: blobs are hard links until somebody writes them anew."""
    target = tmp_path / "store"
    shutil.copytree(store, target, copy_function=os.link, symlinks=True, ignore=shutil.ignore_patterns("unpacked"))
    for name in ("index.json", "lock"):  # written in place, or locked
        (target / name).unlink()
        shutil.copy(store / name, target / name)
    (target / "unpacked").mkdir()
    return target


@pytest.fixture(scope="module")
def image(toolcage, store):
    return json.loads(toolcage("image", "show", "--json", NAME, env={"TOOLCAGE_IMAGES": str(store)}).stdout)["image"]


def blob(store, descriptor, media_type):
    assert descriptor["mediaType"] == MEDIA + media_type
    kind, digest = descriptor["digest"].split(":")
    content = (store / "blobs" / kind / digest).read_bytes()
    assert len(content) == descriptor["size"]
    assert hashlib.sha256(content).hexdigest() == digest
    return content


def manifest_of(store):
    index = json.loads((store / "index.json").read_text())
    return json.loads(blob(store, index["manifests"][0], "manifest.v1+json"))


def layer_path(store):
    return store / "blobs" / "sha256" / manifest_of(store)["layers"][0]["digest"].removeprefix("sha256:")


@pytest.fixture(scope="module")
def members(store):
    with tarfile.open(layer_path(store)) as archive:
        return archive.getmembers()


def for_ordinary_user(tmp_path):
    """A directory of an ordinary user's, and how to run a program as that user."""
    place = tmp_path / "other"
    place.mkdir(mode=0o700)
    if not IS_ROOT:
        return place, {}
    for path in (tmp_path, *list(tmp_path.parents)[:2]):
        path.chmod(0o755)
    os.chown(place, ORDINARY, ORDINARY)
    return place, {"user": ORDINARY, "group": ORDINARY, "extra_groups": []}


def left_behind(store):
    """What is in a store besides its frame."""
    return sorted(str(path.relative_to(store)) for part in ("tmp", "unpacked", "blobs/sha256")
                  for path in (store / part).glob("*"))


# ---- the layout ----------------------------------------------------------------------------------


def test_layout_is_what_the_specification_says(store):
    assert json.loads((store / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}
    index = json.loads((store / "index.json").read_text())
    assert (index["schemaVersion"], index["mediaType"]) == (2, MEDIA + "index.v1+json")
    assert [entry["annotations"]["org.opencontainers.image.ref.name"] for entry in index["manifests"]] == [NAME]
    manifest = manifest_of(store)
    assert (manifest["schemaVersion"], manifest["mediaType"]) == (2, MEDIA + "manifest.v1+json")
    config = json.loads(blob(store, manifest["config"], "config.v1+json"))
    layer, = manifest["layers"]
    blob(store, layer, "layer.v1.tar")
    assert config["os"] == "linux" and config["architecture"]
    assert config["rootfs"] == {"type": "layers", "diff_ids": [layer["digest"]]}
    assert "bash=" in config["config"]["Labels"]["io.toolcage.packages"]
    assert not {"Entrypoint", "User", "Volumes"} & set(config["config"])
    used = {entry["digest"] for entry in (index["manifests"][0], manifest["config"], layer)}
    assert {f"sha256:{path.name}" for path in (store / "blobs/sha256").iterdir()} == used


def test_others_can_read_the_layout(store):
    if not shutil.which("skopeo"):
        pytest.skip("there is no skopeo")
    done = subprocess.run(["skopeo", "inspect", f"oci:{store}:{NAME}"], capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["Os"] == "linux"


def test_what_is_printed_is_as_the_schema_says(repo, toolcage, store, image):
    schema = json.loads((repo / "schemas/image.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    check = jsonschema.Draft202012Validator(schema)
    check.validate({"image": image})
    listed = json.loads(toolcage("image", "list", "--json", env={"TOOLCAGE_IMAGES": str(store)}).stdout)
    check.validate(listed)
    assert listed == {"images": [{key: value for key, value in image.items() if key != "packages"}]}
    assert {name.split("=")[0] for name in image["packages"]} >= {"bash", "coreutils", "python3", "curl", "git",
                                                                  "ca-certificates", "libc6"}
    for wrong in ({}, {"images": [], "image": image}, {"image": image | {"digest": "x"}}):
        assert not check.is_valid(wrong)


# ---- what is in it -------------------------------------------------------------------------------


def test_nothing_in_it_gives_power(members):
    assert {member.type for member in members} <= {tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE}
    for member in members:
        assert member.uid == member.gid == 0
        assert not member.mode & 0o6000, member.name
        assert member.issym() or not member.mode & 0o022 or member.name in ("tmp", "var/tmp"), member.name
        assert member.mode & 0o004, member.name


def test_names_are_sorted_and_each_is_there_once(members):
    names = [member.name.encode() for member in members]
    assert names == sorted(set(names))
    assert not [name for name in names if name.startswith((b"/", b".")) or b"//" in name or b".." in name.split(b"/")]


def test_every_file_comes_from_a_package_of_the_image(members, image):
    names = [name.split("=")[0] for name in image["packages"]]
    done = subprocess.run(["dpkg-query", "-L", *names], capture_output=True, text=True, timeout=60, check=True)
    installed = {os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
                 for path in done.stdout.splitlines() if path.startswith("/")}
    files = {member.name for member in members if member.isreg()}
    assert len(files) > 1000
    assert {name for name in files if f"/{name}" not in installed} == OWN
    assert not [name for name in files if name.startswith("etc/") and name not in OWN]
    assert not [name for name in files if "__pycache__" in name or name.startswith(("usr/share/doc/", "usr/share/man/"))]


def test_certificates_are_certificates_and_nothing_else(store):
    with tarfile.open(layer_path(store)) as archive:
        text = archive.extractfile("etc/ssl/certs/ca-certificates.crt").read().decode()
    rest = re.sub(r"-----BEGIN CERTIFICATE-----\n[A-Za-z0-9+/=\n]+\n-----END CERTIFICATE-----\n", "", text)
    assert (rest, text.count("BEGIN") > 50) == ("", True)


COMMANDS = {
    "shell": ("echo $((6*7)) | sed s/4/x/ | grep x2 && ls / | sort | head -n1 && printf 'a b' | awk '{print $2}'", "x2\nbin\nb\n"),
    "sh": ("/bin/sh -c 'which tar gzip find diff'", "/usr/bin/tar\n/usr/bin/gzip\n/usr/bin/find\n/usr/bin/diff\n"),
    "python": ("python3 -c 'import ssl, sqlite3, zoneinfo; c = ssl.create_default_context(); print(len(c.get_ca_certs()) > 50, "
               "zoneinfo.ZoneInfo(\"Europe/Berlin\"))'", "True Europe/Berlin\n"),
    "curl": ("curl --version | head -c 5; echo", "curl \n"),
    "git": ("cd /tmp && git init -q r && git -C r log 2>&1 | head -c 6; echo", "fatal:\n"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_unpacked_root_runs(image, tmp_path, must_work, name):
    """Over a copy in memory, so that nothing is written to the root itself."""
    command, expected = COMMANDS[name]
    script = ("mount -t tmpfs t \"$2\" && mkdir \"$2/u\" \"$2/w\" \"$2/r\" && "
              "mount -t overlay -o \"lowerdir=$1,upperdir=$2/u,workdir=$2/w\" o \"$2/r\" && : > \"$2/r/dev/null\" && "
              "exec chroot \"$2/r\" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/tmp /bin/bash -c \"$3\"")
    done = subprocess.run(["unshare", "-rm", "sh", "-c", script, "sh", image["unpacked"], tmp_path, command],
                          capture_output=True, text=True, timeout=60, check=False)
    if "unshare" in done.stderr:
        must_work("oci", f"no user namespace: {done.stderr}")
    assert (done.stdout, done.returncode) == (expected, 0), done.stderr


def test_unpacked_root_is_the_layer(image, members):
    root = image["unpacked"]
    assert os.path.basename(root) == image["digest"].replace(":", "-")
    seen = {os.path.relpath(os.path.join(top, name), root) for top, folders, files in os.walk(root) for name in folders + files}
    assert seen == {member.name for member in members}
    for member in members:
        status = os.lstat(os.path.join(root, member.name))
        assert member.issym() or stat.S_IMODE(status.st_mode) == member.mode, member.name
        assert not member.isreg() or status.st_size == member.size, member.name


# ---- building ------------------------------------------------------------------------------------


def test_same_packages_give_the_same_digest_also_to_an_ordinary_user(toolcage, image, tmp_path):
    """Another user, umask, time zone and directory."""
    place, user = for_ordinary_user(tmp_path)
    options = user | {"umask": 0o077, "env": {"TZ": "Asia/Tokyo", "LC_ALL": "de_DE.UTF-8"}}
    done = build(toolcage, place / "images", "--json", **options)
    assert done.returncode == 0, done.stderr
    built = json.loads(done.stdout)["image"]
    assert (built["digest"], built["packages"]) == (image["digest"], image["packages"])


def test_name_that_is_given_again_leaves_the_old_image_by_its_digest(toolcage, copy, image):
    """And each of them has what it needs, and nothing more, until it is removed."""
    env = {"TOOLCAGE_IMAGES": str(copy)}
    done = build(toolcage, copy, "--json", env={"SOURCE_DATE_EPOCH": "86400"})
    assert done.returncode == 0, done.stderr
    built = json.loads(done.stdout)["image"]
    assert (built["name"], built["created"]) == (NAME, "1970-01-02T00:00:00Z")
    listed = json.loads(toolcage("image", "list", "--json", env=env).stdout)["images"]
    assert [entry["name"] for entry in listed] == [f"toolcage/tool-sandbox@{image['digest']}", NAME]
    assert len(left_behind(copy)) == 7  # of the old one the root is not unpacked
    assert toolcage("image", "rm", NAME, env=env).returncode == 0
    assert toolcage("image", "show", NAME, env=env).returncode == 125
    assert toolcage("image", "show", f"toolcage/tool-sandbox@{image['digest']}", env=env).returncode == 0
    assert len(left_behind(copy)) == 3
    assert toolcage("image", "rm", image["digest"], env=env).returncode == 0
    assert left_behind(copy) == []


def test_interrupted_build_leaves_nothing(build_dir, clean_env, store, tmp_path, time_scale):
    """Interrupted as soon as something is written."""
    target = tmp_path / "store"
    process = subprocess.Popen([build_dir / "src/toolcage", "image", "build"], env=clean_env | {"TOOLCAGE_IMAGES": str(target)},
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 60 * time_scale
        while not (target / "tmp").is_dir() or not any((target / "tmp").iterdir()):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60 * time_scale)
    finally:
        process.kill()
    assert (process.returncode, out) == (128 + signal.SIGINT, ""), err
    assert "interrupted" in err
    assert left_behind(target) == [] and not (target / "index.json").exists()


def test_killed_build_is_swept_and_builds_at_the_same_time_do_not_disturb_each_other(build_dir, clean_env, toolcage, copy,
                                                                                     image, time_scale):
    process = subprocess.Popen([build_dir / "src/toolcage", "image", "build"], env=clean_env | {"TOOLCAGE_IMAGES": str(copy)},
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60 * time_scale
        while not any((copy / "tmp").iterdir()):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.001)
    finally:
        process.kill()
        process.wait()
    assert list((copy / "tmp").iterdir()) != []
    assert toolcage("image", "show", NAME, env={"TOOLCAGE_IMAGES": str(copy)}).returncode == 0
    done = []
    threads = [threading.Thread(target=lambda: done.append(build(toolcage, copy, "--json"))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [json.loads(one.stdout)["image"]["digest"] for one in done] == [image["digest"]] * 2, done
    assert len(left_behind(copy)) == 4


def test_full_disk_is_named_and_leaves_nothing(build_dir, clean_env, store, tmp_path, must_work):
    """On a small file system of memory, in a mount namespace of its own."""
    script = "mount -t tmpfs -o size=20m t \"$2\" && \"$1\" image build; s=$?; find \"$2/s/tmp\" \"$2/s/blobs\" -type f; exit $s"
    done = subprocess.run(["unshare", "-rm", "sh", "-c", script, "sh", build_dir / "src/toolcage", tmp_path],
                          env=clean_env | {"TOOLCAGE_IMAGES": f"{tmp_path}/s"}, capture_output=True, text=True, timeout=60,
                          check=False)
    if "unshare" in done.stderr:
        must_work("oci", f"no user namespace: {done.stderr}")
    assert (done.returncode, done.stdout) == (125, ""), done.stderr
    assert os.strerror(errno.ENOSPC) in done.stderr and "TOOLCAGE_IMAGES" in done.stderr


def fake_dpkg(folder, script):
    """A PATH whose dpkg-query is a script, which has the true one as $TRUE."""
    folder.mkdir()
    (folder / "dpkg-query").write_text(f"#!/bin/sh\nTRUE={shutil.which('dpkg-query')}\n{script}\n")
    (folder / "dpkg-query").chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def test_package_that_is_missing_is_named_with_the_command_that_brings_it(toolcage, store, tmp_path):
    env = fake_dpkg(tmp_path / "bin", "$TRUE \"$@\" | grep -vE '\tgit(:[a-z0-9]*)?\t'")
    done = build(toolcage, tmp_path / "store", env=env)
    assert (done.returncode, done.stdout) == (125, "")
    assert "not installed on this host: git" in done.stderr
    assert "apt-get install --no-install-recommends git'" in done.stderr and "--from debootstrap" in done.stderr
    assert left_behind(tmp_path / "store") == []


def test_host_without_dpkg_is_told_so(toolcage, tmp_path):
    (tmp_path / "bin").mkdir()
    done = build(toolcage, tmp_path / "store", env={"PATH": str(tmp_path / "bin")})
    assert done.returncode == 125 and "no dpkg" in done.stderr and "debootstrap" in done.stderr


def test_changed_file_of_a_package_is_refused(toolcage, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/dpkg").write_text("#!/bin/sh\necho '??5?????? c /etc/bash.bashrc'\necho '??5??????   /usr/bin/git'\nexit 1\n")
    (tmp_path / "bin/dpkg").chmod(0o755)
    done = build(toolcage, tmp_path / "store", env={"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"})
    assert done.returncode == 125 and "/usr/bin/git is not as its package installed it" in done.stderr


def test_debootstrap_needs_root(toolcage, tmp_path):
    place, user = for_ordinary_user(tmp_path)
    done = build(toolcage, place / "images", "--from", "debootstrap", **user)
    assert done.returncode == 125 and "needs root" in done.stderr


# ---- damage and hostile input ---------------------------------------------------------------------


def spoil(path, change):
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(change(content))


def test_damaged_layer_is_noticed(toolcage, copy):
    path, env = layer_path(copy), {"TOOLCAGE_IMAGES": str(copy)}
    spoil(path, lambda content: content[:5000] + bytes([content[5000] ^ 1]) + content[5001:])
    done = toolcage("image", "show", NAME, env=env)
    assert (done.returncode, done.stdout) == (125, "")
    assert "damaged" in done.stderr and "has other bytes" in done.stderr and "toolcage image build" in done.stderr
    os.truncate(path, 5000)
    assert "has another size" in toolcage("image", "show", NAME, env=env).stderr


def test_missing_and_changed_manifest_is_noticed(toolcage, copy, image):
    path = copy / "blobs/sha256" / image["digest"].removeprefix("sha256:")
    spoil(path, lambda content: content.replace(b'"size"', b'"sIze"'))
    done = toolcage("image", "show", NAME, env={"TOOLCAGE_IMAGES": str(copy)})
    assert done.returncode == 125 and "damaged" in done.stderr and "toolcage image build" in done.stderr
    listed = json.loads(toolcage("image", "list", "--json", env={"TOOLCAGE_IMAGES": str(copy)}).stdout)["images"]
    assert "damaged" in listed[0]["problem"] and listed[0]["size"] is None
    path.unlink()
    assert "is missing" in toolcage("image", "show", NAME, env={"TOOLCAGE_IMAGES": str(copy)}).stderr


@pytest.mark.parametrize("name", ["../x", "a/../b", "/etc", "A", "a:b:c", "a b", "x\n", "a@sha256:../../x", ".", ""])
def test_hostile_name_is_refused(toolcage, tmp_path, name):
    for args in (("build", "--name", name), ("show", "--", name), ("rm", "--", name)):
        done = toolcage("image", *args, env={"TOOLCAGE_IMAGES": str(tmp_path / "store")})
        assert (done.returncode, done.stdout) == (125, "")
        assert "is not the name of an image" in done.stderr
    assert list(tmp_path.iterdir()) == []


WRONG = {
    (): "what to do is missing",
    ("biuld",): 'did you mean "build"?',
    ("build", "x"): "--name NAME:TAG",
    ("build", "--from", "scratch"): '"scratch"',
    ("load", "--engine", "podmn", "x"): '"podmn"',
    ("build", "--load", "podman,lxc"): '"lxc"',
    ("build", "--engine", "podman"): "has no option --engine",
    ("show",): "needs the name of an image",
    ("show", "none/such"): "there is no image",
    ("rm", "none/such"): "there is no image",
    ("load", "x"): "needs an engine",
    ("list", "x"): "takes no argument",
}


@pytest.mark.parametrize("args", WRONG, ids=" ".join)
def test_wrong_invocation_is_told_what_is_wrong(toolcage, tmp_path, args):
    done = toolcage("image", *args, env={"TOOLCAGE_IMAGES": str(tmp_path / "store")})
    assert (done.returncode, done.stdout) == (125, "")
    assert WRONG[args] in done.stderr
    assert not (tmp_path / "store").exists()


def test_relative_store_is_refused(toolcage, tmp_path):
    done = toolcage("image", "list", env={"TOOLCAGE_IMAGES": "store"}, cwd=tmp_path)
    assert done.returncode == 125 and "absolute" in done.stderr


def test_store_that_is_a_file_is_refused_with_the_way_out(toolcage, tmp_path):
    (tmp_path / "store").write_text("")
    for args in (("list",), ("build",)):
        done = toolcage("image", *args, env={"TOOLCAGE_IMAGES": str(tmp_path / "store")})
        assert done.returncode == 125 and "remedy: name a directory in TOOLCAGE_IMAGES" in done.stderr, done.stderr


def test_store_that_others_can_exchange_is_refused(toolcage, copy):
    """The attack: renameat2(EXCHANGE) of the checked store and another one, while calls run."""
    shared = copy.parent / "shared"
    (shared / "below").mkdir(parents=True)
    copy.rename(shared / "below/store")
    (copy.parent / "link").symlink_to(shared / "below")
    for name in ("shared/below/store", "link/store"):
        env = {"TOOLCAGE_IMAGES": str(copy.parent / name)}
        shared.chmod(0o777)
        for args in (("list",), ("show", NAME), ("build",)):
            done = toolcage("image", *args, env=env)
            assert done.returncode == 125 and f"others can exchange the image store {shared}/below/store" in done.stderr
            assert f"they may write to {shared}\n" in done.stderr and f"chmod go-w {shared}" in done.stderr, done.stderr
        for mode in (0o1777, 0o755):  # as /tmp has it; as a home directory has it
            shared.chmod(mode)
            assert toolcage("image", "list", env=env).returncode == 0


@pytest.mark.skipif(not IS_ROOT, reason="only root can give files away")
def test_store_in_a_directory_of_another_user_is_refused(toolcage, copy):
    shared = copy.parent / "shared"
    shared.mkdir(0o755)
    copy.rename(shared / "store")
    os.chown(shared, ORDINARY, ORDINARY)
    for args in (("list",), ("build",)):
        done = toolcage("image", *args, env={"TOOLCAGE_IMAGES": str(shared / "store")})
        assert done.returncode == 125 and f"{shared} belongs to another user" in done.stderr, done.stderr
    os.chown(shared, 0, ORDINARY)
    shared.chmod(0o775)
    done = toolcage("image", "list", env={"TOOLCAGE_IMAGES": str(shared / "store")})
    assert done.returncode == 125 and f"they may write to {shared}" in done.stderr, done.stderr
    os.chown(shared, 0, 0)  # a group with the number of its user is that user's own
    assert toolcage("image", "list", env={"TOOLCAGE_IMAGES": str(shared / "store")}).returncode == 0


def test_store_that_others_can_write_is_refused(toolcage, copy):
    copy.chmod(0o777)
    for args in (("list",), ("show", NAME), ("build",)):
        done = toolcage("image", *args, env={"TOOLCAGE_IMAGES": str(copy)})
        assert done.returncode == 125 and "others can write" in done.stderr
    copy.chmod(0o755)
    for part in ("unpacked", "blobs/sha256", "blobs", "tmp"):
        (copy / part).mkdir(exist_ok=True)
        mode = (copy / part).stat().st_mode
        (copy / part).chmod(0o775)
        done = toolcage("image", "list", env={"TOOLCAGE_IMAGES": str(copy)})
        assert done.returncode == 125 and f"{copy}/{part}\n" in done.stderr, (part, done)
        (copy / part).chmod(mode)
    assert toolcage("image", "list", env={"TOOLCAGE_IMAGES": str(copy)}).returncode == 0
