# SPDX-License-Identifier: Apache-2.0
"""What `toolcage mcp` does with bad messages over stdio: it says so, and goes on. (Over HTTP: test_mcp_bad_input_http.py.)"""

import json
import os
import signal
import subprocess
import time

import pytest
from conftest import TIME_SCALE
from mcp_client import McpClient, ServerEnded, command, write_policy
from mcp_peers import require_jail
from waiting import wait_until

SLEEP = f"32.{os.getpid()}"  # an argument by which the sleeping tool is found from outside

POLICY = f"""
version = 1
[defaults]
backend = "process"
[tool.say]
command = ["echo", "said"]
[tool.nap]
command = ["sleep", "0.4"]
[tool.sleeps]
backend = "jail"
command = ["sleep", "{SLEEP}"]
timeout = "60s"
[tool.made]
backend = "jail"
command = ["sh", "-c", "echo kept > /tmp/kept.bin"]
outputs = ["/tmp/*.bin"]
"""

PARSE, INVALID, NO_METHOD, PARAMS = -32700, -32600, -32601, -32602
REQUEST = {"jsonrpc": "2.0", "id": "bad", "method": "ping"}


def request(**changed):
    return json.dumps({key: value for key, value in (REQUEST | changed).items() if value != "absent"}).encode()


def nested(depth, opening, closing):
    return b'{"jsonrpc":"2.0","id":"bad","method":"ping","params":{"x":' + opening * depth + b"1" + closing * depth + b"}}"


def call(**params):
    return request(method="tools/call", params=params)


# What is sent as one line: the codes that may come back. Empty: nothing does.
CORPUS = {
    "text": (b"hello", {PARSE}),
    "nothing but a brace": (b"{", {PARSE}),
    "a cut message": (b'{"jsonrpc":"2.0","id":1,"meth', {PARSE}),
    "two messages in a line": (request() + request(), {PARSE}),
    "rubbish behind": (request() + b" x", {PARSE}),
    "single quotes": (b"{'jsonrpc':'2.0','id':1,'method':'ping'}", {PARSE}),
    "trailing comma": (b'{"jsonrpc":"2.0","id":1,"method":"ping",}', {PARSE}),
    "NaN": (b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}', {PARSE}),
    "bytes that are no text": (b'{"jsonrpc":"2.0","id":"\xff\xfe","method":"ping"}', {PARSE}),
    "an overlong form of /": (b'{"jsonrpc":"2.0","id":"\xc0\xaf","method":"ping"}', {PARSE}),
    "half a surrogate": (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', {PARSE, INVALID}),
    "NUL bytes": (b"\0\0\0\0", {PARSE}),
    "NUL in a string": (b'{"jsonrpc":"2.0","id":"a\\u0000b","method":"ping"}', {PARSE, INVALID}),
    "NUL in a method": (b'{"jsonrpc":"2.0","id":"bad","method":"pi\\u0000ng"}', {PARSE, INVALID, NO_METHOD}),
    "number beyond all": (b'{"jsonrpc":"2.0","id":1e999,"method":"ping"}', {PARSE, INVALID}),
    "id of 400 digits": (b'{"jsonrpc":"2.0","id":' + b"9" * 400 + b',"method":"ping"}', {PARSE, INVALID}),
    "id with a fraction": (request(id=1.5), {INVALID}),
    "id that is null": (request(id=None), {INVALID}),
    "id that is a list": (request(id=[1]), {INVALID}),
    "id that is an object": (request(id={}), {INVALID}),
    "id that is true": (request(id=True), {INVALID}),
    "id of 10 kB": (request(id="x" * 10000), {INVALID}),
    "a number": (b"1", {INVALID}),
    "null": (b"null", {INVALID}),
    "an empty object": (b"{}", {INVALID}),
    "an empty batch": (b"[]", {INVALID}),
    "a batch": (b"[" + request() + b"]", {INVALID}),
    "a batch of rubbish": (b"[1,2,3]", {INVALID}),
    "no version": (request(jsonrpc="absent"), {INVALID}),
    "another version": (request(jsonrpc="1.0"), {INVALID}),
    "a version that is a number": (request(jsonrpc=2.0), {INVALID}),
    "a method that is a number": (request(method=7), {INVALID}),
    "no method": (request(method="absent"), {INVALID}),
    "an empty method": (request(method=""), {NO_METHOD, INVALID}),
    "an unknown method": (request(method="tools/steal"), {NO_METHOD}),
    "a method of 1 MB": (request(method="x" * 1000000), {NO_METHOD, INVALID}),
    "a method like a path": (request(method="../../etc/passwd"), {NO_METHOD}),
    "params that are text": (request(params="x"), {INVALID, PARAMS}),
    "params that are a list": (request(method="tools/call", params=["say"]), {INVALID, PARAMS}),
    "the same key twice": (b'{"jsonrpc":"2.0","id":"bad","id":"good","method":"ping"}', {PARSE, INVALID}),
    "the same key twice, deeper": (b'{"jsonrpc":"2.0","id":"bad","method":"tools/call","params":{"name":"say",'
                                   b'"name":"sleeps"}}', {PARSE, INVALID}),
    "100 arrays in one another": (nested(100, b"[", b"]"), {PARSE, INVALID}),
    "a million arrays in one another": (nested(1000000, b"[", b"]"), {PARSE, INVALID}),
    "a million arrays, never closed": (b"[" * 1000000, {PARSE, INVALID}),
    "10,000 objects in one another": (nested(10000, b'{"a":', b"}"), {PARSE, INVALID}),
    "more than 4 MB": (request(params={"x": "y" * (4 * 1024 * 1024)}), {PARSE, INVALID}),
    "initialize again": (request(method="initialize", params={"protocolVersion": "2025-11-25", "capabilities": {},
                                                             "clientInfo": {"name": "x", "version": "1"}}), {INVALID}),
    "call without a name": (call(arguments={}), {PARAMS}),
    "call of a number": (call(name=1), {PARAMS}),
    "call of an unknown tool": (call(name="steal"), {PARAMS}),
    "call of a tool with a line break": (call(name="say\n"), {PARAMS}),
    "call with arguments that are a list": (call(name="say", arguments=[1]), {PARAMS}),
    "call with arguments that are text": (call(name="say", arguments="{}"), {PARAMS}),
    "a cursor of nobody's": (request(method="tools/list", params={"cursor": "!"}), {PARAMS}),
    "a cursor that is a number": (request(method="tools/list", params={"cursor": 5}), {PARAMS}),
    "an unknown level": (request(method="logging/setLevel", params={"level": "loud"}), {PARAMS}),
    "a resource outside": (request(method="resources/read", params={"uri": "file:///etc/passwd"}), {-32002, PARAMS}),
    "a resource above": (request(method="resources/read", params={"uri": "toolcage://file/../../etc"}), {-32002, PARAMS}),
    "a resource that is a number": (request(method="resources/read", params={"uri": 1}), {PARAMS}),
    "an unknown prompt": (request(method="prompts/get", params={"name": "x"}), {PARAMS}),
    "completion of nothing": (request(method="completion/complete", params={}), {PARAMS}),
    # Nothing is said to these.
    "an empty line": (b"", set()),
    "blanks": (b" \t\r", set()),
    "an unknown notification": (b'{"jsonrpc":"2.0","method":"notifications/nonsense"}', set()),
    "cancellation of nothing": (b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"no"}}',
                                set()),
    "cancellation of a list": (b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[]}}', set()),
    "cancellation without params": (b'{"jsonrpc":"2.0","method":"notifications/cancelled"}', set()),
    "initialized again": (b'{"jsonrpc":"2.0","method":"notifications/initialized"}', set()),
    "an answer to nothing": (b'{"jsonrpc":"2.0","id":"tc-99","result":{}}', set()),
    "an error to nothing": (b'{"jsonrpc":"2.0","id":77,"error":{"code":1,"message":"x"}}', set()),
}


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    return write_policy(tmp_path_factory.mktemp("bad"), POLICY)


@pytest.fixture
def start(policy, tmp_path):
    """start(): a server, shaken hands with unless version is None; closed in order at the end."""
    opened = []

    def begin(version="2025-11-25", **more):
        client = McpClient().start(["mcp", "--policy", policy, "--journal", tmp_path / "journal.db"], **more)
        opened.append(client)
        if version:
            client.initialize(version)
        return client

    yield begin
    for client in opened:
        if client.process.poll() is None:
            assert client.close() == 0, client.stderr()


@pytest.fixture(scope="module")
def hardened(policy, tmp_path_factory):
    """One server for the whole corpus: it must outlive all of it."""
    folder = tmp_path_factory.mktemp("corpus")
    with McpClient().start(["mcp", "--policy", policy, "--journal", folder / "journal.db"]) as client:
        client.initialize()
        yield client
        assert client.call("say")["content"][0]["text"] == "said\n"
        assert not client.stray, "only messages on stdout"


@pytest.mark.parametrize("case", CORPUS)
def test_bad_message_is_answered_and_the_next_one_works(hardened, case):
    line, codes = CORPUS[case]
    seen = len(hardened.log)
    hardened.send_bytes(line + b"\n")
    assert hardened.request("ping", id=f"after {case}") == {}

    def answered():
        return [one for one in hardened.log[seen:] if one.get("id") != f"after {case}" and "method" not in one]

    if codes:  # a call may be answered later than the ping
        assert wait_until(answered), "no answer"
    answers = answered()
    assert len(answers) == (1 if codes else 0), answers
    if codes:
        error = answers[0]["error"]
        assert error["code"] in codes and error["message"], error
        assert answers[0].get("id") in (None, "bad", 1, "good", "a\0b"), "the id is the request's, or null"
        assert len(json.dumps(answers[0])) < 4096, "the input is not echoed at length"


def test_lines_may_end_with_a_carriage_return(start):
    client = start()
    client.send_bytes(request(id="crlf") + b"\r\n")
    assert client.result("crlf") == {}


def test_message_may_arrive_in_pieces(start):
    client = start()
    for byte in request(id="slow"):
        client.send_bytes(bytes([byte]))
    time.sleep(0.05)
    client.send_bytes(b"\n" + request(id="next") + b"\n" + request(id="after")[:9])
    assert client.result("slow") == {} and client.result("next") == {}
    client.send_bytes(request(id="after")[9:] + b"\n")
    assert client.result("after") == {}


def test_nothing_but_ping_works_before_initialize(start):
    client = start(version=None)
    assert client.request("ping") == {}
    for method in ("tools/list", "tools/call", "resources/read", "server/discover"):
        message = client.wait_response(client.post(method, {"name": "say", "uri": "toolcage://policy"}))
        assert message["error"]["code"] in (INVALID, NO_METHOD, -32002), message
    client.initialize()
    assert client.request("tools/list")["tools"]


@pytest.mark.parametrize("params", [None, {}, {"protocolVersion": 1}, {"protocolVersion": "2025-11-25"},
                                    {"protocolVersion": "2025-11-25", "capabilities": []}])
def test_initialize_with_bad_params_can_be_mended(start, params):
    client = start(version=None)
    message = client.wait_response(client.post("initialize", params))
    if "error" in message:
        assert message["error"]["code"] in (PARAMS, INVALID)
        client.initialize()
    assert client.request("ping") == {}


def test_id_that_is_in_use_is_refused(start):
    client = start()
    client.post("tools/call", {"name": "nap"}, id="twice")
    client.post("tools/call", {"name": "say"}, id="twice")
    answers = [client.wait_response("twice"), client.wait_response("twice")]
    assert sorted("error" in answer for answer in answers) == [False, True]
    assert next(answer for answer in answers if "error" in answer)["error"]["code"] == INVALID
    # When the first is answered, the id is free again.
    assert client.request("tools/call", {"name": "say"}, id="twice")["content"][0]["text"] == "said\n"


def test_too_many_calls_at_one_time_are_refused_and_the_others_answered(start):
    client = start()
    identities = [client.post("tools/call", {"name": "nap"}) for _ in range(80)]
    answers = [client.wait_response(identity, timeout=60) for identity in identities]
    refused = [answer for answer in answers if "error" in answer]
    assert refused and len(refused) < 80 and {answer["error"]["code"] for answer in refused} == {-32000}
    assert all(answer["result"]["content"] for answer in answers if "result" in answer)
    assert client.call("say")["content"][0]["text"] == "said\n"


def test_batches_belong_to_the_oldest_version_only(start):
    client = start("2025-03-26")
    client.send([REQUEST | {"id": "one"}, {"jsonrpc": "2.0", "method": "notifications/nonsense"}, REQUEST | {"id": "two"},
                 7])
    assert client.result("one") == {} and client.result("two") == {}
    assert client.wait_response(None)["error"]["code"] == INVALID
    client.send([{"jsonrpc": "2.0", "method": "notifications/nonsense"}])
    assert client.request("ping") == {}


# ---- the end ---------------------------------------------------------------------------------


def sleepers():
    found = []
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                if file.read().endswith(b"sleep\0" + SLEEP.encode() + b"\0"):
                    found.append(int(entry))
        except OSError:
            continue
    return found


def test_end_of_input_within_a_message_is_a_clean_end(start):
    client = start()
    client.send_bytes(request(id="cut")[:20])
    assert client.close() == 0
    assert not client.stray


def test_calls_under_way_are_answered_after_the_end_of_input(start):
    client = start()
    identity = client.post("tools/call", {"name": "nap"})
    client.process.stdin.close()
    assert client.result(identity)["content"]
    assert client.close() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_signal_ends_the_calls_too(start, number):
    require_jail()
    client = start()
    client.post("tools/call", {"name": "sleeps"})
    assert wait_until(sleepers), "the call does not start"
    client.process.send_signal(number)
    status = client.process.wait(20 * TIME_SCALE)
    assert status == (-signal.SIGKILL if number == signal.SIGKILL else 0), client.stderr()
    assert wait_until(lambda: not sleepers()), "the call outlives its server"


def test_reader_that_goes_away_ends_the_server(start):
    require_jail()
    client = start()
    client.post("tools/call", {"name": "sleeps"})
    assert wait_until(sleepers), "the call does not start"
    client.process.stdin.close()
    with pytest.raises((ServerEnded, AssertionError)):
        client.wait_response("nothing", timeout=0.2)
    client.process.terminate()
    assert client.process.wait(20 * TIME_SCALE) == 0
    assert wait_until(lambda: not sleepers()), "the call outlives its server"


def test_closed_stdout_is_no_hang(policy):
    with subprocess.Popen([command(), "mcp", "--policy", policy, "--no-journal"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        process.stdout.close()
        try:
            for _ in range(100):
                process.stdin.write(request() + b"\n")
                process.stdin.flush()
                time.sleep(0.01)
            process.stdin.close()
        except BrokenPipeError:
            process.stdin = None
        assert process.wait(20 * TIME_SCALE) is not None


def test_files_of_a_killed_server_are_swept_by_the_next(start, tmp_path):
    require_jail()
    place = tmp_path / "tmp"
    place.mkdir()
    env = {"TMPDIR": str(place), "XDG_RUNTIME_DIR": str(place), "XDG_CACHE_HOME": str(place),
           "XDG_STATE_HOME": str(place)}

    def kept():
        return [path for path in place.rglob("*") if path.is_file() and path.read_bytes() == b"kept\n"]

    client = start(env=env)
    client.call("made")
    client.process.kill()
    client.process.wait()
    assert len(kept()) == 1, "it could not remove its own"
    after = start(env=env)
    after.call("made")
    assert len(kept()) == 1, "only those of the server that lives"
    assert after.close() == 0
    assert not kept()
