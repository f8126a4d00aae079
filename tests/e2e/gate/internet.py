# SPDX-License-Identifier: Apache-2.0
"""Owns: every server that the gate's tests talk to, and a log of whoever came. One process for each network namespace:

  internet.py DIRECTORY internet    name server, HTTP, TLS with several names, TCP in all moods; and what was sent
  internet.py DIRECTORY world       the host's own services: one that may be reached, and canaries

The log is DIRECTORY/log/WHERE: a JSON object a line. "made" on standard output: the namespace is there; a line on
standard input: its addresses are; "ready" on standard output: everything listens.
"""

import asyncio
import contextlib
import ctypes
import itertools
import json
import os
import socket
import ssl
import struct
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import names

CHUNK = b"0123456789abcdef" * 4096
WORLD_PORTS = (22, 80, 443, 5432, 7000)


class Servers:
    def __init__(self, directory, where):
        self.directory, self.where = Path(directory), where
        self.file = open(self.directory / "log" / where, "a", buffering=1, encoding="utf-8")
        self.count = itertools.count(1)

    def log(self, entry):
        self.file.write(json.dumps(entry) + "\n")

    def handler(self, serve):
        """Logs that somebody came and went."""

        async def handle(reader, writer):
            identity = next(self.count)
            address, port = writer.get_extra_info("sockname")[:2]
            self.log({"event": "open", "id": identity, "to": address.removeprefix("::ffff:"), "port": port})
            end = "closed"
            try:
                await serve(reader, writer)
            except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError, TimeoutError) as error:
                end = type(error).__name__
            finally:
                writer.close()
                self.log({"event": "close", "id": identity, "port": port, "end": end})

        return handle

    # -- HTTP

    async def http(self, reader, writer):
        while head := await self.head(reader):
            lines = head.decode("latin-1").split("\r\n")
            method, target, _ = (lines[0] + "  ").split(" ", 2)
            fields = {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in lines[1:])}
            host, length = fields.get("host", ""), int(fields.get("content-length", 0))
            self.log({"event": "request", "method": method, "target": target, "host": host})
            body = await reader.readexactly(length)
            await self.respond(writer, method, target, host, body)
            if fields.get("connection", "").lower() == "close":
                return

    @staticmethod
    async def head(reader):
        try:
            return await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as error:
            if error.partial:
                raise
            return b""

    async def respond(self, writer, method, target, host, body):
        url = urlsplit(target)
        status, more, content = "200 OK", "", f"hello from {host}\n".encode()
        if url.path == "/to":
            status, more = "302 Found", f"Location: {unquote(url.query)}\r\n"
        elif url.path == "/big":
            return await self.big(writer, int(url.query))
        elif method == "POST":
            content = f"{len(body)} bytes\n".encode()
        elif url.path.startswith("/repository.git/"):
            path = self.directory / "served" / url.path.lstrip("/")
            status, content = ("200 OK", path.read_bytes()) if path.is_file() else ("404 Not Found", b"")
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(content)}\r\n{more}\r\n".encode() + content)
        await writer.drain()

    async def big(self, writer, count):
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {count}\r\n\r\n".encode())
        await self.pour(writer, count)

    @staticmethod
    async def pour(writer, count):
        while count > 0:
            writer.write(CHUNK[:count])
            count -= len(CHUNK)
            await writer.drain()

    # -- TCP

    async def echo(self, reader, writer):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()

    async def mute(self, reader, writer):
        while await reader.read(65536):
            pass

    async def count_bytes(self, reader, writer):
        """Answers only when the other side has said that it is done."""
        total = 0
        while data := await reader.read(65536):
            total += len(data)
        writer.write(f"{total}\n".encode())
        await writer.drain()

    async def reset(self, reader, writer):
        await reader.read(1)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    async def source(self, reader, writer):
        await self.pour(writer, int(await reader.readline()))

    async def deaf(self, reader, writer):
        """Never reads; says so first."""
        writer.transport.pause_reading()
        writer.write(b"deaf\n")
        await asyncio.sleep(60)

    async def last_words(self, reader, writer):
        """Ends its own direction first, then listens to the end."""
        writer.write(b"bye\n")
        writer.write_eof()
        self.log({"event": "heard", "bytes": len(await reader.read())})

    async def banner(self, reader, writer):
        """As much of ssh as is said before keys."""
        writer.write(b"SSH-2.0-OpenSSH_of_the_lab\r\n")
        self.log({"event": "banner", "text": (await reader.readline()).decode("latin-1").strip()})
        await reader.read(65536)

    # -- TLS

    def tls(self):
        folder = self.directory / "certificates"
        contexts = {}
        for path in folder.glob("*.test.pem"):
            contexts[path.name[:-4]] = context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(path, path.with_suffix(".key"))
        first = contexts["allowed.test"]

        def choose(connection, name, _):
            self.log({"event": "hello", "server_name": name})
            connection.context = contexts.get(name, first)

        first.sni_callback = choose
        return first

    # -- everything

    async def listen(self, serve, port, host="::", **options):
        """Room for everybody: the kernel's backlog must not be what a test finds."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind((host, port))
        await asyncio.start_server(self.handler(serve), sock=sock, backlog=512, **options)

    async def internet(self):
        await names.Names(self.log).serve()
        for port, serve in ((22, self.banner), (80, self.http), (8080, self.http), (7000, self.echo), (7001, self.mute),
                            (7003, self.count_bytes), (7004, self.reset), (7005, self.source), (7006, self.deaf),
                            (7007, self.last_words), *((port, self.echo) for port in range(9000, 9040))):
            await self.listen(serve, port)
        if any((self.directory / "certificates").iterdir()):
            await self.listen(self.http, 443, ssl=self.tls())
        await self.listen(self.echo, 7010, "0.0.0.0")  # nobody answers over IPv6
        self.watch_packets()

    async def world(self):
        for port in WORLD_PORTS:
            await self.listen(self.http if port in (80, 443) else self.echo, port)

    async def datagrams(self):
        log = self.log

        class Datagrams(asyncio.DatagramProtocol):
            def datagram_received(self, data, address):
                log({"event": "datagram", "bytes": len(data)})

        for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
            sock = socket.socket(family, socket.SOCK_DGRAM)
            if family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            sock.bind((address, 7000))
            await asyncio.get_running_loop().create_datagram_endpoint(Datagrams, sock=sock)

    def watch_packets(self):
        """Each packet that begins something and comes over the only wire: what leaves a cage is seen here."""
        watcher = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK, socket.htons(3))
        code = (ctypes.c_uint64 * len(BEGINNINGS))(*(struct.unpack("=Q", struct.pack("=HBBI", *step))[0]
                                                     for step in BEGINNINGS))
        watcher.setsockopt(socket.SOL_SOCKET, 26, struct.pack("HP", len(BEGINNINGS), ctypes.addressof(code)))
        asyncio.get_running_loop().add_reader(watcher, self.packet, watcher)

    def packet(self, watcher):
        with contextlib.suppress(BlockingIOError):
            while True:
                data, (_, _, kind, *_) = watcher.recvfrom(256)
                if kind == 4:  # our own
                    continue
                if data[0] >> 4 == 4:
                    protocol, to = data[9], socket.inet_ntop(socket.AF_INET, data[16:20])
                    rest = data[(data[0] & 15) * 4:]
                else:
                    protocol, to, rest = data[6], socket.inet_ntop(socket.AF_INET6, data[24:40]), data[40:]
                if protocol == 58 and rest[:1] in b"\x82\x83\x84\x85\x86\x87\x88\x8f":
                    continue  # neighbours, groups and routers: the kernel's own talk
                if protocol == 0 and data[0] >> 4 == 6 and rest[8:9] in b"\x82\x83\x84\x8f":
                    continue
                port = struct.unpack("!H", rest[2:4])[0] if protocol in (6, 17) and len(rest) >= 4 else 0
                self.log({"event": "packet", "protocol": protocol, "to": to, "port": port})

    async def settle(self, reader, writer):
        """Answers when everything that has come so far is in the log."""
        while await reader.readline():
            for _ in range(10):
                await asyncio.sleep(0)
            writer.write(b"settled\n")

    async def run(self):
        await asyncio.start_unix_server(self.settle, self.directory / "log" / f"{self.where}.socket")
        await (self.internet() if self.where == "internet" else self.world())
        await self.datagrams()
        print("ready", flush=True)
        await asyncio.Event().wait()


# Classic BPF over a packet without its link header: all that is not TCP, and of TCP what has SYN.
BEGINNINGS = [
    (0x30, 0, 0, 0),     # 0: the first byte
    (0x54, 0, 0, 0xF0),
    (0x15, 0, 5, 0x40),  # 2: IPv4?
    (0x30, 0, 0, 9),
    (0x15, 0, 7, 6),     # 4: TCP? else keep
    (0xB1, 0, 0, 0),     # the length of the header
    (0x50, 0, 0, 13),
    (0x45, 4, 5, 2),     # 7: SYN?
    (0x30, 0, 0, 6),     # 8: IPv6
    (0x15, 0, 2, 6),
    (0x30, 0, 0, 53),
    (0x45, 0, 1, 2),     # 11
    (0x06, 0, 0, 256),   # 12: keep
    (0x06, 0, 0, 0),
]

if __name__ == "__main__":
    os.umask(0o022)
    print("made", flush=True)
    sys.stdin.readline()
    asyncio.run(Servers(sys.argv[1], sys.argv[2]).run())
