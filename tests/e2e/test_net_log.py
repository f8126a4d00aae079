# SPDX-License-Identifier: Apache-2.0
"""What the gate tells: `exec --net-log`, connections and denials of a result, the reason of a failure."""

import json
import os
import pty
import re
import socket
import subprocess
import threading

import pytest

pytestmark = pytest.mark.native

FETCH = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as s:
    s.sendall(b"x" * 300)
    s.shutdown(socket.SHUT_WR)
    got = 0
    while data := s.recv(65536):
        got += len(data)
print(got)
"""
ASK = "import socket, sys; socket.getaddrinfo(sys.argv[1], 443)"


@pytest.fixture(scope="module")
def port():
    """Of a server that reads to the end and answers with 1234 bytes."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                peer, _ = server.accept()
            except OSError:
                return
            with peer:
                while peer.recv(65536):
                    pass
                peer.sendall(b"y" * 1234)

    threading.Thread(target=serve, daemon=True).start()
    yield server.getsockname()[1]
    server.close()


@pytest.fixture(scope="module")
def policy(tmp_path_factory, port):
    path = tmp_path_factory.mktemp("net-log") / "policy.toml"
    path.write_text(f'version = 1\n[tool.t]\nnetwork = ["127.0.0.1:{port}", "127.0.0.1:9", "*.invalid:443"]\n')
    return path


@pytest.fixture(scope="module")
def run(toolcage, must_work, policy):
    first = toolcage("exec", "--policy", policy, "--tool", "t", "--", "true")
    if first.returncode != 0:
        must_work("jail", f"a jail with a gate cannot be built here: {first.stderr}")

    def call(*args, **options):
        return toolcage("exec", "--policy", policy, "--tool", "t", *args, **options)

    return call


def python(code, *args):
    return ("--", "/usr/bin/python3", "-c", code, *map(str, args))


def test_connection_is_logged_when_it_opens_and_when_it_ends(run, port):
    done = run("--net-log", *python(FETCH, port))
    assert (done.returncode, done.stdout) == (0, "1234\n")
    opened, closed = done.stderr.splitlines()
    assert opened == f'net: opened 127.0.0.1:{port} by "127.0.0.1:{port}"'
    assert re.fullmatch(rf"net: closed 127\.0\.0\.1:{port} 1\.2 kB in, 300 B out, [\d.]+ m?s", closed)


def test_without_the_option_nothing_is_printed(run, port):
    done = run(*python(FETCH, port))
    assert (done.returncode, done.stdout, done.stderr) == (0, "1234\n", "")


def test_option_without_a_gate_changes_nothing(toolcage, run):
    done = toolcage("exec", "--net-log", "--", "echo", "x")
    assert (done.returncode, done.stdout, done.stderr) == (0, "x\n", "")


def test_refused_name_is_logged_and_named_in_the_reason(run):
    done = run("--net-log", *python(ASK, "evil.example"))
    assert done.returncode == 1
    assert 'net: refused evil.example: no rule allows evil.example; add "evil.example:443" to "network"' in done.stderr
    assert "toolcage: failed: the command ended with exit status 1; it was refused: network evil.example\n" in done.stderr
    assert '    fix: network: no rule allows evil.example; add "evil.example:443" to "network"' in done.stderr


def test_command_that_did_without_the_host_is_not_blamed(run):
    done = run("--json", *python("import socket\ntry:\n    socket.getaddrinfo('evil.example', 443)\n"
                                 "except OSError:\n    pass"))
    result = json.loads(done.stdout)
    assert (result["verdict"], result["reason"], result["fix"]) == ("ok", "", "")
    assert [(d["kind"], d["target"]) for d in result["denials"]] == [("network", "evil.example")]
    assert result["denials"][0]["count"] >= 1


def test_result_has_connections_with_their_bytes_and_rule(run, port):
    result = json.loads(run("--json", *python(FETCH, port)).stdout)
    assert len(result["connections"]) == 1
    connection = result["connections"][0]
    assert connection.pop("duration_ms") > 0 and connection.pop("started_ms") > 0
    assert connection == {"name": None, "address": "127.0.0.1", "port": port, "protocol": "tcp", "bytes_in": 1234,
                          "bytes_out": 300, "rule": f"127.0.0.1:{port}", "note": None, "error": None}
    assert (result["denials"], result["network_unlisted"]) == ([], 0)


def test_connection_that_cannot_be_made_is_an_error_and_no_denial(run):
    done = run("--json", "--net-log", *python(FETCH, 9))
    assert done.stderr == "net: failed 127.0.0.1:9: Connection refused\n"
    result = json.loads(done.stdout)
    assert "ConnectionRefusedError" in result["stderr"]
    assert (result["reason"], result["fix"], result["denials"]) == ("the command ended with exit status 1", "", [])
    assert [(c["address"], c["port"], c["error"]) for c in result["connections"]] == [("127.0.0.1", 9, "Connection refused")]


def test_name_that_the_host_does_not_know_is_an_error_and_no_denial(run):
    result = json.loads(run("--json", *python(ASK, "a.invalid")).stdout)
    assert result["denials"] == []
    # One entry, or one for each question: where nobody answers, it is asked again.
    assert {(c["name"], c["port"], c["protocol"]) for c in result["connections"]} == {("a.invalid", None, "dns")}
    assert result["connections"][0]["error"]


@pytest.mark.parametrize("env, coloured", [({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False),
                                           ({"TERM": "dumb"}, False)])
def test_colours_are_for_terminals(run, build_dir, clean_env, policy, env, coloured):
    master, slave = pty.openpty()
    done = subprocess.run([build_dir / "src" / "toolcage", "exec", "-p", policy, "-t", "t", "--net-log",
                           *map(str, python(ASK, "evil.example"))], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=slave, env=clean_env | env, timeout=60, check=False)
    os.close(slave)
    text = b""
    try:
        while data := os.read(master, 65536):
            text += data
    except OSError:
        pass
    os.close(master)
    assert done.returncode == 1
    assert (b"net: \033[31mrefused\033[0m evil.example" in text) == coloured
    assert (b"net: refused evil.example" in text) != coloured


def test_log_that_nobody_reads_any_more_ends_the_command(run, build_dir, clean_env, policy):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([build_dir / "src" / "toolcage", "exec", "-p", policy, "-t", "t", "--net-log", "--",
                           "/usr/bin/python3", "-c", "import socket, time\ntry:\n    socket.getaddrinfo('evil.example', 443)\n"
                           "except OSError:\n    time.sleep(60)"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=write, env=clean_env, timeout=40, check=False)
    os.close(write)
    assert done.returncode == 141
