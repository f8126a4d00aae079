# SPDX-License-Identifier: Apache-2.0
"""MCP on containers of every kind: a tool that runs in one, and a whole server that lives in one."""

import json

import pytest

from container_lab import ENGINES
from native import SLOW
from test_containers import TWINS, watched

pytestmark = pytest.mark.container

CHOSEN = ["crun"] if SLOW else [engine.name for engine in ENGINES if engine.name not in TWINS]

# A server that busybox can be: it knows one tool, which says what it sees of its surroundings.
SERVER = r"""
tool='{"name":"look","description":"looks","inputSchema":{"type":"object","properties":{"path":{"type":"string"}}}}'
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
    [ -n "$id" ] || continue
    case $line in
    *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
    *'"tools/list"'*) result="{\"tools\":[$tool]}" ;;
    *'"tools/call"'*)
        path=$(printf '%s' "$line" | sed -n 's/.*"path":"\([^"]*\)".*/\1/p')
        text=$(cat "$path" 2>&1 | head -n 1 | tr -d '"\\')
        result="{\"content\":[{\"type\":\"text\",\"text\":\"$text\"}]}" ;;
    *) result='{}' ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"""


@pytest.fixture(name="kind", scope="module", params=CHOSEN)
def fixture_kind(request, lab):
    yield from watched(lab, request.param)


def converse(cages, *words, calls):
    """What comes of these calls, by their number."""
    lines = [{"method": "initialize", "id": "begin", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}},
        {"method": "notifications/initialized"}]
    lines += [{"method": method, "id": i, "params": params} for i, (method, params) in enumerate(calls)]
    text = "".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in lines)
    done = cages.command("mcp", words[0], "--no-journal", *words[1:], input=text.encode())
    assert done.status == 0, done
    answers = {message.get("id"): message for message in map(json.loads, done.stdout.splitlines())}
    assert "begin" in answers, done
    return [answers.get(i) for i in range(len(calls))]


def test_tool_in_a_container_is_called_and_refused(kind):
    policy = kind.policy({"greet": {"command": ["cat", "/docs/a"]}, "fail": {"command": ["sh", "-c", "exit 3"]}})
    listed, good, bad = converse(kind, "serve", "--policy", policy, calls=[
        ("tools/list", {}), ("tools/call", {"name": "greet"}), ("tools/call", {"name": "fail"})])
    assert {tool["name"] for tool in listed["result"]["tools"]} == {"greet", "fail"}
    assert good["result"]["_meta"]["toolcage"]["backend"] == kind.engine.backend
    assert bad["result"]["isError"] and bad["result"]["_meta"]["toolcage"]["exit_code"] == 3


def test_server_of_somebody_else_lives_in_a_container(kind):
    policy = kind.policy(mcp={})
    listed, outside, unknown = converse(
        kind, "wrap", "--policy", policy, "--tool", "t", "--", "sh", "-c", SERVER, calls=[
            ("tools/list", {}), ("tools/call", {"name": "look", "arguments": {"path": "/etc/shadow"}}),
            ("tools/call", {"name": "other", "arguments": {}})])
    assert [tool["name"] for tool in listed["result"]["tools"]] == ["look"]
    assert "root:" not in outside["result"]["content"][0]["text"], outside
    assert unknown["error"]["code"] == -32602
