# SPDX-License-Identifier: Apache-2.0
"""libtoolcage as others get it: installed, found by pkg-config, linked by a host that we do not control."""

import os
import re
import shutil
import subprocess

import pytest


def need(program):
    if not shutil.which(program):
        pytest.skip(f"there is no {program}")


def checked(argv, **options):
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, timeout=300, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(build_dir, tmp_path_factory):
    """A staged installation: its root and the prefix below it."""
    need("meson")
    root = tmp_path_factory.mktemp("root")
    checked(["meson", "install", "-C", build_dir, "--no-rebuild", "--quiet", "--destdir", root])
    header = next(root.rglob("toolcage/toolcage.h"))
    return root, header.parents[2]


@pytest.fixture(scope="module")
def environment(installed):
    root, prefix = installed
    library = next(prefix.rglob("libtoolcage.so")).parent
    found = next(prefix.rglob("toolcage.pc")).parent
    return os.environ | {"PKG_CONFIG_PATH": str(found), "PKG_CONFIG_SYSROOT_DIR": str(root),
                         "LD_LIBRARY_PATH": str(library)}


@pytest.fixture(scope="module")
def compiled(environment, tmp_path_factory):
    """Compiles a program against the installed library, as its users do."""
    need("pkg-config")
    need("cc")
    directory = tmp_path_factory.mktemp("hosts")

    def build(source, *flags):
        program = directory / source.stem
        options = checked(["pkg-config", "--cflags", "--libs", "toolcage"], env=environment).split()
        checked(["cc", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", *flags, source, *options, "-o", program],
                env=environment)
        return program

    return build


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    directory = tmp_path_factory.mktemp("place")
    directory.chmod(0o755)
    return directory


def sanitized(build_dir):
    return b"__asan_init" in (build_dir / "src" / "toolcage").read_bytes()


def test_installation_is_complete(installed):
    _, prefix = installed
    names = {path.name for path in prefix.rglob("*")}
    assert {"toolcage.h", "libtoolcage.so", "libtoolcage.a", "toolcage.pc", "toolcage.1", "toolcage.3",
            "toolcage-policy.5", "toolcage", "result.json"} <= names


def test_exported_are_the_declared_functions_and_no_others(installed):
    need("nm")
    _, prefix = installed
    library = next(prefix.rglob("libtoolcage.so"))
    exported = set(re.findall(r" T (\w+)", checked(["nm", "-D", "--defined-only", library])))
    header = next(prefix.rglob("toolcage.h")).read_text()
    declared = set(re.findall(r"^TC_EXPORT[^;(]*?\b(tc_\w+)\(", header, re.M))
    assert len(declared) > 20
    assert {name for name in exported if name.startswith("tc")} == declared
    assert {name for name in exported if not name.startswith("tc_")} <= {"_init", "_fini"}


def test_manual_mentions_every_function_of_calls(repo, installed):
    text = (repo / "man" / "toolcage.3").read_text()
    _, prefix = installed
    header = next(prefix.rglob("toolcage.h")).read_text()
    for name in re.findall(r"^TC_EXPORT[^;(]*?\b(tc_\w+)\(", header.split("---- calls ----")[1], re.M):
        assert name in text, name


def test_header_is_plain_c_and_cxx(installed, tmp_path):
    need("cc")
    header = next(installed[1].rglob("toolcage.h"))
    for compiler, standard, name in (("cc", "-std=c99", "x.c"), ("c++", "-std=c++11", "x.cpp")):
        if not shutil.which(compiler):
            continue
        source = tmp_path / name
        source.write_text("#include <toolcage/toolcage.h>\nint main(void) { return tc_version() == 0; }\n")
        checked([compiler, standard, "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{header.parents[1]}",
                 source])


@pytest.mark.native
def test_example_runs(jail, build_dir, compiled, environment, repo, place):
    if sanitized(build_dir):
        pytest.skip("a host without the sanitizer cannot load the library of a build with it")
    program = compiled(repo / "examples" / "embed.c")
    output = checked([program], env=environment, cwd=place)
    assert "verdict: failed (exit code 3)\nstdout: hello from /workspace\nand from stdin\n" in output
    assert "tick 1\ntick 2\ntick 3\nverdict: timeout\nreason: stopped after 500ms: timeout\n" in output


@pytest.mark.native
@pytest.mark.parametrize("args", [(8, 12), (1, 3, "closed")])
def test_difficult_hosts_are_served(jail, build_dir, compiled, environment, repo, place, args):
    if sanitized(build_dir):
        pytest.skip("a host without the sanitizer cannot load the library of a build with it")
    program = compiled(repo / "tests" / "e2e" / "library_host.c", "-pthread")
    output = checked([program, *args], env=environment, cwd=place)
    assert int(output) == args[0] * args[1]
