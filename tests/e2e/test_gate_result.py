# SPDX-License-Identifier: Apache-2.0
"""What toolcage tells about a cage's network, and what is left of it: connections and denials in the result, lines of
--net-log, and nothing at all when the call has ended, whatever ended it."""

import contextlib
import json
import os
import re
import signal
import time

import pytest

from gate_lab import cage, mark, names, no_cage, one_cage, world  # noqa: F401
from native import SANITIZED, cage_groups, mounts, processes, temporary_files
from waiting import eventually

RULES = ["allowed.test:80", "allowed.test:7000", "allowed.test:7001", "*.allowed.test:80", f"{names.SERVER}:7000"]


def left(world):
    """Processes that were started by a test, and run still."""
    ours = (world.internet.pid, world.host.pid, os.getpid())
    return {pid: entry for pid, entry in processes().items() if str(world.base) in entry[2] and pid not in ours}


@pytest.fixture(autouse=True)
def nothing_is_left(world):
    before = set(mounts()), temporary_files(0)
    yield
    assert not eventually(lambda: left(world), 20)
    assert not set(mounts()) - before[0] and not temporary_files(0) - before[1]


# ---- connections ------------------------------------------------------------------------------------


def test_connections_are_told_in_order(cage):
    code = f"""
talk("allowed.test", 7000, b"x" * 1000, socket.AF_INET)
get("www.allowed.test")
talk({names.SERVER!r}, 7000, b"y" * 10)
say(done=True)
"""
    outcome = cage.python(RULES, code)
    first, second, third = outcome.connections()
    assert (first["name"], first["port"], first["rule"]) == ("allowed.test", 7000, "allowed.test:7000")
    assert first["error"] is second["error"] is third["error"] is None
    assert (first["bytes_in"], first["bytes_out"], first["protocol"]) == (1000, 1000, "tcp")
    assert first["address"] in (names.SERVER, names.SERVER6)
    assert (second["name"], second["port"], second["rule"]) == ("www.allowed.test", 80, "*.allowed.test:80")
    assert (third["name"], third["address"], third["rule"]) == (None, names.SERVER, f"{names.SERVER}:7000")
    assert third["bytes_in"] == third["bytes_out"] == 10
    assert first["started_ms"] <= second["started_ms"] <= third["started_ms"]
    assert all(0 <= entry["duration_ms"] < outcome.result["usage"]["duration_ms"] for entry in (first, second, third))


def test_duration_is_that_of_the_connection(one_cage):
    code = ("sock = connect('allowed.test', 7000)\nopened = time.monotonic()\ntime.sleep(0.5)\nsock.close()\n"
            "time.sleep(1)\nsay(whole=time.monotonic() - opened)")
    outcome = one_cage.python(RULES, code)
    made, = outcome.connections()
    assert 450 < made["duration_ms"] < 1000 * outcome.said["whole"] - 200  # not until the program ended


def test_connection_that_is_open_at_the_end_is_told(one_cage):
    code = "sock = connect('allowed.test', 7000)\nsock.sendall(b'12345')\nsock.recv(5)\nsay(done=True)\nos._exit(0)"
    made, = one_cage.python(RULES, code).connections()
    assert (made["bytes_in"], made["bytes_out"]) == (5, 5)


def test_cage_without_rules_tells_of_nothing(one_cage):
    outcome = one_cage.run("none", "true")
    assert outcome.result["connections"] == [] and outcome.result["denials"] == []
    assert "gate" not in outcome.result["layers"]


# ---- denials ------------------------------------------------------------------------------------------


def test_denials_name_what_was_refused_and_what_would_allow_it(cage):
    code = f"""
for _ in range(3):
    resolve("refused.test", socket.AF_INET)
    try_connect({names.OTHER!r}, 7000)
try_connect({names.OTHER6!r}, 80)
try_connect("allowed.test", 443)
try_connect("private.test", 80)
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ({names.OTHER!r}, 443))
time.sleep(0.1)
say(done=True)
"""
    outcome = cage.python([*RULES, "private.test:80"], code)
    told = {entry["target"]: entry for entry in outcome.result["denials"]}
    assert all(entry["kind"] == "network" for entry in told.values())
    assert told["refused.test"]["count"] >= 3 and '"refused.test:' in told["refused.test"]["rule"]
    assert told[f"{names.OTHER}:7000"]["count"] == 3 and f'"{names.OTHER}:7000"' in told[f"{names.OTHER}:7000"]["rule"]
    assert f"[{names.OTHER6}]:80" in told and '"allowed.test:443"' in told["allowed.test:443"]["rule"]
    assert f"{names.OTHER}:443/udp" in told
    private, = [entry for target, entry in told.items() if target.startswith("private.test")]
    assert names.PRIVATE in private["rule"]


def test_what_a_denial_proposes_works(one_cage):
    """The smallest change of the policy is written so that it can be copied."""
    targets = [("refused.test", 7000), (names.OTHER, 7000), (names.OTHER6, 7000), ("allowed.test", 7003)]
    for host, port in targets:
        code = f"say(problem=try_connect({host!r}, {port})[0])"
        outcome = one_cage.python(RULES, code)
        assert outcome.said["problem"] is not None
        proposed, = [re.search(r'add "([^"]+)"', rule)[1] for rule in outcome.denials().values()]
        if host == "refused.test":  # a question does not say which port is meant
            proposed = re.sub(r":\d+$", f":{port}", proposed)
        assert one_cage.python([*RULES, proposed], code).said == {"problem": None}


def test_denials_of_a_traced_command_are_told_once(one_cage):
    outcome = one_cage.run(RULES, *one_cage.snippet(f"try_connect({names.OTHER!r}, 80)\nget('allowed.test')"),
                           flags=("--explain-denials",))
    targets = [entry["target"] for entry in outcome.result["denials"] if entry["kind"] == "network"]
    assert targets == [f"{names.OTHER}:80"] and outcome.connections("allowed.test")


def test_failed_command_says_on_stderr_what_was_refused(one_cage):
    done = one_cage.finish(one_cage.start(RULES, "curl", "-sS", "http://refused.test/", flags=()))
    assert done.status == 6 and "refused.test" in done.stderr.split("curl: ", 1)[1].split("\n", 1)[1], done.stderr


def test_command_that_ended_well_is_not_commented(one_cage):
    script = "curl -s http://refused.test/ || curl -sS http://allowed.test/"
    done = one_cage.finish(one_cage.start(RULES, "sh", "-c", script, flags=()))
    assert (done.status, done.stdout, done.stderr) == (0, "hello from allowed.test\n", "")


# ---- --net-log -----------------------------------------------------------------------------------------


def test_net_log_tells_while_it_happens(cage):
    code = f"""
sock = connect("allowed.test", 7000)
sock.sendall(b"x" * 2500)
read_exactly(sock, 2500)
sys.stdin.readline()
sock.close()
try_connect({names.OTHER!r}, 80)
resolve("refused.test")
try_connect("allowed.test", 7002)
"""
    process = cage.start([*RULES, "allowed.test:7002"], *cage.snippet(code), flags=("--net-log",), stdin=-1)
    first = process.stderr.readline().decode()
    assert re.match(r"net: opened allowed\.test:7000 \(\S+\)", first), first
    process.stdin.write(b"\n")
    done = cage.finish(process)
    assert re.search(r"^net: closed allowed\.test:7000 .*2\.5 kB in, 2\.5 kB out", done.stderr, re.M), done.stderr
    assert re.search(rf"^net: refused {re.escape(names.OTHER)}:80", done.stderr, re.M), done.stderr
    assert re.search(r"^net: refused refused\.test", done.stderr, re.M), done.stderr
    assert re.search(r"^net: failed allowed\.test:7002", done.stderr, re.M), done.stderr


def test_net_log_beside_json(one_cage):
    process = one_cage.start(RULES, "curl", "-sS", "http://allowed.test/", flags=("--json", "--net-log"))
    done = one_cage.finish(process)
    assert "net: opened allowed.test:80" in done.stderr
    assert json.loads(done.stdout)["connections"][0]["name"] == "allowed.test"


def test_net_log_of_a_name_that_would_act_on_a_terminal(one_cage):
    """What a cage asks for is data: control characters do not reach the reader's terminal."""
    code = r"""
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
name = b"\x1b]0;title\x07\r\nnet: opened evil"
asked = struct.pack("!HHHHHH", 1, 0x100, 1, 0, 0, 0) + bytes([len(name)]) + name + b"\0\0\x01\0\x01"
sock.sendto(asked, (nameserver(), 53))
time.sleep(0.2)
"""
    done = one_cage.finish(one_cage.start(RULES, *one_cage.snippet(code), flags=("--net-log",)))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", done.stderr), repr(done.stderr)
    assert not re.search(r"^net: opened", done.stderr, re.M)


# ---- nothing is left ------------------------------------------------------------------------------------

HOLD = """
socks = [connect("allowed.test", 7001) for _ in range(5)]
for sock in socks:
    sock.sendall(b"x")
print("now", flush=True)
time.sleep(60)
"""


def closed(world, mark, count):
    """So many connections have ended, as the server sees it."""
    return eventually(lambda: sum(entry["port"] == 7001 for entry in world.log(mark, "close")) < count, 20) is False


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda one: one.name)
def test_end_of_toolcage_ends_its_connections(cage, world, mark, ending):
    process = cage.start(RULES, *cage.snippet(HOLD), flags=())
    assert process.stdout.readline() == b"now\n", process.stderr.read()
    process.send_signal(ending)
    cage.finish(process)
    assert closed(world, mark, 5)
    assert not eventually(lambda: left(world), 20)


def test_timeout_ends_connections(one_cage, world):
    for seconds in (1, 5, 20):  # one in which it gets as far as that
        mark = world.mark()
        outcome = one_cage.run(RULES, *one_cage.snippet(HOLD), more=f'timeout = "{seconds}s"')
        assert outcome.result["verdict"] == "timeout"
        if outcome.stdout == "now\n":
            break
    assert closed(world, mark, 5)
    assert len(outcome.connections("allowed.test")) == 5


def test_kill_at_random_moments(one_cage, world):
    """While the cage is half built, while a name is looked up, while a connection is made."""
    groups = one_cage.caller.groups
    before = cage_groups(groups)  # root's are seen, too, and only root's next call collects those
    for number in range(15):
        process = one_cage.start([*RULES, "slow.test:80"], *one_cage.snippet(
            "threading.Thread(target=resolve, args=('slow.test',), daemon=True).start()\n" + HOLD), flags=())
        time.sleep(number * 0.008)
        process.kill()
        process.communicate()
    assert not eventually(lambda: left(world), 20)
    assert one_cage.run(RULES, "true").result["verdict"] == "ok"  # which collects control groups of the dead
    assert not eventually(lambda: cage_groups(groups) - before, 20)


def test_many_cages_at_once(one_cage):
    code = """
time.sleep(0.3)
say(good=[talk("allowed.test", 7000, b"%d" % number) == str(number) for number in range(20)],
    other=try_connect("127.0.0.1", 4444)[0])
"""
    started = [one_cage.start(RULES, *one_cage.snippet(code), flags=()) for _ in range(8)]
    for process in started:
        assert one_cage.finish(process).said == {"good": [True] * 20, "other": "ECONNREFUSED"}


def test_library_is_as_before_after_many_calls(one_cage, world):
    """No descriptor, no thread, no memory is left in a program that calls with gates from several threads."""
    calls = 60 if SANITIZED else 100
    policy = one_cage.policy(RULES)
    done = one_cage.bare(world.base / "gate-host", policy, calls, 4, world.public / "static-client", "get", "4",
                         "allowed.test", "80")
    assert done.stderr == "" and done.said["good"] == calls, done
    # An engine keeps control groups for the next call, at most eight: how many depends on how calls met.
    assert done.said["files"][1] < done.said["files"][0] + 40 and done.said["threads"] == 1, done.said
    assert SANITIZED or done.said["memory_kb"][1] < done.said["memory_kb"][0] + 3000, done.said


def test_descriptors_of_the_caller_do_not_get_into_a_cage(one_cage, world):
    """Two cages of one process: neither holds the other's gate."""
    code = """
time.sleep(0.2)
say(fds=sorted(int(number) for number in os.listdir("/proc/self/fd"))[:3], count=len(os.listdir("/proc/self/fd")))
"""
    with contextlib.ExitStack() as stack:
        ends = [os.pipe() for _ in range(10)]
        for one in ends:
            stack.callback(os.close, one[0])
            stack.callback(os.close, one[1])
        process = one_cage.start(RULES, *one_cage.snippet(code), flags=(), pass_fds=sum(ends, ()))
        said = one_cage.finish(process).said
    assert said == {"fds": [0, 1, 2], "count": 4}
