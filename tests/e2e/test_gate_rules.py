# SPDX-License-Identifier: Apache-2.0
"""What the rules of `network` mean to a program: names, wildcards, addresses, prefixes, ports, `deny:`, "public",
"host", and services of the host itself."""

import pytest

from gate_lab import cage, mark, names, no_cage, one_cage, world  # noqa: F401

pytestmark = pytest.mark.native

OK, CLOSED, NO_NAME = "ok", "ECONNREFUSED", "EAI_NONAME"
SERVER6 = f"[{names.SERVER6}]"

# rules, [(host, port, what a program sees)]
TABLE = {
    "an exact name": (["allowed.test:80"], [
        ("allowed.test", 80, OK), ("ALLOWED.Test", 80, OK), ("allowed.test.", 80, OK), ("allowed.test", 8080, CLOSED),
        ("www.allowed.test", 80, NO_NAME), ("other.test", 80, NO_NAME), ("notallowed.test", 80, NO_NAME),
        ("test", 80, NO_NAME)]),
    "the long spelling": (["allowlist:allowed.test:80"], [("allowed.test", 80, OK), ("other.test", 80, NO_NAME)]),
    "a wildcard": (["*.allowed.test:80"], [
        ("www.allowed.test", 80, OK), ("deep.www.allowed.test", 80, OK), ("allowed.test", 80, NO_NAME),
        ("notallowed.test", 80, NO_NAME)]),
    "a name is not its address": (["allowed.test:80"], [(names.SERVER, 80, CLOSED), (names.SERVER6, 80, CLOSED)]),
    "an address is not its names": ([f"{names.SERVER}:80"], [
        (names.SERVER, 80, OK), ("allowed.test", 80, NO_NAME), (names.OTHER, 80, CLOSED), (names.SERVER, 8080, CLOSED),
        (names.SERVER6, 80, CLOSED)]),
    "an IPv6 address": ([f"{SERVER6}:80"], [
        (names.SERVER6, 80, OK), (names.OTHER6, 80, CLOSED), (names.SERVER, 80, CLOSED)]),
    "the mapped spelling of an allowed address": ([f"{names.SERVER}:80"], [
        (f"::ffff:{names.SERVER}", 80, OK), (f"::ffff:{names.OTHER}", 80, CLOSED)]),
    "a prefix": (["93.184.216.32/31:80", "93.184.216.34/31:80"], [
        (names.SERVER, 80, OK), (names.OTHER, 80, OK), ("93.184.220.1", 80, CLOSED)]),
    "an IPv6 prefix": (["[2606:2800:220:1::/64]:80"], [
        (names.SERVER6, 80, OK), (names.OTHER6, 80, OK), (names.SILENT6, 80, CLOSED)]),
    "few ports": (["allowed.test:9000-9009"], [
        ("allowed.test", 9000, OK), ("allowed.test", 9009, OK), ("allowed.test", 9010, CLOSED),
        ("allowed.test", 80, CLOSED)]),
    "many ports": (["allowed.test:9000-9039"], [
        ("allowed.test", 9000, OK), ("allowed.test", 9039, OK), ("allowed.test", 80, CLOSED),
        ("allowed.test", 8999, CLOSED)]),
    "every port": (["allowed.test:*"], [
        ("allowed.test", 80, OK), ("allowed.test", 22, OK), ("allowed.test", 9039, OK), ("allowed.test", 7002, CLOSED),
        ("other.test", 80, NO_NAME), (names.SERVER, 80, CLOSED)]),
    "deny beats allow": (["*.allowed.test:80", "allowed.test:80", "deny:www.allowed.test:80"], [
        ("allowed.test", 80, OK), ("deep.www.allowed.test", 80, OK), ("www.allowed.test", 80, NO_NAME)]),
    "deny of one port": (["allowed.test:80", "allowed.test:8080", "deny:*.test:8080", "deny:allowed.test:8080"], [
        ("allowed.test", 80, OK), ("allowed.test", 8080, CLOSED)]),
    "deny of the only addresses": (["allowed.test:80", f"deny:{names.SERVER}:*", f"deny:{SERVER6}:*"], [
        ("allowed.test", 80, NO_NAME)]),
    "deny of one of two addresses": (["allowed.test:80", f"deny:{SERVER6}:*"], [("allowed.test", 80, OK)]),
    "public": ("public", [
        ("allowed.test", 80, OK), ("other.test", 9039, OK), (names.SERVER, 80, OK), (names.SERVER6, 22, OK),
        ("allowed.test", 7002, CLOSED), ("private.test", 80, NO_NAME), ("loopback.test", 80, NO_NAME),
        ("metadata.test", 80, NO_NAME), ("own.test", 80, NO_NAME), (names.PRIVATE, 80, CLOSED),
        (names.METADATA, 80, CLOSED), (names.OWN, 80, CLOSED), ("127.0.0.1", 5432, CLOSED), ("::1", 5432, CLOSED),
        ("nx.test", 80, NO_NAME)]),
    "a private host, by name and address": (["private.test:80", f"{names.PRIVATE}:80"], [
        ("private.test", 80, OK), (names.PRIVATE, 80, OK), (names.METADATA, 80, CLOSED)]),
    "a private host, by name alone": (["private.test:80"], [("private.test", 80, NO_NAME)]),
}


@pytest.mark.parametrize("text", TABLE)
def test_rule(cage, text, world, mark):
    rules, expected = TABLE[text]
    code = f"""
def look(host, port):
    for _ in range(5):  # where the machine is busy, once may take long
        problem, seconds = try_connect(host, port)
        if seconds < 1:
            break
    return [problem or "ok", seconds < 1]
say(seen=[look(host, port) for host, port in {[entry[:2] for entry in expected]!r}])
"""
    outcome = cage.python(rules, code)
    seen = [(host, port, *entry) for (host, port, _), entry in zip(expected, outcome.said["seen"])]
    assert seen == [(*entry, True) for entry in expected]
    # What failed without having been refused is a connection to a port at which nobody listens.
    failed = {entry["port"] for entry in outcome.connections() if entry["error"]}
    refused = outcome.denials()
    for host, port, what in expected:
        named = host.lower().rstrip(".")
        if what == OK:
            assert not {named, f"{named}:{port}"} & set(refused), refused
        elif port == 7002:
            assert port in failed
        elif named not in ("nx.test", "127.0.0.1", "::1"):  # the last two: nobody listens in the cage itself
            spelled = {named, f"{named}:{port}", f"[{named}]:{port}", named.removeprefix("::ffff:") + f":{port}"}
            assert spelled & set(refused), (named, refused)
    assert not [entry for entry in world.log(mark, "open") if entry["where"] == "world"]


def test_no_network_is_none(cage, world, mark):
    code = f"""
say(name=resolve("allowed.test")[:4], address=try_connect({names.SERVER!r}, 80)[0],
    own=try_connect("127.0.0.1", 5432)[0])
"""
    assert cage.python("none", code).said == {"name": "EAI_", "address": "ENETUNREACH", "own": CLOSED}
    assert world.log(mark) == []


# ---- services of the host itself ----------------------------------------------------------------------


def test_service_of_the_host_by_an_address_rule(cage, world, mark):
    code = "say(got=talk('127.0.0.1', 5432, b'select'), other=talk('127.0.0.1', 7000), six=talk('::1', 5432))"
    outcome = cage.python(["127.0.0.1:5432"], code)
    assert outcome.said == {"got": "select", "other": CLOSED, "six": CLOSED}
    assert [(entry["to"], entry["port"]) for entry in world.log(mark, "open", "world")] == [("127.0.0.1", 5432)]
    made, = outcome.connections()
    assert (made["address"], made["port"], made["bytes_out"]) == ("127.0.0.1", 5432, 6)


def test_service_of_the_host_over_ipv6(one_cage, world, mark):
    assert one_cage.python(["[::1]:5432"], "say(got=talk('::1', 5432, b'select'))").said == {"got": "select"}
    world.wait_for(mark, "open", where="world", to="::1")


@pytest.mark.parametrize("host, address", [("loopback.test", "127.0.0.1"), ("own.test", names.OWN)])
def test_service_of_the_host_by_a_name(one_cage, world, mark, host, address):
    """The name alone is not enough."""
    code = f"say(got=talk({host!r}, 5432, b'select'))"
    assert one_cage.python([f"{host}:5432"], code).said == {"got": NO_NAME}
    assert world.log(mark, "open") == []
    assert one_cage.python([f"{host}:5432", f"{address}:5432"], code).said == {"got": "select"}
    world.wait_for(mark, "open", where="world", to=address)


def test_lint_warns_of_a_service_of_the_host(no_cage, world):
    policy = no_cage.policy("none", '[tool.database]\nnetwork = ["127.0.0.1:5432"]\n')
    done = no_cage.bare(world.base / "toolcage", "lint", policy)
    assert "127.0.0.1" in done.stdout + done.stderr and "warning" in done.stdout + done.stderr, done


# ---- the host's network, and who cannot keep rules ------------------------------------------------------


def test_host_network_is_the_hosts(cage, world, mark):
    code = "say(got=talk('127.0.0.1', 5432), name=talk('allowed.test', 7000))"
    outcome = cage.python("host", code, more="allow_host_network = true")
    assert outcome.said == {"got": "ping", "name": "ping"}
    world.wait_for(mark, "open", where="world", to="127.0.0.1")


def test_process_backend_refuses_rules(one_cage):
    process = one_cage.start(["allowed.test:80"], "true", more='backend = "process"\nsyscalls = "default"', flags=())
    done = one_cage.finish(process)
    assert done.status == 125 and "network" in done.stderr and "jail" in done.stderr, done
