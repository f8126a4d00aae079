# SPDX-License-Identifier: Apache-2.0
"""The front door: make's targets, the set-up of packages, odd accounts. (Installation: test_install.py.)"""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.tree


def run(argv, **options):
    options.setdefault("timeout", 300)
    return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **options)


@pytest.fixture(scope="module")
def env(clean_env):
    """No variable of the make that runs these tests may reach the makes that they start."""
    ours = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "BUILD", "VARIANT", "PREFIX", "DESTDIR", "MESON_FLAGS", "SETUP")
    return {key: value for key, value in clean_env.items() if key not in ours}


# ---- make ------------------------------------------------------------------------------------


def test_help_describes_every_target(repo, env):
    done = run(["make", "help"], cwd=repo, env=env)
    assert done.returncode == 0
    phony = re.search(r"^\.PHONY: (.*)$", (repo / "Makefile").read_text(), re.M)[1].split()
    assert [line.split()[1] for line in done.stdout.splitlines()] and all(
        re.search(rf"^  make {target} +\w", done.stdout, re.M) for target in phony)


@pytest.mark.parametrize("target, scripts", [
    ("all", ["setup --report build", "build"]),
    ("try", ["setup build", "build", "try"]),
    ("check", ["setup check", "check"]),
    ("install", ["setup --report build", "build", "install"]),
    ("fuzz", ["setup fuzz", "fuzz"]),
    ("sanitize", ["setup sanitize", "sanitize"]),
    ("static", ["setup static", "static-checks"]),
])
def test_target_only_calls_scripts(repo, env, target, scripts):
    done = run(["make", "-n", target], cwd=repo, env=env)
    assert done.stdout.splitlines() == [f"scripts/{script}" for script in scripts]


def test_every_script_the_makefile_names_can_be_run(repo):
    names = set(re.findall(r"scripts/[\w-]+", (repo / "Makefile").read_text()))
    assert names and [name for name in names if not os.access(repo / name, os.X_OK)] == []


def test_try_shows_each_command_and_its_output(repo, build_dir, env):
    done = run([repo / "scripts" / "try"], env=env | {"BUILD": str(build_dir)})
    assert done.returncode == 0, done.stderr
    commands = [line.split("/src/")[1] for line in done.stdout.splitlines() if line.startswith("$ ")]
    assert re.fullmatch(r"toolcage exec -- python3 curious\.py \S+/secret\.txt", commands[0])
    assert commands[1:] == [
        "toolcage exec --json --timeout 1s -- sh -c sleep\\ 20", "toolcage lint --no-host examples/tools.toml",
        "toolcage explain --policy examples/tools.toml run_python"]
    for line in ("read a secret: refused (No such file or directory)", "write a scratch file: done",
                 "reach the network: refused (Network is unreachable)"):
        assert line in done.stdout.splitlines()
    assert '"verdict":"timeout"' in done.stdout
    assert "/workspace/main.py" in done.stdout.rpartition("run_python\n")[2]


def test_relative_prefix_is_refused(repo, env):
    done = run(["make", "PREFIX=here", "SETUP=skip"], cwd=repo, env=env)
    assert done.returncode != 0
    assert "absolute" in done.stderr


# ---- the set-up of packages, on a made-up machine -----------------------------------------------

COREUTILS = ("bash", "env", "dirname", "sed", "tr", "cat", "stat", "find", "true", "grep")
BUILD_PACKAGES = ("gcc", "libc6-dev", "meson", "ninja-build", "pkg-config", "libjansson-dev", "libyaml-dev",
                  "libseccomp-dev", "libpcre2-dev", "libsqlite3-dev", "libevent-dev")


class Machine:
    """A PATH with just enough in it: dpkg-query and apt-get are ours and keep a list of packages."""

    def __init__(self, setup, folder, env):
        self.setup, self.folder, self.env = setup, folder, env
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.packages, self.log = folder / "packages", folder / "log"
        self.log.touch()
        for name in COREUTILS:
            (self.bin / name).symlink_to(shutil.which(name))
        self.program("id", "echo 0")
        self.program("dpkg-query", r'''
            name=${*: -1} format=$3
            while read -r package version; do
                [ "$package" = "$name" ] || continue
                case $format in *Version*) printf %s "$version" ;; *) printf 'installed ' ;; esac
                exit 0
            done <"$FOLDER/packages"
            exit 1''')
        self.program("apt-get", r'''
            echo "apt-get $*" >>"$FOLDER/log"
            case " $* " in
            *' --simulate '*) [ ! -e "$FOLDER/unknown" ] || ! grep -qx -- "${*: -1}" "$FOLDER/unknown" ;;
            *' update '*) : >"$FOLDER/updated" ;;
            *' install '*)
                [ ! -e "$FOLDER/stale" ] || [ -e "$FOLDER/updated" ] || exit 100
                [ ! -e "$FOLDER/broken" ] || exit 100
                for word in "${@: 1}"; do echo "$word 1"; done >>"$FOLDER/packages" ;;
            esac''')

    def program(self, name, text):
        path = self.bin / name
        path.write_text(f"#!/bin/bash\nFOLDER={str(self.folder)!r}\n{text}\n")
        path.chmod(0o755)

    def has(self, *names):
        self.packages.write_text("".join(f"{name} 1:14.0-55\n" for name in names))

    def run(self, *args, **env):
        return run([self.setup, *args], env=self.env | {"PATH": str(self.bin)} | env)

    def apt_calls(self, verb):
        return [line for line in self.log.read_text().splitlines() if f" {verb} " in f"{line} "]


@pytest.fixture
def machine(repo, tmp_path, env):
    made = Machine(repo / "scripts" / "setup", tmp_path, env)
    made.has()
    return made


def test_dry_run_lists_missing_packages_and_installs_nothing(machine):
    machine.has("gcc", "meson")
    done = machine.run("--dry-run", "try")
    assert done.returncode == 0
    assert re.search(r"^  libyaml-dev +\w.*", done.stdout, re.M), "each with its reason"
    assert not re.search(r"^  (gcc|meson) ", done.stdout, re.M)
    assert "cmocka" not in done.stdout, "make try needs no test packages"
    assert machine.log.read_text() == ""


def test_with_nothing_missing_setup_is_silent_and_calls_no_apt(machine):
    machine.has(*BUILD_PACKAGES)
    done = machine.run("build")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert machine.log.read_text() == ""


def test_only_missing_packages_are_installed(machine):
    machine.has(*BUILD_PACKAGES[1:])
    done = machine.run("build")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^  gcc +\w", done.stdout, re.M), "it says what and why"
    calls = machine.apt_calls("install")
    assert len(calls) == 1
    assert calls[0].endswith("install --no-install-recommends -- gcc")


def test_alternative_package_counts_as_installed(machine):
    machine.has(*[name for name in BUILD_PACKAGES if name != "pkg-config"], "pkgconf")
    assert machine.run("build").returncode == 0
    assert machine.log.read_text() == ""


@pytest.mark.parametrize("runtime, missing", [("libclang-rt-14-dev", False), ("libclang-rt-19-dev", True)])
def test_runtime_of_the_installed_clang_is_enough(machine, runtime, missing):
    machine.has(*BUILD_PACKAGES, "clang", runtime)
    assert ("libclang-rt-dev" in machine.run("--dry-run", "fuzz").stdout) == missing


def test_package_that_the_distribution_lacks_is_named_and_does_no_harm(machine):
    (machine.folder / "unknown").write_text("runsc\n")
    done = machine.run("check")
    assert done.returncode == 0, done.stderr
    assert "runsc is not to be had here" in done.stderr
    installed = [call for call in machine.apt_calls("install") if "--simulate" not in call]
    assert any(" podman" in call and " crun" in call for call in installed)
    assert not any("runsc" in call for call in installed)


def test_engines_that_cannot_be_installed_do_not_stop_a_user(machine):
    machine.run("check")
    kept = [name for name in machine.packages.read_text().split()[::2] if name not in ("podman", "runsc")]
    machine.has(*kept)
    machine.program("id", "echo 1000")
    done = machine.run("check")
    assert done.returncode == 0 and "Not installed: runsc podman" in done.stderr, done.stderr


def test_stale_lists_are_refreshed_once(machine):
    (machine.folder / "stale").touch()
    done = machine.run("build")
    assert done.returncode == 0, done.stderr
    assert len(machine.apt_calls("update")) == 1


def test_failed_installation_ends_with_the_command(machine):
    (machine.folder / "broken").touch()
    done = machine.run("build")
    assert done.returncode == 1
    assert len(machine.apt_calls("update")) == 1
    assert f"apt-get install --no-install-recommends {' '.join(BUILD_PACKAGES)}" in done.stderr


def test_user_with_sudo_installs_through_it(machine):
    machine.program("id", "echo 1000")
    machine.program("sudo", 'echo "sudo" >>"$FOLDER/log"; shift; exec "$@"')
    assert machine.run("build").returncode == 0
    assert "sudo" in machine.log.read_text()


def test_user_without_sudo_is_told_the_exact_command(machine):
    machine.program("id", "echo 1000")
    done = machine.run("build")
    assert done.returncode == 1
    assert f"&& apt-get install --no-install-recommends {' '.join(BUILD_PACKAGES)}" in done.stderr
    assert machine.log.read_text() == ""


def test_sudo_that_wants_a_password_is_not_waited_for(machine):
    machine.program("id", "echo 1000")
    machine.program("sudo", "exit 1")
    done = machine.run("build")
    assert done.returncode == 1
    assert "sudo apt-get install" in done.stderr
    assert machine.log.read_text() == ""


def test_other_distribution_gets_the_list(machine):
    (machine.bin / "apt-get").unlink()
    done = machine.run("build")
    assert done.returncode == 1
    assert all(name in done.stderr for name in BUILD_PACKAGES)
    assert "SETUP=skip" in done.stderr
    assert machine.run("build", SETUP="skip").returncode == 0


def test_report_names_what_is_missing_and_changes_nothing(machine):
    done = machine.run("--report", "build")
    assert done.returncode == 1
    assert "apt-get install" in done.stderr
    assert machine.log.read_text() == ""


@pytest.mark.skipif(not shutil.which("dpkg"), reason="needs dpkg to know which package a library is from")
def test_every_library_that_meson_asks_for_is_in_the_table(repo, machine):
    files = [repo / "meson.build", *repo.glob("*/meson.build"), *repo.glob("*/*/meson.build")]
    names = {name for path in files for name in re.findall(r"(?<!_)dependency\('([^']+)'", path.read_text())}
    names.discard("threads")  # the C library's own
    listed = machine.run("--dry-run", "check").stdout
    assert names
    for name in names:
        folder = run(["pkg-config", "--variable=pcfiledir", name]).stdout.strip()
        package = run(["dpkg", "-S", f"{folder}/{name}.pc"]).stdout.split(":")[0]
        assert re.search(rf"^  {package} ", listed, re.M), name


def test_unknown_job_is_an_error(machine):
    assert machine.run("nonsense").returncode == 1
    assert machine.run().returncode == 1


# ---- accounts and places ----------------------------------------------------------------------


@pytest.fixture
def public_tree(repo):
    """A copy of the scripts that other accounts can reach, unlike pytest's own folders."""
    with tempfile.TemporaryDirectory(prefix="front-door-") as folder:
        tree = Path(folder)
        shutil.copytree(repo / "scripts", tree / "scripts")
        shutil.copy(repo / "Makefile", tree)
        tree.chmod(0o755)
        yield tree


def test_build_directory_of_another_account_is_explained(public_tree, env):
    build = public_tree / "build"
    build.mkdir()
    (build / ".ninja_log").touch(mode=0o444)
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.getuid() == 0 else []
    done = run([*nobody, "make", "SETUP=skip"], cwd=public_tree, env=env)
    assert done.returncode != 0
    assert "not yours to write" in done.stderr
    assert "make BUILD=" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
