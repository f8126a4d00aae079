# SPDX-License-Identifier: Apache-2.0
"""Grants at run time: the command, several processes on one journal, and the question at the terminal."""

import ctypes
import fcntl
import json
import os
import pty
import re
import select
import signal
import sqlite3
import struct
import subprocess
import termios
import time
import unicodedata

import pytest

POLICY = """
[tool.hello]
command = ["echo", "{x}"]
parameters = { type = "object", properties = { x = { type = "string" } } }
[tool.secret]
command = ["true"]
[tool.asked]
command = ["echo", "{x}"]
parameters = { type = "object", properties = { x = { type = "string" } } }
filesystem = { readable = ["/etc/hostname:/name"] }
approval = "ask"
approval_timeout = "20s"
[tool.quick]
command = ["true"]
approval = "ask"
approval_timeout = "300ms"
[tool.short]
command = ["true"]
approval = "ask"
approval_timeout = "2s"
[tool.free]
command = ["true"]
backend = "process"
approval = "ask"
[agent.boss]
grants = [{ tool = "hello", max_calls = 60 }]
[agent.kid]
parent = "boss"
grants = ["hello", "secret"]
"""


@pytest.fixture
def place(tmp_path):
    (tmp_path / "p.toml").write_text(POLICY)
    return tmp_path


@pytest.fixture
def grant(toolcage, place):
    def run(*args, **options):
        return toolcage("grant", *args, "--policy", place / "p.toml", "--journal", place / "j.db", **options)

    return run


@pytest.fixture
def probe(build_dir, place):
    """An engine in a process of its own that answers how many of so many calls are allowed."""
    started = []

    def start(agent, tool):
        process = subprocess.Popen(
            [build_dir / "tests" / "unit" / "grants_probe", place / "p.toml", place / "j.db", agent, tool],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.stdin.close()
        process.wait(timeout=60)
        process.stdout.close()


def answer(process, times=1):
    process.stdin.write(f"{times}\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def grants(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["grants"]


# ---- the command ----------------------------------------------------------------------------------


def test_grant_is_made_listed_used_and_revoked(toolcage, place, grant):
    call = ["call", "--policy", place / "p.toml", "--journal", place / "j.db", "--agent", "new", "hello", '{"x":"hi"}']
    assert "holds no grant" in toolcage(*call).stderr
    made = grant("add", "new", "hello", "--max-calls", "3", "--memory", "60MB", "--expires", "2090-01-01", "--network", "none")
    assert made.returncode == 0, made.stderr
    uuid = made.stdout.strip()
    assert toolcage(*call).stdout == "hi\n"
    row, = grants(grant("list", "new", "--json"))
    assert row["id"] == uuid and row["calls"] == 1 and row["state"] == "active" and row["source"] == "journal"
    assert row["grant"] == {"expires": "2090-01-01T00:00:00Z", "max_calls": 3, "memory": "60MB", "network": "none", "tool": "hello"}
    assert uuid in grant("list").stdout
    assert grant("revoke", uuid).returncode == 0
    assert "holds no grant" in toolcage(*call).stderr
    assert grant("revoke", uuid).returncode == 125
    assert uuid not in grant("list", "new").stdout
    assert grants(grant("list", "new", "--json"))[0]["state"] == "revoked"


def test_grant_list_is_what_its_schema_says(repo, grant):
    jsonschema = pytest.importorskip("jsonschema")
    assert grant("add", "new", '{ tool = "asked", filesystem = "none", approval = "ask" }').returncode == 0
    assert grant("add", "kid", "hello", "--expires", "2020-01-01").returncode == 0
    schema = json.loads((repo / "schemas" / "grants.json").read_text(encoding="utf-8"))
    done = grant("list", "--json")
    jsonschema.validate(json.loads(done.stdout), schema)
    states = {(row["agent"], row["source"]): row["state"] for row in grants(done)}
    assert states[("kid", "journal")] == "expired" and states[("boss", "policy")] == "active"


@pytest.mark.parametrize("words, message", [
    (["add", "new", "helo"], 'did you mean "hello"?'),
    (["add", "new", "hello", "--expires", "tomorrow"], "is not a date"),
    (["add", "new", "hello", "--max-calls", "many"], "whole number"),
    (["add", "new", "hello", "--network", "nowhere"], "network"),
    (["add", "a b", "hello"], "not a name for an agent"),
    (["add", "new", '{ tool = "hello", netwrk = false }'], 'did you mean "network"?'),
    (["add", "new", '{ tool = "hello" }', "--ask"], "beside a whole table"),
    (["add", "new"], "needs an agent and a tool"),
    (["ad", "new"], 'did you mean "add"?'),
    (["revoke"], "needs an id"),
    (["revoke", "x\033[2J"], "there is no grant"),
    (["list", "--ask"], "is for"),
    ([], "missing"),
])
def test_wrong_grants_are_refused_with_a_remedy(grant, words, message):
    done = grant(*words)
    assert done.returncode == 125 and done.stdout == ""
    assert message in done.stderr and "remedy:" in done.stderr and "\033" not in done.stderr


def test_unknown_and_ungranted_tools_give_the_same_bytes(toolcage, place):
    """But for ids, hashes and times."""
    def result(tool):
        done = toolcage("call", "--json", "--policy", place / "p.toml", "--no-journal", "--agent", "kid", tool, "{}")
        text = done.stdout.replace(tool, "TOOL")
        text = re.sub(r'"(call_id|trace_id|hash)": ?"[^"]*"', "", text)
        return re.sub(r'"duration_ms": ?[0-9.]+', "", text), done.stderr, done.returncode

    assert result("secret") == result("nosuch")  # kid holds a grant for one, its parent does not


def test_ungranted_tool_leaves_the_same_record_whatever_it_records(toolcage, place):
    (place / "p.toml").write_text('version = 1\n[tool.quiet]\ncommand = ["cat"]\nrecord = false\n'
                                  '[tool.hashed]\ncommand = ["cat"]\nrecord = "hash-only"\n[agent.kid]\ngrants = []\n')
    for tool in ("quiet", "hashed", "nosuch"):
        done = toolcage("call", "--json", "--policy", place / "p.toml", "--journal", place / "j.db", "--agent", "kid", tool, "{}")
        value = json.loads(done.stdout)
        assert value["verdict"] == "denied" and len(value["state_hash"]) == 64
    checked = toolcage("journal", "verify", "--journal", place / "j.db")
    assert checked.returncode == 0, checked.stderr


def test_calls_are_counted_by_the_policys_file_and_not_by_its_name(toolcage, place):
    """A link to it, or to its directory, is no other policy."""
    (place / "real").mkdir()
    (place / "real" / "p.toml").write_text(POLICY.replace("max_calls = 60", "max_calls = 2"))
    (place / "link.toml").symlink_to("real/p.toml")
    (place / "folder").symlink_to("real")
    (place / "copy").mkdir()
    (place / "copy" / "p.toml").write_text((place / "real" / "p.toml").read_text())

    def call(name):
        return toolcage("call", "--policy", name, "--journal", place / "j.db", "--agent", "boss", "hello", '{"x":"hi"}', cwd=place)

    assert call("real/p.toml").stdout == "hi\n"
    assert call("link.toml").stdout == "hi\n"
    for name in ("real/p.toml", "link.toml", "folder/p.toml", "./real/../folder/p.toml", "/proc/self/cwd/link.toml"):
        assert "has used all 2 calls" in call(name).stderr, name
    assert call("copy/p.toml").stdout == "hi\n"


# ---- several processes ----------------------------------------------------------------------------


def test_processes_that_race_make_exactly_as_many_calls_as_are_granted(grant, probe):
    assert grant("add", "new", "hello", "--max-calls", "37").returncode == 0
    racers = [probe("new", "hello") for _ in range(8)]
    for racer in racers:
        racer.stdin.write("20\n")
        racer.stdin.flush()
    assert sum(int(racer.stdout.readline().split()[0]) for racer in racers) == 37
    assert "used all 37 calls" in answer(racers[0])
    assert grants(grant("list", "new", "--json"))[0]["calls"] == 37


def test_children_of_one_parent_share_its_calls(grant, probe):
    assert grant("add", "boss", "secret", "--max-calls", "5").returncode == 0
    racers = [probe("kid", "secret"), probe("boss", "secret"), probe("kid", "secret")]
    for racer in racers:
        racer.stdin.write("4\n")
        racer.stdin.flush()
    assert sum(int(racer.stdout.readline().split()[0]) for racer in racers) == 5


def test_revoking_ends_a_grant_at_once_in_a_running_process(grant, probe):
    running = probe("new", "hello")
    assert answer(running).startswith("0 ")
    uuid = grant("add", "new", "hello").stdout.strip()
    assert answer(running).startswith("1 ")
    assert grant("revoke", uuid).returncode == 0
    assert answer(running).startswith("0 agent \"new\" holds no grant")


@pytest.mark.parametrize("change", [
    "UPDATE run_grant SET agent = 'evil'",
    "UPDATE run_grant SET tool = 'secret'",
    "UPDATE run_grant SET text = replace(text, '3', '3000')",
    "UPDATE run_grant SET revoked_us = 0, revoked_row = 0",
])
def test_row_that_somebody_changed_is_no_grant(grant, probe, place, change):
    uuid = grant("add", "new", "hello", "--max-calls", "3").stdout.strip()
    if "revoked" in change:
        assert grant("revoke", uuid).returncode == 0
    with sqlite3.connect(place / "j.db") as database:
        database.execute(change)
    database.close()
    for agent, tool in (("new", "hello"), ("evil", "hello"), ("new", "secret")):
        assert not answer(probe(agent, tool)).startswith("1 ")
    assert grant("list").returncode != 0 or "revoked" in change


# ---- the question ---------------------------------------------------------------------------------


def resize(fd, rows, columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


class Terminal:
    """The command with a terminal of its own."""

    def __init__(self, build_dir, args, env=None, stdin=None, rows=40, columns=80, before=None, program=None):
        program = program or build_dir / "src" / "toolcage"
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            try:
                resize(0, rows, columns)
                if before:
                    before()
                if stdin is not None:
                    os.dup2(os.open(stdin, os.O_RDONLY), 0)
                os.environ.update({"TERM": "xterm", "LC_ALL": "C.UTF-8", **(env or {})})
                os.execv(program, [os.path.basename(program), *map(str, args)])
            finally:
                os._exit(99)
        self.seen = b""

    def until(self, text, seconds=20):
        end = time.monotonic() + seconds
        while text not in self.seen and time.monotonic() < end:
            if not select.select([self.master], [], [], 0.2)[0]:
                continue
            try:
                got = os.read(self.master, 65536)
            except OSError:
                break
            if not got:
                break
            self.seen += got
        return self.seen

    def type(self, text):
        os.write(self.master, text)

    def end(self):
        self.until(b"\0never", 20)
        os.close(self.master)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.fixture
def ask(build_dir, place):
    def start(tool, arguments, *more, **options):
        return Terminal(build_dir, ["call", "--policy", place / "p.toml", "--no-journal", *more, tool, json.dumps(arguments)],
                        **options)

    return start


QUESTION = b"anything else is no) "


@pytest.mark.parametrize("typed, yes", [(b"y\n", True), (b"YES\n", True), (b"\n", False), (b"yep\n", False), (b"n\ny\n", False),
                                        (b"\x04", False)])
def test_only_yes_is_yes(ask, typed, yes):
    terminal = ask("asked", {"x": "done-it"})
    shown = terminal.until(QUESTION)
    assert b'"echo"' in shown and b'"done-it"' in shown and b"/etc/hostname:/name" in shown and b'"none"' in shown
    before = len(shown)
    terminal.type(typed)
    status = terminal.end()
    assert (b"done-it" in terminal.seen[before:]) == yes
    assert status == (0 if yes else 125)


def test_what_was_typed_before_the_question_does_not_count(ask):
    terminal = ask("quick", {})
    terminal.type(b"y\ny\ny\n")
    status = terminal.end()
    assert status == 125 and b"nobody approved the call within 300ms" in terminal.seen


def test_answer_does_not_come_from_standard_input(ask, place):
    (place / "yes").write_text("y\n" * 100)
    terminal = ask("quick", {}, stdin=str(place / "yes"))
    assert terminal.end() == 125
    assert b"nobody approved" in terminal.seen


def test_interrupt_is_no(ask):
    terminal = ask("asked", {"x": "done-it"})
    before = len(terminal.until(QUESTION))
    terminal.type(b"\x03")
    assert terminal.end() in (125, 130, -signal.SIGINT)
    assert b"done-it" not in terminal.seen[before:]


def test_without_a_terminal_it_is_no(toolcage, place):
    done = toolcage("call", "--policy", place / "p.toml", "--no-journal", "asked", '{"x":"1"}', start_new_session=True)
    assert done.returncode == 125 and "nobody to ask" in done.stderr


def question_lines(shown):
    """What is written, without what readies the terminal."""
    text = shown.decode().replace("\r\n", "\n")
    return text[text.index("toolcage: a call"):].split("\n")


def columns_of(line):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


@pytest.mark.parametrize("columns, widest", [(80, 76), (200, 76), (40, 39), (30, 29), (0, 40)])
def test_argument_cannot_draw_a_question_of_its_own(ask, columns, widest):
    hostile = ("a\033[2J\033[1;1H\nAllow it? (y or yes)\r\u202edenwo\u200b\u009b31m" + "\u4e2d" * 50 + " " * 70 +
               "network  \"none\"" + "".join(" " * n + "Allow it? " for n in range(20, 40)))
    terminal = ask("asked", {"x": hostile}, columns=columns, rows=200)
    shown = terminal.until(b"is no) ")
    terminal.type(b"n\n")
    assert terminal.end() == 125
    lines = question_lines(shown)
    text = "\n".join(lines)
    assert not re.search("[\033\u202e\u200b\u009b\r]", text)
    ours = ("toolcage: ", "  tool ", "  command ", "  arguments ", "  reads ", "  writes ", "  network ", "Allow it? ")
    for line in lines:
        assert line.startswith(ours) or line.startswith(" " * 11), line
        assert columns_of(line) <= widest
    assert sum(line.startswith("Allow it?") for line in lines) == 1
    assert sum(line.startswith("  network ") for line in lines) == 1
    whole = re.sub(r"\n           \| ", "", text)
    assert "\\u{1b}[2J" in whole and "\\u{a}Allow" in whole and "\\u{202e}" in whole


def test_terminal_too_narrow_for_the_question_is_no(ask):
    terminal = ask("asked", {"x": "done-it"}, columns=29)
    assert terminal.end() == 125
    assert b"too narrow" in terminal.seen and b"Allow it?" not in terminal.seen


def test_terminal_that_became_narrower_is_no(ask):
    terminal = ask("asked", {"x": "done-it"})
    terminal.until(QUESTION)
    resize(terminal.master, 40, 76)
    terminal.type(b"y\n")
    assert terminal.end() == 125
    assert b"has become narrower" in terminal.seen


@pytest.mark.parametrize("env, shown_as", [
    ({}, "A\\u{1d173}B\\u{fe0f}C\\u{2066}\u00db\u4e2d"),
    ({"LC_ALL": "C"}, "A\\u{1d173}B\\u{fe0f}C\\u{2066}\\u{db}\\u{4e2d}"),
])
def test_what_shows_nothing_or_is_taken_for_controls_is_written_out(ask, env, shown_as):
    terminal = ask("asked", {"x": "A\U0001d173B\ufe0fC\u2066\u00db\u4e2d"}, env=env)
    shown = terminal.until(QUESTION)
    terminal.type(b"n\n")
    terminal.end()
    assert f'"{shown_as}"' in "\n".join(question_lines(shown))


def test_what_a_tool_did_to_the_terminal_is_undone_before_the_question(ask):
    terminal = ask("quick", {})
    terminal.end()
    reset = terminal.seen[:terminal.seen.index(b"toolcage: a call")]
    assert reset.startswith(b"\x18\033\\")
    for part in (b"\033[!p", b"\0337\033[r\0338", b"\033[0m", b"\033(B\x0f", b"\033[?25h", b"\r\n\033[J", b"\033%G"):
        assert part in reset
    terminal = ask("quick", {}, env={"TERM": "dumb"})
    terminal.end()
    assert terminal.seen.startswith(b"toolcage: a call")


def test_blanks_do_not_push_what_matters_out_of_sight(ask):
    terminal = ask("asked", {"x": "a" + " " * 3000 + "b\u00a0\u3000c        d"})
    shown = terminal.until(QUESTION)
    terminal.type(b"n\n")
    terminal.end()
    assert r"a\u{20 x3000}b\u{a0}\u{3000}c        d" in "\n".join(question_lines(shown))


def test_what_cannot_be_shown_whole_is_not_asked(ask):
    terminal = ask("asked", {"x": "x" * 40000})
    assert terminal.end() == 125
    assert b"longer than can be shown" in terminal.seen and QUESTION not in terminal.seen


def test_long_questions_say_how_long_they_are(ask):
    terminal = ask("asked", {"x": "x" * 6000}, rows=24)
    shown = terminal.until(QUESTION)
    terminal.type(b"n\n")
    terminal.end()
    assert re.search(rb"these are \d+ lines", shown)


def test_lines_are_counted_as_the_terminal_has_them(ask):
    for columns, is_long in ((80, False), (32, True)):
        terminal = ask("asked", {"x": "x" * 200}, rows=24, columns=columns)
        shown = terminal.until(b"is no) ")
        terminal.type(b"n\n")
        terminal.end()
        assert (b"these are" in shown) == is_long


# ---- several questions at one terminal ------------------------------------------------------------


def links(pid):
    """What the descriptors of a process are, by target."""
    found = {}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            found[os.readlink(f"/proc/{pid}/fd/{fd}")] = fd
        except FileNotFoundError:
            continue
    return found


def pauses(pid):
    """How often it has gone to sleep."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        text = file.read()
    return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", text, re.M)[1])


def until_it_waits(terminal):
    """It tries to get the terminal, pauses and tries again."""
    end = time.monotonic() + 30
    while "/dev/tty" not in links(terminal.pid) and time.monotonic() < end:
        time.sleep(0.02)
    before = pauses(terminal.pid)
    while pauses(terminal.pid) < before + 4 and time.monotonic() < end:
        time.sleep(0.02)


def hold(terminal):
    """Takes the terminal as another question does."""
    number = struct.unpack("I", fcntl.ioctl(terminal.master, 0x80045430, b"\0" * 4))[0]  # TIOCGPTN
    fd = os.open(f"/dev/pts/{number}", os.O_RDWR | os.O_NOCTTY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    return fd


@pytest.fixture
def ask_kept(ask, place):
    """A call that has to wait, because somebody else has the terminal."""
    kept = []

    def start(tool, arguments):
        def wait():
            while not (place / "go").exists():
                time.sleep(0.01)

        (place / "go").unlink(missing_ok=True)
        terminal = ask(tool, arguments, before=wait)
        kept.append(hold(terminal))
        (place / "go").touch()
        return terminal, kept

    yield start
    for fd in kept:
        os.close(fd)


def test_answer_belongs_to_the_question_in_front_of_it(build_dir, place):
    script = f"""
        call() {{
            {build_dir}/src/toolcage call --policy {place}/p.toml --no-journal asked "{{\\"x\\":\\"$1\\"}}" \\
                >{place}/$1 2>{place}/$1.err
        }}
        call first & call second & call third & wait"""
    terminal = Terminal(build_dir, ["-c", script], program="/bin/sh")
    answers = {}
    for yes in (True, False, True):
        shown = terminal.until(QUESTION)
        time.sleep(0.3)  # for the others to ask as well, if they would
        shown = terminal.until(b"\0never", 0.1)
        assert shown.count(b"a call needs your approval") == 1
        name = re.search(rb'"(first|second|third)"', shown).group(1).decode()
        answers[name] = yes
        terminal.seen = b""
        terminal.type(b"y\n" if yes else b"n\n")
    assert terminal.end() == 0
    assert len(answers) == 3
    for name, yes in answers.items():
        assert (place / name).read_text() == (name + "\n" if yes else ""), (place / f"{name}.err").read_text()


def test_answer_to_the_question_before_does_not_count_for_the_next(ask_kept):
    for _ in range(3):
        terminal, kept = ask_kept("asked", {"x": "done-it"})
        until_it_waits(terminal)
        os.close(kept.pop())
        is_early = QUESTION not in terminal.until(b"network ")
        terminal.type(b"n\n")
        if is_early and QUESTION not in terminal.until(b"\0never", 0.1):
            break
        terminal.end()  # we were late: it was an answer to the question itself
    else:
        pytest.fail("there is no time before the question")
    before = len(terminal.until(QUESTION))
    terminal.type(b"y\n")
    assert terminal.end() == 0
    assert b"done-it" in terminal.seen[before:]


def test_terminal_that_somebody_keeps_is_no_at_the_deadline(ask_kept):
    terminal, kept = ask_kept("quick", {})
    terminal.until(b"nobody approved the call within 300ms")
    os.close(kept.pop())
    assert terminal.end() == 125
    assert b"nobody approved the call within 300ms" in terminal.seen and b"needs your approval" not in terminal.seen


def test_terminal_that_cannot_be_kept_for_one_question_is_no(ask):
    def lose_the_device():
        """As after `su`: /dev/tty can be opened, the device cannot, by root neither (CAP_DAC_OVERRIDE)."""
        os.fchmod(0, 0)
        ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)

    terminal = ask("free", {}, before=lose_the_device)
    assert terminal.end() == 125
    assert b"cannot be kept for one question" in terminal.seen and b"Allow it?" not in terminal.seen


def test_question_that_came_too_late_to_be_read_is_not_shown(ask_kept):
    terminal, kept = ask_kept("short", {})
    until_it_waits(terminal)
    os.close(kept.pop())
    assert terminal.end() == 125
    assert b"nobody approved the call within 2s" in terminal.seen and b"needs your approval" not in terminal.seen


def test_deadline_holds_when_the_terminal_takes_no_output(ask, place):
    def stop_output():
        termios.tcflow(0, termios.TCOOFF)
        out = os.open(place / "out", os.O_CREAT | os.O_WRONLY, 0o600)
        os.dup2(out, 1)
        os.dup2(out, 2)

    terminal = ask("quick", {}, before=stop_output)
    end = time.monotonic() + 30
    pid = 0
    while not pid and time.monotonic() < end:
        pid, status = os.waitpid(terminal.pid, os.WNOHANG)
        time.sleep(0.02)
    if not pid:
        os.kill(terminal.pid, signal.SIGKILL)
        os.waitpid(terminal.pid, 0)
    os.close(terminal.master)
    assert pid and os.waitstatus_to_exitcode(status) == 125
    assert b"nobody approved the call within 300ms" in (place / "out").read_bytes()


def test_line_that_somebody_else_reads_does_not_hold_the_question(ask):
    """Between poll() and read() another process may take the line: the read must not wait."""
    terminal = ask("asked", {"x": "1"})
    terminal.until(QUESTION)
    with open(f"/proc/{terminal.pid}/fdinfo/{links(terminal.pid)['/dev/tty']}", encoding="ascii") as info:
        flags = int(re.search(r"flags:\s*(\d+)", info.read()).group(1), 8)
    terminal.type(b"n\n")
    assert terminal.end() == 125
    assert flags & os.O_NONBLOCK and flags & os.O_CLOEXEC
