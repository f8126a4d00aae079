# SPDX-License-Identifier: Apache-2.0
"""The published schemas: of policies, and of what explain and tools print.

A policy that the schema refuses must not load, and one that loads must not be refused: an editor that checks
with the schema must not tell a person something else than the program.
"""

import datetime
import json
import re
import subprocess
import tomllib

import jsonschema
import pytest
import yaml
from test_dump import examples, random_policy

pytestmark = pytest.mark.reading

PUBLISHED = ("policy", "explain", "grants", "tools")


def validator(repo, name):
    schema = json.loads((repo / "schemas" / f"{name}.json").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator(schema)


def as_json(value):
    """What a TOML or YAML reader made, as JSON would have it: dates are texts."""
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_json(item) for item in value]
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    return value


def read_policy(path):
    text = path.read_text(encoding="utf-8")
    return as_json(yaml.safe_load(text) if path.suffix in (".yaml", ".yml") else tomllib.loads(text))


def problems(validator_, value):
    return [f"{'/'.join(map(str, error.absolute_path))}: {error.message[:200]}" for error in validator_.iter_errors(value)]


@pytest.mark.parametrize("name", PUBLISHED)
def test_schema_is_a_schema(repo, name):
    schema = json.loads((repo / "schemas" / f"{name}.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"] and schema["description"] and schema["$id"].endswith(f"/{name}.json")


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_definition_is_used(repo, name):
    text = (repo / "schemas" / f"{name}.json").read_text(encoding="utf-8")
    defined, used = set(json.loads(text)["$defs"]), set(re.findall(r'"#/\$defs/(\w+)"', text))
    assert defined == used


# ---- policies ------------------------------------------------------------------------------------


def test_policy_schema_is_what_the_generator_prints(repo, build_dir):
    done = subprocess.run([build_dir / "src" / "toolcage-reference", "schema", repo / "schemas" / "policy.in.json"],
                          capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (repo / "schemas" / "policy.json").read_text(encoding="utf-8")


def test_schema_has_each_key_where_it_may_stand(repo, build_dir):
    done = subprocess.run([build_dir / "src" / "toolcage-reference", "markdown"],
                          capture_output=True, text=True, timeout=60, check=True)
    keys = dict(re.findall(r"^\| `(\w+)` \| ([\w, ]+?) \|", done.stdout, re.M))
    assert len(keys) > 25
    defs = json.loads((repo / "schemas" / "policy.json").read_text(encoding="utf-8"))["$defs"]
    for table, place, more in (("tool", "tool", {"isolation"}), ("defaults", "defaults", {"isolation"}),
                               ("grant_table", "grant", {"tool", "expires", "max_calls"})):
        expected = {key for key, where in keys.items() if place in where.split(", ")} | more
        assert set(defs[table]["properties"]) == expected
        assert defs[table]["additionalProperties"] is False
        assert all(value.get("description") for key, value in defs[table]["properties"].items() if key in keys)


@pytest.mark.parametrize("path", examples(), ids=lambda path: path.name)
def test_example_is_valid(repo, path):
    assert problems(validator(repo, "policy"), read_policy(path)) == []


def test_random_policies_are_valid(repo):
    """Each of them loads: test_dump.py shows it."""
    check = validator(repo, "policy")
    for seed in range(0, 300, 3):
        policy, text = random_policy(seed)
        assert problems(check, policy) == [], f"seed {seed}"
        assert as_json(tomllib.loads(text)) == policy, f"seed {seed}: the test's own TOML is wrong"


def test_normal_form_of_every_example_is_valid(repo, toolcage):
    check = validator(repo, "policy")
    for path in examples():
        assert problems(check, as_json(tomllib.loads(toolcage("dump", path).stdout))) == []


# Each is refused by both, as JSON (which YAML contains) so that one text serves the two readers.
TOOL = {
    "unknown key": {"timout": "5s"},
    "backend": {"backend": "docker"},
    "backend in capitals": {"backend": "JAIL"},
    "number without unit": {"timeout": 30},
    "text without unit": {"timeout": "30"},
    "unit without number": {"memory": "MB"},
    "unit of another kind": {"memory": "30s"},
    "unknown unit": {"memory": "1mb"},
    "negative": {"memory": "-1MB"},
    "space before": {"memory": " 1MB"},
    "boolean as text": {"system": "true"},
    "text as boolean": {"description": True},
    "no cores": {"cpu": 0},
    "too many cores": {"cpu": 100001},
    "cores as text": {"cpu": "1"},
    "no processes": {"pids": 0},
    "half a process": {"pids": 1.5},
    "too many files": {"files": 2147483648},
    "negative warm": {"warm": -1},
    "unlimited warm": {"warm": "unlimited"},
    "record": {"record": "hash"},
    "network word": {"network": "all"},
    "network boolean": {"network": False},
    "network text": {"network": "a.example:443"},
    "rule without port": {"network": ["a.example"]},
    "rule with a space": {"network": ["a example:443"]},
    "rule with a scheme": {"network": ["https://a.example:443"]},
    "bare wildcard": {"network": ["*:443"]},
    "inner wildcard": {"network": ["a.*.example:443"]},
    "rule is a number": {"network": [443]},
    "too many rules": {"network": [f"a{i}.example:1" for i in range(1001)]},
    "network limits word": {"network_limits": "unlimited"},
    "network limits key": {"network_limits": {"bytes": "1MB"}},
    "no connections": {"network_limits": {"connections": 0}},
    "connections as text": {"network_limits": {"connections": "5"}},
    "bytes without unit": {"network_limits": {"bytes_in": 5}},
    "no bytes": {"network_limits": {"bytes_out": "0B"}},
    "rate with a slash": {"network_limits": {"rate": "5MB/s"}},
    "inspect word": {"inspect": "none"},
    "inspect boolean": {"inspect": True},
    "filesystem word": {"filesystem": "all"},
    "filesystem list": {"filesystem": ["/data"]},
    "filesystem key": {"filesystem": {"read": ["/data"]}},
    "path is empty": {"filesystem": {"readable": [""]}},
    "path is a number": {"filesystem": {"readable": [1]}},
    "entry without host": {"filesystem": {"readable": [{"cage": "/x"}]}},
    "entry with another key": {"filesystem": {"readable": [{"host": "/x", "mode": "ro"}]}},
    "relative cage path": {"filesystem": {"readable": [{"host": "/x", "cage": "y"}]}},
    "relative cwd": {"filesystem": {"cwd": "x"}},
    "scratch number": {"filesystem": {"scratch": 5}},
    "too many paths": {"filesystem": {"readable": [f"/{i}" for i in range(1001)]}},
    "rootfs is empty": {"rootfs": ""},
    "image is an option": {"backend": "oci", "image": "--privileged"},
    "image with a space": {"backend": "oci", "image": "a b"},
    "profile": {"syscalls": "none"},
    "syscalls key": {"syscalls": {"permit": []}},
    "syscalls text": {"syscalls": {"allow": "read"}},
    "commands text": {"commands": "git"},
    "empty command name": {"commands": [""]},
    "capability": {"capabilities": ["fs_exec"]},
    "capabilities text": {"capabilities": "fs_read"},
    "hosts text": {"allowed_hosts": "a.example"},
    "allowed path": {"allowed_paths": [5]},
    "env list": {"env": []},
    "env name": {"env": {"1A": "x"}},
    "env value": {"env": {"A": 1}},
    "env_pass name": {"env_pass": ["A B"]},
    "command text": {"command": "ls -l"},
    "empty command": {"command": []},
    "command number": {"command": ["ls", 1]},
    "parameters list": {"parameters": []},
    "parameters number": {"parameters": 5},
    "outputs text": {"outputs": "/x"},
    "relative output": {"outputs": ["x/*"]},
    "outputs key": {"outputs": {"glob": ["/x"]}},
    "no output files": {"outputs": {"max_files": 0}},
    "mcp text": {"mcp": "wrap"},
    "mcp key": {"mcp": {"tool": ["x"]}},
    "mcp feature": {"mcp": {"features": ["tools"]}},
    "mcp tools text": {"mcp": {"tools": "x"}},
    "mcp empty tool": {"mcp": {"tools": [""]}},
    "mcp message number": {"mcp": {"message": 4000000}},
    "mcp message unlimited": {"mcp": {"message": "unlimited"}},
    "mcp no rate": {"mcp": {"rate": 0}},
    "mcp no calls": {"mcp": {"calls": 0}},
    "mcp too many calls": {"mcp": {"calls": 1025}},
    "mcp unlimited calls": {"mcp": {"calls": "unlimited"}},
    "mcp empty pin": {"mcp": {"pin": ""}},
    "engine": {"backend": "oci", "container": {"engine": "lxc"}},
    "runtime": {"backend": "oci", "container": {"runtime": "youki"}},
    "user": {"backend": "oci", "container": {"user": "-u 0"}},
    "privileged": {"backend": "oci", "container": {"privileged": True}},
    "mount key": {"backend": "oci", "container": {"mounts": [{"host": "/x", "type": "bind"}]}},
}
WHOLE = {
    "empty": {},
    "version": {"version": 2},
    "version text": {"version": "1"},
    "top key": {"tools": {}},
    "tools list": {"tool": []},
    "tool is a text": {"tool": {"t": "x"}},
    "tool name": {"tool": {"a b": {}}},
    "tool name too long": {"tool": {"a" * 65: {}}},
    "tool name begins with a dot": {"tool": {".a": {}}},
    "description in defaults": {"defaults": {"description": "x"}},
    "command in defaults": {"defaults": {"command": ["ls"]}},
    "agent key": {"agent": {"a": {"grant": []}}},
    "agent name": {"agent": {"a/b": {}}},
    "grants text": {"agent": {"a": {"grants": "t"}}},
    "grant is a number": {"agent": {"a": {"grants": [1]}}},
    "grant is empty": {"agent": {"a": {"grants": [""]}}},
    "grant without tool": {"agent": {"a": {"grants": [{"max_calls": 1}]}}},
    "grant with backend": {"agent": {"a": {"grants": [{"tool": "t", "backend": "jail"}]}}},
    "grant with true network": {"agent": {"a": {"grants": [{"tool": "t", "network": True}]}}},
    "grant with a limit of zero": {"agent": {"a": {"grants": [{"tool": "t", "network_limits": {"rate": "0B"}}]}}},
    "grant that inspects nothing": {"agent": {"a": {"grants": [{"tool": "t", "inspect": False}]}}},
    "grant with negative calls": {"agent": {"a": {"grants": [{"tool": "t", "max_calls": -1}]}}},
    "grant with a number as date": {"agent": {"a": {"grants": [{"tool": "t", "expires": 2027}]}}},
}
BAD = WHOLE | {f"tool: {name}": {"tool": {"t": tool}} for name, tool in TOOL.items()}


@pytest.mark.parametrize("name", BAD)
def test_bad_policy_is_refused_by_schema_and_program(repo, toolcage, tmp_path, name):
    policy = BAD[name]
    assert problems(validator(repo, "policy"), policy) != []
    path = tmp_path / "policy.yaml"
    path.write_text(json.dumps(policy), encoding="utf-8")
    done = toolcage("dump", path)
    assert (done.returncode, done.stdout) == (125, ""), done.stderr


def test_bad_tools_are_refused_in_defaults_too(repo):
    check = validator(repo, "policy")
    for name, tool in TOOL.items():
        if not {"description", "command", "parameters"} & set(tool):
            assert problems(check, {"defaults": tool}) != [], name


# ---- what is printed -----------------------------------------------------------------------------


def printed(toolcage, *args, status=0):
    done = toolcage(*args)
    assert (done.returncode, done.stderr) == (status, "")
    return json.loads(done.stdout)


@pytest.mark.parametrize("path", examples(), ids=lambda path: path.name)
def test_what_is_printed_about_an_example_is_valid(repo, toolcage, path):
    explanation = printed(toolcage, "explain", "--json", "--policy", path)
    assert problems(validator(repo, "explain"), explanation) == []
    assert explanation["file"] == str(path) and len(explanation["tools"]) >= 1
    tools = printed(toolcage, "tools", "--json", "--policy", path)
    assert problems(validator(repo, "tools"), tools) == []
    assert [tool["name"] for tool in tools["tools"]] == [tool["name"] for tool in explanation["tools"]]
    one = printed(toolcage, "explain", "--json", "--policy", path, tools["tools"][0]["name"])
    assert one["tools"] == explanation["tools"][:1]


def test_what_is_printed_about_random_policies_is_valid(repo, toolcage, tmp_path):
    explain, tools = validator(repo, "explain"), validator(repo, "tools")
    path = tmp_path / "policy.toml"
    for seed in range(0, 300, 6):
        path.write_bytes(random_policy(seed)[1].encode())
        assert problems(explain, printed(toolcage, "explain", "--json", "--policy", path)) == [], f"seed {seed}"
        assert problems(tools, printed(toolcage, "tools", "--json", "--policy", path)) == [], f"seed {seed}"


def test_explanation_has_each_key_and_clause(repo):
    """A key or a clause that is added to the tables has to be added to the schema."""
    defs = json.loads((repo / "schemas" / "explain.json").read_text(encoding="utf-8"))["$defs"]
    keys = re.findall(r'^X\(\w+, "(\w+)"', (repo / "src" / "policy" / "keys.def").read_text(), re.M)
    clauses = re.findall(r'^X\(\w+, "(\w+)"', (repo / "src" / "policy" / "clauses.def").read_text(), re.M)
    assert list(defs["settings"]["properties"]) == keys
    assert defs["tool"]["properties"]["clauses"]["items"]["enum"] == clauses


QUESTIONS = {
    "call": (("--call",), 0),
    "call by an agent": (("--call", "--agent", "researcher"), 0),
    "call by a stranger": (("--call", "--agent", "nobody"), 1),
    "reach": (("--reach", "api.example.com:443"), 0),
    "reach another": (("--reach", "other.example:443"), 1),
    "reach no host": (("--reach", "no host:443"), 1),
    "read": (("--read", "/tmp/x"), 0),
    "read secrets": (("--read", "/root/.ssh/id_rsa"), 0),  # of the image's own root
    "write": (("--write", "/tmp/x"), 0),
    "write the system": (("--write", "/etc/passwd"), 1),
    "read nothing": (("--read", "relative"), 1),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_decision_is_valid(repo, toolcage, name):
    args, status = QUESTIONS[name]
    decision = printed(toolcage, "explain", "--json", "--policy", repo / "examples" / "three-tools.toml", "web_fetch", *args,
                       status=status)
    assert problems(validator(repo, "explain"), decision) == []
    assert decision["allowed"] is (status == 0)
    assert decision["question"] == args[0].removeprefix("--")


BAD_ANSWERS = {
    "both kinds": {"file": "p", "tools": [], "question": "call"},
    "no fix": {"question": "call", "target": "", "allowed": False, "key": "grants", "reason": "no"},
    "a fix for a yes": {"question": "call", "target": "", "allowed": True, "key": "grants", "reason": "yes", "fix": "x"},
    "line without column": {"question": "call", "target": "", "allowed": True, "key": "grants", "reason": "yes", "line": 1},
    "unknown question": {"question": "ask", "target": "", "allowed": True, "key": "grants", "reason": "yes"},
    "tool without settings": {"file": "p", "tools": [{"name": "t", "line": 1, "column": 1, "clauses": [], "agents": []}]},
}


@pytest.mark.parametrize("name", BAD_ANSWERS)
def test_schema_of_answers_refuses_what_is_none(repo, name):
    """A schema that accepts everything would make the tests above worthless."""
    assert problems(validator(repo, "explain"), BAD_ANSWERS[name]) != []


def test_schema_of_explanations_looks_at_each_setting(repo, toolcage):
    """Every value, replaced by one of another type, is noticed; so is a place that is missing."""
    check = validator(repo, "explain")
    explanation = printed(toolcage, "explain", "--json", "--policy", repo / "examples" / "containers.toml")
    for tool in explanation["tools"]:
        for key, setting in tool["settings"].items():
            value = setting["value"]
            setting["value"] = {"wrong": 1} if key not in ("parameters", "returns") else 5
            if key == "env":
                setting["value"] = {"A": 1}
            assert problems(check, explanation) != [], key
            setting["value"] = value
            source = setting["source"]
            setting["source"] = "tool" if source == "built-in" else "built-in"
            assert problems(check, explanation) != [], key
            setting["source"] = source
    assert problems(check, explanation) == []
