# SPDX-License-Identifier: Apache-2.0
"""Attacks on the MCP server: a client that keeps an old policy in force, a yes that comes too late, half a policy, a tool
that changes its own policy, and what refusals tell."""

import datetime
import http.client
import json
import os
import re
import sqlite3
import subprocess
import time

import pytest

from conftest import TIME_SCALE
from mcp_client import McpClient, command, write_policy
from waiting import wait_until

HEAD = """version = 1
[defaults]
backend = "process"
network = "none"
timeout = "60s"
"""
TWO = HEAD + '[tool.one]\ncommand = ["echo", "one"]\n'
ASK = '[tool.ask]\ncommand = ["echo", "ran"]\napproval = "ask"\napproval_timeout = "60s"\n'
YES = {"action": "accept", "content": {"approve": True}}
IN_FORCE = "the new one is in force"


def start(policy, *args, journal=None, **options):
    """A server that has answered initialize. Questions are answered by the test."""
    client = McpClient().start(["mcp", "--policy", policy, *(["--journal", journal] if journal else ["--no-journal"]),
                                *args], **options)
    client.answers["elicitation/create"] = lambda _: None
    client.initialize(capabilities={"elicitation": {}})
    return client


def names(client):
    return [tool["name"] for tool in client.request("tools/list")["tools"]]


def replace(path, text):
    """As a good editor does."""
    new = path.with_name("new")
    new.write_text(text, encoding="utf-8")
    new.rename(path)


def first_text(message):
    """Of a result; or the message of an error."""
    return message["error"]["message"] if "error" in message else message["result"]["content"][0]["text"]


# ---- the old policy stays in force


def test_calls_that_wait_are_made_under_the_policy_of_their_beginning(tmp_path):
    """An agent fills its part of the workers; the owner takes a grant back; what waits in line is denied then."""
    text = HEAD + '[tool.slow]\ncommand = ["sleep", "50"]\n[tool.mark]\ncommand = ["echo", "MARK"]\n[agent.a]\ngrants = %s\n'
    policy = write_policy(tmp_path, text % '["slow", "mark"]')
    with start(policy, "--agent", "a") as client:
        slow = [client.post_call("slow") for _ in range(34)]
        waiting = client.post_call("mark")
        assert names(client) == ["slow", "mark"]
        replace(policy, text % '["slow"]')
        assert wait_until(lambda: names(client) == ["slow"]), client.stderr()
        later = client.post_call("mark")
        assert not client.has_answer(waiting)
        for identity in slow:
            client.notify("notifications/cancelled", {"requestId": identity})
        assert "Unknown tool" in first_text(client.wait_response(waiting))
        assert "Unknown tool" in first_text(client.wait_response(later))


def test_one_agent_does_not_get_all_workers(tmp_path):
    """24 of 32; the others wait, and begin when one is over."""
    policy = write_policy(tmp_path, HEAD + '[tool.slow]\ncommand = ["sh", "-c", "echo begun >&2; exec sleep 50"]\n')
    with start(policy) as client:
        calls = [client.post_call("slow") for _ in range(34)]
        def begun():
            return sum(m.get("method") == "notifications/message" and m["params"]["data"] == "begun" for m in client.log)
        assert wait_until(lambda: begun() >= 24), begun()
        time.sleep(0.5)
        assert begun() == 24
        for identity in calls[:10]:
            client.notify("notifications/cancelled", {"requestId": identity})
        assert wait_until(lambda: begun() == 34), begun()
        for identity in calls:
            client.notify("notifications/cancelled", {"requestId": identity})


def post(port, token, message, session=None, wait=True):
    """One message over HTTP: the answer and its headers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30 * TIME_SCALE)
    connection.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", **message}), {
        "Authorization": f"Bearer {token}", "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream", **({"Mcp-Session-Id": session} if session else {})})
    if not wait:
        return connection
    answer = connection.getresponse()
    return answer, answer.read().decode()


def open_session(port, token):
    """Its id."""
    answer, _ = post(port, token, {"id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}})
    session = answer.getheader("Mcp-Session-Id")
    post(port, token, {"method": "notifications/initialized"}, session)
    return session


def test_other_agents_get_through_while_one_fills_its_line(tmp_path):
    """Their calls do not stand behind those of the first."""
    policy = write_policy(tmp_path, HEAD + """[tool.slow]
command = ["sleep", "50"]
[tool.echo]
command = ["echo", "through"]
[agent.a]
grants = ["slow"]
[agent.b]
grants = ["echo"]
""")
    tokens = tmp_path / "tokens"
    tokens.write_text(f"a {'a' * 40}\nb {'b' * 40}\n", encoding="utf-8")
    tokens.chmod(0o600)
    client = McpClient().start(["mcp", "--http", "127.0.0.1:0", "--token-file", tokens, "--policy", policy, "--no-journal"])
    try:
        assert wait_until(lambda: re.search(r"http://127.0.0.1:(\d+)/", client.stderr())), client.stderr()
        port = int(re.search(r"http://127.0.0.1:(\d+)/", client.stderr()).group(1))
        slow, other = open_session(port, "a" * 40), open_session(port, "b" * 40)
        open_calls = [post(port, "a" * 40, {"id": i, "method": "tools/call", "params": {"name": "slow"}}, slow, False)
                      for i in range(1, 41)]
        time.sleep(0.5)
        begun = time.monotonic()
        _, text = post(port, "b" * 40, {"id": 1, "method": "tools/call", "params": {"name": "echo"}}, other)
        assert "through" in text and time.monotonic() - begun < 20 * TIME_SCALE
        for connection in open_calls:
            connection.close()
    finally:
        client.process.terminate()
        client.close()


@pytest.mark.parametrize("what", ["tool_is_gone", "grant_is_revoked"])
def test_a_yes_to_a_question_of_yesterday_is_none(tmp_path, what):
    """The policy, or the grant, has changed while the person thought."""
    journal = tmp_path / "journal.db"
    owner = what == "tool_is_gone"
    policy = write_policy(tmp_path, TWO + ASK + ("" if owner else "[agent.a]\ngrants = []\n"))
    grant = ["--policy", policy, "--journal", journal]
    if what == "grant_is_revoked":
        made = subprocess.run([command(), "grant", "add", "a", "ask", "--json", *grant], check=True, capture_output=True)
        identity = json.loads(made.stdout)["id"]
    with start(policy, *([] if owner else ["--agent", "a"]), journal=journal) as client:
        call = client.post_call("ask")
        question = client.wait_request("elicitation/create")
        if what == "tool_is_gone":
            replace(policy, TWO)
            assert wait_until(lambda: IN_FORCE in client.stderr())
        else:
            subprocess.run([command(), "grant", "revoke", identity, *grant], check=True, capture_output=True)
        client.respond(question, YES)
        text = first_text(client.wait_response(call))
        assert {"tool_is_gone": "denied: the policy changed while you were asked; call again",
                "grant_is_revoked": "Unknown tool"}[what] in text
        assert "ran" not in text.replace("grant", "")


def test_a_yes_under_a_grant_that_has_expired_meanwhile_is_none(tmp_path):
    """Where the server cannot even ask before the grant ends, another one lasts longer."""
    for seconds in (2, 8, 32):
        soon = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
        policy = write_policy(tmp_path, TWO + ASK + '[agent.a]\ngrants = [{ tool = "ask", expires = "%s" }]\n' %
                              soon.strftime("%Y-%m-%dT%H:%M:%SZ"))
        with start(policy, "--agent", "a") as client:
            call = client.post_call("ask")
            if wait_until(lambda: client.requests or client.has_answer(call)) is True:  # pylint: disable=cell-var-from-loop
                continue
            time.sleep(max(0, soon.timestamp() - time.time()) + 0.2)
            client.respond(client.wait_request("elicitation/create"), YES)
            text = first_text(client.wait_response(call))
            assert "expired at" in text and "ran" not in text.replace("grant", "")
            return
    pytest.fail("it does not ask")


def test_a_policy_that_changes_while_the_server_starts_is_noticed(tmp_path):
    """The journal is locked, so that it starts slowly."""
    journal, policy = tmp_path / "journal.db", write_policy(tmp_path, TWO + '[tool.two]\ncommand = ["echo", "two"]\n')
    start(policy, journal=journal).close()
    lock = sqlite3.connect(journal, isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    client = McpClient().start(["mcp", "--policy", policy, "--journal", journal])
    def has_begun():
        files = [os.readlink(f"/proc/{client.process.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{client.process.pid}/fd")]
        return str(journal) in files
    with client:
        assert wait_until(has_begun)
        replace(policy, TWO)
        lock.execute("ROLLBACK")
        client.initialize()
        assert wait_until(lambda: names(client) == ["one"]), client.stderr()
    lock.close()


# ---- changes that are not there yet, and those that are hard to see


def test_half_a_policy_does_not_come_into_force(tmp_path):
    """Somebody writes it in place and pauses; something else happens in the directory."""
    half = HEAD + '[tool.rm]\ncommand = ["echo", "ran"]\n'
    rest = '[tool.rm.parameters]\ntype = "object"\nrequired = ["x"]\n'
    policy = write_policy(tmp_path, half + rest)
    with start(policy) as client:
        with open(policy, "w", encoding="utf-8") as file:
            file.write(half)
            file.flush()
            (tmp_path / "other.json").touch()
            time.sleep(0.7 * TIME_SCALE)
            assert first_text(client.wait_response(client.post_call("rm"))).startswith("invalid_input")
            assert IN_FORCE not in client.stderr()
            file.write(rest + "# new\n")
        assert wait_until(lambda: IN_FORCE in client.stderr())
        assert first_text(client.wait_response(client.post_call("rm"))).startswith("invalid_input")


@pytest.mark.parametrize("which", ["directory", "middle", "hard"])
def test_a_change_behind_a_link_is_noticed(tmp_path, which):
    """A directory on the way is another one now; a link to a link; another name of the file."""
    before, after = TWO + '[tool.two]\ncommand = ["echo", "two"]\n', TWO
    for name, text in (("v1", before), ("v2", after)):
        (tmp_path / name).mkdir()
        write_policy(tmp_path / name, text)
    (tmp_path / "a").mkdir()
    if which == "directory":
        (tmp_path / "current").symlink_to("v1")
        policy, new = tmp_path / "current" / "policy.toml", "v2"
    elif which == "middle":
        (tmp_path / "current").symlink_to("v1/policy.toml")
        policy, new = tmp_path / "a" / "policy.toml", "v2/policy.toml"
        policy.symlink_to("../current")
    else:
        policy = tmp_path / "a" / "policy.toml"
        os.link(tmp_path / "v1" / "policy.toml", policy)
    with start(policy) as client:
        assert names(client) == ["one", "two"]
        if which == "hard":
            (tmp_path / "v1" / "policy.toml").write_text(after, encoding="utf-8")
        else:
            (tmp_path / "new").symlink_to(new)
            (tmp_path / "new").rename(tmp_path / "current")
        assert wait_until(lambda: names(client) == ["one"]), client.stderr()


def test_a_change_while_the_policy_is_read_is_noticed(tmp_path):
    """One that inotify does not see, in a policy so large that it is still being read again when the first answer
    comes: what was looked at after the reading is not what was read."""
    many = "".join(f'[tool.t{i}]\ncommand = ["true"]\n' for i in range(1500))
    for name, text in (("v1", TWO + many), ("v2", TWO)):
        (tmp_path / name).mkdir()
        write_policy(tmp_path / name, text)
    (tmp_path / "current").symlink_to("v1")
    (tmp_path / "new").symlink_to("v2")
    with start(tmp_path / "current" / "policy.toml") as client:
        (tmp_path / "new").rename(tmp_path / "current")
        assert wait_until(lambda: names(client) == ["one"]), client.stderr()


def test_calls_are_not_counted_anew_when_the_policy_is_loaded_again(tmp_path):
    """Without a journal, which would remember them."""
    policy = write_policy(tmp_path, TWO + '[agent.a]\ngrants = [{ tool = "one", max_calls = 1 }]\n')
    with start(policy, "--agent", "a") as client:
        assert first_text(client.wait_response(client.post_call("one"))) == "one\n"
        replace(policy, policy.read_text(encoding="utf-8") + "# new\n")
        assert wait_until(lambda: IN_FORCE in client.stderr())
        assert "has used its one call" in first_text(client.wait_response(client.post_call("one")))


# ---- a tool that changes its own policy


@pytest.mark.parametrize("way", ["link", "working_directory", "link_on_the_way", "other_name"])
def test_a_policy_that_a_tool_can_write_by_another_name_is_not_watched(tmp_path, way):
    """The tool writes it, and nothing comes of it until the next start."""
    place, other = tmp_path / "place", tmp_path / "other"
    place.mkdir()
    other.mkdir()
    host, policy = place, place / "policy.toml"
    if way == "link":
        host = tmp_path / "link"
        host.symlink_to(place)
    elif way == "working_directory":
        host = "/proc/self/cwd"
    elif way == "link_on_the_way":
        (other / "current").symlink_to(place)
        host, policy = other, other / "current" / "policy.toml"
    else:
        host = other
    write_policy(place, f"""version = 1
[tool.sh]
command = ["sh", "-c", "{{script}}"]
filesystem = {{ writable = [{{ host = "{host}", cage = "/w" }}] }}
parameters = {{ type = "object", properties = {{ script = {{ type = "string" }} }} }}
[tool.root]
command = ["echo", "ran"]
[agent.a]
grants = ["sh"]
""")
    if way == "other_name":
        os.link(policy, other / "name")
    with start(policy, "--agent", "a", cwd=place) as client:
        assert wait_until(lambda: "TC-L104" in client.stderr())
        replace(policy, policy.read_text(encoding="utf-8").replace('["sh"]', '["sh", "root"]'))
        time.sleep(0.7 * TIME_SCALE)
        assert "Unknown tool" in first_text(client.wait_response(client.post_call("root")))


def test_a_policy_beside_what_a_tool_can_write_is_watched(tmp_path):
    (tmp_path / "data").mkdir()
    text = f"""version = 1
[tool.one]
command = ["true"]
filesystem = {{ writable = ["{tmp_path}/data:/w"] }}
"""
    policy = write_policy(tmp_path, text)
    with start(policy) as client:
        write_policy(tmp_path, text + '[tool.three]\ncommand = ["true"]\n')
        assert wait_until(lambda: len(names(client)) == 2), client.stderr()


def test_a_policy_that_only_a_narrower_rule_covers_is_not_watched(tmp_path):
    """A tool waits until somebody replaces the policy. The kernel takes the cover off with the old file, and the tool writes
    the new one."""
    policy = write_policy(tmp_path, f"""version = 1
[tool.sh]
backend = "jail"
command = ["sh", "-c", "{{script}}"]
filesystem = {{ writable = ["{tmp_path}:/w"], readable = ["{tmp_path}/policy.toml:/w/policy.toml"] }}
parameters = {{ type = "object", properties = {{ script = {{ type = "string" }} }} }}
[tool.root]
command = ["echo", "ran"]
[agent.a]
grants = ["sh"]
""")
    script = ("touch /w/begun; until grep -q edited /w/policy.toml; do sleep 0.05; done; "
              "sed 's/^grants = .*/grants = [\"sh\", \"root\"]/' /w/policy.toml >/tmp/new; cat /tmp/new >/w/policy.toml; echo end")
    with start(policy, "--agent", "a") as client:
        call = client.post_call("sh", {"script": script})
        assert wait_until((tmp_path / "begun").exists)
        replace(policy, policy.read_text(encoding="utf-8") + "# edited\n")
        assert first_text(client.wait_response(call)).endswith("end\n")
        assert wait_until(lambda: "TC-L104" in client.stderr())
        time.sleep(0.7 * TIME_SCALE)
        assert "Unknown tool" in first_text(client.wait_response(client.post_call("root")))


# ---- what refusals tell, and what nobody can answer


def test_without_a_place_for_files_a_tool_that_is_not_granted_looks_like_none(tmp_path):
    """Nor does the client see paths of the host; all of it is recorded."""
    journal = tmp_path / "journal.db"
    policy = write_policy(tmp_path, HEAD + """[tool.files]
command = ["echo", "files"]
outputs = ["/tmp/*.txt"]
[tool.secret]
command = ["echo", "secret"]
outputs = ["/tmp/*.txt"]
[agent.a]
grants = ["files"]
""")
    with start(policy, "--agent", "a", "--session", "s", journal=journal, env={"TMPDIR": "/nonexistent"}) as client:
        answers = [client.wait_response(client.post_call(name)) for name in ("secret", "no_such", "files", "files")]
        secret, other = (json.dumps(answer["error"]) for answer in answers[:2])
        assert secret.replace("secret", "no_such") == other
        assert first_text(answers[2]).startswith("error: there is no place for the files")
        assert "/nonexistent" not in json.dumps(answers)
        assert wait_until(lambda: "/nonexistent" in client.stderr()) and client.stderr().count("/nonexistent") == 1
    shown = subprocess.run([command(), "journal", "show", "--journal", journal, "--json"], check=True, capture_output=True)
    rows = [(row["tool"], row["verdict"]) for row in json.loads(shown.stdout)["rows"]]
    assert rows == [("secret", "denied"), ("no_such", "denied"), ("files", "error"), ("files", "error")]


def test_after_the_end_of_the_input_nobody_is_waited_for(tmp_path):
    """The answer cannot come: nobody is asked, or, if the end was seen a moment later, the question is taken back."""
    policy = write_policy(tmp_path, TWO + ASK.replace("60s", "600s"))
    text = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in (
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
                                                    "clientInfo": {"name": "x", "version": "1"}}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "ask"}}))
    run = subprocess.run([command(), "mcp", "--policy", policy, "--no-journal"], input=text, capture_output=True, text=True,
                         timeout=20 * TIME_SCALE, check=True)
    assert "there is nobody to ask" in run.stdout or "was asked to approve the call, and did not" in run.stdout
    assert '"verdict":"denied"' in run.stdout
