# SPDX-License-Identifier: Apache-2.0
"""Somebody with a token who wants all of the HTTP server: its memory, its workers, its connections. The others go on."""

import re
import select
import time

import pytest

from mcp_http_world import ALICE, OWNER, POLICY, WAIT, Server, hang_up, read
from native import SANITIZED
from waiting import wait_until

FILES = POLICY.replace('grants = ["echo", "hold"]', 'grants = ["echo", "hold", "large"]') + """
[tool.large]
disk = "64MB"
outputs = { globs = ["/tmp/*"], max_file = "31MB" }
command = ["sh", "-c", "head -c 25000000 /dev/zero > /tmp/large"]
"""

FEW = ("prlimit", "--nofile=340:340")  # connections: most descriptors are for calls


def ping(server, session):
    answer = server.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, session=session)
    return answer.status == 200 and answer.read()


def test_reads_of_one_client_take_neither_the_memory_nor_the_time_of_others(tmp_path):
    server = Server(tmp_path, policy=FILES)
    greedy, other = server.open(token=ALICE), server.open()
    answer = server.call(greedy, "large", token=ALICE)
    text = answer.read().decode()
    uri = re.search(r"toolcage://file/[^\"\\]+", text)[0]
    held = []
    for number in range(16):
        body = f'{{"jsonrpc":"2.0","id":{number},"method":"resources/read","params":{{"uri":"{uri}"}}}}'.encode()
        held.append(server.connect())
        held[-1].sendall(server.head(length=len(body), token=ALICE, session=greedy) + body)
    end, most = time.monotonic() + 2, 0
    while time.monotonic() < end:
        assert ping(server, other)
        most = max(most, int(re.search(r"VmRSS:\s+(\d+)", read(f"/proc/{server.process.pid}/status"))[1]))
        time.sleep(0.05)
    # What waits for readers, answers in the making, and a little.
    assert most < (256 + 256 + 128) * 1024 * (3 if SANITIZED else 1)
    # Who reads gets it.
    whole = server.post({"jsonrpc": "2.0", "id": "last", "method": "resources/read", "params": {"uri": uri}},
                        session=greedy, token=ALICE)
    assert len(whole.read()) > 33_000_000
    for connection in held:
        connection.close()
    server.end()


def test_events_kept_for_one_client_leave_room_for_those_of_others(tmp_path):
    policy = FILES.replace('"hold", "large"', '"much"') + """
[tool.much]
output = "60MB"
command = ["sh", "-c", "echo begun >&2; head -c \\"$1\\" /dev/zero | tr '\\\\0' a", "sh", "{bytes}"]
"""
    server = Server(tmp_path, policy=policy)

    def answered(token, size):
        """A session, and how to come back for its large answer."""
        session = server.open(token=token)
        response = server.call(session, "much", {"bytes": str(size)}, token=token)
        text = response.read()
        assert len(text) > size
        return session, re.findall(rb"^id: (\S+)", text, re.MULTILINE)[-2].decode()

    def is_kept(token, session, last):
        response = server.listen(session, last=last, token=token)
        hang_up(response)
        return response.status == 200

    # Almost all that there is room for.
    greedy = [answered(ALICE, 60_000_000) for _ in range(2)]
    assert all(is_kept(ALICE, *one) for one in greedy)
    mine = answered(OWNER, 16_000_000)
    assert is_kept(OWNER, *mine)
    assert sum(is_kept(ALICE, *one) for one in greedy) == 1
    server.end()


def is_open(connection, seconds):
    """Until it is closed, no longer than this."""
    end = time.monotonic() + seconds
    while select.select([connection], [], [], max(0, end - time.monotonic()))[0]:
        try:
            if not connection.recv(1 << 16):
                return False
        except ConnectionResetError:
            return False
    return True


@pytest.mark.parametrize("kind", ["streams", "calls"])
def test_connections_of_one_client_leave_room_for_others(tmp_path, kind):
    server = Server(tmp_path, policy=FILES, prefix=FEW)
    mine = server.open()
    own = server.listen(mine)
    held = []
    for number in range(60):
        if kind == "streams":
            session = server.open(token=ALICE)
            wire = server.head("GET", session=session, token=ALICE)
        else:
            session = session if number % 30 else server.open(token=ALICE)
            body = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"hold","arguments":{}}}' % number
            wire = server.head(length=len(body), session=session, token=ALICE) + body
        held.append(server.connect())
        held[-1].sendall(wire)
    for _ in range(3):
        assert ping(server, server.open())
    # It was the greedy one's that went: the oldest, but of calls one that has begun to be answered before one that has not.
    gone = wait_until(lambda: [connection for connection in held if not is_open(connection, 0)])
    assert gone and held[-1] not in gone
    assert kind == "calls" or held[0] in gone
    assert is_open(own.fp.raw._sock, 0)
    for connection in held:
        connection.close()
    server.process.terminate()
    assert server.process.wait(WAIT) == 0


def test_a_stranger_takes_no_place_of_somebody_known(tmp_path):
    server = Server(tmp_path, policy=FILES, prefix=FEW)
    session = server.open()
    own = server.listen(session)
    strangers = [server.connect() for _ in range(100)]
    assert ping(server, session)
    assert not is_open(strangers[0], WAIT) and is_open(own.fp.raw._sock, 0)
    for stranger in strangers:
        stranger.close()
    server.end()
