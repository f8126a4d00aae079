# SPDX-License-Identifier: Apache-2.0
"""MCP over HTTP: clients that misbehave, and what the server keeps for those who do not."""

import http.client
import json
import os
import re
import resource
import select
import socket
import threading
import time

import pytest

from mcp_http_world import WAIT, Server, events, hang_up, read, read_all
from native import SANITIZED


@pytest.fixture(scope="module", name="server")
def fixture_server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("http"))
    yield server
    assert server.alive()
    server.end()


def test_clients_that_vanish_at_every_stage_leave_nothing(server):
    session = server.open()
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "lines", "arguments": {}}}).encode()
    whole = server.head(length=len(body), session=session) + body
    for cut in (1, 20, len(whole) - len(body), len(whole) - 1, len(whole)):
        for how in ("close", "reset", "half"):
            with server.connect() as sock:
                sock.sendall(whole[:cut])
                if how == "reset":
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                elif how == "half":
                    sock.shutdown(socket.SHUT_WR)
                    select.select([sock], [], [], 0.05)
    for wait in (0, 0.02, 0.15):
        stream = server.call(session, "lines", number=f"w{wait}")
        events(stream, lambda message: True)
        time.sleep(wait)
        hang_up(stream)
        own = server.listen(session)
        own.close()
    assert server.status("DELETE", session=session) == 200


def test_a_client_that_closes_its_half_still_gets_its_answer(server):
    session = server.open()
    for tool, wanted in (("quiet", b"application/json"), ("lines", b"0\r\n\r\n")):
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": tool, "arguments": {}}}).encode()
        with server.connect() as sock:
            sock.sendall(server.head(length=len(body), session=session) + body)
            sock.shutdown(socket.SHUT_WR)
            got = read_all(sock)
            assert wanted in got and b'"result"' in got


def test_an_answer_that_is_read_slowly_by_a_client_that_closed_its_half_is_whole(server):
    session = server.open()
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "flood", "arguments": {}}}).encode()
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        sock.connect(("127.0.0.1", server.port))
        sock.sendall(server.head(length=len(body), session=session) + body)
        got = sock.recv(1000)
        sock.shutdown(socket.SHUT_WR)
        time.sleep(0.2)
        got += read_all(sock)
    head, _, text = got.partition(b"\r\n\r\n")
    assert len(text) == int(re.search(rb"Content-Length: (\d+)", head)[1]) and json.loads(text)["id"] == 1


@pytest.mark.parametrize("how", ["close", "half"])
def test_requests_sent_ahead_are_answered_in_order(server, how):
    session = server.open()
    wire = b""
    for number in range(20):
        body = json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {
            "name": "echo", "arguments": {"text": f"n{number}"}}}).encode()
        more = {"Connection": "close"} if number == 19 and how == "close" else {}
        wire += server.head(length=len(body), session=session, **more) + body
    with server.connect() as sock:
        sock.sendall(wire)
        if how == "half":
            sock.shutdown(socket.SHUT_WR)
        got = read_all(sock)
    assert re.findall(rb'"id":(\d+)', got) == [b"%d" % number for number in range(20)]


def test_bodies_in_chunks_and_with_a_question_before(server):
    session = server.open()
    ping = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
    head = server.head(session=session, Transfer_Encoding="chunked", Connection="close")
    for wire in (b"".join(b"1;x=y\r\n%c\r\n" % byte for byte in ping) + b"0\r\n\r\n",
                 b"%x\r\n%s\r\n0\r\nTrailer: x\r\n\r\n" % (len(ping), ping)):
        with server.connect() as sock:
            for start in range(0, len(head + wire), 50):
                sock.sendall((head + wire)[start:start + 50])
            assert b'"result"' in read_all(sock)
    with server.connect() as sock:
        sock.sendall(server.head(session=session, length=len(ping), Expect="100-continue", Connection="close"))
        assert sock.recv(100).startswith(b"HTTP/1.1 100 ")
        sock.sendall(ping)
        assert b'"result"' in read_all(sock)


def test_bodies_that_are_too_large_are_refused_and_the_client_is_told(server):
    size = 4 * 1024 * 1024
    session = server.open()
    with server.connect() as sock:
        sock.sendall(server.head(length=size + 1, session=session))
        assert read_all(sock).startswith(b"HTTP/1.1 413 ")
    with server.connect() as sock:
        sock.sendall(server.head(session=session, Transfer_Encoding="chunked"))
        piece = b"10000\r\n" + b" " * 65536 + b"\r\n"
        sent = threading.Thread(target=lambda: [sock.sendall(piece) for _ in range(70)], daemon=True)
        sent.start()
        assert read_all(sock).startswith(b"HTTP/1.1 413 ")
        sent.join(WAIT)
    response = server.post(b" " * (size - 100) + json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode(),
                           session=session)
    assert response.status == 200
    # A stranger's body is not even waited for.
    with server.connect() as sock:
        sock.sendall(server.head(length=1000, token=None))
        assert read_all(sock).startswith(b"HTTP/1.1 401 ")


def test_malformed_http_is_refused(server):
    good = server.head(length=2)[:-2]
    chunked = server.head(Transfer_Encoding="chunked")
    for wire in (b"\r\n\r\n\r\n", b"GET\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n\n", b"\0" * 100 + b"\n\n",
                 b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", good + b"Content-Length: 3\r\n\r\n{}",
                 good + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", good + b" folded: 1\r\n\r\n{}",
                 good + b"X\0Y: 1\r\n\r\n{}", good + b"NoColon\r\n\r\n{}", good + b"Authorization: Bearer x\r\n\r\n{}",
                 good + b"Host: localhost\r\n\r\n{}", good + b"Mcp-Session-Id: a\r\nMcp-Session-Id: a\r\n\r\n{}",
                 chunked + b"zz\r\n", chunked + b"-1\r\n", chunked + b"2\n{}\n", chunked + b"2\r\n{}}\r\n0\r\n\r\n",
                 chunked + b"ffffffffffffffff\r\n", b"POST /mcp HTTP/1.1\r\n\r\n", b"A" * 100 + b" / HTTP/1.1\r\n\r\n"):
        with server.connect() as sock:
            sock.sendall(wire)
            assert read_all(sock).startswith(b"HTTP/1.1 400 "), wire
    for wire in (good + b"".join(b"X-%d: 1\r\n" % number for number in range(2000)) + b"\r\n",
                 good + b"X: " + b"y" * 40000 + b"\r\n\r\n", b"G" * 100000):
        with server.connect() as sock:
            sock.sendall(wire)
            assert read_all(sock).startswith(b"HTTP/1.1 431 ")


def test_strangers_cannot_take_all_places(tmp_path):
    server = Server(tmp_path)
    known = http.client.HTTPConnection("127.0.0.1", server.port, timeout=WAIT)
    session = server.open(connection=known)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, before[1]), before[1]))
    socks = [server.connect() for _ in range(1300)]
    assert server.alive()
    answer = server.post({"jsonrpc": "2.0", "id": 5, "method": "ping"}, session=session, connection=known)
    assert json.loads(answer.read())["id"] == 5
    for sock in socks:
        sock.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert server.alive()
    server.end()


def test_a_client_that_does_not_read_is_hung_up_on_and_the_server_stays_small(server):
    session = server.open()
    body = b"".join(
        server.head(length=len(text), session=session) + text for text in (
            json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {
                "name": "flood", "arguments": {}}}).encode() for number in range(12)))
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)  # else the kernel would read for it
        sock.connect(("127.0.0.1", server.port))
        sock.sendall(body)
        ours = "%04X" % sock.getsockname()[1]
        deadline = time.monotonic() + WAIT
        # Established, and of a process: the server has not closed it.
        while re.search(rf"^ *\d+: 0100007F:{server.port:04X} 0100007F:{ours} 01 ", read("/proc/net/tcp"), re.M):
            assert time.monotonic() < deadline, "it is still waited for"
            time.sleep(0.05)
        assert server.alive()
        resident = int(re.search(r"VmRSS:\s+(\d+)", read(f"/proc/{server.process.pid}/status"))[1])
        assert resident < 200 * 1024 * (5 if SANITIZED else 1)


def test_without_descriptors_it_waits_and_does_not_spin(tmp_path):
    server = Server(tmp_path)
    session = server.open()
    have = len(os.listdir(f"/proc/{server.process.pid}/fd"))
    before = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (have + 4, before[1]))
    held = [server.connect() for _ in range(20)]
    time.sleep(0.3)

    def used():
        fields = read(f"/proc/{server.process.pid}/stat").rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    start = used()
    time.sleep(1)
    assert used() - start < 0.3
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, before)
    assert json.loads(server.call(session, "echo", {"text": "x"}).read())["result"]["isError"] is False
    for connection in held:
        connection.close()
    server.end()
