# SPDX-License-Identifier: Apache-2.0
"""MCP clients and servers that nobody here wrote: where scripts/mcp-peers put them, and how to run them."""

import functools
import hashlib
import json
import os
import re
import select
import subprocess
import time
from pathlib import Path

from conftest import REPO, TIME_SCALE, skip_or_fail
from mcp_client import command

SCRIPTS = REPO / "tests" / "mcp"
PEERS = REPO / os.environ.get("TOOLCAGE_PEERS", "build/mcp-peers")
MODULES = PEERS / "node_modules"
NODE = MODULES / "node"
PACKAGES = MODULES / "@modelcontextprotocol"
PYTHON = "/usr/bin/python3"


def wanted_stamp():
    """What scripts/mcp-peers writes when everything that the lists name is there."""
    lists = b"".join((SCRIPTS / name).read_bytes() for name in ("package.json", "package-lock.json", "requirements.txt"))
    version = subprocess.run([PYTHON, "--version"], stdout=subprocess.PIPE, check=True).stdout
    return hashlib.sha256(lists + version).hexdigest()


def require_peers():
    """Without them, or without jails for tools, a test is skipped, or fails if $TOOLCAGE_MUST_WORK names mcp (jail)."""
    try:
        found = (PEERS / "stamp").read_text().strip()
    except OSError:
        found = None
    if found == wanted_stamp():
        require_jail()
        return
    try:
        reason = Path(f"{PEERS}.failed").read_text(encoding="utf-8").strip()
    except OSError:
        reason = f"{PEERS} is not there, or older than tests/mcp: run scripts/mcp-peers"
    skip_or_fail("mcp", reason)


@functools.lru_cache(maxsize=None)
def jail_refusal():
    """Why no jail can be made here (an ordinary user without a control group); None: it can."""
    policy = "version = 1\n[defaults]\nbackend = 'jail'\n"
    done = subprocess.run([command(), "exec", "--policy", "-", "--", "true"], input=policy, text=True,
                          capture_output=True, check=False, timeout=60 * TIME_SCALE)
    assert done.returncode == 0 or "error: jail cannot" in done.stderr, done.stderr
    return done.stderr if done.returncode else None


def require_jail():
    if jail_refusal():
        skip_or_fail("jail", jail_refusal())


def environment(**more):
    return {**os.environ, "LC_ALL": "C.UTF-8", "NODE_PATH": str(MODULES), "PYTHONPATH": str(PEERS / "python"),
            "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1", **more}


def run(argv, timeout=60, **more):
    return subprocess.run([str(arg) for arg in argv], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False, timeout=timeout * TIME_SCALE, **{"env": environment(), **more})


def plan_with(argv, plan, **more):
    done = run([*argv, json.dumps(plan)], **more)
    assert done.stdout.strip(), done.stderr
    said = json.loads(done.stdout)
    assert "failed" not in said, said["failed"] + said.get("stderr", "") + done.stderr
    return said


def javascript(server, steps, elicit=None):
    """The TypeScript SDK does the steps (tests/mcp/client.cjs)."""
    plan = {"server": server, "steps": steps} | ({"elicit": elicit} if elicit else {})
    return plan_with([NODE, SCRIPTS / "client.cjs"], plan)


def python(server, steps, elicit=None, mode="auto"):
    """The Python SDK does them (tests/mcp/client.py)."""
    plan = {"server": server, "steps": steps, "mode": mode} | ({"elicit": elicit} if elicit else {})
    return plan_with([PYTHON, SCRIPTS / "client.py"], plan)


def stdio(*args):
    """The command under test as the server of a plan."""
    return {"command": command(), "args": [str(arg) for arg in args],
            "env": {key: value for key, value in os.environ.items() if not key.startswith("npm_")}}


class HttpServer:
    """`toolcage mcp --http` on a free port of the loopback; `url`, `token`."""

    def __init__(self, *args):
        self.process = subprocess.Popen([command(), "mcp", "--http", "127.0.0.1:0", *(str(arg) for arg in args)],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.said = ""
        self.url = self.token = None
        self.has_token = "--no-token" not in args and "--token-file" not in args
        self._wait_for_address(20 * TIME_SCALE)

    def _wait_for_address(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not (self.url and (self.token or not self.has_token)):
            if not select.select([self.process.stderr], [], [], max(0, end - time.monotonic()))[0]:
                break
            piece = os.read(self.process.stderr.fileno(), 65536).decode(errors="replace")
            if not piece:
                break
            self.said += piece
            if found := re.search(r"(http://\S+/mcp)\n", self.said):
                self.url = found[1]
            if found := re.search(r"(?i)bearer ([A-Za-z0-9_-]{32,})\n", self.said):
                self.token = found[1]
        if not self.url:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"no address on stderr: {self.said}")

    def target(self):
        return {"url": self.url} | ({"token": self.token} if self.token else {})

    def close(self):
        """TERM is a clean shutdown; returns the exit status."""
        self.process.terminate()
        try:
            self.said += self.process.communicate(timeout=15 * TIME_SCALE)[1].decode(errors="replace")
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise AssertionError(f"the server did not end; stderr: {self.said}") from None
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *_):
        status = self.close()
        assert status == 0, self.said
