# SPDX-License-Identifier: Apache-2.0
"""The end of the HTTP server: who reads gets whole what it was sent, and nobody holds it up."""

import glob
import http.client
import json
import os
import signal
import socket
import subprocess
import time

import pytest

from mcp_http_world import OWNER, POLICY, WAIT, Server, events, read_all
from mcp_peers import NODE, SCRIPTS, environment, require_peers

# More than the kernel takes for somebody who does not read (4 MB, tcp_wmem).
LARGE = POLICY + """
[tool.large]
output = "16MB"
command = ["sh", "-c", "yes 0123456789 | head -c 12000000"]
[tool.large_with_lines]
output = "16MB"
command = ["sh", "-c", "echo begun >&2; yes 0123456789 | head -c 12000000"]
"""

GRACE = 3  # seconds: http_end.c


def narrow(server, size):
    """A connection whose reader takes little at one time: the rest waits in the server."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=WAIT)
    connection.sock = socket.socket()
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
    connection.sock.settimeout(WAIT)
    connection.sock.connect(("127.0.0.1", server.port))
    return connection


def wait_until(look):
    end = time.monotonic() + WAIT
    while not look():
        assert time.monotonic() < end
        time.sleep(0.02)


def is_ending(server):
    """Nobody is let in any more."""
    try:
        server.connect().close()
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:
        pass
    return False


def is_asleep(seconds):
    """Is there a process with this argument?"""
    def words(path):
        try:
            with open(path, "rb") as file:
                return file.read().split(b"\0")
        except OSError:
            return []

    return any(seconds.encode() in words(path) for path in glob.glob("/proc/[0-9]*/cmdline"))


def stuck(server, session):
    """Somebody who has asked for much and does not read it."""
    response = server.call(session, "large", connection=narrow(server, 4096))
    assert response.status == 200
    return response


@pytest.mark.parametrize("tool", ["large", "large_with_lines"])
def test_an_answer_that_is_on_its_way_arrives_whole(tmp_path, tool):
    server = Server(tmp_path, policy=LARGE)
    response = server.call(server.open(), tool, connection=narrow(server, 1 << 17))
    is_stream = response.headers["Content-Type"] == "text/event-stream"
    assert is_stream == (tool == "large_with_lines")
    text = b""
    while b'"result"' not in text:
        text += (piece := response.read1(1000))
        assert piece, text
    server.process.send_signal(signal.SIGTERM)
    wait_until(lambda: is_ending(server))
    text += response.read()  # http.client raises if it is cut, or the last chunk is missing
    if is_stream:
        assert text.endswith(b"\n\n")
        text = text[text.rindex(b"\ndata: ") + 7:]
    assert len(json.loads(text)["result"]["content"][0]["text"]) == 12_000_000
    assert server.process.wait(WAIT) == 0


def test_who_does_not_read_holds_nobody_up_and_nothing_is_left(tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    server = Server(tmp_path, policy=LARGE, prefix=("env", f"TMPDIR={kept}"))
    session = server.open()
    own = server.listen(session)
    readers = [stuck(server, session) for _ in range(3)]
    call = server.connect()
    seconds = f"18.{os.getpid()}"
    body = json.dumps({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {
        "name": "sleep", "arguments": {"seconds": seconds}}}).encode()
    call.sendall(server.head(length=len(body), session=session) + body)
    wait_until(lambda: is_asleep(seconds))
    server.process.send_signal(signal.SIGTERM)
    assert not [message for _, message in events(own) if message]
    answer = read_all(call)
    assert answer.startswith(b"HTTP/1.1 503 ") and b"the server is ending" in answer
    assert server.process.wait(WAIT) == 0  # without an end to its patience it would be 30 s
    for reader in readers:
        with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):  # nobody takes it for the whole
            reader.read()
    assert not list(kept.iterdir())
    assert not is_asleep(seconds)


def test_one_more_signal_ends_the_wait_for_readers(tmp_path):
    def seconds(number):
        directory = tmp_path / str(number)
        directory.mkdir()
        server = Server(directory, policy=LARGE)
        reader = stuck(server, server.open())
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: is_ending(server))
        assert server.process.poll() is None
        before = time.monotonic()
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(WAIT) == 0
        reader.close()
        return time.monotonic() - before

    # A slow machine may need several attempts to be faster than the clock.
    assert any(seconds(number) < GRACE - 0.5 for number in range(3))


def test_a_request_that_is_not_whole_yet_is_refused(tmp_path):
    server = Server(tmp_path, policy=LARGE)
    idle = server.connect()
    connection = server.connect()
    connection.sendall(server.head(length=100, session=server.open(), Expect="100-continue"))
    assert connection.recv(1000).startswith(b"HTTP/1.1 100 ")
    server.process.send_signal(signal.SIGTERM)
    answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.1 503 ") and b"Connection: close" in answer and b"the server is ending" in answer
    assert read_all(idle) == b""
    connection.close()
    assert server.process.wait(WAIT) == 0


def test_a_client_goes_on_with_a_server_that_was_started_again(tmp_path):
    require_peers()
    server = Server(tmp_path)
    with subprocess.Popen([NODE, SCRIPTS / "restart.cjs", f"http://127.0.0.1:{server.port}/mcp", OWNER],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment()) as client:
        def said():
            return json.loads(client.stdout.readline())

        assert said() == "ready"
        server.end()
        call = said()
        assert call["error"]["code"] == -32000 and "the server is ending" in call["error"]["message"]
        server = Server(tmp_path, port=server.port)
        client.stdin.write("go on\n")
        client.stdin.close()
        last = said()
    # It knows that its session is gone, not that something is wrong, and begins a new one.
    assert last["old"]["error"]["code"] == 404 and "send initialize" in last["old"]["error"]["message"]
    assert last["renewed"]["result"]["content"][0]["text"] == "new"
    server.end()
