# SPDX-License-Identifier: Apache-2.0
"""http_fetch in its cage, against the servers of the gate's lab: what is allowed is fetched, what is not is refused and
told, and no answer or argument makes it speak to anybody else."""

import base64
import json
import subprocess

import jsonschema
import pytest

from gate_lab import check_schema, mark, one_cage, quiet, world  # noqa: F401
from native import BUILD, TIME_SCALE

PROGRAM = BUILD / "src" / "inside" / "toolcage-loader"
NETWORK = ["allowed.test:80", "allowed.test:443", "allowed.test:7001", "www.allowed.test:80"]


@pytest.fixture(scope="module")
def fetch(world, one_cage):  # noqa: F811
    """Calls http_fetch; the result, whose output matches the tool's own schema."""

    def run(url, variables=None, **arguments):
        variables = {"SSL_CERT_FILE": str(world.public / "ca.pem")} if variables is None else variables
        lines = ", ".join(f"{key} = {json.dumps(value)}" for key, value in variables.items())
        policy = one_cage.policy(NETWORK, f'env = {{ {lines} }}\n[tool.http_fetch]\nbuiltin = "http_fetch"')
        done = one_cage.finish(one_cage.spawn(
            world.base / "toolcage", "call", "--no-journal", "--policy", policy, "--json", "http_fetch",
            json.dumps({"url": url} | arguments)))
        assert done.status == 0 and done.stdout.startswith("{"), done
        result = json.loads(done.stdout)
        check_schema(result)
        return result

    return run


def refused(result, said):
    """It failed, and says so in one sentence."""
    assert (result["verdict"], result["exit_code"], result["stdout"]) == ("failed", 1, ""), result
    assert said in result["stderr"] and result["stderr"].count("\n") == 1, result
    return result


def denied(result):
    return {entry["target"] for entry in result["denials"] if entry["kind"] == "network"}


def test_an_allowed_host_answers(fetch):
    result = fetch("http://allowed.test/hello")
    assert result["verdict"] == "ok", result
    assert result["output"] == {"url": "http://allowed.test/hello", "status": 200, "headers": {"content-length": "24"},
                                "body": "hello from allowed.test\n", "encoding": "utf-8", "truncated": False}


def test_https_trusts_the_certificates_of_the_cage_and_no_others(fetch):
    assert fetch("HTTPS://allowed.test/hello")["output"]["body"] == "hello from allowed.test\n"
    refused(fetch("https://allowed.test/hello", variables={}), "its certificate is not trusted")


def test_methods_bodies_and_headers_arrive(fetch, world, mark):  # noqa: F811
    assert fetch("http://allowed.test/", body="12345")["output"]["body"] == "5 bytes\n"
    assert fetch("http://allowed.test/", method="POST", headers={"Content-Type": "text/x", "X-Empty": ""})[
        "output"]["body"] == "0 bytes\n"
    output = fetch("http://allowed.test/", method="HEAD")["output"]
    assert (output["status"], output["body"]) == (200, "")
    assert [entry["method"] for entry in world.log(mark, "request")] == ["POST", "POST", "HEAD"]


def test_a_refused_host_is_refused_and_told(fetch, world, mark):  # noqa: F811
    result = refused(fetch("http://refused.test/"), "its host is not allowed by the policy, or does not exist")
    assert denied(result) == {"refused.test"}
    refused(fetch("http://allowed.test:8080/"), "does not allow this host and port")
    refused(fetch("http://127.0.0.1/"), "does not allow this host and port")
    quiet(world, mark)


def test_redirects_lead_only_to_what_is_allowed(fetch, world, mark):  # noqa: F811
    assert fetch("http://allowed.test/to?http://www.allowed.test/x")["output"]["url"] == "http://www.allowed.test/x"
    result = refused(fetch("http://allowed.test/to?http://refused.test/"), '"http://refused.test/" cannot be fetched')
    assert denied(result) == {"refused.test"}
    for url in ("file:///etc/passwd", "ftp://allowed.test/", "gopher://allowed.test:80/_x", "dict://allowed.test/"):
        refused(fetch(f"http://allowed.test/to?{url}"), "only http and https are spoken")
    output = fetch("http://allowed.test/to?http://refused.test/", follow_redirects=False)["output"]
    assert (output["status"], output["headers"]["location"]) == (302, "http://refused.test/")
    refused(fetch("http://allowed.test/to?" * 14 + "http://allowed.test/"), "from one redirect to the next")
    assert not [entry for entry in world.log(mark, "question") if entry["name"] == "refused.test"]


def test_a_large_answer_is_cut(fetch):
    output = fetch("http://allowed.test/big?50000000")["output"]
    assert (len(output["body"]), output["truncated"]) == (200_000, True)
    output = fetch("http://allowed.test/big?100", max_bytes=100)["output"]
    assert (len(output["body"]), output["truncated"]) == (100, False)


def test_a_server_that_says_nothing_does_not_hold_it(fetch):
    result = refused(fetch("http://allowed.test:7001/", timeout=1), "has not answered within 1 seconds")
    assert result["usage"]["duration_ms"] < 15000


def test_proxies_of_the_environment_are_not_used(fetch):
    proxy = dict.fromkeys(("http_proxy", "all_proxy", "ALL_PROXY"), "http://refused.test:80")
    assert fetch("http://allowed.test/", variables=proxy)["verdict"] == "ok"


BAD = [
    {"url": "file:///etc/passwd"}, {"url": "//allowed.test/"}, {"url": "http://allowed.test/ HTTP/1.1\r\nX: y"},
    {"url": "http://allowed.test/", "headers": {"X": "1\r\nY: 2"}},
    {"url": "http://allowed.test/", "headers": {"X:": "1"}},
    {"url": "http://allowed.test/", "headers": {"": "1"}}, {"url": "http://allowed.test/", "headers": {"X": 1}},
    {"url": "http://allowed.test/", "headers": {"X": "a\0b"}},
    {"url": "http://allowed.test/", "method": "CONNECT"}, {"url": "http://allowed.test/", "max_bytes": 10**9},
]


@pytest.mark.parametrize("arguments", BAD, ids=lambda value: json.dumps(value)[8:60])
def test_injected_arguments_are_refused_by_the_schema_and_by_the_program(fetch, arguments):
    result = fetch(**arguments)
    assert result["verdict"] == "invalid_input" and result["exit_code"] is None, result
    # Nobody is asked for: it ends before that.
    done = subprocess.run([PROGRAM, "http_fetch"], input=json.dumps(arguments), capture_output=True, text=True,
                          check=False, timeout=20 * TIME_SCALE)
    assert (done.returncode, done.stdout) == (1, "") and done.stderr.count("\n") == 1, done


@pytest.mark.parametrize("headers", [
    {"Host": "refused.test"}, {"Content-Length": "5"}, {"transfer-encoding": "chunked"}])
def test_headers_that_frame_the_request_are_not_the_callers(fetch, headers):
    refused(fetch("http://allowed.test/", headers=headers), "is set by http_fetch itself")


def test_bytes_that_are_not_text_come_as_base64(fetch, world):  # noqa: F811
    served = world.base / "served" / "repository.git" / "blob"
    if not served.parent.is_dir():
        pytest.skip("git is not installed: nothing is served")
    served.write_bytes(bytes(range(256)))
    output = fetch("http://allowed.test/repository.git/blob")["output"]
    assert (output["encoding"], base64.b64decode(output["body"])) == ("base64", bytes(range(256)))


def test_the_schemas_are_the_ones_that_models_see(fetch, toolcage, tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text('version = 1\ntool.http_fetch.builtin = "http_fetch"\n')
    tool, = json.loads(toolcage("tools", "--policy", path, "--format", "json").stdout)["tools"]
    jsonschema.validate(fetch("http://allowed.test/")["output"], tool["returns"], jsonschema.Draft202012Validator)
