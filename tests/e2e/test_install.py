# SPDX-License-Identifier: Apache-2.0
"""Installation from a fresh tree, and a tree that was moved. Starts no cage, and builds: for the processor that other
tests leave over."""

import shutil
from pathlib import Path

import pytest

from test_front_door import env, run  # noqa: F401  (a fixture)

pytestmark = [pytest.mark.tree, pytest.mark.reading]


def copy_tree(repo, destination):
    """The tree as a fresh clone has it."""

    def built(folder, names):
        patterns = [".git", "build*", "__pycache__"] if Path(folder) == repo else ["corpus", "__pycache__"]
        return shutil.ignore_patterns(*patterns)(folder, names)

    shutil.copytree(repo, destination, symlinks=True, ignore=built)


@pytest.fixture(scope="module")
def installed(repo, env, tmp_path_factory):
    """The staging root of `make install DESTDIR=… PREFIX=/usr`."""
    base = tmp_path_factory.mktemp("front door")
    copy_tree(repo, base / "a tree")
    # Unoptimized and without test programs: this is about the files that are installed.
    done = run(["make", "install", f"DESTDIR={base / 'staging root'}", "PREFIX=/usr", "MESON_FLAGS=--buildtype=debug -Dtests=false"],
               cwd=base / "a tree", env=env | {"SETUP": "skip"})
    assert done.returncode == 0, done.stdout + done.stderr
    return base / "staging root"


@pytest.mark.parametrize("pattern", [
    "usr/bin/toolcage",
    "usr/lib*/**/libtoolcage.so",
    "usr/lib*/**/libtoolcage.so.*",
    "usr/lib*/**/libtoolcage.a",
    "usr/lib*/**/pkgconfig/toolcage.pc",
    "usr/include/toolcage/toolcage.h",
    "usr/share/man/man1/toolcage*.1*",
    "usr/share/man/man5/toolcage*.5*",
    "usr/share/bash-completion/completions/toolcage*",
    "usr/share/zsh/**/_toolcage",
    "usr/share/fish/vendor_completions.d/toolcage.fish",
    "usr/share/toolcage/schemas/*.json",
])
def test_install_puts_file_in_place(installed, pattern):
    assert list(installed.glob(pattern))


def test_every_schema_is_installed(installed, repo):
    published = {path.name for path in (repo / "schemas").glob("*.json")} - {"policy.in.json"}
    assert {path.name for path in installed.glob("usr/share/toolcage/schemas/*")} == published


def test_install_writes_only_below_the_prefix(installed):
    assert [path.name for path in installed.iterdir()] == ["usr"]


def test_installed_files_name_no_build_path(installed):
    """What is installed must not depend on where it was built."""
    texts = [path for path in installed.rglob("*") if path.suffix in (".pc", ".h", ".1", ".5", ".json", ".fish")]
    assert texts and [path for path in texts if str(installed.parent).encode() in path.read_bytes()] == []


def test_installed_command_runs(installed, env):
    library = next(installed.glob("usr/lib*/**/libtoolcage.so")).parent
    done = run([installed / "usr/bin/toolcage", "--version"], env=env | {"LD_LIBRARY_PATH": str(library)})
    assert done.returncode == 0
    assert done.stdout.startswith("toolcage ")


PROGRAM = r"""
#include <stdio.h>
#include <toolcage/toolcage.h>
int main(void)
{
    printf("%s\n", tc_version());
    return 0;
}
"""


def test_outside_program_builds_and_runs_with_pkg_config(installed, env, tmp_path):
    # A space in the staging root is not pkg-config's strong side, so the root gets a plain name.
    root = tmp_path / "root"
    root.symlink_to(installed)
    pc_file = next(root.glob("usr/lib*/**/toolcage.pc"))
    env = env | {"PKG_CONFIG_PATH": str(pc_file.parent), "PKG_CONFIG_SYSROOT_DIR": str(root),
                 "PKG_CONFIG_ALLOW_SYSTEM_CFLAGS": "1", "PKG_CONFIG_ALLOW_SYSTEM_LIBS": "1"}
    flags = run(["pkg-config", "--cflags", "--libs", "toolcage"], env=env)
    assert flags.returncode == 0, flags.stderr
    (tmp_path / "outside.c").write_text(PROGRAM)
    built = run(["gcc", "-Wall", "-Werror", "-o", "outside", "outside.c", *flags.stdout.split()], cwd=tmp_path, env=env)
    assert built.returncode == 0, built.stderr
    done = run([tmp_path / "outside"], env=env | {"LD_LIBRARY_PATH": str(pc_file.parent.parent)})
    version = run(["pkg-config", "--modversion", "toolcage"], env=env).stdout
    assert (done.returncode, done.stdout) == (0, version)


def test_uninstall_removes_what_was_installed(installed, env, repo, tmp_path):
    tree = installed.parent / "a tree"
    other = tmp_path / "other root"
    assert run(["make", "install", f"DESTDIR={other}"], cwd=tree, env=env | {"SETUP": "skip"}).returncode == 0
    assert list(other.glob("usr/bin/toolcage")), "the prefix of the first time is kept"
    assert run(["make", "uninstall"], cwd=tree, env=env).returncode == 0
    assert [path for path in other.rglob("*") if not path.is_dir()] == []


def test_moved_tree_starts_its_build_again(installed, env, tmp_path):
    """A build directory that came along with a copy would build, and run, the original."""
    tree = tmp_path / "moved tree"
    shutil.copytree(installed.parent / "a tree", tree, symlinks=True)
    done = run(["make", "-n", "all"], cwd=tree, env=env)
    assert done.returncode == 0
    (tree / "meson.build").write_text("project('moved', 'c')\n")
    (tree / "meson_options.txt").unlink(missing_ok=True)
    done = run(["make", "SETUP=skip"], cwd=tree, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "another place" in done.stdout
    assert f"place={tree}" in (tree / "build" / ".front-door").read_text()
