# SPDX-License-Identifier: Apache-2.0
"""Where a name allowed a connection, what is said on it must be meant for that name: one address serves many names,
and a cage that may reach one of them must not reach the others."""

import shlex

import pytest

from gate_lab import cage, mark, names, need, no_cage, one_cage, world  # noqa: F401

STRICT = 'inspect = "strict"'
WEB = ["allowed.test:80", "allowed.test:443"]
OTHER_REQUEST = "GET /secret HTTP/1.1\\r\\nHost: other.test\\r\\nConnection: close\\r\\n\\r\\n"


def handshake(world, host="allowed.test", *more):
    """A TLS handshake and a request; curl would choose the server name itself."""
    words = ["openssl", "s_client", "-brief", "-connect", f"{host}:443", "-CAfile", str(world.public / "ca.pem"), *more]
    request = r"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    return ("sh", "-c", f"printf '{request}' | timeout 15 {shlex.join(words)}")


def established(outcome):
    return "CONNECTION ESTABLISHED" in outcome.stderr


def hosts(world, mark):
    return [entry["host"] for entry in world.log(mark, "request")]


def greeted(world, mark):
    return [entry["server_name"] for entry in world.log(mark, "hello")]


def mentions(outcome, name):
    return any(name in f"{target} {rule}" for target, rule in outcome.denials().items())


# ---- TLS ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", ["", STRICT], ids=["names", "strict"])
def test_server_name_of_the_rule_is_let_through(cage, world, mark, more):
    need("openssl")
    outcome = cage.run(WEB, *handshake(world, "allowed.test", "-servername", "allowed.test"), more=more)
    assert established(outcome) and greeted(world, mark) == ["allowed.test"] and outcome.denials() == {}


@pytest.mark.parametrize("more", ["", STRICT], ids=["names", "strict"])
@pytest.mark.parametrize("rules", [WEB, [*WEB, "other.test:80"]], ids=["refused name", "name without this port"])
def test_another_server_name_is_refused(cage, world, mark, more, rules):
    need("openssl")
    outcome = cage.run(rules, *handshake(world, "allowed.test", "-servername", "other.test"), more=more)
    assert not established(outcome) and outcome.status != 124  # it was told so, and did not wait for ever
    assert greeted(world, mark) == [] and mentions(outcome, "other.test")


def test_control_one_address_serves_several_names(no_cage, world, mark):
    need("openssl")
    assert established(no_cage.bare(*handshake(world, "allowed.test", "-servername", "other.test")))
    assert greeted(world, mark) == ["other.test"]


def test_no_server_name_is_noted(cage, world, mark):
    need("openssl")
    outcome = cage.run(WEB, *handshake(world, "allowed.test", "-noservername"))
    assert established(outcome) and greeted(world, mark) == [None]
    assert outcome.connections("allowed.test")[0]["note"] and outcome.denials() == {}


def test_no_server_name_is_refused_under_strict(cage, world, mark):
    need("openssl")
    outcome = cage.run(WEB, *handshake(world, "allowed.test", "-noservername"), more=STRICT)
    assert not established(outcome) and greeted(world, mark) == []
    assert outcome.denials()


HIDDEN_HELLO = """
import ssl
context = ssl.create_default_context(cafile=CA)
inside, outside = ssl.MemoryBIO(), ssl.MemoryBIO()
tls = context.wrap_bio(inside, outside, server_hostname="allowed.test")
with contextlib.suppress(ssl.SSLWantReadError):
    tls.do_handshake()
hello = bytearray(outside.read())
at = 5 + 4 + 2 + 32
at += 1 + hello[at]
at += 2 + int.from_bytes(hello[at:at + 2], "big")
at += 1 + hello[at]
hidden = bytes([0, 0, 1, 0, 1, 7, 0, 2, 1, 2, 0, 4, 1, 2, 3, 4])
hello += struct.pack("!HH", 0xfe0d, len(hidden)) + hidden
hello[at:at + 2] = (len(hello) - at - 2).to_bytes(2, "big")
hello[3:5], hello[6:9] = (len(hello) - 5).to_bytes(2, "big"), (len(hello) - 9).to_bytes(3, "big")
with connect("allowed.test", 443, 5) as sock:
    sock.sendall(hello)
    answer, problem, _ = attempt(sock.recv, 100)
say(server_hello=bool(answer) and answer[0] == 22)
"""


@pytest.mark.parametrize("more, passes", [("", True), (STRICT, False)], ids=["names", "strict"])
def test_encrypted_hello(one_cage, world, mark, more, passes):
    """The name outside is the allowed one; which one is inside, nobody can see."""
    need("openssl")
    code = HIDDEN_HELLO.replace("CA", repr(str(world.public / "ca.pem")))
    outcome = one_cage.python(WEB, code, more=more)
    assert outcome.said == {"server_hello": passes}
    assert greeted(world, mark) == (["allowed.test"] if passes else [])
    assert bool(outcome.denials()) != passes
    if passes:
        assert outcome.connections("allowed.test")[0]["note"]


def test_hello_in_small_pieces(one_cage, world, mark):
    """One byte a packet: what is said is still read, and still decides."""
    code = """
import ssl
def shake(name):
    context = ssl.create_default_context(cafile=CA)
    context.check_hostname = False
    inside, outside = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(inside, outside, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    with connect("allowed.test", 443, 5) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            for byte in outside.read():
                sock.sendall(bytes([byte]))
            return len(sock.recv(100)) > 0
        except OSError:
            return False
say(right=shake("allowed.test"), wrong=shake("other.test"))
""".replace("CA", repr(str(world.public / "ca.pem")))
    assert one_cage.python(WEB, code).said == {"right": True, "wrong": False}
    assert greeted(world, mark) == ["allowed.test"]


def test_address_rule_asks_for_no_name(one_cage, world, mark):
    need("openssl")
    rules = [f"{names.SERVER}:443", f"{names.SERVER}:80"]
    outcome = one_cage.run(rules, *handshake(world, names.SERVER, "-servername", "other.test"))
    assert established(outcome) and greeted(world, mark) == ["other.test"]
    assert "hello from other.test" in one_cage.python(
        rules, f"say(got=get({names.SERVER!r}, name='other.test')[0])").said["got"]


# ---- HTTP ---------------------------------------------------------------------------------------------

# what is sent at once, and the hosts that a server may hear of
END = "\\r\\n\\r\\n"
GET, POST = "GET / HTTP/1.1\\r\\nHost: ", "POST / HTTP/1.1\\r\\nHost: allowed.test\\r\\n"
CLOSE = "\\r\\nConnection: close" + END
REQUESTS = {
    "the right host": (GET + "allowed.test" + CLOSE, ["allowed.test"]),
    "with a port": (GET + "allowed.test:80" + CLOSE, ["allowed.test:80"]),
    "in capitals": (GET.replace("Host", "HOST") + "Allowed.TEST" + CLOSE, ["Allowed.TEST"]),
    "absolute, the same": (GET.replace("/ ", "http://allowed.test/ ") + "allowed.test" + CLOSE, ["allowed.test"]),
    "another host": (OTHER_REQUEST, []),
    "two hosts": (GET + "allowed.test\\r\\nHost: other.test" + END, []),
    "two hosts, the other way": (GET + "other.test\\r\\nHost: allowed.test" + END, []),
    "a space before the colon": (GET + "allowed.test\\r\\nHost : other.test" + END, []),
    "a folded line": ("GET / HTTP/1.1\\r\\nX: y\\r\\n Host: allowed.test\\r\\nHost: other.test" + END, []),
    "absolute, another": (GET.replace("/ ", "http://other.test/ ") + "allowed.test" + END, []),
    "a tunnel": ("CONNECT other.test:443 HTTP/1.1\\r\\nHost: allowed.test" + END, []),
    "a user before the name": (GET + "allowed.test@other.test" + END, []),
    "bare line feeds": ("GET / HTTP/1.1\\nHost: other.test\\n\\nX: y" + END, []),
    "an empty line first": ("\\r\\n" + OTHER_REQUEST, []),
    "HTTP/2 in clear": ("PRI * HTTP/2.0" + END + "SM" + END + "\\0\\0\\0\\x04\\0\\0\\0\\0\\0", []),
    "HTTP/2 later": (GET + "allowed.test\\r\\nConnection: Upgrade, HTTP2-Settings\\r\\nUpgrade: h2c\\r\\n"
                     "HTTP2-Settings: AAMAAABkAAQAAP__" + END, []),
    "a second request": (GET + "allowed.test" + END + OTHER_REQUEST, ["allowed.test"]),
    "a second request behind a body": (POST + "Content-Length: 5" + END + "hello" + OTHER_REQUEST, ["allowed.test"]),
    "a request that is a body": (POST + "Content-Length: 61" + CLOSE + OTHER_REQUEST, ["allowed.test"]),
    "a request behind chunks": (POST + "Transfer-Encoding: chunked" + END + "0" + END + OTHER_REQUEST, None),
    "two lengths": (POST + "Content-Length: 0\\r\\nContent-Length: 61" + END + OTHER_REQUEST, None),
    "a length and chunks": (
        POST + "Content-Length: 61\\r\\nTransfer-Encoding: chunked" + END + "0" + END + OTHER_REQUEST, None),
}


@pytest.mark.parametrize("text", REQUESTS)
def test_http_host(one_cage, world, mark, text):
    data, expected = REQUESTS[text]
    outcome = one_cage.python(WEB, f"got, how = exchange('allowed.test', 80, b'{data}')\nsay(got=got, how=how)")
    heard = hosts(world, mark)
    assert "other.test" not in " ".join(heard), heard
    if expected is not None:
        assert heard == expected
    if expected == []:
        assert "200 OK" not in outcome.said["got"] and outcome.denials(), outcome.result
    elif text in ("the right host", "with a port", "in capitals", "a request that is a body", "absolute, the same"):
        assert "200 OK" in outcome.said["got"] and outcome.said["how"] == "end" and outcome.denials() == {}
    if text in ("another host", "a second request"):
        assert mentions(outcome, "other.test")


def test_control_another_host_is_heard_of_without_a_cage(no_cage, world, mark):
    no_cage.bare_python(f"say(got=exchange('allowed.test', 80, b'{OTHER_REQUEST}')[0])")
    assert hosts(world, mark) == ["other.test"]


def test_later_request_for_another_host_on_the_same_connection(cage, world, mark):
    """After the first one was answered, and when nobody looks any more."""
    code = """
with connect("allowed.test", 80, 5) as sock:
    sock.sendall(http("allowed.test"))
    first = sock.recv(4096).decode()
    sock.sendall(http("allowed.test"))
    second = sock.recv(4096).decode()
    sock.sendall(http("other.test"))
    rest, how = read_all(sock)
say(good=["hello" in first, "hello" in second], rest=rest.decode(), how=how)
"""
    outcome = cage.python(WEB, code)
    assert outcome.said["good"] == [True, True] and outcome.said["rest"] == "" and outcome.said["how"] != "timeout"
    assert hosts(world, mark) == ["allowed.test"] * 2 and mentions(outcome, "other.test")


def test_head_in_small_pieces(one_cage, world, mark):
    code = """
with connect("allowed.test", 80, 5) as sock:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in http("allowed.test", more="Connection: close\\r\\n"):
        sock.sendall(bytes([byte]))
    say(got=read_all(sock)[0].decode())
"""
    assert "hello" in one_cage.python(WEB, code).said["got"] and hosts(world, mark) == ["allowed.test"]


def test_curl_with_another_host(cage, world, mark):
    need("curl")
    outcome = cage.run(WEB, "curl", "-sS", "-m", "15", "-H", "Host: other.test", "http://allowed.test/")
    assert outcome.status != 0 and hosts(world, mark) == []
    outcome = cage.run(WEB, "curl", "-sS", "-m", "15", "--http2-prior-knowledge", "http://allowed.test/")
    assert outcome.status not in (0, 28) and hosts(world, mark) == []  # 28: its time was over


def test_large_upload_of_the_right_host(one_cage):
    code = """
with connect("allowed.test", 80) as sock:
    sock.sendall(http("allowed.test", "/", "POST", more="Connection: close\\r\\n", body="x" * 3_000_000))
    say(got=read_all(sock)[0].decode())
"""
    assert "3000000 bytes" in one_cage.python(WEB, code).said["got"]


@pytest.mark.parametrize("target", ["http://refused.test/", f"http://{names.OTHER}/", "http://127.0.0.1/",
                                    "https://other.test/"])
def test_redirect_from_an_allowed_host_to_a_refused_one(cage, world, mark, target):
    need("curl")
    outcome = cage.run(WEB, "curl", "-sS", "-L", "-m", "5", f"http://allowed.test/to?{target}")
    assert outcome.status != 0 and outcome.denials() and hosts(world, mark) == ["allowed.test"]
    assert world.log(mark, "open", "world") == []


# ---- other protocols ---------------------------------------------------------------------------------


def test_other_protocols_are_relayed(cage, world, mark):
    code = """
with connect("allowed.test", 22) as sock:
    banner = sock.recv(100).decode()
    sock.sendall(b"SSH-2.0-x\\r\\n")
    say(banner=banner)
"""
    assert cage.python(["allowed.test:22"], code).said["banner"].startswith("SSH-2.0-")
    assert world.wait_for(mark, "banner")["text"] == "SSH-2.0-x"


def test_other_protocols_are_refused_under_strict(cage, world, mark):
    code = """
with connect("allowed.test", 22, 5) as sock:
    sock.sendall(b"SSH-2.0-x\\r\\n")
    say(how=read_all(sock)[1])
"""
    outcome = cage.python(["allowed.test:22"], code, more=STRICT)
    assert outcome.said["how"] != "timeout" and outcome.denials()
    assert "SSH-2.0-x" not in [entry["text"] for entry in world.log(mark, "banner")]


def test_strict_lets_the_web_through(one_cage, world):
    need("curl")
    outcome = one_cage.run(WEB, "curl", "-sS", "-m", "5", "--cacert", world.public / "ca.pem", "https://allowed.test/",
                           "http://allowed.test/", more=STRICT)
    assert outcome.stdout == "hello from allowed.test\n" * 2 and outcome.denials() == {}
