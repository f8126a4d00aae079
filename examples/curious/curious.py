# SPDX-License-Identifier: Apache-2.0
"""What a script of a model might try. Run it bare, then with `toolcage exec -- python3 curious.py SECRET`."""

import os
import socket
import sys


def attempt(what, action):
    try:
        print(f"{what}: {action()}")
    except OSError as problem:
        print(f"{what}: refused ({problem.strerror})")


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return repr(file.readline().strip()[:40])


def write(path):
    with open(path, "w", encoding="utf-8") as file:
        file.write("I was here\n")
    return "done"


def call_home():
    with socket.create_connection(("192.0.2.1", 443), timeout=2):
        return "connected"


def count_processes():
    return f"{sum(name.isdigit() for name in os.listdir('/proc'))} to be seen"


secret = sys.argv[1] if len(sys.argv) > 1 else os.path.expanduser("~/.ssh/id_rsa")
attempt("read its own source", lambda: read(sys.argv[0]))
attempt("read a secret", lambda: read(secret))
attempt("change its own source", lambda: write(sys.argv[0]))
attempt("write a scratch file", lambda: write("/tmp/scratch"))
attempt("reach the network", call_home)
attempt("look at processes", count_processes)
attempt("become root", lambda: os.setuid(0) or "done")
