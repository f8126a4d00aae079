# SPDX-License-Identifier: Apache-2.0
"""Attacks on the policy engine and the front end, one small test each.

Each test is an attempt of a hostile policy, a hostile model or a hostile environment; what it asserts is what
a person may rely on. `lint` here means `lint --strict --no-host`: clean is exit status 0.
"""

import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest

STRING_X = '{ type = "object", properties = { x = { type = "string" } } }'


@pytest.fixture
def policy(tmp_path):
    """Writes a policy: policy('[tool.t]...') adds the version and an agent that may call every tool."""

    def write(body, name="policy.toml", whole=False):
        if not whole:
            tools = re.findall(r"^\[tool\.([\w-]+)\]", body, re.M)
            grants = ", ".join(f'"{tool}"' for tool in tools)
            body = f"version = 1\n{body}\n[agent.a]\ngrants = [{grants}]\n"
        path = tmp_path / name
        path.write_text(body, encoding="utf-8")
        return path

    return write


@pytest.fixture
def lint(toolcage, policy):
    def run(body, **options):
        return toolcage("lint", "--strict", "--no-host", policy(body, **options))

    return run


@pytest.fixture
def ask(toolcage):
    """The answer of explain: True or False."""

    def run(path, tool, *question):
        result = toolcage("explain", tool, "--policy", path, *question)
        assert result.returncode in (0, 1), result.stderr
        return result.returncode == 0

    return run


def command_tool(command):
    return f"[tool.t]\ncommand = {json.dumps(command)}\nparameters = {STRING_X}\n"


# ---- code execution ---------------------------------------------------------------------------------


def test_bash_completion_does_not_run_a_tools_description(build_dir, toolcage, policy, tmp_path):
    """compgen -W expands its words: a description that looks like a tool's name was a command."""
    mark = tmp_path / "ran"
    path = policy(f'[tool.t]\ndescription = "Fetch a page.\\n$(touch${{IFS}}{mark})"\n')
    script = tmp_path / "completion.bash"
    script.write_text(toolcage("completion", "bash").stdout)
    subprocess.run(
        ["bash", "-c", f"""compopt() {{ :; }}
         source {script}
         COMP_WORDS=(toolcage explain --policy {path} "") COMP_CWORD=4
         _toolcage"""],
        env=os.environ | {"PATH": f"{build_dir / 'src'}:{os.environ['PATH']}"}, capture_output=True, check=False)
    assert not mark.exists()


def test_bash_completion_still_offers_tools(build_dir, toolcage, policy, tmp_path):
    path = policy('[tool.web_fetch]\ndescription = "one\\ntwo"\n')
    script = tmp_path / "completion.bash"
    script.write_text(toolcage("completion", "bash").stdout)
    result = subprocess.run(
        ["bash", "-c", f"""compopt() {{ :; }}
         source {script}
         COMP_WORDS=(toolcage explain --policy {path} "") COMP_CWORD=4
         _toolcage; printf '%s\\n' "${{COMPREPLY[@]}}" """],
        env=os.environ | {"PATH": f"{build_dir / 'src'}:{os.environ['PATH']}"}, capture_output=True, text=True,
        check=False)
    assert result.stdout.split("\n")[:-1] == ["web_fetch"]


def test_lint_of_a_jail_policy_runs_no_container_engine(toolcage, policy, tmp_path):
    """Linting somebody's file for the jail must not start docker, podman or runsc."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    name = f"\0toolcage-attack-{os.getpid()}"
    listener.bind(name)
    listener.settimeout(0.2)
    planted = tmp_path / "bin"
    planted.mkdir()
    for program in ("runsc", "docker", "podman", "firecracker"):
        (planted / program).write_text(
            "#!/usr/bin/python3\nimport socket\n"
            f"socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'{program}', {name!r})\n")
        (planted / program).chmod(0o755)
    toolcage("lint", policy('[tool.t]\nbackend = "jail"\n'), env={"PATH": f"{planted}:{os.environ['PATH']}"})
    with pytest.raises(TimeoutError):
        listener.recv(100)


# ---- what a person reads ----------------------------------------------------------------------------

DECEPTIVE = {
    "esc": "\x1b", "delete": "\x7f", "c1-csi": "\x9b", "c1-osc": "\x9d", "right-to-left": "\u202e",
    "isolate": "\u2067", "zero-width": "\u200b", "tag": "\U000e0041", "hangul-filler": "\u3164",
    "choseong-filler": "\u115f", "variation": "\ufe0e", "variation-17": "\U000e0100", "mongolian": "\u180e",
    "joiner": "\u034f", "braille-blank": "\u2800",
}


@pytest.mark.parametrize("verb", [
    ("dump",), ("tools", "--policy"), ("tools", "--json", "--policy"), ("explain", "--policy"),
    ("explain", "--json", "--policy"), ("lint", "--no-host"), ("lint", "--no-host", "--json"),
    ("lint", "--no-host", "--format=sarif")], ids=" ".join)
@pytest.mark.parametrize("where", ["description", "path", "schema", "schema-key", "env"])
def test_no_deceptive_character_is_printed(toolcage, policy, verb, where):
    """Neither control sequences nor marks that hide or reorder text reach the reader, in any format."""
    text = "".join(f"\\U{ord(c):08X}x" for name, c in DECEPTIVE.items()
                   if where != "path" or name not in ("esc", "delete"))
    body = {
        "description": f'[tool.t]\ndescription = "{text}"\n',
        "path": f'[tool.t]\nfilesystem = {{ readable = ["/srv/{text}"] }}\n',
        "schema": f'[tool.t]\ncommand = ["ls", "--", "{{a}}"]\nparameters = {{ title = "{text}" }}\n',
        "schema-key": f'[tool.t]\ncommand = ["ls", "--", "{{a}}"]\n'
                      f'parameters = {{ properties = {{ "{text}" = {{}} }} }}\n',
        "env": f'[tool.t]\nenv = {{ A = "{text}" }}\n',
    }[where]
    result = toolcage(*verb, policy(body))
    seen = [name for name, c in DECEPTIVE.items() if c in result.stdout + result.stderr]
    assert seen == []


def test_schema_without_delete_is_dumped_without_raw_control_sequences(toolcage, policy):
    """The literal-string form of a schema copied C1 controls to the terminal as they were."""
    result = toolcage("dump", policy('[tool.t]\nparameters = { title = "\\u009B31mred" }\n'))
    assert result.returncode == 0
    assert "\x9b" not in result.stdout


def test_description_cannot_forge_lines_of_tools(toolcage, policy):
    path = policy('[tool.t]\ndescription = "Harmless\\n    backend jail; network none; files none\\n'
                  '    may be called by:    no agent"\nnetwork = "host"\nallow_host_network = true\n')
    lines = toolcage("tools", "--policy", path).stdout.splitlines()
    assert sum("backend " in line and "; network " in line and line.startswith("    backend") for line in lines) == 1
    assert "    may be called by:    no agent" not in lines


def test_parameter_name_cannot_forge_lines_of_lint(toolcage, policy):
    path = policy('[tool.t]\ncommand = ["ls", "--", "{x}"]\n[tool.t.parameters.properties]\nx = {}\n'
                  '"a\\npolicy.toml: 0 errors, 0 warnings, 0 notes" = {}\n')
    lines = toolcage("lint", "--no-host", path).stdout.splitlines()
    assert [line for line in lines if line.startswith("policy.toml: 0 errors")] == []


def test_file_name_cannot_forge_lines_of_lint(toolcage, policy):
    path = policy("[tool.t]\n", name="x\nforged: 0 errors, 0 warnings, 0 notes.toml")
    assert "\nforged" not in toolcage("lint", "--no-host", path).stdout


def test_tools_shows_where_a_path_comes_from(toolcage, policy):
    """/etc/shadow:/data is not a grant of /data."""
    path = policy('[tool.t]\nfilesystem = { readable = ["/etc/shadow:/data"] }\n')
    assert "/etc/shadow" in toolcage("tools", "--policy", path).stdout


def test_error_about_a_schema_file_does_not_quote_it(toolcage, policy, tmp_path):
    """A policy that names a secret as its schema must not get the secret into a log."""
    secret = tmp_path / "token"
    secret.write_text("hunter2\n")
    result = toolcage("lint", "--no-host", policy(f'[tool.t]\nparameters = "{secret}"\n'))
    assert "hunter" not in result.stdout + result.stderr


def test_schema_file_outside_the_policys_directory_is_reported(toolcage, policy, tmp_path):
    """~/.docker/config.json as a schema is handed to the model as the tool's definition."""
    home = tmp_path / "home" / ".docker"
    home.mkdir(parents=True)
    (home / "config.json").write_text('{"auths":{"x":{"auth":"c2VjcmV0"}}}')
    project = tmp_path / "project"
    project.mkdir()
    path = policy('[tool.t]\nparameters = "../home/.docker/config.json"\n', name="project/policy.toml")
    assert toolcage("lint", "--strict", "--no-host", path).returncode != 0


# ---- decisions --------------------------------------------------------------------------------------


def test_hidden_path_is_not_reachable_through_proc(policy, ask):
    path = policy('[tool.t]\nfilesystem = { readable = ["/data"], hidden = ["/data/secret"] }\n')
    for root in ("/proc/self/root", "/proc/1/root", "/proc/thread-self/root", "/proc/self/task/1/root"):
        assert not ask(path, "t", "--read", f"{root}/data/secret/key"), root


def test_ungranted_path_is_not_reachable_through_proc(policy, ask):
    path = policy('[tool.t]\nfilesystem = "none"\n')
    for link in ("/proc/self/root/home/u/x", "/proc/self/cwd/x", "/proc/1/cwd/x", "/proc/self/fd/3",
                 "/proc/self/map_files/1-2", "/dev/fd/3/x"):
        assert not ask(path, "t", "--read", link), link


def test_hidden_directory_hides_the_built_in_paths_below_it(policy, ask):
    path = policy('[tool.t]\nfilesystem = { hidden = ["/etc"] }\n')
    assert not ask(path, "t", "--read", "/etc/passwd")


def test_expired_grant_reaches_nothing(policy, ask):
    path = policy("""version = 1
[tool.t]
network = ["a.example.com:443"]
filesystem = { readable = ["/data"] }
[agent.a]
grants = [{ tool = "t", expires = "2020-01-01" }]
""", whole=True)
    assert not ask(path, "t", "--agent", "a", "--call")
    assert not ask(path, "t", "--agent", "a", "--reach", "a.example.com:443")
    assert not ask(path, "t", "--agent", "a", "--read", "/data/x")


def test_grant_can_take_the_scratch_away(policy, ask):
    path = policy("""version = 1
[tool.t]
[agent.a]
grants = [{ tool = "t", filesystem = { scratch = "0B" } }]
""", whole=True)
    assert not ask(path, "t", "--agent", "a", "--write", "/tmp/x")


@pytest.mark.parametrize("grant", ['readable = ["/etc:/data"]', 'readable = ["/root/.ssh"]', 'writable = ["/data"]'])
def test_grant_with_other_paths_than_its_tool_is_reported(lint, grant):
    """A grant only takes away: another source, another path or another right has no effect."""
    result = lint(f"""version = 1
[tool.t]
filesystem = {{ readable = ["/data"] }}
[agent.a]
grants = [{{ tool = "t", filesystem = {{ {grant} }} }}]
""", whole=True)
    assert result.returncode != 0


@pytest.mark.parametrize("host", ["localhost", "app.localhost", "LOCALHOST."])
def test_public_does_not_include_names_that_are_this_host(policy, ask, host):
    path = policy('[tool.t]\nnetwork = "public"\n')
    assert not ask(path, "t", "--reach", f"{host}:80")


@pytest.mark.parametrize("host", [
    "127.0.0.1", "127.1", "0", "0x7f000001", "2130706433", "017700000001", "127.0.0.1.", "0x7f.1", "[::1]", "[::]",
    "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::7f00:1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]",
    "[2001:0:7f00:1::]", "[::ffff:0:7f00:1]", "[fe80::1%25lo]", "１２７.0.0.1", "[fd00:ec2::254]", "169.254.169.254",
    "100.100.100.200", "168.63.129.16", "192.0.0.192", "[fec0::1]", "[64:ff9b:1::a00:1]"])
def test_public_includes_no_spelling_of_a_local_address(policy, ask, host):
    path = policy('[tool.t]\nnetwork = "public"\n')
    assert not ask(path, "t", "--reach", f"{host}:80")


@pytest.mark.parametrize("host", ["10.0.0.1", "[::ffff:10.0.0.1]", "[::ffff:a00:1]", "[64:ff9b::a00:1]",
                                  "[2002:a00:1::]", "010.0.0.1", "10.1"])
def test_deny_beats_every_spelling_of_an_address(policy, ask, host):
    path = policy('[tool.t]\nnetwork = ["0.0.0.0/0:80", "[::/0]:80", "deny:10.0.0.0/8:*"]\n')
    assert not ask(path, "t", "--reach", f"{host}:80")


@pytest.mark.parametrize("host", ["example.com", "badexample.com", "example.com.evil.net", ".example.com",
                                  "a..example.com", "a.example.com\u3002evil.net", "a.example.com@evil.net"])
def test_wildcard_covers_sub_names_only(policy, ask, host):
    path = policy('[tool.t]\nnetwork = ["*.example.com:443"]\n')
    assert not ask(path, "t", "--reach", f"{host}:443")


@pytest.mark.parametrize("target", ["/workspace2/x", "/workspace/../etc/x", "/workspaces", "//workspace/x",
                                    "workspace/x", "/workspace/\x01", "/workspace/a/../../x", "/Workspace/x"])
def test_path_outside_a_grant_by_spelling(policy, ask, target):
    path = policy('[tool.t]\nfilesystem = { writable = ["/workspace"] }\n')
    assert not ask(path, "t", "--write", target)


def test_unknown_and_ungranted_tools_get_one_answer(toolcage, policy):
    path = policy("version = 1\n[tool.real]\n[tool.other]\n[agent.a]\ngrants = [\"other\"]\n", whole=True)
    answers = {toolcage("explain", tool, "--policy", path, "--agent", "a", "--call").stdout.replace(tool, "X")
               for tool in ("real", "fake")}
    assert len(answers) == 1


def test_cwd_in_a_hidden_path_is_refused(toolcage, policy):
    path = policy('[tool.t]\nfilesystem = { readable = ["/w"], hidden = ["/w/x"], cwd = "/w/x/y" }\n')
    assert toolcage("dump", path).returncode != 0


# ---- dump -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("date", ['"9999-12-31T23:59:59-23:59"', "9999-12-31T23:59:60-12:00",
                                  '"0001-01-01T00:00:00+23:59"', "0000-01-01", "0000-02-29T00:00:00Z",
                                  '"2026-12-31T23:59:60Z"'])
def test_dates_at_the_edge_are_refused_or_dumped_as_they_are(toolcage, policy, date):
    """Year 10000 was written as year 0000: the dump did not load, and explain showed a date long gone."""
    path = policy(f'version = 1\n[tool.t]\n[agent.a]\ngrants = [{{ tool = "t", expires = {date} }}]\n', whole=True)
    first = toolcage("dump", path)
    if first.returncode == 0:
        again = toolcage("dump", policy(first.stdout, name="again.toml", whole=True))
        assert again.stdout == first.stdout, again.stderr


# ---- lint: order of tools ---------------------------------------------------------------------------


def test_harmless_first_tool_does_not_hide_a_writable_system_path(lint):
    """[defaults] is looked at once, with the first tool's capabilities."""
    assert lint('[defaults]\nallowed_paths = ["/etc/cron.d"]\n[tool.a]\ncapabilities = ["fs_read"]\n'
                '[tool.b]\ncapabilities = ["fs_write"]\n').returncode != 0


def test_jail_as_first_tool_does_not_hide_container_mounts(lint):
    result = lint('[defaults]\ncontainer = { cap_add = ["SYS_ADMIN"], user = "root", mounts = '
                  '["/root/.ssh:/x:rw", "/var/run/docker.sock:/d:rw"] }\n'
                  '[tool.a]\nbackend = "jail"\n[tool.b]\nbackend = "oci"\n')
    assert "TC-L101" in result.stdout and "TC-L171" in result.stdout


def test_confirmed_host_network_of_one_tool_does_not_confirm_anothers(lint):
    assert "TC-L120" in lint('[defaults]\nnetwork = "host"\n[tool.a]\nallow_host_network = true\n[tool.b]\n').stdout


def test_tool_that_covers_a_secret_does_not_hide_it_for_the_next(lint):
    """The first tool's mount lies over the private keys; the second has none."""
    result = lint('[defaults]\nfilesystem = { readable = ["/etc/ssl"] }\n[tool.a]\nbackend = "oci"\n'
                  'container = { mounts = ["/empty:/etc/ssl/private"] }\n[tool.b]\n')
    assert "TC-L101" in result.stdout


def test_read_only_root_of_one_tool_does_not_hide_a_writable_one(lint):
    result = lint('[defaults]\nbackend = "oci"\nrootfs = "/home/u"\n[tool.a]\n[tool.b]\n'
                  'container = { read_only_rootfs = false }\n')
    assert "TC-L102" in result.stdout


# ---- lint: paths ------------------------------------------------------------------------------------


@pytest.mark.parametrize("root", ["/", "/home/u", "/root/.ssh", "/etc", "~/.ssh", "${HOME}"])
def test_rootfs_is_a_grant_like_any_other(lint, root):
    assert lint(f'[tool.t]\nrootfs = "{root}"\n').returncode != 0


def test_writable_rootfs_of_the_host_is_an_error(toolcage, policy):
    path = policy('[tool.t]\nbackend = "oci"\nrootfs = "/"\ncontainer = { read_only_rootfs = false }\n')
    assert "TC-L102" in toolcage("lint", "--no-host", path).stdout


@pytest.mark.parametrize("where", [
    "/home/u/.config", "/home/u/.local/share", "/home/u/.local", "/home/u/.cargo", "/etc/shadow-", "/etc/sudoers.d",
    "/etc/kubernetes", "/etc/krb5.keytab", "/etc/letsencrypt", "/var/lib/kubelet", "/var/lib/containerd",
    "/etc/NetworkManager/system-connections", "/home/u/.envrc", "/home/u/p/id_ecdsa", "/home/u/p/server.pem",
    "/home/u/.zsh_history", "/home/u/.config/op", "/home/u/.claude.json"])
def test_secret_by_another_name_is_reported(lint, where):
    assert lint(f'[tool.t]\nfilesystem = {{ readable = ["{where}"] }}\n').returncode != 0


@pytest.mark.parametrize("where", [
    "/home/u/.config", "/home/u/.bashrc", "/home/u/.profile", "/home/u/.local/bin", "/home/u/.config/autostart",
    "/home/u/p/.git/hooks", "/home/u/p/.git", "/opt", "/var/home/u", "/Users/u", "/srv/home/u/.zshrc"])
def test_writing_what_the_host_will_run_is_reported(lint, where):
    assert lint(f'[tool.t]\nfilesystem = {{ writable = ["{where}"] }}\n').returncode != 0


@pytest.mark.parametrize("where", [
    "/run/dbus/system_bus_socket", "/run/snapd.socket", "/run/libvirt/libvirt-sock", "/run/buildkit/buildkitd.sock",
    "/var/lib/lxd/unix.socket", "/run/incus/unix.socket", "/run/user/1000/bus", "/run/crio/crio.sock"])
def test_socket_of_a_service_of_the_host_is_reported(lint, where):
    assert lint(f'[tool.t]\nfilesystem = {{ writable = ["{where}"] }}\n').returncode != 0


def test_one_host_directory_with_two_rights_is_reported(lint):
    """DESIGN, section 4: a path both readable and writable; here under two names."""
    assert lint('[tool.t]\nfilesystem = { readable = ["/data"], writable = ["/data:/rw"] }\n').returncode != 0


@pytest.mark.parametrize("second", ["/data:/mirror", "/data/secret:/s", "/srv:/srv2"])
def test_hidden_path_that_shows_through_another_mapping_is_reported(lint, second):
    base = "/srv/data" if second.startswith("/srv") else "/data"
    assert lint(f'[tool.t]\nfilesystem = {{ readable = ["{base}", "{second}"], hidden = ["{base}/secret"] }}\n'
                ).returncode != 0


def test_link_to_a_secret_is_reported_when_the_host_is_looked_at(toolcage, policy, tmp_path):
    (tmp_path / "data").symlink_to("/etc")
    (tmp_path / "file").symlink_to("/etc/shadow")
    path = policy('[tool.t]\nfilesystem = { readable = ["data", "file"] }\n')
    assert toolcage("lint", path).stdout.count("TC-L101") >= 2


def test_hidden_and_deny_of_the_defaults_that_a_tool_drops_are_reported(lint):
    assert lint('[defaults]\nfilesystem = { readable = ["/srv/app"], hidden = ["/srv/app/keys"] }\n'
                'network = ["*.example.com:443", "deny:admin.example.com:443"]\n[tool.t]\n'
                'filesystem = { readable = ["/srv/app"] }\nnetwork = ["*.example.com:443"]\n').returncode != 0


def test_program_that_the_tool_can_rewrite_is_reported(lint):
    assert lint('[tool.t]\ncommand = ["/work/bin/run"]\ncommands = ["/work/bin/git"]\n'
                'filesystem = { writable = ["/work"] }\n').returncode != 0


# ---- lint: code -------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [
    ["bash"], ["sh", "-s"], ["python3", "-"], ["python3"], ["node", "-"], ["env", "bash"],
    ["sh", "-c", "eval \"$(cat)\""], ["bash", "/dev/stdin"], ["xargs", "-0", "sh", "-c"]], ids=" ".join)
def test_json_on_stdin_of_an_interpreter_is_reported(lint, command):
    """Without a placeholder the arguments are stdin, and {"a":"$(id)"} is a program for a shell."""
    assert lint(f"[tool.t]\ncommand = {json.dumps(command)}\n").returncode != 0


@pytest.mark.parametrize("command", [
    ["env", "-S", "sh -c ls\\_{x}"], ["sudo", "-u", "bob", "sh", "-c", "ls {x}"],
    ["env", "-u", "FOO", "sh", "-c", "ls {x}"], ["env", "-C", "/w", "bash", "-c", "ls {x}"],
    ["chroot", "/j", "sh", "-c", "ls {x}"], ["timeout", "-s", "KILL", "5", "sh", "-c", "ls {x}"],
    ["stdbuf", "-o", "L", "sh", "-c", "ls {x}"], ["xargs", "-I", "%", "sh", "-c", "ls {x}"],
    ["nice", "-n", "+5", "sh", "-c", "ls {x}"], ["flock", "/l", "sh", "-c", "ls {x}"],
    ["setpriv", "--reuid=1", "sh", "-c", "ls {x}"], ["nsenter", "-a", "sh", "-c", "ls {x}"],
    ["strace", "-f", "sh", "-c", "ls {x}"], ["script", "-qc", "ls {x}"], ["watch", "ls {x}"],
    ["/lib64/ld-linux-x86-64.so.2", "/bin/sh", "-c", "ls {x}"], ["rbash", "-c", "ls {x}"],
    ["python3", "-Ic", "print({x})"], ["python3.11-dbg", "-c", "print({x})"], ["perl", "-ne", "print if /{x}/"],
    ["ruby", "-ne", "print if /{x}/"], ["awk", "-F", ",", "/{x}/"], ["sed", "-n", "-e", "p", "-e", "/{x}/p"],
    ["sed", "--expression=/{x}/p"], ["julia", "-e", "f({x})"], ["vim", "-c", "g/{x}/d"],
    ["pwsh", "-command", "ls {x}"], ["php", "-R", "echo {x};"], ["node", "--import=data:text/javascript,{x}"],
    ["sh", "-c", "eval \"$1\"", "sh", "--", "{x}"], ["sh", "-c", "$1", "--", "{x}"], ["ssh", "--", "host", "ls {x}"],
    ["git", "-c", "core.pager={x}", "log"], ["tar", "--to-command={x}", "-xf", "a.tar"],
    ["find", "--", "{x...}"], ["bash", "--", "{x}"], ["python3", "--", "{x}"]], ids=" ".join)
def test_text_that_becomes_code_is_reported(lint, command):
    assert lint(command_tool(command)).returncode != 0


@pytest.mark.parametrize("code", [
    'sh -c "$1"', "ls; $1", 'cd /w && bash -c "$1"', 'set -e; "$@"', 'echo "$1" | sh', "x=$1; $x", 'eval\t"$1"',
    '. "$1"', 'python3 -c "$1"', "find . $1", "timeout 5 $1", 'env "$@"', 'trap "$1" EXIT', "[[ $1 -eq 1 ]]"])
def test_shell_code_that_runs_its_arguments_is_reported(lint, code):
    """Arguments behind the code of a shell are data only if the code keeps them so: "$1" as an operand."""
    assert lint(command_tool(["bash", "-c", code, "_", "{x}"])).returncode != 0


@pytest.mark.parametrize("name", ["PATH", "PYTHONPATH", "PERL5LIB", "NODE_PATH", "RUBYLIB", "PYTHONINSPECT",
                                  "GIT_EXTERNAL_DIFF", "GIT_CONFIG_GLOBAL", "PAGER", "PS4", "PERL5DB", "LUA_INIT"])
def test_variable_that_chooses_code_is_reported(lint, name):
    assert lint(f'[tool.t]\nenv = {{ {name} = "/work/x" }}\n').returncode != 0


@pytest.mark.parametrize("value", ["AKIAIOSFODNN7EXAMPLE", "ghp_0123456789abcdef0123456789abcdef0123",
                                   "-----BEGIN OPENSSH PRIVATE KEY-----", "postgres://u:secret@db/x"])
def test_secret_as_the_value_of_a_variable_is_reported(lint, value):
    assert lint(f'[tool.t]\nenv = {{ X = "{value}" }}\n').returncode != 0


@pytest.mark.parametrize("name", ["DATABASE_URL", "MYSQL_PWD", "OPENAI_KEY", "GH_PAT", "DOCKER_AUTH_CONFIG",
                                  "KRB5CCNAME", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "XAUTHORITY"])
def test_secret_that_is_passed_on_is_reported(lint, name):
    assert lint(f'[tool.t]\nenv_pass = ["{name}"]\n').returncode != 0


# ---- lint: network, system calls, containers, limits -----------------------------------------------


@pytest.mark.parametrize("rules", [
    ["a.example.com:1-65534"], ["a.example.com:2-65535"], ["a.example.com:1-40000", "a.example.com:40001-65535"],
    ["app.localhost:80"], ["ip6-localhost:80"], ["localhost.localdomain:80"], ["host.docker.internal:2375"],
    ["kubernetes.default.svc:443"], ["metadata:80"], ["instance-data:80"], ["*.google.internal:80"],
    ["printer.local:80"], ["*.us-east-1.amazonaws.com:443"], ["*.s3.us-east-1.amazonaws.com:443"], ["*.on.aws:443"],
    ["*.r2.dev:443"], ["*.blogspot.com:443"], ["*.co.nz:443"], ["0.0.0.0/1:443", "128.0.0.0/1:443"],
    ["[2000::/3]:443"], ["[64:ff9b::/96]:443"], ["[2002::/16]:443"],
    [f"8.{i}.0.0/16:443" for i in range(64)]], ids=lambda rules: rules[0])
def test_wide_or_inner_destination_is_reported(lint, rules):
    assert lint(f"[tool.t]\nnetwork = {json.dumps(rules)}\n").returncode != 0


@pytest.mark.parametrize("call", ["mount", "ptrace", "bpf", "kexec_load", "init_module", "setns", "unshare",
                                  "open_by_handle_at", "io_uring_setup", "pivot_root"])
def test_dangerous_system_call_is_reported(lint, call):
    assert lint(f'[tool.t]\nsyscalls = {{ allow = ["{call}"] }}\n').returncode != 0


@pytest.mark.parametrize("user", ["0", "root", "0:0", "00", "00:0", "000:1000", "4294967296"])
def test_root_by_another_spelling_is_reported(lint, user):
    assert lint(f'[tool.t]\nbackend = "oci"\ncontainer = {{ user = "{user}" }}\n').returncode != 0


def test_unlimited_outputs_are_reported(lint):
    assert lint('[tool.t]\noutputs = { globs = ["/tmp/*"], max_file = "unlimited", max_files = "unlimited" }\n'
                ).returncode != 0


# ---- time and memory -------------------------------------------------------------------------------


def measured(build_dir, *args, seconds=10):
    """Runs the command; the processor time it took, at most `seconds`, and the most memory it had, in MB."""
    with subprocess.Popen([build_dir / "src" / "toolcage", *map(str, args)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (seconds, seconds))
        timer = threading.Timer(30 * seconds, process.kill)
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def test_one_schema_file_named_by_many_tools(build_dir, policy, tmp_path):
    """36 kB of policy and 1 MB of JSON took minutes and gigabytes."""
    (tmp_path / "s.json").write_text('{"a":[' + ",".join(['{"b":1}'] * 130000) + "]}")
    path = policy("version = 1\n" + "".join(f'[tool.t{i}]\nparameters = "s.json"\n' for i in range(1200)), whole=True)
    status, took, memory = measured(build_dir, "lint", "--no-host", path)
    assert status >= 0 and took < 9 and memory < 1000, (status, took, memory)


def test_many_tools_and_one_agent_with_all_of_them(build_dir, policy):
    names = [f"{i:x}" for i in range(10000)]
    path = policy("version = 1\n" + "".join(f"[tool.{name}]\n" for name in names) + "[agent.a]\ngrants = ["
                  + ",".join(f'"{name}"' for name in reversed(names)) + "]\n", whole=True)
    status, took, _ = measured(build_dir, "tools", "--policy", path)
    assert status == 0, (status, took)


def test_many_agents_and_many_tools(build_dir, policy):
    path = policy("version = 1\n" + "".join(f"[agent.{i:x}]\n" for i in range(80000))
                  + "".join(f"[tool.{i:x}]\n" for i in range(80000)), whole=True)
    status, took, _ = measured(build_dir, "explain", "--policy", path)
    assert status >= 0, (status, took)


def test_long_default_lists_with_mounts_and_many_tools(build_dir, policy):
    def paths(letter):
        return ", ".join(f'"/{letter}/{i}"' for i in range(1000))

    path = policy(f'version = 1\n[defaults]\nbackend = "oci"\nfilesystem = {{ readable = [{paths("a")}], writable = '
                  f'[{paths("b")}] }}\ncontainer = {{ mounts = [{paths("c")}] }}\n'
                  + "".join(f"[tool.{i:x}]\n" for i in range(10000)), whole=True)
    status, took, memory = measured(build_dir, "lint", "--no-host", path)
    assert status >= 0 and memory < 1000, (status, took, memory)


def test_long_default_paths_with_capabilities_and_many_tools(build_dir, policy):
    paths = ", ".join(f'"/a/{i}"' for i in range(1000))
    path = policy(f'version = 1\n[defaults]\ncapabilities = ["fs_read"]\nallowed_paths = [{paths}]\n'
                  + "".join(f"[tool.{i:x}]\n" for i in range(40000)), whole=True)
    status, took, memory = measured(build_dir, "lint", "--no-host", path)
    assert status >= 0 and memory < 1000, (status, took, memory)


# ---- files -----------------------------------------------------------------------------------------


def test_odd_files_are_refused_at_once(toolcage, tmp_path):
    fifo, sparse = tmp_path / "fifo.toml", tmp_path / "sparse.toml"
    os.mkfifo(fifo)
    sparse.touch()
    os.truncate(sparse, 1 << 40)
    for path in (fifo, sparse, "/dev/zero", tmp_path, "/proc/self/environ"):
        assert toolcage("lint", "--no-host", path, timeout=30).returncode == 125


def test_odd_schema_files_are_refused_at_once(toolcage, policy, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    for path in ("fifo", "/dev/zero", ".", "/dev/tty"):
        assert toolcage("lint", "--no-host", policy(f'[tool.t]\nparameters = "{path}"\n'), timeout=30).returncode == 125


# ---- YAML: what two readers take for two things ----------------------------------------------------


@pytest.mark.parametrize("scalar", ["1:30", "190:20:30", "0b101", "1_000", "1e3", "-0x1F", "0_7", "4:5.6", "=",
                                    "2001-12-14 21:59:43.10 -5"])
def test_scalar_that_yaml_1_1_reads_otherwise_is_refused(toolcage, policy, scalar):
    """yaml_scalar.c: a spelling that YAML 1.1 and 1.2 read as different values is refused, not guessed."""
    path = policy(f"version: 1\ntool:\n  t:\n    parameters:\n      title: {scalar}\n", name="p.yaml", whole=True)
    assert toolcage("dump", path).returncode != 0


# ---- doctor ----------------------------------------------------------------------------------------


@pytest.fixture
def plant(tmp_path):
    """Plants a program in a directory of PATH; returns the environment."""

    def write(name, script):
        directory = tmp_path / "planted"
        directory.mkdir(exist_ok=True)
        (directory / name).write_text(f"#!/bin/sh\n{script}\n")
        (directory / name).chmod(0o755)
        return {"PATH": f"{directory}:{os.environ['PATH']}"}

    return write


def alive(argument):
    result = subprocess.run(["ps", "-eo", "pid=,args="], capture_output=True, text=True, check=True)
    return [line for line in result.stdout.splitlines() if argument in line and "ps -eo" not in line]


@pytest.mark.parametrize("how", ["setsid sleep {n} >/dev/null 2>&1 &", "setsid sleep {n} &"])
def test_doctor_leaves_no_process_of_a_program_that_it_ran(toolcage, plant, how):
    seconds = f"{30 + os.getpid() % 1000 / 1000 + len(how) / 100000:.5f}"
    environment = plant("runc", how.format(n=seconds) + "\necho runc version 1")
    toolcage("doctor", env=environment)
    left = alive(f"sleep {seconds}")
    for line in left:
        os.kill(int(line.split()[0]), signal.SIGKILL)
    assert left == []


def test_doctor_is_not_held_up_by_a_program(toolcage, plant):
    plant("podman", "yes AAAAAAAAAAAAAAAA")
    plant("crun", "exec 1>&-; sleep 600")
    environment = plant("runsc", "printf '\\033[31mrunsc\\033]0;x\\007\\n'; kill -9 $PPID")
    result = toolcage("doctor", env=environment)
    assert result.returncode == 0
    assert "\x1b" not in result.stdout


def test_doctor_does_not_run_what_a_relative_path_holds(toolcage, plant, tmp_path):
    plant("runc", f"touch {tmp_path}/ran; echo runc 1")
    result = toolcage("doctor", env={"PATH": "planted::./planted:/usr/bin"}, cwd=tmp_path)
    assert "planted/runc" not in result.stdout and not (tmp_path / "ran").exists()


def groups_left():
    return [f"{directory}/{name}" for directory, names, _ in os.walk("/sys/fs/cgroup") for name in names
            if name.startswith("toolcage-probe-")]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_doctor_that_is_killed_leaves_nothing(build_dir, number):
    for i in range(20):
        with subprocess.Popen([build_dir / "src" / "toolcage", "doctor"], stdout=subprocess.DEVNULL) as process:
            time.sleep(i * 0.01)
            process.send_signal(number)
    end = time.monotonic() + 30
    while (left := groups_left()) and time.monotonic() < end:
        time.sleep(0.1)
    assert left == []


def test_doctor_does_not_say_no_for_want_of_descriptors(build_dir):
    """What could not be tried is unknown, not absent."""
    def states(limit):
        result = subprocess.run(
            [build_dir / "src" / "toolcage", "doctor", "--json"], capture_output=True, check=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
        return {name: feature["state"] for name, feature in json.loads(result.stdout)["features"].items()}

    many, few = states(1024), states(12)
    assert [name for name in many if many[name] == "yes" and few[name] == "no"] == []
    assert [name for name in many if many[name] != "yes" and few[name] == "yes"] == []


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
@pytest.mark.parametrize("call", [
    'tc_policy_load("/nonexistent", &p, NULL)', 'tc_policy_load("bad.toml", &p, NULL)'])
def test_library_takes_null_for_an_error_that_nobody_wants(build_dir, repo, tmp_path, call):
    """Most functions do; the one for files dereferenced it."""
    (tmp_path / "bad.toml").write_text("=")
    (tmp_path / "t.c").write_text(f"#include <toolcage/toolcage.h>\nint main(void) {{ struct tc_policy *p = 0;"
                                  f" return {call} < 0 ? 0 : 1; }}\n")
    built = subprocess.run(["cc", "t.c", f"-I{repo / 'include'}", "-o", "t", f"-L{build_dir / 'src'}", "-ltoolcage",
                            f"-Wl,-rpath,{build_dir / 'src'}"], cwd=tmp_path, capture_output=True, text=True, check=False)
    if built.returncode:
        pytest.skip("the build under test does not link into a plain program")
    assert subprocess.run(["./t"], cwd=tmp_path, check=False).returncode == 0


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_library_denies_an_access_that_it_does_not_know(build_dir, repo, tmp_path, policy):
    path = policy('[tool.t]\nfilesystem = { readable = ["/data"] }\n')
    (tmp_path / "t.c").write_text(f"""#include <toolcage/toolcage.h>
int main(void) {{ struct tc_policy *p = 0; struct tc_error e = {{ 0 }}; struct tc_decision d;
if (tc_policy_load("{path}", &p, &e) < 0) return 2;
tc_decide_path(p, 0, "t", "/data/x", (enum tc_access)77, &d);
tc_policy_free(p);
return d.allowed; }}
""")
    built = subprocess.run(["cc", "t.c", f"-I{repo / 'include'}", "-o", "t", f"-L{build_dir / 'src'}", "-ltoolcage",
                            f"-Wl,-rpath,{build_dir / 'src'}"], cwd=tmp_path, capture_output=True, text=True, check=False)
    if built.returncode:
        pytest.skip("the build under test does not link into a plain program")
    assert subprocess.run(["./t"], cwd=tmp_path, check=False).returncode == 0
