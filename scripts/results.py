#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reads what the test runners wrote and adds it up.

The unit is the test case: a C test program that speaks TAP counts once per case, any other
program once. What a runner's exit status says and its report does not (a crash, an empty run,
no report at all) counts as a failure, so that the sum can never look better than the run.
"""

import argparse
import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

NO_TESTS = 5  # pytest's status when no test was chosen
REASON_MAX = 500


class Results:
    """Passed cases as a number, failed and skipped ones as (name, reason)."""

    def __init__(self):
        self.passed = 0
        self.failed = []
        self.skipped = []

    def fail(self, name, reason=""):
        self.failed.append((name, reason))

    def skip(self, name, reason):
        self.skipped.append((name, reason or "no reason given"))

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def under(self, heading):
        """The same, with a heading in front of each name."""
        results = Results()
        results.passed = self.passed
        results.failed = [(f"{heading}: {name}" if name else heading, reason) for name, reason in self.failed]
        results.skipped = [(f"{heading}: {name}", reason) for name, reason in self.skipped]
        return results

    def ran(self):
        return self.passed + len(self.failed)

    def __str__(self):
        return f"{self.passed} passed, {len(self.failed)} failed, {len(self.skipped)} skipped"

    def print_details(self):
        """Each failure on its line; skips by reason, so that one missing thing does not fill the screen."""
        if self.failed:
            print("Failed:")
        for name, reason in self.failed:
            print(f"  {name}: {reason}" if reason else f"  {name}")
        names_of = {}
        for name, reason in self.skipped:
            names_of.setdefault(reason, []).append(name)
        if names_of:
            print("Skipped:")
        for reason, names in names_of.items():
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            print(f"  {names[0]}{more}: {reason}")

    def finish(self, save=None):
        """The end of a run: details, the sum as the last line; returns the exit status."""
        if save:
            Path(save).write_text(json.dumps(vars(self)), encoding="utf-8")
        print()
        self.print_details()
        print(self, flush=True)
        return 1 if self.failed or not self.ran() else 0


def load(path):
    """What finish() saved. Raises OSError or ValueError."""
    results = Results()
    vars(results).update(json.loads(Path(path).read_text(encoding="utf-8")))
    return results


TAP_CASE = re.compile(r"(not )?ok\b\s*(\d+)?\s*(?:- )?([^#]*)(?:#\s*(SKIP|TODO)\S*\s*(.*))?", re.I)
TAP_PLAN = re.compile(r"1\.\.(\d+)(?:\s*#\s*SKIP\S*\s*(.*))?", re.I)


def read_tap(program, text):
    """The cases in a program's output, or None when it does not speak TAP."""
    results = Results()
    plan, comment = None, ""
    for line in text.splitlines():
        case, planned = TAP_CASE.match(line), TAP_PLAN.match(line)
        if planned:
            plan = (plan or 0) + int(planned[1])
            if planned[1] == "0":
                results.skip(program, planned[2])
        elif case:
            failed, number, name, directive, reason = case.groups()
            name = f"{program}: {name.strip() or reason or number}"
            if directive and directive.upper() == "SKIP":
                # cmocka repeats the name, "not ok 3 # SKIP name": its reason can only be in a comment above.
                results.skip(name, comment if not reason or name.endswith(reason) else reason)
            elif failed and not directive:
                results.fail(name)
            else:
                results.passed += 1
            comment = ""
        elif line.startswith("#"):
            comment = line.lstrip("# ").strip()
    return None if plan is None else results


def read_meson_test(record):
    """One test program of Meson's log, and whether Meson is right to call it a failure."""
    name, verdict = record["name"], record["result"]
    tap = read_tap(name, record.get("stdout") or "")
    if tap is not None:
        only_skips = record.get("returncode") == 0 and verdict == "FAIL"
        if verdict not in ("OK", "SKIP", "EXPECTEDFAIL") and not tap.failed:
            # Meson counts cmocka's "not ok # SKIP" as a failure; we do not.
            if not (only_skips and tap.skipped):
                tap.fail(name, f"ended with {verdict} (status {record.get('returncode')})")
        return tap
    results = Results()
    if verdict in ("OK", "EXPECTEDFAIL"):
        results.passed = 1
    elif verdict == "SKIP":
        output = (record.get("stdout") or record.get("stderr") or "").strip()
        results.skip(name, output.splitlines()[-1] if output else "")
    else:
        results.fail(name, f"{verdict} (status {record.get('returncode')})")
    return results


def read_meson(path, status):
    """Meson's testlog.json: one JSON object on each line."""
    results = Results()
    disagreed = False
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
        for line in lines:
            record = json.loads(line)
            program = read_meson_test(record)
            disagreed |= record["result"] == "FAIL" and not program.failed
            results.add(program)
    except (OSError, ValueError, KeyError) as error:
        results.fail("meson test", f"no usable log: {error}")
        return results
    if status and not results.failed and not disagreed:
        results.fail("meson test", f"exited with status {status}")
    if not results.ran():
        results.fail("meson test", "ran no test")
    return results


def first_words(problem):
    """Of a failure's message, what fits a list: a run whose logs are gone must still say why it failed."""
    lines = (problem.get("message") or "").strip().splitlines()
    return lines[0][:REASON_MAX] if lines else ""


def read_pytest(path, status):
    """pytest's JUnit file."""
    results = Results()
    try:
        cases = list(ElementTree.parse(path).iter("testcase"))
    except (OSError, ElementTree.ParseError) as error:
        results.fail("pytest", f"no usable report (status {status}): {error}")
        return results
    for case in cases:
        name = f"{case.get('classname')}::{case.get('name')}".lstrip(":")
        skipped = case.find("skipped")
        problems = [found for kind in ("failure", "error") if (found := case.find(kind)) is not None]
        if problems:
            results.fail(name, first_words(problems[0]))
        elif skipped is not None:
            # A module that skips itself has its reason only in the text: (path, line, 'Skipped: why').
            inner = re.search(r"'Skipped: (.*)'\)", skipped.text or "")
            results.skip(name, inner[1] if inner else skipped.get("message"))
        else:
            results.passed += 1
    if status and not results.failed:
        results.fail("pytest", f"exited with status {status}")
    if not results.ran():
        results.fail("pytest", "ran no test")
    return results


def read_pytests(runs):
    """Several runs that share the tests among them: one of them may have had nothing to do."""
    total, idle = Results(), []
    for path, status in runs:
        if status == NO_TESTS:
            idle.append((path, status))
        else:
            total.add(read_pytest(path, status))
    if idle and not total.ran() and not total.failed:
        total.add(read_pytest(*idle[0]))
    return total


def read_reports(folder):
    """A sanitizer's report files: each is a failure, whatever the test that caused it made of it."""
    results = Results()
    for path in sorted(Path(folder).iterdir()):
        text = path.read_text(encoding="utf-8", errors="replace")
        summary = [line for line in text.splitlines() if line.startswith("SUMMARY: ") or ": runtime error: " in line]
        print(f"---- {path.name}\n{text.strip()}")
        results.fail("sanitizer", summary[-1] if summary else path.name)
    return results


def main():
    parser = argparse.ArgumentParser(description="Adds up test results.")
    parser.add_argument("--meson", nargs=2, metavar=("LOG", "STATUS"))
    parser.add_argument("--pytest", nargs=2, action="append", metavar=("XML", "STATUS"), default=[])
    parser.add_argument("--reports", metavar="FOLDER")
    parser.add_argument("--save", metavar="JSON", required=True)
    options = parser.parse_args()

    total = Results()
    if options.meson:
        total.add(read_meson(options.meson[0], int(options.meson[1])))
    total.add(read_pytests((path, int(status)) for path, status in options.pytest))
    if options.reports:
        total.add(read_reports(options.reports))
    return total.finish(options.save)


if __name__ == "__main__":
    sys.exit(main())
