# SPDX-License-Identifier: Apache-2.0
"""Enemies of the gate inside the cage: they change its network, listen in the gate's place, look for neighbours, and
flood it. Nobody outside hears of it, and the gate goes on."""

import time

from gate_lab import TIME_SCALE, cage, mark, names, no_cage, one_cage, quiet, world  # noqa: F401

RULES = ["allowed.test:80", "allowed.test:7000"]


# ---- the cage's own network ----------------------------------------------------------------------------------


def test_network_of_the_cage_cannot_be_changed(cage, world, mark):
    script = """
ip link add extra type dummy; ip link add a0 type veth peer name b0; ip link set lo down
ip addr add 10.1.1.1/24 dev lo; ip addr del 127.0.0.1/8 dev lo
ip route flush table local; ip route del local default dev lo table local; ip route del local default dev lo
ip route add default dev lo; ip rule add from all lookup 100; ip -6 route add default dev lo
ip neigh add 10.1.1.2 dev lo lladdr 0:0:0:0:0:1; ip netns add other; nft flush ruleset; nft add table ip x
sysctl -w net.ipv4.ip_forward=1; echo 1 >/proc/sys/net/ipv4/ip_forward
echo "0 2147483647" >/proc/sys/net/ipv4/ping_group_range
"""
    code = f"""
import subprocess
done = [line for line in {script!r}.replace(";", "\\n").split("\\n")
        if line.strip() and subprocess.run(["sh", "-c", line], capture_output=True).returncode == 0]
say(done=done, after=talk("allowed.test", 7000), refused=try_connect("{names.OTHER}", 7000)[0])
"""
    said = cage.python(RULES, code, more='timeout = "20s"').said
    assert said == {"done": [], "after": "ping", "refused": "ECONNREFUSED"}
    quiet(world, mark, (names.SERVER, names.SERVER6))


def test_listening_in_the_gates_place_harms_only_oneself(one_cage, world, mark):
    """A program that listens at every address and port it can get hears at most itself."""
    code = """
made_up = socket.getaddrinfo("allowed.test", 7000, socket.AF_INET, socket.SOCK_STREAM)[0][4][0]
listeners = []
for host in ("0.0.0.0", "::", made_up, "198.18.0.1", "127.0.0.1", "93.184.216.34"):
    for port in (7000, 53, 80, 9999):
        with contextlib.suppress(OSError):
            sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            sock.bind((host, port))
            sock.listen()
            listeners.append(sock)
problem = try_connect("allowed.test", 7000, 1)[0]
for sock in listeners:
    sock.close()
time.sleep(0.1)
say(problem=problem, after=talk("allowed.test", 7000), refused=try_connect("93.184.216.35", 7000, 2)[0])
"""
    said = one_cage.python(RULES, code).said
    assert said["after"] == "ping" and said["refused"] == "ECONNREFUSED", said
    quiet(world, mark, (names.SERVER, names.SERVER6))


def test_nobody_outside_reaches_a_cage(cage, no_cage):
    code = """
listeners = [socket.create_server(("0.0.0.0", 12345)), socket.create_server(("::", 12346), family=socket.AF_INET6)]
print("now", flush=True)
ready = select.select(listeners, [], [], 0.8)[0]
say(heard=len(ready))
"""
    process = cage.start(RULES, *cage.snippet(code), flags=())
    assert process.stdout.readline() == b"now\n", process.stderr.read()
    seen = no_cage.bare_python("""
say(seen=[try_connect(host, port, 0.3)[0] for port in (12345, 12346) for host in ("127.0.0.1", "::1", "10.77.0.2")])
""").said["seen"]
    assert set(seen) == {"ECONNREFUSED"}
    assert cage.finish(process).said == {"heard": 0}


def test_cages_do_not_see_each_other(cage):
    code = """
listeners = [socket.create_server(("127.0.0.1", 12345)), socket.create_server(("198.18.0.7", 12345))]
print("now", flush=True)
say(heard=len(select.select(listeners, [], [], 0.8)[0]))
"""
    process = cage.start(RULES, *cage.snippet(code), flags=())
    assert process.stdout.readline() == b"now\n", process.stderr.read()
    other = cage.python(RULES, """
say(seen=[try_connect(host, 12345, 1)[0] for host in ("127.0.0.1", "198.18.0.1", "198.18.0.7", "10.77.0.2")])
""").said
    assert set(other["seen"]) == {"ECONNREFUSED"}
    assert cage.finish(process).said == {"heard": 0}


def test_abstract_sockets_of_the_host_are_out_of_reach(cage, no_cage):
    outside = no_cage.spawn(*no_cage.snippet("""
unix = socket.socket(socket.AF_UNIX)
unix.bind(b"\\0toolcage-gate-host")
unix.listen()
print("now", flush=True)
say(heard=len(select.select([unix], [], [], 0.8)[0]))
"""))
    assert outside.stdout.readline() == b"now\n"
    code = """
def by_name():
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(b"\\0toolcage-gate-host")
say(problem=attempt(by_name)[1])
"""
    # Most cages have no such sockets at all.
    assert cage.python(RULES, code).said["problem"] in ("ECONNREFUSED", "EAFNOSUPPORT")
    assert no_cage.finish(outside).said == {"heard": 0}


def test_cage_holds_nothing_of_the_gate(cage):
    """The sockets that init made for the supervisor are in nobody's hands inside."""
    code = """
found = {}
for pid in filter(str.isdigit, os.listdir("/proc")):
    with contextlib.suppress(PermissionError):
        for number in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                found.setdefault(pid, []).append(os.readlink(f"/proc/{pid}/fd/{number}").split(":")[0])
say(found=found, own=str(os.getpid()))
"""
    said = cage.python(RULES, code).said
    mine = said["found"].pop(said["own"])
    assert mine and "socket" not in mine and said["found"] == {}, said


# ---- floods --------------------------------------------------------------------------------------------------


def test_flood_of_refused_connections(one_cage, world, mark):
    code = """
begin = time.monotonic()
for number in range(1500):
    sock = socket.socket()
    sock.setblocking(False)
    sock.connect_ex((f"93.184.{number % 200}.{number % 251 + 1}", 80 + number % 3))
    sock.close()
say(after=talk("allowed.test", 7000), seconds=time.monotonic() - begin)
"""
    outcome = one_cage.python(RULES, code)
    assert outcome.said["after"] == "ping"
    assert len(outcome.result["denials"]) <= 1001
    quiet(world, mark, (names.SERVER, names.SERVER6))


def test_flood_of_refused_names(one_cage, world, mark):
    code = """
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.connect((nameserver(), 53))
for number in range(3000):
    sock.send(question(f"n{number}.refused.test", "A"))
    if number % 50 == 0:
        time.sleep(0.001)
time.sleep(0.2)  # a datagram that finds no room is lost, and is asked again after seconds
say(after=talk("allowed.test", 7000))
"""
    outcome = one_cage.python(RULES, code)
    assert outcome.said["after"] == "ping"
    assert len(outcome.result["denials"]) <= 1001
    quiet(world, mark, (names.SERVER, names.SERVER6))


def test_connections_that_nobody_finishes(one_cage, world):
    """Dials into a hole, closed at once: what the gate began for them ends, and others go on."""
    code = """
for _ in range(300):
    sock = socket.socket()
    sock.setblocking(False)
    sock.connect_ex((made_up, 80))
    sock.close()
say(after=talk("allowed.test", 7000))
"""
    code = "made_up = socket.getaddrinfo('blackhole.test', 80, socket.AF_INET, socket.SOCK_STREAM)[0][4][0]\n" + code
    begin = time.monotonic()
    outcome = one_cage.python([*RULES, "blackhole.test:80"], code, more="network_limits = { connections = 1000 }")
    assert outcome.said["after"] == "ping"
    assert time.monotonic() - begin < 30 * TIME_SCALE
