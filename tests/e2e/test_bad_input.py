# SPDX-License-Identifier: Apache-2.0
"""Bad input: whatever stands in the place of a policy or an argument, the command refuses it in one form.

Exit status 125, nothing on stdout, and on stderr `NAME:LINE:COLUMN: error: ... [TC-Pnnn]` with a remedy, soon.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

pytestmark = pytest.mark.reading

# The sanitizer builds are slower, and scripts/sanitize says how much.
SLOW = float(os.environ.get("TIME_SCALE", "1"))
SECONDS = 20 * SLOW
NOBODY = 65534

MESSAGE = re.compile(r"^(?P<name>.+?):(?P<line>\d+):(?P<column>\d+): error: (?P<message>.+) \[(?P<id>TC-P\d{3})\]$", re.M)
BROKEN_PROGRAM = re.compile(r"Sanitizer|runtime error|Traceback|core dumped|Segmentation|Assertion")

# How each verb is given its policy.
VERBS = {
    "lint": lambda path: ("lint", "--no-host", path),
    "explain": lambda path: ("explain", "--policy", path),
    "dump": lambda path: ("dump", path),
    "tools": lambda path: ("tools", "--policy", path),
}

# Contents of a file, with the id of the first finding and its place.
TEXTS = {
    "unknown key": (b'[tool.t]\ntimout = "5s"\n', "TC-P010", 2, 1),
    "wrong type": (b'[tool.t]\ndescription = 5\n', "TC-P012", 2, 15),
    "unit without number": (b'[tool.t]\nmemory = "MB"\n', "TC-P014", 2, 10),
    "number without unit": (b'[tool.t]\nmemory = 128\n', "TC-P014", 2, 10),
    "text without unit": (b'[tool.t]\nmemory = "128"\n', "TC-P014", 2, 10),
    "bad value": (b'[tool.t]\nbackend = "docker"\n', "TC-P013", 2, 11),
    "duplicate tool": (b'[tool.t]\n[tool.u]\n[tool.t]\n', "TC-P005", 3, None),
    "duplicate key": (b'[tool.t]\npids = 1\npids = 2\n', "TC-P005", 3, None),
    "empty": (b"", "TC-P006", 1, 1),
    "white space": (b" \t\r\n\n  \n", "TC-P006", 1, 1),
    "a comment": (b"# nothing\n", "TC-P006", 1, 1),
    "a byte order mark": (b"\xef\xbb\xbf", "TC-P006", 1, 1),
    "another version": (b"version = 2\n", "TC-P007", 1, 11),
    "binary": (bytes(range(256)) * 20, "TC-P005", 1, None),
    "a NUL": (b'[tool.t]\ndescription = "a\0b"\n', "TC-P005", 2, None),
    "an escaped NUL": (b'[tool.t]\ndescription = "a\\u0000b"\n', "TC-P017", 2, 15),
    "not UTF-8": (b'[tool.t]\ndescription = "\xff"\n', "TC-P005", 2, None),
    "a surrogate": (b'[tool.t]\ndescription = "\xed\xa0\x80"\n', "TC-P005", 2, None),
    "UTF-16": ('[tool.t]\npids = 1\n'.encode("utf-16"), "TC-P005", 1, None),
    "UTF-16 without mark": ('[tool.t]\npids = 1\n'.encode("utf-16-le"), "TC-P005", 1, None),
    "UTF-32": ('[tool.t]\n'.encode("utf-32"), "TC-P005", 1, None),
    "old Mac line ends": (b"[tool.t]\rpids = 1\r", "TC-P005", 1, None),
    "a program": (b"\x7fELF\x02\x01\x01" + bytes(500), "TC-P005", 1, None),
    "JSON": (b'{"tool": {"t": {}}}\n', "TC-P005", 1, 1),
    "an open string": (b'[tool.t]\ndescription = "abc\n', "TC-P005", 2, None),
    "an open table": (b'[tool.t]\nenv = { A = "1"', "TC-P005", None, None),
    "an open header": (b'[tool.t\n', "TC-P005", 1, None),
    "deep arrays": (b"version = " + b"[" * 100_000, "TC-P005", 1, None),
    "deep tables": (b"x = " + b"{a=" * 100_000, "TC-P005", 1, None),
    "a deep key": (b"a" + b".a" * 100_000 + b" = 1\n", "TC-P005", 1, None),
    "a deep header": (b"[a" + b".a" * 100_000 + b"]\n", "TC-P005", 1, None),
    "100000 keys": (b"[tool.t]\n" + b"".join(b"k%d = 1\n" % i for i in range(100_000)), "TC-P010", 2, 1),
    "100000 keys of env": (b"[tool.t.env]\n" + b"".join(b"%d = 1\n" % i for i in range(100_000)), "TC-P016", 2, 1),
    "100000 tables": (b"".join(b"[x%d]\n" % i for i in range(100_000)), "TC-P010", 1, 2),
    "a long line": (b"[tool.t]\ndescription = 5 #" + b"x" * 3_000_000 + b"\n", "TC-P012", 2, 15),
    "a long key": (b"[tool.t]\n" + b"k" * 1_000_000 + b" = 1\n", "TC-P010", 2, 1),
    "a long name": (b"[tool." + b"n" * 1_000_000 + b"]\n", "TC-P016", 1, 7),
    "a long value": (b'[tool.t]\nbackend = "' + b"v" * 1_000_000 + b'"\n', "TC-P013", 2, 11),
    "a long number": (b"[tool.t]\npids = " + b"9" * 1_000_000 + b"\n", "TC-P005", 2, None),
    "a long unit": (b'[tool.t]\nmemory = "' + b"9" * 1_000_000 + b'MB"\n', "TC-P014", 2, 10),
    "a long rule": (b'[tool.t]\nnetwork = ["' + b"a." * 500_000 + b':443"]\n', "TC-P020", 2, 12),
    "a long path": (b'[tool.t]\nrootfs = "' + b"/a" * 500_000 + b'"\n', "TC-P021", 2, 10),
    "a long schema": (b"[tool.t]\nparameters = '{" + b'"a":' * 300_000 + b"'\n", "TC-P024", 2, 14),
    "a deep schema": (b"[tool.t]\nparameters = '{\"a\":" + b"[" * 100_000 + b"'\n", "TC-P024", 2, 14),
    "escape sequences": (b'[tool.t]\n"\\u001b[31m" = 1\n', "TC-P010", 2, 1),
}
YAML_TEXTS = {
    "unknown key": (b"tool:\n  t:\n    timout: 5s\n", "TC-P010", 3, 5),
    "wrong type": (b"tool:\n  t:\n    description: 5\n", "TC-P012", 3, 18),
    "duplicate tool": (b"tool:\n  t: {}\n  t: {}\n", "TC-P005", 3, None),
    "an alias": (b"tool:\n  t: &a {}\n  u: *a\n", "TC-P005", 2, None),
    "a tag": (b"tool: !!python/object:os.system {}\n", "TC-P005", 1, None),
    "two documents": (b"version: 1\n---\nversion: 1\n", "TC-P005", None, None),
    "empty": (b"", "TC-P006", 1, 1),
    "a list": (b"- tool\n", None, 1, None),
    "a text": (b"tool\n", None, 1, None),
    "binary": (bytes(range(256)), "TC-P005", 1, None),
    "UTF-16": ("tool: {}\n".encode("utf-16"), "TC-P005", 1, None),
    "deep": (b"[" * 100_000, "TC-P005", 1, None),
    "deep by indentation": (b"".join(b" " * i + b"a:\n" for i in range(1000)), "TC-P005", None, None),
    "100000 keys": (b"tool:\n  t:\n" + b"".join(b"    k%d: 1\n" % i for i in range(70_000)), "TC-P010", 3, 5),
    "too large": (b"#" * 1_048_577, "TC-P003", 1, 1),
}


def run_as(uid, argv, env, **options):
    """Runs a program, as another user when we are root; `options` go to subprocess.run."""
    if uid is not None and os.geteuid() == 0:
        argv = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--", *argv]
    return subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="surrogateescape",
                          timeout=60 * SLOW, check=False, **options)


def assert_refused(done, name, finding=None, line=None, column=None):
    """The one form of refusal; returns all messages."""
    assert not BROKEN_PROGRAM.search(done.stderr), done.stderr[:2000]
    assert (done.returncode, done.stdout) == (125, ""), done.stderr[:2000]
    messages = [match.groupdict() for match in MESSAGE.finditer(done.stderr)]
    assert messages, done.stderr[:2000]
    lines = done.stderr.splitlines()
    # Each message is one line with its remedy on the next, and there is nothing else.
    assert len(lines) == 2 * len(messages) <= 202
    assert all(re.match("    remedy: .", remedy) for remedy in lines[1::2])
    # Nothing of the input acts on a terminal, however it is made.
    assert all(" " <= c and not "\x7f" <= c <= "\x9f" for text in lines for c in text)
    assert all(len(text) < 2000 + len(name) for text in lines)
    first = messages[0]
    assert first["name"] == name
    assert finding is None or first["id"] == finding, first
    assert line is None or int(first["line"]) == line, first
    assert column is None or int(first["column"]) == column, first
    return messages


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("kind", [*TEXTS, *(f"yaml: {kind}" for kind in YAML_TEXTS)])
def test_bad_contents_are_refused(toolcage, tmp_path, verb, kind):
    yaml = kind.startswith("yaml: ")
    contents, finding, line, column = YAML_TEXTS[kind.removeprefix("yaml: ")] if yaml else TEXTS[kind]
    path = tmp_path / ("policy.yaml" if yaml else "policy.toml")
    path.write_bytes(contents)
    before = time.monotonic()
    done = toolcage(*VERBS[verb](path))
    assert time.monotonic() - before < SECONDS
    assert_refused(done, str(path), finding, line, column)


@pytest.mark.parametrize("kind", TEXTS)
def test_bad_contents_on_standard_input_are_refused(build_dir, clean_env, kind):
    contents, finding, line, column = TEXTS[kind]
    done = subprocess.run([build_dir / "src" / "toolcage", "dump", "-"], env=clean_env, input=contents, capture_output=True,
                          timeout=SECONDS, check=False)
    done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
    assert_refused(done, "-", finding, line, column)


# ---- what is no file -----------------------------------------------------------------------------


def sparse(path):
    with open(path, "wb") as file:
        file.truncate(200_000_000)
    return path


def one_byte_too_large(path):
    path.write_bytes(b"#" * (4 * 1024 * 1024 + 1))
    return path


def fifo(path):
    os.mkfifo(path)
    return path


def directory(path):
    path.mkdir()
    return path


def dangling(path):
    path.symlink_to("nowhere")
    return path


def loop(path):
    path.symlink_to(path.name)
    return path


def below_a_file(path):
    path.write_text("[tool.t]\n")
    return path / "below"


# Made from a path that does not exist yet.
PLACES = {
    "directory": (directory, "TC-P002"),
    "fifo": (fifo, "TC-P002"),
    "missing": (lambda path: path, "TC-P001"),
    "missing directory": (lambda path: path / "x" / "y", "TC-P001"),
    "dangling link": (dangling, "TC-P001"),
    "link to itself": (loop, "TC-P001"),
    "below a file": (below_a_file, "TC-P001"),
    "200 MB": (sparse, "TC-P003"),
    "one byte too large": (one_byte_too_large, "TC-P003"),
    "/dev/null": (lambda path: "/dev/null", "TC-P002"),
    "/dev/zero": (lambda path: "/dev/zero", "TC-P002"),
    "/dev/full": (lambda path: "/dev/full", "TC-P002"),
    "/proc/self/mem": (lambda path: "/proc/self/mem", None),
    "name too long": (lambda path: str(path) + "x" * 300, "TC-P001"),
    "path too long": (lambda path: "/x" * 3000, "TC-P001"),
    "no name": (lambda path: "", "TC-P001"),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("kind", PLACES)
def test_what_is_no_policy_file_is_refused(toolcage, tmp_path, verb, kind):
    make, finding = PLACES[kind]
    path = str(make(tmp_path / "policy.toml"))
    before = time.monotonic()
    done = toolcage(*VERBS[verb](path))
    assert time.monotonic() - before < SECONDS
    if path:
        assert_refused(done, path, finding, 1, 1)
    else:
        assert (done.returncode, done.stdout) == (125, "") and "remedy: " in done.stderr


@pytest.mark.parametrize("verb", VERBS)
def test_unreadable_file_is_refused(build_dir, clean_env, verb):
    """As an ordinary user, who may look into the directory and run the program."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        program = shutil.copy(build_dir / "src" / "toolcage", folder)
        path = f"{folder}/policy.toml"
        with open(path, "w", encoding="utf-8") as file:
            file.write("[tool.t]\n")
        os.chmod(path, 0)
        done = run_as(NOBODY, [program, *VERBS[verb](path)], clean_env)
        assert "chmod" in done.stderr
        assert_refused(done, path, "TC-P001", 1, 1)
        os.mkdir(f"{folder}/closed", 0o000)
        done = run_as(NOBODY, [program, *VERBS[verb](f"{folder}/closed/policy.toml")], clean_env)
        assert_refused(done, f"{folder}/closed/policy.toml", "TC-P001", 1, 1)


def test_odd_file_names_are_shown_safely(toolcage, tmp_path):
    for name in ("new\nline", "\x1b[31mred", "\u202egnp.exe", "caf\u00e9", "a:b:1: error: x [TC-P001]", "'quote\""):
        path = tmp_path / f"{name}.toml"
        path.write_text("pids = 1\n")
        done = toolcage("dump", path)
        assert (done.returncode, done.stdout) == (125, "")
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", done.stderr)
        assert re.search(r":1:1: error: unknown key \"pids\" in the policy \[TC-P010\]$", done.stderr, re.M)


def test_all_errors_are_reported_at_once(toolcage, tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text('[tool.a]\npids = 0\n[tool.b]\nmemory = 5\n[agent.c]\ngrants = [1]\n')
    messages = assert_refused(toolcage("dump", path), str(path))
    assert [(message["id"], message["line"]) for message in messages] == [
        ("TC-P015", "2"), ("TC-P014", "4"), ("TC-P012", "6")]


def test_more_than_a_hundred_errors_are_not_listed(toolcage, tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text("".join(f"k{i} = 1\n" for i in range(500)))
    messages = assert_refused(toolcage("dump", path), str(path))
    assert len(messages) == 101 and messages[-1]["id"] == "TC-P028"


def test_working_directory_that_is_gone(build_dir, clean_env, tmp_path):
    policy = tmp_path / "policy.toml"
    policy.write_text("[tool.t]\n")
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f'cd "{gone}" && rmdir "{gone}" && exec "$0" "$@"'
    for name, status in ((policy, 0), ("../policy.toml", 125), ("policy.toml", 125)):
        gone.mkdir(exist_ok=True)
        done = subprocess.run(["sh", "-c", script, build_dir / "src" / "toolcage", "dump", name], env=clean_env,
                              capture_output=True, text=True, timeout=SECONDS, check=False)
        assert done.returncode == status, done.stderr
        assert status == 0 or "remedy: " in done.stderr


# ---- hostile sizes -------------------------------------------------------------------------------

SIZE = 4 * 1024 * 1024


def fill(head, make, tail="", size=SIZE):
    """The head, as many pieces as fit into a policy file, and the tail."""
    pieces, used, number = [head], len(head) + len(tail), 0
    while True:
        piece = make(number)
        if used + len(piece) > size:
            return "".join([*pieces, tail])
        pieces.append(piece)
        used += len(piece)
        number += 1


def thousand(pattern):
    return ", ".join(pattern.format(i) for i in range(1000))


def half(make, head=""):
    return fill(head, make, size=SIZE // 2 - 100)


HOSTILE = {
    "network rules": lambda: fill("", lambda n: f"[tool.t{n}]\nnetwork = [" + thousand('"a{0}.b:{0}1"') + "]\n"),
    "denials": lambda: fill("", lambda n: f"[tool.t{n}]\nnetwork = [" + thousand('"deny:a{0}.b:{0}1"') + "]\n"),
    "address rules": lambda: fill("", lambda n: f"[tool.t{n}]\nnetwork = [" + thousand('"10.0.{0}.0/30:1"').replace(
        ".0.256", ".1.0") + "]\n"),
    "repeated rules": lambda: fill("", lambda n: f"[tool.t{n}]\nnetwork = [" + thousand('"a.b:1"') + "]\n"),
    "tools": lambda: fill("", lambda n: f"[tool.t{n}]\n"),
    "tools of 60 bytes": lambda: fill("", lambda n: f"[tool.t{n}]\n# {'x' * 45}\n"),
    "unknown keys": lambda: fill("[tool.t]\n", lambda n: f"k{n}=1\n"),
    "unknown tables": lambda: fill("", lambda n: f"[k{n}]\n"),
    "grants to unknown tools": lambda: fill("[agent.a]\ngrants = [", lambda n: f'"t{n}",', "]\n"),
    "narrow grants": lambda: fill("[agent.a]\ngrants = [", lambda n: f'{{tool="t{n}",pids=1}},', "]\n"),
    "tools and grants": lambda: half(lambda n: f"[tool.t{n}]\n") + half(lambda n: f'"t{n}",', "[agent.a]\ngrants = [") + "]\n",
    "tools and agents": lambda: half(lambda n: f"[tool.t{n}]\n") + half(lambda n: f'[agent.a{n}]\ngrants = ["t{n}"]\n'),
    "10000 tools and grants": lambda: "".join(f"[tool.t{n}]\n" for n in range(10_000)) + "".join(
        f"[agent.a{a}]\ngrants = [" + ",".join(f'"t{n}"' for n in range(10_000)) + "]\n" for a in range(40)),
    "paths": lambda: fill("", lambda n: f"[tool.t{n}.filesystem]\nreadable = [" + thousand('"/a{}"') + "]\n"),
    "paths of all kinds": lambda: fill("", lambda n: f"[tool.t{n}.filesystem]\n" + "".join(
        f"{kind} = [" + thousand('"/{}"') + "]\n" for kind in ("readable", "writable", "hidden"))),
    "nested paths": lambda: fill("", lambda n: f"[tool.t{n}.filesystem]\nreadable = [" + ",".join(
        '"' + "/a" * (i + 1) + '"' for i in range(900)) + "]\n"),
    "inherited paths": lambda: "[defaults]\nfilesystem = { readable = [" + thousand('"/a{}"') + "] }\n" + "".join(
        f"[tool.t{n}]\n" for n in range(10_000)),
    "inherited mounts": lambda: "[defaults]\nbackend = \"oci\"\nfilesystem = { readable = [" + thousand('"/a{}"') +
    "] }\ncontainer = { mounts = [" + thousand('"/m{}"') + "] }\n" + "".join(f"[tool.t{n}]\n" for n in range(10_000)),
    "inherited rules": lambda: "[defaults]\nnetwork = [" + thousand('"a{}.b:1"') + "]\n" + "".join(
        f"[tool.t{n}]\n" for n in range(10_000)),
    "inherited capabilities": lambda: "[defaults]\ncapabilities = [\"fs_write\"]\nallowed_paths = [" + thousand('"/a{}"') +
    "]\n" + "".join(f"[tool.t{n}]\n" for n in range(10_000)),
    "system calls": lambda: fill("", lambda n: f"[tool.t{n}.syscalls]\nallow = [" + thousand('"read"') + "]\ndeny = [" +
                                 thousand('"write"') + "]\n"),
    "variables": lambda: fill("[tool.t.env]\n", lambda n: f'A{n}="x"\n'),
    "placeholders": lambda: fill('[tool.t]\ncommand = ["ls",', lambda n: f'"{{a{n}}}",', "]\n"),
    "one placeholder often": lambda: fill('[tool.t]\ncommand = ["sh","-c",', lambda n: '"{a}",', "]\n", SIZE // 2),
    "programs": lambda: fill("[tool.t]\ncommands = [", lambda n: f'"p{n}",', "]\n"),
    "outputs": lambda: fill("[tool.t]\noutputs = [", lambda n: f'"/p{n}",', "]\n"),
    "a schema": lambda: fill("[tool.t.parameters.properties]\n", lambda n: f"a{n}={{}}\n", size=250_000) +
    '[tool.t]\ncommand = ["ls","{x}"]\n',
    "many schemas": lambda: fill("", lambda n: f"[tool.t{n}]\ncommand = [\"ls\",\"{{x}}\"]\nparameters = '{{\"properties\":{{" +
                                 ",".join(f'"a{i}":{{}}' for i in range(300)) + "}}'\n", size=SIZE // 2),
    "comments": lambda: fill("version = 1\n", lambda n: "#\n"),
    "line ends": lambda: fill("version = 1\n", lambda n: "\r\n"),
    "one comment": lambda: "version = 1\n#" + "x" * (SIZE - 20),
    "a description": lambda: '[tool.t]\ndescription = "' + "\u00e9" * (SIZE // 2 - 50) + '"\n',
    "escapes": lambda: '[tool.t]\ndescription = "' + "\\u0001" * (SIZE // 6 - 50) + '"\n',
}


@pytest.fixture(scope="session")
def memory_of():
    """Runs a command, for at most so long: its status, its memory in bytes, and the head of its stderr."""
    def run(argv, env, seconds):
        read_end, write_end = os.pipe()
        process = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=write_end)
        os.close(write_end)
        deadline = time.monotonic() + seconds
        errors = bytearray()
        os.set_blocking(read_end, False)
        try:
            while True:
                try:
                    errors += os.read(read_end, 65536)
                except BlockingIOError:
                    pass
                pid, status, usage = os.wait4(process.pid, os.WNOHANG)
                if pid:
                    break
                if time.monotonic() > deadline:
                    process.kill()
                    _, status, usage = os.wait4(process.pid, 0)
                    break
                time.sleep(0.005)
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, usage.ru_maxrss * 1024, errors[:4000].decode(errors="replace")
        finally:
            os.close(read_end)

    return run


@pytest.mark.parametrize("shape", HOSTILE)
def test_hostile_policy_is_judged_in_bounded_time_and_memory(build_dir, clean_env, tmp_path, memory_of, shape):
    text = HOSTILE[shape]()
    path = tmp_path / "policy.toml"
    path.write_text(text, encoding="utf-8")
    assert path.stat().st_size <= SIZE
    started = time.monotonic()
    status, memory, errors = memory_of([build_dir / "src" / "toolcage", "lint", "--no-host", path], clean_env, 20)
    seconds = time.monotonic() - started
    assert status in (0, 1, 125), f"status {status} after {seconds:.1f} s: {errors}"
    assert memory < 2_000_000_000, f"{memory / 1e6:.0f} MB"
    assert not BROKEN_PROGRAM.search(errors)


# ---- wrong invocations ---------------------------------------------------------------------------

USAGE = {
    "no verb": ((), "verb"),
    "an empty verb": (("",), "verb"),
    "unknown verb": (("lintt", "p.toml"), 'did you mean "lint"?'),
    "verb in capitals": (("DUMP", "p.toml"), 'did you mean "dump"?'),
    "nothing like a verb": (("frobnicate",), "--help"),
    "unknown option before the verb": (("--polcy", "p.toml"), "verb"),
    "unknown option": (("lint", "--strikt", "p.toml"), "did you mean --strict?"),
    "option of another verb": (("dump", "--json", "p.toml"), 'no option "json"'),
    "nothing like an option": (("lint", "--zzzzzz", "p.toml"), "lint --help"),
    "unknown letter": (("lint", "-x", "p.toml"), "no option"),
    "a dash too many": (("lint", "---strict", "p.toml"), "no option"),
    "an option with a prefix of its name": (("lint", "--stric", "p.toml"), "did you mean --strict?"),
    "missing value": (("dump", "--policy"), "--policy FILE"),
    "missing value of a letter": (("dump", "-p"), "--policy FILE"),
    "value for a flag": (("lint", "--strict=yes", "p.toml"), "takes no value"),
    "option twice": (("dump", "--policy", "p.toml", "-p", "p.toml"), "twice"),
    "flag twice": (("lint", "--strict", "--strict", "p.toml"), "twice"),
    "two policies": (("dump", "--policy", "p.toml", "p.toml"), "two policies"),
    "two arguments": (("dump", "p.toml", "q.toml"), "does not take"),
    "argument of tools": (("tools", "p.toml"), "does not take"),
    "argument behind dashes": (("dump", "--", "p.toml", "q.toml"), "does not take"),
    "option behind dashes": (("dump", "p.toml", "--", "--policy"), "does not take"),
    "no policy": (("dump",), "TOOLCAGE_POLICY"),
    "no policy for lint": (("lint",), "TOOLCAGE_POLICY"),
    "no such format": (("lint", "--format", "xml", "p.toml"), "human, json or sarif"),
    "two formats": (("lint", "--json", "--format", "json", "p.toml"), "keep one"),
    "no such tool": (("explain", "--policy", "p.toml", "u"), "toolcage tools"),
    "two questions": (("explain", "--policy", "p.toml", "t", "--call", "--read", "/"), "one thing at a time"),
    "question without a tool": (("explain", "--policy", "p.toml", "--call"), "needs a tool"),
    "agent without a question": (("explain", "--policy", "p.toml", "t", "--agent", "a"), "--call"),
    "reach without a port": (("explain", "--policy", "p.toml", "t", "--reach", "a.example"), "HOST:PORT"),
    "reach with a word as port": (("explain", "--policy", "p.toml", "t", "--reach", "a.example:http"), "HOST:PORT"),
    "reach with port 0": (("explain", "--policy", "p.toml", "t", "--reach", "a.example:0"), "65535"),
    "reach with a large port": (("explain", "--policy", "p.toml", "t", "--reach", "a.example:65536"), "65535"),
    "reach with a huge port": (("explain", "--policy", "p.toml", "t", "--reach", f"a.example:{'9' * 40}"), "65535"),
    "reach with a signed port": (("explain", "--policy", "p.toml", "t", "--reach", "a.example:+80"), "HOST:PORT"),
    "no shell": (("completion",), "bash, zsh or fish"),
    "another shell": (("completion", "tcsh"), "bash, zsh or fish"),
    "help for nothing": (("help", "lnt"), 'did you mean "lint"?'),
    "escape sequences": (("\x1b[31m",), "verb"),
}


@pytest.mark.parametrize("case", USAGE)
def test_wrong_invocation_is_explained(toolcage, tmp_path, case):
    args, hint = USAGE[case]
    (tmp_path / "p.toml").write_text("[tool.t]\n")
    done = toolcage(*args, cwd=tmp_path)
    assert not BROKEN_PROGRAM.search(done.stderr)
    assert (done.returncode, done.stdout) == (125, "")
    assert re.fullmatch(r"toolcage: error: [^\n]+\n    remedy: [^\n]+\n", done.stderr), done.stderr
    assert hint in done.stderr
    assert "\x1b" not in done.stderr


def test_dashes_end_the_options(toolcage, tmp_path):
    (tmp_path / "--strict").write_text("[tool.t]\n")
    (tmp_path / "-p").write_text("[tool.t]\n")
    for args in (("dump", "--", "--strict"), ("dump", "--policy=--strict"), ("dump", "--policy", "--strict"),
                 ("dump", "-p--strict"), ("dump", "-p", "-p"), ("dump", "--", "-p"), ("tools", "--policy", "-p", "--")):
        done = toolcage(*args, cwd=tmp_path)
        assert done.returncode == 0, (args, done.stderr)


def test_option_with_an_empty_value_is_not_missing(toolcage):
    done = toolcage("dump", "--policy=")
    assert done.returncode == 125 and "needs a value" not in done.stderr


# ---- interrupted, closed, full -------------------------------------------------------------------


@pytest.fixture
def large_policy(tmp_path):
    """A policy whose dump is larger than a pipe holds."""
    path = tmp_path / "large.toml"
    path.write_text("".join(f"[tool.t{n}]\n" for n in range(5000)))
    return path


@pytest.fixture
def start(build_dir, clean_env, tmp_path):
    """Starts the command in a directory of its own, where anything left behind would be seen."""
    started = []

    def run(*args, **options):
        folder = tmp_path / "working directory"
        folder.mkdir(exist_ok=True)
        process = subprocess.Popen([build_dir / "src" / "toolcage", *map(str, args)], cwd=folder,
                                   env=clean_env | {"TMPDIR": str(folder)}, **options)
        started.append((process, folder))
        return process

    yield run
    for process, folder in started:
        if process.poll() is None:
            process.kill()
            process.wait()
        assert list(folder.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_while_printing_ends_it_and_leaves_nothing(start, large_policy, number):
    process = start("dump", large_policy, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert os.read(process.stdout.fileno(), 10) == b"version = "
    process.send_signal(number)
    assert process.wait(SECONDS) == -number
    assert process.stderr.read() == b""
    process.stdout.close()
    process.stderr.close()


def test_reader_that_goes_away_ends_it_quietly(start, large_policy):
    process = start("dump", large_policy, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert os.read(process.stdout.fileno(), 10) == b"version = "
    process.stdout.close()
    assert process.wait(SECONDS) == -signal.SIGPIPE
    assert process.stderr.read() == b""
    process.stderr.close()


def test_reader_that_goes_away_is_an_error_where_the_signal_is_ignored(start, large_policy):
    process = start("dump", large_policy, stdout=subprocess.PIPE, stderr=subprocess.PIPE, restore_signals=False,
                    preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_IGN))
    process.stdout.close()
    assert process.wait(SECONDS) == 125
    assert b"cannot write to standard output: Broken pipe" in process.stderr.read()
    process.stderr.close()


@pytest.mark.parametrize("verb", VERBS)
def test_full_disk_is_an_error(start, large_policy, verb):
    with open("/dev/full", "wb") as full:
        process = start(*VERBS[verb](large_policy), stdout=full, stderr=subprocess.PIPE)
        _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 125
    assert b"cannot write to standard output: No space left on device" in errors


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)], ids=str)
def test_closed_standard_streams_are_not_taken_by_other_files(start, tmp_path, closed):
    policy = tmp_path / "policy.toml"
    policy.write_text('[tool.t]\npids = 5\n')
    redirect = " ".join(f"{fd}>&-" if fd else "<&-" for fd in closed)
    # The shell closes them; what remains open is a pipe.
    process = start("--version", stdout=subprocess.PIPE)
    process.communicate(timeout=SECONDS)
    shell = subprocess.run(["sh", "-c", f'exec "$0" "$@" {redirect}', process.args[0], "dump", policy],
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False)
    # Output that goes nowhere is not success.
    assert shell.returncode == (125 if 1 in closed else 0), shell.stderr
    assert ("pids = 5" in shell.stdout) is (1 not in closed)
    assert policy.read_text() == "[tool.t]\npids = 5\n"
    broken = subprocess.run(["sh", "-c", f'exec "$0" "$@" {redirect}', process.args[0], "dump", tmp_path],
                            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert broken.returncode == 125
    assert broken.stdout == ""
    assert ("TC-P002" in broken.stderr) is (2 not in closed)


def test_closed_standard_input_is_an_empty_policy_or_an_error(build_dir, clean_env):
    done = subprocess.run(["sh", "-c", 'exec "$0" dump - <&-', build_dir / "src" / "toolcage"], env=clean_env,
                          capture_output=True, text=True, timeout=SECONDS, check=False)
    assert (done.returncode, done.stdout) == (125, "")
    assert re.search(r"^-:1:1: error: .* \[TC-P00\d\]$", done.stderr, re.M)
