# SPDX-License-Identifier: Apache-2.0
"""The stdio transport of `toolcage mcp` and the policy under it: what changes while it runs, inputs that are no pipe,
clients that do not read. (Bad messages: test_mcp_bad_input.py.)"""

import json
import os
import shutil
import socket
import subprocess
import time

import pytest
from conftest import TIME_SCALE
from mcp_client import McpClient, command, write_policy

POLICY = """
version = 1
tools = "tools.d"
[defaults]
backend = "process"
[tool.say]
command = ["echo", "said"]
[tool.much]
command = ["head", "-c", "300000", "/dev/zero"]
output = "4MB"
"""
MORE = '[tool.more]\ncommand = ["true"]\n'
CHANGED = "notifications/tools/list_changed"


@pytest.fixture(name="place")
def fixture_place(tmp_path):
    (tmp_path / "tools.d").mkdir()
    write_policy(tmp_path, POLICY)
    return tmp_path


@pytest.fixture(name="client")
def fixture_client(place):
    with McpClient().start(["mcp", "--policy", place / "policy.toml", "--no-journal"]) as client:
        client.initialize()
        yield client


def names(client):
    return {tool["name"] for tool in client.request("tools/list")["tools"]}


def wait_said(client, text):
    """Until it is on stderr."""
    end = time.monotonic() + 30 * TIME_SCALE
    while text not in client.stderr():
        assert time.monotonic() < end, client.stderr()
        time.sleep(0.02)


def messages(*extra):
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    start = [{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params},
             {"jsonrpc": "2.0", "method": "notifications/initialized"}]
    return "".join(json.dumps(message) + "\n" for message in start + list(extra)).encode()


CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "say"}}


# ---- the policy changes

def write_in_place(place, text):
    (place / "policy.toml").write_text(text)


def write_and_rename(place, text):
    (place / "new~").write_text(text)
    (place / "new~").rename(place / "policy.toml")


def remove_and_write(place, text):
    (place / "policy.toml").unlink()
    time.sleep(0.3)
    (place / "policy.toml").write_text(text)


@pytest.mark.parametrize("write", [write_in_place, write_and_rename, remove_and_write])
def test_changed_policy_is_in_force_and_clients_are_told(place, client, write):
    assert names(client) == {"say", "much"}
    write(place, POLICY + MORE)
    client.wait_notification(CHANGED)
    assert names(client) == {"say", "much", "more"}
    assert client.call("more")["isError"] is False


def test_tool_files_are_watched_too(place, client):
    path = place / "tools.d" / "filed.toml"
    path.write_text('command = ["true"]\n')
    client.wait_notification(CHANGED)
    assert "filed" in names(client)
    path.unlink()
    client.wait_notification(CHANGED)
    assert "filed" not in names(client)


def test_link_to_a_policy_is_followed_when_it_changes(place):
    (place / "one").mkdir()
    (place / "two").mkdir()
    shutil.move(place / "policy.toml", place / "one" / "policy.toml")
    (place / "one" / "tools.d").mkdir()
    (place / "two" / "tools.d").mkdir()
    (place / "two" / "policy.toml").write_text(POLICY + MORE)
    (place / "policy.toml").symlink_to("one/policy.toml")
    with McpClient().start(["mcp", "--policy", place / "policy.toml", "--no-journal"]) as client:
        client.initialize()
        assert "more" not in names(client)
        (place / "link").symlink_to("two/policy.toml")
        (place / "link").rename(place / "policy.toml")
        client.wait_notification(CHANGED)
        (place / "two" / "policy.toml").write_text(POLICY)
        client.wait_notification(CHANGED)
        assert "more" not in names(client)


def test_broken_policy_leaves_the_old_one_in_force_and_says_so_once(place, client):
    (place / "policy.toml").write_text(POLICY + "nonsense = [")
    assert client.wait_notification("notifications/message")["level"] == "error"
    assert client.call("say")["isError"] is False
    (place / "other.toml").write_text("")  # another look, the same finding
    time.sleep(0.4)
    wait_said(client, "does not load")
    assert client.stderr().count("does not load") == 1
    assert "policy.toml:11:12: " in client.stderr()
    # A client may show it to a model: nothing about the host.
    assert str(place) not in json.dumps(client.log)
    (place / "policy.toml").write_text(POLICY + MORE)
    client.wait_notification(CHANGED)
    assert "more" in names(client)


def test_change_that_changes_nothing_is_not_told(place, client):
    names(client)
    os.utime(place / "policy.toml")
    (place / "else.json").write_text("{}")
    time.sleep(0.4)
    assert not client.taken(CHANGED)
    (place / "policy.toml").write_text("# a comment\n" + POLICY)
    time.sleep(0.4)
    assert not client.taken(CHANGED)


def test_policy_that_a_tool_can_write_is_not_read_again(place):
    text = POLICY + '[tool.edit]\ncommand = ["true"]\nfilesystem = { writable = ["."] }\n'
    write_policy(place, text)
    with McpClient().start(["mcp", "--policy", place / "policy.toml", "--no-journal"]) as client:
        client.initialize()
        write_policy(place, text + MORE)
        time.sleep(0.4)
        assert "more" not in names(client)
        wait_said(client, "TC-L104")


def test_policy_that_comes_to_be_writable_by_a_tool_is_the_last_one(place, client):
    write_policy(place, POLICY + '[tool.edit]\ncommand = ["true"]\nfilesystem = { writable = ["."] }\n')
    client.wait_notification(CHANGED)
    assert "edit" in names(client)
    write_policy(place, POLICY + MORE)
    time.sleep(0.4)
    assert "more" not in names(client)
    wait_said(client, "TC-L104")


def test_schema_files_are_watched_too(place):
    (place / "schemas").mkdir()
    (place / "schemas" / "in.json").write_text('{"type": "object", "properties": {"a": {}}}')
    write_policy(place, POLICY + '[tool.typed]\ncommand = ["true"]\nparameters = "schemas/in.json"\n')
    with McpClient().start(["mcp", "--policy", place / "policy.toml", "--no-journal"]) as client:
        client.initialize()
        (place / "schemas" / "in.json").write_text('{"type": "object", "properties": {"b": {}}}')
        client.wait_notification(CHANGED)
        typed = [tool for tool in client.request("tools/list")["tools"] if tool["name"] == "typed"]
        assert list(typed[0]["inputSchema"]["properties"]) == ["b"]


# ---- inputs and outputs of all kinds

def test_input_and_output_may_be_files(place):
    (place / "in").write_bytes(messages(CALL))
    with open(place / "in", "rb") as source, open(place / "out", "wb") as target:
        done = subprocess.run([command(), "mcp", "--policy", place / "policy.toml", "--no-journal"], stdin=source,
                              stdout=target, stderr=subprocess.PIPE, timeout=30 * TIME_SCALE, check=False)
    answers = [json.loads(line) for line in (place / "out").read_bytes().splitlines()]
    assert done.returncode == 0, done.stderr
    assert [answer["id"] for answer in answers] == [0, 1]
    assert answers[1]["result"]["content"][0]["text"] == "said\n"


@pytest.mark.parametrize("source", ["/dev/null", "/dev/full"])
def test_empty_input_is_a_clean_end(place, source):
    with open("/dev/null", "rb") as nothing, open(source, "wb") as target:
        done = subprocess.run([command(), "mcp", "--policy", place / "policy.toml", "--no-journal"], stdin=nothing,
                              stdout=target, stderr=subprocess.PIPE, timeout=30 * TIME_SCALE, check=False)
    assert done.returncode == 0, done.stderr


def test_output_that_takes_nothing_is_an_error(place):
    with open("/dev/full", "wb") as target:
        done = subprocess.run([command(), "mcp", "--policy", place / "policy.toml", "--no-journal"], stdout=target,
                              input=messages(), stderr=subprocess.PIPE, timeout=30 * TIME_SCALE, check=False)
    assert done.returncode != 0
    assert b"No space left" in done.stderr


def test_closed_input_is_an_error(place):
    done = subprocess.run(["sh", "-c", 'exec "$@" <&-', "sh", command(), "mcp", "--policy", place / "policy.toml",
                           "--no-journal"], capture_output=True, timeout=30 * TIME_SCALE, check=False)
    assert done.returncode != 0
    assert b"input cannot be read" in done.stderr
    assert done.stdout == b""


def test_one_socket_may_be_both(place):
    ours, theirs = socket.socketpair()
    with ours, subprocess.Popen([command(), "mcp", "--policy", place / "policy.toml", "--no-journal"], stdin=theirs,
                                stdout=theirs) as server:
        theirs.close()
        ours.settimeout(30 * TIME_SCALE)
        ours.sendall(messages(CALL))
        ours.shutdown(socket.SHUT_WR)  # no more questions, but it reads
        data = b""
        while piece := ours.recv(65536):
            data += piece
        assert server.wait(30 * TIME_SCALE) == 0
    assert [json.loads(line)["id"] for line in data.splitlines()] == [0, 1]


# ---- clients that do not read

def test_slow_reader_gets_every_answer(place):
    calls = [{**CALL, "id": i, "params": {"name": "much"}} for i in range(1, 4)]
    with subprocess.Popen([command(), "mcp", "--policy", place / "policy.toml", "--no-journal"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as server:
        pings = ({"jsonrpc": "2.0", "id": f"p{i}", "method": "ping"} for i in range(2000))
        server.stdin.write(messages(*calls, *pings))
        server.stdin.close()
        time.sleep(0.5)
        answers = [json.loads(line) for line in server.stdout]
        assert server.wait(30 * TIME_SCALE) == 0
    assert len(answers) == 1 + 3 + 2000
    for answer in answers:
        if answer["id"] in (1, 2, 3):
            assert len(json.dumps(answer)) > 300000
