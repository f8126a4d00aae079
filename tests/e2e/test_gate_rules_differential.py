# SPDX-License-Identifier: Apache-2.0
"""Compares the gate's rules with a second, slow reading of them that shares no code with it.

The reference is written from docs/policy.md over Python's ipaddress module and lists of labels. Random
rule sets and destinations come from a fixed seed, so a failure is reproducible; all of them go through
one run of the probe ($TOOLCAGE_BUILD/tests/unit/gate_rules_probe).
"""

import ipaddress
import os
import pathlib
import random
import subprocess

import pytest
from test_netrule_differential import (
    COMPATIBLE, MAPPED, STRICTER_NETWORKS, V4_CORNERS, V6_CORNERS, carried, exploded, hexadecimal,
    random_address, random_network, refused_network, rule_text,
)  # fmt: skip

SEED = 20250311
RULE_SETS = 25000
ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("TOOLCAGE_BUILD", "build")
PROBE = BUILD / "tests" / "unit" / "gate_rules_probe"

GATE_RANGES = [ipaddress.ip_network("198.18.0.0/15"), ipaddress.ip_network("2001:2::/48")]
LOOPBACK = [ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1")]
PORTS = [1, 22, 53, 80, 443, 8080, 65535]
LABELS = ["a", "b", "ab", "example", "test", "localhost"]


def ask(lines):
    """One probe run; as many answers as lines."""
    if not PROBE.exists():
        pytest.fail(f"{PROBE} is not built", pytrace=False)
    run = subprocess.run([str(PROBE)], input="".join(line + "\n" for line in lines).encode("ascii"),
                         stdout=subprocess.PIPE, check=True, timeout=120)
    answers = run.stdout.decode("ascii").splitlines()
    assert len(answers) == len(lines)
    return answers


# ---- The reference ----


class Rule:
    """Of a name (a list of labels), of all names below one, or of a network."""

    def __init__(self, deny, host, below, low, high):
        self.deny, self.host, self.below, self.low, self.high = deny, host, below, low, high
        text = ("*." if below else "") + ".".join(host) if isinstance(host, list) else rule_text(host)
        ports = "*" if (low, high) == (1, 65535) else low if low == high else f"{low}-{high}"
        self.text = f"{'deny:' if deny else ''}{text}:{ports}"

    def speaks_of(self, host, port):
        return self.low <= port <= self.high and self.is_for(host)

    def is_for(self, host):
        if isinstance(self.host, list):
            if not isinstance(host, list):
                return False
            return len(host) > len(self.host) and host[-len(self.host):] == self.host if self.below else host == self.host
        if isinstance(host, list):
            return False
        if host.version == self.host.version:
            return host in self.host
        return self.deny and host.version == 6 and any(address in self.host for address in carried(host))


def first(rules, deny, host, port):
    return next((rule for rule in rules if rule.deny == deny and rule.speaks_of(host, port)), None)


def plain(address):
    """The address that the kernel would dial; None for one that is no destination at all."""
    if address.version == 6 and address in MAPPED:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if address.version == 6 and address in COMPATIBLE and int(address) > 1:
        return None
    return address


def is_public(address):
    return address.is_global and not any(address in network for network in STRICTER_NETWORKS)


class Network:
    def __init__(self, mode, rules=()):
        self.mode, self.rules = mode, list(rules)  # mode: none, public, rules, only_public
        words = [] if mode == "rules" else [mode]
        self.text = " ".join(words + [rule.text for rule in self.rules])

    def name(self, name, port):
        """(allowed, the rule that is named)"""
        if self.mode == "none" or port == 0:
            return False, ""
        if self.mode != "rules" and name[-1] == "localhost":
            return False, ""
        if self.mode == "public":
            return True, "public"
        denied, allowed = first(self.rules, True, name, port), first(self.rules, False, name, port)
        if denied or not allowed:
            return False, denied.text if denied else ""
        if name[-1] == "localhost" and not any(
            first(self.rules, False, address, port) and not first(self.rules, True, address, port) for address in LOOPBACK
        ):
            return False, ""
        return True, allowed.text

    def question(self, name):
        edges = {1, 65535}
        for rule in self.rules:
            edges |= {rule.low - 1, rule.low, rule.high, rule.high + 1}
        return any(self.name(name, port)[0] for port in edges if 1 <= port <= 65535)

    def address(self, address, own, port):
        address = plain(address)
        if address is None or self.mode == "none" or port == 0:
            return False, ""
        if self.mode != "rules" and (own or not is_public(address)):
            return False, ""
        if self.mode == "public":
            return True, "public"
        denied, allowed = first(self.rules, True, address, port), first(self.rules, False, address, port)
        if denied or not allowed:
            return False, denied.text if denied else ""
        if any(address in network for network in GATE_RANGES):
            return False, ""
        return True, allowed.text

    def resolved(self, name, address, own, port):
        allowed, rule = self.name(name, port)
        address = plain(address)
        if not allowed:
            return False, rule
        if address is None:
            return False, ""
        denied = first(self.rules, True, address, port)
        if denied:
            return False, denied.text
        if is_public(address) and not own or self.mode == "rules" and first(self.rules, False, address, port):
            return True, rule
        return False, ""

    def ports(self):
        if self.mode == "public":
            return "every"
        allow = [range(rule.low, rule.high + 1) for rule in self.rules if not rule.deny]
        if any(len(ports) > 32 for ports in allow):
            return "every"
        ports = {port for ports in allow for port in ports}
        return "every" if len(ports) > 32 else " ".join(map(str, sorted(ports)))


# ---- Random material ----


def random_name(rng):
    return [rng.choice(LABELS) for _ in range(rng.randint(1, 3))]


def random_ports(rng):
    kind = rng.random()
    if kind < 0.5:
        port = rng.choice(PORTS)
        return port, port
    if kind < 0.7:
        return 1, 65535
    low = max(1, rng.choice(PORTS) - rng.randint(0, 20))
    return low, min(65535, low + rng.choice([1, 5, 40, 9000]))


def some_address(rng):
    """Often one of those that matter, or one that carries it."""
    kind = rng.random()
    if kind < 0.3:
        return random_address(rng)
    if kind < 0.5:
        return ipaddress.ip_address(rng.choice(["8.8.4.4", "2606:4700::1"]))
    corner = ipaddress.ip_address(rng.choice(V4_CORNERS + V6_CORNERS + ["198.19.0.1", "2001:2::5"]))
    if corner.version == 6 or rng.random() < 0.5:
        return corner
    base = ipaddress.IPv6Address(rng.choice(["::ffff:0:0", "64:ff9b::", "::"]))
    return ipaddress.IPv6Address(int(base) | int(corner))


def random_rule(rng, name, address):
    deny = rng.random() < 0.3
    low, high = random_ports(rng)
    while rng.random() < 0.5:
        near = plain(address) or address
        network = random_network(rng, near)
        if not refused_network(network):
            return Rule(deny, network, False, low, high)
    if rng.random() < 0.6:
        host = name if rng.random() < 0.6 else name[1:]
        if host:
            return Rule(deny, host, host is not name or rng.random() < 0.2, low, high)
    return Rule(deny, random_name(rng), rng.random() < 0.5, low, high)


def random_case(rng):
    name, address = random_name(rng), some_address(rng)
    mode = rng.choices(["rules", "only_public", "public", "none"], [80, 8, 10, 2])[0]
    rules = [random_rule(rng, name, address) for _ in range(rng.randint(1, 6))] if "ru" in mode or "only" in mode else []
    return Network(mode, rules), name, address


def spell(rng, address):
    return rng.choice([hexadecimal, exploded])(address)


# ---- Tests ----


def test_verdicts_are_those_of_the_reference():
    rng = random.Random(SEED)
    lines, expected = [], []

    def expect(network, answer, *fields):
        lines.append("\t".join([network.text, *map(str, fields)]))
        expected.append(answer)

    def verdict(pair):
        return f"{'yes' if pair[0] else 'no'} {pair[1]}"

    for _ in range(RULE_SETS):
        network, name, address = random_case(rng)
        text = ".".join(name)
        own = int(rng.random() < 0.15)
        # A port at which something happens, if there is one.
        edges = [rule.low for rule in network.rules] + [rule.high for rule in network.rules]
        port = rng.choice(edges if edges and rng.random() < 0.8 else PORTS + [0])
        expect(network, verdict(network.name(name, port)), "name", text, port)
        expect(network, verdict(network.address(address, own, port)), "address", spell(rng, address), port, own)
        expect(network, verdict(network.resolved(name, address, own, port)), "resolved", text, spell(rng, address), port, own)
        expect(network, "yes" if network.question(name) else "no", "question", text)
        expect(network, network.ports(), "ports")

    answers = ask(lines)
    wrong = []
    seen = {}
    for line, answer, right in zip(lines, answers, expected):
        kind = line.split("\t")[1]
        if kind == "question":  # which rule is named there is not a part of the contract
            answer = answer.split(" ")[0]
        word = right.split(" ")[0] if kind != "ports" else "every" if right == "every" else "list"
        seen[kind, word] = seen.get((kind, word), 0) + 1
        if answer != right:
            wrong.append(f"{line!r}: expected {right!r}, got {answer!r}")
    assert not wrong, f"{len(wrong)} of {len(lines)}:\n" + "\n".join(wrong[:20])
    # Each answer occurs often enough to mean something.
    for kind in ("name", "address", "resolved", "question"):
        for word in ("yes", "no"):
            assert seen.get((kind, word), 0) > RULE_SETS // 20, (kind, word, seen)
    assert min(seen.get(("ports", "every"), 0), seen.get(("ports", "list"), 0)) > RULE_SETS // 20, seen
