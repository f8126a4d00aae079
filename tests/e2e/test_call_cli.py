# SPDX-License-Identifier: Apache-2.0
"""`toolcage call` and `toolcage tools`: contracts from the command line, and definitions for model APIs."""

import json
import signal
import subprocess

import jsonschema
import pytest


POLICY = """
version = 1
[tool.echo]
description = "Print \\u202e the words"
command     = ["printf", "<%s>", "{word}", "--more={more}", "--", "{rest...}"]
[tool.echo.parameters]
required = ["word"]
additionalProperties = false
properties = { word = { type = "string" }, more = { type = "integer" }, rest = { type = "array" } }
[tool.checked]
command = ["sh", "-c", "eval \\"$1\\"", "--", "{code}"]
parameters = { type = "object", properties = { code = { type = "string" } } }
returns = { type = "object", required = ["n"], properties = { n = { type = "integer", minimum = 0 } } }
[tool.free]
command = ["sh", "-c", "eval \\"$1\\"", "--", "{code}"]
[tool.input]
command = ["cat"]
[tool.list]
command = ["echo", "[]"]
returns = { type = "array" }
[tool.nothing_to_run]
memory = "100MB"
[agent.reader]
grants = ["echo", "list", { tool = "free", expires = "2001-01-01" }, "nothing_to_run"]
[agent.idle]
grants = []
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    directory = tmp_path_factory.mktemp("call")
    directory.chmod(0o755)
    (directory / "policy.toml").write_text(POLICY)
    return directory


@pytest.fixture(scope="module")
def environment(place):
    return {"TOOLCAGE_POLICY": str(place / "policy.toml"), "XDG_STATE_HOME": str(place / "state")}


@pytest.fixture(scope="module")
def run(toolcage, jail, place, environment):  # pylint: disable=unused-argument
    """Runs `toolcage VERB ...` with the policy; skips when this host cannot build a jail."""
    def call(*args, env=None, **options):
        return toolcage(*args, cwd=place, env=environment | (env or {}), **options)

    return call


@pytest.fixture(scope="module")
def result(run, repo):
    """The result of a call as JSON, checked against its schema."""
    schema = json.loads((repo / "schemas" / "result.json").read_text())

    def call(*args, **options):
        done = run("call", "--json", *args, **options)
        assert done.returncode == 0, done.stderr
        value = json.loads(done.stdout)
        jsonschema.validate(value, schema, jsonschema.Draft202012Validator)
        return value

    return call


# ---- what is printed ---------------------------------------------------------------------------


def test_streams_of_a_tool_without_returns_pass_through(run):
    done = run("call", "free", '{"code": "echo out; echo err >&2; exit 3"}')
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")


def test_checked_output_is_printed_once_it_is_known_to_be_good(run):
    code = r"""echo ' {"n": 1.0, "a": "\\u001b[31m"}'; echo err >&2"""
    done = run("call", "checked", json.dumps({"code": code}))
    assert (done.returncode, done.stdout, done.stderr) == (0, '{"a":"\\u001b[31m","n":1}\n', "err\n")


@pytest.mark.parametrize("code, reason", [
    ("echo secret", "not valid JSON"),
    ("echo '{\"n\": -1}'", "output/n must be at least 0"),
    ("echo '{\"n\": 1}'; echo '{\"n\": 2}'", "not valid JSON"),
    ("true", "printed nothing"),
])
def test_bad_output_does_not_get_to_stdout(run, code, reason):
    done = run("call", "checked", json.dumps({"code": code}))
    assert (done.returncode, done.stdout) == (125, "")
    assert "invalid_output" in done.stderr and reason in done.stderr


def test_output_of_a_checked_tool_that_failed_does_not_get_to_stdout(run):
    done = run("call", "checked", json.dumps({"code": "echo '{\"n\":1}'; exit 7"}))
    assert (done.returncode, done.stdout) == (7, "")


def test_json_has_the_output_as_a_value(result):
    value = result("checked", json.dumps({"code": "echo '{\"n\": 5}'"}))
    assert (value["verdict"], value["output"], value["stdout"]) == ("ok", {"n": 5}, '{"n": 5}\n')
    value = result("checked", json.dumps({"code": "echo 5"}))
    assert (value["verdict"], value["output"], value["stdout"]) == ("invalid_output", None, "5\n")
    value = result("free", json.dumps({"code": "echo 5"}))
    assert (value["verdict"], value["output"]) == ("ok", None)


def test_exit_code_with_json(run):
    done = run("call", "--json", "--exit-code", "echo", "{}")
    assert done.returncode == 125 and json.loads(done.stdout)["verdict"] == "invalid_input"


# ---- arguments ---------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments, reason", [
    ("{}", 'lacks the required property "word"'),
    ('{"word": 1}', "arguments/word must be a string"),
    ('{"word": "a", "more": 1.5}', "arguments/more"),
    ('{"word": "a", "other": 1}', "other"),
    ('{"word": "a", "word": "b"}', "duplicate"),
    ('{"word": "a", "more": 9007199254740993}', "too large to be exact"),
    ('["a"]', "not an object"),
    ("word", "not valid JSON"),
    ('{"word": "--version"}', 'begins with "-"'),
    ('{"word": "a\\u0000b"}', "NUL"),
])
def test_bad_arguments_start_nothing(run, arguments, reason):
    done = run("call", "echo", arguments)
    assert (done.returncode, done.stdout) == (125, "")
    assert "invalid_input" in done.stderr and reason in done.stderr and "fix:" in done.stderr


def test_arguments_are_data_whatever_is_in_them(run):
    word = "$(id) `id`\n'\"; rm -rf / \\ ‮ *"
    done = run("call", "echo", json.dumps({"word": word, "more": -1, "rest": ["-x", "--", 2, True]}))
    assert (done.returncode, done.stdout) == (0, f"<{word}><--more=-1><--><-x><--><2><true>")


@pytest.mark.parametrize("words", [(), ("-",)])
def test_arguments_from_standard_input(run, words):
    assert run("call", "echo", *words, input='{"word": "piped"}').stdout == "<piped><-->"


def test_arguments_without_a_placeholder_are_the_tools_standard_input(run):
    assert run("call", "input", ' {"b": [1.0, 2], "a": "x"} ').stdout == '{"a":"x","b":[1,2]}'
    assert run("call", "input").stdout == "{}"


@pytest.mark.parametrize("text, reason", [
    ("", "not valid JSON"),
    ('{"word": "' + "a" * (1 << 20) + '"}', "larger than 1 MiB"),
    ('{"word": ' + "[" * 100_000, "nested more than 128 deep"),
    ('{"word": "a"}\0{"more": 1}', "contain a NUL"),
], ids=["nothing", "too much", "too deep", "a NUL"])
def test_bad_standard_input(run, text, reason):
    done = run("call", "echo", "-", input=text)
    assert done.returncode == 125 and reason in done.stderr and done.stdout == ""


def test_policy_and_arguments_cannot_share_standard_input(run):
    done = run("call", "--policy", "-", "echo", "-", input=POLICY)
    assert done.returncode == 125 and "both the policy and the arguments" in done.stderr
    assert run("call", "--policy", "-", "echo", '{"word": "a"}', input=POLICY).stdout == "<a><-->"


# ---- who may call, and for how long ---------------------------------------------------------------


def test_agent_without_a_grant_learns_nothing(result):
    """Neither that the tool exists, nor what is wrong with the arguments."""
    answers = {json.dumps({key: value.replace(tool, "TOOL") for key, value in answer.items()})
               for tool in ("checked", "absent") for arguments in ("{}", "{", '{"code": 1}')
               for answer in [{key: result("--agent", "reader", tool, arguments)[key] for key in ("verdict", "reason", "fix")}]}
    assert len(answers) == 1 and "denied" in answers.pop()


def test_granted_tool_is_called_for_the_agent(result):
    value = result("--agent", "reader", "echo", '{"word": "a"}')
    assert (value["agent"], value["verdict"], value["stdout"]) == ("reader", "ok", "<a><-->")


def test_owner_is_told_that_there_is_no_such_tool_or_nothing_to_run(run):
    assert "absent" in run("call", "absent", "{}").stderr
    done = run("call", "nothing_to_run", "{}")
    assert done.returncode == 125 and "no command to run" in done.stderr and "toolcage exec --tool" in done.stderr


def test_limits_of_a_call(run):
    done = run("call", "--timeout", "300ms", "free", '{"code": "sleep 20"}')
    assert done.returncode == 124 and "timeout" in done.stderr


def test_signal_ends_the_call_and_its_cage(run, build_dir, clean_env, place, environment):
    process = subprocess.Popen([build_dir / "src" / "toolcage", "call", "free", '{"code": "echo ready; sleep 60"}'],
                               cwd=place, env=clean_env | environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    with process:
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 128 + signal.SIGINT


def test_usage(run, toolcage):
    assert "the tool's name is missing" in run("call").stderr
    assert "no policy is given" in toolcage("call", "echo", "{}", env={"TOOLCAGE_POLICY": ""}).stderr
    assert run("call", "echo", "{}", "x").returncode == 125


@pytest.mark.parametrize("word", ["--no-journal", "--journal=other.db", "--policy=evil.toml", "--out=out", "-oout", "--agent=reader",
                                  "--session=x", "--mode=replay", "--help", "--json", "--", "-x"])
def test_arguments_are_never_an_option(run, result, place, word):
    """A model writes them: it must not write the command line."""
    (place / "evil.toml").write_text('version = 1\n[tool.input]\ncommand = ["echo", "evil"]\n')
    value = result("--agent", "idle", "input", word)
    assert (value["verdict"], value["agent"], len(value["state_hash"])) == ("denied", "idle", 64)
    done = run("call", "input", word)
    assert (done.returncode, done.stdout) == (125, "") and "invalid_input" in done.stderr and "not valid JSON" in done.stderr
    assert not (place / "other.db").exists() and not (place / "out").exists()


def test_name_of_a_tool_is_never_an_option_behind_two_dashes(run):
    for name in ("--help", "--no-journal", "--policy=evil.toml", "--"):
        done = run("call", "--", name, "{}")
        assert (done.returncode, done.stdout) == (125, "") and "denied" in done.stderr and name in done.stderr


def test_options_come_before_the_tool(run):
    done = run("call", "echo", "{}", "--json")
    assert done.returncode == 125 and "remedy: options come before TOOL" in done.stderr
    done = run("call", "echo", "{}", "more")
    assert done.returncode == 125 and "remedy: remove it" in done.stderr


@pytest.mark.parametrize("words", [("--agent", "", "echo"), ("--agent", "\udcff", "echo"), ("",), ("\udcff\udcfe",), ("--session", "", "echo"),
                                   ("--agent", "idle", ""), ("--agent", "idle", "\udcff")])
def test_names_that_are_none_are_an_error_of_usage(run, words):
    done = run("call", "--json", *words, "{}")
    assert (done.returncode, done.stdout) == (125, "") and "the name of the" in done.stderr and "remedy:" in done.stderr


def test_option_does_not_take_what_follows_an_absent_argument(run):
    policy = """version = 1
[tool.pack]
command = ["printf", "<%s>", "-C", "{dir}", "--", "{files...}"]
"""
    words = ("call", "--policy", "-", "pack")
    done = run(*words, '{"files": ["--checkpoint-action=exec=id"]}', input=policy)
    assert (done.returncode, done.stdout) == (125, "") and "cannot be left out" in done.stderr
    assert run(*words, '{"dir": "d", "files": ["-x"]}', input=policy).stdout == "<-C><d><--><-x>"


def test_longest_argument_runs_and_a_longer_one_is_refused(result):
    """Up to what the kernel takes, in a real cage."""
    value = result("input", "-", input='{"x": "' + "a" * 200_000 + '"}')
    assert value["verdict"] == "ok"
    value = result("echo", "-", input='{"word": "' + "a" * 131071 + '"}')
    assert (value["verdict"], len(value["stdout"])) == ("ok", 131077)
    value = result("echo", "-", input='{"word": "' + "a" * 131072 + '"}')
    assert value["verdict"] == "invalid_input" and '"word" is too long' in value["reason"]
    items = json.dumps(["a" * 100_000] * 9)
    assert result("echo", "-", input='{"word": "a", "rest": ' + items + "}")["verdict"] == "ok"


# ---- definitions ---------------------------------------------------------------------------------

NAME = {"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,64}$"}
PARAMETERS = {"type": "object", "required": ["type", "properties"],
              "properties": {"type": {"const": "object"}, "properties": {"type": "object"},
                             "required": {"type": "array", "items": {"type": "string"}}}}


def shape(**members):
    return {"type": "object", "properties": members, "required": [name for name in members if name != "outputSchema"],
            "additionalProperties": False}


TEXT = {"type": "string"}
FLAG = {"type": "boolean"}
SHAPES = {
    "openai": {"type": "array", "items": shape(
        type={"const": "function"}, function=shape(name=NAME, description=TEXT, parameters=PARAMETERS))},
    "anthropic": {"type": "array", "items": shape(name=NAME, description=TEXT, input_schema=PARAMETERS)},
    "mcp": shape(tools={"type": "array", "items": shape(
        name=NAME, description=TEXT, inputSchema=PARAMETERS, outputSchema=PARAMETERS,
        annotations=shape(readOnlyHint=FLAG, destructiveHint=FLAG, idempotentHint=FLAG, openWorldHint=FLAG))}),
}


def definitions(run, form, *args):
    done = run("tools", "--format", form, *args)
    assert done.returncode == 0, done.stderr
    value = json.loads(done.stdout)
    return value["tools"] if isinstance(value, dict) else value


@pytest.mark.parametrize("form", SHAPES)
def test_definitions_have_the_shape_that_the_api_takes(run, form):
    done = run("tools", "--format", form)
    jsonschema.validate(json.loads(done.stdout), SHAPES[form], jsonschema.Draft202012Validator)
    assert "‮" not in done.stdout
    tools = definitions(run, form)
    names = [tool.get("name") or tool["function"]["name"] for tool in tools]
    assert names == ["echo", "checked", "free", "input", "list"]
    for tool in tools:
        parameters = tool.get("input_schema") or tool.get("inputSchema") or tool["function"]["parameters"]
        jsonschema.Draft202012Validator.check_schema(parameters)
    assert [name for name, tool in zip(names, tools) if "outputSchema" in tool] == (["checked"] if form == "mcp" else [])


@pytest.mark.parametrize("form", SHAPES)
def test_definitions_for_an_agent_are_those_it_may_call_now(run, form):
    assert len(definitions(run, form, "--agent", "reader")) == 2
    assert definitions(run, form, "--agent", "idle") == []
    assert definitions(run, form, "--agent", "nobody") == []


def test_definitions_for_an_agent_have_grants_of_the_journal(run, tmp_path):
    journal = tmp_path / "journal.db"
    added = run("grant", "add", "visitor", "input", "--journal", journal)
    assert added.returncode == 0, added.stderr
    assert [tool["name"] for tool in definitions(run, "mcp", "--agent", "visitor", "--journal", journal)] == ["input"]
    assert definitions(run, "mcp", "--agent", "visitor") == []


def test_own_form_follows_its_schema(run, repo):
    schema = json.loads((repo / "schemas" / "tools.json").read_text())
    for options in (("--json",), ("--format", "json")):
        value = json.loads(run("tools", *options).stdout)
        jsonschema.validate(value, schema, jsonschema.Draft202012Validator)
        assert [tool["name"] for tool in value["tools"] if not tool["callable"]] == ["nothing_to_run"]
    assert len(definitions(run, "json", "--agent", "reader")) == 3


@pytest.mark.parametrize("form, status", [("openai", 125), ("anthropic", 125), ("mcp", 0), ("json", 0)])
def test_name_that_an_api_does_not_take_is_said(run, form, status):
    done = run("tools", "--policy", "-", "--format", form, input='[tool."a.b"]\ncommand = ["true"]\n')
    assert done.returncode == status and ("a.b" in done.stderr) == bool(status) and (done.stdout == "") == bool(status)


@pytest.mark.parametrize("args, reason", [
    (("--format", "xml"), "no form"), (("--format", "sarif"), "no form"),
    (("--json", "--format", "mcp"), "both say"), (("--json", "--agent", "reader", "--journal", ""), "is empty"),
    (("--agent", "reader"), "--agent is for definitions"),
])
def test_usage_of_tools(run, args, reason):
    done = run("tools", *args)
    assert done.returncode == 125 and reason in done.stderr and done.stdout == ""
