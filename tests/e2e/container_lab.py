# SPDX-License-Identifier: Apache-2.0
"""Owns: what the tests of containers need on the host: a Docker daemon started by hand, Podman as root and as an
ordinary user with subordinate ids, a small root directory as directory and as image; and how to run toolcage on each
of them. Everything lies in one directory, is started when the first test wants it, and is ended by its process id.
Nothing of the machine's own daemons, stores or images is touched.

The session's one Lab is the fixture `lab` (conftest.py). ENGINES lists whatever makes containers.
"""

import contextlib
import ctypes
import http.client
import json
import os
import pwd
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from conftest import skip_or_fail
from ended import Ended
from native import (BUILD, CONTAINER_USER_ID, IS_ROOT, PROGRAMS, TIME_SCALE, TOOLCAGE, Caller, Groups, cage_groups, caller,
                    mounts, own_groups, processes)

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
SANITIZER = {key: value for key, value in os.environ.items() if key in ("ASAN_OPTIONS", "UBSAN_OPTIONS")}
IMAGE = "toolcage-lab:1"
ACCOUNT = "toolcage-lab-"  # and the process id of the tests
FILE_OWNER = 21234  # of directories that a rootful engine is granted
PR_SET_CHILD_SUBREAPER = 36
EMULATED = TIME_SCALE >= 10  # a virtual machine of check-vm
# What a hostile image says about itself. None of it may matter.
HOSTILE = ('ENTRYPOINT ["/bin/false"]', 'CMD ["/bin/false"]', "ENV PATH=/evil", "ENV FROM_IMAGE=yes",
           "ENV LD_PRELOAD=/evil/preload.so", "USER 4321:4321", "VOLUME /volume", "WORKDIR /evil",
           "LABEL io.toolcage.owner=1:1:1", "LABEL org.toolcage.network=host", "EXPOSE 80")


class Missing(Exception):
    """This host lacks something; says what."""


def run(*words, **options):
    options = {"stdin": subprocess.DEVNULL, "timeout": 120 * TIME_SCALE} | options
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **options)


def checked(*words, **options):
    done = run(*words, **options)
    if done.returncode != 0:
        raise Missing(f"{' '.join(map(str, words))}: {(done.stderr or done.stdout).strip()[-400:]}")
    return done.stdout.strip()


def need(*programs):
    for program in programs:
        if not shutil.which(program, path=PATH):
            raise Missing(f"{program} is not installed")


def toml(value):
    """A value as TOML writes it, tables inline."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(one)}" for key, one in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


def only_version_2():
    """Are the control groups here of version 2, all of them?"""
    return set(own_groups()) == {""}


def podman_runtime():
    """Podman's own choice is crun, which does not start beside control groups of version 1."""
    return "crun" if only_version_2() else "runc"


def engine_groups():
    """Control groups that engines made for containers: their names have the container's id in them."""
    if not only_version_2():
        return set()
    return {folder for folder, _, _ in os.walk("/sys/fs/cgroup") if re.search("[0-9a-f]{64}", os.path.basename(folder))}


# ---- an engine's API ----------------------------------------------------------------------------


class Api:
    """A client of an engine's socket, apart from ours: what the engine itself says."""

    def __init__(self, path):
        self.path = str(path)

    def request(self, method, target, body=None, headers=None):
        connection = http.client.HTTPConnection("localhost", timeout=60 * TIME_SCALE)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(60 * TIME_SCALE)
        connection.sock.connect(self.path)
        try:
            connection.request(method, target, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def get(self, target):
        status, body = self.request("GET", target)
        assert status == 200, (target, status, body[:400])
        return json.loads(body)

    def answers(self):
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.request("GET", "/_ping")[0] == 200
        return False

    def containers(self):
        """Ids of all containers, running or not."""
        return {one["Id"] for one in self.get("/containers/json?all=1")}

    def inspect(self, identity):
        return self.get(f"/containers/{identity}/json")

    def load(self, archive, name, changes=(), query=""):
        """A root directory as an image, as the engine's own `import` does it."""
        repository, _, tag = name.partition(":")
        query = query or f"/images/create?fromSrc=-&repo={repository}&tag={tag}"
        for change in changes:
            query += "&changes=" + "".join(f"%{byte:02X}" for byte in change.encode())
        with open(archive, "rb") as file:
            status, body = self.request("POST", query, file.read(), {"Content-Type": "application/x-tar"})
        if status != 200 or b'"error"' in body:
            raise Missing(f"the image cannot be made: {status} {body[:300]}")

    def run_one(self, image):
        """A container that ends at once. The first one takes long where everything is slow, longer than toolcage waits
        for an answer: programs are read from the disk, AppArmor's profile is compiled."""
        wanted = {"Image": image, "Entrypoint": ["/bin/true"], "HostConfig": {"NetworkMode": "none"}}
        json_type = {"Content-Type": "application/json"}
        status, body = self.request("POST", "/containers/create", json.dumps(wanted), json_type)
        if status != 201:
            raise Missing(f"a first container cannot be made: {status} {body[:300]}")
        identity = json.loads(body)["Id"]
        status, body = self.request("POST", f"/containers/{identity}/start")
        self.request("POST", f"/containers/{identity}/wait")
        self.request("DELETE", f"/containers/{identity}?force=1")
        if status != 204:
            raise Missing(f"a first container does not start: {status} {body[:300]}")


# ---- the lab ------------------------------------------------------------------------------------


class Lab:
    """Daemons and directories of one run of the tests. Parts are made by the first who asks."""

    def __init__(self):
        self.stack = contextlib.ExitStack()
        self.parts = {}
        self.base = Path(tempfile.mkdtemp(prefix="toolcage-lab-", dir="/var/tmp"))
        self.base.chmod(0o755)
        self.stack.callback(shutil.rmtree, self.base, ignore_errors=True)
        shutil.copy(TOOLCAGE, self.base / "toolcage")
        (self.base / "toolcage").chmod(0o755)
        self.count = 0

    def close(self):
        self.stack.close()

    def part(self, name, make):
        """What `make` returns, made once; what it lacks is told to everybody who asks."""
        if name not in self.parts:
            try:
                self.parts[name] = make()
            except (Missing, OSError, subprocess.SubprocessError) as error:
                self.parts[name] = Missing(str(error))
        if isinstance(self.parts[name], Missing):
            raise self.parts[name]
        return self.parts[name]

    # -- files

    def rootfs(self):
        """A small root: busybox, and a few things that a hostile image would hold."""
        return self.part("rootfs", self._make_rootfs)

    def _make_rootfs(self):
        busybox = next((path for path in ("/bin/busybox", "/usr/bin/busybox") if Path(path).exists()), None)
        if not busybox:
            raise Missing("busybox-static is not installed")
        root = self.base / "root"
        for name in ("bin", "dev", "etc", "proc", "root", "tmp", "usr", "evil"):
            (root / name).mkdir(parents=True)
        shutil.copy(busybox, root / "bin/busybox")
        for name in run(busybox, "--list").stdout.split():
            with contextlib.suppress(FileExistsError):
                (root / "bin" / name).symlink_to("busybox")
        (root / "usr/bin").mkdir()
        for name in ("echo", "cat", "env", "sh"):
            (root / "usr/bin" / name).symlink_to("/bin/busybox")
        (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
        (root / "etc/image-file").write_text("from the image\n")
        (root / "bin/not-a-program").write_text("text\n")
        # Where grants are mounted an image may hold links that lead elsewhere.
        (root / "leads-out").symlink_to("/etc")
        shutil.copy(busybox, root / "evil/busybox-setuid")
        shutil.copy(PROGRAMS / "escape-attempts", root / "bin/attempt")
        shutil.copy(BUILD / "tests/e2e/gate/gate-client", root / "bin/gate-client")
        if IS_ROOT:
            os.mknod(root / "evil/disk", 0o666 | stat.S_IFBLK, os.stat("/").st_dev)
            os.chmod(root / "evil/disk", 0o666)
        (root / "evil/busybox-setuid").chmod(0o4755)
        return root

    def archive(self):
        return self.part("archive", self._make_archive)

    def _make_archive(self):
        root = self.rootfs()
        checked("tar", "-C", root, "-cf", self.base / "root.tar", ".")
        (self.base / "root.tar").chmod(0o644)
        return self.base / "root.tar"

    def images(self):
        """A store with toolcage's own image, built once."""
        return self.part("images", self._make_images)

    def _make_images(self):
        store = self.base / "images"
        store.mkdir(mode=0o755)
        checked(self.base / "toolcage", "image", "build", env={"PATH": PATH, "TOOLCAGE_IMAGES": str(store)} | SANITIZER)
        return store

    # -- processes of ours

    def serve(self, words, is_ready, what, **options):
        """Starts a daemon and waits until it answers."""
        log = open(self.base / f"{what}.log", "ab")  # noqa: SIM115  (the daemon's, too)
        process = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=subprocess.STDOUT, start_new_session=True, cwd=self.base, **options)
        log.close()
        self.stack.callback(self.end, process)
        end = time.monotonic() + 30 * TIME_SCALE
        while not is_ready():
            if process.poll() is not None or time.monotonic() > end:
                text = (self.base / f"{what}.log").read_text(errors="replace")
                raise Missing(f"{what} does not start: {text.strip()[-600:]}")
            time.sleep(0.05)
        return process

    @staticmethod
    def end(process):
        """In good order, then by force."""
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(timeout=15 * TIME_SCALE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    # -- Docker

    def docker(self):
        return self.part("docker", self._make_docker)

    def _make_docker(self):
        if not IS_ROOT:
            raise Missing("only root can start a Docker daemon")
        need("dockerd", "containerd")
        directory = self.base / "docker"
        directory.mkdir()
        api = Api(directory / "s")
        # What is left of mounts goes before the directory does.
        self.stack.callback(self.unmount, directory)
        (directory / "daemon.json").write_text("{}\n")
        process = self.serve(
            ["dockerd", "--config-file", directory / "daemon.json", "--data-root", directory / "data", "--exec-root",
             directory / "exec", "--pidfile", directory / "pid", "-H", f"unix://{api.path}", "--storage-driver=overlay2",
             "--iptables=false", "--ip6tables=false", "--bridge=none"], api.answers, "dockerd",
            env={"PATH": PATH, "HOME": str(directory)})
        api.process = process
        api.load(self.archive(), IMAGE, (*HOSTILE, "HEALTHCHECK --interval=1s CMD touch /work/health"))
        if EMULATED:
            api.run_one(IMAGE)
        return api

    @staticmethod
    def unmount(directory):
        for line in reversed(Path("/proc/self/mountinfo").read_text().splitlines()):
            target = line.split()[4]
            if target.startswith(f"{directory}/"):
                run("umount", "-l", target)

    # -- Podman

    def podman(self):
        """As root, with a service that we start; its stores are ours."""
        return self.part("podman", self._make_podman)

    def _make_podman(self):
        if not IS_ROOT:
            raise Missing("only root can start Podman as root")
        need("podman", "conmon", podman_runtime())
        directory = self.base / "podman"
        (directory / "tmp").mkdir(parents=True)
        self.stack.callback(self.unmount, directory)
        environment = {"PATH": PATH, "HOME": str(directory)} | self._podman_files(directory, podman_runtime())
        api = Api(directory / "s")
        options = ("--root", directory / "root", "--runroot", directory / "run", "--tmpdir", directory / "tmp")
        api.process = self.serve(["podman", *options, "system", "service", "--time", "0", f"unix://{api.path}"],
                                 api.answers, "podman", env=environment)
        # Podman's own way: the other one would call it docker.io/library/...
        api.load(self.archive(), IMAGE, HOSTILE, f"/v4.0.0/libpod/images/import?reference=localhost/{IMAGE}")
        return api

    @staticmethod
    def _podman_files(directory, runtime):
        """Configuration files of Podman, and the variables that name them."""
        (directory / "containers.conf").write_text(
            f'[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\nruntime = "{runtime}"\n')
        return {"CONTAINERS_CONF": str(directory / "containers.conf")}

    def rootless(self):
        """Podman of an ordinary user: nobody has started its service."""
        return self.part("rootless", self._make_rootless)

    def _make_rootless(self):
        need("podman", "conmon", podman_runtime(), "newuidmap")
        user = self.user()
        changes = [word for change in HOSTILE for word in ("--change", change)]
        done = user.run("podman", "import", *changes, self.archive(), IMAGE)
        if done.returncode != 0:
            raise Missing(f"podman import: {done.stderr.strip()[-400:]}")
        if EMULATED:  # the first call shows it, too
            return user
        done = user.run("podman", "run", "--rm", "--network", "none", "--entrypoint", "/bin/true", IMAGE)
        if done.returncode != 0:
            raise Missing(f"rootless Podman does not run a container here: {done.stderr.strip()[-400:]}")
        return user

    # -- an ordinary user

    def user(self):
        return self.part("user", self._make_user)

    def _make_user(self):
        return Account(self)

    # -- where calls happen

    def place(self, uid, name):
        """A directory with files for calls, that belongs to somebody."""
        return self.part(f"place {name}", lambda: self._make_place(uid, name))

    def _make_place(self, uid, name):
        place = self.base / f"place-{name}"
        for part in ("", "docs", "docs/sub", "work", "secret"):
            (place / part).mkdir()
        (place / "docs/readme.txt").write_text("read me\n")
        (place / "docs/sub/hidden.txt").write_text("hidden\n")
        (place / "secret/key").write_text("secret\n")
        (place / "secret/key").chmod(0o644)
        for path in [place, *place.rglob("*")]:
            os.chown(path, uid, uid)
        return place


class Account:
    """An ordinary user with subordinate ids, a home, a runtime directory and control groups; gone at the end."""

    def __init__(self, lab):
        self.home, self.runtime = lab.base / "home", lab.base / "run"
        if IS_ROOT:
            need("useradd", "userdel")
            self.name = f"{ACCOUNT}{os.getpid()}"
            self._remove_old()
            # Another run may be at work on the same files.
            end = time.monotonic() + 30
            while (done := run("useradd", "--no-create-home", "--user-group", "--home-dir", self.home, "--shell",
                               "/usr/sbin/nologin", self.name)).returncode and time.monotonic() < end:
                time.sleep(0.2)
            if done.returncode:
                raise Missing(f"useradd: {done.stderr.strip()}")
            lab.stack.callback(run, "userdel", self.name)
            self.uid = pwd.getpwnam(self.name).pw_uid
        else:
            self.uid = os.getuid()
            self.name = pwd.getpwuid(self.uid).pw_name
        for directory in (self.home, self.home / ".config", self.home / ".config/containers", self.runtime):
            directory.mkdir(mode=0o700)
        (self.home / ".config/containers/containers.conf").write_text(
            f'[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\nruntime = "{podman_runtime()}"\n')
        for path in [self.home, self.runtime, *self.home.rglob("*")]:
            os.chown(path, self.uid, self.uid)
        groups = Groups(self.uid) if IS_ROOT else None
        self.caller = Caller("user", self.uid, groups)
        lab.stack.callback(self.close)
        self.environment = {"PATH": PATH, "HOME": str(self.home), "XDG_RUNTIME_DIR": str(self.runtime),
                            "USER": self.name}
        ranges = re.findall(rf"^{self.name}:(\d+):(\d+)", Path("/etc/subuid").read_text(), re.M)
        self.ids = [range(self.uid, self.uid + 1), *(range(int(a), int(a) + int(n)) for a, n in ranges)]

    @staticmethod
    def _remove_old():
        """Accounts of runs that were killed."""
        for entry in pwd.getpwall():
            match = re.fullmatch(rf"{ACCOUNT}(\d+)", entry.pw_name)
            if match and not Path("/proc", match[1]).exists():
                run("userdel", entry.pw_name)

    def run(self, *words, **options):
        return run(*words, preexec_fn=self.caller.become, cwd=self.home, env=self.environment, **options)

    def processes(self):
        """Processes of this account: {pid: command}. Podman's own, which holds its namespaces, is one."""
        found = {}
        for pid, (_, _, command) in processes().items():
            with contextlib.suppress(OSError):
                uid = os.stat(f"/proc/{pid}").st_uid
                if any(uid in ids for ids in self.ids):
                    found[pid] = command
        return found

    def close(self):
        if not IS_ROOT:
            return
        # Podman leaves a process that holds its user namespace, on purpose.
        for _ in range(50):
            left = self.processes()
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if not left:
                break
            time.sleep(0.05)
        self.caller.close()


# ---- how a call ended ---------------------------------------------------------------------------


@dataclass(repr=False)
class Outcome(Ended):
    @property
    def verdict(self):
        return self.result.get("verdict", "")

    @property
    def said(self):
        """{key: value} of the lines KEY=VALUE that the command printed."""
        return dict(line.split("=", 1) for line in self.stdout.splitlines() if "=" in line)

    def __str__(self):
        shown = {key: value for key, value in self.result.items() if key not in ("stdout", "stderr")}
        return (f"status {self.status}, {self.seconds:.2f} s\nstdout: {self.stdout[:1500]}\nstderr: {self.stderr[:1500]}"
                f"\nresult: {json.dumps(shown)[:2500]}")

    __repr__ = __str__


# ---- whatever makes containers ------------------------------------------------------------------


@dataclass(frozen=True)
class Engine:
    """A row of the table: what the policy says, who calls, and the name that $TOOLCAGE_MUST_WORK knows."""

    name: str
    must: str
    backend: str
    container: dict
    user: str  # "root"; "user"; "account": an ordinary user with subordinate ids
    kind: str  # "bare", "docker", "podman", "rootless"

    @property
    def is_gvisor(self):
        return self.backend == "gvisor"

    @property
    def is_bare(self):
        return self.kind == "bare"


ENGINES = [
    Engine("crun", "oci/crun", "oci", {"engine": "none", "runtime": "crun"}, "root", "bare"),
    Engine("crun-user", "oci/crun", "oci", {"engine": "none", "runtime": "crun"}, "user", "bare"),
    Engine("runc", "oci/runc", "oci", {"engine": "none", "runtime": "runc"}, "root", "bare"),
    Engine("runc-user", "oci/runc", "oci", {"engine": "none", "runtime": "runc"}, "user", "bare"),
    Engine("gvisor", "gvisor", "gvisor", {"engine": "none", "runtime": "runsc"}, "root", "bare"),
    Engine("gvisor-user", "gvisor", "gvisor", {"engine": "none", "runtime": "runsc"}, "user", "bare"),
    Engine("docker", "oci/docker", "oci", {"engine": "docker"}, "root", "docker"),
    Engine("podman", "oci/podman", "oci", {"engine": "podman"}, "root", "podman"),
    Engine("podman-user", "oci/podman", "oci", {"engine": "podman"}, "account", "rootless"),
]
BY_NAME = {engine.name: engine for engine in ENGINES}


class Cages:
    """Calls on one engine, as its caller. Made by cages_of(), which skips where it cannot work."""

    def __init__(self, lab, engine):
        self.lab, self.engine = lab, engine
        if engine.user == "root" and not IS_ROOT:
            raise Missing("only root can show what happens to root")
        self.api, self.environment, self.stack = None, {"PATH": PATH}, contextlib.ExitStack()
        if engine.kind == "docker":
            self.api = lab.docker()
            self.environment["DOCKER_HOST"] = f"unix://{self.api.path}"
        elif engine.kind == "podman":
            self.api = lab.podman()
            self.environment["CONTAINER_HOST"] = f"unix://{self.api.path}"
        elif engine.kind == "rootless":
            self.account = lab.rootless()
            self.environment = dict(self.account.environment)
        else:
            need(engine.container["runtime"])
        if engine.user == "account":
            self.caller = self.account.caller
        else:
            self.caller = lab.part(f"caller {engine.user}", lambda: self._make_caller(engine.user))
        # A rootful engine takes the owner of what it is granted; others see what their caller sees.
        self.owner = FILE_OWNER if engine.kind in ("docker", "podman") else self.caller.uid
        self.place = lab.place(self.owner, f"{engine.kind}-{engine.user}")
        self.root = {"rootfs": str(lab.rootfs())} if engine.is_bare else {"image": IMAGE}

    def _make_caller(self, name):
        made = caller(name, CONTAINER_USER_ID)
        self.lab.stack.callback(made.close)
        return made

    # -- calls

    def settings(self, **more):
        """Lines of a tool's table. `fs` is its filesystem; keys of `container` are added to the engine's."""
        fs = {"readable": [f"{self.place}/docs:/docs"], "writable": [f"{self.place}/work:/work"], "scratch": "8MB",
              "cwd": "/work"}
        more = dict(more)
        fs |= more.pop("fs", {})
        table = {"backend": self.engine.backend, "timeout": "120s" if EMULATED else "20s", "memory": "256MB", "pids": 64,
                 "container": self.engine.container | more.pop("container", {})} | self.root
        table |= {"filesystem": {key: value for key, value in fs.items() if value is not None}}
        return {key: value for key, value in (table | more).items() if value is not None}

    def policy(self, tools=None, **more):
        """A policy file with these tools ({name: settings}), or with one that is called "t"."""
        text = "version = 1\n"
        for name, table in (tools or {"t": more}).items():
            text += f"[tool.{name}]\n" + "".join(f"{key} = {toml(value)}\n" for key, value in
                                                 self.settings(**table).items())
        self.lab.count += 1
        path = self.lab.base / f"policy-{self.lab.count}.toml"
        path.write_text(text)
        path.chmod(0o644)
        return path

    def start(self, *words, env=None, **options):
        """Starts toolcage as the caller, in a session of its own."""
        def prepare():
            os.setsid()
            self.caller.become()

        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        return subprocess.Popen([*map(str, (*self.caller.prefix, self.lab.base / "toolcage", *words))], cwd=self.place,
                                env=self.environment | SANITIZER | (env or {}), preexec_fn=prepare, **options)

    @staticmethod
    def finish(process, input=None, timeout=60):  # noqa: A002  (as subprocess calls it)
        return Outcome.of(process, timeout, input)

    def command(self, *words, input=None, env=None, **options):  # noqa: A002
        """Runs toolcage with these words."""
        if input is not None:
            options["stdin"] = subprocess.PIPE
        return self.finish(self.start(*words, env=env, **options), input)

    def execute(self, *argv, flags=(), input=None, policy=None, **more):  # noqa: A002
        """`toolcage exec` of a command; streams as they are."""
        path = policy or self.policy(**more)
        return self.command("exec", "--policy", path, "--tool", "t", *flags, "--", *argv, input=input)

    def result(self, *argv, flags=(), **more):
        """The same with --json: the outcome is the command's, with toolcage's result."""
        outcome = self.execute(*argv, flags=("--json", *flags), **more)
        assert outcome.stdout.startswith("{"), outcome
        result = json.loads(outcome.stdout)
        return Outcome(outcome.status, result["stdout"] or "", result["stderr"] or "", outcome.seconds, result)

    def shell(self, script, **more):
        """A script of the container's shell that ends well."""
        outcome = self.result("sh", "-c", script, **more)
        assert outcome.verdict == "ok", outcome
        return outcome

    def with_own_image(self):
        """Toolcage's own image is there for these calls: unpacked, or in the engine's store."""
        self.environment["TOOLCAGE_IMAGES"] = str(self.lab.images())
        if not self.engine.is_bare:
            self.lab.part(f"image in {self.engine.kind}", self._load_image)

    def _load_image(self):
        engine = self.engine.container["engine"]
        done = self.command("image", "load", "--engine", engine, "toolcage/tool-sandbox")
        if done.status != 0:
            raise Missing(f"image load: {done.stderr.strip()[-400:]}")
        return True

    # -- what is left

    def containers(self):
        """Ids of the engine's containers; bare runtimes keep no list that outlives them."""
        if self.api:
            return self.api.containers()
        if self.engine.kind == "rootless":
            done = self.account.run("podman", "ps", "--all", "--quiet", "--no-trunc")
            assert done.returncode == 0, done.stderr
            return set(done.stdout.split())
        return set()

    def run_directories(self):
        """Where toolcage keeps what an engine needs during a call, "PID-STARTED-...": those whose owner is dead, or is
        ours to look after (of a user's own directory)."""
        places = [Path("/run/toolcage")]
        if "XDG_RUNTIME_DIR" in self.environment:
            places = [Path(self.environment["XDG_RUNTIME_DIR"]) / "toolcage"]
        found = [entry for place in places if place.is_dir() for entry in place.iterdir()]
        return {str(entry) for entry in found if not Path("/proc", entry.name.split("-")[0]).exists()}

    def traces(self):
        """Everything that a call could leave, apart from its own processes."""
        found = {f"container {one}" for one in self.containers()}
        found |= {f"directory {one}" for one in self.run_directories()}
        found |= {f"group {one}" for one in cage_groups(self.caller.groups)}
        if not self.engine.is_bare:
            found |= {f"group {one}" for one in engine_groups()}
        if self.caller.groups:
            found |= {f"group {one}" for one in self.caller.groups.children()}
        # The root directories of containers; the daemons have mounts of their own there, too.
        found |= {f"mount {one}" for one in mounts() if f"{self.lab.base}/" in one and "/merged " in one}
        return found


def cages_of(lab, name):
    """Cages on the engine of this name; a skip or a failure (TOOLCAGE_MUST_WORK) where it cannot work."""
    engine = BY_NAME[name]
    try:
        made = lab.part(f"cages {name}", lambda: Cages(lab, engine))
        lab.part(f"first call {name}", lambda: first_call(made))
    except Missing as error:
        if engine.user == "root" and not IS_ROOT:
            import pytest
            pytest.skip(str(error))
        skip_or_fail(engine.must, str(error))
    return made


def first_call(cages):
    """What the first call of an engine says; an error is a reason to skip the others, or to fail."""
    outcome = cages.execute("true", flags=("--json",))
    if not outcome.stdout.startswith("{"):
        raise Missing(f"no result: {outcome.stderr.strip()[-600:]}")
    result = json.loads(outcome.stdout)
    if result["verdict"] != "ok":
        raise Missing(f"{result['verdict']}: {result['reason']} ({result['fix']})")
    return result


# ---- processes ----------------------------------------------------------------------------------


@contextlib.contextmanager
def adopting():
    """While this holds, orphans of what we started become our children; the value lists all below us."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before = set(processes())

    def below():
        table, found, fresh = processes(), {}, {os.getpid()}
        while fresh:
            fresh = {pid for pid, (parent, _, _) in table.items() if parent in fresh and pid not in found}
            found |= {pid: table[pid][2] for pid in fresh}
        return {pid: command for pid, command in found.items() if pid not in before}

    try:
        yield below
    finally:
        libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
