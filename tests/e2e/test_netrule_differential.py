# SPDX-License-Identifier: Apache-2.0
"""Compares the rule matcher with a second, slow one that shares no code with it.

The reference is Python's ipaddress module for addresses, and lists of labels for names. Random
cases come from a fixed seed, so a failure is reproducible; those of a test go through one run of
the probe ($TOOLCAGE_BUILD/tests/unit/netrule_probe), so that tens of thousands are fast.
"""

import ipaddress
import os
import pathlib
import random
import string
import subprocess

import pytest

pytestmark = pytest.mark.reading

SEED = 20240917
ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("TOOLCAGE_BUILD", "build")
PROBE = BUILD / "tests" / "unit" / "netrule_probe"


def ask(lines):
    """One probe run; as many answers as lines."""
    if not PROBE.exists():
        pytest.fail(f"{PROBE} is not built", pytrace=False)
    for line in lines:
        assert "\n" not in line
    run = subprocess.run(
        [str(PROBE)],
        input="".join(line + "\n" for line in lines).encode("latin-1"),
        stdout=subprocess.PIPE,
        check=True,
        timeout=120,
    )
    answers = run.stdout.decode("ascii").splitlines()
    assert len(answers) == len(lines)
    return answers


def compare(cases):
    """cases: (line, expected answer) pairs."""
    answers = ask([line for line, _ in cases])
    wrong = [
        f"{line!r}: expected {expected}, got {answer}"
        for (line, expected), answer in zip(cases, answers)
        if answer != expected
    ]
    assert not wrong, f"{len(wrong)} of {len(cases)}:\n" + "\n".join(wrong[:20])


# ---- The reference: addresses ----

MAPPED = ipaddress.ip_network("::ffff:0:0/96")
COMPATIBLE = ipaddress.ip_network("::/96")
# Networks that carry an IPv4 address, and how to get at it from the 128 bits as a number.
CARRIERS = [
    (MAPPED, [lambda n: n & 0xFFFFFFFF]),
    (ipaddress.ip_network("::ffff:0:0:0/96"), [lambda n: n & 0xFFFFFFFF]),
    (ipaddress.ip_network("64:ff9b::/96"), [lambda n: n & 0xFFFFFFFF]),
    (
        ipaddress.ip_network("64:ff9b:1::/48"),
        [
            lambda n: n & 0xFFFFFFFF,
            # RFC 6052, 2.2: bits 64 to 71 are skipped.
            lambda n: (n >> 64 & 0xFFFF) << 16 | n >> 40 & 0xFFFF,
            lambda n: (n >> 64 & 0xFF) << 24 | n >> 32 & 0xFFFFFF,
            lambda n: n >> 24 & 0xFFFFFFFF,
        ],
    ),
    (ipaddress.ip_network("2002::/16"), [lambda n: n >> 80 & 0xFFFFFFFF]),
    (
        ipaddress.ip_network("2001::/32"),
        [lambda n: ~n & 0xFFFFFFFF, lambda n: n >> 64 & 0xFFFFFFFF],
    ),
]


def carried(address):
    """All IPv4 addresses that an IPv6 address carries."""
    return [
        ipaddress.IPv4Address(extract(int(address)))
        for network, extracts in CARRIERS
        if address in network
        for extract in extracts
    ]


def reference_address_match(deny, network, destination):
    """match, nomatch or error for an address rule."""
    if destination.version == 6:
        if destination in MAPPED:
            destination = ipaddress.IPv4Address(int(destination) & 0xFFFFFFFF)
        elif destination in COMPATIBLE and int(destination) > 1:
            return "error"
    if destination.version == network.version:
        return "match" if destination in network else "nomatch"
    if deny and network.version == 4 and any(a in network for a in carried(destination)):
        return "match"
    return "nomatch"


def hexadecimal(address):
    """RFC 5952 without dotted part; newer Pythons write one for mapped addresses."""
    if address.version == 6 and address in MAPPED:
        number = int(address)
        return f"::ffff:{number >> 16 & 0xFFFF:x}:{number & 0xFFFF:x}"
    return str(address)


def exploded(address):
    """All digits, and never a dotted part."""
    if address.version == 4:
        return str(address)
    return ":".join(f"{int(address) >> shift & 0xFFFF:04x}" for shift in range(112, -1, -16))


def rule_text(network):
    """An address rule's canonical host."""
    whole = network.prefixlen == network.max_prefixlen
    text = hexadecimal(network.network_address) + ("" if whole else f"/{network.prefixlen}")
    return f"[{text}]" if network.version == 6 else text


# ---- Random material ----

V4_CORNERS = [
    "0.0.0.0", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "168.63.129.16",
    "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.88.99.1",
    "192.168.0.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1",
    "255.255.255.255", "8.8.8.8",
]  # fmt: skip
V6_CORNERS = [
    "::", "::1", "::ffff:0:0", "::ffff:0:0:0", "64:ff9b::", "64:ff9b:1::", "100::", "2001::",
    "2001:db8::", "2002::", "2606:4700::", "3fff::", "5f00::", "fc00::", "fd00:ec2::254", "fe80::",
    "fec0::", "ff02::1",
]  # fmt: skip


def random_v4(rng):
    if rng.random() < 0.5:
        return ipaddress.IPv4Address(rng.getrandbits(32))
    base = int(ipaddress.IPv4Address(rng.choice(V4_CORNERS)))
    return ipaddress.IPv4Address(base ^ rng.getrandbits(32) >> rng.randint(8, 32))


def random_v6(rng):
    kind = rng.random()
    if kind < 0.2:
        return ipaddress.IPv6Address(rng.getrandbits(128))
    if kind < 0.4:  # many zero groups: what RFC 5952 is about
        number = 0
        for _ in range(8):
            group = 0 if rng.random() < 0.6 else rng.getrandbits(rng.choice([4, 16]))
            number = number << 16 | group
        return ipaddress.IPv6Address(number)
    base = int(ipaddress.IPv6Address(rng.choice(V6_CORNERS)))
    if kind < 0.6:  # an IPv4 address at the end
        return ipaddress.IPv6Address(base & ~0xFFFFFFFF | int(random_v4(rng)))
    if kind < 0.7:  # one somewhere else
        inside = int(random_v4(rng)) << rng.choice([24, 40, 64, 80])
        return ipaddress.IPv6Address(base | inside)
    return ipaddress.IPv6Address(base ^ rng.getrandbits(128) >> rng.randint(16, 128))


def random_address(rng):
    return random_v4(rng) if rng.random() < 0.5 else random_v6(rng)


def spell(rng, address):
    """One of the spellings that must be understood as this address."""
    text = rng.choice([hexadecimal(address), exploded(address)])
    if address.version == 6:
        if rng.random() < 0.3:
            text = text.upper()
        if rng.random() < 0.3:
            text = f"[{text}]"
    return text


def random_network(rng, near):
    """A prefix, often one that the address `near` (or one it carries) is in or just misses."""
    choice = [near] + (carried(near) if near.version == 6 else [])
    address = rng.choice(choice) if rng.random() < 0.8 else random_address(rng)
    network = ipaddress.ip_network((address, rng.randint(0, address.max_prefixlen)), strict=False)
    if network.prefixlen > 0 and rng.random() < 0.3:  # the neighbour
        flipped = int(network.network_address) ^ 1 << (network.max_prefixlen - network.prefixlen)
        network = ipaddress.ip_network((type(address)(flipped), network.prefixlen))
    return network


def refused_network(network):
    """IPv4 in IPv6 clothing, which no rule may name."""
    if network.version == 4 or network.prefixlen < 96:
        return False
    first = network.network_address
    if first in COMPATIBLE and not (network.prefixlen == 128 and int(first) <= 1):
        return True
    return first in MAPPED


# ---- Tests ----


def test_address_rules_match_as_ipaddress_says():
    rng = random.Random(SEED)
    cases = []
    for _ in range(24000):
        destination = random_address(rng)
        network = random_network(rng, destination)
        deny = rng.random() < 0.5
        low = rng.randint(1, 65535)
        high = rng.choice([low, rng.randint(low, 65535)])
        port = rng.choice([low, high, rng.randint(1, 65535)])
        prefix = "deny:" if deny else rng.choice(["", "allowlist:"])
        rule = f"{prefix}{rule_text(network)}:{low}-{high}"
        if refused_network(network):
            expected = "error"
        else:
            expected = reference_address_match(deny, network, destination)
            if expected == "match" and not low <= port <= high:
                expected = "nomatch"
        cases.append((f"{rule}\t{spell(rng, destination)}\t{port}", expected))
    answers = [expected for _, expected in cases]
    for word in ("match", "nomatch", "error"):
        assert answers.count(word) > 500, word
    compare(cases)


def test_name_rules_match_label_by_label():
    rng = random.Random(SEED + 1)
    labels = ["a", "b", "ab", "a-b", "_x", "com", "example", "xn--bcher-kva", "1", "com1"]

    def random_name():
        while True:
            name = [rng.choice(labels) for _ in range(rng.randint(1, 4))]
            if not name[-1].isdigit():
                return name

    def spelled(name):
        text = ".".join(name)
        text = "".join(c.upper() if rng.random() < 0.2 else c for c in text)
        return text + rng.choice(["", "", "."])

    cases = []
    for _ in range(8000):
        name = random_name()
        wildcard = rng.random() < 0.5
        if rng.random() < 0.5:  # related: below, above, or with letters in front
            wanted = [rng.choice(labels) for _ in range(rng.randint(0, 2))] + name
            if rng.random() < 0.2:
                wanted[0] = "z" + wanted[0]
        else:
            wanted = random_name()
        if wanted[-1].isdigit():
            continue
        if wildcard:
            match = len(wanted) > len(name) and wanted[-len(name) :] == name
        else:
            match = wanted == name
        rule = ("*." if wildcard else "") + spelled(name)
        cases.append((f"{rule}:443\t{spelled(wanted)}\t443", "match" if match else "nomatch"))
    answers = [expected for _, expected in cases]
    assert len(cases) > 7000 and answers.count("match") > 1000
    compare(cases)


def test_ipv6_text_is_what_ipaddress_writes():
    rng = random.Random(SEED + 2)
    cases = []
    for _ in range(8000):
        address = random_v6(rng)
        text = rng.choice([hexadecimal(address), exploded(address), exploded(address).upper()])
        cases.append((f"text\t{text}", hexadecimal(address)))
        network = ipaddress.ip_network((address, rng.randint(0, 128)), strict=False)
        if not refused_network(network):
            host = f"[{exploded(network.network_address)}]/{network.prefixlen}"
            cases.append((f"rule\t{host}:1-65535", f"{rule_text(network)}:*"))
    compare(cases)


def test_mangled_addresses_are_refused_when_ipaddress_refuses_them():
    """Strict reading: random edits of good texts. A dotted part, a zone, or a prefix is refused
    here although ipaddress knows them."""
    rng = random.Random(SEED + 3)
    edits = ["", "", ":", "::", ".", "0", "f", "1", "g", "-"]
    cases = []
    for _ in range(20000):
        text = list(spell(rng, random_address(rng)).strip("[]"))
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(text) + 1)
            text[at : at + rng.randint(0, 2)] = rng.choice(edits)
        mangled = "".join(text)
        try:
            address = ipaddress.ip_address(mangled)
        except ValueError:
            expected = "error"
        else:
            mixed = address.version == 6 and "." in mangled
            expected = "error" if mixed else hexadecimal(address)
        cases.append((f"text\t{mangled}", expected))
    answers = [expected for _, expected in cases]
    assert 2000 < answers.count("error") < 18000
    compare(cases)


# Where toolcage says "not public" and ipaddress.is_global says True, and why. Nothing may be the
# other way round: what Python calls non-global must never be public here.
STRICTER = {
    "168.63.129.16/32": "Azure's wire server: a public address that answers with credentials",
    "192.0.0.0/24": "IANA protocol assignments: older Pythons know only parts of it, newer ones "
    "except the anycast addresses 192.0.0.9 and 192.0.0.10",
    "192.88.99.0/24": "6to4 relay anycast, deprecated (RFC 7526), gone from the registry",
    "224.0.0.0/4": "multicast is in another registry, so ipaddress calls most of it global",
    "2001::/23": "IANA protocol assignments; newer Pythons except the globally reachable blocks",
    "2002::/16": "6to4 carries IPv4 addresses; only newer Pythons call it private",
    "3fff::/20": "documentation (RFC 9637), which older Pythons do not know",
    # Outside 2000::/3 nothing was ever given out as global unicast.
    "::/3": "reserved by the IETF, NAT64, IPv4-mapped and IPv4-compatible",
    "4000::/2": "reserved by the IETF, segment routing 5f00::/16",
    "8000::/1": "reserved by the IETF, site-local fec0::/10, multicast ff00::/8",
}
STRICTER_NETWORKS = [ipaddress.ip_network(text) for text in STRICTER]


def test_public_is_what_ipaddress_calls_global_but_for_known_differences():
    rng = random.Random(SEED + 4)
    addresses = [random_address(rng) for _ in range(20000)]
    for network in STRICTER_NETWORKS:
        addresses += [network[0], network[-1]]
    addresses += [ipaddress.ip_address(text) for text in V4_CORNERS + V6_CORNERS]
    answers = ask([f"class\t{hexadecimal(address)}" for address in addresses])
    wrong = []
    for address, answer in zip(addresses, answers):
        assert answer != "error"
        known = any(address in network for network in STRICTER_NETWORKS)
        expected = address.is_global and not known
        if (answer == "public") != expected:
            wrong.append(f"{address}: {answer}, is_global {address.is_global}")
    assert not wrong, f"{len(wrong)}:\n" + "\n".join(wrong[:20])
    assert answers.count("public") > 2000


def test_carried_addresses_are_as_alarming_as_plain_ones():
    rng = random.Random(SEED + 5)
    order = [
        "public", "reserved", "multicast", "carrier-nat", "private", "link-local", "unspecified",
        "loopback", "metadata",
    ]  # fmt: skip
    pairs = []
    for _ in range(8000):
        address = random_v6(rng)
        pairs += [(address, inner) for inner in carried(address)]
    outer = ask([f"class\t{hexadecimal(address)}" for address, _ in pairs])
    inner = ask([f"class\t{inner}" for _, inner in pairs])
    assert len(pairs) > 1500
    for (address, carried_address), a, b in zip(pairs, outer, inner):
        assert a != "public", address
        assert order.index(a) >= order.index(b), (address, carried_address)


def test_punycode_labels_are_accepted_when_python_decodes_them():
    rng = random.Random(SEED + 6)
    cases = []
    for _ in range(8000):
        if rng.random() < 0.5:
            starts = rng.choices([0x61, 0xE9, 0x3B1, 0x4E2D, 0x1F600], k=rng.randint(1, 8))
            text = "".join(chr(start + rng.randint(0, 9)) for start in starts)
            encoded = text.encode("punycode").decode("ascii").lower()
        else:
            alphabet = string.ascii_lowercase + string.digits + "-"
            encoded = "".join(rng.choices(alphabet, k=rng.randint(1, 9)))
        # toolcage is stricter: no "-" at the end (no label has one, and ASCII alone needs no
        # punycode), and not its only one at the start (RFC 3492: no delimiter without characters
        # before it).
        good = not encoded.endswith("-") and encoded.rfind("-") != 0
        try:
            decoded = encoded.encode("ascii").decode("punycode")
            decoded.encode("utf-8")  # no surrogates
        except UnicodeError:
            good = False
        label = f"xn--{encoded}"
        cases.append((f"rule\t{label}.example:443", f"{label}.example:443" if good else "error"))
    answers = [expected for _, expected in cases]
    assert answers.count("error") > 1000
    compare(cases)
