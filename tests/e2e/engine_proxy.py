# SPDX-License-Identifier: Apache-2.0
"""Owns: a proxy in front of a container engine's socket that spoils answers on purpose. Requests reach the engine, so
that what it did is real; what comes back is what a broken, overloaded or lying engine would send."""

import contextlib
import os
import re
import socket
import threading

LARGE = 64 << 20


class Proxy:
    """Listens at `path` and passes requests on to `upstream`. `fault(pattern, kind)` spoils the answers to requests
    whose first line matches, until `heal()`. Kinds:

      slow     the answer comes after `seconds`
      cut      half of the answer comes, and the connection ends
      silent   the connection ends without an answer
      rubbish  bytes that are no HTTP
      html     a page with status 200, as a web server would send
      huge     a good status, and more bytes than anybody should read
      status   `status` and an error in the engine's form; the request does not reach the engine
      empty    the right status and no body
    """

    def __init__(self, path, upstream):
        self.path, self.upstream, self.spoiled = str(path), str(upstream), 0
        self.pattern, self.kind, self.options = None, None, {}
        self.threads, self.over = [], threading.Event()
        self.listening = None
        self.open()

    def open(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(self.path)
        self.listening.listen(64)
        thread = threading.Thread(target=self.serve, args=(self.listening,), daemon=True)
        thread.start()

    def close(self):
        """The socket is gone, as when the engine is not there."""
        self.over.set()
        with contextlib.suppress(OSError):
            self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)

    def fault(self, pattern, kind, **options):
        self.pattern, self.kind, self.options, self.spoiled = re.compile(pattern), kind, options, 0

    def heal(self):
        self.pattern = None

    def serve(self, listening):
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=self.handle, args=(client,), daemon=True).start()

    def handle(self, client):
        with client, contextlib.suppress(OSError):
            request = read_request(client)
            if not request:  # somebody only looked who listens
                return
            line = request.split(b"\r\n", 1)[0].decode(errors="replace")
            if self.pattern is None or not self.pattern.search(line):
                client.sendall(self.ask(request))
                return
            self.spoiled += 1
            self.spoil(client, request, self.kind, dict(self.options))

    def spoil(self, client, request, kind, options):
        if kind == "status":
            body = b'{"message":"%s"}' % options.get("message", "spoiled on purpose").encode()
            client.sendall(b"HTTP/1.1 %d No\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
                           b"Connection: close\r\n\r\n%s" % (options["status"], len(body), body))
            return
        answer = self.ask(request)
        head = answer.split(b"\r\n", 1)[0]
        if kind == "slow":
            self.over.wait(options["seconds"])
            client.sendall(answer)
        elif kind == "cut":
            client.sendall(answer[:-12])
        elif kind == "rubbish":
            client.sendall(b"\x00\xff\x1b[2J" * 200)
        elif kind == "html":
            page = b"<html>\x1b[2Jhello</html>"
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(page), page))
        elif kind == "empty":
            client.sendall(head + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        elif kind == "huge":
            client.sendall(head + b"\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % LARGE)
            for _ in range(LARGE >> 16):
                client.sendall(b"x" * 65536)

    def ask(self, request):
        """The engine's own answer, whole; HTTP/1.0 style, so that its end is the connection's."""
        head, _, body = request.partition(b"\r\n\r\n")
        with socket.socket(socket.AF_UNIX) as engine:
            engine.connect(self.upstream)
            engine.sendall(head.replace(b" HTTP/1.1\r\n", b" HTTP/1.0\r\n", 1) + b"\r\n\r\n" + body)
            parts = []
            while part := engine.recv(65536):
                parts.append(part)
        return b"".join(parts)


def read_request(client):
    data = b""
    while b"\r\n\r\n" not in data:
        part = client.recv(65536)
        if not part:
            return data
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length: *([0-9]+)", head)
    while length and len(body) < int(length[1]):
        part = client.recv(65536)
        if not part:
            break
        body += part
    return head + b"\r\n\r\n" + body
