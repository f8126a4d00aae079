# SPDX-License-Identifier: Apache-2.0
"""Owns: the world in which the gate is tested: two network namespaces of our own, joined by one wire. Toolcage runs
in the "world", with a resolv.conf of its own; everything that it can reach is in the "internet". No other interface
is in either of them, so the public addresses in use here are ours alone.

Root makes them as they are; an ordinary user makes them in a user namespace. gate/internet.py has the servers,
gate/names.py the names, gate_lab.py the cages.
"""

import contextlib
import json
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from native import BUILD, IS_ROOT, ORDINARY_ID, REPO, TIME_SCALE, TOOLCAGE

HERE = REPO / "tests" / "e2e" / "gate"
sys.path.insert(0, str(HERE))
import names  # noqa: E402  (lies beside the servers)

WORLD_ADDRESS = "10.77.0.2"
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
    if not shutil.which(words[0]):
        raise Missing(f"{words[0]} is not installed")
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise Missing(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


class World:
    """Both namespaces with their servers, and a directory that cages may read (`public`)."""

    def __init__(self):
        self.stack = contextlib.ExitStack()
        self.settlers = []
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
        programs = BUILD / "tests" / "e2e" / "gate"
        shutil.copy(programs / "gate-client", self.public / "static-client")
        shutil.copy(programs / "gate-host", self.base / "gate-host")
        for name, text in ETC.items():
            (self.base / "etc" / name).write_text(text)
        self._make_certificates()
        self._make_repository()

    def _make_certificates(self):
        if not shutil.which("openssl"):
            return  # no TLS then
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
        if not (git := shutil.which("git")):
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
        if not shutil.which("unshare") or not shutil.which("nsenter"):
            raise Missing("util-linux is not installed")
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
        # A router that says what is out of reach, each time.
        router = ("cd /proc/sys/net; echo 1 >ipv4/ip_forward; echo 1 >ipv6/conf/all/forwarding; "
                  "echo 0 >ipv4/icmp_ratelimit; echo 0 >ipv6/icmp/ratelimit")
        run_tool(*self._inside(self.internet), "sh", "-c", router)
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
        for where in ("internet", "world"):
            sock = self.stack.enter_context(socket.socket(socket.AF_UNIX))
            sock.settimeout(20 * TIME_SCALE)
            sock.connect(str(self.base / "log" / f"{where}.socket"))
            self.settlers.append(sock)

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

    def settle(self):
        """What has happened until now is in the logs."""
        for sock in self.settlers:
            sock.sendall(b"\n")
            assert sock.recv(100) == b"settled\n"

    def mark(self):
        """A place in the logs; log(mark) tells what came since."""
        self.settle()
        return {where: (self.base / "log" / where).stat().st_size for where in ("internet", "world")}

    def log(self, mark, event=None, where=None):
        self.settle()
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
