# SPDX-License-Identifier: Apache-2.0
"""Tools over MCP: how they are listed, what a call answers, and what a client hears while it runs."""

import base64
import json
import os
import struct
import time
import zlib
from pathlib import Path

import jsonschema
import pytest

from conftest import TIME_SCALE
from mcp_client import McpClient, RpcError, write_policy
from waiting import wait_until


def png():
    """A picture of one pixel."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)) + chunk(
        b"IDAT", zlib.compress(b"\0\0")) + chunk(b"IEND", b"")


WAV = b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x40\x1f\0\0\1\0\x08\0data\0\0\0\0"
SVG = b"<svg xmlns='http://www.w3.org/2000/svg'/>"
PAYLOAD = {"a.png": png(), "b.wav": WAV, "c.txt": "grüße\n".encode(), "d.svg": SVG, "e.bin": bytes(range(256)) * 8,
           "f.txt": b"x" * 70000, "g.json": b'{"a": 1}\n', "h.png": b"not a picture"}

POLICY = r"""
version = 1
[defaults]
timeout = "20s"
[tool.echo]
description = "Says it again"
command = ["printf", "%s", "{text}"]
parameters = { type = "object", required = ["text"], properties = { text = { type = "string" } } }
[tool.quiet]
command = ["true"]
[tool.bytes]
command = ["printf", '\377\376\000x']
[tool.both]
command = ["sh", "-c", "echo out; echo err >&2; exit 3"]
[tool.flood]
output = "10kB"
command = ["yes", "é"]
[tool.slow]
timeout = "300ms"
command = ["sleep", "30"]
[tool.sleep]
command = ["sleep", "{seconds}"]
[tool.count]
command = ["sh", "-c", "for i in 0 10 5 10 50.5 100 700; do echo at $i% >&2; sleep 0.1; done"]
[tool.bar]
command = ["sh", "-c", 'i=0; while [ $i -le 100 ]; do printf "\r\033[1m%d%%\033[0m" $i >&2; i=$((i+1)); done']
[tool.noise]
command = ["sh", "-c", "i=0; while [ $i -lt 5000 ]; do echo line $i; i=$((i+1)); done >&2"]
[tool.long_line]
command = ["sh", "-c", "head -c 100000 /dev/zero | tr '\\0' x >&2"]
[tool.weather]
command = ["printf", "%s", "{text}"]
returns = { type = "object", required = ["degrees"], properties = { degrees = { type = "number" } } }
[tool.list]
command = ["echo", "[1]"]
returns = { type = "array" }
[tool.files]
filesystem = { readable = ["@/payload:/payload"] }
command = ["sh", "-c", "mkdir /tmp/o && cp /payload/* /tmp/o/ && ln -s /etc/passwd /tmp/o/link.txt"]
outputs = { globs = ["/tmp/o/*"] }
[tool.no_files]
command = ["true"]
outputs = { globs = ["/tmp/o/*"] }
[tool.writes]
filesystem = { writable = ["@/payload:/payload"] }
command = ["true"]
[tool.fetches]
network = ["example.com:443"]
command = ["true"]
[tool.asks]
approval = "ask"
approval_timeout = "10s"
command = ["printf", "%s", "{text}"]
[tool.asks_shortly]
approval = "ask"
approval_timeout = "300ms"
command = ["true"]
[tool.not_callable]
description = "for exec only"
[agent.reader]
grants = ["echo", { tool = "quiet", max_calls = 1 }]
"""


@pytest.fixture(scope="module", name="place")
def fixture_place(tmp_path_factory):
    """A directory with the policy and what its tools read."""
    directory = tmp_path_factory.mktemp("mcp")
    (directory / "payload").mkdir()
    for name, data in PAYLOAD.items():
        (directory / "payload" / name).write_bytes(data)
    write_policy(directory, POLICY.replace("@", str(directory)))
    return directory


def start(place, *args, journal=False):
    more = [] if journal else ["--no-journal"]
    return McpClient().start(["mcp", "--policy", place / "policy.toml", *more, *args],
                             env={"XDG_STATE_HOME": str(place), "XDG_RUNTIME_DIR": ""})


@pytest.fixture(scope="module", name="shared")
def fixture_shared(place):
    """One server of the policy's owner, for tests that leave nothing behind."""
    with start(place) as client:
        client.initialize()
        yield client
    assert client.stray == [] and client.process.returncode == 0


@pytest.fixture(name="client")
def fixture_client(shared):
    """The same, without the notifications of other tests."""
    shared.request("logging/setLevel", {"level": "info"})
    shared.notifications.clear()
    return shared


def text_of(result):
    return [item["text"] for item in result["content"] if item["type"] == "text"]


def meta(result):
    return result["_meta"]["toolcage"]


# ---- tools/list


def test_list_has_schemas_and_only_callable_tools(client):
    tools = {tool["name"]: tool for tool in client.request("tools/list")["tools"]}
    assert "not_callable" not in tools
    assert tools["echo"]["description"] == "Says it again"
    assert tools["echo"]["inputSchema"]["required"] == ["text"]
    assert tools["weather"]["outputSchema"]["required"] == ["degrees"]
    assert "outputSchema" not in tools["list"] and "outputSchema" not in tools["echo"]


@pytest.mark.parametrize("tool, read_only, open_world", [
    ("echo", True, False), ("files", True, False), ("writes", False, False), ("fetches", False, True)])
def test_annotations_say_what_the_policy_makes_impossible(client, tool, read_only, open_world):
    tools = {tool["name"]: tool for tool in client.request("tools/list")["tools"]}
    assert tools[tool]["annotations"] == {"readOnlyHint": read_only, "destructiveHint": not read_only,
                                          "idempotentHint": read_only, "openWorldHint": open_world}


def test_an_agent_sees_the_tools_of_its_grants_only(place):
    with start(place, "--agent", "reader") as client:
        client.initialize()
        assert [tool["name"] for tool in client.request("tools/list")["tools"]] == ["echo", "quiet"]


def test_grants_at_run_time_are_told_to_whom_they_concern(tmp_path, toolcage):
    path = write_policy(tmp_path, '''version = 1
[tool.one]
command = ["true"]
[tool.two]
command = ["true"]
[agent.a]
grants = ["one"]
[agent.b]
grants = ["one"]
''')
    more = ["--policy", path, "--journal", tmp_path / "j.db"]
    changed = "notifications/tools/list_changed"

    def grant(*words):
        done = toolcage("grant", *words, *more)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def names(client):
        return [tool["name"] for tool in client.request("tools/list")["tools"]]

    def start_as(agent):
        client = McpClient().start(["mcp", "--agent", agent, *more])
        client.initialize()
        assert names(client) == ["one"]
        return client

    with start_as("a") as a, start_as("b") as b:
        made = grant("add", "a", "two")
        a.wait_notification(changed)
        assert names(a) == ["one", "two"]
        grant("revoke", made)
        a.wait_notification(changed)
        assert names(a) == ["one"]
        grant("add", "b", "two")
        b.wait_notification(changed)
        assert names(b) == ["one", "two"]
        told = [sum(one.get("method") == changed for one in client.log) for client in (a, b)]
        assert told == [2, 1]


def test_an_old_client_gets_no_output_schema(place):
    with start(place) as client:
        client.initialize("2025-03-26")
        assert not [tool for tool in client.request("tools/list")["tools"] if "outputSchema" in tool]
        result = client.call("weather", {"text": '{"degrees": 7}'})
        assert "structuredContent" not in result and json.loads(text_of(result)[0]) == {"degrees": 7}


def test_pages_of_a_long_list(tmp_path):
    names = [f"tool_{i}" for i in range(250)]
    path = write_policy(tmp_path, "version = 1\n" + "".join(f'[tool.{name}]\ncommand = ["true"]\n' for name in names))
    with start(tmp_path) as client:
        client.initialize()
        seen, sizes, params = [], [], {}
        while params is not None:
            page = client.request("tools/list", params)
            seen += [tool["name"] for tool in page["tools"]]
            sizes.append(len(page["tools"]))
            params = {"cursor": page["nextCursor"]} if "nextCursor" in page else None
        assert seen == names and sizes == [100, 100, 50]
        for cursor in ("nonsense", "", "1-0", "2-100", 7):
            with pytest.raises(RpcError) as error:
                client.request("tools/list", {"cursor": cursor})
            assert error.value.code == -32602
        first = client.request("tools/list")["nextCursor"]
        fresh = path.with_suffix(".new")
        fresh.write_text('version = 1\n[tool.only]\ncommand = ["true"]\n')
        fresh.rename(path)
        client.wait_notification("notifications/tools/list_changed")
        assert [tool["name"] for tool in client.request("tools/list")["tools"]] == ["only"]
        with pytest.raises(RpcError) as error:
            client.request("tools/list", {"cursor": first})
        assert error.value.code == -32602
        assert client.call("only")["isError"] is False
        with pytest.raises(RpcError):
            client.call("tool_0")


def test_a_call_under_way_ends_under_the_policy_that_it_began_with(tmp_path):
    (tmp_path / "gate").mkdir()
    script = "echo up >&2; until [ -e /gate/open ]; do sleep 0.02; done; echo done"
    path = write_policy(tmp_path, f'version = 1\n[tool.s]\ncommand = ["sh", "-c", "{script}"]\n'
                        'filesystem = { readable = ["gate:/gate"] }\n')
    with start(tmp_path) as client:
        client.initialize()
        call = client.post_call("s")
        client.wait_notification("notifications/message")
        path.write_text('version = 1\n[tool.other]\ncommand = ["true"]\n')
        client.wait_notification("notifications/tools/list_changed")
        assert not client.has_answer(call)
        (tmp_path / "gate" / "open").touch()
        assert text_of(client.result(call))[0] == "done\n"


# ---- tools/call: content


def test_stdout_is_text(client):
    result = client.call("echo", {"text": 'grüße\n"\\\x01‮'})
    assert result["content"] == [{"type": "text", "text": 'grüße\n"\\\x01‮'}]
    assert result["isError"] is False
    assert meta(result)["verdict"] == "ok" and meta(result)["exit_code"] == 0 and meta(result)["mode"] == "live"


def test_output_cannot_forge_a_message(client):
    forged = '"}]}}\n{"jsonrpc":"2.0","id":1,"result":{}}\n'
    assert text_of(client.call("echo", {"text": forged})) == [forged]
    assert client.stray == []


def test_no_output_is_one_empty_text(client):
    assert client.call("quiet")["content"] == [{"type": "text", "text": ""}]
    assert client.call("quiet", {})["isError"] is False


def test_output_that_is_not_text_is_a_blob(client):
    result = client.call("bytes")
    resource = result["content"][0]["resource"]
    assert result["content"][0]["type"] == "resource"
    assert base64.b64decode(resource["blob"]) == b"\xff\xfe\0x"
    assert resource["uri"] == f"toolcage://call/{meta(result)['call_id']}/stdout"
    assert resource["mimeType"] == "application/octet-stream"


def test_a_failure_names_its_verdict_then_both_streams(client):
    result = client.call("both")
    assert result["isError"] is True
    verdict, out, err = text_of(result)
    assert verdict.startswith("failed: ") and out == "out\n" and err == "stderr:\nerr\n"
    assert meta(result)["exit_code"] == 3


def test_truncated_output_is_still_text_and_says_so(client):
    result = client.call("flood")
    verdict, out = text_of(result)
    assert result["isError"] and verdict.startswith("output: ") and "Fix: " in verdict
    assert set(out) == {"é", "\n"} and meta(result)["stdout_truncated"] is True
    assert 9000 < len(out.encode()) <= 10000


def test_a_timeout_is_a_result_with_a_fix(client):
    result = client.call("slow")
    assert result["isError"] and meta(result)["verdict"] == "timeout"
    assert text_of(result)[0].startswith("timeout: ") and "Fix: " in text_of(result)[0]


def test_arguments_that_the_schema_refuses_are_a_result_that_a_model_can_mend(client):
    result = client.call("echo", {"txt": 1})
    assert result["isError"] and meta(result)["verdict"] == "invalid_input"
    assert "text" in text_of(result)[0]


@pytest.mark.parametrize("params", [
    None, {}, {"name": 7}, {"name": ""}, {"name": "echo", "arguments": [1]}, {"name": "echo", "arguments": "x"},
    {"name": "not_callable"}, {"name": "x" * 5000}, {"name": "echo\u0000x"}])
def test_params_that_name_no_tool_are_an_error(client, params):
    with pytest.raises(RpcError) as error:
        client.request("tools/call", params)
    assert error.value.code in (-32602, -32600, -32700)


def test_structured_content_is_valid_by_the_schema_that_was_listed(client):
    schema = next(tool["outputSchema"] for tool in client.request("tools/list")["tools"] if tool["name"] == "weather")
    result = client.call("weather", {"text": ' {"degrees": 21.5,\n "x": "\u2028"}\n'})
    jsonschema.validate(result["structuredContent"], schema)
    assert result["structuredContent"] == {"degrees": 21.5, "x": "\u2028"}
    assert json.loads(text_of(result)[0]) == result["structuredContent"]
    bad = client.call("weather", {"text": '{"degrees": "warm"}'})
    assert bad["isError"] and "structuredContent" not in bad and meta(bad)["verdict"] == "invalid_output"
    assert "structuredContent" not in client.call("list")


# ---- tools/call: files


def test_files_come_back_as_what_they_are(client):
    result = client.call("files")
    assert result["isError"] is False, result
    items = result["content"]
    assert {"type": "image", "data": base64.b64encode(png()).decode(), "mimeType": "image/png"} in items
    sound = next(item for item in items if item["type"] == "audio")
    assert base64.b64decode(sound["data"]) == WAV and sound["mimeType"] == "audio/wav"
    texts = {item["resource"]["uri"].rsplit("/", 1)[1]: item["resource"]
             for item in items if item["type"] == "resource"}
    assert texts["c.txt"]["text"] == "grüße\n" and texts["c.txt"]["mimeType"].startswith("text/plain")
    assert texts["d.svg"]["text"] == SVG.decode() and texts["g.json"]["text"] == '{"a": 1}\n'
    assert texts["h.png"]["text"] == "not a picture"  # by its bytes
    links = {item["name"]: item for item in items if item["type"] == "resource_link"}
    assert set(links) == {"e.bin", "f.txt"} and links["e.bin"]["size"] == 2048 and links["f.txt"]["size"] == 70000
    assert "root:" not in json.dumps(result)
    read = client.request("resources/read", {"uri": links["e.bin"]["uri"]})["contents"][0]
    assert base64.b64decode(read["blob"]) == PAYLOAD["e.bin"]
    assert client.request("resources/read", {"uri": texts["c.txt"]["uri"]})["contents"][0]["text"] == "grüße\n"


def test_an_old_client_gets_files_without_links(place):
    with start(place) as client:
        client.initialize("2025-03-26")
        items = client.call("files")["content"]
        assert not [item for item in items if item["type"] == "resource_link"]
        assert base64.b64encode(PAYLOAD["e.bin"]).decode() in [
            item["resource"].get("blob") for item in items if item["type"] == "resource"]
        assert [item for item in items if item["type"] == "text" and "/tmp/o/f.txt: 70000 bytes" in item["text"]]


def test_a_call_without_files_brings_none(client):
    assert client.call("no_files")["content"] == [{"type": "text", "text": ""}]


# ---- who may


def refusal(client, name):
    with pytest.raises(RpcError) as error:
        client.call(name)
    return json.dumps([error.value.code, error.value.message, error.value.data])


def test_a_tool_without_a_grant_is_the_same_as_one_that_does_not_exist(place, tmp_path, toolcage):
    with start(place, "--agent", "reader", "--journal", tmp_path / "journal.db", journal=True) as client:
        client.initialize()
        for known in ("slow", "files", "asks", "not_callable"):
            unknown = known[::-1]
            assert refusal(client, known) == refusal(client, unknown).replace(unknown, known)
        assert json.loads(refusal(client, "slow"))[2]["verdict"] == "denied"
        assert client.call("quiet")["isError"] is False
        used_up = client.call("quiet")  # it holds the grant: it may know why
        assert meta(used_up)["verdict"] == "denied" and "its one call" in text_of(used_up)[0]
    shown = toolcage("journal", "show", "--journal", tmp_path / "journal.db", "--last", "0", "--verdict", "denied")
    assert len([line for line in shown.stdout.splitlines() if "denied" in line]) >= 10, shown


# ---- cancellation, concurrency


def processes(word):
    """Processes whose command line has the word."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and word.encode() in Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0"):
                found.append(int(entry))
        except OSError:
            pass
    return found


def test_a_cancelled_call_is_killed_and_not_answered(client):
    word = f"{1000 + os.getpid() / 1e7:.7f}"
    call = client.post_call("sleep", {"seconds": word}, token="t")
    assert wait_until(lambda: processes(word))
    client.notify("notifications/cancelled", {"requestId": "nobody's"})
    client.notify("notifications/cancelled", {"requestId": call, "reason": "enough"})
    assert wait_until(lambda: not processes(word))
    assert client.call("quiet")["isError"] is False
    assert not client.has_answer(call)


def test_the_end_of_the_input_lets_calls_finish(place):
    client = start(place)
    client.initialize()
    call = client.post_call("sleep", {"seconds": "0.3"})
    assert client.close() == 0
    assert client.result(call)["isError"] is False


def test_a_signal_kills_calls_and_ends_the_server(place):
    word = f"{2000 + os.getpid() / 1e7:.7f}"
    client = start(place)
    client.initialize()
    client.post_call("sleep", {"seconds": word})
    assert wait_until(lambda: processes(word))
    client.process.terminate()
    assert client.process.wait(30 * TIME_SCALE) == 0
    assert wait_until(lambda: not processes(word))
    client.close()


def test_thirty_calls_at_one_time(client):
    began = time.monotonic()
    calls = [client.post_call("sleep", {"seconds": "2"}) for _ in range(30)]
    quick = client.request("ping")
    assert quick == {} and not all(client.has_answer(call) for call in calls)
    for call in calls:
        assert client.result(call, timeout=60)["isError"] is False
    assert time.monotonic() - began < 30 * 2 * 0.6  # one after the other, they sleep a minute


# ---- what is heard meanwhile


def test_percentages_on_stderr_are_progress(client):
    client.call("count", token="abc")
    told = client.taken("notifications/progress")
    assert [one["progress"] for one in told] == [0, 10, 50.5, 100]
    assert {one["total"] for one in told} == {100} and {one["progressToken"] for one in told} == {"abc"}
    assert told[2]["message"] == "at 50.5%"


def test_a_fast_progress_bar_is_thinned_out_and_its_end_is_told(client):
    call = client.post_call("bar", token=7)
    client.result(call)
    told = client.taken("notifications/progress")
    values = [one["progress"] for one in told]
    assert values == sorted(set(values)) and values[-1] == 100 and len(values) < 60
    assert told[-1]["message"] == "100%" and told[-1]["progressToken"] == 7
    last = max(i for i, message in enumerate(client.log) if message.get("method") == "notifications/progress")
    answer = next(i for i, message in enumerate(client.log) if message.get("id") == call and "result" in message)
    assert last < answer


def test_a_silent_call_is_counted_in_seconds(client):
    client.call("sleep", {"seconds": "2.2"}, token=1)
    told = client.taken("notifications/progress")
    assert [one["progress"] for one in told][:2] == [1, 2] and "total" not in told[0]
    assert told[0]["message"] == "running for 1 s of at most 20 s"


def test_without_a_token_nothing_is_told(client):
    client.call("count")
    assert client.taken("notifications/progress") == []


def test_lines_of_stderr_are_log_messages_of_the_level_that_is_wanted(client):
    client.call("both")
    assert client.taken("notifications/message") == [{"level": "info", "logger": "both", "data": "err"}]
    client.request("logging/setLevel", {"level": "warning"})
    client.call("both")
    assert client.taken("notifications/message") == []


def test_a_flood_of_lines_is_thinned_out_and_counted(client):
    client.call("noise")
    told = client.taken("notifications/message")
    lines = [one["data"] for one in told if one["level"] == "info"]
    left_out = sum(int(one["data"].split()[0]) for one in told if one["level"] == "notice")
    assert lines[0] == "line 0" and 200 <= len(lines) < 4000 and len(lines) + left_out == 5000


def test_a_long_line_is_cut(client):
    client.call("long_line")
    assert [len(one["data"]) for one in client.taken("notifications/message")] == [4096]


# ---- approval


def asking(place, answer=None, **options):
    client = start(place)
    client.answers["elicitation/create"] = answer
    client.initialize(options.pop("version", "2025-11-25"), {"elicitation": {}}, **options)
    return client


def test_a_person_is_asked_what_would_run_and_says_yes(place):
    with asking(place) as client:
        call = client.post_call("asks", {"text": 'x"\n\u202e\x1b[2J'})
        question = client.wait_request("elicitation/create")
        params = question["params"]
        assert params["mode"] == "form" and params["requestedSchema"]["required"] == ["approve"]
        assert params["requestedSchema"]["properties"]["approve"]["type"] == "boolean"
        message = params["message"]
        assert 'Tool: "asks"' in message and '"printf"' in message and 'Network: "none"' in message
        assert "\u202e" not in message and "\x1b" not in message and "\\u{202e}" in message
        assert not client.has_answer(call)
        client.respond(question, {"action": "accept", "content": {"approve": True}})
        assert text_of(client.result(call)) == ['x"\n\u202e\x1b[2J']


@pytest.mark.parametrize("answer", [
    {"action": "decline"}, {"action": "cancel"}, {"action": "accept"}, {"action": "accept", "content": {}},
    {"action": "accept", "content": {"approve": False}}, {"action": "accept", "content": {"approve": "true"}},
    {"action": "decline", "content": {"approve": True}}, {"approve": True}, {}, "error"])
def test_anything_but_a_clear_yes_is_no(asked, answer):
    def say(_):
        if answer == "error":
            raise RpcError({"code": -1, "message": "no form here"})
        return answer
    asked.answers["elicitation/create"] = say
    result = asked.call("asks", {"text": "x"})
    assert result["isError"] and meta(result)["verdict"] == "denied" and text_of(result)[0].startswith("denied: ")
    assert asked.call("quiet")["isError"] is False


@pytest.fixture(scope="module", name="asked")
def fixture_asked(place):
    """A server whose client can be asked."""
    with asking(place) as client:
        yield client


def test_a_client_without_the_capability_is_not_asked(client):
    result = client.call("asks", {"text": "x"})
    assert meta(result)["verdict"] == "denied" and "nobody to ask" in text_of(result)[0]
    assert "an MCP client that supports elicitation" in " ".join(text_of(result))
    assert not [one for one in client.log if one.get("method") == "elicitation/create"]


def test_an_old_protocol_has_no_questions(place):
    with asking(place, version="2025-03-26") as client:
        assert meta(client.call("asks", {"text": "x"}))["verdict"] == "denied"


def test_an_answer_that_is_late_is_no(asked):
    asked.answers["elicitation/create"] = None
    call = asked.post_call("asks_shortly")
    question = asked.wait_request("elicitation/create")
    result = asked.result(call)
    assert meta(result)["verdict"] == "denied" and "within 300ms" in text_of(result)[0]
    assert asked.wait_notification("notifications/cancelled")["requestId"] == question["id"]
    asked.respond(question, {"action": "accept", "content": {"approve": True}})
    assert asked.call("quiet")["isError"] is False


def test_cancelling_takes_the_question_back(asked):
    asked.answers["elicitation/create"] = None
    call = asked.post_call("asks", {"text": "x"})
    question = asked.wait_request("elicitation/create")
    asked.notify("notifications/cancelled", {"requestId": call})
    assert asked.wait_notification("notifications/cancelled")["requestId"] == question["id"]
    asked.respond(question, {"action": "accept", "content": {"approve": True}})
    assert asked.call("quiet")["isError"] is False and not asked.has_answer(call)


def test_the_end_of_the_input_is_no_to_an_open_question(place):
    client = asking(place)
    call = client.post_call("asks", {"text": "x"})
    client.wait_request("elicitation/create")
    assert client.close() == 0
    assert meta(client.result(call))["verdict"] == "denied"


# ---- the journal


def test_replay_gives_what_was_recorded_and_runs_nothing(place, tmp_path):
    journal = ["--journal", tmp_path / "journal.db", "--session", "s1"]
    with start(place, *journal, journal=True) as client:
        client.initialize()
        first = [client.call("echo", {"text": "once"}), client.call("both"), client.call("files")]
        client.call("sleep", {"seconds": "0"})
    policy = write_policy(tmp_path, POLICY.replace("@", str(place)))
    with start(tmp_path, *journal, "--mode", "replay", journal=True) as client:
        client.initialize()
        again = [client.call("echo", {"text": "once"}), client.call("both"), client.call("files")]
        other = client.call("echo", {"text": "something else"})
    assert policy.exists()
    assert [text_of(result) for result in again[:2]] == [text_of(result) for result in first[:2]]
    assert [meta(result)["mode"] for result in again] == ["replay"] * 3
    assert len([text for text in text_of(again[2]) if "not kept here" in text]) == len(PAYLOAD)
    assert other["isError"] and meta(other)["verdict"] == "error"


def test_replay_tells_an_agent_no_names(place, tmp_path):
    journal = ["--journal", tmp_path / "journal.db", "--session", "s1", "--agent", "reader"]
    with start(place, *journal, journal=True) as client:
        client.initialize()
        client.call("echo", {"text": "once"})
    with start(place, *journal, "--mode", "replay", journal=True) as client:
        client.initialize()
        client.call("echo", {"text": "once"})
        for known in ("slow", "files", "not_callable"):
            assert refusal(client, known) == refusal(client, known[::-1]).replace(known[::-1], known)
