# SPDX-License-Identifier: Apache-2.0
"""Tools that a host defines in C: functions of its own, shared objects, commands."""

import json
import os
import shutil
import socket
import subprocess
from pathlib import Path

import native
import pytest
from waiting import eventually, wait_until

POLICY = """
version = 1
[defaults]
filesystem = "none"
timeout = "20s"
[tool.taken]
command = ["true"]
[agent.holder]
grants = [{ tool = "mine", memory = "100MB", filesystem = "none" }]
[agent.stranger]
grants = []
"""
BACKENDS = ("jail", "process")
PROGRAMS = native.BUILD / "tests" / "e2e" / "handlers"


class Place:
    """A host program, a library and a policy where every user can read them."""

    def __init__(self, directory, caller):
        self.caller = caller
        self.host = directory / "handler_host"
        self.library = directory / "handler_library.so"
        self.policy = directory / "policy.toml"
        self.canary = directory / "canary"
        self.environment = {"LD_LIBRARY_PATH": str(directory), "PATH": "/usr/bin:/bin", "ASAN_OPTIONS": "detect_leaks=0"}
        shutil.copy(native.BUILD / "src" / "libtoolcage.so.0", directory)
        shutil.copy(PROGRAMS / "handler_host", self.host)
        shutil.copy(PROGRAMS / "handler_library.so", self.library)
        self.policy.write_text(POLICY)
        self.canary.write_text("alive")
        for path in (directory, self.host, self.library, self.policy, self.canary):
            path.chmod(0o755)

    def run(self, handler, arguments="{}", toml="", options=()):
        """Results and what the host found out about itself."""
        argv = [self.host, *options, self.policy, toml, handler, arguments]
        done = subprocess.run([str(word) for word in argv], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=60 * native.TIME_SCALE, check=False, preexec_fn=self.caller.become, env=self.environment,
                              start_new_session=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def result(self, *arguments, **options):
        """The one result, from a host to which nothing has happened."""
        result, host = self.run(*arguments, **options)
        assert (host["shared"], host["file"], host["pipe"]) == ("before", 0, -1), "the host's memory or a pipe was changed"
        assert host["descriptors"] == 0, "descriptors are left"
        assert not host["library_mapped"], "the library was loaded into the host"
        return result


@pytest.fixture(scope="module", params=["root", "user"])
def place(request, tmp_path_factory):
    if request.param == "root" and not native.IS_ROOT:
        pytest.skip("not root")
    caller = native.caller(request.param)
    directory = tmp_path_factory.mktemp("handlers")
    for parent in (directory, *directory.parents[:-2]):
        parent.chmod(parent.stat().st_mode | 0o055)
    yield Place(directory, caller)
    caller.close()


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """For what does not depend on who calls."""
    caller = native.caller("root" if native.IS_ROOT else "user")
    yield Place(tmp_path_factory.mktemp("handlers"), caller)
    caller.close()


def toml(backend="jail", *lines):
    return "\n".join([f'backend = "{backend}"', *lines])


# ---- functions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_function_gets_its_arguments_and_replies(place, backend):
    result = place.result("echo", '{"b": 1, "a": "\\u00e4"}', toml(backend))
    assert (result["verdict"], result["stdout"]) == ("ok", '{"a":"ä","b":1}')
    assert result["tool"] == "mine"


@pytest.mark.parametrize("backend", BACKENDS)
def test_function_gets_nothing_out_of_its_cage(place, backend):
    with socket.create_server(("127.0.0.1", 0)) as server:
        arguments = json.dumps({"path": str(place.canary), "port": server.getsockname()[1]})
        result = place.result("escape", arguments, toml(backend))
    assert (result["verdict"], result["stdout"]) == ("ok", "done")


def test_function_is_a_child_of_init_like_any_command(place):
    result = place.result("identity")
    assert json.loads(result["stdout"]) == {"pid": 2, "parent": 1, "uid": 1000, "gid": 1000, "session": 2, "seccomp": 2}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("handler", ["touch_shared", "touch_file"])
def test_shared_memory_of_the_host_is_out_of_reach(root, backend, handler):
    result = root.result(handler, "{}", toml(backend))  # which looks at it
    assert result["verdict"] == ("signaled" if handler == "touch_shared" else "ok")


def test_function_sees_a_copy_of_the_hosts_memory(root):
    """Documented, and so nobody is to rely on the opposite."""
    assert root.result("secret")["stdout"] == "the host's secret"


@pytest.mark.parametrize("handler,lines,verdict,detail", [
    ("seven", [], "failed", ("exit_code", 7)),
    ("crash", [], "signaled", ("signal", "SIGSEGV")),
    ("abort", [], "signaled", ("signal", "SIGABRT")),
    ("spin", ['timeout = "300ms"'], "timeout", None),
    ("spin", ['cpu_time = "200ms"'], "cpu", None),
    ("sleep", ['timeout = "300ms"'], "timeout", None),
    ("memory", ['memory = "64MB"'], "memory", None),
    ("flood", ['output = "10KB"'], "output", None),
    ("bomb", ["pids = 8", 'syscalls = "default"'], "pids", None),
    ("orphan", ['syscalls = "default"'], "ok", ("stdout", "left")),
    ("deep", [], "ok", ("stdout", "deep 0")),
])
@pytest.mark.parametrize("backend", BACKENDS)
def test_verdicts_are_those_of_a_command(root, backend, handler, lines, verdict, detail):
    result = root.result(handler, "{}", toml(backend, *lines))
    assert result["verdict"] == verdict, result
    if detail:
        assert result[detail[0]] == detail[1]


def test_function_may_start_programs_of_its_cage(root):
    assert root.result("child")["stdout"] == "from a program\nstatus 5"


def test_function_under_an_exec_allowlist(root):
    result = root.result("child", "{}", 'commands = ["true"]')
    assert (result["verdict"], result["stdout"]) == ("ok", "status 9")


def test_files_of_a_function_are_brought_out(root):
    result = root.result("write_file", "{}", 'outputs = ["/tmp/*.txt"]')
    assert [file["path"] for file in result["files"]] == ["/tmp/made.txt"]


def test_threads_call_while_others_allocate(root):
    """A fork finds the allocator's locks taken; nothing hangs, and nothing is left."""
    (host,) = root.run("echo", '{"a":1}', options=("-t", 8, "-n", 3))
    assert (host["good"], host["bad"], host["descriptors"]) == (24, 0, 0)


@pytest.mark.parametrize("flags,word", [(4, "traced"), (2, "terminal")])
def test_what_a_function_cannot_have_is_refused(root, flags, word):
    result = root.result("echo", "{}", options=("-f", flags))
    assert result["verdict"] == "error"
    assert word in result["reason"]
    assert "shared object" in result["fix"]


def test_function_without_a_control_group_is_refused(tmp_path):
    """Memory would be counted by the address space, and it has all of the host's."""
    if not native.IS_ROOT:
        pytest.skip("our own control groups are not known")
    for parent in (tmp_path, *tmp_path.parents[:-2]):
        parent.chmod(parent.stat().st_mode | 0o055)
    alone = native.caller("user")
    alone.groups.remove()
    alone.groups = None
    result = Place(tmp_path, alone).result("echo", "{}", toml("process"))
    assert result["verdict"] == "error"
    assert "address space" in result["reason"]
    assert "shared object" in result["fix"]


# ---- shared objects -----------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_library_is_loaded_in_the_cage_alone(place, backend):
    result = place.result(f"{place.library}:handler_echo", '{"a":1}', toml(backend))
    assert (result["verdict"], result["stdout"]) == ("ok", '{"a":1}')


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("profile", ["default", "strict", "pure"])
def test_library_under_every_profile(root, backend, profile):
    result = root.result(f"{root.library}:handler_printf", "{}", toml(backend, f'syscalls = "{profile}"'))
    assert (result["verdict"], result["stdout"]) == ("ok", '{"length":2}')


def test_library_under_an_exec_allowlist(root):
    """Our program is not in the list and starts; nothing else does, and it cannot be changed."""
    result = root.result(f"{root.library}:handler_attack", "{}", 'commands = ["true"]')
    assert (result["verdict"], result["stdout"]) == ("ok", "again")


def test_library_with_explained_denials(root):
    result = root.result(f"{root.library}:handler_echo", "{}", options=("-f", 4))
    assert (result["verdict"], result["stdout"], result["denials"]) == ("ok", "{}", [])


@pytest.mark.parametrize("what,verdict,detail", [
    ("crash", "signaled", ("signal", "SIGABRT")),
    ("hang", "timeout", ("signal", "SIGKILL")),
    ("write", "ok", ("stdout", "noise{}")),
    ("fork", "ok", ("stdout", "{}")),
    ("exit", "failed", ("exit_code", 42)),
])
def test_constructor_that_misbehaves(root, what, verdict, detail):
    lines = toml("jail", 'timeout = "500ms"' if what == "hang" else "", f'env = {{ HANDLER_CONSTRUCTOR = "{what}" }}')
    result = root.result(f"{root.library}:handler_echo", "{}", lines)
    assert (result["verdict"], result[detail[0]]) == (verdict, detail[1])


def test_noise_of_a_constructor_breaks_the_contract(root):
    lines = toml("jail", 'env = { HANDLER_CONSTRUCTOR = "write" }', 'returns = { type = "object" }')
    assert root.result(f"{root.library}:handler_echo", "{}", lines)["verdict"] == "invalid_output"


def test_status_of_a_library_handler(root):
    assert root.result(f"{root.library}:handler_status")["exit_code"] == 7


def test_symbol_that_is_not_there(root):
    result = root.result(f"{root.library}:handler_nothing")
    assert (result["verdict"], result["exit_code"]) == ("failed", 126)
    assert "has no such handler: handler_nothing" in result["stderr"]


def test_library_that_is_none(root):
    result = root.result(f"{root.policy}:handler_echo")
    assert (result["verdict"], result["exit_code"]) == ("failed", 126)
    assert "cannot be loaded" in result["stderr"]


def test_library_with_braces_in_its_path(root, tmp_path):
    odd = tmp_path / "{odd} handler_lib.so"
    shutil.copy(root.library, odd)
    assert root.result(f"{odd}:handler_echo", '{"odd":1}')["stdout"] == '{"odd":1}'


@pytest.mark.parametrize("gone", [False, True])
def test_library_that_is_exchanged_between_calls(root, tmp_path, gone):
    """The plan of the first call does not hold on to the old file."""
    library = tmp_path / "handler_new.so"
    shutil.copy(root.library, library)
    host = subprocess.Popen([root.host, "-n", "40", root.policy, "", f"{library}:handler_status", "{}"], text=True,
                            stdout=subprocess.PIPE, env=root.environment)
    first = host.stdout.readline()
    if gone:
        library.unlink()
    else:
        shutil.copy(root.policy, tmp_path / "other")
        os.replace(tmp_path / "other", library)
    last = json.loads(host.communicate(timeout=60 * native.TIME_SCALE)[0].splitlines()[-2])
    assert json.loads(first)["exit_code"] == 7
    assert (last["verdict"], last["exit_code"]) == (("error", None) if gone else ("failed", 126))
    assert not gone or str(library) in last["reason"]


def test_network_of_a_function_goes_through_the_gate(place):
    """The canary of the escapes can be reached when the policy says so: it was no empty test."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        arguments = json.dumps({"path": str(place.canary), "port": port})
        result = place.result("escape", arguments, toml("jail", f'network = ["127.0.0.1:{port}"]'))
    assert (result["verdict"], result["stdout"]) == ("ok", "network done")
    assert [connection["port"] for connection in result["connections"]] == [port]


# ---- definitions --------------------------------------------------------------------------------


@pytest.mark.parametrize("handler,lines,error,words", [
    ("none", "", "usage", "nothing to run"),
    ("echo", 'command = ["true"]', "usage", "only one can run"),
    ("echo", 'backend = "oci"', "unsupported", "cannot run a handler"),
    ("echo", 'timeuot = "1s"', "policy", "timeuot"),
    ("/nowhere/x.so:handler", "", "io", "/nowhere/x.so"),
    ("relative.so:handler", "", "usage", "not absolute"),
    ("LIBRARY:", "", "usage", "symbol is empty"),
    ("LIBRARY:handler_echo", "system = false", "unsupported", "system = false"),
])
def test_definition_that_is_refused(root, handler, lines, error, words):
    (answer,) = root.run(handler.replace("LIBRARY", str(root.library)), "{}", lines)
    assert answer["error"] == error
    assert words in answer["message"]
    assert answer["remedy"] or error == "policy"


@pytest.mark.parametrize("name", ["taken", "mine", "", "no/name"])
def test_name_that_a_tool_cannot_have(root, name):
    (answer,) = root.run("echo", options=("-d", name))
    assert answer["error"] in ("usage", "policy")


def test_several_tools_can_be_defined(root):
    assert root.result("echo", '{"a":1}', options=("-d", "other"))["stdout"] == '{"a":1}'


def test_defined_tool_has_a_contract(root):
    lines = 'parameters = { type = "object", required = ["x"] }'
    assert root.result("echo", "{}", lines)["verdict"] == "invalid_input"
    assert root.result("echo", '{"x":1}', lines + '\nreturns = { type = "array" }')["verdict"] == "invalid_output"


@pytest.mark.parametrize("handler", ["echo", "LIBRARY:handler_echo"])
def test_defined_tool_needs_a_grant(root, handler):
    handler = handler.replace("LIBRARY", str(root.library))
    assert root.result(handler, options=("-a", "holder"))["verdict"] == "ok"
    assert root.result(handler, options=("-a", "stranger"))["verdict"] == "denied"


def test_command_of_a_definition(root):
    assert root.result("none", '{"a":"x y"}', 'command = ["printf", "%s", "{a}"]')["stdout"] == "x y"


def test_argv_runs_under_the_tool_instead_of_its_handler(root):
    assert root.result("echo", "argv")["stdout"] == "command\n"


def test_nothing_is_left_behind(root):
    """Processes and control groups of a host that is killed in a call."""
    before = set(native.processes())
    host = subprocess.Popen([root.host, root.policy, 'syscalls = "default"', "sleep", "{}"], env=root.environment,
                            stdout=subprocess.DEVNULL, preexec_fn=root.caller.become)

    def ours():
        return {pid: parent for pid, (parent, _, command) in native.processes().items()
                if pid not in before and str(root.host) in command}

    def function():
        """Its process: a fork of the host that is not the host's child. What is to become init is, for a moment."""
        return [pid for pid, parent in ours().items() if pid != host.pid and parent != host.pid]

    assert wait_until(function), f"no process of the function; the host: {host.poll()}, {ours()}"
    host.kill()
    host.wait()
    assert not eventually(ours, 30)
    groups = [path for parent in native.own_groups().values() for path in Path(parent).glob(f"toolcage-*-{host.pid}-*")]
    root.result("echo")  # the next one sweeps
    assert not [path for path in groups if path.exists()]


# ---- the example --------------------------------------------------------------------------------


def test_example_runs_as_its_comment_says(root, repo):
    examples = native.BUILD / "examples"
    done = subprocess.run([examples / "handler", examples / "handler_words.so"], capture_output=True, text=True, check=False,
                          timeout=60 * native.TIME_SCALE, preexec_fn=root.caller.become, cwd=repo)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == ['shout: ok: {"TEXT":"HELLO"}', 'words: ok: {"words":3}']
    assert done.stdout.splitlines()[2].startswith("words: invalid_input: ")
