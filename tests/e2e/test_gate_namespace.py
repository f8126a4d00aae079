# SPDX-License-Identifier: Apache-2.0
"""The gate's network namespace is an object of its own: whoever joins it by its path has that gate, and nothing else."""

import json
import os
import pathlib
import socket
import subprocess
import threading
import time

import pytest

CONNECT = """
import socket, sys
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), 5) as connection:
        print(connection.recv(16).decode())
except OSError as error:
    print(type(error).__name__)
"""


@pytest.fixture
def service():
    """A port of the host that says hello."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.sendall(b"hello")

    thread = threading.Thread(target=serve)
    thread.start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


def child_of(pid):
    for _ in range(500):
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        if children and os.readlink(f"/proc/{children[0]}/ns/net") != os.readlink("/proc/self/ns/net"):
            return children[0]
        time.sleep(0.01)
    raise AssertionError("the cage has no init")


@pytest.mark.skipif(os.geteuid() != 0, reason="joining a namespace from outside takes root")
def test_who_joins_the_namespace_has_the_gate_and_nothing_else(build_dir, clean_env, tmp_path, service):
    policy = tmp_path / "policy.toml"
    policy.write_text(f'version = 1\n[tool.t]\nnetwork = ["127.0.0.1:{service}"]\n')
    cage = subprocess.Popen([build_dir / "src" / "toolcage", "exec", "--policy", policy, "--tool", "t", "--json", "--", "cat"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=clean_env)

    def join(host, port):
        return subprocess.run(["nsenter", f"--net=/proc/{init}/ns/net", "python3", "-c", CONNECT, host, str(port)],
                              capture_output=True, text=True, check=True, timeout=20).stdout.strip()

    try:
        init = child_of(cage.pid)
        assert join("127.0.0.1", service) == "hello"
        assert join("127.0.0.1", 1) == "ConnectionRefusedError"
        assert join("192.0.2.1", service) == "ConnectionRefusedError"
    finally:
        output, _ = cage.communicate(timeout=20)
    result = json.loads(output)
    assert [(made["address"], made["port"], made["bytes_in"]) for made in result["connections"]] == [("127.0.0.1", service, 5)]
    assert [denial["target"] for denial in result["denials"]] == [f"192.0.2.1:{service}"]
