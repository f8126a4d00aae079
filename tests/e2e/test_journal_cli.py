# SPDX-License-Identifier: Apache-2.0
"""`toolcage journal` and `toolcage receipt`: showing, verifying, moving, pruning, signing.

The chain is recomputed here from docs/journal.md alone, and journals are tampered with from outside, through
Python's own sqlite3: what verify says must not depend on toolcage's own writer.
"""

import hashlib
import json
import os
import re
import shutil
import sqlite3
import stat
import subprocess

import jsonschema
import pytest

ZERO = "0" * 64
CALLS = 12
COLUMNS = ("row", "session", "step", "kind", "call_id", "tool", "agent", "verdict", "started_us", "ended_us", "request",
           "request_hash", "result", "result_hash", "policy_hash", "grants", "row_before", "previous", "state_hash")
T0 = 1_700_000_000_000_000  # 2023-11-14T22:13:20Z


def call(i, **more):
    return {"call": {"session": ("", "work", "märz")[i % 3], "call_id": f"call-{i}", "tool": f"tool{i % 2}",
                     "agent": "bot", "verdict": "failed" if i == 5 else "ok", "started_us": T0 + i * 1_000_000,
                     "ended_us": T0 + i * 1_000_000 + 2500, "request": f'{{"n":{i},"tool":"tool{i % 2}"}}',
                     "result": f'{{"stdout":"secret-{i:04}\\n"}}', "policy_hash": "ab" * 32,
                     "grants": '["bot"]', "hash_only": i == 7} | more}


@pytest.fixture(scope="session")
def probe(build_dir):
    """Fills a journal: probe(path, lines) returns what each line gave."""

    def run(path, lines):
        done = subprocess.run([build_dir / "tests" / "unit" / "journal_probe", path], text=True, check=False,
                              input="".join(json.dumps(line) + "\n" for line in lines), capture_output=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.split()

    return run


@pytest.fixture(scope="session")
def template(probe, tmp_path_factory):
    """A journal of calls, with a grant in it, at rest."""
    path = tmp_path_factory.mktemp("journal") / "template.db"
    lines = [call(i) for i in range(CALLS)]
    lines.insert(4, {"grant": {"agent": "bot", "tool": "tool0", "grant": {"tool": "tool0", "max_calls": 3}}})
    probe(path, lines)
    settle(path)
    return path


def settle(path):
    with sqlite3.connect(path) as base:
        base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    base.close()


@pytest.fixture
def journal(template, tmp_path):
    return shutil.copy(template, tmp_path / "journal.db")


@pytest.fixture(scope="session")
def keys(toolcage, tmp_path_factory):
    """Two pairs of keys."""
    directory = tmp_path_factory.mktemp("keys")
    for name in ("mine", "other"):
        done = toolcage("journal", "keygen", "--key", directory / name)
        assert (done.returncode, done.stderr) == (0, "")
    return directory


@pytest.fixture(scope="session")
def check_schema(repo):
    def check(name, value):
        schema = json.loads((repo / "schemas" / f"{name}.json").read_text(encoding="utf-8"))
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.Draft202012Validator(schema).validate(value)
        return value

    return check


def run(toolcage, *args, status=0, **options):
    done = toolcage(*args, **options)
    assert done.returncode == status, done.stdout + done.stderr
    assert (done.stderr == "") is (status < 125), done.stderr
    return done


def verify(toolcage, path, *args, status=0):
    report = json.loads(run(toolcage, "journal", "verify", "--json", "--journal", path, *args, status=status).stdout)
    assert report["good"] is (status == 0)
    return report


def rows_of(path):
    base = sqlite3.connect(path)
    rows = [dict(zip(COLUMNS, row)) for row in base.execute(f"SELECT {', '.join(COLUMNS)} FROM record ORDER BY row")]
    base.close()
    return rows


def tamper(path, *statements):
    base = sqlite3.connect(path)
    for statement, *values in statements:
        base.execute(statement, values)
    base.commit()
    base.close()


def canonical(row):
    """The canonical record, as docs/journal.md describes it."""
    record = {name: row[name] for name in COLUMNS if name not in ("request", "result", "previous", "state_hash")}
    record |= {"request_kept": row["request"] is not None, "result_kept": row["result"] is not None}
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def state_hash(row):
    return hashlib.sha256(bytes.fromhex(row["previous"]) + canonical(row).encode()).hexdigest()


# ---- the documented format -------------------------------------------------------------------------


def test_chain_can_be_recomputed_from_its_description(toolcage, journal):
    sessions, before = {}, ZERO
    rows = rows_of(journal)
    assert len(rows) == CALLS + 1
    for number, row in enumerate(rows, start=1):
        step, previous = sessions.get(row["session"], (0, ZERO))
        assert (row["row"], row["step"], row["row_before"], row["previous"]) == (number, step + 1, before, previous)
        for text in ("request", "result"):
            if row[text] is not None:
                assert hashlib.sha256(row[text].encode()).hexdigest() == row[f"{text}_hash"]
        assert state_hash(row) == row["state_hash"]
        sessions[row["session"]], before = (row["step"], row["state_hash"]), row["state_hash"]
    report = verify(toolcage, journal)
    assert (report["rows"], report["sessions"], report["head"]) == (CALLS + 1, 3, before)


def test_row_that_somebody_else_appends_rightly_is_good(toolcage, journal):
    """The format is all there is: no hidden state."""
    rows = rows_of(journal)
    last = next(row for row in reversed(rows) if row["session"] == "work")
    row = last | {"row": len(rows) + 1, "step": last["step"] + 1, "row_before": rows[-1]["state_hash"],
                  "previous": last["state_hash"], "call_id": "by-hand"}
    row["state_hash"] = state_hash(row)
    tamper(journal, (f"INSERT INTO record ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})",
                     *(row[name] for name in COLUMNS)),
           ("UPDATE head SET rows = ?, state_hash = ?", row["row"], row["state_hash"]),
           ("UPDATE session_head SET step = ?, state_hash = ? WHERE session = 'work'", row["step"], row["state_hash"]))
    assert verify(toolcage, journal)["head"] == row["state_hash"]


# ---- tampering -------------------------------------------------------------------------------------

VICTIM = 6


@pytest.mark.parametrize("column", [name for name in COLUMNS if name != "row"])
def test_flipped_bit_in_any_column_is_found(toolcage, journal, check_schema, column):
    value = rows_of(journal)[VICTIM - 1][column]
    if isinstance(value, int):
        changed = value ^ 1 or 99
    else:
        changed = value[:-1] + chr(ord(value[-1]) ^ 1) if value else "x"
    changed = changed + 100 if column == "step" else changed  # one that is not taken
    tamper(journal, (f"UPDATE record SET {column} = ? WHERE row = ?", changed, VICTIM))
    report = check_schema("journal", verify(toolcage, journal, status=1))
    assert (report["bad"]["row"], report["rows"]) == (VICTIM, VICTIM - 1)


@pytest.mark.parametrize("column", ["request", "result"])
def test_text_that_is_removed_is_found(toolcage, journal, column):
    tamper(journal, (f"UPDATE record SET {column} = NULL WHERE row = ?", VICTIM))
    assert verify(toolcage, journal, status=1)["bad"]["row"] == VICTIM
    done = run(toolcage, "journal", "verify", "--journal", journal, status=1)
    assert done.stdout.startswith(f"bad: row {VICTIM}: its state_hash ")


def test_text_that_is_put_back_into_a_hash_only_row_is_found(toolcage, journal):
    row = next(row for row in rows_of(journal) if row["request"] is None)
    tamper(journal, ("UPDATE record SET request = ? WHERE row = ?", '{"n":7,"tool":"tool1"}', row["row"]))
    assert verify(toolcage, journal, status=1)["bad"]["row"] == row["row"]


@pytest.mark.parametrize("victim", [1, VICTIM, CALLS + 1])
def test_removed_row_is_found(toolcage, journal, victim):
    tamper(journal, ("DELETE FROM record WHERE row = ?", victim))
    assert verify(toolcage, journal, status=1)["bad"]["row"] == victim


def test_removed_row_with_closed_ranks_is_found(toolcage, journal):
    tamper(journal, ("DELETE FROM record WHERE row = ?", VICTIM),
           ("UPDATE record SET row = -row WHERE row > ?", VICTIM), ("UPDATE record SET row = -row - 1 WHERE row < 0",))
    assert verify(toolcage, journal, status=1)["bad"]["row"] == VICTIM


def test_swapped_rows_are_found(toolcage, journal):
    tamper(journal, ("UPDATE record SET row = 1000 WHERE row = ?", VICTIM),
           ("UPDATE record SET row = ? WHERE row = ?", VICTIM, VICTIM + 1),
           ("UPDATE record SET row = ? WHERE row = 1000", VICTIM + 1))
    assert verify(toolcage, journal, status=1)["bad"]["row"] == VICTIM


def test_appended_row_is_found(toolcage, journal):
    rest = ", ".join(COLUMNS[3:])
    tamper(journal, (f"INSERT INTO record SELECT {CALLS + 2}, 'new', 1, {rest} FROM record WHERE row = 1",))
    assert verify(toolcage, journal, status=1)["bad"]["row"] == CALLS + 2


def test_whole_chain_made_again_is_found_only_by_a_signature(toolcage, journal, keys):
    """Whoever can write the file can make a new chain: what was signed before shows it."""
    run(toolcage, "journal", "sign", "--key", keys / "mine", "--journal", journal)
    sessions, before, changes = {}, ZERO, []
    for row in rows_of(journal):
        row |= {"row_before": before, "previous": sessions.get(row["session"], ZERO)}
        if row["row"] == VICTIM:
            row["verdict"] = "denied"
        row["state_hash"] = before = sessions[row["session"]] = state_hash(row)
        changes.append(("UPDATE record SET verdict = ?, row_before = ?, previous = ?, state_hash = ? WHERE row = ?",
                        row["verdict"], row["row_before"], row["previous"], row["state_hash"], row["row"]))
    changes += [("UPDATE session_head SET state_hash = ? WHERE session = ?", value, name)
                for name, value in sessions.items()]
    tamper(journal, *changes, ("UPDATE head SET state_hash = ?", before))
    assert "signed" in verify(toolcage, journal, status=1)["bad"]["problem"]
    tamper(journal, ("DELETE FROM signature",))
    verify(toolcage, journal)
    assert "signed no head" in verify(toolcage, journal, "--key", keys / "mine.pub", status=1)["bad"]["problem"]


# ---- show ------------------------------------------------------------------------------------------


def test_show_lists_the_last_rows(toolcage, journal, check_schema):
    lines = run(toolcage, "journal", "show", "--journal", journal, "--last", "3").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["ROW", "11", "12", "13"]
    done = run(toolcage, "journal", "show", "--journal", journal, "--json")
    rows = check_schema("journal", json.loads(done.stdout))["rows"]
    assert [row["row"] for row in rows] == list(range(1, CALLS + 2))
    assert all(row["state_hash"] == there["state_hash"] for row, there in zip(rows, rows_of(journal)))


@pytest.mark.parametrize("option, value, expected", [
    ("--session", "work", [1, 4, 7, 10]), ("--session", "", [0, 3, 6, 9]), ("--tool", "tool1", [1, 3, 5, 7, 9, 11]),
    ("--verdict", "failed", [5]), ("--agent", "nobody", [])])
def test_show_takes_conditions(toolcage, journal, option, value, expected):
    shown = json.loads(run(toolcage, "journal", "show", "--journal", journal, "--json", option, value).stdout)["rows"]
    assert [row["call_id"] for row in shown if row["kind"] == "call"] == [f"call-{i}" for i in expected]


def test_show_lists_names_of_sessions_as_replay_takes_them(toolcage, probe, tmp_path):
    session = "mcp-01a1e22d-1d3d-7c0f-b6eb-102c07e88ea4-server"
    probe(tmp_path / "j.db", [call(0), call(1, session=session)])
    lines = toolcage("journal", "--journal", tmp_path / "j.db", "show").stdout.splitlines()
    assert [line[30:78].split()[0] for line in lines] == ["SESSION", "-", session]
    assert len({line.index(word) for line, word in zip(lines, ("TOOL", "tool0", "tool1"))}) == 1


def test_show_prints_one_record_in_full(toolcage, journal, check_schema):
    done = run(toolcage, "journal", "show", "call-3", "--journal", journal)
    assert re.search(r"^verdict +ok$", done.stdout, re.M) and '"stdout": "secret-0003\\n"' in done.stdout
    done = run(toolcage, "journal", "show", "call-3", "--json", "--journal", journal)
    full = check_schema("journal", json.loads(done.stdout))
    assert full["rows"][0]["request"] == {"n": 3, "tool": "tool1"}
    assert "only the hash is kept" in run(toolcage, "journal", "show", "call-7", "--journal", journal).stdout
    run(toolcage, "journal", "show", "nothing", "--journal", journal, status=1)


def test_what_a_tool_said_cannot_draw_on_the_terminal(toolcage, probe, tmp_path):
    evil = "\x1b]0;owned\x07\u202e\nrow 9 ok"
    probe(tmp_path / "j", [call(0, tool=evil, agent=evil, call_id=evil, session=evil, verdict=evil,
                                result=json.dumps({"stdout": evil}, ensure_ascii=False))])
    receipt = run(toolcage, "receipt", evil, "--journal", tmp_path / "j").stdout
    commands = [("journal", *args, "--journal", tmp_path / "j")
                for args in (("show",), ("show", evil), ("show", "--json"), ("show", evil, "--json"), ("verify",))]
    for args in (*commands, ("receipt", "--verify", "-"), ("receipt", "--verify", "-", "--json")):
        printed = run(toolcage, *args, **({"input": receipt} if "receipt" in args else {})).stdout
        assert not set("\x1b\x07\u202e") & set(printed)
        assert not re.search(r"^row 9", printed, re.M)


# ---- export and import -----------------------------------------------------------------------------


def export(toolcage, journal, *args):
    return run(toolcage, "journal", "export", "--journal", journal, *args).stdout


@pytest.fixture(scope="session")
def exported(toolcage, template):
    return export(toolcage, template).splitlines()


def import_(toolcage, path, text, status=0):
    options = {"input": text} if isinstance(text, str) else {"stdin": text}
    return run(toolcage, "journal", "import", "-", "--journal", path, status=status, **options)


def test_import_of_an_export_is_an_equal_journal(toolcage, journal, keys, tmp_path):
    run(toolcage, "journal", "sign", "--key", keys / "mine", "--journal", journal)
    text = export(toolcage, journal)
    lines = [json.loads(line) for line in text.splitlines()]
    assert lines[0]["rows"] == CALLS + 1 and lines[0]["head"] == rows_of(journal)[-1]["state_hash"]
    assert lines[1:-1] == rows_of(journal)
    for line, value in zip(text.splitlines(), lines):
        assert json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False) == line
    import_(toolcage, tmp_path / "copy", text)
    assert rows_of(tmp_path / "copy") == rows_of(journal)
    by_key = ("--key", keys / "mine.pub")
    assert verify(toolcage, tmp_path / "copy", *by_key) == verify(toolcage, journal, *by_key)
    assert export(toolcage, tmp_path / "copy").splitlines()[1:] == text.splitlines()[1:]
    grants = "SELECT id, row, agent, tool, text, created_us, revoked_us FROM run_grant"
    there, here = (list(sqlite3.connect(path).execute(grants)) for path in (journal, tmp_path / "copy"))
    assert here == there != []


def test_salt_goes_along_only_when_asked_for(toolcage, journal, tmp_path):
    salt = sqlite3.connect(journal).execute("SELECT hex(salt) FROM origin").fetchone()[0].lower()
    assert salt not in export(toolcage, journal)
    text = export(toolcage, journal, "--salt")
    import_(toolcage, tmp_path / "copy", text)
    assert sqlite3.connect(tmp_path / "copy").execute("SELECT hex(salt) FROM origin").fetchone()[0].lower() == salt
    assert export(toolcage, tmp_path / "copy", "--salt") == text


def test_export_and_import_go_through_files(toolcage, journal, tmp_path):
    path = tmp_path / "out.jsonl"
    done = toolcage("journal", "export", path, "--journal", journal)
    assert (done.returncode, done.stdout) == (0, "") and stat.S_IMODE(path.stat().st_mode) == 0o600
    run(toolcage, "journal", "import", path, "--journal", tmp_path / "copy")
    os.symlink(tmp_path / "elsewhere", tmp_path / "link")
    for taken in (path, tmp_path / "link"):
        assert "not taken" in run(toolcage, "journal", "export", taken, "--journal", journal, status=125).stderr
    assert not (tmp_path / "elsewhere").exists()


def test_import_into_a_journal_with_records_is_refused(toolcage, journal):
    before = rows_of(journal)
    assert "has records already" in import_(toolcage, journal, export(toolcage, journal), status=125).stderr
    assert rows_of(journal) == before


def changed(lines, number, **members):
    """The lines with members of one (from 1) changed; one that is None is removed."""
    value = {k: v for k, v in (json.loads(lines[number - 1]) | members).items() if v is not None}
    return lines[:number - 1] + [json.dumps(value)] + lines[number:]


BAD_IMPORTS = {  # name: (what to do to the lines, the line that is named)
    "nothing": (lambda x: [], 1),
    "not JSON": (lambda x: x[:4] + ["nonsense"] + x[5:], 5),
    "an array": (lambda x: x[:4] + ["[]"] + x[5:], 5),
    "too deep": (lambda x: x[:4] + ["[" * 100_000] + x[5:], 5),
    "a key twice": (lambda x: x[:4] + ['{"row":1,' + x[4][1:]] + x[5:], 5),
    "no header": (lambda x: x[1:], 1),
    "another format": (lambda x: changed(x, 1, format="x"), 1),
    "another version": (lambda x: changed(x, 1, version=2), 1),
    "a header with more": (lambda x: changed(x, 1, more=1), 1),
    "a short salt": (lambda x: changed(x, 1, salt="00"), 1),
    "another head": (lambda x: changed(x, 1, head=ZERO), CALLS + 2),
    "too few rows": (lambda x: changed(x, 1, rows=CALLS), CALLS + 1),
    "too many rows": (lambda x: changed(x, 1, rows=10**15), CALLS + 3),
    "rows without a beginning": (lambda x: changed(x, 1, first_row=0), 1),
    "a beginning elsewhere": (lambda x: changed(x, 1, first_row=2), 2),
    "a row too few": (lambda x: x[:4] + x[5:], 5),
    "rows swapped": (lambda x: x[:4] + [x[5], x[4]] + x[6:], 5),
    "a row twice": (lambda x: x[:5] + x[4:], 6),
    "another verdict": (lambda x: changed(x, 5, verdict="denied"), 5),
    "another result": (lambda x: changed(x, 5, result="{}"), 5),
    "another hash": (lambda x: changed(x, 5, state_hash=ZERO), 5),
    "a number as text": (lambda x: changed(x, 5, step="1"), 5),
    "a huge number": (lambda x: changed(x, 5, step=2**60), 5),
    "half a step": (lambda x: changed(x, 5, step=1.5), 5),
    "a NUL in a name": (lambda x: changed(x, 5, tool="tool0\0more"), 5),
    "a member less": (lambda x: changed(x, 5, agent=None), 5),
    "a member more": (lambda x: changed(x, 5, more=1), 5),
    "more behind it": (lambda x: x + ["{}"], CALLS + 3),
    "an empty line": (lambda x: x[:4] + [""] + x[4:], 5),
}


@pytest.mark.parametrize("name", BAD_IMPORTS)
def test_bad_import_names_the_line_and_leaves_nothing(toolcage, exported, tmp_path, name):
    change, number = BAD_IMPORTS[name]
    text = "".join(line + "\n" for line in change(exported))
    done = import_(toolcage, tmp_path / "new", text, status=125)
    assert done.stderr.startswith(f"standard input:{number}:1: error: line {number} "), done.stderr
    assert rows_of(tmp_path / "new") == []


def chained(rows):
    """The rows with hashes that fit, however strange their texts are."""
    before, heads, steps = ZERO, {}, {}
    for number, row in enumerate(rows, 1):
        session = row["session"]
        steps[session] = steps.get(session, 0) + 1
        row |= {"row": number, "step": steps[session], "row_before": before, "previous": heads.get(session, ZERO)}
        for name in ("request", "result"):
            if row[name] is not None:
                row[name + "_hash"] = hashlib.sha256(row[name].encode()).hexdigest()
        before = heads[session] = row["state_hash"] = state_hash(row)
    return rows


STRANGE = {
    "members": {"grants": '[],"verdict":"denied","tool":"rm -rf"'},
    "deep": {"request": "[" * 3_000_000},
    "deep JSON": {"request": "[" * 1000 + "]" * 1000},
    "blanks": {"result": '{"a": 1}'},
    "kind": {"kind": "other"},
}


@pytest.mark.parametrize("name", [name for name in STRANGE if name != "deep JSON"])
def test_texts_that_are_not_canonical_json_are_not_imported(toolcage, journal, tmp_path, name):
    header = json.loads(export(toolcage, journal).splitlines()[0])
    rows = [row for row in rows_of(journal) if row["kind"] == "call"]
    rows[3] |= STRANGE[name]
    chained(rows)
    lines = [header | {"rows": len(rows), "head": rows[-1]["state_hash"]}] + rows
    text = "".join(json.dumps(line) + "\n" for line in lines)
    assert import_(toolcage, tmp_path / "new", text, status=125).stderr.startswith("standard input:5:1: error: line 5 ")
    assert rows_of(tmp_path / "new") == []


@pytest.mark.parametrize("name", ["members", "deep", "deep JSON"])
def test_texts_that_are_not_json_are_shown_as_strings_and_soon(toolcage, journal, name):
    """The chain is right: whoever can write the file can make it so."""
    rows = rows_of(journal)
    rows[3] |= STRANGE[name]
    chained(rows)
    tamper(journal, ("DELETE FROM record",),
           *((f"INSERT INTO record ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})",
              *(row[column] for column in COLUMNS)) for row in rows))
    done = run(toolcage, "journal", "show", "call-3", "--json", "--journal", journal, timeout=20)
    row, = json.loads(done.stdout)["rows"]
    assert (row["tool"], row["verdict"]) == ("tool1", "ok")
    for column, value in STRANGE[name].items():
        assert row[column] == value
    assert "not JSON, or too deep" in run(toolcage, "journal", "show", "call-3", "--journal", journal, timeout=20).stdout


def test_row_that_was_changed_is_neither_exported_nor_signed_nor_shown_without_a_word(toolcage, journal, keys, tmp_path,
                                                                                     check_schema):
    tamper(journal, ("UPDATE record SET tool = 'rm' WHERE row = 3",))
    done = run(toolcage, "journal", "export", tmp_path / "export", "--journal", journal, status=125)
    assert "row 3" in done.stderr and not (tmp_path / "export").exists()
    for args in (("journal", "sign"), ("receipt", "call-9")):
        done = run(toolcage, *args, "--key", keys / "mine", "--journal", journal, status=125)
        assert "does not verify (row 3" in done.stderr and "vouch" in done.stderr
    shown = run(toolcage, "journal", "show", "--journal", journal, status=1).stdout
    assert shown.count("is not what was recorded") == 1 and "row 3 is not what was recorded" in shown
    rows = check_schema("journal", json.loads(run(toolcage, "journal", "show", "--json", "--journal", journal,
                                                  status=1).stdout))["rows"]
    assert [row["row"] for row in rows if "problem" in row] == [3]
    run(toolcage, "journal", "show", "--last", "3", "--journal", journal)


def test_cut_export_is_refused(toolcage, journal, tmp_path):
    text = export(toolcage, journal)
    for length in (len(text) - 1, len(text) // 2, text.index("\n") + 1):
        assert "cut off" in import_(toolcage, tmp_path / "new", text[:length], status=125).stderr
    assert verify(toolcage, tmp_path / "new")["rows"] == 0


def test_line_without_end_is_refused_without_reading_it_whole(toolcage, tmp_path):
    """200 MB without a line break, as fast as they come."""
    with subprocess.Popen(["head", "-c", "200000000", "/dev/zero"], stdout=subprocess.PIPE) as endless:
        done = import_(toolcage, tmp_path / "new", endless.stdout, status=125)
        endless.stdout.close()
    assert "line 1 of the export: it is too long" in done.stderr


def test_forged_signature_is_refused(toolcage, journal, keys, tmp_path):
    run(toolcage, "journal", "sign", "--key", keys / "mine", "--journal", journal)
    lines = export(toolcage, journal).splitlines()
    statement = json.loads(lines[-1])["statement"]
    forged = statement.replace('"row":13', '"row":12')
    for member, value in (("signature", "00" * 64), ("statement", forged), ("public_key", "11" * 32)):
        text = "".join(line + "\n" for line in changed(lines, len(lines), **{member: value}))
        done = import_(toolcage, tmp_path / "new", text, status=125)
        assert f"line {len(lines)} of the export: the signature is not a good one" in done.stderr
    assert verify(toolcage, tmp_path / "new")["rows"] == 0


# ---- prune -----------------------------------------------------------------------------------------


def bytes_beside(path):
    return b"".join(file.read_bytes() for file in path.parent.glob(path.name + "*"))


@pytest.mark.parametrize("how", [("--keep", "4"), ("--before", "2023-11-14T22:13:28Z")])
def test_pruned_rows_are_gone_for_good_and_the_rest_verifies(toolcage, probe, tmp_path, keys, how):
    path = tmp_path / "journal.db"
    # In pages of its own, and whole in at least one of them.
    lines = [call(i, hash_only=False, result=json.dumps({"stdout": f"secret-{i:04} " * 1500})) for i in range(CALLS)]
    grants = [{"grant": {"agent": "bot", "tool": f"tool{i}", "grant": {"tool": f"tool{i}"}}} for i in range(2)]
    # Grants are of today, and rows go from the front only: before a date, they would keep those behind them.
    by_date = how[0] == "--before"
    at = CALLS if by_date else 3
    ids = probe(path, lines[:at] + grants + lines[at:])[at:at + 2]
    assert probe(path, [{"revoke": ids[1]}]) == ["0"]
    left = range(8, CALLS) if by_date else range(9, CALLS)  # the revocation is a row, too
    assert b"secret-0000" in bytes_beside(path) and b"secret-0007" in bytes_beside(path)
    done = run(toolcage, "journal", "prune", *how, "--journal", path, "--key", keys / "mine")
    assert "grants in force 1" in done.stdout
    content = bytes_beside(path)
    for i in range(CALLS):
        assert (f"secret-{i:04}".encode() in content) is (i in left)
    rows = rows_of(path)
    assert [row["call_id"] for row in rows if row["kind"] == "call"] == [f"call-{i}" for i in left]
    assert [row["kind"] for row in rows[-2:]] == (["revoke", "checkpoint"] if by_date else ["checkpoint", "grant"])
    assert by_date or rows[-1]["call_id"] == ids[0]
    report = verify(toolcage, path, "--key", keys / "mine.pub")
    assert report["signed_row"] == rows[-1]["row"]
    # The chain goes on, and can be pruned and moved again.
    probe(path, [call(i + CALLS) for i in range(6)])
    verify(toolcage, path)
    run(toolcage, "journal", "prune", "--keep", "2", "--journal", path)
    verify(toolcage, path)
    text = export(toolcage, path)
    import_(toolcage, tmp_path / "copy", text)
    assert export(toolcage, tmp_path / "copy").splitlines()[1:] == text.splitlines()[1:]
    assert [row[0] for row in sqlite3.connect(tmp_path / "copy").execute("SELECT id FROM run_grant")] == [ids[0]]


def test_removed_beginning_without_a_true_checkpoint_is_found(toolcage, journal, tmp_path):
    run(toolcage, "journal", "prune", "--keep", "6", "--journal", journal)
    text = export(toolcage, journal).splitlines()
    first = rows_of(journal)[0]["row"]
    assert first > 1
    shorter = changed([text[0]] + text[2:], 1, first_row=first + 1, rows=len(text) - 2)
    assert "line 2 of the export" in import_(toolcage, tmp_path / "new", "\n".join(shorter) + "\n", status=125).stderr
    tamper(journal, ("DELETE FROM record WHERE row = ?", first))
    assert verify(toolcage, journal, status=1)["bad"]["row"] == first


def test_prune_that_nobody_signed_off_shows(toolcage, journal, keys):
    run(toolcage, "journal", "sign", "--key", keys / "mine", "--journal", journal)
    run(toolcage, "journal", "prune", "--keep", "3", "--journal", journal)
    verify(toolcage, journal)
    report = verify(toolcage, journal, "--key", keys / "mine.pub", status=1)
    assert "has not signed this checkpoint" in report["bad"]["problem"]
    run(toolcage, "journal", "sign", "--key", keys / "mine", "--journal", journal)
    verify(toolcage, journal, "--key", keys / "mine.pub")


def test_prune_of_everything_leaves_a_checkpoint(toolcage, probe, journal):
    run(toolcage, "journal", "prune", "--keep", "0", "--journal", journal)
    assert [row["kind"] for row in rows_of(journal)] == ["checkpoint", "grant"]
    probe(journal, [call(1), call(2)])
    assert [row["step"] for row in rows_of(journal)[-2:]] == [1, 1]  # these sessions begin again
    verify(toolcage, journal)


def test_prune_refuses_what_does_not_verify_and_does_nothing_twice(toolcage, journal):
    assert "removed: rows 0" in run(toolcage, "journal", "prune", "--before", "2001-01-01", "--journal", journal).stdout
    assert "removed: rows 0" in run(toolcage, "journal", "prune", "--keep", "100", "--journal", journal).stdout
    assert len(rows_of(journal)) == CALLS + 1
    tamper(journal, ("UPDATE record SET verdict = 'x' WHERE row = 2",))
    done = run(toolcage, "journal", "prune", "--keep", "1", "--journal", journal, status=125)
    assert "does not verify (row 2" in done.stderr
    assert len(rows_of(journal)) == CALLS + 1


# ---- keys and signatures -----------------------------------------------------------------------------


def test_keys_are_those_of_openssl(toolcage, keys, tmp_path):
    assert stat.S_IMODE((keys / "mine").stat().st_mode) == 0o600
    if not shutil.which("openssl"):
        pytest.skip("there is no openssl")
    text = subprocess.run(["openssl", "pkey", "-in", keys / "mine", "-pubout"], capture_output=True, text=True, check=True).stdout
    assert text == (keys / "mine.pub").read_text()
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", tmp_path / "theirs"], check=True, umask=0o077)
    subprocess.run(["openssl", "pkey", "-in", tmp_path / "theirs", "-pubout", "-out", tmp_path / "theirs.pub"], check=True)


def test_openssl_checks_our_signature_and_we_use_its_key(toolcage, journal, keys, tmp_path):
    test_keys_are_those_of_openssl(toolcage, keys, tmp_path)
    run(toolcage, "journal", "sign", "--key", tmp_path / "theirs", "--journal", journal)
    verify(toolcage, journal, "--key", tmp_path / "theirs.pub")
    statement, signature = sqlite3.connect(journal).execute("SELECT statement, signature FROM signature").fetchone()
    says = json.loads(statement)
    assert (says["purpose"], says["row"]) == ("toolcage journal head", CALLS + 1)
    assert says["state_hash"] == rows_of(journal)[-1]["state_hash"]
    (tmp_path / "text").write_text(statement)
    (tmp_path / "signature").write_bytes(bytes.fromhex(signature))
    subprocess.run(["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", tmp_path / "theirs.pub", "-rawin", "-in",
                    tmp_path / "text", "-sigfile", tmp_path / "signature"], check=True, capture_output=True)


def test_keygen_never_overwrites(toolcage, tmp_path):
    (tmp_path / "key").write_text("precious")
    os.symlink(tmp_path / "target", tmp_path / "link")
    (tmp_path / "second.pub").write_text("precious")
    for name in ("key", "link", "second", "no/directory"):
        run(toolcage, "journal", "keygen", "--key", tmp_path / name, status=125)
    assert (tmp_path / "key").read_text() == (tmp_path / "second.pub").read_text() == "precious"
    assert sorted(os.listdir(tmp_path)) == ["key", "link", "second.pub"]


def test_bad_keys_are_refused(toolcage, journal, keys, tmp_path):
    pem = (keys / "mine").read_text()
    for name, text in {"empty": "", "garbage": "\0\1\2", "public": (keys / "mine.pub").read_text(), "twice": pem * 2,
                       "large": pem + "\n" * 5000, "other": pem.replace("MC4CAQAw", "MC4CAQEw"), "cut": pem[:60],
                       "open": pem}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o644 if name == "open" else 0o600)
        done = run(toolcage, "journal", "sign", "--key", tmp_path / name, "--journal", journal, status=125)
        assert ("open to others" if name == "open" else "does not hold an Ed25519 private key") in done.stderr
    for path in (tmp_path, tmp_path / "missing"):
        run(toolcage, "journal", "sign", "--key", path, "--journal", journal, status=125)
    run(toolcage, "journal", "verify", "--key", keys / "mine", "--journal", journal, status=125)  # that is the private one
    assert verify(toolcage, journal)["signatures"] == 0


@pytest.mark.parametrize("column", ["row", "state_hash", "public_key", "statement", "signature"])
def test_changed_signature_is_found(toolcage, journal, keys, column):
    run(toolcage, "journal", "sign", "--key", keys / "mine", "--journal", journal)
    assert verify(toolcage, journal)["signatures"] == 1
    middle = f"length({column}) / 2"  # not a letter of one's choice: a hash may have none of it
    changed_to = "row - 1" if column == "row" else (
        f"substr({column}, 1, {middle}) || CASE substr({column}, {middle} + 1, 1) WHEN '1' THEN '2' ELSE '1' END || "
        f"substr({column}, {middle} + 2)")
    tamper(journal, (f"UPDATE signature SET {column} = {changed_to}",))
    verify(toolcage, journal, status=1)


def test_signature_of_another_key_does_not_count(toolcage, journal, keys):
    run(toolcage, "journal", "sign", "--key", keys / "other", "--journal", journal)
    assert "signed no head" in verify(toolcage, journal, "--key", keys / "mine.pub", status=1)["bad"]["problem"]


def test_without_libcrypto_only_signing_fails(toolcage, journal, keys, build_dir, tmp_path):
    (tmp_path / "libcrypto.so.3").write_text("not a library")
    env = {"LD_LIBRARY_PATH": str(tmp_path)}
    verify(toolcage, journal)
    assert run(toolcage, "journal", "verify", "--journal", journal, env=env).returncode == 0
    done = run(toolcage, "journal", "keygen", "--key", tmp_path / "key", status=125, env=env)
    assert "libcrypto.so.3" in done.stderr and "remedy: install it" in done.stderr
    assert not (tmp_path / "key").exists()


def test_reading_works_where_nothing_can_be_written(toolcage, journal, keys, build_dir, tmp_path):
    script = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'

    def on_read_only(*args):
        return subprocess.run(["unshare", "-rm", "sh", "-c", script, "sh", tmp_path, build_dir / "src" / "toolcage", *args,
                               "--journal", journal], capture_output=True, text=True, check=False, timeout=60)

    if subprocess.run(["unshare", "-rm", "true"], check=False, capture_output=True).returncode:
        pytest.skip("no user namespaces here")
    settle(journal)
    for args in (("journal", "verify"), ("journal", "show"), ("journal", "export"), ("receipt", "call-1")):
        done = on_read_only(*args)
        assert (done.returncode, done.stderr) == (0, ""), args
    for args in (("journal", "sign", "--key", keys / "mine"), ("journal", "prune", "--keep", "1")):
        done = on_read_only(*args)
        assert done.returncode == 125 and "remedy: " in done.stderr


# ---- receipts ----------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def receipt(toolcage, template, keys, check_schema):
    text = run(toolcage, "receipt", "call-4", "--journal", template, "--key", keys / "mine", "--texts").stdout
    return check_schema("receipt", json.loads(text))


def check_receipt(toolcage, receipt, *args, status=0):
    text = receipt if isinstance(receipt, str) else json.dumps(receipt)
    return run(toolcage, "receipt", "--verify", "-", *args, status=status, input=text)


def test_receipt_can_be_checked_without_a_journal(toolcage, receipt, keys, check_schema, journal):
    row = next(row for row in rows_of(journal) if row["call_id"] == "call-4")
    assert receipt["record"] == canonical(row) and receipt["state_hash"] == row["state_hash"] == state_hash(row)
    assert (receipt["request"], receipt["result"]) == (row["request"], row["result"])
    done = check_receipt(toolcage, receipt, "--key", keys / "mine.pub")
    assert done.stdout.startswith("good: call call-4\n") and "the holder of the given key signed it" in done.stdout
    assert "not shown: that the journal still holds it" in done.stdout
    done = check_receipt(toolcage, receipt)
    assert "not shown: whose key it is" in done.stdout
    done = check_receipt(toolcage, receipt, "--json", "--key", keys / "mine.pub")
    report = check_schema("receipt", json.loads(done.stdout))
    assert report["good"] and report["by_given_key"] and report["request"] and report["call_id"] == "call-4"


def test_receipt_without_signature_says_so(toolcage, journal, keys):
    text = run(toolcage, "receipt", "call-7", "--journal", journal, "--texts").stdout
    assert set(json.loads(text)) == {"format", "previous", "record", "state_hash", "version"}  # only hashes were kept
    assert "it is not signed, anybody could have" in check_receipt(toolcage, text).stdout
    assert "bad: it is not signed" in check_receipt(toolcage, text, "--key", keys / "mine.pub", status=1).stdout


FORGERIES = {
    "verdict": lambda r: r | {"record": r["record"].replace('"ok"', '"denied"')},
    "previous": lambda r: r | {"previous": ZERO},
    "previous is short": lambda r: r | {"previous": "00"},
    "state hash": lambda r: r | {"state_hash": ZERO},
    "request": lambda r: r | {"request": "{}"},
    "result": lambda r: r | {"result": "{}"},
    "result with a NUL": lambda r: r | {"result": r["result"] + "\0"},
    "no record": lambda r: {k: v for k, v in r.items() if k != "record"},
    "signature": lambda r: r | {"signature": r["signature"] | {"signature": "00" * 64}},
    "signature is short": lambda r: r | {"signature": r["signature"] | {"signature": "00"}},
    "another key": lambda r: r | {"signature": r["signature"] | {"key": "22" * 32}},
    "statement": lambda r: r | {"signature": r["signature"] | {
        "statement": r["signature"]["statement"].replace('"row":', '"row":1')}},
    "statement of another purpose": lambda r: r | {"signature": r["signature"] | {
        "statement": r["signature"]["statement"].replace("toolcage receipt", "toolcage journal head")}},
    "a longer key": lambda r: r | {"signature": r["signature"] | {"key": r["signature"]["key"] + "00" * 40}},
    "a longer signature": lambda r: r | {"signature": r["signature"] | {
        "signature": r["signature"]["signature"] + "00"}},
    "signature is a text": lambda r: r | {"signature": "x"},
    "a member more": lambda r: r | {"note": "trust me"},
    "another format": lambda r: r | {"format": "receipt"},
    "another version": lambda r: r | {"version": 2},
    "an array": lambda r: [r],
    "not JSON": lambda r: "hello",
    "empty": lambda r: "",
    "too deep": lambda r: "[" * 100_000,
    "a key twice": lambda r: '{"version":1,' + json.dumps(r)[1:],
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_receipt_is_bad(toolcage, receipt, check_schema, name):
    forged = FORGERIES[name](receipt)
    report = check_schema("receipt", json.loads(check_receipt(toolcage, forged, "--json", status=1).stdout))
    assert not report["good"] and report["problem"]


@pytest.mark.parametrize("change", [{"started_us": 1e300}, {"started_us": "x"}, {"kind": "grant"}, {"more": 1}, {"tool": 5}])
def test_record_that_no_journal_holds_is_bad(toolcage, receipt, change):
    """Its hash is right: anybody can make that."""
    record = json.dumps(json.loads(receipt["record"]) | change)
    digest = hashlib.sha256(bytes.fromhex(receipt["previous"]) + record.encode()).hexdigest()
    forged = {"format": receipt["format"], "version": 1, "previous": receipt["previous"], "record": record, "state_hash": digest}
    assert "the record is not one of a call" in check_receipt(toolcage, forged, status=1).stdout


def test_whole_record_made_up_and_signed_by_another_is_bad_for_the_key(toolcage, probe, keys, tmp_path):
    """Everything fits, but it is somebody else's journal and key."""
    probe(tmp_path / "theirs", [call(4, verdict="ok")])
    text = run(toolcage, "receipt", "call-4", "--journal", tmp_path / "theirs", "--key", keys / "other").stdout
    check_receipt(toolcage, text)
    assert "signed by another key" in check_receipt(toolcage, text, "--key", keys / "mine.pub", status=1).stdout


def test_signature_of_a_head_is_none_of_a_receipt(toolcage, journal, keys, receipt):
    run(toolcage, "journal", "sign", "--key", keys / "mine", "--journal", journal)
    columns = "public_key, signature, statement"
    key, signature, statement = sqlite3.connect(journal).execute(f"SELECT {columns} FROM signature").fetchone()
    text = run(toolcage, "receipt", f"call-{CALLS - 1}", "--journal", journal).stdout  # the head itself
    forged = json.loads(text) | {"signature": {"key": key, "signature": signature, "statement": statement}}
    assert "the signature is not good" in check_receipt(toolcage, forged, status=1).stdout


def test_receipt_that_cannot_be_had_or_read(toolcage, journal, keys, tmp_path):
    assert "no such call" in run(toolcage, "receipt", "nothing", "--journal", journal, status=125).stderr
    with open(tmp_path / "huge", "wb") as huge:
        huge.truncate(100_000_000)
    for path in (tmp_path / "huge", tmp_path / "missing", tmp_path):
        run(toolcage, "receipt", "--verify", path, status=125)
    tamper(journal, ("UPDATE record SET verdict = 'x' WHERE call_id = 'call-4'",))
    run(toolcage, "receipt", "call-4", "--journal", journal, "--key", keys / "mine", status=125)


# ---- the command line --------------------------------------------------------------------------------


@pytest.mark.parametrize("args, said", [
    ((), "say what to do"),
    (("shwo",), 'did you mean "show"?'),
    (("sign",), "needs --key FILE"),
    (("keygen",), "needs --key FILE"),
    (("import",), "needs FILE"),
    (("prune",), "what may go"),
    (("prune", "--keep", "1", "--before", "2001-01-01"), "what may go"),
    (("prune", "--keep", "many"), "not a number"),
    (("prune", "--before", "yesterday"), "not a date"),
    (("show", "--last", "-1"), "not a number"),
    (("verify", "--last", "1"), "has no option --last"),
    (("sign", "file", "--key", "k"), "takes no argument"),
    (("verify", "x", "--journal", "y"), "both"),
])
def test_wrong_use_is_explained(toolcage, args, said):
    done = run(toolcage, "journal", *args, status=125)
    assert said in done.stderr and "remedy: " in done.stderr and done.stdout == ""


def test_journal_is_found_where_it_is_said_to_be(toolcage, journal, tmp_path):
    for args, env in ((("--journal", journal), {}), ((), {"TOOLCAGE_JOURNAL": str(journal)}), ((str(journal),), {})):
        assert run(toolcage, "journal", "verify", *args, env=env).stdout.startswith(f"good: rows {CALLS + 1}")
    (tmp_path / "toolcage").mkdir()
    shutil.copy(journal, tmp_path / "toolcage" / "journal.db")
    assert run(toolcage, "journal", "verify", env={"XDG_STATE_HOME": str(tmp_path)}).returncode == 0
    done = run(toolcage, "journal", "show", "--journal", tmp_path / "missing", status=125)
    assert "there is no journal" in done.stderr and not (tmp_path / "missing").exists()


def test_home_that_cannot_be_written_is_named_with_the_way_out(toolcage, tmp_path):
    """Not the missing directory below it, which is what making the next one fails with."""
    policy = tmp_path / "policy.toml"
    policy.write_text('version = 1\n[tool.t]\ncommand = ["true"]\n')
    for home, path in (("/proc/nobody", "/proc/nobody"), (tmp_path / "home", tmp_path / "home" / ".local")):
        env = {"XDG_STATE_HOME": "", "TOOLCAGE_JOURNAL": "", "HOME": str(home)}
        (tmp_path / "home").mkdir(mode=0o500, exist_ok=True)
        if home != "/proc/nobody" and os.geteuid() == 0:
            break
        done = run(toolcage, "call", "--policy", policy, "t", env=env, status=125)
        assert f"cannot make directory {path} for the journal" in done.stderr, done.stderr
        assert "remedy: " in done.stderr and "TOOLCAGE_JOURNAL" in done.stderr


def test_parts_are_completed(toolcage, build_dir):
    """Those that help shows, in every shell."""
    parts = re.search(r"^usage: toolcage journal \[options\] (\S+)", toolcage("help", "journal").stdout)[1].split("|")
    assert {"show", "verify", "export", "import", "prune", "keygen", "sign"} == set(parts)
    code = ('compopt() { :; }; source <("$0" completion bash); COMP_WORDS=(toolcage journal "$1"); COMP_CWORD=2; _toolcage; '
            'printf "%s\\n" "${COMPREPLY[@]}"')
    for word, expected in (("", parts), ("ex", ["export"])):
        done = subprocess.run(["bash", "--norc", "-c", code, build_dir / "src" / "toolcage", word], capture_output=True,
                              text=True, check=True, timeout=60)
        assert done.stdout.split() == expected
    for shell in ("zsh", "fish"):
        assert " ".join(parts) in toolcage("completion", shell).stdout
