# SPDX-License-Identifier: Apache-2.0
"""MCP servers that nobody here wrote, in cages: their tools work, and what they try beyond their directory fails."""

import json
import socket
import threading

import pytest
from mcp_client import command, write_policy
from mcp_peers import MODULES, NODE, PACKAGES, javascript, require_peers, run, stdio

POLICY = """
version = 1

[defaults]
backend    = "jail"
network    = "none"
timeout    = "20s"
memory     = "512MB"
filesystem = {{ readable = ["{modules}"], writable = ["{work}"] }}

[tool.files]
mcp     = {{ }}
command = ["{node}", "{packages}/server-filesystem/dist/index.js", "/"]

[tool.memory]
mcp     = {{ }}
command = ["{node}", "{packages}/server-memory/dist/index.js"]
env     = {{ MEMORY_FILE_PATH = "{work}/memory.jsonl" }}

[tool.thinking]
mcp     = {{ }}
command = ["{node}", "{packages}/server-sequential-thinking/dist/index.js"]
env     = {{ DISABLE_THOUGHT_LOGGING = "true" }}

[tool.everything]
mcp     = {{ }}
command = ["{node}", "{packages}/server-everything/dist/index.js"]
"""


class Wrapped:
    """The four servers, all with one directory that they may write."""

    def __init__(self, folder):
        self.work, self.outside = folder / "work", folder / "outside"
        self.work.mkdir()
        self.outside.mkdir()
        (self.outside / "secret.txt").write_text("not for tools\n")
        (self.work / "note.txt").write_text("hello\n")
        self.journal = folder / "journal.db"
        self.policy = write_policy(folder, POLICY.format(modules=MODULES, node=NODE, packages=PACKAGES, work=self.work))

    def use(self, tool, *calls, before=(), **env):
        """The SDK's client calls tools of the server; their answers, with `results` of the steps before them."""
        server = stdio("mcp", "wrap", "--policy", self.policy, "--tool", tool, "--journal", self.journal)
        server["env"] |= env
        steps = [*before, *({"do": "callTool", "with": {"name": name, "arguments": arguments}, "progress": True}
                            for name, arguments in calls)]
        return javascript(server, steps)["results"]


@pytest.fixture(scope="module")
def wrapped(tmp_path_factory):
    require_peers()
    return Wrapped(tmp_path_factory.mktemp("wrapped"))


def text_of(answer):
    assert "result" in answer, answer
    return "".join(part.get("text", "") for part in answer["result"]["content"])


def failed(answer):
    return "error" in answer or answer["result"].get("isError") is True


def test_file_server_works_in_its_directory_and_nowhere_else(wrapped):
    work, outside = wrapped.work, wrapped.outside
    # The server itself was told that it may use all of "/": what stops it is the cage.
    tools, read, write, listed, shadow, beside, put, home, gone = wrapped.use(
        "files",
        ("read_text_file", {"path": f"{work}/note.txt"}),
        ("write_file", {"path": f"{work}/made.txt", "content": "from inside\n"}),
        ("list_directory", {"path": str(work)}),
        ("read_text_file", {"path": "/etc/shadow"}),
        ("read_text_file", {"path": f"{outside}/secret.txt"}),
        ("write_file", {"path": f"{MODULES}/planted.js", "content": "x"}),
        ("list_directory", {"path": "/root"}),
        ("write_file", {"path": f"{outside}/planted.txt", "content": "x"}),
        before=[{"do": "listTools"}])
    assert {"read_text_file", "write_file", "move_file"} <= {tool["name"] for tool in tools["result"]["tools"]}
    assert text_of(read) == "hello\n"
    assert not failed(write) and (work / "made.txt").read_text() == "from inside\n"
    assert "[FILE] made.txt" in text_of(listed)
    for answer in (shadow, beside, put, home, gone):
        assert failed(answer) and text_of(answer), "the model is told"
    assert "ENOENT" in text_of(shadow) or "EACCES" in text_of(shadow) or "does not exist" in text_of(shadow)
    assert "not for tools" not in json.dumps(beside)
    assert not (MODULES / "planted.js").exists() and not (outside / "planted.txt").exists()


def test_memory_server_remembers_in_its_file(wrapped):
    entity = {"name": "cage", "entityType": "thing", "observations": ["keeps tools in"]}
    made, = wrapped.use("memory", ("create_entities", {"entities": [entity]}))
    assert not failed(made), made
    assert "keeps tools in" in (wrapped.work / "memory.jsonl").read_text()
    # A new cage, the same file.
    graph, = wrapped.use("memory", ("read_graph", {}))
    assert graph["result"]["structuredContent"]["entities"][0]["name"] == "cage"


def test_thinking_server_thinks(wrapped):
    thought = {"thought": "one", "thoughtNumber": 1, "totalThoughts": 2, "nextThoughtNeeded": True}
    first, bad = wrapped.use("thinking", ("sequentialthinking", thought), ("sequentialthinking", {"thought": 1}))
    assert not failed(first) and "thoughtHistoryLength" in text_of(first)
    assert failed(bad), "arguments that break the server's own schema"


def test_everything_server_serves_tools_resources_prompts_and_progress(wrapped):
    prompts, resources, echo, added, image, structured, long = wrapped.use(
        "everything", ("echo", {"message": "\u00fc \U0001f600"}), ("get-sum", {"a": 2, "b": 40}), ("get-tiny-image", {}),
        ("get-structured-content", {"location": "New York"}),
        ("trigger-long-running-operation", {"duration": 0.4, "steps": 4}),
        before=[{"do": "listPrompts"}, {"do": "listResources"}])
    assert "simple-prompt" in json.dumps(prompts["result"]) and resources["result"]["resources"]
    assert text_of(echo) == "Echo: \u00fc \U0001f600" and "42" in text_of(added)
    assert any(part["type"] == "image" for part in image["result"]["content"])
    assert structured["result"]["structuredContent"]["temperature"]
    steps = [one["progress"] for one in long["progress"]]
    assert not failed(long) and steps == sorted(set(steps)) and len(steps) >= 3, long


@pytest.fixture
def listener():
    """A server of the host's: its port, and a list of those who came."""
    heard = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        def accept():
            try:
                while True:
                    connection, peer = server.accept()
                    heard.append(peer)
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
                    connection.close()
            except OSError:
                pass

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield server.getsockname()[1], heard
        server.shutdown(socket.SHUT_RDWR)


def test_server_reaches_no_network_and_sees_no_secret_of_the_environment(wrapped, listener):
    port, heard = listener
    fetched, environment = wrapped.use(
        "everything", ("gzip-file-as-resource", {"name": "a.gz", "data": f"http://127.0.0.1:{port}/"}), ("get-env", {}),
        API_TOKEN="sk-secret-of-the-host")
    assert failed(fetched) and "fetch failed" in json.dumps(fetched), "the model is told"
    assert not heard
    assert "PATH" in text_of(environment) and "sk-secret-of-the-host" not in json.dumps(environment)


def test_every_call_is_in_the_journal_with_its_answer(wrapped, toolcage):
    wrapped.use("files", ("read_text_file", {"path": f"{wrapped.work}/note.txt"}), ("read_text_file", {"path": "/etc/shadow"}))
    shown = toolcage("journal", "show", "--journal", wrapped.journal, "--json", "--last", "3").stdout
    good, bad, server = json.loads(shown)["rows"]
    assert (good["verdict"], bad["verdict"]) == ("ok", "failed")
    assert server["session"] == good["session"] + "-server", "the cage of the server has a record too"
    shown = toolcage("journal", "show", "--journal", wrapped.journal, bad["call_id"]).stdout
    assert "read_text_file" in shown and "/etc/shadow" in shown and "root:" not in shown
    assert toolcage("journal", "verify", "--journal", wrapped.journal).returncode == 0


def test_recorded_calls_are_replayed_without_the_server(wrapped, tmp_path):
    """From what was pinned and recorded; the server's program is not even there."""
    pin, note = tmp_path / "pin.json", {"path": f"{wrapped.work}/note.txt"}
    common = ("--policy", wrapped.policy, "--tool", "files", "--pin", pin)
    assert run([command(), "mcp", "pin", *common]).returncode == 0 and pin.exists()
    kept = ("--journal", tmp_path / "replay.db", "--session", "again")
    step = {"do": "callTool", "with": {"name": "read_text_file", "arguments": note}}
    live = javascript(stdio("mcp", "wrap", *common, *kept), [step])["results"]
    (wrapped.work / "note.txt").write_text("changed since\n")
    try:
        again, other = javascript(stdio("mcp", "wrap", *common, *kept, "--mode", "replay"),
                                  [step, step | {"with": {"name": "list_directory", "arguments": {"path": "/"}}}])["results"]
    finally:
        (wrapped.work / "note.txt").write_text("hello\n")
    assert text_of(live[0]) == text_of(again) == "hello\n"
    assert failed(other), "what was not recorded is not made up"


def test_only_the_tools_that_the_policy_shows_can_be_used(wrapped, tmp_path):
    text = wrapped.policy.read_text().replace("mcp     = { }", 'mcp     = { tools = ["read_*", "list_directory"] }', 1)
    policy = write_policy(tmp_path, text)
    listed, hidden, shown = javascript(stdio("mcp", "wrap", "--policy", policy, "--tool", "files", "--no-journal"), [
        {"do": "listTools"},
        {"do": "callTool", "with": {"name": "write_file", "arguments": {"path": f"{wrapped.work}/no", "content": "x"}}},
        {"do": "callTool", "with": {"name": "list_directory", "arguments": {"path": str(wrapped.work)}}}])["results"]
    names = {tool["name"] for tool in listed["result"]["tools"]}
    assert "list_directory" in names and all(name == "list_directory" or name.startswith("read_") for name in names)
    assert failed(hidden) and not (wrapped.work / "no").exists()
    assert not failed(shown)
