# SPDX-License-Identifier: Apache-2.0
"""Messages and journals that keep the MCP server busy: small text that becomes large in memory, floods of bytes, and a
journal that somebody else has locked."""

import contextlib
import http.client
import json
import re
import select
import socket
import sqlite3
import time

import pytest

from conftest import TIME_SCALE
from mcp_client import McpClient, RpcError, write_policy
from waiting import wait_until

POLICY = """version = 1
[defaults]
backend = "process"
network = "none"
[tool.quick]
command = ["echo", "ran"]
[tool.secret]
command = ["echo", "secret"]
[agent.a]
grants = ["quick"]
[agent.b]
grants = ["quick"]
"""
TOKENS = {name: name * 40 for name in "ab"}


def memory(process):
    """The most that it ever had, in kilobytes."""
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        return int(re.search(r"VmHWM:\s+(\d+)", status.read()).group(1))


def test_a_message_of_very_many_values_is_refused_before_it_is_read(tmp_path):
    with McpClient().start(["mcp", "--policy", write_policy(tmp_path, POLICY), "--no-journal"]) as client:
        client.initialize()
        before = memory(client.process)
        client.send_bytes(b'{"jsonrpc":"2.0","id":"many","method":"ping","params":{"x":[' + b"{}," * 1_300_000 + b"1]}}\n")
        answer = client.wait_response("many")
        assert answer["error"]["code"] == -32600 and "more than 100000 JSON values" in answer["error"]["message"]
        assert client.request("ping") == {}
        assert memory(client.process) < before + 64 * 1024 * TIME_SCALE  # 640 MB, if it is read


def test_an_integer_that_would_be_rounded_is_refused(tmp_path):
    """A tool would get another one than was meant."""
    with McpClient().start(["mcp", "--policy", write_policy(tmp_path, POLICY), "--no-journal"]) as client:
        client.initialize()
        with pytest.raises(RpcError) as refused:
            client.call("quick", {"order": 100000000000000001})
        assert refused.value.code == -32602 and "100000000000000001" in refused.value.message


@pytest.fixture(name="server")
def start_server(tmp_path):
    """An HTTP server with a journal, and a function that sends a message for an agent."""
    tokens = tmp_path / "tokens"
    tokens.write_text("".join(f"{name} {token}\n" for name, token in TOKENS.items()), encoding="utf-8")
    tokens.chmod(0o600)
    client = McpClient().start(["mcp", "--http", "127.0.0.1:0", "--token-file", tokens, "--policy",
                                write_policy(tmp_path, POLICY), "--journal", tmp_path / "journal.db"])
    assert wait_until(lambda: re.search(r"http://127.0.0.1:(\d+)/", client.stderr())), client.stderr()
    port = int(re.search(r"http://127.0.0.1:(\d+)/", client.stderr()).group(1))

    def post(agent, method, params=None, session=None, **more):
        """The connection, with the request on its way."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60 * TIME_SCALE)
        connection.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {}, **more}), {
            "Authorization": f"Bearer {TOKENS[agent]}", "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream", **({"Mcp-Session-Id": session} if session else {})})
        return connection

    def open_session(agent):
        answer = post(agent, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {},
                                            "clientInfo": {"name": "x", "version": "1"}}, id=0).getresponse()
        session = answer.getheader("Mcp-Session-Id")
        post(agent, "notifications/initialized", session=session).getresponse()
        return session

    yield client, post, {agent: open_session(agent) for agent in TOKENS}
    client.process.terminate()
    client.close()


def answer_of(connection):
    """Of a request: the one message of a plain answer, or the last event."""
    text = connection.getresponse().read().decode()
    return json.loads([line.removeprefix("data: ") for line in text.splitlines() if "jsonrpc" in line][-1])


LARGE = 4 * 1024 * 1024


def send_large(client, session, body):
    """The connection of agent a on which this part of a large message was sent."""
    port = int(re.search(r"http://127.0.0.1:(\d+)/", client.stderr()).group(1))
    head = (f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKENS['a']}\r\n"
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
            f"Mcp-Session-Id: {session}\r\nContent-Length: {LARGE}\r\n\r\n").encode()
    sock = socket.create_connection(("127.0.0.1", port), timeout=60 * TIME_SCALE)
    with contextlib.suppress(ConnectionError):
        sock.sendall(head + body)
    return sock


def test_whole_messages_that_wait_to_be_read_shut_nobody_out(server):
    """One is read, slowly, and sixteen wait: all that there is room for. The next of another agent is not the one to go."""
    client, post, sessions = server
    values = b",".join([b'"' + b"\\u0041" * 6 + b'"'] * 99_000)
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"x":[' + values + b"]}}}"
    open_ones = [send_large(client, sessions["a"], body.ljust(LARGE)) for _ in range(17)]
    for number in range(10):
        assert answer_of(post("b", "ping", None, sessions["b"], id=number))["result"] == {}
    for sock in open_ones:
        sock.close()


def test_messages_that_never_end_take_no_more_than_their_share(server):
    """All but the end of many large messages: the largest go, and neither this agent's small ones nor others'."""
    client, post, sessions = server
    before, open_ones = memory(client.process), []
    for _ in range(40):
        open_ones.append(send_large(client, sessions["a"], b" " * (LARGE - 1)))
    for agent in "ab":
        assert answer_of(post(agent, "tools/call", {"name": "quick"}, sessions[agent], id=1))["result"]["isError"] is False
    assert memory(client.process) < before + 100 * 1024 * TIME_SCALE  # 160 MiB, if they are all kept
    states = [select.select([sock], [], [], 0)[0] for sock in open_ones]
    assert 12 <= states.count([]) <= 16, states  # 64 MiB; the others were told, or hung up on
    for sock in open_ones:
        sock.close()
    assert answer_of(post("a", "ping", None, sessions["a"], id=2))["result"] == {}


def test_a_journal_that_somebody_has_locked_stops_nobody_who_does_not_need_it(server, tmp_path):
    """And what cannot be recorded does not run; nor does it tell which tools there are, or where the journal is."""
    client, post, sessions = server
    call = ("tools/call", {"name": "quick"}, sessions["a"])
    assert answer_of(post("a", *call, id=1))["result"]["isError"] is False
    lock = sqlite3.connect(tmp_path / "journal.db", isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    begun = time.monotonic()
    calls = [post("a", *call, id=10 + i) for i in range(4)]
    hidden = {name: post("a", "tools/call", {"name": name}, sessions["a"], id=name) for name in ("secret", "nosuch")}
    time.sleep(0.3)
    listing = [post(agent, "tools/list", None, sessions[agent], id=f"list {i}") for i, agent in enumerate("aabb")]
    assert answer_of(post("b", "ping", None, sessions["b"], id=1))["result"] == {}
    pinged = time.monotonic() - begun
    results = [answer_of(connection)["result"] for connection in calls]
    waited = time.monotonic() - begun
    assert waited > 4 > pinged  # the lock is waited for; without this the test shows nothing
    assert waited < 18 * TIME_SCALE  # by all of them at the same time
    for result in results:
        assert result["isError"] and "was not made" in result["content"][0]["text"], result
    errors = {name: json.dumps(answer_of(connection)["error"]).replace(name, "NAME") for name, connection in hidden.items()}
    assert errors["secret"] == errors["nosuch"] and "Unknown tool" in errors["secret"]
    assert str(tmp_path) not in json.dumps(results) + errors["secret"]
    assert str(tmp_path / "journal.db") in client.stderr()
    for connection in listing:
        assert [tool["name"] for tool in answer_of(connection)["result"]["tools"]] == ["quick"]
    lock.execute("ROLLBACK")
    lock.close()
    assert answer_of(post("a", *call, id=2))["result"]["isError"] is False


def test_a_call_that_ran_before_the_journal_was_locked_says_that_it_is_not_recorded(tmp_path):
    policy = write_policy(tmp_path, POLICY + """[tool.slow]
backend = "jail"
command = ["sh", "-c", "echo begun >&2; sleep 0.5; echo done"]
""")
    with McpClient().start(["mcp", "--policy", policy, "--journal", tmp_path / "journal.db"]) as client:
        client.initialize()
        call = client.post_call("slow")
        client.wait_notification("notifications/message")
        lock = sqlite3.connect(tmp_path / "journal.db", isolation_level=None)
        lock.execute("BEGIN IMMEDIATE")
        texts = [content["text"] for content in client.result(call)["content"]]
        assert 'ended with "ok", but it is not in the journal' in texts[0] and "locked" in texts[0] and "done\n" in texts
        lock.execute("ROLLBACK")
        lock.close()


def test_large_messages_of_one_agent_keep_nobody_waiting(server):
    """They are read in turns, beside the loop, and each is answered."""
    _, post, sessions = server
    many = {"x": [{} for _ in range(49000)]}
    large = [post("a", "ping", many, sessions["a"], id=i) for i in range(20)]
    other = post("b", "ping", many, sessions["b"], id=1)
    assert answer_of(post("b", "ping", None, sessions["b"], id=2))["result"] == {}
    assert answer_of(other)["result"] == {}
    large[7].close()
    for i, connection in enumerate(large):
        if i != 7:
            assert answer_of(connection) == {"jsonrpc": "2.0", "id": i, "result": {}}


WRAPPED = """
import json, sys
for line in sys.stdin:
    m = json.loads(line)
    if m["method"] == "initialize":
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
              "serverInfo": {"name": "s", "version": "1"}}}), flush=True)
    elif m["method"] == "tools/list":
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}}), flush=True)
    elif m["method"] == "ping":
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": {}}), flush=True)
    elif m["method"] == "tools/call" and HOW == "values":
        print('{"jsonrpc":"2.0","method":"notifications/nobody","params":{"x":[' + "{}," * 1_000_000 + "1]}}", flush=True)
    elif m["method"] == "tools/call":
        # Values count for more than their bytes: a slow machine, too, reads more of them than it may be sent.
        flood = '{"jsonrpc":"2.0","method":"notifications/nobody","params":{"x":[' + "1," * 150_000 + "1]}}"
        while True:
            print(flood, flush=True)
"""


@pytest.mark.parametrize("how, why", [("values", "more than 200000 JSON values"), ("flood", "the server floods: it sent too much")])
def test_a_wrapped_server_that_sends_too_much_is_stopped(tmp_path, how, why):
    (tmp_path / "server.py").write_text(f"HOW = {how!r}\n{WRAPPED}", encoding="utf-8")
    policy = write_policy(tmp_path, f"""version = 1
[tool.w]
command = ["python3", "/srv/server.py"]
filesystem = {{ readable = [{{ host = "{tmp_path}/server.py", cage = "/srv/server.py" }}] }}
mcp = {{}}
""")
    with McpClient().start(["mcp", "wrap", "--policy", policy, "--tool", "w", "--no-journal"]) as client:
        client.initialize()
        client.request("tools/list")
        with pytest.raises(RpcError) as told:
            client.call("t")
        assert why in told.value.message
        assert client.close() == 125
        assert why in client.stderr()
