# SPDX-License-Identifier: Apache-2.0
"""`network_limits`: connections at one time, bytes in and out, and bytes a second, of a whole cage."""

import pytest

from gate_lab import TIME_SCALE, cage, names, one_cage, world  # noqa: F401

RULES = [f"allowed.test:{port}" for port in (7000, 7001, 7003, 7005, 80)]
MEGABYTE = 1_000_000


def explained(outcome, key):
    """Some denial names the limit."""
    return any(key in f"{entry['target']} {entry['rule']}" for entry in outcome.result["denials"])


def test_connections_at_one_time(cage):
    code = """
def dial():
    try:
        return connect("allowed.test", 7000, 3)
    except OSError as error:
        return problem_of(error)
first = [dial() for _ in range(5)]
kinds = [one if isinstance(one, str) else "open" for one in first]
first[0].close()
end = time.monotonic() + 10
while isinstance(again := dial(), str) and time.monotonic() < end:
    time.sleep(0.05)
say(kinds=kinds, again="open" if not isinstance(again, str) else again,
    works=again.sendall(b"x") or again.recv(1).decode() if not isinstance(again, str) else "")
"""
    outcome = cage.python(RULES, code, more="network_limits = { connections = 3 }")
    assert outcome.said == {"kinds": ["open"] * 3 + ["ECONNREFUSED"] * 2, "again": "open", "works": "x"}
    assert explained(outcome, "connections")


def test_built_in_limit_of_connections(one_cage):
    code = """
opened = 0
kept = []
for _ in range(300):
    try:
        kept.append(connect("allowed.test", 7001, 3))
    except OSError:
        break
say(opened=len(kept))
"""
    assert one_cage.python(RULES, code).said["opened"] == 256


def test_bytes_in(cage):
    code = """
with connect("allowed.test", 7005, 5) as sock:
    sock.sendall(b"20000000\\n")
    got, how = read_all(sock)
say(got=len(got), how=how, later=talk("allowed.test", 7000, b"x"))
"""
    outcome = cage.python(RULES, code, more='network_limits = { bytes_in = "1MB" }')
    # A reset takes away what was on its way.
    assert 0 < outcome.said["got"] <= MEGABYTE and outcome.said["how"] == "ECONNRESET", outcome.said
    assert outcome.said["later"] != "x"
    assert explained(outcome, "bytes_in")
    assert 0.9 * MEGABYTE <= sum(entry["bytes_in"] for entry in outcome.connections()) <= MEGABYTE


def test_bytes_out(cage, world):
    code = """
sock = connect("allowed.test", 7001, 5)
sent, problem = 0, None
try:
    while sent < 20_000_000:
        sent += sock.send(b"x" * 65536)
except OSError as error:
    problem = problem_of(error)
say(problem=problem)
"""
    outcome = cage.python(RULES, code, more='network_limits = { bytes_out = "1MB" }')
    assert outcome.said["problem"] in ("ECONNRESET", "EPIPE")
    assert explained(outcome, "bytes_out")
    assert sum(entry["bytes_out"] for entry in outcome.connections()) <= MEGABYTE


def test_bytes_of_all_connections_count_together(one_cage):
    code = """
total = 0
for _ in range(5):
    with contextlib.suppress(OSError), connect("allowed.test", 7005, 5) as sock:
        sock.sendall(b"400000\\n")
        total += len(read_all(sock)[0])
say(total=total)
"""
    assert one_cage.python(RULES, code, more='network_limits = { bytes_in = "1MB" }').said["total"] <= MEGABYTE


def test_what_is_within_the_limits_is_untouched(one_cage):
    code = """
with connect("allowed.test", 7005, 5) as sock:
    sock.sendall(b"900000\\n")
    got, how = read_all(sock)
say(got=len(got), how=how)
"""
    limits = 'network_limits = { connections = 1, bytes_in = "1MB", bytes_out = "1MB", rate = "50MB" }'
    outcome = one_cage.python(RULES, code, more=limits)
    assert outcome.said == {"got": 900_000, "how": "end"} and outcome.denials() == {}


@pytest.mark.parametrize("direction", ["in", "out"])
def test_rate(one_cage, direction):
    code = {"in": """
with connect("allowed.test", 7005) as sock:
    begin = time.monotonic()
    sock.sendall(b"3000000\\n")
    got = len(read_all(sock)[0])
""", "out": """
with connect("allowed.test", 7003) as sock:
    begin = time.monotonic()
    sock.sendall(b"x" * 3_000_000)
    sock.shutdown(socket.SHUT_WR)
    got = int(read_all(sock)[0])
"""}[direction] + "say(got=got, seconds=time.monotonic() - begin)"
    said = one_cage.python(RULES, code, more='network_limits = { rate = "2MB" }').said
    # A second's worth may come at once.
    assert said["got"] == 3_000_000 and 0.4 < said["seconds"] < 20 * TIME_SCALE, said
