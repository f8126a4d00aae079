# SPDX-License-Identifier: Apache-2.0
"""Resources, prompts and completion of `toolcage mcp`: what a client may read, and what it may not."""

import base64
import fcntl
import json
import os
import signal
import stat
import time
from pathlib import Path

import pytest
from mcp_client import McpClient, RpcError, write_policy

POLICY = """
version = 1
[tool.hello]
description = "Say hello"
command = ["echo", "hello"]
env = { API_KEY = "a-secret-value" }
[tool.make]
description = "Make files"
command = ["sh", "-c", "cd /tmp; echo a text > a.txt; printf '\\\\0\\\\377' > b.bin; mkdir d; echo 1 > 'd/ ü%.json'"]
outputs = ["/tmp/**"]
[tool.many]
command = ["sh", "-c", "i=0; while [ $i -lt 100 ]; do : > /tmp/$i; i=$((i+1)); done"]
outputs = { globs = ["/tmp/*"], max_files = 100 }
[tool.other]
description = "Not for kim"
command = ["true"]
[agent.kim]
grants = ["hello", { tool = "make", timeout = "7s", max_calls = 100 }]
[agent.lee]
grants = ["other"]
"""


@pytest.fixture(name="open_client")
def fixture_open_client(build_dir, tmp_path, must_work):  # pylint: disable=unused-argument
    """open_client("--agent", "kim"): an initialized client of a server with POLICY, ended after the test."""
    clients = []
    policy = write_policy(tmp_path, POLICY)
    (tmp_path / "tmp").mkdir()

    def start(*args, version="2025-11-25", text=None, journal=True):
        if text is not None:
            write_policy(tmp_path, text)
        journal = ["--journal", tmp_path / "journal.db"] if journal else ["--no-journal"]
        client = McpClient().start(["mcp", "--policy", policy, *journal, *args], env={"TMPDIR": str(tmp_path / "tmp")})
        clients.append(client)
        client.initialize(version)
        return client

    yield start
    for client in clients:
        if client.process.poll() is None:
            client.close()


def call(client, must_work, tool):
    """A call that must work; returns its _meta."""
    result = client.call(tool)
    meta = result["_meta"]["toolcage"]
    if meta["verdict"] == "error":
        must_work("jail", meta["reason"])
    assert meta["verdict"] == "ok", result
    return meta


def uris(client):
    return [entry["uri"] for entry in client.request("resources/list")["resources"]]


def read(client, uri):
    """The one content of a resource."""
    (content,) = client.request("resources/read", {"uri": uri})["contents"]
    assert content["uri"] == uri
    return content


def refused(client, method, params):
    """The code of the error."""
    with pytest.raises(RpcError) as caught:
        client.request(method, params)
    return caught.value.code


def stores(tmp_path):
    return sorted((tmp_path / "tmp").glob("toolcage-mcp-*"))


# ---- what is there -------------------------------------------------------------------------------


def test_owner_reads_the_policy_but_not_the_values_of_its_environment(open_client):
    client = open_client()
    assert uris(client) == ["toolcage://policy", "toolcage://tools", "toolcage://session/journal"]
    policy = read(client, "toolcage://policy")
    assert policy["mimeType"] == "application/toml"
    assert "[tool.other]" in policy["text"] and "API_KEY" in policy["text"]
    tools = json.loads(read(client, "toolcage://tools")["text"])
    assert [tool["name"] for tool in tools["tools"]] == ["hello", "make", "many", "other"]
    one = json.loads(read(client, "toolcage://tool/make")["text"])
    assert [tool["name"] for tool in one["tools"]] == ["make"]
    assert "a-secret-value" not in json.dumps(client.log)


def test_agent_reads_only_about_tools_that_it_holds_a_grant_for(open_client):
    client = open_client("--agent", "kim")
    assert "toolcage://policy" not in uris(client)
    text = read(client, "toolcage://tools")["text"]
    tools = {tool["name"]: tool for tool in json.loads(text)["tools"]}
    assert set(tools) == {"hello", "make"}
    assert tools["make"]["grants"] == [{"max_calls": 100, "timeout": "7s"}]
    for secret in ("other", "lee", "API_KEY", "printf"):
        assert secret not in text
    assert read(client, "toolcage://tool/hello")["mimeType"] == "application/json"
    answers = []
    for uri in ("toolcage://policy", "toolcage://tool/other", "toolcage://tool/nothing", "toolcage://nothing",
                "file:///etc/passwd"):
        with pytest.raises(RpcError) as caught:
            client.request("resources/read", {"uri": uri})
        assert caught.value.data == {"uri": uri}
        answers.append((caught.value.code, caught.value.message))
    assert set(answers) == {(-32002, "Resource not found")}  # one answer: nothing is learned from it


def test_without_a_journal_there_are_no_records_to_read(open_client):
    client = open_client(journal=False)
    assert "toolcage://session/journal" not in uris(client)
    templates = client.request("resources/templates/list")["resourceTemplates"]
    assert "toolcage://call/{call_id}" not in [entry["uriTemplate"] for entry in templates]
    assert refused(client, "resources/read", {"uri": "toolcage://session/journal"}) == -32002


@pytest.mark.parametrize("params", [
    None, {}, {"uri": 7}, {"uri": None}, {"uri": "x" * 5000}, {"uri": "toolcage://tools\0"}])
def test_wrong_uris_are_refused(open_client, params):
    assert refused(open_client(), "resources/read", params) in (-32600, -32602)


def test_titles_are_left_out_for_old_clients(open_client):
    old, new = open_client(version="2025-03-26"), open_client()
    for method, key in (("resources/list", "resources"), ("prompts/list", "prompts")):
        assert all("title" not in entry for entry in old.request(method)[key])
        assert all("title" in entry for entry in new.request(method)[key])


# ---- calls and files -----------------------------------------------------------------------------


def test_files_of_a_call_become_resources_of_the_session(open_client, must_work, tmp_path):
    client = open_client()
    meta = call(client, must_work, "make")
    client.wait_notification("notifications/resources/list_changed")
    files = {entry["name"]: entry for entry in client.request("resources/list")["resources"][3:]}
    assert set(files) == {"a.txt", "b.bin", " ü%.json"}
    assert files["b.bin"]["size"] == 2
    assert files[" ü%.json"]["uri"].endswith("/%20%C3%BC%25.json") and meta["call_id"] in files[" ü%.json"]["uri"]
    assert read(client, files["a.txt"]["uri"])["text"] == "a text\n"
    assert base64.b64decode(read(client, files["b.bin"]["uri"])["blob"]) == b"\0\xff"
    (store,) = stores(tmp_path)
    assert stat.S_IMODE(store.stat().st_mode) == 0o700
    assert client.close() == 0
    assert not stores(tmp_path)


def test_old_files_make_room_for_new_ones(open_client, must_work, tmp_path):
    """A model that calls a tool all day must not fill the disk."""
    client = open_client()
    calls = [call(client, must_work, "many")["call_id"] for _ in range(4)]
    listed, cursor = [], {}
    while cursor is not None:
        page = client.request("resources/list", cursor)
        listed += [entry["uri"] for entry in page["resources"] if entry["uri"].startswith("toolcage://file/")]
        cursor = {"cursor": page["nextCursor"]} if "nextCursor" in page else None
    assert [sum(call_id in uri for uri in listed) for call_id in calls] == [0, 0, 100, 100]
    (store,) = stores(tmp_path)
    assert sum(path.is_file() for path in store.rglob("*")) == 201  # and the lock
    assert read(client, listed[-1])["text"] == ""


def test_file_that_was_changed_or_replaced_by_a_link_is_not_given_out(open_client, must_work, tmp_path):
    client = open_client()
    call(client, must_work, "make")
    files = {entry["name"]: entry["uri"] for entry in client.request("resources/list")["resources"][3:]}
    (store,) = stores(tmp_path)
    (text,) = store.rglob("a.txt")
    text.write_text("b text\n")
    (binary,) = store.rglob("b.bin")
    binary.unlink()
    binary.symlink_to("/etc/passwd")
    for name in ("a.txt", "b.bin"):
        assert refused(client, "resources/read", {"uri": files[name]}) == -32603
    assert "root:" not in json.dumps(client.log)


def test_records_and_results_of_a_session_are_its_own(open_client, must_work):
    client, stranger = open_client("--agent", "kim"), open_client("--agent", "kim")
    call(client, must_work, "hello")
    with pytest.raises(RpcError):
        client.call("other")
    lines = [json.loads(line) for line in read(client, "toolcage://session/journal")["text"].splitlines()]
    assert [(line["tool"], line["verdict"]) for line in lines] == [("hello", "ok"), ("other", "denied")]
    assert lines[0]["request"]["arguments"] == {} and lines[0]["exit_code"] == 0
    result = read(client, f"toolcage://call/{lines[0]['call_id']}")
    assert json.loads(result["text"])["stdout"] == "hello\n"
    assert read(stranger, "toolcage://session/journal")["text"] == ""
    assert refused(stranger, "resources/read", {"uri": result["uri"]}) == -32002


def test_agents_that_share_a_session_do_not_read_each_other(open_client, must_work):
    kim, lee = (open_client("--agent", name, "--session", "shared") for name in ("kim", "lee"))
    call(kim, must_work, "hello")
    call(lee, must_work, "other")
    lines = [json.loads(line) for line in read(lee, "toolcage://session/journal")["text"].splitlines()]
    # Not even that there is a call of somebody else before it.
    assert [(line["tool"], line["step"]) for line in lines] == [("other", 1)]


def test_subscribers_are_told_and_others_are_not(open_client, must_work):
    client, silent = open_client(), open_client()
    for _ in range(2):  # once is enough, twice is no error
        assert client.request("resources/subscribe", {"uri": "toolcage://session/journal"}) == {}
    call(client, must_work, "hello")
    call(silent, must_work, "hello")
    assert client.wait_notification("notifications/resources/updated") == {"uri": "toolcage://session/journal"}
    assert client.request("resources/unsubscribe", {"uri": "toolcage://session/journal"}) == {}
    call(client, must_work, "hello")
    client.request("ping")
    silent.request("ping")
    assert not client.taken("notifications/resources/updated") and not silent.taken("notifications/resources/updated")
    for uri in ("toolcage://call/x", "toolcage://tool/hello", "test://x"):
        assert refused(client, "resources/subscribe", {"uri": uri}) == -32002


def test_changed_policy_is_told_to_subscribers(open_client, tmp_path):
    client = open_client()
    client.request("resources/subscribe", {"uri": "toolcage://policy"})
    write_policy(tmp_path, POLICY + '[tool.fresh]\ncommand = ["true"]\n')
    assert client.wait_notification("notifications/resources/updated") == {"uri": "toolcage://policy"}
    assert "[tool.fresh]" in read(client, "toolcage://policy")["text"]


# ---- prompts and completion ----------------------------------------------------------------------


def test_prompt_tells_of_the_tools_that_the_agent_has(open_client):
    client = open_client("--agent", "kim")
    (prompt,) = client.request("prompts/list")["prompts"]
    assert prompt["name"] == "toolcage" and [a["name"] for a in prompt["arguments"]] == ["tool"]

    def text(**arguments):
        (message,) = client.request("prompts/get", {"name": "toolcage", "arguments": arguments})["messages"]
        return message["content"]["text"]

    assert "hello: Say hello" in text() and "make: Make files" in text() and "other: " not in text()
    assert "hello: Say hello" in text(tool="hello") and "make: " not in text(tool="hello")
    assert refused(client, "prompts/get", {"name": "toolcage", "arguments": {"tool": "other"}}) == -32602
    assert refused(client, "prompts/get", {"name": "nothing"}) == -32602
    assert refused(client, "prompts/get", {"name": "toolcage", "arguments": {"tool": 1}}) == -32602


@pytest.mark.parametrize("reference, argument, expected", [
    ({"type": "ref/prompt", "name": "toolcage"}, {"name": "tool", "value": ""}, ["hello", "make"]),
    ({"type": "ref/prompt", "name": "toolcage"}, {"name": "tool", "value": "m"}, ["make"]),
    ({"type": "ref/resource", "uri": "toolcage://tool/{name}"}, {"name": "name", "value": "h"}, ["hello"]),
    ({"type": "ref/prompt", "name": "unknown"}, {"name": "tool", "value": ""}, []),
    ({"type": "ref/resource", "uri": "test://{x}"}, {"name": "x", "value": ""}, []),
    ({"type": "ref/prompt", "name": "toolcage"}, {"name": "tool", "value": "other"}, []),
])
def test_completion_knows_what_the_agent_may_see(open_client, reference, argument, expected):
    client = open_client("--agent", "kim")
    done = client.request("completion/complete", {"ref": reference, "argument": argument})["completion"]
    assert done == {"values": expected, "total": len(expected), "hasMore": False}


def test_completion_without_a_reference_is_refused(open_client):
    client = open_client()
    assert refused(client, "completion/complete", {"argument": {"name": "tool", "value": ""}}) == -32602
    assert refused(client, "completion/complete", {"ref": {"type": "ref/prompt"}}) == -32602


# ---- what is left behind -------------------------------------------------------------------------


def test_killed_server_leaves_a_store_that_the_next_one_removes(open_client, must_work, tmp_path):
    client, living = open_client(), open_client()
    call(client, must_work, "make")
    call(living, must_work, "make")
    client.process.send_signal(signal.SIGKILL)
    client.process.wait()
    assert len(stores(tmp_path)) == 2
    open_client()
    assert len(stores(tmp_path)) == 1
    assert living.request("resources/list")["resources"][3:]
    assert read(living, uris(living)[3])["text"] == "a text\n"


def test_planted_links_and_directories_of_others_survive_the_sweep(open_client, tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "lock").touch()
    (precious / "file").write_text("x")
    link = tmp_path / "tmp" / ("toolcage-mcp-" + "a" * 16)
    link.symlink_to(precious)
    inner = tmp_path / "tmp" / ("toolcage-mcp-" + "b" * 16)  # abandoned: goes, but not what its links name
    inner.mkdir()
    (inner / "lock").touch()
    (inner / "away").symlink_to(precious)
    young = tmp_path / "tmp" / ("toolcage-mcp-" + "c" * 16)  # no lock yet: in the making
    young.mkdir()
    old = tmp_path / "tmp" / ("toolcage-mcp-" + "d" * 16)
    old.mkdir()
    os.utime(old, (time.time() - 3600,) * 2)
    similar = tmp_path / "tmp" / "toolcage-mcp-mine"
    similar.mkdir()
    os.utime(similar, (time.time() - 3600,) * 2)
    pipe = tmp_path / "tmp" / ("toolcage-mcp-" + "e" * 16)
    pipe.mkdir()
    os.mkfifo(pipe / "lock")
    foreign = tmp_path / "tmp" / ("toolcage-mcp-" + "f" * 16)
    foreign.mkdir()
    (foreign / "lock").touch()
    if os.geteuid() == 0:
        os.chown(foreign, 65534, 65534)
    open_client()
    assert (precious / "file").read_text() == "x" and link.is_symlink()
    assert not inner.exists() and not old.exists()
    assert young.exists() and similar.exists() and pipe.exists()
    assert foreign.exists() is (os.geteuid() == 0)


def test_store_is_locked_as_long_as_the_server_lives(open_client, must_work, tmp_path):
    client = open_client()
    call(client, must_work, "make")
    (store,) = stores(tmp_path)
    with open(store / "lock", "rb") as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert Path(store).is_dir()
