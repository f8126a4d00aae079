# SPDX-License-Identifier: Apache-2.0
"""What a connection through the gate feels like: errors, ends, resets, back-pressure and time are what they would
be without one. Where it can be, the same snippet runs with and without a cage, and says the same."""

import os
import re
import time

import pytest

from gate_lab import TIME_SCALE, cage, mark, names, no_cage, one_cage, world  # noqa: F401
from native import SANITIZED

PORTS = (7000, 7001, 7002, 7003, 7004, 7005, 7006, 7007, 7010, 80, 22)
RULES = [f"allowed.test:{port}" for port in PORTS]
MEGABYTE = 1_000_000
FLAT = 12 * MEGABYTE  # what a supervisor may grow by, for sockets of its own and their buffers


def same(no_cage, cage, code, rules=RULES):
    """What the snippet says in a cage: the same as without. Returns the cage's outcome."""
    outcome = cage.python(rules, code)
    assert outcome.said == no_cage.bare_python(code).said
    return outcome


def resident(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmRSS:\s+(\d+) kB", file.read())[1]) * 1024


# ---- how a connection does not come about -----------------------------------------------------------


@pytest.mark.parametrize("host, port, problem", [
    ("allowed.test", 7002, "ECONNREFUSED"), ("unreachable.test", 80, "EHOSTUNREACH"),
    ("nonetwork.test", 80, "ENETUNREACH"), (names.SERVER, 7002, "ECONNREFUSED"),
    (names.UNREACHABLE, 80, "EHOSTUNREACH"), (f"[{names.SERVER6}]", 7002, "ECONNREFUSED")])
def test_why_a_connection_fails_is_told_as_without_a_gate(no_cage, cage, host, port, problem):
    # How soon is not asked: a kernel that learns it while connect() is still busy waits for its next try.
    code = f"say(problem=try_connect({host.strip('[]')!r}, {port})[0])"
    outcome = cage.python([f"{host}:{port}"], code)
    assert outcome.said == {"problem": problem}
    assert problem in {no_cage.bare_python(code).said["problem"] for _ in range(2)}
    # It was allowed: what failed is a connection, not a denial.
    assert outcome.denials() == {}
    failed, = outcome.connections()
    assert failed["error"] and failed["bytes_in"] == failed["bytes_out"] == 0


def test_program_waits_as_long_as_it_wants_for_who_does_not_answer(no_cage, cage):
    code = """
problem, seconds = try_connect("blackhole.test", 80, timeout=0.7)
say(problem=problem, right=0.6 < seconds < 30)
"""
    outcome = same(no_cage, cage, code, ["blackhole.test:80"])
    assert outcome.said == {"problem": "timeout", "right": True}
    assert outcome.denials() == {}


def test_connect_that_does_not_block(no_cage, cage):
    code = """
def dial(host, port):
    family, kind, _, _, address = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)[0]
    with socket.socket(family, kind) as sock:
        sock.setblocking(False)
        first = sock.connect_ex(address)
        poll = select.poll()
        poll.register(sock, select.POLLOUT)
        poll.poll(5000)
        return [errno.errorcode[first], errno.errorcode.get(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), 0)]
say(good=dial("allowed.test", 7000), closed=dial("allowed.test", 7002))
"""
    outcome = same(no_cage, cage, code)
    assert outcome.said == {"good": ["EINPROGRESS", 0], "closed": ["EINPROGRESS", "ECONNREFUSED"]}


def test_refused_connect_that_does_not_block(one_cage):
    code = """
for _ in range(5):  # where the machine is busy, once may take long
    sock = socket.socket()
    sock.setblocking(False)
    first = sock.connect_ex(("93.184.216.35", 80))
    begin = time.monotonic()
    select.select([], [sock], [], 20)
    seconds = time.monotonic() - begin
    if seconds < 1:
        break
say(first=errno.errorcode[first], then=errno.errorcode[sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)],
    fast=seconds < 1)
"""
    assert one_cage.python(RULES, code).said == {"first": "EINPROGRESS", "then": "ECONNREFUSED", "fast": True}


# ---- both families ----------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6"])
def test_both_families_work(no_cage, cage, family):
    outcome = same(no_cage, cage, f"say(got=talk('allowed.test', 7000, b'over it', socket.{family}))")
    assert outcome.said["got"] == "over it"


@pytest.mark.parametrize("host, port, limit", [("eyeballs.test", 80, 1.5), ("allowed.test", 7010, 1),
                                               ("secondaddress.test", 80, 1)])
def test_gate_takes_the_address_that_answers(cage, host, port, limit):
    """IPv6 leads nowhere; or nobody listens there; or the first address is out of reach."""
    for _ in range(5):  # where the machine is busy, once may take long
        outcome = cage.python([f"{host}:{port}"], f"problem, seconds = try_connect({host!r}, {port})\n"
                                                  "say(problem=problem, seconds=seconds)")
        if outcome.said["problem"] or outcome.said["seconds"] < limit:
            break
    assert outcome.said["problem"] is None and outcome.said["seconds"] < limit * TIME_SCALE, outcome.said
    made, = outcome.connections(host)
    assert made["address"] == names.SERVER


def test_ipv6_comes_first(one_cage):
    outcome = one_cage.python(RULES, "say(got=talk('allowed.test', 7000))")
    assert outcome.said == {"got": "ping"}
    assert outcome.connections()[0]["address"] == names.SERVER6


# ---- how a connection ends --------------------------------------------------------------------------


def test_half_close_reaches_the_server(no_cage, cage):
    code = """
with connect("allowed.test", 7003) as sock:
    sock.sendall(b"x" * 300_000)
    sock.shutdown(socket.SHUT_WR)
    say(answer=read_all(sock)[0].decode())
"""
    assert same(no_cage, cage, code).said == {"answer": "300000\n"}


def test_half_close_of_the_server_leaves_the_other_direction_open(no_cage, cage, world, mark):
    code = """
with connect("allowed.test", 7007) as sock:
    got, how = read_all(sock)
    time.sleep(0.1)
    sock.sendall(b"y" * 50_000)
    say(got=got.decode(), how=how)
"""
    assert same(no_cage, cage, code).said == {"got": "bye\n", "how": "end"}
    assert [entry["bytes"] for entry in world.log(mark, "heard")] == [50_000, 50_000]


def test_reset_by_the_server(no_cage, cage):
    code = """
with connect("allowed.test", 7004) as sock:
    sock.sendall(b"go")
    say(how=read_all(sock)[1])
"""
    assert same(no_cage, cage, code).said == {"how": "ECONNRESET"}


def test_reset_by_the_program(no_cage, cage, world):
    code = """
sock = connect("allowed.test", 7001)
sock.sendall(b"hello")
time.sleep(0.1)
sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
sock.close()
say(done=True)
"""
    for run in (lambda: no_cage.bare_python(code), lambda: cage.python(RULES, code)):
        mark = world.mark()
        run()
        assert world.wait_for(mark, "close", port=7001)["end"] == "ConnectionResetError"


def test_end_of_the_program_ends_its_connections(cage, world, mark):
    """Also those that it never closed."""
    cage.python(RULES, "sock = connect('allowed.test', 7001)\nsock.sendall(b'x')\nsay(done=True)\nos._exit(0)")
    world.wait_for(mark, "close", port=7001)


def test_server_may_speak_first(no_cage, cage):
    code = """
with connect("allowed.test", 22) as sock:
    say(banner=sock.recv(100).decode())
"""
    assert same(no_cage, cage, code).said["banner"].startswith("SSH-2.0-")


# ---- bytes ------------------------------------------------------------------------------------------


def test_bytes_arrive_unchanged_in_both_directions(one_cage):
    code = """
import hashlib, random
data = random.Random(1).randbytes(8_000_000)
with connect("allowed.test", 7000) as sock:
    threading.Thread(target=lambda: (sock.sendall(data), sock.shutdown(socket.SHUT_WR)), daemon=True).start()
    say(same=hashlib.sha256(read_all(sock)[0]).digest() == hashlib.sha256(data).digest())
"""
    outcome = one_cage.python(RULES, code)
    assert outcome.said == {"same": True}
    made, = outcome.connections()
    assert made["bytes_in"] == made["bytes_out"] == 8_000_000


def test_large_answer_comes_whole(one_cage):
    code = """
with connect("allowed.test", 80) as sock:
    sock.sendall(http("allowed.test", "/big?60000000", more="Connection: close\\r\\n"))
    total = 0
    while data := sock.recv(1 << 18):
        total += len(data)
say(total=total)
"""
    assert one_cage.python(RULES, code).said["total"] > 60_000_000


def test_small_pieces_are_not_held_back(no_cage, one_cage):
    """Each answer comes before the next question: nothing waits for more bytes, or for a timer of the kernel's. That
    would be 40 ms in each turn; on a busy machine some turns take long, but not all."""
    code = """
with connect("allowed.test", 7000) as sock:
    turns = []
    for number in range(100):
        begin = time.monotonic()
        sock.sendall(b"%d" % number)
        assert sock.recv(100) == b"%d" % number
        turns.append(time.monotonic() - begin)
    say(fast=sorted(turns)[25] < 0.03)
"""
    assert same(no_cage, one_cage, code).said == {"fast": True}


# ---- back-pressure ----------------------------------------------------------------------------------


def pressure(cage, code, seconds):
    """By how much toolcage grows while the snippet, which has said "now", does nothing."""
    process = cage.start(RULES, *cage.snippet(code), flags=())
    try:
        before = resident(process.pid)
        assert process.stdout.readline() == b"now\n", process.stderr.read()
        time.sleep(seconds)
        return resident(process.pid) - before
    finally:
        cage.finish(process)


@pytest.mark.skipif(SANITIZED, reason="a sanitizer keeps memory that was freed")
def test_slow_reader_holds_the_server_back(one_cage):
    code = """
sock = connect("allowed.test", 7005)
sock.sendall(b"400000000\\n")
print("now", flush=True)
time.sleep(2)
"""
    assert pressure(one_cage, code, 1) < FLAT


@pytest.mark.skipif(SANITIZED, reason="a sanitizer keeps memory that was freed")
def test_slow_server_holds_the_program_back(one_cage):
    """A program that writes to somebody who does not read must not be able to write on and on."""
    code = """
sock = connect("allowed.test", 7006)
assert sock.recv(5) == b"deaf\\n"
sock.settimeout(0.5)
sent = 0
try:
    while sent < 400_000_000:
        sent += sock.send(b"x" * 65536)
except TimeoutError:
    pass
assert sent < 100_000_000, sent
print("now", flush=True)
time.sleep(1)
"""
    assert pressure(one_cage, code, 0.3) < FLAT


# ---- many, and long ---------------------------------------------------------------------------------


def test_two_hundred_connections_at_once(cage):
    code = """
import asyncio
async def one(number, all_open):
    reader, writer = await asyncio.open_connection("allowed.test", 7000)
    all_open.append(number)
    while len(all_open) < 200:
        await asyncio.sleep(0.01)
    writer.write(b"%d\\n" % number)
    said = await reader.readline()
    writer.close()
    return said == b"%d\\n" % number
async def main():
    begin = time.monotonic()
    all_open = []
    async with asyncio.timeout(18):
        good = await asyncio.gather(*(one(number, all_open) for number in range(200)))
    say(good=sum(good), seconds=time.monotonic() - begin)
asyncio.run(main())
"""
    outcome = cage.python(RULES, code)
    assert outcome.said["good"] == 200
    assert len(outcome.connections("allowed.test")) == 200


def test_idle_connection_stays(one_cage):
    code = """
with connect("allowed.test", 7000) as sock:
    first = sock.sendall(b"one") or sock.recv(10).decode()
    time.sleep(2.5)
    say(got=[first, sock.sendall(b"two") or sock.recv(10).decode()])
"""
    assert one_cage.python(RULES, code).said == {"got": ["one", "two"]}


def test_one_after_the_other(one_cage):
    """Ports, descriptors and made-up addresses are used again."""
    code = """
seen = {talk("allowed.test", 7000, b"%d" % number) == str(number) for number in range(400)}
say(good=seen == {True})
"""
    process = one_cage.start(RULES, *one_cage.snippet(code + "\nsys.stdin.readline()"), flags=(), stdin=-1)
    assert process.stdout.readline() == b'{"good": true}\n', process.stderr.read()
    assert len(os.listdir(f"/proc/{process.pid}/fd")) < 60
    process.stdin.write(b"\n")
    one_cage.finish(process)


# ---- inside -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_programs_of_one_cage_talk_to_each_other(one_cage, address):
    """On a port without a rule, as in a cage without a network; nobody outside is asked."""
    code = f"""
listener = socket.create_server(({address!r}, 4444), family=socket.AF_INET6 if ":" in {address!r} else socket.AF_INET)
client = connect({address!r}, 4444)
served, _ = listener.accept()
served.sendall(b"from inside")
say(got=client.recv(100).decode())
"""
    outcome = one_cage.python(RULES, code)
    assert outcome.said == {"got": "from inside"} and outcome.connections() == []
