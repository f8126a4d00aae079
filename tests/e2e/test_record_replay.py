# SPDX-License-Identifier: Apache-2.0
"""Recording and replay through the command: what comes back, what is kept, and that nothing runs."""

import json
import os
import re
import resource
import shutil
import sqlite3
import subprocess
import tempfile
from pathlib import Path

import pytest


POLICY = """
version = 1
[defaults]
backend = "process"
[tool.echo]
command = ["printf", "%s\\n", "{word}"]
[tool.now]
command = ["date", "+%s%N"]
[tool.script]
filesystem = { readable = ["bin"] }
command = ["@/bin/script"]
[tool.typed]
command = ["cat"]
returns = { type = "object" }
[tool.hashed]
record = "hash-only"
command = ["printf", "%s", "{word}"]
[tool.quiet]
record = false
command = ["printf", "%s", "{word}"]
[tool.secret]
redact = ["/token"]
command = ["cat"]
[agent.reader]
grants = [{ tool = "echo", max_calls = 2 }]
"""


class Place:
    """A directory with a policy and a journal, and the command run in it."""

    def __init__(self, toolcage, directory):
        self.toolcage, self.directory = toolcage, directory
        self.journal, self.policy = directory / "journal.db", directory / "tools.toml"
        (directory / "bin").mkdir()
        self.script = directory / "bin" / "script"
        self.script.write_text("#!/bin/sh\necho from a script; echo and errors >&2; exit 3\n")
        self.script.chmod(0o755)
        self.policy.write_text(POLICY.replace("@", str(directory)))

    def run(self, *args, **options):
        options.setdefault("env", {})
        options["env"] = {"XDG_STATE_HOME": str(self.directory / "state")} | options["env"]
        return self.toolcage(*args, cwd=self.directory, **options)

    def call(self, session, tool, arguments="{}", *args, **options):
        return self.run("call", "--policy", self.policy, "--journal", self.journal, "--session", session, "--json", *args,
                        tool, arguments, **options)

    def replay(self, session, tool, arguments="{}", *args, **options):
        return self.call(session, tool, arguments, "--mode", "replay", *args, **options)

    def rows(self, columns="*", where="1"):
        with sqlite3.connect(f"file:{self.journal}?mode=ro", uri=True) as db:
            return db.execute(f"SELECT {columns} FROM record WHERE {where} ORDER BY row").fetchall()


@pytest.fixture
def place(toolcage, must_work):
    with tempfile.TemporaryDirectory(prefix="toolcage-record-") as directory:
        os.chmod(directory, 0o755)  # an ordinary user and a cage may look into it
        place = Place(toolcage, Path(directory))
        first = place.run("exec", "--policy", place.policy, "--", "true")
        if first.returncode != 0:
            must_work("process", f"a cage cannot be built here: {first.stderr}")
        yield place


def live_again(text):
    """The JSON of a replayed result with the only word that may differ."""
    assert text.count('"mode":"replay"') == 1
    return text.replace('"mode":"replay"', '"mode":"live"')


def good(done):
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---- replay ------------------------------------------------------------------------------------


def test_replay_gives_the_recorded_bytes_step_by_step(place):
    calls = [("echo", '{"word":"one"}'), ("now", "{}"), ("now", "{}"), ("script", "{}"), ("typed", '{"x":[1,2.5]}'),
             ("no-such-tool", "{}"), ("echo", "not JSON")]
    live = [good(place.call("s", *call)) for call in calls]
    assert json.loads(live[1])["stdout"] != json.loads(live[2])["stdout"]
    assert [json.loads(text)["verdict"] for text in live] == ["ok", "ok", "ok", "failed", "ok", "denied", "invalid_input"]
    replayed = [good(place.replay("s", *call)) for call in calls]
    assert [live_again(text) for text in replayed] == live
    shown = good(place.run("replay", "s", "--journal", place.journal, "--json"))
    assert live_again_lines(shown) == "".join(live)
    assert len(place.rows()) == len(calls)


def live_again_lines(text):
    return "".join(live_again(line) for line in text.splitlines(keepends=True))


def test_replay_makes_no_process(place, build_dir):
    """It works where the kernel refuses every new process, and the tool's program is gone."""
    live = good(place.call("s", "script"))
    shutil.rmtree(place.script.parent)
    program = shutil.copy(build_dir / "src" / "toolcage", place.directory / "toolcage")
    if os.getuid() == 0:
        for path in (place.directory, *place.directory.glob("journal.db*")):
            os.chown(path, 65534, 65534)

    def forbid():
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))

    def run(*mode):
        return subprocess.run([program, "call", "--policy", place.policy, "--journal", place.journal, "--session", "s",
                               "--json", *mode, "script", "{}"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False, preexec_fn=forbid, env=os.environ | {"ASAN_OPTIONS": "detect_leaks=0"})

    assert live_again(good(run("--mode", "replay"))) == live
    assert json.loads(good(run()))["verdict"] == "error"  # the kernel does refuse them


def test_kernel_sees_no_process_and_no_thread_in_replay(place, build_dir):
    if not shutil.which("strace"):
        pytest.skip("there is no strace")
    live = good(place.call("s", "echo", '{"word":"x"}'))
    trace = place.directory / "trace"
    done = subprocess.run(
        ["strace", "-f", "-qq", "-o", trace, "-e", "trace=execve,execveat,clone,clone3,fork,vfork,unshare,mount",
         build_dir / "src" / "toolcage", "call", "--policy", place.policy, "--journal", place.journal, "--session", "s",
         "--mode", "replay", "--json", "echo", '{"word":"x"}'],
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        env=os.environ | {"ASAN_OPTIONS": "detect_leaks=0"})
    if "ptrace" in done.stderr:
        pytest.skip("strace may not trace here")
    assert live_again(good(done)) == live
    seen = re.findall(r"^\d+ +(\w+)\(", trace.read_text(), re.M)
    assert seen == ["execve"]


def test_divergence_names_the_step_and_shows_both_requests(place):
    good(place.call("s", "echo", '{"word":"a"}'))
    good(place.call("s", "echo", '{"word":"b","n":1}'))
    good(place.replay("s", "echo", '{"word":"a"}'))
    result = json.loads(good(place.replay("s", "echo", '{"word":"evil\\u001b[31m"}')))
    assert (result["verdict"], result["mode"], result["state_hash"]) == ("error", "replay", None)
    assert result["reason"].startswith('replay diverged at step 2 of session "s": ')
    assert '/arguments/word was "b", is "evil\\x1b[31m"' in result["reason"]
    assert "/arguments/n was 1, is absent" in result["reason"]
    done = place.run("call", "--policy", place.policy, "--journal", place.journal, "--session", "s", "--mode", "replay",
                     "echo", '{"word":"c"}')
    assert done.returncode == 125 and "replay diverged at step 2" in done.stderr
    good(place.replay("s", "echo", '{"n":1,"word":"b"}'))
    assert "has only 2 steps" in json.loads(good(place.replay("s", "echo", '{"word":"a"}')))["reason"]
    good(place.run("replay", "s", "--restart", "--journal", place.journal))
    assert json.loads(good(place.replay("s", "echo", '{"word":"a"}')))["verdict"] == "ok"
    assert 'no session \\"other\\"' in good(place.replay("other", "echo", '{"word":"a"}'))


def test_exec_is_recorded_and_replayed_with_its_streams(place):
    script = "echo out; echo err >&2; exit 5"
    options = ["--policy", place.policy, "--journal", place.journal, "--session", "x"]
    live = place.run("exec", *options, "--", "sh", "-c", script)
    assert (live.returncode, live.stdout) == (5, "out\n")
    replayed = place.run("exec", *options, "--mode", "replay", "--", "sh", "-c", script)
    assert (replayed.returncode, replayed.stdout, replayed.stderr) == (5, "out\n", live.stderr)
    shown = place.run("replay", "x", "--journal", place.journal)
    assert shown.returncode == 0
    assert shown.stdout == 'step 1: failed: "the command ended with exit status 5"\nout\nerr\n'
    assert place.run("exec", *options, "--mode", "again", "--", "true").returncode == 125


def test_large_output_is_replayed_whole(place):
    options = ["--policy", place.policy, "--journal", place.journal, "--session", "large"]
    command = ["--", "head", "-c", "900000", "/dev/zero"]
    live = place.run("exec", *options, *command)
    assert (live.returncode, len(live.stdout)) == (0, 900000)
    replayed = place.run("exec", *options, "--mode", "replay", *command)
    assert (replayed.returncode, replayed.stdout) == (0, live.stdout)


# ---- recording ---------------------------------------------------------------------------------


def test_which_journal_is_used(place):
    standard = place.directory / "state" / "toolcage" / "journal.db"
    policy = ["--policy", place.policy]
    good(place.run("exec", *policy, "--", "true"))
    good(place.run("call", *policy, "--no-journal", "echo", '{"word":"a"}'))
    assert not standard.exists()
    good(place.run("call", *policy, "echo", '{"word":"a"}'))
    assert standard.exists() and standard.stat().st_mode & 0o777 == 0o600
    other = place.directory / "other.db"
    good(place.run("exec", *policy, "--", "true", env={"TOOLCAGE_JOURNAL": str(other)}))
    assert other.exists()
    for wrong in (["--session", "s"], ["--journal", other], ["--mode", "replay"]):
        done = place.run("call", *policy, "--no-journal", *wrong, "echo", '{"word":"a"}')
        assert done.returncode == 125 and "--no-journal" in done.stderr
    missing = place.run("call", *policy, "--mode", "replay", "--journal", place.directory / "none.db", "echo", "{}")
    assert missing.returncode == 125 and not (place.directory / "none.db").exists()


def test_record_names_policy_and_grants(place):
    granted = place.run("call", "--policy", place.policy, "--journal", place.journal, "--agent", "reader", "echo",
                        '{"word":"a"}')
    assert granted.returncode == 0, granted.stderr
    place.policy.write_text(place.policy.read_text() + "\n# changed\n")
    good(place.call("s", "echo", '{"word":"a"}'))
    place.run("call", "--policy", place.policy, "--journal", place.journal, "--agent", "stranger", "echo", '{"word":"a"}')
    first, second, third = place.rows("policy_hash, grants, verdict, agent, request_hash, ended_us - started_us")
    assert first[0] != second[0] == third[0]
    grant = json.loads(first[1])[0]
    assert (grant["agent"], grant["source"], grant["grant"]["max_calls"]) == ("reader", "policy", 2)
    assert (second[1], third[1], third[2], third[3]) == ("[]", "[]", "denied", "stranger")
    assert all(row[5] > 0 for row in (first, second))


def test_redacted_values_are_nowhere_in_the_journal(place):
    token = 'hunter2 "quoted" \u00e9\u00e8'
    done = place.call("s", "secret", json.dumps({"token": token, "open": "stays"}))
    assert json.loads(json.loads(good(done))["stdout"])["token"] == token
    stored = b"".join(path.read_bytes() for path in place.directory.glob("journal.db*"))
    assert b"stays" in stored and b"hunter2" not in stored and b"quoted" not in stored
    (request, result), = place.rows("request, result")
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", json.loads(request)["arguments"]["token"]["redacted"])
    assert json.loads(json.loads(result)["stdout"]) == {"open": "stays", "token": "[redacted]"}
    replayed = json.loads(good(place.replay("s", "secret", json.dumps({"token": token, "open": "stays"}))))
    assert json.loads(replayed["stdout"])["token"] == "[redacted]"
    other = json.loads(good(place.replay("s", "secret", json.dumps({"token": "another", "open": "stays"}))))
    assert other["verdict"] == "error"


def test_messages_about_redacted_arguments_are_not_in_the_journal(place):
    place.policy.write_text(place.policy.read_text() + """
[tool.limited]
redact = ["/n", "/h"]
command = ["printf", "%s", "{n}"]
parameters.properties.n = { type = "integer", maximum = 4929000000000000 }
parameters.properties.h = { additionalProperties = { maximum = 3 } }
""")
    shown = {
        '{"n" "S3CRETVALUE"}': "near",
        '{"S3CRETVALUE":1,"S3CRETVALUE":2}': "duplicate",
        '{"n":98765432109876543210}': "98765432109876543210",
        '{"n":4929123456781234}': "not 4929123456781234",
        '{"h":{"S3CRETVALUE":77777}}': "arguments/h/S3CRETVALUE",
        '"{\\"n\\":\\"S3CRETVALUE\\"}"': "are a string",
    }
    for arguments, words in shown.items():
        result = json.loads(good(place.call("s", "limited", arguments)))
        assert (result["verdict"], words in result["reason"]) == ("invalid_input", True), result["reason"]
    assert json.loads(good(place.call("s", "limited", '{"n":4928123456781234}')))["stdout"] == "4928123456781234"
    stored = b"".join(path.read_bytes() for path in place.directory.glob("journal.db*"))
    for secret in (b"S3CRETVALUE", b"98765432109876543210", b"4929123456781234", b"77777", b"4928123456781234"):
        assert secret not in stored
    replayed = json.loads(good(place.replay("s", "limited", '{"n" "S3CRETVALUE"}')))
    assert (replayed["verdict"], "not recorded" in replayed["reason"]) == ("invalid_input", True)


def test_hash_only_and_false_keep_what_they_say(place):
    live = json.loads(good(place.call("s", "hashed", '{"word":"unseen"}')))
    assert json.loads(good(place.call("s", "quiet", '{"word":"unseen"}')))["state_hash"] is None
    assert place.rows("request, result, result_hash") == [(None, None, live["hash"])]
    stored = b"".join(path.read_bytes() for path in place.directory.glob("journal.db*"))
    assert b"unseen" not in stored
    assert "only hashes" in json.loads(good(place.replay("s", "hashed", '{"word":"unseen"}')))["reason"]
    shown = place.run("replay", "s", "--journal", place.journal)
    assert (shown.returncode, shown.stdout) == (1, "") and "step 1" in shown.stderr


def test_changed_record_is_an_error_and_no_result(place):
    good(place.call("s", "echo", '{"word":"true words"}'))
    with sqlite3.connect(place.journal) as db:
        db.execute("UPDATE record SET result = replace(result, 'true words', 'fake words')")
    result = json.loads(good(place.replay("s", "echo", '{"word":"true words"}')))
    assert (result["verdict"], result["stdout"]) == ("error", "") and "changed" in result["reason"]
    shown = place.run("replay", "s", "--journal", place.journal, "--json")
    assert (shown.returncode, shown.stdout) == (1, "")
