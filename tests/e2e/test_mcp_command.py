# SPDX-License-Identifier: Apache-2.0
"""`toolcage mcp` as a command: its parts and options, tokens, and what it prints for the settings of clients."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import threading

import pytest
from mcp_client import McpClient, write_policy

POLICY = """
version = 1
[tool.hello]
description = "Say hello"
command = ["echo", "hello"]
[agent.kim]
grants = ["hello"]
[agent.lee]
grants = []
"""

TOKEN, OTHER = "k" * 32, "l" * 40
CLIENTS = ["claude-desktop", "claude-code", "cursor", "vscode", "zed", "openclaw"]
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}


@pytest.fixture(name="policy")
def fixture_policy(tmp_path):
    return write_policy(tmp_path, POLICY)


def refused(done, *words):
    """It ended with 125, said so on stderr only, and with a remedy."""
    assert (done.returncode, done.stdout) == (125, ""), done
    for word in (*words, "remedy:"):
        assert word in done.stderr, done.stderr


# ---- parts and options ---------------------------------------------------------------------------


@pytest.mark.parametrize("args, words", [
    (["mcp", "serv"], ['no part "serv"', 'did you mean "serve"?']),
    (["mcp", "serve", "more"], ["does not take the argument"]),
    (["mcp"], ["no policy is given"]),
    (["mcp", "--policy", "-"], ["standard input"]),
    (["mcp", "--policy", "POLICY", "--client", "zed"], ["has no option --client"]),
    (["mcp", "--policy", "POLICY", "--tool", "hello"], ["has no option --tool"]),
    (["mcp", "--policy", "POLICY", "--", "server"], ["takes no command", "mcp wrap"]),
    (["mcp", "wrap", "--policy", "POLICY", "--tool", "hello", "--"], ["no command behind --"]),
    (["mcp", "wrap", "--policy", "POLICY", "--", "server"], ["needs --tool"]),
    (["mcp", "wrap", "--policy", "POLICY", "--tool", "no", "--", "server"], ['no tool "no"']),
    (["mcp", "wrap", "--http", "127.0.0.1:1", "--tool", "x"], ["has no option --http"]),
    (["mcp", "pin", "--policy", "POLICY"], ["needs --tool"]),
    (["mcp", "--policy", "POLICY", "--agent", "kimm"], ['no agent "kimm"']),
    (["mcp", "--policy", "POLICY", "--no-token"], ["--no-token is for --http"]),
    (["mcp", "--policy", "POLICY", "--token-file", "x"], ["--token-file is for --http"]),
    (["mcp", "--policy", "POLICY", "--allow-host", "x"], ["--allow-host is for --http"]),
    (["mcp", "--policy", "POLICY", "--allow-remote"], ["--allow-remote is for --http"]),
    (["mcp", "--policy", "POLICY", "--mode", "replay", "--no-journal"], ["needs a journal"]),
    (["mcp", "--policy", "POLICY", "--http", "8080"], ["--http cannot be"]),
    (["mcp", "--policy", "POLICY", "--http", ":8080"], ["--http cannot be"]),
    (["mcp", "--policy", "POLICY", "--http", "127.0.0.1:65536"], ["--http cannot be"]),
    (["mcp", "--policy", "POLICY", "--http", "::1:80"], ["--http cannot be", "[::1]:8080"]),
    (["mcp", "--policy", "POLICY", "--http", "127.0.0.1:0", "--no-token", "--token-file", "x"], ["leave one"]),
    (["mcp", "--policy", "POLICY", "--http", "127.0.0.1:0", "--no-token", "--allow-remote"], ["this host only"]),
    (["mcp", "--policy", "POLICY", "--http", "127.0.0.1:0", "--agent", "kim", "--token-file", "x"], ["leave one"]),
    (["mcp", "--policy", "POLICY", "--http", "127.0.0.1:0", "--allow-host", "a,,b"], ["has no name"]),
    (["mcp", "--policy", "POLICY", "--http", "127.0.0.1:0", "--allow-host", "*.example.com"], ["has no name"]),
    (["mcp", "--policy", "POLICY", "--http", "0.0.0.0:0", "--no-journal"], ["0.0.0.0"]),
    (["mcp", "config", "--policy", "POLICY", "--client", "vscoed"], ["did you mean vscode?"]),
    (["mcp", "config", "--policy", "POLICY", "--client", "claude-desktop", "--http", "127.0.0.1:1"],
     ["takes no address"]),
    (["mcp", "config", "--policy", "POLICY", "--http", "127.0.0.1:0"], ["any free port"]),
    (["mcp", "config", "--policy", "POLICY", "--http", "127.0.0.1:1", "--agent", "kim"], ["the token says"]),
    (["mcp", "config", "--policy", "POLICY", "--http", "127.0.0.1:1", "--tool", "hello"], ["leave --http out"]),
    (["mcp", "config", "--policy", "POLICY", "--", "server"], ["add --tool NAME"]),
    (["mcp", "config", "--policy", "POLICY", "--pin", "x"], ["add --tool NAME"]),
])
def test_wrong_invocations_are_refused_with_a_remedy(toolcage, policy, args, words):
    refused(toolcage(*[policy if arg == "POLICY" else arg for arg in args]), *words)


def test_broken_policy_is_reported_whole_before_a_client_waits(toolcage, tmp_path):
    path = write_policy(tmp_path, "version = 1\n[tool.a]\nnetwrok = 1\n[tool.b]\ntimeout = 7\n")
    done = toolcage("mcp", "--policy", path)
    assert (done.returncode, done.stdout) == (125, "")
    assert ":3:1: error" in done.stderr and ":5:" in done.stderr


def test_server_on_stdio_ends_with_its_input_and_prints_nothing_else(toolcage, policy, tmp_path):
    lines = [INITIALIZE, {"jsonrpc": "2.0", "method": "notifications/initialized"},
             {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}]
    done = toolcage("mcp", "serve", "--policy", policy, "--agent", "kim", "--journal", tmp_path / "j.db",
                    input="".join(json.dumps(line) + "\n" for line in lines))
    assert (done.returncode, done.stderr) == (0, "")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == [1, 2]
    assert [tool["name"] for tool in answers[1]["result"]["tools"]] == ["hello"]


def test_policy_with_nothing_to_call_is_served_and_said(toolcage, tmp_path):
    path = write_policy(tmp_path, 'version = 1\n[tool.a]\nmemory = "64MB"\n')
    done = toolcage("mcp", "--policy", path, "--no-journal")
    assert (done.returncode, done.stdout) == (0, "")
    assert 'has no tool with a "command"' in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_the_server_cleanly(policy, number):
    with McpClient().start(["mcp", "--policy", policy, "--no-journal"]) as client:
        client.initialize()
        client.process.send_signal(number)
        assert client.process.wait(60) == 0


# ---- tokens --------------------------------------------------------------------------------------


@pytest.mark.parametrize("content, words", [
    ("kim " + "x" * 31, ["shorter than 32"]),
    ("kim " + "x" * 513, ["longer than 512"]),
    ("kim " + "x" * 32 + "ü", ["no HTTP header"]),
    ("kim", ["two words"]),
    (f"kim {TOKEN} more", ["two words"]),
    (f"kimm {TOKEN}", ['no agent "kimm"']),
    (f"kim {TOKEN}\nlee {TOKEN}", ["twice", ":2:1:"]),
    ("# nothing\n\n", ["no token"]),
    (f"kim {TOKEN}\0", ["NUL"]),
])
def test_token_files_with_mistakes_are_refused_and_the_token_is_not_shown(toolcage, policy, tmp_path, content, words):
    path = tmp_path / "tokens"
    path.write_text(content)
    path.chmod(0o600)
    done = toolcage("mcp", "--policy", policy, "--no-journal", "--http", "127.0.0.1:0", "--token-file", path)
    refused(done, *words)
    assert "xxxx" not in done.stderr and TOKEN not in done.stderr


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o666])
def test_token_file_that_others_may_touch_is_refused(toolcage, policy, tmp_path, mode):
    path = tmp_path / "tokens"
    path.write_text(f"kim {TOKEN}\n")
    path.chmod(mode)
    refused(toolcage("mcp", "--policy", policy, "--no-journal", "--http", "127.0.0.1:0", "--token-file", path),
            "others may", "chmod 600")


def test_token_file_that_is_missing_or_another_users_or_no_file_is_refused(toolcage, policy, tmp_path):
    def run(path):
        return toolcage("mcp", "--policy", policy, "--no-journal", "--http", "127.0.0.1:0", "--token-file", path)

    refused(run(tmp_path / "nothing"), "cannot open")
    refused(run(tmp_path), "is not a file")
    os.mkfifo(tmp_path / "pipe", 0o600)
    refused(run(tmp_path / "pipe"), "is not a file")
    if os.geteuid() == 0:
        path = tmp_path / "tokens"
        path.write_text(f"kim {TOKEN}\n")
        path.chmod(0o600)
        os.chown(path, 65534, 65534)
        refused(run(path), "another user")


# ---- HTTP ----------------------------------------------------------------------------------------


class Server:
    """A server over HTTP and what it says; ended by a signal."""

    def __init__(self, build_dir, *args):
        self.process = subprocess.Popen([build_dir / "src" / "toolcage", "mcp", *map(str, args)], text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.said = ""
        while not (found := re.search(r"serving MCP at http://([^ ]*):(\d+)/mcp\n", self.said)):
            line = self.process.stderr.readline()
            assert line, (self.said, self.process.wait())
            self.said += line
        self.host, self.port = found[1].strip("[]"), int(found[2])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        watch = threading.Timer(60, self.process.kill)
        watch.start()
        assert self.process.stdout.read() == ""  # nothing but lines for people, and those on stderr
        self.said += self.process.stderr.read()
        assert self.process.wait() == 0, self.said
        watch.cancel()
        self.process.stdout.close()
        self.process.stderr.close()

    def token(self):
        """That it made and showed."""
        while not (found := re.search(r"^Authorization: Bearer ([\w-]{43})$", self.said, re.M)):
            self.said += self.process.stderr.readline()
        return found[1]

    def post(self, message, token=None, session=None):
        """(status, header of the session, answer)."""
        link = http.client.HTTPConnection(self.host, self.port, timeout=60)
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if session:
            headers["Mcp-Session-Id"] = session
        link.request("POST", "/mcp", json.dumps(message), headers)
        answer = link.getresponse()
        body = answer.read()
        link.close()
        return answer.status, answer.getheader("Mcp-Session-Id"), json.loads(body) if body.startswith(b"{") else None

    def tools(self, token=None):
        """Names of the tools that this token sees, or the status of the refusal."""
        status, session, _ = self.post(INITIALIZE, token)
        if status != 200:
            return status
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, token, session)
        listed = self.post({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, token, session)[2]
        return [tool["name"] for tool in listed["result"]["tools"]]


def test_without_a_token_file_one_token_is_made_and_shown_once(build_dir, policy):
    with Server(build_dir, "--policy", policy, "--no-journal", "--http", "127.0.0.1:0", "--agent", "kim") as first, \
            Server(build_dir, "--policy", policy, "--no-journal", "--http", "localhost:0") as second:
        assert first.tools() == 401 and first.tools("x" * 43) == 401 and first.tools(second.token()) == 401
        assert first.tools(first.token()) == ["hello"]
    assert first.said.count(first.token()) == 1
    assert first.token() != second.token()


def test_token_says_which_agent_calls(build_dir, policy, tmp_path):
    path = tmp_path / "tokens"
    path.write_text(f"# who may call\nkim {TOKEN}\n\n  -\t{OTHER}\r\nlee {'m' * 32}")
    path.chmod(0o600)
    with Server(build_dir, "--policy", policy, "--no-journal", "--http", "[::1]:0", "--token-file", path) as server:
        assert server.tools(TOKEN) == ["hello"]
        assert server.tools(OTHER) == ["hello"]
        assert server.tools("m" * 32) == []
        assert server.tools() == 401
    assert "Bearer" not in server.said and TOKEN not in server.said


def test_agent_with_grants_of_the_journal_only_is_known(toolcage, build_dir, policy, tmp_path):
    journal = tmp_path / "j.db"
    assert toolcage("grant", "add", "--policy", policy, "--journal", journal, "newcomer", "hello").returncode == 0
    path = tmp_path / "tokens"
    path.write_text(f"newcomer {TOKEN}\n")
    path.chmod(0o600)
    with Server(build_dir, "--policy", policy, "--journal", journal, "--http", "127.0.0.1:0", "--token-file",
                path) as server:
        assert server.tools(TOKEN) == ["hello"]


def test_no_token_is_for_who_says_so(build_dir, policy):
    with Server(build_dir, "--policy", policy, "--no-journal", "--http", "127.0.0.1:0", "--no-token") as server:
        assert server.tools() == ["hello"]
    assert "Bearer" not in server.said


def test_port_in_use_is_an_error(toolcage, policy):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        refused(toolcage("mcp", "--policy", policy, "--no-journal", "--http", address), address.split(":")[1], "in use")


# ---- what clients are told -----------------------------------------------------------------------


def config(toolcage, *args, **options):
    done = toolcage("mcp", "config", *args, **options)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def servers(client, document):
    """The table of servers in the client's own shape."""
    keys = {"vscode": ["servers"], "zed": ["context_servers"], "openclaw": ["mcp", "servers"]}
    for key in keys.get(client, ["mcpServers"]):
        document = document[key]
    return document


@pytest.mark.parametrize("client", CLIENTS)
def test_snippet_of_every_client_starts_the_server(toolcage, build_dir, policy, tmp_path, client):
    (tmp_path / "a directory").mkdir()
    entry = servers(client, json.loads(config(
        toolcage, "--client", client, "--policy", f"../{policy.name}", "--agent", "kim", cwd=tmp_path / "a directory")))
    assert list(entry) == ["toolcage"]
    entry = entry["toolcage"]
    assert entry.get("type") == ("stdio" if client in ("claude-code", "vscode") else None)
    assert entry["command"] == str((build_dir / "src" / "toolcage").resolve())
    assert str(policy) in entry["args"]
    with McpClient().start([entry["command"], *entry["args"]], cwd="/",
                           env={"TOOLCAGE_JOURNAL": str(tmp_path / "j.db")}) as running:
        running.initialize()
        assert [tool["name"] for tool in running.request("tools/list")["tools"]] == ["hello"]


@pytest.mark.parametrize("client", CLIENTS[1:])
def test_snippet_for_http_has_the_address_and_a_place_for_the_token(toolcage, policy, client):
    document = json.loads(config(toolcage, "--client", client, "--policy", policy, "--http", "[::1]:8080"))
    entry = servers(client, document)["toolcage"]
    assert entry["url"] == "http://[::1]:8080/mcp"
    assert entry["headers"]["Authorization"].startswith("Bearer ")
    kinds = {"claude-code": ("type", "http"), "vscode": ("type", "http"), "openclaw": ("transport", "streamable-http")}
    assert kinds.get(client, ("url", entry["url"])) in entry.items()
    if client == "vscode":
        assert document["inputs"][0]["id"] in entry["headers"]["Authorization"]


def test_without_a_client_all_are_shown_under_the_file_they_belong_to(toolcage, policy):
    for args, left_out in (([], set()), (["--http", "127.0.0.1:8080"], {"claude-desktop"})):
        parts = re.split(r"^# ([\w-]+): .*\n", config(toolcage, "--policy", policy, *args), flags=re.M)[1:]
        assert parts[::2] == CLIENTS
        for client, text in zip(parts[::2], parts[1::2]):
            if client in left_out:
                assert "takes no address" in text
            else:
                assert "toolcage" in servers(client, json.loads(text))


def test_snippet_needs_no_place_for_a_journal(toolcage, policy):
    env = {"HOME": "", "XDG_STATE_HOME": "", "TOOLCAGE_JOURNAL": ""}
    entry = json.loads(config(toolcage, "--client", "cursor", "--policy", policy, "--agent", "kim", env=env))
    assert str(policy) in entry["mcpServers"]["toolcage"]["args"]


def test_snippet_of_a_wrapped_server_has_its_command_and_pin(toolcage, policy, tmp_path):
    text = config(toolcage, "--client", "cursor", "--policy", policy, "--tool", "hello", "--agent", "kim", "--pin",
                  "new.pin", "--", "npx", "-y", "a \"server\"", "--flag", cwd=tmp_path)
    entry = json.loads(text)["mcpServers"]["hello"]
    assert entry["args"] == ["mcp", "wrap", "--policy", str(policy), "--tool", "hello", "--agent", "kim", "--pin",
                             str(tmp_path / "new.pin"), "--", "npx", "-y", "a \"server\"", "--flag"]


# ---- examples ------------------------------------------------------------------------------------


def test_examples_load_and_have_nothing_to_warn_of(toolcage, repo):
    paths = sorted((repo / "examples" / "mcp").glob("*.toml"))
    assert [path.stem for path in paths] == ["coding", "web", "wrap-filesystem"]
    for path in paths:
        done = toolcage("lint", "--strict", "--no-host", path)
        assert done.returncode == 0, done.stdout


def test_coding_example_looks_edits_and_runs(repo, tmp_path, must_work):
    folder = tmp_path / "mcp"
    (folder / "project").mkdir(parents=True)
    for name in ("coding.toml", "project/greet.py"):
        (folder / name).write_text((repo / "examples" / "mcp" / name).read_text())
    for path in (tmp_path, folder, folder / "project"):
        path.chmod(0o755)
    args = ["mcp", "--policy", folder / "coding.toml", "--agent", "assistant", "--no-journal"]
    with McpClient().start(args) as client:
        client.initialize()
        hints = {tool["name"]: tool["annotations"] for tool in client.request("tools/list")["tools"]}
        assert hints["read_file"]["readOnlyHint"] and not hints["run"]["readOnlyHint"]
        done = client.call("edit_file", {"path": "greet.py", "old_text": "Hello", "new_text": "Good morning"})
        if done["_meta"]["toolcage"]["verdict"] == "error":
            must_work("jail", done["_meta"]["toolcage"]["reason"])
        assert not done["isError"], done
        done = client.call("run", {"command": "python3 greet.py Kim; ls /workspace/..; touch ../coding.toml /x"})
        assert "Good morning, Kim!" in json.dumps(done)
    assert "[defaults]" in (folder / "coding.toml").read_text()
    assert "Good morning" in (folder / "project" / "greet.py").read_text()
