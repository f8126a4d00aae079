# SPDX-License-Identifier: Apache-2.0
"""Documents keep up with the program: what is generated is fresh, what is shown is what happens."""

import os
import re
import shlex
import shutil
import subprocess

import pytest

pytestmark = pytest.mark.tree

GENERATED = ("schemas/policy.json", "man/toolcage-policy.5", "docs/policy.md")


def run_generate(tree, build_dir, *args):
    """scripts/generate of a tree, with the tables of the build under test."""
    ours = ("BUILD", "VARIANT", "MAKEFLAGS", "MAKELEVEL")
    env = {key: value for key, value in os.environ.items() if key not in ours} | {"BUILD": str(build_dir)}
    return subprocess.run([tree / "scripts" / "generate", *args], env=env, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def copy(repo, build_dir, tmp_path):
    """What scripts/generate needs of the tree, fresh whatever the tree is, and to be spoilt."""
    tree = tmp_path / "a tree"
    for name in ("scripts", "schemas", "man", "docs"):
        shutil.copytree(repo / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    assert run_generate(tree, build_dir).returncode == 0
    return tree


def contents(tree):
    return {path: path.read_bytes() for path in sorted(tree.rglob("*")) if path.is_file()}


# ---- scripts/generate --------------------------------------------------------------------------


def test_generated_files_are_fresh(repo, build_dir):
    done = run_generate(repo, build_dir, "--check")
    assert done.returncode == 0, done.stderr


def spoil(path):
    """Changes the middle of what is generated."""
    text = path.read_text()
    assert "memory" in text
    path.write_text(text.replace("whole process tree", "whole forest", 1) if path.suffix != ".json"
                    else text.replace('"memory"', '"memories"', 1))


@pytest.mark.parametrize("name", GENERATED)
def test_check_names_the_stale_file_and_changes_nothing(copy, build_dir, name):
    spoil(copy / name)
    before = contents(copy)
    done = run_generate(copy, build_dir, "--check")
    assert done.returncode == 1
    assert re.findall(r"^(\S+) is out of date", done.stderr, re.M) == [name]
    assert contents(copy) == before


@pytest.mark.parametrize("name", GENERATED)
def test_generate_mends_the_stale_file_and_no_other(copy, build_dir, name):
    fresh = contents(copy)
    (copy / name).chmod(0o640)
    spoil(copy / name)
    done = run_generate(copy, build_dir)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.findall(r"^Wrote (\S+)$", done.stdout, re.M) == [name]
    assert contents(copy) == fresh
    assert (copy / name).stat().st_mode & 0o777 == 0o640
    assert run_generate(copy, build_dir, "--check").returncode == 0


def test_missing_schema_is_stale_and_is_made(copy, build_dir):
    fresh = contents(copy)
    (copy / "schemas/policy.json").unlink()
    assert run_generate(copy, build_dir, "--check").returncode == 1
    assert not (copy / "schemas/policy.json").exists()
    assert run_generate(copy, build_dir).returncode == 0
    assert contents(copy) == fresh


LOST_MARKS = {
    "no end": ("docs/policy.md", "<!-- END GENERATED KEYS -->", "<!-- END -->"),
    "no begin": ("man/toolcage-policy.5", '.\\" BEGIN GENERATED KEYS (make generate)', '.\\" KEYS'),
    "two ends": ("docs/policy.md", "<!-- END GENERATED KEYS -->", "<!-- END GENERATED KEYS -->\n" * 2),
}


@pytest.mark.parametrize("name, mark, other", LOST_MARKS.values(), ids=LOST_MARKS.keys())
def test_section_that_cannot_be_found_is_an_error_and_nothing_is_written(copy, build_dir, name, mark, other):
    path = copy / name
    path.write_text(path.read_text().replace(mark, other))
    spoil(copy / "schemas/policy.json")
    before = contents(copy)
    done = run_generate(copy, build_dir)
    assert done.returncode == 1
    assert name in done.stderr and "exactly once" in done.stderr
    assert contents(copy) == before


@pytest.mark.parametrize("args", [["--chekc"], ["--check", "more"], ["more"]])
def test_wrong_arguments_are_refused(copy, build_dir, args):
    done = run_generate(copy, build_dir, *args)
    assert done.returncode == 1
    assert "usage" in done.stderr


def test_without_a_build_it_says_what_to_do(copy, tmp_path):
    done = run_generate(copy, tmp_path / "nothing", "--check")
    assert done.returncode == 1
    assert "build first" in done.stderr


# ---- manual pages ------------------------------------------------------------------------------


@pytest.mark.parametrize("page", ["toolcage.1", "toolcage-policy.5"])
def test_manual_page_is_clean(repo, page):
    if not shutil.which("mandoc"):
        pytest.skip("there is no mandoc")
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", repo / "man" / page], capture_output=True,
                          text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_manual_page_tells_of_every_verb_and_option(repo, toolcage):
    sections = dict(re.findall(r"^\.SS (\w+)\n(.*?)(?=^\.S[SH])", (repo / "man/toolcage.1").read_text(), re.M | re.S))
    verbs = re.findall(r"^  (\w+) ", toolcage("--help").stdout, re.M)
    assert list(sections) == verbs
    for verb in verbs:
        options = set(re.findall(r"^ .*--([\w-]+)", toolcage(verb, "--help").stdout, re.M)) - {"help"}
        told = {name.replace("\\-", "-") for name in re.findall(
            r"^\.B[IR]? (?:\\-\w \", \" )?\\-\\-((?:[a-z]|\\-)+)", sections[verb], re.M)}
        assert options <= told, verb
        assert "Exit status:" in sections[verb], verb


# ---- examples ----------------------------------------------------------------------------------


def blocks_of_policy_guide(repo):
    return re.findall(r"^```(\w+)( error)?\n(.*?)^```$", (repo / "docs/policy.md").read_text(), re.M | re.S)


def example_of_manual_page(repo):
    text = (repo / "man/toolcage-policy.5").read_text()
    return text.split('.\\" example: begin\n')[1].split('.\\" example: end\n')[0].replace("\\-", "-")


def test_example_of_the_manual_page_is_sound(repo, toolcage):
    done = toolcage("lint", "--no-host", "--strict", "-", input=example_of_manual_page(repo))
    assert (done.returncode, done.stdout) == (0, "-: 0 errors, 0 warnings, 0 notes\n")


def test_policies_of_the_guide_load(repo, toolcage, tmp_path):
    blocks = [block for block in blocks_of_policy_guide(repo) if block[0] in ("toml", "yaml")]
    assert len(blocks) > 5
    for language, broken, text in blocks:
        (tmp_path / f"policy.{language}").write_text(text)
        done = toolcage("dump", tmp_path / f"policy.{language}")
        assert done.returncode == (125 if broken else 0), text + done.stderr


def check_session(text, toolcage, folder):
    """Runs each `$ toolcage ...` of a block and compares what it prints with what the block says."""
    seen = ""
    for line in re.findall(r"^\$ (.*)$", text, re.M):
        words = shlex.split(line)
        assert words[0] == "toolcage"
        done = toolcage(*words[1:], cwd=folder)
        seen += f"$ {line}\n{done.stdout}{done.stderr}"
    assert seen == text


def test_sessions_of_the_guide_happen_as_shown(repo, toolcage, tmp_path):
    """A session is about the policy that was shown before it."""
    sessions = 0
    for language, _, text in blocks_of_policy_guide(repo):
        if language == "toml":
            (tmp_path / "policy.toml").write_text(text)
        elif language == "console":
            check_session(text, toolcage, tmp_path)
            sessions += 1
    assert sessions > 3


def test_sessions_of_the_manual_page_happen_as_shown(repo, toolcage, tmp_path):
    """The page shows its sessions with the example of the other page, in tools.toml."""
    examples = (repo / "man/toolcage.1").read_text().split("\n.SH EXAMPLES\n")[1]
    (tmp_path / "tools.toml").write_text(example_of_manual_page(repo))
    sessions = 0
    for text in re.findall(r"^\.nf\n(\$ .*?)^\.fi$", examples, re.M | re.S):
        text = re.sub(r"^\$ (?:export .*\n|echo .*\n\d+\n)", "", text.replace("\\-", "-"), flags=re.M)
        check_session(text, lambda *args, **options: toolcage(
            *args, env={"TOOLCAGE_POLICY": "tools.toml"}, **options), tmp_path)
        sessions += 1
    assert sessions > 1


def test_canonical_forms_of_the_guide_are_those_of_dump(repo, toolcage):
    text = (repo / "docs/policy.md").read_text()
    table = text.split("| written | becomes |\n|---|---|\n")[1].split("\n\n")[0]
    rules = re.findall(r"^\| `(.*?)` \| `(.*?)` \|$", table, re.M)
    assert len(rules) > 2
    for written, becomes in rules:
        done = toolcage("dump", "-", input=f'[tool.a]\nnetwork = ["{written}"]\n')
        assert f'network = ["{becomes}"]\n' in done.stdout, written


def test_rules_that_the_guide_calls_refused_are_refused(repo, toolcage):
    text = (repo / "docs/policy.md").read_text()
    table = text.split("| refused | because |\n|---|---|\n")[1].split("\n\n")[0]
    rules = [rule if not rule.startswith(":") else f"api.example.com{rule}"
             for row in table.splitlines() for rule in re.findall(r"`(.*?)`", row.split(" | ")[0])]
    assert len(rules) > 8
    for rule in rules:
        done = toolcage("dump", "-", input=f'[tool.a]\nnetwork = ["{rule}"]\n')
        assert done.returncode == 125 and "TC-P020" in done.stderr, rule
