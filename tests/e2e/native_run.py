# SPDX-License-Identifier: Apache-2.0
"""Runs of escape attempts, with and without a cage, under everything that a careless caller has about
it: secrets in the environment, open descriptors, keys, a terminal."""

import contextlib
import ctypes
import json
import os
import pty
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from conftest import skip_or_fail
from native import REPO, TIME_SCALE, caller, kill_session, own_groups, processes_of
from native_host import FD_DIRECTORY, FD_NAMESPACE, FD_SECRET, FD_SOCKET, OTHER_ID, Host, walk

sys.path.insert(0, str(REPO / "tests" / "escape"))
from table import CONTROLS, GRANTS  # noqa: E402  (the table lies beside the programs)

TIOCSCTTY = 0x540E
OUTPUT_LIMIT, DISK_LIMIT = 1_000_000, 8_000_000  # of the attempts whose limit the host checks
SANITIZER = {key: value for key, value in os.environ.items() if key in ("ASAN_OPTIONS", "UBSAN_OPTIONS")}
BLOCKS = 1 << 20  # the kernel rounds up
LATE = 64 << 20  # what a fast disk takes until somebody looks: docs/cages.md
libc = ctypes.CDLL(None, use_errno=True)


# ---- what is run --------------------------------------------------------------------------------


def words(host, scratch):
    """What the arguments in the table stand for. {caller_group} and the like are known only later."""
    disk = os.stat("/").st_dev
    disk_name = Path(f"/sys/dev/block/{os.major(disk)}:{os.minor(disk)}").resolve().name
    groups = host.who.groups.elsewhere if host.who.groups else [
        path for path in own_groups().values() if os.access(path / "cgroup.procs", os.W_OK)]
    agents = list(Path("/sys/fs/cgroup").glob("*/release_agent"))
    loaders = [path for path in map(Path, ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"))
               if path.exists()]
    ports = {key: sock.getsockname()[1] for key, sock in host.sockets.items() if key[:3] in ("tcp", "udp")}
    base = host.base
    return ports | {
        "secret": base / "secret/secret.txt", "secretdir": base / "secret", "token": host.token,
        "work": base / "work", "other": base / "other", "third": base / "third", "bin": base / "bin",
        "data": base / "data/data.txt", "datadir": base / "data", "scratch": scratch,
        "victim": host.victim_pid, "address": host.victim_address, "other_id": OTHER_ID,
        "fd_secret": FD_SECRET, "fd_directory": FD_DIRECTORY, "fd_socket": FD_SOCKET, "fd_namespace": FD_NAMESPACE,
        "handle_type": host.handle_type, "handle": host.handle,
        "disk": f"/dev/{disk_name}", "disk_major": os.major(disk), "disk_minor": os.minor(disk),
        "listen": host.free_port, "abstract": "@toolcage-" + host.token, "abstract_datagram":
        f"@toolcage-{host.token}-d", "ipc_key": host.key, "queue": host.queue, "shm_name": host.shm.name,
        "key_name": "toolcage:" + host.token, "hostname": socket.gethostname(),
        "domainname": host.machine["kernel/domainname"].strip(),
        "release_agent": agents[0] if agents else "/sys/fs/cgroup/release_agent",
        "cgroup_procs": groups[0] / "cgroup.procs" if groups else "/sys/fs/cgroup/cgroup.procs",
        "loader": loaders[0] if loaders else "/lib/ld-linux.so",
        "caller_group": "{caller_group}", "caller_session": "{caller_session}", "terminal": "{terminal}",
    }


def write_policy(host, cage, attempt, scratch="/tmp"):
    """Writes the attempt's policy and returns its path. `cage`: BACKEND or BACKEND:PROFILE."""
    backend, _, profile = cage.partition(":")
    known = words(host, scratch)

    def fill(value):
        if isinstance(value, list):
            return [fill(one) for one in value]
        return value.format(**known) if isinstance(value, str) else value

    grants = {key: list(value) if isinstance(value, list) else value for key, value in GRANTS.items()}
    for key, value in attempt.grants.items():
        grants[key] = grants.get(key, []) + value if isinstance(value, list) else value
    if backend == "process":
        # It has no scratch to give, and no limit for what is written to the host.
        grants.pop("scratch", None)
        grants["readable"] = grants["readable"] + (others := grants.pop("writable"))
        if "commands" in attempt.policy:
            grants = {}
    table = {"backend": backend, "timeout": f"{10 * TIME_SCALE:.0f}s"} | attempt.policy
    if profile:
        table["syscalls"] = profile
    lines = ["version = 1", "[tool.attempt]", *(f"{key} = {json.dumps(fill(value))}" for key, value in table.items())]
    lines.append("filesystem = { " + ", ".join(f"{k} = {json.dumps(fill(v))}" for k, v in grants.items()) + " }")
    if backend == "process":
        # Another tool may write there, so that what lies there is not to be trusted.
        lines += ["[tool.writer]", f"filesystem = {{ writable = {json.dumps(fill(others))} }}"]
    path = host.base / "host/policy.toml"
    path.write_text("\n".join(lines) + "\n")
    path.chmod(0o644)
    return path


def start(host, command, letters="-", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
          terminal=None, wrapper=()):
    """Starts a command as the caller, with every secret about it, in a session of its own.

    The launcher between us and the command leads the caller's process group.
    """

    def prepare():
        for number, fd in host.leaked.items():
            os.dup2(fd, number)
        os.setsid()
        if terminal is not None:
            libc.ioctl(terminal, TIOCSCTTY, 0)
        host.who.become()

    letters = "".join(letter for letter in letters if letter in "ibu") or "-"
    launch = [*host.who.prefix, *wrapper, host.helper, "--launch", host.base / "host/signals",
              "toolcage:" + host.token, host.token, letters, *command]
    return subprocess.Popen(
        [str(word) for word in launch], stdin=stdin, stdout=stdout, stderr=stderr, cwd=host.base / "work",
        env={"PATH": "/usr/bin:/bin", "SECRET": host.token, "HOME": str(host.base)} | SANITIZER, close_fds=False,
        preexec_fn=prepare)


# ---- how it ended -------------------------------------------------------------------------------


@dataclass
class Outcome:
    """How a run ended: the attempt's word, the cage's verdict, and what the host saw."""

    status: int
    stdout: str
    stderr: str
    seconds: float
    result: dict | None = None
    problems: list = field(default_factory=list)
    watched: bool = False  # see the table

    @property
    def said(self):
        """The attempt's own line."""
        lines = [line for line in (self.stdout + "\n" + self.stderr).splitlines()
                 if line.startswith(("ESCAPED: ", "held: ", "absent: "))]
        return lines[0] if lines else ""

    @property
    def escaped(self):
        if self.watched and self.result:
            return self.verdict not in ("disk", "failed") or bool(self.problems)
        return self.said.startswith("ESCAPED") or bool(self.problems)

    @property
    def verdict(self):
        return self.result["verdict"] if self.result else ""

    @property
    def refused(self):
        """The cage was not built, and the result says why and what to do."""
        return self.verdict in ("error", "denied") and bool(self.result["reason"])

    def __str__(self):
        text = f"status {self.status}, {self.seconds:.2f} s\nstdout: {self.stdout[:800]}\nstderr: {self.stderr[:800]}"
        if self.result:
            shown = {key: value for key, value in self.result.items() if key not in ("stdout", "stderr")}
            text += f"\nresult: {json.dumps(shown)[:3000]}"
        return text + f"\nhost: {self.problems}"


def heartbeat_problems(path):
    """Does somebody still write to the file?"""
    size = path.stat().st_size if path.exists() else 0
    time.sleep(0.25)
    return ["a process outlived the call"] if path.exists() and path.stat().st_size > size else []


def space_problems(host, slack):
    """Is there more in the writable directories than the limit, by the kernel's count or by size?"""
    used = apparent = 0
    for name in ("work", "other", "third"):
        for _, info in walk(host.base / name):
            if stat.S_ISREG(info.st_mode):
                used, apparent = used + info.st_blocks * 512, apparent + info.st_size
    if max(used, apparent) > DISK_LIMIT + slack:
        return [f"{used} bytes of storage ({apparent} by size) with a limit of {DISK_LIMIT}"]
    return []


def read_terminal(fd):
    os.set_blocking(fd, False)
    with contextlib.suppress(OSError):
        return os.read(fd, 4096)
    return b""


class Visitor:
    """Comes to a port of the host until somebody answers: as long as the attempt lasts, which on an emulated processor may
    take seconds to begin. Ten minutes, should nobody close it."""

    CODE = """import socket, sys, time
for _ in range(12000):
    try:
        socket.create_connection(("127.0.0.1", int(sys.argv[1])), 1).close()
        break
    except OSError:
        time.sleep(0.05)"""

    def __init__(self, port):
        self.process = subprocess.Popen([sys.executable, "-c", self.CODE, str(port)])

    def close(self):
        self.process.kill()
        self.process.wait()


# ---- one run ------------------------------------------------------------------------------------


class Run:
    """One run of an attempt. The caller's streams are files or a terminal where the attempt wants that."""

    def __init__(self, host, attempt, backend=None, timeout=30, wrapper=(), options=(), command=None):
        self.host, self.attempt, self.timeout = host, attempt, timeout * TIME_SCALE
        if command is None:
            host.tidy()  # a command of the test's own may need what it has put there
        scratch = "/tmp" if backend else str(host.scratch)
        known = words(host, scratch)
        # The caller's own streams are looked at where the attempt is about them.
        self.json = backend is not None and not set(attempt.caller) & set("lt")
        self.command = command or [host.program, attempt.name, *(word.format(**known) for word in attempt.args)]
        if backend:
            policy = write_policy(host, backend, attempt, scratch)
            self.command = [host.toolcage, "exec", "--policy", policy, "--tool", "attempt", *options,
                            *(["--json"] if self.json else []), "--", *self.command]
        with contextlib.ExitStack() as stack:
            self.outcome = self._run(stack, wrapper)

    def _streams(self, stack):
        """Standard streams of the caller by the attempt's letters, and a terminal's other end."""
        attempt, base = self.attempt, self.host.base
        streams, master, self.terminal = {}, None, ""
        if set(attempt.caller) & set("tp"):
            master, slave = pty.openpty()
            stack.callback(os.close, master)
            stack.callback(os.close, slave)
            self.terminal = os.ttyname(slave)
            os.chmod(self.terminal, 0o666)
            if "t" in attempt.caller:
                streams = {"stdin": slave, "terminal": slave}
        if "f" in attempt.caller:
            streams["stdin"] = stack.enter_context(open(base / "input.txt", "rb"))
        if attempt.host == "heartbeat":
            # What outlives the call may hold its streams: do not wait for their end.
            streams["stdout"] = streams["stderr"] = stack.enter_context(tempfile.TemporaryFile())
        if "l" in attempt.caller:
            streams["stdout"] = stack.enter_context(open(base / "log.txt", "ab"))
        return streams, master

    def _deferred(self):
        """The command, with words filled in that the launcher's child knows only when it runs."""
        command = [str(word).replace("{terminal}", self.terminal) for word in self.command]
        if not any("{caller_" in word for word in command):
            return command
        quoted = " ".join("'" + word.replace("{caller_group}", "'$PPID'").replace("{caller_session}", "'$SID'") + "'"
                          for word in command)
        return ["/bin/sh", "-c", f"SID=$(cut -d' ' -f6 /proc/$$/stat); exec {quoted}"]

    def _run(self, stack, wrapper):
        attempt, host = self.attempt, self.host
        streams, master = self._streams(stack)
        before = time.monotonic()
        process = start(host, self._deferred(), attempt.caller, wrapper=wrapper, **streams)
        stack.callback(self._sweep, process.pid, self.json)
        visitor = Visitor(host.free_port) if attempt.name == "listen" else None
        try:
            stdout, stderr = process.communicate(timeout=self.timeout)
        except subprocess.TimeoutExpired:
            kill_session(process.pid)
            stdout, stderr = process.communicate()
            stderr = (stderr or b"") + b"\nTEST: did not end in time"
        if visitor:
            visitor.close()
        if attempt.host == "heartbeat":
            streams["stdout"].seek(0)
            stdout = streams["stdout"].read()
        outcome = Outcome(process.returncode, (stdout or b"").decode(errors="replace"),
                          (stderr or b"").decode(errors="replace"), time.monotonic() - before,
                          watched=attempt.host == "watched")
        if "l" in attempt.caller:
            outcome.stdout = host.take_log()
        if self.json:
            self._parse(outcome)
        outcome.problems = self._problems(outcome, master)
        return outcome

    def _sweep(self, session, caged):
        """What an attempt left must not disturb the next one."""
        if not caged or self.attempt.host == "heartbeat":
            kill_session(session)
        if self.attempt.host == "heartbeat":
            for pid in processes_of(self.host):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    @staticmethod
    def _parse(outcome):
        with contextlib.suppress(ValueError):
            outcome.result = json.loads(outcome.stdout)
            outcome.stdout = outcome.result.get("stdout") or ""
            outcome.stderr += outcome.result.get("stderr") or ""

    def _problems(self, outcome, master):
        attempt, host = self.attempt, self.host
        problems = []
        if attempt.host == "heartbeat":
            problems += heartbeat_problems(host.base / "work/heartbeat")
            problems += [f"left behind: {places}" for places in processes_of(host).values()]
        if attempt.host == "kept" and (kept := len(outcome.stdout) + len(outcome.stderr)) > OUTPUT_LIMIT:
            problems.append(f"{kept} bytes of output were kept")
        if attempt.host == "space":
            problems += space_problems(host, BLOCKS)
        if attempt.host == "watched" and self.json:
            problems += space_problems(host, LATE)
        if master is not None and (typed := read_terminal(master)) and b"canary" in typed:
            problems.append(f"somebody typed {typed!r}")
        objects = attempt.name.startswith(("sysv", "posix"))
        return problems + host.problems(outcome.stdout + outcome.stderr, objects)


def run(host, attempt, backend=None, **options):
    """Runs an attempt, in a cage if there is a backend, and returns its Outcome."""
    return Run(host, attempt, backend, **options).outcome


def refusal(host, cage):
    """Why this caller cannot have such a cage on this host; "" if it can."""
    outcome = run(host, CONTROLS[0], cage)
    return outcome.result["reason"] if outcome.verdict == "error" else ""


@contextlib.contextmanager
def jail_host(name):
    """A host of this caller, for tests that need a jail: without one they are skipped."""
    host = Host(caller(name))
    try:
        if reason := refusal(host, "jail"):
            skip_or_fail("jail", reason)
        yield host
    finally:
        host.close()
        host.who.close()
