# SPDX-License-Identifier: Apache-2.0
"""Grants that end by the clock, while an MCP server runs: who is told, and who is not; and what a refusal does not say
to an agent."""

import contextlib
import datetime
import json
import time

from mcp_client import McpClient, write_policy

CHANGED = "notifications/tools/list_changed"
POLICY = """version = 1
[tool.one]
command = ["true"]
[tool.two]
command = ["true"]
[tool.three]
command = ["true"]
[agent.a]
grants = ["one", {{ tool = "two", expires = "{moment}" }}]
[agent.child]
parent = "a"
grants = ["one", "two"]
[agent.b]
grants = ["one", {{ tool = "two", expires = "2999-01-01" }}]
[agent.other]
grants = ["one"]
"""


def names(client):
    return [tool["name"] for tool in client.request("tools/list")["tools"]]


def moment_in(seconds):
    return datetime.datetime.fromtimestamp(int(time.time()) + seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_end_of_a_grant_is_told_to_whom_it_concerns(tmp_path, toolcage):
    """By the policy and at run time, to the agent and to one that works for it, with and without a journal."""
    before = {"a": ["one", "two"], "child": ["one", "two"], "b": ["one", "two", "three"], "alone": ["one", "two"],
              "other": ["one"]}
    after = {"a": ["one"], "child": ["one"], "b": ["one", "two"], "alone": ["one"], "other": ["one"]}
    for seconds in (4, 15, 60):  # a slow machine gets more time to see the lists as they are before
        moment = moment_in(seconds)
        path = write_policy(tmp_path, POLICY.format(moment=moment))
        journal = tmp_path / f"j{seconds}.db"
        made = toolcage("grant", "add", "b", f'{{ tool = "three", expires = "{moment}" }}', "--policy", path, "--journal", journal)
        assert made.returncode == 0, made.stderr
        with contextlib.ExitStack() as stack:
            clients = {}
            for name in before:
                record = ["--no-journal"] if name == "alone" else ["--journal", journal]
                agent = "a" if name == "alone" else name
                clients[name] = stack.enter_context(McpClient().start(["mcp", "--policy", path, "--agent", agent, *record]))
                clients[name].initialize()
            if {name: names(client) for name, client in clients.items()} != before:
                continue
            for name, client in clients.items():
                if before[name] != after[name]:
                    client.wait_notification(CHANGED, timeout=seconds + 30)
                assert names(client) == after[name]
            told = {name: sum(one.get("method") == CHANGED for one in client.log) for name, client in clients.items()}
            assert told == {name: int(before[name] != after[name]) for name in before}
            return
    raise AssertionError("the lists were never seen as they are before")


REFUSING = """version = 1
[tool.gone]
command = ["true"]
filesystem = {{ readable = [{{ host = "{directory}/hidden/place", cage = "/data" }}] }}
[tool.over]
command = ["true"]
[agent.child]
parent = "boss"
grants = ["gone", "over"]
[agent.boss]
grants = ["gone", {{ tool = "over", expires = "2020-01-01" }}]
"""


def test_reason_for_an_agent_names_neither_its_parent_nor_places_of_the_host(tmp_path, toolcage):
    path = write_policy(tmp_path, REFUSING.format(directory=tmp_path))
    journal = tmp_path / "j.db"
    with McpClient().start(["mcp", "--policy", path, "--agent", "child", "--journal", journal]) as client:
        client.initialize()
        gone, over = client.call("gone"), client.call("over")
        assert "the granted path /data: " in gone["_meta"]["toolcage"]["reason"]
        assert "for an agent that this one works for expired" in over["_meta"]["toolcage"]["reason"]
        calls = [f"toolcage://call/{result['_meta']['toolcage']['call_id']}" for result in (gone, over)]
        read = [client.request("resources/read", {"uri": uri}) for uri in ("toolcage://session/journal", *calls)]
        told = json.dumps([gone, over, read])
        assert told.count("the granted path /data: ") == 4 and told.count("that this one works for expired") == 4
        assert "boss" not in told and str(tmp_path) not in told
    kept = toolcage("journal", "export", "--journal", journal).stdout  # the owner's
    assert 'agent \\\\\\"boss\\\\\\" expired' in kept and f"the granted path {tmp_path}/hidden/place" in kept
