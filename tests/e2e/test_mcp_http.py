# SPDX-License-Identifier: Apache-2.0
"""MCP over HTTP: who is let in, sessions, streams that break and are resumed."""

import concurrent.futures
import http.client
import json
import re
import signal
import socket
import subprocess
import threading
import time

import pytest

from conftest import TIME_SCALE
from mcp_client import VERSION, command, write_policy
from mcp_http_world import ALICE, OWNER, POLICY, WAIT, Server, events, hang_up, read, read_all


class Patience:
    """What takes its time: begun before the other tests, looked at after them."""

    def __init__(self, server):
        self.server = server
        self.pool = concurrent.futures.ThreadPoolExecutor(3)
        self.long_answer = self.pool.submit(self._long_answer)
        self.socks = [server.connect() for _ in range(10)]
        self.stop = threading.Event()
        self.drip = self.pool.submit(self._drip)
        self.slow_heads = self.pool.submit(self._slow_heads)

    def _long_answer(self):
        session = self.server.open()
        before = time.monotonic()
        response = self.server.call(session, "sleep", {"seconds": "9"})
        return response.headers["Content-Type"], time.monotonic() - before, events(response), time.monotonic() - before

    def _drip(self):
        wire = self.server.head(length=2)
        for position in range(len(wire)):
            for sock in self.socks:
                try:
                    sock.sendall(wire[position:position + 1])
                except OSError:
                    pass
            if self.stop.wait(0.2):
                return

    def _slow_heads(self):
        before = time.monotonic()
        got = [read_all(sock, 60 * TIME_SCALE) for sock in self.socks]
        self.stop.set()
        return got, time.monotonic() - before

    def end(self):
        self.stop.set()
        self.pool.shutdown()
        for sock in self.socks:
            sock.close()


@pytest.fixture(scope="module", name="both")
def fixture_both(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("http"))
    patience = Patience(server)
    yield server, patience
    patience.end()
    assert server.alive()
    server.end()


@pytest.fixture(name="server")
def fixture_server(both):
    return both[0]


@pytest.fixture(name="patience")
def fixture_patience(both):
    return both[1]


# ---- who is let in ------------------------------------------------------------------------------


def test_without_a_good_token_nobody_gets_in(server):
    for token in (None, "wrong", OWNER + "x", OWNER[:-1], ""):
        response = server.post(b"{}", token=token)
        assert response.status == 401 and response.headers["WWW-Authenticate"].startswith("Bearer")
        assert json.loads(response.read())["id"] is None
    assert server.status("GET", token=None) == 401
    assert server.status("DELETE", token=None) == 401
    assert server.status(Authorization="Basic " + OWNER) == 401


@pytest.mark.parametrize("name", ["evil.example", "evil.example:{port}", "localhost", "127.0.0.1:1", "localhost:{port}.evil.example"])
def test_a_name_that_a_page_has_rebound_is_refused(server, name):
    assert server.status(Host=name.format(port=server.port)) == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost.evil.example", "http://localhost:1"])
def test_pages_of_others_are_refused(server, origin):
    assert server.status(Origin=origin) == 403
    assert server.status("OPTIONS", Origin=origin) == 403


def test_own_names_are_let_in(server):
    for name in ("localhost", "127.0.0.1", "[::1]"):
        host = f"{name}:{server.port}"
        assert server.status(Host=host, Origin="http://" + host) == 400  # {} is no message


def test_methods_paths_and_types_have_their_statuses(server):
    for method in ("PUT", "PATCH", "OPTIONS", "TRACE", "PROPFIND"):
        response = server.send(method)
        assert response.status == 405 and response.headers["Allow"] == "GET, POST, DELETE"
    assert server.send("HEAD").status == 405
    assert server.status(path="/") == 404
    assert server.status("GET", path="/.well-known/oauth-protected-resource", token=None) == 404
    assert server.status(Accept="application/json") == 406
    assert server.status("GET", Accept="application/json") == 406
    assert server.status(Content_Type="text/plain") == 415
    assert server.status(body=b"{") == 400
    assert server.status(body=b"") == 400


def test_an_agent_is_known_by_its_token(server):
    answers = {}
    for token in (OWNER, ALICE):
        session = server.open(token)
        answer = json.loads(server.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, token=token,
                                        session=session).read())
        answers[token] = {tool["name"] for tool in answer["result"]["tools"]}
    assert answers[ALICE] == {"echo", "hold"}
    assert answers[OWNER] > answers[ALICE]


def test_the_session_of_another_token_is_unknown(server):
    session = server.open()
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    unknown = server.post(ping, session="x" * 43)
    foreign = server.post(ping, session=session, token=ALICE)
    assert (foreign.status, foreign.read()) == (unknown.status, unknown.read())
    assert unknown.status == 404
    assert server.status("DELETE", session=session, token=ALICE) == 404
    assert server.status("GET", session=session, token=ALICE) == 404
    assert server.post(ping, session=session).status == 200


# ---- sessions -----------------------------------------------------------------------------------


def test_ids_of_sessions_are_long_and_never_the_same(server):
    ids = {server.open() for _ in range(5)}
    assert len(ids) == 5
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{43}", session) for session in ids)
    assert not [session for session in ids if session.encode() in server.said]


def test_without_a_session_only_initialize_is_heard(server):
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert server.post(ping).status == 400
    assert server.post({"jsonrpc": "2.0", "id": 1, "method": "server/discover"},
                       MCP_Protocol_Version="2026-07-28").status == 400
    assert server.post([{"jsonrpc": "2.0", "id": 1, "method": "initialize"}]).status == 400
    assert server.status("GET") == 400
    assert server.status("DELETE") == 400


def test_an_initialize_that_fails_makes_no_session(server):
    response = server.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 7}})
    assert "error" in json.loads(response.read())
    assert response.headers["Mcp-Session-Id"] is None


def test_versions_in_the_header(server):
    session = server.open()
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    for version, status in ((VERSION, 200), (None, 200), ("2025-03-26", 200), ("1.0.0", 400), ("", 400)):
        assert server.post(ping, session=session, MCP_Protocol_Version=version).status == status


def test_delete_ends_the_session_and_kills_its_calls(server):
    session = server.open()
    stream = server.call(session, "hold")
    assert events(stream, lambda message: message)[-1][1]["method"] == "notifications/message"
    own = server.listen(session)
    waiting = server.connect()
    body = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "sleep", "arguments": {"seconds": "19"}}}).encode()
    waiting.sendall(server.head(length=len(body), session=session) + body)
    time.sleep(0.1)
    before = time.monotonic()
    assert server.status("DELETE", session=session) == 200
    last = events(stream)[-1][1]
    assert last["id"] == 1 and "session was ended" in last["error"]["message"]
    assert not [message for _, message in events(own) if message]
    assert waiting.recv(65536).startswith(b"HTTP/1.1 404 ")
    assert time.monotonic() - before < 15  # not when the calls end by themselves
    assert server.status("DELETE", session=session) == 404
    deadline = time.monotonic() + WAIT
    while subprocess.run(["pgrep", "-f", "^sleep 19$"], capture_output=True, check=False).stdout:
        assert time.monotonic() < deadline
        time.sleep(0.05)


# ---- answers and streams ------------------------------------------------------------------------


def test_an_answer_alone_is_json_and_one_with_events_is_a_stream(server):
    session = server.open()
    alone = server.call(session, "echo", {"text": "hello"})
    assert alone.headers["Content-Type"] == "application/json"
    assert json.loads(alone.read())["result"]["content"][0]["text"] == "hello"
    stream = server.call(session, "lines")
    assert stream.headers["Content-Type"] == "text/event-stream" and "no-cache" in stream.headers["Cache-Control"]
    found = events(stream)
    assert found[0][0] and found[0][1] is None
    assert [message["params"]["data"] for _, message in found[1:-1]] == [f"line {i}" for i in range(1, 9)]
    assert found[-1][1]["result"]["content"][0]["text"] == "done\n"
    assert len({number for number, _ in found}) == len(found)


def test_clients_of_older_versions_get_no_event_without_data(server):
    session = server.open(version="2025-06-18")
    found = events(server.call(session, "lines"))
    assert len(found) == 9 and all(message for _, message in found)


def test_a_session_has_one_stream_of_its_own(server):
    session = server.open()
    own = server.listen(session)
    assert own.status == 200
    assert server.listen(session).status == 409
    hang_up(own)
    deadline = time.monotonic() + WAIT
    while (again := server.listen(session)).status == 409:
        assert time.monotonic() < deadline
    assert again.status == 200


def test_a_cancelled_call_ends_its_stream_without_an_answer(server):
    session = server.open()
    stream = server.call(session, "hold", number="c")
    events(stream, lambda message: message)
    response = server.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "c"}},
                           session=session)
    assert response.status == 202
    assert not [message for _, message in events(stream) if message and "id" in message]


# ---- resumption ---------------------------------------------------------------------------------


@pytest.mark.parametrize("taken", [1, 4])
def test_after_a_break_no_event_is_lost_and_none_comes_twice(server, taken):
    session = server.open()
    stream = server.call(session, "lines")
    seen = []
    first = events(stream, lambda message: seen.append(message) or len(seen) > taken)
    hang_up(stream)
    time.sleep(0.15)
    second_stream = server.listen(session, last=first[-1][0])
    assert second_stream.status == 200
    second = events(second_stream, lambda message: True)
    hang_up(second_stream)
    third = events(server.listen(session, last=second[-1][0]))
    found = [message for _, message in first + second + third if message]
    assert [message["params"]["data"] for message in found[:-1]] == [f"line {i}" for i in range(1, 9)]
    assert found[-1]["result"]["content"][0]["text"] == "done\n"


def test_an_answer_that_came_after_the_break_is_kept(server):
    session = server.open()
    stream = server.call(session, "lines")
    first = events(stream, lambda message: True)
    hang_up(stream)
    time.sleep(1.5 * TIME_SCALE)
    for _ in range(2):
        rest = events(server.listen(session, last=first[0][0]))
        assert len(rest) == 9 and "result" in rest[-1][1]
    # Nothing more comes: a client that asks again is told to stop, not that its session is gone (404).
    over = server.listen(session, last=rest[-1][0])
    assert over.status == 204 and over.headers["Content-Length"] is None


def test_who_comes_back_takes_over_and_only_its_own_stream_is_told_again(server):
    session = server.open()
    server.gate.unlink(missing_ok=True)
    streams = [server.call(session, "gated", number=i) for i in range(2)]
    first = [events(stream, lambda message: True) for stream in streams]
    taken = server.listen(session, last=first[0][0][0])
    assert len(events(streams[0])) < 9      # it is ended, not left hanging, although the call goes on
    server.gate.touch()
    found = events(taken)
    assert found[-1][1]["id"] == 0 and len(found) == 9
    assert events(streams[1])[-1][1]["id"] == 1


def test_ids_that_are_not_kept_are_said_to_be(server):
    session, other = server.open(), server.open()
    found = events(server.call(session, "lines"))
    assert server.listen(other, last=found[0][0]).status == 400
    assert server.listen(session, last="99-1").status == 400
    assert server.listen(session, last="1-99999").status == 400
    assert server.listen(session, last="x").status == 400
    # 404 is for sessions: clients begin a new one.
    assert server.listen("x" * 43, last=found[0][0]).status == 404


def test_events_of_nobody_who_listens_wait_for_the_first_who_does(tmp_path):
    server = Server(tmp_path)
    session = server.open()
    server.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, session=session).read()
    changed = write_policy(tmp_path, POLICY.replace("[tool.quiet]", "[tool.quieter]"), "new.toml")
    changed.rename(server.policy)
    time.sleep(0.6 * TIME_SCALE)
    found = events(server.listen(session), lambda message: message)
    assert found[-1][1]["method"].startswith("notifications/")
    server.end()


# ---- many ---------------------------------------------------------------------------------------


def test_a_hundred_sessions_at_one_time(server):
    count = 100

    def work(index):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=WAIT * 3)
        session = server.open(connection=connection)
        own = server.listen(session)
        for turn in range(3):
            text = f"{index} {turn}"
            answer = json.loads(server.call(session, "echo", {"text": text}, connection=connection).read())
            assert answer["result"]["content"][0]["text"] == text
        response = server.send("DELETE", session=session, connection=connection)
        response.read()
        assert not [message for _, message in events(own) if message]
        return response.status

    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        assert list(pool.map(work, range(count))) == [200] * count


def test_one_token_cannot_take_the_sessions_of_others(tmp_path):
    server = Server(tmp_path)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=WAIT)
    first = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}

    def start(token):
        response = server.post(first, token=token, connection=connection)
        response.read()
        return response.status

    assert [start(OWNER) for _ in range(1000)] == [200] * 1000
    assert start(OWNER) == 503
    session = server.open(token=ALICE)
    assert start(OWNER) == 503  # nor does it get the place back
    answer = server.post({"jsonrpc": "2.0", "id": 5, "method": "ping"}, token=ALICE, session=session)
    assert json.loads(answer.read())["id"] == 5
    server.end()


def test_many_calls_of_one_session_at_one_time(server):
    session = server.open()
    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        answers = list(pool.map(lambda i: events(server.call(session, "lines", number=i))[-1][1], range(40)))
    assert [answer["id"] for answer in answers] == list(range(40))


# ---- the server itself --------------------------------------------------------------------------


def test_a_signal_ends_streams_properly_and_the_server_cleanly(tmp_path):
    server = Server(tmp_path)
    session = server.open()
    own, stream = server.listen(session), server.call(session, "hold")
    events(stream, lambda message: message)
    server.process.send_signal(signal.SIGTERM)
    assert not [message for _, message in events(own) if message]  # http.client raises if the last chunk is missing
    # A status has gone out long ago: without an answer the client would come back for one.
    last = events(stream)[-1][1]
    assert last["id"] == 1 and last["error"]["code"] == -32000 and "ending" in last["error"]["message"]
    assert server.process.wait(WAIT) == 0


def test_without_tokens_everybody_here_may_call_but_no_page(tmp_path):
    server = Server(tmp_path, tokens=False)
    session = server.open(token=None)
    assert json.loads(server.call(session, "echo", {"text": "x"}, token=None).read())["result"]["isError"] is False
    assert server.status(token=None, Origin="http://evil.example") == 403
    server.end()


@pytest.mark.parametrize("address, options, wanted", [
    ("0.0.0.0:0", [], "--allow-remote"), ("[::]:0", [], "--allow-remote"), ("192.0.2.1:0", [], "--allow-remote"),
    ("0.0.0.0:0", ["--allow-remote", "--no-token"], "token"), ("example.com:0", [], "address"),
    ("192.0.2.1:0", ["--allow-remote"], "give an address of this host")])
def test_addresses_that_others_reach_are_refused(tmp_path, address, options, wanted):
    done = subprocess.run([command(), "mcp", "--policy", write_policy(tmp_path, POLICY), "--no-journal", "--http", address,
                           *options], capture_output=True, text=True, timeout=WAIT, check=False)
    assert done.returncode != 0 and wanted in done.stderr


def test_localhost_is_both_addresses_or_none(tmp_path):
    policy = write_policy(tmp_path, POLICY)
    with socket.socket(socket.AF_INET6) as other:
        try:
            other.bind(("::1", 0))
        except OSError:
            pytest.skip("no IPv6 here")
        other.listen()
        port = other.getsockname()[1]
        done = subprocess.run([command(), "mcp", "--policy", policy, "--no-journal", "--http", f"localhost:{port}"],
                              capture_output=True, text=True, timeout=WAIT, check=False)
    assert done.returncode != 0 and "::1" in done.stderr


# ---- what takes its time ------------------------------------------------------------------------


def test_an_answer_that_takes_long_becomes_a_stream(patience):
    kind, head, found, whole = patience.long_answer.result()
    assert kind == "text/event-stream"
    assert 4.5 < head < whole - 1
    assert found[0][1] is None and found[-1][1]["result"]["isError"] is False


def test_a_byte_now_and_then_does_not_move_the_deadline_of_a_head(patience):
    got, seconds = patience.slow_heads.result()
    assert set(got) <= {b"", b"(reset)"}  # not an answer: the head was never whole
    assert seconds > 8
