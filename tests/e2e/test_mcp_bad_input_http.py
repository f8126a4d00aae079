# SPDX-License-Identifier: Apache-2.0
"""The corpus of bad messages once more, over HTTP: each is answered with an error, and the session goes on."""

import json

import pytest

from test_mcp_bad_input import CORPUS, INVALID, PARSE, POLICY
from mcp_http_world import Server

# A body is a message: one without any is no message, where an empty line is nothing.
EMPTY = {"an empty line", "blanks"}
LARGE = "more than 4 MB"


@pytest.fixture(name="server", scope="module")
def fixture_server(tmp_path_factory):
    """One server and one session for the whole corpus: both must outlive all of it."""
    server = Server(tmp_path_factory.mktemp("corpus"), policy=POLICY, tokens=False)
    server.session = server.open(token=None)
    yield server
    answer = json.loads(server.call(server.session, "say", token=None).read())
    assert answer["result"]["content"][0]["text"] == "said\n"
    server.end()


@pytest.mark.parametrize("case", CORPUS)
def test_bad_message_is_answered_and_the_session_goes_on(server, case):
    body, codes = CORPUS[case]
    response = server.post(body, token=None, session=server.session)
    text = response.read()
    if case == LARGE:
        assert response.status == 413
    elif codes or case in EMPTY:
        answer = json.loads(text)
        assert response.status in (200, 400), text
        assert answer["error"]["code"] in (codes or {PARSE}) and answer["error"]["message"], answer
        assert answer.get("id") in (None, "bad", 1, "good", "a\0b"), "the id is the request's, or null"
        assert len(text) < 4096, "the input is not echoed at length"
    else:
        assert (response.status, text) == (202, b"")
    ping = server.post({"jsonrpc": "2.0", "id": "after", "method": "ping"}, token=None, session=server.session)
    assert json.loads(ping.read()) == {"jsonrpc": "2.0", "id": "after", "result": {}}


def test_id_that_is_in_use_is_refused_and_free_afterwards(server):
    body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "nap"}}).encode()
    ping = {"jsonrpc": "2.0", "id": 7, "method": "ping"}
    with server.connect() as connection:
        connection.sendall(server.head(length=len(body), token=None, session=server.session) + body)
        answers = []
        while not answers or "error" not in answers[-1]:  # until the call has come in
            answers.append(json.loads(server.post(ping, token=None, session=server.session).read()))
            assert len(answers) < 1000
        assert answers[-1]["error"]["code"] == INVALID
        assert b'"isError":false' in connection.recv(65536)
    assert json.loads(server.post(ping, token=None, session=server.session).read())["result"] == {}
