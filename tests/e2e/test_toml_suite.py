# SPDX-License-Identifier: Apache-2.0
"""The TOML reader against the official conformance suite (toml-test), for TOML 1.0 and 1.1.

Every document is a test of its own. The suite is not part of this repository: it is looked for
next to it, or in $TOOLCAGE_SUITES.
"""

import json
import math
import os
import pathlib
import re
import subprocess

import pytest

pytestmark = pytest.mark.reading

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
SUITES = pathlib.Path(os.environ.get("TOOLCAGE_SUITES", REPOSITORY.parent / "shared" / "suites"))
SUITE = SUITES / "toml" / "tests"
BUILD = pathlib.Path(os.environ.get("TOOLCAGE_BUILD", "build"))
DECODER = (BUILD if BUILD.is_absolute() else REPOSITORY / BUILD) / "tests" / "unit" / "toml_decoder"

if not SUITE.is_dir():
    pytest.skip(f"suite not found at {SUITE}", allow_module_level=True)

VERSIONS = {"1.0": [], "1.1": ["--toml-1.1"]}
# The lists hold 210 + 499 (1.0) and 220 + 492 (1.1) documents: fewer means that one was cut.
FEWEST_VALID, FEWEST_INVALID = 200, 480


def documents(version, kind):
    """The suite's documents of one kind for one version, as paths within the suite."""
    listed = (SUITE / f"files-toml-{version}.0").read_text(encoding="utf-8").split()
    return [name for name in listed if name.startswith(f"{kind}/") and name.endswith(".toml")]


def cases(kind):
    """One parameter per document and version."""
    return [
        pytest.param(version, name, id=f"{version}-{name.removesuffix('.toml')}")
        for version in VERSIONS
        for name in documents(version, kind)
    ]


def decode(version, name):
    """Runs the decoder on one document."""
    return subprocess.run(
        [DECODER, *VERSIONS[version]],
        input=(SUITE / name).read_bytes(),
        capture_output=True,
        timeout=60,
        check=False,
    )


def normal_moment(text):
    """RFC 3339 text with one spelling for each moment as written."""
    text = text.upper().replace(" ", "T")
    text = re.sub(r"(\.\d*?)0+(?=\D|$)", r"\1", text)
    text = re.sub(r"\.(?=\D|$)", "", text)
    return re.sub(r"[+-]00:00$", "Z", text)


def normal(value):
    """A value of tagged JSON in a form in which equal values compare equal."""
    if isinstance(value, list):
        return [normal(item) for item in value]
    if set(value) != {"type", "value"} or not isinstance(value["type"], str):
        return {key: normal(item) for key, item in value.items()}
    tag, text = value["type"], value["value"]
    if tag == "integer":
        return (tag, int(text))
    if tag == "float":
        number = float(text)
        return (tag, "nan") if math.isnan(number) else (tag, number, math.copysign(1, number))
    if tag in ("datetime", "datetime-local", "date-local", "time-local"):
        return (tag, normal_moment(text))
    assert tag in ("string", "bool")
    return (tag, text)


@pytest.mark.parametrize("version", VERSIONS)
def test_suite_is_complete(version):
    assert len(documents(version, "valid")) >= FEWEST_VALID
    assert len(documents(version, "invalid")) >= FEWEST_INVALID


@pytest.mark.parametrize("version, name", cases("valid"))
def test_valid_document_gives_the_expected_values(version, name):
    result = decode(version, name)
    assert result.returncode == 0, result.stderr.decode()
    expected = json.loads((SUITE / name).with_suffix(".json").read_text(encoding="utf-8"))
    assert normal(json.loads(result.stdout)) == normal(expected)


@pytest.mark.parametrize("version, name", cases("invalid"))
def test_invalid_document_is_refused_with_a_place(version, name):
    result = decode(version, name)
    assert result.returncode == 1, result.stdout.decode()
    assert result.stdout == b""
    message = result.stderr.decode("utf-8")
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*: [^\n]+\n", message), message
    assert message[:-1].isprintable()
