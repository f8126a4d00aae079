# SPDX-License-Identifier: Apache-2.0
"""The host's side of an escape attempt: canaries of every kind, and whether they still sing.

A Host is a directory with secrets, listeners, a victim process and objects of the kernel, all of
which belong to one caller. `Host.problems()` says what somebody did to them.
"""

import contextlib
import functools
import hashlib
import itertools
import os
import re
import secrets
import shutil
import socket
import stat
import subprocess
import tempfile
from pathlib import Path

from native import IS_ROOT, PROGRAMS, TOOLCAGE, Caller

OTHER_ID = 21001  # owns a setuid program
FD_SECRET, FD_DIRECTORY, FD_SOCKET, FD_NAMESPACE = 60, 61, 62, 63


def pipe_is_silent(sock):
    """Nobody connected, nothing came: sockets here never block."""
    try:
        if sock.type & 0xF == socket.SOCK_STREAM and sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            sock.accept()[0].close()
            return False
        return not sock.recv(100)
    except BlockingIOError:
        return True


def walk(*places):
    """(path, stat) of everything beneath, links not followed. Names may be exchanged while we look."""
    found = []
    for place in places:
        for directory, directories, files in os.walk(place):
            for path in (Path(directory, name) for name in directories + files):
                with contextlib.suppress(FileNotFoundError):
                    found.append((path, path.lstat()))
    return found


@functools.cache
def digest_of_a_program(path):
    """Of what is copied into every host; nobody builds while tests run."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Host:
    """A directory full of canaries that belong to one caller."""

    def __init__(self, who):
        self.who = who
        self.token = "canary-" + secrets.token_hex(12)
        self.base = Path(tempfile.mkdtemp(prefix="toolcage-native-", dir="/var/tmp"))
        self.base.chmod(0o755)
        self.contents = {}
        self.stack = contextlib.ExitStack()
        self.stack.callback(shutil.rmtree, self.base, ignore_errors=True)
        try:
            self._make_files()
            self._make_listeners()
            self._make_descriptors()
            self._make_victim()
            self._make_objects()
        except BaseException:
            self.stack.close()
            raise
        self.machine = self._machine()
        self.before = self._files()

    def close(self):
        self.stack.close()

    # -- making

    def _own(self, path, mode=None):
        os.chown(path, self.who.uid, self.who.uid, follow_symlinks=False)
        if mode is not None:
            os.chmod(path, mode)

    def _directory(self, name, mode=0o755):
        path = self.base / name
        path.mkdir()
        self._own(path, mode)
        return path

    def _file(self, name, text, mode=0o644):
        path = self.base / name
        path.write_text(text)
        self._own(path, mode)
        return path

    def _program(self, name, source, mode=0o755, owner=None):
        """A copy of a program. Its content is known, so that it need not be read again for each host."""
        path = self.base / name
        shutil.copy(source, path)
        self._own(path)
        if owner is not None:
            os.chown(path, owner, owner)
        path.chmod(mode)
        self.contents[path] = path.lstat().st_ctime_ns, digest_of_a_program(source)
        return path

    def _make_files(self):
        for name in ("host", "bin", "data", "data/sub", "work", "work/sub", "work/ro", "other", "third"):
            self._directory(name)
        self._directory("secret", 0o700)
        self._file("secret/secret.txt", self.token, 0o600)
        self._file("data/data.txt", "may be read " * 500)
        self._file("data/sub/hidden.txt", self.token)
        self._file("work/sub/hidden.txt", self.token)
        self._file("work/ro/data.txt", "may be read")
        self._file("log.txt", self.token + "\n", 0o600)
        self._file("input.txt", "input of the caller", 0o600)
        self._file("host/signals", "")
        (self.base / "data/link").symlink_to(self.base / "secret/secret.txt")
        attempts = PROGRAMS / "escape-attempts"
        self.program = self._program("bin/escape-attempts", attempts)
        self._program("bin/another", attempts)
        # Nobody but root can make a program of somebody else.
        self._program("bin/setuid-attempts", attempts, 0o4755, OTHER_ID if IS_ROOT else None)
        # The build may lie where only its owner can go.
        self.toolcage = self._program("host/toolcage", TOOLCAGE)
        # The host's own helpers run a file of their own: nobody keeps the enemy's program busy.
        self.helper = self._program("host/helper", attempts)
        self.scratch = Path(tempfile.mkdtemp(prefix="toolcage-scratch-", dir="/dev/shm"))
        self.stack.callback(shutil.rmtree, self.scratch, ignore_errors=True)
        self._own(self.scratch)

    def _listen(self, family, kind, address):
        sock = socket.socket(family, kind)
        self.stack.callback(sock.close)
        sock.setblocking(False)
        sock.bind(address)
        if kind == socket.SOCK_STREAM:
            sock.listen(16)
        return sock

    def _make_listeners(self):
        stream, datagram, inet, inet6 = socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.AF_INET, socket.AF_INET6
        name = "\0toolcage-" + self.token
        self.sockets = {
            "tcp4": self._listen(inet, stream, ("127.0.0.1", 0)),
            "tcp6": self._listen(inet6, stream, ("::1", 0)),
            "udp4": self._listen(inet, datagram, ("127.0.0.1", 0)),
            "udp6": self._listen(inet6, datagram, ("::1", 0)),
            "unix": self._listen(socket.AF_UNIX, stream, str(self.base / "secret/stream.sock")),
            "unix datagram": self._listen(socket.AF_UNIX, datagram, str(self.base / "secret/datagram.sock")),
            "unix granted": self._listen(socket.AF_UNIX, stream, str(self.base / "work/granted.sock")),
            "abstract": self._listen(socket.AF_UNIX, stream, name),
            "abstract datagram": self._listen(socket.AF_UNIX, datagram, name + "-d"),
        }
        for path in ("secret/stream.sock", "secret/datagram.sock", "work/granted.sock"):
            self._own(self.base / path, 0o666)
        os.mkfifo(self.base / "data/fifo")
        self._own(self.base / "data/fifo", 0o666)
        self.fifo = os.open(self.base / "data/fifo", os.O_RDWR | os.O_NONBLOCK)
        self.stack.callback(os.close, self.fifo)
        probe = self._listen(inet, stream, ("127.0.0.1", 0))
        self.free_port = probe.getsockname()[1]
        probe.close()

    def _make_descriptors(self):
        """Descriptors that the caller forgets to close: a file, a directory, a socket, a namespace."""
        self.leaked = {}
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        self.stack.callback(ours.close)
        self.sockets["inherited socket"] = ours
        for number, fd in ((FD_SECRET, os.open(self.base / "secret/secret.txt", os.O_RDONLY)),
                           (FD_DIRECTORY, os.open(self.base / "secret", os.O_RDONLY)),
                           (FD_SOCKET, theirs.detach()), (FD_NAMESPACE, os.open("/proc/self/ns/net", os.O_RDONLY))):
            self.leaked[number] = fd
            self.stack.callback(os.close, fd)

    def _make_victim(self):
        record = self._file("host/victim-signals", "")
        self.victim = subprocess.Popen(
            [self.helper, "--victim", record, self.token], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            preexec_fn=self._become_victim, env={"VICTIM": self.token}, start_new_session=True)
        self.stack.callback(self._end_victim)
        self.victim_pid, self.victim_address = self.victim.stdout.readline().split()

    def _become_victim(self):
        Caller("victim", self.who.uid).become()

    def _end_victim(self):
        self.victim.kill()
        self.victim.wait()
        self.victim.stdin.close()
        self.victim.stdout.close()

    def _run_helper(self, *args):
        return subprocess.run([self.helper, *map(str, args)], preexec_fn=self._become_victim, check=True,
                              capture_output=True, text=True).stdout.split()

    def _make_objects(self):
        self.key = secrets.randbelow(1 << 30) + 1
        self.queue = f"/toolcage-{self.token}"
        self.shm = Path("/dev/shm") / f"toolcage-canary-{secrets.token_hex(4)}"
        self.shm.write_text(self.token)
        self.stack.callback(self.shm.unlink, missing_ok=True)
        self._own(self.shm, 0o600)
        self._run_helper("--ipc", "make", self.key, self.queue, self.token)
        self.stack.callback(self._run_helper, "--ipc", "remove", self.key, self.queue, "-")
        handle = self._run_helper("--handle", self.base / "secret/secret.txt")
        self.handle_type, self.handle = handle if len(handle) == 2 else ("1", "00")

    # -- looking

    def _files(self):
        """Everything that may not change: {path: (mode, owner, group, size, written, attributes, content)}."""
        found = {}
        for path, _ in walk(*(self.base / name for name in ("secret", "data", "bin", "work/ro", "work/sub"))):
            found[path] = self._fingerprint(path)
        for name in ("data", "bin", "secret", "log.txt", "input.txt", "host/toolcage", "host/helper"):
            found[self.base / name] = self._fingerprint(self.base / name)
        return found

    def _fingerprint(self, path):
        info = path.lstat()
        attributes = tuple(os.listxattr(path, follow_symlinks=False))
        size = 0 if stat.S_ISDIR(info.st_mode) else info.st_size
        content = ""
        if stat.S_ISREG(info.st_mode):
            # Nobody can set the time of the last change: while it is the same, so is the content.
            changed, content = self.contents.get(path, (0, ""))
            if changed != info.st_ctime_ns:
                content = hashlib.sha256(path.read_bytes()).hexdigest()
                self.contents[path] = info.st_ctime_ns, content
        return oct(info.st_mode), info.st_uid, info.st_gid, size, info.st_mtime_ns, attributes, content

    @staticmethod
    def _machine():
        """Settings of the whole machine."""
        names = ("kernel/core_pattern", "kernel/hostname", "kernel/domainname", "kernel/threads-max",
                 "kernel/ctrl-alt-del")
        return {name: Path("/proc/sys", name).read_text() for name in names if Path("/proc/sys", name).exists()}

    def _victim_problems(self):
        problems = []
        if self.victim.poll() is not None:
            return [f"the victim died: {self.victim.returncode}"]
        if text := (self.base / "host/victim-signals").read_text().split():
            problems.append(f"the victim got signals {text}")
        with open(f"/proc/{self.victim_pid}/mem", "rb") as memory:
            memory.seek(int(self.victim_address, 16))
            if memory.read(len(self.token)).decode(errors="replace") != self.token:
                problems.append("the victim's memory was changed")
        pid = int(self.victim_pid)
        files = re.search(r"^Max open files +(\d+)", Path(f"/proc/{pid}/limits").read_text(), re.MULTILINE)
        state = (int(files[1]) > 7, os.getpriority(os.PRIO_PROCESS, pid) < 19,
                 os.sched_getaffinity(pid) == os.sched_getaffinity(0), os.sched_getscheduler(pid) == os.SCHED_OTHER)
        if not all(state):
            problems.append(f"the victim's limits, priority, processors or scheduler were changed: {state}")
        return problems

    def _workspace_problems(self):
        """Files in writable places must be the caller's, and give nobody new rights."""
        problems = []
        for path, info in walk(*(self.base / name for name in ("work", "other", "third"))):
            if stat.S_ISBLK(info.st_mode) or stat.S_ISCHR(info.st_mode):
                problems.append(f"{path.name} is a device")
            if not stat.S_ISLNK(info.st_mode) and info.st_mode & (stat.S_ISUID | stat.S_ISGID):
                problems.append(f"{path.name} has mode {oct(info.st_mode)}")
            if info.st_uid != self.who.uid or info.st_gid != self.who.uid:
                problems.append(f"{path.name} belongs to {info.st_uid}:{info.st_gid}")
            with contextlib.suppress(FileNotFoundError):
                if "security.capability" in os.listxattr(path, follow_symlinks=False):
                    problems.append(f"{path.name} has capabilities")
        return problems

    def problems(self, output="", objects=False):
        """What an attempt did to the host."""
        problems = [f"somebody came to {name}" for name, sock in self.sockets.items() if not pipe_is_silent(sock)]
        problems += self._victim_problems() + self._workspace_problems()
        with contextlib.suppress(BlockingIOError):
            problems.append(f"somebody wrote to the FIFO: {os.read(self.fifo, 100)}")
        if self.token in output:
            problems.append("the secret came out")
        if (self.base / "work/missing").exists() or (self.base / "work/missing").is_symlink():
            problems.append("a protected file was made")
        after = self._files()
        for path in sorted({*after, *self.before}):
            if after.get(path) != self.before.get(path):
                problems.append(f"{path.relative_to(self.base)} changed: {self.before.get(path)} -> {after.get(path)}")
        if text := (self.base / "host/signals").read_text().split():
            problems.append(f"the caller got signals {text}")
        if self._machine() != self.machine:
            problems.append(f"the machine's settings changed: {self.machine} -> {self._machine()}")
        if objects and (left := self._run_helper("--ipc", "show", self.key, self.queue, "-")) != ["1", "0", "1"]:
            problems.append(f"IPC objects changed: {left}")
        return problems

    def tidy(self):
        """Empties what cages may write to, and forgets signals."""
        (self.base / "host/signals").write_text("")
        keep = {self.base / "work" / name for name in ("sub", "ro", "granted.sock")}
        for path in itertools.chain(*(self.base.joinpath(name).iterdir() for name in ("work", "other", "third"))):
            if path in keep:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)

    def take_log(self):
        """What came to the caller's log; then it is as it was."""
        log = self.base / "log.txt"
        text = log.read_text(errors="replace")
        self._file("log.txt", self.token + "\n", 0o600)
        self.before[log] = self._fingerprint(log)
        return text.removeprefix(self.token + "\n")
