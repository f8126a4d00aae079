# SPDX-License-Identifier: Apache-2.0
"""Attacks on the process that serves the gate: a cage, or a name server, that wants its time, its memory, its
descriptors or its threads, or that wants a name to leave the host by another door. What is measured here is the
process itself."""

import contextlib
import json
import os
import threading
import time

import pytest

from gate_lab import TIME_SCALE, mark, names, one_cage, world  # noqa: F401
from gate_world import run_tool
from native import SANITIZED

SILENT_MANY = "silentmany.test"
TICK = os.sysconf("SC_CLK_TCK")


class Watch:
    """The highest of what a process has had while it ran."""

    def __init__(self, process):
        self.pid, self.descriptors, self.threads, self.memory, self.cpu = process.pid, 0, 0, 0, 0.0
        self.running = True
        self.thread = threading.Thread(target=self._look)
        self.thread.start()

    def _look(self):
        while self.running:
            with contextlib.suppress(OSError, IndexError, StopIteration):
                base = f"/proc/{self.pid}"
                with open(f"{base}/stat", encoding="ascii") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
                self.cpu = max(self.cpu, (int(fields[11]) + int(fields[12])) / TICK)
                self.threads = max(self.threads, int(fields[17]))
                self.memory = max(self.memory, int(fields[21]) * os.sysconf("SC_PAGESIZE"))
                self.descriptors = max(self.descriptors, len(os.listdir(f"{base}/fd")))
            time.sleep(0.02)

    def end(self):
        self.running = False
        self.thread.join()


def run_watched(cage, network, code, limit=None, more=""):
    """Runs a snippet; its result, and what toolcage needed for it."""
    prefix = ("prlimit", f"--nofile={limit}") if limit else ()
    process = cage.spawn(*prefix, cage.world.base / "toolcage", "exec", "--policy", cage.policy(network, more), "--json",
                         "--", *cage.snippet(code))
    watch = Watch(process)
    try:
        outcome = cage.finish(process)
    finally:
        watch.end()
    assert outcome.stdout.startswith("{"), outcome
    outcome.result = json.loads(outcome.stdout)
    outcome.stdout = outcome.result["stdout"]
    return outcome, watch


@pytest.fixture
def etc(world):
    """Lines for files of the world's /etc; they are as before afterwards."""
    before = {}

    def add(name, text):
        path = world.base / "etc" / name
        before.setdefault(path, path.read_text(encoding="ascii"))
        with open(path, "a", encoding="ascii") as file:  # in place: it is mounted
            file.write(text)

    yield add
    for path, text in before.items():
        path.write_text(text, encoding="ascii")


# ---- time ------------------------------------------------------------------------------------------------------------


def test_name_with_many_refused_addresses_under_many_rules_costs_little(one_cage):
    """Each question used to cost the product of rules, rules and addresses."""
    rules = [f"host{number}.test:80" for number in range(400)] + ["many.test:80", "deny:93.184.220.0/24:*"]
    code = """
begin = time.monotonic()
codes = {ask("many.test", timeout=30).get("code") for _ in range(60)}
say(codes=list(codes), seconds=time.monotonic() - begin)
"""
    outcome = one_cage.python(rules, code)
    assert outcome.said["codes"] == [3]
    assert outcome.said["seconds"] < 2 * TIME_SCALE
    denial, = [entry for entry in outcome.result["denials"] if entry["target"] == "many.test"]
    assert denial["count"] == 60


def test_server_that_does_not_read_keeps_nobody_busy_after_the_end(one_cage):
    """What the cage has sent may still go out for a while; waiting for that takes no time of the processor."""
    code = """
sock = connect("allowed.test", 7006)
read_exactly(sock, 5)
sock.setblocking(False)
with contextlib.suppress(OSError):
    while True:
        sock.send(bytes(65536))
say(done=True)
"""
    outcome, watch = run_watched(one_cage, ["allowed.test:7006"], code)
    assert outcome.result["verdict"] == "ok"
    assert outcome.seconds > 1.5  # it did wait
    assert watch.cpu < 0.6 * TIME_SCALE


def test_flood_of_datagrams_of_one_family_after_the_other(one_cage):
    """Those of the second family are not followed for ever, either."""
    code = """
for family, address in ((socket.AF_INET, "10.9.9.9"), (socket.AF_INET6, "2606::1")):
    sock = socket.socket(family, socket.SOCK_DGRAM)
    for port in range(1000, 4000):
        sock.sendto(b"x", (address, port))
    time.sleep(0.2)
say(done=True)
"""
    outcome = one_cage.python(["allowed.test:80"], code)
    assert sum(entry["count"] for entry in outcome.result["denials"]) + outcome.result["network_unlisted"] < 300


# ---- memory, descriptors, threads ------------------------------------------------------------------------------------


@pytest.mark.skipif(SANITIZED, reason="freed memory stays with the sanitizer")
def test_knocking_at_the_resolver_takes_no_memory(one_cage):
    """Connections to the resolver that are begun and given up at once, as many as go into three seconds."""
    code = """
end, count = time.monotonic() + 3, 0
while time.monotonic() < end or count < 3000:
    for _ in range(100):
        with socket.socket() as sock:
            sock.setblocking(False)
            sock.connect_ex(("198.18.0.1", 53))
    count += 100
say(count=count, after=ask("allowed.test", over="tcp").get("code"))
"""
    outcome, watch = run_watched(one_cage, ["allowed.test:80"], code)
    _, quiet_watch = run_watched(one_cage, ["allowed.test:80"], "time.sleep(0.5)")
    assert outcome.said["after"] == 0
    assert outcome.said["count"] > 2000
    assert watch.memory < quiet_watch.memory + (1 << 20)


def test_name_with_many_silent_addresses_takes_few_descriptors(one_cage, world, etc):
    run_tool(*world._inside(world.internet), "ip", "route", "replace", "blackhole", "93.184.221.0/24")
    etc("hosts", "".join(f"93.184.221.{number} {SILENT_MANY}\n" for number in range(1, 33)))
    code = f"""
address = socket.getaddrinfo("{SILENT_MANY}", 80, socket.AF_INET, socket.SOCK_STREAM)[0][4]
socks = [socket.socket() for _ in range(30)]
for sock in socks:
    sock.setblocking(False)
    sock.connect_ex(address)
time.sleep(4)
"""
    _, watch = run_watched(one_cage, [f"{SILENT_MANY}:80"], code)
    assert 30 * 4 < watch.descriptors < 30 * 8


def test_names_without_an_answer_take_few_threads(one_cage):
    """Places for lookups are shared by all cages of a process; one of them does not get them all."""
    code = """
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range(100):
    sock.sendto(question(f"n{number}.mute.test", "A", number), (nameserver(), 53))
time.sleep(1)
"""
    _, watch = run_watched(one_cage, ["*.mute.test:80"], code)
    assert 4 < watch.threads <= 10


def test_host_with_few_descriptors_is_not_kept_busy(one_cage):
    """Connections that cannot be accepted are reported again and again: that must not spin."""
    code = """
address = socket.getaddrinfo("allowed.test", 7001, socket.AF_INET, socket.SOCK_STREAM)[0][4]
socks = [socket.socket() for _ in range(60)]
for sock in socks:
    sock.setblocking(False)
    sock.connect_ex(address)
time.sleep(3)
"""
    outcome, watch = run_watched(one_cage, ["allowed.test:7001"], code, limit=64)
    assert outcome.result["verdict"] == "ok"
    assert watch.cpu < 1 * TIME_SCALE


def test_host_without_descriptors_for_the_gate_says_so(one_cage):
    """It does not start a cage whose names quietly do not exist."""
    rules = [f"allowed.test:{port}" for port in (7000, *range(9000, 9020))]
    said = set()
    for limit in range(34, 70, 5):
        outcome, _ = run_watched(one_cage, rules, "say(got=talk('allowed.test', 7000))", limit=limit)
        if outcome.result["verdict"] == "error":
            assert "Too many open files" in outcome.result["reason"]
            said.add("error")
        elif outcome.said != {"got": "ping"}:
            # A descriptor or two are missing for the connection itself, which is told as well.
            assert outcome.said == {"got": "ECONNREFUSED"}, limit
            assert "Too many open files" in outcome.connections()[-1]["error"]
        else:
            said.add("ping")
    assert said == {"error", "ping"}


# ---- other doors -----------------------------------------------------------------------------------------------------


def test_search_list_of_the_host_makes_no_other_name(one_cage, world, mark, etc):
    """A name that does not exist is not tried with the host's own domains behind it: they are none that a rule allows."""
    etc("resolv.conf", "search refused.test corp.refused.test\n")
    said = one_cage.python(["*.allowed.test:80"], "say(found=resolve('c2VjcmV0.allowed.test'))").said
    assert said["found"] == "EAI_NONAME"
    assert {entry["name"] for entry in world.log(mark, "question")} == {"c2vjcmv0.allowed.test"}


def test_connection_that_the_program_gives_up_is_in_the_result(one_cage, world, mark):
    """The server has seen it; so the result knows of it."""
    code = """
address = socket.getaddrinfo("allowed.test", 7001, socket.AF_INET, socket.SOCK_STREAM)[0][4]
for _ in range(20):
    with socket.socket() as sock:
        sock.setblocking(False)
        sock.connect_ex(address)
time.sleep(1)
say(done=True)
"""
    outcome = one_cage.python(["allowed.test:7001"], code)
    opened = [entry for entry in world.log(mark, "open") if entry["port"] == 7001]
    assert opened
    assert len(outcome.connections("allowed.test")) == len(opened)
    assert {entry.get("address") for entry in outcome.connections()} <= {names.SERVER, names.SERVER6}
