# SPDX-License-Identifier: Apache-2.0
"""MCP clients that nobody here wrote, over both transports: the TypeScript SDK, the Python SDK, the inspector."""

import json
import os
import time

import pytest
from conftest import TIME_SCALE
from mcp_client import write_policy
from mcp_peers import NODE, PACKAGES, HttpServer, environment, javascript, python, require_peers, run, stdio

INSPECTOR = PACKAGES / "inspector" / "clients" / "launcher" / "build" / "index.js"
SLEEP = f"31.{os.getpid()}"  # an argument by which the sleeping tool is found from outside

POLICY = f"""
version = 1

[defaults]
backend = "jail"
memory  = "64MB"

[tool.greet]
description = "Greets somebody"
command     = ["echo", "hello", "{{name}}"]
parameters  = {{ type = "object", required = ["name"], properties = {{ name = {{ type = "string" }} }} }}

[tool.shape]
description = "Gives back its arguments as an object"
command     = ["cat"]
parameters  = {{ type = "object" }}
returns     = {{ type = "object", required = ["sides"], properties = {{ sides = {{ type = "integer" }} }} }}

[tool.fails]
description = "Fails, and says so"
command     = ["sh", "-c", "echo no such thing >&2; exit 3"]

[tool.steps]
description = "Shows how far it is"
command     = ["sh", "-c", "for part in 10 60 100; do echo $part% >&2; sleep 0.15; done; echo done"]

[tool.sleeps]
description = "Shows a percentage, then sleeps for longer than anybody waits"
command     = ["sh", "-c", "echo 1% >&2; sleep {SLEEP}"]
timeout     = "60s"

[tool.careful]
description = "Runs only when a person says yes"
command     = ["echo", "did", "{{what}}"]
parameters  = {{ type = "object", required = ["what"], properties = {{ what = {{ type = "string" }} }} }}
approval    = "ask"

[tool.draws]
description = "Brings a picture back"
command     = ["sh", "-c", "printf '\\\\211PNG\\\\r\\\\n\\\\032\\\\n' > /tmp/a.png"]
outputs     = ["/tmp/*.png"]
"""

YES = {"action": "accept", "content": {"approve": True}}
NO = {"action": "decline"}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """served["stdio"], served["http"]: where the policy's tools are."""
    require_peers()
    folder = tmp_path_factory.mktemp("clients")
    policy = write_policy(folder, POLICY)
    with HttpServer("--policy", policy, "--journal", folder / "http.db") as server:
        assert server.token, f"a token is made by default: {server.said}"
        yield {"stdio": stdio("mcp", "--policy", policy, "--journal", folder / "stdio.db"), "http": server.target()}


def asleep():
    """Is the sleeping tool still there?"""
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                if file.read() == b"sleep\0" + SLEEP.encode() + b"\0":
                    return True
        except OSError:
            continue
    return False


def assert_killed():
    end = time.monotonic() + 30 * TIME_SCALE
    while asleep() and time.monotonic() < end:
        time.sleep(0.05)
    assert not asleep(), "a cancelled call goes on"


def text_of(answer):
    return "".join(part["text"] for part in answer["result"]["content"] if part["type"] == "text")


def call(name, arguments=None, word="callTool", **more):
    return {"do": word, "with": {"name": name, "arguments": arguments or {}}, **more}


# What both SDKs do; the names of their methods differ.
JAVASCRIPT = {"tools": "listTools", "call": "callTool", "resources": "listResources", "read": "readResource",
              "templates": "listResourceTemplates", "prompts": "listPrompts", "prompt": "getPrompt"}
PYTHON = {"tools": "list_tools", "call": "call_tool", "resources": "list_resources", "read": "read_resource",
          "templates": "list_resource_templates", "prompts": "list_prompts", "prompt": "get_prompt"}


def steps_for(words):
    return {
        "tools": {"do": words["tools"]},
        "greet": call("greet", {"name": "a 'quoted' \u00fc\U0001f600\n"}, words["call"]),
        "shape": call("shape", {"sides": 4}, words["call"]),
        "misshape": call("shape", {"sides": "four"}, words["call"]),
        "fails": call("fails", None, words["call"]),
        "invalid": call("greet", {"nobody": 1}, words["call"]),
        "unknown": call("no_such_tool", None, words["call"]),
        "steps": call("steps", None, words["call"], progress=True),
        "draws": call("draws", None, words["call"]),
        "together": {"do": "together", "steps": [call("greet", {"name": f"n{i}"}, words["call"]) for i in range(6)]},
        "sleeps": call("sleeps", None, words["call"], cancel_on_progress=True),
        "careful": call("careful", {"what": "\x1b[2Jthat"}, words["call"]),
        "resources": {"do": words["resources"], "with": {}},
        "templates": {"do": words["templates"], "with": {}},
        "read": {"do": words["read"], "with": {"uri": "toolcage://tools"}},
        "read_unknown": {"do": words["read"], "with": {"uri": "toolcage://no/such"}},
        "prompts": {"do": words["prompts"], "with": {}},
        "prompt": {"do": words["prompt"], "with": {"name": "toolcage"}},
        "alive": call("greet", {"name": "again"}, words["call"]),
    }


@pytest.fixture(scope="module", params=["javascript stdio", "javascript http", "python stdio", "python http"])
def session(request, served):
    """One session of one client: {step: its answer} and what it was asked."""
    language, transport = request.param.split()
    steps = steps_for(JAVASCRIPT if language == "javascript" else PYTHON)
    client = javascript if language == "javascript" else python
    said = client(served[transport], list(steps.values()), elicit=YES)
    return said | {"answers": dict(zip(steps, said["results"]))}


def test_tools_are_listed_with_their_schemas(session):
    tools = {tool["name"]: tool for tool in session["answers"]["tools"]["result"]["tools"]}
    assert set(tools) == {"greet", "shape", "fails", "steps", "sleeps", "careful", "draws"}
    assert tools["greet"]["inputSchema"]["required"] == ["name"]
    assert tools["shape"]["outputSchema"]["required"] == ["sides"]
    assert all(tool["description"] and "annotations" in tool for tool in tools.values())


def test_call_gets_exactly_its_argument(session):
    assert text_of(session["answers"]["greet"]) == "hello a 'quoted' \u00fc\U0001f600\n\n"
    assert not session["answers"]["greet"]["result"].get("isError")


def test_structured_result_passes_the_clients_own_check(session):
    """Both SDKs check structuredContent against outputSchema themselves."""
    result = session["answers"]["shape"]["result"]
    assert result["structuredContent"] == {"sides": 4}
    assert json.loads(text_of(session["answers"]["shape"])) == {"sides": 4}


def test_result_that_breaks_its_contract_is_an_error_for_the_model(session):
    result = session["answers"]["misshape"]["result"]
    assert result["isError"] and "invalid_output" in text_of(session["answers"]["misshape"])


def test_failures_are_results_with_the_reason(session):
    answer = session["answers"]["fails"]
    assert answer["result"]["isError"] and "no such thing" in text_of(answer) and "failed" in text_of(answer)
    answer = session["answers"]["invalid"]
    assert answer["result"]["isError"] and "invalid_input" in text_of(answer) and "name" in text_of(answer)


def test_unknown_tool_is_an_error_of_the_protocol(session):
    assert session["answers"]["unknown"]["error"]["code"] == -32602


def test_percentages_arrive_as_progress(session):
    said = session["answers"]["steps"]["progress"]
    assert [one["progress"] for one in said] == sorted({one["progress"] for one in said})
    # On a slow machine, seconds come first: they have no total.
    percentages = [one["progress"] for one in said if one.get("total")]
    assert len(percentages) >= 2 and set(percentages) <= {10, 60, 100}
    assert all(one["total"] == 100 for one in said if one.get("total"))


def test_picture_arrives_as_image_content(session):
    image, = [part for part in session["answers"]["draws"]["result"]["content"] if part["type"] == "image"]
    assert image["mimeType"] == "image/png" and image["data"] == "iVBORw0KGgo="


def test_calls_of_one_session_run_together(session):
    answers = session["answers"]["together"]["result"]
    assert [text_of(answer) for answer in answers] == [f"hello n{i}\n" for i in range(6)]


def test_cancelled_call_is_killed(session):
    assert "error" in session["answers"]["sleeps"]
    assert session["answers"]["sleeps"]["ms"] < 15000 * TIME_SCALE
    assert_killed()


def test_person_is_asked_with_what_would_run(session):
    asked, = session["elicited"]
    assert "careful" in asked["message"] and "that" in asked["message"] and "\x1b" not in asked["message"]
    assert asked["requestedSchema"]["properties"]["approve"]["type"] == "boolean"
    assert text_of(session["answers"]["careful"]) == "did \x1b[2Jthat\n"


def test_resources_are_listed_and_read(session):
    answers = session["answers"]
    assert "toolcage://tools" in {one["uri"] for one in answers["resources"]["result"]["resources"]}
    assert any("{name}" in one["uriTemplate"] for one in answers["templates"]["result"]["resourceTemplates"])
    content, = answers["read"]["result"]["contents"]
    assert content["uri"] == "toolcage://tools" and "greet" in json.dumps(json.loads(content["text"]))
    assert answers["read_unknown"]["error"]["code"] == -32002


def test_prompt_names_the_tools(session):
    assert [one["name"] for one in session["answers"]["prompts"]["result"]["prompts"]] == ["toolcage"]
    assert "greet" in json.dumps(session["answers"]["prompt"]["result"]["messages"])


def test_session_works_after_all_that(session):
    assert text_of(session["answers"]["alive"]) == "hello again\n"


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_no_is_a_denial(served, transport):
    said = javascript(served[transport], [call("careful", {"what": "that"})], elicit=NO)
    assert said["results"][0]["result"]["isError"] and "denied" in text_of(said["results"][0])


def test_client_that_cannot_ask_gets_a_denial(served):
    said = javascript(served["stdio"], [call("careful", {"what": "that"})])
    assert said["results"][0]["result"]["isError"] and "denied" in text_of(said["results"][0])


# ---- the inspector -----------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["stdio", "http"])
def inspect(request, served, tmp_path_factory):
    """inspect("--method", ...): the inspector's command line; returns the JSON that it prints."""
    folder = tmp_path_factory.mktemp("inspector")
    server = served[request.param]
    if request.param == "http":
        server = {"type": "streamable-http", "url": server["url"],
                  "headers": {"Authorization": f"Bearer {server['token']}"}}
    (folder / "servers.json").write_text(json.dumps({"mcpServers": {"toolcage": server}}), encoding="utf-8")

    def ask(*args):
        done = run([NODE, INSPECTOR, "--cli", "--config", folder / "servers.json", "--server", "toolcage", "--format",
                    "json", "-q", *args], env=environment(HOME=str(folder), MCP_INSPECTOR_SECRET_STORE="memory"))
        return done.returncode, done.stdout, done.stderr

    return ask


def test_inspector_finds_nothing_wrong_with_the_tools(inspect):
    status, out, err = inspect("--method", "tools/list", "--strict")
    assert status == 0, err
    assert "greet" in out and "careful" in out


def test_inspector_calls_a_tool(inspect):
    status, out, err = inspect("--method", "tools/call", "--tool-name", "greet", "--tool-arg", "name=inspector")
    assert status == 0, err
    assert "hello inspector" in out
