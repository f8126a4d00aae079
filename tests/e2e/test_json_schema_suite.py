# SPDX-License-Identifier: Apache-2.0
"""The schema validator against the official JSON Schema test suite, drafts 2020-12 and 7.

Every group of tests is a test of its own. The suite is not part of this repository: it is looked for
next to it, or in $TOOLCAGE_SUITES. Optional tests that fail are listed here, and in
docs/json-schema.md, with the reason; one that is listed and passes is a failure.
"""

import functools
import json
import os
import pathlib
import subprocess

import pytest

pytestmark = pytest.mark.reading

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
SUITES = pathlib.Path(os.environ.get("TOOLCAGE_SUITES", REPOSITORY.parent / "shared" / "suites"))
SUITE = SUITES / "json-schema"
BUILD = pathlib.Path(os.environ.get("TOOLCAGE_BUILD", "build"))
PROBE = (BUILD if BUILD.is_absolute() else REPOSITORY / BUILD) / "tests" / "unit" / "schema_probe"

if not SUITE.is_dir():
    pytest.skip(f"suite not found at {SUITE}", allow_module_level=True)

DRAFTS = {"draft2020-12": "2020-12", "draft7": "7"}
# The suite has 1,299 and 927 required tests: many fewer means that it was cut.
FEWEST = {"draft2020-12": 1250, "draft7": 850}

# What every entry of KNOWN stands on.
CONTENT = "contentEncoding and contentMediaType are annotations, as draft 2020-12 has it; draft 7 leaves the choice"
OTHER_DRAFT = "refers to a schema of draft 2019-09, which is refused and not read as another draft"

# File, description of the group, description of the test ("*": all of them): why it fails.
KNOWN = {
    ("draft2020-12/optional/cross-draft.json",
     "refs to historic drafts are processed as historic drafts", "*"): OTHER_DRAFT,
    ("draft7/optional/cross-draft.json",
     "refs to future drafts are processed as future drafts", "*"): OTHER_DRAFT,
    ("draft7/optional/content.json", "validation of string-encoded content based on media type",
     "an invalid JSON document"): CONTENT,
    ("draft7/optional/content.json", "validation of binary string-encoding",
     "an invalid base64 string (% is not a valid character)"): CONTENT,
    ("draft7/optional/content.json", "validation of binary-encoded media type documents",
     "a validly-encoded invalid JSON document"): CONTENT,
    ("draft7/optional/content.json", "validation of binary-encoded media type documents",
     "an invalid base64 string that is valid JSON"): CONTENT,
}

# Files with integers beyond 64 bits: they are read as doubles only, as the validator's callers do.
BEYOND_64_BITS = {"optional/bignum.json"}


def files(draft):
    """The suite's files of a draft, as paths within it."""
    top = SUITE / "tests" / draft
    return sorted(str(path.relative_to(top)) for path in top.rglob("*.json"))


def read(draft, name):
    return json.loads((SUITE / "tests" / draft / name).read_text(encoding="utf-8"))


def numbers_for(name):
    return ["doubles"] if name in BEYOND_64_BITS else ["doubles", "integers"]


@functools.cache
def answers(draft, name, numbers):
    """What the validator says: for each group a list of booleans, or the compiler's error."""
    formats = "assertion" if name.startswith("optional/format/") else "annotation"
    result = subprocess.run(
        [PROBE, DRAFTS[draft], formats, numbers, SUITE / "remotes"],
        input=(SUITE / "tests" / draft / name).read_bytes(),
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr.decode()
    return json.loads(result.stdout)


def groups():
    """One parameter for each group."""
    return [
        pytest.param(draft, name, index, id=f"{draft}/{name.removesuffix('.json')}-{group['description']}")
        for draft in DRAFTS
        for name in files(draft)
        for index, group in enumerate(read(draft, name))
    ]


def known(draft, name, group, test):
    return KNOWN.get((f"{draft}/{name}", group, test)) or KNOWN.get((f"{draft}/{name}", group, "*"))


@pytest.mark.parametrize("draft", DRAFTS)
def test_suite_is_complete(draft):
    required = [name for name in files(draft) if not name.startswith("optional/")]
    assert sum(len(group["tests"]) for name in required for group in read(draft, name)) >= FEWEST[draft]


@pytest.mark.parametrize("draft, name, index", groups())
def test_group(draft, name, index):
    group = read(draft, name)[index]
    wrong, surprising = [], []
    for numbers in numbers_for(name):
        said = answers(draft, name, numbers)[index]
        for position, test in enumerate(group["tests"]):
            right = isinstance(said, list) and said[position] == test["valid"]
            reason = known(draft, name, group["description"], test["description"])
            if right and reason:
                surprising.append(f"passes although it is listed as failing: {test['description']}")
            elif not right and not reason:
                wrong.append(f"{test['description']} ({numbers}): {said if isinstance(said, str) else not test['valid']}")
    assert not wrong, "\n".join(wrong)
    assert not surprising, "\n".join(surprising)


def test_only_optional_tests_are_listed_and_all_of_them_exist():
    there = {(f"{draft}/{name}", group["description"], test["description"])
             for draft in DRAFTS for name in files(draft) for group in read(draft, name) for test in group["tests"]}
    groups_there = {(name, group) for name, group, _ in there}
    for name, group, test in KNOWN:
        assert "/optional/" in name
        assert (name, group, test) in there or test == "*" and (name, group) in groups_there


def test_every_listed_test_is_in_the_documentation():
    text = (REPOSITORY / "docs" / "json-schema.md").read_text(encoding="utf-8")
    for name, group, _ in KNOWN:
        assert name in text and group in text
