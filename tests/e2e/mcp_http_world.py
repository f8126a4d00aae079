# SPDX-License-Identifier: Apache-2.0
"""A server of `toolcage mcp --http` and what tests say to it, request by request."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import threading

from conftest import TIME_SCALE
from mcp_client import VERSION, command, write_policy

OWNER, ALICE = "owner-token-owner-token-owner-token", "alice-token-alice-token-alice-token"
WAIT = 20 * TIME_SCALE

POLICY = r"""
version = 1
[defaults]
timeout = "20s"
[tool.quiet]
command = ["true"]
[tool.echo]
command = ["printf", "%s", "{text}"]
parameters = { type = "object", required = ["text"], properties = { text = { type = "string" } } }
[tool.lines]
command = ["sh", "-c", "for i in 1 2 3 4 5 6 7 8; do echo line $i >&2; sleep 0.05; done; echo done"]
[tool.gated]
filesystem = { readable = ["gate:/gate"] }
command = ["sh", "-c", "for i in 1 2 3 4 5 6 7 8; do echo line $i >&2; done; until [ -e /gate/open ]; do sleep 0.02; done"]
[tool.sleep]
command = ["sleep", "{seconds}"]
[tool.hold]
command = ["sh", "-c", "echo held >&2; sleep 19"]
[tool.flood]
output = "3MB"
command = ["sh", "-c", "yes 0123456789012345678901234567890123456789 | head -c 2500000"]
[agent.alice]
grants = ["echo", "hold"]
"""


class Server:
    """A server of its own, and how to talk to it."""

    def __init__(self, directory, *options, policy=POLICY, tokens=True, prefix=(), port=0, bob=None):
        self.policy = write_policy(directory, policy)
        self.gate = directory / "gate" / "open"  # "gated" ends when it is there
        self.gate.parent.mkdir(exist_ok=True)
        arguments = ["mcp", "--policy", self.policy, "--no-journal", "--http", f"127.0.0.1:{port}"]
        if tokens:
            path = directory / "tokens"
            path.write_text(f"# who may call\n- {OWNER}\nalice {ALICE}\n" + (f"bob {bob}\n" if bob else ""))
            path.chmod(0o600)
            arguments += ["--token-file", path]
        else:
            arguments += ["--no-token"]
        self.process = subprocess.Popen([*prefix, command(), *map(str, arguments), *options], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.said = b""
        while not (found := re.search(rb"http://127\.0\.0\.1:(\d+)/mcp", self.said)):
            piece = os.read(self.process.stderr.fileno(), 4096)
            assert piece, self.said
            self.said += piece
        self.port = int(found[1])
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        while piece := os.read(self.process.stderr.fileno(), 4096):
            self.said += piece

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(WAIT)
        assert status == 0, self.said.decode(errors="replace")

    # ---- requests

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=WAIT)

    def fields(self, token=OWNER, session=None, **more):
        fields = {"Host": f"127.0.0.1:{self.port}", "Accept": "application/json, text/event-stream",
                  "Content-Type": "application/json"}
        if token:
            fields["Authorization"] = "Bearer " + token
        if session:
            fields["Mcp-Session-Id"] = session
        fields.update({name.replace("_", "-"): value for name, value in more.items()})
        return {name: value for name, value in fields.items() if value is not None}

    def head(self, method="POST", path="/mcp", length=None, **options):
        fields = self.fields(**options)
        if length is not None:
            fields["Content-Length"] = length
        return (f"{method} {path} HTTP/1.1\r\n" +
                "".join(f"{name}: {value}\r\n" for name, value in fields.items()) + "\r\n").encode()

    def send(self, method, body=b"", path="/mcp", connection=None, **options):
        """One request; the response of http.client, not read yet."""
        connection = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.fields(**options).items():
            connection.putheader(name, value)
        if body or method == "POST":
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body or None)
        return connection.getresponse()

    def post(self, message, **options):
        return self.send("POST", message if isinstance(message, bytes) else json.dumps(message).encode(), **options)

    def status(self, method="POST", body=b"{}", **options):
        response = self.send(method, body if method == "POST" else b"", **options)
        text = response.read()
        if response.status >= 400:
            answer = json.loads(text)
            assert answer["jsonrpc"] == "2.0" and answer["error"]["message"], text
        assert not [name for name in response.headers if name.lower().startswith("access-control")]
        return response.status

    def open(self, token=OWNER, version=VERSION, connection=None):
        """A session that is ready: its id."""
        response = self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}},
                             token=token, connection=connection)
        assert response.status == 200 and response.headers["Content-Type"] == "application/json"
        assert json.loads(response.read())["result"]["protocolVersion"] == version
        session = response.headers["Mcp-Session-Id"]
        ready = self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, token=token, session=session,
                          connection=connection)
        assert ready.status == 202 and ready.read() == b""
        return session

    def call(self, session, tool, arguments=None, number=1, **options):
        return self.post({"jsonrpc": "2.0", "id": number, "method": "tools/call",
                          "params": {"name": tool, "arguments": arguments or {}}}, session=session, **options)

    def listen(self, session, last=None, **options):
        return self.send("GET", session=session, Last_Event_ID=last, **options)

    def alive(self):
        """It still does its work."""
        session = self.open()
        answer = json.loads(self.call(session, "echo", {"text": "well"}).read())
        assert answer["result"]["content"][0]["text"] == "well"
        assert self.status("DELETE", session=session) == 200
        return True


def events(response, until=None):
    """(id, message) of an event stream, up to its end or to the first for which `until` is true."""
    found, fields = [], {}
    for line in response:
        line = line.decode().rstrip("\n")
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
            continue
        if "data" in fields:
            found.append((fields.get("id"), json.loads(fields["data"]) if fields["data"] else None))
            if until and until(found[-1][1]):
                return found
        fields = {}
    return found


def hang_up(response):
    """Breaks the connection off; http.client would keep its socket as long as the response lives."""
    sock = response.fp.raw._sock
    sock.shutdown(socket.SHUT_RDWR)
    response.close()


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def read_all(sock, timeout=WAIT):
    """All that comes until the other side closes."""
    sock.settimeout(timeout)
    got = b""
    try:
        while piece := sock.recv(65536):
            got += piece
    except ConnectionResetError:
        got += b"(reset)"
    return got
