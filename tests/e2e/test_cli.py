# SPDX-License-Identifier: Apache-2.0
"""The command's front: help, completion in three shells, manual pages, questions, and where a policy comes from."""

import re
import shutil
import subprocess

import pytest

POLICY = """\
version = 1
[tool.web_fetch]
description = "Fetch a page"
network = ["api.example.com:443", "deny:bad.example.com:*"]
filesystem = { readable = ["/data"], hidden = ["/data/secret"] }
[tool."dotted.name"]
[tool.write_file]
description = \"\"\"Writes
rm_everything
a file\"\"\"
filesystem = { writable = ["/work"] }
[agent.reader]
grants = ["web_fetch"]
[agent.late]
grants = [{ tool = "write_file", expires = "2001-01-01" }]
[agent.careful]
grants = [{ tool = "web_fetch", network = false }, { tool = "write_file", max_calls = 0 }]
"""
TOOLS = ["web_fetch", "dotted.name", "write_file"]
FORMATS = ["human", "json", "sarif"]
SHELLS = ["bash", "zsh", "fish"]


@pytest.fixture
def policy(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text(POLICY)
    return path


def options_table(repo):
    """Every option of the command, and whether it takes a value."""
    text = (repo / "src" / "cli" / "options.def").read_text(encoding="utf-8")
    table = re.findall(r'^X\(\w+, "([\w-]+)", ([\'\w]+), (NULL|"[^"]+")', text, re.M)
    assert len(table) > 8
    return {name: argument != "NULL" for name, _, argument in table}


@pytest.fixture(scope="session")
def verbs(toolcage):
    """Each verb with its summary, as `toolcage --help` lists them."""
    return dict(re.findall(r"^  ([a-z]+) +(\S.*)$", toolcage("--help").stdout.split("verbs:\n")[1], re.M))


@pytest.fixture(scope="session")
def options(toolcage, verbs):
    """Each verb with the options that its help lists."""
    return {verb: re.findall(r"^ .{5}--([\w-]+)", toolcage("help", verb).stdout.split("options:\n")[1], re.M)
            for verb in verbs}


# ---- help ----------------------------------------------------------------------------------------


def test_help_lists_the_verbs(toolcage, verbs):
    assert {"lint", "explain", "dump", "tools", "doctor", "completion", "help"} <= set(verbs)
    for args in (("--help",), ("-h",), ("help",)):
        done = toolcage(*args)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("usage: toolcage VERB")


def test_help_of_a_verb_is_the_same_however_it_is_asked_for(toolcage, verbs):
    for verb in verbs:
        shown = toolcage("help", verb)
        assert (shown.returncode, shown.stderr) == (0, "")
        assert shown.stdout.startswith(f"usage: toolcage {verb} ")
        for args in ((verb, "--help"), (verb, "-h")):
            assert toolcage(*args).stdout == shown.stdout
        assert max(map(len, shown.stdout.splitlines())) <= 100


def test_help_lists_exactly_the_options_that_are_taken(toolcage, repo, options):
    table = options_table(repo)
    for verb, listed in options.items():
        assert len(listed) == len(set(listed)) and set(listed) <= set(table)
        for name, takes_value in table.items():
            done = toolcage(verb, f"--{name}", *(["x"] if takes_value else []), "--help")
            taken = "has no option" not in done.stderr
            assert taken is (name in listed), (verb, name)
            # Help is printed and nothing is done, whatever else is asked for.
            assert done.returncode == (0 if taken and name != "help" else 125), (verb, name)


def test_letters_mean_what_help_says(toolcage, policy):
    assert toolcage("dump", "-p", policy).stdout == toolcage("dump", "--policy", policy).stdout != ""
    assert toolcage("dump", f"-p{policy}").stdout == toolcage("dump", f"--policy={policy}").stdout != ""
    asked = ("explain", "--policy", policy, "web_fetch", "--call")
    assert toolcage(*asked, "-a", "reader").stdout == toolcage(*asked, "--agent", "reader").stdout != ""


def test_version(toolcage, repo):
    version = re.search(r"version: '([\d.]+)'", (repo / "meson.build").read_text())[1]
    for option in ("--version", "-V"):
        done = toolcage(option)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"toolcage {version}\n", "")


# ---- where the policy comes from -----------------------------------------------------------------


def test_policy_comes_from_the_environment_last(toolcage, tmp_path):
    for name in ("option", "argument", "environment"):
        (tmp_path / f"{name}.toml").write_text(f"[tool.from_{name}]\n")
    env = {"TOOLCAGE_POLICY": str(tmp_path / "environment.toml")}
    assert "from_environment" in toolcage("dump", env=env).stdout
    assert "from_option" in toolcage("dump", "--policy", tmp_path / "option.toml", env=env).stdout
    assert "from_argument" in toolcage("dump", tmp_path / "argument.toml", env=env).stdout
    assert "from_environment" in toolcage("tools", env=env).stdout
    assert "from_environment" in toolcage("explain", env=env).stdout
    assert "environment.toml" in toolcage("lint", "--no-host", env=env).stdout


def test_empty_variable_is_none(toolcage):
    done = toolcage("dump", env={"TOOLCAGE_POLICY": ""})
    assert (done.returncode, done.stdout) == (125, "")
    assert "no policy is given" in done.stderr


def test_variable_may_name_standard_input(toolcage):
    done = toolcage("tools", env={"TOOLCAGE_POLICY": "-"}, input="[tool.piped]\n")
    assert done.returncode == 0 and done.stdout.startswith("piped\n")


def test_mistake_in_the_policy_of_the_environment_names_that_file(toolcage, tmp_path):
    path = tmp_path / "broken.toml"
    path.write_text("nonsense = 1\n")
    done = toolcage("tools", env={"TOOLCAGE_POLICY": str(path)})
    assert done.returncode == 125 and done.stderr.startswith(f"{path}:1:1: error: ")


# ---- questions -----------------------------------------------------------------------------------

# tool, options, status, beginning of the answer, line of the policy that decided (None: no line).
QUESTIONS = {
    "the owner may call": ("web_fetch", ("--call",), 0, "yes: the policy defines", 2),
    "no such tool": ("nothing", ("--call",), 1, "no: the policy has no tool", None),
    "a grant": ("web_fetch", ("--call", "--agent", "reader"), 0, "yes: agent \"reader\"", 13),
    "no grant": ("write_file", ("--call", "--agent", "reader"), 1, "no: agent \"reader\" holds no grant", None),
    "a stranger": ("web_fetch", ("--call", "--agent", "nobody"), 1, "no: agent \"nobody\" holds no grant", None),
    "expired": ("write_file", ("--call", "--agent", "late"), 1, "no: the grant of \"write_file\"", 15),
    "used up": ("write_file", ("--call", "--agent", "careful"), 1, "no: agent \"careful\" has used all 0 calls", 17),
    "an allowed host": ("web_fetch", ("--reach", "api.example.com:443"), 0, "yes: api.example.com:443 is allowed", 4),
    "the same host in capitals": ("web_fetch", ("--reach", "API.EXAMPLE.COM.:443"), 0, "yes: ", 4),
    "another port": ("web_fetch", ("--reach", "api.example.com:80"), 1, "no: no rule allows", 4),
    "a denied host": ("web_fetch", ("--reach", "bad.example.com:1"), 1, "no: bad.example.com:1 is denied", 4),
    "no network": ("write_file", ("--reach", "api.example.com:443"), 1, "no: the network is \"none\"", None),
    "a narrowed grant": ("web_fetch", ("--reach", "api.example.com:443", "--agent", "careful"), 1, "no: the network", 17),
    "an address": ("web_fetch", ("--reach", "[::1]:443"), 1, "no: no rule allows [::1]:443", 4),
    "not a host": ("web_fetch", ("--reach", "a b:443"), 1, "no: \"a b\" is not a host", None),
    "a readable path": ("web_fetch", ("--read", "/data/x"), 0, "yes: /data/x is readable", 5),
    "a hidden path": ("web_fetch", ("--read", "/data/secret/x"), 1, "no: /data/secret/x is hidden", 5),
    "a path with dots": ("web_fetch", ("--read", "/data/x/../secret"), 1, "no: /data/secret is hidden", 5),
    "writing a readable path": ("web_fetch", ("--write", "/data/x"), 1, "no: /data/x is only readable", 5),
    "writing": ("write_file", ("--write", "/work/x"), 0, "yes: /work/x is writable", 11),
    "a path nobody granted": ("write_file", ("--read", "/home/user"), 1, "no: /home/user is not granted", 11),
    "a built-in path": ("write_file", ("--read", "/usr/bin/env"), 0, "yes: /usr/bin/env is readable", None),
    "a relative path": ("write_file", ("--read", "x"), 1, "no: \"x\"", None),
}


@pytest.mark.parametrize("case", QUESTIONS)
def test_question_is_answered(toolcage, policy, case):
    tool, args, status, beginning, line = QUESTIONS[case]
    done = toolcage("explain", "--policy", policy, tool, *args)
    assert (done.returncode, done.stderr) == (status, ""), done.stdout
    assert done.stdout.startswith(beginning)
    place = re.search(rf"^    by: {re.escape(str(policy))}:(\d+):\d+ \([a-z_]+\)$", done.stdout, re.M)
    assert (int(place[1]) if place else None) == line
    assert bool(re.search(r"^    fix: .", done.stdout, re.M)) is (status == 1)


def test_explanation_shows_where_each_value_comes_from(toolcage, tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text('[defaults]\ntimeout = "5s"\n[tool.t]\nmemory = "1MB"\n')
    lines = toolcage("explain", "--policy", path, "t").stdout.splitlines()
    shown = {line.split()[0]: line.partition("  # ")[2] for line in lines if "  # " in line}
    assert (shown["timeout"], shown["memory"], shown["pids"]) == ("[defaults], line 2", "line 4", "built-in")


def test_explanation_of_all_tools_is_that_of_each(toolcage, policy):
    everything = toolcage("explain", "--policy", policy).stdout
    assert everything == "\n".join(toolcage("explain", "--policy", policy, tool).stdout for tool in TOOLS)


def test_tools_are_listed_one_by_one(toolcage, policy):
    done = toolcage("tools", "--policy", policy)
    assert (done.returncode, done.stderr) == (0, "")
    # A line that begins with a name is a tool, and no text of the policy can make one.
    assert re.findall(r"^(\S+)$", done.stdout, re.M) == TOOLS
    assert "rm_everything" in done.stdout
    assert re.findall(r"may be called by: +(.*)$", done.stdout, re.M) == [
        "reader (line 13), careful (line 17)", "no agent", "late (line 15), careful (line 17)"]


def test_policy_without_tools_says_so(toolcage, tmp_path):
    (tmp_path / "none.toml").write_text("version = 1\n")
    for verb in ("tools", "explain"):
        done = toolcage(verb, "--policy", tmp_path / "none.toml")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == "the policy has no tools; [tool.NAME] defines one\n"


def test_help_tells_what_an_option_means_to_the_verb(toolcage):
    assert "whose cage the server gets" in toolcage("mcp", "--help").stdout
    assert "only calls of this tool" in toolcage("journal", "--help").stdout
    assert "[defaults]" in toolcage("exec", "--help").stdout


def test_shell_without_completion_is_named(toolcage):
    done = toolcage("completion", "tcsh")
    assert done.returncode == 125 and '"tcsh"' in done.stderr and "bash, zsh or fish" in done.stderr


# ---- completion ----------------------------------------------------------------------------------


def need(program):
    if not shutil.which(program):
        pytest.skip(f"there is no {program}")


def run_shell(argv, build_dir, env, cwd):
    done = subprocess.run(argv, env=env | {"PATH": f"{build_dir / 'src'}:{env['PATH']}", "HOME": str(cwd)}, cwd=cwd,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def script(toolcage, tmp_path):
    """Writes the completion script of a shell to a file."""

    def write(shell):
        need(shell)
        done = toolcage("completion", shell)
        assert (done.returncode, done.stderr) == (0, "")
        path = tmp_path / f"completion.{shell}"
        path.write_text(done.stdout)
        return path

    return write


@pytest.fixture
def bash(script, build_dir, clean_env, tmp_path):
    """What bash offers for the last of these words."""
    path = script("bash")

    def complete(*words, env=None):
        # compopt works only inside a real completion; here it would only complain.
        code = ('compopt() { :; }; source "$0"; COMP_WORDS=(toolcage "$@"); COMP_CWORD=$#; _toolcage; '
                'printf "%s\\n" "${COMPREPLY[@]}"')
        lines = run_shell(["bash", "--norc", "--noprofile", "-c", code, path, *words], build_dir, clean_env | (env or {}),
                          tmp_path)
        return [line for line in lines if line]

    return complete


def test_bash_completes_verbs(bash, verbs):
    assert bash("") == [*verbs, "--help", "--version"]
    assert bash("li") == ["lint"]
    assert bash("d") == ["dump", "doctor"]
    assert bash("zzz") == []
    assert bash("help", "") == list(verbs)


def test_bash_completes_options(bash, options):
    for verb, listed in options.items():
        assert bash(verb, "--") == [f"--{name}" for name in listed]
    assert bash("lint", "--no") == ["--no-host"]


def test_bash_completes_values(bash, policy):
    assert bash("lint", "--format", "") == FORMATS
    assert bash("lint", "--format", "s") == ["sarif"]
    assert bash("tools", "--format", "") == ["human", "json", "openai", "anthropic", "mcp"]
    assert bash("completion", "") == SHELLS
    assert bash("completion", "f") == ["fish"]
    assert bash("dump", "pol") == ["policy.toml"]
    assert bash("dump", "--policy", "pol") == ["policy.toml"]
    assert bash("dump", "-p", "pol") == ["policy.toml"]
    assert bash("tools", "x") == []
    assert bash("mcp", "config", "--client", "c") == ["claude-desktop", "claude-code", "cursor"]
    assert bash("exec", "--mode", "") == ["live", "replay"]
    assert bash("image", "build", "--from", "") == ["host", "debootstrap"]
    assert bash("image", "load", "--engine", "p") == ["podman", "podman,docker"]
    assert bash("journal", "show", "--verdict", "invalid") == ["invalid_input", "invalid_output"]
    assert bash("selftest", "oci/r") == ["oci/runc"]


def test_bash_completes_the_parts_of_verbs_and_what_follows_them(bash, policy):
    assert bash("grant", "") == ["add", "list", "revoke"]
    assert bash("image", "") == ["build", "list", "show", "rm", "load"]
    assert bash("image", "show", "") == bash("grant", "add", "") == []
    assert bash("journal", "import", "pol") == ["policy.toml"]


def test_bash_completes_tools_of_the_policy(bash, policy):
    assert bash("explain", "--policy", policy.name, "") == TOOLS
    assert bash("explain", "-p", policy.name, "w") == ["web_fetch", "write_file"]
    assert bash("explain", "dot", env={"TOOLCAGE_POLICY": str(policy)}) == ["dotted.name"]
    assert bash("explain", "") == []
    assert bash("explain", "--policy", "missing.toml", "") == []


def test_bash_script_is_registered(script, build_dir, clean_env, tmp_path):
    lines = run_shell(["bash", "--norc", "-c", 'source "$0"; complete -p toolcage', script("bash")], build_dir, clean_env,
                      tmp_path)
    assert lines == ["complete -F _toolcage toolcage"]


@pytest.fixture
def zsh(script, build_dir, clean_env, tmp_path):
    """What zsh's completion functions are asked to offer: theirs are replaced by ones that print."""
    path = script("zsh")
    code = r"""
        compdef() { registered=("$@") }
        _describe() { print -l -- ${(P)2} }
        compadd() { print -l -- ${(P)@[-1]} }
        _arguments() { print -l -- "$@" }
        source $0
        [[ $registered == "_toolcage toolcage" ]] || exit 9
        words=(toolcage "$@") CURRENT=$(($# + 1))
        if [[ $TOOLCAGE_ASK == tools ]]; then _toolcage_tools; else _toolcage; fi
    """

    def complete(*words, env=None):
        return run_shell(["zsh", "-f", "-c", code, path, *words], build_dir, clean_env | (env or {}), tmp_path)

    return complete


def test_zsh_script_is_zsh(script, build_dir, clean_env, tmp_path):
    path = script("zsh")
    assert run_shell(["zsh", "-f", "-n", path], build_dir, clean_env, tmp_path) == []
    assert path.read_text().startswith("#compdef toolcage\n")


def test_zsh_completes_verbs(zsh, verbs):
    assert zsh("") == [f"{verb}:{summary}" for verb, summary in verbs.items()]


def test_zsh_completes_options(zsh, options):
    for verb, listed in options.items():
        assert [line.partition("[")[0].removeprefix("--") for line in zsh(verb, "--") if line.startswith("--")] == listed


def test_zsh_completes_values(zsh):
    lint = dict(line.split("[", 1) for line in zsh("lint", "") if line.startswith("--"))
    assert lint["--format"].endswith(":FORMAT:(human json sarif)")
    assert lint["--policy"].endswith(":FILE:_files")
    assert zsh("completion", "")[-1] == "1:argument:(bash zsh fish)"
    assert zsh("explain", "")[-1] == "1:argument:_toolcage_tools"
    assert zsh("help", "")[-1] == "1:argument:_toolcage_verbs"
    assert zsh("dump", "")[-1] == "1:argument:_files"
    assert zsh("selftest", "")[-1].startswith("1:argument:(process jail oci ")
    assert zsh("grant", "")[-2:] == ["1:part:(add list revoke)", "2:argument: "]
    assert zsh("journal", "")[-1] == "2:argument:_files"


def test_zsh_completes_tools_of_the_policy(zsh, policy):
    assert zsh("explain", "--policy", policy.name, "", env={"TOOLCAGE_ASK": "tools"}) == TOOLS
    assert zsh("explain", "", env={"TOOLCAGE_ASK": "tools", "TOOLCAGE_POLICY": str(policy)}) == TOOLS


def test_zsh_itself_completes(script, build_dir, clean_env, tmp_path):
    """With zsh's own machinery on a terminal of its own: `toolcage li<TAB>` becomes `toolcage lint `."""
    script("zsh").rename(tmp_path / "_toolcage")
    code = r"""
        zmodload zsh/zpty || exit 7
        wait_for() {
            repeat 400; do
                zpty -r -t inner piece && all+=$piece || sleep 0.05
                [[ $all == *$1* ]] && return
            done
        }
        zpty -b inner zsh -f -i
        zpty -w inner 'PS1= PS2= RPS1=; fpath=('$0' $fpath)'
        zpty -w inner 'autoload -Uz compinit; compinit -u -D; bindkey "^I" complete-word; print rea""dy'
        wait_for ready
        zpty -w -n inner $'toolcage li\t'
        wait_for 'toolcage lint'
        print -r -- "$all"
        zpty -d inner
    """
    lines = run_shell(["zsh", "-f", "-c", code, tmp_path], build_dir, clean_env | {"TERM": "dumb"}, tmp_path)
    assert "toolcage lint" in "".join(lines)


@pytest.fixture
def fish(script, build_dir, clean_env, tmp_path):
    """What fish offers for a command line."""
    path = script("fish")

    def complete(line, env=None):
        code = 'source $argv[1]; complete -C $argv[2]'
        lines = run_shell(["fish", "--no-config", "-c", code, path, line], build_dir,
                          clean_env | {"XDG_CONFIG_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)} | (env or {}),
                          tmp_path)
        return dict(line.partition("\t")[::2] for line in lines)

    return complete


def test_fish_script_is_fish(script, build_dir, clean_env, tmp_path):
    assert run_shell(["fish", "--no-config", "-n", script("fish")], build_dir, clean_env, tmp_path) == []


def test_fish_completes_verbs(fish, verbs):
    assert fish("toolcage ") == verbs
    assert fish("toolcage li") == {"lint": verbs["lint"]}


def test_fish_completes_options(fish, options):
    for verb, listed in options.items():
        assert sorted(word for word in fish(f"toolcage {verb} --") if word.startswith("--")) == sorted(
            f"--{name}" for name in listed)


def test_fish_completes_values(fish, policy):
    assert set(FORMATS) <= set(fish("toolcage lint --format "))
    assert sorted(fish("toolcage completion ")) == sorted(SHELLS)
    assert "policy.toml" in fish("toolcage dump pol")
    assert "policy.toml" in fish("toolcage dump --policy pol")
    assert fish("toolcage tools x") == {}
    assert "oci/runc" in fish("toolcage selftest ")
    assert sorted(fish("toolcage grant ")) == ["add", "list", "revoke"]
    assert "policy.toml" in fish("toolcage journal import pol")
    assert sorted(fish("toolcage exec --mode ")) == ["live", "replay"]


def test_fish_completes_tools_of_the_policy(fish, policy):
    assert sorted(fish("toolcage explain w", env={"TOOLCAGE_POLICY": str(policy)})) == ["web_fetch", "write_file"]


# ---- manual pages --------------------------------------------------------------------------------


def manual(repo, page):
    path = repo / "man" / page
    if not path.exists():
        pytest.skip(f"man/{page} is not written yet")
    return path


@pytest.mark.parametrize("page", ["toolcage.1", "toolcage.3", "toolcage-policy.5"])
def test_manual_page_is_clean(repo, page):
    need("mandoc")
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", manual(repo, page)], capture_output=True, text=True,
                          timeout=60, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_manual_page_mentions_every_verb_and_option(repo, verbs, options):
    text = manual(repo, "toolcage.1").read_text(encoding="utf-8").replace("\\-", "-")
    for verb in verbs:
        assert re.search(rf"^\.(SS|B|TP|BR|BI) .*\b{verb}\b", text, re.M), verb
    for name in {name for listed in options.values() for name in listed}:
        assert f"--{name}" in text, name
    assert "TOOLCAGE_POLICY" in text


def test_manual_page_mentions_every_key(repo):
    text = manual(repo, "toolcage-policy.5").read_text(encoding="utf-8")
    text = re.sub(r"\\f[BIR]|\\&", " ", text).replace("\\-", "-")
    keys = re.findall(r'^X\(\w+, "(\w+)"', (repo / "src" / "policy" / "keys.def").read_text(), re.M)
    assert len(keys) > 25
    for key in [*keys, "isolation", "expires", "max_calls", "grants", "version"]:
        assert re.search(rf"\b{key}\b", text), key
