# SPDX-License-Identifier: Apache-2.0
"""Tool files: `tools = "DIR"` makes DIR/NAME.toml a tool, and everything said about it names that file."""

import json
import os
import tomllib

import pytest

pytestmark = pytest.mark.reading


@pytest.fixture(name="place")
def make_place(tmp_path):
    """A policy with an empty tool directory beside it."""
    (tmp_path / "tools.d").mkdir()
    (tmp_path / "policy.toml").write_text('version = 1\ntools = "tools.d"\n')
    return tmp_path


def add(place, name, text):
    path = place / "tools.d" / name
    path.write_text(text, encoding="utf-8")
    return path


def refused(toolcage, place, policy="policy.toml"):
    """The findings of a policy that must not load, as (file, line, id)."""
    done = toolcage("lint", "--json", "--no-host", policy, cwd=place)
    assert (done.returncode, done.stdout) == (125, "")
    return [(finding.get("file", policy), finding.get("line"), finding["id"])
            for finding in json.loads(done.stderr)["findings"]]


def test_tool_files_are_tools_in_the_order_of_their_names(toolcage, place):
    add(place, "b.toml", 'command = ["true"]\n')
    add(place, "a.toml", 'builtin = "bash"\n')
    add(place, ".hidden.toml", "nonsense")
    add(place, "notes.txt", "nonsense")
    (place / "tools.d" / "folder").mkdir()
    with open(place / "policy.toml", "a", encoding="utf-8") as file:
        file.write("[tool.z]\n")
    done = toolcage("tools", "--json", "--policy", "policy.toml", cwd=place)
    assert [tool["name"] for tool in json.loads(done.stdout)["tools"]] == ["z", "a", "b"]


def test_dump_holds_all_tools_in_one_file(toolcage, place):
    add(place, "a.toml", 'filesystem = { readable = ["data"] }\n')
    dumped = toolcage("dump", "policy.toml", cwd=place).stdout
    policy = tomllib.loads(dumped)
    assert "tools" not in policy
    assert policy["tool"]["a"]["filesystem"]["readable"] == [f"{place}/tools.d/data"]
    again = toolcage("dump", "-", cwd=place, input=dumped)
    assert (again.returncode, again.stdout) == (0, dumped)


def test_explain_and_decisions_name_the_file(toolcage, place):
    add(place, "a.toml", 'memory = "5MB"\nnetwork = ["x.example:443"]\n')
    text = toolcage("explain", "--policy", "policy.toml", "a", cwd=place).stdout
    assert text.startswith("a  (tools.d/a.toml:1)\n")
    tool = json.loads(toolcage("explain", "--json", "--policy", "policy.toml", "a", cwd=place).stdout)["tools"][0]
    assert (tool["file"], tool["settings"]["memory"]["file"]) == ("tools.d/a.toml", "tools.d/a.toml")
    asked = ("explain", "--policy", "policy.toml", "a", "--reach", "x.example:443")
    assert "by: tools.d/a.toml:2:12 (network)" in toolcage(*asked, cwd=place).stdout
    assert json.loads(toolcage(*asked, "--json", cwd=place).stdout)["file"] == "tools.d/a.toml"


def test_lint_names_the_file_in_every_format(toolcage, place):
    add(place, "a.toml", '\nmemory = "unlimited"\n')
    human = toolcage("lint", "--no-host", "policy.toml", cwd=place).stdout
    assert "tools.d/a.toml:2:10: error:" in human
    sarif = json.loads(toolcage("lint", "--no-host", "--format", "sarif", "policy.toml", cwd=place).stdout)
    uris = {result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in sarif["runs"][0]["results"]}
    assert "tools.d/a.toml" in uris
    found = json.loads(toolcage("lint", "--no-host", "--json", "policy.toml", cwd=place).stdout)["findings"]
    assert [finding.get("file") for finding in found if finding["id"] == "TC-L140"] == ["tools.d/a.toml"]


def test_names_are_relative_to_where_the_policy_was_named(toolcage, place):
    add(place, "a.toml", "timeout = 1\n")
    done = toolcage("lint", f"{place.name}/policy.toml", cwd=place.parent)
    assert done.stderr.startswith(f"{place.name}/tools.d/a.toml:1:11: error:")


def test_yaml_policy_may_have_tool_files(toolcage, place):
    add(place, "a.toml", 'command = ["true"]\n')
    (place / "policy.yaml").write_text("version: 1\ntools: [tools.d]\n")
    assert "[tool.a]" in toolcage("dump", "policy.yaml", cwd=place).stdout


@pytest.mark.parametrize("text, expected", [
    ("timeout = 1\n", (1, "TC-P014")),
    ("a = \n", (1, "TC-P005")),
    ("\n[tool.a]\n", (2, "TC-P010")),
    ("\0", (1, "TC-P005")),
    ('builtin = "sh"\n', (1, "TC-P013")),
    ('parameters = "../schema.json"\n', (1, "TC-P024")),
])
def test_bad_tool_files_are_named(toolcage, place, text, expected):
    add(place, "a.toml", text)
    assert refused(toolcage, place) == [("tools.d/a.toml", *expected)]


@pytest.mark.parametrize("name", ["a b.toml", "-a.toml", "caf\u00e9.toml", "a\n.toml", "x" * 65 + ".toml"])
def test_bad_names_are_refused(toolcage, place, name):
    add(place, name, "")
    assert [found[1:] for found in refused(toolcage, place)] == [(1, "TC-P016")]


def test_name_that_is_not_utf8_is_refused(toolcage, place):
    with open(os.fsencode(place) + b"/tools.d/a\xff.toml", "wb"):
        pass
    done = toolcage("lint", "policy.toml", cwd=place)
    assert done.returncode == 125
    assert "[TC-P016]" in done.stderr


def test_links_fifos_and_directories_are_refused(toolcage, place):
    (place / "secret.toml").write_text("password = 1\n")
    os.symlink(place / "secret.toml", place / "tools.d" / "a.toml")
    os.mkfifo(place / "tools.d" / "b.toml")
    (place / "tools.d" / "c.toml").mkdir()
    done = toolcage("lint", "--json", "policy.toml", cwd=place)
    assert "password" not in done.stderr
    assert [found[::2] for found in refused(toolcage, place)] == [
        ("tools.d/a.toml", "TC-P001"), ("tools.d/b.toml", "TC-P002"), ("tools.d/c.toml", "TC-P002")]


def test_large_file_is_refused(toolcage, place):
    add(place, "a.toml", "# " + "x" * 5_000_000 + "\n")
    assert refused(toolcage, place) == [("tools.d/a.toml", 1, "TC-P003")]


def test_many_files_that_are_large_together_are_refused(toolcage, place):
    for number in range(5):
        add(place, f"t{number}.toml", "# " + "x" * 1_000_000 + "\n")
    assert refused(toolcage, place) == [("tools.d/t4.toml", 1, "TC-P003")]


def test_too_many_files_are_refused(toolcage, place):
    for number in range(10_001):
        os.mknod(place / "tools.d" / f"t{number}.toml")
    assert [found[1:] for found in refused(toolcage, place)] in ([(2, "TC-P030")], [(2, "TC-P015")])


def test_a_name_is_used_once(toolcage, place):
    (place / "more.d").mkdir()
    (place / "more.d" / "a.toml").write_text("")
    add(place, "a.toml", "")
    add(place, "b.toml", "")
    (place / "policy.toml").write_text('tools = ["tools.d", "more.d"]\n[tool.b]\n')
    assert refused(toolcage, place) == [("tools.d/b.toml", 1, "TC-P018"), ("more.d/a.toml", 1, "TC-P018")]


@pytest.mark.parametrize("value, expected", [
    ('"missing"', "TC-P030"), ('"policy.toml"', "TC-P030"), ('"link.d"', "TC-P030"), ('""', "TC-P013"), ("1", "TC-P012"),
    ('"a//b"', "TC-P021"), ('"a\\u0000b"', "TC-P017"), ('["tools.d", "./tools.d/"]', "TC-P018"), ("[1]", "TC-P012"),
    ("[" + '"tools.d",' * 17 + "]", "TC-P015"), ("{}", "TC-P010"),
])
def test_bad_directories_are_refused(toolcage, place, value, expected):
    os.symlink("tools.d", place / "link.d")
    (place / "policy.toml").write_text(f"version = 1\ntools = {value}\n")
    found = refused(toolcage, place)
    assert [name for _, _, name in found] == [expected]
    assert found[0][1] == 2


def test_unreadable_directory_is_refused(toolcage, place, tmp_path):
    (place / "tools.d").chmod(0)
    found = toolcage("lint", "policy.toml", cwd=place)
    (place / "tools.d").chmod(0o700)
    if os.geteuid() != 0:  # root reads everything
        assert "[TC-P030]" in found.stderr
    else:
        assert found.returncode == 0


@pytest.mark.parametrize("path, bad", [(".", True), ("tools.d", True), ("tools.d/b.toml", True), ("data", False)])
def test_tool_that_can_write_the_tool_directory_is_an_error(toolcage, place, path, bad):
    for name in ("data", "tools.d"):
        (place / name).mkdir(exist_ok=True)
    add(place, "b.toml", "")
    (place / "policy.toml").write_text(f'version = 1\ntools = "tools.d"\n[tool.a]\nfilesystem = {{ writable = ["{path}"] }}\n')
    found = json.loads(toolcage("lint", "--json", "--no-host", "policy.toml", cwd=place).stdout)["findings"]
    assert ("TC-L104" in [finding["id"] for finding in found]) == bad


def test_hidden_text_in_a_tool_file_is_found(toolcage, place):
    add(place, "a.toml", '# \u202e\ncommand = ["true"]\n')
    found = json.loads(toolcage("lint", "--json", "--no-host", "policy.toml", cwd=place).stdout)["findings"]
    assert [finding["file"] for finding in found if finding["id"] == "TC-L181"] == ["tools.d/a.toml"]
