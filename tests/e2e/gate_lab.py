# SPDX-License-Identifier: Apache-2.0
"""Owns: the world in which the gate is tested: two network namespaces of our own, joined by one wire. Toolcage runs
in the "world", with a resolv.conf of its own; everything that it can reach is in the "internet". No other interface
is in either of them, so the public addresses in use here are ours alone.

Root makes them as they are; an ordinary user makes them in a user namespace. Cages are started by root or by an
ordinary user inside of the world. gate/internet.py has the servers, gate/names.py the names.
"""

import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from conftest import skip_or_fail
from native import BUILD, IS_ROOT, ORDINARY_ID, REPO, TIME_SCALE, TOOLCAGE, caller, processes

HERE = REPO / "tests" / "e2e" / "gate"
sys.path.insert(0, str(HERE))
import names  # noqa: E402  (lies beside the servers)

WORLD_ADDRESS = "10.77.0.2"
PYTHON = ("/usr/bin/python3", "-I", "-S", "-B", "-c")
SANITIZER = {key: value for key, value in os.environ.items() if key in ("ASAN_OPTIONS", "UBSAN_OPTIONS")}
# The words that programs take for a proxy are not among these.
ENVIRONMENT = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C.UTF-8"} | SANITIZER

# For `ip -batch`, in the internet and in the world.
INTERNET = f"""\
link set lo up
addr add {names.PRIVATE}/24 dev wire-out
addr add fd77::1/64 dev wire-out nodad
link set wire-out up
addr add {names.SERVER}/32 dev lo
addr add {names.OTHER}/32 dev lo
addr add {names.NAME_SERVER}/32 dev lo
addr add {names.METADATA}/32 dev lo
addr add {names.SERVER6}/128 dev lo nodad
addr add {names.OTHER6}/128 dev lo nodad
route add local 93.184.220.0/24 dev lo
route add {names.OWN}/32 via {WORLD_ADDRESS}
route add unreachable {names.UNREACHABLE}/32
route add blackhole {names.SILENT}/32
route add blackhole {names.SILENT6}/128
"""
WORLD = f"""\
link set lo up
addr add {WORLD_ADDRESS}/24 dev wire-in
addr add fd77::2/64 dev wire-in nodad
link set wire-in up
addr add {names.OWN}/32 dev lo
route add default via {names.PRIVATE}
route add default via fd77::1
"""
ETC = {
    "resolv.conf": f"nameserver {names.NAME_SERVER}\noptions timeout:2 attempts:2\n",
    "hosts": "127.0.0.1 localhost\n::1 localhost ip6-localhost\n93.184.216.34 hostsfile.test\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}


class Missing(Exception):
    """This host cannot have such a world; says why."""


def run_tool(*words, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise Missing(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


@dataclass
class Outcome:
    """How a program ended, in a cage or without one."""

    status: int
    stdout: str
    stderr: str
    seconds: float
    result: dict = field(default_factory=dict)

    @property
    def said(self):
        """What a snippet told with say()."""
        lines = self.stdout.strip().splitlines()
        assert lines and lines[-1].startswith("{"), self
        return json.loads(lines[-1])

    def denials(self):
        """{target: rule} of what the network refused."""
        return {entry["target"]: entry["rule"] for entry in self.result["denials"] if entry["kind"] == "network"}

    def connections(self, name=None):
        return [entry for entry in self.result["connections"] if name in (None, entry["name"])]


class World:
    """Both namespaces with their servers, and a directory that cages may read (`public`)."""

    def __init__(self):
        self.stack = contextlib.ExitStack()
        self.base = Path(tempfile.mkdtemp(prefix="toolcage-gate-", dir="/var/tmp"))
        self.stack.callback(shutil.rmtree, self.base, ignore_errors=True)
        try:
            self._make_files()
            self._make_namespaces()
        except BaseException:
            self.stack.close()
            raise

    def close(self):
        self.stack.close()

    # -- making

    def _make_files(self):
        self.base.chmod(0o755)
        for name in ("public", "log", "certificates", "served", "etc", "policies"):
            (self.base / name).mkdir()
        self.public = self.base / "public"
        shutil.copy(TOOLCAGE, self.base / "toolcage")
        shutil.copy(HERE / "inside.py", self.public)
        client = BUILD / "tests" / "e2e" / "gate" / "gate-client"
        if client.exists():
            shutil.copy(client, self.public / "static-client")
        for name, text in ETC.items():
            (self.base / "etc" / name).write_text(text)
        self._make_certificates()
        self._make_repository()

    def _make_certificates(self):
        folder = self.base / "certificates"
        new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
        run_tool("openssl", "req", "-x509", *new_key, "-keyout", folder / "ca.key", "-out", folder / "ca.pem",
                 "-subj", "/CN=An authority of the lab")
        for name in ("allowed.test", "www.allowed.test", "other.test", "refused.test"):
            run_tool("openssl", "req", "-x509", *new_key, "-keyout", folder / f"{name}.key", "-out",
                     folder / f"{name}.pem", "-subj", f"/CN={name}", "-addext",
                     "subjectAltName=" + ",".join(f"DNS:{one}" for one in (name, "v4.test", "v6.test")),
                     "-addext", "basicConstraints=critical,CA:FALSE", "-CA", folder / "ca.pem", "-CAkey",
                     folder / "ca.key")
        shutil.copy(folder / "ca.pem", self.public / "ca.pem")

    def _make_repository(self):
        """For git over plain HTTP, the simple protocol: files are enough."""
        git = shutil.which("git")
        if not git:
            return
        work, served = self.base / "etc" / "work", self.base / "served" / "repository.git"
        options = ("-c", "user.name=Lab", "-c", "user.email=lab@lab.test", "-c", "init.defaultBranch=main")
        run_tool(git, *options, "init", "-q", work)
        (work / "file.txt").write_text("from the repository\n")
        run_tool(git, "-C", work, "add", "file.txt")
        run_tool(git, *options, "-C", work, "commit", "-q", "-m", "one")
        run_tool(git, "clone", "-q", "--bare", work, served)
        run_tool(git, "-C", served, "update-server-info")

    def _start(self, where, prefix):
        process = subprocess.Popen(
            [*prefix, "unshare", "--net", "--mount", "--propagation", "private", "/usr/bin/python3", "-B",
             str(HERE / "internet.py"), str(self.base), where],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT)
        self.stack.callback(self._end, process)
        return process

    @staticmethod
    def _end(process):
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()

    def _make_namespaces(self):
        own = () if IS_ROOT else ("unshare", "--user", "--map-root-user")
        self.internet = self._start("internet", own)
        self._expect(self.internet, b"made\n")
        self.host = self._start("world", () if IS_ROOT else (
            "nsenter", "--preserve-credentials", "-U", "-t", str(self.internet.pid)))
        self._expect(self.host, b"made\n")
        run_tool(*self._inside(self.host), "ip", "link", "add", "wire-in", "type", "veth", "peer", "name", "wire-out",
                 "netns", self.internet.pid)
        forward = "echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding"
        run_tool(*self._inside(self.internet), "sh", "-c", forward)
        for process, lines in ((self.internet, INTERNET), (self.host, WORLD)):
            run_tool(*self._inside(process), "ip", "-batch", "-", input=lines)
            # The kernel tells a host that something is unreachable once in a second only.
            run_tool(*self._inside(process), "sh", "-c", "echo 0 > /proc/sys/net/ipv4/icmp_ratelimit")
            process.stdin.write(b"go\n")
            process.stdin.flush()
        for name in ETC:
            run_tool(*self._inside(self.host), "mount", "--bind", self.base / "etc" / name, f"/etc/{name}")
        for process in (self.internet, self.host):
            self._expect(process, b"ready\n")

    @staticmethod
    def _expect(process, line):
        if not select.select([process.stdout], [], [], 20 * TIME_SCALE)[0] or process.stdout.readline() != line:
            process.kill()
            raise Missing(f"a server does not start: {process.stderr.read().decode()}")

    def _inside(self, process):
        """Words before a command that runs there, as the world's root."""
        user = () if IS_ROOT else ("-U", "--preserve-credentials")
        return ("nsenter", *user, "-n", "-m", "-t", str(process.pid), "--")

    def prefix(self, who):
        """Words before a command of this caller in the world."""
        words = self._inside(self.host)
        if who == "root":
            return words
        if not IS_ROOT:
            return (*words, "unshare", "--user", f"--map-user={os.getuid()}", f"--map-group={os.getgid()}")
        return (*words, "setpriv", f"--reuid={ORDINARY_ID}", f"--regid={ORDINARY_ID}", "--clear-groups", "--")

    # -- the log

    def mark(self):
        """A place in the logs; log(mark) tells what came since."""
        return {where: (self.base / "log" / where).stat().st_size for where in ("internet", "world")}

    def log(self, mark, event=None, where=None):
        found = []
        for name, offset in mark.items():
            if where in (None, name):
                with open(self.base / "log" / name, encoding="utf-8") as file:
                    file.seek(offset)
                    found += [json.loads(line) | {"where": name} for line in file if line.endswith("\n")]
        return [entry for entry in found if event in (None, entry["event"])]

    def wait_for(self, mark, event, seconds=5, **wanted):
        """The first entry of the log that is so; it may take a moment to be written."""
        end = time.monotonic() + seconds * TIME_SCALE
        while True:
            for entry in self.log(mark, event):
                if wanted.items() <= entry.items():
                    return entry
            assert time.monotonic() < end, (event, wanted, self.log(mark))
            time.sleep(0.01)


class Cage:
    """Runs programs in the world as one caller: in a cage with network rules, or as they are."""

    def __init__(self, world, who):
        self.world, self.who = world, who
        self.caller = caller(who)
        self.policies = world.base / "policies"
        self.count = 0

    def close(self):
        self.caller.close()

    def policy(self, network, more=""):
        """A policy with these rules; `more`: other lines of [defaults]."""
        lines = {"timeout": '"20s"', "pids": "128", "memory": '"512MB"', "files": "1024"}
        lines = {key: value for key, value in lines.items() if not any(line.startswith(f"{key} ") for line in more.split("\n"))}
        text = "version = 1\n[defaults]\n" + "".join(f"{key} = {value}\n" for key, value in lines.items())
        text += f'filesystem = {{ readable = ["{self.world.public}"], scratch = "64MB" }}\n'
        text += f"network = {json.dumps(network)}\n{more}\n"
        self.count += 1
        path = self.policies / f"{self.who}-{self.count}.toml"
        path.write_text(text)
        return path

    def spawn(self, *command, **options):
        """Starts a program in the world, without a cage; the process is the program itself."""
        groups = self.caller.groups
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
                   "preexec_fn": groups.enter if groups else None} | options
        return subprocess.Popen([*self.world.prefix(self.who), *map(str, command)], cwd=self.world.base,
                                env=ENVIRONMENT | {"HOME": "/nonexistent"}, **options)

    def start(self, network, *command, more="", flags=("--json",), **options):
        """Starts `toolcage exec`."""
        return self.spawn(self.world.base / "toolcage", "exec", "--policy", self.policy(network, more), *flags, "--",
                          *command, **options)

    @staticmethod
    def finish(process, timeout=40):
        begin = time.monotonic()
        try:
            stdout, stderr = process.communicate(timeout=timeout * TIME_SCALE)
        except subprocess.TimeoutExpired:
            process.kill()
            stdout, stderr = process.communicate()
            raise AssertionError(f"it does not end: {stdout!r} {stderr!r}") from None
        return Outcome(process.returncode, stdout.decode(errors="replace"), stderr.decode(errors="replace"),
                       time.monotonic() - begin)

    def bare(self, *command):
        """Without a cage: what the world itself allows."""
        return self.finish(self.spawn(*command))

    def run(self, network, *command, more="", flags=()):
        """In a cage; the outcome is the command's, with toolcage's result."""
        outcome = self.finish(self.start(network, *command, more=more, flags=("--json", *flags)))
        assert outcome.status == 0 and outcome.stdout.startswith("{"), outcome
        result = json.loads(outcome.stdout)
        check_schema(result)
        assert result["verdict"] != "error", result
        status = result["exit_code"] if result["exit_code"] is not None else -1
        return Outcome(status, result["stdout"], result["stderr"], result["usage"]["duration_ms"] / 1000, result)

    def snippet(self, code):
        """The words of a command that runs the code with gate/inside.py."""
        return (*PYTHON, f"import sys\nsys.path.insert(0, {str(self.world.public)!r})\nfrom inside import *\n{code}")

    def python(self, network, code, **options):
        """Runs a snippet in a cage; it ends well, and says something."""
        outcome = self.run(network, *self.snippet(code), **options)
        assert outcome.status == 0, (outcome.stderr, outcome.result)
        return outcome

    def bare_python(self, code):
        outcome = self.bare(*self.snippet(code))
        assert outcome.status == 0, outcome
        return outcome


SCHEMA = json.loads((REPO / "schemas" / "result.json").read_text(encoding="utf-8"))


def check_schema(result):
    import jsonschema
    jsonschema.validate(result, SCHEMA, jsonschema.Draft202012Validator)


def need(*programs):
    """Skips when a client is not installed; `make check` installs them."""
    for program in programs:
        if not shutil.which(program, path=ENVIRONMENT["PATH"]):
            skip_or_fail("clients", f"{program} is not installed")


# ---- fixtures: modules import them --------------------------------------------------------------


@pytest.fixture(scope="module")
def world():
    try:
        made = World()
    except (Missing, FileNotFoundError) as error:
        skip_or_fail("jail", f"no network of our own can be made here: {error}")
    yield made
    left = {pid: entry for pid, entry in processes().items()
            if str(made.base) in entry[2] and pid not in (made.internet.pid, made.host.pid)}
    made.close()
    assert not left, left


def make_cage(world, who):
    if who == "root" and not IS_ROOT:
        pytest.skip("only root can show what happens to root")
    made = Cage(world, who)
    probe = made.finish(made.start(["allowed.test:80"], "true"))
    reason = json.loads(probe.stdout)["reason"] if probe.stdout.startswith("{") else probe.stderr
    if probe.status != 0 or json.loads(probe.stdout)["verdict"] == "error":
        made.close()
        skip_or_fail("jail", f"a cage with a gate cannot be built here: {reason}")
    return made


@pytest.fixture(scope="module", params=["user", "root"])
def cage(request, world):
    made = make_cage(world, request.param)
    yield made
    made.close()


@pytest.fixture(scope="module")
def one_cage(world):
    """Where it does not matter who starts it: an ordinary user, who can do less."""
    made = make_cage(world, "user")
    yield made
    made.close()


@pytest.fixture(scope="module")
def no_cage(world):
    """For what works in the world as it is: without that, a test of a cage says nothing."""
    made = Cage(world, "user")
    yield made
    made.close()


@pytest.fixture
def mark(world):
    return world.mark()
