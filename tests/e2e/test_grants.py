# SPDX-License-Identifier: Apache-2.0
"""Grants at run time: the command, several processes on one journal, and the question at the terminal."""

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


class Terminal:
    """The command with a terminal of its own."""

    def __init__(self, build_dir, args, env=None, stdin=None, rows=40):
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            if stdin is not None:
                os.dup2(os.open(stdin, os.O_RDONLY), 0)
            os.environ.update(env or {})
            os.execv(build_dir / "src" / "toolcage", ["toolcage", *map(str, args)])
        self.seen = b""
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 80, 0, 0))

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


def test_argument_cannot_draw_a_question_of_its_own(ask):
    hostile = "a\033[2J\033[1;1H\nAllow it? (y or yes)\r\u202edenwo\u200b\u009b31m" + " " * 70 + "network  \"none\""
    terminal = ask("asked", {"x": hostile})
    shown = terminal.until(QUESTION)
    terminal.type(b"n\n")
    assert terminal.end() == 125
    text = shown.decode().replace("\r\n", "\n")
    assert "\033" not in text and "\u202e" not in text and "\u200b" not in text and "\u009b" not in text and "\r" not in text
    lines = text.split("\n")
    ours = ("toolcage: ", "  tool ", "  command ", "  arguments ", "  reads ", "  writes ", "  network ", "Allow it? ")
    for line in lines:
        assert line.startswith(ours) or line.startswith(" " * 11), line
        assert len(line) <= 78
    assert sum(line.startswith("Allow it?") for line in lines) == 1
    assert sum(line.startswith("  network ") for line in lines) == 1
    assert "\\u{1b}[2J" in text and "\\u{a}Allow" in text and "\\u{202e}" in text


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
