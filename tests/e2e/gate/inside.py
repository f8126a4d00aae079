# SPDX-License-Identifier: Apache-2.0
"""What the snippets of the gate's tests use inside a cage, and without one. Standard library only."""

import contextlib
import errno
import json
import os
import select
import socket
import struct
import sys
import threading
import time

TYPES = {"A": 1, "MX": 15, "TXT": 16, "AAAA": 28, "SVCB": 64, "HTTPS": 65, "ANY": 255}


def say(**what):
    """The snippet's answer to the test."""
    print(json.dumps(what), flush=True)


def problem_of(error):
    if isinstance(error, socket.gaierror):
        return {getattr(socket, name): name for name in dir(socket) if name.startswith("EAI_")}.get(error.errno)
    if isinstance(error, TimeoutError) and error.errno is None:
        return "timeout"
    return errno.errorcode.get(error.errno, str(error))


def attempt(action, *args, **options):
    """What came out, and the problem's name, and how long it took."""
    begin, value, problem = time.monotonic(), None, None
    try:
        value = action(*args, **options)
    except OSError as error:
        problem = problem_of(error)
    return value, problem, time.monotonic() - begin


def connect(host, port, timeout=10, family=0):
    """A connected socket; the first address only, so that errors are that address's own."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)[0]
    sock = socket.socket(family, kind, protocol)
    sock.settimeout(timeout)
    try:
        sock.connect(address)
    except OSError:
        sock.close()
        raise
    return sock


def try_connect(host, port, timeout=10, family=0):
    """(problem or None, seconds)."""
    sock, problem, seconds = attempt(connect, host, port, timeout, family)
    if sock:
        sock.close()
    return problem, seconds


def talk(host, port, data=b"ping", family=0):
    """Says something to an echo server: what came back, or the problem."""
    def action():
        with connect(host, port, 10, family) as sock:
            sock.sendall(data)
            return read_exactly(sock, len(data)).decode("latin-1")
    value, problem, _ = attempt(action)
    return problem or value


def read_exactly(sock, count):
    parts = []
    while count > 0 and (data := sock.recv(min(count, 65536))):
        parts.append(data)
        count -= len(data)
    return b"".join(parts)


def read_all(sock):
    """Everything up to the end, and how it ended."""
    parts = []
    try:
        while data := sock.recv(65536):
            parts.append(data)
    except OSError as error:
        return b"".join(parts), problem_of(error)
    return b"".join(parts), "end"


def exchange(host, port, data, end=False, timeout=5):
    """Sends bytes, reads what comes until the other side ends it: text and problem ("end": none)."""
    with connect(host, port, timeout) as sock:
        try:
            sock.sendall(data)
            if end:
                sock.shutdown(socket.SHUT_WR)
        except OSError as error:
            return "", problem_of(error)
        got, how = read_all(sock)
        return got.decode("latin-1"), how


def nameserver():
    with open("/etc/resolv.conf", encoding="ascii") as file:
        return [line.split()[1] for line in file if line.startswith("nameserver")][0]


def question(name, kind, identity=0x1234):
    labels = b"".join(bytes([len(label)]) + label for label in name.encode().split(b".") if label)
    head, tail = struct.pack("!HHHHHH", identity, 0x100, 1, 0, 0, 0), struct.pack("!HH", TYPES.get(kind, kind), 1)
    return head + labels + b"\0" + tail


def ask(name, kind="A", over="udp", server=None, timeout=5):
    """A question of our own making: {code, answers, seconds} or {problem}."""
    server, asked = server or nameserver(), question(name, kind)
    family = socket.AF_INET6 if ":" in server else socket.AF_INET

    def action():
        with socket.socket(family, socket.SOCK_DGRAM if over == "udp" else socket.SOCK_STREAM) as sock:
            sock.settimeout(timeout)
            sock.connect((server, 53))
            if over == "udp":
                sock.send(asked)
                return sock.recv(4096)
            sock.sendall(struct.pack("!H", len(asked)) + asked)
            return read_exactly(sock, struct.unpack("!H", read_exactly(sock, 2))[0])

    said, problem, seconds = attempt(action)
    if problem:
        return {"problem": problem, "seconds": seconds}
    identity, flags, _, answers, _, _ = struct.unpack_from("!HHHHHH", said)
    return {"code": flags & 15, "answers": answers, "id": identity, "response": flags >> 15, "seconds": seconds,
            "truncated": bool(flags & 0x200), "data": said.hex()}


def resolve(name, family=0):
    """Addresses as getaddrinfo has them, or the problem."""
    value, problem, _ = attempt(socket.getaddrinfo, name, 80, family, socket.SOCK_STREAM)
    return problem or [entry[4][0] for entry in value]


def http(host, path="/hello", method="GET", name=None, more="", body=""):
    head = f"{method} {path} HTTP/1.1\r\nHost: {name or host}\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    return (head + body).encode()


def get(host, path="/hello", port=80, name=None, connection="close"):
    """One HTTP request: what came, and how it ended."""
    return exchange(host, port, http(host, path, name=name, more=f"Connection: {connection}\r\n"))
