# SPDX-License-Identifier: Apache-2.0
"""`toolcage exec`: streams, options, exit statuses, signals, terminals. What a cage keeps out is tested elsewhere."""

import ctypes
import fcntl
import json
import os
import platform
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import pytest

pytestmark = pytest.mark.native

SYS_RT_SIGACTION = {"x86_64": 13, "aarch64": 134}[platform.machine()]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory that an ordinary cage may see."""
    directory = tmp_path_factory.mktemp("exec")
    directory.chmod(0o755)
    (directory / "hello.txt").write_text("hello\n")
    (directory / "out").mkdir()
    return directory


@pytest.fixture(scope="module")
def run(toolcage, jail, place):  # pylint: disable=unused-argument
    """Runs `toolcage exec` in the directory; skips when this host cannot build a jail."""
    def call(*args, **options):
        return toolcage("exec", *args, **({"cwd": place} | options))

    return call


@pytest.fixture
def spawn(run, build_dir, clean_env, place):
    """Starts `toolcage exec` and leaves it running; ends it afterwards."""
    started = []

    def start(*args, **options):
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        process = subprocess.Popen([build_dir / "src" / "toolcage", "exec", *args], cwd=place, env=clean_env, **options)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()


@pytest.fixture
def policy(tmp_path, place):
    """Writes a policy and returns its path."""

    def write(text):
        path = tmp_path / "policy.toml"
        path.write_text("version = 1\n" + text.replace("PLACE", str(place)))
        return path

    return write


# ---- command line --------------------------------------------------------------------------------


def test_command_begins_at_the_first_word_that_is_no_option(run):
    assert run("echo", "--json", "-p", "x").stdout == "--json -p x\n"
    assert run("--timeout", "20s", "echo", "--", "--help").stdout == "-- --help\n"
    assert run("--", "echo", "a  b", "", "*").stdout == "a  b  *\n"
    assert run("--timeout=20s", "--", "printf", "%s", "-n").stdout == "-n"


@pytest.mark.parametrize("args, message", [
    ((), "a command is missing"),
    (("--",), "a command is missing"),
    (("--nonsense", "true"), "has no option"),
    (("--timeout", "5", "true"), "--timeout cannot be"),
    (("--timeout", "0s", "true"), "--timeout cannot be"),
    (("--memory", "lots", "true"), "--memory cannot be"),
    (("--cpu", "1.2345", "true"), "--cpu cannot be"),
    (("--cpu", "0", "true"), "--cpu cannot be"),
    (("--cpu", ".5", "true"), "--cpu cannot be"),
    (("--pids", "-1", "true"), "--pids cannot be"),
    (("--pids", "9999999999999999999999", "true"), "--pids cannot be"),
    (("--files", "1x", "true"), "--files cannot be"),
    (("--tty", "--json", "true"), "--tty shows what --json would keep"),
    (("--policy", "/no/such/policy.toml", "true"), "cannot open"),
    (("--out", "/no/such/parent/out", "true"), "cannot make the directory"),
])
def test_wrong_invocations_are_refused(run, args, message):
    done = run(*args)
    assert (done.returncode, done.stdout) == (125, "")
    assert message in done.stderr and "remedy: " in done.stderr


def test_limits_take_the_units_of_a_policy(run):
    done = run("--timeout", "20s", "--memory", "100MiB", "--cpu", "0.5", "--cpu-time", "10s", "--pids", "20",
               "--files", "50", "--disk", "1MB", "--output", "1kB", "--", "sh", "-c", "ulimit -n")
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) == 50


# ---- streams -------------------------------------------------------------------------------------


def test_streams_pass_through_unchanged(run):
    done = run("--", "sh", "-c", "echo out; echo err >&2; printf '\\033[1m'")
    assert (done.returncode, done.stdout, done.stderr) == (0, "out\n\033[1m", "err\n")


def test_standard_input_is_passed_on(run):
    assert run("--", "cat", input="one\ntwo").stdout == "one\ntwo"
    big = "x" * 900_000
    assert run("--", "cat", input=big).stdout == big
    assert run("--", "sh", "-c", "cat; echo end").stdout == "end\n"
    assert run("--", "true", input=big).returncode == 0


def test_closed_streams(run, build_dir, clean_env, place):
    toolcage = build_dir / "src" / "toolcage"
    done = subprocess.run(["sh", "-c", '"$0" exec -- cat <&-', toolcage], cwd=place, env=clean_env, timeout=60,
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = subprocess.run(["sh", "-c", '"$0" exec -- echo x >&-', toolcage], cwd=place, env=clean_env, timeout=60,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 125 and "cannot write to standard output" in done.stderr


def test_output_arrives_when_it_is_written(spawn):
    process = spawn("--", "sh", "-c", "echo first; sleep 30")
    assert select.select([process.stdout], [], [], 20)[0]
    assert os.read(process.stdout.fileno(), 100) == b"first\n"
    assert process.poll() is None


def test_input_arrives_when_it_is_written(spawn):
    process = spawn("--", "cat", stdin=subprocess.PIPE)
    for word in (b"one\n", b"two\n"):
        process.stdin.write(word)
        process.stdin.flush()
        assert select.select([process.stdout], [], [], 20)[0]
        assert os.read(process.stdout.fileno(), 100) == word
    process.stdin.close()
    assert process.wait(20) == 0


@pytest.mark.parametrize("size", [70_000, 100_000, 125_000, 900_000])
def test_slow_reader_loses_nothing(spawn, size):
    """The small ones fit into pipes on the way: the command is gone before anybody reads."""
    process = spawn("--", "sh", "-c", f"head -c {size} /dev/zero")
    time.sleep(0.5)
    assert process.poll() is None
    assert len(process.stdout.read()) == size
    assert process.wait(20) == 0


def test_timeout_holds_although_nobody_reads(spawn):
    process = spawn("--timeout", "500ms", "--", "sh", "-c", "head -c 500000 /dev/zero; sleep 600")
    # The reader comes late; by then the command is gone, and what it printed is what the pipes held.
    time.sleep(2)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 124 and b"toolcage: timeout: " in errors
    assert 0 < len(output) <= 500_000


def test_reader_that_goes_away_ends_the_command(spawn, place):
    process = spawn("--", "sh", "-c", "while :; do echo x; done")
    assert process.stdout.read(2) == b"x\n"
    process.stdout.close()
    assert process.wait(20) == 141
    assert process.stderr.read() == b""


# ---- exit statuses and messages ------------------------------------------------------------------


def test_exit_status_is_the_commands_own(run):
    for status in (0, 1, 42, 124, 255):
        done = run("--", "sh", "-c", f"exit {status}")
        assert (done.returncode, done.stdout, done.stderr) == (status, "", "")


@pytest.mark.parametrize("args, status, verdict, fix", [
    (("--timeout", "200ms", "--", "sleep", "60"), 124, "timeout", "timeout"),
    (("--", "no-such-program"), 127, "failed", "program"),
    (("--", "/workspace/hello.txt"), 126, "failed", "executable"),
    (("--", "sh", "-c", "kill -SEGV $$"), 139, "signaled", None),
    (("--memory", "30MB", "--", "python3", "-c", "bytearray(200_000_000)"), 137, "memory", "memory"),
    (("--cpu-time", "200ms", "--", "sh", "-c", "while :; do :; done"), 152, "cpu", "cpu_time"),
    (("--output", "100B", "--", "yes"), 141, "output", "output"),
    (("--timeout", "31s", "--", "true"), 125, "denied", "ask for"),
    (("--tool", "absent", "--", "true"), 125, "denied", "define"),
    (("--agent", "nobody", "--", "true"), 125, "denied", "grants"),
])
def test_each_end_has_its_status_and_message(run, args, status, verdict, fix):
    done = run(*args)
    assert done.returncode == status, done.stderr
    lines = done.stderr.splitlines()
    assert re.match(rf"toolcage: {verdict}: .", lines[0]), done.stderr
    assert len(lines) == (2 if fix else 1)
    assert not fix or (lines[1].startswith("    fix: ") and fix in lines[1])


def test_message_comes_after_the_output(run):
    done = run("--timeout", "500ms", "--", "sh", "-c", "echo last words >&2; sleep 60")
    assert done.stderr.startswith("last words\ntoolcage: timeout: ")


def test_output_limit_is_exact(run):
    done = run("--output", "1000B", "--", "sh", "-c", "yes")
    assert len(done.stdout) == 1000


# ---- policies ------------------------------------------------------------------------------------


def test_without_a_policy_the_present_directory_is_readable(run):
    assert run("--", "cat", "hello.txt").stdout == "hello\n"
    assert run("--", "pwd").stdout == "/workspace\n"
    assert run("--", "touch", "/workspace/x").returncode == 1
    assert run("--", "sh", "-c", "echo x >/tmp/x && cat /tmp/x").stdout == "x\n"
    assert run("--", "true", cwd="/").returncode == 125


def test_policy_comes_from_option_or_environment(run, policy):
    path = policy('[defaults]\nenv = { FROM = "defaults" }\n[tool.t]\nenv = { FROM = "tool" }\n')
    show = ("--", "sh", "-c", "echo $FROM")
    assert run("--policy", path, *show).stdout == "defaults\n"
    assert run("-p", path, "--tool", "t", *show).stdout == "tool\n"
    assert run(*show, env={"TOOLCAGE_POLICY": str(path)}).stdout == "defaults\n"
    assert run(*show, env={"TOOLCAGE_POLICY": ""}).stdout == "\n"
    text = path.read_text()
    assert run("--policy", "-", *show, input=text).stdout == "defaults\n"


def test_every_mistake_of_a_policy_is_reported(run, policy):
    done = run("-p", policy("[tool.t]\nmemory = 5\nnonsense = 1\n"), "--", "true")
    assert done.returncode == 125
    assert len(re.findall(r"error: ", done.stderr)) == 2


def test_agent_has_its_grant_and_nothing_else(run, policy):
    path = policy('[tool.t]\nfilesystem = { readable = [{ host = "PLACE", cage = "/data" }] }\n'
                  '[agent.reader]\ngrants = ["t"]\n'
                  '[agent.blind]\ngrants = [{ tool = "t", filesystem = "none", timeout = "5s" }]\n')
    show = ("--", "cat", "/data/hello.txt")
    assert run("-p", path, "-t", "t", "-a", "reader", *show).stdout == "hello\n"
    assert run("-p", path, "-t", "t", "-a", "blind", *show).returncode == 1
    assert run("-p", path, "-t", "t", "-a", "blind", "--timeout", "6s", *show).returncode == 125
    assert run("-p", path, "-t", "t", "-a", "stranger", *show).returncode == 125
    refused = [run("-p", path, "-t", tool, "-a", "stranger", *show).stderr.replace(f'"{tool}"', "T") for tool in ("t", "u")]
    assert refused[0] == refused[1]


def test_program_that_is_not_listed_is_denied(run, policy):
    path = policy('[defaults]\ncommands = ["cat"]\n')
    assert run("-p", path, "--", "cat", input="x").stdout == "x"
    done = run("-p", path, "--", "ls")
    assert done.returncode == 126 and done.stderr.startswith("toolcage: denied: "), done.stderr
    result = json.loads(run("-p", path, "--json", "--", "ls").stdout)
    assert [(d["kind"], d["target"]) for d in result["denials"]] == [("exec", "ls")]


def test_backend_that_is_not_built_in_is_refused(run, policy):
    done = run("-p", policy('[defaults]\nbackend = "microvm"\n'), "--", "true")
    assert done.returncode == 125
    assert 'toolcage: error: this version has no backend "microvm"' in done.stderr


# ---- results -------------------------------------------------------------------------------------


def test_json_holds_everything_and_exits_with_zero(run):
    done = run("--json", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1
    result = json.loads(done.stdout)
    assert (result["verdict"], result["exit_code"], result["signal"]) == ("failed", 7, None)
    assert (result["stdout"], result["stderr"], result["backend"]) == ("out\n", "err\n", "jail")
    assert run("--json", "--exit-code", "--", "sh", "-c", "exit 7").returncode == 7


def test_json_of_a_refusal(run):
    done = run("--json", "--tool", "absent", "--", "true")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["verdict"] == "denied"
    assert run("--json", "--exit-code", "--tool", "absent", "--", "true").returncode == 125


def test_files_are_saved(run, policy, tmp_path):
    path = policy('[defaults]\noutputs = ["/tmp/*.txt", "/tmp/deep/**"]\n')
    script = "mkdir /tmp/deep && echo a >/tmp/a.txt && echo b >/tmp/b.other && echo c >/tmp/deep/c"
    result = json.loads(run("-p", path, "--json", "--out", tmp_path / "saved", "--", "sh", "-c", script).stdout)
    assert sorted(file["path"] for file in result["files"]) == ["/tmp/a.txt", "/tmp/deep/c"]
    for file in result["files"]:
        assert len(open(file["saved"], "rb").read()) == file["size"] == 2
    listed = json.loads(run("-p", path, "--json", "--", "sh", "-c", script).stdout)["files"]
    assert [file["sha256"] for file in listed] == [file["sha256"] for file in result["files"]]
    assert all(file["saved"] is None for file in listed)


# ---- signals -------------------------------------------------------------------------------------


def tree_of(marker):
    """Processes whose command line holds the marker."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                text = file.read()
        except OSError:
            continue
        if marker.encode() in text and b"toolcage\0exec" not in text:
            found.append(int(pid))
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
@pytest.mark.parametrize("how", [(), ("--json",), ("--tty",)])
def test_signal_ends_the_tree_and_then_us(spawn, number, how):
    marker = f"{os.getpid()}{int(number)}.7"
    process = spawn(*how, "--", "sh", "-c", f"trap '' TERM INT HUP; echo up >&2; (setsid sleep {marker} &); sleep {marker}")
    if how != ("--json",):
        stream = process.stdout if how == ("--tty",) else process.stderr
        assert select.select([stream], [], [], 20)[0]
    deadline = time.monotonic() + 20
    while (seen := len(tree_of(f"sleep\0{marker}"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert seen >= 2
    process.send_signal(number)
    assert process.wait(20) == 128 + number
    assert tree_of(f"sleep\0{marker}") == []


def test_ignored_signals_stay_ignored(spawn):
    process = spawn("--", "sh", "-c", "echo up; sleep 1; echo done",
                    preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    assert process.stdout.read(3) == b"up\n"
    process.send_signal(signal.SIGHUP)
    assert process.stdout.read() == b"done\n"
    assert process.wait(20) == 0


def test_command_starts_with_clean_signals(run):
    done = run("--", "sh", "-c", "grep -E '^Sig(Blk|Ign)' /proc/self/status")
    assert re.findall(r"\t(\w+)", done.stdout) == ["0" * 16, "0" * 16]


def ignore_all_signals():
    """Asks the kernel: libc refuses to touch the two signals that it keeps for itself, 32 and 33."""
    libc = ctypes.CDLL(None)
    ignore = (ctypes.c_ulong * 4)(1)
    for number in range(1, 65):
        libc.syscall(ctypes.c_long(SYS_RT_SIGACTION), ctypes.c_long(number), ignore, None, ctypes.c_long(8))


def test_command_starts_with_clean_signals_where_the_caller_ignores_them(run):
    done = run("--", "grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status", preexec_fn=ignore_all_signals)
    assert re.findall(r"\t(\w+)", done.stdout) == ["0" * 16, "0" * 16], done.stderr


# ---- terminals -----------------------------------------------------------------------------------


class Terminal:
    """A terminal with a user in front of it, on which toolcage runs."""

    def __init__(self, argv, cwd, env):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 31, 117, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.process = subprocess.Popen(argv, cwd=cwd, env=env, stdin=slave, stdout=slave, stderr=slave,
                                        start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.seen = ""

    def type(self, text):
        os.write(self.master, text.encode())

    def wait_for(self, pattern, seconds=20):
        deadline = time.monotonic() + seconds
        while not re.search(pattern, self.seen):
            if not select.select([self.master], [], [], max(0, deadline - time.monotonic()))[0]:
                raise AssertionError(f"{pattern!r} is not in {self.seen!r}")
            try:
                data = os.read(self.master, 4096)
            except OSError:
                data = b""
            if not data:
                raise AssertionError(f"{pattern!r} is not in {self.seen!r}, and that is all")
            self.seen += data.decode()
        return re.search(pattern, self.seen)

    def is_restored(self):
        return termios.tcgetattr(self.slave) == self.before

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.slave)
        os.close(self.master)


@pytest.fixture
def terminal(run, build_dir, clean_env, place):
    opened = []

    def start(*args):
        argv = [build_dir / "src" / "toolcage", "exec", "--tty", *args]
        opened.append(Terminal(argv, place, clean_env | {"TERM": "dumb"}))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def test_terminal_is_the_commands_own(terminal):
    user = terminal("--", "sh", "-c", "test -t 0 && test -t 1 && test -t 2 && stty size; exit 3")
    user.wait_for("31 117\r\n")
    assert user.process.wait(20) == 3
    assert user.is_restored()


def test_keys_reach_the_command(terminal):
    user = terminal("--", "sh", "-c", "trap 'echo interrupted; exit 5' INT; echo ready; read line; echo got:$line; "
                                      "while :; do sleep 0.05; done")
    user.wait_for("ready")
    user.type("some words\r")
    user.wait_for("got:some words")
    user.type("\x03")  # not ours: the command's terminal makes a signal of it
    user.wait_for("interrupted")
    assert user.process.wait(20) == 5
    assert user.is_restored()


def test_end_of_input_key(terminal):
    user = terminal("--", "sh", "-c", "echo ready; cat; echo after")
    user.wait_for("ready")
    user.type("line\r")
    user.type("\x04")
    user.wait_for("after")
    assert user.process.wait(20) == 0


def test_new_size_reaches_the_command(terminal):
    user = terminal("--", "sh", "-c", "trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.05; done")
    user.wait_for("ready")
    fcntl.ioctl(user.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 44, 101, 0, 0))
    user.wait_for("44 101")
    assert user.process.wait(20) == 0


def test_terminal_is_restored_after_a_signal(terminal):
    user = terminal("--", "sh", "-c", "echo ready; sleep 60")
    user.wait_for("ready")
    assert not user.is_restored()
    user.process.send_signal(signal.SIGTERM)
    assert user.process.wait(20) == 143
    assert user.is_restored()


def test_terminal_is_restored_after_a_timeout_and_a_refusal(terminal):
    user = terminal("--timeout", "400ms", "--", "sleep", "60")
    user.wait_for("toolcage: timeout: ")
    assert user.process.wait(20) == 124 and user.is_restored()
    user = terminal("--tool", "absent", "--", "true")
    user.wait_for("toolcage: denied: ")
    assert user.process.wait(20) == 125 and user.is_restored()


def test_terminal_without_a_user(run):
    done = run("--tty", "--", "sh", "-c", "test -t 0 && test -t 1 && echo yes; cat; echo end", input="typed")
    assert done.returncode == 0
    assert "yes\n" in done.stdout and done.stdout.endswith("typedend\n"), done.stdout
    big = run("--tty", "--", "sh", "-c", "stty -echo; head -c 300000 /dev/zero | tr '\\0' x; echo; echo end")
    assert len(big.stdout) == 300_000 + len("\nend\n")


def test_terminal_of_the_user_is_not_handed_in(terminal):
    user = terminal("--", "sh", "-c", "ls -l /proc/self/fd; readlink /proc/self/fd/0; echo done")
    user.wait_for("done")
    name = os.ttyname(user.slave)
    assert name not in user.seen
