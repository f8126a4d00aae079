# SPDX-License-Identifier: Apache-2.0
"""What surrounds the virtual machines of check-vm. The machines themselves are a stage of their own."""

import importlib.machinery
import importlib.util
import io
import subprocess
import sys
import tarfile

import conftest
import pytest

pytestmark = pytest.mark.tree

JUNIT = '<testsuites><testsuite><testcase classname="e2e" name="a"/></testsuite></testsuites>'


@pytest.fixture
def check_vm(repo, monkeypatch):
    """scripts/check-vm as a module."""
    monkeypatch.syspath_prepend(str(repo / "scripts"))
    loader = importlib.machinery.SourceFileLoader("check_vm", str(repo / "scripts" / "check-vm"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_vm", loader))
    loader.exec_module(module)
    return module


@pytest.fixture
def round_of(check_vm, tmp_path):
    """Reads a round whose machine sent these files: {name: text}."""

    def read(files, problem=None):
        path = tmp_path / "results.tar"
        with tarfile.open(path, "w") as tar:
            for name, text in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(text)
                tar.addfile(member, io.BytesIO(text.encode()))
        return check_vm.read_round(path, tmp_path / "unpacked", ["test_a"], True, problem)

    return read


WHOLE = {"./test_a.status": "0\n", "./test_a.tap": "1..2\nok 1 - x\nok 2 - y\n", "./pytest.status": "0\n",
         "./pytest.xml": JUNIT}


def test_whole_round_counts_every_case(round_of):
    assert str(round_of(WHOLE)) == "3 passed, 0 failed, 0 skipped"


@pytest.mark.parametrize("missing", WHOLE)
def test_missing_report_is_a_failure(round_of, missing):
    files = {name: text for name, text in WHOLE.items() if name != missing}
    assert len(round_of(files).failed) == 1


@pytest.mark.parametrize("changed", [{"./test_a.status": "124"}, {"./test_a.status": "139"}, {"./pytest.status": "2"},
                                     {"./test_a.status": "1", "./test_a.tap": "1..1\nnot ok 1 - x\n"},
                                     {"./pytest.xml": "<testsuites>"}])
def test_bad_end_is_a_failure(round_of, changed):
    assert len(round_of(WHOLE | changed).failed) == 1


def test_problem_of_the_machine_is_a_failure(round_of):
    assert round_of(WHOLE, "not finished in time").failed == [("", "not finished in time")]


def test_machine_that_sent_nothing_has_failed_once(check_vm, tmp_path):
    results = check_vm.read_round(tmp_path / "none.tar", tmp_path / "unpacked", ["test_a"], True)
    assert results.failed == [("", "sent no results")]


def test_archive_cannot_write_elsewhere(round_of, tmp_path):
    """The machine ran attacks: what comes out of it is data."""
    round_of(WHOLE | {"../outside": "x", "/tmp/toolcage-outside": "x", "folder/inside": "x"})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results.tar", "unpacked"]
    assert sorted(f"./{path.name}" for path in (tmp_path / "unpacked").iterdir()) == sorted(WHOLE)


def test_only_files_with_the_mark_are_read_there(check_vm, tmp_path, monkeypatch):
    folder = tmp_path / "tests" / "e2e"
    folder.mkdir(parents=True)
    mark = "pytest.mark." + "native"  # in one piece it would send this file there as well
    (folder / "test_a.py").write_text(f"pytestmark = {mark}\n")
    (folder / "test_b.py").write_text(f"@{mark}\ndef test_b(): ...\n")
    (folder / "test_c.py").write_text("pytestmark = pytest.mark.tree\n")
    monkeypatch.setattr(check_vm, "TREE", tmp_path)
    assert check_vm.native_files() == ["tests/e2e/test_a.py", "tests/e2e/test_b.py"]


def test_only_programs_that_match_run(check_vm, tmp_path):
    for name, mode in {"test_native": 0o755, "test_native_mounts": 0o755, "test_native.p": 0o644, "test_toml": 0o755}.items():
        (tmp_path / "tests").mkdir(exist_ok=True)
        (tmp_path / "tests" / name).touch(mode)
    assert check_vm.c_programs(tmp_path, "test_call* test_native*") == ["test_native", "test_native_mounts"]


def test_what_is_installed_must_work_in_the_machine(check_vm, monkeypatch):
    """Otherwise a container that cannot be made there would be a skip."""
    monkeypatch.setattr(check_vm, "is_installed", {"crun", "runsc", "podman"}.__contains__)
    monkeypatch.setenv("TOOLCAGE_MUST_WORK", "jail")
    assert check_vm.must_work() == "jail,oci/crun,gvisor"


def test_missing_package_is_left_out_only_where_it_may_be(check_vm, monkeypatch):
    image = sys.modules[check_vm.Problem.__module__]
    monkeypatch.setattr(image, "installed_packages", lambda: {"bash": ("bash", "5", [["libc6"]]), "libc6": ("libc6", "2", [])})
    assert image.with_dependencies({"bash"}, {"crun"}) == {"bash": "5", "libc6": "2"}
    with pytest.raises(check_vm.Problem, match="not installed: crun"):
        image.with_dependencies({"bash", "crun"})


def test_packages_of_containers_may_be_missing(check_vm, monkeypatch):
    image = sys.modules[check_vm.Problem.__module__]
    monkeypatch.setenv("VM_PACKAGES", "docker.io")
    needed, optional = image.listed_packages()
    assert {"bash", "docker.io"} <= needed and {"crun", "podman", "runc", "runsc"} <= optional and not needed & optional


def test_unknown_round_is_refused(repo):
    done = subprocess.run([repo / "scripts/check-vm", "nobody"], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "nobody" in done.stderr


@pytest.mark.parametrize("value", ["jail", "process,jail", "all"])
def test_skip_of_what_must_work_is_a_failure(must_work, monkeypatch, value):
    monkeypatch.setenv("TOOLCAGE_MUST_WORK", value)
    with pytest.raises(pytest.fail.Exception, match="jail must work here: no user namespaces"):
        must_work("jail", "no user namespaces")


@pytest.mark.parametrize("value", ["", "process", "jailer"])
def test_skip_of_anything_else_is_a_skip(must_work, monkeypatch, value):
    monkeypatch.setenv("TOOLCAGE_MUST_WORK", value)
    with pytest.raises(pytest.skip.Exception, match="no user namespaces"):
        must_work("jail", "no user namespaces")


def test_time_limits_of_the_command_are_scaled(toolcage, monkeypatch):
    monkeypatch.setattr(conftest, "TIME_SCALE", 0.00001)
    with pytest.raises(subprocess.TimeoutExpired):
        toolcage("doctor", timeout=1)
