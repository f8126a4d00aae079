# SPDX-License-Identifier: Apache-2.0
"""The journal when things go wrong: kill -9, no space, a read-only or locked file, a newer version.

Whatever happens, a call whose result was given is in the journal, the chain holds, and the error says what to do.
"""

import json
import os
import random
import selectors
import sqlite3
import subprocess
import time

import pytest

CALLS, WORKERS = 1000, 3

POLICY = """
version = 1
[tool.echo]
backend = "process"
command = ["printf", "%s", "{word}"]
[tool.large]
backend = "process"
command = ["head", "-c", "40000", "/dev/zero"]
"""


class Place:
    def __init__(self, toolcage, build_dir, directory):
        self.run, self.directory = toolcage, directory
        self.host = build_dir / "tests" / "unit" / "journal_host"
        self.toolcage_path = build_dir / "src" / "toolcage"
        self.journal, self.policy = directory / "journal.db", directory / "tools.toml"
        self.policy.write_text(POLICY)

    def call(self, *args, **options):
        return self.run("call", "--policy", self.policy, "--journal", self.journal, *args, **options)

    def verify(self):
        done = self.run("journal", "verify", "--journal", self.journal)
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self, session, *more, tool="echo"):
        return subprocess.Popen([self.host, self.policy, self.journal, session, tool, *more], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def call_ids(self):
        with sqlite3.connect(f"file:{self.journal}?mode=ro", uri=True) as db:
            return [row[0] for row in db.execute("SELECT call_id FROM record WHERE kind = 'call'")]


@pytest.fixture
def place(toolcage, build_dir, must_work, tmp_path):
    tmp_path.chmod(0o755)
    place = Place(toolcage, build_dir, tmp_path)
    first = place.call("--session", "first", "echo", '{"word":"x"}')
    if first.returncode != 0:
        must_work("process", f"a cage cannot be built here: {first.stderr}")
    return place


# ---- kill -9 -----------------------------------------------------------------------------------


class Worker:
    """A process that makes calls until it is killed, again and again: after some calls, or while it opens the journal."""

    def __init__(self, place, number, chance):
        self.place, self.session, self.chance = place, f"worker {number % 2}", chance
        self.ids, self.errors = [], b""
        self.begin()

    def begin(self):
        self.process = self.place.start(self.session)
        self.rest = b""
        early = self.chance.random() < 0.2
        self.kill_at = time.monotonic() + self.chance.uniform(0, 0.1) if early else float("inf")
        self.last = len(self.ids) + self.chance.randrange(1, 80)

    def read(self):
        data = os.read(self.process.stdout.fileno(), 65536)
        *lines, self.rest = (self.rest + data).split(b"\n")
        self.ids += [line.decode() for line in lines]
        return data

    def is_due(self):
        return len(self.ids) >= self.last or time.monotonic() > self.kill_at or self.process.poll() is not None

    def kill(self):
        time.sleep(self.chance.uniform(0, 0.004))  # anywhere in a call
        self.process.kill()
        while self.read():
            pass
        self.errors += self.process.stderr.read()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()


def test_killed_writers_lose_no_finished_call(place, time_scale):
    """Several processes write one journal, two of them one session; each is killed at random moments."""
    chance = random.Random()
    workers = [Worker(place, number, chance) for number in range(WORKERS)]
    kills, end = 0, time.monotonic() + 120 * time_scale
    while sum(len(worker.ids) for worker in workers) < CALLS and time.monotonic() < end:
        with selectors.DefaultSelector() as selector:
            for worker in workers:
                selector.register(worker.process.stdout, selectors.EVENT_READ, worker)
            for key, _ in selector.select(timeout=0.02):
                key.data.read()
        for worker in filter(Worker.is_due, workers):
            worker.kill()
            kills += 1
            worker.begin()
    for worker in workers:
        worker.kill()
    assert not any(worker.errors for worker in workers), [worker.errors for worker in workers]
    seen = [call_id for worker in workers for call_id in worker.ids]
    recorded = place.call_ids()
    assert len(seen) >= CALLS and kills > 5
    assert len(recorded) == len(set(recorded)) and set(seen) <= set(recorded)
    place.verify()


# ---- files that cannot be written --------------------------------------------------------------


def in_mount_namespace(place, options, script):
    """Runs a script where place.directory/small is a small file system of its own."""
    (place.directory / "small").mkdir()
    unshare = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    done = subprocess.run(
        [*unshare, "sh", "-c", f'mount -t tmpfs -o {options} none "$D" || exit 77\n{script}'],
        env=os.environ | {"D": str(place.directory / "small"), "T": str(place.toolcage_path), "P": str(place.policy)},
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"no mount namespace here: {done.stderr}")
    return done


def test_full_disk_is_found_before_anything_runs_and_the_chain_holds(place):
    """Calls until there is no room for a record, and a few more; then room again."""
    done = in_mount_namespace(place, "size=1500k", """
        i=0
        while [ $i -lt 9 ]; do
            "$T" call --policy "$P" --journal "$D/journal.db" --json large '{}' || echo "exit $?"
            i=$((i + 1))
        done
        head -c 9000000 /dev/zero >"$D/more" 2>/dev/null
        SQLITE_TMPDIR=$D "$T" journal prune --keep 1 --journal "$D/journal.db" || echo "prune $?"
        rm "$D/more"
        mount -o remount,size=8m none "$D"
        "$T" call --policy "$P" --journal "$D/journal.db" --json echo '{"word":"room"}'
        "$T" journal verify --journal "$D/journal.db" >&2 && echo verified
        "$T" journal export --journal "$D/journal.db" 2>/dev/null | grep -c '"call_id"'
    """)
    *lines, verified, count = done.stdout.splitlines()
    assert verified == "verified", done.stdout + done.stderr
    results = [json.loads(line) for line in lines if line.startswith("{")]
    assert all(result["state_hash"] for result in results), results  # whatever ran is recorded
    assert 2 <= len(results) < 9 and results[-1]["stdout"] == "room"
    assert lines.count("exit 125") == 10 - len(results)
    assert "there is no space left for it" in done.stderr and "name another file with --journal" in done.stderr
    assert "prune 125" in lines and "prune needs as much free space" in done.stderr, done.stderr
    assert int(count) == len(results)


def test_call_of_a_journal_that_was_taken_away_does_not_run(place):
    host = place.start("gone", "asked")

    def go():
        host.stdin.write(b"go\n")
        host.stdin.flush()
        return json.loads(host.stdout.readline())

    assert host.stdout.readline() == b"open\n" and go()["verdict"] == "ok"
    place.journal.rename(place.directory / "elsewhere")
    result = go()
    assert (result["verdict"], result["stdout"], result["state_hash"]) == ("error", "", None), result
    assert result["reason"].startswith("the call was not made, since it could not be recorded: "), result
    assert "removed" in result["reason"] and "again" in result["fix"]
    (place.directory / "elsewhere").rename(place.journal)
    assert go()["verdict"] == "ok"
    host.stdin.close()
    assert host.wait() == 0
    host.stdout.close()
    host.stderr.close()
    assert len(place.call_ids()) == 3
    place.verify()


def test_read_only_file_system_is_refused_before_anything_runs(place):
    done = in_mount_namespace(place, "size=4m", """
        "$T" call --policy "$P" --journal "$D/journal.db" --session s echo '{"word":"before"}' || exit 1
        mount -o remount,bind,ro "$D"
        "$T" call --policy "$P" --journal "$D/journal.db" --session s echo '{"word":"never"}'
        echo "exit $?"
        "$T" replay s --journal "$D/journal.db"
    """)
    assert done.stdout.splitlines() == ["before" + "exit 125", 'step 1: "echo" ok', "before"], done.stdout + done.stderr
    assert "cannot be written" in done.stderr and "never" not in done.stdout


def test_locked_journal_is_waited_for_and_then_named(place):
    """And a call that cannot be recorded does not begin."""
    host = place.start("locked", "asked")
    assert host.stdout.readline() == b"open\n"
    lock = sqlite3.connect(place.journal, isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    before = time.monotonic()
    host.stdin.write(b"go\n")
    host.stdin.flush()
    result = json.loads(host.stdout.readline())
    assert time.monotonic() - before > 3
    assert (result["verdict"], result["stdout"], result["state_hash"]) == ("error", "", None)
    assert result["reason"].startswith("the call was not made, since it could not be recorded: ")
    assert "lock" in result["reason"]
    lock.execute("ROLLBACK")
    lock.close()
    host.stdin.write(b"go\n")
    host.stdin.flush()
    assert json.loads(host.stdout.readline())["verdict"] == "ok"
    host.stdin.close()
    assert host.wait() == 0
    host.stdout.close()
    host.stderr.close()
    assert len(place.call_ids()) == 2
    place.verify()


def test_short_lock_is_waited_for(place):
    lock = sqlite3.connect(place.journal, isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    call = subprocess.Popen([place.toolcage_path, "call", "--policy", place.policy, "--journal", place.journal, "echo",
                             '{"word":"x"}'], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(0.3)
    lock.execute("ROLLBACK")
    lock.close()
    assert call.communicate()[0] == b"x" and call.returncode == 0
    assert len(place.call_ids()) == 2


def test_journal_of_a_newer_version_is_left_alone(place):
    with sqlite3.connect(place.journal) as db:
        db.execute("PRAGMA user_version = 99")
    done = place.call("echo", '{"word":"never"}')
    assert (done.returncode, done.stdout) == (125, "")
    assert "version" in done.stderr and "99" in done.stderr
    assert len(place.call_ids()) == 1


def test_file_that_is_no_journal_is_left_alone(place):
    for content in (b"not a database, but longer than a page header" * 10, b""):
        other = place.directory / "other.db"
        other.write_bytes(content)
        done = place.run("call", "--policy", place.policy, "--journal", other, "echo", '{"word":"x"}')
        if content:
            assert (done.returncode, done.stdout) == (125, "") and other.read_bytes() == content
        else:
            assert done.returncode == 0, done.stderr
