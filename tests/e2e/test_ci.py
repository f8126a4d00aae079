# SPDX-License-Identifier: Apache-2.0
"""How results are added up: the sum must never look better than the run."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.tree


@pytest.fixture
def results(repo, monkeypatch):
    monkeypatch.syspath_prepend(str(repo / "scripts"))
    import results as module  # pylint: disable=import-outside-toplevel
    return module


@pytest.fixture
def meson_log(tmp_path):
    def write(*records):
        path = tmp_path / "testlog.json"
        path.write_text("".join(json.dumps({"name": "unit", "returncode": 0, "stdout": ""} | r) + "\n" for r in records))
        return path
    return write


def test_tap_program_counts_per_case(results, meson_log):
    log = meson_log({"result": "OK", "stdout": "1..3\nok 1 - a\nok 2 - b\nok 3 - c\n"})
    assert str(results.read_meson(log, 0)) == "3 passed, 0 failed, 0 skipped"


def test_failed_case_is_named(results, meson_log):
    log = meson_log({"result": "ERROR", "returncode": 1, "stdout": "1..2\nok 1 - a\nnot ok 2 - b\n# why\n"})
    read = results.read_meson(log, 1)
    assert (read.passed, [name for name, _ in read.failed]) == (1, ["unit: b"])


@pytest.mark.parametrize("verdict, status", [("ERROR", -11), ("TIMEOUT", -9), ("FAIL", 1), ("NEW WORD", 0)])
def test_program_that_crashed_after_passing_cases_failed(results, meson_log, verdict, status):
    log = meson_log({"result": verdict, "returncode": status, "stdout": "1..9\nok 1 - a\n"})
    read = results.read_meson(log, 1)
    assert (read.passed, len(read.failed)) == (1, 1)


def test_skip_keeps_its_reason_whoever_wrote_it(results, meson_log):
    log = meson_log({"result": "FAIL", "stdout": "1..3\nok 1 - a # SKIP no suite\n# no kernel\nnot ok 2 # SKIP b\nok 3 - c\n"})
    read = results.read_meson(log, 1)
    assert read.failed == []
    assert read.skipped == [("unit: a", "no suite"), ("unit: b", "no kernel")]


def test_plain_program_counts_once(results, meson_log):
    log = meson_log({"result": "OK", "stdout": "fine"}, {"result": "FAIL", "returncode": 3},
                    {"result": "SKIP", "returncode": 77, "stdout": "no such thing here\n"})
    read = results.read_meson(log, 1)
    assert str(read) == "1 passed, 1 failed, 1 skipped"
    assert read.skipped[0][1] == "no such thing here"


@pytest.mark.parametrize("text, status", [("", 0), ("", 1), ("not json\n", 0), (None, 0)])
def test_run_without_usable_log_failed(results, tmp_path, text, status):
    log = tmp_path / "log"
    if text is not None:
        log.write_text(text)
    assert results.read_meson(log, status).failed


def test_status_that_no_case_explains_is_a_failure(results, meson_log):
    assert results.read_meson(meson_log({"result": "OK", "stdout": "1..1\nok 1 - a\n"}), 2).failed


def test_pytest_report_is_read_per_case(results, tmp_path):
    report = tmp_path / "report.xml"
    report.write_text("""<testsuites><testsuite>
        <testcase classname="m" name="a"/>
        <testcase classname="m" name="b"><failure message="assert 1 == 2&#10;  and more"/></testcase>
        <testcase classname="m" name="c"><error/></testcase>
        <testcase classname="m" name="d"><skipped message="no suites"/></testcase>
        <testcase classname="" name="n"><skipped message="collection skipped">('/n.py', 3, 'Skipped: no shell')</skipped></testcase>
        </testsuite></testsuites>""")
    read = results.read_pytest(report, 1)
    assert str(read) == "1 passed, 2 failed, 2 skipped"
    assert read.failed == [("m::b", "assert 1 == 2"), ("m::c", "")]
    assert read.skipped == [("m::d", "no suites"), ("n", "no shell")]


@pytest.mark.parametrize("text", [None, "", "<testsuites/>"])
def test_pytest_that_ran_nothing_failed(results, tmp_path, text):
    report = tmp_path / "report.xml"
    if text is not None:
        report.write_text(text)
    assert results.read_pytest(report, 5).failed


def with_ci(repo, code):
    """Runs code that uses scripts/ci, in a process of its own: it adopts and kills what is left."""
    code = f"""
import importlib.machinery, importlib.util, pathlib, signal, sys
sys.path.insert(0, "scripts")
loader = importlib.machinery.SourceFileLoader("ci", "scripts/ci")
ci = importlib.util.module_from_spec(importlib.util.spec_from_loader("ci", loader))
loader.exec_module(ci)
ci.adopt_orphans()
{code}
"""
    done = subprocess.run([sys.executable, "-B", "-c", code], cwd=repo, capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def run_stage(repo, script, seconds):
    """One stage by itself: its problem, and what is left."""
    return with_ci(repo, f"""
print(ci.run_command(ci.Stage("s", ["bash", "-c", {script!r}], {seconds}), None, {seconds}), ci.children())""")


def test_stage_that_ends_well_has_no_problem(repo):
    assert run_stage(repo, "true", 10) == "None []"


def test_stage_that_fails_is_a_problem(repo):
    assert run_stage(repo, "exit 3", 10) == "ended with status 3 []"


def test_stage_that_hangs_is_ended(repo):
    assert run_stage(repo, "sleep 1000", 1) == "not finished after 1 s []"


def test_process_left_behind_is_named_and_killed(repo):
    assert run_stage(repo, "setsid sleep 1000 & true", 10) == "left processes behind: sleep []"


def test_dead_processes_that_nobody_waited_for_are_collected_while_the_stage_runs(repo):
    """Else they use up what their users may have: kernel keys, for one."""
    script = """for i in $(seq 20); do (true &); done
for i in $(seq 100); do ps -o stat= --ppid $PPID | grep -q Z || exit 0; sleep 0.1; done; exit 9"""
    assert run_stage(repo, script, 30) == "None []"


def run_row(repo, folder, **scripts):
    """Stages beside each other: (name, passed, problems) of each, and what is left."""
    stages = ", ".join(f'ci.Stage({name!r}, ["bash", "-c", {script!r}], 20)' for name, script in scripts.items())
    return with_ci(repo, f"""
ci.LOGS = pathlib.Path({str(folder)!r})
row = list(ci.run_row(({stages},), 20))
print([(stage.name, results.passed, [why for _, why in results.failed]) for stage, results, _ in row], ci.children())""")


def test_stages_beside_each_other_answer_for_themselves(repo, tmp_path):
    """Each has its own log and result, and what one leaves behind is not the other's fault."""
    said = run_row(repo, tmp_path, good="sleep 0.5; echo fine", bad="echo wrong; exit 3", untidy="setsid sleep 1000 & true")
    assert said == str([("good", 1, []), ("bad", 0, ["ended with status 3"]),
                        ("untidy", 0, ["left processes behind: sleep"])]) + " []"
    assert (tmp_path / "good.log").read_text() == "fine\n" and (tmp_path / "bad.log").read_text() == "wrong\n"


def test_stages_beside_each_other_overlap(repo, tmp_path):
    """Each waits for the other one: one after the other they would never end well."""
    wait = "touch {0}/{1}; for i in $(seq 100); do [ -e {0}/{2} ] && exit 0; sleep 0.1; done; exit 1"
    said = run_row(repo, tmp_path, a=wait.format(tmp_path, "a", "b"), b=wait.format(tmp_path, "b", "a"))
    assert said == "[('a', 1, []), ('b', 1, [])] []"


def test_stage_whose_watcher_dies_has_failed(repo, tmp_path):
    said = run_row(repo, tmp_path, a="kill -9 $PPID; sleep 1", b="true")
    assert said.startswith("[('a', 0, ['the process that watches it ended with status -9']), ('b', 1, [])]")


def test_every_stage_of_the_table_is_there_once(repo):
    assert with_ci(repo, """
stages = [stage for row in ci.STAGES for stage in row]
assert len({ci.log_of(stage) for stage in stages}) == len(stages) == 7
assert len({stage.results for stage in stages if stage.results}) == 5
assert {"process", "jail", "oci/crun", "oci/runc", "oci/podman", "oci/docker", "gvisor", "mcp"} == set(ci.MUST_WORK.split(","))
print("good")""") == "good"
