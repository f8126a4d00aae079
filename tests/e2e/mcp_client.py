# SPDX-License-Identifier: Apache-2.0
"""A small MCP client over stdio, for tests. It checks nothing of the protocol but the framing: tests send what they
like, valid or not, and look at what comes back."""

import json
import os
import subprocess
import threading
import time
from pathlib import Path

from conftest import REPO, TIME_SCALE

VERSION = "2025-11-25"


class ServerEnded(Exception):
    """The server closed its stdout."""


class RpcError(Exception):
    """An answer that is an error."""

    def __init__(self, error):
        super().__init__(f"{error.get('code')}: {error.get('message')}")
        self.code, self.message, self.data = error.get("code"), error.get("message"), error.get("data")


def command():
    """The command under test."""
    return str(REPO / os.environ.get("TOOLCAGE_BUILD", "build") / "src" / "toolcage")


class McpClient:
    """One server process and what it said.

    with McpClient().start(["mcp", "--policy", path]) as client:
        client.initialize()
        client.request("tools/list")["tools"]

    Requests of the server are answered by `client.answers[method]`, a function of the params that returns a result, or
    raises RpcError, or returns None: then the test answers itself (wait_request, respond). Without one: -32601.
    """

    def __init__(self):
        self.process = None
        self.answers = {}          # method -> function(params)
        self.log = []              # every message that came, in order
        self.notifications = []    # those not taken yet
        self.requests = []         # of the server, that a test has to answer
        self.stray = []            # lines that were not JSON
        self._responses = {}       # id -> message
        self._last = 0
        self._changed = threading.Condition()
        self._ended = False
        self._stderr = []
        self._threads = []

    # ---- the process

    def start(self, args, **options):
        """`args` without the command's own name; or a whole argv whose first member is an absolute path."""
        argv = [str(arg) for arg in args]
        if not argv or not argv[0].startswith("/"):
            argv.insert(0, command())
        options["env"] = {**os.environ, "LC_ALL": "C.UTF-8", **(options.get("env") or {})}
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        **options)
        for work in (self._read, self._read_stderr):
            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            self._threads.append(thread)
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self, timeout=30):
        """Ends the input and waits; returns the exit status. A server that does not go is killed, and that is an
        error."""
        if self.process.stdin and not self.process.stdin.closed:
            try:
                self.process.stdin.close()
            except BrokenPipeError:
                pass
        try:
            status = self.process.wait(timeout * TIME_SCALE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError("the server did not end with its input; stderr: " + self.stderr()) from None
        for thread in self._threads:
            thread.join(timeout)
        self.process.stdout.close()
        self.process.stderr.close()
        return status

    def stderr(self):
        """What it said to people so far."""
        return b"".join(self._stderr).decode(errors="replace")

    def _read_stderr(self):
        try:
            while piece := os.read(self.process.stderr.fileno(), 65536):
                self._stderr.append(piece)
        except (OSError, ValueError):
            pass

    def _read(self):
        try:
            for line in self.process.stdout:
                self._take(line)
        except ValueError:
            pass
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _take(self, line):
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        with self._changed:
            if message is None:
                self.stray.append(line)
            else:
                for one in message if isinstance(message, list) else [message]:
                    self._sort(one)
            self._changed.notify_all()

    def _sort(self, message):
        self.log.append(message)
        if "method" not in message:
            self._responses.setdefault(json.dumps(message.get("id")), []).append(message)
        elif "id" not in message:
            self.notifications.append(message)
        else:
            self._asked(message)

    def _asked(self, message):
        function = self.answers.get(message["method"])
        if not function and message["method"] not in self.answers:
            self._reply(message["id"], error={"code": -32601, "message": "not known here"})
            return
        try:
            result = function(message.get("params")) if function else None
        except RpcError as error:
            self._reply(message["id"], error={"code": error.code, "message": error.message})
            return
        if result is None:
            self.requests.append(message)
        else:
            self._reply(message["id"], result=result)

    def _reply(self, identity, **what):
        self.send({"jsonrpc": "2.0", "id": identity, **what})

    # ---- what a test sends

    def send_bytes(self, data):
        """As they are; the line break is the caller's."""
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message):
        """Any JSON value, as one line."""
        self.send_bytes(json.dumps(message, ensure_ascii=False).encode() + b"\n")

    def post(self, method, params=None, **more):
        """Sends a request and returns its id at once; `id` in `more` chooses it."""
        if "id" not in more:
            self._last += 1
            more["id"] = self._last
        self.send({"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params}), **more})
        return more["id"]

    def notify(self, method, params=None):
        """A notification."""
        self.send({"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})})

    def respond(self, request, result=None, error=None):
        """Answers a request of the server (wait_request)."""
        self._reply(request["id"], **({"error": error} if error else {"result": result}))

    def request(self, method, params=None, timeout=30, **more):
        """Asks and waits; returns the result, raises RpcError."""
        return self.result(self.post(method, params, **more), timeout)

    def result(self, identity, timeout=30):
        """The result of a request that was posted."""
        message = self.wait_response(identity, timeout)
        if "error" in message:
            raise RpcError(message["error"])
        return message["result"]

    def initialize(self, version=VERSION, capabilities=None, **more):
        """The handshake; returns the server's result."""
        result = self.request("initialize", {"protocolVersion": version, "capabilities": capabilities or {},
                                             "clientInfo": {"name": "test", "version": "1"}, **more})
        self.notify("notifications/initialized")
        return result

    def call(self, name, arguments=None, timeout=30, token=None):
        """tools/call."""
        return self.result(self.post_call(name, arguments, token), timeout)

    def post_call(self, name, arguments=None, token=None):
        """tools/call, without waiting; returns the id."""
        params = {"name": name, **({} if arguments is None else {"arguments": arguments})}
        if token is not None:
            params["_meta"] = {"progressToken": token}
        return self.post("tools/call", params)

    # ---- what a test waits for

    def _wait(self, find, what, timeout):
        end = time.monotonic() + timeout * TIME_SCALE
        with self._changed:
            while True:
                found = find()
                if found is not None:
                    return found
                if self._ended:
                    raise ServerEnded(f"the server ended before {what}; stderr: {self.stderr()}")
                left = end - time.monotonic()
                if left <= 0:
                    raise AssertionError(f"no {what} in {timeout} s; stderr: {self.stderr()}")
                self._changed.wait(left)

    def wait_response(self, identity, timeout=30):
        """The answer to a request, a whole message."""
        key = json.dumps(identity)
        return self._wait(lambda: self._pop(self._responses.get(key, []), lambda _: True), f"answer to {key}", timeout)

    @staticmethod
    def _pop(messages, matches):
        for i, message in enumerate(messages):
            if matches(message):
                return messages.pop(i)
        return None

    def wait_notification(self, method, timeout=30, where=None):
        """The oldest one with this method that was not taken yet (and of which where(params) is true); its params."""
        def matches(message):
            return message["method"] == method and (not where or where(message.get("params", {})))
        found = self._wait(lambda: self._pop(self.notifications, matches), method, timeout)
        return found.get("params", {})

    def wait_request(self, method, timeout=30):
        """A request of the server for which `answers` has None, or a function that returned None: a whole message."""
        def matches(message):
            return message["method"] == method
        return self._wait(lambda: self._pop(self.requests, matches), method, timeout)

    def taken(self, method):
        """The params of all notifications with this method that came so far, and forgets them."""
        with self._changed:
            found = [message for message in self.notifications if message["method"] == method]
            self.notifications = [message for message in self.notifications if message["method"] != method]
        return [message.get("params", {}) for message in found]

    def has_answer(self, identity):
        """Did an answer come that was not taken?"""
        with self._changed:
            return bool(self._responses.get(json.dumps(identity)))


def write_policy(directory, text, name="policy.toml"):
    """A policy file below a directory of the test; returns its path."""
    path = Path(directory) / name
    path.write_text(text, encoding="utf-8")
    return path
