# SPDX-License-Identifier: Apache-2.0
"""`toolcage doctor`, as root and as an ordinary user: its two outputs, and that it leaves no trace."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jsonschema
import pytest

BACKENDS = ["process", "jail", "oci/crun", "oci/runc", "oci/podman", "oci/docker", "gvisor", "wasm", "microvm"]
NOBODY = 65534
SECONDS = 30  # what doctor may take on a slow and busy host

# Becomes the parent of whatever the command orphans, waits for the command, then prints what is still
# alive: pid and name, one a line. A killed process gets a moment to die. 36 is PR_SET_CHILD_SUBREAPER,
# 0x40000000 is __WALL.
COUNT_ORPHANS = """
import ctypes, os, subprocess, sys, time
assert ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0
status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
until = time.monotonic() + 20
try:
    while os.waitpid(-1, os.WNOHANG | 0x40000000)[0] or time.monotonic() < until:
        time.sleep(0.01)
except ChildProcessError:
    sys.exit(status)
for pid in os.listdir("/proc"):
    try:
        name, rest = open(f"/proc/{pid}/stat").read().rsplit(")", 1) if pid.isdigit() else ("", "Z 0")
    except OSError:
        continue
    if rest.split()[1] == str(os.getpid()):
        print(name)
sys.exit(status)
"""


@pytest.fixture(scope="module")
def program(build_dir):
    """The command in a place that every user can reach: the tree may be below a closed directory."""
    with tempfile.TemporaryDirectory(prefix="toolcage-doctor-") as folder:
        os.chmod(folder, 0o755)
        copy = Path(shutil.copy(build_dir / "src" / "toolcage", folder))
        copy.chmod(0o755)
        yield copy


@pytest.fixture(scope="module", params=["root", "user"])
def prefix(request):
    """What to put before a command so that root, or an ordinary user, runs it."""
    if request.param == "root":
        if os.getuid() != 0:
            pytest.skip("the tests do not run as root")
        return []
    if os.getuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    if not setpriv:
        pytest.skip("there is no setpriv to become another user with")
    return [setpriv, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


@pytest.fixture(scope="module")
def doctor(program, prefix, clean_env):
    """Runs `toolcage doctor`; keyword arguments go to subprocess.run, `env` adds to the environment."""

    def run(*args, env=None, **options):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "timeout": 60} | options
        return subprocess.run([*prefix, program, "doctor", *args], env=clean_env | (env or {}), cwd="/",
                              stdin=subprocess.DEVNULL, text=True, check=False, **options)

    return run


@pytest.fixture(scope="module")
def report(doctor):
    done = doctor("--json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def human(doctor):
    done = doctor()
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture(scope="module")
def schema(repo):
    return json.loads((repo / "schemas" / "doctor.json").read_text())


def names_in(table):
    """The names that a table of the source lists, in its order."""
    return re.findall(r'^X\(\w+, "(\w+)"', table.read_text(), re.M)


def validate(report, schema):
    jsonschema.Draft202012Validator(schema).validate(report)


# ---- the schema --------------------------------------------------------------------------------


def test_schema_is_valid_and_knows_every_feature_and_clause(repo, schema):
    jsonschema.Draft202012Validator.check_schema(schema)
    features = names_in(repo / "src" / "backend" / "features.def")
    assert features and schema["$defs"]["feature_name"]["enum"] == features
    assert schema["properties"]["features"]["required"] == features
    clauses = schema["$defs"]["backend"]["properties"]["clauses"]
    assert clauses["required"] == list(clauses["properties"]) == names_in(repo / "src" / "policy" / "clauses.def")


BROKEN = {
    "a state of its own": lambda r: r["features"]["kernel"].update(state="maybe"),
    "a feature less": lambda r: r["features"].pop("landlock"),
    "a feature more": lambda r: r["features"].update(luck=r["features"]["kernel"]),
    "a remedy for what is there": lambda r: r["features"]["kernel"].update(state="yes", remedy="reboot"),
    "a backend less": lambda r: r["backends"].pop("oci/crun"),
    "ready, but something is missing": lambda r: r["backends"]["jail"].update(host_ready=True, missing=["kvm"]),
    "not ready, but nothing is missing": lambda r: r["backends"]["jail"].update(host_ready=False, missing=[]),
    "an unknown thing is missing": lambda r: r["backends"]["jail"].update(host_ready=False, missing=["luck"]),
    "some, without a condition": lambda r: r["backends"]["jail"]["clauses"].update(disk={"kept": "some", "why": "x"}),
    "yes, with a condition": lambda r: r["backends"]["jail"]["clauses"].update(
        disk={"kept": "yes", "only_if": "alone"}),
    "no, without a reason": lambda r: r["backends"]["jail"]["clauses"].update(disk={"kept": "no"}),
    "terminal controls": lambda r: r["features"]["kernel"].update(detail="\x1b[31m"),
}


@pytest.mark.parametrize("spoil", BROKEN.values(), ids=BROKEN.keys())
def test_schema_refuses_what_doctor_must_not_say(report, schema, spoil):
    broken = json.loads(json.dumps(report))
    spoil(broken)
    with pytest.raises(jsonschema.ValidationError):
        validate(broken, schema)


# ---- JSON --------------------------------------------------------------------------------------


def test_json_follows_its_schema(report, schema):
    validate(report, schema)


def test_json_says_which_version_looked(report, toolcage):
    assert f"toolcage {report['version']}\n" == toolcage("--version").stdout


def test_every_backend_is_reported_with_whether_it_is_built_in(report):
    assert list(report["backends"]) == BACKENDS
    assert [name for name, backend in report["backends"].items() if not backend["built_in"]] == ["wasm", "microvm"]


def test_what_is_missing_has_a_remedy(report):
    features = report["features"]
    assert [name for name, feature in features.items() if feature["state"] == "no" and "remedy" not in feature] == []
    for backend in report["backends"].values():
        assert all(features[name]["state"] != "yes" for name in backend["missing"])


def test_backend_that_is_not_ready_keeps_no_clause(report):
    for name, backend in report["backends"].items():
        kept = {clause["kept"] for clause in backend["clauses"].values()}
        assert backend["host_ready"] or kept == {"no"}, name


def test_ordinary_user_is_not_called_privileged(report, prefix):
    if prefix or os.getuid() != 0:
        assert report["features"]["privileged"]["state"] != "yes"


# ---- for people --------------------------------------------------------------------------------


def test_human_output_names_every_feature_and_backend(human, report):
    offers, could = human.split("\nwhat each backend could do here\n")
    lines = [line.split() for line in offers.splitlines()[1:]]
    assert [line[1] for line in lines if line] == list(report["features"])
    assert {line[0] for line in lines if line} <= {"yes", "no", "unknown"}
    assert re.findall(r"^  ([\w/]+) ", could, re.M) == BACKENDS


def test_human_output_says_how_to_get_what_is_missing(human, report):
    could = human.split("\nwhat each backend could do here\n")[1]
    sections = dict(re.findall(r"^  ([\w/]+) +(.*\n(?:              .*\n)*)", could, re.M))
    assert list(sections) == BACKENDS
    for name, backend in report["backends"].items():
        if backend["host_ready"]:
            assert sections[name].startswith("the host is ready\n")
            continue
        assert sections[name].startswith("missing:\n")
        for missing in backend["missing"]:
            feature = report["features"][missing]
            assert f"            {missing}: {feature.get('remedy', '')}" in sections[name]


def test_human_output_says_which_backends_are_built_in(human):
    built_in = " ".join(BACKENDS[:-2])
    assert re.search(rf"^built into toolcage [\d.]+: {built_in}; a tool with another backend is refused$", human, re.M)


def test_human_output_is_printable_ascii(human):
    assert re.fullmatch(r"[ -~\n]+", human)


# ---- odd surroundings --------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["", ":", "/nonexistent", "relative:/dev/null"])
def test_useless_path_is_a_missing_program_and_not_a_failure(doctor, schema, path):
    done = doctor("--json", env={"PATH": path})
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    validate(report, schema)
    for program in ("podman", "docker", "crun", "runc", "runsc", "qemu", "firecracker", "wasmtime"):
        if program in ("podman", "crun", "runc", "runsc") and shutil.which(
                program, path="/usr/sbin:/usr/local/sbin:/usr/local/bin"):
            continue  # looked for there, too
        feature = report["features"][program]
        assert feature["state"] == "no" and "not in PATH" in feature["detail"] and feature["remedy"]


def test_output_that_cannot_be_written_is_an_error(doctor):
    with open("/dev/full", "w", encoding="ascii") as full:
        done = doctor(stdout=full)
    assert done.returncode == 125
    assert "cannot write" in done.stderr


def test_argument_is_refused(doctor):
    done = doctor("jail")
    assert (done.returncode, done.stdout) == (125, "")
    assert "remedy:" in done.stderr


# ---- no trace ----------------------------------------------------------------------------------


def cgroups():
    return {folder for folder, _, _ in os.walk("/sys/fs/cgroup")}


def mounts():
    return set(Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines())


def temporary_files():
    return {str(path) for folder in ("/tmp", "/dev/shm", "/var/tmp") for path in Path(folder).glob("*toolcage*")}


@pytest.mark.parametrize("look", [cgroups, mounts, temporary_files])
def test_nothing_new_is_there_afterwards(doctor, look):
    # Others use this host, too: what they do once is a coincidence, what doctor does happens each time.
    for _ in range(3):
        before = look()
        assert doctor().returncode == 0
        new = look() - before
        if not new:
            return
        time.sleep(1)
    pytest.fail(f"new after each run, and here after the last: {sorted(new)}")


def test_no_process_outlives_it(program, prefix, clean_env):
    done = subprocess.run([sys.executable, "-c", COUNT_ORPHANS, *prefix, program, "doctor"], env=clean_env, cwd="/",
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_it_is_quick(doctor):
    start = time.monotonic()
    assert doctor().returncode == 0
    assert time.monotonic() - start < SECONDS
