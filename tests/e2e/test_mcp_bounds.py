# SPDX-License-Identifier: Apache-2.0
"""What the MCP server bounds so that others stay able to judge and to work: the question that a person is asked, and the
memory of answers that are on their way."""

import array
import fcntl
import json
import os
import signal
import subprocess
import termios
import time

import pytest

from conftest import TIME_SCALE
from mcp_client import VERSION, McpClient, RpcError, command, write_policy

POLICY = r"""
version = 1
[defaults]
timeout = "60s"
[tool.asked]
command = ["sh", "-c", "{script}"]
approval = "ask"
parameters = { type = "object", required = ["script"], properties = { script = { type = "string" } } }
[tool.reads]
command = ["wc", "-c"]
approval = "ask"
[tool.controls]
output = "5MB"
command = ["sh", "-c", "head -c 5000000 /dev/zero | tr '\\0' '\\1'; sleep 1"]
[tool.waits]
command = ["sleep", "{seconds}"]
[tool.takes]
command = ["wc", "-c"]
"""
EVIL = "; echo EVIL"
CALLS = 32
RAW, WRITTEN = 5_000_000, 30_000_000
MIB = 1024 * 1024


@pytest.fixture(scope="module", name="policy")
def fixture_policy(tmp_path_factory):
    return write_policy(tmp_path_factory.mktemp("bounds"), POLICY)


@pytest.fixture(scope="module", name="client")
def fixture_client(policy):
    """A client whose person says yes to everything; `client.asked`: what they read."""
    with McpClient().start(["mcp", "--policy", policy, "--no-journal"]) as client:
        client.asked = []

        def answer(params):
            client.asked.append(params["message"])
            return {"action": "accept", "content": {"approve": True}}
        client.answers["elicitation/create"] = answer
        client.initialize(capabilities={"elicitation": {}})
        yield client


# ---- what a person is asked

@pytest.mark.parametrize("blanks, shown", [
    (" " * 3000, r"\u{20 x3000}"), ("\u3000" * 2000, r"\u{3000 x2000}"), ("\u00a0" * 2, r"\u{a0}\u{a0}"),
    ("\u2003", r"\u{2003}"),
], ids=["blanks", "wide", "no-break", "em"])
def test_blanks_do_not_hide_what_is_approved(client, blanks, shown):
    client.asked.clear()
    result = client.call("asked", {"script": f"echo innocent #{blanks}\n{EVIL[2:]}"})
    assert "EVIL" in result["content"][0]["text"]
    arguments, shell = [line for line in client.asked[0].splitlines() if line.startswith(("Arguments", "Command"))]
    assert f"innocent #{shown}\\necho EVIL" in arguments and f"innocent #{shown}\\u{{a}}echo EVIL" in shell
    assert len(client.asked[0]) < 1000


def test_a_command_of_some_kilobytes_is_shown_whole(client):
    client.asked.clear()
    script = "\n".join(f"true number {i}" for i in range(350)) + "\necho whole"
    assert client.call("asked", {"script": script})["content"][0]["text"] == "whole\n"
    assert json.dumps(script) in client.asked[0] and len(client.asked[0]) > 12000


@pytest.mark.parametrize("tool, arguments", [
    ("asked", {"script": "echo innocent; : " + "very long " * 1000 + EVIL}), ("reads", {"anything": "xy" * 9000}),
], ids=["command", "input"])
def test_what_is_too_long_to_be_judged_is_not_asked_and_not_run(client, tool, arguments):
    client.asked.clear()
    result = client.call(tool, arguments)
    verdict = result["_meta"]["toolcage"]
    assert result["isError"] and verdict["verdict"] == "denied" and not client.asked
    assert "too long to be shown to a person (" in verdict["reason"] and "at most 16384)" in verdict["reason"]
    assert int(verdict["reason"].split("(")[1].split()[0]) > 16384 and "shorter" in verdict["fix"]


# ---- memory

def start_calls(policy):
    """A server with many calls under way whose answers are large; the client does not read."""
    server = subprocess.Popen([command(), "mcp", "--policy", policy, "--no-journal"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    hello = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    messages = [{"id": 0, "method": "initialize", "params": hello}, {"method": "notifications/initialized"}]
    messages += [{"id": i, "method": "tools/call", "params": {"name": "controls"}} for i in range(1, CALLS + 1)]
    server.stdin.write(b"".join(json.dumps({"jsonrpc": "2.0", **one}).encode() + b"\n" for one in messages))
    server.stdin.flush()
    return server


def memory(server, field):
    """In bytes; 0 when it is gone."""
    try:
        with open(f"/proc/{server.pid}/status", encoding="ascii") as status:
            return next((int(line.split()[1]) * 1024 for line in status if line.startswith(field + ":")), 0)
    except ProcessLookupError:
        return 0


def test_answers_in_the_making_do_not_take_all_memory(policy):
    server = start_calls(policy)
    peak, end = 0, time.monotonic() + 60 * TIME_SCALE
    while server.poll() is None and time.monotonic() < end:
        peak = max(peak, memory(server, "VmHWM"))
        time.sleep(0.02)
    server.stdout.close()
    assert server.wait(10 * TIME_SCALE) == 125 and b"does not read its answers" in server.stderr.read()
    # What the tools printed, the budget, the line of the client and one answer on its way there; sanitizers keep
    # freed memory for a while.
    assert peak < CALLS * RAW * 1.3 + (256 + 64) * MIB + 2 * WRITTEN + (0 if TIME_SCALE == 1 else 512 * MIB)


def test_a_signal_ends_a_server_whose_answers_wait(policy):
    server = start_calls(policy)
    end = time.monotonic() + 30 * TIME_SCALE
    while memory(server, "VmRSS") < CALLS * RAW + WRITTEN and time.monotonic() < end and server.poll() is None:
        time.sleep(0.005)
    os.kill(server.pid, signal.SIGTERM)
    assert server.wait(30 * TIME_SCALE) in (0, 125)  # a second, where nothing else runs
    for pipe in (server.stdin, server.stdout, server.stderr):
        pipe.close()


def test_a_signal_cuts_no_answer_of_a_client_that_reads(tmp_path):
    """A call's answer fills the pipe; the signal comes before anybody reads."""
    path = write_policy(tmp_path, '''version = 1
[tool.prints]
output = "2MB"
command = ["sh", "-c", "yes 0123456789 | head -c 1000000"]
''')
    lines = [{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}},
             {"jsonrpc": "2.0", "method": "notifications/initialized"},
             {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "prints", "arguments": {}}}]
    with subprocess.Popen([command(), "mcp", "--policy", path, "--no-journal"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as server:
        server.stdin.write("".join(json.dumps(line) + "\n" for line in lines).encode())
        server.stdin.flush()
        full, end = array.array("i", [0]), time.monotonic() + 20 * TIME_SCALE
        while full[0] < 60000 and time.monotonic() < end:
            time.sleep(0.01)
            fcntl.ioctl(server.stdout, termios.FIONREAD, full)
        server.send_signal(signal.SIGTERM)
        time.sleep(0.1)
        answers = [json.loads(line) for line in server.stdout.read().splitlines()]
        assert server.wait(20 * TIME_SCALE) == 0
    assert answers[-1]["id"] == 7 and not answers[-1]["result"]["isError"]


# ---- calls that wait for their turn

def test_calls_in_line_are_bounded_in_bytes_and_leave_when_cancelled(policy):
    with McpClient().start(["mcp", "--policy", policy, "--no-journal"]) as client:
        client.initialize()
        running = [client.post_call("waits", {"seconds": "50"}) for _ in range(24)]
        large = {"text": "x" * 900_000}
        waiting = [client.post_call("takes", large) for _ in range(37)]
        with pytest.raises(RpcError, match="wait for their turn") as refused:
            client.call("takes", large)
        assert refused.value.code == -32000
        client.notify("notifications/cancelled", {"requestId": waiting[0]})
        last = client.post_call("takes", large)
        for identity in running:
            client.notify("notifications/cancelled", {"requestId": identity})
        for identity in [*waiting[1:], last]:
            assert not client.result(identity, timeout=60 * TIME_SCALE)["isError"]
        assert not client.has_answer(waiting[0])
