# SPDX-License-Identifier: Apache-2.0
"""Ways out past the gate. For each, somebody waits outside: services of the host itself (the "world"), every server of
the "internet", and a watcher on the only wire. Without a cage they are reached; from a cage nobody hears of it."""

import pytest

from gate_lab import TIME_SCALE, cage, mark, names, no_cage, one_cage, quiet, world  # noqa: F401

# Ports 80 and 7000 have listeners of the gate in the cage; the others have none.
RULES = ["allowed.test:80", "allowed.test:7000"]
PORTS = (80, 7000, 5432, 443, 22)

# Every way to write this host, its neighbours and the cloud's credentials.
SPELLINGS = [
    "127.0.0.1", "127.1", "127.0.1", "0", "0.0.0.0", "0x7f000001", "0x7f.1", "2130706433", "017700000001", "0177.0.0.1",
    "127.0.0.2", "127.255.255.254", "::1", "0:0:0:0:0:0:0:1", "::", "::ffff:127.0.0.1", "::ffff:7f00:1",
    "::ffff:0.0.0.0", "localhost", "LOCALHOST", "10.77.0.2", "::ffff:10.77.0.2", "fd77::2", names.OWN, "10.77.0.1",
    "fd77::1", "::ffff:10.77.0.1", "169.254.169.254", "::ffff:169.254.169.254", "2852039166",
]
# Others that lead nowhere here, and must not lead anywhere else.
STRANGE = ["::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::10.77.0.1", "2002:7f00:1::1", "2002:a4d:1::", "fe80::1",
           "ff02::1", "224.0.0.1", "255.255.255.255", "198.18.0.1", "198.18.0.99", "198.19.255.254", "2001:2::1",
           "2001:2::99", "100.64.0.1", "192.168.0.1", "172.17.0.1", "localhost.", "localhost.localdomain",
           "ip6-localhost", "cage"]


def spellings_code(hosts, ports):
    return f"""
seen = {{}}
for host in {list(hosts)!r}:
    for port in {list(ports)!r}:
        problem, seconds = try_connect(host, port, timeout=1.1)
        if problem is None:
            with contextlib.suppress(OSError), connect(host, port, 1) as sock:
                sock.sendall(b"GET /escaped HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
        seen[f"{{host}} {{port}}"] = [problem, seconds]
say(seen=seen)
"""


# ---- addresses ---------------------------------------------------------------------------------------


def test_control_every_spelling_is_reached_without_a_cage(no_cage):
    seen = no_cage.bare_python(spellings_code(SPELLINGS, (80,))).said["seen"]
    assert {key for key, (problem, _) in seen.items() if problem} == set()


def test_no_spelling_of_this_host_leads_to_it(cage, world, mark):
    seen = cage.python(RULES, spellings_code(SPELLINGS, PORTS)).said["seen"]
    assert {key: what for key, what in seen.items() if what[0] is None or what[1] > 1 * TIME_SCALE} == {}
    quiet(world, mark)


def test_no_strange_address_leads_anywhere(cage, world, mark):
    seen = cage.python(RULES, spellings_code(STRANGE, (80, 5432))).said["seen"]
    assert {key: what for key, what in seen.items() if what[0] is None or what[1] > 1 * TIME_SCALE} == {}
    quiet(world, mark)


@pytest.mark.parametrize("rules", ["public", ["allowed.test:*"]], ids=["public", "every port"])
def test_no_spelling_leads_to_this_host_where_every_port_is_open(one_cage, world, mark, rules):
    seen = one_cage.python(rules, spellings_code([*SPELLINGS, *STRANGE], (80, 5432))).said["seen"]
    assert {key: what for key, what in seen.items() if what[0] is None or what[1] > 1 * TIME_SCALE} == {}
    quiet(world, mark, events=("open", "datagram", "packet"))  # every name may be asked for


def test_addresses_of_allowed_and_refused_hosts_are_no_way_around_names(cage, world, mark):
    hosts = [names.SERVER, names.SERVER6, names.OTHER, names.OTHER6, f"::ffff:{names.SERVER}", "93.184.220.1",
             "1572395042"]
    seen = cage.python(RULES, spellings_code(hosts, (80, 7000, 443))).said["seen"]
    assert {what[0] for what in seen.values()} == {"ECONNREFUSED"}
    quiet(world, mark)


# ---- other ways to begin a connection ---------------------------------------------------------------------


@pytest.mark.parametrize("how", ["sendto", "option"])
@pytest.mark.parametrize("host, port", [(names.OTHER, 80), ("127.0.0.1", 5432), ("::1", 80), ("10.77.0.1", 7000)])
def test_fast_open_carries_nothing_out(cage, world, mark, how, host, port):
    """Data in the first packet, before anybody could have allowed it."""
    code = f"""
sock = socket.socket(socket.AF_INET6 if ":" in {host!r} else socket.AF_INET)
sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 1, 0))
sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 1, 0))
def go():
    if {how!r} == "sendto":
        sock.sendto(b"GET /escaped HTTP/1.1\\r\\n\\r\\n", 0x20000000, ({host!r}, {port}))
    else:
        sock.setsockopt(socket.IPPROTO_TCP, 30, 1)
        sock.connect(({host!r}, {port}))
        sock.sendall(b"GET /escaped HTTP/1.1\\r\\n\\r\\n")
    return sock.recv(10)
say(problem=attempt(go)[1])
"""
    assert cage.python(RULES, code).said["problem"] in (
        "ECONNREFUSED", "ECONNRESET", "EPERM", "EOPNOTSUPP", "EPIPE", "EAGAIN")
    quiet(world, mark)


def test_fast_open_to_an_allowed_host_is_an_ordinary_connection(one_cage, world, mark):
    code = """
address = socket.getaddrinfo("allowed.test", 7000, socket.AF_INET, socket.SOCK_STREAM)[0][4]
sock = socket.socket()
say(got=attempt(lambda: (sock.sendto(b"early", 0x20000000, address), sock.recv(10).decode())[1])[:2])
"""
    assert one_cage.python(RULES, code).said["got"] in (["early", None], [None, "EOPNOTSUPP"], [None, "EPERM"])
    quiet(world, mark, (names.SERVER, names.SERVER6))


@pytest.mark.parametrize("protocol", [262, 132, 33, 136], ids=["mptcp", "sctp", "dccp", "udplite"])
def test_other_transports_carry_nothing_out(cage, world, mark, protocol):
    code = f"""
kinds = {{262: socket.SOCK_STREAM, 132: socket.SOCK_STREAM, 33: 6, 136: socket.SOCK_DGRAM}}
def go(host):
    with socket.socket(socket.AF_INET, kinds[{protocol}], {protocol}) as sock:
        sock.settimeout(0.3)
        sock.connect((host, 7000))
        sock.send(b"escaped")
        return sock.recv(10).decode()
say(seen=[attempt(go, host)[0] for host in ({names.OTHER!r}, "127.0.0.1", "10.77.0.1", {names.SERVER!r})])
"""
    assert cage.python(RULES, code).said == {"seen": [None] * 4}
    quiet(world, mark)


def test_control_race_reaches_both_hosts_without_a_cage(no_cage, world):
    said = no_cage.bare(world.public / "static-client", "race", names.SERVER, names.OTHER, "80", "400").said
    assert said["first"] > 0 and said["second"] > 0


def test_race_between_check_and_use_of_an_address(cage, world, mark):
    """Another thread exchanges the address while connect() is under way."""
    outcome = cage.run([f"{names.SERVER}:80"], world.public / "static-client", "race", names.SERVER, names.OTHER, "80",
                       "400")
    assert outcome.said["first"] > 0 and outcome.said["second"] == 0 and outcome.said["refused"] > 0, outcome.said
    quiet(world, mark, (names.SERVER,))


def test_race_of_many_threads(one_cage, world, mark):
    """Allowed and refused at once, again and again: no answer is taken for another's."""
    code = f"""
from concurrent.futures import ThreadPoolExecutor
targets = [("allowed.test", None), ({names.OTHER!r}, "ECONNREFUSED"), ("refused.test", "EAI_NONAME"),
           ("127.0.0.1", "ECONNREFUSED")]
def one(number):
    host, expected = targets[number % 4]
    return try_connect(host, 7000)[0] == expected
with ThreadPoolExecutor(24) as pool:
    say(wrong=sum(not good for good in pool.map(one, range(480))))
"""
    assert one_cage.python(RULES, code).said == {"wrong": 0}
    quiet(world, mark, (names.SERVER, names.SERVER6))


def test_source_of_ones_own_choice(one_cage, world, mark):
    """Inside every address is local, so a program may bind to any: as a source, or to meet itself."""
    code = f"""
made_up = socket.getaddrinfo("allowed.test", 7000, socket.AF_INET, socket.SOCK_STREAM)[0][4]
def go(source, target):
    with socket.socket() as sock:
        sock.settimeout(1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(source)
        sock.connect(target)
        sock.sendall(b"hi")
        return sock.recv(10).decode()
sources = [(host, 0) for host in ("127.0.0.1", {names.SERVER!r}, made_up[0], "198.18.0.1")]
targets = [({names.OTHER!r}, 7000), ("10.77.0.1", 7000), ("127.0.0.1", 5432)]
seen = [attempt(go, source, target)[1] for source in sources for target in targets]
attempt(go, (made_up[0], 7000), made_up)
attempt(go, ({names.OTHER!r}, 7000), ({names.OTHER!r}, 7000))
say(seen=sorted(set(map(str, seen))), after=talk("allowed.test", 7000))
"""
    said = one_cage.python(RULES, code).said
    assert said["after"] == "ping" and "None" not in said["seen"], said
    quiet(world, mark, (names.SERVER, names.SERVER6))


# ---- datagrams, raw packets, other families -----------------------------------------------------------------


def test_control_datagrams_arrive_without_a_cage(no_cage, world, mark):
    no_cage.bare_python("""
for host in ("93.184.216.35", "127.0.0.1"):
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"escaped", (host, 7000))
socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(b"escaped", ("2606:2800:220:1::34", 7000))
say(done=True)
""")
    world.wait_for(mark, "datagram", where="world")
    world.wait_for(mark, "packet", protocol=17, port=7000, to=names.SERVER6)


@pytest.mark.parametrize("rules", [RULES, "public"], ids=["names", "public"])
def test_datagrams_do_not_leave(cage, world, mark, rules):
    code = """
made_up = socket.getaddrinfo("allowed.test", 7000, socket.AF_INET, socket.SOCK_STREAM)[0][4][0]
for host in (made_up, "93.184.216.34", "93.184.216.35", "127.0.0.1", "10.77.0.1", "10.77.0.2", "255.255.255.255",
             "224.0.0.251", "2606:2800:220:1::34", "::1", "fd77::1", "ff02::fb"):
    for port in (7000, 443, 123, 5353):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            sock.sendto(b"escaped", (host, port))
time.sleep(0.1)
say(done=True)
"""
    outcome = cage.python(rules, code)
    quiet(world, mark)
    assert f"{names.OTHER}:7000/udp" in outcome.denials()


def test_raw_and_packet_sockets_are_refused(cage, world, mark):
    code = """
def make(family, kind, protocol):
    socket.socket(family, kind, protocol).close()
kinds = {"icmp": (2, 3, 1), "raw tcp": (2, 3, 6), "raw ip": (2, 3, 255), "raw udp": (2, 3, 17), "icmp6": (10, 3, 58),
         "raw tcp6": (10, 3, 6), "packet": (17, 3, 0x300), "packet cooked": (17, 2, 0x300), "xdp": (44, 3, 0),
         "vsock": (40, 1, 0), "key": (15, 3, 2), "bluetooth": (31, 3, 1), "can": (29, 3, 1), "tipc": (30, 1, 0),
         "rds": (21, 5, 0), "qipcrtr": (42, 2, 0), "alg": (38, 5, 0)}
say(made=[name for name, what in kinds.items() if attempt(make, *what)[1] is None])
"""
    assert cage.python(RULES, code).said == {"made": []}
    quiet(world, mark)


def test_ping_does_not_leave(cage, world, mark):
    """The unprivileged kind of ICMP socket, if the kernel lets anybody have one."""
    code = """
def go(host, family, protocol, kind):
    with socket.socket(family, socket.SOCK_DGRAM, protocol) as sock:
        sock.settimeout(0.3)
        sock.sendto(bytes([kind, 0]) + b"\\0" * 6 + b"escaped", (host, 0))
        return sock.recv(100).hex()
targets = (("93.184.216.34", 2, 1, 8), ("10.77.0.1", 2, 1, 8), ("fd77::1", 10, 58, 128))
say(seen=[attempt(go, *what)[1] for what in targets])
"""
    assert None not in cage.python(RULES, code).said["seen"]
    quiet(world, mark)


def test_mark_of_the_gate_cannot_be_forged(cage, world, mark):
    """The gate tells its own packets from the cage's by a mark, which takes a privilege to set."""
    code = """
def option(level, number, value):
    with socket.socket() as sock:
        sock.setsockopt(level, number, value)
def with_message():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendmsg([b"escaped"], [(socket.SOL_SOCKET, 36, struct.pack("I", 1))], 0, ("93.184.216.35", 7000))
say(mark=[attempt(option, socket.SOL_SOCKET, 36, value)[1] for value in (1, 0x7463, 0x53544347, 2**31 - 1)],
    transparent=attempt(option, socket.IPPROTO_IP, 19, 1)[1],
    message=attempt(with_message)[1], repair=attempt(option, socket.IPPROTO_TCP, 19, 1)[1])
"""
    said = cage.python(RULES, code).said
    assert said["mark"] == ["EPERM"] * 4 and said["transparent"] == "EPERM" and said["message"] == "EPERM", said
    assert said["repair"] == "EPERM", said
    quiet(world, mark)


def test_extension_headers_lead_nowhere(cage, world, mark):
    """A routing header names further hosts; options move the TCP header out of the place where a filter looks."""
    code = """
def go(host, options):
    with socket.socket(socket.AF_INET6) as sock:
        sock.settimeout(0.25)
        for number, value in options:
            sock.setsockopt(socket.IPPROTO_IPV6, number, value)
        sock.connect((host, 80))
        sock.sendall(b"GET /escaped HTTP/1.1\\r\\n\\r\\n")
        return sock.recv(10).decode()
hop, routing, destination = 54, 57, 59
target = socket.inet_pton(socket.AF_INET6, "2606:2800:220:1::35")
padding = bytes([0, 0, 1, 4, 0, 0, 0, 0])
segments = bytes([0, 2, 4, 0, 0, 0, 0, 0]) + target
mobile = bytes([0, 2, 2, 1, 0, 0, 0, 0]) + target
old = bytes([0, 2, 0, 1, 0, 0, 0, 0]) + target
seen = {}
for host in ("2606:2800:220:1::35", "2606:2800:220:1::34", "::1", "2001:2::2"):
    for name, option in {"hop": (hop, padding), "destination": (destination, padding), "segments": (routing, segments),
                         "mobile": (routing, mobile), "old": (routing, old)}.items():
        value, problem, _ = attempt(go, host, [option])
        if problem is None:
            seen[f"{host} {name}"] = value
say(seen=seen, after=talk("allowed.test", 7000))
"""
    assert cage.python(RULES, code).said == {"seen": {}, "after": "ping"}
    quiet(world, mark, (names.SERVER, names.SERVER6))


def test_fragments_and_urgent_bytes(one_cage, world, mark):
    """Odd but lawful TCP neither harms the relay nor leads anywhere else."""
    code = """
with connect("allowed.test", 7000) as sock:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 88)
    sock.send(b"a")
    sock.send(b"!", socket.MSG_OOB)
    sock.sendall(b"b" * 5000)
    sock.shutdown(socket.SHUT_WR)
    got = read_all(sock)[0]
say(plain=got.count(b"a") + got.count(b"b"))
"""
    assert one_cage.python(RULES, code).said == {"plain": 5001}
    quiet(world, mark, (names.SERVER, names.SERVER6))
