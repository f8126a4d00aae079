# SPDX-License-Identifier: Apache-2.0
"""The built-in tools: what they answer, what they say when they cannot, and what hostile files and arguments do to
them. Most of it is asked of the program itself, outside a cage; that it works inside is asked once for each tool."""

import ctypes
import base64
import json
import os
import re
import shutil
import subprocess
import threading
import time
from dataclasses import dataclass

import pytest

from native import BUILD, IS_ROOT, SLOW, TIME_SCALE

# In a build with sanitizers there is a second one, for the tests: the one in the library has none.
CHECKED = BUILD / "src" / "inside" / "toolcage-files-checked"
PROGRAM = CHECKED if CHECKED.exists() else BUILD / "src" / "inside" / "toolcage-files"
ENVIRONMENT = os.environ | {"ASAN_OPTIONS": "detect_leaks=0"}  # it frees nothing before it ends
FILE_TOOLS = ("read_file", "write_file", "edit_file", "list_dir", "search_files")
ALL_TOOLS = (*FILE_TOOLS, "http_fetch", "bash", "python")
POLICY = "version = 1\n" + "".join(f'tool.{name}.builtin = "{name}"\n' for name in ALL_TOOLS)
MEGABYTE = 1000 * 1000


def validate(value, schema):
    import jsonschema
    jsonschema.validate(value, schema, jsonschema.Draft202012Validator)


@dataclass
class Answer:
    status: int
    output: dict | None
    error: str


@pytest.fixture(scope="module")
def definitions(toolcage, tmp_path_factory):
    """{name: definition} of all built-in tools, each enabled with one line."""
    path = tmp_path_factory.mktemp("policy") / "policy.toml"
    path.write_text(POLICY)
    done = toolcage("tools", "--policy", path, "--format", "json")
    assert done.returncode == 0, done.stderr
    return {tool["name"]: tool for tool in json.loads(done.stdout)["tools"]}


@pytest.fixture
def ask(definitions, tmp_path):
    """Runs a file tool in a directory of its own: ask("read_file", path="a"). Raw text may be given instead."""

    def run(tool, raw=None, cwd=tmp_path, **arguments):
        text = json.dumps(arguments) if raw is None else raw
        if raw is None:
            validate(arguments, definitions[tool]["parameters"])
        done = subprocess.run([PROGRAM, tool], input=text.encode("utf-8", "surrogatepass"), cwd=cwd,
                              capture_output=True, check=False, timeout=20 * TIME_SCALE, env=ENVIRONMENT)
        assert done.returncode in (0, 1), done
        error = done.stderr.decode()
        if done.returncode:
            # One sentence, and nothing that could be taken for an answer.
            assert done.stdout == b"" and error.endswith("\n") and error.count("\n") == 1, done
            return Answer(1, None, error.strip())
        assert error == "" and len(done.stdout) < MEGABYTE
        output = json.loads(done.stdout)
        validate(output, definitions[tool]["returns"])
        return Answer(0, output, "")

    return run


@pytest.fixture
def good(ask):
    def run(tool, **arguments):
        answer = ask(tool, **arguments)
        assert answer.status == 0, answer.error
        return answer.output

    return run


@pytest.fixture
def bad(ask):
    """What the tool says when it fails."""

    def run(tool, raw=None, **arguments):
        answer = ask(tool, raw, **arguments)
        assert answer.status == 1, answer.output
        return answer.error

    return run


# ---- contracts ----------------------------------------------------------------------------------


def test_every_tool_is_enabled_with_one_line_and_has_schemas(definitions):
    import jsonschema
    assert set(definitions) == set(ALL_TOOLS)
    for name, tool in definitions.items():
        assert tool["description"]
        parameters = tool["parameters"]
        jsonschema.Draft202012Validator.check_schema(parameters)
        # The APIs of models refuse anything but a plain object at the top.
        assert parameters["type"] == "object" and parameters["additionalProperties"] is False
        assert not {"oneOf", "anyOf", "allOf", "not", "if"} & set(parameters)
        assert all(value.get("description") for value in parameters["properties"].values())
        if name not in ("bash", "python"):
            jsonschema.Draft202012Validator.check_schema(tool["returns"])
            assert tool["returns"]["additionalProperties"] is False


@pytest.mark.parametrize("raw, said", [
    ("", "not valid JSON"), ("[]", "must be a JSON object"), ('{"path": "a", "path": "b"}', "not valid JSON"),
    ('{"path": "\ud800"}', "not valid JSON"), ('{"path": "a\\u0000b"}', "NUL"), ('{"path": ""}', "empty"),
    ('{"path": 7}', "not a string"), ("{}", "missing"), ('{"path": "a", "offset": 1e400}', "not valid JSON"),
    ('{"path": "a", "offset": 99999999999999999999999}', "not valid JSON"),
    ('{"path": "a", "limit": 1.5}', "must be an integer"), ('{"path": "a", "limit": -1}', "must be an integer"),
    ('{"path": "a", "offset": 1, "byte_offset": 1}', "not both"), ("[" * 100000, "not valid JSON"),
    (json.dumps({"path": "x" * 5000}), "longer than a path"), (json.dumps({"path": "x" * 300}), "too long"),
])
def test_arguments_are_checked_again_by_the_program(bad, raw, said):
    assert said in bad("read_file", raw)


# ---- read_file ----------------------------------------------------------------------------------


def test_read_file_gives_text_and_lines(good, tmp_path):
    (tmp_path / "a").write_text("one\ntwo\nthree")
    assert good("read_file", path="a") == {"path": "a", "content": "one\ntwo\nthree", "encoding": "utf-8", "size": 13,
                                           "lines": 3, "truncated": False}
    part = good("read_file", path="a", offset=2, limit=1)
    assert (part["content"], part["truncated"], part["next_line"], part["next_byte"]) == ("two\n", True, 3, 8)
    last = good("read_file", path="a", offset=part["next_line"])
    assert (last["content"], last["truncated"]) == ("three", False)


def test_read_file_says_where_a_file_ends(good, bad, tmp_path):
    (tmp_path / "a").write_text("one\ntwo\n")
    (tmp_path / "empty").write_text("")
    assert good("read_file", path="a", offset=3)["content"] == ""
    assert 'ends before line 9: it has 2 line ends' in bad("read_file", path="a", offset=9)
    assert "behind the end" in bad("read_file", path="a", byte_offset=9)
    assert good("read_file", path="empty") == {"path": "empty", "content": "", "encoding": "utf-8", "size": 0,
                                               "lines": 0, "truncated": False}


def test_read_file_pages_through_everything(good, tmp_path):
    """Whatever the lines are like, the pieces are the file."""
    for content in ("x" * 700_000, "é" * 300_000, "line\n" * 100_000, "\x1b" * 300_000, '"' * 600_000 + "\n"):
        (tmp_path / "a").write_text(content)
        found, offset = "", 0
        while offset is not None:
            part = good("read_file", path="a", byte_offset=offset)
            assert part["encoding"] == "utf-8" and part["truncated"] == ("next_byte" in part)
            found, offset = found + part["content"], part.get("next_byte")
        assert found == content


def test_read_file_gives_anything_else_as_base64(good, tmp_path):
    for content in (b"\xff\xfe", b"text\0more", b"caf\xe9", b"\xed\xa0\x80", os.urandom(300_000)):
        (tmp_path / "a").write_bytes(content)
        part = good("read_file", path="a")
        assert part["encoding"] == "base64"
        assert base64.b64decode(part["content"]) == content[:262144]


def test_read_file_follows_links_and_leaves_the_rest_to_the_cage(good, tmp_path):
    (tmp_path / "a").write_text("a")
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "d").mkdir()
    assert good("read_file", path="link")["content"] == "a"
    assert good("read_file", path="d/../a")["content"] == "a"


def test_what_is_no_regular_file_is_refused_at_once(bad, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "nowhere").symlink_to("nothing")
    (tmp_path / "d").mkdir()
    for tool, more in (("read_file", {}), ("edit_file", {"old_text": "a", "new_text": "b"}),
                       ("write_file", {"content": "x"})):
        assert "not a regular file" in bad(tool, path="fifo", **more)
        assert "not a regular file" in bad(tool, path="/dev/zero", **more)
        assert "links lead in a circle" in bad(tool, path="loop", **more)
        assert "is a directory" in bad(tool, path="d", **more)
    assert "does not exist here. Only paths that the policy grants" in bad("read_file", path="nowhere")
    assert "leads nowhere" in bad("write_file", path="nowhere", content="x")
    assert "cannot be read" in bad("read_file", path="/proc/self/mem")


def test_a_sparse_file_of_a_terabyte_is_no_trouble(good, bad, tmp_path):
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(10**12)
        file.seek(10**12 - 4)
        file.write(b"end\n")
    start = time.monotonic()
    assert good("read_file", path="huge", max_bytes=10)["size"] == 10**12
    assert good("read_file", path="huge", byte_offset=10**12 - 4)["content"] == "end\n"
    assert "use byte_offset" in bad("read_file", path="huge", offset=2)
    assert "too much to edit" in bad("edit_file", path="huge", old_text="end", new_text="x")
    assert good("search_files", pattern="end")["files_skipped"] == 1
    assert time.monotonic() - start < 30


def test_a_file_that_changes_all_the_time_can_be_read(good, tmp_path):
    path = tmp_path / "a"
    path.write_text("x" * 100_000)
    done = threading.Event()

    def change():
        while not done.is_set():
            os.truncate(path, 10)
            path.write_text("y" * 200_000)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(20):
            part = good("read_file", path="a")
            assert set(part["content"]) <= {"x", "y"} or part["encoding"] == "base64"
    finally:
        done.set()
        thread.join()


# ---- write_file ---------------------------------------------------------------------------------


def test_write_file_creates_overwrites_and_appends(good, bad, tmp_path):
    assert good("write_file", path="a", content="one\n") == {"path": "a", "bytes": 4, "created": True}
    assert good("write_file", path="a", content="zwei\n") == {"path": "a", "bytes": 5, "created": False}
    assert good("write_file", path="a", content="é", mode="append")["bytes"] == 2
    assert (tmp_path / "a").read_text() == "zwei\né"
    assert "exists already" in bad("write_file", path="a", content="", mode="create")
    assert good("write_file", path="b", content="", mode="create")["created"]
    assert good("write_file", path="c", content="c", mode="append")["created"]
    assert good("write_file", path="nul", content="a\0b")["bytes"] == 3
    assert (tmp_path / "nul").read_bytes() == b"a\0b"
    assert sorted(os.listdir(tmp_path)) == ["a", "b", "c", "nul"]


def test_write_file_takes_base64(good, bad, tmp_path):
    content = os.urandom(1000)
    good("write_file", path="a", content=base64.b64encode(content).decode(), encoding="base64")
    assert (tmp_path / "a").read_bytes() == content
    assert "is not base64" in bad("write_file", path="a", content="a b", encoding="base64")
    assert (tmp_path / "a").read_bytes() == content


def test_write_file_makes_directories_only_when_asked(good, bad, tmp_path):
    assert "set create_directories" in bad("write_file", path="x/y/z", content="1")
    assert os.listdir(tmp_path) == []
    good("write_file", path="x/y/z", content="1", create_directories=True)
    good("write_file", path=f"{tmp_path}/x/y/w", content="1", create_directories=True)
    assert sorted(os.listdir(tmp_path / "x/y")) == ["w", "z"]
    assert "not a directory" in bad("write_file", path="x/y/z/1", content="1", create_directories=True)
    assert "names a directory" in bad("write_file", path="new/", content="1")


def test_a_replaced_file_keeps_its_mode_and_a_link_to_it(good, tmp_path):
    (tmp_path / "a").write_text("old")
    (tmp_path / "a").chmod(0o750)
    (tmp_path / "link").symlink_to("a")
    good("write_file", path="link", content="new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "a").read_text() == "new"
    assert (tmp_path / "a").stat().st_mode & 0o7777 == 0o750
    good("edit_file", path="link", old_text="new", new_text="newer")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "a").read_text() == "newer"
    assert (tmp_path / "a").stat().st_mode & 0o7777 == 0o750


def test_readers_see_the_old_file_or_the_new_one(good, tmp_path):
    path = tmp_path / "a"
    contents = {letter * 300_000 for letter in "ab"}
    path.write_text("a" * 300_000)
    seen, done = set(), threading.Event()

    def watch():
        while not done.is_set():
            seen.add(path.read_text())

    thread = threading.Thread(target=watch)
    thread.start()
    for letter in "babababa":
        good("write_file", path="a", content=letter * 300_000)
    done.set()
    thread.join()
    assert seen <= contents


def test_an_interrupted_write_leaves_nothing_behind(tmp_path):
    text = json.dumps({"path": "a", "content": "x" * 3_000_000}).encode()
    for number in range(12):
        process = subprocess.Popen([PROGRAM, "write_file"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, cwd=tmp_path, env=ENVIRONMENT)
        process.stdin.write(text)
        process.stdin.close()
        time.sleep(0.002 * number)
        process.kill()
        process.wait()
        assert set(os.listdir(tmp_path)) <= {"a"}
        if (tmp_path / "a").exists():
            assert (tmp_path / "a").stat().st_size == 3_000_000
            (tmp_path / "a").unlink()


@pytest.mark.skipif(not IS_ROOT, reason="only root can mount a small file system")
def test_a_full_disk_changes_nothing_and_says_so(tmp_path):
    """In a mount namespace of its own."""
    script = ("import json, os, subprocess, sys\n"
              f"run = lambda tool, **a: subprocess.run([{str(PROGRAM)!r}, tool], input=json.dumps(a), text=True,"
              " capture_output=True, cwd='small')\n"
              "print(run('write_file', path='a', content='old').returncode)\n"
              "for more in ({}, {'mode': 'append'}):\n"
              "    done = run('write_file', path='a', content='x' * 300000, **more)\n"
              "    print(done.returncode, done.stderr.strip(), open('small/a').read(), os.listdir('small'))\n"
              "print(run('write_file', path='b', content='x' * 300000).stderr.strip(), os.listdir('small'))\n")
    (tmp_path / "small").mkdir()
    done = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c",
                           "mount -t tmpfs -o size=128k none small && /usr/bin/python3 -c \"$0\"", script],
                          cwd=tmp_path, capture_output=True, text=True, check=True, env=ENVIRONMENT)
    lines = done.stdout.splitlines()
    assert lines[0] == "0" and len(lines) == 4
    for line in lines[1:3]:
        assert line.startswith('1 "a" cannot be written: there is no space left') and line.endswith("old ['a']")
    assert "no space left" in lines[3] and lines[3].endswith("['a']")


# ---- edit_file ----------------------------------------------------------------------------------


def test_edit_file_replaces_one_exact_text(good, tmp_path):
    (tmp_path / "a").write_text("one\ntwo\nthree\nfour\n")
    output = good("edit_file", path="a", old_text="two\nth", new_text="2\nTH")
    assert output == {"path": "a", "replacements": 1, "line": 2,
                      "diff": "@@ line 1 @@\n one\n-two\n-three\n+2\n+THree\n four\n"}
    assert (tmp_path / "a").read_text() == "one\n2\nTHree\nfour\n"
    assert good("edit_file", path="a", old_text="2\n", new_text="")["diff"] == \
        "@@ line 1 @@\n one\n-2\n THree\n four\n"


def test_edit_file_replaces_all_when_asked(good, tmp_path):
    (tmp_path / "a").write_text("aaaa b a")
    assert good("edit_file", path="a", old_text="aa", new_text="aaa", replace_all=True)["replacements"] == 2
    assert (tmp_path / "a").read_text() == "aaaaaa b a"


@pytest.mark.parametrize("old, new, said", [
    ("nothing", "x", "does not occur in \"a\": read the file"),
    ("def f():\n    return 1", "x", "With other white space (spaces, tabs, line ends) it does, at line 2"),
    ("return", "x", "occurs 2 times in \"a\", first at line 3: add lines around it"),
    ("return", "return", "are the same"),
])
def test_edit_file_says_why_not(bad, tmp_path, old, new, said):
    (tmp_path / "a").write_text("# é\r\ndef f():\r\n\treturn 1\r\ndef g(): return\r\n")
    assert said in bad("edit_file", path="a", old_text=old, new_text=new)
    assert (tmp_path / "a").read_bytes().count(b"\r\n") == 4


# ---- list_dir -----------------------------------------------------------------------------------


def test_list_dir_is_sorted_and_tells_what_each_thing_is(good, tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "inner").write_text("12")
    (tmp_path / "a").write_text("123")
    os.utime(tmp_path / "a", (0, 0))
    (tmp_path / ".hidden").write_text("")
    (tmp_path / "link").symlink_to("/etc")
    os.mkfifo(tmp_path / "z")
    output = good("list_dir")
    assert [(entry["name"], entry["type"], entry["size"]) for entry in output["entries"]] == [
        ("a", "file", 3), ("b", "directory", 0), ("link", "symlink", 0), ("z", "other", 0)]
    assert output["entries"][0]["modified"] == "1970-01-01T00:00:00Z"
    assert output["entries"][2]["target"] == "/etc"
    assert (output["hidden"], output["truncated"]) == (1, False)
    deep = good("list_dir", path=".", depth=2, hidden=True)
    assert [entry["name"] for entry in deep["entries"]] == [".hidden", "a", "b", "b/inner", "link", "z"]
    assert good("list_dir", limit=2)["truncated"]


def test_list_dir_says_why_not(bad, tmp_path):
    (tmp_path / "a").write_text("")
    assert "is not a directory: read_file" in bad("list_dir", path="a")
    assert "does not exist here" in bad("list_dir", path="no")


def test_names_that_are_not_utf8_are_escaped(good, tmp_path):
    (tmp_path / os.fsdecode(b"caf\xe9\n.txt")).write_text("word\n")
    entry = good("list_dir")["entries"][0]
    assert (entry["name"], entry["escaped"]) == ("caf\\xe9\n.txt", True)
    match = good("search_files", pattern="word")["matches"][0]
    assert (match["path"], match["escaped"]) == ("caf\\xe9\n.txt", True)


def test_a_directory_with_very_many_names(good, tmp_path):
    folder = tmp_path / "many"
    folder.mkdir()
    (folder / "file").write_text("")
    for number in range(12_000):
        os.link(folder / "file", folder / f"{number:05d}-{'x' * 100}")
    start = time.monotonic()
    output = good("list_dir", path="many", limit=10_000)
    assert output["truncated"] and output["entries"][0]["name"].startswith("00000-")
    assert output["entries"][4000]["name"].startswith("04000-")
    output = good("search_files", pattern="x", path="many")
    assert output["files_searched"] == 12_001 and not output["truncated"]
    assert time.monotonic() - start < 30
    shutil.rmtree(folder)


def test_deep_trees_and_loops_end(good, tmp_path):
    fd = os.open(tmp_path, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("d", dir_fd=fd)
        os.symlink("..", "up", dir_fd=fd)
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)
    output = good("list_dir", depth=16)
    assert output["entries"][0]["name"] == "d" and len(output["entries"]) == 32
    output = good("search_files", pattern="x")
    assert (output["files_searched"], output["files_skipped"]) == (0, 1)
    subprocess.run(["rm", "-rf", tmp_path / "d"], check=True)


# ---- search_files -------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path):
    for name, text in {"src/a.c": "int main(void)\n{\n    return 0;\n}\n", "src/sub/b.c": "RETURN Grüße\r\n",
                       "src/c.py": "return\n", "notes.txt": "nothing\n", ".git/x": "return\n"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(text.encode())
    (tmp_path / "binary").write_bytes(b"return\0")
    (tmp_path / "link").symlink_to("src")
    os.mkfifo(tmp_path / "fifo")
    return tmp_path


def places(output):
    return [(match["path"], match["line"], match["text"]) for match in output["matches"]]


@pytest.mark.parametrize("arguments, found", [
    ({"pattern": "^ *ret\\w+"}, [("src/a.c", 3, "    return 0;"), ("src/c.py", 1, "return")]),
    ({"pattern": "return", "case_sensitive": False, "glob": "*.c"},
     [("src/a.c", 3, "    return 0;"), ("src/sub/b.c", 1, "RETURN Grüße")]),
    ({"pattern": "(void)", "literal": True}, [("src/a.c", 1, "int main(void)")]),
    ({"pattern": "GRÜ..$", "case_sensitive": False}, [("src/sub/b.c", 1, "RETURN Grüße")]),
    ({"pattern": "GRÜ..$"}, []),
    ({"pattern": "grüß", "case_sensitive": False, "literal": True}, [("src/sub/b.c", 1, "RETURN Grüße")]),
    ({"pattern": "return", "glob": "src/**/*.{py,c}"}, [("src/a.c", 3, "    return 0;"), ("src/c.py", 1, "return")]),
    ({"pattern": "return", "glob": "[!a].py"}, [("src/c.py", 1, "return")]),
    ({"pattern": "return", "glob": "*.py", "path": "link"}, [("link/c.py", 1, "return")]),
    ({"pattern": "return", "path": "src/c.py"}, [("src/c.py", 1, "return")]),
    ({"pattern": "return", "hidden": True, "glob": "x"}, [(".git/x", 1, "return")]),
])
def test_search_files_finds_lines(good, tree, arguments, found):
    output = good("search_files", **arguments)
    assert places(output) == found and not output["truncated"]


def test_search_files_shows_context_and_counts_what_it_skips(good, tree):
    output = good("search_files", pattern="return 0", context=2)
    assert output["matches"][0]["before"] == ["int main(void)", "{"] and output["matches"][0]["after"] == ["}"]
    assert (output["files_searched"], output["files_skipped"]) == (4, 1)


def test_search_files_stops_at_its_limit(good, tmp_path):
    (tmp_path / "a").write_text("x\n" * 500)
    output = good("search_files", pattern="x", limit=7)
    assert (len(output["matches"]), output["truncated"], output["stopped_by"]) == (7, True, "limit")
    assert good("search_files", pattern="x", limit=500)["truncated"] is False
    assert good("search_files", pattern="x$", limit=501)["truncated"] is False


def test_search_files_cuts_long_lines_around_the_match(good, tmp_path):
    (tmp_path / "a").write_text("é" * 5_000_000 + "needle" + "é" * 1000 + "\nneedle\n")
    first, second = good("search_files", pattern="needle", literal=True)["matches"]
    assert "needle" in first["text"] and first["cut"] and len(first["text"].encode()) <= 500
    assert (second["line"], second["text"]) == (2, "needle")


def test_search_files_numbers_lines_across_windows(good, tmp_path):
    """The file is larger than what is read at a time."""
    with open(tmp_path / "a", "w") as file:
        for number in range(1, 600_001):
            file.write(f"{number} line\n" if number % 199_999 else f"{number} target\n")
    assert places(good("search_files", pattern="target")) == [
        ("a", number, f"{number} target") for number in (199_999, 399_998, 599_997)]


@pytest.mark.parametrize("pattern, said", [
    ("(a+)+$", "takes too many steps in \"a\", line 1"), ("(a|aa)+$", "takes too many steps"),
    ("(", "is not a regular expression, at character"), ("(?R)", "takes too many steps|regular expression"),
    ("((((a{1,999}){1,999}){1,999}){1,999}){1,999}", "regular expression|too many"), ("\\C", "regular expression"),
])
def test_bombs_in_patterns_do_not_go_off(bad, tmp_path, pattern, said):
    (tmp_path / "a").write_text("a" * 5000 + "b\n")
    start = time.monotonic()
    assert re.search(said, bad("search_files", pattern=pattern))
    assert time.monotonic() - start < 30


def test_bombs_in_globs_do_not_go_off(good, tmp_path):
    (tmp_path / ("a" * 200)).write_text("x\n")
    start = time.monotonic()
    assert good("search_files", pattern="x", glob="*a" * 60 + "b")["matches"] == []
    assert good("search_files", pattern="x", glob="{" * 50 + "a" + "}" * 50)["matches"] == []
    assert good("search_files", pattern="x", glob="[")["matches"] == []
    assert time.monotonic() - start < 30


# ---- in cages -----------------------------------------------------------------------------------

FILESYSTEM = 'filesystem = { writable = [{ host = "work", cage = "/work" }], cwd = "/work" }\n'


@pytest.fixture
def call(toolcage, must_work, tmp_path):
    """Calls a built-in tool in a cage; `defaults` are lines of the policy."""
    (tmp_path / "work").mkdir()
    for path in (tmp_path, *list(tmp_path.parents)[:2]):
        path.chmod(0o755)

    def run(tool, defaults=FILESYSTEM, **arguments):
        policy = tmp_path / "policy.toml"
        policy.write_text(f'version = 1\n[defaults]\n{defaults}\n[tool.{tool}]\nbuiltin = "{tool}"\n')
        done = toolcage("call", "--no-journal", "--policy", policy, "--json", tool, "-", input=json.dumps(arguments))
        assert done.returncode == 0, done
        result = json.loads(done.stdout)
        if result["verdict"] == "error":
            must_work("jail", f"a cage cannot be built here: {result['reason']}")
        return result

    return run


CAGES = {
    "default": FILESYSTEM,
    "strict": FILESYSTEM + 'syscalls = "strict"\nmemory = "64MB"\npids = 4\nfiles = 80',
    "pure": FILESYSTEM + 'syscalls = "pure"\nmemory = "64MB"\npids = 2\nfiles = 80',
    "nothing of the host": FILESYSTEM + 'system = false\nsyscalls = "pure"',
    "no other program": FILESYSTEM + "commands = []",
}


@pytest.mark.native
@pytest.mark.parametrize("defaults", list(CAGES.values())[2 if SLOW else 0:4 if SLOW else None])
def test_file_tools_work_in_every_kind_of_cage(call, tmp_path, defaults):
    def ok(tool, **arguments):
        result = call(tool, defaults, **arguments)
        assert (result["verdict"], result["stderr"]) == ("ok", ""), result
        return result["output"]

    assert ok("write_file", path="a/b.txt", content="hello\n", create_directories=True)["created"]
    assert not ok("write_file", path="/work/a/b.txt", content="hello there\n")["created"]
    assert ok("edit_file", path="a/b.txt", old_text="there", new_text="world")["replacements"] == 1
    assert ok("read_file", path="a/b.txt")["content"] == "hello world\n"
    assert [entry["name"] for entry in ok("list_dir", depth=2)["entries"]] == ["a", "a/b.txt"]
    assert places(ok("search_files", pattern="w.rld")) == [("a/b.txt", 1, "hello world")]
    assert os.listdir(tmp_path / "work" / "a") == ["b.txt"]


@pytest.mark.native
def test_a_cage_tells_what_the_policy_does_not_grant(call, tmp_path):
    (tmp_path / "work" / "a").write_text("old")
    readable = FILESYSTEM.replace("writable", "readable")
    for tool, more in (("write_file", {"content": "x"}), ("edit_file", {"old_text": "old", "new_text": "x"}),
                       ("write_file", {"content": "x", "mode": "append"})):
        result = call(tool, readable, path="a", **more)
        assert (result["verdict"], result["exit_code"], result["stdout"], result["output"]) == ("failed", 1, "", None)
        assert result["stderr"] == '"a" cannot be written: the policy grants it read-only, or does not grant it\n'
    result = call("read_file", path="/etc/shadow")
    assert "does not exist here. Only paths that the policy grants are visible" in result["stderr"]
    assert (tmp_path / "work" / "a").read_text() == "old" and os.listdir(tmp_path / "work") == ["a"]


@pytest.mark.native
def test_a_file_that_is_granted_alone_is_written_as_it_stands(call, tmp_path):
    """It is a mount point: nothing can be renamed over it."""
    path = tmp_path / "work" / "a"
    path.write_text("a longer old text")
    before = path.stat().st_ino
    alone = 'filesystem = { writable = [{ host = "work/a", cage = "/work/a" }] }'
    assert call("write_file", alone, path="/work/a", content="new")["verdict"] == "ok"
    assert call("edit_file", alone, path="/work/a", old_text="new", new_text="newer")["verdict"] == "ok"
    assert (path.read_text(), path.stat().st_ino) == ("newer", before)
    assert call("write_file", alone, path="/work/b", content="new")["verdict"] == "failed"


@pytest.mark.native
@pytest.mark.parametrize("command, stdout, stderr", [
    ("echo $((6 * 7)); pwd", "42\n/work\n", ""), ("-x", "", "command not found"), ("--help", "", "command not found"),
    ("echo 'a b'\necho \"$0\" $#", "a b\nbash 0\n", ""), ("echo {command} {x...}", "{command} {x...}\n", ""),
])
def test_bash_runs_exactly_the_command(call, command, stdout, stderr):
    result = call("bash", command=command)
    assert result["stdout"] == stdout and stderr in result["stderr"], result
    assert result["exit_code"] == (127 if stderr else 0)


@pytest.mark.native
def test_python_runs_code_of_any_size_with_modules_of_its_directory(call, tmp_path):
    (tmp_path / "work" / "mine.py").write_text("value = 7\n")
    (tmp_path / "work" / "json.py").write_text("raise RuntimeError('not this one')\n")
    code = "import mine, sys\nprint(mine.value, __name__, repr(sys.stdin.read()))\n" + "#" * 300_000 + "\n1 / 0\n"
    result = call("python", code=code)
    assert (result["verdict"], result["exit_code"], result["stdout"]) == ("failed", 1, "7 __main__ ''\n"), result
    assert 'File "<code>", line 4, in <module>\nZeroDivisionError' in result["stderr"]
    assert call("python", code="-1")["verdict"] == "ok"
    # It is the main module, as it would be in a file.
    code = "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A, 'é', sorted(globals()))"
    assert call("python", code=code)["stdout"].startswith("True é ['A', '__annotations__', '__builtins__'")


def has_library(name):
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


@pytest.mark.native
def test_the_first_day_policy_is_clean_and_works(toolcage, repo, must_work, tmp_path):
    shutil.copytree(repo / "examples", tmp_path / "examples")
    for path in (tmp_path, *list(tmp_path.parents)[:2], *tmp_path.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    policy = tmp_path / "examples" / "builtin.toml"
    found = json.loads(toolcage("lint", "--json", policy).stdout)
    assert {entry["id"] for entry in found["findings"]} <= {"TC-L190"}, found
    tools = json.loads(toolcage("tools", "--policy", policy, "--json").stdout)["tools"]
    assert {tool["name"] for tool in tools} == set(ALL_TOOLS)

    def ask(tool, **arguments):
        done = toolcage("call", "--no-journal", "--policy", policy, "--agent", "assistant", "--json", tool,
                        json.dumps(arguments))
        assert done.returncode == 0, done
        result = json.loads(done.stdout)
        if result["verdict"] == "error":
            must_work("jail", f"a cage cannot be built here: {result['reason']}")
        return result

    assert [entry["name"] for entry in ask("list_dir")["output"]["entries"]] == ["build.sh", "main.py"]
    assert ask("write_file", path="new.txt", content="x")["output"]["created"]
    assert ask("search_files", pattern="json")["output"]["matches"]
    assert ask("bash", command="cat new.txt")["stdout"] == "x"
    assert ask("python", code="print(open('new.txt').read())")["stdout"] == "x\n"
    assert ask("read_file", path="../etc/shadow")["verdict"] == "failed"
    result = ask("http_fetch", url="https://refused.example/")
    assert result["verdict"] == "failed"
    if has_library("libcurl.so.4"):
        assert [entry["target"] for entry in result["denials"]] == ["refused.example"]
    else:
        assert "libcurl" in result["stderr"]
