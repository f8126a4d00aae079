# SPDX-License-Identifier: Apache-2.0
"""Owns: the name server of the tests' own internet: its zone, with every bad manner that DNS knows, and a log of
each question that reaches it. What is not in the log has never left the host."""

import asyncio
import ipaddress
import struct
from collections import Counter

A, CNAME, MX, TXT, AAAA, SVCB, HTTPS, ANY = 1, 5, 15, 16, 28, 64, 65, 255
OK, FAILED, NO_NAME = 0, 2, 3
SLOW_SECONDS = 1.2
PLAIN_SIZE = 512  # of an answer over UDP to whoever asks without options

# The addresses of gate_lab.py, by what is there.
SERVER, OTHER, SERVER6, OTHER6 = "93.184.216.34", "93.184.216.35", "2606:2800:220:1::34", "2606:2800:220:1::35"
SILENT, SILENT6, UNREACHABLE, NO_NETWORK = "93.184.218.1", "2606:2800:220:2::1", "93.184.217.1", "93.184.219.1"
NAME_SERVER = "93.184.216.53"
OWN, PRIVATE, METADATA = "93.184.216.99", "10.77.0.1", "169.254.169.254"
MANY = [f"93.184.220.{number}" for number in range(1, 61)]

ZONE = {
    "allowed.test": [SERVER, SERVER6],
    "www.allowed.test": [SERVER, SERVER6],
    "deep.www.allowed.test": [SERVER, SERVER6],
    "notallowed.test": [OTHER, OTHER6],
    "refused.test": [OTHER, OTHER6],
    "other.test": [SERVER, SERVER6],  # another name on the same address
    "v4.test": [SERVER],
    "v6.test": [SERVER6],
    "many.test": MANY,
    "unreachable.test": [UNREACHABLE],
    "nonetwork.test": [NO_NETWORK],
    "blackhole.test": [SILENT],
    "eyeballs.test": [SILENT6, SERVER],  # IPv6 is there, and leads nowhere
    "secondaddress.test": [UNREACHABLE, SERVER],
    "loopback.test": ["127.0.0.1"],
    "loopback6.test": ["::1"],
    "zero.test": ["0.0.0.0"],
    "private.test": [PRIVATE],
    "metadata.test": [METADATA],
    "linklocal.test": ["169.254.1.1"],
    "cgnat.test": ["100.64.0.1"],
    "multicast.test": ["224.0.0.1"],
    "broadcast.test": ["255.255.255.255"],
    "own.test": [OWN],  # public by its number, and the host's own
    "mapped.test": ["::ffff:127.0.0.1"],
    "nat64.test": ["64:ff9b::7f00:1"],
    "sixtofour.test": ["2002:7f00:1::1"],
    "mixed.test": ["127.0.0.1", SERVER],
    "slow.test": [SERVER],
    "cname8.test": [SERVER],
    "truncated.test": [SERVER],
    "brokentruncation.test": [SERVER],
    "empty.test": [],
}
REFUSED_RANGES = ("loopback", "loopback6", "zero", "private", "metadata", "linklocal", "cgnat", "multicast",
                  "broadcast", "own", "mapped", "nat64", "sixtofour")


def wire_name(name):
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".") if label) + b"\0"


def record(name, kind, data):
    return wire_name(name) + struct.pack("!HHIH", kind, 1, 0, len(data)) + data


def addresses(name, kind, values):
    packed = [ipaddress.ip_address(value).packed for value in values]
    return [record(name, kind, one) for one in packed if len(one) == (4 if kind == A else 16)]


def read_question(message):
    """Id, name, type; a question of the host's resolver is well-formed."""
    at, labels = 12, []
    while message[at]:
        labels.append(message[at + 1:at + 1 + message[at]].decode("latin-1"))
        at += 1 + message[at]
    kind, = struct.unpack_from("!H", message, at + 1)
    return message[:2], ".".join(labels).lower(), kind, message[12:at + 5]


class Names:
    """Answers questions; `log` takes a dictionary for each."""

    def __init__(self, log):
        self.log, self.asked = log, Counter()

    def records(self, name, kind):
        """A response code and records."""
        self.asked[name, kind] += 1
        if name.startswith("rebind."):  # turn by turn
            value = SERVER if self.asked[name, kind] % 2 else "127.0.0.1"
            return OK, addresses(name, kind, [value])
        if name.startswith("rebindlate."):  # harmless for whoever only checks
            value = SERVER if self.asked[name, kind] == 1 else "127.0.0.1"
            return OK, addresses(name, kind, [value])
        if name == "loop.test":
            return OK, [record(name, CNAME, wire_name("loop2.test")), record("loop2.test", CNAME, wire_name(name))]
        if name == "broken.test":
            return FAILED, []
        if name == "cname.test":
            chain = [name, *(f"cname{number}.test" for number in range(1, 9))]
            links = [record(a, CNAME, wire_name(b)) for a, b in zip(chain, chain[1:])]
            return OK, links + addresses(chain[-1], kind, [SERVER])
        if name == "cnameinside.test":
            link = record(name, CNAME, wire_name("loopback.test"))
            return OK, [link, *addresses("loopback.test", kind, ["127.0.0.1"])]
        if name not in ZONE:
            return NO_NAME, []
        if kind in (A, AAAA):
            return OK, addresses(name, kind, ZONE[name])
        other = {TXT: b"\x06secret", MX: b"\0\x0a" + wire_name("mail." + name), HTTPS: b"\0\x01\0",
                 SVCB: b"\0\x01\0"}
        return OK, [record(name, kind, other[kind])] if kind in other else []

    async def answer(self, message, over):
        """The bytes to send, or none."""
        identity, name, kind, question = read_question(message)
        self.log({"event": "question", "name": name, "type": kind, "over": over})
        if name.endswith("mute.test"):
            return None
        if name == "slow.test":
            await asyncio.sleep(SLOW_SECONDS)
        code, found = self.records(name, kind)
        is_long = sum(map(len, found)) > PLAIN_SIZE - len(question) - 12
        truncated = over == "udp" and (is_long or name in ("truncated.test", "brokentruncation.test"))
        if over == "tcp" and name == "brokentruncation.test":
            return None
        if truncated:
            found = []
        head = struct.pack("!HHHHH", 0x8180 | code | (0x200 if truncated else 0), 1, len(found), 0, 0)
        return identity + head + question + b"".join(found)

    async def serve(self):
        loop = asyncio.get_running_loop()
        names = self

        class Datagrams(asyncio.DatagramProtocol):
            def connection_made(self, transport):
                self.transport = transport

            def datagram_received(self, data, address):
                loop.create_task(self.reply(data, address))

            async def reply(self, data, address):
                if (said := await names.answer(data, "udp")) is not None:
                    self.transport.sendto(said, address)

        # An answer must come from the address that was asked.
        await loop.create_datagram_endpoint(Datagrams, local_addr=(NAME_SERVER, 53))
        await asyncio.start_server(self.stream, "0.0.0.0", 53)

    async def stream(self, reader, writer):
        try:
            while True:
                length, = struct.unpack("!H", await reader.readexactly(2))
                if (said := await self.answer(await reader.readexactly(length), "tcp")) is None:
                    break
                writer.write(struct.pack("!H", len(said)) + said)
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()
