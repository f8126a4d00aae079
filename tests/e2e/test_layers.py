# SPDX-License-Identifier: Apache-2.0
"""The layer check itself: it passes on this tree, and each rule fails on a planted violation."""

import subprocess

import pytest

pytestmark = pytest.mark.tree


@pytest.fixture
def check(repo, tmp_path):
    """Writes files into an otherwise sound tree and checks it."""

    def run(**files):
        tree = {"include/toolcage/toolcage.h": "#include <stddef.h>\n",
                "src/base/error.h": '#include "toolcage/toolcage.h"\n'} | files
        for name, text in tree.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return subprocess.run([repo / "scripts" / "layer-check", tmp_path],
                              capture_output=True, text=True, timeout=60, check=False)

    return run


def test_this_tree_keeps_its_layers(repo):
    done = subprocess.run([repo / "scripts" / "layer-check"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout


def test_tree_without_sources_fails(repo, tmp_path):
    done = subprocess.run([repo / "scripts" / "layer-check", tmp_path],
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "no sources" in done.stderr


ALLOWED = {
    "the public header": ("src/cli/main.c", '#include "toolcage/toolcage.h"'),
    "its own folder": ("src/policy/lint.c", '#include "policy/model.h"'),
    "a folder before it": ("src/core/call.c", '#include "gate/rules.h"'),
    "cli uses a server": ("src/cli/cmd_mcp.c", '#include "mcp/server.h"'),
    "a backend part uses the vtable": ("src/backend/native/jail.c", '#include "backend/backend.h"'),
    "the registry uses the parts": ("src/backend/registry.c", '#include "backend/native/jail.h"'),
    "system headers": ("src/base/sys.c", "#include <sys/mount.h>"),
    "a comment": ("src/base/sys.c", '/*\n#include "core/call.h"\n*/'),
    "a test uses tests": ("tests/unit/test_a.c", '#include "tests/unit/helper.h"'),
}


@pytest.mark.parametrize("path, line", ALLOWED.values(), ids=ALLOWED.keys())
def test_allowed_include_passes(check, path, line):
    done = check(**{path: line + "\n"})
    assert done.returncode == 0, done.stdout


FORBIDDEN = {
    "a folder after it": ("src/base/a.c", '#include "policy/model.h"', "policy"),
    "the last layer": ("src/core/a.c", '#include "cli/main.h"', "cli"),
    "siblings": ("src/daemon/a.c", '#include "proxy/proxy.h"', "side by side"),
    "parts of a backend": ("src/backend/oci/a.c", '#include "backend/native/jail.h"', "backend/native"),
    "no folder": ("src/base/a.c", '#include "error.h"', "folder/error.h"),
    "unknown folder": ("src/base/a.c", '#include "misc/x.h"', "misc"),
    "dots": ("src/base/a.c", '#include "base/../core/call.h"', "leaves its folder"),
    "angle brackets": ("src/base/a.c", "#include <base/error.h>", "quotes"),
    "spaces": ("src/base/a.c", '  #  include  "core/call.h"', "core"),
    "a comment inside": ("src/base/a.c", '#include /* x */ "core/call.h"', "core"),
    "a continued line": ("src/base/a.c", '#include \\\n"core/call.h"', "core"),
    "a macro": ("src/base/a.c", "#include HEADER", "computed"),
    "src uses tests": ("src/base/a.c", '#include "tests/unit/helper.h"', "tests"),
    "bench uses tests": ("bench/a.c", '#include "tests/unit/helper.h"', "tests"),
    "public uses src": ("include/toolcage/a.h", '#include "base/error.h"', "public"),
    "public uses src in angles": ("include/toolcage/a.h", "#include <base/error.h>", "public"),
    "a table": ("src/base/a.def", '#include "core/call.h"', "core"),
}


@pytest.mark.parametrize("path, line, words", FORBIDDEN.values(), ids=FORBIDDEN.keys())
def test_forbidden_include_is_reported_at_its_line(check, path, line, words):
    done = check(**{path: f"/* one\n * two */\n{line}\n"})
    assert done.returncode == 1
    reports = done.stdout.splitlines()
    assert len(reports) == 1
    assert reports[0].startswith(f"{path}:3: ")
    assert words in reports[0]


@pytest.mark.parametrize("path", ["src/loose.c", "src/unlisted/a.c"])
def test_file_outside_the_layers_is_reported(check, path):
    done = check(**{path: "int x;\n"})
    assert done.returncode == 1
    assert done.stdout.startswith(f"{path}:1: ")
