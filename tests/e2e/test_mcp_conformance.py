# SPDX-License-Identifier: Apache-2.0
"""The official conformance suite of MCP against `toolcage mcp --http`, with the tools of tests/mcp/conformance.toml."""

import json
import re

import pytest
from mcp_peers import NODE, PACKAGES, SCRIPTS, HttpServer, require_peers, run

SUITE = PACKAGES / "conformance" / "dist" / "index.js"

APPLIES = (
    "server-initialize", "logging-set-level", "ping", "completion-complete", "tools-list", "tools-call-simple-text",
    "tools-call-image", "tools-call-audio", "tools-call-embedded-resource", "tools-call-mixed-content",
    "tools-call-with-logging", "tools-call-error", "tools-call-with-progress", "tools-call-elicitation",
    "json-schema-2020-12", "server-sse-polling", "server-sse-multiple-streams", "resources-list", "prompts-list",
    "dns-rebinding-protection",
)

# The same table is in docs/mcp.md. One that passes all the same does not belong here.
NO_SAMPLING = "a caged tool cannot use the client's model; the server never asks for sampling"
ONE_QUESTION = "the server asks one question only, whether a call may run; a tool cannot show forms of its own"
OWN_RESOURCES = "wants a resource with a `test://` address; the resources here are `toolcage://`"
OWN_PROMPT = "wants a prompt with a name of the suite's; the prompt here is `toolcage`"
DOES_NOT_APPLY = {
    "tools-call-sampling": NO_SAMPLING,
    "elicitation-sep1034-defaults": ONE_QUESTION,
    "elicitation-sep1330-enums": ONE_QUESTION,
    "resources-read-text": OWN_RESOURCES,
    "resources-read-binary": OWN_RESOURCES,
    "resources-templates-read": OWN_RESOURCES,
    "resources-subscribe": OWN_RESOURCES,
    "resources-unsubscribe": OWN_RESOURCES,
    "prompts-get-simple": OWN_PROMPT,
    "prompts-get-with-args": OWN_PROMPT,
    "prompts-get-embedded-resource": OWN_PROMPT,
    "prompts-get-with-image": OWN_PROMPT,
}


@pytest.fixture(scope="module")
def checks(tmp_path_factory):
    """{scenario: its checks}, of one run of the whole suite against one server."""
    require_peers()
    folder = tmp_path_factory.mktemp("conformance")
    with HttpServer("--policy", SCRIPTS / "conformance.toml", "--no-token", "--journal", folder / "journal.db") as server:
        done = run([NODE, SUITE, "server", "--url", server.url, "--suite", "all", "-o", folder / "results"], timeout=120)
    found = {}
    for path in (folder / "results").glob("server-*/checks.json"):
        name = re.fullmatch(r"server-(.+?)-\d{4}-\d\d-\d\dT.*", path.parent.name)[1]
        found[name] = json.loads(path.read_text(encoding="utf-8"))
    assert found, done.stdout + done.stderr
    return found


def problems(checks):
    """A warning counts, as it does for the suite."""
    return [f"{one['id']}: {one.get('errorMessage') or one.get('description')}"
            for one in checks if one["status"] in ("FAILURE", "WARNING")]


def test_the_tables_name_every_scenario_of_the_suite(checks):
    assert not set(APPLIES) & set(DOES_NOT_APPLY)
    assert set(checks) == {*APPLIES, *DOES_NOT_APPLY}


@pytest.mark.parametrize("scenario", APPLIES)
def test_scenario_passes(checks, scenario):
    assert problems(checks[scenario]) == []
    assert any(one["status"] == "SUCCESS" for one in checks[scenario]), "nothing was checked"


@pytest.mark.parametrize("scenario", DOES_NOT_APPLY)
def test_scenario_that_does_not_apply_does_not_pass_by_chance(checks, scenario):
    assert problems(checks[scenario]), "it passes: move it to APPLIES, here and in docs/mcp.md"


def test_the_documented_table_is_this_one(repo):
    text = (repo / "docs" / "mcp.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([a-z0-9-]+)` \| (wants .*|a caged .*|the server .*) \|$", text, re.M))
    assert rows == DOES_NOT_APPLY
    assert f"{len(APPLIES)} of {len(APPLIES) + len(DOES_NOT_APPLY)}" in text
