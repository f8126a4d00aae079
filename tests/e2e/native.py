# SPDX-License-Identifier: Apache-2.0
"""Who starts native cages in the tests, and what may not be left of them.

Callers are root, an ordinary user with control groups of its own, and an ordinary user in a place
that is like an unprivileged container. native_host.py has the canaries, native_run.py the runs.
"""

import contextlib
import os
import re
import secrets
import signal
import time
from dataclasses import dataclass
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
BUILD = REPO / os.environ.get("TOOLCAGE_BUILD", "build")
PROGRAMS = BUILD / "tests" / "escape"
TOOLCAGE = BUILD / "src" / "toolcage"
IS_ROOT = os.geteuid() == 0
# How much slower than usual this machine is.
TIME_SCALE = float(os.environ.get("TOOLCAGE_TIME_SCALE") or os.environ.get("TIME_SCALE") or 1)
ORDINARY_ID = 21000 if IS_ROOT else os.getuid()
# Of tests with containers, which run beside those with cages: a user's keys, for one, are counted for all that it runs.
CONTAINER_USER_ID = 21002 if IS_ROOT else os.getuid()
# Where all would take too long, one of each kind is run: in an emulated machine, which is there for its
# other kernel, and with sanitizers, which look at toolcage's own code.
SANITIZED = TOOLCAGE.exists() and b"__asan_init" in TOOLCAGE.read_bytes()
SLOW = TIME_SCALE >= 10 or SANITIZED


# ---- control groups -----------------------------------------------------------------------------


def own_groups():
    """The directories of our own control groups, one per hierarchy: {controllers: path}."""
    mounts = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, after = line.split(" - ")
        kind, _, options = after.split(" ", 2)
        if kind == "cgroup2":
            mounts[""] = before.split()[4]
        elif kind == "cgroup":
            for option in options.split(","):
                mounts[option] = before.split()[4]
    found = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        mount = mounts.get(controllers.split(",")[0])
        if mount and Path(mount + path).is_dir():
            found[controllers] = Path(mount + path)
    return found


class Groups:
    """Control groups that belong to a user, as a service manager would hand them over."""

    WANTED = {"memory", "pids", "cpu", "cpuacct", "cpu,cpuacct", "cpuacct,cpu", ""}

    def __init__(self, uid):
        self.paths, self.inner, self.elsewhere = [], [], []
        name = f"toolcage-test-{os.getpid()}-{secrets.token_hex(3)}"
        only_v2 = set(own_groups()) == {""}
        for controllers, parent in own_groups().items():
            if controllers not in self.WANTED:
                continue
            if controllers == "" and only_v2:
                # Beside us, not below: a group with processes in it cannot hand down controllers.
                parent = parent.parent if parent.parent.joinpath("cgroup.procs").exists() else parent
                for word in ("+memory", "+pids", "+cpu"):
                    with contextlib.suppress(OSError):
                        (parent / "cgroup.subtree_control").write_text(word)
            path = parent / name
            path.mkdir()
            self.paths.append(path)
            inside = path
            if controllers == "":
                inside = path / "caller"
                inside.mkdir()
            self.inner.append(inside)
            elsewhere = path / "elsewhere"  # for a cage that wants to leave its group
            elsewhere.mkdir()
            self.elsewhere.append(elsewhere)
            for directory in {path, inside, elsewhere}:
                for entry in (directory, directory / "cgroup.procs", directory / "cgroup.subtree_control",
                              directory / "cgroup.threads", directory / "tasks"):
                    if entry.exists():
                        os.chown(entry, uid, uid)

    def enter(self):
        for path in self.inner:
            (path / "cgroup.procs").write_text("0")

    def children(self):
        """Groups that somebody made in ours."""
        found = [child for path in self.paths for child in path.rglob("*") if child.is_dir()]
        return sorted(set(found) - {*self.inner, *self.elsewhere})

    def remove(self):
        # An enemy that forks on and on is faster than any list of processes.
        for path in self.paths:
            with contextlib.suppress(OSError):
                (path / "cgroup.kill").write_text("1")
        for path in [*self.children()[::-1], *self.elsewhere, *self.inner, *self.paths]:
            # A group is busy for a moment after its last process has gone.
            end = time.monotonic() + 20
            while path.exists() and time.monotonic() < end:
                try:
                    path.rmdir()
                except OSError:
                    time.sleep(0.02)


# ---- callers ------------------------------------------------------------------------------------


@dataclass
class Caller:
    """Who starts a cage: root, an ordinary user, or an ordinary user in an unprivileged container."""

    name: str
    uid: int
    groups: Groups | None = None
    prefix: tuple = ()

    def become(self):
        """Runs in the child, before exec."""
        if self.groups:
            self.groups.enter()
        if self.uid != os.getuid():
            os.setgroups([])
            os.setresgid(self.uid, self.uid, self.uid)
            os.setresuid(self.uid, self.uid, self.uid)

    def close(self):
        if self.groups:
            self.groups.remove()


def caller(name, ordinary_id=ORDINARY_ID):
    """A Caller by its name."""
    if name == "root":
        return Caller("root", 0)
    if name == "user":
        # Whoever runs the tests without privileges has what its session gave it.
        return Caller("user", ordinary_id, Groups(ordinary_id) if IS_ROOT else None)
    if name == "container":
        return Caller("container", ordinary_id, prefix=(str(PROGRAMS / "like-container"),))
    raise ValueError(name)


# ---- processes, mounts and files that are left --------------------------------------------------


def processes():
    """{pid: (parent, session, command)} of everything that runs."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError):
                text = (entry / "stat").read_text()
                state, parent, _, session = text.rsplit(")", 1)[1].split()[:4]
                if state not in "ZX":
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    found[int(entry.name)] = (int(parent), int(session), command or text.split("(", 1)[1])
    return found


def kill_session(session):
    """Ends what is left of a session that we started, whatever became of its leader. Called after every attempt: it
    asks the kernel, and reads no file."""
    for name in os.listdir("/proc"):
        with contextlib.suppress(ProcessLookupError, ValueError):
            if os.getsid(pid := int(name)) == session:
                os.kill(pid, signal.SIGKILL)


def processes_of(host, ours=()):
    """Processes that run a program of this host's directory or hold a file in it; the victim is not one."""
    base, found = str(host.base), {}
    for pid, (_, _, command) in processes().items():
        if pid in (int(host.victim_pid), os.getpid(), *ours):
            continue
        places = [command]
        for link in ("exe", "cwd", "root"):
            with contextlib.suppress(OSError):
                places.append(os.readlink(f"/proc/{pid}/{link}"))
        if any(base in place for place in places):
            found[pid] = places
    return found


def mounts():
    """Mounts that somebody could have left: of toolcage, of its tests, or of a namespace."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return sorted(line.split(" ", 2)[2] for line in lines if "toolcage" in line or " nsfs " in line)


def temporary_files(uid):
    """Names where careless programs leave things: of toolcage's making, or of a user who has no other
    business there. Those that tests make (toolcage-WORD-abcdefgh) do not count."""
    found = set()
    for place in ("/tmp", "/var/tmp", "/dev/shm", "/run", "/run/lock"):
        for entry in os.scandir(place) if os.path.isdir(place) else ():
            with contextlib.suppress(FileNotFoundError):  # others remove what is theirs meanwhile
                owner = entry.stat(follow_symlinks=False).st_uid
                if owner == uid and (uid in (ORDINARY_ID, CONTAINER_USER_ID) or re.match(r"toolcage|tc-|cage", entry.name)):
                    found.add(entry.path)
    return {path for path in found if not re.search(r"/toolcage-[a-z]+-[a-z0-9_]{8}$", path)}


def cage_groups(groups=None):
    """Control groups that a dead process has left: below ours, or below a caller's. For the living
    they are as they should be: "toolcage-PIDNS.TIMENS-PID-STARTED-ID"."""
    own = own_groups().values()
    places = groups.paths + groups.inner if groups else [*own, *(path.parent for path in own)]
    found = set()
    for place in set(places):
        for child in place.glob("toolcage-*"):
            match = re.fullmatch(r"toolcage-[0-9a-f]+\.[0-9a-f]+-(\d+)-.*", child.name)
            if match and not Path("/proc", match[1]).exists():
                found.add(child)
    return found
