# SPDX-License-Identifier: Apache-2.0
"""Attacks on running cages that need a partner on the host, an earlier call or a host program of their own.

The table of tests/e2e/test_escape.py holds what one program can try by itself. Here each test is one attempt of a
hostile command, of a hostile earlier call, or of an ordinary event on the host that must not open a cage; what it
asserts is what a person may rely on.
"""

import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import time

import pytest

import native
from waiting import wait_until

pytestmark = pytest.mark.native

PYTHON = "/usr/bin/python3"
LOADERS = ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1")


# ---- how to run one ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def jail(jail):  # pylint: disable=unused-argument
    """Jails can be built here, and there is a Python of the system to attack with."""
    if not os.path.exists(PYTHON):
        pytest.skip(f"there is no {PYTHON}")


@pytest.fixture
def base(tmp_path):
    """A directory of the host with something in it that no policy grants."""
    (tmp_path / "granted").mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("not for cages\n")
    (tmp_path / "secret" / "key").chmod(0o644)
    return tmp_path


@pytest.fixture
def policy(base):
    """policy('[tool.t]...'): a policy file; {base} in it is the directory."""

    def write(body, name="policy.toml"):
        path = base / name
        path.write_text("version = 1\n" + body.replace("{base}", str(base)), encoding="utf-8")
        return path

    return write


@pytest.fixture
def run(toolcage, jail):
    """run(policy, tool, argv...): the result as an object."""

    def call(path, tool, *argv, options=(), **more):
        done = toolcage("exec", "--policy", path, "--tool", tool, "--json", *options, "--", *argv, **more)
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    return call


@pytest.fixture
def background(build_dir, clean_env, jail):
    """Starts a call and leaves it running: background(policy, tool, argv...) returns a Popen with text in it."""
    started = []

    def start(path, tool, *argv):
        process = subprocess.Popen(
            [build_dir / "src" / "toolcage", "exec", "--policy", path, "--tool", tool, "--", *argv], env=clean_env,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def size_on_disk(directory):
    return sum(path.lstat().st_blocks * 512 for path in directory.rglob("*"))


# ---- sockets of the host ----------------------------------------------------------------------------

CONNECT = """
import socket, sys
try:
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.connect(sys.argv[1])
    print("ESCAPED")
except OSError as e:
    print("held:", e)
"""
SEND = """
import socket, sys
try:
    s, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.sendto(b"hello", sys.argv[1])
    print("ESCAPED")
except OSError as e:
    print("held:", e)
"""


@pytest.fixture
def listener(base):
    """Sockets of the host in the granted directory."""
    stream, datagram = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    # A name that fits into an address, whatever the directory is called.
    handle = os.open(base / "granted", os.O_PATH)
    for one, name in ((stream, "stream"), (datagram, "datagram")):
        one.bind(f"/proc/self/fd/{handle}/{name}")
        (base / "granted" / name).chmod(0o777)
    os.close(handle)
    stream.listen(8)
    yield base / "granted"
    stream.close()
    datagram.close()


@pytest.mark.parametrize("code,name", [(CONNECT, "stream"), (SEND, "datagram")], ids=["connect", "pair"])
@pytest.mark.parametrize("settings", ["", 'syscalls = "strict"', 'network = "host"\nallow_host_network = true'],
                         ids=["default", "strict", "host network"])
def test_socket_in_a_readable_directory_cannot_be_reached(run, policy, listener, code, name, settings):
    path = policy(f'[tool.t]\nfilesystem = {{ readable = ["{listener}:/g"] }}\n{settings}\n')
    result = run(path, "t", PYTHON, "-c", code, f"/g/{name}")
    assert "ESCAPED" not in result["stdout"], result


def test_process_with_host_network_reaches_no_socket_with_a_path(run, policy, base, listener):
    """Landlock does not rule whom a socket connects to: docker.sock would be the whole host."""
    path = policy('[tool.t]\nbackend = "process"\nnetwork = "host"\nallow_host_network = true\nsyscalls = "default"\n')
    handle = os.open(listener, os.O_PATH)
    short = f"/proc/{os.getpid()}/fd/{handle}/stream"
    target = str(listener / "stream") if len(str(listener / "stream")) < 100 else short
    result = run(path, "t", PYTHON, "-c", CONNECT, target)
    os.close(handle)
    assert "ESCAPED" not in result["stdout"], result


def test_socket_in_a_root_cannot_be_reached(run, policy, base, listener):
    root = base / "granted"
    busybox = shutil.which("busybox")
    if not busybox or not shutil.which("cc"):
        pytest.skip("there is no busybox or no compiler")
    for name in ("bin", "dev", "proc", "tmp"):
        (root / name).mkdir()
    source = base / "knock.c"
    source.write_text("""#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
int main(void) { struct sockaddr_un a = { .sun_family = AF_UNIX, .sun_path = "/stream" };
int s = socket(AF_UNIX, SOCK_STREAM, 0); return s < 0 || connect(s, (void *)&a, sizeof a) < 0 ? 3 : 0; }
""")
    built = subprocess.run(["cc", "-static", "-o", root / "bin" / "knock", source], capture_output=True, check=False)
    if built.returncode != 0:
        pytest.skip("static programs cannot be built here")
    result = run(policy('[tool.t]\nrootfs = "{base}/granted"\nsystem = false\n'), "t", "/bin/knock")
    assert result["exit_code"] == 3, result


def test_fifo_in_a_readable_directory_cannot_be_written(run, policy, base):
    """A read-only mount does not stop that."""
    os.mkfifo(base / "granted" / "fifo")
    (base / "granted" / "fifo").chmod(0o666)
    reader = os.open(base / "granted" / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    run(policy('[tool.t]\nfilesystem = { readable = ["{base}/granted:/g"] }\n'), "t", "sh", "-c", "echo hello > /g/fifo")
    try:
        assert os.read(reader, 100) == b""
    finally:
        os.close(reader)


# ---- disk -------------------------------------------------------------------------------------------

DISK = """[tool.t]
filesystem = { writable = ["{base}/granted:/work"], cwd = "/work" }
disk = "4MB"
timeout = "20s"
"""
ALLOCATE = """
import os
for i in range(20):
    try:
        os.posix_fallocate(os.open(f"f{i}", os.O_CREAT | os.O_WRONLY), 0, 4000000)
    except OSError as e:
        print(e)
"""
RESERVE = """
import fcntl, os, struct
fd = os.open("f", os.O_CREAT | os.O_RDWR)
for request in (0x40305828, 0x4030582a):
    try:
        fcntl.ioctl(fd, request, struct.pack("hhiqqiI4I", 0, 0, 0, 0, 80000000, 0, 0, 0, 0, 0, 0))
    except OSError as e:
        print(e)
"""
ATTRIBUTES = """
import os
for i in range(15000):
    try:
        open(f"f{i}", "w").close()
        os.setxattr(f"f{i}", "user.a", bytes(3900))
    except OSError as e:
        print(e)
        break
"""
THREAD = """
import os, threading, time
def work():
    if os.fork() == 0:
        for i in range(25):
            with open(f"f{i}", "wb") as f:
                f.write(bytes(3900000))
            time.sleep(0.02)
        os._exit(0)
    os.wait()
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


@pytest.mark.parametrize("code", [
    ALLOCATE, RESERVE,
    pytest.param(ATTRIBUTES, marks=pytest.mark.xfail(strict=True, reason="a known limit, stated in docs/cages.md")),
    THREAD], ids=["fallocate", "ioctl", "attributes", "child of a thread"])
def test_disk_limit_is_kept(run, policy, base, code):
    """However space is taken, and by whom: not many times the limit."""
    result = run(policy(DISK), "t", PYTHON, "-c", code, timeout=60)
    assert size_on_disk(base / "granted") < 50_000_000, result


def test_disk_limit_ends_the_call_before_its_timeout(run, policy):
    code = THREAD.replace("range(25)", "range(6)").replace("os._exit(0)", "time.sleep(60)")
    result = run(policy(DISK), "t", PYTHON, "-c", code, options=("--timeout", "20s"))
    assert result["verdict"] == "disk", result


def test_signal_alone_does_not_say_that_the_disk_limit_was_hit(run, policy):
    result = run(policy(DISK), "t", "sh", "-c", "kill -XFSZ $$")
    assert result["verdict"] == "signaled", result


# ---- memory, and what all processes of the host share ---------------------------------------------------

BUFFERS = """
import socket
listener = socket.create_server(("127.0.0.1", 0))
kept, total = [], 0
for _ in range(100):
    one = socket.create_connection(listener.getsockname())
    kept += [one, listener.accept()[0]]
    one.setblocking(False)
    try:
        while total < 150_000_000:
            total += one.send(bytes(65536))
    except BlockingIOError:
        pass
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(50):
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.bind(("127.0.0.1", 0))
    kept.append(one)
    total += sum(sender.sendto(bytes(60000), one.getsockname()) for _ in range(3))
print(total)
"""


def test_socket_buffers_count_as_memory(run, policy):
    """What lies in the buffers of the cage's own connections is memory of the host, too."""
    result = run(policy('[tool.t]\nmemory = "32MB"\n'), "t", PYTHON, "-c", BUFFERS)
    held = int(result["stdout"].split()[-1]) if result["verdict"] == "ok" else 0
    assert held <= 32_000_000 + 8_000_000, result


def test_host_keeps_its_inotify_instances(background, policy):
    """They are counted per user of the host, and whoever started the cage has to share."""
    call = background(policy("[tool.t]\n"), "t", PYTHON, "-c", """
import ctypes, sys
libc = ctypes.CDLL(None)
for _ in range(250):
    libc.inotify_init1(0)
print("ready", flush=True)
sys.stdin.read()
""")
    assert call.stdout.readline() == "ready\n"
    handle = ctypes.CDLL(None).inotify_init1(os.O_CLOEXEC)
    if handle >= 0:
        os.close(handle)
    assert handle >= 0, "the host cannot watch files any more"


def test_host_keeps_its_aio_contexts(background, policy):
    """fs.aio-max-nr is one number for the whole machine."""
    maximum = int(open("/proc/sys/fs/aio-max-nr", encoding="ascii").read())
    number = {"x86_64": 206, "aarch64": 0}[os.uname().machine]
    call = background(policy("[tool.t]\n"), "t", PYTHON, "-c", f"""
import ctypes, sys
libc = ctypes.CDLL(None)
for _ in range(20):
    libc.syscall({number}, {maximum} // 8, ctypes.byref(ctypes.c_ulong(0)))
print("ready", flush=True)
sys.stdin.read()
""")
    assert call.stdout.readline() == "ready\n"
    used = int(open("/proc/sys/fs/aio-nr", encoding="ascii").read())
    assert used < maximum // 2


TIMERS = """
import ctypes
try:
    create = ctypes.CDLL(None).timer_create
except AttributeError:
    create = ctypes.CDLL("librt.so.1").timer_create
count = 0
while count < 5000 and create(0, None, ctypes.byref(ctypes.c_void_p())) == 0:
    count += 1
print(count)
"""


@pytest.mark.parametrize("backend", ["jail", "process"])
def test_user_keeps_signals_that_may_wait(run, policy, backend):
    """Their number is the user's, and every timer has one of them: who takes all leaves no timer to other programs."""
    result = run(policy(f'[tool.t]\nbackend = "{backend}"\n'), "t", PYTHON, "-c", TIMERS)
    assert result["verdict"] == "ok", result
    assert 0 < int(result["stdout"]) <= 1024, result


@pytest.mark.parametrize("before,command,expected", [
    (["setarch", "-R"], ["cat", "/proc/self/personality"], "00000000"),
    (["sh", "-c", 'echo 123 > /proc/self/oom_score_adj && exec "$@"', "sh"],
     ["sh", "-c", "test $(cat /proc/self/oom_score_adj) != 123 && echo other"], "other"),
], ids=["personality", "oom_score_adj"])
def test_nothing_of_the_callers_state_is_inherited(build_dir, clean_env, jail, tmp_path, before, command, expected):
    """A service that the kernel may not kill would start cages that it may not kill."""
    if not shutil.which(before[0]):
        pytest.skip(f"there is no {before[0]}")
    done = subprocess.run([*before, build_dir / "src" / "toolcage", "exec", "--", *command], cwd=tmp_path, env=clean_env,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() == expected, done.stderr


def test_raised_priority_is_not_inherited(build_dir, clean_env, jail, tmp_path):
    done = subprocess.run(["nice", "-n", "-5", build_dir / "src" / "toolcage", "exec", "--", "nice"], cwd=tmp_path,
                          env=clean_env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    if "cannot set niceness" in done.stderr:
        pytest.skip("this user cannot raise a priority")
    assert int(done.stdout) >= 0, done


# ---- hidden paths, links, programs ------------------------------------------------------------------


@pytest.mark.xfail(strict=True, reason="a known limit, stated in SECURITY.md")
@pytest.mark.parametrize("kind", ["file", "directory"])
def test_hidden_path_stays_hidden_when_it_is_replaced(background, policy, base, kind):
    """Editors and git save a file by renaming another one over it; the kernel then drops what covered it."""
    granted = base / "granted"
    if kind == "file":
        (granted / "hidden").write_text("first\n")
        (granted / "new").write_text("not for cages\n")
    else:
        for name in ("hidden", "new"):
            (granted / name).mkdir()
        (granted / "new" / "key").write_text("not for cages\n")
    path = policy('[tool.t]\nfilesystem = { readable = ["{base}/granted:/g"], hidden = ["/g/hidden"] }\n')
    call = background(path, "t", "sh", "-c", "echo ready; read line; cat /g/hidden /g/hidden/key")
    assert call.stdout.readline() == "ready\n"
    if kind == "file":
        (granted / "new").rename(granted / "hidden")
    else:
        (granted / "hidden").rename(granted / "old")
        (granted / "new").rename(granted / "hidden")
    out, _ = call.communicate("go\n", timeout=30)
    assert "not for cages" not in out


def test_link_planted_under_another_spelling_is_not_followed(run, policy, base):
    """The policy names one directory twice, once through a link of the administrator."""
    (base / "granted" / "data").mkdir()
    (base / "alias").symlink_to("granted")
    path = policy('[tool.writer]\nfilesystem = { writable = ["{base}/alias:/work"] }\n'
                  '[tool.reader]\nfilesystem = { readable = ["{base}/granted/data:/data"] }\n')
    planted = run(path, "writer", "sh", "-c", f"mv /work/data /work/old && ln -s {base}/secret /work/data")
    assert planted["verdict"] == "ok", planted
    result = run(path, "reader", "cat", "/data/key")
    assert "not for cages" not in result["stdout"], result


@pytest.mark.xfail(strict=True, reason="a known limit, stated in SECURITY.md")
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="for root, with unshare")
def test_link_planted_behind_a_bind_mount_is_not_followed(build_dir, policy, jail, base):
    """A part of a writable directory is mounted elsewhere on the host, and granted by that name."""
    (base / "granted" / "part" / "data").mkdir(parents=True)
    (base / "mount").mkdir()
    path = policy('[tool.writer]\nfilesystem = { writable = ["{base}/granted:/work"] }\n'
                  '[tool.reader]\nfilesystem = { readable = ["{base}/mount/data:/data"] }\n')
    command = f"{build_dir}/src/toolcage exec --policy {path} --tool"
    done = subprocess.run(
        ["unshare", "-m", "sh", "-ec", f"""mount --bind {base}/granted/part {base}/mount
         {command} writer -- sh -c 'mv /work/part/data /work/part/old && ln -s {base}/secret /work/part/data'
         {command} reader -- cat /data/key"""], capture_output=True, text=True, timeout=60, check=False)
    if "mount:" in done.stderr:
        pytest.skip(done.stderr)
    assert "not for cages" not in done.stdout


@pytest.mark.parametrize("target", ["/bin/bash", "/usr/bin/bash"])
def test_hidden_program_is_hidden_under_all_its_names(run, policy, target):
    """/bin is a link on most systems: what lies behind it is hidden, or the policy is refused."""
    if not os.path.exists(target):
        pytest.skip(f"there is no {target}")
    path = policy(f'[tool.t]\nfilesystem = {{ hidden = ["{target}"] }}\n')
    result = run(path, "t", "head", "-c", "4", target)
    assert result["verdict"] != "ok", result


def copy_program(name, directory):
    directory.mkdir(exist_ok=True)
    shutil.copy(shutil.which(name), directory / name)
    (directory / name).chmod(0o755)
    return directory / name


def loader():
    found = [path for path in LOADERS if os.path.exists(path)]
    if not found:
        pytest.skip("the loader of this host is not known")
    return found[0]


def test_loader_does_not_start_a_program_that_is_not_listed(run, policy):
    result = run(policy('[tool.t]\ncommands = ["true"]\n'), "t", loader(), "/usr/bin/id")
    assert "uid=" not in result["stdout"], result


def test_loader_does_not_start_a_granted_program_that_is_not_listed(run, policy, base):
    program = copy_program("id", base / "granted")
    path = policy('[tool.t]\nbackend = "process"\ncommands = ["true"]\nfilesystem = { readable = ["{base}/granted"] }\n')
    result = run(path, "t", loader(), program)
    assert "uid=" not in result["stdout"], result


def test_loader_does_not_start_a_program_of_a_root_that_is_not_listed(run, policy, base):
    root = base / "granted"
    for name in ("dev", "proc", "tmp", "usr"):
        (root / name).mkdir()
    copy_program("id", root / "usr" / "bin")
    copy_program("true", root / "usr" / "bin")
    needed = subprocess.run(["ldd", "/usr/bin/id"], capture_output=True, text=True, check=False).stdout
    for word in {word for word in needed.split() if word.startswith("/")}:
        (root / word[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(word, root / word[1:])
    path = policy('[tool.t]\nrootfs = "{base}/granted"\nsystem = false\ncommands = ["/usr/bin/true"]\n')
    for command in (["/usr/bin/true"], [loader(), "/usr/bin/id"]):
        result = run(path, "t", *command)
        assert result["verdict"] == "error" and "rootfs" in result["reason"], result


# ---- the cage's init --------------------------------------------------------------------------------


def test_command_cannot_get_init_killed(run, policy):
    """Limits of another process of the same user can be set: the cage would break, and the host be blamed."""
    result = run(policy('[tool.t]\ntimeout = "20s"\n'), "t", PYTHON, "-c", """
import os, resource, time
try:
    resource.prlimit(1, resource.RLIMIT_CPU, (0, 0))
except OSError as e:
    print(e)
    raise SystemExit
end = time.monotonic() + 3
while time.monotonic() < end:
    child = os.fork()
    if child == 0:
        for _ in range(10):
            try:
                if os.fork() == 0:
                    os._exit(0)
            except OSError:
                pass
        os._exit(0)
    os.waitpid(child, 0)
""", timeout=60)
    assert result["verdict"] == "ok", result


@pytest.mark.parametrize("attempt", [
    "ls /proc/1/fd/", "cat /proc/1/environ", "cat /proc/1/maps", "cat /proc/1/root/etc/passwd", "readlink /proc/1/exe",
    "cd /proc/1/cwd", "cat /proc/1/mem", "cat /proc/1/syscall"])
def test_command_cannot_look_into_init(run, policy, attempt):
    result = run(policy("[tool.t]\n"), "t", "sh", "-c", attempt)
    assert result["exit_code"] != 0 and result["stdout"] == "", result


@pytest.mark.parametrize("command", ["kill -9 1", "kill -STOP 1", "kill -9 -1"])
def test_command_cannot_signal_init(run, policy, command):
    result = run(policy("[tool.t]\n"), "t", "sh", "-c", f"({command}) 2>/dev/null; exit 7")
    assert (result["verdict"], result["exit_code"]) == ("failed", 7) or result["signal"] == "SIGKILL", result


# ---- the terminal -----------------------------------------------------------------------------------


def test_terminal_has_an_output_limit(toolcage, jail, tmp_path):
    done = toolcage("exec", "--tty", "--output", "10kB", "--", "sh", "-c", "yes | head -c 1000000", cwd=tmp_path)
    assert len(done.stdout) < 100_000 and "output" in done.stderr


@pytest.mark.parametrize("options", [(), ("--tty",), ("--explain-denials",)], ids=["plain", "tty", "traced"])
@pytest.mark.parametrize("command", ["kill -STOP $$", "yes & yes & yes", "sleep 600 & exec sleep 600"])
def test_timeout_comes_whatever_the_command_does(toolcage, jail, tmp_path, options, command):
    done = toolcage("exec", "--timeout", "300ms", "--output", "1MB", *options, "--", "sh", "-c", command, cwd=tmp_path,
                    timeout=60)
    assert done.returncode in (124, 141), done.stderr


# ---- files that are brought out -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a\u200bb", "a\U000e0041b", "a\u202eb", "a\x1bb", "a\nb"],
                         ids=["zero width", "tag", "override", "escape", "line"])
def test_name_that_deceives_is_not_saved(run, policy, base, name):
    path = policy('[tool.t]\noutputs = ["/tmp/*"]\n')
    result = run(path, "t", PYTHON, "-c", f"open({ascii(name)}, 'w')", options=("--out", str(base / "out")))
    assert result["files"] == [] and os.listdir(base / "out") == [], result


REUSE = """
strace -qq -o log -e trace=waitid,clone3 -e inject=waitid:delay_exit=900000:when=1+ \\
    "$1" exec --json --timeout 300ms --policy policy.toml --tool t -- sleep 20 > result &
sleep 0.8
init=$(grep -o 'clone3.*= [0-9]*' log | head -1 | grep -o '[0-9]*$')
for i in 1 2 3 4 5; do
    echo $((init - 1)) > /proc/sys/kernel/ns_last_pid
    sleep 3 &
    [ $! != "$init" ] || { echo reused; break; }
done
wait %1
"""


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("strace") or not shutil.which("unshare") or native.SANITIZED,
                    reason="for root, with strace and unshare; a leak checker does not work under strace")
def test_files_of_a_killed_cage_are_not_looked_for_elsewhere(build_dir, policy, base, jail):
    """Init is gone after a timeout; whoever has its number then is somebody else, with another root."""
    policy('[tool.t]\noutputs = ["{base}/secret/*"]\n')
    done = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "bash", "-c", REUSE, "bash",
                           build_dir / "src" / "toolcage"],
                          cwd=base, capture_output=True, text=True, timeout=60, check=False)
    if "reused" not in done.stdout:
        pytest.skip(f"the number could not be used again: {done.stderr}")
    result = json.loads((base / "result").read_text())
    assert result["verdict"] == "timeout" and result["files"] == [], result


# ---- hosts of the library -------------------------------------------------------------------------------

HOST = r"""
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <toolcage/toolcage.h>

/* Does what it reads, one line at a time, words separated by tabs. */
static void show(struct tc_result *result, const struct tc_error *error)
{
    printf("%s\n", result ? tc_result_json(result) : error->message);
    tc_result_free(result);
}

int main(int argc, char **argv)
{
    static char line[8192];
    struct tc_engine *engine;
    struct tc_error error = { 0 };
    struct tc_call *call = NULL;
    if (argc < 2 || tc_engine_open(&(struct tc_engine_options){ .policy_path = argv[1] }, &engine, &error) < 0)
        return puts(error.message), 1;
    while (fgets(line, sizeof line, stdin)) {
        char *words[64] = { 0 }, *at = line;
        struct tc_result *result = NULL;
        struct tc_request request = { 0 };
        line[strcspn(line, "\n")] = 0;
        for (int n = 0; n < 63 && (words[n] = strsep(&at, "\t")); n++)
            ;
        request.tool = words[1];
        request.argv = (const char *const *)words + 2;
        if (!strcmp(words[0], "call")) {
            (void)!tc_call(engine, &request, &result, &error);
            show(result, &error);
        } else if (!strcmp(words[0], "start")) {
            printf("%d\n", tc_call_start(engine, &request, &call, &error));
        } else if (!strcmp(words[0], "finish")) {
            while (!result) {
                struct pollfd p = { tc_call_fd(call), POLLIN, 0 };
                (void)poll(&p, 1, -1);
                if (tc_call_step(call, &result, &error) < 0)
                    break;
            }
            show(result, &error);
            tc_call_free(call);
        } else if (!strcmp(words[0], "worker") || !strcmp(words[0], "child")) {
            int pid = fork();
            if (pid == 0) {
                if (words[0][0] == 'w')
                    (void)!tc_call(engine, &request, &result, &error);
                else
                    sleep(20);
                _exit(0);
            }
            printf("%d\n", pid);
        } else if (!strcmp(words[0], "become")) {
            execlp("sleep", "sleep", "20", NULL);
        } else if (!strcmp(words[0], "close")) {
            tc_engine_close(engine);
            puts("closed");
        }
        fflush(stdout);
    }
    return 0;
}
"""


@pytest.fixture(scope="module")
def host_program(build_dir, repo, tmp_path_factory):
    library = build_dir / "src" / "libtoolcage.so"
    if not shutil.which("cc") or not library.exists():
        pytest.skip("there is no compiler or no shared library")
    if b"__asan_init" in (build_dir / "src" / "toolcage").read_bytes():
        pytest.skip("the library is built with a sanitizer")
    directory = tmp_path_factory.mktemp("host")
    (directory / "host.c").write_text(HOST)
    subprocess.run(["cc", "-D_GNU_SOURCE", "-I", repo / "include", directory / "host.c", "-o", directory / "host",
                    library.resolve(), f"-Wl,-rpath,{library.parent.resolve()}"], check=True)
    return directory / "host"


class Host:
    """A program with the library in it, told what to do line by line."""

    def __init__(self, program, policy):
        self.process = subprocess.Popen([program, policy], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.children = []

    def say(self, *words):
        self.process.stdin.write("\t".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def ask(self, *words):
        self.say(*words)
        return self.process.stdout.readline().strip()

    def call(self, tool, *argv):
        return json.loads(self.ask("call", tool, *argv))

    def fork(self, *words):
        self.children.append(int(self.ask(*words)))
        return self.children[-1]

    def close(self):
        self.process.kill()
        for child in self.children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def host(host_program, jail):
    hosts = []

    def start(path):
        hosts.append(Host(host_program, path))
        return hosts[-1]

    yield start
    for one in hosts:
        one.close()


def count_running(word):
    """Processes with this word as an argument of their own."""
    found = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                found += word.encode() in file.read().split(b"\0")
    return found


@pytest.fixture
def long_sleep():
    """An argument of sleep(1) that nobody else has."""
    return f"100.{os.getpid()}{time.monotonic_ns() % 1000000}"


def test_cage_ends_with_the_forked_worker_that_called(host, policy, long_sleep):
    """The plan was made before the fork, by another process than the one that calls."""
    one = host(policy("[tool.t]\n"))
    assert one.call("t", "true")["verdict"] == "ok"
    worker = one.fork("worker", "t", "sleep", long_sleep)
    assert wait_until(lambda: count_running(long_sleep) >= 2, 30)
    os.kill(worker, signal.SIGKILL)
    # Soon: later, another toolcage of this machine may have collected its control group.
    assert wait_until(lambda: not count_running(long_sleep), 5), "the cage outlived who called"


def test_cage_ends_when_the_host_executes_another_program(host, policy, long_sleep):
    """Nobody is left who would end it."""
    one = host(policy("[tool.t]\n"))
    assert one.ask("start", "t", "sleep", long_sleep) == "0"
    assert wait_until(lambda: count_running(long_sleep) >= 2, 30)
    one.say("become")
    assert wait_until(lambda: not count_running(long_sleep), 20), "the cage outlived its supervisor"


def test_cage_ends_when_the_host_is_killed(host, policy, long_sleep):
    one = host(policy("[tool.t]\n"))
    assert one.ask("start", "t", "sleep", long_sleep) == "0"
    assert wait_until(lambda: count_running(long_sleep) >= 2, 30)
    one.process.kill()
    assert wait_until(lambda: not count_running(long_sleep), 20)


def test_child_forked_during_a_call_does_not_hold_the_end(host, policy):
    """It has copies of all descriptors, and never closes them."""
    one = host(policy('[tool.t]\noutputs = ["/tmp/*"]\n'))
    assert one.ask("start", "t", "sleep", "0.3") == "0"
    one.fork("child")
    assert json.loads(one.ask("finish"))["verdict"] == "ok"
    before = time.monotonic()
    assert one.ask("close") == "closed"
    assert time.monotonic() - before < 15  # the child sleeps longer


@pytest.mark.parametrize("memory", ["25kB", "27kB", "30kB", "100kB"])
def test_init_that_dies_early_does_not_harm_the_host(host, policy, memory):
    """Nobody reads what is written to it then: that must not be a SIGPIPE for the host."""
    for _ in range(4):
        one = host(policy(f'[tool.t]\nmemory = "{memory}"\n'))
        assert one.ask("call", "t", "true") != "", "the host died"


def test_optional_hidden_path_that_appears_later_is_hidden(host, policy, base):
    one = host(policy('[tool.t]\nfilesystem = { readable = ["{base}/granted:/g"], hidden = '
                      '[{ host = "/g/.env", cage = "/g/.env", optional = true }] }\n'))
    assert one.call("t", "true")["verdict"] == "ok"
    (base / "granted" / ".env").write_text("not for cages\n")
    assert "not for cages" not in one.call("t", "cat", "/g/.env")["stdout"]


def test_program_replaced_by_a_link_grants_nothing(host, policy, base):
    """A call of another tool puts a link to / in the place of a listed program."""
    copy_program("true", base / "granted")
    one = host(policy('[tool.t]\nbackend = "process"\ncommands = ["{base}/granted/true", "cat"]\n'
                      '[tool.w]\nfilesystem = { writable = ["{base}/granted:/w"] }\n'))
    first = one.call("t", "cat", base / "secret" / "key")
    if first["verdict"] == "error":
        pytest.skip(first["reason"])
    assert "not for cages" not in first["stdout"]
    assert one.call("w", "sh", "-c", "mv /w/true /w/old && ln -s / /w/true")["verdict"] == "ok"
    again = one.call("t", "cat", base / "secret" / "key")
    assert "not for cages" not in again["stdout"], again


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("strace") or native.SANITIZED,
                    reason="for root, with strace; a leak checker does not work under it")
def test_nothing_is_left_when_the_host_is_killed_while_it_plans(build_dir, policy, jail, base):
    """The helper that holds a user namespace open has the host's memory and descriptors."""
    path = policy('[tool.t]\nfilesystem = { readable = ["{base}/granted:/g"] }\n')
    log = base / "log"
    tracer = subprocess.Popen(
        ["strace", "-qq", "-o", log, "-e", "trace=clone,write", "-e", "inject=write:delay_enter=300000",
         build_dir / "src" / "toolcage", "exec", "--policy", path, "--tool", "t", "--", "true"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    mark = str(path)
    try:
        if not wait_until(lambda: log.exists() and "CLONE_NEWUSER" in log.read_text(errors="replace"), 10):
            pytest.skip("there is no such helper")
        children = open(f"/proc/{tracer.pid}/task/{tracer.pid}/children", encoding="ascii").read().split()
        for pid in children:
            os.kill(int(pid), signal.SIGKILL)
    finally:
        tracer.wait(timeout=30)
    ended = wait_until(lambda: not count_running(mark), 3)
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if mark.encode() in file.read().split(b"\0"):
                    os.kill(int(pid), signal.SIGKILL)
    assert ended, "a process was left behind"
