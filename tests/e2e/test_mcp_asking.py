# SPDX-License-Identifier: Apache-2.0
"""Calls of the HTTP server that wait for a person (approval = "ask"): they do nothing, and keep nobody from anything."""

import json

from mcp_client import VERSION
from mcp_http_world import ALICE, POLICY, Server, events, hang_up

BOB = "bob-token-bob-token-bob-token-bob-token"
ASKING = POLICY.replace('grants = ["echo", "hold"]', 'grants = ["asked", "gated"]').replace('"20s"', '"5m"') + """
[tool.asked]
approval = "ask"
approval_timeout = "10m"
command = ["echo", "approved"]
[agent.bob]
grants = ["asked", "gated"]
"""
YES = {"action": "accept", "content": {"approve": True}}


def open_asked(server, token):
    """A session of a client that can ask somebody."""
    response = server.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": VERSION, "capabilities": {"elicitation": {}}, "clientInfo": {"name": "t", "version": "1"}}},
                           token=token)
    session = response.headers["Mcp-Session-Id"]
    response.read()
    server.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, token=token, session=session).read()
    return session


def ask(server, session, token, number):
    """A call whose question has come: the response, and the question's id."""
    response = server.call(session, "asked", number=number, token=token)
    found = events(response, lambda message: message and message.get("method") == "elicitation/create")
    return response, found[-1][1]["id"]


def answer(server, session, token, question, result):
    server.post({"jsonrpc": "2.0", "id": question, "result": result}, session=session, token=token).read()


def said(response):
    return events(response)[-1][1]["result"]["content"][0]["text"]


def test_questions_that_nobody_answers_keep_no_other_agent_from_its_calls(tmp_path):
    server = Server(tmp_path, policy=ASKING, bob=BOB)
    held = []
    for token, count in ((ALICE, 24), (BOB, 24)):  # as many as one agent may have under way
        session = open_asked(server, token)
        held += [ask(server, session, token, number) for number in range(count)]
    own = server.open()
    assert "result" in json.loads(server.call(own, "quiet").read())
    # One of them is answered, and goes on.
    answer(server, session, BOB, held[-1][1], YES)
    assert said(held[-1][0]) == "approved\n"
    for response, _ in held[:-1]:
        hang_up(response)
    server.end()


def test_call_that_was_approved_waits_for_a_place_like_others(tmp_path):
    server = Server(tmp_path, policy=ASKING, bob=BOB)
    alice, bob, own = open_asked(server, ALICE), open_asked(server, BOB), server.open()
    asked = [ask(server, alice, ALICE, number) for number in range(3)]
    busy = [server.call(bob, "gated", number=number, token=BOB) for number in range(8)]
    busy += [server.call(own, "gated", number=number) for number in range(24)]
    for response in busy:
        events(response, lambda message: message and "line 8" in json.dumps(message))
    # All places are taken: of what is approved now, one is told to stop, one is refused, and one waits.
    answer(server, alice, ALICE, asked[0][1], YES)
    answer(server, alice, ALICE, asked[1][1], YES)
    server.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}, session=alice,
                token=ALICE).read()
    assert "result" not in json.dumps(events(asked[1][0]))
    answer(server, alice, ALICE, asked[2][1], {"action": "decline"})
    assert said(asked[2][0]).startswith("denied")
    server.gate.touch()
    assert said(asked[0][0]) == "approved\n"
    for response in busy:
        assert events(response)[-1][1]["result"]["isError"] is False
    assert "result" in json.loads(server.call(own, "quiet", number=99).read())
    server.end()
