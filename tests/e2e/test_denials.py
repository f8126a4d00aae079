# SPDX-License-Identifier: Apache-2.0
"""--explain-denials in real cages: what was refused is named, and nothing else is."""

import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from native import IS_ROOT, TOOLCAGE, caller, processes

pytestmark = pytest.mark.native

PYTHON = "/usr/bin/python3"
LOADER = next((path for path in ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1")
               if Path(path).exists()), None)
CALLERS = ["root", "user"] if IS_ROOT else ["user"]


class Place:
    """A directory of the host, outside of /tmp, that belongs to a caller, and calls by that caller."""

    def __init__(self, who, time_scale):
        self.who, self.time_scale = who, time_scale
        self.base = Path(tempfile.mkdtemp(prefix="toolcage-denials-", dir="/var/tmp"))
        for name in ("docs", "work", "work/secret", "kept-out"):
            (self.base / name).mkdir()
        (self.base / "docs/readme.txt").write_text("read me\n")
        (self.base / "work/secret/key").write_text("key\n")
        (self.base / "kept-out/helper.py").write_text("answer = 42\n")
        (self.base / "kept-out/run.sh").write_text("#!/bin/sh\necho ran\n")
        (self.base / "kept-out/run.sh").chmod(0o755)
        for path in [self.base, *self.base.rglob("*")]:
            os.chown(path, who.uid, who.uid)

    def command(self, policy, *argv, options=("--json",)):
        file = self.base / "policy.toml"
        file.write_text(policy)
        return [*self.who.prefix, TOOLCAGE, "exec", "--policy", file, "--tool", "t", "--explain-denials",
                *options, "--", *map(str, argv)]

    def explain(self, policy, *argv, options=("--json",), **more):
        """The result of a traced call."""
        done = subprocess.run(
            self.command(policy, *argv, options=options), capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
            timeout=60 * self.time_scale, preexec_fn=self.who.become, cwd="/", env={"PATH": os.environ["PATH"]}, **more)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def close(self):
        shutil.rmtree(self.base)
        self.who.close()


@pytest.fixture(scope="module", params=CALLERS)
def place(request, build_dir, must_work, time_scale):
    """Where and as whom cages are started."""
    made = Place(caller(request.param), time_scale)
    try:
        result = made.explain("[tool.t]\n", "true")
        if result["verdict"] != "ok":
            must_work("jail", f"{request.param}: {result['reason']} ({result['fix']})")
        yield made
    finally:
        made.close()


def listed(result):
    """(kind, target) of each denial."""
    return [(denial["kind"], denial["target"]) for denial in result["denials"]]


def rule(result, kind, target):
    """The rule of the denial of this kind and target."""
    found = [denial["rule"] for denial in result["denials"] if (denial["kind"], denial["target"]) == (kind, target)]
    assert len(found) == 1, result["denials"]
    return found[0]


def granting(place, more=""):
    return (f'[tool.t]\nfilesystem = {{ readable = ["{place.base}/docs", "{place.base}/docs:/docs"], '
            f'writable = ["{place.base}/work:/workspace"], hidden = ["/workspace/secret"], cwd = "/workspace" }}\n{more}')


# ---- what is not refused is not listed ----------------------------------------------------------


CLEAN = {
    "true": ["true"],
    "ls": ["ls", "/"],
    "ls-long": ["ls", "-l", "/", "/usr"],
    "python": [PYTHON, "-c", "pass"],
    "python-threads-and-processes": [PYTHON, "-c", "import subprocess, threading; t = threading.Thread(target=print); "
                                     "t.start(); t.join(); subprocess.run(['true'], check=True)"],
    "sh": ["sh", "-c", "true; /bin/true | cat; x=$(echo x)"],
    "bash": ["bash", "-c", "true"],
    "id": ["id"],
    "loopback": [PYTHON, "-c", "import socket; s = socket.create_server(('127.0.0.1', 0)); "
                 "socket.create_connection(s.getsockname())"],
    "scratch": ["sh", "-c", "mkdir -p /tmp/a/b; echo x > /tmp/a/b/c; rm -r /tmp/a; ls /tmp; test ! -e /tmp/a"],
    "absent": ["sh", "-c", "test ! -e /no-such-path && test ! -e /usr/no-such-path"],
}


@pytest.mark.parametrize("name", CLEAN)
def test_ordinary_commands_are_refused_nothing(place, name):
    for policy in ("[tool.t]\n", granting(place)):
        result = place.explain(policy, *CLEAN[name])
        assert result["verdict"] == "ok", result
        assert result["denials"] == []


@pytest.mark.parametrize("name", ["true", "python"])
def test_ordinary_commands_are_refused_nothing_by_the_process_backend(place, name):
    result = place.explain('[tool.t]\nbackend = "process"\n', *CLEAN[name])
    if result["verdict"] == "error":
        pytest.skip(result["reason"])
    assert result["verdict"] == "ok", result
    assert result["denials"] == []


def test_a_traced_command_does_what_it_does_untraced(place):
    result = place.explain(granting(place), "sh", "-c", "echo out; echo err >&2; cat /docs/readme.txt; kill -TERM $$")
    assert (result["verdict"], result["signal"], result["denials"]) == ("signaled", "SIGTERM", [])
    assert (result["stdout"], result["stderr"]) == ("out\nread me\n", "err\n")
    assert result["reason"] == "the command died of SIGTERM (Terminated)"


# ---- paths --------------------------------------------------------------------------------------


def test_reading_a_path_that_is_not_granted_is_named_with_the_fix(place):
    result = place.explain("[tool.t]\n", "cat", "/etc/shadow")
    assert listed(result) == [("read", "/etc/shadow")]
    assert rule(result, "read", "/etc/shadow") == 'filesystem: not granted; add "/etc/shadow" to "readable"'
    assert result["verdict"] == "failed"
    assert result["reason"] == "the command ended with exit status 1; it was refused: read /etc/shadow"
    assert result["fix"] == 'filesystem: not granted; add "/etc/shadow" to "readable"'


def test_following_the_fix_helps(place):
    path = place.base / "kept-out/helper.py"
    before = place.explain("[tool.t]\n", "cat", path)
    assert f'add "{path}" to "readable"' in rule(before, "read", str(path))
    after = place.explain(f'[tool.t]\nfilesystem = {{ readable = ["{path}"] }}\n', "cat", path)
    assert (after["verdict"], after["denials"]) == ("ok", [])


def test_paths_relative_to_directories_are_resolved(place):
    script = ("import os\n"
              "for f in (lambda: open('../etc/shadow'), lambda: os.stat('shadow', dir_fd=os.open('/etc', os.O_PATH)),\n"
              "          lambda: (os.chdir('/etc'), open('group-'))):\n"
              "    try: f()\n"
              "    except OSError as e: print(e.errno)\n")
    if not Path("/etc/group-").exists():
        pytest.skip("this host has no /etc/group-")
    result = place.explain("[tool.t]\n", PYTHON, "-c", script)
    assert listed(result) == [("read", "/etc/shadow"), ("read", "/etc/group-")]


def test_a_link_in_the_middle_is_not_guessed_about(place):
    result = place.explain(granting(place), "sh", "-c", "ln -s /usr/lib l; cat l/../../etc/shadow; rm l")
    assert result["denials"] == []


def test_writing_to_what_is_only_readable(place):
    result = place.explain(granting(place), "touch", "/docs/new")
    assert rule(result, "write", "/docs/new") == 'filesystem: only readable; move "/docs" from "readable" to "writable"'
    result = place.explain(granting(place), "rm", "-f", "/docs/readme.txt")
    assert listed(result) == [("write", "/docs/readme.txt")]
    result = place.explain(granting(place), "mv", "/docs/readme.txt", "/workspace/")
    assert ("write", "/docs/readme.txt") in listed(result)
    result = place.explain(granting(place), "mkdir", "/usr/new")
    assert rule(result, "write", "/usr/new").startswith('system: "/usr" is only readable')


def test_making_a_file_where_nothing_is_granted(place):
    result = place.explain("[tool.t]\n", "mkdir", "/new")
    assert rule(result, "write", "/new").startswith("filesystem: not granted; make files below a path")
    result = place.explain("[tool.t]\n", "touch", f"{place.base}/kept-out/new")
    assert rule(result, "write", f"{place.base}/kept-out/new").endswith(f'add "{place.base}/kept-out" to "writable"')


def test_a_hidden_path_is_said_to_be_hidden(place):
    result = place.explain(granting(place), "cat", "secret/key")
    assert rule(result, "read", "/workspace/secret/key") == \
        'filesystem: hidden; remove "/workspace/secret" from "hidden"'


def test_a_path_of_the_host_with_another_name_in_the_cage(place):
    result = place.explain(granting(place), "ls", place.base / "work")
    assert rule(result, "read", f"{place.base}/work") == \
        'filesystem: this path of the host is "/workspace" in the cage'


def test_the_cages_own_tmp_is_not_the_hosts(place):
    with tempfile.NamedTemporaryFile(dir="/tmp") as file:
        result = place.explain("[tool.t]\n", "cat", file.name)
        assert rule(result, "read", file.name).startswith("filesystem: /tmp is the cage's own, not the host's")
        assert place.explain("[tool.t]\n", "rm", "-f", file.name)["denials"] == []


def test_a_module_that_is_not_granted(place):
    script = f"import sys; sys.path.insert(0, '{place.base}/kept-out'); import helper"
    result = place.explain("[tool.t]\n", PYTHON, "-c", script)
    assert "No module named 'helper'" in result["stderr"]
    assert listed(result)[0] == ("read", f"{place.base}/kept-out")  # then Python looks at its parents


def test_what_the_policy_grants_and_the_file_refuses_is_told_apart(place):
    file = place.base / "docs/closed"
    file.write_text("x")
    if IS_ROOT:
        os.chown(file, 0 if place.who.uid else 21001, 0)
    file.chmod(0)
    try:
        result = place.explain(granting(place), "cat", "/docs/closed")
        assert rule(result, "read", "/docs/closed").startswith("permissions: the policy grants it")
    finally:
        file.unlink()


# ---- programs -----------------------------------------------------------------------------------


def test_a_program_that_is_not_listed(place):
    policy = '[tool.t]\ncommands = ["sh", "true"]\n'
    result = place.explain(policy, "sh", "-c", "true; cat /etc/passwd")
    assert rule(result, "exec", "/usr/bin/cat") == 'commands: the program is not listed; add "cat" to "commands"'
    assert {kind for kind, _ in listed(result)} == {"exec"}
    result = place.explain(policy, "cat", "/etc/passwd")
    assert result["verdict"] == "denied"
    assert ("exec", "/usr/bin/cat") in listed(result)
    assert place.explain(policy, "sh", "-c", "true")["denials"] == []


@pytest.mark.skipif(not LOADER, reason="this host's loader is somewhere else")
def test_a_program_that_the_loader_may_not_map(place):
    result = place.explain('[tool.t]\ncommands = ["sh"]\n', "sh", "-c", f"{LOADER} /usr/bin/cat /etc/passwd")
    assert result["exit_code"] == 127
    assert rule(result, "exec", "/usr/bin/cat").startswith("commands: the program is not listed")


def test_a_program_that_is_not_granted(place):
    path = f"{place.base}/kept-out/run.sh"
    result = place.explain("[tool.t]\n", path)
    assert result["exit_code"] == 127
    assert rule(result, "exec", path).endswith(f'add "{path}" to "readable"')


# ---- network ------------------------------------------------------------------------------------


def test_an_address_elsewhere_is_refused_without_network(place):
    for host, shown in (("192.0.2.7", "AF_INET 192.0.2.7:443"), ("2001:db8::7", "AF_INET6 [2001:db8::7]:443")):
        result = place.explain("[tool.t]\n", PYTHON, "-c", f"import socket; socket.create_connection(('{host}', 443))")
        assert listed(result) == [("network", shown)]
        assert rule(result, "network", shown) == f'network: "none"; set network = ["{shown.split()[1]}"]'
    result = place.explain("[tool.t]\n", PYTHON, "-c", "import socket; socket.socket(type=socket.SOCK_DGRAM)"
                           ".sendto(b'x', ('192.0.2.7', 9))")
    assert listed(result) == [("network", "AF_INET 192.0.2.7:9")]


def test_the_cages_own_loopback_refuses_nothing(place):
    """A service of the host is not there, which is no denial: nobody listens in the cage."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        result = place.explain("[tool.t]\n", PYTHON, "-c",
                               f"import socket; socket.create_connection(('127.0.0.1', {port}))")
    assert "Connection refused" in result["stderr"]
    assert result["denials"] == []


def test_the_name_that_was_looked_up_is_known(place):
    result = place.explain("[tool.t]\n", PYTHON, "-c", "import socket; socket.create_connection(('api.example', 443))")
    assert listed(result) == [("network", "api.example")]
    assert 'set network = ["api.example:PORT"]' in rule(result, "network", "api.example")


def test_sockets_of_other_families(place):
    result = place.explain("[tool.t]\n", PYTHON, "-c", "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)")
    assert listed(result) == [("network", "AF_PACKET (raw)")]


def test_a_socket_of_the_host(place):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{place.base}/service")
        server.listen()
        result = place.explain("[tool.t]\n", PYTHON, "-c", "import socket; "
                               f"socket.socket(socket.AF_UNIX).connect('{place.base}/service')")
        os.unlink(f"{place.base}/service")
    assert listed(result) == [("write", f"{place.base}/service")]
    result = place.explain(granting(place), PYTHON, "-c", "import socket; socket.socket(socket.AF_UNIX)")
    assert rule(result, "network", "AF_UNIX").startswith("filesystem: sockets of the host could lie")


# ---- calls and limits ---------------------------------------------------------------------------


def call(*arguments):
    return [PYTHON, "-c", "import ctypes, os; libc = ctypes.CDLL(None, use_errno=True)\n"
            f"libc.syscall({', '.join(map(str, arguments))}) == -1 and os._exit(ctypes.get_errno())"]


def test_calls_that_the_filter_refuses(place):
    mount, unshare = (165, 272) if platform.machine() == "x86_64" else (40, 97)
    result = place.explain("[tool.t]\n", *call(mount, 0, "b'/tmp'", 0, 4096, 0))
    assert result["exit_code"] == 1
    assert listed(result) == [("syscall", "mount")]
    assert rule(result, "syscall", "mount").startswith(
        'syscalls: profile "default" does not have it; "mount" may never be allowed: ')
    result = place.explain("[tool.t]\n", *call(unshare, 0x10000000))
    assert listed(result) == [("syscall", "unshare")]
    assert result["reason"].endswith("it was refused: syscall unshare")


def test_a_call_that_a_policy_can_allow(place):
    policy = '[tool.t]\nsyscalls = { profile = "default", deny = ["getpriority"] }\n'
    result = place.explain(policy, PYTHON, "-c", "import os; os.getpriority(os.PRIO_PROCESS, 0)")
    assert rule(result, "syscall", "getpriority") == 'syscalls: remove "getpriority" from "deny"'


@pytest.mark.skipif(platform.machine() != "x86_64", reason="x32 is of x86_64")
def test_a_call_that_ends_the_process(place):
    result = place.explain("[tool.t]\n", *call(0x40000000 | 39))
    assert (result["verdict"], result["signal"]) == ("signaled", "SIGSYS")
    assert rule(result, "syscall", f"number {0x40000000 | 39}").startswith("syscalls: a call of another architecture")


def test_too_many_processes(place):
    result = place.explain("[tool.t]\npids = 4\n", "sh", "-c", "for i in 1 2 3 4 5 6 7 8; do sleep 1 & done; wait")
    assert [kind for kind, _ in listed(result)] == ["pids"]
    assert result["denials"][0]["rule"] == 'pids: 4 at a time; raise "pids"'


def test_too_many_open_files(place):
    result = place.explain("[tool.t]\nfiles = 16\n", PYTHON, "-c", "x = [open('/dev/null') for _ in range(20)]")
    assert listed(result) == [("files", "openat")]


def test_full_scratch(place):
    result = place.explain('[tool.t]\nfilesystem = { scratch = "1MB" }\n',
                           PYTHON, "-c", "open('/tmp/big', 'wb').write(bytes(2000000))")
    assert rule(result, "disk", "/tmp/big") == 'filesystem: 1000000 bytes of scratch are full; raise "scratch"'


# ---- hostile and unlucky cages ------------------------------------------------------------------


def test_the_list_ends(place):
    result = place.explain("[tool.t]\n", PYTHON, "-c", "import os\n"
                           "for i in range(100):\n    try: os.mkdir(f'/usr/{i}')\n    except OSError: pass")
    assert len(result["denials"]) == 65
    assert listed(result)[63:] == [("write", "/usr/63"), ("more", "")]
    assert "36 attempts more" in result["denials"][64]["rule"]


def test_names_are_shown_and_not_obeyed(place):
    name = b'/usr/\xff\x1b[31m\n" to "writable", and "\xe2\x80\xae'
    result = place.explain("[tool.t]\n", PYTHON, "-c", f"open({name!r}, 'w')")
    shown = '/usr/\\xff\\x1b[31m\\x0a\\x22 to \\x22writable\\x22, and \\x22\\xe2\\x80\\xae'
    assert listed(result) == [("write", shown)]


def test_paths_that_cannot_be_read_are_no_harm(place):
    """An address that is not mapped, one that ends at the end of memory, a path without end."""
    script = ("import ctypes, mmap\nlibc = ctypes.CDLL(None)\n"
              "libc.open.argtypes = [ctypes.c_void_p, ctypes.c_int]\n"
              "m = mmap.mmap(-1, 8192)\nat = ctypes.addressof(ctypes.c_char.from_buffer(m))\n"
              "libc.mprotect(ctypes.c_void_p(at + 4096), 4096, 0)\n"
              "m[4085:4096] = b'/etc/shadow'\n"
              "for a in (0, 1, -1, at + 4085): print(libc.open(a, 0))\n"
              "m[4084:4096] = b'/etc/shadow\\0'\n"
              "print(libc.open(at + 4084, 0))\n"
              "print(libc.open(ctypes.cast(ctypes.create_string_buffer(b'/' + b'a' * 9000), ctypes.c_void_p), 0))\n")
    result = place.explain("[tool.t]\n", PYTHON, "-c", script)
    assert result["stdout"].split() == ["-1"] * 6
    assert listed(result) == [("read", "/etc/shadow")]


def test_many_threads_and_execve_from_one_of_them(place):
    script = ("import os, threading, time\n"
              "def look(i):\n"
              "    for j in range(10):\n"
              "        try: open('/etc/shadow')\n"
              "        except OSError: pass\n"
              "    time.sleep(5)\n"
              "threads = [threading.Thread(target=look, args=(i,), daemon=True) for i in range(20)]\n"
              "[t.start() for t in threads]\n"
              "threading.Thread(target=lambda: os.execv('/bin/sh', ['sh', '-c', 'cat /etc/gshadow; echo done'])).start()\n"
              "time.sleep(30)\n")
    result = place.explain("[tool.t]\n", PYTHON, "-c", script)
    assert result["stdout"] == "done\n"
    assert ("read", "/etc/gshadow") in listed(result)
    assert set(listed(result)) <= {("read", "/etc/shadow"), ("read", "/etc/gshadow")}


def test_stopped_processes_stay_stopped_until_they_are_continued(place):
    script = ("sleep 0.2 & p=$!\nkill -STOP $p\nsleep 0.6\ntest -d /proc/$p && echo stopped\n"
              "kill -CONT $p\nwait $p; echo $?\n")
    result = place.explain("[tool.t]\n", "sh", "-c", script)
    assert result["stdout"] == "stopped\n0\n"
    script = "set -m; (sleep 1; echo end) & kill -TSTP %1; sleep 0.5; jobs; fg %1 >/dev/null"
    result = place.explain("[tool.t]\n", "bash", "-c", script)
    assert result["stdout"].startswith("[1]+  Stopped") and result["stdout"].endswith("end\n")


def test_what_the_command_leaves_behind_is_ended(place):
    start = time.monotonic()
    result = place.explain("[tool.t]\n", "sh", "-c", "setsid sleep 600 & sleep 600 & kill -STOP $!; exit 3")
    assert result["exit_code"] == 3
    assert time.monotonic() - start < 20 * place.time_scale


def test_a_timeout_ends_a_traced_tree(place):
    result = place.explain("[tool.t]\n", "sh", "-c", "cat /etc/shadow; sleep 600 & kill -STOP $!; while true; do :; done",
                           options=("--json", "--timeout", "3s"))
    assert result["verdict"] == "timeout"
    assert listed(result) == [("read", "/etc/shadow")]
    assert "refused" not in result["reason"]


def test_a_cage_that_cannot_be_built_says_why(place):
    for _ in range(3):
        result = place.explain('[tool.t]\nfilesystem = { cwd = "/usr/not-there" }\n', "true")
        assert result["verdict"] == "error"
        assert "going to the working directory" in result["reason"]


def test_a_setuid_program_is_no_harm(place):
    if not shutil.which("su"):
        pytest.skip("this host has no su")
    assert place.explain("[tool.t]\n", "su", "-c", "true")["verdict"] == "failed"


def test_files_are_brought_back_from_a_traced_cage(place):
    result = place.explain('[tool.t]\noutputs = ["/tmp/*.txt"]\n',
                           "sh", "-c", "echo x > a.txt; cat /etc/shadow; true")
    assert [file["path"] for file in result["files"]] == ["/tmp/a.txt"]
    assert listed(result) == [("read", "/etc/shadow")]


def test_the_process_backend_explains_too(place):
    result = place.explain('[tool.t]\nbackend = "process"\n', "cat", "/etc/shadow")
    if result["verdict"] == "error":
        pytest.skip(result["reason"])
    assert listed(result) == [("read", "/etc/shadow")]
    result = place.explain('[tool.t]\nbackend = "process"\n', PYTHON, "-c", "import socket; socket.socket()")
    assert rule(result, "network", "AF_INET").startswith('network: "none", and backend "process" has no sockets')


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_when_toolcage_is_ended(place, sent):
    marker = f"86{os.getpid()}{int(sent)}"  # seconds that nobody else sleeps
    for delay in (0, 0.005, 0.02, 0.1, 0.4):
        running = subprocess.Popen(
            place.command("[tool.t]\n", "sh", "-c", f"sleep {marker} & while true; do cat /etc/shadow; done"),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, preexec_fn=place.who.become)
        time.sleep(delay * place.time_scale)
        running.send_signal(sent)
        running.wait(timeout=20 * place.time_scale)
        until = time.monotonic() + 30 * place.time_scale
        while any(marker in command and not command.startswith(str(TOOLCAGE)) for _, _, command in processes().values()):
            assert time.monotonic() < until, "the cage lives on"
            time.sleep(0.02)
