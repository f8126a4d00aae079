# SPDX-License-Identifier: Apache-2.0
"""What README.md shows is what happens."""

import re
import subprocess


def blocks(text, kind):
    return re.findall(rf"^```{kind}\n(.*?)^```", text, re.S | re.M)


def sessions(text):
    """(command, output) of each "$ " line of a console block."""
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, _, output = part.partition("\n")
        yield command, output.rstrip("\n")


def test_sessions_of_the_readme_happen_as_shown(repo, build_dir, tmp_path):
    readme = (repo / "README.md").read_text()
    (tmp_path / "tools.toml").write_text(blocks(readme, "toml")[0])
    shown = [session for block in blocks(readme, "console") for session in sessions(block)]
    assert len(shown) >= 4
    env = {"PATH": f"{build_dir / 'src'}:/usr/bin:/bin"}
    for command, output in shown:
        if command.startswith("export "):
            env |= dict(word.split("=", 1) for word in command.split()[1:])
            continue
        if command.startswith("cat "):
            (tmp_path / command.split()[1]).write_text(output + "\n")
            continue
        run = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False,
                             env=env, start_new_session=True)  # no terminal on which somebody could be asked
        assert (run.stdout + run.stderr).rstrip("\n") == output, command


def test_policy_of_the_readme_is_clean(repo, toolcage, tmp_path):
    policy = tmp_path / "tools.toml"
    policy.write_text(blocks((repo / "README.md").read_text(), "toml")[0])
    assert toolcage("lint", "--strict", "--no-host", policy).returncode == 0


def test_links_of_the_documents_lead_to_files(repo):
    for document in [*repo.glob("*.md"), *repo.glob("docs/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name}: {target}"
