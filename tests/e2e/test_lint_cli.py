# SPDX-License-Identifier: Apache-2.0
"""`toolcage lint` as a command: exit codes, formats, and what reaches a terminal."""

import json
import os
import pty
import re
import subprocess
import urllib.parse

import jsonschema
import pytest
from test_lint_docs import FILE_LEVEL, SECTIONS

CLEAN = 'version = 1\n[tool.a]\n[agent.x]\ngrants = ["a"]\n'
NOTE = 'version = 1\n[tool.a]\n'
WARNING = 'version = 1\n[tool.a]\n[tool.b]\n[agent.x]\ngrants = ["a"]\n'
ERROR = 'version = 1\n[tool.a]\nnetwork = "host"\n[agent.x]\ngrants = ["a"]\n'
BROKEN = 'version = 1\n[tool.a]\ntimeout = 5\nmemoory = "1MB"\n'

ESCAPE = "\x1b"


@pytest.fixture
def policy(tmp_path):
    """Writes a policy and returns its path."""

    def write(text, name="policy.toml"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8", newline="")
        return path

    return write


@pytest.fixture(scope="session")
def validator(repo):
    schema = json.loads((repo / "schemas" / "lint.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


# ---- exit codes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("text,plain,strict", [
    (CLEAN, 0, 0), (NOTE, 0, 0), (WARNING, 0, 1), (ERROR, 1, 1), (BROKEN, 125, 125), ("", 125, 125),
], ids=["clean", "note", "warning", "error", "broken", "empty"])
@pytest.mark.parametrize("options", [[], ["--json"], ["--format", "json"], ["--format=sarif"], ["--format", "human"]],
                         ids=" ".join)
def test_exit_code_is_the_same_in_every_format(toolcage, policy, text, plain, strict, options):
    path = policy(text)
    assert toolcage("lint", "--no-host", *options, path).returncode == plain
    assert toolcage("lint", "--no-host", "--strict", *options, path).returncode == strict


@pytest.mark.parametrize("text,name", [
    ("version = 1\n", "TC-L168"), ("version = 1\n[agent.x]\ngrants = []\n", "TC-L168"), ("version = 1\n[defaults]\n", "TC-L168"),
    ('version = 1\n[defaults]\ntimeout = "5s"\n', "TC-L162"),
    ('version = 1\n[defaults]\ntimeout = "5s"\n[agent.x]\ngrants = []\n', "TC-L168"),
], ids=["nothing", "agents", "empty defaults", "defaults for exec", "agents and defaults"])
def test_policy_without_tools_has_one_finding(toolcage, policy, text, name):
    found = json.loads(toolcage("lint", "--no-host", "--json", policy(text)).stdout)["findings"]
    assert [finding["id"] for finding in found] == [name] and "tools" in found[0]["message"]


@pytest.mark.parametrize("arguments", [
    [], ["--json", "--format", "human"], ["--format", "xml"], ["--format"], ["--strikt"], ["--json=yes"], ["a.toml", "b.toml"],
    ["--policy", "a.toml", "b.toml"], ["--json", "--json"], ["--format="],
], ids=" ".join)
def test_wrong_invocation_is_refused_with_a_remedy(toolcage, arguments):
    done = toolcage("lint", *arguments, env={"TOOLCAGE_POLICY": ""})
    assert (done.returncode, done.stdout) == (125, "")
    assert re.fullmatch(r"toolcage: error: .+\n    remedy: .+\n", done.stderr)


def test_misspelt_option_is_not_taken_for_a_file(toolcage, policy):
    policy(CLEAN)
    done = toolcage("lint", "--strct", "policy.toml")
    assert done.returncode == 125
    assert "did you mean --strict?" in done.stderr


def test_policy_comes_from_argument_option_or_environment(toolcage, policy):
    path = policy(CLEAN)
    expected = f"{path}: 0 errors, 0 warnings, 0 notes\n"
    assert toolcage("lint", "--no-host", path).stdout == expected
    assert toolcage("lint", "--no-host", "--policy", path).stdout == expected
    assert toolcage("lint", "--no-host", f"-p{path}").stdout == expected
    assert toolcage("lint", "--no-host", env={"TOOLCAGE_POLICY": str(path)}).stdout == expected
    # What is said beats what is inherited.
    assert toolcage("lint", "--no-host", path, env={"TOOLCAGE_POLICY": "/nonexistent"}).stdout == expected


def test_file_whose_name_begins_with_a_dash(toolcage, policy, tmp_path):
    policy(CLEAN, "--json")
    done = toolcage("lint", "--no-host", "--", "--json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "--json: 0 errors, 0 warnings, 0 notes\n")


def test_yaml_is_linted_like_toml(toolcage, policy):
    path = policy('version: 1\ntool:\n  a:\n    network: host\nagent:\n  x:\n    grants: [a]\n', "policy.yaml")
    done = toolcage("lint", "--no-host", path)
    assert done.returncode == 1
    assert done.stdout.startswith(f"{path}:4:14: error: ")
    assert "[TC-L120]" in done.stdout


# ---- the human format ----------------------------------------------------------------------------


def test_human_format_is_findings_and_a_summary(toolcage, policy):
    path = policy(ERROR + '[tool.b]\nmemory = "unlimited"\n[tool.c]\nnetwork = ["a.example.com:*"]\n')
    done = toolcage("lint", "--no-host", path)
    *lines, summary = done.stdout.splitlines()
    assert done.stderr == ""
    assert summary == f"{path}: 2 errors, 3 warnings, 0 notes"
    places = []
    for finding, remedy in zip(lines[::2], lines[1::2], strict=True):
        found = re.fullmatch(re.escape(str(path)) + r":(\d+):(\d+): (error|warning|note): (.+) \[(TC-L\d{3})\]", finding)
        assert found, finding
        assert re.fullmatch(r"    remedy: \S.*", remedy), remedy
        places.append((int(found[1]), int(found[2])))
    assert places == sorted(places)


def test_all_errors_of_a_broken_policy_are_reported_at_once(toolcage, policy):
    done = toolcage("lint", policy(BROKEN))
    assert re.findall(r"\[(TC-P\d+)\]", done.stderr) == ["TC-P014", "TC-P010"]
    assert 'did you mean "memory"?' in done.stderr


def test_place_counts_characters_and_not_bytes(toolcage, policy):
    done = toolcage("lint", "--no-host", "--json", policy('version = 1\n[tool.a]\ncommand = ["äöü€𝄞", "-c", "{x}"]\n'))
    places = {(finding["id"], finding["line"], finding["column"]) for finding in json.loads(done.stdout)["findings"]}
    assert ("TC-L152", 3, 27) in places


# ---- JSON ----------------------------------------------------------------------------------------


def documents():
    """(name, policy) of whatever has findings of some kind."""
    for name, section in SECTIONS.items():
        if name not in FILE_LEVEL:
            yield f"bad {name}", section.block("toml bad", "toml bad host")
            yield f"good {name}", section.block("toml good")
    for name, text in [("clean", CLEAN), ("note", NOTE), ("warning", WARNING), ("error", ERROR), ("broken", BROKEN)]:
        yield name, text


@pytest.mark.parametrize("text", [text for _, text in documents()], ids=[name for name, _ in documents()])
def test_document_is_what_the_schema_says(toolcage, policy, validator, text):
    path = policy(text)
    done = toolcage("lint", "--no-host", "--json", path)
    output, other = (done.stderr, done.stdout) if done.returncode == 125 else (done.stdout, done.stderr)
    assert other == ""
    assert output.endswith("}\n")
    document = json.loads(output)
    validator.validate(document)
    assert document["file"] == str(path)
    listed = [finding["severity"] for finding in document["findings"]]
    if "TC-P028" not in [finding["id"] for finding in document["findings"]]:
        assert [document["errors"], document["warnings"], document["notes"]] == [
            listed.count(severity) for severity in ("error", "warning", "note")]
    assert [finding for finding in document["findings"] if finding["line"] > len(text.split("\n"))] == []


@pytest.mark.parametrize("text", [CLEAN, NOTE, WARNING, ERROR, BROKEN], ids=["clean", "note", "warning", "error", "broken"])
def test_json_and_human_format_say_the_same(toolcage, policy, text):
    path = policy(text)
    human = toolcage("lint", "--no-host", path)
    document = toolcage("lint", "--no-host", "--json", path)
    findings = json.loads(document.stdout or document.stderr)["findings"]
    lines = [line for finding in findings for line in (
        f"{path}:{finding['line']}:{finding['column']}: {finding['severity']}: {finding['message']} [{finding['id']}]",
        f"    remedy: {finding['remedy']}")]
    assert (human.stdout or human.stderr).splitlines()[:len(lines)] == lines


@pytest.mark.parametrize("change", [
    lambda document: document.pop("file"),
    lambda document: document.update(errors=-1),
    lambda document: document.update(extra=1),
    lambda document: document["findings"][0].update(id="X"),
    lambda document: document["findings"][0].update(severity="fatal"),
    lambda document: document["findings"][0].update(line=0),
    lambda document: document["findings"][0].pop("column"),
    lambda document: document["findings"][0].update(remedy=""),
    lambda document: document["findings"][0].update(tool="two words"),
    lambda document: document["findings"][0].update(extra=1),
])
def test_schema_refuses_other_documents(toolcage, policy, validator, change):
    document = json.loads(toolcage("lint", "--no-host", "--json", policy(ERROR)).stdout)
    assert validator.is_valid(document)
    change(document)
    assert not validator.is_valid(document)


def test_more_than_100_errors_are_counted_but_not_listed(toolcage, policy, validator):
    path = policy("version = 1\n" + "".join(f'[tool.t{i}]\nnetwork = "host"\n' for i in range(150)))
    done = toolcage("lint", "--no-host", "--json", path)
    assert done.returncode == 1
    document = json.loads(done.stdout)
    validator.validate(document)
    assert document["errors"] == 150
    assert [finding["id"] for finding in document["findings"]].count("TC-L120") == 100
    assert [finding["id"] for finding in document["findings"]].count("TC-P028") == 1


def test_examples_of_the_tree_are_free_of_errors(toolcage, repo, validator):
    paths = sorted((repo / "examples").glob("*.toml")) + sorted((repo / "examples").glob("*.yaml"))
    assert paths
    for path in paths:
        done = toolcage("lint", "--no-host", "--json", path)
        assert done.returncode == 0, done.stdout + done.stderr
        validator.validate(json.loads(done.stdout))


# ---- SARIF ---------------------------------------------------------------------------------------


def check_sarif(log, table):
    """The rules of SARIF 2.1.0 for what lint uses of it. Returns the results."""
    assert log["version"] == "2.1.0"
    assert log["$schema"].startswith("https://") and "sarif-2.1.0" in log["$schema"]
    assert set(log) == {"$schema", "version", "runs"}
    assert len(log["runs"]) == 1
    run = log["runs"][0]
    assert set(run) <= {"tool", "results", "columnKind"}
    # 3.14.17: without it a consumer would count UTF-16 code units.
    assert run["columnKind"] == "unicodeCodePoints"
    driver = run["tool"]["driver"]
    assert driver["name"] and driver["version"]
    rules = driver["rules"]
    assert [rule["id"] for rule in rules] == list(table)
    for rule in rules:
        assert rule["shortDescription"]["text"] == table[rule["id"]][1]
        assert rule["defaultConfiguration"]["level"] == table[rule["id"]][0]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
        assert result["level"] == table[result["ruleId"]][0]
        assert result["message"]["text"]
        assert len(result["locations"]) == 1
        location = result["locations"][0]["physicalLocation"]
        assert location["artifactLocation"]["uri"]
        assert location["region"]["startLine"] >= 1
        assert location["region"]["startColumn"] >= 1
    return run["results"]


@pytest.fixture(scope="session")
def rules(build_dir):
    """{id: (severity, title)}."""
    lines = subprocess.run([build_dir / "src" / "toolcage-reference", "findings"], capture_output=True, text=True, check=True,
                           timeout=60).stdout
    return {name: (severity, title) for name, severity, title in (line.split("\t") for line in lines.splitlines())}


@pytest.mark.parametrize("text", [text for _, text in documents()], ids=[name for name, _ in documents()])
def test_sarif_holds_the_same_findings(toolcage, policy, rules, text):
    path = policy(text)
    done = toolcage("lint", "--no-host", "--format", "sarif", path)
    document = toolcage("lint", "--no-host", "--json", path)
    assert done.returncode == document.returncode
    if done.returncode == 125:
        assert done.stdout == ""
    results = check_sarif(json.loads(done.stdout or done.stderr), rules)
    findings = json.loads(document.stdout or document.stderr)["findings"]
    assert [(result["ruleId"], result["level"], result["locations"][0]["physicalLocation"]["region"])
            for result in results] == [
        (finding["id"], finding["severity"], {"startLine": finding["line"], "startColumn": finding["column"]})
        for finding in findings]
    for result, finding in zip(results, findings, strict=True):
        assert finding["message"][:400] in result["message"]["text"]
        assert finding["remedy"][:400] in result["message"]["text"]


@pytest.mark.parametrize("name", ["a b.toml", "100%.toml", "a#b?c.toml", "grün€.toml", "a:b.toml", "[x].toml", "-.toml"])
def test_sarif_names_the_file_by_a_uri(toolcage, policy, tmp_path, name):
    path = policy(ERROR, name)
    for argument in (f"./{name}", str(path)):
        log = json.loads(toolcage("lint", "--no-host", "--format", "sarif", argument, cwd=tmp_path).stdout)
        uri = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert re.fullmatch(r"[A-Za-z0-9\-._~:/%]+", uri), uri
        parsed = urllib.parse.urlsplit(uri)
        assert parsed.query == parsed.fragment == parsed.netloc == ""
        assert parsed.scheme == ("file" if argument.startswith("/") else "")
        assert urllib.parse.unquote(parsed.path) == argument


# ---- the host ------------------------------------------------------------------------------------


def test_secret_in_a_granted_directory_is_seen_unless_the_host_is_left_out(toolcage, policy, tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    (project / ".env").write_text("PASSWORD=x\n", encoding="utf-8")
    path = policy('version = 1\n[tool.a]\nfilesystem = { readable = ["project"] }\n[agent.x]\ngrants = ["a"]\n')
    seen = toolcage("lint", path)
    assert f'"{project}/.env"' in seen.stdout and "[TC-L101]" in seen.stdout
    assert toolcage("lint", "--no-host", path).stdout == f"{path}: 0 errors, 0 warnings, 0 notes\n"


def test_home_of_the_caller_is_known_unless_the_host_is_left_out(toolcage, policy, tmp_path):
    path = policy(f'version = 1\n[tool.a]\nfilesystem = {{ writable = ["{tmp_path}/me"] }}\n[agent.x]\ngrants = ["a"]\n')
    assert "[TC-L102]" in toolcage("lint", path, env={"HOME": f"{tmp_path}/me"}).stdout
    assert "[TC-L102]" not in toolcage("lint", path, env={"HOME": "/elsewhere"}).stdout
    assert "[TC-L102]" not in toolcage("lint", path, env={"HOME": "not/absolute"}).stdout
    assert "[TC-L102]" not in toolcage("lint", "--no-host", path, env={"HOME": f"{tmp_path}/me"}).stdout


def test_answer_without_the_host_is_always_the_same(toolcage, policy):
    path = policy(ERROR + WARNING.replace("version = 1\n[tool.a]\n", "").replace("[agent.x]", "[agent.y]"))
    runs = {toolcage("lint", "--no-host", "--json", path, env={"HOME": home, "TZ": zone, "LANG": language}).stdout
            for home, zone, language in [("/root", "UTC", "C"), ("/", "Asia/Tokyo", "de_DE.UTF-8"), ("", "", "")]}
    assert len(runs) == 1


# ---- terminals -----------------------------------------------------------------------------------


def run_on_terminal(build_dir, env, arguments, stream):
    """Runs the command with one stream on a terminal; returns (exit code, what the terminal got)."""
    master, slave = pty.openpty()
    try:
        streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL} | {stream: slave}
        with subprocess.Popen([build_dir / "src" / "toolcage", *map(str, arguments)], stdin=subprocess.DEVNULL, env=env,
                              **streams) as process:
            os.close(slave)
            slave = -1
            output = b""
            while True:
                try:
                    piece = os.read(master, 65536)
                except OSError:  # the other end is closed
                    piece = b""
                if not piece:
                    break
                output += piece
            return process.wait(timeout=60), output.decode()
    finally:
        os.close(master)
        if slave >= 0:
            os.close(slave)


@pytest.mark.parametrize("text,stream,status", [(ERROR, "stdout", 1), (BROKEN, "stderr", 125)], ids=["loads", "broken"])
def test_terminal_gets_colours_and_only_colours(build_dir, clean_env, policy, text, stream, status):
    env = clean_env | {"TERM": "xterm"}
    code, output = run_on_terminal(build_dir, env, ["lint", "--no-host", policy(text)], stream)
    assert code == status
    assert f"{ESCAPE}[31merror:{ESCAPE}[0m" in output
    assert ESCAPE not in re.sub(ESCAPE + r"\[(31|33|36|0)m", "", output)


@pytest.mark.parametrize("change", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": None}], ids=str)
@pytest.mark.parametrize("text,stream", [(ERROR, "stdout"), (BROKEN, "stderr")], ids=["loads", "broken"])
def test_terminal_that_wants_no_colours_gets_none(build_dir, clean_env, policy, text, stream, change):
    env = {key: value for key, value in (clean_env | {"TERM": "xterm"} | change).items() if value is not None}
    _, output = run_on_terminal(build_dir, env, ["lint", "--no-host", policy(text)], stream)
    assert "error:" in output
    assert ESCAPE not in output


def test_empty_no_color_is_none(build_dir, clean_env, policy):
    """https://no-color.org: "when present and not an empty string"."""
    env = clean_env | {"TERM": "xterm", "NO_COLOR": ""}
    assert ESCAPE in run_on_terminal(build_dir, env, ["lint", "--no-host", policy(ERROR)], "stdout")[1]


def test_json_has_no_colours_on_a_terminal(build_dir, clean_env, policy):
    env = clean_env | {"TERM": "xterm"}
    _, output = run_on_terminal(build_dir, env, ["lint", "--no-host", "--json", policy(ERROR)], "stdout")
    assert ESCAPE not in output
    assert json.loads(output)["errors"] == 1


@pytest.mark.parametrize("text", [ERROR, BROKEN], ids=["loads", "broken"])
def test_pipe_gets_no_colours(toolcage, policy, text):
    done = toolcage("lint", "--no-host", policy(text), env={"TERM": "xterm"})
    assert ESCAPE not in done.stdout + done.stderr


# Characters that command a terminal or deceive a reader, in places that come out again.
HOSTILE = {
    "escape": ("\x1b[2J", "\\u001b[2J"),
    "bell": ("\x07", "\\u0007"),
    "C1 control": ("\x9b2J", "\\u009b2J"),
    "delete": ("\x7f", "\\u007f"),
    "override": ("\u202e", "\\u202e"),
    "isolate": ("\u2066", "\\u2066"),
    "zero width": ("\u200b", "\\u200b"),
    "line separator": ("\u2028", "\\u2028"),
    "byte order mark": ("\ufeff", "\\ufeff"),
    "tag": ("\U000e0041", "\\U000e0041"),
    "carriage return": ("\r", "\\r"),
}
PLACES = {
    "path": 'version = 1\n[tool.a]\nfilesystem = {{ readable = ["/x{0}/.ssh"] }}\n',
    "unexpanded": 'version = 1\n[tool.a]\nfilesystem = {{ readable = ["~/x{0}"] }}\n',
    "command": 'version = 1\n[tool.a]\ncommand = ["run", "~/x{0}"]\n',
    "grant": 'version = 1\n[tool.a]\n[agent.x]\ngrants = ["a{0}"]\n',
    "key": 'version = 1\n[tool.a]\n"x{0}" = 1\n',
    "tool name": 'version = 1\n[tool."x{0}"]\n',
    "rule": 'version = 1\n[tool.a]\nnetwork = ["x{0}.example.com:443"]\n',
    "value": 'version = 1\n[tool.a]\nbackend = "x{0}"\n',
    "variable": 'version = 1\n[tool.a]\nenv = {{ "X{0}" = "1" }}\n',
    "parameter": 'version = 1\n[tool.a]\ncommand = ["a", "--", "{{b}}"]\nparameters = {{ properties = {{ "x{0}" = {{}} }} }}\n',
    "image": 'version = 1\n[tool.a]\nbackend = "oci"\nimage = "x{0}"\n',
    "glob": 'version = 1\n[tool.a]\noutputs = ["x{0}"]\n',
    "date": 'version = 1\n[tool.a]\n[agent.x]\ngrants = [{{ tool = "a", expires = "x{0}" }}]\n',
    "syscall": 'version = 1\n[tool.a]\nsyscalls = {{ deny = ["x{0}"] }}\n',
    "template": 'version = 1\n[tool.a]\ncommand = ["a", "x{0}{{"]\n',
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_characters_come_out_harmless(toolcage, policy, place, kind):
    character, escape = HOSTILE[kind]
    path = policy(PLACES[place].format(escape))
    for options in ([], ["--json"], ["--format", "sarif"]):
        done = toolcage("lint", "--no-host", *options, path)
        assert done.returncode in (0, 1, 125)
        output = done.stdout + done.stderr
        # No control character but the end of a line, of either set, and nothing that deceives a reader.
        assert re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", output) is None
        assert re.search("[\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]", output) is None
        assert character[0] not in output
        if options:
            json.loads(done.stdout or done.stderr)


def test_document_keeps_hostile_characters_for_programs(toolcage, policy):
    """Escaped, but not lost: a program sees the path as it is."""
    path = "/x\u202e\U000e0041\x9b/.ssh"
    text = policy('version = 1\n[tool.a]\nfilesystem = { readable = ["/x\\u202e\\U000e0041\\u009b/.ssh"] }\n')
    findings = json.loads(toolcage("lint", "--no-host", "--json", text).stdout)["findings"]
    assert any(path in finding["message"] for finding in findings)


def test_hostile_file_name_comes_out_harmless(toolcage, policy):
    path = policy(ERROR, "a\x1b[2J\u202eb.toml")
    done = toolcage("lint", "--no-host", path)
    assert done.returncode == 1
    assert "a<U+001B>[2J<U+202E>b.toml:3:11: error:" in done.stdout
    assert ESCAPE not in done.stdout


def test_file_name_that_is_no_text_is_shown_by_its_bytes(toolcage, tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff\xfe.toml"
    with open(path, "w", encoding="utf-8") as file:
        file.write(ERROR)
    name = os.fsdecode(path)
    assert "/<\\xFF><\\xFE>.toml:3:11: error:" in toolcage("lint", "--no-host", name).stdout
    document = json.loads(toolcage("lint", "--no-host", "--json", name).stdout)
    assert document["file"].endswith("/\ufffd\ufffd.toml")
    log = json.loads(toolcage("lint", "--no-host", "--format=sarif", name).stdout)
    location = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"].endswith("/%FF%FE.toml")


# ---- output that cannot be written ---------------------------------------------------------------

MANY = "version = 1\n" + "".join(f"[tool.t{i}]\npids = 99999\n" for i in range(500))


@pytest.mark.parametrize("text", [CLEAN, ERROR, MANY], ids=["clean", "error", "many"])
@pytest.mark.parametrize("options", [[], ["--json"], ["--format", "sarif"]], ids=["human", "json", "sarif"])
def test_full_disk_is_an_error(build_dir, clean_env, policy, text, options):
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([build_dir / "src" / "toolcage", "lint", "--no-host", *options, policy(text)], env=clean_env,
                              stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    assert done.returncode == 125
    assert re.fullmatch(r"toolcage: error: cannot write to standard output: No space left on device\n    remedy: .+\n", done.stderr)


@pytest.mark.parametrize("text", [CLEAN, ERROR], ids=["clean", "error"])
@pytest.mark.parametrize("options", ["", "--json", "--format=sarif"], ids=["human", "json", "sarif"])
def test_closed_standard_output_is_an_error(build_dir, clean_env, policy, text, options):
    """A gate in CI that reads nothing must not take that for "no findings"."""
    done = subprocess.run(["sh", "-c", f'exec "$0" lint --no-host {options} "$1" >&-', build_dir / "src" / "toolcage",
                           policy(text)], env=clean_env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          check=False, timeout=60)
    assert done.returncode == 125
    assert re.fullmatch(r"toolcage: error: cannot write to standard output: .+\n    remedy: .+\n", done.stderr)


def test_closed_standard_error_changes_nothing(build_dir, clean_env, policy):
    for text, status in ((ERROR, 1), (BROKEN, 125)):
        done = subprocess.run(["sh", "-c", 'exec "$0" lint --no-host "$1" 2>&-', build_dir / "src" / "toolcage", policy(text)],
                              env=clean_env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False, timeout=60)
        assert done.returncode == status
        assert ("[TC-L120]" in done.stdout) == (text == ERROR)


def test_closed_standard_input_changes_nothing(build_dir, clean_env, policy):
    done = subprocess.run(["sh", "-c", 'exec "$0" lint --no-host "$1" <&-', build_dir / "src" / "toolcage", policy(CLEAN)],
                          env=clean_env, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
