# SPDX-License-Identifier: Apache-2.0
"""The published schema of results, against what the library writes and against what it must never write."""

import copy
import hashlib
import json
import re
import subprocess

import jsonschema
import pytest


@pytest.fixture(scope="module")
def schema(repo):
    return json.loads((repo / "schemas" / "result.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def lines(build_dir):
    done = subprocess.run([build_dir / "tests" / "unit" / "result_probe"], capture_output=True, timeout=60, check=True)
    assert done.stderr == b""
    return done.stdout.decode("utf-8").splitlines()


@pytest.fixture(scope="module")
def results(lines):
    return [json.loads(line) for line in lines]


def verdicts(repo):
    text = (repo / "src" / "core" / "verdicts.def").read_text(encoding="utf-8")
    return re.findall(r'^X\(TC_VERDICT_\w+, "(\w+)"', text, re.M)


def test_schema_is_a_schema(repo, schema):
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"] and schema["description"] and schema["$id"].endswith("/result.json")
    text = (repo / "schemas" / "result.json").read_text(encoding="utf-8")
    assert set(schema["$defs"]) == set(re.findall(r'"#/\$defs/(\w+)"', text))


def test_schema_knows_every_verdict(repo, schema, results):
    names = verdicts(repo)
    assert len(names) == 13
    assert schema["properties"]["verdict"]["enum"] == names
    assert list(dict.fromkeys(result["verdict"] for result in results)) == names


def test_every_member_is_required_and_written_in_order(schema, results):
    assert set(schema["required"]) == set(schema["properties"])
    for result in results:
        assert list(result) == schema["required"]


def test_every_result_follows_the_schema(schema, results):
    check = jsonschema.Draft202012Validator(schema)
    assert len(results) == 26
    for result in results:
        assert [error.message for error in check.iter_errors(result)] == []


def test_results_hold_no_control_characters(lines):
    for line in lines:
        assert not re.search(r"[\x00-\x1f\x7f-\x9f]", line)


def canonical(value):
    """RFC 8785 for what is in these results: ASCII keys, integers, and decimals with few digits."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode("utf-8")


def plain(numbers):
    """Python writes 0.0 for what RFC 8785 writes as 0."""
    return {key: int(value) if isinstance(value, float) and value.is_integer() else value
            for key, value in numbers.items()}


def test_hash_can_be_checked_by_others(results):
    for result in results:
        rest = {key: value for key, value in result.items() if key not in ("mode", "hash", "state_hash")}
        rest["usage"] = plain(rest["usage"])
        rest["connections"] = [plain(connection) for connection in rest["connections"]]
        assert hashlib.sha256(canonical(rest)).hexdigest() == result["hash"]


SPOIL = {
    "another member": lambda r: r.update(more=1),
    "a missing member": lambda r: r.pop("fix"),
    "an id of another version": lambda r: r.update(call_id="0190b5a4-5a0e-4cde-8f01-23456789abcd"),
    "an upper-case trace id": lambda r: r.update(trace_id=r["trace_id"][:-1] + "F"),
    "no trace at all": lambda r: r.update(trace_id="0" * 32),
    "an unknown backend": lambda r: r.update(backend="docker"),
    "a layer with a space": lambda r: r.update(layers=["a b"]),
    "an unknown verdict": lambda r: r.update(verdict="killed"),
    "success with another exit code": lambda r: r.update(verdict="ok", exit_code=1, signal=None),
    "failure with exit code 0": lambda r: r.update(verdict="failed", exit_code=0, signal=None),
    "a signal without a name": lambda r: r.update(signal=9),
    "an exit code beyond 255": lambda r: r.update(exit_code=256),
    "an unknown encoding": lambda r: r.update(stdout_encoding="utf8"),
    "base64 that is none": lambda r: r.update(stdout_encoding="base64", stdout="a b"),
    "a negative count": lambda r: r.update(stderr_bytes=-1),
    "a number for a flag": lambda r: r.update(stdout_truncated=0),
    "a file with a relative path": lambda r: r["files"][0].update(path="x"),
    "a file with a line break": lambda r: r["files"][0].update(path="/a\nb"),
    "a file with a short hash": lambda r: r["files"][0].update(sha256="00"),
    "a file with more": lambda r: r["files"][0].update(mode=420),
    "a denial without a kind": lambda r: r["denials"][0].pop("kind"),
    "a denial that never happened": lambda r: r["denials"][0].update(count=0),
    "a connection to no port": lambda r: r["connections"][0].update(port=0),
    "a connection over another protocol": lambda r: r["connections"][0].update(protocol="udp"),
    "a connection to an address with a name": lambda r: r["connections"][0].update(address="api.example.com"),
    "a connection without its bytes": lambda r: r["connections"][0].pop("bytes_in"),
    "a connection with an empty error": lambda r: r["connections"][0].update(error=""),
    "an unknown number of connections": lambda r: r.update(network_unlisted=None),
    "no memory at all": lambda r: r["usage"].update(memory_peak_bytes=0),
    "a hash in capitals": lambda r: r.update(hash=r["hash"].upper().replace("0", "A")),
}


@pytest.mark.parametrize("spoil", SPOIL)
def test_schema_refuses_what_a_result_must_not_say(schema, results, spoil):
    result = copy.deepcopy(next(r for r in results if r["verdict"] == "signaled" and r["files"]))
    jsonschema.Draft202012Validator(schema).validate(result)
    SPOIL[spoil](result)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema).validate(result)
