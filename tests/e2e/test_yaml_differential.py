# SPDX-License-Identifier: Apache-2.0
"""Compares what a plain scalar means with PyYAML, a reader of YAML 1.1.

The reader promises to refuse what YAML 1.1 and 1.2 take for different things. So for every scalar that it
accepts as a value, PyYAML's SafeLoader must find the same type and the same value; the exceptions are listed
here, each with its reason. Random scalars come from a fixed seed; all of a test go through one run of
$TOOLCAGE_BUILD/tests/test_yaml_scalars --types.
"""

import datetime
import math
import random
import re
import subprocess

import pytest

import yaml

pytestmark = pytest.mark.reading

SEED = 20240917
COUNT = 20000


def leap_second(text):
    """RFC 3339 and TOML have a second 60; Python's datetime has not."""
    return re.search(r":60(\D|$)", text)


def year_zero(text):
    """YAML and TOML have a year 0; Python's dates begin with year 1."""
    return text.startswith("0000-")


EXCEPTIONS = [leap_second, year_zero]


@pytest.fixture(scope="module")
def ask(build_dir):
    """(type, value) for each scalar, both as text."""
    probe = build_dir / "tests" / "test_yaml_scalars"
    assert probe.exists(), f"{probe} is not built"

    def run(scalars):
        assert all("\n" not in scalar and len(scalar) < 300 for scalar in scalars)
        done = subprocess.run([probe, "--types"], input="".join(f"{scalar}\n" for scalar in scalars),
                              capture_output=True, text=True, check=True, timeout=120)
        answers = [tuple((line + "\t").split("\t")[:2]) for line in done.stdout.splitlines()]
        assert len(answers) == len(scalars)
        return answers

    return run


def pyyaml(scalar):
    """The same from PyYAML; digits beyond the microsecond are cut, as Python cuts them."""
    try:
        value = yaml.load(f"v: {scalar}\n", Loader=yaml.SafeLoader)["v"]
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        return "refused", str(error)
    if isinstance(value, bool):
        return "boolean", str(int(value))
    if isinstance(value, int):
        return "integer", str(value)
    if isinstance(value, float):
        return "float", value
    if isinstance(value, datetime.datetime):
        if value.tzinfo:
            return "datetime", value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        return "local-datetime", value
    if isinstance(value, datetime.date):
        return "date", value
    if isinstance(value, str):
        return "string", value
    return type(value).__name__, value


def comparable(kind, value):
    """An answer of ours in the form of pyyaml()."""
    if kind == "float":
        return kind, float.fromhex(value)
    if kind in ("datetime", "local-datetime", "date"):
        day, time, offset = value.split()
        if kind == "date":
            return kind, datetime.date.fromisoformat(day)
        moment = datetime.datetime.fromisoformat(f"{day}T{time[:15]}")
        return kind, moment - datetime.timedelta(minutes=int(offset))
    return kind, value


def same(ours, theirs):
    if ours[0] == theirs[0] == "float" and math.isnan(ours[1]) and math.isnan(theirs[1]):
        return True
    if ours[0] == theirs[0] == "float" and math.copysign(1, ours[1]) != math.copysign(1, theirs[1]):
        return False
    return ours == theirs


def compare(ask, scalars):
    """How many were accepted; fails where the readers disagree on one of these."""
    wrong, accepted = [], 0
    for scalar, (kind, value) in zip(scalars, ask(scalars)):
        if kind == "refused":
            continue
        accepted += 1
        if any(exception(scalar) for exception in EXCEPTIONS) and kind in ("date", "datetime", "local-datetime"):
            continue
        theirs = pyyaml(scalar)
        if not same(comparable(kind, value), theirs):
            wrong.append(f"{scalar!r}: here {kind} {value}, there {theirs}")
    assert not wrong, f"{len(wrong)} of {len(scalars)}:\n" + "\n".join(wrong[:20])
    return accepted


# ---- scalars -----------------------------------------------------------------------------------


def one_of(rng, *choices):
    return rng.choice(choices)


def digits(rng, most=4, alphabet="0123456789"):
    return "".join(rng.choice(alphabet) for _ in range(rng.randint(0, most)))


def number(rng):
    """Pieces of numbers, in order, each of them there or not."""
    text = one_of(rng, "", "", "-", "+")
    text += one_of(rng, "", "", "", "0", "0x", "0b", "0o", "0X")
    text += digits(rng, 5, one_of(rng, "0123456789", "0123456789_", "01", "01234567", "0123456789abcdefABCDEF_"))
    text += "".join(":" + digits(rng, 2) for _ in range(one_of(rng, 0, 0, 0, 1, 2)))
    text += one_of(rng, "", "", ".")
    text += digits(rng, 3, one_of(rng, "0123456789", "0123456789_."))
    text += one_of(rng, "", "", "", "e", "E") + one_of(rng, "", "", "-", "+") + digits(rng, 2)
    return text


def date(rng):
    def part(low, high):
        return one_of(rng, f"{rng.randint(low, high)}", *[f"{rng.randint(low, high):02}"] * 3)

    text = f"{rng.choice([2, 999, 1970, 2001, 2024, 2027]):04}-{part(1, 12)}-{part(1, 28)}"
    if rng.random() < 0.2:
        return text
    # No tabs, which YAML 1.1 has here: PyYAML's scanner refuses them in every plain scalar.
    text += one_of(rng, "T", "t", " ", "  ", "x")
    text += f"{part(0, 24)}:{part(0, 60)}:{part(0, 60)}"
    text += one_of(rng, "", "", ".", "." + digits(rng, 9))
    text += one_of(rng, "", "", " ")
    text += one_of(rng, "", "Z", "z", f"+{part(0, 23)}", f"-{part(0, 23)}:{part(0, 59)}", f"+{part(0, 23)}:{part(0, 59)}")
    return text


WORDS = ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "~", ".inf", ".nan", "inf", "nan", "=", "<<"]


def word(rng):
    text = rng.choice(WORDS)
    text = one_of(rng, text, text.upper(), text.capitalize(), text.swapcase(), text.title())
    return one_of(rng, "", "", "+", "-", ".") + text + one_of(rng, "", "", "", ".", "_", "1")


def noise(rng):
    return digits(rng, 8, "0123456789+-._:eExobTZ~=<ainfy ")


def usable(text):
    """One value on one line, and not a mapping, a comment or the end of the line."""
    return text.strip() and ": " not in text and not text.endswith(":") and " #" not in text


@pytest.mark.parametrize("make", [number, date, word, noise])
def test_scalar_that_is_accepted_means_the_same_to_yaml_1_1(ask, make):
    rng = random.Random(f"{SEED} {make.__name__}")
    scalars = sorted({text for text in (make(rng) for _ in range(COUNT)) if usable(text)})
    accepted = compare(ask, scalars)
    assert accepted > min(10, len(scalars) // 10), "hardly any was accepted: this shows nothing"


def test_short_scalars_of_number_characters(ask):
    """Every text of up to four characters that can be in a number."""
    alphabet = "017_.:eE+-xbo"
    scalars, last = [], [""]
    for _ in range(4):
        last = [text + c for text in last for c in alphabet]
        scalars += [text for text in last if usable(text)]
    assert compare(ask, scalars) > 1000


@pytest.mark.parametrize("scalar", ["y", "n", "Y", "N", "1.2.3", "10.0.0.1", "30s", "2027-1-1", "a:b"])
def test_text_that_looks_like_something_else_stays_text(ask, scalar):
    """y and n are booleans in YAML 1.1's text, and 1.2.3 a float, but in no reader worth the name."""
    assert ask([scalar]) == [("string", scalar)] and pyyaml(scalar) == ("string", scalar)


@pytest.mark.parametrize("scalar, kind", [
    ("12", "integer"), ("-7", "integer"), ("0x1F", "integer"), ("1.5", "float"), (".5", "float"), ("1.0e+3", "float"),
    ("-.inf", "float"), ("true", "boolean"), ("2027-01-31", "date"), ("2027-01-31T12:00:00Z", "datetime"),
    ("2027-01-31T12:00:00.5-05:00", "datetime"), ("0000-12-31", "date"), ("2027-01-01T23:59:60Z", "datetime")])
def test_what_the_remedies_recommend_is_accepted(ask, scalar, kind):
    assert ask([scalar])[0][0] == kind
    assert compare(ask, [scalar]) == 1
